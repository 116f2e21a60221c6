//! The verdicts on networks: a training run, and an audit of what its noisy steps tell.

use super::{
    Colour, Decision, Facts, Noise, Quantity, RULES, Reservations, Span, TYPICAL, Verdict, decide, estimated,
    headline, left_out, plain, strong,
};
use crate::document::choice::ClipKind;
use crate::document::net::{NetAudit, TraceKind};
use crate::document::training::{Accounts, PrivacyFacts, Promise, Stopped, Training, Withheld};
use crate::format;

/// What the page of a run prints.
pub(crate) fn training_facts(t: &Training) -> Facts {
    let p = t.privacy.as_ref();
    let steps = p.and_then(|p| p.promise.as_ref().or(p.steps_alone.as_ref()));
    Facts {
        noise: match p {
            None => Noise::Absent,
            Some(PrivacyFacts { promise: Some(_), .. }) => Noise::Chosen,
            Some(PrivacyFacts { withheld: Some(Withheld::ReadOffRecords(_)), .. }) => Noise::Chosen,
            Some(PrivacyFacts { withheld: Some(Withheld::NoiseFromSeed) | None, .. }) => Noise::Absent,
        },
        unfinished: t.stopped == Stopped::Diverged,
        // The noise of the steps, whatever else was read off the records: to know less of a run must not calm anybody.
        open: Reservations {
            encoding_of_records: matches!(
                p.and_then(|p| p.withheld.as_ref()),
                Some(Withheld::ReadOffRecords(_))
            ),
            ..Reservations::default()
        },
        epsilon: steps.map(|s| s.epsilon),
        left_out: steps.map(|s| left_out(s.delta, t.data.records as f64)),
        membership: steps.and_then(|s| s.advantage),
        ..Facts::default()
    }
}

/// The verdict on a training run.
pub fn of_training(t: &Training) -> Verdict {
    let decision = decide(&training_facts(t));
    let head = match (decision.colour, &t.privacy) {
        _ if t.stopped == Stopped::Diverged => "Diverged",
        (_, None) => "Trained without noise",
        (_, Some(PrivacyFacts { withheld: Some(Withheld::NoiseFromSeed), .. })) => {
            "Not private: the noise can be taken off"
        }
        (Colour::Red, Some(p)) if p.promise.is_none() => "Trained with too little noise, nothing promised",
        (_, Some(p)) if p.promise.is_none() => "Trained with noise, nothing promised",
        (Colour::Green, Some(_)) => "Trained with noise that protects",
        (Colour::Amber, Some(_)) => "Trained with noise",
        (Colour::Red, Some(_)) => "Trained with too little noise",
    };
    let mut sentences = vec![match &t.privacy {
        Some(PrivacyFacts { promise: Some(p), .. }) => promised(p, t.unit(), &decision),
        Some(PrivacyFacts { promise: None, withheld: Some(Withheld::ReadOffRecords(read)), .. }) => {
            not_covered(read)
        }
        Some(PrivacyFacts { promise: None, withheld: Some(Withheld::NoiseFromSeed) | None, .. }) => vec![
            plain("The noise follows from the seed, so whoever knows the seed takes it off: "),
            strong("nothing is promised"),
            plain(format!(" to any {}; to protect anybody, train without that option.", t.unit())),
        ],
        None => vec![
            plain("No noise was added: "),
            strong("nothing is promised"),
            plain(format!(
                " to any {}; train again with ⟨epsilon⟩, or keep the model to yourself.",
                t.unit()
            )),
        ],
    }];
    if let Some(a) = &t.accounts {
        sentences.push(vec![
            plain(format!(
                "Over the whole run the median {} gave away a dFIL (information per value) of ",
                t.unit()
            )),
            strong(format::number(a.dfil.p50)),
            plain(match &a.largest {
                Some(i) => format!(
                    ", the most exposed one between {} and {}; of {}.",
                    format::at_least(i.lower),
                    format::at_most(i.upper),
                    accounted(a, t.data.records)
                ),
                None => ".".into(),
            }),
        ]);
    }
    if let Some(h) = t.text.as_ref().and_then(|text| text.holdout.as_ref()) {
        sentences.push(vec![
            plain("Texts that were held out are predicted with a perplexity of "),
            strong(format::number(h.perplexity)),
            plain(format!(" a token, {} before the run.", format::number(h.perplexity_before))),
        ]);
    }
    let made = format!("{} of {} steps", format::count(t.steps), format::count(t.planned_steps));
    match t.stopped {
        Stopped::Finished => {}
        Stopped::Interrupted => sentences.push(vec![plain(format!("It was stopped after {made}."))]),
        Stopped::Diverged => sentences.push(vec![plain(format!(
            "After {made} numbers were no longer finite, or the loss was out of all proportion; the last good parameters are \
             kept."
        ))]),
    }
    Verdict::new(decision, head, sentences)
}

