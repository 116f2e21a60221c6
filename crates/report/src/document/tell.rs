//! How often somebody who knows all else tells two values of an attribute apart.

use leakscope_core::special::normal_cdf;
use serde::{Deserialize, Serialize};

/// Right at most this often, two possibilities count as not told apart: six times of ten, where a coin is right five.
pub const PROTECT_AT: f64 = 0.6;

/// Every attribute, and the label where it is secret, with the two values that are told apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tell {
    /// One entry an attribute.
    pub attributes: Vec<ValuePair>,
    /// Attributes that were not tried, as that would take too long or cannot be done; no page with any of them is green.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why they were not, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_because: Option<String>,
    /// Told apart at most this often, an attribute counts as protected (`--protect-at`).
    #[serde(default = "protect_at")]
    pub protect_at: f64,
    /// How much work was allowed (`--tell-budget`), where that is not what is usual: advice holds where as much is allowed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Allowance>,
    /// How much work is worth allowing, where that is what is missing: values that were not settled, or not tried for time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_work: Option<Allowance>,
}

/// How much work telling values apart may take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allowance {
    /// As much as it takes.
    All,
    /// About so many seconds.
    Seconds(f64),
}

impl Allowance {
    /// The option as a message names it.
    pub(crate) fn option(self) -> String {
        match self {
            Self::All => "⟨tell_budget=all⟩".into(),
            Self::Seconds(seconds) => format!("⟨tell_budget={seconds}⟩"),
        }
    }
}

/// Two values of one attribute: the probability of naming the right one, both being equally likely beforehand, at most
/// (Neyman and Pearson, for every attacker). A coin toss has ½.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValuePair {
    /// The column, or the target.
    pub attribute: String,
    /// One value, as it is written.
    pub from: String,
    /// The other.
    pub to: String,
    /// For the record that is told apart most often.
    pub worst: f64,
    /// For the median record.
    pub median: f64,
    /// Id of the former.
    pub worst_record: String,
    /// For a category of more than two levels: all of them at once, equally likely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub among_all: Option<AmongAll>,
    /// Whether the attribute is the label.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub label: bool,
    /// How far apart the models with either value are for that record, in standard deviations of the noise over all releases: the
    /// noise that hides it is proportional to this. Absent where no noise does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// Where the refits that were allowed did not settle that distance: it is at least this; `distance` and `worst` are what is
    /// not excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Why the worst record is told for certain, whatever the noise on the coefficients is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<Shows>,
    /// The levels whose listing one record decides, where that is why; the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels_shown: Vec<String>,
    /// Whether the values were named, and are nearer to one another than a standard deviation of the column: values further apart
    /// were not tried.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub near: bool,
}

impl ValuePair {
    /// The unit of the two values, after a space; dates and levels have none.
    pub fn unit(&self, unit: Option<&str>) -> String {
        let is_number = |text: &String| text.trim_start_matches("about ").parse::<f64>().is_ok();
        let unit = unit.filter(|_| is_number(&self.from) && is_number(&self.to));
        unit.map(|u| format!(" {u}")).unwrap_or_default()
    }

    /// Whether it is known how often the worst record is told apart, as far as that matters.
    pub fn is_settled(&self) -> bool {
        self.at_least.is_none()
    }

    /// How often it is told apart at least, where that was not settled: the likelihood ratio attains it.
    pub fn told_at_least(&self) -> Option<f64> {
        self.at_least.map(|distance| normal_cdf(0.5 * distance))
    }

    /// Whether how often it is told apart is open, and that matters: more than the limit is not excluded.
    pub fn is_open(&self, protect_at: f64) -> bool {
        !self.is_settled() && self.worst > protect_at
    }

    /// How often the values of the median record are told apart at most; none where that was not settled either, since no record
    /// is told apart more often than the worst.
    pub fn settled_median(&self, protect_at: f64) -> Option<f64> {
        let open = self.told_at_least().filter(|least| self.is_open(protect_at) && self.median > *least);
        open.is_none().then_some(self.median)
    }
}

/// What shows a value that no noise on the coefficients hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// The scale or public unit of its column was read off the data, and would have been another, or none.
    Unit,
    /// A level is listed for the records that have it, and would not have been with one fewer.
    Levels,
    /// With the other value there is no model.
    NoModel,
}

/// Which of all levels of a category a record has, each equally likely beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AmongAll {
    /// How many levels there are: a guess is right once in so many.
    pub levels: usize,
    /// Probability of naming the right one for the worst record, at most.
    pub worst: f64,
}

fn protect_at() -> f64 {
    PROTECT_AT
}

impl Tell {
    /// The option that allows the work that is missing, as a message names it: with a value that runs as it stands.
    pub fn next_budget(&self) -> String {
        self.more_work.unwrap_or(Allowance::All).option()
    }

    /// The attribute that is told apart most often, as far as that is settled.
    pub fn worst(&self) -> Option<&ValuePair> {
        // What is only not excluded comes after what is known.
        // Of those that are certain, the one that more noise hides last.
        let apart = |t: &ValuePair| t.distance.filter(|_| t.shows.is_none()).unwrap_or(f64::INFINITY);
        let more = |a: &&ValuePair, b: &&ValuePair| {
            self.shown(a).total_cmp(&self.shown(b)).then(apart(a).total_cmp(&apart(b)))
        };
        self.attributes.iter().max_by(more)
    }

    /// What was found of an attribute by its name; nothing where it was not tried.
    pub fn of_attribute(&self, name: &str) -> Option<&ValuePair> {
        self.attributes.iter().find(|t| !t.label && t.attribute == name)
    }

    /// The probability of an attribute as it is shown: what is not excluded, or what is known where that is open.
    pub fn shown(&self, pair: &ValuePair) -> f64 {
        match pair.told_at_least() {
            Some(least) if pair.is_open(self.protect_at) => least,
            Some(_) | None => pair.worst,
        }
    }
}
