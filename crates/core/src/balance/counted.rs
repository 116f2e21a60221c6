//! Leakage of a balanced model with its weights counted: they are functions of the data.
//!
//! With weights held fixed, record i moves the model by `Jᵢ = −ωᵢH⁻¹[aᵢxᵢwᵀ + rᵢI, cᵢxᵢ]`. But the weights of *all* records move with
//! it, through every iteration `ω ← S(1/e)/Σ(1/e)` (S their sum, e the loss without the factor ω), so what a release gives away is the
//! derivative of the whole iteration. It is taken backwards: from each of the p coefficients of the last model through
//! weights, losses, models and Hessians to every value of every record at once, which costs O(np³) an iteration and
//! nothing of size n × n. With `s = πᵀ[a x(wᵀv) + r v + c x q]` the top singular value of a record's `H⁻¹[a xwᵀB + rB, cx]`, p and
//! (q_B, q) its vectors, `π = H⁻¹p`, `v = Bq_B`,
//!
//! ```text
//! ds = −s πᵀdH p + dz (b πᵀx wᵀv + a πᵀv) + a πᵀx vᵀdw + (a wᵀv + cq) πᵀdx + c πᵀv dy,   dz = xᵀdw + wᵀdx
//! dH = Σ (dω a + ω b dz) xxᵀ + ω a(dx xᵀ + x dxᵀ),   dw = −H⁻¹ Σ dω r x + ω(a x wᵀdx + r dx + c x dy)
//! ```
//!
//! with `b = ∂a/∂z`. Scaling is taken as given here.

use super::{Level, NOTHING, Options, Sharing, Start, Update, Variant, measure};
use crate::fisher::Directions;
use crate::glm::{C, Family, Fit, Penalty};
use crate::linalg::{Cholesky, axpy, dot, largest_eigenvalue, symmetric_eigen, times};
use crate::rows::Rows;
use crate::{Error, Result};

/// Counted leakage of a balanced model.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedBalance {
    /// The weights of the iteration that was counted.
    pub weights: Vec<f64>,
    /// η of each record, with how the weights depend on it.
    pub eta: Vec<f64>,
    /// η of each record with the weights held fixed: what was stated before.
    pub eta_fixed: Vec<f64>,
    /// η of every attribute, records × attributes, counted.
    pub attribute_eta: Vec<f64>,
}

/// Numbers that the derivative may keep in memory: n(d + 1)p.
const MOST_NUMBERS: usize = 1 << 27;
/// Where two singular values of a record are this close, relative, the larger has no derivative to rely on.
const REPEATED: f64 = 1e-9;

impl CountedBalance {
    /// Standard deviation over mean of the counted η of records: zero where all leak the same.
    pub fn spread(&self) -> f64 {
        let n = self.eta.len().max(1) as f64;
        let mean = self.eta.iter().sum::<f64>() / n;
        let variance = self.eta.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n;
        if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
    }
}

/// η of every record of the model after `iterations` reweightings of [`super::balance`] (its `best`), counted.
///
/// `None` where it is not known: noise with a shape, which moves with the weights, weights that are shared or clamped, the unweighted variant, the accelerated update, a
/// record that leaks nothing or whose loss has no derivative, more numbers than fit in memory. Then no statement can be made.
///
/// # Errors
/// Those of the fits.
pub fn counted(
    rows: &dyn Rows,
    model: (Family, Penalty),
    options: &Options,
    attributes: &[Directions],
    iterations: usize,
) -> Result<Option<CountedBalance>> {
    match Forwards::run(rows, model, options, iterations)? {
        Some(way) => way.counted(attributes, iterations),
        None => Ok(None),
    }
}

