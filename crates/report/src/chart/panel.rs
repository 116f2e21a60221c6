//! The panels of reproduced figures: curves, points, outlines of histograms, rows of pictures, maps.

use super::lines::{Axis, Line, Lines, Point};
use super::series::swatch;
use crate::format;
use crate::html::escape;
use crate::net::Picture;
use crate::reproduction::{AxisTitle, Captioned, Content, Panel, PointSeries};
use crate::svg::{Frame, Scale, WIDTH, drawing, hover, nice_end};

const TOP: f64 = 38.0;
const BOTTOM: f64 = 290.0;
const HEIGHT: f64 = 344.0;
/// Points beyond this many hide one another.
const MOST_DOTS: usize = 2500;
const BINS: usize = 48;

/// A panel as it is drawn.
pub(crate) struct Drawn {
    /// Names and colours, for the legend.
    pub(crate) names: Vec<(usize, String)>,
    /// The drawing, an `<svg>` element.
    pub(crate) svg: String,
}

/// Draws a panel.
pub(crate) fn panel(panel: &Panel) -> Drawn {
    let names =
        |series: &[PointSeries]| series.iter().enumerate().map(|(k, s)| (k % 8, s.name.clone())).collect();
    match &panel.content {
        Content::Curves { x, y, series, levels } => {
            Drawn { names: names(series), svg: curves(&panel.title, x, y, series, levels) }
        }
        Content::Dots { x, y, series, line, notes } => {
            Drawn { names: names(series), svg: dots(&panel.title, x, y, series, *line, notes) }
        }
        Content::Histograms { x, series } => Drawn {
            names: series.iter().enumerate().map(|(k, s)| (k % 8, s.0.clone())).collect(),
            svg: outlines(&panel.title, x, series),
        },
        Content::Pictures { rows } => Drawn { names: vec![], svg: pictures(&panel.title, rows) },
        Content::Map { x, y, within, shape, values, series, line } => Drawn {
            names: names(series),
            svg: map(&panel.title, (x, y), (*within, *shape, values), series, *line),
        },
    }
}

/// The legend of a panel.
pub(crate) fn names(drawn: &Drawn) -> String {
    if drawn.names.len() < 2 {
        return String::new();
    }
    let each: String =
        drawn.names.iter().map(|(slot, n)| format!("<span>{}{}</span>", swatch(*slot), escape(n))).collect();
    format!("<p class=\"legend\">{each}</p>\n")
}

fn axis(a: &AxisTitle) -> Axis<'_> {
    Axis { title: &a.title, log: a.log }
}

fn curves(
    title: &str,
    x: &AxisTitle,
    y: &AxisTitle,
    series: &[PointSeries],
    levels: &[(f64, String)],
) -> String {
    let line = |(k, s): (usize, &PointSeries)| Line {
        name: s.name.clone(),
        slot: k % 8,
        points: s
            .points
            .iter()
            .enumerate()
            .map(|(i, p)| Point { x: p[0], y: p[1], interval: s.intervals.get(i).map(|[a, b]| (*a, *b)) })
            .collect(),
    };
    let lines = Lines {
        x: axis(x),
        y: axis(y),
        lines: series.iter().enumerate().map(line).collect(),
        levels: levels.to_vec(),
        y_domain: None,
        described: title.into(),
    };
    // The legend is drawn by the page, beside the file of the drawing alone.
    let all = lines.draw();
    all.find("<svg class=\"chart\"").map_or_else(String::new, |at| all[at..].to_owned())
}

fn ends(values: impl Iterator<Item = f64>, log: bool) -> [f64; 2] {
    let usable = values.filter(|v| v.is_finite() && (!log || *v > 0.0));
    usable.fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], v| [a.min(v), b.max(v)])
}

fn scale(a: &AxisTitle, domain: [f64; 2], range: [f64; 2]) -> Scale {
    if a.log {
        return Scale::log(domain, range);
    }
    let pad = 0.04 * (domain[1] - domain[0]);
    Scale::linear([domain[0] - pad, domain[1] + pad], range)
}

