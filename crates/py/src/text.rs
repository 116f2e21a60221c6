//! Questions about language models.

use crate::keywords::request;
use crate::outcome::{Document, Outcome};
use crate::running::{OnInterrupt, run};
use leakscope::net::train::Listener;
use leakscope::net::training::NetTraining;
use leakscope::output::{Folder, results};
use leakscope::text::audit::{self, TextAuditRequest};
use leakscope::text::canary::{self, CanaryRequest};
use leakscope::text::train::{self, TextTrainRequest};
use leakscope::{Failure, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;

/// Can a secret be pulled out of a model that was fine-tuned on it?
#[pyfunction]
#[pyo3(signature = (values, progress=None))]
pub(crate) fn text_canary(
    py: Python<'_>,
    values: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let request: CanaryRequest = request(values)?;
    let answer = run(py, progress, OnInterrupt::Wait, move |hooks: &_| canary::run(&request, hooks))?;
    Ok(Outcome::new(Document::Canary(Box::new(answer)), vec![]))
}

/// What one noisy step of fine-tuning tells about texts.
#[pyfunction]
#[pyo3(signature = (values, progress=None))]
pub(crate) fn text_audit(
    py: Python<'_>,
    values: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let request: TextAuditRequest = request(values)?;
    let work = move |hooks: &_| audit::run(&request, Some(&Folder::in_memory()), hooks);
    let answer = run(py, progress, OnInterrupt::Wait, work)?;
    Ok(Outcome::new(Document::Texts(Box::new((answer.audit, answer.texts))), results(answer.pending)))
}

/// A language model fine-tuned on texts, in a folder. Returns the run and whether its seed was drawn.
#[pyfunction]
#[pyo3(signature = (values, out, progress=None))]
pub(crate) fn text_train(
    py: Python<'_>,
    values: &Bound<'_, PyDict>,
    out: PathBuf,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let request: TextTrainRequest = request(values)?;
    let work = move |hooks: &_| -> Result<_> {
        let listener = Listener { hooks, on_point: &|_| {}, on_seed: &|_| {} };
        let done = train::run(&request, &out, &listener)?;
        match done.run.diverged {
            Some(why) => Err(Failure::Message(why)),
            None => Ok((done.run.training, done.run.written, done.tables)),
        }
    };
    let (training, written, tables) = run(py, progress, OnInterrupt::Wait, work)?;
    let run = NetTraining { training, tables: tables.clone(), model: None, encoding: None };
    Ok(Outcome::stored(Document::Training(Box::new(run)), tables, written))
}
