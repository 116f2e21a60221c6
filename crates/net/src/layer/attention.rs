//! Attention of several heads: `S = QKᵀ/√d`, `A = softmax(S)`, `O = AV` for every head, positions seeing earlier ones
//! alone where it is causal. Query heads come in groups that share keys and values; their rows lie one after another, so
//! that a group is one matrix product. Rotary positions turn Q and K first, which is linear.
//!
//! With `c = 1/√d` and what comes back, `b = dO`:
//!
//! ```text
//! backward   dV = Aᵀb,  dA = b Vᵀ,  dS = c A∘(dA − Σ A∘dA),  dQ = dS K,  dK = dSᵀ Q
//! tangent    Ṡ = c(Q̇Kᵀ + QK̇ᵀ),  Ȧ = A∘(Ṡ − Σ A∘Ṡ),  Ȯ = ȦV + AV̇
//! of back    dV̇ = Ȧᵀb + Aᵀḃ,  dȦ = ḃVᵀ + b V̇ᵀ,  dQ̇ = dṠ K + dS K̇,  dK̇ = dṠᵀ Q + dSᵀ Q̇,
//!            dṠ = c(A∘(dȦ − Σ A∘dȦ) + Ȧ∘(dA − Σ A∘dA) − A Σ Ȧ∘dA)
//! ```

use super::{Context, Join, Tangent, Tape};
use crate::{
    Real,
    device::{Buf, Gemm},
    spec::Rotary,
};

/// Attention of queries `(T, heads·width)` to keys and values `(T, shared·width)`. The tape keeps Q, K, V, A in the order
/// of the heads, then b and dS; a tangent keeps Q̇, K̇, V̇, Ȧ.
#[derive(Debug)]
pub(crate) struct Attention {
    pub(crate) heads: usize,
    /// Heads of keys and values: a divisor of `heads`.
    pub(crate) shared: usize,
    pub(crate) width: usize,
    pub(crate) causal: bool,
    pub(crate) rotary: Option<Rotary>,
}

const Q: usize = 0;
const K: usize = 1;
const V: usize = 2;
const A: usize = 3;
const BACK: usize = 4;
const SCORES: usize = 5;

impl Attention {
    /// Rows of a group of query heads.
    fn rows(&self, length: usize) -> usize {
        self.heads / self.shared * length
    }

    fn scale(&self) -> f64 {
        1.0 / (self.width as f64).sqrt()
    }

    /// `(T, heads, width)` → `(heads, T, width)`.
    fn by_head<T: Real>(&self, cx: &mut Context<'_, T>, x: Buf<T>, heads: usize) -> Buf<T> {
        let mut out = cx.dev.take(x.len());
        cx.dev.regroup(cx.length, heads, self.width, x.all(), &mut out);
        cx.dev.put(x);
        out
    }

    fn by_position<T: Real>(&self, cx: &mut Context<'_, T>, x: Buf<T>, heads: usize) -> Buf<T> {
        let mut out = cx.dev.take(x.len());
        cx.dev.regroup(heads, cx.length, self.width, x.all(), &mut out);
        cx.dev.put(x);
        out
    }

    /// Queries, keys or values on their way in.
    fn enter<T: Real>(&self, cx: &mut Context<'_, T>, x: Buf<T>, which: usize) -> Buf<T> {
        let mut x = self.by_head(cx, x, if which == Q { self.heads } else { self.shared });
        if let (Some(rotary), Q | K) = (self.rotary, which) {
            cx.dev.rotate(rotary, cx.length, self.width, false, &mut x);
        }
        x
    }

    /// What comes back at queries, keys or values.
    fn leave<T: Real>(&self, cx: &mut Context<'_, T>, mut x: Buf<T>, which: usize) -> Buf<T> {
        if let (Some(rotary), Q | K) = (self.rotary, which) {
            cx.dev.rotate(rotary, cx.length, self.width, true, &mut x);
        }
        self.by_position(cx, x, if which == Q { self.heads } else { self.shared })
    }

    /// `x Kᵀ` or the like: rows of queries against rows of keys.
    fn scores(&self, length: usize) -> Gemm {
        Gemm::nt(self.rows(length), length, self.width).of_pass()
    }

    /// `A V` or the like: scores times rows of values.
    fn mixed(&self, length: usize) -> Gemm {
        Gemm::nn(self.rows(length), self.width, length).of_pass()
    }

    /// `Aᵀ b` or the like: scores transposed times rows of queries, summed over the heads of a group.
    fn gathered(&self, length: usize) -> Gemm {
        Gemm::tn(length, self.width, self.rows(length)).of_pass()
    }
}

impl<T: Real> Join<T> for Attention {
    fn footprint(&self, length: usize) -> usize {
        length * self.width * (3 * self.heads + 2 * self.shared) + 2 * self.heads * length * length
    }

    fn forward(&self, cx: &mut Context<'_, T>, inputs: Vec<Buf<T>>, tape: &mut Tape<T>) -> Buf<T> {
        let t = cx.length;
        tape.kept = inputs.into_iter().enumerate().map(|(i, x)| self.enter(cx, x, i)).collect();
        let mut a = cx.dev.take(cx.records * self.heads * t * t);
        cx.dev.gemm_batched(self.scores(t), tape.kept[Q].all(), tape.kept[K].all(), &mut a);
        cx.dev.scale(&mut a, self.scale());
        cx.dev.softmax_rows(t, self.causal, &mut a);
        let mut o = cx.dev.take(tape.kept[Q].len());
        cx.dev.gemm_batched(self.mixed(t), a.all(), tape.kept[V].all(), &mut o);
        tape.kept.push(a);
        self.by_position(cx, o, self.heads)
    }

