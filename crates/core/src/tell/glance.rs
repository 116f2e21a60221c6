//! Every record at a glance: limits on how far apart its candidates are, from a handful of products a record.
//!
//! Two candidates of a record differ by `H⁻¹(αx + v)`, v within the columns of the question, and their squared distance is
//!
//! ```text
//! α² hᵀΣ⁻¹h + 2α Σ v_j (Σ⁻¹H⁻¹e_j)ᵀh + Σ v_j v_k (H⁻¹e_j)ᵀΣ⁻¹(H⁻¹e_k),   h = H⁻¹x
//! ```
//!
//! One product of a block with H⁻¹ and one with the columns of all questions serve every question and every candidate, which
//! then cost a few operations each, whatever the width of the model. What the sum may have cancelled is counted: a limit is
//! never too small by rounding.

use super::step::Products;
use super::worst::Certainty;
use super::{Candidate, Models};
use crate::Result;
use crate::linalg::{dot, matmul, matmul_by_transposed, norm};
use crate::rows::{Block, Rows};

/// Between which numbers δ of a record lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) least: f64,
    pub(super) most: f64,
    /// The two values that `most` is about.
    pub(super) pair: [u32; 2],
    pub(super) refitted: bool,
    /// Why they are told apart for certain, where they are.
    pub(super) certain: Option<Certainty>,
}

/// Columns that two levels differ in where each is encoded by a column of its own: theirs and the record's, with room.
const FEW: usize = 8;

/// What a question needs of the model, once for all records.
struct Frame<'a> {
    candidates: &'a [Candidate],
    /// Where its columns start among those of all questions.
    place: usize,
    /// `(H⁻¹e_j)ᵀΣ⁻¹(H⁻¹e_k)`, columns × columns.
    inner: Vec<f64>,
}

/// One candidate of one record.
#[derive(Debug, Clone, Copy)]
struct Glanced {
    theta: f64,
    error: f64,
}

/// Reused from record to record.
#[derive(Default)]
struct Scratch {
    h: Vec<f64>,
    along: Vec<f64>,
    whitened: Vec<f64>,
    /// `θ₁q` of every candidate.
    v: Vec<f64>,
    glanced: Vec<Option<Glanced>>,
}

/// A record with what it shares over questions.
struct Record<'a> {
    x: &'a [f64],
    y: f64,
    omega: f64,
    h: &'a [f64],
    /// `(Σ⁻¹H⁻¹e_j)ᵀh` for the columns of all questions.
    along: &'a [f64],
    /// `√(hᵀΣ⁻¹h)`
    length: f64,
    z: f64,
    g11: f64,
}

/// Limits of every record, for each list of candidates: one pass over the rows.
pub(super) fn glance(
    rows: &dyn Rows,
    models: &Models<'_>,
    questions: &[Vec<Candidate>],
) -> Result<Vec<Vec<Limits>>> {
    let p = models.p();
    let (columns, frames) = frames(models, questions);
    let width = columns.len() / p.max(1);
    let mut all: Vec<Vec<Limits>> = vec![Vec::with_capacity(rows.len() as usize); questions.len()];
    rows.fold(
        || (vec![vec![]; questions.len()], Scratch::default()),
        |(limits, scratch): &mut (Vec<Vec<Limits>>, Scratch), block: &Block| {
            let n = block.len();
            scratch.h.resize(n * p, 0.0);
            scratch.along.resize(n * width, 0.0);
            matmul(&block.x, &models.inverse, (n, p, p), &mut scratch.h);
            matmul_by_transposed(&scratch.h, &columns, (n, p, width), &mut scratch.along);
            if models.isotropic.is_none() {
                scratch.whitened.resize(n * p, 0.0);
                matmul_by_transposed(&scratch.h, &models.whitening, (n, p, p), &mut scratch.whitened);
            }
            let Scratch { h, along, whitened, v, glanced } = scratch;
            for i in 0..n {
                let (x, h) = (block.row(i), &h[i * p..(i + 1) * p]);
                let length = match models.isotropic {
                    Some(sigma) => norm(h) / sigma,
                    None => norm(&whitened[i * p..(i + 1) * p]),
                };
                let (z, g11) = (dot(x, &models.model.fit.w), dot(x, h));
                let along = &along[i * width..(i + 1) * width];
                let (y, omega) = (block.y[i], block.weight_of(i));
                let record = Record { x, y, omega, h, along, length, z, g11 };
                for (frame, limits) in frames.iter().zip(limits.iter_mut()) {
                    limits.push(models.glanced(frame, &record, (v, glanced)));
                }
            }
            Ok(())
        },
        |(part, _)| {
            all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part));
            Ok(())
        },
    )?;
    Ok(all)
}

