//! The first pass: ranges, means, levels, missing values and duplicate ids of every used column.

use crate::batch::{Batch, Cells, Levels, MISSING, Reading, Want};
use crate::column::{Role, Roles};
use crate::duplicates::{self, EqualRows, RowHashes, hash_text};
use crate::encoding::{EncodeOptions, Missing, TargetKind};
use crate::error::TargetError;
use crate::hooks::{Hooks, Stage};
use crate::layout::{Layout, block_rows};
use crate::machines::{Away, Kind as WorkKind, Work};
use crate::moments::{Distinct, FEW, Moments};
use crate::schema::SchemaError;
use crate::table::Table;
use crate::{Error, Result};
use leakscope_core::error::Damage;
use leakscope_core::pass::{bytes, overflowing};
use leakscope_core::rows::States;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// More levels than this look like an identifier.
pub(crate) const MAX_LEVELS: usize = 10_000;
/// Fewer rows than this are too few to tell an identifier from a category.
const MIN_IDENTIFIED: u64 = 20;

/// What one pass over the table found. Statistics are those of the training rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Profile {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: u64,
    pub(crate) dropped: u64,
    pub(crate) training: u64,
    pub(crate) held_out: u64,
    #[serde(serialize_with = "overflowing::number")]
    pub(crate) weight_sum: f64,
    id_hashes: Vec<u64>,
    /// Hashes of the training rows; `None` where there are too many.
    row_hashes: Option<RowHashes>,
    /// Training rows that repeat an earlier one; known once all rows were read.
    #[serde(skip)]
    pub(crate) copies: Option<EqualRows>,
    /// The most rows that have one id; known then too.
    #[serde(skip)]
    pub(crate) rows_of_one: u64,
    #[serde(skip)]
    scratch: Scratch,
}

#[derive(Debug, Default)]
struct Scratch {
    training: Vec<u32>,
    incomplete: Vec<bool>,
    values: Vec<f64>,
}

/// What was found in one cell column.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) missing: u64,
    pub(crate) numbers: Moments,
    pub(crate) levels: BTreeMap<Box<str>, u64>,
    pub(crate) distinct: Distinct,
    /// Values outside the bounds, in all rows.
    pub(crate) outside: u64,
    /// Whether there are so many different texts that they name the rows; levels are then not counted.
    pub(crate) identifies: bool,
    /// Whether one row decides that.
    hangs: bool,
    /// Levels of this split where they are too many to count each.
    crowd: u64,
    /// Cells of a category that have a value, in all rows.
    present: u64,
    /// Hash of each level by code of this split.
    #[serde(skip)]
    name_hashes: Vec<u64>,
    /// Counts by code of this split, before they are merged by name.
    names: Vec<Box<str>>,
    counts: Vec<u64>,
}

/// How often each value of a column occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Values in sorted order, as they stand in the files, with their counts.
    pub values: Vec<(String, u64)>,
    /// Rows without a value.
    pub missing: u64,
}

impl Table {
    /// Counts the values of one column, read as a category; `flag` is what an error about its name speaks of.
    pub fn counts(&self, flag: &'static str, column: &str, hooks: &Hooks) -> Result<Counts> {
        let at = self.column(flag, column)?;
        let layout = Layout {
            wants: vec![Want { column: at, reading: Reading::Level }],
            names: vec![self.columns()[at].name.clone()],
            roles: vec![Role::Group],
            ..Layout::default()
        };
        let profiling = Profiling::of_layout(layout, &EncodeOptions::default());
        let profile = profiling.settled(profiling.run(self, hooks)?)?;
        let Some(counted_column) = profile.columns.first() else { return Err(Error::NoFeatures) };
        let values = counted_column
            .levels
            .iter()
            .filter(|l| *l.1 > 0)
            .map(|(name, n)| (name.to_string(), *n))
            .collect();
        Ok(Counts { values, missing: counted_column.missing })
    }
}

