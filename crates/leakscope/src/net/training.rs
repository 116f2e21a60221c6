//! Training in memory: a [`TrainRequest`] whose files are arrays with a network, or a table.

use super::account::{self, Facts};
use super::config::{config, plan, wanted};
use super::data::Names;
use super::inputs::{Inputs, covered, inputs, split_key};
use super::memory::{NetArrays, frozen};
use super::model::{self, NETWORK, TRAINING, WEIGHTS};
use super::public::{self, Public, PublicStart, frozen_share};
use super::resume::{Exact, Start};
use super::run::{Ended, PRIVATE, first, make_private, point};
use super::table::ENCODING;
use super::train::{LEAVES, TrainRequest, check_numbers, spec};
use crate::output::{Folder, Pending, Results, results, write_tables};
use crate::{Failure, Result};
use leakscope_net::io::Tensors;
use leakscope_net::train::{StepReport, Trainer};
use leakscope_net::{Data, Network, Real};
use leakscope_report::PageKind;
use leakscope_report::net::{self as page, Stopped, Training};
use leakscope_table::{Hooks, RecordsFormat, Stage};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A run over arrays that has ended.
#[derive(Debug)]
pub struct NetTrained<T> {
    /// The network after it.
    pub network: Network<T>,
    /// The document.
    pub training: Training,
    /// Every step.
    pub steps: Vec<StepReport>,
    /// `records`, where accounts of them were kept.
    pub tables: Vec<Arc<Results>>,
    /// How rows became records, where they are rows of a table.
    pub encoding: Option<String>,
}

/// What of a run over arrays can be written into a folder.
#[derive(Debug, Clone)]
pub struct NetTraining {
    /// The document.
    pub training: Training,
    /// `records`, where accounts of them were kept.
    pub tables: Vec<Arc<Results>>,
    /// The network's file and its weights as safetensors; absent where another framework keeps them.
    pub model: Option<(String, Vec<u8>)>,
    /// How rows became records, where they are rows of a table.
    pub encoding: Option<String>,
}

/// A network and what it is trained on.
struct Prepared<T> {
    net: Network<T>,
    name: String,
    data: Data<T>,
    test: Option<Data<T>>,
    files: Vec<String>,
    names: Names,
    budgets: Vec<f64>,
    /// SHA-256 of given weights.
    pretrained: Option<String>,
    /// Public records, and what was learned from them before the run.
    public: Option<(Public<T>, Option<PublicStart>)>,
    seed: u64,
}

/// What a run over arrays may have besides its records.
#[derive(Debug)]
pub struct Besides<T> {
    /// Weights to start from (safetensors), taken to be public.
    pub weights: Option<Vec<u8>>,
    /// Public records.
    pub public: Option<NetArrays<T>>,
}

impl<T> Default for Besides<T> {
    fn default() -> Self {
        Self { weights: None, public: None }
    }
}

/// Trains a network over arrays. Files that the request names are not read, and nothing is written: a run that diverges has no
/// network.
pub fn train<T: Real>(
    request: &TrainRequest,
    net: &Network<T>,
    data: NetArrays<T>,
    Besides { weights, public }: Besides<T>,
    hooks: &Hooks,
) -> Result<NetTrained<T>> {
    // the public records stand for files
    let named = public.iter().map(|_| PathBuf::from("public")).collect();
    let request = &TrainRequest { public: named, ..request.clone() };
    check_numbers(request)?;
    public::check(request)?;
    let seed = request.run.seed.unwrap_or_else(crate::seed::draw);
    let mut start = frozen(net, &[], None)?;
    if let Some(bytes) = &weights {
        let fail = |e: leakscope_net::Error| Failure::option("pretrain", e);
        start.load_tensors(&Tensors::from_bytes(bytes).map_err(fail)?).map_err(fail)?;
    }
    let data = data.into_data(&start)?;
    let public = public.map(|arrays| Public::of_arrays(arrays, &start)).transpose()?;
    let public = match public {
        None => {
            start = frozen(&start, &request.freeze, None)?;
            None
        }
        Some(public) => {
            let pretrains = request.public_training.is_wanted();
            let only_use = !pretrains && request.perturb.is_none();
            public::statistics(&mut start, Some(&public), &data, (wanted(request)?.is_some(), only_use))?;
            let learned = match pretrains {
                true => {
                    let watched = first(&data)?;
                    Some(public::trained_on(&public, &mut start, &watched, request, seed, hooks)?)
                }
                false => {
                    start = frozen(&start, &request.freeze, None)?;
                    None
                }
            };
            Some((public, learned))
        }
    };
    let net = frozen(&start, &[], frozen_share(request)?)?;
    let prepared = Prepared {
        name: "network".into(),
        data,
        net,
        public,
        test: None,
        files: vec!["x, y".into()],
        names: Names::default(),
        budgets: vec![],
        pretrained: weights
            .as_ref()
            .map(|bytes| Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()),
        seed,
    };
    over(request, prepared, hooks)
}

