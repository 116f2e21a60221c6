//! Hannun, Guo, van der Maaten (2021): figures 6 and 7, attribute inference on tables.

use super::{Context, Found, data};
use crate::Result;
use crate::attack::{self, Playing};
use crate::audit::{Noise, Request};
use crate::balance::{self, Balancing};
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::balance::{Sharing, Update, Variant};
use leakscope_core::glm::Family;
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};
use leakscope_table::{Missing, OneHot, ReadOptions, Roles, Scale};
use std::path::PathBuf;

/// A linear model of a table without intercept.
pub(super) fn table_model(
    (train, test): (PathBuf, Option<PathBuf>),
    (target, categorical): (&str, &[&str]),
    (l2, scale): (f64, Scale),
    seed: u64,
) -> Request {
    let read = |path: PathBuf| ReadOptions { paths: vec![path], ..ReadOptions::default() };
    Request {
        read: read(train),
        roles: Roles {
            target: target.into(),
            id: None,
            group: None,
            weights: None,
            drop: vec![],
            categorical: categorical.iter().map(|c| (*c).to_owned()).collect(),
        },
        one_hot: OneHot::DropLast,
        scale,
        pca: None,
        missing: Missing::Fail,
        positive: None,
        two_class_coded: true,
        family: Family::Linear,
        l2,
        intercept: false,
        coefficients: None,
        noise: Noise::Given(1.0),
        releases: 1,
        label_secret: true,
        holdout: if test.is_some() { None } else { Some(0.2) },
        test: test.map(read),
        seed: Some(seed),
        score: None,
        secret: None,
        prior_sd: vec![],
        units: vec![],
        limits: vec![],
    }
}

pub(super) const WARFARIN: (&str, &[&str]) = ("dose", &["cyp2c9"]);

