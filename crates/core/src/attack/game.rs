//! The attacks themselves, on all records of a block at once: products with the noise, then guesses.

use super::tally::{Players, Tally, ranges};
use super::whitebox::{Deltas, Models, collected};
use super::{Attack, Options, Secret};
use crate::Result;
use crate::glm::{Family, Fit};
use crate::linalg::{axpy, dot, matmul, matmul_transposed};
use crate::rows::{Block, Rows};
use std::ops::Range;

/// Everything the attackers know that is not about one record.
pub(super) struct Game<'a> {
    models: Models<'a>,
    fit: &'a Fit,
    secret: &'a Secret,
    options: &'a Options,
    parts: &'a [u8],
    /// What is added to the coefficients at σ = 1, p × trials: b, or Fb where the noise has a shape.
    noise: Vec<f64>,
    /// b, p × trials, where the noise has a shape.
    white: Option<Vec<f64>>,
    /// `c_m · b` over the secret's columns, M × trials.
    candidate_noise: Vec<f64>,
    /// What each released model is known to get wrong: sigmas × trials.
    accuracy: Vec<Accuracy>,
    /// ∇ of the objective over all records at each released model: sigmas × (p × trials).
    gradients: Vec<Vec<f64>>,
    log_prior: Vec<f64>,
}

/// How well a released model predicts on the training rows: what a black box publishes.
#[derive(Debug, Clone, Copy, Default)]
struct Errors {
    squares: f64,
    rows: f64,
    /// [true class high][predicted high].
    confusion: [[f64; 2]; 2],
}

impl Errors {
    fn add(&mut self, other: &Self) {
        self.squares += other.squares;
        self.rows += other.rows;
        for (a, b) in self.confusion.iter_mut().flatten().zip(other.confusion.iter().flatten()) {
            *a += b;
        }
    }

    fn accuracy(&self) -> Accuracy {
        let variance = (self.squares / self.rows.max(1.0)).max(f64::MIN_POSITIVE);
        let share = |row: [f64; 2]| row.map(|count| (count / (row[0] + row[1]).max(1.0)).ln());
        Accuracy { half_precision: 0.5 / variance, log_confusion: self.confusion.map(share) }
    }
}

/// What follows from them for a guess.
#[derive(Debug, Clone, Copy)]
struct Accuracy {
    /// `1/2s²`, s² the mean squared error.
    half_precision: f64,
    /// Logarithm of how often the model answers one class when another is true (Fredrikson's confusion matrix).
    log_confusion: [[f64; 2]; 2],
}

/// Space for one thread, reused.
#[derive(Default)]
struct Space {
    deltas: Deltas,
    /// Δ·B, (records · M) × trials.
    moved: Vec<f64>,
    /// X·B, records × trials.
    projected: Vec<f64>,
    best: Vec<f64>,
    guess: Vec<u32>,
}

impl<'a> Game<'a> {
    pub(super) fn new(
        rows: &dyn Rows,
        fit: &'a Fit,
        secret: &'a Secret,
        options: &'a Options,
        normals: Vec<f64>,
        parts: &'a [u8],
    ) -> Result<Self> {
        let (m, t, p) = (secret.len(), options.trials, fit.w.len());
        let (noise, white) = match &options.shape {
            Some(shape) => {
                let mut noise = vec![0.0; p * t];
                matmul(shape.factor(), &normals, (p, p, t), &mut noise);
                (noise, Some(normals))
            }
            None => (normals, None),
        };
        let mut candidate_noise = vec![0.0; m * t];
        for (k, out) in candidate_noise.chunks_exact_mut(t).enumerate() {
            for (j, c) in secret.columns().zip(secret.candidate(k)) {
                axpy(*c, &noise[j * t..(j + 1) * t], out);
            }
        }
        let mut game = Self {
            models: Models::new(fit, secret)?,
            fit,
            secret,
            options,
            parts,
            noise,
            white,
            candidate_noise,
            accuracy: vec![],
            gradients: vec![],
            log_prior: secret.prior().iter().map(|p| p.ln()).collect(),
        };
        game.publish(rows)?;
        Ok(game)
    }

    fn plays(&self, attack: Attack) -> bool {
        self.options.attacks.contains(&attack)
    }

