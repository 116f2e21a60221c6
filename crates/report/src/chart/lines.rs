//! Curves with their confidence bands, on linear or logarithmic axes.

use super::series::swatch;
use crate::format;
use crate::html::escape;
use crate::svg::{Frame, Scale, drawing, hover};

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
    pub(crate) fn draw(&self) -> String {
        self.draw_marked(None)
    }

    /// The same with a vertical line at a chosen value and what it says.
    pub(crate) fn draw_marked(&self, mark: Option<(f64, String)>) -> String {
        let usable = |p: &&Point| {
            p.x.is_finite() && p.y.is_finite() && (!self.x.log || p.x > 0.0) && (!self.y.log || p.y > 0.0)
        };
        let points = || self.lines.iter().flat_map(|l| l.points.iter()).filter(usable);
        if points().next().is_none() {
            return String::new();
        }
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], v| [a.min(v), b.max(v)])
        };
        let chosen = mark.iter().map(|m| m.0).filter(|x| x.is_finite() && (!self.x.log || *x > 0.0));
        let xs = ends(&mut points().map(|p| p.x).chain(chosen));
        let levels = self.levels.iter().map(|l| l.0).filter(|v| v.is_finite() && (!self.y.log || *v > 0.0));
        let within =
            points().flat_map(|p| [p.interval.map_or(p.y, |i| i.0), p.y, p.interval.map_or(p.y, |i| i.1)]);
        let ys = ends(&mut within.filter(|v| !self.y.log || *v > 0.0).chain(levels));
        let scale = |axis: Axis<'_>, domain: [f64; 2], range: [f64; 2]| match axis.log {
            true => Scale::log(domain, range),
            false => Scale::linear(domain, range),
        };
        let pad = if self.y.log { 0.0 } else { 0.06 * (ys[1] - ys[0]) };
        let y_domain = self.y_domain.unwrap_or([ys[0] - pad, ys[1] + pad]);
        let frame = Frame {
            x: scale(self.x, xs, Frame::ACROSS),
            y: scale(self.y, y_domain, [BOTTOM, TOP]),
            top: TOP,
            bottom: BOTTOM,
        };
        let mut body = frame.vertical(self.y.title);
        body.push_str(&frame.horizontal(self.x.title));
        for (value, name) in &self.levels {
            let ([left, right], y) = (Frame::ACROSS, frame.y.at(*value));
            let middle = (left + right) / 2.0;
            // The name goes to the end, and the side of the line, where the fewest points are in its way.
            let crossed = |end: bool, above: bool| {
                let near = |p: &&Point| {
                    let (px, dy) = (frame.x.at(p.x), frame.y.at(p.y) - y);
                    (px > middle) == end
                        && if above { (-24.0..4.0).contains(&dy) } else { (-4.0..24.0).contains(&dy) }
                };
                points().filter(near).count()
            };
            let places = [(true, true), (true, false), (false, true), (false, false)];
            let room = |above: bool| above || y + 20.0 < BOTTOM;
            let best =
                places.into_iter().filter(|p| room(p.1)).min_by_key(|&(end, above)| crossed(end, above));
            let (end, above) = best.unwrap_or((true, true));
            let (x, anchor) = if end { (right - 4.0, "end") } else { (left + 8.0, "start") };
            body.push_str(&format!(
                r#"<line class="base" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/><text class="note dim" x="{x:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
                if above { y - 6.0 } else { y + 16.0 },
                escape(name)
            ));
        }
        for line in &self.lines {
            let points: Vec<Point> = line.points.iter().filter(usable).copied().collect();
            body.push_str(&band(&frame, line.slot, &points));
        }
        for line in &self.lines {
            let points: Vec<Point> = line.points.iter().filter(usable).copied().collect();
            body.push_str(&self.curve(&frame, line, &points));
        }
        if let Some((x, note)) = &mark {
            body.push_str(&frame.mark(*x, note));
        }
        format!("{}{}", self.legend(), drawing(HEIGHT, &self.described, &body))
    }

    fn curve(&self, frame: &Frame, line: &Line, points: &[Point]) -> String {
        let (slot, mut d, mut dots) = (line.slot, String::new(), String::new());
        // Colour is never the only difference: every second curve is dashed.
        let dash = if slot % 2 == 1 { r#" stroke-dasharray="7 3""# } else { "" };
        for (k, p) in points.iter().enumerate() {
            let (x, y) = (frame.x.at(p.x), frame.y.at(p.y));
            d.push_str(&format!("{}{x:.1} {y:.1}", if k == 0 { "M" } else { "L" }));
            let interval = p.interval.map_or_else(String::new, |(a, b)| {
                format!(" ({} to {})", format::number(a), format::number(b))
            });
            let text =
                format!("{}: {}{interval} at {}", line.name, format::number(p.y), format::setting(p.x));
            dots.push_str(&format!(
                r#"<circle class="dot c{slot}" cx="{x:.1}" cy="{y:.1}" r="3.2">{}</circle>"#,
                hover(&text)
            ));
        }
        format!(r#"<path class="line c{slot}line"{dash} d="{d}"/>{dots}"#)
    }

    fn legend(&self) -> String {
        if self.lines.len() < 2 {
            return String::new();
        }
        let each: String = self
            .lines
            .iter()
            .map(|l| format!("<span>{}{}</span>", swatch(l.slot), escape(&l.name)))
            .collect();
        format!("<p class=\"legend\">{each}</p>\n")
    }
}

/// The intervals as one shape behind the curve.
fn band(frame: &Frame, slot: usize, points: &[Point]) -> String {
    let with: Vec<(f64, f64, f64)> =
        points.iter().filter_map(|p| p.interval.map(|(a, b)| (frame.x.at(p.x), a, b))).collect();
    if with.len() < 2 {
        return String::new();
    }
    let at = |(x, v): (f64, f64)| format!("{x:.1} {:.1}", frame.y.at(v));
    let upper: Vec<String> = with.iter().map(|&(x, _, b)| at((x, b))).collect();
    let lower: Vec<String> = with.iter().rev().map(|&(x, a, _)| at((x, a))).collect();
    format!(r#"<path class="c{slot}" opacity=".22" d="M{}L{}Z"/>"#, upper.join("L"), lower.join("L"))
}
