//! `leakscope`: how much does a trained model give away about the records it was trained on?

/// A line on the standard error stream; one that nobody reads any more (a pipe into `head`) is no reason to stop.
macro_rules! note {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($line)*);
    }};
}
pub(crate) use note;

/// The same of a sentence or more, laid out where a person reads it.
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::note!("{}", $crate::terminal::laid_out(format!($($text)*), &std::io::stderr()))
    };
}
pub(crate) use tell;

mod commands;
mod progress;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
