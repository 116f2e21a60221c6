//! Bounds on the error of estimates of continuous secrets, from Fisher information. Everything that speaks of such
//! errors (the audit, `bound`, calibration) takes them from here.

use crate::Result;
use crate::claim::{Bound, Measured, Theorem};
use crate::dp::{in_range, positive};

/// Standard deviation of an unbiased estimate of an attribute with Fisher information loss `eta`, in units of `scale`
/// a coded unit: `≥ scale/η` (Hannun eq. 11); without bound where η is zero.
pub fn deviation(eta: f64, scale: f64) -> Bound {
    Bound::at_least(scale / eta, Theorem::CramerRao)
}

/// Mean squared error per coordinate of an unbiased estimate of a record: `≥ 1/dFIL` (Edmunds eq. 1.2); without bound
/// where dFIL is zero.
pub fn record_error(dfil: f64) -> Bound {
    Bound::at_least(1.0 / dfil, Theorem::CramerRaoRecord)
}

/// Root mean squared error of *any* estimate of a number with a normal prior of standard deviation `spread`:
/// `≥ 1/√(E[I] + 1/spread²)` (van Trees), `information` being the expected Fisher information over the prior; 0 where
/// the prior leaves nothing open.
pub fn any_deviation(information: f64, spread: f64) -> Bound {
    let rmse = if spread > 0.0 { (information + 1.0 / (spread * spread)).sqrt().recip() } else { 0.0 };
    Bound::at_least(rmse, Theorem::VanTrees)
}

/// What [`any_deviation`] would be if the expected information over the prior were the average over the records of a
/// table: an estimate, no bound, since the prior's values are not those records.
pub fn typical_deviation(mean_information: f64, spread: f64) -> Measured {
    let rmse = if spread > 0.0 { (mean_information + 1.0 / (spread * spread)).sqrt().recip() } else { 0.0 };
    Measured::exact(rmse)
}

/// What [`any_error`] would be in the same case: an estimate, no bound.
pub fn typical_error(mean_information: &[f64], variances: &[f64]) -> Measured {
    Measured::exact(mean_error(mean_information, variances))
}

/// Mean squared error per coordinate of any estimate, averaged over a prior: the mean over coordinates of
/// `1/(E[I_jj] + J_j)` (van Trees in each coordinate, never weaker than Edmunds' eq. 1.3 with the means of both).
/// `information` and `variances` go by coordinate; a coordinate of no variance is no secret and does not count.
pub fn any_error(information: &[f64], variances: &[f64]) -> Bound {
    Bound::at_least(mean_error(information, variances), Theorem::VanTrees)
}

fn mean_error(information: &[f64], variances: &[f64]) -> f64 {
    let errors: Vec<f64> = information
        .iter()
        .zip(variances)
        .filter(|(_, variance)| **variance > 0.0)
        .map(|(information, variance)| 1.0 / (information + 1.0 / variance))
        .collect();
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

/// The same from the trace alone: `1/(E[dFIL] + tr J(π)/d)` (Edmunds eq. 1.3). `prior_information` is `tr J(π)/d`: `1/s²`
/// of a normal prior of standard deviation s.
pub fn any_error_from_trace(expected_dfil: f64, prior_information: f64) -> Result<Bound> {
    let ok = expected_dfil >= 0.0 && expected_dfil.is_finite();
    in_range("expected dFIL", expected_dfil, ok, "a number, not negative")?;
    positive("information of the prior", prior_information)?;
    Ok(Bound::at_least(1.0 / (expected_dfil + prior_information), Theorem::VanTrees))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_attained_by_the_normal_mean() {
        // One observation x + N(0, σ²): η = 1/σ, the estimate has variance σ²; with a normal prior of spread s the
        // posterior mean has mean squared error 1/(1/σ² + 1/s²).
        let (sigma, s) = (0.7_f64, 2.0_f64);
        let d = deviation(1.0 / sigma, 1.0).value;
        assert!(d <= sigma && d > sigma * (1.0 - 1e-9));
        assert!((deviation(1.0 / sigma, 10.0).value / d - 10.0).abs() < 1e-12);
        let mse = 1.0 / (sigma.powi(-2) + s.powi(-2));
        let b = any_error_from_trace(sigma.powi(-2), s.powi(-2)).unwrap().value;
        assert!(b <= mse && b > mse * (1.0 - 1e-9));
        let b = any_deviation(sigma.powi(-2), s).value;
        assert!(b <= mse.sqrt() && b > mse.sqrt() * (1.0 - 1e-9));
        assert_eq!(any_deviation(1.0, 0.0).value, 0.0);
        // An average over a table gives the same number, and another kind of claim.
        assert!((typical_deviation(sigma.powi(-2), s).value / mse.sqrt() - 1.0).abs() < 1e-14);
        assert!((typical_error(&[sigma.powi(-2)], &[s * s]).value / mse - 1.0).abs() < 1e-14);
        assert_eq!(typical_deviation(1.0, 0.0).value, 0.0);
        assert!(record_error(4.0).value <= 0.25 && record_error(0.0).value == f64::INFINITY);
        assert!(any_error_from_trace(-1.0, 1.0).is_err() && any_error_from_trace(1.0, 0.0).is_err());
    }

    #[test]
    fn coordinate_by_coordinate_is_never_weaker_than_the_trace() {
        let (information, variances) = ([4.0, 0.25, 1.0, 9.0], [1.0, 2.0, 0.5, 0.0]);
        let each = any_error(&information, &variances).value;
        let (i, j) = ((4.0 + 0.25 + 1.0) / 3.0, (1.0 + 0.5 + 2.0) / 3.0);
        assert!(each >= any_error_from_trace(i, j).unwrap().value);
        assert!((each - (0.2 + 1.0 / 0.75 + 1.0 / 3.0) / 3.0).abs() < 1e-9);
    }
}
