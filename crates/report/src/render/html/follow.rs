//! Numbers that follow the noise: each says how, so that the script of a page can move it. Without a script they are numbers as any
//! others.

use super::markup::{Html, fill};
use crate::document::audit::{Audit, Utility};
use crate::document::tell::ValuePair;
use crate::{format, what_if, words};
use leakscope_core::special::normal_quantile;

/// A number with how it follows (`kind`) and what it is at the noise of the audit.
fn follows(kind: &'static str, x: f64, text: &str) -> Html {
    match x.is_finite() {
        true => fill("<span data-w=\"{}\" data-x=\"{}\">{}</span>", &[&kind, &format!("{x:e}"), &text]),
        false => Html::text(text),
    }
}

/// η: falls as one over the noise.
pub(crate) fn eta(x: f64) -> Html {
    follows("eta", x, &format::number(x))
}

/// dFIL: falls as one over its square.
pub(crate) fn square(x: f64) -> Html {
    follows("square", x, &format::number(x))
}

/// The least error of an estimate: grows with the noise.
pub(crate) fn error(x: f64) -> Html {
    follows("error", x, &format::at_least(x))
}

/// The least squared error: grows with its square.
pub(crate) fn squared_error(x: f64) -> Html {
    follows("error2", x, &format::at_least(x))
}

/// The error of an estimate with a prior.
pub(crate) fn with_prior(x: f64, prior: f64) -> Html {
    fill(
        "<span data-w=\"prior\" data-x=\"{}\" data-p=\"{}\">{}</span>",
        &[&format!("{x:e}"), &format!("{prior:e}"), &format::number(x)],
    )
}

/// A probability of telling two values apart; `certain` has no distance that noise could shrink.
fn telling(distance: Option<f64>, p: f64) -> Html {
    let text = format::share_at_most(p);
    match distance.filter(|d| d.is_finite()) {
        Some(d) => follows("told", d, &text),
        None => follows("held", p, &text),
    }
}

/// How often the worst record's values are told apart.
pub(crate) fn worst(pair: &ValuePair) -> Html {
    telling(pair.distance.filter(|_| pair.shows.is_none()), pair.worst)
}

/// The same, or at least where the refits that were allowed left it open.
pub(crate) fn told_apart(pair: &ValuePair, protect_at: f64) -> Html {
    let text = words::told_apart(pair, protect_at);
    match pair.at_least.filter(|_| pair.shows.is_none()) {
        Some(least) => {
            let most = pair.distance.map(|d| format!("{d:e}")).unwrap_or_default();
            fill(
                "<span data-w=\"open\" data-x=\"{}\" data-most=\"{}\" data-worst=\"{}\">{}</span>",
                &[&format!("{least:e}"), &most, &format!("{:e}", pair.worst), &text],
            )
        }
        None => worst(pair),
    }
}

/// How often those of the median record are, where that was settled.
pub(crate) fn median(pair: &ValuePair, protect_at: f64) -> Html {
    match pair.settled_median(protect_at) {
        Some(median) => telling(what_if::median_distance(pair), median),
        None => Html::text("not settled"),
    }
}

/// How often the right one of all levels is named.
pub(crate) fn among(pair: &ValuePair, levels: usize, p: f64) -> Html {
    let text = format::share_at_most(p);
    match pair.distance.filter(|d| pair.shows.is_none() && d.is_finite()) {
        Some(d) => fill(
            "<span data-w=\"among\" data-x=\"{}\" data-m=\"{}\" data-q=\"{}\">{}</span>",
            &[
                &format!("{d:e}"),
                &levels,
                &format!("{:e}", normal_quantile(1.0 / levels.max(1) as f64)),
                &text,
            ],
        ),
        None => follows("held", p, &text),
    }
}

/// A flag that stands where two values are told apart too often: `depth` is what Φ is taken of.
pub(crate) fn flag(open: bool, depth: f64) -> Html {
    let hidden = if open { Html::new() } else { Html::literal(" hidden") };
    let depth = if depth.is_finite() { format!("{depth:e}") } else { "9e999".into() };
    fill("<span class=\"flag\" data-w=\"flag\" data-x=\"{}\"{}>not protected</span> ", &[&depth, &hidden])
}

/// What is left of the model at the noise.
pub(crate) fn utility(u: &Utility) -> Html {
    fill("<span data-w=\"utility\">{}</span>", &[&words::metric(u, u.at_sigma)])
}

/// What is left of it at a noise that meets a goal, which more releases make larger; nothing off the curve.
pub(crate) fn utility_at(u: &Utility, sigma: f64) -> Html {
    let text = words::metric_at(u, sigma)
        .map_or_else(|| "off the curve".to_owned(), |value| format!("≈ {}", words::metric(u, value)));
    follows("goalmetric", sigma, &text)
}

