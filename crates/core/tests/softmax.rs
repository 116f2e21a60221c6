//! Softmax regression: the minimiser, and its leakage against finite differences of refits and dense Jacobians.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{Draws, basis_matrix, beside, inverse, spectral_norm, squared};
use faer::Mat;
use leakscope_core::Error;
use leakscope_core::fisher::noise::Noise;
use leakscope_core::fisher::softmax::{SWITCH, SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::fisher::{Directions, Geometry, Records, Release};
use leakscope_core::glm::softmax::{
    MAX_CLASSES, SoftmaxFit, contrasts, count_classes, distance, evaluate, fit,
};
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_core::rows::{Block, InMemory, Rows};
use leakscope_core::units::{Scaling, Units};

#[derive(Debug, Clone)]
struct Table {
    classes: usize,
    p: usize,
    penalty: Penalty,
    x: Vec<f64>,
    y: Vec<f64>,
    weight: Vec<f64>,
}

impl Table {
    fn new(classes: usize, d: usize, intercept: bool, weighted: bool, l2: f64) -> Self {
        let mut draws = Draws(3 + classes as u64);
        let (mut x, mut y, mut weight) = (vec![], vec![], vec![]);
        for i in 0..12 * classes {
            let row: Vec<f64> = (0..d).map(|_| draws.normal()).collect();
            let z = row[0] + 0.4 * row[d - 1] + 0.8 * draws.normal();
            x.extend(&row);
            x.extend(intercept.then_some(1.0));
            // Every class occurs, and no two can be told apart exactly.
            let class = if i % 3 == 0 {
                i / 3 % classes
            } else {
                ((z + 1.5) / 3.0 * classes as f64).max(0.0) as usize
            };
            y.push(class.min(classes - 1) as f64);
            weight.push(0.5 + draws.uniform());
        }
        let weight = if weighted { weight } else { vec![] };
        Self { classes, p: d + usize::from(intercept), penalty: Penalty::new(l2, intercept), x, y, weight }
    }

    fn n(&self) -> usize {
        self.y.len()
    }

    fn d(&self) -> usize {
        self.penalty.data_width(self.p)
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.p..(i + 1) * self.p]
    }

    fn omega(&self, i: usize) -> f64 {
        self.weight.get(i).copied().unwrap_or(1.0)
    }

    fn rows(&self, block: usize) -> InMemory {
        InMemory::from_matrix(&self.x, &self.y, &self.weight, block)
    }

    fn fit(&self) -> SoftmaxFit {
        fit(&self.rows(7), self.penalty, MAX_CLASSES).unwrap()
    }

    /// How W moves with value j of record i, by refits: K·p numbers.
    fn moved(&self, i: usize, j: usize) -> Vec<f64> {
        let h = tolerance::REFIT_STEP;
        let side = |h: f64| {
            let mut other = self.clone();
            other.x[i * self.p + j] += h;
            other.fit().w
        };
        side(h).iter().zip(side(-h)).map(|(up, down)| (up - down) / (2.0 * h)).collect()
    }

    /// How W moves when h of record i's label goes to class `to`: a copy of weight h, since the loss is linear in the
    /// one-hot label. λ is scaled so that one row more does not change the penalty.
    fn relabelled(&self, i: usize, to: usize) -> Vec<f64> {
        let h = tolerance::REFIT_STEP;
        let side = |h: f64| {
            let mut other = self.clone();
            let row = self.row(i).to_vec();
            other.x.extend(row);
            other.y.push(to as f64);
            other.weight = (0..self.n()).map(|k| self.omega(k)).collect();
            other.weight[i] -= h * self.omega(i);
            other.weight.push(h * self.omega(i));
            other.penalty.l2 *= self.n() as f64 / (self.n() + 1) as f64;
            other.fit().w
        };
        side(h).iter().zip(side(-h)).map(|(up, down)| (up - down) / (2.0 * h)).collect()
    }

    /// `Jᵢ` by refits, label last in the coordinates of the contrasts, in switches between classes: Kp × (d + K − 1).
    fn jacobian(&self, i: usize) -> Mat<f64> {
        let (d, k, class) = (self.d(), self.classes - 1, self.y[i] as usize);
        let u = contrasts(self.classes);
        let mut columns: Vec<Vec<f64>> = (0..d).map(|j| self.moved(i, j)).collect();
        let towards: Vec<Vec<f64>> = (0..self.classes)
            .map(|to| if to == class { vec![0.0; self.classes * self.p] } else { self.relabelled(i, to) })
            .collect();
        for l in 0..k {
            let mut column = vec![0.0; self.classes * self.p];
            for (to, moved) in towards.iter().enumerate() {
                column.iter_mut().zip(moved).for_each(|(c, m)| *c += SWITCH * u[to * k + l] * m);
            }
            columns.push(column);
        }
        Mat::from_fn(self.classes * self.p, d + k, |r, c| columns[c][r])
    }
}

