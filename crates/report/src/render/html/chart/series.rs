//! The series of the charts: at most eight of them, told apart by colour and by hatching.

use crate::document::audit::{Histogram, Series};
use crate::format;
use crate::render::html::markup::{Html, fill};

/// Colours there are; the last is for what is folded together.
const SLOTS: usize = 8;

/// A series as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Its name, as in the data.
    pub(crate) name: String,
    /// Its colour.
    pub(crate) slot: usize,
    /// Counts by bin.
    pub(crate) counts: Vec<u64>,
    /// Series of the data that it stands for.
    pub(crate) members: Vec<usize>,
}

impl Shown {
    /// Records in it.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The series to draw: all of them up to eight, else the seven largest and the rest as one.
pub(crate) fn shown(histogram: &Histogram) -> Vec<Shown> {
    let series = &histogram.series;
    let single = |i: usize, slot: usize, s: &Series| Shown {
        name: s.name.clone(),
        slot,
        counts: s.counts.clone(),
        members: vec![i],
    };
    if series.len() <= SLOTS {
        return series.iter().enumerate().map(|(i, s)| single(i, i, s)).collect();
    }
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(series[i].counts.iter().sum::<u64>()), i));
    let (mut kept, rest) = (order[..SLOTS - 1].to_vec(), order[SLOTS - 1..].to_vec());
    kept.sort_unstable();
    let mut all: Vec<Shown> = kept.iter().enumerate().map(|(slot, &i)| single(i, slot, &series[i])).collect();
    let bins = series.iter().map(|s| s.counts.len()).max().unwrap_or(0);
    let counts = (0..bins).map(|b| rest.iter().filter_map(|&i| series[i].counts.get(b)).sum()).collect();
    let name = format!("other ({})", format::counted(rest.len() as u64, "group"));
    all.push(Shown { name, slot: SLOTS - 1, counts, members: rest });
    all
}

/// Lines of the hatching of a slot, in a cell of 6 × 6; even slots have none.
const HATCH: [&str; SLOTS] =
    ["", "M-1 7 7 -1M-1 1 1 -1M5 7 7 5", "", "M3 0V6", "", "M0 3H6", "", "M-1 -1 7 7M-1 5 1 7M5 -1 7 1"];

/// The hatchings, once for the page. Colour is never the only difference: they also survive a black and white printer.
pub(crate) fn patterns() -> Html {
    let each: Html = (0..SLOTS)
        .filter(|&i| is_hatched(i))
        .map(|i| {
            fill(
                "<pattern id=\"p{}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                 <path class=\"hatch\" d=\"{}\"/></pattern>",
                &[&i, &HATCH[i]],
            )
        })
        .collect();
    fill(
        "<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>{}</defs></svg>\n",
        &[&each],
    )
}

/// Whether bars of this slot carry a hatching.
fn is_hatched(slot: usize) -> bool {
    HATCH.get(slot).is_some_and(|h| !h.is_empty())
}

/// The hatching over all bars of a slot, as one shape: browsers print a pattern as a picture, one for every shape.
pub(crate) fn hatching(slot: usize, bars: &str) -> Html {
    match is_hatched(slot) && !bars.is_empty() {
        true => fill("<path class=\"hatching\" fill=\"url(#p{})\" d=\"{}\"/>", &[&slot, &bars]),
        false => Html::new(),
    }
}

/// A small square in a series' colour and hatching.
pub(crate) fn swatch(slot: usize) -> Html {
    let lines = if is_hatched(slot) { "M-1 7 7 -1M3 15 15 3M-1 13 13 -1" } else { "" };
    fill(
        "<svg class=\"swatch\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"c{}\" width=\"12\" \
         height=\"12\" rx=\"3\"/><path class=\"hatch\" d=\"{}\"/></svg>",
        &[&slot, &lines],
    )
}

/// Names beside their colours; nothing where there is one alone.
pub(crate) fn legend<'a>(names: impl ExactSizeIterator<Item = (usize, &'a str)>) -> Html {
    if names.len() < 2 {
        return Html::new();
    }
    let each: Html = names.map(|(slot, name)| fill("<span>{}{}</span>", &[&swatch(slot), &name])).collect();
    fill("<p class=\"legend\">{}</p>\n", &[&each])
}

/// Names of the series, in the order in which they are stacked.
pub(crate) fn series_legend(series: &[Shown]) -> Html {
    legend(series.iter().map(|s| (s.slot, s.name.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(k: usize) -> Histogram {
        let series = (0..k)
            .map(|i| Series { name: format!("g{i}"), mean: 1.0, counts: vec![i as u64, 2 * i as u64] })
            .collect();
        Histogram { low: 0.0, high: 1.0, beyond: 0, by: crate::document::choice::SeriesBy::Group, series }
    }

    #[test]
    fn many_series_fold_without_losing_a_record() {
        for k in [1, 8, 9, 40] {
            let h = many(k);
            let shown = shown(&h);
            assert_eq!(shown.len(), k.min(8));
            let total: u64 = h.series.iter().flat_map(|s| &s.counts).sum();
            assert_eq!(shown.iter().map(Shown::total).sum::<u64>(), total);
            let mut members: Vec<usize> = shown.iter().flat_map(|s| s.members.clone()).collect();
            members.sort_unstable();
            assert_eq!(members, (0..k).collect::<Vec<_>>());
        }
        assert_eq!(shown(&many(9))[7].name, "other (2 groups)");
    }
}
