//! Work beside the interpreter: on a thread of its own, while this one lets others run Python, listens for Ctrl-C and
//! shows progress.

use crate::failure::exception;
use leakscope::unexpected::caught;
use leakscope::{Failure, Result};
use leakscope_table::{Hooks, Progress};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often signals and progress are looked at.
const TICK: Duration = Duration::from_millis(50);

/// What happens to work that is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// It stops at its next block of rows, and is waited for.
    Wait,
    /// It looks at nothing: it is left to end by itself, and its result is dropped.
    Leave,
}

/// Runs `work`; `progress` is a callable that takes a stage, what is done and the total.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    on_interrupt: OnInterrupt,
    work: impl FnOnce(&Hooks) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let last: Arc<Mutex<Option<Progress>>> = Arc::default();
    let told = Arc::clone(&last);
    let tell = move |p: Progress| *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(p);
    let hooks = Hooks {
        interrupt: Arc::clone(&interrupt),
        progress: progress.map(|_| Arc::new(tell) as leakscope_table::OnProgress),
    };
    let (sender, receiver) = channel();
    let body = move || {
        let _ = sender.send(caught(|| work(&hooks)));
    };
    if let Err(e) = std::thread::Builder::new().name("leakscope".into()).spawn(body) {
        return Err(exception(&Failure::Message(format!("the system gives no thread: {e}"))));
    }
    let receiver = Mutex::new(receiver);
    let wait = |limit: Duration| {
        py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(limit))
    };
    loop {
        match wait(TICK) {
            Ok(result) => return result.map_err(|failure| exception(&failure)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(exception(&Failure::Message("the work ended without a result".into())));
            }
            Err(RecvTimeoutError::Timeout) => {
                let seen = py.check_signals().and_then(|()| show(progress, &last));
                if let Err(stop) = seen {
                    interrupt.store(true, Ordering::Relaxed);
                    while on_interrupt == OnInterrupt::Wait
                        && matches!(wait(TICK), Err(RecvTimeoutError::Timeout))
                    {}
                    return Err(stop);
                }
            }
        }
    }
}

fn show(progress: Option<&Bound<'_, PyAny>>, last: &Mutex<Option<Progress>>) -> PyResult<()> {
    let Some(callback) = progress else { return Ok(()) };
    let Some(p) = last.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
    callback.call1((p.stage.name(), p.done, p.total)).map(|_| ())
}
