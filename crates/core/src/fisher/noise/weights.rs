//! The inner problem: the best weights of a few atoms.
//!
//! In coordinates `b = Lᵀa`, `A = LLᵀ`, the cost of a design is `tr Y`, `Y = LᵀΣL`, and the dual over the atoms is
//! `max tr(M^½)` over weights of sum one, `M = Σ λ_k b_kb_kᵀ`. Since that is homogeneous of degree ½ the constraint can be
//! dropped: `max 2 tr M(λ)^½ − Σλ` over `λ ≥ 0` has the same weights up to their sum. Its gradient is `q − 1`,
//! `q_k = b_kᵀM^{−½}b_k`, and with `M = V diag(μ) Vᵀ`, `β_k = Vᵀb_k` its Hessian is
//!
//! ```text
//! −Q,  Q_kl = Σᵢⱼ (β_kᵢβ_kⱼ)(β_lᵢβ_lⱼ) / (√μᵢ√μⱼ(√μᵢ + √μⱼ))
//! ```
//!
//! a Gram matrix, so a primal-dual interior point step costs one eigendecomposition, one product and one Cholesky
//! factor, and a dozen steps are enough whatever the weights look like. (The multiplicative update `λ_k ← λ_k q_k²`
//! needs hundreds, because atoms that are nearly as bad as the worst lose their weight slowly.) How far the result is
//! from optimal is not taken from the iteration but from the certificate, which holds for any weights.

use crate::Result;
use crate::linalg::{Cholesky, dot, matmul, matmul_by_transposed, symmetric_eigen};

/// Steps after which the weights are taken as they are; the certificate says what they are worth.
const MAX_STEPS: usize = 60;
/// Share of the way to the boundary that a step may go.
const TO_BOUNDARY: f64 = 0.9;
/// The barrier aims at this share of the present complementarity.
const CENTRING: f64 = 0.1;
/// Weight of a new atom as a share of the mean weight, to start from.
const NEW: f64 = 0.1;

/// Rank-one atoms and the equally weighted matrix, with weights.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    p: usize,
    /// `LᵀM₀L` of the equal weights.
    uniform: Vec<f64>,
    /// K × p.
    b: Vec<f64>,
    /// Weight of the equal weights first, then of the atoms.
    lambda: Vec<f64>,
    /// Added to the diagonal of M so that it has a root everywhere.
    floor: f64,
}

/// `M = V diag(μ) Vᵀ` at some weights.
#[derive(Debug, Clone)]
pub(super) struct Spectrum {
    p: usize,
    /// Eigenvalues with the floor, largest first.
    pub(super) mu: Vec<f64>,
    /// p × p, vectors as columns.
    pub(super) v: Vec<f64>,
    /// What was added to every eigenvalue.
    pub(super) floor: f64,
    total: f64,
}

impl Spectrum {
    /// `tr M^½`: the cost of the design `Y = M^½`.
    pub(super) fn cost(&self) -> f64 {
        self.mu.iter().map(|mu| mu.sqrt()).sum()
    }

    /// `(tr M^½)²` for weights of trace one and without the floor: no feasible design costs less.
    pub(super) fn certificate(&self) -> f64 {
        let rounding = 64.0 * self.p as f64 * f64::EPSILON * self.mu.first().copied().unwrap_or(0.0);
        let root: f64 = self.mu.iter().map(|mu| (mu - self.floor - rounding).max(0.0).sqrt()).sum();
        root * root / self.total
    }

    /// `Y^{−½}Lᵀ = diag(μ^{−¼}) VᵀLᵀ`: the whitener of the design; `lower` is L.
    pub(super) fn whitener(&self, lower: &[f64]) -> Vec<f64> {
        let p = self.p;
        let mut out = vec![0.0; p * p];
        // (L V)ᵀ = Vᵀ Lᵀ
        let mut lv = vec![0.0; p * p];
        matmul(lower, &self.v, (p, p, p), &mut lv);
        for i in 0..p {
            let scale = self.mu[i].sqrt().sqrt().recip();
            (0..p).for_each(|j| out[i * p + j] = scale * lv[j * p + i]);
        }
        out
    }

