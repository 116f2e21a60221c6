//! Public records: what a network learns from them before the run costs no private record anything.

use super::data::{Names, Part, Reading, Source};
use super::memory::NetArrays;
use super::table::Which;
use super::train::TrainRequest;
use super::{memory, model, optimizer_facts};
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_net::{
    Data, Error, Network, Real,
    engine::evaluate,
    perturb::{PerturbationKind, Perturbing},
    train::{Optimizer, Sampling, TrainConfig, Trainer},
};
use leakscope_report::net::Pretraining;
use leakscope_table::{Hooks, Subset};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Training on public records before the run; none where neither epochs nor steps are given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PublicTraining {
    /// Passes over the public records.
    pub epochs: Option<f64>,
    /// Steps, instead.
    pub steps: Option<u64>,
    /// Records in a batch; absent: those of the run, at most all.
    pub batch: Option<usize>,
    /// Learning rate; absent: that of the run.
    pub lr: Option<f64>,
    /// The rule; absent: that of the run.
    pub optimizer: Option<OptimizerKind>,
    /// Weight decay.
    pub weight_decay: f64,
}

/// The rule of the updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum OptimizerKind {
    /// Gradient descent without momentum
    Sgd,
    /// Adam
    Adam,
}

/// How the perturbation of gradients is learned; what is absent is as published.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PerturbTraining {
    /// λ; absent: 1000.
    pub lambda: Option<f64>,
    /// Passes over the public records before the first step, fewer before later ones; absent: 200, then 150, 100, 50, 20.
    pub epochs: Option<u64>,
    /// Public records in a batch; absent: 512, at most all.
    pub batch: Option<usize>,
    /// Learning rate; absent: 0.01.
    pub lr: Option<f64>,
    /// Weight decay; absent: 0.1.
    pub weight_decay: Option<f64>,
}

impl PerturbTraining {
    /// The first of its options that says something.
    fn stray(&self) -> Option<&'static str> {
        let Self { lambda, epochs, batch, lr, weight_decay } = self;
        let set = [
            ("perturb_lambda", lambda.is_some()),
            ("perturb_epochs", epochs.is_some()),
            ("perturb_batch", batch.is_some()),
            ("perturb_lr", lr.is_some()),
            ("perturb_weight_decay", weight_decay.is_some()),
        ];
        set.iter().find(|s| s.1).map(|s| s.0)
    }

    fn check(&self, variant: PerturbationKind) -> Result<()> {
        for (flag, value) in [("perturb_lambda", self.lambda), ("perturb_lr", self.lr)] {
            if let Some(v) = value.filter(|v| !(*v > 0.0 && v.is_finite())) {
                return Err(Failure::number(flag, v, "expected a positive number"));
            }
        }
        if let Some(v) = self.weight_decay.filter(|v| !(*v >= 0.0 && v.is_finite())) {
            return Err(Failure::number("perturb_weight_decay", v, "expected zero or a positive number"));
        }
        for (flag, value) in
            [("perturb_epochs", self.epochs), ("perturb_batch", self.batch.map(|b| b as u64))]
        {
            if value == Some(0) {
                return Err(Failure::number(flag, 0, "expected at least 1"));
            }
        }
        let searched = Self { lambda: None, ..self.clone() };
        match (variant, searched.stray()) {
            (PerturbationKind::Average, Some(flag)) => Err(Failure::option(
                flag,
                "the number of the average is found by search: leave it out, or take another ⟨perturb⟩",
            )),
            (PerturbationKind::Average, None)
            | (PerturbationKind::Constant | PerturbationKind::Network | PerturbationKind::Thesis, _) => {
                Ok(())
            }
        }
    }
}

impl PublicTraining {
    /// Whether there is to be any.
    pub(super) fn is_wanted(&self) -> bool {
        self.epochs.is_some() || self.steps.is_some()
    }

