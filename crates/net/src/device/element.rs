//! Element by element. Operands shorter than the output repeat.

use super::{Buf, Device, View};
use crate::{Activation, Real, real::vectorised};

impl<T: Real> Device<T> {
    /// `φ(z)` on a GPU, where derivatives are computed again from z when they are needed: that is faster than reading them.
    pub(crate) fn far_activate(&mut self, kind: Activation, z: &Buf<T>) -> Option<Buf<T>> {
        let gpu = self.gpu?;
        let ((code, p), out) = (code(kind), self.take(z.len()));
        gpu.each::<T>("activate", z.len(), &[code, p.to_bits(), out.at(), z.at(), z.len() as u64]);
        Some(out)
    }

    /// `φ'(z) x` on a GPU; z repeats.
    pub(crate) fn far_slope(&mut self, kind: Activation, z: &Buf<T>, x: &Buf<T>) -> Option<Buf<T>> {
        let gpu = self.gpu?;
        let ((code, p), out) = (code(kind), self.take(x.len()));
        let arguments = [code, p.to_bits(), out.at(), x.at(), z.at(), x.len() as u64, z.len() as u64];
        gpu.each::<T>("activate_slope", x.len(), &arguments);
        Some(out)
    }

    /// `φ'(z) δ̇ + φ''(z) δ ż` on a GPU; z and δ repeat.
    pub(crate) fn far_bend(
        &mut self,
        kind: Activation,
        (z, delta): (&Buf<T>, &Buf<T>),
        z_dot: &Buf<T>,
        delta_dot: &Buf<T>,
    ) -> Option<Buf<T>> {
        let gpu = self.gpu?;
        let ((code, p), out) = (code(kind), self.take(delta_dot.len()));
        let arguments = [
            code,
            p.to_bits(),
            out.at(),
            delta_dot.at(),
            z.at(),
            delta.at(),
            z_dot.at(),
            out.len() as u64,
            z.len() as u64,
        ];
        gpu.each::<T>("activate_bend", out.len(), &arguments);
        Some(out)
    }

    /// `z ← φ(z)`, `first ← φ'(z)`, `second ← φ''(z)`; on the processor alone.
    pub(crate) fn activate(&self, kind: Activation, z: &mut Buf<T>, first: &mut Buf<T>, second: &mut Buf<T>) {
        let (z, d1, d2) = (&mut z.data[..], &mut first.data[..], &mut second.data[..]);
        match kind {
            Activation::Tanh => map3(z, d1, d2, |x| {
                let y = x.tanh();
                // 1 − y² has no digits left where y is near 1; 4e^{−2|x|}/(1 + e^{−2|x|})² has all
                let e = (-(x.abs() + x.abs())).exp();
                let t = (T::ONE + T::ONE) / (T::ONE + e);
                let d = e * t * t;
                (y, d, -(y + y) * d)
            }),
            Activation::Sigmoid => map3(z, d1, d2, sigmoid),
            Activation::Silu => map3(z, d1, d2, |x| {
                let (s, d, dd) = sigmoid(x);
                (x * s, s + x * d, d + d + x * dd)
            }),
            Activation::Softplus => map3(z, d1, d2, |x| {
                let (s, d, _) = sigmoid(x);
                let rest = T::from_f64((-x.abs()).exp().to_f64().ln_1p());
                (if x < T::ZERO { rest } else { x + rest }, s, d)
            }),
            Activation::LeakyRelu(slope) => {
                let slope = T::from_f64(slope);
                map3(z, d1, d2, |x| {
                    if x <= T::ZERO { (slope * x, slope, T::ZERO) } else { (x, T::ONE, T::ZERO) }
                });
            }
            Activation::Elu(alpha) => {
                let a = T::from_f64(alpha);
                map3(z, d1, d2, |x| {
                    let e = a * x.exp();
                    let below = a * T::from_f64(x.to_f64().exp_m1());
                    if x <= T::ZERO { (below, e, e) } else { (x, T::ONE, T::ZERO) }
                });
            }
            Activation::Relu => map3(z, d1, d2, |x| {
                let d = if x > T::ZERO { T::ONE } else { T::ZERO };
                // NaN must not turn into 0
                (if x <= T::ZERO { T::ZERO } else { x }, d, T::ZERO)
            }),
            Activation::GeluTanh => map3(z, d1, d2, |x| {
                // x s(2u), u = c(x + k x³): the sigmoid keeps its digits far left, where 1 + tanh(u) does not
                let two = T::ONE + T::ONE;
                let (c, k) = (T::from_f64(0.797_884_560_802_865_4), T::from_f64(0.044_715));
                let square = x * x;
                let three = two + T::ONE;
                let (s, d, dd) = sigmoid(two * c * (x + k * square * x));
                let slope = two * c * (T::ONE + three * k * square);
                let bend = two * c * (three * two) * k * x;
                (x * s, s + x * d * slope, two * d * slope + x * (dd * slope * slope + d * bend))
            }),
            Activation::Gelu => map3(z, d1, d2, |x| {
                let half = T::from_f64(0.5);
                let cdf = x.normal_cdf();
                let pdf = T::from_f64(0.398_942_280_401_432_7) * (-half * x * x).exp();
                (x * cdf, cdf + x * pdf, pdf * (T::ONE + T::ONE - x * x))
            }),
        }
    }

