//! The verdict on an audit.

use super::{
    Colour, Decision, Facts, Noise, PROTECT_AT, Span, Success, TOLD_AT, TYPICAL, Verdict, decide, depth,
    headline, more_noise, noise_to_hide, plain, strong,
};
use crate::document::audit::{Attribute, Audit, Label, Limit, SigmaSource};
use crate::document::bound::Found;
use crate::document::choice::{Metric, ValueKind};
use crate::document::noise::Source;
use crate::document::tell::{Shows, Tell, Told};
use crate::format;
use crate::noise_words;
use crate::words;
use leakscope_core::special::normal_cdf;

/// A given model this close to the minimiser is at it.
const AT_MINIMISER: f64 = 1e-6;

/// How often two typical values of an attribute are told apart for its most exposed record, as η estimates it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exposure<'a> {
    pub(crate) attribute: &'a Attribute,
    pub(crate) told: f64,
    /// What Φ is taken of for it: proportional to one over the noise.
    pub(crate) depth: f64,
}

/// The exposure of every attribute that has a spread to compare with, the most exposed first.
pub(crate) fn exposures(audit: &Audit) -> Vec<Exposure<'_>> {
    let mut all: Vec<Exposure<'_>> = audit
        .attributes
        .iter()
        .filter_map(|attribute| {
            let distance = match attribute.kind {
                // From no to yes.
                ValueKind::Category => 1.0,
                ValueKind::Number => TYPICAL * words::spread(attribute)?,
            };
            let depth = depth(distance, attribute.min_sd.value);
            Some(Exposure { attribute, told: normal_cdf(depth), depth })
        })
        .collect();
    all.sort_by(|a, b| b.depth.total_cmp(&a.depth));
    all
}

/// The same of the label: two classes, or two typical values where the target's spread is known.
fn label_depth(audit: &Audit, label: &Label) -> Option<f64> {
    if audit.data.classes.is_some() {
        return Some(depth(1.0, label.min_sd.value));
    }
    // The error of a model without columns is the spread of the target.
    let utility = audit.utility.as_ref().filter(|u| u.metric == Metric::Mse);
    let spread = label.population_sd.or_else(|| Some(utility?.constant_model.max(0.0).sqrt()))?;
    Some(depth(TYPICAL * spread, label.min_sd.value))
}

/// What a chosen secret adds: the bound for the easiest record, and the strongest attack.
pub(crate) fn of_secret(found: &Found) -> (Option<Success>, Option<Success>) {
    let baseline = found.most_likely.unwrap_or(0.0);
    let easiest = found.bounds.iter().filter_map(|b| b.worst).map(|w| w.success).min_by(f64::total_cmp);
    let success = easiest.or_else(|| found.bounds.first().map(|b| b.success));
    let bounded = success.map(|success| Success { success, baseline });
    let data = found.data.as_ref();
    let played = data.into_iter().flat_map(|d| &d.attacks).filter(|a| Some(a.sigma) == found.sigma);
    let strongest = played.map(|a| a.accuracy.value).max_by(f64::total_cmp);
    let baseline = data.map_or(baseline, |d| d.baseline);
    (bounded, strongest.map(|success| Success { success, baseline }))
}

/// Largest probabilities of a list of told values: of attributes, and of the label.
pub(super) fn of_tell(tell: &Tell) -> (Option<f64>, Option<f64>) {
    let of =
        |label: bool| tell.attributes.iter().filter(|t| t.label == label).map(worst).max_by(f64::total_cmp);
    (of(false), of(true))
}

/// The larger of what is printed about one attribute, on the scale of two values.
fn worst(told: &Told) -> f64 {
    let among =
        told.among_all.map(|all| Success { success: all.worst, baseline: 1.0 / all.levels.max(1) as f64 });
    among.map_or(told.worst, |s| told.worst.max(s.told()))
}

