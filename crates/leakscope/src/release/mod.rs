//! The release: noise on the coefficients, a statement, a ledger.

pub mod ledger;
mod seal;

use crate::audit::{self, Request, Statistic};
use crate::balance::{self, Balancing};
use crate::failure::explain;
use crate::model::{self, Loaded};
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::balance::{Sharing, Update, Variant};
use leakscope_core::fisher::{Geometry, Release as Noise};
use leakscope_core::glm::Fit;
use leakscope_core::num::Distribution;
use leakscope_core::random::{Bits, Seeded};
use leakscope_core::release::Grid;
use leakscope_core::rows::{Reweighted, Rows};
use leakscope_report::Release;
use leakscope_report::format;
use leakscope_report::release as report;
use leakscope_table::Hooks;
use ledger::{Entry, Held, Unit};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// How much noise, and how much leakage in all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
}

/// How much noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// σ.
    Sigma(f64),
    /// The σ at which a statistic of η is this.
    TargetEta(f64, Statistic),
}

impl Default for Amount {
    fn default() -> Self {
        Self::Sigma(1.0)
    }
}

/// A release, or why there is none.
pub enum Outcome {
    /// The statement, and where to publish it: nothing is released or charged before [`Ready::publish`].
    Ready(Box<Release>, Box<Ready>),
    /// It would go past the budget: nothing was written.
    Refused(String),
}

/// A release that may be published: the ledger, locked, and the line it will have.
pub struct Ready {
    held: Held,
    entry: Entry,
}

impl Ready {
    /// Publishes the files of the release in a folder of their own and charges the ledger, both or neither.
    pub fn publish(mut self, files: &[(&str, &str)]) -> Result<Vec<PathBuf>> {
        self.held.publish(self.entry, files)
    }
}

/// Prepares a release into `folder`: fits, measures, checks the budget and adds the noise.
pub fn run(request: &Request, terms: &Terms, folder: &Path, hooks: &Hooks) -> Result<Outcome> {
    check(terms)?;
    let fingerprint = ledger::fingerprint(&request.read)?;
    // A ledger of other data is refused before any work.
    let reason = terms.data_changed.as_deref();
    let mut put_right = std::mem::take(&mut Held::open(folder, &fingerprint, reason)?.remarks);
    let Prepared { loaded, fit, unit, grid, eta } = prepare(request, terms, hooks)?;

    let remarks = loaded.remarks(request, &fit)?;
    let mut held = Held::open(folder, &fingerprint, reason)?;
    put_right.append(&mut held.remarks);
    let unit_of_eta = Unit::of(request, &loaded.encoding);
    let before = held.spent(&unit_of_eta)?;
    let total = before.hypot(eta.max);
    let budget_eta = held.budget(terms.budget_eta)?;
    if let Some(budget) = budget_eta
        && total > budget
    {
        let left = (budget * budget - before * before).max(0.0).sqrt();
        let advice = if left > 0.0 {
            format!("⟨sigma={}⟩ or more stays within it", format::setting(unit.max() / left * 1.001))
        } else {
            "it is spent".to_owned()
        };
        return Ok(Outcome::Refused(format!(
            "this release has a largest η of {}, which with {} before makes {}, above the budget of {}: {advice}. Nothing \
             was written.",
            format::number(eta.max),
            format::counted(held.ledger.releases.len() as u64, "release"),
            format::number(total),
            format::setting(budget)
        )));
    }
    let noisy = grid.release(&fit.w, &mut System::default())?;
    let created = audit::now();
    let entry = Entry {
        folder: None,
        when: created.clone(),
        target: loaded.encoding.target.name.clone(),
        family: request.family.name().into(),
        l2: request.l2,
        sigma: grid.sigma(),
        eta_mean: eta.mean,
        eta_max: eta.max,
        unit: Some(unit_of_eta),
    };
    let composed = report::Composed { releases: held.ledger.releases.len() + 1, eta_max: total, budget_eta };
    let mut statement = statement(request, terms, &loaded, (grid, eta, composed), &noisy, created);
    statement.warnings.extend(remarks);
    statement.warnings.extend(put_right);
    let statement = crate::output::complete(statement)?;
    Ok(Outcome::Ready(Box::new(statement), Box::new(Ready { held, entry })))
}

