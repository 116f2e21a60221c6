//! How like a reconstruction is to the record it is of: MSE, PSNR, SSIM, HaarPSI, each from its definition.
//!
//! | measure | of | best | source |
//! |---|---|---|---|
//! | [`mse`] | any values | 0 | mean of squared differences |
//! | [`psnr`] | any values with a range | ∞ | `10 log₁₀(L²/MSE)` |
//! | [`ssim`] | images of 11 × 11 and more | 1 | Wang, Bovik, Sheikh, Simoncelli 2004 |
//! | [`haar_psi`] | images of 16 × 16 and more, 1 or 3 channels | 1 | Reisenhofer, Bosse, Kutyniok, Wiegand 2018 |
//! | [`Lpips`] | images with 1 or 3 channels | 0 | Zhang, Isola, Efros, Shechtman, Wang 2018; needs weights that others trained |

mod haar;
mod lpips;
mod structure;

pub use haar::haar_psi;
pub use lpips::Lpips;
pub use structure::ssim;

use crate::{
    Shape,
    error::{Error, Result, check, check_finite, check_len},
};
use serde::{Deserialize, Serialize};

/// The values that a record can have, from the least to the largest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Black.
    pub low: f64,
    /// White.
    pub high: f64,
}

impl Range {
    /// Checks that there is something between its ends.
    pub fn check(self) -> Result<()> {
        let width = self.high - self.low;
        check(
            width > 0.0 && width.is_finite(),
            "the width of the range of values",
            width,
            "positive and finite",
        )
    }

    /// L.
    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// The nearest value inside it.
    pub fn clamp(self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }
}

/// All measures that a pair of records of a shape has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Mean squared error, in squared units of the values.
    pub mse: f64,
    /// In decibel; absent where the two are equal, which is no finite number of them.
    pub psnr: Option<f64>,
    /// Absent where the records are no images of 11 × 11 and more.
    pub ssim: Option<f64>,
    /// Absent where the records are no images of 16 × 16 and more with 1 or 3 channels.
    pub haar_psi: Option<f64>,
}

/// Every measure that records of a shape have.
pub fn quality(shape: Shape, record: &[f64], reconstruction: &[f64], range: Range) -> Result<Quality> {
    check_pair(record, reconstruction)?;
    check_len("the record", record.len(), shape.len())?;
    range.check()?;
    let measured = |measure: fn(Shape, &[f64], &[f64], Range) -> Result<f64>, fits: bool| {
        fits.then(|| measure(shape, record, reconstruction, range)).transpose()
    };
    Ok(Quality {
        mse: mse(record, reconstruction)?,
        psnr: psnr(record, reconstruction, range)?,
        ssim: measured(ssim, structure::fits(shape))?,
        haar_psi: measured(haar_psi, haar::fits(shape))?,
    })
}

/// Mean squared error.
pub fn mse(record: &[f64], reconstruction: &[f64]) -> Result<f64> {
    check_pair(record, reconstruction)?;
    let each = record.iter().zip(reconstruction).map(|(a, b)| (a - b) * (a - b));
    let mse = each.sum::<f64>() / record.len() as f64;
    check(mse.is_finite(), "the mean squared error", mse, "values that do not overflow when squared")?;
    Ok(mse)
}

/// Peak signal-to-noise ratio `10 log₁₀(L²/MSE)` in decibel; absent where the two are equal.
pub fn psnr(record: &[f64], reconstruction: &[f64], range: Range) -> Result<Option<f64>> {
    range.check()?;
    let mse = mse(record, reconstruction)?;
    Ok((mse > 0.0).then(|| 10.0 * (2.0 * range.width().log10() - mse.log10())))
}

fn check_pair(record: &[f64], reconstruction: &[f64]) -> Result<()> {
    if record.is_empty() {
        return Err(Error::Empty);
    }
    check_len("the reconstruction", reconstruction.len(), record.len())?;
    check_finite("the record", record)?;
    check_finite("the reconstruction", reconstruction)
}

/// An image as planes of its channels, shifted to start at 0.
struct Planes {
    height: usize,
    width: usize,
    planes: Vec<Vec<f64>>,
}

impl Planes {
    /// Channels last to planes; `least` is the shortest side the measure takes.
    fn of(shape: Shape, values: &[f64], low: f64, (measure, least): (&'static str, usize)) -> Result<Self> {
        let Shape::Image([height, width, channels]) = shape else {
            let reason = format!(
                "records of shape {:?} have no height and width, which {measure} needs: give them as images, or compare \
                 by the mean squared error",
                shape.dims()
            );
            return Err(Error::Format { subject: measure, reason });
        };
        if height.min(width) < least {
            let reason =
                format!("images of {height} × {width} are smaller than its window of {least} × {least}");
            return Err(Error::Format { subject: measure, reason });
        }
        check_len("the record", values.len(), height * width * channels)?;
        let plane = |c: usize| values.iter().skip(c).step_by(channels).map(|v| v - low).collect();
        Ok(Self { height, width, planes: (0..channels).map(plane).collect() })
    }
}

#[cfg(test)]
mod tests;
