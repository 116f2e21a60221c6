//! Two values of a record of a softmax model told apart.
//!
//! The argument is that of [`super::step`] and [`super::refit`], in the coordinates Θ of [`crate::glm::softmax`]. The loss of a
//! row has a third derivative of at most `range(v)` times its second, v being how its K predictors move:
//! `E[(u − ū)²(v − v̄)] ≤ max|v − v̄| Var u` under π. So the model is self-concordant with
//! `R² = max ‖Uᵀ(e_k − e_l) ⊗ x‖²` in the norm of H⁻¹, over rows and pairs of classes, and H changes by at most `e^{±R‖Δ‖}`.
//!
//! A candidate changes H within the 2(K−1) vectors `e_a ⊗ x` and `e_a ⊗ (x' − x)`: with those as the columns of B,
//! `G = BᵀH⁻¹B` and `H' = H + BCBᵀ`,
//!
//! ```text
//! Δ₁ = −H⁻¹B(I + CG)⁻¹γ,   λ² = γᵀG(I + CG)⁻¹γ,   H' ⪰ κH,  κ = 1 − ω λ₁(ŜQ) (less where a penalty falls)
//! ```

mod worst;

use super::refit::{Job, Refit, unless_there_is_none};
use super::step::excess;
use super::worst::Separation;
use super::{Candidate, Noise, Question, penalty_change, replaced};
use crate::fisher::check_releases;
use crate::glm::softmax::{contrasts, fit_from, reduced_curvature, reduced_residual, softmax};
use crate::linalg::{
    Cholesky, axpy, condition, dot, largest_eigenvalue, matmul, matmul_by_transposed, matmul_transposed,
    mirror_lower, norm, times,
};
use crate::rows::{Block, Replaced, Rows};
use crate::units::{SoftmaxInUnits, Units};
use crate::{Error, Result};

/// Candidates that share a pass over the data.
const TOGETHER: usize = 64;
const MAX_STEPS: usize = 30;
/// An error of this many standard deviations of the noise cannot be seen in a probability.
const SETTLED: f64 = 1e-10;
/// Rows whose products with H⁻¹ are formed together.
const ROWS: usize = 64;

/// What questions about the records of one table share: a softmax model with its inverse, and how far rows reach.
#[derive(Debug)]
pub struct SoftmaxTelling<'a> {
    rows: &'a dyn Rows,
    models: Models<'a>,
    releases: u32,
}

impl<'a> SoftmaxTelling<'a> {
    /// Prepares a table (in the units of the model) for any number of questions: one pass over it. The noise is that on Θ, the
    /// (K−1)p contrasts of the classes; N(0, σ²I) on all K × p coefficients is N(0, σ²I) there.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::OutOfRange`] for rows, units or noise that do not fit the model, [`Error::Singular`]
    /// where H has no inverse.
    pub fn new(
        rows: &'a dyn Rows,
        (model, units): (&'a SoftmaxInUnits, &'a Units),
        (noise, releases): (&Noise, u32),
    ) -> Result<Self> {
        check_releases(releases)?;
        Ok(Self {
            rows,
            models: Models::new(rows, model, units, Spread::of(noise, model.fit.coefficients())?)?,
            releases,
        })
    }

    /// Bounds how often somebody who knows all else can answer `question` about each record.
    ///
    /// # Guarantee
    /// As [`super::told_apart`]: for every attacker, every record of the table and any two of the values of the question. It
    /// bounds the worst record whatever `refits` is.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::OutOfRange`] for a question that does not fit the model, and those of a fit.
    pub fn ask(&self, question: &Question, refits: usize) -> Result<Separation> {
        let classes = self.models.model.fit.classes;
        if let Question::Label { .. } | Question::Own { column: None, .. } = question {
            let (subject, setting) = ("a question about two numbers of the label", "a model of classes");
            return Err(Error::NotApplicable { subject, setting, advice: "ask about its classes" });
        }
        if let Question::Classes { codes } = question
            && let Some(&code) = codes.iter().find(|code| **code >= classes)
        {
            return Err(Error::Shape {
                subject: "the classes of a question",
                actual: code + 1,
                expected: classes,
            });
        }
        worst::ask(self.rows, &self.models, question, refits, self.releases)
    }
}

