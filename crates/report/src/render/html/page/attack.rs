//! The page of the attacks: what was guessed, against a guess without the model, as observed and no more.

use crate::document::attack::{Attack, AttackResult};
use crate::figure::Claim;
use crate::format;
use crate::redact::redacted;
use crate::render::html::chart::{Axis, Line, Lines, Point};
use crate::render::html::markup::Html;
use crate::render::html::parts::{
    card, header, judged, list, narrow, notes, shell, tile, tiles, two, warnings, whose,
};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_attack;
use crate::words;
use leakscope_core::attack::Attack as Attacker;
use leakscope_core::glm::ModelKind;

/// The colour of each attacker.
const fn slot(attack: Attacker) -> usize {
    match attack {
        Attacker::WhiteBox => 0,
        Attacker::WhiteBoxPrior => 1,
        Attacker::BlackBox => 4,
        Attacker::Informed => 3,
    }
}

/// Attacks as one self-contained HTML page.
pub fn attack_page(a: &Attack) -> String {
    let a = &if a.redact { redacted(a) } else { a.clone() };
    let (subject, facts) = words::subject(&a.subject);
    let title = format!("Guessing {} from {subject}", a.secret.name);
    let facts = format!("{facts} · {} · seed {}", format::counted(a.trials, "trial"), a.seed);
    let body = header("Leakscope attack", &title, &facts)
        .and(whose(a.redact))
        .and(judged(&of_attack(a)))
        .and(main_numbers(a))
        .and(warnings(&a.warnings))
        .and(notes(&a.notes))
        .and(curves(a))
        .and(deciles(a))
        .and(utility(a))
        .and(numbers_table(a))
        .and(rests_on(a));
    shell(&format!("Leakscope attack: {subject}"), &body)
}

fn main_numbers(a: &Attack) -> Html {
    let values = format!("values: {}", words::candidates(&a.secret));
    tiles(vec![
        tile(&format::share(a.baseline.accuracy), "right by guessing the most frequent value"),
        tile(&format::count(a.records), "records attacked, each with all values but this one known"),
        tile(&format::count(a.secret.candidates.len() as u64), &values),
        tile(&format::seconds(a.seconds), "for all records, candidates, trials and noise scales"),
    ])
}

fn result_lines(a: &Attack, x: impl Fn(&AttackResult) -> f64, advantage: bool) -> Vec<Line> {
    let mut lines = vec![];
    for attack in Attacker::ALL {
        let points: Vec<Point> = a
            .results
            .iter()
            .filter(|r| r.attack == attack)
            .map(|r| {
                let o = if advantage { &r.advantage } else { &r.accuracy };
                Point { x: x(r), y: o.value, interval: Some((o.ci_low, o.ci_high)) }
            })
            .collect();
        if !points.is_empty() {
            lines.push(Line { name: words::attacker(attack).into(), slot: slot(attack), points });
        }
    }
    lines
}

/// Fig. 6: accuracy against σ and against mean η.
fn curves(a: &Attack) -> Html {
    let chart = |title: &str, y: &str, lines: Vec<Line>, level: (f64, String)| {
        Lines {
            x: Axis { title, log: true },
            y: Axis { title: y, log: false },
            lines,
            levels: vec![level],
            y_domain: None,
            described: format!(
                "{y} against {title}, one curve for each attack, with 95% intervals over trials."
            ),
        }
        .draw()
    };
    let guess = || (a.baseline.accuracy, "guess without the model".to_owned());
    let sigma = "noise on every coefficient, σ";
    let left = chart(sigma, "share guessed right", result_lines(a, |r| r.sigma, false), guess());
    let eta = format!("mean η of {}", a.secret.name);
    let right = chart(&eta, "share guessed right", result_lines(a, |r| r.eta_mean, false), guess());
    let under = chart(sigma, "advantage", result_lines(a, |r| r.sigma, true), (0.0, "no advantage".into()));
    let lead = "Shaded: 95% intervals over trials. All records of a trial share one noise vector, so trials and not records \
                are what is independent. Advantage is (accuracy − p*)/(1 − p*), p* the largest prior probability (Guo \
                2022, eq. 1); attackers without the prior can fall below zero.";
    let body = two(left, right).and(narrow(under));
    card("curves", "How often the guess is right", &[Claim::Observed], lead, body)
}

