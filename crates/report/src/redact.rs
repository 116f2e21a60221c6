//! A page to share: nothing on it names a record.

use crate::document::audit::{Audit, Record};
use std::collections::BTreeMap;

/// Numbers in the order in which records are first spoken of.
#[derive(Default)]
struct Numbers(BTreeMap<String, String>);

impl Numbers {
    fn replace(&mut self, id: &mut String) {
        if id.is_empty() {
            return;
        }
        let next = format!("no. {}", self.0.len() + 1);
        *id = self.0.entry(std::mem::take(id)).or_insert(next).clone();
    }

    fn records(&mut self, records: &mut [Record]) {
        records.iter_mut().for_each(|r| self.replace(&mut r.id));
    }
}

/// The audit with numbers in the place of ids, and without single records whose values could be looked up: the most exposed come
/// first, so a number says no more than its place does.
pub(crate) fn redacted(audit: &Audit) -> Audit {
    let mut a = audit.clone();
    let mut numbers = Numbers::default();
    numbers.records(&mut a.records.most);
    numbers.records(&mut a.records.least);
    a.attributes.iter_mut().for_each(|x| numbers.replace(&mut x.eta_max_record));
    a.label.iter_mut().for_each(|x| numbers.replace(&mut x.eta_max_record));
    a.tell.iter_mut().flat_map(|t| &mut t.attributes).for_each(|t| numbers.replace(&mut t.worst_record));
    a.score.iter_mut().for_each(|s| numbers.records(&mut s.most));
    a
}
