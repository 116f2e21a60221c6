//! What any attacker can guess: a secret and what the attacker sees in, a [`SecretBounds`] out.
//!
//! | module | question |
//! |---|---|
//! | this one | one secret behind one mechanism |
//! | [`curve`] | advantage against ε for several numbers of candidates; every bound against the noise (Guo fig. 2, 3) |
//! | [`data`] | a column of a table as the secret, refitted models as its encodings (Guo fig. 4) |

pub mod curve;
pub mod data;
mod guesses;
mod noise_figures;
mod request;

pub(crate) use guesses::Guesses;
pub use request::{BoundRequest, CurveKind, MechanismKind, answer};

use crate::Result;
use leakscope_core::bound::table::{Optimal, Simulation};
use leakscope_core::bound::{Channel, Encodings, Prior, bounds, estimation};
use leakscope_core::dp::Accountant;
use leakscope_report::bound::{Estimation, Row, SCHEMA, SecretBounds};
use leakscope_report::format::{self, share, share_at_most};
use leakscope_report::verdict::of_bound;
use leakscope_report::words::{self, adjacency, release};
use std::fmt::Write;

/// The δ of the ε that is shown beside a success.
pub(crate) const DELTA: f64 = 1e-5;

/// What the attacker sees of the secret.
#[derive(Debug, Clone)]
pub enum Observation {
    /// Its encoding plus Gaussian noise.
    Gaussian {
        /// One vector per candidate.
        encodings: Encodings,
        /// Standard deviation of the noise.
        sigma: f64,
    },
    /// The secret, or with this probability a uniform draw.
    RandomisedResponse {
        /// Probability of a uniform draw.
        noise: f64,
    },
    /// The output of private releases over data that hold the secret.
    Private(Accountant),
    /// The output of anything with a Rényi divergence ε at order α.
    Renyi {
        /// Order, at least 1.
        alpha: f64,
        /// Divergence, in nats.
        epsilon: f64,
    },
}

impl Observation {
    fn channel(&self) -> Channel<'_> {
        match self {
            Self::Gaussian { encodings, sigma } => Channel::Gaussian { encodings, sigma: *sigma },
            Self::RandomisedResponse { noise } => Channel::RandomisedResponse { noise: *noise },
            Self::Private(accountant) => Channel::Private(accountant),
            Self::Renyi { alpha, epsilon } => Channel::Renyi { alpha: *alpha, epsilon: *epsilon },
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Gaussian { encodings: Encodings::OneHot, sigma } => {
                format!("one-hot encodings plus Gaussian noise, σ = {}", format::setting(*sigma))
            }
            Self::Gaussian { sigma, .. } => {
                format!("encodings plus Gaussian noise, σ = {}", format::setting(*sigma))
            }
            Self::RandomisedResponse { noise } => {
                format!("randomised response, noise {}", format::setting(*noise))
            }
            Self::Renyi { alpha, epsilon } => {
                let (alpha, epsilon) = (format::setting(*alpha), format::setting(*epsilon));
                format!("anything with Rényi divergence ε = {epsilon} at order {alpha}")
            }
            Self::Private(a) => {
                let steps: Vec<String> = a.steps().iter().map(|&(m, n)| release(m, n)).collect();
                format!("{}; {}", steps.join("; "), adjacency(a.adjacency()))
            }
        }
    }
}

/// An answer as JSON, which says whose it is where it was computed on data.
pub fn document(bounds: &SecretBounds) -> String {
    match bounds.is_owners() {
        true => leakscope_report::owners_document(bounds),
        false => leakscope_report::document(bounds),
    }
}

/// An empty answer about a setting.
fn empty(setting: String) -> SecretBounds {
    SecretBounds {
        schema: SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        setting,
        sentences: vec![],
        candidates: None,
        most_likely: None,
        sigma: None,
        bounds: vec![],
        optimal: None,
        estimation: vec![],
        typical: vec![],
        epsilon: None,
        counted: false,
        data: None,
        figures: vec![],
        seed: None,
        warnings: vec![],
        redact: false,
    }
}

/// Every bound on a secret with this prior.
pub fn run(prior: &Prior, observation: &Observation, simulation: Option<Simulation>) -> Result<SecretBounds> {
    let table = bounds(prior, observation.channel(), simulation)?;
    let sigma = match observation {
        Observation::Gaussian { sigma, .. } => Some(*sigma),
        Observation::RandomisedResponse { .. } | Observation::Private(_) | Observation::Renyi { .. } => None,
    };
    crate::output::complete(SecretBounds {
        candidates: Some(table.candidates),
        most_likely: Some(table.most_likely),
        sigma,
        bounds: table.bounds.iter().map(Row::of).collect(),
        epsilon: match observation {
            Observation::Private(accountant) => Some(accountant.epsilon(DELTA)?.upper.min(f64::MAX)),
            Observation::Gaussian { .. }
            | Observation::RandomisedResponse { .. }
            | Observation::Renyi { .. } => None,
        },
        optimal: table.optimal,
        seed: simulation.map(|s| s.seed),
        ..empty(observation.in_words())
    })
}

