//! The verdict on a canary: can the secret be pulled out of the fine-tuned model?

use super::{Colour, EPSILON_CALM, Facts, PROTECT_AT, Success, Verdict, decide, plain, strong};
use crate::document::canary::{Canary, Guesser, Point};
use crate::format;
use crate::words;

/// Noises that differ by rounding alone are one.
const ROUNDING: f64 = 1e-9;

/// The point where an attacker may gain most.
pub(crate) fn worst(c: &Canary) -> Option<&Point> {
    let allowed = |p: &Point| p.best().map_or(1.0, |b| b.success.value);
    c.points.iter().max_by(|a, b| allowed(a).total_cmp(&allowed(b)))
}

/// What nobody exceeds at a point, beside a guess.
fn success(c: &Canary, p: &Point) -> Success {
    Success { success: p.best().map_or(1.0, |b| b.success.value), baseline: c.secret.most_likely }
}

/// A factor of odds in words.
fn times(factor: f64) -> String {
    match factor.is_finite() {
        true => format!("{} times", format::at_most(factor)),
        false => "without bound".into(),
    }
}

fn facts(c: &Canary) -> Facts {
    let baseline = c.secret.most_likely;
    let bounded = worst(c).map(|p| success(c, p));
    let played = c.points.iter().flat_map(|p| &p.attacks).map(|a| a.success.value);
    let observed = played.max_by(f64::total_cmp).map(|success| Success { success, baseline });
    Facts { bounded, observed, ..Facts::default() }
}

/// The verdict on a canary: the noise at which an attacker may gain most decides.
pub fn of_canary(c: &Canary) -> Verdict {
    let decision = decide(&facts(c));
    let head = match decision.colour {
        Colour::Green => "Rarely guessed at every noise tried",
        Colour::Amber => "Something may be pulled out at the least noise tried",
        Colour::Red => "The secret may be pulled out at the least noise tried",
    };
    let mut sentences = vec![];
    if let (Some(p), Some(best)) = (worst(c), worst(c).and_then(Point::best)) {
        let start = format!(
            "At σ = {} and {} ({} trained), ",
            format::setting(p.sigma),
            format::counted(p.steps, "step"),
            words::part(p.trained)
        );
        let guess = format!(
            "without the model it is {}, one of {} candidates",
            format::share(c.secret.most_likely),
            format::count(c.secret.candidates)
        );
        // A bound that rounds to certainty bounds nothing.
        let mut first = match best.success.value < 0.9995 {
            true => vec![
                plain(format!("{start}nobody names the secret with a probability above ")),
                strong(format::share_at_most(best.success.value)),
                plain(format!("; {guess}: its odds grow {} at most.", times(success(c, p).odds()))),
            ],
            false => vec![
                plain(start),
                strong("no bound keeps anybody from naming the secret for certain"),
                plain(format!("; {guess}.")),
            ],
        };
        for (attack, name) in
            [(Guesser::Difference, "The attack of the paper"), (Guesser::Optimal, "The best attack there is")]
        {
            if let Some(a) = p.played(attack) {
                let interval = [a.success.ci_low, a.success.ci_high].map(format::share).join(" to ");
                let share = format::share(a.success.value);
                first.push(plain(format!(" {name} was right in {share} (95% interval {interval}).")));
            }
        }
        sentences.push(first);
    }
    // of each part, all noises up to the first that allows more
    let mut calm: Vec<&Point> = c.points.iter().collect();
    calm.sort_by(|a, b| a.rdp.total_cmp(&b.rdp));
    let little = |p: &Point| p.best().is_some() && success(c, p).is_calm(PROTECT_AT);
    let limit = calm.iter().position(|p| !little(p)).map(|i| calm[i].rdp);
    let largest = calm.iter().take_while(|p| limit.is_none_or(|l| p.rdp < l * (1.0 - ROUNDING))).last();
    if let Some(p) = largest {
        sentences.push(vec![plain(format!(
            "Up to 2T/σ² = {} the odds of naming it grow at most {}, as under ε = 1, {}.",
            format::setting(p.rdp),
            times(EPSILON_CALM.exp()),
            match c.points.iter().all(|q| q.trained == p.trained) {
                true => format!("with {} trained", words::part(p.trained)),
                false => "whichever of the parts above is trained".into(),
            }
        ))]);
    } else {
        sentences.push(vec![plain(
            "At no noise tried do the odds of naming it stay as they would under ε = 1: choose more noise or fewer steps.",
        )]);
    }
    Verdict::new(decision, head, sentences)
}
