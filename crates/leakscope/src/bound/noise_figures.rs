//! What was found about a secret of a table, as curves against the noise (Guo fig. 4).

use leakscope_core::claim::{Bound, Observed, Theorem};
use leakscope_report::attack::Utility;
use leakscope_report::bound::{CurvePoint, FromData, Row};
use leakscope_report::choice::Metric;
use leakscope_report::figure::{Axis, Figure, Level, Series};
use leakscope_report::format;

/// Guo's figure 4: bounds and attacks, what noise costs, and ε, all against σ.
pub(super) fn figures(data: &FromData, chosen: Option<f64>) -> Vec<Figure> {
    let cost = data.utility.as_ref().map(|u| utility(u, chosen));
    [Some(advantage(data, chosen)), cost, Some(epsilon(data, chosen))].into_iter().flatten().collect()
}

fn sigma() -> Axis {
    Axis::log("noise on every coefficient, σ")
}

/// Bounds and attacks (fig. 4a).
fn advantage(data: &FromData, chosen: Option<f64>) -> Figure {
    let pick = |of: &dyn Fn(&Row) -> Option<f64>, theorem: Theorem, largest: bool| {
        let of = move |p: &CurvePoint| {
            let row = p.bounds.iter().find(|b| b.name == theorem && b.largest_distance == largest)?;
            Some((p.sigma, Bound::share_at_most(of(row)?, theorem)))
        };
        data.curve.iter().filter_map(of).collect::<Vec<_>>()
    };
    let mean = |b: &Row| Some(b.advantage);
    let worst = |b: &Row| b.worst.map(|w| w.advantage);
    let mut series = vec![
        Series::bound("theorem 2, largest distance", pick(&mean, Theorem::FanoTheorem2, true)),
        Series::bound("best centre, easiest record", pick(&worst, Theorem::BestCentre, false)),
        Series::bound("theorem 2, mean of records", pick(&mean, Theorem::FanoTheorem2, false)),
        Series::bound("best centre, mean of records", pick(&mean, Theorem::BestCentre, false)),
    ];
    let mut attackers = vec![];
    data.attacks.iter().for_each(|a| {
        if !attackers.contains(&a.attack) {
            attackers.push(a.attack);
        }
    });
    for attacker in attackers {
        let of = data.attacks.iter().filter(|a| a.attack == attacker);
        series.push(Series::observed(attacker.name(), of.map(|a| (a.sigma, a.advantage.clone()))));
    }
    let optimal = optimal(data);
    if !optimal.is_empty() {
        series.push(Series::observed("optimal attack in simulation", optimal));
    }
    let simulated = pick(&mean, Theorem::FanoMonteCarlo, false);
    if !simulated.is_empty() {
        series.push(Series::bound("Fano, simulated information", simulated));
    }
    Figure {
        id: "advantage".into(),
        title: "What any attacker can do, and what attacks do".into(),
        caption: "Advantage over guessing the most frequent value, against the noise (Guo et al. 2022, fig. 4a). Attackers \
                  without the prior can fall below zero. Shaded: 95% intervals."
            .into(),
        x: sigma(),
        y: Axis::linear("advantage"),
        series,
        levels: vec![],
        chosen,
    }
}

/// The advantage of the optimal attack in simulation.
fn optimal(data: &FromData) -> Vec<(f64, Observed)> {
    let p = data.secret.candidates.iter().map(|c| c.prior).fold(0.0, f64::max);
    let advantage = |v: f64| (v - p) / (1.0 - p);
    let of = |c: &CurvePoint| {
        let o = c.optimal.clone()?;
        let (value, ci_low, ci_high) = (advantage(o.value), advantage(o.ci_low), advantage(o.ci_high));
        Some((c.sigma, Observed { value, ci_low, ci_high, ..o }))
    };
    data.curve.iter().filter_map(of).collect()
}

/// What the noise costs (fig. 4b).
fn utility(u: &Utility, chosen: Option<f64>) -> Figure {
    let metric = match u.metric {
        Metric::Mse => "mean squared error",
        Metric::Accuracy | Metric::Deviance => u.metric.name(),
    };
    let gap = (u.without_noise - u.constant_model).abs();
    let (low, high) = (u.without_noise.min(u.constant_model), u.without_noise.max(u.constant_model));
    Figure {
            id: "utility".into(),
            title: "What the noise costs".into(),
            caption: "Expected over the noise, exactly, on held-out rows (fig. 4b). Where the curve leaves the frame it stays \
                      on its edge."
                .into(),
            x: sigma(),
            y: Axis { title: metric.into(), log: false, ends: Some([low - 0.3 * gap, high + 0.7 * gap]) },
            series: vec![Series::measured(metric, u.points.iter().copied())],
            levels: vec![
                Level { value: u.without_noise, name: "without noise".into() },
                Level { value: u.constant_model, name: "a model without columns".into() },
            ],
            chosen,
        }
}

/// ε of the neighbours of the table (fig. 4c).
fn epsilon(data: &FromData, chosen: Option<f64>) -> Figure {
    let mut epsilons = vec![Series::measured(
        "this secret of the most exposed record",
        data.curve.iter().map(|c| (c.sigma, c.epsilon_secret)),
    )];
    let removal: Vec<(f64, f64)> =
        data.curve.iter().filter_map(|c| Some((c.sigma, c.epsilon_removal?))).collect();
    if !removal.is_empty() {
        epsilons.push(Series::measured("with and without the most influential record", removal));
    }
    Figure {
        id: "epsilon".into(),
        title: "What ε says".into(),
        caption: format!(
            "ε at δ = {}, for neighbours of this table (fig. 4c). It is measured on these data and is no differential privacy: \
             other tables may be more sensitive.",
            format::setting(data.delta)
        ),
        x: sigma(),
        y: Axis::log("ε"),
        series: epsilons,
        levels: vec![],
        chosen,
    }
}
