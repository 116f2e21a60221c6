//! Compositions without a grid, from both sides: for noise so small that the loss of one step is either next to nothing
//! or so large that no grid holds both.
//!
//! *Total variation.* Neighbours that are the same with probability `1 − v` a step are the same in all steps with
//! probability `∏(1 − v)`, so `δ(0) ≤ 1 − ∏(1 − vᵢ)^{Tᵢ}`: at a δ above that ε is 0. A step of sampling rate q has `v ≤ q`.
//!
//! *One step.* `δ(ε) = P(L > ε) − e^ε Q(L > ε)` is a closed form, and ε its inverse.
//!
//! *Several.* Let a loss be large with probability `p₀ = P(L > c₀)` and above c₁ with probability p₁. But for probability
//! `T p₁` the sum of the losses is at most `T c₀ + K c₁` with K binomial, so
//!
//! ```text
//! δ(T c₀ + k c₁) ≤ P(K > k) + T p₁
//! ```
//!
//! and from below, for the event E that at least k losses are above c, `δ(ε) ≥ P(E) − e^ε Q(E)`, `Q(E) ≤ C(T, k) Q(L > c)^k`.

use super::Interval;
use super::pair::{Pair, Tail};
use crate::special::ln_abs_binomial;

/// A tail whose relative error is above this says nothing.
const TOO_ROUGH: f64 = 1e-3;

/// Not below the total variation distance of `count` releases of each pair.
pub(super) fn total_variation(steps: &[(Pair, u64)]) -> f64 {
    // Of one release nothing is lost by rounding: at δ = q it is q that counts, to the last digit.
    if let [(pair, 1)] = steps {
        return one_step(pair);
    }
    // ln ∏(1 − v)
    let same: f64 = steps.iter().map(|(pair, count)| *count as f64 * (-one_step(pair)).ln_1p()).sum();
    -same.exp_m1() * (1.0 + 4.0 * f64::EPSILON)
}

/// Not below the total variation distance of one release.
fn one_step(pair: &Pair) -> f64 {
    let most = match *pair {
        Pair::Mixture { q, .. } => q,
        Pair::Laplace { .. } | Pair::Response { .. } => 1.0,
    };
    stick(pair, 0.0).map_or(most, |delta| delta.upper.min(most))
}

/// `P(L > ε) − e^ε Q(L > ε)` of one release; none where rounding leaves nothing of it.
fn stick(pair: &Pair, epsilon: f64) -> Option<Interval> {
    let Tail { p, r, error } = pair.above(epsilon);
    let atoms: f64 = pair.atoms().iter().map(|a| a.p * -(epsilon - a.loss).min(0.0).exp_m1()).sum();
    let around = 2.0 * error * p.max(r) + 4.0 * f64::EPSILON * atoms;
    let delta = p - r + atoms;
    let certain = delta.is_finite() && error <= TOO_ROUGH;
    certain.then(|| Interval { lower: (delta - around).max(0.0), upper: (delta + around).clamp(0.0, 1.0) })
}

/// ε at δ of one release, in the worse of the directions; none where rounding leaves nothing of it.
pub(super) fn epsilon_of_one(pairs: &[Pair], delta: f64) -> Option<Interval> {
    let mut worst = Interval { lower: 0.0, upper: 0.0 };
    for pair in pairs {
        // δ falls with ε: the first ε at which `enough` holds, to the last digits.
        let first = |enough: &dyn Fn(Interval) -> bool| {
            let at = |epsilon: f64| stick(pair, epsilon).map(enough);
            let (mut lo, mut hi) = (0.0, 1e-3);
            if at(lo)? {
                return Some((0.0, 0.0));
            }
            while !at(hi)? {
                (lo, hi) = (hi, 2.0 * hi);
            }
            while hi - lo > 1e-14 * hi {
                let mid = 0.5 * (lo + hi);
                if at(mid)? { hi = mid } else { lo = mid }
            }
            Some((lo, hi))
        };
        let (_, upper) = first(&|stick| stick.upper <= delta)?;
        let (lower, _) = first(&|stick| stick.lower <= delta)?;
        worst = Interval { lower: worst.lower.max(lower), upper: worst.upper.max(upper) };
    }
    Some(worst)
}

