//! A step of training: noise, the optimiser's update, and whether all is finite.

use super::{Buf, Device, Flags, address, cuda::magic};
use crate::{Real, error::Result, grid::Grid, optimizer::Optimizer, random::Generator};
use rayon::prelude::*;

impl<T: Real> Device<T> {
    /// Copies truth values to the device.
    pub(crate) fn upload_flags(&self, values: &[bool]) -> Flags {
        if let Some(gpu) = self.gpu {
            let bytes: Vec<u8> = values.iter().map(|f| u8::from(*f)).collect();
            return Flags { data: Vec::new(), far: Some(gpu.upload(&bytes)) };
        }
        Flags { data: values.to_vec(), far: None }
    }

    /// Of each buffer, whether every value is finite.
    pub(crate) fn all_finite(&self, all: &[&Buf<T>]) -> Result<Vec<bool>> {
        if let Some(gpu) = self.gpu {
            let bad = gpu.upload(&vec![0u32; all.len()]);
            for (i, x) in all.iter().enumerate() {
                let flag = bad.address() + 4 * i as u64;
                gpu.each::<T>("all_finite", x.len(), &[flag, x.at(), x.len() as u64]);
            }
            return Ok(gpu.download::<u32>(&bad)?.iter().map(|bad| *bad == 0).collect());
        }
        Ok(all.iter().map(|x| x.data.iter().all(|v| v.to_f64().is_finite())).collect())
    }

