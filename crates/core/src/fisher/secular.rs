//! Largest eigenvalue of *diagonal plus rank two*, `r²·diag(g) + α vvᵀ + β(vuᵀ + uvᵀ)`, in O(d) an evaluation.
//!
//! With `v' = √α v`, `u' = (β/√α) u` the rank-two part is `[v', u'] C [v', u']ᵀ`, `C = [[1, 1], [1, 0]]`, of inertia
//! (1, 1). Write `K(μ) = Σⱼ [v'ⱼ, u'ⱼ]ᵀ[v'ⱼ, u'ⱼ]/(μ − r²gⱼ)` and `S(μ) = C⁻¹ − K(μ)`. Sylvester's law counts
//!
//! ```text
//! #{eigenvalues above μ} = #{j : r²gⱼ > μ} + #{negative eigenvalues of S(μ)} − 1
//! ```
//!
//! so the root can always be bracketed: by the second largest pole from below and `r²g₁ + max(0, λ₁(rank two))` from
//! above. It may lie close to the largest pole, on either side, where `S` blows up and `det S` loses its digits, so
//! that pole is taken out: with `z` its `[v'₁, u'₁]`, `e = μ − r²g₁` and `Ŝ` the sum without it,
//!
//! ```text
//! f(μ) = e · det S = e · det Ŝ − zᵀ adj(Ŝ) z
//! ```
//!
//! has no pole there and the same roots. Its derivatives follow from `Ŝ' = Σ zzᵀ/(μ − r²g)²` and
//! `Ŝ'' = −2Σ zzᵀ/(μ − r²g)³`, which come with the same division (det and adj of 2 × 2 matrices are quadratic and linear).
//! Halley's step on f converges cubically: two evaluations are usual. Bisection on the count is the fallback that
//! never fails.

use crate::vector::{dispatch, moments, pole_sums};
use pulp::{Simd, WithSimd};

/// One problem: `r²·diag(g) + α vvᵀ + β(vuᵀ + uvᵀ)` with the poles `g` shared by all.
#[derive(Clone, Copy)]
pub(super) struct Problem<'a> {
    pub(super) r2: f64,
    pub(super) alpha: f64,
    pub(super) beta: f64,
    pub(super) v: &'a [f64],
    pub(super) u: &'a [f64],
}

/// Solves problems `0..n` over poles `g` (largest first, none negative).
pub(super) fn top_eigenvalues<'a>(
    g: &[f64],
    n: usize,
    problem: impl Fn(usize) -> Problem<'a>,
    put: impl FnMut(usize, f64),
) {
    dispatch(Batch { g, n, problem, put });
}

struct Batch<'g, F, P> {
    g: &'g [f64],
    n: usize,
    problem: F,
    put: P,
}

impl<'a, F: Fn(usize) -> Problem<'a>, P: FnMut(usize, f64)> WithSimd for Batch<'_, F, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for i in 0..self.n {
            (self.put)(i, top_eigenvalue(simd, self.g, (self.problem)(i)));
        }
    }
}

/// Evaluations after which the bracket is bisected to the end instead.
const MAX_EVALUATIONS: usize = 24;

#[inline(always)]
fn top_eigenvalue<S: Simd>(simd: S, g: &[f64], problem: Problem<'_>) -> f64 {
    let Problem { r2, alpha, beta, v, u } = problem;
    let moments = moments(simd, g, v, u);
    let [vv, vu, uu, ..] = moments;
    if r2 == 0.0 {
        // β = ar = 0 as well: rank one.
        return alpha * vv;
    }
    if g.len() <= 1 {
        return g.first().map_or(0.0, |g1| (r2 * g1 + alpha * vv + 2.0 * beta * vu).max(0.0));
    }
    let (first, second) = (r2 * g[0], r2 * g[1]);
    if alpha == 0.0 {
        // Either a = 0, hence β = 0, or the vector that β multiplies is zero: the diagonal is all there is.
        return first;
    }
    let (ritz, rank_two) = ritz_values(moments, problem);
    let on_first = first + alpha * v[0] * v[0] + 2.0 * beta * v[0] * u[0];
    let mut low = on_first.max(second) * (1.0 - 4.0 * f64::EPSILON);
    // Where the parts of the rank-two term nearly cancel, its eigenvalue is known to their rounding only.
    let size = first + alpha * vv + 2.0 * beta.abs() * (vv * uu).sqrt();
    let mut high = (first + rank_two.max(0.0) + 16.0 * f64::EPSILON * size).max(low);
    // The Ritz value is a guess, no bracket: where v and u are nearly parallel it has few digits.
    let mut mu = ritz.max(low).min(high);
    for _ in 0..MAX_EVALUATIONS {
        if high - low <= 4.0 * f64::EPSILON * high {
            return 0.5 * (low + high);
        }
        if mu - second <= 16.0 * f64::EPSILON * mu {
            // The second pole is no point to evaluate at.
            mu = 0.5 * (low + high);
        }
        let state = evaluate(simd, g, problem, mu);
        if state.root_is_above {
            low = low.max(mu)
        } else {
            high = high.min(mu)
        }
        let (next, delta) = (mu + state.step, state.step.abs());
        if !next.is_finite() {
            break;
        }
        // The error left after a cubic step of length δ is at most about δ³/R², R the distance to the nearest pole
        // or other root.
        let inverse_radius = (1.0 / (mu - second)).max(state.bend);
        let settled = delta <= 2.0 * f64::EPSILON * mu
            || delta * delta * delta * inverse_radius * inverse_radius <= 1e-17 * mu;
        // f falls through the largest root and rises through the second, which is no answer.
        let inside = state.falling
            && next >= low * (1.0 - 4.0 * f64::EPSILON)
            && next <= high * (1.0 + 4.0 * f64::EPSILON);
        if settled && inside {
            return next;
        }
        mu = if inside && next != mu { next } else { 0.5 * (low + high) };
    }
    bisect(simd, g, problem, low, high)
}

