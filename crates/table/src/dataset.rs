//! The encoded rows of a table, as the mathematics consumes them: from memory where they fit, from the
//! files where not.

use crate::away::{AwayRows, Counted};
use crate::batch::{Batch, Texts};
use crate::encoder::Encoder;
use crate::encoding::{Encoding, Missing};
use crate::hooks::{Hooks, Stage};
use crate::matrix::Matrix;
use crate::plan::{Plan, Subset};
use crate::runs::Cut;
use crate::table::{Table, in_order};
use crate::{Error, Result};
use leakscope_core::rows::{Away, Block, Finish, Part, Rows, Start};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Encoded rows up to this size stay in memory after they were first encoded.
pub const CACHE_BYTES: u64 = 256 << 20;

/// How to make a [`Dataset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatasetOptions {
    /// Whether the table may lack the target; `y` is then 0 everywhere and [`Dataset::has_target`] false.
    pub allow_missing_target: bool,
    /// Encoded rows up to this many bytes are kept in memory; 0 reads the files in every pass. The results are the same.
    pub cache_bytes: u64,
    /// For a split of a larger table: rows of the subset in the splits before it.
    pub first_row: u64,
    /// Rows of the subset, where they are known; they are counted otherwise.
    pub rows: RowCount,
}

/// What is known of the number of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowCount {
    /// Nothing: they are counted, in a pass if need be.
    #[default]
    Counted,
    /// That there are so many: a pass that finds others fails.
    Known(u64),
    /// Nothing, and nobody asks: for passes that count by themselves.
    Open,
}

impl Default for DatasetOptions {
    fn default() -> Self {
        Self { allow_missing_target: false, cache_bytes: CACHE_BYTES, first_row: 0, rows: RowCount::Counted }
    }
}

/// Who the rows of a block are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The id of each row; without an id column its row number, from 1 over the whole table.
    pub ids: Vec<String>,
    /// Row number of the first row of the block, from 1 over the whole table.
    pub row: u64,
    /// Position of each row in the whole table, from 0.
    pub positions: Vec<u64>,
}

/// The encoded rows of a subset of a table.
#[derive(Debug)]
pub struct Dataset {
    table: Table,
    encoding: Encoding,
    hooks: Hooks,
    /// Without the id column, for passes that do not ask for labels.
    plan: Plan,
    /// With it.
    labelled: Plan,
    /// Rows of this subset before each split.
    first_rows: Vec<u64>,
    /// Rows of this subset before the table.
    before: u64,
    rows: u64,
    dropped: u64,
    unseen: u64,
    /// Whether passes must find as many rows as were counted.
    counted: bool,
    /// Runs of each split.
    run_counts: Vec<usize>,
    runs: Option<Vec<Vec<Kept>>>,
    /// Where other machines read the rows.
    away: Option<AwayRows>,
    /// The same, read here, for what is no pass that could be sent.
    here: OnceLock<Box<Self>>,
    options: DatasetOptions,
    /// Where the table itself is in memory: the rows of every block, encoded anew in every pass.
    in_place: Option<InPlace>,
}

/// Centre and scale of every column of a matrix.
type Steps = Vec<(f64, f64)>;

/// Blocks of a table in memory, none of which is kept.
#[derive(Debug)]
struct InPlace {
    runs: Vec<Vec<Range<usize>>>,
    /// The matrix that holds all features.
    matrix: Option<(Arc<Matrix>, Steps)>,
}

/// A block in memory, and its labels in compact form.
#[derive(Debug)]
struct Kept {
    block: Block,
    names: Names,
}

/// Row numbers, and ids where there is an id column.
#[derive(Debug, Default)]
struct Names {
    rows: Vec<u64>,
    ids: Option<Texts>,
}

impl Names {
    fn new(with_ids: bool) -> Self {
        Self { rows: vec![], ids: with_ids.then(Texts::default) }
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.ids.iter_mut().for_each(Texts::clear);
    }

    fn of_batch(&mut self, plan: &Plan, batch: &Batch, selected: &[u32]) {
        self.clear();
        self.rows.extend(selected.iter().map(|r| batch.first_row + u64::from(*r)));
        if let (Some(ids), Some(cell)) = (&mut self.ids, plan.layout.id) {
            let texts = batch.texts(cell);
            selected.iter().for_each(|r| ids.push(Some(texts.get(*r as usize))));
        }
    }

