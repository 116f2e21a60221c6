//! What `leakscope compare` found, as plain data: results of one kind side by side, the first of them the reference.

use super::choice::{Colour, Measure};
use super::public::PerturbationKind;
use serde::{Deserialize, Serialize};

/// Name and version of the schema of `compare.json`.
pub const SCHEMA: &str = "leakscope.compare/1";

/// A change smaller than this share of a number is none: refits and sums differ by rounding.
const ROUNDING: f64 = 1e-6;

/// Results side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// When, RFC 3339, UTC.
    pub created: String,
    /// What is compared.
    pub kind: Kind,
    /// The results, in the order in which they were named; the first is the reference.
    pub results: Vec<Compared>,
    /// Numbers of all results, by what they are about.
    pub sections: Vec<Section>,
    /// What changed for whom, one entry for every result but the reference; empty where no table of records is beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordChanges>,
    /// What was demanded (`--fail-on`), and whether it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Demand>,
    /// Things the reader should know, in whole sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a document is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A model of a table.
    Audit,
    /// Reweighted records.
    Balance,
    /// Attacks that were played.
    Attack,
    /// What no attacker exceeds.
    Bound,
    /// A released model.
    Release,
    /// A network's private training.
    Training,
    /// A network's records.
    NetAudit,
    /// A secret in a text.
    Canary,
    /// Texts that a language model is fine-tuned on.
    TextAudit,
    /// What a sequence of releases costs.
    Account,
    /// Noise that meets a target.
    Calibrate,
    /// Records reconstructed from gradients.
    Inversion,
    /// Who was among the training records.
    Membership,
    /// The last record, from the parameters.
    Informed,
    /// A table or figure of a paper.
    Reproduce,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Audit,
        Self::Balance,
        Self::Attack,
        Self::Bound,
        Self::Release,
        Self::Training,
        Self::NetAudit,
        Self::Canary,
        Self::TextAudit,
        Self::Account,
        Self::Calibrate,
        Self::Inversion,
        Self::Membership,
        Self::Informed,
        Self::Reproduce,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Balance => "balance",
            Self::Attack => "attack",
            Self::Bound => "bound",
            Self::Release => "release",
            Self::Training => "training",
            Self::NetAudit => "net-audit",
            Self::Canary => "canary",
            Self::TextAudit => "text-audit",
            Self::Account => "account",
            Self::Calibrate => "calibrate",
            Self::Inversion => "inversion",
            Self::Membership => "membership",
            Self::Informed => "informed",
            Self::Reproduce => "reproduce",
        }
    }

    /// What several of them are, in words.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Audit => "audits",
            Self::Balance => "balancings",
            Self::Attack => "attacks",
            Self::Bound => "bounds",
            Self::Release => "releases",
            Self::Training => "training runs",
            Self::NetAudit => "audits of networks",
            Self::Canary => "canaries",
            Self::TextAudit => "audits of texts",
            Self::Account => "accounts",
            Self::Calibrate => "calibrations",
            Self::Inversion => "reconstructions from gradients",
            Self::Membership => "attacks on membership",
            Self::Informed => "attacks by an informed adversary",
            Self::Reproduce => "reproductions",
        }
    }
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What it is called here: the last part of its path that tells it from the others.
    pub name: String,
    /// The document, as it was named.
    pub file: String,
    /// When it was made, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The colour of its page.
    pub colour: Colour,
    /// The few words on it.
    pub headline: String,
    /// η over records, where the result has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta: Option<EtaOver>,
    /// What a training run added to gradients before the clip, where it added anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<PerturbationKind>,
}

/// η over records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EtaOver {
    /// The mean, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The largest, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<f64>,
}

/// Numbers about one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// What the numbers are, in a sentence.
    pub about: String,
    /// Whether the names of the rows are values of the data (groups, classes): they stay with the owner.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named_by_values: bool,
    /// The numbers.
    pub rows: Vec<Row>,
}

/// One number in all results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Which way is worse.
    pub worse: Worse,
    /// How it is written.
    pub form: Form,
    /// The number in every result; absent where a result has none.
    pub values: Vec<Option<Value>>,
}

