//! One run with canaries: each is in the data or not by a fair coin, the run is scored by how far its steps went in the direction
//! of each canary's gradient. Every score is computed from what the run gave out, whatever the optimiser.

use super::shadow::Recipe;
use crate::{
    Data, Network, Real,
    error::{Result, check},
    random::{Generator, Purpose},
    train::{Sampling, TrainConfig, Trainer},
};
use leakscope_core::{
    claim::Bound,
    dp::one_run::{Guesses, epsilon_at_least},
};

/// Who was in, and the scores of all canaries.
#[derive(Debug, Clone, PartialEq)]
pub struct CanaryRun {
    /// Whether a canary was in.
    pub included: Vec<bool>,
    /// `Σ_t ĝ_i(θ_t)·(θ_t − θ_{t+1})`: how far every step went in the direction ĝ = g/‖g‖ of its gradient, so that noise is as
    /// large in all of them.
    pub scores: Vec<f64>,
}

/// Trains once on the records that are no canaries and on a random half of those that are.
///
/// `canaries` are numbers of records of `data`. `watch` hears how many steps are made, and says whether to go on.
pub fn canary_run<T: Real>(
    recipe: &Recipe,
    data: &Data<T>,
    canaries: &[usize],
    seed: u64,
    watch: &dyn Fn(u64) -> bool,
) -> Result<CanaryRun> {
    data.check_records(canaries)?;
    check(!canaries.is_empty(), "the number of canaries", 0.0, "at least 1")?;
    let mut coins = Generator::new(seed, Purpose::Attack, u64::MAX);
    let included: Vec<bool> = canaries.iter().map(|_| coins.bits() & 1 == 1).collect();
    let mut takes_part = vec![true; data.len()];
    canaries.iter().zip(&included).for_each(|(&i, inside)| takes_part[i] = *inside);
    let ids: Vec<usize> = (0..data.len()).filter(|&i| takes_part[i]).collect();
    let training = data.subset(&ids)?;
    // what a step is divided by must not tell how many coins fell which way
    let expected = match recipe.config.sampling {
        Sampling::Poisson { rate } => rate * (data.len() as f64 - 0.5 * canaries.len() as f64),
        Sampling::Shuffle { batch } => batch as f64,
    };
    let config =
        TrainConfig { divisor: recipe.config.divisor.or(Some(expected)), seed, ..recipe.config.clone() };
    let mut trainer = Trainer::new(Network::new(recipe.spec.clone(), seed)?, &training, config)?;
    let mut scores = vec![0.0; canaries.len()];
    for step in 0..recipe.steps {
        if !watch(step) {
            break;
        }
        let before = trainer.network().parameters()?;
        let start = Network::with_parameters(recipe.spec.clone(), &before)?;
        trainer.step()?;
        let after = trainer.network().parameters()?;
        let moved: Vec<T> = before.iter().zip(&after).map(|(&a, &b)| a - b).collect();
        let along = T::alignments(&start, data, canaries, &moved)?;
        scores.iter_mut().zip(along).for_each(|(s, a)| *s += a);
    }
    Ok(CanaryRun { included, scores })
}

/// A number of guesses, and what they refute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refuted {
    /// The guesses.
    pub guesses: Guesses,
    /// ε is at least this, with the confidence of all numbers of guesses together.
    pub epsilon: Bound,
}

impl CanaryRun {
    /// The right ones of `guessed` guesses: of half of them, with the largest scores, that they were in, of the others, with
    /// the smallest, that they were not.
    pub fn guesses(&self, guessed: usize) -> Guesses {
        let m = self.scores.len();
        let guessed = guessed.min(m);
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by(|&a, &b| self.scores[b].total_cmp(&self.scores[a]).then(a.cmp(&b)));
        let inside = order[..guessed.div_ceil(2)].iter().filter(|&&i| self.included[i]).count();
        let outside = order[m - guessed / 2..].iter().filter(|&&i| !self.included[i]).count();
        Guesses { canaries: m as u64, guessed: guessed as u64, right: (inside + outside) as u64 }
    }

