//! What a batch norm over one record returns: measured, on the network that the thesis describes.

use super::super::mueller::failure_of;
use leakscope::Result;
use leakscope_net::engine::predict;
use leakscope_net::random::{Generator, Purpose};
use leakscope_net::{Data, LayerSpec as L, Loss, NetSpec, Network, Shape};
use leakscope_report::format;
use leakscope_report::reproduction::Row;

/// How far the outputs of the network differ between images, in shares of their size: with batch norms over one record at a
/// time, as the thesis runs it, and over all of them.
pub(super) struct Spread {
    pub(super) alone: f64,
    pub(super) together: f64,
}

/// The image part of table B.6: two convolutions, then twice batch norm, 256, GELU, and the outputs. All weights drawn, those of
/// the batch norms too.
fn network(input: Shape, outputs: usize, seed: u64) -> Result<Network<f64>> {
    let norm = || L::BatchNorm { epsilon: 1e-5, frozen: false };
    let layers = vec![
        L::conv(16, 8, 2, 2),
        L::Gelu,
        L::average_pool(2, 1),
        L::conv(32, 4, 2, 0),
        L::Gelu,
        L::average_pool(2, 1),
        L::Flatten,
        norm(),
        L::dense(256),
        L::Gelu,
        norm(),
        L::dense(256),
        L::Gelu,
        L::dense(outputs),
    ];
    let mut net =
        Network::new(NetSpec::sequential(input, layers, Loss::SquaredError), seed).map_err(failure_of)?;
    let mut rng = Generator::new(seed, Purpose::Other, 7);
    let theta: Vec<f64> =
        net.parameters().map_err(failure_of)?.iter().map(|v| v + 0.05 * rng.normal()).collect();
    net.set_parameters(&theta).map_err(failure_of)?;
    Ok(net)
}

pub(super) fn spread(images: &Data<f32>, count: usize, seed: u64) -> Result<Spread> {
    const OUTPUTS: usize = 8;
    let n = count.min(images.len());
    let d = images.input().len();
    let x: Vec<f64> = images.records()[..n * d].iter().map(|&v| f64::from(v)).collect();
    let mut net = network(images.input(), OUTPUTS, seed)?;
    let data = |x: &[f64]| {
        let labels = vec![0.0; x.len() / d * OUTPUTS];
        Data::new(images.input(), x.to_vec(), OUTPUTS, labels).map_err(failure_of)
    };
    let mut alone = Vec::new();
    for one in x.chunks_exact(d) {
        // mean and variance of a batch of one
        net.calibrate_statistics(&data(one)?).map_err(failure_of)?;
        alone.push(predict(&net, one).map_err(failure_of)?.outputs(0).to_vec());
    }
    net.calibrate_statistics(&data(&x)?).map_err(failure_of)?;
    let all = predict(&net, &x).map_err(failure_of)?;
    let together: Vec<Vec<f64>> = (0..n).map(|i| all.outputs(i).to_vec()).collect();
    Ok(Spread { alone: differ(&alone), together: differ(&together) })
}

/// Root of the mean squared distance from the mean, over the root of the mean square.
fn differ(rows: &[Vec<f64>]) -> f64 {
    let (n, width) = (rows.len() as f64, rows.first().map_or(0, Vec::len));
    let mean: Vec<f64> = (0..width).map(|j| rows.iter().map(|r| r[j]).sum::<f64>() / n).collect();
    let square: f64 = rows.iter().flatten().map(|v| v * v).sum();
    let apart: f64 = rows.iter().flat_map(|r| r.iter().zip(&mean)).map(|(v, m)| (v - m).powi(2)).sum();
    if square > 0.0 { (apart / square).sqrt() } else { 0.0 }
}

impl Spread {
    pub(super) fn rows(&self) -> Vec<Row> {
        let why = "the batch norms of the thesis see one record at a time: each returns its bias, and the network a constant";
        vec![
            Row::ours(
                "perturbation network, batch norm over one image: difference between images",
                self.alone,
            )
            .because(why),
            Row::ours(
                "the same network, batch norm over all images: difference between images",
                self.together,
            ),
        ]
    }

    /// What follows, in a sentence.
    pub(super) fn conclusion(&self) -> String {
        format!(
            "Why the perturbation is a constant: the thesis runs its network record by record, and a batch norm over one record \
             returns its bias alone. With drawn weights its outputs differ between images by {} of their size so, and by {} \
             with statistics over all images at once.",
            format::number(self.alone),
            format::number(self.together)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_norm_over_one_record_forgets_it() {
        let shape = Shape::Image([28, 28, 1]);
        let mut rng = Generator::new(3, Purpose::Other, 0);
        let x: Vec<f32> = (0..6 * 784).map(|_| rng.uniform() as f32).collect();
        let images = Data::new(shape, x, 1, vec![0.0; 6]).unwrap();
        let spread = spread(&images, 6, 1).unwrap();
        assert!(spread.alone < 1e-9 && spread.together > 1e-3, "{} {}", spread.alone, spread.together);
        assert!(spread.conclusion().contains("bias alone"));
    }
}
