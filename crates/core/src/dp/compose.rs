//! Composition of discretised privacy losses: one FFT per kind of step, the transform raised to the number of
//! steps, one inverse FFT.
//!
//! *Tilting.* An FFT is accurate relative to its largest value, which is useless for δ = 1e-15. So each pmf is
//! first multiplied by `e^{sℓ}` and normalised; with the saddle point s the composed, tilted distribution has its
//! mass where δ(ε) is decided, and `δ(ε) = e^{K(s)−sε} Σ_{ℓ>ε} t(ℓ) e^{−s(ℓ−ε)}(1 − e^{ε−ℓ})` is a sum of positive numbers
//! of ordinary size, whatever the size of δ.
//!
//! *What is certified.* The sum is off by at most
//! - a relative `ρ = Σ_j T_j u (4(750 + s max|ℓ|) + n_j)`: rounding of the n_j tilted masses and their sum, T_j times;
//! - `‖e‖₂‖w‖₂`, with w the weights of the sum and e the error of the transforms. In the 2-norm a transform of
//!   length N is off by `η = 12u(log₂N + 4)`, relative (Higham 2002, thm. 24.2, with room for the real-to-complex
//!   passes), and `|f̂| ≤ 1`, so `‖e‖₂ ≤ G(Σ_j T_j(η + 8u)‖t_j‖₂ + 2η + e^{−80})`, where `G = exp Σ_j T_j η √N ‖t_j‖₂`
//!   allows for computed transforms slightly above one;
//! - `2e^{−Λ}`: mass outside the window, which wraps around, by Chernoff's bound on either side.

use super::grid::Pmf;
use super::pair::U;
use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

/// Λ: minus the logarithm of the tilted mass left outside the window on either side.
const OUTSIDE: f64 = 34.0;
/// Longest transform.
pub(super) const LONGEST: f64 = (1 << 22) as f64;

/// What decides the tilt.
#[derive(Debug, Clone, Copy)]
pub(super) enum Query {
    /// ε at this δ.
    Delta(f64),
    /// δ at this ε.
    Epsilon(f64),
    /// The most powerful test at this false-positive rate.
    Rate(f64),
    /// The whole curve: no tilt.
    Curve,
}

/// One kind of step: logarithms of its masses on the grid, and how often it is taken.
struct Step {
    /// Loss of the first mass, and its place on the grid.
    origin: f64,
    first: i64,
    ln_mass: Vec<f64>,
    count: f64,
}

/// The composed loss on a window of the grid, tilted, as the two tail sums that every question needs.
pub(super) struct Composed {
    h: f64,
    /// Loss of the first grid point of the window.
    origin: f64,
    s: f64,
    /// K(s).
    ln_scale: f64,
    /// `A_k = Σ_{l≥k} t_l e^{−s(l−k)h}`: the scaled tail probability.
    tail: Vec<f64>,
    /// `D_k = Σ_{l≥k} t_l e^{−s(l−k)h}(1 − e^{−(l−k)h})`: the scaled δ.
    stick: Vec<f64>,
    /// ρ.
    relative: f64,
    /// Absolute error on the scale of `stick`.
    absolute: f64,
    /// Error of the grid points themselves, as a shift of ε.
    shift: f64,
    infinite: f64,
}

/// Sums over the grid: `K(s) = Σ T_j ln Σ_k m_k e^{s k h}` with its first two derivatives.
fn cumulants(steps: &[Step], h: f64, s: f64) -> (f64, f64, f64) {
    let mut total = (0.0, 0.0, 0.0);
    for step in steps {
        let exponent = |i: usize, ln: f64| ln + s * (step.origin + i as f64 * h);
        let max =
            step.ln_mass.iter().enumerate().fold(f64::NEG_INFINITY, |m, (i, &ln)| m.max(exponent(i, ln)));
        let (mut z, mut z1, mut z2) = (0.0, 0.0, 0.0);
        for (i, &ln) in step.ln_mass.iter().enumerate() {
            let e = exponent(i, ln) - max;
            if e > -60.0 {
                let w = e.exp();
                let x = i as f64;
                z += w;
                z1 += w * x;
                z2 += w * x * x;
            }
        }
        let mean = z1 / z;
        total.0 += step.count * (max + z.ln());
        total.1 += step.count * (mean * h + step.origin);
        total.2 += step.count * (z2 / z - mean * mean).max(0.0) * h * h;
    }
    total
}

/// The least and the largest loss that the steps can reach together.
fn reachable(steps: &[Step], h: f64) -> (f64, f64) {
    let top = |x: &Step| x.origin + (x.ln_mass.len() - 1) as f64 * h;
    (steps.iter().map(|x| x.count * x.origin).sum(), steps.iter().map(|x| x.count * top(x)).sum())
}

