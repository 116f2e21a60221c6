//! Models with a candidate in place by one Newton step from the released one, and how far from exact they can be.
//!
//! With `x' = x + q` in place of x, and τ more penalty on q's column, the objective F has at w* the gradient `g = Uγ` and the
//! Hessian `H' = H + U C Uᵀ`, `U = [x, q]`,
//!
//! ```text
//! γ = (ω(r' − r), ωr' + τw_j/q_j),   C = [[ω(a' − a), ωa'], [ωa', ωa' + τ/q_j²]],   Δ₁ = −H⁻¹U (I + CG)⁻¹γ,  G = UᵀH⁻¹U
//! ```
//!
//! Linear regression: Δ₁ is exact. For the others `|∂a/∂z| ≤ a` (families whose curvature jumps are refused), so where no predictor moves by more than ρ between two points
//! their Hessians are within factors `e^{±ρ}`. With `R = max ‖x_k‖` in the norm of H'⁻¹ and `λ = ‖g‖` in the same, the minimiser
//! w* + Δ obeys `Δ = −H̄⁻¹g` with H̄ the mean Hessian on the way, hence `R‖Δ‖ ≤ ρ/(1 − e^{−ρ}) · Rλ` for ρ = R‖Δ‖, so
//! that `ρ ≤ −ln(1 − Rλ)` and
//!
//! ```text
//! ‖Δ − Δ₁‖_{H'} ≤ λ (−ln(1 − s)/s − 1),   s = Rλ < 1
//! ```
//!
//! about `Rλ²/2`: a share of `√(p/n)` squared. No pass over the data is needed.

use super::{Candidate, Models};
use crate::linalg::{axpy, dot, solve2};

/// One Newton step for one candidate.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// `Δ₁`.
    pub(super) delta: Vec<f64>,
    /// `H' ⪰ κH`.
    pub(super) kappa: f64,
    /// `R²`, in the norm of H'⁻¹.
    pub(super) reach: f64,
    pub(super) algebra: Algebra,
}

/// The rank-two update: what a later step in the same Hessian needs.
#[derive(Debug, Clone)]
pub(super) struct Algebra {
    /// `H⁻¹x` and `H⁻¹q`.
    h: [Vec<f64>; 2],
    /// `(I + CG)⁻¹C`, row-major.
    k: [f64; 4],
    /// x and q in full, and C by its three numbers.
    u: [Vec<f64>; 2],
    c: [f64; 3],
}

impl Step {
    /// `vᵀ(H' − H)v`.
    pub(super) fn update(&self, v: &[f64]) -> f64 {
        let [x, q] = &self.algebra.u;
        let ([c11, c12, c22], xv, qv) = (self.algebra.c, dot(x, v), dot(q, v));
        c11 * xv * xv + 2.0 * c12 * xv * qv + c22 * qv * qv
    }
}

impl Algebra {
    /// `H'⁻¹g = H⁻¹g − [h, h_q] (I + CG)⁻¹C [h, h_q]ᵀg`.
    pub(super) fn solve(&self, mut from_inverse: Vec<f64>, g: &[f64]) -> Vec<f64> {
        let [h, hq] = &self.h;
        let (u, v, k) = (dot(h, g), dot(hq, g), &self.k);
        axpy(-(k[0] * u + k[1] * v), h, &mut from_inverse);
        axpy(-(k[2] * u + k[3] * v), hq, &mut from_inverse);
        from_inverse
    }
}

/// `λ(−ln(1 − s)/s − 1)` over λ, for 0 ≤ s < 1.
pub(super) fn excess(s: f64) -> f64 {
    if s >= 1.0 || s.is_nan() {
        f64::INFINITY
    } else if s < 1e-4 {
        s * (0.5 + s * (1.0 / 3.0 + 0.26 * s))
    } else {
        -(-s).ln_1p() / s - 1.0
    }
}

/// The products of a record and a candidate that a step needs: `[xᵀH⁻¹x, xᵀH⁻¹q, qᵀH⁻¹q]`, the predictor and how far q moves
/// it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Products {
    pub(super) g: [f64; 3],
    pub(super) z: f64,
    pub(super) z_change: f64,
}

/// A step in the two directions x and q: `Δ₁ = −H⁻¹(θ₀x + θ₁q)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct InPlane {
    pub(super) theta: [f64; 2],
    pub(super) error: f64,
    k: [f64; 4],
    c: [f64; 3],
    kappa: f64,
    reach: f64,
}

