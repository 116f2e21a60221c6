//! Per-record η of a linear model against the published way, and against the products that are unavoidable.

use crate::best;
use crate::parallel::Parallel;
use faer::Mat;
use leakscope_core::fisher::{Directions, Geometry, Records, Release, SetSums};
use leakscope_core::glm::{self, Family, Fit, Penalty};
use leakscope_core::linalg::{Cholesky, dot, gram_add_lower, matmul, mirror_lower};
use leakscope_core::rows::Rows;
use rayon::prelude::*;

type Done = Result<(), Box<dyn std::error::Error>>;

pub(crate) const RELEASE: Release = Release { sigma: 1.0, releases: 1, label_secret: true };

/// Records for which the published way is timed; its time grows with their number alone.
const SAMPLED: usize = 400;

pub(crate) fn run() -> Done {
    println!("per-record η, linear regression, {} threads", rayon::current_num_threads());
    println!(
        "{:>8} {:>5} {:>12} {:>12} {:>10} {:>12} {:>10}",
        "n", "d", "Leakscope", "published", "ratio", "X·T alone", "ratio"
    );
    for (n, d) in [(30_162, 86), (12_665, 20), (12_665, 784)] {
        let rows = Parallel::synthetic(n, d, 1);
        let fit = glm::fit(&rows, Family::Linear, Penalty::new(1e-3, false))?;
        let geometry = Geometry::new(&fit, &[], RELEASE)?;
        let (ours, etas) = best(7, || all_eta(&rows, &geometry));
        let (product, _) = best(7, || product_alone(&rows, &fit.hessian, d));
        let published = if d <= 100 {
            let sampled = SAMPLED.min(n);
            let (seconds, theirs) = best(1, || published(&rows, &fit, sampled));
            let worst = etas.iter().zip(&theirs).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-9, "the two ways disagree by {worst:e}");
            Some(seconds * n as f64 / sampled as f64)
        } else {
            None
        };
        let (shown, ratio) = match published {
            Some(s) => (format!("{s:.2} s"), format!("×{:.0}", s / ours)),
            None => ("needs 31 GB".into(), String::new()),
        };
        println!(
            "{n:>8} {d:>5} {:>9.2} ms {shown:>12} {ratio:>10} {:>9.2} ms {:>10}",
            ours * 1e3,
            product * 1e3,
            format!("×{:.2}", ours / product)
        );
    }
    println!("published: every Jacobian and its SVD, timed on {SAMPLED} records and scaled to n");
    Ok(())
}

/// Everything a linear audit of n × d computes, against XᵀX, X·T and X·H⁻².
pub(crate) fn wide([n, d]: [usize; 2]) -> Done {
    let repeats = if n * d > 50_000_000 { 1 } else { REPEATS };
    let rows = Parallel::synthetic(n, d, 2);
    let directions: Vec<Directions> = (0..d).map(|j| Directions::columns(j..j + 1, d)).collect();
    // The fastest of several runs on both sides: what others do on the machine only ever adds.
    let runs: Vec<[f64; 4]> =
        (0..repeats).map(|_| everything(&rows, &directions)).collect::<Result<_, _>>()?;
    let fastest =
        |until: usize| runs.iter().map(|s| s[..until].iter().sum::<f64>()).fold(f64::INFINITY, f64::min);
    let (records, all) = (fastest(3), fastest(4));
    let square: Vec<f64> = (0..d * d).map(|i| (i % 17) as f64).collect();
    let (gram, _) = best(repeats, || gram_alone(&rows, d));
    let (products, _) = best(repeats, || {
        product_alone(&rows, &square, d);
        product_alone(&rows, &square, d);
    });
    let unavoidable = gram + products;
    println!("{n} × {d}, linear: XᵀX, X·T and X·H⁻² {unavoidable:.2} s");
    println!(
        "fit, η of every record and of its {d} attributes  {records:.2} s   ×{:.2}",
        records / unavoidable
    );
    println!("… and of the data set and of attributes over it   {all:.2} s   ×{:.2}", all / unavoidable);
    let stage = |k: usize| runs.iter().map(|s| s[k]).fold(f64::INFINITY, f64::min);
    println!(
        "fit {:.3} s (XᵀX alone {gram:.3}), decompositions {:.3}, records {:.3} (products alone {products:.3}), sets {:.3}",
        stage(0),
        stage(1),
        stage(2),
        stage(3)
    );
    Ok(())
}

