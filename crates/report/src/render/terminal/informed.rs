//! The informed adversary as text for a terminal.

use crate::document::informed::Informed;
use crate::format;
use crate::verdict::of_informed;
use crate::words;
use std::fmt::Write;

/// The verdict, and errors by adversary.
pub fn informed_summary(i: &Informed) -> String {
    let verdict = of_informed(i);
    let mut text = verdict.lines() + "\n";
    let _ =
        writeln!(text, "{:<24} {:>10} {:>24} {:>8} {:>12}", "adversary", "MSE", "95%", "SSIM", "known again");
    for a in &i.attacks {
        let _ = writeln!(
            text,
            "{:<24} {:>10} {:>24} {:>8} {:>12}",
            words::adversary(a.adversary),
            format::number(a.mse.value),
            format!("{} – {}", format::number(a.mse.ci_low), format::number(a.mse.ci_high)),
            a.ssim.as_ref().map_or_else(|| "–".into(), |s| format::number(s.value)),
            format::share(a.identified.value)
        );
    }
    let _ = writeln!(
        text,
        "\n{} trained at once in {}.",
        format::counted(i.learned + i.attacked, "model"),
        format::seconds(i.training_seconds)
    );
    text
}
