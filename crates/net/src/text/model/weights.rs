//! The arrays of a model: in one file or in shards, and from there into a network.

use super::Tuned;
use super::decoder::{Decoder, Origin, Take};
use crate::{
    Network, Real, Result,
    io::{Tensors, fault, read_tensors},
    random::{Generator, Purpose},
};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Arrays by name, and the file each is in.
pub(super) struct Weights {
    /// Where names are looked up, for errors: the one file, or the index.
    list: PathBuf,
    files: Vec<(PathBuf, Tensors)>,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Weights {
    pub(super) fn one(path: &Path, tensors: Tensors) -> Self {
        Self { list: path.to_owned(), files: vec![(path.to_owned(), tensors)] }
    }

    /// `model.safetensors`, or what `model.safetensors.index.json` lists.
    pub(super) fn folder(dir: &Path) -> Result<Self> {
        let (whole, index) = (dir.join("model.safetensors"), dir.join("model.safetensors.index.json"));
        if whole.is_file() {
            return Ok(Self::one(&whole, read_tensors(&whole)?));
        }
        if !index.is_file() {
            return Err(fault(
                dir,
                "no weights in this folder: expected model.safetensors or model.safetensors.index.json; in Python, \
                 model.save_pretrained(dir) writes them",
            ));
        }
        let bad = |reason: String| fault(&index, reason);
        let text = std::fs::read_to_string(&index).map_err(|e| bad(format!("cannot read it: {e}")))?;
        let Index { weight_map } =
            serde_json::from_str(&text).map_err(|e| bad(format!("no index of shards: {e}")))?;
        let shards: BTreeSet<&String> = weight_map.values().collect();
        let mut files = Vec::new();
        for shard in shards {
            let path = dir.join(shard);
            if Path::new(shard).file_name().is_none_or(|name| name != shard.as_str()) {
                return Err(bad(format!(
                    "a shard is called `{shard}`: expected the name of a file beside it"
                )));
            }
            if !path.is_file() {
                let tensor = weight_map.iter().find(|(_, file)| *file == shard).map_or("", |(name, _)| name);
                return Err(fault(
                    &path,
                    format!("this shard of the model is missing; it has {tensor} and others"),
                ));
            }
            files.push((path.clone(), read_tensors(&path)?));
        }
        Ok(Self { list: index, files })
    }

    /// The files by name, each with the names of its arrays.
    pub(super) fn shards(&self) -> Vec<(String, Vec<String>)> {
        let named = |(path, tensors): &(PathBuf, Tensors)| {
            let file = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
            (file, tensors.names().map(str::to_owned).collect())
        };
        self.files.iter().map(named).collect()
    }

    /// What stands before the names of the decoder's arrays: nothing where a file holds the decoder alone.
    pub(super) fn prefix(&self, decoder: &Decoder) -> &'static str {
        match self.has(&format!("{}{}", decoder.prefix(), decoder.table())) {
            true => decoder.prefix(),
            false => "",
        }
    }

    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|(_, tensors)| tensors.has(name))
    }

    fn values<T: Real>(&self, origin: &Origin, seed: u64) -> Result<Vec<T>> {
        let name = &origin.name;
        let count: usize = origin.shape.iter().product();
        match origin.take {
            Take::Zeros => return Ok(vec![T::ZERO; count]),
            Take::Normal => {
                let layer = origin.array.split('.').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
                let mut random = Generator::new(seed, Purpose::Weights, layer);
                let scale = 1.0 / (origin.shape[1] as f64).sqrt();
                return Ok((0..count).map(|_| T::from_f64(scale * random.normal())).collect());
            }
            Take::All | Take::Values(_) | Take::Columns(_) => {}
        }
        let Some((path, tensors)) = self.files.iter().find(|(_, tensors)| tensors.has(name)) else {
            return Err(fault(&self.list, format!("there is no tensor {name}, which the model needs")));
        };
        let (shape, values) = tensors.get(name).map_err(|e| fault(path, e.to_string()))?;
        if shape != origin.shape {
            let expected = &origin.shape;
            return Err(fault(path, format!("{name} has shape {shape:?}: the model needs {expected:?}")));
        }
        if let Some(at) = values.iter().position(|v: &T| !v.to_f64().is_finite()) {
            return Err(fault(path, format!("{name} is not finite at position {at}")));
        }
        Ok(values)
    }

    /// The network of a decoder with these weights.
    pub(super) fn network<T: Real>(&self, decoder: &Decoder, tuned: Tuned) -> Result<Network<T>> {
        let (spec, origins) = decoder.plan(self.prefix(decoder), tuned.part, tuned.rank);
        // every shape is compared before the network is made: sizes that no file bears out ask for no memory
        let mut arrays = BTreeMap::new();
        for origin in &origins {
            let values = self.values::<T>(origin, tuned.seed)?;
            arrays.insert(origin.array.as_str(), part_of(origin, values));
        }
        let mut theta = Vec::new();
        for i in 0..spec.layers.len() {
            for array in ["weight", "bias", "gamma", "beta"] {
                if let Some(values) = arrays.remove(format!("layers.{i}.{array}").as_str()) {
                    theta.extend_from_slice(&values);
                }
            }
        }
        Network::with_parameters(spec, &theta)
    }
}

fn part_of<T: Real>(origin: &Origin, values: Vec<T>) -> Vec<T> {
    match &origin.take {
        Take::All | Take::Normal | Take::Zeros => values,
        Take::Values(own) => values[own.clone()].to_vec(),
        Take::Columns(own) => {
            let wide = origin.shape[1];
            own.clone().flat_map(|column| values.iter().skip(column).step_by(wide).copied()).collect()
        }
    }
}
