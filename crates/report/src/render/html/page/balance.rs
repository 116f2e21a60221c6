//! The page of a balancing: did it work, what did it cost, and for whom.

use crate::document::balance::{Balance, Step};
use crate::figure::Claim;
use crate::format;
use crate::render::html::chart::{Axis, Line, Lines, Point};
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{
    card, header, judged, narrow, notes, shell, tile, tiles, two, warnings, whose,
};
use crate::render::html::table::{Cell, numbers, table, words as words_column};
use crate::verdict::of_balance;
use crate::words;
use leakscope_core::balance::{Update, Variant};

/// A balancing as one self-contained HTML page.
pub fn balance_page(b: &Balance) -> String {
    let (title, facts) = words::subject(&b.subject);
    let mut body =
        header("Leakscope balance", &title, &facts).and(whose(b.redact)).and(judged(&of_balance(b)));
    if let (Some(before), Some(after)) = (b.iterations.first(), b.iterations.get(b.best)) {
        body = body.and(main_numbers(b, before, after)).and(warnings(&b.warnings)).and(notes(&b.notes));
        body = body.and(convergence(b)).and(scores(b)).and(bought(b)).and(attacker(b)).and(steps(b));
    }
    shell(&format!("Leakscope balance: {title}"), &body)
}

fn main_numbers(b: &Balance, before: &Step, after: &Step) -> Html {
    let counted = b.counted.map(|c| {
        let spread = format::share(c.kept.spread);
        tile(
            &format::number(c.kept.max),
            &format!("largest η of a release, weights counted (spread {spread})"),
        )
    });
    let tiled = vec![
        tile(
            &format::share(after.spread()),
            &format!("spread of η now ({} before)", format::share(before.spread())),
        ),
        tile(
            &format::number(after.eta_mean),
            &format!("mean η ({} before)", format::number(before.eta_mean)),
        ),
        tile(
            &format::number(after.eta_max),
            &format!("largest η ({} before)", format::number(before.eta_max)),
        ),
        tile(
            &format!("{} – {}", format::number(after.weight_min), format::number(after.weight_max)),
            "smallest and largest weight of a record",
        ),
    ];
    tiles(tiled.into_iter().chain(counted).collect())
}

fn line(name: &str, slot: usize, steps: &[Step], value: impl Fn(&Step) -> Option<f64>) -> Line {
    let points = steps
        .iter()
        .filter_map(|s| value(s).map(|y| Point { x: s.iteration as f64, y, interval: None }))
        .collect();
    Line { name: name.into(), slot, points }
}

fn update_name(update: Update) -> &'static str {
    match update {
        Update::Published => "published update",
        Update::Accelerated => "accelerated update",
    }
}

/// Strictness at which the four ways are compared: η over its target.
const STRICTNESS: [f64; 7] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// The error that is added against how strict the targets are: neither, balancing, the shape, both.
fn bought(b: &Balance) -> Html {
    let Some(bought) = &b.bought else { return Html::new() };
    let lines = bought
        .gains
        .iter()
        .enumerate()
        .map(|(slot, gain)| Line {
            name: gain.name().into(),
            slot,
            points: STRICTNESS
                .iter()
                .map(|x| Point { x: *x, y: gain.weights + gain.noise / (x * x), interval: None })
                .collect(),
        })
        .collect();
    let chart = Lines {
        x: Axis { title: "largest η over its target", log: true },
        y: Axis { title: "error added to predictions", log: true },
        lines,
        levels: vec![],
        y_domain: None,
        described: "The error that weights and noise add to predictions against how strict the targets are, for isotropic noise, \
                    balancing alone, the shape alone, and both."
            .into(),
    };
    let rows: Vec<Vec<Cell>> = bought
        .gains
        .iter()
        .map(|g| {
            let mut row = vec![Cell::name(g.name())];
            row.extend([g.weights, g.noise, g.error()].map(|x| Cell::sorted(format::number(x), x)));
            row
        })
        .collect();
    let heads = [words_column("way"), numbers("by weights"), numbers("by noise"), numbers("in all")];
    let note = format!(
        "For the same targets on every record. Weights move the model, noise adds tr(ΣA); with both, weights and shape were found in \
         turn ({}). η is measured with weights and shape held. What a release gives away is counted for balancing with isotropic \
         noise, and for a shape without balancing; for both together no statement can be made, and none is released.",
        format::counted(bought.rounds as u64, "round")
    );
    let body = chart.draw().and(table("stack even", "What each way costs", &heads, &rows));
    card("bought", "What balancing and the shape of the noise buy", &[Claim::Measured], note, body)
}

