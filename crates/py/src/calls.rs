//! One function a question: the values of a request and tables in memory in, an [`Outcome`] out.

use crate::cluster::Machines;
use crate::failure::{BudgetError, exception};
use crate::frames::ResultTable;
use crate::keywords::{keyword, request};
use crate::outcome::{Document, Outcome};
use crate::running::{OnInterrupt, run};
use crate::table::Table;
use leakscope::account::{self as accounting, AccountRequest};
use leakscope::attack::{self as attacking, Playing};
use leakscope::audit::{self as auditing, Noise, Request};
use leakscope::balance::{self as balancing, Balancing};
use leakscope::bound::{self as bounding, BoundRequest};
use leakscope::calibrate::{self as calibrating, CalibrateRequest};
use leakscope::compare::{self as comparing, CompareRequest};
use leakscope::mechanism::ReleaseStep;
use leakscope::net::audit::NetAuditRequest;
use leakscope::net::train::TrainRequest;
use leakscope::noise::NoiseOptions;
use leakscope::output::{Folder, results, write_text as write};
use leakscope::release::{self as releasing, Terms};
use leakscope::saving::RELEASE;
use leakscope::text::audit::TextAuditRequest;
use leakscope::text::canary::CanaryRequest;
use leakscope::text::train::TextTrainRequest;
use leakscope::{Failure, Result};
use leakscope_table::{Bounds, Memory, ReadOptions, RecordsFormat, Schema};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::path::PathBuf;

type Values<'a, 'py> = &'a Bound<'py, PyDict>;
type TableArgument<'a, 'py> = Option<&'a Bound<'py, Table>>;
type Progress<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
type On<'a, 'py> = Option<&'a Bound<'py, Machines>>;

/// A pass that runs elsewhere looks at nothing here until it is done.
fn waiting(machines: On<'_, '_>) -> OnInterrupt {
    if machines.is_some() { OnInterrupt::Leave } else { OnInterrupt::Wait }
}

/// How to read a table in memory, as the request reads files.
fn memory(table: TableArgument<'_, '_>, like: &ReadOptions) -> PyResult<Option<ReadOptions>> {
    let Some(table) = table else { return Ok(None) };
    let memory: Memory = table.borrow().memory()?;
    Ok(Some(ReadOptions { paths: vec![], memory: vec![memory], ..like.clone() }))
}

/// The request of a table, with tables in memory in the place of files.
fn with_tables(
    mut request: Request,
    data: TableArgument<'_, '_>,
    test: TableArgument<'_, '_>,
    score: TableArgument<'_, '_>,
) -> PyResult<Request> {
    let like = request.read.clone();
    request.read = memory(data, &like)?.unwrap_or(request.read);
    request.test = memory(test, &like)?.or(request.test);
    request.score = memory(score, &like)?.or(request.score);
    Ok(request)
}

/// Options of noise with a public table in memory in the place of files.
fn with_shape(
    mut options: Box<NoiseOptions>,
    shape_from: TableArgument<'_, '_>,
    like: &ReadOptions,
) -> PyResult<Box<NoiseOptions>> {
    options.shape_from = memory(shape_from, like)?.or(options.shape_from);
    Ok(options)
}

/// What a model gives away.
#[pyfunction]
#[pyo3(signature = (values, data=None, test=None, score=None, shape_from=None, progress=None, machines=None, tables=true))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
pub(crate) fn audit(
    py: Python<'_>,
    values: Values<'_, '_>,
    data: TableArgument<'_, '_>,
    test: TableArgument<'_, '_>,
    score: TableArgument<'_, '_>,
    shape_from: TableArgument<'_, '_>,
    progress: Progress<'_, '_>,
    machines: On<'_, '_>,
    tables: bool,
) -> PyResult<Outcome> {
    let mut request = with_tables(request(values)?, data, test, score)?;
    request.noise = match request.noise {
        Noise::Shaped(options) => Noise::Shaped(with_shape(options, shape_from, &request.read)?),
        other => other,
    };
    let request = Machines::read(machines, request);
    let work = move |hooks: &_| {
        let folder = Folder::in_memory();
        auditing::run(&request, tables.then_some(&folder), hooks, &|_| {})
    };
    let answer = Machines::settled(machines, run(py, progress, waiting(machines), work))?;
    Ok(Outcome::new(Document::Audit(Box::new(answer.audit)), results(answer.pending)))
}

