//! What a page carries so that its script can move an audit to another noise.

use super::median_distance;
use crate::document::audit::Audit;
use crate::document::choice::{ColumnRole, Metric, OneHot, Roles, Scale};
use crate::document::tell::ValuePair;
use crate::format::quoted;
use crate::verdict::{
    Colour, RULES, Rule, Success, TOLD_AT, estimated_distance, exposures, facts_of_audit, headline,
    is_open_at_any_noise, label_distance,
};
use crate::words;
use leakscope_core::glm::ModelKind;
use leakscope_core::special::normal_quantile;
use serde::Serialize;

const COLOURS: [Colour; 3] = [Colour::Green, Colour::Amber, Colour::Red];

/// An audit as its script moves it. Depths are what Φ is taken of, at the noise of the audit; one that is absent is certain at any
/// noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moving {
    /// The rules of the verdict.
    rules: &'static [Rule],
    sigma: f64,
    releases: u32,
    /// Ends of the slider.
    low: f64,
    high: f64,
    protect_at: f64,
    /// Told apart more often than this, values are flagged.
    told_at: f64,
    /// Names of the colours, and what is put on them.
    colours: [&'static str; 3],
    headlines: [&'static str; 3],
    /// Whether something is open at any noise that is chosen.
    unfinished: bool,
    told: Vec<Pair>,
    /// Whether something shows that no noise hides.
    shown: bool,
    /// Depth of the largest estimate for an attribute; outside absent where there is none.
    estimated: Option<Depth>,
    label_estimated: Option<Depth>,
    /// What the estimates are about.
    estimated_of: String,
    limits: Vec<Held>,
    secret: Option<Secret>,
    utility: Option<Cost>,
    command: Command,
    goals: Vec<(String, f64)>,
}

/// What Φ is taken of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Depth {
    z: Option<f64>,
}

impl Depth {
    /// Half a distance in standard deviations of the noise.
    fn of(distance: f64) -> Self {
        Self { z: Some(0.5 * distance).filter(|z| z.is_finite()) }
    }
}

/// Two values of an attribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Pair {
    name: String,
    values: String,
    record: String,
    label: bool,
    distance: Option<f64>,
    median: Option<f64>,
    /// Levels, where they are told at once, and `Φ⁻¹(1/m)`.
    levels: Option<(usize, f64)>,
    /// As audited: they hold where there is more noise and no distance.
    worst: f64,
    among: Option<f64>,
    stated_median: f64,
    /// What is known of the distance where it is not settled.
    at_least: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Held {
    name: &'static str,
    limit: f64,
    value: f64,
}

/// A secret on its curve, by noise; success on the scale of the guesses themselves.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Secret {
    bounded: Option<Curve>,
    observed: Option<Curve>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Curve {
    baseline: f64,
    points: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Cost {
    metric: &'static str,
    share: bool,
    higher_is_better: bool,
    without_noise: f64,
    constant_model: f64,
    /// As audited, where that is finite: the noise and the metric there.
    audited: Option<(f64, f64)>,
    /// Finite points by noise.
    points: Vec<(f64, f64)>,
}

/// The line that releases at the noise chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Command {
    start: String,
    /// Whether it has all options of the audit that a release takes: a document does not say how its table was read.
    whole: bool,
}

impl Moving {
    /// The same with the line that releases, from the one that audited.
    pub(crate) fn releasing(mut self, line: Option<&str>) -> Self {
        if let Some(line) = line {
            self.command = Command { start: line.to_owned(), whole: true };
        }
        self
    }

