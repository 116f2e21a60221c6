//! An output layer with the table of the embedding: `z_t = E h_t`. The two gradients add up in one array, so norms and
//! products have cross terms, and a direction of the table moves both layers (MATHS §10).
//!
//! With `C[t,s] = δ_s[token_t]` of the output layer, row t of `X = C H` is the output layer's gradient in the row of
//! token t, so that `g_E·g_O = Σ_t fold(δ)_t·X_t`.

use super::{Context, Direction, Embedding, Gradient, Tangent, Tape};
use crate::{
    Real,
    device::{Buf, Gemm, Index, Products, Scalars},
};

/// The embedding's half of a tie: what it keeps beside its own gradient.
impl Embedding {
    /// `Σ` over the output layer's pair in the rows of the record's tokens: `C H` for its δ and inputs, or 0.
    fn rows_of_output<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tokens: &Index,
        pairs: &[(&Buf<T>, &Buf<T>)],
        len: usize,
    ) -> Buf<T> {
        let (t, v, w) = (cx.length, self.vocabulary, self.width);
        let mut x = cx.dev.zeros(len);
        for (delta, h) in pairs {
            let mut c = cx.dev.take(delta.len() / v * t);
            cx.dev.gather_columns(t, v, tokens, delta.all(), &mut c);
            cx.dev.gemm_batched(Gemm::nn(t, w, t).adding(), c.all(), h.all(), &mut x);
            cx.dev.put(c);
        }
        x
    }

    /// Adds `2 g_E·g_O`. After both layers' own squares; keeps X.
    pub(crate) fn add_tied_square<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &mut Tape<T>,
        output: &Tape<T>,
        square: &mut Scalars,
    ) {
        let (Gradient::Whole(g, _), Some(tokens)) = (&tape.gradient, &tape.index) else { return };
        let (Some(h), Some(d)) = (&output.input, &output.delta) else { return };
        let x = self.rows_of_output(cx, tokens, &[(d, h)], g.len());
        let len = cx.length * self.width;
        cx.dev.add_dots(2.0, len, g.all(), x.all(), square);
        tape.first = Some(x);
    }

    /// Adds `g_E·ġ_O + g_O·ġ_E` and `2 ġ_E·ġ_O`. After both layers' own products; keeps Ẋ.
    pub(crate) fn add_tied_products<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        tangent: &mut Tangent<T>,
        (output, moved): (&Tape<T>, &Tangent<T>),
        sums: &mut Products,
    ) {
        let (Gradient::Whole(g, _), Gradient::Whole(gd, _)) = (&tape.gradient, &tangent.gradient) else {
            return;
        };
        let (Some(tokens), Some(x)) = (&tape.index, &tape.first) else { return };
        let (Some(h), Some(d), Some(dd)) = (&output.input, &output.delta, &moved.delta) else { return };
        let hd = moved.input.as_ref().map(|hd| (d, hd));
        let pairs: Vec<_> = std::iter::once((dd, h)).chain(hd).collect();
        let xd = self.rows_of_output(cx, tokens, &pairs, gd.len());
        let len = cx.length * self.width;
        cx.dev.add_dots(1.0, len, g.all(), xd.all(), &mut sums.cross);
        cx.dev.add_dots(1.0, len, x.all(), gd.all(), &mut sums.cross);
        cx.dev.add_dots(2.0, len, gd.all(), xd.all(), &mut sums.square);
        tangent.scale = Some(xd);
    }

    /// Adds to ẋ what the output layer's gradient moves in the table: `αẊ + βX`.
    pub(crate) fn along_output<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
        x_dot: &mut Buf<T>,
    ) {
        let (Some(own), Some(x)) = (dir.own(), &tape.first) else { return };
        cx.dev.add_scaled_blocks(own.beta, x.all(), x_dot);
        if let Some(xd) = own.tangent.and_then(|t| t.scale.as_ref()) {
            cx.dev.add_scaled_blocks(own.alpha, xd.all(), x_dot);
        }
    }

    /// Adds to the output layer's ż what the embedding's gradient moves in the table: `Σ_s (αġ_s + βg_s)·h_t` in the
    /// column of token s.
    pub(crate) fn tied_forward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
        output: &Tape<T>,
        z: &mut Buf<T>,
    ) {
        let (Some(tokens), Some(h)) = (&tape.index, &output.input) else { return };
        let Some(e) = self.own(cx, tape, dir) else { return };
        let t = cx.length;
        let mut p = cx.dev.take(cx.records * t * t);
        cx.dev.gemm_batched(Gemm::nt(t, t, self.width), h.all(), e.all(), &mut p);
        cx.dev.add_columns(t, self.vocabulary, tokens, p.all(), z);
        cx.dev.put(p);
        cx.dev.put(e);
    }

    /// Adds to what comes back at the output layer's input: `Σ_s δ_t[token_s](αġ_s + βg_s)`.
    pub(crate) fn tied_backward<T: Real>(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        dir: &Direction<'_, T>,
        output: &Tape<T>,
        back: &mut Buf<T>,
    ) {
        let (Some(tokens), Some(d)) = (&tape.index, &output.delta) else { return };
        let Some(e) = self.own(cx, tape, dir) else { return };
        let t = cx.length;
        let mut c = cx.dev.take(cx.records * t * t);
        cx.dev.gather_columns(t, self.vocabulary, tokens, d.all(), &mut c);
        cx.dev.gemm_batched(Gemm::tn(t, self.width, t).adding(), c.all(), e.all(), back);
        cx.dev.put(c);
        cx.dev.put(e);
    }
}