fn straight(frame: &Frame, [a, b]: [[f64; 2]; 2]) -> String {
    format!(
        r#"<path class="line util" d="M{:.1} {:.1}L{:.1} {:.1}"/>"#,
        frame.x.at(a[0]),
        frame.y.at(a[1]),
        frame.x.at(b[0]),
        frame.y.at(b[1])
    )
}

/// The points of a series: few of them get a text each, many are one path.
fn marks(frame: &Frame, slot: usize, s: &PointSeries) -> String {
    if s.points.len() <= 120 {
        let each = |p: &[f64; 2]| {
            let text = format!("{}: {}, {}", s.name, format::number(p[0]), format::number(p[1]));
            format!(
                r#"<circle class="dot c{slot}" cx="{:.1}" cy="{:.1}" r="4.2">{}</circle>"#,
                frame.x.at(p[0]),
                frame.y.at(p[1]),
                hover(&text)
            )
        };
        return s.points.iter().map(each).collect();
    }
    let stride = s.points.len().div_ceil(MOST_DOTS).max(1);
    let mut d = String::new();
    for p in s.points.iter().step_by(stride) {
        d.push_str(&format!("M{:.1} {:.1}h0", frame.x.at(p[0]), frame.y.at(p[1])));
    }
    format!(r#"<path class="dots c{slot}line" d="{d}"/>"#)
}

fn dots(
    title: &str,
    x: &AxisTitle,
    y: &AxisTitle,
    series: &[PointSeries],
    line: Option<[[f64; 2]; 2]>,
    notes: &[([f64; 2], String)],
) -> String {
    let all = || series.iter().flat_map(|s| &s.points);
    let frame = Frame {
        x: scale(x, ends(all().map(|p| p[0]), x.log), Frame::ACROSS),
        y: scale(y, ends(all().map(|p| p[1]), y.log), [BOTTOM, TOP]),
        top: TOP,
        bottom: BOTTOM,
    };
    let mut body = format!("{}{}", frame.vertical(&y.title), frame.horizontal(&x.title));
    body.extend(line.map(|l| straight(&frame, l)));
    for (k, s) in series.iter().enumerate() {
        body.push_str(&marks(&frame, k % 8, s));
    }
    for (at, text) in notes {
        let (px, py) = (frame.x.at(at[0]), frame.y.at(at[1]));
        let [_, right] = Frame::ACROSS;
        let (dx, anchor) = if px > right - 90.0 { (-8.0, "end") } else { (8.0, "start") };
        body.push_str(&format!(
            r#"<text class="note" x="{:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
            px + dx,
            py - 7.0,
            escape(text)
        ));
    }
    drawing(HEIGHT, title, &body)
}

fn outlines(title: &str, x: &AxisTitle, series: &[(String, Vec<f64>)]) -> String {
    let [low, high] = ends(series.iter().flat_map(|s| s.1.iter().copied()), x.log);
    if !low.is_finite() {
        return drawing(HEIGHT, title, "");
    }
    // Bins of equal width on the axis as it is drawn.
    let on_axis = |v: f64| if x.log { v.ln() } else { v };
    let off_axis = |u: f64| if x.log { u.exp() } else { u };
    let start = on_axis(low);
    let width = if high > low { (on_axis(high) - start) / BINS as f64 } else { 1.0 };
    let edge = |b: usize| off_axis(start + width * b as f64);
    let counted = |values: &[f64]| {
        let mut counts = vec![0_u64; BINS];
        for v in values.iter().filter(|v| v.is_finite() && (!x.log || **v > 0.0)) {
            counts[(((on_axis(*v) - start) / width) as usize).min(BINS - 1)] += 1;
        }
        counts
    };
    let counts: Vec<Vec<u64>> = series.iter().map(|s| counted(&s.1)).collect();
    let most = counts.iter().flatten().copied().max().unwrap_or(1).max(5) as f64;
    let frame = Frame {
        x: if x.log {
            Scale::log([low, edge(BINS)], Frame::ACROSS)
        } else {
            Scale::linear([low, edge(BINS)], Frame::ACROSS)
        },
        y: Scale::linear([0.0, nice_end(1.04 * most, 5)], [BOTTOM, TOP]),
        top: TOP,
        bottom: BOTTOM,
    };
    let mut body = format!("{}{}", frame.vertical("records"), frame.horizontal(&x.title));
    for (k, (name, values)) in series.iter().enumerate() {
        let slot = k % 8;
        let mut d = format!("M{:.1} {BOTTOM:.1}", frame.x.at(low));
        for (b, &count) in counts[k].iter().enumerate() {
            let (from, to) = (edge(b), edge(b + 1));
            let y = frame.y.at(count as f64);
            d.push_str(&format!("L{:.1} {y:.1}L{:.1} {y:.1}", frame.x.at(from), frame.x.at(to)));
        }
        let [_, right] = Frame::ACROSS;
        d.push_str(&format!("L{right:.1} {BOTTOM:.1}"));
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let (at, text) = (frame.x.at(mean), format!("{name}: mean {}", format::number(mean)));
        body.push_str(&format!(
            r#"<path class="c{slot}" opacity=".25" d="{d}Z"/><path class="line c{slot}line" d="{d}"/><line class="line c{slot}line" stroke-dasharray="5 3" x1="{at:.1}" x2="{at:.1}" y1="{TOP}" y2="{BOTTOM}">{}</line>"#,
            hover(&text)
        ));
    }
    drawing(HEIGHT, title, &body)
}

fn pictures(title: &str, rows: &[(String, Vec<Captioned>)]) -> String {
    let across = rows.iter().map(|r| r.1.len()).max().unwrap_or(0).max(1);
    let size = ((WIDTH + 4.0) / across as f64).min(110.0);
    let (mut y, mut body) = (0.0, String::new());
    for (name, pictures) in rows {
        body.push_str(&format!(r#"<text class="title" x="0" y="{:.1}">{}</text>"#, y + 14.0, escape(name)));
        y += 24.0;
        for (k, p) in pictures.iter().enumerate() {
            let x = size * k as f64;
            body.push_str(&format!(
                "{}<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                image(&p.picture, [x, y, size - 6.0, size - 6.0], &p.caption),
                x + (size - 6.0) / 2.0,
                y + size + 9.0,
                escape(&p.caption)
            ));
        }
        y += size + 26.0;
    }
    drawing(y.max(20.0), title, &body)
}

fn image(picture: &Picture, [x, y, width, height]: [f64; 4], described: &str) -> String {
    format!(
        "<image class=\"pixels\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         preserveAspectRatio=\"none\" href=\"{}\">{}</image>",
        picture.data_uri(),
        hover(described)
    )
}

fn map(
    title: &str,
    (x, y): (&AxisTitle, &AxisTitle),
    (within, shape, values): ([f64; 4], [usize; 2], &[f64]),
    series: &[PointSeries],
    line: Option<[[f64; 2]; 2]>,
) -> String {
    let [x0, x1, y0, y1] = within;
    let [left, right] = Frame::ACROSS;
    let frame = Frame {
        x: Scale::linear([x0, x1], Frame::ACROSS),
        y: Scale::linear([y0, y1], [BOTTOM, TOP]),
        top: TOP,
        bottom: BOTTOM,
    };
    let most = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut body = format!("{}{}", frame.vertical(&y.title), frame.horizontal(&x.title));
    if let Some(picture) = Picture::heat(shape, values, most) {
        let said = format!("from 0 (white) to {} (dark)", format::number(most));
        body.push_str(&image(&picture, [left, TOP, right - left, BOTTOM - TOP], &said));
    }
    body.extend(line.map(|l| straight(&frame, l)));
    for (k, s) in series.iter().enumerate() {
        body.push_str(&marks(&frame, k % 8, s));
    }
    drawing(HEIGHT, title, &body)
}
