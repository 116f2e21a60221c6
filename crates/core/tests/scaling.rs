//! Counted scaling against refits: change one value of one record in its own units, standardise all columns again, fit again,
//! and see how the model in public units moved. No formula of leakage is used on the way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod raw;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{spectral_norm, squared};
use faer::Mat;
use leakscope_core::Error;
use leakscope_core::fisher::noise::Noise;
use leakscope_core::fisher::scaling::{Counted, CountedRecords, Depth};
use leakscope_core::fisher::{Directions, Geometry, Records, Release};
use leakscope_core::glm::Family;
use leakscope_core::random::Seeded;
use leakscope_core::release::Grid;
use leakscope_core::rows::{Block, Rows};
use leakscope_core::units::{PublicUnit, Scaling, Units, public_scale, public_sigma};
use raw::Raw;

/// Weights of values 0, 1, … 4 steps to one side that give a derivative to fourth order, times 12.
const ONE_SIDED: [(f64, f64); 5] = [(0.0, -25.0), (1.0, 48.0), (2.0, -36.0), (3.0, 16.0), (4.0, -3.0)];
/// The same of values to both sides.
const CENTRAL: [(f64, f64); 4] = [(-2.0, 1.0), (-1.0, -8.0), (1.0, 8.0), (2.0, -1.0)];

/// Column k of Jᵢ (the label's where k = d), in public units: a difference of refits, to fourth order. To one side where the label
/// is at the edge of what its family knows: beyond it the loss is not convex, and has no minimum.
fn moved(table: &Raw, units: &Units, i: usize, k: usize) -> Vec<f64> {
    let d = table.d;
    let (weights, side): (&[(f64, f64)], f64) = match table.family {
        Family::SquaredHinge | Family::Tweedie(_) if k == d && table.y[i] == 0.0 => (&ONE_SIDED, 1.0),
        Family::SquaredHinge if k == d => (&ONE_SIDED, -1.0),
        _ => (&CENTRAL, 1.0),
    };
    let at = |by: f64| {
        let mut changed = table.clone();
        if k < d {
            changed.x[i * d + k] += by * units.public()[k].unit;
        } else {
            changed.y[i] += by;
        }
        changed.model(Some(units)).fit.w
    };
    // A label of zero may move a log link by thousands of its own steps: the model itself is to move by little.
    let (here, mut h) = (at(0.0), side * tolerance::REFIT_STEP * 5.0);
    while at(h).iter().zip(&here).any(|(a, b)| (a - b).abs() > 1e-2) {
        h /= 8.0;
    }
    let mut column = vec![0.0; d + 1];
    for &(steps, weight) in weights {
        column.iter_mut().zip(at(steps * h)).for_each(|(v, w)| *v += weight * w / (12.0 * h));
    }
    column
}

fn cases() -> Vec<Raw> {
    let mut out = vec![];
    for (k, family) in dense::families().into_iter().enumerate() {
        for (l2, weighted, public_scaling) in
            [(0.3, false, false), (0.05, true, false), (0.2, true, true), (0.0, false, false)]
        {
            out.push(Raw::draw(17 + k as u64, family, (30, 4), l2, weighted, public_scaling));
        }
    }
    out
}

fn block_of(rows: &dyn Rows) -> Block {
    let mut all = Block::default();
    rows.fold(
        Vec::new,
        |part, block| {
            part.push(block.clone());
            Ok(())
        },
        |part: Vec<Block>| {
            for b in part {
                all.width = b.width;
                all.x.extend(b.x);
                all.y.extend(b.y);
                all.weight.extend(b.weight);
            }
            Ok(())
        },
    )
    .unwrap();
    all
}

