//! Arrays as the files hold them, whatever their format.

use leakscope_net::Real;

/// More values than this are a mistake of the header.
pub const MOST: usize = 1 << 34;

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
}

/// Number of values of extents, where it is credible.
pub fn count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e)).filter(|n| *n <= MOST)
}
