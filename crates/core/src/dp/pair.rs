//! The pair of distributions (P, Q) that dominates a release: no neighbouring data sets are easier to tell
//! apart, at any threshold, alone or in composition (Zhu, Dong, Wang 2022, thm. 10).
//!
//! | release | adjacency | P | Q |
//! |---|---|---|---|
//! | sampled Gaussian | remove | (1−q)N(0) + qN(1) | N(0) |
//! | | add | N(0) | (1−q)N(0) + qN(1) |
//! | | replace | (1−q)N(0) + qN(1) | (1−q)N(0) + qN(−1) |
//! | Laplace | any | Lap(0) | Lap(Δ) |
//! | randomised response | replace | answer given value 1 | answer given value 2 |
//!
//! All normals have variance σ². Add and remove: Zhu, Dong, Wang 2022, thm. 11. Replace, with contributions
//! g, g' of norm at most one: for `γ ≥ 1`, `H_γ = q E[1 − a e^{X₁−Var X₁/2} − b e^{X₂−Var X₂/2}]₊` under `N(g, σ²I)`
//! with `a, b ≥ 0` and jointly normal X of covariance `(‖g‖², g·(g−g'); ·, ‖g−g'‖²)/σ²`. The function is convex in the
//! positive combination, so by Kahane's convexity inequality (Sur le chaos multiplicatif, 1985: for centred normal
//! vectors with `E X_iX_j ≤ E Y_iY_j` for all i, j, weights p ≥ 0 and F convex,
//! `E F(Σ p_i e^{X_i−Var X_i/2}) ≤ E F(Σ p_i e^{Y_i−Var Y_i/2})`) it grows with every entry of the covariance, and all
//! three are largest together at `g' = −g`, `‖g‖ = 1`. Below `γ = 1`, `H_γ(P‖Q) = 1 − γ + γ H_{1/γ}(Q‖P)` exchanges g
//! and g', and the same pair is the worst. The sum of all other sampled records is a mixture over what it is
//! added to, and H is jointly convex. Google's dp-accounting uses the same pair; a test below looks for a worse one.

use super::{Adjacency, Mechanism};
use crate::special::{ln_1m_exp, ln_add_exp, normal_cdf, normal_ln_cdf};

/// Unit roundoff.
pub(super) const U: f64 = 0.5 * f64::EPSILON;

/// Probabilities of the continuous part of the loss beyond a threshold ℓ.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tail {
    /// Under P.
    pub p: f64,
    /// Under Q, times e^ℓ: of the size of `p`, so it never underflows before `p` does.
    pub r: f64,
    /// Relative error of both, at most.
    pub error: f64,
}

/// A value of the loss with positive probability.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atom {
    pub loss: f64,
    /// Probability under P.
    pub p: f64,
}

/// A dominating pair. Its privacy loss is `L = ln P/Q` under P.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pair {
    /// `P = (1−q)N(0) + qN(p_mean)`, `Q = (1−q)N(0) + qN(q_mean)`.
    Mixture { sigma: f64, q: f64, p_mean: f64, q_mean: f64 },
    /// Laplace of scale 1 at distance `e`.
    Laplace { e: f64 },
    /// `P = (a, b, …)`, `Q = (b, a, …)` with `rest` further answers of probability b; `a/b = e^loss`.
    Response { loss: f64, a: f64, b: f64, rest: f64 },
}

/// The pairs of a release: two directions where they differ.
pub(super) fn pairs(mechanism: Mechanism, adjacency: Adjacency) -> Vec<Pair> {
    match (mechanism, adjacency) {
        (Mechanism::Gaussian { sigma, rate: q }, Adjacency::AddRemove) => {
            let remove = Pair::Mixture { sigma, q, p_mean: 1.0, q_mean: 0.0 };
            let add = Pair::Mixture { sigma, q, p_mean: 0.0, q_mean: 1.0 };
            vec![remove, add]
        }
        (Mechanism::Gaussian { sigma, rate: q }, Adjacency::Replace) => {
            vec![Pair::Mixture { sigma, q, p_mean: 1.0, q_mean: -1.0 }; 2]
        }
        (Mechanism::Laplace { scale }, _) => vec![Pair::Laplace { e: adjacency.sensitivity() / scale }; 2],
        (Mechanism::RandomisedResponse { categories, noise }, _) => {
            let (a, b) = Mechanism::response(categories, noise);
            let loss = mechanism.pure_epsilon(adjacency).unwrap_or(0.0);
            vec![Pair::Response { loss, a, b, rest: categories as f64 - 2.0 }; 2]
        }
    }
}

impl Pair {
    /// The interval outside which the continuous part of the loss has no mass.
    pub(super) fn support(&self) -> (f64, f64) {
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        match *self {
            Self::Mixture { q: 1.0, .. } => all,
            Self::Mixture { q, q_mean: 0.0, .. } => ((-q).ln_1p(), f64::INFINITY),
            Self::Mixture { q, p_mean: 0.0, .. } => (f64::NEG_INFINITY, -(-q).ln_1p()),
            Self::Mixture { .. } => all,
            Self::Laplace { e } => (-e, e),
            Self::Response { .. } => (0.0, 0.0),
        }
    }

