//! Training over arrays: a [`TrainRequest`] whose files are arrays and a network in memory.

use super::account::{self, Facts};
use super::memory::{NetArrays, frozen};
use super::model::{NETWORK, TRAINING, WEIGHTS};
use super::resume::Start;
use super::run::{Ended, first, point};
use super::train::{TrainRequest, check_numbers, config, plan, wanted};
use crate::output::{Folder, Pending, Results, results, write_tables};
use crate::{Failure, Result};
use leakscope_net::io::Tensors;
use leakscope_net::train::{StepReport, Trainer};
use leakscope_net::{Network, Real};
use leakscope_report::net::{self as page, Stopped, Training};
use leakscope_table::{Hooks, RecordsFormat, Stage};
use sha2::{Digest, Sha256};
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
}

/// Trains a network over arrays, from `weights` (safetensors, taken to be public) where they are given. Files that the
/// request names are not read, and nothing is written: a run that diverges has no network.
pub fn train<T: Real>(
    request: &TrainRequest,
    net: &Network<T>,
    data: NetArrays<T>,
    weights: Option<&[u8]>,
    hooks: &Hooks,
) -> Result<NetTrained<T>> {
    check_numbers(request)?;
    let wanted = wanted(request)?;
    let clock = Instant::now();
    let seed = request.seed.unwrap_or_else(crate::seed::drawn);
    let mut start = frozen(net, &[], None)?;
    if let Some(bytes) = weights {
        let fail = |e: leakscope_net::Error| Failure::option("pretrain", e);
        start.load_tensors(&Tensors::from_bytes(bytes).map_err(fail)?).map_err(fail)?;
    }
    let net = frozen(&start, &request.freeze, request.freeze_smallest)?;
    let data = data.into_data(&net)?;
    let plan = plan(request, data.len(), PathBuf::new());
    let config = config(request, wanted, plan.steps, data.len(), seed)?;
    let per_epoch = data.len() as f64 / config.sampling.expected(data.len());
    let watched = first(&data)?;
    let mut run = Trainer::new(net, &data, config)?;
    let (mut steps, mut history, mut losses) = (vec![], vec![], (0.0, 0));
    while run.steps() < plan.steps {
        if hooks.interrupted() {
            return Err(Failure::Interrupted);
        }
        let report = run.step()?;
        if let Some(loss) = report.loss {
            losses = (losses.0 + loss, losses.1 + 1);
        }
        steps.push(report);
        if run.steps().is_multiple_of(plan.report_every) || run.steps() == plan.steps {
            history.push(point(&run, &watched, std::mem::take(&mut losses), per_epoch)?);
        }
        hooks.report(Stage::Steps, run.steps(), plan.steps);
    }
    let start = Start {
        pretrained: weights.map(|bytes| Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()),
        freeze_smallest: request.freeze_smallest,
        steps: plan.steps,
    };
    let seconds = clock.elapsed().as_secs_f64();
    let ended = Ended { run, start, history, stopped: Stopped::Finished, failure: None, seconds };
    let facts = Facts {
        name: "network".into(),
        files: vec!["x, y".into()],
        normalize: [0.0, 1.0],
        test_records: None,
        clip_assumed: request.release.clip.is_none(),
        public: vec![],
        precision: request.precision,
    };
    let budgets = ended.run.budgets();
    let training = account::training(&ended, &data, &facts, &plan, &budgets)?;
    let mut pending = Pending::default();
    if !budgets.is_empty() {
        pending.tables([account::records(&Folder::in_memory(), &data, &budgets, &ended)?]);
    }
    Ok(NetTrained { training, steps, tables: results(pending), network: ended.run.into_network() })
}

impl<T: Real> NetTrained<T> {
    /// The network, and what can be written of the run.
    pub fn split(self) -> Result<(Network<T>, NetTraining, Vec<StepReport>)> {
        let weights = self.network.to_tensors()?.to_bytes()?;
        let network = self.network.spec().to_json();
        let model = Some((network, weights));
        let training = NetTraining { training: self.training, tables: self.tables, model };
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
    folder.text(&mut pending, TRAINING, &page::to_json(&training))?;
    folder.text(&mut pending, "report.html", &page::training_page(&training))?;
    folder.publish(pending)
}
