//! Balanced weights counted, against finite differences through balancing and fit: change a value, balance again, fit again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod raw;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use dense::spectral_norm;
use faer::Mat;
use leakscope_core::balance::{
    Level, Options, Sharing, Update, Variant, balance, counted, most_even, weights_after,
};
use leakscope_core::fisher::noise::Noise;
use leakscope_core::fisher::{Directions, Release};
use leakscope_core::glm::{Family, Minimiser, ModelKind, Penalty};
use leakscope_core::random::Seeded;
use leakscope_core::rows::{Altered, InMemory};
use raw::Raw;

fn options(level: Level, iterations: usize, label_secret: bool) -> Options {
    Options {
        level,
        sharing: Sharing::Sample,
        variant: Variant::Weighted,
        update: Update::Published,
        clamp: None,
        iterations,
        tolerance: 0.0,
        release: Release { sigma: 0.5, releases: 1, label_secret },
        shape: None,
    }
}

/// Noise that is correlated and of different sizes, as a release publishes it.
fn correlated(q: usize) -> Noise {
    let entry = |i: usize, j: usize| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.4 + 0.5 * i as f64,
        std::cmp::Ordering::Greater => 0.3 - 0.2 * ((i + 2 * j) % 3) as f64,
    };
    Noise::from_factor((0..q * q).map(|ij| entry(ij / q, ij % q)).collect(), q).unwrap()
}

/// Columns in the units of the noise: forward substitution by its factor.
fn in_units_of(noise: Option<&Noise>, columns: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let Some(noise) = noise else { return columns };
    let (q, f) = (noise.len(), noise.factor());
    let solved = |column: Vec<f64>| {
        let mut out: Vec<f64> = vec![];
        for i in 0..q {
            let before: f64 = out.iter().enumerate().map(|(j, v)| f[i * q + j] * v).sum();
            out.push((column[i] - before) / f[i * q + i]);
        }
        out
    };
    columns.into_iter().map(solved).collect()
}

/// The last of `iterations` models, by the library's balancing as it is used.
fn last(rows: &InMemory, model: (Family, Penalty), options: &Options) -> Vec<f64> {
    let mut w = vec![];
    balance(rows, model, options, |_, fit, _| {
        w.clone_from(&fit.w);
        Ok(())
    })
    .unwrap();
    w
}

/// The encoded table as data of its own: scaling is not what is tested here.
fn table(family: Family) -> (Vec<f64>, Vec<f64>) {
    let raw = Raw::draw(41, family, (14, 3), 0.1, false, false);
    let encoded = raw.encoded();
    (encoded.blocks().iter().flat_map(|b| b.x.clone()).collect(), raw.y)
}

#[test]
fn counted_leakage_is_how_the_model_moves_through_balancing_and_fit() {
    let (p, d, n) = (4, 3, 14);
    let mut ratio = (f64::INFINITY, 0.0_f64);
    // Where the curvature jumps some records leak nothing, and balancing has no derivative.
    for family in dense::families().into_iter().filter(|f| f.self_concordant()) {
        let (x, y) = table(family);
        let model = (family, Penalty::new(0.1, true));
        for (level, label) in [
            (Level::Record, true),
            (Level::Record, false),
            (Level::Attribute(Directions::columns(1..2, p)), true),
            (Level::Attribute(Directions::columns(0..2, p)), false),
        ] {
            for (iterations, shape) in
                [(0, None), (1, None), (6, None), (1, Some(correlated(p))), (6, Some(correlated(p)))]
            {
                let options = Options { shape, ..options(level.clone(), iterations, label) };
                let rows = InMemory::from_matrix(&x, &y, &[], 5);
                let attributes = [Directions::columns(0..1, p), Directions::columns(1..3, p)];
                let actual = counted(&rows, model, &options, &attributes, iterations).unwrap().unwrap();
                for i in (0..n).step_by(3) {
                    let column = |k: usize| -> Vec<f64> {
                        let at = |steps: f64| {
                            let (mut x, mut y) = (x.clone(), y.clone());
                            let value = if k < d { &mut x[i * p + k] } else { &mut y[i] };
                            *value += steps * 2e-4;
                            last(&InMemory::from_matrix(&x, &y, &[], 5), model, &options)
                        };
                        let (a, b, c, e) = (at(1.0), at(-1.0), at(2.0), at(-2.0));
                        (0..p).map(|j| (8.0 * (a[j] - b[j]) - (c[j] - e[j])) / (12.0 * 2e-4)).collect()
                    };
                    let columns = in_units_of(options.shape.as_ref(), (0..=d).map(column).collect());
                    let norm_of = |from: usize, count: usize| {
                        2.0 * spectral_norm(&Mat::from_fn(p, count, |j, k| columns[from + k][j]))
                    };
                    let whole = norm_of(0, d + 1);
                    let close = |actual: f64, truth: f64, subject: &str| {
                        let error = (actual - truth).abs() / whole;
                        assert!(
                            error <= 2.0 * tolerance::REFIT,
                            "{family:?} {level:?} T = {iterations}, {subject} of {i}: {actual}, by refits {truth}"
                        );
                    };
                    close(actual.eta[i], norm_of(0, d + usize::from(label)), "η");
                    close(actual.attribute_eta[2 * i], norm_of(0, 1), "the first column");
                    close(actual.attribute_eta[2 * i + 1], norm_of(1, 2), "the others");
                    close(actual.label_eta[i], norm_of(d, 1), "the label");
                    if iterations == 0 {
                        assert_eq!(actual.eta[i], actual.eta_fixed[i]);
                    } else {
                        let r = actual.eta[i] / actual.eta_fixed[i];
                        ratio = (ratio.0.min(r), ratio.1.max(r));
                    }
                }
            }
        }
    }
    // Held fixed, weights hide leakage: that is what the term is for.
    assert!(ratio.1 > 1.2, "{ratio:?}");
}

