//! Tables 3.4 and A.1, figure 3.4: digits 0 and 1, one logit, full batches: the models that the informed adversary attacks.

use super::super::data::{Images, digits};
use super::super::mueller::failure_of;
use super::super::{Context, Findings};
use super::batch_norm;
use super::epsilon;
use super::leaked::{Leaked, compared, mean_and_deviation, reading};
use super::run::{DELTA, records};
use super::tables::Printed;
use super::thousands::Thousands;
use leakscope::Result;
use leakscope_net::engine::evaluate;
use leakscope_net::perturb::{PerturbationKind, Perturbed, Perturbing};
use leakscope_net::preset::Preset;
use leakscope_net::random::{Generator, Purpose};
use leakscope_net::train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer};
use leakscope_net::{Clip, Network, Shape};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

pub(super) const SIGMA: f64 = 0.05;
pub(super) const CLIP: Clip = Clip::Gelu { bound: 10.0 };
pub(super) const RATE: f64 = 0.1;

/// The records: public, known to the adversary, to learn from, to attack.
pub(super) struct Pool {
    pub(super) images: Images,
    test: Images,
    pub(super) parts: [usize; 4],
}

pub(super) fn pool(context: &Context<'_>) -> Result<Pool> {
    let (train, test) = digits(context)?;
    let (images, test) = (train.of(&[0, 1]), test.of(&[0, 1]));
    let parts = if context.synthetic { [40, 40, 0, 0] } else { [1000, 1000, 9500, 500] };
    Ok(Pool { images, test, parts })
}

/// Where every model starts: Glorot normal, bias N(0, 0.01²).
pub(super) fn start(d: usize, seed: u64) -> Vec<f64> {
    let mut rng = Generator::new(seed, Purpose::Weights, 0);
    let scale = (2.0 / (d + 1) as f64).sqrt();
    (0..=d).map(|i| rng.normal() * if i == d { 1e-2 } else { scale }).collect()
}

/// Which parameters are trained: all, or the larger half.
pub(super) fn trained(start: &[f64], half: bool) -> Vec<bool> {
    let mut sizes: Vec<f64> = start.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let least = if half { sizes[sizes.len() / 2] } else { 0.0 };
    start.iter().map(|v| v.abs() >= least).collect()
}

pub(super) struct Ran {
    pub(super) accuracy: f64,
    pub(super) dfil: Option<Leaked>,
    pub(super) steps: Vec<Perturbed>,
    /// What was added in every step, where that is a constant.
    pub(super) added: Vec<Vec<f64>>,
    /// Every step: the parameters before it, and accuracy and dFIL behind it.
    pub(super) path: Vec<Behind>,
}

/// A step of a run.
pub(super) struct Behind {
    /// The parameters before it.
    pub(super) theta: Vec<f32>,
    pub(super) accuracy: f64,
    pub(super) dfil: Option<Leaked>,
}

/// Gaussian probes of every trace, as published.
const PROBES: usize = 2;

/// Full batches of the known records; noise and a perturbation where they are asked for.
pub(super) fn train(
    context: &Context<'_>,
    pool: &Pool,
    (sigma, half, how): (f64, bool, Option<Perturbing>),
    (steps, seed): (u64, u64),
) -> Result<Ran> {
    let [public, known, ..] = pool.parts;
    let d = pool.images.size();
    let theta = start(d, seed);
    let keep = trained(&theta, half);
    let spec = Preset::Linear.spec(Shape::Image(pool.images.shape), 1);
    let single: Vec<f32> = theta.iter().map(|v| *v as f32).collect();
    let mut net = Network::<f32>::with_parameters(spec, &single).map_err(failure_of)?;
    net.freeze(&keep.iter().map(|k| !k).collect::<Vec<bool>>()).map_err(failure_of)?;
    let data = records(&pool.images, public, known, 1)?;
    let lesson = how.map(|_| records(&pool.images, 0, public, 1)).transpose()?;
    let test = records(&pool.test, 0, pool.test.labels.len(), 1)?;
    let config = TrainConfig {
        privacy: (sigma > 0.0).then_some(Privacy { clip: CLIP, sigma }),
        tracking: if sigma > 0.0 { Tracking::Every { probes: PROBES } } else { Tracking::Off },
        delta: DELTA,
        seed,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::adam(), RATE, Sampling::Poisson { rate: 1.0 })
    };
    let mut trainer = Trainer::new(net, &data, config).map_err(failure_of)?;
    if let (Some(how), Some(lesson)) = (how, &lesson) {
        trainer.perturb(how, lesson).map_err(failure_of)?;
    }
    let leaked = |trainer: &Trainer<'_, f32>| -> Result<Option<Leaked>> {
        let budgets = trainer.budgets().map_err(failure_of)?;
        let dfil: Vec<f64> = budgets.iter().filter_map(|b| b.dfil.map(|m| m.value)).collect();
        Ok(Leaked::of(&dfil))
    };
    let (mut perturbed, mut added, mut path) = (vec![], vec![], vec![]);
    for _ in 0..steps {
        context.check()?;
        let theta = trainer.network().parameters().map_err(failure_of)?;
        trainer.step().map_err(failure_of)?;
        perturbed.extend(trainer.perturbed());
        added.extend(trainer.added().map(<[f64]>::to_vec));
        let accuracy = evaluate(trainer.network(), &test).map_err(failure_of)?.accuracy.unwrap_or(f64::NAN);
        path.push(Behind { theta, accuracy, dfil: leaked(&trainer)? });
    }
    let (accuracy, dfil) = path.last().map_or((f64::NAN, None), |b| (b.accuracy, b.dfil));
    Ok(Ran { accuracy, dfil, steps: perturbed, added, path })
}

