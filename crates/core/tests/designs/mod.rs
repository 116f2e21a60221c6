//! Models and targets that noise is designed for, what a design must achieve as dense matrices, and an optimiser that knows
//! nothing of duality.

use crate::dense::{Dense, Draws, families, inverse, label, spectral_norm};
use faer::Mat;
use leakscope_core::fisher::Directions;
use leakscope_core::fisher::noise::{Design, Protected, Request, Shape, Target, design};
use leakscope_core::glm::{Family, Fit, fit};

/// Records with columns in different units and correlated, as real ones are.
pub(crate) fn model(
    family: Family,
    (n, d): (usize, usize),
    intercept: bool,
    weighted: bool,
    seed: u64,
) -> Dense {
    let mut draws = Draws(seed);
    let p = d + usize::from(intercept);
    let (mut x, mut y, mut weight) = (vec![], vec![], vec![]);
    for i in 0..n {
        let shared = draws.normal();
        let row: Vec<f64> =
            (0..d).map(|j| (0.8 * draws.normal() + 0.6 * shared) / (1.0 + j as f64)).collect();
        let z: f64 = row.iter().enumerate().map(|(j, v)| if j % 2 == 0 { *v } else { -v }).sum::<f64>() * 0.7;
        x.extend(&row);
        x.extend(intercept.then_some(1.0));
        y.push(match family {
            Family::Linear => z + 0.5 * draws.normal(),
            Family::Logistic => f64::from(u8::from((z > 0.0) ^ (i % 4 == 0))),
            Family::Poisson => (z.exp() + draws.uniform()).floor(),
            Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_) => {
                let (u, e) = (draws.uniform(), draws.normal());
                label(family, i, z, u, e)
            }
        });
        weight.push(0.4 + draws.uniform());
    }
    let weight = if weighted { weight } else { vec![] };
    let mut model = Dense { family, intercept, l2: 0.03, p, x, y, weight, w: vec![] };
    model.w = fitted(&model).w;
    model
}

pub(crate) fn fitted(model: &Dense) -> Fit {
    fit(&model.rows(16), model.family, model.penalty()).unwrap()
}

pub(crate) fn matrix(a: &[f64], p: usize) -> Mat<f64> {
    Mat::from_fn(p, p, |i, j| a[i * p + j])
}

/// `Σ a xxᵀ/n` by its definition.
pub(crate) fn cost_matrix(model: &Dense) -> Mat<f64> {
    let mut a = Mat::zeros(model.p, model.p);
    for i in 0..model.n() {
        let (x, (_, curvature, _)) = (model.row(i), model.terms(i));
        for j in 0..model.p {
            for k in 0..model.p {
                a[(j, k)] += curvature * x[j] * x[k] / model.n() as f64;
            }
        }
    }
    a
}

pub(crate) fn trace(a: &Mat<f64>) -> f64 {
    (0..a.nrows()).map(|i| a[(i, i)]).sum()
}

/// The scaled Jacobians that a list of targets constrains: every `‖WJ‖₂ ≤ 1`.
pub(crate) fn constrained(model: &Dense, targets: &[Target]) -> Vec<Mat<f64>> {
    let inverse = inverse(&model.hessian()).unwrap();
    let d = model.d();
    let mut out = vec![];
    for target in targets {
        for i in 0..model.n() {
            let all = model.jacobian(i, true, &inverse);
            let part = match &target.protected {
                Protected::Record { label } => all.subcols(0, d + usize::from(*label)).to_owned(),
                Protected::Attribute(directions) => {
                    all.subcols(0, d) * crate::dense::basis_matrix(&directions.basis, d, directions.count)
                }
                Protected::Label => all.subcols(d, 1).to_owned(),
            };
            out.push(faer::Scale(1.0 / target.eta) * part);
        }
    }
    out
}

