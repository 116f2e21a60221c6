//! Parameters of many models on their principal components: a network has more parameters than an adversary has models, and what
//! the last record moves lies in few directions.

use super::Examples;
use crate::error::{Error, Result, check};
use leakscope_core::linalg::{matmul, matmul_by_transposed, symmetric_eigen};

/// Models that the components are taken from, at most: their Gram matrix is decomposed.
const TAKEN: usize = 2000;
/// Components with less variance than this, in units of that of the first, are rounding.
const LEAST: f64 = 1e-12;

/// The features of both on the first principal components of those to learn from, at most `most`; how many there are.
pub fn projected(train: &Examples, test: &Examples, most: usize) -> Result<(Examples, Examples, usize)> {
    check(most >= 1, "the number of components", most as f64, "at least 1")?;
    if train.count == 0 || test.count == 0 {
        return Err(Error::Empty);
    }
    let p = train.features.len() / train.count;
    // every so many-th model, so that the components do not follow an order of the targets
    let every = train.count.div_ceil(TAKEN);
    let taken: Vec<&[f64]> = train.features.chunks_exact(p.max(1)).step_by(every).collect();
    let n = taken.len();
    let mut mean = vec![0.0; p];
    taken.iter().for_each(|r| mean.iter_mut().zip(*r).for_each(|(m, v)| *m += v / n as f64));
    let off =
        |rows: &[f64]| -> Vec<f64> { rows.iter().zip(mean.iter().cycle()).map(|(v, m)| v - m).collect() };
    let x = off(&taken.concat());
    let mut gram = vec![0.0; n * n];
    matmul_by_transposed(&x, &x, (n, p, n), &mut gram);
    let (values, u) = symmetric_eigen(&gram, n)?;
    let largest = values.first().copied().unwrap_or(0.0);
    let kept = values.iter().take(most.min(n)).take_while(|v| **v > LEAST * largest && **v > 0.0).count();
    if kept == 0 {
        let reason = "they are the same in all models: the last record does not move them".to_owned();
        return Err(Error::Format { subject: "the parameters of the models", reason });
    }
    // XXᵀu = λu, so that Xᵀu/√λ are the components: (kept, p)
    let weights: Vec<f64> = (0..kept)
        .flat_map(|c| (0..n).map(move |i| (c, i)))
        .map(|(c, i)| u[i * n + c] / values[c].sqrt())
        .collect();
    let mut components = vec![0.0; kept * p];
    matmul(&weights, &x, (kept, n, p), &mut components);
    let of = |e: &Examples| {
        let mut features = vec![0.0; e.count * kept];
        matmul_by_transposed(&off(&e.features), &components, (e.count, p, kept), &mut features);
        Examples { features, labels: e.labels.clone(), records: e.records.clone(), count: e.count }
    };
    Ok((of(train), of(test), kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Generator, Purpose};

    fn examples(rows: &[f64], count: usize) -> Examples {
        Examples { features: rows.to_vec(), labels: vec![0.0; count], records: vec![0.0; count], count }
    }

    /// Parameters that move in three directions have three components, which keep all distances.
    #[test]
    fn distances_survive_where_the_components_are_enough() {
        let mut rng = Generator::new(4, Purpose::Other, 0);
        let (n, p) = (30, 200);
        let directions: Vec<f64> = (0..3 * p).map(|_| rng.normal()).collect();
        let mut row = || -> Vec<f64> {
            let a: Vec<f64> = (0..3).map(|_| rng.normal()).collect();
            (0..p).map(|j| 5.0 + (0..3).map(|c| a[c] * directions[c * p + j]).sum::<f64>()).collect()
        };
        let rows: Vec<f64> = (0..n).flat_map(|_| row()).collect();
        let (train, test) = (examples(&rows[..20 * p], 20), examples(&rows[20 * p..], 10));
        let (a, b, kept) = projected(&train, &test, 50).unwrap();
        assert_eq!((kept, a.features.len(), b.features.len()), (3, 60, 30));
        let apart =
            |v: &[f64], w: usize| -> f64 { (0..w).map(|j| (v[j] - v[w + j]).powi(2)).sum::<f64>().sqrt() };
        for (plain, e) in [(&train, &a), (&test, &b)] {
            let (x, y) = (apart(&plain.features, p), apart(&e.features, kept));
            assert!((x - y).abs() < 1e-8 * x, "{x} {y}");
        }
        assert_eq!(projected(&train, &test, 2).unwrap().2, 2);
        let still = examples(&vec![1.0; 5 * p], 5);
        assert!(projected(&still, &test, 2).unwrap_err().to_string().contains("does not move"));
        assert!(projected(&train, &test, 0).is_err());
    }
}
