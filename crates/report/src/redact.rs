//! A page to share: nothing on it names a record or shows one.

use crate::document::audit::{self, Audit};
use crate::document::bound::Found;
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

    fn records(&mut self, records: &mut [audit::Record]) {
        records.iter_mut().for_each(|r| self.replace(&mut r.id));
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
        numbers.records(&mut self.records.most);
        numbers.records(&mut self.records.least);
        self.attributes.iter_mut().for_each(|x| numbers.replace(&mut x.eta_max_record));
        self.label.iter_mut().for_each(|x| numbers.replace(&mut x.eta_max_record));
        let told = self.tell.iter_mut().flat_map(|t| &mut t.attributes);
        told.for_each(|t| numbers.replace(&mut t.worst_record));
        self.score.iter_mut().for_each(|s| numbers.records(&mut s.most));
        self.secret.iter_mut().for_each(|s| s.number(numbers));
    }
}

impl Redact for Found {
    fn number(&mut self, _: &mut Numbers) {
        // One record alone is named: as the most exposed one, whose row is left out.
        self.data.iter_mut().flat_map(|d| &mut d.most_exposed).for_each(|m| m.row = 0);
    }
}

impl Redact for NetAudit {
    fn number(&mut self, numbers: &mut Numbers) {
        let score = self.score.iter_mut().map(|s| &mut s.most);
        let lists = [
            &mut self.most_dfil,
            &mut self.most_eta,
            &mut self.most_plis,
            &mut self.least_dfil,
            &mut self.least_eta,
            &mut self.least_plis,
        ];
        for record in lists.into_iter().chain(score).flatten() {
            let Record { id, record, label, .. } = record;
            numbers.of_network(id, *record, label);
        }
        self.attributes.iter_mut().for_each(|a| numbers.replace(&mut a.eta_max_record));
        self.training.iter_mut().for_each(|t| t.number(numbers));
    }
}

impl Redact for Training {
    fn number(&mut self, numbers: &mut Numbers) {
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
