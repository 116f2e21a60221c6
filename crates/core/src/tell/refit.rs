//! Models with a candidate in place by Newton's method, with a proven limit on what is left of their error.
//!
//! Many candidates share every pass over the data. Steps use the Hessian of the first one, updated by rank two, for
//! as long as that contracts; the rare candidate for which it does not is fitted from scratch. At a point w with gradient g and
//! `ρ = R‖w − w*‖`, the Hessian is at least `e^{−ρ}H'`, and the argument of [`super::step`] from there bounds the distance to
//! the minimiser by `−ln(1 − s)/s · λ`, `λ = e^{ρ/2}‖g‖`, `s = e^{ρ/2}Rλ`, in the norm of the Hessian there.

use super::step::{Step, excess};
use super::{Candidate, Models, replaced};
use crate::glm::{Family, Penalty, fit as fit_model};
use crate::linalg::{
    Cholesky, axpy, dot, largest_eigenvalue, matmul, matmul_by_transposed, matmul_transposed, times,
};
use crate::rows::{Replaced, Rows};
use crate::{Error, Result};

/// Candidates that share a pass over the data.
const TOGETHER: usize = 128;
const MAX_STEPS: usize = 30;
/// An error of this many standard deviations of the noise cannot be seen in a probability.
const SETTLED: f64 = 1e-10;

/// A record and one candidate for it.
#[derive(Debug, Clone)]
pub(super) struct Job<'a> {
    pub(super) row: u64,
    pub(super) x: &'a [f64],
    pub(super) y: f64,
    pub(super) omega: f64,
    pub(super) candidate: &'a Candidate,
}

/// `w_a − w*`, and how far from exact it may be, in standard deviations of the noise.
#[derive(Debug, Clone)]
pub(super) struct Refit {
    pub(super) delta: Vec<f64>,
    pub(super) error: f64,
}

