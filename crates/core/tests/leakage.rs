//! Leakage of random models, ordinary and degenerate, against dense Jacobians; the laws it obeys; the limits
//! in closed form.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::{Dense, basis_matrix, beside, inverse, spectral_norm, squared, sum_to_zero};
use faer::Mat;
use leakscope_core::Error;
use leakscope_core::error::Setting;
use leakscope_core::fisher::{Directions, Geometry, Records, Release, SetSums};
use leakscope_core::glm::{Family, evaluate};
use leakscope_core::linalg::dot;
use leakscope_core::rows::Block;
use proptest::prelude::*;

/// Entries over several scales, often zero or repeated.
fn entry() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -2.0..2.0, 1 => Just(0.0), 1 => Just(0.5), 1 => (-1.0_f64..1.0).prop_map(|x| x * 1e-4)]
}

/// What becomes of the target of a linear model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    AsDrawn,
    /// `y = wᵀx`: r = 0, exactly.
    Fitted,
    /// `y = 2wᵀx(1 + δ)`: with one column and no intercept `a x w + r` nearly vanishes.
    Cancels,
}

/// A model at coefficients that need not be its minimiser: J is defined there all the same, and w, r and x
/// can be driven to zero one by one.
fn model() -> impl Strategy<Value = Dense> {
    let sizes = (1_usize..=9, 1_usize..=11, any::<bool>());
    sizes.prop_flat_map(|(d, n, intercept)| {
        let p = d + usize::from(intercept);
        (
            prop::collection::vec(entry(), n * p),
            prop::collection::vec((entry(), entry()), n.max(p)),
            prop::collection::vec(prop_oneof![4 => 0.2..3.0, 1 => Just(0.0)], n),
            prop::sample::select(dense::families().to_vec()),
            prop_oneof![Just(Target::AsDrawn), Just(Target::Fitted), Just(Target::Cancels)],
            prop_oneof![1 => Just(0.0), 2 => Just(0.01), 2 => Just(0.3), 1 => Just(1e-6)],
            (any::<bool>(), prop_oneof![6 => Just(1.0), 1 => Just(0.0)], any::<bool>()),
        )
            .prop_map(move |(mut x, pairs, weight, family, target, l2, (weighted, w_scale, zero_row))| {
                if zero_row {
                    x[..p].fill(0.0);
                }
                if intercept {
                    x.iter_mut().skip(p - 1).step_by(p).for_each(|one| *one = 1.0);
                }
                let w: Vec<f64> = pairs[..p].iter().map(|t| t.0 * w_scale).collect();
                let y = (0..n)
                    .map(|i| match (family, target) {
                        (Family::Linear, Target::AsDrawn) => pairs[i].1,
                        (Family::Linear, Target::Fitted) => dot(&x[i * p..(i + 1) * p], &w),
                        (Family::Linear, Target::Cancels) => {
                            2.0 * dot(&x[i * p..(i + 1) * p], &w) * (1.0 + 1e-4 * pairs[i].1)
                        }
                        (Family::Huber(_), _) => pairs[i].1,
                        (Family::Logistic | Family::SquaredHinge, _) => f64::from(u8::from(pairs[i].1 > 0.0)),
                        (Family::Gamma, _) => 0.01 + pairs[i].1.abs(),
                        (Family::Tweedie(_), _) => (pairs[i].1 - 0.2).max(0.0),
                        (Family::Poisson, _) => (3.0 * pairs[i].1).abs().floor(),
                    })
                    .collect();
                let weight = if weighted { weight } else { vec![] };
                Dense { family, intercept, l2, p, x, y, weight, w }
            })
            .prop_filter("some weight", |m| m.weight.is_empty() || m.weight.iter().any(|&w| w > 0.0))
    })
}

fn release() -> impl Strategy<Value = Release> {
    (prop_oneof![Just(1.0), 0.01..10.0], 1_u32..5, any::<bool>())
        .prop_map(|(sigma, releases, label_secret)| Release { sigma, releases, label_secret })
}

