//! Networks over arrays: build, load, train, measure.

use crate::failure::{LeakscopeError, exception};
use crate::outcome::bytes;
use crate::running::{OnInterrupt, run};
use leakscope::{Failure, Result};
use leakscope_net::engine::evaluate;
use leakscope_net::leak::{Label, Measure, Plis, Probe, RecordLeak, Spectral, Trace, measure};
use leakscope_net::preset::preset;
use leakscope_net::tensors::Tensors;
use leakscope_net::train::{RecordBudget, StepReport, TrainConfig, Trainer};
use leakscope_net::{Clip, Data, NetSpec, Network as Net, Real, Shape};
use leakscope_table::{Hooks, Progress, Stage};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Records measured between two looks at Ctrl-C.
const CHUNK: usize = 128;

/// A network in one of two precisions.
#[derive(Debug, Clone)]
enum Either {
    Single(Arc<Net<f32>>),
    Double(Arc<Net<f64>>),
}

/// A network with its parameters.
#[pyclass(module = "leakscope._native", frozen)]
#[derive(Debug)]
pub(crate) struct Network {
    net: Mutex<Either>,
}

fn failed(error: impl Into<Failure>) -> PyErr {
    exception(&error.into())
}

fn shape(dims: &[usize]) -> PyResult<Shape> {
    match *dims {
        [h, w, c] => Ok(Shape::Image([h, w, c])),
        [n] => Ok(Shape::Vector([n])),
        _ => Err(LeakscopeError::new_err(format!(
            "records of shape {dims:?}: expected (length) or (height, width, channels)"
        ))),
    }
}

/// Labels of records: class numbers, or a vector each.
#[derive(FromPyObject)]
pub(crate) enum Labels<'py> {
    Classes(Vec<u32>),
    Values(Bound<'py, PyAny>),
}

fn data<T: Real + Element>(
    py: Python<'_>,
    net: &Net<T>,
    (dims, x): (&[usize], &Bound<'_, PyAny>),
    y: Labels<'_>,
) -> PyResult<Data<T>> {
    let x = PyBuffer::<T>::get(x)?.to_vec(py)?;
    let input = shape(dims)?;
    let data = match y {
        Labels::Classes(classes) => Data::classes(input, x, net.outputs(), &classes),
        Labels::Values(values) => {
            Data::new(input, x, net.outputs(), PyBuffer::<T>::get(&values)?.to_vec(py)?)
        }
    };
    let data = data.map_err(failed)?;
    data.check(net).map_err(failed)?;
    Ok(data)
}

/// The same network again: training starts from it and leaves it as it was.
fn copied<T: Real>(net: &Net<T>) -> leakscope_net::Result<Net<T>> {
    let mut copy = Net::new(net.spec().clone(), 0)?;
    copy.load_tensors(&net.to_tensors())?;
    Ok(copy)
}

fn loaded<T: Real>(net: &Net<T>, tensors: &Tensors) -> PyResult<Arc<Net<T>>> {
    let mut copy = copied(net).map_err(failed)?;
    copy.load_tensors(tensors).map_err(failed)?;
    Ok(Arc::new(copy))
}

fn stop_or_tell(hooks: &Hooks, done: u64, total: u64) -> Result<()> {
    if hooks.interrupt.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    if let Some(progress) = &hooks.progress {
        progress(Progress { stage: Stage::Pass, done, total });
    }
    Ok(())
}

fn trained<T: Real>(
    net: &Net<T>,
    data: &Data<T>,
    config: TrainConfig,
    steps: u64,
    hooks: &Hooks,
) -> Result<(Net<T>, Vec<StepReport>, Vec<RecordBudget>)> {
    let mut trainer = Trainer::new(copied(net)?, data, config)?;
    let mut reports = vec![];
    for step in 0..steps {
        stop_or_tell(hooks, step, steps)?;
        reports.push(trainer.step()?);
    }
    let budgets = trainer.budgets();
    Ok((trainer.into_network(), reports, budgets))
}

fn measured<T: Real>(
    net: &Net<T>,
    data: &Data<T>,
    records: &[usize],
    what: &Measure,
    hooks: &Hooks,
) -> Result<Vec<RecordLeak>> {
    let mut found = Vec::with_capacity(records.len());
    for chunk in records.chunks(CHUNK) {
        stop_or_tell(hooks, found.len() as u64, records.len() as u64)?;
        found.extend(measure(net, data, chunk, what)?);
    }
    Ok(found)
}

/// A column: its name, and its value in a row.
type Column<'a, R> = (&'a str, &'a dyn Fn(&R) -> f64);

/// Columns of float64 by name; a number that is not there is NaN.
fn columns<'py, R>(py: Python<'py>, rows: &[R], named: &[Column<'_, R>]) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, value) in named {
        found.set_item(name, bytes(py, rows.len(), rows.iter().map(|r| value(r).to_ne_bytes()))?)?;
    }
    Ok(found)
}