    /// What a page of this audit carries; nothing where its noise cannot be moved, with the reason.
    pub fn of(audit: &Audit, goals: Vec<(String, f64)>) -> Result<Self, &'static str> {
        if audit.noise.is_some() {
            return Err(
                "The noise was made for targets, and at others it would have another shape: run the audit again with other targets.",
            );
        }
        if !(audit.sigma > 0.0 && audit.sigma.is_finite()) {
            return Err("There is no noise to change.");
        }
        let facts = facts_of_audit(audit);
        let told = leading(audit).into_iter().map(|t| Pair::of(t, unit(audit, t))).collect();
        let most = goals.iter().map(|g| g.1).fold(audit.sigma, f64::max);
        let least = goals.iter().map(|g| g.1).fold(audit.sigma, f64::min);
        Ok(Self {
            rules: &RULES,
            sigma: audit.sigma,
            releases: audit.releases.max(1),
            low: (least / 10.0).min(audit.sigma / 100.0),
            high: (most * 10.0).max(audit.sigma * 100.0),
            protect_at: facts.protect_at,
            told_at: TOLD_AT,
            colours: COLOURS.map(Colour::name),
            headlines: COLOURS.map(headline),
            unfinished: is_open_at_any_noise(audit),
            told,
            shown: audit.tell.iter().flat_map(|t| &t.attributes).any(|t| t.shows.is_some()),
            estimated: estimated_distance(audit).map(Depth::of),
            label_estimated: label_distance(audit).map(Depth::of),
            estimated_of: exposures(audit).first().map(|e| e.attribute.name.clone()).unwrap_or_default(),
            limits: audit
                .limits
                .iter()
                .map(|l| Held { name: words::statistic_name(l.statistic), limit: l.limit, value: l.value })
                .collect(),
            secret: secret(audit),
            utility: utility(audit),
            command: command(audit),
            goals,
        })
    }

    /// As JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("plain data with text keys always serialises")
    }
}

/// The pairs that can decide at some noise: of those that are alike but for their distance the furthest apart.
fn leading(audit: &Audit) -> Vec<&ValuePair> {
    // Without a distance two are alike where the probability of two values is all there is.
    let kind = |t: &ValuePair| match (t.distance.filter(|_| t.shows.is_none()), t.at_least, t.among_all) {
        (Some(_), None, all) => Some((t.label, true, all.map(|a| a.levels))),
        (None, None, None) => Some((t.label, false, None)),
        (_, Some(_), _) | (None, None, Some(_)) => None,
    };
    let further = |a: &ValuePair, b: &ValuePair| match (a.distance, b.distance) {
        (Some(a), Some(b)) => a > b,
        (_, _) => a.worst > b.worst,
    };
    let mut leading: Vec<&ValuePair> = vec![];
    for told in audit.tell.iter().flat_map(|t| &t.attributes) {
        match leading.iter_mut().find(|other| kind(told).is_some() && kind(other) == kind(told)) {
            Some(other) if further(told, other) => *other = told,
            Some(_) => {}
            None => leading.push(told),
        }
    }
    leading
}

fn unit<'a>(audit: &'a Audit, pair: &ValuePair) -> Option<&'a str> {
    let of = audit.attributes.iter().find(|a| !pair.label && a.name == pair.attribute);
    of.and_then(|a| a.unit.as_deref())
}

impl Pair {
    fn of(pair: &ValuePair, unit: Option<&str>) -> Self {
        let unit = pair.unit(unit);
        Self {
            name: pair.attribute.clone(),
            values: format!("{} from {}{unit}", pair.from, pair.to),
            record: pair.worst_record.clone(),
            label: pair.label,
            distance: pair.distance.filter(|d| pair.shows.is_none() && d.is_finite()),
            median: median_distance(pair),
            levels: pair.among_all.map(|all| (all.levels, normal_quantile(1.0 / all.levels.max(1) as f64))),
            worst: pair.worst,
            among: pair.among_all.map(|all| all.worst),
            stated_median: pair.median,
            at_least: pair.at_least.filter(|d| d.is_finite()),
        }
    }
}

