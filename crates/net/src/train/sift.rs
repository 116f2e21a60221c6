//! Records whose gradient is not finite, in private training: they take part with zero, and nobody outside sees it.
//!
//! To stop the run for one record would tell of it. Zero is within every clip, so that such a record counts as if it had not been
//! drawn; which ones they were stays with the owner. Where a batch has one, it is computed again in halves.

use super::{Trainer, filter::Spending, track::Tracker};
use crate::{
    Clip, Real,
    clip::Clipped,
    device::Accounts,
    engine::{self, BatchGradient},
    error::{Error, Result, check_finite},
    leak::{Measure, Plis, Probe, RecordLeak, Trace},
    perturb::Added,
};
use std::cell::RefCell;

/// Computes something of records, leaving out those that have no finite answer: `keep` gets what comes of the others, part by
/// part, and what is returned are those that were left out.
pub(super) fn sift<R>(
    records: &[usize],
    of: &dyn Fn(&[usize]) -> Result<R>,
    keep: &mut dyn FnMut(R),
) -> Result<Vec<usize>> {
    match (of(records), records) {
        (Ok(answer), _) => {
            keep(answer);
            Ok(Vec::new())
        }
        (Err(Error::NotFinite { .. }), [] | [_]) => Ok(records.to_vec()),
        (Err(Error::NotFinite { .. }), _) => {
            let (first, second) = records.split_at(records.len() / 2);
            let mut left = sift(first, of, keep)?;
            left.extend(sift(second, of, keep)?);
            Ok(left)
        }
        (Err(other), _) => Err(other),
    }
}

/// What a step told of records.
pub(super) struct StepLeak {
    measures: Measures,
    /// Records that took part and whose leakage is not finite: of their accounts nothing is known any more.
    unknown: Vec<usize>,
}

/// Measures, or the accounts with them added on a GPU.
enum Measures {
    Near(Vec<RecordLeak>),
    Far(Box<Accounts>),
}

impl StepLeak {
    /// Adds it to the accounts.
    pub(super) fn keep(self, tracker: &mut Tracker) {
        match self.measures {
            Measures::Near(leaks) => tracker.add(&leaks),
            Measures::Far(accounts) => tracker.keep(*accounts),
        }
        tracker.forget(&self.unknown);
    }
}

