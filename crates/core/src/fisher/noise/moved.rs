//! Sums over the rows that a change of the minimiser moves: of third order where the curvature varies.

use crate::Result;
use crate::glm::Fit;
use crate::linalg::{axpy, dot, gram_add_lower, matmul_transposed, mirror_lower};
use crate::rows::{Block, Rows};

/// Rows whose products of pairs are formed together.
const TOGETHER: usize = 128;

/// Sums over the rows that a change of w moves.
pub(super) struct Sums {
    pub(super) n: u64,
    /// `Σω²ar x`, `Σω²(a² + ra')xxᵀ`, `Σω²a²xxᵀ`.
    pub(super) s: Vec<f64>,
    pub(super) slope: Vec<f64>,
    pub(super) curved: Vec<f64>,
    /// `Σωa'`, `Σa'`, `Σω²aa'`, `Σω²cc'` times `x ⊗ (xxᵀ)`, p × p(p+1)/2 each; empty where the curvature, or c, is constant.
    pub(super) cubes: [Vec<f64>; 4],
}

impl Sums {
    fn new(fit: &Fit) -> Self {
        let (p, family) = (fit.w.len(), fit.family);
        let cube = |constant: bool| vec![0.0; if constant { 0 } else { p * p * (p + 1) / 2 }];
        let of_a = || cube(family.constant_curvature());
        Self {
            n: 0,
            s: vec![0.0; p],
            slope: vec![0.0; p * p],
            curved: vec![0.0; p * p],
            cubes: [of_a(), of_a(), of_a(), cube(family.constant_coupling())],
        }
    }

    pub(super) fn of(rows: &dyn Rows, fit: &Fit) -> Result<Self> {
        let p = fit.w.len();
        let mut total = Self::new(fit);
        rows.fold(
            || (Self::new(fit), Scratch::default()),
            |(sums, scratch), block| {
                sums.add(fit, block, scratch);
                Ok(())
            },
            |(sums, _)| {
                total.n += sums.n;
                axpy(1.0, &sums.s, &mut total.s);
                axpy(1.0, &sums.slope, &mut total.slope);
                axpy(1.0, &sums.curved, &mut total.curved);
                total.cubes.iter_mut().zip(&sums.cubes).for_each(|(t, s)| axpy(1.0, s, t));
                Ok(())
            },
        )?;
        mirror_lower(&mut total.slope, p);
        mirror_lower(&mut total.curved, p);
        Ok(total)
    }

    fn add(&mut self, fit: &Fit, block: &Block, scratch: &mut Scratch) {
        let p = block.width;
        scratch.weights.iter_mut().for_each(Vec::clear);
        for i in 0..block.len() {
            let (x, omega) = (block.row(i), block.weight_of(i));
            let z = dot(x, &fit.w);
            let t = fit.family.terms(z, block.y[i]);
            let ((a1, c1), omega2) = (fit.family.third(z, t), omega * omega);
            axpy(omega2 * t.a * t.r, x, &mut self.s);
            let squares = [omega2 * (t.a * t.a + t.r * a1), omega2 * t.a * t.a];
            let cubes = [omega * a1, a1, omega2 * t.a * a1, omega2 * t.c * c1];
            let values = squares.into_iter().chain(cubes);
            scratch.weights.iter_mut().zip(values).for_each(|(w, v)| w.push(v));
        }
        self.n += block.len() as u64;
        let [slope, curved, cubes @ ..] = &scratch.weights;
        gram_add_lower(&block.x, Some(slope), p, &mut scratch.gram, &mut self.slope);
        gram_add_lower(&block.x, Some(curved), p, &mut scratch.gram, &mut self.curved);
        if self.cubes[0].is_empty() {
            return;
        }
        let width = p * (p + 1) / 2;
        for first in (0..block.len()).step_by(TOGETHER) {
            let last = (first + TOGETHER).min(block.len());
            scratch.pairs.clear();
            for i in first..last {
                let x = block.row(i);
                (0..p).for_each(|j| scratch.pairs.extend(x[..=j].iter().map(|v| v * x[j])));
            }
            for (weights, cube) in cubes.iter().zip(&mut self.cubes).filter(|(_, cube)| !cube.is_empty()) {
                scratch.weighted.clear();
                for (i, weight) in weights[first..last].iter().enumerate() {
                    scratch.weighted.extend(block.row(first + i).iter().map(|v| v * weight));
                }
                scratch.part.resize(p * width, 0.0);
                matmul_transposed(
                    &scratch.weighted,
                    &scratch.pairs,
                    (p, last - first, width),
                    &mut scratch.part,
                );
                axpy(1.0, &scratch.part, cube);
            }
        }
    }
}

#[derive(Default)]
struct Scratch {
    weights: [Vec<f64>; 6],
    gram: Vec<f64>,
    pairs: Vec<f64>,
    weighted: Vec<f64>,
    part: Vec<f64>,
}

/// Slice `l` of a cube as a symmetric matrix.
pub(super) fn slice(cube: &[f64], l: usize, p: usize) -> Vec<f64> {
    let mut out = vec![0.0; p * p];
    if cube.is_empty() {
        return out;
    }
    let width = p * (p + 1) / 2;
    let mut next = cube[l * width..(l + 1) * width].iter();
    for j in 0..p {
        for i in 0..=j {
            let value = next.next().copied().unwrap_or(0.0);
            out[j * p + i] = value;
            out[i * p + j] = value;
        }
    }
    out
}
