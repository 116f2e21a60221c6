// Nothing here is needed to read the page: it adds hover texts, sorting, filters and a print button.
(function () {
  "use strict";
  var all = function (selector, root) { return Array.prototype.slice.call((root || document).querySelectorAll(selector)); };

  var print = document.querySelector(".print");
  print.hidden = false;
  print.addEventListener("click", function () { window.print(); });

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
      if (!head.textContent.trim()) return;
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
      });
    });
  });

  // Filter: rows that contain every word.
  all("table.filterable").forEach(function (table) {
    var rows = all("tbody tr", table);
    if (rows.length < 8) return;
    var tools = document.createElement("div"), input = document.createElement("input"), said = document.createElement("span");
    tools.className = "tools";
    input.type = "search";
    input.placeholder = "Filter " + rows.length + " rows";
    input.setAttribute("aria-label", "Filter: " + table.parentNode.getAttribute("aria-label"));
    said.setAttribute("role", "status");
    tools.appendChild(input);
    tools.appendChild(said);
    table.parentNode.parentNode.insertBefore(tools, table.parentNode);
    input.addEventListener("input", function () {
      var asked = input.value.toLowerCase().split(/\s+/).filter(Boolean), left = 0;
      rows.forEach(function (row) {
        var text = row.textContent.toLowerCase();
        row.hidden = !asked.every(function (word) { return text.indexOf(word) >= 0; });
        if (!row.hidden) left += 1;
      });
      said.textContent = asked.length ? left + " of " + rows.length : "";
    });
  });
})();
