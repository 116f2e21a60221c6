//! The synthetic regression of Mueller's first figure: records of whose values only some say anything about the target.

use leakscope_net::random::{Generator, Purpose};

/// Values of a record.
pub const WIDTH: usize = 15;
/// Those that the target depends on.
pub const INFORMATIVE: [usize; 3] = [2, 6, 9];

/// Records of standard normal values and their targets: twice the sum of the informative ones, with a little noise.
pub fn regression(n: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Generator::new(seed, Purpose::Other, 0);
    let x: Vec<f64> = (0..n * WIDTH).map(|_| rng.normal()).collect();
    let y = x
        .chunks(WIDTH)
        .map(|x| 2.0 * INFORMATIVE.iter().map(|&j| x[j]).sum::<f64>() + 0.1 * rng.normal())
        .collect();
    (x, y)
}
