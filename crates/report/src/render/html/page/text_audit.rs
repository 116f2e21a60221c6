//! The page of texts: who leaks, and which words.

use crate::document::choice::Signal;
use crate::document::net::TraceKind;
use crate::document::text_audit::{Record, TextAudit, Texts};
use crate::figure::Claim;
use crate::format;
use crate::redact::redacted;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, header, judged, list, notes, shell, tile, tiles, warnings, whose};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_text_audit;
use crate::words;

/// Rows of the table on the page; the file beside it has all.
const ROWS: usize = 200;

/// An audit of texts as one self-contained HTML page. `texts` are the texts themselves: leave them empty for a page without
/// raw values.
pub fn text_audit_page(a: &TextAudit, texts: &Texts) -> String {
    match a.redact {
        true => draw(&redacted(a), &Texts::new()),
        false => draw(a, texts),
    }
}

fn draw(a: &TextAudit, texts: &Texts) -> String {
    let title = format!("{} on {}", a.model.name, a.files.join(", "));
    let facts = format!(
        "{} · {} parameters, {} trained ({}) · seed {} · in {}",
        format::counted(a.records.len() as u64, "text"),
        format::count(a.model.parameters),
        format::count(a.trained_parameters),
        words::part(a.trained),
        a.seed,
        a.precision.name()
    );
    let mut own = vec![];
    if !texts.is_empty() {
        own.push("This page shows training texts: it is as private as they are.".to_owned());
    }
    let body = header("Leakscope audit of texts", &title, &facts)
        .and(whose(a.redact))
        .and(judged(&of_text_audit(a)))
        .and(main_numbers(a))
        .and(warnings(&a.warnings))
        .and(notes(&own))
        .and(heat_maps(a, texts))
        .and(exposures(a))
        .and(records(a))
        .and(rests_on(a));
    shell(&format!("Leakscope audit: {title}"), &body)
}

fn main_numbers(a: &TextAudit) -> Html {
    let r = &a.release;
    let clip = r.clip.map_or("nothing is clipped".to_owned(), |c| {
        format!("{} clip at {}", words::clip(r.clip_kind), format::setting(c))
    });
    let median = |name: &str, s: &leakscope_core::num::Summary| {
        tile(&format::number(s.p50), &format!("median {name}; largest {}", format::number(s.max)))
    };
    let all = [
        Some(median("loss of a text", &a.loss)),
        Some(median("norm of its gradient", &a.gradient_norm)),
        a.dfil.as_ref().map(|s| median("dFIL over embedded values", s)),
        a.eta.as_ref().map(|s| median("η over embedded values", s)),
        Some(tile(&format::setting(r.sigma), &format!("σ, noise; {clip}"))),
        Some(tile(&format::seconds(a.seconds), "for all texts")),
    ];
    tiles(all.into_iter().flatten().collect())
}

/// A text with every token on the colour of its PLIS.
fn heated(r: &Record, pieces: &[String]) -> Html {
    let most = r.plis_tokens.iter().copied().fold(0.0, f64::max);
    pieces
        .iter()
        .enumerate()
        .map(|(i, piece)| {
            let shown = piece.replace('\n', "⏎");
            match r.plis_tokens.get(i) {
                Some(plis) => {
                    let share = if most > 0.0 { (plis / most).clamp(0.0, 1.0) } else { 0.0 };
                    fill(
                        "<span title=\"{}\" style=\"background:rgba(214,96,60,{});border-radius:3px\">{}</span>",
                        &[&format!("PLIS {}", format::number(*plis)), &format!("{:.3}", 0.65 * share), &shown],
                    )
                }
                None => fill("<span title=\"predicted, not read\"><i>{}</i></span>", &[&shown]),
            }
        })
        .collect()
}

