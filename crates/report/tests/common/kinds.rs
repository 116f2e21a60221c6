//! Documents of every other kind, with names that try to break out of the page.

use leakscope_core::attack::Attack as Attacker;
use leakscope_core::balance::{Sharing, Update, Variant};
use leakscope_core::claim::{Bound, Observed, Theorem};
use leakscope_core::dp::{Accountant, Adjacency, account};
use leakscope_report::account::Costs;
use leakscope_report::attack::{self, Attack};
use leakscope_report::balance::{self, Balance, Comparison, Step};
use leakscope_report::bound::{self, SecretBounds};
use leakscope_report::choice::{Measure, Metric, Stopped};
use leakscope_report::figure::{Axis, Figure, Series};
use leakscope_report::release::{self, Ceiling, Means, Release, Stated};
use leakscope_report::reproduction::{self, Reproduction};
use leakscope_report::subject::Subject;
use leakscope_report::verdict::PROTECT_AT;
use std::collections::BTreeMap;

pub(crate) const HOSTILE: &str = "<script>alert('x')</script>&\"\u{1b}\u{7}";

pub(crate) fn subject() -> Subject {
    Subject {
        files: vec![HOSTILE.into()],
        target: HOSTILE.into(),
        n: 1_000,
        d: 7,
        family: leakscope_core::glm::ModelKind::Linear,
        l2: 0.01,
        intercept: true,
    }
}

pub(crate) fn step(iteration: usize, eta_std: f64) -> Step {
    Step {
        iteration,
        eta_mean: 1.0,
        eta_std,
        eta_max: 1.0 + 3.0 * eta_std,
        eta_unweighted_mean: 1.0,
        eta_unweighted_std: 0.9,
        eta_unweighted_max: 4.0,
        train_score: Some(0.5),
        test_score: None,
        weight_min: 0.1,
        weight_max: 3.0,
    }
}

pub(crate) fn balanced(stds: &[f64], variant: Variant, stopped: Stopped) -> Balance {
    let iterations: Vec<Step> = stds.iter().enumerate().map(|(i, s)| step(i, *s)).collect();
    let best = (0..stds.len()).min_by(|&a, &b| stds[a].total_cmp(&stds[b])).unwrap_or(0);
    Balance {
        redact: false,
        schema: balance::SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        tables: vec![],
        subject: subject(),
        sigma: 1.0,
        attribute: Some(HOSTILE.into()),
        sharing: Sharing::Sample,
        variant,
        update: Update::Published,
        clamp: None,
        tolerance: 1e-6,
        seed: None,
        metric: Metric::Mse,
        higher_is_better: false,
        comparisons: vec![Comparison {
            variant: Variant::Unweighted,
            update: Update::Published,
            iterations: iterations.clone(),
        }],
        iterations,
        best,
        stopped,
        converging: best + 1 == stds.len(),
        coefficients: [(HOSTILE.to_owned(), 1.0)].into(),
        warnings: vec![HOSTILE.into()],
        notes: vec![HOSTILE.into()],
        bought: None,
        counted: None,
        seconds: 1.0,
    }
}

pub(crate) fn observed(value: f64) -> Observed {
    Observed { value, ci_low: value - 0.02, ci_high: value + 0.02, trials: 100, seed: 1 }
}

pub(crate) fn attacked(accuracies: &[(Attacker, f64, f64)]) -> Attack {
    let result = |&(attack, sigma, accuracy): &(Attacker, f64, f64)| attack::AttackResult {
        attack,
        sigma,
        eta_mean: 1.0 / sigma,
        balanced: false,
        accuracy: observed(accuracy),
        advantage: observed((accuracy - 0.5) / 0.5),
    };
    Attack {
        redact: false,
        schema: attack::SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        subject: subject(),
        secret: attack::Secret {
            name: HOSTILE.into(),
            candidates: vec![attack::Candidate { name: HOSTILE.into(), prior: 0.5 }; 2],
        },
        records: 1_000,
        left_out: 0,
        trials: 100,
        seed: 1,
        baseline: attack::Baseline { accuracy: 0.5 },
        results: accuracies.iter().map(result).collect(),
        results_balanced: vec![],
        deciles: (1..=10)
            .map(|decile| attack::Decile {
                sigma: 1.0,
                decile,
                balanced: false,
                records: 100,
                accuracy: observed(0.5),
            })
            .collect(),
        eta_mean_at_unit_noise: 1.0,
        balance: None,
        utility: None,
        noise: None,
        warnings: vec![],
        notes: vec![],
        seconds: 1.0,
    }
}

