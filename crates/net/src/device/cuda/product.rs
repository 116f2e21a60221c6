//! Matrix products, by cuBLAS.

use super::{Blas, Gpu, driver::Address, lock};
use crate::{Real, device::Gemm};
use std::ffi::c_int;

impl Gpu {
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
