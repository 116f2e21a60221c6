//! The page of a training run, and the parts of it that an audit's page shows too.

use super::chart::{Axes, Line, histogram, lines};
use super::data::{Accounts, Point, PrivacyFacts, Stopped, Training};
use super::page::{facts, shell, tile, tiles, warnings};
use crate::format;
use crate::html::{Cell, Kind, card, escape, list, numbers, table, words};
use leakscope_core::claim::Measured;

/// The run as one self-contained HTML page.
pub fn training_page(training: &Training) -> String {
    let t = training;
    let title = format!("{} on {}", t.network.name, t.data.files.join(", "));
    let mut body = format!(
        "<header><p class=\"eyebrow\">Leakscope training run</p><h1>{}</h1><p class=\"meta\">{}</p></header>\n",
        escape(&title),
        escape(&meta(t))
    );
    body.push_str(&verdict(t));
    body.push_str(&run_tiles(t));
    body.push_str(&warnings(&t.notes));
    body.push_str(&progress(t));
    body.push_str(&over_training(t));
    if let Some(a) = &t.accounts {
        body.push_str(&accounts(t, a));
    }
    body.push_str(&settings(t));
    shell("Leakscope training run", &title, &body)
}

fn meta(t: &Training) -> String {
    format!(
        "{} · {} · {} steps with {} {} a step",
        format::counted(t.data.records, "record"),
        format::counted(t.network.parameters, "parameter"),
        format::count(t.steps),
        format::setting(t.batch),
        if t.sampling == "poisson" { "records expected in" } else { "records in" }
    )
}

fn verdict(t: &Training) -> String {
    let (mut class, mut level) = ("good", "Trained with noise");
    let mut text = String::new();
    match &t.privacy {
        Some(p) => text.push_str(&format!(
            "<p>The run is <b>({}, {})-differentially private</b> for every record{}.</p>\n<p>{}: {}.</p>\n",
            format::at_most(p.epsilon),
            format::setting(p.delta),
            in_words(p),
            by(p),
            escape(&p.statement)
        )),
        None => {
            (class, level) = ("bad", "Trained in the open");
            text.push_str("<p>No noise was added: <b>nothing is promised</b> to any record.</p>\n");
        }
    }
    if let Some(a) = &t.accounts {
        text.push_str(&format!(
            "<p>Over the whole run the median record gave away a dFIL of <b>{}</b>, the most exposed one {}.</p>\n",
            format::number(a.dfil.p50),
            format::number(a.dfil.max)
        ));
    }
    match t.stopped {
        Stopped::Finished => {}
        Stopped::Interrupted => text.push_str(&format!(
            "<p>It was stopped after {} of {} steps.</p>\n",
            format::count(t.steps),
            format::count(t.planned_steps)
        )),
        Stopped::Diverged => {
            (class, level) = ("bad", "Diverged");
            text.push_str(&format!(
                "<p>After {} of {} steps numbers were no longer finite, or the loss was out of all proportion; the last good \
                 parameters are kept.</p>\n",
                format::count(t.steps),
                format::count(t.planned_steps)
            ));
        }
    }
    format!(
        "<section class=\"verdict {class}\" aria-label=\"Verdict\"><p class=\"level\">{level}</p>\n{text}</section>\n"
    )
}

fn run_tiles(t: &Training) -> String {
    let last = t.history.last();
    let mut all = Vec::new();
    match last.map(|p| (p.accuracy, p.loss)) {
        Some((Some(a), _)) => {
            let on = if t.accuracy_on == "test" { "test records" } else { "training records" };
            all.push(tile(&format::share(a), &format!("of {on} right")));
        }
        Some((None, Some(loss))) => {
            all.push(tile(&format::number(loss), "mean loss of the last records drawn"))
        }
        _ => {}
    }
    if let Some(p) = &t.privacy {
        all.push(tile(&format::at_most(p.epsilon), &format!("ε at δ = {}", format::setting(p.delta))));
        all.push(tile(
            &format::setting(p.sigma),
            &format!("σ, noise over the clip C = {}", format::setting(p.clip)),
        ));
    }
    if let Some(a) = &t.accounts {
        all.push(tile(&format::number(a.dfil.max), "largest dFIL of a record over the run"));
    }
    tiles(&all)
}

fn progress(t: &Training) -> String {
    let over = |f: &dyn Fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        t.history.iter().filter_map(|p| f(p).map(|v| (p.step as f64, v))).collect()
    };
    let one = |name: &'static str, points: Vec<(f64, f64)>| {
        lines(&Axes { x: "step", y: name, logarithmic: false }, &[Line { name, class: "util", points }])
    };
    let loss = one("mean loss of the drawn records", over(&|p| p.loss));
    let share =
        if t.accuracy_on == "test" { "% of test records right" } else { "% of training records right" };
    let accuracy = one(share, over(&|p| p.accuracy.map(|a| 100.0 * a)));
    if loss.is_empty() && accuracy.is_empty() {
        return String::new();
    }
    let body = format!("<div class=\"two\"><div>{loss}</div><div>{accuracy}</div></div>");
    card("progress", "Training", &[Kind::Measured], "", &body)
}

