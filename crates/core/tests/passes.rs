//! Passes as values: whoever runs the parts of a table, and in whatever order, the result has the same bits.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

use leakscope_core::attack::Removals;
use leakscope_core::balance::{self, Level, Losses, OwnWeights, SoftmaxLosses};
use leakscope_core::error::Damage;
use leakscope_core::fisher::noise::{Sampling, Scores};
use leakscope_core::fisher::softmax::{SoftmaxEta, SoftmaxGeometry};
use leakscope_core::fisher::{Directions, Eta, Geometry, Release};
use leakscope_core::glm::softmax::{self, Accuracy, ClassCounts, SoftmaxNewton};
use leakscope_core::glm::{
    self, Family, Fit, HuberStart, LogStart, Metric, Newton, Parameter, Penalty, Utility,
};
use leakscope_core::linalg::Cholesky;
use leakscope_core::measure::{
    self, ColumnDistributions, ColumnValues, Measure, Score, Series, SoftmaxMeasure, SoftmaxScore,
};
use leakscope_core::pass::{self, Covariance, LargestNorm, Merge, Pass, Runner, Tree};
use leakscope_core::rows::{
    Alteration, Altered, Away, Block, Elsewhere, Finish, InMemory, Rows, Start, States,
};
use leakscope_core::{Error, Result};
use std::borrow::Cow;
use std::cell::Cell;

const WIDTH: usize = 5;
const GROUPS: usize = 3;

fn noise(i: u64) -> f64 {
    let mut h = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (h ^ (h >> 31)) as f64 / u64::MAX as f64 * 2.0 - 1.0
}

/// Parts of a table, each some blocks; one state a part, as the splits of a file have.
struct Parts(Vec<Vec<Block>>);

impl Rows for Parts {
    fn width(&self) -> usize {
        WIDTH
    }

    fn len(&self) -> u64 {
        self.0.iter().flatten().map(|b| b.len() as u64).sum()
    }

    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> Result<()> {
        for blocks in &self.0 {
            let mut part = start();
            blocks.iter().try_for_each(|block| part.step(block))?;
            merge(part)?;
        }
        Ok(())
    }
}

/// Parts of uneven sizes: one of a single row, one without any, several with more than one block.
fn table(family: Family, weights: bool) -> Parts {
    let sizes: [&[usize]; 6] = [&[40, 31], &[1], &[], &[17, 17, 17], &[64], &[9, 2]];
    let mut first_row = 0_u64;
    let mut block = |n: usize| {
        let rows = first_row..first_row + n as u64;
        first_row = rows.end;
        let x: Vec<f64> = rows
            .clone()
            .flat_map(|i| (0..WIDTH as u64).map(move |j| if j == 4 { 1.0 } else { noise(i * 5 + j) }))
            .collect();
        let y = rows.clone().zip(x.chunks_exact(WIDTH)).map(|(i, x)| {
            let z = 0.8 * x[0] - 0.5 * x[1] + 0.9 * noise(i + 1_000_000);
            match family {
                Family::Linear => z,
                Family::Logistic => f64::from(u8::from(z > 0.0)),
                Family::Poisson => (z + 1.0).exp().floor(),
                Family::Gamma => z.exp(),
                Family::Tweedie(_) => (z.exp() - 0.5).max(0.0),
                Family::SquaredHinge => f64::from(u8::from(z > 0.0)),
                Family::Huber(_) => z * z * z,
            }
        });
        Block {
            first_row: rows.start,
            width: WIDTH,
            y: y.collect(),
            weight: if weights {
                rows.clone().map(|i| 1.0 + 0.5 * noise(i + 7_000_000)).collect()
            } else {
                vec![]
            },
            group: rows.map(|i| (i % GROUPS as u64) as u32).collect(),
            x,
        }
    };
    Parts(sizes.iter().map(|part| part.iter().map(|&n| block(n)).collect()).collect())
}

/// Other machines: each gets the pass as bytes, runs it on its own part at some time, some twice, and answers in bytes.
struct Cluster<'a> {
    parts: &'a Parts,
    shuffles: Cell<u64>,
}

