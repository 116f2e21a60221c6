//! Bounds by hypothesis testing, tighter than Fano's. Take any reference distribution Q. A guess wins on disjoint
//! events E_m with `Σ Q(E_m) ≤ 1`, and Neyman and Pearson bound each `P_m(E_m)` by its `Q(E_m)`.

use super::{Encodings, Prior, centres};
use crate::Result;
use crate::dp::Accountant;
use crate::error::Setting;
use crate::special::{normal_cdf, normal_pdf, normal_quantile};

/// A reference `N(c, σ²I)` with all encodings within `radius` of c: `P(success) ≤ Φ(Φ⁻¹(p*) + radius/σ)`.
///
/// # Guarantee
/// Every guess of every attacker, under the prior; concavity makes p* the worst share of the reference.
pub fn one_centre(prior: &Prior, radius: f64, sigma: f64) -> Result<f64> {
    Setting::Sigma.positive(sigma)?;
    Ok(normal_cdf(normal_quantile(prior.most_likely()) + radius / sigma).clamp(prior.most_likely(), 1.0))
}

/// The same with each candidate's own distance, `max { Σ p_m Φ(Φ⁻¹(q_m) + r_m/σ) : Σ q_m = 1 }`.
///
/// # Guarantee
/// The value returned is the Lagrange dual at a multiplier, which is not below the maximum whatever the multiplier.
pub fn from_distances(p: &[f64], rho: &[f64]) -> f64 {
    one_reference(p, rho).value
}

/// The dual of [`from_distances`].
pub(crate) struct OneReference {
    /// The bound.
    pub value: f64,
    /// λ.
    pub multiplier: f64,
    /// The weight with which each candidate pulls the centre.
    pub pull: Vec<f64>,
}

/// The dual at a multiplier that all but minimises it.
pub(crate) fn one_reference(p: &[f64], rho: &[f64]) -> OneReference {
    // Stationary in q: p φ(z+ρ)/φ(z) = λ, so z = (ln p − ln λ)/ρ − ρ/2, q = Φ(z).
    let z = |p: f64, rho: f64, ln_l: f64| (p.ln() - ln_l) / rho - 0.5 * rho;
    let tiny = |rho: f64| rho < 1e-9;
    let share = |ln_l: f64| -> f64 {
        let of = |p: f64, rho: f64| {
            if tiny(rho) { f64::from(u8::from(p.ln() > ln_l)) } else { normal_cdf(z(p, rho, ln_l)) }
        };
        p.iter().zip(rho).filter(|x| *x.0 > 0.0).map(|(&p, &rho)| of(p, rho)).sum()
    };
    // Σ q falls with λ from M to 0: Newton in ln λ, held inside a bracket.
    let (mut lo, mut hi) = (-1.0, 1.0);
    while share(lo) < 1.0 && lo > -1e6 {
        lo *= 2.0;
    }
    while share(hi) > 1.0 && hi < 1e6 {
        hi *= 2.0;
    }
    let slope = |ln_l: f64| -> f64 {
        let each = p.iter().zip(rho).filter(|x| *x.0 > 0.0 && !tiny(*x.1));
        each.map(|(&p, &rho)| -normal_pdf(z(p, rho, ln_l)) / rho).sum()
    };
    let mut at = 0.5 * (lo + hi);
    for _ in 0..100 {
        let over = share(at) - 1.0;
        if over > 0.0 {
            lo = at
        } else {
            hi = at
        }
        let newton = at - over / slope(at);
        let next = if newton > lo && newton < hi { newton } else { 0.5 * (lo + hi) };
        let step = (next - at).abs();
        at = next;
        // What is left of the value is of second order in the step.
        if step <= 1e-9 * at.abs().max(1.0) {
            break;
        }
    }
    // Whatever the multiplier, the dual value is an upper bound, so it need not be exact.
    let l = at.exp();
    let mut weights = vec![0.0; p.len()];
    let mut value = l;
    for ((&p, &rho), w) in p.iter().zip(rho).zip(&mut weights) {
        if p == 0.0 {
        } else if tiny(rho) {
            value += (p - l).max(0.0);
        } else {
            let z = z(p, rho, at);
            value += (p * normal_cdf(z + rho) - l * normal_cdf(z)).max(0.0);
            *w = p * normal_pdf(z + rho) / rho;
        }
    }
    OneReference { value, multiplier: l, pull: weights }
}

