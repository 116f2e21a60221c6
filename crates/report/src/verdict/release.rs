//! The verdict on a release: the statement that goes with the model.

use super::audit::{capitalised, has_near_values, is_settled, told_of_equal_rows, worst};
use super::remedy::cause;
use super::{
    Colour, Decision, Facts, Noise, PROTECT_AT, Reservations, Span, TYPICAL, Verdict, decide, estimated,
    more_noise, noise_to_hide, plain, strong,
};
use crate::document::noise::{Goal, Secret};
use crate::document::release::{Ceiling, Means, Owned, PublicPair, PublishedShape, Release};
use crate::document::tell::{Allowance, Tell, ValuePair};
use crate::format;
use leakscope_core::units::public_sigma;

/// What a release prints.
pub(crate) fn facts(r: &Release) -> Facts {
    let local = larger(r.composed.eta_max, r.eta.max).map(|eta| match eta > 0.0 {
        true => estimated(TYPICAL, 1.0 / eta),
        false => 0.5,
    });
    let of = |ceiling: Option<Ceiling>, by: Means| ceiling.filter(|c| c.by == by).map(|c| c.at_most);
    let (attributes, label) = r.tell.as_ref().map(|t| (t.attributes, t.label)).unwrap_or_default();
    let kept_back = is_kept_back(r);
    let covered = r.tell.is_some()
        && attributes.is_none_or(|c| c.by == Means::Refits)
        && label.is_none_or(|c| c.by == Means::Refits)
        && label.is_some() == r.label_secret
        && !kept_back;
    Facts {
        noise: if r.mechanism.sigma > 0.0 { Noise::Chosen } else { Noise::Absent },
        over_limit: r.composed.budget_eta.zip(r.composed.eta_max).is_some_and(|(b, all)| all > b),
        unfinished: !covered && !kept_back,
        open: Reservations { solved_on_data: is_solved(r), kept_back, ..Reservations::default() },
        protect_at: r.tell.as_ref().map_or(PROTECT_AT, |t| t.protect_at),
        told: of(attributes, Means::Refits),
        label_told: of(label, Means::Refits),
        // η of a whole record says nothing about one attribute that refits, or its own η, do not say better.
        estimated: match attributes {
            Some(Ceiling { by: Means::Refits, .. }) => None,
            Some(Ceiling { at_most, by: Means::Eta }) => Some(at_most),
            None if covered => None,
            None if kept_back => local,
            // What is not said, and not said to be kept back, calms nobody.
            None => Some(local.unwrap_or(1.0)),
        },
        label_estimated: of(label, Means::Eta),
        ..Facts::default()
    }
}

/// Whether what was found stays with the owner.
fn is_kept_back(r: &Release) -> bool {
    r.tell.as_ref().is_some_and(|t| t.kept_back)
}

/// Whether the scale of the noise was solved for on the data: it tells something of its own, which no noise covers.
fn is_solved(r: &Release) -> bool {
    r.eta.target.is_some() || r.mechanism.shape.is_some()
}

/// The larger of two numbers that may be absent.
fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).max_by(f64::total_cmp)
}

/// The verdict on a release. Of one that is published colour and words follow from what is public: the noise, targets and limits
/// that were given. What was measured decides the owner's ([`of_owned`]).
pub fn of_release(r: &Release) -> Verdict {
    let facts = facts(r);
    let decision = decide(&facts);
    if facts.noise == Noise::Absent {
        let first = vec![
            strong("There is no noise"),
            plain(
                ": somebody who knows every other record computes the values of the last one from the coefficients, \
                 exactly. Withdraw it, or release it with noise.",
            ),
        ];
        return Verdict::new(decision, "Released without noise", vec![first]);
    }
    let head = headline(decision.colour);
    let mut sentences = vec![told_apart(r, &facts), information(r)];
    match is_kept_back(r) {
        true => sentences.extend(is_solved(r).then(|| vec![plain(SOLVED)])),
        false => sentences.extend(advice(r, &facts, &decision, None)),
    }
    Verdict::new(decision, head, sentences)
}

