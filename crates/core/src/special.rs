//! Special functions with full relative accuracy in the tails: the normal distribution and its logarithm, and
//! sums and differences of exponentials that neither overflow nor cancel.
//!
//! | function | formula |
//! |---|---|
//! | [`normal_cdf`], [`normal_ln_cdf`] | `Φ(x)`, `ln Φ(x)` |
//! | [`normal_quantile`], [`normal_quantile_ln`] | `Φ⁻¹(p)`, also of `ln p` |
//! | [`student_t_tail`], [`student_t_quantile`] | `P(T > t)` and its inverse |
//! | [`mills`] | `Φ(x)/φ(x)` |
//! | [`erfcx`] | `exp(x²) erfc(x)` |
//! | [`ln_1m_exp`], [`ln_sum_exp`] | `ln(1 − eˣ)`, `ln Σ eˣ` |

use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

/// `ln √(2π)`.
pub(crate) const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;

/// `exp(x²) erfc(x)`; `+∞` where `x` is below about −26.
pub fn erfcx(x: f64) -> f64 {
    if x < 10.0 {
        // exp of the rounded square loses x²u, so the rounding of the square is put back: x² = s + r.
        let s = x * x;
        let hi = f64::from_bits(x.to_bits() & 0xffff_ffff_f800_0000);
        let lo = x - hi;
        let r = ((hi * hi - s) + 2.0 * hi * lo) + lo * lo;
        return s.exp() * (1.0 + r) * libm::erfc(x);
    }
    // Asymptotic series 1/(x√π) Σ (−1)ⁿ (2n−1)!!/(2x²)ⁿ: from x = 10 on, fifteen terms reach the last bit.
    let y = 0.5 / (x * x);
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..16 {
        term *= -y * f64::from(2 * n - 1);
        sum += term;
    }
    sum / (x * PI.sqrt())
}

/// The standard normal distribution function `Φ(x)`, with relative accuracy in the lower tail.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// `ln Φ(x)`, finite for every finite `x` of ordinary size.
pub fn normal_ln_cdf(x: f64) -> f64 {
    if x > -1.0 { (-normal_cdf(-x)).ln_1p() } else { -0.5 * x * x + (0.5 * erfcx(-x * FRAC_1_SQRT_2)).ln() }
}

/// The standard normal density `φ(x)`.
pub fn normal_pdf(x: f64) -> f64 {
    (-0.5 * x * x - LN_SQRT_2PI).exp()
}

/// `Φ(x)/φ(x)`, the Mills ratio seen from the lower tail; `+∞` for large `x`.
pub fn mills(x: f64) -> f64 {
    (0.5 * PI).sqrt() * erfcx(-x * FRAC_1_SQRT_2)
}

/// The standard normal quantile `Φ⁻¹(p)`; −∞ and +∞ at 0 and 1, and beyond them.
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.0 || p.is_nan() {
        f64::NEG_INFINITY
    } else if p >= 1.0 {
        f64::INFINITY
    } else if p <= 0.5 {
        normal_quantile_ln(p.ln())
    } else {
        // 1 − p is exact for p in [½, 1].
        -normal_quantile_ln((1.0 - p).ln())
    }
}

/// `Φ⁻¹(exp(ln_p))` for `ln_p < 0`, however small the probability.
pub fn normal_quantile_ln(ln_p: f64) -> f64 {
    if ln_p.is_nan() || ln_p == f64::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    if ln_p >= 0.0 {
        return f64::INFINITY;
    }
    if ln_p > -LN_2 {
        return -normal_quantile_ln(ln_1m_exp(ln_p));
    }
    // Start: Abramowitz & Stegun 26.2.23 (absolute error 4.5e-4). Then Newton on ln Φ, which is concave, with
    // Halley's correction: with m = Φ/φ, (ln Φ)' = 1/m and (ln Φ)'' = −(x + 1/m)/m.
    let t = (-2.0 * ln_p).sqrt();
    let mut x = (2.515_517 + t * (0.802_853 + t * 0.010_328))
        / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)))
        - t;
    for _ in 0..4 {
        let m = mills(x);
        let step = (normal_ln_cdf(x) - ln_p) * m;
        let dx = step / (1.0 + 0.5 * step * (x + 1.0 / m));
        x -= dx;
        if dx.abs() <= 1e-16 * x.abs() {
            break;
        }
    }
    x
}