/// A number, and where it lies if it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The number.
    #[serde(with = "crate::unbounded::number")]
    pub value: f64,
    /// Its confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// Which way a number gets worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Worse {
    /// More is worse: leakage.
    Up,
    /// Less is worse: errors of attackers, accuracy.
    Down,
    /// Neither: a setting.
    Neither,
}

/// How a number is written, and to which side it is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// To the nearest.
    Number,
    /// An upper bound.
    AtMost,
    /// A lower bound.
    AtLeast,
    /// A share of one.
    Share,
    /// An upper bound on a share.
    ShareAtMost,
    /// A whole number.
    Count,
    /// Something that was chosen.
    Setting,
}

/// Whether two numbers are the same up to rounding; a number without bound is like another of its kind alone.
fn is_same(a: f64, b: f64) -> bool {
    a == b || (a.is_finite() && b.is_finite() && (b - a).abs() <= ROUNDING * a.abs().max(b.abs()))
}

/// What became of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It got worse.
    Worse,
    /// The reference has it and this result has not.
    Gone,
    /// This result has it and the reference has not.
    New,
    /// Another setting.
    Other,
    /// It got better.
    Better,
    /// The same, up to rounding or chance.
    Same,
}

impl Row {
    /// What became of the number in result `i`, against the first.
    pub fn change(&self, i: usize) -> Change {
        let at = |i: usize| self.values.get(i).copied().flatten();
        let (a, b) = match (at(0), at(i)) {
            (None, None) => return Change::Same,
            (None, Some(_)) => return Change::New,
            (Some(_), None) => return Change::Gone,
            (Some(a), Some(b)) => (a, b),
        };
        let same = match (a.interval, b.interval) {
            // What was observed twice scatters twice: only intervals that do not meet say anything.
            (Some([a_low, a_high]), Some([b_low, b_high])) => a_low <= b_high && b_low <= a_high,
            _ => is_same(a.value, b.value),
        };
        match (same, self.worse, b.value > a.value) {
            (true, ..) => Change::Same,
            (false, Worse::Neither, _) => Change::Other,
            (false, Worse::Up, true) | (false, Worse::Down, false) => Change::Worse,
            (false, Worse::Up, false) | (false, Worse::Down, true) => Change::Better,
        }
    }

    /// By which factor the number of result `i` is that of the first; absent where that says nothing.
    pub fn factor(&self, i: usize) -> Option<f64> {
        let at = |i: usize| self.values.get(i).copied().flatten().map(|v| v.value);
        let (a, b) = at(0).zip(at(i))?;
        let factor = b / a;
        (factor.is_finite() && factor > 0.0).then_some(factor)
    }

    /// How much worse result `i` is, on a scale on which more is worse: the size of the factor's logarithm.
    fn severity(&self, i: usize) -> f64 {
        self.factor(i).map_or(f64::INFINITY, |f| f.ln().abs())
    }
}

/// A number that got worse in one of the results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regression<'a> {
    /// Which result.
    pub result: usize,
    /// The section.
    pub section: &'a Section,
    /// Place of the row in its section.
    pub place: usize,
}

impl<'a> Regression<'a> {
    /// The number.
    pub fn row(&self) -> &'a Row {
        &self.section.rows[self.place]
    }

    /// What the number is, without any value of the data.
    pub fn public_name(&self) -> String {
        public_name(self.section, self.place)
    }
}

/// What a row is, with its section and without any value of the data: the place of a group stands for its name.
pub fn public_name(section: &Section, place: usize) -> String {
    match section.rows.get(place) {
        Some(row) if !section.named_by_values => format!("{}: {}", section.title, row.name),
        Some(_) | None => format!("{}: number {}", section.title, place + 1),
    }
}

impl Comparison {
    /// The reference.
    pub fn reference(&self) -> Option<&Compared> {
        self.results.first()
    }

    /// All results but the reference, with their places.
    pub fn others(&self) -> impl Iterator<Item = (usize, &Compared)> {
        self.results.iter().enumerate().skip(1)
    }

