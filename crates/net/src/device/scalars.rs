//! Numbers per record: squares and products of gradients, weights, losses. They are in double precision whatever the
//! network computes in, and stay on the device until somebody asks for them.

use super::{
    Buf, Device, Mark, View, address,
    cuda::{Dots, Gpu, Memory, magic},
    length,
    reduce::dot,
};
use crate::{Real, error::Result};

/// One number for every record, or for every probe and record, probe-major.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scalars {
    pub(super) data: Vec<f64>,
    pub(super) far: Option<Memory>,
}

impl Scalars {
    pub(crate) fn len(&self) -> usize {
        length(&self.data, self.far.as_ref())
    }

    pub(super) fn at(&self) -> u64 {
        address(self.far.as_ref())
    }
}

impl<T: Real> Device<T> {
    /// So many zeros.
    pub(crate) fn scalars(&self, len: usize) -> Scalars {
        let far = self.gpu.map(|gpu| {
            let memory = gpu.take::<f64>(len);
            gpu.clear(&memory);
            memory
        });
        Scalars { data: if far.is_some() { Vec::new() } else { vec![0.0; len] }, far }
    }

    /// Copies numbers to the device.
    pub(crate) fn upload_scalars(&self, values: &[f64]) -> Scalars {
        match self.gpu {
            Some(gpu) => Scalars { data: Vec::new(), far: Some(gpu.upload(values)) },
            None => Scalars { data: values.to_vec(), far: None },
        }
    }

    /// Copies numbers from the device.
    pub(crate) fn download_scalars(&self, scalars: &Scalars) -> Result<Vec<f64>> {
        self.download_scalars_at(scalars, None)
    }

    /// The same of what comes from before a mark ([`Device::download_at`]).
    pub(crate) fn download_scalars_at(&self, scalars: &Scalars, mark: Option<&Mark>) -> Result<Vec<f64>> {
        match (self.gpu, &scalars.far) {
            (Some(gpu), Some(memory)) => gpu.download_at(memory, mark),
            _ => Ok(scalars.data.clone()),
        }
    }

    /// Dot products of consecutive blocks of `len` values, `max(x, y)/len` of them; the shorter operand repeats.
    /// Products and sums are in `f64`: squares of small numbers leave the range of `f32`.
    pub(crate) fn dots(&self, len: usize, x: View<'_, T>, y: View<'_, T>) -> Scalars {
        if self.gpu.is_some() {
            let mut out = self.unset(count(len, x, y));
            self.far_dots(1.0, len, x, y, &mut out, false);
            return out;
        }
        Scalars { data: each_dot(len, x, y).collect(), far: None }
    }

    /// `out += factor·` [`Device::dots`].
    pub(crate) fn add_dots(
        &self,
        factor: f64,
        len: usize,
        x: View<'_, T>,
        y: View<'_, T>,
        out: &mut Scalars,
    ) {
        if self.gpu.is_some() {
            return self.far_dots(factor, len, x, y, out, true);
        }
        out.data.iter_mut().zip(each_dot(len, x, y)).for_each(|(o, d)| *o += factor * d);
    }

    /// So many numbers on a GPU, not yet computed.
    pub(super) fn unset(&self, len: usize) -> Scalars {
        Scalars { data: Vec::new(), far: self.gpu.map(|gpu| gpu.take::<f64>(len)) }
    }

    fn far_dots(
        &self,
        factor: f64,
        len: usize,
        x: View<'_, T>,
        y: View<'_, T>,
        out: &mut Scalars,
        adding: bool,
    ) {
        if let Some(gpu) = self.gpu {
            let n = count(len, x, y).min(out.len());
            gpu.dots::<T>(n, len, x.far(), y.far(), Dots { at: out.at(), factor, adding });
        }
    }

