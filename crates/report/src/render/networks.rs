//! What the numbers of a network mean, in words that page and terminal share.

use crate::document::choice::PlisOf;
use crate::document::net::NetAudit;
use crate::format;
use leakscope_core::claim::Measured;
use leakscope_core::dp::Interval;
use leakscope_core::num::Summary;

/// Of which gradient PLIS is.
pub(crate) fn plis_of(of: Option<PlisOf>) -> &'static str {
    match of {
        Some(PlisOf::Released) => "as it is released (clipped where there is a clip)",
        Some(PlisOf::Raw) | None => "before clipping",
    }
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
