//! The page of a canary: bounds and attacks on a secret that a language model was fine-tuned on.

use super::figure::{figure, figures};
use crate::document::canary::{Canary, Guesser, LimitKind, Point, Variant};
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::Html;
use crate::render::html::parts::{card, header, judged, list, shell, tile, tiles, warnings};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_canary;
use crate::words;

/// A canary as one self-contained HTML page.
pub fn canary_page(c: &Canary) -> String {
    let title = format!("“{} …”", c.prompt);
    let facts = format!(
        "{} · {} parameters · {} · seed {}",
        c.model.name,
        format::count(c.model.parameters),
        format::counted(c.trials, "game"),
        c.seed
    );
    let body = header("Leakscope text canary", &title, &facts)
        .and(judged(&of_canary(c)))
        .and(main_numbers(c))
        .and(warnings(&c.warnings))
        .and(charts(c))
        .and(points(c))
        .and(variants(c))
        .and(rests_on());
    shell(&format!("Leakscope text canary: {}", c.model.name), &body)
}

fn main_numbers(c: &Canary) -> Html {
    tiles(vec![
        tile(&format::count(c.secret.candidates), &words::canary_source(&c.secret)),
        tile(&format::share(c.secret.most_likely), words::canary_prior(c.secret.prior)),
        tile(&format::setting(c.clip), "C, the norm that gradients are clipped to"),
        tile(&format::setting(c.learning_rate), "learning rate"),
        tile(&format::count(c.prompt_tokens), "tokens before the secret"),
        tile(&format::seconds(c.seconds), "for all bounds and games"),
    ])
}

fn charts(c: &Canary) -> Html {
    match c.figures.as_slice() {
        [] => Html::new(),
        [one] => figure(one),
        all => figures("advantage", "Advantage against 2T/σ²", all),
    }
}

fn limit(p: &Point, kind: LimitKind) -> Cell {
    match p.bound(kind) {
        Some(b) => Cell::sorted(format::at_most(b.advantage.value), b.advantage.value),
        None => Cell::say("–"),
    }
}

fn played(p: &Point, attack: Guesser) -> Cell {
    match p.played(attack) {
        Some(a) => {
            let shown = format!(
                "{} ({} – {})",
                format::number(a.advantage.value),
                format::number(a.advantage.ci_low),
                format::number(a.advantage.ci_high)
            );
            Cell::sorted(shown, a.advantage.value)
        }
        None => Cell::say("–"),
    }
}

fn points(c: &Canary) -> Html {
    let heads = [
        text_column("trained"),
        numbers("steps T"),
        numbers("σ"),
        numbers("2T/σ²"),
        numbers("Fano, published"),
        numbers("around 0"),
        numbers("around the centre"),
        numbers("optimal attack"),
        numbers("rise in log-likelihood"),
    ];
    let row = |p: &Point| {
        vec![
            Cell::text(words::part(p.trained)),
            Cell::sorted(format::count(p.steps), p.steps as f64),
            Cell::number(p.sigma),
            Cell::number(p.rdp),
            limit(p, LimitKind::FanoRdp),
            limit(p, LimitKind::AroundZero),
            limit(p, LimitKind::AroundCentre),
            played(p, Guesser::Optimal),
            played(p, Guesser::Difference),
        ]
    };
    let rows: Vec<Vec<Cell>> = c.points.iter().map(row).collect();
    let lead = "Advantage, (success − p*)/(1 − p*): bounds for every attacker first, then what attacks achieved with 95% \
                intervals. All bounds hold at once, so the smallest counts.";
    let body = table("sortable filterable tall stack even", "Bounds and attacks", &heads, &rows);
    card("points", "Every noise and number of steps", &[Claim::Bound, Claim::Observed], lead, body)
}

fn variants(c: &Canary) -> Html {
    let heads = [
        text_column("trained"),
        numbers("parameters"),
        numbers("norm, least"),
        numbers("norm, most"),
        numbers("clipped"),
        numbers("from the centre, at most"),
        numbers("at later steps, at most"),
    ];
    let maybe = |x: Option<f64>, shown: fn(f64) -> String| match x {
        Some(x) => Cell::sorted(shown(x), x),
        None => Cell::say("–"),
    };
    let row = |v: &Variant| {
        vec![
            Cell::text(words::part(v.trained)),
            Cell::sorted(format::count(v.parameters), v.parameters as f64),
            maybe(v.norm_min, format::number),
            maybe(v.norm_max, format::number),
            maybe(v.clipped, format::share),
            maybe(v.distance, format::at_most),
            Cell::sorted(format::at_most(v.radius), v.radius),
        ]
    };
    let rows: Vec<Vec<Cell>> = c.variants.iter().map(row).collect();
    let lead = "The gradient of the whole text with each candidate in place, before fine-tuning. What can be told of the \
                secret is how far these lie from one another, in units of the noise, not how long they are.";
    let body = table("wrap stack even", "Gradients", &heads, &rows);
    card("gradients", "The candidates", &[Claim::Measured], lead, body)
}

fn rests_on() -> Html {
    let mut items: Vec<String> = vec![
        "The game: the secret is drawn from the prior, the model takes T steps of DP-SGD on this one text, and the attacker, \
         who knows all else, names the secret once (Guo, Sablayrolles, Sanjabi 2022, §6.3)."
            .into(),
        "Fano, published: Rényi divergences of two candidates, 2αT/σ² at order α, in Fano’s inequality.".into(),
        "Around 0: what a step releases is at most C away from what it would release without the text, so no event is \
         likelier than Φ(Φ⁻¹(q) + √T/σ), q its probability then; over all candidates these add up to one."
            .into(),
        "Around the centre: the same against the candidates’ mean, from which they are less far. At the first step the \
         distances are those of the model; at later steps none is above the largest possible, whatever came before."
            .into(),
        "Optimal attack: the likeliest candidate given what every step released; its success is the mean of its own \
         certainty. Rise in log-likelihood: sees the model before and after alone (the attack of the paper)."
            .into(),
    ];
    for kind in [LimitKind::FanoRdp, LimitKind::AroundZero] {
        for assumption in kind.theorem().assumptions() {
            let line = format::sentence(assumption);
            if !items.contains(&line) {
                items.push(line);
            }
        }
    }
    card("rests", "What this rests on", &[], "", list(&items))
}
