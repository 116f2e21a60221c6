//! Matrix products, by cuBLAS.

use super::{Blas, Gpu, driver::Address, lock};
use crate::{Real, device::Gemm};
use std::ffi::c_int;

/// Rows of a product of so short sums that cuBLAS is given at a time: with many, it takes a kernel that is slower still (27 terms and 64 columns
/// on an H200: 2.5 ms for 285,000 rows, 0.8 ms for 131,000).
const SHORT_SUM: usize = 64;
const MOST_ROWS: usize = 1 << 17;

impl Gpu {
    /// One product `C = op(A) op(B)`, row-major.
    pub(crate) fn one_product<T: Real>(&self, shortens: bool, g: Gemm, at: [Address; 3]) {
        if g.k > SHORT_SUM || g.a_transposed || g.m <= MOST_ROWS {
            return self.product::<T>(shortens, g, at, [0; 3], 1);
        }
        let [a, b, c] = at;
        for row in (0..g.m).step_by(MOST_ROWS) {
            let here = Gemm { m: MOST_ROWS.min(g.m - row), ..g };
            let behind = |values: usize| (row * values * T::BYTES) as u64;
            self.product::<T>(shortens, here, [a + behind(g.k), b, c + behind(g.n)], [0; 3], 1);
        }
    }

    /// Products `C = op(A) op(B)`, row-major, of `count` matrices at given distances; in tf32 where the caller asks for it and the
    /// product allows it.
    pub(crate) fn product<T: Real>(
        &self,
        shortens: bool,
        g: Gemm,
        at: [Address; 3],
        distance: [usize; 3],
        count: usize,
    ) {
        if self.failed() || g.m == 0 || g.n == 0 || count == 0 {
            return;
        }
        self.enter();
        let shortened = shortens && g.may_shorten;
        // row-major C = A B is column-major Cᵀ = Bᵀ Aᵀ
        let (ta, tb) = (c_int::from(g.a_transposed), c_int::from(g.b_transposed));
        let lda = if g.a_transposed { g.m } else { g.k }.max(1) as c_int;
        let ldb = if g.b_transposed { g.k } else { g.n }.max(1) as c_int;
        let (m, n, k) = (g.n as c_int, g.m as c_int, g.k as c_int);
        let [sa, sb, sc] = distance.map(|d| d as i64);
        let [a, b, c] = at;
        let (ldc, count) = (g.n as c_int, count as c_int);
        // SAFETY: callers have checked that the operands have the sizes of the product
        let call = |blas: &Blas| unsafe {
            let api = &self.api.blas;
            macro_rules! strided {
                ($call:expr, $real:ty) => {{
                    let (one, beta): ($real, $real) = (1.0, if g.add { 1.0 } else { 0.0 });
                    let (one, beta) = (&raw const one, &raw const beta);
                    $call(
                        blas.handle.0,
                        tb,
                        ta,
                        m,
                        n,
                        k,
                        one,
                        b,
                        ldb,
                        sb,
                        a,
                        lda,
                        sa,
                        beta,
                        c,
                        ldc,
                        sc,
                        count,
                    )
                }};
            }
            if T::BYTES == 8 { strided!((api.f64_product), f64) } else { strided!((api.f32_product), f32) }
        };
        let kind = if shortened && T::BYTES == 4 { " in tf32" } else { "" };
        let name = || format!("product {} x {} x {} of {count}{kind}", g.m, g.n, g.k);
        let status = self.with_blas(|blas| match self.set_precision(blas, shortened) {
            0 => self.timed(name, || call(blas)),
            status => status,
        });
        if status != 0 {
            let reason = format!("a matrix product failed (cuBLAS status {status})");
            lock(&self.failure).get_or_insert(reason);
        }
    }

    /// Products of f32 in f32, or in tf32.
    fn set_precision(&self, blas: &mut Blas, shortened: bool) -> c_int {
        if blas.shortened == shortened {
            return 0;
        }
        // 0: in f32; 3: in tf32, operands rounded to eleven bits
        // SAFETY: the handle lives as long as the programme
        let status = unsafe { (self.api.blas.math_mode)(blas.handle.0, if shortened { 3 } else { 0 }) };
        blas.shortened = if status == 0 { shortened } else { blas.shortened };
        status
    }
}

#[cfg(test)]
mod tests {
    use super::MOST_ROWS;
    use crate::{
        Backend,
        device::{Device, Gemm},
    };

    /// Products of many rows and short sums, which are cut, are those of the processor.
    #[test]
    fn products_of_many_rows_on_a_gpu_are_those_of_the_processor() {
        let Ok(backend) = Backend::cuda(0) else {
            eprintln!("SKIPPED on a GPU: there is none");
            return;
        };
        let (n, k) = (5, 3);
        let values = |len: usize, step: f64| -> Vec<f64> {
            (0..len).map(|i| (i as f64 * step).fract() - 0.5).collect()
        };
        for m in [MOST_ROWS, MOST_ROWS + 1, 2 * MOST_ROWS + 7] {
            let (a, b, c) = (values(m * k, 0.618), values(k * n, 0.414), values(m * n + 3, 0.732));
            for product in [Gemm::nn(m, n, k), Gemm::nt(m, n, k), Gemm::nt(m, n, k).adding()] {
                let made = |backend: Backend| {
                    let mut dev: Device<f64> = backend.device();
                    let (a, b, mut c) = (dev.upload(&a), dev.upload(&b), dev.upload(&c));
                    dev.gemm(product, a.all(), b.all(), &mut c, 3);
                    dev.download(&c).unwrap()
                };
                let (near, far) = (made(Backend::Cpu), made(backend));
                let most = near.iter().zip(&far).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
                // three products of numbers below a half
                assert!(most <= 1e-15, "{m}: {most:e}");
            }
        }
    }
}
