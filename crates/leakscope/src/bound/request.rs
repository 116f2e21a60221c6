//! What is asked about a discrete secret, and which of the questions it is.

use super::curve::{FIG_2, Varied, against_epsilon, against_noise};
use super::data::{self, Bounding, FIG_4};
use super::{Observation, of_eta, run};
use crate::mechanism::{ReleaseStep, composed, encodings, stated};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::attack::Attack;
use leakscope_core::bound::Prior;
use leakscope_core::bound::table::Simulation;
use leakscope_core::dp::Adjacency;
use leakscope_core::error::numeral;
use leakscope_report::bound::SecretBounds;
use leakscope_table::{Hooks, ReadOptions, Table};
use serde::{Deserialize, Serialize};

/// What the attacker sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum MechanismKind {
    /// The encoding of the secret plus Gaussian noise
    Gaussian,
    /// The secret, or with some probability a uniform draw
    RandomisedResponse,
    /// A model trained with DP-SGD on a data set that holds the secret
    DpSgd,
    /// Sums over such a data set plus Laplace noise
    Laplace,
    /// Several kinds of private releases, step by step
    Composition,
    /// Anything with a stated Rényi divergence
    Renyi,
}

/// A curve instead of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum CurveKind {
    /// Advantage against ε for several numbers of values
    Epsilon,
    /// Every bound and the optimal attack against the noise
    Noise,
}

/// What is asked about a discrete secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoundRequest {
    /// Numbers of values that the secret can take, all equally likely (several with a curve over ε).
    pub candidates: Vec<u64>,
    /// Probabilities of the values instead.
    pub prior: Vec<f64>,
    /// What the attacker sees.
    pub mechanism: Option<MechanismKind>,
    /// What the secret becomes before Gaussian noise: `one-hot`, `line`, or a file with one vector per value.
    pub encoding: Option<String>,
    /// Standard deviation of the noise; for DP-SGD over the clipping norm.
    pub sigma: Option<f64>,
    /// Probability of a uniform draw in randomised response.
    pub noise: Option<f64>,
    /// Scale of the Laplace mechanism, over the ℓ₁ sensitivity.
    pub laplace: Option<f64>,
    /// Sampling rate of DP-SGD.
    pub rate: Option<f64>,
    /// Steps of DP-SGD, or releases of Laplace noise.
    pub steps: Option<u64>,
    /// Kinds of releases of a composition.
    pub step: Vec<ReleaseStep>,
    /// Adjacency of private releases.
    pub adjacency: Option<Adjacency>,
    /// Order of a stated Rényi divergence, at least 1.
    pub alpha: Option<f64>,
    /// The stated Rényi divergence, in nats.
    pub epsilon: Option<f64>,
    /// A curve instead of one answer.
    pub curve: Option<CurveKind>,
    /// Values of its horizontal axis; those of the paper's figures without any.
    pub at: Vec<f64>,
    /// A table whose model is refitted with each value of the secret in every record's place.
    pub table: Option<Box<Request>>,
    /// A table from whose secret column the prior is counted, where a mechanism says what is released.
    pub column: Option<ReadOptions>,
    /// The column that is the secret.
    pub secret: Option<String>,
    /// Bins of a numeric secret with more values than that.
    pub bins: usize,
    /// Noise scales of the curve over a table.
    pub sigmas: Vec<f64>,
    /// Whether that curve is drawn even where one noise is asked about.
    pub over_noise: bool,
    /// Attacks to play beside the bounds; an empty list plays those of Guo's figure 4.
    pub attacks: Option<Vec<Attack>>,
    /// Noise vectors for every scale of the attacks.
    pub noise_vectors: usize,
    /// η of a number, for bounds on estimates of it.
    pub eta: Option<f64>,
    /// What is known of that number beforehand, as a standard deviation.
    pub prior_sd: Option<f64>,
    /// The δ of ε, where a curve shows it.
    pub delta: f64,
    /// Draws for the information and the simulated attack; 0 simulates nothing.
    pub trials: u64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for BoundRequest {
    fn default() -> Self {
        Self {
            candidates: vec![],
            prior: vec![],
            mechanism: None,
            encoding: None,
            sigma: None,
            noise: None,
            laplace: None,
            rate: None,
            steps: None,
            step: vec![],
            adjacency: None,
            alpha: None,
            epsilon: None,
            curve: None,
            at: vec![],
            table: None,
            column: None,
            secret: None,
            bins: 4,
            sigmas: vec![],
            over_noise: false,
            attacks: None,
            noise_vectors: 100,
            eta: None,
            prior_sd: None,
            delta: 1e-5,
            trials: 100_000,
            seed: 1,
        }
    }
}

