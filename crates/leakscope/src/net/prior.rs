//! What an attacker can do who knows how values spread: van Trees beside Cramér and Rao.

use leakscope_core::bound::estimation::typical_error;

/// Mean squared error per value, by van Trees, of any estimate under normal priors of these variances, where the
/// information about each value is known; a value without variance is no secret, its error is 0.
pub(super) fn by_value(information: &[f64], variances: &[f64]) -> f64 {
    let open = variances.iter().filter(|v| **v > 0.0).count() as f64;
    typical_error(information, variances).value * open / variances.len().max(1) as f64
}

/// The same where only the trace of the information is known: the least over all ways to spread it over the values,
/// `mean min(v, λ)` with `Σ (1/λ − 1/v)₊ = trace`. Whoever could choose where to learn would learn most of what is most
/// open.
pub(super) fn by_trace(trace: f64, variances: &[f64]) -> f64 {
    let mut open: Vec<f64> = variances.iter().copied().filter(|v| *v > 0.0).collect();
    open.sort_by(|a, b| b.total_cmp(a));
    // with the k largest cut to λ: k/λ = trace + Σ 1/v over them, which holds where λ ≥ the next
    let (mut level, mut inverse) = (0.0, 0.0);
    for (i, v) in open.iter().enumerate() {
        inverse += 1.0 / v;
        level = (i + 1) as f64 / (trace.max(0.0) + inverse);
        if open.get(i + 1).is_none_or(|next| *next <= level) {
            break;
        }
    }
    open.iter().map(|v| v.min(level)).sum::<f64>() / variances.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a search over ways to spread the trace, and by value with the best of them.
    #[test]
    fn the_trace_alone_gives_the_least_over_all_ways_to_spread_it() {
        let variances = [4.0, 1.0, 0.25, 0.0];
        for trace in [0.0, 0.1, 1.0, 3.0, 50.0] {
            let actual = by_trace(trace, &variances);
            let steps = 200;
            let mut least = f64::INFINITY;
            for i in 0..=steps {
                for j in 0..=steps - i {
                    let share = |k: i32| trace * f64::from(k) / f64::from(steps);
                    let spread = [share(i), share(j), share(steps - i - j), 0.0];
                    least = least.min(by_value(&spread, &variances));
                }
            }
            assert!(actual <= least + 1e-12 && actual > least * (1.0 - 2e-3), "{trace}: {actual} {least}");
        }
        // without information it is what guessing the mean has
        assert_eq!(by_trace(0.0, &variances), 5.25 / 4.0);
        // nothing is open; no values
        assert_eq!((by_trace(1.0, &[0.0, 0.0]), by_trace(1.0, &[])), (0.0, 0.0));
    }

    /// One value under N(0, 1/I) noise and a normal prior: the posterior mean attains it.
    #[test]
    fn the_normal_mean_attains_it() {
        for (information, variance) in [(2.0, 0.5), (1e-8, 3.0), (1e9, 1.0)] {
            let attained = 1.0 / (information + 1.0 / variance);
            for actual in [by_value(&[information], &[variance]), by_trace(information, &[variance])] {
                assert!((actual / attained - 1.0).abs() < 1e-12, "{actual} {attained}");
            }
        }
    }
}
