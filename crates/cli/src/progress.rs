//! Progress on stderr, only where a person watches, and Ctrl-C.

use crate::{Failure, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leakscope_table::{Hooks, Progress, Stage};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A progress display that goes away when it is dropped, and the hooks that feed it.
pub(crate) struct Display {
    bar: Option<ProgressBar>,
    pub(crate) hooks: Hooks,
}

impl Display {
    /// Starts the display, if stderr is a terminal and not `quiet`, and listens for Ctrl-C.
    pub(crate) fn start(quiet: bool) -> Result<Self> {
        let interrupt = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&interrupt);
        ctrlc::set_handler(move || {
            // The first asks to stop at the next block, the second does not wait for it.
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        })
        .map_err(|e| Failure::Message(format!("cannot listen for Ctrl-C: {e}")))?;
        if quiet || !std::io::stderr().is_terminal() {
            return Ok(Self { bar: None, hooks: Hooks { interrupt, progress: None } });
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{msg:>22} {bar:30} {percent:>3}% {human_pos} rows {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style);
        let shown = bar.clone();
        let progress = move |p: Progress| {
            let message = match p.stage {
                Stage::Index => "finding rows",
                Stage::Profile => "reading columns",
                Stage::Norm => "scaling",
                Stage::Components => "principal components",
                Stage::Encode => "encoding",
                _ => "computing",
            };
            shown.set_length(p.total.max(1));
            shown.set_position(p.done);
            shown.set_message(message);
        };
        Ok(Self { bar: Some(bar), hooks: Hooks { interrupt, progress: Some(Arc::new(progress)) } })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
