//! Rows in memory, passed over by all cores, as the table crate does with a cached file.

use leakscope_core::Result;
use leakscope_core::rows::{Block, Finish, Part, Rows, Start};
use rayon::prelude::*;

/// Runs of blocks with a state of their own, and how many of them are made before they are merged at least: as in the table crate.
const RUNS: usize = 16;
const WAVE: usize = 8;

/// Blocks of rows; every wave of them is folded in parallel and merged in order.
pub(crate) struct Parallel {
    pub(crate) blocks: Vec<Block>,
}

impl Parallel {
    /// Cut as the table crate cuts them: about a megabyte a block, and at least sixteen blocks of 256 rows or more.
    /// Correlated normal columns and a target that depends on them; no intercept.
    pub(crate) fn synthetic(n: usize, d: usize, seed: u64) -> Self {
        let runs = (n / 256).clamp(1, RUNS);
        let blocks_in_run = n.div_ceil(runs).div_ceil((131_072 / d).clamp(256, 8192));
        let block_rows = n.div_ceil(runs * blocks_in_run);
        let starts: Vec<usize> = (0..n).step_by(block_rows).collect();
        let blocks = starts.par_iter().map(|&start| {
            let mut random = Random(seed ^ (start as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let rows = block_rows.min(n - start);
            let mut block = Block { first_row: start as u64, width: d, ..Block::default() };
            for _ in 0..rows {
                let shared = random.normal();
                let first = block.x.len();
                for j in 0..d {
                    // Decaying spread and a common factor: condition numbers as real tables have them.
                    let spread = 1.0 / (1.0 + j as f64 / 8.0);
                    block.x.push(spread * (0.8 * random.normal() + 0.6 * shared));
                }
                let z: f64 = block.x[first..].iter().take(10).sum();
                block.y.push(if z + random.normal() > 0.0 { 1.0 } else { -1.0 });
            }
            block
        });
        Self { blocks: blocks.collect() }
    }
}

impl Rows for Parallel {
    fn width(&self) -> usize {
        self.blocks.first().map_or(0, |b| b.width)
    }

    fn len(&self) -> u64 {
        self.blocks.iter().map(|b| b.len() as u64).sum()
    }

    fn parts<'s>(&self, start: &Start<'_, 's>, merge: &mut Finish<'_, 's>) -> Result<()> {
        let runs: Vec<&[Block]> = self.blocks.chunks(self.blocks.len().div_ceil(RUNS).max(1)).collect();
        for wave in runs.chunks(WAVE.max(rayon::current_num_threads())) {
            let parts: Vec<Result<Box<dyn Part + 's>>> = wave
                .par_iter()
                .with_max_len(1)
                .map(|run| {
                    let mut part = start();
                    run.iter().try_for_each(|block| part.step(block))?;
                    Ok(part)
                })
                .collect();
            parts.into_iter().try_for_each(|part| merge(part?))?;
        }
        Ok(())
    }
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((x ^ (x >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
