//! `leakscope._native`: the functions of the command line for Python, thin.
//!
//! | module | what |
//! |---|---|
//! | `calls` | one function a command: words in, an [`outcome::Outcome`] out |
//! | `outcome` | what a command found: JSON, page, summary, tables |
//! | `table` | arrays and Arrow streams as a table in memory, without a copy |
//! | `running` | work beside the interpreter: signals, progress, panics |
//! | `failure` | exception classes |
//! | `accountant` | ε of a history of steps |
//! | `net` | networks over arrays |
//!
//! Adapters to numpy, pandas, polars, scikit-learn and torch are Python, under `python/leakscope`.

mod accountant;
mod calls;
mod failure;
mod net;
mod outcome;
mod running;
mod table;

use pyo3::pymodule;

/// What `leakscope` is made on; its names are no interface.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::accountant::{account_advantage, account_delta, account_epsilon};
    #[pymodule_export]
    use crate::calls::{answer, attack, audit, balance, options, private_model, release, write_text};
    #[pymodule_export]
    use crate::failure::{BudgetError, DataError, FitError, LeakscopeError, OptionError};
    #[pymodule_export]
    use crate::net::{Network, overshoot, sigma_for};
    #[pymodule_export]
    use crate::outcome::Outcome;
    #[pymodule_export]
    use crate::table::Table;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
