//! Tables of results for Python: Arrow by the PyCapsule interface, plain buffers where Arrow is not installed.

use crate::failure::LeakscopeError;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use leakscope::output::Results;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use serde_json::Value;
use std::sync::Arc;

/// What a column holds, until somebody asks for it.
#[derive(Debug, Clone)]
enum Column {
    /// Row numbers from 1, as the command line names rows without an id.
    Row(Arc<Results>),
    /// Ids.
    Id(Arc<Results>),
    /// Ids that are whole numbers.
    Number(Arc<Results>),
    /// A column of texts.
    Text(Arc<Results>, usize),
    /// A column of numbers; NaN where one is missing.
    Real(Arc<Results>, usize),
    /// A column of numbers that are truth values.
    Truth(Arc<Results>, usize),
    /// A column of its own.
    Array(ArrayRef),
}

impl Column {
    fn data_type(&self) -> DataType {
        match self {
            Self::Row(_) | Self::Number(_) => DataType::Int64,
            Self::Id(_) | Self::Text(..) => DataType::Utf8,
            Self::Real(..) => DataType::Float64,
            Self::Truth(..) => DataType::Boolean,
            Self::Array(array) => array.data_type().clone(),
        }
    }

    fn parts(&self) -> usize {
        match self {
            Self::Row(of) | Self::Id(of) | Self::Number(of) => of.parts.len(),
            Self::Text(of, _) | Self::Real(of, _) | Self::Truth(of, _) => of.parts.len(),
            Self::Array(_) => 1,
        }
    }

    /// A part of it; parts follow one another.
    fn part(&self, at: usize) -> ArrayRef {
        match self {
            Self::Row(of) => {
                Arc::new(of.parts[at].positions.iter().map(|p| Some(*p as i64 + 1)).collect::<Int64Array>())
            }
            Self::Number(of) => {
                Arc::new(of.parts[at].ids.iter().map(|id| id.parse().ok()).collect::<Int64Array>())
            }
            Self::Id(of) => Arc::new(StringArray::from_iter_values(&of.parts[at].ids)),
            Self::Text(of, k) => Arc::new(StringArray::from_iter_values(&of.parts[at].texts[*k])),
            Self::Real(of, k) => {
                Arc::new(Float64Array::from_iter_values(of.parts[at].numbers[*k].iter().copied()))
            }
            Self::Truth(of, k) => {
                let truth = |x: &f64| if x.is_nan() { None } else { Some(*x != 0.0) };
                Arc::new(of.parts[at].numbers[*k].iter().map(truth).collect::<BooleanArray>())
            }
            Self::Array(array) => Arc::clone(array),
        }
    }
}

/// A table of results: anything that takes `__arrow_c_stream__` reads it.
#[pyclass(module = "leakscope._native", frozen)]
#[derive(Debug, Clone)]
pub(crate) struct ResultTable {
    columns: Vec<(String, Column)>,
    rows: usize,
    /// Where the rows were in the table that they came from, from 0; empty where there was none.
    positions: Vec<i64>,
    /// Name of the column that names rows.
    id: Option<String>,
}

/// How rows of a table of results are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// By an id, or without one by the row of the caller's table.
    Row,
    /// By the number of a record.
    Record,
}

impl ResultTable {
    /// A table that a question left in memory.
    pub(crate) fn of(results: &Arc<Results>, named: Named) -> Self {
        let of = || Arc::clone(results);
        let schema = &results.schema;
        let id = match named {
            Named::Record if matches!(schema.id.as_str(), "record" | "row") => Column::Number(of()),
            // Rows of a table go by the ids of their own.
            Named::Record => Column::Id(of()),
            Named::Row if schema.id == "row" => Column::Row(of()),
            Named::Row => Column::Id(of()),
        };
        let mut columns = vec![(schema.id.clone(), id)];
        columns
            .extend(schema.texts.iter().cloned().enumerate().map(|(k, name)| (name, Column::Text(of(), k))));
        columns.extend(schema.numbers.iter().cloned().enumerate().map(|(k, name)| {
            let truth = named == Named::Record && name == "right";
            (name, if truth { Column::Truth(of(), k) } else { Column::Real(of(), k) })
        }));
        let positions = results.parts.iter().flat_map(|p| &p.positions).map(|p| *p as i64).collect();
        let rows = results.parts.iter().map(|p| p.ids.len()).sum();
        Self { columns, rows, positions, id: Some(schema.id.clone()) }
    }