fn cases() -> Vec<Table> {
    vec![
        Table::new(3, 2, true, false, 0.02),
        Table::new(3, 2, true, true, 0.05),
        Table::new(4, 3, false, false, 0.1),
        Table::new(2, 2, true, true, 0.03),
        Table::new(3, 2, true, false, 0.0),
    ]
}

fn geometry(table: &Table, release: Release) -> (SoftmaxGeometry, Vec<Directions>) {
    let (d, p) = (table.d(), table.p);
    let attributes: Vec<_> =
        (0..d).map(|j| Directions::columns(j..j + 1, p)).chain([Directions::columns(0..d, p)]).collect();
    (SoftmaxGeometry::new(&table.fit(), &attributes, release).unwrap(), attributes)
}

#[test]
fn leakage_is_how_the_minimiser_moves() {
    for table in cases() {
        let jacobians: Vec<Mat<f64>> = (0..table.n()).map(|i| table.jacobian(i)).collect();
        let (d, k, sigma) = (table.d(), table.classes - 1, 0.4);
        for label_secret in [true, false] {
            let (geometry, attributes) = geometry(&table, Release { sigma, releases: 1, label_secret });
            let rows = table.rows(1000);
            let block = &rows.blocks()[0];
            let mut actual = SoftmaxRecords::default();
            geometry.records(block, &mut actual).unwrap();
            let secret = d + if label_secret { k } else { 0 };
            let part = |i: usize, from: usize, count: usize| jacobians[i].subcols(from, count).to_owned();
            for (i, jacobian) in jacobians.iter().enumerate() {
                let size = spectral_norm(jacobian) / sigma;
                let same = |actual: f64, truth: &Mat<f64>, subject: &str| {
                    let truth = spectral_norm(truth) / sigma;
                    assert!(
                        (actual - truth).abs() <= 3e-6 * size,
                        "{subject} of {i}: {actual}, by refits {truth}"
                    );
                };
                same(actual.eta[i], &part(i, 0, secret), "η");
                same(actual.label_eta[i], &part(i, d, k), "η of the label");
                for (a, directions) in attributes.iter().enumerate() {
                    let b = basis_matrix(&directions.basis, d, directions.count);
                    let eta = actual.attribute_eta[i * attributes.len() + a];
                    same(eta, &(part(i, 0, d) * b), "η of an attribute");
                }
                let dfil = squared(&part(i, 0, secret)) / (sigma * sigma * secret as f64);
                assert!((actual.dfil[i] / dfil - 1.0).abs() < 1e-4, "{} {dfil}", actual.dfil[i]);
            }
            let mut whole = geometry.set();
            table.rows(9).blocks().iter().for_each(|b| geometry.add_to_set(b, None, &mut whole));
            let all = beside(&(0..table.n()).map(|i| part(i, 0, secret)).collect::<Vec<_>>());
            let eta = geometry.set_eta(&whole).unwrap();
            assert!((eta * sigma / spectral_norm(&all) - 1.0).abs() < 1e-5);
            let mut sets = geometry.attribute_sets();
            for block in table.rows(9).blocks() {
                let mut part = geometry.attribute_sets();
                geometry.add_to_attribute_sets(block, &mut part);
                sets.merge(&part);
            }
            for (eta, directions) in geometry.attributes_over_set(sets).unwrap().iter().zip(&attributes) {
                let b = basis_matrix(&directions.basis, d, directions.count);
                let all: Vec<_> = (0..table.n()).map(|i| part(i, 0, d) * &b).collect();
                assert!((eta * sigma / spectral_norm(&beside(&all)) - 1.0).abs() < 1e-5);
            }
            let information: f64 = actual.information.iter().sum();
            let dfil: f64 = actual.dfil.iter().map(|v| v * secret as f64).sum();
            assert!((information / dfil - 1.0).abs() < 1e-9 && actual.information.len() == secret);
            let picked = [1, 4, 7];
            let mut some = geometry.set();
            geometry.add_to_set(block, Some(&picked), &mut some);
            assert_eq!(some.records(), 3);
            let group = beside(&picked.iter().map(|&i| part(i, 0, secret)).collect::<Vec<_>>());
            assert!((geometry.set_eta(&some).unwrap() * sigma / spectral_norm(&group) - 1.0).abs() < 1e-5);
        }
    }
}

