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
//! | `perturb` | a constant added to gradients: what its objective needs, and its descent |
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
mod perturb;
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
pub(crate) use perturb::{RelativeSlopes, Shifted, rounding};
pub(crate) use product::Gemm;
pub(crate) use pulled::Pulled;
pub(crate) use scalars::{Products, RankOne, Scalars};

use crate::{
    Real,
    error::{Error, Result},
};
use cuda::{Gpu, Memory};
pub(crate) use cuda::{Graph, Mark, Staging};

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
    pub(crate) fn at(&self) -> u64 {
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
pub enum Backend {
    /// The processor.
    #[default]
    Cpu,
    /// A GPU of NVIDIA's: see [`Backend::cuda`].
    Cuda(Card),
}

/// A GPU that was opened.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    gpu: &'static Gpu,
    /// Whether products in passes are in tf32.
    shortens: bool,
}

impl PartialEq for Card {
    fn eq(&self, other: &Self) -> bool {
        self.gpu.ordinal() == other.gpu.ordinal() && self.shortens == other.shortens
    }
}

impl Eq for Card {}

impl Card {
    /// Its number among those of the machine.
    pub fn ordinal(&self) -> u32 {
        self.gpu.ordinal()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.gpu.name()
    }

    /// Its memory, in bytes.
    pub(crate) fn total_memory(&self) -> usize {
        self.gpu.total_memory()
    }

    /// Memory that is free, in bytes.
    pub fn free_memory(&self) -> usize {
        self.gpu.free_memory()
    }

    /// Whether products in passes of `f32` are in tf32.
    pub fn shortens(&self) -> bool {
        self.shortens
    }
}

impl Backend {
    /// The GPU of a number, if it can be used.
    pub fn cuda(ordinal: u32) -> Result<Self> {
        Ok(Self::Cuda(Card { gpu: Gpu::open(ordinal)?, shortens: false }))
    }

    /// The same GPU with the products of passes in tf32: operands of `f32` rounded to eleven bits, sums in `f32`. Norms and sums of
    /// clipped gradients stay in `f32`, so that a clip holds as before; convolutions of small shapes, which are no products of
    /// cuBLAS, stay in `f32` too.
    pub fn in_tf32(self) -> Result<Self> {
        let refused = |reason: String| Err(Error::Format { subject: "tf32", reason });
        match self {
            Self::Cpu => {
                refused("the processor has none: it is what a GPU's matrix units compute in".to_owned())
            }
            Self::Cuda(card) if !card.gpu.shortens() => {
                refused(format!("{} has none: compute capability 8.0 or newer is needed", card.name()))
            }
            Self::Cuda(card) => Ok(Self::Cuda(Card { shortens: true, ..card })),
        }
    }

    /// A worker's device.
    pub(crate) fn device<T: Real>(self) -> Device<T> {
        let (gpu, shortens) = match self {
            Self::Cpu => (None, false),
            Self::Cuda(card) => (Some(card.gpu), card.shortens),
        };
        Device { free: Vec::new(), gpu, shortens }
    }
}

/// One worker's device: its kernels and a pool of buffers that are used again. On the processor every worker
/// thread has its own; a GPU has one.
#[derive(Debug)]
pub struct Device<T> {
    free: Vec<Vec<T>>,
    gpu: Option<&'static Gpu>,
    /// Whether products in passes are in tf32.
    shortens: bool,
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

    /// Captures what `work` queues on a GPU, to be started again as a whole; absent on the processor, and where it cannot be
    /// captured: then nothing was queued. It must wait for nothing.
    pub(crate) fn capture<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Option<(Graph, R)> {
        let gpu = self.gpu?;
        gpu.capture(|| work(self))
    }

    /// Starts captured work.
    pub(crate) fn replay(&self, graph: &Graph) {
        if let Some(gpu) = self.gpu {
            gpu.replay(graph);
        }
    }

    /// Replaces the values of a buffer by those of another one on the device.
    pub(crate) fn overwrite(&self, from: &Buf<T>, to: &mut Buf<T>) {
        match (self.gpu, &to.far) {
            (Some(gpu), Some(memory)) => gpu.copy(from.at(), from.len() * T::BYTES, memory),
            _ => to.data.copy_from_slice(&from.data),
        }
    }

    /// The same of numbers of records.
    pub(crate) fn overwrite_scalars(&self, from: &Scalars, to: &mut Scalars) {
        match (self.gpu, &to.far) {
            (Some(gpu), Some(memory)) => gpu.copy(from.at(), 8 * from.len(), memory),
            _ => to.data.copy_from_slice(&from.data),
        }
    }

    /// The same of labels, of one kind.
    pub(crate) fn overwrite_target(&self, from: &Target<T>, to: &mut Target<T>) {
        match (from, to) {
            (Target::Vectors(from), Target::Vectors(to)) => self.overwrite(from, to),
            (Target::Classes(from), Target::Classes(to)) => match (self.gpu, &to.far) {
                (Some(gpu), Some(memory)) => gpu.copy(from.at(), 4 * from.len(), memory),
                _ => to.data.copy_from_slice(&from.data),
            },
            (from, to) => *to = self.copy_target(from),
        }
    }

    /// Labels once more.
    pub(crate) fn copy_target(&self, target: &Target<T>) -> Target<T> {
        match target {
            Target::Vectors(values) => Target::Vectors(values.clone()),
            Target::Classes(classes) => Target::Classes(classes.clone()),
        }
    }

    /// Numbers of records one behind the other.
    pub(crate) fn joined(&self, all: &[&Scalars]) -> Scalars {
        let len = all.iter().map(|s| s.len()).sum();
        let Some(gpu) = self.gpu else {
            return Scalars { data: all.iter().flat_map(|s| s.data.iter().copied()).collect(), far: None };
        };
        let memory = gpu.take::<f64>(len);
        let mut at = 0;
        for scalars in all {
            gpu.copy_behind(scalars.at(), 8 * scalars.len(), (&memory, 8 * at));
            at += scalars.len();
        }
        Scalars { data: Vec::new(), far: Some(memory) }
    }

    /// Room to copy pieces of records ahead to a GPU; absent on the processor.
    pub(crate) fn staging(&self) -> Option<Staging> {
        self.gpu.and_then(Gpu::staging)
    }

    /// Whether such room is on this GPU.
    pub(crate) fn has_staging(&self, staging: &Staging) -> bool {
        self.gpu.is_some_and(|gpu| staging.is_on(gpu))
    }

    /// A piece that was copied ahead, or is now.
    pub(crate) fn staged(
        &self,
        staging: &Staging,
        records: &[usize],
        len: usize,
        fill: impl FnOnce(&mut [T]),
    ) -> Option<Buf<T>> {
        let far = staging.take::<T>(records, len, fill)?;
        Some(Buf { data: Vec::new(), far: Some(far) })
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
        self.download_at(buf, None)
    }

    /// Marks what is in the queue of a GPU by now; absent on the processor.
    pub(crate) fn mark(&self) -> Option<Mark> {
        self.gpu.and_then(Gpu::mark)
    }

    /// [`Device::download`] of what comes from before a mark: nothing after it is waited for.
    pub(crate) fn download_at(&self, buf: &Buf<T>, mark: Option<&Mark>) -> Result<Vec<T>> {
        match (self.gpu, &buf.far) {
            (Some(gpu), Some(memory)) => gpu.download_at(memory, mark),
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
