//! One composition seen by every accountant that applies to it.

use super::{Accountant, Adjacency, Interval, Mechanism, TradeOffPoint, gaussian, rdp};
use crate::Result;
use serde::{Deserialize, Serialize};

/// ε at δ by each accountant; absent where it has nothing to say about these releases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epsilons {
    /// Privacy loss distributions: the truth lies inside.
    pub pld: Interval,
    /// Rényi accounting, with the order it used.
    pub rdp: rdp::RdpEpsilon,
    /// Closed form of the Gaussian mechanism, where every release is plainly Gaussian.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub analytic_gaussian: Option<f64>,
    /// Zero-concentrated DP.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub zcdp: Option<f64>,
    /// Sum of the pure ε of the releases, where all have one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pure: Option<f64>,
}

/// What a composition costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The adjacency of every number here.
    pub adjacency: Adjacency,
    /// The releases and how often each is made.
    pub releases: Vec<(Mechanism, u64)>,
    /// The δ of every ε here.
    pub delta: f64,
    /// ε by each accountant.
    pub epsilon: Epsilons,
    /// Distance μ of Gaussian DP, where it holds exactly.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gdp_mu: Option<f64>,
    /// Membership advantage: the largest true- minus false-positive rate of any test.
    pub advantage: Interval,
    /// The trade-off curve.
    pub trade_off: Vec<TradeOffPoint>,
}

/// False-positive rates of the curve: three a decade in the tail, every two per cent in the middle.
pub fn curve_rates() -> Vec<f64> {
    let tail = (0..15).map(|i| 10_f64.powf(-6.0 + f64::from(i) / 3.5));
    let mut rates: Vec<f64> = tail.chain((1..50).map(|i| f64::from(i) / 50.0)).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|a, b| (*a - *b).abs() < 1e-12);
    rates
}

/// Accounts for a composition at δ by every accountant that applies.
pub fn account(accountant: &Accountant, delta: f64) -> Result<Account> {
    let (steps, adjacency) = (accountant.steps(), accountant.adjacency());
    let pld = accountant.epsilon(delta)?;
    let mu = gaussian::distance(steps, adjacency);
    let pure: Option<f64> =
        steps.iter().map(|(m, n)| Some(m.pure_epsilon(adjacency)? * *n as f64)).sum::<Option<f64>>();
    let epsilon = Epsilons {
        pld,
        rdp: rdp::epsilon(steps, adjacency, delta)?,
        analytic_gaussian: mu.map(|mu| gaussian::epsilon(mu, delta)).transpose()?,
        zcdp: gaussian::zcdp(steps, adjacency).map(|rho| gaussian::zcdp_epsilon(rho, delta)).transpose()?,
        pure,
    };
    Ok(Account {
        adjacency,
        releases: steps.to_vec(),
        delta,
        epsilon,
        gdp_mu: mu,
        advantage: accountant.advantage()?,
        trade_off: accountant.trade_off(&curve_rates())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accountants_are_ordered_and_absent_where_they_do_not_apply() {
        let sampled = Accountant::dp_sgd(1.0, 0.01, 1000, Adjacency::AddRemove).unwrap();
        let a = account(&sampled, 1e-5).unwrap();
        assert!(a.epsilon.pld.upper <= a.epsilon.rdp.epsilon);
        assert!(a.epsilon.analytic_gaussian.is_none() && a.gdp_mu.is_none() && a.epsilon.pure.is_none());
        let json = serde_json::to_value(&a).unwrap();
        assert!(json["epsilon"]["pld"]["upper"].as_f64().unwrap() > 1.82);
        assert_eq!(json["adjacency"], "add-remove");

        let plain = Accountant::dp_sgd(2.0, 1.0, 3, Adjacency::Replace).unwrap();
        let a = account(&plain, 1e-6).unwrap();
        let exact = a.epsilon.analytic_gaussian.unwrap();
        assert!(exact <= a.epsilon.zcdp.unwrap() && exact <= a.epsilon.rdp.epsilon);
        assert!(a.advantage.contains(gaussian::advantage(a.gdp_mu.unwrap())));

        let laplace =
            Accountant::new(Adjacency::AddRemove).with(Mechanism::Laplace { scale: 2.0 }, 4).unwrap();
        let a = account(&laplace, 1e-9).unwrap();
        assert!((a.epsilon.pure.unwrap() - 2.0).abs() < 1e-15 && a.epsilon.pld.upper <= 2.0 + 1e-9);
    }
    /// Where no grid is fine enough and short enough, closed forms and Rényi accounting still hold.
    #[test]
    fn compositions_beyond_any_grid_are_answered() {
        let add_remove = |m: Mechanism, n: u64| Accountant::new(Adjacency::AddRemove).with(m, n).unwrap();
        let gaussian = |sigma, rate, n| add_remove(Mechanism::gaussian(sigma, rate), n);
        for accountant in [
            gaussian(1e-6, 1.0, 1_000_000),
            gaussian(1e-3, 1.0, 1_000_000),
            gaussian(1e6, 1.0, 1),
            gaussian(1.0, 0.01, 1_000_000_000),
            add_remove(Mechanism::Laplace { scale: 1e-9 }, 10),
        ] {
            let a = account(&accountant, 1e-5).unwrap();
            let (pld, exact) = (a.epsilon.pld, a.epsilon.analytic_gaussian);
            assert!(pld.lower <= pld.upper && pld.upper <= a.epsilon.rdp.epsilon, "{a:?}");
            assert!(exact.is_none_or(|e| pld.contains(e) || e == pld.upper), "{a:?}");
            assert!(a.trade_off.iter().all(|t| t.false_negative.lower <= t.false_negative.upper), "{a:?}");
        }
        // A coin that says nothing.
        let coin = Mechanism::RandomisedResponse { categories: 4, noise: 1.0 };
        let a = account(&Accountant::new(Adjacency::Replace).with(coin, 3).unwrap(), 1e-5).unwrap();
        assert!(a.epsilon.pld.upper == 0.0 && a.epsilon.zcdp == Some(0.0), "{a:?}");
        for sigma in [1e300, 1e-300] {
            assert!(Accountant::dp_sgd(sigma, 1.0, 1, Adjacency::AddRemove).is_err());
        }
    }
}
