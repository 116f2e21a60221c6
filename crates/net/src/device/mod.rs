//! The device: it owns buffers and the handful of kernels that networks are made of. Layers see buffers as
//! opaque and compute through these kernels alone, so that a GPU can stand behind the same type.
//!
//! | file | kernels |
//! |---|---|
//! | `product` | matrix products, one or a batch |
//! | `patch` | image to columns and back, pooling |
//! | `element` | activations, products, sums, element by element |
//! | `reduce` | sums along rows and over records |
//! | `scalars` | numbers per record: squares, products, weights |
//! | `sequence` | tables by token, attention |
//! | `step` | noise, the optimiser's update, finiteness |
//! | `loss` | losses and their tangents |
//!
//! One rule of broadcasting serves all: *an operand shorter than the output repeats*. That is how many tangents
//! (probe-major: `probes × records × features`) share one primal (`records × features`).

mod element;
mod loss;
mod patch;
mod product;
mod reduce;
mod scalars;
mod sequence;
mod step;

pub(crate) use loss::{LossTape, Target};
pub(crate) use product::Gemm;
pub(crate) use scalars::{Products, RankOne, Scalars};

use crate::{Real, error::Result};

/// Values resident on the device.
#[derive(Debug, Clone, Default)]
pub struct Buf<T> {
    data: Vec<T>,
}

impl<T: Real> Buf<T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Everything.
    pub(crate) fn all(&self) -> View<'_, T> {
        View(&self.data)
    }

    /// `len` values from `offset`.
    pub(crate) fn part(&self, offset: usize, len: usize) -> View<'_, T> {
        View(&self.data[offset..offset + len])
    }
}

/// A part of a buffer, for a kernel to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a, T>(&'a [T]);

impl<T> View<'_, T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Whole numbers resident on the device: tokens, classes, the elements that a max pool chose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    data: Vec<u32>,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }
}

/// Truth values resident on the device: which parameters are trained.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    data: Vec<bool>,
}

/// What computes. Another back end joins here: its memory as a variant of what [`Buf`] holds, its kernels beside those of
/// the processor in the methods of [`Device`], which are all that layers and trainers call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Backend {
    /// The processor.
    #[default]
    Cpu,
}

impl Backend {
    /// A worker's device.
    pub(crate) fn device<T: Real>(self) -> Device<T> {
        match self {
            Self::Cpu => Device { free: Vec::new() },
        }
    }
}

/// One worker's device: its kernels and a pool of buffers that are used again. On the processor every worker
/// thread has its own.
#[derive(Debug)]
pub struct Device<T> {
    free: Vec<Vec<T>>,
}

/// Buffers beyond this many are given back to the system.
const POOL: usize = 64;

impl<T: Real> Device<T> {
    /// The processor, with an empty pool.
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Backend::Cpu.device()
    }

    /// A buffer with unspecified contents.
    pub(crate) fn take(&mut self, len: usize) -> Buf<T> {
        // The smallest buffer that is large enough, so that small requests do not eat the large ones.
        let best = (0..self.free.len())
            .filter(|&i| self.free[i].capacity() >= len)
            .min_by_key(|&i| self.free[i].capacity())
            .filter(|&i| self.free[i].capacity() <= 4 * len.max(256));
        let mut data = match best {
            Some(i) => self.free.swap_remove(i),
            None => Vec::with_capacity(len),
        };
        data.resize(len, T::ZERO);
        Buf { data }
    }

    /// A buffer of zeros.
    pub(crate) fn zeros(&mut self, len: usize) -> Buf<T> {
        let mut b = self.take(len);
        b.data.fill(T::ZERO);
        b
    }

    /// Returns a buffer to the pool.
    pub(crate) fn put(&mut self, buf: Buf<T>) {
        if self.free.len() < POOL && buf.data.capacity() > 0 {
            self.free.push(buf.data);
        }
    }

    /// Returns a buffer to the pool, if there is one.
    pub(crate) fn put_some(&mut self, buf: Option<Buf<T>>) {
        if let Some(b) = buf {
            self.put(b);
        }
    }

    /// Copies values to the device.
    pub(crate) fn upload(&mut self, values: &[T]) -> Buf<T> {
        let mut b = self.take(values.len());
        b.data.copy_from_slice(values);
        b
    }

    /// A copy on the device.
    pub(crate) fn copy(&mut self, x: View<'_, T>) -> Buf<T> {
        self.upload(x.0)
    }

    /// Copies values from the device: what waits for it, and may fail there.
    pub(crate) fn download(&self, buf: &Buf<T>) -> Result<Vec<T>> {
        Ok(buf.data.clone())
    }

    /// The values of a buffer that is not needed any more: no second copy where it is in the host's memory.
    pub(crate) fn unload(&self, buf: Buf<T>) -> Result<Vec<T>> {
        Ok(buf.data)
    }

    /// Replaces the values of a buffer.
    pub(crate) fn write(&self, buf: &mut Buf<T>, values: &[T]) {
        buf.data.copy_from_slice(values);
    }
}