    /// `Y = M^½`.
    pub(super) fn root(&self) -> Vec<f64> {
        let p = self.p;
        let scaled: Vec<f64> = (0..p * p).map(|ij| self.v[ij] * self.mu[ij % p].sqrt()).collect();
        let mut out = vec![0.0; p * p];
        matmul_by_transposed(&scaled, &self.v, (p, p, p), &mut out);
        out
    }
}

impl Pool {
    /// The equal weights alone; `uniform` is `LᵀM₀L`, of which a share `floor` of the mean eigenvalue is the floor.
    pub(super) fn new(uniform: Vec<f64>, p: usize, floor: f64) -> Self {
        let trace: f64 = (0..p).map(|i| uniform[i * p + i]).sum();
        // A power of two, so that it is locally constant as the weights are.
        let floor = if trace > 0.0 { 2_f64.powf((floor * trace / p as f64).log2().ceil()) } else { 0.0 };
        Self { p, floor, uniform, b: vec![], lambda: vec![1.0] }
    }

    pub(super) fn lambda(&self) -> &[f64] {
        &self.lambda
    }

    /// Weights of the equal weights and of the atoms, as given.
    pub(super) fn with_weights(&self, lambda: Vec<f64>) -> Self {
        Self { lambda, ..self.clone() }
    }

    pub(super) fn add(&mut self, b: &[f64]) {
        let mean = self.lambda.iter().sum::<f64>() / self.lambda.len() as f64;
        self.b.extend_from_slice(b);
        self.lambda.push(NEW * mean);
    }

    /// Drops the atoms (never the equal weights) for which `keep` is false.
    pub(super) fn retain(&mut self, keep: &[bool]) {
        let p = self.p;
        let mut atoms = keep.iter();
        self.b =
            self.b.chunks_exact(p).filter(|_| *atoms.next().unwrap_or(&true)).flatten().copied().collect();
        let mut weights = std::iter::once(&true).chain(keep);
        self.lambda.retain(|_| *weights.next().unwrap_or(&true));
    }

    /// `M` at the present weights.
    pub(super) fn spectrum(&self) -> Result<Spectrum> {
        let p = self.p;
        let mut m: Vec<f64> = self.uniform.iter().map(|v| self.lambda[0] * v).collect();
        let weighted: Vec<f64> =
            self.b.iter().enumerate().map(|(kj, b)| self.lambda[1 + kj / p] * b).collect();
        let mut sum = vec![0.0; p * p];
        crate::linalg::matmul_transposed(&weighted, &self.b, (p, self.lambda.len() - 1, p), &mut sum);
        let total: f64 = self.lambda.iter().sum();
        // The floor is a share of M for weights of sum one.
        let floor = self.floor * total;
        for i in 0..p {
            for j in 0..=i {
                // The two triangles of a product may differ by a rounding.
                let value =
                    m[i * p + j] + 0.5 * (sum[i * p + j] + sum[j * p + i]) + if i == j { floor } else { 0.0 };
                m[i * p + j] = value;
                m[j * p + i] = value;
            }
        }
        let (mut mu, v) = symmetric_eigen(&m, p)?;
        mu.iter_mut().for_each(|mu| *mu = mu.max(floor));
        Ok(Spectrum { p, mu, v, floor, total })
    }