/// The first pass over a table, as a value: it reads raw cells, where all others read what it taught to encode.
#[derive(Debug, Clone)]
pub struct Profiling {
    pub(crate) layout: Layout,
    pub(crate) options: EncodeOptions,
    left_out: Vec<String>,
    /// What the columns are for, as another machine must be told.
    roles: Option<Roles>,
}

/// What another machine must be told to profile a split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProfileTask {
    pub(crate) roles: Roles,
    pub(crate) options: EncodeOptions,
    pub(crate) left_out: Vec<String>,
}

/// What the bytes of a profile are called.
const KIND: &str = "the profile of a table";

fn damaged(content: String) -> Error {
    Error::Core(leakscope_core::Error::Bytes { subject: KIND, damage: Damage::Content(content) })
}

impl Profiling {
    /// Checks roles and options against the columns of a table.
    pub fn new(table: &Table, roles: &Roles, options: &EncodeOptions) -> Result<Self> {
        if let Some(h) = options.holdout
            && !(h.fraction > 0.0 && h.fraction < 1.0)
        {
            return Err(Error::Holdout { fraction: h.fraction });
        }
        let (matched, facts) = options.public.matched(table, roles)?;
        let layout = Layout::from_roles(table, &matched, &facts)?;
        Ok(Self { roles: Some(roles.clone()), ..Self::of_layout(layout, options) })
    }

    pub(crate) fn of_layout(layout: Layout, options: &EncodeOptions) -> Self {
        Self { layout, options: options.clone(), left_out: vec![], roles: None }
    }

    /// The same without some features, by name; names of other columns are passed over.
    pub fn without(&self, features: &[String]) -> Result<Self> {
        let is_left_out = |i: &usize| features.contains(&self.layout.names[*i]);
        let places: Vec<usize> = (0..self.layout.features).filter(is_left_out).collect();
        let names = places.iter().map(|i| self.layout.names[*i].clone());
        let left_out = self.left_out.iter().cloned().chain(names).collect();
        let (options, roles) = (self.options.clone(), self.roles.clone());
        Ok(Self { layout: self.layout.without(&places)?, options, left_out, roles })
    }

    /// Features that are left out, because they name the rows.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The profile of no rows.
    pub fn start(&self) -> Profile {
        Profile::new(&self.layout, self.layout.target.is_some())
    }

    /// Reads a table, or one split of it, once.
    pub fn run(&self, table: &Table, hooks: &Hooks) -> Result<Profile> {
        let Self { layout, options, .. } = self;
        if let (Some(away), Some(roles)) = (&table.away, &self.roles) {
            let (roles, left_out) = (roles.clone(), self.left_out.clone());
            let task = ProfileTask { roles, options: options.clone(), left_out };
            return self.run_elsewhere(away, &Work::new(WorkKind::Profile, &task)?);
        }
        let with_hashes = layout.target.is_some() && table.rows(hooks)? <= duplicates::MAX_ROWS;
        let mut all = self.start();
        table.fold(
            (&layout.wants, block_rows(layout.wants.len())),
            (hooks, Stage::Profile),
            |_| Profile::new(layout, with_hashes),
            |profile, batch| profile.add(batch, table, layout, options),
            |profile| {
                if table.is_split() {
                    // Whether a column has too many levels is judged beside the splits before this one.
                    all = profile;
                    return Ok(());
                }
                all.merge(profile, layout)
            },
        )?;
        Ok(all)
    }

    /// The profile of splits that others read.
    fn run_elsewhere(&self, away: &Away, work: &Work) -> Result<Profile> {
        let states = match away.states(work)? {
            States::Merged(profile) => return self.from_bytes(&profile),
            States::Splits(states) => states,
        };
        let mut total = self.start();
        for (split, state) in away.splits().splits.iter().zip(&states) {
            let merged = self.from_bytes(state).and_then(|profile| self.merge(&mut total, profile));
            merged.map_err(|error| error.in_part(split.number, &split.path))?;
        }
        away.keep(work, &self.to_bytes(&total)?)?;
        Ok(total)
    }

