//! What is asked for: the noise, the sampling rate or the number of steps that meets a target.

use super::{Aim, on_data, on_encodings};
use crate::bound::DELTA;
use crate::bound::data::Bounding;
use crate::mechanism::{encodings, stated};
use crate::noise::NoiseOptions;
use crate::request::{Noise, Request, Statistic};
use crate::{Failure, Result};
use leakscope_core::bound::Prior;
use leakscope_core::dp::{Accountant, Adjacency, Target, Unknown, calibrate};
use leakscope_report::Calibration;
use leakscope_report::calibrate::Leakage;
use leakscope_table::Hooks;
use serde::{Deserialize, Serialize};

/// Which records a limit on guesses is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The record that is easiest to guess
    #[default]
    EveryRecord,
    /// The mean over records
    Mean,
}

/// A target, and what is known of the release that must meet it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CalibrateRequest {
    /// Target: ε, at `delta`.
    pub epsilon: Option<f64>,
    /// The δ of ε.
    pub delta: Option<f64>,
    /// Target: membership advantage.
    pub advantage: Option<f64>,
    /// Target: true-positive rate of a membership test, at `fpr`.
    pub tpr: Option<f64>,
    /// The false-positive rate of it.
    pub fpr: Option<f64>,
    /// Target: probability of guessing a secret.
    pub success: Option<f64>,
    /// Number of values of the secret, all equally likely.
    pub candidates: Option<u64>,
    /// Probabilities of the values instead.
    pub prior: Vec<f64>,
    /// Noise on the secret itself: `one-hot`, `line`, or a file with one vector per value.
    pub encoding: Option<String>,
    /// Target on a table: a statistic of η over records.
    pub target_eta: Option<f64>,
    /// The statistic.
    pub statistic: Statistic,
    /// Target on a table: least standard deviation of any unbiased estimate of an attribute, in its own units.
    pub target_sd: Option<(String, f64)>,
    /// Noise with a shape on a table's model, or for several targets: its own targets are the targets.
    pub noise: Option<Box<NoiseOptions>>,
    /// Noise multiplier of DP-SGD.
    pub sigma: Option<f64>,
    /// Its sampling rate.
    pub rate: Option<f64>,
    /// Its number of steps.
    pub steps: Option<u64>,
    /// Which neighbours must not be told apart.
    pub adjacency: Option<Adjacency>,
    /// The table and its model.
    pub table: Option<Box<Request>>,
    /// The column of the table that must not be guessed.
    pub secret: Option<String>,
    /// Bins of a numeric secret with more values than that.
    pub bins: usize,
    /// Whether `success` is for every record, or on average over them.
    pub over: Over,
    /// Seed of the split of held-out rows.
    pub seed: u64,
}

impl Default for CalibrateRequest {
    fn default() -> Self {
        Self {
            epsilon: None,
            delta: None,
            advantage: None,
            tpr: None,
            fpr: None,
            success: None,
            candidates: None,
            prior: vec![],
            encoding: None,
            target_eta: None,
            statistic: Statistic::default(),
            target_sd: None,
            noise: None,
            sigma: None,
            rate: None,
            steps: None,
            adjacency: None,
            table: None,
            secret: None,
            bins: 4,
            over: Over::default(),
            seed: 1,
        }
    }
}

impl CalibrateRequest {
    /// Checks which options go together.
    pub fn check(&self) -> Result<()> {
        let aims = [
            ("epsilon", self.epsilon.is_some()),
            ("advantage", self.advantage.is_some()),
            ("tpr", self.tpr.is_some()),
            ("success", self.success.is_some()),
            ("target_eta", self.target_eta.is_some()),
            ("target_sd", self.target_sd.is_some()),
            ("noise_shape", self.noise.is_some()),
        ];
        let mut named = aims.iter().filter(|a| a.1).map(|a| a.0);
        if let (Some(first), Some(second)) = (named.next(), named.next()) {
            return Err(Failure::option(
                second,
                format!("⟨{first}⟩ is a target already: give one of the two"),
            ));
        }
        let guessing = self.candidates.is_some() || !self.prior.is_empty() || self.encoding.is_some();
        let (table, success) = (self.table.is_some(), self.success.is_some());
        let known = self.sigma.is_some() || self.rate.is_some() || self.steps.is_some();
        let stray = [
            ("epsilon", self.epsilon.is_some() && self.delta.is_none(), "it needs ⟨delta⟩"),
            ("delta", self.delta.is_some() && self.epsilon.is_none(), "it belongs to ⟨epsilon⟩"),
            ("tpr", self.tpr.is_some() && self.fpr.is_none(), "it needs ⟨fpr⟩"),
            ("fpr", self.fpr.is_some() && self.tpr.is_none(), "it belongs to ⟨tpr⟩"),
            ("target_eta", self.target_eta.is_some() && !table, "it is about a table: name one with ⟨data⟩"),
            ("target_sd", self.target_sd.is_some() && !table, "it is about a table: name one with ⟨data⟩"),
            ("noise_shape", self.noise.is_some() && !table, "it is about a table: name one with ⟨data⟩"),
            (
                "statistic",
                self.statistic != Statistic::Max && self.target_eta.is_none(),
                "it belongs to ⟨target_eta⟩",
            ),
            ("success", guessing && !success, "⟨candidates⟩, ⟨prior⟩ and ⟨encoding⟩ are for this target"),
            ("prior", self.candidates.is_some() && !self.prior.is_empty(), "⟨candidates⟩ says it already"),
            ("encoding", self.encoding.is_some() && (table || known), "the noise on it is solved for alone"),
            ("secret", self.secret.is_some() && !(table && success), "it needs ⟨data⟩ and ⟨success⟩"),
            ("over", self.over != Over::EveryRecord && self.secret.is_none(), "it belongs to ⟨secret⟩"),
        ];
        match stray.into_iter().find(|s| s.1) {
            Some((name, _, why)) => Err(Failure::option(name, why)),
            None => Ok(()),
        }
    }
}