/// The tilt for a question: the saddle point, to a few per cent. Any tilt is valid.
fn tilt(steps: &[Step], h: f64, query: Query) -> f64 {
    let most = reachable(steps, h).1;
    let room = 1e-3 * (most - cumulants(steps, h, 0.0).1);
    let past = |s: f64| {
        let (k, k1, k2) = cumulants(steps, h, s);
        // At the largest loss there can be, more tilt only squeezes what is left of it.
        if most - k1 < room {
            return true;
        }
        match query {
            Query::Delta(delta) => k - s * k1 - (s * (1.0 + s) * (6.3 * k2).sqrt()).ln_1p() < delta.ln(),
            Query::Epsilon(epsilon) => k1 > epsilon,
            Query::Rate(alpha) => k - (1.0 + s) * k1 < alpha.ln(),
            Query::Curve => true,
        }
    };
    // From a tilt that moves the mean by a thousandth of a standard deviation on.
    let least = 1e-3 / cumulants(steps, h, 0.0).2.sqrt().max(1.0);
    let (mut lo, mut hi) = (least.ln(), (30.0 / h).max(1.0).ln());
    if past(lo.exp()) {
        return 0.0;
    }
    for _ in 0..14 {
        let mid = 0.5 * (lo + hi);
        if past(mid.exp()) { hi = mid } else { lo = mid }
    }
    lo.exp()
}

/// Width of a window beyond the mean that leaves tilted mass `e^{−Λ}` outside on one side (`sign`), by Chernoff.
fn reach(steps: &[Step], h: f64, s: f64, (k, mean, variance): (f64, f64, f64), sign: f64) -> f64 {
    let width = |a: f64| (cumulants(steps, h, s + sign * a).0 - k - sign * a * mean + OUTSIDE + 1.0) / a;
    let mut a = (2.0 * OUTSIDE / variance.max(1e-30)).sqrt().min(100.0 / h);
    let mut best = width(a);
    for factor in [0.5, 2.0] {
        loop {
            let next = width(a * factor);
            if next.is_nan() || next >= best {
                break;
            }
            best = next;
            a *= factor;
        }
    }
    best
}

/// Composes; none where the window would need too long a transform.
pub(super) fn compose(
    planner: &mut RealFftPlanner<f64>,
    pmfs: &[(Pmf, u64)],
    h: f64,
    query: Query,
) -> Option<Composed> {
    let (mut infinite, mut offset) = (0.0, 0.0);
    let mut steps = Vec::with_capacity(pmfs.len());
    for (pmf, count) in pmfs {
        let count = *count as f64;
        infinite += count * pmf.infinite;
        let ln_mass: Vec<f64> = pmf.mass.iter().map(|m| m.ln()).collect();
        let start = ln_mass.iter().position(|x| x.is_finite())?;
        let end = ln_mass.iter().rposition(|x| x.is_finite())?;
        let first = pmf.first + start as i64;
        let origin = pmf.offset + first as f64 * h;
        offset += count * pmf.offset;
        steps.push(Step { origin, first, ln_mass: ln_mass[start..=end].to_vec(), count });
    }
    let s = tilt(&steps, h, query);
    let moments = cumulants(&steps, h, s);
    let (k, mean, _) = moments;

    // The window, no wider than what the steps can reach together.
    let (least, most) = reachable(&steps, h);
    let lo = (mean - reach(&steps, h, s, moments, -1.0)).max(least);
    let hi = (mean + reach(&steps, h, s, moments, 1.0)).min(most);
    let length = (hi - lo) / h + 3.0;
    let fits = length <= LONGEST && lo.abs().max(hi.abs()) / h < 1e15;
    if !fits {
        return None;
    }
    let n = (length.ceil() as usize).next_power_of_two().max(4);
    let first = ((lo - offset) / h).floor() as i64 - 1;

    let Tilted { t, error, growth, relative, shift } = tilted(planner, &steps, h, s, n)?;
    let (decay, lost) = ((-s * h).exp(), -(-h).exp_m1());
    let scale = 1.0 / n as f64;
    let mut tail = vec![0.0; n];
    let mut stick = vec![0.0; n];
    let (mut a, mut d) = (0.0, 0.0);
    // The window starts at `first`, modulo n: a power of two.
    let start = first.rem_euclid(n as i64) as usize;
    for i in (0..n).rev() {
        d = decay * (lost * a + (1.0 - lost) * d);
        // True masses are not negative: clamping only brings us nearer.
        a = t[(start + i) & (n - 1)].max(0.0) * scale + decay * a;
        (tail[i], stick[i]) = (a, d);
    }
    let absolute = error * growth.exp() * weight_norm(decay, lost, n) + 2.0 * (-OUTSIDE).exp();
    let relative = (relative + 4.0 * U * n as f64).exp_m1();
    let origin = offset + first as f64 * h;
    Some(Composed { h, origin, s, ln_scale: k, tail, stick, relative, absolute, shift, infinite })
}

