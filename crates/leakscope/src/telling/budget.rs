//! How much work telling values apart may take: counted in operations, so that the same table has the same answers on every
//! machine; `tell_budget` is in seconds of an ordinary one.

use super::Subject;
use crate::request::{Request, TELL_BUDGET};
use leakscope_report::tell::Allowance;

/// Attributes that are tried at most, those that η says are most exposed first.
const MOST_ATTRIBUTES: f64 = 100.0;
/// Work of all questions together: rows × columns × candidates and their pairs, and what is refitted; about 10⁹ a second.
const MOST_WORK: f64 = 1e10;
/// Work that no question can do without: the inverse of the Hessian, and a pass with it.
const MOST_SHARED_WORK: f64 = 4e10;
/// Rows above which the distances of all records are not kept in memory.
const MOST_ROWS: f64 = 4e6;
/// Work of the refits of one question, and how many records are refitted at most: at first, and where that leaves it open how
/// often the worst record is told apart.
const REFITS: [(f64, f64); 2] = [(2e8, 64.0), (2e9, 4096.0)];
/// Records that are refitted at least, whatever that takes: without any, nothing is known of the worst one.
const FEWEST: f64 = 4.0;
/// Seconds above which advice allows all of it.
const LONG: f64 = 3600.0;

/// What questions cost: multiplications a row for the first look at a candidate, for a pair of them and besides for each level of
/// an attribute, free coefficients, and those of a refit where records are refitted.
pub(super) struct Work {
    pub(super) look: f64,
    pub(super) pair: f64,
    pub(super) pair_a_level: f64,
    pub(super) coefficients: f64,
    pub(super) refitted: Option<f64>,
}

/// What the budget of a request allows, over what is usual.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget(f64);

impl Budget {
    pub(super) fn of(request: &Request) -> Self {
        Self(request.tell_budget.map_or(f64::INFINITY, |seconds| seconds / TELL_BUDGET))
    }

    /// Work of all questions.
    pub(super) fn work(self) -> f64 {
        self.0 * MOST_WORK
    }

    /// Records of one question that are refitted at first, and at most, one of them costing `each`, where so much work is left for
    /// it.
    pub(super) fn refits(self, each: f64, left: f64) -> [usize; 2] {
        let [few, many] = REFITS;
        let of = |(work, most): (f64, f64), times: f64| {
            let most = (most * times).max(FEWEST);
            ((work * times).min(left) / each).clamp(FEWEST, most) as usize
        };
        [of(few, self.0.min(1.0)), of(many, self.0)]
    }

    /// What is worth allowing where these questions are too many for it, all together taking so much work; ten times as much
    /// where they are not, and were left open.
    pub(super) fn next(self, all: f64) -> Allowance {
        let (now, needed) = (TELL_BUDGET * self.0, TELL_BUDGET * all / MOST_WORK);
        let seconds = if needed > now { needed } else { 10.0 * now.max(1.0) };
        // In round numbers, and no less.
        let power = 10_f64.powf(seconds.max(1.0).log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|r| *r >= seconds);
        match round.filter(|r| *r <= LONG) {
            Some(seconds) => Allowance::Seconds(seconds),
            None => Allowance::All,
        }
    }

    /// How many of the subjects can be tried: they come first, in the order in which they were. What takes too long by itself does
    /// not keep others from being tried, and what all of them need is done for those that somebody named.
    pub(super) fn affordable(self, subjects: &mut [Subject<'_>], n: u64, work: &Work) -> usize {
        let rows = n as f64;
        if rows > MOST_ROWS * self.0.max(1.0) {
            return 0;
        }
        let named_alone = work.shared(rows) > MOST_SHARED_WORK * self.0;
        let (mut done, mut tried) = (0.0, 0_usize);
        let mut fits = |s: &Subject<'_>| {
            let with = done + work.of(s.candidates, rows);
            let fits = with <= self.work()
                && (tried as f64) < (MOST_ATTRIBUTES * self.0).floor()
                && (s.chosen || !named_alone);
            if fits {
                (done, tried) = (with, tried + 1);
            }
            !fits
        };
        let mut late: std::vec::IntoIter<bool> =
            subjects.iter().map(&mut fits).collect::<Vec<_>>().into_iter();
        subjects.sort_by_cached_key(|_| late.next());
        tried
    }
}

impl Work {
    /// Work that no question can do without.
    fn shared(&self, rows: f64) -> f64 {
        let p = self.coefficients;
        10.0 * p.powi(3) + rows * p * p
    }

