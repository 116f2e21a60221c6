//! What changed for whom: records of two results, matched by their ids.

use super::reading::{Document, Source};
use crate::Result;
use leakscope_report::choice::Measure;
use leakscope_report::comparison::{RecordChange, RecordChanges};
use leakscope_table::{RecordNumbers, record_numbers};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// Records that are listed.
const LISTED: usize = 25;

/// The tables that a document says are beside it.
struct RecordTables<'a> {
    tables: &'a [String],
    /// What to compare, the first that both have.
    measures: &'static [Measure],
    /// Whether records are named by their place alone.
    by_row: bool,
}

impl Document {
    fn record_tables(&self) -> Option<RecordTables<'_>> {
        let (tables, measures, by_row): (_, &[Measure], _) = match self {
            Self::Audit(d) => (&d.tables, &[Measure::Eta], d.data.id.is_none()),
            Self::NetAudit(d) => (&d.tables, &[Measure::Eta, Measure::Dfil], true),
            Self::Training(d) => (&d.tables, &[Measure::Dfil], true),
            Self::TextAudit(d) => (&d.tables, &[Measure::Eta, Measure::Dfil, Measure::Plis], true),
            Self::Balance(_)
            | Self::Attack(_)
            | Self::Bound(_)
            | Self::Release(_)
            | Self::Canary(_)
            | Self::Account(_)
            | Self::Calibrate(_)
            | Self::Inversion(_)
            | Self::Membership(_)
            | Self::Informed(_)
            | Self::Reproduce(_) => return None,
        };
        Some(RecordTables { tables, measures, by_row })
    }
}

/// The file of records beside a document.
fn table_of(source: &Source, warnings: &mut Vec<String>) -> Option<PathBuf> {
    let RecordTables { tables, .. } = source.document.record_tables()?;
    let shown = source.file.display();
    let listed = tables.iter().find(|t| t.starts_with("records."));
    let Some(name) = listed else {
        warnings.push(format!(
            "records are not compared with those of {shown}: no table of records came with it"
        ));
        return None;
    };
    // The name comes from a document: it must not lead out of its folder.
    let path = source.file.with_file_name(PathBuf::from(name).file_name()?);
    if !path.is_file() {
        warnings.push(format!(
            "records are not compared with those of {shown}: {name} is not beside it any more"
        ));
        return None;
    }
    Some(path)
}

/// What changed for whom between the first result and each other; empty where the first has no table.
pub(super) fn changes(sources: &[Source], warnings: &mut Vec<String>) -> Result<Vec<RecordChanges>> {
    let Some((reference, others)) = sources.split_first() else { return Ok(vec![]) };
    let Some(RecordTables { measures, .. }) = reference.document.record_tables() else {
        return Ok(vec![]);
    };
    let Some(first) = table_of(reference, warnings) else { return Ok(vec![]) };
    let mut all = vec![];
    for (i, other) in others.iter().enumerate() {
        let Some(second) = table_of(other, warnings) else { continue };
        for &measure in measures {
            let of = |table: &Path| record_numbers(table, measure.column());
            let (a, b) = (of(&first)?, of(&second)?);
            if let (Some(a), Some(b)) = (a, b) {
                all.push(changed(i + 1, measure, a, b));
                break;
            }
        }
    }
    if !all.is_empty() && sources.iter().filter_map(|s| s.document.record_tables()).any(|t| t.by_row) {
        warnings.push(
            "records are matched by their row, as no id column was named: that holds for tables with the same rows in the same \
             order alone"
                .into(),
        );
    }
    Ok(all)
}

fn changed(result: usize, measure: Measure, before: RecordNumbers, after: RecordNumbers) -> RecordChanges {
    let mut changes = RecordChanges {
        result,
        measure,
        matched: 0,
        worse: 0,
        better: 0,
        same: 0,
        new: 0,
        gone: 0,
        increases: vec![],
    };
    // Rows that share an id are matched in their order.
    let mut waiting: HashMap<String, VecDeque<f64>> = HashMap::new();
    for (id, number) in numbered(before) {
        waiting.entry(id).or_default().push_back(number);
    }
    for (id, after) in numbered(after) {
        let Some(before) = waiting.get_mut(&id).and_then(VecDeque::pop_front) else {
            changes.new += 1;
            continue;
        };
        let worse = changes.worse;
        changes.count(before, after);
        if changes.worse > worse {
            changes.increases.push(RecordChange { id, before, after });
            if changes.increases.len() >= 64 * LISTED {
                keep_largest(&mut changes.increases);
            }
        }
    }
    changes.gone = waiting.values().map(|left| left.len() as u64).sum();
    keep_largest(&mut changes.increases);
    changes
}

/// The records with a number.
fn numbered(all: RecordNumbers) -> impl Iterator<Item = (String, f64)> {
    all.ids.into_iter().zip(all.numbers).filter(|(_, x)| !x.is_nan())
}

fn keep_largest(all: &mut Vec<RecordChange>) {
    all.sort_by(|x, y| (y.after - y.before).total_cmp(&(x.after - x.before)).then_with(|| x.id.cmp(&y.id)));
    all.truncate(LISTED);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(all: &[(&str, f64)]) -> RecordNumbers {
        RecordNumbers {
            ids: all.iter().map(|r| r.0.into()).collect(),
            numbers: all.iter().map(|r| r.1).collect(),
        }
    }

    #[test]
    fn records_are_matched_by_id_whatever_their_order() {
        let before = numbers(&[
            ("a", 1.0),
            ("b", 2.0),
            ("c", 3.0),
            ("d", 4.0),
            ("twin", 5.0),
            ("twin", 6.0),
            ("no", f64::NAN),
        ]);
        let after = numbers(&[("twin", 5.0), ("e", 1.0), ("c", 1.0), ("b", 2.5), ("a", 9.0), ("twin", 7.0)]);
        let c = changed(1, Measure::Eta, before, after);
        assert_eq!((c.matched, c.worse, c.better, c.same, c.new, c.gone), (5, 3, 1, 1, 1, 1));
        let ids: Vec<&str> = c.increases.iter().map(|r| r.id.as_str()).collect();
        assert_eq!(ids, ["a", "twin", "b"]);
    }

    #[test]
    fn the_largest_increases_are_kept_of_many() {
        let names: Vec<String> = (0..5000).map(|i| i.to_string()).collect();
        let before: Vec<(&str, f64)> = names.iter().map(|n| (n.as_str(), 1.0)).collect();
        let after: Vec<(&str, f64)> =
            names.iter().enumerate().map(|(i, n)| (n.as_str(), 1.0 + ((i * 7919) % 5000) as f64)).collect();
        let c = changed(1, Measure::Eta, numbers(&before), numbers(&after));
        assert_eq!((c.worse, c.same), (4999, 1));
        let largest: Vec<f64> = c.increases.iter().map(|r| r.after).collect();
        assert_eq!(largest, (0..LISTED).map(|i| 5000.0 - i as f64).collect::<Vec<_>>());
    }
}
