//! The bounds that Guo et al. compare with.

use super::Prior;
use crate::Result;
use crate::dp::rdp::best_order;

/// Balle, Cherubin, Hayes 2022: `P(success) ≤ (p* e^{D_α})^{(α−1)/α}`, at the best order. Returns the order too.
pub fn balle(prior: &Prior, divergence: impl Fn(f64) -> Result<f64>) -> Result<(f64, f64)> {
    let p = prior.most_likely();
    let (alpha, ln) = best_order(|alpha| Ok((p.ln() + divergence(alpha)?) * (alpha - 1.0) / alpha))?;
    Ok((ln.exp().clamp(p, 1.0), alpha))
}

/// The same at one order, above 1.
pub(crate) fn balle_of_order(prior: &Prior, alpha: f64, divergence: f64) -> f64 {
    let p = prior.most_likely();
    ((p.ln() + divergence) * (alpha - 1.0) / alpha).exp().clamp(p, 1.0)
}

/// The closed form of Fano's inequality (Salamatian et al. 2020): `P(error) ≥ (H(p) − I − ln 2)/ln M`.
pub fn salamatian(prior: &Prior, information: f64) -> f64 {
    let error = (prior.entropy() - information - std::f64::consts::LN_2) / prior.possible().ln();
    (1.0 - error).clamp(prior.most_likely(), 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_value_for_ten_one_hot_encodings() {
        let prior = Prior::uniform(10).unwrap();
        let (s, alpha) = balle(&prior, Ok).unwrap();
        // By hand: α² = ln 10.
        assert!((s - 0.7651).abs() < 1e-4 && (alpha - 10_f64.ln().sqrt()).abs() < 1e-2, "{s} {alpha}");
    }

    #[test]
    fn the_closed_form_is_never_better_than_the_solution() {
        let prior = Prior::from_probabilities(vec![0.5, 0.2, 0.2, 0.1]).unwrap();
        for i in [0.0, 0.1, 0.5, 1.0] {
            assert!(salamatian(&prior, i) >= super::super::fano::success(&prior, i));
        }
    }
}
