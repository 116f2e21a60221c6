//! Column generation: the cheapest covariance for which no record exceeds its target, with its certificate.
//!
//! The constraint of record i is one inequality `(Jᵢu)ᵀΣ⁻¹(Jᵢu) ≤ 1` for every unit direction u. Only a few of them bind. Each
//! round finds the records that violate the present design most (one pass, an ordinary η where the noise is white),
//! adds their worst directions as atoms, solves for the weights of all atoms and drops those without weight. Any
//! weights give a certificate; the best one seen and the cheapest design seen are kept.

use super::weights::{Pool, Spectrum};
use super::worst::{Record, Worst, along, direction, worst};
use super::{Atom, Group, Target};
use crate::glm::Fitted;
use crate::linalg::{Cholesky, matmul, matmul_transposed};
use crate::rows::Rows;
use crate::{Error, Result};

/// Rounds after which the best design so far is returned with the gap that it has.
const MAX_ROUNDS: usize = 200;
/// Atoms with less than this share of the weight and a slack constraint are dropped.
const WEIGHTLESS: f64 = 1e-6;
/// Weights are multiples of this share, directions have entries that are multiples of [`DIRECTION_GRID`]: public
/// grids, so that both are locally constant.
const WEIGHT_GRID: f64 = 1.0 / 4096.0;
/// See [`WEIGHT_GRID`].
const DIRECTION_GRID: f64 = 1.0 / 256.0;
/// How many times finer these grids become, one after the other.
const REFINED: [f64; 4] = [1.0, 8.0, 64.0, 512.0];
/// Share of the mean eigenvalue of M that is added to every one, so that Σ has an inverse where nothing leaks.
const FLOOR: f64 = 1e-9;

/// What weights and atoms a shape is made of.
#[derive(Debug, Clone)]
pub(super) struct Dual {
    /// Weight of the equal weights.
    pub(super) uniform: f64,
    /// Atoms, with their records.
    pub(super) atoms: Vec<(Atom, Record)>,
}

/// A shape at the scale at which the worst record is at its target.
#[derive(Debug, Clone)]
pub(super) struct Shaped {
    pub(super) dual: Dual,
    /// Σ without its scale, p × p.
    pub(super) covariance: Vec<f64>,
    /// `tr(ΣA)` at the target, for this covariance.
    pub(super) cost: f64,
    /// No feasible covariance costs less.
    pub(super) lower_bound: f64,
    pub(super) rounds: usize,
}

/// What does not change from round to round.
pub(super) struct Generator<'a> {
    pub(super) rows: &'a dyn Rows,
    pub(super) fit: Fitted<'a>,
    pub(super) targets: &'a [Target],
    pub(super) groups: &'a [Group],
    pub(super) inverse: Vec<f64>,
    /// Lower factor L of A.
    pub(super) lower: Vec<f64>,
    /// `LᵀM₀L`.
    uniform: Vec<f64>,
}

impl<'a> Generator<'a> {
    /// `m` is M with equal weights, `cost` is A.
    pub(super) fn new(
        rows: &'a dyn Rows,
        fit: Fitted<'a>,
        (targets, groups): (&'a [Target], &'a [Group]),
        m: Vec<f64>,
        cost: &[f64],
    ) -> Result<Self> {
        let p = fit.free();
        let lower = Cholesky::new(cost, p).map_err(|e| of_columns(e, fit))?.lower();
        let (mut half, mut uniform) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul(&m, &lower, (p, p, p), &mut half);
        matmul_transposed(&lower, &half, (p, p, p), &mut uniform);
        crate::linalg::mirror_lower(&mut uniform, p);
        let inverse = inverse_hessian(fit)?;
        Ok(Self { rows, fit, targets, groups, inverse, lower, uniform })
    }

    /// Free coefficients.
    pub(super) fn p(&self) -> usize {
        self.fit.free()
    }

    fn pool(&self) -> Pool {
        Pool::new(self.uniform.clone(), self.p(), FLOOR)
    }

    /// The worst records of the design at `spectrum`.
    fn worst(&self, spectrum: &Spectrum, most: usize) -> Result<Vec<Worst>> {
        worst(self.rows, self.fit, (self.targets, self.groups), &spectrum.whitener(&self.lower), most)
    }

