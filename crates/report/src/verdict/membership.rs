//! The verdict on membership: how well attacks tell who took part, and whether a run keeps what it promises.

use super::{Colour, Facts, Noise, Success, Verdict, decide, plain, strong};
use crate::document::membership::{Membership, MembershipAttack};
use crate::format;
use crate::words;

pub(crate) fn facts(m: &Membership) -> Facts {
    let most = m.attacks.iter().map(|a| a.area).max_by(f64::total_cmp);
    Facts {
        noise: if m.noise { Noise::Chosen } else { Noise::Absent },
        over_limit: m.canaries.as_ref().is_some_and(|c| c.refutes()),
        epsilon: m.promise.map(|p| p.epsilon),
        observed: most.map(|success| Success { success, baseline: 0.5 }),
        ..Facts::default()
    }
}

/// The attack that tells most at the smallest false-positive rate.
pub(crate) fn strongest(m: &Membership) -> Option<&MembershipAttack> {
    let first = |a: &MembershipAttack| a.points.first().map_or(0.0, |p| p.true_positive.value);
    m.attacks.iter().max_by(|a, b| first(a).total_cmp(&first(b)).then(a.area.total_cmp(&b.area)))
}

/// The verdict on membership.
pub fn of_membership(m: &Membership) -> Verdict {
    let decision = decide(&facts(m));
    let refuted = m.canaries.as_ref().is_some_and(|c| c.refutes());
    let head = match decision.colour {
        Colour::Red if refuted => "The training code breaks its promise",
        Colour::Red if m.noise => "Who took part may be told",
        Colour::Red => "Nothing hides who took part",
        Colour::Amber => "Not shown to hide who took part",
        Colour::Green => "Who took part is hidden",
    };
    let mut sentences = vec![];
    if let Some((a, p)) = strongest(m).and_then(|a| Some((a, a.points.first()?))) {
        let mut first = vec![
            plain(format!(
                "At {} false positives, the {} finds ",
                format::share(p.rate),
                words::membership_attacker(a.attacker)
            )),
            strong(format::share(p.true_positive.value)),
            plain(format!(
                " of the training records ({} – {}); over all thresholds it ranks a training record above another in {}; a \
                 coin toss: 50%.",
                format::share(p.true_positive.ci_low),
                format::share(p.true_positive.ci_high),
                format::share(a.area)
            )),
        ];
        if let Some(b) = &p.allowed {
            first.push(plain(format!(
                " The run’s (ε, δ) allows no attacker more than {}.",
                format::share_at_most(b.value)
            )));
        }
        sentences.push(first);
    }
    if let Some(c) = &m.canaries {
        let promised = match c.promised {
            Some(p) if c.refutes() => format!(
                ", above the {} that it promises: it is not what its accountant takes it for",
                format::at_most(p)
            ),
            Some(p) => format!(
                ", below the {} that it promises: nothing speaks against the training code",
                format::at_most(p)
            ),
            None => String::new(),
        };
        sentences.push(vec![
            plain(format!(
                "One run with {} canaries shows, at {} confidence, that its ε is at least ",
                format::count(c.canaries),
                format::share(c.confidence)
            )),
            strong(format::at_least(c.epsilon.value)),
            plain(format!(
                " ({} of {} guesses right){promised}.",
                format::count(c.right),
                format::count(c.guessed)
            )),
        ]);
    }
    sentences.push(vec![plain(
        "These are the results of particular attacks. A better attack may do better: this is no guarantee.",
    )]);
    Verdict::new(decision, head, sentences)
}