#[test]
fn where_it_is_not_known_nothing_is_said() {
    let (x, y) = table(Family::Linear);
    let rows = InMemory::from_matrix(&x, &y, &[], 5);
    let model = (Family::Linear, Penalty::new(0.1, true));
    let plain = options(Level::Record, 2, true);
    for other in [
        Options { clamp: Some((0.1, 3.0)), ..plain.clone() },
        Options { variant: Variant::Unweighted, ..plain.clone() },
        Options { update: Update::Accelerated, ..plain.clone() },
    ] {
        assert_eq!(counted(&rows, model, &other, &[], 2).unwrap(), None);
    }
    assert!(counted(&rows, model, &plain, &[], 2).unwrap().is_some());
}

#[test]
fn the_most_even_iteration_is_the_one_that_counting_each_would_choose() {
    let mut gains = 0;
    for family in [Family::Linear, Family::Logistic, Family::Poisson] {
        let (x, y) = table(family);
        let rows = InMemory::from_matrix(&x, &y, &[], 5);
        let model = (family, Penalty::new(0.1, true));
        let options = options(Level::Record, 8, true);
        let (number, actual) = most_even(&rows, model, &options, &[], 8).unwrap().unwrap();
        let spreads: Vec<f64> =
            (0..=8).map(|t| counted(&rows, model, &options, &[], t).unwrap().unwrap().spread()).collect();
        assert!(spreads.iter().all(|s| *s >= actual.spread()) && spreads[number] == actual.spread());
        gains += usize::from(actual.spread() < 0.999 * spreads[8]);
    }
    assert!(gains > 0, "what is published is not always the most even");
    let wrong = Directions { basis: vec![1.0], count: 1 };
    let (x, y) = table(Family::Linear);
    let rows = InMemory::from_matrix(&x, &y, &[], 5);
    let model = (Family::Linear, Penalty::new(0.1, true));
    assert!(counted(&rows, model, &options(Level::Record, 1, true), &[wrong], 1).is_err());
}

/// Three classes, of which the columns know something.
fn table_of_classes((n, p): (usize, usize), classes: usize) -> (Vec<f64>, Vec<f64>) {
    let mut random = Seeded::new(77);
    let mut x = random.normals(n * p);
    x.chunks_exact_mut(p).for_each(|row| row[p - 1] = 1.0);
    let noise = random.normals(n);
    let class = |i: usize| {
        let z = x[i * p] - 0.7 * x[i * p + 1] + 0.8 * noise[i];
        // Every class often enough, whatever was drawn.
        if i < 2 * classes {
            i % classes
        } else {
            ((z + 1.5) / 3.0 * classes as f64).clamp(0.0, classes as f64 - 1.0) as usize
        }
    };
    let y = (0..n).map(|i| class(i) as f64).collect();
    (x, y)
}

