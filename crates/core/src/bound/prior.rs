//! The secret: how likely each value is, and what the mechanism adds its noise to.

use crate::dp::in_range;
use crate::error::Setting;
use crate::linalg::{axpy, dot, norm};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// Probabilities of the M values of a secret. A uniform prior is kept as the number M alone, so M may be 10¹⁰.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Prior {
    /// All of M values alike. Made by [`Prior::uniform`].
    Uniform(u64),
    /// One probability each. Made by [`Prior::from_probabilities`] or [`Prior::counted`].
    Given(Vec<f64>),
}

impl Prior {
    /// M values, all alike.
    pub fn uniform(candidates: u64) -> Result<Self> {
        Setting::Candidates.in_range(candidates as f64, candidates >= 2, "at least 2")?;
        Ok(Self::Uniform(candidates))
    }

    /// These probabilities, which must sum to one (to 1e-6; they are then rescaled).
    pub fn from_probabilities(p: Vec<f64>) -> Result<Self> {
        Setting::Candidates.in_range(p.len() as f64, p.len() >= 2, "at least 2")?;
        for &x in &p {
            in_range("prior probability", x, x.is_finite() && (0.0..=1.0).contains(&x), "between 0 and 1")?;
        }
        let sum: f64 = p.iter().sum();
        in_range("sum of the prior", sum, (sum - 1.0).abs() <= 1e-6, "1")?;
        let positive = p.iter().filter(|&&x| x > 0.0).count();
        in_range("values with positive probability", positive as f64, positive >= 2, "at least 2")?;
        Ok(Self::Given(p.into_iter().map(|x| x / sum).collect()))
    }

    /// The empirical distribution of counts.
    pub fn counted(counts: &[u64]) -> Result<Self> {
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return Err(Error::Empty);
        }
        Self::from_probabilities(counts.iter().map(|&c| c as f64 / total as f64).collect())
    }

    /// Number of values M, impossible ones included.
    pub fn candidates(&self) -> u64 {
        match self {
            Self::Uniform(m) => *m,
            Self::Given(p) => p.len() as u64,
        }
    }

    /// Number of values that can occur, which is what Fano's inequality counts.
    pub(crate) fn possible(&self) -> f64 {
        match self {
            Self::Uniform(m) => *m as f64,
            Self::Given(p) => p.iter().filter(|&&x| x > 0.0).count() as f64,
        }
    }

    /// `p* = max p`: success of a guess without looking.
    pub fn most_likely(&self) -> f64 {
        match self {
            Self::Uniform(m) => 1.0 / *m as f64,
            Self::Given(p) => p.iter().copied().fold(0.0, f64::max),
        }
    }

    /// `(success − p*)/(1 − p*)`, Guo eq. 1.
    pub fn advantage(&self, success: f64) -> f64 {
        let p = self.most_likely();
        ((success - p) / (1.0 - p)).clamp(0.0, 1.0)
    }

    /// Entropy minus `ln M`, which is not positive and exactly 0 of a uniform prior; `alpha` 1 is Shannon's,
    /// other orders Rényi's (Guo eq. 14).
    pub(crate) fn entropy_deficit(&self, alpha: f64) -> f64 {
        let Self::Given(p) = self else { return 0.0 };
        let ln_m = self.possible().ln();
        let positive = p.iter().copied().filter(|&x| x > 0.0);
        let deficit = if alpha == 1.0 {
            positive.map(|x| -x * (x.ln() + ln_m)).sum()
        } else {
            let terms = positive.map(|x| alpha * x.ln());
            crate::special::ln_sum_exp(terms) / (1.0 - alpha) - ln_m
        };
        f64::min(deficit, 0.0)
    }

    /// Entropy in nats.
    pub fn entropy(&self) -> f64 {
        self.possible().ln() + self.entropy_deficit(1.0)
    }

    /// All probabilities, one by one; only for priors whose candidates can be held in memory.
    pub(crate) fn probabilities(&self) -> Vec<f64> {
        match self {
            Self::Uniform(m) => vec![1.0 / *m as f64; *m as usize],
            Self::Given(p) => p.clone(),
        }
    }

    /// Sum of a function of each probability; a uniform prior needs one evaluation.
    pub(crate) fn sum(&self, f: impl Fn(f64) -> f64) -> f64 {
        match self {
            Self::Uniform(m) => *m as f64 * f(1.0 / *m as f64),
            Self::Given(p) => p.iter().map(|&x| f(x)).sum(),
        }
    }
}

