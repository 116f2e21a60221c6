//! ε of a run for every record, by the accountants of core.

use super::{Filter, Privacy, Randomness, Sampling, TrainConfig, Trainer};
use crate::{
    Real,
    error::{Result, check},
};
use leakscope_core::dp::{
    Accountant, Adjacency, Calibration, Interval, Mechanism, Target, Unknown, calibrate,
    rdp::{self, RdpEpsilon},
};
use serde::{Deserialize, Serialize};

/// What a private run costs every record, whatever its values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunAccount {
    /// Which two data sets cannot be told apart.
    pub neighbours: Neighbours,
    /// The δ of both ε.
    pub delta: f64,
    /// By privacy loss distributions: the worst case lies inside. Absent where the noise is so small that the grid does
    /// not fit into memory.
    pub pld: Option<Interval>,
    /// By Rényi divergences over real orders: never below the former.
    pub rdp: RdpEpsilon,
    /// What the filter lets no record pass; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<f64>,
}

impl RunAccount {
    /// The ε to state: the smallest of those that all hold.
    pub fn epsilon(&self) -> f64 {
        let filter = self.filter.unwrap_or(f64::INFINITY);
        self.pld.map_or(f64::INFINITY, |p| p.upper).min(self.rdp.epsilon).min(filter)
    }

    fn nothing(neighbours: Neighbours, delta: f64) -> Self {
        let rdp = RdpEpsilon { epsilon: 0.0, alpha: 2.0 };
        Self { neighbours, delta, pld: Some(Interval { lower: 0.0, upper: 0.0 }), rdp, filter: None }
    }
}

/// Which two data sets a run does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbours {
    /// One record is there or is not.
    AddRemove,
    /// One record is there or an empty one is, with a gradient of zero. Shuffled batches have a fixed size, so that
    /// one record more or less would move all others to other batches.
    ZeroOut,
}

impl Neighbours {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AddRemove => "add-remove",
            Self::ZeroOut => "zero-out",
        }
    }
}

impl TrainConfig {
    /// The neighbours of its privacy statement. A step that divides by a share of the number of records tells that
    /// number, so that one record more or less could be seen: it is public then, and neighbours have the same number.
    pub fn neighbours(&self) -> Neighbours {
        match (self.sampling, self.divisor) {
            (Sampling::Poisson { .. }, Some(_)) => Neighbours::AddRemove,
            (Sampling::Poisson { .. }, None) | (Sampling::Shuffle { .. }, _) => Neighbours::ZeroOut,
        }
    }

    /// What a privacy statement must say about sampling and neighbours. `unit` is what is drawn and clipped as one, in a
    /// word: a record, or somebody with all records.
    pub fn statement(&self, unit: &str) -> String {
        match (self.sampling, self.divisor) {
            (Sampling::Poisson { .. }, Some(_)) => format!(
                "each step draws every {unit} independently (Poisson sampling), rate and divisor were given, and \
                 neighbouring data sets differ in one {unit} that is there or is not (add/remove adjacency)"
            ),
            (Sampling::Poisson { .. }, None) => format!(
                "each step draws every {unit} independently (Poisson sampling); rate and divisor were computed from the \
                 number of {unit}s, which is public then, and neighbouring data sets differ in one {unit} replaced by an \
                 empty one (zero-out adjacency)"
            ),
            (Sampling::Shuffle { .. }, _) => format!(
                "batches come from a shuffled order: no amplification by sampling is claimed, every {unit} takes part \
                 at most once in an epoch, and neighbouring data sets differ in one {unit} replaced by an empty one \
                 (zero-out adjacency)"
            ),
        }
    }
}

impl Sampling {
    /// The sampling rate of a release and the number of releases that `steps` steps are to one record. A shuffled epoch
    /// uses every record once: one release without sampling.
    fn releases(self, steps: u64, records: usize) -> (f64, u64) {
        match self {
            Self::Poisson { rate } => (rate, steps),
            Self::Shuffle { batch } => (1.0, steps.div_ceil((records / batch.max(1)).max(1) as u64)),
        }
    }
}

