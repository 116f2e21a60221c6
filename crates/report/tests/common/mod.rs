//! Synthetic audits: a realistic one from a small deterministic generator, and its corner cases.
#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod kinds;
pub(crate) mod networks;
pub(crate) mod noise;
pub(crate) mod pages;

use leakscope_core::claim::{Bound, Measured, Theorem};
use leakscope_core::glm::ModelKind;
use leakscope_core::num::Distribution;
use leakscope_report::audit::*;
use leakscope_report::choice::{
    ColumnKind, ColumnRole, Kind, Metric, OneHot, Roles, Scale, SeriesBy, Statistic,
};
use leakscope_report::noise::Source;
use leakscope_report::tell::{Tell, ValuePair};

/// A multiplicative congruential generator: enough for charts, the same everywhere.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn number(name: &str, unit: &str, eta: [f64; 3], sd: f64) -> Attribute {
    let min_sd = sd / eta[1];
    Attribute {
        name: name.into(),
        kind: Kind::Number,
        unit: Some(unit.into()),
        columns: vec![name.into()],
        eta_mean: eta[0],
        eta_max: eta[1],
        eta_max_record: "P-14380".into(),
        eta_over_all_records: Some(eta[2]),
        sum_to_one: None,
        min_sd: Bound::at_least(min_sd, Theorem::CramerRao),
        min_sd_typical: sd / eta[0],
        population_sd: Some(sd),
        min_rmse_with_prior: Some(Measured::exact((1.0 / (sd.powi(-2) + (eta[0] / sd).powi(2))).sqrt())),
        prior_sd: None,
    }
}

fn category(name: &str, levels: &[&str], eta: [f64; 3]) -> Attribute {
    Attribute {
        name: name.into(),
        kind: Kind::Category,
        unit: None,
        columns: levels.iter().map(|l| format!("{name}={l}")).collect(),
        eta_mean: eta[0],
        eta_max: eta[1],
        eta_max_record: "P-16585".into(),
        eta_over_all_records: Some(eta[2]),
        sum_to_one: Some(SumToOne {
            eta_mean: 0.8 * eta[0],
            eta_max: 0.85 * eta[1],
            eta_over_all_records: Some(0.9 * eta[2]),
        }),
        min_sd: Bound::at_least(1.0 / eta[1], Theorem::CramerRao),
        min_sd_typical: 1.0 / eta[0],
        population_sd: None,
        min_rmse_with_prior: None,
        prior_sd: None,
    }
}

fn column(name: &str, kind: ColumnKind, role: ColumnRole, levels: Option<usize>) -> Column {
    let range = (kind == ColumnKind::Number).then_some([18.125_625, 97.828_125]);
    Column { name: name.into(), kind, roles: Roles(vec![role]), missing: 0, levels, range }
}

fn summary(xs: impl Iterator<Item = f64>) -> leakscope_core::num::Summary {
    let mut d = Distribution::default();
    xs.for_each(|x| d.add(x));
    d.summary()
}

