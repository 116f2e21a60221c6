//! AM207 on images: which digits leak, points out of the distribution, whole data sets.

use super::images::{
    MNIST_L2, Model, Part, RECORDS, Task, UNIT, accuracy, ascending, coded, leakage, summary, with_eta,
};
use super::toy::{self, Points};
use super::{Context, Findings, data};
use leakscope::Result;
use leakscope_core::fisher::{Geometry, Records, SetSums};
use leakscope_core::glm::{self, Family, Fit, Penalty};
use leakscope_core::linalg::{Cholesky, dot, norm};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

/// Figure 6.3.
pub(super) fn digits(context: &Context<'_>) -> Result<Findings> {
    const SHOWN: usize = 10;
    let images = data::digits(context)?;
    let mut findings = Findings {
        data: vec!["MNIST, two digits at a time".into()],
        method: vec![format!(
            "Logistic regression on 20 principal components after scaling to the unit ball, penalty {}, no intercept. \
             How unusual an image is, we measure by its distance from the mean of its class in the 20 components.",
            format::setting(MNIST_L2)
        )],
        ..Findings::default()
    };
    let mut panels = vec![];
    let mut correlations = vec![];
    for pair in [[0, 1], [2, 9], [5, 8]] {
        let task = Task::new(&images, pair)?;
        let model = Model::new(&task, Family::Logistic, MNIST_L2)?;
        context.check()?;
        let eta = &model.records.eta;
        let order = ascending(eta);
        let images = &task.images;
        panels.push(Panel {
            title: format!("{}/{}", pair[0], pair[1]),
            content: Content::Pictures {
                rows: vec![
                    ("smallest η".into(), with_eta(images, eta, order.iter().take(SHOWN).copied())),
                    ("largest η".into(), with_eta(images, eta, order.iter().rev().take(SHOWN).copied())),
                ],
            },
        });
        let s = summary(eta);
        let name = format!("{}/{}", pair[0], pair[1]);
        let rank = rank_correlation(eta, &distances(&task));
        findings.rows.push(Row::ours(format!("{name}: mean η"), s.mean));
        findings.rows.push(Row::ours(format!("{name}: largest η over the median"), s.max / s.p50));
        findings
            .rows
            .push(Row::ours(format!("{name}: rank correlation of η and distance from the class"), rank));
        findings.rows.push(Row::ours(format!("{name}: test accuracy, %"), 100.0 * model.accuracy[1]));
        correlations.push((name, rank));
    }
    let [first, others @ ..] = correlations.as_slice() else { return Ok(findings) };
    findings.claims.push(Claim::new(
        "On 0/1 a larger η marks irregular images, on 2/9 and 5/8 it does not.",
        others.iter().all(|(_, r)| *r < 0.5 * first.1),
        format!(
            "It is weaker there, not gone: the rank correlation of η with the distance from the class mean is {}.",
            correlations
                .iter()
                .map(|(n, r)| format!("{} for {n}", format::number(*r)))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    ));
    findings.figures.push(Figure {
        file: "am207-digits".into(),
        title: "Figure 6.3: the ten images with the smallest and largest η".into(),
        caption: format!("Under each image its η. {RECORDS}"),
        panels,
    });
    Ok(findings)
}

/// Distance of every training image from the mean of its class, in the columns of the model.
fn distances(task: &Task) -> Vec<f64> {
    let rows = task.rows(Family::Logistic, Part::Training);
    let width = rows.blocks().first().map_or(0, |b| b.width);
    let mut means = [vec![0.0; width], vec![0.0; width]];
    let mut counts = [0.0; 2];
    let each = || {
        rows.blocks().iter().flat_map(|b| (0..b.len()).map(move |i| (b.row(i), usize::from(b.y[i] > 0.5))))
    };
    for (x, class) in each() {
        counts[class] += 1.0;
        means[class].iter_mut().zip(x).for_each(|(m, v)| *m += v);
    }
    for (mean, count) in means.iter_mut().zip(counts) {
        mean.iter_mut().for_each(|m| *m /= f64::max(count, 1.0));
    }
    each()
        .map(|(x, class)| norm(&x.iter().zip(&means[class]).map(|(a, b)| a - b).collect::<Vec<_>>()))
        .collect()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; values.len()];
    ascending(values).into_iter().enumerate().for_each(|(rank, i)| out[i] = rank as f64);
    out
}

