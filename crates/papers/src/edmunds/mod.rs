//! Edmunds (2024): training that gives less away. Tables 3.1 to 3.5, figures 3.1, 3.2 and 3.4, table A.1.
//!
//! | file | what |
//! |---|---|
//! | `run` | one run: public pre-training, then one private pass |
//! | `tables` | tables 3.1 to 3.3 |
//! | `sweeps` | figures 3.1 and 3.2 |
//! | `batch_norm` | what a batch norm over one record returns |
//! | `informed` | tables 3.4 and A.1, figure 3.4: digits 0 and 1, the models that are attacked |
//! | `attack` | table 3.5: what the informed adversary reconstructs |

mod attack;
mod batch_norm;
mod informed;
mod run;
mod sweeps;
mod tables;

pub(crate) use attack::table_3_5;
pub(crate) use informed::{fig_3_4, table_3_4, table_a_1};
pub(crate) use sweeps::{fig_3_1, fig_3_2};
pub(crate) use tables::{table_3_1, table_3_2, table_3_3};

use super::mueller::said;
use leakscope::Result;
use leakscope_core::dp::{Adjacency, Mechanism, rdp};

/// ε of the thesis: Rényi accounting of Poisson sampling at σ/1.115, which the smooth clip asks for.
fn epsilon(sigma: f64, rate: f64, steps: u64) -> Result<f64> {
    let step = Mechanism::gaussian(sigma / 1.115, rate);
    Ok(rdp::epsilon(&[(step, steps)], Adjacency::AddRemove, run::DELTA).map_err(said)?.epsilon)
}
