//! Training runs side by side: what each is good for against what its records give away.

use crate::document::comparison::{Comparison, Kind};
use crate::figure::panel::{AxisTitle, Content, Panel, PointSeries};
use crate::render::html::chart::{Drawn, legend, panel};
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, subheading};

/// What dFIL is of, and the row that has it.
const OVER: [(&str, &str); 3] =
    [("largest", "dFIL, largest"), ("mean", "dFIL, mean"), ("median", "dFIL, median")];

/// Accuracy against the largest, mean and median dFIL of training runs; nothing where fewer than two runs have both.
pub(super) fn trade(c: &Comparison) -> Html {
    if c.kind != Kind::Training {
        return Html::new();
    }
    let row = |name: &str| c.sections.iter().flat_map(|s| &s.rows).find(|r| r.name == name);
    let Some(accuracy) = row("accuracy") else { return Html::new() };
    let mut names = Vec::new();
    let panels: Vec<Html> = OVER
        .iter()
        .filter_map(|(title, name)| {
            let dfil = row(name)?;
            let of = |i: usize| {
                let at = |values: &[Option<_>]| values.get(i).copied().flatten();
                let (x, y) = (at(&dfil.values)?, at(&accuracy.values)?);
                let point = [x.value, y.value];
                point
                    .iter()
                    .all(|v| v.is_finite())
                    .then(|| PointSeries::new(&*c.results[i].name, vec![point]))
            };
            let series: Vec<PointSeries> = (0..c.results.len()).filter_map(of).collect();
            if series.len() < 2 {
                return None;
            }
            let log = series.iter().all(|s| s.points[0][0] > 0.0);
            let x = AxisTitle { title: format!("{title} dFIL of a record"), log };
            let content =
                Content::Dots { x, y: AxisTitle::linear("accuracy"), series, line: None, notes: vec![] };
            let drawn = panel(&Panel { title: format!("accuracy against the {title} dFIL"), content });
            let Drawn { names: drawn_names, svg } = drawn;
            names = drawn_names;
            let heading = subheading(&format!("against the {title} dFIL"));
            Some(fill("<div>{}{}</div>", &[&heading, &svg]))
        })
        .collect();
    if panels.is_empty() {
        return Html::new();
    }
    let legend = legend(names.iter().map(|(slot, name)| (*slot, name.as_str())));
    let lead = "A run is better the higher and the further left it is.";
    let panels: Html = panels.into_iter().collect();
    card(
        "trade",
        "Accuracy against what records give away",
        &[],
        lead,
        legend.and(fill("<div class=\"two\">{}</div>", &[&panels])),
    )
}
