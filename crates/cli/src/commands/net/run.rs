//! The loop: steps, checkpoints, divergence, Ctrl-C.

use super::watch::Watch;
use super::write;
use crate::{Failure, Result};
use leakscope_core::num::Distribution;
use leakscope_net::{
    Data, Error, Network, Real,
    engine::evaluate,
    leak::{Measure, Plis, Trace, measure},
    tensors::Tensors,
    train::{TrainConfig, Trainer},
};
use leakscope_report::format;
use leakscope_report::net::{Point, Stopped};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The checkpoint of a run's folder.
pub(super) const CHECKPOINT: &str = "checkpoint.safetensors";
/// Where in its metadata the history stands.
const PROGRESS: &str = "progress";
/// Accuracy on training records is measured on at most so many.
const ENOUGH: usize = 10_000;

/// How long a run goes on and where it leaves things.
pub(super) struct Plan {
    pub(super) steps: u64,
    pub(super) report_every: u64,
    pub(super) checkpoint_every: u64,
    pub(super) folder: PathBuf,
    pub(super) quiet: bool,
}

/// What a checkpoint keeps beside the trainer's state.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Progress {
    history: Vec<Point>,
    /// Sum of the mean losses since the last point, and how many there were.
    losses: (f64, u64),
}

/// A checkpoint to go on from.
pub(super) struct Resumed {
    bytes: Vec<u8>,
    progress: Progress,
    /// Seed of the run.
    pub(super) seed: u64,
}

/// A run that has ended, one way or another.
pub(super) struct Ended<'d, T> {
    pub(super) run: Trainer<'d, T>,
    pub(super) history: Vec<Point>,
    pub(super) stopped: Stopped,
    /// Why it diverged.
    pub(super) failure: Option<String>,
    pub(super) seconds: f64,
}

/// Reading checkpoints.
pub(super) struct Run;

impl Run {
    /// Reads the checkpoint of a folder.
    pub(super) fn read_checkpoint(folder: &Path) -> Result<Resumed> {
        let path = folder.join(CHECKPOINT);
        let bad = |reason: String| Failure::flag("--resume", format!("{}: {reason}", path.display()));
        let bytes = std::fs::read(&path).map_err(|e| bad(format!("cannot read it: {e}")))?;
        let file = Tensors::from_bytes(&bytes).map_err(|e| bad(e.to_string()))?;
        let field = |name: &str| {
            file.metadata.get(name).ok_or_else(|| bad(format!("it has no {name}: no checkpoint")))
        };
        let config: TrainConfig = serde_json::from_str(field("config")?).map_err(|e| bad(e.to_string()))?;
        Ok(Resumed { progress: Self::progress(&file)?, bytes, seed: config.seed })
    }

    fn progress(file: &Tensors) -> Result<Progress> {
        let text = file.metadata.get(PROGRESS).map_or("{}", String::as_str);
        serde_json::from_str(text)
            .map_err(|e| Failure::flag("--resume", format!("the checkpoint has no history: {e}")))
    }
}