/// Weights at which all records leak the same.
#[pyfunction]
#[pyo3(signature = (values, balancing, data=None, test=None, progress=None, machines=None))]
pub(crate) fn balance(
    py: Python<'_>,
    values: Values<'_, '_>,
    balancing: Values<'_, '_>,
    data: TableArgument<'_, '_>,
    test: TableArgument<'_, '_>,
    progress: Progress<'_, '_>,
    machines: On<'_, '_>,
) -> PyResult<Outcome> {
    let balancing: Balancing = request(balancing)?;
    let base = with_tables(request(values)?, data, test, None)?;
    // Noise that is made for targets says more than σ.
    let base = match base.noise.options() {
        Some(_) => base,
        None => leakscope::model::plain(base, Some(balancing.sigma)),
    };
    let base = Machines::read(machines, base);
    let work = move |hooks: &_| balancing::run(&base, &balancing, Some(&Folder::in_memory()), hooks, |_| {});
    let answer = Machines::settled(machines, run(py, progress, waiting(machines), work))?;
    Ok(Outcome::new(Document::Balance(Box::new(answer.balance)), results(answer.pending)))
}

/// How often a secret is guessed.
#[pyfunction]
#[pyo3(signature = (values, playing, data=None, test=None, progress=None))]
pub(crate) fn attack(
    py: Python<'_>,
    values: Values<'_, '_>,
    playing: Values<'_, '_>,
    data: TableArgument<'_, '_>,
    test: TableArgument<'_, '_>,
    progress: Progress<'_, '_>,
) -> PyResult<Outcome> {
    let playing: Playing = request(playing)?;
    let base = with_tables(request(values)?, data, test, None)?;
    let work = move |hooks: &_| attacking::run(&base, &playing, hooks);
    let attack = run(py, progress, OnInterrupt::Wait, work)?;
    Ok(Outcome::new(Document::Attack(Box::new(attack)), vec![]))
}

/// A private model with its statement, in a folder with a ledger.
#[pyfunction]
#[pyo3(signature = (values, terms, out, data=None, progress=None, machines=None))]
pub(crate) fn release(
    py: Python<'_>,
    values: Values<'_, '_>,
    terms: Values<'_, '_>,
    out: PathBuf,
    data: TableArgument<'_, '_>,
    progress: Progress<'_, '_>,
    machines: On<'_, '_>,
) -> PyResult<Outcome> {
    let terms: Terms = request(terms)?;
    let base = Machines::read(machines, with_tables(request(values)?, data, None, None)?);
    let work = move |hooks: &_| -> Result<_> {
        let folder = Folder::open(&out, RecordsFormat::Parquet)?;
        folder.spare(&base.inputs(), RELEASE.texts, RELEASE.tables)?;
        Ok(match releasing::run(&base, &terms, folder.path(), hooks)? {
            releasing::Outcome::Refused(why) => Err(why),
            releasing::Outcome::Ready(owned, ready) => {
                let written = ready.publish(&owned)?;
                Ok((owned, written))
            }
        })
    };
    match Machines::settled(machines, run(py, progress, waiting(machines), work))? {
        Ok((owned, written)) => Ok(Outcome::of_release(owned, written)),
        Err(why) => Err(BudgetError::new_err(leakscope::spelling::spell(&why, leakscope::Spelling::Python))),
    }
}

/// Puts on record that a release was never passed on; what still counts, as text.
#[pyfunction]
#[pyo3(signature = (out, release, reason, ledger_key=None))]
pub(crate) fn withdraw(
    out: PathBuf,
    release: usize,
    reason: &str,
    ledger_key: Option<PathBuf>,
) -> PyResult<String> {
    let done = releasing::withdraw(&out, release, reason, ledger_key.as_deref());
    Ok(leakscope_report::owners_document(&done.map_err(|failure| exception(&failure))?))
}