impl Network {
    fn now(&self) -> Either {
        self.net.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, net: Either) {
        *self.net.lock().unwrap_or_else(PoisonError::into_inner) = net;
    }
}

#[pymethods]
impl Network {
    /// A network from its file in JSON, with drawn weights.
    #[new]
    fn new(spec: &str, seed: u64, double: bool) -> PyResult<Self> {
        let spec = NetSpec::from_json(spec).map_err(failed)?;
        let net = match double {
            true => Either::Double(Arc::new(Net::new(spec, seed).map_err(failed)?)),
            false => Either::Single(Arc::new(Net::new(spec, seed).map_err(failed)?)),
        };
        Ok(Self { net: Mutex::new(net) })
    }

    /// The file of a preset.
    #[staticmethod]
    fn preset(name: &str, input: Vec<usize>, outputs: usize) -> PyResult<String> {
        Ok(preset(name, shape(&input)?, outputs).map_err(failed)?.to_json())
    }

    /// Whether it computes in double precision.
    fn double(&self) -> bool {
        matches!(self.now(), Either::Double(_))
    }

    /// Its file in JSON.
    fn spec(&self) -> String {
        match self.now() {
            Either::Single(net) => net.spec().to_json(),
            Either::Double(net) => net.spec().to_json(),
        }
    }

