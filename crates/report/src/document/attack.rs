//! What `leakscope attack` observed, as plain data.

use super::choice::Metric;
use super::noise::Noise;
use super::subject::Subject;
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::claim::Observed;
use serde::{Deserialize, Serialize};

/// Name and version of the schema of `attack.json`.
pub const SCHEMA: &str = "leakscope.attack/1";

/// Everything that the attacks of one run achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attack {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// Data and model.
    pub subject: Subject,
    /// What the attackers are after.
    pub secret: Secret,
    /// Records attacked.
    pub records: u64,
    /// Records whose value is none of the candidates: not attacked.
    pub left_out: u64,
    /// Noise vectors drawn for every σ.
    pub trials: u64,
    /// Seed of the noise (and of the split, where there was one).
    pub seed: u64,
    /// A guess without the model.
    pub baseline: Baseline,
    /// By attacker and σ.
    pub results: Vec<AttackResult>,
    /// The same after balancing, where that was asked for.
    pub results_balanced: Vec<AttackResult>,
    /// The white box by decile of the secret's η before balancing, at every σ.
    pub deciles: Vec<Decile>,
    /// Mean of the secret's η at σ = 1.
    pub eta_mean_at_unit_noise: f64,
    /// What balancing did, where it was asked for.
    pub balance: Option<Balanced>,
    /// What noise costs on held-out rows.
    pub utility: Option<Utility>,
    /// The noise, where it has a shape: σ is that of isotropic noise of the same cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Things the user should know, in whole sentences.
    pub warnings: Vec<String>,
    /// What was done with the table and asks for nothing, in whole sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Seconds the attacks took, without reading and fitting.
    pub seconds: f64,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

/// The secret attribute and its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Secret {
    /// Name of the column.
    pub name: String,
    /// Its candidates.
    pub candidates: Vec<Candidate>,
}

/// A value that the secret may have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The level, or the range of the bin.
    pub name: String,
    /// Share of the records that have it: the attacker's prior.
    pub prior: f64,
}

/// The attacker who only knows how frequent each value is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Share of records it guesses right.
    pub accuracy: f64,
}

/// What one attacker achieved at one noise scale: observed, and flat in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "FlatResult", from = "FlatResult")]
pub struct AttackResult {
    /// The attacker.
    pub attack: Attacker,
    /// σ.
    pub sigma: f64,
    /// Mean of the secret's η at this σ.
    pub eta_mean: f64,
    /// Whether the model was balanced first.
    pub balanced: bool,
    /// Share of records guessed right.
    pub accuracy: Observed,
    /// `(accuracy − p*)/(1 − p*)` (Guo eq. 1).
    pub advantage: Observed,
}

/// The white box on one decile of the records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "FlatDecile", from = "FlatDecile")]
pub struct Decile {
    /// σ.
    pub sigma: f64,
    /// 1 is the decile of the smallest η before balancing.
    pub decile: usize,
    /// Whether the model was balanced first.
    pub balanced: bool,
    /// Records in it.
    pub records: u64,
    /// Share of them guessed right.
    pub accuracy: Observed,
}

/// What balancing did to the secret's η.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Balanced {
    /// Reweightings.
    pub iterations: usize,
    /// Standard deviation over mean of η before.
    pub spread_before: f64,
    /// And after.
    pub spread_after: f64,
    /// Mean of η after at σ = 1.
    pub eta_mean_at_unit_noise: f64,
}

/// What noise costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Utility {
    /// What the scores are.
    pub metric: Metric,
    /// Whether more of it is better.
    pub higher_is_better: bool,
    /// Without noise.
    pub without_noise: f64,
    /// A model without columns.
    pub constant_model: f64,
    /// Expected score at each σ.
    pub points: Vec<(f64, f64)>,
}

#[derive(Serialize, Deserialize)]
struct FlatResult {
    /// The attacker.
    attack: Attacker,
    /// Standard deviation σ of the noise.
    sigma: f64,
    /// Mean of the secret's η at this σ.
    eta_mean: f64,
    /// Whether the model was balanced first.
    balanced: bool,
    /// Share of records guessed right.
    accuracy: f64,
    /// Lower end of its 95% interval.
    ci_low: f64,
    /// Upper end of its 95% interval.
    ci_high: f64,
    /// `(accuracy − p*)/(1 − p*)`.
    advantage: f64,
    /// Lower end of its 95% interval.
    advantage_ci_low: f64,
    /// Upper end of its 95% interval.
    advantage_ci_high: f64,
    /// Guesses that were made.
    trials: u64,
    /// Seed of the noise.
    seed: u64,
}

impl From<AttackResult> for FlatResult {
    fn from(r: AttackResult) -> Self {
        Self {
            attack: r.attack,
            sigma: r.sigma,
            eta_mean: r.eta_mean,
            balanced: r.balanced,
            accuracy: r.accuracy.value,
            ci_low: r.accuracy.ci_low,
            ci_high: r.accuracy.ci_high,
            advantage: r.advantage.value,
            advantage_ci_low: r.advantage.ci_low,
            advantage_ci_high: r.advantage.ci_high,
            trials: r.accuracy.trials,
            seed: r.accuracy.seed,
        }
    }
}

impl From<FlatResult> for AttackResult {
    fn from(r: FlatResult) -> Self {
        let observed =
            |value, ci_low, ci_high| Observed { value, ci_low, ci_high, trials: r.trials, seed: r.seed };
        Self {
            accuracy: observed(r.accuracy, r.ci_low, r.ci_high),
            advantage: observed(r.advantage, r.advantage_ci_low, r.advantage_ci_high),
            attack: r.attack,
            sigma: r.sigma,
            eta_mean: r.eta_mean,
            balanced: r.balanced,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct FlatDecile {
    /// Standard deviation σ of the noise.
    sigma: f64,
    /// 1 is the decile of the smallest η before balancing.
    decile: usize,
    /// Whether the model was balanced first.
    balanced: bool,
    /// Records in it.
    records: u64,
    /// Share of records guessed right.
    accuracy: f64,
    /// Lower end of its 95% interval.
    ci_low: f64,
    /// Upper end of its 95% interval.
    ci_high: f64,
    /// Guesses that were made.
    trials: u64,
    /// Seed of the noise.
    seed: u64,
}

impl From<Decile> for FlatDecile {
    fn from(d: Decile) -> Self {
        let Observed { value, ci_low, ci_high, trials, seed } = d.accuracy;
        let (sigma, decile, balanced, records) = (d.sigma, d.decile, d.balanced, d.records);
        Self { sigma, decile, balanced, records, accuracy: value, ci_low, ci_high, trials, seed }
    }
}

impl From<FlatDecile> for Decile {
    fn from(d: FlatDecile) -> Self {
        let accuracy = Observed {
            value: d.accuracy,
            ci_low: d.ci_low,
            ci_high: d.ci_high,
            trials: d.trials,
            seed: d.seed,
        };
        Self { sigma: d.sigma, decile: d.decile, balanced: d.balanced, records: d.records, accuracy }
    }
}
