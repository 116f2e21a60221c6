//! What every record has given away so far in a training run.
//!
//! Information of adaptive releases adds up, step by step at that step's parameters, whether or not the record was
//! drawn. A record that is followed is measured at every step that it can take part in. Of one that is measured only where
//! it is drawn, the steps that draw it are a random sample of all its steps, whatever their number: their mean, times all
//! its steps, is unbiased given that number, with the spread among them in the standard error.

use super::{Sampling, TrainConfig};
use crate::{
    Real,
    device::{Accounts, Device},
    error::{Result, check},
    leak::RecordLeak,
    poisson,
    random::{Generator, Purpose},
    renyi,
};
use leakscope_core::claim::Measured;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, sync::Arc};

/// Which records are measured at every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Tracking {
    /// None.
    Off,
    /// A panel of records, drawn by the run's seed, at every step, and besides all that a step draws.
    Panel {
        /// Records in the panel; all where there are no more.
        records: usize,
        /// Probes of the trace, at least 2.
        probes: usize,
    },
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

/// Records in the usual panel: below the largest of so many random ones lie 99% of all, with a confidence of 97.5%
/// (`0.99³⁷⁰ = 0.0243`), which leaves as much for the errors of the panel's own estimates.
pub const PANEL: usize = 370;

impl Tracking {
    pub(crate) fn probes(self) -> Option<usize> {
        match self {
            Self::Off => None,
            Self::Panel { probes, .. } | Self::Drawn { probes } | Self::Every { probes } => Some(probes),
        }
    }

    /// Which of the records are followed at every step. The panel is no secret: it follows from the run's seed.
    fn follows(self, seed: u64, records: usize) -> Vec<bool> {
        let mut followed = vec![false; records];
        match self {
            Self::Off | Self::Drawn { .. } => {}
            Self::Every { .. } => followed.fill(true),
            Self::Panel { records: size, .. } if size >= records => followed.fill(true),
            Self::Panel { records: size, .. } => {
                let order = Generator::new(seed, Purpose::Other, 0x70_616e_656c).permutation(records);
                order.into_iter().take(size).for_each(|i| followed[i] = true);
            }
        }
        followed
    }
}

/// One record's account.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RecordBudget {
    /// Whether it was measured at every step that it could take part in; otherwise where it was drawn.
    pub followed: bool,
    /// Steps at which it was measured.
    pub measured: u64,
    /// Trace of its Fisher information under the sampling of the run: exact for an attacker who knows which other
    /// records were drawn, an upper bound for one who does not. Absent where it was not followed and drawn less than
    /// twice, so that nothing is known of its spread, and where a measure of a step was not finite.
    pub trace: Option<Measured>,
    /// The same over the dimension of a record.
    pub dfil: Option<Measured>,
    /// Degrees of freedom of their standard error.
    pub degrees: f64,
    /// Trace with the published factor (Edmunds eq. 2.3) instead.
    pub published: Option<Measured>,
    /// Its own Rényi budget at every order of [`renyi::ORDERS`], from its norms at every step: in no case a guarantee to
    /// others than this record. Absent where it was not followed.
    pub renyi: Option<[f64; renyi::ORDERS.len()]>,
}

/// Accounts of all records.
#[derive(Debug, Clone)]
pub(crate) struct Tracker {
    /// Steps at which each record was measured.
    pub(crate) measured: Vec<f64>,
    /// Sums over these of the trace, its square, and the variance of its probes.
    pub(crate) trace: Vec<f64>,
    pub(crate) square: Vec<f64>,
    pub(crate) probes: Vec<f64>,
    /// Sums of the unsampled trace and of its square: what the published factor multiplies.
    pub(crate) plain: Vec<f64>,
    pub(crate) plain_square: Vec<f64>,
    pub(crate) plain_probes: Vec<f64>,
    /// Records × orders; zero where a record is not followed.
    pub(crate) renyi: Vec<f64>,
    /// Records of which a step could not be measured: their accounts are not known.
    pub(crate) unknown: Vec<bool>,
    followed: Vec<bool>,
    tables: Option<(poisson::Table, renyi::Table)>,
    factor: f64,
    noise: f64,
    /// Degrees of freedom that one measure adds to the spread of its probes.
    degrees: f64,
    /// The accounts on a GPU, once they are kept there: those above are then as they were before.
    far: Option<Arc<Accounts>>,
}

