//! What every record has given away so far in a training run.
//!
//! Information of adaptive releases adds up, step by step at that step's parameters, whether or not the record was
//! drawn. Where only the drawn records are looked at, each counts 1/q-fold: unbiased, with the variance of that
//! sampling in the standard error.

use super::{Sampling, TrainConfig};
use crate::{
    error::{Result, check},
    leak::RecordLeak,
    poisson, renyi,
};
use leakscope_core::claim::Measured;
use serde::{Deserialize, Serialize};

/// Which records are measured at every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Tracking {
    /// None.
    Off,
    /// Those that were drawn: unbiased.
    Drawn {
        /// Probes of the trace, at least 2.
        probes: usize,
    },
    /// All: no sampling error, at the cost of a pass over the data per step.
    Every {
        /// Probes of the trace, at least 2.
        probes: usize,
    },
}

impl Tracking {
    pub(crate) fn probes(self) -> Option<usize> {
        match self {
            Self::Off => None,
            Self::Drawn { probes } | Self::Every { probes } => Some(probes),
        }
    }
}

/// One record's account.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecordBudget {
    /// Trace of its Fisher information under the sampling of the run: exact for an attacker who knows which other
    /// records were drawn, an upper bound for one who does not.
    pub trace: Measured,
    /// The same over the dimension of a record.
    pub dfil: Measured,
    /// Trace with the published factor (Edmunds eq. 2.3) instead.
    pub published: Measured,
    /// Its own Rényi budget at every order of [`renyi::ORDERS`]: an estimate with [`Tracking::Drawn`], and in no
    /// case a guarantee to others than this record.
    pub renyi: [f64; renyi::ORDERS.len()],
}

/// Accounts of all records.
#[derive(Debug, Clone)]
pub(crate) struct Tracker {
    pub(crate) trace: Vec<f64>,
    pub(crate) variance: Vec<f64>,
    pub(crate) published: Vec<f64>,
    pub(crate) published_variance: Vec<f64>,
    /// Records × orders.
    pub(crate) renyi: Vec<f64>,
    tables: Option<(poisson::Table, renyi::Table)>,
    factor: f64,
    /// Probability that a record is looked at in a step.
    seen: f64,
    noise: f64,
    /// Whether the sampling is Poisson's.
    sampled: bool,
}

impl Tracker {
    pub(crate) fn new(config: &TrainConfig, records: usize) -> Result<Option<Self>> {
        let (Some(_), Some(privacy)) = (config.tracking.probes(), config.privacy) else { return Ok(None) };
        check(config.delta > 0.0 && config.delta < 1.0, "delta", config.delta, "between 0 and 1")?;
        let longest = privacy.clip.longest().unwrap_or(1.0) / (privacy.sigma * privacy.clip.unit());
        let (tables, factor, seen, sampled) = match config.sampling {
            Sampling::Poisson { rate } => {
                let tables = (poisson::Table::new(rate, longest)?, renyi::Table::new(rate, longest)?);
                let factor = poisson::published_factor(rate, privacy.sigma, config.delta)?;
                let seen = if matches!(config.tracking, Tracking::Every { .. }) { 1.0 } else { rate };
                (Some(tables), factor, seen, true)
            }
            // the order is treated as known: a record gives away everything in the one step it takes part in
            Sampling::Shuffle { .. } => (None, 1.0, 1.0, false),
        };
        Ok(Some(Self {
            trace: vec![0.0; records],
            variance: vec![0.0; records],
            published: vec![0.0; records],
            published_variance: vec![0.0; records],
            renyi: vec![0.0; records * renyi::ORDERS.len()],
            tables,
            factor,
            seen,
            noise: privacy.sigma * privacy.clip.unit(),
            sampled,
        }))
    }

    /// Which records a step must measure, given those it drew.
    pub(crate) fn wants(&self, drawn: &[usize]) -> Vec<usize> {
        if self.sampled && self.seen == 1.0 { (0..self.trace.len()).collect() } else { drawn.to_vec() }
    }

    /// Adds one step's measures.
    pub(crate) fn add(&mut self, leaks: &[RecordLeak]) {
        for leak in leaks {
            let (Some(trace), Some(along)) = (leak.trace, leak.along) else { continue };
            let nu = leak.released_norm / self.noise;
            let (c, rdp) = match &self.tables {
                Some((p, r)) => (p.at(nu), r.at(nu)),
                None => (
                    poisson::Coefficients { across: 1.0, along: 1.0 },
                    renyi::ORDERS.map(|a| 0.5 * f64::from(a) * nu * nu),
                ),
            };
            let (i, w) = (leak.record, 1.0 / self.seen);
            let error = trace.standard_error.unwrap_or(0.0);
            // of a value x seen with probability q: mean x, variance (1−q)/q·x², estimated by (1−q)/q²·x²
            let spread = |x: f64, e: f64| (1.0 - self.seen) * w * w * x * x + (w * e).powi(2);
            let exact = c.trace(trace.value, along);
            self.trace[i] += w * exact;
            self.variance[i] += spread(exact, c.across * error);
            let bound = self.factor * trace.value;
            self.published[i] += w * bound;
            self.published_variance[i] += spread(bound, self.factor * error);
            let account = &mut self.renyi[i * rdp.len()..(i + 1) * rdp.len()];
            account.iter_mut().zip(rdp).for_each(|(a, r)| *a += w * r);
        }
    }

    pub(crate) fn budget(&self, record: usize, dimension: usize) -> RecordBudget {
        let measured = |v: f64, variance: f64| Measured { value: v, standard_error: Some(variance.sqrt()) };
        let (d, k) = (dimension as f64, renyi::ORDERS.len());
        let trace = measured(self.trace[record], self.variance[record]);
        RecordBudget {
            trace,
            dfil: Measured { value: trace.value / d, standard_error: trace.standard_error.map(|e| e / d) },
            published: measured(self.published[record], self.published_variance[record]),
            renyi: std::array::from_fn(|j| self.renyi[record * k + j]),
        }
    }
}
