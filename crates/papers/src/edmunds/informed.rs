//! Tables 3.4, 3.5 and A.1: digits 0 and 1, one logit, full batches, and the informed adversary.

use super::super::data::{Images, digits};
use super::super::images::summary;
use super::super::mueller::said;
use super::super::{Context, Findings};
use super::batch_norm;
use super::epsilon;
use super::run::{DELTA, records};
use leakscope::Result;
use leakscope_core::num::Summary;
use leakscope_net::attack::informed::{
    Examples, Learning, Linear, Rest, by_label, by_network, by_ridge, train_many,
};
use leakscope_net::engine::evaluate;
use leakscope_net::leak::Label;
use leakscope_net::perturb::{Perturbed, Perturbing, Variant};
use leakscope_net::preset::preset;
use leakscope_net::quality::mse;
use leakscope_net::random::{Generator, Purpose};
use leakscope_net::train::{Optimizer, Privacy, Randomness, Sampling, Tracking, TrainConfig, Trainer};
use leakscope_net::{Clip, Data, Loss, Network, Shape};
use leakscope_report::format;
use leakscope_report::reproduction::{Claim, Ours, Row};

const SIGMA: f64 = 0.05;
const CLIP: Clip = Clip::Gelu { bound: 10.0 };
const RATE: f64 = 0.1;

/// The records: public, known to the adversary, to learn from, to attack.
struct Pool {
    images: Images,
    test: Images,
    parts: [usize; 4],
}

fn pool(context: &Context<'_>) -> Result<Pool> {
    let (train, test) = digits(context)?;
    let (images, test) = (train.of(&[0, 1]), test.of(&[0, 1]));
    let parts = match (context.full, context.synthetic) {
        (true, _) => [1000, 1000, 9500, 500],
        // no fewer than a record has values
        (false, false) => [1000, 1000, 1600, 200],
        (false, true) => [40, 40, 0, 0],
    };
    Ok(Pool { images, test, parts })
}

/// Where every model starts: Glorot normal, bias N(0, 0.01²).
fn start(d: usize, seed: u64) -> Vec<f64> {
    let mut rng = Generator::new(seed, Purpose::Weights, 0);
    let scale = (2.0 / (d + 1) as f64).sqrt();
    (0..=d).map(|i| rng.normal() * if i == d { 1e-2 } else { scale }).collect()
}

