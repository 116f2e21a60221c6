//! Losses over a batch. Rows are computed in `f64`, and δ leaves in units of its own size.
//!
//! A record of loss 1e-30 has δ of 1e-30 and squares of 1e-60, which `f32` does not hold. Backward passes are linear in
//! δ, so they carry `δ/c`, c a power of two near the size of δ and its derivative; norms and products are multiplied
//! by c² in `f64` at the end. Powers of two round nothing.
//!
//! A record has one row of outputs, or one for each of its positions, whose losses are weighed and added up. Nothing of
//! the size of the outputs is kept for the tangents: they are computed again from the outputs, which are there anyway.

use super::{Buf, Device, Index, Scalars, View};
use crate::{
    Loss, Real,
    loss::{NO_LABEL, Value},
};

/// The labels of a batch.
#[derive(Debug)]
pub(crate) enum Target<T> {
    /// A row of values for each row of outputs.
    Vectors(Buf<T>),
    /// A class for each row of outputs, or [`NO_LABEL`].
    Classes(Index),
}

/// What a loss leaves for the tangents, by record.
#[derive(Debug)]
pub(crate) struct LossTape<T> {
    kind: Loss,
    width: usize,
    /// Rows of outputs of one record.
    places: usize,
    /// Loss of every record.
    pub(crate) losses: Scalars,
    /// c of every record: the unit of δ and of all that comes back from it.
    pub(crate) units: Scalars,
    target: Target<T>,
    /// Weight of every row of outputs; absent where all are 1.
    weights: Option<Scalars>,
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

/// One row of outputs, in double precision: z, y, δ and what the rule keeps.
struct Row {
    z: Vec<f64>,
    y: Vec<f64>,
    delta: Vec<f64>,
    kept: Vec<f64>,
    weight: f64,
}

impl Row {
    fn new(width: usize) -> Self {
        let zeros = || vec![0.0; width];
        Self { z: zeros(), y: zeros(), delta: zeros(), kept: zeros(), weight: 1.0 }
    }

    /// Fills the row with that of a batch; absent where it does not count.
    fn primal<T: Real>(&mut self, tape: &LossTape<T>, outputs: View<'_, T>, row: usize) -> Option<Value> {
        self.weight = tape.weights.as_ref().map_or(1.0, |w| w.data[row]);
        if self.weight == 0.0 {
            return None;
        }
        read(outputs.0, row, &mut self.z);
        match &tape.target {
            Target::Vectors(y) => read(&y.data, row, &mut self.y),
            Target::Classes(classes) => {
                self.y.fill(0.0);
                let class = classes.data[row];
                if class != NO_LABEL {
                    self.y[class as usize] = 1.0;
                }
            }
        }
        Some(tape.kind.rule().primal(&self.z, &self.y, &mut self.delta, &mut self.kept))
    }
}

impl<T: Real> LossTape<T> {
    /// Rows of outputs of the batch.
    fn rows(&self) -> usize {
        self.units.len() * self.places
    }

    /// Outputs, labels and weights as the GPU's kernels take them.
    fn batch(&self, outputs: View<'_, T>) -> [u64; 4] {
        let (values, classes) = match &self.target {
            Target::Vectors(y) => (y.at(), 0),
            Target::Classes(classes) => (0, classes.at()),
        };
        [outputs.at(), values, classes, self.weights.as_ref().map_or(0, Scalars::at)]
    }
}

impl<T: Real> Device<T> {
    /// Losses and `δ/c` of every record. The outputs are `(records·places, width)`; `labels` says that tangents of
    /// labels will be asked for.
    pub(crate) fn loss(
        &mut self,
        (kind, width): (Loss, usize),
        outputs: View<'_, T>,
        (target, weights): (Target<T>, Option<Vec<f64>>),
        records: usize,
        labels: bool,
    ) -> (Buf<T>, LossTape<T>) {
        let least = if labels { LEAST_WITH_LABELS } else { RANGE[0] };
        let places = outputs.len() / (records * width).max(1);
        let weights = weights.map(|w| self.upload_scalars(&w));
        let (losses, units) = (self.scalars(records), self.scalars(records));
        let mut tape = LossTape { kind, width, places, losses, units, target, weights };
        let mut out = self.take(outputs.len());
        if let Some(gpu) = self.gpu {
            let batch = tape.batch(outputs);
            let (sizes, range) = ([width as u64, code(kind)], [least.to_bits(), RANGE[1].to_bits()]);
            let (m, per) = (places as u64, [tape.losses.at(), tape.units.at()]);
            if places == 1 {
                let all = [&[out.at()][..], &per, &batch, &[m], &sizes, &range].concat();
                gpu.rows::<T>("loss", records, width, &all);
                return (out, tape);
            }
            // a record of many rows is no work for one block
            let rows = records * places;
            let [losses, largest] = [self.scalars(rows), self.scalars(rows)];
            let first = [&[losses.at(), largest.at()][..], &batch, &sizes].concat();
            gpu.rows::<T>("loss_rows", rows, width, &first);
            let second = [&per[..], &[losses.at(), largest.at(), records as u64, m], &range].concat();
            gpu.each::<T>("loss_units", records, &second);
            let third = [&[out.at()][..], &batch, &[tape.units.at(), m], &sizes].concat();
            gpu.rows::<T>("loss_deltas", rows, width, &third);
            return (out, tape);
        }
        let mut row = Row::new(width);
        let mut deltas = vec![0.0; places * width];
        for (i, out) in out.data.chunks_exact_mut((places * width).max(1)).enumerate() {
            let (mut loss, mut size) = (0.0, 0.0_f64);
            for (t, delta) in deltas.chunks_exact_mut(width).enumerate() {
                match row.primal(&tape, outputs, i * places + t) {
                    None => delta.fill(0.0),
                    Some(value) => {
                        let w = row.weight;
                        loss += w * value.loss;
                        delta.iter_mut().zip(&row.delta).for_each(|(d, v)| *d = w * v);
                        size = delta.iter().fold(size.max(w * value.curvature), |a, d| a.max(d.abs()));
                    }
                }
            }
            let c = unit(size, least);
            out.iter_mut().zip(&deltas).for_each(|(o, d)| *o = T::from_f64(d / c));
            tape.losses.data[i] = loss;
            tape.units.data[i] = c;
        }
        (out, tape)
    }