    /// `x ← x + c`.
    pub(crate) fn shift(&self, x: &mut Scalars, c: f64) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("shift", x.len(), &[x.at(), c.to_bits(), x.len() as u64]);
        }
        x.data.iter_mut().for_each(|x| *x += c);
    }

    /// `out ← out + x y`.
    pub(crate) fn add_scalar_products(&self, x: &Scalars, y: &Scalars, out: &mut Scalars) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "add_scalar_products",
                out.len(),
                &[out.at(), x.at(), y.at(), out.len() as u64],
            );
        }
        out.data.iter_mut().zip(x.data.iter().zip(&y.data)).for_each(|(o, (x, y))| *o += x * y);
    }

    /// `a x + b y`, the second term absent where it is zero.
    pub(crate) fn combined(
        &self,
        (a, x): (&Scalars, &Scalars),
        second: Option<(&Scalars, &Scalars)>,
    ) -> Scalars {
        if let Some(gpu) = self.gpu {
            let out = self.unset(x.len());
            let (b, y) = second.map_or((0, 0), |(b, y)| (b.at(), y.at()));
            gpu.each::<T>("combined", out.len(), &[out.at(), a.at(), x.at(), b, y, out.len() as u64]);
            return out;
        }
        let first = a.data.iter().zip(&x.data).map(|(a, x)| a * x);
        let data = match second {
            None => first.collect(),
            Some((b, y)) => first.zip(b.data.iter().zip(&y.data)).map(|(f, (b, y))| f + b * y).collect(),
        };
        Scalars { data, far: None }
    }

    /// `x ← x c²`; c repeats over probes.
    pub(crate) fn scale_squares(&self, c: &Scalars, x: &mut Scalars) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "scale_squares",
                x.len(),
                &[x.at(), c.at(), x.len() as u64, c.len() as u64],
            );
        }
        x.data.iter_mut().zip(c.data.iter().cycle()).for_each(|(x, c)| *x *= c * c);
    }

    /// `x (c/m)`, or `x/m`.
    pub(crate) fn in_units(&self, x: &Scalars, c: Option<&Scalars>, m: &Scalars) -> Scalars {
        if let Some(gpu) = self.gpu {
            let out = self.unset(x.len());
            let c = c.map_or(0, Scalars::at);
            gpu.each::<T>("in_units", out.len(), &[out.at(), x.at(), c, m.at(), out.len() as u64]);
            return out;
        }
        let each = x.data.iter().zip(&m.data);
        let data = match c {
            Some(c) => each.zip(&c.data).map(|((x, m), c)| x * (c / m)).collect(),
            None => each.map(|(x, m)| x / m).collect(),
        };
        Scalars { data, far: None }
    }

    /// `most ← max(most, c|x|)`, c 1 where it is absent.
    pub(crate) fn raise(&self, x: &Scalars, c: Option<&Scalars>, most: &mut Scalars) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "raise",
                x.len(),
                &[most.at(), x.at(), c.map_or(0, Scalars::at), x.len() as u64],
            );
        }
        for (i, (m, x)) in most.data.iter_mut().zip(&x.data).enumerate() {
            *m = m.max(c.map_or(1.0, |c| c.data[i]) * x.abs());
        }
    }

    /// Zeros become ones.
    pub(crate) fn fill_zeros(&self, x: &mut Scalars) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("fill_zeros", x.len(), &[x.at(), x.len() as u64]);
        }
        x.data.iter_mut().filter(|x| **x == 0.0).for_each(|x| *x = 1.0);
    }

    /// Products of rank-one gradients `δ ⊗ (a, 1)` with their tangents, from those of their halves, all of which repeat
    /// over probes but the moved ones: adds `g·ġ` and `‖ġ‖²`.
    pub(crate) fn add_rank_one(&self, pair: &RankOne<'_>, sums: &mut Products) {
        if let Some(gpu) = self.gpu {
            let n = pair.d_cross.len();
            let (ax, ay) = pair.a_moved.map_or((0, 0), |(x, y)| (x.at(), y.at()));
            let args = [
                sums.cross.at(),
                sums.square.at(),
                pair.a.at(),
                pair.d.at(),
                pair.d_cross.at(),
                pair.d_square.at(),
                ax,
                ay,
                n as u64,
                pair.a.len() as u64,
            ];
            return gpu.each::<T>("add_rank_one", n, &args);
        }
        let b = pair.a.data.len().max(1);
        for i in 0..pair.d_cross.data.len() {
            let (na, nd) = (pair.a.data[i % b], pair.d.data[i % b]);
            let (dx, dy) = (pair.d_cross.data[i], pair.d_square.data[i]);
            let (ax, ay) = pair.a_moved.map_or((0.0, 0.0), |(x, y)| (x.data[i], y.data[i]));
            sums.cross.data[i] += dx * na + nd * ax;
            sums.square.data[i] += dy * na + 2.0 * dx * ax + nd * ay;
        }
    }

    /// `out ← scale[i]·x` where each of the equal blocks of `out` has its own factor; `x` repeats.
    pub(crate) fn scale_blocks(&self, scale: &Scalars, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return far_blocks(gpu, scale, x, out, false);
        }
        blocks(scale, x, out, |o, s, x| *o = s * x);
    }

    /// `out ← out + scale[i]·x`, block by block as in [`Device::scale_blocks`].
    pub(crate) fn add_scaled_blocks(&self, scale: &Scalars, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return far_blocks(gpu, scale, x, out, true);
        }
        blocks(scale, x, out, |o, s, x| *o += s * x);
    }
}