/// Runs of which the fastest counts.
const REPEATS: usize = 7;

/// Seconds of the fit, of the decompositions, of every record, and of sets.
pub(crate) fn everything(
    rows: &Parallel,
    directions: &[Directions],
) -> Result<[f64; 4], leakscope_core::Error> {
    let mut clock = std::time::Instant::now();
    let mut lap = || {
        let seconds = clock.elapsed().as_secs_f64();
        clock = std::time::Instant::now();
        seconds
    };
    let fit = glm::fit(rows, Family::Linear, Penalty::new(1e-3, false))?;
    let fitted = lap();
    let geometry = Geometry::new(&fit, directions, RELEASE)?;
    let prepared = lap();
    let p = rows.width();
    let mut whole = SetSums::new(p, true);
    rows.as_rows().fold(
        || (SetSums::new(p, true), Records::default()),
        |(set, records), block| {
            geometry.records(block, records);
            geometry.add_to_set_without_gram(block, records, set);
            Ok(())
        },
        |(set, _)| {
            whole.merge(&set);
            Ok(())
        },
    )?;
    let records = lap();
    geometry.take_gram_from_hessian(&mut whole);
    let eta = geometry.set_eta(&whole)?;
    let over_all = geometry.attributes_over_set(&whole)?;
    assert!(
        over_all.iter().all(|a| *a <= eta * (1.0 + 1e-9)),
        "an attribute cannot leak more than the whole"
    );
    Ok([fitted, prepared, records, lap()])
}

pub(crate) fn all_eta(rows: &Parallel, geometry: &Geometry) -> Vec<f64> {
    let parts: Vec<Vec<f64>> = rows
        .blocks
        .par_iter()
        .map_init(Records::default, |records, block| {
            geometry.eta(block, records);
            records.eta.clone()
        })
        .collect();
    parts.concat()
}

fn product_alone(rows: &Parallel, square: &[f64], d: usize) -> f64 {
    rows.blocks
        .par_iter()
        .map_init(Vec::new, |out, block| {
            out.resize(block.len() * d, 0.0);
            matmul(&block.x, square, (block.len(), d, d), out);
            out[0]
        })
        .sum()
}

fn gram_alone(rows: &Parallel, d: usize) -> Vec<f64> {
    let mut total = vec![0.0; d * d];
    let summed = rows.as_rows().fold(
        || (vec![0.0; d * d], Vec::new()),
        |(gram, scratch), block| {
            gram_add_lower(&block.x, None, d, scratch, gram);
            Ok(())
        },
        |(gram, _)| {
            total.iter_mut().zip(&gram).for_each(|(a, b)| *a += b);
            Ok(())
        },
    );
    summed.expect("sums of finite numbers");
    mirror_lower(&mut total, d);
    total
}

/// The published way for the first `count` records: build J, take its largest singular value.
fn published(rows: &Parallel, fit: &Fit, count: usize) -> Vec<f64> {
    let d = fit.w.len();
    let inverse = Cholesky::new(&fit.hessian, d).expect("a positive definite Hessian").inverse();
    let inverse = Mat::from_fn(d, d, |i, j| inverse[i * d + j]);
    let records: Vec<(&[f64], f64)> =
        rows.blocks.iter().flat_map(|b| (0..b.len()).map(move |i| (b.row(i), b.y[i]))).take(count).collect();
    records
        .par_iter()
        .map(|(x, y)| {
            let r = dot(x, &fit.w) - y;
            let inner = Mat::from_fn(d, d + 1, |i, j| {
                if j == d { -x[i] } else { x[i] * fit.w[j] + if i == j { r } else { 0.0 } }
            });
            let jacobian = &inverse * &inner;
            jacobian.singular_values().expect("a finite matrix")[0]
        })
        .collect()
}
