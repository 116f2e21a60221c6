//! The page of a training run, and the parts of it that an audit's page shows too.

use crate::document::choice::{AccuracyOn, Sampling, Tracked};
use crate::document::text::{TextTraining, Unit};
use crate::document::training::{Account, Accounts, Filtered, Point, Promise, Training};
use crate::figure::Claim;
use crate::format;
use crate::redact::redacted;
use crate::render::html::chart::{self, Axis, Line, Lines, of_network};
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{
    card, facts, header, judged, list, narrow, notes, shell, split, tile, tiles, two, whose,
};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::render::networks;
use crate::verdict::{accounted, below, of_training};
use crate::words;

/// The run as one self-contained HTML page.
pub fn training_page(training: &Training) -> String {
    let t = &if training.redact { redacted(training) } else { training.clone() };
    let title = format!("{} on {}", t.network.name, t.data.files.join(", "));
    let body = header("Leakscope training run", &title, &meta(t))
        .and(whose(t.redact))
        .and(judged(&of_training(t)))
        .and(run_tiles(t))
        .and(notes(&t.notes))
        .and(progress(t))
        .and(over_training(t))
        .and(t.accounts.as_ref().map(|a| accounts(t, a)).unwrap_or_default())
        .and(t.filter.as_ref().map(dropouts).unwrap_or_default())
        .and(settings(t));
    shell(&format!("Leakscope training run: {title}"), &body)
}

fn meta(t: &Training) -> String {
    format!(
        "{} · {} · {} steps with {} {} a step",
        format::counted(t.data.records, t.unit()),
        format::counted(t.network.parameters, "parameter"),
        format::count(t.steps),
        format::setting(t.batch),
        match t.sampling {
            Sampling::Poisson => format!("{} expected in", units(t)),
            Sampling::Shuffle => format!("{} in", units(t)),
        }
    )
}

/// What a step draws, as one or more of it.
fn units(t: &Training) -> String {
    format!("{}{}", t.unit(), if t.batch == 1.0 { "" } else { "s" })
}

fn run_tiles(t: &Training) -> Html {
    let last = t.history.last();
    let mut all = Vec::new();
    match last.map(|p| (p.accuracy, p.loss)) {
        Some((Some(a), _)) => {
            let labels = last.and_then(|p| p.label_accuracy);
            let all_right = if labels.is_some() { "in all labels " } else { "" };
            all.push(tile(
                &format::share(a),
                &format!("of {} records {all_right}right", t.accuracy_on.name()),
            ));
            all.extend(labels.map(|share| tile(&format::share(share), "of their labels right")));
        }
        Some((None, loss)) => {
            let of = if t.text.is_some() { "texts" } else { "records" };
            let on = format!("mean loss of {} {of}", t.watched_name());
            let watched =
                last.and_then(|p| p.watched_loss).map(|watched| tile(&format::number(watched), &on));
            let drawn = || loss.map(|v| tile(&format::number(v), "mean loss of the last records drawn"));
            all.extend(watched.or_else(drawn));
        }
        None => {}
    }
    if let Some(h) = t.text.as_ref().and_then(|text| text.holdout.as_ref()) {
        let before = format::number(h.perplexity_before);
        all.push(tile(
            &format::number(h.perplexity),
            &format!("perplexity of held-out texts ({before} before)"),
        ));
    }
    if let Some(p) = &t.privacy {
        match &p.promise {
            Some(p) => {
                all.push(tile(&format::at_most(p.epsilon), &format!("ε at δ = {}", format::setting(p.delta))))
            }
            None => all.push(tile("no ε", words::withheld(p.withheld.as_ref()))),
        }
        all.push(tile(
            &format::setting(p.sigma),
            &format!("σ, noise over the clip C = {}", format::setting(p.clip)),
        ));
    }
    if let Some(a) = &t.accounts {
        let largest = match &a.largest {
            Some(i) => format!("{} to {}", format::at_least(i.lower), format::at_most(i.upper)),
            None => format::number(a.dfil.max),
        };
        all.push(tile(&largest, &format!("largest dFIL over the run of {}", accounted(a, t.data.records))));
    }
    tiles(all)
}

