//! Leakage and coefficients against the definition in high precision: `testdata/make_glm_golden.py` builds
//! every Jacobian with 80 digits and rounds once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::sum_to_zero;
use leakscope_core::fisher::{Directions, Geometry, Records, Release, SetSums};
use leakscope_core::glm::{Family, Fit, Parameter, Penalty, fit};
use leakscope_core::rows::{InMemory, Rows};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    name: String,
    family: Family,
    intercept: bool,
    l2: f64,
    sigma: f64,
    releases: u32,
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
    weight: Vec<f64>,
    block: Option<(usize, usize)>,
    expected: Expected,
}

#[derive(Deserialize)]
struct Expected {
    w: Vec<f64>,
    condition: f64,
    scaled_condition: f64,
    loss: Vec<f64>,
    gradient_norm: Vec<f64>,
    eta_secret: Vec<f64>,
    eta_public: Vec<f64>,
    dfil_secret: Vec<f64>,
    dfil_public: Vec<f64>,
    dataset_eta_secret: f64,
    dataset_eta_public: f64,
    group_eta_secret: f64,
    group_eta_public: f64,
    /// Records × (single columns, then the block, then the block with its sum kept).
    attribute_eta: Vec<Vec<f64>>,
    attribute_eta_over_all: Vec<f64>,
}

impl Golden {
    fn all() -> Vec<Self> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/glm_golden.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn rows(&self, block_rows: usize) -> InMemory {
        let one = self.intercept.then_some(1.0);
        let x: Vec<f64> = self.x.iter().flat_map(|row| row.iter().copied().chain(one)).collect();
        InMemory::from_matrix(&x, &self.y, &self.weight, block_rows)
    }