/// Trains the network that the request names over the rows of its table. Nothing is written.
pub fn train_rows<T: Real>(request: &TrainRequest, hooks: &Hooks) -> Result<NetTrained<T>> {
    check_numbers(request)?;
    let seed = request.run.seed.unwrap_or_else(crate::seed::draw);
    let split = split_key(request, wanted(request)?.is_some())?;
    let Inputs { mut source, test, budgets } = inputs::<T>(request, (seed, split), hooks)?;
    let mut spec = spec(request, &mut source)?;
    covered(request, &source.names)?;
    model::freeze(&mut spec, &request.freeze)?;
    let net = Network::new(spec, seed)?.on(request.run.device.backend_in(Some(request.run.precision))?)?;
    let data = source.take_data(&net)?;
    let test = test.map(|mut test| test.take_data(&net)).transpose()?;
    let (files, names) = (source.files, source.names);
    let name = model::name_of(&request.network);
    over(
        request,
        Prepared { net, name, data, test, files, names, budgets, pretrained: None, public: None, seed },
        hooks,
    )
}

fn over<T: Real>(request: &TrainRequest, prepared: Prepared<T>, hooks: &Hooks) -> Result<NetTrained<T>> {
    let Prepared { net, name, data, test, files, names, budgets, pretrained, public, seed } = prepared;
    let wanted = wanted(request)?;
    let clock = Instant::now();
    let plan = plan(request, &names, data.len(), PathBuf::new());
    let config = config(request, budgets, wanted, plan.steps, data.len(), seed)?;
    let per_epoch = data.len() as f64 / config.sampling.expected(data.len());
    let watched = test.as_ref().map_or_else(|| first(&data), |test| Ok(Cow::Borrowed(test)))?;
    let (public, public_start) = public.unzip();
    let mut run = Trainer::new(net, &data, config)?;
    if let Some((how, public)) = public::perturbing(request).zip(public.as_ref()) {
        run.perturb(how, &public.data).map_err(|e| Failure::option("perturb", e))?;
    }
    let (mut steps, mut history, mut losses, mut exact) = (vec![], vec![], (0.0, 0), Exact::default());
    while run.steps() < plan.steps {
        if hooks.interrupted() {
            return Err(Failure::Interrupted);
        }
        let report = run.step()?;
        exact.add(&report);
        if let Some(loss) = report.loss {
            losses = (losses.0 + loss, losses.1 + 1);
        }
        steps.push(report);
        if run.steps().is_multiple_of(plan.report_every) || run.steps() == plan.steps {
            history.push(point(
                &run,
                Some(&watched),
                std::mem::take(&mut losses),
                (per_epoch, plan.covered),
            )?);
        }
        hooks.report(Stage::Steps, run.steps(), plan.steps);
    }
    let start = Start {
        pretrained,
        freeze_smallest: request.freeze_smallest,
        density: request.density,
        public: public_start.flatten(),
        steps: plan.steps,
        split: None,
    };
    let seconds = clock.elapsed().as_secs_f64();
    let ended = Ended { run, start, history, stopped: Stopped::Finished, failure: None, exact, seconds };
    let facts = Facts {
        name,
        files,
        names,
        normalize: [0.0, 1.0],
        test_records: test.as_ref().map(|t| t.len() as u64),
        clip_assumed: request.run.release.clip.is_none(),
        public: vec![],
        precision: request.run.precision,
        leaves: LEAVES.to_owned(),
        text: None,
        replaced: None,
        redact: request.run.redact,
    };
    let budgets = ended.run.budgets()?;
    let training = account::training(&ended, &data, &facts, &plan, &budgets)?;
    let mut pending = Pending::default();
    pending.tables(account::records(&Folder::in_memory(), &data, &budgets, &ended, &facts.names)?);
    let encoding = facts.names.coding.as_ref().map(|c| c.json()).transpose()?;
    Ok(NetTrained { training, steps, tables: results(pending), encoding, network: ended.run.into_network() })
}

impl<T: Real> NetTrained<T> {
    /// The network, and what can be written of the run.
    pub fn split(self) -> Result<(Network<T>, NetTraining, Vec<StepReport>)> {
        let weights = self.network.to_tensors()?.to_bytes()?;
        let network = self.network.spec().to_json();
        let (model, encoding) = (Some((network, weights)), self.encoding);
        let training = NetTraining { training: self.training, tables: self.tables, model, encoding };
        Ok((self.network, training, self.steps))
    }
}

/// Writes a run over arrays into a folder: what `leakscope net train` leaves, but for the checkpoint.
pub fn write(run: &NetTraining, out: &Path, format: RecordsFormat) -> Result<Vec<PathBuf>> {
    let folder = Folder::open(out, format)?;
    let mut pending = Pending::default();
    write_tables(&folder, &mut pending, &run.tables)?;
    let training = Training { tables: pending.table_names(), ..run.training.clone() };
    if let Some((network, weights)) = &run.model {
        folder.text(&mut pending, NETWORK, network)?;
        folder.file(&mut pending, WEIGHTS, weights)?;
    }
    if let Some(encoding) = &run.encoding {
        make_private(&folder.path().join(PRIVATE))?;
        folder.text(&mut pending, ENCODING, encoding)?;
    }
    folder.text(&mut pending, TRAINING, &page::to_json(&training))?;
    folder.page(&mut pending, PageKind::Training, &page::training_page(&training))?;
    folder.publish(pending)
}
