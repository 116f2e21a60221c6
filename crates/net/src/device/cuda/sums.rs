//! Sums over rows and dot products, in a fixed order.

use super::{Gpu, THREADS, driver::Address, memory::Memory};
use crate::Real;

/// Rows that one block of a column sum adds up, at least; how many such sums are added up in turn, at most; and how many blocks
/// a card should have at a time. They follow from the sizes alone, so that sums do too.
const SLAB: usize = 32;
const SLABS: usize = 256;
const WANTED: usize = 1024;
/// Values of a part of a long dot product, at least.
const PART: usize = 4096;
/// So many slabs are added up by several threads.
const MANY: usize = 16;

impl Gpu {
    /// `out[offset..] (+)= Σ over rows` of `x`, or of `x ⊙ y`, with a weight for each row, for each of `groups` groups.
    pub(crate) fn column_sums<T: Real>(&'static self, sums: &ColumnSums) {
        let ColumnSums { x, y, weights, rows, width, groups, out, adding } = *sums;
        if width == 0 || groups == 0 {
            return;
        }
        // four columns to a thread, where rows are plain and whole
        let four =
            y.is_none() && width.is_multiple_of(4) && x.1 == groups * rows * width && x.0.is_multiple_of(16);
        let columns = width.div_ceil(if four { 128 } else { 32 });
        let slabs = (WANTED / (columns * groups).max(1)).clamp(1, SLABS).max(rows.div_ceil(1 << 16));
        let slab = rows.div_ceil(slabs).max(SLAB);
        let slabs = rows.div_ceil(slab).max(1);
        let part = self.take::<f64>(groups * slabs * width);
        // groups may be more than a grid has layers
        for from in (0..groups).step_by(65_535) {
            let here = (groups - from).min(65_535);
            let arguments = [
                part.address(),
                x.0,
                y.map_or(0, |y| y.0),
                weights,
                rows as u64,
                width as u64,
                slab as u64,
                x.1 as u64,
                y.map_or(1, |y| y.1) as u64,
                from as u64,
            ];
            let grid = [columns as u32, slabs as u32, here as u32];
            if four {
                let plain =
                    [part.address(), x.0, weights, rows as u64, width as u64, slab as u64, from as u64];
                self.launch::<T>("sum_slabs4", grid, [32, 8], &plain);
            } else {
                self.launch::<T>("sum_slabs", grid, [32, 8], &arguments);
            }
        }
        self.add_slabs::<T>(&part, (slabs, width, groups), out, adding);
    }

    /// Adds up the slabs `(groups, slabs, width)` of sums.
    pub(crate) fn add_slabs<T: Real>(
        &self,
        part: &Memory,
        (slabs, width, groups): (usize, usize, usize),
        out: Address,
        adding: bool,
    ) {
        let n = groups * width;
        let arguments = [out, part.address(), n as u64, width as u64, slabs as u64, u64::from(adding)];
        if slabs < MANY {
            self.each::<T>("add_slabs", n, &arguments);
        } else {
            let blocks = n.div_ceil(32).min(1 << 20) as u32;
            self.launch::<T>("add_many_slabs", [blocks, 1, 1], [32, 8], &arguments);
        }
    }

    /// Dot products of consecutive blocks of `len` values.
    pub(crate) fn dots<T: Real>(
        &'static self,
        n: usize,
        len: usize,
        x: (Address, usize),
        y: (Address, usize),
        out: Dots,
    ) {
        let operands = [x.0, y.0, n as u64, len as u64, x.1 as u64, y.1 as u64];
        let end = [out.factor.to_bits(), u64::from(out.adding)];
        if len <= 1024 {
            let arguments = [&[out.at][..], &operands, &end].concat();
            return self.launch::<T>("dots_short", [n.div_ceil(8) as u32, 1, 1], [THREADS, 1], &arguments);
        }
        // few and long ones in parts, so that all of the card reads
        let parts = (WANTED / n.max(1)).clamp(1, len.div_ceil(PART));
        let each = len.div_ceil(parts);
        let part = self.take::<f64>(n * parts);
        let arguments = [&[part.address()][..], &operands, &[each as u64]].concat();
        self.launch::<T>("dots_long", [n as u32, parts as u32, 1], [THREADS, 1], &arguments);
        let arguments = [&[out.at, part.address(), n as u64, parts as u64][..], &end].concat();
        self.each::<T>("add_dot_parts", n, &arguments);
    }
}

/// Where dot products go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dots {
    pub(crate) at: Address,
    pub(crate) factor: f64,
    pub(crate) adding: bool,
}

/// A sum over rows: operands as address and number of values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnSums {
    pub(crate) x: (Address, usize),
    pub(crate) y: Option<(Address, usize)>,
    /// Weights of the rows, or 0.
    pub(crate) weights: Address,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) groups: usize,
    pub(crate) out: Address,
    pub(crate) adding: bool,
}

impl ColumnSums {
    /// Of an operand, into an address.
    pub(crate) fn of(x: (Address, usize), out: Address) -> Self {
        Self { x, y: None, weights: 0, rows: 0, width: 0, groups: 0, out, adding: false }
    }
}