impl BoundRequest {
    /// Checks which options go together.
    pub fn check(&self) -> Result<()> {
        let table = self.table.is_some() || self.column.is_some();
        let stray = [
            ("at", !self.at.is_empty() && self.curve.is_none(), "it belongs to ⟨curve⟩"),
            ("secret", self.secret.is_some() && !table, "it is a column of a table: name one with ⟨data⟩"),
            ("sigmas", !self.sigmas.is_empty() && self.secret.is_none(), "it belongs to ⟨secret⟩"),
            ("attacks", self.attacks.is_some() && self.secret.is_none(), "it belongs to ⟨secret⟩"),
            ("prior_sd", self.prior_sd.is_some() && self.eta.is_none(), "it belongs to ⟨eta⟩"),
            (
                "eta",
                self.eta.is_some() && (table || self.mechanism.is_some() || self.curve.is_some()),
                "it is about one number, and takes no ⟨mechanism⟩, ⟨data⟩ or ⟨curve⟩",
            ),
        ];
        match stray.into_iter().find(|s| s.1) {
            Some((name, _, why)) => Err(Failure::option(name, why)),
            None => Ok(()),
        }
    }
}

/// Confidence of bounds that rest on an estimate of the information.
const CONFIDENCE: f64 = 0.99;

/// What any attacker can guess, as the request asks.
pub fn answer(args: &BoundRequest, hooks: &Hooks) -> Result<SecretBounds> {
    args.check()?;
    let counted = counted(args, hooks)?;
    let simulation = (args.trials > 0).then_some(Simulation {
        trials: args.trials,
        seed: args.seed,
        confidence: CONFIDENCE,
    });
    if let Some(request) = args.table.as_deref().filter(|_| counted.is_none()) {
        return data::run(request, &bounding(args)?, hooks);
    }
    if let Some(eta) = args.eta {
        for (flag, value) in [("eta", Some(eta)), ("prior_sd", args.prior_sd)] {
            if let Some(x) = value.filter(|x| !(*x > 0.0 && x.is_finite())) {
                return Err(Failure::number(flag, numeral(x), "expected a positive number"));
            }
        }
        return Ok(of_eta(eta, args.prior_sd));
    }
    if args.curve.is_some()
        && let Some((flag, _)) = of_mechanisms(args).iter().find(|f| f.1)
    {
        return Err(Failure::option(flag, "a curve has its values on the axis: ⟨at⟩ V,…"));
    }
    if args.curve == Some(CurveKind::Epsilon) {
        return epsilon_curve(args);
    }
    let mut warnings = vec![];
    let is_counted = counted.is_some();
    let prior = match counted {
        Some((prior, warning)) => {
            warnings.extend(warning);
            prior
        }
        None => stated_prior(args)?,
    };
    let kind = args.mechanism.ok_or_else(|| {
        Failure::option(
            "mechanism",
            "say what the attacker sees: gaussian, randomised-response, dp-sgd, laplace, composition, renyi",
        )
    })?;
    if kind != MechanismKind::Gaussian && args.encoding.is_some() {
        return Err(Failure::option("encoding", "it belongs to ⟨mechanism=gaussian⟩"));
    }
    if args.curve == Some(CurveKind::Noise) {
        let varied = match kind {
            MechanismKind::Gaussian => {
                Varied::Sigma(encodings(args.encoding.as_deref().unwrap_or("one-hot"), &prior)?)
            }
            MechanismKind::RandomisedResponse => Varied::Noise,
            MechanismKind::DpSgd
            | MechanismKind::Laplace
            | MechanismKind::Composition
            | MechanismKind::Renyi => {
                return Err(Failure::option("curve", "noise is drawn for gaussian and randomised-response"));
            }
        };
        let at = if args.at.is_empty() { varied.grid() } else { args.at.clone() };
        let curve = against_noise(&prior, &varied, &at, args.delta, simulation)?;
        return Ok(SecretBounds { warnings, counted: is_counted, ..curve });
    }
    Ok(SecretBounds {
        warnings,
        counted: is_counted,
        ..run(&prior, &observation(args, kind, &prior)?, simulation)?
    })
}