fn gain(release: Release) -> f64 {
    f64::from(release.releases).sqrt() / release.sigma
}

/// Single columns, the first half of the columns as a block, all of them with their sum kept, and a slanted
/// pair of directions as behind principal components.
fn attributes(model: &Dense) -> Vec<Directions> {
    let (d, p) = (model.d(), model.p);
    let mut out: Vec<_> = (0..d).map(|j| Directions::columns(j..j + 1, p)).collect();
    out.push(Directions::columns(0..d.div_ceil(2), p));
    if d >= 2 {
        out.push(Directions { basis: sum_to_zero(0..d, p), count: d - 1 });
    }
    let slanted = |i: usize| if i / 2 < d { ((i * 7 + 3) % 11) as f64 / 5.0 - 1.0 } else { 0.0 };
    out.push(Directions { basis: (0..2 * p).map(slanted).collect(), count: 2 });
    out
}

/// The oracle's side of a model, prepared once.
struct Oracle {
    jacobians: Vec<Mat<f64>>,
    bases: Vec<Mat<f64>>,
    sizes: Vec<f64>,
    tolerance: f64,
    gain: f64,
    d: usize,
}

impl Oracle {
    /// The library's side and the oracle's; `None` where H is singular, which both must see.
    fn with(model: &Dense, release: Release) -> Option<(Geometry, Self)> {
        let fit = evaluate(&model.rows(64), model.family, model.penalty(), &model.w).unwrap();
        let directions = attributes(model);
        let hessian = model.hessian();
        let dense_inverse = inverse(&hessian);
        let condition =
            dense_inverse.as_ref().map_or(f64::INFINITY, |i| spectral_norm(&hessian) * spectral_norm(i));
        let geometry = match Geometry::new(&fit, &directions, release) {
            Ok(geometry) => geometry,
            Err(error) => {
                assert!(
                    matches!(error, Error::Singular { .. }) && condition > tolerance::NOT_SINGULAR,
                    "{error} at {condition:e}"
                );
                return None;
            }
        };
        let inverse = dense_inverse?;
        let label = release.label_secret;
        let (all, d) = (0..model.n(), model.d());
        let oracle = Self {
            jacobians: all.clone().map(|i| model.jacobian(i, label, &inverse)).collect(),
            bases: directions.iter().map(|b| basis_matrix(&b.basis, d, b.count)).collect(),
            sizes: all.map(|i| model.size(i, label, &inverse)).collect(),
            tolerance: tolerance::dense(condition),
            gain: gain(release),
            d,
        };
        Some((geometry, oracle))
    }

    /// Columns of Jᵢ along the directions of attribute `k`: the label is no part of them.
    fn attribute(&self, i: usize, k: usize) -> Mat<f64> {
        self.jacobians[i].subcols(0, self.d) * &self.bases[k]
    }

    fn slack(&self, i: usize) -> f64 {
        self.tolerance * self.gain * self.sizes[i]
    }

    /// Squares are what a sum over a set gives, so squares are compared, against the squares of the parts.
    fn same_square(
        &self,
        actual: f64,
        stacked: &Mat<f64>,
        rows: &[usize],
        scale: f64,
    ) -> Result<(), TestCaseError> {
        let truth = self.gain * spectral_norm(stacked);
        let parts: f64 = rows.iter().map(|&i| (scale * self.gain * self.sizes[i]).powi(2)).sum();
        prop_assert!(actual.is_finite());
        prop_assert!(
            (actual * actual - truth * truth).abs() <= 4.0 * self.tolerance * parts,
            "found {actual:e}, truth {truth:e}, parts {:e}",
            parts.sqrt()
        );
        Ok(())
    }
}

fn one_block(model: &Dense) -> Block {
    model.rows(64).blocks()[0].clone()
}

