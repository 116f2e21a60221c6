//! A column of a table as the secret: its encodings are the models refitted with each candidate in place of a record's
//! value (Guo §6.2), one bound per record, beside what attacks achieve, what noise costs and what ε would say.

use super::empty;
use super::guesses::{Guessed, Guesses};
use super::noise_figures::figures;
use crate::attack::{self, Playing};
use crate::failure::explain;
use crate::model::{self, Loaded, two_class};
use crate::noise::UnitShape;
use crate::request::Request;
use crate::scaling::{self, SecretScaling};
use crate::{Failure, Result};
use leakscope_core::attack::{
    Attack as Attacker, Options, Refits, Secret, for_each_record, for_each_record_of_classes,
    removal_distances,
};
use leakscope_core::bound::table::Simulation;
use leakscope_core::bound::{Channel, Prior, RecordBounds, bounds, estimation};
use leakscope_core::dp::gaussian;
use leakscope_core::error::numeral;
use leakscope_core::fisher::noise::Noise;
use leakscope_core::glm::{Family, Minimiser, ModelKind};
use leakscope_core::pass;
use leakscope_core::rows::Rows;
use leakscope_report::attack as attacks;
use leakscope_report::bound::{CurvePoint, Estimation, FromData, MostExposed, SecretBounds, Typical};
use leakscope_report::format;
use leakscope_table::{Hooks, Kind};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What is asked about a secret of a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounding {
    /// The secret attribute.
    pub secret: String,
    /// Bins of a number with many values.
    pub bins: usize,
    /// The attacker's prior over the candidates, in their order; counted from the column where none is given.
    pub prior: Option<Vec<f64>>,
    /// The noise that the answer is about.
    pub sigma: Option<f64>,
    /// Noise scales of the curve; by default sixteen around it.
    pub sigmas: Vec<f64>,
    /// Whether there is a curve at all.
    pub curve: bool,
    /// Attackers to play beside the bounds.
    pub attacks: Vec<Attacker>,
    /// Noise vectors of the attacks.
    pub noise_vectors: usize,
    /// Draws for the information and the optimal attack, over all records; 0 for none.
    pub draws: u64,
    /// Confidence of what rests on draws.
    pub confidence: f64,
    /// The δ of every ε.
    pub delta: f64,
}

impl Default for Bounding {
    fn default() -> Self {
        Self {
            secret: String::new(),
            bins: 4,
            prior: None,
            sigma: None,
            sigmas: vec![],
            curve: false,
            attacks: vec![],
            noise_vectors: 100,
            draws: 100_000,
            confidence: 0.99,
            delta: 1e-5,
        }
    }
}

/// The three attacks of Guo's figure 4.
pub const FIG_4: [Attacker; 3] = [Attacker::WhiteBoxPrior, Attacker::WhiteBox, Attacker::Informed];

/// Reads the table, fits the model and bounds its secret.
pub fn run(request: &Request, bounding: &Bounding, hooks: &Hooks) -> Result<SecretBounds> {
    let loaded = model::load(request, hooks)?;
    let fit = loaded.minimiser(request)?;
    let shaped = loaded.shape(request, &fit, hooks)?;
    of_model(request, &loaded, &fit, bounding, shaped.as_ref())
}

/// A secret, its candidates' names, and how far refitted models lie apart, as calibration needs them too.
pub(crate) struct Game {
    pub(crate) secret: Secret,
    pub(crate) candidates: Vec<attacks::Candidate>,
    pub(crate) prior: Prior,
    /// The noise at σ = 1 by which distances are measured, where it has a shape.
    pub(crate) shape: Option<Noise>,
}

impl Game {
    /// The game about a column.
    pub(crate) fn new(request: &Request, loaded: &Loaded, bounding: &Bounding) -> Result<Self> {
        if request.pca.is_some() {
            let message = "a secret is a column, which principal components mix: leave ⟨pca⟩ out";
            return Err(Failure::option("pca", message));
        }
        let playing = Playing {
            secret: bounding.secret.clone(),
            candidates: vec![],
            bins: bounding.bins,
            attacks: bounding.attacks.clone(),
            sigmas: vec![],
            trials: bounding.noise_vectors,
            balance: 0,
        };
        playing.check()?;
        let (secret, mut candidates) = attack::secret(request, &playing, loaded)?;
        let prior = match &bounding.prior {
            None => Prior::from_probabilities(secret.prior().to_vec())?,
            Some(p) if p.len() == candidates.len() => Prior::from_probabilities(p.clone())?,
            Some(p) => {
                let names: Vec<&str> = candidates.iter().map(|c| c.name.as_str()).collect();
                return Err(Failure::option(
                    "prior",
                    format!("{} probabilities for {} values: {}", p.len(), names.len(), names.join(", ")),
                ));
            }
        };
        if let Some(p) = &bounding.prior {
            candidates.iter_mut().zip(p).for_each(|(c, p)| c.prior = *p);
        }
        Ok(Self { secret, candidates, prior, shape: None })
    }

