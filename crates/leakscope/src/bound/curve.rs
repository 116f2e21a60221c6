//! Curves that need no table: advantage against ε for several numbers of candidates (Guo fig. 2), and every bound
//! against the noise beside the optimal attack (Guo fig. 3).

use super::{Observation, empty, run};
use crate::{Failure, Result};
use leakscope_core::bound::table::{Optimal, Simulation};
use leakscope_core::bound::{Encodings, Prior, fano};
use leakscope_core::claim::{Bound, Observed, Theorem};
use leakscope_core::dp::{Adjacency, Mechanism, gaussian};
use leakscope_report::bound::{Row, SecretBounds};
use leakscope_report::figure::{Axis, Figure, Level, Series};
use leakscope_report::format;
use leakscope_report::words;

/// Bounds that are drawn, in this order; a chart tells eight curves apart and the last is the attack's.
const DRAWN: [Theorem; 11] = [
    Theorem::BestCentre,
    Theorem::TradeOff,
    Theorem::FanoExact,
    Theorem::FanoMonteCarlo,
    Theorem::FanoTheorem2,
    Theorem::FanoRdp,
    Theorem::Salamatian,
    Theorem::Balle,
    Theorem::FanoReference,
    Theorem::FanoPairwise,
    Theorem::OneCentre,
];

/// The numbers of candidates of Guo's figure 2.
pub const FIG_2: [u64; 7] = [2, 10, 100, 1_000, 100_000, 10_000_000, 10_000_000_000];

/// Advantage against the ε of (1, ε)-Rényi DP, one curve for each number of equally likely candidates.
pub fn against_epsilon(candidates: &[u64], epsilons: &[f64]) -> Result<SecretBounds> {
    if let Some(e) = epsilons.iter().find(|e| !(**e >= 0.0 && e.is_finite())) {
        return Err(Failure::number("at", e, "ε is a number, not negative"));
    }
    let mut series = vec![];
    for &m in candidates {
        let prior = Prior::uniform(m)?;
        let at = |&e: &f64| {
            let advantage = prior.advantage(fano::success(&prior, e));
            (e, Bound::share_at_most(advantage, Theorem::FanoRdp))
        };
        series.push(Series::bound(&format!("M = {}", format::count(m)), epsilons.iter().map(at)));
    }
    let figure = Figure {
        id: "epsilon".into(),
        title: "Advantage against ε".into(),
        caption: "Largest advantage of any attacker who guesses one of M equally likely values behind a mechanism with \
                  Rényi divergence ε at order 1, by Fano’s inequality (Guo et al. 2022, fig. 2). The more values, the \
                  longer a large ε still protects."
            .into(),
        x: Axis::linear("ε of Rényi DP at order 1, nats"),
        y: Axis::linear("advantage, at most").of_shares(),
        series,
        levels: vec![],
        chosen: None,
    };
    let half = |s: &Series| s.points.iter().rev().find(|p| p.y < 0.5).map(|p| p.x);
    let sentences = figure.series.iter().map(|s| match half(s) {
        Some(e) => format!(
            "{}: the advantage is below one half up to ε = {} (of those drawn).",
            s.name,
            format::setting(e)
        ),
        None => format!("{}: the advantage is not below one half at any ε that is drawn.", s.name),
    });
    let (sentences, setting) = (sentences.collect(), "any mechanism with Rényi DP at order 1".to_owned());
    Ok(SecretBounds { sentences, figures: vec![figure], ..empty(setting) })
}

/// What varies along the horizontal axis.
#[derive(Debug, Clone)]
pub enum Varied {
    /// The standard deviation of Gaussian noise on these encodings.
    Sigma(Encodings),
    /// The probability of a uniform draw of randomised response.
    Noise,
}

impl Varied {
    /// Values to draw where none are given: Guo's ranges.
    pub fn grid(&self) -> Vec<f64> {
        match self {
            Self::Sigma(_) => (1..=30).map(|k| f64::from(k) / 10.0).collect(),
            Self::Noise => (1..=25).map(|k| f64::from(k) / 25.0).collect(),
        }
    }

    fn observation(&self, value: f64) -> Observation {
        match self {
            Self::Sigma(encodings) => Observation::Gaussian { encodings: encodings.clone(), sigma: value },
            Self::Noise => Observation::RandomisedResponse { noise: value },
        }
    }

    fn axis(&self) -> Axis {
        match self {
            Self::Sigma(_) => Axis::linear("standard deviation of the noise, σ"),
            Self::Noise => Axis::linear("probability of a uniform answer, q"),
        }
    }

    /// The mechanism's own ε: pure of randomised response, at δ of Gaussian noise.
    fn epsilon(&self, prior: &Prior, value: f64, delta: f64) -> Result<f64> {
        match self {
            Self::Sigma(e) => Ok(gaussian::epsilon(e.diameter(prior.candidates()) / value, delta)?),
            Self::Noise => {
                let rr = Mechanism::RandomisedResponse { categories: prior.candidates(), noise: value };
                rr.check(Adjacency::Replace)?;
                Ok(rr.pure_epsilon(Adjacency::Replace).unwrap_or(0.0))
            }
        }
    }
}

