//! The white box on a table of the warfarin data's shape against refitting in a loop, as it is published.

use crate::best;
use leakscope_core::attack::{Attack, Options, Secret, attack, candidate_models};
use leakscope_core::glm::{Family, Penalty, fit};
use leakscope_core::random::Seeded;
use leakscope_core::rows::InMemory;
use std::time::Instant;

/// Records and columns.
const N: usize = 4_819;
const D: usize = 14;
/// Values of the secret, whose indicators, the last dropped, are the first columns.
const M: usize = 3;
/// The loop runs for so many seconds and is extrapolated.
const LOOP_SECONDS: f64 = 5.0;
const PENALTY: Penalty = Penalty::new(1e-2, false);

pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut random = Seeded::new(1);
    let mut x = random.normals(N * D);
    let mut counts = [0; M];
    for (i, row) in x.chunks_exact_mut(D).enumerate() {
        let level = (i * i + i / 7) % M;
        counts[level] += 1;
        (0..M - 1).for_each(|m| row[m] = f64::from(u8::from(m == level)));
    }
    let noise = random.normals(N);
    let y: Vec<f64> = x.chunks_exact(D).zip(&noise).map(|(row, e)| row.iter().sum::<f64>() + e).collect();
    let rows = InMemory::from_matrix(&x, &y, &[], 1024);
    let model = fit(&rows, Family::Linear, PENALTY)?;
    let candidates = (0..M * (M - 1)).map(|c| f64::from(u8::from(c / (M - 1) == c % (M - 1)))).collect();
    let secret = Secret::category(0..M - 1, candidates, &counts)?;
    let sigmas = (0..16).map(|k| 10_f64.powf(-5.0 + 0.3 * f64::from(k))).collect();
    let options = Options {
        attacks: vec![Attack::WhiteBox],
        sigmas,
        trials: 100,
        seed: 1,
        two_class: false,
        shape: None,
    };
    let (ours, outcome) = best(3, || attack(&rows, &model, &secret, &options, &[]));
    let outcome = outcome?;
    let threads = rayon::current_num_threads();
    println!(
        "white box, {} records × {M} candidates × 100 trials × 16 scales, {threads} threads: {ours:.3} s",
        outcome.records
    );

    let clock = Instant::now();
    let mut refits: Vec<(usize, Vec<f64>)> = vec![];
    for c in 0..N * M {
        if clock.elapsed().as_secs_f64() > LOOP_SECONDS {
            break;
        }
        let (i, m) = (c / M, c % M);
        let mut changed = x.clone();
        changed[i * D..][..M - 1].copy_from_slice(secret.candidate(m));
        let table = InMemory::from_matrix(&changed, &y, &[], 1024);
        refits.push((c, fit(&table, Family::Linear, PENALTY)?.w));
    }
    let each = clock.elapsed().as_secs_f64() / refits.len() as f64;
    let loop_alone = each * (N * M) as f64;
    println!(
        "refitting in a loop, the same threads: {} models in {:.2} ms each, all {} in {loop_alone:.1} s (×{:.0})",
        refits.len(),
        1e3 * each,
        N * M,
        loop_alone / ours
    );
    let models = candidate_models(&rows, &model, &secret)?;
    let off = |(c, w): &(usize, Vec<f64>)| {
        w.iter().zip(&models[*c]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let worst = refits.iter().map(off).fold(0.0, f64::max);
    assert!(worst < 1e-9, "the two ways disagree by {worst:e}");
    println!("largest difference of a coefficient: {worst:.1e}");
    Ok(())
}
