//! The verdict on attacks: what was guessed, as observed and no more.

use super::{Colour, Facts, Noise, Span, Success, Verdict, decide, plain, strong};
use crate::document::attack::{Attack, AttackResult};
use crate::format;
use crate::words;
use leakscope_core::attack::Attack as Attacker;

/// What the page of attacks prints: the strongest attack at any noise on it.
pub(crate) fn facts(a: &Attack) -> Facts {
    let all = a.results.iter().chain(&a.results_balanced);
    let strongest = all.map(|r| r.accuracy.value).max_by(f64::total_cmp);
    let noise = if a.results.iter().any(|r| r.sigma <= 0.0) { Noise::Absent } else { Noise::Chosen };
    let baseline = a.baseline.accuracy;
    Facts { noise, observed: strongest.map(|success| Success { success, baseline }), ..Facts::default() }
}

/// The strongest of some attackers at each σ, smallest σ first.
pub(crate) fn strongest(a: &Attack, of: impl Fn(&AttackResult) -> bool) -> Vec<&AttackResult> {
    let mut sigmas: Vec<f64> = a.results.iter().map(|r| r.sigma).collect();
    sigmas.sort_by(f64::total_cmp);
    sigmas.dedup();
    let at = |sigma: f64| {
        let results = a.results.iter().filter(|r| r.sigma == sigma && of(r));
        results.max_by(|x, y| x.accuracy.value.total_cmp(&y.accuracy.value))
    };
    sigmas.into_iter().filter_map(at).collect()
}

/// Ahead of the guess by more than chance and by more than a hundredth.
fn ahead(r: &AttackResult) -> bool {
    r.advantage.ci_low > 0.01
}

/// An attacker may be this far ahead of the guess, as a share of what is left to gain, and words stay calm.
const LITTLE: f64 = 0.1;

/// What a page may say at most where no attack clearly succeeds: calm words take the upper end of every interval.
fn calm_headline(a: &Attack) -> &'static str {
    let all = || a.results.iter().chain(&a.results_balanced);
    match (all().any(ahead), all().all(|r| r.advantage.ci_high <= LITTLE)) {
        (true, _) => "Some attack did better than a guess",
        (false, true) => "No attack did much better than a guess",
        (false, false) => "Too few trials to say how attacks do",
    }
}

/// The verdict on attacks. What leaks about training records and what the model says about anybody are two things: the
/// black box would do as well against people who are not in the table.
pub fn of_attack(a: &Attack) -> Verdict {
    let decision = decide(&facts(a));
    let leaks = strongest(a, |r| !is_black_box(r));
    let mut sigmas: Vec<f64> = a.results.iter().map(|r| r.sigma).collect();
    sigmas.dedup();
    let one_noise = sigmas.iter().all(|s| Some(s) == sigmas.first());
    let mut sentences = vec![];
    let mut head = match decision.colour {
        Colour::Red => "Attacks succeed",
        Colour::Amber | Colour::Green => calm_headline(a),
    };
    if let Some(worst) = leaks.first() {
        let mut first = vec![
            plain(format!(
                "{}σ = {}, the {} guessed {} of ",
                if one_noise { "At " } else { "At the smallest noise tried, " },
                format::setting(worst.sigma),
                words::attacker(worst.attack),
                a.secret.name
            )),
            strong(format::share(worst.accuracy.value)),
            plain(format!(
                " of {} right; guessing the most frequent value gets ",
                format::counted(a.records, "record")
            )),
            strong(format::share(a.baseline.accuracy)),
            plain("."),
        ];
        match leaks.iter().rev().take_while(|r| !ahead(r)).last() {
            // A wide interval is no safety.
            Some(r) if r.sigma == worst.sigma => {
                if leaks.iter().any(|r| r.advantage.ci_high > LITTLE) {
                    first.push(plain(format!(
                        " With {} that may be as much as {} ahead of the guess: more ⟨trials⟩ would tell.",
                        format::counted(a.trials, "trial"),
                        format::share(leaks.iter().map(|r| r.advantage.ci_high).fold(0.0, f64::max))
                    )));
                }
            }
            Some(r) => {
                first.push(plain(format!(
                    " From σ = {} on (mean η {}) none of these attackers who goes for the training record is clearly ahead of that \
                     guess. That is about these attacks on {} alone and no reason to choose it: what every attacker may do at a \
                     noise, with every attribute, leakscope audit says.",
                    format::setting(r.sigma),
                    format::number(r.eta_mean),
                    a.secret.name
                )));
                head = "Attacks succeed at small noise";
            }
            None => {
                first.push(plain(if one_noise {
                    " That is ahead of the guess: choose more noise."
                } else {
                    " Every noise tried leaves an attack that is ahead of that guess: choose more."
                }));
                head = if one_noise { "Attacks succeed" } else { "Attacks succeed at every noise tried" };
            }
        }
        sentences.push(first);
    }
    sentences.extend(of_black_box(a, one_noise));
    sentences.push(vec![plain(
        "These are the results of particular attacks. A better attack may do better: this is no guarantee.",
    )]);
    Verdict::new(decision, head, sentences)
}

fn is_black_box(r: &AttackResult) -> bool {
    r.attack == Attacker::BlackBox
}

/// What the black box guessed, which noise for the records need not stop.
fn of_black_box(a: &Attack, one_noise: bool) -> Option<Vec<Span>> {
    let attacks = strongest(a, is_black_box);
    let (first, last) = attacks.first().zip(attacks.last())?;
    let guessed = match one_noise {
        true => format::share(first.accuracy.value),
        false => format!(
            "{} at the smallest noise and {} at the largest",
            format::share(first.accuracy.value),
            format::share(last.accuracy.value)
        ),
    };
    Some(vec![plain(format!(
        "The black box guessed {guessed}, where guessing the most frequent value gets {}. It uses what the model says about \
             anybody, in the table or not, so noise that protects records need not stop it.",
        format::share(a.baseline.accuracy)
    ))])
}
