//! Means with intervals and rank correlations, over attacked records.

use leakscope_core::claim::Observed;
use leakscope_core::special::student_t_quantile;

/// The mean of independent values with Student's 95% interval; of one value, that value.
pub(super) fn mean(values: &[f64], seed: u64) -> Option<Observed> {
    let n = values.len() as f64;
    let value = if values.is_empty() { return None } else { values.iter().sum::<f64>() / n };
    let half = match values.len() {
        1 => 0.0,
        k => {
            let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
            student_t_quantile(0.975, (k - 1) as f64) * (variance / n).sqrt()
        }
    };
    Some(Observed { value, ci_low: value - half, ci_high: value + half, trials: values.len() as u64, seed })
}

/// Spearman's ρ with its 95% interval: Fisher's z with the variance `(1 + ρ²/2)/(n − 3)` of Bonett and Wright (2000). Absent for
/// fewer than five values, and where one of the two does not vary.
pub(super) fn rank_correlation(x: &[f64], y: &[f64]) -> Option<(f64, [f64; 2])> {
    let n = x.len();
    if n < 5 || n != y.len() || x.iter().chain(y).any(|v| !v.is_finite()) {
        return None;
    }
    let (a, b) = (ranks(x), ranks(y));
    let middle = (n as f64 + 1.0) / 2.0;
    let product =
        |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| (u - middle) * (v - middle)).sum::<f64>();
    let (xx, yy) = (product(&a, &a), product(&b, &b));
    if xx == 0.0 || yy == 0.0 {
        return None;
    }
    let rho = (product(&a, &b) / (xx * yy).sqrt()).clamp(-1.0, 1.0);
    let half = 1.959_963_984_540_054 * ((1.0 + 0.5 * rho * rho) / (n as f64 - 3.0)).sqrt();
    // atanh(±1) is infinite, and its interval a point, however few values agree: half an exchange of neighbours away instead
    let count = n as f64;
    let most = 1.0 - 6.0 / (count * (count * count - 1.0));
    let z = rho.clamp(-most, most).atanh();
    Some((rho, [(z - half).tanh().min(rho), (z + half).tanh().max(rho)]))
}

/// Ranks from 1, equal values sharing their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut out = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let mut to = from + 1;
        while to < order.len() && values[order[to]] == values[order[from]] {
            to += 1;
        }
        let shared = (from + to + 1) as f64 / 2.0;
        order[from..to].iter().for_each(|&i| out[i] = shared);
        from = to;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_net::random::{Generator, Purpose};

    /// Against values of scipy.stats.spearmanr, ties among them.
    #[test]
    fn ranks_are_correlated_as_scipy_does_it() {
        let x = [1.0, 2.0, 2.0, 4.0, 5.0, 7.0];
        let y = [3.0, 1.0, 4.0, 4.0, 6.0, 5.0];
        let (rho, [low, high]) = rank_correlation(&x, &y).unwrap();
        assert!((rho - 0.808_823_529_411_764_7).abs() < 1e-12, "{rho}");
        assert!(low < rho && rho < high);
        assert_eq!(rank_correlation(&x[..4], &y[..4]), None);
        assert_eq!(rank_correlation(&[1.0; 6], &y), None);
        assert_eq!(rank_correlation(&[f64::NAN, 1.0, 2.0, 3.0, 4.0, 5.0], &y), None);
        let up: Vec<f64> = (0..9).map(f64::from).collect();
        let (rho, [low, high]) = rank_correlation(&up, &up).unwrap();
        assert!(rho == 1.0 && low > 0.9 && high <= 1.0);
        // Six values in one order prove little.
        let (rho, [low, high]) = rank_correlation(&up[..6], &up[..6]).unwrap();
        assert!(rho == 1.0 && low < 0.7 && high == 1.0, "{low}");
    }

    /// By simulation: normals of a known correlation, whose ρ is (6/π) asin(r/2).
    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut rng = Generator::new(3, Purpose::Other, 0);
        for r in [0.0, 0.6] {
            let truth = 6.0 / std::f64::consts::PI * (0.5_f64 * r).asin();
            let mut covered = 0;
            for _ in 0..500 {
                let (mut x, mut y) = (vec![], vec![]);
                for _ in 0..50 {
                    let (u, v) = (rng.normal(), rng.normal());
                    x.push(u);
                    y.push(r * u + (1.0_f64 - r * r).sqrt() * v);
                }
                let (_, [low, high]) = rank_correlation(&x, &y).unwrap();
                covered += usize::from(low <= truth && truth <= high);
            }
            // 95% wanted; four standard errors of 500 trials are 3.9%
            assert!(covered >= 455, "{r}: {covered}");
        }
    }

    #[test]
    fn means_have_the_interval_of_student() {
        let m = mean(&[1.0, 2.0, 3.0], 7).unwrap();
        // t of two degrees is 4.3027, the standard error 1/√3
        assert!((m.value - 2.0).abs() < 1e-12 && (m.ci_high - 2.0 - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-6);
        assert_eq!((mean(&[5.0], 1).unwrap().ci_low, mean(&[], 1)), (5.0, None));
    }
}
