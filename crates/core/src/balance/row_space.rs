//! A wide table in the space that its rows span.
//!
//! With fewer records than columns `H = nλI + Σ ωa xxᵀ` is nλ on everything orthogonal to the rows, and `w* = −Σ ωr x/(nλ)` lies in
//! their span. In an orthonormal basis Q of that span (d × r) the model is that of the rows `Qᵀx` under the same penalty, and a
//! record's `J = −ωH⁻¹[rI + a xwᵀ, c x]` is the same matrix within the span and `−ωr/(nλ)` times the identity beside it. One
//! direction beside it, in which every row is zero, therefore keeps its largest singular value: what takes O(p³) of the table takes
//! O(n³) here, and not a digit is given up. An attribute keeps its η where its directions are in the span too.

use crate::Result;
use crate::fisher::Directions;
use crate::glm::Penalty;
use crate::linalg::{axpy, dot, norm};
use crate::rows::{Block, InMemory, Rows};

/// What is left of a vector without the others, relative, below which it is rounding.
const DEPENDENT: f64 = 64.0 * f64::EPSILON;

/// The rows of a wide table in coordinates of the space they span.
#[derive(Debug, Clone)]
pub struct RowSpace {
    /// Qᵀ, r × d.
    basis: Basis,
    intercept: bool,
    rows: InMemory,
}

impl RowSpace {
    /// The space of `rows` and of the directions `also`, with one direction beside it; `None` where it has more than half as many
    /// dimensions as there are columns, where nothing is penalised (then the minimiser is not unique) or where rows are not read here.
    ///
    /// # Errors
    /// Those of reading the rows.
    pub fn of(rows: &dyn Rows, penalty: Penalty, also: Option<&Directions>) -> Result<Option<Self>> {
        let d = penalty.data_width(rows.width());
        let beside = 1 + also.map_or(0, |a| a.count);
        let most = usize::try_from(rows.len()).unwrap_or(usize::MAX).saturating_add(beside);
        if most.saturating_mul(2) > d || penalty.l2 <= 0.0 || rows.elsewhere().is_some() {
            return Ok(None);
        }
        let all = gathered(rows)?;
        let mut basis = Basis { d, vectors: vec![] };
        (0..all.len()).for_each(|i| basis.add(all.row(i)[..d].to_vec()));
        if let Some(a) = also {
            (0..a.count).for_each(|c| basis.add((0..d).map(|j| a.basis[j * a.count + c]).collect()));
        }
        // At most one unit vector for every dimension there is lies in the span.
        let spanned = basis.len();
        for j in 0..d {
            let unit = (0..d).map(|i| f64::from(u8::from(i == j))).collect();
            basis.add(unit);
            if basis.len() > spanned {
                break;
            }
        }
        let width = basis.len() + usize::from(penalty.intercept);
        let mut x = Vec::with_capacity(all.len() * width);
        for i in 0..all.len() {
            x.extend(basis.coordinates(&all.row(i)[..d]));
            x.extend_from_slice(&all.row(i)[d..]);
        }
        let rows = InMemory::new(vec![Block { width, x, ..all }]);
        Ok(Some(Self { basis, intercept: penalty.intercept, rows }))
    }

    /// The rows in these coordinates, an intercept last.
    pub fn rows(&self) -> &InMemory {
        &self.rows
    }

    /// Directions that the space was made with, in its coordinates: `QᵀB`.
    pub fn directions(&self, of: &Directions) -> Directions {
        let (m, r) = (of.count, self.basis.len());
        let mut basis = vec![0.0; self.rows.width() * m];
        for c in 0..m {
            let b: Vec<f64> = (0..self.basis.d).map(|j| of.basis[j * m + c]).collect();
            self.basis.coordinates(&b).enumerate().for_each(|(k, v)| basis[k * m + c] = v);
        }
        // An intercept is no direction of an attribute, here as there.
        debug_assert!(basis[r * m..].iter().all(|v| *v == 0.0));
        Directions { basis, count: m }
    }

    /// Vectors of coefficients in these coordinates (one, or one for each class) as coefficients of the table: `Qw`.
    pub fn coefficients(&self, w: &[f64]) -> Vec<f64> {
        let (d, r) = (self.basis.d, self.basis.len());
        let mut out =
            Vec::with_capacity(w.len() / self.rows.width().max(1) * (d + usize::from(self.intercept)));
        for vector in w.chunks_exact(self.rows.width().max(1)) {
            let mut lifted = vec![0.0; d];
            self.basis.vectors.chunks_exact(d).zip(vector).for_each(|(q, w)| axpy(*w, q, &mut lifted));
            out.extend(lifted);
            out.extend_from_slice(&vector[r..]);
        }
        out
    }
}

/// All rows as one block.
fn gathered(rows: &dyn Rows) -> Result<Block> {
    let mut all = Block { width: rows.width(), ..Block::default() };
    rows.fold(
        Vec::new,
        |blocks, block| {
            blocks.push(block.clone());
            Ok(())
        },
        |blocks: Vec<Block>| {
            for block in blocks {
                // Weights are there for all rows of a table or for none.
                all.x.extend(block.x);
                all.y.extend(block.y);
                all.weight.extend(block.weight);
            }
            Ok(())
        },
    )?;
    Ok(all)
}

/// Orthonormal vectors of length d, one a row.
#[derive(Debug, Clone)]
struct Basis {
    d: usize,
    vectors: Vec<f64>,
}

impl Basis {
    fn len(&self) -> usize {
        self.vectors.len() / self.d.max(1)
    }

    fn coordinates(&self, v: &[f64]) -> impl Iterator<Item = f64> {
        self.vectors.chunks_exact(self.d).map(move |q| dot(q, v))
    }

