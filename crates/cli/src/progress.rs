//! Progress on stderr, only where a person watches, and Ctrl-C.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leakscope::{Failure, Result};
use leakscope_table::{Hooks, Progress, remove_temporary_files};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A progress display that goes away when it is dropped, and the hooks that feed it.
pub(crate) struct Display {
    bar: Option<ProgressBar>,
    quiet: bool,
    pub(crate) hooks: Hooks,
}

/// One handler for the process, however many commands it runs one after the other: the request to stop, and the folder
/// that may hold temporary files.
struct Handler {
    stop: Arc<AtomicBool>,
    /// Whether nothing is lost where the process ends in the middle of its work.
    may_end: AtomicBool,
    folder: Mutex<Option<PathBuf>>,
}

static HANDLER: OnceLock<Handler> = OnceLock::new();

/// How often the clock of the display goes on by itself.
const TICK: Duration = Duration::from_millis(500);
/// How long work that cannot be stopped inside (a matrix of thousands of columns) may go on after a request to stop.
const PATIENCE: Duration = Duration::from_secs(2);

impl Handler {
    /// Ends the process, and leaves no temporary file.
    fn end(&self) -> ! {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        folder.iter().for_each(|f| remove_temporary_files(f));
        std::process::exit(130);
    }

    /// The first request asks to stop at the next block; what does not get there soon is ended. The second does not wait.
    fn requested(&'static self) {
        if self.stop.swap(true, Ordering::Relaxed) {
            self.end();
        }
        std::thread::spawn(|| {
            std::thread::sleep(PATIENCE);
            if self.may_end.load(Ordering::Relaxed) {
                crate::note!("error: stopped; nothing was written");
                self.end();
            }
        });
    }
}

/// Listens for Ctrl-C and for requests to terminate: the first asks to stop at the next block, the second does not wait.
fn handler(folder: Option<PathBuf>) -> Result<Arc<AtomicBool>> {
    let mut first = false;
    let handler = HANDLER.get_or_init(|| {
        first = true;
        Handler { stop: Arc::default(), may_end: AtomicBool::new(false), folder: Mutex::default() }
    });
    *handler.folder.lock().unwrap_or_else(PoisonError::into_inner) = folder;
    if first {
        ctrlc::set_handler(move || handler.requested())
            .map_err(|e| Failure::Message(format!("cannot listen for Ctrl-C: {e}")))?;
    }
    Ok(Arc::clone(&handler.stop))
}

impl Display {
    /// Starts the display, if stderr is a terminal and not `quiet`, and listens for Ctrl-C; `folder` is where temporary
    /// files may be.
    pub(crate) fn start(quiet: bool, folder: Option<PathBuf>) -> Result<Self> {
        let interrupt = handler(folder)?;
        if quiet || !std::io::stderr().is_terminal() {
            return Ok(Self { bar: None, quiet, hooks: Hooks { interrupt, progress: None } });
        }
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10));
        let style = |template| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        // What has not begun says nothing of how long it takes; a step that is done is not the end, and what comes next may not
        // know its own length.
        let styles = [
            style("{prefix:>22} {bar:20} begun, {elapsed} so far  {wide_msg}"),
            style("{prefix:>22} {bar:20} {percent:>3}%  {eta} left, {elapsed} so far  {wide_msg}"),
            style("{prefix:>22} {bar:20} done; the next step is under way, {elapsed} so far  {wide_msg}"),
        ];
        bar.set_style(styles[0].clone());
        // A clock that goes on says that the work does.
        bar.enable_steady_tick(TICK);
        let shown = bar.clone();
        let last = AtomicUsize::new(0);
        let progress = move |p: Progress| {
            let now = match p.done {
                done if done >= p.total => 2,
                0 => 0,
                _ => 1,
            };
            if last.swap(now, Ordering::Relaxed) != now {
                shown.set_style(styles[now].clone());
            }
            shown.set_length(p.total.max(1));
            shown.set_position(p.done);
            shown.set_prefix(p.stage.name());
        };
        Ok(Self { bar: Some(bar), quiet, hooks: Hooks { interrupt, progress: Some(Arc::new(progress)) } })
    }

    /// For work that writes nothing of its own until this is dropped, or [`Display::settle`] is called: where it does not come to a
    /// point at which it can be stopped, it is ended.
    pub(crate) fn may_end(self) -> Self {
        set_may_end(true);
        self
    }

    /// From here on results are written: a request to stop comes too late.
    pub(crate) fn settle(&self) {
        set_may_end(false);
    }

    /// A remark on stderr, above the progress bar.
    pub(crate) fn remark(&self, text: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| crate::tell!("{text}")),
            None => crate::tell!("{text}"),
        }
    }

    /// Words beside the bar, where there is one; they are made only then.
    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text());
        }
    }

    /// The work is done: whoever watched sees the bar reach its end, and then what was found in its place.
    pub(crate) fn finish(self) {
        // A run that was stopped ends well too, and goes on another time.
        if let Some(bar) = self.bar.as_ref().filter(|_| !self.hooks.interrupted()) {
            let whole = ProgressStyle::with_template("{prefix:>22} {bar:20} 100%  done in {elapsed}");
            bar.set_style(whole.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.finish();
        }
    }

    /// Whether the user has asked to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.hooks.interrupted() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// A line above the bar, where there is one.
    pub(crate) fn line(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.println(text);
        }
    }
}

fn set_may_end(may: bool) {
    if let Some(handler) = HANDLER.get() {
        handler.may_end.store(may, Ordering::Relaxed);
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        set_may_end(false);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
