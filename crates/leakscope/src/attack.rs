//! The attacks: a table and a secret in, an [`Attack`] of observed results out.

mod secret;

pub(crate) use secret::{leakage, secret};

use crate::balance::{balanced, directions};
use crate::failure::explain;
use crate::model::{self, Loaded, scores_of, two_class};
use crate::noise::{self, UnitShape};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::attack::{Attack as Attacker, Options, Outcomes, Secret, attack, attack_classes};
use leakscope_core::balance::{Level, Options as BalanceOptions, OwnWeights, Sharing, Update, Variant};
use leakscope_core::error::numeral;
use leakscope_core::fisher::Release;
use leakscope_core::fisher::noise::Noise;
use leakscope_core::glm::{Minimiser, ModelKind};
use leakscope_core::pass::Runner;
use leakscope_core::rows::{Altered, Rows};
use leakscope_report::Attack;
use leakscope_report::attack as report;
use leakscope_report::format;
use leakscope_report::verdict::of_attack;
use leakscope_table::Hooks;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Which attacks to play, as a user says it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Playing {
    /// The secret attribute.
    pub secret: String,
    /// Values to consider; all that occur without any.
    pub candidates: Vec<String>,
    /// Bins of a number with many values.
    pub bins: usize,
    /// The attackers; all that apply without any.
    pub attacks: Vec<Attacker>,
    /// Noise scales; by default sixteen from mean η = 100 to 0.01.
    pub sigmas: Vec<f64>,
    /// Noise vectors.
    pub trials: usize,
    /// Balancing iterations before a second round; 0 for none.
    pub balance: usize,
}

const DEFAULT_SIGMAS: usize = 16;
const MAX_BINS: usize = 100;

impl Default for Playing {
    fn default() -> Self {
        Self {
            secret: String::new(),
            candidates: vec![],
            bins: 4,
            attacks: vec![],
            sigmas: vec![],
            trials: 100,
            balance: 0,
        }
    }
}

impl Playing {
    pub(crate) fn check(&self) -> Result<()> {
        for sigma in &self.sigmas {
            if !(*sigma > 0.0 && sigma.is_finite()) {
                return Err(Failure::number("sigmas", numeral(*sigma), "expected positive numbers"));
            }
        }
        if self.trials == 0 {
            return Err(Failure::number("trials", 0, "expected at least 1"));
        }
        if !(2..=MAX_BINS).contains(&self.bins) {
            return Err(Failure::number("bins", self.bins, format!("expected 2 to {MAX_BINS}")));
        }
        Ok(())
    }
}

