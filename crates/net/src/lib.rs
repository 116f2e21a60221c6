//! Networks: how much every record gives away through its gradient, exactly and without per-sample gradients.
//!
//! | module | what it holds | formula |
//! |---|---|---|
//! | [`spec`], [`preset`] | a network as a file; the networks of the papers | |
//! | [`network`] | layers, parameters, loss | |
//! | [`device`] | buffers and kernels: the seam for a GPU | |

pub mod device;
pub mod error;
#[cfg(test)]
mod conformance;
mod layer;
pub mod network;
mod pass;
pub mod preset;
pub mod random;
mod real;
mod shape;
pub mod spec;

pub use error::{Error, Result};
pub use network::Network;
pub use real::Real;
pub use shape::Shape;
pub use spec::{Activation, LayerSpec, Loss, NetSpec};
