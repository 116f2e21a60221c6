//! The Gaussian mechanism in closed form: its exact ε and δ (Balle & Wang 2018), Gaussian DP (Dong, Roth, Su
//! 2022) and zero-concentrated DP (Bun & Steinke 2016). All of them speak of one number, the distance μ between
//! the two outputs in standard deviations; T releases compose to `μ√T`.

use super::{Adjacency, Mechanism, check_delta, check_epsilon, in_range, positive};
use crate::Result;
use crate::special::{ln_add_exp, mills, normal_cdf, normal_ln_cdf, normal_quantile};

/// The distance μ of a composition of plain Gaussian releases, `√Σ(Δ/σ)²`; none where something else is in it
/// (a sampled step, another noise), for which Gaussian DP is only a limit and no guarantee.
pub fn distance(steps: &[(Mechanism, u64)], adjacency: Adjacency) -> Option<f64> {
    let mut sum = 0.0;
    for &(mechanism, count) in steps {
        let Mechanism::Gaussian { sigma, rate: 1.0 } = mechanism else { return None };
        sum += count as f64 * (adjacency.sensitivity() / sigma).powi(2);
    }
    Some(sum.sqrt())
}

/// `ln δ(ε)` of the Gaussian mechanism at distance `mu`: `δ = Φ(a) − e^ε Φ(b)`, `a = μ/2 − ε/μ`, `b = a − μ`
/// (Balle & Wang eq. 6). Since `φ(a) = e^ε φ(b)` it is `φ(a)(m(a) − m(b))` with the Mills ratio m, which does
/// not underflow.
pub fn ln_delta(mu: f64, epsilon: f64) -> Result<f64> {
    positive("distance", mu)?;
    check_epsilon(epsilon)?;
    let a = 0.5 * mu - epsilon / mu;
    let b = a - mu;
    if a > 5.0 {
        // Both Mills ratios may be huge here, and the first term is close to one.
        let second = epsilon + normal_ln_cdf(b);
        return Ok((normal_cdf(a) - second.exp()).max(f64::MIN_POSITIVE).ln().min(0.0));
    }
    let difference = mills(a) - mills(b);
    Ok((-0.5 * a * a - crate::special::LN_SQRT_2PI + difference.max(f64::MIN_POSITIVE).ln()).min(0.0))
}

/// How far [`ln_delta`] may be from exact by rounding. `exp`, `erfc` and sums are taken to be right to four units in the last
/// place; what a and b were rounded by moves both Mills ratios, whose slope is `1 + x m(x)`.
fn ln_delta_error(mu: f64, epsilon: f64) -> f64 {
    const U: f64 = 4.0 * f64::EPSILON;
    let a = 0.5 * mu - epsilon / mu;
    let b = a - mu;
    let moved = U * (0.5 * mu + (epsilon / mu).abs());
    if a > 5.0 {
        let second = epsilon + normal_ln_cdf(b);
        let of_second = U * (1.0 + epsilon.abs() + normal_ln_cdf(b).abs()) + moved * (1.0 + b.abs());
        let value = (normal_cdf(a) - second.exp()).max(f64::MIN_POSITIVE);
        return (U + moved + second.exp() * of_second) / value + U;
    }
    let (ma, mb) = (mills(a), mills(b));
    let slope = |x: f64, m: f64| (1.0 + x * m).max(0.0) + U * (1.0 + x.abs() * m);
    let of_difference = U * (ma + mb) + moved * slope(a, ma) + (moved + U * b.abs()) * slope(b, mb);
    let difference = (ma - mb).max(f64::MIN_POSITIVE);
    of_difference / difference + a.abs() * moved + U * (1.0 + 0.5 * a * a + difference.ln().abs())
}

/// δ at ε of the Gaussian mechanism, rounded up.
///
/// # Guarantee
/// The mechanism at distance `mu` is (ε, δ)-DP. It is for no δ that is smaller by more than rounding, which is below 1e-8
/// (relative) for distances from 1e-5 to 100 and δ above 1e-100, and below 1e-11 from 0.01 on.
pub fn delta(mu: f64, epsilon: f64) -> Result<f64> {
    Ok((ln_delta(mu, epsilon)? + ln_delta_error(mu, epsilon)).exp().min(1.0))
}