impl<'a> Cluster<'a> {
    fn new(parts: &'a Parts) -> Self {
        Self { parts, shuffles: Cell::new(0) }
    }

    fn answers<P: Pass>(&self, pass: &P) -> Result<Vec<Vec<u8>>> {
        let sent = pass::to_bytes(pass)?;
        let mut answers = vec![vec![]; self.parts.0.len()];
        let mut order: Vec<usize> = (0..answers.len()).chain([0, 3]).collect();
        let seed = self.shuffles.replace(self.shuffles.get() + 1);
        order.sort_by(|a, b| noise(seed * 100 + *a as u64).total_cmp(&noise(seed * 100 + *b as u64)));
        for k in order {
            let theirs: P = pass::from_bytes(&sent)?;
            let state = pass::run(&theirs, &Parts(vec![self.parts.0[k].clone()]))?;
            let answer = pass::state_to_bytes(&theirs, &state)?;
            assert!(answers[k].is_empty() || answers[k] == answer, "a part that runs twice");
            answers[k] = answer;
        }
        Ok(answers)
    }
}

impl Runner for Cluster<'_> {
    fn columns(&self) -> usize {
        WIDTH
    }

    fn count(&self) -> u64 {
        self.parts.len()
    }

    fn run<P: Pass>(&self, pass: &P) -> Result<P::State> {
        let mut total = pass.start();
        for answer in self.answers(pass)? {
            total.merge(pass::state_from_bytes(pass, &answer)?);
        }
        Ok(total)
    }
}

/// One pass both ways, to the last bit; and its bytes, damaged in every way that this test can think of.
fn both_ways<P: Pass>(pass: &P, parts: &Parts) {
    let cluster = Cluster::new(parts);
    let here = pass::state_to_bytes(pass, &pass::run(pass, parts).unwrap()).unwrap();
    let there = pass::state_to_bytes(pass, &cluster.run(pass).unwrap()).unwrap();
    assert!(here == there, "{}", P::NAME);
    assert_eq!(pass::bytes::kind_of(&here).unwrap(), P::NAME);
    attack(pass, &cluster.answers(pass).unwrap()[0]);
}

/// The checksum from its definition: division by the polynomial, bit by bit.
fn checksum(bytes: &[u8]) -> u64 {
    let mut crc = u64::MAX;
    for byte in bytes {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xC96C_5795_D787_0F42 } else { crc >> 1 };
        }
    }
    !crc
}

