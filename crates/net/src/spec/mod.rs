//! A network as a small readable file (JSON): the shape of a record, the layers, the loss.
//!
//! A layer reads what the one before it returns, unless it names its `inputs`: earlier layers by their `name`, or `input`
//! for the record itself. So a chain is a list of layers, and anything else a list with names in it:
//!
//! ```json
//! {"version": 1, "input": [4], "loss": "squared-error", "layers": [
//!   {"name": "wide", "kind": "dense", "outputs": 8},
//!   {"name": "gate", "kind": "silu"},
//!   {"kind": "multiply", "inputs": ["gate", "wide"]},
//!   {"kind": "dense", "outputs": 1}]}
//! ```

mod layer;

pub use crate::shape::{NamedPadding, Padding};
pub use layer::{Activation, LayerSpec, Rotary, RotaryPairs};

use crate::{
    Loss, Shape,
    error::{Error, Result},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// Version of the file.
pub const SPEC_VERSION: u32 = 1;

/// The name by which layers read the record itself.
pub const INPUT: &str = "input";

/// A network without its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSpec {
    /// Version of the file: [`SPEC_VERSION`].
    pub version: u32,
    /// Shape of one record: `[height, width, channels]`, `[positions, features]`, `[length]` or `{"tokens": positions}`.
    pub input: Shape,
    /// The layers, first to last: each comes after those it reads.
    pub layers: Vec<NodeSpec>,
    /// The loss at the end.
    pub loss: Loss,
    /// Where there is a loss at every position of a sequence, what is made of them.
    #[serde(default, skip_serializing_if = "Reduction::is_default")]
    pub reduction: Reduction,
}

/// What the loss of a sequence is of those at its positions. Positions without a label do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One layer and its place in the network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeSpec {
    /// By which later layers read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The layers it reads, by name, or [`INPUT`]; none: the one before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// What it does.
    #[serde(flatten)]
    pub layer: LayerSpec,
}

impl<'de> Deserialize<'de> for NodeSpec {
    /// By hand: derived, the fields of the layer inside would no longer be checked for unknown ones.
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let mut map = serde_json::Map::deserialize(from)?;
        let name = map.remove("name").map(serde_json::from_value).transpose().map_err(D::Error::custom)?;
        let inputs =
            map.remove("inputs").map(serde_json::from_value).transpose().map_err(D::Error::custom)?;
        let layer = serde_json::from_value(map.into()).map_err(D::Error::custom)?;
        Ok(Self { name, inputs: inputs.unwrap_or_default(), layer })
    }
}

impl From<LayerSpec> for NodeSpec {
    /// A layer of a chain.
    fn from(layer: LayerSpec) -> Self {
        Self { name: None, inputs: Vec::new(), layer }
    }
}

impl NodeSpec {
    /// A layer with a name.
    pub fn named(name: &str, layer: LayerSpec) -> Self {
        Self { name: Some(name.to_owned()), ..layer.into() }
    }

    /// The same layer, reading others.
    #[must_use]
    pub fn reading(self, inputs: &[&str]) -> Self {
        Self { inputs: inputs.iter().map(|&i| i.to_owned()).collect(), ..self }
    }
}

impl NetSpec {
    /// A chain of layers.
    pub fn sequential(input: Shape, layers: Vec<LayerSpec>, loss: Loss) -> Self {
        Self::graph(input, layers.into_iter().map(NodeSpec::from).collect(), loss)
    }

    /// Layers that name what they read.
    pub fn graph(input: Shape, layers: Vec<NodeSpec>, loss: Loss) -> Self {
        Self { version: SPEC_VERSION, input, layers, loss, reduction: Reduction::default() }
    }

    /// Reads the file's text.
    pub fn from_json(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let bad = |e: serde_json::Error| Error::Format { subject: "the network file", reason: e.to_string() };
        // the version first: a later file may have layers this programme has never heard of
        let Version { version } = serde_json::from_str(text).map_err(bad)?;
        if version != SPEC_VERSION {
            return Err(Error::Version {
                subject: "the network file",
                actual: version,
                expected: SPEC_VERSION,
            });
        }
        serde_json::from_str(text).map_err(bad)
    }

    /// All layers with their positions, counted from 0 through residual blocks: a block comes before the layers inside
    /// it. Names of tensors (`layers.3.weight`) and errors count so too.
    pub fn positions(&self) -> Vec<(usize, &LayerSpec)> {
        fn walk<'a>(layer: &'a LayerSpec, out: &mut Vec<(usize, &'a LayerSpec)>) {
            out.push((out.len(), layer));
            if let LayerSpec::Residual { layers } = layer {
                layers.iter().for_each(|l| walk(l, out));
            }
        }
        let mut out = Vec::new();
        self.layers.iter().for_each(|node| walk(&node.layer, &mut out));
        out
    }

    /// Whether no position of a sequence reads one behind it, so that what stands behind the end changes nothing before it.
    pub fn looks_back(&self) -> bool {
        self.positions().into_iter().all(|(_, layer)| layer.looks_back())
    }

