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
