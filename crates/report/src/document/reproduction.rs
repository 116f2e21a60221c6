//! A table or figure of a paper beside ours: what was published, what we find, and what explains the difference.

pub use crate::figure::Claim as ClaimKind;
pub use crate::figure::panel::{AxisTitle, Captioned, Content, Panel, Pixels, PointSeries};
use leakscope_core::claim::{Bound, Measured, Observed};
use serde::{Deserialize, Serialize};

/// Version of `reproduce.json`.
pub const SCHEMA: &str = "leakscope.reproduce/1";

/// One reproduced table or figure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reproduction {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the programme.
    pub leakscope: String,
    /// When, in UTC.
    pub created: String,
    /// The name on the command line.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Paper and place in it.
    pub source: String,
    /// Whether the data were made up: published numbers then say nothing about ours.
    pub synthetic: bool,
    /// What was read or made.
    pub data: Vec<String>,
    /// Numbers, side by side.
    pub rows: Vec<Row>,
    /// Statements of the paper, and whether they hold here.
    pub claims: Vec<Claim>,
    /// How it was done, in sentences.
    pub method: Vec<String>,
    /// The figures; their numbers are in the CSV files.
    pub figures: Vec<Figure>,
    /// Seed of everything random.
    pub seed: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// A published number beside ours. What kind of number ours is follows from its type, never from a word.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// As printed in the paper; absent where the paper shows a picture only.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// How far ours may lie from the printed number: half a unit of its last digit unless the row says otherwise.
    pub tolerance: Option<f64>,
    /// Whether ours lies within it; absent without a published number or on made-up data.
    pub agrees: Option<bool>,
    /// Whether ours rounds to the printed digits, which a wider tolerance does not ask for; absent where `agrees` is.
    pub to_the_digit: Option<bool>,
    /// What explains a difference, or what should be known.
    pub why: String,
    /// What kind of number ours is.
    kind: ClaimKind,
}

/// Our number with its kind, made from one of the three types of claim. A plain number is one that was computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ours {
    value: f64,
    kind: ClaimKind,
}

impl Ours {
    /// A number that was computed from what attacks achieved: an interpolation or a difference of observed ones.
    pub fn achieved(value: f64) -> Self {
        Self { value, kind: ClaimKind::Observed }
    }
}

impl From<f64> for Ours {
    fn from(value: f64) -> Self {
        Measured::exact(value).into()
    }
}

impl From<Measured> for Ours {
    fn from(measured: Measured) -> Self {
        Self { value: measured.value, kind: ClaimKind::Measured }
    }
}

impl From<Bound> for Ours {
    fn from(bound: Bound) -> Self {
        Self { value: bound.value, kind: ClaimKind::Bound }
    }
}

impl From<&Observed> for Ours {
    fn from(observed: &Observed) -> Self {
        Self { value: observed.value, kind: ClaimKind::Observed }
    }
}

/// A number as a paper prints it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The number.
    pub value: f64,
    /// Decimals that it is printed with.
    pub digits: i32,
    /// How far ours may be from it, if that is more than its last digit allows.
    pub tolerance: f64,
}

impl Row {
    /// Ours beside a number printed with `digits` decimals.
    pub fn printed(name: impl Into<String>, paper: f64, digits: i32, ours: impl Into<Ours>) -> Self {
        Self::beside(name, Published { value: paper, digits, tolerance: 0.0 }, ours)
    }

    /// Ours beside a number printed with some decimals, with how far they may be apart if that is more than the last of
    /// them allows.
    pub fn within(
        name: impl Into<String>,
        (value, digits): (f64, i32),
        tolerance: f64,
        ours: impl Into<Ours>,
    ) -> Self {
        Self::beside(name, Published { value, digits, tolerance }, ours)
    }

    /// Ours beside a published number.
    pub fn beside(name: impl Into<String>, paper: Published, ours: impl Into<Ours>) -> Self {
        // A printed digit covers half a unit to either side; the last part is for the rounding of decimals.
        let half = 0.5 * 10_f64.powi(-paper.digits) * (1.0 + 1e-9);
        let tolerance = half.max(paper.tolerance);
        let row = Self::ours(name, ours);
        let apart = (row.ours - paper.value).abs();
        Self {
            paper: Some(paper.value),
            tolerance: Some(tolerance),
            agrees: Some(apart <= tolerance),
            to_the_digit: Some(apart <= half),
            ..row
        }
    }

