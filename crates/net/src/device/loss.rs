//! Losses over a batch. Rows are computed in `f64`, and δ leaves in units of its own size.
//!
//! A record of loss 1e-30 has δ of 1e-30 and squares of 1e-60, which `f32` does not hold. Backward passes are linear in
//! δ, so they carry `δ/c`, c a power of two near the size of δ and its derivative; norms and products are multiplied
//! by c² in `f64` at the end. Powers of two round nothing.

use super::{Buf, Device, View};
use crate::{Loss, Real};

/// What a loss leaves for the tangents, by record.
#[derive(Debug)]
pub(crate) struct LossTape {
    kind: Loss,
    width: usize,
    /// Loss of every record.
    pub(crate) losses: Vec<f64>,
    /// c of every record: the unit of δ and of all that comes back from it.
    pub(crate) units: Vec<f64>,
    delta: Vec<f64>,
    y: Vec<f64>,
    kept: Vec<f64>,
}

/// The smallest unit where labels move: then `∂δ/∂y` is of size 1, and δ̇ over a smaller unit would overflow where it
/// is squared.
const LEAST_WITH_LABELS: f64 = 1.0 / (1u64 << 50) as f64;
/// Units stay inside this range, so that a value over its unit stays inside that of `f32`.
const RANGE: [f64; 2] = [1e-36, 1e15];

/// A power of two at most `size`.
fn unit(size: f64, least: f64) -> f64 {
    if !(size > 0.0 && size.is_finite()) {
        return 1.0;
    }
    2f64.powi(size.clamp(least, RANGE[1]).log2().floor() as i32)
}

impl<T: Real> Device<T> {
    /// Losses and `δ/c` of every record. `z` and `y` are `(records, width)`; `labels` says that tangents of labels will
    /// be asked for.
    pub(crate) fn loss(
        &mut self,
        kind: Loss,
        width: usize,
        z: View<'_, T>,
        y: View<'_, T>,
        labels: bool,
    ) -> (Buf<T>, LossTape) {
        let wide = |v: View<'_, T>| v.0.iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
        let (z, y) = (wide(z), wide(y));
        let least = if labels { LEAST_WITH_LABELS } else { RANGE[0] };
        let mut out = self.take(z.len());
        let (losses, units) = (Vec::new(), Vec::new());
        let (delta, kept) = (vec![0.0; z.len()], vec![0.0; z.len()]);
        let mut tape = LossTape { kind, width, losses, units, delta, y, kept };
        let rows = z.chunks_exact(width).zip(tape.y.chunks_exact(width));
        let kept = tape.delta.chunks_exact_mut(width).zip(tape.kept.chunks_exact_mut(width));
        for (((z, y), out), (delta, kept)) in rows.zip(out.data.chunks_exact_mut(width)).zip(kept) {
            let value = kind.rule().primal(z, y, delta, kept);
            let size = delta.iter().fold(value.curvature, |a, d| a.max(d.abs()));
            let c = unit(size, least);
            out.iter_mut().zip(delta.iter()).for_each(|(o, d)| *o = T::from_f64(d / c));
            tape.losses.push(value.loss);
            tape.units.push(c);
        }
        (out, tape)
    }

    /// `δ̇/c` for tangents of the output and of the label, either absent where it is zero; the primal repeats.
    pub(crate) fn loss_tangent(
        &mut self,
        tape: &LossTape,
        z_dot: Option<&Buf<T>>,
        y_dot: Option<&Buf<T>>,
    ) -> Buf<T> {
        let (width, rule) = (tape.width, tape.kind.rule());
        let len = z_dot.or(y_dot).map_or(tape.y.len(), Buf::len);
        let mut out = self.take(len);
        let (mut sum, mut dot) = (vec![0.0; width], vec![0.0; width]);
        let primal = tape.rows().zip(&tape.units).cycle();
        for (i, (out, ((kept, y), c))) in out.data.chunks_exact_mut(width).zip(primal).enumerate() {
            sum.fill(0.0);
            if let Some(z) = z_dot {
                read(&z.data, i, &mut dot);
                rule.output_tangent(kept, y, &dot, &mut sum);
            }
            if let Some(y) = y_dot {
                read(&y.data, i, &mut dot);
                rule.label_tangent(kept, &dot, &mut sum);
            }
            out.iter_mut().zip(&sum).for_each(|(o, s)| *o = T::from_f64(s / c));
        }
        out
    }

    /// `Σ δ ż` of every record, the derivative of its loss.
    pub(crate) fn loss_along(&self, tape: &LossTape, z_dot: &Buf<T>) -> Vec<f64> {
        let rows = tape.delta.chunks_exact(tape.width).zip(z_dot.data.chunks_exact(tape.width));
        rows.map(|(d, z)| d.iter().zip(z).map(|(d, z)| d * z.to_f64()).sum()).collect()
    }

    /// The tangent of `∂ℓ/∂y` for a tangent of the output, one row per record.
    pub(crate) fn loss_label_tangent(&mut self, tape: &LossTape, z_dot: &Buf<T>) -> Buf<T> {
        let width = tape.width;
        let mut out = self.take(z_dot.data.len());
        let (mut sum, mut dot) = (vec![0.0; width], vec![0.0; width]);
        let rows = out.data.chunks_exact_mut(width).zip(tape.rows().cycle());
        for (i, (out, (kept, _))) in rows.enumerate() {
            read(&z_dot.data, i, &mut dot);
            tape.kind.rule().label_adjoint(kept, &dot, &mut sum);
            out.iter_mut().zip(&sum).for_each(|(o, s)| *o = T::from_f64(*s));
        }
        out
    }
}

impl LossTape {
    fn rows(&self) -> impl Iterator<Item = (&[f64], &[f64])> + Clone {
        self.kept.chunks_exact(self.width).zip(self.y.chunks_exact(self.width))
    }
}

/// Row `i` in double precision.
fn read<T: Real>(rows: &[T], i: usize, out: &mut [f64]) {
    let width = out.len();
    out.iter_mut().zip(&rows[i * width..(i + 1) * width]).for_each(|(o, v)| *o = v.to_f64());
}
