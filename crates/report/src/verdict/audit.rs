//! The verdict on an audit.

use super::remedy::{Remedy, advice, remedy};
use super::{
    Colour, Facts, Noise, PROTECT_AT, Reservations, Span, Success, TOLD_AT, TYPICAL, Verdict, decide,
    headline, in_noise, plain, strong,
};
use crate::document::audit::{Attribute, Audit, Duplicates, Label, Limit, SigmaSource};
use crate::document::bound::SecretBounds;
use crate::document::choice::{Kind, Metric};
use crate::document::noise::Source;
use crate::document::tell::{Tell, ValuePair};
use crate::format;
use crate::words;
use leakscope_core::special::normal_cdf;

/// A given model this close to the minimiser is at it.
const AT_MINIMISER: f64 = 1e-6;

/// How often two typical values of an attribute are told apart for its most exposed record, as η estimates it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exposure<'a> {
    pub(crate) attribute: &'a Attribute,
    pub(crate) told: f64,
    /// How far apart they are, in standard deviations of the noise.
    pub(crate) distance: f64,
}

/// The exposure of every attribute that has a spread to compare with, the most exposed first.
pub(crate) fn exposures(audit: &Audit) -> Vec<Exposure<'_>> {
    let mut all: Vec<Exposure<'_>> = audit
        .attributes
        .iter()
        .filter_map(|attribute| {
            let distance = match attribute.kind {
                // From no to yes.
                Kind::Category => 1.0,
                Kind::Number => TYPICAL * words::spread(attribute)?,
            };
            let distance = in_noise(distance, attribute.min_sd.value);
            Some(Exposure { attribute, told: normal_cdf(0.5 * distance), distance })
        })
        .collect();
    all.sort_by(|a, b| b.distance.total_cmp(&a.distance));
    all
}

/// The same of the label: two classes, or two typical values where the target's spread is known.
pub(crate) fn estimated_of_label(audit: &Audit, label: &Label) -> Option<f64> {
    if audit.data.classes.is_some() {
        return Some(in_noise(1.0, label.min_sd.value));
    }
    // The error of a model without columns is the spread of the target.
    let utility = audit.utility.as_ref().filter(|u| u.metric == Metric::Mse);
    let spread = label.population_sd.or_else(|| Some(utility?.constant_model.max(0.0).sqrt()))?;
    Some(in_noise(TYPICAL * spread, label.min_sd.value))
}

/// What a chosen secret adds: the bound for the easiest record, and the strongest attack.
pub(crate) fn of_secret(bounds: &SecretBounds) -> (Option<Success>, Option<Success>) {
    let baseline = bounds.most_likely.unwrap_or(0.0);
    let easiest = bounds.bounds.iter().filter_map(|b| b.worst).map(|w| w.success).min_by(f64::total_cmp);
    let success = easiest.or_else(|| bounds.bounds.first().map(|b| b.success));
    let bounded = success.map(|success| Success { success, baseline });
    let data = bounds.data.as_ref();
    let played = data.into_iter().flat_map(|d| &d.attacks).filter(|a| Some(a.sigma) == bounds.sigma);
    let strongest = played.map(|a| a.accuracy.value).max_by(f64::total_cmp);
    let baseline = data.map_or(baseline, |d| d.baseline);
    (bounded, strongest.map(|success| Success { success, baseline }))
}

pub(super) fn is_near(audit: &Audit) -> bool {
    audit.tell.as_ref().is_some_and(has_near_values)
}

/// Whether values that were named are nearer to one another than records differ.
pub(super) fn has_near_values(tell: &Tell) -> bool {
    tell.attributes.iter().any(|t| t.near)
}

/// Whether it is known how often values of an attribute are told apart, as far as the limit goes.
pub(super) fn is_settled(pair: &ValuePair, goal: f64) -> bool {
    pair.is_settled() || worst(pair) <= goal
}

