//! The verdict: two sentences for somebody who must decide, the same on the page and in the terminal.
//!
//! It claims no more than the numbers do. A Cramér–Rao bound above the population's spread says that an unbiased
//! estimate tells less than knowing the population; below it, that nothing rules out a closer one.

use crate::audit::{Attribute, Audit, Limit, SigmaSource};
use crate::{format, words};

/// Above this many spreads, whoever knows the population gains under 6% from the model: k/√(1+k²) at k = 3 is 0.949.
const COMFORTABLE: f64 = 3.0;

/// What it comes down to, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A limit of `--fail-above` is breached.
    OverLimit,
    /// Nothing rules out an estimate closer than the population's spread.
    NotProtected,
    /// σ is a unit, not a choice.
    NoNoise,
    /// The bound is above the spread, by less than a factor of three.
    Thin,
    /// The bound is at least three times the spread for every attribute.
    Protected,
    /// There is no attribute with a spread to compare with.
    Incomparable,
}

impl Level {
    /// A few words to put on it.
    pub fn label(self) -> &'static str {
        match self {
            Self::OverLimit => "Over the limit",
            Self::NotProtected => "Not protected",
            Self::NoNoise => "No noise chosen",
            Self::Thin => "Thinly protected",
            Self::Protected => "Protected at this noise",
            Self::Incomparable => "Measured",
        }
    }

    /// Whether a reader should stop here.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::OverLimit | Self::NotProtected)
    }
}

/// A piece of a sentence; what carries it is strong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The words.
    pub text: String,
    /// Whether they carry the sentence.
    pub strong: bool,
}

/// Two sentences and what they come down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What it comes down to.
    pub level: Level,
    /// What an attacker can do at most; who stands out and what the noise costs.
    pub sentences: [Vec<Span>; 2],
}

impl Verdict {
    /// The verdict without emphasis.
    pub fn text(&self) -> String {
        self.sentences
            .iter()
            .map(|s| s.iter().map(|p| p.text.as_str()).collect::<String>())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// How close an unbiased estimate of an attribute may come, as a multiple of the population's spread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exposure<'a> {
    pub(crate) attribute: &'a Attribute,
    pub(crate) multiple: f64,
}

/// The exposure of every attribute that has a spread to compare with, the most exposed first.
pub(crate) fn exposures(audit: &Audit) -> Vec<Exposure<'_>> {
    let mut all: Vec<Exposure<'_>> = audit
        .attributes
        .iter()
        .filter_map(|attribute| {
            let multiple = attribute.min_sd.value / words::spread(attribute)?;
            (!multiple.is_nan()).then_some(Exposure { attribute, multiple })
        })
        .collect();
    all.sort_by(|a, b| a.multiple.total_cmp(&b.multiple));
    all
}

/// The attribute that the verdict speaks of: the most exposed number, unless a category is less than comfortably
/// protected and more exposed still.
pub(crate) fn subject<'a>(exposures: &[Exposure<'a>]) -> Option<Exposure<'a>> {
    let worst = *exposures.first()?;
    if worst.multiple < COMFORTABLE {
        return Some(worst);
    }
    exposures.iter().find(|e| !words::is_category(e.attribute)).copied().or(Some(worst))
}

/// The verdict on an audit.
pub fn verdict(audit: &Audit) -> Verdict {
    let exposures = exposures(audit);
    let breached: Vec<&Limit> = audit.limits.iter().filter(|l| !l.ok).collect();
    let no_noise = audit.sigma_source == SigmaSource::Default;
    let level = match exposures.first().map(|e| e.multiple) {
        _ if !breached.is_empty() => Level::OverLimit,
        Some(k) if k < 1.0 => Level::NotProtected,
        _ if no_noise => Level::NoNoise,
        Some(k) if k < COMFORTABLE => Level::Thin,
        Some(_) => Level::Protected,
        None => Level::Incomparable,
    };
    let mut first = Vec::new();
    if !breached.is_empty() {
        first.push(strong(limits(&breached)));
    }
    if no_noise {
        first.push(plain(if first.is_empty() { "" } else { "; " }));
        let no = if first.len() > 1 { "no noise" } else { "No noise" };
        first.push(strong(format!("{no} was chosen: numbers are per unit of noise")));
        first.push(plain(format!(" (σ = {})", format::setting(audit.sigma))));
    }
    let lead = first.is_empty();
    first.push(plain(if lead { "" } else { "; " }));
    first.extend(exposed(&exposures, lead, audit));
    first.push(plain("."));
    let mut second = stand_out(audit);
    second.push(plain("; "));
    second.extend(noise_cost(audit, no_noise));
    second.push(plain("."));
    for sentence in [&mut first, &mut second] {
        sentence.retain(|s| !s.text.is_empty());
    }
    Verdict { level, sentences: [first, second] }
}

