//! The one histogram: bars over an axis, stacked by series, with a line of other counts where there is one.

use super::series::{Shown, hatching};
use crate::format;
use crate::render::html::follow::{Axis, TextPiece, piece};
use crate::render::html::markup::{Html, fill};
use crate::render::html::svg::{Frame, Scale, bar, drawing_that, nice_end, note_of};

/// The vertical axis goes at least this far, so that its ticks are whole records.
const FEWEST: f64 = 5.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 266.0;
const HEIGHT: f64 = 320.0;

/// What a histogram shows.
pub(crate) struct Bars<'a> {
    /// Ends of the bars, ascending, one more than bars; two equal ends are one value alone.
    pub(crate) edges: Vec<f64>,
    /// Whether the axis is logarithmic.
    pub(crate) log: bool,
    /// What is counted, on the horizontal axis.
    pub(crate) axis: &'a str,
    /// Short name of it in hover texts.
    pub(crate) symbol: &'a str,
    /// One kind of bar each, stacked; counts by bar.
    pub(crate) series: &'a [Shown],
    /// Counts to compare with, drawn as a line; then all are shares, and the bars are of points outside.
    pub(crate) line: Option<Vec<u64>>,
    /// Whether the last bar also holds what lies beyond it, and how many that are.
    pub(crate) beyond: Option<u64>,
    /// A value to mark and what it says.
    pub(crate) mark: Option<(f64, &'a str)>,
    /// Whether what is counted is η, which follows the noise.
    pub(crate) follows: bool,
    /// The drawing in words.
    pub(crate) described: Vec<TextPiece>,
}

