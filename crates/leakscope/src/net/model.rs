//! Networks by name or file, and models in the folders that `net train` leaves.

use super::Precision;
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_net::{
    Backend, Loss, NetSpec, Network, Real, Shape,
    io::{self, Tensors},
    preset::Preset,
};
use leakscope_report::net::{NetworkFacts, TRAINING_SCHEMA, Training};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::path::Path;

/// The weights of a model folder.
pub(super) const WEIGHTS: &str = "model.safetensors";
/// The network of a model folder.
pub(super) const NETWORK: &str = "network.json";
/// The run of a model folder.
pub(super) const TRAINING: &str = "training.json";

/// A trained model.
#[derive(Debug)]
pub(super) struct Model<T> {
    /// The network with its weights.
    pub(super) net: Network<T>,
    /// What it is called.
    pub(super) name: String,
    /// The run that made it, where it is known.
    pub(super) training: Option<Training>,
}

fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|e| Failure::Message(format!("cannot read {}: {e}", path.display())))
}

/// Puts the name of the file before what is wrong with it.
pub(super) fn named<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> Failure + '_ {
    move |e| Failure::Message(format!("{}: {e}", path.display()))
}

/// Loads weights into a network. Returns the file's SHA-256.
pub(super) fn load_weights<T: Real>(net: &mut Network<T>, path: &Path) -> Result<String> {
    let bytes =
        std::fs::read(path).map_err(|e| Failure::Message(format!("cannot read {}: {e}", path.display())))?;
    let file = Tensors::from_bytes(&bytes).map_err(named(path))?;
    net.load_tensors(&file).map_err(named(path))?;
    Ok(Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect())
}

impl<T: Real> Model<T> {
    /// Opens a model folder.
    pub(super) fn open(folder: &Path, flag: &str, backend: Backend) -> Result<Self> {
        if !folder.is_dir() {
            let message =
                format!("{} is no folder: name one that a training run left (⟨out⟩ of it)", folder.display());
            return Err(Failure::option(flag, message));
        }
        let network = folder.join(NETWORK);
        let spec = NetSpec::from_json(&read_text(&network)?).map_err(named(&network))?;
        let mut net = Network::new(spec, 0).map_err(named(&network))?.on(backend)?;
        load_weights(&mut net, &folder.join(WEIGHTS))?;
        let training = folder.join(TRAINING);
        let training = if training.is_file() { Some(read_training(&training)?) } else { None };
        let name = folder.file_name().map_or_else(|| "model".into(), |n| n.to_string_lossy().into_owned());
        Ok(Self { net, name, training })
    }

    /// The facts of the network, by the name it was trained under.
    pub(super) fn facts(&self) -> NetworkFacts {
        let name = self.training.as_ref().map_or(self.name.as_str(), |t| t.network.name.as_str());
        facts(&self.net, name)
    }
}

/// The numbers a model was trained with, or, where its run is not known, those of its weights; what else is wrong with its
/// folder, [`Model::open`] says.
pub(super) fn trained_precision(folder: &Path) -> Precision {
    let training = read_text(&folder.join(TRAINING)).ok();
    let json: Option<serde_json::Value> = training.and_then(|text| serde_json::from_str(&text).ok());
    match json.as_ref().and_then(|j| j.get("precision")) {
        // shorter products are for those who ask for them
        Some(precision) => match Precision::deserialize(precision).unwrap_or_default() {
            Precision::F32 | Precision::Tf32 => Precision::F32,
            Precision::F64 => Precision::F64,
        },
        None => {
            let weights = std::fs::read(folder.join(WEIGHTS)).ok();
            match weights.and_then(|bytes| Tensors::from_bytes(&bytes).ok()) {
                Some(file) if file.is_double() => Precision::F64,
                _ => Precision::F32,
            }
        }
    }
}

fn read_training(path: &Path) -> Result<Training> {
    let json: serde_json::Value = serde_json::from_str(&read_text(path)?).map_err(named(path))?;
    match json.get("schema").and_then(|s| s.as_str()) {
        Some(TRAINING_SCHEMA) => serde_json::from_value(json).map_err(named(path)),
        other => {
            let schema = other.unwrap_or("none");
            Err(Failure::Message(format!(
                "{}: its schema is {schema}, expected {TRAINING_SCHEMA}",
                path.display()
            )))
        }
    }
}

