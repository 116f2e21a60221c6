//! Curves with their confidence bands, on linear or logarithmic axes.

use super::series::legend;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::svg::{Frame, Scale, dot, drawing, note};

const TOP: f64 = 38.0;
const BOTTOM: f64 = 268.0;
const HEIGHT: f64 = 322.0;

/// A point with its interval, if it has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

/// One curve.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Its colour.
    pub(crate) slot: usize,
    pub(crate) points: Vec<Point>,
}

/// Title of an axis and whether it is logarithmic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis<'a> {
    pub(crate) title: &'a str,
    pub(crate) log: bool,
}

/// Curves over one pair of axes.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    pub(crate) x: Axis<'a>,
    pub(crate) y: Axis<'a>,
    pub(crate) lines: Vec<Line>,
    /// Dotted levels with their names.
    pub(crate) levels: Vec<(f64, String)>,
    /// Fixed ends of the vertical axis, where it has natural ones.
    pub(crate) y_domain: Option<[f64; 2]>,
    pub(crate) described: String,
}

impl Lines<'_> {
    /// The drawing with its legend; nothing where no point can be drawn.
    pub(crate) fn draw(&self) -> Html {
        self.draw_marked(None)
    }

    /// The same with a vertical line at a chosen value and what it says.
    pub(crate) fn draw_marked(&self, mark: Option<(f64, String)>) -> Html {
        let drawn = self.drawing(mark);
        if drawn.is_empty() {
            return drawn;
        }
        legend(self.lines.iter().map(|l| (l.slot, l.name.as_str()))).and(drawn)
    }

    /// The drawing alone.
    pub(crate) fn drawing(&self, mark: Option<(f64, String)>) -> Html {
        if self.points().next().is_none() {
            return Html::new();
        }
        let frame = self.frame(mark.as_ref().map(|m| m.0));
        let mut body = frame.vertical(self.y.title).and(frame.horizontal(self.x.title));
        for (value, name) in &self.levels {
            body.push(frame.level(*value));
            body.push(self.level_name(&frame, *value, name));
        }
        let usable = |l: &Line| l.points.iter().filter(|p| self.usable(p)).copied().collect::<Vec<Point>>();
        body.push(self.lines.iter().map(|l| band(&frame, l.slot, &usable(l))).collect());
        body.push(self.lines.iter().map(|l| curve(&frame, l, &usable(l))).collect());
        if let Some((x, text)) = &mark {
            body.push(frame.mark(*x, text));
        }
        drawing(HEIGHT, &self.described, &body)
    }

    fn usable(&self, p: &Point) -> bool {
        p.x.is_finite() && p.y.is_finite() && (!self.x.log || p.x > 0.0) && (!self.y.log || p.y > 0.0)
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|l| &l.points).filter(|p| self.usable(p))
    }

    fn frame(&self, chosen: Option<f64>) -> Frame {
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], v| [a.min(v), b.max(v)])
        };
        let chosen = chosen.into_iter().filter(|x| x.is_finite() && (!self.x.log || *x > 0.0));
        let xs = ends(&mut self.points().map(|p| p.x).chain(chosen));
        let levels = self.levels.iter().map(|l| l.0).filter(|v| v.is_finite() && (!self.y.log || *v > 0.0));
        let within = self
            .points()
            .flat_map(|p| [p.interval.map_or(p.y, |i| i.0), p.y, p.interval.map_or(p.y, |i| i.1)]);
        let ys = ends(&mut within.filter(|v| !self.y.log || *v > 0.0).chain(levels));
        let scale = |axis: Axis<'_>, domain: [f64; 2], range: [f64; 2]| match axis.log {
            true => Scale::log(domain, range),
            false => Scale::linear(domain, range),
        };
        let pad = if self.y.log { 0.0 } else { 0.06 * (ys[1] - ys[0]) };
        let y_domain = self.y_domain.unwrap_or([ys[0] - pad, ys[1] + pad]);
        Frame {
            x: scale(self.x, xs, Frame::ACROSS),
            y: scale(self.y, y_domain, [BOTTOM, TOP]),
            top: TOP,
            bottom: BOTTOM,
        }
    }

    /// The name of a level: at the end, and on the side of its line, where the fewest points are in its way.
    fn level_name(&self, frame: &Frame, value: f64, name: &str) -> Html {
        let ([left, right], y) = (Frame::ACROSS, frame.y.at(value));
        let middle = (left + right) / 2.0;
        let crossed = |end: bool, above: bool| {
            let near = |p: &&Point| {
                let (px, dy) = (frame.x.at(p.x), frame.y.at(p.y) - y);
                (px > middle) == end
                    && if above { (-24.0..4.0).contains(&dy) } else { (-4.0..24.0).contains(&dy) }
            };
            self.points().filter(near).count()
        };
        let places = [(true, true), (true, false), (false, true), (false, false)];
        let room = |above: bool| above || y + 20.0 < BOTTOM;
        let best = places.into_iter().filter(|p| room(p.1)).min_by_key(|&(end, above)| crossed(end, above));
        let (end, above) = best.unwrap_or((true, true));
        let (x, anchor) = if end { (right - 4.0, "end") } else { (left + 8.0, "start") };
        note([x, if above { y - 6.0 } else { y + 16.0 }], anchor, name)
    }
}

fn curve(frame: &Frame, line: &Line, points: &[Point]) -> Html {
    let (slot, mut d, mut dots) = (line.slot, String::new(), Html::new());
    for (k, p) in points.iter().enumerate() {
        let (x, y) = (frame.x.at(p.x), frame.y.at(p.y));
        d.push_str(&format!("{}{x:.1} {y:.1}", if k == 0 { "M" } else { "L" }));
        let interval = p
            .interval
            .map_or_else(String::new, |(a, b)| format!(" ({} to {})", format::number(a), format::number(b)));
        let text = format!("{}: {}{interval} at {}", line.name, format::number(p.y), format::setting(p.x));
        dots.push(dot(slot, [x, y], "3.2", &text));
    }
    // Colour is never the only difference: every second curve is dashed.
    let path = match slot % 2 {
        1 => fill(r#"<path class="line c{}line" stroke-dasharray="7 3" d="{}"/>"#, &[&slot, &d]),
        _ => fill(r#"<path class="line c{}line" d="{}"/>"#, &[&slot, &d]),
    };
    path.and(dots)
}

/// The intervals as one shape behind the curve.
fn band(frame: &Frame, slot: usize, points: &[Point]) -> Html {
    let with: Vec<(f64, f64, f64)> =
        points.iter().filter_map(|p| p.interval.map(|(a, b)| (frame.x.at(p.x), a, b))).collect();
    if with.len() < 2 {
        return Html::new();
    }
    let at = |(x, v): (f64, f64)| format!("{x:.1} {:.1}", frame.y.at(v));
    let upper: Vec<String> = with.iter().map(|&(x, _, b)| at((x, b))).collect();
    let lower: Vec<String> = with.iter().rev().map(|&(x, a, _)| at((x, a))).collect();
    let shape = format!("M{}L{}Z", upper.join("L"), lower.join("L"));
    fill(r#"<path class="c{}" opacity=".22" d="{}"/>"#, &[&slot, &shape])
}
