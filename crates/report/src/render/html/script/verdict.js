// The verdict on an audit at another noise: the rules are those of Rust, and come with the page as a table.
(function (L) {
  "use strict";
  var GREEN = 0, AMBER = 1, RED = 2;

  // A share of right guesses on the scale of two possibilities that were equally likely.
  function onScale(s) {
    var left = 1 - s.baseline;
    if (left <= 0) return 0.5;
    var gain = (s.success - s.baseline) / left;
    return 0.5 + 0.5 * (gain > 1 ? 1 : gain < 0 ? 0 : gain);
  }

  // How many times the odds of a right guess grow.
  function odds(s) {
    if (s.success <= s.baseline) return 1;
    if (s.baseline > 0 && s.success < 1) return s.success / (1 - s.success) / (s.baseline / (1 - s.baseline));
    return s.success !== s.success ? NaN : Infinity;
  }

  function valueOf(rule, facts) {
    var v = facts[rule.quantity === "odds" ? "bounded" : rule.quantity];
    if (v === null || v === undefined) return null;
    if (rule.quantity === "odds") return odds(v);
    if (rule.quantity === "bounded" || rule.quantity === "observed") v = onScale(v);
    if (rule.quantity === "membership") v = 0.5 + 0.5 * v;
    var m = facts.membership;
    if (rule.capped && v === v && typeof m === "number" && isFinite(m)) v = Math.min(v, Math.min(1, 0.5 + m));
    return v;
  }

  // The colour of a page from its facts: the worst number decides, and green needs one that covers every attacker.
  L.decide = function (rules, facts) {
    var covered = false, colour = -1, grounds = [];
    rules.forEach(function (rule) {
      var value = valueOf(rule, facts);
      if (value === null) return;
      covered = covered || rule.covers;
      var calm = rule.calm === "protect_at" ? Math.min(rule.alarm, Math.max(0.5, facts.protect_at)) : rule.calm.up_to;
      var own = value !== value || value > rule.alarm ? RED : value <= calm ? GREEN : AMBER;
      var write = rule.share ? L.shareAtMost : L.atMost;
      colour = Math.max(colour, own);
      grounds.push({
        fact: rule.fact, reason: rule.reason, value: value, share: rule.share, shown: write(value), colour: own,
        green: "up to " + write(calm) + (rule.covers ? "" : ", not alone"), red: "above " + write(rule.alarm),
      });
    });
    var open = [];
    function circumstance(holds, fact, reason, own) {
      if (holds) open.push({ fact: fact, reason: reason, shown: "yes", green: "without any", red: own === RED ? "with any" : "", colour: own });
    }
    circumstance(facts.noise === "unit", "no noise that was chosen", "Numbers are per unit of noise.", AMBER);
    circumstance(facts.noise === "absent", "no noise", "Whoever knows all other records computes the last one from the model.", RED);
    circumstance(facts.over_limit, "a limit that is passed", "Numbers on this page are above what was set.", RED);
    circumstance(facts.unfinished, "what was left open", "The page says what was not tried, not settled or not counted.", AMBER);
    circumstance(!covered && !open.length, "no number that covers every attacker", "What is estimated or observed can warn, and calms nobody.", AMBER);
    open.forEach(function (o) { colour = Math.max(colour, o.colour); });
    return { colour: colour < 0 ? AMBER : colour, grounds: grounds, open: open };
  };

  // Two values, and all levels, a distance apart: the probability of naming the right one, at most.
  L.twoValues = function (distance) { return L.most(L.normal(0.5 * distance)); };
  L.anyLevel = function (levels, distance) {
    return L.most(L.normal(levels[1] + distance * Math.sqrt((levels[0] - 1) / (2 * levels[0]))));
  };

  // How many times η grows.
  L.factor = function (model, sigma, releases) { return model.sigma / sigma * Math.sqrt(releases / model.releases); };

  // What is told of a pair of values; without a distance it holds where there is more noise, and is certain where less.
  L.told = function (pair, k) {
    var open = pair.distance !== null, d = open ? k * pair.distance : 0;
    var held = function (p) { return k <= 1 ? p : 1; };
    var worst = open ? L.twoValues(d) : held(pair.worst);
    var among = pair.levels === null ? null : open ? L.anyLevel(pair.levels, d) : held(pair.among);
    var median = pair.median !== null ? L.twoValues(k * pair.median) : held(pair.stated_median);
    var both = among === null ? worst : Math.max(worst, onScale({ success: among, baseline: 1 / Math.max(1, pair.levels[0]) }));
    // Where refits left it open, at least so often; that counts where what is not excluded is above the limit.
    var least = pair.at_least === null ? null : L.normal(0.5 * k * pair.at_least);
    return { worst: worst, among: among, median: median, both: both, least: least };
  };

  // The value at the nearest noise on a curve that is no larger; certain where there is none.
  function nearest(points, noise) {
    var share = 1;
    points.forEach(function (p) { if (p[0] <= noise * (1 + 1e-9)) share = p[1]; });
    return share;
  }

  // The expected metric, between the points of its curve, linear in the logarithm of the noise; null off it.
  L.metric = function (cost, sigma) {
    var p = cost.points, i = 0, own = cost.audited;
    if (own && Math.abs(sigma / own[0] - 1) < 1e-9) return own[1];
    while (i < p.length && p[i][0] < sigma) i++;
    if (i === p.length) return null;
    if (i === 0) return p[0][0] <= sigma * (1 + 1e-12) ? p[0][1] : null;
    var t = Math.log(sigma / p[i - 1][0]) / Math.log(p[i][0] / p[i - 1][0]);
    return p[i - 1][1] + t * (p[i][1] - p[i - 1][1]);
  };

  // The facts of the audit with a noise that was chosen.
  L.facts = function (model, sigma, releases) {
    var k = L.factor(model, sigma, releases), told = null, labelTold = null, atLeast = null;
    model.told.forEach(function (pair) {
      var t = L.told(pair, k), p = t.both;
      if (t.least !== null && !(p <= model.protect_at)) { atLeast = atLeast === null ? t.least : Math.max(atLeast, t.least); return; }
      if (pair.label) labelTold = labelTold === null ? p : Math.max(labelTold, p);
      else told = told === null ? p : Math.max(told, p);
    });
    var estimate = function (depth) { return depth === null ? null : depth.z === null ? 1 : L.normal(k * depth.z); };
    var seen = sigma * Math.sqrt(model.releases / releases);
    var guessed = function (curve) {
      return curve ? { success: nearest(curve.points, seen), baseline: curve.baseline } : null;
    };
    var secret = model.secret || {};
    return {
      noise: "chosen",
      over_limit: model.limits.some(function (l) { return !(k * l.value <= l.limit); }),
      unfinished: model.unfinished || atLeast !== null,
      protect_at: model.protect_at,
      told: told,
      label_told: labelTold,
      told_at_least: atLeast,
      estimated: estimate(model.estimated),
      label_estimated: estimate(model.label_estimated),
      epsilon: null,
      left_out: null,
      membership: null,
      bounded: guessed(secret.bounded),
      observed: guessed(secret.observed),
    };
  };
})(Leakscope);