    /// Bounds of all records; those whose value is no candidate are left out and counted.
    pub(crate) fn records(
        &self,
        rows: &dyn Rows,
        fit: &Minimiser,
        sigmas: &[f64],
        simulation: Option<Simulation>,
    ) -> leakscope_core::Result<(RecordBounds, u64)> {
        let none = RecordBounds::new(self.prior.clone(), sigmas, rows.len(), simulation)?;
        if let Minimiser::Glm(fit) = fit
            && fit.family == Family::Linear
        {
            // The candidates of a record need no other rows: a pass, which may run anywhere.
            let Guessed { bounds, left_out, .. } = pass::run(&Guesses::new(self, fit, none)?, rows)?;
            return Ok((bounds, left_out));
        }
        let (p, mut total, mut left_out) = (fit.free(), none.clone(), 0);
        let add = |(state, left_out): &mut (RecordBounds, u64), refits: Refits<'_>| {
            if self.secret.truth(refits.x).is_none() {
                *left_out += 1;
                return Ok(());
            }
            match &self.shape {
                Some(shape) => state.add(refits.row, p, &shape.whiten_rows(refits.delta)),
                None => state.add(refits.row, p, refits.delta),
            }
        };
        let merge = |(state, left): (RecordBounds, u64)| {
            total.merge(state);
            left_out += left;
            Ok(())
        };
        let start = || (none.clone(), 0);
        match fit {
            Minimiser::Glm(fit) => for_each_record(rows, fit, &self.secret, start, add, merge)?,
            Minimiser::Softmax(fit) => {
                for_each_record_of_classes(rows, fit, &self.secret, start, add, merge)?;
            }
        }
        Ok((total, left_out))
    }
}

/// Bounds the secret of a model that is fitted already.
pub(crate) fn of_model(
    request: &Request,
    loaded: &Loaded,
    fit: &Minimiser,
    bounding: &Bounding,
    shaped: Option<&UnitShape>,
) -> Result<SecretBounds> {
    // Noise that was made for its targets has its own scale.
    let sigma = bounding.sigma.or(shaped.filter(|_| bounding.sigmas.is_empty()).map(|s| s.sigma));
    let bounding = &Bounding { sigma, ..bounding.clone() };
    let game = Game { shape: shaped.map(|s| s.noise.clone()), ..Game::new(request, loaded, bounding)? };
    let shape = game.shape.as_ref();
    let clock = Instant::now();
    let fail = |e| explain(e, &loaded.encoding, request.l2);
    // K releases with fresh noise are one with σ/√K.
    let releases = f64::from(request.releases).sqrt();
    let eta = attack::leakage(request, loaded, fit, (&bounding.secret, request.releases), shape)?;
    let mean_eta = eta.iter().sum::<f64>() / eta.len().max(1) as f64;
    let sigmas = sigmas(bounding, mean_eta)?;
    let seen: Vec<f64> = sigmas.iter().map(|s| s / releases).collect();
    let simulation = (bounding.draws > 0).then_some(Simulation {
        trials: bounding.draws,
        seed: loaded.seed,
        confidence: bounding.confidence,
    });
    let (records, left_out) = game.records(&loaded.rows, fit, &seen, simulation).map_err(fail)?;
    let Some(most) = records.most_exposed() else {
        return Err(Failure::option("secret", "no record has one of the values"));
    };
    let removal = largest_removal(loaded, fit, shape).map_err(fail)?;
    let curve = curve(&records, (most.distance, removal), &sigmas, bounding.delta)?;
    let mut warnings = shaped.map(UnitShape::remarks).unwrap_or_default();
    let (played, baseline) = play(request, loaded, fit, &game, bounding, &sigmas, mean_eta, &mut warnings)?;
    let chosen = bounding.sigma.and_then(|s| curve.iter().find(|p| p.sigma == s));
    let of_most = |at: &CurvePoint| -> Result<MostExposed> {
        let channel = Channel::Gaussian { encodings: &most.encodings, sigma: at.sigma / releases };
        Ok(MostExposed::of(most.row, most.distance, &bounds(&game.prior, channel, simulation)?))
    };
    let most_exposed = chosen.map(of_most).transpose()?;
    let (estimation, typical) =
        chosen.map(|at| estimates(loaded, bounding, &eta, at.sigma)).unwrap_or_default();
    let (bounds, optimal) = match chosen {
        Some(p) => (p.bounds.clone(), p.optimal.clone().map(leakscope_core::bound::table::Optimal::Observed)),
        None => (vec![], None),
    };
    let scaled = scaling::of_secret(request, &loaded.encoding, &bounding.secret) == SecretScaling::Given;
    warnings.extend(limits_of_game(bounding, left_out, scaled, game.secret.is_binned()));
    let data = FromData {
        scaling_given: scaled,
        binned: game.secret.is_binned(),
        subject: loaded.subject(request),
        secret: attacks::Secret { name: bounding.secret.clone(), candidates: game.candidates.clone() },
        records: records.records(),
        left_out,
        distance: records.distances().summary(),
        most_exposed,
        baseline,
        curve,
        attacks: played,
        utility: attack::utility(request, loaded, fit, (&sigmas, shape))?,
        noise: attack::described(request, loaded, shaped)?,
        delta: bounding.delta,
        seconds: clock.elapsed().as_secs_f64(),
    };
    crate::output::complete(SecretBounds {
        candidates: Some(game.prior.candidates()),
        most_likely: Some(game.prior.most_likely()),
        sigma: bounding.sigma,
        bounds,
        optimal,
        estimation,
        typical,
        figures: if bounding.curve { figures(&data, bounding.sigma) } else { vec![] },
        data: Some(data),
        seed: (simulation.is_some() || !bounding.attacks.is_empty()).then_some(loaded.seed),
        warnings,
        redact: request.redact,
        ..empty(setting(request, loaded, shape.is_some()))
    })
}

