//! Private fine-tuning of a language model: a request in, the model with the accounts of its texts in a folder out.
//!
//! The run is that of [`crate::net`]: the same trainer, loop, checkpoints and page. What is this module's own are texts as
//! records, users as what is drawn and clipped, and a model that is stored as it came.

use super::model::{language_model, tokenizer};
use super::source::TextSource;
use super::stored::{Destination, UnlessEmpty};
use super::texts::{Fields, Line, Long, Tokens, check_vocabulary, lines, tokens};
use crate::failure::present;
use crate::net::Precision;
use crate::net::account::{self, Facts};
use crate::net::config::{config, plan, wanted};
use crate::net::data::Names;
use crate::net::resume::{Resumed, Start};
use crate::net::run::{CHECKPOINT, train};
use crate::net::train::{Listener, RunRequest, TrainOutcome, TrainRequest, check_numbers};
use crate::output::{Folder, Pending, Results, results};
use crate::{Failure, Result};
use leakscope_net::engine::losses;
use leakscope_net::text::{LanguageModel, Tokenizer, Trained, Tuned};
use leakscope_net::{Data, Network, Real};
use leakscope_report::text::{Holdout, TextTraining, Unit};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a run is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextTrainRequest {
    /// The model and the texts.
    pub source: TextSource,
    /// The field that says whose a text is, of JSON lines: users are drawn and clipped then.
    pub user_field: Option<String>,
    /// The same for texts in memory: one for each.
    pub users: Vec<String>,
    /// Files of texts that are not trained on, to see how well such are predicted.
    pub test: Vec<PathBuf>,
    /// The same in memory.
    pub test_list: Vec<String>,
    /// Texts (or users) that a step is expected to draw.
    pub batch: f64,
    /// How the run goes.
    pub run: RunRequest,
}

impl Default for TextTrainRequest {
    fn default() -> Self {
        Self {
            source: TextSource::default(),
            user_field: None,
            users: vec![],
            test: vec![],
            test_list: vec![],
            batch: 32.0,
            run: RunRequest::default(),
        }
    }
}

impl TextTrainRequest {
    /// Whether the request makes sense, before anything is read.
    ///
    /// # Errors
    /// The option at fault, with what was expected.
    pub fn check(&self) -> Result<()> {
        self.source.check()?;
        if !self.users.is_empty() && self.users.len() != self.source.list.len() {
            let (users, texts) = (self.users.len(), self.source.list.len());
            return Err(Failure::option(
                "users",
                format!("{users} for {texts} texts: expected one for each"),
            ));
        }
        let numbers = self.numbers();
        check_numbers(&numbers)?;
        wanted(&numbers)?;
        if self.by_user() && self.run.track.is_some() {
            let message = "accounts are of single texts, and users are clipped as one: leave it out; ε of the run holds for \
                           every user";
            return Err(Failure::option("track", message));
        }
        Ok(())
    }

    fn by_user(&self) -> bool {
        self.user_field.is_some() || !self.users.is_empty()
    }

    /// What it shares with the training of any network.
    fn numbers(&self) -> TrainRequest {
        TrainRequest { batch: self.batch, run: self.run.clone(), ..TrainRequest::default() }
    }
}

/// A run that has ended, with its files written.
#[derive(Debug, Clone)]
pub struct TextTrainOutcome {
    /// The run.
    pub run: TrainOutcome,
    /// The table of accounts, where they were kept.
    pub tables: Vec<Arc<Results>>,
}

/// Trains as the request says; `out` receives the model, the run and its page.
///
/// # Errors
/// Options that make no sense, models, tokenisers and texts that cannot be read.
pub fn run(request: &TextTrainRequest, out: &Path, listener: &Listener<'_>) -> Result<TextTrainOutcome> {
    request.check()?;
    match request.run.precision {
        Precision::F32 | Precision::Tf32 => run_in::<f32>(request, out, listener),
        Precision::F64 => run_in::<f64>(request, out, listener),
    }
}

