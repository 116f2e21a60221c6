// Numbers as the page writes them, and the normal distribution: the same as in Rust, so that a number that moves reads as one
// that does not. Bounds are rounded to the safe side.
var Leakscope = (function () {
  "use strict";
  var SUPERSCRIPT = { "-": "⁻", "0": "⁰", "1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵", "6": "⁶", "7": "⁷", "8": "⁸", "9": "⁹" };

  // Φ(x), to the last digits: erf by its series of positive terms near zero, erfc by its continued fraction far out.
  function normal(x) {
    if (x !== x) return NaN;
    var z = Math.abs(x) * Math.SQRT1_2, tail;
    if (z > 27) tail = 0;
    else if (z < 2.5) {
      var term = z, sum = z;
      for (var n = 1; n < 200 && term > 1e-19 * sum; n++) {
        term *= 2 * z * z / (2 * n + 1);
        sum += term;
      }
      tail = 0.5 - Math.exp(-z * z) * sum / Math.sqrt(Math.PI);
    } else {
      var f = z;
      for (var k = 120; k >= 1; k--) f = z + 0.5 * k / f;
      tail = 0.5 * Math.exp(-z * z) / (f * Math.sqrt(Math.PI));
    }
    return x >= 0 ? 1 - tail : tail;
  }

  // A share that is at most this: moved up by the margin that bounds have, and never above one.
  function most(p) { return Math.min(1, p + p * 1e-12); }

  function separated(text) { return text.replace(/\B(?=(\d{3})+$)/g, ","); }
  function power(e) { return String(e).replace(/./g, function (c) { return SUPERSCRIPT[c] || c; }); }

  // Three significant digits; `side` is −1 to round down, 1 to round up, 0 to the nearest.
  function written(x, side) {
    if (x !== x) return "unknown";
    if (x === Infinity || x === -Infinity) return "unbounded";
    if (x === 0) return "0";
    if (x < 0) return "−" + written(-x, -side);
    if (x >= 999.5 && x < 1e5 && !(x < 1e3 && side < 0)) {
      var whole = side === 0 ? Math.round(x) : side < 0 ? Math.floor(x * (1 + 1e-10)) : Math.ceil(x * (1 - 1e-10));
      return separated(String(whole));
    }
    var parts = x.toExponential(side === 0 ? 2 : 9).split("e");
    var digits = parts[0].replace(".", ""), exponent = Number(parts[1]), head = Number(digits.slice(0, 3));
    if (side > 0 && /[1-9]/.test(digits.slice(3))) head += 1;
    if (head === 1000) { head = 100; exponent += 1; }
    if (exponent >= -3 && exponent <= -1) return "0." + "00".slice(0, -exponent - 1) + head;
    if (exponent === 2) return String(head);
    if (exponent === 1) return Math.floor(head / 10) + "." + head % 10;
    var hundredths = Math.floor(head / 100) + "." + ("0" + head % 100).slice(-2);
    return exponent === 0 ? hundredths : hundredths + "×10" + power(exponent);
  }

  function share(x) {
    var p = 100 * x;
    if (!isFinite(p)) return written(p, 0);
    if (p > 0 && p < 0.1) return "<0.1%";
    if (p > 99.9 && p < 100) return ">99.9%";
    return p.toFixed(1).replace(/\.0$/, "") + "%";
  }

  // A setting as somebody chose it, without the zeros that say nothing.
  function setting(x) {
    var text = written(x, 0), at = text.indexOf("×");
    var head = at < 0 ? text : text.slice(0, at), tail = at < 0 ? "" : text.slice(at);
    return (head.indexOf(".") < 0 ? head : head.replace(/0+$/, "").replace(/\.$/, "")) + tail;
  }

  // The same as a command line takes it, rounded up.
  function typed(x) {
    var near = Number(x.toExponential(2));
    if (near < x * (1 - 1e-12)) near = Number((1.005 * x).toExponential(2));
    return near >= 1e-6 && near < 1e9 ? String(near) : near.toExponential(2).replace("e+", "e");
  }

  return {
    normal: normal,
    most: most,
    number: function (x) { return written(x, 0); },
    atLeast: function (x) { return written(x, -1); },
    atMost: function (x) { return written(x, 1); },
    count: function (n) { return separated(String(n)); },
    share: share,
    // What lies beyond the tenth digit is noise of the computation.
    shareAtMost: function (x) { var s = Math.ceil(x * 1e3 * (1 - 1e-10)) / 1e3; return share(s < 1 ? s : 1); },
    shareAtLeast: function (x) { return share(Math.max(0, Math.floor(x * 1e3 * (1 + 1e-10)) / 1e3)); },
    setting: setting,
    power: power,
    typed: typed,
  };
})();
