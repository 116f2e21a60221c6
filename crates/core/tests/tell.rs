//! Two values told apart: distances against refits of whole tables through their scaling, limits that hold, and the optimal
//! test between two values, which comes up to the bound and not beyond.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "every test binary uses its part")]
mod dense;
#[allow(dead_code, reason = "every test binary uses its part")]
mod raw;
#[allow(dead_code, reason = "every test binary uses its part")]
mod tolerance;

use leakscope_core::claim::Theorem;
use leakscope_core::fisher::{Directions, Geometry, Records, Release};
use leakscope_core::glm::{Family, Parameter, Penalty, fit};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use leakscope_core::tell::{Certainty, Noise, Question, Telling, any_level, told_apart, two_values};
use leakscope_core::units::{PublicUnit, Scaling, Units};
use raw::Raw;

/// Units of a table that stay what they are whatever a record's value.
fn fixed(table: &Raw) -> Units {
    Units::new(table.units_of(), table.units().public().to_vec(), true).unwrap()
}

fn questions(table: &Raw, units: &Units) -> Vec<(Question, Vec<(usize, f64)>)> {
    let number = |j: usize, values: [f64; 2]| {
        let coded = values.map(|v| units.of_value(j, v));
        (Question::Number { column: j, values: coded }, values.map(|v| (j, v)).to_vec())
    };
    let labels = match table.family {
        Family::Linear => [-1.0, 2.0],
        Family::Logistic => [0.0, 1.0],
        Family::Poisson | Family::Tweedie(_) => [0.0, 4.0],
        Family::Gamma => [0.3, 4.0],
        Family::SquaredHinge | Family::Huber(_) => unreachable!("refused"),
    };
    vec![
        number(0, [30.0, 65.0]),
        number(2, [-0.33, -0.27]),
        (Question::Levels { columns: 1..2, encodings: vec![0.0, 1.0] }, vec![(1, 0.0), (1, 1.0)]),
        (Question::Label { values: labels }, labels.map(|v| (usize::MAX, v)).to_vec()),
        (
            Question::Own {
                column: Some(0),
                others: [47.0, 30.0, 65.0].map(|v| units.of_value(0, v)).to_vec(),
            },
            vec![(0, 47.0), (0, 30.0), (0, 65.0), (0, OWN)],
        ),
        (Question::Own { column: None, others: vec![1.0] }, vec![(usize::MAX, 1.0), (usize::MAX, OWN)]),
    ]
}

/// Stands for the value that a record has.
const OWN: f64 = f64::NAN;

/// The model with a value in place, standardised and fitted anew.
fn refit(table: &Raw, units: &Units, i: usize, (column, value): (usize, f64)) -> Vec<f64> {
    let mut changed = table.clone();
    if value.is_nan() {
        // As it is.
    } else if column == usize::MAX {
        changed.y[i] = value;
    } else {
        changed.x[i * table.d + column] = value;
    }
    changed.model(Some(units)).fit.w
}