/// Largest probabilities of a list of told values: of attributes and of the label, and those that are at least so large.
fn of_tell(tell: &Tell) -> (Option<f64>, Option<f64>, Option<f64>) {
    let settled = || tell.attributes.iter().filter(|t| is_settled(t, tell.protect_at));
    let of = |label: bool| settled().filter(|t| t.label == label).map(worst).max_by(f64::total_cmp);
    let open = tell.attributes.iter().filter(|t| !is_settled(t, tell.protect_at));
    (of(false), of(true), open.filter_map(ValuePair::told_at_least).max_by(f64::total_cmp))
}

/// The larger of what is printed about one attribute, on the scale of two values.
pub(super) fn worst(pair: &ValuePair) -> f64 {
    let among =
        pair.among_all.map(|all| Success { success: all.worst, baseline: 1.0 / all.levels.max(1) as f64 });
    among.map_or(pair.worst, |s| pair.worst.max(s.told_of_two()))
}

/// What an audit prints.
pub(crate) fn facts(audit: &Audit) -> Facts {
    let (told, label_told, told_at_least) = audit.tell.as_ref().map(of_tell).unwrap_or_default();
    let (bounded, observed) = audit.secret.as_ref().map(of_secret).unwrap_or_default();
    Facts {
        noise: match audit.sigma_source {
            SigmaSource::Default => Noise::Unit,
            SigmaSource::Given
            | SigmaSource::TargetEta { .. }
            | SigmaSource::TargetSd { .. }
            | SigmaSource::Targets => Noise::Chosen,
        },
        over_limit: audit.limits.iter().any(|l| !l.ok),
        open: Reservations {
            not_tried: !untried(audit).is_empty(),
            not_settled: told_at_least.is_some(),
            approximate: is_approximate(audit),
            shape_of_records: is_seen_in_shape(audit),
            solved_on_data: is_solved(audit),
            rows_of_one: audit.data.rows_of_one.is_some(),
            encoding_of_records: is_read_off(audit),
            equal_rows: equal_rows(audit).is_some(),
            binned: is_binned(audit),
            kept_back: false,
            near_values: is_near(audit),
            less_than_run: false,
        },
        protect_at: audit.tell.as_ref().map_or(PROTECT_AT, |t| t.protect_at),
        estimated: estimated_distance(audit).map(|d| normal_cdf(0.5 * d)),
        label_estimated: label_distance(audit).map(|d| normal_cdf(0.5 * d)),
        told_at_least,
        told,
        label_told,
        bounded,
        observed,
        ..Facts::default()
    }
}

/// Rows that are equal beyond chance, where no id says whose they are.
pub(super) fn equal_rows(audit: &Audit) -> Option<Duplicates> {
    audit.data.duplicates.filter(|d| d.beyond_chance)
}

/// What is told of whoever stands behind equal rows, two values of one row being so many standard deviations of the noise apart.
pub(super) fn told_of_equal_rows(equal: Duplicates, tell: Option<&Tell>) -> String {
    let furthest = tell.and_then(|t| t.attributes.iter().filter_map(|t| t.distance).max_by(f64::total_cmp));
    let share = furthest.map(|d| normal_cdf(0.5 * equal.largest as f64 * d));
    let share = share.map(|p| format!(", in about {} of cases", format::share_at_most(p)));
    format!(
        "{} rows are equal in every column: if they are one person’s, what is told of that person is told {} times over{}.",
        format::count(equal.largest),
        format::count(equal.largest),
        share.unwrap_or_default()
    )
}

/// Whether a part of the encoding was read off the records, and moves with them uncounted.
fn is_read_off(audit: &Audit) -> bool {
    let secret = audit.secret.as_ref().and_then(|s| s.data.as_ref());
    !audit.data.read_off.is_empty() || secret.is_some_and(|d| d.scaling_given)
}

