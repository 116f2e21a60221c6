//! A few lines for the person at the terminal.

use super::pen::clean;
use crate::document::net::{NetAudit, TraceKind};
use crate::document::text::{TextTraining, Unit};
use crate::document::training::{Accounts, Point, Training};
use crate::format;
use crate::render::html::net::{accountants, described, interval};
use crate::render::networks;
use crate::verdict::{Verdict, accounted, below, of_net_audit, of_training};
use crate::words;
use leakscope_core::num::Summary;

fn line(out: &mut String, name: &str, text: &str) {
    // attributes are named by the caller's table
    out.push_str(&format!("{:>16}  {}\n", clean(name), clean(text)));
}

fn spread(s: &Summary) -> String {
    up_to(s, &format::number(s.max))
}

/// The same with the largest in words.
fn up_to(s: &Summary, largest: &str) -> String {
    format!("median {}, 99% below {}, largest {largest}", format::number(s.p50), format::number(s.p99))
}

fn judged(out: &mut String, verdict: &Verdict) {
    line(out, "verdict", &format!("{} ({})", verdict.headline, verdict.colour.name()));
    if let Some(by) = verdict.decided_by() {
        line(out, "because of", &by);
    }
}

/// The audit in words.
pub fn summary(audit: &NetAudit) -> String {
    let a = audit;
    let mut out = String::new();
    judged(&mut out, &of_net_audit(a));
    let right = a.accuracy.map(|v| format!(", {} right", format::share(v))).unwrap_or_default();
    line(
        &mut out,
        "network",
        &format!("{}, {}{right}", a.network.name, format::counted(a.network.parameters, "parameter")),
    );
    line(
        &mut out,
        "records",
        &format!("{} of {} measured", format::count(a.measured), format::count(a.data.records)),
    );
    let clip = a.release.clip.map_or("no clipping".to_owned(), |c| {
        format!("{} clip at {}", words::clip(a.release.clip_kind), format::setting(c))
    });
    let unit = if a.release.chosen { "" } else { " (a unit: none was chosen)" };
    line(&mut out, "release", &format!("{clip}, σ = {}{unit}", format::setting(a.release.sigma)));
    line(&mut out, "gradient norm", &spread(&a.gradient_norm));
    if let Some(d) = &a.dfil {
        let how = match a.trace {
            TraceKind::Estimate { probes } => format!(" (estimated, {probes} probes)"),
            TraceKind::Exact | TraceKind::Skip => String::new(),
        };
        line(&mut out, "dFIL", &format!("{}{how}", up_to(d, &networks::largest_dfil(a, d))));
    }
    let each = [("η", &a.eta), ("JacSens", &a.jacobian_sensitivity), ("norm of PLIS", &a.plis)];
    for (name, s) in each {
        if let Some(s) = s {
            line(&mut out, name, &spread(s));
        }
    }
    if let Some(c) = &a.compared {
        line(&mut out, "PLIS, other", &spread(&c.plis));
    }
    if let Some(r) = a.most_dfil.first() {
        line(&mut out, "most exposed", &networks::candidates(a).unwrap_or_else(|| described(r)));
    }
    for t in a.attributes.iter().take(5) {
        let of = format!("η at most {} ({})", format::number(t.eta_max), t.eta_max_record);
        line(&mut out, &t.name, &format!("{of}. {}", networks::attribute_meaning(t)));
    }
    if !a.elements.is_empty() {
        let mut order: Vec<_> = a.elements.iter().collect();
        order.sort_by(|x, y| y.information.total_cmp(&x.information).then(x.element.cmp(&y.element)));
        let top: Vec<String> = order
            .iter()
            .take(5)
            .map(|e| format!("{} ({})", e.element, format::number(e.information)))
            .collect();
        line(&mut out, "exposed values", &format!("{}: number and mean information", top.join(", ")));
    }
    if let Some(b) = &a.min_mse {
        line(
            &mut out,
            "bound",
            &format!("mean squared error per value of its unbiased estimate ≥ {}", format::bound(b)),
        );
    }
    if let Some(typical) = &a.typical_error {
        line(&mut out, "any estimate", &networks::any_estimate(typical, a.spread));
    }
    if let Some((s, by)) = a.score.as_ref().and_then(|s| Some((s, s.by.first()?))) {
        let text = format!(
            "{}: {} have longer gradients than 99% of the training records, one has a longer than a training record in {} \
             of pairs (95% interval {}; alike: 50%)",
            format::counted(s.n, "point"),
            format::share(by.above_training_p99),
            format::share(by.exceeds_training),
            interval(by)
        );
        line(&mut out, "scored", &text);
    }
    a.warnings.iter().for_each(|w| line(&mut out, "note", w));
    out
}

