//! Networks over arrays: build, load, train, measure.

use crate::failure::{LeakscopeError, exception};
use crate::outcome::{Document, Outcome, bytes};
use crate::running::{OnInterrupt, run};
use leakscope::calls::{self, NetArrays, NetMeasured, NetMemory};
use leakscope::{Failure, Result};
use leakscope_net::engine::evaluate;
use leakscope_net::io::Tensors;
use leakscope_net::preset::preset;
use leakscope_net::train::{RecordBudget, Sampling, StepReport, TrainConfig, Trainer, sigma_for as budget};
use leakscope_net::{Clip, Data, NetSpec, Network as Net, Real, Shape};
use leakscope_table::Hooks;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Arc, Mutex, PoisonError};

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

/// Records as Python hands them over: the shape of one, their values, and how many values a label has with the values.
type Given<'py> = (Vec<usize>, Bound<'py, PyAny>, Option<(usize, Bound<'py, PyAny>)>);

fn arrays<T: Real + Element>(py: Python<'_>, (dims, x, y): &Given<'_>) -> PyResult<NetArrays<T>> {
    let values = |array: &Bound<'_, PyAny>| PyBuffer::<T>::get(array)?.to_vec(py);
    let y = y.as_ref().map(|(each, y)| PyResult::Ok((*each, values(y)?))).transpose()?;
    Ok(NetArrays { dims: dims.clone(), x: values(x)?, y })
}

fn data<T: Real + Element>(py: Python<'_>, net: &Net<T>, given: &Given<'_>) -> PyResult<Data<T>> {
    arrays(py, given)?.into_data(net).map_err(failed)
}

/// What an audit is about, beside its words.
fn memory<T: Real + Element>(
    py: Python<'_>,
    net: &Net<T>,
    data: &Given<'_>,
    score: Option<&Given<'_>>,
    compare: Option<&Net<T>>,
    asked: Asked,
) -> PyResult<NetMemory<T>> {
    let copy = |net: &Net<T>| calls::net_frozen(net, &[], None).map_err(failed);
    Ok(NetMemory {
        net: copy(net)?,
        data: arrays(py, data)?,
        records: asked.records,
        score: score.map(|s| arrays(py, s)).transpose()?,
        compare: compare.map(copy).transpose()?,
        superpixels: asked.superpixels,
        factor: asked.factor,
    })
}

/// What Python asks of an audit beside its words.
struct Asked {
    records: Option<Vec<usize>>,
    superpixels: Option<(Vec<usize>, Vec<f64>)>,
    factor: f64,
}

fn audited<T: Real>(
    py: Python<'_>,
    words: Vec<String>,
    memory: NetMemory<T>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<NetMeasured> {
    run(py, progress, OnInterrupt::Wait, move |hooks| calls::net_audit(&words, memory, hooks))
}

fn loaded<T: Real>(net: &Net<T>, tensors: &Tensors) -> PyResult<Arc<Net<T>>> {
    let mut copy = calls::net_frozen(net, &[], None).map_err(failed)?;
    copy.load_tensors(tensors).map_err(failed)?;
    Ok(Arc::new(copy))
}

fn trained<T: Real>(
    net: Net<T>,
    data: &Data<T>,
    config: TrainConfig,
    steps: u64,
    hooks: &Hooks,
) -> Result<(Net<T>, Vec<StepReport>, Vec<RecordBudget>)> {
    let mut trainer = Trainer::new(net, data, config)?;
    let mut reports = vec![];
    for step in 0..steps {
        calls::tick(hooks, step, steps)?;
        reports.push(trainer.step()?);
    }
    let budgets = trainer.budgets();
    Ok((trainer.into_network(), reports, budgets))
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
    fn evaluate(&self, py: Python<'_>, given: Given<'_>) -> PyResult<(f64, Option<f64>)> {
        let found = match self.now() {
            Either::Single(net) => {
                let data = data(py, &net, &given)?;
                run(py, None, OnInterrupt::Leave, move |_| Ok(evaluate(&net, &data)?))?
            }
            Either::Double(net) => {
                let data = data(py, &net, &given)?;
                run(py, None, OnInterrupt::Leave, move |_| Ok(evaluate(&net, &data)?))?
            }
        };
        Ok((found.loss, found.accuracy))
    }

    /// Trains, and returns loss and share clipped of every step, and the accounts of records by column.
    #[pyo3(signature = (given, config, steps, freeze, freeze_smallest=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
    fn train<'py>(
        &self,
        py: Python<'py>,
        given: Given<'py>,
        config: &str,
        steps: u64,
        freeze: Vec<usize>,
        freeze_smallest: Option<f64>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let config: TrainConfig = serde_json::from_str(config)
            .map_err(|e| LeakscopeError::new_err(format!("these settings are no training run: {e}")))?;
        let (end, reports, budgets) = match self.now() {
            Either::Single(net) => {
                let data = data(py, &net, &given)?;
                let net = calls::net_frozen(&net, &freeze, freeze_smallest).map_err(failed)?;
                let work = move |hooks: &_| trained(net, &data, config, steps, hooks);
                let (end, reports, budgets) = run(py, progress, OnInterrupt::Wait, work)?;
                (Either::Single(Arc::new(end)), reports, budgets)
            }
            Either::Double(net) => {
                let data = data(py, &net, &given)?;
                let net = calls::net_frozen(&net, &freeze, freeze_smallest).map_err(failed)?;
                let work = move |hooks: &_| trained(net, &data, config, steps, hooks);
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

    /// What one gradient step gives away: `leakscope net audit`, its words with arrays in the place of files.
    #[pyo3(signature = (words, given, records=None, score=None, compare=None, superpixels=None, factor=1.0, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
    fn audit<'py>(
        &self,
        py: Python<'py>,
        words: Vec<String>,
        given: Given<'py>,
        records: Option<Vec<usize>>,
        score: Option<Given<'py>>,
        compare: Option<&Bound<'py, Self>>,
        superpixels: Option<(Vec<usize>, Vec<f64>)>,
        factor: f64,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Outcome> {
        let asked = Asked { records, superpixels, factor };
        let score = score.as_ref();
        let found = match (self.now(), compare.map(|other| other.get().now())) {
            (Either::Single(net), None) => {
                audited(py, words, memory(py, &net, &given, score, None, asked)?, progress)?
            }
            (Either::Single(net), Some(Either::Single(other))) => {
                audited(py, words, memory(py, &net, &given, score, Some(&other), asked)?, progress)?
            }
            (Either::Double(net), None) => {
                audited(py, words, memory(py, &net, &given, score, None, asked)?, progress)?
            }
            (Either::Double(net), Some(Either::Double(other))) => {
                audited(py, words, memory(py, &net, &given, score, Some(&other), asked)?, progress)?
            }
            (Either::Single(_) | Either::Double(_), Some(_)) => {
                let message =
                    "compare: both networks need the same precision: load one again with the other's";
                return Err(failed(Failure::Option(message.into())));
            }
        };
        Ok(Outcome::new(Document::Net(Box::new(found)), vec![]))
    }
}

/// The smallest noise multiplier for which a whole run costs at most ε at δ.
#[pyfunction]
pub(crate) fn sigma_for(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    clip: &str,
    sampling: &str,
    steps: u64,
    records: usize,
) -> PyResult<f64> {
    let wrong =
        |e: serde_json::Error| LeakscopeError::new_err(format!("these settings are no training run: {e}"));
    let clip: Clip = serde_json::from_str(clip).map_err(wrong)?;
    let sampling: Sampling = serde_json::from_str(sampling).map_err(wrong)?;
    run(py, None, OnInterrupt::Leave, move |_| {
        budget(epsilon, delta, clip, sampling, steps, records)
            .map_err(|e| Failure::Option(format!("epsilon: {e}")))
    })
}

/// The longest gradient that a clip lets through, over its C: what noise is to be compared with.
#[pyfunction]
pub(crate) fn overshoot(clip: &str) -> PyResult<f64> {
    let clip: Clip =
        serde_json::from_str(clip).map_err(|e| LeakscopeError::new_err(format!("this is no clip: {e}")))?;
    Ok(clip.longest().map_or(f64::INFINITY, |longest| longest / clip.unit()))
}
