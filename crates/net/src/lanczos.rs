//! Lanczos' iteration for the largest eigenvalue of a symmetric operator that is only known by its products, with
//! full reorthogonalisation. Many records step together, each with its own state.

/// The state of one record.
#[derive(Debug, Clone)]
pub(crate) struct Lanczos {
    basis: Vec<Vec<f64>>,
    diagonal: Vec<f64>,
    off: Vec<f64>,
    /// What rounding leaves behind of a product, as a share of the operator's size.
    rounding: f64,
    done: bool,
}

impl Lanczos {
    /// Starts from a vector. `rounding` is what is left of a product where the space is exhausted, as a share of the
    /// operator's size.
    pub(crate) fn new(mut start: Vec<f64>, rounding: f64) -> Self {
        let norm = dot(&start, &start).sqrt();
        start.iter_mut().for_each(|v| *v /= norm.max(f64::MIN_POSITIVE));
        Self { basis: vec![start], diagonal: Vec::new(), off: Vec::new(), rounding, done: false }
    }

    /// The unit vector whose product is wanted next.
    pub(crate) fn current(&self) -> &[f64] {
        self.basis.last().map_or(&[], Vec::as_slice)
    }

    /// Whether the space is exhausted: the eigenvalue is exact.
    pub(crate) fn done(&self) -> bool {
        self.done
    }

    /// Takes the product with [`Lanczos::current`].
    pub(crate) fn advance(&mut self, mut w: Vec<f64>) {
        if self.done {
            return;
        }
        self.diagonal.push(dot(&w, self.current()));
        // twice is enough (Kahan and Parlett)
        for _ in 0..2 {
            for q in &self.basis {
                let c = dot(&w, q);
                w.iter_mut().zip(q).for_each(|(w, q)| *w -= c * q);
            }
        }
        let beta = dot(&w, &w).sqrt();
        self.off.push(beta);
        let scale = self.diagonal.iter().copied().fold(0.0, |a: f64, b| a.max(b.abs()));
        let empty = beta <= self.rounding * scale || beta.is_nan();
        if empty || self.basis.len() >= w.len() {
            self.done = true;
            return;
        }
        w.iter_mut().for_each(|v| *v /= beta);
        self.basis.push(w);
    }
}

/// The largest Ritz value θ and its relative residual `|β_m s_m|/θ`, s the eigenvector of the tridiagonal matrix.
pub(crate) fn largest(state: &Lanczos) -> (f64, f64) {
    let (a, b) = (&state.diagonal, &state.off);
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
    let last = if state.done { 0.0 } else { b[m - 1] };
    (theta, (last * s[m - 1]).abs() / theta)
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

    #[test]
    fn a_diagonal_operator_gives_its_largest_entry() {
        let entries: Vec<f64> = (0..40).map(|i| 1.0 / f64::from(i + 1)).collect();
        let mut s = Lanczos::new((0..40).map(|i| 1.0 + 0.1 * f64::from(i % 7)).collect(), 1e-14);
        let mut steps = 0;
        while !s.done() && steps < 40 {
            let w = s.current().iter().zip(&entries).map(|(v, e)| v * e).collect();
            s.advance(w);
            steps += 1;
            let (theta, residual) = largest(&s);
            assert!(theta <= 1.0 + 1e-12, "{theta} {residual}");
            if residual < 1e-10 {
                break;
            }
        }
        assert!((largest(&s).0 - 1.0).abs() < 1e-10 && steps < 30, "{steps}");
    }

    #[test]
    fn a_zero_operator_gives_zero() {
        let mut s = Lanczos::new(vec![1.0; 5], 1e-14);
        s.advance(vec![0.0; 5]);
        assert_eq!(largest(&s), (0.0, 0.0));
        assert!(s.done());
    }

    #[test]
    fn a_rank_one_operator_ends_in_two_steps() {
        let u = [3.0, 0.0, 4.0];
        let mut s = Lanczos::new(vec![1.0, 1.0, 1.0], 1e-14);
        for _ in 0..2 {
            let c = dot(s.current(), &u);
            s.advance(u.iter().map(|v| c * v).collect());
        }
        assert!((largest(&s).0 - 25.0).abs() < 1e-10);
    }
}