/// Fig. 7b and 7d: the white box by decile, before and after balancing.
fn deciles(a: &Attack) -> Html {
    let mut sigmas: Vec<f64> = a.deciles.iter().map(|d| d.sigma).collect();
    sigmas.sort_by(f64::total_cmp);
    sigmas.dedup();
    // Where deciles differ most before balancing: the middle of the transition.
    let spread = |sigma: f64| {
        let values =
            || a.deciles.iter().filter(move |d| d.sigma == sigma && !d.balanced).map(|d| d.accuracy.value);
        values().fold(0.0, f64::max) - values().fold(1.0, f64::min)
    };
    let Some(sigma) = sigmas.into_iter().max_by(|x, y| spread(*x).total_cmp(&spread(*y))) else {
        return Html::new();
    };
    let line = |balanced: bool, name: &str, slot: usize| Line {
        name: name.into(),
        slot,
        points: a
            .deciles
            .iter()
            .filter(|d| d.sigma == sigma && d.balanced == balanced)
            .map(|d| Point {
                x: d.decile as f64,
                y: d.accuracy.value,
                interval: Some((d.accuracy.ci_low, d.accuracy.ci_high)),
            })
            .collect(),
    };
    let mut lines = vec![line(false, "before balancing", 0)];
    let after = line(true, "after balancing", 1);
    let lead = match &a.balance {
        Some(b) => format!(
            "Records in tenths by their η before balancing, at σ = {}. {} Balancing ({}) took the spread of η from {} to {} \
             of its mean. {}",
            format::setting(sigma),
            before(&lines[0].points),
            format::counted(b.iterations as u64, "iteration"),
            format::share(b.spread_before),
            format::share(b.spread_after),
            balanced(&after.points, b.spread_after)
        ),
        None => format!(
            "Records in tenths by their η, at σ = {}. {} Balancing shows what reweighting does about it.",
            format::setting(sigma),
            before(&lines[0].points)
        ),
    };
    if !after.points.is_empty() {
        lines.push(after);
    }
    let chart = Lines {
        x: Axis { title: "tenth of the records by η", log: false },
        y: Axis { title: "share guessed right by the white box", log: false },
        lines,
        levels: vec![],
        y_domain: None,
        described: "Accuracy of the white box by decile of η.".into(),
    };
    card("deciles", "Who is guessed", &[Claim::Observed], lead, narrow(chart.draw()))
}

/// η that varies by less than this share of its mean counts as equal.
const EVEN: f64 = 0.05;
/// Why η and guesses need not go together.
const LARGE_STEP: &str = "η is a local measure, and the step from one value to another is too large for it at this scaling and \
                          noise";

/// Whether the tenth that leaks most is guessed most often, as far as these trials tell.
fn before(tenths: &[Point]) -> String {
    let interval = |p: Option<&Point>| p.and_then(|p| p.interval);
    match (interval(tenths.first()), interval(tenths.last())) {
        (Some((_, least)), Some((most, _))) if most > least => {
            "The tenth that leaks most is guessed more often than the one that leaks least.".into()
        }
        (Some((least, _)), Some((_, most))) if most < least => {
            format!(
                "The tenth that leaks most is guessed less often than the one that leaks least: {LARGE_STEP}."
            )
        }
        _ => "These trials do not tell the tenth that leaks most from the one that leaks least.".into(),
    }
}

/// Whether tenths can still be told apart after balancing. Intervals that overlap are no proof of equality.
fn balanced(tenths: &[Point], spread: f64) -> String {
    let intervals = || tenths.iter().filter_map(|p| p.interval);
    let (low, high) = (
        intervals().map(|i| i.0).fold(f64::NEG_INFINITY, f64::max),
        intervals().map(|i| i.1).fold(f64::INFINITY, f64::min),
    );
    if low <= high {
        return "After it the intervals of all tenths overlap: these trials tell no difference, which is no proof that \
                there is none."
            .into();
    }
    let values = || tenths.iter().map(|p| p.y);
    let why = match spread <= EVEN {
        true => format!("{LARGE_STEP}. Equal η does not mean equally often guessed here."),
        false => "η itself is not equal yet.".to_owned(),
    };
    format!(
        "After it tenths are still guessed differently often, from {} to {}, by more than chance: {why}",
        format::share(values().fold(f64::INFINITY, f64::min)),
        format::share(values().fold(0.0, f64::max))
    )
}

