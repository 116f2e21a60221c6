//! A Rényi filter (Feldman and Zrnic 2021): a record takes part until its own budget is spent, and never again.

use super::{Privacy, Sampling};
use crate::{
    error::{Error, Result, check},
    renyi::{self, ORDERS},
};
use serde::{Deserialize, Serialize};

/// The most that a run may cost a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// ε of every record, at the run's δ.
    pub epsilon: f64,
    /// ε by record instead; empty: the same for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<f64>,
}

impl Filter {
    /// The largest ε that any record may reach: what the run promises to all.
    pub fn largest(&self) -> f64 {
        self.budgets.iter().copied().fold(if self.budgets.is_empty() { self.epsilon } else { 0.0 }, f64::max)
    }

    fn of(&self, record: usize) -> f64 {
        self.budgets.get(record).copied().unwrap_or(self.epsilon)
    }
}

/// What every record has spent, at the order that its budget is kept at.
///
/// # Guarantee
/// Before each step the cost of a record at the current parameters is the Rényi divergence of order α of the sampled
/// Gaussian mechanism at its own clipped gradient norm. A record for which spent + cost would pass `B(α)` is left out of this
/// and all later steps, so its sum never passes `B(α) = ε − ln(1 − 1/α) + ln(δα)/(α − 1)`, with α fixed before the run
/// from public numbers. By Feldman and Zrnic (2021, theorem 4.3) the run is (α, B)-RDP for that record, hence (ε, δ)-DP
/// (Canonne, Kamath, Steinke 2020), under add/remove (or zero-out) adjacency.
#[derive(Debug, Clone)]
pub(crate) struct Spending {
    table: renyi::Table,
    /// Position of each record's order in [`ORDERS`].
    order: Vec<u8>,
    limit: Vec<f64>,
    pub(crate) spent: Vec<f64>,
    /// The step before which a record dropped out; infinite while it takes part.
    pub(crate) dropped: Vec<f64>,
    noise: f64,
}

impl Spending {
    pub(crate) fn new(
        filter: &Filter,
        privacy: Privacy,
        sampling: Sampling,
        delta: f64,
        records: usize,
    ) -> Result<Self> {
        let Sampling::Poisson { rate } = sampling else {
            let reason = "shuffled batches have no filter: draw them by Poisson sampling".to_owned();
            return Err(Error::Format { subject: "the filter", reason });
        };
        check(delta > 0.0 && delta < 1.0, "delta", delta, "between 0 and 1")?;
        if !filter.budgets.is_empty() && filter.budgets.len() != records {
            let reason = format!("{} budgets for {records} records: give one for each", filter.budgets.len());
            return Err(Error::Format { subject: "the filter", reason });
        }
        let noise = privacy.sigma * privacy.clip.unit();
        let longest = privacy.clip.longest().unwrap_or(1.0) / noise;
        let table = renyi::Table::new(rate, longest)?;
        let worst = table.at(longest);
        let (mut order, mut limit) = (Vec::with_capacity(records), Vec::with_capacity(records));
        for i in 0..records {
            let epsilon = filter.of(i);
            check(
                epsilon > 0.0 && epsilon.is_finite(),
                "the budget of a record",
                epsilon,
                "positive and finite",
            )?;
            let (at, budget) = best_order(epsilon, delta, &worst).ok_or_else(|| Error::Format {
                subject: "the filter",
                reason: format!(
                    "ε = {epsilon} at δ = {delta} leaves no Rényi budget at any order up to {}: raise one of them",
                    ORDERS[ORDERS.len() - 1]
                ),
            })?;
            order.push(at);
            limit.push(budget);
        }
        let (spent, dropped) = (vec![0.0; records], vec![f64::INFINITY; records]);
        Ok(Self { table, order, limit, spent, dropped, noise })
    }

    /// Records that still take part.
    pub(crate) fn active(&self) -> Vec<usize> {
        (0..self.dropped.len()).filter(|&i| self.dropped[i].is_infinite()).collect()
    }

