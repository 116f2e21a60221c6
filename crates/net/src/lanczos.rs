//! Lanczos' iteration for the largest eigenvalue of a symmetric operator that is only known by its products, with
//! full reorthogonalisation. Many records step together, each with its own state.

use crate::{
    Real,
    device::{Buf, Device, Krylov, Pulled, Stop, Streams},
    error::Result,
    random::{Generator, Purpose},
};
use rayon::prelude::*;

/// What the iteration of one record has found: its operator in the basis so far, a tridiagonal matrix.
#[derive(Debug, Clone)]
pub(crate) struct Tridiagonal {
    diagonal: Vec<f64>,
    off: Vec<f64>,
    /// What rounding leaves behind of a product, as a share of the operator's size.
    rounding: f64,
    dimension: usize,
    exact: bool,
}

impl Tridiagonal {
    /// Of an operator of a dimension. `rounding` is what is left of a product where the space is exhausted, as a share of
    /// the operator's size.
    pub(crate) fn new(rounding: f64, dimension: usize) -> Self {
        Self { diagonal: Vec::new(), off: Vec::new(), rounding, dimension, exact: false }
    }

    /// Whether the space is exhausted: the eigenvalue is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// One more row: the product's part along its own vector, and the length of what is new in it.
    pub(crate) fn push(&mut self, along: f64, new: f64) {
        if self.exact {
            return;
        }
        self.diagonal.push(along);
        self.off.push(new);
        let scale = self.diagonal.iter().copied().fold(0.0, |a: f64, b| a.max(b.abs()));
        let empty = new <= self.rounding * scale || new.is_nan();
        self.exact = empty || self.diagonal.len() >= self.dimension;
    }

    /// The largest Ritz value θ and its relative residual `|β_m s_m|/θ`, s the eigenvector of the tridiagonal matrix.
    pub(crate) fn largest(&self) -> (f64, f64) {
        let (a, b) = (&self.diagonal, &self.off);
        let m = a.len();
        if m == 0 {
            return (0.0, 0.0);
        }
        // Gershgorin's interval, then bisection on Sturm's count
        let radius = |i: usize| if i > 0 { b[i - 1] } else { 0.0 } + if i + 1 < m { b[i] } else { 0.0 };
        let mut hi = (0..m).map(|i| a[i] + radius(i)).fold(f64::NEG_INFINITY, f64::max);
        let mut lo = a.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !(hi.is_finite() && lo.is_finite()) {
            return (f64::NAN, f64::NAN);
        }
        for _ in 0..200 {
            let mid = 0.5 * (lo + hi);
            if mid <= lo || mid >= hi {
                break;
            }
            if above(a, b, mid) { lo = mid } else { hi = mid }
        }
        let theta = hi;
        if theta <= 0.0 {
            return (0.0, 0.0);
        }
        // T − shift is negative definite for a shift just above, so elimination without pivoting is stable
        let shift = theta + 4.0 * f64::EPSILON * theta;
        let mut s = vec![1.0; m];
        for _ in 0..3 {
            solve(a, b, shift, &mut s);
            let norm = dot(&s, &s).sqrt();
            if !(norm.is_finite() && norm > 0.0) {
                return (theta, 0.0);
            }
            s.iter_mut().for_each(|v| *v /= norm);
        }
        let last = if self.exact { 0.0 } else { b[m - 1] };
        (theta, (last * s[m - 1]).abs() / theta)
    }
}

/// A vector over its length.
fn unit(mut v: Vec<f64>) -> Vec<f64> {
    let norm = dot(&v, &v).sqrt();
    v.iter_mut().for_each(|v| *v /= norm.max(f64::MIN_POSITIVE));
    v
}

/// The basis of one record on the processor.
#[derive(Debug, Clone)]
struct Basis(Vec<Vec<f64>>);

impl Basis {
    /// Takes the product with the last vector; returns its part along that vector and the length of what is new in it,
    /// which becomes the next vector.
    fn advance(&mut self, mut w: Vec<f64>) -> (f64, f64) {
        let along = self.0.last().map_or(0.0, |q| dot(&w, q));
        // twice is enough (Kahan and Parlett)
        for _ in 0..2 {
            for q in &self.0 {
                let c = dot(&w, q);
                w.iter_mut().zip(q).for_each(|(w, q)| *w -= c * q);
            }
        }
        let new = dot(&w, &w).sqrt();
        if new > 0.0 {
            w.iter_mut().for_each(|v| *v /= new);
        }
        self.0.push(w);
        (along, new)
    }
}

/// The iterations of the records of a piece, where they are.
#[derive(Debug)]
pub(crate) struct Bases {
    /// Values of a record, and of its label where that moves too.
    widths: [usize; 2],
    stop: Stop,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Near(Vec<Iteration>),
    Far(Box<Krylov>),
}

/// The iteration of one record on the processor.
#[derive(Debug)]
struct Iteration {
    basis: Basis,
    tridiagonal: Tridiagonal,
    settled: bool,
}