    /// A profile as it is once merged: levels by name, and judged. One that was merged stays what it is.
    pub(crate) fn settled(&self, profile: Profile) -> Result<Profile> {
        let mut total = self.start();
        total.merge(profile, &self.layout)?;
        Ok(total)
    }

    /// Adds the profile of later rows.
    pub fn merge(&self, total: &mut Profile, later: Profile) -> Result<()> {
        total.merge(later, &self.layout)
    }

    /// A profile as bytes.
    pub fn to_bytes(&self, profile: &Profile) -> Result<Vec<u8>> {
        bytes::write(KIND, self.key()?, profile).map_err(Error::Core)
    }

    /// Tells this pass from one over other columns, or with other options: the checksum of both.
    fn key(&self) -> Result<u64> {
        // As text, which leaves nothing open where fields are left out.
        let text = serde_json::to_string(&(&self.layout.names, &self.options));
        let text = text.map_err(|e| damaged(e.to_string()))?;
        let of_both = bytes::write(KIND, 0, &text).map_err(Error::Core)?;
        Ok(of_both.iter().rev().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte)))
    }

    /// The profile that [`Profiling::to_bytes`] wrote.
    pub fn from_bytes(&self, bytes: &[u8]) -> Result<Profile> {
        let profile: Profile = bytes::read(KIND, self.key()?, bytes).map_err(Error::Core)?;
        if profile.columns.len() == self.layout.wants.len() {
            return Ok(profile);
        }
        Err(damaged("the profile has other columns".into()))
    }

    /// What can be said once all rows were read: how many are copies, that ids are unique, and that not all weights are
    /// zero.
    pub(crate) fn check(&self, profile: &mut Profile, table: &Table, hooks: &Hooks) -> Result<()> {
        let layout = &self.layout;
        profile.copies = profile.row_hashes.take().map(RowHashes::copies);
        profile.rows_of_one = 1;
        if layout.id.is_some() && self.options.repeated_ids {
            profile.id_hashes.par_sort_unstable();
            let runs = profile.id_hashes.chunk_by(|a, b| a == b);
            profile.rows_of_one = runs.map(|run| run.len() as u64).max().unwrap_or(1);
            profile.id_hashes.clear();
        } else if layout.id.is_some() {
            profile.check_ids(table, layout, hooks)?;
        }
        if let Some(w) = layout.weights
            && profile.training > 0
            && profile.weight_sum == 0.0
            && profile.columns[w].numbers.count > 0
        {
            return Err(Error::ZeroWeights { column: layout.names[w].clone() });
        }
        Ok(())
    }
}

impl Column {
    /// Counts the levels of the training rows. Not if they are too many for now: whether those name the rows or come back
    /// is known at the end of the split.
    fn add_levels(
        &mut self,
        levels: &Levels,
        training: &[u32],
        (i, batch, table, layout): (usize, &Batch, &Table, &Layout),
    ) -> Result<bool> {
        let names = levels.names.names();
        self.present += levels.codes.iter().filter(|c| **c != MISSING).count() as u64;
        if names.len() > MAX_LEVELS {
            if !is_guess(layout, i) {
                return Err(too_many(layout, i, names));
            }
            self.crowd = names.len() as u64;
            return Ok(false);
        }
        if let Some(known) = &layout.facts(i).levels {
            check_listed(batch, (i, self.names.len()), known, table, layout)?;
        }
        self.name_hashes.extend(names[self.names.len()..].iter().map(|n| hash_text(n)));
        self.names.extend_from_slice(&names[self.names.len()..]);
        self.counts.resize(names.len(), 0);
        for r in training {
            let code = levels.codes[*r as usize];
            if code != MISSING {
                self.counts[code as usize] += 1;
            }
        }
        Ok(true)
    }
}