#[test]
fn under_a_covariance_counted_leakage_is_how_the_whitened_model_moves() {
    for table in cases().into_iter().step_by(3) {
        let (units, model) = (table.units(), table.model(None));
        let (d, p) = (table.d, table.d + 1);
        let mut random = Seeded::new(5);
        let z = random.normals(p * p);
        let factor: Vec<f64> = (0..p * p)
            .map(|ij| match (ij / p).cmp(&(ij % p)) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 0.1 + z[ij].abs(),
                std::cmp::Ordering::Greater => z[ij],
            })
            .collect();
        let noise = Noise::from_factor(factor, p).unwrap();
        let release = Release { sigma: 0.5, releases: 1, label_secret: true };
        let attributes = [Directions::columns(0..1, p), Directions::columns(1..d, p)];
        let counted = Counted::under(&model, &units, &attributes, release, &noise).unwrap();
        let encoded = table.encoded();
        let block = block_of(&units.rows(&encoded));
        let mut actual = CountedRecords::default();
        counted.records(&block, Depth::Exact, &mut actual).unwrap();
        for i in (0..table.n()).step_by(7) {
            let columns: Vec<Vec<f64>> =
                (0..=d).map(|k| noise.whiten(&moved(&table, &units, i, k))).collect();
            let norm = |from: usize, to: usize| {
                2.0 * spectral_norm(&Mat::from_fn(p, to - from, |j, k| columns[from + k][j]))
            };
            let whole = norm(0, d + 1);
            let close = |actual: f64, truth: f64| (actual - truth).abs() <= tolerance::REFIT * whole;
            assert!(close(actual.eta[i], whole), "{:?}: {} by refits {whole}", table.family, actual.eta[i]);
            assert!(close(actual.attribute_eta[2 * i], norm(0, 1)));
            assert!(close(actual.attribute_eta[2 * i + 1], norm(1, d)));
        }
    }
}

#[test]
fn counted_leakage_is_how_the_model_moves_through_scaling_and_fit() {
    let mut understated: f64 = 1.0;
    for table in cases() {
        let (units, model) = (table.units(), table.model(None));
        let (d, p) = (table.d, table.d + 1);
        let encoded = table.encoded();
        let in_units = units.rows(&encoded);
        let block = block_of(&in_units);
        let jacobians: Vec<Mat<f64>> = (0..table.n())
            .map(|i| {
                let columns: Vec<Vec<f64>> = (0..=d).map(|k| moved(&table, &units, i, k)).collect();
                Mat::from_fn(p, d + 1, |j, k| columns[k][j])
            })
            .collect();
        let mut attributes: Vec<_> = (0..d).map(|j| Directions::columns(j..j + 1, p)).collect();
        attributes.push(Directions::columns(0..d, p));
        attributes.push(Directions { basis: vec![0.6, 0.0, 0.8, 0.0, 0.0], count: 1 });
        for label_secret in [true, false] {
            let release = Release { sigma: 0.3, releases: 2, label_secret };
            let gain = 2_f64.sqrt() / 0.3;
            let counted = Counted::new(&model, &units, &attributes, release).unwrap();
            let (mut exact, mut bounded) = (CountedRecords::default(), CountedRecords::default());
            counted.records(&block, Depth::Exact, &mut exact).unwrap();
            counted.records(&block, Depth::Bounded, &mut bounded).unwrap();
            for (i, jacobian) in jacobians.iter().enumerate() {
                let whole = gain * spectral_norm(jacobian);
                let close = |actual: f64, truth: f64, subject: &str| {
                    let error = (actual - truth).abs();
                    assert!(
                        error <= tolerance::REFIT * whole,
                        "{:?} λ {} {subject} of {i}: {actual}, by refits {truth}",
                        table.family,
                        table.l2
                    );
                };
                let secret = jacobian.subcols(0, d + usize::from(label_secret)).to_owned();
                close(exact.eta[i], gain * spectral_norm(&secret), "η");
                let dimensions = secret.ncols() as f64;
                let dfil = gain * gain * squared(&secret) / dimensions;
                assert!((exact.dfil[i] - dfil).abs() <= 4.0 * tolerance::REFIT * whole * whole);
                for j in 0..d {
                    let column = jacobian.subcols(j, 1).to_owned();
                    close(
                        exact.attribute_eta[i * (d + 2) + j],
                        gain * spectral_norm(&column),
                        "an attribute",
                    );
                }
                let data = jacobian.subcols(0, d).to_owned();
                close(exact.attribute_eta[i * (d + 2) + d], gain * spectral_norm(&data), "all columns");
                let mixed = Mat::from_fn(p, 1, |r, _| 0.6 * jacobian[(r, 0)] + 0.8 * jacobian[(r, 2)]);
                close(exact.attribute_eta[i * (d + 2) + d + 1], gain * spectral_norm(&mixed), "a direction");
                assert!(bounded.eta[i] >= exact.eta[i] * (1.0 - 1e-9), "{} {}", bounded.eta[i], exact.eta[i]);
                understated = understated.max(exact.eta[i] / exact.plain.eta[i]);
            }
        }
    }
    // What the term is for: taken as given, scaling hides leakage.
    assert!(understated > 1.2, "{understated}");
}

