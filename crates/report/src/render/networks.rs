//! What the numbers of a network mean, in words that page and terminal share.

use crate::document::choice::{Kind, Signal};
use crate::document::net::{NetAttribute, NetAudit, Record};
use crate::document::public::{Perturbation, PerturbationKind, Pretraining};
use crate::format;
use leakscope_core::claim::Measured;
use leakscope_core::dp::Interval;
use leakscope_core::num::Summary;

/// Of which gradient PLIS is.
pub(crate) fn plis_of(of: Option<Signal>) -> &'static str {
    match of {
        Some(Signal::Released) => "as it is released (clipped where there is a clip)",
        Some(Signal::Raw) | None => "before clipping",
    }
}

/// Training on public records before a run.
pub(crate) fn pretraining(p: &Pretraining) -> String {
    let right = |share: Option<f64>, of: &str| {
        share.map(|s| format!("; {} of {of} right after it", format::share(s))).unwrap_or_default()
    };
    format!(
        "{} of {}, {} with {} a step ({}, learning rate {}, weight decay {}); mean loss {} after it{}{}",
        format::counted(p.records, "record"),
        p.files.join(", "),
        format::counted(p.steps, "step"),
        format::count(p.batch),
        p.optimizer,
        format::setting(p.learning_rate),
        format::setting(p.weight_decay),
        format::number(p.loss),
        right(p.accuracy, "them"),
        right(p.watched_accuracy, "the records that accuracy is measured on")
    )
}

/// Which share of the weights a run trains.
pub(crate) fn density(share: f64) -> String {
    format!(
        "the largest {} of the weights are trained; the others stay at their public values",
        format::share(share)
    )
}

/// What was added to gradients.
pub(crate) fn perturbation(p: &Perturbation) -> String {
    let variant = match p.variant {
        PerturbationKind::Average => "the average public gradient times a number learned before each step",
        PerturbationKind::Constant => "a constant learned before each step",
        PerturbationKind::Network => "what a network, learned before each step, makes of the record’s values",
        PerturbationKind::Thesis => {
            "what the thesis’s network gives, learned before each step: a constant, since its batch norm over one record \
             returns its bias alone"
        }
    };
    let spread = match p.spread > 0.0 {
        true => format!(" (it differs between records by {} of its norm)", format::share(p.spread)),
        false => String::new(),
    };
    format!(
        "every gradient plus {variant} (λ = {}, {}); in the last step its norm was {}{spread}, its cosine with the average \
         public gradient {}, and the Jacobian of what is released of public records over its size fell from {} to {} (mean squares)",
        format::setting(p.lambda),
        format::counted(p.records, "public record"),
        format::number(p.norm),
        format::number(p.cosine),
        format::number(p.without),
        format::number(p.with)
    )
}

/// Where an estimate lies, ends rounded outwards.
pub(crate) fn interval(i: &Interval) -> String {
    format!("{} to {}", format::at_least(i.lower), format::at_most(i.upper))
}

/// The largest dFIL of a record: a number where it is exact, where it lies where it is estimated.
pub(crate) fn largest_dfil(a: &NetAudit, dfil: &Summary) -> String {
    match &a.dfil_extremes {
        Some(e) => format!("{} (95% over all measured)", interval(&e.largest)),
        None => format::number(dfil.max),
    }
}

/// That several records may be the most exposed one; absent where one stands out, or all is exact.
pub(crate) fn candidates(a: &NetAudit) -> Option<String> {
    let e = a.dfil_extremes.as_ref().filter(|e| e.candidates > 1)?;
    Some(format!(
        "The largest dFIL of a record lies within {}; which record has it is not known: {} of {} may (95% over all measured)",
        interval(&e.largest),
        format::count(e.candidates),
        format::count(a.measured)
    ))
}

/// What a record is called: the caller's id, or its number.
pub(crate) fn name(r: &Record) -> String {
    r.id.clone().unwrap_or_else(|| r.record.to_string())
}

/// What an attribute's η means in its own units, for one step.
pub(crate) fn attribute_meaning(a: &NetAttribute) -> String {
    if !a.min_sd.value.is_finite() {
        return "Small changes of it do not move the step: no estimate that is right on average has a bounded error."
            .to_owned();
    }
    let unit = a.unit.as_ref().map(|u| format!(" {u}")).unwrap_or_default();
    let error = format!("±{}{unit}", format::bound(&a.min_sd));
    if a.kind == Kind::Category {
        return format!(
            "From one step, an estimate, right on average, of which {} a record has is off by at least {error} for the most \
             exposed record, on a scale where 0 is no and 1 is yes (a coin toss: ±0.5).",
            if a.is_label { "class" } else { "level" }
        );
    }
    let differ =
        a.population_sd.map(|s| format!(" (records differ by ±{})", format::number(s))).unwrap_or_default();
    let typical = match a.min_sd_typical.is_finite() {
        true => format!("; ±{} for a typical one", format::at_least(a.min_sd_typical)),
        false => String::new(),
    };
    let prior = match (&a.min_rmse_with_prior, a.population_sd) {
        (Some(m), Some(sd)) => format!(
            " Someone who already knows the population (±{}) gets to about ±{}, on average over records (van Trees).",
            format::number(sd),
            format::number(m.value)
        ),
        _ => String::new(),
    };
    format!(
        "From one step, an estimate, right on average, is off by at least {error} for the most exposed record{differ}{typical}.{prior}"
    )
}

/// What an attacker with a prior may do, whatever his bias.
pub(crate) fn any_estimate(typical: &Measured, spread: f64) -> String {
    let error = match typical.standard_error {
        Some(e) if e > 0.0 => format!(" ± {}", format::number(e)),
        _ => String::new(),
    };
    format!(
        "An attacker who knows how values spread (a normal prior) and may be biased has, over such records, a mean squared \
         error per value of about {}{error} or more (van Trees; an estimate, the information being averaged over the measured \
         records); guessing the mean has {}.",
        format::number(typical.value),
        format::number(spread)
    )
}