fn distance(a: &[f64], b: &[f64], sd: &[f64]) -> f64 {
    a.iter().zip(b).zip(sd).map(|((a, b), s)| ((a - b) / s).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn distances_are_those_of_whole_refits() {
    for (family, l2, weighted, public_scaling) in [
        (Family::Linear, 0.2, false, false),
        (Family::Linear, 0.0, true, false),
        (Family::Logistic, 0.1, true, false),
        (Family::Logistic, 0.2, false, true),
        (Family::Poisson, 0.1, false, false),
        (Family::Poisson, 0.1, true, true),
        (Family::Gamma, 0.1, true, false),
        (Family::Tweedie(Parameter::new(1.4).unwrap()), 0.1, false, true),
    ] {
        let table = Raw::draw(23, family, (36, 4), l2, weighted, public_scaling);
        let (units, encoded) = (fixed(&table), table.encoded());
        let model = units.fit(&table.fit()).unwrap();
        let rows = units.rows(&encoded);
        let sd = [0.5, 0.2, 0.4, 0.9, 0.3];
        for (noise, sd) in [(Noise::Isotropic(0.3), [0.3; 5]), (Noise::Columns(sd.to_vec()), sd)] {
            for (question, values) in questions(&table, &units) {
                let told = told_apart(&rows, (&model, &units), (&noise, 1), &question, usize::MAX).unwrap();
                let truth: Vec<f64> = (0..table.n())
                    .map(|i| {
                        let models: Vec<_> = values.iter().map(|v| refit(&table, &units, i, *v)).collect();
                        let pairs = models.iter().flat_map(|a| models.iter().map(move |b| (a, b)));
                        pairs.map(|(a, b)| distance(a, b, &sd)).fold(0.0, f64::max)
                    })
                    .collect();
                let worst = truth.iter().copied().fold(0.0, f64::max);
                for (i, (actual, truth)) in told.delta.iter().zip(&truth).enumerate() {
                    assert!(*actual >= truth * (1.0 - 1e-9), "{family:?} {question:?} {i}: {actual} {truth}");
                    if family == Family::Linear {
                        assert!(*actual <= truth * (1.0 + 1e-8) + 1e-9, "{question:?} {i}: {actual} {truth}");
                    }
                }
                // The worst record is known, to the share that was not worth a refit.
                let largest = told.delta.iter().copied().fold(0.0, f64::max);
                assert!(largest <= worst * 1.0011, "{family:?} {question:?}: {largest} {worst}");
                assert!(told.at_least <= worst * (1.0 + 1e-9) && told.at_least >= worst * 0.9989);
                assert_eq!(told.worst.theorem, Theorem::TwoValues);
            }
        }
    }
}

#[test]
fn limits_without_refits_hold_and_are_close_on_many_records() {
    for family in [Family::Logistic, Family::Poisson] {
        let table = Raw::draw(29, family, (900, 4), 0.05, false, false);
        let (units, encoded) = (fixed(&table), table.encoded());
        let model = units.fit(&table.fit()).unwrap();
        let rows = units.rows(&encoded);
        for (question, values) in questions(&table, &units) {
            let noise = Noise::Isotropic(0.05);
            let told = told_apart(&rows, (&model, &units), (&noise, 1), &question, 0).unwrap();
            assert_eq!(told.refitted, 0);
            for i in (0..900).step_by(90) {
                let models: Vec<_> = values.iter().map(|v| refit(&table, &units, i, *v)).collect();
                let pairs = models.iter().flat_map(|a| models.iter().map(move |b| (a, b)));
                let truth = pairs.map(|(a, b)| distance(a, b, &[0.05; 5])).fold(0.0, f64::max);
                assert!(told.delta[i] >= truth * (1.0 - 1e-9));
                assert!(
                    told.delta[i] <= 1.5 * truth + 0.05,
                    "{family:?} {question:?}: {} {truth}",
                    told.delta[i]
                );
            }
            let refined = told_apart(&rows, (&model, &units), (&noise, 1), &question, 200).unwrap();
            assert!(refined.worst.value <= told.worst.value + 1e-12);
            assert!(refined.at_least >= told.at_least - 1e-12);
        }
    }
}

#[test]
fn the_optimal_test_attains_the_bound_and_does_not_beat_it() {
    let table = Raw::draw(31, Family::Logistic, (40, 4), 0.1, false, false);
    let (units, encoded) = (fixed(&table), table.encoded());
    let model = units.fit(&table.fit()).unwrap();
    let (sigma, releases, trials) = (0.25, 3_u32, 20_000);
    let (question, values) = questions(&table, &units).swap_remove(0);
    let noise = Noise::Isotropic(sigma);
    let told = told_apart(&units.rows(&encoded), (&model, &units), (&noise, releases), &question, usize::MAX)
        .unwrap();
    let [a, b] = [0, 1].map(|k| refit(&table, &units, told.worst_row as usize, values[k]));
    let mut draws = Seeded::new(7);
    let mut right = 0;
    for trial in 0..trials {
        let truth = if trial % 2 == 0 { &a } else { &b };
        // Nearest model over all releases together.
        let mut lead = 0.0;
        for _ in 0..releases {
            for ((z, t), (a, b)) in draws.normals(5).iter().zip(truth).zip(a.iter().zip(&b)) {
                let seen = t + sigma * z;
                lead += (seen - b).powi(2) - (seen - a).powi(2);
            }
        }
        right += u32::from((lead > 0.0) == (trial % 2 == 0));
    }
    let success = f64::from(right) / f64::from(trials);
    let error = (success * (1.0 - success) / f64::from(trials)).sqrt();
    assert!(success <= told.worst.value + tolerance::STANDARD_ERRORS * error);
    assert!(
        success >= told.worst.value - tolerance::STANDARD_ERRORS * error - 1e-3,
        "{success} {:?}",
        told.worst
    );
    assert!(told.median.value < told.worst.value && told.median.value >= 0.5);
}

/// Values far outside, classes that are nearly separable, one column, repeated records, fewer records than columns: no step is
/// proven there, and records are fitted from scratch.
#[test]
fn hard_tables_are_refitted_to_the_same_distances() {
    let mut repeated = Raw::draw(3, Family::Logistic, (12, 2), 0.05, false, false);
    let (first, rest) = repeated.x.split_at_mut(2);
    rest[..2].copy_from_slice(first);
    repeated.y[1] = repeated.y[0];
    let mut separable = Raw::draw(4, Family::Logistic, (20, 2), 1e-4, false, false);
    for i in 0..20 {
        separable.y[i] = f64::from(u8::from(separable.x[i * 2] > 47.0));
    }
    let tables = [
        (repeated, [40.0, 400.0]),
        (separable, [30.0, 60.0]),
        (Raw::draw(5, Family::Poisson, (15, 1), 0.02, true, false), [20.0, 120.0]),
        (Raw::draw(6, Family::Logistic, (5, 7), 0.1, false, false), [20.0, 90.0]),
        (Raw::draw(7, Family::Linear, (5, 7), 0.1, true, false), [-1e4, 1e4]),
    ];
    for (table, values) in tables {
        let (units, encoded) = (fixed(&table), table.encoded());
        let model = units.fit(&table.fit()).unwrap();
        let question = Question::Number { column: 0, values: values.map(|v| units.of_value(0, v)) };
        let noise = Noise::Isotropic(1.0);
        let told =
            told_apart(&units.rows(&encoded), (&model, &units), (&noise, 1), &question, usize::MAX).unwrap();
        let truth: Vec<f64> = (0..table.n())
            .map(|i| {
                let [a, b] = [0, 1].map(|k| refit(&table, &units, i, (0, values[k])));
                distance(&a, &b, &[1.0; 8])
            })
            .collect();
        let worst = truth.iter().copied().fold(0.0, f64::max);
        for (i, (actual, truth)) in told.delta.iter().zip(&truth).enumerate() {
            assert!(*actual >= truth * (1.0 - 1e-7), "{:?} {i}: {actual} {truth}", table.family);
        }
        let largest = told.delta.iter().copied().fold(0.0, f64::max);
        assert!(largest <= worst * 1.0011, "{:?}: {largest} {worst}", table.family);
    }
}

/// x = ±1, y = 3x, ridge: the derivative of the model vanishes at a record, η says that nothing leaks, and every value can be
/// told from every other.
#[test]
fn where_eta_is_zero_values_are_told_apart_all_the_same() {
    let x = [1.0, -1.0, 1.0, -1.0];
    let y = [3.0, -3.0, 3.0, -3.0];
    let rows = InMemory::from_matrix(&x, &y, &[], 4);
    let penalty = Penalty::new(1.0, false);
    let fitted = fit(&rows, Family::Linear, penalty).unwrap();
    let sigma = 1e-3;
    let release = Release { sigma, releases: 1, label_secret: false };
    let geometry = Geometry::new(&fitted, &[Directions::columns(0..1, 1)], release).unwrap();
    let mut records = Records::default();
    geometry.records(&rows.blocks()[0], &mut records);
    assert!(records.eta.iter().all(|e| e * sigma < 1e-12), "{:?}", records.eta);
    let units = Units::new(vec![Scaling::NONE], vec![PublicUnit { centre: 0.0, unit: 1.0 }], false).unwrap();
    let model = units.fit(&fitted).unwrap();
    let question = Question::Number { column: 0, values: [1.0, 0.0] };
    let told = told_apart(&rows, (&model, &units), (&Noise::Isotropic(sigma), 1), &question, 0).unwrap();
    assert!(told.worst.value > 0.999_999, "{:?}", told.worst);
    // w = Σxy/(Σx² + nλ): 12/8 as it is, 9/7 with a zero in place.
    assert!((told.delta[0] - (1.5 - 9.0 / 7.0) / sigma).abs() < 1e-9 / sigma);
}

/// Two records hold the classes in each other's way: with either label changed there is no model, and the answer names such a record.
#[test]
fn a_candidate_without_a_model_is_told_for_certain_and_its_record_is_named() {
    let x: Vec<f64> = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0].iter().flat_map(|x| [*x, 1.0]).collect();
    let y = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0];
    let rows = InMemory::from_matrix(&x, &y, &[], 6);
    let units = Units::new(vec![Scaling::NONE], vec![PublicUnit { centre: 0.0, unit: 1.0 }], true).unwrap();
    let question = Question::Label { values: [0.0, 1.0] };
    let told = |l2: f64, refits: usize| {
        let model = units.fit(&fit(&rows, Family::Logistic, Penalty::new(l2, true)).unwrap()).unwrap();
        told_apart(&rows, (&model, &units), (&Noise::Isotropic(1e6), 1), &question, refits).unwrap()
    };
    let without = told(0.0, 6);
    assert_eq!((without.certain, without.worst_row, without.worst.value), (Some(Certainty::NoModel), 2, 1.0));
    assert!(!without.is_open(1));
    // A penalty gives every label a model, and noise hides which: that is known, and nothing is left open.
    let with = told(0.01, 6);
    assert_eq!((with.certain, with.is_open(1)), (None, false));
    assert!(with.worst.value < 0.51, "{:?}", with.worst);
    // Without refits nothing is certain: it is open, however large the limit.
    let open = told(0.01, 0);
    assert!(open.certain.is_none() && (open.is_open(1) || open.worst.value < 0.52), "{open:?}");
}

