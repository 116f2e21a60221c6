//! Records and their labels, checked once.
//!
//! A record is an array of values or a sequence of tokens; its label a vector of values, a class, or one of either for
//! each position of a sequence. All sequences of one data set have the same length, or are padded to it (`units`), where
//! the network reads nothing behind a position. Records may belong together, and are then drawn and clipped as one.

mod units;

use crate::{
    Loss, Network, Real, Shape,
    device::{Buf, Device, Index, Staging, Target, cuda::MOST_VALUES},
    error::{Error, Result, check_finite, check_len},
    loss::{Agreement, largest},
    spec::Reduction,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

pub use crate::loss::NO_LABEL;

/// Whether the label is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// The attacker knows it
    Public,
    /// It is part of the record: its values (one-hot entries, or the target) are coordinates like those of x
    Secret,
}

impl Label {
    /// The name used in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Secret => "secret",
        }
    }
}

/// Records of one shape and their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Data<T> {
    input: Shape,
    outputs: usize,
    /// Labels of one record: 1, or the length of a sequence.
    places: usize,
    x: Records<T>,
    y: Labels<T>,
    resident: Resident<T>,
    /// Positions of every record before its padding; absent where none is padded.
    lengths: Option<Vec<usize>>,
    /// The records of every unit that is drawn and clipped as one; absent where each record is a unit.
    units: Option<Vec<Vec<usize>>>,
}

/// Where the records are on a GPU, once they were asked for there. It says nothing that the records do not say.
#[derive(Debug)]
struct Resident<T> {
    there: Mutex<Option<There<T>>>,
    /// Bytes of records that may stay there; by default a quarter of what is free.
    most: Option<usize>,
}

/// Records on a GPU.
#[derive(Debug)]
enum There<T> {
    /// All of them.
    Whole(Arc<Buf<T>>),
    /// Those of two pieces: all do not fit.
    Pieces(Arc<Staging>),
}

impl<T> Clone for There<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Whole(all) => Self::Whole(all.clone()),
            Self::Pieces(staging) => Self::Pieces(staging.clone()),
        }
    }
}

impl<T> Default for Resident<T> {
    fn default() -> Self {
        let most = std::env::var("LEAKSCOPE_CUDA_RESIDENT").ok().and_then(|bytes| bytes.parse().ok());
        Self { there: Mutex::new(None), most }
    }
}

impl<T> Clone for Resident<T> {
    fn clone(&self) -> Self {
        Self { there: Mutex::new(None), most: self.most }
    }
}

impl<T> PartialEq for Resident<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Records<T> {
    Values(Vec<T>),
    Tokens(Vec<u32>),
}

#[derive(Debug, Clone, PartialEq)]
enum Labels<T> {
    Vectors(Vec<T>),
    Classes(Vec<u32>),
}

/// Records on the device.
#[derive(Debug)]
pub(crate) enum Input<T> {
    Values(Buf<T>),
    Tokens(Index),
    /// Tokens whose values are not those of the embedding.
    #[cfg(test)]
    Moved(Index, Buf<T>),
}

/// A batch on the device.
#[derive(Debug)]
pub(crate) struct Batch<'a, T> {
    /// The numbers of its records.
    pub(crate) records: &'a [usize],
    /// Positions of every record; 1 where it is no sequence.
    pub(crate) length: usize,
    pub(crate) x: Input<T>,
    pub(crate) y: Target<T>,
    /// Weight of every label in the loss of its record; absent where all are 1.
    pub(crate) weights: Option<Vec<f64>>,
}

impl<T: Real> Data<T> {
    /// Records `(n, input)` row-major with label vectors `(n, outputs)`; for sequences also `(n, positions, outputs)`.
    /// Images are channels last.
    pub fn new(input: Shape, x: Vec<T>, outputs: usize, y: Vec<T>) -> Result<Self> {
        let places = places_of(input, x.len(), y.len() / outputs.max(1));
        let n = y.len() / (outputs.max(1) * places);
        if n == 0 || input.is_empty() {
            return Err(Error::Empty);
        }
        check_len("the labels", y.len(), n * places * outputs)?;
        check_finite("the labels", &y)?;
        Self::of(input, x, n, outputs, places, Labels::Vectors(y))
    }

