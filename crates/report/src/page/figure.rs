//! A figure of any document as a card.

use crate::chart::{self, Line, Lines, Point};
use crate::figure::{Claim, Figure};
use crate::format;
use crate::html::{Kind, card, escape};

/// Most curves that can be told apart.
const MOST: usize = 8;

/// The figure as a card of its own.
pub(super) fn figure(f: &Figure) -> String {
    let body = format!("<div class=\"narrow\">{}</div>", drawn(f));
    card(&escape(&f.id), &escape(&f.title), &kinds(f), &escape(&f.caption), &body)
}

/// Several figures side by side in one card.
pub(super) fn figures(id: &str, heading: &str, lead: &str, all: &[&Figure]) -> String {
    let mut present: Vec<Kind> = vec![];
    for kind in all.iter().flat_map(|f| kinds(f)) {
        if !present.contains(&kind) {
            present.push(kind);
        }
    }
    let each: String = all
        .iter()
        .map(|f| {
            format!(
                "<div><h3>{}</h3>{}<p class=\"say\">{}</p></div>",
                escape(&f.title),
                drawn(f),
                escape(&f.caption)
            )
        })
        .collect();
    card(id, heading, &present, lead, &format!("<div class=\"two\">{each}</div>"))
}

/// The kinds of claim that a figure makes.
pub(super) fn kinds(f: &Figure) -> Vec<Kind> {
    let has = |claim: Claim| f.series.iter().any(|s| s.claim == claim);
    [(Claim::Measured, Kind::Measured), (Claim::Bound, Kind::Bound), (Claim::Observed, Kind::Observed)]
        .into_iter()
        .filter(|(claim, _)| has(*claim))
        .map(|(_, kind)| kind)
        .collect()
}

/// The drawing alone, with its legend.
pub(super) fn drawn(f: &Figure) -> String {
    let line = |(slot, s): (usize, &crate::figure::Series)| {
        let points = s
            .points
            .iter()
            .map(|p| Point { x: p.x, y: p.y, interval: p.interval.map(|[a, b]| (a, b)) })
            .collect();
        let name = match s.claim {
            Claim::Observed => format!("{} (observed)", s.name),
            Claim::Bound | Claim::Measured => s.name.clone(),
        };
        Line { name, slot, points }
    };
    let described = format!(
        "{} against {}: {}.",
        f.y.title,
        f.x.title,
        f.series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    let lines = Lines {
        x: chart::Axis { title: &f.x.title, log: f.x.log },
        y: chart::Axis { title: &f.y.title, log: f.y.log },
        lines: f.series.iter().take(MOST).enumerate().map(line).collect(),
        levels: f.levels.iter().map(|l| (l.value, l.name.clone())).collect(),
        y_domain: f.y.ends,
        described,
    };
    lines.draw_marked(f.chosen.map(|x| (x, format!("chosen: {}", format::setting(x)))))
}
