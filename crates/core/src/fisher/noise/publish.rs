//! A shape with noise of its own, from second moments of the columns.
//!
//! **Not fit for a release.** What is said below holds for the shape and for the coefficients, given the scale. The scale is not
//! counted: it is the smallest on its grid that meets the targets under the shape that was drawn, so over several draws it is a
//! dithered threshold on the binding record, and sixty releases left a year of that record's age. `release` takes public
//! shapes alone, until the scale is public, noisy or counted.
//!
//! The covariance of shaped noise must be public, since whoever uses the coefficients wants their standard errors, and since
//! the coefficients lie on a lattice that it determines ([`Noise::release`]). But the shape of [`design`](super::design) is a
//! function of all records, and somebody who knows all but one computes it for every value that the last one may have.
//! Rounding does not hide that: `p(p+1)/2` entries of eight binary places cut the range of a value into pieces, and say with
//! certainty in which of them it lies. So the shape is a release too. What it is made of is the matrix of second moments, in
//! public units and with a ridge, which moves less with one record than the shape itself and does not depend on labels,
//!
//! ```text
//! L = log(XᵀX/n + εI),   L' = L + τE,   A' = exp(L')
//! ```
//!
//! E symmetric, isotropic in the norm `‖·‖_F`, exactly discrete Gaussian on a grid. All else is computed from A': with `H' = aA' + λP` and
//! `K' = ρ ΣBBᵀ + A'` (B the directions of the targets, which are public; a = 1, for logistic models ¼), `M' = H'⁻¹K'H'⁻¹`, and Σ' is
//! the closed form for A' and M'. ε and ρ are powers of four, τ and the scale of Σ' powers of `2^¼`: chosen from the data, locally
//! constant for one L', which is not enough (above).
//!
//! **What it gives away.** L' is an isotropic Gaussian release of L: its information about a direction of a record is
//! `‖∂L‖²/τ²`. With s the eigenvalues of `Aε = XᵀX/n + εI` and `Z = Aε^{−½} ∂A Aε^{−½}`,
//!
//! ```text
//! ∂Lᵢⱼ = Zᵢⱼ √(sᵢsⱼ)(ln sᵢ − ln sⱼ)/(sᵢ − sⱼ),   √(ab) ≤ (a − b)/(ln a − ln b),   so ‖∂L‖ ≤ ‖Z‖
//! ∂A = (exᵀ + xeᵀ)/n for a direction e = Bu:   ‖Z‖² = (2/n²) (‖ẽ‖²‖x̃‖² + (ẽ·x̃)²),   ṽ = Aε^{−½}v
//! ```
//!
//! which over all directions of a target is at most `(2/n²)(‖x̃‖² λ₁(B̃ᵀB̃) + ‖B̃ᵀx̃‖²)`: one number a record, and τ is the smallest on
//! its grid at which no record exceeds its share β of `η²`. Given L' the covariance is a constant, and what the coefficients tell
//! is `JᵀΣ'⁻¹J` alone: they get the share `1 − β`.
//!
//! **No digit escapes**, but for the scale. L' are whole multiples of a public step, each with positive probability whatever L is; Σ' and its
//! factor F are functions of L' and of public numbers; coefficients are `F g k'`, k' whole numbers with independent discrete
//! Gaussian noise. All else is a function of the two vectors of whole numbers.

use super::worst::worst;
use super::{Design, Factor, Group, Protected, Request, Shape, Target, design, design_with_shape};
use crate::glm::{Family, Fit, Penalty};
use crate::linalg::{
    Cholesky, axpy, dot, gram_add_lower, largest_eigenvalue, matmul, matmul_by_transposed, matmul_transposed,
    mirror_lower, symmetric_eigen,
};
use crate::random::{Bits, Seeded};
use crate::release::Grid;
use crate::rows::Rows;
use crate::units::public_sigma;
use crate::{Error, Result};
use std::f64::consts::SQRT_2;

/// Ridges that are tried, as powers of four.
const RIDGES: std::ops::RangeInclusive<i32> = -6..=0;
/// Draws of which the cost of a ridge is foretold. Everybody knows their seed: the choice is a function of the data alone.
const DRAWS: u64 = 2;
/// Binary places that the published factor keeps below its diagonal.
const PLACES: u32 = 16;
/// The least noise on the logarithm, and the most: beyond it nothing is left of the shape.
const LEAST_TAU: f64 = 1.0 / 4096.0;
/// See [`LEAST_TAU`].
const MOST_TAU: f64 = 16.0;
/// The largest power of four that ρ may be, and the smallest.
const MOST_RATIO: f64 = 12.0;
/// Ratio of the largest to the smallest variance that a factor can carry.
const CONDITION: f64 = 1e12;

