//! Differential-privacy accounting: what a sequence of noisy releases costs.
//!
//! | module | what it holds | source |
//! |---|---|---|
//! | [`rdp`] | Rényi divergence of one release, conversion to (ε, δ) | Mironov, Talwar, Zhang 2019; Canonne, Kamath, Steinke 2020 |
//! | [`gaussian`] | the Gaussian mechanism analytically, Gaussian DP, zCDP | Balle, Wang 2018; Dong, Roth, Su 2022; Bun, Steinke 2016 |
//! | `pair` | the pair of distributions that dominates a release | Zhu, Dong, Wang 2022 |
//! | `grid` | pessimistic and optimistic discretisation of the privacy loss | Doroshenko et al. 2022 |
//! | `compose` | tilted composition by FFT, with its rounding error bounded | |
//! | `counting` | what holds without a grid: one step, total variation, counts of large losses | |
//! | [`accountant`] | certified ε, δ and trade-off curve of a composition | Kulynych et al. 2024 |
//! | [`mod@account`] | one composition by every accountant that applies | |
//! | [`one_run`] | a lower bound on ε from canaries in one run | Steinke, Nasr, Jagielski 2023 |
//! | [`mod@calibrate`] | the noise, rate or number of steps for a target | |
//!
//! Noise is in units of the sensitivity under *add/remove* adjacency: the clipping norm of DP-SGD. Under
//! *replace* adjacency the same release has twice that sensitivity. The adjacency is always said, never assumed.

pub mod account;
pub mod accountant;
pub mod calibrate;
mod compose;
mod counting;
pub mod gaussian;
mod grid;
pub mod one_run;
mod pair;
pub mod rdp;

use crate::error::Setting;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

pub use account::{Account, account};
pub use accountant::{Accountant, TradeOffPoint};
pub use calibrate::{Calibration, Target, Unknown, calibrate};

/// Which two data sets an attacker must not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One record is there or is not: the sum of clipped contributions moves by C
    AddRemove,
    /// One record takes another value: the sum moves by up to 2C
    Replace,
}

impl Adjacency {
    /// Sensitivity of a sum of contributions of norm at most one.
    pub fn sensitivity(self) -> f64 {
        match self {
            Self::AddRemove => 1.0,
            Self::Replace => 2.0,
        }
    }
}

/// One noisy release.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Mechanism {
    /// Poisson-sampled sum of clipped vectors plus `N(0, sigma² C² I)`; `rate` 1 is the plain Gaussian mechanism.
    Gaussian {
        /// Noise multiplier: standard deviation over the clipping norm.
        sigma: f64,
        /// Probability of each record to take part.
        rate: f64,
    },
    /// Sum plus Laplace noise of this scale (in units of the ℓ₁ sensitivity under add/remove).
    Laplace {
        /// Scale b of the noise.
        scale: f64,
    },
    /// Each record's own value kept with probability 1 − `noise`, else drawn uniformly (Guo eq. 8).
    RandomisedResponse {
        /// Number of values M.
        categories: u64,
        /// Probability of a uniform draw.
        noise: f64,
    },
}

impl Mechanism {
    /// The mechanism of DP-SGD: noise multiplier and sampling rate.
    pub fn gaussian(sigma: f64, rate: f64) -> Self {
        Self::Gaussian { sigma, rate }
    }

    /// Either an error that says what is wrong, or the parameters describe a private mechanism.
    pub fn check(self, adjacency: Adjacency) -> Result<()> {
        match self {
            Self::Gaussian { sigma, rate } => {
                representable(Setting::Sigma, sigma)?;
                Setting::Rate.probability(rate)
            }
            Self::Laplace { scale } => representable(Setting::LaplaceScale, scale),
            Self::RandomisedResponse { categories, noise } => {
                Setting::Categories.in_range(categories as f64, categories >= 2, "at least 2")?;
                Setting::ResponseNoise.probability(noise)?;
                match adjacency {
                    Adjacency::Replace => Ok(()),
                    Adjacency::AddRemove => Err(Error::NotApplicable {
                        subject: "randomised response",
                        setting: "add/remove adjacency",
                        advice: "every record answers, so account for it under replace adjacency",
                    }),
                }
            }
        }
    }

    /// Probabilities of a randomised response: of the true value and of each other one (Guo eq. 8).
    pub(crate) fn response(categories: u64, noise: f64) -> (f64, f64) {
        let m = categories as f64;
        (1.0 - noise + noise / m, noise / m)
    }

    /// The pure-DP ε of the mechanism, where it has one.
    pub fn pure_epsilon(self, adjacency: Adjacency) -> Option<f64> {
        match self {
            Self::Gaussian { .. } => None,
            Self::Laplace { scale } => Some(adjacency.sensitivity() / scale),
            Self::RandomisedResponse { categories, noise } => {
                // ln(a/b) with a/b = 1 + (1−q)M/q
                Some(((1.0 - noise) * categories as f64 / noise).ln_1p())
            }
        }
    }
}

/// A number known to lie between two certified ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The true value is not below this.
    pub lower: f64,
    /// The true value is not above this.
    pub upper: f64,
}

impl Interval {
    /// Width over the upper end; 0 of a point at zero.
    pub fn relative_width(self) -> f64 {
        if self.upper > self.lower { (self.upper - self.lower) / self.upper.abs() } else { 0.0 }
    }

    /// A value known in closed form, to nine digits.
    pub(crate) fn around(value: f64) -> Self {
        Self { lower: value * (1.0 - 1e-9), upper: value * (1.0 + 1e-9) }
    }

    /// What is left of it where the value is known not to exceed `most`.
    pub(crate) fn at_most(self, most: f64) -> Self {
        Self { lower: self.lower.min(most), upper: self.upper.min(most) }
    }

    /// Whether `x` lies inside.
    pub fn contains(self, x: f64) -> bool {
        self.lower <= x && x <= self.upper
    }
}

pub(crate) fn in_range(subject: &'static str, value: f64, ok: bool, expected: &'static str) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::OutOfRange { subject, value, expected }) }
}

pub(crate) fn positive(subject: &'static str, value: f64) -> Result<()> {
    in_range(subject, value, value > 0.0 && value.is_finite(), "a positive number")
}

/// Noise whose square is a number too.
fn representable(setting: Setting, value: f64) -> Result<()> {
    setting.positive(value)?;
    setting.in_range(value, (1e-100..=1e100).contains(&value), "a number between 1e-100 and 1e100")
}

/// δ must be a probability strictly between 0 and 1, large enough for its tails to be represented.
pub(crate) fn check_delta(delta: f64) -> Result<()> {
    Setting::Delta.in_range(delta, (1e-300..1.0).contains(&delta), "a probability from 1e-300 up, below 1")
}

/// ε must be finite; negative values are meaningful for trade-off curves.
pub(crate) fn check_epsilon(epsilon: f64) -> Result<()> {
    Setting::Epsilon.in_range(epsilon, epsilon.is_finite(), "a finite number")
}

/// Golden values of testdata/make_dp_golden.py.
#[cfg(test)]
pub(crate) fn golden(name: &str) -> Vec<Vec<f64>> {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../../../../testdata/dp_golden.json")).unwrap();
    serde_json::from_value(all[name].clone()).unwrap()
}
