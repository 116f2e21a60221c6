//! How much work telling values apart may take: counted in operations, so that the same table has the same answers on every
//! machine; `tell_budget` is in seconds of an ordinary one.

use super::{Subject, Work};
use crate::request::{Request, TELL_BUDGET};

/// Attributes that are tried at most, those that η says are most exposed first.
const MOST_ATTRIBUTES: f64 = 100.0;
/// Work of all questions together: rows × columns × candidates and their pairs. Where records must be refitted, a tenth.
const MOST_WORK: f64 = 1e10;
const MOST_WORK_WITH_REFITS: f64 = 1e9;
/// Work that no question can do without: the inverse of the Hessian, and a pass with it.
const MOST_SHARED_WORK: f64 = 4e10;
/// Rows above which the distances of all records are not kept in memory.
const MOST_ROWS: f64 = 4e6;
/// Work of the refits of one question, and how many records are refitted at most: at first, and where that leaves it open how
/// often the worst record is told apart.
const REFITS: [(f64, f64); 2] = [(2e8, 64.0), (2e9, 4096.0)];

/// What the budget of a request allows, over what is usual.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget(f64);

impl Budget {
    pub(super) fn of(request: &Request) -> Self {
        Self(request.tell_budget.map_or(f64::INFINITY, |seconds| seconds / TELL_BUDGET))
    }

    /// Work of all questions, where every record is looked at through products, or refitted.
    pub(super) fn work(self, with_refits: bool) -> f64 {
        self.0 * if with_refits { MOST_WORK_WITH_REFITS } else { MOST_WORK }
    }

    /// Records of one question that are refitted at first, and at most, one of them costing `each`.
    pub(super) fn refits(self, each: f64) -> [usize; 2] {
        let [few, many] = REFITS;
        let of = |(work, most): (f64, f64), times: f64| {
            let most = (most * times).max(4.0);
            (work * times / each).clamp(4.0, most) as usize
        };
        [of(few, self.0.min(1.0)), of(many, self.0)]
    }

    /// How many of the subjects can be tried.
    pub(super) fn affordable(self, subjects: &[Subject<'_>], n: u64, work: &Work) -> usize {
        let (rows, p) = (n as f64, work.coefficients);
        let shared = 10.0 * p.powi(3) + rows * p * p;
        if rows > MOST_ROWS * self.0.max(1.0) || shared > MOST_SHARED_WORK * self.0 {
            return 0;
        }
        let mut done = 0.0;
        subjects
            .iter()
            .take((MOST_ATTRIBUTES * self.0) as usize)
            .take_while(|s| {
                let c = s.candidates as f64;
                done += rows * (work.look * c + work.pair * 0.5 * c * (c - 1.0));
                done <= work.most
            })
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Subject<'_> {
        Subject { attribute: None, name, exposure: 0.0, candidates: 2, chosen: false }
    }

    #[test]
    fn more_time_tries_more_and_all_tries_all() {
        let of = |tell_budget| Budget::of(&Request { tell_budget, ..Request::default() });
        let names: Vec<String> = (0..3000).map(|k| k.to_string()).collect();
        let subjects: Vec<Subject<'_>> = names.iter().map(|n| subject(n)).collect();
        let tried = |seconds: Option<f64>, n: u64, p: f64| {
            let budget = of(seconds);
            let work = Work { look: p, pair: p, coefficients: p, most: budget.work(false) };
            budget.affordable(&subjects, n, &work)
        };
        assert_eq!(tried(Some(TELL_BUDGET), 1000, 10.0), 100);
        assert_eq!(tried(Some(3.0 * TELL_BUDGET), 1000, 10.0), 300);
        assert_eq!(tried(Some(TELL_BUDGET), 300, 3000.0), 0);
        assert_eq!(tried(Some(100.0 * TELL_BUDGET), 300, 3000.0), 3000);
        assert_eq!((tried(None, 300, 3000.0), tried(None, 100_000_000, 3000.0)), (3000, 3000));
        assert_eq!(tried(Some(0.0), 300, 3.0), 0);
        assert_eq!(of(Some(TELL_BUDGET)).refits(1e8), [4, 20]);
        assert_eq!(of(None).refits(1e8), [4, usize::MAX]);
        assert_eq!(of(Some(0.0)).refits(1e8), [4, 4]);
    }
}