/// Whether the page bounds guesses of bins, each tried at one value.
fn is_binned(audit: &Audit) -> bool {
    audit.secret.as_ref().and_then(|s| s.data.as_ref()).is_some_and(|d| d.binned)
}

/// Whether something is open whatever noise is chosen.
pub(crate) fn is_open_at_any_noise(audit: &Audit) -> bool {
    !untried(audit).is_empty()
        || is_binned(audit)
        || is_approximate(audit)
        || audit.data.rows_of_one.is_some()
        || equal_rows(audit).is_some()
        || is_near(audit)
        || is_read_off(audit)
}

/// How far apart two typical values of any attribute are as η estimates it, in standard deviations of the noise. What η estimates
/// of values that were put in place one by one adds nothing: a release goes by the same rule.
pub(crate) fn estimated_distance(audit: &Audit) -> Option<f64> {
    let untried = exposures(audit).into_iter().filter(|e| !is_tried(audit, &e.attribute.name, false));
    let of_attributes = untried.map(|e| e.distance).max_by(f64::total_cmp);
    let unknown = audit.tell.is_none() && audit.records.eta.max > 0.0;
    let whole = || unknown.then_some(TYPICAL * audit.records.eta.max);
    of_attributes.or_else(whole).into_iter().chain(together(audit)).max_by(f64::total_cmp)
}

/// The same of the label.
pub(crate) fn label_distance(audit: &Audit) -> Option<f64> {
    let label = audit.label.as_ref().filter(|l| !is_tried(audit, &l.name, true))?;
    estimated_of_label(audit, label)
}

/// How far apart values of a person are that stand in all rows of that person, as far as those of single rows tell: k rows
/// move the model up to about k times as far.
fn together(audit: &Audit) -> Option<f64> {
    let rows = audit.data.rows_of_one? as f64;
    let told = audit.tell.as_ref()?.attributes.iter();
    let furthest = told.map(|t| t.distance.unwrap_or(f64::INFINITY)).max_by(f64::total_cmp)?;
    Some(rows * furthest)
}

/// Whether values of an attribute, or of the label, were put in place.
pub(crate) fn is_tried(audit: &Audit, name: &str, label: bool) -> bool {
    let of = |t: &ValuePair| t.label == label && t.attribute == name;
    audit.tell.as_ref().is_some_and(|t| t.attributes.iter().any(of))
}

/// Attributes that were left out where others were tried.
pub(super) fn untried(audit: &Audit) -> &[String] {
    audit.tell.as_ref().map_or(&[], |t| &t.left_out)
}

/// Coefficients that were given and are further from the minimiser than a fit is: every number is for a model near it.
pub(super) fn is_approximate(audit: &Audit) -> bool {
    audit.model.distance.as_ref().is_some_and(|d| d.relative.is_nan() || d.relative > AT_MINIMISER)
}

/// Whether the covariance of the noise was read off the records: how often values are told apart then takes it as known.
pub(super) fn is_seen_in_shape(audit: &Audit) -> bool {
    audit.noise.as_ref().is_some_and(|n| n.source == Source::Records)
}

/// Whether how much noise there is was solved for on the data: published, it tells something of its own.
pub(super) fn is_solved(audit: &Audit) -> bool {
    match audit.sigma_source {
        SigmaSource::TargetEta { .. } | SigmaSource::TargetSd { .. } | SigmaSource::Targets => true,
        SigmaSource::Default | SigmaSource::Given => false,
    }
}

