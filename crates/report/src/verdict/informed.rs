//! The verdict on the informed adversary: is the last record told beyond its label?

use super::{Colour, Facts, Noise, Success, Verdict, decide, left_out, plain, strong};
use crate::document::informed::{Adversary, Informed, InformedAttack};
use crate::format;
use crate::words;

pub(crate) fn facts(i: &Informed) -> Facts {
    let most = i.attacks.iter().map(|a| a.identified.value).max_by(f64::total_cmp);
    Facts {
        noise: if i.training.sigma > 0.0 { Noise::Chosen } else { Noise::Absent },
        epsilon: i.epsilon,
        left_out: i.epsilon.map(|_| left_out(i.delta, (i.known + 1) as f64)),
        observed: most.map(|success| Success { success, baseline: 0.5 }),
        ..Facts::default()
    }
}

/// The adversary with the least error, of those that see parameters.
pub(crate) fn best(i: &Informed) -> Option<&InformedAttack> {
    let seeing = i.attacks.iter().filter(|a| a.adversary != Adversary::Labels);
    seeing.min_by(|a, b| a.mse.value.total_cmp(&b.mse.value))
}

/// Whether an adversary is clearly closer than the label alone.
fn beyond_labels(i: &Informed) -> bool {
    best(i).is_some_and(|a| a.gain.ci_low > 0.0)
}

/// The verdict on the informed adversary.
pub fn of_informed(i: &Informed) -> Verdict {
    let decision = decide(&facts(i));
    let head = match decision.colour {
        Colour::Red if beyond_labels(i) => "The last record is told by the parameters",
        Colour::Red => "Nothing promises to hide the last record",
        Colour::Amber => "Not shown to hide the last record",
        Colour::Green => "The last record is hidden",
    };
    let mut sentences = vec![];
    if let (Some(a), Some(labels)) = (best(i), i.by(Adversary::Labels)) {
        let beyond = if beyond_labels(i) { "clearly less than" } else { "not clearly less than" };
        sentences.push(vec![
            plain(format!(
                "Knowing {} and the parameters, the {} reconstructs the last one with a mean squared error of ",
                format::counted(i.known, "record"),
                words::adversary(a.adversary)
            )),
            strong(format::number(a.mse.value)),
            plain(format!(
                ", {beyond} the {} of somebody who knows its label alone; {} of reconstructions are nearer to their own record \
                 than to another of the same label; a coin toss: 50%.",
                format::number(labels.mse.value),
                format::share(a.identified.value)
            )),
        ]);
    }
    sentences.push(vec![plain(
        "This is the result of particular attacks. A better attack may do better: this is no guarantee.",
    )]);
    Verdict::new(decision, head, sentences)
}