/// Solves for what the request leaves open.
pub fn run(request: &CalibrateRequest, hooks: &Hooks) -> Result<Calibration> {
    request.check()?;
    let calibration = match (&request.table, &request.encoding) {
        (Some(table), _) => with_data(request, (**table).clone(), hooks)?,
        (None, Some(encoding)) => with_encoding(request, encoding)?,
        (None, None) => dp_sgd(request)?,
    };
    crate::output::complete(calibration)
}

fn dp_sgd(args: &CalibrateRequest) -> Result<Calibration> {
    let target = target(args)?;
    let unknown = match (args.sigma, args.rate, args.steps) {
        (None, Some(rate), Some(steps)) => Unknown::Sigma { rate, steps },
        (Some(sigma), None, Some(steps)) => Unknown::Rate { sigma, steps },
        (Some(sigma), Some(rate), None) => Unknown::Steps { sigma, rate },
        _ => {
            let message = "give two of ⟨sigma⟩, ⟨rate⟩ and ⟨steps⟩: the third is solved for";
            return Err(Failure::Message(message.into()));
        }
    };
    let solved = calibrate(target, unknown, stated(args.adjacency)?)?;
    let epsilon = match target {
        Target::Epsilon { .. } => None,
        Target::Advantage { .. } | Target::TruePositiveRate { .. } | Target::Reconstruction { .. } => {
            let run = Accountant::dp_sgd(solved.sigma, solved.rate, solved.steps, solved.adjacency)?;
            Some(run.epsilon(DELTA)?.upper.min(f64::MAX))
        }
    };
    Ok(Calibration { epsilon, ..Calibration::of_training(target, unknown, &solved) })
}

fn target(args: &CalibrateRequest) -> Result<Target> {
    if let (Some(epsilon), Some(delta)) = (args.epsilon, args.delta) {
        return Ok(Target::Epsilon { epsilon, delta });
    }
    if let Some(advantage) = args.advantage {
        return Ok(Target::Advantage { advantage });
    }
    if let (Some(true_positive), Some(false_positive)) = (args.tpr, args.fpr) {
        return Ok(Target::TruePositiveRate { true_positive, false_positive });
    }
    if let Some(success) = args.success {
        return Ok(Target::Reconstruction { success, most_likely: prior(args)?.most_likely() });
    }
    Err(Failure::Message(
        "name a target: ⟨epsilon⟩ E ⟨delta⟩ D, ⟨advantage⟩ A, ⟨tpr⟩ P ⟨fpr⟩ P or ⟨success⟩ P ⟨candidates⟩ M; with ⟨data⟩ \
         also ⟨target_eta⟩ E, ⟨target_sd⟩ ATTRIBUTE=VALUE or ⟨success⟩ P ⟨secret⟩ COLUMN"
            .into(),
    ))
}

fn prior(args: &CalibrateRequest) -> Result<Prior> {
    match args.candidates {
        Some(m) => Ok(Prior::uniform(m)?),
        None if args.prior.is_empty() => {
            Err(Failure::option("candidates", "say how many values the secret has, or ⟨prior⟩ P,…"))
        }
        None => Ok(Prior::from_probabilities(args.prior.clone())?),
    }
}

