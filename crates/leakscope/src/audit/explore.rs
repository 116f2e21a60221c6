//! The records of an audit for its page: from what was kept while they went to a file, or from a table in memory.

use crate::output::{Pending, Results};
use leakscope_report::Audit;
use leakscope_report::explore::{ATTRIBUTES, Explore};
use leakscope_table::{Columns, RecordsSchema};
use std::sync::Arc;

/// Records on a page; of more there is a sample, with the most and the least exposed.
pub const EXPLORED: usize = 100_000;

/// A sample that stayed in memory while the table was written.
pub fn sample(audit: &Audit, pending: &mut Pending) -> Option<Explore> {
    let (schema, columns) = pending.take_sample("records")?;
    Some(of(audit, &schema, &[&columns]))
}

/// Those of tables in memory.
pub fn in_memory(audit: &Audit, tables: &[Arc<Results>]) -> Option<Explore> {
    let table = tables.iter().find(|t| t.name == "records")?;
    let rows: usize = table.parts.iter().map(|p| p.ids.len()).sum();
    // A page that every reader can open matters more than the last record.
    (rows <= EXPLORED).then(|| of(audit, &table.schema, &table.parts.iter().collect::<Vec<_>>()))
}

fn of(audit: &Audit, schema: &RecordsSchema, parts: &[&Columns]) -> Explore {
    let texts = |of: &dyn Fn(&Columns) -> Option<&Vec<String>>| -> Vec<String> {
        parts.iter().filter_map(|p| of(p)).flatten().cloned().collect()
    };
    let numbers = |name: &str| -> Option<Vec<f64>> {
        let at = schema.numbers.iter().position(|n| n == name)?;
        Some(parts.iter().flat_map(|p| &p.numbers[at]).copied().collect())
    };
    // Most exposed first, as the document has them.
    let shown = audit.attributes.iter().take(ATTRIBUTES).map(|a| &a.name);
    let names = shown.chain(audit.label.iter().map(|l| &l.name));
    Explore {
        rows: audit.n,
        ids: texts(&|p| Some(&p.ids)),
        series: texts(&|p| p.texts.first()),
        eta: numbers("eta").unwrap_or_default(),
        dfil: numbers("dfil").unwrap_or_default(),
        loss: numbers("loss").unwrap_or_default(),
        gradient_norm: numbers("gradient_norm").unwrap_or_default(),
        attributes: names.filter_map(|n| Some((n.clone(), numbers(&format!("eta_{n}"))?))).collect(),
        left_out: audit.attributes.len().saturating_sub(ATTRIBUTES),
    }
}
