//! How often one group has more than another, and how sure that is (Mann and Whitney 1947).

use leakscope_core::special::normal_quantile;

/// How often the interval may miss, over all measures together.
const MISS: f64 = 0.05;

/// The share of pairs in which a point has more than a training record (ties count half), and an interval that holds for
/// all of `measures` together (Bonferroni).
///
/// The deviation is the larger of two: that of the share by its placements (DeLong, DeLong and Clarke-Pearson 1988), which
/// is 0 where the groups lie apart, and `√((m + n + 1)/(12 m n))`, that of groups that are alike.
pub(super) fn exceeds(training: &[f64], points: &[f64], measures: usize) -> (f64, [f64; 2]) {
    let (m, n) = (training.len() as f64, points.len() as f64);
    let of_points = placements(points, training);
    let share = of_points.iter().sum::<f64>() / n.max(1.0);
    let placed = variance(&of_points) / n + variance(&placements(training, points)) / m;
    let alike = (m + n + 1.0) / (12.0 * m * n);
    let z = normal_quantile(1.0 - MISS / (2.0 * measures.max(1) as f64));
    let half = z * placed.max(alike).sqrt();
    (share, [(share - half).max(0.0), (share + half).min(1.0)])
}

/// The share of `others` below each value, ties half.
fn placements(values: &[f64], others: &[f64]) -> Vec<f64> {
    let mut sorted = others.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |v: &f64| sorted.partition_point(|o| o < v) + sorted.partition_point(|o| o <= v);
    values.iter().map(|v| below(v) as f64 / (2.0 * sorted.len().max(1) as f64)).collect()
}

/// Sample variance; 0 of fewer than two values.
fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_core::special::normal_cdf;
    use leakscope_net::random::{Generator, Purpose};

    #[test]
    fn pairs_are_counted_with_ties_half() {
        let (share, [low, high]) = exceeds(&[1.0, 2.0, 2.0, 5.0], &[2.0, 6.0], 1);
        // 2 beats 1 and ties with two; 6 beats four
        assert_eq!(share, (1.0 + 1.0 + 4.0) / 8.0);
        assert!(low < share && high >= share && low >= 0.0 && high <= 1.0);
        // three and three that lie apart are no proof: one order in ten does so by chance
        assert!(exceeds(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 4).1[0] < 0.5);
        assert_eq!(exceeds(&[0.0; 50], &[0.0; 50], 1).0, 0.5);
    }

    /// Coverage by simulation: normal groups a shift apart have a share of Φ(shift/√2).
    #[test]
    fn the_interval_covers_as_often_as_it_says() {
        let mut rng = Generator::new(4, Purpose::Other, 0);
        for (m, n, shift) in [(100, 30, 0.0), (40, 40, 0.5), (200, 60, 1.5)] {
            let truth = normal_cdf(shift / f64::sqrt(2.0));
            let (mut one, mut four) = (0, 0);
            for _ in 0..1000 {
                let training: Vec<f64> = (0..m).map(|_| rng.normal()).collect();
                let points: Vec<f64> = (0..n).map(|_| shift + rng.normal()).collect();
                let covers = |measures| {
                    let [low, high] = exceeds(&training, &points, measures).1;
                    usize::from((low..=high).contains(&truth))
                };
                one += covers(1);
                four += covers(4);
            }
            // 950 and 987.5 wanted; four standard errors of a thousand draws are 28 and 14
            assert!(one >= 922 && four >= 973, "{m} {n} {shift}: {one} {four}");
            assert!(shift > 0.0 || one <= 978, "{one}: too wide where groups are alike");
        }
    }
}