/// Spearman's correlation.
fn rank_correlation(a: &[f64], b: &[f64]) -> f64 {
    let (ra, rb) = (ranks(a), ranks(b));
    let mean = (ra.len() as f64 - 1.0) / 2.0;
    let product: f64 = ra.iter().zip(&rb).map(|(x, y)| (x - mean) * (y - mean)).sum();
    let square: f64 = ra.iter().map(|x| (x - mean).powi(2)).sum();
    product / square.max(f64::MIN_POSITIVE)
}

/// Probability that a point of `high` has a larger score than one of `low`.
fn auc(low: &[f64], high: &[f64]) -> f64 {
    let wins: f64 = high
        .iter()
        .flat_map(|h| {
            low.iter().map(move |l| {
                if h > l {
                    1.0
                } else if h == l {
                    0.5
                } else {
                    0.0
                }
            })
        })
        .sum();
    wins / (low.len() * high.len()).max(1) as f64
}

/// Variance of the predicted probability under the posterior `N(w, H⁻¹)` of a Bayesian logistic regression (Laplace),
/// from draws.
fn posterior_variance(fit: &Fit, points: &Points, seed: u64) -> Result<Vec<f64>> {
    const DRAWS: usize = 2000;
    let p = fit.w.len();
    let inverse = Cholesky::new(&fit.hessian, p)?.inverse();
    // A Cholesky factor of the covariance, row by row.
    let mut l = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..=i {
            let s = inverse[i * p + j] - dot(&l[i * p..i * p + j], &l[j * p..j * p + j]);
            l[i * p + j] = if i == j { s.max(0.0).sqrt() } else { s / l[j * p + j].max(f64::MIN_POSITIVE) };
        }
    }
    let mut random = Seeded::new(seed);
    let draws: Vec<Vec<f64>> = (0..DRAWS)
        .map(|_| {
            let z = random.normals(p);
            (0..p).map(|i| fit.w[i] + dot(&l[i * p..i * p + i + 1], &z[..=i])).collect()
        })
        .collect();
    let variance = |x: &Vec<f64>| {
        let probabilities: Vec<f64> = draws.iter().map(|w| 1.0 / (1.0 + (-dot(w, x)).exp())).collect();
        summary(&probabilities).std.powi(2)
    };
    Ok(points.x.iter().map(variance).collect())
}

/// Points that take the class the model gives them.
fn predicted(fit: &Fit, x: Vec<Vec<f64>>) -> Points {
    let mut points = Points::new(x, vec![]);
    points.y = points.x.iter().map(|x| f64::from(u8::from(dot(x, &fit.w) > 0.0))).collect();
    points
}

