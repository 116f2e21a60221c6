//! Attacks on networks: requests in, documents out.
//!
//! | module | what |
//! |---|---|
//! | [`inversion`] | records reconstructed from gradients, beside what the gradients tell at most |
//! | [`informed`] | the last record, from the parameters of models trained on it |
//! | [`membership`] | who was among the training records; ε of a run from below |
//! | `models` | the models that the informed adversary trains |
//! | `own` | what the run's accounts say of single training records |
//! | `subject` | the model and the records that are attacked |
//! | `levels` | what came of one noise: quality, correlations, bounds |
//! | `showing` | documents → pages, pictures, tables |
//! | `statistics` | means with intervals, rank correlations |

pub mod informed;
pub mod inversion;
mod levels;
pub mod membership;
mod models;
mod own;
mod showing;
mod statistics;
mod subject;

pub use subject::Subject;
