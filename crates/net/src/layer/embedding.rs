//! The embedding of tokens, `x_t = E[token_t]`: what makes values of a record of whole numbers. It stands before the
//! graph, so that the record's values, and leakage, are those it returns.
//!
//! The per-sample gradient has a row for every token of the record, the sum of what comes back over the positions of that
//! token, hence `‖g‖² = Σ_{t,s: equal tokens} δ_t·δ_s` (MATHS §10). It is kept folded: the sum in the row of the token's
//! first position, zeros in the others.

use super::{Context, Direction, Gradient, Start, Tangent, Tape, Tensor};
use crate::{
    Real,
    device::{Buf, Index, Products, Scalars},
};

/// A table of `vocabulary` rows of `width` values.
#[derive(Debug, Clone)]
pub(crate) struct Embedding {
    pub(crate) vocabulary: usize,
    pub(crate) width: usize,
    /// Where the table starts among the parameters.
    pub(crate) table: usize,
    /// Whether it is trained, and so released.
    pub(crate) trained: bool,
    /// Position of its layer in the file.
    pub(crate) position: usize,
}

impl Embedding {
    pub(crate) fn tensor(&self) -> Tensor {
        Tensor {
            name: "weight",
            shape: vec![self.vocabulary, self.width],
            offset: self.table,
            start: Start::Normal(self.width),
        }
    }

    /// The values of the tokens; the tape keeps the tokens.
    pub(crate) fn forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tokens: Index,
        tape: &mut Tape<T>,
    ) -> Buf<T> {
        let mut x = cx.dev.take(tokens.len() * self.width);
        let table = cx.theta.part(self.table, self.vocabulary * self.width);
        cx.dev.gather_rows(self.width, table, &tokens, &mut x);
        tape.first_of_equals = Some(cx.dev.first_of_equals(cx.length, &tokens));
        tape.index = Some(tokens);
        x
    }

    /// Rows of equal tokens summed, without what is frozen.
    fn folded<T: Real>(&self, cx: &mut Context<'_, T>, tape: &Tape<T>, delta: &Buf<T>) -> Buf<T> {
        let mut g = cx.dev.zeros(delta.len());
        let (Some(first), Some(tokens)) = (&tape.first_of_equals, &tape.index) else { return g };
        cx.dev.fold(cx.length, self.width, first, delta.all(), &mut g);
        if let Some(mask) = cx.mask {
            let mut rows = cx.dev.take(tokens.len() * self.width);
            let mask = mask.part(self.table, self.vocabulary * self.width);
            cx.dev.gather_rows(self.width, mask, tokens, &mut rows);
            cx.dev.mul(&mut g, rows.all());
            cx.dev.put(rows);
        }
        g
    }

    /// Takes what comes back and adds `‖g‖²`.
    pub(crate) fn backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        delta: Buf<T>,
        square: &mut Scalars,
    ) {
        let g = self.folded(cx, tape, &delta);
        cx.dev.put(delta);
        let len = cx.length * self.width;
        cx.dev.add_dots(1.0, len, g.all(), g.all(), square);
        tape.gradient = Gradient::Whole(g, None);
    }

    /// Takes δ̇ and adds `g·ġ` and `‖ġ‖²`; the tangent keeps ġ.
    pub(crate) fn tangent_backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: Buf<T>,
        tangent: &mut Tangent<T>,
        sums: &mut Products,
    ) {
        let Gradient::Whole(g, _) = &tape.gradient else { return };
        let gd = self.folded(cx, tape, &delta);
        cx.dev.put(delta);
        let len = cx.length * self.width;
        cx.dev.add_dots(1.0, len, g.all(), gd.all(), &mut sums.cross);
        cx.dev.add_dots(1.0, len, gd.all(), gd.all(), &mut sums.square);
        tangent.gradient = Gradient::Whole(gd, None);
    }

    /// A record's own direction `αġ + βg` of the table, folded.
    pub(super) fn own<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
    ) -> Option<Buf<T>> {
        let (own, Gradient::Whole(g, _)) = (dir.own()?, &tape.gradient) else { return None };
        let mut v = cx.dev.take(g.len());
        cx.dev.scale_blocks(own.beta, g.all(), &mut v);
        if let Some(Gradient::Whole(gd, _)) = own.tangent.map(|t| &t.gradient) {
            cx.dev.add_scaled_blocks(own.alpha, gd.all(), &mut v);
        }
        Some(v)
    }

    /// The tangent of the values in a direction of the table.
    pub(crate) fn along<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
    ) -> Buf<T> {
        let mut x = cx.dev.zeros(cx.records * cx.length * self.width);
        let (Some(first), Some(tokens)) = (&tape.first_of_equals, &tape.index) else { return x };
        if let Some(own) = self.own(cx, tape, dir) {
            cx.dev.spread(cx.length, self.width, first, own.all(), &mut x);
            cx.dev.put(own);
        }
        if let Some(shared) = dir.shared() {
            let mut rows = cx.dev.take(x.len());
            let table = shared.array.part(self.table, self.vocabulary * self.width);
            cx.dev.gather_rows(self.width, table, tokens, &mut rows);
            cx.dev.add_scaled_blocks(shared.weights, rows.all(), &mut x);
            cx.dev.put(rows);
        }
        x
    }

    /// Adds `Σᵢ wᵢ gᵢ`.
    pub(crate) fn add_weighted<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        let (Gradient::Whole(g, _), Some(tokens)) = (&tape.gradient, &tape.index) else { return };
        cx.dev.add_weighted_rows(weights, tokens, g.all(), out, self.table);
    }

    /// `Σᵢ wᵢ ġᵢ` of a tangent pass of one probe.
    pub(crate) fn add_weighted_tangent<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &Tangent<T>,
        weights: &Scalars,
        out: &mut Buf<T>,
    ) {
        let (Gradient::Whole(g, _), Some(tokens)) = (&tangent.gradient, &tape.index) else { return };
        cx.dev.add_weighted_rows(weights, tokens, g.all(), out, self.table);
    }

    /// Writes one record's gradient, or its tangent, into an array of all parameters: for tests.
    #[cfg(test)]
    pub(crate) fn materialise<T: Real>(
        &self,
        dev: &crate::device::Device<T>,
        tape: &Tape<T>,
        gradient: &Gradient<T>,
        length: usize,
        [record, row]: [usize; 2],
        out: &mut [f64],
    ) {
        let (Gradient::Whole(g, _), Some(tokens)) = (gradient, &tape.index) else { return };
        let tokens = &dev.download_index(tokens)[record * length..][..length];
        let Ok(g) = dev.download(g) else { return };
        let g = &g[row * length * self.width..];
        for (t, &token) in tokens.iter().enumerate() {
            for j in 0..self.width {
                out[self.table + token as usize * self.width + j] += g[t * self.width + j].to_f64();
            }
        }
    }
}
