//! A network's run and audit, with names that try to break out of the page.

use super::kinds::HOSTILE;
use leakscope_core::claim::{Bound, Measured, Theorem};
use leakscope_core::dp::Interval;
use leakscope_core::num::Summary;
use leakscope_report::net::*;

pub(crate) fn network() -> NetworkFacts {
    NetworkFacts {
        name: HOSTILE.into(),
        parameters: 26_010,
        trained: 26_010,
        input: vec![2, 2, 1],
        outputs: 10,
        loss: "softmax-cross-entropy".into(),
    }
}

pub(crate) fn data() -> DataFacts {
    DataFacts {
        files: vec![HOSTILE.into()],
        records: 100,
        test_records: None,
        normalize: [0.0, 1.0],
        target: None,
    }
}

pub(crate) fn spread(top: f64) -> Summary {
    Summary { mean: top / 2.0, std: 0.1, min: 0.0, max: top, p50: top / 3.0, p90: top, p95: top, p99: top }
}

pub(crate) fn training(epsilon: f64) -> Training {
    let point = |step: u64| Point {
        step,
        epoch: step as f64 / 10.0,
        loss: Some(1.0 / step as f64),
        accuracy: Some(0.5),
        label_accuracy: Some(0.75),
        watched_loss: Some(1.1 / step as f64),
        epsilon: Some(epsilon * step as f64 / 4.0),
        dfil_median: Some(1e-3 * step as f64),
        dfil_p90: Some(1e-2 * step as f64),
    };
    Training {
        schema: TRAINING_SCHEMA.into(),
        tables: vec![],
        network: network(),
        precision: Precision::F32,
        data: data(),
        optimizer: "Adam".into(),
        learning_rate: 0.1,
        weight_decay: 0.0,
        sampling: Sampling::Poisson,
        batch: 10.0,
        seed: 1,
        privacy: Some(PrivacyFacts {
            clip_kind: ClipKind::Hard,
            clip: 1.0,
            sigma: 2.0,
            promise: Some(Promise {
                delta: 1e-5,
                epsilon,
                epsilon_pld: Some(Interval { lower: 0.99 * epsilon, upper: epsilon }),
                epsilon_rdp: 1.2 * epsilon,
                rdp_order: 7.5,
                adjacency: Neighbours::AddRemove,
                advantage: Some(0.125),
                statement: HOSTILE.into(),
                dropped: None,
            }),
            withheld: None,
        }),
        label_secret: true,
        tracking: Some(Tracking { records: Tracked::Panel, panel: Some(40), probes: 4 }),
        planned_steps: 4,
        steps: 4,
        stopped: Stopped::Finished,
        accuracy_on: AccuracyOn::Test,
        history: (1..=4).map(point).collect(),
        accounts: Some(Accounts {
            followed: 40,
            accounted: 40,
            below: Some(Below { share: 0.91, value: 0.07 }),
            dfil: spread(0.04),
            published_dfil: spread(0.4),
            largest: Some(Interval { lower: 0.01, upper: 0.07 }),
            not_drawn: 3,
            epsilon: Some(spread(1.0)),
            histogram: Histogram::of(&[0.001, 0.01, 0.04]),
            most: vec![Account {
                record: 7,
                id: Some(HOSTILE.into()),
                label: Some(HOSTILE.into()),
                dfil: Measured { value: 0.04, standard_error: Some(0.01) },
                interval: Interval { lower: 0.01, upper: 0.07 },
                epsilon: Some(0.9),
            }],
        }),
        filter: Some(Filtered {
            budgets: [0.5, 2.0],
            dropped: 1,
            taking_part: vec![(0, 100), (2, 99), (4, 99)],
            first: vec![Dropout { record: 3, id: Some(HOSTILE.into()), label: None, steps: 1 }],
        }),
        public: Some(PublicUse {
            pretraining: Some(Pretraining {
                files: vec![HOSTILE.into()],
                records: 40,
                optimizer: "Adam".into(),
                learning_rate: 0.01,
                weight_decay: 1e-4,
                batch: 20,
                steps: 60,
                loss: 0.2,
                accuracy: Some(0.9),
                watched_accuracy: Some(0.8),
            }),
            density: Some(0.5),
            perturbation: Some(Perturbation {
                variant: PerturbationKind::Average,
                lambda: 1e3,
                records: 40,
                norm: 2.5,
                cosine: 1.0,
                without: 3.0,
                with: 0.5,
            }),
        }),
        notes: vec![HOSTILE.into()],
        seconds: 1.0,
    }
}

