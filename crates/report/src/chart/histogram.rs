//! Histograms of η: the records stacked by class or group, and scored points against them.

use super::series::{Shown, hatching};
use crate::audit::{Audit, Histogram, Score};
use crate::format;
use crate::svg::{Frame, Scale, drawing, hover, nice_end};

/// Bars beyond this many are merged with their neighbours: they would be thinner than a line.
const MOST_BARS: usize = 64;
/// The vertical axis goes at least this far, so that its ticks are whole records.
const FEWEST: f64 = 5.0;
/// With fewer records than this the 99th percentile is no more than the largest value.
const ENOUGH_FOR_P99: u64 = 100;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 266.0;
const HEIGHT: f64 = 320.0;

/// Where the bars stand: `bins` equal bins of the data, `by` of them to a bar (fewer in the last).
struct Bars {
    low: f64,
    high: f64,
    bins: usize,
    by: usize,
    x: Scale,
}

impl Bars {
    fn new(h: &Histogram, bins: usize) -> Self {
        let bins = bins.max(1);
        let x = Scale::linear([h.low, h.high], Frame::ACROSS);
        Self { low: h.low, high: h.high, bins, by: bins.div_ceil(MOST_BARS), x }
    }

    fn count(&self) -> usize {
        self.bins.div_ceil(self.by)
    }

    /// Counts by bar.
    fn merged(&self, counts: &[u64]) -> Vec<u64> {
        let mut all: Vec<u64> = counts.chunks(self.by).map(|c| c.iter().sum()).collect();
        all.resize(self.count(), 0);
        all
    }

    /// Lower end of bar `i`, which is the upper end of the one before.
    fn edge(&self, i: usize) -> f64 {
        self.low + (self.high - self.low) * (i * self.by).min(self.bins) as f64 / self.bins as f64
    }

    /// Whether there is a range, or one value alone.
    fn is_range(&self) -> bool {
        self.high > self.low
    }

    /// Left end and width of a bar; one value alone gets a bar of its own.
    fn place(&self, i: usize) -> (f64, f64) {
        if !self.is_range() {
            return ((self.x.at(self.low) - 14.0).max(Frame::ACROSS[0]), 28.0);
        }
        let (a, b) = (self.x.at(self.edge(i)), self.x.at(self.edge(i + 1)));
        let gap = if b - a > 4.0 { 1.0 } else { 0.0 };
        (a, (b - a - gap).max(0.5))
    }

    /// What a bar holds, in words; the last one also holds what lies beyond.
    fn interval(&self, i: usize, beyond: bool) -> String {
        if !self.is_range() {
            return format!("η = {}", format::number(self.low));
        }
        let (a, b) = (format::number(self.edge(i)), format::number(self.edge(i + 1)));
        if beyond && i + 1 == self.count() { format!("η {a} and above") } else { format!("η {a} to {b}") }
    }
}

/// A bar as part of a path.
fn outlined(x: f64, y: f64, width: f64, height: f64) -> String {
    format!("M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z")
}

/// The histogram of η over records, stacked, with a line that 99% of the records are left of.
pub(crate) fn histogram(audit: &Audit, series: &[Shown]) -> String {
    let (h, eta) = (&audit.records.histogram, &audit.records.eta);
    let bars = Bars::new(h, series.iter().map(|s| s.counts.len()).max().unwrap_or(0));
    let counts: Vec<Vec<u64>> = series.iter().map(|s| bars.merged(&s.counts)).collect();
    let totals: Vec<u64> = (0..bars.count()).map(|i| counts.iter().map(|c| c[i]).sum()).collect();
    let tallest = totals.iter().copied().max().unwrap_or(0) as f64;
    let y = Scale::linear([0.0, nice_end(tallest.max(FEWEST), 5)], [BOTTOM, TOP]);
    let frame = Frame { x: bars.x, y, top: TOP, bottom: BOTTOM };
    let mut body = frame.vertical("records");
    let mut outlines = vec![String::new(); series.len()];
    for (i, &total) in totals.iter().enumerate() {
        let (left, width) = bars.place(i);
        let mut below = 0;
        for ((s, c), outline) in series.iter().zip(&counts).zip(&mut outlines) {
            let n = c[i];
            if n == 0 {
                continue;
            }
            let (y1, y0) = (y.at((below + n) as f64), y.at(below as f64));
            // A single record among thousands must still be seen.
            let tall = (y0 - y1).max(if below == 0 { 1.5 } else { 0.5 });
            let who = if series.len() > 1 { format!("{}: ", s.name) } else { String::new() };
            let of = if total > n { format!(" of {}", format::count(total)) } else { String::new() };
            let what =
                format!("{who}{}{of}, {}", format::counted(n, "record"), bars.interval(i, h.beyond > 0));
            body.push_str(&format!(
                r#"<rect class="c{}" x="{left:.1}" y="{:.1}" width="{width:.1}" height="{tall:.1}">{}</rect>"#,
                s.slot,
                y0 - tall,
                hover(&what)
            ));
            outline.push_str(&outlined(left, y0 - tall, width, tall));
            below += n;
        }
    }
    body.extend(series.iter().zip(&outlines).map(|(s, bars)| hatching(s.slot, bars)));
    body.push_str(&frame.horizontal("information loss per record, η"));
    if bars.is_range() && audit.n >= ENOUGH_FOR_P99 {
        body.push_str(&frame.mark(eta.p99, "99% lie left of here"));
    }
    if h.beyond > 0 {
        let last = totals.last().copied().unwrap_or(0) as f64;
        body.push_str(&format!(
            r#"<text class="note" x="{:.1}" y="{:.1}" text-anchor="end">{} above {} →</text>"#,
            Frame::ACROSS[1],
            (y.at(last) - 8.0).max(TOP + 34.0),
            format::count(h.beyond),
            format::number(h.high)
        ));
    }
    let described = format!(
        "Histogram of the information loss η of {}: median {}, 99th percentile {}, largest {}.",
        format::counted(audit.n, "record"),
        format::number(eta.p50),
        format::number(eta.p99),
        format::number(eta.max)
    );
    drawing(HEIGHT, &described, &body)
}