/// The iteration, up to `iterations`, after which the counted η of records is most even, and its leakage; `None` as for
/// [`counted`].
///
/// The published fixed point makes η equal with the weights held fixed, not what a release gives away. Weights that divide by
/// the *counted* η would be another function of the data, whose derivative is not the one that was counted. How often
/// to reweight, though, is a whole number: locally constant, so that choosing it adds nothing to what is counted.
pub fn most_even(
    rows: &dyn Rows,
    model: (Family, Penalty),
    options: &Options,
    attributes: &[Directions],
    iterations: usize,
) -> Result<Option<(usize, CountedBalance)>> {
    let Some(way) = Forwards::run(rows, model, options, iterations)? else { return Ok(None) };
    let mut best: Option<(usize, CountedBalance)> = None;
    for number in 0..=iterations {
        let Some(found) = way.counted(&[], number)? else { return Ok(None) };
        if best.as_ref().is_none_or(|(_, b)| found.spread() < b.spread()) {
            best = Some((number, found));
        }
    }
    let Some((number, _)) = best else { return Ok(None) };
    Ok(way.counted(attributes, number)?.map(|found| (number, found)))
}

/// The weights after exactly `iterations` reweightings of the published kind; `None` where they are of another kind, or a record
/// on the way leaks nothing.
///
/// # Errors
/// Those of the fits.
pub fn weights_after(
    rows: &dyn Rows,
    model: (Family, Penalty),
    options: &Options,
    iterations: usize,
) -> Result<Option<Vec<f64>>> {
    let start = Start::read(rows)?;
    options.check(&start, false)?;
    if !is_published(options) {
        return Ok(None);
    }
    let mut weights = start.weights.clone();
    for _ in 0..iterations {
        let (_, e) = measure(rows, model, options, &weights)?;
        let Some(next) = reweighted(&e, start.total) else { return Ok(None) };
        weights = next;
    }
    Ok(Some(weights))
}

/// Whether weights are those of Hannun's algorithm 1, and noise is round.
fn is_published(options: &Options) -> bool {
    options.update == Update::Published
        && options.sharing == Sharing::Sample
        && options.variant == Variant::Weighted
        && options.clamp.is_none()
        && options.shape.is_none()
}

/// `S(1/e)/Σ(1/e)`; `None` where a record leaks nothing.
fn reweighted(e: &[f64], total: f64) -> Option<Vec<f64>> {
    let least = NOTHING * e.iter().sum::<f64>() / e.len() as f64;
    if e.iter().any(|e| *e <= least) {
        return None;
    }
    let mut next: Vec<f64> = e.iter().map(|e| 1.0 / e).collect();
    let factor = total / next.iter().sum::<f64>();
    next.iter_mut().for_each(|w| *w *= factor);
    Some(next)
}

/// Every model of the iteration with its weights, and what they were made of.
struct Forwards<'a> {
    table: Table,
    models: Vec<(Fit, Vec<f64>)>,
    total: f64,
    directions: Directions,
    options: &'a Options,
}

impl<'a> Forwards<'a> {
    fn run(
        rows: &dyn Rows,
        (family, penalty): (Family, Penalty),
        options: &'a Options,
        iterations: usize,
    ) -> Result<Option<Self>> {
        let p = rows.width();
        let d = penalty.data_width(p);
        let numbers = (rows.len() as usize).saturating_mul((d + 1).saturating_mul(p));
        if !is_published(options) || numbers > MOST_NUMBERS {
            return Ok(None);
        }
        let start = Start::read(rows)?;
        options.check(&start, false)?;
        let directions = match &options.level {
            Level::Record => Directions::columns(0..d, p),
            Level::Attribute(directions) => directions.clone(),
        };
        let (mut models, mut weights) = (vec![], start.weights.clone());
        for number in 0..=iterations {
            let (fit, e) = measure(rows, (family, penalty), options, &weights)?;
            models.push((fit, std::mem::take(&mut weights)));
            if number < iterations {
                let Some(next) = reweighted(&e, start.total) else { return Ok(None) };
                weights = next;
            }
        }
        Ok(Some(Self { table: Table::read(rows)?, models, total: start.total, directions, options }))
    }

