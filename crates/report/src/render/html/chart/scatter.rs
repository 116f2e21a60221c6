//! η against what people usually look at, the loss or the gradient norm (Hannun fig. 4).

use super::series::Shown;
use crate::document::audit::{Audit, Record, SamplePoint};
use crate::format;
use crate::render::html::follow::{Axis, TextPiece, piece};
use crate::render::html::markup::{Html, fill};
use crate::render::html::svg::{Frame, Scale, drawing_that, hover, nice_end, note};

/// Dots beyond this many hide one another and make the page heavy.
const MOST_DOTS: usize = 1500;
/// Records that get a ring and their id.
const RINGS: usize = 25;
/// Where the largest value is this many times the median, a linear axis would show a smear.
const SKEWED: f64 = 12.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 306.0;
const HEIGHT: f64 = 360.0;

/// What η is drawn against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Against {
    Loss,
    GradientNorm,
}

impl Against {
    fn of(self, p: &SamplePoint) -> f64 {
        match self {
            Self::Loss => p.loss,
            Self::GradientNorm => p.gradient_norm,
        }
    }

    fn ring(self, r: &Record) -> f64 {
        match self {
            Self::Loss => r.loss,
            Self::GradientNorm => r.gradient_norm,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::GradientNorm => "gradient norm",
        }
    }
}

/// A scale for values: linear from 0, logarithmic where they are skewed and not negative.
fn scale(mut values: Vec<f64>, range: [f64; 2]) -> Scale {
    values.retain(|v| v.is_finite());
    values.sort_unstable_by(f64::total_cmp);
    let (Some(&lo), Some(&hi)) = (values.first(), values.last()) else {
        return Scale::linear([0.0, 1.0], range);
    };
    let at = |q: f64| values[((values.len() - 1) as f64 * q) as usize];
    if lo >= 0.0 && at(0.5) > 0.0 && hi > SKEWED * at(0.5) {
        // Tiny values tell nothing here: what lies under the 2nd percentile is drawn on the axis.
        let low = at(0.02).max(hi * 1e-6);
        return Scale::log([low.min(0.5 * hi), hi * 1.15], range);
    }
    match lo < 0.0 {
        true => Scale::linear([lo - 0.04 * (hi - lo), hi + 0.04 * (hi - lo)], range),
        false => Scale::linear([0.0, if hi > 0.0 { nice_end(1.02 * hi, 6) } else { 1.0 }], range),
    }
}

/// The scatter plot. Records with much η and an ordinary loss lie in the shaded corner: that is what loss misses.
pub(crate) fn scatter(audit: &Audit, series: &[Shown], against: Against) -> Html {
    let r = &audit.records;
    let (usual, missed) = match against {
        Against::Loss => (r.loss.p95, r.missed_by_loss),
        Against::GradientNorm => (r.gradient_norm.p95, r.missed_by_gradient),
    };
    let rings: Vec<&Record> =
        r.most.iter().take(RINGS).filter(|m| m.eta.is_finite() && against.ring(m).is_finite()).collect();
    let xs = r.sample.iter().map(|p| against.of(p)).chain(rings.iter().map(|m| against.ring(m)));
    let x = scale(xs.collect(), Frame::ACROSS);
    let y = scale(r.sample.iter().map(|p| p.eta).chain(rings.iter().map(|m| m.eta)).collect(), [BOTTOM, TOP]);
    let frame = Frame { x, y, top: TOP, bottom: BOTTOM };
    let [left, right] = Frame::ACROSS;
    let (corner_x, corner_y) = (x.at(usual), y.at(r.eta.p99));
    let mut body = frame.vertical_that("information loss η", Axis::Eta);
    body.push(fill(
        r#"<rect class="corner" x="{}" y="{}" width="{}" height="{}"/>"#,
        &[&left, &TOP, &(corner_x - left).max(0.0), &(corner_y - TOP).max(0.0)],
    ));
    body.push(series.iter().map(|s| dots(audit, &frame, s, against, series.len() > 1)).collect());
    body.push(rings.iter().map(|m| ring(&frame, m, against)).collect());
    body.push(frame.horizontal(against.name()));
    let cross = format!("M{corner_x:.1} {TOP}V{BOTTOM}M{left} {corner_y:.1}H{right:.1}");
    body.push(fill(r#"<path class="mark" d="{}"/>"#, &[&cross]));
    body.push(note([left + 8.0, TOP + 16.0], "start", &format!("{} alone misses these", against.name())));
    let described = format!(
        "Scatter plot of the information loss η against the {}: {} of the records above the 99th percentile of η have a {} \
         below its 95th percentile.",
        against.name(),
        format::share(missed),
        against.name()
    );
    drawing_that(HEIGHT, &[piece(described)], &frame, &body)
}

/// The dots of one series as one path.
fn dots(audit: &Audit, frame: &Frame, s: &Shown, against: Against, named: bool) -> Html {
    let sample = &audit.records.sample;
    let stride = sample.len().div_ceil(MOST_DOTS).max(1);
    let square = s.slot % 2 == 1;
    let mine = |p: &&SamplePoint| {
        s.members.contains(&(p.series as usize)) && p.eta.is_finite() && against.of(p).is_finite()
    };
    let mut d = String::new();
    for p in sample.iter().step_by(stride).filter(mine) {
        let (px, py) = (frame.x.at(against.of(p)), frame.y.at(p.eta));
        // A square is a short thick stroke: square caps on a stroke of no length vanish in print.
        d.push_str(&match square {
            true => format!("M{:.1} {py:.1}h4", px - 2.0),
            false => format!("M{px:.1} {py:.1}h0"),
        });
    }
    let name = if named { hover(&s.name) } else { Html::new() };
    match square {
        true => fill(r#"<path class="dots c{}line square" d="{}">{}</path>"#, &[&s.slot, &d, &name]),
        false => fill(r#"<path class="dots c{}line" d="{}">{}</path>"#, &[&s.slot, &d, &name]),
    }
}

fn ring(frame: &Frame, m: &Record, against: Against) -> Html {
    let value = against.ring(m);
    let text = [
        piece(format!("record {}: η ", m.id)),
        TextPiece::Eta(m.eta),
        piece(format!(", {} {}", against.name(), format::number(value))),
    ];
    fill(
        r#"<circle class="ring" cx="{}" cy="{}" r="5"{}>{}</circle>"#,
        &[
            &frame.x.at(value),
            &frame.y.at(m.eta),
            &TextPiece::attribute(&text),
            &hover(&TextPiece::text(&text)),
        ],
    )
}
