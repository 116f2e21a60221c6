//! Progress on stderr, only where a person watches, and Ctrl-C.

use crate::{Failure, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A progress bar that goes away when it is dropped, and whether the user has asked to stop.
pub(super) struct Watch {
    bar: Option<ProgressBar>,
    stop: Arc<AtomicBool>,
}

impl Watch {
    /// Starts to listen for Ctrl-C, and shows progress if stderr is a terminal and not `quiet`.
    pub(super) fn start(quiet: bool, total: u64, unit: &str) -> Result<Self> {
        // one handler for the process, however many commands it runs one after the other
        static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        let mut first = false;
        let stop = Arc::clone(STOP.get_or_init(|| {
            first = true;
            Arc::default()
        }));
        if first {
            let flag = Arc::clone(&stop);
            ctrlc::set_handler(move || {
                // The first asks to stop after the step, the second does not wait for it.
                if flag.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
            })
            .map_err(|e| Failure::Message(format!("cannot listen for Ctrl-C: {e}")))?;
        }
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
            let template = format!("{{bar:8}} {{pos}}/{{len}}{unit} {{eta}} {{wide_msg}}");
            bar.set_style(
                ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        });
        Ok(Self { bar, stop })
    }

    /// Whether the user has asked to stop.
    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Shows where things stand; `message` is only made where somebody watches.
    pub(super) fn at(&self, position: u64, message: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(message());
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
