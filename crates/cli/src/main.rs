//! `leakscope`: how much does a trained model give away about the records it was trained on?

/// A line on the standard error stream; one that nobody reads any more (a pipe into `head`) is no reason to stop.
macro_rules! note {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}
pub(crate) use note;

mod commands;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