/// `tr(ΣA) · max ‖Σ^{−½}J‖²`: the cost at the scale that the constraints need.
pub(crate) fn scaled_cost(covariance: &Mat<f64>, a: &Mat<f64>, jacobians: &[Mat<f64>]) -> f64 {
    let Some(precision) = inverse(covariance) else { return f64::INFINITY };
    let mut worst = 0.0_f64;
    for j in jacobians {
        let information = j.transpose() * &precision * j;
        // The largest eigenvalue is at most the trace: most need none.
        if trace(&information) > worst {
            worst = worst.max(spectral_norm(&information));
        }
    }
    worst * trace(&(covariance * a))
}

pub(crate) fn records(eta: f64, label: bool) -> Vec<Target> {
    vec![Target { protected: Protected::Record { label }, eta }]
}

pub(crate) fn attributes(p: usize) -> Vec<Target> {
    vec![
        Target { protected: Protected::Attribute(Directions::columns(0..1, p)), eta: 4.0 },
        Target { protected: Protected::Attribute(Directions::columns(1..2, p)), eta: 15.0 },
        Target { protected: Protected::Label, eta: 30.0 },
    ]
}

pub(crate) fn cases() -> Vec<(Dense, Vec<Target>)> {
    let mut out = vec![];
    for (k, family) in families().into_iter().enumerate() {
        for (intercept, weighted) in [(false, false), (true, true)] {
            let model = model(family, (24, 2), intercept, weighted, 5 + k as u64);
            let p = model.p;
            out.push((model.clone(), records(5.0, true)));
            out.push((model.clone(), records(8.0, false)));
            out.push((model, attributes(p)));
        }
    }
    out
}

pub(crate) fn designed(model: &Dense, targets: &[Target], shape: Shape) -> Design {
    let request = Request { gap: 0.002, shape_budget: 1.0, ..Request::new(targets.to_vec(), shape) };
    design(&model.rows(7), &fitted(model), &request).unwrap()
}

/// Nelder and Mead's simplex, with restarts: knows the objective and nothing else.
pub(crate) fn nelder_mead(objective: &dyn Fn(&[f64]) -> f64, start: &[f64]) -> f64 {
    let m = start.len();
    let mut best = start.to_vec();
    for restart in 0..8 {
        let size = 0.5_f64.powi(restart);
        let mut simplex: Vec<(f64, Vec<f64>)> = (0..=m)
            .map(|k| {
                let mut v = best.clone();
                if k > 0 {
                    v[k - 1] += size;
                }
                (objective(&v), v)
            })
            .collect();
        for _ in 0..80 * m {
            simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
            let centre: Vec<f64> =
                (0..m).map(|j| simplex[..m].iter().map(|s| s.1[j]).sum::<f64>() / m as f64).collect();
            let at = |t: f64| -> (f64, Vec<f64>) {
                let v: Vec<f64> = (0..m).map(|j| centre[j] + t * (simplex[m].1[j] - centre[j])).collect();
                (objective(&v), v)
            };
            let reflected = at(-1.0);
            if reflected.0 < simplex[0].0 {
                let further = at(-2.0);
                simplex[m] = if further.0 < reflected.0 { further } else { reflected };
            } else if reflected.0 < simplex[m - 1].0 {
                simplex[m] = reflected;
            } else {
                let inside = at(0.5);
                if inside.0 < simplex[m].0 {
                    simplex[m] = inside;
                } else {
                    let first = simplex[0].1.clone();
                    for s in &mut simplex[1..] {
                        s.1.iter_mut().zip(&first).for_each(|(v, f)| *v = 0.5 * (*v + f));
                        s.0 = objective(&s.1);
                    }
                }
            }
        }
        simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
        best.clone_from(&simplex[0].1);
    }
    objective(&best)
}

/// Lower triangle with logarithms on its diagonal → covariance.
pub(crate) fn covariance_of(parameters: &[f64], p: usize) -> Mat<f64> {
    let mut next = parameters.iter();
    let mut factor = Mat::zeros(p, p);
    for i in 0..p {
        for j in 0..=i {
            let v = *next.next().unwrap();
            factor[(i, j)] = if i == j { v.exp() } else { v };
        }
    }
    &factor * factor.transpose()
}