/// `P(T > t)` for a Student t variable of ν degrees of freedom, `½ I_x(ν/2, ½)` with `x = ν/(ν + t²)` for `t ≥ 0`; NaN
/// where ν is not positive.
pub fn student_t_tail(t: f64, degrees: f64) -> f64 {
    if degrees <= 0.0 || degrees.is_nan() || t.is_nan() {
        return f64::NAN;
    }
    if t < 0.0 {
        return 1.0 - student_t_tail(-t, degrees);
    }
    // without t², which would overflow
    let r = t / degrees.sqrt();
    let (x, y) = if r < 1.0 {
        (1.0 / (1.0 + r * r), r * r / (1.0 + r * r))
    } else {
        (1.0 / r / r / (1.0 / r / r + 1.0), 1.0 / (1.0 / r / r + 1.0))
    };
    0.5 * incomplete_beta(0.5 * degrees, 0.5, x, y)
}

/// The quantile of a Student t variable of ν degrees of freedom: `P(T ≤ t) = p`. Infinite at 0 and 1, NaN beyond.
pub fn student_t_quantile(p: f64, degrees: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || degrees <= 0.0 || degrees.is_nan() {
        return f64::NAN;
    }
    if p == 0.5 {
        return 0.0;
    }
    let (tail, sign) = if p < 0.5 { (p, -1.0) } else { (1.0 - p, 1.0) };
    if tail == 0.0 {
        return sign * f64::INFINITY;
    }
    // the tail falls in t: double until it is below, then halve the interval down to the last bit
    let mut high = 1.0;
    while student_t_tail(high, degrees) > tail && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    while high > low {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if student_t_tail(middle, degrees) > tail { low = middle } else { high = middle }
    }
    sign * high
}

/// `P[X ≥ k]` of a binomial variable of n trials, each a success with probability p; `miss` is 1 − p.
pub fn binomial_tail(n: u64, k: u64, p: f64, miss: f64) -> f64 {
    match k {
        0 => 1.0,
        k if k > n => 0.0,
        k => incomplete_beta(k as f64, (n - k) as f64 + 1.0, p, miss),
    }
}

/// `ln binomial(n, k)`.
pub fn ln_binomial(n: u64, k: u64) -> f64 {
    let (n, k) = (n as f64, k as f64);
    libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0)
}