fn plain(text: impl Into<String>) -> Span {
    Span { text: text.into(), strong: false }
}

fn strong(text: impl Into<String>) -> Span {
    Span { text: text.into(), strong: true }
}

/// `The largest η is 0.52, above the limit of 0.1`, for every limit that is breached.
fn limits(breached: &[&Limit]) -> String {
    let each: Vec<String> = breached
        .iter()
        .map(|l| {
            let (name, value, limit) =
                (words::statistic_name(&l.statistic), format::number(l.value), format::setting(l.limit));
            format!("{name} is {value}, above the limit of {limit}")
        })
        .collect();
    let text = each.join(", and ");
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The clause on what an attacker can do at most.
fn exposed(exposures: &[Exposure<'_>], lead: bool, audit: &Audit) -> Vec<Span> {
    let Some(Exposure { attribute: a, multiple: k }) = subject(exposures) else {
        let no = if lead { "No" } else { "no" };
        return vec![plain(match audit.attributes.is_empty() {
            true => format!("{no} attribute could be traced back to a column of the table"),
            false => format!("{no} attribute has a spread that an estimate could be compared with"),
        })];
    };
    let (what, differ) = if words::is_category(a) {
        (format!("whether a level of {} applies (0 or 1)", a.name), "a coin toss is off by ±0.5".to_owned())
    } else {
        let spread = words::spread(a).unwrap_or_default();
        (a.name.clone(), format!("records differ by ±{}", format::number(spread)))
    };
    let error = words::smallest_error(a);
    if k < 1.0 {
        let others = exposures.iter().filter(|e| e.multiple < 1.0).count() - 1;
        let who = match others {
            0 => format!("{} is NOT protected", a.name),
            1 => format!("{} and 1 other attribute are NOT protected", a.name),
            n => format!("{} and {n} other attributes are NOT protected", a.name),
        };
        return vec![
            strong(who),
            plain(format!(
                ": for the most exposed record nothing rules out an unbiased estimate of {what} within {error}, and {differ}"
            )),
        ];
    }
    if k.is_infinite() {
        return vec![
            strong(if lead { "The model gives nothing away" } else { "the model gives nothing away" }),
            plain(format!(" about {what}: no unbiased estimate of it has a bounded error")),
        ];
    }
    let an = if lead { "An" } else { "an" };
    let knows = format!("{an} attacker who knows everything else ");
    if k < COMFORTABLE {
        vec![
            plain(knows),
            strong(format!("cannot estimate {what} without bias to better than {error}")),
            plain(format!(
                " for the most exposed record, only {} times what they are off by without the model ({differ})",
                format::at_least(k)
            )),
        ]
    } else {
        vec![
            plain(knows),
            strong(format!("cannot estimate {what} without bias to better than {error}")),
            plain(format!(
                ", even for the most exposed record, while {differ}: the population alone tells more"
            )),
        ]
    }
}

/// The clause on records that stand out.
fn stand_out(audit: &Audit) -> Vec<Span> {
    let (k, n) = (audit.records.stand_out, audit.n);
    match k {
        0 => vec![plain("No record leaks more than three times as much as the median record")],
        k => vec![
            strong(format!("{} of {}", format::count(k), format::counted(n, "record"))),
            plain(if k == 1 { " leaks" } else { " leak" }),
            plain(" more than three times as much as the median record"),
        ],
    }
}

/// The clause on what the noise costs.
fn noise_cost(audit: &Audit, no_noise: bool) -> Vec<Span> {
    let Some(u) = &audit.utility else {
        return vec![plain("what the noise costs was not measured (it needs held-out rows)")];
    };
    let (with, without) = (words::metric(u, u.at_sigma), words::metric(u, u.without_noise));
    let name = words::metric_name(u);
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
    let cost = words::cost(u);
    vec![
        plain(if no_noise { "that unit of noise would cost " } else { "this noise costs " }),
        strong(cost.clone()),
        plain(match cost.contains(name) {
            true => format!(" ({with}, {without} without noise)"),
            false => format!(" ({name} {with}, {without} without noise)"),
        }),
    ]
}