/// A model before its noise.
struct Prepared {
    loaded: Loaded,
    fit: Fit,
    /// η of its records at σ = 1.
    unit: Distribution,
    grid: Grid,
    eta: report::Eta,
}

fn prepare(request: &Request, terms: &Terms, hooks: &Hooks) -> Result<Prepared> {
    let loaded = model::load(request, hooks)?;
    let (fit, unit) = model(request, terms, &loaded)?;
    let sigma = match terms.noise {
        Amount::Sigma(sigma) => sigma,
        Amount::TargetEta(eta, statistic) => statistic.of(&unit) / eta * (1.0 + 1e-12),
    };
    if !(sigma > 0.0 && sigma.is_finite()) {
        let message =
            "nothing leaks at any noise here (every η is zero), so no σ can be solved for: use ⟨sigma⟩";
        return Err(Failure::option("target_eta", message));
    }
    let grid = Grid::new(sigma).map_err(|e| Failure::option("sigma", e))?;
    let eta = report::Eta { mean: unit.mean() / grid.sigma(), max: unit.max() / grid.sigma() };
    Ok(Prepared { loaded, fit, unit, grid, eta })
}

/// A model with noise, for callers that keep account of releases themselves.
#[derive(Debug, Clone)]
pub struct Private {
    /// Names and noisy values of the coefficients of the columns as encoded.
    pub coefficients: Vec<(String, f64)>,
    /// The same for the columns in their own units, where there is such a form.
    pub original_units: Option<Vec<(String, f64)>>,
    /// Noise on every coefficient.
    pub sigma: f64,
    /// η of the records, in mean and at most.
    pub eta: report::Eta,
    /// Newton steps of the fit.
    pub iterations: usize,
}

/// Fits, balances where asked to, and adds noise; keeps no ledger. A seed makes the noise repeatable, and so no secret.
pub fn private(request: &Request, terms: &Terms, seed: Option<u64>, hooks: &Hooks) -> Result<Private> {
    check(terms)?;
    let Prepared { loaded, fit, grid, eta, .. } = prepare(request, terms, hooks)?;
    let noisy = match seed {
        Some(seed) => grid.release(&fit.w, &mut Seeded::new(seed))?,
        None => grid.release(&fit.w, &mut System::default())?,
    };
    Ok(Private {
        original_units: loaded.encoding.original_units(&noisy),
        coefficients: loaded.encoding.columns().into_iter().zip(noisy).collect(),
        sigma: grid.sigma(),
        eta,
        iterations: fit.iterations,
    })
}

fn check(terms: &Terms) -> Result<()> {
    let positive = |flag: &str, value: f64| match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(Failure::option(flag, format!("{value}: expected a positive number"))),
    };
    match terms.noise {
        Amount::Sigma(sigma) => positive("sigma", sigma)?,
        Amount::TargetEta(eta, _) => positive("target_eta", eta)?,
    }
    if terms.attribute.is_some() && terms.balance == 0 {
        let message = "it says what ⟨balance⟩ N balances, which is not asked for";
        return Err(Failure::option("attribute", message));
    }
    terms.budget_eta.map_or(Ok(()), |b| positive("budget_eta", b))
}

/// The model to release, balanced where asked for, and η of its records at σ = 1.
fn model(request: &Request, terms: &Terms, loaded: &Loaded) -> Result<(Fit, Distribution)> {
    if terms.balance == 0 {
        let fit = loaded.fit(request)?;
        let unit = measured(request, loaded, &loaded.rows, &fit)?;
        return Ok((fit, unit));
    }
    let balancing = Balancing {
        attribute: terms.attribute.clone(),
        sum_to_one: false,
        sharing: Sharing::Sample,
        variant: Variant::Weighted,
        update: Update::Published,
        clamp: None,
        iterations: terms.balance,
        tolerance: 1e-6,
        sigma: 1.0,
    };
    let options = balance::options(request, &balancing, loaded)?;
    let found = balance::balanced(request, loaded, &options, |_, _| Ok(()))?;
    let weighted = Reweighted::new(&loaded.rows, &found.weights)?;
    let unit = measured(request, loaded, &weighted, &found.fit)?;
    Ok((found.fit, unit))
}