/// A curve over training.
fn line(name: &str, slot: usize, points: impl Iterator<Item = (f64, f64)>) -> Line {
    let points = points.map(|(x, y)| chart::Point { x, y, interval: None }).collect();
    Line { name: name.into(), slot, points }
}

fn progress(t: &Training) -> Html {
    let one = |name: &'static str, of: &dyn Fn(&Point) -> Option<f64>| {
        let points = t.history.iter().filter_map(|p| of(p).map(|v| (p.step as f64, v)));
        Lines {
            x: Axis { title: "step", log: false },
            y: Axis { title: name, log: false },
            lines: vec![line(name, 0, points)],
            levels: vec![],
            y_domain: None,
            described: format!("{name} against step."),
        }
        .draw()
    };
    let loss = one("mean loss of the drawn records", &|p| p.loss);
    let share = match t.accuracy_on {
        AccuracyOn::Test => "% of test records right",
        AccuracyOn::Training => "% of training records right",
    };
    let accuracy = match t.history.iter().any(|p| p.accuracy.is_some()) {
        true => one(share, &|p| p.accuracy.map(|a| 100.0 * a)),
        false => one(
            match (t.accuracy_on, &t.text) {
                (AccuracyOn::Test, None) => "mean loss of test records",
                (AccuracyOn::Training, None) => "mean loss of training records",
                (_, Some(_)) => "mean loss of held-out texts",
            },
            &|p| p.watched_loss,
        ),
    };
    if loss.is_empty() && accuracy.is_empty() {
        return Html::new();
    }
    card("progress", "Training", &[Claim::Measured], "", two(loss, accuracy))
}

/// dFIL against ε over training; empty where either was not kept.
pub(super) fn over_training(t: &Training) -> Html {
    let against = |name: &str, slot: usize, of: &dyn Fn(&Point) -> Option<f64>| {
        line(name, slot, t.history.iter().filter_map(|p| Some((p.epsilon?, of(p)?))))
    };
    let chart = Lines {
        x: Axis { title: "ε", log: false },
        y: Axis { title: "dFIL so far", log: true },
        lines: vec![
            against("nine in ten records are below", 5, &|p| p.dfil_p90),
            against("median", 0, &|p| p.dfil_median),
        ],
        levels: vec![],
        y_domain: None,
        described: "dFIL so far (median, and what nine in ten records are below) against ε.".into(),
    };
    let chart = chart.draw();
    if chart.is_empty() {
        return chart;
    }
    let lead = "Every step adds to both. ε bounds what any record could have given away, whatever its values; dFIL is \
                what the information of the records that are followed adds up to, at the parameters of each step.";
    card("over", "dFIL against ε over training", &[Claim::Measured, Claim::Bound], lead, narrow(chart))
}