    /// `x ← x + s·N(0, 1)` where a flag is set, one normal for each of them, in double precision and rounded to the grid.
    pub(crate) fn add_noise(&self, rng: &mut Generator, grid: Grid, flags: &Flags, x: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            // the stream keys a cipher on the device, which draws the normals: the same distribution, and as secret
            let mut word = || u64::from(rng.bits()) | u64::from(rng.bits()) << 32;
            let [k0, k1, k2, k3] = [word(), word(), word(), word()];
            let n = x.len();
            let (s, g) = (grid.deviation.to_bits(), grid.step.to_bits());
            let args = [x.at(), address(flags.far.as_ref()), n as u64, s, g, k0, k1, k2, k3];
            return gpu.each::<T>("add_noise", n.div_ceil(8), &args);
        }
        for (x, _) in x.data.iter_mut().zip(&flags.data).filter(|(_, f)| **f) {
            *x = T::from_f64(grid.release(x.to_f64(), rng));
        }
    }

    /// Rows of signs from bits, 32 to a word, the lowest first and 0 for plus; every row of `width` starts with a word
    /// of its own.
    pub(crate) fn signs(&mut self, width: usize, bits: &[u32]) -> Buf<T> {
        let words = width.div_ceil(32).max(1);
        let mut out = self.take(bits.len() / words * width);
        if let Some(gpu) = self.gpu {
            let bits = gpu.upload(bits);
            let n = out.len();
            let sizes = [n as u64, width as u64, magic(width), words as u64];
            gpu.each::<T>("signs", n, &[&[out.at(), bits.address()][..], &sizes].concat());
            return out;
        }
        for (row, bits) in out.data.chunks_exact_mut(width.max(1)).zip(bits.chunks_exact(words)) {
            for (row, bits) in row.chunks_mut(32).zip(bits) {
                for (j, o) in row.iter_mut().enumerate() {
                    *o = if bits >> j & 1 == 0 { T::ONE } else { -T::ONE };
                }
            }
        }
        out
    }

    /// For each j of `from..to`, `n` rows of the j-th unit vector of `width`.
    pub(crate) fn unit_rows(&mut self, width: usize, n: usize, from: usize, to: usize) -> Buf<T> {
        let mut out = self.zeros((to - from) * n * width);
        if let Some(gpu) = self.gpu {
            let rows = (to - from) * n;
            gpu.each::<T>("unit_rows", rows, &[out.at(), rows as u64, width as u64, n as u64, from as u64]);
            return out;
        }
        for (row, values) in out.data.chunks_exact_mut(width.max(1)).enumerate() {
            values[from + row / n] = T::ONE;
        }
        out
    }

    /// `g ← scale·g + decay·θ`.
    pub(crate) fn add_decay(&self, scale: f64, decay: f64, theta: &Buf<T>, g: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "add_decay",
                g.len(),
                &[g.at(), theta.at(), g.len() as u64, scale.to_bits(), decay.to_bits()],
            );
        }
        let (scale, decay) = (T::from_f64(scale), T::from_f64(decay));
        g.data.iter_mut().zip(&theta.data).for_each(|(g, &t)| *g = *g * scale + decay * t);
    }

    /// One update of the trained parameters; `step` counts from 0.
    #[allow(clippy::too_many_arguments)] // the state of one update
    pub(crate) fn update(
        &self,
        rule: Optimizer,
        step: u64,
        learning_rate: f64,
        gradient: &Buf<T>,
        trained: &Flags,
        moments: &mut [Buf<T>],
        theta: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let (n, flags) = (theta.len(), address(trained.far.as_ref()));
            let (g, lr) = (gradient.at(), learning_rate.to_bits());
            return match (rule, moments) {
                (Optimizer::Sgd { momentum }, [m]) => {
                    let args = [theta.at(), m.at(), g, flags, n as u64, lr, momentum.to_bits()];
                    gpu.each::<T>("update_momentum", n, &args);
                }
                (Optimizer::Adam { beta1, beta2, epsilon }, [m, v]) => {
                    let t = (step + 1).min(i32::MAX as u64) as i32;
                    let (c1, c2) = (1.0 - beta1.powi(t), 1.0 - beta2.powi(t));
                    let [lr, b1, b2, root, e] =
                        [learning_rate / c1, beta1, beta2, 1.0 / c2.sqrt(), epsilon].map(f64::to_bits);
                    let args = [theta.at(), m.at(), v.at(), g, flags, n as u64, lr, b1, b2, root, e];
                    gpu.each::<T>("update_adam", n, &args);
                }
                // no moments: plain gradient descent
                (Optimizer::Sgd { .. } | Optimizer::Adam { .. }, _) => {
                    gpu.each::<T>("update_plain", n, &[theta.at(), g, flags, n as u64, lr])
                }
            };
        }
        let lr = T::from_f64(learning_rate);
        let (g, theta) = (&gradient.data, &mut theta.data);
        let each = (0..theta.len()).filter(|&i| trained.data[i]);
        match (rule, moments) {
            (Optimizer::Sgd { momentum }, [m]) => {
                let (mu, m) = (T::from_f64(momentum), &mut m.data);
                for i in each {
                    m[i] = mu * m[i] + g[i];
                    theta[i] -= lr * m[i];
                }
            }
            (Optimizer::Adam { beta1, beta2, epsilon }, [m, v]) => {
                let (m, v) = (&mut m.data, &mut v.data);
                let t = (step + 1).min(i32::MAX as u64) as i32;
                let (c1, c2) = (1.0 - beta1.powi(t), 1.0 - beta2.powi(t));
                let lr = T::from_f64(learning_rate / c1);
                let root = T::from_f64(1.0 / c2.sqrt());
                let (b1, b2, e) = (T::from_f64(beta1), T::from_f64(beta2), T::from_f64(epsilon));
                // whole pieces, without a branch: what is not trained keeps its values
                let size = 1 << 15;
                let pieces =
                    theta.par_chunks_mut(size).zip(m.par_chunks_mut(size)).zip(v.par_chunks_mut(size));
                let gradients = g.par_chunks(size).zip(trained.data.par_chunks(size));
                pieces.zip(gradients).for_each(|(((theta, m), v), (g, trained))| {
                    let places = theta.iter_mut().zip(m).zip(v).zip(g.iter().zip(trained));
                    for (((theta, m), v), (&g, &trained)) in places {
                        let (first, second) = (b1 * *m + (T::ONE - b1) * g, b2 * *v + (T::ONE - b2) * g * g);
                        let moved = *theta - lr * first / (second.sqrt() * root + e);
                        *m = if trained { first } else { *m };
                        *v = if trained { second } else { *v };
                        *theta = if trained { moved } else { *theta };
                    }
                });
            }
            // no moments: plain gradient descent
            (Optimizer::Sgd { .. } | Optimizer::Adam { .. }, _) => each.for_each(|i| theta[i] -= lr * g[i]),
        }
    }
}