fn records(geometry: &Geometry, block: &Block) -> Records {
    let mut out = Records::default();
    geometry.records(block, &mut out);
    out
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn records_match_dense_jacobians(model in model(), release in release()) {
        let Some((geometry, oracle)) = Oracle::with(&model, release) else { return Ok(()) };
        let block = one_block(&model);
        let actual = records(&geometry, &block);
        let count = geometry.attribute_count();
        for i in 0..model.n() {
            let j = &oracle.jacobians[i];
            let (truth, slack) = (oracle.gain * spectral_norm(j), oracle.slack(i));
            let eta = actual.eta[i];
            prop_assert!((eta - truth).abs() <= slack, "η {i}: {eta:e}, truth {truth:e}, slack {slack:e}");
            let truth = oracle.gain.powi(2) * squared(j) / j.ncols() as f64;
            // (‖J‖_F + e)² − ‖J‖_F² ≤ 3e·max(‖J‖_F, e), and ‖J‖_F ≤ √columns · size.
            let slack = 3.0 * slack * oracle.gain * oracle.sizes[i];
            let dfil = actual.dfil[i];
            prop_assert!((dfil - truth).abs() <= slack, "dFIL {i}: {dfil:e}, truth {truth:e}");
            for k in 0..count {
                let truth = oracle.gain * spectral_norm(&oracle.attribute(i, k));
                let slack = oracle.slack(i) * spectral_norm(&oracle.bases[k]);
                let eta = actual.attribute_eta[i * count + k];
                prop_assert!((eta - truth).abs() <= slack, "attribute {k} of {i}: {eta:e}, truth {truth:e}");
            }
        }
        // η alone, in buffers that held a longer block, is the same to the last bit.
        let mut again = records(&geometry, &block);
        let shorter = Block { x: block.x[..model.p].to_vec(), y: block.y[..1].to_vec(), ..block.clone() };
        geometry.eta(&shorter, &mut again);
        prop_assert_eq!(&again.eta, &actual.eta[..1]);
    }

    #[test]
    fn sets_match_jacobians_side_by_side(model in model(), release in release(), block_rows in 1_usize..6) {
        let Some((geometry, oracle)) = Oracle::with(&model, release) else { return Ok(()) };
        let (n, p) = (model.n(), model.p);
        let (mut whole, mut group) = (SetSums::new(p, true), SetSums::new(p, true));
        let (mut from_hessian, mut buffers) = (SetSums::new(p, true), Records::default());
        for block in model.rows(block_rows).blocks() {
            geometry.records(block, &mut buffers);
            let mut part = SetSums::new(p, true);
            geometry.add_to_set(block, &buffers, None, &mut part);
            whole.merge(&part);
            geometry.add_to_set_without_gram(block, &buffers, &mut from_hessian);
            let first = block.first_row as usize;
            let odd: Vec<usize> = (0..block.len()).filter(|k| (first + k) % 2 == 1).collect();
            geometry.add_to_set(block, &buffers, Some(&odd), &mut group);
        }
        let all: Vec<usize> = (0..n).collect();
        let odd: Vec<usize> = (0..n).filter(|i| i % 2 == 1).collect();
        prop_assert_eq!((whole.records(), group.records()), (n as u64, n as u64 / 2));
        let mut sets = vec![(&whole, &all), (&group, &odd)];
        if geometry.gram_is_in_hessian() {
            prop_assert!(model.weight.is_empty() && model.family == Family::Linear);
            geometry.take_gram_from_hessian(&mut from_hessian);
            prop_assert_eq!(from_hessian.records(), n as u64);
            sets.push((&from_hessian, &all));
        }
        for (set, rows) in sets {
            let stacked = beside(&rows.iter().map(|&i| oracle.jacobians[i].clone()).collect::<Vec<_>>());
            oracle.same_square(geometry.set_eta(set).unwrap(), &stacked, rows, 1.0)?;
            for (k, eta) in geometry.attributes_over_set(set).unwrap().into_iter().enumerate() {
                let stacked = beside(&rows.iter().map(|&i| oracle.attribute(i, k)).collect::<Vec<_>>());
                oracle.same_square(eta, &stacked, rows, spectral_norm(&oracle.bases[k]))?;
            }
        }
    }

    #[test]
    fn the_order_of_merging_does_not_matter(model in model(), release in release()) {
        let Some((geometry, oracle)) = Oracle::with(&model, release) else { return Ok(()) };
        let parts: Vec<SetSums> = model.rows(2).blocks().iter().map(|block| {
            let mut part = SetSums::new(model.p, true);
            geometry.add_to_set(block, &records(&geometry, block), None, &mut part);
            part
        }).collect();
        let merged = |order: &mut dyn Iterator<Item = &SetSums>| {
            let mut total = SetSums::new(model.p, true);
            order.for_each(|part| total.merge(part));
            total
        };
        let (forth, back) = (merged(&mut parts.iter()), merged(&mut parts.iter().rev()));
        let parts: f64 = oracle.sizes.iter().map(|s| (oracle.gain * s).powi(2)).sum();
        let (a, b) = (geometry.set_eta(&forth).unwrap(), geometry.set_eta(&back).unwrap());
        prop_assert!((a * a - b * b).abs() <= tolerance::ORDER_OF_SUMS * parts, "{a:e} {b:e}");
        let a = geometry.attributes_over_set(&forth).unwrap();
        let b = geometry.attributes_over_set(&back).unwrap();
        for (k, (a, b)) in a.iter().zip(&b).enumerate() {
            let parts = parts * spectral_norm(&oracle.bases[k]).powi(2);
            prop_assert!((a * a - b * b).abs() <= tolerance::ORDER_OF_SUMS * parts, "{k}: {a:e} {b:e}");
        }
    }

    #[test]
    fn leakage_obeys_its_laws(model in model(), sigma in 0.01..100.0, releases in 2_u32..9) {
        let public = Release { sigma: 1.0, releases: 1, label_secret: false };
        let Some((geometry, oracle)) = Oracle::with(&model, public) else { return Ok(()) };
        let rebuilt = |release| Geometry::new(geometry.fit(), &attributes(&model), release).unwrap();
        let with_label = rebuilt(Release { label_secret: true, ..public });
        let noisier = rebuilt(Release { sigma, releases, ..public });
        let block = one_block(&model);
        let [base, label, other] = [&geometry, &with_label, &noisier].map(|g| records(g, &block));
        let count = geometry.attribute_count();
        let (d, factor) = (model.d(), f64::from(releases).sqrt() / sigma);
        let same = |a: f64, b: f64| (a - b).abs() <= tolerance::ORDER_OF_SUMS * a.abs().max(b.abs());
        let mut whole = SetSums::new(model.p, true);
        geometry.add_to_set(&block, &base, None, &mut whole);
        let (set, over) = (geometry.set_eta(&whole).unwrap(), geometry.attributes_over_set(&whole).unwrap());
        let parts: f64 = oracle.sizes.iter().map(|s| s * s).sum();
        let mut sum_of_squares = 0.0;
        for i in 0..model.n() {
            // A part never exceeds the whole, but for rounding of the size of the parts.
            let slack = oracle.slack(i);
            let at_most = |part: f64, whole: f64| part <= whole + slack;
            prop_assert!(same(other.eta[i], factor * base.eta[i]), "η ∝ √K/σ");
            prop_assert!(same(other.dfil[i], factor * factor * base.dfil[i]), "dFIL ∝ K/σ²");
            prop_assert!(at_most(base.eta[i], label.eta[i]), "a secret more never lowers η");
            let mean = base.dfil[i].sqrt();
            prop_assert!(at_most(mean, base.eta[i]), "mean ≤ max");
            prop_assert!(at_most(base.eta[i], mean * (d as f64).sqrt()), "max ≤ sum");
            let attribute = |k: usize| base.attribute_eta[i * count + k];
            for (k, over) in over.iter().enumerate() {
                prop_assert!(same(other.attribute_eta[i * count + k], factor * attribute(k)));
                let with_label = label.attribute_eta[i * count + k];
                prop_assert_eq!(with_label, attribute(k), "no attribute holds the label");
                let stretch = spectral_norm(&oracle.bases[k]);
                prop_assert!(attribute(k) <= stretch * (base.eta[i] + slack), "attribute ≤ record");
                let room = 4.0 * oracle.tolerance * parts * stretch * stretch;
                prop_assert!(attribute(k).powi(2) <= over.powi(2) + room, "attribute ≤ over all");
            }
            for j in 0..d.div_ceil(2) {
                prop_assert!(at_most(attribute(j), attribute(d)), "column ≤ block");
            }
            sum_of_squares += base.eta[i].powi(2);
            prop_assert!(base.eta[i].powi(2) <= set * set + 4.0 * oracle.tolerance * parts, "member ≤ group");
        }
        prop_assert!(set * set <= sum_of_squares + 4.0 * oracle.tolerance * parts, "group ≤ √Σ");
    }
}

