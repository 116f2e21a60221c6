//! The verdict on bounds: what no attacker can beat, beside what attacks achieve.

use super::audit::of_secret;
use super::{Colour, Facts, Noise, Reservations, Success, Verdict, decide, plain, strong};
use crate::document::attack::AttackResult;
use crate::document::bound::{CurvePoint, FromData, Row, SecretBounds};
use crate::format;
use crate::words;
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::bound::table::Optimal;

/// What a page of bounds prints at the noise that was asked for; pages of curves alone have no such noise.
pub(crate) fn facts(f: &SecretBounds) -> Facts {
    let (bounded, observed) = of_secret(f);
    let baseline = f.most_likely.unwrap_or(0.0);
    let optimal = f.optimal.as_ref().map(|o| match o {
        Optimal::Exact(x) => *x,
        Optimal::Observed(o) => o.value,
    });
    let at = f.data.as_ref().and_then(|d| d.curve.iter().find(|p| Some(p.sigma) == f.sigma));
    let optimal = optimal.map(|success| Success { success, baseline });
    let stronger = |a: Option<Success>, b: Option<Success>| match (a, b) {
        (Some(a), Some(b)) => Some(if a.told_of_two() >= b.told_of_two() { a } else { b }),
        (one, other) => one.or(other),
    };
    Facts {
        noise: if f.sigma.is_some_and(|s| s <= 0.0) { Noise::Absent } else { Noise::Chosen },
        open: Reservations {
            encoding_of_records: f.data.as_ref().is_some_and(|d| d.scaling_given),
            binned: f.data.as_ref().is_some_and(|d| d.binned),
            ..Reservations::default()
        },
        bounded,
        observed: stronger(observed, optimal),
        epsilon: at.map(|p| p.epsilon_secret).or(f.epsilon),
        ..Facts::default()
    }
}

/// The verdict on bounds.
pub fn of_bound(f: &SecretBounds) -> Verdict {
    let decision = decide(&facts(f));
    if !f.sentences.is_empty() || f.bounds.is_empty() {
        let sentences = f.sentences.iter().map(|s| vec![plain(s.clone())]).collect();
        return Verdict::new(decision, "In short", sentences);
    }
    let best = &f.bounds[0];
    let head = match decision.colour {
        Colour::Green => "Little to gain for any attacker",
        Colour::Amber => "An attacker may gain something",
        Colour::Red => "Not protected: an attacker may gain much",
    };
    let prior = f.most_likely.unwrap_or(0.0);
    let mut first = match &f.data {
        Some(d) => of_table(f, d, best, prior),
        None => vec![
            plain("No attacker guesses the secret with a probability above "),
            strong(format::share_at_most(best.success)),
            plain(format!("; without the release it is {}.", format::share(prior))),
        ],
    };
    // The black box does not go by the model alone, and may win more often.
    let alone = if f.data.is_some() { " that goes by the model alone" } else { "" };
    match &f.optimal {
        Some(Optimal::Exact(x)) => {
            first.push(plain(format!(" The best attack{alone} achieves {}.", format::share(*x))));
        }
        Some(Optimal::Observed(o)) => first.push(plain(format!(
            " The best attack{alone} was observed at {} ({} to {}) in {}.",
            format::share(o.value),
            format::share(o.ci_low),
            format::share(o.ci_high),
            format::counted(o.trials, "trial")
        ))),
        None => {}
    }
    // What the bound covers belongs beside it, where an attack on the page wins more often.
    if let Some(covers) = f.data.as_ref().and_then(|d| beaten(f, d, best)) {
        first.push(plain(" "));
        first.extend(covers);
    }
    let mut sentences = vec![first];
    if let Some((d, sigma)) = f.data.as_ref().zip(calm_noise(f, decision.colour)) {
        let sigma = format::typed_at_least(sigma);
        sentences.push(vec![
            strong(format!("σ = {sigma}, now {}", format::setting(f.sigma.unwrap_or(0.0)))),
            plain(format!(
                ", makes this page green, the least of those tried here: run it again with ⟨sigma={sigma}⟩. That is about \
                 {} alone; what hides every attribute, leakscope audit says.",
                d.secret.name
            )),
        ]);
    }
    // What it is in words, where there are such: its formula stands in the table of bounds.
    let is = words::gloss(best.name).map_or_else(|| format!(": {}", best.source), |g| format!(" ({g})"));
    sentences.push(vec![plain(format!("The bound is {}{is}.", words::bound(best)))]);
    Verdict::new(decision, head, sentences)
}

/// The smallest noise of the curve, above the one that was asked for, at which the page would be green.
fn calm_noise(f: &SecretBounds, colour: Colour) -> Option<f64> {
    let d = f.data.as_ref().filter(|d| d.noise.is_none() && colour != Colour::Green)?;
    let now = f.sigma?;
    let calm = |point: &&CurvePoint| {
        let (sigma, optimal) = (Some(point.sigma), point.optimal.clone().map(Optimal::Observed));
        let there = SecretBounds { sigma, bounds: point.bounds.clone(), optimal, ..f.clone() };
        decide(&facts(&there)).colour == Colour::Green
    };
    let more = d.curve.iter().filter(|p| p.sigma > now);
    more.filter(calm).map(|p| p.sigma).min_by(f64::total_cmp)
}

fn of_table(f: &SecretBounds, d: &FromData, best: &Row, prior: f64) -> Vec<super::Span> {
    let worst = f.bounds.iter().filter_map(|b| b.worst).map(|w| w.success).fold(1.0, f64::min);
    let bins = if d.binned { ", every value taken for the mean of its bin," } else { "" };
    vec![
        plain(format!("Nobody who goes by the model alone guesses {}{bins} of more than ", d.secret.name)),
        strong(format::share_at_most(best.success)),
        plain(format!(
            " of {} right, in expectation; without the model it is {}. The record that is easiest to guess is guessed with \
             probability ",
            format::counted(d.records, "record"),
            format::share(prior)
        )),
        strong(format::share_at_most(worst)),
        plain(" at most."),
    ]
}

/// Where an attack on the same page wins more often than the bound: what the bound covers and what not.
fn beaten(f: &SecretBounds, d: &FromData, best: &Row) -> Option<Vec<super::Span>> {
    let more = |a: &&AttackResult| Some(a.sigma) == f.sigma && a.accuracy.value > best.success;
    let attack =
        d.attacks.iter().filter(more).max_by(|a, b| a.accuracy.value.total_cmp(&b.accuracy.value))?;
    let share = format::share(attack.accuracy.value);
    Some(vec![plain(match attack.attack {
        Attacker::BlackBox => format!(
            "The black box guesses {share}: it also infers {} from the record’s other values and its label, as it would for \
             people who are not in the table. The bound covers what the model gives away beyond that.",
            d.secret.name
        ),
        Attacker::WhiteBox | Attacker::WhiteBoxPrior | Attacker::Informed => format!(
            "The {} was observed at {share}, above the bound on the mean, as one run in forty is by chance even of an attack \
             that attains it.",
            words::attacker(attack.attack)
        ),
    })])
}