/// A record that alone holds up one direction of H: its other value has a model, and the distance is that of a refit.
#[test]
fn a_record_of_full_leverage_is_refitted_and_not_called_certain() {
    let x = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1e9, 1.0];
    let y = [1.0, 2.0, 0.5, 3.0];
    let rows = InMemory::from_matrix(&x, &y, &[], 4);
    let penalty = Penalty::new(1e-3, false);
    let fitted = fit(&rows, Family::Linear, penalty).unwrap();
    let unit = PublicUnit { centre: 0.0, unit: 1.0 };
    let units = Units::new(vec![Scaling::NONE; 2], vec![unit, unit], false).unwrap();
    let model = units.fit(&fitted).unwrap();
    let question = Question::Number { column: 0, values: [1e9, 2.0] };
    let told = told_apart(&rows, (&model, &units), (&Noise::Isotropic(1.0), 1), &question, 4).unwrap();
    assert_eq!(told.certain, None, "{told:?}");
    let mut other = x;
    other[6] = 2.0;
    let w = fit(&InMemory::from_matrix(&other, &y, &[], 4), Family::Linear, penalty).unwrap().w;
    let apart = (w[0] - fitted.w[0]).hypot(w[1] - fitted.w[1]);
    assert!(told.delta[3] >= apart * (1.0 - 1e-6), "{} {apart}", told.delta[3]);
}