    /// Records with a class each; for sequences also one at each position, or [`NO_LABEL`]. With `outputs` of 1 the
    /// classes are 0 and 1.
    pub fn classes(input: Shape, x: Vec<T>, outputs: usize, classes: &[u32]) -> Result<Self> {
        let places = places_of(input, x.len(), classes.len());
        let n = classes.len() / places;
        check_classes(classes, outputs, places)?;
        let y = match outputs {
            1 => Labels::Vectors(classes.iter().map(|&c| T::from_f64(f64::from(c))).collect()),
            _ => Labels::Classes(classes.to_vec()),
        };
        if n == 0 || input.is_empty() || outputs == 0 {
            return Err(Error::Empty);
        }
        check_len("the labels", classes.len(), n * places)?;
        Self::of(input, x, n, outputs, places, y)
    }

    /// Sequences of `length` tokens with a class each, or one at each position, or [`NO_LABEL`] there: a language model
    /// has the next token.
    pub fn tokens(length: usize, tokens: Vec<u32>, outputs: usize, classes: &[u32]) -> Result<Self> {
        let (input, n) = (Shape::Tokens { tokens: length }, tokens.len() / length.max(1));
        if n == 0 || outputs < 2 {
            return Err(Error::Empty);
        }
        check_len("the tokens", tokens.len(), n * length)?;
        let places = places_of(input, tokens.len(), classes.len());
        check_len("the labels", classes.len(), n * places)?;
        check_classes(classes, outputs, places)?;
        let y = Labels::Classes(classes.to_vec());
        let (lengths, units, resident) = (None, None, Resident::default());
        Ok(Self { input, outputs, places, x: Records::Tokens(tokens), y, lengths, units, resident })
    }

    fn of(input: Shape, x: Vec<T>, n: usize, outputs: usize, places: usize, y: Labels<T>) -> Result<Self> {
        if let Shape::Tokens { .. } = input {
            let reason = "tokens are whole numbers: take Data::tokens".to_owned();
            return Err(Error::Format { subject: "the records", reason });
        }
        check_len("the records", x.len(), n.saturating_mul(input.len()))?;
        check_finite("the records", &x)?;
        let (lengths, units, resident) = (None, None, Resident::default());
        Ok(Self { input, outputs, places, x: Records::Values(x), y, lengths, units, resident })
    }

    /// Some of the records, in the order given, each on its own.
    pub fn subset(&self, records: &[usize]) -> Result<Self> {
        self.check_records(records)?;
        if records.is_empty() {
            return Err(Error::Empty);
        }
        let x = match &self.x {
            Records::Values(_) => {
                Records::Values(records.iter().flat_map(|&i| self.record(i)).copied().collect())
            }
            Records::Tokens(_) => {
                Records::Tokens(records.iter().flat_map(|&i| self.record_tokens(i)).copied().collect())
            }
        };
        let m = self.places;
        let y = match &self.y {
            Labels::Vectors(_) => {
                Labels::Vectors(records.iter().flat_map(|&i| self.label(i).into_owned()).collect())
            }
            Labels::Classes(y) => {
                Labels::Classes(records.iter().flat_map(|&i| &y[i * m..(i + 1) * m]).copied().collect())
            }
        };
        let lengths = self.lengths.as_ref().map(|all| records.iter().map(|&i| all[i]).collect());
        let Self { input, outputs, places, .. } = *self;
        Ok(Self { input, outputs, places, x, y, lengths, units: None, resident: Resident::default() })
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        match &self.y {
            Labels::Vectors(y) => y.len() / (self.outputs * self.places),
            Labels::Classes(y) => y.len() / self.places,
        }
    }

    /// Whether there are none; never so.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shape of one record.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// Label values per record, or per position of one.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Labels of one record: 1, or the length of a sequence.
    pub fn places(&self) -> usize {
        self.places
    }