/// A small model with everything in it: weights, a penalty, an intercept.
fn example(family: Family) -> Dense {
    let x = vec![
        0.3, -1.2, 0.7, 1.0, -0.4, 0.9, 0.1, 1.0, 1.1, 0.2, -0.6, 1.0, 0.0, 0.0, 0.0, 1.0, -0.8, -0.5, 1.3,
        1.0,
    ];
    let y = vec![1.0, 0.0, 1.0, 1.0, 0.0];
    let w = vec![0.6, -0.3, 0.8, 0.25];
    Dense { family, intercept: true, l2: 0.05, p: 4, x, y, weight: vec![1.0, 0.5, 2.0, 1.5, 1.0], w }
}

fn leakage(model: &Dense, label_secret: bool) -> (Geometry, Records) {
    let fit = evaluate(&model.rows(64), model.family, model.penalty(), &model.w).unwrap();
    let release = Release { sigma: 1.0, releases: 1, label_secret };
    let geometry = Geometry::new(&fit, &attributes(model), release).unwrap();
    let records = records(&geometry, &one_block(model));
    (geometry, records)
}

fn assert_close(actual: f64, truth: f64, subject: &str) {
    assert!(
        (actual - truth).abs() <= tolerance::CLOSED_FORM * truth.abs().max(f64::MIN_POSITIVE),
        "{subject}: {actual:e}, truth {truth:e}"
    );
}

