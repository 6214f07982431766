"use strict";
(function () {
  var root = document.documentElement;

  var theme = document.querySelector("button.theme");
  function dark() {
    return root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  function nameTheme() { theme.textContent = dark() ? "Light" : "Dark"; }
  theme.hidden = false;
  nameTheme();
  theme.addEventListener("click", function () {
    root.dataset.theme = dark() ? "light" : "dark";
    nameTheme();
  });

  function keyOf(cell) {
    var value = cell.dataset.value;
    var text = cell.textContent.trim();
    if (value === undefined && !cell.classList.contains("r")) return text.toLowerCase();
    if (value === undefined) value = text.replace(/[,<\s]/g, "").replace("\u2212", "-");
    return isNaN(parseFloat(value)) ? null : parseFloat(value);
  }
  function compare(a, b, direction) {
    if (a === null || b === null) return (a === null) - (b === null);
    return (a < b ? -1 : a > b ? 1 : 0) * direction;
  }
  document.querySelectorAll("table.sortable thead th").forEach(function (head) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    while (head.firstChild) button.appendChild(head.firstChild);
    head.appendChild(button);
    button.addEventListener("click", function () {
      var direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      head.parentNode.querySelectorAll("th").forEach(function (other) {
        other.removeAttribute("aria-sort");
      });
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      var place = Array.prototype.indexOf.call(head.parentNode.children, head);
      var body = head.closest("table").tBodies[0];
      Array.from(body.rows)
        .map(function (row, order) { return [keyOf(row.cells[place]), order, row]; })
        .sort(function (a, b) { return compare(a[0], b[0], direction) || a[1] - b[1]; })
        .forEach(function (entry) { body.appendChild(entry[2]); });
    });
  });

  // beside its value in a narrow window, where a row stands as lines
  document.querySelectorAll("table.stacked").forEach(function (table) {
    var names = Array.from(table.tHead.rows[0].cells, function (head) { return head.textContent; });
    Array.from(table.tBodies[0].rows).forEach(function (row) {
      Array.from(row.cells).forEach(function (cell, place) {
        cell.dataset.column = names[place];
      });
    });
  });

  function findable(row) {
    return (row.textContent + " " + (row.dataset.name || "")).toLowerCase();
  }
  document.querySelectorAll(".find").forEach(function (box) {
    var input = box.querySelector("input");
    var said = box.querySelector("[role=status]");
    var table = document.getElementById(input.dataset.table);
    box.hidden = false;
    input.addEventListener("input", function () {
      var words = input.value.trim().toLowerCase();
      var shown = 0;
      Array.from(table.tBodies[0].rows).forEach(function (row) {
        row.hidden = words !== "" && findable(row).indexOf(words) < 0;
        if (!row.hidden) shown += 1;
      });
      said.textContent = shown + " of " + table.tBodies[0].rows.length + " rows";
    });
  });

  function decoded(text) {
    try { return decodeURIComponent(text); } catch (error) { return text; }
  }
  function follow() {
    var parts = location.hash.slice(1).split("&run=").map(decoded);
    if (!parts[0]) return;
    var target = document.getElementById(parts[0]);
    if (parts[0].indexOf("dialogue=") === 0) {
      var name = parts[0].slice("dialogue=".length);
      target = Array.from(document.querySelectorAll("details.dialogue")).find(function (one) {
        return one.dataset.dialogue === name && (parts.length < 2 || one.dataset.run === parts[1]);
      });
    }
    if (!target) return;
    for (var up = target; up; up = up.parentElement) {
      if (up.tagName === "DETAILS") up.open = true;
    }
    target.scrollIntoView();
    var first = target.querySelector("summary") || target;
    if (first.tabIndex < 0) first.tabIndex = -1;
    first.focus({ preventScroll: true });
  }
  addEventListener("hashchange", follow);
  follow();
})();
