//! Points that were not trained on: are they like the training records?

use super::page::{MAPS, gallery, map};
use crate::document::net::{Score, ScoredBy};
use crate::figure::Claim;
use crate::figure::picture::Pictures;
use crate::format;
use crate::render::html::chart::of_network;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, narrow};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::words;

/// Whether the points are out of distribution, by the measure that tells best; only where chance does not explain it.
fn unlike(s: &Score) -> Html {
    let off = |b: &ScoredBy| (b.exceeds_training - 0.5).abs();
    let differs = |b: &ScoredBy| !(b.exceeds_interval[0]..=b.exceeds_interval[1]).contains(&0.5);
    // measures that show a difference come first
    let best = s.by.iter().max_by(|a, b| differs(a).cmp(&differs(b)).then(off(a).total_cmp(&off(b))));
    best.map_or_else(Html::new, |b| {
        let how = match off(b) {
            _ if !differs(b) => "They are not shown to differ from the training records",
            x if x >= 0.4 => "They are unlike the training records",
            x if x >= 0.1 => "They differ from the training records",
            _ => "They differ a little from the training records",
        };
        let text = format!(
            ": by the {} a point has more than a training record in {} of pairs (95% interval, {} together: {}).",
            words::measure(b.measure),
            format::share(b.exceeds_training),
            format::counted(s.by.len() as u64, "measure"),
            interval(b)
        );
        fill("<b>{}</b>{}", &[&how, &text])
    })
}

/// Where the share of pairs lies, in words.
pub(crate) fn interval(b: &ScoredBy) -> String {
    let [low, high] = b.exceeds_interval;
    format!("{} to {}", format::share(low), format::share(high))
}

/// The card.
pub(super) fn score(s: &Score, pictures: &Pictures) -> Html {
    let label =
        if s.labelled { "" } else { " They have no labels, so the network’s own answer stands in." };
    let lead = fill(
        "What {} from {} would give away, had they been trained on. {} Of points that are like the training records, 1% \
         lie above their 99th percentile, and one beats a training record half of the time. The clip hides how long a \
         gradient is, so gradient norms tell most.{}",
        &[&format::counted(s.n, "point"), &s.files.join(", "), &unlike(s), &label],
    );
    let row = |by: &ScoredBy| {
        vec![
            Cell::name(words::measure(by.measure)),
            Cell::number(by.training.p50),
            Cell::number(by.training.p99),
            Cell::number(by.points.p50),
            Cell::number(by.points.max),
            Cell::sorted(format::share(by.above_training_p99), by.above_training_p99),
            Cell::sorted(format::share(by.exceeds_training), by.exceeds_training),
            Cell::text(&interval(by)),
        ]
    };
    let heads = [
        text_column("measure"),
        numbers("training median"),
        numbers("training 99%"),
        numbers("points median"),
        numbers("points largest"),
        numbers("above that 99%"),
        numbers("beat a training record"),
        text_column("95% interval"),
    ];
    let axis = "gradient norm: points as bars, training records as a line";
    let chart = s.histogram.as_ref().map(|h| of_network(h, axis, Some(&s.counts))).unwrap_or_default();
    let rows: Vec<Vec<Cell>> = s.by.iter().map(row).collect();
    let maps: Html = s.most.iter().take(MAPS).map(|r| map(r, &pictures.scored, None)).collect();
    let maps = match maps.is_empty() {
        true => maps,
        false => fill("<h3>Where in the point: PLIS</h3><div class=\"maps\">{}</div>", &[&maps]),
    };
    let body = narrow(chart)
        .and(table("", "Points against training records", &heads, &rows))
        .and(gallery("Longest gradients", &s.most, &pictures.scored))
        .and(maps);
    card("score", "Points outside the training set", &[Claim::Measured], lead, body)
}
