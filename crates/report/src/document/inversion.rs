//! What `leakscope net attack --method inversion` found, as plain data: records reconstructed from gradients, beside what the
//! gradients tell at most.

use super::net::{DataFacts, NetworkFacts};
use crate::document::choice::ClipKind;
use crate::figure::{Axis, Figure, Level as Line, Series};
use leakscope_core::claim::{Measured, Observed};
use serde::{Deserialize, Serialize};

/// Schema of [`Inversion`].
pub const SCHEMA: &str = "leakscope.net-inversion/1";

/// Records reconstructed from gradients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inversion {
    /// [`SCHEMA`].
    pub schema: String,
    /// Names of the tables that were written beside it.
    #[serde(default)]
    pub tables: Vec<String>,
    /// The network.
    pub network: NetworkFacts,
    /// The records; absent where the gradient was given, and nobody knows of which record it is.
    pub data: Option<DataFacts>,
    /// How records were looked for.
    pub attack: Settings,
    /// Records attacked.
    pub attacked: u64,
    /// Mean squared error of somebody who guesses the mean of the attacked records; of all records, where one was attacked.
    pub spread: f64,
    /// By noise, least first; empty where the gradient was given.
    pub levels: Vec<Level>,
    /// Where the gradient was given: what came of it.
    #[serde(rename = "given", default, skip_serializing_if = "Option::is_none")]
    pub gradient: Option<GradientOutcome>,
    /// Error against noise.
    pub figures: Vec<Figure>,
    /// The records that the page shows, best reconstructed first.
    pub shown: Vec<Attacked>,
    /// Seed of the records, the starts and the noise.
    pub seed: u64,
    /// Seconds that the attacks took.
    pub seconds: f64,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Whether its page names no record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact: bool,
}

/// What is made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The angle to the gradient seen, as published.
    #[default]
    Cosine,
    /// The distance to it in units of the noise, for an attacker who knows clip and noise.
    Likelihood,
}

/// What the attacker does about labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// They are known.
    #[default]
    Known,
    /// They are read off the gradient of the last layer.
    Recover,
    /// Each is tried, and the one that fits best is kept.
    Try,
}

/// How records were looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// What was made small.
    pub objective: Objective,
    /// How labels were had.
    pub labels: Labels,
    /// Records in one gradient.
    pub batch: u64,
    /// Steps of gradient descent between the weights that were seen; absent where a gradient was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_steps: Option<u64>,
    /// Steps of the attack.
    pub iterations: u64,
    /// Starts.
    pub restarts: u64,
    /// Length of its first steps, in widths of the range.
    pub learning_rate: f64,
    /// Weight of the total variation.
    pub total_variation: f64,
    /// Values that records can have.
    pub range: [f64; 2],
    /// How gradients were clipped.
    pub clip_kind: ClipKind,
    /// C; absent where nothing is clipped.
    pub clip: Option<f64>,
    /// σ of the run, or the one asked for, where gradients have noise: the colour is about it, other noises are for comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
}

/// What came of one noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// σ; 0 where there is none.
    pub sigma: f64,
    /// Standard deviation of the noise, σC.
    pub noise: f64,
    /// Mean squared error, a mean over records.
    pub mse: Observed,
    /// Structural similarity; absent where records are no images of 11 × 11 and more.
    pub ssim: Option<Observed>,
    /// Haar wavelet similarity; absent where records are no images of 16 × 16 and more.
    pub haar_psi: Option<Observed>,
    /// LPIPS, 0 where they look the same; absent without its weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lpips: Option<Observed>,
    /// Mean peak signal-to-noise ratio of the records that were not found exactly, in decibel.
    pub psnr: Option<f64>,
    /// Mean cosine of the gradient of the reconstruction and the one seen.
    pub cosine: f64,
    /// How often a reconstruction is nearer to its own record than to another of those attacked.
    pub identified: Observed,
    /// Share of labels that were right, where they were not known.
    pub labels_right: Option<Observed>,
    /// Mean squared error of the inversion of a first dense layer in one step, where the network begins with one.
    pub first_layer: Option<Observed>,
    /// Rank correlations over records.
    pub correlations: Vec<Correlation>,
    /// Least mean squared error of unbiased estimates (Cramér and Rao), mean over the records; absent without noise.
    pub cramer_rao: Option<f64>,
    /// Mean squared error of any estimate (van Trees) under a normal prior of the spread of the records: an estimate.
    /// Absent without noise.
    pub van_trees: Option<Measured>,
}

