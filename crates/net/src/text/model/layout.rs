//! How a model was stored, and the files of one that was trained, stored the same way.

use super::Trained;
use super::decoder::{Decoder, Origin, Take};
use super::llama2c::Checkpoint;
use super::weights::Weights;
use crate::{Network, Real, Result, error::Error, io::Tensors};
use std::collections::{BTreeMap, BTreeSet};

const CONFIG: &str = "config.json";
const INDEX: &str = "model.safetensors.index.json";
/// The table of an output layer of its own.
const OUTPUT: &str = "lm_head.weight";

/// How a model was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub(super) decoder: Decoder,
    pub(super) prefix: &'static str,
    pub(super) part: Trained,
    pub(super) rank: usize,
    pub(super) stored: Stored,
}

/// The files it came from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stored {
    /// A folder of Hugging Face: its `config.json`, and every file of weights with the names of its arrays.
    Folder { config: String, shards: Vec<(String, Vec<String>)> },
    /// A checkpoint of llama2.c.
    Llama2c(Checkpoint),
}

impl Stored {
    pub(super) fn folder(config: String, weights: &Weights) -> Self {
        Self::Folder { config, shards: weights.shards() }
    }
}

/// A file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    /// Its name, without a folder.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl Layout {
    /// The files of a network of this layout, adapters added to the layers that they stand beside. An output layer that was
    /// trained apart from the embedding it shared is stored apart from it.
    ///
    /// # Errors
    /// A network of another layout.
    pub fn files<T: Real>(&self, network: &Network<T>) -> Result<Vec<ModelFile>> {
        let untied = self.decoder.tied && self.part == Trained::Last;
        let arrays = self.arrays(network)?;
        match &self.stored {
            Stored::Llama2c(checkpoint) => {
                let (name, bytes) = checkpoint.file(&self.decoder, &arrays, untied)?;
                Ok(vec![ModelFile { name, bytes }])
            }
            Stored::Folder { config, shards } => {
                let mut files = vec![ModelFile {
                    name: CONFIG.to_owned(),
                    bytes: configuration(config, untied)?.into_bytes(),
                }];
                files.extend(sharded::<T>(&arrays, shards)?);
                Ok(files)
            }
        }
    }

    /// Names of the files of [`Layout::files`].
    pub fn names(&self) -> Vec<String> {
        match &self.stored {
            Stored::Llama2c(checkpoint) => vec![checkpoint.name().to_owned()],
            Stored::Folder { shards, .. } => {
                let index = (shards.len() > 1).then(|| INDEX.to_owned());
                let weights = shards.iter().map(|(file, _)| file.clone());
                std::iter::once(CONFIG.to_owned()).chain(weights).chain(index).collect()
            }
        }
    }

    /// All arrays under the names and in the shapes of the files.
    fn arrays<T: Real>(&self, network: &Network<T>) -> Result<Tensors> {
        let theta = network.parameters()?;
        let places: BTreeMap<String, (usize, usize)> = network
            .tensors()
            .into_iter()
            .map(|t| (t.name, (t.offset, t.shape.iter().product::<usize>())))
            .collect();
        let (_, origins) = self.decoder.plan(self.prefix, self.part, self.rank);
        let other =
            || Error::Format { subject: "the model", reason: "a network of another layout".to_owned() };
        let own = |array: &str| -> Result<&[T]> {
            let &(offset, len) = places.get(array).ok_or_else(other)?;
            Ok(&theta[offset..][..len])
        };
        let table = format!("{}{}", self.prefix, self.decoder.table());
        let mut whole: BTreeMap<String, (Vec<usize>, Vec<T>)> = BTreeMap::new();
        for origin in &origins {
            let mut values = own(&origin.array)?.to_vec();
            if let Some([down, up]) = adapter_of(origin, &origins) {
                add_product(own(up)?, own(down)?, self.rank, &mut values);
            }
            // the second of two layers that read one table: the output layer, which has its own by now
            let name = match origin.name == table && whole.contains_key(&table) {
                true => OUTPUT.to_owned(),
                false => origin.name.clone(),
            };
            let count = origin.shape.iter().product();
            match &origin.take {
                Take::Normal | Take::Zeros => {}
                Take::All => _ = whole.insert(name, (origin.shape.clone(), values)),
                Take::Values(range) => {
                    let all =
                        whole.entry(name).or_insert_with(|| (origin.shape.clone(), vec![T::ZERO; count]));
                    all.1[range.clone()].copy_from_slice(&values);
                }
                Take::Columns(range) => {
                    let (inputs, wide) = (origin.shape[0], origin.shape[1]);
                    let all =
                        whole.entry(name).or_insert_with(|| (origin.shape.clone(), vec![T::ZERO; count]));
                    for (column, row) in range.clone().zip(values.chunks_exact(inputs)) {
                        row.iter().enumerate().for_each(|(k, v)| all.1[k * wide + column] = *v);
                    }
                }
            }
        }
        let mut out = Tensors::default();
        whole.iter().for_each(|(name, (shape, values))| out.insert(name, shape, values));
        Ok(out)
    }
}

