//! Records that do not stay on a card: copied there in pieces, through pinned memory of the host and a stream of their own, while
//! the card computes on the pieces before. Two pieces are under way at a time. Results come back by the same stream where later
//! work need not be waited for ([`Mark`]).

use super::{Gpu, Memory, Pointer, driver::Address, lock};
use std::{
    ffi::{c_int, c_void},
    sync::{
        Mutex, MutexGuard, TryLockError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Room for two pieces, on the host and on the card.
#[derive(Debug)]
pub(crate) struct Staging {
    slots: [Mutex<Slot>; 2],
    turn: AtomicUsize,
    gpu: &'static Gpu,
}

/// Room for one piece. What is copied into it is copied on, inside the card, before layers see it: they keep their inputs for as
/// long as they like.
#[derive(Debug)]
struct Slot {
    host: Pointer,
    far: Address,
    capacity: usize,
    /// The copy to the card is done, so that the host's side may be written again.
    copied: Pointer,
    /// The copy inside the card is done, so that the card's side may be written again.
    taken: Pointer,
    /// The records that are in it and that nobody has taken.
    holds: Option<Vec<usize>>,
}

/// A point in the queue: what was put there before it can be downloaded while the card goes on with what came after.
pub(crate) struct Mark {
    event: Pointer,
    gpu: &'static Gpu,
}

impl std::fmt::Debug for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a point in the queue of {:?}", self.gpu)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.gpu.enter();
        // SAFETY: nobody else has the event; the driver keeps it until what waits for it has
        unsafe { (self.gpu.api.driver.drop_event)(self.event.0) };
    }
}

/// A code of the driver: 0 is success.
type Code = c_int;

impl Gpu {
    /// An event without times.
    fn event(&self) -> Option<Pointer> {
        self.enter();
        let mut event = std::ptr::null_mut();
        // 2: no times
        // SAFETY: the pointer is that of a live handle
        let code = unsafe { (self.api.driver.event)(&raw mut event, 2) };
        (code == 0).then_some(Pointer(event))
    }

    /// Marks what is in the queue by now; absent where the driver has no event or no second stream to give.
    pub(crate) fn mark(&'static self) -> Option<Mark> {
        if self.failed() || self.is_capturing() {
            return None;
        }
        self.copies()?;
        let mark = Mark { event: self.event()?, gpu: self };
        // SAFETY: event and stream are live
        success(unsafe { (self.api.driver.record)(mark.event.0, self.stream.0) })?;
        Some(mark)
    }

    /// The stream on which a download waits for a mark alone; the one of all work without a mark.
    pub(super) fn downloads(&self, mark: Option<&Mark>) -> Pointer {
        let Some((mark, copies)) = mark.zip(self.copies()) else { return self.stream };
        // SAFETY: event and stream are live
        let code = unsafe { (self.api.driver.stream_after)(copies.0, mark.event.0, 0) };
        self.note("waiting for results", code);
        copies
    }

    /// Room for pieces that are copied ahead; absent where the driver has no pinned memory or no second stream to give.
    pub(crate) fn staging(&'static self) -> Option<Staging> {
        let slot = || {
            let (copied, taken) = (self.event()?, self.event()?);
            let host = Pointer(std::ptr::null_mut());
            Some(Mutex::new(Slot { host, far: 0, capacity: 0, copied, taken, holds: None }))
        };
        self.copies()?;
        Some(Staging { slots: [slot()?, slot()?], turn: AtomicUsize::new(0), gpu: self })
    }

    /// The stream of copies, made when it is first needed.
    fn copies(&self) -> Option<Pointer> {
        let mut copies = lock(&self.copies);
        if copies.is_none() {
            let mut stream = std::ptr::null_mut();
            // 1: it waits for no other stream
            // SAFETY: the pointer is that of a live handle
            let code = unsafe { (self.api.driver.stream)(&raw mut stream, 1) };
            *copies = (code == 0).then_some(Pointer(stream));
        }
        *copies
    }
}

impl Staging {
    pub(crate) fn is_on(&self, gpu: &Gpu) -> bool {
        self.gpu.ordinal == gpu.ordinal
    }

    /// Copies a piece to the card for whoever asks for it next, if there is room: `fill` writes its values.
    pub(crate) fn ahead<V: Copy>(&self, records: &[usize], len: usize, fill: impl FnOnce(&mut [V])) {
        for slot in &self.slots {
            let Ok(mut slot) = slot.try_lock() else { continue };
            if slot.holds.is_none() {
                if self.start(&mut slot, len, fill).is_some() {
                    slot.holds = Some(records.to_vec());
                }
                return;
            }
        }
    }