    /// The layer at a position as [`NetSpec::positions`] counts them.
    pub fn layer_mut(&mut self, position: usize) -> Option<&mut LayerSpec> {
        fn walk<'a>(layer: &'a mut LayerSpec, left: &mut usize) -> Option<&'a mut LayerSpec> {
            if *left == 0 {
                return Some(layer);
            }
            *left -= 1;
            let LayerSpec::Residual { layers } = layer else { return None };
            layers.iter_mut().find_map(|l| walk(l, left))
        }
        let mut left = position;
        self.layers.iter_mut().find_map(|node| walk(&mut node.layer, &mut left))
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // plain data: serialisation cannot fail
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;

    #[test]
    fn layers_are_counted_as_the_names_of_tensors_count_them() {
        let inside = vec![LayerSpec::dense(4), LayerSpec::Tanh, LayerSpec::layer_norm()];
        let layers = vec![
            LayerSpec::Flatten,
            LayerSpec::Residual { layers: inside },
            LayerSpec::Relu,
            LayerSpec::dense(2),
        ];
        let mut spec = NetSpec::sequential(Shape::Vector([4]), layers, Loss::SquaredError);
        let net = Network::<f64>::new(spec.clone(), 1).unwrap();
        for t in net.tensors() {
            let position: usize = t.name.split('.').nth(1).unwrap().parse().unwrap();
            let layer = spec.positions()[position].1;
            let kind =
                if t.name.contains("weight") || t.name.contains("bias") { "dense" } else { "layer-norm" };
            assert_eq!((layer.kind(), layer.has_parameters()), (kind, true), "{}", t.name);
        }
        for position in 0..7 {
            let other = spec.positions()[position].1.clone();
            assert_eq!(*spec.layer_mut(position).unwrap(), other);
        }
        assert_eq!((spec.positions().len(), spec.layer_mut(7)), (7, None));
        // a kind is what the file calls it
        for (_, layer) in spec.positions() {
            assert_eq!(serde_json::to_value(layer).unwrap()["kind"], layer.kind());
        }
    }

    #[test]
    fn a_softmax_over_one_output_is_refused() {
        let of = |outputs, loss| {
            let layers = vec![LayerSpec::dense(outputs)];
            let spec = NetSpec::sequential(Shape::Vector([4]), layers, loss);
            Network::<f64>::new(spec, 1).map(|net| net.outputs())
        };
        let message = of(1, Loss::SoftmaxCrossEntropy).unwrap_err().to_string();
        assert!(message.contains("binary-cross-entropy"), "{message}");
        assert_eq!(of(2, Loss::SoftmaxCrossEntropy), Ok(2));
        assert_eq!((of(1, Loss::BinaryCrossEntropy), of(1, Loss::SquaredError)), (Ok(1), Ok(1)));
    }

    #[test]
    fn names_are_read_and_written_and_unknown_fields_refused() {
        let text = r#"{"version": 1, "input": [4], "loss": "squared-error", "layers": [
            {"name": "wide", "kind": "dense", "outputs": 8},
            {"name": "gate", "kind": "silu"},
            {"kind": "multiply", "inputs": ["gate", "wide"]},
            {"kind": "dense", "outputs": 1}]}"#;
        let spec = NetSpec::from_json(text).unwrap();
        assert_eq!(NetSpec::from_json(&spec.to_json()).unwrap(), spec);
        assert_eq!(spec.layers[2].inputs, ["gate", "wide"]);
        assert_eq!(Network::<f64>::new(spec, 1).unwrap().parameter_count(), 4 * 8 + 8 + 8 + 1);
        let chain = serde_json::to_value(NodeSpec::from(LayerSpec::Tanh)).unwrap();
        assert_eq!(chain, serde_json::json!({"kind": "tanh"}));
        for (from, to, says) in [
            (r#""outputs": 8"#, r#""outputs": 8, "width": 3"#, "unknown field `width`"),
            (r#""inputs": ["gate", "wide"]"#, r#""inputs": "gate""#, "invalid type"),
        ] {
            let error = NetSpec::from_json(&text.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn graphs_that_make_no_sense_are_refused_with_what_to_write() {
        let build = |layers: Vec<NodeSpec>| {
            let spec = NetSpec::graph(Shape::Vector([4]), layers, Loss::SquaredError);
            Network::<f64>::new(spec, 1).unwrap_err().to_string()
        };
        let named = |name: &str, width| NodeSpec::named(name, LayerSpec::dense(width));
        let read = |layer: LayerSpec, inputs: &[&str]| NodeSpec::from(layer).reading(inputs);
        for (layers, says) in [
            (vec![read(LayerSpec::dense(2), &["x"])], "names so far: input"),
            (vec![read(LayerSpec::Add, &["later"]), named("later", 4)], "no layer before it has that name"),
            (vec![named("a", 4), named("a", 4)], "which is taken"),
            (vec![named("input", 4)], "which is taken"),
            (vec![named("a", 4), read(LayerSpec::Add, &["a"])], "two layers or more"),
            (vec![named("a", 4), LayerSpec::Add.into()], "two layers or more"),
            (vec![named("a", 4), read(LayerSpec::Multiply, &["a", "a", "a"])], "the names of two layers"),
            (vec![named("a", 4), read(LayerSpec::Tanh, &["a", "input"])], "must have one name"),
            (vec![named("a", 3), read(LayerSpec::Add, &["a", "input"])], "the shape of the first"),
            (
                vec![named("a", 3), read(LayerSpec::dense(2), &["input"])],
                "no layer reads what layer 0 returns",
            ),
        ] {
            let error = build(layers);
            assert!(error.contains(says), "{error}");
        }
    }
}
