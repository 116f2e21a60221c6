//! Guo, Chen, Liu, Xiang (AM207, 2021): toy data, reweighting and its criticism, overfitting. Images are in
//! [`super::am207_images`].

use super::images::{UNIT, ascending, summary};
use super::toy::{self, Points};
use super::{Context, Findings};
use leakscope::Result;
use leakscope_core::balance::{Balanced, Level, Options, Sharing, Update, Variant, balance};
use leakscope_core::fisher::{Geometry, Release};
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_core::linalg::{Cholesky, dot, norm};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

/// Keeps the two lines of §6.1.2 from being told apart exactly.
const TOY_L2: f64 = 1e-3;

/// Figures 6.1 and 6.2.
pub(super) fn toy(context: &Context<'_>) -> Result<Findings> {
    let (line, lines) = (toy::line(context.seed), toy::two_lines());
    let linear = line.fit(Family::Linear, 0.0)?;
    let logistic = lines.fit(Family::Logistic, TOY_L2)?;
    let (eta_line, eta_lines) = (toy::eta(&linear, &line)?, toy::eta(&logistic, &lines)?);
    let mut findings = Findings {
        data: vec![
            "nine points about y = 5x and the outlier (0, −8)".into(),
            "class 1 on x₁ = x₂, class 0 on x₁ = x₂ + 1, ten points each, and an outlier of class 1 at (5, 1.5)".into(),
        ],
        method: vec![
            format!("Both models have an intercept; logistic regression has the penalty {}.", format::setting(TOY_L2)),
            "The paper does not print its points: these follow its description.".into(),
        ],
        ..Findings::default()
    };
    for (model, eta, points) in [("linear", &eta_line, &line), ("logistic", &eta_lines, &lines)] {
        let (outlier, rest) = split_last(eta);
        let largest = ascending(rest).last().copied().unwrap_or(0);
        let most = rest.get(largest).copied().unwrap_or(0.0);
        findings.rows.push(Row::ours(format!("{model}: η of the outlier"), outlier));
        findings.rows.push(Row::ours(format!("{model}: largest η of the others"), most));
        let x: Vec<String> =
            points.x[largest].iter().rev().skip(1).rev().map(|v| format::setting(*v)).collect();
        findings.claims.push(Claim::new(
            format!("{model}: the outlier has a much larger η than all other points."),
            outlier > 1.5 * most,
            format!(
                "{} against at most {}, which the point at x = {} has.",
                format::number(outlier),
                format::number(most),
                x.join(", ")
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
    findings.claims.push(Claim::new(
        "It is not completely true that points closer to the line have a lower η.",
        swapped > 0,
        format!("{swapped} pairs of ordinary points are ordered the other way: leverage counts as well."),
    ));
    findings.figures.push(toy_figure((&line, &linear, &eta_line), (&lines, &logistic, &eta_lines)));
    Ok(findings)
}

/// The points of both toy data sets with their η, and the fitted models.
fn toy_figure(
    (line, linear, eta_line): (&Points, &glm::Fit, &[f64]),
    (lines, logistic, eta_lines): (&Points, &glm::Fit, &[f64]),
) -> Figure {
    let at = |x: f64| [x, linear.w[0] * x + linear.w[1]];
    let w = &logistic.w;
    let boundary = |x1: f64| [x1, -(w[0] * x1 + w[2]) / w[1]];
    let points = |p: &Points, class: f64| -> Vec<[f64; 2]> {
        p.x.iter().zip(&p.y).filter(|(_, y)| **y == class).map(|(x, _)| [x[0], x[1]]).collect()
    };
    let note = |at: [f64; 2], eta: f64| (at, format!("η = {}", format::number(eta)));
    Figure {
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
                        PointSeries::new("class 0", points(lines, 0.0)),
                        PointSeries::new("class 1", points(lines, 1.0)),
                    ],
                    line: Some([boundary(0.6), boundary(5.0)]),
                    notes: [0, 1, 8, 9, 20]
                        .iter()
                        .map(|&i: &usize| note([lines.x[i][0], lines.x[i][1]], eta_lines[i]))
                        .collect(),
                },
            },
        ],
    }
}

