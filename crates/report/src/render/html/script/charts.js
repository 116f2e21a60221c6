// Drawings that follow the noise: labels of axes, hover texts, the noise that is chosen. Shapes stay: where every η is k times as large,
// so are both ends of its axis.
(function (L) {
  "use strict";
  // A page names no address: the one of drawings comes from a drawing.
  var SVG = document.querySelector("svg").namespaceURI;
  var LEFT = 58, RIGHT = 544, all = function (s) { return Array.prototype.slice.call(document.querySelectorAll(s)); };

  // A map from values to places, as Rust wrote it: kind, ends of the domain, ends of the range.
  L.scale = function (text, factor) {
    var p = text.split(" "), log = p[0] === "log", k = factor || 1, a = k * Number(p[1]), b = k * Number(p[2]), r0 = Number(p[3]), r1 = Number(p[4]);
    return {
      log: log, low: a, high: b,
      at: function (x) {
        var t = log ? Math.log(Math.max(x, 2.2250738585072014e-308) / a) / Math.log(b / a) : (x - a) / (b - a);
        return r0 + Math.min(1, Math.max(0, t === t ? t : 0)) * (r1 - r0);
      },
    };
  };

  // The smallest of 1, 2, 2.5, 5 times a power of ten that cuts a span into at most so many parts.
  function niceStep(span, most) {
    var raw = Math.max(span / most, 2.2250738585072014e-308), power = Math.pow(10, Math.floor(Math.log10(raw)));
    var fits = [1, 2, 2.5, 5, 10].filter(function (m) { return m * power >= raw * (1 - 1e-9); });
    return (fits.length ? fits[0] : 10) * power;
  }
  function label(x, step) {
    var s = Math.abs(x), sign = x < 0 ? "−" : "";
    var short = function (v) { return v.toFixed(2).replace(/\.?0+$/, ""); };
    if (s < 1e-9 * step) return "0";
    if (!(s >= 1e-5 && s < 1e15)) return sign + L.setting(s);
    if (s >= 1e9) return sign + short(s / 1e9) + "G";
    if (s >= 1e6) return sign + short(s / 1e6) + "M";
    if (s >= 1e4) return sign + short(s / 1e3) + "k";
    if (step >= 1 && step % 1 === 0) return sign + L.count(Math.round(s));
    // As many decimals as the step has, so that the labels of an axis line up.
    var places = Math.max(0, -Math.floor(Math.log10(step * (1 + 1e-9)))), scaled = step * Math.pow(10, places);
    return sign + s.toFixed(places + (Math.abs(scaled - Math.round(scaled)) > 1e-6 ? 1 : 0));
  }
  function logLabel(x, multiple, power) {
    if (power >= -4 && power <= -1) return x.toFixed(-power);
    if (power >= 0 && power <= 3) return L.count(Math.round(x));
    return (multiple === 1 ? "10" : multiple + "×10") + L.power(power);
  }
  // At most about so many ticks inside the domain, with their labels.
  L.ticks = function (scale, most) {
    var a = scale.low, b = scale.high, out = [];
    if (!scale.log) {
      var step = niceStep(b - a, most), last = Math.floor(b / step + 1e-9);
      for (var i = Math.ceil(a / step - 1e-9); i <= last; i++) out.push([i * step, label(i * step, step)]);
      return out;
    }
    var decades = Math.log10(b / a), multiples = decades < 1.3 ? [1, 2, 5] : decades < 2.2 ? [1, 3] : [1];
    var stride = Math.max(1, Math.ceil(decades / most)), end = Math.ceil(Math.log10(b));
    for (var k = Math.floor(Math.log10(a)); k <= end; k++) {
      if (k % stride !== 0) continue;
      multiples.forEach(function (m) {
        var x = m * Math.pow(10, k);
        if (x >= a * (1 - 1e-9) && x <= b * (1 + 1e-9)) out.push([x, logLabel(x, m, k)]);
      });
    }
    return out;
  };

  function shape(name, attributes, text) {
    var e = document.createElementNS(SVG, name);
    Object.keys(attributes).forEach(function (n) {
      e.setAttribute(n, typeof attributes[n] === "number" ? attributes[n].toFixed(1) : attributes[n]);
    });
    if (text !== undefined) e.textContent = text;
    return e;
  }
  L.shape = shape;

  var axes = all("[data-ticks]").map(function (g) {
    var line = g.querySelector("line");
    return { g: g, across: g.getAttribute("data-ticks") === "x", scale: g.getAttribute("data-scale"), by: g.getAttribute("data-by"),
      bottom: line ? Number(line.getAttribute("y1")) : 0, stated: g.innerHTML };
  });
  function relabel(axis, k) {
    var scale = L.scale(axis.scale, k), g = axis.g;
    g.textContent = "";
    L.ticks(scale, axis.across ? 6 : 5).forEach(function (tick) {
      var at = scale.at(tick[0]), y = axis.bottom;
      if (axis.across) {
        g.appendChild(shape("line", { "class": "axis", x1: at, x2: at, y1: y, y2: y + 5 }));
        g.appendChild(shape("text", { x: at, y: y + 21, "text-anchor": "middle" }, tick[1]));
      } else {
        g.appendChild(shape("line", { "class": "grid", x1: LEFT, x2: RIGHT, y1: at, y2: at }));
        g.appendChild(shape("text", { x: LEFT - 8, y: at + 4.5, "text-anchor": "end" }, tick[1]));
      }
    });
  }

  // Texts in attributes.
  var texts = all("[data-said]").map(function (e) {
    var name = e.hasAttribute("data-tip") ? "data-tip" : "aria-label";
    return { e: e, name: name, stated: e.getAttribute(name), pieces: JSON.parse(e.getAttribute("data-said")) };
  });

  // The noise that is chosen, where a drawing has noise on its axis.
  var chosen = all("[data-chosen]").map(function (g) {
    var svg = g.closest("svg");
    return { g: g, x: L.scale(svg.getAttribute("data-x")), y: L.scale(svg.getAttribute("data-y")), stated: {}, own: g.getAttribute("data-chosen") };
  });
  chosen.forEach(function (c) {
    c.line = c.g.querySelector("line");
    c.note = c.g.querySelector("text");
    c.here = c.g.querySelector(".here");
    c.stated = [c.line, c.note, c.here].map(function (e) { return e && e.cloneNode(true); });
  });
  function place(c, sigma, value) {
    var at = c.x.at(sigma), end = at > 300, off = sigma < c.x.low * (1 - 1e-9) ? -1 : sigma > c.x.high * (1 + 1e-9) ? 1 : 0;
    c.line.setAttribute("x1", at.toFixed(1));
    c.line.setAttribute("x2", at.toFixed(1));
    c.note.setAttribute("x", (at + (end ? -7 : 7)).toFixed(1));
    c.note.setAttribute("text-anchor", end ? "end" : "start");
    c.note.textContent = (off < 0 ? "← " : "") + (c.own === "curve" ? "σ = " : "chosen: ") + L.setting(sigma) + (off > 0 ? " →" : "");
    if (!c.here) return;
    var inside = value !== null && !off && value >= c.y.low && value <= c.y.high;
    c.here.setAttribute("visibility", inside ? "visible" : "hidden");
    if (!inside) return;
    c.here.setAttribute("cx", at.toFixed(1));
    c.here.setAttribute("cy", c.y.at(value).toFixed(1));
  }
  function back(c) {
    [c.line, c.note, c.here].forEach(function (e, i) {
      if (!e) return;
      ["x1", "x2", "x", "text-anchor", "cx", "cy", "visibility"].forEach(function (n) {
        if (c.stated[i].hasAttribute(n)) e.setAttribute(n, c.stated[i].getAttribute(n)); else e.removeAttribute(n);
      });
      if (i === 1) e.textContent = c.stated[1].textContent;
    });
  }

  // At a noise: how many times η, how many times η at a noise that stays, what writes a piece, the noise and what is left there.
  L.redraw = function (at) {
    axes.forEach(function (axis) { relabel(axis, axis.by === "eta" ? at.factor : at.released); });
    texts.forEach(function (t) {
      t.e.setAttribute(t.name, t.pieces.map(function (p) { return typeof p === "string" ? p : at.write(p[0], p[1]); }).join(""));
    });
    chosen.forEach(function (c) { place(c, c.own === "curve" ? at.sigma : at.seen, at.value); });
  };
  // As audited.
  L.restore = function () {
    axes.forEach(function (axis) { axis.g.innerHTML = axis.stated; });
    texts.forEach(function (t) { t.e.setAttribute(t.name, t.stated); });
    chosen.forEach(back);
  };
})(Leakscope);