/// The Jacobian as it is written for all K classes, H with the penalty alone against the common direction.
#[test]
fn leakage_is_that_of_dense_jacobians_in_all_coordinates() {
    for (classes, d) in [(2, 1), (3, 4), (6, 3)] {
        let table = Table::new(classes, d, false, true, 0.07);
        let fitted = table.fit();
        let kp = classes * d;
        let pi = fitted.probabilities(&table.x);
        let s = |i: usize, a: usize, b: usize| {
            let (pa, pb) = (pi[i * classes + a], pi[i * classes + b]);
            if a == b { pa * (1.0 - pa) } else { -pa * pb }
        };
        let mut h = Mat::<f64>::zeros(kp, kp);
        for i in 0..table.n() {
            let x = table.row(i);
            for r in 0..kp {
                for c in 0..kp {
                    h[(r, c)] += table.omega(i) * s(i, r / d, c / d) * x[r % d] * x[c % d];
                }
            }
        }
        (0..kp).for_each(|r| h[(r, r)] += table.n() as f64 * 0.07);
        let inverse = inverse(&h).unwrap();
        let release = Release { sigma: 1.3, releases: 2, label_secret: false };
        let (geometry, _) = geometry(&table, release);
        let mut actual = SoftmaxRecords::default();
        geometry.records(&table.rows(1000).blocks()[0], &mut actual).unwrap();
        for i in 0..table.n() {
            let inner = Mat::from_fn(kp, d, |r, j| {
                let (a, l) = (r / d, r % d);
                let rho = pi[i * classes + a] - f64::from(u8::from(table.y[i] as usize == a));
                let sw: f64 = (0..classes).map(|b| s(i, a, b) * fitted.w[b * d + j]).sum();
                if l == j { rho + sw * table.row(i)[l] } else { sw * table.row(i)[l] }
            });
            let eta = table.omega(i) * 2_f64.sqrt() / 1.3 * spectral_norm(&(&inverse * inner));
            assert!((actual.eta[i] / eta - 1.0).abs() < 1e-9, "{} {eta}", actual.eta[i]);
        }
    }
}