impl Profile {
    fn new(layout: &Layout, with_hashes: bool) -> Self {
        Self {
            columns: layout.wants.iter().map(|_| Column::default()).collect(),
            row_hashes: with_hashes.then(RowHashes::default),
            ..Self::default()
        }
    }

    fn add(&mut self, batch: &Batch, table: &Table, layout: &Layout, options: &EncodeOptions) -> Result<()> {
        self.count_rows(batch, options);
        let training = std::mem::take(&mut self.scratch.training);
        let mut values = std::mem::take(&mut self.scratch.values);
        if let Some(hashes) = &mut self.row_hashes {
            hashes.begin(training.len());
        }
        for (i, (cells, column)) in batch.cells.iter().zip(&mut self.columns).enumerate() {
            if cells.any_missing() {
                column.missing += (0..batch.len).filter(|r| cells.is_missing(*r)).count() as u64;
            }
            match cells {
                Cells::Number(numbers) => {
                    let all = numbers.values();
                    let bounds = layout.facts(i).bounds;
                    let clip = bounds.filter(|_| layout.facts(i).clip);
                    if let Some(bounds) = bounds {
                        column.outside += all.iter().filter(|x| bounds.excludes(**x)).count() as u64;
                    }
                    let selected: &[f64] =
                        if training.len() == batch.len && !cells.any_missing() && clip.is_none() {
                            all
                        } else {
                            values.clear();
                            values.extend(training.iter().map(|r| all[*r as usize]).filter(|x| !x.is_nan()));
                            if let Some(bounds) = clip {
                                values.iter_mut().for_each(|x| *x = bounds.clip(*x));
                            }
                            &values
                        };
                    column.numbers.merge(Moments::of(selected));
                    match layout.roles[i] {
                        Role::Target => {
                            selected.iter().for_each(|x| column.distinct.add(*x, 1));
                            let place = |r: usize| (table.place(batch, r), layout.names[i].clone(), all[r]);
                            let first =
                                |outside: fn(f64) -> bool| all.iter().position(|x| outside(*x)).map(place);
                            let refused = match options.target {
                                TargetKind::Count => first(|x| x < 0.0).map(|(place, column, value)| {
                                    TargetError::NegativeCount { place, column, value }
                                }),
                                TargetKind::Positive => first(|x| x <= 0.0).map(|(place, column, value)| {
                                    TargetError::NotPositive { place, column, value }
                                }),
                                TargetKind::Number { .. }
                                | TargetKind::TwoClass01
                                | TargetKind::Classes { .. } => None,
                            };
                            if let Some(error) = refused {
                                return Err(error.into());
                            }
                        }
                        Role::Weights => {
                            self.weight_sum += selected.iter().sum::<f64>();
                            if let Some(r) = all.iter().position(|x| *x < 0.0) {
                                let (place, value) = (table.place(batch, r), all[r]);
                                return Err(Error::Weight { place, column: layout.names[i].clone(), value });
                            }
                        }
                        Role::Feature | Role::Id | Role::Group => {}
                    }
                }
                Cells::Level(levels) => {
                    if !column.add_levels(levels, &training, (i, batch, table, layout))? {
                        continue;
                    }
                }
                Cells::Text(texts) => {
                    let present = (0..batch.len).filter(|r| !cells.is_missing(*r));
                    self.id_hashes.extend(present.map(|r| hash_text(texts.get(r))));
                }
            }
            if let Some(hashes) = &mut self.row_hashes {
                hashes.add(cells, &training, &column.name_hashes);
            }
        }
        self.scratch.training = training;
        self.scratch.values = values;
        Ok(())
    }

