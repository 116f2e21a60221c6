//! Rows that do not fit into memory: a Parquet file of 50 columns, fitted and measured in passes.

use crate::{best, peak_memory};
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use leakscope_core::fisher::{Geometry, Records, Release};
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_core::linalg::{gram_add_lower, matmul};
use leakscope_core::rows::{Block, Rows};
use leakscope_table::{Dataset, EncodeOptions, Encoding, Hooks, ReadOptions, Roles, Subset, Table};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use rayon::prelude::*;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

type Done = Result<(), Box<dyn std::error::Error>>;

const COLUMNS: usize = 50;
const GROUP: usize = 1 << 20;

pub(crate) fn run(rows: usize) -> Done {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.parquet");
    write(&path, rows)?;
    println!("{rows} rows × {COLUMNS} columns, {} MB of Parquet", std::fs::metadata(&path)?.len() >> 20);

    // What cannot be avoided: decode every column, and one product of the rows with a square matrix (two where
    // records and attributes are both asked for).
    let (bare, _) = best(2, || read_and_multiply(&path, 1));
    let (bare_twice, _) = best(2, || read_and_multiply(&path, 2));
    println!("read and multiply, bare        {bare:>8.2} s");
    println!("read and multiply twice, bare  {bare_twice:>8.2} s");

    let hooks = Hooks::default();
    let clock = Instant::now();
    let table = Table::open(&ReadOptions { paths: vec![path], ..ReadOptions::default() })?;
    let roles = Roles { target: "y".into(), ..Roles::default() };
    let encoding = Encoding::fit(&table, &roles, &EncodeOptions::default(), &hooks)?;
    report("columns: ranges, means, levels", clock, bare);
    let data = Dataset::new(&table, &encoding, Subset::Training, &hooks)?;

    let clock = Instant::now();
    let p = data.width();
    let mut gram = vec![0.0; p * p];
    data.as_rows().fold(
        || (vec![0.0; p * p], Vec::new()),
        |(sum, scratch), block| {
            gram_add_lower(&block.x, None, p, scratch, sum);
            Ok(())
        },
        |(sum, _)| {
            gram.iter_mut().zip(&sum).for_each(|(a, b)| *a += b);
            Ok(())
        },
    )?;
    report("a pass with one product", clock, bare);

    let clock = Instant::now();
    let fit = glm::fit(&data, Family::Linear, Penalty::new(1e-3, true))?;
    println!("fit: {} passes", fit.passes);
    report_each("each pass of the fit", clock, bare, fit.passes);

    let directions: Vec<_> = (0..encoding.attributes.len())
        .map(|a| leakscope_core::fisher::Directions { basis: encoding.directions(a, false), count: 1 })
        .collect();
    let geometry = Geometry::new(&fit, &directions, Release { sigma: 1.0, releases: 1, label_secret: true })?;
    let clock = Instant::now();
    let mean = mean_eta(&data, |block, records| geometry.eta(block, records))?;
    report("η of records", clock, bare);
    let clock = Instant::now();
    mean_eta(&data, |block, records| geometry.records(block, records))?;
    report("η of records and attributes", clock, bare_twice);
    println!("mean η {mean:.3e}; largest resident memory {} MB", peak_memory());
    Ok(())
}

fn mean_eta(
    data: &Dataset,
    measure: impl Fn(&Block, &mut Records) + Sync,
) -> Result<f64, leakscope_core::Error> {
    let mut total = 0.0;
    data.as_rows().fold(
        || (0.0, Records::default()),
        |(sum, records), block| {
            measure(block, records);
            *sum += records.eta.iter().sum::<f64>();
            Ok(())
        },
        |(sum, _)| {
            total += sum;
            Ok(())
        },
    )?;
    Ok(total / data.len() as f64)
}

fn report(pass: &str, clock: Instant, bare: f64) {
    report_each(pass, clock, bare, 1);
}

fn report_each(pass: &str, clock: Instant, bare: f64, passes: usize) {
    let seconds = clock.elapsed().as_secs_f64() / passes as f64;
    println!("{pass:<30} {seconds:>8.2} s   ×{:.2}", seconds / bare);
}

fn write(path: &Path, rows: usize) -> Done {
    let mut fields: Vec<Field> =
        (0..COLUMNS - 1).map(|j| Field::new(format!("x{j}"), DataType::Float64, false)).collect();
    fields.push(Field::new("y", DataType::Float64, false));
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP))
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, Arc::clone(&schema), Some(properties))?;
    let step = 1 << 16;
    for start in (0..rows).step_by(step) {
        let count = step.min(rows - start);
        let columns: Vec<ArrayRef> = (0..COLUMNS)
            .into_par_iter()
            .map(|j| {
                let value = |i: usize| {
                    let mut h = ((start + i) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64) << 17;
                    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                    (h ^ (h >> 31)) as f64 / u64::MAX as f64 - 0.5
                };
                Arc::new(Float64Array::from_iter_values((0..count).map(value))) as ArrayRef
            })
            .collect();
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
    }
    writer.close()?;
    Ok(())
}

/// Row groups in parallel: decode, lay out by rows, multiply.
fn read_and_multiply(path: &Path, products: usize) -> f64 {
    let groups = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("the file just written"))
        .expect("a Parquet file")
        .metadata()
        .num_row_groups();
    let square: Vec<f64> = (0..COLUMNS * COLUMNS).map(|i| (i % 7) as f64).collect();
    (0..groups)
        .into_par_iter()
        .map(|group| {
            let file = File::open(path).expect("the file just written");
            let reader = ParquetRecordBatchReaderBuilder::try_new(file)
                .expect("a Parquet file")
                .with_row_groups(vec![group])
                .with_batch_size(2048)
                .build()
                .expect("a readable file");
            let (mut x, mut out, mut total) = (vec![], vec![], 0.0);
            for batch in reader {
                let batch = batch.expect("a readable batch");
                let n = batch.num_rows();
                x.resize(n * COLUMNS, 0.0);
                out.resize(n * COLUMNS, 0.0);
                for (j, column) in batch.columns().iter().enumerate() {
                    let values = column.as_any().downcast_ref::<Float64Array>().expect("a column of floats");
                    for (i, v) in values.values().iter().enumerate() {
                        x[i * COLUMNS + j] = *v;
                    }
                }
                for _ in 0..products {
                    matmul(&x, &square, (n, COLUMNS, COLUMNS), &mut out);
                    total += out[0];
                }
            }
            total
        })
        .sum()
}