impl Bases {
    /// Starts from random unit vectors, a stream of the seed for each record. They are on the device where it has memory of
    /// its own and room for so many iterations.
    pub(crate) fn new<T: Real>(
        dev: &mut Device<T>,
        records: &[usize],
        widths: [usize; 2],
        (iterations, stop): (usize, Stop),
        seed: u64,
    ) -> Self {
        let numbers: Vec<u32> = records.iter().map(|&r| r as u32).collect();
        let index = dev.upload_index(&numbers);
        let place = match dev.random_krylov(&Streams { seed, records: &index }, widths, iterations) {
            Some(krylov) => Place::Far(Box::new(krylov)),
            None => {
                let width = widths.iter().sum::<usize>();
                let start = |&record: &usize| {
                    let mut rng = Generator::new(seed, Purpose::Probes, record as u64);
                    let basis = Basis(vec![unit((0..width).map(|_| rng.normal()).collect())]);
                    let tridiagonal = Tridiagonal::new(stop.rounding, stop.dimension);
                    Iteration { basis, tridiagonal, settled: false }
                };
                Place::Near(records.par_iter().map(start).collect())
            }
        };
        Self { widths, stop, place }
    }

    /// The vectors whose products are wanted next: of the records, and of their labels.
    pub(crate) fn current<T: Real>(&self, dev: &mut Device<T>) -> (Buf<T>, Option<Buf<T>>) {
        let [d, k] = self.widths;
        match &self.place {
            Place::Far(krylov) => dev.krylov_current(krylov),
            Place::Near(records) => {
                let last = |from: usize, to: usize| -> Vec<T> {
                    let rows = records.iter().filter_map(|r| r.basis.0.last());
                    rows.flat_map(|q| q[from..to].iter().map(|&v| T::from_f64(v))).collect()
                };
                (dev.upload(&last(0, d)), (k > 0).then(|| dev.upload(&last(d, d + k))))
            }
        }
    }

    /// Takes the products; returns whether all are settled. Each stops where it would alone, so that what is found of a record
    /// does not depend on the others.
    pub(crate) fn advance<T: Real>(&mut self, dev: &mut Device<T>, products: &Pulled<T>) -> Result<bool> {
        let ([d, k], stop) = (self.widths, self.stop);
        match &mut self.place {
            Place::Far(krylov) => dev.krylov_advance(krylov, products, stop),
            Place::Near(records) => {
                let (xs, ys) = products.download(dev)?;
                records.par_iter_mut().enumerate().filter(|(_, r)| !r.settled).for_each(|(i, r)| {
                    let label = if k > 0 { &ys[i * k..(i + 1) * k] } else { &[] };
                    let (along, new) = r.basis.advance([&xs[i * d..(i + 1) * d], label].concat());
                    r.tridiagonal.push(along, new);
                    r.settled = r.tridiagonal.is_exact() || r.tridiagonal.largest().1 <= stop.tolerance;
                });
                Ok(records.iter().all(|r| r.settled))
            }
        }
    }

    /// The largest Ritz value of every record and its relative residual.
    pub(crate) fn largest<T: Real>(&self, dev: &Device<T>) -> Result<Vec<(f64, f64)>> {
        match &self.place {
            Place::Far(krylov) => dev.krylov_largest(krylov),
            Place::Near(records) => Ok(records.par_iter().map(|r| r.tridiagonal.largest()).collect()),
        }
    }
}

/// Whether an eigenvalue of the tridiagonal matrix lies above x.
fn above(a: &[f64], b: &[f64], x: f64) -> bool {
    let mut d = 1.0;
    for i in 0..a.len() {
        let off = if i > 0 { b[i - 1] * b[i - 1] } else { 0.0 };
        d = a[i] - x - off / d;
        if d >= 0.0 {
            return true;
        }
    }
    false
}

/// Solves `(T − x) s = s` in place.
fn solve(a: &[f64], b: &[f64], x: f64, s: &mut [f64]) {
    let m = a.len();
    let mut d = vec![0.0; m];
    d[0] = a[0] - x;
    for i in 1..m {
        let f = b[i - 1] / d[i - 1];
        d[i] = a[i] - x - f * b[i - 1];
        s[i] -= f * s[i - 1];
    }
    s[m - 1] /= d[m - 1];
    for i in (0..m - 1).rev() {
        s[i] = (s[i] - b[i] * s[i + 1]) / d[i];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One record on the processor, its operator a function.
    fn iterate(start: Vec<f64>, steps: usize, product: impl Fn(&[f64]) -> Vec<f64>) -> (Tridiagonal, usize) {
        let mut t = Tridiagonal::new(1e-14, start.len());
        let mut basis = Basis(vec![unit(start)]);
        for step in 1..=steps {
            let (along, new) = basis.advance(product(&basis.0[step - 1]));
            t.push(along, new);
            if t.is_exact() || t.largest().1 < 1e-10 {
                return (t, step);
            }
        }
        (t, steps)
    }

    #[test]
    fn a_diagonal_operator_gives_its_largest_entry() {
        let entries: Vec<f64> = (0..40).map(|i| 1.0 / f64::from(i + 1)).collect();
        let start = (0..40).map(|i| 1.0 + 0.1 * f64::from(i % 7)).collect();
        let (t, steps) = iterate(start, 40, |q| q.iter().zip(&entries).map(|(v, e)| v * e).collect());
        let theta = t.largest().0;
        assert!((theta - 1.0).abs() < 1e-10 && steps < 30, "{theta} after {steps}");
    }

    #[test]
    fn a_zero_operator_gives_zero() {
        let (t, steps) = iterate(vec![1.0; 5], 5, |_| vec![0.0; 5]);
        assert_eq!((t.largest(), t.is_exact(), steps), ((0.0, 0.0), true, 1));
    }

    #[test]
    fn a_rank_one_operator_ends_in_two_steps() {
        let u = [3.0, 0.0, 4.0];
        let (t, steps) = iterate(vec![1.0; 3], 3, |q| u.iter().map(|v| dot(q, &u) * v).collect());
        assert!((t.largest().0 - 25.0).abs() < 1e-10 && steps <= 2);
    }
}