/// The question about a secret column of a table.
fn bounding(args: &BoundRequest) -> Result<Bounding> {
    let secret = args.secret.clone();
    let secret =
        secret.ok_or_else(|| Failure::option("secret", "say which column of ⟨data⟩ is the secret"))?;
    let misplaced = [
        ("mechanism", args.mechanism.is_some()),
        ("candidates", !args.candidates.is_empty()),
        ("encoding", args.encoding.is_some()),
        ("curve", args.curve.is_some()),
    ];
    let of_mechanisms = of_mechanisms(args).into_iter().filter(|f| f.0 != "sigma");
    if let Some((flag, _)) = misplaced.into_iter().chain(of_mechanisms).find(|m| m.1) {
        return Err(Failure::option(flag, "with ⟨data⟩ the refitted models are what noise is added to"));
    }
    Ok(Bounding {
        secret,
        bins: args.bins,
        prior: (!args.prior.is_empty()).then(|| args.prior.clone()),
        sigma: args.sigma,
        sigmas: args.sigmas.clone(),
        curve: args.over_noise || !args.sigmas.is_empty() || args.sigma.is_none(),
        attacks: match &args.attacks {
            None => vec![],
            Some(all) if all.is_empty() => FIG_4.to_vec(),
            Some(all) => all.clone(),
        },
        noise_vectors: args.noise_vectors,
        draws: args.trials,
        confidence: CONFIDENCE,
        delta: args.delta,
    })
}

/// The curve over ε, which holds whatever has that ε.
fn epsilon_curve(args: &BoundRequest) -> Result<SecretBounds> {
    let misplaced = [
        ("mechanism", args.mechanism.is_some(), "the curve holds for every mechanism with that ε"),
        ("encoding", args.encoding.is_some(), "the curve holds for every encoding"),
        ("prior", !args.prior.is_empty(), "the curves are drawn for uniform priors: ⟨candidates⟩ M,…"),
    ];
    if let Some((flag, _, why)) = misplaced.iter().find(|m| m.1) {
        return Err(Failure::option(flag, *why));
    }
    let candidates = if args.candidates.is_empty() { FIG_2.to_vec() } else { args.candidates.clone() };
    let at =
        if args.at.is_empty() { (0..=50).map(|k| f64::from(k) / 2.0).collect() } else { args.at.clone() };
    against_epsilon(&candidates, &at)
}

/// The prior that options state.
fn stated_prior(args: &BoundRequest) -> Result<Prior> {
    match (args.candidates.as_slice(), args.prior.as_slice()) {
        ([m], []) => Ok(Prior::uniform(*m)?),
        ([], [_, ..]) => {
            Prior::from_probabilities(args.prior.clone()).map_err(|e| Failure::option("prior", e))
        }
        ([], []) => Err(Failure::option(
            "candidates",
            "say how many values the secret has, or ⟨prior⟩ P,… or ⟨data⟩ FILE",
        )),
        _ => Err(Failure::option("candidates", "one number; several are for ⟨curve=epsilon⟩")),
    }
}

/// The prior counted from a column, where a mechanism says what is released: no model is fitted.
fn counted(args: &BoundRequest, hooks: &Hooks) -> Result<Option<(Prior, Option<String>)>> {
    let Some(read) = args.column.as_ref().filter(|_| args.mechanism.is_some()) else { return Ok(None) };
    if !args.candidates.is_empty() || !args.prior.is_empty() {
        return Err(Failure::option("data", "the prior is counted from it, or given: say one of the two"));
    }
    let Some(column) = &args.secret else {
        return Err(Failure::option("secret", "say which column of ⟨data⟩ the prior is counted from"));
    };
    let table = Table::open(read)?;
    let counts = table.counts("secret", column, hooks)?;
    if counts.values.len() < 2 {
        return Err(Failure::option(
            "secret",
            format!("`{column}` has one value only: there is nothing to guess"),
        ));
    }
    let prior = Prior::counted(&counts.values.iter().map(|v| v.1).collect::<Vec<u64>>())?;
    let missing = (counts.missing > 0).then(|| {
        let rows = leakscope_report::format::counted(counts.missing, "row");
        format!("{rows} without a value of {column} are not counted in the prior.")
    });
    Ok(Some((prior, missing)))
}