    /// Weights and statistics as safetensors.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let tensors = match self.now() {
            Either::Single(net) => net.to_tensors(),
            Either::Double(net) => net.to_tensors(),
        };
        Ok(PyBytes::new(py, &tensors.to_bytes().map_err(failed)?))
    }

    /// Takes weights and statistics from safetensors.
    fn load(&self, weights: &[u8]) -> PyResult<()> {
        let tensors = Tensors::from_bytes(weights).map_err(failed)?;
        self.replace(match self.now() {
            Either::Single(net) => Either::Single(loaded(&net, &tensors)?),
            Either::Double(net) => Either::Double(loaded(&net, &tensors)?),
        });
        Ok(())
    }

    /// Mean loss and accuracy.
    fn evaluate(
        &self,
        py: Python<'_>,
        dims: Vec<usize>,
        x: &Bound<'_, PyAny>,
        y: Labels<'_>,
    ) -> PyResult<(f64, Option<f64>)> {
        let found = match self.now() {
            Either::Single(net) => {
                let data = data(py, &net, (&dims, x), y)?;
                run(py, None, OnInterrupt::Leave, move |_| Ok(evaluate(&net, &data)?))?
            }
            Either::Double(net) => {
                let data = data(py, &net, (&dims, x), y)?;
                run(py, None, OnInterrupt::Leave, move |_| Ok(evaluate(&net, &data)?))?
            }
        };
        Ok((found.loss, found.accuracy))
    }

    /// Trains, and returns loss and share clipped of every step, and the accounts of records by column.
    #[pyo3(signature = (dims, x, y, config, steps, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
    fn train<'py>(
        &self,
        py: Python<'py>,
        dims: Vec<usize>,
        x: &Bound<'py, PyAny>,
        y: Labels<'py>,
        config: &str,
        steps: u64,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let config: TrainConfig = serde_json::from_str(config)
            .map_err(|e| LeakscopeError::new_err(format!("these settings are no training run: {e}")))?;
        let (end, reports, budgets) = match self.now() {
            Either::Single(net) => {
                let data = data(py, &net, (&dims, x), y)?;
                let work = move |hooks: &_| trained(&net, &data, config, steps, hooks);
                let (end, reports, budgets) = run(py, progress, OnInterrupt::Wait, work)?;
                (Either::Single(Arc::new(end)), reports, budgets)
            }
            Either::Double(net) => {
                let data = data(py, &net, (&dims, x), y)?;
                let work = move |hooks: &_| trained(&net, &data, config, steps, hooks);
                let (end, reports, budgets) = run(py, progress, OnInterrupt::Wait, work)?;
                (Either::Double(Arc::new(end)), reports, budgets)
            }
        };
        self.replace(end);
        let steps = columns(
            py,
            &reports,
            &[
                ("drawn", &|r| r.drawn as f64),
                ("loss", &|r| r.loss.unwrap_or(f64::NAN)),
                ("clipped", &|r| r.clipped),
            ],
        )?;
        let records = columns(
            py,
            &budgets,
            &[
                ("dfil", &|b| b.dfil.value),
                ("dfil_standard_error", &|b| b.dfil.standard_error.unwrap_or(0.0)),
                ("trace", &|b| b.trace.value),
                ("published_trace", &|b| b.published.value),
            ],
        )?;
        Ok((steps, records))
    }

    /// What one step gives away about records, by column; and PLIS of every input value, record by record.
    #[pyo3(signature = (dims, x, y, records, clip, sigma, trace, eta, plis, label_secret, seed, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
    fn audit<'py>(
        &self,
        py: Python<'py>,
        dims: Vec<usize>,
        x: &Bound<'py, PyAny>,
        y: Labels<'py>,
        records: Vec<usize>,
        clip: &str,
        sigma: f64,
        trace: Option<usize>,
        eta: bool,
        plis: bool,
        label_secret: bool,
        seed: u64,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyBytes>)> {
        let clip: Clip = serde_json::from_str(clip)
            .map_err(|e| LeakscopeError::new_err(format!("this is no way to clip: {e}")))?;
        let what = Measure {
            label: if label_secret { Label::Secret } else { Label::Public },
            trace: match trace {
                None => Trace::Exact,
                Some(0) => Trace::Skip,
                Some(probes) => Trace::Estimate { probes, probe: Probe::Rademacher },
            },
            eta: eta.then(Spectral::default),
            plis: if plis { Plis::Elements } else { Plis::Skip },
            ..Measure::new(clip, sigma, seed)
        };
        let found = match self.now() {
            Either::Single(net) => {
                let data = data(py, &net, (&dims, x), y)?;
                let work = move |hooks: &_| measured(&net, &data, &records, &what, hooks);
                run(py, progress, OnInterrupt::Wait, work)?
            }
            Either::Double(net) => {
                let data = data(py, &net, (&dims, x), y)?;
                let work = move |hooks: &_| measured(&net, &data, &records, &what, hooks);
                run(py, progress, OnInterrupt::Wait, work)?
            }
        };
        let missing = f64::NAN;
        let by_column = columns(
            py,
            &found,
            &[
                ("loss", &|r| r.loss),
                ("right", &|r| f64::from(u8::from(r.right))),
                ("gradient_norm", &|r| r.gradient_norm),
                ("released_norm", &|r| r.released_norm),
                ("dfil", &|r| r.dfil.as_ref().map_or(missing, |m| m.value)),
                ("dfil_standard_error", &|r| {
                    r.dfil.as_ref().and_then(|m| m.standard_error).unwrap_or(missing)
                }),
                ("eta", &|r| r.eta.map_or(missing, |e| e.value)),
                ("plis", &|r| r.plis.unwrap_or(missing)),
            ],
        )?;
        let parts = || found.iter().flat_map(|r| r.plis_parts.iter());
        let maps = bytes(py, parts().count(), parts().map(|x| x.to_ne_bytes()))?;
        Ok((by_column, maps))
    }
}