/// Figure 6.8 and table 1.
pub(super) fn out_of_distribution(context: &Context<'_>) -> Result<Findings> {
    let train = toy::clouds(context.seed, 50);
    let fit = train.fit(Family::Logistic, 1e-2)?;
    let fresh = toy::clouds(context.seed ^ 0xf0, 100);
    let inside = predicted(&fit, fresh.x.iter().map(|x| x[..2].to_vec()).collect());
    let mut random = Seeded::new(context.seed ^ 0x0d);
    let mut corner = |cx: f64, cy: f64| -> Vec<Vec<f64>> {
        (0..25)
            .map(|_| {
                let n = random.normals(2);
                vec![cx + 0.7 * n[0], cy + 0.7 * n[1]]
            })
            .collect()
    };
    // Off the clouds along the boundary (the model is unsure), and beyond them (the model is sure).
    let beside = predicted(&fit, [corner(-8.0, 8.0), corner(8.0, -8.0)].concat());
    let beyond = predicted(&fit, [corner(8.0, 8.0), corner(-8.0, -8.0)].concat());
    let eta = |p: &Points| toy::eta(&fit, p);
    let variance = |p: &Points| posterior_variance(&fit, p, context.seed);
    let (eta_in, var_in) = (eta(&inside)?, variance(&inside)?);
    let mut findings = Findings {
        data: vec!["two round clouds of 50 points each, and 100 test points off them".into()],
        method: vec![
            "Test points get the class that the model predicts: their true one is not known to whoever screens them."
                .into(),
            "Epistemic uncertainty is the variance of the predicted probability under the posterior of a Bayesian \
             logistic regression (Laplace's approximation, 2,000 draws)."
                .into(),
            "AUC: the probability that a point off the clouds has the larger score than a fresh point of the clouds; ½ \
             is chance."
                .into(),
        ],
        ..Findings::default()
    };
    let mut aucs = vec![];
    for (name, points) in [("beside, on the boundary", &beside), ("beyond, far from the boundary", &beyond)] {
        let (by_eta, by_variance) = (auc(&eta_in, &eta(points)?), auc(&var_in, &variance(points)?));
        findings.rows.push(Row::ours(format!("points {name}: AUC of η"), by_eta));
        findings.rows.push(Row::ours(format!("points {name}: AUC of the posterior variance"), by_variance));
        aucs.push((by_eta, by_variance));
    }
    findings.claims.push(Claim::new(
        "η tells points off the distribution from those in it better than the posterior variance does.",
        aucs.iter().all(|(e, v)| e >= v) && aucs.iter().any(|(e, v)| e > v),
        format!(
            "Beside the clouds: AUC {} by η, {} by the variance. Beyond them, where the model is sure of itself: {} by η, {} by \
             the variance, which vanishes there while leverage does not.",
            format::number(aucs[0].0),
            format::number(aucs[0].1),
            format::number(aucs[1].0),
            format::number(aucs[1].1)
        ),
    ));
    let groups = [&inside, &beside, &beyond];
    findings.figures.push(Figure {
        file: "am207-ood".into(),
        title: "Figure 6.8: two scores of points that are out of the distribution".into(),
        caption: "Numbers are the scores of some points; the one in the middle is in the distribution."
            .into(),
        panels: vec![
            scored("posterior variance", &train, groups, [&var_in, &variance(&beside)?, &variance(&beyond)?]),
            scored("η", &train, groups, [&eta_in, &eta(&beside)?, &eta(&beyond)?]),
        ],
    });
    by_digit(context, &mut findings)?;
    Ok(findings)
}

/// Points in the distribution, beside and beyond it, with the scores of some of them.
fn scored(title: &str, train: &Points, groups: [&Points; 3], scores: [&[f64]; 3]) -> Panel {
    let xy = |p: &Points| p.x.iter().map(|x| [x[0], x[1]]).collect::<Vec<_>>();
    let label = |group: usize, k: usize| {
        let x = &groups[group].x[k];
        ([x[0], x[1]], format::number(scores[group][k]))
    };
    Panel {
        title: title.into(),
        content: Content::Dots {
            x: AxisTitle::linear("x₁"),
            y: AxisTitle::linear("x₂"),
            series: vec![
                PointSeries::new("training points", xy(train)),
                PointSeries::new("beside", xy(groups[1])),
                PointSeries::new("beyond", xy(groups[2])),
            ],
            line: None,
            notes: vec![label(0, 0), label(1, 0), label(1, 49), label(2, 0), label(2, 49)],
        },
    }
}