fn headline(colour: Colour) -> &'static str {
    match colour {
        Colour::Green => "Released with noise that protects",
        Colour::Amber => "Released with noise",
        Colour::Red => "Released with too little noise",
    }
}

/// The verdict for the owner: colour and words know what was measured, which the page that is published must not.
pub fn of_owned(owned: &Owned) -> Verdict {
    let r = &owned.statement;
    let facts = facts(r);
    if facts.noise == Noise::Absent {
        return of_release(r);
    }
    let mut decision = decide(&facts);
    let limit = facts.protect_at;
    // That rows are equal is the owner's to know, as is what follows from it.
    let equal = owned.measured.duplicates.filter(|d| d.beyond_chance);
    let near_values = owned.measured.tell.as_ref().is_some_and(has_near_values);
    if equal.is_some() || near_values {
        let own = Reservations { equal_rows: equal.is_some(), near_values, ..Reservations::default() };
        decision.open.extend(own.lines());
        decision.colour = decision.colour.max(Colour::Amber);
    }
    let exposed: Vec<&ValuePair> =
        owned.measured.tell.iter().flat_map(|t| &t.attributes).filter(|t| worst(t) > limit).collect();
    let shown: Vec<&ValuePair> = exposed.iter().copied().filter(|t| t.shows.is_some()).collect();
    let open: Vec<&ValuePair> = exposed.iter().copied().filter(|t| !is_settled(t, limit)).collect();
    let mut sentences = vec![told_apart(r, &facts), information(r)];
    let head = if !shown.is_empty() {
        let each: Vec<String> = shown.iter().take(3).map(|t| capitalised(&cause(t))).collect();
        sentences.push(vec![
            strong("No noise of any size hides that"),
            plain(format!(": keep it to yourself. {}.", each.join(". "))),
        ]);
        "Released with something that no noise hides"
    } else if !open.is_empty() {
        let names: Vec<&str> = open.iter().take(3).map(|t| t.attribute.as_str()).collect();
        let work = owned.measured.tell.as_ref().map(Tell::next_budget).unwrap_or_default();
        let least = shown_to_need(&exposed, limit).filter(|_| r.mechanism.shape.is_none());
        let least = least.and_then(|times| public_sigma(r.mechanism.sigma * times * (1.0 - 1e-12)).ok());
        let (head, say) = match least {
            Some(least) => {
                let sigma = format::typed(0.998 * least);
                (
                    "Released with too little noise",
                    format!(
                        "That its noise does not suffice is settled: it takes σ = {sigma} at least, now {}. How much more values of {} \
                         take was not settled within the budget: keep this one to yourself, and release again with \
                         ⟨sigma={sigma}⟩ {work}.",
                        format::setting(r.mechanism.sigma),
                        names.join(", ")
                    ),
                )
            }
            None => (
                "Released, and not settled whether its noise protects",
                format!(
                    "How often values of {} are told apart was not settled within the budget: keep this one to yourself, and release \
                     again with {work}, which allows more work, or with more noise.",
                    names.join(", ")
                ),
            ),
        };
        sentences.push(vec![plain(say)]);
        head
    } else {
        let allowed = owned.measured.tell.as_ref().and_then(|t| t.budget);
        sentences.extend(advice(r, &facts, &decision, allowed));
        headline(decision.colour)
    };
    if near_values {
        sentences.push(vec![plain(
            "The values that were named with ⟨tell⟩ are nearer to one another than records differ, so nothing is shown about typical \
             ones: name others or none before you pass this on.",
        )]);
    }
    if let Some(equal) = equal {
        let told = told_of_equal_rows(equal, owned.measured.tell.as_ref());
        sentences.push(vec![plain(format!(
            "{told} This is for you alone: where they are, leave copies out, and release again."
        ))]);
    }
    Verdict::new(decision, head, sentences)
}