/// `n` patients in `groups` groups, as the demo makes them, at σ = 0.02.
pub(crate) fn clinic(n: usize, groups: usize) -> Audit {
    let mut dice = Dice(7);
    let names: Vec<String> = (0..groups)
        .map(|g| match g {
            0 => "asian".into(),
            1 => "black".into(),
            2 => "white".into(),
            g => format!("group {g}"),
        })
        .collect();
    let exposed = ["cyp2c9", "vkorc1", "amiodarone", "age"];
    let mut records: Vec<(Record, usize)> = (0..n)
        .map(|i| {
            let g = (dice.uniform().powf(0.6) * groups.max(1) as f64) as usize;
            let (r, h) = (dice.normal(), (0.45 * dice.normal()).exp());
            let eta = 0.22 * h * (0.35 + r.abs()) * (1.0 + 0.15 * g as f64);
            let which = exposed[i % exposed.len()].to_owned();
            let record = Record {
                id: format!("P-{}", 10_000 + i * 7),
                group: names.get(g).cloned(),
                eta,
                dfil: eta * eta / 5.0,
                loss: 0.5 * r * r,
                gradient_norm: r.abs() * (2.2 + 0.6 * dice.normal()).abs(),
                loss_rank: 0.0,
                most_exposed_attribute: Some((which, 0.8 * eta)),
            };
            (record, g)
        })
        .collect();
    let mut losses: Vec<f64> = records.iter().map(|r| r.0.loss).collect();
    losses.sort_by(f64::total_cmp);
    for (r, _) in &mut records {
        r.loss_rank = losses.partition_point(|l| *l <= r.loss) as f64 / n as f64;
    }
    let eta = summary(records.iter().map(|r| r.0.eta));
    let loss = summary(records.iter().map(|r| r.0.loss));
    let gradient_norm = summary(records.iter().map(|r| r.0.gradient_norm));
    // As an audit does: the bins end where few records are left, and the last one holds what lies beyond.
    let (low, high, bins) = (0.0, if n > 1_000 { 0.7 * eta.max } else { eta.max }, 60);
    let series: Vec<Series> = (0..groups.max(1))
        .map(|g| {
            let mut d = Distribution::default();
            records.iter().filter(|r| groups == 0 || r.1 == g).for_each(|r| d.add(r.0.eta));
            let name = names.get(g).cloned().unwrap_or_else(|| "all".into());
            Series { name, mean: d.mean(), counts: d.histogram(low, high, bins) }
        })
        .collect();
    let actual: Vec<Group> = names
        .iter()
        .enumerate()
        .map(|(g, name)| {
            let s = summary(records.iter().filter(|r| r.1 == g).map(|r| r.0.eta));
            Group {
                name: name.clone(),
                n: records.iter().filter(|r| r.1 == g).count() as u64,
                eta: 2.0 * s.max,
                eta_mean: s.mean,
                eta_median: s.p50,
                eta_max: s.max,
            }
        })
        .collect();
    let sample: Vec<SamplePoint> = records
        .iter()
        .take(2_000)
        .map(|(r, g)| SamplePoint {
            eta: r.eta,
            loss: r.loss,
            gradient_norm: r.gradient_norm,
            series: *g as u32,
        })
        .collect();
    let mut order: Vec<Record> = records.into_iter().map(|r| r.0).collect();
    order.sort_by(|a, b| b.eta.total_cmp(&a.eta));
    let top: Vec<&Record> = order.iter().filter(|r| r.eta > eta.p99).take(100).collect();
    let below =
        |f: &dyn Fn(&Record) -> bool| top.iter().filter(|r| f(r)).count() as f64 / top.len().max(1) as f64;
    let ratio = actual.iter().map(|g| g.eta_mean).fold(0.0, f64::max)
        / actual.iter().map(|g| g.eta_mean).fold(f64::INFINITY, f64::min);
    let mut attributes = vec![
        category("cyp2c9", &["*1/*1", "*1/*2", "*1/*3"], [0.105, 0.43, 1.9]),
        category("amiodarone", &["no", "yes"], [0.089, 0.38, 1.2]),
        category("vkorc1", &["A/A", "A/G", "G/G"], [0.128, 0.37, 2.2]),
        number("age", "years", [0.039, 0.174, 0.8], 14.2),
        number("weight", "kg", [0.026, 0.107, 0.6], 19.1),
        number("height", "cm", [0.012, 0.068, 0.3], 10.4),
    ];
    attributes.sort_by(|a, b| b.eta_max.total_cmp(&a.eta_max));
    let coefficients: std::collections::BTreeMap<String, f64> = [
        ("(intercept)", 5.31),
        ("age", -0.42),
        ("amiodarone=yes", -0.61),
        ("cyp2c9=*1/*2", -0.5),
        ("cyp2c9=*1/*3", -0.93),
        ("height", 0.11),
        ("vkorc1=A/G", -0.87),
        ("vkorc1=G/G", -1.7),
        ("weight", 0.24),
    ]
    .map(|(k, v)| (k.to_owned(), v))
    .into();
    let sigma = 0.02;
    let points: Vec<UtilityPoint> = (0..19)
        .map(|k| {
            let s = 1e-4 * 10_f64.powf(f64::from(k) / 4.5);
            let scale = sigma / s;
            UtilityPoint {
                sigma: s,
                value: 0.325 + 9.0 * s * s,
                eta_mean: eta.mean * scale,
                eta_max: eta.max * scale,
            }
        })
        .collect();
    Audit {
        schema: SCHEMA.into(),
        leakscope: "0.1.0".into(),
        created: "2026-01-02T03:04:05Z".into(),
        tables: vec![],
        label: None,
        tell: None,
        scaling: None,
        verdict: None,
        data: Data {
            files: vec!["warfarin-demo.csv".into()],
            rows_read: n as u64 + 40,
            rows_dropped: 12,
            rows_held_out: 28,
            target: "dose".into(),
            classes: None,
            id: Some("patient".into()),
            rows_of_one: None,
            duplicates: None,
            read_off: vec![],
            group: (groups > 0).then(|| "race".into()),
            weights: None,
            columns: vec![
                column("patient", ColumnKind::Category, ColumnRole::Id, None),
                column("age", ColumnKind::Number, ColumnRole::Feature, None),
                column("weight", ColumnKind::Number, ColumnRole::Feature, None),
                column("height", ColumnKind::Number, ColumnRole::Feature, None),
                column("cyp2c9", ColumnKind::Category, ColumnRole::Feature, Some(3)),
                column("vkorc1", ColumnKind::Category, ColumnRole::Feature, Some(3)),
                column("amiodarone", ColumnKind::Category, ColumnRole::Feature, Some(2)),
                column("race", ColumnKind::Category, ColumnRole::Group, Some(groups)),
                column("dose", ColumnKind::Number, ColumnRole::Target, None),
            ],
            scale: Scale::Standard,
            one_hot: OneHot::DropLast,
            pca: None,
        },
        n: n as u64,
        d: 8,
        sigma,
        sigma_source: SigmaSource::Given,
        noise: None,
        inference: None,
        releases: 1,
        label_secret: true,
        redact: false,
        seed: Some(42),
        model: Model {
            family: ModelKind::Linear,
            l2: 0.01,
            intercept: true,
            coefficients_original_units: Some(coefficients.iter().map(|(k, v)| (k.clone(), v / 14.2)).collect()),
            coefficients,
            iterations: 1,
            gradient: 3.1e-15,
            tolerance: 1e-10,
            condition: 41.2,
            loss: 0.163,
            distance: None,
        },
        records: Records {
            eta,
            dfil: summary(order.iter().map(|r| r.dfil)),
            loss,
            gradient_norm,
            histogram: Histogram {
                low,
                high,
                beyond: order.iter().filter(|r| r.eta > high).count() as u64,
                by: if groups > 0 { SeriesBy::Group } else { SeriesBy::All },
                series,
            },
            most: order.iter().take(20).cloned().collect(),
            least: order.iter().rev().take(20).cloned().collect(),
            sample,
            stand_out: order.iter().filter(|r| r.eta > 3.0 * eta.p50).count() as u64,
            missed_by_loss: below(&|r| r.loss < loss.p95),
            missed_by_gradient: below(&|r| r.gradient_norm < gradient_norm.p95),
            min_mse: Bound::at_least(5.0 / (eta.max * eta.max), Theorem::CramerRaoRecord),
            min_mse_with_prior: Measured::exact(1.0 / (1.0 + eta.mean * eta.mean / 5.0)),
        },
        dataset: Dataset { eta: 2.7 * eta.max },
        attributes,
        classes: vec![],
        groups: actual,
        group_ratio: (groups > 1).then_some(ratio),
        utility: Some(Utility {
            metric: Metric::Mse,
            higher_is_better: false,
            rows: 28,
            without_noise: 0.325,
            at_sigma: 0.325 + 9.0 * sigma * sigma,
            constant_model: 0.91,
            points,
        }),
        secret: None,
        score: None,
        limits: vec![],
        warnings: vec![],
        notes: vec![],
        assumptions: vec![
            "The attacker sees the released coefficients and knows every other value in the table; knowing less only \
             makes it harder."
                .into(),
            "One release. A second release of the same data adds its information: σ would have to grow by √2.".into(),
            "These numbers are themselves private: do not publish them beside the model.".into(),
        ],
        timings: Timings { read: 0.012, fit: 0.004, leakage: 0.031, tell: 0.02, report: 0.002 },
    }
}

