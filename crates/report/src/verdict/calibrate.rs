//! The verdict on a calibration: what its target comes to, once noise of this size is used.

use super::{Facts, Success, Verdict, decide, headline, left_out, plain, strong};
use crate::document::calibrate::{Aim, Calibration, Leakage};
use crate::format::five_digits;
use leakscope_core::dp::Target;

fn facts(c: &Calibration) -> Facts {
    let guessed = |baseline: f64| Facts {
        bounded: Some(Success { success: c.achieved, baseline }),
        ..Facts::default()
    };
    match &c.target {
        Aim::Training(Target::Epsilon { delta, .. }) => Facts {
            epsilon: Some(c.achieved),
            // A batch has a record on average at least.
            left_out: Some(left_out(*delta, 1.0 / c.training.map_or(1.0, |t| t.rate))),
            ..Facts::default()
        },
        Aim::Training(Target::Advantage { .. }) => {
            Facts { membership: Some(c.achieved), epsilon: c.epsilon, ..Facts::default() }
        }
        Aim::Training(Target::Reconstruction { most_likely, .. }) => {
            Facts { epsilon: c.epsilon, ..guessed(*most_likely) }
        }
        Aim::Leakage(Leakage::Guessing { most_likely: Some(most_likely), .. }) => guessed(*most_likely),
        // A rate at one threshold, and η, cover no attacker by themselves; what a guess achieves without the model is not known.
        Aim::Training(Target::TruePositiveRate { .. })
        | Aim::Leakage(
            Leakage::Eta { .. }
            | Leakage::Sd { .. }
            | Leakage::Goals { .. }
            | Leakage::Guessing { most_likely: None, .. },
        ) => Facts::default(),
    }
}

/// The verdict on a calibration.
pub fn of_calibration(c: &Calibration) -> Verdict {
    let decision = decide(&facts(c));
    let head = headline(decision.colour);
    let sentence = vec![
        plain("Noise of σ = "),
        strong(five_digits(c.sigma, true)),
        plain(format!(" meets the target: what is achieved is {}.", five_digits(c.achieved, true))),
    ];
    Verdict::new(decision, head, vec![sentence])
}