/// The tightest bound that a search over centres finds, several at once where candidates are apart (`centres`). None
/// where the candidates are too many to hold.
///
/// # Guarantee
/// Any centres and multipliers are valid; the search decides how tight the bound is, never whether it holds.
pub fn best_centre(prior: &Prior, encodings: &Encodings, sigma: f64) -> Result<Option<f64>> {
    Setting::Sigma.positive(sigma)?;
    encodings.check(prior)?;
    let least = prior.most_likely();
    if let (Prior::Uniform(m), Encodings::OneHot) = (prior, encodings) {
        // By symmetry the centre is the mean, and all distances are √(1 − 1/M).
        return Ok(Some(one_centre(prior, (1.0 - 1.0 / *m as f64).sqrt(), sigma)?));
    }
    if prior.candidates() > super::optimal::SIMULATED_UP_TO {
        return Ok(None);
    }
    let ball = encodings.ball(prior.candidates() as usize).0;
    Ok(Some(centres::best(&prior.probabilities(), encodings, sigma, &ball).clamp(least, 1.0)))
}

/// `P(success) ≤ 1 − f(p*)` from the trade-off function f of a private mechanism: of the record's presence under
/// add/remove (the reference is the data without it), of two values under replace.
///
/// # Guarantee
/// The certified upper end, so the discretisation is on the safe side.
pub fn from_trade_off(prior: &Prior, accountant: &Accountant) -> Result<f64> {
    Ok(accountant.power_of_presence(prior.most_likely())?.upper.max(prior.most_likely()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_value_for_ten_one_hot_encodings() {
        let prior = Prior::uniform(10).unwrap();
        let bound = best_centre(&prior, &Encodings::OneHot, 1.0).unwrap().unwrap();
        assert!((bound - 0.3696).abs() < 5e-5, "{bound}");
        let many = Prior::uniform(10_000_000_000).unwrap();
        let b = best_centre(&many, &Encodings::OneHot, 0.2).unwrap().unwrap();
        assert!(b >= super::super::optimal::one_hot(10_000_000_000, 0.2).unwrap() && b < 0.3, "{b}");
    }

    #[test]
    fn the_dual_is_the_maximum_found_by_brute_force() {
        let (p, rho) = ([0.6, 0.4], [0.3, 1.2]);
        let best = (1..10_000)
            .map(|i| f64::from(i) / 10_000.0)
            .map(|q| {
                let f = |p: f64, q: f64, r: f64| p * normal_cdf(normal_quantile(q) + r);
                f(p[0], q, rho[0]) + f(p[1], 1.0 - q, rho[1])
            })
            .fold(0.0, f64::max);
        let d = from_distances(&p, &rho);
        assert!(d >= best && d - best < 1e-6, "{d} {best}");
        assert!((from_distances(&[0.7, 0.3], &[0.0, 0.0]) - 0.7).abs() < 1e-9);
    }

    #[test]
    fn a_better_centre_helps_where_encodings_are_uneven() {
        let prior = Prior::from_probabilities(vec![0.45, 0.45, 0.1]).unwrap();
        let e = Encodings::vectors(1, vec![0.0, 0.5, 6.0]).unwrap();
        let ball = one_centre(&prior, e.ball(3).1, 1.0).unwrap();
        let best = best_centre(&prior, &e, 1.0).unwrap().unwrap();
        let seen = super::super::optimal::gaussian_attack(&prior, &e, 1.0, 20_000, 1).unwrap();
        assert!(best < 0.95 * ball && best >= seen.ci_low, "{best} {ball} {seen:?}");
    }
}