/// A sum over all steps of a record from its measures.
struct Sums {
    measured: f64,
    sum: f64,
    square: f64,
    probes: f64,
}

impl Sums {
    /// The sum itself where all steps were measured.
    fn whole(&self) -> Measured {
        Measured { value: self.sum, standard_error: Some(self.probes.max(0.0).sqrt()) }
    }

    /// Of `steps` steps, of which a random part was measured: the mean of these times all, and its error: the spread
    /// among them over those that were not measured, and the probes of those that were.
    fn of_sample(&self, steps: f64) -> Option<Measured> {
        let k = self.measured;
        if k < 2.0 {
            return None;
        }
        let spread = ((self.square - self.sum * self.sum / k) / (k - 1.0)).max(0.0);
        let share = (k / steps.max(k)).min(1.0);
        let variance = ((1.0 - share) * spread + share * self.probes / k) / k;
        let value = steps * (self.sum / k);
        Some(Measured { value, standard_error: Some(steps * variance.sqrt()) })
    }
}

impl Tracker {
    pub(crate) fn new(config: &TrainConfig, records: usize) -> Result<Option<Self>> {
        let (Some(probes), Some(privacy)) = (config.tracking.probes(), config.privacy) else {
            return Ok(None);
        };
        check(config.delta > 0.0 && config.delta < 1.0, "delta", config.delta, "between 0 and 1")?;
        if let Tracking::Panel { records, .. } = config.tracking {
            check(records >= 1, "the records of the panel", records as f64, "at least 1")?;
        }
        let longest = privacy.clip.longest().unwrap_or(1.0) / (privacy.sigma * privacy.clip.unit());
        let (tables, factor, followed) = match config.sampling {
            Sampling::Poisson { rate } => {
                let tables = (poisson::Table::new(rate, longest)?, renyi::Table::new(rate, longest)?);
                let factor = poisson::published_factor(rate, privacy.sigma, config.delta)?;
                (Some(tables), factor, config.tracking.follows(config.seed, records))
            }
            // the order is treated as known: a record gives away everything in the one step it takes part in
            Sampling::Shuffle { .. } => (None, 1.0, vec![true; records]),
        };
        let zeros = || vec![0.0; records];
        Ok(Some(Self {
            measured: zeros(),
            trace: zeros(),
            square: zeros(),
            probes: zeros(),
            plain: zeros(),
            plain_square: zeros(),
            plain_probes: zeros(),
            renyi: vec![0.0; records * renyi::ORDERS.len()],
            unknown: vec![false; records],
            followed,
            tables,
            factor,
            noise: privacy.sigma * privacy.clip.unit(),
            degrees: (probes - 1) as f64,
            far: None,
        }))
    }

    /// A copy of the accounts on the device, for a step to add to; absent on the processor.
    pub(crate) fn accounts<T: Real>(&self, dev: &Device<T>) -> Option<Accounts> {
        if let Some(far) = &self.far {
            return Some(dev.copy_accounts(far));
        }
        let columns = [
            &self.measured[..],
            &self.trace,
            &self.square,
            &self.probes,
            &self.plain,
            &self.plain_square,
            &self.plain_probes,
        ];
        let tables = self.tables.as_ref().map(|(p, r)| (p, r));
        dev.accounts(columns, (&self.renyi, &self.followed), tables, self.noise)
    }

    /// Keeps accounts that a step has added to.
    pub(crate) fn keep(&mut self, accounts: Accounts) {
        self.far = Some(Arc::new(accounts));
    }

    /// Gives up the accounts of records that took part and could not be measured.
    pub(crate) fn forget(&mut self, records: &[usize]) {
        records.iter().for_each(|&i| self.unknown[i] = true);
    }

