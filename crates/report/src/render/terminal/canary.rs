//! A canary as text for a terminal.

use crate::document::canary::{Canary, Guesser, LimitKind, Point};
use crate::format;
use crate::verdict::of_canary;
use crate::words;
use leakscope_core::claim::Observed;
use std::fmt::Write;

/// The verdict, and advantages by steps and noise.
pub fn canary_summary(c: &Canary) -> String {
    let verdict = of_canary(c);
    let mut text = verdict.lines() + "\n";
    let _ = writeln!(
        text,
        "Advantage over a guess without the model ({}), M = {}:\n",
        format::share(c.secret.most_likely),
        format::count(c.secret.candidates)
    );
    let _ = writeln!(
        text,
        "{:<10} {:>5} {:>9} {:>9} | {:>9} {:>9} {:>9} | {:>27} {:>27}",
        "trained", "steps", "σ", "2T/σ²", "Fano", "around 0", "centre", "optimal", "rise"
    );
    for p in &c.points {
        let limit = |kind| p.bound(kind).map_or_else(|| "–".into(), |b| format::at_most(b.advantage.value));
        let _ = writeln!(
            text,
            "{:<10} {:>5} {:>9} {:>9} | {:>9} {:>9} {:>9} | {:>27} {:>27}",
            words::part(p.trained),
            p.steps,
            format::number(p.sigma),
            format::number(p.rdp),
            limit(LimitKind::FanoRdp),
            limit(LimitKind::AroundZero),
            limit(LimitKind::AroundCentre),
            played(p, Guesser::Optimal),
            played(p, Guesser::Difference)
        );
    }
    text.push_str(
        "\nLeft of the second bar: no attacker exceeds it. Right: observed in the games played, with the 95% interval of each.\n",
    );
    text
}

fn played(p: &Point, attack: Guesser) -> String {
    p.played(attack).map_or_else(
        || "–".into(),
        |a| {
            let Observed { value, ci_low, ci_high, .. } = a.advantage;
            let [value, low, high] = [value, ci_low, ci_high].map(format::number);
            format!("{value} ({low} to {high})")
        },
    )
}
