//! Backwards through one iteration of balancing: losses, Hessian, model.
//!
//! One formula for every model: a generalised linear one has k = 1, softmax regression one contrast less than classes. Let z = Θx (k
//! numbers), ρ and S the first two derivatives of a record's loss by z and T the third (Θ is k × p, H of size q = kp). With
//! `s = πᵀ[ρ ⊗ v + (SΘv + cℓτ) ⊗ x]` the top singular value of a record's `H⁻¹[(ρ ⊗ I + SΘ ⊗ x)B, cℓ I ⊗ x]`, p and (v_B, τ) its vectors,
//! `π = H⁻¹p` in rows π_a, `v = Bv_B`, ℓ the length of a switch of the label, `β_a = π_a·v`, `χ_a = π_a·x`, `κ = Sβ + T(χ, Θv)`,
//!
//! ```text
//! ds = −s πᵀdH p + κ·dz + cβ·dy + (Sχ)ᵀdΘ v + Σ_a (SΘv + cℓτ)_a π_a·dx,   dz = Θdx + dΘ x
//! dH = Σ (dω S + ω T(dz)) ⊗ xxᵀ + ωS ⊗ (dx xᵀ + x dxᵀ)
//! dΘ = −H⁻¹ Σ dω ρ ⊗ x + ω((SΘdx + c dy) ⊗ x + ρ ⊗ dx)
//! ```
//!
//! Where the noise has a public shape, s is the top singular value of `WH⁻¹[…]`, W whitening it: then `π = H⁻¹Wᵀp`, and p in dH stands for
//! `W⁻¹p`. Further, `c = ∂ρ/∂y` (−1, but for families whose label acts through the prediction; there k = 1, and κ, ∂s/∂y and dH have a part in
//! `∂c/∂z = ∂S/∂y` more: `c'ℓτχ`, `c'χζ` and `ωc' dy xxᵀ`).

use crate::Result;
use crate::fisher::Directions;
use crate::fisher::noise::Noise;
use crate::fisher::softmax::SWITCH;
use crate::glm::softmax::{SoftmaxFit, contrasts, reduced_curvature, reduced_residual};
use crate::glm::{Family, Minimiser};
use crate::linalg::{Cholesky, axpy, dot, symmetric_eigen, times};
use crate::rows::Rows;

/// Where two singular values of a record are this close, relative, the larger has no derivative to rely on.
const REPEATED: f64 = 1e-9;

/// All rows, in memory.
pub(super) struct Table {
    pub(super) p: usize,
    x: Vec<f64>,
    pub(super) y: Vec<f64>,
}

impl Table {
    pub(super) fn read(rows: &dyn Rows) -> Result<Self> {
        let (mut x, mut y) = (vec![], vec![]);
        rows.fold(
            || (vec![], vec![]),
            |(x, y), block| {
                x.extend_from_slice(&block.x);
                y.extend_from_slice(&block.y);
                Ok(())
            },
            |(more_x, more_y)| {
                x.extend(more_x);
                y.extend(more_y);
                Ok(())
            },
        )?;
        Ok(Self { p: rows.width(), x, y })
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.p..(i + 1) * self.p]
    }
}

/// A model of either kind.
pub(super) struct Model {
    kind: Kind,
    /// Numbers in z: 1, or the contrasts of classes.
    pub(super) k: usize,
    /// Data columns.
    pub(super) d: usize,
    p: usize,
    /// k × p.
    theta: Vec<f64>,
    /// `H⁻¹`, q × q.
    inverse: Vec<f64>,
    /// ℓ, the length of a switch of the label.
    pub(super) switch: f64,
}

enum Kind {
    Glm(Family),
    Softmax { fit: Box<SoftmaxFit>, u: Vec<f64> },
}

impl Model {
    /// Prepares a model; [`crate::Error::Singular`] where H has no inverse.
    pub(super) fn new(fit: Minimiser) -> Result<Self> {
        let d = |p: usize| fit.penalty().data_width(p);
        Ok(match fit {
            Minimiser::Glm(ref glm) => Self {
                kind: Kind::Glm(glm.family),
                k: 1,
                d: d(glm.w.len()),
                p: glm.w.len(),
                theta: glm.w.clone(),
                inverse: Cholesky::new(&glm.hessian, glm.w.len())?.inverse(),
                switch: 1.0,
            },
            Minimiser::Softmax(ref softmax) => Self {
                k: softmax.classes - 1,
                d: d(softmax.width),
                p: softmax.width,
                theta: softmax.theta.clone(),
                inverse: Cholesky::new(&softmax.hessian, softmax.coefficients())?.inverse(),
                switch: SWITCH,
                kind: Kind::Softmax { u: contrasts(softmax.classes), fit: Box::new(softmax.clone()) },
            },
        })
    }

