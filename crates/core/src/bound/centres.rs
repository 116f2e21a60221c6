//! The hypothesis test against several references at once.
//!
//! Let `s_m = P_m(E_m)`. Against the reference `N(c_k, σ²I)` Neyman and Pearson ask for at least
//! `Q_k(E_m) ≥ Φ(Φ⁻¹(s_m) − ρ_mk)`, `ρ_mk = ‖e_m − c_k‖/σ`, and the events of one guess are disjoint, so
//!
//! `P(success) ≤ max Σ p_m s_m` where `Σ_m Φ(Φ⁻¹(s_m) − ρ_mk) ≤ 1` for every k.
//!
//! Each constraint is convex in s: a convex programme. What is returned is its Lagrange dual
//! `Σ_k λ_k + Σ_m max_z (p_m Φ(z) − Σ_k λ_k Φ(z − ρ_mk))` at some `λ ≥ 0`, which is not below the maximum whatever λ and
//! whatever the centres: the search decides how tight the bound is, never whether it holds. With one reference it is
//! [`super::testing::from_distances`]; candidates in clusters far apart get one each.

use super::Encodings;
use super::testing::one_reference;
use crate::linalg::{Cholesky, gram_add};
use crate::special::{normal_cdf, normal_pdf};

/// Several references are tried for up to this many candidates.
const SEVERAL_UP_TO: usize = 64;
/// In units of σ: candidates that are all closer than this are served by one reference.
const APART: f64 = 1.0;
/// Most likely candidates from which a search for a centre starts.
const STARTS: usize = 8;
/// In units of σ: two centres closer than this are one.
const SAME: f64 = 0.05;
/// Rounds over multipliers and centres, and the relative gain below which they end.
const ROUNDS: usize = 12;
const GAIN: f64 = 1e-4;
/// A bound above this is not looked at further.
const CERTAIN: f64 = 1.0 - 1e-9;
/// Newton steps a round.
const NEWTON_STEPS: usize = 30;
/// The least multiplier, so that its logarithm is a number; and one that is out of use.
const LEAST: f64 = 1e-12;
const UNUSED: f64 = 1e-6;

/// The tightest bound on the success of a guess that the search finds; `ball` is the centre of a ball around all.
pub(crate) fn best(p: &[f64], encodings: &Encodings, sigma: f64, ball: &[f64]) -> f64 {
    let search = Search { p, encodings, sigma };
    let mut minima = vec![search.descend(encodings.mean(p)), search.descend(ball.to_vec())];
    let mut likely: Vec<usize> = (0..p.len()).filter(|&m| p[m] > 0.0).collect();
    // Of two candidates the middle is the best centre there is, and its bound is the optimal attack.
    let few = (3..=SEVERAL_UP_TO).contains(&likely.len()) && !matches!(encodings, Encodings::OneHot);
    if few && likely.iter().any(|&m| encodings.between(likely[0], m) > APART * sigma) {
        likely.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
        let alone = |m: usize| (0..p.len()).map(|l| f64::from(u8::from(l == m))).collect::<Vec<_>>();
        minima.extend(likely.iter().take(STARTS).map(|&m| search.alone(encodings.mean(&alone(m)))));
        minima.sort_by(|a, b| a.value.total_cmp(&b.value));
        minima.insert(0, search.descend(minima[0].at.clone()));
        // Where a reference in the place of each candidate gives nothing, all are further apart than noise reaches.
        if minima.iter().any(|c| c.value < CERTAIN) {
            return search.several(minima);
        }
    }
    minima.iter().map(|c| c.value).fold(1.0, f64::min)
}

struct Search<'a> {
    p: &'a [f64],
    encodings: &'a Encodings,
    sigma: f64,
}

/// A centre with the bound that it gives alone.
struct Centre {
    at: Vec<f64>,
    value: f64,
    multiplier: f64,
}