    /// `q` of every atom, and what the Hessian is the Gram matrix of (K × p(p+1)/2).
    fn slopes(&self, spectrum: &Spectrum) -> (Vec<f64>, Vec<f64>) {
        let (p, k) = (self.p, self.lambda.len());
        let root: Vec<f64> = spectrum.mu.iter().map(|mu| mu.sqrt()).collect();
        let width = p * (p + 1) / 2;
        let mut weight = Vec::with_capacity(width);
        for i in 0..p {
            for j in 0..=i {
                let both = if i == j { 1.0 } else { 2.0 };
                weight.push((both / (root[i] * root[j] * (root[i] + root[j]))).sqrt());
            }
        }
        let (mut half, mut rotated) = (vec![0.0; p * p], vec![0.0; p * p]);
        matmul(&self.uniform, &spectrum.v, (p, p, p), &mut half);
        crate::linalg::matmul_transposed(&spectrum.v, &half, (p, p, p), &mut rotated);
        let mut beta = vec![0.0; self.b.len()];
        matmul(&self.b, &spectrum.v, (k - 1, p, p), &mut beta);
        let mut q = Vec::with_capacity(k);
        let mut features = Vec::with_capacity(k * width);
        q.push((0..p).map(|i| rotated[i * p + i] / root[i]).sum());
        let mut next = weight.iter();
        for i in 0..p {
            features.extend(rotated[i * p..=i * p + i].iter().zip(&mut next).map(|(r, w)| r * w));
        }
        for beta in beta.chunks_exact(p.max(1)) {
            q.push(beta.iter().zip(&root).map(|(b, root)| b * b / root).sum());
            let mut next = weight.iter();
            for i in 0..p {
                features.extend(beta[..=i].iter().zip(&mut next).map(|(b, w)| beta[i] * b * w));
            }
        }
        (q, features)
    }

    /// The best weights, until the worst atom is within `gap` of the mean.
    pub(super) fn solve(&mut self, gap: f64) -> Result<()> {
        let k = self.lambda.len();
        let mut z: Vec<f64> = vec![];
        for step in 0..MAX_STEPS {
            let spectrum = self.spectrum()?;
            let (mut q, mut features) = self.slopes(&spectrum);
            let (sum, weighted) = (self.lambda.iter().sum::<f64>(), dot(&self.lambda, &q));
            let largest = q.iter().copied().fold(0.0, f64::max);
            // The floor takes its part of tr M^½: what is compared is what atoms have in common.
            if weighted <= 0.0 || largest * sum <= (1.0 + gap) * weighted {
                return Ok(());
            }
            if step == 0 {
                // λ → cλ sends q → q/√c: put the mean of q at one.
                let c = (weighted / sum).powi(2);
                self.lambda.iter_mut().for_each(|l| *l *= c);
                q.iter_mut().for_each(|q| *q /= c.sqrt());
                features.iter_mut().for_each(|f| *f *= c.powf(-0.75));
                let mean = self.lambda.iter().sum::<f64>() / k as f64;
                z = q.iter().zip(&self.lambda).map(|(q, l)| (1.0 - q).max(gap * mean / l).max(gap)).collect();
            }
            self.step(&q, &features, &mut z)?;
        }
        Ok(())
    }

    /// One primal-dual step: `(Q + z/λ)Δλ = q − 1 + μ/λ`, `Δz = μ/λ − z − (z/λ)Δλ`.
    fn step(&mut self, q: &[f64], features: &[f64], z: &mut [f64]) -> Result<()> {
        let k = self.lambda.len();
        let width = features.len() / k;
        let mut matrix = vec![0.0; k * k];
        matmul_by_transposed(features, features, (k, width, k), &mut matrix);
        let mu = CENTRING * dot(&self.lambda, z) / k as f64;
        let mut right = Vec::with_capacity(k);
        for i in 0..k {
            // Atoms that are nearly the same leave Q without an inverse; a ridge far below its diagonal does not move
            // the fixed point.
            matrix[i * k + i] = matrix[i * k + i] * (1.0 + 1e-9) + z[i] / self.lambda[i];
            right.push(q[i] - 1.0 + mu / self.lambda[i]);
        }
        let change = Cholesky::new(&matrix, k)?.solve(&right);
        let dual: Vec<f64> =
            (0..k).map(|i| mu / self.lambda[i] - z[i] - z[i] / self.lambda[i] * change[i]).collect();
        let longest = |x: &[f64], d: &[f64]| {
            x.iter().zip(d).filter(|(_, d)| **d < 0.0).map(|(x, d)| -TO_BOUNDARY * x / d).fold(1.0, f64::min)
        };
        let (primal_length, dual_length) = (longest(&self.lambda, &change), longest(z, &dual));
        self.lambda.iter_mut().zip(&change).for_each(|(l, d)| *l += primal_length * d);
        z.iter_mut().zip(&dual).for_each(|(z, d)| *z += dual_length * d);
        Ok(())
    }
}
