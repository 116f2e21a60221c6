//! Batches of raw columns to blocks of encoded rows.

use crate::batch::{Batch, Cells, MISSING};
use crate::column::Role;
use crate::encoding::Missing;
use crate::error::TargetError;
use crate::place::Place;
use crate::plan::{NumberStep, Plan, Subset, TargetStep};
use crate::table::Table;
use crate::words::{meant, truncated};
use crate::{Error, Result};
use leakscope_core::linalg;
use leakscope_core::rows::Block;
use std::collections::HashMap;

/// A level that the encoding does not have.
const UNSEEN: u32 = u32::MAX - 1;
/// Rows written at a time: with the usual widths a tile stays in the first-level cache.
const TILE: usize = 32;

/// The state of encoding one split: buffers, and what the codes of this split mean.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    plan: &'a Plan,
    table: &'a Table,
    /// The encoded rows of the last batch.
    pub(crate) block: Block,
    /// Rows of the last batch that were taken, as offsets into it.
    pub(crate) selected: Vec<u32>,
    /// Rows left out because a value is missing.
    pub(crate) dropped: u64,
    /// Held-out rows left out because of a level that training did not have.
    pub(crate) unseen: u64,
    /// Level in the encoding for each code of the split: one per category, then the target's, then the
    /// group's.
    meanings: Vec<Vec<u32>>,
    raw: Vec<f64>,
    projected: Vec<f64>,
}