/// `Σ⁻¹H⁻¹e_j` of the columns of all questions, one a row, and what each question needs besides.
fn frames<'a>(models: &Models<'_>, questions: &'a [Vec<Candidate>]) -> (Vec<f64>, Vec<Frame<'a>>) {
    let p = models.p();
    let (mut columns, mut frames) = (vec![], vec![]);
    for candidates in questions {
        let range = candidates.first().map_or(0..0, |c| c.columns.clone());
        let m = range.len();
        let place = columns.len() / p.max(1);
        // H is symmetric: columns of its inverse are rows.
        let own = &models.inverse[range.start * p..range.end * p];
        let mut scaled = own.to_vec();
        match models.isotropic {
            Some(sigma) => scaled.iter_mut().for_each(|v| *v /= sigma * sigma),
            None => {
                let mut half = vec![0.0; m * p];
                matmul_by_transposed(own, &models.whitening, (m, p, p), &mut half);
                matmul(&half, &models.whitening, (m, p, p), &mut scaled);
            }
        }
        let mut inner = vec![0.0; m * m];
        matmul_by_transposed(own, &scaled, (m, p, m), &mut inner);
        columns.extend(scaled);
        frames.push(Frame { candidates, place, inner });
    }
    (columns, frames)
}

impl Models<'_> {
    /// Limits of one record for one question.
    fn glanced(
        &self,
        frame: &Frame<'_>,
        record: &Record<'_>,
        (v, glanced): (&mut Vec<f64>, &mut Vec<Option<Glanced>>),
    ) -> Limits {
        v.clear();
        glanced.clear();
        for candidate in frame.candidates {
            let candidate = &*candidate.of(record.x, record.y);
            let step = self.in_plane(
                (record.x, record.y, record.omega),
                self.products(record, candidate),
                candidate,
            );
            let theta = step.map_or(0.0, |s| s.theta[1]);
            let q = candidate.columns.clone().zip(&candidate.x).map(|(j, to)| theta * (to - record.x[j]));
            v.extend(q);
            glanced.push(step.map(|s| Glanced { theta: s.theta[0], error: s.error }));
        }
        let m = frame.candidates.first().map_or(0, |c| c.columns.len());
        let last = frame.candidates.len().clamp(1, 2) as u32 - 1;
        let mut limits = Limits { least: 0.0, most: 0.0, pair: [0, last], refitted: false, certain: None };
        for (i, a) in glanced.iter().enumerate() {
            for (j, b) in glanced[..i].iter().enumerate() {
                let (least, most) = match (a, b) {
                    (Some(a), Some(b)) => {
                        let apart = (a.theta - b.theta, &v[i * m..(i + 1) * m], &v[j * m..(j + 1) * m]);
                        let (low, high) = self.distance(frame, record, apart);
                        let error = a.error + b.error;
                        (low - error, if high.is_nan() { f64::INFINITY } else { high + error })
                    }
                    // Somebody may see it; nobody need.
                    (None, _) | (_, None) => (0.0, f64::INFINITY),
                };
                limits.least = limits.least.max(least);
                if most > limits.most {
                    (limits.most, limits.pair) = (most, [j as u32, i as u32]);
                }
            }
        }
        if limits.most.is_infinite() && self.shows_in_units(record.x, record.y, frame.candidates) {
            limits.certain = Some(Certainty::Units);
        }
        limits
    }

    fn products(&self, record: &Record<'_>, candidate: &Candidate) -> Products {
        let (w, p) = (&self.model.fit.w, self.p());
        let Record { x, h, .. } = record;
        let (mut z_change, mut g12, mut g22) = (0.0, 0.0, 0.0);
        for (j, to) in candidate.columns.clone().zip(&candidate.x) {
            let q = to - x[j];
            if q == 0.0 {
                continue;
            }
            z_change += q * w[j];
            g12 += q * h[j];
            for (k, other) in candidate.columns.clone().zip(&candidate.x) {
                g22 += q * (other - x[k]) * self.inverse[j * p + k];
            }
        }
        Products { g: [record.g11, g12, g22], z: record.z, z_change }
    }

    /// How far `H⁻¹(αx + v)` is at least and at most, `v` being the difference of two.
    fn distance(
        &self,
        frame: &Frame<'_>,
        record: &Record<'_>,
        (alpha, a, b): (f64, &[f64], &[f64]),
    ) -> (f64, f64) {
        let m = a.len();
        let along = &record.along[frame.place..frame.place + m];
        let mut square = (alpha * record.length).powi(2);
        // What the terms could add up to without their signs: rounding is a share of it.
        let mut reach = (alpha * record.length).abs();
        let mut add = |j: usize, others: &mut dyn Iterator<Item = usize>| {
            let v = a[j] - b[j];
            square += 2.0 * alpha * v * along[j];
            reach += v.abs() * frame.inner[j * m + j].max(0.0).sqrt();
            square += others.map(|k| v * (a[k] - b[k]) * frame.inner[j * m + k]).sum::<f64>();
        };
        // Two levels differ in few columns, however many there are.
        let (mut few, mut count) = ([0_usize; FEW], 0);
        for j in (0..m).filter(|&j| a[j] != b[j]) {
            if count < FEW {
                few[count] = j;
            }
            count += 1;
        }
        match few.get(..count) {
            Some(few) => few.iter().for_each(|&j| add(j, &mut few.iter().copied())),
            None => (0..m).filter(|&j| a[j] != b[j]).for_each(|j| add(j, &mut (0..m))),
        }
        let rounding = 8.0 * (self.p() + 8) as f64 * f64::EPSILON * reach * reach;
        let low = (square - rounding).max(0.0).sqrt() * (2.0 - self.slack);
        (low, (square.max(0.0) + rounding).sqrt() * self.slack)
    }
}
