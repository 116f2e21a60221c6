//! The verdict on gradient inversion: what was reconstructed, as observed and no more.

use super::{Colour, Facts, Noise, Span, Success, Verdict, decide, plain, strong};
use crate::document::inversion::{Inversion, Level};
use crate::format;

/// The levels that the colour is about: the noise of the run, or the one asked for in its place, and what is above it, where that was
/// tried; all of them elsewhere. Less noise is shown for comparison.
fn own_levels(i: &Inversion) -> &[Level] {
    let own = i.attack.sigma.and_then(|own| i.levels.iter().position(|l| l.sigma == own));
    &i.levels[own.unwrap_or(0)..]
}

/// What the page prints: the level at which reconstructions are known again most often.
pub(crate) fn facts(i: &Inversion) -> Facts {
    let levels = own_levels(i);
    let certain = levels.iter().any(|l| is_given_away(i, l)).then_some(1.0);
    let most = levels.iter().map(|l| l.identified.value).chain(certain).max_by(f64::total_cmp);
    let noise = if levels.iter().any(|l| l.sigma <= 0.0) || i.gradient.is_some() {
        Noise::Absent
    } else {
        Noise::Chosen
    };
    Facts { noise, observed: most.map(|success| Success { success, baseline: 0.5 }), ..Facts::default() }
}

/// Whether the first layer gives records away: one step is off by less than a tenth of what records differ by, or, where one record
/// is all that there is, of what its values do.
fn is_given_away(i: &Inversion, l: &Level) -> bool {
    let [low, high] = i.attack.range;
    let differ = if i.spread > 0.0 { i.spread } else { (high - low).powi(2) / 12.0 };
    l.first_layer.as_ref().is_some_and(|f| f.value < 0.01 * differ)
}

/// A reconstruction is known again clearly more often than by a coin toss.
fn known_again(l: &Level) -> bool {
    l.identified.ci_low > 0.5
}

/// The verdict on gradient inversion.
pub fn of_inversion(i: &Inversion) -> Verdict {
    let decision = decide(&facts(i));
    let mut sentences = vec![];
    sentences.extend(of_first_layer(i));
    sentences.extend(i.levels.first().map(|l| at_least_noise(i, l)));
    sentences.extend(at_own_noise(i));
    if decision.colour == Colour::Red && own_levels(i).iter().any(|l| l.sigma <= 0.0) {
        sentences.push(vec![plain(
            "Without noise a gradient hides nothing from a better attack, whatever this one found.",
        )]);
    }
    sentences.extend(against_coin(i));
    if let Some(g) = &i.gradient {
        sentences.push(vec![plain(format!(
            "The gradient of the reconstruction has a cosine of {} with the one given.",
            format::number(g.cosine)
        ))]);
    }
    sentences.push(vec![plain(
        "This is the result of a particular attack. A better attack may do better: what it did not find is no guarantee.",
    )]);
    let head = head(i, decision.colour);
    Verdict::new(decision, head, sentences)
}

fn head(i: &Inversion, colour: Colour) -> &'static str {
    match (&i.gradient, colour) {
        (Some(_), _) => "A record was reconstructed from the gradient",
        (None, Colour::Red) if own_levels(i).iter().any(|l| is_given_away(i, l)) => {
            "The first layer gives records away"
        }
        (None, Colour::Red) if own_levels(i).iter().any(known_again) => {
            "Records are reconstructed from their gradients"
        }
        (None, Colour::Red) => "Nothing hides the records",
        (None, Colour::Amber | Colour::Green) if own_levels(i).len() < i.levels.len() => {
            "At the noise that counts this attack did not reconstruct records"
        }
        (None, Colour::Amber | Colour::Green) => "This attack did not reconstruct records",
    }
}

/// What the gradient of the first layer gives away without a search.
fn of_first_layer(i: &Inversion) -> Option<Vec<Span>> {
    let (l, f) = i.levels.iter().rev().find_map(|l| {
        let first = l.first_layer.as_ref().filter(|_| is_given_away(i, l))?;
        Some((l, first))
    })?;
    Some(vec![
        strong("The gradient of the first layer gives a record in one step, without any search"),
        plain(format!(
            ": {}, the mean squared error is {} (guessing the mean: {}).",
            if l.sigma > 0.0 {
                format!("at σ = {}", format::setting(l.sigma))
            } else {
                "without noise".into()
            },
            format::number(f.value),
            format::number(i.spread)
        )),
    ])
}

/// Where least noise was tried.
fn at_least_noise(i: &Inversion, l: &Level) -> Vec<Span> {
    let noise = match l.sigma > 0.0 {
        true => format!("At the least noise tried, σ = {},", format::setting(l.sigma)),
        false => "Without noise".to_owned(),
    };
    let alike =
        l.ssim.as_ref().map(|s| format!(" and a structural similarity of {}", format::number(s.value)));
    vec![
        plain(format!(
            "{noise} reconstructions of {} have a mean squared error of {} (guessing the mean: {}){}, and ",
            format::counted(i.attacked, "record"),
            format::number(l.mse.value),
            format::number(i.spread),
            alike.unwrap_or_default()
        )),
        strong(format::share(l.identified.value)),
        plain(format!(
            " of them ({} – {}) are nearer to their own record than to another one; a coin toss: 50%.",
            format::share(l.identified.ci_low),
            format::share(l.identified.ci_high)
        )),
    ]
}

/// At that noise, where less was tried too.
fn at_own_noise(i: &Inversion) -> Option<Vec<Span>> {
    let own = own_levels(i).first().filter(|_| own_levels(i).len() < i.levels.len())?;
    Some(vec![
        plain(format!(
            "The colour is about the noise of the run or the one asked for, σ = {}; less is shown for comparison. There ",
            format::setting(own.sigma)
        )),
        strong(format::share(own.identified.value)),
        plain(format!(
            " ({} – {}) are nearer to their own record than to another one.",
            format::share(own.identified.ci_low),
            format::share(own.identified.ci_high)
        )),
    ])
}

/// From which noise on the attack does not beat the coin.
fn against_coin(i: &Inversion) -> Option<Vec<Span>> {
    let noisy: Vec<&Level> = i.levels.iter().filter(|l| l.sigma > 0.0).collect();
    match (noisy.iter().find(|l| !known_again(l)), noisy.last()) {
        (Some(l), _) => Some(vec![plain(format!(
            "From σ = {} on this attack does not clearly beat the coin.",
            format::setting(l.sigma)
        ))]),
        (None, Some(_)) => Some(vec![plain("At every noise tried it clearly beats the coin: choose more.")]),
        (None, None) => None,
    }
}
