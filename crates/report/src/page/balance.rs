//! The page of a balancing: did it work, what did it cost, and for whom.

use super::head::tile;
use super::shell;
use crate::balance::{Balance, Step};
use crate::chart::{Axis, Line, Lines, Point, patterns};
use crate::format;
use crate::html::{Cell, Kind, card, escape, list, numbers, table};
use leakscope_core::balance::{Update, Variant};

/// A balancing as one self-contained HTML page.
pub fn balance_page(b: &Balance) -> String {
    let (Some(before), Some(after)) = (b.iterations.first(), b.iterations.get(b.best)) else {
        return shell("Leakscope balance", "<main><p>There is no iteration.</p></main>");
    };
    let what = b.attribute.as_ref().map_or_else(|| "a record".to_owned(), |a| format!("{a} in a record"));
    let (class, level, sentences) = verdict(b, before, after, &what);
    let said: String = sentences.iter().map(|s| format!("<p>{s}</p>\n")).collect();
    let warnings = match b.warnings.is_empty() {
        true => String::new(),
        false => format!(
            "<section class=\"warnings\" aria-label=\"Warnings\"><h2>{}</h2>{}</section>\n",
            format::counted(b.warnings.len() as u64, "warning"),
            list(&b.warnings)
        ),
    };
    let body = format!(
        "{}<main>\n<header><div class=\"top\"><p class=\"eyebrow\">Leakscope balance</p></div><h1>{}</h1>\
         <p class=\"meta\">{}</p></header>\n<section class=\"verdict {class}\" aria-label=\"Verdict\">\
         <p class=\"level\">{level}</p>\n{said}</section>\n{}{warnings}{}{}{}{}</main>\n",
        patterns(),
        escape(&b.subject.title()),
        escape(&b.subject.facts()),
        tiles(before, after),
        convergence(b),
        scores(b),
        attacker(b, &what),
        steps(b),
    );
    shell(&format!("Leakscope balance: {}", b.subject.title()), &body)
}

fn verdict(
    b: &Balance,
    before: &Step,
    after: &Step,
    what: &str,
) -> (&'static str, &'static str, Vec<String>) {
    let (was, is) = (before.spread(), after.spread());
    let mut said = vec![format!(
        "Before reweighting the information loss η of {} varied by <b>{}</b> of its mean; at iteration {} it varies by \
         <b>{}</b>.",
        escape(what),
        format::share(was),
        b.best,
        format::share(is)
    )];
    if let (Some(a), Some(c)) =
        (before.test_score.or(before.train_score), after.test_score.or(after.train_score))
    {
        let rows = if before.test_score.is_some() { "held-out" } else { "training" };
        said.push(format!(
            "The {} on {rows} rows went from {} to {}; the largest η from {} to {}.",
            escape(&b.metric),
            format::number(a),
            format::number(c),
            format::number(before.eta_max),
            format::number(after.eta_max)
        ));
    }
    match (b.stopped.as_str(), b.variant) {
        ("converged", _) => ("good", "Balanced", said),
        (_, Variant::Unweighted) => {
            said.push(
                "The unweighted variant has no fixed point: it follows η without the weights, which reweighting \
                 cannot equalise. The best iteration is kept."
                    .into(),
            );
            ("care", "Not equalised", said)
        }
        ("vanished" | "no-fit", _) => ("care", "Stopped early", said),
        _ if b.converging && is < 0.05 => ("good", "Balanced within 5%", said),
        _ if b.converging => ("care", "Still converging", said),
        _ => {
            said.push("It did not converge: later iterations were worse, and the best one is kept.".into());
            ("care", "Did not converge", said)
        }
    }
}

fn tiles(before: &Step, after: &Step) -> String {
    let all = [
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
    format!("<div class=\"tiles n4\">\n{}</div>\n", all.concat())
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

/// Fig. 5, 7a and 7c: mean and spread of η over the iterations.
fn convergence(b: &Balance) -> String {
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
    let body = format!("<div class=\"two\"><div>{}</div><div>{}</div></div>", left.draw(), right.draw());
    card("convergence", "How fast leakage becomes equal", &[Kind::Measured], lead, &body)
}

fn scores(b: &Balance) -> String {
    let chart = Lines {
        x: Axis { title: "iteration", log: false },
        y: Axis { title: &b.metric, log: false },
        lines: vec![
            line("training rows", 0, &b.iterations, |s| s.train_score),
            line("held-out rows", 1, &b.iterations, |s| s.test_score),
        ],
        levels: vec![],
        y_domain: None,
        described: format!("{} over the iterations.", b.metric),
    };
    let better = if b.higher_is_better { "Higher" } else { "Lower" };
    let lead = format!("{better} is better. Scores are those of the model without noise.");
    card(
        "scores",
        "What it costs",
        &[Kind::Measured],
        &lead,
        &format!("<div class=\"narrow\">{}</div>", chart.draw()),
    )
}

/// AM207's criticism, side by side.
fn attacker(b: &Balance, what: &str) -> String {
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
        history(variant)
            .map_or_else(String::new, |h| format!("<div><h3>{heading}</h3>{}</div>", chart(h, name)))
    };
    let lead = format!(
        "Leakage is measured equal for an attacker who knows the model <em>and the weights</em>: changing {} by a \
         unit moves the coefficients by the weight times what it would without. An attacker who knows the model but not \
         the weights cannot compute that; what the record’s own values do, weight aside, is η without the weights, and \
         reweighting does not make it equal (AM207 §6.3): a record with a small weight is protected by that weight alone. \
         Keep the weights secret or not, but do not read the second curve as balanced. A curve that ends early ended because a weight vanished.",
        escape(what)
    );
    let body = format!(
        "<div class=\"two\">{}{}</div>",
        side(Variant::Weighted, "Weights follow η with the weights (weighted)", "weighted variant"),
        side(Variant::Unweighted, "Weights follow η without them (unweighted)", "unweighted variant")
    );
    card("attacker", "Equal for whom", &[Kind::Measured], &lead, &body)
}

fn steps(b: &Balance) -> String {
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
    let score = |s: Option<f64>| s.map_or_else(|| Cell::text("–"), Cell::number);
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
                score(s.train_score),
                score(s.test_score),
            ]
        })
        .collect();
    card(
        "iterations",
        "Every iteration",
        &[Kind::Measured],
        "",
        &table("sortable", "Iterations", &heads, &rows),
    )
}
