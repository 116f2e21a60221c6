//! Arrays and Arrow streams as a table in memory, without a copy.

use crate::failure::{DataError, exception};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatchReader, StringArray};
use leakscope_table::{Element, Matrix, Memory, MemoryColumn};
use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// Columns of one length under their names, in the order they were added.
#[pyclass(module = "leakscope._native")]
#[derive(Debug, Clone)]
pub(crate) struct Table {
    name: String,
    columns: Vec<(String, MemoryColumn)>,
}

impl Table {
    /// The table that the calls read.
    pub(crate) fn memory(&self) -> PyResult<Memory> {
        Memory::new(&self.name, self.columns.clone()).map_err(|e| exception(&e.into()))
    }
}

fn wrong(message: String) -> PyErr {
    DataError::new_err(message)
}

/// A matrix over a buffer of one or two dimensions, which it keeps.
fn matrix(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Arc<Matrix>> {
    let buffer = PyUntypedBuffer::get(array)?;
    let element = match buffer.format().to_bytes() {
        b"d" | b"=d" | b"<d" => Element::Double,
        b"f" | b"=f" | b"<f" => Element::Single,
        other => {
            let actual = String::from_utf8_lossy(other).into_owned();
            return Err(wrong(format!("{name}: elements of type `{actual}`: expected float64 or float32")));
        }
    };
    let (shape, strides) = match (buffer.shape(), buffer.strides()) {
        (&[rows, columns], &[down, across]) => ((rows, columns), (down, across)),
        (&[rows], &[down]) => ((rows, 1), (down, 0)),
        (shape, _) => return Err(wrong(format!("{name}: {} dimensions: expected one or two", shape.len()))),
    };
    if buffer.suboffsets().is_some_and(|s| s.iter().any(|o| *o >= 0)) {
        return Err(wrong(format!("{name}: an array of pointers: copy it into a plain one")));
    }
    let pointer = buffer.buf_ptr().cast_const().cast();
    // SAFETY: the exporter promises that every element of this shape and these strides is there for as long as the
    // buffer is held, which the matrix does. Whoever writes to an array during a call reads garbage from that call.
    Ok(Arc::new(unsafe { Matrix::borrowed(pointer, shape, strides, element, Arc::new(buffer)) }))
}

#[pymethods]
impl Table {
    #[new]
    fn new(name: String) -> Self {
        Self { name, columns: vec![] }
    }

    /// Adds the columns of a two-dimensional array of float64 or float32, with any strides.
    fn matrix(&mut self, names: Vec<String>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let matrix = matrix(&self.name, array)?;
        if matrix.columns() != names.len() {
            let (actual, expected) = (names.len(), matrix.columns());
            return Err(wrong(format!("{}: {actual} names for {expected} columns", self.name)));
        }
        let columns = names.into_iter().enumerate();
        self.columns.extend(
            columns
                .map(|(column, name)| (name, MemoryColumn::Matrix { matrix: Arc::clone(&matrix), column })),
        );
        Ok(())
    }

    /// Adds a one-dimensional array of float64 or float32.
    fn array(&mut self, name: String, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let matrix = matrix(&name, array)?;
        self.columns.push((name, MemoryColumn::Matrix { matrix, column: 0 }));
        Ok(())
    }

    /// Adds a category: an int32 code into `levels` for every row, negative where it is missing.
    fn levels(
        &mut self,
        py: Python<'_>,
        name: String,
        codes: &Bound<'_, PyAny>,
        levels: Vec<String>,
    ) -> PyResult<()> {
        let codes = PyBuffer::<i32>::get(codes)?.to_vec(py)?;
        let keys: Int32Array = codes.into_iter().map(|c| Some(c).filter(|c| *c >= 0)).collect();
        let values: ArrayRef = Arc::new(StringArray::from(levels));
        let array = DictionaryArray::<Int32Type>::try_new(keys, values)
            .map_err(|e| wrong(format!("{name}: not a category: {e}")))?;
        self.columns.push((name, MemoryColumn::Arrow(vec![Arc::new(array)])));
        Ok(())
    }

    /// Adds texts, `None` where one is missing.
    fn texts(&mut self, name: String, values: Vec<Option<String>>) {
        self.columns.push((name, MemoryColumn::Arrow(vec![Arc::new(StringArray::from(values))])));
    }

    /// Adds the columns of anything with `__arrow_c_stream__`.
    fn arrow(&mut self, stream: &Bound<'_, PyAny>) -> PyResult<()> {
        let capsule = stream.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: a capsule of this name holds such a stream (the Arrow PyCapsule interface); it is moved out of it.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
        let failed =
            |e: arrow_schema::ArrowError| wrong(format!("{}: cannot be read as Arrow: {e}", self.name));
        let reader = RecordBatchStreamReader::try_new(stream).map_err(failed)?;
        let mut columns: Vec<(String, Vec<ArrayRef>)> =
            reader.schema().fields().iter().map(|f| (f.name().clone(), vec![])).collect();
        for batch in reader {
            let batch = batch.map_err(failed)?;
            columns
                .iter_mut()
                .zip(batch.columns())
                .for_each(|((_, chunks), array)| chunks.push(array.clone()));
        }
        self.columns.extend(columns.into_iter().map(|(name, chunks)| (name, MemoryColumn::Arrow(chunks))));
        Ok(())
    }

    /// Names of the columns.
    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.rows())
    }
}
