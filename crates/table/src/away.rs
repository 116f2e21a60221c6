//! Encoded rows that other machines read.

use crate::encoding::Encoding;
use crate::machines::{Away, Kind, Raw, Work};
use crate::plan::Subset;
use crate::splits::{Extent, FileSplit};
use crate::table::Table;
use crate::{Error, Result};
use leakscope_core::pass::bytes;
use leakscope_core::rows::{Alteration, Elsewhere, States};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which encoded rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RowsOf {
    pub(crate) encoding: Encoding,
    pub(crate) subset: Subset,
    pub(crate) target_optional: bool,
}

/// What the bytes of a count are called.
pub(crate) const COUNT: &str = "the number of rows";
/// What the bytes of alterations are called.
pub(crate) const ALTERED: &str = "what is done to rows";

/// Rows of a subset in every split, and those that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) rows: Vec<u64>,
    pub(crate) dropped: u64,
    pub(crate) unseen: u64,
}

impl Counted {
    pub(crate) fn of(rows: Vec<u64>) -> Self {
        Self { rows, ..Self::default() }
    }
}

/// Encoded rows that other machines read.
#[derive(Debug)]
pub struct AwayRows {
    away: Arc<Away>,
    rows: RowsOf,
    places: Option<Vec<(u64, u64)>>,
}

impl AwayRows {
    /// Rows of a table that others read; `None` where it is read here. Their number is open.
    pub(crate) fn new(
        table: &Table,
        (encoding, subset): (&Encoding, Subset),
        target_optional: bool,
    ) -> Option<Self> {
        let away = Arc::clone(table.away.as_ref()?);
        let rows = RowsOf { encoding: encoding.clone(), subset, target_optional };
        Some(Self { away, rows, places: None })
    }

    /// Whether the rows are partitions of an engine, and nowhere in files.
    pub(crate) fn is_of_partitions(&self) -> bool {
        let of = |s: &FileSplit| matches!(s.extent, Extent::Partition { .. });
        self.away.splits().splits.iter().any(of)
    }

    pub(crate) fn with_places(self, first_rows: &[u64], rows: &[u64]) -> Self {
        let places = first_rows.iter().copied().zip(rows.iter().copied()).collect();
        Self { places: Some(places), ..self }
    }

    /// Counts the rows by reading them.
    pub(crate) fn count(&self) -> Result<Counted> {
        let work = Work::new(Kind::Count, &self.rows)?;
        match self.away.states(&work)? {
            States::Merged(counted) => Ok(bytes::read(COUNT, 0, &counted)?),
            States::Splits(states) => {
                let mut counted = Counted::default();
                for state in &states {
                    let (rows, dropped, unseen): (u64, u64, u64) = bytes::read(COUNT, 0, state)?;
                    counted.rows.push(rows);
                    counted.dropped += dropped;
                    counted.unseen += unseen;
                }
                self.away.keep(&work, &bytes::write(COUNT, 0, &counted)?)?;
                Ok(counted)
            }
        }
    }

    fn work(&self, alterations: &[Alteration<'_>], pass: &[u8]) -> Result<Work> {
        let mut work = Work::new(Kind::Pass, &self.rows)?;
        (work.places, work.pass) = (self.places.clone(), Raw(pass.to_vec()));
        if !alterations.is_empty() {
            let open = || Error::Elsewhere("rows that are not counted yet cannot be altered".into());
            for &(first_row, rows) in self.places.as_ref().ok_or_else(open)? {
                let of_part = alterations.iter().map(|a| a.of_rows(first_row, rows));
                let of_part: Vec<Alteration<'_>> = of_part.collect::<leakscope_core::Result<_>>()?;
                work.own.push(Raw(bytes::write(ALTERED, 0, &of_part)?));
            }
        }
        Ok(work)
    }
}

impl Elsewhere for AwayRows {
    fn states(&self, alterations: &[Alteration<'_>], pass: &[u8]) -> leakscope_core::Result<States> {
        Ok(self.away.states(&self.work(alterations, pass)?)?)
    }

    fn keep(&self, alterations: &[Alteration<'_>], pass: &[u8], merged: &[u8]) -> leakscope_core::Result<()> {
        Ok(self.away.keep(&self.work(alterations, pass)?, merged)?)
    }
}
