//! η against what people usually look at, the loss or the gradient norm (Hannun fig. 4).

use super::series::Shown;
use crate::audit::{Audit, SamplePoint};
use crate::format;
use crate::svg::{Frame, Scale, drawing, hover, nice_end};

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
pub(crate) fn scatter(audit: &Audit, series: &[Shown], against: Against) -> String {
    let r = &audit.records;
    let xs = |p: &SamplePoint| against.of(p);
    let usual = match against {
        Against::Loss => r.loss.p95,
        Against::GradientNorm => r.gradient_norm.p95,
    };
    let ring = |m: &crate::audit::Record| match against {
        Against::Loss => m.loss,
        Against::GradientNorm => m.gradient_norm,
    };
    let rings: Vec<_> =
        r.most.iter().take(RINGS).filter(|m| m.eta.is_finite() && ring(m).is_finite()).collect();
    let x = scale(r.sample.iter().map(xs).chain(rings.iter().map(|m| ring(m))).collect(), Frame::ACROSS);
    let y = scale(r.sample.iter().map(|p| p.eta).chain(rings.iter().map(|m| m.eta)).collect(), [BOTTOM, TOP]);
    let frame = Frame { x, y, top: TOP, bottom: BOTTOM };
    let mut body = frame.vertical("information loss η");
    let [left, _] = Frame::ACROSS;
    let (corner_x, corner_y) = (x.at(usual), y.at(r.eta.p99));
    body.push_str(&format!(
        r#"<rect class="corner" x="{left}" y="{TOP}" width="{:.1}" height="{:.1}"/>"#,
        (corner_x - left).max(0.0),
        (corner_y - TOP).max(0.0)
    ));
    let stride = r.sample.len().div_ceil(MOST_DOTS).max(1);
    for s in series {
        let (mut dots, square) = (String::new(), s.slot % 2 == 1);
        let mine = |p: &&SamplePoint| {
            s.members.contains(&(p.series as usize)) && p.eta.is_finite() && xs(p).is_finite()
        };
        for p in r.sample.iter().step_by(stride).filter(mine) {
            let (px, py) = (x.at(xs(p)), y.at(p.eta));
            // A square is a short thick stroke: square caps on a stroke of no length vanish in print.
            dots.push_str(&match square {
                true => format!("M{:.1} {py:.1}h4", px - 2.0),
                false => format!("M{px:.1} {py:.1}h0"),
            });
        }
        let shape = if square { " square" } else { "" };
        body.push_str(&format!(
            r#"<path class="dots c{}line{shape}" d="{dots}">{}</path>"#,
            s.slot,
            if series.len() > 1 { hover(&s.name) } else { String::new() }
        ));
    }
    for m in rings {
        body.push_str(&format!(
            r#"<circle class="ring" cx="{:.1}" cy="{:.1}" r="5">{}</circle>"#,
            x.at(ring(m)),
            y.at(m.eta),
            hover(&format!(
                "record {}: η {}, {} {}",
                m.id,
                format::number(m.eta),
                against.name(),
                format::number(ring(m))
            ))
        ));
    }
    body.push_str(&frame.horizontal(against.name()));
    body.push_str(&format!(
        r#"<path class="mark" d="M{corner_x:.1} {TOP}V{BOTTOM}M{left} {corner_y:.1}H{:.1}"/>"#,
        Frame::ACROSS[1]
    ));
    body.push_str(&format!(
        r#"<text class="note" x="{:.1}" y="{:.1}">{} alone misses these</text>"#,
        left + 8.0,
        TOP + 16.0,
        against.name()
    ));
    let missed = match against {
        Against::Loss => r.missed_by_loss,
        Against::GradientNorm => r.missed_by_gradient,
    };
    let described = format!(
        "Scatter plot of the information loss η against the {}: {} of the records above the 99th percentile of η have a {} below its 95th percentile.",
        against.name(),
        format::share(missed),
        against.name()
    );
    drawing(HEIGHT, &described, &body)
}