    /// The values of record `i`; none where records are tokens.
    pub fn record(&self, i: usize) -> &[T] {
        let d = self.input.len();
        match &self.x {
            Records::Values(x) => &x[i * d..(i + 1) * d],
            Records::Tokens(_) => &[],
        }
    }

    /// The tokens of record `i`; none where records are values.
    pub fn record_tokens(&self, i: usize) -> &[u32] {
        let d = self.input.len();
        match &self.x {
            Records::Values(_) => &[],
            Records::Tokens(x) => &x[i * d..(i + 1) * d],
        }
    }

    /// The label of record `i` as values, classes as one-hot vectors; all positions of a sequence one after another.
    pub fn label(&self, i: usize) -> Cow<'_, [T]> {
        let (k, m) = (self.outputs, self.places);
        match &self.y {
            Labels::Vectors(y) => Cow::Borrowed(&y[i * k * m..(i + 1) * k * m]),
            Labels::Classes(y) => {
                let mut values = vec![T::ZERO; k * m];
                for (t, &class) in y[i * m..(i + 1) * m].iter().enumerate().filter(|(_, c)| **c != NO_LABEL) {
                    values[t * k + class as usize] = T::ONE;
                }
                Cow::Owned(values)
            }
        }
    }

    /// The classes of record `i`, where labels are classes.
    pub fn label_classes(&self, i: usize) -> Option<&[u32]> {
        match &self.y {
            Labels::Vectors(_) => None,
            Labels::Classes(y) => Some(&y[i * self.places..(i + 1) * self.places]),
        }
    }

    /// The values of all records, row-major; none where records are tokens.
    pub fn records(&self) -> &[T] {
        match &self.x {
            Records::Values(x) => x,
            Records::Tokens(_) => &[],
        }
    }

    /// Weight of every label of record `i` in its loss.
    fn weights(&self, i: usize, reduction: Reduction) -> Vec<f64> {
        let counts: Vec<bool> = match self.label_classes(i) {
            Some(classes) => classes.iter().map(|c| *c != NO_LABEL).collect(),
            None => vec![true; self.places],
        };
        let each = match reduction {
            Reduction::Sum => 1.0,
            Reduction::Mean => 1.0 / counts.iter().filter(|c| **c).count().max(1) as f64,
        };
        counts.into_iter().map(|c| if c { each } else { 0.0 }).collect()
    }

    /// Loss of record `i` for given outputs, and how many of its labels they get right.
    pub(crate) fn judge(&self, net: &Network<T>, i: usize, z: &[f64]) -> (f64, Option<Agreement>) {
        let (k, m) = (self.outputs, self.places);
        let (mut loss, mut agreement) = (0.0, Some(Agreement { right: 0, labels: 0 }));
        let mut y = vec![0.0; k];
        let rows = z.chunks_exact(k).zip(self.weights(i, net.spec().reduction)).enumerate();
        for (t, (z, w)) in rows.filter(|(_, (_, w))| *w > 0.0) {
            // one row at a time: those of all positions of a language model would be a large array
            match &self.y {
                Labels::Vectors(all) => {
                    y.iter_mut().zip(&all[(i * m + t) * k..]).for_each(|(y, v)| *y = v.to_f64());
                }
                Labels::Classes(all) => {
                    y.fill(0.0);
                    y[all[i * m + t] as usize] = 1.0;
                }
            }
            loss += if m == 1 { net.loss().value(z, &y) } else { w * net.loss().value(z, &y) };
            agreement = agreement
                .zip(net.loss().agreement(z, &y))
                .map(|(sum, a)| Agreement { right: sum.right + a.right, labels: sum.labels + a.labels });
        }
        (loss, agreement)
    }

    /// Whether outputs get all labels of record `i` right.
    pub(crate) fn right(&self, net: &Network<T>, i: usize, z: &[f64]) -> bool {
        match (&self.y, net.loss()) {
            // one class: no vector of it need be made
            (Labels::Classes(all), Loss::SoftmaxCrossEntropy) if self.places == 1 => {
                largest(z) == all[i] as usize
            }
            _ => self.judge(net, i, z).1.is_some_and(|a| a.right == a.labels),
        }
    }

    /// Checks that a network takes these records and labels.
    pub fn check(&self, net: &Network<T>) -> Result<()> {
        if !net.takes(self.input) {
            return Err(Error::DoesNotChain {
                layer: 0,
                kind: "input",
                actual: self.input.dims(),
                need: "the records must have the shape the network was made for",
            });
        }
        if let (Records::Tokens(tokens), Some(vocabulary)) = (&self.x, net.vocabulary())
            && let Some(at) = tokens.iter().position(|&t| t as usize >= vocabulary)
        {
            let (record, position) = (at / self.input.len(), at % self.input.len());
            return Err(Error::Token { record, position, token: tokens[at], vocabulary });
        }
        if self.lengths.is_some() && !net.spec().looks_back() {
            let reason = "sequences are padded behind their end, and the network reads behind a position: give it sequences \
                          of one length"
                .to_owned();
            return Err(Error::Format { subject: "the records", reason });
        }
        check_len("a label", self.outputs, net.outputs())?;
        check_len("the labels of a record", self.places, net.places(self.input.length()))?;
        if let Labels::Classes(_) = self.y {
            return Ok(());
        }
        let fault = |i: usize| {
            let y: Vec<f64> = self.label(i).iter().map(|v| v.to_f64()).collect();
            let advice = y.chunks(self.outputs).find_map(|y| net.loss().rule().label_fault(y))?;
            Some(Error::Label { record: i, loss: net.loss().name(), advice })
        };
        (0..self.len()).find_map(fault).map_or(Ok(()), Err)
    }

    /// Copies records to the device.
    pub(crate) fn upload<'a>(
        &self,
        dev: &mut Device<T>,
        net: &Network<T>,
        records: &'a [usize],
        label: Label,
    ) -> Batch<'a, T> {
        let d = self.input.len();
        // what is padding in all of them is left out
        let length = self.longest(records);
        let x = match &self.x {
            Records::Values(all) => {
                if let Some(rows) = self.on_device(dev, all, records) {
                    return self.labelled(dev, net, records, label, Input::Values(rows));
                }
                let mut x = Vec::with_capacity(records.len() * d);
                records.iter().for_each(|&i| x.extend_from_slice(self.record(i)));
                Input::Values(dev.upload(&x))
            }
            Records::Tokens(_) => {
                let each = records.iter().flat_map(|&i| &self.record_tokens(i)[..length]);
                let tokens: Vec<u32> = each.copied().collect();
                Input::Tokens(dev.upload_index(&tokens))
            }
        };
        self.labelled(dev, net, records, label, x)
    }

    /// Rows of the data on a GPU, of all that are there or copied there in pieces; absent on the processor.
    fn on_device(&self, dev: &mut Device<T>, all: &[T], records: &[usize]) -> Option<Buf<T>> {
        let d = self.input.len();
        match self.there(dev, all)? {
            There::Whole(there) => {
                let index = dev.upload_index(&records.iter().map(|&i| i as u32).collect::<Vec<u32>>());
                let mut rows = dev.take(records.len() * d);
                dev.gather_rows(d, there.all(), &index, &mut rows);
                Some(rows)
            }
            There::Pieces(staging) => {
                dev.staged(&staging, records, records.len() * d, |out| self.gather(records, out))
            }
        }
    }

    /// Where the records are on a GPU; decided when they are first asked for, since asking for room takes longer than many a
    /// kernel.
    fn there(&self, dev: &mut Device<T>, all: &[T]) -> Option<There<T>> {
        let mut there = self.resident.there.lock().unwrap_or_else(PoisonError::into_inner);
        let here = match &*there {
            Some(There::Whole(buf)) => dev.holds(buf),
            Some(There::Pieces(staging)) => dev.has_staging(staging),
            None => false,
        };
        if !here {
            let most = dev.room()? / 4;
            let most = self.resident.most.unwrap_or(most).min(most);
            *there = match all.len() > MOST_VALUES || size_of_val(all) > most {
                false => Some(There::Whole(Arc::new(dev.upload(all)))),
                true => Some(There::Pieces(Arc::new(dev.staging()?))),
            };
        }
        there.clone()
    }

    /// Copies records that a GPU asks for next, while it computes; does nothing where they are there already.
    pub(crate) fn ahead(&self, records: &[usize]) {
        let there = self.resident.there.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(There::Pieces(staging)) = there {
            staging.ahead(records, records.len() * self.input.len(), |out| self.gather(records, out));
        }
    }

    /// Whether records are copied to a GPU in pieces, as far as was decided.
    pub(crate) fn is_streamed(&self) -> bool {
        let there = self.resident.there.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(&*there, Some(There::Pieces(_)))
    }

    /// Lets at most so many bytes of records stay on a GPU: more are copied there in pieces, whenever they are needed. The
    /// variable `LEAKSCOPE_CUDA_RESIDENT` says the same of all data.
    pub fn keep_at_most(&mut self, bytes: usize) {
        self.resident = Resident { there: Mutex::new(None), most: Some(bytes) };
    }

    fn gather(&self, records: &[usize], out: &mut [T]) {
        let rows = out.par_chunks_mut(self.input.len().max(1)).with_min_len(256).zip(records);
        rows.for_each(|(row, &i)| row.copy_from_slice(self.record(i)));
    }

    /// A batch of records that are on the device already.
    fn labelled<'a>(
        &self,
        dev: &mut Device<T>,
        net: &Network<T>,
        records: &'a [usize],
        label: Label,
        x: Input<T>,
    ) -> Batch<'a, T> {
        let length = self.longest(records);
        let places = if self.places > 1 { length } else { 1 };
        // a label that is secret moves in all directions, and is a vector then
        let as_classes = net.loss() == Loss::SoftmaxCrossEntropy && label == Label::Public;
        let y = match &self.y {
            Labels::Classes(_) if as_classes => {
                let each = records.iter().flat_map(|&i| &self.label_classes(i).unwrap_or_default()[..places]);
                Target::Classes(dev.upload_index(&each.copied().collect::<Vec<u32>>()))
            }
            Labels::Classes(_) | Labels::Vectors(_) => {
                let each = self.outputs * places;
                let mut y = Vec::with_capacity(records.len() * each);
                records.iter().for_each(|&i| y.extend_from_slice(&self.label(i)[..each]));
                Target::Vectors(dev.upload(&y))
            }
        };
        let reduction = net.spec().reduction;
        let each = |i: &usize| self.weights(*i, reduction).into_iter().take(places);
        let weights = (self.places > 1).then(|| records.iter().flat_map(each).collect::<Vec<f64>>());
        Batch { records, length, x, y, weights }
    }

    /// Checks record numbers.
    pub(crate) fn check_records(&self, records: &[usize]) -> Result<()> {
        match records.iter().find(|i| **i >= self.len()) {
            None => Ok(()),
            Some(&i) => Err(Error::OutOfRange {
                subject: "a record number",
                value: i as f64,
                expected: "below the number of records",
            }),
        }
    }
}

/// Labels of one record, given how many values and labels there are: one for each position of a sequence where there are
/// so many.
fn places_of(input: Shape, values: usize, labels: usize) -> usize {
    let (length, n) = (input.length(), values / input.len().max(1));
    if length > 1 && labels == n * length { length } else { 1 }
}

/// Checks classes: below the number of outputs, and a label that counts in every record.
fn check_classes(classes: &[u32], outputs: usize, places: usize) -> Result<()> {
    let limit = outputs.max(2) as u32;
    if let Some(c) = classes.iter().find(|c| **c >= limit && (**c != NO_LABEL || places == 1)) {
        let expected = "a class below the number of outputs (0 or 1 with one output)";
        return Err(Error::OutOfRange { subject: "a label", value: f64::from(*c), expected });
    }
    let empty = |labels: &[u32]| labels.iter().all(|c| *c == NO_LABEL);
    match classes.chunks(places).position(empty) {
        None => Ok(()),
        Some(record) => {
            let advice = "none of its positions has a label: give one, or leave the record out";
            Err(Error::Label { record, loss: Loss::SoftmaxCrossEntropy.name(), advice })
        }
    }
}
