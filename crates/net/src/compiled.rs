//! The heavy work of networks, compiled in this crate for each precision.
//!
//! A generic function is compiled by every crate that calls it, again and with that crate's settings. What passes
//! through layers therefore goes through a trait, whose implementations for `f32` and `f64` are compiled here, once.

use crate::{
    Clip, Data, NetSpec, Network, Result,
    attack::{
        inversion::{self, Inversion, Reconstruction},
        membership,
        sight::Sight,
    },
    device::Accounts,
    engine::{self, BatchGradient, Prediction, Workers},
    layer::Draws,
    leak::{self, Measure, RecordLeak},
    loss::Agreement,
    train::{StepReport, Trainer},
};
use leakscope_core::fisher::Directions;

/// What passes through the layers of a network of this precision.
pub trait Compiled: Sized {
    #[doc(hidden)]
    fn build(spec: NetSpec) -> Result<Network<Self>>;

    #[doc(hidden)]
    fn calibrate_statistics(net: &mut Network<Self>, public: &Data<Self>) -> Result<()>;

    #[doc(hidden)]
    fn predict(net: &Network<Self>, records: &[Self]) -> Result<Prediction>;

    #[doc(hidden)]
    fn predict_data(net: &Network<Self>, data: &Data<Self>) -> Result<Prediction>;

    #[doc(hidden)]
    fn gradient(net: &Network<Self>, data: &Data<Self>, records: &[usize]) -> Result<BatchGradient<Self>>;

    #[doc(hidden)]
    #[allow(private_interfaces)] // called from this crate alone
    fn judged(net: &Network<Self>, data: &Data<Self>) -> Result<Vec<(f64, Option<Agreement>)>>;

    #[doc(hidden)]
    #[allow(private_interfaces)] // called from this crate alone
    fn clipped_gradient(
        workers: &Workers<Self>,
        net: &Network<Self>,
        data: &Data<Self>,
        records: &[usize],
        clip: Clip,
        shift: Option<&[f64]>,
        draws: Option<Draws>,
    ) -> Result<BatchGradient<Self>>;

    #[doc(hidden)]
    #[allow(private_interfaces)] // called from this crate alone
    fn measure(
        workers: &Workers<Self>,
        net: &Network<Self>,
        data: &Data<Self>,
        records: &[usize],
        measures: &Measure,
        draws: Option<Draws>,
    ) -> Result<Vec<RecordLeak>>;

    #[doc(hidden)]
    #[allow(private_interfaces)] // called from this crate alone
    fn account(
        workers: &Workers<Self>,
        net: &Network<Self>,
        data: &Data<Self>,
        records: &[usize],
        measures: (&Measure, Option<Draws>),
        accounts: &mut Accounts,
    ) -> Result<()>;

    #[doc(hidden)]
    fn information_along(
        net: &Network<Self>,
        data: &Data<Self>,
        records: &[usize],
        sets: &[Directions],
        measures: &Measure,
    ) -> Result<Vec<Vec<Vec<f64>>>>;

    #[doc(hidden)]
    fn alignments(net: &Network<Self>, data: &Data<Self>, records: &[usize], v: &[Self]) -> Result<Vec<f64>>;

    #[doc(hidden)]
    fn invert(
        net: &Network<Self>,
        sights: &[Sight<Self>],
        how: &Inversion,
        watch: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<Vec<Reconstruction>>;

    #[doc(hidden)]
    fn train_step(trainer: &mut Trainer<'_, Self>) -> Result<StepReport>;
}

macro_rules! compiled {
    ($real:ty) => {
        impl Compiled for $real {
            #[inline(never)]
            fn build(spec: NetSpec) -> Result<Network<Self>> {
                Network::build_generic(spec)
            }

            #[inline(never)]
            fn calibrate_statistics(net: &mut Network<Self>, public: &Data<Self>) -> Result<()> {
                net.calibrate_statistics_generic(public)
            }

            #[inline(never)]
            fn predict(net: &Network<Self>, records: &[Self]) -> Result<Prediction> {
                engine::predict_generic(net, records)
            }

            #[inline(never)]
            fn predict_data(net: &Network<Self>, data: &Data<Self>) -> Result<Prediction> {
                engine::predict_data_generic(net, data)
            }

            #[inline(never)]
            fn gradient(
                net: &Network<Self>,
                data: &Data<Self>,
                records: &[usize],
            ) -> Result<BatchGradient<Self>> {
                engine::gradient_generic(net, data, records)
            }

            #[allow(private_interfaces)]
            #[inline(never)]
            fn judged(net: &Network<Self>, data: &Data<Self>) -> Result<Vec<(f64, Option<Agreement>)>> {
                engine::judged_generic(net, data)
            }

            #[allow(private_interfaces)]
            #[inline(never)]
            fn clipped_gradient(
                workers: &Workers<Self>,
                net: &Network<Self>,
                data: &Data<Self>,
                records: &[usize],
                clip: Clip,
                shift: Option<&[f64]>,
                draws: Option<Draws>,
            ) -> Result<BatchGradient<Self>> {
                engine::clipped_gradient_generic(workers, net, data, records, clip, shift, draws)
            }

            #[allow(private_interfaces)]
            #[inline(never)]
            fn measure(
                workers: &Workers<Self>,
                net: &Network<Self>,
                data: &Data<Self>,
                records: &[usize],
                measures: &Measure,
                draws: Option<Draws>,
            ) -> Result<Vec<RecordLeak>> {
                leak::measure_generic(workers, net, data, records, measures, draws)
            }

            #[allow(private_interfaces)]
            #[inline(never)]
            fn account(
                workers: &Workers<Self>,
                net: &Network<Self>,
                data: &Data<Self>,
                records: &[usize],
                measures: (&Measure, Option<Draws>),
                accounts: &mut Accounts,
            ) -> Result<()> {
                workers.with(|dev| leak::account(dev, net, data, records, measures, accounts))
            }

            #[inline(never)]
            fn information_along(
                net: &Network<Self>,
                data: &Data<Self>,
                records: &[usize],
                sets: &[Directions],
                measures: &Measure,
            ) -> Result<Vec<Vec<Vec<f64>>>> {
                leak::information_along_generic(net, data, records, sets, measures)
            }

            #[inline(never)]
            fn alignments(
                net: &Network<Self>,
                data: &Data<Self>,
                records: &[usize],
                v: &[Self],
            ) -> Result<Vec<f64>> {
                membership::alignments_generic(net, data, records, v)
            }

            #[inline(never)]
            fn invert(
                net: &Network<Self>,
                sights: &[Sight<Self>],
                how: &Inversion,
                watch: &(dyn Fn(u64) -> bool + Sync),
            ) -> Result<Vec<Reconstruction>> {
                inversion::invert_generic(net, sights, how, watch)
            }

            #[inline(never)]
            fn train_step(trainer: &mut Trainer<'_, Self>) -> Result<StepReport> {
                trainer.step_generic()
            }
        }
    };
}

compiled!(f32);
compiled!(f64);
