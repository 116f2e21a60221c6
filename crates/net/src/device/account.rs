//! Accounts of records on a GPU: what every record has given away, added up where it is computed. The formulas are those
//! of `train::track`, which has them for the processor.

use super::{Clips, Device, Flags, Index, ProbeSums, Scalars, address};
use crate::{Real, error::Result, poisson, renyi};

/// Columns of numbers per record, in the order of `train::track`: measured, trace, square, probes, plain, plain square, plain
/// probes.
const COLUMNS: usize = 7;

/// Accounts of all records, and the tables that they are computed by.
#[derive(Debug)]
pub(crate) struct Accounts {
    pub(crate) columns: [Scalars; COLUMNS],
    /// Records × orders.
    pub(crate) renyi: Scalars,
    followed: Flags,
    orders: Scalars,
    /// The coefficients of Poisson sampling and the Rényi divergences, with the steps of both tables; absent without sampling.
    tables: Option<([Scalars; 2], [f64; 2])>,
    rate: f64,
    noise: f64,
    /// The smallest number of a record whose numbers are not finite.
    bad: Index,
}

/// What one step tells of the records of a piece.
#[derive(Debug)]
pub(crate) struct StepMeasures<'a> {
    pub(crate) records: &'a Index,
    pub(crate) probes: (&'a ProbeSums, usize),
    /// `‖J_gᵀg‖²` with respect to the records, and to their labels where they are secret.
    pub(crate) pulled: (&'a Scalars, Option<&'a Scalars>),
    pub(crate) clips: &'a Clips,
}

/// No record.
const NONE: u32 = u32::MAX;

impl<T: Real> Device<T> {
    /// Copies accounts to the device; absent on the processor.
    pub(crate) fn accounts(
        &self,
        columns: [&[f64]; COLUMNS],
        (renyi, followed): (&[f64], &[bool]),
        tables: Option<(&poisson::Table, &renyi::Table)>,
        noise: f64,
    ) -> Option<Accounts> {
        self.gpu?;
        let tables_far = tables.map(|(p, r)| {
            let ((rate_step, pairs), (renyi_step, rows)) = (p.rows(), r.rows());
            ([self.upload_scalars(&pairs), self.upload_scalars(&rows)], [rate_step, renyi_step])
        });
        Some(Accounts {
            columns: columns.map(|c| self.upload_scalars(c)),
            renyi: self.upload_scalars(renyi),
            followed: self.upload_flags(followed),
            orders: self.upload_scalars(&renyi::ORDERS.map(f64::from)),
            tables: tables_far,
            rate: tables.map_or(1.0, |(p, _)| p.rate()),
            noise,
            bad: self.upload_index(&[NONE]),
        })
    }

    /// A copy that can be dropped where a step fails.
    pub(crate) fn copy_accounts(&self, accounts: &Accounts) -> Accounts {
        Accounts {
            columns: accounts.columns.clone(),
            renyi: accounts.renyi.clone(),
            followed: accounts.followed.clone(),
            orders: accounts.orders.clone(),
            tables: accounts.tables.clone(),
            bad: self.upload_index(&[NONE]),
            ..*accounts
        }
    }

    /// Adds what a step tells.
    pub(crate) fn account(&self, told: &StepMeasures<'_>, to: &mut Accounts) {
        let Some(gpu) = self.gpu else { return };
        let (n, clips) = (told.records.len(), told.clips);
        let (tables, steps) = match &to.tables {
            Some(([p, r], steps)) => ([p.at(), p.len() as u64 / 2, r.at(), r.len() as u64], *steps),
            None => ([0; 4], [1.0; 2]),
        };
        let own = [to.renyi.at(), address(to.followed.far.as_ref()), to.orders.at(), to.bad.at()];
        let from = [
            told.records.at(),
            n as u64,
            told.probes.0.sum.at(),
            told.probes.0.square.at(),
            (told.probes.1 as f64).to_bits(),
            told.pulled.0.at(),
            told.pulled.1.map_or(0, Scalars::at),
            clips.norm.at(),
            clips.s.at(),
            clips.slope.at(),
            clips.precision.to_bits(),
            to.noise.to_bits(),
            to.rate.to_bits(),
        ];
        let columns: Vec<u64> = to.columns.iter().map(Scalars::at).collect();
        let steps = steps.map(f64::to_bits);
        let sizes = [renyi::ORDERS.len() as u64];
        gpu.each::<T>("account", n, &[&columns[..], &own, &from, &tables, &steps, &sizes].concat());
    }

    /// The first record whose numbers are not finite.
    pub(crate) fn bad_account(&self, accounts: &Accounts) -> Result<Option<usize>> {
        match (self.gpu, &accounts.bad.far) {
            (Some(gpu), Some(memory)) => {
                let bad = gpu.download::<u32>(memory)?;
                Ok(bad.first().filter(|b| **b != NONE).map(|b| *b as usize))
            }
            _ => Ok(None),
        }
    }
}
