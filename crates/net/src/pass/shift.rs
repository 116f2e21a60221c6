//! The same array added to the gradient of every record.

use super::Primal;
use crate::{
    Network, Real,
    device::{Buf, Device, rounding},
    error::{Error, Result},
};

/// A perturbation on a device.
pub(crate) struct Shift<T> {
    pub(crate) array: Buf<T>,
    /// `‖c‖²`.
    square: f64,
}

impl<T: Real> Shift<T> {
    pub(crate) fn upload(dev: &mut Device<T>, values: &[f64]) -> Self {
        let rounded: Vec<T> = values.iter().map(|&v| T::from_f64(v)).collect();
        let square = rounded.iter().map(|v| v.to_f64() * v.to_f64()).sum();
        Self { array: dev.upload(&rounded), square }
    }

    /// `‖g + c‖` of every record, rounded up: where g nearly cancels c, products of rounded numbers must not make a long
    /// sum look short, or it would not be clipped.
    pub(crate) fn lengths(
        &self,
        net: &Network<T>,
        dev: &mut Device<T>,
        primal: &Primal<T>,
        (records, norms): (&[usize], &[f64]),
    ) -> Result<Vec<f64>> {
        let along = net.along(dev, primal, &self.array, 1);
        let products = dev.download_scalars(&along)?;
        let length = |(g, p): (&f64, &f64)| {
            let sizes = g * g + self.square;
            ((sizes + 2.0 * p).max(0.0) + rounding::<T>() * sizes).sqrt()
        };
        let lengths: Vec<f64> = norms.iter().zip(&products).map(length).collect();
        match lengths.iter().position(|n| !n.is_finite()) {
            None => Ok(lengths),
            Some(i) => Err(Error::NotFinite { subject: "the gradient of a record", position: records[i] }),
        }
    }
}
