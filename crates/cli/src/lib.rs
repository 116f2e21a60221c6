//! The programme: what the commands do, one module each, over the libraries.
//!
//! | module | what |
//! |---|---|
//! | [`commands`] | one file per command; arguments are checked once, there |
//! | [`audit`] | a table in, an [`leakscope_report::Audit`] out |
//! | [`calls`] | the commands as functions, for other languages |
//! | [`balance`], [`attack`], [`release`], [`bound`], [`calibrate`] | the same for the other commands, over [`model`] |
//! | [`reproduce`] | tables and figures of the papers |
//! | [`patients`] | the synthetic patients of the demo |
//! | [`failure`] | what a user is told when there is no answer |
//! | [`output`] | results written whole or not at all |

pub mod attack;
pub mod audit;
pub mod balance;
pub mod bound;
pub mod calibrate;
pub mod calls;
pub mod commands;
pub mod failure;
pub mod model;
pub mod output;
pub mod patients;
mod progress;
pub mod release;
pub mod reproduce;
mod unexpected;

pub use failure::{Failure, Result};
