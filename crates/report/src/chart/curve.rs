//! Noise against utility, and under it, on the same axis, noise against leakage.

use crate::audit::{Audit, Utility, UtilityPoint};
use crate::svg::{Frame, Scale, drawing, hover};
use crate::{format, words};

const UPPER: [f64; 2] = [38.0, 218.0];
const LOWER: [f64; 2] = [284.0, 444.0];
const HEIGHT: f64 = 498.0;

/// The points of one curve as a path, and a dot with its numbers for each. Where the curve leaves the frame the path
/// ends on its edge, so that it never shows a value that was not computed.
fn line(
    frame: &Frame,
    points: &[&UtilityPoint],
    class: &str,
    value: impl Fn(&UtilityPoint) -> f64,
    name: &str,
) -> String {
    let [low, high] = frame.y.domain();
    let within = |v: f64| v >= low * (1.0 - 1e-9) - 1e-300 && v <= high * (1.0 + 1e-9);
    let (mut d, mut dots) = (String::new(), String::new());
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
            dots.push_str(&format!(
                r#"<circle class="{class} dot" cx="{x:.1}" cy="{y:.1}" r="3">{}</circle>"#,
                hover(&format!("σ = {}: {name} {}", format::setting(p.sigma), format::number(v)))
            ));
        } else if let Some(inside) = last.filter(|l| within(l.1) && v.is_finite()) {
            let (xe, ye) = leaves(frame, inside, (x, v));
            d.push_str(&format!("L{xe:.1} {ye:.1}"));
        }
        last = v.is_finite().then_some((x, v));
    }
    format!(r#"<path class="line {class}" d="{d}"/>{dots}"#)
}

/// Where a straight line from a point inside (position, value) to one outside crosses the edge of the frame.
fn leaves(frame: &Frame, inside: (f64, f64), outside: (f64, f64)) -> (f64, f64) {
    let [low, high] = frame.y.domain();
    let edge = if outside.1 > high { high } else { low };
    let t = ((edge - inside.1) / (outside.1 - inside.1)).clamp(0.0, 1.0);
    (inside.0 + t * (outside.0 - inside.0), frame.y.at(edge))
}

/// A dotted line at a value with its name.
fn level(frame: &Frame, value: f64, name: &str, under: bool) -> String {
    let ([left, right], y) = (Frame::ACROSS, frame.y.at(value));
    format!(
        r#"<line class="base" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/><text class="note dim" x="{:.1}" y="{:.1}">{name}</text>"#,
        left + 8.0,
        if under { y + 16.0 } else { y - 6.0 }
    )
}

/// The two curves; nothing where no point can be drawn.
pub(crate) fn curve(audit: &Audit, utility: &Utility) -> String {
    let points: Vec<&UtilityPoint> =
        utility.points.iter().filter(|p| p.sigma > 0.0 && p.sigma.is_finite()).collect();
    if points.is_empty() {
        return String::new();
    }
    let sigmas = points.iter().map(|p| p.sigma).chain([audit.sigma]).filter(|s| *s > 0.0 && s.is_finite());
    let (lo, hi) = sigmas.fold((f64::INFINITY, 0.0_f64), |(a, b), s| (a.min(s), b.max(s)));
    let x = Scale::log([lo, hi], Frame::ACROSS);
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
    let upper = Frame {
        x,
        y: Scale::linear([a - pad, b + pad], [UPPER[1], UPPER[0]]),
        top: UPPER[0],
        bottom: UPPER[1],
    };
    let name = words::metric_name(utility);
    let mut body = upper.vertical(&format!("{name} on held-out rows"));
    body.push_str(&level(&upper, utility.without_noise, "without noise", utility.higher_is_better));
    body.push_str(&level(
        &upper,
        utility.constant_model,
        "a model without columns",
        !utility.higher_is_better,
    ));
    body.push_str(&line(&upper, &points, "util", |p| p.value, name));

    let etas = points.iter().flat_map(|p| [p.eta_mean, p.eta_max]).filter(|e| *e > 0.0 && e.is_finite());
    let (e0, e1) = etas.fold((f64::INFINITY, 0.0_f64), |(a, b), e| (a.min(e), b.max(e)));
    let y = Scale::log([e0, e1], [LOWER[1], LOWER[0]]);
    let lower = Frame { x, y, top: LOWER[0], bottom: LOWER[1] };
    body.push_str(&lower.vertical("information loss η"));
    if e1 > 0.0 {
        body.push_str(&line(&lower, &points, "largest", |p| p.eta_max, "largest η"));
        body.push_str(&line(&lower, &points, "mean", |p| p.eta_mean, "mean η"));
        if let Some(p) = points.get(points.len() / 3) {
            // Both curves are parallel lines of slope −1: above the upper one and under the lower one is free.
            let at = x.at(p.sigma);
            body.push_str(&format!(
                r#"<text class="note" x="{:.1}" y="{:.1}">largest</text><text class="note" x="{:.1}" y="{:.1}" text-anchor="end">mean</text>"#,
                at + 8.0,
                y.at(p.eta_max) - 8.0,
                at - 8.0,
                y.at(p.eta_mean) + 18.0
            ));
        }
    }
    body.push_str(&lower.horizontal("noise on every coefficient, σ"));
    if audit.sigma > 0.0 && audit.sigma.is_finite() {
        let at = x.at(audit.sigma);
        body.push_str(&format!(
            r#"<line class="mark" x1="{at:.1}" x2="{at:.1}" y1="{}" y2="{}"/>"#,
            UPPER[0], LOWER[1]
        ));
        let side = if at > 300.0 { (-7.0, "end") } else { (7.0, "start") };
        body.push_str(&format!(
            r#"<text class="note" x="{:.1}" y="{:.1}" text-anchor="{}">σ = {}</text>"#,
            at + side.0,
            UPPER[1] + 18.0,
            side.1,
            format::setting(audit.sigma)
        ));
    }
    let described = format!(
        "{name} on held-out rows against the noise σ: {} without noise, {} at σ = {}; below it the mean and the largest information loss, which fall as one over σ.",
        words::metric(utility, utility.without_noise),
        words::metric(utility, utility.at_sigma),
        format::setting(audit.sigma)
    );
    drawing(HEIGHT, &described, &body)
}