    /// Counts the rows of a batch and collects its training rows.
    fn count_rows(&mut self, batch: &Batch, options: &EncodeOptions) {
        let Scratch { training, incomplete, .. } = &mut self.scratch;
        incomplete.clear();
        if options.missing == Missing::Drop && batch.cells.iter().any(Cells::any_missing) {
            incomplete.extend((0..batch.len).map(|r| batch.cells.iter().any(|c| c.is_missing(r))));
        }
        training.clear();
        self.rows += batch.len as u64;
        for r in 0..batch.len {
            if incomplete.get(r).is_some_and(|x| *x) {
                self.dropped += 1;
            } else if options.holdout.is_some_and(|h| h.holds(batch.first_row + r as u64)) {
                self.held_out += 1;
            } else {
                training.push(r as u32);
            }
        }
        self.training += training.len() as u64;
    }

    fn merge(&mut self, other: Self, layout: &Layout) -> Result<()> {
        self.rows += other.rows;
        self.dropped += other.dropped;
        self.training += other.training;
        self.held_out += other.held_out;
        self.weight_sum += other.weight_sum;
        self.id_hashes.extend(other.id_hashes);
        // A split does not know how many rows the others have: beyond the limit nobody has hashes.
        self.row_hashes = match (self.row_hashes.take(), other.row_hashes) {
            (Some(hashes), Some(later)) if self.rows <= duplicates::MAX_ROWS => Some(hashes.merged(later)),
            (Some(_) | None, Some(_) | None) => None,
        };
        for (i, (column, added)) in self.columns.iter_mut().zip(other.columns).enumerate() {
            column.missing += added.missing;
            column.outside += added.outside;
            column.present += added.present;
            if added.identifies {
                column.hangs = added.hangs && (column.hangs || !column.identifies);
                column.identifies = true;
            }
            column.numbers.merge(added.numbers);
            added.distinct.values.iter().for_each(|(value, count)| column.distinct.add(*value, *count));
            column.distinct.more |= added.distinct.more;
            // Counts of one split are by code, those of several by name.
            let of_split = added.names.into_iter().zip(added.counts).filter(|(_, count)| *count > 0);
            for (name, count) in added.levels.into_iter().chain(of_split) {
                *column.levels.entry(name).or_default() += count;
            }
            let levels = column.levels.len() as u64;
            let many = added.crowd > 0 || column.levels.len() > MAX_LEVELS;
            if many && is_guess(layout, i) {
                let seen = [(added.crowd, added.present), (levels, column.present)];
                let clear = |(levels, cells): &(u64, u64)| {
                    nearly_all(*levels, *cells) && !hangs_on_one(*levels, *cells)
                };
                // Nothing hangs where one part of the rows decides it clearly.
                let decided = column.identifies && !column.hangs;
                column.identifies |= seen.iter().any(|(levels, cells)| nearly_all(*levels, *cells));
                column.hangs = column.identifies && !decided && !seen.iter().any(clear);
            }
            if column.identifies {
                column.levels.clear();
            } else if many {
                let names: Vec<Box<str>> = column.levels.keys().cloned().collect();
                return Err(too_many(layout, i, &names));
            }
        }
        Ok(())
    }

    /// Eight bytes a row find the candidates; a pass over the id column confirms them.
    fn check_ids(&mut self, table: &Table, layout: &Layout, hooks: &Hooks) -> Result<()> {
        let mut hashes = std::mem::take(&mut self.id_hashes);
        hashes.par_sort_unstable();
        let mut twice: Vec<u64> = hashes.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
        twice.dedup();
        drop(hashes);
        if twice.is_empty() {
            return Ok(());
        }
        let wants: Vec<_> = layout.wants.iter().filter(|w| w.reading == Reading::Text).copied().collect();
        let mut seen: HashMap<String, crate::Place> = HashMap::new();
        table.fold_in_sequence((&wants, 8192), (hooks, Stage::Profile), |batch| {
            let texts = batch.texts(0);
            for r in (0..batch.len).filter(|r| !batch.cells[0].is_missing(*r)) {
                let id = texts.get(r);
                if twice.binary_search(&hash_text(id)).is_err() {
                    continue;
                }
                let second = table.place(batch, r);
                if let Some(first) = seen.insert(id.to_string(), second.clone()) {
                    let column = layout.id.map(|i| layout.names[i].clone()).unwrap_or_default();
                    return Err(Error::DuplicateId {
                        column,
                        id: crate::words::truncated(id),
                        first: Box::new(first),
                        second: Box::new(second),
                    });
                }
            }
            Ok(())
        })
    }
}

