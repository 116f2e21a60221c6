//! The networks of the papers, by name.

use crate::{LayerSpec, Loss, NetSpec, Shape};

/// A network of the papers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// One dense layer.
    Linear,
    /// Dense 512, GELU, dense 256, GELU, dense (Edmunds table B.5, without its batch norms).
    Mlp,
    /// The same with ReLU (Edmunds table B.8).
    MlpAttack,
    /// Edmunds table B.7; 26,010 parameters on 28 × 28 × 1 and ten outputs.
    CnnMnist,
    /// 3×3 convolutions 32, 32, pool, 64, 64, pool, 128, 128, pool, dense 128 with tanh (Papernot 2020 as in Tramèr and
    /// Boneh 2021); 550,570 parameters on 32 × 32 × 3 and ten outputs.
    CnnCifar,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Linear, Self::Mlp, Self::MlpAttack, Self::CnnMnist, Self::CnnCifar];

    /// The name used in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Mlp => "mlp",
            Self::MlpAttack => "mlp-attack",
            Self::CnnMnist => "cnn-mnist",
            Self::CnnCifar => "cnn-cifar",
        }
    }

    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// All names, for a message.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The network for records of shape `input` and `outputs` outputs: 1 output has the binary cross-entropy, more the
    /// softmax.
    pub fn spec(self, input: Shape, outputs: usize) -> NetSpec {
        use LayerSpec as L;
        let mut layers = match self {
            Self::Linear => vec![L::Flatten],
            Self::Mlp => vec![L::Flatten, L::dense(512), L::Gelu, L::dense(256), L::Gelu],
            Self::MlpAttack => vec![L::Flatten, L::dense(512), L::Relu, L::dense(256), L::Relu],
            Self::CnnMnist => vec![
                L::conv(16, 8, 2, 2),
                L::Tanh,
                L::average_pool(2, 1),
                L::conv(32, 4, 2, 0),
                L::Tanh,
                L::average_pool(2, 1),
                L::Flatten,
                L::dense(32),
                L::Tanh,
            ],
            Self::CnnCifar => {
                let mut layers = Vec::new();
                for width in [32, 64, 128] {
                    layers.extend([
                        L::conv(width, 3, 1, 1),
                        L::Tanh,
                        L::conv(width, 3, 1, 1),
                        L::Tanh,
                        L::average_pool(2, 2),
                    ]);
                }
                layers.extend([L::Flatten, L::dense(128), L::Tanh]);
                layers
            }
        };
        layers.push(L::dense(outputs));
        let loss = if outputs == 1 { Loss::BinaryCrossEntropy } else { Loss::SoftmaxCrossEntropy };
        NetSpec::sequential(input, layers, loss)
    }
}

/// A multilayer perceptron with the given hidden widths and one kind of activation.
pub fn mlp(input: Shape, hidden: &[usize], activation: &LayerSpec, outputs: usize, loss: Loss) -> NetSpec {
    let mut layers = vec![LayerSpec::Flatten];
    for &width in hidden {
        layers.extend([LayerSpec::dense(width), activation.clone()]);
    }
    layers.push(LayerSpec::dense(outputs));
    NetSpec::sequential(input, layers, loss)
}