/// Figure 6.
pub(super) fn fig6(context: &Context<'_>) -> Result<Found> {
    const PENALTIES: [f64; 4] = [1e-4, 1e-3, 1e-2, 1e-1];
    const LEVELS: usize = 13;
    let path = data::warfarin(context)?;
    let (mut against_penalty, mut error, mut white, mut black) = (vec![], vec![], vec![], vec![]);
    let mut baseline = 0.0;
    for l2 in PENALTIES {
        let request = table_model((path.clone(), None), WARFARIN, (l2, Scale::UnitBall), context.seed);
        // The same mean η for every penalty, so that curves can be compared at it.
        let probe = playing("vkorc1", vec![], 1, vec![Attacker::WhiteBox]);
        let unit = attack::run(&request, &probe, context.hooks)?.eta_mean_at_unit_noise;
        let sigmas = (0..LEVELS).map(|k| unit * 10_f64.powf(4.0 - 0.5 * k as f64)).collect();
        let both = vec![Attacker::WhiteBox, Attacker::BlackBox];
        let found = attack::run(&request, &playing("vkorc1", sigmas, context.trials, both), context.hooks)?;
        context.check()?;
        baseline = found.baseline.accuracy;
        against_penalty.push([l2, unit]);
        let name = format!("λ = {}", format::setting(l2));
        let curve = |attack: Attacker| {
            let mine: Vec<_> = found.results.iter().filter(|r| r.attack == attack.name()).collect();
            PointSeries {
                name: name.clone(),
                points: mine.iter().map(|r| [r.eta_mean, r.accuracy.value]).collect(),
                intervals: mine.iter().map(|r| [r.accuracy.ci_low, r.accuracy.ci_high]).collect(),
            }
        };
        white.push(curve(Attacker::WhiteBox));
        black.push(curve(Attacker::BlackBox));
        if let Some(u) = &found.utility {
            let points = u.points.iter().map(|(sigma, mse)| [unit / sigma, *mse]).collect();
            error.push(PointSeries::new(name, points));
        }
    }
    // How far the curves of different penalties lie apart at the same η, on average.
    let apart = |curves: &[PointSeries]| {
        let count = curves.iter().map(|c| c.points.len()).min().unwrap_or(0);
        let at = |k: usize| {
            let ys = curves.iter().map(|c| c.points[k][1]);
            ys.clone().fold(f64::NEG_INFINITY, f64::max) - ys.fold(f64::INFINITY, f64::min)
        };
        (0..count).map(at).sum::<f64>() / count.max(1) as f64
    };
    let (white_apart, black_apart) = (apart(&white), apart(&black));
    let near = |series: &[PointSeries], eta: f64| {
        let of = |s: &PointSeries| {
            let closest =
                s.points.iter().min_by(|a, b| (a[0] / eta).ln().abs().total_cmp(&(b[0] / eta).ln().abs()));
            closest.map_or(f64::NAN, |p| p[1])
        };
        series.get(2).map_or(f64::NAN, of)
    };
    let best_error = error.get(2).and_then(|s| s.points.first()).map_or(f64::NAN, |p| p[1]);
    // The largest η from which on neither attack gains more than 0.02 over a guess without the model.
    let gains = |k: usize| {
        let of = |s: &[PointSeries]| s.get(2).and_then(|s| s.points.get(k)).map_or(1.0, |p| p[1] - baseline);
        of(&white).max(of(&black)) > 0.02
    };
    let last_gain =
        (0..LEVELS).filter(|&k| gains(k)).map(|k| white[2].points[k][0]).fold(f64::INFINITY, f64::min);
    let safe = white[2].points.iter().map(|p| p[0]).filter(|eta| *eta < last_gain).fold(0.0, f64::max);
    let (protected, error_there) =
        (near(&white, 1e-3).max(near(&black, 1e-3)) - baseline, near(&error, 1e-3));
    let panel = |title: &str, y: &str, series: Vec<PointSeries>, levels: Vec<(f64, String)>| Panel {
        title: title.into(),
        content: Content::Curves {
            x: AxisTitle::log("mean η of the genotype"),
            y: AxisTitle::linear(y),
            series,
            levels,
        },
    };
    let level = || vec![(baseline, "guess without the model".to_owned())];
    Ok(Found {
        data: vec!["IWPC: 4,819 patients of whom a fifth is held out, 14 columns; secret vkorc1".into()],
        rows: vec![
            Row::ours("λ = 0.01, mean η near 0.001: white-box accuracy", near(&white, 1e-3)).observed(),
            Row::ours("λ = 0.01, mean η near 0.001: black-box accuracy", near(&black, 1e-3)).observed(),
            Row::ours("λ = 0.01, mean η near 0.001: test MSE", near(&error, 1e-3)),
            Row::ours("λ = 0.01, test MSE with next to no noise", best_error),
        ],
        claims: vec![
            Claim::new(
                "Across λ the white-box accuracy follows mean η more closely than the black-box accuracy.",
                white_apart < black_apart,
                format!(
                    "At the same η the white-box curves lie {} apart on average, the black-box curves {}.",
                    format::number(white_apart),
                    format::number(black_apart)
                ),
            ),
            Claim::new(
                "More regularisation requires less noise for the same mean η.",
                against_penalty.windows(2).all(|w| w[1][1] <= w[0][1]),
                "Mean η at the same noise falls with λ.".to_owned(),
            ),
            Claim::new(
                "At a mean η of about 0.001 (λ = 0.01) neither attack succeeds.",
                protected <= 0.02,
                format!(
                    "The better one gains {} over a guess without the model, and that is so from η = {} on downwards.",
                    format::number(protected),
                    format::number(safe)
                ),
            ),
            Claim::new(
                "At a mean η of about 0.001 there is little degradation in MSE.",
                error_there < 1.25 * best_error,
                format!(
                    "The error is {} there and {} with next to no noise; at η = {}, where the attacks already gain \
                     nothing, it is {}. The paper does not say which η (of the genotype, or of the whole record) its \
                     axis shows; ours is of the genotype, by its definition.",
                    format::number(error_there),
                    format::number(best_error),
                    format::number(safe),
                    format::number(near(&error, safe))
                ),
            ),
        ],
        method: vec![
            "Linear regression without intercept; one-hot columns, the last value dropped; all divided by the largest norm \
             of a record."
                .into(),
            format!("{} noise vectors for every point; bands are 95% intervals.", context.trials),
        ],
        figures: vec![Figure {
            file: "hannun-fig6".into(),
            title: "Figure 6: penalty, noise, error and two attacks".into(),
            caption: "(a) the penalty against mean η at unit noise; (b)–(d) error on held-out patients and success of \
                      the attacks on vkorc1 against mean η."
                .into(),
            panels: vec![
                Panel {
                    title: "(a) mean η at σ = 1".into(),
                    content: Content::Curves {
                        x: AxisTitle::log("penalty λ"),
                        y: AxisTitle::log("mean η of the genotype"),
                        series: vec![PointSeries::new("mean η", against_penalty)],
                        levels: vec![],
                    },
                },
                panel("(b) test MSE", "expected squared error", clipped(error, 3.0), vec![]),
                panel("(c) white box", "accuracy", white, level()),
                panel("(d) black box", "accuracy", black, level()),
            ],
        }],
    })
}

/// Curves without the points that lie above `most`, which would hide all others.
fn clipped(mut series: Vec<PointSeries>, most: f64) -> Vec<PointSeries> {
    series.iter_mut().for_each(|s| s.points.retain(|p| p[1] <= most));
    series
}

fn playing(secret: &str, sigmas: Vec<f64>, trials: usize, attacks: Vec<Attacker>) -> Playing {
    Playing { secret: secret.into(), candidates: vec![], bins: 4, attacks, sigmas, trials, balance: 0 }
}