fn with_right_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - 8;
    let sum = checksum(&bytes[..body]);
    bytes[body..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Damaged bytes are an error; where the checksum is made to fit, they are an error or a state that merges.
fn attack<P: Pass>(pass: &P, bytes: &[u8]) {
    let step = (bytes.len() / 150).max(1);
    for i in (0..bytes.len()).step_by(step).chain(bytes.len() - 20..bytes.len()) {
        let refused = |bytes: &[u8]| {
            assert!(
                matches!(pass::state_from_bytes(pass, bytes), Err(Error::Bytes { .. })),
                "{} {i}",
                P::NAME
            );
        };
        refused(&bytes[..i]);
        let mut damaged = bytes.to_vec();
        damaged[i] ^= 0x10;
        refused(&damaged);
        for value in [0, 1, 0x7F, 0xFF] {
            let mut forged = bytes.to_vec();
            forged[i] = value;
            if let Ok(state) = pass::state_from_bytes(pass, &with_right_checksum(forged)) {
                let mut total = pass::state_from_bytes(pass, bytes).unwrap();
                total.merge(state);
            }
        }
    }
}

fn model(parts: &Parts, family: Family) -> (Fit, Vec<Directions>) {
    let fit = glm::fit(parts, family, Penalty::new(0.01, true)).unwrap();
    let directions =
        [0..1, 1..2, 2..4, 3..4].into_iter().map(|columns| Directions::columns(columns, WIDTH)).collect();
    (fit, directions)
}

fn families() -> [Family; 7] {
    let [power, threshold] = [1.6, 0.3].map(|v| Parameter::new(v).unwrap());
    let [tweedie, huber] = [Family::Tweedie(power), Family::Huber(threshold)];
    [Family::Linear, Family::Logistic, Family::Poisson, Family::Gamma, tweedie, Family::SquaredHinge, huber]
}
const RELEASE: Release = Release { sigma: 0.7, releases: 2, label_secret: true };

#[test]
fn every_pass_gives_the_same_bits_wherever_its_parts_run() {
    for family in families() {
        for weights in [false, true] {
            let parts = table(family, weights);
            let (fit, directions) = model(&parts, family);
            let geometry = Geometry::new(&fit, &directions, RELEASE).unwrap();
            let w = Cow::Borrowed(fit.w.as_slice());
            for with_hessian in [true, false] {
                both_ways(&Newton { family, w: w.clone(), with_hessian }, &parts);
            }
            both_ways(&Eta::new(&geometry), &parts);
            for sampling in [Sampling::Sandwich, Sampling::Model] {
                both_ways(&Scores { family, w: w.clone(), sampling }, &parts);
            }
            for series in [Series::Group { groups: GROUPS }, Series::Class, Series::All] {
                let compared = Cow::Borrowed([0, 1, 2].as_slice());
                both_ways(
                    &Measure { geometry: Cow::Borrowed(&geometry), series, compared, counting: None },
                    &parts,
                );
            }
            for labelled in [true, false] {
                let two_class = family.two_classes();
                both_ways(
                    &Score {
                        geometry: Cow::Borrowed(&geometry),
                        counting: None,
                        labelled,
                        two_class,
                        most: 10,
                    },
                    &parts,
                );
            }
            let metric = Metric::of(family, false);
            let factor = Cow::Borrowed(&[][..]);
            both_ways(&Utility { metric, sigmas: Cow::Borrowed(&[0.0, 0.1, 3.0]), w, factor }, &parts);
            both_ways(&Losses { geometry: Cow::Borrowed(&geometry) }, &parts);
            both_ways(&OwnWeights, &parts);
            both_ways(&ColumnValues { column: 2 }, &parts);
            both_ways(&ColumnDistributions { columns: Cow::Borrowed(&[Some(0), None, Some(3)]) }, &parts);
            if family == Family::Linear {
                let inverse: Cow<'_, [f64]> =
                    Cow::Owned(Cholesky::new(&fit.hessian, WIDTH).unwrap().inverse());
                let whitener = Cow::Owned(inverse.to_vec());
                let isotropic = Removals { inverse, w: Cow::Borrowed(&fit.w), whitener: Cow::Borrowed(&[]) };
                both_ways(&isotropic, &parts);
                both_ways(&Removals { whitener, ..isotropic }, &parts);
            }
        }
    }
    let parts = table(Family::Poisson, true);
    both_ways(&LogStart { family: Family::Poisson, width: WIDTH }, &parts);
    let threshold = Parameter::new(0.3).unwrap();
    for w in [&[][..], &[0.2, -0.1, 0.0, 0.4, 1.0][..]] {
        both_ways(&HuberStart { threshold, w: Cow::Borrowed(w), width: WIDTH }, &parts);
    }
    both_ways(&LargestNorm, &parts);
    both_ways(&Covariance { centre: Cow::Borrowed(&[0.1, -0.2, 0.0, 0.3, 1.0]) }, &parts);
}

/// The same for softmax models: classes, Newton steps, η, records, scores, accuracies, losses.
#[test]
fn every_pass_of_a_softmax_model_gives_the_same_bits_wherever_its_parts_run() {
    for weights in [false, true] {
        let mut parts = table(Family::Linear, weights);
        for block in parts.0.iter_mut().flatten() {
            block
                .y
                .iter_mut()
                .for_each(|y| *y = if *y < -0.3 { 0.0 } else { f64::from(u8::from(*y > 0.3)) + 1.0 });
        }
        both_ways(&ClassCounts { most: 5 }, &parts);
        let fit = softmax::fit(&parts, Penalty::new(0.01, true), 5).unwrap();
        assert_eq!(fit.classes, 3);
        both_ways(&SoftmaxNewton { classes: 3, w: Cow::Borrowed(&fit.w) }, &parts);
        let directions: Vec<Directions> =
            [0..1, 1..2, 2..4].into_iter().map(|columns| Directions::columns(columns, WIDTH)).collect();
        let geometry = SoftmaxGeometry::new(&fit, &directions, RELEASE).unwrap();
        let borrowed = || Cow::Borrowed(&geometry);
        for counted in [false, true] {
            both_ways(&SoftmaxEta { geometry: borrowed(), counted }, &parts);
        }
        for (series, counting) in [
            (Series::Group { groups: GROUPS }, None),
            (Series::Classes { classes: 3 }, Some(true)),
            (Series::All, Some(false)),
        ] {
            let compared = Cow::Borrowed([0, 2].as_slice());
            both_ways(&SoftmaxMeasure { geometry: borrowed(), series, compared, counting }, &parts);
        }
        for labelled in [true, false] {
            both_ways(&SoftmaxScore { geometry: borrowed(), counted: false, labelled, most: 10 }, &parts);
        }
        both_ways(&SoftmaxLosses { geometry: borrowed() }, &parts);
        let (w, scales) = (Cow::Borrowed(fit.w.as_slice()), Cow::Borrowed([0.0, 0.2, 2.0].as_slice()));
        let q = fit.coefficients();
        let factor: Vec<f64> = (0..q * q).map(|ij| if ij % q <= ij / q { 0.3 } else { 0.0 }).collect();
        for factor in [vec![], factor] {
            let (w, scales) = (w.clone(), scales.clone());
            both_ways(&Accuracy { w, classes: 3, scales, factor: Cow::Owned(factor) }, &parts);
        }
        // Rows of another width, classes that are none.
        let narrow = InMemory::from_matrix(&[1.0, 2.0], &[0.0], &[], 1);
        assert!(matches!(
            pass::run(&SoftmaxEta { geometry: borrowed(), counted: false }, &narrow),
            Err(Error::Shape { .. })
        ));
        let wrong = InMemory::from_matrix(&[1.0, 2.0], &[0.5, 7.0], &[], 1);
        assert!(matches!(pass::run(&ClassCounts { most: 5 }, &wrong), Err(Error::OutOfRange { .. })));
    }
}

/// Weights and units travel as alterations: what a part is sent gives the bits of the whole.
#[test]
fn alterations_of_a_part_are_those_of_the_whole() {
    let parts = table(Family::Logistic, false);
    let weights: Vec<f64> = (0..parts.len()).map(|i| 1.0 + 0.9 * noise(i)).collect();
    let all = [
        Alteration::Units {
            stretch: Cow::Borrowed(&[2.0, 0.5, 1.0, 4.0]),
            offset: Cow::Borrowed(&[0.1, -1.0, 0.0, 3.0]),
        },
        Alteration::Weights { first_row: 0, weights: Some(Cow::Borrowed(&weights)) },
    ];
    let w = [0.3, -0.1, 0.2, 0.0, 0.5];
    let newton = Newton { family: Family::Logistic, w: Cow::Borrowed(&w), with_hessian: true };
    let whole = pass::run(&newton, &Altered::new(&parts, all.to_vec())).unwrap();
    let (mut tree, mut first) = (Tree::new(vec![]), 0);
    for part in &parts.0 {
        let part = Parts(vec![part.clone()]);
        let own: Vec<Alteration<'_>> = all.iter().map(|a| a.of_rows(first, part.len()).unwrap()).collect();
        tree.add_split(pass::run(&newton, &Altered::new(&part, own)).unwrap());
        first += part.len();
    }
    let bytes = |sums| pass::state_to_bytes(&newton, sums).unwrap();
    assert!(bytes(&whole) == bytes(&tree.finish().unwrap()));
    assert!(matches!(all[1].of_rows(first - 1, 2), Err(Error::Shape { .. })), "beyond the last weight");
    let short = Alteration::Weights { first_row: 5, weights: Some(Cow::Borrowed(&weights[..3])) };
    assert!(matches!(pass::run(&newton, &Altered::new(&parts, vec![short])), Err(Error::Shape { .. })));
}

#[test]
fn whole_computations_give_the_same_bits_on_a_cluster() {
    for family in families() {
        for weights in [false, true] {
            let parts = table(family, weights);
            let cluster = Cluster::new(&parts);
            let penalty = Penalty::new(0.01, true);
            let (here, there) =
                (glm::fit(&parts, family, penalty).unwrap(), glm::fit_by(&cluster, family, penalty).unwrap());
            assert_eq!(here, there);
            let w = vec![0.1; WIDTH];
            assert_eq!(
                glm::evaluate(&parts, family, penalty, &w).unwrap(),
                glm::evaluate_by(&cluster, family, penalty, &w).unwrap()
            );
            let level = Level::Attribute(Directions::columns(0..2, WIDTH));
            for level in [Level::Record, level] {
                assert_eq!(
                    balance::losses(&parts, &here, &level, RELEASE).unwrap(),
                    balance::losses(&cluster, &here, &level, RELEASE).unwrap()
                );
            }
            let (fit, directions) = model(&parts, family);
            let geometry = Geometry::new(&fit, &directions, RELEASE).unwrap();
            let series = Series::Group { groups: GROUPS };
            let pass = Measure {
                geometry: Cow::Borrowed(&geometry),
                series,
                compared: Cow::Owned(vec![0, 3]),
                counting: None,
            };
            let (a, b) =
                (measure::measure(&parts, &pass).unwrap(), measure::measure(&cluster, &pass).unwrap());
            assert_eq!((&a.eta, &a.attributes, &a.most), (&b.eta, &b.attributes, &b.most));
            assert_eq!(a.eta.count(), parts.len());
            assert_eq!(geometry.set_eta(&a.whole).unwrap(), geometry.set_eta(&b.whole).unwrap());
            assert_eq!(a.spread.variances(4), b.spread.variances(4));
        }
    }
}

/// The measuring pass against leakage record by record: what is summed, and who is named.
#[test]
fn what_is_measured_is_what_the_records_say() {
    let parts = table(Family::Logistic, true);
    let (fit, directions) = model(&parts, Family::Logistic);
    let geometry = Geometry::new(&fit, &directions, RELEASE).unwrap();
    let series = Series::Group { groups: GROUPS };
    let pass = Measure {
        geometry: Cow::Borrowed(&geometry),
        series,
        compared: Cow::Owned(vec![1, 3]),
        counting: None,
    };
    let measured = measure::measure(&parts, &pass).unwrap();
    let (mut eta, mut attribute_eta) = (vec![], vec![]);
    let mut records = leakscope_core::fisher::Records::default();
    for block in parts.0.iter().flatten() {
        geometry.records(block, &mut records);
        eta.extend_from_slice(&records.eta);
        attribute_eta.extend_from_slice(&records.attribute_eta);
    }
    let n = eta.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| eta[j].total_cmp(&eta[i]));
    let rows: Vec<u64> = measured.most.records().iter().map(|r| r.row).collect();
    assert_eq!(rows, order.iter().take(measure::EXTREMES).map(|i| *i as u64).collect::<Vec<_>>());
    for record in measured.most.records() {
        let etas = &attribute_eta[record.row as usize * 4..][..4];
        let expected = if etas[1] >= etas[3] { (0, etas[1]) } else { (1, etas[3]) };
        assert_eq!(record.attribute, Some(expected));
        assert_eq!(u64::from(record.series), record.row % GROUPS as u64);
    }
    for (k, totals) in measured.attributes.iter().enumerate() {
        let largest = (0..n).max_by(|&i, &j| attribute_eta[i * 4 + k].total_cmp(&attribute_eta[j * 4 + k]));
        assert_eq!(totals.max_row, largest.map(|i| i as u64));
        let sum: f64 = (0..n).map(|i| attribute_eta[i * 4 + k]).sum();
        assert!((totals.sum / sum - 1.0).abs() < 1e-12);
    }
    assert_eq!(measured.groups.iter().map(|g| g.records()).sum::<u64>(), n as u64);
    assert!(measured.rows_to_name().all(|row| row < n as u64));
}