/// Table 1: mean η by digit under a model of 0 and 1.
fn by_digit(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let images = data::digits(context)?;
    let task = Task::new(&images, [0, 1])?;
    let model = Model::new(&task, Family::Logistic, MNIST_L2)?;
    context.check()?;
    let paper = [0.05, 0.04, 0.11, 0.12, 0.11, 0.11, 0.11, 0.10, 0.09, 0.10];
    let (mut bars, mut means) = (vec![], vec![]);
    for (digit, printed) in paper.into_iter().enumerate() {
        let of = images.0.of(&[digit as u8]);
        let x = task.projection.apply(&of);
        let width = model.fit.w.len();
        // Trained digits have their class; for others the model's own prediction stands in.
        let y: Vec<f64> = x
            .chunks_exact(width)
            .map(|x| match digit {
                0 | 1 => coded(Family::Logistic, digit == 1),
                _ => f64::from(u8::from(dot(x, &model.fit.w) > 0.0)),
            })
            .collect();
        let records = leakage(&model.fit, &InMemory::from_matrix(&x, &y, &[], 4096))?;
        let mean = summary(&records.eta).mean;
        means.push(mean);
        bars.push([digit as f64, mean]);
        let mut row = Row::ours(format!("mean η of digit {digit}"), mean);
        row.paper = Some(printed);
        row.why = match digit {
            0 | 1 => {
                "Only the pattern can be compared: the paper prints neither the penalty nor the normalisation of this table."
            }
            _ => {
                "Only the pattern can be compared: the paper prints neither the penalty nor the normalisation of this \
                 table, nor which label a digit gets that is neither 0 nor 1 (ours: the predicted one)."
            }
        }
        .into();
        findings.rows.push(row);
    }
    let trained = means[0].max(means[1]);
    let others = means[2..].iter().copied().fold(f64::INFINITY, f64::min);
    findings.claims.push(Claim::new(
        "Table 1: η is lowest for the digits that the model was trained on.",
        trained < others,
        format!(
            "At most {} for 0 and 1, at least {} for the others.",
            format::number(trained),
            format::number(others)
        ),
    ));
    findings
        .data
        .push("MNIST: a model of the training images of 0 and 1, scored on those of every digit".into());
    findings.figures.push(Figure {
        file: "am207-table1".into(),
        title: "Table 1: mean η by digit, trained on 0 and 1".into(),
        caption: "Digits that the model never saw leak more, had they been in its training set.".into(),
        panels: vec![Panel {
            title: String::new(),
            content: Content::Dots {
                x: AxisTitle::linear("digit"),
                y: AxisTitle::linear("mean η"),
                series: vec![
                    PointSeries::new("ours", bars),
                    PointSeries::new(
                        "paper",
                        paper.iter().enumerate().map(|(d, v)| [d as f64, *v]).collect(),
                    ),
                ],
                line: None,
                notes: vec![],
            },
        }],
    });
    Ok(())
}

/// Halves of the training set, smallest first: down to three times as many images as there are columns.
fn growing(n: usize, width: usize) -> Vec<usize> {
    let mut sizes = vec![n];
    while let Some(&last) = sizes.last()
        && last / 2 > 3 * width
        && sizes.len() < 7
    {
        sizes.push(last / 2);
    }
    sizes.reverse();
    sizes
}

