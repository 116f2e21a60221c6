//! HaarPSI (Reisenhofer 2018): Haar wavelet coefficients of three scales, similarities of the two fine ones weighted by
//! the coarse one.
//!
//! With `a`, `b` the sizes of the coefficients of the two images at a place, one orientation and scale:
//! local similarity `½ Σ_{scales 1, 2} (2ab + C)/(a² + b² + C)`, weight the larger of the coefficients of scale 3;
//! `HaarPSI = l_α⁻¹(Σ w l_α(similarity) / Σ w)²` with the logistic function `l_α`. Images are halved first, values run
//! from 0 to 255. Colours go through YIQ: the two chroma channels make a third orientation.

use super::{Planes, Range, check_pair};
use crate::{
    Shape,
    error::{Error, Result},
};

const C: f64 = 30.0;
const ALPHA: f64 = 4.2;
/// Halved, an image must hold the largest wavelet, 8 × 8.
const SIDE: usize = 16;

/// Whether images of a shape are large enough.
pub(super) fn fits(shape: Shape) -> bool {
    matches!(shape, Shape::Image([h, w, c]) if h.min(w) >= SIDE && (c == 1 || c == 3))
}

/// Haar wavelet-based perceptual similarity of two images, channels last; 1 where they are equal, at least 0.
pub fn haar_psi(shape: Shape, record: &[f64], reconstruction: &[f64], range: Range) -> Result<f64> {
    check_pair(record, reconstruction)?;
    range.check()?;
    let planes = |values: &[f64]| Planes::of(shape, values, range.low, ("HaarPSI", SIDE));
    let (x, y) = (prepared(planes(record)?, range)?, prepared(planes(reconstruction)?, range)?);
    let similar = |a: f64, b: f64| (2.0 * a * b + C) / (a * a + b * b + C);
    // orientations: weights and similarities at every place
    let mut maps: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for vertical in [false, true] {
        let coefficients = |image: &Halved, scale| image.brightness.wavelet(scale, vertical);
        let scales: Vec<(Vec<f64>, Vec<f64>)> =
            (1..=3).map(|s| (coefficients(&x, s), coefficients(&y, s))).collect();
        let [(a1, b1), (a2, b2), (a3, b3)] = &scales[..] else { continue };
        let weights = a3.iter().zip(b3).map(|(a, b)| a.max(*b)).collect();
        let each = (0..a1.len()).map(|i| 0.5 * (similar(a1[i], b1[i]) + similar(a2[i], b2[i])));
        maps.push((weights, each.collect()));
    }
    if !x.chroma.is_empty() {
        let weights = maps[0].0.iter().zip(&maps[1].0).map(|(a, b)| 0.5 * (a + b)).collect();
        let mut each = vec![0.0; maps[0].0.len()];
        for (a, b) in x.chroma.iter().zip(&y.chroma) {
            let (a, b) = (a.blurred(), b.blurred());
            each.iter_mut().enumerate().for_each(|(i, e)| *e += 0.5 * similar(a[i].abs(), b[i].abs()));
        }
        maps.push((weights, each));
    }
    let logistic = |v: f64| 1.0 / (1.0 + (-ALPHA * v).exp());
    let (mut sum, mut total) = (0.0, 0.0);
    // two images without any coarse structure have no weights: all places count alike
    let flat = maps.iter().all(|(weights, _)| weights.iter().all(|w| *w == 0.0));
    for (weights, each) in &maps {
        for (w, e) in weights.iter().zip(each) {
            let w = if flat { 1.0 } else { *w };
            sum += w * logistic(*e);
            total += w;
        }
    }
    let mean = sum / total;
    Ok(((mean / (1.0 - mean)).ln() / ALPHA).powi(2))
}

/// One plane.
struct Plane {
    height: usize,
    width: usize,
    values: Vec<f64>,
}

/// An image of half its sides.
struct Halved {
    brightness: Plane,
    /// I and Q; none without colours.
    chroma: Vec<Plane>,
}

fn prepared(image: Planes, range: Range) -> Result<Halved> {
    let Planes { height, width, planes } = image;
    let scale = 255.0 / range.width();
    let mixed = |weights: [f64; 3]| {
        let at = |i: usize| scale * planes.iter().zip(weights).map(|(p, w)| w * p[i]).sum::<f64>();
        Plane { height, width, values: (0..height * width).map(at).collect() }.halved()
    };
    match planes.len() {
        1 => Ok(Halved { brightness: mixed([1.0, 0.0, 0.0]), chroma: Vec::new() }),
        3 => Ok(Halved {
            brightness: mixed([0.299, 0.587, 0.114]),
            chroma: vec![mixed([0.596, -0.274, -0.322]), mixed([0.211, -0.523, 0.312])],
        }),
        n => {
            let reason = format!("images of {n} channels: it is defined for 1 and 3");
            Err(Error::Format { subject: "HaarPSI", reason })
        }
    }
}

impl Plane {
    /// The value at a place, 0 outside.
    fn at(&self, y: isize, x: isize) -> f64 {
        let inside = y >= 0 && x >= 0 && (y as usize) < self.height && (x as usize) < self.width;
        if inside { self.values[y as usize * self.width + x as usize] } else { 0.0 }
    }

    /// The mean of 2 × 2 values from every place on.
    fn blurred(&self) -> Vec<f64> {
        let each = |i: usize| {
            let (y, x) = ((i / self.width) as isize, (i % self.width) as isize);
            0.25 * (self.at(y, x) + self.at(y + 1, x) + self.at(y, x + 1) + self.at(y + 1, x + 1))
        };
        (0..self.values.len()).map(each).collect()
    }

    /// Every second of them.
    fn halved(&self) -> Self {
        let all = self.blurred();
        let (height, width) = (self.height.div_ceil(2), self.width.div_ceil(2));
        let at = |i: usize| all[i / width * 2 * self.width + i % width * 2];
        Self { height, width, values: (0..height * width).map(at).collect() }
    }

    /// Sizes of the Haar coefficients of a scale: the difference of the two halves of a square of `2^scale` pixels, over
    /// `2^scale`.
    fn wavelet(&self, scale: u32, vertical: bool) -> Vec<f64> {
        let side = 1isize << scale;
        let half = side / 2;
        let each = |i: usize| {
            let (y, x) = ((i / self.width) as isize, (i % self.width) as isize);
            let mut sum = 0.0;
            // the central part of the convolution, as for odd sizes: half before and half after
            for dy in 1 - half..=half {
                for dx in 1 - half..=half {
                    let first = if vertical { dx <= 0 } else { dy <= 0 };
                    let v = self.at(y + dy, x + dx);
                    sum += if first { v } else { -v };
                }
            }
            (sum / side as f64).abs()
        };
        (0..self.values.len()).map(each).collect()
    }
}
