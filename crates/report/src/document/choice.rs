//! Choices that documents record, each with its name in the JSON. Those that core makes are core's own types.

pub use leakscope_core::choice::{Kind, OneHot, Scale, Signal};
use leakscope_core::glm;
use serde::{Deserialize, Serialize};

/// The colour of a page, calmest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// Every number on the page is within the limits, and one of them covers every attacker.
    Green,
    /// Something is not shown, or lies between the limits.
    Amber,
    /// A number on the page says that records are not protected.
    Red,
}

impl Colour {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Amber => "amber",
            Self::Red => "red",
        }
    }
}

/// What the values of a column of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnKind {
    /// Numbers.
    Number,
    /// One of several levels.
    Category,
    /// Not looked at: the column was dropped.
    Unread,
}

impl ColumnKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Category => "category",
            Self::Unread => "unread",
        }
    }
}

/// What a column of a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnRole {
    /// An attribute that the model reads.
    Feature,
    /// What is predicted.
    Target,
    /// Whose record a row is.
    Id,
    /// Weights of records.
    Weights,
    /// The group of a record.
    Group,
    /// Nothing: the column was left out.
    Dropped,
}

impl ColumnRole {
    const ALL: [Self; 6] = [Self::Feature, Self::Target, Self::Id, Self::Weights, Self::Group, Self::Dropped];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Target => "target",
            Self::Id => "id",
            Self::Weights => "weights",
            Self::Group => "group",
            Self::Dropped => "dropped",
        }
    }
}

/// What a column is for, one thing or several: written as `feature, group`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Roles(pub Vec<ColumnRole>);

impl Roles {
    /// Whether a role is among them.
    pub fn include(&self, role: ColumnRole) -> bool {
        self.0.contains(&role)
    }
}

impl std::fmt::Display for Roles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|r| r.name()).collect();
        f.write_str(&names.join(", "))
    }
}

impl From<Roles> for String {
    fn from(roles: Roles) -> Self {
        roles.to_string()
    }
}

impl TryFrom<String> for Roles {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let role = |name: &str| ColumnRole::ALL.into_iter().find(|r| r.name() == name);
        let roles: Option<Vec<ColumnRole>> = text.split(", ").map(role).collect();
        roles.map(Self).ok_or_else(|| format!("`{text}`: expected roles such as `feature, group`"))
    }
}

/// Whether leakage counts that columns are scaled by their own data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ScalingMode {
    /// What a record does to means and spreads of its columns counts.
    #[default]
    Counted,
    /// Means and spreads are taken as public.
    Given,
}

/// What the series of a histogram are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesBy {
    /// The classes of the target.
    Class,
    /// The groups of a column.
    Group,
    /// All records are one series.
    All,
}

/// A statistic of η over records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The largest, as a limit names it.
    Eta,
    /// The largest, as a target names it.
    Max,
    /// The mean.
    Mean,
    /// The 99th percentile.
    P99,
}

impl Statistic {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eta => "eta",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::P99 => "p99",
        }
    }
}

/// What is measured on rows that the model was not fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Share of rows whose class is predicted right.
    Accuracy,
    /// Mean squared error.
    Mse,
    /// Mean Poisson deviance.
    Deviance,
}

impl Metric {
    /// Its name.
    pub fn name(self) -> &'static str {
        glm::Metric::from(self).name()
    }
}

impl From<glm::Metric> for Metric {
    fn from(metric: glm::Metric) -> Self {
        match metric {
            glm::Metric::Accuracy => Self::Accuracy,
            glm::Metric::MeanSquaredError => Self::Mse,
            glm::Metric::Deviance | glm::Metric::GammaDeviance | glm::Metric::TweedieDeviance(_) => {
                Self::Deviance
            }
        }
    }
}

impl From<Metric> for glm::Metric {
    fn from(metric: Metric) -> Self {
        match metric {
            Metric::Accuracy => Self::Accuracy,
            Metric::Mse => Self::MeanSquaredError,
            Metric::Deviance => Self::Deviance,
        }
    }
}

