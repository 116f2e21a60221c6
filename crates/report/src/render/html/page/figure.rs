//! A figure of any document as a card.

use crate::figure::{Claim, Figure, Series};
use crate::format;
use crate::render::html::chart::{self, Line, Lines, Point};
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, narrow};

/// Most curves that can be told apart.
const MOST: usize = 8;

/// The figure as a card of its own.
pub(crate) fn figure(f: &Figure) -> Html {
    card(&f.id, &f.title, &claims(f), f.caption.as_str(), narrow(drawing(f)))
}

/// Several figures side by side in one card.
pub(super) fn figures(id: &str, heading: &str, all: &[Figure]) -> Html {
    let mut present: Vec<Claim> = vec![];
    for claim in all.iter().flat_map(claims) {
        if !present.contains(&claim) {
            present.push(claim);
        }
    }
    let each: Html = all
        .iter()
        .map(|f| {
            let drawing = drawing(f);
            fill("<div><h3>{}</h3>{}<p class=\"say\">{}</p></div>", &[&f.title, &drawing, &f.caption])
        })
        .collect();
    card(id, heading, &present, "", fill("<div class=\"two\">{}</div>", &[&each]))
}

/// The kinds of claim that a figure makes.
pub(super) fn claims(f: &Figure) -> Vec<Claim> {
    let has = |claim: &Claim| f.series.iter().any(|s| s.claim == *claim);
    [Claim::Measured, Claim::Bound, Claim::Observed].into_iter().filter(has).collect()
}

/// The drawing alone, with its legend.
pub(super) fn drawing(f: &Figure) -> Html {
    let line = |(slot, s): (usize, &Series)| {
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
    let names: Vec<&str> = f.series.iter().map(|s| s.name.as_str()).collect();
    let lines = Lines {
        x: chart::Axis { title: &f.x.title, log: f.x.log },
        y: chart::Axis { title: &f.y.title, log: f.y.log },
        lines: f.series.iter().take(MOST).enumerate().map(line).collect(),
        levels: f.levels.iter().map(|l| (l.value, l.name.clone())).collect(),
        y_domain: f.y.ends,
        described: format!("{} against {}: {}.", f.y.title, f.x.title, names.join(", ")),
    };
    lines.draw_marked(f.chosen.map(|x| (x, format!("chosen: {}", format::setting(x)))))
}
