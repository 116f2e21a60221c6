//! A panic is a bug of ours: the user gets an apology and exit code 2, not a stack of frames.

use crate::{Failure, Result};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// What the last panic said and where. Libraries catch some of their own (a decoder on damaged bytes), so nothing
/// is printed before a panic has reached us.
static LAST: Mutex<Option<String>> = Mutex::new(None);

fn note(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let message =
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let place = info.location().map_or_else(String::new, |l| {
        let file = l.file().rsplit(['/', '\\']).next().unwrap_or_default();
        format!(" ({file}:{})", l.line())
    });
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{message}{place}"));
}

/// Runs `work`; a panic in it, on whatever thread of the pool, is a failure like the others.
///
/// With `RUST_BACKTRACE` set, panics are printed as usual too.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    if std::env::var_os("RUST_BACKTRACE").is_some() {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            note(info);
            usual(info);
        }));
    } else {
        std::panic::set_hook(Box::new(note));
    }
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(sorry(message.as_deref().unwrap_or("no message")))
    })
}

fn sorry(message: &str) -> Failure {
    Failure::Message(format!(
        "Leakscope itself failed, which it never should: {message}. We are sorry. Earlier results are as they were. \
         Please report this line with the command that you ran"
    ))
}

/// As the command line does it, for a guest in somebody else's process: what happens on a panic is left alone.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        Err(sorry(
            text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message"),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_that_says_sorry() {
        let failed = guarded(|| -> Result<()> { panic!("index out of range") }).unwrap_err();
        let text = failed.to_string();
        assert!(text.contains("index out of range (unexpected.rs:"), "{text}");
        assert_eq!(failed.exit_code(), 2);
        let in_pool = guarded(|| -> Result<()> {
            use rayon::prelude::*;
            (0..100).into_par_iter().for_each(|i| assert!(i < 99, "on another thread"));
            Ok(())
        });
        assert!(in_pool.unwrap_err().to_string().contains("on another thread"));
        assert_eq!(guarded(|| Ok(7)).unwrap(), 7);
    }

    #[test]
    fn a_guest_apologises_without_touching_the_hook() {
        let failed = caught(|| -> Result<()> { panic!("no row {}", 3) }).unwrap_err().to_string();
        assert!(failed.contains("never should: no row 3.") && failed.contains("We are sorry"), "{failed}");
        assert_eq!(caught(|| Ok(7)).unwrap(), 7);
    }
}
