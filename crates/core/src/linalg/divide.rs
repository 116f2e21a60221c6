//! Eigenvectors of a symmetric tridiagonal matrix by divide and conquer.
//!
//! Without the pair beside the diagonal in its middle, T is two matrices and `ρuuᵀ`. In the eigenbasis of the two this is `D + ρzzᵀ`, whose
//! eigenvalues are the roots of `f(λ) = 1/ρ + Σ zⱼ²/(dⱼ − λ)`, one between each pair of neighbours in D. A z that is next to nothing, or
//! two d that are next to equal, have an eigenvector already. The z of which the roots that were found are exact ones (Löwner's
//! formula; Gu and Eisenstat 1995) gives vectors that are orthogonal however close roots are. Every root and every vector is the work
//! of one thread, so that results do not depend on how many there are.

use super::{View, failed, product};
use crate::Result;
use crate::vector::dispatch;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd_scratch, tridiagonal_self_adjoint_evd};
use faer::{Mat, Par};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

/// Up to this size the two halves are not worth their merging.
const LEAF: usize = 100;
/// Pieces of products.
const PIECES: usize = 16;

/// Eigenvalues, smallest first, and their vectors as rows.
pub(super) struct Eigen {
    pub(super) values: Vec<f64>,
    pub(super) vectors: Vec<f64>,
}

/// Of the tridiagonal matrix with this diagonal and these numbers beside it.
pub(super) fn tridiagonal(mut diagonal: Vec<f64>, beside: &[f64]) -> Result<Eigen> {
    let n = diagonal.len();
    if n <= LEAF {
        return leaf(&diagonal, beside);
    }
    let half = n / 2;
    let middle = beside[half - 1];
    diagonal[half - 1] -= middle.abs();
    diagonal[half] -= middle.abs();
    let other = diagonal.split_off(half);
    let (first, second) =
        rayon::join(|| tridiagonal(diagonal, &beside[..half - 1]), || tridiagonal(other, &beside[half..]));
    let (first, second) = (first?, second?);
    // u is one at the end of the first half and ±1 at the start of the second; z = u in the eigenbasis, of norm one.
    let root = std::f64::consts::FRAC_1_SQRT_2;
    let ends = first.vectors.chunks_exact(half).map(|row| root * row[half - 1]);
    let starts = second.vectors.chunks_exact(n - half).map(|row| root * middle.signum() * row[0]);
    let z: Vec<f64> = ends.chain(starts).collect();
    merged(&first, &second, 2.0 * middle.abs(), z)
}

fn leaf(diagonal: &[f64], beside: &[f64]) -> Result<Eigen> {
    let n = diagonal.len();
    let (mut d, mut b, mut values) = (Diag::zeros(n), Diag::zeros(n), Diag::zeros(n));
    (0..n).for_each(|i| d[i] = diagonal[i]);
    beside.iter().enumerate().for_each(|(i, v)| b[i] = *v);
    let mut vectors = Mat::zeros(n, n);
    let wanted = ComputeEigenvectors::Yes;
    let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<f64>(n, wanted, Par::Seq, Default::default()));
    let (room, stack) = (Some(vectors.as_mut()), MemStack::new(&mut memory));
    tridiagonal_self_adjoint_evd(
        d.as_ref(),
        b.as_ref(),
        values.as_mut(),
        room,
        Par::Seq,
        stack,
        Default::default(),
    )
    .map_err(|_| failed("an eigenvalue"))?;
    let vectors = (0..n * n).map(|ij| vectors[(ij % n, ij / n)]).collect();
    Ok(Eigen { values: values.column_vector().iter().copied().collect(), vectors })
}

/// Two neighbours turned so that the z of the first is zero: `xᵢ ← c xᵢ + s xⱼ`, `xⱼ ← c xⱼ − s xᵢ`.
struct Turn {
    i: usize,
    j: usize,
    c: f64,
    s: f64,
}

/// What is left of `D + ρzzᵀ` after vectors that are known have been set aside.
struct Reduced {
    /// Places whose root is to be found, by the size of d, and all others.
    active: Vec<usize>,
    idle: Vec<usize>,
    turns: Vec<Turn>,
}