/// η of scored points (bars) against that of the training records (line), both as shares.
pub(crate) fn scored(audit: &Audit, score: &Score) -> String {
    let (h, eta) = (&audit.records.histogram, &audit.records.eta);
    let bins = h.series.iter().map(|s| s.counts.len()).max().unwrap_or(0).max(score.counts.len());
    let bars = Bars::new(h, bins);
    let train: Vec<u64> = (0..bins).map(|i| h.series.iter().filter_map(|s| s.counts.get(i)).sum()).collect();
    let shares = |counts: &[u64]| {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        bars.merged(counts).into_iter().map(|n| n as f64 / total).collect::<Vec<f64>>()
    };
    let (train, points) = (shares(&train), shares(&score.counts));
    let tallest = train.iter().chain(&points).copied().fold(0.0, f64::max);
    let end = nice_end(if tallest > 0.0 { 100.0 * tallest } else { 1.0 }, 5);
    let y = Scale::linear([0.0, end], [BOTTOM, TOP]);
    let frame = Frame { x: bars.x, y, top: TOP, bottom: BOTTOM };
    let mut body = frame.vertical("% of points");
    let mut outlines = String::new();
    for (i, &p) in points.iter().enumerate().filter(|(_, p)| **p > 0.0) {
        let (left, width) = bars.place(i);
        let tall = (BOTTOM - y.at(100.0 * p)).max(1.5);
        let interval = bars.interval(i, score.eta.max > h.high);
        body.push_str(&format!(
            r#"<rect class="c1" x="{left:.1}" y="{:.1}" width="{width:.1}" height="{tall:.1}">{}</rect>"#,
            BOTTOM - tall,
            hover(&format!("{} of the scored points, {interval}", format::share(p)))
        ));
        outlines.push_str(&outlined(left, BOTTOM - tall, width, tall));
    }
    body.push_str(&hatching(1, &outlines));
    let mut line = format!("M{:.1} {BOTTOM}", bars.place(0).0);
    for (i, &p) in train.iter().enumerate() {
        let (left, width) = bars.place(i);
        line.push_str(&format!("V{:.1}H{:.1}", y.at(100.0 * p), left + width));
    }
    body.push_str(&format!(r#"<path class="line c0line" d="{line}V{BOTTOM}"/>"#));
    body.push_str(&frame.horizontal("information loss η"));
    if bars.is_range() && audit.n >= ENOUGH_FOR_P99 {
        body.push_str(&frame.mark(eta.p99, "99% of training records"));
    }
    let described = format!(
        "Information loss η of {} against the training records: {} of them lie above the training records' 99th percentile.",
        format::counted(score.n, "scored point"),
        format::share(score.above_training_p99)
    );
    drawing(HEIGHT, &described, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_keep_every_count_and_their_edges_whatever_the_number_of_bins() {
        let h = Histogram { low: 1.0, high: 3.0, beyond: 0, by: "all".into(), series: vec![] };
        for bins in [1, 7, 64, 65, 100, 200, 1000] {
            let bars = Bars::new(&h, bins);
            assert!(bars.count() <= MOST_BARS, "{bins}");
            let counts: Vec<u64> = (0..bins as u64).collect();
            assert_eq!(bars.merged(&counts).iter().sum::<u64>(), counts.iter().sum::<u64>());
            assert_eq!((bars.edge(0), bars.edge(bars.count())), (1.0, 3.0));
            // The second bar starts where the bins merged into the first one end.
            let first = 1.0 + 2.0 * bars.by.min(bins) as f64 / bins as f64;
            assert!((bars.edge(1) - first).abs() < 1e-12);
        }
        assert_eq!(Bars::new(&h, 2).interval(1, true), "η 2.00 and above");
        assert_eq!(Bars::new(&h, 2).interval(0, true), "η 1.00 to 2.00");
    }
}
