//! The verdict on texts: what one noisy step of fine-tuning tells about them.

use super::{Colour, Facts, Noise, TYPICAL, Verdict, decide, estimated, headline, plain, strong};
use crate::document::text_audit::TextAudit;
use crate::format;

/// A secret that stands out so far: the likeliest of a million.
const EXPOSED: f64 = 20.0;

fn facts(a: &TextAudit) -> Facts {
    let spread = TYPICAL * a.spread.max(0.0).sqrt();
    let dfil = a.dfil.as_ref().map(|d| 1.0 / d.max.max(0.0).sqrt());
    let errors = dfil.into_iter().chain(a.eta.as_ref().map(|e| 1.0 / e.max.max(0.0)));
    let told = errors.map(|e| if e.is_infinite() { 0.5 } else { estimated(spread, e) });
    Facts {
        noise: if a.release.chosen { Noise::Chosen } else { Noise::Unit },
        estimated: told.max_by(f64::total_cmp),
        ..Facts::default()
    }
}

/// The verdict on texts.
pub fn of_text_audit(a: &TextAudit) -> Verdict {
    let decision = decide(&facts(a));
    let head = match (a.release.chosen, decision.colour) {
        (false, Colour::Amber) => "A unit of noise",
        (false, Colour::Green | Colour::Red) | (true, _) => headline(decision.colour),
    };
    let mut sentences = vec![vec![plain(match a.release.chosen {
        true => {
            "The numbers are what one noisy step of fine-tuning tells of each text, and a run adds them up."
        }
        false => {
            "No noise was chosen: the numbers are those of one step with noise of standard deviation 1, to compare texts by."
        }
    })]];
    if let Some(dfil) = a.dfil.as_ref().map(|d| d.max).filter(|d| *d > 0.0) {
        sentences.push(vec![
            plain(
                "An unbiased reconstruction of the embedded words of the most exposed text from one step has a mean squared \
                 error per value of about ",
            ),
            strong(format::number(1.0 / dfil)),
            plain(" or more; guessing the mean word has "),
            strong(format::number(a.spread)),
            plain("."),
        ]);
    }
    if let Some(most) = a.exposures.iter().max_by(|x, y| x.exposure.total_cmp(&y.exposure)) {
        let out = most.rank == 1;
        sentences.push(vec![
            plain(format!("Of {} possibilities secret {} is ", format::count(most.candidates), most.secret)),
            strong(match out {
                true => "the one that the model holds likeliest".to_owned(),
                false => format!("number {} by likelihood", format::count(most.rank)),
            }),
            plain(match out || most.exposure >= EXPOSED {
                true => " already: whoever may ask the model can pull it out.",
                false => ", before any fine-tuning on these texts.",
            }),
        ]);
    }
    Verdict::new(decision, head, sentences)
}
