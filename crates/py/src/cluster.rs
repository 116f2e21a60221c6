//! Questions whose passes run elsewhere: a callable gets a pass and its parts as bytes, and gives the answers as bytes.

use crate::failure::exception;
use crate::table::Table;
use leakscope::audit::Request;
use leakscope::cluster;
use leakscope_table::{Answers, Error, Extent, Hooks, Partition, Splits, Work};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Whoever computes parts: a callable `(name, work, parts, partitions) -> answers`, and the partitions of data frames by the names
/// of their tables, each its number of rows and a checksum of its ends.
#[pyclass(module = "leakscope._native", frozen)]
#[derive(Debug)]
pub(crate) struct Machines {
    callable: Arc<Callable>,
}

#[derive(Debug)]
struct Callable {
    compute: Py<PyAny>,
    frames: BTreeMap<String, Vec<Partition>>,
    /// What it raised.
    raised: Mutex<Option<PyErr>>,
}

#[pymethods]
impl Machines {
    #[new]
    #[pyo3(signature = (compute, frames=BTreeMap::new()))]
    fn new(compute: Py<PyAny>, frames: BTreeMap<String, Vec<(u64, u64)>>) -> Self {
        let of = |(rows, ends)| Partition { rows, ends };
        let frames = frames.into_iter().map(|(name, all)| (name, all.into_iter().map(of).collect()));
        let callable = Callable { compute, frames: frames.collect(), raised: Mutex::default() };
        Self { callable: Arc::new(callable) }
    }
}

impl Machines {
    /// The request with its tables read by these machines, where there are any.
    pub(crate) fn read(machines: Option<&Bound<'_, Self>>, request: Request) -> Request {
        match machines {
            None => request,
            Some(machines) => {
                let callable: Arc<dyn leakscope_table::Machines> =
                    Arc::<Callable>::clone(&machines.get().callable);
                request.on(&callable)
            }
        }
    }

    /// What was found, or what the callable raised.
    pub(crate) fn settled<T>(machines: Option<&Bound<'_, Self>>, answer: PyResult<T>) -> PyResult<T> {
        let raised = machines
            .and_then(|m| m.get().callable.raised.lock().unwrap_or_else(PoisonError::into_inner).take());
        match (answer, raised) {
            (Err(_), Some(raised)) => Err(raised),
            (answer, _) => answer,
        }
    }
}

impl Callable {
    fn call(
        &self,
        name: &str,
        work: &[u8],
        parts: &[Vec<u8>],
        partitions: Option<Vec<usize>>,
    ) -> PyResult<Vec<Vec<u8>>> {
        Python::attach(|py| {
            let parts: Vec<_> = parts.iter().map(|part| PyBytes::new(py, part)).collect();
            let answers = self.compute.bind(py).call1((name, PyBytes::new(py, work), parts, partitions))?;
            answers.try_iter()?.map(|answer| answer?.extract::<Vec<u8>>()).collect()
        })
    }
}

impl leakscope_table::Machines for Callable {
    fn partitions(&self, name: &Path) -> leakscope_table::Result<Option<Vec<Partition>>> {
        Ok(self.frames.get(&*name.to_string_lossy()).cloned())
    }

    fn answers(&self, splits: &Splits, work: &Work) -> leakscope_table::Result<Answers> {
        let failed = |e: &dyn std::fmt::Display| Error::Elsewhere(e.to_string());
        let name = cluster::short_name(work).map_err(|e| failed(&e))?;
        let parts = (0..splits.splits.len()).map(|at| work.part(splits, at));
        let parts: Vec<Vec<u8>> = parts.collect::<leakscope_table::Result<_>>()?;
        let partition = |extent: &Extent| match extent {
            Extent::Partition { index } => Some(*index),
            Extent::Bytes { .. } | Extent::RowGroup { .. } => None,
        };
        let partitions: Option<Vec<usize>> = splits.splits.iter().map(|s| partition(&s.extent)).collect();
        match self.call(&name, &work.to_bytes()?, &parts, partitions) {
            Ok(answers) => Ok(Answers::Parts(answers)),
            Err(raised) => {
                let message = raised.to_string();
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                Err(Error::Elsewhere(message))
            }
        }
    }
}

/// Computes one part of a pass: of a file, or of the partition of a data frame whose rows are given. Tables of records go to the
/// folders of their names.
#[pyfunction]
#[pyo3(signature = (work, part, tables=BTreeMap::new(), rows=None))]
pub(crate) fn run_part<'py>(
    py: Python<'py>,
    work: Vec<u8>,
    part: Vec<u8>,
    tables: BTreeMap<String, PathBuf>,
    rows: Option<&Bound<'py, Table>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let memory = rows.map(|rows| rows.borrow().memory()).transpose()?;
    let answer = py.detach(|| cluster::part(&work, &part, memory.as_ref(), &tables, &Hooks::default()));
    answer.map(|bytes| PyBytes::new(py, &bytes)).map_err(|failure| exception(&failure))
}

/// Number of rows of a partition, and a checksum of its ends.
#[pyfunction]
pub(crate) fn partition(rows: &Bound<'_, Table>) -> PyResult<(u64, u64)> {
    let Partition { rows, ends } = Partition::of(&rows.borrow().memory()?);
    Ok((rows, ends))
}