#[test]
fn two_classes_are_the_logistic_model_with_half_the_penalty() {
    let table = Table::new(2, 3, true, true, 0.08);
    let fitted = table.fit();
    let logistic = glm::fit(&table.rows(7), Family::Logistic, Penalty::new(0.04, true)).unwrap();
    for j in 0..table.p {
        assert!((fitted.w[table.p + j] - fitted.w[j] - logistic.w[j]).abs() < 1e-9);
    }
    assert!((fitted.mean_loss - logistic.mean_loss).abs() < 1e-11);
    let rows = table.rows(1000);
    // Noise σ on both vectors is √2σ on their difference.
    for label_secret in [false, true] {
        let release = Release { sigma: 0.5, releases: 1, label_secret };
        let (geometry, attributes) = geometry(&table, release);
        let mut actual = SoftmaxRecords::default();
        geometry.records(&rows.blocks()[0], &mut actual).unwrap();
        let twice = Release { sigma: 0.5 * 2_f64.sqrt(), ..release };
        let mut truth = Records::default();
        let model = Geometry::new(&logistic, &attributes, twice).unwrap();
        model.records(&rows.blocks()[0], &mut truth);
        for i in 0..table.n() {
            assert!((actual.eta[i] / truth.eta[i] - 1.0).abs() < 1e-8);
            assert!((actual.dfil[i] / truth.dfil[i] - 1.0).abs() < 1e-8);
            assert!((actual.loss[i] - truth.loss[i]).abs() < 1e-9);
            assert!((actual.label_eta[i] / model.label_eta(&truth, i) - 1.0).abs() < 1e-8);
        }
        let pairs = actual.attribute_eta.iter().zip(&truth.attribute_eta);
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-8 * a.max(*b)));
    }
}

/// Columns that are standardised by their own data, and again for every moved record: counted leakage against refits.
#[test]
fn scaling_by_own_data_is_counted() {
    for (table, tolerance) in
        [(Table::new(3, 2, true, false, 0.3), 3e-6), (Table::new(4, 3, true, true, 0.1), 3e-6)]
    {
        let (n, p, d) = (table.n(), table.p, table.d());
        let moments = |x: &[f64], j: usize| {
            let mean = (0..n).map(|i| x[i * p + j]).sum::<f64>() / n as f64;
            (mean, ((0..n).map(|i| (x[i * p + j] - mean).powi(2)).sum::<f64>() / n as f64).sqrt())
        };
        // The model of raw columns in raw units, fitted in standardised ones.
        let in_raw_units = |x: &[f64]| {
            let mut scaled = table.clone();
            for j in 0..d {
                let (mean, sd) = moments(x, j);
                (0..n).for_each(|i| scaled.x[i * p + j] = (x[i * p + j] - mean) / sd);
            }
            let mut w = scaled.fit().w;
            for row in w.chunks_exact_mut(p) {
                for j in 0..d {
                    let (mean, sd) = moments(x, j);
                    row[j] /= sd;
                    row[d] -= row[j] * mean;
                }
            }
            (w, scaled)
        };
        let raw: Vec<f64> = (0..n * p)
            .map(|ij| if ij % p == d { 1.0 } else { 2.0 * table.x[ij] + 0.7 * (ij % p) as f64 })
            .collect();
        let (_, scaled) = in_raw_units(&raw);
        let scaling: Vec<Scaling> = (0..d)
            .map(|j| {
                let (mean, deviation) = moments(&raw, j);
                Scaling::Own { mean, deviation }
            })
            .collect();
        let units = Units::rounded(scaling, true).unwrap();
        let fitted = units.softmax(&scaled.fit()).unwrap();
        let sigma = 0.6;
        let release = Release { sigma, releases: 1, label_secret: false };
        let attributes: Vec<_> = (0..d).map(|j| Directions::columns(j..j + 1, p)).collect();
        let geometry =
            SoftmaxGeometry::new(&fitted.fit, &attributes, release).unwrap().with_units(&units).unwrap();
        let mut in_units = Block::default();
        let rows = scaled.rows(1000);
        let copied = |state: &mut Block, block: &Block| {
            state.clone_from(block);
            Ok(())
        };
        let kept = |block| {
            in_units = block;
            Ok(())
        };
        units.rows(&rows).as_rows().fold(Block::default, copied, kept).unwrap();
        let (mut actual, mut plain) = (SoftmaxRecords::default(), SoftmaxRecords::default());
        geometry.counted(&in_units, &mut actual).unwrap();
        geometry.records(&in_units, &mut plain).unwrap();
        let mut differ = false;
        for i in 0..n {
            // In public units: a step of h there is h·u of the raw column.
            let mut columns: Vec<Vec<f64>> = vec![];
            for j in 0..d {
                let unit = units.public()[j].unit;
                let h = tolerance::REFIT_STEP;
                let side = |h: f64| {
                    let mut x = raw.clone();
                    x[i * p + j] += h * unit;
                    let mut w = in_raw_units(&x).0;
                    for row in w.chunks_exact_mut(p) {
                        for j in 0..d {
                            row[d] += row[j] * units.public()[j].centre;
                            row[j] *= units.public()[j].unit;
                        }
                    }
                    w
                };
                let moved = side(h).iter().zip(side(-h)).map(|(up, down)| (up - down) / (2.0 * h)).collect();
                columns.push(moved);
            }
            let jacobian = Mat::from_fn(table.classes * p, d, |r, c| columns[c][r]);
            let truth = spectral_norm(&jacobian) / sigma;
            assert!((actual.eta[i] - truth).abs() <= tolerance * truth, "{i}: {} {truth}", actual.eta[i]);
            differ |= (plain.eta[i] / truth - 1.0).abs() > 0.01;
            for j in 0..d {
                let truth = spectral_norm(&jacobian.subcols(j, 1).to_owned()) / sigma;
                assert!(
                    (actual.attribute_eta[i * d + j] - truth).abs()
                        <= tolerance * spectral_norm(&jacobian) / sigma
                );
            }
        }
        assert!(differ, "the scaling makes a difference here");
    }
}