    fn backward(&self, cx: &mut Context<'_, T>, tape: &mut Tape<T>, delta: Buf<T>) -> Vec<Buf<T>> {
        let t = cx.length;
        let b = self.by_head(cx, delta, self.heads);
        let [q, k, v, a] = [Q, K, V, A].map(|i| tape.kept[i].all());
        let mut ds = cx.dev.take(a.len());
        cx.dev.gemm_batched(self.scores(t), b.all(), v, &mut ds);
        cx.dev.softmax_tangent(t, a, &mut ds);
        cx.dev.scale(&mut ds, self.scale());
        let (mut dq, mut dk, mut dv) = (cx.dev.take(q.len()), cx.dev.take(k.len()), cx.dev.take(v.len()));
        cx.dev.gemm_batched(self.mixed(t), ds.all(), k, &mut dq);
        cx.dev.gemm_batched(self.gathered(t), ds.all(), q, &mut dk);
        cx.dev.gemm_batched(self.gathered(t), a, b.all(), &mut dv);
        tape.kept.extend([b, ds]);
        [dq, dk, dv].into_iter().enumerate().map(|(i, d)| self.leave(cx, d, i)).collect()
    }

    fn tangent_forward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        inputs: Vec<Option<Buf<T>>>,
        tangent: &mut Tangent<T>,
    ) -> Option<Buf<T>> {
        let t = cx.length;
        let moved: Vec<Option<Buf<T>>> =
            inputs.into_iter().enumerate().map(|(i, x)| x.map(|x| self.enter(cx, x, i))).collect();
        let [q, k, v, a] = [Q, K, V, A].map(|i| tape.kept[i].all());
        // as many rows as the tangents have: probes times records
        let probes = moved.iter().zip([q, k, v]).find_map(|(m, p)| Some(m.as_ref()?.len() / p.len()))?;
        let ad = (moved[Q].is_some() || moved[K].is_some()).then(|| {
            let mut s = cx.dev.zeros(probes * a.len());
            if let Some(qd) = &moved[Q] {
                cx.dev.gemm_batched(self.scores(t).adding(), qd.all(), k, &mut s);
            }
            if let Some(kd) = &moved[K] {
                cx.dev.gemm_batched(self.scores(t).adding(), q, kd.all(), &mut s);
            }
            cx.dev.scale(&mut s, self.scale());
            cx.dev.softmax_tangent(t, a, &mut s);
            s
        });
        let mut o = cx.dev.zeros(probes * q.len());
        if let Some(ad) = &ad {
            cx.dev.gemm_batched(self.mixed(t).adding(), ad.all(), v, &mut o);
        }
        if let Some(vd) = &moved[V] {
            cx.dev.gemm_batched(self.mixed(t).adding(), a, vd.all(), &mut o);
        }
        tangent.kept = moved;
        tangent.kept.push(ad);
        Some(self.by_position(cx, o, self.heads))
    }

    fn tangent_backward(
        &self,
        cx: &mut Context<'_, T>,
        tape: &Tape<T>,
        delta: Buf<T>,
        tangent: &mut Tangent<T>,
    ) -> Vec<Buf<T>> {
        let t = cx.length;
        let bd = self.by_head(cx, delta, self.heads);
        let [q, k, v, a] = [Q, K, V, A].map(|i| tape.kept[i].all());
        // before the first trained layer nothing moves, and nothing came back
        let came = |i: usize| tape.kept.get(i);
        let moved = |i: usize| tangent.kept.get(i).and_then(Option::as_ref);
        let probes = bd.len() / q.len().max(1);

        let mut dv = cx.dev.take(probes * v.len());
        cx.dev.gemm_batched(self.gathered(t), a, bd.all(), &mut dv);
        let mut s = cx.dev.take(probes * a.len());
        cx.dev.gemm_batched(self.scores(t), bd.all(), v, &mut s);
        if let (Some(vd), Some(b)) = (moved(V), came(BACK)) {
            cx.dev.gemm_batched(self.scores(t).adding(), b.all(), vd.all(), &mut s);
        }
        cx.dev.softmax_tangent(t, a, &mut s);
        if let (Some(ad), Some(b)) = (moved(A), came(BACK)) {
            cx.dev.gemm_batched(self.gathered(t).adding(), ad.all(), b.all(), &mut dv);
            let mut da = cx.dev.take(a.len());
            cx.dev.gemm_batched(self.scores(t), b.all(), v, &mut da);
            cx.dev.softmax_second(t, a, ad.all(), da.all(), &mut s);
            cx.dev.put(da);
        }
        cx.dev.scale(&mut s, self.scale());
        let (mut dq, mut dk) = (cx.dev.take(probes * q.len()), cx.dev.take(probes * k.len()));
        cx.dev.gemm_batched(self.mixed(t), s.all(), k, &mut dq);
        cx.dev.gemm_batched(self.gathered(t), s.all(), q, &mut dk);
        if let (Some(kd), Some(ds)) = (moved(K), came(SCORES)) {
            cx.dev.gemm_batched(self.mixed(t).adding(), ds.all(), kd.all(), &mut dq);
        }
        if let (Some(qd), Some(ds)) = (moved(Q), came(SCORES)) {
            cx.dev.gemm_batched(self.gathered(t).adding(), ds.all(), qd.all(), &mut dk);
        }
        cx.dev.put(s);
        cx.dev.put(bd);
        [dq, dk, dv].into_iter().enumerate().map(|(i, d)| self.leave(cx, d, i)).collect()
    }
}