    /// Its settings as options and their values in words, always in the same order.
    fn settings(&self) -> [(&'static str, String); 6] {
        [
            ("public_epochs", in_words(self.epochs)),
            ("public_steps", in_words(self.steps)),
            ("public_batch", in_words(self.batch)),
            ("public_lr", in_words(self.lr)),
            ("public_optimizer", in_words(self.optimizer.map(|o| format!("{o:?}").to_lowercase()))),
            ("public_weight_decay", self.weight_decay.to_string()),
        ]
    }
}

fn in_words(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "none".to_owned(), |v| v.to_string())
}

/// Checks what needs no file.
pub(super) fn check(args: &TrainRequest) -> Result<()> {
    let how = &args.public_training;
    let positive = |flag: &str, value: Option<f64>| match value {
        Some(v) if !(v > 0.0 && v.is_finite()) => {
            Err(Failure::number(flag, numeral(v), "expected a positive number"))
        }
        Some(_) | None => Ok(()),
    };
    positive("public_epochs", how.epochs)?;
    positive("public_lr", how.lr)?;
    for (flag, value) in [("public_steps", how.steps), ("public_batch", how.batch.map(|b| b as u64))] {
        if value == Some(0) {
            return Err(Failure::number(flag, 0, "expected at least 1"));
        }
    }
    if !(how.weight_decay >= 0.0 && how.weight_decay.is_finite()) {
        let expected = "expected zero or a positive number";
        return Err(Failure::number("public_weight_decay", how.weight_decay, expected));
    }
    if how.epochs.is_some() && how.steps.is_some() {
        return Err(Failure::option(
            "public_epochs",
            "⟨public_steps⟩ says how long already: give one of the two",
        ));
    }
    check_perturbation(args)?;
    let unset = PublicTraining::default().settings();
    let stray = how.settings().into_iter().zip(unset).find(|(now, unset)| now != unset).map(|(now, _)| now.0);
    match stray {
        Some(flag) if args.public.is_empty() => {
            Err(Failure::option(flag, "name the public records to train on with ⟨public⟩"))
        }
        Some(flag) if !how.is_wanted() => {
            Err(Failure::option(flag, "say how long to train on public records with ⟨public_epochs⟩"))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_perturbation(args: &TrainRequest) -> Result<()> {
    let how = &args.perturb_training;
    let Some(variant) = args.perturb else {
        return match how.stray() {
            Some(flag) => Err(Failure::option(flag, "it belongs to ⟨perturb⟩: give that too")),
            None => Ok(()),
        };
    };
    how.check(variant)?;
    if args.public.is_empty() {
        return Err(Failure::option("perturb", "it is learned on public records: name them with ⟨public⟩"));
    }
    if !args.run.is_noisy() {
        let message = "without noise a gradient gives everything away: give ⟨sigma⟩ or ⟨epsilon⟩";
        return Err(Failure::option("perturb", message));
    }
    Ok(())
}

/// How the gradients of a run are perturbed.
pub(super) fn perturbing(args: &TrainRequest) -> Option<Perturbing> {
    let (variant, how, usual) = (args.perturb?, &args.perturb_training, Perturbing::default());
    Some(Perturbing {
        variant,
        lambda: how.lambda.unwrap_or(usual.lambda),
        epochs: how.epochs.unwrap_or(usual.epochs),
        batch: how.batch.unwrap_or(usual.batch),
        learning_rate: how.lr.unwrap_or(usual.learning_rate),
        weight_decay: how.weight_decay.unwrap_or(usual.weight_decay),
        ..usual
    })
}

/// The share of the weights that stays as it is, by either of its options.
pub(super) fn frozen_share(args: &TrainRequest) -> Result<Option<f64>> {
    let Some(density) = args.density else { return Ok(args.freeze_smallest) };
    if args.freeze_smallest.is_some() {
        return Err(Failure::option(
            "density",
            "⟨freeze_smallest⟩ is one less it already: give one of the two",
        ));
    }
    if !(density > 0.0 && density <= 1.0) {
        let expected = "expected the share of the weights to train, above 0 and at most 1";
        return Err(Failure::number("density", density, expected));
    }
    Ok(Some(1.0 - density))
}

/// What is wrong with public records is said of the option: the run has other records besides.
fn of_option(e: Failure) -> Failure {
    match e {
        Failure::Data(message) => Failure::option("public", message),
        other => other,
    }
}

/// Public records, as the network takes them.
#[derive(Debug)]
pub(super) struct Public<T> {
    files: Vec<String>,
    pub(super) data: Data<T>,
}

impl<T: Real> Public<T> {
    /// Reads the public records of a request, where it names any; without `labelled` their labels do not matter.
    pub(super) fn read(
        args: &TrainRequest,
        net: &Network<T>,
        names: &Names,
        labelled: bool,
        hooks: &Hooks,
    ) -> Result<Option<Self>> {
        if args.public.is_empty() {
            return Ok(None);
        }
        let mut source = match &names.coding {
            Some(coding) => {
                let which = Which { flag: "public", target_optional: !labelled, subset: Subset::All };
                let rows = coding.rows(&coding.table(&args.public, "public")?, which, hooks)?;
                Source::of_rows(rows, coding, vec![])
            }
            None => {
                let normalize = args.normalize.unwrap_or([0.0, 1.0]);
                let reading = Reading { flag: "public", part: Part::Train, normalize, limit: None };
                Source::<T>::read(&args.public, reading)?
            }
        };
        let data = if labelled { source.take_data(net) } else { source.as_class(net, 0) };
        let files = args.public.iter().map(|p| model::name_of(&p.to_string_lossy())).collect();
        Ok(Some(Self { files, data: data.map_err(of_option)? }))
    }

    /// Public records that are arrays.
    pub(super) fn of_arrays(arrays: NetArrays<T>, net: &Network<T>) -> Result<Self> {
        let data = arrays.source("public")?.take_data(net).map_err(of_option)?;
        Ok(Self { files: vec!["public".into()], data })
    }

    /// Tells public data sets apart.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for i in 0..self.data.len() {
            let (record, label) = (self.data.record(i), self.data.label(i));
            record.iter().chain(&*label).for_each(|v| hash.update(v.to_f64().to_le_bytes()));
        }
        hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// Gives batch norms their statistics: from public records, or, where nothing is private, from the training records.
pub(super) fn statistics<T: Real>(
    net: &mut Network<T>,
    public: Option<&Public<T>>,
    data: &Data<T>,
    (private, only_use): (bool, bool),
) -> Result<()> {
    let (has, lacks) = (net.statistics().next().is_some(), net.without_statistics());
    match (public, lacks) {
        (Some(_), _) if !has && only_use => {
            let message = "the network has no batch-norm, whose statistics they would give: train on them first with \
                           ⟨public_epochs⟩, or leave them out";
            Err(Failure::option("public", message))
        }
        (Some(public), _) if has => Ok(net.calibrate_statistics(&public.data)?),
        (_, None) => Ok(()),
        (_, Some(_)) if !private => Ok(net.calibrate_statistics(data)?),
        (_, Some(layer)) => Err(Failure::option(
            "public",
            format!(
                "layer {layer} of the network (batch-norm) needs the mean and the variance of its values, and taking them \
                 from private records would give these away: name public records of the same kind with ⟨public⟩, or weights \
                 that bring them with ⟨pretrain⟩, or use a group-norm or layer-norm in its place"
            ),
        )),
    }
}

/// How a run started from public records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PublicStart {
    /// SHA-256 of the public records.
    digest: String,
    how: PublicTraining,
    /// What came of it.
    pub(super) facts: Pretraining,
}

impl PublicStart {
    /// Refuses to go on with other public records or settings than the run started from.
    pub(super) fn check<T: Real>(
        was: Option<&Self>,
        public: Option<&Public<T>>,
        how: &PublicTraining,
    ) -> Result<()> {
        let (Some(was), true) = (was, how.is_wanted()) else {
            return match (was, how.is_wanted()) {
                (None, true) => Err(Failure::option(
                    "public_epochs",
                    "the run started without training on public records: leave it out, or start anew without ⟨resume⟩",
                )),
                (Some(was), false) => {
                    let (flag, before) = if was.how.epochs.is_some() {
                        ("public_epochs", in_words(was.how.epochs))
                    } else {
                        ("public_steps", in_words(was.how.steps))
                    };
                    Err(Failure::option(
                        flag,
                        format!("none; the run was started with {before}: give the same"),
                    ))
                }
                (Some(_), true) | (None, false) => Ok(()),
            };
        };
        if public.is_none_or(|p| p.digest() != was.digest) {
            let message = "the run was first trained on other public records: name the same again";
            return Err(Failure::option("public", message));
        }
        match was.how.settings().into_iter().zip(how.settings()).find(|(a, b)| a != b) {
            None => Ok(()),
            Some(((flag, before), (_, now))) => {
                Err(Failure::option(flag, format!("{now}; the run was started with {before}: give the same")))
            }
        }
    }
}

/// Trains on public records: no noise, no clip, and nothing of it is counted.
fn pretrain<T: Real>(
    net: Network<T>,
    public: &Public<T>,
    args: &TrainRequest,
    seed: u64,
    hooks: &Hooks,
) -> Result<(Network<T>, PublicStart)> {
    let (how, n) = (&args.public_training, public.data.len());
    let batch = how.batch.unwrap_or_else(|| (args.batch.round() as usize).clamp(1, n));
    if batch > n {
        let message = format!("{batch} records a step: there are only {n} public records");
        return Err(Failure::option("public_batch", message));
    }
    let per_epoch = n as f64 / batch as f64;
    // `as` saturates
    let passes = |epochs: f64| ((epochs * per_epoch).round() as u64).max(1);
    let steps = how.steps.or(how.epochs.map(passes)).unwrap_or(1);
    let optimizer = match how.optimizer {
        Some(OptimizerKind::Sgd) => Optimizer::Sgd { momentum: 0.0 },
        Some(OptimizerKind::Adam) => Optimizer::adam(),
        None if args.run.adam => Optimizer::adam(),
        None => Optimizer::Sgd { momentum: args.run.momentum },
    };
    let rate = how.lr.unwrap_or(args.run.lr);
    let config = TrainConfig {
        weight_decay: how.weight_decay,
        seed,
        ..TrainConfig::open(optimizer, rate, Sampling::Shuffle { batch })
    };
    let mut run = Trainer::new(net, &public.data, config)?;
    while run.steps() < steps {
        if hooks.interrupted() {
            return Err(Failure::Interrupted);
        }
        run.step().map_err(|e| match e {
            Error::Diverged { step, symptom } => Failure::number(
                "public_lr",
                rate,
                format!("training on public records diverged at step {step}: {symptom}; lower it"),
            ),
            other => other.into(),
        })?;
    }
    let net = run.into_network();
    let fit = evaluate(&net, &public.data)?;
    let facts = Pretraining {
        files: public.files.clone(),
        records: n as u64,
        optimizer: optimizer_facts(optimizer),
        learning_rate: rate,
        weight_decay: how.weight_decay,
        batch: batch as u64,
        steps,
        loss: fit.loss,
        accuracy: fit.accuracy,
        watched_accuracy: None,
    };
    Ok((net, PublicStart { digest: public.digest(), how: how.clone(), facts }))
}

/// Trains the network on public records, then freezes the layers that the run leaves as they are.
pub(super) fn trained_on<T: Real>(
    public: &Public<T>,
    net: &mut Network<T>,
    watched: &Data<T>,
    args: &TrainRequest,
    seed: u64,
    hooks: &Hooks,
) -> Result<PublicStart> {
    let thawed = memory::frozen(net, &[], None)?;
    let (learned, mut start) = pretrain(thawed, public, args, seed, hooks)?;
    // what is watched may be private: that it has no finite loss must not stop the run
    start.facts.watched_accuracy = evaluate(&learned, watched).ok().and_then(|e| e.accuracy);
    *net = memory::frozen(&learned, &args.freeze, None)?;
    Ok(start)
}