/// What a run promises, for somebody who does not think in ε, and what to do where that is little.
fn promised(p: &Promise, unit: &str, decision: &Decision) -> Vec<Span> {
    let mut spans = vec![
        plain("The run is "),
        strong(format!(
            "({}, {})-differentially private",
            format::at_most(p.epsilon),
            format::setting(p.delta)
        )),
        plain(format!(" for every {unit}")),
    ];
    if let Some(a) = p.advantage {
        spans.extend([
            plain(format!(
                ": whoever knows all else and must say whether a {unit} took part, at even odds, is right at most "
            )),
            strong(format::share_at_most(0.5 + 0.5 * a)),
            plain(" of the time (a coin toss: 50%)"),
        ]);
    }
    // Advice is about what decides: a smaller ε mends no δ.
    let deciding = |q: Quantity| {
        let fact = RULES.iter().find(|r| r.quantity == q).map(|r| r.fact);
        decision.grounds.iter().find(|g| Some(g.fact) == fact && g.colour == decision.colour)
    };
    let delta = deciding(Quantity::LeftOut).map(|g| delta_at(p.delta, g.value));
    let of_epsilon = deciding(Quantity::Epsilon).is_some();
    spans.push(plain(match (decision.colour, delta) {
        (Colour::Green, _) => ".".into(),
        (Colour::Amber, Some(delta)) if of_epsilon => format!("; a smaller ⟨epsilon⟩ and ⟨delta={delta}⟩ promise more."),
        (Colour::Amber, Some(delta)) => format!("; δ is large for so many: ⟨delta={delta}⟩ or less promises more."),
        (Colour::Amber, None) => "; a smaller ⟨epsilon⟩ promises more.".into(),
        (Colour::Red, Some(delta)) if of_epsilon => {
            format!(", which protects nobody: train again with ⟨epsilon=1⟩ and ⟨delta={delta}⟩ or less.")
        }
        (Colour::Red, Some(delta)) => {
            format!(", but that δ leaves out so many that it protects nobody: train again with ⟨delta={delta}⟩ or less.")
        }
        (Colour::Red, None) => ", which protects nobody: train again with ⟨epsilon=1⟩ or less.".into(),
    }));
    spans
}

/// A δ of one digit that leaves out less than one record, where `delta` leaves out so many.
fn delta_at(delta: f64, left_out: f64) -> String {
    let most = 0.9 * delta / left_out;
    let place = most.log10().floor() as i32;
    let digit = (most / 10_f64.powi(place)).floor().clamp(1.0, 9.0);
    format!("{digit}e{place}")
}

/// Why no ε is stated though the noise is secret, and what to do.
fn not_covered(read: &[String]) -> Vec<Span> {
    vec![
        plain("The noise is secret, yet "),
        strong("no ε is stated"),
        plain(format!(
            ": {} were read off all records, and no noise of a step covers that; {}.",
            read.join(", "),
            // What is said in brackets names the option.
            if read.iter().all(|part| part.ends_with(')')) {
                "give that"
            } else {
                "give ⟨bounds⟩ with ⟨scale=bounds⟩, ⟨levels⟩, or a ⟨schema⟩, which are public"
            }
        )),
    ]
}

/// Of which records accounts speak.
pub(crate) fn accounted(a: &Accounts, records: u64) -> String {
    match (a.followed, a.accounted) {
        (_, n) if n == records => "all records (95% over all of them)".to_owned(),
        (0, n) => format!(
            "{} of {} records that were drawn often enough for an interval (95% over all of these)",
            format::count(n),
            format::count(records)
        ),
        (_, n) => format!(
            "{} of {} records{} (95% over all of these)",
            format::count(n),
            format::count(records),
            match a.below {
                Some(_) => ", chosen at random and followed at every step",
                // whoever ran it may have chosen them
                None => " that were followed",
            }
        ),
    }
}