/// Sets aside; d and z change where neighbours are turned.
fn reduced(d: &mut [f64], z: &mut [f64], rho: f64) -> Reduced {
    let mut order: Vec<usize> = (0..d.len()).collect();
    order.sort_by(|&i, &j| d[i].total_cmp(&d[j]));
    let largest = |x: &[f64]| x.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
    // what is left out moves no eigenvalue by more than a rounding of the largest
    let small = 8.0 * f64::EPSILON * largest(d).max(rho * largest(z));
    let (mut active, mut idle, mut turns) = (vec![], vec![], vec![]);
    let mut before: Option<usize> = None;
    for j in order {
        if rho * z[j].abs() <= small {
            idle.push(j);
            continue;
        }
        let Some(i) = before.replace(j) else { continue };
        let length = z[i].hypot(z[j]);
        let (c, s) = (z[j] / length, -z[i] / length);
        let apart = d[j] - d[i];
        if (apart * c * s).abs() > small {
            active.push(i);
            continue;
        }
        (z[i], z[j]) = (0.0, length);
        (d[i], d[j]) = (d[i] * c * c + d[j] * s * s, d[i] * s * s + d[j] * c * c);
        turns.push(Turn { i, j, c, s });
        idle.push(i);
    }
    active.extend(before);
    Reduced { active, idle, turns }
}

fn merged(first: &Eigen, second: &Eigen, rho: f64, mut z: Vec<f64>) -> Result<Eigen> {
    let (half, n) = (first.values.len(), z.len());
    let mut d: Vec<f64> = first.values.iter().chain(&second.values).copied().collect();
    let Reduced { active, idle, turns } = reduced(&mut d, &mut z, rho);
    let pick = |x: &[f64]| active.iter().map(|&j| x[j]).collect::<Vec<f64>>();
    let (poles, z) = (pick(&d), pick(&z));
    let squares: Vec<f64> = z.iter().map(|z| z * z).collect();
    let roots: Vec<Root> = (0..active.len())
        .into_par_iter()
        .with_min_len(8)
        .map(|j| {
            dispatch(Secular { d: &poles, squares: &squares, rho, j }).ok_or_else(|| failed("an eigenvalue"))
        })
        .collect::<Result<_>>()?;
    // poles nearest to the roots, and how far these are from them
    let near: Vec<f64> = roots.iter().map(|root| poles[root.pole]).collect();
    let beside: Vec<f64> = roots.iter().map(|root| root.beside).collect();
    let exact: Vec<f64> = (0..active.len())
        .into_par_iter()
        .with_min_len(8)
        .map(|i| dispatch(Loewner { d: &poles, near: &near, beside: &beside, i }).copysign(z[i]))
        .collect();

    // all eigenvalues, with the place of a root or of what is known
    let of_roots = (0..active.len()).map(|j| (near[j] + beside[j], Some(j), 0));
    let mut all: Vec<(f64, Option<usize>, usize)> =
        of_roots.chain(idle.iter().map(|&i| (d[i], None, i))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut vectors = vec![0.0; n * n];
    let rows = n.div_ceil(PIECES);
    vectors.par_chunks_mut(rows * n).zip(all.par_chunks(rows)).with_max_len(1).for_each(|(out, all)| {
        let mut inside = vec![0.0; all.len() * n];
        for (row, (_, root, place)) in inside.chunks_exact_mut(n).zip(all) {
            match root {
                Some(j) => in_eigenbasis(&active, (&exact, &poles), (near[*j], beside[*j]), row),
                None => row[*place] = 1.0,
            }
            for Turn { i, j, c, s } in turns.iter().rev() {
                (row[*i], row[*j]) = (c * row[*i] - s * row[*j], s * row[*i] + c * row[*j]);
            }
        }
        for (columns, basis) in [(0..half, first), (half..n, second)] {
            let width = columns.len();
            let part = View { rows: all.len(), cols: width, row_stride: n, col_stride: 1 };
            let square = super::row_major(width, width);
            product(
                &inside[columns.start..],
                part,
                &basis.vectors,
                square,
                &mut out[columns.start..],
                part,
                false,
            );
        }
    });
    Ok(Eigen { values: all.iter().map(|(value, ..)| *value).collect(), vectors })
}

/// The vector of a root in the eigenbasis of the halves: `ẑᵢ/(dᵢ − λ)`, of norm one.
fn in_eigenbasis(active: &[usize], (z, d): (&[f64], &[f64]), (near, beside): (f64, f64), row: &mut [f64]) {
    let mut sum = 0.0;
    for ((&place, z), d) in active.iter().zip(z).zip(d) {
        let v = z / ((d - near) - beside);
        row[place] = v;
        sum += v * v;
    }
    let scale = 1.0 / sum.sqrt();
    active.iter().for_each(|&place| row[place] *= scale);
}

/// A root: the pole that it is nearer to, and how far it is from that.
#[derive(Clone, Copy)]
struct Root {
    pole: usize,
    beside: f64,
}

/// Root j of `1/ρ + Σ zᵢ²/(dᵢ − λ)`, between `dⱼ` and the next (of the last: below `dⱼ + ρ‖z‖²`); `d` is ascending.
struct Secular<'a> {
    d: &'a [f64],
    squares: &'a [f64],
    rho: f64,
    j: usize,
}

