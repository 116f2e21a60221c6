//! The attacks on a softmax model, on all records of a block at once.

use super::super::game::nearest_model;
use super::super::tally::{Players, Tally, ranges};
use super::super::whitebox::collected;
use super::super::{Attack, Options, Secret};
use super::refits::Models;
use crate::Result;
use crate::glm::softmax::{SoftmaxFit, reduced_residual, softmax};
use crate::linalg::{axpy, dot, matmul, matmul_transposed};
use crate::rows::{Block, Rows};
use std::ops::Range;

/// Everything the attackers know that is not about one record.
pub(super) struct Game<'a> {
    models: Models<'a>,
    fit: &'a SoftmaxFit,
    secret: &'a Secret,
    options: &'a Options,
    parts: &'a [u8],
    /// What is white to the attackers, q × trials.
    white: Vec<f64>,
    /// What is added to Θ at σ = 1 as p × ((K−1) · trials): one column a contrast and trial.
    noise: Vec<f64>,
    /// ∇ of the objective at each released model, in the layout of `noise`: one a σ; empty where nobody asks.
    gradients: Vec<Vec<f64>>,
    log_prior: Vec<f64>,
}

/// Space, reused.
#[derive(Default)]
struct Space {
    /// Δ in the units of the noise, (records · M) × q, and its products with the noise.
    delta: Vec<f64>,
    moved: Vec<f64>,
    /// Products of rows with the noise, records × ((K−1) · trials).
    projected: Vec<f64>,
    best: Vec<f64>,
    guess: Vec<u32>,
}

impl<'a> Game<'a> {
    pub(super) fn new(
        rows: &dyn Rows,
        (fit, secret): (&'a SoftmaxFit, &'a Secret),
        options: &'a Options,
        normals: Vec<f64>,
        parts: &'a [u8],
    ) -> Result<Self> {
        let (q, p, k, t) = (fit.coefficients(), fit.width, fit.classes - 1, options.trials);
        let spread = match &options.shape {
            Some(shape) => {
                let mut noise = vec![0.0; q * t];
                matmul(shape.factor(), &normals, (q, q, t), &mut noise);
                noise
            }
            None => normals.clone(),
        };
        let mut noise = vec![0.0; p * k * t];
        for (aj, values) in spread.chunks_exact(t).enumerate() {
            noise[(aj % p * k + aj / p) * t..][..t].copy_from_slice(values);
        }
        let log_prior = secret.prior().iter().map(|p| p.ln()).collect();
        let models = Models::new(fit, secret)?;
        let mut game =
            Self { models, fit, secret, options, parts, white: normals, noise, gradients: vec![], log_prior };
        if options.attacks.contains(&Attack::Informed) {
            game.gradients = game.all_gradients(rows)?;
        }
        Ok(game)
    }

    fn k(&self) -> usize {
        self.fit.classes - 1
    }

    /// Predictors of classes, up to their common one, from reduced ones.
    fn classes_of(&self, reduced: &[f64], z: &mut [f64]) {
        z.iter_mut().zip(self.models.u.chunks_exact(self.k())).for_each(|(z, u)| *z = dot(u, reduced));
    }

    /// ∇ over all records at every released model.
    fn all_gradients(&self, rows: &dyn Rows) -> Result<Vec<Vec<f64>>> {
        let (p, k, t, s) = (self.fit.width, self.k(), self.options.trials, self.options.sigmas.len());
        let none = || vec![vec![0.0; p * k * t]; s];
        let mut total = none();
        rows.fold(
            || (none(), vec![], vec![], vec![0.0; p * k * t]),
            |(sums, projected, residuals, part), block| {
                let n = block.len();
                projected.resize(n * k * t, 0.0);
                matmul(&block.x, &self.noise, (n, p, k * t), projected);
                for (sum, &sigma) in sums.iter_mut().zip(&self.options.sigmas) {
                    residuals.clear();
                    residuals.resize(n * k * t, 0.0);
                    for i in 0..n {
                        let noisy = &projected[i * k * t..(i + 1) * k * t];
                        let out = &mut residuals[i * k * t..(i + 1) * k * t];
                        self.residuals_of((block.row(i), block.y[i], block.weight_of(i)), sigma, noisy, out);
                    }
                    matmul_transposed(&block.x, residuals, (p, n, k * t), part);
                    axpy(1.0, part, sum);
                }
                Ok(())
            },
            |(sums, ..)| {
                total.iter_mut().zip(&sums).for_each(|(a, b)| axpy(1.0, b, a));
                Ok(())
            },
        )?;
        let (d, strength) = (self.fit.penalty.data_width(p), self.fit.n as f64 * self.fit.penalty.l2);
        for (sum, &sigma) in total.iter_mut().zip(&self.options.sigmas) {
            for j in 0..d {
                for a in 0..k {
                    let (theta, at) = (self.fit.theta[a * p + j], (j * k + a) * t);
                    for trial in 0..t {
                        sum[at + trial] += strength * (theta + sigma * self.noise[at + trial]);
                    }
                }
            }
        }
        Ok(total)
    }

    /// `ωρ̂` of a row at every released model, (K−1) × trials.
    fn residuals_of(
        &self,
        (x, y, omega): (&[f64], f64, f64),
        sigma: f64,
        projected: &[f64],
        out: &mut [f64],
    ) {
        let (p, k, t) = (self.fit.width, self.k(), self.options.trials);
        let own: Vec<f64> = self.fit.theta.chunks_exact(p).map(|row| dot(row, x)).collect();
        let (mut reduced, mut z) = (vec![0.0; k], vec![0.0; k + 1]);
        let class = (y as usize).min(k);
        for trial in 0..t {
            (0..k).for_each(|a| reduced[a] = own[a] + sigma * projected[a * t + trial]);
            self.classes_of(&reduced, &mut z);
            softmax(&mut z);
            let rho = reduced_residual(&z, class, &self.models.u);
            rho.enumerate().for_each(|(a, rho)| out[a * t + trial] = omega * rho);
        }
    }