#[inline(always)]
fn bisect<S: Simd>(simd: S, g: &[f64], problem: Problem<'_>, mut low: f64, mut high: f64) -> f64 {
    // The largest pole itself is the commonest answer here (a coordinate that the rank-two part does not touch).
    let first = problem.r2 * g[0];
    let beside = [first * (1.0 - 8.0 * f64::EPSILON), first * (1.0 + 8.0 * f64::EPSILON)];
    let mut candidates = beside.into_iter();
    while high - low > 4.0 * f64::EPSILON * high {
        let mu = match candidates.next() {
            Some(candidate) if candidate > low && candidate < high => candidate,
            Some(_) => continue,
            None => 0.5 * (low + high),
        };
        if mu <= low || mu >= high {
            break;
        }
        if evaluate(simd, g, problem, mu).root_is_above { low = mu } else { high = mu }
    }
    0.5 * (low + high)
}

struct State {
    /// Whether the largest eigenvalue is above μ.
    root_is_above: bool,
    /// Halley's step from μ.
    step: f64,
    /// `|f''/2f'|`.
    bend: f64,
    /// `f' < 0`.
    falling: bool,
}

#[inline(always)]
fn evaluate<S: Simd>(simd: S, g: &[f64], problem: Problem<'_>, mu: f64) -> State {
    let Problem { r2, alpha, beta, v, u } = problem;
    let sums = pole_sums(simd, &g[1..], &v[1..], &u[1..], r2, mu);
    let last = beta * beta / alpha;
    let scaled = |k: usize| (alpha * sums[k], beta * sums[k + 1], last * sums[k + 2]);
    let ((k11, k12, k22), (n11, n12, n22), (m11, m12, m22)) = (scaled(0), scaled(3), scaled(6));
    let (z11, z12, z22) = (alpha * v[0] * v[0], beta * v[0] * u[0], last * u[0] * u[0]);
    let e = mu - r2 * g[0];
    // Ŝ = [[−k11, 1−k12], [1−k12, −1−k22]]
    let (s11, s12, s22) = (-k11, 1.0 - k12, -1.0 - k22);
    let det = s11 * s22 - s12 * s12;
    let det1 = s22 * n11 + s11 * n22 - 2.0 * s12 * n12;
    let det2 = -2.0 * (s22 * m11 + s11 * m22 - 2.0 * s12 * m12) + 2.0 * (n11 * n22 - n12 * n12);
    let on_adjugate = |a11: f64, a12: f64, a22: f64| z11 * a22 + z22 * a11 - 2.0 * z12 * a12;
    let f = e * det - on_adjugate(s11, s12, s22);
    let f1 = det + e * det1 - on_adjugate(n11, n12, n22);
    let f2 = 2.0 * det1 + e * det2 + 2.0 * on_adjugate(m11, m12, m22);
    // f > 0 says that the number of eigenvalues above μ is odd. Below the largest pole it may be two, with both
    // eigenvalues of S negative.
    let root_is_above = f > 0.0 || (e < 0.0 && s11 + s22 - (z11 + z22) / e < 0.0);
    let step = -2.0 * f * f1 / (2.0 * f1 * f1 - f * f2);
    State { root_is_above, step, bend: (0.5 * f2 / f1).abs(), falling: f1 < 0.0 }
}

