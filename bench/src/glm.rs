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

const RELEASE: Release = Release { sigma: 1.0, releases: 1, label_secret: true };

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
        let fit = glm::fit(&rows, Family::Linear, Penalty { l2: 1e-3, intercept: false })?;
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

/// 12,665 × 784, everything a linear audit computes, against XᵀX, X·T and X·H⁻².
pub(crate) fn wide() -> Done {
    let (n, d) = (12_665, 784);
    let rows = Parallel::synthetic(n, d, 2);
    let directions: Vec<Directions> = (0..d).map(|j| Directions::columns(j..j + 1, d)).collect();
    let (ours, _) = best(3, || everything(&rows, &directions));
    let square: Vec<f64> = (0..d * d).map(|i| (i % 17) as f64).collect();
    let (gram, _) = best(3, || gram_alone(&rows, d));
    let (products, _) = best(3, || {
        product_alone(&rows, &square, d);
        product_alone(&rows, &square, d);
    });
    println!(
        "{n} × {d}: fit, η of records, of all {d} attributes, of the data set and of attributes over it"
    );
    println!(
        "Leakscope {:.2} s; XᵀX, X·T and X·H⁻² {:.2} s; ratio ×{:.2}",
        ours,
        gram + products,
        ours / (gram + products)
    );
    Ok(())
}

fn everything(rows: &Parallel, directions: &[Directions]) -> Result<f64, leakscope_core::Error> {
    let clock = std::time::Instant::now();
    let mark = |what: &str| {
        if std::env::var_os("LEAKSCOPE_BENCH_STAGES").is_some() {
            eprintln!("  {what} at {:.3} s", clock.elapsed().as_secs_f64());
        }
    };
    let fit = glm::fit(rows, Family::Linear, Penalty { l2: 1e-3, intercept: false })?;
    mark("fitted");
    let geometry = Geometry::new(&fit, directions, RELEASE)?;
    mark("prepared");
    let p = rows.width();
    let mut whole = SetSums::new(p, true);
    rows.fold(
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
    mark("records");
    geometry.take_gram_from_hessian(&mut whole);
    let eta = geometry.set_eta(&whole)?;
    mark("data set");
    let over_all = geometry.attributes_over_set(&whole)?;
    mark("attributes over all");
    Ok(eta + over_all[0])
}

fn all_eta(rows: &Parallel, geometry: &Geometry) -> Vec<f64> {
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
    let summed = rows.fold(
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