/// A shape that was published, and the noise at its scale.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedShape {
    /// Noise on the logarithm of the second moments: a power of `2^¼`.
    pub tau: f64,
    /// ε, a power of four.
    pub ridge: f64,
    /// ρ, a power of four.
    pub ratio: f64,
    /// Share of `η²` that is set aside for the shape: at least what it gives away.
    pub budget: f64,
    /// Largest information of the published shape about a whole record (its label tells it nothing), in `η²`.
    pub of_records: f64,
    /// The noise: meets every target, with the budget taken off. Its `covariance_information` is the budget.
    pub design: Design,
}

/// The noise of `request`, with a shape that may be published; `bits` are what protects it.
///
/// # Guarantee
/// For every record and target, what the published shape and coefficients with its noise tell together has Fisher
/// information at most `η²`: `budget·η²` for the shape, the rest for the coefficients.
///
/// # Errors
/// As for [`design`]; [`Error::Unreachable`] where the shape would be so noisy within its budget that isotropic noise costs no
/// more; [`Error::NotApplicable`] for isotropic noise, which has no shape to publish.
pub fn design_to_publish(
    rows: &dyn Rows,
    fit: &Fit,
    request: &Request,
    bits: &mut impl Bits,
) -> Result<PublishedShape> {
    if request.shape == Shape::Isotropic {
        return Err(Error::NotApplicable {
            what: "a shape to publish",
            setting: "isotropic noise",
            advice: "its factor is public as it is",
        });
    }
    let budget = request.shape_budget;
    if !(budget > 0.0 && budget < 1.0) {
        let expected = "a share above 0 and below 1: what is left of the target is for the coefficients";
        return Err(Error::OutOfRange { what: "the budget for the shape", value: budget, expected });
    }
    // Checks the request too.
    let isotropic = design(rows, fit, &Request { shape: Shape::Isotropic, ..request.clone() })?;
    let moments = Moments::of(rows, fit, request)?;
    let best = moments.cheapest(rows, fit, request, &isotropic.cost_matrix)?;
    let Some(best) = best.filter(|best| best.cost / (1.0 - budget) < isotropic.exact_cost) else {
        return Err(Error::Unreachable {
            what: "what isotropic noise costs, with a shape from these rows that is published within its budget",
            target: isotropic.exact_cost,
            unknown: "noise on the shape",
            lowest: isotropic.exact_cost,
            highest: f64::INFINITY,
            advice: "take isotropic noise, a shape from a public table, a larger budget for the shape or a larger target",
        });
    };
    let noisy = best.logarithm.with_noise(best.tau, bits)?;
    let factor = moments.factor(&noisy, fit)?;
    let mut rest = request.clone();
    rest.targets.iter_mut().for_each(|t| t.eta *= (1.0 - budget).sqrt());
    let found = design_with_shape(rows, fit, &rest, &factor)?;
    // Certificate and isotropic noise are about the whole target.
    let lower = (1.0 - budget) * found.lower_bound_on_cost;
    let design = Design {
        cost_isotropic: isotropic.exact_cost,
        gain: isotropic.exact_cost / found.exact_cost,
        lower_bound_on_cost: lower,
        gap: (found.exact_cost / lower - 1.0).max(0.0),
        covariance_information: budget,
        largest_eta: found.largest_eta * (1.0 - budget).sqrt(),
        ..found
    };
    let whole = Target { protected: Protected::Record { label: false }, eta: 1.0 };
    let whole = [Group::new(&whole, fit, 1)?];
    let of_records = moments.moved(rows, &best.logarithm, &whole)? / (best.tau * best.tau);
    Ok(PublishedShape { tau: best.tau, ridge: best.ridge, ratio: moments.ratio, budget, of_records, design })
}

/// Second moments of the columns, and what a shape is made of beside them.
struct Moments {
    n: f64,
    p: usize,
    /// `XᵀX/n`.
    a: Vec<f64>,
    /// `ΣBBᵀ` over targets.
    directions: Vec<f64>,
    /// ρ.
    ratio: f64,
    groups: Vec<Group>,
}

/// The logarithm of the second moments with a ridge, and their inverse root.
struct Logarithm {
    p: usize,
    l: Vec<f64>,
    /// `Aε^{−½}`.
    root: Vec<f64>,
}

/// A ridge with the noise that it needs, and what noise from its shape costs.
struct Candidate {
    ridge: f64,
    tau: f64,
    logarithm: Logarithm,
    cost: f64,
}