/// Runs the attacks.
pub fn run(request: &Request, playing: &Playing, hooks: &Hooks) -> Result<Attack> {
    playing.check()?;
    if request.pca.is_some() {
        let message = "attacks replace values of a column, which principal components mix: leave ⟨pca⟩ out";
        return Err(Failure::option("pca", message));
    }
    let loaded = model::load(request, hooks)?;
    let (secret, candidates) = secret(request, playing, &loaded)?;
    let fit = loaded.minimiser(request)?;
    let clock = Instant::now();
    let level = Level::Attribute(directions(&loaded, "secret", &playing.secret, false)?);
    let unit = unit(request);
    let shaped = loaded.shape(request, &fit, hooks)?;
    let shape = shaped.as_ref().map(|s| s.noise.clone());
    let eta = leakage(request, &loaded, &fit, (&playing.secret, 1), shape.as_ref())?;
    let eta_mean = mean(&eta);
    let mut sigmas = sigmas(playing, eta_mean)?;
    let mut warnings = loaded.remarks(request, &fit)?;
    if let Some(shaped) = &shaped {
        warnings.extend(shaped.remarks());
        with_designed(&mut sigmas, playing, shaped.sigma);
    }
    let options = Options {
        attacks: attackers(playing, request, &mut warnings)?,
        sigmas,
        trials: playing.trials,
        seed: loaded.seed,
        two_class: two_class(&loaded.encoding),
        shape: shape.clone(),
    };
    let parts = deciles(&eta);
    let play = |fit: &Minimiser, weights: Option<&[f64]>| -> Result<Outcomes> {
        let outcome = match weights {
            Some(weights) => {
                played(&Altered::weighted(&loaded.rows, weights)?, fit, &secret, &options, &parts)
            }
            None => played(&loaded.rows, fit, &secret, &options, &parts),
        };
        outcome.map_err(|e| explain(e, &loaded.encoding, request.l2))
    };
    let outcomes = play(&fit, None)?;
    let after = match playing.balance {
        0 => None,
        iterations => {
            let options = BalanceOptions { shape: shape.clone(), ..balancing(level, iterations, unit) };
            Some(after_balancing(request, &loaded, &options, &play)?)
        }
    };
    let results = listed(&outcomes, eta_mean, false);
    let mut by_decile = tenths(&outcomes, false);
    by_decile.extend(after.iter().flat_map(|a| tenths(&a.outcomes, true)));
    let listed_after = |a: &AfterBalancing| listed(&a.outcomes, a.facts.eta_mean_at_unit_noise, true);
    let results_balanced = after.as_ref().map(listed_after).unwrap_or_default();
    let seconds = clock.elapsed().as_secs_f64();
    warnings.extend(not_attacked(outcomes.left_out, &playing.secret));
    crate::output::complete(Attack {
        schema: report::SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created: crate::clock::now(),
        subject: loaded.subject(request),
        secret: report::Secret { name: playing.secret.clone(), candidates },
        records: outcomes.records,
        left_out: outcomes.left_out,
        trials: playing.trials as u64,
        seed: loaded.seed,
        baseline: report::Baseline { accuracy: outcomes.baseline },
        results,
        results_balanced,
        deciles: by_decile,
        eta_mean_at_unit_noise: eta_mean,
        balance: after.map(|a| a.facts),
        utility: utility(request, &loaded, &fit, (&options.sigmas, shape.as_ref()))?,
        noise: described(request, &loaded, shaped.as_ref())?,
        warnings,
        notes: crate::remarks::notes(&loaded.encoding),
        seconds,
        redact: request.redact,
    })
}

fn not_attacked(left_out: u64, secret: &str) -> Option<String> {
    let records = format::counted(left_out, "record");
    let remark =
        format!("{records} have a value of {secret} that is none of the candidates, and are not attacked.");
    (left_out > 0).then_some(remark)
}

fn mean(eta: &[f64]) -> f64 {
    eta.iter().sum::<f64>() / eta.len().max(1) as f64
}

/// The attacks on the balanced model.
struct AfterBalancing {
    outcomes: Outcomes,
    facts: report::Balanced,
}

/// The attacks on a model, with weights of its records where it has any.
type Play<'a> = dyn Fn(&Minimiser, Option<&[f64]>) -> Result<Outcomes> + 'a;

/// Balances, and plays the attacks again.
fn after_balancing(
    request: &Request,
    loaded: &Loaded,
    options: &BalanceOptions,
    play: &Play<'_>,
) -> Result<AfterBalancing> {
    let outcome = balanced(request, loaded, options)?;
    let facts = report::Balanced {
        iterations: outcome.best,
        spread_before: outcome.history[0].spread,
        spread_after: outcome.history[outcome.best].spread,
        eta_mean_at_unit_noise: mean(&outcome.eta),
    };
    Ok(AfterBalancing { outcomes: play(&outcome.fit, Some(&outcome.weights))?, facts })
}

/// Plays the attacks against a model of either kind.
pub(crate) fn played(
    rows: &dyn Rows,
    fit: &Minimiser,
    secret: &Secret,
    options: &Options,
    parts: &[u8],
) -> leakscope_core::Result<Outcomes> {
    match fit {
        Minimiser::Glm(fit) => attack(rows, fit, secret, options, parts),
        Minimiser::Softmax(fit) => attack_classes(rows, fit, secret, options, parts),
    }
}