/// Largest Ritz value on the span of v and u (below the root but for rounding), and the largest eigenvalue of the rank-two part.
#[inline(always)]
fn ritz_values([vv, vu, uu, vgv, vgu, ugu]: [f64; 6], problem: Problem<'_>) -> (f64, f64) {
    let Problem { r2, alpha, beta, .. } = problem;
    if vv == 0.0 {
        return (0.0, 0.0);
    }
    let trace = alpha * vv + 2.0 * beta * vu;
    let area = (vv * uu - vu * vu).max(0.0);
    let radius = (trace * trace + 4.0 * beta * beta * area).sqrt();
    let rank_two =
        if trace >= 0.0 { 0.5 * (trace + radius) } else { 2.0 * beta * beta * area / (radius - trace) };
    // Orthonormal e₁ ∥ v and e₂: v = l e₁, u = s e₁ + t e₂.
    let (l, ratio) = (vv.sqrt(), vu / vv);
    let t2 = area / vv;
    let m11 = r2 * vgv / vv + trace;
    if t2 <= 1e-12 * uu || t2 == 0.0 {
        return (m11, rank_two);
    }
    let t = t2.sqrt();
    let m12 = r2 * (vgu - ratio * vgv) / (l * t) + beta * l * t;
    let m22 = r2 * (ugu - 2.0 * ratio * vgu + ratio * ratio * vgv) / t2;
    let ritz = 0.5 * (m11 + m22) + (0.25 * (m11 - m22).powi(2) + m12 * m12).sqrt();
    (ritz, rank_two)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::largest_eigenvalue;
    use proptest::prelude::*;

    fn dense(g: &[f64], p: Problem<'_>) -> f64 {
        let d = g.len();
        let mut m = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                m[i * d + j] = p.alpha * p.v[i] * p.v[j] + p.beta * (p.v[i] * p.u[j] + p.u[i] * p.v[j]);
            }
            m[i * d + i] += p.r2 * g[i];
        }
        largest_eigenvalue(&m, d).unwrap()
    }

    /// Norm of the parts: where they nearly cancel, no method knows the sum better than to their rounding.
    fn size(g: &[f64], p: Problem<'_>) -> f64 {
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        p.r2 * g[0] + p.alpha * norm(p.v).powi(2) + 2.0 * p.beta.abs() * norm(p.v) * norm(p.u)
    }

    fn solved(g: &[f64], p: Problem<'_>) -> f64 {
        let mut out = f64::NAN;
        top_eigenvalues(g, 1, |_| p, |_, value| out = value);
        let mut plain = f64::NAN;
        Batch { g, n: 1, problem: |_| p, put: |_, value| plain = value }.with_simd(pulp::Scalar);
        assert!((plain - out).abs() <= 1e-13 * size(g, p), "with and without vectors: {plain} {out}");
        out
    }

    /// Entries over many scales, often exactly zero or repeated: poles that coincide, coordinates without weight.
    fn entry() -> impl Strategy<Value = f64> {
        prop_oneof![
            3 => -1.0..1.0,
            1 => Just(0.0),
            1 => Just(0.5),
            1 => (-1.0_f64..1.0).prop_map(|x| x * 1e-8),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn matches_a_dense_eigenvalue(
            d in 1_usize..20,
            raw in prop::collection::vec((entry(), entry(), entry()), 20),
            r in prop_oneof![Just(0.0), -3.0..3.0, -1e-6..1e-6],
            a in prop_oneof![Just(0.0), 0.0..1.0, Just(1.0)],
            w2 in prop_oneof![Just(0.0), 0.0..4.0],
            label in any::<bool>(),
            scale in prop_oneof![Just(1.0), Just(1e12), Just(1e-12)],
        ) {
            let mut g: Vec<f64> = raw[..d].iter().map(|t| t.0.abs() * scale).collect();
            g.sort_by(|a, b| b.total_cmp(a));
            let root = f64::sqrt(scale);
            let v: Vec<f64> = raw[..d].iter().map(|t| t.1 * root).collect();
            // As in the real problem, u vanishes with w.
            let u: Vec<f64> = raw[..d].iter().map(|t| t.2 * root * f64::sqrt(w2)).collect();
            let alpha = a * a * w2 + f64::from(u8::from(label));
            let problem = Problem { r2: r * r, alpha, beta: a * r, v: &v, u: &u };
            let truth = dense(&g, problem);
            let actual = solved(&g, problem).max(0.0);
            prop_assert!((actual - truth).abs() <= 1e-13 * size(&g, problem) + f64::MIN_POSITIVE,
                "found {actual}, truth {truth}");
        }
    }

    #[test]
    fn a_root_below_the_largest_pole_is_found() {
        // The rank-two part pushes down along the first coordinate.
        let (g, v, u) = ([1.0, 0.1, 0.0], [1.0, 0.2, 0.1], [-1.0, 0.0, 0.0]);
        let p = Problem { r2: 1.0, alpha: 0.3, beta: 0.6, v: &v, u: &u };
        let truth = dense(&g, p);
        assert!(truth < 1.0);
        assert!((solved(&g, p) / truth - 1.0).abs() < 1e-14);
    }
}
