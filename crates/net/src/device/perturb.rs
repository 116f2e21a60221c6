//! Numbers and arrays of a constant that is added to gradients: what its objective needs of every record, and its descent.

use super::{Buf, Device, Index, Scalars};
use crate::{Clip, Real};

/// What is known of records whose gradients g are shifted by the same c, by record.
#[derive(Debug)]
pub(crate) struct Shifted<'a> {
    /// `‖g‖²`.
    pub(crate) square: &'a Scalars,
    /// `g·c`.
    pub(crate) along: &'a Scalars,
    /// `‖c‖²`: one number.
    pub(crate) shift: &'a Scalars,
    /// `T = ‖J_g‖²`.
    pub(crate) traces: &'a Scalars,
    /// `‖w‖²`, `w = J_gᵀ(g + c)`, and the unit that w is in.
    pub(crate) pulled: (&'a Scalars, &'a Scalars),
}

/// The relative size of every record's Jacobian, `T/n² + r‖w‖²`, and what its derivative in c is made of.
#[derive(Debug)]
pub(crate) struct RelativeSlopes {
    pub(crate) relative: Scalars,
    /// `−2T/n⁴ + r'‖w‖²/n`.
    pub(crate) psi: Scalars,
    /// `2r`, in the unit of w.
    pub(crate) bend: Scalars,
}

/// By how much of their size lengths of sums are rounded up: where g nearly cancels c, products of rounded numbers must not make
/// a long sum look short.
pub(crate) fn rounding<T: Real>() -> f64 {
    16.0 * if T::BYTES == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

impl<T: Real> Device<T> {
    /// Of records under a clip. A record whose length is not finite has no numbers.
    pub(crate) fn relative_slopes(&self, clip: Clip, of: &Shifted<'_>) -> RelativeSlopes {
        let (n, (pulled, units)) = (of.square.len(), of.pulled);
        if let Some(gpu) = self.gpu {
            let [relative, psi, bend] = std::array::from_fn(|_| self.unset(n));
            let kind: u64 = match clip {
                Clip::None => 0,
                Clip::Hard { .. } => 1,
                Clip::Gelu { .. } => 2,
            };
            let to = [relative.at(), psi.at(), bend.at()];
            let from = [of.square, of.along, of.shift, of.traces, pulled, units].map(Scalars::at);
            let sizes = [n as u64, kind, clip.unit().to_bits(), rounding::<T>().to_bits()];
            gpu.each::<T>("relative_slopes", n, &[&to[..], &from, &sizes].concat());
            return RelativeSlopes { relative, psi, bend };
        }
        let mut out = [vec![0.0; n], vec![0.0; n], vec![0.0; n]];
        for i in 0..n {
            let sizes = of.square.data[i].max(0.0) + of.shift.data[0];
            let length = ((sizes + 2.0 * of.along.data[i]).max(0.0) + rounding::<T>() * sizes).sqrt();
            let (trace, square) = (of.traces.data[i], pulled.data[i]);
            let of_record = if length == 0.0 {
                [0.0; 3]
            } else if !length.is_finite() {
                [f64::NAN; 3]
            } else {
                let (r, r1) = clip.relative_bend(length);
                let relative = trace / (length * length) + r * square;
                // a trace from few probes may be below the part of it along h
                let relative = if relative < 0.0 { 0.0 } else { relative };
                [relative, -2.0 * trace / length.powi(4) + r1 * square / length, 2.0 * r * units.data[i]]
            };
            out.iter_mut().zip(of_record).for_each(|(out, v)| out[i] = v);
        }
        let [relative, psi, bend] = out.map(|data| Scalars { data, far: None });
        RelativeSlopes { relative, psi, bend }
    }

    /// `out[index[j]] ← x[j]`.
    pub(crate) fn set_places(&self, index: &Index, x: &Buf<T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let n = index.len();
            return gpu.each::<T>("set_places", n, &[out.at(), x.at(), index.at(), n as u64]);
        }
        index.data.iter().zip(&x.data).for_each(|(&i, &x)| out.data[i as usize] = x);
    }

    /// `2c + share (sum + Σψ c)` at given places: the derivative of the objective in c.
    pub(crate) fn descent(
        &mut self,
        index: &Index,
        (sum, c): (&Buf<T>, &Buf<T>),
        (psi, share): (&Scalars, f64),
    ) -> Buf<T> {
        let mut out = self.take(index.len());
        if let Some(gpu) = self.gpu {
            let n = index.len();
            let from = [sum.at(), c.at(), psi.at(), index.at()];
            let sizes = [n as u64, psi.len() as u64, share.to_bits()];
            gpu.each::<T>("descent", n, &[&[out.at()][..], &from, &sizes].concat());
            return out;
        }
        let total: f64 = psi.data.iter().sum();
        for (out, &i) in out.data.iter_mut().zip(&index.data) {
            let (sum, c) = (sum.data[i as usize].to_f64(), c.data[i as usize].to_f64());
            *out = T::from_f64(2.0 * c + share * (sum + total * c));
        }
        out
    }
}
