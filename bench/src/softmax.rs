//! η of softmax regression, 60,000 × 50 with ten classes, beside every Jacobian and its singular values.

use crate::best;
use crate::parallel::Parallel;
use faer::Mat;
use leakscope_core::fisher::Release;
use leakscope_core::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::glm::Penalty;
use leakscope_core::glm::softmax::{MAX_CLASSES, SoftmaxFit, contrasts, fit};
use leakscope_core::linalg::Cholesky;
use rayon::prelude::*;
use std::io::Write as _;
use std::process::{Command, Stdio};

type Done = Result<(), Box<dyn std::error::Error>>;

/// Records for which the plain way is timed; its time grows with their number alone.
const SAMPLED: usize = 400;
const RELEASE: Release = Release { sigma: 1.0, releases: 1, label_secret: false };

/// Ours beside the plain way, once spread over all cores by hand and once by numpy where a `python` with it is named.
pub(crate) fn run(python: Option<&str>) -> Done {
    let (n, d, classes) = (60_000, 50, 10);
    let mut rows = Parallel::synthetic(n, d, 4);
    for block in &mut rows.blocks {
        for i in 0..block.len() {
            // A class from a few columns and one that acts as noise.
            let row = &block.x[i * d..(i + 1) * d];
            let z = row[0] + 2.0 * row[5] - row[9] + 4.0 * row[30];
            block.y[i] = ((z + 2.0) / 4.0 * classes as f64).clamp(0.0, classes as f64 - 1.0).floor();
        }
    }
    let (fitting, fitted) = best(1, || fit(&rows, Penalty::new(1e-4, false), MAX_CLASSES));
    let fitted = fitted?;
    let (seconds, etas) = best(3, || ours(&rows, &fitted));
    let etas = etas?;
    let (plain, theirs) = best(1, || published(&rows, &fitted, SAMPLED));
    let worst = etas.iter().zip(&theirs?).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-8, "the two ways disagree by {worst:e}");
    let plain = plain * n as f64 / SAMPLED as f64;
    println!("softmax, {n} × {d}, {classes} classes, {} threads", rayon::current_num_threads());
    println!("fit {fitting:.2} s, {} Newton steps", fitted.iterations);
    println!(
        "η of every record {seconds:.3} s; every Jacobian and its SVD {plain:.1} s   ×{:.0}",
        plain / seconds
    );
    println!("the latter timed on {SAMPLED} records and scaled to n; largest disagreement {worst:.1e}");
    let Some(python) = python else {
        println!("no Python with numpy was named: nothing else to compare with");
        return Ok(());
    };
    let (theirs, by_numpy) = numpy(python, &rows, &fitted)?;
    let worst = etas.iter().zip(&by_numpy).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-8, "numpy disagrees by {worst:e}");
    let theirs = theirs * n as f64 / by_numpy.len() as f64;
    println!("the same batched in numpy, with its own threads {theirs:.1} s   ×{:.0}", theirs / seconds);
    Ok(())
}

/// Seconds and η of the first records by numpy.
fn numpy(
    python: &str,
    rows: &Parallel,
    fitted: &SoftmaxFit,
) -> Result<(f64, Vec<f64>), Box<dyn std::error::Error>> {
    let records =
        || rows.blocks.iter().flat_map(|b| (0..b.len()).map(move |i| (b.row(i), b.y[i]))).take(SAMPLED);
    let question = serde_json::json!({
        "width": fitted.width,
        "classes": fitted.classes,
        "w": fitted.w,
        "contrasts": contrasts(fitted.classes),
        "inverse": Cholesky::new(&fitted.hessian, fitted.coefficients())?.inverse(),
        "x": records().flat_map(|(x, _)| x.to_vec()).collect::<Vec<f64>>(),
        "y": records().map(|(_, y)| y).collect::<Vec<f64>>(),
    });
    let mut child = Command::new(python)
        .args(["-c", include_str!("../softmax_numpy.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run {python}: {e}"))?;
    child.stdin.take().ok_or("no standard input")?.write_all(question.to_string().as_bytes())?;
    let out = child.wait_with_output()?;
    if !out.status.success() {
        return Err(format!("{python} failed: does it have numpy?").into());
    }
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    let seconds = answer["seconds"].as_f64().ok_or("the peer did not say how long it took")?;
    let etas = answer["eta"].as_array().ok_or("the peer gave no η")?;
    Ok((seconds, etas.iter().filter_map(serde_json::Value::as_f64).collect()))
}

fn ours(rows: &Parallel, fitted: &SoftmaxFit) -> Result<Vec<f64>, leakscope_core::Error> {
    let geometry = SoftmaxGeometry::new(fitted, &[], RELEASE)?;
    let parts: Vec<Result<Vec<f64>, leakscope_core::Error>> = rows
        .blocks
        .par_iter()
        .map_init(SoftmaxRecords::default, |records, block| {
            geometry.records(block, records)?;
            Ok(records.eta.clone())
        })
        .collect();
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// The first `count` records: build J, (K−1)p × d, and take its largest singular value.
fn published(rows: &Parallel, fitted: &SoftmaxFit, count: usize) -> Result<Vec<f64>, leakscope_core::Error> {
    let (p, k, q) = (fitted.width, fitted.classes - 1, fitted.coefficients());
    let inverse = Cholesky::new(&fitted.hessian, q)?.inverse();
    let inverse = Mat::from_fn(q, q, |i, j| inverse[i * q + j]);
    let u = contrasts(fitted.classes);
    let records: Vec<(&[f64], f64)> =
        rows.blocks.iter().flat_map(|b| (0..b.len()).map(move |i| (b.row(i), b.y[i]))).take(count).collect();
    let etas = records.par_iter().map(|(x, y)| {
        let pi = fitted.probabilities(x);
        let rho: Vec<f64> =
            pi.iter().enumerate().map(|(c, v)| v - f64::from(u8::from(c == *y as usize))).collect();
        // S W by its definition, then both reduced by the contrasts.
        let mean: Vec<f64> = (0..p).map(|j| (0..=k).map(|c| pi[c] * fitted.w[c * p + j]).sum()).collect();
        let sw = |c: usize, j: usize| pi[c] * (fitted.w[c * p + j] - mean[j]);
        let reduced = Mat::from_fn(k, p, |a, j| (0..=k).map(|c| u[c * k + a] * sw(c, j)).sum::<f64>());
        let rho: Vec<f64> = (0..k).map(|a| (0..=k).map(|c| u[c * k + a] * rho[c]).sum()).collect();
        let inner = Mat::from_fn(q, p, |r, j| {
            let (a, l) = (r / p, r % p);
            reduced[(a, j)] * x[l] + if l == j { rho[a] } else { 0.0 }
        });
        let jacobian = &inverse * &inner;
        jacobian.singular_values().map_or(f64::NAN, |s| s[0])
    });
    Ok(etas.collect())
}
