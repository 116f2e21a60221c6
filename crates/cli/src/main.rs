//! `leakscope`: how much does a trained model give away about the records it was trained on?

use std::process::ExitCode;

fn main() -> ExitCode {
    leakscope::commands::main()
}
