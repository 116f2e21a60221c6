//! What every chart needs: scales with sensible ticks, linear and logarithmic, and a frame with its axes.

use super::follow::{Axis, TextPiece};
use super::markup::{Html, fill};
use crate::format;

/// Width of every drawing in user units. One width for all, so that text has one size on a phone too.
pub(crate) const WIDTH: f64 = 560.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 16.0;

/// A map from values to positions that stays inside its range.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scale {
    Linear { domain: [f64; 2], range: [f64; 2] },
    Log { domain: [f64; 2], range: [f64; 2] },
}

impl Scale {
    /// Values of `domain` onto `range`; an empty or improper domain is widened.
    pub(crate) fn linear(domain: [f64; 2], range: [f64; 2]) -> Self {
        let [lo, hi] = domain;
        let proper = lo.is_finite() && hi.is_finite() && hi - lo > 1e-12 * lo.abs().max(hi.abs());
        let domain = match proper {
            true => domain,
            false if lo.is_finite() && lo != 0.0 => [lo - 0.5 * lo.abs(), lo + 0.5 * lo.abs()],
            false => [0.0, 1.0],
        };
        Self::Linear { domain, range }
    }

    /// Positive values of `domain` onto `range` by their logarithms; an improper domain becomes one decade.
    pub(crate) fn log(domain: [f64; 2], range: [f64; 2]) -> Self {
        let [lo, hi] = domain;
        let proper = lo > 0.0 && hi.is_finite() && hi > lo * (1.0 + 1e-9);
        let domain = match proper {
            true => domain,
            false if lo > 0.0 && lo.is_finite() => [lo / 10_f64.sqrt(), lo * 10_f64.sqrt()],
            false => [0.1, 1.0],
        };
        Self::Log { domain, range }
    }

    /// Position of a value, held inside the range.
    pub(crate) fn at(&self, x: f64) -> f64 {
        let (t, [r0, r1]) = match *self {
            Self::Linear { domain: [a, b], range } => ((x - a) / (b - a), range),
            Self::Log { domain: [a, b], range } => {
                ((x.max(f64::MIN_POSITIVE) / a).ln() / (b / a).ln(), range)
            }
        };
        let t = if t.is_nan() { 0.0 } else { t.clamp(0.0, 1.0) };
        r0 + t * (r1 - r0)
    }

    /// Ends of the domain.
    pub(crate) fn domain(&self) -> [f64; 2] {
        match *self {
            Self::Linear { domain, .. } | Self::Log { domain, .. } => domain,
        }
    }

    /// Kind, domain and range, for the script.
    pub(crate) fn described(&self) -> String {
        let (kind, [a, b], [r0, r1]) = match *self {
            Self::Linear { domain, range } => ("linear", domain, range),
            Self::Log { domain, range } => ("log", domain, range),
        };
        format!("{kind} {a:e} {b:e} {r0} {r1}")
    }

    /// At most about `most` ticks inside the domain, with their labels.
    pub(crate) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        match *self {
            Self::Linear { domain: [a, b], .. } => linear_ticks(a, b, most),
            Self::Log { domain: [a, b], .. } => {
                let ticks = log_ticks(a, b, most);
                // Within half a decade there may be no power of ten, nor twice or five times one.
                if ticks.len() < 2 { linear_ticks(a, b, most) } else { ticks }
            }
        }
    }
}

fn linear_ticks(a: f64, b: f64, most: usize) -> Vec<(f64, String)> {
    let step = nice_step(b - a, most);
    let (first, last) = ((a / step - 1e-9).ceil() as i64, (b / step + 1e-9).floor() as i64);
    (first..=last).map(|k| (k as f64 * step, tick_label(k as f64 * step, step))).collect()
}

