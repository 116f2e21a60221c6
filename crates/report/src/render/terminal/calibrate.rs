//! What a calibration found, in a line or two.

use crate::document::calibrate::{Aim, Calibration, Leakage, Scored, Utility};
use crate::format::{self, five_digits, five_digits_to_type};
use crate::noise_words;
use crate::words;
use leakscope_core::dp::Target;

/// A calibration in words, numbers rounded to the safe side.
pub fn calibration(calibration: &Calibration) -> String {
    let warnings = calibration.model.iter().flat_map(|m| &m.warnings);
    warnings.fold(answer(calibration), |text, warning| format!("{text}{warning}\n"))
}

fn answer(calibration: &Calibration) -> String {
    let sigma = five_digits_to_type(calibration.sigma);
    match (&calibration.target, &calibration.training) {
        (Aim::Training(target), Some(t)) => format!(
            "sigma {sigma}, rate {}, {} steps: {} is at most {} ({})\n",
            five_digits(t.rate, false),
            t.steps,
            of_target(*target),
            five_digits(calibration.achieved, true),
            words::adjacency(t.adjacency)
        ),
        (Aim::Training(target), None) => {
            format!(
                "sigma {sigma}: {} is at most {}\n",
                of_target(*target),
                five_digits(calibration.achieved, true)
            )
        }
        (Aim::Leakage(Leakage::Guessing { secret: None, most_likely, .. }), _) => format!(
            "sigma {sigma}: no attacker guesses the secret with a probability above {} ({} without the release)\n",
            five_digits(calibration.achieved, true),
            format::share(most_likely.unwrap_or(0.0))
        ),
        (Aim::Leakage(Leakage::Goals { .. }), _) => shaped(calibration),
        (Aim::Leakage(target), _) => {
            let (quantity, from_below) = of_leakage(target);
            let achieved = five_digits(calibration.achieved, !from_below);
            let cost = calibration.model.as_ref().map(|m| cost(&m.utility)).unwrap_or_default();
            format!("sigma {sigma} on every coefficient: {quantity} {achieved}\n{cost}")
        }
    }
}

fn of_target(target: Target) -> String {
    match target {
        Target::Epsilon { delta, .. } => format!("ε at δ = {delta:e}"),
        Target::Advantage { .. } => "membership advantage".into(),
        Target::TruePositiveRate { false_positive, .. } => {
            format!("the true-positive rate at {false_positive}")
        }
        Target::Reconstruction { .. } => "the probability of guessing the secret".into(),
    }
}

/// What is bounded, and whether from below.
fn of_leakage(target: &Leakage) -> (String, bool) {
    match target {
        Leakage::Eta { statistic, .. } => (format!("{} of η over records is", statistic.name()), false),
        Leakage::Sd { attribute, .. } => {
            (format!("every unbiased estimate of {attribute} is off by at least"), true)
        }
        Leakage::Goals { .. } => ("the largest η over its target is".into(), false),
        Leakage::Guessing { secret, every_record, .. } => {
            let over = if *every_record == Some(true) { "of any record" } else { "on average over records" };
            let secret = secret.as_deref().unwrap_or("the secret");
            (format!("the probability of guessing {secret} {over} is at most"), false)
        }
    }
}

/// Noise with a shape, and a line for each shape.
fn shaped(calibration: &Calibration) -> String {
    let (Some(noise), Some(model)) = (&calibration.noise, &calibration.model) else { return String::new() };
    let mut out = format!(
        "{} noise: {}\nit costs as much as isotropic noise of sigma {}; {}",
        noise_words::shape(noise.shape),
        noise_words::goals(noise),
        five_digits_to_type(calibration.sigma),
        cost(&model.utility)
    );
    if let Some(instead) = &noise.instead {
        out.push_str(&format!("{instead}\n"));
    }
    out.push_str(&format!(
        "what each shape costs, added to {}:\n",
        noise_words::cost_unit(model.subject.family)
    ));
    for s in &noise.shapes {
        let value = s
            .points
            .first()
            .map(|p| format!("; {} {}", model.utility.metric.name(), format::number(p.value)));
        out.push_str(&format!(
            "  {:<9} {}: isotropic noise costs {}, the cheapest at least 1/{} of it; its shape gives away {} of η²{}\n",
            noise_words::shape(s.shape),
            five_digits(s.cost, true),
            format::times(s.gain),
            noise_words::above_cheapest(s.gap).trim_start_matches('×'),
            format::share_at_most(s.covariance_information),
            value.unwrap_or_default()
        ));
    }
    for d in &noise.directions {
        out.push_str(&format!("{}\n", noise_words::direction(d)));
    }
    out
}

fn cost(u: &Utility) -> String {
    let rows = match u.on {
        Scored::HeldOut => "held-out rows",
        Scored::Training => "the training rows (none were held out)",
    };
    format!(
        "expected {} on {rows} {}, {} without noise, {} of a model without columns\n",
        u.metric.name(),
        format::number(u.at_sigma),
        format::number(u.without_noise),
        format::number(u.constant_model)
    )
}