fn accounts(t: &Training, a: &Accounts) -> Html {
    let lead = format!(
        "Accumulated over {} steps, whether or not a record was drawn, by the information of the noisy sum under the run’s \
         sampling: exact for an attacker who knows which other records every step drew, an upper bound for all others. The \
         numbers are those of {}.{} The published factor (Edmunds eq. 2.3) would say {} for the median record instead of {}.",
        format::count(t.steps),
        accounted(a, t.data.records),
        below(a).map(|b| format!(" {b}")).unwrap_or_default(),
        format::number(a.published_dfil.p50),
        format::number(a.dfil.p50)
    );
    let labelled = a.most.iter().any(|m| m.label.is_some());
    let row = |m: &Account| {
        let mut row = vec![Cell::name(&m.id.clone().unwrap_or_else(|| m.record.to_string()))];
        row.extend(labelled.then(|| Cell::text(m.label.as_deref().unwrap_or_default())));
        row.push(Cell::number(m.dfil.value));
        row.push(Cell::text(&networks::interval(&m.interval)));
        row.push(m.epsilon.map_or_else(|| Cell::text("not stated"), Cell::number));
        row
    };
    let rows: Vec<Vec<Cell>> = a.most.iter().map(row).collect();
    let mut heads = vec![text_column(t.unit())];
    heads.extend(labelled.then(|| text_column("label")));
    heads.extend([numbers("dFIL"), text_column("95% over all of them"), numbers("own ε")]);
    let axis = "dFIL of a record over the run";
    let chart = a.histogram.as_ref().map(|h| of_network(h, axis, None)).unwrap_or_default();
    let body = split(chart, table("sortable tall", "Records with the largest estimates", &heads, &rows));
    let unseen = match a.not_drawn {
        0 => Html::new(),
        n => fill(
            "<p class=\"lead\">{} not drawn and not followed: nothing was measured there, and what holds for all holds.</p>",
            &[&format::counted(n, "record")],
        ),
    };
    card("accounts", "What records gave away", &[Claim::Measured], lead, body.and(unseen))
}

/// Who dropped out of a filtered run, and when.
fn dropouts(f: &Filtered) -> Html {
    let [least, most] = f.budgets;
    let budget = match least < most {
        true => format!("its own budget (ε from {} to {})", format::setting(least), format::setting(most)),
        false => format!("ε = {}", format::setting(most)),
    };
    let lead = format!(
        "A record takes part until its own Rényi budget is spent, by its gradient norms at every step, and never again \
         (Feldman and Zrnic 2021): the run costs none more than {budget}. {} dropped out. Who dropped out when follows from \
         the records without noise: this page is as private as they are.",
        format::counted(f.dropped, "record")
    );
    let points = f.taking_part.iter().map(|&(step, n)| (step as f64, n as f64));
    let chart = Lines {
        x: Axis { title: "step", log: false },
        y: Axis { title: "records that take part", log: false },
        lines: vec![line("records that take part", 0, points)],
        levels: vec![],
        y_domain: None,
        described: "Records that take part against step.".into(),
    };
    let labelled = f.first.iter().any(|d| d.label.is_some());
    let rows: Vec<Vec<Cell>> = f
        .first
        .iter()
        .map(|d| {
            let mut row = vec![Cell::name(&d.id.clone().unwrap_or_else(|| d.record.to_string()))];
            row.extend(labelled.then(|| Cell::text(d.label.as_deref().unwrap_or_default())));
            row.push(Cell::text(&format::count(d.steps)));
            row
        })
        .collect();
    let mut heads = vec![text_column("record")];
    heads.extend(labelled.then(|| text_column("label")));
    heads.push(numbers("took part in steps"));
    let listed = match rows.is_empty() {
        true => Html::new(),
        false => table("sortable tall", "Records that dropped out first", &heads, &rows),
    };
    card("dropouts", "Who dropped out when", &[Claim::Measured], lead, split(chart.draw(), listed))
}

