//! Histograms of η: the records stacked by class or group, and scored points against them; and those of networks.

use super::bars::Bars;
use super::series::Shown;
use crate::document::audit::{Audit, Histogram, Score};
use crate::document::net;
use crate::format;
use crate::render::html::follow::{TextPiece, piece};
use crate::render::html::markup::Html;

/// Bars beyond this many are merged with their neighbours: they would be thinner than a line.
const MOST_BARS: usize = 64;
/// With fewer records than this the 99th percentile is no more than the largest value.
const ENOUGH_FOR_P99: u64 = 100;

/// `bins` equal bins of the data as bars, some to a bar.
struct Merged {
    by: usize,
    edges: Vec<f64>,
}

impl Merged {
    fn new(h: &Histogram, bins: usize) -> Self {
        let bins = bins.max(1);
        let by = bins.div_ceil(MOST_BARS);
        let edge = |i: usize| h.low + (h.high - h.low) * (i * by).min(bins) as f64 / bins as f64;
        Self { by, edges: (0..=bins.div_ceil(by)).map(edge).collect() }
    }

    /// Counts by bar.
    fn counts(&self, counts: &[u64]) -> Vec<u64> {
        let mut all: Vec<u64> = counts.chunks(self.by).map(|c| c.iter().sum()).collect();
        all.resize(self.edges.len() - 1, 0);
        all
    }
}

fn p99<'a>(audit: &Audit, text: &'a str) -> Option<(f64, &'a str)> {
    (audit.n >= ENOUGH_FOR_P99).then_some((audit.records.eta.p99, text))
}

/// The histogram of η over records, stacked, with a line that 99% of the records are left of.
pub(crate) fn histogram(audit: &Audit, series: &[Shown]) -> Html {
    let (h, eta) = (&audit.records.histogram, &audit.records.eta);
    let merged = Merged::new(h, series.iter().map(|s| s.counts.len()).max().unwrap_or(0));
    let series: Vec<Shown> =
        series.iter().map(|s| Shown { counts: merged.counts(&s.counts), ..s.clone() }).collect();
    Bars {
        edges: merged.edges,
        log: false,
        axis: "information loss per record, η",
        symbol: "η",
        series: &series,
        line: None,
        beyond: Some(h.beyond),
        mark: p99(audit, "99% lie left of here"),
        follows: true,
        described: vec![
            piece(format!(
                "Histogram of the information loss η of {}: median ",
                format::counted(audit.n, "record")
            )),
            TextPiece::Eta(eta.p50),
            piece(", 99th percentile "),
            TextPiece::Eta(eta.p99),
            piece(", largest "),
            TextPiece::Eta(eta.max),
            piece("."),
        ],
    }
    .draw()
}

/// One kind of bar for points that were not trained on.
fn points(counts: Vec<u64>) -> [Shown; 1] {
    [Shown { name: "points".into(), slot: 1, counts, members: vec![] }]
}

/// η of scored points (bars) against that of the training records (line), both as shares.
pub(crate) fn scored(audit: &Audit, score: &Score) -> Html {
    let h = &audit.records.histogram;
    let bins = h.series.iter().map(|s| s.counts.len()).max().unwrap_or(0).max(score.counts.len());
    let merged = Merged::new(h, bins);
    let train: Vec<u64> = (0..bins).map(|i| h.series.iter().filter_map(|s| s.counts.get(i)).sum()).collect();
    Bars {
        log: false,
        axis: "information loss η",
        symbol: "η",
        series: &points(merged.counts(&score.counts)),
        line: Some(merged.counts(&train)),
        beyond: None,
        mark: p99(audit, "99% of training records"),
        follows: true,
        described: vec![piece(format!(
            "Information loss η of {} against the training records: {} of them lie above the training records' 99th \
             percentile.",
            format::counted(score.n, "scored point"),
            format::share(score.above_training_p99)
        ))],
        edges: merged.edges,
    }
    .draw()
}

/// The histogram of a network's measure, `axis` under it. With `others`, counts of points that were not trained on in the
/// same bars: these are then the bars, the histogram itself a line, both as shares.
pub(crate) fn of_network(h: &net::Histogram, axis: &str, others: Option<&[u64]>) -> Html {
    let ends = h.edges.first().zip(h.edges.last()).map_or((0.0, 0.0), |(a, b)| (*a, *b));
    let own = [Shown { name: "records".into(), slot: 0, counts: h.counts.clone(), members: vec![] }];
    let bars = others.map(|o| points(o.to_vec())).unwrap_or(own);
    Bars {
        edges: h.edges.clone(),
        log: h.logarithmic,
        axis,
        symbol: "from",
        series: &bars,
        line: others.map(|_| h.counts.clone()),
        beyond: None,
        mark: None,
        follows: false,
        described: vec![piece(format!(
            "Histogram of {axis} of {} from {} to {}.",
            format::counted(h.counts.iter().sum(), "record"),
            format::number(ends.0),
            format::number(ends.1)
        ))],
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::choice::SeriesBy;

    #[test]
    fn bars_keep_every_count_and_their_edges_whatever_the_number_of_bins() {
        let h = Histogram { low: 1.0, high: 3.0, beyond: 0, by: SeriesBy::All, series: vec![] };
        for bins in [1, 7, 64, 65, 100, 200, 1000] {
            let merged = Merged::new(&h, bins);
            assert!(merged.edges.len() <= MOST_BARS + 1, "{bins}");
            let counts: Vec<u64> = (0..bins as u64).collect();
            assert_eq!(merged.counts(&counts).iter().sum::<u64>(), counts.iter().sum::<u64>());
            assert_eq!((merged.edges[0], *merged.edges.last().unwrap()), (1.0, 3.0));
            // The second bar starts where the bins merged into the first one end.
            let first = 1.0 + 2.0 * merged.by.min(bins) as f64 / bins as f64;
            assert!((merged.edges[1] - first).abs() < 1e-12);
        }
    }
}