pub(crate) fn record(number: u64) -> Record {
    Record {
        record: number,
        id: None,
        most_exposed_attribute: Some((HOSTILE.into(), 0.5)),
        label: Some(HOSTILE.into()),
        right: Some(number.is_multiple_of(2)),
        loss: 0.3,
        gradient_norm: 2.0,
        dfil: Some(Measured::exact(0.25)),
        dfil_interval: None,
        eta: Some(1.5),
        jacobian_sensitivity: Some(3.0),
        plis: Some(0.7),
        compared_plis: Some(0.9),
    }
}

pub(crate) fn attribute() -> NetAttribute {
    NetAttribute {
        name: HOSTILE.into(),
        kind: ValueKind::Number,
        is_label: false,
        unit: Some(HOSTILE.into()),
        columns: vec![HOSTILE.into()],
        eta_mean: 0.1,
        eta_max: 0.5,
        eta_max_record: HOSTILE.into(),
        sum_to_one: None,
        min_sd: Bound::at_least(20.0, Theorem::CramerRao),
        min_sd_typical: 100.0,
        population_sd: Some(10.0),
        min_rmse_with_prior: Some(Measured::exact(9.5)),
    }
}

pub(crate) fn audit() -> NetAudit {
    let histogram = Histogram::of(&[0.1, 0.2, 0.25]);
    NetAudit {
        schema: AUDIT_SCHEMA.into(),
        tables: vec![],
        network: network(),
        data: data(),
        release: Release { clip_kind: ClipKind::Hard, clip: Some(1.0), sigma: 2.0, noise: 2.0, chosen: true },
        label_secret: false,
        trace: TraceKind::Exact,
        seed: 1,
        spread: 0.5,
        measured: 3,
        loss: 0.3,
        accuracy: Some(0.9),
        gradient_norm: spread(2.0),
        dfil: Some(spread(0.25)),
        dfil_extremes: None,
        eta: Some(spread(1.5)),
        jacobian_sensitivity: Some(spread(3.0)),
        plis: Some(spread(0.7)),
        plis_of: Some(PlisOf::Released),
        typical_error: Some(Measured::exact(0.4)),
        min_mse: Some(Bound::at_least(3.999_9, Theorem::CramerRaoGradient)),
        dfil_histogram: histogram.clone(),
        eta_histogram: histogram.clone(),
        elements: Vec::new(),
        attributes: vec![attribute()],
        most_dfil: vec![record(2)],
        least_dfil: vec![record(1)],
        most_eta: vec![record(2)],
        least_eta: vec![Record { id: Some(HOSTILE.into()), ..record(1) }],
        most_plis: vec![record(2)],
        least_plis: vec![record(1)],
        compared: Some(Compared {
            name: HOSTILE.into(),
            private: Some(false),
            epsilon: None,
            accuracy: Some(0.95),
            gradient_norm: spread(3.0),
            plis: spread(0.9),
        }),
        score: Some(Score {
            files: vec![HOSTILE.into()],
            n: 3,
            labelled: false,
            by: vec![ScoredBy {
                measure: Measure::GradientNorm,
                training: spread(2.0),
                points: spread(4.0),
                above_training_p99: 0.5,
                exceeds_training: 0.75,
                exceeds_interval: [0.6, 0.9],
            }],
            counts: histogram.as_ref().unwrap().count(&[0.1, 9.0, 0.0]),
            histogram,
            most: vec![record(2)],
        }),
        training: Some(Box::new(training(1.2345))),
        warnings: vec![HOSTILE.into()],
    }
}

pub(crate) fn pictures() -> Pictures {
    let shown = Shown {
        input: Picture::image([2, 2, 1], &[0.0, 0.5, 1.0, 0.2], [0.0, 1.0]),
        plis: Picture::heat([2, 2], &[0.0, 1.0, 2.0, 3.0], 3.0),
        compared_plis: Picture::heat([2, 2], &[1.0; 4], 3.0),
    };
    Pictures { records: [(2, shown.clone())].into(), scored: [(2, shown)].into() }
}
