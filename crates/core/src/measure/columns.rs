//! Columns as they stand in the rows: every value of one, and the distributions of several.

use crate::num::Distribution;
use crate::pass::{Merge, Pass};
use crate::rows::Block;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The pass that reads every value of a column, in row order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnValues {
    /// The encoded column.
    pub column: usize,
}

/// The values of a column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Values {
    /// One a row.
    pub values: Vec<f64>,
}

impl Merge for Values {
    fn merge(&mut self, later: Self) {
        self.values.extend(later.values);
    }
}

/// Whether rows have a column.
fn check(column: usize, block: &Block) -> Result<()> {
    if column < block.width {
        return Ok(());
    }
    Err(Error::Shape {
        subject: "rows with the column that is read",
        actual: block.width,
        expected: column + 1,
    })
}

impl Pass for ColumnValues {
    const NAME: &'static str = "the values of a column";
    type State = Values;

    fn start(&self) -> Values {
        Values::default()
    }

    fn step(&self, state: &mut Values, block: &Block) -> Result<()> {
        check(self.column, block)?;
        state.values.extend((0..block.len()).map(|i| block.row(i)[self.column]));
        Ok(())
    }

    fn fits(&self, state: &Values) -> bool {
        state.values.iter().all(|value| value.is_finite())
    }
}

/// The pass for the distributions of some columns; `None` is the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDistributions<'a> {
    /// The encoded columns.
    pub columns: Cow<'a, [Option<usize>]>,
}

/// A distribution for every column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Distributions {
    /// In the order of the columns.
    pub columns: Vec<Distribution>,
    #[serde(skip)]
    values: Vec<f64>,
}

impl Merge for Distributions {
    fn merge(&mut self, later: Self) {
        self.columns.iter_mut().zip(later.columns).for_each(|(total, part)| total.merge(part));
    }
}

impl Pass for ColumnDistributions<'_> {
    const NAME: &'static str = "the distributions of columns";
    type State = Distributions;

    fn start(&self) -> Distributions {
        Distributions { columns: vec![Distribution::default(); self.columns.len()], values: vec![] }
    }

    fn step(&self, state: &mut Distributions, block: &Block) -> Result<()> {
        for (distribution, column) in state.columns.iter_mut().zip(self.columns.iter()) {
            state.values.clear();
            match *column {
                Some(j) => {
                    check(j, block)?;
                    state.values.extend((0..block.len()).map(|i| block.row(i)[j]));
                }
                None => state.values.extend_from_slice(&block.y),
            }
            distribution.extend(&state.values);
        }
        Ok(())
    }

    fn fits(&self, state: &Distributions) -> bool {
        state.columns.len() == self.columns.len()
    }
}