/// Flags that belong to one mechanism or another, and whether they were given.
fn of_mechanisms(args: &BoundRequest) -> [(&'static str, bool); 9] {
    [
        ("sigma", args.sigma.is_some()),
        ("noise", args.noise.is_some()),
        ("laplace", args.laplace.is_some()),
        ("rate", args.rate.is_some()),
        ("steps", args.steps.is_some()),
        ("step", !args.step.is_empty()),
        ("alpha", args.alpha.is_some()),
        ("epsilon", args.epsilon.is_some()),
        ("adjacency", args.adjacency.is_some()),
    ]
}

/// What the attacker sees, from flags that belong to it and no others.
fn observation(args: &BoundRequest, kind: MechanismKind, prior: &Prior) -> Result<Observation> {
    let need = |flag: &str, value: Option<f64>| {
        value.ok_or_else(|| Failure::option(flag, "this mechanism needs it"))
    };
    let flags = of_mechanisms(args);
    let own: &[&str] = match kind {
        MechanismKind::Gaussian => &["sigma"],
        MechanismKind::RandomisedResponse => &["noise"],
        MechanismKind::DpSgd => &["sigma", "rate", "steps", "adjacency"],
        MechanismKind::Laplace => &["laplace", "steps", "adjacency"],
        MechanismKind::Composition => &["step", "adjacency"],
        MechanismKind::Renyi => &["alpha", "epsilon"],
    };
    if let Some((flag, _)) = flags.iter().find(|(flag, is)| *is && !own.contains(flag)) {
        return Err(Failure::option(flag, format!("this mechanism has {}", own.join(", "))));
    }
    Ok(match kind {
        MechanismKind::Gaussian => Observation::Gaussian {
            encodings: encodings(args.encoding.as_deref().unwrap_or("one-hot"), prior)?,
            sigma: need("sigma", args.sigma)?,
        },
        MechanismKind::RandomisedResponse => {
            Observation::RandomisedResponse { noise: need("noise", args.noise)? }
        }
        MechanismKind::DpSgd => {
            let adjacency = stated(args.adjacency)?;
            let steps = args.steps.ok_or_else(|| Failure::option("steps", "this mechanism needs it"))?;
            let (sigma, rate) = (need("sigma", args.sigma)?, need("rate", args.rate)?);
            let step = ReleaseStep {
                sigma: Some(sigma),
                rate: Some(rate),
                steps: Some(steps),
                ..Default::default()
            };
            Observation::Private(composed(&[step.mechanism()?], adjacency)?)
        }
        MechanismKind::Laplace => {
            let adjacency = stated(args.adjacency)?;
            let scale = need("laplace", args.laplace)?;
            let step = ReleaseStep { laplace: Some(scale), steps: args.steps, ..Default::default() };
            Observation::Private(composed(&[step.mechanism()?], adjacency)?)
        }
        MechanismKind::Renyi => {
            Observation::Renyi { alpha: need("alpha", args.alpha)?, epsilon: need("epsilon", args.epsilon)? }
        }
        MechanismKind::Composition => {
            if args.step.is_empty() {
                return Err(Failure::option(
                    "step",
                    "say the releases, such as ⟨step⟩ sigma=1,rate=0.01,steps=1000",
                ));
            }
            let steps = args.step.iter().map(ReleaseStep::mechanism).collect::<Result<Vec<_>>>()?;
            Observation::Private(composed(&steps, stated(args.adjacency)?)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_do_not_go_together_are_named() {
        let none = BoundRequest::default;
        let cases = [
            ("at", BoundRequest { at: vec![1.0], ..none() }),
            ("secret", BoundRequest { secret: Some("race".into()), ..none() }),
            ("sigmas", BoundRequest { sigmas: vec![1.0], ..none() }),
            ("attacks", BoundRequest { attacks: Some(vec![]), ..none() }),
            ("prior_sd", BoundRequest { prior_sd: Some(1.0), ..none() }),
            ("eta", BoundRequest { eta: Some(1.0), curve: Some(CurveKind::Noise), ..none() }),
        ];
        for (expected, request) in cases {
            match answer(&request, &Hooks::default()) {
                Err(Failure::Option { name, .. }) => assert_eq!(name, expected),
                other => panic!("{expected}: {other:?}"),
            }
        }
        assert!(answer(&BoundRequest { eta: Some(1.0), ..none() }, &Hooks::default()).is_ok());
    }
}