impl Models<'_> {
    /// The step of one candidate of record (x, y, ω), `h = H⁻¹x`; `None` where the candidate shows for certain.
    pub(super) fn step(
        &self,
        (x, y, omega): (&[f64], f64, f64),
        h: &[f64],
        candidate: &Candidate,
    ) -> Option<Step> {
        let (w, p) = (&self.model.fit.w, self.p());
        let (mut hq, mut in_full) = (vec![0.0; p], vec![0.0; p]);
        let (mut z_change, mut qh) = (0.0, 0.0);
        for (j, to) in candidate.columns.clone().zip(&candidate.x) {
            let q = to - x[j];
            if q != 0.0 {
                axpy(q, &self.inverse[j * p..(j + 1) * p], &mut hq);
                in_full[j] = q;
                z_change += q * w[j];
                qh += q * h[j];
            }
        }
        let g22: f64 = candidate.columns.clone().zip(&candidate.x).map(|(j, to)| (to - x[j]) * hq[j]).sum();
        let products = Products { g: [dot(x, h), qh, g22], z: dot(x, w), z_change };
        let InPlane { theta, error: _, k, c, kappa, reach } =
            self.in_plane((x, y, omega), products, candidate)?;
        let mut delta = vec![0.0; p];
        axpy(-theta[0], h, &mut delta);
        axpy(-theta[1], &hq, &mut delta);
        let algebra = Algebra { h: [h.to_vec(), hq], k, u: [x.to_vec(), in_full], c };
        Some(Step { delta, kappa, reach, algebra })
    }

    /// The same from products alone: no vector of the length of the model.
    pub(super) fn in_plane(
        &self,
        (x, y, omega): (&[f64], f64, f64),
        products: Products,
        candidate: &Candidate,
    ) -> Option<InPlane> {
        let fit = &self.model.fit;
        let change = self.penalty_change(x, candidate)?;
        let Products { g: [g11, g12, g22], z, z_change } = products;
        let t = fit.family.terms(z, y);
        let t2 = fit.family.terms(z + z_change, candidate.y.unwrap_or(y));
        let (mut gamma, mut c22) = ([omega * (t2.r - t.r), omega * t2.r], omega * t2.a);
        if let Some((j, tau)) = change {
            let q = candidate.x[j - candidate.columns.start] - x[j];
            gamma[1] += tau * fit.w[j] / q;
            c22 += tau / (q * q);
        }
        let (c11, c12) = (omega * (t2.a - t.a), omega * t2.a);
        // CG, and I + CG
        let cg = [c11 * g11 + c12 * g12, c11 * g12 + c12 * g22, c12 * g11 + c22 * g12, c12 * g12 + c22 * g22];
        let a = [1.0 + cg[0], cg[1], cg[2], 1.0 + cg[3]];
        let half = 0.5 * (cg[0] + cg[3]);
        let spread = (0.25 * (cg[0] - cg[3]).powi(2) + cg[1] * cg[2]).max(0.0).sqrt();
        let kappa = 1.0 + (half - spread).min(0.0);
        let theta = solve2(a, gamma)?;
        let (first, second) = (solve2(a, [c11, c12])?, solve2(a, [c12, c22])?);
        if kappa <= 1e-12 || !theta.iter().all(|v| v.is_finite()) {
            return None;
        }
        // λ² = γᵀGθ
        let square =
            gamma[0] * (g11 * theta[0] + g12 * theta[1]) + gamma[1] * (g12 * theta[0] + g22 * theta[1]);
        let with_candidate = g11 + 2.0 * g12 + g22;
        let reach = self.reach.max(with_candidate) / kappa;
        let error = self.first_error(square.max(0.0).sqrt(), kappa, reach);
        let k = [first[0], second[0], first[1], second[1]];
        Some(InPlane { theta, error, k, c: [c11, c12, c22], kappa, reach })
    }

    /// What a step of decrement λ may have missed, in standard deviations of the noise.
    fn first_error(&self, decrement: f64, kappa: f64, reach: f64) -> f64 {
        if self.model.fit.family.constant_curvature() {
            return 0.0;
        }
        // The released model is at its minimum up to a gradient of length `rest`, which moves every candidate too.
        let rest = self.rest / kappa.sqrt();
        let lambda = decrement + rest;
        let missed = lambda * excess(reach.sqrt() * lambda) + rest;
        self.slack * self.strain / kappa.sqrt() * missed
    }
}
