//! Bounds on the error of estimates of continuous secrets, from Fisher information.

use crate::Result;
use crate::claim::{Bound, Theorem};
use crate::dp::{in_range, positive};

/// Variance of an unbiased estimate of an attribute with Fisher information loss `eta`: `≥ 1/η²` (Hannun eq. 11).
pub fn attribute_variance(eta: f64) -> Result<Bound> {
    positive("eta", eta)?;
    Ok(Bound::at_least(1.0 / (eta * eta), Theorem::CramerRao))
}

/// Mean squared error per coordinate of an unbiased estimate of a record: `≥ 1/dFIL` (Edmunds eq. 1.2).
pub fn record_error(dfil: f64) -> Result<Bound> {
    positive("dFIL", dfil)?;
    Ok(Bound::at_least(1.0 / dfil, Theorem::CramerRaoRecord))
}

/// Mean squared error per coordinate of any estimate, averaged over a prior: `≥ 1/(E[dFIL] + tr J(π)/d)` (van Trees;
/// Edmunds eq. 1.3). `prior_information` is `tr J(π)/d`: `1/s²` of a normal prior of standard deviation s.
pub fn any_estimate(expected_dfil: f64, prior_information: f64) -> Result<Bound> {
    let ok = expected_dfil >= 0.0 && expected_dfil.is_finite();
    in_range("expected dFIL", expected_dfil, ok, "a number, not negative")?;
    positive("information of the prior", prior_information)?;
    Ok(Bound::at_least(1.0 / (expected_dfil + prior_information), Theorem::VanTrees))
}

/// The η that makes the standard deviation of every unbiased estimate at least this: `1/deviation`.
pub fn eta_for_deviation(deviation: f64) -> Result<f64> {
    positive("standard deviation", deviation)?;
    Ok(1.0 / deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_attained_by_the_normal_mean() {
        // One observation x + N(0, σ²): η = 1/σ, the estimate has variance σ²; with a normal prior of spread s the
        // posterior mean has mean squared error 1/(1/σ² + 1/s²).
        let (sigma, s) = (0.7_f64, 2.0_f64);
        let v = attribute_variance(1.0 / sigma).unwrap().value;
        assert!(v <= sigma * sigma && v > sigma * sigma * (1.0 - 1e-9));
        let mse = 1.0 / (sigma.powi(-2) + s.powi(-2));
        let b = any_estimate(sigma.powi(-2), s.powi(-2)).unwrap().value;
        assert!(b <= mse && b > mse * (1.0 - 1e-9));
        assert!(record_error(4.0).unwrap().value <= 0.25);
        assert!((eta_for_deviation(0.5).unwrap() - 2.0).abs() < 1e-15);
        assert!(
            attribute_variance(0.0).is_err()
                && any_estimate(-1.0, 1.0).is_err()
                && record_error(f64::NAN).is_err()
        );
    }
}