    /// Free coefficients.
    pub(super) fn q(&self) -> usize {
        self.k * self.p
    }

    /// `Θv`.
    fn of(&self, v: &[f64]) -> Vec<f64> {
        self.theta.chunks_exact(self.p).map(|row| dot(row, v)).collect()
    }

    /// `Θᵀκ`, p numbers.
    fn back(&self, kappa: &[f64]) -> Vec<f64> {
        combined(kappa, &self.theta, self.p)
    }

    fn derivatives(&self, x: &[f64], y: f64) -> Derivatives {
        match &self.kind {
            Kind::Glm(family) => {
                let z = dot(x, &self.theta);
                let t = family.terms(z, y);
                let (b, c1) = family.third(z, t);
                Derivatives { rho: vec![t.r], s: vec![t.a], third: vec![(b, vec![1.0])], c: t.c, c1 }
            }
            Kind::Softmax { fit, u } => {
                let (pi, k) = (fit.probabilities(x), self.k);
                let mut mean = vec![0.0; k];
                pi.iter().zip(u.chunks_exact(k)).for_each(|(pi, u)| axpy(*pi, u, &mut mean));
                // The third cumulant of a drawn class is its third central moment.
                let centred = |u: &[f64]| u.iter().zip(&mean).map(|(u, m)| u - m).collect::<Vec<f64>>();
                let third = pi.iter().zip(u.chunks_exact(k)).map(|(pi, u)| (*pi, centred(u))).collect();
                let class = (y as usize).min(k);
                let rho = reduced_residual(&pi, class, u).collect();
                Derivatives { rho, s: reduced_curvature(&pi, u), third, c: -1.0, c1: 0.0 }
            }
        }
    }
}

/// `Σ_a weights_a rows_a`, rows of p numbers.
fn combined(weights: &[f64], rows: &[f64], p: usize) -> Vec<f64> {
    let mut out = vec![0.0; p];
    weights.iter().zip(rows.chunks_exact(p)).for_each(|(w, row)| axpy(*w, row, &mut out));
    out
}

/// Derivatives of the loss of one record by z.
struct Derivatives {
    rho: Vec<f64>,
    /// k × k.
    s: Vec<f64>,
    /// T as a sum of weights times third powers of vectors.
    third: Vec<(f64, Vec<f64>)>,
    /// `c`, a number times the identity: −1 but for a family whose label acts through its prediction, and then `∂c/∂z = ∂S/∂y`.
    c: f64,
    c1: f64,
}

impl Derivatives {
    /// `Σ_ab m_ab T(e_a, e_b, ·)`.
    fn third_along(&self, m: &[f64]) -> Vec<f64> {
        let k = self.rho.len();
        let mut out = vec![0.0; k];
        for (weight, u) in &self.third {
            axpy(weight * dot(u, &times(m, u)), u, &mut out);
        }
        out
    }
}

/// What a loss is about, and the noise that hides it.
#[derive(Clone, Copy)]
pub(super) struct Secret<'a> {
    /// Directions in a record's values.
    pub(super) directions: &'a Directions,
    /// Whether the label is secret too.
    pub(super) label: bool,
    /// The shape of the noise; `N(0, I)` without one.
    pub(super) shape: Option<&'a Noise>,
}

/// A record's loss, with what it depends on.
struct Loss {
    /// `s`, without the gain of the noise.
    value: f64,
    /// The left singular vector p, or `W⁻¹p`, and π.
    left: Vec<f64>,
    pi: Vec<f64>,
    /// `∂s/∂Θ` and `∂s/∂x` with H held fixed, `∂s/∂y`.
    of_theta: Vec<f64>,
    of_x: Vec<f64>,
    of_y: Vec<f64>,
}