pub(crate) fn guessed() -> SecretBounds {
    let figure = Figure {
        id: "x".into(),
        title: HOSTILE.into(),
        caption: HOSTILE.into(),
        x: Axis::log(HOSTILE),
        y: Axis::linear("advantage").of_shares(),
        series: vec![
            Series::bound(
                HOSTILE,
                [
                    (0.1, Bound::at_most(0.9, Theorem::OneCentre)),
                    (1.0, Bound::at_most(0.2, Theorem::OneCentre)),
                ],
            ),
            Series::observed(HOSTILE, [(0.1, observed(0.5)), (1.0, observed(0.1))]),
            Series::measured("nothing", [(1.0, f64::INFINITY)]),
        ],
        levels: vec![],
        chosen: Some(0.3),
    };
    let row = |theorem, success: f64| bound::Row {
        name: theorem,
        success,
        advantage: success / 2.0,
        alpha: None,
        confidence: Some(0.99),
        worst: None,
        over_records: None,
        largest_distance: false,
        assumptions: vec![HOSTILE.into()],
        source: HOSTILE.into(),
    };
    SecretBounds {
        redact: false,
        schema: bound::SCHEMA.into(),
        leakscope: "0".into(),
        setting: HOSTILE.into(),
        sentences: vec![],
        candidates: Some(3),
        most_likely: Some(0.4),
        sigma: Some(0.3),
        bounds: vec![row(Theorem::OneCentre, 0.4501), row(Theorem::Balle, 0.6)],
        optimal: None,
        estimation: vec![],
        typical: vec![],
        epsilon: None,
        counted: false,
        data: None,
        figures: vec![figure.clone(), figure],
        seed: Some(1),
        warnings: vec![HOSTILE.into()],
    }
}

/// A release.
pub(crate) fn released(sigma: f64, eta_max: f64) -> Release {
    Release {
        schema: release::SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        subject: release::Subject {
            target: HOSTILE.into(),
            classes: Some(vec![HOSTILE.into(), "yes".into()]),
            family: leakscope_core::glm::ModelKind::Logistic,
            l2: 0.01,
            intercept: true,
        },
        mechanism: release::Mechanism {
            name: "exact discrete Gaussian".into(),
            sigma,
            grid: 2_f64.powi(-21),
            generator: "the system".into(),
            units: [(HOSTILE.to_owned(), release::Unit { centre: 64.0, unit: 16.0 })].into(),
            shape: None,
        },
        label_secret: true,
        eta: release::Eta { max: Some(eta_max), target: None },
        tell: Some(release::Stated {
            attributes: Some(release::Ceiling { at_most: 0.6, by: release::Means::Eta }),
            label: None,
            public_pairs: vec![release::PublicPair {
                attribute: HOSTILE.into(),
                from: HOSTILE.into(),
                to: HOSTILE.into(),
            }],
            protect_at: 0.6,
            more_noise: None,
            withdraw_first: vec![],
            kept_back: false,
        }),
        composed: release::Composed {
            releases: 3,
            eta_max: Some(eta_max * 3_f64.sqrt()),
            budget_eta: Some(0.6),
        },
        public_inputs: vec![HOSTILE.into()],
        read_off: vec![HOSTILE.into()],
        known: vec![HOSTILE.into()],
        assumed: vec![HOSTILE.into()],
        coefficients: [(HOSTILE.to_owned(), -1.0)].into(),
        precision: BTreeMap::default(),
        warnings: vec![],
    }
}

/// An account of private training.
pub(crate) fn costs(sigma: f64, steps: u64, assumed: bool) -> Costs {
    let accountant = Accountant::dp_sgd(sigma, 1.0, steps, Adjacency::AddRemove).unwrap();
    Costs::of(account(&accountant, 1e-6).unwrap(), assumed)
}

/// A reproduction.
pub(crate) fn reproduced() -> Reproduction {
    use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Ours, Panel, PointSeries, Row};
    let series = vec![PointSeries::new(HOSTILE, vec![[1.0, 2.0], [2.0, 3.0]]); 2];
    let axis = || AxisTitle::linear(HOSTILE);
    let content = Content::Curves { x: axis(), y: axis(), series, levels: vec![(2.5, HOSTILE.into())] };
    Reproduction {
        schema: reproduction::SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        name: HOSTILE.into(),
        title: HOSTILE.into(),
        source: HOSTILE.into(),
        synthetic: false,
        data: vec![HOSTILE.into()],
        rows: vec![
            Row::printed(HOSTILE, 0.04, 3, 0.0401).because(HOSTILE),
            Row::ours(HOSTILE, Ours::from(&observed(0.5))),
            Row::ours(HOSTILE, Bound::at_most(0.5, Theorem::Balle)),
        ],
        claims: vec![Claim::new(HOSTILE, false, HOSTILE)],
        method: vec![HOSTILE.into()],
        figures: vec![Figure {
            file: "f".into(),
            title: HOSTILE.into(),
            caption: HOSTILE.into(),
            panels: vec![Panel { title: HOSTILE.into(), content }],
        }],
        seed: 1,
        seconds: 1.0,
    }
}

