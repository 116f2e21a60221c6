//! A page to share: nothing on it names a record or shows one.

mod audit;
mod histogram;

use crate::document::attack::{Attack as Attacked, Secret};
use crate::document::audit::Audit;
use crate::document::bound::SecretBounds;
use crate::document::inversion::Inversion;
use crate::document::net::{NetAudit, Record};
use crate::document::text_audit::TextAudit;
use crate::document::training::Training;
use std::collections::BTreeMap;

/// Numbers in the order in which records are first spoken of.
#[derive(Default)]
pub(crate) struct Numbers(BTreeMap<String, String>);

impl Numbers {
    fn replace(&mut self, id: &mut String) {
        if id.is_empty() {
            return;
        }
        let next = format!("no. {}", self.0.len() + 1);
        *id = self.0.entry(std::mem::take(id)).or_insert(next).clone();
    }

    /// A record of a network: its id, its number in the data and its label, which is one of its values.
    fn of_network(&mut self, id: &mut Option<String>, record: u64, label: &mut Option<String>) {
        let mut name = id.take().unwrap_or_else(|| record.to_string());
        self.replace(&mut name);
        (*id, *label) = (Some(name), None);
    }
}

/// A document whose page can do without names of records.
pub(crate) trait Redact: Clone {
    /// Puts numbers in the place of names. The most exposed come first, so that a number says no more than its place does.
    fn number(&mut self, numbers: &mut Numbers);
}

/// The document with numbers in the place of names of records.
pub(crate) fn redacted<D: Redact>(document: &D) -> D {
    let mut own = document.clone();
    own.number(&mut Numbers::default());
    own
}

impl Redact for Audit {
    fn number(&mut self, numbers: &mut Numbers) {
        audit::shared(self, numbers);
        self.secret.iter_mut().for_each(|s| s.number(numbers));
    }
}

impl Redact for SecretBounds {
    fn number(&mut self, _: &mut Numbers) {
        if let Some(data) = &mut self.data {
            data.most_exposed = None;
            audit::summary(&mut data.distance);
            unnamed(&mut data.secret);
        }
        audit::remarks(&mut self.warnings);
    }
}

impl Redact for Attacked {
    fn number(&mut self, _: &mut Numbers) {
        unnamed(&mut self.secret);
        audit::remarks(&mut self.warnings);
        audit::remarks(&mut self.notes);
    }
}

/// A level that few have, or the end of a range, is a value of records.
fn unnamed(secret: &mut Secret) {
    secret.candidates.iter_mut().enumerate().for_each(|(i, c)| c.name = format!("value {}", i + 1));
}

impl Redact for NetAudit {
    fn number(&mut self, numbers: &mut Numbers) {
        self.score = None;
        for h in self.dfil_histogram.iter_mut().chain(&mut self.eta_histogram) {
            histogram::of_network(h);
        }
        let lists = [
            &mut self.most_dfil,
            &mut self.most_eta,
            &mut self.most_plis,
            &mut self.least_dfil,
            &mut self.least_eta,
            &mut self.least_plis,
        ];
        for record in lists.into_iter().flatten() {
            let Record { id, record, label, .. } = record;
            numbers.of_network(id, *record, label);
        }
        self.attributes.iter_mut().for_each(|a| numbers.replace(&mut a.eta_max_record));
        self.training.iter_mut().for_each(|t| t.number(numbers));
    }
}

impl Redact for Training {
    fn number(&mut self, numbers: &mut Numbers) {
        self.accounts.iter_mut().flat_map(|a| &mut a.histogram).for_each(histogram::of_network);
        for a in self.accounts.iter_mut().flat_map(|a| &mut a.most) {
            numbers.of_network(&mut a.id, a.record, &mut a.label);
        }
        for d in self.filter.iter_mut().flat_map(|f| &mut f.first) {
            numbers.of_network(&mut d.id, d.record, &mut d.label);
        }
    }
}

impl Redact for Inversion {
    fn number(&mut self, numbers: &mut Numbers) {
        for a in &mut self.shown {
            numbers.of_network(&mut a.id, a.record, &mut a.label);
        }
    }
}

impl Redact for TextAudit {
    fn number(&mut self, numbers: &mut Numbers) {
        // In their own order a number would be a line.
        let leak = |r: &crate::document::text_audit::Record| r.dfil.or(r.eta).unwrap_or(r.plis);
        self.records.sort_by(|a, b| leak(b).total_cmp(&leak(a)));
        self.records.iter_mut().for_each(|r| numbers.replace(&mut r.record));
        self.exposures.iter_mut().for_each(|e| numbers.replace(&mut e.record));
    }
}