/// What the Gaussian mechanism adds its noise to, one vector per candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Encodings {
    /// The unit vectors; any two are √2 apart.
    OneHot,
    /// Row-major, `candidates × width`. Made by [`Encodings::vectors`].
    Vectors {
        /// Dimension of each.
        width: usize,
        /// The entries.
        values: Vec<f64>,
    },
}

/// Pairs of candidates are looked at one by one up to this many candidates.
pub(crate) const PAIRWISE_UP_TO: usize = 2_000;

impl Encodings {
    /// One vector of `width` numbers per candidate.
    pub fn vectors(width: usize, values: Vec<f64>) -> Result<Self> {
        in_range("width of the encodings", width as f64, width >= 1, "at least 1")?;
        if !values.len().is_multiple_of(width) {
            let expected = values.len().div_ceil(width) * width;
            return Err(Error::Shape { subject: "encodings", actual: values.len(), expected });
        }
        match values.iter().find(|x| !x.is_finite()) {
            Some(&value) => {
                Err(Error::OutOfRange { subject: "encoding", value, expected: "a finite number" })
            }
            None => Ok(Self::Vectors { width, values }),
        }
    }

    /// M values evenly spaced from 0 to 1: a number that is released in steps.
    pub fn line(candidates: u64) -> Result<Self> {
        let most = super::optimal::SIMULATED_UP_TO;
        Setting::Candidates.in_range(
            candidates as f64,
            (2..=most).contains(&candidates),
            "at least 2, at most 1e6",
        )?;
        let last = (candidates - 1) as f64;
        Self::vectors(1, (0..candidates).map(|m| m as f64 / last).collect())
    }

    /// The same candidates in at most M − 1 dimensions: coordinates in an orthonormal basis of their differences from
    /// the first, by modified Gram–Schmidt. Distances, which are all that any bound looks at, stay as they are.
    pub fn compact(width: usize, values: &[f64]) -> Result<Self> {
        let full = Self::vectors(width, values.to_vec())?;
        let Self::Vectors { values, .. } = &full else { return Ok(full) };
        let Some(first) = values.get(..width) else { return Ok(full) };
        let mut basis: Vec<Vec<f64>> = vec![];
        let mut rows: Vec<Vec<f64>> = vec![];
        for e in values.chunks_exact(width) {
            let mut rest: Vec<f64> = e.iter().zip(first).map(|(e, f)| e - f).collect();
            let size = norm(&rest);
            let mut row = vec![0.0; basis.len()];
            // Twice is enough (Kahan): the second round removes what rounding left of the first.
            for _ in 0..2 {
                for (b, x) in basis.iter().zip(&mut row) {
                    let c = dot(b, &rest);
                    *x += c;
                    axpy(-c, b, &mut rest);
                }
            }
            let left = norm(&rest);
            if left > 1e-15 * size {
                row.push(left);
                basis.push(rest.iter().map(|v| v / left).collect());
            }
            rows.push(row);
        }
        let k = basis.len().max(1);
        let mut out = Vec::with_capacity(rows.len() * k);
        for mut row in rows {
            row.resize(k, 0.0);
            out.extend(row);
        }
        Self::vectors(k, out)
    }

    pub(crate) fn check(&self, prior: &Prior) -> Result<()> {
        if let Self::Vectors { width, values } = self {
            let (actual, expected) = (values.len() / width, prior.candidates() as usize);
            if actual != expected {
                return Err(Error::Shape { subject: "encodings", actual, expected });
            }
        }
        Ok(())
    }

