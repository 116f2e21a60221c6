// The list of sections: at the side where there is room, folded elsewhere, with a mark at the one that is read.
(function () {
  "use strict";
  var nav = document.querySelector(".contents");
  if (!nav || !window.matchMedia) return;
  var details = nav.querySelector("details"), wide = matchMedia("(min-width: 1280px)"), links = Array.prototype.slice.call(nav.querySelectorAll("a"));
  var sections = links.map(function (a) { return document.getElementById(a.getAttribute("href").slice(1)); });
  function fit() { details.open = wide.matches; }
  wide.addEventListener("change", fit);
  fit();
  links.forEach(function (a, i) {
    a.parentNode.hidden = !sections[i] || sections[i].hidden;
    a.addEventListener("click", function () { if (!wide.matches) details.open = false; });
  });
  if (!window.IntersectionObserver) return;
  var seen = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (!entry.isIntersecting) return;
      links.forEach(function (a, i) { if (sections[i] === entry.target) a.setAttribute("aria-current", "location"); else a.removeAttribute("aria-current"); });
    });
  }, { rootMargin: "-15% 0px -75% 0px" });
  sections.forEach(function (s) { if (s) seen.observe(s); });
})();
