//! Leakscope as a library: requests in, documents out.
//!
//! | module | what |
//! |---|---|
//! | [`audit`] | a table in, an [`leakscope_report::Audit`] out |
//! | [`balance`], [`attack`], [`release`], [`bound`], [`calibrate`] | the same for the other questions, over [`model`] |
//! | [`net`] | networks: training in private, and what their gradients give away |
//! | [`output`] | results in folders, written whole or not at all |
//! | [`saving`] | what each question leaves in a folder |
//! | [`failure`] | why there is no answer |

pub mod account;
pub mod attack;
pub mod audit;
pub mod balance;
pub mod bound;
pub mod calibrate;
pub mod coefficients;
pub mod failure;
pub mod mechanism;
pub mod model;
pub mod net;
pub mod output;
pub mod release;
pub mod saving;
pub mod seed;
pub mod spelling;
pub mod unexpected;

pub use failure::{Failure, Result};
pub use spelling::Spelling;