/// Scored points for an audit.
pub(crate) fn scored(audit: &Audit) -> Score {
    let mut eta = audit.records.eta;
    eta.max *= 2.0;
    eta.p50 *= 1.7;
    let mut most = audit.records.most.clone();
    most.iter_mut().for_each(|r| r.eta *= 2.0);
    let bins = audit.records.histogram.series[0].counts.len();
    let counts =
        (0..bins as u64).map(|i| 40_u64.saturating_sub(i.abs_diff(bins as u64 / 3) * 2) + i / 12).collect();
    Score {
        files: vec!["new-clinic.csv".into()],
        n: 640,
        labelled: false,
        eta,
        above_training_p99: 0.073,
        most,
        counts,
    }
}

/// Every situation that the page, the summary and the JSON must survive, by name.
pub(crate) fn situations() -> Vec<(&'static str, Audit)> {
    let base = || clinic(600, 3);
    let with = |change: &dyn Fn(&mut Audit)| {
        let mut audit = base();
        change(&mut audit);
        audit
    };
    let everything = {
        let mut audit = clinic(3_198, 3);
        audit.score = Some(scored(&audit));
        audit.limits = vec![
            Limit { statistic: Statistic::Eta, limit: 5.0, value: audit.records.eta.max, ok: true },
            Limit { statistic: Statistic::Mean, limit: 0.1, value: audit.records.eta.mean, ok: false },
        ];
        audit.warnings = vec!["12 rows were left out because a value was missing".into()];
        audit.model.distance = Some(Distance {
            relative: 0.012,
            largest: 0.031,
            largest_name: "vkorc1=A/G".into(),
            excess_objective: 2.1e-5,
        });
        audit
    };
    vec![
        ("clinic", clinic(3_198, 3)),
        ("everything", everything),
        ("no groups", clinic(600, 0)),
        ("one group", clinic(600, 1)),
        ("many groups", clinic(5_000, 23)),
        ("one record", clinic(1, 1)),
        (
            "softmax",
            with(&|a| {
                a.groups.clear();
                (a.group_ratio, a.data.group) = (None, None);
                a.data.classes = Some(vec!["ash".into(), "birch".into(), "cedar".into()]);
                a.classes = by_class(&["ash", "birch", "cedar"]);
                a.records.histogram.by = SeriesBy::Class;
                a.model.family = ModelKind::Softmax;
                a.attributes.iter_mut().for_each(|x| x.eta_over_all_records = None);
            }),
        ),
        (
            "two classes",
            with(&|a| {
                a.groups.clear();
                (a.group_ratio, a.data.group) = (None, None);
                a.data.classes = Some(vec!["no".into(), "yes".into()]);
                a.records.histogram.by = SeriesBy::Class;
                a.model.family = ModelKind::Logistic;
                a.utility = a.utility.take().map(|u| Utility {
                    metric: Metric::Accuracy,
                    higher_is_better: true,
                    without_noise: 0.834,
                    at_sigma: 0.821,
                    constant_model: 0.53,
                    points: u
                        .points
                        .iter()
                        .map(|p| UtilityPoint { value: 0.834 - 0.3 * p.sigma / (0.3 + p.sigma), ..*p })
                        .collect(),
                    ..u
                });
            }),
        ),
        ("one attribute", with(&|a| a.attributes.truncate(1))),
        ("no attributes", with(&|a| a.attributes.clear())),
        ("categories only", with(&|a| a.attributes.retain(|x| x.kind == Kind::Category))),
        ("numbers only", with(&|a| a.attributes.retain(|x| x.kind == Kind::Number))),
        ("no utility", with(&|a| a.utility = None)),
        ("noise with a shape", with(&|a| noise::shaped(a, Source::Records))),
        (
            "noise with a public shape",
            with(&|a| noise::shaped(a, Source::Table { files: vec!["public.csv".into()] })),
        ),
        ("default noise", with(&|a| (a.sigma, a.sigma_source) = (1.0, SigmaSource::Default))),
        (
            "all equal",
            with(&|a| {
                let e = 0.25;
                a.records.eta = summary(std::iter::repeat_n(e, 10));
                a.records.stand_out = 0;
                (a.records.histogram.low, a.records.histogram.high) = (e, e);
                a.records.histogram.series.iter_mut().for_each(|s| s.counts = vec![200]);
                a.records.most.iter_mut().chain(&mut a.records.least).for_each(|r| r.eta = e);
                a.records.sample.iter_mut().for_each(|p| p.eta = e);
            }),
        ),
        (
            "all zero",
            with(&|a| {
                a.records.eta = Default::default();
                a.records.dfil = Default::default();
                a.records.stand_out = 0;
                (a.records.histogram.low, a.records.histogram.high) = (0.0, 0.0);
                a.records.histogram.series.iter_mut().for_each(|s| s.counts = vec![200]);
                a.records
                    .most
                    .iter_mut()
                    .chain(&mut a.records.least)
                    .for_each(|r| (r.eta, r.dfil) = (0.0, 0.0));
                a.records.sample.iter_mut().for_each(|p| p.eta = 0.0);
                a.records.min_mse.value = f64::INFINITY;
                a.dataset.eta = 0.0;
                for x in &mut a.attributes {
                    (x.eta_mean, x.eta_max, x.eta_over_all_records) = (0.0, 0.0, Some(0.0));
                    (x.min_sd.value, x.min_sd_typical) = (f64::INFINITY, f64::INFINITY);
                }
                for p in a.utility.iter_mut().flat_map(|u| &mut u.points) {
                    (p.eta_mean, p.eta_max) = (0.0, 0.0);
                }
            }),
        ),
        (
            "overflowing utility",
            with(&|a| {
                if let Some(u) = &mut a.utility {
                    u.metric = Metric::Deviance;
                    u.at_sigma = f64::INFINITY;
                    u.points.iter_mut().skip(9).for_each(|p| p.value = f64::INFINITY);
                }
            }),
        ),
        (
            "nothing to list",
            with(&|a| {
                a.records.most.clear();
                a.records.least.clear();
                a.records.sample.clear();
                a.records.histogram.series.clear();
                a.assumptions.clear();
                a.model.coefficients.clear();
                a.model.coefficients_original_units = None;
                a.data.columns.clear();
                a.data.files.clear();
                if let Some(u) = &mut a.utility {
                    u.points.clear();
                }
            }),
        ),
        ("values told apart", with(&|a| a.tell = Some(told(&[("age", 0.93, false), ("dose", 0.71, true)])))),
        ("hostile names", hostile()),
    ]
}

