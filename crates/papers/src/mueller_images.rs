//! Mueller et al. (2022): figure 2 and the network part of figure 3, which pixels of an image a network gives away.

use super::data::{self, Images};
use super::images::{RECORDS, ascending, captioned};
use super::mueller::{Schedule, failure_of, train};
use super::{Context, Findings};
use leakscope::{Failure, Result};
use leakscope_net::engine::evaluate;
use leakscope_net::leak::{Label, Measure, Plis, RecordLeak, Signal, Trace, measure};
use leakscope_net::preset::Preset;
use leakscope_net::{Clip, Data, Network, Shape};
use leakscope_report::format;
use leakscope_report::net::Picture;
use leakscope_report::reproduction::{Captioned, Claim, Content, Figure, Panel, Pixels, Row};

/// Pixels as a network sees them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Normal {
    pub(super) mean: f64,
    pub(super) sd: f64,
}

impl Normal {
    pub(super) fn data(self, images: &Images, outputs: usize) -> Result<Data<f32>> {
        let x =
            images.pixels.iter().map(|&b| ((f64::from(b) / 255.0 - self.mean) / self.sd) as f32).collect();
        let classes: Vec<u32> = images.labels.iter().map(|&l| u32::from(l)).collect();
        Data::classes(Shape::Image(images.shape), x, outputs, &classes).map_err(failure_of)
    }
}

/// Two models of the same images: in private and in the open.
struct Pair {
    private: Network<f32>,
    open: Network<f32>,
    sigma: f64,
    accuracy: [f64; 2],
    /// Records whose PLIS is measured.
    measured: usize,
}

const CLIP: f64 = 1.0;
const MOMENTUM: f64 = 0.9;
/// For a few hundred made-up images.
const SMALL: (Schedule, Schedule) = (
    Schedule { steps: 20, rate: 0.2, learning_rate: 0.2, momentum: MOMENTUM },
    Schedule { steps: 40, rate: 0.2, learning_rate: 0.1, momentum: MOMENTUM },
);
/// Records whose PLIS is measured, on published and on made-up data.
const MEASURED: [usize; 2] = [1000, 200];

fn pair(
    context: &Context<'_>,
    (train_set, test_set): (&Data<f32>, &Data<f32>),
    outputs: usize,
    (private, open): (Schedule, Schedule),
) -> Result<Pair> {
    let spec = Preset::CnnMnist.spec(train_set.input(), outputs);
    // smooth, since PLIS needs a clip with a derivative: a hard one leaves no signal beyond it
    let clip = Clip::Gelu { bound: CLIP };
    let (dp, sigma) = train(context, &spec, train_set, private, Some((1.0, 1e-5, clip)))?;
    let (plain, _) = train(context, &spec, train_set, open, None)?;
    let accuracy = |net: &Network<f32>| -> Result<f64> {
        Ok(evaluate(net, test_set).map_err(failure_of)?.accuracy.unwrap_or(f64::NAN))
    };
    let accuracy = [accuracy(&dp)?, accuracy(&plain)?];
    let measured = MEASURED[usize::from(context.synthetic)];
    Ok(Pair { private: dp, open: plain, sigma, accuracy, measured })
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
        // as it was trained
        true => (&pair.private, Clip::Gelu { bound: CLIP }),
        false => (&pair.open, Clip::None),
    };
    let measures = Measure {
        shift: None,
        clip,
        sigma: if private { pair.sigma } else { 1.0 },
        label: Label::Public,
        trace: Trace::Skip,
        eta: None,
        plis: if maps { Plis::Elements } else { Plis::Record },
        signal: Signal::Released,
        seed: 1,
    };
    measure(net, data, records, &measures).map_err(failure_of)
}

/// What is no more than this share of the largest PLIS under DP counts as zero: beyond the clip a gradient hardly moves
/// what is released, and what is left of its PLIS is the rounding of 32-bit numbers.
const ROUNDING: f64 = 1e-6;