/// Contrasts of the model after `iterations`, by weights and fit as a release finds them.
fn contrasts_after(x: &[f64], y: &[f64], penalty: Penalty, options: &Options, iterations: usize) -> Vec<f64> {
    let rows = InMemory::from_matrix(x, y, &[], 5);
    let weights = weights_after(&rows, (ModelKind::Softmax, penalty), options, iterations).unwrap().unwrap();
    let weighted = Altered::weighted(&rows, &weights).unwrap();
    match Minimiser::fit(&weighted, ModelKind::Softmax, penalty, 10).unwrap() {
        Minimiser::Softmax(fit) => fit.theta,
        Minimiser::Glm(_) => unreachable!("softmax was asked for"),
    }
}

#[test]
fn counted_leakage_of_classes_is_how_their_model_moves_through_balancing_and_fit() {
    let (n, p, d, classes) = (15, 4, 3, 3);
    let penalty = Penalty::new(0.1, true);
    let (x, y) = table_of_classes((n, p), classes);
    let (q, h) = ((classes - 1) * p, 2e-4);
    let mut ratio = (f64::INFINITY, 0.0_f64);
    for level in [Level::Record, Level::Attribute(Directions::columns(0..2, p))] {
        for (iterations, shape) in [(0, None), (1, None), (5, None), (5, Some(correlated(q)))] {
            let options = Options { shape, ..options(level.clone(), iterations, false) };
            let rows = InMemory::from_matrix(&x, &y, &[], 5);
            let attributes = [Directions::columns(0..1, p), Directions::columns(1..3, p)];
            let model = (ModelKind::Softmax, penalty);
            let actual = counted(&rows, model, &options, &attributes, iterations).unwrap().unwrap();
            for i in (0..n).step_by(4) {
                let column = |j: usize| -> Vec<f64> {
                    let at = |steps: f64| {
                        let mut x = x.clone();
                        x[i * p + j] += steps * h;
                        contrasts_after(&x, &y, penalty, &options, iterations)
                    };
                    let (a, b, c, e) = (at(1.0), at(-1.0), at(2.0), at(-2.0));
                    (0..q).map(|j| (8.0 * (a[j] - b[j]) - (c[j] - e[j])) / (12.0 * h)).collect()
                };
                let columns = in_units_of(options.shape.as_ref(), (0..d).map(column).collect());
                let norm_of = |from: usize, count: usize| {
                    2.0 * spectral_norm(&Mat::from_fn(q, count, |j, k| columns[from + k][j]))
                };
                let whole = norm_of(0, d);
                for (actual, truth) in [
                    (actual.eta[i], whole),
                    (actual.attribute_eta[2 * i], norm_of(0, 1)),
                    (actual.attribute_eta[2 * i + 1], norm_of(1, 2)),
                ] {
                    let error = (actual - truth).abs() / whole;
                    assert!(
                        error <= 2.0 * tolerance::REFIT,
                        "{level:?} T = {iterations}, record {i}: {actual}, by refits {truth}"
                    );
                }
                let r = actual.eta[i] / actual.eta_fixed[i];
                ratio = (ratio.0.min(r), ratio.1.max(r));
            }
        }
    }
    assert!(ratio.1 > 1.05, "{ratio:?}");
}

#[test]
fn two_classes_counted_are_the_logistic_model() {
    let (n, p) = (16, 3);
    let (x, y) = table_of_classes((n, p), 2);
    let rows = InMemory::from_matrix(&x, &y, &[], 7);
    for (level, label) in [
        (Level::Record, true),
        (Level::Record, false),
        (Level::Attribute(Directions::columns(0..1, p)), true),
    ] {
        let of_classes = options(level, 4, label);
        // Two opposite vectors share the penalty, and their difference has twice the variance.
        let sigma = of_classes.release.sigma * std::f64::consts::SQRT_2;
        let logistic = Options { release: Release { sigma, ..of_classes.release }, ..of_classes.clone() };
        let penalty = |l2: f64| Penalty::new(l2, true);
        let attributes = [Directions::columns(1..2, p)];
        let all =
            counted(&rows, (ModelKind::Softmax, penalty(0.2)), &of_classes, &attributes, 4).unwrap().unwrap();
        let two =
            counted(&rows, (Family::Logistic, penalty(0.1)), &logistic, &attributes, 4).unwrap().unwrap();
        for (a, b) in
            [(&all.eta, &two.eta), (&all.weights, &two.weights), (&all.attribute_eta, &two.attribute_eta)]
        {
            assert!(a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-7), "{a:?} {b:?}");
        }
    }
}
