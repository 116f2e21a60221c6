// What if: the dials move every number that follows the noise. What cannot be recomputed is greyed; paper shows what was audited.
(function (L) {
  "use strict";
  // A line breaks between words and nowhere else.
  L.words = function (e, line) {
    e.textContent = "";
    line.split(" ").forEach(function (word, i) {
      if (i) e.appendChild(document.createTextNode(" "));
      e.appendChild(document.createElement("span")).textContent = word;
    });
  };
  L.copies = function (button, code) {
    button.addEventListener("click", function () {
      var done = function (ok) {
        button.textContent = ok ? "Copied" : "Press Ctrl+C";
        setTimeout(function () { button.textContent = "Copy the command"; }, 2000);
      };
      var range = document.createRange(), selection = getSelection();
      range.selectNodeContents(code);
      selection.removeAllRanges();
      selection.addRange(range);
      var ok = false;
      try { ok = document.execCommand("copy"); } catch (e) { ok = false; }
      if (ok || !navigator.clipboard) return done(ok);
      navigator.clipboard.writeText(code.textContent).then(function () { done(true); }, function () { done(false); });
    });
  };
  var card = document.getElementById("what-if");
  if (!card) return;
  card.hidden = false;
  var model = L.data.moving;
  if (!model) return;
  var all = function (selector) { return Array.prototype.slice.call(document.querySelectorAll(selector)); };
  var dial = {};
  all("[data-dial]").forEach(function (e) { dial[e.getAttribute("data-dial")] = e; });
  var CLASSES = ["good", "care", "bad"];
  // Cards that stand as audited.
  var KEPT = ["secret", "shape"];
  var sigma = model.sigma, releases = model.releases, moved = false;

  function text(e, t) { e.textContent = t; return e; }
  function make(name, content, className) {
    var e = document.createElement(name);
    if (className) e.className = className;
    (Array.isArray(content) ? content : [content]).forEach(function (c) {
      e.appendChild(typeof c === "string" ? document.createTextNode(c) : c);
    });
    return e;
  }
  function strong(t) { return make("b", t); }

  // Each number that follows, with how it is written at a factor.
  function metric(at) {
    if (!model.utility) return null;
    var v = L.metric(model.utility, at);
    return v === null ? null : model.utility.share ? L.share(v) : L.number(v);
  }
  // How many times η at a noise that stays, and the noise that a goal needs.
  function released() { return Math.sqrt(releases / model.releases); }
  function coefficient(x, e) {
    var of = function (n) { return Number(e.getAttribute("data-" + n)); }, estimate = of("e");
    var error = Math.hypot(of("s"), x * sigma / model.sigma), half = of("z") * error;
    return { error: error, low: estimate - half, high: estimate + half, chance: error > 0 ? 2 * L.normal(-Math.abs(estimate / error)) : 1 };
  }
  var write = {
    eta: function (x, k) { return L.number(k * x); },
    square: function (x, k) { return L.number(k * k * x); },
    error: function (x, k) { return L.atLeast(x / k); },
    error2: function (x, k) { return L.atLeast(x / (k * k)); },
    told: function (x, k) { return L.shareAtMost(L.twoValues(k * x)); },
    open: function (x, k, e) {
      var m = e.getAttribute("data-most"), w = m === "" ? (k <= 1 ? Number(e.getAttribute("data-worst")) : 1) : L.twoValues(k * Number(m));
      return w > model.protect_at ? L.shareAtLeast(L.normal(0.5 * k * x)) + " or more" : L.shareAtMost(w);
    },
    held: function (x, k) { return L.shareAtMost(k <= 1 ? x : 1); },
    among: function (x, k, e) {
      return L.shareAtMost(L.anyLevel([Number(e.getAttribute("data-m")), Number(e.getAttribute("data-q"))], k * x));
    },
    prior: function (x, k, e) {
      var p = Number(e.getAttribute("data-p"));
      return L.number(1 / Math.sqrt(k * k * Math.max(0, 1 / (x * x) - 1 / (p * p)) + 1 / (p * p)));
    },
    utility: function () { var m = metric(sigma); return m === null ? "off the curve" : "≈ " + m; },
    goal: function (x) { return L.atMost(released() * x); },
    goalmetric: function (x) { var m = metric(released() * x); return m === null ? "off the curve" : "≈ " + m; },
    released: function (x) { return L.number(released() * x); },
    times: function () {
      return "released " + (releases === 1 ? "once" : releases === 2 ? "twice" : releases + " times") + " with noise σ = " + L.setting(sigma);
    },
    noise: function (x) { return L.number(x * sigma / model.sigma); },
    both: function (x, k, e) { return L.number(coefficient(x, e).error); },
    interval: function (x, k, e) { var c = coefficient(x, e); return L.number(c.low) + " to " + L.number(c.high); },
    chance: function (x, k, e) { return L.number(coefficient(x, e).chance); },
    sigma: function () { return L.setting(sigma); },
  };
  var following = all("[data-w]").map(function (e) {
    return { e: e, kind: e.getAttribute("data-w"), x: Number(e.getAttribute("data-x")), stated: e.textContent, hidden: e.hidden };
  });
  function follow(k) {
    following.forEach(function (f) {
      if (f.kind === "flag") f.e.hidden = !(L.normal(k * f.x) > model.told_at);
      else text(f.e, write[f.kind](f.x, k, f.e));
    });
  }

  // The verdict, beside the one of the audit.
  var stated = document.querySelector("section.verdict"), live = null;
  function grounds(decision) {
    var head = make("tr", ["what", "here", "green", "red", "so"].map(function (t, i) {
      var th = make("th", t, i > 0 && i < 4 ? "num" : "");
      th.scope = "col";
      return th;
    }));
    var all = decision.grounds.concat(decision.open), worst = all.filter(function (g) { return g.colour === decision.colour; }).reduce(function (a, b) { return b.share && (!a.share || b.value >= a.value) ? b : a; });
    var rows = all.map(function (g) {
      var name = make("th", [g.fact, document.createElement("br"), make("span", g.reason, "say")]);
      name.scope = "row";
      var so = make("span", model.colours[g.colour], "dot-" + CLASSES[g.colour]);
      return make("tr", [name, make("td", g.shown, "num"), make("td", g.green, "num"), make("td", g.red, "num"), make("td", so)]);
    });
    var table = make("table", [make("thead", head), make("tbody", rows)], "wrap");
    var frame = make("div", table, "scroll");
    var equal = all.filter(function (g) { return g === worst || (worst.share && g.share && g.colour === worst.colour && g.shown === worst.shown); });
    var facts = equal.map(function (g) { return g.fact; }).join(", and ");
    return make("details", [make("summary", "What decides this colour: " + facts + (worst.shown === "yes" ? "" : ": " + worst.shown)), frame,
      make("p", "The worst line decides. A page is never calmer than a number on it.", "say")], "grounds");
  }
  function exposed(k, facts) {
    var worst = null;
    var known = function (t) { return t.least !== null && t.worst > model.protect_at ? t.least : t.worst; };
    model.told.forEach(function (pair) {
      var t = L.told(pair, k);
      if (!worst || known(t) > known(worst.t)) worst = { pair: pair, t: t };
    });
    if (worst && known(worst.t) !== worst.t.worst) {
      return make("p", ["Somebody who knows everything else tells ", strong(worst.pair.name + " " + worst.pair.values), " rightly in ",
        strong(L.shareAtLeast(worst.t.least) + " or more"), " of cases for some record: refits left open how often; a coin toss is right in 50%."]);
    }
    if (worst) {
      return make("p", ["Somebody who knows everything else tells ", strong(worst.pair.name + " " + worst.pair.values),
        " rightly in at most ", strong(L.shareAtMost(worst.t.worst)), " of cases for record " + worst.pair.record + ", and in at most " +
        L.shareAtMost(worst.t.median) + " for the median record; a coin toss is right in 50%."]);
    }
    var p = Math.max(facts.estimated === null ? 0.5 : facts.estimated, facts.label_estimated === null ? 0.5 : facts.label_estimated);
    return make("p", ["Somebody who knows everything else about the most exposed record tells two typical values of ",
      strong(model.estimated_of || "it"), " apart in about ", strong(L.shareAtMost(p)), " of cases (a coin toss: 50%)."]);
  }
  function cost() {
    if (!model.utility) return "What this noise costs was not measured (it needs held-out rows).";
    var u = model.utility, m = metric(sigma), without = u.share ? L.share(u.without_noise) : L.number(u.without_noise);
    if (m === null) return "What this noise costs is beyond the curve that was measured.";
    var v = L.metric(u, sigma), useless = u.higher_is_better ? v <= u.constant_model : v >= u.constant_model;
    return (useless ? "It leaves nothing of the model: " : "With this noise ") + u.metric + " is about " + m + ", " + without + " without noise.";
  }
  function name(decision, facts) { return facts.over_limit ? "Over the limit" : model.shown ? "Not protected, and no noise would" : model.headlines[decision.colour]; }
  function judge(k) {
    var facts = L.facts(model, sigma, releases), decision = L.decide(model.rules, facts);
    var open = live && live.querySelector("details") && live.querySelector("details").open;
    if (live) live.remove();
    live = make("section", [make("p", name(decision, facts), "level")], "verdict " + CLASSES[decision.colour]);
    live.setAttribute("aria-label", "Verdict at the noise chosen");
    var over = model.limits.filter(function (l) { return !(k * l.value <= l.limit); });
    if (over.length) {
      live.appendChild(make("p", strong(over.map(function (l) {
        return l.name.charAt(0).toUpperCase() + l.name.slice(1) + " is " + L.number(k * l.value) + ", above the limit of " + L.setting(l.limit);
      }).join(", and ") + ".")));
    }
    live.appendChild(exposed(k, facts));
    live.appendChild(make("p", cost()));
    live.appendChild(make("p", [strong("σ = " + L.setting(sigma) + (releases > 1 ? ", released " + L.count(releases) + " times" : "")),
      ", computed from the audit at σ = " + L.setting(model.sigma) + " and not run" + (model.unfinished ? "; what the audit left open stays open" : "") + "."]));
    live.appendChild(grounds(decision));
    live.querySelector("details").open = !!open;
    stated.parentNode.insertBefore(live, stated);
    stated.hidden = true;
    text(dial.outcome, name(decision, facts) + ": η ×" + L.number(k) + (decision.grounds.length ? ", " + decision.grounds.map(function (g) {
      return g.fact + " " + g.shown;
    }).join(", ") : "") + ".");
    dial.outcome.className = "outcome dot-" + CLASSES[decision.colour];
  }

  // Limits, with their signs.
  var limits = document.querySelector("ul.limits"), statedLimits = limits && limits.cloneNode(true);
  function limit(k) {
    if (!limits) return;
    limits.textContent = "";
    model.limits.forEach(function (l) {
      var ok = k * l.value <= l.limit, sign = make("span", ok ? "✓" : "✗");
      sign.setAttribute("aria-hidden", "true");
      limits.appendChild(make("li", [sign, " " + l.name + " is " + L.number(k * l.value) + ", " + (ok ? "within" : "above") +
        " the limit of " + L.setting(l.limit)], ok ? "ok" : "over"));
    });
  }

  // Remarks in cards that do not move.
  var remarks = [];
  function remark(ids, say) {
    ids.forEach(function (id) {
      var section = document.getElementById(id);
      if (!section) return;
      var p = make("p", "", "say asaudited");
      p.hidden = true;
      section.insertBefore(p, section.firstElementChild.nextSibling);
      remarks.push({ p: p, say: say });
    });
  }
  // A secret has its curve: at another noise it is guessed as at the nearest on it that is no larger.
  remark(["secret"], function () {
    var facts = L.facts(model, sigma, releases), parts = [];
    if (facts.bounded) parts.push("nobody who goes by the model alone guesses it in more than " + L.shareAtMost(facts.bounded.success) + " of cases for any record");
    if (facts.observed) parts.push("the strongest attack that was played guesses " + L.shareAtMost(facts.observed.success) + " right or fewer");
    return (parts.length ? "At σ = " + L.setting(sigma) + (releases > 1 ? ", released " + L.count(releases) + " times, " : ", ") + parts.join("; ") + ", by the nearest noise that was computed and is no larger. " : "") +
      "The rest of this card is as audited, at σ = " + L.setting(model.sigma) + ".";
  });
  remark(["shape"], function () { return "As audited, at σ = " + L.setting(model.sigma) + ": not recomputed for the noise chosen above."; });
  remark(["warnings"], function () { return "Of the audit, at σ = " + L.setting(model.sigma) + "."; });

  function command() {
    var c = model.command;
    dial.command.parentNode.hidden = !c.start;
    if (!c.start) return;
    L.words(dial.command, c.start + " --sigma " + L.typed(sigma) + " --out release");
    text(dial.remark, "A release adds noise in public units, where the same σ is another noise, so what this page says does not hold for it: " +
      "the release is judged by itself, by its own page. Where that is not green, keep it to yourself, withdraw it, and take the σ that it names." +
      (c.whole ? "" : " Add the options that the table was read with.") +
      (releases > 1 ? " Each of the " + L.count(releases) + " releases is one run of it; its ledger counts them together." : ""));
  }

  function position(s) { return Math.round(600 * Math.log(s / model.low) / Math.log(model.high / model.low)); }
  function show(except) {
    var k = L.factor(model, sigma, releases);
    moved = !(sigma === model.sigma && releases === model.releases);
    document.body.classList.toggle("moved", moved);
    if (except !== "range") dial.range.value = position(sigma);
    if (except !== "sigma") dial.sigma.value = L.typed(sigma);
    if (except !== "releases") dial.releases.value = releases;
    if (except !== "goal") dial.goal.selectedIndex = 0;
    dial.range.setAttribute("aria-valuetext", "σ = " + L.setting(sigma));
    dial.reset.disabled = !moved;
    command();
    remarks.forEach(function (r) { r.p.hidden = !moved; if (moved) text(r.p, r.say(k)); });
    KEPT.forEach(function (id) { var e = document.getElementById(id); if (e) e.classList.toggle("kept", moved); });
    if (moved) { follow(k); redraw(k); judge(k); limit(k); } else restore();
    document.dispatchEvent(new CustomEvent("noise", { detail: { factor: k, sigma: sigma, releases: releases } }));
  }
  function redraw(k) {
    L.redraw({
      factor: k, released: released(), sigma: sigma, seen: sigma * Math.sqrt(model.releases / releases),
      value: model.utility ? L.metric(model.utility, sigma) : null,
      write: function (kind, x) { return write[kind](x, k); },
    });
  }
  function restore() {
    L.restore();
    following.forEach(function (f) { if (f.kind === "flag") f.e.hidden = f.hidden; else text(f.e, f.stated); });
    if (live) { live.remove(); live = null; }
    stated.hidden = false;
    if (limits) limits.innerHTML = statedLimits.innerHTML;
    text(dial.outcome, "As audited: " + stated.querySelector(".level").textContent + ".");
    dial.outcome.className = "outcome";
  }
  function choose(s, r, except) {
    if (!(s > 0) || !isFinite(s) || !(r >= 1) || r !== Math.floor(r) || r > 1e6) return false;
    sigma = s;
    releases = r;
    show(except);
    return true;
  }

  dial.range.addEventListener("input", function () {
    var s = model.low * Math.pow(model.high / model.low, dial.range.value / 600);
    choose(Number(dial.range.value) === position(model.sigma) ? model.sigma : Number(L.typed(s)), releases, "range");
  });
  dial.sigma.addEventListener("input", function () {
    dial.sigma.setAttribute("aria-invalid", String(!choose(Number(dial.sigma.value.replace(",", ".")), releases, "sigma")));
  });
  dial.releases.addEventListener("input", function () {
    dial.releases.setAttribute("aria-invalid", String(!choose(sigma, Number(dial.releases.value), "releases")));
  });
  dial.goal.appendChild(make("option", "choose…"));
  model.goals.forEach(function (g) { dial.goal.appendChild(make("option", g[0])); });
  dial.goal.addEventListener("change", function () {
    var g = model.goals[dial.goal.selectedIndex - 1];
    // Rounded up: what is chosen reaches it. Goals are for the releases of the audit.
    if (g) choose(g[1] === model.sigma && releases === model.releases ? g[1] : Number(L.typed(g[1] * Math.sqrt(releases / model.releases))), releases, "goal");
  });
  dial.reset.addEventListener("click", function () { choose(model.sigma, model.releases); dial.range.focus(); });
  L.copies(dial.copy, dial.command);

  // On paper stands what was audited.
  var kept = null;
  addEventListener("beforeprint", function () { if (moved) { kept = [sigma, releases]; choose(model.sigma, model.releases); } });
  addEventListener("afterprint", function () { if (kept) { choose(kept[0], kept[1]); kept = null; } });
  L.noise = function () { return { factor: L.factor(model, sigma, releases), sigma: sigma, releases: releases, protectAt: model.protect_at }; };
  show();
})(Leakscope);
