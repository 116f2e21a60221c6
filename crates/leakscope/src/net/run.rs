//! The loop: steps, checkpoints, divergence, Ctrl-C.

use super::resume::{Exact, Progress, Resumed, Start};
use super::train::Listener;
use super::write;
use crate::{Failure, Result};
use leakscope_core::num::Distribution;
use leakscope_net::{
    Data, Error, Loss, Network, Real, Shape,
    engine::evaluate,
    io::Tensors,
    perturb::Perturbing,
    train::{TrainConfig, Trainer},
};
use leakscope_report::net::{Point, Stopped};
use leakscope_table::Stage;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The checkpoint of a run's folder, in the part that must not leave the house: it holds the key of the noise.
pub(crate) const CHECKPOINT: &str = "private/checkpoint.safetensors";
/// The folder, inside that of a run, of what only the owner may see.
pub(crate) const PRIVATE: &str = "private";
/// Accuracy on training records is measured on at most so many.
const ENOUGH: usize = 10_000;

/// How long a run goes on and where it leaves things.
pub struct Plan {
    /// Steps in all.
    pub steps: u64,
    /// A point of the history after every so many.
    pub report_every: u64,
    /// A checkpoint after every so many.
    pub checkpoint_every: u64,
    /// Where things are left.
    pub folder: PathBuf,
    /// Whether all that the network is fed was given or is a record's own, so that ε of the steps is ε of the run.
    pub covered: bool,
}

/// How gradients are perturbed and by which public records, where they are.
type PerturbedBy<'d, T> = Option<(Perturbing, &'d Data<T>)>;

/// A run that has ended, one way or another.
pub(crate) struct Ended<'d, T> {
    pub(crate) run: Trainer<'d, T>,
    pub(crate) start: Start,
    pub(crate) history: Vec<Point>,
    pub(crate) stopped: Stopped,
    /// Why it diverged.
    pub(crate) failure: Option<String>,
    pub(crate) exact: Exact,
    pub(crate) seconds: f64,
}

impl<T: Real> Ended<'_, T> {
    /// Why it diverged, and what to do; absent where it did not.
    pub(crate) fn diverged(&self, folder: &Path) -> Option<String> {
        (self.stopped == Stopped::Diverged).then(|| {
            let why = self.failure.as_deref().unwrap_or_default();
            let (at, kept) = (self.run.steps(), folder.display());
            let noise = self.run.config().privacy.is_some();
            let advice = if noise { "lower ⟨lr⟩" } else { "lower ⟨lr⟩, or clip gradients" };
            format!("{why}; the last good checkpoint and model, of step {at}, are in {kept}: {advice}")
        })
    }
}

/// Trains until the plan is done, the user stops it, or the run diverges. What is resumed has been checked.
pub(crate) fn train<'d, T: Real>(
    net: Network<T>,
    data: &'d Data<T>,
    (test, perturbing): (Option<&Data<T>>, PerturbedBy<'d, T>),
    config: TrainConfig,
    plan: &Plan,
    (start, resumed): (Start, Option<Resumed>),
    listener: &Listener<'_>,
) -> Result<Ended<'d, T>> {
    let clock = Instant::now();
    make_private(&plan.folder.join(PRIVATE))?;
    let watched = match (test, is_text(data)) {
        // a pass over the texts would cost about as much as training on them
        (None, true) => None,
        (Some(_), _) | (None, false) => Some(watched(data, test)?),
    };
    let per_epoch = data.units() as f64 / config.sampling.expected(data.units());
    let (mut run, mut progress) = begun(net, data, perturbing, config, (start, resumed))?;
    // A checkpoint is good once a step from it has succeeded: its own update may have been the one that went too far.
    let (mut good, mut candidate) = (bytes(&run, &progress)?, None);
    if run.steps() > plan.steps {
        let message =
            format!("the checkpoint is at step {}, beyond the {} asked for", run.steps(), plan.steps);
        return Err(Failure::option("resume", message));
    }
    let (mut stopped, mut failure) = (Stopped::Finished, None);
    while run.steps() < plan.steps {
        if listener.hooks.interrupted() {
            stopped = Stopped::Interrupted;
            break;
        }
        match run.step() {
            Ok(report) => {
                progress.exact.add(&report);
                // In the open an empty batch proves nothing. Under noise, whether it is empty must not decide what is kept.
                if (report.loss.is_some() || run.config().privacy.is_some())
                    && let Some(proven) = candidate.take()
                {
                    good = proven;
                }
                if let Some(loss) = report.loss {
                    progress.losses.0 += loss;
                    progress.losses.1 += 1;
                }
            }
            Err(Error::Diverged { step, symptom }) => {
                failure = Some(format!("training diverged at step {step}: {symptom}"));
                stopped = Stopped::Diverged;
                run = taken_back(&run, &good, data, perturbing)?;
                let exact = progress.exact;
                progress = Progress::read(&Tensors::from_bytes(&good)?).map_err(Failure::Message)?;
                progress.exact = exact;
                break;
            }
            Err(e) => return Err(e.into()),
        }
        let step = run.steps();
        if step.is_multiple_of(plan.report_every) || step == plan.steps {
            let point = point(
                &run,
                watched.as_deref(),
                std::mem::take(&mut progress.losses),
                (per_epoch, plan.covered),
            )?;
            (listener.on_point)(&point);
            progress.history.push(point);
        }
        if step.is_multiple_of(plan.checkpoint_every) && step < plan.steps {
            let state = bytes(&run, &progress)?;
            write(&plan.folder.join(CHECKPOINT), &state)?;
            candidate = Some(state);
        }
        listener.hooks.report(Stage::Steps, step, plan.steps);
    }
    write(&plan.folder.join(CHECKPOINT), &bytes(&run, &progress)?)?;
    let seconds = clock.elapsed().as_secs_f64();
    let Progress { start, history, exact, .. } = progress;
    Ok(Ended { run, start, history, stopped, failure, exact, seconds })
}