fn inverse_times(model: &Dense, i: usize) -> f64 {
    let inverse = inverse(&model.hessian()).unwrap();
    let x = Mat::from_fn(model.p, 1, |j, _| model.row(i)[j]);
    spectral_norm(&(inverse * x))
}

#[test]
fn a_record_that_is_fitted_exactly_leaks_through_its_prediction_alone() {
    // r = 0: J = −ω H⁻¹x [a wᵀ, c], rank one, ‖J‖ = ω √(a²‖w‖² + c²) ‖H⁻¹x‖.
    let mut model = example(Family::Linear);
    model.y = (0..5).map(|i| dot(model.row(i), &model.w)).collect();
    let w2: f64 = model.w[..3].iter().map(|w| w * w).sum();
    for label in [true, false] {
        let (_, actual) = leakage(&model, label);
        let c2 = f64::from(u8::from(label));
        for i in 0..5 {
            let truth = model.omega(i) * (w2 + c2).sqrt() * inverse_times(&model, i);
            assert_close(actual.eta[i], truth, "η");
            assert_close(actual.dfil[i], truth * truth / (3.0 + c2), "dFIL of rank one");
        }
    }
}

#[test]
fn a_record_of_zeros_leaks_through_its_residual_alone() {
    // No intercept and x = 0: J = −ω r H⁻¹, whatever the label.
    for family in dense::families() {
        let mut model = example(family);
        model.intercept = false;
        (0..5).for_each(|i| model.x[i * 4 + 3] = 0.4 - 0.3 * i as f64);
        model.x[3 * 4..4 * 4].fill(0.0);
        let inverse = inverse(&model.hessian()).unwrap();
        let (r, ..) = model.terms(3);
        for label in [true, false] {
            let (geometry, actual) = leakage(&model, label);
            assert_close(actual.eta[3], model.omega(3) * r.abs() * spectral_norm(&inverse), "η");
            for j in 0..4 {
                let truth = model.omega(3) * r.abs() * squared(&inverse.subcols(j, 1).to_owned()).sqrt();
                assert_close(actual.attribute_eta[3 * geometry.attribute_count() + j], truth, "attribute η");
            }
        }
    }
}

