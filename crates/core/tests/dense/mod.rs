//! The definition, spelled out: every Jacobian as a dense matrix, its norm by a singular value decomposition,
//! the inverse by elimination. Slow, short, and sharing nothing with the library but the numbers that go in.

use faer::Mat;
use leakscope_core::glm::{Family, Parameter, Penalty};
use leakscope_core::rows::InMemory;

/// A model at coefficients `w` and its data; an intercept is the last column of `x` (row-major, n × p).
#[derive(Debug, Clone)]
pub(crate) struct Dense {
    pub(crate) family: Family,
    pub(crate) intercept: bool,
    pub(crate) l2: f64,
    pub(crate) p: usize,
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    /// Empty where all are one.
    pub(crate) weight: Vec<f64>,
    pub(crate) w: Vec<f64>,
}

/// Residual `r`, curvature `a` and `c = ∂²ℓ/∂z∂y` as the table of families gives them.
pub(crate) fn derivatives(family: Family, z: f64, y: f64) -> (f64, f64, f64) {
    match family {
        Family::Linear => (z - y, 1.0, -1.0),
        Family::Logistic => {
            // s(z) − y = (1 − y)s(z) − y s(−z), where nothing cancels for a label of 0 or 1.
            let s = |z: f64| 1.0 / (1.0 + (-z).exp());
            ((1.0 - y) * s(z) - y * s(-z), s(z) * s(-z), -1.0)
        }
        Family::Poisson => (z.exp() - y, z.exp(), -1.0),
        Family::Gamma => (1.0 - y / z.exp(), y / z.exp(), -1.0 / z.exp()),
        Family::Tweedie(power) => {
            let (p, mu) = (power.value(), z.exp());
            let (first, second) = (mu.powf(2.0 - p), y * mu.powf(1.0 - p));
            (first - second, (2.0 - p) * first + (p - 1.0) * second, -mu.powf(1.0 - p))
        }
        Family::SquaredHinge => {
            // The loss of each class, weighed by the label.
            let inside = |margin: f64| if margin < 1.0 { (1.0 - margin, 1.0) } else { (0.0, 0.0) };
            let ((high, of_high), (low, of_low)) = (inside(z), inside(-z));
            (-y * high + (1.0 - y) * low, y * of_high + (1.0 - y) * of_low, -high - low)
        }
        Family::Huber(threshold) => {
            let (r, delta) = (z - y, threshold.value());
            if r.abs() < delta { (r, 1.0, -1.0) } else { (delta * r.signum(), 0.0, 0.0) }
        }
    }
}

/// One member of each family.
pub(crate) fn families() -> [Family; 7] {
    let parameter = |v| Parameter::new(v).unwrap();
    let [tweedie, huber] = [Family::Tweedie(parameter(1.5)), Family::Huber(parameter(0.6))];
    [Family::Linear, Family::Logistic, Family::Poisson, Family::Gamma, tweedie, Family::SquaredHinge, huber]
}

/// Its place among them.
pub(crate) fn place(family: Family) -> u64 {
    families().iter().position(|f| f.name() == family.name()).unwrap() as u64
}

/// A label of record `i` around a predictor, `u` uniform and `e` normal.
pub(crate) fn label(family: Family, i: usize, z: f64, u: f64, e: f64) -> f64 {
    match family {
        Family::Linear => z + 0.5 * e,
        // Every fifth is far out.
        Family::Huber(_) => z + if i.is_multiple_of(5) { 4.0 * e } else { 0.3 * e },
        Family::Logistic | Family::SquaredHinge => f64::from(u8::from((z > 0.0) ^ i.is_multiple_of(4))),
        Family::Poisson => (z.exp() + 2.0 * u).floor(),
        Family::Gamma => (z + 0.4 * e).exp(),
        Family::Tweedie(_) => ((z + 0.4 * e).exp() - 0.6).max(0.0),
    }
}

impl Dense {
    pub(crate) fn n(&self) -> usize {
        self.y.len()
    }