    /// The values of a piece on the card, copied ahead or now; absent where there is no pinned memory for them.
    pub(crate) fn take<V: Copy>(
        &self,
        records: &[usize],
        len: usize,
        fill: impl FnOnce(&mut [V]),
    ) -> Option<Memory> {
        if let Some(mut slot) = self.find(records) {
            slot.holds = None;
            return self.finish::<V>(&slot, len);
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        let mut slot = lock(&self.slots[turn]);
        slot.holds = None;
        self.start(&mut slot, len, fill)?;
        self.finish::<V>(&slot, len)
    }

    /// The slot that holds these records; one that is being filled is waited for last.
    fn find(&self, records: &[usize]) -> Option<MutexGuard<'_, Slot>> {
        let mut busy = Vec::new();
        for slot in &self.slots {
            match slot.try_lock() {
                Ok(slot) if slot.holds.as_deref() == Some(records) => return Some(slot),
                Ok(_) | Err(TryLockError::Poisoned(_)) => {}
                Err(TryLockError::WouldBlock) => busy.push(slot),
            }
        }
        busy.into_iter().map(lock).find(|slot| slot.holds.as_deref() == Some(records))
    }

    /// Fills the host's side and queues the copy to the card.
    fn start<V: Copy>(&self, slot: &mut Slot, len: usize, fill: impl FnOnce(&mut [V])) -> Option<()> {
        let (gpu, bytes) = (self.gpu, len * size_of::<V>());
        if gpu.failed() {
            return None;
        }
        gpu.enter();
        let driver = &gpu.api.driver;
        // SAFETY: events and streams live as long as the slot and the programme
        let wait = |event: Pointer| unsafe { (driver.reached)(event.0) };
        success(wait(slot.copied))?;
        if bytes > slot.capacity {
            success(wait(slot.taken))?;
            self.grow(slot, bytes)?;
        }
        let copies = gpu.copies()?;
        // SAFETY: the host's side has room for so many values, of which any bits are one, and nobody else has it: its copy was
        // just waited for. The card's side is written when the copy out of it is done, which the stream of copies waits for.
        unsafe {
            fill(std::slice::from_raw_parts_mut(slot.host.0.cast::<V>(), len));
            success((driver.stream_after)(copies.0, slot.taken.0, 0))?;
            success((driver.upload)(slot.far, slot.host.0, bytes, copies.0))?;
            success((driver.record)(slot.copied.0, copies.0))
        }
    }

    /// Queues the copy inside the card, behind the one to it.
    fn finish<V: Copy>(&self, slot: &Slot, len: usize) -> Option<Memory> {
        let (gpu, driver) = (self.gpu, &self.gpu.api.driver);
        gpu.enter();
        let memory = gpu.take::<V>(len);
        // SAFETY: as above
        gpu.note("waiting for a copy", unsafe { (driver.stream_after)(gpu.stream.0, slot.copied.0, 0) });
        gpu.copy(slot.far, len * size_of::<V>(), &memory);
        // SAFETY: as above
        gpu.note("recording an event", unsafe { (driver.record)(slot.taken.0, gpu.stream.0) });
        Some(memory)
    }

    /// More room, for whole values of any kind.
    fn grow(&self, slot: &mut Slot, bytes: usize) -> Option<()> {
        let driver = &self.gpu.api.driver;
        self.release(slot);
        let (mut host, mut far) = (std::ptr::null_mut(), 0);
        // SAFETY: pointers are those of live values
        unsafe {
            success((driver.pinned)(&raw mut host, bytes, 0))?;
            if (driver.alloc)(&raw mut far, bytes) != 0 {
                (driver.free_pinned)(host);
                return None;
            }
        }
        (slot.host, slot.far, slot.capacity) = (Pointer(host), far, bytes);
        Some(())
    }

    /// Gives the room of a slot back; all copies through it were waited for.
    fn release(&self, slot: &mut Slot) {
        if slot.capacity > 0 {
            // SAFETY: both were allocated together, and nobody holds them
            unsafe {
                (self.gpu.api.driver.free_pinned)(slot.host.0.cast::<c_void>());
                (self.gpu.api.driver.free)(slot.far);
            }
            slot.capacity = 0;
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.gpu.enter();
        for i in 0..self.slots.len() {
            let mut slot = lock(&self.slots[i]);
            // SAFETY: the events live until here
            unsafe {
                (self.gpu.api.driver.reached)(slot.copied.0);
                (self.gpu.api.driver.reached)(slot.taken.0);
            }
            self.release(&mut slot);
            // SAFETY: nobody uses them any more
            unsafe {
                (self.gpu.api.driver.drop_event)(slot.copied.0);
                (self.gpu.api.driver.drop_event)(slot.taken.0);
            }
        }
    }
}

fn success(code: Code) -> Option<()> {
    (code == 0).then_some(())
}
