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
        device: None,
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
        redact: false,
        schema: TRAINING_SCHEMA.into(),
        tables: vec![],
        network: network(),
        precision: Precision::F32,
        data: data(),
        optimizer: Optimizer::Adam,
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
            steps_alone: None,
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
                optimizer: Optimizer::Adam,
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
                spread: 0.0,
                lambda: 1e3,
                records: 40,
                norm: 2.5,
                cosine: 1.0,
                without: 3.0,
                with: 0.5,
            }),
        }),
        text: None,
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
        kind: Kind::Number,
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
        redact: false,
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
        plis_of: Some(Signal::Released),
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

/// Records reconstructed at two noises, each nearer to its own record than to another so often.
pub(crate) fn inverted(identified: f64, sigmas: &[f64]) -> leakscope_report::inversion::Inversion {
    use leakscope_core::claim::Observed;
    use leakscope_report::inversion::*;
    let seen =
        |value: f64| Observed { value, ci_low: value - 0.1, ci_high: value + 0.1, trials: 40, seed: 1 };
    let level = |k: usize, sigma: f64| Level {
        sigma,
        noise: sigma,
        mse: seen(0.02 * (k + 1) as f64),
        ssim: Some(seen(0.8 / (k + 1) as f64)),
        haar_psi: Some(seen(0.5 / (k + 1) as f64)),
        lpips: Some(seen(0.1 * (k + 1) as f64)),
        psnr: Some(17.0),
        cosine: 0.99,
        identified: seen(identified),
        labels_right: Some(seen(1.0)),
        first_layer: None,
        correlations: vec![Correlation {
            leakage: Leakage::Plis,
            quality: QualityKind::Ssim,
            rho: 0.4,
            interval: [0.1, 0.6],
            records: 40,
        }],
        cramer_rao: (sigma > 0.0).then_some(1e-3),
        van_trees: (sigma > 0.0).then_some(Measured { value: 1e-4, standard_error: Some(1e-6) }),
    };
    let levels: Vec<Level> = sigmas.iter().enumerate().map(|(k, s)| level(k, *s)).collect();
    let outcome = Outcome {
        mse: 0.02,
        psnr: Some(17.0),
        ssim: Some(0.8),
        haar_psi: Some(0.5),
        lpips: Some(0.1),
        cosine: 0.99,
    };
    Inversion {
        redact: false,
        schema: SCHEMA.into(),
        tables: vec![],
        network: network(),
        data: Some(data()),
        attack: Settings {
            objective: Objective::Cosine,
            labels: Labels::Recover,
            batch: 1,
            local_steps: None,
            iterations: 1000,
            restarts: 1,
            learning_rate: 0.1,
            total_variation: 1e-4,
            range: [0.0, 1.0],
            clip_kind: ClipKind::Hard,
            clip: Some(1.0),
            sigma: None,
        },
        attacked: 40,
        spread: 0.07,
        figures: figures(&levels, 0.07),
        shown: vec![Attacked {
            record: 3,
            id: Some(HOSTILE.into()),
            label: Some(HOSTILE.into()),
            plis: 3.0,
            dfil: 0.1,
            outcomes: vec![outcome; levels.len()],
        }],
        levels,
        gradient: None,
        seed: 1,
        seconds: 2.0,
        warnings: vec![HOSTILE.into()],
    }
}

pub(crate) fn reconstructed() -> InversionPictures {
    let picture = || Picture::image([2, 2, 1], &[0.0, 0.5, 1.0, 0.2], [0.0, 1.0]);
    let shown = Reconstructed {
        original: picture(),
        reconstructions: vec![picture(), picture()],
        plis: Picture::heat([2, 2], &[0.0, 1.0, 2.0, 3.0], 3.0),
    };
    InversionPictures {
        records: [(3, shown)].into_iter().collect(),
        points: (1..20).map(|i| [f64::from(i), 0.1 * f64::from(i), 0.04 * f64::from(i)]).collect(),
    }
}

