//! The device: it owns buffers and the handful of kernels that networks are made of. Layers see buffers as
//! opaque and compute through these kernels alone, so that a GPU can stand behind the same type.
//!
//! | file | kernels |
//! |---|---|
//! | `product` | matrix products, one or a batch |
//! | `patch` | image to columns and back, pooling |
//! | `convolution` | convolutions without columns, on a GPU alone |
//! | `element` | activations, products, sums, element by element |
//! | `reduce` | sums along rows and over records |
//! | `scalars` | numbers per record: squares, products, weights |
//! | `sequence` | tables by token, attention |
//! | `step` | noise, the optimiser's update, finiteness |
//! | `loss` | losses and their tangents |
//! | `clip` | clips and random draws of records, on a GPU alone |
//! | `account` | accounts of records, on a GPU alone |
//! | `krylov` | bases of Lanczos' iteration, on a GPU alone |
//!
//! A GPU ([`cuda`]) computes the same by kernels of the same names; what a method calls there stands at its head.
//!
//! One rule of broadcasting serves all: *an operand shorter than the output repeats*. That is how many tangents
//! (probe-major: `probes × records × features`) share one primal (`records × features`).

mod account;
mod clip;
mod convolution;
pub mod cuda;
mod element;
mod krylov;
mod loss;
mod patch;
mod product;
mod pulled;
mod reduce;
mod scalars;
mod sequence;
mod step;

pub(crate) use account::{Accounts, StepMeasures};
pub(crate) use clip::{Clips, ProbeSums, Streams};
pub(crate) use convolution::{OwnWeights, Pair};
pub(crate) use cuda::Convolution;
pub(crate) use krylov::{Krylov, Stop};
pub(crate) use loss::{LossTape, Target};
pub(crate) use patch::Pooling;
pub(crate) use product::Gemm;
pub(crate) use pulled::Pulled;
pub(crate) use scalars::{Products, RankOne, Scalars};

use crate::{Real, error::Result};
use cuda::{Gpu, Memory};

/// Values resident on the device.
#[derive(Debug, Clone, Default)]
pub struct Buf<T> {
    /// On the processor; empty where the values are elsewhere.
    data: Vec<T>,
    /// On a GPU.
    far: Option<Memory>,
}

impl<T: Real> Buf<T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        length(&self.data, self.far.as_ref())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything.
    pub(crate) fn all(&self) -> View<'_, T> {
        self.part(0, self.len())
    }

    /// `len` values from `offset`.
    pub(crate) fn part(&self, offset: usize, len: usize) -> View<'_, T> {
        match &self.far {
            None => View(&self.data[offset..offset + len], None),
            Some(memory) => {
                assert!(offset + len <= memory.len(), "a part lies inside its buffer");
                View(&[], Some((memory.address() + (offset * T::BYTES) as u64, len)))
            }
        }
    }

    /// Its address on a GPU.
    fn at(&self) -> u64 {
        address(self.far.as_ref())
    }
}

fn length<V>(data: &[V], far: Option<&Memory>) -> usize {
    far.map_or(data.len(), Memory::len)
}

/// The address of what is on a GPU; 0, which kernels take as absent, otherwise.
fn address(far: Option<&Memory>) -> u64 {
    far.map_or(0, Memory::address)
}

/// A part of a buffer, for a kernel to read: values on the processor, or address and length on a GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a, T>(&'a [T], Option<(u64, usize)>);

impl<T> View<'_, T> {
    pub(crate) fn len(&self) -> usize {
        self.1.map_or(self.0.len(), |(_, len)| len)
    }

    /// Its address on a GPU.
    fn at(&self) -> u64 {
        self.1.map_or(0, |(at, _)| at)
    }

    fn far(&self) -> (u64, usize) {
        (self.at(), self.len())
    }
}

/// Whole numbers resident on the device: tokens, classes, the elements that a max pool chose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    data: Vec<u32>,
    far: Option<Memory>,
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        length(&self.data, self.far.as_ref())
    }

    fn at(&self) -> u64 {
        address(self.far.as_ref())
    }
}

/// Truth values resident on the device: which parameters are trained.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    data: Vec<bool>,
    far: Option<Memory>,
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Backend {
    /// The processor.
    #[default]
    Cpu,
    /// A GPU of NVIDIA's: see [`Backend::cuda`].
    Cuda(Card),
}

