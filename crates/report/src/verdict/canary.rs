//! The verdict on a canary: can the secret be pulled out of the fine-tuned model?

use super::{Colour, Facts, Success, Verdict, decide, plain, strong};
use crate::document::canary::{Canary, Guesser, Point};
use crate::format;
use crate::words;

/// An advantage that is next to none: one in a hundred more than by guessing.
const LITTLE: f64 = 0.01;

/// The point where an attacker may gain most.
pub(crate) fn worst(c: &Canary) -> Option<&Point> {
    let allowed = |p: &Point| p.best().map_or(1.0, |b| b.success.value);
    c.points.iter().max_by(|a, b| allowed(a).total_cmp(&allowed(b)))
}

fn facts(c: &Canary) -> Facts {
    let baseline = c.secret.most_likely;
    let bounded = worst(c).map(|p| Success { success: p.best().map_or(1.0, |b| b.success.value), baseline });
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
        let mut first = vec![
            plain(format!(
                "At σ = {} and {} ({}), nobody names the secret with a probability above ",
                format::setting(p.sigma),
                format::counted(p.steps, "step"),
                words::part(p.trained)
            )),
            strong(format::share_at_most(best.success.value)),
            plain(format!(
                "; without the model it is {}, one of {} candidates.",
                format::share(c.secret.most_likely),
                format::count(c.secret.candidates)
            )),
        ];
        for (attack, name) in
            [(Guesser::Difference, "The attack of the paper"), (Guesser::Optimal, "The best attack there is")]
        {
            if let Some(a) = p.played(attack) {
                first.push(plain(format!(" {name} was right in {}.", format::share(a.success.value))));
            }
        }
        sentences.push(first);
    }
    // of each part, all noises up to the first that allows more
    let mut calm: Vec<&Point> = c.points.iter().collect();
    calm.sort_by(|a, b| a.rdp.total_cmp(&b.rdp));
    let little = |p: &Point| p.best().is_some_and(|b| b.advantage.value <= LITTLE);
    let limit = calm.iter().position(|p| !little(p)).map(|i| calm[i].rdp);
    let largest = calm.iter().take_while(|p| limit.is_none_or(|l| p.rdp < l)).last();
    if let Some(p) = largest {
        sentences.push(vec![plain(format!(
            "Up to 2T/σ² = {} nobody gains more than {} over a guess without the model, whatever is trained.",
            format::setting(p.rdp),
            format::share(LITTLE)
        ))]);
    } else {
        sentences.push(vec![plain(
            "No noise tried brings the gain over a guess below one in a hundred: choose more noise or fewer steps.",
        )]);
    }
    Verdict::new(decision, head, sentences)
}
