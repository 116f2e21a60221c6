//! Who reads the table of a command that asks and waits.

use leakscope::cluster::{Shared, Working};
use leakscope::request::Request;
use leakscope::{Failure, Result};
use leakscope_table::Hooks;
use std::path::PathBuf;
use std::time::Duration;

/// Machines that help.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct MachinesArgs {
    /// Folder that other machines see too: `leakscope worker DIR` on each computes parts of the passes
    #[arg(long, value_name = "DIR")]
    machines: Option<PathBuf>,
    /// A part that a worker took and did not finish for so long is taken over, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, requires = "machines")]
    patience: f64,
}

/// Seconds that a worker may take for a part.
pub(super) fn patience(seconds: f64) -> Result<Working> {
    let patience = Duration::try_from_secs_f64(seconds)
        .map_err(|_| Failure::option("patience", format!("{seconds}: expected seconds")))?;
    Ok(Working { patience, ..Working::default() })
}

impl MachinesArgs {
    /// Asks with the table read here, or with the help of machines.
    pub(crate) fn ask<T>(
        &self,
        request: Request,
        hooks: &Hooks,
        ask: impl FnOnce(Request) -> Result<T>,
    ) -> Result<T> {
        let Some(path) = &self.machines else { return ask(request) };
        let shared = Shared::open(path, patience(self.patience)?, hooks)?;
        let request = shared.read(request)?;
        shared.finish(ask(request))
    }
}