/// The noise on Θ, as lengths are measured by it.
#[derive(Debug)]
enum Spread {
    Isotropic(f64),
    /// W with `WᵀW = Σ⁻¹`, q × q.
    White(Vec<f64>),
}

impl Spread {
    fn of(noise: &Noise, q: usize) -> Result<Self> {
        match noise {
            Noise::Isotropic(sigma) => {
                crate::dp::positive("the standard deviation of the noise", *sigma)?;
                Ok(Self::Isotropic(*sigma))
            }
            Noise::Columns(_) | Noise::Precision(_) | Noise::Whitener(_) => {
                noise.whitening(q).map(Self::White)
            }
        }
    }

    /// `√(vᵀΣ⁻¹v)`.
    fn length(&self, v: &[f64]) -> f64 {
        match self {
            Self::Isotropic(sigma) => norm(v) / sigma,
            Self::White(w) => norm(&times(w, v)),
        }
    }

    /// `max √(vᵀΣ⁻¹v)` over `vᵀHv = 1`, from H⁻¹.
    fn strain(&self, inverse: &[f64], q: usize) -> Result<f64> {
        match self {
            Self::Isotropic(sigma) => Ok(largest_eigenvalue(inverse, q)?.sqrt() / sigma),
            Self::White(w) => {
                let (mut half, mut white) = (vec![0.0; q * q], vec![0.0; q * q]);
                matmul(w, inverse, (q, q, q), &mut half);
                matmul_by_transposed(&half, w, (q, q, q), &mut white);
                mirror_lower(&mut white, q);
                Ok(largest_eigenvalue(&white, q)?.sqrt())
            }
        }
    }
}

/// What does not depend on the record.
#[derive(Debug)]
struct Models<'a> {
    model: &'a SoftmaxInUnits,
    units: &'a Units,
    spread: Spread,
    inverse: Vec<f64>,
    /// H⁻¹ as p × (K−1)q: row j holds its rows (l, j) of all l.
    right: Vec<f64>,
    u: Vec<f64>,
    /// R².
    reach: f64,
    /// `max √(vᵀΣ⁻¹v)/‖v‖_H`.
    strain: f64,
    /// What the fit left of its gradient, in the norm of H⁻¹.
    rest: f64,
    slack: f64,
}

/// One Newton step for one candidate.
#[derive(Debug, Clone)]
struct Step {
    delta: Vec<f64>,
    error: f64,
    kappa: f64,
    reach: f64,
    /// B and H⁻¹B, 2(K−1) rows of length q.
    b: Vec<f64>,
    hb: Vec<f64>,
    /// C, and `(I + CG)⁻¹C`.
    c: Vec<f64>,
    k: Vec<f64>,
}

impl<'a> Models<'a> {
    fn new(rows: &dyn Rows, model: &'a SoftmaxInUnits, units: &'a Units, spread: Spread) -> Result<Self> {
        let fit = &model.fit;
        let (p, k, q) = (fit.width, fit.classes - 1, fit.coefficients());
        if rows.width() != p || units.len() != fit.penalty.data_width(p) {
            return Err(Error::Shape { subject: "the rows", actual: rows.width(), expected: p });
        }
        let inverse = Cholesky::new(&fit.hessian, q)?.inverse();
        let mut right = Vec::with_capacity(p * k * q);
        for j in 0..p {
            (0..k).for_each(|l| right.extend_from_slice(&inverse[(l * p + j) * q..][..q]));
        }
        let rest = dot(&fit.gradient, &times(&inverse, &fit.gradient)).max(0.0).sqrt();
        let (condition, _) = condition(&fit.hessian, &inverse, q)?;
        let mut models = Self {
            strain: spread.strain(&inverse, q)?,
            slack: 1.0 + 16.0 * f64::EPSILON * condition,
            model,
            units,
            spread,
            inverse,
            right,
            u: contrasts(fit.classes),
            reach: 0.0,
            rest,
        };
        let mut reach = 0.0_f64;
        rows.fold(
            || 0.0_f64,
            |most, block| {
                models.products(block, |i, hx| {
                    if block.weight_of(i) > 0.0 {
                        *most = most.max(models.range(&models.quadratic(block.row(i), hx)));
                    }
                });
                Ok(())
            },
            |most| {
                reach = reach.max(most);
                Ok(())
            },
        )?;
        models.reach = reach;
        Ok(models)
    }

