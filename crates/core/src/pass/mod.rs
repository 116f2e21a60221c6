//! Passes over rows as values: what is summed, apart from who runs it.
//!
//! A [`Pass`] is plain data with a rule for one block; its state is plain data that merges. One machine runs it with
//! threads over the parts of its table ([`run`]); several send the pass as bytes, run it where the rows are and send the
//! state back as bytes. The parts of a table depend on the data alone and states merge in their order, so the result is
//! the same to the last digit whoever ran them, in whatever order.
//!
//! ```
//! use leakscope_core::pass::{self, LargestNorm, Merge, Pass};
//! use leakscope_core::rows::InMemory;
//!
//! let parts = [InMemory::from_matrix(&[3.0, 4.0], &[1.0], &[], 1), InMemory::from_matrix(&[0.6, 0.8], &[0.0], &[], 1)];
//! // On another machine: the pass comes as bytes, its state goes back as bytes.
//! let sent = pass::to_bytes(&LargestNorm)?;
//! let answers = parts.iter().map(|part| {
//!     let pass: LargestNorm = pass::from_bytes(&sent)?;
//!     pass::state_to_bytes(&pass, &pass::run(&pass, part)?)
//! });
//! // Here: states merge in the order of the parts.
//! let mut total = LargestNorm.start();
//! for answer in answers {
//!     total.merge(pass::state_from_bytes(&LargestNorm, &answer?)?);
//! }
//! assert_eq!(total.norm, 5.0);
//! # Ok::<(), leakscope_core::Error>(())
//! ```
//!
//! | pass | what it finds |
//! |---|---|
//! | [`LargestNorm`], [`Covariance`] | what an encoding needs of its columns |
//! | [`glm::Newton`](crate::glm::Newton), [`glm::LogStart`](crate::glm::LogStart), [`glm::HuberStart`](crate::glm::HuberStart) | sums of a fit |
//! | [`glm::Utility`](crate::glm::Utility) | what noise costs on held-out rows |
//! | [`fisher::noise::Scores`](crate::fisher::noise::Scores) | the middle of the sandwich of standard errors |
//! | [`fisher::Eta`](crate::fisher::Eta) | the distribution of η |
//! | [`measure::CountedEta`](crate::measure::CountedEta) | the same with the scaling of columns counted |
//! | [`measure::Measure`](crate::measure::Measure) | records, attributes, groups |
//! | [`measure::ColumnValues`](crate::measure::ColumnValues), [`measure::ColumnDistributions`](crate::measure::ColumnDistributions) | columns as they stand |
//! | [`attack::Removals`](crate::attack::Removals) | how far a regression moves without each record |
//! | [`balance::Losses`](crate::balance::Losses), [`balance::OwnWeights`](crate::balance::OwnWeights) | a number a record |

pub mod bytes;
mod columns;
mod reader;
mod writer;

pub use columns::{Covariance, CovarianceSums, Largest, LargestNorm};

use crate::error::Damage;
use crate::rows::{Block, Rows, States};
use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A state that takes up the state of the rows that come after its own.
pub trait Merge {
    /// Adds the state of later rows.
    fn merge(&mut self, later: Self);
}

/// What is summed over rows.
pub trait Pass: Serialize + DeserializeOwned + Sync {
    /// What its bytes are called.
    const NAME: &'static str;

    /// What is summed. Buffers that only save allocations are skipped by its `Serialize`.
    type State: Merge + Serialize + DeserializeOwned + Send;

    /// The state of no rows.
    fn start(&self) -> Self::State;

    /// Adds the rows of a block, which come after those that the state has.
    fn step(&self, state: &mut Self::State, block: &Block) -> Result<()>;

    /// Whether a state that was read from bytes has the sizes that this pass gives its own.
    fn fits(&self, state: &Self::State) -> bool;
}

/// Who can run any pass over all rows of a table: threads of this machine over [`Rows`], or a cluster.
pub trait Runner {
    /// Number of columns, intercept included.
    fn columns(&self) -> usize;

    /// Number of rows.
    fn count(&self) -> u64;

    /// The state of all rows: that of every part, merged in row order.
    fn run<P: Pass>(&self, pass: &P) -> Result<P::State>;
}

impl Runner for dyn Rows + '_ {
    fn columns(&self) -> usize {
        self.width()
    }

    fn count(&self) -> u64 {
        self.len()
    }

    fn run<P: Pass>(&self, pass: &P) -> Result<P::State> {
        run(pass, self)
    }
}

impl<R: Rows> Runner for R {
    fn columns(&self) -> usize {
        self.width()
    }

    fn count(&self) -> u64 {
        self.len()
    }

