//! The kinds of layer a network file knows, with their options.

use crate::shape::Padding;
use serde::{Deserialize, Serialize};

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
        padding: Padding,
        /// Steps between the values under a filter; 1 where they are neighbours.
        #[serde(default = "ones", skip_serializing_if = "are_ones")]
        dilation: [usize; 2],
        /// Groups of channels that have filters of their own; a divisor of the channels and of `outputs`.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        groups: usize,
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
    /// Mean over as many windows as the output has positions, whatever the size of the image.
    AdaptiveAveragePool {
        /// Height and width of the output.
        outputs: [usize; 2],
    },
    /// Hyperbolic tangent.
    Tanh,
    /// Rectifier.
    Relu,
    /// `x Φ(x)`.
    Gelu,
    /// GELU by a hyperbolic tangent, as GPT-2 has it: `½x(1 + tanh(√(2/π)(x + 0.044715x³)))`.
    GeluTanh,
    /// `1/(1 + e^{−x})`.
    Sigmoid,
    /// `x/(1 + e^{−x})`.
    Silu,
    /// `log(1 + eˣ)`.
    Softplus,
    /// `x`, or `slope·x` below 0.
    LeakyRelu {
        /// Below 0.
        #[serde(default = "leak")]
        slope: f64,
    },
    /// `x`, or `alpha (eˣ − 1)` below 0.
    Elu {
        /// Minus the limit far below 0.
        #[serde(default = "unit")]
        alpha: f64,
    },
    /// In training steps, leaves values out at random; nothing in evaluation and audits.
    Dropout {
        /// Probability that a value is left out.
        rate: f64,
    },
    /// Batch norm with frozen statistics, over the channels. They come from public data
    /// ([`crate::Network::calibrate_statistics`]) or with the weights.
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
    /// Group norm: mean and spread over all positions of a group of channels.
    GroupNorm {
        /// Number of groups, a divisor of the channels.
        groups: usize,
        /// Added to the variance.
        #[serde(default = "epsilon")]
        epsilon: f64,
        /// Whether γ and β are frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// Values over their root mean square over the channels of each position, times γ; no β.
    RmsNorm {
        /// Added to the mean square.
        #[serde(default = "epsilon")]
        epsilon: f64,
        /// Whether γ is frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// Image to vector.
    Flatten,
    /// `x + f(x)`, f the layers inside: short for a chain and an [`LayerSpec::Add`].
    Residual {
        /// The layers inside; their output has the shape of their input.
        layers: Vec<LayerSpec>,
    },
    /// The sum of what two or more layers return, all of one shape.
    Add,
    /// The product of what two layers return, element by element.
    Multiply,
    /// Values of tokens, `E[token]`: the first layer of a network whose input is tokens.
    Embedding {
        /// Number of tokens there are.
        vocabulary: usize,
        /// Values of one token.
        outputs: usize,
        /// Whether the table is frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// Adds values that are learned for every position of a sequence.
    Positions {
        /// Whether they are frozen.
        #[serde(default)]
        frozen: bool,
    },
    /// Attention of the queries, keys and values that three layers return.
    Attention {
        /// Heads of queries.
        heads: usize,
        /// Heads of keys and values, a divisor of `heads`; absent: as many.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_value_heads: Option<usize>,
        /// Whether a position sees only those before it, and itself.
        #[serde(default = "yes")]
        causal: bool,
        /// Turns queries and keys by their position.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rotary: Option<Rotary>,
    },
    /// An output for every token, `z = E a`, with the table of the embedding.
    Unembed,
}

/// Rotary positions: pair i of the values of a head at position t is turned by `t·base^(−2i/width)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotary {
    /// 10,000 in most models.
    #[serde(default = "usual_base")]
    pub base: f64,
    /// Which values are a pair.
    #[serde(default)]
    pub pairs: RotaryPairs,
}

/// Which values of a head rotary positions turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RotaryPairs {
    /// One of the first half with one of the second, as in files of Hugging Face.
    #[default]
    Halves,
    /// Neighbours, as in Llama's own files and those of llama2.c.
    Neighbours,
}

impl Rotary {
    /// The positions of a pair among the values of a head.
    pub(crate) fn pair(self, i: usize, half: usize) -> (usize, usize) {
        match self.pairs {
            RotaryPairs::Halves => (i, i + half),
            RotaryPairs::Neighbours => (2 * i, 2 * i + 1),
        }
    }
}

