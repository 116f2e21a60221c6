//! Loops over the columns of one record, with the widest vectors the machine has (chosen at run time by `pulp`).

use pulp::{Arch, Simd, WithSimd};

/// Runs `op` compiled for this machine.
pub(crate) fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
    Arch::new().dispatch(op)
}

/// `[v·v, v·u, u·u, v·Gv, v·Gu, u·Gu]`.
#[inline(always)]
pub(crate) fn moments<S: Simd>(simd: S, g: &[f64], v: &[f64], u: &[f64]) -> [f64; 6] {
    let mut acc = [simd.splat_f64s(0.0); 6];
    fold(
        simd,
        g,
        v,
        u,
        #[inline(always)]
        |g, v, u| {
            let (gv, gu) = (simd.mul_f64s(g, v), simd.mul_f64s(g, u));
            acc[0] = simd.mul_add_e_f64s(v, v, acc[0]);
            acc[1] = simd.mul_add_e_f64s(v, u, acc[1]);
            acc[2] = simd.mul_add_e_f64s(u, u, acc[2]);
            acc[3] = simd.mul_add_e_f64s(v, gv, acc[3]);
            acc[4] = simd.mul_add_e_f64s(v, gu, acc[4]);
            acc[5] = simd.mul_add_e_f64s(u, gu, acc[5]);
        },
    );
    reduced(simd, acc)
}

/// `Σ[v², vu, u²]/e`, the same over `e²` and over `e³`, where `e = μ − r²g`.
#[inline(always)]
pub(crate) fn pole_sums<S: Simd>(simd: S, g: &[f64], v: &[f64], u: &[f64], r2: f64, mu: f64) -> [f64; 9] {
    let mut acc = [simd.splat_f64s(0.0); 9];
    let (one, minus_r2, mu) = (simd.splat_f64s(1.0), simd.splat_f64s(-r2), simd.splat_f64s(mu));
    fold(
        simd,
        g,
        v,
        u,
        #[inline(always)]
        |g, v, u| {
            let e = simd.div_f64s(one, simd.mul_add_e_f64s(minus_r2, g, mu));
            let (p, q) = (simd.mul_f64s(v, e), simd.mul_f64s(u, e));
            let (pe, qe) = (simd.mul_f64s(p, e), simd.mul_f64s(q, e));
            acc[0] = simd.mul_add_e_f64s(v, p, acc[0]);
            acc[1] = simd.mul_add_e_f64s(u, p, acc[1]);
            acc[2] = simd.mul_add_e_f64s(u, q, acc[2]);
            acc[3] = simd.mul_add_e_f64s(p, p, acc[3]);
            acc[4] = simd.mul_add_e_f64s(p, q, acc[4]);
            acc[5] = simd.mul_add_e_f64s(q, q, acc[5]);
            acc[6] = simd.mul_add_e_f64s(p, pe, acc[6]);
            acc[7] = simd.mul_add_e_f64s(q, pe, acc[7]);
            acc[8] = simd.mul_add_e_f64s(q, qe, acc[8]);
        },
    );
    reduced(simd, acc)
}

// Vector instructions are inlined only into functions that are compiled for them, so everything between `dispatch` and
// an instruction must be `#[inline(always)]`, closures included; one that is not turns each instruction into a call.

/// The sums over lanes.
#[inline(always)]
fn reduced<S: Simd, const N: usize>(simd: S, acc: [S::f64s; N]) -> [f64; N] {
    let mut out = [0.0; N];
    for k in 0..N {
        out[k] = simd.reduce_sum_f64s(acc[k]);
    }
    out
}

/// Runs `step` over three slices of one length, the last vector filled up with zeros.
#[inline(always)]
fn fold<S: Simd>(simd: S, g: &[f64], v: &[f64], u: &[f64], mut step: impl FnMut(S::f64s, S::f64s, S::f64s)) {
    let ((g, g_rest), (v, v_rest), (u, u_rest)) =
        (S::as_simd_f64s(g), S::as_simd_f64s(v), S::as_simd_f64s(u));
    for ((g, v), u) in g.iter().zip(v).zip(u) {
        step(*g, *v, *u);
    }
    if !g_rest.is_empty() {
        step(simd.partial_load_f64s(g_rest), simd.partial_load_f64s(v_rest), simd.partial_load_f64s(u_rest));
    }
}