    fn k(&self) -> usize {
        self.model.fit.classes - 1
    }

    /// Calls with `H⁻¹(e_l ⊗ x)`, (K−1) × q, of each row.
    fn products(&self, block: &Block, mut each: impl FnMut(usize, &[f64])) {
        let (p, k, q) = (self.model.fit.width, self.k(), self.model.fit.coefficients());
        let mut out = vec![];
        for first in (0..block.len()).step_by(ROWS) {
            let last = (first + ROWS).min(block.len());
            out.resize((last - first) * k * q, 0.0);
            matmul(&block.x[first * p..last * p], &self.right, (last - first, p, k * q), &mut out);
            (first..last).for_each(|i| each(i, &out[(i - first) * k * q..(i - first + 1) * k * q]));
        }
    }

    /// `Q_al = (e_a ⊗ v)ᵀ h_l`, (K−1) × (K−1).
    fn quadratic(&self, v: &[f64], h: &[f64]) -> Vec<f64> {
        let (p, k, q) = (self.model.fit.width, self.k(), self.model.fit.coefficients());
        (0..k * k).map(|al| dot(v, &h[(al % k) * q + (al / k) * p..][..p])).collect()
    }

    /// `max_kl (e_k − e_l)ᵀ UQUᵀ (e_k − e_l)`.
    fn range(&self, quadratic: &[f64]) -> f64 {
        let (k, classes) = (self.k(), self.model.fit.classes);
        let (mut half, mut full) = (vec![0.0; classes * k], vec![0.0; classes * classes]);
        matmul(&self.u, quadratic, (classes, k, k), &mut half);
        matmul_by_transposed(&half, &self.u, (classes, k, classes), &mut full);
        let at = |a: usize, b: usize| full[a * classes + b];
        let pairs = (0..classes).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.map(|(a, b)| at(a, a) + at(b, b) - at(a, b) - at(b, a)).fold(0.0, f64::max)
    }

    /// π at a row, from Θ.
    fn probabilities(&self, theta: &[f64], x: &[f64]) -> Vec<f64> {
        let (p, k) = (self.model.fit.width, self.k());
        let reduced: Vec<f64> = theta.chunks_exact(p).map(|row| dot(row, x)).collect();
        let mut z: Vec<f64> =
            (0..self.model.fit.classes).map(|c| dot(&self.u[c * k..(c + 1) * k], &reduced)).collect();
        softmax(&mut z);
        z
    }

    fn residual(&self, pi: &[f64], y: f64) -> Vec<f64> {
        reduced_residual(pi, (y as usize).min(self.k()), &self.u).collect()
    }