fn heat_maps(a: &TextAudit, texts: &Texts) -> Html {
    let drawn: Html = a
        .most_exposed()
        .into_iter()
        .filter_map(|i| {
            let (r, pieces) = (&a.records[i], texts.get(&i)?);
            let dfil = r.dfil.map(|d| format!(", dFIL {}", format::number(d))).unwrap_or_default();
            let name = format!("Text {}: loss {}{dfil}", r.record, format::number(r.loss));
            Some(fill(
                "<h3>{}</h3><p style=\"line-height:1.9;white-space:pre-wrap;overflow-wrap:anywhere\">{}</p>\n",
                &[&name, &heated(r, pieces)],
            ))
        })
        .collect();
    if texts.is_empty() {
        return Html::new();
    }
    let which = match a.plis_of {
        Signal::Released => "the released gradient",
        Signal::Raw => "the gradient before the clip",
    };
    let lead = format!(
        "The texts that leak most. A word is the darker the more its embedded value moves the norm of {which} over the noise \
         (PLIS; Mueller et al. 2022), each text on a scale of its own. The last word is predicted and not read."
    );
    card("words", "Which words", &[Claim::Measured], lead, drawn)
}

fn exposures(a: &TextAudit) -> Html {
    if a.exposures.is_empty() {
        return Html::new();
    }
    let heads = [
        text_column("secret"),
        text_column("text"),
        numbers("possibilities"),
        numbers("rank"),
        numbers("exposure, bits"),
    ];
    let rows: Vec<Vec<Cell>> = a
        .exposures
        .iter()
        .map(|e| {
            vec![
                Cell::text(&format!("secret {}", e.secret)),
                Cell::text(&e.record),
                Cell::sorted(format::count(e.candidates), e.candidates as f64),
                Cell::sorted(format::count(e.rank), e.rank as f64),
                Cell::number(e.exposure),
            ]
        })
        .collect();
    let lead = "How likely this model, as it is, holds each secret to be among all that its pattern stands for: log₂ of their \
                number less log₂ of its rank (Carlini et al. 2019). The most there can be is log₂ of the number.";
    card("exposure", "Marked secrets", &[Claim::Measured], lead, table("wrap", "Exposure", &heads, &rows))
}

fn records(a: &TextAudit) -> Html {
    let heads = [
        text_column("text"),
        numbers("tokens"),
        numbers("loss"),
        numbers("norm of the gradient"),
        numbers("dFIL"),
        numbers("η"),
        numbers("PLIS"),
    ];
    let maybe = |x: Option<f64>| x.map_or_else(|| Cell::say("–"), Cell::number);
    let rows: Vec<Vec<Cell>> = a
        .records
        .iter()
        .take(ROWS)
        .map(|r| {
            vec![
                Cell::text(&r.record),
                Cell::sorted(format::count(r.tokens), r.tokens as f64),
                Cell::number(r.loss),
                Cell::number(r.gradient_norm),
                maybe(r.dfil),
                maybe(r.eta),
                Cell::number(r.plis),
            ]
        })
        .collect();
    let how = match a.trace {
        TraceKind::Skip => "",
        TraceKind::Exact => " dFIL is exact.",
        TraceKind::Estimate { .. } => {
            " dFIL is estimated by random probes; its standard errors are in the files."
        }
    };
    let more = match a.records.len() > ROWS {
        true => format!(" The first {ROWS} of {} texts.", format::count(a.records.len() as u64)),
        false => String::new(),
    };
    let lead = format!(
        "What one noisy sum of clipped gradients tells about each text: dFIL is the mean information per embedded value, η that \
         of the worst direction.{how}{more}"
    );
    let body = table("sortable filterable tall", "Texts", &heads, &rows);
    card("records", "Every text", &[Claim::Measured], lead, body)
}

fn rests_on(a: &TextAudit) -> Html {
    let noise = format!(
        "The release is one sum of gradients with noise of standard deviation {} in every trained parameter; the attacker knows \
         the model and all other texts.",
        format::number(a.release.noise)
    );
    let items = [
        noise,
        "The loss of a text is the mean over its tokens, as libraries compute it.".into(),
        "Information is about the values that words are embedded as, which are continuous: for a secret that is one of a few \
         words, leakscope text canary says what anybody can guess."
            .into(),
    ];
    card("rests", "What this rests on", &[], "", list(&items))
}
