//! The Rényi budget of one record: its own gradient's norm in place of the clipping bound (Feldman and Zrnic 2021).
//!
//! One step of Poisson-sampled Gaussian noise with `ν = ‖ḡ‖/s`, at an integer order α (Mironov, Talwar, Zhang 2019,
//! eq. 6): `ε_α = ln( Σₖ C(α,k) (1−q)^{α−k} qᵏ e^{(k²−k)ν²/2} ) / (α−1)`, adding or removing the record.

use crate::error::{Result, check};

/// Orders that budgets are kept at.
pub const ORDERS: [u32; 16] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 128, 256];

/// `ε_α` of one step; exact.
pub fn sampled_gaussian(q: f64, nu: f64, order: u32) -> Result<f64> {
    check((0.0..=1.0).contains(&q), "the sampling rate q", q, "between 0 and 1")?;
    check(nu >= 0.0 && nu.is_finite(), "the norm of the gradient over the noise", nu, "finite, at least 0")?;
    check(order >= 2, "the order", f64::from(order), "an integer of at least 2")?;
    Ok(step(q, nu * nu, order))
}

fn step(q: f64, nu2: f64, order: u32) -> f64 {
    let alpha = f64::from(order);
    if q == 0.0 {
        return 0.0;
    }
    if q == 1.0 {
        return 0.5 * alpha * nu2;
    }
    // logarithms of the terms; ln C(α, k) grows by ln((α−k+1)/k)
    let (lq, lp) = (q.ln(), (-q).ln_1p());
    let mut choose = 0.0;
    let (mut top, mut sum) = (f64::NEG_INFINITY, 0.0);
    for k in 0..=order {
        let kf = f64::from(k);
        if k > 0 {
            choose += ((alpha - kf + 1.0) / kf).ln();
        }
        let term = choose + (alpha - kf) * lp + kf * lq + 0.5 * (kf * kf - kf) * nu2;
        if term > top {
            sum = sum * (top - term).exp() + 1.0;
            top = term;
        } else {
            sum += (term - top).exp();
        }
    }
    ((top + sum.ln()) / (alpha - 1.0)).max(0.0)
}

/// `ε_α` at every order of [`ORDERS`] for one sampling rate, tabulated in ν². The function is convex in ν² (a
/// logarithm of a sum of exponentials), so linear interpolation errs on the safe side.
#[derive(Debug, Clone)]
pub struct Table {
    q: f64,
    step: f64,
    values: Vec<[f64; ORDERS.len()]>,
}

impl Table {
    /// Tabulates up to `longest`, the largest ν; beyond it the sum itself is used.
    pub fn new(q: f64, longest: f64) -> Result<Self> {
        sampled_gaussian(q, longest, 2)?;
        let points = 16_384;
        // uniform in ν, so that small gradients are resolved
        let step = longest.max(1e-12) / f64::from(points);
        let values = (0..=points).map(|i| at_all(q, (f64::from(i) * step).powi(2))).collect();
        Ok(Self { q, step, values })
    }

    /// The step of ν, and the values at its multiples, row by row.
    pub(crate) fn rows(&self) -> (f64, Vec<f64>) {
        (self.step, self.values.concat())
    }

    /// At least `ε_α` of one step at every order, too large by less than 1 % (stated by the tests).
    pub fn at(&self, nu: f64) -> [f64; ORDERS.len()] {
        let x = nu / self.step;
        let i = x.floor() as usize;
        let (Some(lo), Some(hi)) = (self.values.get(i), self.values.get(i + 1)) else {
            return at_all(self.q, nu * nu);
        };
        let edge = |j: usize| (j as f64 * self.step).powi(2);
        let t = (nu * nu - edge(i)) / (edge(i + 1) - edge(i));
        std::array::from_fn(|j| lo[j] + t * (hi[j] - lo[j]))
    }
}

fn at_all(q: f64, nu2: f64) -> [f64; ORDERS.len()] {
    std::array::from_fn(|j| step(q, nu2, ORDERS[j]))
}

/// The `(ε, δ)` of accumulated `ε_α`, and its order (Canonne, Kamath, Steinke 2020, prop. 12):
/// `ε = ε_α + ln(1 − 1/α) − ln(δα)/(α−1)`, the smallest over the orders.
pub fn epsilon(budgets: &[f64; ORDERS.len()], delta: f64) -> Result<(f64, u32)> {
    check(delta > 0.0 && delta < 1.0, "delta", delta, "between 0 and 1")?;
    let each = ORDERS.iter().zip(budgets).map(|(&order, &rdp)| {
        let a = f64::from(order);
        ((rdp + (-1.0 / a).ln_1p() - (delta * a).ln() / (a - 1.0)).max(0.0), order)
    });
    Ok(each.fold((f64::INFINITY, 0), |best, this| if this.0 < best.0 { this } else { best }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, `E_{y∼N(0,1)} ((1−q) + q e^{νy−ν²/2})^α`, by the trapezoidal rule.
    fn by_quadrature(q: f64, nu: f64, order: u32) -> f64 {
        let h = 1e-3;
        let sum: f64 = (-40_000..=40_000)
            .map(|i| {
                let y = f64::from(i) * h;
                let ratio = (1.0 - q) + q * (nu * y - 0.5 * nu * nu).exp();
                (-0.5 * y * y + f64::from(order) * ratio.ln()).exp()
            })
            .sum();
        (sum * h * 0.398_942_280_401_432_7).ln() / (f64::from(order) - 1.0)
    }

    #[test]
    fn a_step_agrees_with_the_definition() {
        for (q, nu) in [(0.01, 1.0), (0.1, 0.5), (0.5, 2.0), (0.3, 0.1)] {
            for order in [2, 3, 8] {
                let (actual, exact) = (sampled_gaussian(q, nu, order).unwrap(), by_quadrature(q, nu, order));
                assert!((actual / exact - 1.0).abs() < 1e-8, "{q} {nu} {order}: {actual} {exact}");
            }
        }
        assert_eq!(sampled_gaussian(1.0, 2.0, 5).unwrap(), 10.0);
        assert_eq!(sampled_gaussian(0.0, 2.0, 5).unwrap(), 0.0);
        assert!(sampled_gaussian(0.5, f64::NAN, 2).is_err() && sampled_gaussian(0.5, 1.0, 1).is_err());
    }

    #[test]
    fn the_table_is_on_the_safe_side_and_close() {
        for q in [0.01, 0.2] {
            let table = Table::new(q, 2.0).unwrap();
            for i in 1..500 {
                let nu = 0.0047 * f64::from(i);
                for (j, &order) in ORDERS.iter().enumerate() {
                    let (actual, exact) = (table.at(nu)[j], sampled_gaussian(q, nu, order).unwrap());
                    // ln(1 + tiny) is only known to 1e-16 of 1
                    assert!(actual >= exact * (1.0 - 1e-9) - 1e-15, "{q} {nu} {order}: {actual} {exact}");
                    assert!(actual <= exact * 1.01 + 1e-12, "{q} {nu} {order}: {actual} {exact}");
                }
            }
        }
    }

    #[test]
    fn the_conversion_is_the_known_one() {
        // a Gaussian of σ = 1 once: ε_α = α/2; the best order for δ = 1e-5 gives 4.75 (dp_accounting: 4.728 over reals)
        let budgets = std::array::from_fn(|j| 0.5 * f64::from(ORDERS[j]));
        let (epsilon, order) = epsilon(&budgets, 1e-5).unwrap();
        assert!((4.7..4.85).contains(&epsilon), "{epsilon} at {order}");
    }
}
