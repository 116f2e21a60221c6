//! What a history of noisy steps costs, certified from both sides.

use crate::running::{OnInterrupt, run};
use leakscope_core::dp::{Accountant, Adjacency, Mechanism};
use pyo3::prelude::*;

/// Steps of Gaussian noise: noise multiplier, sampling rate, how many.
type History = Vec<(f64, f64, u64)>;

fn over<T: Send + 'static>(
    py: Python<'_>,
    history: History,
    replace: bool,
    question: impl FnOnce(&Accountant) -> leakscope_core::Result<T> + Send + 'static,
) -> PyResult<T> {
    run(py, None, OnInterrupt::Leave, move |_| {
        let adjacency = if replace { Adjacency::Replace } else { Adjacency::AddRemove };
        let mut accountant = Accountant::new(adjacency);
        for (sigma, rate, count) in history {
            accountant = accountant.with(Mechanism::gaussian(sigma, rate), count)?;
        }
        Ok(question(&accountant)?)
    })
}

/// ε at a δ: not below the first, not above the second.
#[pyfunction]
pub(crate) fn account_epsilon(
    py: Python<'_>,
    history: History,
    delta: f64,
    replace: bool,
) -> PyResult<(f64, f64)> {
    let answer = over(py, history, replace, move |a| a.epsilon(delta))?;
    Ok((answer.lower, answer.upper))
}

/// δ at an ε: not below the first, not above the second.
#[pyfunction]
pub(crate) fn account_delta(
    py: Python<'_>,
    history: History,
    epsilon: f64,
    replace: bool,
) -> PyResult<(f64, f64)> {
    let answer = over(py, history, replace, move |a| a.delta(epsilon))?;
    Ok((answer.lower, answer.upper))
}

/// True- less false-positive rate of any test of membership: not below the first, not above the second.
#[pyfunction]
pub(crate) fn account_advantage(py: Python<'_>, history: History, replace: bool) -> PyResult<(f64, f64)> {
    let answer = over(py, history, replace, Accountant::advantage)?;
    Ok((answer.lower, answer.upper))
}