    /// `b = LᵀJu`.
    fn atom(&self, group: usize, record: &Record, u: &[f64]) -> Vec<f64> {
        let p = self.p();
        let mut b = vec![0.0; p];
        let a = along(self.fit, &self.inverse, &self.groups[group], record, u);
        matmul_transposed(&self.lower, &a, (p, p, 1), &mut b);
        b
    }

    /// `Σ = L⁻ᵀYL⁻¹` without a scale.
    fn covariance(&self, spectrum: &Spectrum) -> Vec<f64> {
        let p = self.p();
        let inverse = super::gaussian::triangular_inverse(&self.lower, p);
        let (mut half, mut out) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul(&spectrum.root(), &inverse, (p, p, p), &mut half);
        matmul_transposed(&inverse, &half, (p, p, p), &mut out);
        crate::linalg::mirror_lower(&mut out, p);
        out
    }

    /// The closed form with equal weights.
    pub(super) fn closed_form(&self) -> Result<Shaped> {
        let spectrum = self.pool().spectrum()?;
        let top = self.worst(&spectrum, 1)?.first().map_or(0.0, |w| w.value);
        Ok(Shaped {
            dual: Dual { uniform: 1.0, atoms: vec![] },
            covariance: self.covariance(&spectrum),
            cost: top * top * spectrum.cost(),
            lower_bound: spectrum.certificate(),
            rounds: 1,
        })
    }

    /// Rounds until the cheapest design is within `gap` of the best certificate, then weights and directions on their
    /// public grids.
    pub(super) fn optimal(&self, gap: f64) -> Result<Shaped> {
        let p = self.p();
        let most = p.clamp(8, 32);
        let mut pool = self.pool();
        let mut atoms: Vec<(Atom, Record)> = vec![];
        let (mut lower_bound, mut cheapest) = (0.0_f64, f64::INFINITY);
        let (mut best, mut rounds) = ((pool.clone(), atoms.clone()), 0);
        let mut inner = 0.25;
        for round in 0..MAX_ROUNDS {
            rounds = round + 1;
            let spectrum = pool.spectrum()?;
            let violated = self.worst(&spectrum, most)?;
            let top = violated.first().map_or(0.0, |w| w.value).powi(2);
            lower_bound = lower_bound.max(spectrum.certificate());
            let cost = top * spectrum.cost();
            if cost < cheapest {
                cheapest = cost;
                best = (pool.clone(), atoms.clone());
            }
            // Room for the rounding of weights and directions that follows.
            if cheapest <= (1.0 + 0.8 * gap) * lower_bound || top == 0.0 {
                break;
            }
            inner = (0.25 * (cheapest / lower_bound - 1.0)).clamp(0.1 * gap, inner);
            self.drop_weightless(&mut pool, &mut atoms);
            let whitener = spectrum.whitener(&self.lower);
            for Worst { value, row, group, record } in violated {
                let slack = value * value * spectrum.cost() < lower_bound;
                if slack {
                    break;
                }
                let u = direction(self.fit, &self.inverse, &whitener, &self.groups[group], &record)?;
                pool.add(&self.atom(group, &record, &u));
                atoms.push((Atom { row, target: group, direction: u, weight: 0.0 }, record));
            }
            pool.solve(inner)?;
        }
        let (pool, atoms) = best;
        // Where the noise is far from round, small errors of weights and directions matter: grids are refined until they do not.
        let mut best_shape: Option<Shaped> = None;
        for refined in REFINED {
            let shaped = self.at(rounded(&pool, &atoms, refined), lower_bound)?;
            let close = shaped.cost <= (1.0 + gap) * shaped.lower_bound;
            if best_shape.as_ref().is_none_or(|best| shaped.cost < best.cost) {
                best_shape = Some(shaped);
            }
            if close {
                break;
            }
        }
        match best_shape {
            Some(shaped) => Ok(Shaped { rounds, ..shaped }),
            None => self.closed_form(),
        }
    }

