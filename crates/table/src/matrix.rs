//! A matrix of floating-point numbers that somebody else owns, with any strides: read in place.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What the elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// `f64`.
    Double,
    /// `f32`; computed with as `f64`.
    Single,
}

/// Rows × columns of numbers in memory that `owner` keeps alive.
pub struct Matrix {
    pointer: *const u8,
    rows: usize,
    columns: usize,
    /// Bytes from one row, and from one column, to the next.
    strides: (isize, isize),
    element: Element,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the memory is only read, and the owner, which keeps it, may be sent and shared.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl fmt::Debug for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} × {}, {:?}, strides {:?})", self.rows, self.columns, self.element, self.strides)
    }
}

impl Matrix {
    /// A matrix in memory that `owner` keeps alive.
    ///
    /// # Safety
    /// For every row i and column j the element at `pointer + i·strides.0 + j·strides.1` bytes must be inside memory
    /// that stays readable, and is not written to, for as long as `owner` lives.
    pub unsafe fn borrowed(
        pointer: *const u8,
        (rows, columns): (usize, usize),
        strides: (isize, isize),
        element: Element,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self { pointer, rows, columns, strides, element, _owner: owner }
    }

    /// A matrix of its own, row-major.
    pub fn from_rows(values: Vec<f64>, columns: usize) -> Self {
        let columns = columns.max(1);
        let rows = values.len() / columns;
        let owner = Arc::new(values);
        let pointer = owner.as_ptr().cast();
        // SAFETY: `rows × columns` elements lie row-major in the vector, which the owner keeps and nobody changes.
        unsafe { Self::borrowed(pointer, (rows, columns), (8 * columns as isize, 8), Element::Double, owner) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Appends rows `rows` of a column.
    pub(crate) fn read_column(&self, column: usize, rows: Range<usize>, out: &mut Vec<f64>) {
        assert!(
            column < self.columns && rows.end <= self.rows,
            "cells {rows:?} of column {column} of {self:?}"
        );
        out.extend(rows.map(|i| self.at(i, column)));
    }

    /// Writes `(x − centre)/scale` of rows `rows` to the first places of every `stride` numbers of `out`; `steps`
    /// has centre and scale of every column.
    pub(crate) fn read_rows(&self, rows: Range<usize>, steps: &[(f64, f64)], out: &mut [f64], stride: usize) {
        assert!(steps.len() == self.columns && rows.end <= self.rows && stride >= self.columns);
        let plain = steps.iter().all(|step| *step == (0.0, 1.0));
        for (i, out) in rows.zip(out.chunks_exact_mut(stride)) {
            match self.row(i) {
                Some(row) if plain => out[..self.columns].copy_from_slice(row),
                Some(row) => {
                    for ((out, x), (centre, scale)) in out.iter_mut().zip(row).zip(steps) {
                        *out = (x - centre) / scale;
                    }
                }
                None => {
                    for (j, (out, (centre, scale))) in out.iter_mut().zip(steps).enumerate() {
                        *out = (self.at(i, j) - centre) / scale;
                    }
                }
            }
        }
    }

    /// A row, where it lies in one piece.
    fn row(&self, i: usize) -> Option<&[f64]> {
        let aligned = (self.pointer as usize).is_multiple_of(8) && self.strides.0 % 8 == 0;
        if self.element != Element::Double || !aligned || (self.strides.1 != 8 && self.columns > 1) {
            return None;
        }
        // SAFETY: row `i` is there (callers check), its elements follow one another, and it is aligned.
        Some(unsafe {
            let start = self.pointer.offset(i as isize * self.strides.0).cast::<f64>();
            std::slice::from_raw_parts(start, self.columns)
        })
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        debug_assert!(i < self.rows && j < self.columns);
        // SAFETY: the element is there (callers check both indices); it need not be aligned.
        unsafe {
            let place = self.pointer.offset(i as isize * self.strides.0 + j as isize * self.strides.1);
            match self.element {
                Element::Double => place.cast::<f64>().read_unaligned(),
                Element::Single => f64::from(place.cast::<f32>().read_unaligned()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_of_any_strides_read_the_same() {
        let (rows, columns) = (5, 3);
        let values: Vec<f64> = (0..15).map(f64::from).collect();
        let plain = Matrix::from_rows(values.clone(), columns);
        let by_columns: Vec<f64> = (0..3).flat_map(|j| (0..5).map(move |i| f64::from(3 * i + j))).collect();
        let backwards: Vec<f32> = values.iter().rev().map(|v| *v as f32).collect();
        let owner = Arc::new((by_columns, backwards));
        let fortran = owner.0.as_ptr().cast();
        let end = (&raw const owner.1[14]).cast();
        // SAFETY: every element of both is in the vectors that the owner keeps.
        let others = unsafe {
            [
                Matrix::borrowed(fortran, (rows, columns), (8, 40), Element::Double, owner.clone()),
                Matrix::borrowed(end, (rows, columns), (-12, -4), Element::Single, owner.clone()),
            ]
        };
        let steps = [(1.0, 2.0), (0.0, 1.0), (-3.0, 0.5)];
        for m in [&plain, &others[0], &others[1]] {
            let mut column = vec![];
            m.read_column(1, 1..4, &mut column);
            assert_eq!(column, [4.0, 7.0, 10.0], "{m:?}");
            let mut block = [f64::NAN; 8];
            m.read_rows(3..5, &steps, &mut block, 4);
            assert_eq!(block[..3], [4.0, 10.0, 28.0], "{m:?}");
            assert_eq!(block[4..7], [5.5, 13.0, 34.0], "{m:?}");
            assert!(block[3].is_nan() && block[7].is_nan(), "the place of the intercept is left alone");
        }
    }
}