/// What Φ is taken of for the largest estimates from η; infinite where no noise helps.
pub(crate) struct Depths {
    /// Of an attribute, of rows that belong together, or of whole records.
    pub(crate) attribute: Option<f64>,
    /// Of the label.
    pub(crate) label: Option<f64>,
    /// The attribute.
    pub(crate) of: String,
}

/// The estimates that count: what η says of values that were put in place one by one adds nothing. A release goes by the same
/// rule.
pub(crate) fn depths(audit: &Audit) -> Depths {
    let most = exposures(audit).into_iter().find(|e| !is_tried(audit, &e.attribute.name, false));
    let whole = || {
        let unknown = audit.tell.is_none() && audit.records.eta.max > 0.0;
        unknown.then(|| depth(TYPICAL, 1.0 / audit.records.eta.max))
    };
    let attribute = most.map(|e| e.depth).or_else(whole);
    let label = audit.label.as_ref().filter(|l| !is_tried(audit, &l.name, true));
    Depths {
        attribute: attribute.into_iter().chain(together(audit)).max_by(f64::total_cmp),
        label: label.and_then(|l| label_depth(audit, l)),
        of: most.map(|e| e.attribute.name.clone()).unwrap_or_default(),
    }
}

/// What an audit prints.
pub(crate) fn facts(audit: &Audit) -> Facts {
    let depths = depths(audit);
    let (told, label_told) = audit.tell.as_ref().map(of_tell).unwrap_or_default();
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
        unfinished: is_unfinished(audit) || is_seen_in_shape(audit) || is_solved(audit),
        protect_at: audit.tell.as_ref().map_or(PROTECT_AT, |t| t.protect_at),
        estimated: depths.attribute.map(normal_cdf),
        label_estimated: depths.label.map(normal_cdf),
        told,
        label_told,
        bounded,
        observed,
        ..Facts::default()
    }
}

/// Whether something is open whatever noise is chosen.
pub(crate) fn is_unfinished(audit: &Audit) -> bool {
    !untried(audit).is_empty() || is_approximate(audit) || audit.data.rows_of_one.is_some()
}

/// What Φ is taken of for values of a person that stand in all rows of that person, as far as those of single rows tell: k rows
/// move the model up to about k times as far.
fn together(audit: &Audit) -> Option<f64> {
    let rows = audit.data.rows_of_one? as f64;
    let told = audit.tell.as_ref()?.attributes.iter();
    let furthest = told.map(|t| t.distance.unwrap_or(f64::INFINITY)).max_by(f64::total_cmp)?;
    Some(0.5 * rows * furthest)
}

/// Whether values of an attribute, or of the label, were put in place.
pub(crate) fn is_tried(audit: &Audit, name: &str, label: bool) -> bool {
    let of = |t: &Told| t.label == label && t.attribute == name;
    audit.tell.as_ref().is_some_and(|t| t.attributes.iter().any(of))
}

/// How many times the noise makes every number of the page calm, whether that is exact, and nothing where none does.
fn noise_needed(audit: &Audit, facts: &Facts) -> Option<(f64, bool)> {
    let goal = facts.protect_at;
    let mut most = 1.0_f64;
    for told in audit.tell.iter().flat_map(|t| &t.attributes).filter(|t| worst(t) > goal) {
        let levels = told.among_all.map_or(2, |all| all.levels);
        most = most.max(match (told.distance, told.shows) {
            (_, Some(_)) => return None,
            (Some(distance), None) => noise_to_hide(distance, levels, goal)?,
            (None, None) => more_noise(worst(told), goal)?,
        });
    }
    if let Some(rows) = audit.data.rows_of_one {
        let all = audit.tell.iter().flat_map(|t| &t.attributes).filter_map(|t| t.distance);
        let furthest = all.fold(0.0, f64::max) * rows as f64;
        return noise_to_hide(furthest, 2, goal).map(|times| (times.max(most), false)).filter(|t| t.0 > 1.0);
    }
    // What is proved decides, or what is estimated or observed.
    let (proved, mut other) = (most, 1.0_f64);
    let others =
        facts.bounded.into_iter().chain(facts.observed).map(Success::told).chain(facts.approximate());
    for p in others.filter(|p| *p > goal) {
        other = other.max(more_noise(p, goal)?);
    }
    let (most, exact) = (proved.max(other), proved >= other);
    (most > 1.0).then_some((most, exact))
}

