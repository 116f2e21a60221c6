//! Tables 3.1 to 3.3: accuracy against dFIL of DP-SGD, pruned, and perturbed.

use super::super::data::{Images, digits, photographs};
use super::super::{Context, Findings};
use super::epsilon;
use super::leaked::{COLUMNS, Leaked, compared, reading};
use super::run::{BATCH, Effort, Method, Outcome, Recipe, Split, accuracy, pretrained, run, split};
use leakscope::Result;
use leakscope_net::perturb::PerturbationKind;
use leakscope_net::preset::Preset;
use leakscope_net::{Backend, LayerSpec, NetSpec, Network, Shape};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

/// A mean and its standard deviation.
pub(super) type Printed = (f64, f64);

/// A table as published: accuracies, then accuracy and dFIL (largest, mean, median).
struct Published {
    name: &'static str,
    network: Preset,
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
const VARIANTS: [(&str, PerturbationKind); 4] = [
    ("FIM, as in the thesis", PerturbationKind::Thesis),
    ("FIM, constant", PerturbationKind::Constant),
    ("FIM, average", PerturbationKind::Average),
    ("FIM, network", PerturbationKind::Network),
];

pub(super) const TABLE_3_1: Recipe =
    Recipe { first: (30, 0.01, 1e-4), private: (0.01, 1e-5), sigma: 0.5, clip: 10.0, learned: (0.01, 0.1) };

/// Table 3.1: a linear model of digits, half of them public.
pub(crate) fn table_3_1(context: &Context<'_>) -> Result<Findings> {
    let published = Published {
        name: "edmunds-table3.1",
        network: Preset::Linear,
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
        network: Preset::CnnMnist,
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
        network: Preset::Linear,
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

/// Networks that were pre-trained, one for each run, and the records.
struct Started<'a> {
    context: &'a Context<'a>,
    networks: Vec<Network<f32>>,
    split: Split,
    recipe: &'a Recipe,
}

impl Started<'_> {
    /// The mean over so many runs of a method.
    fn outcome(&self, method: Method, runs: u64) -> Result<Outcome> {
        let each = self.networks.iter().zip(self.context.seed..).take(runs as usize);
        each.map(|(net, seed)| run(self.context, net, &self.split, self.recipe, (method, seed)))
            .collect::<Result<Vec<Outcome>>>()
            .map(Outcome::mean)
    }
}

fn table(
    context: &Context<'_>,
    published: &Published,
    images: fn(&Context<'_>) -> Result<(Images, Images)>,
) -> Result<Findings> {
    let images = images(context)?;
    let effort = match published.network {
        Preset::Linear => Effort::of(context),
        Preset::Mlp | Preset::MlpAttack | Preset::CnnMnist | Preset::CnnCifar => Effort::small(context),
    };
    let split = split(&images, published.share, effort)?;
    let recipe = &published.recipe;
    let spec = network(published.network, Shape::Image(images.0.shape));
    let networks: Vec<Network<f32>> = (context.seed..context.seed + effort.runs[0])
        .map(|seed| pretrained(context, &spec, (&split.public, recipe), seed))
        .collect::<Result<_>>()?;
    // a network of the record costs an array of all parameters for each record and epoch, one record at a time: hours of
    // photographs, days at full size, and nothing for a GPU
    let small = context.synthetic || images.0.shape[2] == 1;
    let mapped = small && !context.full && matches!(context.device.backend()?, Backend::Cpu);
    let mut findings = introduction(context, &split, effort, mapped);
    let private = published.records - (published.share * published.records as f64) as usize;
    let rate = BATCH as f64 / private as f64;
    let ours = epsilon(recipe.sigma, rate, private.div_ceil(BATCH) as u64)?;
    findings.rows.push(Row::printed("ε at δ = 10⁻⁹, at the published size", published.epsilon, 4, ours));
    let each: Vec<f64> = networks.iter().map(|net| accuracy(net, &split.test)).collect::<Result<_>>()?;
    findings.rows.push(compared("pre-trained: accuracy", published.pretrained, &each));
    let started = Started { context, networks, split, recipe };
    let open = started.outcome(Method::Open, effort.runs[0])?;
    findings.rows.push(compared("SGD: accuracy", published.open, &open.accuracies));
    let mut all: Vec<(&str, Outcome)> = vec![];
    let mut printed: Vec<(&str, Leaked, [Printed; 3])> = vec![];
    let mut beside = |name: &'static str, made: &Outcome, paper: [Printed; 4], size: &str| -> Vec<Row> {
        let accuracy = compared(format!("{name}: accuracy"), paper[0], &made.accuracies);
        let why = format!("{} {size}", accuracy.why);
        let mut rows = vec![accuracy.because(why.trim())];
        if let Some(leaked) = made.dfil {
            let [_, columns @ ..] = paper;
            rows.extend(leaked.beside(name, columns, size));
            printed.push((name, leaked, columns));
        }
        rows
    };
    for (name, method, paper) in
        [("DPSGD", Method::Private, published.private), ("Prune", Method::Pruned, published.pruned)]
    {
        let made = started.outcome(method, effort.runs[0])?;
        findings.rows.extend(beside(name, &made, paper, ""));
        all.push((name, made));
    }
    let part = match context.full {
        true => "",
        false => "Learned on a part of the public records.",
    };
    for (name, variant) in VARIANTS.into_iter().filter(|(_, v)| mapped || *v != PerturbationKind::Network) {
        let how = effort.perturbing(variant, recipe);
        let runs = if variant == PerturbationKind::Thesis { effort.runs[1] } else { effort.runs[2] };
        let made = started.outcome(Method::Perturbed(how), runs)?;
        match variant {
            PerturbationKind::Thesis => findings.rows.extend(beside(name, &made, published.perturbed, part)),
            PerturbationKind::Average | PerturbationKind::Constant | PerturbationKind::Network => {
                findings.rows.extend(alone(name, &made))
            }
        }
        if let Some(last) = made.steps.last() {
            let text = format!("{name}: cosine with the average public gradient, last step");
            findings.rows.push(Row::ours(text, last.cosine));
        }
        all.push((name, made));
    }
    findings.claims = claims(published, &all);
    findings.claims.extend(reading(&printed));
    findings.figures.push(figure(published.name, &all));
    Ok(findings)
}

/// The network of a table. The thesis prints a padding of 2 for the first convolution of its digits; its code pads to 14 × 14 positions, which
/// needs 3 (both come to 26,010 parameters), and that is what its numbers are of.
fn network(preset: Preset, shape: Shape) -> NetSpec {
    let mut spec = preset.spec(shape, 10);
    if preset == Preset::CnnMnist {
        spec.layers[0].layer = LayerSpec::conv(16, 8, 2, 3);
    }
    spec
}

/// What was trained on what, and how; `mapped` is whether a network of the record is among the variants.
fn introduction(context: &Context<'_>, split: &Split, effort: Effort, mapped: bool) -> Findings {
    let mut method = vec![effort.description(context), METHOD.into()];
    if !mapped {
        method.push(
            "A network of the record is left out: it costs an array of all parameters for each record."
                .into(),
        );
    }
    let data = format!(
        "{} public, {} private and {} test images",
        format::count(split.public.len() as u64),
        format::count(split.private.len() as u64),
        format::count(split.test.len() as u64)
    );
    Findings { data: vec![data], method, ..Findings::default() }
}

/// What the columns are.
const METHOD: &str = "dFIL of a record is the trace over the dimension, summed over the batches that drew it, times the published \
                      factor (equation 2.3), each trace by two Gaussian probes. The thesis prints its square root. Its network of \
                      the perturbation is run as what it is, a constant; the other three are this project’s.";

/// The four numbers of a row: accuracy and √dFIL.
fn numbers(o: &Outcome) -> Option<[f64; 4]> {
    o.dfil.map(|d| [o.accuracy(), d.root[0], d.root[1], d.root[2]])
}

fn alone(name: &str, o: &Outcome) -> Vec<Row> {
    let mut rows = vec![Row::ours(format!("{name}: accuracy"), o.accuracy())];
    rows.extend(o.dfil.map(|d| d.alone(name)).unwrap_or_default());
    rows
}

/// The orderings of the published table, and whether this project’s variants keep them.
fn claims(published: &Published, all: &[(&str, Outcome)]) -> Vec<Claim> {
    let of = |name: &str| all.iter().find(|(n, _)| *n == name).and_then(|(_, o)| o.dfil);
    let mut out = vec![];
    let printed = [
        ("DPSGD", published.private[2].0),
        ("Prune", published.pruned[2].0),
        ("FIM, as in the thesis", published.perturbed[2].0),
    ];
    for pair in printed.windows(2) {
        let [(more, _), (less, _)] =
            if pair[0].1 > pair[1].1 { [pair[0], pair[1]] } else { [pair[1], pair[0]] };
        if let (Some(a), Some(b)) = (of(less), of(more)) {
            out.push(Claim::new(
                format!("{less} has a smaller mean √dFIL than {more}."),
                a.root[1] < b.root[1],
                format!("{} against {}.", format::number(a.root[1]), format::number(b.root[1])),
            ));
        }
    }
    for less in ["FIM, constant", "FIM, average", "FIM, network"] {
        if let (Some(a), Some(b)) = (of(less), of("Prune")) {
            let [a, b] = [a, b].map(|d| d.mean_dfil());
            out.push(Claim::new(
                format!("{less} has a smaller mean dFIL than Prune."),
                a < b,
                format!("{} against {}.", format::number(a), format::number(b)),
            ));
        }
    }
    let lowest = all
        .iter()
        .filter_map(|(n, o)| o.dfil.map(|d| (*n, d.mean_dfil())))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((name, value)) = lowest {
        let sentence = format!("Lowest mean dFIL: {name}, {}.", format::number(value));
        out.push(Claim::new(
            "FIM has the smallest mean dFIL of the table.",
            name.starts_with("FIM"),
            sentence,
        ));
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
        panels: COLUMNS
            .iter()
            .enumerate()
            .map(|(at, title)| panel(&format!("{title} √dFIL"), at + 1))
            .collect(),
    }
}