/// dFIL against ε over training; empty where either was not kept.
pub(super) fn over_training(t: &Training) -> String {
    let against = |f: &dyn Fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        t.history.iter().filter_map(|p| Some((p.epsilon?, f(p)?))).collect()
    };
    let (most, median) = (against(&|p| p.dfil_max), against(&|p| p.dfil_median));
    let series = [
        Line { name: "largest", class: "largest", points: most },
        Line { name: "median", class: "mean", points: median },
    ];
    let chart = lines(&Axes { x: "ε", y: "dFIL so far", logarithmic: true }, &series);
    if chart.is_empty() {
        return String::new();
    }
    let lead = "Every step adds to both. ε bounds what any record could have given away, whatever its values; dFIL is \
                what the information of these records adds up to, at the parameters of each step.";
    card(
        "over",
        "dFIL against ε over training",
        &[Kind::Measured, Kind::Bound],
        lead,
        &format!("<div class=\"narrow\">{chart}</div>"),
    )
}

fn accounts(t: &Training, a: &Accounts) -> String {
    let lead = format!(
        "Accumulated over {} steps, whether or not a record was drawn, by the exact information of the noisy sum under \
         the run’s sampling. The published factor (Edmunds eq. 2.3) would say {} for the median record instead of {}.",
        format::count(t.steps),
        format::number(a.published_dfil.p50),
        format::number(a.dfil.p50)
    );
    let labelled = a.most.iter().any(|(_, label, ..)| label.is_some());
    let row = |(record, label, dfil, epsilon): &(u64, Option<String>, Measured, f64)| {
        let mut row = vec![Cell::name(&record.to_string())];
        row.extend(labelled.then(|| Cell::text(label.as_deref().unwrap_or_default())));
        let error = dfil.standard_error.unwrap_or(0.0);
        row.extend([dfil.value, error, *epsilon].map(Cell::number));
        row
    };
    let rows: Vec<Vec<Cell>> = a.most.iter().map(row).collect();
    let mut heads = vec![words("record")];
    heads.extend(labelled.then(|| words("label")));
    heads.extend(["dFIL", "standard error", "own ε"].map(numbers));
    let chart =
        a.histogram.as_ref().map(|h| histogram(h, "dFIL of a record over the run", None)).unwrap_or_default();
    let body = format!(
        "<div class=\"split\"><div>{chart}</div><div>{}</div></div>",
        table("sortable tall", "Records that gave away most", &heads, &rows)
    );
    card("accounts", "What every record gave away", &[Kind::Measured], &lead, &body)
}

/// The settings of the run.
pub(super) fn settings(t: &Training) -> String {
    let mut rows = vec![
        ("optimiser", format!("{}, learning rate {}", t.optimizer, format::setting(t.learning_rate))),
        ("weight decay", format::setting(t.weight_decay)),
        ("sampling", format!("{}, {} records a step", t.sampling, format::setting(t.batch))),
        ("steps", format!("{} of {}", format::count(t.steps), format::count(t.planned_steps))),
        ("seed", t.seed.to_string()),
        ("precision", t.precision.clone()),
        ("values", normalised(t.data.normalize)),
        ("label", if t.label_secret { "part of the secret" } else { "public" }.to_owned()),
    ];
    if let Some(p) = &t.privacy {
        rows.push(("clipping", format!("{} at C = {}", clip_name(&p.clip_kind), format::setting(p.clip))));
        rows.push(("noise", format!("σ = {} (standard deviation σC)", format::setting(p.sigma))));
    }
    if let Some(k) = &t.tracking {
        let which = if k.records == "every" {
            "every record at every step"
        } else {
            "drawn records, weighted by 1/q"
        };
        rows.push(("accounts", format!("{which}, {} probes", k.probes)));
    }
    let statement = t.privacy.as_ref().map(|p| list([&accountants(p), &p.statement])).unwrap_or_default();
    card("settings", "How it was trained", &[], "", &format!("{}{statement}", facts(&rows)))
}

/// Which accountant the stated ε is of.
pub(super) fn by(p: &PrivacyFacts) -> &'static str {
    match p.epsilon_pld {
        Some(pld) if pld.upper <= p.epsilon_rdp => "ε is certified by privacy loss distributions",
        _ => "ε is by Rényi accounting",
    }
}

/// What the run promises, for somebody who does not think in ε.
fn in_words(p: &PrivacyFacts) -> String {
    p.advantage.map_or(String::new(), |a| {
        format!(
            ": whoever knows all else and must say whether a record took part, at even odds, is right at most <b>{}</b> of \
             the time",
            format::share(0.5 + 0.5 * a)
        )
    })
}

/// ε by each accountant, in words.
pub(super) fn accountants(p: &PrivacyFacts) -> String {
    let rdp = format!(
        "by Rényi accounting it is {} (order {})",
        format::at_most(p.epsilon_rdp),
        format::number(p.rdp_order)
    );
    match p.epsilon_pld {
        Some(i) => format!(
            "by privacy loss distributions ε is {} (certified; the worst case is not below {}), {rdp}",
            format::at_most(i.upper),
            format::at_least(i.lower)
        ),
        None => format!("the noise is too small for privacy loss distributions; {rdp}"),
    }
}

/// A clip in words.
pub(super) fn clip_name(kind: &str) -> &str {
    match kind {
        "gelu" => "smooth (GELU)",
        other => other,
    }
}

/// How values were scaled, in words.
pub(super) fn normalised([mean, sd]: [f64; 2]) -> String {
    match mean == 0.0 && sd == 1.0 {
        true => "as they are (bytes: over 255)".to_owned(),
        false => format!("minus {}, over {}", format::setting(mean), format::setting(sd)),
    }
}