/// `x·w` and `x·x` of every row of a row-major table.
pub(crate) struct RowProducts<'a> {
    /// Rows of the length of `w`.
    pub(crate) x: &'a [f64],
    pub(crate) w: &'a [f64],
    pub(crate) dots: &'a mut Vec<f64>,
    pub(crate) squares: &'a mut Vec<f64>,
}

impl WithSimd for RowProducts<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.dots.clear();
        self.squares.clear();
        for x in self.x.chunks_exact(self.w.len().max(1)) {
            let (mut dot, mut square) = (simd.splat_f64s(0.0), simd.splat_f64s(0.0));
            fold(
                simd,
                x,
                self.w,
                x,
                #[inline(always)]
                |x, w, _| {
                    dot = simd.mul_add_e_f64s(x, w, dot);
                    square = simd.mul_add_e_f64s(x, x, square);
                },
            );
            self.dots.push(simd.reduce_sum_f64s(dot));
            self.squares.push(simd.reduce_sum_f64s(square));
        }
    }
}

/// `scale·√(a²w²‖h‖² + 2ar w t + r²γ)`, the norm of `a w h + r b`, of many directions of many records.
pub(crate) struct Norms<'a> {
    /// `scale`, `a`, `r` and `‖h‖²` of each record.
    pub(crate) scale: &'a [f64],
    pub(crate) a: &'a [f64],
    pub(crate) r: &'a [f64],
    pub(crate) h2: &'a [f64],
    /// w and γ of each direction.
    pub(crate) w: &'a [f64],
    pub(crate) gamma: &'a [f64],
    /// t, records × `stride`, the directions first.
    pub(crate) t: &'a [f64],
    pub(crate) stride: usize,
    /// Share of the first and last part below which a sum has cancelled.
    pub(crate) cancelled: f64,
    /// Records × directions.
    pub(crate) out: &'a mut [f64],
    /// Records of which a direction has cancelled.
    pub(crate) check: &'a mut Vec<usize>,
}

impl WithSimd for Norms<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let count = self.w.len();
        if count == 0 {
            return;
        }
        let (w, w_rest) = S::as_simd_f64s(self.w);
        let (gamma, gamma_rest) = S::as_simd_f64s(self.gamma);
        for (i, out) in self.out.chunks_exact_mut(count).enumerate() {
            let (t, t_rest) = S::as_simd_f64s(&self.t[i * self.stride..][..count]);
            let (out, out_rest) = S::as_mut_simd_f64s(out);
            let a = simd.splat_f64s(self.a[i]);
            let (h2, r2) = (simd.splat_f64s(self.h2[i]), simd.splat_f64s(self.r[i] * self.r[i]));
            let (twice_r, share) = (simd.splat_f64s(2.0 * self.r[i]), simd.splat_f64s(-self.cancelled));
            let scale = simd.splat_f64s(self.scale[i]);
            let (mut least, zero) = (simd.splat_f64s(f64::INFINITY), simd.splat_f64s(0.0));
            for (((out, w), gamma), t) in out.iter_mut().zip(w).zip(gamma).zip(t) {
                let aw = simd.mul_f64s(a, *w);
                let parts = simd.mul_add_e_f64s(simd.mul_f64s(aw, aw), h2, simd.mul_f64s(r2, *gamma));
                let square = simd.mul_add_e_f64s(simd.mul_f64s(aw, twice_r), *t, parts);
                least = simd.min_f64s(least, simd.mul_add_e_f64s(share, parts, square));
                *out = simd.mul_f64s(scale, simd.sqrt_f64s(simd.max_f64s(square, zero)));
            }
            let mut cancelled = simd.reduce_min_f64s(least) <= 0.0;
            for (((out, w), gamma), t) in out_rest.iter_mut().zip(w_rest).zip(gamma_rest).zip(t_rest) {
                let aw = self.a[i] * w;
                let parts = aw * aw * self.h2[i] + self.r[i] * self.r[i] * gamma;
                let square = parts + 2.0 * aw * self.r[i] * t;
                cancelled |= square <= self.cancelled * parts;
                *out = self.scale[i] * square.max(0.0).sqrt();
            }
            if cancelled {
                self.check.push(i);
            }
        }
    }
}
