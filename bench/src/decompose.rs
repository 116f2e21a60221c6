//! The decompositions of a wide model, stage by stage, cut into more and more pieces.

use crate::best;
use crate::parallel::Parallel;
use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::tridiag::{tridiag_in_place, tridiag_in_place_scratch};
use faer::linalg::evd::{
    ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch, tridiagonal_self_adjoint_evd,
};
use faer::linalg::householder;
use faer::{Accum, Conj, Mat, Par};
use leakscope_core::fisher::{Directions, Geometry};
use leakscope_core::glm::{self, Family, Penalty};
use leakscope_core::linalg::{Cholesky, matmul_parallel, symmetric_eigen};
use std::num::NonZeroUsize;

pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
    let (n, d) = (12_665, 784);
    let rows = Parallel::synthetic(n, d, 2);
    let fit = glm::fit(&rows, Family::Linear, Penalty::new(1e-3, false))?;
    let directions: Vec<Directions> = (0..d).map(|j| Directions::columns(j..j + 1, d)).collect();
    println!("{} threads, {d} columns, milliseconds", rayon::current_num_threads());
    let ms = |(seconds, _): (f64, _)| -> f64 {
        let s: f64 = seconds;
        s * 1e3
    };
    fn only<T>(r: (f64, T)) -> (f64, ()) {
        (r.0, ())
    }
    println!(
        "Geometry::new {:.1}",
        ms(only(best(5, || Geometry::new(&fit, &directions, crate::glm::RELEASE))))
    );
    println!("Cholesky::new {:.1}", ms(only(best(5, || Cholesky::new(&fit.hessian, d)))));
    let factor = Cholesky::new(&fit.hessian, d)?;
    println!("inverse {:.1}", ms(only(best(5, || factor.inverse()))));
    let inverse = factor.inverse();
    println!("symmetric_eigen {:.1}", ms(only(best(5, || symmetric_eigen(&inverse, d)))));
    let mut out = vec![0.0; d * d];
    println!(
        "matmul_parallel {:.1}",
        ms(only(best(5, || matmul_parallel(&inverse, &inverse, (d, d, d), &mut out))))
    );
    let a = Mat::from_fn(d, d, |i, j| inverse[i * d + j]);
    let h = Mat::from_fn(d, d, |i, j| fit.hessian[i * d + j]);
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "pieces", "cholesky", "solve", "product", "evd", "tridiag", "d&c", "back"
    );
    for pieces in [1_usize, 2, 4, 8, 16] {
        let par = if pieces == 1 { Par::Seq } else { Par::Rayon(NonZeroUsize::new(pieces).ok_or("zero")?) };
        let cholesky = best(5, || {
            let mut l = h.clone();
            let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(d, par, Default::default()));
            let _ = cholesky_in_place(
                l.as_mut(),
                Default::default(),
                par,
                MemStack::new(&mut memory),
                Default::default(),
            );
            l[(0, 0)]
        });
        let mut l = h.clone();
        let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(d, par, Default::default()));
        let _ = cholesky_in_place(
            l.as_mut(),
            Default::default(),
            par,
            MemStack::new(&mut memory),
            Default::default(),
        );
        let solve = best(5, || {
            let mut e = Mat::<f64>::identity(d, d);
            faer::linalg::triangular_solve::solve_lower_triangular_in_place(l.as_ref(), e.as_mut(), par);
            e[(0, 0)]
        });
        let mut e = Mat::<f64>::identity(d, d);
        faer::linalg::triangular_solve::solve_lower_triangular_in_place(l.as_ref(), e.as_mut(), par);
        let product = best(5, || {
            let mut c = Mat::<f64>::zeros(d, d);
            faer::linalg::matmul::matmul(c.as_mut(), Accum::Replace, e.transpose(), e.as_ref(), 1.0, par);
            c[(0, 0)]
        });
        let evd = best(5, || {
            let mut vectors = Mat::<f64>::zeros(d, d);
            let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<f64>(
                d,
                ComputeEigenvectors::Yes,
                par,
                Default::default(),
            ));
            let mut values = Diag::zeros(d);
            let _ = self_adjoint_evd(
                a.as_ref(),
                values.as_mut(),
                Some(vectors.as_mut()),
                par,
                MemStack::new(&mut memory),
                Default::default(),
            );
            vectors[(0, 0)]
        });
        let bs = faer::linalg::qr::no_pivoting::factor::recommended_block_size::<f64>(d, d);
        let reduce = || {
            let mut t = a.clone();
            let mut hh = Mat::<f64>::zeros(bs, d - 1);
            let mut memory = MemBuffer::new(tridiag_in_place_scratch::<f64>(d, par, Default::default()));
            tridiag_in_place(t.as_mut(), hh.as_mut(), par, MemStack::new(&mut memory), Default::default());
            (t, hh)
        };
        let tridiag = only(best(5, reduce));
        let (t, hh) = reduce();
        let (mut diag, mut off) = (Diag::<f64>::zeros(d), Diag::<f64>::zeros(d));
        for i in 0..d {
            diag[i] = t[(i, i)];
            if i + 1 < d {
                off[i] = t[(i + 1, i)];
            }
        }
        let conquer = || {
            let mut vectors = Mat::<f64>::zeros(d, d);
            let mut memory = MemBuffer::new(self_adjoint_evd_scratch::<f64>(
                d,
                ComputeEigenvectors::Yes,
                par,
                Default::default(),
            ));
            let mut values = Diag::zeros(d);
            let _ = tridiagonal_self_adjoint_evd(
                diag.as_ref(),
                off.as_ref(),
                values.as_mut(),
                Some(vectors.as_mut()),
                par,
                MemStack::new(&mut memory),
                Default::default(),
            );
            vectors
        };
        let dc = only(best(5, conquer));
        let vectors = conquer();
        let back = best(5, || {
            let mut v = vectors.clone();
            let mut memory =
                MemBuffer::new(householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<
                    f64,
                >(d - 1, bs, d));
            householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
                t.as_ref().submatrix(1, 0, d - 1, d - 1),
                hh.as_ref(),
                Conj::No,
                v.as_mut().subrows_mut(1, d - 1),
                par,
                MemStack::new(&mut memory),
            );
            v[(0, 0)]
        });
        println!(
            "{pieces:>8} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>10.1} {:>10.1}",
            cholesky.0 * 1e3,
            solve.0 * 1e3,
            product.0 * 1e3,
            evd.0 * 1e3,
            tridiag.0 * 1e3,
            dc.0 * 1e3,
            back.0 * 1e3
        );
    }
    Ok(())
}
