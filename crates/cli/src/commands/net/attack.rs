//! `leakscope net attack`: what attackers get out of the gradients and the runs of a network.

use super::{OverArgs, ReleaseArgs, normalize};
use crate::progress::Display;
use leakscope::net::attack::informed::{self, InformedRequest};
use leakscope::net::attack::inversion::{self, InversionRequest, Labels, Objective};
use leakscope::net::attack::membership::{self, MembershipRequest};
use leakscope::{Failure, Result};
use leakscope_report::net::{informed_summary, inversion_summary, membership_summary, to_json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Which attack.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Reconstruct records from their gradients
    Inversion,
    /// Learn the last record from the parameters of models trained on it and on known ones (needs no --model)
    Informed,
    /// Tell who was among the training records, and bound ε of the run from below
    Membership,
}

/// Attack a network: what its gradients, its parameters and its run give away.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// Which attack
    #[arg(long, value_enum)]
    method: Method,
    /// A folder that `net train` left: network.json, model.safetensors and, where there is one, training.json
    #[arg(long, value_name = "DIR", required_if_eq_any = [("method", "inversion"), ("method", "membership")])]
    model: Option<PathBuf>,
    /// The records that are attacked: a folder, two idx files (images, labels), or a safetensors file with x and y; where
    /// the model was trained on a table, its files
    #[arg(long, num_args = 1.., value_name = "PATH")]
    data: Vec<PathBuf>,
    /// Use only the first records of --data
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How many records to attack, drawn by the seed [default: 50 for inversion, all for membership]
    #[arg(long, value_name = "N")]
    records: Option<usize>,
    /// Membership: records that were not trained on [default: the test records beside --data]
    #[arg(long, num_args = 1.., value_name = "PATH")]
    test: Vec<PathBuf>,
    /// Membership: shadow models of the likelihood ratio, an even number; 0 for none
    #[arg(long, value_name = "N", default_value_t = 16)]
    shadows: usize,
    /// Membership: train once more with so many canaries, each in or out by a fair coin, to bound ε from below
    #[arg(long, value_name = "N", default_value_t = 0)]
    canaries: usize,
    /// Membership: confidence of that bound
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    confidence: f64,
    /// Attack this gradient instead: a safetensors file with the names of the network's tensors
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "after"])]
    gradient: Option<PathBuf>,
    /// Attack the difference to the weights in this folder instead: the same network after local steps
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    after: Option<PathBuf>,
    /// Informed: the models that are trained, a preset (linear, mlp, mlp-attack) or a network file: a chain of dense layers
    /// [default: linear]
    #[arg(long, value_name = "NAME|FILE")]
    network: Option<String>,
    /// Informed: use only records of these classes [default: all]
    #[arg(long, value_name = "C,…", value_delimiter = ',')]
    classes: Vec<u32>,
    /// Informed: records that the adversary knows, the first ones [default: 1000]
    #[arg(long, value_name = "N")]
    known: Option<usize>,
    /// Informed: targets to learn from, one model each, the next ones [default: 9500]
    #[arg(long, value_name = "N")]
    learn: Option<usize>,
    /// Informed: targets to attack, one model each, the next ones [default: 500]
    #[arg(long, value_name = "N")]
    targets: Option<usize>,
    /// Informed: steps of every model, full batches [default: 5]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Informed: weight decay of every model
    #[arg(long, value_name = "W", default_value_t = 0.0, allow_negative_numbers = true)]
    weight_decay: f64,
    /// Informed: train models by plain gradient descent, not Adam
    #[arg(long)]
    sgd: bool,
    /// Informed: share of the parameters that are trained, the largest at the start [default: 1]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    density: Option<f64>,
    /// Informed: δ of the statement [default: 1e-9]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Informed: passes of the adversary's network over the models; 0 for no network [default: 100]
    #[arg(long, value_name = "N")]
    epochs: Option<u64>,
    /// Informed: its learning rate [default: 1e-3]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    attack_lr: Option<f64>,
    /// Informed: its weight decay [default: 0.01]
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    attack_decay: Option<f64>,
    /// Records in one gradient
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Show the attacker the weights before and after so many steps of gradient descent on each batch, not a gradient
    #[arg(long, value_name = "N")]
    local_steps: Option<u64>,
    /// Learning rate of --local-steps
    #[arg(
        long,
        value_name = "R",
        default_value_t = 0.1,
        requires = "local_steps",
        allow_negative_numbers = true
    )]
    local_lr: f64,
    #[command(flatten)]
    release: ReleaseArgs,
    /// Noise multipliers to attack at, 0 for none [default: none, and that of the run]
    #[arg(long, value_name = "S,…", value_delimiter = ',', allow_negative_numbers = true)]
    sigmas: Vec<f64>,
    /// What the attack makes small
    #[arg(long, value_enum, default_value_t = Objective::Cosine)]
    objective: Objective,
    /// What the attacker knows of labels
    #[arg(long, value_enum, default_value_t = Labels::Known)]
    labels: Labels,
    /// Steps of the attack (published: 4,000)
    #[arg(long, value_name = "N", default_value_t = 1000)]
    iterations: usize,
    /// Starts; the guess that fits best is kept
    #[arg(long, value_name = "N", default_value_t = 1)]
    restarts: usize,
    /// Length of the attack's first steps, in widths of the range of values
    #[arg(long, value_name = "R", default_value_t = 0.1, allow_negative_numbers = true)]
    lr: f64,
    /// Weight of the total variation [default: 1e-4 for the cosine, as published; 1 for the likelihood]
    #[arg(long, value_name = "W", allow_negative_numbers = true)]
    total_variation: Option<f64>,
    /// Least and largest value of a record [default: those of --data, else 0,1]
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    range: Option<String>,
    /// Measure LPIPS too, with these weights: a safetensors file with the convolutions of torchvision's alexnet
    /// (features.0.weight …) and the linear layers of lpips (lin0.model.1.weight …)
    #[arg(long, value_name = "FILE")]
    lpips: Option<PathBuf>,
    #[command(flatten)]
    over: OverArgs,
}