/// Balancing as published, for a fixed number of iterations.
fn balancing(level: Level, iterations: usize, release: Release) -> BalanceOptions {
    BalanceOptions {
        level,
        sharing: Sharing::Sample,
        variant: Variant::Weighted,
        update: Update::Published,
        clamp: None,
        iterations,
        tolerance: 0.0,
        release,
        shape: None,
    }
}

/// One release at σ = 1.
fn unit(request: &Request) -> Release {
    Release { sigma: 1.0, releases: 1, label_secret: request.label_secret }
}

/// η of an attribute of every training record at σ = 1, and how many columns the model has.
pub fn unit_eta(request: &Request, secret: &str, hooks: &Hooks) -> Result<(Vec<f64>, usize)> {
    let loaded = model::load(request, hooks)?;
    let fit = loaded.minimiser(request)?;
    let eta = leakage(request, &loaded, &fit, (secret, 1), None)?;
    Ok((eta, loaded.encoding.width()))
}

/// The rows' own weights are a factor of η.
pub(crate) fn weighted(loaded: &Loaded, mut eta: Vec<f64>) -> Result<Vec<f64>> {
    let weights = loaded.rows.run(&OwnWeights)?.weights;
    eta.iter_mut().zip(weights).for_each(|(e, w)| *e *= w);
    Ok(eta)
}

fn attackers(playing: &Playing, request: &Request, warnings: &mut Vec<String>) -> Result<Vec<Attacker>> {
    let scaled = request.intercept || request.family == ModelKind::Linear;
    if !playing.attacks.is_empty() {
        if playing.attacks.contains(&Attacker::Informed) && !scaled {
            let message = "the informed adversary needs an intercept to scale the record by: leave ⟨intercept=false⟩ out";
            return Err(Failure::option("attacks", message));
        }
        return Ok(playing.attacks.clone());
    }
    let mut all = Attacker::ALL.to_vec();
    if !scaled {
        all.retain(|a| *a != Attacker::Informed);
        warnings.push("The informed adversary needs an intercept, and was not played.".into());
    }
    Ok(all)
}

fn sigmas(playing: &Playing, eta_mean: f64) -> Result<Vec<f64>> {
    if !playing.sigmas.is_empty() {
        let mut sigmas = playing.sigmas.clone();
        sigmas.sort_by(f64::total_cmp);
        sigmas.dedup();
        return Ok(sigmas);
    }
    default_sigmas(&playing.secret, eta_mean)
}

/// The noise that was made for its targets is played too, where scales are not given.
fn with_designed(sigmas: &mut Vec<f64>, playing: &Playing, sigma: f64) {
    if playing.sigmas.is_empty() {
        sigmas.push(sigma);
        sigmas.sort_by(f64::total_cmp);
        sigmas.dedup();
    }
}

/// Noise with a shape as documents have it.
pub(crate) fn described(
    request: &Request,
    loaded: &Loaded,
    shaped: Option<&UnitShape>,
) -> Result<Option<leakscope_report::noise::Noise>> {
    match (request.noise.options(), shaped) {
        (Some(options), Some(shaped)) => {
            Ok(Some(noise::described(options, &shaped.designed, &loaded.encoding, vec![])?))
        }
        (_, _) => Ok(None),
    }
}

/// Sixteen noise scales, from mean η = 100 down to 0.01.
pub(crate) fn default_sigmas(secret: &str, eta_mean: f64) -> Result<Vec<f64>> {
    if !(eta_mean > 0.0 && eta_mean.is_finite()) {
        let message = format!("nothing leaks about `{secret}` (every η is zero): give noise scales");
        return Err(Failure::option("sigmas", message));
    }
    let at = |k: usize| eta_mean * 10_f64.powf(4.0 * k as f64 / (DEFAULT_SIGMAS - 1) as f64 - 2.0);
    Ok((0..DEFAULT_SIGMAS).map(at).collect())
}