/// Runs whose means the tables show: those that are not perturbed, those that the thesis perturbs, and this project's. Much
/// follows from where a run starts, so that there are more of them than the thesis has.
fn runs(context: &Context<'_>) -> [u64; 3] {
    let usual = match (context.full, context.synthetic) {
        (true, _) => [30, 30, 3],
        (false, false) => [30, 10, 1],
        (false, true) => [1; 3],
    };
    context.runs.map_or(usual, |n| [n, n, usual[2].min(n)])
}

/// Several runs: their accuracies, the mean of dFIL, and the first of them.
struct Several {
    accuracies: Vec<f64>,
    leaked: Leaked,
    first: Ran,
}

fn several(
    context: &Context<'_>,
    pool: &Pool,
    (how, count): ((f64, bool, Option<Perturbing>), u64),
    steps: u64,
) -> Result<Option<Several>> {
    let seeds = context.seed..context.seed + count;
    let all: Vec<Ran> = seeds.map(|seed| train(context, pool, how, (steps, seed))).collect::<Result<_>>()?;
    let accuracies: Vec<f64> = all.iter().map(|r| r.accuracy).collect();
    let leaked: Vec<Leaked> = all.iter().filter_map(|r| r.dfil).collect();
    let first = Leaked::mean(&leaked).zip(all.into_iter().next());
    Ok(first.map(|(leaked, first)| Several { accuracies, leaked, first }))
}

/// Epochs of a perturbation before the first step.
pub(super) fn epochs(context: &Context<'_>) -> u64 {
    match (context.full, context.synthetic) {
        (_, false) => 200,
        (_, true) => 3,
    }
}

pub(super) fn setup(context: &Context<'_>, pool: &Pool) -> Vec<String> {
    let [public, known, learn, targets] = pool.parts;
    let mut out = vec![format!(
        "Digits 0 and 1 in file order: {public} public, {known} known to the adversary, {learn} to learn from, {targets} to \
         attack. One logit, Adam with learning rate 0.1, five full batches, smooth clip 10, σ = 0.05."
    )];
    if !context.full {
        out.push(
            "A part of the published size, which `--full` runs: 100 epochs of the adversary (12 here), 1,000 of the perturbation \
             of table A.1 (200 here)."
                .into(),
        );
    }
    out
}