/// Evaluations of f (three are usual) after which the bracket is bisected, and after which there is no root.
const MOST_STEPS: usize = 30;
const MOST_EVALUATIONS: usize = 300;

impl WithSimd for Secular<'_> {
    type Output = Option<Root>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Option<Root> {
        let Self { d, squares, rho, j } = self;
        let (inverse, last) = (1.0 / rho, j + 1 == d.len());
        let width = if last { rho * squares.iter().sum::<f64>() } else { d[j + 1] - d[j] };
        // f rises from −∞ to ∞: its sign in the middle tells which half the root is in.
        let middle = Sums::at(simd, d, squares, (j, d[j]), 0.5 * width);
        let f = inverse + middle.below + middle.above;
        let lower = last || f >= 0.0;
        let pole = if lower { j } else { j + 1 };
        let (mut low, mut high) = match (lower, f >= 0.0) {
            (true, true) => (0.0, 0.5 * width),
            (true, false) => (0.5 * width, width),
            (false, _) => (-0.5 * width, 0.0),
        };
        if last {
            // a single root is this end
            high *= 1.0 + 4.0 * f64::EPSILON;
        }
        let mut mu = if last {
            0.5 * (low + high)
        } else {
            // all but the two neighbours as they are in the middle
            let others = f + 2.0 * (squares[j] - squares[j + 1]) / width;
            two_poles(others, (squares[j], squares[j + 1]), width, lower)
        };
        for evaluation in 0..MOST_EVALUATIONS {
            if !(mu > low && mu < high) || evaluation >= MOST_STEPS {
                // An end is a pole, however near the root is to it.
                mu = if low == 0.0 {
                    high / 1024.0
                } else if high == 0.0 {
                    low / 1024.0
                } else {
                    0.5 * (low + high)
                };
            }
            let at = Sums::at(simd, d, squares, (j, d[pole]), mu);
            let f = inverse + at.below + at.above;
            let rounding = f64::EPSILON
                * (inverse + 8.0 * (at.above - at.below) + mu.abs() * (at.below_slope + at.above_slope));
            if f.abs() <= rounding || high - low <= 2.0 * f64::EPSILON * mu.abs() {
                return Some(Root { pole, beside: mu });
            }
            if f < 0.0 {
                low = mu
            } else {
                high = mu
            }
            let step = if last {
                // one pole, with the value and the slope of f
                let distance = (d[j] - d[pole]) - mu;
                distance * (1.0 + distance * at.below_slope / (f - distance * at.below_slope))
            } else {
                let (one, two) = ((d[j] - d[pole]) - mu, (d[j + 1] - d[pole]) - mu);
                between(f, (one, at.below_slope), (two, at.above_slope))
            };
            if step.abs() <= f64::EPSILON * mu.abs() {
                return Some(Root { pole, beside: mu });
            }
            mu += step;
        }
        None
    }
}

/// Root of `c + x/(−μ) + y/(width − μ)` beside the pole at zero, or (`lower` is false) of `c + x/(−width − μ) + y/(−μ)`.
#[inline(always)]
fn two_poles(c: f64, (x, y): (f64, f64), width: f64, lower: bool) -> f64 {
    if lower {
        let (a, b) = (c * width + x + y, x * width);
        let root = (a * a - 4.0 * b * c).abs().sqrt();
        return if a > 0.0 { 2.0 * b / (a + root) } else { (a - root) / (2.0 * c) };
    }
    let (a, b) = (-c * width + x + y, y * width);
    let root = (a * a + 4.0 * b * c).abs().sqrt();
    if a < 0.0 { 2.0 * b / (a - root) } else { -(a + root) / (2.0 * c) }
}

/// Step to the root of `c + s/(one − η) + S/(two − η)` that has the value of f and the slopes of its two parts (Li's middle way).
#[inline(always)]
fn between(f: f64, (one, one_slope): (f64, f64), (two, two_slope): (f64, f64)) -> f64 {
    let c = f - one * one_slope - two * two_slope;
    let a = (one + two) * f - one * two * (one_slope + two_slope);
    let b = one * two * f;
    let root = (a * a - 4.0 * b * c).abs().sqrt();
    if a <= 0.0 { (a - root) / (2.0 * c) } else { 2.0 * b / (a + root) }
}

/// `Σ zᵢ²/(dᵢ − λ)` up to pole j and beyond it, and its slopes.
struct Sums {
    below: f64,
    below_slope: f64,
    above: f64,
    above_slope: f64,
}

