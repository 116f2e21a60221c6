//! Passes: memory or stream, one thread or two, splits, interruption, progress.
#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as the tests do

mod common;
use arrow_array::*;
use common::*;
use leakscope_core::balance::{Level, losses};
use leakscope_core::fisher::Release;
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_core::linalg;
use leakscope_core::rows::Rows;
use leakscope_table::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A deterministic number in [0, 1).
fn noise(i: usize, j: usize) -> f64 {
    let z = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (j as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
    let z = (z ^ (z >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (z >> 11) as f64 / (1_u64 << 53) as f64
}

fn table(folder: &Folder, n: usize, group_rows: usize) -> Table {
    let mut columns: Vec<(String, ArrayRef)> = (0..5)
        .map(|j| {
            let values = (0..n).map(|i| noise(i, j) * 10.0_f64.powi(j as i32));
            (format!("x{j}"), Arc::new(Float64Array::from_iter_values(values)) as ArrayRef)
        })
        .collect();
    let levels = (0..n).map(|i| format!("l{}", (noise(i, 9) * 4.0) as u32));
    columns.push(("c".into(), Arc::new(StringArray::from_iter_values(levels))));
    columns.push(("y".into(), Arc::new(Float64Array::from_iter_values((0..n).map(|i| noise(i, 7))))));
    let columns = columns.iter().map(|(n, a)| (n.as_str(), a.clone())).collect();
    open(&folder.parquet("t.parquet", columns, group_rows)).unwrap()
}

/// Xᵀ[X y], summed block by block.
fn gram(data: &Dataset) -> Vec<f64> {
    let d = data.width();
    let mut total = vec![0.0; d * d + d];
    data.as_rows()
        .fold(
            || vec![0.0; d * d + d],
            |s, b| {
                let (g, xy) = s.split_at_mut(d * d);
                linalg::gram_add(&b.x, None, d, g);
                (0..b.len()).for_each(|i| linalg::axpy(b.y[i], b.row(i), xy));
                Ok(())
            },
            |s| {
                linalg::axpy(1.0, &s, &mut total);
                Ok(())
            },
        )
        .unwrap();
    total
}

#[test]
fn memory_and_stream_give_the_same_rows_and_sums() {
    let folder = Folder::new();
    let table = table(&folder, 30_000, 4_000);
    for holdout in [None, Some(Holdout::seeded(0.3, 11))] {
        let encoding = fit(&table, &roles("y"), &EncodeOptions { holdout, ..Default::default() }).unwrap();
        let kept = dataset(&table, &encoding, Subset::Training);
        assert!(kept.is_in_memory());
        let read = streamed(&table, &encoding, Subset::Training);
        let (a, b) = (content(&kept), content(&read));
        assert_eq!((&a.x, &a.y, &a.ids), (&b.x, &b.y, &b.ids));
        assert_eq!(a.blocks, b.blocks);
        assert_eq!(gram(&kept), gram(&read));
        assert_eq!(kept.len(), encoding.rows_training);
    }
}

/// There is one way of cutting rows: those in memory and those that are read again are summed in the same order.
#[test]
fn memory_and_stream_give_the_same_model_and_the_same_leakage() {
    let folder = Folder::new();
    let table = table(&folder, 12_000, 1_700);
    let encoding = fit(&table, &roles("y"), &EncodeOptions::default()).unwrap();
    let (kept, read) =
        (dataset(&table, &encoding, Subset::Training), streamed(&table, &encoding, Subset::Training));
    assert!(kept.is_in_memory() && !read.is_in_memory());
    let release = Release { sigma: 0.5, releases: 1, label_secret: true };
    let answer = |rows: &Dataset| {
        let model = glm::fit(rows, Family::Linear, Penalty::new(0.01, true)).unwrap();
        let eta = losses(rows, &model, &Level::Record, release).unwrap();
        (model.w, eta)
    };
    let ((w, eta), (w_read, eta_read)) = (answer(&kept), answer(&read));
    assert_eq!((w, eta), (w_read, eta_read));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let folder = Folder::new();
    let table = table(&folder, 20_000, 1_500);
    let options = EncodeOptions { pca: Some(4), ..Default::default() };
    let all = || {
        let encoding = fit(&table, &roles("y"), &options).unwrap();
        let kept = gram(&dataset(&table, &encoding, Subset::Training));
        let read = gram(&streamed(&table, &encoding, Subset::Training));
        (encoding, kept, read)
    };
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let (one, two, many) = (pool(1).install(all), pool(2).install(all), pool(13).install(all));
    assert_eq!(one, two);
    assert_eq!(one, many);
}

#[test]
fn csv_is_read_in_splits() {
    let folder = Folder::new();
    let mut text = String::from("id,x,t,y\n");
    let n = 140_000;
    for i in 0..n {
        // Quoted line breaks, so that a cut at any line break would be wrong.
        text += &format!("{i},{},\"a\nb{}\",{}\n", i % 1000, i % 3, i % 2);
    }
    let table = open(&folder.write("long.csv", text)).unwrap();
    assert_eq!(table.rows(&Hooks::default()).unwrap(), n);
    let by = Roles { id: Some("id".into()), ..roles("y") };
    let options = EncodeOptions { scale: Scale::None, ..Default::default() };
    let encoding = fit(&table, &by, &options).unwrap();
    assert_eq!(encoding.attributes[1].levels, ["a\nb0", "a\nb1", "a\nb2"]);
    let actual = content(&streamed(&table, &encoding, Subset::Training));
    assert!(actual.ids.iter().enumerate().all(|(i, id)| id.parse() == Ok(i)));
    assert!(actual.x.chunks(4).enumerate().all(|(i, r)| r[0] == (i % 1000) as f64));
    assert_eq!((encoding.attributes[0].mean, encoding.rows_read), (499.5, n));
}

#[test]
fn a_request_to_stop_is_heard() {
    let folder = Folder::new();
    let table = table(&folder, 5_000, 1_000);
    let hooks = Hooks::default();
    let encoding = fit(&table, &roles("y"), &EncodeOptions::default()).unwrap();
    let data = Dataset::new(&table, &encoding, Subset::Training, &hooks).unwrap();
    hooks.interrupt.store(true, Ordering::Relaxed);
    let stopped = data.as_rows().fold(|| (), |(), _| Ok(()), |()| Ok(()));
    assert_eq!(stopped, Err(leakscope_core::Error::Interrupted));
    let options = EncodeOptions::default();
    assert!(matches!(Encoding::fit(&table, &roles("y"), &options, &hooks), Err(Error::Interrupted)));
}

#[test]
fn errors_of_steps_and_of_files_come_through() {
    let folder = Folder::new();
    let table = table(&folder, 5_000, 1_000);
    let encoding = fit(&table, &roles("y"), &EncodeOptions::default()).unwrap();
    let data = streamed(&table, &encoding, Subset::Training);
    let failed = data.as_rows().fold(|| (), |(), _| Err(leakscope_core::Error::Separable), |()| Ok(()));
    assert_eq!(failed, Err(leakscope_core::Error::Separable));
    std::fs::remove_file(folder.path().join("t.parquet")).unwrap();
    let gone = data.as_rows().fold(|| (), |(), _| Ok(()), |()| Ok(()));
    assert!(matches!(gone, Err(leakscope_core::Error::Source(message)) if message.contains("t.parquet")));
}

#[test]
fn progress_reaches_the_end_of_every_pass() {
    let folder = Folder::new();
    let table = table(&folder, 9_000, 1_000);
    let furthest = Arc::new(Mutex::new(std::collections::HashMap::new()));
    let calls = Arc::new(AtomicU64::new(0));
    let (seen, count) = (furthest.clone(), calls.clone());
    let hooks = Hooks {
        progress: Some(Arc::new(move |p: Progress| {
            count.fetch_add(1, Ordering::Relaxed);
            let mut seen = seen.lock().unwrap();
            let done = seen.entry(p.stage).or_insert((0, p.total));
            done.0 = p.done.max(done.0);
        })),
        ..Default::default()
    };
    let options = EncodeOptions { scale: Scale::UnitBall, pca: Some(2), ..Default::default() };
    let encoding = Encoding::fit(&table, &roles("y"), &options, &hooks).unwrap();
    let data = Dataset::new(&table, &encoding, Subset::Training, &hooks).unwrap();
    data.as_rows().fold(|| (), |(), _| Ok(()), |()| Ok(())).unwrap();
    let furthest = furthest.lock().unwrap();
    for stage in [Stage::Profile, Stage::Norm, Stage::Components, Stage::Encode, Stage::Pass] {
        assert_eq!(furthest.get(&stage), Some(&(9_000, 9_000)), "{stage:?}");
    }
    assert!(calls.load(Ordering::Relaxed) > 9);
}