/// Sums over the layers of a tangent pass, probe-major.
#[derive(Debug)]
pub(crate) struct Products {
    /// `g·ġ`.
    pub(crate) cross: Scalars,
    /// `‖ġ‖²`.
    pub(crate) square: Scalars,
    /// Whether layers keep what a direction along ġ needs.
    pub(crate) keep: bool,
}

/// The halves of rank-one gradients and of their tangents.
#[derive(Debug)]
pub(crate) struct RankOne<'a> {
    /// `‖a‖² + 1`.
    pub(crate) a: &'a Scalars,
    /// `‖δ‖²`.
    pub(crate) d: &'a Scalars,
    /// `δ·δ̇`.
    pub(crate) d_cross: &'a Scalars,
    /// `‖δ̇‖²`.
    pub(crate) d_square: &'a Scalars,
    /// `a·ȧ` and `‖ȧ‖²`; absent where a does not move.
    pub(crate) a_moved: Option<(&'a Scalars, &'a Scalars)>,
}

/// Number of dot products of blocks of `len` values.
fn count<T: Real>(len: usize, x: View<'_, T>, y: View<'_, T>) -> usize {
    x.len().max(y.len()).checked_div(len).unwrap_or(0)
}

fn each_dot<'a, T: Real>(len: usize, x: View<'a, T>, y: View<'a, T>) -> impl Iterator<Item = f64> + 'a {
    let n = count(len, x, y);
    let (xs, ys) = (x.0.chunks_exact(len.max(1)).cycle(), y.0.chunks_exact(len.max(1)).cycle());
    xs.zip(ys).take(n).map(|(x, y)| dot(x, y))
}

fn far_blocks<T: Real>(gpu: &Gpu, scale: &Scalars, x: View<'_, T>, out: &mut Buf<T>, adding: bool) {
    let (n, block) = (out.len(), out.len() / scale.len().max(1));
    let block = block.max(1);
    let args = [
        out.at(),
        scale.at(),
        x.at(),
        n as u64,
        block as u64,
        magic(block),
        x.len() as u64,
        u64::from(adding),
    ];
    gpu.each::<T>("scale_blocks", n, &args);
}

fn blocks<T: Real>(scale: &Scalars, x: View<'_, T>, out: &mut Buf<T>, f: impl Fn(&mut T, T, T)) {
    let block = out.data.len() / scale.data.len().max(1);
    if block == 0 {
        return;
    }
    let xs = x.0.chunks_exact(block).cycle();
    for ((out, x), &s) in out.data.chunks_exact_mut(block).zip(xs).zip(&scale.data) {
        let s = T::from_f64(s);
        out.iter_mut().zip(x).for_each(|(o, &x)| f(o, s, x));
    }
}