    /// The step of one candidate of a record, `hx = H⁻¹(e_l ⊗ x)`; `None` where the candidate shows for certain.
    fn step(&self, (x, y, omega): (&[f64], f64, f64), hx: &[f64], candidate: &Candidate) -> Option<Step> {
        let fit = &self.model.fit;
        let (p, k, q) = (fit.width, self.k(), fit.coefficients());
        let change = penalty_change(self.units, (fit.n as f64, fit.penalty.l2), x, candidate)?;
        let (after, y2) = replaced(x, y, candidate);
        let by: Vec<f64> = after.iter().zip(x).map(|(a, b)| a - b).collect();
        let (mut b, mut hb) = (vec![0.0; 2 * k * q], vec![0.0; 2 * k * q]);
        hb[..k * q].copy_from_slice(hx);
        for a in 0..k {
            b[a * q + a * p..][..p].copy_from_slice(x);
            b[(k + a) * q + a * p..][..p].copy_from_slice(&by);
            for j in (0..p).filter(|&j| by[j] != 0.0) {
                let row = &self.inverse[(a * p + j) * q..][..q];
                axpy(by[j], row, &mut hb[(k + a) * q..(k + a + 1) * q]);
            }
        }
        let m = 2 * k;
        let mut g = vec![0.0; m * m];
        matmul_by_transposed(&b, &hb, (m, q, m), &mut g);
        let (pi, pi2) = (self.probabilities(&fit.theta, x), self.probabilities(&fit.theta, &after));
        let (s, s2) = (reduced_curvature(&pi, &self.u), reduced_curvature(&pi2, &self.u));
        let (rho, rho2) = (self.residual(&pi, y), self.residual(&pi2, y2));
        let (mut c, mut gamma) = (vec![0.0; m * m], vec![0.0; m]);
        for a in 0..k {
            gamma[a] = omega * (rho2[a] - rho[a]);
            gamma[k + a] = omega * rho2[a];
            for l in 0..k {
                let (old, new) = (omega * s[a * k + l], omega * s2[a * k + l]);
                c[a * m + l] = new - old;
                (c[a * m + k + l], c[(k + a) * m + l], c[(k + a) * m + k + l]) = (new, new, new);
            }
        }
        // What may be taken away from H: the record's own part, and a penalty that falls.
        let quadratic: Vec<f64> = (0..k * k).map(|al| g[al / k * m + al % k]).collect();
        let mut kappa = 1.0 - omega * leverage(&s, &quadratic, k);
        if let Some((j, tau)) = change {
            for a in 0..k {
                gamma[k + a] += tau * fit.theta[a * p + j] / by[j];
                c[(k + a) * m + k + a] += tau / (by[j] * by[j]);
                kappa += tau.min(0.0) * self.inverse[(a * p + j) * q + a * p + j];
            }
        }
        let with_candidate: Vec<f64> = (0..k * k)
            .map(|al| {
                let (a, l) = (al / k, al % k);
                g[a * m + l] + g[a * m + k + l] + g[(k + a) * m + l] + g[(k + a) * m + k + l]
            })
            .collect();
        let reach = self.reach.max(self.range(&with_candidate)) / kappa.max(f64::MIN_POSITIVE);
        let mut step = Step { delta: vec![0.0; q], error: f64::INFINITY, kappa, reach, b, hb, c, k: vec![] };
        // I + CG, and what it solves: γ and C.
        let mut system = vec![0.0; m * m];
        matmul(&step.c, &g, (m, m, m), &mut system);
        (0..m).for_each(|i| system[i * m + i] += 1.0);
        let mut right: Vec<f64> = (0..m)
            .flat_map(|i| std::iter::once(gamma[i]).chain(step.c[i * m..(i + 1) * m].iter().copied()))
            .collect();
        if kappa <= 1e-12 || !solve(&mut system, &mut right, m) {
            step.kappa = 0.0;
            return Some(step);
        }
        let theta: Vec<f64> = (0..m).map(|i| right[i * (m + 1)]).collect();
        step.k = (0..m * m).map(|ij| right[ij / m * (m + 1) + 1 + ij % m]).collect();
        (0..m).for_each(|i| axpy(-theta[i], &step.hb[i * q..(i + 1) * q], &mut step.delta));
        let square = dot(&gamma, &times(&g, &theta));
        let rest = self.rest / kappa.sqrt();
        let lambda = square.max(0.0).sqrt() + rest;
        let missed = lambda * excess(reach.sqrt() * lambda) + rest;
        step.error = certain(self.slack * self.strain / kappa.sqrt() * missed);
        Some(step)
    }

    /// `H'⁻¹g = H⁻¹g − H⁻¹B (I + CG)⁻¹C (H⁻¹B)ᵀg`.
    fn solve_after(&self, step: &Step, g: &[f64]) -> Vec<f64> {
        let q = g.len();
        let mut out = times(&self.inverse, g);
        let along: Vec<f64> = step.hb.chunks_exact(q).map(|h| dot(h, g)).collect();
        let back = times(&step.k, &along);
        step.hb.chunks_exact(q).zip(&back).for_each(|(h, v)| axpy(-v, h, &mut out));
        out
    }

