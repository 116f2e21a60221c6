//! Matrix products, row-major, over the `gemm` crate.

use super::{Buf, Device, View};
use crate::Real;

/// A product `C (m × n) = op(A) (m × k) · op(B) (k × n)`, added to C where `add` says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gemm {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// A is stored as k × m.
    pub(crate) a_transposed: bool,
    /// B is stored as n × k.
    pub(crate) b_transposed: bool,
    pub(crate) add: bool,
    /// Whether a GPU may shorten its operands, where the user asks for that.
    pub(crate) may_shorten: bool,
}

impl Gemm {
    /// `A B`.
    pub(crate) fn nn(m: usize, n: usize, k: usize) -> Self {
        Self { m, n, k, a_transposed: false, b_transposed: false, add: false, may_shorten: false }
    }

    /// `A Bᵀ`, B stored n × k.
    pub(crate) fn nt(m: usize, n: usize, k: usize) -> Self {
        Self { b_transposed: true, ..Self::nn(m, n, k) }
    }

    /// `Aᵀ B`, A stored k × m.
    pub(crate) fn tn(m: usize, n: usize, k: usize) -> Self {
        Self { a_transposed: true, ..Self::nn(m, n, k) }
    }

    /// Adds to the output instead of replacing it.
    pub(crate) fn adding(self) -> Self {
        Self { add: true, ..self }
    }

    /// A product inside a pass: shortened to tf32 where the user asks for it. What a clip rests on (norms, and sums of what was
    /// clipped by them) never is: there every record counts with the digits that its norm was computed from.
    pub(crate) fn of_pass(self) -> Self {
        Self { may_shorten: true, ..self }
    }
}

impl<T: Real> Device<T> {
    /// One product into `c[offset..]`.
    pub(crate) fn gemm(&self, g: Gemm, a: View<'_, T>, b: View<'_, T>, c: &mut Buf<T>, offset: usize) {
        if let Some(gpu) = self.gpu {
            fits(g, a.len(), b.len(), c.len() - offset);
            let at = [a.at(), b.at(), c.at() + (offset * T::BYTES) as u64];
            return gpu.one_product::<T>(self.shortens, g, at);
        }
        gemm(g, a.0, b.0, &mut c.data[offset..]);
    }

    /// Products of consecutive matrices, as many as fill `c`; shorter operands repeat.
    pub(crate) fn gemm_batched(&self, g: Gemm, a: View<'_, T>, b: View<'_, T>, c: &mut Buf<T>) {
        let (sa, sb, sc) = (g.m * g.k, g.k * g.n, g.m * g.n);
        if sc == 0 || sa == 0 || sb == 0 {
            return;
        }
        let (na, nb) = (a.len() / sa, b.len() / sb);
        if let Some(gpu) = self.gpu {
            let (count, size) = (c.len() / sc, T::BYTES as u64);
            // as many at a time as neither operand repeats within; one alone repeats by standing still
            let run = [na, nb].into_iter().filter(|&n| n > 1).min().unwrap_or(count).min(count);
            for from in (0..count).step_by(run.max(1)) {
                let start = |n: usize, s: usize| if n > 1 { (from % n * s) as u64 * size } else { 0 };
                let at = [a.at() + start(na, sa), b.at() + start(nb, sb), c.at() + (from * sc) as u64 * size];
                let distance = |n: usize, s: usize| if n > 1 { s } else { 0 };
                let apart = [distance(na, sa), distance(nb, sb), sc];
                gpu.product::<T>(self.shortens, g, at, apart, run.min(count - from));
            }
            return;
        }
        for (i, c) in c.data.chunks_exact_mut(sc).enumerate() {
            gemm(g, &a.0[(i % na) * sa..][..sa], &b.0[(i % nb) * sb..][..sb], c);
        }
    }
}

fn fits(g: Gemm, a: usize, b: usize, c: usize) {
    let Gemm { m, n, k, .. } = g;
    assert!(a >= m * k && b >= k * n && c >= m * n, "operands of a product fit its sizes");
}

/// Multiplications from which on a product is shared by the threads that have nothing else to do: a network with so wide layers
/// has few arrays of parameters to sum into, and so few records under way at the same time.
const SHARED: usize = 1 << 26;

/// The lengths are checked here, so that the unsafe call below is sound whatever a layer asks.
fn gemm<T: Real>(g: Gemm, a: &[T], b: &[T], c: &mut [T]) {
    let Gemm { m, n, k, a_transposed, b_transposed, add, may_shorten: _ } = g;
    fits(g, a.len(), b.len(), c.len());
    // each entry is summed by one thread, in the same order
    let threads = if m.saturating_mul(n).saturating_mul(k) < SHARED {
        gemm::Parallelism::None
    } else {
        gemm::Parallelism::Rayon(0)
    };
    let (m, n, k) = (m as isize, n as isize, k as isize);
    let (a_cs, a_rs) = if a_transposed { (m, 1) } else { (1, k) };
    let (b_cs, b_rs) = if b_transposed { (k, 1) } else { (1, n) };
    let alpha = if add { T::ONE } else { T::ZERO };
    // SAFETY: the strides above stay inside the slices, whose lengths were just checked; T is f32 or f64.
    unsafe {
        gemm::gemm(
            m as usize,
            n as usize,
            k as usize,
            c.as_mut_ptr(),
            1,
            n,
            add,
            a.as_ptr(),
            a_cs,
            a_rs,
            b.as_ptr(),
            b_cs,
            b_rs,
            alpha,
            T::ONE,
            false,
            false,
            false,
            threads,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products large enough to be shared have the same digits on any number of threads.
    #[test]
    fn no_digit_of_a_shared_product_depends_on_the_number_of_threads() {
        let (m, n, k) = (130, 1100, 520);
        assert!(m * n * k > SHARED);
        let values =
            |len: usize| -> Vec<f32> { (0..len).map(|i| (i as f32 * 0.618).fract() - 0.5).collect() };
        let (a, b) = (values(m * k), values(k * n));
        for g in [Gemm::nn(m, n, k), Gemm::nt(m, n, k), Gemm::tn(m, n, k), Gemm::nn(m, n, k).adding()] {
            let on = |threads: usize| {
                let mut c = values(m * n);
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| gemm(g, &a, &b, &mut c));
                c.iter().map(|c| c.to_bits()).collect::<Vec<_>>()
            };
            let alone = on(1);
            assert!([2, 3, 16].into_iter().all(|threads| on(threads) == alone), "{g:?}");
        }
    }
}
