//! Dropout: in a training step every value is left out with probability p, and the others are divided by 1 − p; in
//! evaluation and in audits nothing happens. Which values are left out is a function of seed, step, record and layer,
//! so that a step can be made again, and a record's measure in a step is that of the gradient it contributed.

use super::{Context, Flow, Layer, Moving, Tape, Width};
use crate::{
    Real,
    device::Buf,
    random::{Generator, Purpose},
};

/// Dropout over so many values per record.
#[derive(Debug)]
pub(crate) struct Dropout {
    /// p.
    pub(crate) rate: f64,
    pub(crate) width: Width,
    /// Position of the layer in the file: layers draw for themselves.
    pub(crate) position: usize,
}

/// The draws of one training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draws {
    pub(crate) seed: u64,
    pub(crate) step: u64,
}

impl Dropout {
    fn factors<T: Real>(&self, draws: Draws, records: &[usize], width: usize) -> Vec<T> {
        let kept = T::from_f64(1.0 / (1.0 - self.rate));
        let mut factors = Vec::with_capacity(records.len() * width);
        for &record in records {
            // a stream for each step, record and layer: odd multipliers keep them apart
            let name = (draws.step.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                ^ (record as u64).wrapping_mul(0xd1b5_4a32_d192_ed03)
                ^ (self.position as u64).wrapping_mul(0xa24b_aed4_963e_e407);
            let mut rng = Generator::new(draws.seed, Purpose::Dropout, name);
            factors.extend((0..width).map(|_| if rng.uniform() < self.rate { T::ZERO } else { kept }));
        }
        factors
    }

    fn apply<T: Real>(cx: &mut Context<'_, T>, tape: &Tape<T>, mut x: Buf<T>) -> Buf<T> {
        if let Some(factors) = &tape.first {
            cx.dev.mul(&mut x, factors.all());
        }
        x
    }
}

impl<T: Real> Layer<T> for Dropout {
    fn draws(&self) -> bool {
        true
    }

    fn footprint(&self, length: usize) -> usize {
        self.width.at(length)
    }

    fn forward(&self, cx: &mut Context<'_, T>, x: Buf<T>, tape: &mut Tape<T>) -> Buf<T> {
        if let Some((draws, records)) = cx.dropout {
            let factors: Vec<T> = self.factors(draws, records, self.width.at(cx.length));
            tape.first = Some(cx.dev.upload(&factors));
        }
        Self::apply(cx, tape, x)
    }

    fn backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        _: bool,
    ) -> Option<Buf<T>> {
        Some(Self::apply(cx, tape, delta))
    }

    fn tangent_forward(&self, cx: &mut Context<'_, T>, at: Moving<'_, T>, x: Flow<T>) -> Flow<T> {
        let Moving { tape, .. } = at;
        x.map(|x| Self::apply(cx, tape, x))
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        at: Moving<'_, T>,
        delta: Buf<T>,
        _: bool,
    ) -> Flow<T> {
        let Moving { tape, .. } = at;
        Some(Self::apply(cx, tape, delta))
    }
}