    /// Ours where the paper prints no number.
    pub fn ours(name: impl Into<String>, ours: impl Into<Ours>) -> Self {
        let Ours { value, kind } = ours.into();
        Self {
            name: name.into(),
            paper: None,
            ours: value,
            tolerance: None,
            agrees: None,
            to_the_digit: None,
            why: String::new(),
            kind,
        }
    }

    /// What kind of number ours is.
    pub fn kind(&self) -> ClaimKind {
        self.kind
    }

    /// How ours fares, in a word or two; absent where there is nothing to judge by.
    pub fn judged(&self) -> Option<String> {
        Some(match (self.agrees?, self.to_the_digit?) {
            (_, true) => "agrees".into(),
            (true, _) => format!("within {}", crate::format::setting(self.tolerance?)),
            (false, _) => "differs".into(),
        })
    }

    /// With an explanation.
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}

/// A statement of a paper, and whether it holds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claim {
    /// What the paper says.
    pub claim: String,
    /// Whether it holds here.
    pub holds: bool,
    /// What we find.
    #[serde(rename = "found")]
    pub finding: String,
}

impl Claim {
    /// A statement and what we find.
    pub fn new(claim: impl Into<String>, holds: bool, finding: impl Into<String>) -> Self {
        Self { claim: claim.into(), holds, finding: finding.into() }
    }
}

/// A figure of one or several panels, each of which is also a file of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    /// Start of the names of its files.
    pub file: String,
    /// Heading.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// The panels.
    #[serde(skip)]
    pub panels: Vec<Panel>,
}

/// How many published numbers ours agree with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// To the digits they are printed with.
    pub to_the_digit: usize,
    /// Within the tolerance of their row, which may be wider.
    pub agree: usize,
    /// Of how many.
    pub of: usize,
}

impl Reproduction {
    /// How the published numbers fare.
    pub fn score(&self) -> Score {
        let count = |of: fn(&Row) -> Option<bool>| self.rows.iter().filter(|r| of(r) == Some(true)).count();
        Score {
            to_the_digit: count(|r| r.to_the_digit),
            agree: count(|r| r.agrees),
            of: self.rows.iter().filter(|r| r.agrees.is_some()).count(),
        }
    }

    /// Marks the data as made up: nothing is judged against the paper.
    pub fn on_made_up_data(mut self) -> Self {
        self.synthetic = true;
        self.rows.iter_mut().for_each(|r| (r.agrees, r.to_the_digit) = (None, None));
        self
    }
}

impl Figure {
    /// Name of the files of panel `k`, without their ending.
    pub fn stem(&self, k: usize) -> String {
        match self.panels.len() {
            0 | 1 => self.file.clone(),
            _ => format!("{}{}", self.file, (b'a' + (k % 26) as u8) as char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_digits_decide_whether_numbers_agree() {
        for (paper, digits, ours, agrees) in [
            (0.040, 3, 0.0405, true),
            (0.040, 3, 0.0395, true),
            (0.040, 3, 0.04051, false),
            (99.8, 1, 99.85, true),
            (99.8, 1, 99.9, false),
        ] {
            assert_eq!(Row::printed("x", paper, digits, ours).agrees, Some(agrees), "{paper} {ours}");
        }
        assert_eq!(Row::ours("x", 1.0).agrees, None);
        // A wider tolerance is agreement, but not to the digit.
        let row = Row::within("x", (99.8, 1), 0.1, 99.716);
        assert_eq!((row.agrees, row.to_the_digit), (Some(true), Some(false)));
        assert_eq!(row.judged().unwrap(), "within 0.1");
        assert_eq!(Row::within("x", (99.8, 1), 0.1, 99.76).to_the_digit, Some(true));
        // A tolerance never makes a printed number narrower than its last digit.
        assert_eq!(Row::within("x", (100.0, 0), 0.1, 99.6).agrees, Some(true));
    }
}