/// A private model without a ledger: coefficients in original units, sigma, the largest eta, and whether that may be published.
#[pyfunction]
#[pyo3(signature = (values, terms, data, seed=None))]
pub(crate) fn private_model<'py>(
    py: Python<'py>,
    values: Values<'_, '_>,
    terms: Values<'_, '_>,
    data: &Bound<'py, Table>,
    seed: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let terms: Terms = request(terms)?;
    let base = with_tables(request(values)?, Some(data), None, None)?;
    let work = move |hooks: &_| releasing::private(&base, &terms, seed, hooks);
    let private = run(py, None, OnInterrupt::Wait, work)?;
    let model = PyDict::new(py);
    model.set_item("coefficients", private.coefficients)?;
    model.set_item("sigma", private.sigma)?;
    model.set_item("eta_max", private.eta.max)?; // for the owner, unless it is the target
    model.set_item("eta_is_target", private.eta.is_target())?;
    let rows = private.precision.into_iter().map(|(name, p)| (name, p.noise_error, p.low, p.high, p.p_value));
    model.set_item("precision", rows.collect::<Vec<_>>())?;
    model.set_item("shape", private.shape.map(|shape| leakscope_report::document(&shape)))?;
    model.set_item("instead", private.instead)?;
    model.set_item("units_hang_on_one", private.units_hang_on_one)?; // for the owner
    Ok(model)
}

/// What noisy releases cost.
#[pyfunction]
pub(crate) fn account(py: Python<'_>, values: Values<'_, '_>) -> PyResult<Outcome> {
    let request: AccountRequest = request(values)?;
    let costs = run(py, None, OnInterrupt::Leave, move |_| accounting::run(&request))?;
    Ok(Outcome::new(Document::Account(Box::new(costs)), vec![]))
}

// Passes over a table stop by themselves; accounting looks at nothing until it is done.
fn patience(data: TableArgument<'_, '_>) -> OnInterrupt {
    if data.is_some() { OnInterrupt::Wait } else { OnInterrupt::Leave }
}

/// What any attacker can guess at most.
#[pyfunction]
#[pyo3(signature = (values, data=None, test=None, progress=None, machines=None))]
pub(crate) fn bound(
    py: Python<'_>,
    values: Values<'_, '_>,
    data: TableArgument<'_, '_>,
    test: TableArgument<'_, '_>,
    progress: Progress<'_, '_>,
    machines: On<'_, '_>,
) -> PyResult<Outcome> {
    let mut request: BoundRequest = request(values)?;
    request.table = match request.table {
        Some(table) => Some(Box::new(Machines::read(machines, with_tables(*table, data, test, None)?))),
        None => None,
    };
    request.column = match request.column {
        Some(read) => Some(memory(data, &read)?.unwrap_or(read)),
        None => None,
    };
    let waiting = if machines.is_some() { OnInterrupt::Leave } else { patience(data) };
    let answer = run(py, progress, waiting, move |hooks| bounding::answer(&request, hooks));
    let answer = Machines::settled(machines, answer)?;
    Ok(Outcome::new(Document::Bound(Box::new(answer)), vec![]))
}

/// What meets a target.
#[pyfunction]
#[pyo3(signature = (values, data=None, test=None, shape_from=None, progress=None))]
pub(crate) fn calibrate(
    py: Python<'_>,
    values: Values<'_, '_>,
    data: TableArgument<'_, '_>,
    test: TableArgument<'_, '_>,
    shape_from: TableArgument<'_, '_>,
    progress: Progress<'_, '_>,
) -> PyResult<Outcome> {
    let mut request: CalibrateRequest = request(values)?;
    let like = request.table.as_ref().map(|t| t.read.clone()).unwrap_or_default();
    request.noise = match request.noise {
        Some(options) => Some(with_shape(options, shape_from, &like)?),
        None => None,
    };
    request.table = match request.table {
        Some(table) => Some(Box::new(with_tables(*table, data, test, None)?)),
        None => None,
    };
    let answer = run(py, progress, patience(data), move |hooks| calibrating::run(&request, hooks))?;
    Ok(Outcome::new(Document::Calibration(Box::new(answer)), vec![]))
}