/// The tilted masses of all steps together, modulo the window, and what rounding may have done to them.
struct Tilted {
    t: Vec<f64>,
    error: f64,
    growth: f64,
    relative: f64,
    shift: f64,
}

fn tilted(planner: &mut RealFftPlanner<f64>, steps: &[Step], h: f64, s: f64, n: usize) -> Option<Tilted> {
    // t = ∏ over kinds of (tilted pmf's transform)^T, transformed back.
    let forward = planner.plan_fft_forward(n);
    let inverse = planner.plan_fft_inverse(n);
    let mut product: Vec<Complex<f64>> = vec![Complex::new(1.0, 0.0); n / 2 + 1];
    let mut input = vec![0.0; n];
    let mut spectrum = forward.make_output_vec();
    let eta = 12.0 * U * ((n as f64).log2() + 4.0);
    let mut error = 2.0 * eta + 1e-34;
    let (mut relative, mut shift, mut growth) = (0.0, 0.0, 0.0);
    for step in steps {
        input.fill(0.0);
        let ln_m = cumulants(std::slice::from_ref(step), h, s).0 / step.count;
        let start = step.first.rem_euclid(n as i64) as usize;
        let place = |i: usize| (start + i) & (n - 1);
        for (i, &ln) in step.ln_mass.iter().enumerate() {
            let x = s * (step.origin + i as f64 * h);
            input[place(i)] += (ln + x - ln_m).exp();
        }
        let norm = input.iter().map(|x| x * x).sum::<f64>().sqrt();
        let largest = step.origin.abs().max((step.origin + step.ln_mass.len() as f64 * h).abs());
        error += step.count * (eta + 8.0 * U) * norm;
        growth += step.count * eta * (n as f64).sqrt() * norm;
        relative += step.count * U * (4.0 * (750.0 + s * largest) + step.ln_mass.len() as f64);
        shift += step.count * U * (64.0 + 8.0 * largest);
        forward.process(&mut input, &mut spectrum).ok()?;
        // |f̂|^T below e^{−80} is zero for us, and denormal arithmetic is slow.
        let negligible = (-160.0 / step.count).exp();
        for (p, f) in product.iter_mut().zip(&spectrum) {
            *p *=
                if f.norm_sqr() < negligible { Complex::new(0.0, 0.0) } else { power(*f, step.count as u64) };
        }
    }
    // The transform of a real sequence is real at both ends; rounding in the power may say otherwise.
    product[0].im = 0.0;
    product[n / 2].im = 0.0;
    let mut t = input;
    inverse.process(&mut product, &mut t).ok()?;
    Some(Tilted { t, error, growth, relative, shift })
}

/// `zⁿ` by squaring; relative error at most `3nu`.
fn power(mut z: Complex<f64>, mut n: u64) -> Complex<f64> {
    let mut result = Complex::new(1.0, 0.0);
    while n > 0 {
        if n & 1 == 1 {
            result *= z;
        }
        z *= z;
        n >>= 1;
    }
    result
}

/// 2-norm of the weights `e^{−sjh}(1 − e^{−(j+1)h})`, an upper bound for thresholds between grid points too.
fn weight_norm(decay: f64, lost: f64, n: usize) -> f64 {
    let (mut e, mut rest, mut sum) = (1.0, 1.0 - lost, 0.0);
    for _ in 0..n {
        let w = e * (1.0 - rest);
        sum += w * w;
        e *= decay;
        rest *= 1.0 - lost;
        if e < 1e-30 {
            break;
        }
    }
    f64::sqrt(sum)
}

/// Which certified side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Upper,
    Lower,
}

impl Composed {
    /// Length of the window.
    pub(super) fn len(&self) -> usize {
        self.tail.len()
    }

    fn at(&self, i: usize) -> f64 {
        self.origin + i as f64 * self.h
    }

    /// δ(ε) as computed, without its error.
    fn raw(&self, epsilon: f64) -> f64 {
        // Smallest grid point at or above ε.
        let i = ((epsilon - self.origin) / self.h).ceil().max(0.0);
        if i >= self.tail.len() as f64 {
            return 0.0;
        }
        let i = i as usize;
        let theta = (self.at(i) - epsilon).max(0.0);
        let inside = -(-theta).exp_m1() * self.tail[i] + (-theta).exp() * self.stick[i];
        inside * (self.ln_scale - self.s * self.at(i)).exp()
    }