/// Fig. 5, 7a and 7c: mean and spread of η over the iterations.
fn convergence(b: &Balance) -> Html {
    let mut spreads = vec![line(update_name(b.update), 0, &b.iterations, |s| Some(s.spread()))];
    if let Some(other) = b.comparisons.iter().find(|c| c.variant == b.variant && c.update != b.update) {
        spreads.push(line(update_name(other.update), 1, &other.iterations, |s| Some(s.spread())));
    }
    let axis = Axis { title: "iteration", log: false };
    let left = Lines {
        x: axis,
        y: Axis { title: "standard deviation of η over its mean", log: true },
        lines: spreads,
        levels: vec![],
        y_domain: None,
        described: "The spread of η over the iterations, on a logarithmic axis.".into(),
    };
    let right = Lines {
        x: axis,
        y: Axis { title: "information loss η", log: false },
        lines: vec![
            line("largest", 5, &b.iterations, |s| Some(s.eta_max)),
            line("mean plus standard deviation", 2, &b.iterations, |s| Some(s.eta_mean + s.eta_std)),
            line("mean", 0, &b.iterations, |s| Some(s.eta_mean)),
        ],
        levels: vec![],
        y_domain: None,
        described: "Mean, mean plus standard deviation, and largest η over the iterations.".into(),
    };
    let lead = "Every iteration divides a record’s weight by its information loss and fits again (Hannun 2021, \
                algorithm 1). Iteration 0 is the model before reweighting.";
    let body = two(left.draw(), right.draw());
    card("convergence", "How fast leakage becomes equal", &[Claim::Measured], lead, body)
}

fn scores(b: &Balance) -> Html {
    let chart = Lines {
        x: Axis { title: "iteration", log: false },
        y: Axis { title: words::metric_name(b.metric), log: false },
        lines: [
            Some(line("training rows", 0, &b.iterations, |s| s.train_score)),
            // A legend names what is drawn.
            (b.iterations.iter().any(|s| s.test_score.is_some()))
                .then(|| line("held-out rows", 1, &b.iterations, |s| s.test_score)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        levels: vec![],
        y_domain: None,
        described: format!("{} over the iterations.", words::metric_name(b.metric)),
    };
    let better = if b.higher_is_better { "Higher" } else { "Lower" };
    let lead = format!("{better} is better. Scores are those of the model without noise.");
    card("scores", "What it costs", &[Claim::Measured], lead, narrow(chart.draw()))
}

/// AM207's criticism, side by side.
fn attacker(b: &Balance) -> Html {
    let chart = |steps: &[Step], name: &str| {
        Lines {
            x: Axis { title: "iteration", log: false },
            y: Axis { title: "standard deviation of η over its mean", log: true },
            lines: vec![
                line("η with the weights", 0, steps, |s| Some(s.spread())),
                line("η without the weights", 1, steps, |s| Some(s.spread_unweighted())),
            ],
            levels: vec![],
            y_domain: None,
            described: format!("Spread of η with and without the weights, {name}."),
        }
        .draw()
    };
    let history = |variant: Variant| -> Option<&[Step]> {
        if b.variant == variant {
            return Some(&b.iterations);
        }
        b.comparisons.iter().find(|c| c.variant == variant).map(|c| c.iterations.as_slice())
    };
    let side = |variant: Variant, heading: &str, name: &str| {
        let drawn = history(variant).map(|h| chart(h, name));
        drawn.map_or_else(Html::new, |d| fill("<div><h3>{}</h3>{}</div>", &[&heading, &d]))
    };
    let secret = b.attribute.as_ref().map_or_else(|| "a record".to_owned(), |a| format!("{a} in a record"));
    let lead = fill(
        "Leakage is measured equal for an attacker who knows the model <em>and the weights</em>: changing {} by a \
         unit moves the coefficients by the weight times what it would without. An attacker who knows the model but not \
         the weights cannot compute that; what the record’s own values do, weight aside, is η without the weights, and \
         reweighting does not make it equal (AM207 §6.3): a record with a small weight is protected by that weight alone. \
         Keep the weights secret or not, but do not read the second curve as balanced. A curve that ends early ended because a weight vanished.",
        &[&secret],
    );
    let body = fill(
        "<div class=\"two\">{}{}</div>",
        &[
            &side(Variant::Weighted, "Weights follow η with the weights (weighted)", "weighted variant"),
            &side(Variant::Unweighted, "Weights follow η without them (unweighted)", "unweighted variant"),
        ],
    );
    card("attacker", "Equal for whom", &[Claim::Measured], lead, body)
}

fn steps(b: &Balance) -> Html {
    let heads = [
        numbers("iteration"),
        numbers("mean η"),
        numbers("std of η"),
        numbers("largest η"),
        numbers("spread"),
        numbers("spread without weights"),
        numbers("training"),
        numbers("held-out"),
    ];
    let rows: Vec<Vec<Cell>> = b
        .iterations
        .iter()
        .map(|s| {
            vec![
                Cell::count(s.iteration as u64),
                Cell::number(s.eta_mean),
                Cell::number(s.eta_std),
                Cell::number(s.eta_max),
                Cell::sorted(format!("{}%", format::number(100.0 * s.spread())), s.spread()),
                Cell::sorted(
                    format!("{}%", format::number(100.0 * s.spread_unweighted())),
                    s.spread_unweighted(),
                ),
                Cell::maybe(s.train_score),
                Cell::maybe(s.test_score),
            ]
        })
        .collect();
    let body = table("sortable", "Iterations", &heads, &rows);
    card("iterations", "Every iteration", &[Claim::Measured], "", body)
}
