//! The one loop of every byte-pair encoding: join the best pair of neighbours until none is left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Joins neighbours of `symbols`, best pair first (the smallest key; the leftmost of equals), until no pair has a key.
/// `join` gives the key of a pair and what it becomes. `O(n log n)`.
pub(super) fn merged<K: Ord + Copy>(
    mut symbols: Vec<u32>,
    join: impl Fn(u32, u32) -> Option<(K, u32)>,
) -> Vec<u32> {
    const GONE: u32 = u32::MAX;
    let n = symbols.len();
    let mut next: Vec<usize> = (1..=n).collect();
    let mut before: Vec<usize> = (0..n).map(|i| i.wrapping_sub(1)).collect();
    let mut queue = BinaryHeap::new();
    let push = |queue: &mut BinaryHeap<_>, symbols: &[u32], left: usize, right: usize| {
        if let Some((key, whole)) = join(symbols[left], symbols[right]) {
            queue.push(Reverse((key, left, right, symbols[left], symbols[right], whole)));
        }
    };
    for i in 1..n {
        push(&mut queue, &symbols, i - 1, i);
    }
    while let Some(Reverse((_, left, right, a, b, whole))) = queue.pop() {
        // A pair that was queued before one of its halves changed is no pair any more.
        if symbols[left] != a || symbols[right] != b || next[left] != right {
            continue;
        }
        symbols[left] = whole;
        symbols[right] = GONE;
        let after = next[right];
        next[left] = after;
        if after < n {
            before[after] = left;
            push(&mut queue, &symbols, left, after);
        }
        if before[left] < n {
            push(&mut queue, &symbols, before[left], left);
        }
    }
    symbols.retain(|&s| s != GONE);
    symbols
}