    fn run<P: Pass>(&self, pass: &P) -> Result<P::State> {
        run(pass, self)
    }
}

/// Runs a pass over rows: on the threads of this machine, or where the rows are.
pub fn run<P: Pass>(pass: &P, rows: &dyn Rows) -> Result<P::State> {
    let mut tree = Tree::new(rows.split_sizes());
    if let Some(elsewhere) = rows.elsewhere() {
        let sent = to_bytes(pass)?;
        match elsewhere.states(&sent)? {
            States::Merged(state) => return state_from_bytes(pass, &state),
            States::Splits(states) => {
                for state in &states {
                    tree.add_split(state_from_bytes(pass, state)?);
                }
            }
        }
        let total = tree.finish().unwrap_or_else(|| pass.start());
        elsewhere.keep(&sent, &state_to_bytes(pass, &total)?)?;
        return Ok(total);
    }
    rows.fold(
        || pass.start(),
        |state, block| pass.step(state, block),
        |state| {
            tree.add(state);
            Ok(())
        },
    )?;
    Ok(tree.finish().unwrap_or_else(|| pass.start()))
}

/// States merged in row order: those of a split first with one another, as a machine merges them that has no other split.
///
/// The first state of a split, and the first split, are taken as they are, so that a table of one split is that split.
#[derive(Debug)]
pub struct Tree<S> {
    sizes: std::vec::IntoIter<usize>,
    /// Parts that the split in progress still lacks.
    lacking: usize,
    split: Option<S>,
    total: Option<S>,
}

impl<S: Merge> Tree<S> {
    /// For splits of so many parts ([`Rows::split_sizes`]).
    pub fn new(sizes: Vec<usize>) -> Self {
        Self { sizes: sizes.into_iter(), lacking: 0, split: None, total: None }
    }

    /// Adds the state of the next part.
    pub fn add(&mut self, state: S) {
        if self.split.is_none() {
            self.lacking = self.sizes.next().unwrap_or(1).max(1);
        }
        joined(&mut self.split, state);
        self.lacking -= 1;
        if self.lacking == 0 {
            self.close();
        }
    }

    /// Adds the state of a whole split.
    pub fn add_split(&mut self, state: S) {
        self.close();
        joined(&mut self.total, state);
    }

    fn close(&mut self) {
        if let Some(split) = self.split.take() {
            joined(&mut self.total, split);
        }
    }

    /// The state of all parts; `None` where there were none.
    pub fn finish(mut self) -> Option<S> {
        self.close();
        self.total
    }
}

fn joined<S: Merge>(total: &mut Option<S>, state: S) {
    match total {
        Some(total) => total.merge(state),
        None => *total = Some(state),
    }
}

/// A pass as bytes, for whoever runs it on other rows.
pub fn to_bytes<P: Pass>(pass: &P) -> Result<Vec<u8>> {
    bytes::write(P::NAME, 0, pass)
}

/// The pass that [`to_bytes`] wrote; [`bytes::kind_of`] tells which it is.
pub fn from_bytes<P: Pass>(bytes: &[u8]) -> Result<P> {
    bytes::read(P::NAME, 0, bytes)
}

/// The state of a pass as bytes.
pub fn state_to_bytes<P: Pass>(pass: &P, state: &P::State) -> Result<Vec<u8>> {
    bytes::write(P::NAME, key(pass)?, state)
}

/// The state that [`state_to_bytes`] wrote: of this very pass, whatever else was run meanwhile.
///
/// # Errors
/// [`Error::Bytes`] where they are damaged, of another version, of another pass or of the same with other numbers.
pub fn state_from_bytes<P: Pass>(pass: &P, bytes: &[u8]) -> Result<P::State> {
    let state = bytes::read(P::NAME, key(pass)?, bytes)?;
    if pass.fits(&state) {
        return Ok(state);
    }
    Err(Error::Bytes { subject: P::NAME, damage: Damage::Content("the state has other sizes".into()) })
}

/// What distinguishes a pass from every other: a state of one Newton step is none of the next.
fn key<P: Pass>(pass: &P) -> Result<u64> {
    // Its checksum; zero is the key of passes themselves.
    Ok(bytes::checksum_of(&to_bytes(pass)?) | 1)
}

/// Sums that may have overflowed, for `serialize_with`: where they have no digits left they are written as infinity,
/// which is refused further on just as NaN is, but can be read.
pub mod overflowing {
    use serde::Serializer;

    fn settled(x: f64) -> f64 {
        if x.is_nan() { f64::INFINITY } else { x }
    }

    /// One number.
    pub fn number<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(settled(*x))
    }

    /// Several.
    pub fn numbers<S: Serializer>(xs: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(xs.iter().map(|x| settled(*x)))
    }
}
