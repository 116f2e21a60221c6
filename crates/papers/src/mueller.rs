//! Mueller et al. (2022): which values of a record a privately trained model gives away. Figure 1; images are in
//! [`super::mueller_images`].

use super::{Context, Findings};
use crate::regression::{INFORMATIVE, WIDTH, regression};
use leakscope::{Failure, Result};
use leakscope_net::leak::{Label, Measure, Plis, RecordLeak, Signal, Trace, measure};
use leakscope_net::train::{Optimizer, Privacy, Randomness, Sampling, TrainConfig, Trainer, sigma_for};
use leakscope_net::{Clip, Data, LayerSpec, Loss, NetSpec, Network, Real, Shape};
use leakscope_report::format;
use leakscope_report::reproduction::{AxisTitle, Claim, Content, Figure, Panel, PointSeries, Row};

pub(super) fn failure_of(error: impl std::fmt::Display) -> Failure {
    Failure::Message(error.to_string())
}

/// A run: how many steps, what share of the records in each, how fast.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    pub(super) steps: u64,
    pub(super) rate: f64,
    pub(super) learning_rate: f64,
    pub(super) momentum: f64,
}

/// Trains a network, in private where there is a budget (ε, δ) with a clip.
pub(super) fn train<T: Real>(
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
        sigma = sigma_for(epsilon, at, clip, sampling, schedule.steps, data.len()).map_err(failure_of)?;
        delta = at;
        privacy = Some(Privacy { clip, sigma });
    }
    let config = TrainConfig {
        privacy,
        delta,
        // figures can be repeated: nothing here is released
        seed: context.seed,
        randomness: Randomness::SeededNotPrivate,
        ..TrainConfig::open(Optimizer::Sgd { momentum: schedule.momentum }, schedule.learning_rate, sampling)
    };
    let net = Network::new(spec.clone(), context.seed).map_err(failure_of)?;
    let net = net.on(context.device.backend()?).map_err(failure_of)?;
    let mut trainer = Trainer::new(net, data, config).map_err(failure_of)?;
    for _ in 0..schedule.steps {
        context.check()?;
        trainer.step().map_err(failure_of)?;
    }
    Ok((trainer.into_network(), sigma))
}

/// A mean for every feature.
fn by_feature(title: &str, values: &[f64]) -> Panel {
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
}

/// Figure 1.
pub(super) fn fig1(context: &Context<'_>) -> Result<Findings> {
    const SHOWN: [usize; 3] = [8, 9, 12];
    let n = 2000;
    let (x, y) = regression(n, context.seed);
    let input = Shape::Vector([WIDTH]);
    let layers = vec![LayerSpec::Dense { outputs: 1, bias: false, frozen: false }];
    let spec = NetSpec::sequential(input, layers, Loss::SquaredError);
    let data = Data::<f64>::new(input, x, 1, y).map_err(failure_of)?;
    let clip = Clip::Gelu { bound: 5.0 };
    let schedule = Schedule { steps: 20, rate: 0.25, learning_rate: 0.3, momentum: 0.0 };
    let (net, sigma) = train(context, &spec, &data, schedule, Some((0.2, 1e-3, clip)))?;
    let measures = Measure {
        shift: None,
        clip,
        sigma,
        label: Label::Public,
        trace: Trace::Elements,
        eta: None,
        plis: Plis::Elements,
        signal: Signal::Released,
        seed: context.seed,
    };
    let all: Vec<usize> = (0..n).collect();
    let leaks = measure(&net, &data, &all, &measures).map_err(failure_of)?;
    let mean =
        |of: &dyn Fn(&RecordLeak) -> f64| leaks.iter().map(of).sum::<f64>() / leaks.len().max(1) as f64;
    // η of the feature on its own, and the size of its PLIS.
    let fil: Vec<f64> =
        (0..WIDTH).map(|j| mean(&|l| l.information.get(j).copied().unwrap_or(0.0).max(0.0).sqrt())).collect();
    let plis: Vec<f64> =
        (0..WIDTH).map(|j| mean(&|l| l.plis_parts.get(j).copied().unwrap_or(0.0).abs())).collect();
    let least = |v: &[f64]| INFORMATIVE.iter().map(|&j| v[j]).fold(f64::INFINITY, f64::min);
    let most = |v: &[f64]| (0..WIDTH).filter(|j| !INFORMATIVE.contains(j)).map(|j| v[j]).fold(0.0, f64::max);
    let mut findings = Findings {
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
        ..Findings::default()
    };
    for j in SHOWN {
        let kind = if INFORMATIVE.contains(&j) { "informative" } else { "uninformative" };
        findings.rows.push(Row::ours(format!("feature {j} ({kind}): mean FIL"), fil[j]));
        findings.rows.push(Row::ours(format!("feature {j} ({kind}): mean PLIS"), plis[j]));
    }
    for (name, values) in [("FIL", &fil), ("PLIS", &plis)] {
        let (low, high) = (least(values), most(values));
        findings.claims.push(Claim::new(
            format!("Informative features have a high {name}, uninformative ones one near zero."),
            low > 5.0 * high,
            format!("At least {} against at most {}.", format::number(low), format::number(high)),
        ));
    }
    findings.figures.push(Figure {
        file: "mueller-fig1".into(),
        title: "Figure 1: FIL and PLIS of every feature".into(),
        caption: "Both point at the same features. The paper shows three of them.".into(),
        panels: vec![by_feature("FIL", &fil), by_feature("PLIS", &plis)],
    });
    Ok(findings)
}