/// One record with its maps under both models; none is drawn of rounding, PLIS up to `floor` under DP.
fn maps(pair: &Pair, images: &Images, data: &Data<f32>, record: usize, floor: f64) -> Result<Vec<Captioned>> {
    let [height, width, _] = images.shape;
    let Some(input) = captioned(images, record, "input") else { return Ok(vec![]) };
    let mut out = vec![input.clone()];
    for (private, caption) in [(true, "with DP"), (false, "without DP")] {
        let leaks = plis(pair, private, data, &[record], true)?;
        let Some(leak) = leaks.first() else { continue };
        let whole = leak.plis.unwrap_or(0.0);
        let rounding = private && whole <= floor;
        let parts: Vec<f64> = match rounding {
            true => vec![0.0; height * width],
            false => leak.plis_parts.iter().map(|v| v.abs()).collect(),
        };
        let most = parts.iter().copied().fold(0.0, f64::max);
        if let Some(picture) = Picture::heat([height, width], &parts, most) {
            out.push(Captioned {
                picture,
                caption: if rounding { format!("{caption}: rounding") } else { caption.into() },
                value: Some(("PLIS", whole)),
                pixels: (!rounding).then_some(Pixels { width, values: parts }),
                ..input.clone()
            });
        }
    }
    Ok(out)
}

/// PLIS of the first records of a data set.
fn first_plis(pair: &Pair, private: bool, data: &Data<f32>) -> Result<Vec<f64>> {
    let some: Vec<usize> = (0..data.len().min(pair.measured)).collect();
    Ok(plis(pair, private, data, &some, false)?.iter().map(|l| l.plis.unwrap_or(0.0)).collect())
}

/// Records with the smallest PLIS above rounding and with the largest, and where rounding ends.
fn extremes(values: &[f64]) -> Result<(usize, usize, f64)> {
    let floor = ROUNDING * values.iter().copied().fold(0.0, f64::max);
    let order: Vec<usize> = ascending(values).into_iter().filter(|&i| values[i] > floor).collect();
    match order.as_slice() {
        [first, .., last] => Ok((*first, *last, floor)),
        _ => Err(Failure::Message("no two records have a PLIS above rounding".into())),
    }
}

fn rounding_words(values: &[f64], floor: f64) -> String {
    format!(
        "PLIS is measured on the first {} images, with the smooth clip that trained. Under DP what is at most {} of the largest is \
         rounding of 32-bit numbers, counts as zero ({} of the training images) and gets no map; A is the smallest above \
         that.",
        format::count(values.len() as u64),
        format::setting(ROUNDING),
        format::count(values.iter().filter(|v| **v <= floor).count() as u64)
    )
}

/// How atypical the first `count` images are: the share of their class that lies closer to the mean of the class.
fn atypical(images: &Images, count: usize) -> Vec<f64> {
    let size = images.size();
    let mut means = std::collections::BTreeMap::<u8, (f64, Vec<f64>)>::new();
    for (i, label) in images.labels.iter().enumerate() {
        let (n, sum) = means.entry(*label).or_insert_with(|| (0.0, vec![0.0; size]));
        *n += 1.0;
        sum.iter_mut().zip(images.image(i)).for_each(|(m, &b)| *m += f64::from(b));
    }
    let distance = |i: usize| -> f64 {
        let Some((n, sum)) = means.get(&images.labels[i]) else { return 0.0 };
        images.image(i).iter().zip(sum).map(|(&b, m)| (f64::from(b) - m / n).powi(2)).sum::<f64>().sqrt()
    };
    let mut sorted = std::collections::BTreeMap::<u8, Vec<f64>>::new();
    for (i, label) in images.labels.iter().enumerate() {
        sorted.entry(*label).or_default().push(distance(i));
    }
    sorted.values_mut().for_each(|d| d.sort_by(f64::total_cmp));
    let share = |i: usize| {
        let all = sorted.get(&images.labels[i]).map(Vec::as_slice).unwrap_or_default();
        all.partition_point(|d| *d < distance(i)) as f64 / all.len().max(1) as f64
    };
    (0..count.min(images.labels.len())).map(share).collect()
}

/// Share of values above a limit.
fn share_above(values: &[f64], limit: f64) -> f64 {
    values.iter().filter(|v| **v > limit).count() as f64 / values.len().max(1) as f64
}

/// The value that a share of all does not exceed.
fn quantile(values: &[f64], share: f64) -> f64 {
    let order = ascending(values);
    let place = (values.len().saturating_sub(1) as f64 * share) as usize;
    order.get(place).map_or(f64::NAN, |&i| values[i])
}