fn utility(a: &Attack) -> Html {
    let Some(u) = &a.utility else { return Html::new() };
    let name = words::metric_name(u.metric);
    let points = u.points.iter().map(|&(x, y)| Point { x, y, interval: None }).collect();
    let gap = (u.without_noise - u.constant_model).abs();
    let (lo, hi) = (u.without_noise.min(u.constant_model), u.without_noise.max(u.constant_model));
    let chart = Lines {
        x: Axis { title: "noise on every coefficient, σ", log: true },
        y: Axis { title: name, log: false },
        lines: vec![Line { name: name.into(), slot: 0, points }],
        levels: vec![
            (u.without_noise, "without noise".into()),
            (u.constant_model, "a model without columns".into()),
        ],
        y_domain: Some([lo - 0.3 * gap, hi + 0.7 * gap]),
        described: format!("{name} on held-out rows against σ."),
    };
    let lead = "Expected over the noise, exactly, on rows that the model was not fitted to. Where the curve leaves the frame \
                it stays on its edge.";
    card("utility", "What the noise costs", &[Claim::Measured], lead, narrow(chart.draw()))
}

fn numbers_table(a: &Attack) -> Html {
    let heads = [
        text_column("attack"),
        text_column("model"),
        numbers("σ"),
        numbers("mean η"),
        numbers("right"),
        numbers("95% interval"),
        numbers("advantage"),
    ];
    let rows: Vec<Vec<Cell>> = a
        .results
        .iter()
        .chain(&a.results_balanced)
        .map(|r| {
            let o = &r.accuracy;
            vec![
                Cell::name(words::attacker(r.attack)),
                Cell::text(if r.balanced { "balanced" } else { "as fitted" }),
                Cell::number(r.sigma),
                Cell::number(r.eta_mean),
                Cell::sorted(format::share(o.value), o.value),
                Cell::sorted(format!("{} – {}", format::share(o.ci_low), format::share(o.ci_high)), o.ci_low),
                Cell::sorted(format::number(r.advantage.value), r.advantage.value),
            ]
        })
        .collect();
    let body = table("sortable filterable tall stack even", "All results", &heads, &rows);
    card("results", "All results", &[Claim::Observed], "", body)
}

fn rests_on(a: &Attack) -> Html {
    let items = [
        "White box: knows every other value of the table, how the model was trained, the weights, and the released \
         coefficients; picks the candidate whose refitted model is nearest (Hannun 2021, eq. 30). Refits are exact."
            .to_owned(),
        "White box with prior: weighs that by how frequent each value is (Guo 2022, A.3). No \
         attacker does better on secrets that do not depend on the other values; what they do tell is left to the black box."
            .to_owned(),
        match a.subject.family {
            ModelKind::Softmax => {
                "Black box: sees the record’s other values, its label and the probabilities that the released model gives; takes \
                 the value under which its label is most probable, weighed by how frequent each value is (Fredrikson 2014)."
            }
            ModelKind::Linear
            | ModelKind::Logistic
            | ModelKind::Poisson
            | ModelKind::Gamma
            | ModelKind::Tweedie(_)
            | ModelKind::SquaredHinge
            | ModelKind::Huber(_) => {
                "Black box: sees the record’s other values, its label, predictions of the released model and how often or by how \
                 much it errs on the training rows (Fredrikson 2014)."
            }
        }
        .to_owned(),
        "Informed adversary: knows all other records but nothing of this one; solves the record that makes the released \
         coefficients a minimum, then takes the nearest value (Balle 2022)."
            .to_owned(),
        format!(
            "Noise: {} Gaussian vectors, the same for every σ, seed {}.",
            format::count(a.trials),
            a.seed
        ),
    ];
    card("rests", "The attackers", &[], "", list(&items))
}