fn split_last(values: &[f64]) -> (f64, &[f64]) {
    values.split_last().map_or((f64::NAN, values), |(last, rest)| (*last, rest))
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
        shape: None,
    };
    let penalty = Penalty::new(if family == Family::Linear { 0.0 } else { TOY_L2 }, true);
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
pub(super) fn reweighting(context: &Context<'_>) -> Result<Findings> {
    let tasks = [
        ("linear", toy::line(context.seed), Family::Linear),
        ("logistic", toy::two_lines(), Family::Logistic),
    ];
    let mut findings = Findings {
        data: vec!["the two toy data sets of §6.1".into()],
        method: vec![
            format!("{STEPS} iterations at σ = 0.1; the best iteration of each variant is kept."),
            "“Weighted” is Hannun's algorithm, where η has the weight of the record as a factor; “unweighted” is the \
             variant of AM207, which leaves it out."
                .into(),
        ],
        ..Findings::default()
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
        bars.push(points_panel(name, &weighted, &unweighted));
        findings
            .rows
            .push(Row::ours(format!("{name}, weighted: spread of η, best iteration"), last(&weighted)));
        findings
            .rows
            .push(Row::ours(format!("{name}, unweighted: spread of η, best iteration"), last(&unweighted)));
        let outlier = points.y.len() - 1;
        let weight = weighted.weights[outlier];
        findings.rows.push(Row::ours(format!("{name}, weighted: weight of the outlier (mean 1)"), weight));
        findings.claims.push(Claim::new(
            format!("{name}: the unweighted variant does not equalise η."),
            last(&unweighted) > 0.05,
            format!(
                "Its best spread is {}; the weighted one reaches {}.",
                format::share(last(&unweighted)),
                format::share(last(&weighted))
            ),
        ));
        let least = weighted.weights.iter().copied().fold(f64::INFINITY, f64::min);
        findings.claims.push(Claim::new(
            format!("{name}: the model largely disregards the outlier, its weight gets lower and lower."),
            weight < 0.5,
            format!(
                "Its weight is {} (1 on average), the smallest is {}.",
                format::number(weight),
                format::number(least)
            ),
        ));
        if *family == Family::Linear {
            refitted_outlier(points, &weighted, &mut findings)?;
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
    findings.figures.push(Figure {
        file: "am207-reweighting".into(),
        title: "Figures 6.4 to 6.7: reweighting with and without the weights".into(),
        caption: "The weighted variant equalises η; the unweighted one follows a quantity that weights cannot equalise."
            .into(),
        panels,
    });
    Ok(findings)
}

/// η of every point before, and at the best iteration of either variant.
fn points_panel(name: &str, weighted: &Balanced, unweighted: &Balanced) -> Panel {
    let dots = |values: &[f64]| values.iter().enumerate().map(|(i, v)| [(i + 1) as f64, *v]).collect();
    Panel {
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
    }
}

/// Moves the label of the outlier and refits: whether its weight is a factor of what happens.
fn refitted_outlier(points: &Points, weighted: &Balanced, findings: &mut Findings) -> Result<()> {
    let outlier = points.y.len() - 1;
    let weight = weighted.weights[outlier];
    // The label alone: |∂w/∂y| = ω‖H⁻¹x‖. Is the weight a factor of what really happens?
    let penalty = Penalty::new(0.0, true);
    let with = sensitivity(points, (Family::Linear, penalty), &weighted.weights, outlier)?;
    let geometry = Geometry::new(&weighted.fit, &[], Release { label_secret: true, ..UNIT })?;
    let h = label_sensitivity(&geometry, points, outlier)?;
    findings.rows.push(Row::ours("linear: movement of the refitted model per unit of the outlier's y", with));
    findings.rows.push(Row::ours("linear: the same by the formula with the weight", weight * h));
    findings.rows.push(Row::ours("linear: the same by the formula without the weight", h));
    findings.claims.push(Claim::new(
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
    Ok(())
}

/// `‖H⁻¹x‖` of a point.
fn label_sensitivity(geometry: &Geometry, points: &Points, i: usize) -> Result<f64> {
    let p = points.x[i].len();
    let solved = Cholesky::new(&geometry.fit().hessian, p)?.solve(&points.x[i]);
    Ok(norm(&solved))
}

/// Figure 6.9.
pub(super) fn plane(context: &Context<'_>) -> Result<Findings> {
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
    Ok(Findings {
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
pub(super) fn overfitting(context: &Context<'_>) -> Result<Findings> {
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
    Ok(Findings {
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
