// Explore: every record from the store of columns in the page, as a table that draws the rows in sight alone.
(function (L) {
  "use strict";
  var card = document.getElementById("records"), store = L.data.store;
  if (!card || !store) return;
  card.hidden = false;
  var ids = store.ids.split("\n"), n = ids.length;
  var ROW = 34, HEIGHT = 442, all = function (s, r) { return Array.prototype.slice.call((r || document).querySelectorAll(s)); };
  var part = {};
  all("[data-explore]", card).forEach(function (e) { part[e.getAttribute("data-explore")] = e; });

  function codes(text) {
    var raw = atob(text), out = new Uint16Array(raw.length >> 1);
    for (var i = 0; i < out.length; i++) out[i] = raw.charCodeAt(2 * i) | raw.charCodeAt(2 * i + 1) << 8;
    return out;
  }
  var columns = store.columns.map(function (c) {
    var first = Math.log(c.low), step = c.high > c.low ? Math.log(c.high / c.low) / 65533 : 0, data = codes(c.data);
    return {
      name: c.name, follows: c.follows, of: c.attribute, data: data,
      // As audited; 0 is zero, 65535 no number.
      at: function (i) { var v = data[i]; return v === 0 ? 0 : v === 65535 ? NaN : Math.exp(first + (v - 1) * step); },
    };
  });
  var attributes = columns.filter(function (c) { return c.of; });
  var series = store.of_series ? codes(store.of_series) : null;
  var noise = L.noise ? L.noise() : { factor: 1, sigma: NaN };
  function moved(column, x) {
    var k = noise.factor;
    return column.follows === "eta" ? k * x : column.follows === "square" ? k * k * x : x;
  }
  function write(column, i) {
    var x = column.at(i);
    if (x !== x) return "–";
    return L.number(moved(column, x));
  }

  function make(name, content, className) {
    var e = document.createElement(name);
    if (className) e.className = className;
    (content === undefined ? [] : Array.isArray(content) ? content : [content]).forEach(function (c) {
      e.appendChild(typeof c === "string" ? document.createTextNode(c) : c);
    });
    return e;
  }
  function labelled(text, control) { return make("label", [make("span", text), control]); }
  function input(type, hint) {
    var e = document.createElement("input");
    e.type = type;
    if (hint) e.placeholder = hint;
    if (type === "text") { e.inputMode = "decimal"; e.autocomplete = "off"; }
    return e;
  }
  function choice(first, names) {
    var e = document.createElement("select");
    [first].concat(names).forEach(function (t) { e.appendChild(make("option", t)); });
    return e;
  }
  function button(text, act) {
    var e = make("button", text);
    e.type = "button";
    e.addEventListener("click", act);
    return e;
  }

  // Filters: those of the tools, a bar of the histogram (its ends as audited), and one record.
  var bar = null, record = -1, word = input("search", "any part of it"), from = input("text"), to = input("text");
  var group = series ? choice("all", store.series) : null;
  var which = choice("the record", attributes.map(function (c) { return c.name; }));
  part.tools.appendChild(labelled(store.id, word));
  if (group) part.tools.appendChild(labelled(store.by || "group", group));
  part.tools.appendChild(labelled("η of", which));
  part.tools.appendChild(labelled("from", from));
  part.tools.appendChild(labelled("to", to));
  part.tools.appendChild(button("All records", function () { clear(); update(); }));
  part.tools.appendChild(button("Save as CSV", save));
  function clear() {
    bar = null;
    record = -1;
    word.value = from.value = to.value = "";
    which.selectedIndex = 0;
    if (group) group.selectedIndex = 0;
    order = { column: columns[0], down: true };
  }
  function chosen() { return which.selectedIndex > 0 ? attributes[which.selectedIndex - 1] : columns[0]; }
  function bound(e) {
    var text = e.value.trim().replace(",", "."), x = text === "" ? NaN : Number(text), bad = text !== "" && x !== x;
    e.setAttribute("aria-invalid", String(bad));
    return x;
  }

  // The records that are left, in order.
  var order = { column: columns[0], down: true }, left = new Uint32Array(0), mask = new Uint8Array(n);
  function update() {
    var low = bound(from), high = bound(to), column = chosen(), text = word.value.trim().toLowerCase();
    var only = group ? group.selectedIndex - 1 : -1, out = new Uint32Array(n), count = 0, k = noise.factor;
    mask.fill(0);
    for (var i = 0; i < n; i++) {
      if (record >= 0 && i !== record) continue;
      if (bar) {
        var eta = columns[0].at(i);
        if (!(eta >= bar[0] * (1 - 1e-12) && (bar[1] === Infinity || eta < bar[1] * (1 - 1e-12)))) continue;
      }
      if (only >= 0 && series[i] !== only) continue;
      if (text && ids[i].toLowerCase().indexOf(text) < 0) continue;
      if (low === low || high === high) {
        var x = k * column.at(i);
        if (x !== x || (low === low && x < low * (1 - 1e-12)) || (high === high && x > high * (1 + 1e-12))) continue;
      }
      mask[i] = 1;
      out[count++] = i;
    }
    left = out.subarray(0, count);
    var d = order.column ? order.column.data : null, sign = order.down ? -1 : 1;
    if (order.column) {
      left.sort(function (a, b) {
        // No number comes last.
        var x = d[a] === 65535 ? -sign * 1e9 : d[a], y = d[b] === 65535 ? -sign * 1e9 : d[b];
        return sign * (x - y) || a - b;
      });
    } else {
      var by = order.by === "group" ? function (i) { return series[i]; } : null, compare = new Intl.Collator(undefined, { numeric: true }).compare;
      left.sort(function (a, b) { return sign * (by ? by(a) - by(b) : compare(ids[a], ids[b])) || a - b; });
    }
    part.status.textContent = L.count(count) + " of " + L.count(n) + " records" + (store.rows > n ? " in the sample" : "") + ".";
    frame.scrollTop = 0;
    active = 0;
    heads();
    draw(true);
    rowsLeft(chip());
    document.dispatchEvent(new CustomEvent("filter"));
  }

  // The table.
  var body = make("tbody"), head = make("tr"), table = make("table", [make("thead", head), body]), frame = make("div", table, "scroll rows");
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Records");
  frame.style.height = HEIGHT + "px";
  part.table.appendChild(frame);
  function shown() {
    var c = chosen(), list = [columns[0]];
    if (c !== columns[0]) list.push(c);
    return list.concat(columns.slice(1, 4).filter(function (x) { return !x.of; }));
  }
  function heads() {
    head.textContent = "";
    var add = function (text, numeric, key) {
      var same = key.column ? key.column === order.column : key.by === order.by && !order.column;
      var th = make("th", button(text, function () {
        order = { column: key.column, by: key.by, down: same ? !order.down : !!key.column };
        update();
      }), numeric ? "num" : "");
      th.scope = "col";
      if (same) th.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      head.appendChild(th);
    };
    add(store.id, false, { by: "id" });
    if (series) add(store.by || "group", false, { by: "group" });
    shown().forEach(function (c) { add(c.of ? "η of " + c.name : c.name, true, { column: c }); });
    if (attributes.length) head.appendChild(make("th", "most exposed attribute"));
  }
  function most(i) {
    var best = null, x = -1;
    attributes.forEach(function (c) { var v = c.at(i); if (v > x) { x = v; best = c; } });
    return best;
  }
  function row(i, place) {
    var name = make("th", button(ids[i] || "–", function () { open(i); }));
    name.scope = "row";
    name.firstChild.className = "pick";
    name.firstChild.setAttribute("data-place", place);
    var cells = [name];
    if (series) cells.push(make("td", store.series[series[i]]));
    shown().forEach(function (c) { cells.push(make("td", write(c, i), "num")); });
    if (attributes.length) {
      var c = most(i);
      cells.push(make("td", c ? [c.name + " ", make("span", "η " + write(c, i), "say")] : ""));
    }
    var tr = make("tr", cells);
    tr.style.height = ROW + "px";
    return tr;
  }
  function gap(rows) {
    var tr = make("tr", make("td"));
    tr.style.height = rows * ROW + "px";
    tr.setAttribute("aria-hidden", "true");
    tr.className = "gap";
    tr.firstChild.colSpan = 99;
    return tr;
  }
  var first = -1;
  function draw(anew) {
    var start = Math.max(0, Math.floor(frame.scrollTop / ROW) - 8), end = Math.min(left.length, start + Math.ceil(HEIGHT / ROW) + 16);
    if (!anew && start === first) return;
    first = start;
    var focused = document.activeElement && document.activeElement.getAttribute("data-place");
    body.textContent = "";
    if (start) body.appendChild(gap(start));
    for (var p = start; p < end; p++) body.appendChild(row(left[p], p));
    if (end < left.length) body.appendChild(gap(left.length - end));
    stop();
    table.setAttribute("aria-rowcount", left.length + 1);
    if (focused !== null && !anew) focus(Number(focused));
  }
  // One stop of the tabulator for the whole table: the record that had it last, or the first in sight; arrows go on from there.
  var active = 0;
  function stop() {
    var top = Math.ceil(frame.scrollTop / ROW), at = Math.min(Math.max(active, top), top + Math.floor(HEIGHT / ROW) - 2, left.length - 1);
    all("[data-place]", body).forEach(function (e) { e.tabIndex = Number(e.getAttribute("data-place")) === at ? 0 : -1; });
  }
  function focus(place) {
    var e = body.querySelector("[data-place='" + place + "']");
    active = place;
    stop();
    if (e) e.focus({ preventScroll: true });
    return e;
  }
  frame.addEventListener("scroll", function () { draw(false); });
  frame.addEventListener("keydown", function (event) {
    var place = document.activeElement.getAttribute("data-place"), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (place === null || !step) return;
    event.preventDefault();
    var next = Math.min(left.length - 1, Math.max(0, Number(place) + step)), y = next * ROW;
    if (y < frame.scrollTop) frame.scrollTop = y;
    if (y + 2 * ROW > frame.scrollTop + HEIGHT) frame.scrollTop = y + 2 * ROW - HEIGHT;
    draw(false);
    focus(next);
  });

  // One record: what of each attribute, and which noise it would need.
  var current = -1;
  function open(i, quiet) {
    current = i;
    panel();
    part.panel.hidden = false;
    try { history.replaceState(null, "", "#record=" + encodeURIComponent(ids[i])); } catch (e) { /* a page in a frame has no address of its own */ }
    if (!quiet) part.panel.focus();
  }
  function fact(name, value) { return make("div", [make("dt", name), make("dd", value)]); }
  function panel() {
    var i = current, k = noise.factor, need = 0, certain = false;
    var facts = series ? [[store.by || "group", store.series[series[i]]]] : [];
    columns.filter(function (c) { return !c.of; }).forEach(function (c) { facts.push([c.name, write(c, i)]); });
    facts.push(["η against the median", store.median > 0 ? "×" + L.number(columns[0].at(i) / store.median) : "–"]);
    var rows = attributes.slice().sort(function (a, b) { return (b.at(i) || 0) - (a.at(i) || 0); }).map(function (c) {
      var eta = c.at(i), depth = c.of.depth === null || eta !== eta ? null : k * eta * c.of.depth;
      var name = make("th", c.name), unit = c.of.unit ? " " + c.of.unit : "";
      name.scope = "row";
      if (depth !== null) need = Math.max(need, depth / store.protect_depth);
      var error = c.of.error === null || !(eta > 0) ? "–" : "±" + L.atLeast(c.of.error / (k * eta)) + unit;
      var needed = depth === null || noise.sigma !== noise.sigma ? "–" : L.typed(noise.sigma * depth / store.protect_depth * (1 + 1e-6));
      return make("tr", [name, make("td", write(c, i), "num"), make("td", error, "num"),
        make("td", depth === null ? "–" : "about " + L.shareAtMost(L.normal(depth)), "num"), make("td", depth > 0 ? needed : "–", "num")]);
    });
    var titles = ["attribute", "η", "least error, right on average", "two typical values told apart", "σ that protects it, about"];
    var th = titles.map(function (t, j) { var e = make("th", t, j ? "num" : ""); e.scope = "col"; return e; });
    part.panel.textContent = "";
    part.panel.appendChild(make("h3", "Record " + ids[i]));
    part.panel.appendChild(make("dl", facts.map(function (f) { return fact(f[0], f[1]); }), "facts"));
    if (rows.length) {
      var scroll = make("div", make("table", [make("thead", make("tr", th)), make("tbody", rows)], "wrap"), "scroll");
      scroll.tabIndex = 0;
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", "What is known of this record");
      part.panel.appendChild(scroll);
    }
    part.panel.appendChild(make("p", "As η tells, which looks at small changes alone: estimates for this record, no bounds. What holds for every record at most stands in “Which values can be told apart”." +
      (need > 0 && noise.sigma === noise.sigma ? " For all its attributes it would need σ of about " + L.typed(noise.sigma * need * (1 + 1e-6)) + "." : ""), "say"));
    part.panel.appendChild(button("Close", function () {
      part.panel.hidden = true;
      current = -1;
      try { history.replaceState(null, "", "#records"); } catch (e) { /* as above */ }
      frame.focus();
    }));
  }
  part.panel.addEventListener("keydown", function (event) {
    if (event.key === "Escape") all("button", part.panel).pop().click();
  });
  function linked() {
    var m = /^#record=(.*)$/.exec(location.hash), id = "";
    if (!m) return;
    try { id = decodeURIComponent(m[1]); } catch (e) { return; }
    var i = ids.indexOf(id);
    if (i >= 0) { open(i, true); part.panel.scrollIntoView(); }
  }
  addEventListener("hashchange", linked);

  // What is shown, as a file. Cells that a spreadsheet would run are text.
  function field(t) {
    t = String(t);
    if (/^[=+\-@\t\r]/.test(t) && !/^-?[\d.]+(e[+-]?\d+)?$/i.test(t)) t = "'" + t;
    return /[",\n\r]/.test(t) ? "\"" + t.replace(/"/g, "\"\"") + "\"" : t;
  }
  L.csv = function () {
    var lines = [[store.id].concat(series ? [store.by || "group"] : [], columns.map(function (c) { return c.of ? "η of " + c.name : c.name; })).map(field).join(",")];
    left.forEach(function (i) {
      lines.push([ids[i]].concat(series ? [store.series[series[i]]] : [], columns.map(function (c) {
        var x = moved(c, c.at(i));
        return x === x ? Number(x.toPrecision(6)) : "";
      })).map(field).join(","));
    });
    return lines.join("\r\n") + "\r\n";
  };
  function save() {
    var link = document.createElement("a"), url = URL.createObjectURL(new Blob(["\ufeff" + L.csv()], { type: "text/csv" }));
    link.href = url;
    link.download = "records.csv";
    document.body.appendChild(link);
    link.click();
    link.remove();
    setTimeout(function () { URL.revokeObjectURL(url); }, 1000);
  }

  // From elsewhere on the page: a group, an attribute, a record by its name. Drawings are in pick.js.
  function textOf(cell) {
    return Array.prototype.filter.call(cell.childNodes, function (c) { return c.nodeType === 3 && c.data.trim(); })[0];
  }
  function named(cell) { var text = textOf(cell); return text ? text.data : ""; }
  function picks(cell, title, act) {
    var text = textOf(cell);
    if (!text) return;
    var b = button(text.data, act);
    b.className = "pick";
    b.title = title;
    cell.replaceChild(b, text);
  }
  if (group) {
    all("#who tbody th").forEach(function (th) {
      var at = store.series.indexOf(named(th));
      if (at >= 0) picks(th, "Show its records alone", function () { group.selectedIndex = at + 1; update(); });
    });
  }
  all("#attributes tbody th").forEach(function (th) {
    var name = named(th), at = attributes.map(function (c) { return c.name; }).indexOf(name);
    if (at >= 0) picks(th, "Sort records by it", function () { which.selectedIndex = at + 1; order = { column: attributes[at], down: true }; update(); });
  });

  // Records that are named in other tables: a name opens its record, and a row is shown where a filter leaves its record.
  var rows = all("#most tbody tr, #least tbody tr").map(function (tr) { return { tr: tr, id: named(tr.cells[0]), at: [] }; });
  var cells = rows.map(function (r) { return r.tr.cells[0]; }).concat(all("#tell tbody tr").map(function (tr) { return tr.cells[tr.cells.length - 1]; }));
  var places = new Map();
  cells.forEach(function (cell) { places.set(named(cell), []); });
  ids.forEach(function (id, i) { var known = places.get(id); if (known) known.push(i); });
  cells.forEach(function (cell) {
    var known = places.get(named(cell));
    if (known.length) picks(cell, "Show what is known of it", function () { open(known[0]); });
  });
  rows.forEach(function (r) { r.at = places.get(r.id); });
  function rowsLeft(filtered) {
    rows.forEach(function (r) {
      r.tr.classList.toggle("unpicked", filtered && r.at.length > 0 && !r.at.some(function (i) { return mask[i]; }));
    });
  }

  // What is filtered, each with its way out, at the foot of the window wherever the reader is.
  var chips = make("div", [], "chips");
  chips.setAttribute("role", "region");
  chips.setAttribute("aria-label", "Filter");
  chips.hidden = true;
  document.body.appendChild(chips);
  function filters() {
    var list = [], k = noise.factor;
    var add = function (text, undo) { list.push({ text: text, undo: undo }); };
    if (bar) add("η " + L.number(k * bar[0]) + (bar[1] === Infinity ? " and above" : " to " + L.number(k * bar[1])), function () { bar = null; });
    if (record >= 0) add("record " + ids[record], function () { record = -1; });
    if (group && group.selectedIndex > 0) add((store.by || "group") + " " + store.series[group.selectedIndex - 1], function () { group.selectedIndex = 0; });
    if (which.selectedIndex > 0) add("η of " + chosen().name, function () { which.selectedIndex = 0; order = { column: columns[0], down: true }; });
    var low = from.value.trim(), high = to.value.trim();
    if (low || high) {
      add((which.selectedIndex > 0 ? "its η" : "η") + (low ? " from " + low : "") + (high ? " to " + high : ""), function () { from.value = to.value = ""; });
    }
    if (word.value.trim()) add(store.id + " with “" + word.value.trim() + "”", function () { word.value = ""; });
    return list;
  }
  function chip() {
    var list = filters(), inside = chips.contains(document.activeElement);
    chips.textContent = "";
    chips.hidden = !list.length;
    if (list.length) chips.appendChild(make("span", "filter:"));
    list.forEach(function (f) {
      var b = button(f.text + " ", function () { f.undo(); update(); });
      b.className = "chip";
      b.appendChild(make("span", "×"));
      b.lastChild.setAttribute("aria-hidden", "true");
      b.setAttribute("aria-label", "Remove the filter: " + f.text);
      chips.appendChild(b);
    });
    if (list.length) {
      var see = make("a", L.count(left.length) + " of " + L.count(n) + " records");
      see.href = "#records";
      chips.appendChild(see);
    }
    // Who took one away with the keyboard goes on there.
    if (inside) (chips.querySelector("button") || frame).focus({ preventScroll: true });
    return list.length > 0;
  }

  [word, from, to].forEach(function (e) { e.addEventListener("input", update); });
  if (group) group.addEventListener("change", update);
  which.addEventListener("change", function () { order = { column: chosen(), down: true }; update(); });
  document.addEventListener("noise", function (event) {
    noise = event.detail;
    update();
    if (current >= 0) panel();
  });

  // For drawings: what there is, what is left of it, and how to choose.
  L.records = {
    n: n, all: store.rows === n, series: series, names: store.series,
    id: function (i) { return ids[i]; },
    column: function (name) { return columns.filter(function (c) { return !c.of && c.name === name; })[0]; },
    factor: function () { return noise.factor; },
    write: write,
    bar: function () { return bar; },
    is: function (i) { return mask[i] === 1; },
    left: function () { return left; },
    pickBar: function (low, high) { bar = bar && bar[0] === low && bar[1] === high ? null : [low, high]; update(); },
    pickRecord: function (i) { record = record === i ? -1 : i; if (record >= 0) open(i, true); update(); },
    filtered: function () { return filters().some(function (f) { return f.text.indexOf("η of ") !== 0; }); },
  };
  update();
  linked();
})(Leakscope);
