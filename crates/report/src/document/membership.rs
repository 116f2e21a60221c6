//! What `leakscope net attack --method membership` found, as plain data: who was among the training records?

use super::net::{DataFacts, NetworkFacts};
use super::training::Training;
use crate::figure::{Axis, Claim, Figure, Place, Series};
use leakscope_core::claim::{Bound, Observed, Theorem};
use serde::{Deserialize, Serialize};

/// Schema of [`Membership`].
pub const SCHEMA: &str = "leakscope.net-membership/1";

/// Attacks on membership.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// [`SCHEMA`].
    pub schema: String,
    /// Names of the tables that were written beside it.
    #[serde(default)]
    pub tables: Vec<String>,
    /// The network.
    pub network: NetworkFacts,
    /// The training records.
    pub data: DataFacts,
    /// Training records that were attacked.
    pub members: u64,
    /// Records that were not trained on.
    pub others: u64,
    /// Shadow models of the likelihood ratio.
    pub shadows: u64,
    /// What the run promises; absent where it promises nothing.
    pub promise: Option<Stated>,
    /// Whether the run added noise.
    pub noise: bool,
    /// The run, where the model's folder has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Box<Training>>,
    /// By attacker.
    pub attacks: Vec<MembershipAttack>,
    /// One more run with canaries, where it was asked for.
    pub canaries: Option<CanaryAudit>,
    /// True against false positives.
    pub figures: Vec<Figure>,
    /// Seed of the shadow models and of the canaries.
    pub seed: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

/// An (ε, δ) that a run states.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stated {
    /// ε.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
}

impl Stated {
    /// The largest true-positive rate at a false-positive rate.
    pub fn allows(&self, rate: f64) -> Bound {
        let Self { epsilon, delta } = *self;
        let most = (epsilon.exp() * rate + delta).min(1.0 - (-epsilon).exp() * (1.0 - delta - rate));
        Bound::share_at_most(most.clamp(0.0, 1.0), Theorem::EpsilonDelta)
    }
}

/// Who attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MembershipAttacker {
    /// Records of little loss were in.
    Loss,
    /// Records of a short gradient were in.
    GradientNorm,
    /// The likelihood ratio of shadow models with and without the record.
    Lira,
}

/// What an attacker achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MembershipAttack {
    /// Who.
    pub attacker: MembershipAttacker,
    /// How often a training record scores above another: the area under the curve.
    pub area: f64,
    /// At false-positive rates that matter.
    pub points: Vec<Rate>,
    /// The curve: false- and true-positive rates.
    pub curve: Vec<[f64; 2]>,
}

/// True positives at a false-positive rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// False-positive rate that was allowed.
    pub rate: f64,
    /// What it was, with the interval of Clopper and Pearson.
    pub false_positive: Observed,
    /// True-positive rate, with the interval of Clopper and Pearson.
    pub true_positive: Observed,
    /// What the run's (ε, δ) allows at that rate; absent where it promises nothing.
    pub allowed: Option<Bound>,
}

impl Rate {
    /// Whether more was found than the run's (ε, δ) allows.
    pub fn is_past_limit(&self) -> bool {
        self.allowed.is_some_and(|b| self.true_positive.value > b.value)
    }

    /// Whether that is more than chance explains at this rate.
    pub fn is_clearly_past_limit(&self) -> bool {
        self.allowed.is_some_and(|b| self.true_positive.ci_low > b.value)
    }
}

/// A lower bound on ε from one run with canaries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CanaryAudit {
    /// Canaries, each in or out by a fair coin.
    pub canaries: u64,
    /// Guesses made.
    pub guessed: u64,
    /// Right ones.
    pub right: u64,
    /// ε is at least this.
    pub epsilon: Bound,
    /// With this confidence.
    pub confidence: f64,
    /// At this δ.
    pub delta: f64,
    /// Steps of the run.
    pub steps: u64,
    /// ε that such a run promises.
    pub promised: Option<f64>,
}

impl CanaryAudit {
    /// Whether it refutes what is promised: the training code is not what the accountant takes it for.
    pub fn refutes(&self) -> bool {
        self.promised.is_some_and(|p| self.epsilon.value > p)
    }
}

/// True against false positives of every attacker, and what (ε, δ) allows.
pub fn figures(attacks: &[MembershipAttack], promise: Option<Stated>) -> Vec<Figure> {
    let name = |a: MembershipAttacker| match a {
        MembershipAttacker::Loss => "loss",
        MembershipAttacker::GradientNorm => "norm of the gradient",
        MembershipAttacker::Lira => "likelihood ratio",
    };
    let shown = |a: &MembershipAttack| {
        let points = a.curve.iter().filter(|p| p[0] > 0.0 && p[1] > 0.0);
        let points = points.map(|p| Place { x: p[0], y: p[1], interval: None }).collect();
        Series { name: name(a.attacker).into(), claim: Claim::Observed, points }
    };
    let mut series: Vec<Series> = attacks.iter().map(shown).collect();
    let rates: Vec<f64> = (0..=30).map(|k| 10f64.powf(-3.0 + 0.1 * f64::from(k))).collect();
    if let Some(p) = promise {
        series.push(Series::bound("what (ε, δ) allows", rates.iter().map(|&r| (r, p.allows(r)))));
    }
    series.push(Series::measured("a coin", rates.iter().map(|&r| (r, r))));
    vec![Figure {
        id: "roc".into(),
        title: "True against false positives".into(),
        caption: "Of the records that an attacker says were in the training, how many were. The left end matters: there an \
                  attacker is sure of a few."
            .into(),
        x: Axis::log("false-positive rate"),
        y: Axis::log("true-positive rate"),
        series,
        levels: vec![],
        chosen: None,
    }]
}