    /// Work that a budget must allow so that all subjects are tried.
    pub(super) fn all(&self, subjects: &[Subject<'_>], n: u64) -> f64 {
        let rows = n as f64;
        let questions: f64 = subjects.iter().map(|s| self.of(s.candidates, rows)).sum();
        let number = subjects.len() as f64 / MOST_ATTRIBUTES;
        questions.max(MOST_WORK * number.max(self.shared(rows) / MOST_SHARED_WORK))
    }

    /// Work of one question at least: a look at every record, and the fewest refits.
    pub(super) fn of(&self, candidates: usize, rows: f64) -> f64 {
        let c = candidates as f64;
        let pairs = 0.5 * c * (c - 1.0);
        rows * (self.look * c + (self.pair + self.pair_a_level * c) * pairs)
            + FEWEST * self.refit(candidates, rows)
    }

    /// Work of refitting one record with every candidate in place, and of all their pairs.
    pub(super) fn refit(&self, candidates: usize, rows: f64) -> f64 {
        let Some(p) = self.refitted else { return 0.0 };
        let c = candidates as f64;
        // About six steps: two products with the rows, which many candidates share and are fast, and three with H⁻¹.
        let by_steps = c * (2.0 * rows * p + 20.0 * p * p);
        // A level that few records have is held up by them: without one the model is fitted from its beginning.
        let from_the_beginning = if rows < FEW_A_LEVEL * c { 3.0 * c * rows * p * p } else { 0.0 };
        by_steps + from_the_beginning + 2.0 * c * c * p
    }
}

/// Levels of fewer records than this on average are mostly held up by one.
const FEW_A_LEVEL: f64 = 5.0;

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
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let tried = |seconds: Option<f64>, n: u64, p: f64| {
            let budget = of(seconds);
            let work = Work { look: p, pair: p, pair_a_level: 0.0, coefficients: p, refitted: None };
            let mut subjects: Vec<Subject<'_>> = all.iter().map(|n| subject(n)).collect();
            budget.affordable(&mut subjects, n, &work)
        };
        assert_eq!(tried(Some(TELL_BUDGET), 1000, 10.0), 100);
        assert_eq!(tried(Some(3.0 * TELL_BUDGET), 1000, 10.0), 300);
        assert_eq!(tried(Some(TELL_BUDGET), 300, 3000.0), 0);
        assert_eq!(tried(Some(100.0 * TELL_BUDGET), 300, 3000.0), 3000);
        assert_eq!((tried(None, 300, 3000.0), tried(None, 100_000_000, 3000.0)), (3000, 3000));
        assert_eq!(tried(Some(0.0), 300, 3.0), 0);
        let all = f64::INFINITY;
        assert_eq!(of(Some(TELL_BUDGET)).refits(1e8, all), [4, 20]);
        assert_eq!(of(Some(TELL_BUDGET)).refits(1e8, 1e9), [4, 10]);
        assert_eq!(of(None).refits(1e8, all), [4, usize::MAX]);
        assert_eq!(of(Some(0.0)).refits(1e8, all), [4, 4]);
    }

    /// Of a wide table too: what all questions share counts, and so does how many there are.
    #[test]
    fn what_is_advised_is_enough_and_what_is_named_is_tried() {
        let names: Vec<String> = (0..3000).map(|k| k.to_string()).collect();
        let subjects = || names.iter().map(|n| subject(n)).collect::<Vec<_>>();
        let usual = Budget::of(&Request::default());
        for p in [10.0, 1000.0, 2000.0, 4000.0] {
            let work = Work { look: p, pair: p, pair_a_level: 0.0, coefficients: p, refitted: None };
            assert!(usual.affordable(&mut subjects(), 300, &work) < names.len(), "{p}");
            let Allowance::Seconds(seconds) = usual.next(work.all(&subjects(), 300)) else {
                panic!("{p}: all")
            };
            let advised = Budget::of(&Request { tell_budget: Some(seconds), ..Request::default() });
            assert_eq!(advised.affordable(&mut subjects(), 300, &work), names.len(), "{p}: {seconds}");
        }
        let work = Work { look: 5e3, pair: 5e3, pair_a_level: 0.0, coefficients: 5e3, refitted: None };
        let mut named = subjects();
        named[2000].chosen = true;
        assert_eq!(usual.affordable(&mut named, 300, &work), 1);
        assert_eq!(named[0].name, "2000");
    }

    /// A text of hundreds of levels is not refitted over all of them in silence, and ordinary tables are tried whole.
    #[test]
    fn refits_and_pairs_of_levels_are_counted() {
        let usual = Budget::of(&Request::default());
        let work =
            |p: f64| Work { look: p, pair: 10.0, pair_a_level: 1.0, coefficients: p, refitted: Some(p) };
        let of = |name, candidates| Subject { candidates, ..subject(name) };
        let mut both = [of("note", 320), of("age", 3)];
        assert_eq!(usual.affordable(&mut both, 400, &work(340.0)), 1);
        assert_eq!(both.map(|s| s.name), ["age", "note"]);
        // About as the census table is: 15 attributes.
        let levels = [3, 3, 3, 3, 3, 3, 9, 16, 7, 15, 6, 5, 2, 42, 2];
        let mut census: Vec<Subject<'_>> = levels.into_iter().map(|c| of("x", c)).collect();
        assert_eq!(usual.affordable(&mut census, 24_000, &work(105.0)), 15);
    }

    #[test]
    fn advice_on_more_work_is_round_and_more() {
        let of = |seconds: f64, all: f64| {
            Budget::of(&Request { tell_budget: Some(seconds), ..Request::default() }).next(all)
        };
        assert_eq!(of(10.0, 1e9), Allowance::Seconds(100.0));
        assert_eq!(of(10.0, 1.3e11), Allowance::Seconds(200.0));
        assert_eq!(of(0.0, 1e9), Allowance::Seconds(1.0));
        assert_eq!(of(0.0, 1e6), Allowance::Seconds(1.0));
        assert_eq!(of(1000.0, 1e9), Allowance::All);
        assert_eq!(of(10.0, 1e15), Allowance::All);
    }
}