impl Moments {
    fn of(rows: &dyn Rows, fit: &Fit, request: &Request) -> Result<Self> {
        let p = fit.w.len();
        let groups: Vec<Group> =
            request.targets.iter().map(|t| Group::new(t, fit, request.releases)).collect::<Result<_>>()?;
        let (mut a, mut sums) = (vec![0.0; p * p], [0.0; 4]);
        rows.fold(
            || (vec![0.0; p * p], vec![], [0.0; 4]),
            |(a, scratch, sums), block| {
                gram_add_lower(&block.x, None, p, scratch, a);
                for i in 0..block.len() {
                    let t = fit.family.terms(dot(block.row(i), &fit.w), block.y[i]);
                    let omega2 = block.weight_of(i).powi(2);
                    let parts = [1.0, omega2 * t.r * t.r, omega2 * t.a * t.a, omega2];
                    sums.iter_mut().zip(parts).for_each(|(s, v)| *s += v);
                }
                Ok(())
            },
            |(part, _, s)| {
                axpy(1.0, &part, &mut a);
                sums.iter_mut().zip(s).for_each(|(t, s)| *t += s);
                Ok(())
            },
        )?;
        let [n, residuals, curvatures, weights] = sums;
        if n == 0.0 {
            return Err(Error::Empty);
        }
        mirror_lower(&mut a, p);
        a.iter_mut().for_each(|v| *v /= n);
        let mut directions = vec![0.0; p * p];
        let mut along = 0.0;
        for group in &groups {
            (0..p * p).for_each(|ij| directions[ij] += dot(group.row(ij / p), group.row(ij % p)));
            along += curvatures * dot(&group.w, &group.w) + weights * group.label * group.label;
        }
        let power = (residuals / along).log(4.0).round().clamp(-MOST_RATIO, MOST_RATIO);
        let ratio = if power.is_nan() { 1.0 } else { 4_f64.powf(power) };
        Ok(Self { n, p, a, directions, ratio, groups })
    }

    /// The ridge whose shape costs least with its noise. Noise that differs from the one that is published foretells the cost, so
    /// that the choice says nothing about that. None where every shape would be all noise.
    fn cheapest(
        &self,
        rows: &dyn Rows,
        fit: &Fit,
        request: &Request,
        cost: &[f64],
    ) -> Result<Option<Candidate>> {
        let mut best: Option<Candidate> = None;
        for power in RIDGES {
            let ridge = 4_f64.powi(power);
            let logarithm = self.logarithm(ridge)?;
            let most = self.moved(rows, &logarithm, &self.groups)?;
            let tau = public_sigma((most / request.shape_budget).sqrt().max(LEAST_TAU))?;
            if tau > MOST_TAU {
                continue;
            }
            let mut foretold = 0.0_f64;
            for seed in 0..DRAWS {
                let noisy = logarithm.with_noise(tau, &mut Seeded::new(seed))?;
                let noise = self.factor(&noisy, fit)?.noise()?;
                let pair = (request.targets.as_slice(), self.groups.as_slice());
                let top = worst(rows, fit, pair, noise.whitener(), 1)?.first().map_or(0.0, |w| w.value);
                foretold = foretold.max(top * top * noise.cost(cost));
            }
            if best.as_ref().is_none_or(|b| foretold < b.cost) {
                best = Some(Candidate { ridge, tau, logarithm, cost: foretold });
            }
        }
        Ok(best)
    }

    fn logarithm(&self, ridge: f64) -> Result<Logarithm> {
        let p = self.p;
        let raised: Vec<f64> =
            self.a.iter().enumerate().map(|(ij, a)| if ij / p == ij % p { a + ridge } else { *a }).collect();
        let (values, vectors) = symmetric_eigen(&raised, p)?;
        // The ridge is below every eigenvalue but for rounding.
        let values: Vec<f64> = values.iter().map(|v| v.max(ridge)).collect();
        Ok(Logarithm {
            p,
            l: assembled(&vectors, values.iter().map(|v| v.ln()), p),
            root: assembled(&vectors, values.iter().map(|v| v.sqrt().recip()), p),
        })
    }

