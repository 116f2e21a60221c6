//! What is attacked: a model and the records whose gradients an attacker sees.

use super::super::audit::{choose, rows};
use super::super::data::{Names, Part, Reading, Source};
use super::super::memory::NetArrays;
use super::super::model::Model;
use super::super::table::{Coding, is_table};
use crate::{Failure, Result};
use leakscope_net::{Backend, Data, Network, Real, quality::Range};
use leakscope_report::net::{DataFacts, Training};
use leakscope_table::{Hooks, Subset};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A model, and records where there are any.
#[derive(Debug)]
pub struct Subject<T> {
    pub(super) model: Model<T>,
    pub(super) records: Option<Records<T>>,
}

/// Records that are attacked.
#[derive(Debug)]
pub(super) struct Records<T> {
    pub(super) data: Data<T>,
    pub(super) files: Vec<String>,
    pub(super) names: Names,
    /// Least and largest value.
    pub(super) range: [f64; 2],
    pub(super) scale: [f64; 2],
}

/// Which records of files.
pub(super) struct Reads<'a> {
    pub(super) data: &'a [PathBuf],
    pub(super) limit: Option<usize>,
    pub(super) normalize: Option<[f64; 2]>,
}

impl<T: Real> Subject<T> {
    /// A network and arrays.
    ///
    /// # Errors
    /// Where they do not fit.
    pub fn of_arrays(
        net: Network<T>,
        arrays: Option<NetArrays<T>>,
        training: Option<Training>,
    ) -> Result<Self> {
        let records = match arrays {
            None => None,
            Some(arrays) => {
                let mut source = arrays.source("x, y")?;
                let data = source.take_data(&net)?;
                Some(Records {
                    data,
                    files: source.files,
                    names: source.names,
                    range: source.range,
                    scale: [0.0, 1.0],
                })
            }
        };
        Ok(Self { model: Model { net, name: "network".into(), training }, records })
    }

    /// A model folder and files.
    pub(super) fn open(model: &Path, backend: Backend, reads: &Reads<'_>, hooks: &Hooks) -> Result<Self> {
        let folder = model;
        let model = Model::<T>::open(folder, "model", backend)?;
        if reads.data.is_empty() {
            return Ok(Self { model, records: None });
        }
        let trained_on = model.training.as_ref().map(|t| t.data.normalize);
        let scale = reads.normalize.or(trained_on).unwrap_or([0.0, 1.0]);
        if reads.limit == Some(0) {
            return Err(Failure::number("limit", 0, "expected at least 1"));
        }
        let mut source: Source<T> = match Coding::of_model(folder)?.map(Arc::new) {
            Some(coding) => rows(&coding, reads.data, ("data", Subset::Training), hooks)?,
            None => {
                if let Some(path) = reads.data.iter().find(|p| is_table(p)) {
                    let message = format!(
                        "{}: the model was not trained on a table: give the arrays that it was trained on",
                        path.display()
                    );
                    return Err(Failure::option("data", message));
                }
                let reading =
                    Reading { flag: "data", part: Part::Train, normalize: scale, limit: reads.limit };
                Source::read(reads.data, reading)?
            }
        };
        let data = source.take_data(&model.net)?;
        let (files, names, range) = (source.files, source.names, source.range);
        Ok(Self { model, records: Some(Records { data, files, names, range, scale }) })
    }
}

impl<T: Real> Records<T> {
    /// Some of them, drawn by the seed, ascending.
    pub(super) fn chosen(&self, records: Option<usize>, seed: u64) -> Result<Vec<usize>> {
        choose(records, self.data.len(), seed)
    }

    pub(super) fn facts(&self) -> DataFacts {
        DataFacts {
            files: self.files.clone(),
            records: self.data.len() as u64,
            test_records: None,
            normalize: self.scale,
            target: self.names.target(),
        }
    }

    /// The values of a record in double precision.
    pub(super) fn values(&self, record: usize) -> Vec<f64> {
        self.data.record(record).iter().map(|v| v.to_f64()).collect()
    }
}

/// The range that was asked for, or that of the records, or from 0 to 1.
pub(super) fn range(wanted: Option<[f64; 2]>, own: Option<[f64; 2]>) -> Result<Range> {
    let [low, high] = wanted.or(own).unwrap_or([0.0, 1.0]);
    if !(low < high && low.is_finite() && high.is_finite()) {
        let message = match wanted {
            Some(_) => format!("{low},{high}: expected the least and the largest value of a record"),
            None => format!("all values of the records are {low}: there is nothing to find"),
        };
        return Err(Failure::option("range", message));
    }
    Ok(Range { low, high })
}
