//! Losses of one record, their derivative with respect to the output and the tangents of that derivative.
//!
//! | loss | ℓ | δ = ∂ℓ/∂z | δ̇ |
//! |---|---|---|---|
//! | softmax cross-entropy | `−Σ y log p` | `Y p − y` | `Y(p ⊙ ż − p (p·ż)) + Ẏ p − ẏ` |
//! | binary cross-entropy | `Σ log(1+eᶻ) − yz` | `s(z) − y` | `s(1−s) ż − ẏ` |
//! | squared error | `½‖z − y‖²` | `z − y` | `ż − ẏ` |
//!
//! `Y = Σ y` is 1 for one-hot labels and stays in the formulas because a label that is part of the record may move
//! in any direction.

use super::{Buf, Device, View};
use crate::{Loss, Real};

impl<T: Real> Device<T> {
    /// Losses of every record, δ, and what the tangents need again (p, or s). `z` and `y` are `(records, width)`.
    pub(crate) fn loss(
        &mut self,
        kind: Loss,
        width: usize,
        z: View<'_, T>,
        y: View<'_, T>,
    ) -> (Vec<f64>, Buf<T>, Buf<T>) {
        let (mut delta, mut prob) = (self.take(z.0.len()), self.take(z.0.len()));
        let rows = z.0.chunks_exact(width).zip(y.0.chunks_exact(width));
        let outs = delta.data.chunks_exact_mut(width).zip(prob.data.chunks_exact_mut(width));
        let losses = rows
            .zip(outs)
            .map(|((z, y), (d, p))| {
                let zy = z.iter().zip(y).map(|(&z, &y)| (z.to_f64(), y.to_f64()));
                match kind {
                    Loss::SoftmaxCrossEntropy => {
                        // the maximum is taken out, so nothing overflows
                        let top = z
                            .iter()
                            .map(|z| z.to_f64())
                            .fold(f64::NEG_INFINITY, |a, b| if b < a { a } else { b });
                        let total: f64 = zy.clone().map(|(z, _)| (z - top).exp()).sum();
                        let lse = top + total.ln();
                        let mass: f64 = zy.clone().map(|(_, y)| y).sum();
                        for (i, (z, y)) in zy.clone().enumerate() {
                            let q = (z - lse).exp();
                            p[i] = T::from_f64(q);
                            d[i] = T::from_f64(mass * q - y);
                        }
                        zy.map(|(z, y)| if y == 0.0 { 0.0 } else { y * (lse - z) }).sum()
                    }
                    Loss::BinaryCrossEntropy => {
                        let mut sum = 0.0;
                        for (i, (z, y)) in zy.enumerate() {
                            let e = (-z.abs()).exp();
                            let s = if z < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) };
                            p[i] = T::from_f64(s);
                            d[i] = T::from_f64(s - y);
                            sum += z.max(0.0) + e.ln_1p() - y * z;
                        }
                        sum
                    }
                    Loss::SquaredError => {
                        let mut sum = 0.0;
                        for (i, (z, y)) in zy.enumerate() {
                            p[i] = T::ONE;
                            d[i] = T::from_f64(z - y);
                            sum += 0.5 * (z - y) * (z - y);
                        }
                        sum
                    }
                }
            })
            .collect();
        (losses, delta, prob)
    }

    /// δ̇ for tangents of the output and of the label, either absent where it is zero; the primal repeats.
    pub(crate) fn loss_tangent(
        &mut self,
        kind: Loss,
        width: usize,
        prob: View<'_, T>,
        y: View<'_, T>,
        z_dot: Option<&Buf<T>>,
        y_dot: Option<&Buf<T>>,
    ) -> Buf<T> {
        let len = z_dot.or(y_dot).map_or(prob.0.len(), Buf::len);
        let mut out = self.zeros(len);
        let primal = prob.0.chunks_exact(width).zip(y.0.chunks_exact(width)).cycle();
        for (i, (out, (p, y))) in out.data.chunks_exact_mut(width).zip(primal).enumerate() {
            let at = i * width..(i + 1) * width;
            if let Some(z) = z_dot {
                let z = &z.data[at.clone()];
                match kind {
                    Loss::SoftmaxCrossEntropy => {
                        let mass: f64 = y.iter().map(|y| y.to_f64()).sum();
                        let mean: f64 = p.iter().zip(z).map(|(&p, &z)| (p * z).to_f64()).sum();
                        for j in 0..width {
                            out[j] = T::from_f64(mass * p[j].to_f64() * (z[j].to_f64() - mean));
                        }
                    }
                    Loss::BinaryCrossEntropy => {
                        for j in 0..width {
                            out[j] = p[j] * (T::ONE - p[j]) * z[j];
                        }
                    }
                    Loss::SquaredError => out.copy_from_slice(z),
                }
            }
            if let Some(yd) = y_dot {
                let yd = &yd.data[at];
                let mass = match kind {
                    Loss::SoftmaxCrossEntropy => yd.iter().map(|y| y.to_f64()).sum(),
                    Loss::BinaryCrossEntropy | Loss::SquaredError => 0.0,
                };
                for j in 0..width {
                    out[j] += T::from_f64(mass) * p[j] - yd[j];
                }
            }
        }
        out
    }

    /// The tangent of `∂ℓ/∂y` for a tangent of the output: `−(ż − p·ż)` for the softmax, `−ż` otherwise.
    pub(crate) fn loss_label_tangent(
        &mut self,
        kind: Loss,
        width: usize,
        prob: View<'_, T>,
        z_dot: &Buf<T>,
    ) -> Buf<T> {
        let mut out = self.take(z_dot.data.len());
        let rows = z_dot.data.chunks_exact(width).zip(prob.0.chunks_exact(width).cycle());
        for (out, (z, p)) in out.data.chunks_exact_mut(width).zip(rows) {
            let mean = match kind {
                Loss::SoftmaxCrossEntropy => {
                    T::from_f64(p.iter().zip(z).map(|(&p, &z)| (p * z).to_f64()).sum())
                }
                Loss::BinaryCrossEntropy | Loss::SquaredError => T::ZERO,
            };
            out.iter_mut().zip(z).for_each(|(o, &z)| *o = mean - z);
        }
        out
    }
}
