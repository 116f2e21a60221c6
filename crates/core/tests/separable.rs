//! η of nearly separable logistic models against the definition at 110 digits (`testdata/make_separable_golden.py`):
//! slopes are tiny there, so a gradient that is small beside the labels is not small beside them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use leakscope_core::fisher::{Geometry, Records, Release};
use leakscope_core::glm::{Family, Fit, Penalty, fit};
use leakscope_core::rows::InMemory;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
    l2: f64,
    intercept: bool,
    w: Vec<f64>,
    eta: Vec<f64>,
    condition: f64,
}

fn all() -> Vec<Golden> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/separable_golden.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn model(golden: &Golden) -> (InMemory, Fit) {
    let x: Vec<f64> = golden.x.iter().flatten().copied().collect();
    let rows = InMemory::from_matrix(&x, &golden.y, &[], 5);
    let fitted = fit(&rows, Family::Logistic, Penalty::new(golden.l2, golden.intercept)).unwrap();
    (rows, fitted)
}

fn largest(actual: &[f64], truth: &[f64]) -> f64 {
    actual.iter().zip(truth).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
}

#[test]
fn eta_is_as_exact_as_promised_and_says_how_exact_it_is() {
    let golden = all();
    assert!(golden.len() > 50 && golden.iter().any(|g| g.l2 < 1e-13));
    for (k, golden) in golden.iter().enumerate() {
        let (rows, fitted) = model(golden);
        let geometry =
            Geometry::new(&fitted, &[], Release { sigma: 1.0, releases: 1, label_secret: true }).unwrap();
        let (mut etas, mut records) = (vec![], Records::default());
        for block in rows.blocks() {
            geometry.eta(block, &mut records);
            etas.extend_from_slice(&records.eta);
        }
        let (error, stated) = (largest(&etas, &golden.eta), geometry.error());
        let case = format!("table {k}, l2 {}, condition {:.1e}", golden.l2, golden.condition);
        println!(
            "{case}: η off by {error:.1e}, stated {stated:.1e}, coefficients by {:.1e}",
            largest(&fitted.w, &golden.w)
        );
        assert!(error <= tolerance::promised(golden.condition), "{case}: η off by {error:e}");
        assert!(error <= stated, "{case}: off by {error:e}, {stated:e} stated");
        assert!(stated <= 1e-10 * golden.condition, "{case}: {stated:e} stated, off by {error:e}");
    }
}

#[test]
fn a_penalty_beyond_the_range_of_squares_gives_numbers() {
    let x = [-1.0, 1.0, 0.5, 1.0, 2.0, 1.0, 3.0, 1.0];
    let y = [0.0, 1.0, 0.0, 1.0];
    for family in [Family::Linear, Family::Logistic, Family::Poisson] {
        for intercept in [true, false] {
            for l2 in [1e300, 1e200, 1e-300, 1e-200] {
                let rows = InMemory::from_matrix(&x, &y, &[], 4);
                let Ok(fitted) = fit(&rows, family, Penalty::new(l2, intercept)) else { continue };
                let release = Release { sigma: 1.0, releases: 1, label_secret: true };
                let geometry = Geometry::new(&fitted, &[], release).unwrap();
                let mut records = Records::default();
                geometry.records(&rows.blocks()[0], &mut records);
                assert!(records.eta.iter().all(|eta| eta.is_finite() && *eta >= 0.0), "{family:?} {l2}");
                if l2 > 1.0 && !intercept {
                    // H = nλ: J = (aw xᵀ + rI, −x)/nλ, and w is nothing.
                    for i in 0..4 {
                        let (x, r) = (&x[2 * i..2 * i + 2], family.terms(0.0, y[i]).r);
                        let truth = (x[0] * x[0] + x[1] * x[1] + r * r).sqrt() / (4.0 * l2);
                        assert!((records.eta[i] / truth - 1.0).abs() < 1e-13, "{family:?} {l2}");
                    }
                }
            }
        }
    }
}
