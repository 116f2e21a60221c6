//! The numbers of a document, each with the way in which it gets worse.

use super::reading::Document;
use super::{networks, papers, promises, secrets, tables};
use leakscope_core::claim::Observed;
use leakscope_core::num::Summary;
use leakscope_report::comparison::{Form, Value, Worse};
use leakscope_report::verdict::Verdict;

/// Numbers about one thing in one document.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) title: String,
    pub(super) about: &'static str,
    pub(super) named_by_values: bool,
    pub(super) entries: Vec<Entry>,
}

/// One number.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) worse: Worse,
    pub(super) form: Form,
    pub(super) value: Value,
}

impl Numbers {
    pub(super) fn new(title: impl Into<String>, about: &'static str) -> Self {
        Self { title: title.into(), about, named_by_values: false, entries: vec![] }
    }

    /// Numbers whose names are values of the data: they stay with the owner.
    pub(super) fn named_by_values(title: impl Into<String>, about: &'static str) -> Self {
        Self { named_by_values: true, ..Self::new(title, about) }
    }

    fn push(&mut self, name: impl Into<String>, worse: Worse, form: Form, value: Value) {
        self.entries.push(Entry { name: name.into(), worse, form, value });
    }

    /// A number of which more is worse.
    pub(super) fn leak(&mut self, name: impl Into<String>, form: Form, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into() {
            self.push(name, Worse::Up, form, Value { value, interval: None });
        }
    }

    /// A number of which less is worse.
    pub(super) fn shield(&mut self, name: impl Into<String>, form: Form, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into() {
            self.push(name, Worse::Down, form, Value { value, interval: None });
        }
    }

    /// A number that somebody chose.
    pub(super) fn setting(&mut self, name: impl Into<String>, form: Form, value: impl Into<Option<f64>>) {
        if let Some(value) = value.into() {
            self.push(name, Worse::Neither, form, Value { value, interval: None });
        }
    }

    /// A share of right guesses that was observed.
    pub(super) fn observed(&mut self, name: impl Into<String>, share: &Observed) {
        let interval = Some([share.ci_low, share.ci_high]);
        self.push(name, Worse::Up, Form::Share, Value { value: share.value, interval });
    }

    /// The error of an attacker that was observed: less is worse.
    pub(super) fn error(&mut self, name: impl Into<String>, error: &Observed) {
        let interval = Some([error.ci_low, error.ci_high]);
        self.push(name, Worse::Down, Form::Number, Value { value: error.value, interval });
    }

    /// A score of the model.
    pub(super) fn score(
        &mut self,
        name: impl Into<String>,
        higher_is_better: bool,
        value: impl Into<Option<f64>>,
    ) {
        match higher_is_better {
            true => self.shield(name, Form::Number, value),
            false => self.leak(name, Form::Number, value),
        }
    }

    /// Mean, median, 99% and largest of something over records.
    pub(super) fn over_records(&mut self, name: &str, s: &Summary) {
        for (which, value) in [("mean", s.mean), ("median", s.p50), ("99%", s.p99), ("largest", s.max)] {
            self.leak(format!("{name}, {which}"), Form::Number, value);
        }
    }
}

impl Document {
    /// What decides the colour first, then all else.
    pub(super) fn numbers(&self) -> Vec<Numbers> {
        let mut all = vec![deciding(&self.verdict())];
        all.extend(match self {
            Self::Audit(d) => tables::audit(d),
            Self::Balance(d) => tables::balance(d),
            Self::Release(d) => tables::release(d),
            Self::Attack(d) => secrets::attack(d),
            Self::Bound(d) => secrets::bound(d),
            Self::Canary(d) => secrets::canary(d),
            Self::Training(d) => networks::training(d),
            Self::NetAudit(d) => networks::audit(d),
            Self::Inversion(d) => networks::inversion(d),
            Self::Membership(d) => networks::membership(d),
            Self::Informed(d) => networks::informed(d),
            Self::Reproduce(d) => papers::reproduction(d),
            Self::TextAudit(d) => networks::texts(d),
            Self::Account(d) => promises::account(d),
            Self::Calibrate(d) => promises::calibration(d),
        });
        all
    }
}

/// The numbers that decide the colour of the page.
fn deciding(verdict: &Verdict) -> Numbers {
    let mut n =
        Numbers::new("What decides the colour", "The worst line decides, as on the page of each result.");
    for ground in &verdict.grounds {
        let form = if ground.share { Form::ShareAtMost } else { Form::AtMost };
        n.leak(ground.fact, form, ground.value);
    }
    n
}