/// Two values of some attributes, told apart so often.
pub(crate) fn told(each: &[(&str, f64, bool)]) -> Tell {
    let one = |&(name, worst, label): &(&str, f64, bool)| ValuePair {
        attribute: name.into(),
        from: "40".into(),
        to: "60".into(),
        worst,
        median: 0.5 + 0.2 * (worst - 0.5),
        worst_record: "P-14380".into(),
        among_all: None,
        label,
        distance: None,
        at_least: None,
        shows: None,
        near: false,
        levels_shown: vec![],
    };
    Tell {
        attributes: each.iter().map(one).collect(),
        left_out: vec![],
        left_out_because: None,
        protect_at: leakscope_report::verdict::PROTECT_AT,
        budget: None,
        more_work: None,
    }
}

/// Leakage by class of a softmax model; the label of the last is public.
fn by_class(names: &[&str]) -> Vec<Class> {
    let class = |(k, name): (usize, &&str)| {
        let label = (k + 1 < names.len()).then_some(0.2 + 0.1 * k as f64);
        let more = 1.0 + k as f64;
        Class {
            name: (*name).into(),
            n: 40 + 10 * k as u64,
            eta_mean: 0.1 * more,
            eta_median: 0.08 * more,
            eta_max: 0.5 * more,
            loss_mean: 0.7,
            label_eta_mean: label,
            label_eta_max: label.map(|v| 2.0 * v),
        }
    };
    names.iter().enumerate().map(class).collect()
}

