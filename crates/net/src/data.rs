//! Records and their labels, checked once.

use crate::{
    Network, Real, Shape,
    device::{Buf, Device},
    error::{Error, Result, check_finite, check_len},
};

/// Records of one shape and their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Data<T> {
    input: Shape,
    outputs: usize,
    x: Vec<T>,
    y: Vec<T>,
}

impl<T: Real> Data<T> {
    /// Records `(n, input)` row-major with label vectors `(n, outputs)`. Images are channels last.
    pub fn new(input: Shape, x: Vec<T>, outputs: usize, y: Vec<T>) -> Result<Self> {
        let n = y.len() / outputs.max(1);
        if n == 0 || input.is_empty() {
            return Err(Error::Empty);
        }
        check_len("the labels", y.len(), n * outputs)?;
        check_len("the records", x.len(), n.saturating_mul(input.len()))?;
        check_finite("the records", &x)?;
        check_finite("the labels", &y)?;
        Ok(Self { input, outputs, x, y })
    }

    /// Records with class labels, as one-hot vectors; with `outputs` of 1 the classes are 0 and 1.
    pub fn classes(input: Shape, x: Vec<T>, outputs: usize, classes: &[u32]) -> Result<Self> {
        let limit = outputs.max(2) as u32;
        if let Some(c) = classes.iter().find(|c| **c >= limit) {
            let expected = "a class below the number of outputs (0 or 1 with one output)";
            return Err(Error::OutOfRange { what: "a label", value: f64::from(*c), expected });
        }
        let mut y = vec![T::ZERO; classes.len() * outputs];
        for (i, &c) in classes.iter().enumerate() {
            match outputs {
                1 => y[i] = T::from_f64(f64::from(c)),
                _ => y[i * outputs + c as usize] = T::ONE,
            }
        }
        Self::new(input, x, outputs, y)
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.y.len() / self.outputs
    }

    /// Whether there are none; never so.
    pub fn is_empty(&self) -> bool {
        self.y.is_empty()
    }

    /// Shape of one record.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// Label values per record.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Record `i`.
    pub fn record(&self, i: usize) -> &[T] {
        let d = self.input.len();
        &self.x[i * d..(i + 1) * d]
    }

    /// Label of record `i`.
    pub fn label(&self, i: usize) -> &[T] {
        &self.y[i * self.outputs..(i + 1) * self.outputs]
    }

    /// All records, row-major.
    pub fn records(&self) -> &[T] {
        &self.x
    }

    /// Checks that a network takes these records and labels.
    pub fn check(&self, net: &Network<T>) -> Result<()> {
        if self.input.len() != net.input().len()
            || (self.input != net.input() && self.input.dims().len() != 1)
        {
            return Err(Error::DoesNotChain {
                layer: 0,
                kind: "input",
                found: self.input.dims(),
                need: "the records must have the shape the network was made for",
            });
        }
        check_len("a label", self.outputs, net.outputs())?;
        let fault = |i: usize| {
            let y: Vec<f64> = self.label(i).iter().map(|v| v.to_f64()).collect();
            let advice = net.loss().rule().label_fault(&y)?;
            Some(Error::Label { record: i, loss: net.loss().name(), advice })
        };
        (0..self.len()).find_map(fault).map_or(Ok(()), Err)
    }

    /// Copies records to the device: `(records, d)` and `(records, outputs)`.
    pub(crate) fn upload(&self, dev: &mut Device<T>, records: &[usize]) -> (Buf<T>, Buf<T>) {
        let (d, k) = (self.input.len(), self.outputs);
        let mut x = Vec::with_capacity(records.len() * d);
        let mut y = Vec::with_capacity(records.len() * k);
        for &i in records {
            x.extend_from_slice(self.record(i));
            y.extend_from_slice(self.label(i));
        }
        (dev.upload(&x), dev.upload(&y))
    }

    /// Checks record numbers.
    pub(crate) fn check_records(&self, records: &[usize]) -> Result<()> {
        match records.iter().find(|i| **i >= self.len()) {
            None => Ok(()),
            Some(&i) => Err(Error::OutOfRange {
                what: "a record number",
                value: i as f64,
                expected: "below the number of records",
            }),
        }
    }
}