    fn players(&self) -> Players<'_> {
        Players { secret: self.secret, options: self.options, parts: self.parts }
    }

    /// One pass for what is known of every released model: its errors and the gradient over all records.
    fn publish(&mut self, rows: &dyn Rows) -> Result<()> {
        let (p, t, s) = (self.fit.w.len(), self.options.trials, self.options.sigmas.len());
        let black_box = self.plays(Attack::BlackBox);
        let informed = self.plays(Attack::Informed);
        // The gradient of a linear regression is linear: ∇(w* + σb) = σHb.
        let linear = self.fit.family == Family::Linear;
        let with_gradient = informed && !linear;
        let none = || {
            let gradients = vec![vec![0.0; p * t]; if with_gradient { s } else { 0 }];
            (vec![Errors::default(); s * t], gradients)
        };
        let (mut errors, mut gradients) = none();
        if black_box || with_gradient {
            rows.fold(
                || (none(), (vec![], vec![], vec![0.0; p * t])),
                |((errors, gradients), (q, r, part)), block| {
                    q.resize(block.len() * t, 0.0);
                    matmul(&block.x, &self.noise, (block.len(), p, t), q);
                    for (k, &sigma) in self.options.sigmas.iter().enumerate() {
                        r.clear();
                        self.errors_of(block, sigma, q, &mut errors[k * t..(k + 1) * t], r, with_gradient);
                        if with_gradient {
                            matmul_transposed(&block.x, r, (p, block.len(), t), part);
                            axpy(1.0, part, &mut gradients[k]);
                        }
                    }
                    Ok(())
                },
                |((e, g), _)| {
                    errors.iter_mut().zip(&e).for_each(|(a, b)| a.add(b));
                    gradients.iter_mut().zip(&g).for_each(|(a, b)| axpy(1.0, b, a));
                    Ok(())
                },
            )?;
        }
        if informed && linear {
            let mut hb = vec![0.0; p * t];
            matmul(&self.fit.hessian, &self.noise, (p, p, t), &mut hb);
            gradients = self.options.sigmas.iter().map(|s| hb.iter().map(|v| s * v).collect()).collect();
        } else if with_gradient {
            let d = self.fit.penalty.data_width(p);
            let strength = self.fit.n as f64 * self.fit.penalty.l2;
            for (gradient, &sigma) in gradients.iter_mut().zip(&self.options.sigmas) {
                for (jt, g) in gradient.iter_mut().enumerate().take(d * t) {
                    *g += strength * (self.fit.w[jt / t] + sigma * self.noise[jt]);
                }
                if let Some(strength) = self.fit.penalty.on_intercept(self.fit.n) {
                    let (w, noise) = (self.fit.w[d], &self.noise[d * t..]);
                    for (g, noise) in gradient[d * t..].iter_mut().zip(noise) {
                        *g += strength * (w + sigma * noise);
                    }
                }
            }
        }
        (self.accuracy, self.gradients) = (errors.iter().map(Errors::accuracy).collect(), gradients);
        Ok(())
    }

    /// Adds the errors of a block at one noise scale, and lists `ω r` (rows × trials) where asked to.
    fn errors_of(
        &self,
        block: &Block,
        sigma: f64,
        q: &[f64],
        errors: &mut [Errors],
        residuals: &mut Vec<f64>,
        list: bool,
    ) {
        let t = self.options.trials;
        for i in 0..block.len() {
            let (z, y, omega) = (dot(block.row(i), &self.fit.w), block.y[i], block.weight_of(i));
            for (e, q) in errors.iter_mut().zip(&q[i * t..(i + 1) * t]) {
                let noisy = z + sigma * q;
                e.squares += self.squared_error(noisy, y);
                e.rows += 1.0;
                e.confusion[usize::from(y > 0.0)][usize::from(noisy >= 0.0)] += 1.0;
                if list {
                    residuals.push(omega * self.fit.family.terms(noisy, y).r);
                }
            }
        }
    }

    /// The square of an error: over the variance that the mean has where that grows with it, whose mean is the dispersion.
    fn squared_error(&self, z: f64, y: f64) -> f64 {
        match self.fit.family {
            Family::Linear | Family::Logistic | Family::Poisson | Family::SquaredHinge | Family::Huber(_) => {
                (z - y).powi(2)
            }
            Family::Gamma => (y * (-z).exp() - 1.0).powi(2),
            Family::Tweedie(power) => (y - z.exp()).powi(2) * (-power.value() * z).exp(),
        }
    }

    /// All attacks on all records.
    pub(super) fn play(&self, rows: &dyn Rows) -> Result<Tally> {
        let white_box = self.options.white_box();
        let mut total = self.players().tally();
        if self.fit.family == Family::Linear || !white_box {
            rows.fold(
                || (self.players().tally(), Space::default()),
                |(tally, space), block| {
                    for range in ranges(block) {
                        if white_box {
                            self.models.first_steps(block, range.clone(), &mut space.deltas)?;
                        }
                        self.guess(block, range, tally, space);
                    }
                    Ok(())
                },
                |(tally, _)| {
                    total.merge(&tally);
                    Ok(())
                },
            )?;
            return Ok(total);
        }
        // Every candidate needs passes of its own over all rows: one block of records after the other.
        let mut space = Space::default();
        for block in collected(rows)? {
            self.models.by_newton(rows, &block, &mut space.deltas)?;
            let all = std::mem::take(&mut space.deltas);
            let per_record = self.secret.len() * self.fit.w.len();
            for range in ranges(&block) {
                let delta = &all.delta[range.start * per_record..range.end * per_record];
                space.deltas.delta.clear();
                space.deltas.delta.extend_from_slice(delta);
                self.guess(&block, range, &mut total, &mut space);
            }
        }
        Ok(total)
    }

    fn guess(&self, block: &Block, range: Range<usize>, tally: &mut Tally, space: &mut Space) {
        let (p, t, m) = (self.fit.w.len(), self.options.trials, self.secret.len());
        let n = range.len();
        if self.options.white_box() {
            space.moved.resize(n * m * t, 0.0);
            // Distances by Σ⁻¹ are those of F⁻¹Δ, and the noise is white there.
            if let Some(shape) = &self.options.shape {
                space.deltas.delta = shape.whiten_rows(&space.deltas.delta);
            }
            let white = self.white.as_ref().unwrap_or(&self.noise);
            matmul(&space.deltas.delta, white, (n * m, p, t), &mut space.moved);
        }
        space.projected.resize(n * t, 0.0);
        matmul(&block.x[range.start * p..range.end * p], &self.noise, (n, p, t), &mut space.projected);
        space.best.resize(t, 0.0);
        space.guess.resize(t, 0);
        tally.rows(self.players(), (block, range), space, |attack, s, (i, k), space| {
            self.record(attack, s, (block, i, k), space);
            &space.guess
        });
    }

    /// The guesses of one attacker about row `i` of a block (`k` of those in `space`) in every trial.
    fn record(&self, attack: Attack, s: usize, (block, i, k): (&Block, usize, usize), space: &mut Space) {
        match attack {
            Attack::WhiteBox => self.nearest_model(s, k, false, space),
            Attack::WhiteBoxPrior => self.nearest_model(s, k, true, space),
            Attack::BlackBox => self.by_prediction(s, block, i, k, space),
            Attack::Informed => self.by_stationarity(s, block, i, k, space),
        }
    }

    fn nearest_model(&self, s: usize, k: usize, with_prior: bool, space: &mut Space) {
        let (p, t, m) = (self.fit.w.len(), self.options.trials, self.secret.len());
        let Space { deltas, moved, best, guess, .. } = space;
        let prior = with_prior.then_some(self.log_prior.as_slice());
        let delta = (&deltas.delta[k * m * p..(k + 1) * m * p], p);
        nearest_model(
            delta,
            &moved[k * m * t..(k + 1) * m * t],
            (self.options.sigmas[s], prior),
            best,
            guess,
        );
    }

    /// `argmax_m p_m π(φ(w', x_m), y)`: normal errors for a regression, the confusion matrix for classes.
    fn by_prediction(&self, s: usize, block: &Block, i: usize, k: usize, space: &mut Space) {
        let (t, sigma) = (self.options.trials, self.options.sigmas[s]);
        let (x, y) = (block.row(i), block.y[i]);
        let classes = self.options.two_class || self.fit.family.two_classes();
        let columns = self.secret.columns();
        let dot_w = |values: &[f64]| dot(values, &self.fit.w[columns.clone()]);
        let rest = dot(x, &self.fit.w) - dot_w(&x[columns.clone()]);
        let without_noise: Vec<f64> =
            (0..self.secret.len()).map(|m| rest + dot_w(self.secret.candidate(m))).collect();
        for trial in 0..t {
            // x·b without the secret's columns.
            let mut q = space.projected[k * t + trial];
            for j in columns.clone() {
                q -= x[j] * self.noise[j * t + trial];
            }
            let accuracy = &self.accuracy[s * t + trial];
            let (mut best, mut guess) = (f64::NEG_INFINITY, self.secret.most_probable());
            for (m, z) in without_noise.iter().enumerate() {
                let noisy = z + sigma * (q + self.candidate_noise[m * t + trial]);
                let score = self.log_prior[m] + self.log_likelihood(classes, noisy, y, accuracy);
                if score > best {
                    (best, guess) = (score, m);
                }
            }
            space.guess[trial] = guess as u32;
        }
    }

    /// `log π(φ(w', x), y)`, but for what does not depend on the candidate.
    fn log_likelihood(&self, classes: bool, z: f64, y: f64, accuracy: &Accuracy) -> f64 {
        if classes {
            return accuracy.log_confusion[usize::from(y > 0.0)][usize::from(z >= 0.0)];
        }
        match self.fit.family {
            Family::Poisson => y * z - z.exp(),
            // The dispersion stands where the variance of a regression does.
            Family::Gamma | Family::Tweedie(_) => {
                -2.0 * self.fit.family.terms(z, y).loss * accuracy.half_precision
            }
            Family::Linear | Family::Logistic | Family::SquaredHinge | Family::Huber(_) => {
                -(z - y).powi(2) * accuracy.half_precision
            }
        }
    }

    /// Stationarity of w' leaves `ω r x = ω r' x − ∇(w')` for the missing record; the intercept's entry is ω r, which
    /// scales it. Without an intercept (linear regression, label known) the scale solves
    /// `s² + ωy s − ω w'ᵀ(sx) = 0`, and the root that comes nearest to a candidate is taken.
    fn by_stationarity(&self, s: usize, block: &Block, i: usize, k: usize, space: &mut Space) {
        let (p, t, sigma) = (self.fit.w.len(), self.options.trials, self.options.sigmas[s]);
        let (x, y, omega) = (block.row(i), block.y[i], block.weight_of(i));
        let z = dot(x, &self.fit.w);
        let first = self.secret.columns().start;
        let gradient = &self.gradients[s];
        for trial in 0..t {
            let noisy = z + sigma * space.projected[k * t + trial];
            let scale = omega * self.fit.family.terms(noisy, y).r;
            let g = |j: usize| scale * x[j] - gradient[j * t + trial];
            let nearest = if self.fit.penalty.intercept {
                let scale = g(p - 1);
                self.secret.nearest(|j| g(first + j) / scale)
            } else {
                let wg: f64 =
                    (0..p).map(|j| (self.fit.w[j] + sigma * self.noise[j * t + trial]) * g(j)).sum();
                let root = (omega * omega * y * y + 4.0 * omega * wg).max(0.0).sqrt();
                [(-omega * y + root) / 2.0, (-omega * y - root) / 2.0]
                    .into_iter()
                    .filter_map(|scale| self.secret.nearest(|j| g(first + j) / scale))
                    .min_by(|a, b| a.1.total_cmp(&b.1))
            };
            space.guess[trial] = nearest.map_or(self.secret.most_probable(), |f| f.0) as u32;
        }
    }
}

/// `argmin_m ‖Δ‖² − 2σ b·Δ (− 2σ² log p_m)` in every trial, for the candidates of one record: Δ (M × `width`) in the units of the
/// noise, `moved` its products with the noise (M × trials).
pub(super) fn nearest_model(
    (delta, width): (&[f64], usize),
    moved: &[f64],
    (sigma, log_prior): (f64, Option<&[f64]>),
    best: &mut [f64],
    guess: &mut [u32],
) {
    best.fill(f64::INFINITY);
    guess.fill(0);
    let trials = best.len();
    for (m, (delta, moved)) in delta.chunks_exact(width).zip(moved.chunks_exact(trials)).enumerate() {
        let prior = log_prior.map_or(0.0, |log_p| 2.0 * sigma * sigma * log_p[m]);
        let length = dot(delta, delta) - prior;
        for ((v, best), guess) in moved.iter().zip(&mut *best).zip(&mut *guess) {
            let distance = length - 2.0 * sigma * v;
            let closer = distance < *best;
            *best = if closer { distance } else { *best };
            *guess = if closer { m as u32 } else { *guess };
        }
    }
}