impl Sums {
    /// At `origin + mu`.
    #[inline(always)]
    fn at<S: Simd>(simd: S, d: &[f64], squares: &[f64], (j, origin): (usize, f64), mu: f64) -> Self {
        let ((d_below, d_above), (below, above)) = (d.split_at(j + 1), squares.split_at(j + 1));
        let (below, below_slope) = pole_sum(simd, d_below, below, origin, mu);
        let (above, above_slope) = pole_sum(simd, d_above, above, origin, mu);
        Self { below, below_slope, above, above_slope }
    }
}

#[inline(always)]
fn pole_sum<S: Simd>(simd: S, d: &[f64], squares: &[f64], origin: f64, mu: f64) -> (f64, f64) {
    let ((d, d_rest), (z, z_rest)) = (S::as_simd_f64s(d), S::as_simd_f64s(squares));
    let (from, at) = (simd.splat_f64s(origin), simd.splat_f64s(mu));
    let one = simd.splat_f64s(1.0);
    let (mut sum, mut slope) = (simd.splat_f64s(0.0), simd.splat_f64s(0.0));
    for (d, z) in d.iter().zip(z) {
        let e = simd.div_f64s(one, simd.sub_f64s(simd.sub_f64s(*d, from), at));
        let part = simd.mul_f64s(*z, e);
        sum = simd.add_f64s(sum, part);
        slope = simd.mul_add_e_f64s(part, e, slope);
    }
    let (mut sum, mut slope) = (simd.reduce_sum_f64s(sum), simd.reduce_sum_f64s(slope));
    for (d, z) in d_rest.iter().zip(z_rest) {
        let e = 1.0 / ((d - origin) - mu);
        sum += z * e;
        slope += z * e * e;
    }
    (sum, slope)
}

/// `|ẑᵢ| = √∏ⱼ(λⱼ − dᵢ)/∏(dⱼ − dᵢ)`, up to a factor that all have: the z of which the roots are exact.
struct Loewner<'a> {
    d: &'a [f64],
    near: &'a [f64],
    beside: &'a [f64],
    i: usize,
}

impl WithSimd for Loewner<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let Self { d, near, beside, i } = self;
        let own = (near[i] - d[i]) + beside[i];
        let left = quotients(simd, &d[..i], &near[..i], &beside[..i], d[i]);
        let right = quotients(simd, &d[i + 1..], &near[i + 1..], &beside[i + 1..], d[i]);
        (own * left * right).abs().sqrt()
    }
}