/// An activation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// Hyperbolic tangent.
    Tanh,
    /// Rectifier.
    Relu,
    /// `x Φ(x)`.
    Gelu,
    /// `½x(1 + tanh(√(2/π)(x + 0.044715x³)))`.
    GeluTanh,
    /// `1/(1 + e^{−x})`.
    Sigmoid,
    /// `x/(1 + e^{−x})`.
    Silu,
    /// `log(1 + eˣ)`.
    Softplus,
    /// `x`, or a multiple of it below 0.
    LeakyRelu(f64),
    /// `x`, or `α(eˣ − 1)` below 0.
    Elu(f64),
}

impl Activation {
    /// The activation that a layer is; none of another kind of layer.
    pub(crate) fn of(layer: &LayerSpec) -> Option<Self> {
        match layer {
            LayerSpec::Tanh => Some(Self::Tanh),
            LayerSpec::Relu => Some(Self::Relu),
            LayerSpec::Gelu => Some(Self::Gelu),
            LayerSpec::GeluTanh => Some(Self::GeluTanh),
            LayerSpec::Sigmoid => Some(Self::Sigmoid),
            LayerSpec::Silu => Some(Self::Silu),
            LayerSpec::Softplus => Some(Self::Softplus),
            LayerSpec::LeakyRelu { slope } => Some(Self::LeakyRelu(*slope)),
            LayerSpec::Elu { alpha } => Some(Self::Elu(*alpha)),
            LayerSpec::Dense { .. }
            | LayerSpec::Conv { .. }
            | LayerSpec::AveragePool { .. }
            | LayerSpec::MaxPool { .. }
            | LayerSpec::AdaptiveAveragePool { .. }
            | LayerSpec::Dropout { .. }
            | LayerSpec::BatchNorm { .. }
            | LayerSpec::LayerNorm { .. }
            | LayerSpec::GroupNorm { .. }
            | LayerSpec::RmsNorm { .. }
            | LayerSpec::Flatten
            | LayerSpec::Residual { .. }
            | LayerSpec::Attention { .. }
            | LayerSpec::Add
            | LayerSpec::Multiply
            | LayerSpec::Embedding { .. }
            | LayerSpec::Positions { .. }
            | LayerSpec::Unembed => None,
        }
    }

    /// Whether its second derivative is not zero almost everywhere.
    pub(crate) fn is_curved(self) -> bool {
        match self {
            Self::Relu | Self::LeakyRelu(_) => false,
            Self::Tanh
            | Self::Gelu
            | Self::GeluTanh
            | Self::Sigmoid
            | Self::Silu
            | Self::Softplus
            | Self::Elu(_) => true,
        }
    }
}

impl LayerSpec {
    /// Whether no position of a sequence reads one behind it; see [`crate::NetSpec::looks_back`].
    pub(crate) fn looks_back(&self) -> bool {
        match self {
            Self::Attention { causal, .. } => *causal,
            Self::Conv { .. }
            | Self::AveragePool { .. }
            | Self::MaxPool { .. }
            | Self::AdaptiveAveragePool { .. }
            | Self::GroupNorm { .. }
            | Self::Flatten => false,
            // what is inside counts for itself
            Self::Residual { .. } => true,
            Self::Dense { .. }
            | Self::Tanh
            | Self::Relu
            | Self::Gelu
            | Self::GeluTanh
            | Self::Sigmoid
            | Self::Silu
            | Self::Softplus
            | Self::LeakyRelu { .. }
            | Self::Elu { .. }
            | Self::Dropout { .. }
            | Self::BatchNorm { .. }
            | Self::LayerNorm { .. }
            | Self::RmsNorm { .. }
            | Self::Add
            | Self::Multiply
            | Self::Embedding { .. }
            | Self::Positions { .. }
            | Self::Unembed => true,
        }
    }

    /// A trainable dense layer with a bias.
    pub fn dense(outputs: usize) -> Self {
        Self::Dense { outputs, bias: true, frozen: false }
    }

