//! Passes that are repeated with other tangents: on a GPU captured at the second time, and started as a whole from then on.

use crate::{
    Real,
    device::{Buf, Device, Graph},
    error::Result,
};

/// Tangents of the values of records and of their labels; either may be zero.
pub(super) type Tangents<T> = (Option<Buf<T>>, Option<Buf<T>>);

/// Times from which on a capture pays (ten probes take longer with one than without), and records up to which it does: of more, kernels
/// take longer than their start.
const TIMES: usize = 32;
const RECORDS: usize = 4096;

/// A pass that is made several times.
pub(super) struct Repeat<T, R> {
    /// Values of the tangents that it is made with.
    sizes: [usize; 2],
    state: State<T, R>,
}

enum State<T, R> {
    /// Each time anew.
    Plain,
    /// The first time compiles kernels and is not captured.
    New,
    Next,
    Captured(Box<Captured<T, R>>),
}

struct Captured<T, R> {
    graph: Graph,
    /// Where it reads tangents.
    tangents: Tangents<T>,
    /// What it leaves.
    result: R,
}

impl<T: Real, R> Repeat<T, R> {
    /// A pass over so many records, so many times. Where it waits for the device in between (`waits`), it is not captured.
    pub(super) fn new(dev: &Device<T>, records: usize, times: usize, waits: bool) -> Self {
        let pays = dev.is_far() && times >= TIMES && records <= RECORDS && !waits;
        Self { sizes: [0; 2], state: if pays { State::New } else { State::Plain } }
    }

    /// Makes the pass and hands its result to `read`; `drop` gets a result that is not needed again.
    pub(super) fn run<A>(
        &mut self,
        dev: &mut Device<T>,
        tangents: Tangents<T>,
        pass: impl Fn(&mut Device<T>, Tangents<T>) -> Result<R>,
        read: impl FnOnce(&mut Device<T>, &R) -> Result<A>,
        drop: impl FnOnce(&mut Device<T>, R),
    ) -> Result<A> {
        let len = |b: &Option<Buf<T>>| b.as_ref().map_or(0, Buf::len);
        let sizes = [len(&tangents.0), len(&tangents.1)];
        if let (State::Captured(captured), true) = (&mut self.state, self.sizes == sizes) {
            let pairs = [(tangents.0, &mut captured.tangents.0), (tangents.1, &mut captured.tangents.1)];
            for (new, old) in pairs {
                if let (Some(new), Some(old)) = (new, old) {
                    dev.overwrite(&new, old);
                    dev.put(new);
                }
            }
            dev.replay(&captured.graph);
            return read(dev, &captured.result);
        }
        if matches!(self.state, State::Next) && self.sizes == sizes {
            let copied = |dev: &mut Device<T>, (x, y): &Tangents<T>| {
                (x.as_ref().map(|b| dev.copy(b.all())), y.as_ref().map(|b| dev.copy(b.all())))
            };
            // its own copy, since a pass uses up what it is given
            let captured = dev.capture(|dev| {
                let own = copied(dev, &tangents);
                pass(dev, own)
            });
            if let Some((graph, Ok(result))) = captured {
                dev.replay(&graph);
                let captured = Box::new(Captured { graph, tangents, result });
                let out = read(dev, &captured.result);
                self.state = State::Captured(captured);
                return out;
            }
            self.state = State::Plain;
        }
        let result = pass(dev, tangents)?;
        if matches!(self.state, State::New) {
            (self.sizes, self.state) = (sizes, State::Next);
        }
        let out = read(dev, &result);
        drop(dev, result);
        out
    }
}
