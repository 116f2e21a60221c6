//! SSIM (Wang 2004): means, variances and covariance under a Gaussian window of 11 × 11, σ = 1.5, at every place where the
//! window lies inside the image,
//!
//! `SSIM = (2 μ_x μ_y + C₁)(2 σ_xy + C₂) / ((μ_x² + μ_y² + C₁)(σ_x² + σ_y² + C₂))`, `C_i = (K_i L)²`,
//!
//! and the mean over places and channels.

use super::{Planes, Range, check_pair};
use crate::{Shape, error::Result};

const SIDE: usize = 11;
const SIGMA: f64 = 1.5;
const K1: f64 = 0.01;
const K2: f64 = 0.03;

/// Whether images of a shape are large enough.
pub(super) fn fits(shape: Shape) -> bool {
    matches!(shape, Shape::Image([h, w, c]) if h.min(w) >= SIDE && c > 0)
}

/// Structural similarity of two images, channels last; 1 where they are equal, at least −1.
pub fn ssim(shape: Shape, record: &[f64], reconstruction: &[f64], range: Range) -> Result<f64> {
    check_pair(record, reconstruction)?;
    range.check()?;
    let planes = |values: &[f64]| Planes::of(shape, values, range.low, ("SSIM", SIDE));
    let (x, y) = (planes(record)?, planes(reconstruction)?);
    let (c1, c2) = ((K1 * range.width()).powi(2), (K2 * range.width()).powi(2));
    let size = (x.height, x.width);
    let window = window();
    let of_channel = |(x, y): (&Vec<f64>, &Vec<f64>)| {
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<f64>>();
        let mean = |values: &[f64]| filtered(values, size, &window);
        let (mx, my) = (mean(x), mean(y));
        let (xx, yy, xy) = (mean(&product(x, x)), mean(&product(y, y)), mean(&product(x, y)));
        let at = |i: usize| {
            let (vx, vy, cov) = (xx[i] - mx[i] * mx[i], yy[i] - my[i] * my[i], xy[i] - mx[i] * my[i]);
            (2.0 * mx[i] * my[i] + c1) * (2.0 * cov + c2)
                / ((mx[i] * mx[i] + my[i] * my[i] + c1) * (vx + vy + c2))
        };
        (0..mx.len()).map(at).sum::<f64>() / mx.len() as f64
    };
    let channels = x.planes.len() as f64;
    Ok(x.planes.iter().zip(&y.planes).map(of_channel).sum::<f64>() / channels)
}

/// The Gaussian along one side, of sum 1.
fn window() -> [f64; SIDE] {
    let middle = (SIDE / 2) as f64;
    let raw: [f64; SIDE] = std::array::from_fn(|i| (-0.5 * ((i as f64 - middle) / SIGMA).powi(2)).exp());
    let total: f64 = raw.iter().sum();
    raw.map(|v| v / total)
}

/// The weighted mean at every place where the window fits, by rows and then by columns.
fn filtered(values: &[f64], (height, width): (usize, usize), window: &[f64; SIDE]) -> Vec<f64> {
    let (h, w) = (height - SIDE + 1, width - SIDE + 1);
    let mut rows = vec![0.0; height * w];
    for y in 0..height {
        for x in 0..w {
            rows[y * w + x] = window.iter().zip(&values[y * width + x..]).map(|(a, v)| a * v).sum();
        }
    }
    let mut out = vec![0.0; h * w];
    for (i, o) in out.iter_mut().enumerate() {
        *o = window.iter().enumerate().map(|(k, a)| a * rows[i + k * w]).sum();
    }
    out
}