/// Attacks on membership of this area, in a run of this ε, with canaries that show so much of it.
pub(crate) fn members(
    area: f64,
    epsilon: Option<f64>,
    shown: f64,
) -> leakscope_report::membership::Membership {
    use leakscope_core::claim::Observed;
    use leakscope_report::membership::*;
    let promise = epsilon.map(|epsilon| Stated { epsilon, delta: 1e-5 });
    let attack = |attacker: MembershipAttacker| MembershipAttack {
        attacker,
        area,
        points: [(0.001, 1), (0.01, 7)]
            .map(|(rate, hits)| Rate {
                rate,
                false_positive: Observed::of_rare_hits(1, 1000, 1),
                true_positive: Observed::of_rare_hits(hits, 1000, 1),
                allowed: promise.map(|p| p.allows(rate)),
                own_allowed: epsilon.and_then(|e| allowed_to_all(&[0.1 * e, 0.5 * e, e], 1e-5, rate)),
            })
            .to_vec(),
        curve: (1..20).map(|k| [0.05 * f64::from(k), 0.05 * f64::from(k)]).collect(),
    };
    let attacks: Vec<MembershipAttack> =
        [MembershipAttacker::Loss, MembershipAttacker::GradientNorm, MembershipAttacker::Lira]
            .map(attack)
            .to_vec();
    Membership {
        redact: false,
        schema: SCHEMA.into(),
        tables: vec![],
        network: network(),
        data: data(),
        members: 1000,
        others: 1000,
        shadows: 16,
        promise,
        own: epsilon.map(|e| {
            let mut all = leakscope_core::num::Distribution::default();
            all.extend(&[0.1 * e, 0.5 * e, e]);
            OwnAccounts { accounted: 3, epsilon: all.summary() }
        }),
        noise: epsilon.is_some(),
        training: None,
        figures: figures(&attacks, promise, None),
        attacks,
        canaries: Some(CanaryAudit {
            canaries: 500,
            guessed: 100,
            right: 70,
            epsilon: Bound::at_least(shown, Theorem::OneRun),
            confidence: 0.95,
            delta: 1e-5,
            steps: 100,
            promised: epsilon,
        }),
        seed: 1,
        seconds: 3.0,
        warnings: vec![HOSTILE.into()],
    }
}

/// An informed adversary whose reconstructions are known again so often, against models of this σ.
pub(crate) fn informed(identified: f64, sigma: f64) -> leakscope_report::informed::Informed {
    use leakscope_core::claim::Observed;
    use leakscope_report::informed::*;
    let seen =
        |value: f64| Observed { value, ci_low: value - 1e-3, ci_high: value + 1e-3, trials: 500, seed: 1 };
    let attack = |adversary: Adversary, error: f64, identified: f64| InformedAttack {
        adversary,
        mse: seen(error),
        gain: seen(0.044 - error),
        ssim: Some(seen(0.4)),
        haar_psi: None,
        lpips: None,
        identified: seen(identified),
    };
    Informed {
        redact: false,
        schema: SCHEMA.into(),
        network: network(),
        data: data(),
        known: 1000,
        learned: 9500,
        attacked: 500,
        components: Some(512),
        training: ModelTraining {
            optimizer: "Adam".into(),
            learning_rate: 0.1,
            weight_decay: 0.0,
            steps: 5,
            clip_kind: ClipKind::Gelu,
            clip: Some(10.0),
            sigma,
            density: 0.5,
        },
        epsilon: (sigma > 0.0).then_some(1.0 / sigma),
        delta: 1e-9,
        attacks: vec![
            attack(Adversary::Labels, 0.044, 0.5),
            attack(Adversary::Ridge, 0.02, identified),
            attack(Adversary::Network, 0.011, identified),
        ],
        spread: 0.06,
        shown: vec![0],
        seed: 1,
        training_seconds: 5.0,
        seconds: 60.0,
        warnings: vec![HOSTILE.into()],
    }
}

pub(crate) fn learned() -> InformedPictures {
    let picture = || Picture::image([2, 2, 1], &[0.0, 0.5, 1.0, 0.2], [0.0, 1.0]).unwrap();
    [(0, vec![picture(), picture(), picture(), picture()])].into_iter().collect()
}