/// What of a record goes with how well it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leakage {
    /// Norm of PLIS, before the clip.
    Plis,
    /// dFIL.
    Dfil,
    /// Norm of the gradient.
    GradientNorm,
}

/// How well it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QualityKind {
    /// Mean squared error: less is closer.
    Mse,
    /// Structural similarity.
    Ssim,
    /// Haar wavelet similarity.
    HaarPsi,
    /// LPIPS: less is closer.
    Lpips,
}

/// A rank correlation over records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Correlation {
    /// Of this,
    pub leakage: Leakage,
    /// with that.
    pub quality: QualityKind,
    /// Spearman's ρ.
    pub rho: f64,
    /// Its 95% interval (Fisher's z with the variance of Bonett and Wright).
    pub interval: [f64; 2],
    /// Records.
    pub records: u64,
}

/// A record that was attacked, by level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attacked {
    /// Its number in the data.
    pub record: u64,
    /// Its id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its label.
    pub label: Option<String>,
    /// Norm of PLIS at σC = 1, before the clip.
    pub plis: f64,
    /// dFIL at σ = 1.
    pub dfil: f64,
    /// By level: how well it was found.
    #[serde(rename = "found")]
    pub outcomes: Vec<Outcome>,
}

/// How well a record was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Mean squared error.
    pub mse: f64,
    /// In decibel; absent where it was found exactly.
    pub psnr: Option<f64>,
    /// Structural similarity.
    pub ssim: Option<f64>,
    /// Haar wavelet similarity.
    pub haar_psi: Option<f64>,
    /// LPIPS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lpips: Option<f64>,
    /// Cosine of the gradients.
    pub cosine: f64,
}

/// What came of a gradient that was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradientOutcome {
    /// Cosine of the gradient of the reconstruction and the one given.
    pub cosine: f64,
    /// The labels, in words.
    pub labels: Vec<String>,
    /// Whether a first dense layer gave the record in one step.
    pub first_layer: bool,
    /// The file that the reconstruction is in.
    pub file: Option<String>,
}

/// Error against noise: what attacks achieved, and what information allows.
pub fn figures(levels: &[Level], spread: f64) -> Vec<Figure> {
    let noisy: Vec<&Level> = levels.iter().filter(|l| l.sigma > 0.0).collect();
    if noisy.len() < 2 {
        return vec![];
    }
    let observed = noisy.iter().map(|l| (l.sigma, l.mse.clone()));
    let mut series = vec![Series::observed("inversion", observed)];
    let first: Vec<(f64, Observed)> =
        noisy.iter().filter_map(|l| Some((l.sigma, l.first_layer.clone()?))).collect();
    if !first.is_empty() {
        series.push(Series::observed("first layer in one step", first));
    }
    let of = |f: fn(&Level) -> Option<f64>| noisy.iter().filter_map(move |l| Some((l.sigma, f(l)?)));
    series.push(Series::measured("any estimate, van Trees", of(|l| l.van_trees.map(|v| v.value))));
    series.push(Series::measured("unbiased estimates, Cramér–Rao", of(|l| l.cramer_rao)));
    vec![Figure {
        id: "error".into(),
        title: "Error against noise".into(),
        caption: "Mean squared error of a value. Attacks above the line of van Trees have not yet used all that the step \
                  tells; none can lie below it but by chance or by knowing more of such records than how far they spread."
            .into(),
        x: Axis::log("noise multiplier σ"),
        y: Axis::log("mean squared error of a value"),
        series,
        levels: vec![Line { value: spread, name: "guessing the mean".into() }],
        chosen: None,
    }]
}