    /// The certified side of δ(ε). Upper from a pmf rounded up, lower from one rounded down.
    pub(super) fn delta(&self, epsilon: f64, side: Side) -> f64 {
        let error = |epsilon: f64| (self.ln_scale - self.s * epsilon).exp() * self.absolute;
        // A negative ε has δ of at least 1 − e^ε, trivially.
        let least = (-epsilon.min(0.0).exp_m1()).max(0.0);
        let delta = match side {
            Side::Upper => {
                let e = epsilon - self.shift;
                self.raw(e) * (1.0 + self.relative) + error(e) + self.infinite
            }
            Side::Lower => {
                let e = epsilon + self.shift;
                self.raw(e) * (1.0 - self.relative) - error(e)
            }
        };
        delta.clamp(least, 1.0)
    }

    /// The certified side of ε at δ, at least 0. From above any ε with `delta(ε) ≤ δ` will do, from below any with
    /// `delta(ε) > δ`: true δ falls with ε, while the error that is allowed for grows away from the saddle point.
    pub(super) fn epsilon(&self, delta: f64, side: Side) -> f64 {
        if side == Side::Upper && self.delta(0.0, side) <= delta {
            return 0.0;
        }
        // Where the computed curve crosses.
        let (mut lo, mut hi) = (0.0, self.at(self.tail.len()).max(self.h));
        while hi - lo > 1e-14 * hi {
            let mid = 0.5 * (lo + hi);
            if mid <= lo || mid >= hi {
                break;
            }
            if self.raw(mid) > delta { lo = mid } else { hi = mid }
        }
        // From there outwards until the certified curve is on the right side too.
        let right = |e: f64| (self.delta(e, side) > delta) == (side == Side::Lower);
        let sign = if side == Side::Upper { 1.0 } else { -1.0 };
        let (mut inner, mut step) = (if side == Side::Upper { hi } else { lo }, 1e-9 * self.h.max(hi));
        let mut outer = inner;
        while !right(outer) {
            inner = outer;
            outer += sign * step;
            step *= 2.0;
            if outer < 0.0 {
                return 0.0;
            }
            if step > 1e300 {
                return f64::INFINITY;
            }
        }
        for _ in 0..40 {
            let mid = 0.5 * (inner + outer);
            if right(mid) { outer = mid } else { inner = mid }
        }
        outer
    }

    /// The certified side of the largest true-positive rate at false-positive rate `alpha`:
    /// `min_ε δ(ε) + e^ε α` over ε in ℝ. The discrete pair has its minimum at a grid point, where
    /// `P(L ≥ ε) − δ(ε) = e^ε Q(L ≥ ε)` crosses `e^ε α` (Kulynych et al. 2024, thm. 3.3).
    pub(super) fn power(&self, alpha: f64, side: Side) -> f64 {
        let n = self.tail.len();
        let cost = |i: usize, side: Side| self.delta(self.at(i), side) + (self.at(i)).exp() * alpha;
        let (mut lo, mut hi) = (0, n);
        while hi - lo > 1 {
            let mid = (lo + hi) / 2;
            // Both sides times e^{sε − K}: Q-tail against α.
            let q_tail =
                (self.tail[mid] - self.stick[mid]).max(0.0).ln() + self.ln_scale - self.s * self.at(mid);
            if q_tail > alpha.ln() + self.at(mid) { lo = mid } else { hi = mid }
        }
        let around = [lo.saturating_sub(1), lo, (lo + 1).min(n - 1)];
        if side == Side::Upper {
            // Any ε is valid, also beyond either end of the window.
            return around.iter().map(|&i| cost(i, side)).fold(1.0, f64::min);
        }
        // Convex in e^ε: once a certified value to either side lies above the best upper value, so does the rest.
        let centre = around[1];
        let value = |i: usize| {
            let trivial = (-self.at(i).min(0.0).exp_m1()).max(0.0);
            (self.stick[i] * (self.ln_scale - self.s * self.at(i)).exp()).max(trivial)
                + self.at(i).exp() * alpha
        };
        let best = around.iter().map(|&i| value(i)).fold(1.0, f64::min);
        let error = |i: usize| (self.ln_scale - self.s * self.at(i)).exp() * self.absolute;
        let ceiling = best * (1.0 + 2.0 * self.relative) + 2.0 * error(centre);
        let mut least = cost(centre, side);
        for i in (0..centre).rev() {
            let c = cost(i, side);
            least = least.min(c);
            if c > ceiling {
                break;
            }
        }
        for i in centre + 1..n {
            let c = cost(i, side);
            least = least.min(c);
            if c > ceiling {
                return least.clamp(alpha, 1.0);
            }
        }
        // Beyond the window δ may be nothing, and e^ε α is all there is.
        least.min(self.at(n).max(0.0).exp() * alpha).clamp(alpha, 1.0)
    }
}
