//! `leakscope net`: private training of networks, and what their gradients give away.
//!
//! | module | what |
//! |---|---|
//! | `train` | `net train`: arguments, what follows from them |
//! | `run` | the loop: steps, checkpoints, divergence, Ctrl-C |
//! | `resume` | going on from a checkpoint, as the run was started |
//! | `account` | a run that has ended → `training.json`, `records.*`, its page |
//! | `demo` | `net demo`: both on a synthetic regression |
//! | `audit` | `net audit`: arguments, what is measured |
//! | `measuring` | the measures of an audit, over records, another model, points |
//! | `memory` | `net audit` over arrays, for other languages |
//! | `elements` | means of every value of a record |
//! | `exceeds` | how often points exceed training records, with its interval |
//! | `assemble` | measures → `audit.json`, pictures |
//! | `data` | images and labels from files, checked once; formats are `leakscope_net::io` |
//! | `model` | networks by name or file, models in folders |
//! | `watch` | progress and Ctrl-C |

mod account;
mod assemble;
mod audit;
mod data;
pub(crate) mod demo;
mod elements;
mod exceeds;
mod measuring;
pub(crate) mod memory;
mod model;
mod resume;
mod run;
mod train;
mod watch;

use crate::commands::audit::FormatArg;
use crate::{Failure, Result};
use clap::ValueEnum;
use leakscope_net::Clip;
use leakscope_table::RecordsFormat;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Train networks in private, and measure what their gradients give away.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug, Clone)]
enum Command {
    /// Train a network (DP-SGD with --sigma), keeping what every record gives away (--track)
    Train(Box<train::Args>),
    /// Measure what a gradient step of a trained network gives away about every record
    Audit(Box<audit::Args>),
    /// A private regression on synthetic records: which of their values it gives away
    Demo(demo::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Train(args) => train::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Demo(args) => demo::run(args),
    }
}

/// The numbers that a network computes with.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    /// Single precision
    F32,
    /// Double precision: twice the memory and the time
    F64,
}

/// How gradients are clipped, and the noise.
#[derive(clap::Args, Debug, Clone)]
struct ReleaseArgs {
    /// Clip gradients at this norm, C [default: 1 in training where there is noise; in an audit that of the run]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    clip: Option<f64>,
    /// How they are clipped [default: hard where there is a --clip]
    #[arg(long, value_enum, value_name = "KIND")]
    clip_kind: Option<ClipKind>,
    /// Noise multiplier: the noise on the sum of gradients has standard deviation σC (σ where nothing is clipped)
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    sigma: Option<f64>,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum ClipKind {
    /// At most C
    Hard,
    /// Smoothly, at most 1.12 C
    Gelu,
    /// Not at all
    None,
}

impl ReleaseArgs {
    /// The clip that was asked for; absent where nothing was said.
    fn clip(&self) -> Result<Option<Clip>> {
        let clip = match (self.clip_kind, self.clip) {
            (None, None) => return Ok(None),
            (Some(ClipKind::None), None) => Clip::None,
            (Some(ClipKind::None), Some(c)) => {
                return Err(Failure::flag(
                    "--clip",
                    format!("{c}: --clip-kind none clips nothing, leave one out"),
                ));
            }
            (Some(_), None) => {
                return Err(Failure::flag("--clip-kind", "give the bound too, for example --clip 1"));
            }
            (Some(ClipKind::Hard) | None, Some(bound)) => Clip::Hard { bound },
            (Some(ClipKind::Gelu), Some(bound)) => Clip::Gelu { bound },
        };
        clip.check().map_err(|e| Failure::flag("--clip", e))?;
        Ok(Some(clip))
    }

    fn sigma(&self) -> Result<Option<f64>> {
        match self.sigma {
            Some(s) if !(s > 0.0 && s.is_finite()) => {
                Err(Failure::flag("--sigma", format!("{s}: expected a positive number")))
            }
            other => Ok(other),
        }
    }
}

/// The name of a clip and its bound.
fn clip_facts(clip: Clip) -> (&'static str, Option<f64>) {
    match clip {
        Clip::None => ("none", None),
        Clip::Hard { bound } => ("hard", Some(bound)),
        Clip::Gelu { bound } => ("gelu", Some(bound)),
    }
}

impl From<leakscope_net::Error> for Failure {
    fn from(error: leakscope_net::Error) -> Self {
        match error {
            leakscope_net::Error::Core(core) => core.into(),
            other => Self::Message(other.to_string()),
        }
    }
}

/// Sets the number of threads.
fn use_threads(threads: Option<usize>) -> Result<()> {
    match threads {
        None => Ok(()),
        Some(0) => Err(Failure::flag("--threads", "0: expected at least 1")),
        Some(n) => rayon::ThreadPoolBuilder::new()
            .num_threads(n)
            .build_global()
            .map_err(|e| Failure::flag("--threads", e)),
    }
}

/// A seed from the system; 53 bits survive a trip through JSON readers that know doubles alone.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish() >> 11
}

/// `MEAN,SD`.
fn normalize(text: Option<&str>) -> Result<Option<[f64; 2]>> {
    let Some(text) = text else { return Ok(None) };
    let parts: Vec<Option<f64>> = text.split(',').map(|p| p.trim().parse().ok()).collect();
    match parts[..] {
        [Some(mean), Some(sd)] if f64::is_finite(mean) && f64::is_finite(sd) && sd > 0.0 => {
            Ok(Some([mean, sd]))
        }
        _ => Err(Failure::flag("--normalize", format!("`{text}`: expected MEAN,SD such as 0.1307,0.3081"))),
    }
}

/// Writes a file whole or not at all, readable by its owner alone.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    leakscope_net::io::write_private(path, bytes)
        .map_err(|e| Failure::Message(format!("cannot write {}: {e}", path.display())))
}

/// Text to stdout; whoever reads may stop early (`| head`), which is no failure.
fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn records_format(format: FormatArg) -> RecordsFormat {
    match format {
        FormatArg::Parquet => RecordsFormat::Parquet,
        FormatArg::Csv => RecordsFormat::Csv,
    }
}