    /// The values of the loss that have positive probability.
    pub(super) fn atoms(&self) -> Vec<Atom> {
        match *self {
            Self::Mixture { .. } => vec![],
            Self::Laplace { e } => vec![Atom { loss: -e, p: 0.5 * (-e).exp() }, Atom { loss: e, p: 0.5 }],
            Self::Response { loss, a, b, rest } => {
                vec![Atom { loss: -loss, p: b }, Atom { loss: 0.0, p: rest * b }, Atom { loss, p: a }]
            }
        }
    }

    /// Whether there is a continuous part.
    pub(super) fn is_continuous(&self) -> bool {
        !matches!(self, Self::Response { .. })
    }

    /// The continuous part above `loss`.
    pub(super) fn above(&self, loss: f64) -> Tail {
        match *self {
            Self::Mixture { .. } => self.mixture_tail(loss, true),
            Self::Laplace { e } => {
                // L = e − 2x for x in (0, e); above ℓ is x < t.
                let t = (0.5 * (e - loss)).clamp(0.0, e);
                let p = -0.5 * (-t).exp_m1();
                Tail { p, r: 0.5 * (loss - e).exp() * t.exp_m1(), error: (8.0 + loss.abs()) * U }
            }
            Self::Response { .. } => Tail::default(),
        }
    }

    /// The continuous part at or below `loss`.
    pub(super) fn below(&self, loss: f64) -> Tail {
        match *self {
            Self::Mixture { .. } => self.mixture_tail(loss, false),
            Self::Laplace { e } => {
                let t = (0.5 * (e - loss)).clamp(0.0, e);
                let (p, q) = (-0.5 * (-t).exp() * (t - e).exp_m1(), -0.5 * (t - e).exp_m1());
                Tail { p, r: loss.exp() * q, error: (8.0 + loss.abs()) * U }
            }
            Self::Response { .. } => Tail::default(),
        }
    }

    fn mixture_tail(&self, loss: f64, above: bool) -> Tail {
        let Self::Mixture { sigma, q, p_mean, q_mean } = *self else { return Tail::default() };
        let (lo, hi) = self.support();
        if loss <= lo || loss >= hi {
            // All of the mass or none of it.
            let p = f64::from(u8::from((loss <= lo) == above));
            return Tail { p, r: p * loss.exp(), error: (8.0 + loss.abs()) * U };
        }
        // The loss grows with x where P lies to the right of Q, and falls where it lies to the left.
        let rising = p_mean > q_mean;
        let x = crossing(sigma, q, p_mean, q_mean, loss);
        let sign = if above == rising { -1.0 } else { 1.0 };
        let z = |m: f64| sign * (x - m) / sigma;
        let mix = |m: f64| {
            let moved = q * normal_cdf(z(m));
            if q == 1.0 { moved } else { (1.0 - q) * normal_cdf(z(0.0)) + moved }
        };
        let p = mix(p_mean);
        let worst = z(p_mean).min(z(q_mean)).min(0.0);
        let r = if worst > -25.0 && loss < 600.0 {
            loss.exp() * mix(q_mean)
        } else {
            // Q alone would underflow: in logarithms.
            let moved = q.ln() + normal_ln_cdf(z(q_mean));
            let still = if q == 1.0 { f64::NEG_INFINITY } else { (-q).ln_1p() + normal_ln_cdf(z(0.0)) };
            (loss + ln_add_exp(still, moved)).exp()
        };
        // Rounding of the argument of erfc costs z²u, of the exponential |ℓ|u, of x (|ln q| + 1/σ²-free) a few u, which
        // where σ is small are many of z: |z|·|x|u/σ.
        let argument = worst.abs().min(40.0) * (x.abs() + 1.0) / sigma;
        Tail { p, r, error: (40.0 + worst * worst + argument + loss.abs() - q.ln()) * U }
    }
}