/// One column, fewer records than columns, weak and strong penalties.
#[test]
fn in_the_units_of_the_encoding_it_is_the_same_movement() {
    // x̃ = t x + o, so w = Mᵀw̃ has w_j = t_j w̃_j and the intercept w̃₀ + Σ o_j w̃_j, and ∂/∂x_j = t_j ∂/∂x̃_j.
    for table in cases() {
        let (public, d, p) = (table.units(), table.d, table.d + 1);
        let units = Units::of_encoding(table.units_of(), true).unwrap();
        let model = units.fit(&table.fit()).unwrap();
        let attributes: Vec<_> = (0..d).map(|j| Directions::columns(j..j + 1, p)).collect();
        let release = Release { sigma: 0.3, releases: 1, label_secret: true };
        let counted = Counted::new(&model, &units, &attributes, release).unwrap();
        let (block, mut actual) = (block_of(&table.encoded()), CountedRecords::default());
        counted.records(&block, Depth::Exact, &mut actual).unwrap();
        for i in 0..table.n() {
            let columns: Vec<Vec<f64>> = (0..=d)
                .map(|k| {
                    let moved = moved(&table, &public, i, k);
                    let unit = if k < d { public.stretch(k) } else { 1.0 };
                    let mut own: Vec<f64> = (0..d).map(|j| unit * public.stretch(j) * moved[j]).collect();
                    let shift: f64 = (0..d).map(|j| public.offset(j) * moved[j]).sum();
                    own.push(unit * (moved[d] + shift));
                    own
                })
                .collect();
            let whole = spectral_norm(&Mat::from_fn(p, d + 1, |j, k| columns[k][j])) / 0.3;
            assert!((actual.eta[i] - whole).abs() <= tolerance::REFIT * whole, "{} {whole}", actual.eta[i]);
            for (j, column) in columns[..d].iter().enumerate() {
                let truth = column.iter().map(|v| v * v).sum::<f64>().sqrt() / 0.3;
                let error = (actual.attribute_eta[i * d + j] - truth).abs();
                assert!(error <= tolerance::REFIT * whole, "{:?} column {j} of {i}: {truth}", table.family);
            }
        }
        assert!(Units::of_encoding(vec![Scaling::Own { mean: 0.0, deviation: 1.0 }], false).is_err());
        assert!(Units::of_encoding(vec![Scaling::Own { mean: 0.0, deviation: 0.0 }], true).is_err());
    }
}

