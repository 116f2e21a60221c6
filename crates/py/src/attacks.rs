//! Attacks on networks over arrays.

use crate::failure::exception;
use crate::keywords::request;
use crate::net::{Either, Network, RecordArrays, arrays, remembered};
use crate::outcome::{Document, Outcome};
use crate::running::{OnInterrupt, run};
use leakscope::Failure;
use leakscope::net::attack::Subject;
use leakscope::net::attack::informed::{self, InformedRequest};
use leakscope::net::attack::inversion::{self, InversionOutcome, InversionRequest};
use leakscope::net::attack::membership::{self, MembershipOutcome, MembershipRequest};
use leakscope::net::memory;
use leakscope_net::io::Tensors;
use leakscope_net::{Network as Net, Real};
use leakscope_report::net::Training;
use pyo3::buffer::Element;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What is attacked where no records are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpdateKind {
    Gradient,
    After,
}

/// Arrays of a network's tensors, in its order; an error names the keyword.
fn flat<T: Real>(net: &Net<T>, bytes: &[u8], seen: UpdateKind) -> leakscope::Result<Vec<T>> {
    let flag = if seen == UpdateKind::Gradient { "gradient" } else { "after" };
    let wrong = |subject: String| Failure::option(flag, format!("{subject}: it is of another network"));
    let file = Tensors::from_bytes(bytes).map_err(|e| Failure::option(flag, e))?;
    let mut out = vec![T::ZERO; net.parameter_count()];
    for tensor in net.tensors() {
        if !file.has(&tensor.name) {
            return Err(wrong(format!("there is no array {}", tensor.name)));
        }
        let (shape, values) = file.get::<T>(&tensor.name)?;
        if shape != tensor.shape {
            return Err(wrong(format!("{} has shape {shape:?}, expected {:?}", tensor.name, tensor.shape)));
        }
        out[tensor.offset..tensor.offset + values.len()].copy_from_slice(&values);
    }
    Ok(out)
}

fn inverted<T: Real + Element>(
    py: Python<'_>,
    request: InversionRequest,
    net: &Net<T>,
    inputs: Option<&RecordArrays<'_>>,
    seen: Option<(UpdateKind, Vec<u8>)>,
    training: Option<Training>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<InversionOutcome> {
    let records = inputs.map(|g| arrays(py, g)).transpose()?;
    let copy = memory::frozen(net, &[], None).map_err(|e| exception(&e))?;
    let seen = seen.map(|(kind, bytes)| Ok::<_, Failure>((kind, flat(net, &bytes, kind)?))).transpose();
    let seen = seen.map_err(|e| exception(&e))?.map(|(kind, values)| match kind {
        UpdateKind::Gradient => inversion::Update::Gradient(values),
        UpdateKind::After => inversion::Update::After(values),
    });
    run(py, progress, OnInterrupt::Wait, move |hooks| {
        inversion::attack(&request, Subject::of_arrays(copy, records, training)?, seen, hooks)
    })
}

/// Records reconstructed from their gradients, from a gradient that was seen, or from weights after local steps.
#[pyfunction]
#[pyo3(signature = (network, values, inputs=None, gradient=None, after=None, training=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python, where this is called")]
pub(crate) fn attack_inversion<'py>(
    py: Python<'py>,
    network: &Bound<'py, Network>,
    values: &Bound<'py, PyDict>,
    inputs: Option<RecordArrays<'py>>,
    gradient: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    training: Option<&str>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Outcome> {
    let request: InversionRequest = request(values)?;
    let training = remembered(training)?;
    let seen = gradient.map(|g| (UpdateKind::Gradient, g)).or(after.map(|a| (UpdateKind::After, a)));
    let answer = match network.get().now() {
        Either::Single(net) => inverted(py, request, &net, inputs.as_ref(), seen, training, progress)?,
        Either::Double(net) => inverted(py, request, &net, inputs.as_ref(), seen, training, progress)?,
    };
    let tables = answer.tables.clone();
    Ok(Outcome::new(Document::Inversion(Box::new(answer)), tables))
}

fn inferred_members<T: Real + Element>(
    py: Python<'_>,
    request: MembershipRequest,
    net: &Net<T>,
    (members, others): (&RecordArrays<'_>, &RecordArrays<'_>),
    training: Option<Training>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<MembershipOutcome> {
    let (members, others) = (arrays(py, members)?, arrays(py, others)?);
    let copy = memory::frozen(net, &[], None).map_err(|e| exception(&e))?;
    run(py, progress, OnInterrupt::Wait, move |hooks| {
        membership::attack(&request, Subject::of_arrays(copy, Some(members), training)?, others, hooks)
    })
}

/// Who was among the records that a network was trained on.
#[pyfunction]
#[pyo3(signature = (network, values, members, others, training=None, progress=None))]
pub(crate) fn attack_membership<'py>(
    py: Python<'py>,
    network: &Bound<'py, Network>,
    values: &Bound<'py, PyDict>,
    members: RecordArrays<'py>,
    others: RecordArrays<'py>,
    training: Option<&str>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Outcome> {
    let request: MembershipRequest = request(values)?;
    let training = remembered(training)?;
    let both = (&members, &others);
    let answer = match network.get().now() {
        Either::Single(net) => inferred_members(py, request, &net, both, training, progress)?,
        Either::Double(net) => inferred_members(py, request, &net, both, training, progress)?,
    };
    let tables = answer.tables.clone();
    Ok(Outcome::new(Document::Membership(Box::new(answer)), tables))
}

/// The last record, from the parameters of linear models trained on it.
#[pyfunction]
#[pyo3(signature = (values, inputs, progress=None))]
pub(crate) fn attack_informed<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyDict>,
    inputs: RecordArrays<'py>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Outcome> {
    let request: InformedRequest = request(values)?;
    let records = arrays::<f64>(py, &inputs)?;
    let answer =
        run(py, progress, OnInterrupt::Wait, move |hooks| informed::attack(&request, records, hooks))?;
    Ok(Outcome::new(Document::Informed(Box::new(answer)), vec![]))
}
