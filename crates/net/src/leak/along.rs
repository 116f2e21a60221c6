//! What a release tells about parts of a record: the information along given directions of its values.

use super::{
    Measure,
    piece::{Piece, dimension},
};
use crate::{
    Data, Network, Real,
    device::Device,
    engine::Workers,
    error::{Result, check_finite, check_len},
    leak::Label,
};
use leakscope_core::fisher::Directions;

/// The information along sets of directions B, `Bᵀ JᵀJ B/s²`: for each record, for each set, its matrix (count × count,
/// row-major, symmetric). A set has a row for every value of the record and, where the label is secret, for every value
/// of the label after them. η along a set is the root of the largest eigenvalue.
///
/// The numbers of a record do not depend on which others are measured with it.
pub fn information_along<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    sets: &[Directions],
    measures: &Measure,
) -> Result<Vec<Vec<Vec<f64>>>> {
    T::information_along(net, data, records, sets, measures)
}

pub(crate) fn information_along_generic<T: Real>(
    net: &Network<T>,
    data: &Data<T>,
    records: &[usize],
    sets: &[Directions],
    measures: &Measure,
) -> Result<Vec<Vec<Vec<f64>>>> {
    data.check(net)?;
    data.check_records(records)?;
    data.check_even()?;
    let length = data.input().length();
    measures.check(net, length)?;
    let rows = dimension(net, length, measures.label);
    for set in sets {
        check_len("a set of directions", set.basis.len(), rows * set.count)?;
        check_finite("a set of directions", &set.basis)?;
    }
    let parts = Workers::of(net).map(records, net.records_at_a_time(length), |dev, ids| {
        let p = Piece::new(net, data, dev, ids, measures, None)?;
        let each: Result<Vec<Vec<Vec<f64>>>> =
            sets.iter().map(|set| along(&p, dev, set, (ids.len(), measures.label))).collect();
        p.primal.recycle(dev);
        each
    })?;
    let mut out = Vec::with_capacity(records.len());
    for part in parts {
        let here = part.first().map_or(0, Vec::len);
        let mut sets: Vec<_> = part.into_iter().map(Vec::into_iter).collect();
        out.extend((0..here).map(|_| sets.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()));
    }
    out.iter().flatten().try_for_each(|m: &Vec<f64>| check_finite("the information of a record", m))?;
    Ok(out)
}

/// One set, for every record of a piece.
fn along<T: Real>(
    p: &Piece<'_, T>,
    dev: &mut Device<T>,
    set: &Directions,
    (n, label): (usize, Label),
) -> Result<Vec<Vec<f64>>> {
    let (d, k, m) = (p.primal.values, p.labels(), set.count);
    let column = |j: usize, from: usize, to: usize| -> Vec<f64> {
        (from..to).map(|row| set.basis[row * m + j]).collect()
    };
    let mut out = vec![vec![0.0; m * m]; n];
    for j in 0..m {
        let repeated = |dev: &mut Device<T>, v: Vec<f64>| {
            let one: Vec<T> = v.into_iter().map(T::from_f64).collect();
            dev.upload(&one.repeat(n))
        };
        let x = repeated(dev, column(j, 0, d));
        let y = (label == Label::Secret).then(|| repeated(dev, column(j, d, d + k)));
        let products = p.information(dev, x, y)?;
        let (xs, ys) = products.download(dev)?;
        products.recycle(dev);
        for (i, matrix) in out.iter_mut().enumerate() {
            let values = xs[i * d..(i + 1) * d].iter().chain(match label {
                Label::Secret => &ys[i * k..(i + 1) * k],
                Label::Public => &[],
            });
            for (row, v) in values.enumerate() {
                (0..m).for_each(|l| matrix[l * m + j] += set.basis[row * m + l] * v);
            }
        }
    }
    for matrix in &mut out {
        // symmetric but for rounding
        for (l, j) in (0..m).flat_map(|l| (0..l).map(move |j| (l, j))) {
            let mean = 0.5 * (matrix[l * m + j] + matrix[j * m + l]);
            (matrix[l * m + j], matrix[j * m + l]) = (mean, mean);
        }
    }
    Ok(out)
}