/// The x where `ln P/Q = loss`.
fn crossing(sigma: f64, q: f64, p_mean: f64, q_mean: f64, loss: f64) -> f64 {
    let s2 = sigma * sigma;
    if q == 1.0 {
        return s2 * loss / (p_mean - q_mean) + 0.5 * (p_mean + q_mean);
    }
    if q_mean < 0.0 {
        // v − 1/v = 2κ for v = e^{x/σ² − ℓ/2}, κ = (1−q)/q e^{1/2σ²} sinh(ℓ/2): the pair is odd in x.
        let half = 0.5 * loss.abs();
        let ln_sinh = half + ln_1m_exp(-2.0 * half) - std::f64::consts::LN_2;
        let ln_k = (-q).ln_1p() - q.ln() + 0.5 / s2 + ln_sinh;
        let asinh = if ln_k > 20.0 { ln_k + std::f64::consts::LN_2 } else { ln_k.exp().asinh() };
        return (s2 * (half + asinh)).copysign(loss);
    }
    // Remove: 1 − q + q e^{(2x−1)/2σ²} = e^ℓ. Add is the same with −ℓ. With y = ±ℓ − ln(1−q) > 0:
    let remove_loss = if p_mean > q_mean { loss } else { -loss };
    let ln_1q = (-q).ln_1p();
    let y = remove_loss - ln_1q;
    s2 * (ln_1q - q.ln() + y + ln_1m_exp(-y)) + 0.5
}

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;

    #[test]
    fn hockey_sticks_agree_with_the_definition_integrated_at_thirty_digits() {
        let means = [(1.0, 0.0), (0.0, 1.0), (1.0, -1.0)];
        for row in golden("one_step") {
            let (p_mean, q_mean) = means[row[0] as usize];
            let pair = Pair::Mixture { sigma: row[1], q: row[2], p_mean, q_mean };
            let t = pair.above(row[3]);
            // δ(ε) = P(L > ε) − e^ε Q(L > ε)
            assert!((t.p - t.r - row[4]).abs() <= 2.0 * t.error * t.p.max(1e-300), "{row:?}: {}", t.p - t.r);
            let b = pair.below(row[3]);
            assert!((t.p + b.p - 1.0).abs() < 1e-14);
            assert!(((t.r + b.r) / row[3].exp() - 1.0).abs() < 1e-14);
        }
    }

    /// `∫ (P − γQ)₊` of the two mixtures with means g and g' in the plane, by the midpoint rule on the definition.
    fn planar(g: [f64; 2], h: [f64; 2], (sigma, q, gamma): (f64, f64, f64)) -> f64 {
        let (n, reach) = (240, 1.0 + 7.0 * sigma);
        let step = 2.0 * reach / f64::from(n);
        let density = |x: f64, y: f64, m: [f64; 2]| {
            let r = ((x - m[0]).powi(2) + (y - m[1]).powi(2)) / (sigma * sigma);
            (-0.5 * r).exp() / (2.0 * std::f64::consts::PI * sigma * sigma)
        };
        let mut sum = 0.0;
        for i in 0..n {
            for j in 0..n {
                let (x, y) = (step * (f64::from(i) + 0.5) - reach, step * (f64::from(j) + 0.5) - reach);
                let rest = (1.0 - q) * density(x, y, [0.0, 0.0]);
                let (p, r) = (rest + q * density(x, y, g), rest + q * density(x, y, h));
                sum += (p - gamma * r).max(0.0);
            }
        }
        sum * step * step
    }

    #[test]
    fn no_two_contributions_in_the_plane_are_easier_to_tell_apart_than_opposite_ones() {
        let mut x = 5_u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 11) as f64 / (1_u64 << 53) as f64
        };
        for _ in 0..60 {
            let point = |r: f64, turn: f64| {
                let (sin, cos) = (std::f64::consts::TAU * turn).sin_cos();
                [r * cos, r * sin]
            };
            // Norms near one, where the extremes are, and smaller ones.
            let (g, h) = (point(next().powf(0.2), next()), point(next().powf(0.2), next()));
            let (sigma, q) = (0.3 + 1.5 * next(), 0.02 + 0.9 * next());
            let epsilon = 3.0 * next() - 1.5;
            let actual = planar(g, h, (sigma, q, epsilon.exp()));
            let t = Pair::Mixture { sigma, q, p_mean: 1.0, q_mean: -1.0 }.above(epsilon);
            assert!(actual <= t.p - t.r + 1e-6, "{g:?} {h:?} {sigma} {q} {epsilon}: {actual} {}", t.p - t.r);
            // The rule itself, on the pair that is attained.
            let own = planar([1.0, 0.0], [-1.0, 0.0], (sigma, q, epsilon.exp()));
            assert!((own - (t.p - t.r)).abs() < 2e-4, "{own} {}", t.p - t.r);
        }
    }

    #[test]
    fn tails_do_not_underflow_apart() {
        // σ = 0.01: Q beyond the threshold is e^{-7000}, but e^ℓ times it is not.
        let pair = Pair::Mixture { sigma: 0.01, q: 0.5, p_mean: 1.0, q_mean: 0.0 };
        let t = pair.above(5_000.0);
        assert!(t.p > 0.2 && t.r > 0.0 && t.r < t.p, "{t:?}");
        let pair = Pair::Mixture { sigma: 0.01, q: 0.5, p_mean: 1.0, q_mean: -1.0 };
        let t = pair.above(5_000.0);
        assert!(t.p > 0.2 && t.r > 0.0 && t.r < t.p, "{t:?}");
    }

    #[test]
    fn laplace_parts_add_up() {
        let pair = Pair::Laplace { e: 0.8 };
        let atoms: f64 = pair.atoms().iter().map(|a| a.p).sum();
        assert!((pair.above(-0.8).p + atoms - 1.0).abs() < 1e-15);
        for l in [-0.8, -0.3, 0.0, 0.5, 0.8] {
            assert!((pair.above(l).p + pair.below(l).p - pair.above(-0.8).p).abs() < 1e-15);
        }
        let q: f64 = pair.atoms().iter().map(|a| a.p * (-a.loss).exp()).sum();
        assert!((pair.above(-0.8).r * 0.8_f64.exp() + q - 1.0).abs() < 1e-15);
    }
}