/// The settings of the run.
pub(super) fn settings(t: &Training) -> Html {
    let mut rows = vec![
        ("optimiser", format!("{}, learning rate {}", t.optimizer, format::setting(t.learning_rate))),
        ("weight decay", format::setting(t.weight_decay)),
        ("sampling", format!("{}, {} {} a step", t.sampling.name(), format::setting(t.batch), units(t))),
        ("steps", format!("{} of {}", format::count(t.steps), format::count(t.planned_steps))),
        ("seed", t.seed.to_string()),
        ("precision", t.precision.name().to_owned()),
        ("computed on", t.network.device.clone().unwrap_or_else(|| "the processor".to_owned())),
    ];
    match &t.text {
        None => rows.extend([
            ("values", normalised(t.data.normalize)),
            ("label", if t.label_secret { "part of the secret" } else { "public" }.to_owned()),
        ]),
        Some(text) => rows.extend(of_texts(text)),
    }
    if let Some(p) = &t.privacy {
        rows.push(("clipping", format!("{} at C = {}", words::clip(p.clip_kind), format::setting(p.clip))));
        rows.push(("noise", format!("σ = {} (standard deviation σC)", format::setting(p.sigma))));
    }
    if let Some(k) = &t.tracking {
        let which = match k.records {
            Tracked::Every => "every record at every step",
            Tracked::Panel if t.accounts.as_ref().is_some_and(|a| a.below.is_none()) => "a panel of records",
            Tracked::Panel => "a random panel of records at every step, others where they are drawn",
            Tracked::Drawn => "records where they are drawn",
        };
        let panel = k.panel.map(|n| format!(" ({} in the panel)", format::count(n))).unwrap_or_default();
        rows.push(("accounts", format!("{which}{panel}, {} probes", k.probes)));
    }
    if let Some(p) = t.public.as_ref().and_then(|p| p.pretraining.as_ref()) {
        rows.push(("first trained on public records", networks::pretraining(p)));
    }
    if let Some(density) = t.public.as_ref().and_then(|p| p.density) {
        rows.push(("density", networks::density(density)));
    }
    if let Some(p) = t.public.as_ref().and_then(|p| p.perturbation.as_ref()) {
        rows.push(("released", networks::perturbation(p)));
    }
    let promise = t.privacy.as_ref().and_then(|p| p.promise.as_ref());
    let statement = promise.map(|p| list([&accountants(p), &p.statement])).unwrap_or_default();
    card("settings", "How it was trained", &[], "", facts(&rows).and(statement))
}

/// What was trained on which texts.
fn of_texts(text: &TextTraining) -> Vec<(&'static str, String)> {
    let rank = text.rank.map(|r| format!(" of rank {r}")).unwrap_or_default();
    let pieces = match text.pieces > text.texts {
        true => format!(" in {} pieces", format::count(text.pieces)),
        false => String::new(),
    };
    let tokens = format::counted(text.tokens, "token");
    let mut rows = vec![
        ("trained", format!("{}{rank}", words::part(text.trained))),
        ("texts", format!("{}{pieces}, {tokens}", format::counted(text.texts, "text"))),
        (
            "clipped as one",
            match text.unit {
                Unit::Text if text.pieces > text.texts => {
                    "a text: the mean gradient of its pieces".to_owned()
                }
                Unit::Text => "a text".to_owned(),
                Unit::User => "a user: the mean gradient of all their texts".to_owned(),
            },
        ),
    ];
    if let Some(h) = &text.holdout {
        rows.push((
            "held out",
            format!(
                "{} ({} predicted): loss {} a token, {} before",
                format::counted(h.texts, "text"),
                format::counted(h.tokens, "token"),
                format::number(h.loss),
                format::number(h.loss_before)
            ),
        ));
    }
    rows
}

/// ε by each accountant, in words.
pub(crate) fn accountants(p: &Promise) -> String {
    let rdp = format!(
        "by Rényi accounting it is {} (order {})",
        format::at_most(p.epsilon_rdp),
        format::number(p.rdp_order)
    );
    let alone = if p.dropped.is_some() { "of all steps, had no record dropped out: " } else { "" };
    match p.epsilon_pld {
        Some(i) => format!(
            "{alone}by privacy loss distributions ε is {} (certified; the worst case is not below {}), {rdp}",
            format::at_most(i.upper),
            format::at_least(i.lower)
        ),
        None => format!("{alone}the noise is too small for privacy loss distributions; {rdp}"),
    }
}

/// How values were scaled, in words.
pub(super) fn normalised([mean, sd]: [f64; 2]) -> String {
    match mean == 0.0 && sd == 1.0 {
        true => "as they are (bytes: over 255)".to_owned(),
        false => format!("minus {}, over {}", format::setting(mean), format::setting(sd)),
    }
}
