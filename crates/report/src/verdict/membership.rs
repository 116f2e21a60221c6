//! The verdict on membership: how well attacks tell who took part, and whether a run keeps what it promises.

use super::net::training_facts;
use super::{Colour, Facts, Noise, Span, Success, Verdict, decide, left_out, plain, strong};
use crate::document::membership::{CanaryAudit, Membership, MembershipAttack, Rate, Stated};
use crate::format;
use crate::words;

pub(crate) fn facts(m: &Membership) -> Facts {
    let most = m.attacks.iter().map(|a| a.area).max_by(f64::total_cmp);
    // Whatever is open about the run is open here: a page about a run is never calmer than the run's own.
    let run = m.training.as_ref().map_or_else(|| stated(m), |t| training_facts(t));
    Facts {
        over_limit: m.canaries.as_ref().is_some_and(|c| c.refutes())
            || m.attacks.iter().flat_map(|a| &a.points).any(Rate::is_past_own_accounts)
            || past_limit(m).is_some_and(|(_, p)| p.is_clearly_past_limit(m.promise)),
        unfinished: run.unfinished || past_limit(m).is_some(),
        observed: most.map(|success| Success { success, baseline: 0.5 }),
        ..run
    }
}

/// What is known of a run by its promise alone.
fn stated(m: &Membership) -> Facts {
    Facts {
        noise: if m.noise { Noise::Chosen } else { Noise::Absent },
        epsilon: m.promise.map(|p| p.epsilon),
        left_out: m.promise.map(|p| left_out(p.delta, m.data.records as f64)),
        ..Facts::default()
    }
}

/// The attack that tells most at the smallest false-positive rate.
pub(crate) fn strongest(m: &Membership) -> Option<&MembershipAttack> {
    let first = |a: &MembershipAttack| a.points.first().map_or(0.0, |p| p.true_positive.value);
    m.attacks.iter().max_by(|a, b| first(a).total_cmp(&first(b)).then(a.area.total_cmp(&b.area)))
}

/// What lies furthest above what the run's (ε, δ) allows; none where nothing does.
fn past_limit(m: &Membership) -> Option<(&MembershipAttack, &Rate)> {
    let all = m.attacks.iter().flat_map(|a| a.points.iter().map(move |p| (a, p)));
    let by = |p: &Rate| {
        let above = |x: f64| p.allowed.map_or(0.0, |b| x - b.value);
        (above(p.true_positive.ci_low).max(0.0), above(p.true_positive.value))
    };
    let order = |a: &Rate, b: &Rate| {
        let ((x, y), (u, v)) = (by(a), by(b));
        x.total_cmp(&u).then(y.total_cmp(&v))
    };
    all.filter(|(_, p)| p.is_past_limit()).max_by(|(_, a), (_, b)| order(a, b))
}

/// What it means where an attack found more than the run allows.
fn explained((a, p): (&MembershipAttack, &Rate), promise: Option<Stated>) -> Vec<Span> {
    let t = &p.true_positive;
    let chance = match p.is_clearly_past_limit(promise) {
        true => "chance alone does not explain it: ".to_owned(),
        false => format!(
            "by chance (its interval begins at {}, and false positives may be {}), ",
            format::share(t.ci_low),
            format::share(p.false_positive.ci_high)
        ),
    };
    vec![
        strong(format!(
            "The {} found {} at {} false positives, more than that promise allows",
            words::membership_attacker(a.attacker),
            format::share(t.value),
            format::share(p.rate)
        )),
        plain(format!(
            ": {chance}because the other records differ from those trained on (another source, another time), or because the \
             training code does not do what its accountant takes it to do. Find out which before you rely on ε."
        )),
    ]
}

/// The verdict on membership.
pub fn of_membership(m: &Membership) -> Verdict {
    let facts = facts(m);
    let decision = decide(&facts);
    let refuted = m.canaries.as_ref().is_some_and(|c| c.refutes());
    let clear = past_limit(m).is_some_and(|(_, p)| p.is_clearly_past_limit(m.promise));
    let head = match decision.colour {
        Colour::Red if refuted => "The training code breaks its promise",
        Colour::Red | Colour::Amber if clear => "An attack found more than the run allows",
        Colour::Red if facts.noise != Noise::Absent => "Who took part may be told",
        Colour::Red => "Nothing hides who took part",
        Colour::Amber => "Not shown to hide who took part",
        Colour::Green => "Who took part is hidden",
    };
    let mut sentences = vec![];
    sentences.extend(strongest(m).and_then(|a| Some(of_attack(a, a.points.first()?))));
    sentences.extend(past_limit(m).map(|most| explained(most, m.promise)));
    sentences.extend(m.canaries.as_ref().map(of_canaries));
    sentences.push(vec![plain(
        "These are the results of particular attacks. A better attack may do better: this is no guarantee.",
    )]);
    Verdict::new(decision, head, sentences)
}

/// What the strongest attacker finds, beside what the run and the records' own accounts allow.
fn of_attack(a: &MembershipAttack, p: &Rate) -> Vec<Span> {
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
    if let Some(most) = p.own_allowed {
        let beaten = if p.is_past_own_accounts() {
            ", which this attack passes: the other records differ from these, or the accounts are wrong"
        } else {
            ""
        };
        first.push(plain(format!(
            " The attacked records’ own accounts allow {}{beaten}.",
            format::share_at_most(most)
        )));
    }
    first
}

/// What canaries in one run show of its ε.
fn of_canaries(c: &CanaryAudit) -> Vec<Span> {
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
    vec![
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
    ]
}