/// `LOW,HIGH`.
fn range(text: Option<&str>) -> Result<Option<[f64; 2]>> {
    let Some(text) = text else { return Ok(None) };
    let parts: Vec<Option<f64>> = text.split(',').map(|p| p.trim().parse().ok()).collect();
    match parts[..] {
        [Some(low), Some(high)] => Ok(Some([low, high])),
        _ => Err(Failure::option("range", format!("`{text}`: expected LOW,HIGH such as 0,1"))),
    }
}

impl Args {
    fn membership(&self) -> Result<MembershipRequest> {
        Ok(MembershipRequest {
            model: self.model.clone().unwrap_or_default(),
            data: self.data.clone(),
            test: self.test.clone(),
            limit: self.limit,
            records: self.records,
            shadows: self.shadows,
            canaries: self.canaries,
            confidence: self.confidence,
            normalize: normalize(self.over.normalize.as_deref())?,
            seed: self.over.seed,
            format: self.over.format,
            precision: self.over.precision,
            device: self.over.device,
            redact: self.over.redact.redact,
        })
    }

    fn informed(&self) -> Result<InformedRequest> {
        let usual = InformedRequest::default();
        Ok(InformedRequest {
            data: self.data.clone(),
            limit: self.limit,
            network: self.network.clone().unwrap_or(usual.network),
            classes: self.classes.clone(),
            known: self.known.unwrap_or(usual.known),
            learn: self.learn.unwrap_or(usual.learn),
            targets: self.targets.unwrap_or(usual.targets),
            steps: self.steps.unwrap_or(usual.steps),
            lr: self.lr,
            weight_decay: self.weight_decay,
            sgd: self.sgd,
            release: self.release.request(),
            density: self.density.unwrap_or(usual.density),
            delta: self.delta.unwrap_or(usual.delta),
            epochs: self.epochs.unwrap_or(usual.epochs),
            attack_lr: self.attack_lr.unwrap_or(usual.attack_lr),
            attack_decay: self.attack_decay.unwrap_or(usual.attack_decay),
            normalize: normalize(self.over.normalize.as_deref())?,
            lpips: self.lpips.clone(),
            pictures: !self.over.no_pictures,
            seed: self.over.seed,
            redact: self.over.redact.redact,
        })
    }

