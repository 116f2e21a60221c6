// Whether the page is as it was written: its text, its data and its script against the digest that it carries. It runs first, before
// anything on the page is moved. It finds what was changed, not who means to deceive: whoever changes the digest too is not found out.
(function () {
  "use strict";
  var stated = document.querySelector("meta[name=leakscope-digest]"), main = document.querySelector("main");
  if (!stated || !main) return;

  var K = new Int32Array([
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
  ]);
  function sha256(bytes) {
    var h = new Int32Array([0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19]);
    var blocks = ((bytes.length + 8) >> 6) + 1, end = new Uint8Array(128), w = new Int32Array(64), first = (blocks - 2) << 6;
    // The last two blocks hold the rest, a one, zeros and the length in bits.
    if (first < 0) first = 0;
    end.set(bytes.subarray(first));
    end[bytes.length - first] = 128;
    var view = new DataView(end.buffer), tail = (blocks << 6) - first;
    view.setUint32(tail - 8, Math.floor(bytes.length / 536870912));
    view.setUint32(tail - 4, bytes.length << 3 >>> 0);
    var whole = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (var b = 0; b < blocks; b++) {
      var from = b << 6, data = from < first ? whole : view, at = from < first ? from : from - first;
      for (var i = 0; i < 16; i++) w[i] = data.getInt32(at + 4 * i);
      for (i = 16; i < 64; i++) {
        var x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10) | 0;
      }
      var a = h[0], c = h[1], d = h[2], e = h[3], f = h[4], g = h[5], m = h[6], n = h[7];
      for (i = 0; i < 64; i++) {
        var t = n + ((f >>> 6 | f << 26) ^ (f >>> 11 | f << 21) ^ (f >>> 25 | f << 7)) + (f & g ^ ~f & m) + K[i] + w[i] | 0;
        var u = ((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & c ^ a & d ^ c & d) | 0;
        n = m; m = g; g = f; f = e + t | 0; e = d; d = c; c = a; a = t + u | 0;
      }
      h[0] += a; h[1] += c; h[2] += d; h[3] += e; h[4] += f; h[5] += g; h[6] += m; h[7] += n;
    }
    return Array.from(h).map(function (v) { return ("0000000" + (v >>> 0).toString(16)).slice(-8); }).join("");
  }

  // Names, attributes and text in the order in which they stand; see `digest.rs`.
  var parts = [];
  function walk(e) {
    parts.push("\u0001", e.localName);
    for (var i = 0; i < e.attributes.length; i++) parts.push("\u0002", e.attributes[i].name, "\u0003", e.attributes[i].value);
    parts.push("\u0004");
    for (var c = e.firstChild; c; c = c.nextSibling) {
      if (c.nodeType === 1) walk(c); else if (c.nodeType === 3) parts.push(c.data);
    }
  }
  for (var c = main.firstChild; c; c = c.nextSibling) {
    // The navigation comes and goes with other results in the folder.
    if (c.nodeType === 1 && !(c.localName === "nav" && c.className === "results")) walk(c);
    else if (c.nodeType === 3) parts.push(c.data.trim());
  }
  var text = ["style", "title"].map(function (n) { return document.querySelector(n).textContent; });
  var all = text.concat(parts.join(""), document.currentScript.textContent).join("\u0005");
  function check() {
    if (sha256(new TextEncoder().encode(all)) === stated.content) return;
    var banner = document.createElement("div");
    banner.className = "edited";
    banner.setAttribute("role", "alert");
    var strong = document.createElement("strong");
    strong.textContent = "This page was changed after Leakscope wrote it. ";
    banner.appendChild(strong);
    banner.appendChild(document.createTextNode("What it says, its data or its script is not what was computed: trust nothing on it. Run the command again, " +
      "or take the page from where it was made."));
    document.body.insertBefore(banner, document.body.firstChild);
  }
  // The reader comes first.
  setTimeout(check, 0);
})();