impl Search<'_> {
    fn rho(&self, c: &[f64]) -> Vec<f64> {
        self.encodings.distances(c).into_iter().map(|d| d / self.sigma).collect()
    }

    fn alone(&self, c: Vec<f64>) -> Centre {
        let now = one_reference(self.p, &self.rho(&c));
        Centre { at: c, value: now.value, multiplier: now.multiplier }
    }

    /// Downhill from a centre: each step goes to the mean weighted by each candidate's marginal gain, where the
    /// gradient is zero.
    fn descend(&self, from: Vec<f64>) -> Centre {
        let mut c = from;
        let mut now = one_reference(self.p, &self.rho(&c));
        let mut stride = 1.0;
        for _ in 0..60 {
            if now.pull.iter().sum::<f64>() <= 0.0 || stride < 1e-3 {
                break;
            }
            let next = toward(&c, &self.encodings.mean(&now.pull), stride);
            let then = one_reference(self.p, &self.rho(&next));
            if then.value < now.value {
                let gain = now.value - then.value;
                (c, now) = (next, then);
                if gain < 1e-7 * now.value {
                    break;
                }
            } else {
                stride *= 0.5;
            }
        }
        Centre { at: c, value: now.value, multiplier: now.multiplier }
    }

    /// All together: by turns the multipliers, then each centre a step downhill.
    fn several(&self, minima: Vec<Centre>) -> f64 {
        let mut best = minima.iter().map(|c| c.value).fold(1.0, f64::min);
        let mut dual = Dual { p: self.p, rho: vec![], lambda: vec![] };
        let mut centres: Vec<Vec<f64>> = vec![];
        for c in minima {
            let apart = |d: &Vec<f64>| {
                let square: f64 = d.iter().zip(&c.at).map(|(a, b)| (a - b) * (a - b)).sum();
                square.sqrt() > SAME * self.sigma
            };
            if centres.iter().all(apart) {
                dual.rho.push(self.rho(&c.at));
                dual.lambda.push(c.multiplier.clamp(LEAST, 1.0));
                centres.push(c.at);
            }
        }
        let share = 1.0 / centres.len() as f64;
        dual.lambda.iter_mut().for_each(|l| *l *= share);
        for _ in 0..ROUNDS {
            dual.minimise();
            // Who is not asked after the first round is not asked again.
            for k in (0..centres.len()).rev() {
                if dual.lambda[k] < UNUSED && centres.len() > 1 {
                    dual.rho.swap_remove(k);
                    dual.lambda.swap_remove(k);
                    centres.swap_remove(k);
                }
            }
            for (k, c) in centres.iter_mut().enumerate() {
                self.step(&mut dual, k, c);
            }
            let value = dual.value();
            let gain = best - value;
            best = best.min(value);
            if gain < GAIN * best {
                break;
            }
        }
        best
    }

    /// Moves a centre toward the mean weighted by its pulls, as far as that helps.
    fn step(&self, dual: &mut Dual, k: usize, c: &mut Vec<f64>) {
        let z = dual.guesses();
        let pull: Vec<f64> = z
            .iter()
            .zip(&dual.rho[k])
            .map(|(z, rho)| if *rho > 1e-9 && z.is_finite() { normal_pdf(z - rho) / rho } else { 0.0 })
            .collect();
        if pull.iter().sum::<f64>() <= 0.0 {
            return;
        }
        let (target, before) = (self.encodings.mean(&pull), dual.value());
        for stride in [1.0, 0.25, 0.05] {
            let next = toward(c, &target, stride);
            let old = std::mem::replace(&mut dual.rho[k], self.rho(&next));
            if dual.value() < before {
                *c = next;
                return;
            }
            dual.rho[k] = old;
        }
    }
}

fn toward(c: &[f64], target: &[f64], stride: f64) -> Vec<f64> {
    c.iter().zip(target).map(|(c, t)| c + stride * (t - c)).collect()
}

/// The dual of the programme at multipliers λ of its references.
struct Dual<'a> {
    p: &'a [f64],
    /// Of each reference: the distances of all candidates, in σ.
    rho: Vec<Vec<f64>>,
    lambda: Vec<f64>,
}

