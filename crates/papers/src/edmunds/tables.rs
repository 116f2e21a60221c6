//! Tables 3.1 to 3.3: accuracy against dFIL of DP-SGD, pruned, and perturbed.

use super::super::data::{Images, digits, photographs};
use super::super::mueller::said;
use super::super::{Context, Findings};
use super::epsilon;
use super::run::{BATCH, Effort, Method, Outcome, Recipe, accuracy, pretrained, run, split};
use leakscope::Result;
use leakscope_net::Shape;
use leakscope_net::perturb::Variant;
use leakscope_net::preset::preset;
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

/// A mean and its standard deviation.
pub(super) type Printed = (f64, f64);

/// A table as published: accuracies, then accuracy and dFIL (largest, mean, median).
struct Published {
    name: &'static str,
    network: &'static str,
    /// Share of the file that is public.
    share: f64,
    recipe: Recipe,
    epsilon: f64,
    /// Records of the file.
    records: usize,
    /// Means over three runs and their standard deviations, as printed.
    pretrained: Printed,
    open: Printed,
    private: [Printed; 4],
    pruned: [Printed; 4],
    perturbed: [Printed; 4],
}

/// Variants of the perturbation that are run, with their names.
const VARIANTS: [(&str, Variant); 4] = [
    ("FIM, as in the thesis", Variant::Thesis),
    ("FIM, constant", Variant::Constant),
    ("FIM, average", Variant::Average),
    ("FIM, network", Variant::Network),
];

pub(super) const TABLE_3_1: Recipe =
    Recipe { first: (30, 0.01, 1e-4), private: (0.01, 1e-5), sigma: 0.5, clip: 10.0, learned: (0.01, 0.1) };

/// Table 3.1: a linear model of digits, half of them public.
pub(crate) fn table_3_1(context: &Context<'_>) -> Result<Findings> {
    let published = Published {
        name: "edmunds-table3.1",
        network: "linear",
        share: 0.5,
        recipe: TABLE_3_1,
        epsilon: 20.5318,
        records: 60_000,
        pretrained: (0.9208, 0.0005),
        open: (0.9226, 0.0005),
        private: [(0.9211, 0.0005), (0.6615, 0.0498), (0.0608, 0.0002), (0.0132, 0.0002)],
        pruned: [(0.9217, 0.0002), (0.6731, 0.0980), (0.0497, 0.0002), (0.0112, 0.0002)],
        perturbed: [(0.9228, 0.0005), (0.3391, 0.0284), (0.0286, 0.0001), (0.0098, 0.0002)],
    };
    table(context, &published, digits)
}

/// Table 3.2: a convolutional network of digits, 5% of them public.
pub(crate) fn table_3_2(context: &Context<'_>) -> Result<Findings> {
    let published = Published {
        name: "edmunds-table3.2",
        network: "cnn-mnist",
        share: 0.05,
        recipe: Recipe {
            first: (100, 0.01, 0.01),
            private: (0.01, 1e-4),
            sigma: 2.0,
            clip: 8.0,
            learned: (0.01, 0.1),
        },
        epsilon: 0.6310,
        records: 60_000,
        pretrained: (0.9524, 0.0038),
        open: (0.9717, 0.0007),
        private: [(0.9597, 0.0007), (0.1961, 0.0158), (0.0106, 0.0001), (0.0034, 0.0001)],
        pruned: [(0.9618, 0.0011), (0.1865, 0.0068), (0.0093, 0.0004), (0.0026, 0.0002)],
        perturbed: [(0.9705, 0.0014), (0.3211, 0.0405), (0.0057, 0.0002), (0.0007, 0.0001)],
    };
    table(context, &published, digits)
}

/// Table 3.3: a linear model of photographs, half of them public.
pub(crate) fn table_3_3(context: &Context<'_>) -> Result<Findings> {
    let published = Published {
        name: "edmunds-table3.3",
        network: "linear",
        share: 0.5,
        recipe: Recipe {
            first: (10, 0.001, 0.1),
            private: (0.001, 0.01),
            sigma: 1.0,
            clip: 10.0,
            learned: (0.001, 0.0),
        },
        epsilon: 3.9551,
        records: 50_000,
        pretrained: (0.3751, 0.0038),
        open: (0.3799, 0.0013),
        private: [(0.3992, 0.0013), (0.0758, 0.0010), (0.0165, 0.0), (0.0156, 0.0)],
        pruned: [(0.3977, 0.0021), (0.0633, 0.0006), (0.0166, 0.0), (0.0156, 0.0)],
        perturbed: [(0.4011, 0.0008), (0.0540, 0.0014), (0.0151, 0.0), (0.0149, 0.0)],
    };
    table(context, &published, photographs)
}

