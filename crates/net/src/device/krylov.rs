//! Lanczos' iteration on a GPU, in double precision: the vectors stay there, and so does what they tell of eigenvalues. The
//! host learns after every step whether all have ended.

use super::{Buf, Device, Pulled, Scalars, cuda::Memory};
use crate::{Real, error::Result};

/// When the iteration of a record ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    /// What rounding leaves behind of a product, as a share of the operator's size.
    pub(crate) rounding: f64,
    pub(crate) dimension: usize,
    /// Of the relative residual.
    pub(crate) tolerance: f64,
}

/// The bases of the records of a piece, one vector of each for every step.
#[derive(Debug)]
pub(crate) struct Krylov {
    records: usize,
    widths: [usize; 2],
    steps: Vec<Memory>,
    ritz: Ritz,
}

/// What the iterations have found: their operators in the bases so far.
#[derive(Debug)]
pub(super) struct Ritz {
    /// Four numbers of every step and record: the tridiagonal matrix (diagonal, beside it), and room to solve with it.
    pub(super) matrix: Scalars,
    /// Steps of every record, and whether it has ended.
    pub(super) state: Scalars,
    /// Largest Ritz values, then their residuals.
    pub(super) largest: Scalars,
}

impl Krylov {
    /// Bases of one vector for each record.
    pub(super) fn from(records: usize, widths: [usize; 2], start: Memory, ritz: Ritz) -> Self {
        Self { records, widths, steps: vec![start], ritz }
    }
}

impl<T: Real> Device<T> {
    /// The last vectors, as tangents of the records and of their labels.
    pub(crate) fn krylov_current(&mut self, krylov: &Krylov) -> (Buf<T>, Option<Buf<T>>) {
        let (n, [d, k]) = (krylov.records, krylov.widths);
        let (x, y) = (self.take(n * d), (k > 0).then(|| self.take(n * k)));
        if let (Some(gpu), Some(q)) = (self.gpu, krylov.steps.last()) {
            let args = [x.at(), y.as_ref().map_or(0, Buf::at), q.address(), n as u64, d as u64, k as u64];
            gpu.each::<T>("krylov_current", n * (d + k), &args);
        }
        (x, y)
    }

    /// Makes the products with the last vectors orthogonal to all vectors, and the next ones of what is left; returns whether
    /// the iterations of all records have ended.
    pub(crate) fn krylov_advance(
        &self,
        krylov: &mut Krylov,
        products: &Pulled<T>,
        stop: Stop,
    ) -> Result<bool> {
        let (n, [d, k]) = (krylov.records, krylov.widths);
        let Some(gpu) = self.gpu else { return Ok(true) };
        let [along, fresh] = [self.scalars(n), self.scalars(n)];
        let next = gpu.take::<f64>(n * (d + k));
        let addresses: Vec<u64> = krylov.steps.iter().map(Memory::address).collect();
        let basis = gpu.upload(&addresses);
        let args = [
            next.address(),
            along.at(),
            fresh.at(),
            basis.address(),
            addresses.len() as u64,
            products.input.at(),
            products.label.at(),
            products.units.at(),
            products.label_units.at(),
            d as u64,
            k as u64,
        ];
        gpu.rows::<T>("krylov_advance", n, d + k, &args);
        krylov.steps.push(next);
        let ritz = &krylov.ritz;
        let open = gpu.upload(&[0u32]);
        let args = [
            ritz.matrix.at(),
            ritz.state.at(),
            ritz.largest.at(),
            open.address(),
            along.at(),
            fresh.at(),
            n as u64,
            stop.rounding.to_bits(),
            stop.dimension as u64,
            stop.tolerance.to_bits(),
        ];
        gpu.each::<T>("ritz", n, &args);
        Ok(gpu.download::<u32>(&open)? == [0])
    }

    /// The largest Ritz value of every record and its relative residual.
    pub(crate) fn krylov_largest(&self, krylov: &Krylov) -> Result<Vec<(f64, f64)>> {
        let ritz = self.download_scalars(&krylov.ritz.largest)?;
        let (values, residuals) = ritz.split_at(krylov.records);
        Ok(values.iter().copied().zip(residuals.iter().copied()).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Backend, device::Device};

    /// More than a card holds is an error at the next download, and the question after it is answered.
    #[test]
    fn too_much_for_a_gpu_is_an_error_and_no_end() {
        let Ok(backend) = Backend::cuda(0) else {
            eprintln!("SKIPPED on a GPU: there is none");
            return;
        };
        let mut dev: Device<f64> = backend.device();
        // each as long as kernels can count, together more than any card holds
        let all: Vec<_> = (0..64).map(|_| dev.take((1 << 31) - 1)).collect();
        let one = dev_one(&mut dev);
        let error = dev.download(&one).unwrap_err().to_string();
        assert!(error.contains("out of memory") && error.contains("on the processor"), "{error}");
        drop(all);
        let one = dev_one(&mut dev);
        assert_eq!(dev.download(&one).unwrap(), [1.0]);
        let _too_long = dev.take(1 << 33);
        assert!(dev.download(&one).unwrap_err().to_string().contains("a smaller batch"));
    }

    fn dev_one(dev: &mut Device<f64>) -> crate::device::Buf<f64> {
        dev.upload(&[1.0])
    }
}
