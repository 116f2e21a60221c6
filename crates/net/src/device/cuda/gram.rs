//! Gradients of convolutions by their Gram matrices: where that is better than the arrays, and how the kernels (`gram.cu`) are
//! started.

use super::convolution::{Launch, plane};
use crate::shape::Window;

/// Positions, and blocks of pixels, whose products fit.
const MOST_ROWS: usize = 64;
/// Threads that keep a sum over records.
const MOST_THREADS: usize = 512;

/// The kernels of a convolution with few positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Gram {
    /// Both matrices.
    pub(super) products: Launch,
    /// Products with one of them, forward and back.
    pub(super) forward: Launch,
    pub(super) backward: Launch,
    /// Weighted sums over records.
    pub(super) sum: Launch,
}

/// Absent where arrays are better: matrices of T × T would be larger, or patches are not made of whole blocks of SH × SW
/// pixels. `items` and `one` are the tiles of a gradient and the values that it holds of a record.
pub(super) fn launches(
    window: &Window,
    outputs: usize,
    (items, one): (usize, usize),
    (bytes, most): (usize, usize),
) -> Option<Gram> {
    let Window { channels, kernel, stride, out, .. } = *window;
    let whole = kernel[0].is_multiple_of(stride[0]) && kernel[1].is_multiple_of(stride[1]);
    let t = window.positions();
    let patch = [kernel[0] / stride[0], kernel[1] / stride[1]];
    let [ny, nx] = [out[0] + patch[0] - 1, out[1] + patch[1] - 1];
    let blocks = ny * nx;
    if !whole || t.max(blocks) > MOST_ROWS || 2 * t * t > window.patch() * outputs || items > MOST_THREADS {
        return None;
    }
    let four = |n: usize| n.next_multiple_of(4);
    let odd = |n: usize| n + 1 - n % 2;
    let depth = stride[0] * stride[1] * channels;
    let (b, d) = (four(blocks), four(t));
    let image = b * plane(depth);
    let pairs = |rows: usize| (rows / 4 * (rows / 4 + 1) / 2).next_multiple_of(32);
    let launch = |threads: usize, values: usize| Launch {
        records: 1,
        threads,
        // and a sum for each warp
        shared: values * bytes + 512,
    };
    let grams = four(b * odd(b) + d * odd(d));
    let products = launch(pairs(b) + pairs(d), 2 * (image + d * plane(outputs)) + grams);
    let each = if outputs.is_multiple_of(4) { 4 } else { 1 };
    let forward_items = (t * (outputs / each)).next_multiple_of(32).clamp(64, 256);
    let forward = launch(forward_items, 2 * (four(t * t) + t * outputs));
    let around = (ny + patch[0] - 1) * (nx + patch[1] - 1);
    let backward_items = (b / 4 * (four(depth) / 4)).next_multiple_of(32).clamp(64, 256);
    let backward = launch(backward_items, 2 * (image + four(around * odd(around))) + blocks * b);
    let gram = Gram { products, forward, backward, sum: launch(items, 2 * one) };
    let all = [gram.products, gram.forward, gram.backward, gram.sum];
    all.iter().all(|l| l.shared <= most && l.threads <= 1024).then_some(gram)
}