    /// `x ← x ⊙ y`.
    pub(crate) fn mul(&self, x: &mut Buf<T>, y: View<'_, T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("mul", x.len(), &[x.at(), y.at(), x.len() as u64, y.len() as u64]);
        }
        chunks(&mut x.data, y.0.len(), |x| {
            vectorised(
                #[inline(always)]
                || x.iter_mut().zip(y.0).for_each(|(x, &y)| *x *= y),
            );
        });
    }

    /// `x ← x + y`.
    pub(crate) fn add(&self, x: &mut Buf<T>, y: View<'_, T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("add", x.len(), &[x.at(), y.at(), x.len() as u64, y.len() as u64]);
        }
        chunks(&mut x.data, y.0.len(), |x| {
            vectorised(
                #[inline(always)]
                || x.iter_mut().zip(y.0).for_each(|(x, &y)| *x += y),
            );
        });
    }

    /// `out ← out ⊙ d + e ⊙ x`, with `d` and `e` of one length: the tangent of an activation's backward pass.
    pub(crate) fn mul_add(&self, out: &mut Buf<T>, d: View<'_, T>, e: View<'_, T>, x: View<'_, T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "mul_add",
                out.len(),
                &[out.at(), d.at(), e.at(), x.at(), out.len() as u64, d.len() as u64],
            );
        }
        let len = d.0.len();
        if len == 0 {
            return;
        }
        for (out, x) in out.data.chunks_exact_mut(len).zip(x.0.chunks_exact(len)) {
            let (d, e) = (&d.0[..len], &e.0[..len]);
            vectorised(
                #[inline(always)]
                || {
                    for i in 0..len {
                        out[i] = out[i] * d[i] + e[i] * x[i];
                    }
                },
            );
        }
    }

    /// `out ← out + x ⊙ y`; both operands repeat.
    pub(crate) fn add_product(&self, out: &mut Buf<T>, x: View<'_, T>, y: View<'_, T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "add_product",
                out.len(),
                &[out.at(), x.at(), y.at(), out.len() as u64, x.len() as u64, y.len() as u64],
            );
        }
        let len = x.0.len().min(y.0.len());
        if len == 0 {
            return;
        }
        let (xs, ys) = (x.0.chunks_exact(len).cycle(), y.0.chunks_exact(len).cycle());
        for ((out, x), y) in out.data.chunks_exact_mut(len).zip(xs).zip(ys) {
            vectorised(
                #[inline(always)]
                || out.iter_mut().zip(x).zip(y).for_each(|((o, &x), &y)| *o += x * y),
            );
        }
    }

    /// Every row of `x` becomes the vector `v`.
    pub(crate) fn set_rows(&self, x: &mut Buf<T>, v: View<'_, T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("set_rows", x.len(), &[x.at(), v.at(), x.len() as u64, v.len() as u64]);
        }
        for row in x.data.chunks_exact_mut(v.0.len().max(1)) {
            row.iter_mut().zip(v.0).for_each(|(r, &v)| *r = v);
        }
    }

    /// Every row of `width` values `times` over: `(n, width)` → `(n·times, width)`.
    pub(crate) fn repeat_rows(&self, width: usize, times: usize, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "repeat_rows",
                out.len(),
                &[out.at(), x.at(), out.len() as u64, width as u64, times as u64],
            );
        }
        let groups = out.data.chunks_exact_mut((width * times).max(1));
        for (group, row) in groups.zip(x.0.chunks_exact(width.max(1))) {
            group.chunks_exact_mut(width).for_each(|o| o.copy_from_slice(row));
        }
    }

    /// `x ← x + c`, the same number everywhere.
    pub(crate) fn add_constant(&self, x: &mut Buf<T>, c: T) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("add_constant", x.len(), &[x.at(), c.to_f64().to_bits(), x.len() as u64]);
        }
        x.data.iter_mut().for_each(|x| *x += c);
    }
}

/// Number of an activation among those of the GPU's kernel, and its parameter.
pub(super) fn code(kind: Activation) -> (u64, f64) {
    match kind {
        Activation::Tanh => (0, 0.0),
        Activation::Sigmoid => (1, 0.0),
        Activation::Silu => (2, 0.0),
        Activation::Softplus => (3, 0.0),
        Activation::LeakyRelu(slope) => (4, slope),
        Activation::Elu(alpha) => (5, alpha),
        Activation::Relu => (6, 0.0),
        Activation::GeluTanh => (7, 0.0),
        Activation::Gelu => (8, 0.0),
    }
}

/// `s(x)`, `s'(x)`, `s''(x)`: `s(x) = (1 + tanh(x/2))/2` loses digits far left; `e^{−|x|}` does not.
#[inline(always)]
fn sigmoid<T: Real>(x: T) -> (T, T, T) {
    let e = (-x.abs()).exp();
    let big = T::ONE / (T::ONE + e);
    let y = if x < T::ZERO { e * big } else { big };
    let d = e * big * big;
    let sign = if x < T::ZERO { T::ONE } else { -T::ONE };
    (y, d, sign * d * (T::ONE - e) * big)
}

/// Applies `f` to pieces of `len`.
fn chunks<T>(x: &mut [T], len: usize, f: impl FnMut(&mut [T])) {
    if len > 0 {
        x.chunks_exact_mut(len).for_each(f);
    }
}

#[inline(always)]
fn map3<T: Real>(z: &mut [T], d1: &mut [T], d2: &mut [T], f: impl Fn(T) -> (T, T, T)) {
    let n = z.len();
    let (d1, d2) = (&mut d1[..n], &mut d2[..n]);
    vectorised(
        #[inline(always)]
        || {
            for i in 0..n {
                (z[i], d1[i], d2[i]) = f(z[i]);
            }
        },
    );
}