/// Attributes that were left out where others were tried.
fn untried(audit: &Audit) -> &[String] {
    audit.tell.as_ref().map_or(&[], |t| &t.left_out)
}

/// Coefficients that were given and are further from the minimiser than a fit is: every number is for a model near it.
fn is_approximate(audit: &Audit) -> bool {
    audit.model.distance.as_ref().is_some_and(|d| d.relative.is_nan() || d.relative > AT_MINIMISER)
}

/// Whether the covariance of the noise was read off the records: how often values are told apart then takes it as known.
fn is_seen_in_shape(audit: &Audit) -> bool {
    audit.noise.as_ref().is_some_and(|n| n.source == Source::Records)
}

/// Whether how much noise there is was solved for on the data: published, it tells something of its own.
fn is_solved(audit: &Audit) -> bool {
    match audit.sigma_source {
        SigmaSource::TargetEta { .. } | SigmaSource::TargetSd { .. } | SigmaSource::Targets => true,
        SigmaSource::Default | SigmaSource::Given => false,
    }
}

/// What that leaves open.
const SOLVED: &str = "How much noise there is was solved for on these data: published with the model, it can tell values of a record \
                      apart by itself, which is not counted here. A `sigma` that is chosen without these data leaves that out.";

/// The verdict on an audit.
pub fn of_audit(audit: &Audit) -> Verdict {
    let facts = facts(audit);
    let decision = decide(&facts);
    let breached: Vec<&Limit> = audit.limits.iter().filter(|l| !l.ok).collect();
    let head = match (decision.colour, facts.noise) {
        _ if !breached.is_empty() => "Over the limit",
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
    sentences.push(advice(audit, &facts, &decision));
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
    if let Some(told) = audit.tell.as_ref().and_then(Tell::worst) {
        let unit = audit.attributes.iter().find(|a| a.name == told.attribute && !told.label);
        let mut spans = tested(told, unit.and_then(|a| a.unit.as_deref()));
        if let Some((rows, depth)) = audit.data.rows_of_one.zip(together(audit)) {
            spans.push(plain(format!(
                " Up to {rows} rows have one {}: changed together, they are told apart in about ",
                audit.data.id.as_deref().unwrap_or("id")
            )));
            spans.extend([strong(format::share_at_most(normal_cdf(depth))), plain(" of cases.")]);
        }
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
fn tested(told: &Told, unit: Option<&str>) -> Vec<Span> {
    let Told {
        attribute,
        from,
        to,
        worst,
        median,
        worst_record,
        among_all: _,
        label: _,
        distance: _,
        shows: _,
    } = told;
    let unit = unit.map(|u| format!(" {u}")).unwrap_or_default();
    vec![
        plain("Somebody who knows everything else tells "),
        strong(format!("{attribute} {from} from {to}{unit}")),
        plain(" rightly in at most "),
        strong(format::share_at_most(*worst)),
        plain(format!(
            " of cases for record {worst_record}, and in {} for the median record; a coin toss is right in 50%.",
            format::share_at_most(*median)
        )),
    ]
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

/// A green audit is about noise in the units of its encoding: the same σ is another noise elsewhere.
const IN_OTHER_UNITS: &str = "The model may be released with this noise, once; a release adds its own in public units, where the same \
                              protection takes another σ, and its page says which.";

/// What to do.
fn advice(audit: &Audit, facts: &Facts, decision: &Decision) -> Vec<Span> {
    let exact = facts.exact();
    let told = exact.into_iter().chain(facts.approximate()).fold(0.5, f64::max);
    let goal = facts.protect_at;
    let Some((times, is_exact)) = noise_needed(audit, facts) else {
        return match (decision.colour, told > goal) {
            (Colour::Green, _) => vec![plain(IN_OTHER_UNITS)],
            (_, true) => vec![plain(read_off(audit, facts))],
            (_, false) if facts.noise == Noise::Unit => {
                vec![plain("Choose a noise (σ), and look again.")]
            }
            (_, false) if exact.is_none() => vec![plain(
                "That rests on small changes alone: have two values of every attribute tried before release.",
            )],
            (_, false) if !untried(audit).is_empty() => vec![plain(format!(
                "{} not tried, so nothing is shown about {}.",
                match untried(audit) {
                    [one] => format!("{one} was"),
                    many => format!("{} attributes were", format::count(many.len() as u64)),
                },
                if untried(audit).len() == 1 { "it" } else { "them" }
            ))],
            (_, false) if audit.data.rows_of_one.is_some() => vec![plain(
                "What all rows of one person tell together was not tried: join them into one row, and look again.",
            )],
            (_, false) if is_approximate(audit) => vec![plain(
                "The given coefficients are not at the minimiser, so this is an approximation: fit the model closer, and \
                 look again.",
            )],
            (_, false) if is_seen_in_shape(audit) => vec![plain(noise_words::open_question())],
            (_, false) if is_solved(audit) => vec![plain(SOLVED)],
            (_, false) => vec![plain("Look at the numbers marked below before release.")],
        };
    };
    // Rounded up to three digits: what is advised suffices.
    let sigma = format::typed_at_least(audit.sigma * times);
    let cost = audit.utility.as_ref().and_then(|u| {
        let there = words::metric_at(u, audit.sigma * times)?;
        Some(format!(" and costs {}", words::cost(u, there)))
    });
    let about = if is_exact { "" } else { "about " };
    // Where every value can be read off, how often is no help: what the noise must grow by is.
    let far =
        if times > 10.0 { format!(" ({} times as much)", format::number(times)) } else { String::new() };
    if audit.noise.is_some() {
        return vec![
            strong(format!("Targets {} as strict", format::times(times))),
            plain(format!(
                " would bring that to {about}{}{}: run it again with them.",
                format::share(goal),
                cost.unwrap_or_default()
            )),
        ];
    }
    vec![
        strong(format!("σ = {sigma}, now {}{far}", format::setting(audit.sigma))),
        plain(format!(
            ", would bring that to {about}{}{}: run it again with that.",
            format::share(goal),
            cost.unwrap_or_default()
        )),
    ]
}

/// What to do where values can be read off: noise, where that helps, or what else does.
fn read_off(audit: &Audit, facts: &Facts) -> String {
    let told = audit.tell.as_ref().and_then(Tell::worst);
    let shows = told.and_then(|t| Some((&t.attribute, t.shows?)));
    let Some((name, shows)) = shows else {
        return match facts.noise {
            Noise::Unit => "Do not release it at this noise: values can be read off. Choose a noise first.",
            Noise::Absent | Noise::Chosen => {
                "Do not release it at this noise: values can be read off, and how much noise hides them is beyond counting."
            }
        }
        .into();
    };
    let help = match shows {
        Shows::Unit => format!(
            "the column {name} is scaled by its own spread, which another value would have changed beyond use: give its `bounds`, or leave it out"
        ),
        Shows::Levels => format!(
            "a level of {name} is listed because just enough records have it: give its `levels`, or merge it into another"
        ),
        Shows::NoModel => format!(
            "with another value of {name} there is no model: a stronger penalty (`l2`), or a rare level merged into another, helps"
        ),
    };
    format!("Do not release it: values can be read off, and no noise hides that. {}.", capitalised(&help))
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Whether an exposure is flagged in the table of attributes.
pub(crate) fn is_open(told: f64) -> bool {
    told > TOLD_AT
}