impl Privacy {
    /// Noise over the longest gradient that the clip lets through: what accountants call the noise multiplier.
    fn multiplier(&self) -> f64 {
        self.sigma * self.clip.unit() / self.clip.longest().unwrap_or(f64::INFINITY)
    }
}

/// What `steps` steps over `records` records cost; nothing is stated of training in the open, or with noise from a seed.
///
/// # Guarantee
/// The sequence of all parameters is (ε, δ)-DP for [`RunAccount::epsilon`], for the account's neighbours and under the
/// run's [`TrainConfig::statement`].
pub fn account(config: &TrainConfig, steps: u64, records: usize) -> Result<Option<RunAccount>> {
    let Some(privacy) = config.privacy.filter(|_| config.randomness == Randomness::System) else {
        return Ok(None);
    };
    let delta = config.delta;
    let neighbours = config.neighbours();
    if steps == 0 {
        return Ok(Some(RunAccount::nothing(neighbours, delta)));
    }
    let accountant = accountant(config.sampling, privacy, steps, records)?;
    let rdp = rdp::epsilon(accountant.steps(), accountant.adjacency(), delta)?;
    let filter = config.filter.as_ref().map(Filter::largest);
    Ok(Some(RunAccount { neighbours, delta, pld: accountant.epsilon(delta).ok(), rdp, filter }))
}

fn accountant(sampling: Sampling, privacy: Privacy, steps: u64, records: usize) -> Result<Accountant> {
    let (rate, releases) = sampling.releases(steps, records);
    let mechanism = Mechanism::gaussian(privacy.multiplier(), rate);
    // without sampling, a record against an empty one moves the sum by C, as one more does
    Ok(Accountant::new(Adjacency::AddRemove).with(mechanism, releases)?)
}

/// The smallest σ, to four digits, for which `steps` steps cost at most `epsilon` at δ.
///
/// # Guarantee
/// With it, [`account`] of the whole run states at most `epsilon`.
pub fn sigma_for(
    epsilon: f64,
    delta: f64,
    clip: crate::Clip,
    sampling: Sampling,
    steps: u64,
    records: usize,
) -> Result<f64> {
    clip.check()?;
    sampling.check(records)?;
    check(epsilon > 0.0 && epsilon.is_finite(), "epsilon", epsilon, "positive and finite")?;
    let (rate, steps) = sampling.releases(steps, records);
    let Calibration { sigma, .. } =
        calibrate(Target::Epsilon { epsilon, delta }, Unknown::Sigma { rate, steps }, Adjacency::AddRemove)?;
    // in units of C; two thousandths cover the width of the account's own interval
    let sigma = 1.002 * sigma * clip.longest().unwrap_or(f64::INFINITY) / clip.unit();
    let unit = 10_f64.powf(sigma.log10().floor() - 3.0);
    Ok((sigma / unit).ceil() * unit)
}

