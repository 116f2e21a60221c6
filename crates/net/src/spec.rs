//! A network as a small readable file (JSON): the shape of a record, the layers in order, the loss.

use crate::{
    Shape,
    error::{Error, Result},
};
use serde::{Deserialize, Serialize};

/// Version of the file.
pub const SPEC_VERSION: u32 = 1;

/// A network without its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSpec {
    /// Version of the file: [`SPEC_VERSION`].
    pub version: u32,
    /// Shape of one record: `[height, width, channels]` or `[length]`.
    pub input: Shape,
    /// The layers, first to last.
    pub layers: Vec<LayerSpec>,
    /// The loss at the end.
    pub loss: Loss,
}

/// One layer. Frozen layers take no part in the released gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LayerSpec {
    /// `z = W a + b`.
    Dense {
        /// Length of the output.
        outputs: usize,
        /// Whether there is a bias.
        #[serde(default = "yes")]
        bias: bool,
        /// Whether the parameters are frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// 2-D convolution, channels last.
    Conv {
        /// Number of filters.
        outputs: usize,
        /// Height and width of the filters.
        kernel: [usize; 2],
        /// Steps between positions.
        #[serde(default = "ones")]
        stride: [usize; 2],
        /// Zeros around the image.
        #[serde(default)]
        padding: [usize; 2],
        /// Whether there is a bias.
        #[serde(default = "yes")]
        bias: bool,
        /// Whether the parameters are frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// Mean under a window; padding counts as zeros.
    AveragePool {
        /// Height and width of the window.
        kernel: [usize; 2],
        /// Steps between positions.
        #[serde(default = "ones")]
        stride: [usize; 2],
        /// Zeros around the image.
        #[serde(default)]
        padding: [usize; 2],
    },
    /// Maximum under a window.
    MaxPool {
        /// Height and width of the window.
        kernel: [usize; 2],
        /// Steps between positions.
        #[serde(default = "ones")]
        stride: [usize; 2],
        /// Positions around the image that never win.
        #[serde(default)]
        padding: [usize; 2],
    },
    /// Hyperbolic tangent.
    Tanh,
    /// Rectifier.
    Relu,
    /// `x Φ(x)`.
    Gelu,
    /// `1/(1 + e^{−x})`.
    Sigmoid,
    /// Batch norm with frozen statistics, over the channels.
    BatchNorm {
        /// Added to the variance.
        #[serde(default = "epsilon")]
        epsilon: f64,
        /// Whether γ and β are frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// Layer norm over the channels of each position (all values of a vector).
    LayerNorm {
        /// Added to the variance.
        #[serde(default = "epsilon")]
        epsilon: f64,
        /// Whether γ and β are frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// Image to vector.
    Flatten,
    /// `x + f(x)`, f the layers inside.
    Residual {
        /// The layers inside; their output has the shape of their input.
        layers: Vec<LayerSpec>,
    },
}

/// The loss of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `−Σ y log softmax(z)`.
    SoftmaxCrossEntropy,
    /// `Σ log(1 + eᶻ) − yz`, y between 0 and 1.
    BinaryCrossEntropy,
    /// `½‖z − y‖²`, the half as in linear regression.
    SquaredError,
}

/// An activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Hyperbolic tangent.
    Tanh,
    /// Rectifier.
    Relu,
    /// `x Φ(x)`.
    Gelu,
    /// `1/(1 + e^{−x})`.
    Sigmoid,
}

impl NetSpec {
    /// Reads the file's text.
    pub fn from_json(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let bad = |e: serde_json::Error| Error::Format { what: "the network file", reason: e.to_string() };
        // the version first: a later file may have layers this programme has never heard of
        let Version { version } = serde_json::from_str(text).map_err(bad)?;
        if version != SPEC_VERSION {
            return Err(Error::Version { what: "the network file", found: version, expected: SPEC_VERSION });
        }
        serde_json::from_str(text).map_err(bad)
    }

    /// All layers with their positions, counted from 0 through residual blocks: a block comes before the layers inside
    /// it. Names of tensors (`layers.3.weight`) and errors count so too.
    pub fn positions(&self) -> Vec<(usize, &LayerSpec)> {
        fn walk<'a>(layers: &'a [LayerSpec], out: &mut Vec<(usize, &'a LayerSpec)>) {
            for layer in layers {
                out.push((out.len(), layer));
                if let LayerSpec::Residual { layers } = layer {
                    walk(layers, out);
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.layers, &mut out);
        out
    }

    /// The layer at a position as [`NetSpec::positions`] counts them.
    pub fn layer_mut(&mut self, position: usize) -> Option<&mut LayerSpec> {
        fn walk<'a>(layers: &'a mut [LayerSpec], left: &mut usize) -> Option<&'a mut LayerSpec> {
            for layer in layers {
                if *left == 0 {
                    return Some(layer);
                }
                *left -= 1;
                if let LayerSpec::Residual { layers } = layer
                    && let Some(found) = walk(layers, left)
                {
                    return Some(found);
                }
            }
            None
        }
        walk(&mut self.layers, &mut { position })
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // plain data: serialisation cannot fail
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl LayerSpec {
    /// A trainable dense layer with a bias.
    pub fn dense(outputs: usize) -> Self {
        Self::Dense { outputs, bias: true, frozen: false }
    }

    /// A trainable convolution with a bias and square filters.
    pub fn conv(outputs: usize, kernel: usize, stride: usize, padding: usize) -> Self {
        let (kernel, stride, padding) = ([kernel; 2], [stride; 2], [padding; 2]);
        Self::Conv { outputs, kernel, stride, padding, bias: true, frozen: false }
    }

    /// A square average pool.
    pub fn average_pool(kernel: usize, stride: usize) -> Self {
        Self::AveragePool { kernel: [kernel; 2], stride: [stride; 2], padding: [0; 2] }
    }

    /// A square max pool.
    pub fn max_pool(kernel: usize, stride: usize) -> Self {
        Self::MaxPool { kernel: [kernel; 2], stride: [stride; 2], padding: [0; 2] }
    }

    /// A trainable layer norm.
    pub fn layer_norm() -> Self {
        Self::LayerNorm { epsilon: epsilon(), frozen: false }
    }

    /// A batch norm with trainable γ and β.
    pub fn batch_norm() -> Self {
        Self::BatchNorm { epsilon: epsilon(), frozen: false }
    }

    /// What kind of layer it is, as in the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Dense { .. } => "dense",
            Self::Conv { .. } => "conv",
            Self::AveragePool { .. } => "average-pool",
            Self::MaxPool { .. } => "max-pool",
            Self::Tanh => "tanh",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::Sigmoid => "sigmoid",
            Self::BatchNorm { .. } => "batch-norm",
            Self::LayerNorm { .. } => "layer-norm",
            Self::Flatten => "flatten",
            Self::Residual { .. } => "residual",
        }
    }

    /// Whether it, or a layer inside it, has parameters.
    pub fn has_parameters(&self) -> bool {
        match self {
            Self::Dense { .. } | Self::Conv { .. } | Self::BatchNorm { .. } | Self::LayerNorm { .. } => true,
            Self::Residual { layers } => layers.iter().any(Self::has_parameters),
            _ => false,
        }
    }

    /// Freezes or thaws the layer, and those inside it.
    pub fn set_frozen(&mut self, to: bool) {
        match self {
            Self::Dense { frozen, .. }
            | Self::Conv { frozen, .. }
            | Self::BatchNorm { frozen, .. }
            | Self::LayerNorm { frozen, .. } => *frozen = to,
            Self::Residual { layers } => layers.iter_mut().for_each(|l| l.set_frozen(to)),
            Self::AveragePool { .. }
            | Self::MaxPool { .. }
            | Self::Tanh
            | Self::Relu
            | Self::Gelu
            | Self::Sigmoid
            | Self::Flatten => {}
        }
    }
}

fn yes() -> bool {
    true
}

fn ones() -> [usize; 2] {
    [1, 1]
}

fn epsilon() -> f64 {
    1e-5
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
        let mut spec =
            NetSpec { version: SPEC_VERSION, input: Shape::Vector([4]), layers, loss: Loss::SquaredError };
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
            let spec = NetSpec { version: SPEC_VERSION, input: Shape::Vector([4]), layers, loss };
            Network::<f64>::new(spec, 1).map(|net| net.outputs())
        };
        let said = of(1, Loss::SoftmaxCrossEntropy).unwrap_err().to_string();
        assert!(said.contains("binary-cross-entropy"), "{said}");
        assert_eq!(of(2, Loss::SoftmaxCrossEntropy), Ok(2));
        assert_eq!((of(1, Loss::BinaryCrossEntropy), of(1, Loss::SquaredError)), (Ok(1), Ok(1)));
    }
}
