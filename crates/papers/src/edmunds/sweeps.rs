//! Figures 3.1 and 3.2: the share of public records, and λ.

use super::super::data::digits;
use super::super::{Context, Findings};
use super::epsilon;
use super::run::{BATCH, Effort, Method, Outcome, Split, accuracy, pretrained, run, split};
use super::tables::TABLE_3_1 as RECIPE;
use leakscope::Result;
use leakscope_net::perturb::{PerturbationKind, Perturbing};
use leakscope_net::preset::Preset;
use leakscope_net::{Network, Shape};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

/// A linear model of digits that was trained on the public ones.
fn started(context: &Context<'_>, share: f64, effort: Effort) -> Result<(Split, Network<f32>)> {
    let images = digits(context)?;
    let split = split(&images, share, effort)?;
    let spec = Preset::Linear.spec(Shape::Image(images.0.shape), 10);
    let start = pretrained(context, &spec, (&split.public, &RECIPE), context.seed)?;
    Ok((split, start))
}

/// As the thesis prints it: the mean of the square roots.
fn mean(o: &Outcome) -> f64 {
    o.dfil.map_or(f64::NAN, |d| d.root[1])
}

/// The figure of two curves over one axis.
fn figure(file: &str, title: &str, x: AxisTitle, series: &[(String, Vec<[f64; 3]>)]) -> Figure {
    let panel = |title: &str, at: usize| Panel {
        title: title.into(),
        content: Content::Curves {
            x: x.clone(),
            y: AxisTitle::linear(title),
            series: series
                .iter()
                .map(|(name, points)| {
                    PointSeries::new(name.clone(), points.iter().map(|p| [p[0], p[at]]).collect())
                })
                .collect(),
            levels: vec![],
        },
    };
    Figure {
        file: file.into(),
        title: title.into(),
        caption: "Digits, a linear model, half of the parameters trained.".into(),
        panels: vec![panel("accuracy", 1), panel("mean √dFIL", 2)],
    }
}

/// Figure 3.1: how much of the data is public.
pub(crate) fn fig_3_1(context: &Context<'_>) -> Result<Findings> {
    const SHARES: [(f64, f64); 5] =
        [(0.5, 20.5318), (0.2, 18.4916), (0.1, 18.0058), (0.05, 17.8031), (0.01, 17.6615)];
    let effort = Effort::sweep(context);
    let mut findings = Findings { method: vec![effort.description(context)], ..Findings::default() };
    let mut series: Vec<(String, Vec<[f64; 3]>)> =
        ["DPSGD", "Prune", "FIM, as in the thesis"].map(|n| (n.to_owned(), vec![])).to_vec();
    // of the smallest share, in the end
    let mut pretrained_accuracy = f64::NAN;
    for (share, paper) in SHARES {
        let private = 60_000 - (share * 60_000.0) as usize;
        let ours = epsilon(RECIPE.sigma, BATCH as f64 / private as f64, private.div_ceil(BATCH) as u64)?;
        let name = format!("{} public: ε at δ = 10⁻⁹, at the published size", format::share(share));
        findings.rows.push(Row::printed(name, paper, 4, ours));
        // a share of the records that a smaller run takes
        let effort = Effort {
            public: ((effort.public as f64 * share / 0.5) as usize).max(64).min(effort.public),
            ..effort
        };
        let (split, start) = started(context, share, effort)?;
        pretrained_accuracy = accuracy(&start, &split.test)?;
        let methods = [
            Method::Private,
            Method::Pruned,
            Method::Perturbed(effort.perturbing(PerturbationKind::Thesis, &RECIPE)),
        ];
        for ((name, points), method) in series.iter_mut().zip(methods) {
            let made = run(context, &start, &split, &RECIPE, (method, context.seed))?;
            let row = format!("{} public, {name}: ", format::share(share));
            findings.rows.push(Row::ours(format!("{row}accuracy"), made.accuracy()));
            findings.rows.push(Row::ours(format!("{row}mean √dFIL"), mean(&made)));
            points.push([share, made.accuracy(), mean(&made)]);
        }
    }
    let (first, last) = (series[2].1[0], series[2].1[SHARES.len() - 1]);
    findings.claims.push(Claim::new(
        "“Increasing the amount of public data improves the performance of FIM.”",
        first[1] > last[1],
        format!(
            "Accuracy {} with half of the records public, {} with 1%.",
            format::number(first[1]),
            format::number(last[1])
        ),
    ));
    findings.claims.push(Claim::new(
        "With few public records “the accuracy of FIM is lower than the pre-train accuracy”.",
        last[1] < pretrained_accuracy,
        format!(
            "With 1% public: {} after the private pass, {} before it.",
            format::number(last[1]),
            format::number(pretrained_accuracy)
        ),
    ));
    let x = AxisTitle::log("share of public records");
    findings.figures.push(figure("edmunds-fig3.1", "Figure 3.1: the share of public records", x, &series));
    Ok(findings)
}

/// Figure 3.2: λ.
pub(crate) fn fig_3_2(context: &Context<'_>) -> Result<Findings> {
    const LAMBDAS: [f64; 5] = [1.0, 10.0, 100.0, 1e3, 1e4];
    let effort = Effort::sweep(context);
    let mut findings = Findings { method: vec![effort.description(context)], ..Findings::default() };
    let (split, start) = started(context, 0.5, effort)?;
    let mut series = vec![];
    for (name, variant) in
        [("as in the thesis", PerturbationKind::Thesis), ("average", PerturbationKind::Average)]
    {
        let mut points: Vec<[f64; 3]> = vec![];
        for lambda in LAMBDAS {
            let how = Perturbing { lambda, ..effort.perturbing(variant, &RECIPE) };
            let made = run(context, &start, &split, &RECIPE, (Method::Perturbed(how), context.seed))?;
            let row = format!("λ = {}, {name}: ", format::setting(lambda));
            findings.rows.push(Row::ours(format!("{row}accuracy"), made.accuracy()));
            findings.rows.push(Row::ours(format!("{row}mean √dFIL"), mean(&made)));
            if let Some(last) = made.steps.last() {
                findings.rows.push(Row::ours(format!("{row}norm of the perturbation, last step"), last.norm));
            }
            points.push([lambda, made.accuracy(), mean(&made)]);
        }
        let (least, most) = (points[0], points[LAMBDAS.len() - 1]);
        findings.claims.push(Claim::new(
            format!("“Increasing the value of lambda generally increases the privacy and decreases the accuracy” ({name})."),
            most[2] < least[2] && most[1] < least[1],
            format!(
                "Mean √dFIL {} at λ = 1, {} at 10⁴; accuracy {} and {}.",
                format::number(least[2]),
                format::number(most[2]),
                format::number(least[1]),
                format::number(most[1])
            ),
        ));
        series.push((name.to_owned(), points));
    }
    findings.figures.push(figure("edmunds-fig3.2", "Figure 3.2: λ", AxisTitle::log("λ"), &series));
    Ok(findings)
}
