//! The statistics of batch norms, from public records.

use crate::{
    Data, Real,
    data::Label,
    error::Result,
    network::{Network, Statistics},
};
use leakscope_core::num::Moments;

impl<T: Real> Network<T> {
    /// Sets the statistics of every batch norm to those of its input over given records, first to last, so that each
    /// sees what the ones before it make of them.
    ///
    /// The statistics are constants of the network from then on, and no accountant counts them: the records must be
    /// public.
    pub fn calibrate_statistics(&mut self, public: &Data<T>) -> Result<()> {
        T::calibrate_statistics(self, public)
    }

    pub(crate) fn calibrate_statistics_generic(&mut self, public: &Data<T>) -> Result<()> {
        public.check(self)?;
        let mut dev = self.device();
        for i in 0..self.statistics.len() {
            let Statistics { position, node, ref mean, .. } = self.statistics[i];
            let channels = mean.len();
            let mut moments = vec![Moments::default(); channels];
            let all: Vec<usize> = (0..public.len()).collect();
            for piece in all.chunks(self.records_at_a_time(public.input().length())) {
                let batch = public.upload(&mut dev, self, piece, Label::Public);
                let values = self.values_before(&mut dev, batch, node);
                for row in dev.download(&values)?.chunks_exact(channels) {
                    moments.iter_mut().zip(row).for_each(|(m, v)| m.add(v.to_f64()));
                }
                dev.put(values);
            }
            let (mean, variance): (Vec<f64>, Vec<f64>) = moments.iter().map(mean_and_variance).unzip();
            self.set_statistics(position, &mean, &variance)?;
        }
        Ok(())
    }
}

/// Mean and variance, the latter over the count, as batch norm has it.
fn mean_and_variance(of: &Moments) -> (f64, f64) {
    (of.mean, of.m2 / of.count.max(1) as f64)
}
