//! Gradient inversion as text for a terminal.

use crate::document::inversion::{Correlation, Inversion, Leakage, Level, QualityKind};
use crate::format;
use crate::verdict::of_inversion;
use crate::words;
use leakscope_core::claim::Observed;
use std::fmt::Write;

/// The verdict, quality by noise, and rank correlations.
pub fn inversion_summary(i: &Inversion) -> String {
    let verdict = of_inversion(i);
    let mut text = verdict.lines();
    if i.levels.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\n{:>9} {:>10} {:>8} {:>8} {:>8} {:>12} {:>11} {:>12} {:>12}",
        "σ", "MSE", "SSIM", "HaarPSI", "cosine", "known again", "first layer", "any, about", "unbiased ≥"
    );
    let maybe = |x: Option<f64>| x.map_or_else(|| "–".into(), format::number);
    let value = |o: &Option<Observed>| maybe(o.as_ref().map(|o| o.value));
    for l in &i.levels {
        let _ = writeln!(
            text,
            "{:>9} {:>10} {:>8} {:>8} {:>8} {:>12} {:>11} {:>12} {:>12}",
            format::setting(l.sigma),
            format::number(l.mse.value),
            value(&l.ssim),
            value(&l.haar_psi),
            format::number(l.cosine),
            format::share(l.identified.value),
            value(&l.first_layer),
            maybe(l.van_trees.map(|v| v.value)),
            maybe(l.cramer_rao)
        );
    }
    let _ = writeln!(text, "\nGuessing the mean has a mean squared error of {}.", format::number(i.spread));
    // the page has all of them
    let told = |l: &Level, c: &Correlation| {
        let best = if l.ssim.is_some() { QualityKind::Ssim } else { QualityKind::Mse };
        c.quality == best && c.leakage != Leakage::GradientNorm
    };
    let all = i.levels.iter().flat_map(|l: &Level| l.correlations.iter().map(move |c| (l, c)));
    for (l, c) in all.filter(|(l, c)| told(l, c)) {
        let _ = writeln!(
            text,
            "σ = {}: rank correlation of {} and {} over {}: {} ({} – {})",
            format::setting(l.sigma),
            words::leakage(c.leakage),
            words::quality(c.quality),
            format::counted(c.records, "record"),
            format::number(c.rho),
            format::number(c.interval[0]),
            format::number(c.interval[1])
        );
    }
    text
}