fn with_encoding(args: &CalibrateRequest, encoding: &str) -> Result<Calibration> {
    let success = args.success.ok_or_else(|| Failure::option("success", "⟨encoding⟩ is for this target"))?;
    if args.adjacency.is_some() {
        return Err(Failure::option("adjacency", "noise on an encoding tells values apart, no neighbours"));
    }
    let prior = prior(args)?;
    let (sigma, achieved) = on_encodings(&prior, &encodings(encoding, &prior)?, success)?;
    let most_likely = Some(prior.most_likely());
    let target = Leakage::Guessing { secret: None, success, every_record: None, most_likely };
    Ok(Calibration::of_noise(target, sigma, achieved, None))
}

fn with_data(args: &CalibrateRequest, mut request: Request, hooks: &Hooks) -> Result<Calibration> {
    let dp = [
        ("sigma", args.sigma.is_some()),
        ("rate", args.rate.is_some()),
        ("steps", args.steps.is_some()),
        ("adjacency", args.adjacency.is_some()),
        ("candidates", args.candidates.is_some()),
    ];
    if let Some((flag, _)) = dp.iter().find(|d| d.1) {
        return Err(Failure::option(flag, "with ⟨data⟩ the noise on the model's coefficients is solved for"));
    }
    if let Some(options) = &args.noise {
        request.noise = Noise::Shaped(options.clone());
        return super::shapes::run(&request, hooks);
    }
    let (aim, target) = if let Some(eta) = args.target_eta {
        let statistic = args.statistic;
        request.noise = Noise::TargetEta { eta, statistic };
        (Aim::Leakage, Leakage::Eta { eta, statistic: statistic.named() })
    } else if let Some((attribute, sd)) = args.target_sd.clone() {
        request.noise = Noise::TargetSd { attribute: attribute.clone(), sd };
        (Aim::Leakage, Leakage::Sd { attribute, sd })
    } else if let (Some(success), Some(secret)) = (args.success, &args.secret) {
        let bounding = Bounding {
            secret: secret.clone(),
            bins: args.bins,
            prior: (!args.prior.is_empty()).then(|| args.prior.clone()),
            sigma: None,
            sigmas: vec![],
            curve: false,
            attacks: vec![],
            noise_vectors: 1,
            draws: 0,
            confidence: 0.99,
            delta: 1e-5,
        };
        let every_record = args.over == Over::EveryRecord;
        let secret = Some(secret.clone());
        let target =
            Leakage::Guessing { secret, success, every_record: Some(every_record), most_likely: None };
        (Aim::Guessing { bounding, success, every_record }, target)
    } else {
        let message = "with ⟨data⟩ the targets are ⟨target_eta⟩ E, ⟨target_sd⟩ ATTRIBUTE=VALUE and ⟨success⟩ P ⟨secret⟩ COLUMN";
        return Err(Failure::Message(message.into()));
    };
    let solved = on_data(&request, &aim, hooks)?;
    Ok(Calibration::of_noise(target, solved.sigma, solved.achieved, Some(solved.model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(request: CalibrateRequest) -> Option<String> {
        match request.check() {
            Err(Failure::Option { name, .. }) => Some(name),
            Err(other) => panic!("{other}"),
            Ok(()) => None,
        }
    }

    #[test]
    fn options_that_do_not_go_together_are_named() {
        let none = CalibrateRequest::default;
        let (epsilon, delta) = (Some(1.0), Some(1e-5));
        assert_eq!(named(CalibrateRequest { epsilon, delta, ..none() }), None);
        let two = CalibrateRequest { epsilon, delta, advantage: Some(0.1), ..none() };
        assert_eq!(named(two).as_deref(), Some("advantage"));
        assert_eq!(named(CalibrateRequest { epsilon, ..none() }).as_deref(), Some("epsilon"));
        assert_eq!(named(CalibrateRequest { delta, ..none() }).as_deref(), Some("delta"));
        assert_eq!(named(CalibrateRequest { tpr: Some(0.5), ..none() }).as_deref(), Some("tpr"));
        assert_eq!(
            named(CalibrateRequest { target_eta: Some(0.5), ..none() }).as_deref(),
            Some("target_eta")
        );
        let shaped = CalibrateRequest { noise: Some(Box::default()), ..none() };
        assert_eq!(named(shaped).as_deref(), Some("noise_shape"));
        assert_eq!(named(CalibrateRequest { candidates: Some(3), ..none() }).as_deref(), Some("success"));
        let secret = CalibrateRequest { success: Some(0.5), secret: Some("race".into()), ..none() };
        assert_eq!(named(secret).as_deref(), Some("secret"));
        let mean = CalibrateRequest { success: Some(0.5), over: Over::Mean, ..none() };
        assert_eq!(named(mean).as_deref(), Some("over"));
    }
}
