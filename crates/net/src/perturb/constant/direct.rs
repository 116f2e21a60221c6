//! A constant as it is, learned where the perturbed network is.

use super::Coordinates;
use crate::{
    Real,
    device::{Buf, Device, Flags},
    optimizer::Optimizer,
    perturb::{Lesson, Perturbing},
};

/// c over all parameters, with the moments of Adam of this lesson.
pub(super) struct Direct<T> {
    c: Buf<T>,
    moments: Vec<Buf<T>>,
    updates: u64,
    learned: Flags,
}

impl<T: Real> Direct<T> {
    /// As the step before left it, or zeros.
    pub(super) fn new(lesson: &Lesson<'_, T>) -> Self {
        let p = lesson.net.parameter_count();
        let start = lesson.start(p).unwrap_or_else(|| vec![0.0; p]);
        lesson.workers.with(|dev| {
            let c = dev.upload(&start.iter().map(|&v| T::from_f64(v)).collect::<Vec<T>>());
            let moments = vec![dev.zeros(p), dev.zeros(p)];
            Self { c, moments, updates: 0, learned: dev.upload_flags(&vec![true; p]) }
        })
    }
}

impl<T: Real> Coordinates<T> for Direct<T> {
    fn constant(&self, dev: &mut Device<T>) -> Buf<T> {
        dev.copy(self.c.all())
    }

    fn gradient(&self, _: &mut Device<T>, r: Buf<T>) -> Buf<T> {
        r
    }

    fn update(&mut self, dev: &Device<T>, (sum, unit): (&mut Buf<T>, f64), how: &Perturbing) {
        let Self { c, moments, updates, learned } = self;
        dev.add_decay(unit, how.weight_decay, c, sum);
        dev.update(Optimizer::adam(), *updates, how.learning_rate, sum, learned, moments, c);
        *updates += 1;
    }
}
