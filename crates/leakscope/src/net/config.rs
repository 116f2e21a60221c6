//! The numbers of a request as the trainer takes them: sampling, clip and noise, what is kept of records, how many steps.

use super::data::Names;
use super::run::Plan;
use super::train::{self, Tracked, TrainRequest};
use crate::{Failure, Result};
use leakscope_net::{
    Clip,
    train::{Filter, Optimizer, PANEL, Privacy, Randomness, Sampling, Tracking, TrainConfig, sigma_for},
};
use std::path::PathBuf;

/// What a record may spend, for all or for each; `of_column` where a column of the table says it.
fn filter(args: &TrainRequest, of_column: Vec<f64>, records: usize) -> Result<Option<Filter>> {
    let budgets = match &args.filter_budgets {
        Some(_) if !of_column.is_empty() => of_column,
        None => {
            if !args.budgets.is_empty() && args.budgets.len() != records {
                let count = args.budgets.len();
                let message = format!("{count} budgets for {records} records: expected one for each");
                return Err(Failure::option("filter_budgets", message));
            }
            args.budgets.clone()
        }
        Some(path) => {
            let wrong =
                |message: String| Failure::option("filter_budgets", format!("{}: {message}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|e| wrong(format!("cannot read it: {e}")))?;
            let budgets = text
                .lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(i, line)| match line.trim().parse::<f64>() {
                    Ok(epsilon) if epsilon > 0.0 && epsilon.is_finite() => Ok(epsilon),
                    _ => Err(wrong(format!("line {}: `{}`: expected a positive number", i + 1, line.trim()))),
                })
                .collect::<Result<Vec<f64>>>()?;
            if budgets.len() != records {
                let count = budgets.len();
                return Err(wrong(format!("{count} budgets for {records} records: expected one for each")));
            }
            budgets
        }
    };
    match (args.run.filter_epsilon, budgets.is_empty()) {
        (None, true) => Ok(None),
        (Some(_), false) => Err(Failure::option(
            "filter_epsilon",
            "⟨filter_budgets⟩ has an ε for every record: give one of the two",
        )),
        (epsilon, _) => Ok(Some(Filter { epsilon: epsilon.unwrap_or(0.0), budgets })),
    }
}

/// How much noise was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    Sigma(f64),
    /// As much as makes the whole run cost this ε.
    Epsilon(f64),
}

/// Clipping and noise, or neither.
pub(crate) fn wanted(args: &TrainRequest) -> Result<Option<(Clip, Noise)>> {
    let noise = args.run.release.sigma()?.map(Noise::Sigma).or(args.run.epsilon.map(Noise::Epsilon));
    match (noise, args.run.release.clip()?) {
        (Some(_), Some(Clip::None)) => Err(Failure::option(
            "clip_kind",
            "none: without a clip there is no privacy; give ⟨clip⟩, or no noise",
        )),
        (Some(noise), clip) => Ok(Some((clip.unwrap_or(Clip::Hard { bound: 1.0 }), noise))),
        (None, None | Some(Clip::None)) if args.run.track.is_some() => Err(Failure::option(
            "track",
            "what records give away is only finite under noise: give ⟨sigma⟩ or ⟨epsilon⟩",
        )),
        (None, None | Some(Clip::None)) => Ok(None),
        (None, Some(_)) => {
            Err(Failure::option("clip", "give the noise too, for example ⟨sigma=1⟩ or ⟨epsilon=1⟩"))
        }
    }
}

pub(crate) fn config(
    args: &TrainRequest,
    budgets: Vec<f64>,
    wanted: Option<(Clip, Noise)>,
    steps: u64,
    records: usize,
    seed: u64,
) -> Result<TrainConfig> {
    let (n, delta) = (records as f64, args.run.delta.unwrap_or(1e-5));
    if args.batch > n && args.run.rate.is_none() {
        let own = if args.batch == TrainRequest::default().batch { " (it is the default)" } else { "" };
        let example = (records / 8).max(1);
        let message = format!("there are only {records} records{own}; say ⟨batch={example}⟩, for example");
        return Err(Failure::number("batch", args.batch, message));
    }
    let sampling = match args.sampling {
        train::Sampling::Poisson => Sampling::Poisson { rate: args.run.rate.unwrap_or(args.batch / n) },
        train::Sampling::Shuffle if args.batch.fract() != 0.0 => {
            return Err(Failure::number("batch", args.batch, "shuffled batches hold whole records"));
        }
        train::Sampling::Shuffle => Sampling::Shuffle { batch: args.batch as usize },
    };
    let privacy = match wanted {
        None => None,
        Some((clip, Noise::Sigma(sigma))) => Some(Privacy { clip, sigma }),
        Some((clip, Noise::Epsilon(epsilon))) => {
            let sigma = sigma_for(epsilon, delta, clip, sampling, steps, records)
                .map_err(|e| Failure::option("epsilon", e))?;
            Some(Privacy { clip, sigma })
        }
    };
    let probes = args.run.probes;
    Ok(TrainConfig {
        optimizer: if args.run.adam {
            Optimizer::adam()
        } else {
            Optimizer::Sgd { momentum: args.run.momentum }
        },
        learning_rate: args.run.lr,
        weight_decay: args.run.weight_decay,
        sampling,
        privacy,
        tracking: match args.run.track {
            None => Tracking::Off,
            Some(Tracked::Panel) => Tracking::Panel { records: PANEL, probes },
            Some(Tracked::Drawn) => Tracking::Drawn { probes },
            Some(Tracked::Every) => Tracking::Every { probes },
        },
        label: args.label,
        delta,
        seed,
        randomness: match args.run.not_private_noise_from_seed {
            true => Randomness::SeededNotPrivate,
            false => Randomness::System,
        },
        divisor: args.run.rate.map(|_| args.batch),
        filter: filter(args, budgets, records)?,
    })
}

pub(crate) fn plan(args: &TrainRequest, names: &Names, records: usize, folder: PathBuf) -> Plan {
    let per_epoch = args.run.rate.map_or(records as f64 / args.batch, |rate| 1.0 / rate);
    let epoch = per_epoch.round().max(1.0) as u64;
    let steps = match (args.run.steps, args.run.epochs) {
        (Some(steps), _) => steps,
        // `as` saturates
        (None, epochs) => ((epochs.unwrap_or(1.0) * per_epoch).round() as u64).max(1),
    };
    let report_every = epoch.min(steps.div_ceil(20)).max(1);
    let checkpoint_every = args.run.checkpoint_every.unwrap_or(report_every);
    Plan { steps, report_every, checkpoint_every, folder, covered: names.read_off().is_empty() }
}