    /// Backwards from the model after `number` reweightings.
    fn counted(&self, attributes: &[Directions], number: usize) -> Result<Option<CountedBalance>> {
        let (table, p, release) = (&self.table, self.table.p, self.options.release);
        let (last, weights) = self.models.get(number).ok_or(Error::Empty)?;
        let d = last.penalty.data_width(p);
        if let Some(a) = attributes.iter().find(|a| a.basis.len() != p * a.count) {
            let (found, expected) = (a.basis.len(), p * a.count);
            return Err(Error::Shape { what: "the directions of an attribute", found, expected });
        }
        let label = release.label_secret && self.options.level == Level::Record;
        let mut back = Backwards::new(table, last, weights)?;
        let fixed = back.jacobian.clone();
        let mut after = weights;
        for (fit, before) in self.models[..number].iter().rev() {
            if !back.through(table, fit, before, after, (&self.directions, label), self.total)? {
                return Ok(None);
            }
            after = before;
        }
        let gain = f64::from(release.releases).sqrt() / release.sigma;
        let norms = |jacobian: &[f64]| -> Result<Vec<f64>> {
            let secret = d + usize::from(release.label_secret);
            jacobian.chunks_exact((d + 1) * p).map(|j| Ok(gain * top(&j[..secret * p], p)?)).collect()
        };
        let mut attribute_eta = vec![];
        for j in back.jacobian.chunks_exact((d + 1) * p) {
            for a in attributes {
                attribute_eta.push(gain * top(&projected(j, a, (d, p)), p)?);
            }
        }
        let (eta, eta_fixed) = (norms(&back.jacobian)?, norms(&fixed)?);
        match eta.iter().chain(&attribute_eta).find(|e| !e.is_finite()) {
            Some(&value) => {
                Err(Error::OutOfRange { what: "η of a record", value, expected: "a finite number" })
            }
            None => Ok(Some(CountedBalance { weights: weights.clone(), eta, eta_fixed, attribute_eta })),
        }
    }
}

/// Largest singular value of a matrix of rows of p numbers.
fn top(rows: &[f64], p: usize) -> Result<f64> {
    let m = rows.len() / p.max(1);
    let gram: Vec<f64> =
        (0..m * m).map(|ij| dot(&rows[ij / m * p..][..p], &rows[ij % m * p..][..p])).collect();
    Ok(largest_eigenvalue(&gram, m)?.sqrt())
}

/// `(JB)ᵀ` from the rows of `Jᵀ`.
fn projected(jacobian: &[f64], attribute: &Directions, (d, p): (usize, usize)) -> Vec<f64> {
    let m = attribute.count;
    let mut out = vec![0.0; m * p];
    for (c, row) in out.chunks_exact_mut(p).enumerate() {
        for j in 0..d {
            axpy(attribute.basis[j * m + c], &jacobian[j * p..(j + 1) * p], row);
        }
    }
    out
}

