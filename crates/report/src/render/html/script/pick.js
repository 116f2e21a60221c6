// Bars and dots choose records, by pointer and by keys, and show which of them a filter leaves.
(function (L) {
  "use strict";
  var records = L.records;
  if (!records) return;
  var NEAR = 9, all = function (s, r) { return Array.prototype.slice.call((r || document).querySelectorAll(s)); };
  var eta = records.column("η"), shape = L.shape;
  function number(e, name) { return Number(e.getAttribute(name)); }
  // A drawing with things to choose is no picture.
  function open(svg) { svg.setAttribute("role", "group"); }
  // One stop of the tabulator for a whole drawing; arrows go on from there.
  function keys(e, step, act) {
    e.addEventListener("keydown", function (event) {
      var by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
      if (event.key === "Enter" || event.key === " ") act(); else if (by) step(by); else return;
      event.preventDefault();
    });
  }

  // The histogram: a bar is one range of η, whatever it is coloured by.
  var histogram = document.querySelector("#who .chart"), bins = [], subset = null, current = 0;
  if (histogram && histogram.querySelector("rect[data-from]")) bars();
  function bars() {
    var places = new Map(), y = L.scale(histogram.getAttribute("data-y"));
    open(histogram);
    all("rect[data-from]", histogram).forEach(function (rect) {
      var low = number(rect, "data-from"), to = rect.getAttribute("data-to");
      var high = to === "" || Number(to) === low ? Infinity : Number(to);
      rect.classList.add("picks");
      rect.addEventListener("click", function () { records.pickBar(low, high); });
      if (!places.has(low)) places.set(low, { low: low, high: high, x: number(rect, "x"), width: number(rect, "width") });
    });
    bins = Array.from(places.values()).sort(function (a, b) { return a.low - b.low; });
    bins.forEach(function (bin, i) {
      bin.count = 0;
      bin.e = shape("rect", { "class": "bin", x: bin.x, y: y.at(y.high), width: Math.max(bin.width, 2), height: y.at(0) - y.at(y.high),
        role: "button", tabindex: i ? "-1" : "0" });
      histogram.appendChild(bin.e);
      keys(bin.e, function (by) { focus(by === Infinity ? bins.length - 1 : by === -Infinity ? 0 : Math.min(bins.length - 1, Math.max(0, i + by))); },
        function () { records.pickBar(bin.low, bin.high); });
    });
    for (var i = 0; i < records.n; i++) { var b = binOf(eta.at(i)); if (b) b.count += 1; }
    subset = shape("path", { "class": "subset", d: "" });
    histogram.insertBefore(subset, bins[0].e);
  }
  function focus(i) {
    bins[current].e.setAttribute("tabindex", "-1");
    current = i;
    bins[i].e.setAttribute("tabindex", "0");
    bins[i].e.focus();
  }
  function binOf(x) {
    var a = 0, b = bins.length;
    // The last whose lower end is not above x.
    while (b - a > 1) { var m = (a + b) >> 1; if (bins[m].low * (1 - 1e-12) <= x) a = m; else b = m; }
    var bin = bins[a];
    return bin && x >= bin.low * (1 - 1e-12) && (bin.high === Infinity || x < bin.high * (1 - 1e-12)) ? bin : null;
  }
  function drawBars(filtered) {
    if (!bins.length) return;
    var y = L.scale(histogram.getAttribute("data-y")), k = records.factor(), own = records.bar();
    bins.forEach(function (bin) {
      var range = "η " + L.number(k * bin.low) + (bin.high === Infinity ? " and above" : " to " + L.number(k * bin.high));
      bin.e.setAttribute("aria-label", range + (records.all ? ": " + L.count(bin.count) + (bin.count === 1 ? " record" : " records") : ""));
      bin.e.setAttribute("aria-pressed", String(!!own && own[0] === bin.low));
      bin.left = 0;
    });
    // Of a sample nothing is drawn: its heights would not be those of all records.
    histogram.classList.toggle("faded", filtered && records.all);
    if (filtered && records.all) records.left().forEach(function (i) { var bin = binOf(eta.at(i)); if (bin) bin.left += 1; });
    subset.setAttribute("d", bins.map(function (bin) {
      if (!bin.left) return "";
      var top = Math.min(y.at(bin.left), y.at(0) - 1.5);
      return "M" + bin.x.toFixed(1) + " " + y.at(0).toFixed(1) + "V" + top.toFixed(1) + "h" + bin.width.toFixed(1) + "V" + y.at(0).toFixed(1) + "z";
    }).join(""));
  }

  // Scatter plots: each dot is a record.
  var plots = all("#loss .chart").map(plot).filter(Boolean);
  function plot(svg) {
    var titles = all("text.title", svg), column = titles.length && records.column(titles[titles.length - 1].textContent);
    if (!column) return null;
    var x = L.scale(svg.getAttribute("data-x")), y = L.scale(svg.getAttribute("data-y")), dots = [], places = null;
    all(".dots", svg).forEach(function (path) {
      var each = /M([\d.-]+) ([\d.-]+)h(\d)/g, m;
      while ((m = each.exec(path.getAttribute("d"))) !== null) dots.push({ x: Number(m[1]) + Number(m[3]) / 2, y: Number(m[2]), record: -1 });
    });
    all(".ring", svg).forEach(function (ring) { dots.push({ x: number(ring, "cx"), y: number(ring, "cy"), record: -1 }); });
    if (!dots.length) return null;
    dots.sort(function (a, b) { return a.x - b.x || a.y - b.y; });
    open(svg);
    function all_places() {
      if (places) return places;
      places = { x: new Float32Array(records.n), y: new Float32Array(records.n) };
      for (var i = 0; i < records.n; i++) { places.x[i] = x.at(column.at(i)); places.y[i] = y.at(eta.at(i)); }
      return places;
    }
    // The record that a dot stands for is the one that lies there.
    function recordOf(dot) {
      if (dot.record >= 0) return dot.record;
      var p = all_places(), best = Infinity;
      for (var i = 0; i < records.n; i++) {
        var d = (p.x[i] - dot.x) * (p.x[i] - dot.x) + (p.y[i] - dot.y) * (p.y[i] - dot.y);
        if (d < best) { best = d; dot.record = i; }
      }
      return dot.record;
    }
    function tipOf(dot) {
      var i = recordOf(dot), of = records.series ? ", " + records.names[records.series[i]] : "";
      return "record " + records.id(i) + of + ": η " + records.write(eta, i) + ", " + column.name + " " + records.write(column, i);
    }
    function under(event) {
      var point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()), best = NEAR * NEAR, nearest = null;
      dots.forEach(function (dot) {
        var d = (dot.x - point.x) * (dot.x - point.x) + (dot.y - point.y) * (dot.y - point.y);
        if (d < best) { best = d; nearest = dot; }
      });
      return nearest;
    }
    svg.addEventListener("click", function (event) { var dot = under(event); if (dot) records.pickRecord(recordOf(dot)); });
    // Before the label is shown: of a path of many dots, the one under the pointer.
    svg.addEventListener("pointermove", function (event) {
      var dot = event.target.classList.contains("dots") || event.target.classList.contains("ring") ? under(event) : null;
      if (dot) event.target.setAttribute("data-tip", tipOf(dot));
    }, true);
    all(".dots, .ring", svg).forEach(function (e) { e.classList.add("picks"); });
    var cursor = shape("circle", { "class": "cursor", cx: 0, cy: 0, r: 8, tabindex: "0", role: "button" }), at = 0, tip = document.getElementById("tip");
    svg.appendChild(cursor);
    function go(i) {
      at = i;
      cursor.setAttribute("cx", dots[at].x.toFixed(1));
      cursor.setAttribute("cy", dots[at].y.toFixed(1));
      cursor.setAttribute("aria-label", tipOf(dots[at]));
    }
    function show() {
      var box = cursor.getBoundingClientRect();
      tip.textContent = tipOf(dots[at]);
      tip.className = "on";
      tip.style.left = Math.max(8, Math.min(box.right + 8, innerWidth - tip.getBoundingClientRect().width - 8)) + "px";
      tip.style.top = box.bottom + 6 + "px";
    }
    cursor.addEventListener("focus", function () { go(at); show(); });
    cursor.addEventListener("blur", function () { tip.className = ""; });
    keys(cursor, function (by) { go(Math.min(dots.length - 1, Math.max(0, by === Infinity ? dots.length - 1 : by === -Infinity ? 0 : at + by))); show(); },
      function () { records.pickRecord(recordOf(dots[at])); });
    var chosen = shape("path", { "class": "chosendots", d: "" });
    svg.insertBefore(chosen, svg.querySelector(".ring") || cursor);
    cursor.setAttribute("aria-label", "Dots: each is a record, arrow keys go from one to the next");
    return { svg: svg, draw: function (filtered) {
      var p = filtered ? all_places() : null, left = records.left(), stride = Math.max(1, Math.ceil(left.length / 1500)), d = "";
      svg.classList.toggle("faded", filtered);
      for (var k = 0; filtered && k < left.length; k += stride) d += "M" + p.x[left[k]].toFixed(1) + " " + p.y[left[k]].toFixed(1) + "h0";
      chosen.setAttribute("d", d);
    } };
  }

  function draw() {
    var filtered = records.filtered();
    drawBars(filtered);
    plots.forEach(function (p) { p.draw(filtered); });
  }
  document.addEventListener("filter", draw);
  draw();
})(Leakscope);