fn table(
    context: &Context<'_>,
    published: &Published,
    images: fn(&Context<'_>) -> Result<(Images, Images)>,
) -> Result<Findings> {
    let images = images(context)?;
    let mut effort = Effort::of(context);
    if published.network != "linear" && !context.full {
        // each record of the network costs ten times as much
        effort.private = effort.private.min(2 * BATCH);
        effort.epochs = effort.epochs.min(10);
    }
    let split = split(&images, published.share, effort)?;
    let recipe = &published.recipe;
    let spec = preset(published.network, Shape::Image(images.0.shape), 10).map_err(said)?;
    let start = pretrained(context, &spec, &split.public, recipe)?;
    let mut found = Findings {
        data: vec![format!(
            "{} public, {} private and {} test images",
            format::count(split.public.len() as u64),
            format::count(split.private.len() as u64),
            format::count(split.test.len() as u64)
        )],
        method: vec![
            effort.said(context),
            "dFIL is the trace over the dimension, summed over the batches that drew a record, times the published factor \
             (equation 2.3): what the thesis prints. The thesis’s network of the perturbation is run as what it is, a constant; \
             the other three are this project’s."
                .into(),
        ],
        ..Findings::default()
    };
    let private = published.records - (published.share * published.records as f64) as usize;
    let rate = BATCH as f64 / private as f64;
    let ours = epsilon(recipe.sigma, rate, private.div_ceil(BATCH) as u64)?;
    found.rows.push(Row::printed("ε at δ = 10⁻⁹, at the published size", published.epsilon, 4, ours));
    let size = match context.full {
        true => "one run beside the mean of three; agrees within their printed standard deviation",
        false => {
            "a part of the records and epochs; agrees within the printed standard deviation of three whole runs"
        }
    };
    let first = accuracy(&start, &split.test)?;
    found.rows.push(row("pre-trained: accuracy", published.pretrained, first).because(size));
    let outcome = |method| run(context, &start, &split, recipe, (method, effort.probes));
    let open = outcome(Method::Open)?;
    found.rows.push(row("SGD: accuracy", published.open, open.accuracy).because(size));
    let mut all: Vec<(&str, Outcome)> = vec![];
    for (name, method, paper) in
        [("DPSGD", Method::Private, published.private), ("Prune", Method::Pruned, published.pruned)]
    {
        let made = outcome(method)?;
        found.rows.extend(beside(name, &made, paper).map(|r| r.because(size)));
        all.push((name, made));
    }
    for (name, variant) in VARIANTS {
        let how = effort.perturbing(variant, recipe);
        let made = outcome(Method::Perturbed(how))?;
        match variant {
            Variant::Thesis => {
                found.rows.extend(beside(name, &made, published.perturbed).map(|r| r.because(size)))
            }
            Variant::Average | Variant::Constant | Variant::Network => found.rows.extend(alone(name, &made)),
        }
        if let Some(last) = made.steps.last() {
            let text = format!("{name}: cosine with the average public gradient, last step");
            found.rows.push(Row::ours(text, last.cosine));
        }
        all.push((name, made));
    }
    found.claims = claims(&all);
    found.figures.push(figure(published.name, &all));
    Ok(found)
}

/// The four numbers of a row: accuracy and dFIL.
fn numbers(o: &Outcome) -> Option<[f64; 4]> {
    o.dfil.as_ref().map(|d| [o.accuracy, d.max, d.mean, d.p50])
}

const COLUMNS: [&str; 4] = ["accuracy", "largest dFIL", "mean dFIL", "median dFIL"];

/// Ours beside a printed mean, within its printed standard deviation.
pub(super) fn row(name: impl Into<String>, (mean, sd): Printed, ours: f64) -> Row {
    Row::within(name, (mean, 4), sd, ours)
}

fn beside(name: &str, o: &Outcome, paper: [Printed; 4]) -> impl Iterator<Item = Row> {
    let ours = numbers(o).into_iter().flatten();
    let each: Vec<Row> = COLUMNS
        .iter()
        .zip(paper)
        .zip(ours)
        .map(|((column, paper), ours)| row(format!("{name}: {column}"), paper, ours))
        .collect();
    each.into_iter()
}

fn alone(name: &str, o: &Outcome) -> Vec<Row> {
    let Some(ours) = numbers(o) else { return vec![] };
    COLUMNS.iter().zip(ours).map(|(column, v)| Row::ours(format!("{name}: {column}"), v)).collect()
}

/// The orderings of the published table, and whether this project’s variants keep them.
fn claims(all: &[(&str, Outcome)]) -> Vec<Claim> {
    let mean =
        |name: &str| all.iter().find(|(n, _)| *n == name).and_then(|(_, o)| o.dfil.as_ref()).map(|d| d.mean);
    let mut out = vec![];
    for (less, more) in [
        ("Prune", "DPSGD"),
        ("FIM, as in the thesis", "Prune"),
        ("FIM, constant", "Prune"),
        ("FIM, average", "Prune"),
        ("FIM, network", "Prune"),
    ] {
        if let (Some(a), Some(b)) = (mean(less), mean(more)) {
            out.push(Claim::new(
                format!("{less} has a smaller mean dFIL than {more}."),
                a < b,
                format!("{} against {}.", format::number(a), format::number(b)),
            ));
        }
    }
    let lowest = all
        .iter()
        .filter_map(|(n, o)| o.dfil.as_ref().map(|d| (*n, d.mean)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((name, value)) = lowest {
        let found = format!("Lowest mean dFIL: {name}, {}.", format::number(value));
        out.push(Claim::new("FIM has the smallest mean dFIL of the table.", name.starts_with("FIM"), found));
    }
    out
}

fn figure(name: &str, all: &[(&str, Outcome)]) -> Figure {
    let panel = |title: &str, at: usize| {
        let of =
            |(name, o): &(&str, Outcome)| numbers(o).map(|n| PointSeries::new(*name, vec![[n[at], n[0]]]));
        Panel {
            title: format!("accuracy against the {title}"),
            content: Content::Dots {
                x: AxisTitle::log(title),
                y: AxisTitle::linear("accuracy"),
                series: all.iter().filter_map(of).collect(),
                line: None,
                notes: vec![],
            },
        }
    };
    Figure {
        file: name.into(),
        title: "Accuracy against what records give away".into(),
        caption: "Better is up and to the left.".into(),
        panels: COLUMNS.iter().enumerate().skip(1).map(|(at, title)| panel(title, at)).collect(),
    }
}