impl Models<'_> {
    /// The model of each job; `None` for a candidate that shows for certain. `rows` are in public units.
    pub(super) fn refit(&self, rows: &dyn Rows, jobs: &[Job<'_>]) -> Result<Vec<Option<Refit>>> {
        let mut out = Vec::with_capacity(jobs.len());
        for jobs in jobs.chunks(TOGETHER) {
            let steps: Vec<Option<Step>> = jobs
                .iter()
                .map(|job| {
                    let h = times(&self.inverse, job.x);
                    self.step((job.x, job.y, job.omega), &h, job.candidate)
                })
                .collect();
            let possible: Vec<(&Job<'_>, Step)> =
                jobs.iter().zip(&steps).filter_map(|(job, s)| Some((job, s.clone()?))).collect();
            let mut refits = self.chords(rows, possible)?.into_iter();
            for (job, step) in jobs.iter().zip(&steps) {
                out.push(match step {
                    Some(_) => refits.next().flatten(),
                    None if self.penalty_change(job.x, job.candidate).is_none() => None,
                    // A record that holds up nearly all of H in some direction: no update, but a model.
                    None => unless_there_is_none(self.fitted_anew(rows, job))?,
                });
            }
        }
        Ok(out)
    }

    fn chords(&self, rows: &dyn Rows, jobs: Vec<(&Job<'_>, Step)>) -> Result<Vec<Option<Refit>>> {
        let (p, k) = (self.p(), jobs.len());
        if self.model.fit.family.constant_curvature() {
            return Ok(jobs.into_iter().map(|(_, s)| Some(Refit { delta: s.delta, error: 0.0 })).collect());
        }
        let mut delta: Vec<Vec<f64>> = jobs.iter().map(|(_, s)| s.delta.clone()).collect();
        let mut best: Vec<Refit> =
            delta.iter().map(|d| Refit { delta: d.clone(), error: f64::INFINITY }).collect();
        let mut going = vec![true; k];
        let mut w = vec![0.0; p * k];
        for _ in 0..MAX_STEPS {
            if !going.iter().any(|g| *g) {
                break;
            }
            for (c, delta) in delta.iter().enumerate() {
                (0..p).for_each(|j| w[j * k + c] = self.model.fit.w[j] + delta[j]);
            }
            let gradients = gradients(rows, self.model.fit.family, &w, k)?;
            for (c, (job, step)) in jobs.iter().enumerate() {
                if !going[c] {
                    continue;
                }
                let of_column: Vec<f64> = (0..p).map(|j| gradients[j * k + c]).collect();
                let wc: Vec<f64> = (0..p).map(|j| w[j * k + c]).collect();
                let g = self.gradient_with(job, of_column, &wc);
                let newton = step.algebra.solve(times(&self.inverse, &g), &g);
                let error = self.error_at(step, &delta[c], &g, &newton);
                let better =
                    error < 0.5 * best[c].error || (error.is_infinite() && best[c].error.is_infinite());
                if error < best[c].error {
                    best[c] = Refit { delta: delta[c].clone(), error };
                }
                going[c] = better && error > SETTLED;
                axpy(-1.0, &newton, &mut delta[c]);
            }
        }
        let mut out = Vec::with_capacity(k);
        for ((job, _), best) in jobs.iter().zip(best) {
            // A chord that still contracts stops at rounding; one that never did proves nothing.
            out.push(match best.error > 1e-6 {
                true => unless_there_is_none(self.fitted_anew(rows, job))?,
                false => Some(best),
            });
        }
        Ok(out)
    }

    /// The gradient with the candidate in place, from that of the rows as they are.
    fn gradient_with(&self, job: &Job<'_>, mut g: Vec<f64>, w: &[f64]) -> Vec<f64> {
        for ((g, s), w) in g.iter_mut().zip(&self.model.strength).zip(w) {
            *g += s * w;
        }
        let family = self.model.fit.family;
        let (x2, y2) = replaced(job.x, job.y, job.candidate);
        axpy(-job.omega * family.terms(dot(job.x, w), job.y).r, job.x, &mut g);
        axpy(job.omega * family.terms(dot(&x2, w), y2).r, &x2, &mut g);
        if let Some(Some((j, tau))) = self.penalty_change(job.x, job.candidate) {
            g[j] += tau * w[j];
        }
        g
    }

    /// How far w* + Δ may be from the minimiser, `newton` being `H'⁻¹g` there.
    fn error_at(&self, step: &Step, delta: &[f64], g: &[f64], newton: &[f64]) -> f64 {
        let far = self.norm_after(step, delta);
        let half = (0.5 * step.reach.sqrt() * far).exp();
        let lambda = half * dot(g, newton).max(0.0).sqrt();
        let s = half * step.reach.sqrt() * lambda;
        let error = self.slack * half * self.strain / step.kappa.sqrt() * lambda * (1.0 + excess(s));
        if error.is_nan() { f64::INFINITY } else { error }
    }

    /// `‖v‖_{H'}`.
    fn norm_after(&self, step: &Step, v: &[f64]) -> f64 {
        let plain = dot(v, &times(&self.model.fit.hessian, v));
        (plain + step.update(v)).max(0.0).sqrt()
    }

    fn fitted_anew(&self, rows: &dyn Rows, job: &Job<'_>) -> Result<Refit> {
        let (p, d) = (self.p(), self.units.len());
        let (x, y) = replaced(job.x, job.y, job.candidate);
        // Columns divided by t' turn the penalty into that of a plain fit.
        let mut scale: Vec<f64> = (0..d).map(|j| self.units.penalty_scale(j)).collect();
        if let Some(Some((j, _))) = self.penalty_change(job.x, job.candidate) {
            let (_, variance) = self.units.moments_after(j, self.model.fit.n as f64, job.x[j], x[j]);
            scale[j] = variance.sqrt();
        }
        let changed = Replaced { rows, row: job.row, x: &x, y: Some(y), scale: &scale };
        let penalty = Penalty { ..self.model.fit.penalty };
        let refit = fit_model(&changed, self.model.fit.family, penalty)?;
        let mut delta = refit.w.clone();
        scale.iter().enumerate().for_each(|(j, s)| delta[j] /= s);
        (0..p).for_each(|j| delta[j] -= self.model.fit.w[j]);
        // ‖error‖ ≤ 2λ in the norm of the Hessian found, whose own strain is taken.
        let inverse = Cholesky::new(&refit.hessian, p)?.inverse();
        let lambda = dot(&refit.gradient, &times(&inverse, &refit.gradient)).max(0.0).sqrt();
        let stretched: Vec<f64> =
            (0..p * p).map(|ij| self.whitening[ij] / scale.get(ij % p).copied().unwrap_or(1.0)).collect();
        let (mut half, mut sandwich) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul(&stretched, &inverse, (p, p, p), &mut half);
        matmul_by_transposed(&half, &stretched, (p, p, p), &mut sandwich);
        let error = self.slack * 2.0 * lambda * largest_eigenvalue(&sandwich, p)?.sqrt();
        if !error.is_finite() {
            let expected = "a finite number";
            return Err(Error::OutOfRange { subject: "the error of a refit", value: error, expected });
        }
        Ok(Refit { delta, error })
    }
}

/// A candidate whose model cannot be fitted shows, for all that is known.
pub(super) fn unless_there_is_none(refit: Result<Refit>) -> Result<Option<Refit>> {
    match refit {
        Ok(refit) => Ok(Some(refit)),
        Err(
            Error::Separable
            | Error::NoConvergence { .. }
            | Error::Singular { .. }
            | Error::Setting { .. }
            | Error::OutOfRange { .. },
        ) => Ok(None),
        Err(e) => Err(e),
    }
}

/// `Xᵀ diag(ω) r(X W, y)`, p × k.
fn gradients(rows: &dyn Rows, family: Family, w: &[f64], k: usize) -> Result<Vec<f64>> {
    let p = rows.width();
    let mut total = vec![0.0; p * k];
    rows.fold(
        || (vec![0.0; p * k], vec![], vec![0.0; p * k]),
        |(gradient, r, part), block| {
            let n = block.len();
            r.resize(n * k, 0.0);
            matmul(&block.x, w, (n, p, k), r);
            for i in 0..n {
                let (y, omega) = (block.y[i], block.weight_of(i));
                r[i * k..(i + 1) * k].iter_mut().for_each(|z| *z = omega * family.terms(*z, y).r);
            }
            matmul_transposed(&block.x, r, (p, n, k), part);
            axpy(1.0, part, gradient);
            Ok(())
        },
        |(gradient, _, _)| {
            axpy(1.0, &gradient, &mut total);
            Ok(())
        },
    )?;
    Ok(total)
}
