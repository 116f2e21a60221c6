//! True against false positives of a score.

use crate::error::{Error, Result, check_finite};

/// The scores of members and of others, each descending.
#[derive(Debug, Clone, PartialEq)]
pub struct Roc {
    members: Vec<f64>,
    others: Vec<f64>,
}

/// A threshold and what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operating {
    /// Records whose score is above it are called members.
    pub threshold: f64,
    /// Members called so.
    pub true_positives: usize,
    /// Others called so.
    pub false_positives: usize,
}

impl Roc {
    /// From scores, larger for likelier members.
    pub fn new(members: &[f64], others: &[f64]) -> Result<Self> {
        if members.is_empty() || others.is_empty() {
            return Err(Error::Empty);
        }
        check_finite("the scores of members", members)?;
        check_finite("the scores of others", others)?;
        let sorted = |scores: &[f64]| {
            let mut all = scores.to_vec();
            all.sort_by(|a, b| b.total_cmp(a));
            all
        };
        Ok(Self { members: sorted(members), others: sorted(others) })
    }

    /// The lowest threshold at which no larger share of others than `rate` is called a member.
    pub fn at(&self, rate: f64) -> Operating {
        let allowed = (rate * self.others.len() as f64 + 1e-9).floor().max(0.0) as usize;
        // above the first score that would be one too many
        let threshold = self.others.get(allowed).copied().unwrap_or(f64::NEG_INFINITY);
        let above = |scores: &[f64]| scores.iter().take_while(|s| **s > threshold).count();
        Operating { threshold, true_positives: above(&self.members), false_positives: above(&self.others) }
    }

    /// Probability that a member scores above another, ties half: the area under the curve.
    pub fn area(&self) -> f64 {
        // both descending: of every member, the others below it and those equal to it
        let (mut not_below, mut above, mut sum) = (0, 0, 0.0);
        let n = self.others.len();
        for m in &self.members {
            while above < n && self.others[above] > *m {
                above += 1;
            }
            not_below = not_below.max(above);
            while not_below < n && self.others[not_below] >= *m {
                not_below += 1;
            }
            sum += (n - not_below) as f64 + 0.5 * (not_below - above) as f64;
        }
        sum / (n as f64 * self.members.len() as f64)
    }

    /// Members and others.
    pub fn counts(&self) -> [usize; 2] {
        [self.members.len(), self.others.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Purpose};

    /// Against the definitions, ties among the scores.
    #[test]
    fn rates_and_area_are_those_of_the_definition() {
        let mut rng = Generator::new(2, Purpose::Other, 0);
        let mut draw = |n: usize, shift: f64| -> Vec<f64> {
            (0..n).map(|_| ((rng.normal() + shift) * 4.0).round() / 4.0).collect()
        };
        let (members, others) = (draw(80, 0.7), draw(120, 0.0));
        let roc = Roc::new(&members, &others).unwrap();
        let mut sum = 0.0;
        for m in &members {
            for o in &others {
                sum += if m > o {
                    1.0
                } else if m == o {
                    0.5
                } else {
                    0.0
                };
            }
        }
        assert!((roc.area() - sum / 9600.0).abs() < 1e-12);
        for rate in [0.0, 0.01, 0.1, 0.5, 1.0] {
            let at = roc.at(rate);
            let above = |s: &[f64]| s.iter().filter(|s| **s > at.threshold).count();
            assert_eq!((above(&members), above(&others)), (at.true_positives, at.false_positives));
            assert!(at.false_positives as f64 <= rate * 120.0 + 1e-6);
        }
        assert_eq!(roc.at(1.0).true_positives, 80);
        assert!(Roc::new(&[], &others).is_err() && Roc::new(&members, &[f64::NAN]).is_err());
    }
}
