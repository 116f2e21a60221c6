//! What comes back to records and labels of a pullback, where it is.

use super::{Buf, Device, Scalars};
use crate::{Real, error::Result};

/// `Jᵀθ̇` of every record, on the device.
pub(crate) struct Pulled<T> {
    /// With respect to the records, `(records, d)`, each in its unit.
    pub(crate) input: Buf<T>,
    /// With respect to their labels, likewise.
    pub(crate) label: Buf<T>,
    pub(crate) units: Scalars,
    pub(crate) label_units: Scalars,
}

impl<T: Real> Pulled<T> {
    /// All of it, in double precision.
    pub(crate) fn download(&self, dev: &Device<T>) -> Result<(Vec<f64>, Vec<f64>)> {
        let of = |values: &Buf<T>, units: &Scalars| -> Result<Vec<f64>> {
            Ok(rows(&dev.download(values)?, dev.download_scalars(units)?.into_iter()))
        };
        Ok((of(&self.input, &self.units)?, of(&self.label, &self.label_units)?))
    }

    /// The square of its length for every record, with respect to the record and to its label.
    pub(crate) fn squares(&self, dev: &Device<T>) -> Result<[Vec<f64>; 2]> {
        let [input, label] = self.squares_there(dev);
        Ok([dev.download_scalars(&input)?, dev.download_scalars(&label)?])
    }

    /// [`Pulled::squares`], left on the device.
    pub(crate) fn squares_there(&self, dev: &Device<T>) -> [Scalars; 2] {
        [(&self.input, &self.units), (&self.label, &self.label_units)].map(|(values, units)| {
            let width = values.len() / units.len().max(1);
            let mut squares = dev.dots(width, values.all(), values.all());
            dev.scale_squares(units, &mut squares);
            squares
        })
    }

    pub(crate) fn recycle(self, dev: &mut Device<T>) {
        dev.put(self.input);
        dev.put(self.label);
    }
}

/// Rows in double precision, each times its number.
fn rows<T: Real>(values: &[T], scales: impl ExactSizeIterator<Item = f64>) -> Vec<f64> {
    let width = values.len() / scales.len().max(1);
    let each = values.chunks_exact(width.max(1)).zip(scales);
    each.flat_map(|(row, s)| row.iter().map(move |v| v.to_f64() * s)).collect()
}
