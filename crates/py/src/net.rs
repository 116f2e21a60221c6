//! Networks over arrays: build, load, train, measure.

use crate::calls::steps;
use crate::failure::{LeakscopeError, exception};
use crate::keywords::request;
use crate::outcome::{Document, Outcome};
use crate::running::{OnInterrupt, run};
use crate::table::Table;
use leakscope::Failure;
use leakscope::net::audit::NetAuditRequest;
use leakscope::net::memory::{self, NetArrays, NetData, NetMeasured, NetMemory};
use leakscope::net::train::TrainRequest;
use leakscope::net::training::{self, Besides};
use leakscope::net::{Device, Precision};
use leakscope_net::engine::evaluate;
use leakscope_net::io::Tensors;
use leakscope_net::preset::Preset;
use leakscope_net::{Backend, Clip, Data, NetSpec, Network as Net, Real, Shape};
use leakscope_report::net::Training;
use leakscope_table::ReadOptions;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A network in one of two precisions.
#[derive(Debug, Clone)]
pub(crate) enum Either {
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
pub(crate) type RecordArrays<'py> = (Vec<usize>, Bound<'py, PyAny>, Option<(usize, Bound<'py, PyAny>)>);

pub(crate) fn arrays<T: Real + Element>(
    py: Python<'_>,
    (dims, x, y): &RecordArrays<'_>,
) -> PyResult<NetArrays<T>> {
    let values = |array: &Bound<'_, PyAny>| PyBuffer::<T>::get(array)?.to_vec(py);
    let y = y.as_ref().map(|(each, y)| PyResult::Ok((*each, values(y)?))).transpose()?;
    Ok(NetArrays { dims: dims.clone(), x: values(x)?, y })
}

fn data<T: Real + Element>(py: Python<'_>, net: &Net<T>, inputs: &RecordArrays<'_>) -> PyResult<Data<T>> {
    arrays(py, inputs)?.into_data(net).map_err(failed)
}

/// What an audit is about, beside its request.
struct About<'a, 'py> {
    data: &'a RecordArrays<'py>,
    score: Option<&'a RecordArrays<'py>>,
    records: Option<Vec<usize>>,
    superpixels: Option<(Vec<usize>, Vec<f64>)>,
    factor: f64,
    training: Option<Training>,
}

/// The run that trained a network, from its document.
pub(crate) fn remembered(training: Option<&str>) -> PyResult<Option<Training>> {
    let unread =
        |e| failed(Failure::Message(format!("what is remembered of the training run cannot be read: {e}")));
    training.map(serde_json::from_str).transpose().map_err(unread)
}

fn audited<T: Real + Element>(
    py: Python<'_>,
    request: NetAuditRequest,
    net: &Net<T>,
    compare: Option<&Net<T>>,
    about: About<'_, '_>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<NetMeasured> {
    let copy = |net: &Net<T>| memory::frozen(net, &[], None).map_err(failed);
    let memory = NetMemory {
        net: copy(net)?,
        data: NetData::Arrays(arrays(py, about.data)?),
        records: about.records,
        score: about.score.map(|s| arrays(py, s).map(NetData::Arrays)).transpose()?,
        compare: compare.map(copy).transpose()?,
        superpixels: about.superpixels,
        factor: about.factor,
        training: about.training,
    };
    run(py, progress, OnInterrupt::Wait, move |hooks| memory::audit(&request, memory, hooks))
}

/// The network after a run, and what is known of the run.
fn trained<T: Real + Element>(
    py: Python<'_>,
    request: TrainRequest,
    net: &Arc<Net<T>>,
    (inputs, public): (&RecordArrays<'_>, Option<&RecordArrays<'_>>),
    weights: Option<Vec<u8>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Arc<Net<T>>, Outcome)> {
    let (net, data) = (Arc::clone(net), arrays(py, inputs)?);
    let besides = Besides { weights, public: public.map(|p| arrays(py, p)).transpose()? };
    let work = move |hooks: &_| training::train(&request, &net, data, besides, hooks)?.split();
    let (network, training, reports) = run(py, progress, OnInterrupt::Wait, work)?;
    Ok((Arc::new(network), Outcome::of_training(training, steps(&reports))))
}

fn loaded<T: Real>(net: &Net<T>, tensors: &Tensors) -> PyResult<Arc<Net<T>>> {
    let mut copy = memory::frozen(net, &[], None).map_err(failed)?;
    copy.load_tensors(tensors).map_err(failed)?;
    Ok(Arc::new(copy))
}

impl Network {
    pub(crate) fn now(&self) -> Either {
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
    fn new(spec: &str, seed: u64, precision: &str, device: &str) -> PyResult<Self> {
        let spec = NetSpec::from_json(spec).map_err(failed)?;
        let device: Device = device.parse().map_err(|e| failed(Failure::option("device", e)))?;
        let precision = Precision::deserialize(StrDeserializer::<ValueError>::new(precision))
            .map_err(|e| failed(Failure::option("precision", e)))?;
        let backend = device.backend_in(Some(precision)).map_err(failed)?;
        let net = match precision {
            Precision::F64 => {
                Either::Double(Arc::new(Net::new(spec, seed).and_then(|n| n.on(backend)).map_err(failed)?))
            }
            Precision::F32 | Precision::Tf32 => {
                Either::Single(Arc::new(Net::new(spec, seed).and_then(|n| n.on(backend)).map_err(failed)?))
            }
        };
        Ok(Self { net: Mutex::new(net) })
    }

    /// The file of a preset.
    #[staticmethod]
    fn preset(name: &str, input: Vec<usize>, outputs: usize) -> PyResult<String> {
        let Some(preset) = Preset::of_name(name) else {
            let known = Preset::names();
            let expected = format!("expected one of {known}, a description, or a JSON file of one");
            return Err(exception(&Failure::text("network", name, expected)));
        };
        Ok(preset.spec(shape(&input)?, outputs).to_json())
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
        }
        .map_err(failed)?;
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
    fn evaluate(&self, py: Python<'_>, inputs: RecordArrays<'_>) -> PyResult<(f64, Option<f64>)> {
        let evaluation = match self.now() {
            Either::Single(net) => {
                let data = data(py, &net, &inputs)?;
                run(py, None, OnInterrupt::Leave, move |_| Ok(evaluate(&net, &data)?))?
            }
            Either::Double(net) => {
                let data = data(py, &net, &inputs)?;
                run(py, None, OnInterrupt::Leave, move |_| Ok(evaluate(&net, &data)?))?
            }
        };
        Ok((evaluation.loss, evaluation.accuracy))
    }

    /// Trains; the network is another one afterwards.
    #[pyo3(signature = (values, inputs, weights=None, progress=None, public=None))]
    fn train<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyDict>,
        inputs: RecordArrays<'py>,
        weights: Option<Vec<u8>>,
        progress: Option<&Bound<'py, PyAny>>,
        public: Option<RecordArrays<'py>>,
    ) -> PyResult<Outcome> {
        let mut request: TrainRequest = request(values)?;
        let inputs = (&inputs, public.as_ref());
        let (end, outcome) = match self.now() {
            Either::Single(net) => {
                request.run.precision = match net.backend() {
                    Backend::Cuda(card) if card.shortens() => Precision::Tf32,
                    Backend::Cpu | Backend::Cuda(_) => Precision::F32,
                };
                let (end, outcome) = trained(py, request, &net, inputs, weights, progress)?;
                (Either::Single(end), outcome)
            }
            Either::Double(net) => {
                request.run.precision = Precision::F64;
                let (end, outcome) = trained(py, request, &net, inputs, weights, progress)?;
                (Either::Double(end), outcome)
            }
        };
        self.replace(end);
        Ok(outcome)
    }

    /// What one gradient step gives away about the rows of a table.
    #[pyo3(signature = (values, encoding, data, score=None, records=None, progress=None, training=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
    fn audit_rows<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyDict>,
        encoding: String,
        data: (Option<Bound<'py, Table>>, Vec<PathBuf>),
        score: Option<(Option<Bound<'py, Table>>, Vec<PathBuf>)>,
        records: Option<Vec<usize>>,
        progress: Option<&Bound<'py, PyAny>>,
        training: Option<&str>,
    ) -> PyResult<Outcome> {
        let request: NetAuditRequest = request(values)?;
        let training = remembered(training)?;
        let read = rows(data.0.as_ref(), data.1)?;
        let score = score.map(|(table, files)| rows(table.as_ref(), files)).transpose()?;
        fn of<T>(encoding: &str, read: ReadOptions) -> NetData<T> {
            NetData::Rows { encoding: encoding.to_owned(), read }
        }
        let measured = match self.now() {
            Either::Single(net) => {
                let both = (of(&encoding, read), score.map(|s| of(&encoding, s)));
                rows_audited(py, request, &net, both, records, progress, training)?
            }
            Either::Double(net) => {
                let both = (of(&encoding, read), score.map(|s| of(&encoding, s)));
                rows_audited(py, request, &net, both, records, progress, training)?
            }
        };
        let tables = measured.tables.clone();
        Ok(Outcome::new(Document::Net(Box::new(measured)), tables))
    }

    /// What one gradient step gives away.
    #[pyo3(signature = (values, inputs, records=None, score=None, compare=None, superpixels=None, factor=1.0, progress=None, training=None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
    fn audit<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyDict>,
        inputs: RecordArrays<'py>,
        records: Option<Vec<usize>>,
        score: Option<RecordArrays<'py>>,
        compare: Option<&Bound<'py, Self>>,
        superpixels: Option<(Vec<usize>, Vec<f64>)>,
        factor: f64,
        progress: Option<&Bound<'py, PyAny>>,
        training: Option<&str>,
    ) -> PyResult<Outcome> {
        let request: NetAuditRequest = request(values)?;
        let training = remembered(training)?;
        let about = About { data: &inputs, score: score.as_ref(), records, superpixels, factor, training };
        let measured = match (self.now(), compare.map(|other| other.get().now())) {
            (Either::Single(net), None) => audited(py, request, &net, None, about, progress)?,
            (Either::Single(net), Some(Either::Single(other))) => {
                audited(py, request, &net, Some(&other), about, progress)?
            }
            (Either::Double(net), None) => audited(py, request, &net, None, about, progress)?,
            (Either::Double(net), Some(Either::Double(other))) => {
                audited(py, request, &net, Some(&other), about, progress)?
            }
            (Either::Single(_) | Either::Double(_), Some(_)) => {
                let message = "both networks need the same precision: load one again with the other's";
                return Err(failed(Failure::option("compare", message)));
            }
        };
        let tables = measured.tables.clone();
        Ok(Outcome::new(Document::Net(Box::new(measured)), tables))
    }
}

/// A table of Python's, or files.
fn rows(table: Option<&Bound<'_, Table>>, files: Vec<PathBuf>) -> PyResult<ReadOptions> {
    let memory = table.map(|t| t.borrow().memory()).transpose()?.into_iter().collect();
    Ok(ReadOptions { paths: files, memory, ..ReadOptions::default() })
}

/// Trains the network that a request names over the rows of a table: the network, the run, and the encoding of the table.
#[pyfunction]
#[pyo3(signature = (values, data=None, test=None, progress=None))]
pub(crate) fn train_rows(
    py: Python<'_>,
    values: &Bound<'_, PyDict>,
    data: Option<&Bound<'_, Table>>,
    test: Option<&Bound<'_, Table>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Network, Outcome, String)> {
    let mut request: TrainRequest = request(values)?;
    if let Some(table) = &mut request.table {
        table.read.memory = rows(data, vec![])?.memory;
        if let Some(test) = test {
            table.test = Some(rows(Some(test), vec![])?);
        }
    }
    let (net, training, reports) = match request.run.precision {
        Precision::F32 | Precision::Tf32 => {
            let work = move |hooks: &_| training::train_rows::<f32>(&request, hooks)?.split();
            let (net, training, reports) = run(py, progress, OnInterrupt::Wait, work)?;
            (Either::Single(Arc::new(net)), training, reports)
        }
        Precision::F64 => {
            let work = move |hooks: &_| training::train_rows::<f64>(&request, hooks)?.split();
            let (net, training, reports) = run(py, progress, OnInterrupt::Wait, work)?;
            (Either::Double(Arc::new(net)), training, reports)
        }
    };
    let encoding = training.encoding.clone().unwrap_or_default();
    Ok((Network { net: Mutex::new(net) }, Outcome::of_training(training, steps(&reports)), encoding))
}

fn rows_audited<T: Real + Element>(
    py: Python<'_>,
    request: NetAuditRequest,
    net: &Net<T>,
    (data, score): (NetData<T>, Option<NetData<T>>),
    records: Option<Vec<usize>>,
    progress: Option<&Bound<'_, PyAny>>,
    training: Option<Training>,
) -> PyResult<NetMeasured> {
    let net = memory::frozen(net, &[], None).map_err(failed)?;
    let (compare, superpixels, factor) = (None, None, 1.0);
    let memory = NetMemory { net, data, records, score, compare, superpixels, factor, training };
    run(py, progress, OnInterrupt::Wait, move |hooks| memory::audit(&request, memory, hooks))
}

/// The longest gradient that a clip lets through, over its C: what noise is to be compared with.
#[pyfunction]
pub(crate) fn overshoot(clip: &Bound<'_, PyDict>) -> PyResult<f64> {
    let clip: Clip = request(clip)?;
    Ok(clip.longest().map_or(f64::INFINITY, |longest| longest / clip.unit()))
}
