//! Charts of the network pages: a histogram, and lines over training.

use super::data::Histogram;
use crate::format;
use crate::svg::{Frame, Scale, drawing, hover, nice_end};

const TOP: f64 = 38.0;
const BOTTOM: f64 = 246.0;
const HEIGHT: f64 = 300.0;

/// The bars of a histogram, `axis` under them. With `points`, counts of other values in the same bars: bars are then the
/// points, a line the histogram itself, both as shares.
pub(super) fn histogram(h: &Histogram, axis: &str, points: Option<&[u64]>) -> String {
    let (Some(&low), Some(&high)) = (h.edges.first(), h.edges.last()) else { return String::new() };
    let x = match h.logarithmic {
        true => Scale::log([low, high], Frame::ACROSS),
        false => Scale::linear([low, high], Frame::ACROSS),
    };
    let share = |counts: &[u64]| {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        counts.iter().map(|&c| 100.0 * c as f64 / total).collect::<Vec<f64>>()
    };
    let plain = |counts: &[u64]| counts.iter().map(|&c| c as f64).collect::<Vec<f64>>();
    let (bars, line) = match points {
        Some(points) => (share(points), Some(share(&h.counts))),
        None => (plain(&h.counts), None),
    };
    let tallest = bars.iter().chain(line.iter().flatten()).copied().fold(0.0, f64::max);
    let y = Scale::linear([0.0, nice_end(tallest.max(5.0), 5)], [BOTTOM, TOP]);
    let frame = Frame { x, y, top: TOP, bottom: BOTTOM };
    let mut body = frame.vertical(if points.is_some() { "% of points" } else { "records" });
    let class = if points.is_some() { "c1" } else { "c0" };
    for (i, &v) in bars.iter().enumerate().filter(|(_, v)| **v > 0.0) {
        let (a, b) = (x.at(h.edges[i]), x.at(h.edges[i + 1]));
        // a single record among thousands must still be seen
        let tall = (BOTTOM - y.at(v)).max(1.5);
        let what = match points {
            Some(_) => format!("{} of the points", format::share(v / 100.0)),
            None => format::counted(v as u64, "record"),
        };
        let interval =
            format!("{what}, {} to {}", format::number(h.edges[i]), format::number(h.edges[i + 1]));
        body.push_str(&format!(
            r#"<rect class="{class}" x="{a:.1}" y="{:.1}" width="{:.1}" height="{tall:.1}">{}</rect>"#,
            BOTTOM - tall,
            (b - a - 1.0).max(0.5),
            hover(&interval)
        ));
    }
    if let Some(line) = line {
        let mut d = format!("M{:.1} {BOTTOM}", x.at(low));
        for (i, v) in line.iter().enumerate() {
            d.push_str(&format!("V{:.1}H{:.1}", y.at(*v), x.at(h.edges[i + 1])));
        }
        body.push_str(&format!(r#"<path class="line c0line" d="{d}V{BOTTOM}"/>"#));
    }
    body.push_str(&frame.horizontal(axis));
    let described = format!(
        "Histogram of {axis} of {} from {} to {}.",
        format::counted(h.counts.iter().sum(), "record"),
        format::number(low),
        format::number(high)
    );
    drawing(HEIGHT, &described, &body)
}

/// One line of a chart: what it is called, its class (`largest`, `mean`, `util`), its points.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) class: &'a str,
    pub(super) points: Vec<(f64, f64)>,
}

/// The axes of a chart of lines.
pub(super) struct Axes<'a> {
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    pub(super) logarithmic: bool,
}

/// Lines over a common axis; nothing where there are fewer than two points.
pub(super) fn lines(axes: &Axes<'_>, lines: &[Line<'_>]) -> String {
    let usable = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite() && (!axes.logarithmic || p.1 > 0.0);
    let all: Vec<(f64, f64)> = lines.iter().flat_map(|l| l.points.iter().filter(usable).copied()).collect();
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], v| [a.min(v), b.max(v)])
    };
    if all.len() < 2 {
        return String::new();
    }
    let [_, x1] = ends(&mut all.iter().map(|p| p.0));
    let [y0, y1] = ends(&mut all.iter().map(|p| p.1));
    let x = Scale::linear([0.0, nice_end(x1, 6)], Frame::ACROSS);
    let y = match axes.logarithmic {
        true => Scale::log([y0 / 1.2, y1 * 1.2], [BOTTOM, TOP]),
        false => Scale::linear([0.0_f64.min(y0), nice_end(y1.max(f64::MIN_POSITIVE), 5)], [BOTTOM, TOP]),
    };
    let frame = Frame { x, y, top: TOP, bottom: BOTTOM };
    let mut body = frame.vertical(axes.y);
    for line in lines {
        let (mut d, mut dots) = (String::new(), String::new());
        for p in line.points.iter().filter(usable) {
            let (px, py) = (x.at(p.0), y.at(p.1));
            d.push_str(&format!("{}{px:.1} {py:.1}", if d.is_empty() { "M" } else { "L" }));
            dots.push_str(&format!(
                r#"<circle class="{} dot" cx="{px:.1}" cy="{py:.1}" r="3">{}</circle>"#,
                line.class,
                hover(&format!(
                    "{}: {} {}, {} {}",
                    line.name,
                    axes.x,
                    format::number(p.0),
                    axes.y,
                    format::number(p.1)
                ))
            ));
        }
        body.push_str(&format!(r#"<path class="line {}" d="{d}"/>{dots}"#, line.class));
        if let (true, Some(p)) = (lines.len() > 1, line.points.iter().rfind(usable)) {
            body.push_str(&format!(
                r#"<text class="note" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                x.at(p.0) - 2.0,
                y.at(p.1) - 9.0,
                line.name
            ));
        }
    }
    body.push_str(&frame.horizontal(axes.x));
    let names: Vec<&str> = lines.iter().map(|l| l.name).collect();
    drawing(HEIGHT, &format!("{} ({}) against {}.", axes.y, names.join(", "), axes.x), &body)
}
