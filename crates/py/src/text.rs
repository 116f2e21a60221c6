//! Questions about language models.

use crate::keywords::request;
use crate::outcome::{Document, Outcome};
use crate::running::{OnInterrupt, run};
use leakscope::output::{Folder, results};
use leakscope::text::audit::{self, TextAuditRequest};
use leakscope::text::canary::{self, CanaryRequest};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Can a secret be pulled out of a model that was fine-tuned on it?
#[pyfunction]
#[pyo3(signature = (values, progress=None))]
pub(crate) fn text_canary(
    py: Python<'_>,
    values: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let request: CanaryRequest = request(values)?;
    let found = run(py, progress, OnInterrupt::Wait, move |hooks: &_| canary::run(&request, hooks))?;
    Ok(Outcome::new(Document::Canary(Box::new(found)), vec![]))
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
    let found = run(py, progress, OnInterrupt::Wait, work)?;
    Ok(Outcome::new(Document::Texts(Box::new((found.audit, found.texts))), results(found.pending)))
}