/// How many times the noise of a release refits have shown to be needed, where this one is not enough.
fn shown_to_need(exposed: &[&ValuePair], limit: f64) -> Option<f64> {
    let times = |t: &&ValuePair| {
        let distance = if is_settled(t, limit) { t.distance } else { t.at_least };
        noise_to_hide(distance?, t.among_all.map_or(2, |all| all.levels), limit)
    };
    exposed.iter().filter_map(times).max_by(f64::total_cmp).filter(|times| *times > 1.0)
}

/// The sentence on what somebody can do who knows all else.
fn told_apart(r: &Release, facts: &Facts) -> Vec<Span> {
    let mut spans = match (r.mechanism.is_isotropic(), &r.mechanism.shape) {
        (true, made) => vec![
            plain("Gaussian noise of standard deviation "),
            strong(format::setting(r.mechanism.sigma)),
            plain(match made {
                None => " was added to every coefficient",
                Some(_) => ", which was made for its targets, was added to every coefficient",
            }),
        ],
        (false, _) => vec![plain(
            "Gaussian noise with a covariance that was made for its targets was added to the coefficients",
        )],
    };
    if let Some(tell) = r.tell.as_ref().filter(|t| t.kept_back) {
        spans.extend([
            plain(". How often somebody who knows all else tells two values of a record apart "),
            strong("stays with its owner"),
            plain(format!(
                ", who set {} as the limit (a coin toss: 50%): whoever knows all other records could compute from it which values \
                 the last one can have.",
                format::share(tell.protect_at)
            )),
        ]);
        return spans;
    }
    let attribute = facts.told.map(|p| (p, "")).or_else(|| facts.estimated.map(|p| (p, "about ")));
    let label = facts.label_told.map(|p| (p, "")).or_else(|| facts.label_estimated.map(|p| (p, "about ")));
    let share = |(p, about): (f64, &str)| {
        format!("{}{}", if about.is_empty() { "at most " } else { about }, format::share_at_most(p))
    };
    if attribute.is_none() && label.is_none() {
        spans.push(plain("."));
        return spans;
    }
    let named = r.tell.as_ref().map(|t| named_values(&t.public_pairs)).unwrap_or_default();
    spans.push(plain(format!(": somebody who knows all else tells two typical values {named}")));
    if let Some(p) = attribute {
        spans.extend([plain("of an attribute of the most exposed record apart in "), strong(share(p))]);
    }
    if let Some(p) = label {
        let start = if attribute.is_some() {
            ", and of its label ("
        } else {
            "of the label of the most exposed record ("
        };
        spans.extend([plain(format!("{start}{}) in ", r.subject.target)), strong(share(p))]);
    }
    spans.push(plain(
        " of cases (a coin toss: 50%), by the coefficients; what else in these files was read off the data may tell more of a \
         record at its edge.",
    ));
    spans
}

/// Values that somebody named in place of typical ones, in brackets; empty where nobody did.
fn named_values(pairs: &[PublicPair]) -> String {
    let each: Vec<String> =
        pairs.iter().map(|p| format!("of {} {} or {}", p.attribute, p.from, p.to)).collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("(the values that were named: {}) ", each.join(", ")),
    }
}

/// The same where η was measured, and is the owner's to know.
fn kept_back(r: &Release, before: usize) -> Vec<Span> {
    let target = r
        .eta
        .max
        .map(|eta| format!("The information loss η of a record is at most {}. ", format::at_most(eta)));
    let earlier = match before {
        0 => String::new(),
        n => format!(" These data have {} before it.", format::counted(n as u64, "release")),
    };
    let budget = match r.composed.budget_eta {
        Some(b) => format!("all releases together stay within a budget of η = {}", format::setting(b)),
        None => "no budget was set".into(),
    };
    vec![plain(format!(
        "{}The η that was measured stays in the owner's ledger; {budget}.{earlier}",
        target.unwrap_or_default()
    ))]
}

