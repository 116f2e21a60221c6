//! What an audit of a network comes to, in words.

use super::data::NetAudit;
use crate::format;

/// The verdict: how well the most exposed record is hidden by the noise of one step, against guessing the mean.
pub(super) fn verdict(a: &NetAudit) -> String {
    let open = a.training.as_ref().is_some_and(|t| t.privacy.is_none());
    let (class, level, text) = match hidden(a) {
        _ if !a.release.chosen => (
            "care",
            "A unit of noise",
            "<p>The model was trained without noise, so it gives away everything: the numbers are those of one step with \
             noise of standard deviation 1, to compare records by.</p>\n"
                .to_owned(),
        ),
        _ if open => (
            "care",
            "Trained in the open",
            "<p>The model was trained without noise, so nothing is promised to its records: the numbers are what one step \
             with the chosen noise would tell.</p>\n"
                .to_owned(),
        ),
        Some(h) if h >= 1.0 => ("good", "One step hides every measured record", String::new()),
        Some(h) if h >= 0.1 => ("care", "One step tells something", String::new()),
        Some(_) => ("bad", "One step gives records away", String::new()),
        None => ("care", "Measured", String::new()),
    };
    let mut text = text;
    if let (Some(d), Some(most)) = (&a.dfil, a.most_dfil.first()) {
        let times = if d.p50 > 0.0 {
            format!(", {} times the median", format::number(d.max / d.p50))
        } else {
            String::new()
        };
        text.push_str(&reconstruction(a, d.max));
        text.push_str(&format!(
            "<p>The most exposed record is number {}: a dFIL (information per value) of <b>{}</b>{times}.</p>\n",
            most.record,
            format::number(d.max)
        ));
    }
    if let Some(p) = a.training.as_ref().and_then(|t| t.privacy.as_ref()) {
        text.push_str(&format!(
            "<p>The whole run that made the model is ({}, {})-differentially private.</p>\n",
            format::at_most(p.epsilon),
            format::setting(p.delta)
        ));
    }
    if text.is_empty() {
        text.push_str(
            "<p>Gradients of the records were measured; ask for traces, η or PLIS to see leakage.</p>\n",
        );
    }
    format!(
        "<section class=\"verdict {class}\" aria-label=\"Verdict\"><p class=\"level\">{level}</p>\n{text}</section>\n"
    )
}

/// `1/dFIL` of the most exposed record over what guessing the mean achieves; at least 1 where that is no worse.
fn hidden(a: &NetAudit) -> Option<f64> {
    let d = a.dfil.as_ref()?;
    (d.max > 0.0 && a.spread > 0.0).then(|| 1.0 / (d.max * a.spread))
}

/// What an attacker can do with one step, against guessing the mean record.
fn reconstruction(a: &NetAudit, dfil: f64) -> String {
    if dfil <= 0.0 {
        return String::new();
    }
    let guess = format!("guessing the mean record has <b>{}</b>", format::number(a.spread));
    match &a.min_mse {
        Some(bound) => format!(
            "<p>No unbiased reconstruction of a measured record from one noisy step has a mean squared error per value \
             below <b>{}</b>; {guess}.</p>\n",
            format::bound(bound)
        ),
        None => format!(
            "<p>An unbiased reconstruction of the most exposed record from one noisy step has a mean squared error per \
             value of about <b>{}</b> or more; {guess}. For a bound instead of this estimate, use <b>--trace \
             exact</b>.</p>\n",
            format::number(1.0 / dfil)
        ),
    }
}