/// ε at δ of `count` releases of the same kind; none where rounding leaves nothing of it.
pub(super) fn epsilon(pairs: &[Pair], count: u64, delta: f64) -> Option<Interval> {
    let mut worst = Interval { lower: 0.0, upper: 0.0 };
    for pair in pairs {
        worst.upper = worst.upper.max(at_most(pair, count, delta)?);
        worst.lower = worst.lower.max(at_least(pair, count, delta)?);
    }
    Some(Interval { lower: worst.lower.min(worst.upper), upper: worst.upper })
}

/// `P(L > loss)` of the continuous part, not below it; none where rounding leaves nothing of it.
fn mass_above(pair: &Pair, loss: f64) -> Option<f64> {
    let tail = pair.above(loss);
    (tail.error <= TOO_ROUGH).then_some(tail.p * (1.0 + 2.0 * tail.error))
}

/// A loss above which there is at most `mass`, to nine digits.
fn loss_with(pair: &Pair, mass: f64) -> Option<f64> {
    let (mut lo, mut hi) = (0.0, 1e-3);
    while mass_above(pair, hi)? > mass {
        (lo, hi) = (hi, 2.0 * hi);
    }
    while hi - lo > 1e-9 * hi {
        let mid = 0.5 * (lo + hi);
        if mass_above(pair, mid)? > mass { lo = mid } else { hi = mid }
    }
    Some(hi)
}

fn at_most(pair: &Pair, count: u64, delta: f64) -> Option<f64> {
    if !pair.atoms().is_empty() {
        return None;
    }
    let t = count as f64;
    let (_, most) = pair.support();
    let c1 = loss_with(pair, 1e-6 * delta / t)?.min(most);
    let left = delta * (1.0 - 1e-6);
    // Small enough that all steps together hardly count.
    let c0 = 1e-9 * c1 / t;
    let p0 = mass_above(pair, c0)?.min(1.0);
    let (mut lo, mut hi) = (-1.0, t);
    // The least k with P(K > k) ≤ δ, from above.
    while hi - lo > 1.0 {
        let mid = (0.5 * (lo + hi)).floor();
        if binomial_above(t, p0, mid)? <= left { hi = mid } else { lo = mid }
    }
    Some(t * c0 + hi * c1)
}

fn at_least(pair: &Pair, count: u64, delta: f64) -> Option<f64> {
    let t = count as f64;
    let half = pair.above(0.0).p.min(1.0);
    let mut best = 0.0_f64;
    for share in [0.5, 0.9, 0.99, 0.999] {
        // The part of the loss that is large: what is left above a loss at which little of it is gone.
        let far = loss_with(pair, 1e-9 * half)?;
        let mass = share * mass_above(pair, 1e-6 * far)?;
        let c = loss_with(pair, mass)?;
        let tail = pair.above(c);
        let (p, ln_q) = (tail.p * (1.0 - 2.0 * tail.error), (tail.r * (1.0 + 2.0 * tail.error)).ln() - c);
        let (mut lo, mut hi) = (0.0, t + 1.0);
        // The largest k with P(K ≥ k) > δ.
        while hi - lo > 1.0 {
            let mid = (0.5 * (lo + hi)).floor();
            let reached = binomial_above(t, p, mid - 1.0)? * (1.0 - 1e-6);
            if reached > delta { lo = mid } else { hi = mid }
        }
        if lo >= 1.0 {
            let reached = binomial_above(t, p, lo - 1.0)? * (1.0 - 1e-6);
            best = best.max((reached - delta).ln() - ln_abs_binomial(t, lo).1 - lo * ln_q);
        }
    }
    Some(best * (1.0 - 1e-9))
}

/// Terms of a binomial tail that are summed at most.
const MOST_TERMS: u64 = 1 << 20;