/// Separable classes and next to no penalty: the fit goes on until predictors stand still.
#[test]
fn separable_classes_with_a_tiny_penalty_settle() {
    let x = [-3.0, -2.0, -2.5, 0.0, 0.3, -0.2, 2.0, 3.0, 2.5].map(|v: f64| [v, v * v - 2.0, 1.0]).concat();
    let y = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0];
    let rows = InMemory::from_matrix(&x, &y, &[], 4);
    for l2 in [1e-3, 1e-6, 1e-9] {
        let penalty = Penalty::new(l2, true);
        let fitted = fit(&rows, penalty, 9).unwrap();
        assert!(fitted.unsettled <= 1e-6, "{l2}: {}", fitted.unsettled);
        // Half a Newton step away it would come back: the same minimiser from elsewhere.
        let mut other = fitted.w.clone();
        other.iter_mut().enumerate().for_each(|(j, w)| *w *= 1.0 + 0.01 * (j % 3) as f64);
        let elsewhere = evaluate(&rows, penalty, &other, 9).unwrap();
        assert!(elsewhere.objective > fitted.objective);
        let (relative, excess) = distance(&elsewhere, &fitted);
        assert!(relative > 1e-3 && excess > 0.0);
        let geometry =
            SoftmaxGeometry::new(&fitted, &[], Release { sigma: 1.0, releases: 1, label_secret: true })
                .unwrap();
        let mut records = SoftmaxRecords::default();
        geometry.counted(&rows.blocks()[0], &mut records).unwrap();
        assert!(records.eta.iter().all(|v| v.is_finite() && *v > 0.0));
    }
}