    fn fit(&self, block_rows: usize) -> Fit {
        let penalty = Penalty::new(self.l2, self.intercept);
        fit(&self.rows(block_rows), self.family, penalty).unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    fn attributes(&self) -> Vec<Directions> {
        let (d, p) = (self.x[0].len(), self.expected.w.len());
        let mut out: Vec<_> = (0..d).map(|j| Directions::columns(j..j + 1, p)).collect();
        if let Some((low, high)) = self.block {
            out.push(Directions::columns(low..high, p));
            out.push(Directions { basis: sum_to_zero(low..high, p), count: high - low - 1 });
        }
        out
    }

    fn geometry(&self, fit: &Fit, label_secret: bool) -> Geometry {
        let release = Release { sigma: self.sigma, releases: self.releases, label_secret };
        Geometry::new(fit, &self.attributes(), release).unwrap()
    }

    /// The promise is in terms of cond(H); columns in other units are scaled first, so the smaller of the
    /// condition numbers before and after is held to.
    fn condition(&self) -> f64 {
        self.expected.condition.min(self.expected.scaled_condition)
    }

    fn close(&self, subject: &str, actual: f64, truth: f64, slack: f64) {
        let allowed = tolerance::promised(self.condition()) * truth.abs() + slack;
        let error = (actual - truth).abs();
        assert!(
            error <= allowed,
            "{}: {subject} is {actual:e}, should be {truth:e}: {error:.2e} > {allowed:.2e}",
            self.name
        );
    }
}

#[test]
fn there_are_golden_problems_of_every_kind() {
    let all = Golden::all();
    let parameter = |v| Parameter::new(v).unwrap();
    let more =
        [Family::Gamma, Family::Tweedie(parameter(1.5)), Family::SquaredHinge, Family::Huber(parameter(1.5))];
    for family in [Family::Linear, Family::Logistic, Family::Poisson].into_iter().chain(more) {
        for intercept in [true, false] {
            assert!(all.iter().any(|g| g.family == family && g.intercept == intercept));
        }
        assert!(all.iter().any(|g| g.family == family && g.expected.condition < 100.0));
    }
    assert!(all.iter().any(|g| (3e5..3e6).contains(&g.condition())));
    assert!(all.iter().any(|g| (3e8..3e9).contains(&g.condition())));
    assert!(all.iter().any(|g| g.expected.condition > 1e20 && g.condition() < 100.0));
}

#[test]
fn coefficients_are_the_minimiser() {
    for golden in Golden::all() {
        let fit = golden.fit(5);
        // In units where the Hessian has a unit diagonal: a column in other units changes neither side.
        let p = fit.w.len();
        let scaled =
            |w: &[f64]| -> f64 { (0..p).map(|j| w[j].powi(2) * fit.hessian[j * p + j]).sum::<f64>().sqrt() };
        let error: Vec<f64> = fit.w.iter().zip(&golden.expected.w).map(|(a, b)| a - b).collect();
        golden.close(
            "the error of w",
            scaled(&error),
            0.0,
            tolerance::promised(golden.condition()) * scaled(&golden.expected.w),
        );
    }
}

#[test]
fn records_and_attributes_match_the_definition() {
    for golden in Golden::all() {
        let (fit, expected) = (golden.fit(7), &golden.expected);
        for label in [true, false] {
            let geometry = golden.geometry(&fit, label);
            golden.close(
                "cond(H)",
                geometry.condition(),
                expected.condition,
                tolerance::CONDITION * expected.condition,
            );
            let (eta, dfil) = if label {
                (&expected.eta_secret, &expected.dfil_secret)
            } else {
                (&expected.eta_public, &expected.dfil_public)
            };
            let mut records = Records::default();
            for block in golden.rows(7).blocks() {
                geometry.records(block, &mut records);
                for k in 0..block.len() {
                    let i = block.first_row as usize + k;
                    golden.close(&format!("η of record {i}, label {label}"), records.eta[k], eta[i], 0.0);
                    // A square has twice the relative error.
                    let slack = tolerance::promised(golden.condition()) * dfil[i];
                    golden.close(
                        &format!("dFIL of record {i}, label {label}"),
                        records.dfil[k],
                        dfil[i],
                        slack,
                    );
                    let of_record = tolerance::of_the_record(golden.condition()) * expected.eta_public[i];
                    let count = geometry.attribute_count();
                    assert_eq!(expected.attribute_eta[i].len(), count);
                    for (j, &truth) in expected.attribute_eta[i].iter().enumerate() {
                        let actual = records.attribute_eta[k * count + j];
                        golden.close(&format!("η of attribute {j} of record {i}"), actual, truth, of_record);
                    }
                }
            }
        }
    }
}

#[test]
fn losses_and_gradients_match_the_definition() {
    for golden in Golden::all() {
        let geometry = golden.geometry(&golden.fit(64), true);
        let mut records = Records::default();
        geometry.records(&golden.rows(64).blocks()[0], &mut records);
        let (loss, gradient) = (&golden.expected.loss, &golden.expected.gradient_norm);
        // Both come from z − y or s(z) − y, known to the rounding of z and y.
        let size = golden.y.iter().fold(1.0_f64, |m, y| m.max(y.abs()));
        for i in 0..golden.y.len() {
            let slack = tolerance::promised(golden.condition()) * size;
            golden.close(&format!("loss of record {i}"), records.loss[i], loss[i], slack * size);
            let x = (golden.x[i].iter().map(|v| v * v).sum::<f64>() + f64::from(u8::from(golden.intercept)))
                .sqrt();
            golden.close(
                &format!("gradient of record {i}"),
                records.gradient_norm[i],
                gradient[i],
                slack * x,
            );
        }
    }
}

#[test]
fn sets_match_the_definition() {
    for golden in Golden::all() {
        let (fit, expected) = (golden.fit(4), &golden.expected);
        let (n, p) = (golden.y.len(), fit.w.len());
        for label in [true, false] {
            let geometry = golden.geometry(&fit, label);
            let (mut whole, mut group) = (SetSums::new(p, true), SetSums::new(p, false));
            let mut records = Records::default();
            for block in golden.rows(4).blocks() {
                geometry.records(block, &mut records);
                geometry.add_to_set(block, &records, None, &mut whole);
                let first = block.first_row as usize;
                let half: Vec<usize> = (0..block.len()).filter(|k| first + k < n / 2).collect();
                geometry.add_to_set(block, &records, Some(&half), &mut group);
            }
            assert_eq!((whole.records(), group.records()), (golden.rows(4).len(), n as u64 / 2));
            let (all, half) = if label {
                (expected.dataset_eta_secret, expected.group_eta_secret)
            } else {
                (expected.dataset_eta_public, expected.group_eta_public)
            };
            golden.close("η of the data set", geometry.set_eta(&whole).unwrap(), all, 0.0);
            golden.close("η of the first half", geometry.set_eta(&group).unwrap(), half, 0.0);
            let over = geometry.attributes_over_set(&whole).unwrap();
            let of_all = tolerance::of_the_record(golden.condition()) * expected.dataset_eta_public;
            assert_eq!(over.len(), expected.attribute_eta_over_all.len());
            for (j, (&actual, &truth)) in over.iter().zip(&expected.attribute_eta_over_all).enumerate() {
                golden.close(&format!("η of attribute {j} over all records"), actual, truth, of_all);
            }
        }
    }
}