/// A GPU that was opened.
#[derive(Debug, Clone, Copy)]
pub struct Card(&'static Gpu);

impl PartialEq for Card {
    fn eq(&self, other: &Self) -> bool {
        self.0.ordinal() == other.0.ordinal()
    }
}

impl Eq for Card {}

impl Card {
    /// Its number among those of the machine.
    pub fn ordinal(&self) -> u32 {
        self.0.ordinal()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Its memory, in bytes.
    pub(crate) fn total_memory(&self) -> usize {
        self.0.total_memory()
    }

    /// Memory that is free, in bytes.
    pub fn free_memory(&self) -> usize {
        self.0.free_memory()
    }
}

impl Backend {
    /// The GPU of a number, if it can be used.
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Ok(Self::Cuda(Card(Gpu::open(ordinal)?)))
    }

    /// A worker's device.
    pub(crate) fn device<T: Real>(self) -> Device<T> {
        let gpu = match self {
            Self::Cpu => None,
            Self::Cuda(card) => Some(card.0),
        };
        Device { free: Vec::new(), gpu }
    }
}

/// One worker's device: its kernels and a pool of buffers that are used again. On the processor every worker
/// thread has its own; a GPU has one.
#[derive(Debug)]
pub struct Device<T> {
    free: Vec<Vec<T>>,
    gpu: Option<&'static Gpu>,
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
        if let Some(gpu) = self.gpu {
            return Buf { data: Vec::new(), far: Some(gpu.take::<T>(len)) };
        }
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
        Buf { data, far: None }
    }

    /// A buffer of zeros.
    pub(crate) fn zeros(&mut self, len: usize) -> Buf<T> {
        let mut b = self.take(len);
        self.clear(&mut b);
        b
    }

    /// Whether it is a GPU.
    pub(crate) fn is_far(&self) -> bool {
        self.gpu.is_some()
    }

    /// Bytes that are free on a GPU; absent on the processor.
    pub(crate) fn room(&self) -> Option<usize> {
        self.gpu.map(Gpu::free_memory)
    }

    /// Whether a buffer is on this GPU.
    pub(crate) fn holds(&self, buf: &Buf<T>) -> bool {
        self.gpu.zip(buf.far.as_ref()).is_some_and(|(gpu, memory)| memory.is_on(gpu))
    }

    /// `x ← 0`.
    fn clear(&self, x: &mut Buf<T>) {
        match (self.gpu, &x.far) {
            (Some(gpu), Some(memory)) => gpu.clear(memory),
            _ => x.data.fill(T::ZERO),
        }
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
        if let Some(gpu) = self.gpu {
            return Buf { data: Vec::new(), far: Some(gpu.upload(values)) };
        }
        let mut b = self.take(values.len());
        b.data.copy_from_slice(values);
        b
    }

    /// A copy on the device.
    pub(crate) fn copy(&mut self, x: View<'_, T>) -> Buf<T> {
        if let Some(gpu) = self.gpu {
            let memory = gpu.take::<T>(x.len());
            gpu.copy(x.at(), x.len() * T::BYTES, &memory);
            return Buf { data: Vec::new(), far: Some(memory) };
        }
        self.upload(x.0)
    }

    /// Copies values from the device: what waits for it, and may fail there.
    pub(crate) fn download(&self, buf: &Buf<T>) -> Result<Vec<T>> {
        match (self.gpu, &buf.far) {
            (Some(gpu), Some(memory)) => gpu.download(memory),
            _ => Ok(buf.data.clone()),
        }
    }

    /// The values of a buffer that is not needed any more: no second copy where it is in the host's memory.
    pub(crate) fn unload(&self, buf: Buf<T>) -> Result<Vec<T>> {
        match (self.gpu, &buf.far) {
            (Some(gpu), Some(memory)) => gpu.download(memory),
            _ => Ok(buf.data),
        }
    }

    /// Replaces the values of a buffer.
    pub(crate) fn write(&self, buf: &mut Buf<T>, values: &[T]) {
        match (self.gpu, &buf.far) {
            (Some(gpu), Some(memory)) => gpu.write(memory, values),
            _ => buf.data.copy_from_slice(values),
        }
    }
}