impl<T: Real> Trainer<'_, T> {
    /// What the run so far costs every record, with the steps that were taken back; absent for training in the open. See
    /// [`account`].
    pub fn account(&self) -> Result<Option<RunAccount>> {
        account(&self.config, self.released_steps(), self.data.units())
    }

    /// Membership advantage of the run so far: the largest difference of true- and false-positive rate of any test
    /// whether a record took part. Absent for training in the open, and where it is not known to be below 1.
    pub fn advantage(&self) -> Result<Option<f64>> {
        let Some(privacy) = self.config.privacy.filter(|_| self.is_private()) else { return Ok(None) };
        if self.released_steps() == 0 {
            return Ok(Some(0.0));
        }
        let accountant = accountant(self.config.sampling, privacy, self.released_steps(), self.data.units())?;
        Ok(accountant.advantage().ok().map(|a| a.upper).filter(|a| *a < 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clip, train::Optimizer};

    fn config(sampling: Sampling, clip: Clip, sigma: f64) -> TrainConfig {
        TrainConfig {
            privacy: Some(Privacy { clip, sigma }),
            seed: 1,
            ..TrainConfig::open(Optimizer::Sgd { momentum: 0.0 }, 0.1, sampling)
        }
    }

    /// dp_accounting 0.6.0: σ = 1.1, q = 0.01, 1,000 steps, δ = 1e-5 has ε = 1.51536 (PLD at 1e-5) and 1.71177 (RDP);
    /// plain Gaussians are known in closed form (Balle and Wang 2018).
    #[test]
    fn a_run_costs_what_the_accountants_say() {
        let hard = Clip::Hard { bound: 3.0 };
        let poisson = config(Sampling::Poisson { rate: 0.01 }, hard, 1.1);
        let a = account(&poisson, 1000, 60_000).unwrap().unwrap();
        let pld = a.pld.unwrap();
        assert!(pld.lower < 1.515_37 && pld.upper > 1.515 && pld.relative_width() < 2e-3, "{pld:?}");
        assert!((a.rdp.epsilon / 1.711_77 - 1.0).abs() < 5e-3, "{:?}", a.rdp);
        assert_eq!(a.epsilon(), pld.upper);

        // a shuffled epoch is one release, whatever the batch, and an unfinished one counts as a whole
        let shuffled = config(Sampling::Shuffle { batch: 100 }, hard, 2.0);
        let (a, b) = (account(&shuffled, 21, 1000), account(&shuffled, 30, 1000));
        let (a, b) = (a.unwrap().unwrap(), b.unwrap().unwrap());
        assert_eq!(a, b);
        // μ = √3/2, to 40 digits by mpmath; `dp::gaussian::epsilon` has nine of them
        let exact = 3.708_634_930_511_883;
        assert!(a.pld.unwrap().contains(exact), "{a:?} {exact}");

        // the smooth clip lets longer gradients through
        let smooth =
            account(&config(Sampling::Poisson { rate: 0.01 }, Clip::Gelu { bound: 3.0 }, 1.1), 1000, 60_000);
        assert!(smooth.unwrap().unwrap().epsilon() > 1.1 * pld.upper);
    }

    #[test]
    fn nothing_costs_nothing_and_no_noise_has_no_price() {
        let mut c = config(Sampling::Poisson { rate: 0.01 }, Clip::Hard { bound: 1.0 }, 1.0);
        assert_eq!(account(&c, 0, 10).unwrap().unwrap().epsilon(), 0.0);
        c.privacy = None;
        assert_eq!(account(&c, 10, 10).unwrap(), None);
        // noise far too small for a grid still has a price, and it is no NaN
        c.privacy = Some(Privacy { clip: Clip::Hard { bound: 1.0 }, sigma: 1e-3 });
        let a = account(&c, 100_000, 10).unwrap().unwrap();
        assert!(a.epsilon() > 1e3 && a.epsilon().is_finite(), "{a:?}");
    }

    #[test]
    fn the_noise_for_a_target_meets_it_closely() {
        for (sampling, clip) in [
            (Sampling::Poisson { rate: 0.02 }, Clip::Gelu { bound: 0.5 }),
            (Sampling::Shuffle { batch: 50 }, Clip::Hard { bound: 2.0 }),
        ] {
            let sigma = sigma_for(1.0, 1e-5, clip, sampling, 200, 1000).unwrap();
            let epsilon = account(&config(sampling, clip, sigma), 200, 1000).unwrap().unwrap().epsilon();
            assert!(epsilon <= 1.0 && epsilon > 0.98, "{sigma}: {epsilon}");
        }
        assert!(
            sigma_for(0.0, 1e-5, Clip::Hard { bound: 1.0 }, Sampling::Poisson { rate: 0.1 }, 1, 9).is_err()
        );
    }
}
