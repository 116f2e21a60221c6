//! The verdict on a balancing: did it work, and what does the most exposed record still give away.

use super::{Colour, Facts, Noise, Span, TYPICAL, Verdict, decide, estimated, plain, strong};
use crate::document::balance::{Balance, Counted, Step};
use crate::document::choice::Stopped;
use crate::format::{self, quoted};
use crate::words;
use leakscope_core::balance::Variant;

/// η that varies by less than this share of its mean counts as equal.
const EVEN: f64 = 0.05;

fn equal(b: &Balance, after: &Step) -> bool {
    match b.stopped {
        Stopped::Converged => true,
        Stopped::Vanished | Stopped::NoFit => false,
        Stopped::Iterations => b.converging && after.spread() < EVEN && b.variant == Variant::Weighted,
    }
}

/// What the page prints.
pub(crate) fn facts(b: &Balance) -> Facts {
    let after = b.iterations.get(b.best);
    // Without the weights an attacker faces the other column: both are on the page.
    let eta = after.map_or(f64::NAN, |s| s.eta_max.max(s.eta_unweighted_max));
    let eta = b.counted.map_or(eta, |c| eta.max(c.kept.max));
    Facts {
        noise: if b.sigma > 0.0 { Noise::Chosen } else { Noise::Absent },
        unfinished: after.is_none_or(|s| !equal(b, s)),
        estimated: Some(if eta == 0.0 { 0.5 } else { estimated(TYPICAL, 1.0 / eta) }),
        ..Facts::default()
    }
}

/// The verdict on a balancing.
pub fn of_balance(b: &Balance) -> Verdict {
    let facts = facts(b);
    let decision = decide(&facts);
    let (Some(before), Some(after)) = (b.iterations.first(), b.iterations.get(b.best)) else {
        return Verdict::new(decision, "Nothing was balanced", vec![vec![plain("There is no iteration.")]]);
    };
    let secret = b.attribute.as_ref().map_or_else(|| "a record".to_owned(), |a| format!("{a} in a record"));
    let first = vec![
        plain(format!("Before reweighting the information loss η of {secret} varied by ")),
        strong(format::spread(before.spread())),
        plain(format!(" of its mean; at iteration {} it varies by ", b.best)),
        strong(format::spread(after.spread())),
        plain("."),
    ];
    let mut second = vec![];
    if let (Some(a), Some(c)) =
        (before.test_score.or(before.train_score), after.test_score.or(after.train_score))
    {
        let rows = if before.test_score.is_some() { "held-out" } else { "training" };
        second.push(plain(format!(
            "The {} on {rows} rows went from {} to {}; ",
            words::metric_name(b.metric),
            format::number(a),
            format::number(c)
        )));
    }
    second.push(plain(format!(
        "{} largest η went from {} to {}: at σ = {} two typical values of the most exposed record are told apart in about ",
        if second.is_empty() { "The" } else { "the" },
        format::number(before.eta_max),
        format::number(after.eta_max),
        format::setting(b.sigma)
    )));
    second.extend([
        strong(format::share_at_most(facts.estimated.unwrap_or(1.0))),
        plain(" of cases (a coin toss: 50%)."),
    ]);
    let (ending, third) = ending(b, after);
    let head = match decision.colour {
        Colour::Red => format!("{ending}, not protected"),
        Colour::Amber | Colour::Green => ending.to_owned(),
    };
    let mut sentences = vec![first, second];
    sentences.extend(b.counted.map(|c| counted(&c)));
    sentences.extend(third.map(|text| vec![plain(text)]).or_else(|| advice(b, &facts)));
    Verdict::new(decision, head, sentences)
}

/// What a release of it gives away: the weights move with every record.
fn counted(c: &Counted) -> Vec<Span> {
    let mut words = vec![
        plain("With the weights counted, which are functions of the records, the largest η of a release is "),
        strong(format::number(c.kept.max)),
        plain(format!(", and η varies by {} of its mean", format::spread(c.kept.spread))),
    ];
    words.push(plain(match c.at_most_even.spread < c.kept.spread {
        true => format!(
            "; it is most even after {} ({}).",
            format::counted(c.most_even as u64, "iteration"),
            format::spread(c.at_most_even.spread)
        ),
        false => ".".into(),
    }));
    words
}

/// What to do where balancing alone does not protect. η counts a label in its raw units and looks at small changes alone, so how much
/// noise hides two values does not follow from it: the page of a release puts them in place and says.
fn advice(b: &Balance, facts: &Facts) -> Option<Vec<Span>> {
    facts.estimated.filter(|p| *p > facts.protect_at)?;
    Some(vec![
        plain("How much noise hides values is not known from η: run "),
        strong(release_line(b)),
        plain(
            " (with this one’s options on columns, where it had any), which tries them one by one as far as there is time, keep what \
             it leaves to yourself, withdraw it, and release again with the σ that it advises.",
        ),
    ])
}

/// The iterations that a release of it takes: those whose leakage is most even with the weights counted, where that is known.
pub(crate) fn iterations_to_release(b: &Balance) -> usize {
    let kept = b.best.max(1);
    match b.counted {
        Some(c) if c.at_most_even.spread < c.kept.spread => c.most_even.max(1),
        Some(_) | None => kept,
    }
}

/// A release of the same model, as it is typed.
fn release_line(b: &Balance) -> String {
    let files: Vec<String> = b.subject.files.iter().map(|f| quoted(f)).collect();
    let attribute = b.attribute.as_ref().map(|a| format!(" --attribute {}", quoted(a))).unwrap_or_default();
    let intercept = if b.subject.intercept { "" } else { " --no-intercept" };
    format!(
        "leakscope release {} --target {} --model {} --l2 {}{intercept}{attribute} --balance {} --sigma {} --out release",
        files.join(" "),
        quoted(&b.subject.target),
        b.subject.family.name(),
        b.subject.l2,
        iterations_to_release(b),
        format::setting(b.sigma)
    )
}

fn ending(b: &Balance, after: &Step) -> (&'static str, Option<&'static str>) {
    match (b.stopped, b.variant) {
        (Stopped::Converged, _) => ("Balanced", None),
        (Stopped::Iterations | Stopped::Vanished | Stopped::NoFit, Variant::Unweighted) => (
            "Not equalised",
            Some(
                "The unweighted variant has no fixed point: it follows η without the weights, which reweighting cannot \
                 equalise. The best iteration is kept.",
            ),
        ),
        (Stopped::Vanished | Stopped::NoFit, Variant::Weighted) => ("Stopped early", None),
        (Stopped::Iterations, Variant::Weighted) if b.converging && after.spread() < EVEN => {
            ("Balanced within 5%", None)
        }
        (Stopped::Iterations, Variant::Weighted) if b.converging => ("Still converging", None),
        (Stopped::Iterations, Variant::Weighted) => (
            "Did not converge",
            Some("It did not converge: later iterations were worse, and the best one is kept."),
        ),
    }
}
