//! The noise on the coefficients of a table's model, or on encodings, that meets a target, and what it costs.

mod request;
mod shapes;

pub use request::{CalibrateRequest, Over, run};

use crate::audit;
use crate::bound::data::{Bounding, Game, limits_of_game};
use crate::failure::explain;
use crate::model::{self, Loaded};
use crate::request::Request;
use crate::scaling::{SecretScaling, is_filled, is_uncounted, of_secret};
use crate::{Failure, Result};
use leakscope_core::bound::{Channel, Encodings, Prior, bounds};
use leakscope_core::dp::calibrate::{TIGHT, search};
use leakscope_core::glm::Minimiser;
use leakscope_report::calibrate::{Calibration, OnModel, Scored, Utility};
use leakscope_table::{Encoding, Hooks, Scale};

/// A calibration as JSON, in the order of names: one that looked at a table is its owner's.
pub fn document(calibration: &Calibration) -> String {
    match &calibration.model {
        Some(_) => leakscope_report::sorted_owners_document(calibration),
        None => leakscope_report::sorted_document(calibration),
    }
}

/// What the noise on the coefficients must achieve.
#[derive(Debug, Clone)]
pub enum Aim {
    /// What the request's own noise says: a statistic of η, or the deviation of an attribute.
    Leakage,
    /// No attacker guesses a secret more often than this.
    Guessing {
        /// The secret and its prior; noise scales and attacks in it are not looked at.
        bounding: Bounding,
        /// The probability.
        success: f64,
        /// Whether that is for every record, or on average over them.
        every_record: bool,
    },
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Solved {
    /// The noise: the smallest that suffices, to 0.1%.
    pub sigma: f64,
    /// What is achieved with it: on the safe side of the target.
    pub achieved: f64,
    /// Data and model, and what it costs.
    pub model: OnModel,
}

/// The smallest noise on the coefficients of the request's model that meets the aim.
pub fn on_data(request: &Request, aim: &Aim, hooks: &Hooks) -> Result<Solved> {
    let loaded = model::load(request, hooks)?;
    request.check_names(&loaded.encoding)?;
    let fit = loaded.minimiser(request)?;
    let ((sigma, achieved), warnings) = match aim {
        Aim::Leakage => {
            let warnings = uncounted(request, &loaded.encoding).into_iter().collect();
            (audit::solve(request, &loaded, &fit)?, warnings)
        }
        Aim::Guessing { bounding, success, every_record } => {
            guessing(request, &loaded, &fit, bounding, *success, *every_record)?
        }
    };
    let metric = loaded.metric(request);
    let (on, rows) = match &loaded.test {
        Some(test) => (Scored::HeldOut, test),
        None => (Scored::Training, &loaded.rows),
    };
    let (values, constant_model) = model::scores_of(rows, &fit, metric, &[0.0, sigma], &[])?;
    let (without_noise, at_sigma) = (values[0], values[1]);
    let utility = Utility { on, metric: metric.into(), without_noise, at_sigma, constant_model };
    let seed = request.holdout.map(|_| loaded.seed);
    let model = OnModel { subject: loaded.subject(request), utility, seed, warnings };
    Ok(Solved { sigma, achieved, model })
}

fn guessing(
    request: &Request,
    loaded: &Loaded,
    fit: &Minimiser,
    bounding: &Bounding,
    success: f64,
    every_record: bool,
) -> Result<((f64, f64), Vec<String>)> {
    let game = Game::new(request, loaded, bounding)?;
    check_success(&game.prior, success)?;
    let releases = f64::from(request.releases).sqrt();
    let fail = |e| explain(e, &loaded.encoding, request.l2);
    let (unit, left_out) = game.records(&loaded.rows, fit, &[1.0], None).map_err(fail)?;
    let scaled = of_secret(request, &loaded.encoding, &bounding.secret) == SecretScaling::Given;
    let warnings = limits_of_game(bounding, left_out, scaled, game.secret.is_binned());
    let scale = unit.distances().max() * releases;
    let at = |ln_sigma: f64| -> leakscope_core::Result<f64> {
        let (records, _) = game.records(&loaded.rows, fit, &[ln_sigma.exp() / releases], None)?;
        let at = records.at_sigmas()?;
        let of = |b: &leakscope_core::bound::records::RecordBound| match every_record {
            true => b.worst.map(|w| w.success.value),
            false => Some(b.mean.success.value),
        };
        Ok(at.iter().flat_map(|a| &a.bounds).filter_map(of).fold(1.0, f64::min))
    };
    let solved = solve(at, success, scale).map_err(|e| match e {
        Failed::Core(e) => fail(e),
        Failed::Nothing => nothing_leaks(),
        Failed::Unreachable => Failure::number(
            "success",
            success,
            "no noise up to a million times the distance of the candidate models reaches it",
        ),
    })?;
    Ok((solved, warnings))
}

/// What an η here leaves out, where the encoding moves with every record and nothing counts it.
fn uncounted(request: &Request, encoding: &Encoding) -> Option<String> {
    let filled = encoding.attributes.iter().any(|a| is_filled(encoding, a));
    let moves = is_uncounted(request.scaling, encoding)
        || encoding.scale == Scale::UnitBall
        || encoding.pca.is_some()
        || filled;
    moves.then(|| {
        "The encoding (means and scales, a largest norm, components or what fills gaps) is read off the records and taken as given here: \
         what a record does to it is not counted, and η may be larger than this."
            .into()
    })
}

/// The smallest Gaussian noise on encodings at which no attacker guesses the secret more often.
pub fn on_encodings(prior: &Prior, encodings: &Encodings, success: f64) -> Result<(f64, f64)> {
    check_success(prior, success)?;
    let at = |ln_sigma: f64| {
        let table = bounds(prior, Channel::Gaussian { encodings, sigma: ln_sigma.exp() }, None)?;
        Ok(table.tightest().map_or(1.0, |b| b.success.value))
    };
    solve(at, success, encodings.diameter(prior.candidates())).map_err(|e| match e {
        Failed::Core(e) => e.into(),
        Failed::Nothing => nothing_leaks(),
        Failed::Unreachable => Failure::number("success", success, "no noise reaches it"),
    })
}

enum Failed {
    Core(leakscope_core::Error),
    Nothing,
    Unreachable,
}

/// The smallest σ with `f(ln σ) ≤ most`; `scale` is the σ to start from.
fn solve(
    f: impl FnMut(f64) -> leakscope_core::Result<f64>,
    most: f64,
    scale: f64,
) -> std::result::Result<(f64, f64), Failed> {
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Failed::Nothing);
    }
    let start = scale.ln();
    let range = (start - 1e6_f64.ln(), start + 1e6_f64.ln());
    match search(f, most, start, range, TIGHT).map_err(Failed::Core)? {
        Some((ln, achieved)) => Ok((ln.exp(), achieved)),
        None => Err(Failed::Unreachable),
    }
}

fn nothing_leaks() -> Failure {
    Failure::option("success", "all candidates give the same model: no noise is needed")
}

fn check_success(prior: &Prior, success: f64) -> Result<()> {
    let p = prior.most_likely();
    if success > p && success < 1.0 {
        return Ok(());
    }
    let expected = format!("expected more than {p} (a guess without the model) and less than 1");
    Err(Failure::number("success", success, expected))
}
