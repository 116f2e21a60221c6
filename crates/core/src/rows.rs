//! Blocks of encoded rows, and the one way to pass over them: a fold whose states merge in order.

use crate::Result;

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

    /// Runs `step` over every block; `start` makes the state of a run of consecutive blocks, `merge` receives
    /// the states in row order.
    fn fold<S: Send>(
        &self,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block) -> Result<()> + Sync,
        merge: impl FnMut(S) -> Result<()>,
    ) -> Result<()>;
}

/// Rows with other weights than their own, or (without any) all of weight one.
#[derive(Debug, Clone, Copy)]
pub struct Reweighted<'a, R> {
    rows: &'a R,
    /// Row that the first weight is of.
    first_row: u64,
    weights: Option<&'a [f64]>,
}

impl<'a, R: Rows> Reweighted<'a, R> {
    /// The rows with weights ω, one for each in order; there must be as many.
    pub fn new(rows: &'a R, weights: &'a [f64]) -> Result<Self> {
        Self::from_row(rows, 0, weights)
    }

    /// The same for a part of a table whose first row is `first_row`: the weights are those of its own rows.
    pub fn from_row(rows: &'a R, first_row: u64, weights: &'a [f64]) -> Result<Self> {
        if weights.len() as u64 != rows.len() {
            let (found, expected) = (weights.len(), rows.len() as usize);
            return Err(crate::Error::Shape { what: "the weights", found, expected });
        }
        Ok(Self { rows, first_row, weights: Some(weights) })
    }

    /// The rows without weights.
    pub fn ones(rows: &'a R) -> Self {
        Self { rows, first_row: 0, weights: None }
    }
}

impl<R: Rows> Rows for Reweighted<'_, R> {
    fn width(&self) -> usize {
        self.rows.width()
    }

    fn len(&self) -> u64 {
        self.rows.len()
    }

    fn fold<S: Send>(
        &self,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block) -> Result<()> + Sync,
        mut merge: impl FnMut(S) -> Result<()>,
    ) -> Result<()> {
        self.rows.fold(
            || (start(), Block::default()),
            |(state, copy), block| {
                let first = (block.first_row - self.first_row) as usize;
                copy.first_row = block.first_row;
                copy.width = block.width;
                copy.x.clone_from(&block.x);
                copy.y.clone_from(&block.y);
                copy.group.clone_from(&block.group);
                copy.weight.clear();
                if let Some(weights) = self.weights {
                    copy.weight.extend_from_slice(&weights[first..first + block.len()]);
                }
                step(state, copy)
            },
            |(state, _)| merge(state),
        )
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

    fn fold<S: Send>(
        &self,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block) -> Result<()> + Sync,
        mut merge: impl FnMut(S) -> Result<()>,
    ) -> Result<()> {
        for block in &self.blocks {
            let mut state = start();
            step(&mut state, block)?;
            merge(state)?;
        }
        Ok(())
    }
}
