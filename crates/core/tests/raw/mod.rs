//! A table as it was read, in units of its own: two numbers far from zero, then indicators, then more numbers. Standardised
//! by its own data, as the encoder of tables does it.

use crate::dense::{Draws, label};
use leakscope_core::glm::{Family, Fit, Penalty, fit};
use leakscope_core::rows::InMemory;
use leakscope_core::units::{FitInUnits, Scaling, Units};

#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) family: Family,
    pub(crate) l2: f64,
    /// Data columns.
    pub(crate) d: usize,
    /// n × d, row-major.
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) weight: Vec<f64>,
    /// Whether scales are public numbers.
    pub(crate) public_scaling: bool,
}

impl Raw {
    /// Column 1 is an indicator, where there is one; the others are numbers.
    pub(crate) fn draw(
        seed: u64,
        family: Family,
        (n, d): (usize, usize),
        l2: f64,
        weighted: bool,
        public_scaling: bool,
    ) -> Self {
        let mut draws = Draws(seed);
        let (mut x, mut y, mut weight) = (vec![], vec![], vec![]);
        for i in 0..n {
            let mut z = 0.2;
            for j in 0..d {
                let v = draws.normal();
                let level = f64::from(u8::from(v > 0.3));
                x.push(match j {
                    0 => 47.0 + 13.0 * v,
                    1 => level,
                    _ => 0.02 * v - 0.3,
                });
                z += [0.6, -0.5, 0.4][j % 3] * if j == 1 { level } else { v };
            }
            y.push(match family {
                Family::Linear => z + 0.5 * draws.normal(),
                Family::Logistic => f64::from(u8::from((z > 0.2) ^ (i % 4 == 0))),
                Family::Poisson => ((0.7 * z).exp() + 1.5 * draws.uniform()).floor(),
                Family::Gamma | Family::Tweedie(_) | Family::SquaredHinge | Family::Huber(_) => {
                    let (u, e) = (draws.uniform(), draws.normal());
                    label(family, i, 0.7 * z, u, e)
                }
            });
            weight.push(0.4 + 1.2 * draws.uniform());
        }
        Self { family, l2, d, x, y, weight: if weighted { weight } else { vec![] }, public_scaling }
    }

    pub(crate) fn n(&self) -> usize {
        self.y.len()
    }

    /// How each column is scaled: indicators as they are, numbers by mean and population standard deviation.
    pub(crate) fn units_of(&self) -> Vec<Scaling> {
        let n = self.n() as f64;
        (0..self.d)
            .map(|j| {
                let column = || (0..self.n()).map(|i| self.x[i * self.d + j]);
                let mean = column().sum::<f64>() / n;
                let deviation = (column().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
                match (j, self.public_scaling) {
                    (1, _) => Scaling::NONE,
                    (0, true) => Scaling::Given { centre: 50.0, scale: 11.0 },
                    (_, true) => Scaling::Given { centre: -0.25, scale: 0.03 },
                    (_, false) => Scaling::Own { mean, deviation },
                }
            })
            .collect()
    }

    pub(crate) fn units(&self) -> Units {
        Units::rounded(self.units_of(), true).unwrap()
    }

    /// Standardised, with an intercept.
    pub(crate) fn encoded(&self) -> InMemory {
        let scaling = self.units_of();
        let mut x = vec![];
        for row in self.x.chunks_exact(self.d) {
            x.extend(row.iter().zip(&scaling).map(|(x, s)| match *s {
                Scaling::Given { centre, scale } => (x - centre) / scale,
                Scaling::Own { mean, deviation } => (x - mean) / deviation,
            }));
            x.push(1.0);
        }
        InMemory::from_matrix(&x, &self.y, &self.weight, 11)
    }

    /// The model of the encoded table.
    pub(crate) fn fit(&self) -> Fit {
        fit(&self.encoded(), self.family, Penalty::new(self.l2, true)).unwrap()
    }

    /// The model in its own public units, or in those of another table.
    pub(crate) fn model(&self, other: Option<&Units>) -> FitInUnits {
        match other {
            None => self.units().fit(&self.fit()).unwrap(),
            Some(units) => {
                Units::new(self.units_of(), units.public().to_vec(), true).unwrap().fit(&self.fit()).unwrap()
            }
        }
    }
}