/// What most of all records lie below.
pub(crate) fn below(a: &Accounts) -> Option<String> {
    a.below.map(|b| {
        format!(
            "With a confidence of 95%, at least {} of all records have a dFIL of at most {}.",
            format::share_at_least(b.share),
            format::at_most(b.value)
        )
    })
}

/// What the page of an audit prints.
pub(crate) fn audit_facts(a: &NetAudit) -> Facts {
    let spread = TYPICAL * a.spread.max(0.0).sqrt();
    let dfil = accounts(a).map(largest).into_iter().chain(most_dfil(a));
    let errors = dfil.map(|d| 1.0 / d.max(0.0).sqrt()).chain(a.eta.as_ref().map(|e| 1.0 / e.max));
    let told = errors.map(|e| if e.is_infinite() { 0.5 } else { estimated(spread, e) });
    // Whatever is open about the run is open here: a page about a run is never calmer than the run's own.
    let run = a.training.as_ref().map(|t| training_facts(t)).unwrap_or_default();
    Facts {
        noise: match (run.noise, a.release.chosen) {
            (Noise::Absent, _) => Noise::Absent,
            (Noise::Chosen | Noise::Unit, false) => Noise::Unit,
            (Noise::Chosen | Noise::Unit, true) => Noise::Chosen,
        },
        estimated: told.max_by(f64::total_cmp),
        open: Reservations { less_than_run: has_less_than_run(a), ..run.open },
        ..run
    }
}

/// Whether the steps that are measured have less noise than those of the run, or another clip: what the run promises is no limit
/// to what they tell.
fn has_less_than_run(a: &NetAudit) -> bool {
    let Some(p) = a.training.as_ref().and_then(|t| t.privacy.as_ref()) else { return false };
    let r = &a.release;
    let same_clip = (r.clip_kind, r.clip) == (p.clip_kind, Some(p.clip));
    !same_clip || r.sigma.is_nan() || r.sigma < p.sigma
}

/// What the run promises, and where that says nothing about the steps that are measured.
fn promised_to(a: &NetAudit, p: &Promise, decision: &Decision) -> Vec<Span> {
    let Some(t) = a.training.as_ref().filter(|_| has_less_than_run(a)) else {
        return promised(p, "record", decision);
    };
    let mut spans = promised(p, "record", &decide(&training_facts(t)));
    spans.extend([
        plain(" That is under its own clip and noise, "),
        strong("not under those that are measured here"),
        plain(format!(" (σ = {}).", format::setting(a.release.sigma))),
    ]);
    spans
}

/// The verdict on an audit of a network.
pub fn of_net_audit(a: &NetAudit) -> Verdict {
    let facts = audit_facts(a);
    let decision = decide(&facts);
    let head = match facts.noise {
        Noise::Absent if a.training.as_ref().is_some_and(|t| t.privacy.is_some()) => {
            "Not private: the noise can be taken off"
        }
        Noise::Absent => "Trained without noise",
        Noise::Unit if decision.colour == Colour::Amber => "A unit of noise",
        Noise::Unit | Noise::Chosen => headline(decision.colour),
    };
    let mut sentences = vec![match (facts.noise, a.training.as_ref().and_then(|t| t.privacy.as_ref())) {
        (Noise::Absent, Some(_)) => vec![
            plain("The noise of training follows from a seed, so "),
            strong("nothing is promised"),
            plain(" to its records: the numbers are what one step with secret noise would tell."),
        ],
        (Noise::Absent, None) => vec![
            plain("The model was trained without noise, so "),
            strong("nothing is promised"),
            plain(
                " to its records: the numbers are what one step with noise would tell, to compare records by.",
            ),
        ],
        (_, Some(PrivacyFacts { promise: Some(p), .. })) => promised_to(a, p, &decision),
        (_, Some(PrivacyFacts { withheld: Some(Withheld::ReadOffRecords(read)), .. })) => not_covered(read),
        (Noise::Chosen | Noise::Unit, Some(_)) => {
            vec![plain("Nothing is promised to the records of its training.")]
        }
        (Noise::Unit, None) => vec![plain(
            "No noise was chosen: the numbers are those of one step with noise of standard deviation 1, to compare records \
             by.",
        )],
        (Noise::Chosen, None) => vec![plain(
            "How the model was trained is not known: the numbers are what one noisy step tells, and a run adds them up.",
        )],
    }];
    // the run is what was released: where it was added up, one step of it, which is told of records that took part for
    // certain, would only be a second number beside it
    match over_run(a) {
        Some(run) if accounts(a).is_some() => sentences.push(run),
        run => sentences.extend(reconstruction(a).into_iter().chain(run)),
    }
    if sentences.len() == 1 && a.dfil.is_none() {
        sentences.push(vec![plain(
            "Ask for traces, η or PLIS (⟨trace⟩, ⟨eta⟩, ⟨plis⟩) to see what records give away.",
        )]);
    }
    Verdict::new(decision, head, sentences)
}