impl Loss {
    /// `None` where the largest singular value is repeated or zero.
    fn of(model: &Model, x: &[f64], t: &Derivatives, secret: Secret<'_>) -> Result<Option<Self>> {
        let Secret { directions, label, shape } = secret;
        let (p, q, k, m) = (model.p, model.q(), model.k, directions.count);
        let column = |c: usize| -> Vec<f64> { (0..p).map(|j| directions.basis[j * m + c]).collect() };
        // Nᵀ, row by row.
        let mut n = vec![];
        for c in 0..m {
            let b = column(c);
            let along = times(&t.s, &model.of(&b));
            let mut moved = Vec::with_capacity(q);
            for (rho, along) in t.rho.iter().zip(&along) {
                moved.extend(b.iter().zip(x).map(|(b, x)| rho * b + along * x));
            }
            n.extend(times(&model.inverse, &moved));
        }
        if label {
            for a in 0..k {
                let mut moved = vec![0.0; q];
                axpy(t.c * model.switch, x, &mut moved[a * p..(a + 1) * p]);
                n.extend(times(&model.inverse, &moved));
            }
        }
        let all = m + if label { k } else { 0 };
        let white = shape.map(|shape| shape.whiten_rows(&n));
        let seen = white.as_ref().unwrap_or(&n);
        let gram: Vec<f64> =
            (0..all * all).map(|ij| dot(&seen[ij / all * q..][..q], &seen[ij % all * q..][..q])).collect();
        let (values, vectors) = symmetric_eigen(&gram, all)?;
        let second = values.get(1).copied().unwrap_or(0.0);
        if !(values[0] > 0.0 && values[0] - second > REPEATED * values[0]) {
            return Ok(None);
        }
        let value = values[0].sqrt();
        let (mut left, mut v, mut tau) = (vec![0.0; q], vec![0.0; p], vec![0.0; k]);
        for c in 0..all {
            let weight = vectors[c * all];
            axpy(weight / value, &n[c * q..(c + 1) * q], &mut left);
            if c < m { axpy(weight, &column(c), &mut v) } else { tau[c - m] = weight }
        }
        let pi = match shape {
            None => times(&model.inverse, &left),
            Some(shape) => times(&model.inverse, &shape.by_inverse_covariance(&left)),
        };
        let beta: Vec<f64> = pi.chunks_exact(p).map(|row| dot(row, &v)).collect();
        let chi: Vec<f64> = pi.chunks_exact(p).map(|row| dot(row, x)).collect();
        let zeta = model.of(&v);
        let outer: Vec<f64> = (0..k * k).map(|ab| chi[ab / k] * zeta[ab % k]).collect();
        let mut kappa = times(&t.s, &beta);
        axpy(1.0, &t.third_along(&outer), &mut kappa);
        // Only of one number z where c moves with it.
        axpy(t.c1 * model.switch * tau[0], &chi, &mut kappa);
        let (curved_chi, mut along) = (times(&t.s, &chi), times(&t.s, &zeta));
        axpy(t.c * model.switch, &tau, &mut along);
        let mut of_theta = Vec::with_capacity(q);
        for (kappa, chi) in kappa.iter().zip(&curved_chi) {
            of_theta.extend(x.iter().zip(&v).map(|(x, v)| kappa * x + chi * v));
        }
        let mut of_x = model.back(&kappa);
        axpy(1.0, &combined(&along, &pi, p), &mut of_x);
        let of_y = (0..k).map(|a| t.c * beta[a] + t.c1 * chi[a] * zeta[a]).collect();
        Ok(Some(Self { value, left, pi, of_theta, of_x, of_y }))
    }
}

/// Derivatives of the q coefficients of the last model.
pub(super) struct Backwards {
    /// By the weights of the iteration that was reached: n × q.
    of_weights: Vec<f64>,
    /// By every value of every record and each contrast of its label: n × (d + k) × q.
    pub(super) jacobian: Vec<f64>,
}

impl Backwards {
    /// The last model, its weights held fixed.
    pub(super) fn new(table: &Table, model: &Model, weights: &[f64]) -> Self {
        let (n, q) = (table.y.len(), model.q());
        let jacobian = vec![0.0; n * (model.d + model.k) * q];
        let mut back = Self { of_weights: vec![0.0; n * q], jacobian };
        // dΘ̄ = the identity: seed c is coefficient c.
        let through: Vec<Vec<f64>> = model.inverse.chunks_exact(q).map(<[f64]>::to_vec).collect();
        back.through_fit(table, model, weights, &through);
        back
    }