/// Every bound and the optimal attack against the noise; `delta` is that of the ε of Gaussian noise.
pub fn against_noise(
    prior: &Prior,
    varied: &Varied,
    values: &[f64],
    delta: f64,
    simulation: Option<Simulation>,
) -> Result<SecretBounds> {
    let mut points: Vec<(f64, SecretBounds)> = vec![];
    let mut epsilons = vec![];
    for &value in values {
        points.push((value, run(prior, &varied.observation(value), simulation)?));
        epsilons.push((value, varied.epsilon(prior, value, delta)?));
    }
    let advantage = |bounds: &SecretBounds, theorem: Theorem| -> Option<Bound> {
        let row: &Row = bounds.bounds.iter().find(|b| b.name == theorem)?;
        Some(Bound::share_at_most(row.advantage, theorem))
    };
    let mut series = vec![];
    for theorem in DRAWN {
        let along: Vec<(f64, Bound)> =
            points.iter().filter_map(|(x, f)| Some((*x, advantage(f, theorem)?))).collect();
        if !along.is_empty() {
            series.push(Series::bound(words::theorem(theorem), along));
        }
    }
    let optimal = attack(prior, &points);
    // The attack is drawn among the first eight.
    series.insert(series.len().min(7), optimal);
    let unit = match varied {
        Varied::Sigma(_) => format!("ε at δ = {}", format::setting(delta)),
        Varied::Noise => "ε, pure".to_owned(),
    };
    let figures = vec![
        Figure {
            id: "noise".into(),
            title: "Bounds and the optimal attack".into(),
            caption: "Advantage over a guess without the release: what no attacker exceeds by each bound, and what the best \
                      attacker, who guesses the likeliest value, achieves (Guo et al. 2022, fig. 3). All bounds are in the \
                      JSON."
                .into(),
            x: varied.axis(),
            y: Axis::linear("advantage").of_shares(),
            series,
            levels: vec![],
            chosen: None,
        },
        Figure {
            id: "epsilon".into(),
            title: "The same in terms of ε".into(),
            caption: "Differential privacy of the mechanism, for two values of the secret.".into(),
            x: varied.axis(),
            y: Axis::log(&unit),
            series: vec![Series::measured(&unit, epsilons.into_iter().filter(|e| e.1 > 0.0))],
            levels: Vec::<Level>::new(),
            chosen: None,
        },
    ];
    let setting = match varied {
        Varied::Sigma(Encodings::OneHot) => "one-hot encodings plus Gaussian noise",
        Varied::Sigma(_) => "encodings plus Gaussian noise",
        Varied::Noise => "randomised response",
    };
    Ok(SecretBounds {
        sentences: middle_sentence(prior, &points),
        candidates: Some(prior.candidates()),
        most_likely: Some(prior.most_likely()),
        figures,
        seed: simulation.map(|s| s.seed),
        ..empty(setting.to_owned())
    })
}

/// The middle of the curve in a sentence.
fn middle_sentence(prior: &Prior, points: &[(f64, SecretBounds)]) -> Vec<String> {
    let Some((x, bounds)) = points.get(points.len() / 2) else { return vec![] };
    let Some(best) = bounds.bounds.first() else { return vec![] };
    let attack = match &bounds.optimal {
        Some(Optimal::Exact(v)) => format!("; the best attack achieves {}", format::share(*v)),
        Some(Optimal::Observed(o)) => format!("; the best attack was observed at {}", format::share(o.value)),
        None => String::new(),
    };
    vec![format!(
        "At a noise of {} no attacker guesses one of {} values with a probability above {} ({}){attack}; without the release \
         it is {}.",
        format::setting(*x),
        format::count(prior.candidates()),
        format::share_at_most(best.success),
        words::bound(best),
        format::share(prior.most_likely())
    )]
}

/// The optimal attack: observed where it was simulated, measured where there is a closed form.
fn attack(prior: &Prior, points: &[(f64, SecretBounds)]) -> Series {
    let observed = |(x, f): &(f64, SecretBounds)| match &f.optimal {
        Some(Optimal::Observed(o)) => {
            // Not clamped at zero: an unlucky simulation may fall below the guess.
            let p = prior.most_likely();
            let scaled = |v: f64| (v - p) / (1.0 - p);
            let (value, ci_low, ci_high) = (scaled(o.value), scaled(o.ci_low), scaled(o.ci_high));
            Some((*x, Observed { value, ci_low, ci_high, ..o.clone() }))
        }
        Some(Optimal::Exact(_)) | None => None,
    };
    let exact = |(x, f): &(f64, SecretBounds)| match &f.optimal {
        Some(Optimal::Exact(v)) => Some((*x, prior.advantage(*v))),
        Some(Optimal::Observed(_)) | None => None,
    };
    let simulated: Vec<_> = points.iter().filter_map(observed).collect();
    match simulated.is_empty() {
        true => Series::measured("optimal attack, exact", points.iter().filter_map(exact)),
        false => Series::observed("optimal attack", simulated),
    }
}