/// ε at δ of the Gaussian mechanism: the smallest, rounded up; 0 where δ alone suffices.
///
/// # Guarantee
/// The mechanism at distance `mu` is (ε, δ)-DP. It is for no ε that is smaller by more than rounding, which is below 1e-11
/// (relative) for distances from 0.01 to 100 and δ between 1e-100 and 1e-2.
pub fn epsilon(mu: f64, delta: f64) -> Result<f64> {
    positive("distance", mu)?;
    check_delta(delta)?;
    let target = delta.ln() * (1.0 + f64::EPSILON);
    let at_most = |epsilon: f64| ln_delta(mu, epsilon).map(|ln| ln + ln_delta_error(mu, epsilon));
    if at_most(0.0)? <= target {
        return Ok(0.0);
    }
    // δ(ε) ≤ Φ(μ/2 − ε/μ), so this end is safe.
    let (mut lo, mut hi) = (0.0, mu * (0.5 * mu - normal_quantile(delta)) * (1.0 + 1e-14));
    while hi - lo > 1e-15 * hi {
        let mid = 0.5 * (lo + hi);
        if mid <= lo || mid >= hi {
            break;
        }
        if at_most(mid)? > target { lo = mid } else { hi = mid }
    }
    Ok(hi)
}

/// The trade-off function of Gaussian DP, `f(α) = Φ(Φ⁻¹(1−α) − μ)`: the least false-negative rate at
/// false-positive rate `alpha`.
pub fn trade_off(mu: f64, alpha: f64) -> f64 {
    normal_cdf(-normal_quantile(alpha) - mu)
}

/// Membership advantage of Gaussian DP, `2Φ(μ/2) − 1`.
pub fn advantage(mu: f64) -> f64 {
    libm::erf(0.5 * mu * std::f64::consts::FRAC_1_SQRT_2)
}

/// The ρ of zero-concentrated DP of a composition: `Δ²/2σ²` a plain Gaussian release, `ε²/2` a purely private
/// one. None for a sampled Gaussian, which is not usefully concentrated.
pub fn zcdp(steps: &[(Mechanism, u64)], adjacency: Adjacency) -> Option<f64> {
    steps.iter().try_fold(0.0, |sum, &(mechanism, count)| {
        let rho = match mechanism {
            Mechanism::Gaussian { sigma, rate: 1.0 } => 0.5 * (adjacency.sensitivity() / sigma).powi(2),
            Mechanism::Gaussian { .. } => return None,
            pure => 0.5 * pure.pure_epsilon(adjacency)?.powi(2),
        };
        Some(sum + count as f64 * rho)
    })
}

/// ε at δ of ρ-zCDP: `D_α ≤ ρα` at every order, converted at the best one.
pub fn zcdp_epsilon(rho: f64, delta: f64) -> Result<f64> {
    in_range("rho", rho, rho >= 0.0 && rho.is_finite(), "a number not below 0")?;
    check_delta(delta)?;
    if rho == 0.0 {
        return Ok(0.0);
    }
    let (_, epsilon) = super::rdp::best_order(|alpha| Ok(super::rdp::epsilon_of(alpha, rho * alpha, delta)))?;
    Ok(epsilon * (1.0 + 1e-12))
}

/// The central-limit *approximation* of DP-SGD by Gaussian DP, `μ = q√(T(e^{1/σ²} − 1))` (Bu et al. 2020). Not a
/// guarantee, and off by more the larger q, the smaller σ; shown only to compare with papers that use it.
pub fn central_limit_distance(sigma: f64, rate: f64, steps: u64) -> Result<f64> {
    Mechanism::gaussian(sigma, rate).check(Adjacency::AddRemove)?;
    let e = 1.0 / (sigma * sigma);
    // √(e^x − 1) in logarithms: e^{1/σ²} overflows below σ = 0.04.
    let ln = rate.ln() + 0.5 * ((steps as f64).ln() + e + crate::special::ln_1m_exp(-e));
    Ok(ln.exp().min(f64::MAX))
}