/// The arrays of the adapter beside a layer: it stands behind it, the thin layer first.
fn adapter_of<'a>(base: &Origin, origins: &'a [Origin]) -> Option<[&'a str; 2]> {
    let at: usize = base.array.strip_prefix("layers.")?.strip_suffix(".weight")?.parse().ok()?;
    let find = |layer: usize, take: &Take| {
        let array = format!("layers.{layer}.weight");
        origins.iter().find(|o| o.array == array && o.take == *take).map(|o| o.array.as_str())
    };
    Some([find(at + 1, &Take::Normal)?, find(at + 2, &Take::Zeros)?])
}

/// `W ← W + U D`, with U (outputs, rank) and D (rank, inputs).
fn add_product<T: Real>(up: &[T], down: &[T], rank: usize, weights: &mut [T]) {
    let inputs = down.len() / rank;
    for (row, u) in weights.chunks_exact_mut(inputs).zip(up.chunks_exact(rank)) {
        for (k, w) in row.iter_mut().enumerate() {
            let product: f64 = (0..rank).map(|r| u[r].to_f64() * down[r * inputs + k].to_f64()).sum();
            *w = T::from_f64(w.to_f64() + product);
        }
    }
}

/// The configuration, which says so where the output layer has a table of its own by now.
fn configuration(text: &str, untied: bool) -> Result<String> {
    if !untied {
        return Ok(text.to_owned());
    }
    let bad = |e: serde_json::Error| Error::Format { subject: "config.json", reason: e.to_string() };
    let mut value: serde_json::Value = serde_json::from_str(text).map_err(bad)?;
    value["tie_word_embeddings"] = false.into();
    serde_json::to_string_pretty(&value).map_err(bad)
}

/// Arrays in the files they came from; a new one goes into the last. Of several files there is an index.
fn sharded<T: Real>(arrays: &Tensors, shards: &[(String, Vec<String>)]) -> Result<Vec<ModelFile>> {
    let known: BTreeSet<&str> = shards.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    let mut files = Vec::new();
    let (mut map, mut total) = (BTreeMap::new(), 0);
    for (i, (file, names)) in shards.iter().enumerate() {
        let last = i + 1 == shards.len();
        let fresh = arrays.names().filter(|n| last && !known.contains(n));
        let mut own = Tensors::default();
        own.metadata.insert("format".to_owned(), "pt".to_owned());
        for name in names.iter().map(String::as_str).filter(|n| arrays.has(n)).chain(fresh) {
            let (shape, values) = arrays.get::<T>(name)?;
            total += values.len() * T::BYTES;
            own.insert(name, shape, &values);
            map.insert(name, file);
        }
        files.push(ModelFile { name: file.clone(), bytes: own.to_bytes()? });
    }
    if shards.len() > 1 {
        let index = serde_json::json!({ "metadata": { "total_size": total }, "weight_map": map });
        let bytes = format!("{index:#}\n").into_bytes();
        files.push(ModelFile { name: INDEX.to_owned(), bytes });
    }
    Ok(files)
}
