//! `leakscope`: how much does a trained model give away about the records it was trained on?

mod commands;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
