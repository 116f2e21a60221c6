//! Models with a candidate in place against refits by a solver of the tests' own, on small tables where candidates
//! overshoot: each is judged by itself, so neither its neighbours nor the order of the rows matter.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;

use dense::Dense;
use leakscope_core::Error;
use leakscope_core::attack::{Secret, candidate_models};
use leakscope_core::bound::{Prior, RecordBounds};
use leakscope_core::glm::{Family, fit};
use leakscope_core::special::normal_cdf;
use proptest::prelude::*;

/// `x, c, y` as an audit encodes them: x with mean 0 and variance 1, an indicator of c = u, an intercept.
fn five_rows(reversed: bool) -> (Dense, Secret) {
    let mut rows = [(-1.0, 1, 6.0), (-1.6, 0, 0.0), (-2.9, 1, 64.0), (-0.4, 0, 0.0), (1.2, 1, 1.0)];
    if reversed {
        rows.reverse();
    }
    let mean = rows.iter().map(|row| row.0).sum::<f64>() / 5.0;
    let scale = (rows.iter().map(|row| (row.0 - mean).powi(2)).sum::<f64>() / 5.0).sqrt();
    let x = rows.iter().flat_map(|&(x, v, _)| [(x - mean) / scale, f64::from(1 - v), 1.0]).collect();
    let y = rows.iter().map(|row| row.2).collect();
    let data =
        Dense { family: Family::Poisson, intercept: true, l2: 0.001, p: 3, x, y, weight: vec![], w: vec![] };
    (data, Secret::category(1..2, vec![1.0, 0.0], &[2, 3]).unwrap())
}

fn refit(data: &Dense, secret: &Secret, i: usize, m: usize) -> Vec<f64> {
    let mut changed = data.clone();
    let (from, columns) = (i * data.p, secret.columns());
    changed.x[from + columns.start..from + columns.end].copy_from_slice(secret.candidate(m));
    changed.minimiser()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// How often the best attack against two candidates at this distance is right.
fn optimal(prior: &[f64], distance: f64, sigma: f64) -> f64 {
    let (d, lean) = (distance / sigma, (prior[0] / prior[1]).ln());
    prior[0] * normal_cdf(0.5 * d + lean / d) + prior[1] * normal_cdf(0.5 * d - lean / d)
}

#[test]
fn an_overshooting_candidate_does_not_pass_for_its_neighbours() {
    let mut bounds = vec![];
    for reversed in [false, true] {
        let (data, secret) = five_rows(reversed);
        let fitted = fit(&data.rows(5), data.family, data.penalty()).unwrap();
        let models = candidate_models(&data.rows(5), &fitted, &secret).unwrap();
        let prior = Prior::from_probabilities(secret.prior().to_vec()).unwrap();
        let mut records = RecordBounds::new(prior, &[0.5], 5, None).unwrap();
        let mut truth = 0.0;
        for i in 0..5 {
            let exact = [refit(&data, &secret, i, 0), refit(&data, &secret, i, 1)];
            for m in 0..2 {
                let off = distance(&models[2 * i + m], &exact[m]);
                assert!(
                    off <= 1e-8 * (1.0 + distance(&exact[m], &[0.0; 3])),
                    "record {i}, candidate {m}: {off:e}"
                );
            }
            truth += optimal(secret.prior(), distance(&exact[0], &exact[1]), 0.5) / 5.0;
            records.add(i as u64, 3, &[&models[2 * i][..], &models[2 * i + 1]].concat()).unwrap();
        }
        let bound = records.at_sigmas().unwrap()[0].bounds[0].mean.success.value;
        // 0.9474, where 0.9204 and with the rows reversed 0.9451 came out once. For two candidates the best bound is what
        // the best attack does, but for the rounding of two solvers.
        assert!((truth - 0.9474).abs() < 5e-5, "{truth}");
        assert!(bound >= truth - 1e-9, "the bound {bound} is below what the best attack does, {truth}");
        bounds.push(bound);
    }
    assert!((bounds[0] - bounds[1]).abs() < 1e-9, "{bounds:?}");
}

#[derive(Debug, Clone)]
struct Table {
    data: Dense,
    secret: Secret,
}

fn tables() -> impl Strategy<Value = Table> {
    // The oracle here is a plain Newton method, which has no curvature to start from where that jumps.
    let smooth = dense::families().into_iter().filter(|f| f.self_concordant()).collect::<Vec<_>>();
    let family = prop::sample::select(smooth);
    let rows = prop::collection::vec((-3.0..3.0_f64, -1.0..1.0_f64, 0..2_u8, 0.0..1.0_f64), 4..9);
    (family, rows, any::<bool>(), -3.0..0.0_f64).prop_map(|(family, rows, intercept, l2)| {
        let mut x = vec![];
        for &(a, b, c, _) in &rows {
            x.extend([a, b, f64::from(c)]);
            x.extend(intercept.then_some(1.0));
        }
        let y = rows.iter().map(|&(a, _, _, u)| match family {
            Family::Linear => 3.0 * u + a,
            Family::Logistic => f64::from(u8::from(u > 0.5)),
            // From none to many, as counts that some other column makes.
            Family::Poisson => (70.0 * u * u * u * u).floor(),
            Family::Gamma => 1e-3 + 70.0 * u * u * u * u,
            Family::Tweedie(_) => (70.0 * u * u * u * u - 1.0).max(0.0),
            Family::SquaredHinge => f64::from(u8::from(u > 0.5)),
            Family::Huber(_) => 3.0 * u * u * u + a,
        });
        let y = y.collect();
        let (l2, p) = (10.0_f64.powf(l2), 3 + usize::from(intercept));
        let data = Dense { family, intercept, l2, p, x, y, weight: vec![], w: vec![] };
        Table { data, secret: Secret::category(2..3, vec![0.0, 1.0], &[1, 1]).unwrap() }
    })
}

fn reversed(data: &Dense) -> Dense {
    let x = data.x.chunks_exact(data.p).rev().flatten().copied().collect();
    Dense { x, y: data.y.iter().rev().copied().collect(), ..data.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn candidates_are_refits_whatever_the_order_of_the_rows(table in tables()) {
        let Table { data, secret } = table;
        let all = |data: &Dense| {
            let fitted = fit(&data.rows(3), data.family, data.penalty())?;
            candidate_models(&data.rows(3), &fitted, &secret)
        };
        let models = match all(&data) {
            Ok(models) => models,
            // An error is an answer; wrong models are not. All zeros under a free intercept have no minimiser.
            Err(Error::NoConvergence { .. } | Error::Separable) if data.intercept => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let backwards = all(&reversed(&data)).unwrap();
        let n = data.n();
        for i in 0..n {
            for m in 0..2 {
                let exact = refit(&data, &secret, i, m);
                let size = 1.0 + distance(&exact, &vec![0.0; exact.len()]);
                let off = distance(&models[2 * i + m], &exact);
                prop_assert!(off <= 1e-7 * size, "{:?} record {i} candidate {m}: {off:e}", data.family);
                let other = distance(&models[2 * i + m], &backwards[2 * (n - 1 - i) + m]);
                prop_assert!(other <= 1e-7 * size, "{:?} record {i} candidate {m}: {other:e}", data.family);
            }
        }
    }
}