/// The tenth of every record by its η: 0 holds the smallest.
fn deciles(eta: &[f64]) -> Vec<u8> {
    let mut order: Vec<usize> = (0..eta.len()).collect();
    order.sort_by(|&a, &b| eta[a].total_cmp(&eta[b]).then(a.cmp(&b)));
    let mut parts = vec![0; eta.len()];
    for (rank, &row) in order.iter().enumerate() {
        parts[row] = (rank * 10 / eta.len()) as u8;
    }
    parts
}

pub(crate) fn listed(outcomes: &Outcomes, eta_mean: f64, balanced: bool) -> Vec<report::AttackResult> {
    let of = |r: &leakscope_core::attack::Outcome| report::AttackResult {
        attack: r.attack,
        sigma: r.sigma,
        eta_mean: eta_mean / r.sigma,
        balanced,
        accuracy: r.accuracy.clone(),
        advantage: r.advantage.clone(),
    };
    outcomes.results.iter().map(of).collect()
}

fn tenths(outcomes: &Outcomes, balanced: bool) -> Vec<report::Decile> {
    let of = |r: &leakscope_core::attack::PartOutcome| report::Decile {
        sigma: r.sigma,
        decile: r.part + 1,
        balanced,
        records: r.records,
        accuracy: r.accuracy.clone(),
    };
    outcomes.by_part.iter().map(of).collect()
}

pub(crate) fn utility(
    request: &Request,
    loaded: &Loaded,
    fit: &Minimiser,
    (sigmas, shape): (&[f64], Option<&Noise>),
) -> Result<Option<report::Utility>> {
    let Some(test) = &loaded.test else { return Ok(None) };
    let metric = loaded.metric(request);
    let with_zero: Vec<f64> = std::iter::once(0.0).chain(sigmas.iter().copied()).collect();
    let factor = shape.map(Noise::factor).unwrap_or_default();
    let (values, constant_model) = scores_of(test, fit, metric, &with_zero, factor)?;
    Ok(Some(report::Utility {
        metric: metric.into(),
        higher_is_better: metric.higher_is_better(),
        without_noise: values[0],
        constant_model,
        points: sigmas.iter().copied().zip(values[1..].iter().copied()).collect(),
    }))
}

/// A screenful of text.
pub fn summary(a: &Attack) -> String {
    let mut out = of_attack(a).lines();
    out.push_str(&format!(
        "\nGuessing {} of {} ({} by always guessing the most frequent value). Observed, no guarantee.\n\n",
        a.secret.name,
        format::counted(a.records, "record"),
        format::share(a.baseline.accuracy)
    ));
    out.push_str(&format!(
        "{:<16} {:>12} {:>10} {:>8} {:>17} {:>10}\n",
        "attack", "σ", "mean η", "right", "95% interval", "advantage"
    ));
    for r in a.results.iter().chain(&a.results_balanced) {
        let name = if r.balanced { format!("{}*", r.attack.name()) } else { r.attack.name().into() };
        out.push_str(&format!(
            "{name:<16} {:>12} {:>10} {:>8} {:>17} {:>10}\n",
            format::number(r.sigma),
            format::number(r.eta_mean),
            format::share(r.accuracy.value),
            format!("{} – {}", format::share(r.accuracy.ci_low), format::share(r.accuracy.ci_high)),
            format::number(r.advantage.value)
        ));
    }
    if let Some(b) = &a.balance {
        out.push_str(&format!(
            "* after {} balancing iterations: spread of η {} of its mean, {} before\n",
            b.iterations,
            format::spread(b.spread_after),
            format::spread(b.spread_before)
        ));
    }
    for note in &a.notes {
        out.push_str(&format!("note: {note}\n"));
    }
    for warning in &a.warnings {
        out.push_str(&format!("warning: {warning}\n"));
    }
    // After a table of many rows, what it comes to once more.
    let verdict = of_attack(a);
    out.push_str(&format!("\nVerdict: {} ({}).\n", verdict.headline, verdict.colour.name()));
    out
}
