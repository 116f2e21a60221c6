//! The values of a graph while a pass goes over it.

use crate::{
    Real,
    device::{Buf, Device},
};

/// Values on the way forward. Each is kept until its last reader has had it, who gets the buffer itself; the others get
/// copies. Tangents that are zero are absent.
pub(super) struct Values<T> {
    held: Vec<Option<Buf<T>>>,
    left: Vec<usize>,
}

impl<T: Real> Values<T> {
    /// Starts with the record, given how often every value will be read.
    pub(super) fn new(readers: &[usize], record: Option<Buf<T>>) -> Self {
        Self { held: vec![record], left: readers.to_vec() }
    }

    /// What the next node returned.
    pub(super) fn push(&mut self, value: Option<Buf<T>>) {
        self.held.push(value);
    }

    pub(super) fn read(&mut self, dev: &mut Device<T>, value: usize) -> Option<Buf<T>> {
        self.left[value] -= 1;
        match self.left[value] {
            0 => self.held[value].take(),
            _ => self.held[value].as_ref().map(|b| dev.copy(b.all())),
        }
    }

    /// Ends with a value; the others are given back.
    pub(super) fn into_last(mut self, dev: &mut Device<T>, value: usize) -> Option<Buf<T>> {
        let last = self.held[value].take();
        self.held.into_iter().for_each(|b| dev.put_some(b));
        last
    }
}

/// What comes back: sums over the readers of a value.
pub(super) struct Back<T> {
    held: Vec<Option<Buf<T>>>,
}

impl<T: Real> Back<T> {
    /// Starts with what comes back from the loss at the last value.
    pub(super) fn new(last: usize, delta: Buf<T>) -> Self {
        let mut held: Vec<Option<Buf<T>>> = std::iter::repeat_with(|| None).take(last).collect();
        held.push(Some(delta));
        Self { held }
    }

    pub(super) fn take(&mut self, value: usize) -> Option<Buf<T>> {
        self.held[value].take()
    }

    /// Adds what comes back from one reader.
    pub(super) fn add(&mut self, dev: &mut Device<T>, value: usize, delta: Option<Buf<T>>) {
        let Some(delta) = delta else { return };
        match &mut self.held[value] {
            Some(sum) => {
                dev.add(sum, delta.all());
                dev.put(delta);
            }
            empty => *empty = Some(delta),
        }
    }
}
