//! Decompositions and products have the same digits on any number of threads: a result must not depend on the machine
//! that computed it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use leakscope_core::linalg::{
    Cholesky, gram_add_lower, largest_eigenvalue, matmul_parallel, matmul_transposed_parallel, mirror_lower,
    symmetric_eigen,
};

/// A positive definite p × p matrix whose digits are no round numbers.
fn gram(p: usize) -> Vec<f64> {
    let n = 2 * p + 5;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ p as u64;
    let x: Vec<f64> = (0..n * p)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        })
        .collect();
    let mut a = vec![0.0; p * p];
    gram_add_lower(&x, None, p, &mut vec![], &mut a);
    mirror_lower(&mut a, p);
    a
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

/// Every result that a model is measured by, as bits.
fn everything(p: usize) -> [(&'static str, Vec<u64>); 7] {
    let a = gram(p);
    let factor = Cholesky::new(&a, p).unwrap();
    let inverse = factor.inverse();
    let (values, vectors) = symmetric_eigen(&a, p).unwrap();
    let (mut product, mut crossed) = (vec![0.0; p * p], vec![0.0; p * p]);
    matmul_parallel(&a, &inverse, (p, p, p), &mut product);
    matmul_transposed_parallel(&vectors, &inverse, (p, p, p), &mut crossed);
    [
        ("factor", bits(&factor.lower())),
        ("inverse", bits(&inverse)),
        ("eigenvalues", bits(&values)),
        ("eigenvectors", bits(&vectors)),
        ("largest eigenvalue", bits(&[largest_eigenvalue(&a, p).unwrap()])),
        ("product", bits(&product)),
        ("transposed product", bits(&crossed)),
    ]
}

#[test]
fn no_digit_depends_on_the_number_of_threads() {
    for p in [1, 2, 20, 33, 50, 64, 86, 128, 200, 300] {
        let on = |threads| {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| everything(p))
        };
        let one = on(1);
        for threads in [2, 3, 5, 16] {
            for ((name, alone), (_, together)) in one.iter().zip(on(threads)) {
                assert!(*alone == together, "{name} of {p} columns on {threads} threads");
            }
        }
    }
}
