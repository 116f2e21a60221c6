//! Clips and random draws of records on a GPU: what the processor makes of numbers per record, without waiting for them.

use super::{Buf, Device, Index, Krylov, Scalars, cuda::magic, krylov::Ritz};
use crate::{Clip, Real, random::Purpose};

/// What a clip makes of every record's gradient: [`crate::clip::Clipped`] by columns.
#[derive(Debug)]
pub(crate) struct Clips {
    /// `n = ‖g‖`.
    pub(crate) norm: Scalars,
    pub(crate) s: Scalars,
    /// `s + n s'`.
    pub(crate) slope: Scalars,
    /// `s²` over the variance of the noise.
    pub(crate) alpha: Scalars,
    /// `2 s s'/n + s'²` over the variance of the noise.
    pub(crate) bend: Scalars,
    /// 1 over the variance of the noise.
    pub(crate) precision: f64,
}

/// Sums over probes of `‖J u‖²` and of its square, for every record.
#[derive(Debug)]
pub(crate) struct ProbeSums {
    pub(crate) sum: Scalars,
    pub(crate) square: Scalars,
}

/// Streams of random numbers, one for each record: a seed, a purpose, and the numbers of the records.
#[derive(Debug)]
pub(crate) struct Streams<'a> {
    pub(crate) seed: u64,
    pub(crate) records: &'a Index,
}

impl<T: Real> Device<T> {
    /// Clips from `‖g‖²`; absent on the processor.
    pub(crate) fn clips(&self, clip: Clip, square: &Scalars, precision: f64) -> Option<Clips> {
        let gpu = self.gpu?;
        let n = square.len();
        let [norm, s, slope, alpha, bend] = std::array::from_fn(|_| self.unset(n));
        let kind: u64 = match clip {
            Clip::None => 0,
            Clip::Hard { .. } => 1,
            Clip::Gelu { .. } => 2,
        };
        let to = [norm.at(), s.at(), slope.at(), alpha.at(), bend.at()];
        let from = [square.at(), n as u64, kind, clip.unit().to_bits(), precision.to_bits()];
        gpu.each::<T>("clips", n, &[&to[..], &from].concat());
        Some(Clips { norm, s, slope, alpha, bend, precision })
    }

    /// `‖J u‖²` over the variance of the noise, for every probe and record of a pass with these `g·ġ` and `‖ġ‖²`.
    pub(crate) fn released_squares(&self, clips: &Clips, cross: &Scalars, square: &Scalars) -> Scalars {
        let (rows, n) = (cross.len(), clips.norm.len());
        let out = self.unset(rows);
        if let Some(gpu) = self.gpu {
            let from = [cross.at(), square.at(), clips.norm.at(), clips.s.at(), clips.slope.at()];
            let sizes = [rows as u64, n as u64, clips.precision.to_bits()];
            gpu.each::<T>("released_squares", rows, &[&[out.at()][..], &from, &sizes].concat());
        }
        out
    }

    /// Adds them up over probes, and their squares.
    pub(crate) fn add_probes(&self, squares: &Scalars, sums: &mut ProbeSums) {
        let (rows, n) = (squares.len(), sums.sum.len());
        if let Some(gpu) = self.gpu {
            let arguments = [sums.sum.at(), sums.square.at(), squares.at(), rows as u64, n as u64];
            gpu.each::<T>("add_probes", n, &arguments);
        }
    }

    /// Rows of signs, probe-major: those that the streams give for so many words from a position on, each probe so many
    /// words behind the one before.
    pub(crate) fn random_signs(
        &mut self,
        streams: &Streams<'_>,
        width: usize,
        probes: usize,
        (from, apart): (usize, usize),
    ) -> Option<Buf<T>> {
        let gpu = self.gpu?;
        let (n, words) = (streams.records.len(), width.div_ceil(32).max(1));
        let bits = gpu.take::<u32>(probes * n * words);
        let arguments = [
            bits.address(),
            streams.records.at(),
            bits.len() as u64,
            n as u64,
            words as u64,
            from as u64,
            apart as u64,
            streams.seed,
            Purpose::Probes as u64,
        ];
        gpu.each::<T>("random_bits", bits.len(), &arguments);
        let out = self.take(probes * n * width);
        let sizes = [out.len() as u64, width as u64, magic(width), words as u64];
        gpu.each::<T>("signs", out.len(), &[&[out.at(), bits.address()][..], &sizes].concat());
        Some(out)
    }

    /// Bases that start from random unit vectors, a stream for each record; absent on the processor, and where so many steps
    /// have no room.
    pub(crate) fn random_krylov(
        &self,
        streams: &Streams<'_>,
        widths: [usize; 2],
        steps: usize,
    ) -> Option<Krylov> {
        let gpu = self.gpu?;
        let (n, width) = (streams.records.len(), widths.iter().sum::<usize>());
        let bytes = n * width * size_of::<f64>();
        if bytes.saturating_mul(steps + 1) >= gpu.free_memory() / 2 {
            return None;
        }
        let start = gpu.take::<f64>(n * width);
        let arguments =
            [start.address(), streams.records.at(), width as u64, streams.seed, Purpose::Probes as u64];
        gpu.rows::<T>("random_unit", n, width, &arguments);
        let (matrix, state) = (self.unset(4 * n * steps), self.scalars(2 * n));
        let ritz = Ritz { matrix, state, largest: self.scalars(2 * n) };
        Some(Krylov::from(n, widths, start, ritz))
    }
}
