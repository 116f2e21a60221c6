//! The network and the records of the tests of perturbed gradients, from inside the crate and from outside.

use super::{Clip, Data, Generator, L, Loss, NetSpec, Network, Purpose, Shape, clipped_gradient};

const SIDE: usize = 4;
pub(crate) const D: usize = SIDE * SIDE;
pub(crate) const K: usize = 3;

/// A convolution and a dense layer, a third of the parameters frozen on their own.
pub(crate) fn network() -> Network<f64> {
    let layers = vec![L::conv(3, 2, 1, 0), L::Tanh, L::Flatten, L::dense(5), L::Gelu, L::dense(K)];
    let spec = NetSpec::sequential(Shape::Image([SIDE, SIDE, 1]), layers, Loss::SoftmaxCrossEntropy);
    let mut net = Network::new(spec, 3).unwrap();
    let mut rng = Generator::new(2, Purpose::Other, 3);
    let frozen: Vec<bool> = (0..net.parameter_count()).map(|_| rng.uniform() < 0.33).collect();
    net.freeze(&frozen).unwrap();
    net
}

/// Records with labels inside the simplex, so that they can be moved.
pub(crate) fn data(n: usize, seed: u64) -> Data<f64> {
    let mut rng = Generator::new(seed, Purpose::Other, 0);
    let x = (0..n * D).map(|_| rng.normal()).collect();
    let y = (0..n).flat_map(|i| [[0.2, 0.5, 0.3], [0.7, 0.1, 0.2], [0.1, 0.3, 0.6]][i % 3]).collect();
    Data::new(Shape::Image([SIDE, SIDE, 1]), x, K, y).unwrap()
}

pub(crate) fn gradient(net: &Network<f64>, data: &Data<f64>, i: usize) -> Vec<f64> {
    clipped_gradient(net, data, &[i], Clip::None).unwrap().sum
}
