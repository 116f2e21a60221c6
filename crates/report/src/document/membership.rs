//! What `leakscope net attack --method membership` found, as plain data: who was among the training records?

use super::net::{DataFacts, NetworkFacts};
use super::training::Training;
use crate::figure::{Axis, Claim, Figure, Place, Series};
use leakscope_core::claim::{Bound, Observed, Theorem};
use leakscope_core::num::Summary;
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
    /// The own ε of the attacked training records, by the accounts that the run kept of them; absent where it kept none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnAccounts>,
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

/// What the run's accounts of single records say of those attacked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OwnAccounts {
    /// Attacked training records that have an account.
    pub accounted: u64,
    /// The own ε, at the δ of the promise.
    pub epsilon: Summary,
}

/// The largest mean true-positive rate of records with these ε at a mean false-positive rate, whatever rate an attacker picks
/// for each of them.
///
/// Each record's curve `f(a) = min(e^ε a + δ, 1 − e^{−ε}(1 − δ − a), 1)` is concave and made of straight parts; the mean is
/// largest where the steepest parts of all are used first.
pub fn allowed_to_all(epsilons: &[f64], delta: f64, rate: f64) -> Option<f64> {
    if epsilons.is_empty() {
        return None;
    }
    let n = epsilons.len() as f64;
    // (slope, length) of the parts
    let parts = |e: &f64| {
        let corner = (1.0 - delta) / (1.0 + e.exp());
        [(e.exp(), corner), ((-e).exp(), (1.0 - delta - corner).max(0.0))]
    };
    let mut all: Vec<(f64, f64)> = epsilons.iter().flat_map(parts).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut left, mut hits) = (rate.clamp(0.0, 1.0) * n, delta * n);
    for (slope, length) in all {
        let used = length.min(left);
        if used <= 0.0 {
            continue;
        }
        // e^ε may be infinite where the corner is 0
        hits += if slope.is_finite() { slope * used } else { 1.0 };
        left -= used;
    }
    // away from zero by a rounding of the sum
    Some((hits / n * (1.0 + 1e-12)).clamp(0.0, 1.0))
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
    /// The largest mean rate that the own ε of the attacked training records allow, on the path that the run took; absent where
    /// the run kept no accounts. Not a promise made beforehand: gradients of another run would have other norms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_allowed: Option<f64>,
}

impl Rate {
    /// The largest false-positive rate that its interval holds. Few other records say little about it, and what an attacker may
    /// find grows with it.
    fn highest_rate(&self) -> f64 {
        self.false_positive.ci_high.max(self.rate)
    }

    /// Whether more was found than the records' own accounts allow, beyond chance. What they allow is concave in the rate, so
    /// that at a rate k times as large it is at most k times as much.
    pub fn is_past_own_accounts(&self) -> bool {
        let most = |at_rate: f64| at_rate * self.highest_rate() / self.rate;
        self.own_allowed.is_some_and(|at_rate| self.true_positive.ci_low > most(at_rate))
    }

    /// Whether more was found than the run's (ε, δ) allows.
    pub fn is_past_limit(&self) -> bool {
        self.allowed.is_some_and(|b| self.true_positive.value > b.value)
    }

    /// Whether that is more than chance explains, in either rate.
    pub fn is_clearly_past_limit(&self, promise: Option<Stated>) -> bool {
        promise.is_some_and(|p| self.true_positive.ci_low > p.allows(self.highest_rate()).value)
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

/// True against false positives of every attacker, what (ε, δ) allows, and what the own ε of records and their δ allow.
pub fn figures(
    attacks: &[MembershipAttack],
    promise: Option<Stated>,
    own: Option<(&[f64], f64)>,
) -> Vec<Figure> {
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
    if let Some((epsilons, delta)) = own {
        let points = rates.iter().filter_map(|&r| Some((r, allowed_to_all(epsilons, delta, r)?)));
        series.push(Series::measured("what the records’ own accounts allow", points.collect::<Vec<_>>()));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a search over the rates of every record.
    #[test]
    fn the_most_that_accounts_allow_is_found_by_search() {
        let delta = 1e-3;
        let one = |e: f64, a: f64| {
            let p = Stated { epsilon: e, delta };
            p.allows(a).value
        };
        for (e1, e2, rate) in [(0.1, 2.0, 0.05), (1.0, 1.0, 0.2), (0.0, 5.0, 0.01), (3.0, 0.5, 0.6)] {
            let ours = allowed_to_all(&[e1, e2], delta, rate).unwrap();
            let searched = (0..=20_000)
                .map(|i| 2.0 * rate * f64::from(i) / 20_000.0)
                .filter(|a| *a <= 1.0 && 2.0 * rate - a <= 1.0)
                .map(|a| 0.5 * (one(e1, a) + one(e2, 2.0 * rate - a)))
                .fold(0.0, f64::max);
            assert!((ours - searched).abs() < 1e-3 && ours >= searched - 1e-6, "{ours} {searched}");
        }
        // the same ε for all is that of one
        let same = allowed_to_all(&[1.3; 7], delta, 0.04).unwrap();
        assert!((same - one(1.3, 0.04)).abs() < 1e-9);
        assert_eq!(allowed_to_all(&[], delta, 0.1), None);
        // nothing is learned: as many true as false positives, up to δ
        assert!((allowed_to_all(&[0.0; 3], 0.0, 0.25).unwrap() - 0.25).abs() < 1e-9);
        assert!(allowed_to_all(&[800.0], delta, 0.01).unwrap() <= 1.0);
    }
}
