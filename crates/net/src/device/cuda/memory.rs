//! Memory of a GPU: pieces that are used again, and copies to, from and on the card.

use super::{Gpu, MOST_VALUES, Mark, driver::Address, lock};
use crate::error::{Error, Result};
use std::ffi::c_void;

/// Memory of a GPU, given back to its pool when it is dropped.
pub(crate) struct Memory {
    address: Address,
    /// Size of the piece in the pool.
    size: usize,
    bytes: usize,
    len: usize,
    gpu: &'static Gpu,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values on {:?}", self.len, self.gpu)
    }
}

impl Memory {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Whether it is memory of a card: what could not be allocated is on none.
    pub(crate) fn is_on(&self, gpu: &Gpu) -> bool {
        self.address != 0 && self.gpu.ordinal == gpu.ordinal
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        let copy = self.gpu.bytes(self.bytes, self.len);
        self.gpu.copy(self.address, self.bytes, &copy);
        copy
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            self.gpu.give(self.size, self.address);
        }
    }
}

impl Gpu {
    /// Memory that is free, in bytes; what is in the pool counts as free.
    pub(crate) fn free_memory(&self) -> usize {
        self.enter();
        let (mut free, mut total) = (0, 0);
        // SAFETY: pointers of live numbers
        let code = unsafe { (self.api.driver.free_memory)(&raw mut free, &raw mut total) };
        self.note("asking for free memory", code);
        free + lock(&self.free).iter().map(|(size, list)| size * list.len()).sum::<usize>()
    }

    /// Memory for so many values with unspecified contents.
    pub(crate) fn take<V>(&'static self, len: usize) -> Memory {
        self.bytes(len * size_of::<V>(), len)
    }

    fn bytes(&'static self, bytes: usize, len: usize) -> Memory {
        // eighths of a power of two: pieces are found again, and little is wasted
        let step = (bytes.max(1).next_power_of_two() / 8).max(512);
        let size = bytes.max(1).next_multiple_of(step);
        if len > MOST_VALUES {
            let reason = format!(
                "a buffer of {len} values is needed, more than kernels can count: take a smaller batch"
            );
            lock(&self.failure).get_or_insert(reason);
            return Memory { address: 0, size, bytes, len, gpu: self };
        }
        let address = self.reuse(size).unwrap_or_else(|| self.allocate(size));
        Memory { address, size, bytes, len, gpu: self }
    }

    fn allocate(&self, size: usize) -> Address {
        self.enter();
        let mut address = 0;
        // SAFETY: the pointer is that of a live number
        let ask = |address: &mut Address| unsafe { (self.api.driver.alloc)(address, size) };
        // 2: out of memory
        if ask(&mut address) == 2 {
            self.shrink();
            address = 0;
            if ask(&mut address) == 2 {
                let reason = format!(
                    "out of memory: {} MB more were needed. Take a smaller batch or fewer probes at a time, close what \
                     else uses the GPU, or compute on the processor",
                    size >> 20
                );
                lock(&self.failure).get_or_insert(reason);
                return 0;
            }
        }
        if address == 0 {
            lock(&self.failure).get_or_insert_with(|| "memory could not be allocated".to_owned());
        }
        address
    }

    /// Gives the pool back to the driver.
    fn shrink(&self) {
        let pieces = std::mem::take(&mut *lock(&self.free));
        // SAFETY: nobody holds what is in the pool, and all work on it was queued before
        unsafe {
            (self.api.driver.wait)(self.stream.0);
            pieces.into_values().flatten().for_each(|a| {
                (self.api.driver.free)(a);
            });
        }
    }

    pub(crate) fn clear(&self, memory: &Memory) {
        if self.failed() {
            return;
        }
        self.enter();
        // SAFETY: the memory is held by the caller and has so many bytes
        let code = unsafe { (self.api.driver.clear)(memory.address, 0, memory.bytes, self.queue().0) };
        self.note("clearing memory", code);
    }

    pub(crate) fn upload<V: Copy>(&'static self, values: &[V]) -> Memory {
        let memory = self.take::<V>(values.len());
        self.write(&memory, values);
        memory
    }

    /// Replaces the first values of a piece.
    pub(crate) fn write<V: Copy>(&self, memory: &Memory, values: &[V]) {
        let bytes = size_of_val(values);
        if bytes == 0 || self.failed() {
            return;
        }
        assert!(bytes <= memory.bytes, "what is uploaded fits");
        if self.is_capturing() {
            return self.write_captured(memory, values);
        }
        self.enter();
        // SAFETY: both sides have so many bytes; from memory of the host that is not pinned, the copy is made before the call
        // returns
        let code = unsafe {
            (self.api.driver.upload)(memory.address, values.as_ptr().cast::<c_void>(), bytes, self.stream.0)
        };
        self.note("copying to the GPU", code);
    }

    /// The same as part of captured work: the values go to the card now, and from there into the piece at every start.
    fn write_captured<V: Copy>(&self, memory: &Memory, values: &[V]) {
        let (bytes, size) = (size_of_val(values), size_of_val(values).next_multiple_of(512));
        let kept = self.allocate(size);
        if kept == 0 {
            return;
        }
        // SAFETY: as above; the stream of all other work is not the one that is captured
        let code =
            unsafe { (self.api.driver.upload)(kept, values.as_ptr().cast::<c_void>(), bytes, self.stream.0) };
        self.note("copying to the GPU", code);
        self.copy(kept, bytes, memory);
        // nothing that is captured after this may write there: it is given back when all is
        self.keep(size, kept);
    }

    /// Copies values to the host once all that was queued is done.
    pub(crate) fn download<V: Copy + Default>(&self, memory: &Memory) -> Result<Vec<V>> {
        self.download_at(memory, None)
    }

    /// The same once what was queued before a mark is done: the values come from that.
    pub(crate) fn download_at<V: Copy + Default>(
        &self,
        memory: &Memory,
        mark: Option<&Mark>,
    ) -> Result<Vec<V>> {
        if self.is_capturing() {
            let reason = "work that waits for the GPU cannot be captured".to_owned();
            return Err(Error::Device { ordinal: self.ordinal, reason });
        }
        let mut values = vec![V::default(); memory.len];
        let bytes = size_of_val(&values[..]);
        if bytes > 0 && !self.failed() {
            assert!(bytes <= memory.bytes, "what is downloaded is there");
            self.enter();
            let stream = self.downloads(mark);
            // SAFETY: both sides have so many bytes, any bits are a value, and the vector is not touched before the wait
            unsafe {
                let driver = &self.api.driver;
                let target = values.as_mut_ptr().cast::<c_void>();
                self.note("copying from the GPU", (driver.download)(target, memory.address, bytes, stream.0));
                self.note("work on the GPU", (driver.wait)(stream.0));
            }
            if mark.is_none() {
                self.settle_times();
            }
        }
        self.verdict()?;
        Ok(values)
    }

    /// Copies bytes from an address to the start of a piece.
    pub(crate) fn copy(&self, from: Address, bytes: usize, to: &Memory) {
        self.copy_behind(from, bytes, (to, 0));
    }

    /// Copies bytes from an address into a piece, behind so many bytes of it.
    pub(crate) fn copy_behind(&self, from: Address, bytes: usize, (to, offset): (&Memory, usize)) {
        if bytes == 0 || self.failed() {
            return;
        }
        assert!(offset + bytes <= to.bytes, "what is copied fits");
        self.enter();
        // SAFETY: the caller holds both sides, of at least so many bytes
        let code = unsafe { (self.api.driver.copy)(to.address + offset as u64, from, bytes, self.queue().0) };
        self.note("copying on the GPU", code);
    }
}