/// Results side by side, by the folders or documents that hold them.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, values: Values<'_, '_>) -> PyResult<Outcome> {
    let request: CompareRequest = request(values)?;
    let answer = run(py, None, OnInterrupt::Leave, move |_| comparing::run(&request))?;
    Ok(Outcome::new(Document::Comparison(Box::new(answer)), vec![]))
}

/// The byte of a delimiter of CSV files.
#[pyfunction]
pub(crate) fn delimiter(text: &str) -> PyResult<u8> {
    leakscope::request::delimiter(text).map_err(|failure| exception(&failure))
}

/// A public range as a person writes it, `0..100` or with dates.
#[pyfunction]
pub(crate) fn bounds(text: &str) -> PyResult<(f64, f64)> {
    let bounds = text.parse::<Bounds>().map_err(|e| exception(&Failure::option("bounds", e)))?;
    Ok(bounds.into())
}

/// A schema of a file, checked, as JSON.
#[pyfunction]
pub(crate) fn schema(path: PathBuf) -> PyResult<String> {
    let schema = Schema::read(&path).map_err(|e| exception(&Failure::option("schema", e)))?;
    Ok(schema.to_json())
}

/// Coefficients of a model that was trained elsewhere, from a file.
#[pyfunction]
pub(crate) fn coefficients(path: PathBuf) -> PyResult<Vec<(String, f64)>> {
    leakscope::coefficients::read_coefficients(&path).map_err(|failure| exception(&failure))
}

/// Keywords of a request with their defaults, as the library declares them.
#[pyfunction]
pub(crate) fn defaults<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    fn values<T: Default + serde::Serialize>() -> Value {
        serde_json::to_value(T::default()).unwrap_or_default()
    }
    let value = match name {
        "table" => values::<Request>(),
        "balance" => values::<Balancing>(),
        "attack" => values::<Playing>(),
        "release" => values::<Terms>(),
        "account" => values::<AccountRequest>(),
        "step" => values::<ReleaseStep>(),
        "bound" => values::<BoundRequest>(),
        "calibrate" => values::<CalibrateRequest>(),
        "compare" => values::<CompareRequest>(),
        "net audit" => values::<NetAuditRequest>(),
        "net train" => values::<TrainRequest>(),
        "text audit" => values::<TextAuditRequest>(),
        "text canary" => values::<CanaryRequest>(),
        "text train" => values::<TextTrainRequest>(),
        other => return Err(exception(&Failure::Message(format!("there is no request `{other}`")))),
    };
    let keywords = PyDict::new(py);
    plain(value, &mut |name, value| keywords.set_item(keyword(name), value.to_string()))?;
    Ok(keywords)
}

/// Groups of fields in requests that are plain keywords.
const GROUPS: [&str; 6] = ["read", "roles", "release", "public", "run", "source"];

fn plain(value: Value, add: &mut dyn FnMut(&str, &Value) -> PyResult<()>) -> PyResult<()> {
    let Value::Object(fields) = value else { return Ok(()) };
    for (name, value) in fields {
        match value.is_object() && GROUPS.contains(&&*name) {
            true => plain(value, add)?,
            false => add(&name, &value)?,
        }
    }
    Ok(())
}

/// Writes a text file whole or not at all, readable by its owner alone.
#[pyfunction]
pub(crate) fn write_text(path: PathBuf, text: &str) -> PyResult<()> {
    write(&path, text).map_err(|failure| exception(&failure))
}

/// What `of_numbers` makes a table of: for steps of a run.
pub(crate) fn steps(reports: &[leakscope_net::train::StepReport]) -> ResultTable {
    ResultTable::of_numbers(vec![
        ("drawn", reports.iter().map(|r| r.drawn as f64).collect()),
        ("loss", reports.iter().map(|r| r.loss.unwrap_or(f64::NAN)).collect()),
        ("clipped", reports.iter().map(|r| r.clipped).collect()),
    ])
}
