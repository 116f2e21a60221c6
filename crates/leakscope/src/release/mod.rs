//! The release: noise on the coefficients, a statement, a ledger.
//!
//! | file | holds |
//! |---|---|
//! | `refuse` | what cannot be released |
//! | `fitted` | the model in public units, and η with everything that was read off the data counted |
//! | `shaped` | noise that is made for its targets, with a covariance that may be published |
//! | `inference` | standard errors: what noise adds, for everybody, and what sampling adds, for the owner |
//! | `tell` | how often two values are told apart, for the owner and for the statement |
//! | `statement` | what may be said, and what only the owner is told |
//! | [`ledger`] | all releases of the same data, in `private/` |
//! | `withdraw` | a release that never left the house, taken off the account by its owner's decision |
//! | `unit`, `fingerprint` | what their η is counted in, and which data they are of |
//!
//! What is published: coefficients in original units, on a lattice that σ and public units determine; σ from a grid of
//! powers of 2^¼; η as its target, or rounded up to that grid. Nothing else of it depends on the data, but for the
//! names of columns and of levels that enough records have.
//!
//! # Noise with a shape: no digit escapes
//! The published covariance is FFᵀ with a factor F of whole numbers and powers of two. Its shape is public: it does not depend on the
//! records. Its scale is a power of 2^¼ that was chosen on them, as σ is where a target was given: a few bits, which η does not
//! count. The coefficients in public units are `F g k`, `k = round(F⁻¹w/g) + ξ`, g = 2⁻²⁰ and ξ exactly discrete Gaussian
//! ([`leakscope_core::fisher::noise::Noise::release`]); in original units they are sums of these with public multiples. So every
//! digit of a coefficient is a function of k, of that scale and of public numbers, and every value of k is possible whatever
//! the records are. In particular the lattice on which the coefficients lie follows from the published factor and units, and
//! standard deviations of the noise are computed from these as well.

mod edge;
mod fingerprint;
mod fitted;
mod inference;
pub mod ledger;
mod refuse;
mod seal;
mod shaped;
mod statement;
mod system;
mod tell;
mod unit;
mod withdraw;

pub use fingerprint::keyed_fingerprint;
pub use statement::summary;
pub use withdraw::{Withdrawn, withdraw};

use crate::model;
use crate::noise::NoiseOptions;
use crate::request::{Request, Statistic};
use crate::spelling::for_reader;
use crate::{Failure, Result};
use fitted::Fitted;
use leakscope_core::fisher::noise::{Noise, class_covariances};
use leakscope_core::glm::Minimiser;
use leakscope_core::random::{Bits, Seeded};
use leakscope_core::release::Grid;
use leakscope_core::tell::Noise as NoiseToTell;
use leakscope_core::units::public_sigma;
use leakscope_report::format;
use leakscope_report::release::{self as report, Owned};
use leakscope_table::Hooks;
use ledger::{Entry, Held, Keeping};
use serde::{Deserialize, Serialize};
use shaped::{Plan, Shaped};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use system::System;
use unit::Unit;

/// How much noise, and how much leakage in all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Terms {
    /// The noise.
    pub noise: Amount,
    /// Largest η of all releases together.
    pub budget_eta: Option<f64>,
    /// Balancing iterations before the release; 0 for none.
    pub balance: usize,
    /// The attribute to balance; whole records without one.
    pub attribute: Option<String>,
    /// The owner's reason why the data are others than in the ledger, and still the same for it.
    pub data_changed: Option<String>,
    /// The file of the key that seals the ledger, made where it is not there; `private/ledger.key` without one.
    pub ledger_key: Option<PathBuf>,
}

/// How much noise. σ is rounded up to a power of 2^¼ in either case.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// σ, in public units.
    Sigma(f64),
    /// The σ at which a statistic of η is this.
    TargetEta(f64, Statistic),
    /// Noise that is made for its targets; its scale is rounded up likewise.
    Shaped(Box<NoiseOptions>),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Sigma(1.0)
    }
}

/// A release, or why there is none.
pub enum Outcome {
    /// The statement with its owner's copy, and where to publish it: nothing is released or charged before
    /// [`Ready::publish`].
    Ready(Box<Owned>, Box<Ready>),
    /// It would go past the budget: nothing was written.
    Refused(String),
}

/// A release that may be published: the ledger, locked, and the line it will have.
pub struct Ready {
    held: Held,
    entry: Entry,
}

impl Ready {
    /// Publishes a release in a folder of its own (the page, `release.json` and `model.json`) and charges the ledger, both or
    /// neither; the owner's page and copy go to the private folder. Returns what was written, the owner's page first.
    pub fn publish(mut self, owned: &Owned) -> Result<Vec<PathBuf>> {
        let files = files(&owned.statement);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let page = leakscope_report::owners_release_page(owned);
        let page = leakscope_report::rewritten_page(&page, for_reader);
        let copy = leakscope_report::owners_document(owned);
        self.held.publish(self.entry, &files, &[("html", &page), ("json", &copy)])
    }
}

