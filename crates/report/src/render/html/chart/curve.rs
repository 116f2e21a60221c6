//! Noise against utility, and under it, on the same axis, noise against leakage.

use crate::document::audit::{Audit, Utility, UtilityPoint};
use crate::format;
use crate::render::html::follow::{Axis, TextPiece, piece};
use crate::render::html::markup::{Html, fill};
use crate::render::html::svg::{Frame, Scale, drawing_that, hover, note};
use crate::words;

const UPPER: [f64; 2] = [38.0, 218.0];
const LOWER: [f64; 2] = [284.0, 444.0];
const HEIGHT: f64 = 498.0;

/// The points of one curve as a path, and a dot with its numbers for each. Where the curve leaves the frame the path
/// ends on its edge, so that it never shows a value that was not computed.
fn line(
    frame: &Frame,
    points: &[&UtilityPoint],
    class: &'static str,
    value: impl Fn(&UtilityPoint) -> f64,
    (name, number): (&str, impl Fn(f64) -> TextPiece),
) -> Html {
    let [low, high] = frame.y.domain();
    let within = |v: f64| v >= low * (1.0 - 1e-9) - 1e-300 && v <= high * (1.0 + 1e-9);
    let (mut d, mut dots) = (String::new(), Html::new());
    let mut last: Option<(f64, f64)> = None;
    for p in points {
        let (x, v) = (frame.x.at(p.sigma), value(p));
        if within(v) {
            let y = frame.y.at(v);
            if let Some((x0, v0)) = last.filter(|l| !within(l.1)) {
                let (xe, ye) = leaves(frame, (x, v), (x0, v0));
                d.push_str(&format!("M{xe:.1} {ye:.1}"));
            }
            // After a gap (a value without bound) the pen is lifted.
            d.push_str(&format!("{}{x:.1} {y:.1}", if last.is_none() { "M" } else { "L" }));
            let text = [piece(format!("σ = {}: {name} ", format::setting(p.sigma))), number(v)];
            dots.push(fill(
                r#"<circle class="{} dot" cx="{}" cy="{}" r="3"{}>{}</circle>"#,
                &[&class, &x, &y, &TextPiece::attribute(&text), &hover(&TextPiece::text(&text))],
            ));
        } else if let Some(inside) = last.filter(|l| within(l.1) && v.is_finite()) {
            let (xe, ye) = leaves(frame, inside, (x, v));
            d.push_str(&format!("L{xe:.1} {ye:.1}"));
        }
        last = v.is_finite().then_some((x, v));
    }
    fill(r#"<path class="line {}" d="{}"/>{}"#, &[&class, &d, &dots])
}

/// Where a straight line from a point inside (position, value) to one outside crosses the edge of the frame.
fn leaves(frame: &Frame, inside: (f64, f64), outside: (f64, f64)) -> (f64, f64) {
    let [low, high] = frame.y.domain();
    let edge = if outside.1 > high { high } else { low };
    let t = ((edge - inside.1) / (outside.1 - inside.1)).clamp(0.0, 1.0);
    (inside.0 + t * (outside.0 - inside.0), frame.y.at(edge))
}

/// A dotted line at a value with its name.
fn level(frame: &Frame, value: f64, name: &str, under: bool) -> Html {
    let ([left, _], y) = (Frame::ACROSS, frame.y.at(value));
    frame.level(value).and(note([left + 8.0, if under { y + 16.0 } else { y - 6.0 }], "start", name))
}

/// The two curves; nothing where no point can be drawn.
pub(crate) fn curve(audit: &Audit, utility: &Utility) -> Html {
    let points: Vec<&UtilityPoint> =
        utility.points.iter().filter(|p| p.sigma > 0.0 && p.sigma.is_finite()).collect();
    if points.is_empty() {
        return Html::new();
    }
    let sigmas = points.iter().map(|p| p.sigma).chain([audit.sigma]).filter(|s| *s > 0.0 && s.is_finite());
    let (lo, hi) = sigmas.fold((f64::INFINITY, 0.0_f64), |(a, b), s| (a.min(s), b.max(s)));
    let x = Scale::log([lo, hi], Frame::ACROSS);
    let frame = upper_frame(utility, &points, x);
    let mut body = upper(utility, &points, &frame).and(lower(&points, x));
    if audit.sigma > 0.0 && audit.sigma.is_finite() {
        body.push(chosen(audit, utility, &frame));
    }
    let described = [
        piece(format!(
            "{} on held-out rows against the noise σ: {} without noise, ",
            words::metric_name(utility.metric),
            words::metric(utility, utility.without_noise)
        )),
        TextPiece::Utility(words::metric(utility, utility.at_sigma)),
        piece(" at σ = "),
        TextPiece::Sigma(audit.sigma),
        piece("; below it the mean and the largest information loss, which fall as one over σ."),
    ];
    drawing_that(HEIGHT, &described, &frame, &body)
}

/// The noise of the audit on both curves, and what is left of the model there. The script moves it.
fn chosen(audit: &Audit, utility: &Utility, frame: &Frame) -> Html {
    let at = frame.x.at(audit.sigma);
    let line =
        fill(r#"<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>"#, &[&at, &at, &UPPER[0], &LOWER[1]]);
    let side = if at > 300.0 { (-7.0, "end") } else { (7.0, "start") };
    let text = format!("σ = {}", format::setting(audit.sigma));
    let value = utility.at_sigma;
    let [low, high] = frame.y.domain();
    let hidden =
        if (low..=high).contains(&value) { Html::new() } else { Html::literal(" visibility=\"hidden\"") };
    let pieces = [
        piece("σ = "),
        TextPiece::Sigma(audit.sigma),
        piece(format!(": {} ", words::metric_name(utility.metric))),
        TextPiece::Utility(words::metric(utility, value)),
    ];
    let place = fill(
        r#"<circle class="here" cx="{}" cy="{}" r="6"{}{}>{}</circle>"#,
        &[
            &at,
            &frame.y.at(value),
            &hidden,
            &TextPiece::attribute(&pieces),
            &hover(&TextPiece::text(&pieces)),
        ],
    );
    let all = line.and(note([at + side.0, UPPER[1] + 18.0], side.1, &text)).and(place);
    fill("<g data-chosen=\"curve\">{}</g>", &[&all])
}

/// The area of utility against noise.
fn upper_frame(utility: &Utility, points: &[&UtilityPoint], x: Scale) -> Frame {
    let bases = [utility.without_noise, utility.constant_model];
    // A curve may run off to infinity; show it up to a little beyond the model that knows nothing.
    let gap = (bases[0] - bases[1]).abs().max(1e-3 * bases[0].abs()).max(f64::MIN_POSITIVE);
    let window = [bases[0].min(bases[1]) - 0.7 * gap, bases[0].max(bases[1]) + 0.7 * gap];
    let (a, b) = points
        .iter()
        .map(|p| p.value.clamp(window[0], window[1]))
        .chain(bases)
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let pad = 0.12 * (b - a);
    let y = Scale::linear([a - pad, b + pad], [UPPER[1], UPPER[0]]);
    Frame { x, y, top: UPPER[0], bottom: UPPER[1] }
}

/// Utility against noise.
fn upper(utility: &Utility, points: &[&UtilityPoint], frame: &Frame) -> Html {
    let name = words::metric_name(utility.metric);
    let stands = |v: f64| piece(format::number(v));
    frame
        .vertical(&format!("{name} on held-out rows"))
        .and(level(frame, utility.without_noise, "without noise", utility.higher_is_better))
        .and(level(frame, utility.constant_model, "a model without columns", !utility.higher_is_better))
        .and(line(frame, points, "util", |p| p.value, (name, stands)))
}

/// Leakage against noise.
fn lower(points: &[&UtilityPoint], x: Scale) -> Html {
    let etas = points.iter().flat_map(|p| [p.eta_mean, p.eta_max]).filter(|e| *e > 0.0 && e.is_finite());
    let (e0, e1) = etas.fold((f64::INFINITY, 0.0_f64), |(a, b), e| (a.min(e), b.max(e)));
    let y = Scale::log([e0, e1], [LOWER[1], LOWER[0]]);
    let frame = Frame { x, y, top: LOWER[0], bottom: LOWER[1] };
    let mut body = frame.vertical_that("information loss η", Axis::Releases);
    if e1 > 0.0 {
        body.push(line(&frame, points, "largest", |p| p.eta_max, ("largest η", TextPiece::Released)));
        body.push(line(&frame, points, "mean", |p| p.eta_mean, ("mean η", TextPiece::Released)));
        if let Some(p) = points.get(points.len() / 3) {
            // Both curves are parallel lines of slope −1: above the upper one and under the lower one is free.
            let at = x.at(p.sigma);
            body.push(note([at + 8.0, y.at(p.eta_max) - 8.0], "start", "largest"));
            body.push(note([at - 8.0, y.at(p.eta_mean) + 18.0], "end", "mean"));
        }
    }
    body.and(frame.horizontal("noise on every coefficient, σ"))
}
