//! The panels of reproduced figures: curves, points, outlines of histograms, rows of pictures, maps.

use super::lines::{Axis, Line, Lines, Point};
use crate::figure::panel::{AxisTitle, Captioned, Content, Panel, PointSeries};
use crate::figure::picture::Picture;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::svg::{Frame, Scale, WIDTH, dot, drawing, hover, nice_end, note};

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
    pub(crate) svg: Html,
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

fn axis(a: &AxisTitle) -> Axis<'_> {
    Axis { title: &a.title, log: a.log }
}

fn curves(
    title: &str,
    x: &AxisTitle,
    y: &AxisTitle,
    series: &[PointSeries],
    levels: &[(f64, String)],
) -> Html {
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
    lines.drawing(None)
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

fn straight(frame: &Frame, [a, b]: [[f64; 2]; 2]) -> Html {
    let at = |p: [f64; 2]| format!("{:.1} {:.1}", frame.x.at(p[0]), frame.y.at(p[1]));
    fill(r#"<path class="line util" d="{}"/>"#, &[&format!("M{}L{}", at(a), at(b))])
}

/// The points of a series: few of them get a text each, many are one path.
fn marks(frame: &Frame, slot: usize, s: &PointSeries) -> Html {
    if s.points.len() <= 120 {
        let each = |p: &[f64; 2]| {
            let text = format!("{}: {}, {}", s.name, format::number(p[0]), format::number(p[1]));
            dot(slot, [frame.x.at(p[0]), frame.y.at(p[1])], "4.2", &text)
        };
        return s.points.iter().map(each).collect();
    }
    let stride = s.points.len().div_ceil(MOST_DOTS).max(1);
    let mut d = String::new();
    for p in s.points.iter().step_by(stride) {
        d.push_str(&format!("M{:.1} {:.1}h0", frame.x.at(p[0]), frame.y.at(p[1])));
    }
    fill(r#"<path class="dots c{}line" d="{}"/>"#, &[&slot, &d])
}

fn dots(
    title: &str,
    x: &AxisTitle,
    y: &AxisTitle,
    series: &[PointSeries],
    line: Option<[[f64; 2]; 2]>,
    notes: &[([f64; 2], String)],
) -> Html {
    let all = || series.iter().flat_map(|s| &s.points);
    let frame = Frame {
        x: scale(x, ends(all().map(|p| p[0]), x.log), Frame::ACROSS),
        y: scale(y, ends(all().map(|p| p[1]), y.log), [BOTTOM, TOP]),
        top: TOP,
        bottom: BOTTOM,
    };
    let mut body = frame.vertical(&y.title).and(frame.horizontal(&x.title));
    body.push(line.map(|l| straight(&frame, l)).unwrap_or_default());
    body.push(series.iter().enumerate().map(|(k, s)| marks(&frame, k % 8, s)).collect());
    for (at, text) in notes {
        let (px, py) = (frame.x.at(at[0]), frame.y.at(at[1]));
        let (dx, anchor) = if px > Frame::ACROSS[1] - 90.0 { (-8.0, "end") } else { (8.0, "start") };
        body.push(note([px + dx, py - 7.0], anchor, text));
    }
    drawing(HEIGHT, title, &body)
}

/// Common bins of several lists of values, evenly spaced as the axis is.
struct Bins {
    low: f64,
    start: f64,
    width: f64,
    log: bool,
}

impl Bins {
    fn new([low, high]: [f64; 2], log: bool) -> Self {
        let on_axis = |v: f64| if log { v.ln() } else { v };
        let width = if high > low { (on_axis(high) - on_axis(low)) / BINS as f64 } else { 1.0 };
        Self { low, start: on_axis(low), width, log }
    }

    fn edge(&self, b: usize) -> f64 {
        let u = self.start + self.width * b as f64;
        if self.log { u.exp() } else { u }
    }

    fn counts(&self, values: &[f64]) -> Vec<u64> {
        let mut counts = vec![0_u64; BINS];
        for v in values.iter().filter(|v| v.is_finite() && (!self.log || **v > 0.0)) {
            let u = if self.log { v.ln() } else { *v };
            counts[(((u - self.start) / self.width) as usize).min(BINS - 1)] += 1;
        }
        counts
    }
}

fn outlines(title: &str, x: &AxisTitle, series: &[(String, Vec<f64>)]) -> Html {
    let domain = ends(series.iter().flat_map(|s| s.1.iter().copied()), x.log);
    if !domain[0].is_finite() {
        return drawing(HEIGHT, title, &Html::new());
    }
    let bins = Bins::new(domain, x.log);
    let counts: Vec<Vec<u64>> = series.iter().map(|s| bins.counts(&s.1)).collect();
    let most = counts.iter().flatten().copied().max().unwrap_or(1).max(5) as f64;
    let across = [bins.low, bins.edge(BINS)];
    let frame = Frame {
        x: if x.log { Scale::log(across, Frame::ACROSS) } else { Scale::linear(across, Frame::ACROSS) },
        y: Scale::linear([0.0, nice_end(1.04 * most, 5)], [BOTTOM, TOP]),
        top: TOP,
        bottom: BOTTOM,
    };
    let mut body = frame.vertical("records").and(frame.horizontal(&x.title));
    for (k, ((name, values), counts)) in series.iter().zip(&counts).enumerate() {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let text = format!("{name}: mean {}", format::number(mean));
        body.push(outline(&frame, &bins, counts, k % 8));
        let at = frame.x.at(mean);
        body.push(fill(
            r#"<line class="line c{}line" stroke-dasharray="5 3" x1="{}" x2="{}" y1="{}" y2="{}">{}</line>"#,
            &[&(k % 8), &at, &at, &TOP, &BOTTOM, &hover(&text)],
        ));
    }
    drawing(HEIGHT, title, &body)
}

fn outline(frame: &Frame, bins: &Bins, counts: &[u64], slot: usize) -> Html {
    let mut d = format!("M{:.1} {BOTTOM:.1}", frame.x.at(bins.low));
    for (b, &count) in counts.iter().enumerate() {
        let y = frame.y.at(count as f64);
        let (from, to) = (frame.x.at(bins.edge(b)), frame.x.at(bins.edge(b + 1)));
        d.push_str(&format!("L{from:.1} {y:.1}L{to:.1} {y:.1}"));
    }
    d.push_str(&format!("L{:.1} {BOTTOM:.1}", Frame::ACROSS[1]));
    fill(
        r#"<path class="c{}" opacity=".25" d="{}Z"/><path class="line c{}line" d="{}"/>"#,
        &[&slot, &d, &slot, &d],
    )
}

fn pictures(title: &str, rows: &[(String, Vec<Captioned>)]) -> Html {
    let across = rows.iter().map(|r| r.1.len()).max().unwrap_or(0).max(1);
    let size = ((WIDTH + 4.0) / across as f64).min(110.0);
    let (mut y, mut body) = (0.0, Html::new());
    for (name, pictures) in rows {
        body.push(fill(r#"<text class="title" x="0" y="{}">{}</text>"#, &[&(y + 14.0), name]));
        y += 24.0;
        for (k, p) in pictures.iter().enumerate() {
            let x = size * k as f64;
            body.push(image(&p.picture, [x, y, size - 6.0, size - 6.0], &p.caption));
            body.push(fill(
                "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                &[&(x + (size - 6.0) / 2.0), &(y + size + 9.0), &p.caption],
            ));
        }
        y += size + 26.0;
    }
    drawing(y.max(20.0), title, &body)
}

fn image(picture: &Picture, [x, y, width, height]: [f64; 4], described: &str) -> Html {
    fill(
        "<image class=\"pixels\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
         href=\"{}\">{}</image>",
        &[&x, &y, &width, &height, &picture.data_uri(), &hover(described)],
    )
}

fn map(
    title: &str,
    (x, y): (&AxisTitle, &AxisTitle),
    (within, shape, values): ([f64; 4], [usize; 2], &[f64]),
    series: &[PointSeries],
    line: Option<[[f64; 2]; 2]>,
) -> Html {
    let [x0, x1, y0, y1] = within;
    let [left, right] = Frame::ACROSS;
    let frame = Frame {
        x: Scale::linear([x0, x1], Frame::ACROSS),
        y: Scale::linear([y0, y1], [BOTTOM, TOP]),
        top: TOP,
        bottom: BOTTOM,
    };
    let most = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let mut body = frame.vertical(&y.title).and(frame.horizontal(&x.title));
    if let Some(picture) = Picture::heat(shape, values, most) {
        let text = format!("from 0 (white) to {} (dark)", format::number(most));
        body.push(image(&picture, [left, TOP, right - left, BOTTOM - TOP], &text));
    }
    body.push(line.map(|l| straight(&frame, l)).unwrap_or_default());
    body.push(series.iter().enumerate().map(|(k, s)| marks(&frame, k % 8, s)).collect());
    drawing(HEIGHT, title, &body)
}
