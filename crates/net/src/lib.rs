//! Networks: how much every record gives away through its gradient, exactly and without per-sample gradients.
//!
//! | module | what it holds | formula |
//! |---|---|---|
//! | [`spec`], [`preset`] | a network as a file; the networks of the papers | |
//! | [`network`] | a graph of layers, their parameters | |
//! | [`loss`] | losses and their tangents, one file each | |
//! | [`data`] | records (values or tokens) and labels (vectors or classes), checked once | |
//! | [`leak`] | what a record's gradient gives away: trace, η, PLIS | `JᵀJ/s²`, `J = ∂clip(g)/∂x` |
//! | [`clip`] | hard and smooth clipping | `clip(g) = s(‖g‖) g` |
//! | [`poisson`] | information under Poisson sampling | `s⁻²(A JᵀJ + (B−A) JᵀĝĝᵀJ)` |
//! | [`renyi`] | the Rényi budget of one record | |
//! | [`engine`] | batches: clipped gradients, evaluation | `Σ clip(gᵢ)` |
//! | [`train`] | SGD, Adam, DP-SGD; what every record has given away so far | `Σ clip(gᵢ) + N(0, (σC)²I)` |
//! | [`io`] | npz, npy, idx and safetensors files | |
//! | [`attack`] | attacks: records from gradients | `1 − cos(g(x̂), v) + α TV(x̂)` |
//! | [`quality`] | how like a reconstruction is to its record | MSE, PSNR, SSIM, HaarPSI |
//! | [`text`] | tokenisers, and language models of Hugging Face and llama2.c | |
//! | [`random`] | the generator: seeded, by purpose and step | |
//! | [`device`] | back ends, buffers and kernels: the seam for a GPU | |
//!
//! What two records give away through the CNN of Edmunds' table B.7, clipped at 8 under noise of σ = 0.5:
//!
//! ```
//! use leakscope_net::{Clip, Data, Network, Shape, leak, preset::Preset};
//!
//! let input = Shape::Image([28, 28, 1]);
//! let net = Network::<f32>::new(Preset::CnnMnist.spec(input, 10), 1)?;
//! let data = Data::classes(input, vec![0.5; 2 * 784], 10, &[3, 7])?;
//! let request = leak::Measure::new(Clip::Gelu { bound: 8.0 }, 0.5, 1);
//! for record in leak::measure(&net, &data, &[0, 1], &request)? {
//!     let dfil = record.dfil.expect("a trace was asked for");
//!     assert!(dfil.value > 0.0 && dfil.standard_error.is_some());
//! }
//! # Ok::<(), leakscope_net::Error>(())
//! ```
//!
//! A gradient is a pair (δ, a) of what came back and what went in, never an array of parameters per record
//! (MATHS §5.1). Images are channels last. Of a text, leakage is that of its embedded values (MATHS §10).

pub mod attack;
pub mod clip;
mod compiled;
#[cfg(test)]
mod conformance;
pub mod data;
pub mod device;
pub mod engine;
pub mod error;
mod grid;
pub mod io;
mod lanczos;
mod layer;
pub mod leak;
pub mod loss;
pub mod network;
mod optimizer;
mod pass;
pub mod perturb;
pub mod poisson;
pub mod preset;
pub mod quality;
pub mod random;
mod real;
pub mod renyi;
mod shape;
pub mod spec;
pub mod text;
pub mod train;

pub use clip::Clip;
pub use data::Data;
pub use device::{
    Backend, Card,
    cuda::{CardInfo, cards},
};
pub use error::{Error, Result};
pub use loss::Loss;
pub use network::Network;
pub use real::Real;
pub use shape::Shape;
pub use spec::{Activation, LayerSpec, NetSpec, NodeSpec};