    /// At least the largest `‖∂L‖²` over records and unit directions of the groups.
    fn moved(&self, rows: &dyn Rows, logarithm: &Logarithm, groups: &[Group]) -> Result<f64> {
        let p = self.p;
        let mut parts = vec![];
        for group in groups.iter().filter(|g| g.count > 0) {
            let k = group.count;
            let (mut white, mut gram) = (vec![0.0; p * k], vec![0.0; k * k]);
            matmul(&logarithm.root, &group.basis, (p, p, k), &mut white);
            matmul_transposed(&white, &white, (k, p, k), &mut gram);
            parts.push((largest_eigenvalue(&gram, k)?, white, k));
        }
        let mut most = 0.0_f64;
        rows.fold(
            || (0.0_f64, vec![], vec![]),
            |(most, white, along): &mut (f64, Vec<f64>, Vec<f64>), block| {
                white.resize(block.len() * p, 0.0);
                matmul_by_transposed(&block.x, &logarithm.root, (block.len(), p, p), white);
                for (top, directions, k) in &parts {
                    along.resize(block.len() * k, 0.0);
                    matmul(white, directions, (block.len(), p, *k), along);
                    for (x, v) in white.chunks_exact(p.max(1)).zip(along.chunks_exact(*k)) {
                        *most = most.max(dot(x, x) * top + dot(v, v));
                    }
                }
                Ok(())
            },
            |(part, _, _)| {
                most = most.max(part);
                Ok(())
            },
        )?;
        // Rounding must not make it too small.
        Ok(2.0 * most / (self.n * self.n) * (1.0 + 1e-9))
    }

    /// The factor of the closed form for second moments `exp(l)`, on its public grid, scale one: nothing here is private
    /// but `l`, which has its noise.
    fn factor(&self, l: &[f64], fit: &Fit) -> Result<Factor> {
        let p = self.p;
        let (values, vectors) = symmetric_eigen(l, p)?;
        let top = values.iter().copied().fold(f64::MIN, f64::max);
        let values: Vec<f64> = values.iter().map(|v| v.max(top - CONDITION.ln() / 2.0).exp()).collect();
        let a = assembled(&vectors, values.iter().copied(), p);
        let root = assembled(&vectors, values.iter().map(|v| v.sqrt()), p);
        let inverse_root = assembled(&vectors, values.iter().map(|v| v.sqrt().recip()), p);
        let curvature = match fit.family {
            Family::Linear | Family::Poisson => 1.0,
            Family::Logistic => 0.25,
        };
        let Penalty { l2, .. } = fit.penalty;
        let d = fit.penalty.data_width(p);
        let h: Vec<f64> = (0..p * p)
            .map(|ij| curvature * a[ij] + if ij / p == ij % p && ij / p < d { l2 } else { 0.0 })
            .collect();
        let inverse = Cholesky::new(&h, p)?.inverse();
        let k: Vec<f64> = a.iter().zip(&self.directions).map(|(a, b)| self.ratio * b + a).collect();
        let m = congruent(&inverse, &k, p);
        let (values, vectors) = symmetric_eigen(&congruent(&root, &m, p), p)?;
        let top = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let middle = assembled(&vectors, values.iter().map(|v| v.max(top / CONDITION).sqrt()), p);
        let mut lower = Cholesky::new(&congruent(&inverse_root, &middle, p), p)?.lower();
        let mean_log = (0..p).map(|i| lower[i * p + i].ln()).sum::<f64>() / p as f64;
        lower.iter_mut().for_each(|v| *v *= (-mean_log).exp());
        Factor::rounded(&lower, p, PLACES)
    }
}

impl Logarithm {
    /// `L + τE`, exactly discrete: entries off the diagonal count twice in the norm, so they get noise of `τ/√2`.
    fn with_noise(&self, tau: f64, bits: &mut impl Bits) -> Result<Vec<f64>> {
        let p = self.p;
        let mut coordinates = Vec::with_capacity(p * (p + 1) / 2);
        for i in 0..p {
            coordinates.extend(self.l[i * p..i * p + i].iter().map(|v| SQRT_2 * v));
            coordinates.push(self.l[i * p + i]);
        }
        let coordinates = Grid::new(tau)?.release(&coordinates, bits)?;
        let (mut l, mut next) = (vec![0.0; p * p], coordinates.iter());
        for i in 0..p {
            for j in 0..=i {
                let value = next.next().copied().unwrap_or_default();
                l[i * p + j] = if i == j { value } else { value / SQRT_2 };
            }
        }
        mirror_lower(&mut l, p);
        Ok(l)
    }
}

/// `Q diag(values) Qᵀ`.
fn assembled(vectors: &[f64], values: impl Iterator<Item = f64>, p: usize) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let scaled: Vec<f64> = vectors.iter().enumerate().map(|(ij, q)| q * values[ij % p]).collect();
    let mut out = vec![0.0; p * p];
    matmul_by_transposed(&scaled, vectors, (p, p, p), &mut out);
    mirror_lower(&mut out, p);
    out
}

