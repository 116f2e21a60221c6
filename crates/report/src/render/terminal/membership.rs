//! Membership attacks as text for a terminal.

use crate::document::membership::Membership;
use crate::format;
use crate::verdict::of_membership;
use crate::words;
use std::fmt::Write;

/// The verdict, true positives by attacker and false-positive rate, and ε from canaries.
pub fn membership_summary(m: &Membership) -> String {
    let mut text = of_membership(m).lines() + "\n";
    let _ = writeln!(
        text,
        "{:<28} {:>8} {:>10} {:>22} {:>14} {:>14} {:>8}",
        "attacker", "FPR ≤", "TPR", "95%", "(ε, δ) allows", "own accounts", "area"
    );
    for (a, p) in m.attacks.iter().flat_map(|a| a.points.iter().map(move |p| (a, p))) {
        let t = &p.true_positive;
        let _ = writeln!(
            text,
            "{:<28} {:>8} {:>10} {:>22} {:>14} {:>14} {:>8}",
            words::membership_attacker(a.attacker),
            format::share(p.rate),
            format::share(t.value),
            format!("{} – {}", format::share(t.ci_low), format::share(t.ci_high)),
            p.allowed.as_ref().map_or_else(|| "–".into(), |b| format::share_at_most(b.value)),
            p.own_allowed.map_or_else(|| "–".into(), format::share_at_most),
            format::share(a.area)
        );
    }
    text
}
