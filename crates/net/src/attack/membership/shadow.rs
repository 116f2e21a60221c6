//! Shadow models: trained as the attacked one was, on random halves of a pool.

use super::signals;
use crate::{
    Data, NetSpec, Network, Real,
    error::{Result, check},
    random::{Generator, Purpose},
    train::{Randomness, TrainConfig, Trainer},
};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a model was trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The network.
    pub spec: NetSpec,
    /// Optimiser, batches, clip and noise.
    pub config: TrainConfig,
    /// Steps.
    pub steps: u64,
}

/// One shadow model: who was in, and how sure it is of everybody.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadow {
    /// Whether a record of the pool was trained on.
    pub included: Vec<bool>,
    /// `log p/(1 − p)` of every record.
    pub confidences: Vec<f64>,
}

/// Trains shadow models in pairs, one on a random half of the pool, the other on the rest, so that every record is in half of
/// them. `watch` hears how many are done, and says whether to go on; where not, those that are done are returned.
pub fn shadows<T: Real>(
    recipe: &Recipe,
    pool: &Data<T>,
    count: usize,
    seed: u64,
    watch: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Vec<Shadow>> {
    check(
        count >= 2 && count.is_multiple_of(2),
        "the number of shadow models",
        count as f64,
        "even, at least 2",
    )?;
    check(pool.len() >= 4, "the number of records", pool.len() as f64, "at least 4")?;
    let done = AtomicU64::new(0);
    let one = |k: usize| -> Result<Option<Shadow>> {
        if !watch(done.load(Ordering::Relaxed)) {
            return Ok(None);
        }
        let n = pool.len();
        let order = Generator::new(seed, Purpose::Attack, k as u64 / 2).permutation(n);
        let (first, second) = order.split_at(n / 2);
        let mut included = vec![false; n];
        (if k.is_multiple_of(2) { first } else { second }).iter().for_each(|&i| included[i] = true);
        let net = trained(recipe, pool, &included, seed.wrapping_add(1 + k as u64))?;
        done.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Shadow { included, confidences: signals(&net, pool)?.confidences }))
    };
    let all: Vec<Option<Shadow>> = (0..count).into_par_iter().map(one).collect::<Result<_>>()?;
    Ok(all.into_iter().flatten().collect())
}

fn trained<T: Real>(recipe: &Recipe, pool: &Data<T>, included: &[bool], seed: u64) -> Result<Network<T>> {
    let ids: Vec<usize> = (0..pool.len()).filter(|&i| included[i]).collect();
    let data = pool.subset(&ids)?;
    let net = Network::new(recipe.spec.clone(), seed)?;
    // shadow models are the attacker's own: their noise need not be secret
    let config = TrainConfig { seed, randomness: Randomness::SeededNotPrivate, ..recipe.config.clone() };
    let mut trainer = Trainer::new(net, &data, config)?;
    for _ in 0..recipe.steps {
        trainer.step()?;
    }
    Ok(trainer.into_network())
}