#[test]
fn a_value_that_changes_a_rounded_unit_is_told_for_certain() {
    let table = Raw::draw(23, Family::Linear, (36, 4), 0.2, false, false);
    let (units, encoded) = (table.units(), table.encoded());
    let model = units.fit(&table.fit()).unwrap();
    let far = Question::Number { column: 0, values: [units.of_value(0, 47.0), units.of_value(0, 4_700.0)] };
    let noise = Noise::Isotropic(1e6);
    let told = |units: &Units| {
        told_apart(&units.rows(&encoded), (&model, units), (&noise, 1), &far, 0).unwrap().worst.value
    };
    assert_eq!(told(&units), 1.0);
    assert!(told(&fixed(&table)) < 0.51);
}

#[test]
fn bounds_have_their_limits_and_nonsense_is_refused() {
    let coin = two_values(0.0, 1).value;
    assert!((0.5..0.5 + 1e-11).contains(&coin));
    assert_eq!(two_values(f64::INFINITY, 1).value, 1.0);
    assert_eq!(two_values(f64::NAN, 1).value, 1.0);
    assert!((two_values(1.0, 4).value - 0.841_344_746).abs() < 1e-8);
    assert!((any_level(2, 1.3, 1).value - two_values(1.3, 1).value).abs() < 1e-12);
    assert!((any_level(10, 0.0, 1).value - 0.1).abs() < 1e-9 && any_level(10, f64::INFINITY, 1).value == 1.0);
    assert_eq!(any_level(10, f64::NAN, 1).value, 1.0);
    let table = Raw::draw(23, Family::Linear, (12, 3), 0.2, false, false);
    let (units, encoded) = (table.units(), table.encoded());
    let model = units.fit(&table.fit()).unwrap();
    let rows = units.rows(&encoded);
    let ask = |noise: Noise, releases, question| {
        told_apart(&rows, (&model, &units), (&noise, releases), &question, 0).is_err()
    };
    let fine = Question::Number { column: 0, values: [0.0, 1.0] };
    assert!(!ask(Noise::Isotropic(1.0), 1, fine.clone()));
    assert!(ask(Noise::Isotropic(0.0), 1, fine.clone()));
    assert!(ask(Noise::Columns(vec![1.0]), 1, fine.clone()));
    assert!(ask(Noise::Isotropic(1.0), 0, fine));
    assert!(ask(Noise::Isotropic(1.0), 1, Question::Number { column: 3, values: [0.0, 1.0] }));
    assert!(ask(Noise::Isotropic(1.0), 1, Question::Number { column: 0, values: [0.0, f64::NAN] }));
    assert!(ask(Noise::Isotropic(1.0), 1, Question::Levels { columns: 0..1, encodings: vec![1.0] }));
    assert!(ask(Noise::Precision(vec![-1.0; 16]), 1, Question::Label { values: [0.0, 1.0] }));
    assert!(ask(Noise::Whitener(vec![1.0; 9]), 1, Question::Label { values: [0.0, 1.0] }));
    assert!(ask(Noise::Whitener(vec![f64::NAN; 16]), 1, Question::Label { values: [0.0, 1.0] }));
    // Three ways to say the same noise.
    let question = Question::Label { values: [0.0, 1.0] };
    let worst =
        |noise: Noise| told_apart(&rows, (&model, &units), (&noise, 1), &question, 2).unwrap().worst.value;
    let diagonal = |v: f64| (0..16).map(|ij| if ij % 5 == 0 { v } else { 0.0 }).collect::<Vec<f64>>();
    let isotropic = worst(Noise::Isotropic(0.5));
    assert!((worst(Noise::Precision(diagonal(4.0))) - isotropic).abs() < 1e-9);
    assert!((worst(Noise::Whitener(diagonal(2.0))) - isotropic).abs() < 1e-9);
}

