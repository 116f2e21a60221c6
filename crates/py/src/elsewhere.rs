//! What another framework measured, as the same documents, and the per-step accounts that its training loop needs.

use crate::failure::{LeakscopeError, exception};
use crate::frames::{ResultTable, bytes};
use crate::keywords::request;
use crate::outcome::{Document, Outcome};
use leakscope::net::elsewhere::{self, Drawn, Elsewhere};
use leakscope::net::tracked::{self, Run};
use leakscope_net::{poisson, renyi};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, PoisonError};

fn numbers(py: Python<'_>, array: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<f64>> {
    array.map_or(Ok(vec![]), |array| PyBuffer::<f64>::get(array)?.to_vec(py))
}

/// An audit from measures that another framework made: the facts and a row for every record, and arrays (float64) of
/// images (channels last) and of PLIS maps.
#[pyfunction]
#[pyo3(signature = (values, shape=None, x=None, maps=None, channels_first=false))]
pub(crate) fn net_measured<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyDict>,
    shape: Option<[usize; 3]>,
    x: Option<&Bound<'py, PyAny>>,
    maps: Option<&Bound<'py, PyAny>>,
    channels_first: bool,
) -> PyResult<Outcome> {
    let e: Elsewhere = request(values)?;
    let drawn = Drawn { shape, x: numbers(py, x)?, maps: numbers(py, maps)?, channels_first };
    let measured = elsewhere::audit(&e, drawn).map_err(|failure| exception(&failure))?;
    let tables = measured.tables.clone();
    Ok(Outcome::new(Document::Net(Box::new(measured)), tables))
}

/// A training run of another framework with accounts of its records, and columns of numbers by step.
#[pyfunction]
pub(crate) fn net_tracked(
    values: &Bound<'_, PyDict>,
    drawn: Vec<f64>,
    loss: Vec<f64>,
    clipped: Vec<f64>,
) -> PyResult<Outcome> {
    let run: Run = request(values)?;
    let training = tracked::training(&run).map_err(|failure| exception(&failure))?;
    let steps = ResultTable::of_numbers(vec![("drawn", drawn), ("loss", loss), ("clipped", clipped)]);
    Ok(Outcome::of_training(training, steps))
}

/// What one Poisson-sampled step of DP-SGD costs a record whose gradient is ν noises long: tabulated for one rate.
#[pyclass(module = "leakscope._native", frozen)]
#[derive(Debug)]
pub(crate) struct StepCosts {
    rate: f64,
    poisson: poisson::Table,
    // sixteen thousand points of sixteen orders: made where a Rényi budget is first asked for
    renyi: Mutex<Option<renyi::Table>>,
    longest: f64,
}

fn wrong(error: leakscope_net::Error) -> PyErr {
    LeakscopeError::new_err(error.to_string())
}

#[pymethods]
impl StepCosts {
    /// For a sampling rate and the largest ν that the clip lets through.
    #[new]
    fn new(rate: f64, longest: f64) -> PyResult<Self> {
        let poisson = poisson::Table::new(rate, longest).map_err(wrong)?;
        Ok(Self { rate, poisson, renyi: Mutex::new(None), longest })
    }

    /// A and B of the Fisher information at every ν: two arrays (float64), one after the other.
    fn information<'py>(&self, py: Python<'py>, nu: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let nu = PyBuffer::<f64>::get(nu)?.to_vec(py)?;
        let moments: Vec<_> = nu.iter().map(|&nu| self.poisson.at(nu)).collect();
        let all = moments.iter().map(|c| c.across).chain(moments.iter().map(|c| c.along));
        bytes(py, 2 * nu.len(), all.map(f64::to_ne_bytes))
    }

    /// Rényi budgets of a step at every ν (rows) and order (columns), float64: never below the exact ones.
    fn renyi<'py>(&self, py: Python<'py>, nu: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let nu = PyBuffer::<f64>::get(nu)?.to_vec(py)?;
        let mut kept = self.renyi.lock().unwrap_or_else(PoisonError::into_inner);
        let table = match kept.take() {
            Some(table) => table,
            None => renyi::Table::new(self.rate, self.longest).map_err(wrong)?,
        };
        let all: Vec<f64> = nu.iter().flat_map(|&nu| table.at(nu)).collect();
        *kept = Some(table);
        bytes(py, all.len(), all.iter().map(|v| v.to_ne_bytes()))
    }

    /// The factor of the published bound on what sampling leaves of the information.
    fn published(&self, sigma: f64, delta: f64) -> PyResult<f64> {
        poisson::published_factor(self.rate, sigma, delta).map_err(wrong)
    }
}
