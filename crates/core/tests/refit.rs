//! The Jacobian itself: change one value of one record, fit again, and see how the minimiser moved. No
//! formula of leakage is used on the way, only the library's fit.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{Dense, Draws, beside, families, inverse, label, place, spectral_norm};
use faer::Mat;
use leakscope_core::fisher::{Directions, Geometry, Records, Release, SetSums};
use leakscope_core::glm::{Family, fit};

/// Fourteen records, two columns: enough overlap of the classes that no penalty is needed for a minimum.
fn model(family: Family, intercept: bool, l2: f64, weighted: bool) -> Dense {
    let mut draws = Draws(7 + place(family));
    let (n, p) = (14, 2 + usize::from(intercept));
    let (mut x, mut y, mut weight) = (vec![], vec![], vec![]);
    for i in 0..n {
        let (a, b) = (draws.normal(), draws.normal());
        let z = 0.7 * a - 0.4 * b + 0.3;
        x.extend([a, b]);
        x.extend(intercept.then_some(1.0));
        y.push(match family {
            Family::Linear => z + 0.5 * draws.normal(),
            Family::Logistic => f64::from(u8::from((z > 0.0) ^ (i % 4 == 0))),
            Family::Poisson => (z.exp() + 2.0 * draws.uniform()).floor(),
            Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_) => {
                let (u, e) = (draws.uniform(), draws.normal());
                label(family, i, z, u, e)
            }
        });
        weight.push(0.4 + 2.0 * draws.uniform());
    }
    let weight = if weighted { weight } else { vec![] };
    let mut model = Dense { family, intercept, l2, p, x, y, weight, w: vec![] };
    model.w = minimiser(&model);
    model
}

fn minimiser(model: &Dense) -> Vec<f64> {
    fit(&model.rows(5), model.family, model.penalty()).unwrap().w
}

/// Column k of Jᵢ, or the label's where k = d: the central difference of two refits.
fn moved(model: &Dense, i: usize, k: usize) -> Vec<f64> {
    let refit = |sign: f64| {
        let mut changed = model.clone();
        let value = if k < model.d() { &mut changed.x[i * model.p + k] } else { &mut changed.y[i] };
        let before = *value;
        *value += sign * tolerance::REFIT_STEP * before.abs().max(1.0);
        let step = *value - before;
        (minimiser(&changed), step)
    };
    let ((up, h_up), (down, h_down)) = (refit(1.0), refit(-1.0));
    up.iter().zip(&down).map(|(up, down)| (up - down) / (h_up - h_down)).collect()
}

fn cases() -> Vec<Dense> {
    let mut out = vec![];
    for family in families() {
        out.push(model(family, true, 0.0, false));
        out.push(model(family, true, 0.05, true));
        out.push(model(family, false, 0.1, false));
    }
    out
}

#[test]
fn the_minimiser_moves_as_the_jacobian_says() {
    for model in cases() {
        let inverse = inverse(&model.hessian()).unwrap();
        for i in 0..model.n() {
            let jacobian = model.jacobian(i, true, &inverse);
            let size = spectral_norm(&jacobian);
            for k in 0..=model.d() {
                for (j, actual) in moved(&model, i, k).into_iter().enumerate() {
                    let error = (actual - jacobian[(j, k)]).abs();
                    assert!(
                        error <= tolerance::REFIT * size,
                        "{:?}: coefficient {j}, value {k} of record {i}: {actual}, J says {} ({error:.1e})",
                        model.family,
                        jacobian[(j, k)]
                    );
                }
            }
        }
    }
}

#[test]
fn leakage_is_the_norm_of_how_the_minimiser_moves() {
    for model in cases() {
        let (d, p, sigma) = (model.d(), model.p, 0.3);
        let attributes: Vec<_> =
            (0..d).map(|j| Directions::columns(j..j + 1, p)).chain([Directions::columns(0..d, p)]).collect();
        let fitted = fit(&model.rows(64), model.family, model.penalty()).unwrap();
        let by_refits: Vec<Mat<f64>> = (0..model.n())
            .map(|i| {
                let columns: Vec<Vec<f64>> = (0..=d).map(|k| moved(&model, i, k)).collect();
                Mat::from_fn(p, d + 1, |j, k| columns[k][j])
            })
            .collect();
        for label_secret in [true, false] {
            let release = Release { sigma, releases: 1, label_secret };
            let geometry = Geometry::new(&fitted, &attributes, release).unwrap();
            let rows = model.rows(64);
            let (block, mut records, mut set) =
                (&rows.blocks()[0], Records::default(), SetSums::new(p, true));
            geometry.records(block, &mut records);
            geometry.add_to_set(block, &records, None, &mut set);
            let secret = d + usize::from(label_secret);
            let part = |i: usize, from: usize, count: usize| by_refits[i].subcols(from, count).to_owned();
            let same = |actual: f64, jacobian: &Mat<f64>, size: f64, subject: &str| {
                let truth = spectral_norm(jacobian) / sigma;
                let error = (actual - truth).abs();
                assert!(
                    error <= tolerance::REFIT * size,
                    "{:?}: {subject}: {actual}, by refits {truth}",
                    model.family
                );
            };
            for (i, jacobian) in by_refits.iter().enumerate() {
                let size = records.eta[i].max(spectral_norm(jacobian) / sigma);
                same(records.eta[i], &part(i, 0, secret), size, "η");
                for j in 0..d {
                    same(records.attribute_eta[i * (d + 1) + j], &part(i, j, 1), size, "η of an attribute");
                }
                same(records.attribute_eta[i * (d + 1) + d], &part(i, 0, d), size, "η of all columns");
            }
            let all = |from, count| beside(&(0..model.n()).map(|i| part(i, from, count)).collect::<Vec<_>>());
            let whole = geometry.set_eta(&set).unwrap();
            same(whole, &all(0, secret), whole, "η of the data set");
            let over = geometry.attributes_over_set(&set).unwrap();
            (0..d).for_each(|j| same(over[j], &all(j, 1), whole, "η of an attribute over all records"));
            same(over[d], &all(0, d), whole, "η of all columns over all records");
        }
    }
}
