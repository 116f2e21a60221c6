//! Where estimates lie, and the largest and the smallest of many: with random probes the record that stands out does so by
//! chance too.

use leakscope_core::claim::Measured;
use leakscope_core::dp::Interval;
use leakscope_core::special::student_t_quantile;
use leakscope_report::net::Extremes;

/// How often an interval may miss; over all records together.
const MISS: f64 = 0.05;

/// Intervals of estimates by `probes` random probes each, that hold for all of them at once: Student's t, Bonferroni. No
/// measure is negative. Empty where one is exact, or the probes are too few to tell.
pub(super) fn intervals(estimates: &[Measured], probes: u64) -> Vec<Interval> {
    if probes < 2 || estimates.iter().any(|m| m.standard_error.is_none()) {
        return Vec::new();
    }
    estimates.iter().map(|m| around(m, (probes - 1) as f64, estimates.len())).collect()
}

/// The interval of one of `together` estimates whose error has these degrees of freedom, that holds for all at once.
pub(super) fn around(m: &Measured, degrees: f64, together: usize) -> Interval {
    let t = student_t_quantile(1.0 - MISS / (2.0 * together.max(1) as f64), degrees);
    let half = t * m.standard_error.unwrap_or(0.0);
    Interval { lower: (m.value - half).max(0.0), upper: m.value + half }
}

/// Where the largest of the true values lies; absent without any.
pub(super) fn largest(intervals: &[Interval]) -> Option<Interval> {
    let most = |of: fn(&Interval) -> f64| intervals.iter().map(of).fold(0.0, f64::max);
    (!intervals.is_empty()).then(|| Interval { lower: most(|i| i.lower), upper: most(|i| i.upper) })
}

/// Where the extremes of the true values lie; absent without any.
pub(super) fn extremes(intervals: &[Interval]) -> Option<Extremes> {
    let least = |of: fn(&Interval) -> f64| intervals.iter().map(of).fold(f64::INFINITY, f64::min);
    largest(intervals).map(|largest| Extremes {
        smallest: Interval { lower: least(|i| i.lower), upper: least(|i| i.upper) },
        candidates: intervals.iter().filter(|i| i.upper >= largest.lower).count() as u64,
        largest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_net::random::{Generator, Purpose};

    /// By simulation: true values that are alike or not, estimated by a few normal probes each. The intervals of the
    /// largest and of the smallest cover them, and the record that has the largest is among the candidates.
    #[test]
    fn the_largest_is_covered_as_often_as_it_says() {
        let mut rng = Generator::new(9, Purpose::Other, 0);
        for (n, probes, slope) in [(200, 10, 0.0), (50, 4, 0.05), (20, 2, 1.0)] {
            let truth: Vec<f64> = (0..n).map(|i| 5.0 + slope * f64::from(i)).collect();
            let (mut covered, mut named, mut naive, trials) = (0, 0, 0, 400);
            for _ in 0..trials {
                let estimates: Vec<Measured> = truth
                    .iter()
                    .map(|v| {
                        let draws: Vec<f64> = (0..probes).map(|_| v + rng.normal()).collect();
                        let k = draws.len() as f64;
                        let mean = draws.iter().sum::<f64>() / k;
                        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (k - 1.0);
                        Measured { value: mean, standard_error: Some((variance / k).sqrt()) }
                    })
                    .collect();
                let each = intervals(&estimates, probes);
                let e = extremes(&each).unwrap();
                let (top, low) = (truth[truth.len() - 1], truth[0]);
                let inside = |i: &Interval, v: f64| i.lower <= v && v <= i.upper;
                covered += usize::from(inside(&e.largest, top) && inside(&e.smallest, low));
                named += usize::from(each[each.len() - 1].upper >= e.largest.lower && e.candidates >= 1);
                naive += usize::from(
                    estimates.iter().map(|m| m.value).fold(0.0, f64::max)
                        <= top + 1.96 / (probes as f64).sqrt(),
                );
            }
            // 95% wanted; four standard errors of 400 trials are 4.4%
            assert!(covered >= 362 && named >= 362, "{n} {probes}: {covered} {named}");
            assert!(slope > 0.0 || naive < 40, "{naive}: the largest estimate is no estimate of the largest");
        }
    }

    #[test]
    fn exact_values_have_no_intervals() {
        assert!(intervals(&[Measured::exact(1.0)], 10).is_empty());
        assert!(intervals(&[Measured { value: 1.0, standard_error: Some(0.1) }], 1).is_empty());
        assert_eq!(extremes(&[]), None);
        let one = intervals(&[Measured { value: 1.0, standard_error: Some(0.0) }], 2);
        assert_eq!(extremes(&one).unwrap().candidates, 1);
        assert_eq!((one[0].lower, one[0].upper), (1.0, 1.0));
    }
}
