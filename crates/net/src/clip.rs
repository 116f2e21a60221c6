//! How a gradient is made short before it is released: `clip(g) = s(n) g`, `n = ‖g‖`.
//!
//! Its Jacobian is `D = s I + (s'/n) g gᵀ`, symmetric, so everything about the clipped gradient follows from three
//! numbers of the unclipped one, `n`, `g·ġ`, `‖ġ‖²` (MATHS §5.1).

use crate::error::{Result, check};
use leakscope_core::special::{normal_cdf, normal_pdf};
use serde::{Deserialize, Serialize};

/// The way gradients are clipped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Clip {
    /// Not at all: `s = 1`.
    None,
    /// `s = min(1, C/n)`. Not differentiable at n = C, where the derivative from below is taken.
    Hard {
        /// C.
        bound: f64,
    },
    /// `s = 1/(GELU(n/C − 1) + 1)`: differentiable, norm at most [`GELU_OVERSHOOT`] C (Edmunds §2.2, Guo 2022).
    Gelu {
        /// C.
        bound: f64,
    },
}

/// The largest value of `r/(GELU(r − 1) + 1)`, 1.1152189… at r = 1.5487, rounded up. The papers round it *down*, to
/// 1.115, which is no bound.
pub const GELU_OVERSHOOT: f64 = 1.115_219;

impl Clip {
    /// Checks the bound.
    pub fn check(self) -> Result<()> {
        match self {
            Self::None => Ok(()),
            Self::Hard { bound } | Self::Gelu { bound } => {
                check(bound > 0.0 && bound.is_finite(), "the clipping bound C", bound, "positive and finite")
            }
        }
    }

    /// C, the unit of the noise: noise of multiplier σ has standard deviation σC. 1 where nothing is clipped.
    pub fn unit(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Hard { bound } | Self::Gelu { bound } => bound,
        }
    }

    /// The longest gradient that can come out; absent where nothing is clipped. This, not C, is the sensitivity.
    pub fn longest(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Hard { bound } => Some(bound),
            Self::Gelu { bound } => Some(GELU_OVERSHOOT * bound),
        }
    }

    /// `s(n)` and `s'(n)`.
    pub fn factor(self, norm: f64) -> (f64, f64) {
        match self {
            Self::None => (1.0, 0.0),
            Self::Hard { bound } if norm <= bound => (1.0, 0.0),
            Self::Hard { bound } => (bound / norm, -bound / norm / norm),
            Self::Gelu { bound } => {
                let h = norm / bound - 1.0;
                let cdf = normal_cdf(h);
                let s = 1.0 / (h * cdf + 1.0);
                (s, -s * s * (cdf + h * normal_pdf(h)) / bound)
            }
        }
    }

    /// `s + n s'`, the derivative of the released norm. Beyond the bound it is the difference of two nearly equal
    /// numbers: 0 for the hard clip, `s²(1 − Φ(h) − h(h+1)φ(h))` with `h = n/C − 1` for the smooth one.
    pub fn slope(self, norm: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Hard { bound } if norm <= bound => 1.0,
            Self::Hard { .. } => 0.0,
            Self::Gelu { bound } => {
                let h = norm / bound - 1.0;
                let s = self.factor(norm).0;
                let pdf = normal_pdf(h);
                // far out φ is 0 before h(h+1) is infinite
                if pdf == 0.0 { 0.0 } else { s * s * (normal_cdf(-h) - h * (h + 1.0) * pdf) }
            }
        }
    }

    /// What the clip adds to the relative size of a Jacobian: r with
    /// `‖D k‖²/‖clip(h)‖² = ‖k‖²/n² + r (h·k)²`, `r = (2ss'/n + s'²)/(sn)²`, and its derivative in n.
    pub(crate) fn relative_bend(self, norm: f64) -> (f64, f64) {
        let n = norm;
        // a = s'/s, and its derivative
        let (a, a1) = match self {
            Self::None => return (0.0, 0.0),
            Self::Hard { bound } if n <= bound => return (0.0, 0.0),
            Self::Hard { .. } => (-1.0 / n, 1.0 / (n * n)),
            Self::Gelu { bound } => {
                let h = n / bound - 1.0;
                let (cdf, pdf) = (normal_cdf(h), normal_pdf(h));
                let g = h * cdf + 1.0;
                // far out φ is 0 before h² is infinite
                let (once, twice) =
                    if pdf == 0.0 { (cdf, 0.0) } else { (cdf + h * pdf, (2.0 - h * h) * pdf) };
                let a = -once / bound / g;
                (a, a * a - twice / (bound * bound) / g)
            }
        };
        let cube = n * n * n;
        let r = (2.0 * a + n * a * a) / cube;
        (r, (2.0 * a1 + a * a + 2.0 * n * a * a1) / cube - 3.0 * r / n)
    }
}

