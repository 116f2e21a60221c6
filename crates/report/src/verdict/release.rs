//! The verdict on a release: the statement that goes with the model.

use super::audit::of_tell;
use super::{Colour, Facts, Noise, PROTECT_AT, TYPICAL, Verdict, decide, estimated, plain, strong};
use crate::document::release::Release;
use crate::format;

/// What a release prints.
pub(crate) fn facts(r: &Release) -> Facts {
    let (told, label_told) = r.tell.as_ref().map(of_tell).unwrap_or_default();
    let eta = r.composed.eta_max.max(r.eta.max);
    Facts {
        noise: if r.mechanism.sigma > 0.0 { Noise::Chosen } else { Noise::Absent },
        over_limit: r.composed.budget_eta.is_some_and(|b| r.composed.eta_max > b),
        protect_at: r.tell.as_ref().map_or(PROTECT_AT, |t| t.protect_at),
        estimated: Some(if eta > 0.0 { estimated(TYPICAL, 1.0 / eta) } else { 0.5 }),
        told,
        label_told,
        ..Facts::default()
    }
}

/// The verdict on a release.
pub fn of_release(r: &Release) -> Verdict {
    let facts = facts(r);
    let decision = decide(&facts);
    let head = match (decision.colour, facts.noise) {
        (_, Noise::Absent) => "Released without noise",
        (Colour::Green, _) => "Released with noise that protects",
        (Colour::Amber, _) => "Released with noise",
        (Colour::Red, _) => "Released with too little noise",
    };
    if facts.noise == Noise::Absent {
        let first = vec![
            strong("There is no noise"),
            plain(
                ": somebody who knows every other record computes the values of the last one from the coefficients, \
                 exactly. Withdraw it, or release it with noise.",
            ),
        ];
        return Verdict::new(decision, head, vec![first]);
    }
    let told = facts.exact();
    let mut first = match r.mechanism.shape {
        None => vec![
            plain("Gaussian noise of standard deviation "),
            strong(format::setting(r.mechanism.sigma)),
            plain(" was added to every coefficient."),
        ],
        Some(_) => vec![plain(
            "Gaussian noise with a covariance that was made for its targets was added to the coefficients.",
        )],
    };
    first.extend([
        plain(" The information loss η of a record is at most "),
        strong(format::at_most(r.eta.max)),
    ]);
    first.push(plain(match told.or(facts.estimated) {
        Some(p) => format!(
            ": somebody who knows all else tells two typical values of the most exposed record apart in {}{} of cases (a \
             coin toss: 50%).",
            if told.is_some() { "" } else { "about " },
            format::share_at_most(p)
        ),
        None => ".".into(),
    }));
    let second = match r.composed.budget_eta {
        Some(b) => vec![
            plain("Together with earlier releases of these data η is at most "),
            strong(format::at_most(r.composed.eta_max)),
            plain(format!(" of a budget of {}.", format::setting(b))),
        ],
        None => vec![
            plain(format!(
                "With earlier releases of these data ({} in all) η is at most ",
                format::count(r.composed.releases as u64)
            )),
            strong(format::at_most(r.composed.eta_max)),
            plain("; no budget was set."),
        ],
    };
    Verdict::new(decision, head, vec![first, second])
}
