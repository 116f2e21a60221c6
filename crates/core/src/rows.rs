//! Blocks of encoded rows, and the one way to pass over them: a fold whose states merge in order.
//!
//! [`Rows`] is a trait without type parameters, so that what passes over rows is compiled once, in the crate that says
//! what is summed, and not again for every kind of table.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A block of encoded rows: what every pass of the mathematics consumes.
///
/// `x` is row-major, `len × width`. With an intercept its column of ones is the *last* of the `width` columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Block {
    /// Position of the first row in the whole table (rows of this subset, counted from 0).
    pub first_row: u64,
    /// Number of columns, intercept included.
    pub width: usize,
    /// The encoded columns, row-major.
    pub x: Vec<f64>,
    /// The target.
    pub y: Vec<f64>,
    /// Sample weights ω; empty means all are 1.
    pub weight: Vec<f64>,
    /// Index of the group of each row; empty where there are no groups.
    pub group: Vec<u32>,
}

impl Block {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.y.len()
    }

    /// Whether the block has no rows.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    /// Row `i` of `x`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.width..(i + 1) * self.width]
    }

    /// Becomes a copy of `block`, in the memory that it has.
    fn copy_from(&mut self, block: &Self) {
        (self.first_row, self.width) = (block.first_row, block.width);
        self.x.clone_from(&block.x);
        self.y.clone_from(&block.y);
        self.weight.clone_from(&block.weight);
        self.group.clone_from(&block.group);
    }

    /// Weight of row `i`.
    pub fn weight_of(&self, i: usize) -> f64 {
        self.weight.get(i).copied().unwrap_or(1.0)
    }
}

/// A set of encoded rows that can be passed over any number of times, in parallel.
///
/// The split of rows into blocks and of blocks into states depends on the data alone, never on the number of
/// threads, and states merge in row order: the same input gives the same bits on any machine with the same
/// instruction set.
pub trait Rows: Sync {
    /// Number of columns, intercept included.
    fn width(&self) -> usize;

    /// Number of rows.
    fn len(&self) -> u64;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes every run of consecutive blocks through a part of its own, and hands the parts over in row order.
    ///
    /// Whoever passes over rows calls `fold` of `dyn Rows`; whoever has rows implements this.
    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> Result<()>;

    /// How many consecutive parts make up each split, whose states merge with one another before they merge with those of
    /// other splits: a machine that reads one split then has the bits of one that reads them all. Empty where every part
    /// is a split of its own.
    fn split_sizes(&self) -> Vec<usize> {
        vec![]
    }

    /// Who runs passes over these rows elsewhere; `None` where they are read here.
    fn elsewhere(&self) -> Option<Away<'_>> {
        None
    }

    /// These rows, of whatever kind they are.
    fn as_rows(&self) -> &dyn Rows
    where
        Self: Sized,
    {
        self
    }
}

/// Machines that hold the splits of a table: they get a pass as bytes, and what is done to the rows before it, and give states
/// as bytes.
pub trait Elsewhere {
    /// States of a pass over the rows: those of all splits in row order, or one that was merged and kept before.
    fn states(&self, alterations: &[Alteration<'_>], pass: &[u8]) -> Result<States>;

    /// Is told the state of all splits, merged, so that nobody need merge them again.
    fn keep(&self, alterations: &[Alteration<'_>], pass: &[u8], merged: &[u8]) -> Result<()>;
}

/// Rows that are elsewhere, and what is done to them before a pass reads them.
#[derive(Clone)]
pub struct Away<'a> {
    machines: &'a dyn Elsewhere,
    alterations: Vec<Alteration<'a>>,
}

impl<'a> Away<'a> {
    /// The rows as they are there.
    pub fn new(machines: &'a dyn Elsewhere) -> Self {
        Self { machines, alterations: vec![] }
    }

    /// The same with one more alteration, made after those that there are.
    #[must_use]
    pub fn altered(mut self, alteration: Alteration<'a>) -> Self {
        self.alterations.push(alteration);
        self
    }

    /// [`Elsewhere::states`] of these rows.
    ///
    /// # Errors
    /// Those of the machines.
    pub fn states(&self, pass: &[u8]) -> Result<States> {
        self.machines.states(&self.alterations, pass)
    }

    /// [`Elsewhere::keep`] of these rows.
    ///
    /// # Errors
    /// Those of the machines.
    pub fn keep(&self, pass: &[u8], merged: &[u8]) -> Result<()> {
        self.machines.keep(&self.alterations, pass, merged)
    }
}

/// States of a pass as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum States {
    /// One for each split, in row order.
    Splits(Vec<Vec<u8>>),
    /// That of all rows.
    Merged(Vec<u8>),
}

/// The state of a run of consecutive blocks, with what is done to it.
pub trait Part: Send {
    /// Adds the rows of a block, which come after those that the part has seen.
    fn step(&mut self, block: &Block) -> Result<()>;

    /// Gives the state to whoever started the part.
    fn hand_over(self: Box<Self>);
}

/// Makes the part of a run of blocks, on the thread that takes it through them.
pub type Start<'a, 's> = dyn Fn() -> Box<dyn Part + 's> + Sync + 'a;

/// Receives the parts in row order, on the calling thread.
pub type Finish<'a, 's> = dyn FnMut(Box<dyn Part + 's>) -> Result<()> + 'a;

impl fmt::Debug for Away<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows elsewhere, with {} alterations", self.alterations.len())
    }
}

impl fmt::Debug for dyn Rows + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {} columns", self.len(), self.width())
    }
}