    /// The largest ε that any of a few numbers of guesses refutes, chosen beforehand: all canaries, a half, a quarter, and so on.
    /// The confidence is divided among them.
    pub fn refuted(&self, delta: f64, confidence: f64) -> Result<Refuted> {
        let m = self.scores.len();
        let numbers: Vec<usize> = (0..6).map(|k| m >> k).filter(|n| *n >= 8 || *n == m).collect();
        let each = 1.0 - (1.0 - confidence) / numbers.len() as f64;
        let mut best: Option<Refuted> = None;
        for n in numbers {
            let guesses = self.guesses(n);
            let epsilon = epsilon_at_least(guesses, delta, each)?;
            if best.is_none_or(|b| epsilon.value > b.epsilon.value) {
                best = Some(Refuted { guesses, epsilon });
            }
        }
        best.ok_or(crate::Error::Empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Clip, Loss, Shape,
        preset::mlp,
        random::Generator,
        train::{Optimizer, Privacy, Randomness, account},
    };

    /// Records of noise with random labels: the hardest thing to hide is that one of them was learned.
    fn noise(n: usize, d: usize) -> Data<f64> {
        let mut rng = Generator::new(3, Purpose::Other, 0);
        let x: Vec<f64> = (0..n * d).map(|_| rng.normal()).collect();
        let classes: Vec<u32> = (0..n).map(|_| rng.bits() % 2).collect();
        Data::classes(Shape::Vector([d]), x, 2, &classes).unwrap()
    }

    fn recipe(d: usize, privacy: Option<Privacy>, rate: f64, steps: u64) -> Recipe {
        let spec = mlp(Shape::Vector([d]), &[], &crate::LayerSpec::Tanh, 2, Loss::SoftmaxCrossEntropy);
        let config = TrainConfig {
            privacy,
            seed: 1,
            randomness: Randomness::SeededNotPrivate,
            ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 0.5, Sampling::Poisson { rate })
        };
        Recipe { spec, config, steps }
    }

    /// The bound stays below the ε of the accountant for private runs, and finds a run without noise out.
    #[test]
    fn one_run_bounds_epsilon_from_below() {
        let (n, d) = (240, 1200);
        let data = noise(n, d);
        let canaries: Vec<usize> = (0..200).collect();
        let go = |_: u64| true;
        let open = canary_run(&recipe(d, None, 1.0, 10), &data, &canaries, 5, &go).unwrap();
        let actual = open.refuted(1e-5, 0.95).unwrap();
        assert!(actual.epsilon.value > 2.0, "{actual:?}");
        let mut largest = 0.0_f64;
        for (sigma, seed) in [(0.5, 1), (0.5, 2), (1.0, 3), (4.0, 4)] {
            let privacy = Privacy { clip: Clip::Hard { bound: 1.0 }, sigma };
            let r = recipe(d, Some(privacy), 1.0, 4);
            let run = canary_run(&r, &data, &canaries, seed, &go).unwrap();
            let stated =
                TrainConfig { randomness: Randomness::System, divisor: Some(1.0), ..r.config.clone() };
            let promised = account(&stated, r.steps, n).unwrap().unwrap();
            let actual = run.refuted(1e-5, 0.99).unwrap();
            assert!(actual.epsilon.value <= promised.epsilon(), "{sigma}: {actual:?} {promised:?}");
            largest = largest.max(actual.epsilon.value);
        }
        assert!(largest > 0.3, "with little noise something is found: {largest}");
    }

    #[test]
    fn guesses_are_of_both_ends() {
        let run = CanaryRun {
            included: vec![true, true, false, false, true, false],
            scores: vec![5.0, 4.0, 3.0, -1.0, -2.0, -3.0],
        };
        assert_eq!(run.guesses(6), Guesses { canaries: 6, guessed: 6, right: 4 });
        assert_eq!(run.guesses(2), Guesses { canaries: 6, guessed: 2, right: 2 });
        assert_eq!(run.guesses(99).guessed, 6);
        let data = noise(10, 3);
        let none = canary_run(&recipe(3, None, 1.0, 1), &data, &[], 1, &|_| true);
        assert!(none.unwrap_err().to_string().contains("canaries"));
        assert!(canary_run(&recipe(3, None, 1.0, 1), &data, &[99], 1, &|_| true).is_err());
    }
}
