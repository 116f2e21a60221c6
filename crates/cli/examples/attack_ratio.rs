//! How much faster the rank-two white box is than refitting in a loop, as published code does it.
//!
//! `cargo run --release -p leakscope --example attack_ratio -- FILE TARGET SECRET L2 [CATEGORICAL,…]`
//!
//! The loop refits one model per record and candidate on all rows with this library's own solver, for as many records as
//! fit in a few seconds, and is extrapolated; comparing with noise vectors comes on top in both. Both sides are then
//! checked against each other.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark, run by hand")]

use leakscope_core::attack::{Attack, Options, Secret, attack, candidate_models};
use leakscope_core::glm::{Family, Penalty, fit};
use leakscope_core::rows::{InMemory, Rows};
use leakscope_table::{Dataset, EncodeOptions, Encoding, Hooks, ReadOptions, Roles, Subset, Table};
use std::time::Instant;

const LOOP_SECONDS: f64 = 5.0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, target, name, l2] = &args[..4] else { panic!("FILE TARGET SECRET L2 [CATEGORICAL,…]") };
    let read = ReadOptions { paths: vec![file.into()], ..ReadOptions::default() };
    let table = Table::open(&read).unwrap();
    let categorical = args.get(4).map(|c| c.split(',').map(String::from).collect()).unwrap_or_default();
    let roles = Roles { target: target.clone(), categorical, ..Roles::default() };
    let hooks = Hooks::default();
    let encoding = Encoding::fit(&table, &roles, &EncodeOptions::default(), &hooks).unwrap();
    let rows = Dataset::new(&table, &encoding, Subset::Training, &hooks).unwrap();
    let penalty = Penalty { l2: l2.parse().unwrap(), intercept: true };
    let best = fit(&rows, Family::Linear, penalty).unwrap();
    let a = encoding.attributes.iter().find(|a| a.name == *name).unwrap();
    let levels = &encoding.profile.iter().find(|p| p.name == *name).unwrap().levels;
    let counts: Vec<u64> = a.levels.iter().map(|l| levels.iter().find(|c| c.0 == *l).unwrap().1).collect();
    let k = a.columns.len();
    let values: Vec<f64> =
        (0..counts.len() * k).map(|mj| f64::from(u8::from(mj / k == mj % k)) / a.scale).collect();
    let secret = Secret::category(a.columns.clone(), values, &counts).unwrap();

    let sigmas = (0..16).map(|k| 10_f64.powf(-5.0 + 0.3 * f64::from(k))).collect();
    let options = Options { attacks: vec![Attack::WhiteBox], sigmas, trials: 100, seed: 1, two_class: false };
    let clock = Instant::now();
    let found = attack(&rows, &best, &secret, &options, &[]).unwrap();
    let fast = clock.elapsed().as_secs_f64();
    println!(
        "rank-two: {} records × {} candidates × 100 trials × 16 scales in {fast:.3} s",
        found.records,
        secret.len()
    );

    let (mut x, mut y) = (vec![], vec![]);
    rows.fold(
        || (vec![], vec![]),
        |(x, y), block| {
            x.extend_from_slice(&block.x);
            y.extend_from_slice(&block.y);
            Ok(())
        },
        |(a, b)| {
            x.extend(a);
            y.extend(b);
            Ok(())
        },
    )
    .unwrap();
    let (p, n) = (rows.width(), y.len());
    let clock = Instant::now();
    let mut refits: Vec<(usize, usize, Vec<f64>)> = vec![];
    'all: for i in 0..n {
        for m in 0..secret.len() {
            if clock.elapsed().as_secs_f64() > LOOP_SECONDS {
                break 'all;
            }
            let mut changed = x.clone();
            changed[i * p..(i + 1) * p][secret.columns()].copy_from_slice(secret.candidate(m));
            let table = InMemory::from_matrix(&changed, &y, &[], 1024);
            refits.push((i, m, fit(&table, Family::Linear, penalty).unwrap().w));
        }
    }
    let each = clock.elapsed().as_secs_f64() / refits.len() as f64;
    let slow = each * (n * secret.len()) as f64;
    println!(
        "refitting: {} fits of {:.2} ms; all {} would take {slow:.1} s",
        refits.len(),
        1e3 * each,
        n * secret.len()
    );
    println!("ratio: {:.0}", slow / fast);
    let models = candidate_models(&rows, &best, &secret).unwrap();
    let worst = refits
        .iter()
        .flat_map(|(i, m, w)| w.iter().zip(&models[i * secret.len() + m]).map(|(a, b)| (a - b).abs()))
        .fold(0.0, f64::max);
    println!("largest difference of a coefficient: {worst:.1e}");
}
