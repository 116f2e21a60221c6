//! One function a command: the words of a command line and tables in memory in, an [`Outcome`] out.

use crate::failure::{BudgetError, exception};
use crate::outcome::{Document, Outcome};
use crate::running::{OnInterrupt, run};
use crate::table::Table;
use leakscope::calls::{self, Tables, Trained};
use leakscope_table::Memory;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

type Given<'a, 'py> = Option<&'a Bound<'py, Table>>;

fn tables(data: Given<'_, '_>, test: Given<'_, '_>, score: Given<'_, '_>) -> PyResult<Tables> {
    let memory =
        |table: Given<'_, '_>| -> PyResult<Option<Memory>> { table.map(|t| t.borrow().memory()).transpose() };
    Ok(Tables { data: memory(data)?, test: memory(test)?, score: memory(score)? })
}

/// `leakscope audit`.
#[pyfunction]
#[pyo3(signature = (words, data=None, test=None, score=None, coefficients=None, target_as_it_is=false, progress=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
pub(crate) fn audit(
    py: Python<'_>,
    words: Vec<String>,
    data: Given<'_, '_>,
    test: Given<'_, '_>,
    score: Given<'_, '_>,
    coefficients: Option<Vec<(String, f64)>>,
    target_as_it_is: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let tables = tables(data, test, score)?;
    let trained = Trained { coefficients, target_as_it_is };
    let work = move |hooks: &_| calls::audit(&words, &tables, trained, hooks);
    let (audit, tables) = run(py, progress, OnInterrupt::Wait, work)?;
    Ok(Outcome::new(Document::Audit(Box::new(audit)), tables))
}

/// `leakscope balance`.
#[pyfunction]
#[pyo3(signature = (words, data=None, test=None, progress=None))]
pub(crate) fn balance(
    py: Python<'_>,
    words: Vec<String>,
    data: Given<'_, '_>,
    test: Given<'_, '_>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let tables = tables(data, test, None)?;
    let work = move |hooks: &_| calls::balance(&words, &tables, hooks);
    let (balance, tables) = run(py, progress, OnInterrupt::Wait, work)?;
    Ok(Outcome::new(Document::Balance(Box::new(balance)), tables))
}

/// `leakscope attack`.
#[pyfunction]
#[pyo3(signature = (words, data=None, test=None, progress=None))]
pub(crate) fn attack(
    py: Python<'_>,
    words: Vec<String>,
    data: Given<'_, '_>,
    test: Given<'_, '_>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let tables = tables(data, test, None)?;
    let work = move |hooks: &_| calls::attack(&words, &tables, hooks);
    let attack = run(py, progress, OnInterrupt::Wait, work)?;
    Ok(Outcome::new(Document::Attack(Box::new(attack)), vec![]))
}

/// `leakscope release`.
#[pyfunction]
#[pyo3(signature = (words, data=None, progress=None))]
pub(crate) fn release(
    py: Python<'_>,
    words: Vec<String>,
    data: Given<'_, '_>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let tables = tables(data, None, None)?;
    let work = move |hooks: &_| calls::release(&words, &tables, hooks);
    match run(py, progress, OnInterrupt::Wait, work)? {
        Ok((statement, written)) => {
            let outcome = Outcome::new(Document::Release(Box::new(statement)), vec![]);
            Ok(Outcome { written, ..outcome })
        }
        Err(why) => Err(BudgetError::new_err(why)),
    }
}

/// A private model without a ledger: coefficients as encoded and in own units, sigma, eta.
#[pyfunction]
#[pyo3(signature = (words, data, seed=None, target_as_it_is=false, progress=None))]
pub(crate) fn private_model<'py>(
    py: Python<'py>,
    words: Vec<String>,
    data: &Bound<'py, Table>,
    seed: Option<u64>,
    target_as_it_is: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let tables = tables(Some(data), None, None)?;
    let trained = Trained { coefficients: None, target_as_it_is };
    let work = move |hooks: &_| calls::private_model(&words, &tables, trained, seed, hooks);
    let private = run(py, progress, OnInterrupt::Wait, work)?;
    let found = PyDict::new(py);
    found.set_item("coefficients", private.coefficients)?;
    found.set_item("original_units", private.original_units)?;
    found.set_item("sigma", private.sigma)?;
    found.set_item("eta_mean", private.eta.mean)?;
    found.set_item("eta_max", private.eta.max)?;
    found.set_item("iterations", private.iterations)?;
    Ok(found)
}

/// `leakscope account`, `bound` or `calibrate`.
#[pyfunction]
#[pyo3(signature = (words, data=None, test=None, progress=None))]
pub(crate) fn answer(
    py: Python<'_>,
    words: Vec<String>,
    data: Given<'_, '_>,
    test: Given<'_, '_>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    // Passes over a table stop by themselves; accounting looks at nothing until it is done.
    let on_interrupt = if data.is_some() { OnInterrupt::Wait } else { OnInterrupt::Leave };
    let tables = tables(data, test, None)?;
    let answer = run(py, progress, on_interrupt, move |hooks| calls::answer(&words, &tables, hooks))?;
    Ok(Outcome::new(Document::Answer(answer), vec![]))
}

/// Names of the options of a command.
#[pyfunction]
pub(crate) fn options(command: Vec<String>) -> Option<Vec<String>> {
    calls::options(&command.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Writes a text file whole or not at all, readable by its owner alone.
#[pyfunction]
pub(crate) fn write_text(path: PathBuf, text: &str) -> PyResult<()> {
    calls::write_text(&path, text).map_err(|failure| exception(&failure))
}