    fn labels(&self) -> Labels {
        let ids = match &self.ids {
            Some(ids) => (0..self.rows.len()).map(|i| ids.get(i).to_string()).collect(),
            None => self.rows.iter().map(|r| (r + 1).to_string()).collect(),
        };
        Labels { ids, row: self.rows.first().map_or(0, |r| r + 1), positions: self.rows.clone() }
    }
}

impl Dataset {
    /// Where its passes tell how far they are, and hear that they should stop.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// The encoded rows of `subset`, encoded once now if they fit in memory ([`CACHE_BYTES`]).
    pub fn new(table: &Table, encoding: &Encoding, subset: Subset, hooks: &Hooks) -> Result<Self> {
        Self::with_options(table, encoding, subset, DatasetOptions::default(), hooks)
    }

    /// As [`Dataset::new`], with options.
    pub fn with_options(
        table: &Table,
        encoding: &Encoding,
        subset: Subset,
        options: DatasetOptions,
        hooks: &Hooks,
    ) -> Result<Self> {
        let target_optional = options.allow_missing_target;
        let plan = Plan::new(table, encoding, subset, target_optional, false)?;
        let labelled = Plan::new(table, encoding, subset, target_optional, true)?;
        table.check(&labelled.layout.wants)?;
        let batch_rows = plan.batch_rows;
        let mut dataset = Self {
            table: table.clone(),
            encoding: encoding.clone(),
            hooks: hooks.clone(),
            plan,
            labelled,
            first_rows: vec![],
            before: options.first_row,
            rows: 0,
            dropped: 0,
            unseen: 0,
            counted: options.rows != RowCount::Open,
            run_counts: table.run_counts(batch_rows, hooks)?,
            runs: None,
            away: None,
            here: OnceLock::new(),
            options,
            in_place: None,
        };
        dataset.find_rows(options)?;
        Ok(dataset)
    }

    /// Counts the rows, and keeps them where that is the quickest.
    fn find_rows(&mut self, options: DatasetOptions) -> Result<()> {
        if let (RowCount::Known(rows), true) = (options.rows, self.table.is_split()) {
            self.set_counts(&[rows]);
            return Ok(());
        }
        if options.rows == RowCount::Open {
            self.set_counts(&vec![0; self.run_counts.len()]);
            return Ok(());
        }
        let taken: Vec<u64> = self
            .table
            .splits(&self.hooks)?
            .iter()
            .map(|s| (s.first_row..s.first_row + s.rows).filter(|r| self.plan.takes(*r)).count() as u64)
            .collect();
        if let Some(away) =
            AwayRows::new(&self.table, (&self.encoding, self.plan.subset), options.allow_missing_target)
        {
            let counted = if self.plan.countable() { Counted::of(taken) } else { away.count()? };
            (self.dropped, self.unseen) = (counted.dropped, counted.unseen);
            self.set_counts(&counted.rows);
            self.away = Some(away.with_places(&self.first_rows, &counted.rows));
            return Ok(());
        }
        // x, y, weight, group, row number, id.
        let row_bytes = 8 * self.plan.width as u64 + 8 + 8 + 4 + 8 + 32;
        let all: u64 = taken.iter().sum();
        if let Some(in_place) = self.in_place(all)? {
            (self.rows, self.in_place) = (all, Some(in_place));
        } else if !self.table.is_split() && all.saturating_mul(row_bytes) <= options.cache_bytes {
            self.load()?;
        } else if self.plan.countable() {
            self.set_counts(&taken);
        } else {
            self.count()?;
        }
        Ok(())
    }

    /// Who runs passes over these rows elsewhere.
    pub fn away(&self) -> Option<&AwayRows> {
        self.away.as_ref()
    }

