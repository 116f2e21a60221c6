//! Mueller et al. (2023): which values of a record a privately trained model gives away. Figures 1, 2 and the network
//! part of figure 3.

use super::data::{self, Images};
use super::images::{ascending, summary};
use super::{Context, Found};
use crate::commands::net::demo::{INFORMATIVE, WIDTH, regression};
use crate::{Failure, Result};
use leakscope_net::engine::evaluate;
use leakscope_net::leak::{Label, Measure, Plis, RecordLeak, Trace, measure};
use leakscope_net::preset::preset;
use leakscope_net::spec::SPEC_VERSION;
use leakscope_net::train::{Optimizer, Privacy, Sampling, Tracking, TrainConfig, Trainer, sigma_for};
use leakscope_net::{Clip, Data, LayerSpec, Loss, NetSpec, Network, Real, Shape};
use leakscope_report::format;
use leakscope_report::net::Picture;
use leakscope_report::reproduction::{AxisTitle, Captioned, Claim, Content, Figure, Panel, PointSeries, Row};

fn said(error: impl std::fmt::Display) -> Failure {
    Failure::Message(error.to_string())
}

/// A run: how many steps, what share of the records in each, how fast.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    steps: u64,
    rate: f64,
    learning_rate: f64,
    momentum: f64,
}

/// Trains a network, in private where there is a budget (ε, δ) with a clip.
fn train<T: Real>(
    context: &Context<'_>,
    spec: &NetSpec,
    data: &Data<T>,
    schedule: Schedule,
    budget: Option<(f64, f64, Clip)>,
) -> Result<(Network<T>, f64)> {
    let sampling = Sampling::Poisson { rate: schedule.rate };
    let mut sigma = 1.0;
    let mut delta = 1e-5;
    let mut privacy = None;
    if let Some((epsilon, at, clip)) = budget {
        sigma = sigma_for(epsilon, at, clip, sampling, schedule.steps, data.len()).map_err(said)?;
        delta = at;
        privacy = Some(Privacy { clip, sigma });
    }
    let config = TrainConfig {
        optimizer: Optimizer::Sgd { momentum: schedule.momentum },
        learning_rate: schedule.learning_rate,
        weight_decay: 0.0,
        sampling,
        privacy,
        tracking: Tracking::Off,
        label: Label::Public,
        delta,
        seed: context.seed,
    };
    let net = Network::new(spec.clone(), context.seed).map_err(said)?;
    let mut trainer = Trainer::new(net, data, config).map_err(said)?;
    for _ in 0..schedule.steps {
        context.check()?;
        trainer.step().map_err(said)?;
    }
    Ok((trainer.into_network(), sigma))
}