    /// The accounts as they are now, in the host's memory.
    pub(crate) fn current<T: Real>(&self, dev: &Device<T>) -> Result<Cow<'_, Self>> {
        let Some(far) = &self.far else { return Ok(Cow::Borrowed(self)) };
        let mut near = Self { far: None, ..self.clone() };
        let columns = [
            &mut near.measured,
            &mut near.trace,
            &mut near.square,
            &mut near.probes,
            &mut near.plain,
            &mut near.plain_square,
            &mut near.plain_probes,
        ];
        for (to, from) in columns.into_iter().zip(&far.columns) {
            *to = dev.download_scalars(from)?;
        }
        near.renyi = dev.download_scalars(&far.renyi)?;
        Ok(Cow::Owned(near))
    }

    /// Which records a step must measure, given those it drew and those that can take part; ascending.
    pub(crate) fn wants(&self, drawn: &[usize], takes_part: impl Fn(usize) -> bool) -> Vec<usize> {
        match self.tables {
            None => drawn.to_vec(),
            Some(_) => {
                let mut wanted: Vec<usize> =
                    (0..self.followed.len()).filter(|&i| self.followed[i] && takes_part(i)).collect();
                wanted.extend(drawn.iter().filter(|&&i| !self.followed[i]));
                wanted.sort_unstable();
                wanted
            }
        }
    }

    /// Adds one step's measures, on the processor.
    pub(crate) fn add(&mut self, leaks: &[RecordLeak]) {
        for leak in leaks {
            let (Some(trace), Some(along)) = (leak.trace, leak.along) else { continue };
            let nu = leak.released_norm / self.noise;
            let c = match &self.tables {
                Some((p, _)) => p.at(nu),
                None => poisson::Coefficients { across: 1.0, along: 1.0 },
            };
            let i = leak.record;
            let error = trace.standard_error.unwrap_or(0.0);
            let exact = c.trace(trace.value, along);
            self.measured[i] += 1.0;
            self.trace[i] += exact;
            self.square[i] += exact * exact;
            self.probes[i] += (c.across * error).powi(2);
            self.plain[i] += trace.value;
            self.plain_square[i] += trace.value * trace.value;
            self.plain_probes[i] += error * error;
            if self.followed[i] {
                let rdp = match &self.tables {
                    Some((_, r)) => r.at(nu),
                    None => renyi::ORDERS.map(|a| 0.5 * f64::from(a) * nu * nu),
                };
                let account = &mut self.renyi[i * rdp.len()..(i + 1) * rdp.len()];
                account.iter_mut().zip(rdp).for_each(|(a, r)| *a += r);
            }
        }
    }

    /// dFIL of the followed records so far.
    pub(crate) fn followed_dfil<T: Real>(
        &self,
        dev: &Device<T>,
        dimension: impl Fn(usize) -> usize,
    ) -> Result<Vec<f64>> {
        let trace = match &self.far {
            Some(far) => Cow::Owned(dev.download_scalars(&far.columns[1])?),
            None => Cow::Borrowed(&self.trace),
        };
        let all = self.followed.iter().zip(trace.iter()).enumerate();
        let each = all.filter(|(_, (followed, t))| **followed && t.is_finite());
        Ok(each.map(|(i, (_, t))| t / dimension(i) as f64).collect())
    }

    /// The account of a record that could take part in `steps` steps.
    pub(crate) fn budget(&self, record: usize, dimension: usize, steps: u64) -> RecordBudget {
        let (i, d, k) = (record, dimension as f64, renyi::ORDERS.len());
        let followed = self.followed[i];
        let known = !self.unknown[i];
        let measured = self.measured[i];
        let of = |sum: &[f64], square: &[f64], probes: &[f64]| {
            let sums = Sums { measured, sum: sum[i], square: square[i], probes: probes[i] };
            let measured = if followed { Some(sums.whole()) } else { sums.of_sample(steps as f64) };
            let finite = |m: &Measured| (m.value + m.standard_error.unwrap_or(0.0)).is_finite();
            measured.filter(|m| known && finite(m))
        };
        let times = |m: Measured, factor: f64| Measured {
            value: factor * m.value,
            standard_error: m.standard_error.map(|e| factor * e),
        };
        let trace = of(&self.trace, &self.square, &self.probes);
        RecordBudget {
            followed,
            measured: measured as u64,
            trace,
            dfil: trace.map(|m| times(m, 1.0 / d)),
            degrees: if followed { self.degrees * measured } else { measured - 1.0 }.max(1.0),
            published: of(&self.plain, &self.plain_square, &self.plain_probes).map(|m| times(m, self.factor)),
            renyi: (followed && known).then(|| std::array::from_fn(|j| self.renyi[i * k + j])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_core::special::student_t_quantile;

    /// By simulation: a record whose trace falls over the run, drawn with probability q at every step and estimated by a
    /// noisy measure there. The estimate is unbiased, and Student's interval covers nearly as often as it says; the
    /// estimate that weights by 1/q spreads much more, since the number of draws is in it.
    #[test]
    fn a_sample_of_steps_tells_of_all_of_them() {
        let mut rng = Generator::new(11, Purpose::Other, 0);
        for (steps, q) in [(200_u64, 0.1), (60, 0.3)] {
            let value = |t: u64| 2.0 + (-3.0 * t as f64 / steps as f64).exp();
            let truth: f64 = (0..steps).map(value).sum();
            let (mut covered, mut known, mut bias, mut spread, mut weighted) = (0, 0, 0.0, 0.0, 0.0);
            let trials = 3000;
            for _ in 0..trials {
                let mut s = Sums { measured: 0.0, sum: 0.0, square: 0.0, probes: 0.0 };
                for t in 0..steps {
                    let noise = 0.2 * rng.normal();
                    if rng.uniform() < q {
                        let v = value(t) + noise;
                        s = Sums {
                            measured: s.measured + 1.0,
                            sum: s.sum + v,
                            square: s.square + v * v,
                            probes: s.probes + 0.04,
                        };
                    }
                }
                weighted += (s.sum / q - truth).powi(2);
                let Some(m) = s.of_sample(steps as f64) else { continue };
                known += 1;
                let half = student_t_quantile(0.975, s.measured - 1.0) * m.standard_error.unwrap();
                covered += usize::from((m.value - truth).abs() <= half);
                bias += m.value - truth;
                spread += (m.value - truth).powi(2);
            }
            let n = f64::from(known);
            let share = covered as f64 / n;
            assert!(share > 0.93 && share < 0.97, "{steps} {q}: {share}");
            let sd = (spread / n).sqrt();
            assert!((bias / n).abs() < 4.0 * sd / n.sqrt(), "{} {sd}", bias / n);
            assert!(spread / n < 0.2 * weighted / f64::from(trials), "{spread} {weighted}");
        }
    }

    #[test]
    fn a_panel_is_a_random_choice_that_the_seed_repeats() {
        let panel = |seed, size| Tracking::Panel { records: size, probes: 2 }.follows(seed, 50);
        assert_eq!(panel(1, 10), panel(1, 10));
        assert_ne!(panel(1, 10), panel(2, 10));
        assert_eq!(panel(1, 10).iter().filter(|f| **f).count(), 10);
        assert!(panel(1, 50).iter().all(|f| *f) && panel(1, 80).iter().all(|f| *f));
        // every record is chosen about as often
        let mut counts = [0_u32; 50];
        for seed in 0..2000 {
            panel(seed, 10).iter().zip(&mut counts).for_each(|(f, c)| *c += u32::from(*f));
        }
        // 400 expected, five standard deviations are 89
        assert!(counts.iter().all(|c| (311..=489).contains(c)), "{counts:?}");
    }

    #[test]
    fn fewer_than_two_draws_tell_nothing() {
        let s = Sums { measured: 1.0, sum: 3.0, square: 9.0, probes: 0.1 };
        assert_eq!(s.of_sample(10.0), None);
        // all steps drawn: only the probes are uncertain
        let s = Sums { measured: 4.0, sum: 10.0, square: 30.0, probes: 0.16 };
        let m = s.of_sample(4.0).unwrap();
        assert_eq!((m.value, m.standard_error), (10.0, Some(0.4)));
    }
}
