//! The mathematics of Leakscope, over `f64` matrices. No files, no clock, no printing, no hidden randomness.
//!
//! | module | what it holds | formula |
//! |---|---|---|
//! | [`claim`] | the three kinds of number we show: measured, bound, observed | |
//! | [`error`] | what can go wrong, as data | |
//! | [`num`] | distributions of a stream, special functions | |
//! | [`linalg`] | row-major products, symmetric decompositions | `C = A B` |
//! | [`rows`] | blocks of encoded rows and the passes over them | |
//! | [`glm`] | generalised linear models and their minimiser | `w* = argmin Σ ωℓ(wᵀx, y) + nλ/2 ‖w‖²` |
//! | [`fisher`] | Fisher information loss of records, attributes, groups, data sets | `η = ‖J‖₂/σ` |
//!
//! Arrows run one way: `error, num, linalg, claim ← rows ← glm ← fisher`.

pub mod claim;
pub mod error;
pub mod fisher;
pub mod glm;
pub mod linalg;
pub mod num;
pub mod rows;

pub use error::{Error, Result};