/// Figure 1.
pub(super) fn fig1(context: &Context<'_>) -> Result<Found> {
    const SHOWN: [usize; 3] = [8, 9, 12];
    let n = 2000;
    let (x, y) = regression(n, context.seed);
    let input = Shape::Vector([WIDTH]);
    let layers = vec![LayerSpec::Dense { outputs: 1, bias: false, frozen: false }];
    let spec = NetSpec { version: SPEC_VERSION, input, layers, loss: Loss::SquaredError };
    let data = Data::<f64>::new(input, x, 1, y).map_err(said)?;
    let clip = Clip::Gelu { bound: 5.0 };
    let schedule = Schedule { steps: 20, rate: 0.25, learning_rate: 0.3, momentum: 0.0 };
    let (net, sigma) = train(context, &spec, &data, schedule, Some((0.2, 1e-3, clip)))?;
    let what = Measure {
        clip,
        sigma,
        label: Label::Public,
        trace: Trace::Elements,
        eta: None,
        plis: Plis::Elements,
        seed: context.seed,
    };
    let all: Vec<usize> = (0..n).collect();
    let leaks = measure(&net, &data, &all, &what).map_err(said)?;
    let mean =
        |of: &dyn Fn(&RecordLeak) -> f64| leaks.iter().map(of).sum::<f64>() / leaks.len().max(1) as f64;
    // η of the feature on its own, and the size of its PLIS.
    let fil: Vec<f64> =
        (0..WIDTH).map(|j| mean(&|l| l.information.get(j).copied().unwrap_or(0.0).max(0.0).sqrt())).collect();
    let plis: Vec<f64> =
        (0..WIDTH).map(|j| mean(&|l| l.plis_parts.get(j).copied().unwrap_or(0.0).abs())).collect();
    let least = |v: &[f64]| INFORMATIVE.iter().map(|&j| v[j]).fold(f64::INFINITY, f64::min);
    let most = |v: &[f64]| (0..WIDTH).filter(|j| !INFORMATIVE.contains(j)).map(|j| v[j]).fold(0.0, f64::max);
    let mut found = Found {
        data: vec![format!(
            "{} synthetic records of {WIDTH} normal values; the target depends on values {} alone",
            format::count(n as u64),
            INFORMATIVE.map(|j| j.to_string()).join(", ")
        )],
        method: vec![format!(
            "Linear regression by DP-SGD at (ε, δ) = (0.2, 10⁻³): 20 steps over a quarter of the records, clip 5, σ = {}. \
             FIL of a feature is its η on its own, for one release without sampling; both are means over all records.",
            format::setting(sigma)
        )],
        ..Found::default()
    };
    for j in SHOWN {
        let kind = if INFORMATIVE.contains(&j) { "informative" } else { "uninformative" };
        found.rows.push(Row::ours(format!("feature {j} ({kind}): mean FIL"), fil[j]));
        found.rows.push(Row::ours(format!("feature {j} ({kind}): mean PLIS"), plis[j]));
    }
    for (name, values) in [("FIL", &fil), ("PLIS", &plis)] {
        let (low, high) = (least(values), most(values));
        found.claims.push(Claim::new(
            format!("Informative features have a high {name}, uninformative ones one near zero."),
            low > 5.0 * high,
            format!("At least {} against at most {}.", format::number(low), format::number(high)),
        ));
    }
    let panel = |title: &str, values: &[f64]| {
        let of = |informative: bool| {
            let mine = (0..WIDTH).filter(|j| INFORMATIVE.contains(j) == informative);
            mine.map(|j| [j as f64, values[j]]).collect::<Vec<_>>()
        };
        Panel {
            title: title.into(),
            content: Content::Dots {
                x: AxisTitle::linear("feature"),
                y: AxisTitle::linear(format!("mean {title}")),
                series: vec![
                    PointSeries::new("informative", of(true)),
                    PointSeries::new("uninformative", of(false)),
                ],
                line: None,
                notes: vec![],
            },
        }
    };
    found.figures.push(Figure {
        file: "mueller-fig1".into(),
        title: "Figure 1: FIL and PLIS of every feature".into(),
        caption: "Both point at the same features. The paper shows three of them.".into(),
        panels: vec![panel("FIL", &fil), panel("PLIS", &plis)],
    });
    Ok(found)
}

/// Pixels as a network sees them.
#[derive(Debug, Clone, Copy)]
struct Normal {
    mean: f64,
    sd: f64,
}

impl Normal {
    fn data(self, images: &Images, outputs: usize) -> Result<Data<f32>> {
        let x =
            images.pixels.iter().map(|&b| ((f64::from(b) / 255.0 - self.mean) / self.sd) as f32).collect();
        let classes: Vec<u32> = images.labels.iter().map(|&l| u32::from(l)).collect();
        Data::classes(Shape::Image(images.shape), x, outputs, &classes).map_err(said)
    }
}

/// Two models of the same images: in private and in the open.
struct Pair {
    private: Network<f32>,
    open: Network<f32>,
    sigma: f64,
    accuracy: [f64; 2],
}

const CLIP: f64 = 1.0;
const MOMENTUM: f64 = 0.9;
/// For a few hundred made-up images.
const SMALL: (Schedule, Schedule) = (
    Schedule { steps: 20, rate: 0.2, learning_rate: 0.2, momentum: MOMENTUM },
    Schedule { steps: 40, rate: 0.2, learning_rate: 0.1, momentum: MOMENTUM },
);
/// Records whose PLIS is measured.
const MEASURED: usize = 1000;