impl dyn Rows + '_ {
    /// Runs `step` over every block; `start` makes the state of a run of consecutive blocks, `merge` receives
    /// the states in row order.
    pub fn fold<S: Send>(
        &self,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block) -> Result<()> + Sync,
        mut merge: impl FnMut(S) -> Result<()>,
    ) -> Result<()> {
        let slot = Mutex::new(None);
        let start =
            || -> Box<dyn Part + '_> { Box::new(Folded { state: start(), step: &step, slot: &slot }) };
        self.parts(&start, &mut |part| {
            part.hand_over();
            let state = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            state.map_or(Ok(()), &mut merge)
        })
    }
}

/// The part of a fold: its state travels through the slot, where it has its type again.
struct Folded<'a, S, F> {
    state: S,
    step: &'a F,
    slot: &'a Mutex<Option<S>>,
}

impl<S: Send, F: Fn(&mut S, &Block) -> Result<()> + Sync> Part for Folded<'_, S, F> {
    fn step(&mut self, block: &Block) -> Result<()> {
        (self.step)(&mut self.state, block)
    }

    fn hand_over(self: Box<Self>) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.state);
    }
}

/// A change to rows on their way to a pass, as plain data: whoever reads rows elsewhere makes it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Alteration<'a> {
    /// Other weights than their own.
    Weights {
        /// Row that the first weight is of.
        first_row: u64,
        /// One a row; without any, all are one.
        weights: Option<Cow<'a, [f64]>>,
    },
    /// `x ← t x + o` in every column that has a t and an o.
    Units {
        /// t of every column.
        stretch: Cow<'a, [f64]>,
        /// o of every column.
        offset: Cow<'a, [f64]>,
    },
}

impl Alteration<'_> {
    /// What of it concerns `rows` rows from `first_row` on.
    ///
    /// # Errors
    /// [`Error::Shape`] where there are not so many weights.
    pub fn of_rows(&self, first_row: u64, rows: u64) -> Result<Alteration<'_>> {
        Ok(match self {
            Self::Weights { first_row: _, weights: None } => Alteration::Weights { first_row, weights: None },
            Self::Weights { first_row: start, weights: Some(weights) } => {
                let own = stretch_of(weights, *start, first_row, rows as usize)?;
                Alteration::Weights { first_row, weights: Some(Cow::Borrowed(own)) }
            }
            Self::Units { stretch, offset } => {
                Alteration::Units { stretch: Cow::Borrowed(stretch), offset: Cow::Borrowed(offset) }
            }
        })
    }

    pub(crate) fn apply(&self, block: &mut Block) -> Result<()> {
        match self {
            Self::Weights { first_row, weights } => {
                let n = block.len();
                block.weight.clear();
                if let Some(weights) = weights {
                    let own = stretch_of(weights, *first_row, block.first_row, n)?;
                    block.weight.extend_from_slice(own);
                }
            }
            Self::Units { stretch, offset } => {
                for row in block.x.chunks_exact_mut(block.width.max(1)) {
                    for ((x, t), o) in row.iter_mut().zip(stretch.iter()).zip(offset.iter()) {
                        *x = t * *x + o;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Weights of `rows` rows from `first_row` on, out of those from `start` on.
fn stretch_of(weights: &[f64], start: u64, first_row: u64, rows: usize) -> Result<&[f64]> {
    let first = first_row.checked_sub(start).and_then(|first| usize::try_from(first).ok());
    let own = first.and_then(|first| weights.get(first..first.checked_add(rows)?));
    own.ok_or(Error::Shape { subject: "the weights", actual: weights.len(), expected: rows })
}

/// Takes the parts of `rows` through copies of their blocks that `alter` has changed.
fn altered<'s>(
    rows: &dyn Rows,
    alter: impl Fn(&mut Block) -> Result<()> + Sync,
    start: &Start<'_, 's>,
    merge: &mut Finish<'_, 's>,
) -> Result<()> {
    rows.fold(
        || (start(), Block::default()),
        |(part, copy), block| {
            copy.copy_from(block);
            alter(copy)?;
            part.step(copy)
        },
        |(part, _)| merge(part),
    )
}

/// Rows with alterations, in their order.
#[derive(Debug, Clone)]
pub struct Altered<'a> {
    rows: &'a dyn Rows,
    alterations: Vec<Alteration<'a>>,
}

impl<'a> Altered<'a> {
    /// The rows with these alterations.
    pub fn new(rows: &'a dyn Rows, alterations: Vec<Alteration<'a>>) -> Self {
        Self { rows, alterations }
    }

    /// The rows with other weights than their own: ω, one for each in order; there must be as many.
    pub fn weighted(rows: &'a dyn Rows, weights: &'a [f64]) -> Result<Self> {
        Self::weighted_from_row(rows, 0, weights)
    }

    /// The same for a part of a table whose first row is `first_row`: the weights are those of its own rows.
    pub fn weighted_from_row(rows: &'a dyn Rows, first_row: u64, weights: &'a [f64]) -> Result<Self> {
        if weights.len() as u64 != rows.len() {
            let (actual, expected) = (weights.len(), rows.len() as usize);
            return Err(Error::Shape { subject: "the weights", actual, expected });
        }
        let weights = Some(Cow::Borrowed(weights));
        Ok(Self::new(rows, vec![Alteration::Weights { first_row, weights }]))
    }
}

impl Rows for Altered<'_> {
    fn width(&self) -> usize {
        self.rows.width()
    }

    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn split_sizes(&self) -> Vec<usize> {
        self.rows.split_sizes()
    }

    fn elsewhere(&self) -> Option<Away<'_>> {
        let away = self.rows.elsewhere()?;
        Some(self.alterations.iter().cloned().fold(away, Away::altered))
    }

    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> Result<()> {
        let alter = |block: &mut Block| self.alterations.iter().try_for_each(|a| a.apply(block));
        altered(self.rows, alter, start, merge)
    }
}

/// Rows with one of them replaced, and every data column divided by its scale.
pub(crate) struct Replaced<'a> {
    pub(crate) rows: &'a dyn Rows,
    /// Which row.
    pub(crate) row: u64,
    /// Its values, before they are divided.
    pub(crate) x: &'a [f64],
    /// Its target; absent to leave it.
    pub(crate) y: Option<f64>,
    /// Scale of each column; those without one stay as they are.
    pub(crate) scale: &'a [f64],
}