    /// All attacks on all records.
    pub(super) fn play(&self, rows: &dyn Rows) -> Result<Tally> {
        let players = Players { secret: self.secret, options: self.options, parts: self.parts };
        let (mut total, white_box) = (players.tally(), self.options.white_box());
        let (mut space, per_record) = (Space::default(), self.secret.len() * self.fit.coefficients());
        for block in collected(rows)? {
            let all = if white_box { self.models.of_block(rows, &block)? } else { vec![] };
            for range in ranges(&block) {
                space.delta.clear();
                if white_box {
                    let delta = &all[range.start * per_record..range.end * per_record];
                    match &self.options.shape {
                        Some(shape) => space.delta = shape.whiten_rows(delta),
                        None => space.delta.extend_from_slice(delta),
                    }
                }
                self.products(&block, range.clone(), &mut space);
                total.rows(players, (&block, range), &mut space, |attack, s, (i, at), space| {
                    self.record(attack, s, (&block, i, at), space);
                    &space.guess
                });
            }
        }
        Ok(total)
    }

    /// Of some rows and of what their candidates change with the noise.
    fn products(&self, block: &Block, range: Range<usize>, space: &mut Space) {
        let (p, q, t, k) = (self.fit.width, self.fit.coefficients(), self.options.trials, self.k());
        let (n, m) = (range.len(), self.secret.len());
        if !space.delta.is_empty() {
            space.moved.resize(n * m * t, 0.0);
            matmul(&space.delta, &self.white, (n * m, q, t), &mut space.moved);
        }
        space.projected.resize(n * k * t, 0.0);
        let x = &block.x[range.start * p..range.end * p];
        matmul(x, &self.noise, (n, p, k * t), &mut space.projected);
        space.best.resize(t, 0.0);
        space.guess.resize(t, 0);
    }

    /// The guesses of one attacker about row `i` of a block (`at` of those in `space`) in every trial.
    fn record(&self, attack: Attack, s: usize, (block, i, at): (&Block, usize, usize), space: &mut Space) {
        let prior = match attack {
            Attack::WhiteBox => None,
            Attack::WhiteBoxPrior => Some(self.log_prior.as_slice()),
            Attack::BlackBox => return self.by_probability(s, block, i, at, space),
            Attack::Informed => return self.by_stationarity(s, block, i, at, space),
        };
        let (m, q, t) = (self.secret.len(), self.fit.coefficients(), self.options.trials);
        let delta = &space.delta[at * m * q..(at + 1) * m * q];
        let moved = &space.moved[at * m * t..(at + 1) * m * t];
        let sigma = self.options.sigmas[s];
        nearest_model((delta, q), moved, (sigma, prior), &mut space.best, &mut space.guess);
    }

    /// `argmax_m p_m π_y(Θ', x_m)`.
    fn by_probability(&self, s: usize, block: &Block, i: usize, at: usize, space: &mut Space) {
        let (p, k, t, sigma) = (self.fit.width, self.k(), self.options.trials, self.options.sigmas[s]);
        let (x, class, columns) = (block.row(i), (block.y[i] as usize).min(self.k()), self.secret.columns());
        let own: Vec<f64> = self.fit.theta.chunks_exact(p).map(|row| dot(row, x)).collect();
        let (mut reduced, mut z) = (vec![0.0; k], vec![0.0; k + 1]);
        for trial in 0..t {
            let (mut best, mut guess) = (f64::NEG_INFINITY, self.secret.most_probable());
            for m in 0..self.secret.len() {
                for a in 0..k {
                    let noisy = own[a] + sigma * space.projected[(at * k + a) * t + trial];
                    let changes = columns.clone().zip(self.secret.candidate(m)).map(|(j, c)| {
                        let w = self.fit.theta[a * p + j] + sigma * self.noise[(j * k + a) * t + trial];
                        w * (c - x[j])
                    });
                    reduced[a] = noisy + changes.sum::<f64>();
                }
                self.classes_of(&reduced, &mut z);
                let y = z[class];
                let score = self.log_prior[m] + y - softmax(&mut z);
                if score > best {
                    (best, guess) = (score, m);
                }
            }
            space.guess[trial] = guess as u32;
        }
    }

    /// The record whose rank-one `ωρ̂ ⊗ x` is what stationarity leaves: `x_j = Σ_a g_aj g_a0 / Σ_a g_a0²`.
    fn by_stationarity(&self, s: usize, block: &Block, i: usize, at: usize, space: &mut Space) {
        let (p, k, t, sigma) = (self.fit.width, self.k(), self.options.trials, self.options.sigmas[s]);
        let (x, first) = (block.row(i), self.secret.columns().start);
        let mut rho = vec![0.0; k * t];
        let projected = &space.projected[at * k * t..(at + 1) * k * t];
        self.residuals_of((x, block.y[i], block.weight_of(i)), sigma, projected, &mut rho);
        let gradient = &self.gradients[s];
        let g =
            |a: usize, j: usize, trial: usize| rho[a * t + trial] * x[j] - gradient[(j * k + a) * t + trial];
        for trial in 0..t {
            let scale: f64 = (0..k).map(|a| g(a, p - 1, trial).powi(2)).sum();
            let value = |j: usize| {
                let along: f64 = (0..k).map(|a| g(a, first + j, trial) * g(a, p - 1, trial)).sum();
                along / scale
            };
            let nearest = self.secret.nearest(value);
            space.guess[trial] = nearest.map_or(self.secret.most_probable(), |f| f.0) as u32;
        }
    }
}