/// The run at its first step, or where its checkpoint left it.
fn begun<'d, T: Real>(
    net: Network<T>,
    data: &'d Data<T>,
    perturbing: PerturbedBy<'d, T>,
    config: TrainConfig,
    (start, resumed): (Start, Option<Resumed>),
) -> Result<(Trainer<'d, T>, Progress)> {
    let (mut run, progress) = match resumed {
        Some(r) => {
            let run = Trainer::resume(&r.bytes, data, config).map_err(|e| Failure::option("resume", e))?;
            (run.on(net.backend())?, r.progress)
        }
        None => (Trainer::new(net, data, config)?, Progress::new(start)),
    };
    if let Some((how, public)) = perturbing {
        run.perturb(how, public).map_err(|e| Failure::option("perturb", e))?;
    }
    if run.lacks_perturbation() {
        let message = "the run perturbs gradients: give ⟨perturb⟩ and ⟨public⟩ as it was started with";
        return Err(Failure::option("perturb", message));
    }
    Ok((run, progress))
}

/// A run that diverged, at its last good checkpoint.
fn taken_back<'d, T: Real>(
    run: &Trainer<'d, T>,
    good: &[u8],
    data: &'d Data<T>,
    perturbing: PerturbedBy<'d, T>,
) -> Result<Trainer<'d, T>> {
    let mut back = Trainer::resume(good, data, run.config().clone())?.on(run.network().backend())?;
    if let Some((how, public)) = perturbing {
        back.perturb(how, public)?;
    }
    // the noisy steps that are taken back were seen: they are what decided it
    back.count_seen(run.released_steps());
    Ok(back)
}

/// Whether records are texts.
fn is_text<T: Real>(data: &Data<T>) -> bool {
    matches!(data.input(), Shape::Tokens { .. })
}

/// Makes the folder of what only the owner may see.
pub(crate) fn make_private(folder: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|e| Failure::Message(format!("cannot make {}: {e}", folder.display())))
}

/// A checkpoint: the trainer's, with the history beside it.
fn bytes<T: Real>(run: &Trainer<'_, T>, progress: &Progress) -> Result<Vec<u8>> {
    Ok(run.checkpoint_with(&[progress.entry()?])?)
}

pub(crate) fn point<T: Real>(
    run: &Trainer<'_, T>,
    watched: Option<&Data<T>>,
    (sum, count): (f64, u64),
    (per_epoch, covered): (f64, bool),
) -> Result<Point> {
    // a network that is about to diverge may have no finite loss
    let evaluation = watched.and_then(|watched| evaluate(run.network(), watched).ok());
    let several = run.network().loss() == Loss::BinaryCrossEntropy && run.network().outputs() > 1;
    let dfil = run.dfil()?;
    let mut spread = Distribution::default();
    spread.extend(&dfil);
    let spread = (!dfil.is_empty()).then(|| spread.summary());
    Ok(Point {
        step: run.steps(),
        epoch: run.steps() as f64 / per_epoch,
        // a page of numbers that are not finite is refused, and that would tell
        loss: (count > 0).then(|| sum / count as f64).filter(|l| l.is_finite()),
        // no text is right in all its tokens
        accuracy: evaluation.and_then(|e| e.accuracy).filter(|_| !watched.is_some_and(is_text)),
        label_accuracy: evaluation.and_then(|e| e.label_accuracy).filter(|_| several),
        watched_loss: evaluation.map(|e| e.loss).filter(|l| l.is_finite()),
        epsilon: epsilon(run, covered)?,
        dfil_median: spread.map(|s| s.p50),
        dfil_p90: spread.map(|s| s.p90),
    })
}

/// ε of the run so far; absent where nothing is promised.
pub(crate) fn epsilon<T: Real>(run: &Trainer<'_, T>, covered: bool) -> Result<Option<f64>> {
    Ok(run.account()?.filter(|_| covered).map(|a| a.epsilon()))
}

/// What accuracy is measured on.
pub(crate) fn watched<'a, T: Real>(data: &'a Data<T>, test: Option<&'a Data<T>>) -> Result<Cow<'a, Data<T>>> {
    test.map_or_else(|| first(data), |test| Ok(Cow::Borrowed(test)))
}

/// What accuracy is measured on without test records: the training records, or the first of them.
pub(crate) fn first<T: Real>(data: &Data<T>) -> Result<Cow<'_, Data<T>>> {
    if data.len() <= ENOUGH {
        return Ok(Cow::Borrowed(data));
    }
    Ok(Cow::Owned(data.subset(&(0..ENOUGH).collect::<Vec<_>>())?))
}