    /// A trainable convolution with a bias and square filters.
    pub fn conv(outputs: usize, kernel: usize, stride: usize, padding: usize) -> Self {
        Self::Conv {
            outputs,
            kernel: [kernel; 2],
            stride: [stride; 2],
            padding: Padding::Zeros([padding; 2]),
            dilation: [1, 1],
            groups: 1,
            bias: true,
            frozen: false,
        }
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

    /// A trainable group norm.
    pub fn group_norm(groups: usize) -> Self {
        Self::GroupNorm { groups, epsilon: epsilon(), frozen: false }
    }

    /// A trainable norm by the root mean square.
    pub fn rms_norm() -> Self {
        Self::RmsNorm { epsilon: epsilon(), frozen: false }
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
            Self::AdaptiveAveragePool { .. } => "adaptive-average-pool",
            Self::Tanh => "tanh",
            Self::Relu => "relu",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu-tanh",
            Self::Sigmoid => "sigmoid",
            Self::Silu => "silu",
            Self::Softplus => "softplus",
            Self::LeakyRelu { .. } => "leaky-relu",
            Self::Elu { .. } => "elu",
            Self::Dropout { .. } => "dropout",
            Self::BatchNorm { .. } => "batch-norm",
            Self::LayerNorm { .. } => "layer-norm",
            Self::GroupNorm { .. } => "group-norm",
            Self::RmsNorm { .. } => "rms-norm",
            Self::Flatten => "flatten",
            Self::Residual { .. } => "residual",
            Self::Add => "add",
            Self::Multiply => "multiply",
            Self::Embedding { .. } => "embedding",
            Self::Positions { .. } => "positions",
            Self::Attention { .. } => "attention",
            Self::Unembed => "unembed",
        }
    }

    /// Whether it, or a layer inside it, has parameters.
    pub fn has_parameters(&self) -> bool {
        match self {
            Self::Dense { .. }
            | Self::Conv { .. }
            | Self::BatchNorm { .. }
            | Self::LayerNorm { .. }
            | Self::GroupNorm { .. }
            | Self::RmsNorm { .. }
            | Self::Embedding { .. }
            | Self::Positions { .. } => true,
            Self::Residual { layers } => layers.iter().any(Self::has_parameters),
            Self::AveragePool { .. }
            | Self::MaxPool { .. }
            | Self::AdaptiveAveragePool { .. }
            | Self::Tanh
            | Self::Relu
            | Self::Gelu
            | Self::GeluTanh
            | Self::Sigmoid
            | Self::Silu
            | Self::Softplus
            | Self::LeakyRelu { .. }
            | Self::Elu { .. }
            | Self::Dropout { .. }
            | Self::Flatten
            | Self::Add
            | Self::Multiply
            | Self::Attention { .. }
            | Self::Unembed => false,
        }
    }

    /// Freezes or thaws the layer, and those inside it.
    pub fn set_frozen(&mut self, to: bool) {
        match self {
            Self::Dense { frozen, .. }
            | Self::Conv { frozen, .. }
            | Self::BatchNorm { frozen, .. }
            | Self::LayerNorm { frozen, .. }
            | Self::GroupNorm { frozen, .. }
            | Self::RmsNorm { frozen, .. }
            | Self::Embedding { frozen, .. }
            | Self::Positions { frozen } => *frozen = to,
            Self::Residual { layers } => layers.iter_mut().for_each(|l| l.set_frozen(to)),
            Self::AveragePool { .. }
            | Self::MaxPool { .. }
            | Self::AdaptiveAveragePool { .. }
            | Self::Tanh
            | Self::Relu
            | Self::Gelu
            | Self::GeluTanh
            | Self::Sigmoid
            | Self::Silu
            | Self::Softplus
            | Self::LeakyRelu { .. }
            | Self::Elu { .. }
            | Self::Dropout { .. }
            | Self::Flatten
            | Self::Add
            | Self::Multiply
            | Self::Attention { .. }
            | Self::Unembed => {}
        }
    }
}

fn usual_base() -> f64 {
    10_000.0
}

fn yes() -> bool {
    true
}

fn ones() -> [usize; 2] {
    [1, 1]
}

fn are_ones(v: &[usize; 2]) -> bool {
    *v == [1, 1]
}

fn one() -> usize {
    1
}

fn is_one(v: &usize) -> bool {
    *v == 1
}

fn epsilon() -> f64 {
    1e-5
}

fn leak() -> f64 {
    0.01
}

fn unit() -> f64 {
    1.0
}