    /// `δ̇/c` for tangents of the output and of the label, either absent where it is zero; the primal repeats.
    pub(crate) fn loss_tangent(
        &mut self,
        tape: &LossTape<T>,
        outputs: View<'_, T>,
        z_dot: Option<&Buf<T>>,
        y_dot: Option<&Buf<T>>,
    ) -> Buf<T> {
        let (width, rule) = (tape.width, tape.kind.rule());
        let len = z_dot.or(y_dot).map_or(outputs.len(), Buf::len);
        let mut out = self.take(len);
        if let Some(gpu) = self.gpu {
            let moved = [tape.units.at(), z_dot.map_or(0, Buf::at), y_dot.map_or(0, Buf::at)];
            let sizes = [tape.rows() as u64, tape.places as u64, width as u64, code(tape.kind)];
            let args = [&[out.at()][..], &tape.batch(outputs), &moved, &sizes].concat();
            gpu.rows::<T>("loss_tangent", len / width, width, &args);
            return out;
        }
        let (mut row, mut sum, mut dot) = (Row::new(width), vec![0.0; width], vec![0.0; width]);
        for (i, out) in out.data.chunks_exact_mut(width).enumerate() {
            let at = i % tape.rows();
            if row.primal(tape, outputs, at).is_none() {
                out.fill(T::ZERO);
                continue;
            }
            sum.fill(0.0);
            if let Some(z) = z_dot {
                read(&z.data, i, &mut dot);
                rule.output_tangent(&row.kept, &row.y, &dot, &mut sum);
            }
            if let Some(y) = y_dot {
                read(&y.data, i, &mut dot);
                rule.label_tangent(&row.kept, &dot, &mut sum);
            }
            let c = tape.units.data[at / tape.places];
            out.iter_mut().zip(&sum).for_each(|(o, s)| *o = T::from_f64(row.weight * s / c));
        }
        out
    }

    /// `Σ δ ż` of every record, the derivative of its loss.
    pub(crate) fn loss_along(&self, tape: &LossTape<T>, outputs: View<'_, T>, z_dot: &Buf<T>) -> Scalars {
        let mut sums = self.scalars(tape.units.len());
        if let Some(gpu) = self.gpu {
            let sizes = [tape.places as u64, tape.width as u64, code(tape.kind)];
            let args = [&[sums.at()][..], &tape.batch(outputs), &[z_dot.at()], &sizes].concat();
            gpu.rows::<T>("loss_along", sums.len(), tape.width, &args);
            return sums;
        }
        let mut row = Row::new(tape.width);
        for (i, z) in z_dot.data.chunks_exact(tape.width).enumerate() {
            if row.primal(tape, outputs, i).is_some() {
                let along: f64 = row.delta.iter().zip(z).map(|(d, z)| d * z.to_f64()).sum();
                sums.data[i / tape.places] += row.weight * along;
            }
        }
        sums
    }

    /// The tangent of `∂ℓ/∂y` for a tangent of the output.
    pub(crate) fn loss_label_tangent(
        &mut self,
        tape: &LossTape<T>,
        outputs: View<'_, T>,
        z_dot: &Buf<T>,
    ) -> Buf<T> {
        let width = tape.width;
        let mut out = self.zeros(z_dot.len());
        if let Some(gpu) = self.gpu {
            let sizes = [tape.rows() as u64, width as u64, code(tape.kind)];
            let args = [&[out.at()][..], &tape.batch(outputs), &[z_dot.at()], &sizes].concat();
            gpu.rows::<T>("loss_label_tangent", out.len() / width, width, &args);
            return out;
        }
        let (mut row, mut sum, mut dot) = (Row::new(width), vec![0.0; width], vec![0.0; width]);
        for (i, out) in out.data.chunks_exact_mut(width).enumerate() {
            if row.primal(tape, outputs, i % tape.rows()).is_none() {
                continue;
            }
            read(&z_dot.data, i, &mut dot);
            tape.kind.rule().label_adjoint(&row.kept, &dot, &mut sum);
            out.iter_mut().zip(&sum).for_each(|(o, s)| *o = T::from_f64(row.weight * s));
        }
        out
    }
}

/// Number of a loss among those of the GPU's kernels.
fn code(kind: Loss) -> u64 {
    match kind {
        Loss::SoftmaxCrossEntropy => 0,
        Loss::BinaryCrossEntropy => 1,
        Loss::SquaredError => 2,
    }
}

/// Row `i` in double precision.
fn read<T: Real>(rows: &[T], i: usize, out: &mut [f64]) {
    let width = out.len();
    out.iter_mut().zip(&rows[i * width..(i + 1) * width]).for_each(|(o, v)| *o = v.to_f64());
}