/// An unseen level with the one that was perhaps meant: as a text it may differ by a space or a full stop.
fn with_closest(mut error: Error, known: &HashMap<String, u32>) -> Error {
    if let Error::UnseenLevel { value, closest, .. } = &mut error {
        let near = meant(value, known.keys().map(String::as_str));
        *closest = near.into_iter().next().map(|level| truncated(&level));
    }
    error
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(table: &'a Table, plan: &'a Plan) -> Self {
        Self {
            plan,
            table,
            block: Block { width: plan.width, ..Block::default() },
            selected: Vec::with_capacity(plan.batch_rows),
            dropped: 0,
            unseen: 0,
            meanings: vec![Vec::new(); plan.categories.len() + 2],
            raw: Vec::new(),
            projected: Vec::new(),
        }
    }

    /// Chooses the rows of a batch: by subset, then by missing values, then by unseen levels.
    pub(crate) fn select(&mut self, batch: &Batch) -> Result<()> {
        let plan = self.plan;
        self.selected.clear();
        self.selected.extend((0..batch.len as u32).filter(|r| plan.takes(batch.first_row + u64::from(*r))));
        for (i, cells) in batch.cells.iter().enumerate().filter(|(_, c)| c.any_missing()) {
            match plan.missing {
                Missing::Drop => {
                    let before = self.selected.len();
                    self.selected.retain(|r| !cells.is_missing(*r as usize));
                    self.dropped += (before - self.selected.len()) as u64;
                }
                Missing::Mean if plan.layout.roles[i] == Role::Feature => {}
                Missing::Mean | Missing::Fail => {
                    if let Some(r) = self.selected.iter().find(|r| cells.is_missing(**r as usize)) {
                        let place = self.table.place(batch, *r as usize);
                        return Err(Error::MissingAt { place, column: plan.layout.names[i].clone() });
                    }
                }
            }
        }
        for (k, step) in plan.categories.iter().enumerate() {
            self.translate(batch, step.cell, (&step.levels, step.other), k)?;
        }
        let others = plan.categories.len();
        match (&plan.target, plan.layout.target) {
            (TargetStep::Levels { index, .. }, Some(cell)) => {
                self.translate(batch, cell, (index, None), others)?
            }
            (TargetStep::Values(classes), Some(cell)) => {
                let values = batch.numbers(cell).values();
                let known = |r: u32| classes.iter().any(|(v, _)| *v == values[r as usize]);
                self.keep(batch, cell, known, |r| values[r as usize].to_string())?;
            }
            (TargetStep::Count { .. }, Some(cell)) => {
                self.refuse_target(
                    batch,
                    cell,
                    |v| v < 0.0,
                    |place, column, value| TargetError::NegativeCount { place, column, value },
                )?;
            }
            (TargetStep::Positive { .. }, Some(cell)) => {
                self.refuse_target(
                    batch,
                    cell,
                    |v| v <= 0.0,
                    |place, column, value| TargetError::NotPositive { place, column, value },
                )?;
            }
            (TargetStep::Absent | TargetStep::Number { .. }, Some(_)) | (_, None) => {}
        }
        if let (Some(levels), Some(cell)) = (&plan.groups, plan.layout.group) {
            self.translate(batch, cell, (levels, None), others + 1)?;
        }
        if let Some(cell) = plan.layout.weights {
            let values = batch.numbers(cell).values();
            if let Some(r) = self.selected.iter().find(|r| values[**r as usize] < 0.0) {
                let (place, value) = (self.table.place(batch, *r as usize), values[*r as usize]);
                return Err(Error::Weight { place, column: plan.layout.names[cell].clone(), value });
            }
        }
        Ok(())
    }

    /// Looks up the levels that this batch brought, and deals with those that the encoding does not have.
    fn translate(
        &mut self,
        batch: &Batch,
        cell: usize,
        (known, other): (&HashMap<String, u32>, Option<u32>),
        slot: usize,
    ) -> Result<()> {
        let levels = batch.levels(cell);
        let names = levels.names.names();
        let meanings = &mut self.meanings[slot];
        let done = meanings.len();
        let otherwise = other.unwrap_or(UNSEEN);
        meanings.extend(names[done..].iter().map(|n| known.get(n.as_ref()).copied().unwrap_or(otherwise)));
        if !meanings.contains(&UNSEEN) {
            return Ok(());
        }
        let meanings = std::mem::take(meanings);
        let is_known = |r: u32| {
            let code = levels.codes[r as usize];
            code == MISSING || meanings[code as usize] != UNSEEN
        };
        let kept = self.keep(batch, cell, is_known, |r| names[levels.codes[r as usize] as usize].to_string());
        self.meanings[slot] = meanings;
        kept.map_err(|e| with_closest(e, known))
    }

    /// Leaves out held-out rows that are not `known`; elsewhere they are an error.
    fn keep(
        &mut self,
        batch: &Batch,
        cell: usize,
        known: impl Fn(u32) -> bool,
        value: impl Fn(u32) -> String,
    ) -> Result<()> {
        if self.plan.subset == Subset::HeldOut {
            let before = self.selected.len();
            self.selected.retain(|r| known(*r));
            self.unseen += (before - self.selected.len()) as u64;
        } else if let Some(r) = self.selected.iter().find(|r| !known(**r)) {
            return Err(Error::UnseenLevel {
                place: self.table.place(batch, *r as usize),
                column: self.plan.layout.names[cell].clone(),
                value: truncated(&value(*r)),
                closest: None,
            });
        }
        Ok(())
    }

    /// Encodes a batch into `self.block`, which may come out empty.
    pub(crate) fn encode(&mut self, batch: &Batch) -> Result<()> {
        self.encode_with(batch, |encoder, x, stride| encoder.fill(batch, x, stride))
    }

    /// As [`Encoder::encode`], where `fill` writes the features, `stride` numbers a row.
    pub(crate) fn encode_with(
        &mut self,
        batch: &Batch,
        fill: impl Fn(&Self, &mut [f64], usize),
    ) -> Result<()> {
        self.select(batch)?;
        let plan = self.plan;
        let n = self.selected.len();
        let mut x = std::mem::take(&mut self.block.x);
        x.resize(n * plan.width, 0.0);
        match &plan.pca {
            None => fill(self, &mut x, plan.width),
            Some(pca) => {
                let (p, k) = (plan.raw_width, pca.components);
                let mut raw = std::mem::take(&mut self.raw);
                raw.resize(n * p, 0.0);
                fill(self, &mut raw, p);
                for row in raw.chunks_exact_mut(p) {
                    row.iter_mut().zip(&pca.mean).for_each(|(v, m)| *v -= m);
                }
                self.projected.resize(n * k, 0.0);
                linalg::matmul(&raw, &pca.transposed, (n, p, k), &mut self.projected);
                for (row, z) in x.chunks_exact_mut(plan.width).zip(self.projected.chunks_exact(k)) {
                    row[..k].copy_from_slice(z);
                }
                self.raw = raw;
            }
        }
        if plan.intercept {
            x.chunks_exact_mut(plan.width).for_each(|row| row[plan.width - 1] = 1.0);
        }
        self.block.x = x;
        if plan.subset != Subset::Training {
            self.check_range(batch)?;
        }
        self.fill_target(batch);
        self.fill_weights_and_groups(batch);
        Ok(())
    }

    /// A value far outside the range of training may overflow when it is scaled.
    fn check_range(&self, batch: &Batch) -> Result<()> {
        if self.block.x.iter().fold(true, |all, x| all & x.is_finite()) {
            return Ok(());
        }
        let magnitude = |step: &NumberStep| {
            let values = batch.numbers(step.cell).values();
            let scaled = |v: f64| ((v - step.centre) / step.scale).abs();
            let worst = self.selected.iter().map(|r| values[*r as usize]).filter(|v| !v.is_nan());
            worst.max_by(|a, b| scaled(*a).total_cmp(&scaled(*b))).map(|v| (scaled(v), v, step.cell))
        };
        let worst = self.plan.numbers.iter().filter_map(magnitude).max_by(|a, b| a.0.total_cmp(&b.0));
        let (value, cell) = worst.map_or((0.0, 0), |(_, value, cell)| (value, cell));
        Err(Error::TooLarge { column: self.plan.layout.names[cell].clone(), value })
    }

    /// Writes the encoded columns of the selected rows, `stride` numbers a row.
    fn fill(&self, batch: &Batch, out: &mut [f64], stride: usize) {
        let plan = self.plan;
        if !plan.categories.is_empty() {
            out.fill(0.0);
        }
        let contiguous = self.selected.len() == batch.len;
        let columns: Vec<(&[f64], bool, &NumberStep)> = plan
            .numbers
            .iter()
            .map(|step| (batch.numbers(step.cell).values(), batch.cells[step.cell].any_missing(), step))
            .collect();
        // Columns to rows in tiles: every cache line of the block is written while it is close.
        for (t, tile) in out.chunks_mut(TILE * stride).enumerate() {
            let first = t * TILE;
            let rows = tile.len() / stride;
            for (values, any_missing, step) in &columns {
                let NumberStep { column, centre, scale, mean, clip, .. } = step;
                let encoded = |v: f64| (v - centre) / scale;
                let cells = tile.iter_mut().skip(*column).step_by(stride);
                if let Some(bounds) = clip {
                    for (cell, r) in cells.zip(&self.selected[first..first + rows]) {
                        let v = values[*r as usize];
                        *cell = encoded(if v.is_nan() { *mean } else { bounds.clip(v) });
                    }
                } else if *any_missing {
                    for (cell, r) in cells.zip(&self.selected[first..first + rows]) {
                        let v = values[*r as usize];
                        *cell = encoded(if v.is_nan() { *mean } else { v });
                    }
                } else if contiguous {
                    for (cell, v) in cells.zip(&values[first..first + rows]) {
                        *cell = encoded(*v);
                    }
                } else {
                    for (cell, r) in cells.zip(&self.selected[first..first + rows]) {
                        *cell = encoded(values[*r as usize]);
                    }
                }
            }
        }
        for (step, meanings) in plan.categories.iter().zip(&self.meanings) {
            let codes = &batch.levels(step.cell).codes;
            for (row, r) in out.chunks_exact_mut(stride).zip(&self.selected) {
                let code = codes[*r as usize];
                let level =
                    if code == MISSING { step.most_frequent } else { meanings[code as usize] } as usize;
                if step.places.contains(&level) {
                    row[step.first_column + level - step.places.start] = step.one;
                }
            }
        }
    }

    /// Refuses the first selected row whose target the model does not take.
    fn refuse_target(
        &self,
        batch: &Batch,
        cell: usize,
        outside: impl Fn(f64) -> bool,
        error: impl Fn(Place, String, f64) -> TargetError,
    ) -> Result<()> {
        let values = batch.numbers(cell).values();
        match self.selected.iter().find(|r| outside(values[**r as usize])) {
            None => Ok(()),
            Some(&r) => {
                let (place, column) =
                    (self.table.place(batch, r as usize), self.plan.layout.names[cell].clone());
                Err(error(place, column, values[r as usize]).into())
            }
        }
    }

    fn fill_target(&mut self, batch: &Batch) {
        let y = &mut self.block.y;
        y.clear();
        let selected = self.selected.iter().map(|r| *r as usize);
        let Some(cell) = self.plan.layout.target else {
            y.resize(self.selected.len(), 0.0);
            return;
        };
        match (&self.plan.target, &batch.cells[cell]) {
            (
                TargetStep::Number { clip } | TargetStep::Count { clip } | TargetStep::Positive { clip },
                Cells::Number(numbers),
            ) => {
                let values = numbers.values();
                y.extend(selected.map(|r| clip.map_or(values[r], |bounds| bounds.clip(values[r]))));
            }
            (TargetStep::Values(classes), Cells::Number(numbers)) => {
                let values = numbers.values();
                // Rows of other values were left out, or refused, before.
                let code = |r: usize| classes.iter().find(|(v, _)| *v == values[r]).map_or(0.0, |c| c.1);
                y.extend(selected.map(code));
            }
            (TargetStep::Levels { codes, .. }, Cells::Level(levels)) => {
                let meanings = &self.meanings[self.plan.categories.len()];
                y.extend(selected.map(|r| codes[meanings[levels.codes[r] as usize] as usize]));
            }
            _ => unreachable!("the target is read as its coding asks"),
        }
    }

    fn fill_weights_and_groups(&mut self, batch: &Batch) {
        let selected = self.selected.iter().map(|r| *r as usize);
        let Block { weight, group, .. } = &mut self.block;
        weight.clear();
        if let Some(cell) = self.plan.layout.weights {
            let values = batch.numbers(cell).values();
            weight.extend(selected.clone().map(|r| values[r] / self.plan.weight_mean));
        }
        group.clear();
        if let Some(cell) = self.plan.layout.group {
            let codes = &batch.levels(cell).codes;
            let meanings = &self.meanings[self.plan.categories.len() + 1];
            group.extend(selected.map(|r| meanings[codes[r] as usize]));
        }
    }
}
