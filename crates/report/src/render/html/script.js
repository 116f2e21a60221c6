// Nothing here is needed to read the page: it adds hover texts, sorting, filters and a print button.
(function () {
  "use strict";
  var all = function (selector, root) { return Array.prototype.slice.call((root || document).querySelectorAll(selector)); };

  all(".print").forEach(function (print) {
    print.hidden = false;
    print.addEventListener("click", function () { window.print(); });
  });

  // Hover: the browser's own <title> is slow and small, so its text moves into a label of ours.
  var tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("aria-hidden", "true");
  document.body.appendChild(tip);
  function show(text, event) {
    tip.textContent = text;
    tip.className = "on";
    var box = tip.getBoundingClientRect();
    var x = event.clientX + 14, y = event.clientY + 16;
    if (x + box.width > innerWidth - 8) x = Math.max(8, event.clientX - box.width - 12);
    if (y + box.height > innerHeight - 8) y = event.clientY - box.height - 12;
    tip.style.left = x + "px";
    tip.style.top = y + "px";
  }
  function hide() { tip.className = ""; }
  all(".chart").forEach(function (chart) {
    all("title", chart).forEach(function (title) {
      title.parentNode.setAttribute("data-tip", title.textContent);
      title.remove();
    });
    chart.addEventListener("pointermove", function (event) {
      var text = event.target.getAttribute && event.target.getAttribute("data-tip");
      if (text) show(text, event); else hide();
    });
    chart.addEventListener("pointerleave", hide);
  });

  // Sorting: a click, Enter or Space on a column's heading; numbers by data-v, words as words.
  var compare = new Intl.Collator(undefined, { numeric: true }).compare;
  function value(row, i) {
    var cell = row.cells[i], v = cell && cell.getAttribute("data-v");
    return v === null || v === undefined ? (cell ? cell.textContent.trim() : "") : Number(v);
  }
  all("table.sortable").forEach(function (table) {
    all("thead th", table).forEach(function (head, i) {
      if (!head.textContent.trim() || head.querySelector(".heard")) return;
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        var body = table.tBodies[0], rows = all("tr", body);
        var was = head.getAttribute("aria-sort");
        var numeric = rows.some(function (r) { return typeof value(r, i) === "number"; });
        var down = was ? was === "ascending" : numeric;
        rows.sort(function (a, b) {
          var x = value(a, i), y = value(b, i);
          var mixed = typeof x !== typeof y;
          if (mixed) return typeof x === "number" ? -1 : 1;
          var order = typeof x === "number" ? (x === y ? 0 : x < y ? -1 : 1) : compare(x, y);
          return down ? -order : order;
        });
        all("thead th", table).forEach(function (h) { h.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        rows.forEach(function (r) { body.appendChild(r); });
        table.dispatchEvent(new Event("sorted"));
      });
    });
  });

  // Tables of more than fifty rows fold: the rest comes at a button, with a search, and on paper.
  all("table").forEach(function (table) {
    var body = table.tBodies[0], most = 50;
    if (!body || body.rows.length <= most) return;
    var frame = table.closest(".scroll") || table, button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    function fold() {
      all("tr", body).forEach(function (row, i) { row.classList.toggle("folded", i >= most); });
      var open = table.classList.contains("unfolded");
      button.textContent = open ? "Show the first " + most + " rows" : "Show all " + body.rows.length + " rows";
      button.setAttribute("aria-expanded", String(open));
    }
    button.addEventListener("click", function () { table.classList.toggle("unfolded"); fold(); });
    table.addEventListener("sorted", fold);
    frame.parentNode.insertBefore(button, frame.nextSibling);
    fold();
  });

  // A search box that tells how much it found.
  function search(label, placeholder, filter) {
    var tools = document.createElement("div"), input = document.createElement("input"), status = document.createElement("span");
    tools.className = "tools";
    input.type = "search";
    input.placeholder = placeholder;
    input.setAttribute("aria-label", "Filter: " + label);
    status.setAttribute("role", "status");
    tools.appendChild(input);
    tools.appendChild(status);
    input.addEventListener("input", function () {
      var wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      var hits = filter(function (text) {
        text = text.toLowerCase();
        return wanted.every(function (word) { return text.indexOf(word) >= 0; });
      });
      status.textContent = wanted.length ? hits : "";
    });
    return tools;
  }

  // Filter: rows that contain every word.
  all("table.filterable").forEach(function (table) {
    var rows = all("tbody tr", table), frame = table.parentNode;
    if (rows.length < 8) return;
    var box = search(frame.getAttribute("aria-label") || "", "Filter " + rows.length + " rows", function (matches) {
      var left = 0;
      table.classList.toggle("searching", !matches(""));
      rows.forEach(function (row) {
        row.hidden = !matches(row.textContent);
        if (!row.hidden) left += 1;
      });
      return left + " of " + rows.length;
    });
    frame.parentNode.insertBefore(box, frame);
  });

  // What a long table leaves out stands below it as lines of text: the same filter for them.
  all("details.rest").forEach(function (details) {
    var pre = details.querySelector("pre");
    if (!pre) return;
    var label = details.getAttribute("data-label") || "", lines = pre.textContent.split("\n").filter(Boolean).map(function (text) {
      var line = document.createElement("span");
      line.textContent = text;
      return line;
    });
    // A line each, once somebody looks: thousands of them would hold up the page.
    details.addEventListener("toggle", function () {
      if (pre.children.length) return;
      pre.textContent = "";
      lines.forEach(function (line) { pre.appendChild(line); });
    });
    var box = search(label, "Filter " + lines.length + " more", function (matches) {
      var left = 0;
      lines.forEach(function (line) {
        line.hidden = !matches(line.textContent);
        if (!line.hidden) left += 1;
      });
      return left + " of " + lines.length;
    });
    details.insertBefore(box, pre);
  });
})();