/// How far the removal of a record moves a linear model at most; unknown for others.
fn largest_removal(
    loaded: &Loaded,
    fit: &Minimiser,
    shape: Option<&Noise>,
) -> leakscope_core::Result<Option<f64>> {
    match fit {
        Minimiser::Glm(fit) if fit.family == Family::Linear => {
            let all = removal_distances(&loaded.rows, fit, shape)?;
            Ok(Some(all.into_iter().fold(0.0, f64::max)))
        }
        Minimiser::Glm(_) | Minimiser::Softmax(_) => Ok(None),
    }
}

/// The bounds at every noise, with the ε of the most exposed secret and of a removed record beside them.
fn curve(
    records: &RecordBounds,
    (secret, removal): (f64, Option<f64>),
    sigmas: &[f64],
    delta: f64,
) -> Result<Vec<CurvePoint>> {
    let epsilon = |distance: f64, sigma: f64| match distance > 0.0 {
        true => gaussian::epsilon(distance / sigma, delta),
        false => Ok(0.0),
    };
    let mut curve = vec![];
    for (mut at, &sigma) in records.at_sigmas()?.into_iter().zip(sigmas) {
        let of_secret = epsilon(secret, at.sigma)?;
        let of_removal = removal.map(|d| epsilon(d, at.sigma)).transpose()?;
        at.sigma = sigma;
        curve.push(CurvePoint::of(&at, of_secret, of_removal));
    }
    Ok(curve)
}

/// What the bounds leave out: records without a candidate, scaling by the data, the inside of bins.
pub(crate) fn limits_of_game(bounding: &Bounding, left_out: u64, scaled: bool, binned: bool) -> Vec<String> {
    let mut warnings = vec![];
    if left_out > 0 {
        let records_left_out = format::counted(left_out, "record");
        warnings.push(format!(
            "{records_left_out} have a value of {} that is none of the candidates.",
            bounding.secret
        ));
    }
    if scaled {
        warnings.push(format!(
            "The scaling of columns is read off the records and taken as given here: another value of {} would move it too, which \
             an attacker may use beyond these bounds. Scale by public ⟨bounds⟩ with ⟨scale=bounds⟩.",
            bounding.secret
        ));
    }
    if binned {
        warnings.push(format!(
            "Bins of {} are tried at their means: a value elsewhere in its bin may be guessed more often than these bounds \
             say. With more ⟨bins⟩ each holds less.",
            bounding.secret
        ));
    }
    warnings
}