/// What is published of a release: the page, the statement, and what somebody needs who uses the model.
pub fn files(statement: &report::Release) -> [(&'static str, String); 3] {
    let statement = &statement.for_publication();
    let model = report::PublishedModel::of(statement);
    [
        (
            "report.html",
            leakscope_report::rewritten_page(&leakscope_report::release_page(statement), for_reader),
        ),
        ("release.json", leakscope_report::document(statement)),
        ("model.json", leakscope_report::sorted_document(&model)),
    ]
}

/// Whether releases were made into a folder.
pub fn holds_releases(folder: &Path) -> bool {
    folder.join(ledger::FILE).exists()
}

/// Prepares a release into `folder`: fits, measures, checks the budget and adds the noise.
pub fn run(request: &Request, terms: &Terms, folder: &Path, hooks: &Hooks) -> Result<Outcome> {
    refuse::settings(request, terms)?;
    let fingerprint = fingerprint::fingerprint(&request.read)?;
    // A ledger of other data is refused before any work; where there is none, nothing is left of input that is refused.
    let keeping = Keeping { data_changed: terms.data_changed.as_deref(), key: terms.ledger_key.as_deref() };
    let mut put_right = match ledger::is_kept(folder) {
        true => std::mem::take(&mut Held::open(folder, &fingerprint, keeping)?.remarks),
        false => vec![],
    };
    let mut bits = System::default();
    let prepared = Prepared::new(request, terms, hooks)?;
    let encoding = &prepared.fitted.loaded.encoding;
    refuse::rare_class(encoding, fitted::min_level_count(request))?;
    let distances = tell::distances(request, &prepared.fitted, &prepared.noise_to_tell())?;

    let mut held = Held::open(folder, &fingerprint, keeping)?;
    put_right.append(&mut held.remarks);
    let unit_of_eta = Unit::of(request, encoding, &prepared.fitted.units);
    let before = held.spent(&unit_of_eta)?;
    let total = before.hypot(prepared.charge());
    let budget_eta = held.budget(terms.budget_eta)?;
    if let Some(budget) = budget_eta
        && total > budget
    {
        return Ok(Outcome::Refused(prepared.past_budget(&held, before, budget)));
    }
    let composed =
        report::Composed { releases: held.ledger.releases.len() + 1, eta_max: Some(total), budget_eta };
    let coefficients = prepared.noisy(&mut bits)?;
    let created = crate::clock::now();
    let entry = Entry {
        folder: None,
        when: created.clone(),
        target: encoding.target.name.clone(),
        weights: encoding.weights.clone(),
        family: request.family.into(),
        l2: request.l2,
        sigma: prepared.sigma(),
        eta_mean: prepared.measured().0,
        eta_max: prepared.charge(),
        unit: Some(unit_of_eta),
        told: distances.ledger_lines(),
    };
    let stated = tell::stated(request, &prepared.fitted, &distances, &held.ledger.releases, total);
    let particulars =
        statement::Particulars { composed, coefficients, created, stated, tell: distances.tell };
    let mut owned = statement::owned(request, terms, &prepared, particulars)?;
    owned.remarks.extend(put_right);
    let owned = crate::output::complete(owned)?;
    Ok(Outcome::Ready(Box::new(owned), Box::new(Ready { held, entry })))
}

/// A model with the noise it will have.
struct Prepared {
    fitted: Fitted,
    added: Added,
    /// η as it may be said.
    eta: report::Eta,
}

/// The noise.
enum Added {
    /// The same on every coefficient in public units.
    Isotropic(Grid),
    /// With a covariance.
    Shaped(Box<Shaped>),
}

impl Prepared {
    /// What the ledger is charged.
    fn charge(&self) -> f64 {
        self.eta.max.unwrap_or(f64::INFINITY)
    }

    fn new(request: &Request, terms: &Terms, hooks: &Hooks) -> Result<Self> {
        let (loaded, units) = fitted::opened(request, hooks)?;
        let (fitted, sigma) = match &terms.noise {
            Amount::Sigma(sigma) => (Fitted::new(request, terms, (loaded, units), None)?, *sigma),
            Amount::TargetEta(eta, statistic) => {
                let fitted = Fitted::new(request, terms, (loaded, units), None)?;
                let sigma = statistic.of(&fitted.unit) / eta * (1.0 + 1e-12);
                (fitted, sigma)
            }
            Amount::Shaped(options) => {
                let units = units.fitted_in();
                let plan = Plan::new(options, request, (&loaded.encoding, &units), hooks)?;
                let fitted = Fitted::new(request, terms, (loaded, units), Some(&plan))?;
                let shaped = Shaped::new(options, request, &fitted, &plan)?;
                return Ok(Self { fitted, eta: shaped.eta, added: Added::Shaped(Box::new(shaped)) });
            }
        };
        if !(sigma > 0.0 && sigma.is_finite()) {
            let message =
                "nothing leaks at any noise here (every η is zero), so no σ can be solved for: use ⟨sigma⟩";
            return Err(Failure::option("target_eta", message));
        }
        let grid = public_sigma(sigma).and_then(Grid::new).map_err(|e| Failure::option("sigma", e))?;
        let eta = stated(&terms.noise, fitted.unit.max() / grid.sigma())?;
        Ok(Self { fitted, added: Added::Isotropic(grid), eta })
    }

    /// σ in public units; with a covariance the root of its mean variance.
    fn sigma(&self) -> f64 {
        match &self.added {
            Added::Isotropic(grid) => grid.sigma(),
            Added::Shaped(shaped) => shaped.sigma(),
        }
    }

    /// Distance of the points that the coefficients lie on, or the coordinates of the factor.
    fn step(&self) -> Result<f64> {
        Ok(match &self.added {
            Added::Isotropic(grid) => grid.step,
            Added::Shaped(_) => Grid::new(1.0)?.step,
        })
    }

    /// Mean and largest η as they were measured.
    fn measured(&self) -> (f64, f64) {
        match &self.added {
            Added::Isotropic(grid) => {
                (self.fitted.unit.mean() / grid.sigma(), self.fitted.unit.max() / grid.sigma())
            }
            Added::Shaped(shaped) => (shaped.measured.mean(), shaped.measured.max()),
        }
    }

    /// The noise as distances are measured in.
    fn noise_to_tell(&self) -> NoiseToTell {
        match &self.added {
            Added::Isotropic(grid) => NoiseToTell::Isotropic(grid.sigma()),
            Added::Shaped(shaped) => NoiseToTell::Whitener(shaped.design.noise.whitener().to_vec()),
        }
    }

    /// Covariance of the noise on each vector of coefficients, p × p, in public units.
    fn covariances(&self) -> Result<Vec<Vec<f64>>> {
        let (p, vectors) = (self.fitted.units.width(), self.fitted.fit.vectors());
        Ok(match &self.added {
            Added::Isotropic(grid) => vec![Noise::isotropic(grid.sigma(), p)?.covariance(); vectors],
            Added::Shaped(shaped) => {
                let covariance = shaped.design.noise.covariance();
                match &self.fitted.fit {
                    Minimiser::Glm(_) => vec![covariance],
                    Minimiser::Softmax(fit) => class_covariances(&covariance, fit.classes, p),
                }
            }
        })
    }

    /// The coefficients in original units, with noise.
    fn noisy(&self, bits: &mut impl Bits) -> Result<Vec<(String, f64)>> {
        let Fitted { loaded, units, w, .. } = &self.fitted;
        let noisy = match &self.added {
            Added::Isotropic(grid) => grid.release(w, bits)?,
            Added::Shaped(shaped) => match &self.fitted.fit {
                Minimiser::Glm(_) => shaped.design.noise.release(w, bits)?,
                // Noise is on the contrasts of classes; what is published of them are multiples that everybody knows.
                Minimiser::Softmax(fit) => fit.of_classes(&shaped.design.noise.release(&fit.theta, bits)?),
            },
        };
        let mut values = vec![];
        for vector in noisy.chunks_exact(units.width()) {
            let published = units.published(vector)?;
            values.extend(published.coefficients);
            // Without an intercept there is none to publish.
            values.extend(loaded.encoding.intercept.then_some(published.intercept));
        }
        Ok(model::coefficient_names(&loaded.encoding).into_iter().zip(values).collect())
    }

    /// Why there is no release, and the σ at which there would be one.
    fn past_budget(&self, held: &Held, before: f64, budget: f64) -> String {
        let left = (budget * budget - before * before).max(0.0).sqrt();
        let isotropic = match &self.added {
            Added::Isotropic(_) => {
                below(left).and_then(|most| public_sigma(self.fitted.unit.max() / most).ok())
            }
            Added::Shaped(_) => None,
        };
        let advice = match isotropic {
            None if left > 0.0 && matches!(self.added, Added::Shaped(_)) => {
                format!(
                    "a target for whole records of ⟨target_eta={}⟩ or less stays within it",
                    format::setting(0.999 * left)
                )
            }
            Some(sigma) => format!("⟨sigma={}⟩ or more stays within it", format::setting(sigma * 1.001)),
            None => "it is spent".to_owned(),
        };
        format!(
            "this release has a largest η of up to {}, which with {} before makes {}, above the budget of {}: {advice}. \
             Nothing was written.",
            format::at_most(self.charge()),
            format::counted(held.ledger.releases.len() as u64, "release"),
            format::at_most(before.hypot(self.charge())),
            format::setting(budget)
        )
    }
}

/// The largest power of 2^¼ that is not above `x`, a little lower for rounding.
fn below(x: f64) -> Option<f64> {
    let above = public_sigma(x).ok()?;
    let down = if above <= x { above } else { public_sigma(0.999 * above / 2_f64.powf(0.25)).ok()? };
    Some(down * (1.0 - 1e-9))
}

/// η as it may be said: the target, or a power of 2^¼ that is not below what was measured.
fn stated(noise: &Amount, measured: f64) -> Result<report::Eta> {
    let target = match noise {
        Amount::Sigma(_) | Amount::Shaped(_) => None,
        Amount::TargetEta(eta, statistic) => Some(report::Target { eta: *eta, statistic: statistic.named() }),
    };
    let max = match noise {
        // σ was solved for it, and rounded up.
        Amount::TargetEta(eta, Statistic::Max) => *eta,
        Amount::TargetEta(_, Statistic::Mean | Statistic::P99) | Amount::Sigma(_) | Amount::Shaped(_) => {
            match measured {
                // Nothing leaks: no grid has a zero.
                0.0 => 0.0,
                measured => public_sigma(measured)?,
            }
        }
    };
    Ok(report::Eta { max: Some(max), target })
}

/// A model with noise, for callers that keep account of releases themselves: everything in it may be published but an η that is no
/// target, which was measured ([`report::Release::for_publication`]), and the columns at an edge.
#[derive(Debug, Clone)]
pub struct Private {
    /// Names and noisy values of the coefficients of the columns in original units.
    pub coefficients: Vec<(String, f64)>,
    /// Noise on every coefficient in public units.
    pub sigma: f64,
    /// η of the records: the target, or what was measured, rounded up, for the owner alone.
    pub eta: report::Eta,
    /// The covariance of the noise, where it was made for targets.
    pub shape: Option<report::PublishedShape>,
    /// How well each coefficient tells the fitted one.
    pub precision: BTreeMap<String, report::Precision>,
    /// Why the noise is not the one asked for.
    pub instead: Option<String>,
    /// Columns whose public unit one record decides, for the owner alone: who knows the other records sees something of it in
    /// the size of the noise. None where bounds that are public are given for every column.
    pub units_hang_on_one: Vec<String>,
}

/// Fits, balances where asked to, and adds noise; keeps no ledger. A seed makes the noise repeatable, and so no secret.
pub fn private(request: &Request, terms: &Terms, seed: Option<u64>, hooks: &Hooks) -> Result<Private> {
    match seed {
        Some(seed) => private_from(request, terms, &mut Seeded::new(seed), hooks),
        None => private_from(request, terms, &mut System::default(), hooks),
    }
}

fn private_from(request: &Request, terms: &Terms, bits: &mut impl Bits, hooks: &Hooks) -> Result<Private> {
    refuse::settings(request, terms)?;
    let prepared = Prepared::new(request, terms, hooks)?;
    let coefficients = prepared.noisy(bits)?;
    let precision = inference::precision(&prepared.fitted, &prepared.covariances()?, &coefficients)?;
    let (shape, instead) = match &prepared.added {
        Added::Isotropic(_) => (None, None),
        Added::Shaped(shaped) => (Some(shaped.published.clone()), shaped.instead.clone()),
    };
    Ok(Private {
        coefficients,
        sigma: prepared.sigma(),
        eta: prepared.eta,
        shape,
        precision,
        instead,
        units_hang_on_one: edge::columns(&prepared.fitted.loaded.rows, &prepared.fitted.units)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eta_is_said_on_the_grid_and_never_too_small() {
        for measured in [1e-9, 0.1, 0.5, 0.999, 1.0, 1.19, 17.3, 4e8] {
            let eta = stated(&Amount::Sigma(1.0), measured).unwrap();
            let max = eta.max.unwrap();
            assert!(max >= measured && max < 1.19 * measured, "{measured}");
            assert_eq!(stated(&Amount::TargetEta(0.3, Statistic::Mean), measured).unwrap().max, eta.max);
            assert_eq!(stated(&Amount::TargetEta(0.3, Statistic::Max), measured).unwrap().max, Some(0.3));
            let down = below(measured).unwrap();
            assert!(down <= measured && public_sigma(down).unwrap() <= measured && down > 0.84 * measured);
        }
        assert_eq!(stated(&Amount::Sigma(1.0), 0.0).unwrap().max, Some(0.0));
        assert!(below(0.0).is_none());
    }
}