impl<T: Real> Trainer<'_, T> {
    /// The sum of what those of the drawn records release whose gradient is finite.
    pub(super) fn released_by_finite(
        &self,
        drawn: &[usize],
        clip: Clip,
        shift: Option<&Added<T>>,
    ) -> Result<BatchGradient<T>> {
        let of = |records: &[usize]| {
            let mut batch = self.released(records, clip, shift)?;
            // finite norms whose products are not: no clip has bounded these
            check_finite("the sum of gradients", &batch.sum)?;
            self.workers.with(|dev| match batch.far.take() {
                None => Ok(batch),
                Some(far) if !dev.all_finite(&[&far])?.iter().all(|f| *f) => {
                    Err(Error::NotFinite { subject: "the sum of gradients", position: 0 })
                }
                // a part is added to others on the host
                Some(far) if records.len() < drawn.len() => {
                    Ok(BatchGradient { sum: dev.unload(far)?, ..batch })
                }
                Some(far) => Ok(BatchGradient { far: Some(far), ..batch }),
            })
        };
        let mut sum: Option<BatchGradient<T>> = None;
        let p = self.net.parameter_count();
        let mut keep = |batch| {
            sum = Some(match sum.take() {
                Some(before) => engine::added(vec![before, batch], p),
                None => batch,
            });
        };
        sift(drawn, &of, &mut keep)?;
        Ok(sum.unwrap_or_else(|| engine::added(Vec::new(), p)))
    }

    /// What this step tells of the records that are followed or drawn.
    pub(super) fn step_leak(
        &self,
        drawn: &[usize],
        spending: Option<&Spending>,
        added: Option<&Added<T>>,
    ) -> Result<StepLeak> {
        let (Some(tracker), Some(privacy), Some(probes)) =
            (&self.tracker, self.config.privacy, self.config.tracking.probes())
        else {
            return Ok(StepLeak { measures: Measures::Near(Vec::new()), unknown: Vec::new() });
        };
        // other probes at every step
        let seed = self.config.seed ^ self.step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let measure = Measure {
            trace: Trace::Estimate { probes, probe: Probe::Rademacher },
            plis: Plis::Record,
            label: self.config.label,
            ..Measure::new(privacy.clip, privacy.sigma, seed)
        };
        // a record that dropped out takes no part, and gives nothing away
        let takes_part = |i: usize| spending.is_none_or(|s| s.dropped[i].is_infinite());
        let wanted = tracker.wants(drawn, takes_part);
        let far = match added {
            None => self.workers.with(|dev| tracker.accounts(dev)),
            Some(_) => None,
        };
        let (measures, left) = match far {
            Some(accounts) => {
                let kept = RefCell::new(accounts);
                let of = |records: &[usize]| {
                    let mut accounts = self.workers.with(|dev| dev.copy_accounts(&kept.borrow()));
                    // with the values that dropout left out in this step: whoever knows them learns no less
                    let (workers, draws) = (&self.workers, self.draws());
                    T::account(workers, &self.net, self.data, records, (&measure, draws), &mut accounts)?;
                    Ok(accounts)
                };
                let left = sift(&wanted, &of, &mut |accounts| _ = kept.replace(accounts))?;
                (Measures::Far(Box::new(kept.into_inner())), left)
            }
            None => {
                let mut leaks = Vec::new();
                let of = |records: &[usize]| self.measured(records, measure.clone(), added);
                let left = sift(&wanted, &of, &mut |more: Vec<RecordLeak>| leaks.extend(more))?;
                (Measures::Near(leaks), left)
            }
        };
        // without a finite gradient it takes part with zero, and gives nothing away
        let unknown = left.into_iter().filter(|i| self.norms(&[*i], added).is_ok()).collect();
        Ok(StepLeak { measures, unknown })
    }

    /// What records (or units) would release: the lengths of their clipped gradients.
    fn norms(&self, records: &[usize], added: Option<&Added<T>>) -> Result<Vec<(usize, f64)>> {
        let Some(p) = self.config.privacy else { return Ok(Vec::new()) };
        if self.data.members().is_some() {
            let (workers, net, data) = (&self.workers, &self.net, self.data);
            let units = T::clipped_gradient(workers, net, data, records, p.clip, None, self.draws())?;
            let released = |n: f64| n * Clipped::new(p.clip, n).s;
            return Ok(records.iter().copied().zip(units.norms.into_iter().map(released)).collect());
        }
        let norms = Measure {
            trace: Trace::Skip,
            plis: Plis::Skip,
            label: self.config.label,
            ..Measure::new(p.clip, p.sigma, self.config.seed)
        };
        let leaks = self.measured(records, norms, added)?;
        Ok(leaks.iter().map(|leak| (leak.record, leak.released_norm)).collect())
    }

    /// The records' spending with this step charged to those that can pay it; absent without a filter. Records without a finite
    /// gradient pay nothing, and are named: they must not take part.
    pub(super) fn spend(
        &self,
        added: Option<&Added<T>>,
        silent: &mut Vec<usize>,
    ) -> Result<Option<Spending>> {
        let Some(spending) = &self.spending else { return Ok(None) };
        let active = spending.active();
        let mut spending = spending.clone();
        let of = |records: &[usize]| self.norms(records, added);
        *silent = sift(&active, &of, &mut |norms| spending.charge(self.step, norms))?;
        Ok(Some(spending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_finite_answer_is_left_out_and_only_that() {
        let bad = [3, 4, 11];
        let of = |records: &[usize]| match records.iter().find(|i| bad.contains(i)) {
            Some(&position) => Err(Error::NotFinite { subject: "a record", position }),
            None => Ok(records.to_vec()),
        };
        for n in [0, 1, 4, 5, 12, 13] {
            let all: Vec<usize> = (0..n).collect();
            let mut kept = Vec::new();
            let left = sift(&all, &of, &mut |more: Vec<usize>| kept.extend(more)).unwrap();
            let (expected_left, expected): (Vec<usize>, Vec<usize>) =
                all.iter().partition(|i| bad.contains(i));
            assert_eq!((left, kept), (expected_left, expected));
        }
        let broken = |_: &[usize]| -> Result<()> { Err(Error::Empty) };
        assert!(sift(&[1, 2], &broken, &mut |()| {}).is_err());
    }
}