    /// How far Θ* + Δ may be from the minimiser, `newton` being `H'⁻¹g` there.
    fn error_at(&self, step: &Step, delta: &[f64], g: &[f64], newton: &[f64]) -> f64 {
        let along: Vec<f64> = step.b.chunks_exact(delta.len()).map(|b| dot(b, delta)).collect();
        let square =
            dot(delta, &times(&self.model.fit.hessian, delta)) + dot(&along, &times(&step.c, &along));
        let half = (0.5 * step.reach.sqrt() * square.max(0.0).sqrt()).exp();
        let lambda = half * dot(g, newton).max(0.0).sqrt();
        let s = half * step.reach.sqrt() * lambda;
        certain(self.slack * half * self.strain / step.kappa.sqrt() * lambda * (1.0 + excess(s)))
    }

    /// The gradient with the candidate in place, from the sum over the rows as they are.
    fn gradient_with(&self, job: &Job<'_>, mut g: Vec<f64>, theta: &[f64]) -> Vec<f64> {
        let fit = &self.model.fit;
        let p = fit.width;
        let (x2, y2) = replaced(job.x, job.y, job.candidate);
        let old = self.residual(&self.probabilities(theta, job.x), job.y);
        let new = self.residual(&self.probabilities(theta, &x2), y2);
        let change =
            penalty_change(self.units, (fit.n as f64, fit.penalty.l2), job.x, job.candidate).flatten();
        for (a, (part, theta)) in g.chunks_exact_mut(p).zip(theta.chunks_exact(p)).enumerate() {
            for ((g, s), w) in part.iter_mut().zip(&self.model.strength).zip(theta) {
                *g += s * w;
            }
            axpy(-job.omega * old[a], job.x, part);
            axpy(job.omega * new[a], &x2, part);
            if let Some((j, tau)) = change {
                part[j] += tau * theta[j];
            }
        }
        g
    }