impl Dual<'_> {
    /// The z that maximises `p Φ(z) − Σ_k λ_k Φ(z − ρ_k)`, the root of `Σ_k λ_k exp(ρ_k z − ρ_k²/2) = p`.
    /// With it what is left of `|1 − Σ_k …/p|`: the objective is concave in s = Φ(z) with that slope (times p), so p
    /// times it bounds what a better z could add.
    fn guess(&self, m: usize) -> (f64, f64) {
        let p = self.p[m];
        if p == 0.0 {
            return (f64::NEG_INFINITY, 0.0);
        }
        let used = || (0..self.lambda.len()).filter(|&k| self.lambda[k] > 0.0).map(|k| (k, self.rho[k][m]));
        let at = |k: usize, rho: f64, z: f64| (self.lambda[k] / p).ln() + rho * (z - 0.5 * rho);
        // References in the candidate's own place take the same whatever z.
        let fixed: f64 = used().filter(|x| x.1 <= 1e-9).map(|(k, _)| self.lambda[k] / p).sum();
        if fixed >= 1.0 {
            return (f64::NEG_INFINITY, 0.0);
        }
        // The logarithm of the sum is convex and rises with z: Newton from where one term alone suffices never
        // overshoots.
        let alone = |(k, rho): (usize, f64)| 0.5 * rho - (self.lambda[k] / p).ln() / rho;
        let mut z = used().filter(|x| x.1 > 1e-9).map(alone).fold(f64::INFINITY, f64::min);
        if z == f64::INFINITY {
            return (z, 0.0);
        }
        let at = |z: f64| {
            let each = used().filter(|x| x.1 > 1e-9).map(|(k, rho)| (rho, at(k, rho, z).exp()));
            each.fold((fixed, 0.0), |(sum, slope), (rho, term)| (sum + term, slope + rho * term))
        };
        for _ in 0..50 {
            let (sum, slope) = at(z);
            let step = sum.ln() * sum / slope;
            if step.is_nan() {
                break;
            }
            z -= step;
            if step.abs() <= 1e-10 * z.abs().max(1.0) {
                break;
            }
        }
        (z, (1.0 - at(z).0).abs())
    }

    fn guesses(&self) -> Vec<f64> {
        (0..self.p.len()).map(|m| self.guess(m).0).collect()
    }

    fn value(&self) -> f64 {
        let gain = |(m, &p): (usize, &f64)| {
            let (z, slack) = self.guess(m);
            let paid = |(l, rho): (&f64, &Vec<f64>)| if *l > 0.0 { l * normal_cdf(z - rho[m]) } else { 0.0 };
            let gain = p * normal_cdf(z) - self.lambda.iter().zip(&self.rho).map(paid).sum::<f64>();
            // Never more than p; what is no number is taken for all of it.
            (gain.max(0.0) + p * slack).min(p)
        };
        self.lambda.iter().sum::<f64>() + self.p.iter().enumerate().map(gain).sum::<f64>()
    }

    /// How the value changes with each multiplier: what its reference has left of its one.
    fn slopes(&self, z: &[f64]) -> Vec<f64> {
        let left = |rho: &Vec<f64>| 1.0 - z.iter().zip(rho).map(|(z, rho)| normal_cdf(z - rho)).sum::<f64>();
        self.rho.iter().map(left).collect()
    }

    /// `Σ_m φ(z_m)/D_m (λ∘e_m)(λ∘e_m)ᵀ` with `e_mk = exp(ρ_mk z_m − ρ_mk²/2)`, `D_m = Σ_k λ_k ρ_mk e_mk`: the second
    /// derivatives in λ, scaled to `ln λ`.
    fn curvature(&self, z: &[f64]) -> Vec<f64> {
        let k = self.lambda.len();
        let (mut e, mut weights) = (vec![], vec![]);
        for (m, &z) in z.iter().enumerate().filter(|x| x.1.is_finite()) {
            let gain = |k: usize| self.lambda[k] * (self.rho[k][m] * (z - 0.5 * self.rho[k][m])).exp();
            let d: f64 = (0..k).map(|k| self.rho[k][m] * gain(k)).sum();
            if d > 0.0 {
                e.extend((0..k).map(gain));
                weights.push(normal_pdf(z) / d);
            }
        }
        let mut h = vec![0.0; k * k];
        gram_add(&e, Some(&weights), k, &mut h);
        h
    }

    /// The multipliers at which the dual, smooth and convex in them, is least: Newton steps in `ln λ`, on whose scale
    /// the guesses move, halved until they help.
    fn minimise(&mut self) {
        let n = self.lambda.len();
        let mut value = self.value();
        for _ in 0..NEWTON_STEPS {
            let z = self.guesses();
            let slopes: Vec<f64> = self.slopes(&z).iter().zip(&self.lambda).map(|(s, l)| s * l).collect();
            let mut h = self.curvature(&z);
            // In ln λ the slopes are second derivatives too; taken positive they keep the step downhill, and the rest
            // is for references that are in line with each other.
            (0..n).for_each(|k| h[k * n + k] += slopes[k].abs() + 1e-12);
            let down: Vec<f64> = slopes.iter().map(|s| -s).collect();
            let Ok(step) = Cholesky::new(&h, n).map(|h| h.solve(&down)) else { return };
            let old = self.lambda.clone();
            let mut stride = 1.0;
            let next = loop {
                for ((l, old), step) in self.lambda.iter_mut().zip(&old).zip(&step) {
                    *l = (old * (stride * step).clamp(-5.0, 5.0).exp()).clamp(LEAST, 1.0);
                }
                let next = self.value();
                if next < value || stride < 1e-3 {
                    break next;
                }
                stride *= 0.3;
            };
            if next >= value {
                self.lambda = old;
                return;
            }
            let gain = value - next;
            value = next;
            if gain < 1e-6 * value {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{best_centre, from_distances};
    use super::super::{Prior, optimal};
    use super::*;
    use crate::special::normal_quantile;

    #[test]
    fn the_dual_is_the_maximum_found_by_brute_force() {
        // Any numbers will do for distances: here each reference keeps two of three candidates together.
        let p = [0.36, 0.34, 0.3];
        let rho = [vec![0.2, 0.3, 3.0], vec![2.5, 0.1, 0.2], vec![0.3, 2.8, 0.4]];
        let grid: Vec<f64> = (1..400).map(|i| f64::from(i) / 400.0).collect();
        let spent = |s: f64, rho: f64| normal_cdf(normal_quantile(s) - rho);
        let of = |m: usize| rho.each_ref().map(|r| grid.iter().map(|&s| spent(s, r[m])).collect::<Vec<_>>());
        let (first, second) = (of(0), of(1));
        let mut primal = 0.0_f64;
        for i in 0..grid.len() {
            for j in 0..grid.len() {
                // The largest s_3 that all references allow beside s_1 and s_2.
                let left = [0, 1, 2].map(|k| 1.0 - first[k][i] - second[k][j]);
                if left.iter().all(|l| *l > 0.0) {
                    let most = |k: usize| normal_cdf(normal_quantile(left[k]) + rho[k][2]);
                    let s = most(0).min(most(1)).min(most(2));
                    primal = primal.max(p[0] * grid[i] + p[1] * grid[j] + p[2] * s);
                }
            }
        }
        let mut dual = Dual { p: &p, rho: rho.to_vec(), lambda: vec![0.1; 3] };
        dual.minimise();
        let alone = rho.iter().map(|r| from_distances(&p, r)).fold(1.0, f64::min);
        let value = dual.value();
        // The grid is 1/400 wide, and the maximum lies on an edge.
        assert!(value >= primal - 1e-9 && value < primal + 2.5e-3, "{value} {primal}");
        assert!(value < alone - 0.05, "{value} {alone}");
    }

    #[test]
    fn any_multipliers_are_a_bound() {
        let prior = Prior::from_probabilities(vec![0.4, 0.35, 0.25]).unwrap();
        let e = Encodings::vectors(2, vec![0.0, 0.0, 1.5, 0.2, -0.3, 2.0]).unwrap();
        let seen = optimal::gaussian_attack(&prior, &e, 1.0, 40_000, 3).unwrap();
        let p = prior.probabilities();
        let rho: Vec<Vec<f64>> =
            [[0.3, 0.4], [1.0, -2.0], [0.0, 2.0]].iter().map(|c| e.distances(c)).collect();
        for lambda in [[0.1, 0.1, 0.1], [0.5, 0.0, 0.0], [0.0, 0.0, 0.2], [0.0, 0.9, 0.01]] {
            let value = Dual { p: &p, rho: rho.clone(), lambda: lambda.to_vec() }.value();
            assert!(value >= seen.ci_low, "{value} {seen:?}");
        }
        let one = Dual { p: &p, rho: rho[..1].to_vec(), lambda: vec![one_reference(&p, &rho[0]).multiplier] };
        assert!((one.value() - from_distances(&p, &rho[0])).abs() < 1e-12);
    }

    #[test]
    fn clusters_far_apart_have_a_reference_each() {
        // Two pairs, one σ apart within and a hundred between: the pair is known, and within it a coin is biased.
        let prior = Prior::from_probabilities(vec![0.4, 0.2, 0.3, 0.1]).unwrap();
        let e = Encodings::vectors(1, vec![0.0, 1.0, 100.0, 101.0]).unwrap();
        let best = best_centre(&prior, &e, 1.0).unwrap().unwrap();
        let of_pair = |p: [f64; 2]| from_distances(&p, &[0.5, 0.5]);
        let apart = of_pair([0.4, 0.2]) + of_pair([0.3, 0.1]);
        let seen = optimal::gaussian_attack(&prior, &e, 1.0, 20_000, 1).unwrap();
        assert!(best <= apart + 1e-3 && best >= seen.ci_low, "{best} {apart} {seen:?}");
        // All in one place but for one candidate: its probability is given away, no more.
        let e = Encodings::vectors(1, vec![0.0, 0.0, 0.0, 50.0]).unwrap();
        assert!((best_centre(&prior, &e, 1.0).unwrap().unwrap() - 0.5).abs() < 1e-6);
    }
}