/// The run's accounts, where they speak of what is audited: the same records and secret, the same clip and noise.
pub(crate) fn accounts(a: &NetAudit) -> Option<&Accounts> {
    let t = a.training.as_ref()?;
    let p = t.privacy.as_ref()?;
    let (r, d) = (&a.release, &a.data);
    let clip: (ClipKind, Option<f64>) = (r.clip_kind, r.clip);
    let same = t.label_secret == a.label_secret
        && (t.data.records, t.data.normalize) == (d.records, d.normalize)
        && ((p.clip_kind, Some(p.clip)), p.sigma) == (clip, r.sigma);
    t.accounts.as_ref().filter(|_| same)
}

/// The largest dFIL of a record in one step, from above.
fn most_dfil(a: &NetAudit) -> Option<f64> {
    a.dfil.as_ref().map(|d| a.dfil_extremes.as_ref().map_or(d.max, |e| e.largest.upper))
}

/// The largest dFIL of a record over the run, from above.
fn largest(a: &Accounts) -> f64 {
    a.largest.as_ref().map_or(a.dfil.max, |i| i.upper)
}

/// What the whole run tells, or that it tells more than one step.
fn over_run(a: &NetAudit) -> Option<Vec<Span>> {
    let t = a.training.as_ref().filter(|t| t.privacy.is_some() && t.steps > 1)?;
    let steps = format::count(t.steps);
    match accounts(a) {
        Some(r) if largest(r) > 0.0 => Some(vec![
            plain(format!(
                "Over all {steps} steps of the run, an unbiased reconstruction of the most exposed record has a mean squared \
                 error per value of about "
            )),
            strong(format::number(1.0 / largest(r))),
            plain(
                " or more (an estimate: accounts are kept by random probes); guessing the mean record has ",
            ),
            strong(format::number(a.spread)),
            plain("."),
        ]),
        Some(_) => None,
        None => {
            let kept = if t.accounts.is_none() { "; train with ⟨track⟩ to have it added up" } else { "" };
            Some(vec![plain(format!(
                "The run made {steps} steps, and this is what one of them tells: over the run it adds up{kept}."
            ))])
        }
    }
}

/// What an attacker can do with one step, against guessing the mean record.
fn reconstruction(a: &NetAudit) -> Option<Vec<Span>> {
    let dfil = most_dfil(a).filter(|d| *d > 0.0)?;
    let guess = [
        plain("; guessing the mean record has "),
        strong(format::number(a.spread)),
        plain(match (&a.min_mse, a.trace) {
            (Some(_), _) | (None, TraceKind::Exact | TraceKind::Skip) => ".",
            (None, TraceKind::Estimate { .. }) => " (an estimate; ⟨trace=exact⟩ gives a bound).",
        }),
    ];
    let mut spans = match &a.min_mse {
        Some(bound) => vec![
            plain(
                "No unbiased reconstruction of a measured record from one noisy step has a mean squared error per value below ",
            ),
            strong(format::bound(bound)),
        ],
        None => vec![
            plain(
                "An unbiased reconstruction of the most exposed record from one noisy step has a mean squared error per value of about ",
            ),
            strong(format::number(1.0 / dfil)),
            plain(" or more"),
        ],
    };
    spans.extend(guess);
    Some(spans)
}