    fn chords(&self, rows: &dyn Rows, jobs: &[(&Job<'_>, Step)]) -> Result<Vec<Option<Refit>>> {
        let theta = &self.model.fit.theta;
        let mut delta: Vec<Vec<f64>> = jobs.iter().map(|(_, s)| s.delta.clone()).collect();
        let mut best: Vec<Refit> =
            delta.iter().map(|d| Refit { delta: d.clone(), error: f64::INFINITY }).collect();
        let mut going: Vec<usize> = (0..jobs.len()).filter(|&c| jobs[c].1.kappa > 0.0).collect();
        for _ in 0..MAX_STEPS {
            if going.is_empty() {
                break;
            }
            let at: Vec<Vec<f64>> =
                going.iter().map(|&c| theta.iter().zip(&delta[c]).map(|(t, d)| t + d).collect()).collect();
            let sums = reduced_gradients(rows, self.model.fit.classes, &self.u, &at)?;
            let mut still = vec![];
            for ((&c, sum), at) in going.iter().zip(sums).zip(&at) {
                let (job, step) = &jobs[c];
                let g = self.gradient_with(job, sum, at);
                let newton = self.solve_after(step, &g);
                let error = self.error_at(step, &delta[c], &g, &newton);
                let better = error < best[c].error || best[c].error.is_infinite();
                if error < best[c].error {
                    best[c] = Refit { delta: delta[c].clone(), error };
                }
                if better && error > SETTLED {
                    still.push(c);
                }
                axpy(-1.0, &newton, &mut delta[c]);
            }
            going = still;
        }
        let mut out = Vec::with_capacity(jobs.len());
        for ((job, _), best) in jobs.iter().zip(best) {
            // A chord that still contracts stops at rounding; one that never did proves nothing.
            out.push(match best.error > 1e-6 {
                true => unless_there_is_none(self.fitted_anew(rows, job))?,
                false => Some(best),
            });
        }
        Ok(out)
    }

    fn fitted_anew(&self, rows: &dyn Rows, job: &Job<'_>) -> Result<Refit> {
        let fit = &self.model.fit;
        let (p, d, q) = (fit.width, self.units.len(), fit.coefficients());
        let (x, y) = replaced(job.x, job.y, job.candidate);
        // Columns divided by t' turn the penalty into that of a plain fit.
        let mut scale: Vec<f64> = (0..d).map(|j| self.units.penalty_scale(j)).collect();
        let change = penalty_change(self.units, (fit.n as f64, fit.penalty.l2), job.x, job.candidate);
        if let Some(Some((j, _))) = change {
            let (_, variance) = self.units.moments_after(j, fit.n as f64, job.x[j], x[j]);
            scale[j] = variance.sqrt();
        }
        let of = |index: usize| scale.get(index % p).copied().unwrap_or(1.0);
        let start: Vec<f64> = fit.theta.iter().enumerate().map(|(i, v)| v * of(i)).collect();
        let changed = Replaced { rows, row: job.row, x: &x, y: Some(y), scale: &scale };
        let refitted = fit_from(&changed, fit.classes, fit.penalty, &start)?;
        let delta: Vec<f64> =
            refitted.theta.iter().enumerate().map(|(i, v)| v / of(i) - fit.theta[i]).collect();
        // ‖error‖ ≤ 2λ in the norm of the Hessian there, whose own strain is taken.
        let inverse = Cholesky::new(&refitted.hessian, q)?.inverse();
        let lambda = dot(&refitted.gradient, &times(&inverse, &refitted.gradient)).max(0.0).sqrt();
        let stretched: Vec<f64> = (0..q * q).map(|ij| inverse[ij] / (of(ij / q) * of(ij % q))).collect();
        let error = self.slack * 2.0 * lambda * self.spread.strain(&stretched, q)?;
        if !error.is_finite() {
            let expected = "a finite number";
            return Err(Error::OutOfRange { subject: "the error of a refit", value: error, expected });
        }
        Ok(Refit { delta, error })
    }
}

impl Models<'_> {
    /// `√(vᵀΣ⁻¹v)`, rounded up.
    fn length(&self, v: &[f64]) -> f64 {
        self.spread.length(v) * self.slack
    }

    /// How the candidates of each row of a block move the model, with a limit on the error; `None` shows for certain.
    fn look(&self, block: &Block, candidates: &[Candidate], each: &mut dyn FnMut(&[Option<Refit>])) {
        self.products(block, |i, hx| {
            let record = (block.row(i), block.y[i], block.weight_of(i));
            let moved = |c: &Candidate| {
                self.step(record, hx, &c.of(record.0, record.1))
                    .map(|s| Refit { delta: s.delta, error: s.error })
            };
            each(&candidates.iter().map(moved).collect::<Vec<_>>());
        });
    }

    /// The same for some jobs, by refits.
    fn refit(&self, rows: &dyn Rows, jobs: &[Job<'_>]) -> Result<Vec<Option<Refit>>> {
        let (p, k, q) = (self.model.fit.width, self.k(), self.model.fit.coefficients());
        let mut out = Vec::with_capacity(jobs.len());
        for jobs in jobs.chunks(TOGETHER) {
            let steps: Vec<Option<Step>> = jobs
                .iter()
                .map(|job| {
                    let mut hx = vec![0.0; k * q];
                    matmul(job.x, &self.right, (1, p, k * q), &mut hx);
                    self.step((job.x, job.y, job.omega), &hx, job.candidate)
                })
                .collect();
            let possible: Vec<(&Job<'_>, Step)> =
                jobs.iter().zip(&steps).filter_map(|(job, s)| Some((job, s.clone()?))).collect();
            let mut refits = self.chords(rows, &possible)?.into_iter();
            out.extend(steps.iter().map(|s| s.as_ref().and_then(|_| refits.next().flatten())));
        }
        Ok(out)
    }
}

/// A number that is none is no limit.
fn certain(error: f64) -> f64 {
    if error.is_nan() { f64::INFINITY } else { error }
}

/// `λ₁(SQ)` of two positive semidefinite matrices: what share of H, at most, is one record's. The trace is an upper limit.
fn leverage(s: &[f64], quadratic: &[f64], k: usize) -> f64 {
    let trace: f64 = s.iter().zip(quadratic).map(|(a, b)| a * b).sum();
    if k == 1 || trace < 0.1 {
        return trace;
    }
    // Q = LLᵀ: the eigenvalues are those of LᵀSL.
    let mut lower = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..=i {
            let known = dot(&lower[i * k..i * k + j], &lower[j * k..j * k + j]);
            let rest = quadratic[i * k + j] - known;
            lower[i * k + j] = if i == j { rest.max(0.0).sqrt() } else { rest / lower[j * k + j] };
        }
    }
    if !lower.iter().all(|v| v.is_finite()) {
        return trace;
    }
    let (mut half, mut full) = (vec![0.0; k * k], vec![0.0; k * k]);
    matmul(s, &lower, (k, k, k), &mut half);
    matmul_transposed(&lower, &half, (k, k, k), &mut full);
    largest_eigenvalue(&full, k).map_or(trace, |top| trace.min(top * (1.0 + 1e-9)))
}

/// Solves `A X = B` in place by elimination with pivots, A m × m, B m × (m + 1); `false` where A is singular.
pub(crate) fn solve(a: &mut [f64], b: &mut [f64], m: usize) -> bool {
    let width = m + 1;
    let size = a.iter().fold(0.0_f64, |s, v| s.max(v.abs()));
    for column in 0..m {
        let pivot = (column..m).max_by(|&i, &j| a[i * m + column].abs().total_cmp(&a[j * m + column].abs()));
        let Some(pivot) = pivot.filter(|&i| a[i * m + column].abs() > 1e-13 * size) else { return false };
        for j in 0..m {
            a.swap(column * m + j, pivot * m + j);
        }
        for j in 0..width {
            b.swap(column * width + j, pivot * width + j);
        }
        for i in (0..m).filter(|&i| i != column) {
            let factor = a[i * m + column] / a[column * m + column];
            if factor != 0.0 {
                (column..m).for_each(|j| a[i * m + j] -= factor * a[column * m + j]);
                (0..width).for_each(|j| b[i * width + j] -= factor * b[column * width + j]);
            }
        }
    }
    for i in 0..m {
        let pivot = a[i * m + i];
        b[i * width..(i + 1) * width].iter_mut().for_each(|v| *v /= pivot);
    }
    b.iter().all(|v| v.is_finite())
}

/// `Σ ωρ̂ ⊗ x` over the rows at each of several Θ.
pub(crate) fn reduced_gradients(
    rows: &dyn Rows,
    classes: usize,
    u: &[f64],
    at: &[Vec<f64>],
) -> Result<Vec<Vec<f64>>> {
    let (p, k) = (rows.width(), classes - 1);
    let weights: Vec<Vec<f64>> = at
        .iter()
        .map(|theta| {
            let mut w = vec![0.0; classes * p];
            matmul(u, theta, (classes, k, p), &mut w);
            w
        })
        .collect();
    let mut total = vec![vec![0.0; k * p]; at.len()];
    rows.fold(
        || (vec![vec![0.0; k * p]; at.len()], vec![], vec![], vec![0.0; k * p]),
        |(sums, z, residuals, part), block| {
            let n = block.len();
            z.resize(n * classes, 0.0);
            for (w, sum) in weights.iter().zip(sums) {
                matmul_by_transposed(&block.x, w, (n, p, classes), z);
                residuals.clear();
                for (i, z) in z.chunks_exact_mut(classes).enumerate() {
                    softmax(z);
                    let (omega, class) = (block.weight_of(i), (block.y[i] as usize).min(k));
                    residuals.extend(reduced_residual(z, class, u).map(|v| omega * v));
                }
                matmul_transposed(residuals, &block.x, (k, n, p), part);
                axpy(1.0, part, sum);
            }
            Ok(())
        },
        |(sums, ..)| {
            total.iter_mut().zip(&sums).for_each(|(a, b)| axpy(1.0, b, a));
            Ok(())
        },
    )?;
    Ok(total)
}
