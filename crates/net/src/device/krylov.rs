//! Bases of Lanczos' iteration on a GPU, in double precision: the vectors stay there, two numbers a record come back.

use super::{Buf, Device, cuda::Memory};
use crate::{Real, error::Result, pass::Pulled};

/// The bases of the records of a piece, one vector of each for every step.
#[derive(Debug)]
pub(crate) struct Krylov {
    records: usize,
    widths: [usize; 2],
    steps: Vec<Memory>,
}

impl<T: Real> Device<T> {
    /// Bases that start from unit vectors; absent on the processor, and where so many steps have no room.
    pub(crate) fn krylov(
        &self,
        records: usize,
        widths: [usize; 2],
        steps: usize,
        starts: &[f64],
    ) -> Option<Krylov> {
        let gpu = self.gpu?;
        let fits = size_of_val(starts).saturating_mul(steps + 1) < gpu.free_memory() / 2;
        fits.then(|| Krylov { records, widths, steps: vec![gpu.upload(starts)] })
    }

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

    /// Makes the products with the last vectors orthogonal to all vectors, and the next ones of what is left; returns for
    /// every record the part along the last vector and the length of what is left.
    pub(crate) fn krylov_advance(
        &self,
        krylov: &mut Krylov,
        products: &Pulled<T>,
    ) -> Result<Vec<(f64, f64)>> {
        let (n, [d, k]) = (krylov.records, krylov.widths);
        let Some(gpu) = self.gpu else { return Ok(Vec::new()) };
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
        let along = self.download_scalars(&along)?;
        Ok(along.into_iter().zip(self.download_scalars(&fresh)?).collect())
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
        let all: Vec<_> = (0..64).map(|_| dev.take(1 << 31)).collect();
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