    /// Adds what is new in `v`, if anything is (Gram and Schmidt, twice, which is enough).
    fn add(&mut self, mut v: Vec<f64>) {
        // Squares of v are numbers whatever its unit.
        let unit = v.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        if unit == 0.0 {
            return;
        }
        v.iter_mut().for_each(|v| *v /= unit);
        let size = norm(&v);
        for _ in 0..2 {
            for q in self.vectors.chunks_exact(self.d) {
                axpy(-dot(q, &v), q, &mut v);
            }
        }
        let left = norm(&v);
        if left > DEPENDENT * size {
            self.vectors.extend(v.iter().map(|v| v / left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::{Level, Options, Sharing, Update, Variant, balance_model, counted};
    use crate::fisher::Release;
    use crate::glm::{Family, Minimiser, ModelKind};

    const N: usize = 14;
    const D: usize = 45;

    /// A wide table with an intercept; its last two rows are equal, so that rows span a dimension less than there are of them.
    fn table(classes: Option<usize>) -> InMemory {
        let noise = |i: usize| (((i * i * 31 + i * 7919 + 17) % 1009) as f64 / 504.5 - 1.0) * 1.5;
        let (mut x, mut y, mut weight) = (vec![], vec![], vec![]);
        for i in 0..N {
            let own = i.min(N - 2);
            x.extend((0..D).map(|j| noise(own * 97 + j * 13 + j * j)));
            x.push(1.0);
            y.push(classes.map_or(3.0 * noise(own * 41 + 5), |k| (own % k) as f64));
            weight.push(0.5 + (i % 3) as f64 / 2.0);
        }
        InMemory::from_matrix(&x, &y, &weight, 5)
    }

    fn options(level: Level, label_secret: bool) -> Options {
        Options {
            level,
            sharing: Sharing::Sample,
            variant: Variant::Weighted,
            update: Update::Published,
            clamp: None,
            iterations: 3,
            tolerance: 0.0,
            release: Release { sigma: 0.7, releases: 1, label_secret },
            shape: None,
        }
    }

    fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
        let size = a.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * size)
    }

    /// Weights, losses and coefficients are those of the table itself, computed in all its columns.
    #[test]
    fn a_wide_table_balances_alike_in_the_space_of_its_rows() {
        let kinds = [
            (ModelKind::from(Family::Linear), None),
            (ModelKind::from(Family::Logistic), Some(2)),
            (ModelKind::Softmax, Some(3)),
        ];
        // Two columns as one attribute, of which the second is half another's.
        let mut two = Directions::columns(3..5, D + 1);
        (two.basis[4 * 2 + 1], two.basis[9 * 2 + 1]) = (0.8, 0.6);
        for (kind, classes) in kinds {
            for (level, label) in
                [(Level::Record, true), (Level::Record, false), (Level::Attribute(two.clone()), true)]
            {
                let (rows, penalty) = (table(classes), Penalty::new(0.05, true));
                let also = if let Level::Attribute(a) = &level { Some(a) } else { None };
                let space = RowSpace::of(&rows, penalty, also).unwrap().unwrap();
                let beside = 1 + also.map_or(0, |a| a.count);
                assert!(space.rows().width() <= N + beside + 1);
                let own = options(level.clone(), label);
                let inside = match also {
                    Some(a) => options(Level::Attribute(space.directions(a)), label),
                    None => own.clone(),
                };
                let model = (kind, penalty, 10);
                let plain = balance_model(&rows, model, &own, |_, _, _| Ok(())).unwrap();
                let dual = balance_model(space.rows(), model, &inside, |_, _, _| Ok(())).unwrap();
                assert!(close(&plain.weights, &dual.weights, 1e-9), "{kind:?}");
                assert!(close(&plain.eta, &dual.eta, 1e-9), "{kind:?} {:?} {:?}", plain.eta, dual.eta);
                let lifted = space.coefficients(dual.fit.w());
                assert!(close(plain.fit.w(), &lifted, 1e-9), "{kind:?}");
                assert_eq!(plain.best, dual.best);
                if kind == ModelKind::from(Family::Linear) {
                    let count = |rows: &dyn Rows, options: &Options| {
                        counted(rows, (kind, penalty), options, &[], plain.best).unwrap().unwrap().eta
                    };
                    assert!(close(&count(&rows, &own), &count(space.rows(), &inside), 1e-8), "counted");
                }
            }
        }
    }

    /// What lies beside the rows counts: without the direction there, a record that the model misses would leak less.
    #[test]
    fn the_direction_beside_the_rows_is_needed_and_there() {
        let (rows, penalty) = (table(None), Penalty::new(0.05, true));
        let space = RowSpace::of(&rows, penalty, None).unwrap().unwrap();
        let beside = |block: &Block, j: usize| (0..block.len()).all(|i| block.row(i)[j].abs() < 1e-12);
        let block = &space.rows().blocks()[0];
        assert!(beside(block, block.width - 2) && !beside(block, block.width - 3));
        let fit = Minimiser::fit(space.rows(), ModelKind::from(Family::Linear), penalty, 10).unwrap();
        assert!(fit.w()[block.width - 2].abs() < 1e-12);
    }

    #[test]
    fn narrow_tables_and_free_coefficients_stay_as_they_are() {
        let narrow = InMemory::from_matrix(&[1.0; 60], &[1.0; 20], &[], 20);
        assert!(RowSpace::of(&narrow, Penalty::new(0.1, false), None).unwrap().is_none());
        assert!(RowSpace::of(&table(None), Penalty::new(0.0, true), None).unwrap().is_none());
    }
}