/// Largest membership advantage that (ε, δ)-DP allows, `(e^ε − 1 + 2δ)/(e^ε + 1)` (Humphries et al. 2020).
pub fn advantage_of_epsilon(epsilon: f64, delta: f64) -> f64 {
    let ln_top = ln_add_exp(crate::special::ln_1m_exp(-epsilon.max(0.0)), (2.0 * delta).ln() - epsilon);
    (ln_top - (-epsilon).exp().ln_1p()).exp().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// δ(ε) by the midpoint rule on its definition, ∫ (p − e^ε q)₊.
    fn hockey_stick(mu: f64, epsilon: f64) -> f64 {
        let (lo, hi, n) = (epsilon / mu + 0.5 * mu, epsilon / mu + 1.5 * mu + 12.0, 200_000);
        let h = (hi - lo) / f64::from(n);
        let phi = crate::special::normal_pdf;
        (0..n)
            .map(|i| lo + h * (f64::from(i) + 0.5))
            .map(|x| h * (phi(x - mu) - epsilon.exp() * phi(x)).max(0.0))
            .sum()
    }

    #[test]
    fn delta_is_the_integral_of_its_definition() {
        for (mu, epsilon) in
            [(1.0, 0.0), (1.0, 1.0), (0.1, 0.2), (3.0, 10.0), (3.0, 0.5), (12.0, 40.0), (1.0, -0.5)]
        {
            let (a, b) = (delta(mu, epsilon).unwrap(), hockey_stick(mu, epsilon));
            let b = if epsilon < 0.0 { b } else { b.max(1e-300) };
            assert!((a / b - 1.0).abs() < 1e-6, "{mu} {epsilon}: {a} {b}");
        }
    }

    #[test]
    fn epsilon_inverts_delta_and_survives_extremes() {
        for mu in [1e-3, 0.1, 1.0, 10.0, 1e3, 1e5] {
            for d in [1e-2, 1e-5, 1e-15, 1e-100, 1e-299] {
                let e = epsilon(mu, d).unwrap();
                assert!(e.is_finite() && e >= 0.0);
                if e > 0.0 {
                    assert!(ln_delta(mu, e).unwrap() <= d.ln() + 1e-9);
                    assert!(ln_delta(mu, e * (1.0 - 1e-6)).unwrap() > d.ln(), "{mu} {d} {e}");
                }
            }
        }
        assert_eq!(epsilon(1e-7, 1e-5).unwrap(), 0.0);
        assert!(epsilon(1.0, 0.0).is_err() && epsilon(0.0, 1e-5).is_err() && delta(1.0, f64::NAN).is_err());
    }

    /// ε by 80-digit arithmetic (bisection of Φ(a) − e^ε Φ(b)): never below, and above by rounding alone.
    #[test]
    fn epsilon_is_certified_against_high_precision() {
        for (mu, d, truth) in [
            (0.01, 1e-5, 0.027_219_419_814_577_136),
            (0.1, 1e-5, 0.340_669_364_684_326_4),
            (0.5, 1e-10, 3.099_430_330_243_196),
            (0.75, 1e-5, 3.146_797_994_658_682_5),
            (0.8, 1e-5, 3.386_933_186_156_264),
            (1.0, 1e-5, 4.377_178_095_681_225),
            (1.0, 1e-6, 4.886_554_117_462_212),
            (0.9, 1e-6, 4.336_173_052_946_745),
            (3.0, 1e-2, 10.745_800_744_935_573),
            (3.0, 1e-100, 68.025_546_836_440_7),
            (20.0, 1e-5, 284.391_849_497_742_5),
            (100.0, 1e-6, 5_474.365_500_194_637),
        ] {
            let actual = epsilon(mu, d).unwrap();
            let excess = actual / truth - 1.0;
            assert!((-2e-16..1e-11).contains(&excess), "{mu} {d}: {actual} {truth} {excess:e}");
        }
    }

    #[test]
    fn zcdp_is_safe_and_not_far_from_the_truth() {
        let steps = [(Mechanism::gaussian(2.0, 1.0), 8)];
        let mu = distance(&steps, Adjacency::AddRemove).unwrap();
        assert!((mu - 2.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!(distance(&steps, Adjacency::Replace).unwrap(), 2.0 * mu);
        let (exact, safe) = (epsilon(mu, 1e-6).unwrap(), zcdp_epsilon(0.5 * mu * mu, 1e-6).unwrap());
        assert!(safe > exact && safe < 1.1 * exact, "{exact} {safe}");
        assert!((zcdp(&steps, Adjacency::AddRemove).unwrap() - 1.0).abs() < 1e-14);
        assert!(zcdp(&[(Mechanism::gaussian(1.0, 0.5), 1)], Adjacency::AddRemove).is_none());
    }

    #[test]
    fn trade_off_and_advantage_agree() {
        let mu = 1.3;
        let best =
            (1..1000).map(|i| f64::from(i) / 1000.0).map(|a| 1.0 - a - trade_off(mu, a)).fold(0.0, f64::max);
        assert!((best - advantage(mu)).abs() < 1e-5 && best <= advantage(mu));
        assert!((advantage_of_epsilon(1.0, 0.0) - 0.5_f64.tanh()).abs() < 1e-15);
        assert!((advantage_of_epsilon(800.0, 0.0) - 1.0).abs() < 1e-15);
    }
}
