//! Guo, Chen, Liu, Xiang (AM207, 2021): the reproduction, its criticism, and two new uses of η.

use super::data;
use super::images::{Model, Task, UNIT, accuracy, ascending, coded, leakage, picture, summary};
use super::toy::{self, Points};
use super::{Context, Found};
use crate::Result;
use leakscope_core::balance::{Balanced, Level, Options, Sharing, Update, Variant, balance};
use leakscope_core::fisher::{Geometry, Records, Release, SetSums};
use leakscope_core::glm::{self, Family, Fit, Penalty};
use leakscope_core::linalg::{Cholesky, dot, norm};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Captioned, Claim, Content, Figure, Panel, PointSeries, Row};

const MNIST_L2: f64 = 8e-4;
/// Keeps the two lines of §6.1.2 from being told apart exactly.
const TOY_L2: f64 = 1e-3;

/// Figures 6.1 and 6.2.
pub(super) fn toy(context: &Context<'_>) -> Result<Found> {
    let (line, lines) = (toy::line(context.seed), toy::two_lines());
    let linear = line.fit(Family::Linear, 0.0)?;
    let logistic = lines.fit(Family::Logistic, TOY_L2)?;
    let (eta_line, eta_lines) = (toy::eta(&linear, &line)?, toy::eta(&logistic, &lines)?);
    let mut found = Found {
        data: vec![
            "nine points about y = 5x and the outlier (0, −8)".into(),
            "class 1 on x₁ = x₂, class 0 on x₁ = x₂ + 1, ten points each, and an outlier of class 1 at (5, 1.5)".into(),
        ],
        method: vec![
            format!("Both models have an intercept; logistic regression has the penalty {}.", format::setting(TOY_L2)),
            "The paper does not print its points: these follow its description.".into(),
        ],
        ..Found::default()
    };
    for (what, eta) in [("linear", &eta_line), ("logistic", &eta_lines)] {
        let (outlier, rest) = split_last(eta);
        let most = rest.iter().copied().fold(0.0, f64::max);
        found.rows.push(Row::ours(format!("{what}: η of the outlier"), outlier));
        found.rows.push(Row::ours(format!("{what}: largest η of the others"), most));
        found.claims.push(Claim::new(
            format!("{what}: the outlier has a much larger η than all other points."),
            outlier > 1.5 * most,
            format!(
                "{} against at most {}. η weighs leverage and slope beside the residual: a point at the end of a steep \
                 line leaks as much as one that lies off it.",
                format::number(outlier),
                format::number(most)
            ),
        ));
    }
    // Residual and η do not order the points alike.
    let residual = |i: usize| (dot(&line.x[i], &linear.w) - line.y[i]).abs();
    let n = line.y.len() - 1;
    let swapped = (0..n)
        .flat_map(|i| (0..n).map(move |j| (i, j)))
        .filter(|&(i, j)| residual(i) < residual(j) && eta_line[i] > eta_line[j])
        .count();
    found.claims.push(Claim::new(
        "It is not completely true that points closer to the line have a lower η.",
        swapped > 0,
        format!("{swapped} pairs of ordinary points are ordered the other way: leverage counts as well."),
    ));
    let at = |x: f64| [x, linear.w[0] * x + linear.w[1]];
    let w = &logistic.w;
    let boundary = |x1: f64| [x1, -(w[0] * x1 + w[2]) / w[1]];
    let points = |p: &Points, class: f64| -> Vec<[f64; 2]> {
        p.x.iter().zip(&p.y).filter(|(_, y)| **y == class).map(|(x, _)| [x[0], x[1]]).collect()
    };
    let note = |at: [f64; 2], eta: f64| (at, format!("η = {}", format::number(eta)));
    found.figures.push(Figure {
        file: "am207-toy".into(),
        title: "Figures 6.1 and 6.2: η of every point".into(),
        caption: "The line is the fitted model, on the right where both classes are equally probable.".into(),
        panels: vec![
            Panel {
                title: "linear regression".into(),
                content: Content::Dots {
                    x: AxisTitle::linear("x"),
                    y: AxisTitle::linear("y"),
                    series: vec![PointSeries::new(
                        "points",
                        line.x.iter().zip(&line.y).map(|(x, y)| [x[0], *y]).collect(),
                    )],
                    line: Some([at(0.0), at(9.0)]),
                    notes: (0..line.y.len()).map(|i| note([line.x[i][0], line.y[i]], eta_line[i])).collect(),
                },
            },
            Panel {
                title: "logistic regression".into(),
                content: Content::Dots {
                    x: AxisTitle::linear("x₁"),
                    y: AxisTitle::linear("x₂"),
                    series: vec![
                        PointSeries::new("class 0", points(&lines, 0.0)),
                        PointSeries::new("class 1", points(&lines, 1.0)),
                    ],
                    line: Some([boundary(0.6), boundary(5.0)]),
                    notes: [0, 1, 8, 9, 20]
                        .iter()
                        .map(|&i: &usize| note([lines.x[i][0], lines.x[i][1]], eta_lines[i]))
                        .collect(),
                },
            },
        ],
    });
    Ok(found)
}