/// The sentence on η, alone and with earlier releases.
fn information(r: &Release) -> Vec<Span> {
    let before = r.composed.releases.saturating_sub(1);
    let (Some(eta), Some(all)) = (r.eta.max, r.composed.eta_max) else {
        return kept_back(r, before);
    };
    let mut spans =
        vec![plain("The information loss η of a record is at most "), strong(format::at_most(eta))];
    let all = format::at_most(all);
    let budget = match r.composed.budget_eta {
        Some(b) => format!("of a budget of {}", format::setting(b)),
        None => "no budget was set".into(),
    };
    spans.push(plain(match before {
        0 => format!(
            "; {}.",
            if r.composed.budget_eta.is_some() { format!("{all} {budget} is spent") } else { budget }
        ),
        n => format!(
            ", and with {} of these data before it at most {all}; {budget}.",
            format::counted(n as u64, "release")
        ),
    }));
    spans
}

/// How many times the noise of this release holds the limit, what earlier ones told included; none where none does, or it is not
/// known.
fn times_as_much(r: &Release, facts: &Facts) -> Option<f64> {
    let worst = larger(facts.exact(), facts.approximate()).unwrap_or(0.5);
    let (goal, tell) = (facts.protect_at, r.tell.as_ref());
    let alone = more_noise(worst, goal);
    if r.composed.releases <= 1 {
        return tell.and_then(|t| t.more_noise).or(alone);
    }
    // Refits of all releases say how much, or that no noise does.
    if tell.is_some_and(|t| t.attributes.iter().chain(&t.label).all(|c| c.by == Means::Refits)) {
        return tell.and_then(|t| t.more_noise);
    }
    // η² of releases adds up, and what two values are apart is proportional to η: what earlier ones told takes its share.
    let (own, all) = (r.eta.max?, r.composed.eta_max?);
    let most = all / alone?;
    let left = most * most - (all * all - own * own).max(0.0);
    (left > 0.0).then(|| alone.unwrap_or(1.0).max(own / left.sqrt()))
}

/// What to do, as far as the published numbers tell. What was found with more work than is usual is found again with as much.
fn advice(r: &Release, facts: &Facts, decision: &Decision, allowed: Option<Allowance>) -> Option<Vec<Span>> {
    let goal = facts.protect_at;
    let worst = larger(facts.exact(), facts.approximate()).unwrap_or(0.5);
    if decision.colour == Colour::Green {
        return None;
    }
    let allowed = allowed.map(|b| format!(" {}", b.option())).unwrap_or_default();
    let times = times_as_much(r, facts).filter(|_| worst > goal);
    if let Some(times) = times {
        return match &r.mechanism.shape {
            Some(shape) => stricter(r, shape, times, goal, &allowed),
            None => louder(r, times, goal, &allowed),
        };
    }
    match decision.colour {
        Colour::Red | Colour::Amber if worst > goal && r.composed.releases > 1 => Some(too_much_before(r)),
        Colour::Red => Some(vec![plain(
            "Keep it to yourself, and release again with several times the noise: how much suffices cannot be told from a number \
             this close to certainty.",
        )]),
        Colour::Green | Colour::Amber => Some(vec![plain(unfinished(r, facts))]),
    }
}

/// What more noise of the same kind does.
fn louder(r: &Release, times: f64, goal: f64, allowed: &str) -> Option<Vec<Span>> {
    // A little below a power of 2^¼, to which it is rounded up: not beyond.
    let sigma = public_sigma(r.mechanism.sigma * times * (1.0 - 1e-12)).ok()?;
    let sigma = format::typed(0.998 * sigma);
    let now = format::setting(r.mechanism.sigma);
    let far =
        if times > 10.0 { format!(" ({} times as much)", format::number(times)) } else { String::new() };
    Some(vec![
        strong(format!("σ = {sigma}, now {now}{far}")),
        plain(again(r, ", brings", goal, &format!("⟨sigma={sigma}⟩{allowed}"))),
    ])
}

