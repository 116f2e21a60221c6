//! Work that is repeated, captured once and started again as a whole: where kernels are short, starting each of them from the host
//! takes longer than they do.
//!
//! Captured is what one thread queues between two points, in a stream of its own; others go on meanwhile. Addresses are part of what
//! is captured, so the memory that the work takes belongs to it from then on ([`Graph`]), and values that the host hands to it are
//! kept on the card and copied again at every start. What is new at every start is written to a buffer that the caller has from
//! before, and results are read from one that was taken during the capture.

use super::{Blas, Gpu, Pointer, driver::Address, lock};
use std::{cell::RefCell, collections::HashMap, sync::PoisonError};

/// The stream of captures, and cuBLAS for it.
#[derive(Debug)]
pub(super) struct Side {
    stream: Pointer,
    blas: Blas,
}

/// A capture under way in this thread.
struct Capture {
    ordinal: u32,
    stream: Pointer,
    blas: Blas,
    /// Memory that the work has given back, by size: for itself alone.
    free: HashMap<usize, Vec<Address>>,
    /// Memory that it reads from.
    inputs: Vec<(usize, Address)>,
}

thread_local! {
    static CAPTURE: RefCell<Option<Capture>> = const { RefCell::new(None) };
}

/// Captured work.
pub(crate) struct Graph {
    work: Pointer,
    /// Memory that it writes to.
    outputs: Vec<(usize, Address)>,
    gpu: &'static Gpu,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "captured work on {:?}", self.gpu)
    }
}

/// Memory that products of captured work may use.
const WORKSPACE: usize = 32 << 20;

impl Gpu {
    /// Captures what `work` queues, which must wait for nothing. Absent where that cannot be: then nothing was queued.
    pub(crate) fn capture<R>(&'static self, work: impl FnOnce() -> R) -> Option<(Graph, R)> {
        if !self.captures || self.failed() || self.times.is_some() {
            return None;
        }
        let mut side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        if side.is_none() {
            *side = self.new_side();
        }
        let Side { stream, blas } = side.as_mut()?;
        let driver = &self.api.driver;
        self.enter();
        // 2: what else this thread does is its own affair
        // SAFETY: the stream lives as long as the programme, and captures are made one at a time
        if unsafe { (driver.capture)(stream.0, 2) } != 0 {
            return None;
        }
        let own = blas.clone();
        let here = Capture {
            ordinal: self.ordinal,
            stream: *stream,
            blas: own,
            free: HashMap::new(),
            inputs: Vec::new(),
        };
        CAPTURE.with(|c| *c.borrow_mut() = Some(here));
        let result = work();
        let ended = CAPTURE.with(|c| c.borrow_mut().take());
        if let Some(ended) = &ended {
            *blas = ended.blas.clone();
        }
        let outputs = ended.into_iter().flat_map(|c| {
            let pieces = |(size, list): (usize, Vec<Address>)| list.into_iter().map(move |a| (size, a));
            c.free.into_iter().flat_map(pieces).chain(c.inputs)
        });
        let (mut captured, mut graph) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: pointers are those of live handles
        let code = unsafe {
            let ended = (driver.captured)(stream.0, &raw mut captured);
            let made = if ended == 0 { (driver.graph)(&raw mut graph, captured, 0) } else { ended };
            if !captured.is_null() {
                (driver.drop_capture)(captured);
            }
            made
        };
        let graph = Graph { work: Pointer(graph), outputs: outputs.collect(), gpu: self };
        if code != 0 || self.failed() {
            // the caller does the work itself, and hears there what is wrong with it
            lock(&self.failure).take();
            return None;
        }
        Some((graph, result))
    }

    fn new_side(&'static self) -> Option<Side> {
        let (mut stream, mut blas) = (std::ptr::null_mut(), std::ptr::null_mut());
        self.enter();
        let room = self.take::<u8>(WORKSPACE);
        if self.failed() {
            return None;
        }
        // SAFETY: pointers are those of live handles; the memory is never given back
        let code = unsafe {
            let made = (self.api.driver.stream)(&raw mut stream, 1);
            let made = if made == 0 { (self.api.blas.create)(&raw mut blas) } else { made };
            let made = if made == 0 { (self.api.blas.on_stream)(blas, stream) } else { made };
            if made == 0 { (self.api.blas.workspace)(blas, room.address(), WORKSPACE) } else { made }
        };
        std::mem::forget(room);
        (code == 0).then_some(Side {
            stream: Pointer(stream),
            blas: Blas { handle: Pointer(blas), shortened: false },
        })
    }

    /// What a capture of this thread has, where there is one.
    fn capturing<R>(&self, f: impl FnOnce(&mut Capture) -> R) -> Option<R> {
        CAPTURE.with(|c| c.borrow_mut().as_mut().filter(|c| c.ordinal == self.ordinal).map(f))
    }