    /// The same rows, read here, where they are elsewhere: for what is no pass that could be sent.
    fn here(&self) -> Result<Option<&Self>> {
        if self.away.is_none() || self.here.get().is_some() {
            return Ok(self.here.get().map(|here| &**here));
        }
        if self.away.as_ref().is_some_and(AwayRows::is_of_partitions) {
            return Err(Error::OnlyAway { name: self.table.first_path() });
        }
        let table = Table { away: None, ..self.table.clone() };
        let here = Self::with_options(&table, &self.encoding, self.plan.subset, self.options, &self.hooks)?;
        Ok(Some(self.here.get_or_init(|| Box::new(here))))
    }

    /// How many runs each split has: [`Rows::split_sizes`].
    pub fn run_counts(&self) -> &[usize] {
        &self.run_counts
    }

    /// The encoding.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// Whether the table has the target; otherwise `y` is 0 everywhere.
    pub fn has_target(&self) -> bool {
        self.plan.has_target()
    }

    /// Whether blocks carry groups.
    pub fn has_groups(&self) -> bool {
        self.plan.layout.group.is_some()
    }

    /// Whether the encoded rows are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.runs.is_some() || self.in_place.is_some()
    }

    /// Rows of the subset that were left out because a value is missing. Known once rows were read: 0 for a
    /// data set that is streamed and cannot have any.
    pub fn rows_dropped(&self) -> u64 {
        self.dropped
    }

    /// Held-out rows that were left out because of a level that training did not have.
    pub fn rows_unseen(&self) -> u64 {
        self.unseen
    }

    fn set_counts(&mut self, counts: &[u64]) {
        self.first_rows.clear();
        self.rows = 0;
        for count in counts {
            self.first_rows.push(self.before + self.rows);
            self.rows += count;
        }
    }

    /// Whether passes can read all rows where they are, at little cost: a copy of them would only take memory.
    fn in_place(&self, taken: u64) -> Result<Option<InPlace>> {
        let (plan, encoding) = (&self.plan, &self.encoding);
        let Some(memory) = self.table.in_memory() else { return Ok(None) };
        let every_row = taken == self.table.rows(&self.hooks)? && plan.subset != Subset::HeldOut;
        let none_dropped =
            plan.missing != Missing::Drop || (plan.subset == Subset::Training && encoding.rows_dropped == 0);
        let quick = plan.categories.is_empty() && plan.pca.is_none() && memory.is_quick(&plan.layout.wants);
        if !(every_row && none_dropped && quick) {
            return Ok(None);
        }
        let features = &plan.layout.wants[..plan.layout.features];
        // Only the profile of the training rows knows that no feature is missing.
        let complete = plan.subset == Subset::Training && encoding.profile.iter().all(|c| c.missing == 0);
        let clipped = plan.numbers.iter().any(|step| step.clip.is_some());
        let matrix = memory.matrix_of(features).filter(|_| complete && !clipped);
        let steps = || plan.numbers.iter().map(|step| (step.centre, step.scale)).collect();
        let mut runs = vec![];
        for split in self.table.splits(&self.hooks)? {
            let first = split.first_row as usize;
            let moved = |r: Range<usize>| first + r.start..first + r.end;
            let of_split = Cut::new(split, plan.batch_rows).ranges().into_iter();
            runs.extend(of_split.map(|run| run.into_iter().map(moved).collect()));
        }
        Ok(Some(InPlace { runs, matrix: matrix.map(|matrix| (matrix, steps())) }))
    }

    /// Counts the rows of the subset by reading them.
    fn count(&mut self) -> Result<()> {
        let (table, plan) = (&self.table, &self.plan);
        let (mut counts, mut dropped, mut unseen) = (vec![], 0, 0);
        table.fold(
            (&plan.layout.wants, plan.batch_rows),
            (&self.hooks, Stage::Encode),
            |_| (Encoder::new(table, plan), 0_u64),
            |(encoder, count), batch| {
                encoder.select(batch)?;
                *count += encoder.selected.len() as u64;
                Ok(())
            },
            |(encoder, count)| {
                counts.push(count);
                dropped += encoder.dropped;
                unseen += encoder.unseen;
                Ok(())
            },
        )?;
        (self.dropped, self.unseen) = (dropped, unseen);
        self.set_counts(&counts);
        Ok(())
    }

    /// Encodes all rows and keeps them.
    fn load(&mut self) -> Result<()> {
        let (table, plan) = (&self.table, &self.labelled);
        let with_ids = plan.layout.id.is_some();
        let (mut runs, mut rows) = (vec![], 0);
        let (mut dropped, mut unseen) = (0, 0);
        table.fold_runs(
            (&plan.layout.wants, plan.batch_rows),
            (&self.hooks, Stage::Encode),
            (|_| Encoder::new(table, plan), Vec::new),
            |encoder, kept: &mut Vec<Kept>, batch| {
                encoder.encode(batch)?;
                if !encoder.block.is_empty() {
                    let mut names = Names::new(with_ids);
                    names.of_batch(plan, batch, &encoder.selected);
                    let width = plan.width;
                    let block = std::mem::replace(&mut encoder.block, Block { width, ..Block::default() });
                    kept.push(Kept { block, names });
                }
                Ok(())
            },
            |encoder, of_split| {
                for mut run in of_split {
                    for kept in &mut run {
                        kept.block.first_row = rows;
                        rows += kept.block.len() as u64;
                    }
                    runs.push(run);
                }
                dropped += encoder.dropped;
                unseen += encoder.unseen;
                Ok(())
            },
        )?;
        (self.dropped, self.unseen, self.rows) = (dropped, unseen, rows);
        self.runs = Some(runs);
        Ok(())
    }

    /// A pass whose step also gets the ids of the rows; otherwise as `fold` of `dyn Rows`.
    pub fn fold_labelled<S: Send>(
        &self,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block, &Labels) -> leakscope_core::Result<()> + Sync,
        mut merge: impl FnMut(S) -> leakscope_core::Result<()>,
    ) -> leakscope_core::Result<()> {
        let slot = Mutex::new(None);
        let start = || -> Box<dyn LabelledPart + '_> {
            Box::new(Folded { state: start(), step: &step, slot: &slot })
        };
        self.labelled_parts(&start, &mut |part| {
            part.hand_over();
            let state = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            state.map_or(Ok(()), &mut merge)
        })
    }

    /// Without type parameters, so that reading is compiled here and not again for every state.
    fn labelled_parts<'s>(
        &self,
        start: &(dyn Fn() -> Box<dyn LabelledPart + 's> + Sync + '_),
        merge: &mut dyn FnMut(Box<dyn LabelledPart + 's>) -> leakscope_core::Result<()>,
    ) -> leakscope_core::Result<()> {
        let step = |part: &mut Box<dyn LabelledPart + 's>, block: &Block, names: Option<&Names>| {
            part.step(block, &names.map(Names::labels).unwrap_or_default())
        };
        self.pass(true, start, step, merge).map_err(Into::into)
    }

    fn pass<S: Send>(
        &self,
        with_labels: bool,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block, Option<&Names>) -> leakscope_core::Result<()> + Sync,
        mut merge: impl FnMut(S) -> leakscope_core::Result<()>,
    ) -> Result<()> {
        if let Some(here) = self.here()? {
            return here.pass(with_labels, start, step, merge);
        }
        if let Some(in_place) = &self.in_place {
            return self.pass_in_place(in_place, with_labels, start, step, merge);
        }
        let Some(runs) = &self.runs else { return self.stream(with_labels, start, step, merge) };
        let watch = self.hooks.watch(Stage::Pass, self.rows);
        let work = |run: &Vec<Kept>| {
            let mut state = start();
            for Kept { block, names } in run {
                watch.advance(block.len() as u64)?;
                step(&mut state, block, Some(names).filter(|_| with_labels))?;
            }
            Ok(state)
        };
        in_order(runs, work, |state| merge(state).map_err(Error::Core))
    }

    fn pass_in_place<S: Send>(
        &self,
        in_place: &InPlace,
        with_labels: bool,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block, Option<&Names>) -> leakscope_core::Result<()> + Sync,
        mut merge: impl FnMut(S) -> leakscope_core::Result<()>,
    ) -> Result<()> {
        let Some(memory) = self.table.in_memory() else { return Ok(()) };
        let plan = if with_labels { &self.labelled } else { &self.plan };
        let wants = &plan.layout.wants;
        let watch = self.hooks.watch(Stage::Pass, self.rows);
        let skip = if in_place.matrix.is_some() { plan.layout.features } else { 0 };
        let work = |run: &Vec<Range<usize>>| {
            let mut state = start();
            let mut encoder = Encoder::new(&self.table, plan);
            let mut batch = Batch::new(wants);
            let mut names = Names::new(plan.layout.id.is_some());
            let mut dictionaries = vec![];
            for rows in run {
                watch.advance(rows.len() as u64)?;
                memory.read(rows.clone(), (wants, skip), &mut dictionaries, &mut batch)?;
                match &in_place.matrix {
                    Some((matrix, steps)) => encoder.encode_with(&batch, |_, x, stride| {
                        matrix.read_rows(rows.clone(), steps, x, stride)
                    })?,
                    None => encoder.encode(&batch)?,
                }
                encoder.block.first_row = rows.start as u64;
                if with_labels {
                    names.of_batch(plan, &batch, &encoder.selected);
                }
                step(&mut state, &encoder.block, Some(&names).filter(|_| with_labels))?;
            }
            Ok(state)
        };
        in_order(&in_place.runs, work, |state| merge(state).map_err(Error::Core))
    }

    fn stream<S: Send>(
        &self,
        with_labels: bool,
        start: impl Fn() -> S + Sync,
        step: impl Fn(&mut S, &Block, Option<&Names>) -> leakscope_core::Result<()> + Sync,
        mut merge: impl FnMut(S) -> leakscope_core::Result<()>,
    ) -> Result<()> {
        let table = &self.table;
        let plan = if with_labels { &self.labelled } else { &self.plan };
        let mut seen = 0;
        table.fold_runs(
            (&plan.layout.wants, plan.batch_rows),
            (&self.hooks, Stage::Pass),
            (
                |split| {
                    let names = Names::new(plan.layout.id.is_some());
                    (Encoder::new(table, plan), self.first_rows[split], names, 0_u64)
                },
                &start,
            ),
            |(encoder, next_row, names, rows), state, batch| {
                encoder.encode(batch)?;
                if encoder.block.is_empty() {
                    return Ok(());
                }
                encoder.block.first_row = *next_row;
                *next_row += encoder.block.len() as u64;
                *rows += encoder.block.len() as u64;
                if with_labels {
                    names.of_batch(plan, batch, &encoder.selected);
                }
                step(state, &encoder.block, Some(&*names).filter(|_| with_labels))?;
                Ok(())
            },
            |(_, _, _, rows), states| {
                seen += rows;
                states.into_iter().try_for_each(&mut merge).map_err(Error::Core)
            },
        )?;
        if !self.counted || seen == self.rows {
            return Ok(());
        }
        Err(Error::Changed { path: table.first_path() })
    }
}