/// `P(K > k)` of a binomial with `t` trials, to six digits and not below; none where it has too many terms.
fn binomial_above(t: f64, p: f64, k: f64) -> Option<f64> {
    if k < 0.0 {
        return Some(1.0);
    }
    if k >= t || p <= 0.0 {
        return Some(0.0);
    }
    if p >= 1.0 {
        return Some(1.0);
    }
    // Summed away from the mean, on the side where terms fall.
    let upwards = k + 1.0 > t * p;
    let mut j = if upwards { k + 1.0 } else { k };
    let ln = ln_abs_binomial(t, j).1 + j * p.ln() + (t - j) * (-p).ln_1p();
    let (odds, first) = (p / (1.0 - p), ln.exp());
    let (mut term, mut sum) = (1.0, 0.0);
    let mut terms = 0;
    while term > 1e-12 * sum && (0.0..=t).contains(&j) {
        sum += term;
        if upwards {
            term *= (t - j) / (j + 1.0) * odds;
            j += 1.0;
        } else {
            term *= j / (t - j + 1.0) / odds;
            j -= 1.0;
        }
        terms += 1;
        if terms > MOST_TERMS {
            return None;
        }
    }
    // Logarithms of factorials are good to a few roundings of themselves.
    let slack = 1e-9 + 64.0 * f64::EPSILON * t * t.ln().max(1.0);
    let sum = first * sum;
    Some(if upwards { sum * (1.0 + slack) } else { 1.0 - sum * (1.0 - slack) }.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dp::{Accountant, Adjacency, Mechanism, account};

    fn accountant(sigma: f64, rate: f64, steps: u64, adjacency: Adjacency) -> Accountant {
        Accountant::dp_sgd(sigma, rate, steps, adjacency).unwrap()
    }

    /// `∫ (P − e^ε Q)₊` of one sampled step by the trapezoidal rule on the definition, in units of σ around each peak.
    fn integrated(sigma: f64, q: f64, adjacency: Adjacency, epsilon: f64) -> f64 {
        let other = if adjacency == Adjacency::Replace { -1.0 } else { 0.0 };
        let density = |x: f64, m: f64| (-0.5 * ((x - m) / sigma).powi(2)).exp();
        let mix = |x: f64, m: f64| (1.0 - q) * density(x, 0.0) + q * density(x, m);
        // ln Q in logarithms: it may be far below the smallest number where P is not.
        let ln_q = |x: f64| {
            let still = (1.0 - q).ln() - 0.5 * (x / sigma).powi(2);
            let moved = q.ln() - 0.5 * ((x - other) / sigma).powi(2);
            let top = still.max(moved);
            top + ((still - top).exp() + (moved - top).exp()).ln()
        };
        let n = 400_000;
        let (from, to) = (-1.0 - 12.0 * sigma, 1.0 + 12.0 * sigma);
        let step = (to - from) / f64::from(n);
        let value = |x: f64| (mix(x, 1.0) - (epsilon + ln_q(x)).exp()).max(0.0);
        let sum: f64 = (0..=n).map(|i| value(from + step * f64::from(i))).sum();
        sum * step / (sigma * (2.0 * std::f64::consts::PI).sqrt())
    }

    #[test]
    fn one_step_is_the_integral_of_its_definition() {
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            for (sigma, q) in [(0.01, 0.1), (0.05, 0.3), (0.5, 0.02), (2.0, 0.5)] {
                for delta in [0.5 * q, 0.01 * q, 1e-5 * q] {
                    let e = accountant(sigma, q, 1, adjacency).epsilon(delta).unwrap();
                    if e.upper == 0.0 {
                        continue;
                    }
                    assert!(e.relative_width() < 1e-6, "{sigma} {q} {delta}: {e:?}");
                    let actual = integrated(sigma, q, adjacency, e.upper);
                    assert!(
                        (actual / delta - 1.0).abs() < 2e-3,
                        "{adjacency:?} {sigma} {q}: {actual} {delta}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_delta_above_the_total_variation_has_no_epsilon() {
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            for sigma in [1e-90, 1e-8, 1e-4, 0.01, 1.0] {
                for (q, steps) in [(0.01, 1), (0.01, 10), (1e-4, 1000)] {
                    let a = accountant(sigma, q, steps, adjacency);
                    let v = 1.0 - f64::powf(1.0 - q, steps as f64);
                    assert_eq!(a.epsilon(1.001 * v).unwrap().upper, 0.0, "{adjacency:?} {sigma} {q} {steps}");
                    // At the rate itself too, to the last digit: no test is right more often than the record takes part.
                    if steps == 1 {
                        assert_eq!(a.epsilon(q).unwrap().upper, 0.0, "{adjacency:?} {sigma} {q}");
                    }
                    let below = a.epsilon(0.5 * v).unwrap();
                    assert!(sigma > 0.5 || below.upper > 1.0, "{adjacency:?} {sigma} {q} {steps}: {below:?}");
                }
            }
        }
    }

    /// At tiny noise a step in which the record takes part is seen, and its loss is `1/2σ²` but for `O(1/σ)`: ε is that
    /// many times the quantile of how often it does.
    #[test]
    fn tiny_noise_is_answered_at_once_and_certified() {
        let start = std::time::Instant::now();
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            for sigma in [1e-6, 1e-5, 1e-4, 1e-3] {
                for (q, steps, delta, times) in
                    [(0.01, 1, 1e-5, 1.0), (0.001, 100, 1e-3, 2.0), (0.01, 10, 1e-6, 4.0)]
                {
                    let e = accountant(sigma, q, steps, adjacency).epsilon(delta).unwrap();
                    let loss = 0.5 / (sigma * sigma);
                    let case =
                        format!("{adjacency:?} {sigma} {q} {steps} {delta}: {e:?}, {:e}", times * loss);
                    assert!(e.lower <= e.upper && e.upper.is_finite(), "{case}");
                    assert!(e.upper <= times * loss * (1.0 + 40.0 * sigma), "{case}");
                    assert!(e.lower >= times * loss * (1.0 - 40.0 * sigma) || e.lower == 0.0, "{case}");
                    assert!(e.lower > 0.0 || sigma < 1e-5, "{case}");
                }
            }
        }
        for sigma in [1e-90, 1e-30, 1e-12, 1e-9, 1e-7] {
            let a = account(&accountant(sigma, 0.01, 1000, Adjacency::Replace), 1e-5).unwrap();
            assert!(a.epsilon.pld.upper <= a.epsilon.rdp.epsilon && a.epsilon.pld.upper.is_finite(), "{a:?}");
        }
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    }

    #[test]
    fn counts_are_those_of_a_binomial() {
        // Against sums of the definition, term by term.
        for (t, p) in [(10.0, 0.3), (50.0, 0.01), (200.0, 0.9)] {
            let mut pmf = vec![f64::powf(1.0 - p, t)];
            for k in 0..t as usize {
                pmf.push(pmf[k] * (t - k as f64) / (k as f64 + 1.0) * p / (1.0 - p));
            }
            for k in 0..t as usize {
                let truth: f64 = pmf[k + 1..].iter().rev().sum();
                let actual = binomial_above(t, p, k as f64).unwrap();
                assert!(actual >= truth * (1.0 - 1e-12) - 1e-15, "{t} {p} {k}: {actual} {truth}");
                assert!(actual <= truth * (1.0 + 1e-6) + 1e-8, "{t} {p} {k}: {actual} {truth}");
            }
        }
        assert_eq!(binomial_above(5.0, 0.5, -1.0), Some(1.0));
    }

    /// Counting against the grid, where both have an answer: intervals that both hold must meet.
    #[test]
    fn counting_and_the_grid_meet() {
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace] {
            for (sigma, q, steps, delta) in
                [(0.05, 0.01, 20, 1e-4), (0.1, 0.05, 5, 1e-3), (0.3, 0.1, 8, 1e-5)]
            {
                let grid = accountant(sigma, q, steps, adjacency).epsilon(delta).unwrap();
                let pairs = crate::dp::pair::pairs(Mechanism::gaussian(sigma, q), adjacency);
                let counted = epsilon(&pairs, steps, delta).unwrap();
                assert!(counted.lower <= grid.upper && grid.lower <= counted.upper, "{counted:?} {grid:?}");
            }
        }
    }
}