/// Which parameters are trained: all, or the larger half.
fn trained(start: &[f64], half: bool) -> Vec<bool> {
    let mut sizes: Vec<f64> = start.iter().map(|v| v.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let least = if half { sizes[sizes.len() / 2] } else { 0.0 };
    start.iter().map(|v| v.abs() >= least).collect()
}

struct Ran {
    accuracy: f64,
    dfil: Option<Summary>,
    steps: Vec<Perturbed>,
    /// What was added in every step, where that is a constant.
    added: Vec<Vec<f64>>,
}

/// Full batches of the known records; noise and a perturbation where they are asked for.
fn train(
    context: &Context<'_>,
    pool: &Pool,
    (sigma, half, how): (f64, bool, Option<Perturbing>),
    steps: u64,
) -> Result<Ran> {
    let [public, known, ..] = pool.parts;
    let d = pool.images.size();
    let theta = start(d, context.seed);
    let keep = trained(&theta, half);
    let spec = preset("linear", Shape::Image(pool.images.shape), 1).map_err(said)?;
    let single: Vec<f32> = theta.iter().map(|v| *v as f32).collect();
    let mut net = Network::<f32>::with_parameters(spec, &single).map_err(said)?;
    net.freeze(&keep.iter().map(|k| !k).collect::<Vec<bool>>()).map_err(said)?;
    let data = records(&pool.images, public, known, 1)?;
    let lesson = records(&pool.images, 0, public, 1)?;
    let test = records(&pool.test, 0, pool.test.labels.len(), 1)?;
    let config = TrainConfig {
        optimizer: Optimizer::adam(),
        learning_rate: RATE,
        weight_decay: 0.0,
        sampling: Sampling::Poisson { rate: 1.0 },
        privacy: (sigma > 0.0).then_some(Privacy { clip: CLIP, sigma }),
        tracking: if sigma > 0.0 { Tracking::Every { probes: 10 } } else { Tracking::Off },
        label: Label::Public,
        delta: DELTA,
        seed: context.seed,
        randomness: Randomness::SeededNotPrivate,
        divisor: None,
        filter: None,
    };
    let mut trainer = Trainer::new(net, &data, config).map_err(said)?;
    if let Some(how) = how {
        trainer.perturb(how, &lesson).map_err(said)?;
    }
    let (mut perturbed, mut added) = (vec![], vec![]);
    for _ in 0..steps {
        context.check()?;
        trainer.step().map_err(said)?;
        perturbed.extend(trainer.perturbed());
        added.extend(trainer.added().map(<[f64]>::to_vec));
    }
    let dfil: Vec<f64> = trainer.budgets().iter().filter_map(|b| b.dfil.map(|m| m.value)).collect();
    let accuracy = evaluate(trainer.network(), &test).map_err(said)?.accuracy.unwrap_or(f64::NAN);
    Ok(Ran { accuracy, dfil: (!dfil.is_empty()).then(|| summary(&dfil)), steps: perturbed, added })
}

/// Epochs of a perturbation before the first step.
fn epochs(context: &Context<'_>) -> u64 {
    match (context.full, context.synthetic) {
        (true, _) => 200,
        (false, false) => 60,
        (false, true) => 3,
    }
}

fn said_of(context: &Context<'_>, pool: &Pool) -> Vec<String> {
    let [public, known, learn, targets] = pool.parts;
    let mut out = vec![format!(
        "Digits 0 and 1 in file order: {public} public, {known} known to the adversary, {learn} to learn from, {targets} to \
         attack. One logit, Adam with learning rate 0.1, five full batches, smooth clip 10, σ = 0.05."
    )];
    if !context.full {
        out.push(
            "A part of the published size, which `--full` runs: 9,500 models to learn from, 500 to attack, 100 epochs of the \
             adversary, 200 of the perturbation."
                .into(),
        );
    }
    out
}

/// Table 3.4: accuracy and dFIL of the models that are attacked.
pub(crate) fn table_3_4(context: &Context<'_>) -> Result<Findings> {
    let pool = pool(context)?;
    let mut found = Findings { method: said_of(context, &pool), ..Findings::default() };
    for (steps, paper) in [(1, 389.9752), (2, 697.6610), (3, 996.0350), (4, 1294.4090), (5, 1571.4291)] {
        let name = format!("ε after {steps} full batches, δ = 10⁻⁹");
        found.rows.push(Row::printed(name, paper, 4, epsilon(SIGMA, 1.0, steps)?));
    }
    let usual = Perturbing { epochs: epochs(context), ..Perturbing::default() };
    let of = |variant| Some(Perturbing { variant, ..usual });
    let open = train(context, &pool, (0.0, false, None), 5)?;
    found.rows.push(Row::within("SGD: accuracy", (0.9964, 4), 0.005, open.accuracy));
    let mut means = vec![];
    for (name, half, how, paper) in [
        ("DPSGD", false, None, Some([0.9951, 4.1469, 1.4096, 1.4521])),
        ("Prune", true, None, Some([0.9924, 2.9422, 1.0357, 1.0180])),
        ("FIM, as in the thesis", true, of(Variant::Thesis), Some([0.9975, 2.3875, 0.5713, 0.5339])),
        ("FIM, constant", true, of(Variant::Constant), None),
        ("FIM, average", true, of(Variant::Average), None),
    ] {
        let ran = train(context, &pool, (SIGMA, half, how), 5)?;
        let Some(d) = &ran.dfil else { continue };
        let ours = [ran.accuracy, d.max, d.mean, d.p50];
        for (i, column) in ["accuracy", "largest dFIL", "mean dFIL", "median dFIL"].iter().enumerate() {
            let name = format!("{name}: {column}");
            found.rows.push(match paper {
                Some(paper) => {
                    let tolerance = if i == 0 { 0.005 } else { 0.25 * paper[i] };
                    Row::within(name, (paper[i], 4), tolerance, ours[i])
                }
                None => Row::ours(name, ours[i]),
            });
        }
        if let Some(last) = ran.steps.last() {
            found
                .rows
                .push(Row::ours(format!("{name}: cosine with the average public gradient"), last.cosine));
        }
        means.push((name, d.mean));
    }
    for pair in means.windows(2).take(2) {
        let [(more, a), (less, b)] = [pair[0], pair[1]];
        found.claims.push(Claim::new(
            format!("{less} has a smaller mean dFIL than {more}."),
            b < a,
            format!("{} against {}.", format::number(b), format::number(a)),
        ));
    }
    Ok(found)
}

fn rest(data: &Data<f32>) -> Rest {
    let y = (0..data.len()).map(|i| f64::from(data.label(i)[0])).collect();
    Rest { x: data.records().iter().map(|&v| f64::from(v)).collect(), y }
}

/// Table 3.5: what the informed adversary reconstructs.
pub(crate) fn table_3_5(context: &Context<'_>) -> Result<Findings> {
    let mut pool = pool(context)?;
    if context.synthetic {
        // as many targets as there are, on smaller pictures: the map needs one for each value
        return small(context);
    }
    let [public, known, learn, targets] = pool.parts;
    if pool.images.labels.len() < pool.parts.iter().sum() {
        pool.parts[2] = pool.images.labels.len().saturating_sub(public + known + targets);
    }
    let mut found = Findings { method: said_of(context, &pool), ..Findings::default() };
    let d = pool.images.size();
    let theta = start(d, context.seed);
    let known_records = rest(&records(&pool.images, public, known, 1)?);
    let all = rest(&records(&pool.images, public + known, learn + targets, 1)?);
    let how = Perturbing { variant: Variant::Thesis, epochs: epochs(context), ..Perturbing::default() };
    // what is added must not depend on the attacked models: learned along a run over the known records
    let added = train(context, &pool, (SIGMA, true, Some(how)), 5)?.added;
    let attack = if context.full { 100 } else { 12 };
    let mut errors = vec![];
    for (name, sigma, half, shifts, (factor, rate, decay), paper) in [
        ("SGD", 0.0, false, vec![], (1.0, 1e-3, 0.01), 0.0109),
        ("DPSGD", SIGMA, false, vec![], (1.0, 1e-3, 0.01), 0.0376),
        ("Prune", SIGMA, true, vec![], (1.0, 1e-3, 0.1), 0.0396),
        ("FIM", SIGMA, true, added, (0.3, 0.01, 0.1), 0.0449),
    ] {
        context.check()?;
        let model = Linear {
            inputs: d,
            outputs: 1,
            loss: Loss::BinaryCrossEntropy,
            trained: trained(&theta, half),
            start: theta.clone(),
            optimizer: Optimizer::adam(),
            learning_rate: RATE,
            weight_decay: 0.0,
            clip: if sigma > 0.0 { CLIP } else { Clip::None },
            sigma,
            steps: 5,
            shifts,
        };
        let parameters = train_many(&model, &known_records, &all, context.seed, &|_| true).map_err(said)?;
        let (train, test) = (
            examples(&model, &parameters, &all, 0, learn),
            examples(&model, &parameters, &all, learn, targets),
        );
        let epochs = ((attack as f64) * factor).ceil() as u64;
        let how = Learning { epochs, learning_rate: rate, weight_decay: decay, seed: context.seed };
        let network = by_network(&train, &test, &how, &|_, _| context.check().is_ok()).map_err(said)?;
        let error = mse(&test.records, &network).map_err(said)?;
        let row =
            Row::within(format!("{name}: MSE of the adversary"), (paper, 4), 0.005, Ours::achieved(error));
        found.rows.push(row);
        let ridge = mse(&test.records, &by_ridge(&train, &test).map_err(said)?).map_err(said)?;
        found
            .rows
            .push(Row::ours(format!("{name}: MSE of ridge regression by class"), Ours::achieved(ridge)));
        if errors.is_empty() {
            let label = mse(&test.records, &by_label(&train, &test).map_err(said)?).map_err(said)?;
            found.rows.push(Row::within(
                "labels only (“perfect privacy”): MSE",
                (0.0439, 4),
                0.003,
                Ours::achieved(label),
            ));
            errors.push(("labels only", label));
        }
        errors.push((name, error.min(ridge)));
    }
    let of = |name: &str| errors.iter().find(|e| e.0 == name).map_or(f64::NAN, |e| e.1);
    for (less, more) in [("SGD", "DPSGD"), ("DPSGD", "FIM"), ("Prune", "FIM")] {
        found.claims.push(Claim::new(
            format!("{less} is reconstructed better than {more}."),
            of(less) < of(more),
            format!("Best MSE {} against {}.", format::number(of(less)), format::number(of(more))),
        ));
    }
    found.method.push(
        "What FIM adds is learned along one run and the same for all attacked models, so that they train as one computation. \
         The published LPIPS is of images reshaped from channels last to channels first, that is scrambled: `net attack \
         --lpips` computes it as it is defined, given weights."
            .into(),
    );
    Ok(found)
}

fn examples(model: &Linear, parameters: &[f64], all: &Rest, from: usize, count: usize) -> Examples {
    let (p, d) = (model.parameters(), model.inputs);
    let released = |row: &[f64]| -> Vec<f64> {
        row.iter().zip(&model.trained).filter(|(_, t)| **t).map(|(v, _)| *v).collect()
    };
    Examples {
        features: parameters[from * p..][..count * p].chunks_exact(p).flat_map(released).collect(),
        labels: all.y[from..][..count].to_vec(),
        records: all.x[from * d..][..count * d].to_vec(),
        count,
    }
}

/// On made-up digits there are fewer targets than a digit has values: their means over 7 × 7 squares are attacked instead.
fn small(context: &Context<'_>) -> Result<Findings> {
    let (train, _) = digits(context)?;
    let images = train.of(&[0, 1]);
    let [height, width, _] = images.shape;
    let side = 7;
    let of = |i: usize| {
        let image = images.image(i);
        (0..(height / side) * (width / side)).map(move |k| {
            let (r, c) = (k / (width / side) * side, k % (width / side) * side);
            let inside = (0..side * side).map(|p| f64::from(image[(r + p / side) * width + c + p % side]));
            inside.sum::<f64>() / (255.0 * (side * side) as f64)
        })
    };
    let n = images.labels.len();
    let (known, learn) = (n / 5, n / 2);
    let x: Vec<f64> = (0..n).flat_map(of).collect();
    let d = x.len() / n.max(1);
    let part = |from: usize, to: usize| Rest {
        x: x[from * d..to * d].to_vec(),
        y: images.labels[from..to].iter().map(|&l| f64::from(l)).collect(),
    };
    let theta = start(d, context.seed);
    let mut found = Findings {
        method: vec!["Made-up digits, averaged over squares: only that the attack runs.".into()],
        ..Findings::default()
    };
    for (name, sigma) in [("SGD", 0.0), ("DPSGD", SIGMA)] {
        let model = Linear {
            inputs: d,
            outputs: 1,
            loss: Loss::BinaryCrossEntropy,
            trained: trained(&theta, false),
            start: theta.clone(),
            optimizer: Optimizer::adam(),
            learning_rate: RATE,
            weight_decay: 0.0,
            clip: if sigma > 0.0 { CLIP } else { Clip::None },
            sigma,
            steps: 5,
            shifts: vec![],
        };
        let all = part(known, n);
        let parameters = train_many(&model, &part(0, known), &all, context.seed, &|_| true).map_err(said)?;
        let (train, test) = (
            examples(&model, &parameters, &all, 0, learn),
            examples(&model, &parameters, &all, learn, n - known - learn),
        );
        let ridge = mse(&test.records, &by_ridge(&train, &test).map_err(said)?).map_err(said)?;
        let label = mse(&test.records, &by_label(&train, &test).map_err(said)?).map_err(said)?;
        found
            .rows
            .push(Row::ours(format!("{name}: MSE of ridge regression by class"), Ours::achieved(ridge)));
        found.rows.push(Row::ours(format!("{name}: MSE by the label alone"), Ours::achieved(label)));
    }
    Ok(found)
}

/// Table A.1: with and without batch norm.
pub(crate) fn table_a_1(context: &Context<'_>) -> Result<Findings> {
    let pool = pool(context)?;
    let mut found = Findings { method: said_of(context, &pool), ..Findings::default() };
    found.rows.push(Row::printed("ε of one full batch, δ = 10⁻⁹", 389.9752, 4, epsilon(SIGMA, 1.0, 1)?));
    let all = if context.full { 1000 } else { epochs(context).div_ceil(6) };
    let usual = Perturbing {
        epochs: all,
        learning_rate: 0.01,
        weight_decay: 0.2,
        fresh: true,
        ..Perturbing::default()
    };
    for (name, variant, paper) in [
        ("batch norm (a constant)", Variant::Thesis, [0.9685, 0.6216, 0.4406, 0.4433]),
        ("static standardisation (a network)", Variant::Network, [0.9614, 3.2741, 0.4239, 0.4086]),
    ] {
        let ran = train(context, &pool, (SIGMA, true, Some(Perturbing { variant, ..usual })), 1)?;
        let Some(d) = &ran.dfil else { continue };
        let ours = [ran.accuracy, d.max, d.mean, d.p50];
        for (i, column) in ["accuracy", "largest dFIL", "mean dFIL", "median dFIL"].iter().enumerate() {
            let tolerance = if i == 0 { 0.02 } else { 0.5 * paper[i] };
            found.rows.push(Row::within(format!("{name}: {column}"), (paper[i], 4), tolerance, ours[i]));
        }
        if let Some(last) = ran.steps.last() {
            found.rows.push(Row::ours(format!("{name}: difference between records"), last.spread));
            found
                .rows
                .push(Row::ours(format!("{name}: cosine with the average public gradient"), last.cosine));
        }
    }
    let lesson = records(&pool.images, 0, pool.parts[0], 1)?;
    let spread = batch_norm::spread(&lesson, 24, context.seed)?;
    found.rows.extend(spread.rows());
    found.claims.push(spread.claim());
    found.method.push(
        "The network here reads the image alone, standardised by constants, with one hidden layer of 64: the thesis’s has two \
         convolutions and reads label, parameters and gradient besides."
            .into(),
    );
    Ok(found)
}