impl Rows for Dataset {
    fn width(&self) -> usize {
        self.plan.width
    }

    fn len(&self) -> u64 {
        self.rows
    }

    fn split_sizes(&self) -> Vec<usize> {
        self.run_counts.clone()
    }

    fn elsewhere(&self) -> Option<Away<'_>> {
        self.away.as_ref().map(|away| Away::new(away))
    }

    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> leakscope_core::Result<()> {
        let step = |part: &mut Box<dyn Part + 's>, block: &Block, _: Option<&Names>| part.step(block);
        self.pass(false, start, step, merge).map_err(Into::into)
    }
}

/// As [`Part`], with the ids of the rows.
trait LabelledPart: Send {
    fn step(&mut self, block: &Block, labels: &Labels) -> leakscope_core::Result<()>;

    fn hand_over(self: Box<Self>);
}

/// The part of a labelled fold: its state travels through the slot, where it has its type again.
struct Folded<'a, S, F> {
    state: S,
    step: &'a F,
    slot: &'a Mutex<Option<S>>,
}

impl<S, F> LabelledPart for Folded<'_, S, F>
where
    S: Send,
    F: Fn(&mut S, &Block, &Labels) -> leakscope_core::Result<()> + Sync,
{
    fn step(&mut self, block: &Block, labels: &Labels) -> leakscope_core::Result<()> {
        (self.step)(&mut self.state, block, labels)
    }

    fn hand_over(self: Box<Self>) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.state);
    }
}