    /// Columns of numbers, all as long.
    pub(crate) fn of_numbers(columns: Vec<(&str, Vec<f64>)>) -> Self {
        let rows = columns.first().map_or(0, |(_, values)| values.len());
        let column = |(name, values): (&str, Vec<f64>)| {
            (name.to_owned(), Column::Array(Arc::new(Float64Array::from(values))))
        };
        Self { columns: columns.into_iter().map(column).collect(), rows, positions: vec![], id: None }
    }

    /// Rows of a document: scalars by name, texts first. A bound is its value, what is nested gets a longer name, and what
    /// no row has is left out.
    pub(crate) fn of_document(rows: &[impl serde::Serialize]) -> Self {
        let rows: Vec<Vec<(String, Value)>> =
            rows.iter().map(|row| flat("", serde_json::to_value(row).unwrap_or_default())).collect();
        let mut names: Vec<&String> = vec![];
        for (name, _) in rows.iter().flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let of = |name: &str| -> Vec<Option<&Value>> {
            let value = |row: &'_ Vec<(String, Value)>| row.iter().position(|(n, _)| n == name);
            rows.iter().map(|row| value(row).map(|at| &row[at].1).filter(|v| !v.is_null())).collect()
        };
        let columns = names.iter().map(|name| ((*name).clone(), of(name)));
        let columns = columns.filter(|(_, values)| values.iter().any(Option::is_some));
        let mut columns: Vec<_> =
            columns.map(|(name, values)| (name, Column::Array(array(&values)))).collect();
        columns.sort_by_key(|(_, column)| column.data_type() != DataType::Utf8);
        Self { columns, rows: rows.len(), positions: vec![], id: None }
    }

    fn schema(&self) -> SchemaRef {
        let field = |(name, column): &(String, Column)| Field::new(name, column.data_type(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    fn batch(&self, schema: &SchemaRef, at: usize) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(
            Arc::clone(schema),
            self.columns.iter().map(|(_, column)| column.part(at)).collect(),
        )
    }
}

/// Scalars of a document by name.
fn flat(before: &str, value: Value) -> Vec<(String, Value)> {
    let Value::Object(object) = value else { return vec![] };
    let named = |name: &str| if before.is_empty() { name.to_owned() } else { format!("{before}_{name}") };
    object
        .into_iter()
        .flat_map(|(name, value)| match value {
            Value::Object(mut inner) => match inner.remove("value") {
                Some(value) => vec![(named(&name), value)],
                None => flat(&named(&name), Value::Object(inner)),
            },
            Value::Array(_) => vec![],
            scalar => vec![(named(&name), scalar)],
        })
        .collect()
}

/// Values of one kind as an array.
fn array(values: &[Option<&Value>]) -> ArrayRef {
    let all = |is: &dyn Fn(&Value) -> bool| values.iter().flatten().all(|v| is(v));
    if all(&Value::is_boolean) {
        Arc::new(values.iter().map(|v| v.and_then(Value::as_bool)).collect::<BooleanArray>())
    } else if all(&|v| v.as_i64().is_some()) {
        Arc::new(values.iter().map(|v| v.and_then(Value::as_i64)).collect::<Int64Array>())
    } else if all(&Value::is_number) {
        Arc::new(values.iter().map(|v| v.and_then(Value::as_f64)).collect::<Float64Array>())
    } else {
        let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        Arc::new(values.iter().map(|v| v.map(text)).collect::<StringArray>())
    }
}

fn failed(error: impl std::fmt::Display) -> PyErr {
    LeakscopeError::new_err(format!("the table cannot be handed over: {error}"))
}

/// Items end to end.
pub(crate) fn bytes<'py, const N: usize>(
    py: Python<'py>,
    count: usize,
    items: impl Iterator<Item = [u8; N]>,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, N * count, |out| {
        out.chunks_exact_mut(N).zip(items).for_each(|(to, from)| to.copy_from_slice(&from));
        Ok(())
    })
}