fn figure(file: &str, title: &str, rows: Vec<(String, Vec<Captioned>)>) -> Figure {
    let panels = rows
        .into_iter()
        .map(|row| Panel { title: String::new(), content: Content::Pictures { rows: vec![row] } })
        .collect();
    let caption = format!(
        "Left the input, then |PLIS| of every pixel for the model trained with and without DP, each on its own scale (white \
         is zero; “rounding”: too small to be told from it). {RECORDS}"
    );
    Figure { file: file.into(), title: title.into(), caption, panels }
}

/// Beyond this share of its class an image is atypical, of the training images an X-ray has a high PLIS.
const HIGH: f64 = 0.9;
/// "Often".
const OFTEN: f64 = 0.5;

/// Figure 2.
pub(super) fn fig2(context: &Context<'_>) -> Result<Findings> {
    let (train_images, test_images) = data::digits(context)?;
    let xrays = data::chests(context)?.0;
    let normal = Normal { mean: 0.1307, sd: 0.3081 };
    let (train_set, test_set) = (normal.data(&train_images, 10)?, normal.data(&test_images, 10)?);
    let schedules = if context.synthetic { SMALL } else { of_digits(train_set.len() as f64) };
    let pair = pair(context, (&train_set, &test_set), 10, schedules)?;
    let values = first_plis(&pair, true, &train_set)?;
    let (first, last, floor) = extremes(&values)?;
    let outside = normal.data(&xrays, 10)?;
    let odd = atypical(&train_images, values.len());
    let mut rows = vec![
        Row::ours("test accuracy with DP at (1, 10⁻⁵), %", 100.0 * pair.accuracy[0]),
        Row::ours("test accuracy without DP, %", 100.0 * pair.accuracy[1]),
        Row::ours("A, smallest PLIS above rounding", values[first]),
        Row::ours("B, largest PLIS", values[last]),
        Row::ours("A, share of its class that lies closer to the mean", odd[first]),
        Row::ours("B, share of its class that lies closer to the mean", odd[last]),
    ];
    let mut claims = vec![];
    for (private, how) in [(true, "with DP"), (false, "without DP (gradient signal)")] {
        let trained = if private { values.clone() } else { first_plis(&pair, private, &train_set)? };
        let foreign = first_plis(&pair, private, &outside)?;
        if private {
            rows.push(Row::ours("C, PLIS of the X-ray shown", foreign.first().copied().unwrap_or(f64::NAN)));
        }
        let (more_rows, more_claims) = largest_plis(how, private, (&trained, &odd), &foreign);
        rows.extend(more_rows);
        claims.extend(more_claims);
    }
    Ok(Findings {
        data: vec![
            format!("MNIST: {} training images", format::count(train_set.len() as u64)),
            format!(
                "PneumoniaMNIST: {} chest X-rays as points out of the distribution",
                format::count(outside.len().min(pair.measured) as u64)
            ),
        ],
        rows,
        claims,
        method: vec![
            format!(
                "The CNN of Edmunds table B.7 (26,010 parameters for digits). DP-SGD to (1, 10⁻⁵): {} steps, σ = {}, smooth clip {}; \
                 without DP {} steps; momentum 0.9.",
                schedules.0.steps,
                format::setting(pair.sigma),
                format::setting(CLIP),
                schedules.1.steps
            ),
            rounding_words(&values, floor),
        ],
        figures: vec![figure(
            "mueller-fig2",
            "Figure 2: PLIS of every pixel, with and without DP",
            vec![
                (
                    format!("A: smallest PLIS, digit {}", train_images.labels[first]),
                    maps(&pair, &train_images, &train_set, first, floor)?,
                ),
                (
                    format!("B: largest PLIS, digit {}", train_images.labels[last]),
                    maps(&pair, &train_images, &train_set, last, floor)?,
                ),
                ("C: out of the distribution, an X-ray".to_owned(), maps(&pair, &xrays, &outside, 0, floor)?),
            ],
        )],
    })
}

/// The training of both models on so many digits.
fn of_digits(count: f64) -> (Schedule, Schedule) {
    (
        Schedule { steps: 500, rate: 1024.0 / count, learning_rate: 0.5, momentum: MOMENTUM },
        Schedule { steps: 1400, rate: 128.0 / count, learning_rate: 0.05, momentum: MOMENTUM },
    )
}