impl Bars<'_> {
    /// The drawing; nothing where there is no bar.
    pub(crate) fn draw(&self) -> Html {
        let (Some(&low), Some(&high)) = (self.edges.first(), self.edges.last()) else { return Html::new() };
        let x = match self.log {
            true => Scale::log([low, high], Frame::ACROSS),
            false => Scale::linear([low, high], Frame::ACROSS),
        };
        let tallest = (0..self.count()).map(|i| self.height(i)).fold(0.0, f64::max);
        let line: Option<Vec<f64>> = self.line.as_ref().map(|counts| shares(counts));
        let tallest = line.iter().flatten().copied().fold(tallest, f64::max);
        let y = Scale::linear([0.0, nice_end(tallest.max(FEWEST), 5)], [BOTTOM, TOP]);
        let frame = Frame { x, y, top: TOP, bottom: BOTTOM };
        let mut body = frame.vertical(if line.is_some() { "% of points" } else { "records" });
        body.push(self.bars(&frame));
        body.push(line.map(|line| self.outline(&frame, &line)).unwrap_or_default());
        let axis = if self.follows { Axis::Eta } else { Axis::Stands };
        body.push(frame.horizontal_that(self.axis, axis));
        if let (true, Some((value, text))) = (high > low, self.mark) {
            body.push(frame.mark(value, text));
        }
        if let Some(beyond) = self.beyond.filter(|b| *b > 0) {
            let above = (y.at(self.height(self.count().saturating_sub(1))) - 8.0).max(TOP + 34.0);
            let text = match self.follows {
                true => fill(
                    "{} above <tspan data-w=\"eta\" data-x=\"{}\">{}</tspan> →",
                    &[&format::count(beyond), &format!("{high:e}"), &format::number(high)],
                ),
                false => Html::text(&format!("{} above {} →", format::count(beyond), format::number(high))),
            };
            body.push(note_of([Frame::ACROSS[1], above], "end", text));
        }
        drawing_that(HEIGHT, &self.described, &frame, &body)
    }

    fn count(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }

    fn total(&self, i: usize) -> u64 {
        self.series.iter().filter_map(|s| s.counts.get(i)).sum()
    }

    /// How high the bars of a place reach: records, or percent of all points.
    fn height(&self, i: usize) -> f64 {
        self.scaled(self.total(i))
    }

    fn scaled(&self, n: u64) -> f64 {
        match self.line {
            Some(_) => 100.0 * n as f64 / self.series.iter().map(Shown::total).sum::<u64>().max(1) as f64,
            None => n as f64,
        }
    }

    fn is_range(&self) -> bool {
        self.edges.last() > self.edges.first()
    }

    /// Left end and width of a bar; one value alone gets a bar of its own.
    fn place(&self, x: &Scale, i: usize) -> (f64, f64) {
        if !self.is_range() {
            return ((x.at(self.edges[0]) - 14.0).max(Frame::ACROSS[0]), 28.0);
        }
        let (a, b) = (x.at(self.edges[i]), x.at(self.edges[i + 1]));
        let gap = if b - a > 4.0 { 1.0 } else { 0.0 };
        (a, (b - a - gap).max(0.5))
    }

    /// What a bar holds, in words; the last one also holds what lies beyond.
    fn interval(&self, i: usize) -> Vec<TextPiece> {
        let symbol = self.symbol;
        let edge = |x: f64| if self.follows { TextPiece::Eta(x) } else { piece(format::number(x)) };
        if !self.is_range() {
            return vec![piece(format!("{symbol} = ")), edge(self.edges[0])];
        }
        let from = [piece(format!("{symbol} ")), edge(self.edges[i])];
        let to = match self.beyond.is_some_and(|n| n > 0) && i + 1 == self.count() {
            true => vec![piece(" and above")],
            false => vec![piece(" to "), edge(self.edges[i + 1])],
        };
        from.into_iter().chain(to).collect()
    }

    fn text(&self, s: &Shown, i: usize, n: u64) -> Vec<TextPiece> {
        let how_many = match self.line {
            Some(_) => format!("{} of the points, ", format::share(self.scaled(n) / 100.0)),
            None => {
                let total = self.total(i);
                let who = if self.series.len() > 1 { format!("{}: ", s.name) } else { String::new() };
                let of = if total > n { format!(" of {}", format::count(total)) } else { String::new() };
                format!("{who}{}{of}, ", format::counted(n, "record"))
            }
        };
        std::iter::once(piece(how_many)).chain(self.interval(i)).collect()
    }

    fn bars(&self, frame: &Frame) -> Html {
        let mut body = Html::new();
        let mut outlines = vec![String::new(); self.series.len()];
        for i in 0..self.count() {
            let (left, width) = self.place(&frame.x, i);
            let mut below = 0;
            for (s, outline) in self.series.iter().zip(&mut outlines) {
                let n = s.counts.get(i).copied().unwrap_or(0);
                if n == 0 {
                    continue;
                }
                let (y1, y0) = (frame.y.at(self.scaled(below + n)), frame.y.at(self.scaled(below)));
                // A single record among thousands must still be seen.
                let tall = (y0 - y1).max(if below == 0 { 1.5 } else { 0.5 });
                let last = self.beyond.is_some() && i + 1 == self.count();
                let holds = [self.edges[i], if last { f64::INFINITY } else { self.edges[i + 1] }];
                body.push(bar(s.slot, [left, y0 - tall, width, tall], holds, &self.text(s, i, n)));
                outline.push_str(&format!("M{left:.1} {:.1}h{width:.1}v{tall:.1}h-{width:.1}z", y0 - tall));
                below += n;
            }
        }
        body.and(self.series.iter().zip(&outlines).map(|(s, bars)| hatching(s.slot, bars)).collect())
    }

    fn outline(&self, frame: &Frame, line: &[f64]) -> Html {
        let mut d = format!("M{:.1} {BOTTOM}", self.place(&frame.x, 0).0);
        for (i, &v) in line.iter().enumerate().take(self.count()) {
            let (left, width) = self.place(&frame.x, i);
            d.push_str(&format!("V{:.1}H{:.1}", frame.y.at(v), left + width));
        }
        fill(r#"<path class="line c0line" d="{}"/>"#, &[&format!("{d}V{BOTTOM}")])
    }
}

fn shares(counts: &[u64]) -> Vec<f64> {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    counts.iter().map(|&c| 100.0 * c as f64 / total).collect()
}