/// All rows, in memory.
struct Table {
    p: usize,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl Table {
    fn read(rows: &dyn Rows) -> Result<Self> {
        let (mut x, mut y) = (vec![], vec![]);
        rows.fold(
            || (vec![], vec![]),
            |(x, y), block| {
                x.extend_from_slice(&block.x);
                y.extend_from_slice(&block.y);
                Ok(())
            },
            |(more_x, more_y)| {
                x.extend(more_x);
                y.extend(more_y);
                Ok(())
            },
        )?;
        Ok(Self { p: rows.width(), x, y })
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.x[i * self.p..(i + 1) * self.p]
    }
}

/// Derivatives of the loss of one record, b included.
struct Derivatives {
    r: f64,
    a: f64,
    b: f64,
}

impl Derivatives {
    fn at(family: Family, z: f64, y: f64) -> Self {
        let t = family.terms(z, y);
        let b = match family {
            Family::Linear => 0.0,
            Family::Logistic => -t.a * (0.5 * z).tanh(),
            Family::Poisson => t.a,
        };
        Self { r: t.r, a: t.a, b }
    }
}

/// A record's loss, with what it depends on.
struct Loss {
    /// `s`, without the gain of the noise.
    value: f64,
    /// The left singular vector p, and `π = H⁻¹p`.
    left: Vec<f64>,
    pi: Vec<f64>,
    /// `∂s/∂w` and `∂s/∂x` with H held fixed, `∂s/∂y`.
    of_w: Vec<f64>,
    of_x: Vec<f64>,
    of_y: f64,
}

impl Loss {
    /// `None` where the largest singular value is repeated or zero.
    fn of(
        (x, w): (&[f64], &[f64]),
        t: &Derivatives,
        inverse: &[f64],
        (directions, label): (&Directions, bool),
    ) -> Result<Option<Self>> {
        let (p, m) = (x.len(), directions.count);
        let h = times(inverse, x);
        let column = |c: usize| -> Vec<f64> { (0..p).map(|j| directions.basis[j * m + c]).collect() };
        // Nᵀ, row by row.
        let mut n = vec![];
        for c in 0..m {
            let b = column(c);
            let wb = dot(w, &b);
            n.extend(times(inverse, &b).iter().zip(&h).map(|(hb, h)| t.a * wb * h + t.r * hb));
        }
        if label {
            n.extend(h.iter().map(|h| C * h));
        }
        let k = m + usize::from(label);
        let gram: Vec<f64> = (0..k * k).map(|ij| dot(&n[ij / k * p..][..p], &n[ij % k * p..][..p])).collect();
        let (values, vectors) = symmetric_eigen(&gram, k)?;
        let second = values.get(1).copied().unwrap_or(0.0);
        if !(values[0] > 0.0 && values[0] - second > REPEATED * values[0]) {
            return Ok(None);
        }
        let value = values[0].sqrt();
        let (mut left, mut v, mut q) = (vec![0.0; p], vec![0.0; p], 0.0);
        for c in 0..k {
            let weight = vectors[c * k];
            axpy(weight / value, &n[c * p..(c + 1) * p], &mut left);
            if c < m { axpy(weight, &column(c), &mut v) } else { q = weight }
        }
        let pi = times(inverse, &left);
        let (pi_x, pi_v, wv) = (dot(&pi, x), dot(&pi, &v), dot(w, &v));
        let through_z = t.b * pi_x * wv + t.a * pi_v;
        let along_pi = t.a * wv + C * q;
        Ok(Some(Self {
            of_w: x.iter().zip(&v).map(|(x, v)| through_z * x + t.a * pi_x * v).collect(),
            of_x: w.iter().zip(&pi).map(|(w, pi)| through_z * w + along_pi * pi).collect(),
            of_y: C * pi_v,
            value,
            left,
            pi,
        }))
    }
}

/// Derivatives of the p coefficients of the last model.
struct Backwards {
    /// By the weights of the iteration that was reached: n × p.
    of_weights: Vec<f64>,
    /// By every value of every record and its label: n × (d + 1) × p.
    jacobian: Vec<f64>,
    d: usize,
}

impl Backwards {
    /// The last model, its weights held fixed.
    fn new(table: &Table, fit: &Fit, weights: &[f64]) -> Result<Self> {
        let (n, p) = (table.y.len(), table.p);
        let d = fit.penalty.data_width(p);
        let inverse = Cholesky::new(&fit.hessian, p)?.inverse();
        let mut back = Self { of_weights: vec![0.0; n * p], jacobian: vec![0.0; n * (d + 1) * p], d };
        // dw̄ = the identity: seed k is coefficient k.
        let through: Vec<Vec<f64>> = inverse.chunks_exact(p).map(<[f64]>::to_vec).collect();
        back.through_fit(table, fit, weights, &through);
        Ok(back)
    }