    /// `Σ w_m e_m / Σ w_m`.
    pub(crate) fn mean(&self, w: &[f64]) -> Vec<f64> {
        let total: f64 = w.iter().sum();
        match self {
            Self::OneHot => w.iter().map(|x| x / total).collect(),
            Self::Vectors { width, values } => {
                let mut c = vec![0.0; *width];
                for (e, w) in values.chunks_exact(*width).zip(w) {
                    c.iter_mut().zip(e).for_each(|(c, e)| *c += w / total * e);
                }
                c
            }
        }
    }

    /// Distances `‖e_m − c‖` of all candidates.
    pub(crate) fn distances(&self, c: &[f64]) -> Vec<f64> {
        match self {
            Self::OneHot => {
                let square: f64 = c.iter().map(|x| x * x).sum();
                c.iter().map(|x| ((1.0 - x) * (1.0 - x) + (square - x * x)).max(0.0).sqrt()).collect()
            }
            Self::Vectors { width, values } => values.chunks_exact(*width).map(|e| distance(e, c)).collect(),
        }
    }

    /// Distance of two candidates.
    pub(crate) fn between(&self, m: usize, l: usize) -> f64 {
        match self {
            Self::OneHot => {
                if m == l {
                    0.0
                } else {
                    std::f64::consts::SQRT_2
                }
            }
            Self::Vectors { width, values } => {
                distance(&values[m * width..(m + 1) * width], &values[l * width..(l + 1) * width])
            }
        }
    }

    /// The centre and radius of a small ball around all candidates (Bădoiu & Clarkson's iteration): at most one
    /// per cent larger than the smallest, and any ball will do.
    pub(crate) fn ball(&self, candidates: usize) -> (Vec<f64>, f64) {
        let mut c = self.mean(&vec![1.0; candidates]);
        let far = |c: &[f64]| {
            let d = self.distances(c);
            d.into_iter().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
        };
        let (mut best, (_, mut radius)) = (c.clone(), far(&c));
        if matches!(self, Self::OneHot) {
            return (best, radius);
        }
        if candidates <= 3 {
            let c = self.mean(&self.triangle(candidates));
            let radius = far(&c).1;
            return (c, radius);
        }
        let rounds = (40_000_000 / (candidates * c.len()).max(1)).clamp(20, 2_000);
        for i in 1..rounds {
            let (m, r) = far(&c);
            if r < radius {
                (best, radius) = (c.clone(), r);
            }
            let share = 1.0 / (i + 1) as f64;
            let mut w = vec![0.0; candidates];
            w[m] = 1.0;
            let e = self.mean(&w);
            c.iter_mut().zip(e).for_each(|(c, e)| *c += share * (e - *c));
        }
        (best, radius)
    }

    /// Weights of up to three candidates whose mean is the centre of their smallest ball: the circumcentre's
    /// barycentric weights `a²(b² + c² − a²)`, or the middle of the longest side where an angle is not acute.
    fn triangle(&self, candidates: usize) -> Vec<f64> {
        if candidates < 3 {
            return vec![1.0; candidates];
        }
        let square = |m: usize| self.between((m + 1) % 3, (m + 2) % 3).powi(2);
        let s = [square(0), square(1), square(2)];
        let w: Vec<f64> = (0..3).map(|m| s[m] * (s[(m + 1) % 3] + s[(m + 2) % 3] - s[m])).collect();
        match w.iter().position(|w| *w <= 0.0) {
            None => w,
            Some(_) if s == [0.0; 3] => vec![1.0; 3],
            Some(_) => {
                let longest = (0..3).max_by(|&a, &b| s[a].total_cmp(&s[b])).unwrap_or(0);
                (0..3).map(|m| f64::from(u8::from(m != longest))).collect()
            }
        }
    }