fn split_last(values: &[f64]) -> (f64, &[f64]) {
    values.split_last().map_or((f64::NAN, values), |(last, rest)| (*last, rest))
}

/// Figure 6.3.
pub(super) fn digits(context: &Context<'_>) -> Result<Found> {
    const SHOWN: usize = 10;
    let images = data::digits(context)?;
    let mut found = Found {
        data: vec!["MNIST, two digits at a time".into()],
        method: vec![format!(
            "Logistic regression on 20 principal components after scaling to the unit ball, penalty {}, no intercept. \
             How unusual an image is, we measure by its distance from the mean of its class in the 20 components.",
            format::setting(MNIST_L2)
        )],
        ..Found::default()
    };
    let mut panels = vec![];
    let mut correlations = vec![];
    for pair in [[0, 1], [2, 9], [5, 8]] {
        let task = Task::new(&images, pair)?;
        let model = Model::new(&task, Family::Logistic, MNIST_L2)?;
        context.check()?;
        let eta = &model.records.eta;
        let order = ascending(eta);
        let row = |which: Vec<usize>| -> Vec<Captioned> {
            let one = |i: usize| {
                picture(&task.images, i).map(|picture| Captioned { picture, caption: format::number(eta[i]) })
            };
            which.into_iter().filter_map(one).collect()
        };
        panels.push(Panel {
            title: format!("{}/{}", pair[0], pair[1]),
            content: Content::Pictures {
                rows: vec![
                    ("smallest η".into(), row(order.iter().take(SHOWN).copied().collect())),
                    ("largest η".into(), row(order.iter().rev().take(SHOWN).copied().collect())),
                ],
            },
        });
        let s = summary(eta);
        let name = format!("{}/{}", pair[0], pair[1]);
        let rank = rank_correlation(eta, &distances(&task));
        found.rows.push(Row::ours(format!("{name}: mean η"), s.mean));
        found.rows.push(Row::ours(format!("{name}: largest η over the median"), s.max / s.p50));
        found
            .rows
            .push(Row::ours(format!("{name}: rank correlation of η and distance from the class"), rank));
        found.rows.push(Row::ours(format!("{name}: test accuracy, %"), 100.0 * model.accuracy[1]));
        correlations.push((name, rank));
    }
    let [first, others @ ..] = correlations.as_slice() else { return Ok(found) };
    found.claims.push(Claim::new(
        "On 0/1 a larger η marks irregular images, on 2/9 and 5/8 it does not.",
        others.iter().all(|(_, r)| *r < 0.5 * first.1),
        format!(
            "It is weaker there, not gone: the rank correlation of η with the distance from the class mean is {}. The pictures with the largest η are \
             those that the model gets wrong or hardly right, which need not look irregular where the digits are hard \
             to tell apart.",
            correlations
                .iter()
                .map(|(n, r)| format!("{} for {n}", format::number(*r)))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    ));
    found.figures.push(Figure {
        file: "am207-digits".into(),
        title: "Figure 6.3: the ten images with the smallest and largest η".into(),
        caption: "Under each image its η.".into(),
        panels,
    });
    Ok(found)
}

/// Distance of every training image from the mean of its class, in the columns of the model.
fn distances(task: &Task) -> Vec<f64> {
    let rows = task.rows(Family::Logistic, 0);
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

const STEPS: usize = 50;

fn reweighted(points: &Points, family: Family, variant: Variant) -> Result<Balanced> {
    let options = Options {
        level: Level::Record,
        sharing: Sharing::Sample,
        variant,
        update: Update::Published,
        clamp: None,
        iterations: STEPS,
        tolerance: 0.0,
        release: Release { sigma: 0.1, ..UNIT },
    };
    let penalty = Penalty { l2: if family == Family::Linear { 0.0 } else { TOY_L2 }, intercept: true };
    Ok(balance(&points.rows(&[]), (family, penalty), &options, |_, _, _| Ok(()))?)
}

/// How far the coefficients move per unit change of a point, the weights held fixed: by refitting.
fn sensitivity(
    points: &Points,
    (family, penalty): (Family, Penalty),
    weights: &[f64],
    i: usize,
) -> Result<f64> {
    let step = 1e-5;
    let moved = |delta: f64| -> Result<Vec<f64>> {
        let mut p = points.clone();
        p.y[i] += delta;
        Ok(glm::fit(&p.rows(weights), family, penalty)?.w)
    };
    let (up, down) = (moved(step)?, moved(-step)?);
    Ok(norm(&up.iter().zip(&down).map(|(a, b)| (a - b) / (2.0 * step)).collect::<Vec<_>>()))
}

/// Figures 6.4 to 6.7 and §7.3.
pub(super) fn reweighting(context: &Context<'_>) -> Result<Found> {
    let tasks = [
        ("linear", toy::line(context.seed), Family::Linear),
        ("logistic", toy::two_lines(), Family::Logistic),
    ];
    let mut found = Found {
        data: vec!["the two toy data sets of §6.1".into()],
        method: vec![
            format!("{STEPS} iterations at σ = 0.1; the best iteration of each variant is kept."),
            "“Weighted” is Hannun's algorithm, where η has the weight of the record as a factor; “unweighted” is the \
             variant of AM207, which leaves it out."
                .into(),
        ],
        ..Found::default()
    };
    let (mut spreads, mut bars) = (vec![], vec![]);
    for (name, points, family) in &tasks {
        let weighted = reweighted(points, *family, Variant::Weighted)?;
        let unweighted = reweighted(points, *family, Variant::Unweighted)?;
        let last = |b: &Balanced| b.history[b.best].spread;
        let curve = |title: &str, b: &Balanced| {
            PointSeries::new(
                format!("{name}, {title}"),
                b.history.iter().map(|h| [h.number as f64, h.spread]).collect(),
            )
        };
        spreads.push(curve("weighted", &weighted));
        spreads.push(curve("unweighted", &unweighted));
        let dots = |values: &[f64]| values.iter().enumerate().map(|(i, v)| [(i + 1) as f64, *v]).collect();
        bars.push(Panel {
            title: format!("{name} regression: η of every point (the outlier is last)"),
            content: Content::Dots {
                x: AxisTitle::linear("point"),
                y: AxisTitle::log("information loss η"),
                series: vec![
                    PointSeries::new("before", dots(&weighted.eta_before)),
                    PointSeries::new("weighted", dots(&weighted.eta)),
                    PointSeries::new("unweighted variant", dots(&unweighted.eta_unweighted)),
                ],
                line: None,
                notes: vec![],
            },
        });
        found.rows.push(Row::ours(format!("{name}, weighted: spread of η, best iteration"), last(&weighted)));
        found
            .rows
            .push(Row::ours(format!("{name}, unweighted: spread of η, best iteration"), last(&unweighted)));
        let outlier = points.y.len() - 1;
        let weight = weighted.weights[outlier];
        found.rows.push(Row::ours(format!("{name}, weighted: weight of the outlier (mean 1)"), weight));
        found.claims.push(Claim::new(
            format!("{name}: the unweighted variant does not equalise η."),
            last(&unweighted) > 0.05,
            format!(
                "Its best spread is {}; the weighted one reaches {}.",
                format::share(last(&unweighted)),
                format::share(last(&weighted))
            ),
        ));
        let least = weighted.weights.iter().copied().fold(f64::INFINITY, f64::min);
        found.claims.push(Claim::new(
            format!("{name}: the model largely disregards the outlier, its weight gets lower and lower."),
            weight < 0.5,
            format!(
                "Its weight is {} (1 on average), the smallest is {}.",
                format::number(weight),
                format::number(least)
            ),
        ));
        if *family == Family::Linear {
            // The label alone: |∂w/∂y| = ω‖H⁻¹x‖. Is the weight a factor of what really happens?
            let penalty = Penalty { l2: 0.0, intercept: true };
            let with = sensitivity(points, (*family, penalty), &weighted.weights, outlier)?;
            let geometry = Geometry::new(&weighted.fit, &[], Release { label_secret: true, ..UNIT })?;
            let h = label_sensitivity(&geometry, points, outlier)?;
            found
                .rows
                .push(Row::ours("linear: movement of the refitted model per unit of the outlier's y", with));
            found.rows.push(Row::ours("linear: the same by the formula with the weight", weight * h));
            found.rows.push(Row::ours("linear: the same by the formula without the weight", h));
            found.claims.push(Claim::new(
                "§7.3: weighting η only changes the calculation; an attacker would not use the weights.",
                (with / h - 1.0).abs() < 0.05,
                format!(
                    "Changing the outlier and refitting moves the model by {} per unit: that is the formula with the \
                     weight ({}), not the one without ({}). The weight is part of what the data do to the released \
                     model, whatever the attacker knows. What remains of the criticism: the guarantee takes the weights \
                     as known and fixed, and weights that are themselves released or guessed give away which records \
                     were unusual.",
                    format::number(with),
                    format::number(weight * h),
                    format::number(h)
                ),
            ));
        }
    }
    let mut panels = vec![Panel {
        title: "spread of η over the iterations".into(),
        content: Content::Curves {
            x: AxisTitle::linear("iteration"),
            y: AxisTitle::log("standard deviation of η over its mean"),
            series: spreads,
            levels: vec![],
        },
    }];
    panels.extend(bars);
    found.figures.push(Figure {
        file: "am207-reweighting".into(),
        title: "Figures 6.4 to 6.7: reweighting with and without the weights".into(),
        caption: "The weighted variant equalises η; the unweighted one follows a quantity that weights cannot equalise."
            .into(),
        panels,
    });
    Ok(found)
}

/// `‖H⁻¹x‖` of a point.
fn label_sensitivity(geometry: &Geometry, points: &Points, i: usize) -> Result<f64> {
    let p = points.x[i].len();
    let solved = Cholesky::new(&geometry.fit().hessian, p)?.solve(&points.x[i]);
    Ok(norm(&solved))
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
pub(super) fn out_of_distribution(context: &Context<'_>) -> Result<Found> {
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
    let mut found = Found {
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
        ..Found::default()
    };
    let mut aucs = vec![];
    for (name, points) in [("beside, on the boundary", &beside), ("beyond, far from the boundary", &beyond)] {
        let (by_eta, by_variance) = (auc(&eta_in, &eta(points)?), auc(&var_in, &variance(points)?));
        found.rows.push(Row::ours(format!("points {name}: AUC of η"), by_eta));
        found.rows.push(Row::ours(format!("points {name}: AUC of the posterior variance"), by_variance));
        aucs.push((by_eta, by_variance));
    }
    found.claims.push(Claim::new(
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
    let xy = |p: &Points| p.x.iter().map(|x| [x[0], x[1]]).collect::<Vec<_>>();
    let label = |p: &Points, values: &[f64], k: usize| ([p.x[k][0], p.x[k][1]], format::number(values[k]));
    let panel = |title: &str, values: [&[f64]; 3]| Panel {
        title: title.into(),
        content: Content::Dots {
            x: AxisTitle::linear("x₁"),
            y: AxisTitle::linear("x₂"),
            series: vec![
                PointSeries::new("training points", xy(&train)),
                PointSeries::new("beside", xy(&beside)),
                PointSeries::new("beyond", xy(&beyond)),
            ],
            line: None,
            notes: vec![
                label(&inside, values[0], 0),
                label(&beside, values[1], 0),
                label(&beside, values[1], 49),
                label(&beyond, values[2], 0),
                label(&beyond, values[2], 49),
            ],
        },
    };
    found.figures.push(Figure {
        file: "am207-ood".into(),
        title: "Figure 6.8: two scores of points that are out of the distribution".into(),
        caption: "Numbers are the scores of some points; the one in the middle is in the distribution."
            .into(),
        panels: vec![
            panel("posterior variance", [&var_in, &variance(&beside)?, &variance(&beyond)?]),
            panel("η", [&eta_in, &eta(&beside)?, &eta(&beyond)?]),
        ],
    });
    by_digit(context, &mut found)?;
    Ok(found)
}

/// Table 1: mean η by digit under a model of 0 and 1.
fn by_digit(context: &Context<'_>, found: &mut Found) -> Result<()> {
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
        row.why =
            "Only the pattern can be compared: the paper says neither its scaling nor the label that other \
                   digits get (ours: the predicted one)."
                .into();
        found.rows.push(row);
    }
    let trained = means[0].max(means[1]);
    let others = means[2..].iter().copied().fold(f64::INFINITY, f64::min);
    found.claims.push(Claim::new(
        "Table 1: η is lowest for the digits that the model was trained on.",
        trained < others,
        format!(
            "At most {} for 0 and 1, at least {} for the others.",
            format::number(trained),
            format::number(others)
        ),
    ));
    found
        .data
        .push("MNIST: a model of the training images of 0 and 1, scored on those of every digit".into());
    found.figures.push(Figure {
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

/// Figure 6.9.
pub(super) fn plane(context: &Context<'_>) -> Result<Found> {
    const SHAPE: [usize; 2] = [60, 100];
    let (x, y) = toy::cubic(context.seed, 40);
    let train = Points::new(x.iter().map(|x| vec![*x]).collect(), y.clone());
    let fit = train.fit(Family::Linear, 0.0)?;
    let within = [-1.5, 1.5, -2.5, 2.5];
    let [x0, x1, y0, y1] = within;
    let (mut gx, mut gy) = (vec![], vec![]);
    for i in 0..SHAPE[0] {
        for j in 0..SHAPE[1] {
            gx.push(vec![x0 + (x1 - x0) * (j as f64 + 0.5) / SHAPE[1] as f64]);
            gy.push(y1 - (y1 - y0) * (i as f64 + 0.5) / SHAPE[0] as f64);
        }
    }
    let values = toy::eta(&fit, &Points::new(gx, gy))?;
    let trained = summary(&toy::eta(&fit, &train)?);
    let on_line = |x: f64| Points::new(vec![vec![x]], vec![fit.w[0] * x + fit.w[1]]);
    let gap = toy::eta(&fit, &on_line(0.0))?[0];
    let off = toy::eta(&fit, &Points::new(vec![vec![0.0]], vec![2.0]))?[0];
    let at = |x: f64| [x, fit.w[0] * x + fit.w[1]];
    Ok(Found {
        data: vec!["40 points of a noisy cubic, none of them between −0.3 and 0.3".into()],
        rows: vec![
            Row::ours("mean η of the training points", trained.mean),
            Row::ours("η of a point on the line, in the gap of the data", gap),
            Row::ours("η of a point far off the line, in the gap of the data", off),
        ],
        claims: vec![
            Claim::new(
                "The larger the distance from the model, the larger η.",
                off > gap && off > trained.mean,
                format!("{} two units off the line against {} on it.", format::number(off), format::number(gap)),
            ),
            Claim::new(
                "η is low in the middle where training points are missing, so it is no sign of being out of the \
                 distribution there.",
                gap < trained.mean,
                format!(
                    "{} in the gap against a mean of {} of the training points: η knows residual and leverage, and a \
                     linear model has least leverage in the middle whether there are data or not.",
                    format::number(gap),
                    format::number(trained.mean)
                ),
            ),
        ],
        method: vec!["Linear regression with an intercept; η of a point that would be added is shown dark where large.".into()],
        figures: vec![Figure {
            file: "am207-map".into(),
            title: "Figure 6.9: η over the plane".into(),
            caption: "Training points and the fitted line on a map of η.".into(),
            panels: vec![Panel {
                title: String::new(),
                content: Content::Map {
                    x: AxisTitle::linear("x"),
                    y: AxisTitle::linear("y"),
                    within,
                    shape: SHAPE,
                    values,
                    series: vec![PointSeries::new(
                        "training points",
                        x.iter().zip(&y).map(|(x, y)| [*x, *y]).collect(),
                    )],
                    line: Some([at(x0), at(x1)]),
                },
            }],
        }],
    })
}

/// Figure 6.10.
pub(super) fn overfitting(context: &Context<'_>) -> Result<Found> {
    const DEGREES: usize = 12;
    let (x, y) = toy::cubic(context.seed, 40);
    let (vx, vy) = toy::cubic(context.seed ^ 0xabc, 200);
    let (mut eta, mut error, mut training) = (vec![], vec![], vec![]);
    for degree in 1..=DEGREES {
        let points = Points::new(toy::powers(&x, degree), y.clone());
        let fit = points.fit(Family::Linear, 0.0)?;
        let validation = Points::new(toy::powers(&vx, degree), vy.clone());
        let mse = |p: &Points| {
            p.x.iter().zip(&p.y).map(|(x, y)| (dot(x, &fit.w) - y).powi(2)).sum::<f64>() / p.y.len() as f64
        };
        eta.push([degree as f64, summary(&toy::eta(&fit, &points)?).mean]);
        error.push([degree as f64, mse(&validation)]);
        training.push([degree as f64, mse(&points)]);
    }
    let of = |points: &[[f64; 2]]| points.iter().map(|p| p[1]).collect::<Vec<_>>();
    let best = ascending(&of(&error))[0] + 1;
    let rising = eta.windows(2).filter(|w| w[1][1] > w[0][1]).count();
    let least = ascending(&of(&eta))[0] + 1;
    Ok(Found {
        data: vec!["40 training and 200 validation points of a noisy cubic".into()],
        rows: vec![
            Row::ours("degree with the least validation error", best as f64),
            Row::ours("degree with the least mean η", least as f64),
            Row::ours("mean η at degree 3", eta[2][1]),
            Row::ours("mean η at degree 12", eta[DEGREES - 1][1]),
        ],
        claims: vec![
            Claim::new(
                "Mean η increases with the degree, and so shows overfitting.",
                rising >= DEGREES - 3,
                format!("It rises at {rising} of {} steps of the degree.", DEGREES - 1),
            ),
            Claim::new(
                "η chooses the degree without validation data.",
                least == best,
                format!(
                    "Validation error is least at degree {best}, mean η at degree {least}: η has no minimum where \
                     overfitting starts. It grows with every coefficient, since more of them carry more of the data; \
                     it warns, but does not choose."
                ),
            ),
        ],
        method: vec![
            "Polynomial regression on powers of x in [−1, 1] with an intercept, no penalty. η depends on the basis: noise \
             is added to these coefficients."
                .into(),
        ],
        figures: vec![Figure {
            file: "am207-overfitting".into(),
            title: "Figure 6.10: mean η and validation error over the degree".into(),
            caption: "Left: mean η of the training points. Right: mean squared errors.".into(),
            panels: vec![
                Panel {
                    title: "mean η".into(),
                    content: Content::Curves {
                        x: AxisTitle::linear("degree"),
                        y: AxisTitle::log("mean η"),
                        series: vec![PointSeries::new("mean η", eta)],
                        levels: vec![],
                    },
                },
                Panel {
                    title: "mean squared error".into(),
                    content: Content::Curves {
                        x: AxisTitle::linear("degree"),
                        y: AxisTitle::log("mean squared error"),
                        series: vec![
                            PointSeries::new("validation", error),
                            PointSeries::new("training", training),
                        ],
                        levels: vec![],
                    },
                },
            ],
        }],
    })
}

/// §7.2.
pub(super) fn whole_data_set(context: &Context<'_>) -> Result<Found> {
    let images = data::digits(context)?;
    let task = Task::new(&images, [0, 1])?;
    let all = task.rows(Family::Linear, 0);
    let (mut x, mut y) = (vec![], vec![]);
    for block in all.blocks() {
        x.extend_from_slice(&block.x);
        y.extend_from_slice(&block.y);
    }
    let (n, width) = (y.len(), x.len() / y.len().max(1));
    let mut sizes = vec![n];
    while let Some(&last) = sizes.last()
        && last / 2 > 3 * width
        && sizes.len() < 7
    {
        sizes.push(last / 2);
    }
    sizes.reverse();
    let (mut whole, mut largest, mut mean, mut tests) = (vec![], vec![], vec![], vec![]);
    let mut between = true;
    for &size in &sizes {
        let rows = InMemory::from_matrix(&x[..size * width], &y[..size], &[], 2048);
        let fit = glm::fit(&rows, Family::Linear, Penalty { l2: 0.0, intercept: false })?;
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
        tests.push(accuracy(&task.rows(Family::Linear, 1), &fit.w)?);
    }
    let slope = |points: &[[f64; 2]]| match (points.first(), points.last()) {
        (Some(a), Some(b)) if b[0] > a[0] => (b[1] / a[1]).ln() / (b[0] / a[0]).ln(),
        _ => f64::NAN,
    };
    let (of_whole, of_mean) = (slope(&whole), slope(&mean));
    let toy = toy::line(context.seed);
    let without = Points { x: toy.x[..9].to_vec(), y: toy.y[..9].to_vec() };
    let toy_whole = |p: &Points| -> Result<f64> { toy::whole(&p.fit(Family::Linear, 0.0)?, p) };
    let (with_outlier, without_outlier) = (toy_whole(&toy)?, toy_whole(&without)?);
    Ok(Found {
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
                "There is no concrete trend that can be understood in the η of whole data sets.",
                !(of_whole < -0.25 && between),
                format!(
                    "There is: it lies between the largest η of a record and the root of the sum of their squares at \
                     every size, and falls like n^{}, while that of a record falls like n^{}. It bounds what is \
                     learnt about all records together, so it falls more slowly.",
                    format::number(of_whole),
                    format::number(of_mean)
                ),
            ),
            Claim::new(
                "η of the data set says whether it is more sensitive than another.",
                with_outlier > without_outlier,
                format!(
                    "The toy line has {} with its outlier and {} without.",
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
