//! Arrays as the files hold them, whatever their format.

use crate::{Real, Shape};

/// More values than this are a mistake of the header.
pub(super) const MOST: usize = 1 << 34;

/// Extents, records first, and values, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<T> {
    /// Extents, records first.
    pub shape: Vec<usize>,
    /// Values, row-major.
    pub values: Vec<T>,
    /// Whether the file holds bytes: shades of a picture, which are shown from 0 to 255.
    pub bytes: bool,
}

impl<T: Real> Array<T> {
    /// Number of records.
    pub fn records(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// Keeps the first records.
    pub fn truncate(mut self, limit: Option<usize>) -> Self {
        if let (Some(limit), [n, rest @ ..]) = (limit, &mut self.shape[..]) {
            let each: usize = rest.iter().product();
            *n = (*n).min(limit);
            self.values.truncate(*n * each);
        }
        self
    }

    /// The shape of one record, channels last; in words what is wrong where there is none.
    pub fn record_shape(&self) -> std::result::Result<Shape, String> {
        match self.shape[..] {
            [_, d] => Ok(Shape::Vector([d])),
            [_, h, w] => Ok(Shape::Image([h, w, 1])),
            [_, c, h, w] if channels_first([c, h, w]) => Err(format!(
                "records have shape {:?}, which looks like channels first, as PyTorch has them; channels last are \
                 needed: save x.transpose(0, 2, 3, 1)",
                self.shape
            )),
            [_, h, w, c] => Ok(Shape::Image([h, w, c])),
            _ => Err(format!(
                "records have shape {:?}, expected (records, values) or (records, height, width[, channels]); of two \
                 idx files, give the images first",
                self.shape
            )),
        }
    }
}

/// Whether the extents of a picture read more likely as channels, height, width.
fn channels_first([first, middle, last]: [usize; 3]) -> bool {
    let channels = |n: usize| matches!(n, 1 | 3 | 4);
    channels(first) && !channels(last) && middle > 4 && last > 4
}

/// Number of values of extents, where it is credible.
pub(super) fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e)).filter(|n| *n <= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_first_is_named_and_channels_last_is_read() {
        let of = |shape: &[usize]| {
            Array { shape: shape.to_vec(), values: Vec::<f32>::new(), bytes: true }.record_shape()
        };
        assert_eq!(of(&[9, 32, 32, 3]), Ok(Shape::Image([32, 32, 3])));
        assert_eq!(of(&[9, 28, 28]), Ok(Shape::Image([28, 28, 1])));
        assert_eq!(of(&[9, 5]), Ok(Shape::Vector([5])));
        // few rows of few values are no channels
        assert_eq!(of(&[9, 3, 4, 2]), Ok(Shape::Image([3, 4, 2])));
        for first in [[9, 3, 32, 32], [9, 1, 28, 28], [9, 4, 64, 48]] {
            assert!(of(&first).unwrap_err().contains("transpose(0, 2, 3, 1)"), "{first:?}");
        }
        assert!(of(&[9]).unwrap_err().contains("images first"));
        assert!(of(&[9, 1, 2, 3, 4]).is_err());
    }
}
