//! The same work on 1, 2, 4, … cores: how much faster it gets, how much memory it takes, and that no digit changes.

use crate::glm::{RELEASE, all_eta, everything};
use crate::net::records;
use crate::parallel::Parallel;
use crate::{best, forget_peak_memory, peak_memory};
use leakscope_core::fisher::{Directions, Geometry};
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_net::engine::clipped_gradient;
use leakscope_net::preset::{Preset, mlp};
use leakscope_net::{Clip, LayerSpec, Loss, Network, Shape};
use std::hash::{DefaultHasher, Hash, Hasher};

type Any<T> = Result<T, Box<dyn std::error::Error>>;

const CLIP: Clip = Clip::Hard { bound: 1.0 };

/// Seconds, and a hash of the bits of the result.
type Timed = (f64, u64);

fn bits(numbers: impl IntoIterator<Item = u64>) -> u64 {
    let mut hasher = DefaultHasher::new();
    numbers.into_iter().for_each(|n| n.hash(&mut hasher));
    hasher.finish()
}

/// η of every record.
fn eta(n: usize, d: usize) -> Any<Timed> {
    let rows = Parallel::synthetic(n, d, 1);
    let fit = glm::fit(&rows, Family::Linear, Penalty::new(1e-3, false))?;
    let geometry = Geometry::new(&fit, &[], RELEASE)?;
    let (seconds, eta) = best(15, || all_eta(&rows, &geometry));
    Ok((seconds, bits(eta.iter().map(|x| x.to_bits()))))
}

/// Rows of the widest table, and its columns as attributes.
fn widest() -> (Parallel, Vec<Directions>) {
    let (n, d) = (12_665, 784);
    (Parallel::synthetic(n, d, 2), (0..d).map(|j| Directions::columns(j..j + 1, d)).collect())
}

/// Fit, decompositions, records and their attributes.
fn wide() -> Any<Timed> {
    let (rows, directions) = widest();
    let mut fastest = f64::INFINITY;
    for _ in 0..5 {
        // All but the sets.
        fastest = fastest.min(everything(&rows, &directions)?[..3].iter().sum());
    }
    let fit = glm::fit(&rows, Family::Linear, Penalty::new(1e-3, false))?;
    Ok((fastest, bits(fit.w.iter().map(|x| x.to_bits()))))
}

/// The decompositions of that alone.
fn decompositions() -> Any<Timed> {
    let (rows, directions) = widest();
    let fit = glm::fit(&rows, Family::Linear, Penalty::new(1e-3, false))?;
    let (seconds, geometry) = best(7, || Geometry::new(&fit, &directions, RELEASE));
    Ok((seconds, bits(all_eta(&rows, &geometry?).iter().map(|x| x.to_bits()))))
}

/// Clipped gradients of a batch.
fn gradients(net: &Network<f32>, input: Shape, batch: usize) -> Any<Timed> {
    let data = records(batch, input)?;
    let all: Vec<usize> = (0..batch).collect();
    let (seconds, gradient) = best(5, || clipped_gradient(net, &data, &all, CLIP));
    Ok((seconds, bits(gradient?.sum.iter().map(|x| u64::from(x.to_bits())))))
}

fn convolutions() -> Any<Timed> {
    let input = Shape::Image([28, 28, 1]);
    gradients(&Network::<f32>::new(Preset::CnnMnist.spec(input, 10), 1)?, input, 600)
}

fn perceptron() -> Any<Timed> {
    let input = Shape::Vector([784]);
    let spec = mlp(input, &[2600, 3050], &LayerSpec::Relu, 10, Loss::SoftmaxCrossEntropy);
    gradients(&Network::<f32>::new(spec, 1)?, input, 256)
}

/// Prints the table.
pub(crate) fn run() -> Any<()> {
    let all = std::thread::available_parallelism()?.get();
    let mut cores: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < all).collect();
    cores.push(all);
    let heads: Vec<String> = cores.iter().map(|n| format!("{n:>12}")).collect();
    println!("{:44}{} cores", "seconds, and resident memory", heads.concat());
    type Work = fn() -> Any<Timed>;
    let works: [(&str, Work); 6] = [
        ("η of 12,665 × 20", || eta(12_665, 20)),
        ("η of 30,162 × 86", || eta(30_162, 86)),
        ("12,665 × 784: fit, η, attributes", wide),
        ("decompositions of 784 × 784 among these", decompositions),
        ("clipped gradients, CNN, batch 600", convolutions),
        ("clipped gradients, 10 M parameters, batch 256", perceptron),
    ];
    for (name, work) in works {
        // What earlier work had, the allocator may still hold: a line's memory is at most that and its own.
        forget_peak_memory();
        let mut outcomes = vec![];
        for &n in &cores {
            // Errors do not leave a pool.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build()?;
            outcomes.push(pool.install(|| work().map_err(|e| e.to_string()))?);
        }
        let cells: Vec<String> =
            outcomes.iter().map(|(seconds, _)| format!("{:>9.2} ms", seconds * 1e3)).collect();
        let speedup = outcomes[0].0 / outcomes[outcomes.len() - 1].0;
        let same = if outcomes.iter().all(|(_, bits)| *bits == outcomes[0].1) {
            "the same digits"
        } else {
            "OTHER DIGITS"
        };
        println!("{name:44}{}   ×{speedup:.1}, {same}, {} MB", cells.concat(), peak_memory());
    }
    Ok(())
}