/// A noise that meets a goal: more releases need more of it.
pub(crate) fn goal(x: f64) -> Html {
    follows("goal", x, &format::at_most(x))
}

/// η at a noise that stays: more releases make it larger.
pub(crate) fn eta_of_releases(x: f64) -> Html {
    follows("released", x, &format::number(x))
}

/// What the header says of the noise.
pub(crate) fn released(audit: &Audit) -> Html {
    fill("<span data-w=\"times\">{}</span>", &[&words::released(audit)])
}

/// The noise itself.
pub(crate) fn sigma(x: f64) -> Html {
    fill("<span data-w=\"sigma\">{}</span>", &[&format::setting(x)])
}

/// The error that noise adds to a coefficient, which grows with it.
pub(crate) fn noise_error(x: f64) -> Html {
    follows("noise", x, &format::number(x))
}

/// What a coefficient is worth with the noise: its estimate, the errors from sampling and from noise, and how many errors to
/// either side an interval goes.
pub(crate) fn coefficient(kind: &'static str, all: [f64; 4], text: &str) -> Html {
    if all.iter().any(|x| !x.is_finite()) {
        return Html::text(text);
    }
    let [e, s, n, z] = all.map(|x| format!("{x:e}"));
    fill(
        "<span data-w=\"{}\" data-x=\"{}\" data-s=\"{}\" data-e=\"{}\" data-z=\"{}\">{}</span>",
        &[&kind, &n, &s, &e, &z, &text],
    )
}

/// Whether the labels of an axis follow the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// They do not.
    Stands,
    /// As η does.
    Eta,
    /// As η at a noise that stays does: with the releases alone.
    Releases,
}

impl Axis {
    /// The labels of an axis (`x` or `y`) on a scale, for the script to write anew.
    pub(crate) fn ticks(self, axis: &'static str, scale: &str, ticks: Html) -> Html {
        let by = match self {
            Self::Stands => return ticks,
            Self::Eta => "eta",
            Self::Releases => "released",
        };
        fill("<g data-ticks=\"{}\" data-by=\"{}\" data-scale=\"{}\">{}</g>", &[&axis, &by, &scale, &ticks])
    }
}

/// A piece of a text that cannot hold markup: of a hover text, of what a drawing says to those who cannot see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextPiece {
    /// Words.
    Words(String),
    /// η.
    Eta(f64),
    /// η at a noise that stays.
    Released(f64),
    /// The noise itself.
    Sigma(f64),
    /// What is left of the model, as text.
    Utility(String),
}

impl TextPiece {
    /// As it reads at the noise of the audit.
    pub(crate) fn text(pieces: &[Self]) -> String {
        pieces
            .iter()
            .map(|p| match p {
                Self::Words(text) | Self::Utility(text) => text.clone(),
                Self::Eta(x) | Self::Released(x) => format::number(*x),
                Self::Sigma(x) => format::setting(*x),
            })
            .collect()
    }

    /// The pieces as an attribute; nothing where none follows.
    pub(crate) fn attribute(pieces: &[Self]) -> Html {
        let follows = |p: &Self| match p {
            Self::Words(_) => false,
            Self::Eta(x) | Self::Released(x) => x.is_finite(),
            Self::Sigma(_) | Self::Utility(_) => true,
        };
        if !pieces.iter().any(follows) {
            return Html::new();
        }
        let all: Vec<serde_json::Value> = pieces
            .iter()
            .map(|p| match p {
                Self::Words(text) => serde_json::json!(as_shown(text)),
                Self::Eta(x) if x.is_finite() => serde_json::json!(["eta", x]),
                Self::Released(x) if x.is_finite() => serde_json::json!(["released", x]),
                Self::Eta(x) | Self::Released(x) => serde_json::json!(format::number(*x)),
                Self::Sigma(x) => serde_json::json!(["sigma", x]),
                Self::Utility(_) => serde_json::json!(["utility", 0]),
            })
            .collect();
        fill(" data-said=\"{}\"", &[&serde_json::Value::from(all).to_string()])
    }
}

/// Text as markup has it: no control character means anything on a page.
fn as_shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// Words of [`TextPiece`].
pub(crate) fn piece(text: impl Into<String>) -> TextPiece {
    TextPiece::Words(text.into())
}

/// Text that stands for the noise of the audit alone.
pub(crate) fn as_audited(text: &str) -> Html {
    fill("<span class=\"stated\">{}</span>", &[&text])
}