/// The files of a trained network, by name.
pub(super) fn files<T: Real>(net: &Network<T>) -> Result<Vec<(String, Vec<u8>)>> {
    let weights = net.to_tensors()?.to_bytes()?;
    Ok(vec![(NETWORK.to_owned(), net.spec().to_json().into_bytes()), (WEIGHTS.to_owned(), weights)])
}

/// Whether a network is asked for by a file.
pub(super) fn is_file(network: &str) -> bool {
    Preset::of_name(network).is_none() && Path::new(network).is_file()
}

/// The loss of a network file.
pub(super) fn loss_of_file(network: &str) -> Result<Loss> {
    Ok(read_spec(network)?.loss)
}

/// A network file; of one of another programme, what to do with it.
fn read_spec(network: &str) -> Result<NetSpec> {
    let path = Path::new(network);
    if let Some(advice) = io::advice(path) {
        return Err(Failure::option("network", format!("{network}: {advice}")));
    }
    NetSpec::from_json(&read_text(path)?).map_err(named(path))
}

/// The network that was asked for: a preset for records of a shape, with its own loss or another, or a file.
pub(super) fn spec(network: &str, shape: Shape, outputs: usize, loss: Option<Loss>) -> Result<NetSpec> {
    if let Some(preset) = Preset::of_name(network) {
        let spec = preset.spec(shape, outputs);
        return Ok(NetSpec { loss: loss.unwrap_or(spec.loss), ..spec });
    }
    if !Path::new(network).exists() {
        let message = format!("`{network}` is neither a file nor one of {}", Preset::names());
        return Err(Failure::option("network", message));
    }
    read_spec(network)
}

/// Freezes layers by their positions, counted as the names of tensors are. A residual block is frozen whole.
pub(super) fn freeze(spec: &mut NetSpec, layers: &[usize]) -> Result<()> {
    let with: Vec<String> = spec
        .positions()
        .into_iter()
        .filter(|(_, layer)| layer.has_parameters())
        .map(|(at, layer)| format!("{at} ({})", layer.kind()))
        .collect();
    let wrong = |problem: String| {
        let message = format!("{problem}: layers with parameters are {}", with.join(", "));
        Err(Failure::option("freeze", message))
    };
    for &at in layers {
        match spec.layer_mut(at) {
            Some(layer) if layer.has_parameters() => layer.set_frozen(true),
            Some(layer) => return wrong(format!("layer {at} ({}) has no parameters", layer.kind())),
            None => return wrong(format!("there is no layer {at}")),
        }
    }
    Ok(())
}

/// Freezes the given share of the trained parameters, the smallest in size.
pub(super) fn freeze_smallest<T: Real>(net: &mut Network<T>, share: f64) -> Result<()> {
    if !(0.0..1.0).contains(&share) {
        return Err(Failure::number("freeze_smallest", numeral(share), "expected at least 0, below 1"));
    }
    let theta = net.parameters()?;
    let size = |i: &usize| theta[*i].to_f64().abs();
    let trained = net.trained();
    let mut order: Vec<usize> = (0..trained.len()).filter(|&i| trained[i]).collect();
    order.sort_by(|a, b| size(a).total_cmp(&size(b)).then(a.cmp(b)));
    let mut frozen = vec![false; net.parameter_count()];
    let smallest = (share * order.len() as f64).round() as usize;
    order.iter().take(smallest.min(order.len().saturating_sub(1))).for_each(|&i| frozen[i] = true);
    Ok(net.freeze(&frozen)?)
}

/// What a network is called on pages: the preset, or the file without its folder.
pub(super) fn name_of(network: &str) -> String {
    Path::new(network).file_name().map_or_else(|| network.to_owned(), |n| n.to_string_lossy().into_owned())
}

/// A network as a page shows it.
pub(super) fn facts<T: Real>(net: &Network<T>, name: &str) -> NetworkFacts {
    NetworkFacts {
        name: name.to_owned(),
        parameters: net.parameter_count() as u64,
        trained: net.trained().iter().filter(|t| **t).count() as u64,
        input: net.input().dims().into_iter().map(|d| d as u64).collect(),
        outputs: net.outputs() as u64,
        loss: net.loss().name().to_owned(),
        device: super::device::named(net.backend()),
    }
}