    /// Where this thread queues work.
    pub(super) fn queue(&self) -> Pointer {
        self.capturing(|c| c.stream).unwrap_or(self.stream)
    }

    pub(super) fn is_capturing(&self) -> bool {
        self.capturing(|_| ()).is_some()
    }

    /// Runs `f` with the cuBLAS of this thread's queue.
    pub(super) fn with_blas<R>(&self, f: impl FnOnce(&mut Blas) -> R) -> R {
        if self.is_capturing() {
            let mut blas = self.capturing(|c| c.blas.clone()).unwrap_or_else(|| lock(&self.blas).clone());
            let out = f(&mut blas);
            self.capturing(|c| c.blas = blas);
            return out;
        }
        f(&mut lock(&self.blas))
    }

    /// A piece of memory that is free.
    pub(super) fn reuse(&self, size: usize) -> Option<Address> {
        let own = self.capturing(|c| c.free.get_mut(&size).and_then(Vec::pop)).flatten();
        own.or_else(|| lock(&self.free).get_mut(&size).and_then(Vec::pop))
    }

    /// Gives a piece of memory back.
    pub(super) fn give(&self, size: usize, address: Address) {
        if self.capturing(|c| c.free.entry(size).or_default().push(address)).is_none() {
            lock(&self.free).entry(size).or_default().push(address);
        }
    }

    /// Keeps memory for as long as captured work.
    pub(super) fn keep(&self, size: usize, address: Address) {
        self.capturing(|c| c.inputs.push((size, address)));
    }

    /// Starts captured work, behind all that was queued.
    pub(crate) fn replay(&self, graph: &Graph) {
        if self.failed() {
            return;
        }
        self.enter();
        // SAFETY: the work lives as long as the graph
        let code = unsafe { (self.api.driver.replay)(graph.work.0, self.queue().0) };
        self.note("starting captured work", code);
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let driver = &self.gpu.api.driver;
        self.gpu.enter();
        if !self.work.0.is_null() {
            // SAFETY: the work is waited for, and nobody has it any more
            unsafe {
                (driver.wait)(self.gpu.stream.0);
                (driver.drop_graph)(self.work.0);
            }
        }
        for (size, address) in self.outputs.drain(..) {
            self.gpu.give(size, address);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Backend,
        device::{Buf, Device, Gemm},
    };

    /// A product, an upload and a sum of two, captured once: started again it reads what is in its input then, and uploads again
    /// what it has changed itself.
    #[test]
    fn captured_work_is_done_again_with_what_is_there_then() {
        let Ok(backend) = Backend::cuda(0) else {
            eprintln!("SKIPPED on a GPU: there is none");
            return;
        };
        let mut dev: Device<f64> = backend.device();
        let mut x = dev.upload(&[1.0, 2.0, 3.0, 4.0]);
        let work = |dev: &mut Device<f64>, x: &Buf<f64>| {
            let mut y = dev.upload(&[10.0, 20.0, 30.0, 40.0]);
            let product = Gemm::nn(2, 2, 2).adding();
            let other = dev.upload(&[1.0, 0.0, 0.0, 1.0]);
            dev.gemm(product, x.all(), other.all(), &mut y, 0);
            dev.add_constant(&mut y, 0.5);
            y
        };
        let plain = work(&mut dev, &x);
        assert_eq!(dev.download(&plain).unwrap(), [11.5, 22.5, 33.5, 44.5]);
        let Some((graph, y)) = dev.capture(|dev| work(dev, &x)) else { panic!("it can be captured") };
        for shift in [0.0, 100.0, 200.0] {
            let next = dev.upload(&[1.0 + shift, 2.0, 3.0, 4.0]);
            dev.overwrite(&next, &mut x);
            dev.replay(&graph);
            // what others take meanwhile is theirs
            let theirs = dev.upload(&[7.0; 4]);
            assert_eq!(dev.download(&y).unwrap(), [11.5 + shift, 22.5, 33.5, 44.5]);
            assert_eq!(dev.download(&theirs).unwrap(), [7.0; 4]);
        }
    }

    /// What cannot be captured is no failure of what comes after.
    #[test]
    fn work_that_waits_is_not_captured() {
        let Ok(backend) = Backend::cuda(0) else {
            eprintln!("SKIPPED on a GPU: there is none");
            return;
        };
        let mut dev: Device<f64> = backend.device();
        let x = dev.upload(&[1.0]);
        let captured = dev.capture(|dev| dev.download(&x).is_ok());
        assert!(captured.is_none_or(|(_, fine)| !fine));
        assert_eq!(dev.download(&x).unwrap(), [1.0]);
    }
}
