//! The informed adversary (Balle, Cherubin, Hayes 2022; Edmunds §3.2): somebody who knows all records but one, and how the
//! model is trained, learns from models of his own what the released parameters say of the last record.
//!
//! | file | what |
//! |---|---|
//! | `training` | how all models are trained, some at a time, each with noise of its own |
//! | `many` | thousands of linear models trained at once: a step of all is two products of matrices |
//! | `dense` | thousands of networks of dense layers trained at once: a layer of all is a batch of products |
//! | `learn` | the map from parameters to the record: by class in closed form, or a network; and without parameters |
//! | `project` | many parameters on their principal components |
//! | `exact` | a linear model at its minimum gives the last record away in closed form |

mod dense;
mod exact;
mod learn;
mod many;
mod project;
mod training;

pub use dense::Dense;
pub use exact::last_record;
pub use learn::{Examples, Learning, Standard, by_label, by_network, by_ridge};
pub use many::{Linear, train_many};
pub use project::projected;
pub use training::{Rest, Training};