/// Figure 7.
pub(super) fn fig7(context: &Context<'_>) -> Result<Found> {
    const SIGMA: f64 = 1e-3;
    const STEPS: [usize; 3] = [0, 2, 10];
    let warfarin =
        table_model((data::warfarin(context)?, None), WARFARIN, (1e-2, Scale::UnitBall), context.seed);
    let (train, test) = data::incomes(context)?;
    let adult = table_model((train, Some(test)), ("income", &[]), (1e-3, Scale::Standard), context.seed);
    let mut found = Found {
        data: vec![
            "IWPC: secret vkorc1, λ = 0.01".into(),
            "UCI Adult: complete rows, married or unmarried, without relationship; secret marital status, λ = 0.001"
                .into(),
        ],
        method: vec![
            format!(
            "Linear regression without intercept, noise σ = {}, {} noise vectors. Records are sorted into deciles by \
             their η before reweighting (§6.4).",
            format::setting(SIGMA),
            context.trials
            ),
            "IWPC is divided by the largest norm of a record, which §6.1 says of the images only. It matters: on the table \
             as it is (`leakscope attack --scale none --no-intercept --categorical cyp2c9`) reweighting turns the deciles \
             round (0.91 in the lowest, 0.67 in the highest) instead of making them equal, because a genotype is then a \
             step too large for η, which is local. Adult has its numbers standardised."
                .into(),
        ],
        ..Found::default()
    };
    let mut panels = vec![];
    for (name, request, secret, limit) in
        [("IWPC", &warfarin, "vkorc1", 0.002), ("UCI Adult", &adult, "marital_status", 0.03)]
    {
        let balancing = Balancing {
            attribute: Some(secret.into()),
            sum_to_one: false,
            sharing: Sharing::Sample,
            variant: Variant::Weighted,
            update: Update::Published,
            clamp: None,
            iterations: STEPS[2],
            tolerance: 0.0,
            sigma: SIGMA,
        };
        let steps = balance::run(request, &balancing, None, context.hooks, |_| {})?.balance.iterations;
        context.check()?;
        let curve = |title: &str, of: fn(&leakscope_report::balance::Step) -> f64| {
            PointSeries::new(title, steps.iter().map(|s| [s.iteration as f64, of(s)]).collect())
        };
        panels.push(Panel {
            title: format!("{name}: η of {secret} over the iterations"),
            content: Content::Curves {
                x: AxisTitle::linear("iteration"),
                y: AxisTitle::log("information loss η"),
                series: vec![
                    curve("largest", |s| s.eta_max),
                    curve("mean", |s| s.eta_mean),
                    curve("standard deviation", |s| s.eta_std),
                ],
                levels: vec![],
            },
        });
        let spread = steps.last().map_or(f64::NAN, |s| s.spread());
        found.rows.push(Row::ours(format!("{name}: spread of η after ten iterations"), spread));
        found.claims.push(Claim::new(
            format!("{name}: η of every example rapidly converges to the same value."),
            spread < limit,
            format!("Standard deviation over mean after ten iterations: {}.", format::share(spread)),
        ));
        let mut series = vec![];
        for after in STEPS {
            let play = Playing {
                balance: after,
                ..playing(secret, vec![SIGMA], context.trials, vec![Attacker::WhiteBox])
            };
            let attacked = attack::run(request, &play, context.hooks)?;
            context.check()?;
            let mine: Vec<_> = attacked.deciles.iter().filter(|d| d.balanced == (after > 0)).collect();
            series.push(PointSeries {
                name: format!("after {}", format::counted(after as u64, "iteration")),
                points: mine.iter().map(|d| [d.decile as f64, d.accuracy.value]).collect(),
                intervals: mine.iter().map(|d| [d.accuracy.ci_low, d.accuracy.ci_high]).collect(),
            });
        }
        let range = |s: &PointSeries| {
            let ys = s.points.iter().map(|p| p[1]);
            ys.clone().fold(f64::NEG_INFINITY, f64::max) - ys.fold(f64::INFINITY, f64::min)
        };
        let (before, last) = (range(&series[0]), range(&series[STEPS.len() - 1]));
        found.rows.push(Row::ours(format!("{name}: accuracy between deciles, before"), before).observed());
        found.rows.push(
            Row::ours(format!("{name}: accuracy between deciles, after ten iterations"), last).observed(),
        );
        found.claims.push(Claim::new(
            format!("{name}: after ten iterations the accuracy is nearly constant across deciles."),
            last < 0.25 * before,
            format!(
                "Between the deciles it differs by {} before and by {} after.",
                format::number(before),
                format::number(last)
            ),
        ));
        panels.push(Panel {
            title: format!("{name}: white-box accuracy by decile of the first η"),
            content: Content::Curves {
                x: AxisTitle::linear("decile of η before reweighting"),
                y: AxisTitle::linear("accuracy"),
                series,
                levels: vec![],
            },
        });
    }
    found.figures.push(Figure {
        file: "hannun-fig7".into(),
        title: "Figure 7: reweighting equalises η and with it the success of attacks".into(),
        caption: "Left: η of the secret attribute over the iterations. Right: white-box accuracy by decile, with 95% \
                  intervals."
            .into(),
        panels,
    });
    Ok(found)
}
