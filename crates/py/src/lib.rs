//! `leakscope._native`: the application library for Python, thin.
//!
//! | module | what |
//! |---|---|
//! | `calls` | one function a question: a request's values in, an `Outcome` out |
//! | `cluster` | questions whose passes run elsewhere: bytes in, bytes out |
//! | `keywords` | Python values read into requests, with the keyword where one is wrong |
//! | `outcome` | what was found: document, page, summary, tables |
//! | `frames` | tables of results as Arrow streams |
//! | `table` | arrays and Arrow streams as a table in memory, without a copy |
//! | `running` | work beside the interpreter: signals, progress, panics |
//! | `failure` | exception classes |
//! | `accountant` | ε of a history of steps |
//! | `net`, `attacks` | networks over arrays, and attacks on them |
//! | `elsewhere` | what another framework measured |
//!
//! Adapters to numpy, pandas, polars, scikit-learn and torch are Python, under `python/leakscope`.

mod accountant;
mod attacks;
mod calls;
mod cluster;
mod elsewhere;
mod failure;
mod frames;
mod keywords;
mod net;
mod outcome;
mod running;
mod table;
mod text;

use pyo3::pymodule;

/// What `leakscope` is made on; its names are no interface.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::accountant::{account_advantage, account_delta, account_epsilon};
    #[pymodule_export]
    use crate::attacks::{attack_informed, attack_inversion, attack_membership};
    #[pymodule_export]
    use crate::calls::{
        account, attack, audit, balance, bound, bounds, calibrate, coefficients, compare, defaults,
        delimiter, private_model, release, schema, withdraw, write_text,
    };
    #[pymodule_export]
    use crate::cluster::{Machines, partition, run_part};
    #[pymodule_export]
    use crate::elsewhere::{StepCosts, net_measured, net_tracked};
    #[pymodule_export]
    use crate::failure::{BudgetError, DataError, FitError, LeakscopeError, OptionError};
    #[pymodule_export]
    use crate::frames::ResultTable;
    #[pymodule_export]
    use crate::net::{Network, overshoot, train_rows};
    #[pymodule_export]
    use crate::outcome::Outcome;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::text::{text_audit, text_canary, text_train};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        leakscope::spelling::speak(leakscope::Spelling::Python);
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