/// Questions that share a pass have the answers they have alone, with noise of any shape and levels of a category that are all
/// put in place; and every distance is that of whole refits.
#[test]
fn questions_asked_together_have_the_answers_they_have_alone() {
    for family in [Family::Linear, Family::Logistic] {
        let table = Raw::draw(41, family, (40, 4), 0.1, true, false);
        let (units, encoded) = (fixed(&table), table.encoded());
        let model = units.fit(&table.fit()).unwrap();
        let rows = units.rows(&encoded);
        let mut precision = vec![0.3; 25];
        (0..5).for_each(|j| precision[j * 6] = 4.0 + j as f64);
        let noise = Noise::Precision(precision.clone());
        let mut all: Vec<Question> = questions(&table, &units).into_iter().map(|q| q.0).collect();
        // More values than two.
        all.push(Question::Levels { columns: 1..2, encodings: vec![0.0, 0.5, 1.0] });
        let telling = Telling::new(&rows, (&model, &units), (&noise, 2)).unwrap();
        let together = telling.look(&all).unwrap();
        for (question, mut look) in all.iter().zip(together) {
            assert!(look.candidates() >= 2);
            telling.refine(&mut look, usize::MAX).unwrap();
            let (one, alone) = (telling.answer(&look).unwrap(), telling.ask(question, usize::MAX).unwrap());
            for (a, b) in one.delta.iter().zip(&alone.delta) {
                assert!((a - b).abs() <= tolerance::ORDER_OF_SUMS * b, "{question:?}: {a} {b}");
            }
            assert_eq!((one.worst_pair, one.refitted), (alone.worst_pair, alone.refitted));
        }
        // By the definition: √(dᵀΣ⁻¹d) of two refits.
        let (question, values) = questions(&table, &units).swap_remove(0);
        let told = telling.ask(&question, usize::MAX).unwrap();
        for i in 0..table.n() {
            let [a, b] = [0, 1].map(|k| refit(&table, &units, i, values[k]));
            let d: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
            let square: f64 = (0..25).map(|ij| d[ij / 5] * precision[ij] * d[ij % 5]).sum();
            assert!(told.delta[i] >= square.sqrt() * (1.0 - 1e-8), "{family:?} {i}");
            if family == Family::Linear {
                assert!(
                    told.delta[i] <= square.sqrt() * (1.0 + 1e-6) + 1e-7,
                    "{i}: {} {}",
                    told.delta[i],
                    square.sqrt()
                );
            }
        }
    }
}

#[test]
fn families_whose_curvature_jumps_are_refused() {
    for family in [Family::SquaredHinge, Family::Huber(Parameter::new(0.4).unwrap())] {
        let table = Raw::draw(5, family, (30, 3), 0.1, false, false);
        let (units, model, encoded) = (table.units(), table.model(None), table.encoded());
        let rows = units.rows(&encoded);
        let error = Telling::new(&rows, (&model, &units), (&Noise::Isotropic(1.0), 1)).unwrap_err();
        assert!(error.to_string().contains("curvature jumps"), "{error}");
    }
}