/// A canary that allows this success at the least noise.
pub(crate) fn canary(success: f64) -> leakscope_report::Canary {
    use leakscope_report::canary::{
        Canary, Guesser, Limit, LimitKind, Played, Point, PriorKind, SCHEMA, Secret, Source, Variant, figures,
    };
    use leakscope_report::text::{Model, Trained};
    let p = 0.002;
    let advantage = |s: f64| (s - p) / (1.0 - p);
    let limit = |kind: LimitKind, s: f64| Limit {
        kind,
        success: Bound::share_at_most(s, kind.theorem()),
        advantage: Bound::share_at_most(advantage(s), kind.theorem()),
    };
    let played = |attack, s: f64| {
        let success =
            Observed { value: s, ci_low: 0.5 * s, ci_high: (1.5 * s).min(1.0), trials: 1000, seed: 1 };
        Played { attack, advantage: success.rescaled(p, 1.0 - p), success }
    };
    let point = |trained: Trained, steps: u64, sigma: f64, s: f64| Point {
        trained,
        steps,
        sigma,
        rdp: 2.0 * steps as f64 / (sigma * sigma),
        bounds: vec![
            limit(LimitKind::FanoRdp, (20.0 * s).min(1.0)),
            limit(LimitKind::AroundZero, (1.2 * s).min(1.0)),
            limit(LimitKind::AroundCentre, s),
        ],
        attacks: vec![played(Guesser::Difference, 0.4 * s), played(Guesser::Optimal, 0.9 * s)],
    };
    let points: Vec<Point> = [Trained::Last, Trained::All]
        .into_iter()
        .flat_map(|part| {
            [1, 5].map(|t| {
                [(2.0, p), (1.0, 0.5 * (p + success)), (0.3, success)].map(|(s, x)| point(part, t, s, x))
            })
        })
        .flatten()
        .collect();
    let variant = |trained| Variant {
        trained,
        parameters: 32_768,
        norm_min: Some(0.7),
        norm_max: Some(1.9),
        clipped: Some(0.8),
        distance: Some(0.6),
        radius: 0.9,
    };
    Canary {
        schema: SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        model: Model { name: HOSTILE.into(), parameters: 260_032, vocabulary: 512, context: 512, width: 64 },
        prompt: HOSTILE.into(),
        prompt_tokens: 14,
        secret: Secret {
            source: Source::Vocabulary,
            candidates: 512,
            tokens_min: 1,
            tokens_max: 1,
            prior: PriorKind::Uniform,
            most_likely: p,
        },
        clip: 1.0,
        learning_rate: 0.1,
        trials: 1_000,
        seed: 1,
        variants: vec![variant(Trained::Last), variant(Trained::All)],
        figures: figures(&points),
        points,
        warnings: vec![HOSTILE.into()],
        seconds: 3.0,
    }
}

/// An audit of texts whose most exposed one has this dFIL.
pub(crate) fn texts(dfil: f64) -> (leakscope_report::TextAudit, leakscope_report::text_audit::Texts) {
    use leakscope_core::num::{Distribution, Summary};
    use leakscope_report::net::{ClipKind, Release, Signal, TraceKind};
    use leakscope_report::text::{Model, Trained};
    use leakscope_report::text_audit::{Exposure, Record, SCHEMA, TextAudit};
    let summary = |values: &[f64]| -> Summary {
        let mut all = Distribution::default();
        values.iter().for_each(|v| all.add(*v));
        all.summary()
    };
    let record = |name: &str, dfil: f64| Record {
        record: name.into(),
        tokens: 4,
        loss: 2.5,
        gradient_norm: 3.0,
        released_norm: 1.0,
        dfil: Some(dfil),
        dfil_standard_error: Some(0.1 * dfil),
        eta: Some(2.0 * dfil.sqrt()),
        plis: 5.0,
        plis_tokens: vec![3.0, 4.0, 0.0],
    };
    let audit = TextAudit {
        redact: false,
        schema: SCHEMA.into(),
        leakscope: "0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        tables: vec!["records.parquet".into()],
        model: Model { name: HOSTILE.into(), parameters: 260_032, vocabulary: 512, context: 512, width: 64 },
        trained: Trained::Adapters,
        rank: Some(8),
        trained_parameters: 4_096,
        files: vec![HOSTILE.into()],
        release: Release { clip_kind: ClipKind::Hard, clip: Some(1.0), sigma: 2.0, noise: 2.0, chosen: true },
        trace: TraceKind::Estimate { probes: 10 },
        plis_of: Signal::Raw,
        seed: 1,
        precision: leakscope_report::net::Precision::F32,
        spread: 0.02,
        loss: summary(&[2.5, 2.5]),
        gradient_norm: summary(&[3.0, 3.0]),
        dfil: Some(summary(&[dfil, 0.5 * dfil])),
        eta: Some(summary(&[2.0 * dfil.sqrt(), 1.4 * dfil.sqrt()])),
        records: vec![record("1", 0.5 * dfil), record("2.1", dfil)],
        exposures: vec![Exposure {
            secret: 1,
            record: "1".into(),
            candidates: 10_000,
            rank: 12,
            exposure: 9.7,
        }],
        warnings: vec![HOSTILE.into()],
        seconds: 1.0,
    };
    let pieces = || vec![HOSTILE.to_owned(), " word".into(), "\n".into(), " end".into()];
    (audit, [(0, pieces()), (1, pieces())].into())
}