/// `∏ (λⱼ − of)/(dⱼ − of)`.
#[inline(always)]
fn quotients<S: Simd>(simd: S, d: &[f64], near: &[f64], beside: &[f64], of: f64) -> f64 {
    let ((d, d_rest), (near, near_rest)) = (S::as_simd_f64s(d), S::as_simd_f64s(near));
    let (beside, beside_rest) = S::as_simd_f64s(beside);
    let (from, mut product) = (simd.splat_f64s(of), simd.splat_f64s(1.0));
    for ((d, near), beside) in d.iter().zip(near).zip(beside) {
        let root = simd.add_f64s(simd.sub_f64s(*near, from), *beside);
        product = simd.mul_f64s(product, simd.div_f64s(root, simd.sub_f64s(*d, from)));
    }
    let rest = d_rest.iter().zip(near_rest).zip(beside_rest);
    rest.fold(simd.reduce_product_f64s(product), |all, ((d, near), beside)| {
        all * (((near - of) + beside) / (d - of))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many eigenvalues are below `x`, by signs of the pivots of `T − x` (Sylvester's law): an oracle without eigenvectors.
    fn below(diagonal: &[f64], beside: &[f64], x: f64) -> usize {
        let (mut count, mut pivot) = (0, 1.0);
        for (i, d) in diagonal.iter().enumerate() {
            pivot = d - x - if i > 0 { beside[i - 1] * (beside[i - 1] / pivot) } else { 0.0 };
            if pivot == 0.0 {
                pivot = f64::MIN_POSITIVE;
            }
            count += usize::from(pivot < 0.0);
        }
        count
    }

    fn check(diagonal: &[f64], beside: &[f64], case: &str) {
        let n = diagonal.len();
        let Eigen { values, vectors } = tridiagonal(diagonal.to_vec(), beside).unwrap();
        let size = diagonal.iter().chain(beside).fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
        let slack = 4e-15 * (n as f64).sqrt() * size;
        assert!(values.windows(2).all(|w| w[0] <= w[1]), "{case}: ascending");
        for (k, value) in values.iter().enumerate() {
            let (least, most) =
                (below(diagonal, beside, value - slack), below(diagonal, beside, value + slack));
            assert!(least <= k && k < most, "{case}: eigenvalue {k} of {n} is {value}, {least} to {most}");
        }
        let rows: Vec<&[f64]> = vectors.chunks_exact(n).collect();
        for (k, row) in rows.iter().enumerate() {
            for i in 0..n {
                let left = if i > 0 { beside[i - 1] * row[i - 1] } else { 0.0 };
                let right = if i + 1 < n { beside[i] * row[i + 1] } else { 0.0 };
                let residual = left + diagonal[i] * row[i] + right - values[k] * row[i];
                assert!(residual.abs() < slack, "{case}: {residual:e} of vector {k}");
            }
            for (l, other) in rows.iter().enumerate().take(k + 1) {
                let inner = super::super::dot(row, other);
                let one = f64::from(u8::from(k == l));
                assert!((inner - one).abs() < 4e-15 * (n as f64).sqrt(), "{case}: {inner:e} of {k} and {l}");
            }
        }
    }

    fn noise(i: usize) -> f64 {
        let mut h = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (h ^ (h >> 31)) as f64 / u64::MAX as f64 - 0.5
    }

    #[test]
    fn eigenvalues_and_vectors_of_the_second_difference_are_the_known_ones() {
        let n = 2 * LEAF + 41;
        let Eigen { values, vectors } = tridiagonal(vec![2.0; n], &vec![-1.0; n - 1]).unwrap();
        let angle = |k: usize| std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64;
        for (k, value) in values.iter().enumerate() {
            assert!((value - (2.0 - 2.0 * angle(k).cos())).abs() < 2e-14, "{k}");
            let row = &vectors[k * n..][..n];
            let known = |i: usize| (2.0 / (n + 1) as f64).sqrt() * (angle(k) * (i + 1) as f64).sin();
            let sign = row[0].signum();
            // vectors of close eigenvalues are as much less exact as these are closer
            assert!((0..n).all(|i| (sign * row[i] - known(i)).abs() < 1e-10), "{k}");
        }
    }

    #[test]
    fn what_is_hard_to_divide_is_divided() {
        let n = 3 * LEAF + 17;
        let drawn = |scale: f64, shift: usize| (0..n).map(|i| scale * noise(i + shift)).collect::<Vec<f64>>();
        let (diagonal, beside) = (drawn(1.0, 0), drawn(1.0, 5000));
        let cut = |every: usize, value: f64| {
            (0..n - 1).map(|i| if i % every == every - 1 { value } else { beside[i] }).collect::<Vec<f64>>()
        };
        check(&diagonal, &beside[..n - 1], "drawn");
        check(&diagonal.iter().map(|d| 1e150 * d).collect::<Vec<_>>(), &vec![3e149; n - 1], "large");
        check(&diagonal, &vec![0.0; n - 1], "diagonal");
        check(&vec![1.0; n], &vec![0.0; n - 1], "one");
        check(&vec![0.0; n], &vec![0.0; n - 1], "zero");
        check(&vec![0.0; n], &vec![-1.0; n - 1], "no diagonal, negative beside");
        check(&vec![1.0; n], &drawn(1e-15, 9)[1..], "next to one");
        check(&diagonal, &cut(5, 0.0), "blocks");
        check(&diagonal, &cut(5, 1e-14), "blocks that are glued");
        // Wilkinson's matrices of 21 rows, glued: clusters of pairs that agree to all digits
        let wilkinson: Vec<f64> = (0..n).map(|i| (i % 21).abs_diff(10) as f64).collect();
        let glued: Vec<f64> = (0..n - 1).map(|i| if i % 21 == 20 { 1e-8 } else { 1.0 }).collect();
        check(&wilkinson, &glued, "Wilkinson, glued");
        // numbers from 1 down to 1e-300, either way round
        let graded: Vec<f64> = (0..n).map(|i| 10_f64.powf(-(i as f64))).collect();
        let between: Vec<f64> = graded.windows(2).map(|w| (w[0] * w[1]).sqrt()).collect();
        check(&graded, &between, "graded");
        let (up, between): (Vec<f64>, Vec<f64>) =
            (graded.iter().rev().copied().collect(), between.iter().rev().copied().collect());
        check(&up, &between, "graded upwards");
        // of many sizes around the leaves
        for n in [1, 2, 3, LEAF, LEAF + 1, 2 * LEAF, 2 * LEAF + 1] {
            check(&diagonal[..n], &beside[..n - 1], "size");
        }
    }
}