fn too_many(layout: &Layout, i: usize, names: &[Box<str>]) -> Error {
    let column = layout.names[i].clone();
    if layout.roles[i] == Role::Target {
        let mut first_names: Vec<String> =
            names.iter().take(FEW).map(|n| crate::words::truncated(n)).collect();
        first_names.sort();
        return TargetError::ManyClasses { column, classes: first_names, more: true }.into();
    }
    Error::TooManyLevels { column, limit: MAX_LEVELS }
}

/// Whether one row more, fewer or with another text would make so many texts name the rows, or no longer.
fn hangs_on_one(levels: u64, cells: u64) -> bool {
    let now = nearly_all(levels, cells);
    let fewer = (levels.saturating_sub(1), cells.saturating_sub(1));
    let others = [
        (fewer.0, cells),
        (levels + 1, cells),
        (fewer.0, fewer.1),
        (levels, fewer.1),
        (levels, cells + 1),
        (levels + 1, cells + 1),
    ];
    others.into_iter().any(|(levels, cells)| nearly_all(levels, cells) != now)
}

/// Whether so many different texts in so many cells name the rows.
fn nearly_all(levels: u64, cells: u64) -> bool {
    cells >= MIN_IDENTIFIED && 10 * levels > 9 * cells
}

/// Whether nobody said what a column is, so that it may be an identifier.
fn is_guess(layout: &Layout, i: usize) -> bool {
    layout.roles[i] == Role::Feature && !layout.facts(i).declared
}

impl Column {
    /// Whether its texts name the rows rather than classify them.
    pub(crate) fn is_identifier(&self) -> bool {
        self.identifies || nearly_all(self.levels.len() as u64, self.levels.values().sum())
    }

    /// Whether one row decides that.
    pub(crate) fn hangs_on_one(&self) -> bool {
        if self.identifies {
            return self.hangs;
        }
        // One level more than can be counted is an error, unless they name the rows.
        let full = self.levels.len() == MAX_LEVELS && !self.is_identifier();
        full || hangs_on_one(self.levels.len() as u64, self.levels.values().sum())
    }
}

/// Whether the levels that a batch brought from code `start` on are among the listed ones.
fn check_listed(
    batch: &Batch,
    (i, start): (usize, usize),
    known: &[String],
    table: &Table,
    layout: &Layout,
) -> Result<()> {
    let levels = batch.levels(i);
    let is_new = |name: &str| known.binary_search_by(|k| k.as_str().cmp(name)).is_err();
    let unknown = levels.names.names()[start..].iter().position(|n| is_new(n));
    let Some(code) = unknown.map(|k| (start + k) as u32) else { return Ok(()) };
    let row = levels.codes.iter().position(|c| *c == code).unwrap_or(0);
    Err(Error::Schema(SchemaError::NotALevel {
        place: Box::new(table.place(batch, row)),
        column: layout.names[i].clone(),
        value: crate::words::truncated(&levels.names.names()[code as usize]),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No split has too many rows, all of them together do.
    #[test]
    fn copies_are_not_looked_for_beyond_the_limit() {
        let layout = Layout::default();
        let of_rows = |rows| Profile { rows, ..Profile::new(&layout, true) };
        let mut total = of_rows(0);
        total.merge(of_rows(duplicates::MAX_ROWS), &layout).unwrap();
        assert!(total.row_hashes.is_some());
        total.merge(of_rows(1), &layout).unwrap();
        assert!(total.row_hashes.is_none());
        total.merge(of_rows(0), &layout).unwrap();
        assert!(total.row_hashes.is_none());
    }
}