/// The regularised incomplete beta function `I_x(a, b)` by its continued fraction (modified Lentz); `y = 1 − x`.
fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x <= 0.0 || y <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // the fraction converges quickly on this side only
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, y, x);
    }
    let beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = (a * x.ln() + b * y.ln() - beta).exp() / a;
    let guard = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / guard(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / guard(1.0 + term * d);
            c = guard(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * fraction
}

/// `ln(1 − eˣ)` for `x ≤ 0`.
pub fn ln_1m_exp(x: f64) -> f64 {
    if x > -LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

/// `ln(eᵃ + eᵇ)`.
pub fn ln_add_exp(a: f64, b: f64) -> f64 {
    let (hi, lo) = if a >= b { (a, b) } else { (b, a) };
    if lo == f64::NEG_INFINITY { hi } else { hi + (lo - hi).exp().ln_1p() }
}

/// `ln Σ eˣ`; −∞ of nothing.
pub fn ln_sum_exp(xs: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = xs.clone().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max;
    }
    max + xs.map(|x| (x - max).exp()).sum::<f64>().ln()
}

/// `ln binomial(a, k)` of a real `a` is not always real; this is its sign and `ln |binomial(a, k)|`.
pub(crate) fn ln_abs_binomial(a: f64, k: f64) -> (f64, f64) {
    let (top, s1) = libm::lgamma_r(a + 1.0);
    let (rest, s2) = libm::lgamma_r(a - k + 1.0);
    (f64::from(s1 * s2), top - libm::lgamma(k + 1.0) - rest)
}

/// Relative entropy of one cell, `x ln(x/y) − x + y ≥ 0`: sums of it have no cancellation.
pub(crate) fn entropy_term(x: f64, y: f64) -> f64 {
    if x == 0.0 {
        return y;
    }
    let d = (y - x) / x;
    if d.abs() < 1e-4 {
        // x(d − ln(1+d)) by its series
        x * d * d * (0.5 - d * (1.0 / 3.0 - d * (0.25 - 0.2 * d)))
    } else {
        x * (d - d.ln_1p())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dp::golden;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs(), "{a:e} against {b:e}: {:e}", (a / b - 1.0).abs());
    }

    /// Values of mpmath at 50 digits: testdata/make_dp_golden.py.
    /// ν = 1 and 2 have closed forms; the others to 30 digits by mpmath (`findroot` on `betainc`).
    #[test]
    fn quantiles_of_student_are_those_of_tables() {
        for (p, degrees, exact) in [
            (0.975, 1.0, 12.706_204_736_174_705),
            (0.975, 2.0, 4.302_652_729_749_464),
            (0.975, 3.0, 3.182_446_305_283_709_6),
            (0.975, 9.0, 2.262_157_162_798_205_5),
            (0.975, 49.0, 2.009_575_237_129_239_7),
            (0.95, 4.0, 2.131_846_786_326_650_3),
            (0.995, 19.0, 2.860_934_606_464_979),
        ] {
            let actual = student_t_quantile(p, degrees);
            assert!((actual / exact - 1.0).abs() < 2e-13, "{p} {degrees}: {actual} against {exact}");
            assert!((student_t_quantile(1.0 - p, degrees) / -exact - 1.0).abs() < 1e-12);
        }
        // of many degrees, lgamma's digits are those before the point
        assert!((student_t_quantile(0.975, 1e6) - 1.959_966_356_814_107).abs() < 1e-8);
        // Cauchy: P(T > t) = atan(1/t)/π, far out too
        for t in [1e-3, 0.5, 3.0, 1e5, 1e100] {
            let exact = f64::atan(1.0 / t) / std::f64::consts::PI;
            assert!((student_t_tail(t, 1.0) / exact - 1.0).abs() < 1e-13, "{t}");
        }
        assert_eq!(student_t_quantile(0.5, 3.0), 0.0);
        assert_eq!(student_t_quantile(1.0, 3.0), f64::INFINITY);
        assert!(student_t_quantile(0.9, 0.0).is_nan() && student_t_quantile(1.5, 3.0).is_nan());
    }

    #[test]
    fn the_normal_distribution_is_accurate_in_both_tails() {
        for row in golden("normal") {
            let (x, cdf, ln_cdf) = (row[0], row[1], row[2]);
            close(normal_cdf(x), cdf, 3e-13);
            close(normal_ln_cdf(x), ln_cdf, 1e-14);
            // Near the median the quantile of a rounded probability is only good absolutely.
            if cdf > 0.0 && cdf < 0.9 && x.abs() > 0.05 {
                close(normal_quantile(cdf), x, 2e-14);
            }
            if x.abs() > 0.05 {
                close(normal_quantile_ln(ln_cdf), x, 1e-13);
            }
        }
        assert!(normal_quantile(0.5).abs() < 1e-16);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn the_scaled_complement_is_accurate_where_its_two_formulas_meet() {
        for row in golden("erfcx") {
            close(erfcx(row[0]), row[1], 1e-15);
        }
    }

    #[test]
    fn exponentials_neither_cancel_nor_overflow() {
        close(ln_1m_exp(-1e-20), -46.051_701_859_880_91, 1e-15);
        close(ln_1m_exp(-40.0), -(-40.0_f64).exp(), 1e-15);
        assert_eq!(ln_sum_exp([1e4, 1e4].into_iter()), 1e4 + LN_2);
        assert_eq!(ln_add_exp(f64::NEG_INFINITY, 3.0), 3.0);
        assert_eq!(ln_sum_exp(std::iter::empty()), f64::NEG_INFINITY);
        close(entropy_term(1.0, 1.0 + 1e-9), 0.5e-18, 1e-6);
        close(entropy_term(0.3, 0.7), 0.3 * (0.3_f64 / 0.7).ln() + 0.4, 1e-14);
    }
}