/// §7.2.
pub(super) fn whole_data_set(context: &Context<'_>) -> Result<Findings> {
    let images = data::digits(context)?;
    let task = Task::new(&images, [0, 1])?;
    let all = task.rows(Family::Linear, Part::Training);
    let (mut x, mut y) = (vec![], vec![]);
    for block in all.blocks() {
        x.extend_from_slice(&block.x);
        y.extend_from_slice(&block.y);
    }
    let (n, width) = (y.len(), x.len() / y.len().max(1));
    let sizes = growing(n, width);
    let Growth { whole, largest, mean, tests, between } = growth(&task, (&x, &y), &sizes)?;
    let slope = |points: &[[f64; 2]]| match (points.first(), points.last()) {
        (Some(a), Some(b)) if b[0] > a[0] => (b[1] / a[1]).ln() / (b[0] / a[0]).ln(),
        _ => f64::NAN,
    };
    let (of_whole, of_mean) = (slope(&whole), slope(&mean));
    let toy = toy::line(context.seed);
    let without = Points { x: toy.x[..9].to_vec(), y: toy.y[..9].to_vec() };
    let toy_whole = |p: &Points| -> Result<f64> { toy::whole(&p.fit(Family::Linear, 0.0)?, p) };
    let (with_outlier, without_outlier) = (toy_whole(&toy)?, toy_whole(&without)?);
    Ok(Findings {
        data: vec!["MNIST 0/1, the first images of the training set in growing numbers".into()],
        rows: vec![
            Row::ours("η of the whole training set", whole.last().map_or(f64::NAN, |p| p[1])),
            Row::ours("exponent of n in η of the whole set", of_whole),
            Row::ours("exponent of n in the mean η of a record", of_mean),
            Row::ours("toy line with its outlier: η of the whole", with_outlier),
            Row::ours("toy line without it: η of the whole", without_outlier),
            Row::ours(
                "test accuracy of the smallest set, %",
                100.0 * tests.first().copied().unwrap_or(f64::NAN),
            ),
        ],
        claims: vec![
            Claim::new(
                "§7.2: “there is no concrete mathematical trend which can be understood in the difference between the \
                 dataset FIL in different scenarios” (of training sets of different sizes)",
                !(of_whole < -0.25 && between),
                format!(
                    "There is one: it lies between the largest η of a record and the root of the sum of their squares at \
                     every size, and falls like n^{}, while that of a record falls like n^{}. It bounds what is \
                     learnt about all records together, so it falls more slowly.",
                    format::number(of_whole),
                    format::number(of_mean)
                ),
            ),
            Claim::new(
                "§7.2, of different data sets: whole-data-set η does not tell which is the more sensitive (the authors take \
                 that to be Hannun's idea, and reject it).",
                with_outlier <= without_outlier,
                format!(
                    "The toy line has {} with its outlier and {} without: the one without looks the more sensitive.",
                    format::number(with_outlier),
                    format::number(without_outlier)
                ),
            ),
        ],
        method: vec!["Linear regression on ±1, 20 principal components of all images, no intercept.".into()],
        figures: vec![Figure {
            file: "am207-dataset".into(),
            title: "η of the whole data set and of its records".into(),
            caption: "Both fall as the training set grows.".into(),
            panels: vec![Panel {
                title: String::new(),
                content: Content::Curves {
                    x: AxisTitle::log("training images"),
                    y: AxisTitle::log("information loss η"),
                    series: vec![
                        PointSeries::new("whole data set", whole),
                        PointSeries::new("largest of a record", largest),
                        PointSeries::new("mean of a record", mean),
                    ],
                    levels: vec![],
                },
            }],
        }],
    })
}

/// η of the whole training set and of its records as it grows: points (size, η).
struct Growth {
    whole: Vec<[f64; 2]>,
    largest: Vec<[f64; 2]>,
    mean: Vec<[f64; 2]>,
    /// Accuracy on the test images.
    tests: Vec<f64>,
    /// Whether η of the whole lies between the largest of a record and the root of the sum of squares, at every size.
    between: bool,
}

fn growth(task: &Task, (x, y): (&[f64], &[f64]), sizes: &[usize]) -> Result<Growth> {
    let width = x.len() / y.len().max(1);
    let (mut whole, mut largest, mut mean, mut tests) = (vec![], vec![], vec![], vec![]);
    let mut between = true;
    for &size in sizes {
        let rows = InMemory::from_matrix(&x[..size * width], &y[..size], &[], 2048);
        let fit = glm::fit(&rows, Family::Linear, Penalty::new(0.0, false))?;
        let geometry = Geometry::new(&fit, &[], UNIT)?;
        let mut set = SetSums::new(width, false);
        let (mut records, mut etas) = (Records::default(), vec![]);
        for block in rows.blocks() {
            geometry.records(block, &mut records);
            geometry.add_to_set(block, &records, None, &mut set);
            etas.extend_from_slice(&records.eta);
        }
        let eta = geometry.set_eta(&set)?;
        let s = summary(&etas);
        let together = etas.iter().map(|e| e * e).sum::<f64>().sqrt();
        between &= eta >= s.max * (1.0 - 1e-9) && eta <= together * (1.0 + 1e-9);
        whole.push([size as f64, eta]);
        largest.push([size as f64, s.max]);
        mean.push([size as f64, s.mean]);
        tests.push(accuracy(&task.rows(Family::Linear, Part::Test), &fit.w)?);
    }
    Ok(Growth { whole, largest, mean, tests, between })
}
