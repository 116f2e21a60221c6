//! Audits whose passes run elsewhere: a callable gets a pass and its parts as bytes, and gives the answers as bytes.

use crate::failure::exception;
use crate::keywords::request;
use crate::outcome::{Document, Outcome};
use crate::running::{OnInterrupt, run};
use leakscope::audit::{self as auditing, Request};
use leakscope::cluster;
use leakscope::output::{Folder, results};
use leakscope_table::{Answers, Error, Hooks, Machines, Splits, Work};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A callable that has parts computed: `(name, work, parts) -> answers`.
#[derive(Debug)]
struct Callable {
    compute: Py<PyAny>,
    /// What it raised.
    raised: Mutex<Option<PyErr>>,
}

impl Callable {
    fn call(&self, name: &str, work: &[u8], parts: &[String]) -> PyResult<Vec<Vec<u8>>> {
        Python::attach(|py| {
            let answers = self.compute.bind(py).call1((name, PyBytes::new(py, work), parts))?;
            answers.try_iter()?.map(|answer| answer?.extract::<Vec<u8>>()).collect()
        })
    }
}

impl Machines for Callable {
    fn answers(&self, splits: &Splits, work: &Work) -> leakscope_table::Result<Answers> {
        let failed = |e: &dyn std::fmt::Display| Error::Elsewhere(e.to_string());
        let name = cluster::short_name(work).map_err(|e| failed(&e))?;
        let mut parts = Vec::with_capacity(splits.splits.len());
        for at in 0..splits.splits.len() {
            parts.push(serde_json::to_string(&splits.only(at)?).map_err(|e| failed(&e))?);
        }
        match self.call(&name, &work.to_bytes()?, &parts) {
            Ok(answers) => Ok(Answers::Parts(answers)),
            Err(raised) => {
                let message = raised.to_string();
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                Err(Error::Elsewhere(message))
            }
        }
    }
}

/// What a model gives away, with the passes over files computed by `compute`; records are written by whoever computes parts.
#[pyfunction]
#[pyo3(signature = (values, compute, records=false, progress=None))]
pub(crate) fn audit_on(
    py: Python<'_>,
    values: &Bound<'_, PyDict>,
    compute: Py<PyAny>,
    records: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let request: Request = request(values)?;
    let callable = Arc::new(Callable { compute, raised: Mutex::default() });
    let machines: Arc<dyn Machines> = Arc::<Callable>::clone(&callable);
    let work = move |hooks: &Hooks| {
        let folder = Folder::in_memory();
        let folder = records.then_some(&folder);
        auditing::run_on(&request, Some(&machines), folder, hooks, &|_| {})
    };
    // A pass that runs elsewhere looks at nothing here until it is done.
    let found = run(py, progress, OnInterrupt::Leave, work);
    let raised = callable.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (found, raised) {
        (_, Some(raised)) => Err(raised),
        (Err(failure), None) => Err(failure),
        (Ok(found), None) => {
            let tables = results(found.pending);
            Ok(Outcome::new(Document::Audit(Box::new(found.audit)), tables))
        }
    }
}

/// Computes one part of a pass; its records go to a file in the folder of that name, where there is one.
#[pyfunction]
#[pyo3(signature = (work, part, records=None))]
pub(crate) fn run_part<'py>(
    py: Python<'py>,
    work: Vec<u8>,
    part: String,
    records: Option<PathBuf>,
) -> PyResult<Bound<'py, PyBytes>> {
    let answer = py.detach(|| cluster::part(&work, &part, 0, records.as_deref(), &Hooks::default()));
    answer.map(|bytes| PyBytes::new(py, &bytes)).map_err(|failure| exception(&failure))
}