/// Points by noise, ascending.
fn ascending(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.retain(|p| p.0 > 0.0 && p.0.is_finite() && p.1.is_finite());
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn secret(audit: &Audit) -> Option<Secret> {
    let bounds = audit.secret.as_ref()?;
    let (bounded, observed) = crate::verdict::of_secret(bounds);
    let data = bounds.data.as_ref();
    let easiest = |rows: &[crate::document::bound::Row]| {
        let worst = rows.iter().filter_map(|b| b.worst).map(|w| w.success).min_by(f64::total_cmp);
        worst.or_else(|| rows.first().map(|b| b.success))
    };
    let curve = data.into_iter().flat_map(|d| &d.curve);
    let points = curve.filter_map(|p| Some((p.sigma, easiest(&p.bounds)?))).collect();
    let strongest = |sigma: f64| {
        let same = data.into_iter().flat_map(|d| &d.attacks).filter(|a| a.sigma == sigma);
        same.map(|a| a.accuracy.value).max_by(f64::total_cmp).map(|value| (sigma, value))
    };
    let mut noises: Vec<f64> = data.into_iter().flat_map(|d| &d.attacks).map(|a| a.sigma).collect();
    noises.sort_by(f64::total_cmp);
    noises.dedup();
    let played = noises.into_iter().filter_map(strongest).collect();
    let curve = |s: Success, points| Curve { baseline: s.baseline, points: ascending(points) };
    let any_played = data.is_some_and(|d| !d.attacks.is_empty());
    let of_play = observed
        .or_else(|| any_played.then(|| Success { success: 1.0, baseline: data.map_or(0.0, |d| d.baseline) }));
    Some(Secret { bounded: bounded.map(|s| curve(s, points)), observed: of_play.map(|s| curve(s, played)) })
}

fn utility(audit: &Audit) -> Option<Cost> {
    let u = audit.utility.as_ref()?;
    Some(Cost {
        metric: words::metric_name(u.metric),
        share: u.metric == Metric::Accuracy,
        higher_is_better: u.higher_is_better,
        without_noise: u.without_noise,
        constant_model: u.constant_model,
        audited: Some((audit.sigma, u.at_sigma)).filter(|(_, value)| value.is_finite()),
        points: ascending(u.points.iter().map(|p| (p.sigma, p.value)).collect()),
    })
}

fn command(audit: &Audit) -> Command {
    // A table in memory has no name that a command could read.
    let start = if audit.data.files.is_empty() { String::new() } else { release_command(audit) };
    Command { start, whole: false }
}

/// `leakscope release` with the table, its columns and its model, but no noise yet.
pub(super) fn release_command(audit: &Audit) -> String {
    let d = &audit.data;
    let mut words = vec!["leakscope release".to_owned()];
    words.extend(d.files.iter().map(|f| quoted(f)));
    let mut option = |name: &str, value: &str| words.push(format!("--{name} {}", quoted(value)));
    option("target", &d.target);
    for (name, column) in [("id", &d.id), ("weights", &d.weights)] {
        column.iter().for_each(|c| option(name, c));
    }
    // A group that is a feature too stays: a release has none.
    let left_out = |roles: &Roles| roles.include(ColumnRole::Dropped) || roles.0 == [ColumnRole::Group];
    for column in d.columns.iter().filter(|c| left_out(&c.roles)) {
        option("drop", &column.name);
    }
    option("model", audit.model.family.name());
    audit.model.family.parameter().iter().for_each(|(name, value)| option(name, &value.to_string()));
    option("l2", &audit.model.l2.to_string());
    if let (ModelKind::Logistic | ModelKind::SquaredHinge, Some([_, high])) =
        (audit.model.family, d.classes.as_deref())
    {
        option("positive", high);
    }
    match d.scale {
        Scale::Standard => {}
        Scale::UnitBall => option("scale", "unit-ball"),
        Scale::Bounds => option("scale", "bounds"),
        Scale::None => option("scale", "none"),
    }
    match d.one_hot {
        OneHot::DropLast => {}
        OneHot::DropFirst => option("one-hot", "drop-first"),
        OneHot::Full => option("one-hot", "full"),
    }
    d.pca.iter().for_each(|k| option("pca", &k.to_string()));
    if !audit.label_secret {
        option("label", "public");
    }
    let limit = audit.tell.as_ref().map(|t| t.protect_at);
    limit
        .filter(|p| *p != crate::verdict::PROTECT_AT)
        .iter()
        .for_each(|p| option("protect-at", &p.to_string()));
    if !audit.model.intercept {
        words.push("--no-intercept".into());
    }
    words.join(" ")
}