/// What the attacker sees, in words.
fn setting(request: &Request, loaded: &Loaded, shaped: bool) -> String {
    let many = request.releases > 1;
    format!(
        "{} with Gaussian noise {}{}",
        loaded.subject(request).family.name(),
        if shaped { "that has a shape" } else { "on every coefficient" },
        if many { format!(", released {} times", request.releases) } else { String::new() }
    )
}

/// Noise scales, in order: those given, or sixteen around what the secret leaks, and the chosen one.
fn sigmas(bounding: &Bounding, mean_eta: f64) -> Result<Vec<f64>> {
    let mut all = match (bounding.curve, bounding.sigmas.is_empty()) {
        (false, true) => vec![],
        (_, false) => bounding.sigmas.clone(),
        (true, true) => attack::default_sigmas(&bounding.secret, mean_eta)?,
    };
    let chosen = bounding.sigma.map(|s| ("sigma", s));
    for (flag, sigma) in chosen.into_iter().chain(all.iter().map(|s| ("sigmas", *s))) {
        if !(sigma > 0.0 && sigma.is_finite()) {
            return Err(Failure::number(flag, numeral(sigma), "expected a positive number"));
        }
    }
    all.extend(bounding.sigma);
    all.sort_by(f64::total_cmp);
    all.dedup();
    if all.is_empty() {
        return Err(Failure::option("sigma", "say how much noise is on the coefficients (or ⟨sigmas⟩)"));
    }
    Ok(all)
}

/// What attacks achieve at every noise, and a guess without the model.
#[allow(clippy::too_many_arguments, reason = "one call, and all of it is the game")]
fn play(
    request: &Request,
    loaded: &Loaded,
    fit: &Minimiser,
    game: &Game,
    bounding: &Bounding,
    sigmas: &[f64],
    mean_eta: f64,
    warnings: &mut Vec<String>,
) -> Result<(Vec<attacks::AttackResult>, f64)> {
    let releases = f64::from(request.releases).sqrt();
    let mut attackers = bounding.attacks.clone();
    let scaled = request.intercept || request.family == ModelKind::Linear;
    if attackers.contains(&Attacker::Informed) && !scaled {
        attackers.retain(|a| *a != Attacker::Informed);
        warnings.push("The informed adversary needs an intercept, and was not played.".into());
    }
    let prior_max = game.prior.most_likely();
    if attackers.is_empty() {
        return Ok((vec![], prior_max));
    }
    let options = Options {
        attacks: attackers,
        sigmas: sigmas.iter().map(|s| s / releases).collect(),
        trials: bounding.noise_vectors,
        seed: loaded.seed,
        two_class: two_class(&loaded.encoding),
        shape: game.shape.clone(),
    };
    let outcomes = attack::played(&loaded.rows, fit, &game.secret, &options, &[])
        .map_err(|e| explain(e, &loaded.encoding, request.l2))?;
    let mut results = attack::listed(&outcomes, mean_eta, false);
    for (result, sigma) in results.iter_mut().zip(sigmas.iter().cycle()) {
        result.sigma = *sigma;
    }
    Ok((results, outcomes.baseline))
}

/// At a noise: Cramér–Rao for the record that leaks most, and what van Trees gives with the average information of the
/// table, which is no bound.
fn estimates(
    loaded: &Loaded,
    bounding: &Bounding,
    eta: &[f64],
    sigma: f64,
) -> (Vec<Estimation>, Vec<Typical>) {
    let Some(a) = loaded.encoding.attributes.iter().find(|a| a.name == bounding.secret) else {
        return Default::default();
    };
    let largest = eta.iter().copied().fold(0.0, f64::max) / sigma;
    let information =
        eta.iter().map(|e| (e / (sigma * a.scale)).powi(2)).sum::<f64>() / eta.len().max(1) as f64;
    let number = a.kind == Kind::Number;
    let unit = if number { "in the column's units" } else { "of an indicator, 0 or 1" };
    let attacker = "unbiased estimate, record that leaks most";
    let bounds = vec![Estimation::of(attacker, estimation::deviation(largest, a.scale), unit)];
    let mut typical = vec![];
    if number {
        let spread = a.population_sd;
        let attacker =
            format!("any estimate, over records, knowing the population (±{})", format::number(spread));
        let error = estimation::typical_deviation(information, spread);
        typical.push(Typical { attacker, error, unit: unit.into() });
    }
    (bounds, typical)
}