fn measured(request: &Request, loaded: &Loaded, rows: &impl Rows, fit: &Fit) -> Result<Distribution> {
    let noise = Noise { sigma: 1.0, releases: 1, label_secret: request.label_secret };
    let geometry = Geometry::new(fit, &[], noise).map_err(|e| explain(e, &loaded.encoding, request.l2))?;
    audit::eta_distribution(rows, &geometry)
}

fn statement(
    request: &Request,
    terms: &Terms,
    loaded: &Loaded,
    (grid, eta, composed): (Grid, report::Eta, report::Composed),
    noisy: &[f64],
    created: String,
) -> Release {
    let names = loaded.encoding.columns();
    let label = match request.label_secret {
        true => "The label counts as part of a record’s secret.",
        false => "The label is taken to be known.",
    };
    let published = match terms.noise {
        Amount::Sigma(_) => {
            "η is computed from the data and published here without noise: what it gives away is not counted."
        }
        Amount::TargetEta(..) => {
            "η, and σ, which was solved for from it (`target_eta`), are computed from the data and published here without \
             noise: what they give away is not counted."
        }
    };
    let mut warnings = vec![];
    if composed.releases > 1 {
        warnings.push(format!(
            "These data have {} before this one; their information adds up, and the η of all together is bounded by {}.",
            format::counted(composed.releases as u64 - 1, "release"),
            format::at_most(composed.eta_max)
        ));
    }
    let training = match terms.balance {
        0 => "How the model was trained: family, penalty, weights, encoding.".to_owned(),
        n => format!(
            "How the model was trained: family, penalty, encoding, and the weights that {} of balancing gave the records.",
            format::counted(n as u64, "iteration")
        ),
    };
    Release {
        schema: report::SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created,
        subject: loaded.subject(request),
        mechanism: report::Mechanism {
            name: "output perturbation with an exact discrete Gaussian on a grid (Canonne, Kamath, Steinke 2020)".into(),
            sigma: grid.sigma(),
            grid: grid.step,
            generator: "the operating system's cryptographic generator".into(),
        },
        label_secret: request.label_secret,
        eta,
        tell: None,
        composed,
        known: vec![
            "The released coefficients, σ and the grid.".into(),
            training,
            "All other records; for one attribute of a record, also its other values.".into(),
        ],
        assumed: vec![
            "The model is at its minimiser, and η is its local sensitivity there over σ (Hannun 2021).".into(),
            label.into(),
            published.into(),
            "Levels, scaling and other choices of the encoding are public, though they were read off the data.".into(),
            "Releases listed in the ledger of this folder are all there were; noise of each is independent.".into(),
            "The grid is a millionth of σ: what it changes about η is of that order.".into(),
        ],
        coefficients: names.into_iter().zip(noisy.iter().copied()).collect(),
        coefficients_original_units: loaded.encoding.original_units(noisy).map(|c| c.into_iter().collect()),
        warnings,
    }
}

/// The operating system's generator, a page at a time.
#[derive(Debug, Default)]
struct System {
    page: Vec<u64>,
}

impl Bits for System {
    fn next_u64(&mut self) -> leakscope_core::Result<u64> {
        if let Some(bits) = self.page.pop() {
            return Ok(bits);
        }
        let mut bytes = [0; 4096];
        getrandom::fill(&mut bytes)
            .map_err(|e| CoreError::Source(format!("the system gives no random numbers: {e}")))?;
        self.page = bytes
            .chunks_exact(8)
            .map(|c| c.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
            .collect();
        self.next_u64()
    }
}

/// A screenful of text.
pub fn summary(r: &Release) -> String {
    let mut out = format!(
        "Released {} with {}.\nσ = {}, η of a record: mean {}, largest {}.\nReleases of these data so far: {}; largest η of \
         all together at most {}{}.\n",
        format::counted(r.coefficients.len() as u64, "coefficient"),
        r.mechanism.name,
        format::setting(r.mechanism.sigma),
        format::number(r.eta.mean),
        format::number(r.eta.max),
        r.composed.releases,
        format::at_most(r.composed.eta_max),
        r.composed.budget_eta.map_or_else(String::new, |b| format!(" of a budget of {}", format::setting(b)))
    );
    for warning in &r.warnings {
        out.push_str(&format!("warning: {warning}\n"));
    }
    out
}
