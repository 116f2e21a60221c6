//! Coefficients against scikit-learn's, on three tables, for every family, with and without penalty, weights
//! and intercept (`testdata/make_sklearn_golden.py`).
//!
//! The translation: Leakscope minimises `Σ ωℓ(wᵀx + b, y) + (nλ/2)‖w‖²`; `Ridge` has `alpha = nλ`,
//! `LogisticRegression` `C = 1/(nλ)`, `PoissonRegressor`, which divides by `Σω`, `alpha = nλ/Σω`. The
//! intercept is not penalised in any.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use leakscope_core::glm::{Family, Penalty, fit};
use leakscope_core::rows::InMemory;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Golden {
    tables: BTreeMap<String, Vec<Vec<f64>>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    table: String,
    family: Family,
    l2: f64,
    intercept: bool,
    y: Vec<f64>,
    weight: Vec<f64>,
    /// The intercept last.
    w: Vec<f64>,
}

#[test]
fn coefficients_are_those_of_scikit_learn() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/sklearn_golden.json");
    let golden: Golden = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((golden.tables.len(), golden.cases.len()), (3, 36));
    for case in golden.cases {
        let table = &golden.tables[&case.table];
        let one = case.intercept.then_some(1.0);
        let x: Vec<f64> = table.iter().flat_map(|row| row.iter().copied().chain(one)).collect();
        let rows = InMemory::from_matrix(&x, &case.y, &case.weight, 16);
        let actual = fit(&rows, case.family, Penalty::new(case.l2, case.intercept)).unwrap();
        // Differences in units of the predictions they make: a column may be in any unit.
        let (n, p) = (case.y.len(), case.w.len());
        let moved = |w: &[f64], j: usize| {
            (0..n).map(|i| (x[i * p + j] * w[j]).powi(2)).sum::<f64>().sqrt() / (n as f64).sqrt()
        };
        let scale = (0..p).map(|j| moved(&case.w, j)).fold(0.0, f64::max);
        let difference: Vec<f64> = actual.w.iter().zip(&case.w).map(|(a, b)| a - b).collect();
        for j in 0..p {
            let error = moved(&difference, j) / scale;
            assert!(
                error <= tolerance::SCIKIT_LEARN,
                "{}, {:?}, l2 {}: coefficient {j} is {}, scikit-learn has {} ({error:.1e})",
                case.table,
                case.family,
                case.l2,
                actual.w[j],
                case.w[j]
            );
        }
    }
}