fn pair(
    context: &Context<'_>,
    (train_set, test_set): (&Data<f32>, &Data<f32>),
    outputs: usize,
    (private, open): (Schedule, Schedule),
) -> Result<Pair> {
    let spec = preset("cnn-mnist", train_set.input(), outputs).map_err(said)?;
    let clip = Clip::Hard { bound: CLIP };
    let (dp, sigma) = train(context, &spec, train_set, private, Some((1.0, 1e-5, clip)))?;
    let (plain, _) = train(context, &spec, train_set, open, None)?;
    let accuracy = |net: &Network<f32>| -> Result<f64> {
        Ok(evaluate(net, test_set).map_err(said)?.accuracy.unwrap_or(f64::NAN))
    };
    let accuracy = [accuracy(&dp)?, accuracy(&plain)?];
    Ok(Pair { private: dp, open: plain, sigma, accuracy })
}

/// PLIS of records: of the gradient that DP-SGD releases, or of the plain one.
fn plis(
    pair: &Pair,
    private: bool,
    data: &Data<f32>,
    records: &[usize],
    maps: bool,
) -> Result<Vec<RecordLeak>> {
    let (net, clip) = match private {
        // The smooth clip leaves a signal where a hard one has none.
        true => (&pair.private, Clip::Gelu { bound: CLIP }),
        false => (&pair.open, Clip::None),
    };
    let what = Measure {
        clip,
        sigma: if private { pair.sigma } else { 1.0 },
        label: Label::Public,
        trace: Trace::Skip,
        eta: None,
        plis: if maps { Plis::Elements } else { Plis::Record },
        seed: 1,
    };
    measure(net, data, records, &what).map_err(said)
}

/// One record with its maps under both models.
fn maps(pair: &Pair, images: &Images, data: &Data<f32>, record: usize) -> Result<Vec<Captioned>> {
    let [height, width, _] = images.shape;
    let mut out = vec![];
    if let Some(picture) = super::images::picture(images, record) {
        out.push(Captioned { picture, caption: "input".into() });
    }
    for (private, caption) in [(true, "with DP"), (false, "without DP")] {
        let leaks = plis(pair, private, data, &[record], true)?;
        let parts: Vec<f64> =
            leaks.first().map(|l| l.plis_parts.iter().map(|v| v.abs()).collect()).unwrap_or_default();
        let most = parts.iter().copied().fold(0.0, f64::max);
        if let Some(picture) = Picture::heat([height, width], &parts, most) {
            out.push(Captioned { picture, caption: caption.into() });
        }
    }
    Ok(out)
}

/// Records of a data set by their PLIS under the private model, the smallest that is not zero first.
fn ranked(pair: &Pair, data: &Data<f32>) -> Result<(Vec<usize>, Vec<f64>)> {
    let some: Vec<usize> = (0..data.len().min(MEASURED)).collect();
    let values: Vec<f64> =
        plis(pair, true, data, &some, false)?.iter().map(|l| l.plis.unwrap_or(0.0)).collect();
    // Far beyond the clip nothing is left but rounding, which counts as zero.
    let most = values.iter().copied().fold(0.0, f64::max);
    let order = ascending(&values).into_iter().filter(|&i| values[i] > 1e-6 * most).collect();
    Ok((order, values))
}

/// Mean distance of a class's images from their mean, as a measure of how unusual one is.
fn unusual(images: &Images, record: usize) -> f64 {
    let mine: Vec<usize> =
        (0..images.labels.len()).filter(|&i| images.labels[i] == images.labels[record]).collect();
    let size = images.size();
    let mut mean = vec![0.0; size];
    for &i in mine.iter().take(2000) {
        let share = 1.0 / mine.len().clamp(1, 2000) as f64;
        mean.iter_mut().zip(images.image(i)).for_each(|(m, &b)| *m += share * f64::from(b));
    }
    let distance = |i: usize| -> f64 {
        images.image(i).iter().zip(&mean).map(|(&b, m)| (f64::from(b) - m).powi(2)).sum::<f64>().sqrt()
    };
    let usual: Vec<f64> = mine.iter().take(500).map(|&i| distance(i)).collect();
    distance(record) / summary(&usual).p50.max(f64::MIN_POSITIVE)
}