/// The verdict on an audit.
pub fn of_audit(audit: &Audit) -> Verdict {
    let facts = facts(audit);
    let decision = decide(&facts);
    let breached: Vec<&Limit> = audit.limits.iter().filter(|l| !l.ok).collect();
    let remedy = remedy(audit, &facts);
    let head = match (decision.colour, facts.noise) {
        _ if !breached.is_empty() => "Over the limit",
        _ if matches!(remedy, Remedy::NoNoise(_)) => "Not protected, and no noise would",
        (Colour::Amber, Noise::Unit) => "No noise chosen",
        (colour, _) => headline(colour),
    };
    let mut first = Vec::new();
    if !breached.is_empty() {
        first.extend([strong(limits(&breached)), plain(". ")]);
    }
    if facts.noise == Noise::Unit {
        first.push(strong("No noise was chosen: numbers are per unit of noise"));
        first.push(plain(format!(
            " (σ = {}). Released without any, the model lets somebody who knows everything else compute each value that \
             moves it exactly. ",
            format::setting(audit.sigma)
        )));
    }
    first.extend(exposed(audit, &facts));
    let second = stand_out(audit).into_iter().chain([plain("; ")]).chain(noise_cost(audit, facts.noise));
    let mut sentences = vec![first, second.chain([plain(".")]).collect()];
    sentences.push(advice(audit, &facts, &decision, &remedy));
    sentences.iter_mut().for_each(|s| s.retain(|span| !span.text.is_empty()));
    Verdict::new(decision, head, sentences)
}

/// `The largest η is 0.52, above the limit of 0.1`, for every limit that is breached.
fn limits(breached: &[&Limit]) -> String {
    let each: Vec<String> = breached
        .iter()
        .map(|l| {
            let name = words::statistic_name(l.statistic);
            format!("{name} is {}, above the limit of {}", format::number(l.value), format::setting(l.limit))
        })
        .collect();
    capitalised(&each.join(", and "))
}

/// The sentence on what somebody can do who knows all else.
fn exposed(audit: &Audit, facts: &Facts) -> Vec<Span> {
    if let Some((tell, told)) = audit.tell.as_ref().and_then(|tell| Some((tell, tell.worst()?))) {
        let unit = audit.attributes.iter().find(|a| a.name == told.attribute && !told.label);
        let mut spans = tested(told, unit.and_then(|a| a.unit.as_deref()), tell.protect_at);
        spans.extend(others_open(tell, told));
        if is_read_off(audit) {
            spans.push(plain(" That takes the encoding as given: by what a record does to it, values may be told apart more often."));
        }
        if let Some((rows, distance)) = audit.data.rows_of_one.zip(together(audit)) {
            let share = normal_cdf(0.5 * distance);
            spans.push(plain(format!(
                " Up to {rows} rows have one {}: changed together, they are told apart in about ",
                audit.data.id.as_deref().unwrap_or("id")
            )));
            spans.extend([strong(format::share_at_most(share)), plain(" of cases.")]);
        }
        spans.extend(equal_rows(audit).map(|e| plain(format!(" {}", told_of_equal_rows(e, Some(tell))))));
        return spans;
    }
    let label = facts.label_estimated.zip(audit.label.as_ref());
    let exposures = exposures(audit);
    let most = exposures.first();
    if let Some((told, label)) = label
        && most.is_none_or(|e| told > e.told)
    {
        return approximated(&format!("the label, {}", label.name), told, None);
    }
    let Some(Exposure { attribute: a, told, .. }) = most else {
        let why = match audit.attributes.is_empty() {
            true => "No attribute could be traced back to a column of the table",
            false => "No attribute has a spread that an estimate could be compared with",
        };
        return vec![plain(format!("{why}, so how well its values can be told apart is not known."))];
    };
    if *told <= 0.5 {
        return vec![
            strong("As far as η tells, the model gives nothing away"),
            plain(format!(" about {}: small changes of it do not move the model.", a.name)),
        ];
    }
    let spread = words::spread(a).filter(|_| !words::is_category(a)).map(|s| {
        let error = words::smallest_error(a);
        format!(", with an estimate that is off by {error} where records differ by ±{}", format::number(s))
    });
    approximated(&a.name, *told, spread)
}

