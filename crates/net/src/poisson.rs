//! The Fisher information of a record in one step of DP-SGD under Poisson sampling (MATHS §5.2): exact for an attacker
//! who knows which other records were drawn, and an upper bound for one who does not, since information about the
//! record cannot grow where the rest is known less.
//!
//! The step releases `q N(ḡ, s²I) + (1−q) N(0, s²I)` around what is known of the rest. With `ν = ‖ḡ‖/s`, `ξ ~ N(0,1)`
//! and the posterior of inclusion `w(ξ) = q/(q + (1−q) e^{−ν²/2−νξ})`,
//!
//! `I = s⁻²(A JᵀJ + (B − A) JᵀĝĝᵀJ)`, `A = q E[w]`, `B = q E[w ξ²]`.

use crate::error::{Result, check};

/// The two coefficients of the information.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// Across the gradient: `A = q E[w]`.
    pub across: f64,
    /// Along the gradient: `B = q E[w ξ²]`.
    pub along: f64,
}

impl Coefficients {
    /// `tr I = A tr + (B − A) along` from `tr = ‖J‖²_F/s²` and `along = ‖Jᵀĝ‖²/s²`, the trace and what of it lies along
    /// the gradient.
    pub fn trace(&self, trace: f64, along: f64) -> f64 {
        self.across * trace + (self.along - self.across) * along
    }
}

/// A and B for sampling rate `q` and `nu = ‖ḡ‖/s`, by the trapezoidal rule, which converges geometrically for a
/// function analytic in a strip: that of w has half-width π/ν. Error below 1e-13.
pub fn coefficients(q: f64, nu: f64) -> Result<Coefficients> {
    check((0.0..=1.0).contains(&q), "the sampling rate q", q, "between 0 and 1")?;
    check(nu >= 0.0, "the norm of the gradient over the noise", nu, "at least 0")?;
    Ok(integrate(q, nu))
}

fn integrate(q: f64, nu: f64) -> Coefficients {
    if q == 0.0 || q == 1.0 {
        return Coefficients { across: q * q, along: q * q };
    }
    // ln of the odds against inclusion: w = 1/(1 + e^{odds − ν²/2 − νξ})
    let odds = (-q).ln_1p() - q.ln();
    // at ξ = −10, where the density is 1e-22, w is already 1: inclusion is never in doubt
    if 0.5 * nu * nu - 10.0 * nu - odds > 50.0 {
        return Coefficients { across: q, along: q };
    }
    let h = (0.5 / nu.max(1.0)).min(0.5);
    let half = (10.0 / h).ceil() as i64;
    let (mut a, mut b) = (0.0, 0.0);
    for i in -half..=half {
        let xi = i as f64 * h;
        let weight = (-0.5 * xi * xi).exp() / (1.0 + (odds - 0.5 * nu * nu - nu * xi).exp());
        a += weight;
        b += weight * xi * xi;
    }
    let scale = q * h * 0.398_942_280_401_432_7;
    Coefficients { across: a * scale, along: b * scale }
}

/// A and B for one sampling rate, tabulated in ν.
#[derive(Debug, Clone)]
pub struct Table {
    q: f64,
    step: f64,
    values: Vec<Coefficients>,
}

impl Table {
    /// Tabulates up to `longest`, the largest `‖ḡ‖/s`; beyond it the integral itself is used.
    pub fn new(q: f64, longest: f64) -> Result<Self> {
        coefficients(q, 0.0)?;
        check(longest >= 0.0 && longest.is_finite(), "the largest norm over the noise", longest, "finite")?;
        // A and B vary on the scale of max(1/ν, 1): steps of 1/64 leave an interpolation error of 1e-8
        let step = 1.0 / 64.0;
        let points = (longest.min(64.0) / step).ceil() as usize + 4;
        let values = (0..points).map(|i| integrate(q, i as f64 * step)).collect();
        Ok(Self { q, step, values })
    }

    /// The sampling rate.
    pub(crate) fn rate(&self) -> f64 {
        self.q
    }

    /// The step of ν, and A and B at its multiples, one pair after another.
    pub(crate) fn rows(&self) -> (f64, Vec<f64>) {
        (self.step, self.values.iter().flat_map(|c| [c.across, c.along]).collect())
    }

    /// A and B at ν, by cubic interpolation; relative error below 1e-6 (stated by the tests).
    pub fn at(&self, nu: f64) -> Coefficients {
        let x = nu / self.step;
        let i = x.floor() as usize;
        if nu.is_nan() || nu < 0.0 || i + 3 >= self.values.len() {
            return integrate(self.q, nu.max(0.0));
        }
        // both are even in ν, so the table continues to the left of zero as its mirror image
        let v = |j: isize| self.values[j.unsigned_abs()];
        let (t, i) = (x - i as f64, i as isize);
        let cubic = |f: &dyn Fn(Coefficients) -> f64| {
            let [a, b, c, d] = [f(v(i - 1)), f(v(i)), f(v(i + 1)), f(v(i + 2))];
            // Lagrange's cubic through −1, 0, 1, 2
            -a * t * (t - 1.0) * (t - 2.0) / 6.0 + b * (t * t - 1.0) * (t - 2.0) / 2.0
                - c * t * (t + 1.0) * (t - 2.0) / 2.0
                + d * t * (t * t - 1.0) / 6.0
        };
        Coefficients { across: cubic(&|c| c.across), along: cubic(&|c| c.along) }
    }
}

