//! The own ε of training records, read back from the table that the run left.

use super::super::model::Model;
use super::subject::Records;
use crate::Result;
use leakscope_net::Real;
use leakscope_table::record_numbers;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The own ε of the training records, by their place; empty where the run kept no accounts.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnEpsilons {
    /// NaN where a record has no account: what the run promises to all holds for it.
    epsilons: Vec<f64>,
    /// What holds for a record without an account.
    of_run: f64,
    /// Why there are none, where the reader should know.
    pub(super) remark: Option<String>,
}

impl OwnEpsilons {
    /// Of the run whose folder this is. Records are matched by their id.
    pub(super) fn beside<T: Real>(folder: &Path, model: &Model<T>, members: &Records<T>) -> Result<Self> {
        let Some(training) = &model.training else { return Ok(Self::default()) };
        let promise = training.privacy.as_ref().and_then(|p| p.promise.as_ref());
        let listed = training.tables.iter().find(|t| t.starts_with("records."));
        let (Some(promise), Some(name)) = (promise, listed) else { return Ok(Self::default()) };
        // The name comes from a document: it must not lead out of its folder.
        let path = PathBuf::from(name).file_name().map(|file| folder.join(file)).filter(|p| p.is_file());
        let Some(path) = path else {
            let remark = format!(
                "What records’ own accounts allow is not shown: {name} is not beside the model any more."
            );
            return Ok(Self { remark: Some(remark), ..Self::default() });
        };
        let Some(numbers) = record_numbers(&path, "epsilon")? else { return Ok(Self::default()) };
        let followed = record_numbers(&path, "followed")?.map(|f| f.numbers).unwrap_or_default();
        let mut by_id: HashMap<String, f64> = HashMap::new();
        for (i, (id, epsilon)) in numbers.ids.into_iter().zip(numbers.numbers).enumerate() {
            // a record that was not followed has the promise in its place, which is no account
            if followed.get(i).is_some_and(|f| *f > 0.5) && epsilon >= 0.0 {
                let own = by_id.entry(id).or_insert(epsilon);
                *own = own.max(epsilon);
            }
        }
        let own = |i: usize| by_id.get(&members.names.of(i)).copied().unwrap_or(f64::NAN);
        let epsilons: Vec<f64> = (0..members.data.len()).map(own).collect();
        if epsilons.iter().all(|e| e.is_nan()) {
            let remark = format!(
                "What records’ own accounts allow is not shown: {name} of the run has no account of any of these records."
            );
            return Ok(Self { remark: Some(remark), ..Self::default() });
        }
        Ok(Self { epsilons, of_run: promise.epsilon, remark: None })
    }

    /// Those of some records, the promise where a record has no account; none where there are no accounts.
    pub(super) fn of(&self, records: &[usize]) -> Option<Vec<f64>> {
        let one = |i: &usize| match self.epsilons.get(*i) {
            Some(e) if !e.is_nan() => e.min(self.of_run),
            _ => self.of_run,
        };
        (!self.epsilons.is_empty()).then(|| records.iter().map(one).collect())
    }

    /// How many of some records have an account.
    pub(super) fn accounted(&self, records: &[usize]) -> u64 {
        records.iter().filter(|i| self.epsilons.get(**i).is_some_and(|e| !e.is_nan())).count() as u64
    }
}