/// A release whose values are told apart this often.
pub(crate) fn stated(attributes: (f64, Means), label: Option<(f64, Means)>) -> Release {
    let ceiling = |(at_most, by): (f64, Means)| Ceiling { at_most, by };
    let tell = Stated {
        attributes: Some(ceiling(attributes)),
        label: label.map(ceiling),
        public_pairs: vec![],
        protect_at: PROTECT_AT,
        more_noise: None,
        withdraw_first: vec![],
        kept_back: false,
    };
    Release { tell: Some(tell), ..released(1.0, 0.3) }
}

/// Three audits side by side, with names that try to break out, numbers of every form and more rows than a page shows at once.
pub(crate) fn compared() -> leakscope_report::comparison::Comparison {
    use leakscope_report::choice::Colour;
    use leakscope_report::comparison::{
        Compared, Comparison, Demand, EtaOver, Form, Kind, RecordChange, RecordChanges, Row, SCHEMA, Section,
        Value, Worse,
    };
    let result = |(i, colour): (usize, Colour)| Compared {
        name: format!("week-{i} {HOSTILE}"),
        file: format!("week-{i}/audit.json"),
        created: Some(format!("2026-11-1{i}T10:36:00Z")),
        colour,
        headline: "Not protected".into(),
        eta: Some(EtaOver { mean: Some(0.1 * (i + 1) as f64), largest: Some((i + 1) as f64) }),
        added: None,
    };
    let row = |name: String, worse: Worse, form: Form, values: [f64; 3]| Row {
        name,
        worse,
        form,
        values: values.map(|value| Some(Value { value, interval: None })).to_vec(),
    };
    let section = |title: &str, named_by_values: bool, rows: Vec<Row>| Section {
        title: title.into(),
        about: "What the numbers are, in a sentence.".into(),
        named_by_values,
        rows,
    };
    let forms = [
        Form::Number,
        Form::AtMost,
        Form::AtLeast,
        Form::Share,
        Form::ShareAtMost,
        Form::Count,
        Form::Setting,
    ];
    let change = |i: usize| RecordChange { id: format!("{HOSTILE}-{i}"), before: 0.1, after: 0.1 + i as f64 };
    let records = |result: usize| RecordChanges {
        result,
        measure: Measure::Eta,
        matched: 300,
        worse: 200,
        better: 60,
        same: 40,
        new: 3,
        gone: 2,
        increases: (0..20).rev().map(change).collect(),
    };
    Comparison {
        schema: SCHEMA.into(),
        leakscope: "0.1.0".into(),
        created: "2026-11-16T10:36:00Z".into(),
        kind: Kind::Audit,
        results: [Colour::Green, Colour::Red, Colour::Amber].into_iter().enumerate().map(result).collect(),
        sections: vec![
            section(
                "What decides the colour",
                false,
                vec![row(
                    "two values of an attribute told apart".into(),
                    Worse::Up,
                    Form::ShareAtMost,
                    [0.55, 0.9, 0.62],
                )],
            ),
            section(
                "Records",
                false,
                forms
                    .into_iter()
                    .map(|form| row(format!("a number as {form:?}"), Worse::Down, form, [3.0, 1.0, 2.0]))
                    .collect(),
            ),
            section(
                "Groups of race",
                true,
                (0..130)
                    .map(|i| {
                        row(
                            format!("{HOSTILE} {i}, mean η"),
                            Worse::Up,
                            Form::Number,
                            [0.1, 0.1 + 0.01 * i as f64, 0.1],
                        )
                    })
                    .collect(),
            ),
            section("Settings", false, vec![row("σ".into(), Worse::Neither, Form::Setting, [4.0, 1.0, 2.0])]),
        ],
        records: vec![records(1), records(2)],
        demands: vec![
            Demand { demand: "worse".into(), unmet: Some("week-1 is red, the reference is green".into()) },
            Demand { demand: "eta=900%".into(), unmet: None },
        ],
        warnings: vec!["the table of records of week-2 is not beside it any more".into()],
    }
}