fn run_in<T: Real>(
    request: &TextTrainRequest,
    out: &Path,
    listener: &Listener<'_>,
) -> Result<TextTrainOutcome> {
    let (numbers, folder) = (request.numbers(), Folder::open(out, request.run.format)?);
    let resumed = if request.run.resume { Some(Resumed::read(folder.path())?) } else { None };
    let replaced = if request.run.resume { None } else { account::replaced(folder.path()) };
    let stored_seed = resumed.as_ref().map(Resumed::seed);
    let seed = request.run.seed.or(stored_seed).unwrap_or_else(crate::seed::draw);
    let tuned = Tuned { part: request.source.layers, rank: request.source.rank, seed };
    let backend = request.run.device.backend_in(Some(request.run.precision))?;
    let model: LanguageModel<T> = language_model(&request.source.model, tuned, backend)?;
    let tokenizer = tokenizer(&request.source.model, request.source.tokenizer.as_deref())?;
    let Training { data, names, mut facts, texts } = Training::read(request, &model, &tokenizer)?;
    let held_out = held_out(request, &model, &tokenizer)?;
    let (net, layout) = model.split();
    let destination = Destination::new(layout, &request.source.model, request.source.tokenizer.as_deref());
    let _model = spare(request, &folder, &destination)?;

    let before = held_out.as_ref().map(|h| h.loss(&net)).transpose()?;
    let plan = plan(&numbers, &names, data.units(), folder.path().to_path_buf());
    let config = config(&numbers, vec![], wanted(&numbers)?, plan.steps, data.units(), seed)?;
    let start = Start {
        pretrained: Some(fingerprint(&net)?),
        freeze_smallest: None,
        density: None,
        public: None,
        steps: plan.steps,
        split: None,
    };
    if let Some(resumed) = &resumed {
        if resumed.progress.start.pretrained != start.pretrained {
            let message =
                "the run started from another model, another part of it or another rank: give the same again";
            return Err(Failure::option("model", message));
        }
        resumed.check(&config, net.spec(), &start, request.run.epsilon.is_some())?;
    }
    let seed_drawn = request.run.seed.is_none() && stored_seed.is_none();
    if seed_drawn {
        (listener.on_seed)(seed);
    }
    let test = held_out.as_ref().map(|h| &h.data);
    let ended = train(net, &data, (test, None), config, &plan, (start, resumed), listener)?;
    if let (Some(h), Some(before)) = (&held_out, before) {
        facts.holdout = Some(h.facts(&request.test, before, h.loss(ended.run.network())?, &texts));
    }
    let facts = Facts {
        name: super::model::name_of(&request.source.model),
        files: request.source.texts.iter().map(|f| leakscope_table::display_name(f)).collect(),
        names,
        normalize: [0.0, 1.0],
        test_records: held_out.as_ref().map(|h| h.lines.len() as u64),
        clip_assumed: request.run.release.clip.is_none(),
        public: vec![],
        precision: request.run.precision,
        leaves: format!("the folder {}/", super::stored::MODEL),
        text: Some(facts),
        replaced,
        redact: request.run.redact,
    };
    let stored = destination.files(ended.run.network())?;
    let (training, written) = account::finish(&ended, &data, &facts, &plan, (&folder, &stored))?;
    let mut pending = Pending::default();
    let in_memory = Folder::in_memory();
    pending.tables(account::records(&in_memory, &data, &ended.run.budgets()?, &ended, &facts.names)?);
    let diverged = ended.diverged(folder.path());
    let run = TrainOutcome { training, written, seed_drawn, diverged };
    Ok(TextTrainOutcome { run, tables: results(pending) })
}

/// Refuses a folder in which results would take the place of something that is read.
fn spare(request: &TextTrainRequest, folder: &Folder, destination: &Destination) -> Result<UnlessEmpty> {
    let model = destination.read(&request.source.model);
    let read: Vec<&Path> =
        request.source.texts.iter().chain(&request.test).chain(&model).map(PathBuf::as_path).collect();
    let stored = destination.file_names();
    let own = ["training.json", CHECKPOINT, "report.html"];
    let written: Vec<&str> = own.into_iter().chain(stored.iter().map(String::as_str)).collect();
    folder.spare(&read, &written, &["records"])?;
    destination.prepare(folder)
}

/// What is trained on.
struct Training<T> {
    data: Data<T>,
    names: Names,
    facts: TextTraining,
    /// The texts themselves, to see whether one of them is held out too.
    texts: BTreeSet<String>,
}