#[test]
fn without_coefficients_an_attribute_leaks_through_the_residual_alone() {
    // w = 0: J = −ω H⁻¹[r I, c x].
    for family in dense::families() {
        let mut model = example(family);
        model.w.fill(0.0);
        let inverse = inverse(&model.hessian()).unwrap();
        let (geometry, actual) = leakage(&model, false);
        for i in 0..5 {
            let (r, ..) = model.terms(i);
            let truth = model.omega(i) * r.abs() * spectral_norm(&inverse.subcols(0, 3).to_owned());
            assert_close(actual.eta[i], truth, "η");
            for j in 0..3 {
                let truth = model.omega(i) * r.abs() * squared(&inverse.subcols(j, 1).to_owned()).sqrt();
                assert_close(actual.attribute_eta[i * geometry.attribute_count() + j], truth, "attribute η");
            }
        }
    }
    // And with r = 0 too, nothing leaks at all.
    let mut model = example(Family::Linear);
    (model.w, model.y) = (vec![0.0; 4], vec![0.0; 5]);
    let (geometry, actual) = leakage(&model, false);
    let mut set = SetSums::new(4, true);
    geometry.add_to_set(&one_block(&model), &actual, None, &mut set);
    assert!(actual.eta.iter().chain(&actual.dfil).chain(&actual.attribute_eta).all(|&v| v == 0.0));
    assert_eq!(geometry.set_eta(&set).unwrap(), 0.0);
    assert!(geometry.attributes_over_set(&set).unwrap().iter().all(|&v| v == 0.0));
}

#[test]
fn one_column_leaks_by_the_schoolbook_formula() {
    // d = 1, no intercept: η = ω |a x w + r| / H; with the label √((a x w + r)² + (c x)²).
    for family in dense::families() {
        let x = vec![0.7, -1.3, 0.0, 2.1];
        let y = vec![1.0, 0.0, 1.0, 3.0];
        let y = if family.two_classes() { vec![1.0, 0.0, 1.0, 1.0] } else { y };
        let model = Dense { family, intercept: false, l2: 0.1, p: 1, x, y, weight: vec![], w: vec![0.45] };
        let h = model.hessian()[(0, 0)];
        for label in [true, false] {
            let (geometry, actual) = leakage(&model, label);
            for i in 0..4 {
                let (r, a, c) = model.terms(i);
                let attribute = (a * model.x[i] * 0.45 + r).abs() / h;
                let c = if label { c * model.x[i] / h } else { 0.0 };
                assert_close(actual.eta[i], attribute.hypot(c), "η");
                assert_close(actual.attribute_eta[i * geometry.attribute_count()], attribute, "attribute η");
            }
        }
    }
}

#[test]
fn parts_that_cancel_leave_their_digits() {
    // One column, y = 2xw(1 + δ): a x w + r = −2δxw, a millionth of its parts, and known to ε/δ. Its square,
    // taken term by term, would be known to ε/δ² only.
    let (w, delta) = (0.75, 2.0_f64.powi(-20));
    let x = vec![1.5, -0.5, 2.0];
    let y = x.iter().map(|x| 2.0 * x * w * (1.0 + delta)).collect();
    let model =
        Dense { family: Family::Linear, intercept: false, l2: 0.25, p: 1, x, y, weight: vec![], w: vec![w] };
    let (geometry, actual) = leakage(&model, false);
    let h = model.hessian()[(0, 0)];
    for i in 0..3 {
        let truth = 2.0 * delta * model.x[i].abs() * w / h;
        let known = 4.0 * f64::EPSILON / delta;
        assert!((actual.eta[i] / truth - 1.0).abs() < known, "{:e} {truth:e}", actual.eta[i]);
        assert!((actual.dfil[i] / (truth * truth) - 1.0).abs() < 2.0 * known, "{:e}", actual.dfil[i]);
        let attribute = actual.attribute_eta[i * geometry.attribute_count()];
        assert!((attribute / truth - 1.0).abs() < known, "{attribute:e} {truth:e}");
    }
}

