//! How long kernels take: with LEAKSCOPE_CUDA_TIMES set, the programme writes what each took, summed up, whenever it
//! waits for the card and a second has passed since the last time.

use super::{Gpu, Pointer, lock};
use std::{
    collections::HashMap,
    ffi::c_int,
    sync::Mutex,
    time::{Duration, Instant},
};

/// Kernels in the queue with the events around them, and what those before took.
#[derive(Debug)]
pub(super) struct Times {
    open: Vec<(String, Pointer, Pointer)>,
    spare: Vec<Pointer>,
    /// Calls and milliseconds.
    sums: HashMap<String, (u64, f64)>,
    since: Instant,
}

impl Times {
    pub(super) fn from_environment() -> Option<Mutex<Self>> {
        std::env::var_os("LEAKSCOPE_CUDA_TIMES").map(|_| {
            let (open, spare, sums) = (Vec::new(), Vec::new(), HashMap::new());
            Mutex::new(Self { open, spare, sums, since: Instant::now() })
        })
    }
}

impl Gpu {
    /// Makes a call that puts work into the queue, and measures it where somebody asks.
    pub(super) fn timed(&self, name: impl Fn() -> String, mut call: impl FnMut() -> c_int) -> c_int {
        let Some(times) = &self.times else { return call() };
        let mut times = lock(times);
        let driver = &self.api.driver;
        let mut event = || {
            times.spare.pop().unwrap_or_else(|| {
                let mut event = std::ptr::null_mut();
                // SAFETY: the pointer is that of a live handle
                let code = unsafe { (driver.event)(&raw mut event, 0) };
                self.note("making an event", code);
                Pointer(event)
            })
        };
        let (before, after) = (event(), event());
        // SAFETY: both events and the stream live as long as the programme
        let record = |event: Pointer| unsafe { (driver.record)(event.0, self.stream.0) };
        self.note("recording an event", record(before));
        let code = call();
        self.note("recording an event", record(after));
        times.open.push((name(), before, after));
        code
    }

    /// Sums up what has ended; the caller has just waited for all of it.
    pub(super) fn settle_times(&self) {
        let Some(times) = &self.times else { return };
        let mut times = lock(times);
        for (name, before, after) in std::mem::take(&mut times.open) {
            let mut took = 0.0_f32;
            // SAFETY: both events were recorded, and the stream was waited for
            let code = unsafe { (self.api.driver.elapsed)(&raw mut took, before.0, after.0) };
            self.note("reading an event", code);
            let sum = times.sums.entry(name).or_default();
            *sum = (sum.0 + 1, sum.1 + f64::from(took));
            times.spare.extend([before, after]);
        }
        if times.since.elapsed() < Duration::from_secs(1) {
            return;
        }
        times.since = Instant::now();
        let mut rows: Vec<_> = std::mem::take(&mut times.sums).into_iter().collect();
        rows.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
        for (name, (calls, ms)) in rows {
            eprintln!("{name:40} {calls:8} calls {ms:10.2} ms {:9.1} us each", 1e3 * ms / calls as f64);
        }
        eprintln!();
    }
}
