//! The verdict on attacks: what was guessed, as observed and no more.

use super::{Colour, Facts, Noise, Success, Verdict, decide, plain, strong};
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

/// The verdict on attacks. What leaks about training records and what the model says about anybody are two things: the
/// black box would do as well against people who are not in the table.
pub fn of_attack(a: &Attack) -> Verdict {
    let decision = decide(&facts(a));
    let black_box = |r: &AttackResult| r.attack == Attacker::BlackBox;
    let leaks = strongest(a, |r| !black_box(r));
    let mut sentences = vec![];
    let mut head = match decision.colour {
        Colour::Red => "Attacks succeed",
        Colour::Amber | Colour::Green => "No attack did much better than a guess",
    };
    if let Some(worst) = leaks.first() {
        let mut first = vec![
            plain(format!(
                "At the smallest noise tried, σ = {}, the {} guessed {} of ",
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
            Some(r) if r.sigma == worst.sigma => {}
            Some(r) => {
                first.push(plain(format!(
                    " From σ = {} on (mean η {}) none of these attackers who goes for the training record is clearly ahead of that \
                     guess. That is about these attacks on {} alone and no reason to choose it: what every attacker may do at a \
                     noise, with every attribute, `leakscope audit` says.",
                    format::setting(r.sigma),
                    format::number(r.eta_mean),
                    a.secret.name
                )));
                head = "Attacks succeed at small noise";
            }
            None => {
                first.push(plain(
                    " Every noise tried leaves an attack that is ahead of that guess: choose more.",
                ));
                head = "Attacks succeed at every noise tried";
            }
        }
        sentences.push(first);
    }
    let of_black_box = strongest(a, black_box);
    if let (Some(first), Some(last)) = (of_black_box.first(), of_black_box.last()) {
        sentences.push(vec![plain(format!(
            "The black box guessed {} at the smallest noise and {} at the largest. It uses what the model says about \
             anybody, in the table or not, so noise that protects records need not stop it.",
            format::share(first.accuracy.value),
            format::share(last.accuracy.value)
        ))]);
    }
    sentences.push(vec![plain(
        "These are the results of particular attacks. A better attack may do better: this is no guarantee.",
    )]);
    Verdict::new(decision, head, sentences)
}
