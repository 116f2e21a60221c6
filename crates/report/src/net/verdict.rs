//! What an audit of a network comes to, in words.

use super::data::{Accounts, NetAudit, TraceKind};
use crate::format;

/// The verdict: how well the most exposed record is hidden, over the run where its accounts were kept, else by the noise
/// of one step, against guessing the mean.
pub(super) fn verdict(a: &NetAudit) -> String {
    let open = a.training.as_ref().is_some_and(|t| t.privacy.is_none());
    let run = accounts(a);
    let what = if run.is_some() { "The run" } else { "One step" };
    let (class, level, text) = match hidden(a, run) {
        _ if !a.release.chosen => (
            "care",
            "A unit of noise".to_owned(),
            "<p>The model was trained without noise, so it gives away everything: the numbers are those of one step with \
             noise of standard deviation 1, to compare records by.</p>\n"
                .to_owned(),
        ),
        _ if open => (
            "care",
            "Trained in the open".to_owned(),
            "<p>The model was trained without noise, so nothing is promised to its records: the numbers are what one step \
             with the chosen noise would tell.</p>\n"
                .to_owned(),
        ),
        Some(h) if h >= 1.0 && known(a) => {
            ("good", "One step hides every measured record, on average per value".to_owned(), on_average())
        }
        Some(h) if h >= 1.0 => ("care", format!("{what} tells little, on average per value"), on_average()),
        Some(h) if h >= 0.1 => ("care", format!("{what} tells something"), String::new()),
        Some(_) => ("bad", format!("{what} gives records away"), String::new()),
        None => ("care", "Measured".to_owned(), String::new()),
    };
    let mut text = text;
    text.push_str(&over_run(a, run));
    if let (Some(d), Some(most)) = (&a.dfil, a.most_dfil.first()) {
        let times = if d.p50 > 0.0 {
            format!(", {} times the median", format::number(d.max / d.p50))
        } else {
            String::new()
        };
        text.push_str(&reconstruction(a, d.max));
        text.push_str(&format!(
            "<p>The most exposed record of one step is number {}: a dFIL (information per value) of <b>{}</b>{times}.</p>\n",
            most.record,
            format::number(d.max)
        ));
    }
    if let Some(eta) = a.eta.as_ref().map(|e| e.max).filter(|e| *e > 0.0) {
        text.push_str(&format!(
            "<p>Along the direction that one step tells best, an unbiased estimate has a standard deviation of about \
             <b>{}</b> or more; values deviate from their mean by {}.</p>\n",
            format::number(1.0 / eta),
            format::number(a.spread.sqrt())
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

/// The run's accounts, where they speak of what is audited: the same records and secret, the same clip and noise.
fn accounts(a: &NetAudit) -> Option<&Accounts> {
    let t = a.training.as_ref()?;
    let p = t.privacy.as_ref()?;
    let (r, d) = (&a.release, &a.data);
    let same = t.label_secret == a.label_secret
        && (t.data.records, t.data.normalize) == (d.records, d.normalize)
        && (&p.clip_kind, Some(p.clip), p.sigma) == (&r.clip_kind, r.clip, r.sigma);
    t.accounts.as_ref().filter(|_| same)
}

/// `1/dFIL` of the most exposed record over what guessing the mean achieves; at least 1 where that is no worse.
fn hidden(a: &NetAudit, run: Option<&Accounts>) -> Option<f64> {
    let most = run.map(|r| r.dfil.max).or(a.dfil.as_ref().map(|d| d.max))?;
    (most > 0.0 && a.spread > 0.0).then(|| 1.0 / (most * a.spread))
}

/// Whether what hides records is known and not only estimated: the trace is exact, the worst direction (where it was
/// measured) is hidden too, and one step is all there was. Accounts of runs are estimates.
fn known(a: &NetAudit) -> bool {
    let every_direction = a.eta.as_ref().is_none_or(|e| e.max.powi(2) * a.spread <= 1.0);
    a.trace == TraceKind::Exact && every_direction && a.training.as_ref().is_none_or(|t| t.steps <= 1)
}

/// What the level rests on.
fn on_average() -> String {
    "<p>On average per value, against unbiased estimates, guessing the mean record does as well. A single value or \
     direction may be told better, and so may a record by whoever knows what such records are like.</p>\n"
        .to_owned()
}

/// What the whole run tells, or that it tells more than one step.
fn over_run(a: &NetAudit, run: Option<&Accounts>) -> String {
    let Some(t) = a.training.as_ref().filter(|t| t.privacy.is_some() && t.steps > 1) else {
        return String::new();
    };
    let steps = format::count(t.steps);
    match run {
        Some(r) if r.dfil.max > 0.0 => format!(
            "<p>Over all {steps} steps of the run, an unbiased reconstruction of the most exposed record has a mean squared \
             error per value of about <b>{}</b> or more (an estimate: accounts are kept by random probes).</p>\n",
            format::number(1.0 / r.dfil.max)
        ),
        Some(_) => String::new(),
        None => {
            let kept =
                if t.accounts.is_none() { "; train with <b>--track</b> to have it added up" } else { "" };
            format!(
                "<p>The run made {steps} steps, and this is what one of them tells: over the run it adds up{kept}.</p>\n"
            )
        }
    }
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