    /// Whether the colour of a result is worse than that of the reference.
    pub fn is_colour_worse(&self, result: usize) -> bool {
        self.reference().zip(self.results.get(result)).is_some_and(|(a, b)| b.colour > a.colour)
    }

    /// Numbers that got worse: those that decide the colour first, then by how much they changed.
    pub fn regressions(&self) -> Vec<Regression<'_>> {
        let mut all = vec![];
        for (order, section) in self.sections.iter().enumerate() {
            for (place, row) in section.rows.iter().enumerate() {
                let worse = (1..self.results.len()).filter(|i| row.change(*i) == Change::Worse);
                all.extend(worse.map(|result| (order > 0, Regression { result, section, place })));
            }
        }
        let severity = |r: &Regression<'_>| r.row().severity(r.result);
        all.sort_by(|(a, x), (b, y)| a.cmp(b).then(severity(y).total_cmp(&severity(x))));
        all.into_iter().map(|(_, r)| r).collect()
    }

    /// Reasons for which a demand does not hold.
    pub fn unmet(&self) -> impl Iterator<Item = &str> {
        self.demands.iter().filter_map(|d| d.unmet.as_deref())
    }
}

/// What was demanded of the results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// As it was asked for: `worse`, `eta=10%`.
    pub demand: String,
    /// Why it does not hold, in a sentence; absent where it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmet: Option<String>,
}

/// What changed for whom between the reference and one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordChanges {
    /// Place of the result among the results.
    pub result: usize,
    /// What was compared: a column of both tables of records.
    pub measure: Measure,
    /// Records of both.
    pub matched: u64,
    /// Of these: more than before.
    pub worse: u64,
    /// Less than before.
    pub better: u64,
    /// The same.
    pub same: u64,
    /// Records that only this result has.
    pub new: u64,
    /// Records that only the reference has.
    pub gone: u64,
    /// Records with the largest increases, largest first.
    pub increases: Vec<RecordChange>,
}

/// One record before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordChange {
    /// Its id.
    pub id: String,
    /// In the reference.
    pub before: f64,
    /// In the other result.
    pub after: f64,
}

impl RecordChanges {
    /// Counts what became of one matched record.
    pub fn count(&mut self, before: f64, after: f64) {
        self.matched += 1;
        match is_same(before, after) {
            true => self.same += 1,
            false if after > before => self.worse += 1,
            false => self.better += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(worse: Worse, values: &[Option<f64>]) -> Row {
        let value = |v: &Option<f64>| v.map(|value| Value { value, interval: None });
        Row { name: "x".into(), worse, form: Form::Number, values: values.iter().map(value).collect() }
    }

    #[test]
    fn a_change_is_what_it_is() {
        let up = row(super::Worse::Up, &[Some(1.0), Some(2.0), Some(0.5), Some(1.0 + 1e-9), None]);
        let changes: Vec<Change> = (0..5).map(|i| up.change(i)).collect();
        use Change::*;
        assert_eq!(changes, [Same, Worse, Better, Same, Gone]);
        let down = row(super::Worse::Down, &[Some(f64::INFINITY), Some(2.0), Some(f64::INFINITY)]);
        assert_eq!((down.change(1), down.change(2), down.factor(1)), (Worse, Same, None));
        assert_eq!(row(super::Worse::Up, &[None, Some(1.0)]).change(1), New);
        assert_eq!(row(super::Worse::Neither, &[Some(1.0), Some(3.0)]).change(1), Other);
        assert_eq!(row(super::Worse::Up, &[Some(0.0), Some(0.0)]).change(1), Same);
    }

    #[test]
    fn what_scatters_is_no_change() {
        let observed = |value: f64| Some(Value { value, interval: Some([value - 0.02, value + 0.02]) });
        let row = |b| Row { values: vec![observed(0.5), observed(b)], ..row(Worse::Up, &[]) };
        assert_eq!(row(0.53).change(1), Change::Same);
        assert_eq!(row(0.55).change(1), Change::Worse);
    }
}