fn figure(file: &str, title: &str, rows: Vec<(String, Vec<Captioned>)>) -> Figure {
    let panels = rows
        .into_iter()
        .map(|row| Panel { title: String::new(), content: Content::Pictures { rows: vec![row] } })
        .collect();
    let caption = "Left the input, then |PLIS| of every pixel for the model trained with and without DP, each on its own \
                   scale (white is zero).";
    Figure { file: file.into(), title: title.into(), caption: caption.into(), panels }
}

/// Figure 2.
pub(super) fn fig2(context: &Context<'_>) -> Result<Found> {
    let (train_images, test_images) = data::digits(context)?;
    let xrays = data::chests(context)?.0;
    let normal = Normal { mean: 0.1307, sd: 0.3081 };
    let (train_set, test_set) = (normal.data(&train_images, 10)?, normal.data(&test_images, 10)?);
    let schedules = match context.synthetic {
        false => (
            Schedule {
                steps: 500,
                rate: 1024.0 / train_set.len() as f64,
                learning_rate: 0.5,
                momentum: MOMENTUM,
            },
            Schedule {
                steps: 1400,
                rate: 128.0 / train_set.len() as f64,
                learning_rate: 0.05,
                momentum: MOMENTUM,
            },
        ),
        true => SMALL,
    };
    let pair = pair(context, (&train_set, &test_set), 10, schedules)?;
    let (order, values) = ranked(&pair, &train_set)?;
    let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
        return Err(Failure::Message("no record has a PLIS above zero".into()));
    };
    let outside = normal.data(&xrays, 10)?;
    let xray_plis = plis(&pair, true, &outside, &[0], false)?[0].plis.unwrap_or(0.0);
    let share = values.iter().filter(|v| **v < xray_plis).count() as f64 / values.len().max(1) as f64;
    let norm = |private: bool, data: &Data<f32>, i: usize| -> Result<f64> {
        Ok(plis(&pair, private, data, &[i], false)?[0].gradient_norm)
    };
    let some: Vec<usize> = (0..train_set.len().min(MEASURED)).collect();
    let open_norms: Vec<f64> =
        plis(&pair, false, &train_set, &some, false)?.iter().map(|l| l.gradient_norm).collect();
    let xray_norm = norm(false, &outside, 0)?;
    let above = open_norms.iter().filter(|v| **v < xray_norm).count() as f64 / open_norms.len().max(1) as f64;
    let (typical, atypical) = (unusual(&train_images, first), unusual(&train_images, last));
    Ok(Found {
        data: vec![
            format!("MNIST: {} training images", format::count(train_set.len() as u64)),
            "PneumoniaMNIST: one chest X-ray as a point out of the distribution".into(),
        ],
        rows: vec![
            Row::ours("test accuracy with DP at (1, 10⁻⁵), %", 100.0 * pair.accuracy[0]),
            Row::ours("test accuracy without DP, %", 100.0 * pair.accuracy[1]),
            Row::ours("A, smallest PLIS that is not zero", values[first]),
            Row::ours("B, largest PLIS", values[last]),
            Row::ours("A, distance from its class over the usual one", typical),
            Row::ours("B, distance from its class over the usual one", atypical),
            Row::ours("C, PLIS of the X-ray", xray_plis),
        ],
        claims: vec![
            Claim::new(
                "The sample with the highest PLIS is atypical.",
                atypical > typical,
                format!(
                    "It lies {} times as far from the mean of its class as a usual image, the one with the smallest PLIS {} \
                     times.",
                    format::number(atypical),
                    format::number(typical)
                ),
            ),
            Claim::new(
                "Samples with a high PLIS or gradient signal are often out of the distribution.",
                above > 0.9,
                format!(
                    "The X-ray has a longer gradient than {} of {} training images in the open model; by PLIS under DP it \
                     is above {} of them, since the clip hides how long a gradient is.",
                    format::share(above),
                    format::count(open_norms.len() as u64),
                    format::share(share)
                ),
            ),
        ],
        method: vec![
            format!(
                "The CNN of Edmunds table B.7 (26,010 parameters for digits). DP-SGD to (1, 10⁻⁵): {} steps, σ = {}, clip {}; \
                 without DP {} steps; momentum 0.9.",
                schedules.0.steps,
                format::setting(pair.sigma),
                format::setting(CLIP),
                schedules.1.steps
            ),
            format!("PLIS is measured on the first {MEASURED} training images, with the smooth clip."),
        ],
        figures: vec![figure(
            "mueller-fig2",
            "Figure 2: PLIS of every pixel, with and without DP",
            vec![
                (
                    format!("A: smallest PLIS, digit {}", train_images.labels[first]),
                    maps(&pair, &train_images, &train_set, first)?,
                ),
                (
                    format!("B: largest PLIS, digit {}", train_images.labels[last]),
                    maps(&pair, &train_images, &train_set, last)?,
                ),
                ("C: out of the distribution, an X-ray".to_owned(), maps(&pair, &xrays, &outside, 0)?),
            ],
        )],
    })
}