    /// Adds what reaches the data and the weights of a model through its minimiser; `through` is `H⁻¹w̄` of each seed.
    fn through_fit(&mut self, table: &Table, fit: &Fit, weights: &[f64], through: &[Vec<f64>]) {
        let (p, d) = (table.p, self.d);
        for (i, &omega) in weights.iter().enumerate() {
            let x = table.row(i);
            let t = Derivatives::at(fit.family, dot(x, &fit.w), table.y[i]);
            for (seed, w_bar) in through.iter().enumerate() {
                let along = dot(x, w_bar);
                self.of_weights[i * p + seed] -= t.r * along;
                let at = |c: usize| (i * (d + 1) + c) * p + seed;
                for (c, (w, bar)) in fit.w.iter().zip(w_bar).enumerate().take(d) {
                    self.jacobian[at(c)] -= omega * (t.a * along * w + t.r * bar);
                }
                self.jacobian[at(d)] -= omega * C * along;
            }
        }
    }

    /// One iteration back: from the weights `after` to those `before` that the model had; false where a loss has no derivative.
    fn through(
        &mut self,
        table: &Table,
        fit: &Fit,
        before: &[f64],
        after: &[f64],
        secret: (&Directions, bool),
        total: f64,
    ) -> Result<bool> {
        let (n, p, d) = (table.y.len(), table.p, self.d);
        let inverse = Cholesky::new(&fit.hessian, p)?.inverse();
        // Σ_k Y_k ω_k of each seed.
        let mut mean = vec![0.0; p];
        for (y, omega) in self.of_weights.chunks_exact(p).zip(after) {
            axpy(*omega / total, y, &mut mean);
        }
        let upper = std::mem::replace(&mut self.of_weights, vec![0.0; n * p]);
        let (mut w_bar, mut h_bar) = (vec![vec![0.0; p]; p], vec![vec![0.0; p * p]; p]);
        for i in 0..n {
            let x = table.row(i);
            let t = Derivatives::at(fit.family, dot(x, &fit.w), table.y[i]);
            let Some(loss) = Loss::of((x, &fit.w), &t, &inverse, secret)? else { return Ok(false) };
            for seed in 0..p {
                let e_bar = after[i] / loss.value * (mean[seed] - upper[i * p + seed]);
                axpy(e_bar, &loss.of_w, &mut w_bar[seed]);
                // −s (πpᵀ + pπᵀ)/2
                for j in 0..p {
                    let half = -0.5 * e_bar * loss.value;
                    let row = &mut h_bar[seed][j * p..(j + 1) * p];
                    axpy(half * loss.pi[j], &loss.left, row);
                    axpy(half * loss.left[j], &loss.pi, row);
                }
                let at = |c: usize| (i * (d + 1) + c) * p + seed;
                (0..d).for_each(|c| self.jacobian[at(c)] += e_bar * loss.of_x[c]);
                self.jacobian[at(d)] += e_bar * loss.of_y;
            }
        }
        for (i, &omega) in before.iter().enumerate() {
            let x = table.row(i);
            let t = Derivatives::at(fit.family, dot(x, &fit.w), table.y[i]);
            for seed in 0..p {
                let hx = times(&h_bar[seed], x);
                let square = dot(&hx, x);
                self.of_weights[i * p + seed] += t.a * square;
                axpy(omega * t.b * square, x, &mut w_bar[seed]);
                for (c, (w, hx)) in fit.w.iter().zip(&hx).enumerate().take(d) {
                    self.jacobian[(i * (d + 1) + c) * p + seed] +=
                        omega * (t.b * square * w + 2.0 * t.a * hx);
                }
            }
        }
        let through: Vec<Vec<f64>> = w_bar.iter().map(|w| times(&inverse, w)).collect();
        self.through_fit(table, fit, before, &through);
        Ok(true)
    }
}