/// The sentence where two values were tried.
fn tested(told: &ValuePair, unit: Option<&str>, protect_at: f64) -> Vec<Span> {
    let ValuePair { attribute, from, to, worst, median, worst_record, .. } = told;
    let unit = told.unit(unit);
    let who = plain("Somebody who knows everything else tells ");
    let pair = strong(format!("{attribute} {from} from {to}{unit}"));
    if let Some(least) = told.told_at_least().filter(|_| told.is_open(protect_at)) {
        return vec![
            who,
            pair,
            plain(" rightly in at least "),
            strong(format::share_at_least(least)),
            plain(" of cases for some record (a coin toss: 50%); how much more often "),
            strong("was not settled within the budget"),
            plain("."),
        ];
    }
    vec![
        who,
        pair,
        plain(" rightly in at most "),
        strong(format::share_at_most(*worst)),
        plain(format!(
            " of cases for record {worst_record}, and in at most {} for the median record; a coin toss is right in 50%.",
            format::share_at_most(*median)
        )),
    ]
}

/// What was not settled of others than the one that is told apart most often, as far as that is known.
fn others_open(tell: &Tell, first: &ValuePair) -> Option<Span> {
    let is_other = |t: &&ValuePair| !std::ptr::eq(*t, first) && t.is_open(tell.protect_at);
    let open: Vec<&ValuePair> = tell.attributes.iter().filter(is_other).collect();
    let (most, rest) = (open.iter().max_by(|a, b| tell.shown(a).total_cmp(&tell.shown(b)))?, open.len() - 1);
    let others = match rest {
        0 => String::new(),
        n => format!(" and {}", format::counted(n as u64, "other attribute")),
    };
    Some(plain(format!(
        " How often {}{others} {} told apart was not settled within the budget: in {} of cases or more.",
        most.attribute,
        if rest == 0 { "is" } else { "are" },
        format::share_at_least(tell.shown(most))
    )))
}

/// The sentence where η stands in.
fn approximated(name: &str, told: f64, estimate: Option<String>) -> Vec<Span> {
    vec![
        plain(
            "Somebody who knows everything else about the most exposed record tells two typical values of ",
        ),
        strong(name),
        plain(" apart in about "),
        strong(format::share_at_most(told)),
        plain(format!(" of cases (a coin toss: 50%){}.", estimate.unwrap_or_default())),
    ]
}

/// The clause on records that stand out.
fn stand_out(audit: &Audit) -> Vec<Span> {
    match audit.records.stand_out {
        0 => vec![plain("No record gives away more than three times as much as the median record")],
        k => vec![
            strong(format!("{} of {}", format::count(k), format::counted(audit.n, "record"))),
            plain(if k == 1 { " gives" } else { " give" }),
            plain(" away more than three times as much as the median record"),
        ],
    }
}

/// The clause on what the noise costs.
fn noise_cost(audit: &Audit, noise: Noise) -> Vec<Span> {
    let Some(u) = &audit.utility else {
        return vec![plain("what the noise costs was not measured (it needs held-out rows)")];
    };
    let (with, without) = (words::metric(u, u.at_sigma), words::metric(u, u.without_noise));
    let name = words::metric_name(u.metric);
    if words::is_useless(u) {
        return vec![
            plain(format!("noise of σ = {} leaves ", format::setting(audit.sigma))),
            strong("nothing of the model"),
            plain(format!(
                " ({name} {with}, {without} without noise, {} from a model without any columns)",
                words::metric(u, u.constant_model)
            )),
        ];
    }
    let cost = words::cost(u, u.at_sigma);
    vec![
        plain(if noise == Noise::Unit { "that unit of noise would cost " } else { "this noise costs " }),
        strong(cost.clone()),
        plain(match cost.contains(name) {
            true => format!(" ({with}, {without} without noise)"),
            false => format!(" ({name} {with}, {without} without noise)"),
        }),
    ]
}

pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Whether an exposure is flagged in the table of attributes.
pub(crate) fn is_open(told: f64) -> bool {
    told > TOLD_AT
}
