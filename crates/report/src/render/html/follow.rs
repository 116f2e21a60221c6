//! Numbers that follow the noise: each says how, so that the script of a page can move it. Without a script they are numbers as any
//! others.

use super::markup::{Html, fill};
use crate::document::audit::Utility;
use crate::document::tell::Told;
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
fn told(distance: Option<f64>, p: f64) -> Html {
    let text = format::share_at_most(p);
    match distance.filter(|d| d.is_finite()) {
        Some(d) => follows("told", d, &text),
        None => follows("held", p, &text),
    }
}

/// How often the worst record's values are told apart.
pub(crate) fn worst(pair: &Told) -> Html {
    told(pair.distance.filter(|_| pair.shows.is_none()), pair.worst)
}

/// The same, or at least where the refits that were allowed left it open.
pub(crate) fn told_apart(pair: &Told, protect_at: f64) -> Html {
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
pub(crate) fn median(pair: &Told, protect_at: f64) -> Html {
    match pair.settled_median(protect_at) {
        Some(median) => told(what_if::median_distance(pair), median),
        None => Html::text("not settled"),
    }
}

/// How often the right one of all levels is named.
pub(crate) fn among(pair: &Told, levels: usize, p: f64) -> Html {
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

/// The noise itself.
pub(crate) fn sigma(x: f64) -> Html {
    fill("<span data-w=\"sigma\">{}</span>", &[&format::setting(x)])
}

/// Text that stands for the noise of the audit alone.
pub(crate) fn as_audited(text: &str) -> Html {
    fill("<span class=\"stated\">{}</span>", &[&text])
}
