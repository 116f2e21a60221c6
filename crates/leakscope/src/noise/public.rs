//! Rows that are public, from which a shape may be taken without reading anything off the private ones.

use crate::{Failure, Result};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use leakscope_table::{
    Attribute, Dataset, Encoding, Hooks, Kind, Public, ReadOptions, Subset, Table, TargetCoding,
};

/// Rows that are made up, at least; and for each coefficient.
const LEAST_ROWS: usize = 512;
const ROWS_A_COEFFICIENT: usize = 40;
/// Everybody knows the seed: the rows are a way to integrate over the bounds, and no secret.
const SEED: u64 = 0x5ee_d0f5;

/// A public table, read as the private one is.
pub(crate) fn table(read: &ReadOptions, encoding: &Encoding, hooks: &Hooks) -> Result<Dataset> {
    use leakscope_core::rows::Rows;
    let of = |e: leakscope_table::Error| match Failure::from(e) {
        Failure::Data(message) => Failure::option("shape_from", message),
        other => other,
    };
    let table = Table::open(read).map_err(of)?;
    let rows = Dataset::new(&table, encoding, Subset::All, hooks).map_err(of)?;
    if rows.is_empty() {
        return Err(Failure::option("shape_from", "there are no rows in it"));
    }
    Ok(rows)
}

/// Whether somebody gave the bounds of a column; those of a draft were read off the data.
fn are_public(public: &Public, name: &str, has_bounds: bool) -> bool {
    let by_option = public.bounds.iter().any(|(column, _)| column.trim() == name);
    let by_schema = public.schema.as_ref().is_some_and(|s| !s.draft);
    has_bounds && (by_option || by_schema)
}

/// Rows made up from bounds and levels alone: every value uniform and independent of the others, the target too. `None` where
/// a number has no public bounds, or behind principal components, which are read off the data.
pub(crate) fn made_up(encoding: &Encoding, public: &Public) -> Option<InMemory> {
    let known = |a: &Attribute| a.kind == Kind::Category || are_public(public, &a.name, a.bounds.is_some());
    let target = &encoding.target;
    let known_target = match &target.coding {
        TargetCoding::TwoClass { .. } | TargetCoding::Classes(_) => true,
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
            are_public(public, &target.name, target.bounds.is_some())
        }
    };
    if encoding.pca.is_some() || !known_target || !encoding.attributes.iter().all(known) {
        return None;
    }
    let p = encoding.width();
    let n = LEAST_ROWS.max(ROWS_A_COEFFICIENT * p);
    let mut random = Seeded::new(SEED);
    let (mut x, mut y) = (vec![0.0; n * p], Vec::with_capacity(n));
    for row in x.chunks_exact_mut(p.max(1)).take(n) {
        for a in &encoding.attributes {
            let u = random.uniform();
            match (a.kind, a.bounds) {
                (Kind::Number, bounds) => {
                    let bounds = bounds?;
                    let value = bounds.low() + u * (bounds.high() - bounds.low());
                    row[a.columns.start] = (value - a.centre) / a.scale;
                }
                (Kind::Category, _) => {
                    let level = (u * a.levels.len() as f64) as usize;
                    let kept = encoding.one_hot.places(a.levels.len());
                    for (slot, column) in row[a.columns.clone()].iter_mut().zip(kept) {
                        *slot = if column == level { 1.0 / a.scale } else { 0.0 };
                    }
                }
            }
        }
        if encoding.intercept {
            row[p - 1] = 1.0;
        }
        let u = random.uniform();
        y.push(match &target.coding {
            TargetCoding::TwoClass { low, high } => {
                if u < 0.5 {
                    low.code
                } else {
                    high.code
                }
            }
            TargetCoding::Classes(classes) => (u * classes.len() as f64).floor(),
            TargetCoding::Number => {
                let bounds = target.bounds?;
                bounds.low() + u * (bounds.high() - bounds.low())
            }
            TargetCoding::Positive => {
                let bounds = target.bounds.filter(|b| b.high() > 0.0)?;
                let low = bounds.low().max(0.0);
                // Above zero even where the bounds start there.
                low + (1.0 - u) * (bounds.high() - low)
            }
            TargetCoding::Count => {
                let bounds = target.bounds?;
                (bounds.low() + u * (bounds.high() - bounds.low())).round().max(0.0)
            }
        });
    }
    Some(InMemory::from_matrix(&x, &y, &[], 4096))
}
