//! A run whose gradients are perturbed by what public records tell ([`crate::perturb`]).

use super::{Trainer, checkpoint};
use crate::{
    Backend, Clip, Data, Real,
    engine::BatchGradient,
    error::{Error, Result},
    leak::{Measure, RecordLeak},
    perturb::{Added, Learned, Lesson, Perturbed, Perturbing, map_gradient, map_measure},
};

impl<'d, T: Real> Trainer<'d, T> {
    /// Perturbs the gradients of this run by what public records tell at every step; before its first step, and again where
    /// it goes on from a checkpoint. The labels of the public records are taken to be known.
    pub fn perturb(&mut self, how: Perturbing, public: &'d Data<T>) -> Result<()> {
        how.check()?;
        public.check(&self.net)?;
        if self.data.members().is_some() {
            let reason = "records that belong together are clipped as one, without a perturbation".to_owned();
            return Err(Error::Format { subject: "the perturbation", reason });
        }
        if self.config.privacy.is_none() {
            let reason = "without noise a gradient gives everything away: give clip and sigma".to_owned();
            return Err(Error::Format { subject: "the perturbation", reason });
        }
        if let Backend::Cuda(card) = self.net.backend()
            && card.shortens()
        {
            let reason = "lengths of perturbed gradients come out of passes, and a clip must not rest on tf32: compute in f32";
            return Err(Error::Format { subject: "the perturbation", reason: reason.to_owned() });
        }
        let now = (how, checkpoint::fingerprint(public));
        if self.perturbed_before.map_or(self.step > 0, |before| before != now) {
            return Err(Error::OtherRun { setting: "perturbation" });
        }
        self.perturbing = Some((how, public));
        Ok(())
    }

    /// Whether the run goes on from one with a perturbation, and was not given it again.
    pub fn lacks_perturbation(&self) -> bool {
        self.perturbing.is_none() && self.perturbed_before.is_some()
    }

    /// How gradients are perturbed, and by how many public records.
    pub fn perturbing(&self) -> Option<(Perturbing, usize)> {
        self.perturbing.map(|(how, public)| (how, public.len()))
    }

    /// The perturbation of the last step; absent without one.
    pub fn perturbed(&self) -> Option<Perturbed> {
        self.perturbed
    }

    /// What the last step of this process added to every gradient, over all parameters; absent where it added nothing, or to
    /// each record its own.
    pub fn added(&self) -> Option<&[f64]> {
        self.added.as_deref()
    }

    /// What is added to every record's gradient in this step.
    pub(super) fn learn_perturbation(&self) -> Result<Option<Learned<T>>> {
        match (self.perturbing, self.perturbed_before, self.config.privacy) {
            (Some((how, public)), _, Some(p)) => {
                let lesson = Lesson {
                    workers: &self.workers,
                    net: &self.net,
                    public,
                    clip: p.clip,
                    how,
                    step: self.step,
                    // other probes at every step, and others than those of the accounts
                    seed: self.config.seed ^ (self.step + 1).wrapping_mul(0xd1b5_4a32_d192_ed03),
                    before: &self.perturbation,
                };
                lesson.learn().map(Some)
            }
            (None, Some(_), _) => Err(Error::OtherRun { setting: "perturbation" }),
            (None, None, _) | (Some(_), _, None) => Ok(None),
        }
    }

    /// What records give away at the parameters of this step.
    pub(super) fn measured(
        &self,
        records: &[usize],
        measures: Measure,
        added: Option<&Added<T>>,
    ) -> Result<Vec<RecordLeak>> {
        // with the values that dropout left out in this step: whoever knows them learns no less
        let (workers, net, data, draws) = (&self.workers, &self.net, self.data, self.draws());
        match added.and_then(Added::map) {
            Some(map) => map_measure((workers, net), data, records, (&measures, map), draws),
            None => {
                let measures = Measure { shift: added.and_then(Added::constant).cloned(), ..measures };
                T::measure(workers, net, data, records, &measures, draws)
            }
        }
    }

    /// The sum of what the drawn records release.
    pub(super) fn released(
        &self,
        drawn: &[usize],
        clip: Clip,
        added: Option<&Added<T>>,
    ) -> Result<BatchGradient<T>> {
        let (workers, net, data, draws) = (&self.workers, &self.net, self.data, self.draws());
        match added.and_then(Added::map) {
            Some(map) => map_gradient((workers, net), data, drawn, (clip, map), draws),
            None => {
                let shift = added.and_then(Added::constant).map(Vec::as_slice);
                // on a GPU the sum stays where the step is made
                let workers = self.far.as_ref().unwrap_or(workers);
                T::clipped_gradient(workers, net, data, drawn, clip, shift, draws)
            }
        }
    }
}