/// The published factor `q/(q + (1−q)e^{−ε})`, `ε = 2·1.115·√(2 ln(1.25/δ))/σ` (Edmunds eq. 2.3): an upper bound on
/// what sampling leaves of the trace.
pub fn published_factor(q: f64, sigma: f64, delta: f64) -> Result<f64> {
    check((0.0..=1.0).contains(&q), "the sampling rate q", q, "between 0 and 1")?;
    check(sigma > 0.0 && sigma.is_finite(), "sigma", sigma, "positive and finite")?;
    check(delta > 0.0 && delta < 1.0, "delta", delta, "between 0 and 1")?;
    let epsilon = 2.0 * 1.115 * (2.0 * (1.25 / delta).ln()).sqrt() / sigma;
    Ok(if q == 0.0 { 0.0 } else { q / (q + (1.0 - q) * (-epsilon).exp()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Purpose};

    /// The definition in two dimensions: the score of the mixture with respect to a parameter that moves ḡ by J,
    /// squared and averaged over draws of the mechanism.
    #[test]
    fn the_information_is_that_of_the_mechanism_by_monte_carlo() {
        for (q, g, s) in [(0.3, 1.2, 1.0), (0.05, 0.8, 0.4), (0.6, 0.3, 1.5), (0.01, 1.0, 0.5)] {
            let j = [0.7, -1.3]; // ∂ḡ/∂x, ḡ = (g, 0)
            let mut rng = Generator::new(11, Purpose::Other, (q * 1e4) as u64);
            let n = 400_000;
            let (mut m1, mut m2) = (0.0, 0.0);
            let density = |y: [f64; 2], c: f64| (-0.5 * ((y[0] - c).powi(2) + y[1].powi(2)) / (s * s)).exp();
            for _ in 0..n {
                let drawn = if rng.uniform() < q { g } else { 0.0 };
                let y = [drawn + s * rng.normal(), s * rng.normal()];
                let (with, without) = (q * density(y, g), (1.0 - q) * density(y, 0.0));
                // d/dx of the density of the first component: (y − ḡ)·J/s²
                let score = with / (with + without) * ((y[0] - g) * j[0] + y[1] * j[1]) / (s * s);
                m1 += score * score;
                m2 += score.powi(4);
            }
            let n = f64::from(n);
            let (mean, error) = (m1 / n, ((m2 / n - (m1 / n).powi(2)) / n).sqrt());
            let exact = coefficients(q, g / s)
                .unwrap()
                .trace((j[0] * j[0] + j[1] * j[1]) / (s * s), j[0] * j[0] / (s * s));
            assert!((mean - exact).abs() < 4.5 * error, "q {q}: {mean} ± {error} against {exact}");
        }
    }

    #[test]
    fn the_integrals_agree_with_mpmath() {
        // mpmath.quad at 30 digits: (q, ν, A, B)
        for (q, nu, a, b) in include_str!("../../../testdata/net/poisson.csv").lines().skip(1).map(|line| {
            let v: Vec<f64> = line.split(',').map(|v| v.parse().unwrap()).collect();
            (v[0], v[1], v[2], v[3])
        }) {
            let c = coefficients(q, nu).unwrap();
            assert!((c.across / a - 1.0).abs() < 1e-12, "A({q}, {nu}): {} against {a}", c.across);
            assert!((c.along / b - 1.0).abs() < 1e-12, "B({q}, {nu}): {} against {b}", c.along);
        }
    }

    #[test]
    fn the_table_keeps_its_stated_error() {
        for q in [0.001, 0.01, 0.2, 0.9] {
            let table = Table::new(q, 25.0).unwrap();
            for i in 0..2_000 {
                let nu = 0.013 * f64::from(i);
                let (exact, actual) = (integrate(q, nu), table.at(nu));
                assert!((actual.across / exact.across - 1.0).abs() < 1e-6, "q {q} ν {nu}");
                assert!((actual.along / exact.along - 1.0).abs() < 1e-6, "q {q} ν {nu}");
            }
        }
    }

    #[test]
    fn limits_and_the_published_factor() {
        let c = coefficients(0.1, 0.0).unwrap();
        assert!((c.across - 0.01).abs() < 1e-15 && (c.along - 0.01).abs() < 1e-15);
        assert_eq!(coefficients(0.1, 1e6).unwrap(), Coefficients { across: 0.1, along: 0.1 });
        assert_eq!(coefficients(1.0, 2.0).unwrap(), Coefficients { across: 1.0, along: 1.0 });
        // σ = 0.5 amplifies nothing
        assert!((published_factor(600.0 / 60_000.0, 0.5, 1e-5).unwrap() - 1.0).abs() < 5e-5);
        // the exact information never exceeds the published bound
        for (q, sigma) in [(0.01, 0.5), (0.01, 5.0), (0.1, 1.0), (0.1, 20.0), (0.5, 2.0)] {
            let factor = published_factor(q, sigma, 1e-5).unwrap();
            for i in 0..=20 {
                let c = coefficients(q, 1.115 / sigma * f64::from(i) / 20.0).unwrap();
                assert!(c.across <= factor && c.along <= factor, "q {q} σ {sigma}: {c:?} {factor}");
            }
        }
        for (q, nu) in [(-0.1, 1.0), (1.1, 1.0), (f64::NAN, 1.0), (0.1, f64::NAN), (0.1, -1.0)] {
            assert!(coefficients(q, nu).is_err());
        }
    }
}