/// Bounds on estimates of a number with Fisher information loss `eta`, and with a normal prior of a spread.
pub fn of_eta(eta: f64, spread: Option<f64>) -> SecretBounds {
    let mut document = empty(format!("a number with information loss η = {}", format::setting(eta)));
    let unit = "coded units";
    document.estimation.push(Estimation::of("unbiased estimate", estimation::deviation(eta, 1.0), unit));
    if let Some(spread) = spread {
        let attacker = format!("any estimate, by somebody who knows it to ±{}", format::setting(spread));
        document.estimation.push(Estimation::of(
            &attacker,
            estimation::any_deviation(eta * eta, spread),
            unit,
        ));
    }
    document
}

/// A screenful of text.
pub fn summary(f: &SecretBounds) -> String {
    // What stands in the place of a verdict is among the lines below.
    let mut text = match f.sentences.is_empty() && !f.bounds.is_empty() {
        true => of_bound(f).lines() + "\n",
        false => String::new(),
    };
    if let (Some(candidates), Some(most_likely)) = (f.candidates, f.most_likely) {
        let _ = match &f.data {
            Some(d) => writeln!(
                text,
                "Guessing {} of {} ({} values); without the model {}. Share guessed right, in expectation, at most{}:\n",
                d.secret.name,
                format::counted(d.records, "record"),
                format::count(candidates),
                share(most_likely),
                f.sigma.map_or_else(String::new, |s| format!(" at σ = {}", format::setting(s)))
            ),
            None if f.bounds.is_empty() => writeln!(text, "{}", f.setting),
            None => writeln!(
                text,
                "Guessing one of {} values ({}); without the model {}.\nNo attacker guesses more often than, tightest \
                 first:\n",
                format::count(candidates),
                f.setting,
                share(most_likely)
            ),
        };
    }
    for b in &f.bounds {
        let worst =
            b.worst.map_or_else(String::new, |w| format!("  easiest record {:>7}", share_at_most(w.success)));
        let _ = writeln!(
            text,
            "  {:>7}  advantage {:>9}{worst}  {} ({})",
            share_at_most(b.success),
            format::at_most(b.advantage),
            words::bound(b),
            b.source
        );
    }
    best_attack(f, &mut text);
    for e in &f.estimation {
        let error = format::plus_minus(&format::bound(&e.error), Some(&e.unit));
        let _ = writeln!(text, "  {error} at least: {} ({})", e.attacker, e.source);
    }
    for e in &f.typical {
        let error = format::plus_minus(&format::number(e.error.value), Some(&e.unit));
        let _ = writeln!(text, "  about {error}, no bound: {}", e.attacker);
    }
    attacks(f, &mut text);
    for sentence in &f.sentences {
        let _ = writeln!(text, "{sentence}");
    }
    curves(f, &mut text);
    for warning in &f.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

/// What the best attack achieves.
fn best_attack(f: &SecretBounds, text: &mut String) {
    let alone = if f.data.is_some() { " that goes by the model alone" } else { "" };
    match &f.optimal {
        Some(Optimal::Exact(value)) => {
            let _ = writeln!(text, "\nThe best attack{alone} achieves {}.", share(*value));
        }
        Some(Optimal::Observed(o)) => {
            let (low, high) = (share(o.ci_low), share(o.ci_high));
            let _ = writeln!(
                text,
                "\nThe best attack{alone} was observed at {} ({low} to {high}, {}).",
                share(o.value),
                format::counted(o.trials, "trial")
            );
        }
        None => {}
    }
}

/// What attacks on the table did.
fn attacks(f: &SecretBounds, text: &mut String) {
    if let Some(d) = &f.data {
        let at = |a: &&leakscope_report::attack::AttackResult| f.sigma.is_none_or(|s| a.sigma == s);
        for a in d.attacks.iter().filter(at) {
            let _ = writeln!(
                text,
                "  observed, no guarantee: {} at σ = {} right {} of the time, advantage {}",
                a.attack.name(),
                format::setting(a.sigma),
                share(a.accuracy.value),
                format::number(a.advantage.value)
            );
        }
    }
}

/// The ends of curves that stand without a bound.
fn curves(f: &SecretBounds, text: &mut String) {
    if !f.figures.is_empty() && f.bounds.is_empty() {
        for s in f.figures.iter().flat_map(|x| &x.series) {
            if let (Some(a), Some(b)) = (s.points.first(), s.points.last()) {
                let n = |x: f64| format::number(x);
                let _ =
                    writeln!(text, "  {:<34} {} at {} … {} at {}", s.name, n(a.y), n(a.x), n(b.y), n(b.x));
            }
        }
    }
}