/// Whether the largest PLIS belong to images far from the mean of their class (`odd`), and to X-rays.
fn largest_plis(
    how: &str,
    private: bool,
    (trained, odd): (&[f64], &[f64]),
    foreign: &[f64],
) -> (Vec<Row>, Vec<Claim>) {
    let top = ascending(trained).into_iter().rev().take((trained.len() / 20).max(1));
    let top: Vec<f64> = top.map(|i| odd[i]).collect();
    let unusual = share_above(&top, HIGH);
    let (median, high) = (quantile(trained, 0.5), quantile(trained, HIGH));
    let (above_median, above_high) = (share_above(foreign, median), share_above(foreign, high));
    let (mut rows, mut claims) = (vec![], vec![]);
    rows.push(Row::ours(format!("{how}: share of atypical images among the largest PLIS"), unusual));
    rows.push(Row::ours(
        format!("{how}: share of X-rays above the median PLIS of training images"),
        above_median,
    ));
    rows.push(Row::ours(format!("{how}: share of X-rays among the largest tenth of PLIS"), above_high));
    claims.push(Claim::new(
        format!("“samples with high PLIS are often atypical (Figure 2B)”, {how}"),
        unusual >= OFTEN,
        format!(
            "Of the {} training images with the largest PLIS {} lie further from the mean of their class than {} of it \
             (by chance {} would; often: at least {}).",
            top.len(),
            format::share(unusual),
            format::share(HIGH),
            format::share(1.0 - HIGH),
            format::share(OFTEN)
        ),
    ));
    claims.push(Claim::new(
        format!("“samples with high PLIS are often […] out-of-distribution (Figure 2C)”, {how}"),
        above_high >= OFTEN,
        format!(
            "Of {} X-rays {} have a PLIS above {} of the training images, {} one above the median (often: at least {} \
             above {}).{}",
            format::count(foreign.len() as u64),
            format::share(above_high),
            format::share(HIGH),
            format::share(above_median),
            format::share(OFTEN),
            format::share(HIGH),
            match private {
                true => " The clip cuts off what makes a strange image stand out, the length of its gradient.",
                false => "",
            }
        ),
    ));
    (rows, claims)
}

/// Figure 3, the network part.
pub(super) fn fig3(context: &Context<'_>) -> Result<Findings> {
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
    let values = first_plis(&pair, true, &train_set)?;
    let (first, last, floor) = extremes(&values)?;
    let sick = test_images.labels.iter().filter(|l| **l == 1).count() as f64
        / test_images.labels.len().max(1) as f64;
    let guess = 100.0 * sick.max(1.0 - sick);
    Ok(Findings {
        data: vec![format!("PneumoniaMNIST: {} training X-rays", format::count(train_set.len() as u64))],
        rows: vec![
            Row::ours("test accuracy with DP at (1, 10⁻⁵), %", 100.0 * pair.accuracy[0]),
            Row::ours("test accuracy without DP, %", 100.0 * pair.accuracy[1]),
            Row::ours("test accuracy of the more frequent class, %", guess),
            Row::ours("A, smallest PLIS above rounding", values[first]),
            Row::ours("B, largest PLIS", values[last]),
        ],
        claims: vec![Claim::new(
            "“observed very similar results to the MNIST dataset (Figure 3)”",
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
        )],
        method: vec![
            format!(
                "The CNN of Edmunds table B.7 with two outputs. DP-SGD: {} steps, σ = {}, smooth clip {}; without DP {} steps.",
                schedules.0.steps,
                format::setting(pair.sigma),
                format::setting(CLIP),
                schedules.1.steps
            ),
            rounding_words(&values, floor),
            "The gradient inversion attack of the figure's second column is `mueller-table1`.".into(),
        ],
        figures: vec![figure(
            "mueller-fig3",
            "Figure 3: PLIS of chest X-rays",
            vec![
                ("A: smallest PLIS".to_owned(), maps(&pair, &train_images, &train_set, first, floor)?),
                ("B: largest PLIS".to_owned(), maps(&pair, &train_images, &train_set, last, floor)?),
            ],
        )],
    })
}