#[pymethods]
impl ResultTable {
    /// The same again from what [`ResultTable::column`] gave: for pickle.
    #[new]
    #[pyo3(signature = (columns, positions, id=None))]
    fn new(
        columns: Vec<(String, String, Bound<'_, PyAny>)>,
        positions: Vec<i64>,
        id: Option<String>,
    ) -> PyResult<Self> {
        let mut rows = 0;
        let mut all = vec![];
        for (name, kind, values) in columns {
            let array: ArrayRef = match &*kind {
                "float64" => Arc::new(Float64Array::from_iter_values(
                    values.extract::<&[u8]>()?.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)),
                )),
                "int64" => Arc::new(Int64Array::from_iter_values(
                    values.extract::<&[u8]>()?.as_chunks::<8>().0.iter().map(|b| i64::from_ne_bytes(*b)),
                )),
                "bool" => Arc::new(
                    values.extract::<&[u8]>()?.iter().map(|b| Some(*b != 0)).collect::<BooleanArray>(),
                ),
                "str" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
                other => return Err(failed(format!("there is no kind of column `{other}`"))),
            };
            rows = array.len();
            all.push((name, Column::Array(array)));
        }
        Ok(Self { columns: all, rows, positions, id })
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    /// Names of its columns.
    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Name of the column that names rows.
    fn id(&self) -> Option<String> {
        self.id.clone()
    }

    /// Where the rows were in the caller's table, from 0 (int64).
    fn positions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes(py, self.positions.len(), self.positions.iter().map(|p| p.to_ne_bytes()))
    }

    /// The same without a column.
    fn without(&self, name: &str) -> Self {
        Self { columns: self.columns.iter().filter(|(n, _)| n != name).cloned().collect(), ..self.clone() }
    }

    /// A column as numpy has it: `float64`, `int64` or `bool` with the bytes, or `str` with a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let Some((_, column)) = self.columns.iter().find(|(n, _)| n == name) else {
            return Err(failed(format!("there is no column `{name}`")));
        };
        let parts: Vec<ArrayRef> = (0..column.parts()).map(|at| column.part(at)).collect();
        let missing = parts.iter().any(|part| part.null_count() > 0);
        let n = self.rows;
        Ok(match column.data_type() {
            DataType::Boolean if !missing => {
                let items =
                    parts.iter().flat_map(|p| p.as_boolean().iter()).map(|b| [u8::from(b == Some(true))]);
                ("bool", bytes(py, n, items)?.into_any())
            }
            DataType::Int64 if !missing => {
                let items = parts.iter().flat_map(|p| p.as_primitive::<Int64Type>().values().iter());
                ("int64", bytes(py, n, items.map(|x| x.to_ne_bytes()))?.into_any())
            }
            DataType::Int64 => {
                let items = parts.iter().flat_map(|p| p.as_primitive::<Int64Type>().iter());
                let items = items.map(|x| x.map_or(f64::NAN, |x| x as f64).to_ne_bytes());
                ("float64", bytes(py, n, items)?.into_any())
            }
            DataType::Float64 => {
                let items = parts.iter().flat_map(|p| p.as_primitive::<Float64Type>().iter());
                ("float64", bytes(py, n, items.map(|x| x.unwrap_or(f64::NAN).to_ne_bytes()))?.into_any())
            }
            DataType::Utf8 => {
                let items: Vec<Option<&str>> =
                    parts.iter().flat_map(|p| p.as_string::<i32>().iter()).collect();
                ("str", items.into_pyobject(py)?)
            }
            // Truth values of which some are missing.
            _ => {
                let items: Vec<Option<bool>> = parts.iter().flat_map(|p| p.as_boolean().iter()).collect();
                ("object", items.into_pyobject(py)?)
            }
        })
    }

    /// For pickle.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let mut columns = vec![];
        for name in this.names() {
            let (kind, values) = this.column(py, &name)?;
            columns.push((name, kind, values));
        }
        let arguments = (columns, this.positions.clone(), this.id.clone()).into_pyobject(py)?;
        Ok((slf.get_type().into_any(), arguments))
    }

    /// The schema as a capsule of the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows as a capsule of the Arrow PyCapsule interface; batches are made as they are asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore what a consumer would like best.
        let _ = requested_schema;
        let (table, schema) = (self.clone(), self.schema());
        let parts = table.columns.first().map_or(0, |(_, column)| column.parts());
        let of = Arc::clone(&schema);
        let batches = (0..parts).map(move |at| table.batch(&of, at));
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