#[test]
fn the_minimiser_is_stationary_and_sums_to_zero() {
    for table in cases() {
        let fitted = table.fit();
        let (classes, p, d) = (table.classes, table.p, table.d());
        let pi = fitted.probabilities(&table.x);
        for a in 0..classes {
            for j in 0..p {
                let mut gradient: f64 = (0..table.n())
                    .map(|i| {
                        let rho = pi[i * classes + a] - f64::from(u8::from(table.y[i] as usize == a));
                        table.omega(i) * rho * table.row(i)[j]
                    })
                    .sum();
                if j < d {
                    gradient += table.n() as f64 * table.penalty.l2 * fitted.w[a * p + j];
                }
                assert!(gradient.abs() < 1e-7, "{gradient}");
            }
        }
        (0..p).for_each(|j| assert!((0..classes).map(|a| fitted.w[a * p + j]).sum::<f64>().abs() < 1e-12));
        assert!(
            (0..table.n())
                .all(|i| (pi[i * classes..(i + 1) * classes].iter().sum::<f64>() - 1.0).abs() < 1e-12)
        );
        let back = fitted.reduced(&fitted.w);
        assert!(back.iter().zip(&fitted.theta).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn shaped_noise_is_isotropic_noise_on_whitened_coefficients() {
    let table = Table::new(3, 2, true, false, 0.05);
    let fitted = table.fit();
    let q = fitted.coefficients();
    let release = Release { sigma: 0.5, releases: 1, label_secret: true };
    let noise = Noise::isotropic(3.0, q).unwrap();
    let under = SoftmaxGeometry::under(&fitted, &[], release, &noise).unwrap();
    let plain = SoftmaxGeometry::new(&fitted, &[], Release { sigma: 1.5, ..release }).unwrap();
    let rows = table.rows(1000);
    let (mut a, mut b) = (SoftmaxRecords::default(), SoftmaxRecords::default());
    under.records(&rows.blocks()[0], &mut a).unwrap();
    plain.records(&rows.blocks()[0], &mut b).unwrap();
    assert!(a.eta.iter().zip(&b.eta).all(|(a, b)| (a / b - 1.0).abs() < 1e-10));
    assert!(SoftmaxGeometry::under(&fitted, &[], release, &Noise::isotropic(1.0, 2).unwrap()).is_err());
}

#[test]
fn classes_that_make_no_model_are_refused() {
    let ask = |y: &[f64], most: usize| {
        let x: Vec<f64> = (0..y.len()).map(|i| ((i * 7 + 3) % 11) as f64).collect();
        fit(&InMemory::from_matrix(&x, y, &[], 4), Penalty::new(0.1, false), most).unwrap_err()
    };
    assert_eq!(ask(&[0.0, 0.0, 1.0, 1.0, 2.0], 9), Error::RareClass { class: 2, records: 1 });
    assert_eq!(ask(&[0.0, 0.0, 2.0, 2.0], 9), Error::RareClass { class: 1, records: 0 });
    for (y, most) in [
        (vec![0.0, 1.0, 2.0, 3.0], 3),
        (vec![0.0; 4], 9),
        (vec![0.5, 1.0], 9),
        (vec![-1.0, 1.0], 9),
        (vec![f64::NAN, 1.0], 9),
    ] {
        assert!(matches!(ask(&y, most), Error::OutOfRange { .. }), "{y:?}");
    }
    assert_eq!(fit(&InMemory::default(), Penalty::new(0.1, false), 9).unwrap_err(), Error::Empty);
    let separable = InMemory::from_matrix(&[-2.0, -1.0, 1.0, 2.0], &[0.0, 0.0, 1.0, 1.0], &[], 4);
    assert_eq!(fit(&separable, Penalty::new(0.0, false), 9).unwrap_err(), Error::Separable);
    assert_eq!(count_classes(&separable, 9).unwrap(), vec![2, 2]);
    let twice =
        InMemory::from_matrix(&[1.0, 2.0, 2.0, 4.0, 3.0, 6.0, 0.5, 1.0], &[0.0, 1.0, 0.0, 1.0], &[], 4);
    let error = fit(&twice, Penalty::new(0.0, false), 9).unwrap_err();
    assert_eq!(error, Error::Singular { column: 1, of: vec![0] });
}
