//! The measuring pass with labels: rows that the page speaks of get their names, and every record goes to a table.

use crate::labelled::{LabelledPass, Names};
use leakscope_core::Result;
use leakscope_core::fisher::Records;
use leakscope_core::fisher::softmax::SoftmaxRecords;
use leakscope_core::measure::{Measure, Series, SoftmaxMeasure, Tally};
use leakscope_core::pass::{Merge, Pass};
use leakscope_core::rows::Block;
use leakscope_table::{Labels, RecordsPart, RecordsSchema};
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// A pass of core that measures records, as a table of records sees it.
pub(crate) trait Measures: Pass<State: Deref<Target = Tally>> {
    /// What the bytes of the pass with labels are called.
    const LABELLED: &'static str;

    /// What records are told apart by.
    fn series(&self) -> Series;

    /// η, dFIL, loss and norm of the gradient of the records of the last block, and η of their attributes.
    fn last(state: &Self::State) -> ([&[f64]; 4], &[f64]);

    /// η of the label of record `i` of the last block, where it is secret.
    fn label_eta(&self, state: &Self::State, i: usize) -> Option<f64>;
}

impl Measures for Measure<'_> {
    const LABELLED: &'static str = "records, measured and named";

    fn series(&self) -> Series {
        self.series
    }

    fn last(state: &Self::State) -> ([&[f64]; 4], &[f64]) {
        let Records { eta, dfil, loss, gradient_norm, attribute_eta, .. } = state.last();
        ([eta, dfil, loss, gradient_norm], attribute_eta)
    }

    fn label_eta(&self, state: &Self::State, i: usize) -> Option<f64> {
        let secret = self.geometry.release().label_secret;
        secret.then(|| self.geometry.label_eta(state.last(), i))
    }
}

impl Measures for SoftmaxMeasure<'_> {
    const LABELLED: &'static str = "records of a softmax model, measured and named";

    fn series(&self) -> Series {
        self.series
    }

    fn last(state: &Self::State) -> ([&[f64]; 4], &[f64]) {
        let SoftmaxRecords { eta, dfil, loss, gradient_norm, attribute_eta, .. } = state.last();
        ([eta, dfil, loss, gradient_norm], attribute_eta)
    }

    fn label_eta(&self, state: &Self::State, i: usize) -> Option<f64> {
        self.geometry.release().label_secret.then(|| state.last().label_eta[i])
    }
}

/// The pass, and what names and writes records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measuring<P> {
    pub(super) pass: P,
    /// Of every attribute: its place in the geometry, and that of its variant under the constraint.
    pub(super) slots: Vec<(usize, Option<usize>)>,
    /// Names of the series.
    pub(super) series: Vec<String>,
    /// Columns of the table of a part, where there is to be one.
    pub(super) schema: Option<RecordsSchema>,
}

/// What the pass found, with the names of the rows to speak of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Named<S> {
    pub(super) sums: S,
    pub(super) names: Names,
    #[serde(skip)]
    numbers: Vec<f64>,
}

impl<S: Merge + Deref<Target = Tally>> Merge for Named<S> {
    fn merge(&mut self, later: Self) {
        self.sums.merge(later.sums);
        self.names.merge(later.names, self.sums.rows_to_name());
    }
}

impl<P: Measures> Measuring<P> {
    fn write(
        &self,
        state: &mut Named<P::State>,
        block: &Block,
        labels: &Labels,
        part: &mut RecordsPart,
    ) -> leakscope_table::Result<()> {
        let Named { sums, numbers, .. } = state;
        let (of_records, attribute_eta) = P::last(sums);
        let (count, series) = (sums.attributes.len(), self.pass.series());
        for i in 0..block.len() {
            let of_record = &attribute_eta[i * count..(i + 1) * count];
            numbers.clear();
            numbers.extend(of_records.iter().map(|of| of[i]));
            numbers.extend(self.slots.iter().map(|s| of_record[s.0]));
            numbers.extend(self.slots.iter().filter_map(|s| s.1).map(|k| of_record[k]));
            numbers.extend(self.pass.label_eta(sums, i));
            let name = self.series.get(series.index(block, i) as usize).map_or("", String::as_str);
            let texts: &[&str] = if series == Series::All { &[] } else { &[name] };
            part.push_at(labels.positions[i], &labels.ids[i], texts, numbers)?;
        }
        Ok(())
    }
}

impl<P: Measures> LabelledPass for Measuring<P> {
    const NAME: &'static str = P::LABELLED;
    const TABLE: &'static str = "records";
    type State = Named<P::State>;

    fn schema(&self) -> Option<&RecordsSchema> {
        self.schema.as_ref()
    }

    fn start(&self) -> Named<P::State> {
        Named { sums: self.pass.start(), names: Names::default(), numbers: vec![] }
    }

    fn step(
        &self,
        state: &mut Named<P::State>,
        block: &Block,
        labels: &Labels,
        table: Option<&mut RecordsPart>,
    ) -> Result<()> {
        self.pass.step(&mut state.sums, block)?;
        state.names.note(state.sums.rows_to_name(), block, labels);
        match table {
            Some(part) => Ok(self.write(state, block, labels, part)?),
            None => Ok(()),
        }
    }

    fn fits(&self, state: &Named<P::State>) -> bool {
        self.pass.fits(&state.sums)
    }
}