    /// Charges one step to active records, given the norms of their clipped gradients; those that cannot pay drop out.
    pub(crate) fn charge(&mut self, step: u64, norms: impl IntoIterator<Item = (usize, f64)>) {
        for (i, norm) in norms {
            let cost = self.table.at(norm / self.noise)[usize::from(self.order[i])];
            if self.spent[i] + cost > self.limit[i] {
                self.dropped[i] = step as f64;
            } else {
                self.spent[i] += cost;
            }
        }
    }
}

/// The order at which a record of the longest gradient takes part in most steps, and its budget there.
fn best_order(epsilon: f64, delta: f64, worst: &[f64; ORDERS.len()]) -> Option<(u8, f64)> {
    let budget = |order: u32| {
        let a = f64::from(order);
        epsilon - (-1.0 / a).ln_1p() + (delta * a).ln() / (a - 1.0)
    };
    let each = ORDERS.iter().zip(worst).enumerate().map(|(j, (&order, &cost))| (j, budget(order), cost));
    let best = each
        .filter(|(_, budget, _)| *budget > 0.0)
        .max_by(|a, b| (a.1 / a.2.max(1e-300)).total_cmp(&(b.1 / b.2.max(1e-300))));
    best.map(|(j, budget, _)| (j as u8, budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clip;

    fn spending(epsilon: f64) -> Spending {
        let filter = Filter { epsilon, budgets: vec![] };
        let privacy = Privacy { clip: Clip::Hard { bound: 2.0 }, sigma: 1.5 };
        Spending::new(&filter, privacy, Sampling::Poisson { rate: 0.1 }, 1e-5, 3).unwrap()
    }

    #[test]
    fn nobody_spends_more_than_the_budget_and_short_gradients_stay_longer() {
        let mut s = spending(2.0);
        for step in 0..10_000 {
            let norms: Vec<(usize, f64)> = s.active().into_iter().map(|i| (i, [2.0, 1.0, 0.0][i])).collect();
            s.charge(step, norms);
        }
        // ε of what was spent, by the conversion of the accountant, at the record's own order
        for i in 0..3 {
            let mut budgets = [f64::INFINITY; ORDERS.len()];
            budgets[usize::from(s.order[i])] = s.spent[i];
            assert!(renyi::epsilon(&budgets, 1e-5).unwrap().0 <= 2.0 + 1e-12);
        }
        assert!(s.dropped[0] < s.dropped[1] && s.dropped[1].is_finite() && s.dropped[2].is_infinite());
        assert!(s.spent[2] == 0.0);
        // the order is good: within a quarter of what the best accountant grants a record at the clip
        let all = |t: u64| std::array::from_fn(|j| t as f64 * s.table.at(2.0 / 3.0)[j]);
        let allowed = (1..10_000).take_while(|&t| renyi::epsilon(&all(t), 1e-5).unwrap().0 <= 2.0).count();
        let reached = s.dropped[0];
        assert!(reached >= 0.75 * allowed as f64 && reached <= allowed as f64, "{reached} {allowed}");
    }

    #[test]
    fn budgets_that_cannot_be_are_refused() {
        let privacy = Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 1.0 };
        let of = |filter: Filter, sampling| Spending::new(&filter, privacy, sampling, 1e-5, 3);
        let poisson = Sampling::Poisson { rate: 0.1 };
        let all = |epsilon| Filter { epsilon, budgets: vec![] };
        assert!(of(all(0.0), poisson).is_err() && of(all(f64::NAN), poisson).is_err());
        assert!(of(all(1e-9), poisson).is_err());
        assert!(of(Filter { epsilon: 1.0, budgets: vec![1.0] }, poisson).is_err());
        assert!(of(all(1.0), Sampling::Shuffle { batch: 2 }).is_err());
        let own = of(Filter { epsilon: 1.0, budgets: vec![1.0, 2.0, 3.0] }, poisson).unwrap();
        assert!(own.limit[0] < own.limit[2]);
    }
}
