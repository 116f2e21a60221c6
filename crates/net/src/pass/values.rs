//! The values of a graph while a pass goes over it.

use crate::{
    Real,
    device::{Buf, Device},
};

/// Values on the way forward. Each is kept until its last reader has had it, who gets the buffer itself; the others get
/// copies. Tangents that are zero are absent.
pub(super) struct Values<T> {
    buffers: Vec<Option<Buf<T>>>,
    uses: Vec<usize>,
}

impl<T: Real> Values<T> {
    /// Starts with the record, given how often every value will be read.
    pub(super) fn new(readers: &[usize], record: Option<Buf<T>>) -> Self {
        Self { buffers: vec![record], uses: readers.to_vec() }
    }

    /// What the next node returned.
    pub(super) fn push(&mut self, value: Option<Buf<T>>) {
        self.buffers.push(value);
    }

    pub(super) fn read(&mut self, dev: &mut Device<T>, value: usize) -> Option<Buf<T>> {
        self.uses[value] -= 1;
        match self.uses[value] {
            0 => self.buffers[value].take(),
            _ => self.buffers[value].as_ref().map(|b| dev.copy(b.all())),
        }
    }

    /// Ends with a value; the others are given back.
    pub(super) fn into_last(mut self, dev: &mut Device<T>, value: usize) -> Option<Buf<T>> {
        let last = self.buffers[value].take();
        self.buffers.into_iter().for_each(|b| dev.put_some(b));
        last
    }
}

/// What comes back: sums over the readers of a value.
pub(super) struct Back<T> {
    buffers: Vec<Option<Buf<T>>>,
}

impl<T: Real> Back<T> {
    /// Starts with what comes back from the loss at the last value.
    pub(super) fn new(last: usize, delta: Buf<T>) -> Self {
        let mut buffers: Vec<Option<Buf<T>>> = std::iter::repeat_with(|| None).take(last).collect();
        buffers.push(Some(delta));
        Self { buffers }
    }

    pub(super) fn take(&mut self, value: usize) -> Option<Buf<T>> {
        self.buffers[value].take()
    }

    /// Adds what comes back from one reader.
    pub(super) fn add(&mut self, dev: &mut Device<T>, value: usize, delta: Option<Buf<T>>) {
        let Some(delta) = delta else { return };
        match &mut self.buffers[value] {
            Some(sum) => {
                dev.add(sum, delta.all());
                dev.put(delta);
            }
            empty => *empty = Some(delta),
        }
    }
}