/// The clip of one record: `s`, and what its Jacobian needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clipped {
    /// `n = ‖g‖`.
    norm: f64,
    pub(crate) s: f64,
    /// `2 s s'/n + s'²`, so that `D² = s² I + this · g gᵀ`.
    pub(crate) bend: f64,
    /// `s + n s'`: the derivative of the clipped norm.
    pub(crate) slope: f64,
}

impl Clipped {
    pub(crate) fn new(clip: Clip, norm: f64) -> Self {
        let (s, s1) = clip.factor(norm);
        let bend = if norm > 0.0 { s1 / norm * (2.0 * s + norm * s1) } else { 0.0 };
        Self { norm, s, bend, slope: clip.slope(norm) }
    }

    /// `‖D ġ‖²` from `g·ġ` and `‖ġ‖²`: the part of ġ across g shrinks by s, the part along it by `s + n s'`.
    pub(crate) fn square(&self, cross: f64, square: f64) -> f64 {
        if !(cross.is_finite() && square.is_finite()) {
            return f64::NAN;
        }
        let along = if self.norm > 0.0 { cross / self.norm } else { 0.0 };
        let across = (square - along * along).max(0.0);
        // never above ‖ġ‖²: rounding may make the part along it longer than the whole
        let along = (along * along).min(square.max(0.0));
        self.s * self.s * across + self.slope * self.slope * along
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smooth_clip_stays_below_its_stated_norm_and_reaches_it() {
        let clip = Clip::Gelu { bound: 2.0 };
        let longest =
            (1..100_000).map(|i| f64::from(i) * 1e-4).map(|n| n * clip.factor(n).0).fold(0.0, f64::max);
        assert!(longest <= GELU_OVERSHOOT * 2.0 && longest > 1.115_218 * 2.0, "{longest}");
    }

    #[test]
    fn the_derivative_is_that_of_the_factor() {
        for clip in [Clip::Hard { bound: 1.3 }, Clip::Gelu { bound: 1.3 }, Clip::None] {
            for n in [0.2, 1.0, 1.7, 5.0, 30.0] {
                let h = 1e-5;
                let fd = (clip.factor(n + h).0 - clip.factor(n - h).0) / (2.0 * h);
                assert!((clip.factor(n).1 - fd).abs() < 1e-9, "{clip:?} {n}");
            }
        }
    }

    #[test]
    fn the_relative_bend_is_that_of_the_jacobian_and_has_its_derivative() {
        for clip in [Clip::Hard { bound: 1.3 }, Clip::Gelu { bound: 1.3 }, Clip::None] {
            for n in [0.2, 1.0, 1.7, 5.0, 30.0] {
                let (r, r1) = clip.relative_bend(n);
                let c = Clipped::new(clip, n);
                let expected = c.bend / (c.s * n).powi(2);
                assert!(
                    (r - expected).abs() <= 1e-12 * expected.abs().max(1e-9),
                    "{clip:?} {n}: {r} {expected}"
                );
                let h = 1e-5 * n;
                let fd = (clip.relative_bend(n + h).0 - clip.relative_bend(n - h).0) / (2.0 * h);
                assert!((r1 - fd).abs() <= 1e-7 * (1e-6 + fd.abs()), "{clip:?} {n}: {r1} {fd}");
            }
        }
    }

    #[derive(serde::Deserialize)]
    struct Row {
        norm: f64,
        factor: f64,
        derivative: f64,
        slope: f64,
    }

    #[derive(serde::Deserialize)]
    struct Golden {
        clips: Vec<Row>,
    }

    /// Against 1,000 digits (testdata/net/confident.py), up to 38 times the bound.
    #[test]
    fn the_smooth_clip_keeps_its_digits_far_out() {
        let golden: Golden =
            serde_json::from_str(include_str!("../../../testdata/net/confident.json")).unwrap();
        let clip = Clip::Gelu { bound: 2.0 };
        for r in &golden.clips {
            let (s, s1) = clip.factor(r.norm);
            let h = r.norm / 2.0 - 1.0;
            for (actual, exact, tolerance) in [
                (s, r.factor, 1e-15),
                (s1, r.derivative, 4e-15),
                // exp(−h²/2) turns the rounding of its argument into h² of its own
                (clip.slope(r.norm), r.slope, 4e-15 * (1.0 + h * h)),
            ] {
                assert!((actual - exact).abs() <= tolerance * exact.abs(), "{actual:e} against {exact:e}");
            }
        }
        assert!(golden.clips.len() == 10 && golden.clips.iter().any(|r| r.slope.abs() < 1e-290));
        for norm in [1e3, 1e160, 1e300] {
            assert_eq!(clip.slope(norm), 0.0);
            assert!((clip.factor(norm).0 * norm / 2.0 - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn a_bound_that_is_no_bound_is_refused() {
        for bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Clip::Hard { bound }.check().is_err());
            assert!(Clip::Gelu { bound }.check().is_err());
        }
        assert_eq!(
            Clip::Gelu { bound: 1.0 }.factor(0.0).0,
            1.0 / (1.0 - 0.5 * (1.0 - 0.682_689_492_137_086))
        );
    }
}