/// Names that try to break out of the page or drive the terminal.
pub(crate) fn hostile() -> Audit {
    let bad = "<script>alert('x')</script>\"&\u{1b}[31m\n";
    let mut audit = clinic(300, 2);
    audit.data.files = vec![bad.into()];
    audit.data.target = bad.into();
    audit.data.id = Some(bad.into());
    audit.data.group = Some(bad.into());
    audit.data.classes = Some(vec![bad.into(), bad.into()]);
    audit.data.columns.iter_mut().for_each(|c| c.name = bad.into());
    audit.records.histogram.series.iter_mut().for_each(|s| s.name = bad.into());
    audit.groups.iter_mut().for_each(|g| g.name = bad.into());
    audit.classes = by_class(&[bad, bad]);
    for r in audit.records.most.iter_mut().chain(&mut audit.records.least) {
        r.id = format!("{bad}{}", r.id);
        r.group = Some(bad.into());
        r.most_exposed_attribute = Some((bad.into(), 0.3));
    }
    for a in &mut audit.attributes {
        a.name = bad.into();
        a.unit = Some(bad.into());
        a.columns = vec![bad.into(), bad.into()];
    }
    audit.model.coefficients = [(bad.to_owned(), 1.0)].into();
    audit.model.distance =
        Some(Distance { relative: 0.1, largest: 0.2, largest_name: bad.into(), excess_objective: 0.1 });
    audit.warnings = vec![bad.into()];
    audit.notes = vec![bad.into()];
    audit.assumptions = vec![bad.into()];
    audit.sigma_source = SigmaSource::TargetSd { attribute: bad.into(), sd: 1.0 };
    audit.limits = vec![Limit { statistic: Statistic::P99, limit: 0.1, value: 0.2, ok: false }];
    let mut tell = told(&[("x", 0.6, false), ("y", 0.7, true)]);
    for t in &mut tell.attributes {
        for text in [&mut t.attribute, &mut t.from, &mut t.to, &mut t.worst_record] {
            *text = bad.into();
        }
    }
    audit.tell = Some(tell);
    let mut score = scored(&audit);
    score.files = vec![bad.into()];
    audit.score = Some(score);
    audit
}

/// The least standard deviation of an estimate of an attribute.
pub(crate) fn set_min_sd(audit: &mut Audit, name: &str, sd: f64) {
    let attribute = audit.attributes.iter_mut().find(|a| a.name == name).expect("a known attribute");
    attribute.min_sd = Bound::at_least(sd, Theorem::CramerRao);
}