/// The run in words.
pub fn training_summary(training: &Training) -> String {
    let t = training;
    let mut out = String::new();
    judged(&mut out, &of_training(t));
    line(
        &mut out,
        "network",
        &format!("{}, {}", t.network.name, format::counted(t.network.parameters, "parameter")),
    );
    if let Some(p) = t.public.as_ref().and_then(|p| p.pretraining.as_ref()) {
        line(&mut out, "public", &format!("first trained on {}", networks::pretraining(p)));
    }
    if let Some(density) = t.public.as_ref().and_then(|p| p.density) {
        line(&mut out, "density", &networks::density(density));
    }
    if let Some(p) = t.public.as_ref().and_then(|p| p.perturbation.as_ref()) {
        line(&mut out, "perturbed", &networks::perturbation(p));
    }
    if let Some(text) = &t.text {
        texts(&mut out, text, t.data.records);
    }
    line(&mut out, "steps", &format!("{} of {}", format::count(t.steps), format::count(t.planned_steps)));
    if let Some(h) = t.text.as_ref().and_then(|text| text.holdout.as_ref()) {
        let (now, before) = (format::number(h.perplexity), format::number(h.perplexity_before));
        let text = format!("perplexity {now} ({before} before) of {}", format::counted(h.texts, "text"));
        line(&mut out, "held out", &text);
    }
    if let Some(p) = t.history.last() {
        progress(&mut out, t, p);
    }
    privacy(&mut out, t);
    if let Some(a) = &t.accounts {
        accounts(&mut out, a, t.data.records);
    }
    t.notes.iter().for_each(|n| line(&mut out, "note", n));
    out
}

fn texts(out: &mut String, text: &TextTraining, records: u64) {
    let rank = text.rank.map(|r| format!(" of rank {r}")).unwrap_or_default();
    line(out, "trained", &format!("{}{rank}", words::part(text.trained)));
    let of = match text.unit {
        Unit::Text => format!("{} of", format::counted(text.texts, "text")),
        Unit::User => {
            let users = format::counted(records, "user");
            format!("{users} with {} of", format::counted(text.texts, "text"))
        }
    };
    line(out, "texts", &format!("{of} {}", format::counted(text.tokens, "token")));
}

/// The losses and accuracies of the last point of the history.
fn progress(out: &mut String, t: &Training, p: &Point) {
    if let Some(loss) = p.loss {
        line(out, "loss", &format::number(loss));
    }
    if let (None, Some(loss)) = (p.accuracy, p.watched_loss) {
        let of = if t.text.is_some() { "texts" } else { "records" };
        let text = format!("{} on {} {of}", format::number(loss), t.watched_name());
        line(out, "loss on all", &text);
    }
    if let Some(a) = p.accuracy {
        let labels = match p.label_accuracy {
            Some(share) => format!(" in all their labels, {} of the labels", format::share(share)),
            None => String::new(),
        };
        let on = t.accuracy_on.name();
        line(out, "accuracy", &format!("{} of {on} records{labels}", format::share(a)));
    }
}

/// What is promised, and what was clipped and added.
fn privacy(out: &mut String, t: &Training) {
    match &t.privacy {
        Some(p) => {
            match &p.promise {
                Some(p) => {
                    let (epsilon, delta) = (format::at_most(p.epsilon), format::setting(p.delta));
                    line(out, "private", &format!("({epsilon}, {delta})-DP; {}", p.statement));
                    line(out, "accounts", &accountants(p));
                    if let Some(dropped) = p.dropped {
                        line(out, "filter", &format!("{} dropped out", format::counted(dropped, t.unit())));
                    }
                }
                None => {
                    let reason = words::withheld(p.withheld.as_ref());
                    line(out, "private", &format!("no ε is stated: {reason}"));
                }
            }
            let (kind, c, sigma) =
                (words::clip(p.clip_kind), format::setting(p.clip), format::setting(p.sigma));
            line(out, "release", &format!("{kind} clip at C = {c}, σ = {sigma}"));
        }
        None => line(out, "private", "no: no noise was added, nothing is promised"),
    }
}

/// What records gave away over the run.
fn accounts(out: &mut String, a: &Accounts, records: u64) {
    let largest = match &a.largest {
        Some(i) => networks::interval(i),
        None => format::number(a.dfil.max),
    };
    let of = accounted(a, records);
    line(out, "dFIL of the run", &format!("{} of {of}", up_to(&a.dfil, &largest)));
    if let Some(below) = below(a) {
        line(out, "most records", &below);
    }
    if a.not_drawn > 0 {
        let unseen = format::counted(a.not_drawn, "record");
        line(out, "not drawn", &format!("{unseen}: nothing was measured, what holds for all holds"));
    }
    line(out, "published factor", &spread(&a.published_dfil));
}