    /// The largest distance of two candidates, Δ; twice the radius of the ball where pairs are too many.
    pub fn diameter(&self, candidates: u64) -> f64 {
        match self {
            Self::OneHot => std::f64::consts::SQRT_2,
            Self::Vectors { .. } if candidates as usize > PAIRWISE_UP_TO => {
                2.0 * self.ball(candidates as usize).1
            }
            Self::Vectors { .. } => {
                let m = candidates as usize;
                (0..m)
                    .flat_map(|i| (0..i).map(move |j| (i, j)))
                    .map(|(i, j)| self.between(i, j))
                    .fold(0.0, f64::max)
            }
        }
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_priors_are_errors() {
        assert!(
            Prior::uniform(1).is_err()
                && Prior::from_probabilities(vec![1.0]).is_err()
                && Prior::from_probabilities(vec![]).is_err()
        );
        assert!(
            Prior::from_probabilities(vec![0.5, 0.4]).is_err()
                && Prior::from_probabilities(vec![1.5, -0.5]).is_err()
        );
        assert!(
            Prior::from_probabilities(vec![f64::NAN, 0.5]).is_err()
                && Prior::from_probabilities(vec![1.0, 0.0]).is_err()
        );
        assert!(Prior::counted(&[0, 0]).is_err());
        assert_eq!(Prior::counted(&[1, 3]).unwrap(), Prior::Given(vec![0.25, 0.75]));
    }

    #[test]
    fn entropies_follow_their_definitions() {
        let p = Prior::from_probabilities(vec![0.5, 0.25, 0.25, 0.0]).unwrap();
        assert!((p.entropy() - 1.5 * 2.0_f64.ln()).abs() < 1e-15);
        assert!((p.entropy_deficit(2.0) + 3.0_f64.ln() + (0.375_f64).ln()).abs() < 1e-14);
        assert_eq!(Prior::uniform(10_000_000_000).unwrap().entropy_deficit(3.0), 0.0);
        assert!((p.advantage(0.75) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn few_dimensions_keep_every_distance_and_balls_of_three_are_the_smallest() {
        let mut x = 1_u64;
        let mut next = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        for m in [2_usize, 3, 5] {
            for _ in 0..200 {
                let values: Vec<f64> = (0..m * 7).map(|_| next()).collect();
                let (full, small) =
                    (Encodings::vectors(7, values.clone()).unwrap(), Encodings::compact(7, &values).unwrap());
                assert!(matches!(small, Encodings::Vectors { width, .. } if width < m));
                for (i, j) in (0..m * m).map(|k| (k / m, k % m)) {
                    assert!((full.between(i, j) - small.between(i, j)).abs() < 1e-14);
                }
                let (c, r) = small.ball(m);
                assert!(
                    small.distances(&c).iter().all(|&d| d <= r)
                        && r <= full.diameter(m as u64) / 3_f64.sqrt() * 1.2
                );
                if m == 3 {
                    // No step away from the centre makes the largest distance smaller.
                    for step in
                        [[1e-3, 0.0], [-1e-3, 0.0], [0.0, 1e-3], [0.0, -1e-3], [1e-3, 1e-3], [-1e-3, 1e-3]]
                    {
                        let moved: Vec<f64> = c.iter().zip(step).map(|(c, s)| c + s).collect();
                        assert!(small.distances(&moved).into_iter().fold(0.0, f64::max) >= r - 1e-12);
                    }
                }
            }
        }
        let same = Encodings::compact(3, &[1.0; 9]).unwrap();
        assert_eq!((same.diameter(3), same.ball(3).1), (0.0, 0.0));
    }

    #[test]
    fn the_ball_holds_everyone_and_is_small() {
        let e = Encodings::vectors(2, vec![0.0, 0.0, 4.0, 0.0, 2.0, 0.1]).unwrap();
        let (c, r) = e.ball(3);
        assert!(e.distances(&c).iter().all(|&d| d <= r) && r < 2.02, "{c:?} {r}");
        assert_eq!(e.diameter(3), 4.0);
        assert!(Encodings::vectors(2, vec![1.0]).is_err() && Encodings::vectors(1, vec![f64::NAN]).is_err());
    }
}