    /// Number of data columns.
    pub(crate) fn d(&self) -> usize {
        self.p - usize::from(self.intercept)
    }

    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.p..(i + 1) * self.p]
    }

    pub(crate) fn omega(&self, i: usize) -> f64 {
        if self.weight.is_empty() { 1.0 } else { self.weight[i] }
    }

    pub(crate) fn penalty(&self) -> Penalty {
        Penalty::new(self.l2, self.intercept)
    }

    pub(crate) fn rows(&self, block_rows: usize) -> InMemory {
        InMemory::from_matrix(&self.x, &self.y, &self.weight, block_rows)
    }

    pub(crate) fn terms(&self, i: usize) -> (f64, f64, f64) {
        let z = self.row(i).iter().zip(&self.w).map(|(x, w)| x * w).sum();
        derivatives(self.family, z, self.y[i])
    }

    /// `H = Σ ωa xxᵀ + nλI`, the penalty on data columns only.
    pub(crate) fn hessian(&self) -> Mat<f64> {
        let mut h = Mat::zeros(self.p, self.p);
        for i in 0..self.n() {
            let (x, (_, a, _)) = (self.row(i), self.terms(i));
            for j in 0..self.p {
                for k in 0..self.p {
                    h[(j, k)] += self.omega(i) * a * x[j] * x[k];
                }
            }
        }
        (0..self.d()).for_each(|j| h[(j, j)] += self.n() as f64 * self.l2);
        h
    }

    /// `Jᵢ = −ωᵢ H⁻¹[aᵢ xᵢwᵀ + rᵢ I, cᵢ xᵢ]`, p × d, or p × (d + 1) with the label; `inverse` is `H⁻¹`.
    pub(crate) fn jacobian(&self, i: usize, label: bool, inverse: &Mat<f64>) -> Mat<f64> {
        let (x, (r, a, c), d) = (self.row(i), self.terms(i), self.d());
        let inner = Mat::from_fn(self.p, d + usize::from(label), |j, k| {
            if k == d { c * x[j] } else { a * x[j] * self.w[k] + if j == k { r } else { 0.0 } }
        });
        let mut jacobian = inverse * inner;
        for k in 0..jacobian.ncols() {
            for j in 0..self.p {
                jacobian[(j, k)] *= -self.omega(i);
            }
        }
        jacobian
    }

    /// `ω‖H⁻¹‖(a‖x‖‖w‖ + |r| + |c|‖x‖)`: what the parts of Jᵢ measure before they cancel.
    pub(crate) fn size(&self, i: usize, label: bool, inverse: &Mat<f64>) -> f64 {
        let (r, a, c) = self.terms(i);
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let x = norm(self.row(i));
        let label = if label { c.abs() * x } else { 0.0 };
        self.omega(i) * spectral_norm(inverse) * (a * x * norm(&self.w) + r.abs() + label)
    }
}

impl Dense {
    /// `Σ ωℓ(wᵀx, y) + (nλ/2)‖w‖²` at w.
    pub(crate) fn objective(&self, w: &[f64]) -> f64 {
        let penalty = 0.5 * self.n() as f64 * self.l2 * w[..self.d()].iter().map(|w| w * w).sum::<f64>();
        let loss = |i: usize| {
            let (z, y): (f64, f64) = (self.row(i).iter().zip(w).map(|(x, w)| x * w).sum(), self.y[i]);
            match self.family {
                Family::Linear => 0.5 * (z - y).powi(2),
                Family::Logistic => (1.0 - y) * softplus(z) + y * softplus(-z),
                Family::Poisson => z.exp() - y * z,
                Family::Gamma => z + y / z.exp(),
                Family::Tweedie(power) => {
                    let p = power.value();
                    z.exp().powf(2.0 - p) / (2.0 - p) - y * z.exp().powf(1.0 - p) / (1.0 - p)
                }
                Family::SquaredHinge => {
                    let half = |margin: f64| 0.5 * (1.0 - margin).max(0.0).powi(2);
                    y * half(z) + (1.0 - y) * half(-z)
                }
                Family::Huber(threshold) => {
                    let (r, delta) = ((z - y).abs(), threshold.value());
                    if r < delta { 0.5 * r * r } else { delta * r - 0.5 * delta * delta }
                }
            }
        };
        penalty + (0..self.n()).map(|i| self.omega(i) * loss(i)).sum::<f64>()
    }