/// The smallest of 1, 2, 2.5, 5 times a power of ten that cuts `span` into at most `most` parts.
pub(crate) fn nice_step(span: f64, most: usize) -> f64 {
    let raw = (span / most.max(1) as f64).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(raw.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= raw * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// The least multiple of a nice step that is no less than `hi`, for an axis that starts at 0.
pub(crate) fn nice_end(hi: f64, most: usize) -> f64 {
    let step = nice_step(hi, most);
    (hi / step - 1e-9).ceil().max(1.0) * step
}

fn log_ticks(a: f64, b: f64, most: usize) -> Vec<(f64, String)> {
    let decades = (b / a).log10();
    let multiples: &[f64] = match decades {
        d if d < 1.3 => &[1.0, 2.0, 5.0],
        d if d < 2.2 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let (first, last) = (a.log10().floor() as i32, b.log10().ceil() as i32);
    let stride = (decades / most.max(1) as f64).ceil().max(1.0) as i32;
    let mut ticks = Vec::new();
    for k in (first..=last).filter(|k| k.rem_euclid(stride) == 0) {
        for m in multiples {
            let x = m * 10_f64.powi(k);
            if x >= a * (1.0 - 1e-9) && x <= b * (1.0 + 1e-9) {
                ticks.push((x, log_label(x, *m, k)));
            }
        }
    }
    ticks
}

fn log_label(x: f64, multiple: f64, power: i32) -> String {
    match power {
        -4..=-1 => format!("{x:.w$}", w = power.unsigned_abs() as usize),
        0..=3 => format::count(x.round() as u64),
        _ if multiple == 1.0 => format!("10{}", format::superscript(power)),
        _ => format!("{multiple}×10{}", format::superscript(power)),
    }
}

fn tick_label(x: f64, step: f64) -> String {
    let size = x.abs();
    if size < 1e-9 * step {
        return "0".into();
    }
    let sign = if x < 0.0 { "−" } else { "" };
    let short = |v: f64| {
        let text = format!("{v:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match size {
        s if !(1e-5..1e15).contains(&s) => format!("{sign}{}", format::setting(s)),
        s if s >= 1e9 => format!("{sign}{}G", short(s / 1e9)),
        s if s >= 1e6 => format!("{sign}{}M", short(s / 1e6)),
        s if s >= 1e4 => format!("{sign}{}k", short(s / 1e3)),
        s if step >= 1.0 && step.fract() == 0.0 => format!("{sign}{}", format::count(s.round() as u64)),
        s => {
            // As many decimals as the step has, so that the labels of an axis line up.
            let places = (-(step * (1.0 + 1e-9)).log10().floor()).max(0.0) as usize;
            let scaled = step * 10_f64.powi(places as i32);
            let places = places + usize::from((scaled - scaled.round()).abs() > 1e-6);
            format!("{sign}{s:.places$}")
        }
    }
}

/// The area that is drawn in, and its two scales.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) x: Scale,
    pub(crate) y: Scale,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Frame {
    /// Horizontal ends of the area.
    pub(crate) const ACROSS: [f64; 2] = [LEFT, WIDTH - RIGHT];

    /// Grid lines and labels of the vertical axis, its title set above it.
    pub(crate) fn vertical(&self, title: &str) -> Html {
        self.vertical_that(title, Axis::Stands)
    }

    /// The same of an axis whose labels may follow the noise.
    pub(crate) fn vertical_that(&self, title: &str, axis: Axis) -> Html {
        let [left, right] = Self::ACROSS;
        let mut out = Html::new();
        for (v, label) in self.y.ticks(5) {
            let y = self.y.at(v);
            out.push(fill(
                r#"<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text x="{}" y="{}" text-anchor="end">{}</text>"#,
                &[&left, &right, &y, &y, &(left - 8.0), &(y + 4.5), &label],
            ));
        }
        axis.ticks("y", &self.y.described(), out)
            .and(fill(r#"<text class="title" x="0" y="{}">{}</text>"#, &[&(self.top - 18.0), &title]))
    }

    /// Labels and title of the horizontal axis.
    pub(crate) fn horizontal(&self, title: &str) -> Html {
        self.horizontal_that(title, Axis::Stands)
    }

    /// The same of an axis whose labels may follow the noise.
    pub(crate) fn horizontal_that(&self, title: &str, axis: Axis) -> Html {
        let [left, right] = Self::ACROSS;
        let y = self.bottom;
        let line = fill(r#"<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>"#, &[&left, &right, &y, &y]);
        let mut out = Html::new();
        for (v, label) in self.x.ticks(6) {
            let x = self.x.at(v);
            out.push(fill(
                r#"<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/><text x="{}" y="{}" text-anchor="middle">{}</text>"#,
                &[&x, &x, &y, &(y + 5.0), &x, &(y + 21.0), &label],
            ));
        }
        line.and(axis.ticks("x", &self.x.described(), out)).and(fill(
            r#"<text class="title" x="{}" y="{}" text-anchor="middle">{}</text>"#,
            &[&((left + right) / 2.0), &(y + 44.0), &title],
        ))
    }

    /// A dashed vertical line at `x` with a note on the side that has more room.
    pub(crate) fn mark(&self, x: f64, text: &str) -> Html {
        let at = self.x.at(x);
        let [left, right] = Self::ACROSS;
        let (dx, anchor) = if at > (left + right) / 2.0 { (-7.0, "end") } else { (7.0, "start") };
        let line = fill(
            r#"<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>"#,
            &[&at, &at, &self.top, &self.bottom],
        );
        line.and(note([at + dx, self.top + 13.0], anchor, text))
    }

    /// A dotted line at a height.
    pub(crate) fn level(&self, value: f64) -> Html {
        let ([left, right], y) = (Self::ACROSS, self.y.at(value));
        fill(r#"<line class="base" x1="{}" x2="{}" y1="{}" y2="{}"/>"#, &[&left, &right, &y, &y])
    }
}

/// A note at a place.
pub(crate) fn note([x, y]: [f64; 2], anchor: &str, text: &str) -> Html {
    note_of([x, y], anchor, Html::text(text))
}

/// A note of markup at a place.
pub(crate) fn note_of([x, y]: [f64; 2], anchor: &str, text: Html) -> Html {
    fill(r#"<text class="note" x="{}" y="{}" text-anchor="{}">{}</text>"#, &[&x, &y, &anchor, &text])
}

/// A dot in a slot's colour with its hover text.
pub(crate) fn dot(slot: usize, [x, y]: [f64; 2], radius: &'static str, text: &str) -> Html {
    fill(
        r#"<circle class="dot c{}" cx="{}" cy="{}" r="{}">{}</circle>"#,
        &[&slot, &x, &y, &radius, &hover(text)],
    )
}

/// A bar in a slot’s colour with its hover text, which may follow the noise, and what it holds: from, to.
pub(crate) fn bar(slot: usize, [x, y, width, height]: [f64; 4], holds: [f64; 2], text: &[TextPiece]) -> Html {
    let [from, to] = holds.map(|end| if end.is_finite() { format!("{end:e}") } else { String::new() });
    let (follows, text) = (TextPiece::attribute(text), TextPiece::text(text));
    fill(
        r#"<rect class="c{}" x="{}" y="{}" width="{}" height="{}" data-from="{}" data-to="{}"{}>{}</rect>"#,
        &[&slot, &x, &y, &width, &height, &from, &to, &follows, &hover(&text)],
    )
}

/// A whole drawing, described in words for those who cannot see it.
pub(crate) fn drawing(height: f64, described: &str, body: &Html) -> Html {
    fill(
        "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>\n",
        &[&(WIDTH as u64), &(height.ceil() as u64), &described, body],
    )
}

/// The same where words may follow the noise; with how its axes map values to places, for the script.
pub(crate) fn drawing_that(height: f64, described: &[TextPiece], frame: &Frame, body: &Html) -> Html {
    let (follows, text) = (TextPiece::attribute(described), TextPiece::text(described));
    fill(
        "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" data-x=\"{}\" data-y=\"{}\" aria-label=\"{}\"{}>{}</svg>\n",
        &[
            &(WIDTH as u64),
            &(height.ceil() as u64),
            &frame.x.described(),
            &frame.y.described(),
            &text,
            &follows,
            body,
        ],
    )
}

/// A hover text.
pub(crate) fn hover(text: &str) -> Html {
    fill("<title>{}</title>", &[&text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_numbers_inside_the_domain() {
        let labels =
            |a, b| Scale::linear([a, b], [0.0, 1.0]).ticks(5).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(labels(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.0, 1.2), ["0", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(labels(0.0, 300.0), ["0", "100", "200", "300"]);
        assert_eq!(labels(0.0, 12_500.0), ["0", "2,500", "5,000", "7,500", "10k", "12.5k"]);
        assert_eq!(labels(-1.0, 1.0), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        for (a, b) in [(0.0, 3e-7), (0.731, 0.7312), (5e3, 6e9), (-3.0, 17.0), (0.0, 1e300)] {
            let scale = Scale::linear([a, b], [0.0, 100.0]);
            let ticks = scale.ticks(5);
            assert!((2..=6).contains(&ticks.len()), "{a} {b} {ticks:?}");
            assert!(ticks.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1), "{a} {b} {ticks:?}");
            let slack = 1e-6 * (b - a);
            assert!(ticks.iter().all(|t| t.0 >= a - slack && t.0 <= b + slack), "{a} {b} {ticks:?}");
        }
    }

    #[test]
    fn logarithmic_ticks_follow_the_decades() {
        let labels =
            |a, b| Scale::log([a, b], [0.0, 1.0]).ticks(6).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(labels(1e-4, 0.1), ["0.0001", "0.001", "0.01", "0.1"]);
        assert_eq!(labels(0.5, 5.0), ["0.5", "1", "2", "5"]);
        assert_eq!(labels(0.0531, 0.0753), ["0.055", "0.060", "0.065", "0.070", "0.075"]);
        assert_eq!(labels(1.0, 1e12), ["1", "100", "10⁴", "10⁶", "10⁸", "10¹⁰", "10¹²"]);
        assert_eq!(Scale::log([1.0, 100.0], [0.0, 10.0]).at(10.0), 5.0);
    }

    #[test]
    fn improper_domains_and_values_stay_finite() {
        for scale in [
            Scale::linear([2.0, 2.0], [0.0, 10.0]),
            Scale::linear([0.0, 0.0], [0.0, 10.0]),
            Scale::linear([f64::NAN, f64::INFINITY], [0.0, 10.0]),
            Scale::log([0.0, 0.0], [0.0, 10.0]),
            Scale::log([3.0, 3.0], [0.0, 10.0]),
            Scale::log([1.0, f64::INFINITY], [0.0, 10.0]),
        ] {
            for x in [0.0, -1.0, 2.0, 3.0, f64::NAN, f64::INFINITY] {
                assert!((0.0..=10.0).contains(&scale.at(x)), "{scale:?} {x}");
            }
            assert!(!scale.ticks(5).is_empty() && scale.ticks(5).len() < 12, "{scale:?}");
        }
    }
}