/// Trains until the plan is done, the user stops it, or numbers are no longer finite.
pub(super) fn train<'d, T: Real>(
    net: Network<T>,
    data: &'d Data<T>,
    test: Option<&Data<T>>,
    config: TrainConfig,
    plan: &Plan,
    resumed: Option<Resumed>,
) -> Result<Ended<'d, T>> {
    let clock = Instant::now();
    let per_epoch = data.len() as f64 / config.sampling.expected(data.len());
    let (mut run, mut progress) = match resumed {
        Some(r) => {
            let spec = net.spec().clone();
            let run = Trainer::resume(&r.bytes, data, config).map_err(|e| Failure::flag("--resume", e))?;
            if *run.network().spec() != spec {
                return Err(Failure::flag(
                    "--resume",
                    "the checkpoint is of another network: give the original one",
                ));
            }
            (run, r.progress)
        }
        None => (Trainer::new(net, data, config)?, Progress::default()),
    };
    // A checkpoint is good once a step from it has succeeded: its own update may have been the one that went too far.
    let (mut good, mut candidate) = (bytes(&run, &progress)?, None);
    if run.steps() > plan.steps {
        let message =
            format!("the checkpoint is at step {}, beyond the {} asked for", run.steps(), plan.steps);
        return Err(Failure::flag("--resume", message));
    }
    let watch = Watch::start(plan.quiet, plan.steps, "")?;
    let (mut stopped, mut failure) = (Stopped::Finished, None);
    while run.steps() < plan.steps {
        if watch.stopped() {
            stopped = Stopped::Interrupted;
            break;
        }
        match run.step() {
            Ok(report) => {
                if let Some(proven) = candidate.take() {
                    good = proven;
                }
                if let Some(loss) = report.loss {
                    progress.losses.0 += loss;
                    progress.losses.1 += 1;
                }
            }
            Err(Error::Diverged { step, what }) => {
                failure = Some(format!("training diverged at step {step}: {what} is not finite"));
                stopped = Stopped::Diverged;
                (run, progress) = (
                    Trainer::resume(&good, data, run.config().clone())?,
                    Run::progress(&Tensors::from_bytes(&good)?)?,
                );
                break;
            }
            Err(e) => return Err(e.into()),
        }
        let step = run.steps();
        if step.is_multiple_of(plan.report_every) || step == plan.steps {
            progress.history.push(point(&run, data, test, std::mem::take(&mut progress.losses), per_epoch)?);
        }
        if step.is_multiple_of(plan.checkpoint_every) && step < plan.steps {
            let state = bytes(&run, &progress)?;
            write(&plan.folder.join(CHECKPOINT), &state)?;
            candidate = Some(state);
        }
        watch.at(step, || progress.history.last().map_or_else(String::new, line));
    }
    write(&plan.folder.join(CHECKPOINT), &bytes(&run, &progress)?)?;
    let seconds = clock.elapsed().as_secs_f64();
    Ok(Ended { run, history: progress.history, stopped, failure, seconds })
}

/// A checkpoint: the trainer's, with the history beside it.
fn bytes<T: Real>(run: &Trainer<'_, T>, progress: &Progress) -> Result<Vec<u8>> {
    let mut file = Tensors::from_bytes(&run.checkpoint()?)?;
    let text =
        serde_json::to_string(progress).map_err(|e| Failure::Message(format!("the checkpoint: {e}")))?;
    file.metadata.insert(PROGRESS.to_owned(), text);
    Ok(file.to_bytes()?)
}

fn point<T: Real>(
    run: &Trainer<'_, T>,
    data: &Data<T>,
    test: Option<&Data<T>>,
    (sum, count): (f64, u64),
    per_epoch: f64,
) -> Result<Point> {
    let accuracy = match test {
        // a network that is about to diverge may have no finite loss
        Some(test) => evaluate(run.network(), test).ok().and_then(|e| e.accuracy),
        None => training_accuracy(run.network(), data),
    };
    let dfil = run.dfil();
    let mut spread = Distribution::default();
    spread.extend(&dfil);
    let spread = (!dfil.is_empty()).then(|| spread.summary());
    Ok(Point {
        step: run.steps(),
        epoch: run.steps() as f64 / per_epoch,
        loss: (count > 0).then(|| sum / count as f64),
        accuracy,
        epsilon: run.account()?.map(|a| a.epsilon()),
        dfil_median: spread.map(|s| s.p50),
        dfil_max: spread.map(|s| s.max),
    })
}

fn training_accuracy<T: Real>(net: &Network<T>, data: &Data<T>) -> Option<f64> {
    if data.len() <= ENOUGH {
        return evaluate(net, data).ok().and_then(|e| e.accuracy);
    }
    if matches!(net.loss(), leakscope_net::Loss::SquaredError) {
        return None;
    }
    let first: Vec<usize> = (0..ENOUGH).collect();
    let what =
        Measure { trace: Trace::Skip, plis: Plis::Skip, ..Measure::new(leakscope_net::Clip::None, 1.0, 0) };
    let leaks = measure(net, data, &first, &what).ok()?;
    Some(leaks.iter().filter(|l| l.right).count() as f64 / ENOUGH as f64)
}

/// Where the run stands, in one line: dFIL is the median record's, then the largest.
fn line(p: &Point) -> String {
    let dfil = p.dfil_median.zip(p.dfil_max);
    let each = [
        p.loss.map(|v| format!("loss {}", format::number(v))),
        p.accuracy.map(|v| format!("accuracy {}", format::share(v))),
        p.epsilon.map(|v| format!("ε {}", format::at_most(v))),
        dfil.map(|(median, most)| format!("dFIL {} (max {})", format::number(median), format::number(most))),
    ];
    each.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