    /// The minimiser by a Newton method that shares nothing with the library: dense solves, a step halved until the
    /// objective falls, until nothing moves any more.
    pub(crate) fn minimiser(&self) -> Vec<f64> {
        let mut at = Self { w: vec![0.0; self.p], ..self.clone() };
        let mut shortest = f64::INFINITY;
        for _ in 0..1000 {
            let mut gradient = vec![0.0; self.p];
            for i in 0..self.n() {
                let (r, _, _) = at.terms(i);
                gradient.iter_mut().zip(self.row(i)).for_each(|(g, x)| *g += self.omega(i) * r * x);
            }
            (0..self.d()).for_each(|j| gradient[j] += self.n() as f64 * self.l2 * at.w[j]);
            let inverse = inverse(&at.hessian()).unwrap();
            let step: Vec<f64> =
                (0..self.p).map(|j| (0..self.p).map(|k| inverse[(j, k)] * gradient[k]).sum()).collect();
            let length = step.iter().map(|s| s * s).sum::<f64>().sqrt();
            let near = length <= 1e-9 * (1.0 + at.w.iter().map(|w| w * w).sum::<f64>().sqrt());
            if near && length >= 0.5 * shortest {
                break;
            }
            shortest = if near { length } else { f64::INFINITY };
            let (mut share, now) = (1.0, at.objective(&at.w));
            let moved = |share: f64| -> Vec<f64> {
                at.w.iter().zip(&step).map(|(w, step)| w - share * step).collect()
            };
            // Near the minimum the decrease drowns in the rounding of the objective.
            let most = now + 1e-12 * (1.0 + now.abs());
            let rises = |share: f64| {
                let there = at.objective(&moved(share));
                there.is_nan() || there > most
            };
            while rises(share) && share > 1e-12 {
                share *= 0.5;
            }
            at.w = moved(share);
        }
        at.w
    }
}

fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

/// `A⁻¹` by elimination with row exchanges; `None` where a pivot vanishes.
pub(crate) fn inverse(a: &Mat<f64>) -> Option<Mat<f64>> {
    let p = a.nrows();
    let mut m =
        Mat::from_fn(p, 2 * p, |i, j| if j < p { a[(i, j)] } else { f64::from(u8::from(j - p == i)) });
    for j in 0..p {
        let pivot = (j..p).max_by(|&i, &k| m[(i, j)].abs().total_cmp(&m[(k, j)].abs()))?;
        if m[(pivot, j)] == 0.0 {
            return None;
        }
        for k in 0..2 * p {
            let (top, swapped) = (m[(j, k)], m[(pivot, k)]);
            (m[(j, k)], m[(pivot, k)]) = (swapped, top);
        }
        let head = m[(j, j)];
        (0..2 * p).for_each(|k| m[(j, k)] /= head);
        for i in (0..p).filter(|&i| i != j) {
            let factor = m[(i, j)];
            for k in 0..2 * p {
                m[(i, k)] -= factor * m[(j, k)];
            }
        }
    }
    Some(Mat::from_fn(p, p, |i, j| m[(i, p + j)]))
}

/// Largest singular value.
pub(crate) fn spectral_norm(a: &Mat<f64>) -> f64 {
    a.singular_values().unwrap().first().copied().unwrap_or(0.0)
}

/// Square of the Frobenius norm.
pub(crate) fn squared(a: &Mat<f64>) -> f64 {
    a.squared_norm_l2()
}

/// Matrices with the same number of rows, side by side.
pub(crate) fn beside(parts: &[Mat<f64>]) -> Mat<f64> {
    let columns: Vec<(usize, usize)> =
        parts.iter().enumerate().flat_map(|(k, m)| (0..m.ncols()).map(move |j| (k, j))).collect();
    Mat::from_fn(parts.first().map_or(0, Mat::nrows), columns.len(), |i, j| {
        let (k, column) = columns[j];
        parts[k][(i, column)]
    })
}

/// The first rows of `basis` (p × m, row-major) as a matrix: one row per data column.
pub(crate) fn basis_matrix(basis: &[f64], d: usize, m: usize) -> Mat<f64> {
    Mat::from_fn(d, m, |i, j| basis[i * m + j])
}

/// An orthonormal basis of the changes of `columns` that sum to zero, as rows of p numbers each would be in
/// `Directions::basis` (p × (m − 1), row-major): the cosines of the discrete cosine transform without the
/// constant one.
pub(crate) fn sum_to_zero(columns: std::ops::Range<usize>, p: usize) -> Vec<f64> {
    let m = columns.len();
    let mut basis = vec![0.0; p * (m - 1)];
    for (i, j) in columns.enumerate() {
        for k in 1..m {
            let angle = std::f64::consts::PI * k as f64 * (i as f64 + 0.5) / m as f64;
            basis[j * (m - 1) + k - 1] = (2.0 / m as f64).sqrt() * angle.cos();
        }
    }
    basis
}

/// Numbers that look drawn and are the same on every machine: SplitMix64 and Box–Muller.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    /// Uniform in (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut h = self.0;
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((h ^ (h >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
