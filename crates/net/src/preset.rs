//! The networks of the papers, by name.

use crate::{
    LayerSpec, Loss, NetSpec, Shape,
    error::{Error, Result},
};

/// Names that [`preset`] knows.
pub const PRESETS: [&str; 5] = ["linear", "mlp", "mlp-attack", "cnn-mnist", "cnn-cifar"];

/// A network of the papers for records of shape `input` and `outputs` outputs: 1 output has the binary
/// cross-entropy, more the softmax.
///
/// - `linear`: one dense layer.
/// - `mlp`: dense 512, GELU, dense 256, GELU, dense (Edmunds table B.5, without its batch norms).
/// - `mlp-attack`: the same with ReLU (Edmunds table B.8).
/// - `cnn-mnist`: Edmunds table B.7; 26,010 parameters on 28 × 28 × 1 and ten outputs.
/// - `cnn-cifar`: 3×3 convolutions 32, 32, pool, 64, 64, pool, 128, 128, pool, dense 128 with tanh (Papernot 2020 as
///   in Tramèr and Boneh 2021); 550,570 parameters on 32 × 32 × 3 and ten outputs.
pub fn preset(name: &str, input: Shape, outputs: usize) -> Result<NetSpec> {
    use LayerSpec as L;
    let mut layers = match name {
        "linear" => vec![L::Flatten],
        "mlp" => vec![L::Flatten, L::dense(512), L::Gelu, L::dense(256), L::Gelu],
        "mlp-attack" => vec![L::Flatten, L::dense(512), L::Relu, L::dense(256), L::Relu],
        "cnn-mnist" => vec![
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
        "cnn-cifar" => {
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
        other => {
            let reason = format!("no preset is called {other}; there are {}", PRESETS.join(", "));
            return Err(Error::Format { subject: "the preset", reason });
        }
    };
    layers.push(L::dense(outputs));
    let loss = if outputs == 1 { Loss::BinaryCrossEntropy } else { Loss::SoftmaxCrossEntropy };
    Ok(NetSpec::sequential(input, layers, loss))
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