/// Weights of all rows on one machine, those of a part on another.
#[test]
fn a_part_is_reweighted_by_its_own_stretch_of_the_weights() {
    let parts = table(Family::Logistic, false);
    let weights: Vec<f64> = (0..parts.len()).map(|i| 1.0 + 0.9 * noise(i)).collect();
    let w = [0.3, -0.1, 0.2, 0.0, 0.5];
    let pass = Newton { family: Family::Logistic, w: Cow::Borrowed(&w), with_hessian: true };
    let whole = pass::run(&pass, &Altered::weighted(&parts, &weights).unwrap()).unwrap();
    let mut total = pass.start();
    let mut first = 0;
    for part in &parts.0 {
        let part = Parts(vec![part.clone()]);
        let own = &weights[first..first + part.len() as usize];
        total
            .merge(pass::run(&pass, &Altered::weighted_from_row(&part, first as u64, own).unwrap()).unwrap());
        first += own.len();
    }
    let bytes = |sums| pass::state_to_bytes(&pass, sums).unwrap();
    assert!(bytes(&whole) == bytes(&total));
}

#[test]
fn bytes_of_another_pass_version_or_step_are_refused() {
    let parts = table(Family::Logistic, true);
    let pass = |w: &[f64]| Newton { family: Family::Logistic, w: Cow::Owned(w.to_vec()), with_hessian: true };
    let (first, second) = (pass(&[0.0; WIDTH]), pass(&[0.1; WIDTH]));
    let bytes = pass::state_to_bytes(&first, &pass::run(&first, &parts).unwrap()).unwrap();
    let damage = |result: Result<glm::Sums>| match result.unwrap_err() {
        Error::Bytes { damage, .. } => damage,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(damage(pass::state_from_bytes(&second, &bytes)), Damage::Key);
    let start = LogStart { family: Family::Poisson, width: WIDTH };
    let kind = Newton::NAME.to_string();
    assert_eq!(damage(pass::state_from_bytes(&start, &bytes)), Damage::Kind { kind });
    // After the magic, the format and the length of the version.
    let mut older = bytes.clone();
    older[6] ^= 1;
    let refused = damage(pass::state_from_bytes(&first, &with_right_checksum(older)));
    assert!(matches!(refused, Damage::Version { .. }), "{refused:?}");
    assert!(pass::from_bytes::<Newton<'_>>(&bytes).is_err(), "a state is no pass");
}

/// Far from the minimum a Poisson model overflows: the line search must see so from bytes as well.
#[test]
fn sums_that_overflow_travel_and_are_still_refused() {
    let parts = table(Family::Poisson, false);
    let w = [900.0, -900.0, 0.0, 0.0, 700.0];
    let pass = Newton { family: Family::Poisson, w: Cow::Borrowed(&w), with_hessian: true };
    both_ways(&pass, &parts);
    let penalty = Penalty::new(0.0, true);
    let here = glm::evaluate(&parts, Family::Poisson, penalty, &w).unwrap_err();
    let there = glm::evaluate_by(&Cluster::new(&parts), Family::Poisson, penalty, &w).unwrap_err();
    assert!(
        matches!(here, Error::OutOfRange { .. }) && matches!(there, Error::OutOfRange { .. }),
        "{here} {there}"
    );
}

#[test]
fn rows_of_another_width_or_group_are_an_error() {
    let parts = table(Family::Linear, false);
    let (fit, directions) = model(&parts, Family::Linear);
    let geometry = Geometry::new(&fit, &directions, RELEASE).unwrap();
    let narrow = Block { width: 2, x: vec![1.0, 2.0], y: vec![1.0], ..Block::default() };
    let eta = Eta::new(&geometry);
    assert!(matches!(eta.step(&mut eta.start(), &narrow), Err(Error::Shape { expected: WIDTH, .. })));
    let series = Series::Group { groups: 2 };
    let pass =
        Measure { geometry: Cow::Borrowed(&geometry), series, compared: Cow::Owned(vec![]), counting: None };
    assert!(matches!(pass::run(&pass, &parts).err(), Some(Error::Shape { actual: 3, expected: 2, .. })));
    let nothing = pass::run(&eta, &Parts(vec![])).unwrap();
    assert_eq!(nothing.eta.count(), 0);
}

/// Rows of which several parts make a split, here or elsewhere.
struct InSplits {
    parts: Parts,
    sizes: Vec<usize>,
    away: bool,
    kept: std::sync::Mutex<Option<Vec<u8>>>,
}

impl InSplits {
    fn splits(&self) -> Vec<Parts> {
        let mut rest = self.parts.0.as_slice();
        let mut split = |size: &usize| {
            let (now, later) = rest.split_at(*size);
            rest = later;
            Parts(now.to_vec())
        };
        self.sizes.iter().map(&mut split).collect()
    }
}

impl Rows for InSplits {
    fn width(&self) -> usize {
        WIDTH
    }

    fn len(&self) -> u64 {
        self.parts.len()
    }

    fn split_sizes(&self) -> Vec<usize> {
        self.sizes.clone()
    }

    fn elsewhere(&self) -> Option<Away<'_>> {
        self.away.then_some(Away::new(self))
    }

    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> Result<()> {
        self.parts.parts(start, merge)
    }
}

impl Elsewhere for InSplits {
    fn states(&self, _: &[Alteration<'_>], sent: &[u8]) -> Result<States> {
        if let Some(kept) = self.kept.lock().unwrap().clone() {
            return Ok(States::Merged(kept));
        }
        let pass: Newton<'static> = pass::from_bytes(sent)?;
        let of = |split: &Parts| {
            // The machine that has a split folds its parts, and knows of no other.
            let mut tree = Tree::new(vec![split.0.len()]);
            for part in &split.0 {
                let mut state = pass.start();
                part.iter().try_for_each(|block| pass.step(&mut state, block))?;
                tree.add(state);
            }
            pass::state_to_bytes(&pass, &tree.finish().unwrap_or_else(|| pass.start()))
        };
        Ok(States::Splits(self.splits().iter().map(of).collect::<Result<_>>()?))
    }

    fn keep(&self, _: &[Alteration<'_>], _: &[u8], merged: &[u8]) -> Result<()> {
        *self.kept.lock().unwrap() = Some(merged.to_vec());
        Ok(())
    }
}

/// The states of a split merge first with one another: a machine that has one split then has the bits of one that has all.
#[test]
fn splits_of_several_parts_give_the_same_bits_wherever_they_are() {
    let w = [0.3, -0.2, 0.1, 0.7, 0.05];
    let pass = Newton { family: Family::Logistic, w: Cow::Borrowed(&w), with_hessian: true };
    let bits = |rows: &InSplits| pass::state_to_bytes(&pass, &pass::run(&pass, rows).unwrap()).unwrap();
    let mut actual = vec![];
    for sizes in [vec![6], vec![2, 3, 1], vec![1, 5], vec![1; 6]] {
        let rows = |away| InSplits {
            parts: table(Family::Logistic, true),
            sizes: sizes.clone(),
            away,
            kept: std::sync::Mutex::default(),
        };
        let (here, there) = (rows(false), rows(true));
        assert_eq!(bits(&here), bits(&there), "{sizes:?}");
        // What was kept is taken.
        assert_eq!(bits(&here), bits(&there), "{sizes:?}");
        actual.push(bits(&here));
    }
    // One split of all parts, and parts that are splits, are the plain fold.
    assert_eq!(actual[0], actual[3]);
    assert_ne!(actual[0], actual[1]);
}