/// Its name, whether half of the parameters are trained, what is added, and the published row.
type Method = (&'static str, bool, Option<Perturbing>, Option<[Printed; 4]>);

/// Table 3.4: accuracy and dFIL of the models that are attacked.
pub(crate) fn table_3_4(context: &Context<'_>) -> Result<Findings> {
    let mut pool = pool(context)?;
    let mut findings = Findings { method: setup(context, &pool), ..Findings::default() };
    for (steps, paper) in [(1, 389.9752), (2, 697.6610), (3, 996.0350), (4, 1294.4090), (5, 1571.4291)] {
        let name = format!("ε after {steps} full batches, δ = 10⁻⁹");
        findings.rows.push(Row::within(name, (paper, 4), 1e-4, epsilon(SIGMA, 1.0, steps)?));
    }
    let of = |variant| Some(Perturbing { variant, ..usual(context) });
    let seeds = context.seed..context.seed + runs(context)[0];
    let open: Vec<f64> = seeds
        .map(|seed| train(context, &pool, (0.0, false, None), (5, seed)).map(|r| r.accuracy))
        .collect::<Result<_>>()?;
    findings.rows.push(compared("SGD: accuracy", (0.9964, 0.0005), &open));
    let mut means: Vec<(&str, f64)> = vec![];
    let mut printed: Vec<(&str, Leaked, [Printed; 3])> = vec![];
    let methods: [Method; 5] = [
        (
            "DPSGD",
            false,
            None,
            Some([(0.9951, 0.0011), (4.1469, 0.0622), (1.4096, 0.1710), (1.4521, 0.1506)]),
        ),
        ("Prune", true, None, Some([(0.9924, 0.0031), (2.9422, 0.2106), (1.0357, 0.0401), (1.0180, 0.0670)])),
        (
            "FIM, as in the thesis",
            true,
            of(PerturbationKind::Thesis),
            Some([(0.9975, 0.0008), (2.3875, 0.0286), (0.5713, 0.0217), (0.5339, 0.0392)]),
        ),
        ("FIM, constant", true, of(PerturbationKind::Constant), None),
        ("FIM, average", true, of(PerturbationKind::Average), None),
    ];
    for (name, half, how, paper) in methods {
        let count = match how.map(|h| h.variant) {
            None => runs(context)[0],
            Some(PerturbationKind::Thesis) => runs(context)[1],
            Some(PerturbationKind::Average | PerturbationKind::Constant | PerturbationKind::Network) => {
                runs(context)[2]
            }
        };
        let ran = several(context, &pool, ((SIGMA, half, how), count), 5)?;
        let Some(Several { accuracies, leaked, first }) = ran else { continue };
        let column = format!("{name}: accuracy");
        match paper {
            Some([of_accuracy, columns @ ..]) => {
                findings.rows.push(compared(column, of_accuracy, &accuracies));
                let mut rows = leaked.beside(name, columns, "").into_iter();
                if how.is_none()
                    && let Some(largest) = rows.next()
                {
                    let pieces = Thousands::of(context, &mut pool, (half, runs(context)[0]))?;
                    findings.rows.extend(pieces.beside(name, (columns[0].0, largest)));
                }
                findings.rows.extend(rows);
                printed.push((name, leaked, columns));
            }
            None => {
                findings.rows.push(Row::ours(column, mean_and_deviation(&accuracies).0));
                findings.rows.extend(leaked.alone(name));
            }
        }
        if let Some(last) = first.steps.last() {
            findings
                .rows
                .push(Row::ours(format!("{name}: cosine with the average public gradient"), last.cosine));
        }
        means.push((name, leaked.mean_dfil()));
    }
    findings.claims.extend(reading(&printed));
    for pair in means.windows(2).take(2) {
        let [(more, a), (less, b)] = [pair[0], pair[1]];
        findings.claims.push(Claim::new(
            format!("{less} has a smaller mean dFIL than {more}."),
            b < a,
            format!("{} against {}.", format::number(b), format::number(a)),
        ));
    }
    Ok(findings)
}

/// A perturbation of these tables: public records in one batch.
pub(super) fn usual(context: &Context<'_>) -> Perturbing {
    Perturbing { epochs: epochs(context), batch: 1024, ..Perturbing::default() }
}

/// Table A.1: with and without batch norm.
pub(crate) fn table_a_1(context: &Context<'_>) -> Result<Findings> {
    let pool = pool(context)?;
    let mut findings = Findings { method: setup(context, &pool), ..Findings::default() };
    findings.rows.push(Row::printed("ε of one full batch, δ = 10⁻⁹", 389.9752, 4, epsilon(SIGMA, 1.0, 1)?));
    let all = if context.full { 1000 } else { epochs(context) };
    let usual =
        Perturbing { epochs: all, learning_rate: 0.01, weight_decay: 0.2, fresh: true, ..usual(context) };
    let mut largest = vec![];
    let [_, many, few] = runs(context);
    let mut printed: Vec<(&str, Leaked, [Printed; 3])> = vec![];
    for (name, (variant, count), paper) in [
        (
            "batch norm (a constant)",
            (PerturbationKind::Thesis, many),
            [(0.9685, 0.0008), (0.6216, 0.0223), (0.4406, 0.0058), (0.4433, 0.0072)],
        ),
        (
            "static standardisation (a network)",
            (PerturbationKind::Network, few),
            [(0.9614, 0.0238), (3.2741, 1.9908), (0.4239, 0.0124), (0.4086, 0.0285)],
        ),
    ] {
        let how = (SIGMA, true, Some(Perturbing { variant, ..usual }));
        let Some(Several { accuracies, leaked, first: ran }) = several(context, &pool, (how, count), 1)?
        else {
            continue;
        };
        largest.push(leaked.root[0]);
        let [of_accuracy, columns @ ..] = paper;
        findings.rows.push(compared(format!("{name}: accuracy"), of_accuracy, &accuracies));
        findings.rows.extend(leaked.beside(name, columns, ""));
        printed.push((name, leaked, columns));
        if let Some(last) = ran.steps.last() {
            findings.rows.push(Row::ours(format!("{name}: difference between records"), last.spread));
            findings
                .rows
                .push(Row::ours(format!("{name}: cosine with the average public gradient"), last.cosine));
        }
    }
    findings.claims.extend(reading(&printed));
    if let [constant, network] = largest[..] {
        findings.claims.push(Claim::new(
            "The largest √dFIL is smaller with batch norm.",
            constant < network,
            format!("{} against {}.", format::number(constant), format::number(network)),
        ));
    }
    let lesson = records(&pool.images, 0, pool.parts[0], 1)?;
    let spread = batch_norm::spread(&lesson, 24, context.seed)?;
    findings.rows.extend(spread.rows());
    findings.method.push(spread.conclusion());
    findings.method.push(
        "The network here reads the image alone, standardised by constants, with one hidden layer of 64: the thesis’s has two \
         convolutions and reads label, parameters and gradient besides."
            .into(),
    );
    Ok(findings)
}

/// Figure 3.4: what the perturbation is, in the first step and the others.
pub(crate) fn fig_3_4(context: &Context<'_>) -> Result<Findings> {
    let pool = pool(context)?;
    let mut findings = Findings { method: setup(context, &pool), ..Findings::default() };
    let mut series = vec![];
    for (name, variant) in [
        ("as in the thesis", PerturbationKind::Thesis),
        ("constant", PerturbationKind::Constant),
        ("average", PerturbationKind::Average),
    ] {
        let how = Perturbing { variant, ..usual(context) };
        let ran = train(context, &pool, (SIGMA, true, Some(how)), (5, context.seed))?;
        let points: Vec<[f64; 2]> =
            ran.steps.iter().enumerate().map(|(t, p)| [(t + 1) as f64, p.cosine]).collect();
        if let Some(first) = ran.steps.first() {
            let quantity = format!("{name}: cosine with the average public gradient, first step");
            findings.rows.push(Row::ours(quantity, first.cosine));
            if variant == PerturbationKind::Thesis {
                findings.claims.push(Claim::new(
                    "“The high cosine similarity implies that FIM is learning the average gradient of the public data”: it is \
                     above 0.9 in the first step.",
                    first.cosine > 0.9,
                    format!(
                        "{} after {} epochs. It could not be a function of the image: see below.",
                        format::number(first.cosine),
                        epochs(context)
                    ),
                ));
            }
            findings.rows.push(Row::ours(format!("{name}: norm, first step"), first.norm));
            findings.rows.push(Row::ours(format!("{name}: difference between records"), first.spread));
        }
        series.push(PointSeries::new(name, points));
    }
    let lesson = records(&pool.images, 0, pool.parts[0], 1)?;
    let spread = batch_norm::spread(&lesson, 24, context.seed)?;
    findings.rows.extend(spread.rows());
    findings.method.push(spread.conclusion());
    findings.figures.push(Figure {
        file: "edmunds-fig3.4".into(),
        title: "Figure 3.4: cosine of the perturbation with the average public gradient".into(),
        caption: "The thesis draws the first step. That of the average is 1 or −1 by definition.".into(),
        panels: vec![Panel {
            title: "cosine".into(),
            content: Content::Curves {
                x: AxisTitle::linear("private step"),
                y: AxisTitle::linear("cosine with the average public gradient"),
                series,
                levels: vec![(1.0, "the same direction".into())],
            },
        }],
    });
    Ok(findings)
}
