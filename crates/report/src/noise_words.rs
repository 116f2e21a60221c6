//! Noise with a shape, in words.

use crate::document::audit::Audit;
use crate::document::noise::{Direction, Goal, Noise, Secret, Source};
use crate::format;
use leakscope_core::fisher::noise::Shape;
use leakscope_core::glm::ModelKind;

/// A direction that causes less than this share of its part of the cost hardly moves predictions.
const HARDLY: f64 = 0.25;

/// The shape as a word before `noise`.
pub(crate) fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Isotropic => "isotropic",
        Shape::Shaped => "shaped",
        Shape::Optimal => "optimal",
    }
}

/// What a goal asks for.
pub(crate) fn goal(g: &Goal) -> String {
    let name = g.name.as_deref().unwrap_or_default();
    match (g.secret, g.sd) {
        (Secret::Record, _) => format!("η of every record is at most {}", format::setting(g.eta)),
        (Secret::Attribute | Secret::Label, Some(sd)) => format!(
            "no estimate of {name} that is right on average is off by less than ±{}, for any record",
            format::setting(sd)
        ),
        (Secret::Attribute | Secret::Label, None) => {
            format!("η of {name} of every record is at most {}", format::setting(g.eta))
        }
    }
}

/// All goals, joined.
pub(crate) fn goals(noise: &Noise) -> String {
    noise.goals.iter().map(goal).collect::<Vec<_>>().join("; ")
}

/// What costs are added to.
pub(crate) fn cost_unit(family: ModelKind) -> &'static str {
    match family {
        ModelKind::Linear => "the mean squared error",
        ModelKind::Logistic
        | ModelKind::Poisson
        | ModelKind::Gamma
        | ModelKind::Tweedie(_)
        | ModelKind::Softmax => "the mean deviance, to second order",
        ModelKind::SquaredHinge | ModelKind::Huber(_) => "twice the mean loss, to second order",
    }
}

/// Names as `a`, `a and b`, `a, b and c`.
fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).into(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// What a direction is made of.
fn combination(d: &Direction) -> String {
    let names: Vec<&str> = d
        .attributes
        .iter()
        .map(|(name, _)| if name == "(intercept)" { "the intercept" } else { name.as_str() })
        .collect();
    match names.as_slice() {
        ["the intercept"] => "the intercept".into(),
        [one] => format!("what {one} adds to predictions"),
        [_, _] => format!("the contrast of {}", joined(&names)),
        _ => format!("a combination of {}", joined(&names)),
    }
}

/// Where a direction's share of the noise goes and what it does there.
pub(crate) fn direction(d: &Direction) -> String {
    let share = format::share(d.noise);
    let much =
        if d.noise >= 0.5 { format!("Most of the noise ({share})") } else { format!("{share} of the noise") };
    let effect = match d.cost < HARDLY * d.noise {
        true => {
            format!("where it hardly moves predictions ({} of what the noise costs)", format::share(d.cost))
        }
        false => format!("which causes {} of what the noise costs", format::share(d.cost)),
    };
    format!("{much} goes into {}, {effect}.", combination(d))
}

/// How close to the cheapest the noise is.
pub(crate) fn certificate(noise: &Noise) -> String {
    let bound = format::number(noise.lower_bound_on_cost);
    match noise.gap.is_finite() {
        true => format!(
            "No noise whatever meets the targets for less than {bound}, the scaling of columns taken as given: this one costs at most {} as much as the cheapest.",
            above_cheapest(noise.gap)
        ),
        false => "How much the cheapest noise costs is not known here.".into(),
    }
}

/// At most how many times as much as the cheapest a shape costs, from its gap.
pub(crate) fn above_cheapest(gap: f64) -> String {
    if gap.is_finite() { format!("×{}", format::at_most(1.0 + gap)) } else { "–".into() }
}

/// What the covariance itself gives away.
pub(crate) fn covariance(noise: &Noise) -> String {
    match &noise.source {
        Source::Nowhere => "Isotropic noise has no shape that could give anything away.".into(),
        Source::Table { files } => format!(
            "Its shape was taken from a public table ({}), so that it says nothing about these records.",
            files.join(", ")
        ),
        Source::Bounds => {
            "Its shape was taken from the public bounds of the columns, so that it says nothing about these records.".into()
        }
        Source::Records => format!(
            "Its shape is read off the records, and that too gives something away: at most {} of η² about what is protected of \
             any record, the scaling of columns taken as given, which is counted (up to {} were set aside). η in the tables is that of the noise alone; with the \
             covariance it reaches {} of its target at most.",
            format::share_at_most(noise.covariance_information),
            format::share(noise.shape_budget),
            format::share_at_most(noise.largest_eta)
        ),
    }
}

/// What isotropic noise would have cost.
pub(crate) fn against_isotropic(audit: &Audit, noise: &Noise) -> String {
    let unit = cost_unit(audit.model.family);
    let own = format::number(noise.cost);
    match noise.shape {
        Shape::Isotropic => format!("It adds {own} to {unit}."),
        Shape::Shaped | Shape::Optimal => format!(
            "It adds {own} to {unit}; isotropic noise for the same targets would have added {}, {} as much.",
            format::number(noise.cost_isotropic),
            format::times(noise.gain)
        ),
    }
}

/// The first sentence about the noise.
pub(crate) fn source(audit: &Audit) -> Option<String> {
    let noise = audit.noise.as_ref()?;
    Some(format!(
        "Noise of {} shape was made so that {}. It costs as much as isotropic noise of σ = {}.",
        shape(noise.shape),
        goals(noise),
        format::setting(audit.sigma)
    ))
}

/// The verdict's clause where the covariance was read off the records.
pub(crate) fn open_question() -> &'static str {
    "The covariance of the noise was read off the records, and who sees it may recompute it for each value: that is not part of \
     how often values are told apart. A shape from a public table leaves nothing open."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(noise: f64, cost: f64, names: &[&str]) -> Direction {
        Direction { noise, cost, attributes: names.iter().map(|n| ((*n).to_owned(), 0.4)).collect() }
    }

    #[test]
    fn directions_are_told_in_words() {
        let text = direction(&along(0.73, 0.02, &["race", "vkorc1"]));
        assert_eq!(
            text,
            "Most of the noise (73%) goes into the contrast of race and vkorc1, where it hardly moves predictions (2% of what the \
             noise costs)."
        );
        let text = direction(&along(0.31, 0.4, &["(intercept)"]));
        assert!(text.starts_with("31% of the noise goes into the intercept, which causes 40%"), "{text}");
        let text = direction(&along(0.31, 0.4, &["a", "b", "c"]));
        assert!(text.contains("a combination of a, b and c"), "{text}");
    }

    #[test]
    fn goals_are_told_in_words() {
        let g = Goal { secret: Secret::Record, name: None, eta: 0.5, sd: None };
        assert_eq!(goal(&g), "η of every record is at most 0.5");
        let g = Goal { secret: Secret::Attribute, name: Some("age".into()), eta: 0.7, sd: Some(20.0) };
        assert!(goal(&g).contains("age") && goal(&g).contains("±20"), "{}", goal(&g));
        let g = Goal { secret: Secret::Label, name: Some("dose".into()), eta: 0.7, sd: None };
        assert_eq!(goal(&g), "η of dose of every record is at most 0.7");
    }
}
