//! The schemas: what the JSON files hold and every page is drawn from. Plain data, versioned, nothing drawn here.
//!
//! Choices are enums whose names in the JSON are those of the command line; a number's kind (measured, bound, observed)
//! is its type.

pub mod account;
pub mod attack;
pub mod audit;
pub mod balance;
pub mod bound;
pub mod calibrate;
pub mod canary;
pub mod choice;
pub mod comparison;
pub mod explore;
pub mod informed;
pub mod inversion;
pub mod judged;
pub mod membership;
pub mod net;
pub mod noise;
pub mod public;
pub mod release;
pub mod reproduction;
pub mod subject;
pub mod tell;
pub mod text;
pub mod text_audit;
pub mod training;
