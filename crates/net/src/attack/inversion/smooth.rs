//! Total variation of an image, anisotropic: the mean size of the difference of neighbours across plus that of neighbours
//! down. 0 for what is no image.

use crate::Shape;

/// Mean `|x_{i,j+1} − x_{i,j}|` plus mean `|x_{i+1,j} − x_{i,j}|`, over all channels.
pub fn total_variation(shape: Shape, x: &[f64]) -> f64 {
    let mut sum = 0.0;
    each_difference(shape, |a, b, weight| sum += weight * (x[b] - x[a]).abs());
    sum
}

/// Adds `weight` times a subgradient of it.
pub(super) fn add_slope(shape: Shape, x: &[f64], weight: f64, out: &mut [f64]) {
    each_difference(shape, |a, b, share| {
        let difference = x[b] - x[a];
        // signum() of 0 is 1: neighbours that are equal pull at nothing
        let pull = if difference == 0.0 { 0.0 } else { weight * share * difference.signum() };
        out[b] += pull;
        out[a] -= pull;
    });
}

/// Calls `f` with the positions of every pair of neighbours and the share of its difference.
fn each_difference(shape: Shape, mut f: impl FnMut(usize, usize, f64)) {
    let Shape::Image([h, w, c]) = shape else { return };
    let at = |y: usize, x: usize, k: usize| (y * w + x) * c + k;
    let share = |n: usize| 1.0 / n.max(1) as f64;
    let (across, down) = (share(h * w.saturating_sub(1) * c), share(h.saturating_sub(1) * w * c));
    for y in 0..h {
        for x in 0..w {
            for k in 0..c {
                if x + 1 < w {
                    f(at(y, x, k), at(y, x + 1, k), across);
                }
                if y + 1 < h {
                    f(at(y, x, k), at(y + 1, x, k), down);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Purpose};

    #[test]
    fn it_is_the_mean_of_differences_and_its_slope_the_derivative() {
        // one row: |1 − 0|, |0.5 − 1| across; nothing down
        assert_eq!(total_variation(Shape::Image([1, 3, 1]), &[0.0, 1.0, 0.5]), 0.75);
        assert_eq!(total_variation(Shape::Vector([3]), &[0.0, 1.0, 0.5]), 0.0);
        assert_eq!(total_variation(Shape::Image([1, 1, 2]), &[0.0, 1.0]), 0.0);
        let shape = Shape::Image([4, 5, 2]);
        let mut rng = Generator::new(3, Purpose::Other, 0);
        let x: Vec<f64> = (0..40).map(|_| rng.normal()).collect();
        let mut slope = vec![0.0; 40];
        add_slope(shape, &x, 2.0, &mut slope);
        for i in 0..40 {
            let at = |e: f64| {
                let mut moved = x.clone();
                moved[i] += e;
                2.0 * total_variation(shape, &moved)
            };
            assert!((slope[i] - (at(1e-7) - at(-1e-7)) / 2e-7).abs() < 1e-6);
        }
        let mut flat = vec![0.0; 40];
        add_slope(shape, &[0.3; 40], 1.0, &mut flat);
        assert_eq!(flat, vec![0.0; 40]);
    }
}
