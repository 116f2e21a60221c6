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