/// Why a balancing stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The spread is within the tolerance.
    Converged,
    /// All iterations were used.
    Iterations,
    /// A weight has vanished.
    Vanished,
    /// The reweighted model has no fit.
    NoFit,
}

/// How a gradient is clipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum ClipKind {
    /// At most C.
    Hard,
    /// Smoothly, at most 1.12 C.
    Gelu,
    /// Not at all.
    None,
}

/// Numbers that a network computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Single precision, the products inside passes rounded to eleven bits (tf32): on a GPU alone, faster, no bounds stated.
    Tf32,
    /// Double precision: twice the memory and the time.
    F64,
}

impl Precision {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::F64 => "f64",
        }
    }
}

/// How a gradient moves the parameters, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Optimizer {
    /// Gradient descent.
    Sgd {
        /// μ of `m ← μ m + g`.
        momentum: f64,
    },
    /// Adam with its usual constants.
    Adam,
    /// One of another framework, by its name there.
    Other(String),
}

impl std::fmt::Display for Optimizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sgd { momentum } => write!(f, "SGD with momentum {momentum}"),
            Self::Adam => f.write_str("Adam"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

impl From<Optimizer> for String {
    fn from(optimizer: Optimizer) -> Self {
        optimizer.to_string()
    }
}

impl From<String> for Optimizer {
    fn from(text: String) -> Self {
        let momentum = text.strip_prefix("SGD with momentum ").and_then(|m| m.parse().ok());
        match momentum {
            Some(momentum) => Self::Sgd { momentum },
            None if text == Self::Adam.to_string() => Self::Adam,
            None => Self::Other(text),
        }
    }
}

/// How batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Every record with the same probability, independently: what accountants assume.
    #[default]
    Poisson,
    /// Fixed batches from a shuffled order; no amplification is claimed.
    Shuffle,
}

impl Sampling {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Shuffle => "shuffle",
        }
    }
}

/// Which records an accuracy is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccuracyOn {
    /// Test records.
    Test,
    /// Training records.
    Training,
}

impl AccuracyOn {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Training => "training",
        }
    }
}

/// Whose accounts a run keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Tracked {
    /// A panel of 370 (all of no more) at every step, and besides all that a step draws.
    Panel,
    /// Those drawn.
    Drawn,
    /// All of them, at the cost of a pass over the data a step.
    Every,
}

/// A measure of a record under a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Norm of the gradient before clipping.
    GradientNorm,
    /// dFIL.
    Dfil,
    /// η.
    Eta,
    /// Norm of PLIS.
    Plis,
}

impl Measure {
    /// The column of a table of records that has it.
    pub fn column(self) -> &'static str {
        match self {
            Self::GradientNorm => "gradient_norm",
            Self::Dfil => "dfil",
            Self::Eta => "eta",
            Self::Plis => "plis",
        }
    }
}

/// Which two data sets a trained network does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbours {
    /// One record is there or is not.
    AddRemove,
    /// One record takes another value.
    Replace,
    /// A record is there, or an empty one in its place.
    ZeroOut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimisers_are_written_in_words_and_read_back() {
        let names = [(Optimizer::Sgd { momentum: 0.9 }, "SGD with momentum 0.9"), (Optimizer::Adam, "Adam")];
        for (optimizer, words) in names.into_iter().chain([(Optimizer::Other("Adagrad".into()), "Adagrad")]) {
            let written = serde_json::to_value(&optimizer).unwrap();
            assert_eq!(written, words);
            assert_eq!(serde_json::from_value::<Optimizer>(written).unwrap(), optimizer);
        }
    }

    #[test]
    fn roles_are_written_as_text_and_read_back() {
        let all = ColumnRole::ALL.map(|r| Roles(vec![r]));
        for roles in all.into_iter().chain([Roles(vec![ColumnRole::Dropped, ColumnRole::Group])]) {
            let written = serde_json::to_value(&roles).unwrap();
            assert_eq!(written, roles.to_string());
            assert_eq!(serde_json::from_value::<Roles>(written).unwrap(), roles);
        }
        let unknown = serde_json::from_value::<Roles>("feature, hat".into()).unwrap_err();
        assert!(unknown.to_string().contains("feature, hat"), "{unknown}");
    }
}