impl Rows for Replaced<'_> {
    fn width(&self) -> usize {
        self.rows.width()
    }

    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn split_sizes(&self) -> Vec<usize> {
        self.rows.split_sizes()
    }

    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> Result<()> {
        let replace = |block: &mut Block| {
            let width = block.width;
            if (block.first_row..block.first_row + block.len() as u64).contains(&self.row) {
                let i = (self.row - block.first_row) as usize;
                block.x[i * width..(i + 1) * width].copy_from_slice(self.x);
                block.y[i] = self.y.unwrap_or(block.y[i]);
            }
            if !self.scale.is_empty() {
                for row in block.x.chunks_exact_mut(width.max(1)) {
                    row.iter_mut().zip(self.scale).for_each(|(x, s)| *x /= s);
                }
            }
            Ok(())
        };
        altered(self.rows, replace, start, merge)
    }
}

/// Rows that are already in memory as blocks: for tests, examples and small data.
#[derive(Debug, Clone, Default)]
pub struct InMemory {
    blocks: Vec<Block>,
    width: usize,
}

impl InMemory {
    /// Wraps blocks of equal width.
    pub fn new(blocks: Vec<Block>) -> Self {
        let width = blocks.first().map_or(0, |b| b.width);
        assert!(blocks.iter().all(|b| b.width == width), "blocks of one table have one width");
        Self { blocks, width }
    }

    /// One table from a row-major matrix and a target, cut into blocks of `block_rows`.
    pub fn from_matrix(x: &[f64], y: &[f64], weight: &[f64], block_rows: usize) -> Self {
        let (n, step) = (y.len(), block_rows.max(1));
        let width = x.len().checked_div(n).unwrap_or(0);
        let blocks = (0..n)
            .step_by(step)
            .map(|i| {
                let j = (i + step).min(n);
                Block {
                    first_row: i as u64,
                    width,
                    x: x[i * width..j * width].to_vec(),
                    y: y[i..j].to_vec(),
                    weight: if weight.is_empty() { vec![] } else { weight[i..j].to_vec() },
                    group: vec![],
                }
            })
            .collect();
        Self { blocks, width }
    }

    /// The blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

impl Rows for InMemory {
    fn width(&self) -> usize {
        self.width
    }

    fn len(&self) -> u64 {
        self.blocks.iter().map(|b| b.len() as u64).sum()
    }

    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> Result<()> {
        for block in &self.blocks {
            let mut part = start();
            part.step(block)?;
            merge(part)?;
        }
        Ok(())
    }
}
