// What if the noise had another shape: what the document holds of each, and the verdict by the same rules.
(function (L) {
  "use strict";
  var card = document.getElementById("what-if"), shapes = L.data.shapes;
  if (!card || !shapes) return;
  var CLASSES = ["good", "care", "bad"], part = {}, own = 0;
  Array.prototype.forEach.call(card.querySelectorAll("[data-shape]"), function (e) { part[e.getAttribute("data-shape")] = e; });
  shapes.offered.forEach(function (s, i) {
    var option = document.createElement("option");
    option.textContent = s.name + (s.audited ? " (as audited)" : "");
    part.choice.appendChild(option);
    if (s.audited) own = i;
  });
  var verdict = document.querySelector("section.verdict"), remark = document.createElement("p");
  remark.className = "say asaudited";
  remark.hidden = true;
  verdict.appendChild(remark);
  // The numbers under the verdict are those of the audit whatever is chosen: they say so, and are greyed.
  var tiles = document.querySelector(".tiles"), below = document.createElement("p");
  below.className = "say asaudited";
  below.hidden = true;
  if (tiles) tiles.parentNode.insertBefore(below, tiles);
  function show() {
    var s = shapes.offered[part.choice.selectedIndex], sentence;
    part.reset.disabled = s.audited;
    document.body.classList.toggle("moved", !s.audited);
    document.body.classList.toggle("reshaped", !s.audited);
    remark.hidden = below.hidden = s.audited;
    below.textContent = "As audited, with noise of " + shapes.offered[own].name + " shape: the numbers and drawings from here on do not follow the shape chosen.";
    remark.textContent = "Of the noise as audited, of " + shapes.offered[own].name + " shape: what is known of " + s.name + " noise stands under “What if”.";
    part.outcome.className = "outcome";
    if (s.audited) sentence = "As audited: " + verdict.querySelector(".level").textContent + ". " + s.says;
    else {
      var decision = L.decide(shapes.rules, s.facts);
      sentence = (s.facts.over_limit ? "Over the limit" : shapes.headlines[decision.colour]) + ": " + decision.grounds.map(function (g) { return g.fact + " " + g.shown + "; "; }).join("") +
        "how often values are told apart was computed for the shape of the audit alone. " + s.says;
      part.outcome.className = "outcome dot-" + CLASSES[decision.colour];
    }
    part.outcome.textContent = sentence;
    part.command.parentNode.hidden = !s.command;
    L.words(part.command, s.command);
  }
  part.choice.addEventListener("change", show);
  part.reset.addEventListener("click", function () { part.choice.selectedIndex = own; show(); part.choice.focus(); });
  L.copies(part.copy, part.command);
  addEventListener("beforeprint", function () { part.choice.selectedIndex = own; show(); });
  part.choice.selectedIndex = own;
  show();
})(Leakscope);
