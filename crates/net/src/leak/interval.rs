//! Intervals of estimates by random probes.

use leakscope_core::special::student_t_quantile;

/// Half of the 95% interval of a mean over independent probes with this standard error: `t_{0.975, k−1}` standard
/// errors. The error is itself an estimate, so that 1.96 of them cover too seldom: with two probes it takes 12.7.
/// Infinite for fewer than two probes, which say nothing of their spread.
pub fn half_width(standard_error: f64, probes: usize) -> f64 {
    match probes {
        0 | 1 => f64::INFINITY,
        k => student_t_quantile(0.975, (k - 1) as f64) * standard_error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Purpose};

    /// Means of normals: 95% of the intervals cover, where 1.96 standard errors of two probes cover 70%.
    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut rng = Generator::new(4, Purpose::Other, 0);
        for (probes, normal) in [(2, 0.70), (10, 0.918)] {
            let (mut covered, mut narrow, trials) = (0, 0, 20_000);
            for _ in 0..trials {
                let values: Vec<f64> = (0..probes).map(|_| rng.normal()).collect();
                let k = probes as f64;
                let mean = values.iter().sum::<f64>() / k;
                let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (k - 1.0);
                let error = (variance / k).sqrt();
                covered += usize::from(mean.abs() <= half_width(error, probes));
                narrow += usize::from(mean.abs() <= 1.96 * error);
            }
            let share = |n: usize| n as f64 / f64::from(trials);
            // five standard errors of a share over 20,000 trials
            assert!((share(covered) - 0.95).abs() < 0.008, "{probes}: {}", share(covered));
            assert!((share(narrow) - normal).abs() < 0.02, "{probes}: {}", share(narrow));
        }
        assert_eq!(half_width(1.0, 1), f64::INFINITY);
    }
}