impl<T: Real> Training<T> {
    fn read(request: &TextTrainRequest, model: &LanguageModel<T>, tokenizer: &Tokenizer) -> Result<Self> {
        let fields = Fields {
            text: request.source.field.as_deref(),
            user: request.user_field.as_deref(),
            users: &request.users,
        };
        let (lines, pieces) = read(
            &request.source.texts,
            &request.source.list,
            fields,
            request.source.long,
            (model, tokenizer),
        )?;
        let (names, units) = units(&lines, &pieces);
        let data = model.ragged(&ids(&pieces))?;
        let unit = if request.by_user() { Unit::User } else { Unit::Text };
        let cut = pieces.len() > lines.len();
        if cut && request.run.track.is_some() {
            let message = "accounts are of single texts, and those that were cut are clipped whole: leave it out, or \
                           shorten the texts";
            return Err(Failure::option("track", message));
        }
        let data = if cut || unit == Unit::User { data.grouped(units)? } else { data };
        let facts = TextTraining {
            trained: request.source.layers,
            rank: (request.source.layers == Trained::Adapters).then_some(request.source.rank as u64),
            unit,
            texts: lines.len() as u64,
            pieces: pieces.len() as u64,
            tokens: pieces.iter().map(|t| t.ids.len() as u64).sum(),
            holdout: None,
        };
        let texts = lines.into_iter().map(|l| l.text).collect();
        Ok(Self { data, names: Names::of_ids(names), facts, texts })
    }
}

/// Texts as lines and as tokens that the model has.
fn read<T: Real>(
    files: &[PathBuf],
    list: &[String],
    fields: Fields<'_>,
    long: Long,
    (model, tokenizer): (&LanguageModel<T>, &Tokenizer),
) -> Result<(Vec<Line>, Vec<Tokens>)> {
    let lines = lines(files, list, fields)?;
    let pieces = tokens(&lines, tokenizer, model.context(), long)?;
    check_vocabulary(&pieces, &lines, model.vocabulary())?;
    Ok((lines, pieces))
}

fn ids(pieces: &[Tokens]) -> Vec<&[u32]> {
    pieces.iter().map(|t| t.ids.as_slice()).collect()
}

/// Who is drawn and clipped as one, in the order of their first texts: users, or texts with their pieces.
fn units(lines: &[Line], pieces: &[Tokens]) -> (Vec<String>, Vec<Vec<usize>>) {
    let (mut names, mut units): (Vec<String>, Vec<Vec<usize>>) = (vec![], vec![]);
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (i, piece) in pieces.iter().enumerate() {
        let line = &lines[piece.line];
        let name = line.user.clone().unwrap_or_else(|| line.number.to_string());
        let at = *known.entry(name.clone()).or_insert_with(|| {
            names.push(name);
            units.push(vec![]);
            units.len() - 1
        });
        units[at].push(i);
    }
    (names, units)
}

/// Texts that are not trained on.
struct HeldOut<T> {
    data: Data<T>,
    lines: Vec<Line>,
    /// Tokens of every record that are predicted.
    predicted: Vec<u64>,
}

fn held_out<T: Real>(
    request: &TextTrainRequest,
    model: &LanguageModel<T>,
    tokenizer: &Tokenizer,
) -> Result<Option<HeldOut<T>>> {
    if request.test.is_empty() && request.test_list.is_empty() {
        return Ok(None);
    }
    let fields = Fields { text: request.source.field.as_deref(), ..Fields::default() };
    present("test", &request.test)?;
    let (lines, pieces) =
        read(&request.test, &request.test_list, fields, request.source.long, (model, tokenizer))?;
    let predicted = pieces.iter().map(|t| t.ids.len() as u64 - 1).collect();
    Ok(Some(HeldOut { data: model.ragged(&ids(&pieces))?, lines, predicted }))
}

impl<T: Real> HeldOut<T> {
    /// Mean loss of a token.
    fn loss(&self, net: &Network<T>) -> Result<f64> {
        let each = losses(net, &self.data)?;
        let (mut sum, mut count) = (0.0, 0.0);
        for (loss, n) in each.iter().zip(&self.predicted) {
            sum += loss * *n as f64;
            count += *n as f64;
        }
        Ok(sum / count)
    }

    fn facts(&self, files: &[PathBuf], before: f64, loss: f64, trained_on: &BTreeSet<String>) -> Holdout {
        Holdout {
            files: files.iter().map(|f| leakscope_table::display_name(f)).collect(),
            texts: self.lines.len() as u64,
            tokens: self.predicted.iter().sum(),
            loss_before: before,
            loss,
            perplexity_before: before.exp(),
            perplexity: loss.exp(),
            seen: self.lines.iter().filter(|l| trained_on.contains(&l.text)).count() as u64,
        }
    }
}

/// SHA-256 of the parameters that the run starts with.
fn fingerprint<T: Real>(net: &Network<T>) -> Result<String> {
    let mut hash = Sha256::new();
    let mut bytes = Vec::new();
    for block in net.parameters()?.chunks(1 << 16) {
        bytes.clear();
        block.iter().for_each(|v| bytes.extend_from_slice(&v.to_f64().to_le_bytes()));
        hash.update(&bytes);
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}