/// Figure 3, the network part.
pub(super) fn fig3(context: &Context<'_>) -> Result<Found> {
    let (train_images, test_images) = data::chests(context)?;
    let normal = Normal { mean: 0.5, sd: 0.25 };
    let (train_set, test_set) = (normal.data(&train_images, 2)?, normal.data(&test_images, 2)?);
    let schedules = match context.synthetic {
        false => (
            Schedule {
                steps: 300,
                rate: 512.0 / train_set.len() as f64,
                learning_rate: 0.3,
                momentum: MOMENTUM,
            },
            Schedule {
                steps: 1000,
                rate: 64.0 / train_set.len() as f64,
                learning_rate: 0.05,
                momentum: MOMENTUM,
            },
        ),
        true => SMALL,
    };
    let pair = pair(context, (&train_set, &test_set), 2, schedules)?;
    let (order, values) = ranked(&pair, &train_set)?;
    let (Some(&first), Some(&last)) = (order.first(), order.last()) else {
        return Err(Failure::Message("no record has a PLIS above zero".into()));
    };
    let sick = test_images.labels.iter().filter(|l| **l == 1).count() as f64
        / test_images.labels.len().max(1) as f64;
    let guess = 100.0 * sick.max(1.0 - sick);
    Ok(Found {
        data: vec![format!("PneumoniaMNIST: {} training X-rays", format::count(train_set.len() as u64))],
        rows: vec![
            Row::ours("test accuracy with DP at (1, 10⁻⁵), %", 100.0 * pair.accuracy[0]),
            Row::ours("test accuracy without DP, %", 100.0 * pair.accuracy[1]),
            Row::ours("test accuracy of the more frequent class, %", guess),
            Row::ours("A, smallest PLIS that is not zero", values[first]),
            Row::ours("B, largest PLIS", values[last]),
        ],
        claims: vec![
            Claim::new(
                "Chest X-rays give results very similar to those on MNIST.",
                100.0 * pair.accuracy[0] > guess + 2.0 && values[last] > 2.0 * values[first],
                format!(
                    "As there, the network learns under DP ({:.1}% of test images right, {:.1}% without, {guess:.1}% by \
                     always guessing the more frequent class), and PLIS differs between subjects: from {} to {}. The \
                     paper prints no number to hold this against.",
                    100.0 * pair.accuracy[0],
                    100.0 * pair.accuracy[1],
                    format::number(values[first]),
                    format::number(values[last])
                ),
            ),
        ],
        method: vec![
            format!(
                "The CNN of Edmunds table B.7 with two outputs. DP-SGD: {} steps, σ = {}, clip {}; without DP {} steps.",
                schedules.0.steps,
                format::setting(pair.sigma),
                format::setting(CLIP),
                schedules.1.steps
            ),
            "The gradient inversion attack of the figure's second column is not part of this: it comes with the attacks on \
             networks."
                .into(),
        ],
        figures: vec![figure(
            "mueller-fig3",
            "Figure 3: PLIS of chest X-rays",
            vec![
                ("A: smallest PLIS".to_owned(), maps(&pair, &train_images, &train_set, first)?),
                ("B: largest PLIS".to_owned(), maps(&pair, &train_images, &train_set, last)?),
            ],
        )],
    })
}