    /// The shape of a dual with its weights and directions as they are; `lower_bound` is a certificate already known.
    fn at(&self, dual: Dual, lower_bound: f64) -> Result<Shaped> {
        let spectrum = self.spectrum_of(&dual)?;
        let top = self.worst(&spectrum, 1)?.first().map_or(0.0, |w| w.value);
        Ok(Shaped {
            dual,
            covariance: self.covariance(&spectrum),
            cost: top * top * spectrum.cost(),
            lower_bound: lower_bound.max(spectrum.certificate()),
            rounds: 1,
        })
    }

    /// The shape where atoms keep a share of their weights and the rest goes to the equal weights: the covariance then depends
    /// on single records that much less.
    pub(super) fn evened(&self, shaped: &Shaped, kept: f64) -> Result<Shaped> {
        let mut dual = shaped.dual.clone();
        dual.uniform += (1.0 - kept) * dual.atoms.iter().map(|(a, _)| a.weight).sum::<f64>();
        dual.atoms.iter_mut().for_each(|(atom, _)| atom.weight *= kept);
        Ok(Shaped { rounds: shaped.rounds + 1, ..self.at(dual, shaped.lower_bound)? })
    }

    fn drop_weightless(&self, pool: &mut Pool, atoms: &mut Vec<(Atom, Record)>) {
        let total: f64 = pool.lambda().iter().sum();
        let keep: Vec<bool> = pool.lambda()[1..].iter().map(|l| *l > WEIGHTLESS * total).collect();
        pool.retain(&keep);
        let mut kept = keep.iter();
        atoms.retain(|_| *kept.next().unwrap_or(&true));
    }

    /// M of a dual with its weights and directions as they are.
    pub(super) fn spectrum_of(&self, dual: &Dual) -> Result<Spectrum> {
        let mut pool = self.pool();
        let mut weights = vec![dual.uniform];
        for (atom, record) in &dual.atoms {
            // Rounded directions are no unit vectors: the weight of a direction is that of its square.
            let length = crate::linalg::norm(&atom.direction);
            let u: Vec<f64> = atom.direction.iter().map(|v| v / length).collect();
            pool.add(&self.atom(atom.target, record, &u));
            weights.push(atom.weight);
        }
        pool.with_weights(weights).spectrum()
    }

    /// Σ of a dual, without a scale.
    #[cfg(test)]
    pub(super) fn covariance_of(&self, dual: &Dual) -> Result<Vec<f64>> {
        Ok(self.covariance(&self.spectrum_of(dual)?))
    }
}

/// Weights and directions on their public grids.
fn rounded(pool: &Pool, atoms: &[(Atom, Record)], refined: f64) -> Dual {
    let total: f64 = pool.lambda().iter().sum();
    let on_grid = |value: f64, grid: f64| (value / grid).round() * grid;
    let mut kept = vec![];
    for ((mut atom, record), lambda) in atoms.iter().cloned().zip(&pool.lambda()[1..]) {
        atom.weight = on_grid(lambda / total, WEIGHT_GRID / refined);
        atom.direction.iter_mut().for_each(|u| *u = on_grid(*u, DIRECTION_GRID / refined));
        if atom.weight > 0.0 && atom.direction.iter().any(|u| *u != 0.0) {
            kept.push((atom, record));
        }
    }
    let uniform = on_grid(pool.lambda()[0] / total, WEIGHT_GRID / refined);
    // Weights that all round to nothing (thousands of equal atoms) leave the closed form.
    let uniform = if kept.is_empty() { uniform.max(WEIGHT_GRID) } else { uniform };
    Dual { uniform, atoms: kept }
}

/// `H⁻¹` of a fit.
pub(super) fn inverse_hessian(fit: Fitted<'_>) -> Result<Vec<f64>> {
    Ok(Cholesky::new(fit.hessian(), fit.free()).map_err(|e| of_columns(e, fit))?.inverse())
}

/// A failure that names columns, whatever contrast of classes they belong to.
fn of_columns(error: Error, fit: Fitted<'_>) -> Error {
    let p = fit.width();
    match error {
        Error::Singular { column, of } => {
            let mut others: Vec<usize> = of.iter().map(|j| j % p).filter(|j| *j != column % p).collect();
            others.sort_unstable();
            others.dedup();
            Error::Singular { column: column % p, of: others }
        }
        other => other,
    }
}