    /// Adds what reaches the data and the weights of a model through its minimiser; `through` is `H⁻¹Θ̄` of each seed.
    fn through_fit(&mut self, table: &Table, model: &Model, weights: &[f64], through: &[Vec<f64>]) {
        let (p, q, d, k) = (model.p, model.q(), model.d, model.k);
        for (i, &omega) in weights.iter().enumerate() {
            let x = table.row(i);
            let t = model.derivatives(x, table.y[i]);
            for (seed, bar) in through.iter().enumerate() {
                let along: Vec<f64> = bar.chunks_exact(p).map(|row| dot(row, x)).collect();
                self.of_weights[i * q + seed] -= dot(&t.rho, &along);
                let (of_z, of_x) = (model.back(&times(&t.s, &along)), combined(&t.rho, bar, p));
                let at = |c: usize| (i * (d + k) + c) * q + seed;
                for c in 0..d {
                    self.jacobian[at(c)] -= omega * (of_z[c] + of_x[c]);
                }
                for (a, along) in along.iter().enumerate() {
                    self.jacobian[at(d + a)] -= omega * t.c * along;
                }
            }
        }
    }

    /// One iteration back: from the weights `after` to those `before` that the model had; false where a loss has no derivative.
    pub(super) fn through(
        &mut self,
        table: &Table,
        model: &Model,
        (before, after): (&[f64], &[f64]),
        secret: Secret<'_>,
        total: f64,
    ) -> Result<bool> {
        let (n, p, q) = (table.y.len(), model.p, model.q());
        let (d, k) = (model.d, model.k);
        // Σ_k Y_k ω_k of each seed.
        let mut mean = vec![0.0; q];
        for (y, omega) in self.of_weights.chunks_exact(q).zip(after) {
            axpy(*omega / total, y, &mut mean);
        }
        let upper = std::mem::replace(&mut self.of_weights, vec![0.0; n * q]);
        let (mut theta_bar, mut h_bar) = (vec![vec![0.0; q]; q], vec![vec![0.0; q * q]; q]);
        for i in 0..n {
            let x = table.row(i);
            let t = model.derivatives(x, table.y[i]);
            let Some(loss) = Loss::of(model, x, &t, secret)? else { return Ok(false) };
            for seed in 0..q {
                let e_bar = after[i] / loss.value * (mean[seed] - upper[i * q + seed]);
                axpy(e_bar, &loss.of_theta, &mut theta_bar[seed]);
                // −s (πpᵀ + pπᵀ)/2
                let half = -0.5 * e_bar * loss.value;
                for (j, row) in h_bar[seed].chunks_exact_mut(q).enumerate() {
                    axpy(half * loss.pi[j], &loss.left, row);
                    axpy(half * loss.left[j], &loss.pi, row);
                }
                let at = |c: usize| (i * (d + k) + c) * q + seed;
                (0..d).for_each(|c| self.jacobian[at(c)] += e_bar * loss.of_x[c]);
                (0..k).for_each(|a| self.jacobian[at(d + a)] += e_bar * loss.of_y[a]);
            }
        }
        for (i, &omega) in before.iter().enumerate() {
            let x = table.row(i);
            let t = model.derivatives(x, table.y[i]);
            for seed in 0..q {
                let (square, hx) = met(&h_bar[seed], x, (&t.s, k));
                self.of_weights[i * q + seed] += dot(&t.s, &square);
                let kappa = t.third_along(&square);
                for (bar, kappa) in theta_bar[seed].chunks_exact_mut(p).zip(&kappa) {
                    axpy(omega * kappa, x, bar);
                }
                let of_z = model.back(&kappa);
                for c in 0..d {
                    self.jacobian[(i * (d + k) + c) * q + seed] += omega * (of_z[c] + 2.0 * hx[c]);
                }
                // ∂S/∂y, where it is not zero.
                self.jacobian[(i * (d + k) + d) * q + seed] += omega * t.c1 * square[0];
            }
        }
        let through: Vec<Vec<f64>> = theta_bar.iter().map(|bar| times(&model.inverse, bar)).collect();
        self.through_fit(table, model, before, &through);
        Ok(true)
    }
}

/// `xᵀH̄_ab x` of every block of H̄, and `Σ_ab S_ab H̄_ab x`.
fn met(h_bar: &[f64], x: &[f64], (s, k): (&[f64], usize)) -> (Vec<f64>, Vec<f64>) {
    let (p, q) = (x.len(), k * x.len());
    let (mut square, mut hx) = (vec![0.0; k * k], vec![0.0; p]);
    for a in 0..k {
        for b in 0..k {
            for i in 0..p {
                let of_row = dot(&h_bar[(a * p + i) * q + b * p..][..p], x);
                square[a * k + b] += x[i] * of_row;
                hx[i] += s[a * k + b] * of_row;
            }
        }
    }
    (square, hx)
}