#[test]
fn a_hessian_that_is_nearly_all_penalty_is_not_asked_for_the_gram_matrix() {
    // XᵀX = 1e-9 beside nλ = 0.02: their sum has lost eight digits of it.
    let model = |x: f64| Dense {
        family: Family::Linear,
        intercept: false,
        l2: 0.01,
        p: 1,
        x: vec![0.0, x],
        y: vec![0.0; 2],
        weight: vec![],
        w: vec![0.0],
    };
    assert!(leakage(&model(1.0), true).0.gram_is_in_hessian());
    assert!(!leakage(&model(3e-5), true).0.gram_is_in_hessian());
}

#[test]
fn an_intercept_alone_has_nothing_to_leak_but_the_label() {
    let fit_of = |family| {
        let rows = leakscope_core::rows::InMemory::from_matrix(&[1.0; 4], &[1.0, 0.0, 1.0, 1.0], &[], 4);
        let penalty = leakscope_core::glm::Penalty::new(0.0, true);
        (leakscope_core::glm::fit(&rows, family, penalty).unwrap(), rows)
    };
    for family in [Family::Linear, Family::Logistic, Family::Poisson] {
        let (fit, rows) = fit_of(family);
        for label_secret in [true, false] {
            let geometry =
                Geometry::new(&fit, &[], Release { sigma: 0.5, releases: 1, label_secret }).unwrap();
            let actual = records(&geometry, &rows.blocks()[0]);
            // J = −H⁻¹c.
            let truth = if label_secret { 1.0 / (fit.hessian[0] * 0.5) } else { 0.0 };
            actual.eta.iter().for_each(|&eta| assert_close(eta, truth, "η"));
            assert!(actual.dfil.iter().all(|v| v.is_finite()));
        }
    }
}

#[test]
fn bad_releases_and_directions_are_refused() {
    let model = example(Family::Linear);
    let fit = evaluate(&model.rows(64), model.family, model.penalty(), &model.w).unwrap();
    for sigma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let release = Release { sigma, releases: 1, label_secret: true };
        let error = Geometry::new(&fit, &[], release).unwrap_err();
        assert!(matches!(error, Error::Setting { setting: Setting::Sigma, .. }), "{error}");
    }
    let release = Release { sigma: 1.0, releases: 0, label_secret: true };
    assert!(matches!(Geometry::new(&fit, &[], release), Err(Error::OutOfRange { subject: "releases", .. })));
    let short = Directions { basis: vec![1.0; 3], count: 1 };
    let release = Release { releases: 1, ..release };
    let error = Geometry::new(&fit, &[short], release).unwrap_err();
    assert!(matches!(error, Error::Shape { actual: 3, expected: 4, .. }), "{error}");
}

#[test]
fn records_at_a_kink_are_counted_and_take_the_side_without_curvature() {
    let rows = leakscope_core::rows::InMemory::from_matrix(
        &[1.0, 0.5, 2.0, 1.0],
        &[1.0, 1.0, 0.0, 1.0],
        &[1.0, 1.0, 1.0, 0.0],
        4,
    );
    let penalty = leakscope_core::glm::Penalty::new(0.1, false);
    let at = |family| evaluate(&rows, family, penalty, &[1.0]).unwrap();
    // z = 1 of class 1 twice, once with weight zero.
    let hinge = at(Family::SquaredHinge);
    assert_eq!((hinge.at_kink, hinge.hessian[0]), (1, 0.25 + 4.0 + 0.4));
    let huber = |delta: f64| at(Family::Huber(leakscope_core::glm::Parameter::new(delta).unwrap()));
    assert_eq!((huber(0.5).at_kink, huber(2.0).at_kink, huber(0.7).at_kink), (1, 1, 0));
    assert_eq!(at(Family::Logistic).at_kink, 0);
}
