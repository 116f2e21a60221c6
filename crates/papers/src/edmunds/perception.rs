//! LPIPS of reconstructions, where its weights are in the folder of the data: as it is defined, and as it was published, of
//! images whose values were taken in the order height, width, channel for channel, height, width.

use super::super::Context;
use super::super::mueller::failure_of;
use leakscope::{Failure, Result};
use leakscope_net::Shape;
use leakscope_net::io::Tensors;
use leakscope_net::quality::{Lpips, Range};
use leakscope_report::reproduction::{Ours, Row};

/// The file of weights, in the folder of the data.
const FILE: &str = "lpips.safetensors";
/// The side of the published images.
const SIDE: usize = 64;
/// Reconstructions that are looked at: each costs a pass of AlexNet.
const LOOKED_AT: usize = 200;

/// The measure, where there are weights.
pub(super) struct Perception {
    lpips: Option<Lpips>,
    shape: [usize; 3],
}

impl Perception {
    pub(super) fn read(context: &Context<'_>, shape: [usize; 3]) -> Result<Self> {
        let path = context.folder.join(FILE);
        if !path.is_file() {
            return Ok(Self { lpips: None, shape });
        }
        let wrong = |e: &dyn std::fmt::Display| Failure::option("data", format!("{}: {e}", path.display()));
        let bytes = std::fs::read(&path).map_err(|e| wrong(&e))?;
        let tensors = Tensors::from_bytes(&bytes).map_err(|e| wrong(&e))?;
        Ok(Self { lpips: Some(Lpips::from_tensors(&tensors).map_err(|e| wrong(&e))?), shape })
    }

    /// In words, for the page.
    pub(super) fn description(&self) -> &'static str {
        match self.lpips {
            Some(_) => {
                "LPIPS at 64 × 64. The published one is of images reshaped from channels last to channels first, that is \
                 scrambled: both are shown."
            }
            None => {
                "LPIPS is left out: it needs lpips.safetensors in the folder of the data, with the convolutions of torchvision’s \
                 alexnet (features.0.weight …) and the linear layers of lpips (lin0.model.1.weight …). The published one is of \
                 images reshaped from channels last to channels first, that is scrambled; with weights both are shown."
            }
        }
    }

    /// The rows of an attack; none without weights.
    pub(super) fn rows(
        &self,
        context: &Context<'_>,
        name: &str,
        (records, guesses): (&[f64], &[f64]),
        paper: f64,
    ) -> Result<Vec<Row>> {
        let Some(lpips) = &self.lpips else { return Ok(vec![]) };
        let d: usize = self.shape.iter().product();
        let pairs: Vec<(&[f64], &[f64])> =
            records.chunks_exact(d).zip(guesses.chunks_exact(d)).take(LOOKED_AT).collect();
        let range = Range { low: 0.0, high: 1.0 };
        let n = pairs.len().max(1) as f64;
        let (mut plain, mut scrambled) = (0.0, 0.0);
        for (record, guess) in pairs {
            context.check()?;
            plain += lpips.distance(Shape::Image(self.shape), record, guess, range).map_err(failure_of)? / n;
            let of = |values: &[f64]| reshaped(&enlarged(values, self.shape));
            let shape = Shape::Image([SIDE, SIDE, 3]);
            scrambled += lpips.distance(shape, &of(record), &of(guess), range).map_err(failure_of)? / n;
        }
        let name = format!("{name}: LPIPS of the adversary");
        Ok(vec![
            Row::within(format!("{name}, of scrambled images"), (paper, 4), 0.02, Ours::achieved(scrambled)),
            Row::ours(format!("{name}, as it is defined"), Ours::achieved(plain)),
        ])
    }
}

/// A picture of one channel as one of three at the published size, bilinear, the centres of pixels at halves.
fn enlarged(values: &[f64], [height, width, _]: [usize; 3]) -> Vec<f64> {
    let near = |i: usize, from: usize| {
        let at = ((i as f64 + 0.5) * from as f64 / SIDE as f64 - 0.5).max(0.0);
        let first = (at.floor() as usize).min(from - 1);
        (first, (first + 1).min(from - 1), at - first as f64)
    };
    let place = |k: usize| {
        let ((y0, y1, v), (x0, x1, u)) = (near(k / SIDE, height), near(k % SIDE, width));
        let row = |y: usize| (1.0 - u) * values[y * width + x0] + u * values[y * width + x1];
        (1.0 - v) * row(y0) + v * row(y1)
    };
    (0..SIDE * SIDE).flat_map(|k| [place(k); 3]).collect()
}

/// What a network that expects channels first sees of a picture with channels last, said with channels last.
fn reshaped(picture: &[f64]) -> Vec<f64> {
    let plane = SIDE * SIDE;
    (0..plane).flat_map(|at| (0..3).map(move |c| picture[c * plane + at])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshaping_scrambles_and_keeps_all_values() {
        let ramp: Vec<f64> = (0..28 * 28).map(|i| f64::from(i) / 783.0).collect();
        let large = enlarged(&ramp, [28, 28, 1]);
        assert_eq!(large.len(), SIDE * SIDE * 3);
        assert!(large[0] == 0.0 && (large[large.len() - 1] - 1.0).abs() < 1e-12);
        let other = reshaped(&large);
        // the first channel is the upper third of the picture, each value three times
        assert!(other[0] == large[0] && other[3] == large[1] && other[3 * 3] == large[3] && other != large);
        let sorted = |v: &[f64]| {
            let mut v = v.to_vec();
            v.sort_by(f64::total_cmp);
            v
        };
        assert_eq!(sorted(&other), sorted(&large));
    }
}