/// What stricter targets do. The scale of the noise is rounded up to a power of 2^¼: with targets that are a power of it as strict,
/// it grows by that power exactly, wherever it lay between two of them.
fn stricter(r: &Release, shape: &PublishedShape, times: f64, goal: f64, allowed: &str) -> Option<Vec<Span>> {
    let factor = public_sigma(times * (1.0 - 1e-12)).ok()?;
    let options: Vec<String> = shape.goals.iter().filter_map(|g| stricter_goal(g, factor)).collect();
    let with = match options.len() == shape.goals.len() {
        true => format!("{}{allowed}", options.join(" ")),
        false => format!("them{allowed}"),
    };
    Some(vec![
        strong(format!("Targets {} times as strict", format::typed_at_least(factor))),
        plain(again(r, " bring", goal, &with)),
    ])
}

/// A target as it would be typed, rounded to the strict side; nothing for an attribute's η, which is said in other units.
fn stricter_goal(goal: &Goal, factor: f64) -> Option<String> {
    match (goal.secret, &goal.name, goal.sd) {
        (_, Some(name), Some(sd)) => {
            Some(format!("⟨target_sd={name}={}⟩", format::typed_at_least(sd * factor)))
        }
        // Three digits, and none of them too many.
        (Secret::Record, None, None) => {
            Some(format!("⟨target_eta={}⟩", format::typed(0.995 * goal.eta / factor)))
        }
        (Secret::Record | Secret::Attribute | Secret::Label, _, _) => None,
    }
}

/// What a noise does and how to get it, where this one is the first release and where it is not.
fn again(r: &Release, brings: &str, goal: f64, with: &str) -> String {
    let goal = format::share(goal);
    match r.composed.releases.saturating_sub(1) {
        // What was kept back still stands in the ledger of its folder.
        0 => format!(
            "{brings} that to {goal} or less: keep this one to yourself, withdraw it (leakscope withdraw) and release again with \
             {with}. The ledger counts it until it is withdrawn, and a later release is judged with it."
        ),
        _ => format!(
            ", in place of this one, would have kept all releases at {goal} or less: keep this one to yourself, withdraw it \
             (leakscope withdraw) and release again with {with}. The ledger counts it, and no noise on a later release takes that \
             back until it is withdrawn."
        ),
    }
}

/// What to do where earlier releases told so much that no noise on this one is enough.
fn too_much_before(r: &Release) -> Vec<Span> {
    let first = r.tell.as_ref().map_or(&[][..], |t| &t.withdraw_first);
    let (tell, them) = match first {
        [] => {
            return vec![plain(
                "Keep it to yourself. With what earlier releases of these data told, no noise on this one holds the limit: release \
                 it with more noise in place of an earlier one that was never passed on and is withdrawn (leakscope withdraw).",
            )];
        }
        [one] => (format!("{one} told too much"), one.as_str()),
        [rest @ .., last] => (format!("{} and {last} told too much together", rest.join(", ")), "these"),
    };
    vec![
        strong("No noise on this one holds the limit"),
        plain(format!(
            ": {tell} before it. Keep this one to yourself; withdraw {them} and this one (leakscope withdraw), if they were never \
             passed on, and release again."
        )),
    ]
}

/// Why a calm page is not green.
fn unfinished(r: &Release, facts: &Facts) -> String {
    let mut reasons = vec![];
    if facts.exact().is_none() || facts.approximate().is_some() {
        reasons.push(match r.tell {
            Some(_) => {
                "That rests on η, which looks at small changes alone: values were not put in place one by one, for every \
                 attribute and every release so far; ⟨tell_budget⟩ allows more work."
            }
            None => "That rests on η, which looks at small changes alone.",
        });
    }
    if is_solved(r) {
        reasons.push(SOLVED);
    }
    reasons.join(" ")
}

/// What a noise that was solved for on the data leaves open.
const SOLVED: &str = "How much noise there is was solved for on these data: somebody who knows all else compares it with what either value \
                      would have led to, which can tell them apart by itself and is not counted here. A ⟨sigma⟩ that was chosen \
                      without these data leaves that out.";