#[test]
fn small_tables_of_every_shape_are_counted() {
    let mut tried = 0;
    for seed in 0..6 {
        for family in dense::families() {
            for (n, d) in [(4, 1), (9, 2), (6, 8), (25, 3)] {
                let l2 = [3.0, 0.1, 0.01][seed as usize % 3];
                let table = Raw::draw(100 + seed, family, (n, d), l2, seed % 2 == 1, false);
                if table.y.iter().all(|y| *y == table.y[0]) {
                    continue;
                }
                let (units, model, encoded) = (table.units(), table.model(None), table.encoded());
                let block = block_of(&units.rows(&encoded));
                let release = Release { sigma: 1.0, releases: 1, label_secret: true };
                let counted = Counted::new(&model, &units, &[], release).unwrap();
                let mut actual = CountedRecords::default();
                counted.records(&block, Depth::Exact, &mut actual).unwrap();
                for i in 0..n {
                    let columns: Vec<Vec<f64>> = (0..=d).map(|k| moved(&table, &units, i, k)).collect();
                    let truth = spectral_norm(&Mat::from_fn(d + 1, d + 1, |j, k| columns[k][j]));
                    let error = (actual.eta[i] / truth - 1.0).abs();
                    assert!(error < 1e-5, "{family:?} {n} × {d}, λ {l2}, {i}: {} {truth}", actual.eta[i]);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn every_penalised_small_table_is_fitted() {
    // Tables on which a Newton step may leave every record beyond a margin or a threshold, or where a mean runs to zero.
    for seed in 0..40 {
        for family in dense::families() {
            for (n, d) in [(4, 1), (9, 2), (6, 8), (25, 3)] {
                let l2 = [3.0, 0.1, 0.01, 1e-4, 1e-6][seed as usize % 5];
                let table = Raw::draw(100 + seed, family, (n, d), l2, seed % 2 == 1, false);
                if table.y.iter().all(|y| *y == table.y[0]) {
                    continue;
                }
                let actual = table.fit();
                assert!(actual.relative_gradient <= 1e-10, "{family:?} {n} × {d}, λ {l2}, seed {seed}");
                assert!(actual.iterations <= 40, "{family:?} {n} × {d}, λ {l2}: {}", actual.iterations);
            }
        }
    }
}

#[test]
fn given_scales_and_no_penalty_leave_nothing_to_count() {
    for (l2, public_scaling) in [(0.3, true), (0.0, false)] {
        let table = Raw::draw(5, Family::Logistic, (40, 3), l2, true, public_scaling);
        let (units, model, encoded) = (table.units(), table.model(None), table.encoded());
        let release = Release { sigma: 0.1, releases: 1, label_secret: true };
        let block = block_of(&units.rows(&encoded));
        let counted = Counted::new(&model, &units, &[Directions::columns(0..1, 4)], release).unwrap();
        for depth in [Depth::Exact, Depth::Bounded] {
            let (mut actual, mut plain) = (CountedRecords::default(), Records::default());
            counted.records(&block, depth, &mut actual).unwrap();
            counted.geometry().records(&block, &mut plain);
            assert_eq!(actual.eta, plain.eta);
            assert_eq!(actual.attribute_eta, plain.attribute_eta);
        }
    }
}

#[test]
fn a_model_in_public_units_is_the_same_model() {
    for family in dense::families() {
        let table = Raw::draw(3, family, (50, 4), 0.1, true, false);
        let (units, model, encoded) = (table.units(), table.model(None), table.encoded());
        let fitted = table.fit();
        let (mut a, mut b) = (block_of(&encoded), block_of(&units.rows(&encoded)));
        let dot = |x: &[f64], w: &[f64]| -> f64 { x.iter().zip(w).map(|(x, w)| x * w).sum() };
        for i in 0..table.n() {
            let (z, z2) = (dot(a.row(i), &fitted.w), dot(b.row(i), &model.fit.w));
            assert!((z - z2).abs() < 1e-11 * z.abs().max(1.0), "{z} {z2}");
            // And on the values as they were read.
            let published = units.published(&model.fit.w).unwrap();
            let z3 = dot(&table.x[i * 4..i * 4 + 4], &published.coefficients) + published.intercept;
            assert!((z - z3).abs() < 1e-9 * z.abs().max(1.0), "{z} {z3}");
        }
        // The Hessian from its definition, with the penalty of each column.
        for (block, fit, strength) in
            [(&mut a, &fitted, vec![50.0 * 0.1; 4]), (&mut b, &model.fit, model.strength.clone())]
        {
            for j in 0..5 {
                for k in 0..5 {
                    let mut h = if j == k { strength.get(j).copied().unwrap_or(0.0) } else { 0.0 };
                    for i in 0..table.n() {
                        let a = family.terms(dot(block.row(i), &fit.w), block.y[i]).a;
                        h += block.weight_of(i) * a * block.row(i)[j] * block.row(i)[k];
                    }
                    let actual = fit.hessian[j * 5 + k];
                    assert!((h - actual).abs() < 1e-9 * fit.hessian[j * 6].max(1.0), "{j} {k}: {h} {actual}");
                }
            }
        }
        // Leakage of the same release by the ordinary geometry is that of the given scaling.
        let release = Release { sigma: 0.1, releases: 1, label_secret: false };
        assert!(Geometry::new(&model.fit, &[], release).is_ok());
    }
}

#[test]
fn sigma_comes_from_a_grid_that_does_not_follow_the_data() {
    for k in -400..400_i32 {
        let grid = 2_f64.powf(f64::from(k) / 4.0);
        for sigma in [grid * 0.9999, grid * 0.85] {
            let actual = public_sigma(sigma).unwrap();
            assert!(actual >= sigma && (actual / grid - 1.0).abs() < 1e-14, "{sigma}: {actual}");
            assert_eq!(public_sigma(actual).unwrap(), actual, "on the grid it stays");
        }
    }
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(public_sigma(sigma), Err(Error::Setting { .. })));
    }
    assert_eq!(public_scale(13.0), 16.0);
    assert_eq!(public_scale(11.0), 8.0);
    assert_eq!([0.0, -2.0, f64::NAN, f64::INFINITY].map(public_scale), [1.0; 4]);
    assert!(public_scale(1e-320) > 0.0 && public_scale(1e308).is_finite());
}

#[test]
fn neighbouring_data_sets_are_released_on_one_lattice() {
    let table = Raw::draw(11, Family::Linear, (60, 4), 0.2, false, false);
    let units = table.units();
    let sigma = public_sigma(0.013).unwrap();
    let grid = Grid::new(sigma).unwrap();
    // Multiples of a step that only σ and the public units determine, for the table and all its neighbours.
    let on_lattice = |table: &Raw, seed: u64| {
        let w = table.model(Some(&units)).fit.w;
        let noisy = grid.release(&w, &mut Seeded::new(seed)).unwrap();
        let published = units.published(&noisy).unwrap();
        for (w, unit) in published.coefficients.iter().zip(units.public()) {
            let multiple = w / (grid.step / unit.unit);
            assert_eq!(multiple.fract(), 0.0, "{w} off the lattice");
        }
        assert_eq!((published.intercept / grid.step).fract(), 0.0, "{} off the lattice", published.intercept);
    };
    let deviation = |table: &Raw| match table.units_of()[0] {
        Scaling::Own { deviation, .. } => deviation,
        Scaling::Given { .. } => unreachable!("numbers are scaled by their own data"),
    };
    for i in 0..table.n() {
        let mut neighbour = table.clone();
        neighbour.x[i * 4] += 3.0 * units.public()[0].unit;
        // Its standard deviation, which the lattice of encoded units would have shown, is another.
        assert!(deviation(&neighbour) != deviation(&table));
        on_lattice(&neighbour, i as u64);
    }
    on_lattice(&table, 99);
}

#[test]
fn what_cannot_be_scaled_or_published_is_refused() {
    let own = |deviation| vec![Scaling::NONE, Scaling::Own { mean: 4.0, deviation }];
    assert_eq!(Units::rounded(own(0.0), true).unwrap_err(), Error::Unscaled { column: 1 });
    assert_eq!(Units::rounded(own(f64::NAN), true).unwrap_err(), Error::Unscaled { column: 1 });
    assert!(matches!(Units::rounded(own(1.0), false), Err(Error::NotApplicable { .. })));
    let odd = vec![PublicUnit { centre: 0.0, unit: 1.0 }, PublicUnit { centre: 0.0, unit: 3.0 }];
    assert!(matches!(Units::new(own(1.0), odd, true), Err(Error::OutOfRange { .. })));
    // A spread lost beside its mean: no lattice would hold the intercept.
    let far = vec![Scaling::Own { mean: 1e20, deviation: 1.0 }];
    assert!(matches!(Units::rounded(far, true), Err(Error::OutOfRange { .. })));
    assert!(Units::rounded(vec![Scaling::NONE], false).is_ok());
}

#[test]
fn columns_of_huge_and_tiny_scale_and_repeated_rows_are_counted_all_the_same() {
    let mut table = Raw::draw(8, Family::Linear, (24, 4), 0.3, false, false);
    for i in 0..table.n() {
        table.x[i * 4] *= 1e9;
        table.x[i * 4 + 1] *= 1e-9;
    }
    let (first, rest) = table.x.split_at_mut(4);
    rest[..4].copy_from_slice(first);
    let (units, model, encoded) = (table.units(), table.model(None), table.encoded());
    let block = block_of(&units.rows(&encoded));
    let release = Release { sigma: 1.0, releases: 1, label_secret: true };
    let counted = Counted::new(&model, &units, &[], release).unwrap();
    let mut actual = CountedRecords::default();
    counted.records(&block, Depth::Exact, &mut actual).unwrap();
    for i in 0..table.n() {
        let columns: Vec<Vec<f64>> = (0..=4).map(|k| moved(&table, &units, i, k)).collect();
        let truth = spectral_norm(&Mat::from_fn(5, 5, |j, k| columns[k][j]));
        assert!((actual.eta[i] / truth - 1.0).abs() < 1e-5, "{i}: {} {truth}", actual.eta[i]);
    }
}

/// What a record tells of the difference of two equal columns only the penalty holds back: no less than that is its η, however
/// many columns are between them.
#[test]
fn two_equal_columns_of_many_are_counted_however_far_apart_they_are() {
    for between in [2, 50, 101] {
        let d = 2 + between + 4;
        let mut table = Raw::draw(3, Family::Linear, (2 * d, d), 1e-3, false, false);
        for i in 0..table.n() {
            table.x[i * d + 2 + between] = table.x[i * d + 2];
        }
        let (units, model, encoded) = (table.units(), table.model(None), table.encoded());
        let block = block_of(&units.rows(&encoded));
        let mut basis = vec![0.0; d + 1];
        (basis[2], basis[2 + between]) = (std::f64::consts::FRAC_1_SQRT_2, -std::f64::consts::FRAC_1_SQRT_2);
        let difference = Directions { basis, count: 1 };
        let release = Release { sigma: 1.0, releases: 1, label_secret: true };
        let counted = Counted::new(&model, &units, &[difference], release).unwrap();
        let mut actual = CountedRecords::default();
        counted.records(&block, Depth::Exact, &mut actual).unwrap();
        for (i, (whole, part)) in actual.eta.iter().zip(&actual.attribute_eta).enumerate() {
            assert!(*whole >= part * (1.0 - 1e-9), "{between} between, record {i}: {whole} of {part}");
        }
    }
}