/// `R M R` for a symmetric R.
fn congruent(r: &[f64], m: &[f64], p: usize) -> Vec<f64> {
    let (mut half, mut out) = (vec![0.0; p * p], vec![0.0; p * p]);
    matmul(r, m, (p, p, p), &mut half);
    matmul_by_transposed(&half, r, (p, p, p), &mut out);
    mirror_lower(&mut out, p);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glm;
    use crate::rows::InMemory;

    fn table(seed: u64, n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut random = Seeded::new(seed);
        let (mut x, mut y) = (vec![], vec![]);
        for _ in 0..n {
            let v = random.normals(4);
            let rare = f64::from(u8::from(random.uniform() < 0.1));
            x.extend([v[0], 0.8 * v[0] + 0.3 * v[1], rare, 1.0]);
            y.push(v[0] - 0.5 * v[1] + rare + 0.4 * v[2]);
        }
        (x, y)
    }

    /// The count of what L moves is never below finite differences of L over all directions, and not far above.
    #[test]
    fn second_moments_move_no_more_than_is_counted() {
        let p = 4;
        let (x, y) = table(3, 40);
        let targets = vec![Target { protected: Protected::Record { label: true }, eta: 1.0 }];
        let at = |x: &[f64]| {
            let rows = InMemory::from_matrix(x, &y, &[], 7);
            let fit = glm::fit(&rows, Family::Linear, Penalty { l2: 0.02, intercept: true }).unwrap();
            let moments = Moments::of(&rows, &fit, &Request::new(targets.clone(), Shape::Shaped)).unwrap();
            (rows, moments)
        };
        let (rows, moments) = at(&x);
        for ridge in [1e-3, 0.1] {
            let counted = moments.moved(&rows, &moments.logarithm(ridge).unwrap(), &moments.groups).unwrap();
            let (mut most, h) = (0.0_f64, 1e-5);
            for i in 0..40 {
                let changes: Vec<Vec<f64>> = (0..p - 1)
                    .map(|j| {
                        let side = |h: f64| {
                            let mut moved = x.clone();
                            moved[i * p + j] += h;
                            at(&moved).1.logarithm(ridge).unwrap().l
                        };
                        side(h).iter().zip(&side(-h)).map(|(u, d)| (u - d) / (2.0 * h)).collect()
                    })
                    .collect();
                let m = p - 1;
                let gram: Vec<f64> = (0..m * m).map(|ab| dot(&changes[ab / m], &changes[ab % m])).collect();
                most = most.max(largest_eigenvalue(&gram, m).unwrap());
            }
            assert!(most <= counted && most > 0.3 * counted, "ε = {ridge}: {most:e}, counted {counted:e}");
        }
    }

    #[test]
    fn noise_on_the_logarithm_is_isotropic_in_its_norm() {
        let logarithm = Logarithm { p: 3, l: vec![0.0; 9], root: vec![0.0; 9] };
        let (mut bits, tau, draws) = (Seeded::new(1), 0.25, 4000);
        let (mut squares, mut diagonal) = (0.0, 0.0);
        for _ in 0..draws {
            let e = logarithm.with_noise(tau, &mut bits).unwrap();
            assert!(e[1] == e[3] && e[2] == e[6] && e[5] == e[7]);
            squares += dot(&e, &e);
            diagonal += e[0] * e[0];
        }
        // Six coordinates of variance τ²; standard errors √(2/6/4000) and √(2/4000).
        let each = squares / f64::from(draws) / (6.0 * tau * tau);
        assert!((each - 1.0).abs() < 0.04, "{each}");
        let first = diagonal / f64::from(draws) / (tau * tau);
        assert!((first - 1.0).abs() < 0.1, "{first}");
    }

    /// Without noise and ridge the shape is the closed form of a linear model but for sums that are taken to be their
    /// expectations.
    #[test]
    fn the_shape_from_second_moments_is_nearly_the_closed_form() {
        let (x, y) = table(5, 3000);
        let rows = InMemory::from_matrix(&x, &y, &[], 500);
        let fit = glm::fit(&rows, Family::Linear, Penalty { l2: 0.01, intercept: true }).unwrap();
        let request = Request::new(
            vec![Target { protected: Protected::Record { label: true }, eta: 1.0 }],
            Shape::Shaped,
        );
        let moments = Moments::of(&rows, &fit, &request).unwrap();
        let factor = moments.factor(&moments.logarithm(1e-9).unwrap().l, &fit).unwrap();
        let (own, public) = (
            design(&rows, &fit, &request).unwrap(),
            design_with_shape(&rows, &fit, &request, &factor).unwrap(),
        );
        let ratio = public.exact_cost / own.exact_cost;
        assert!((0.8..1.3).contains(&ratio), "{ratio}");
    }
}