    /// Refuses options of one method in another.
    fn check(&self) -> Result<()> {
        use Method::{Informed, Inversion, Membership};
        let owned: [(&str, bool, &[Method]); 22] = [
            ("model", self.model.is_some(), &[Inversion, Membership]),
            ("gradient", self.gradient.is_some(), &[Inversion]),
            ("after", self.after.is_some(), &[Inversion]),
            ("local_steps", self.local_steps.is_some(), &[Inversion]),
            ("sigmas", !self.sigmas.is_empty(), &[Inversion]),
            ("total_variation", self.total_variation.is_some(), &[Inversion]),
            ("range", self.range.is_some(), &[Inversion]),
            ("sigma", self.release.sigma.is_some(), &[Inversion, Informed]),
            ("clip", self.release.clip.is_some(), &[Inversion, Informed]),
            ("records", self.records.is_some(), &[Inversion, Membership]),
            ("test", !self.test.is_empty(), &[Membership]),
            ("canaries", self.canaries > 0, &[Membership]),
            ("network", self.network.is_some(), &[Informed]),
            ("classes", !self.classes.is_empty(), &[Informed]),
            ("known", self.known.is_some(), &[Informed]),
            ("learn", self.learn.is_some(), &[Informed]),
            ("targets", self.targets.is_some(), &[Informed]),
            ("steps", self.steps.is_some(), &[Informed]),
            ("density", self.density.is_some(), &[Informed]),
            ("epochs", self.epochs.is_some(), &[Informed]),
            ("sgd", self.sgd, &[Informed]),
            ("lpips", self.lpips.is_some(), &[Inversion, Informed]),
        ];
        let wrong = owned.iter().find(|(_, is_set, methods)| *is_set && !methods.contains(&self.method));
        match wrong {
            None => Ok(()),
            Some((name, _, methods)) => {
                let method = match methods[0] {
                    Inversion => "inversion",
                    Informed => "informed",
                    Membership => "membership",
                };
                Err(Failure::option(name, format!("it belongs to ⟨method={method}⟩: leave it out")))
            }
        }
    }

    fn inversion(&self) -> Result<InversionRequest> {
        Ok(InversionRequest {
            model: self.model.clone().unwrap_or_default(),
            data: self.data.clone(),
            limit: self.limit,
            records: Some(self.records.unwrap_or(50)),
            gradient: self.gradient.clone(),
            after: self.after.clone(),
            batch: self.batch,
            local_steps: self.local_steps,
            local_lr: self.local_lr,
            release: self.release.request(),
            sigmas: self.sigmas.clone(),
            objective: self.objective,
            labels: self.labels,
            iterations: self.iterations,
            restarts: self.restarts,
            lr: self.lr,
            total_variation: self.total_variation,
            range: range(self.range.as_deref())?,
            normalize: normalize(self.over.normalize.as_deref())?,
            lpips: self.lpips.clone(),
            pictures: !self.over.no_pictures,
            seed: self.over.seed,
            format: self.over.format,
            precision: self.over.precision,
            device: self.over.device,
            redact: self.over.redact.redact,
        })
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let OverArgs { run, out, .. } = &args.over;
    run.start()?;
    args.check()?;
    let display = Display::start(run.quiet || run.json, out.clone())?;
    let on_seed = args.over.on_seed(&display, "attack");
    match args.method {
        Method::Inversion => {
            let request = args.inversion()?;
            let outcome = inversion::run(&request, out.as_deref(), &display.hooks, &on_seed)?;
            drop(on_seed);
            display.finish();
            run.warn(&outcome.document.warnings);
            run.show(&to_json(&outcome.document), &inversion_summary(&outcome.document), &outcome.written);
        }
        Method::Informed => {
            let outcome = informed::run(&args.informed()?, out.as_deref(), &display.hooks, &on_seed)?;
            drop(on_seed);
            display.finish();
            run.show(&to_json(&outcome.document), &informed_summary(&outcome.document), &outcome.written);
        }
        Method::Membership => {
            let request = args.membership()?;
            let outcome = membership::run(&request, out.as_deref(), &display.hooks, &on_seed)?;
            drop(on_seed);
            display.finish();
            run.warn(&outcome.document.warnings);
            run.show(&to_json(&outcome.document), &membership_summary(&outcome.document), &outcome.written);
        }
    }
    Ok(ExitCode::SUCCESS)
}
