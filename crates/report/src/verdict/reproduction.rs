//! What a reproduction comes to. It says nothing about the safety of a release, so its colour is that of the agreement.

use super::{Colour, Reservation, Span, Verdict, plain};
use crate::document::reproduction::{Reproduction, Score};

/// The verdict on a reproduction.
pub fn of_reproduction(r: &Reproduction) -> Verdict {
    let Score { to_the_digit, agree, of } = r.score();
    let failed: Vec<&str> = r.claims.iter().filter(|c| !c.holds).map(|c| c.claim.as_str()).collect();
    let mut sentences: Vec<Vec<Span>> = vec![];
    if r.synthetic {
        sentences.push(vec![plain(
            "The data are made up, of the shape that the paper's have: this shows that the computation runs, and says \
             nothing about the published numbers.",
        )]);
    } else if of > 0 {
        sentences.push(vec![plain(agreement(to_the_digit, agree, of))]);
    }
    if !r.claims.is_empty() {
        let (all, held) = (r.claims.len(), r.claims.len() - failed.len());
        sentences.push(vec![plain(match failed.as_slice() {
            [] => all_hold(all),
            [one] => format!("{held} of {all} statements of the paper hold here; this one does not: {one}"),
            _ => format!("{held} of {all} statements of the paper hold here; the others are below."),
        })]);
    }
    if sentences.is_empty() {
        sentences.push(vec![plain("The paper prints no number to compare with; the figures are ours.")]);
    }
    let (colour, headline) = match (r.synthetic, agree == of, failed.is_empty()) {
        (true, ..) => (Colour::Amber, "Made-up data"),
        (_, true, true) => (Colour::Green, "Reproduced"),
        (_, true, false) => (Colour::Amber, "Reproduced, with a reservation"),
        (_, false, _) => (Colour::Amber, "Reproduced in part"),
    };
    let line = |fact, reason| Reservation { fact, reason, colour };
    let decided = match (r.synthetic, agree == of, failed.is_empty()) {
        (true, ..) => line("data that are made up", "They say nothing about the published numbers."),
        (_, true, true) => line(
            "agreement with the paper",
            "Every published number that was compared, and every statement that was checked, holds here.",
        ),
        (_, true, false) => {
            line("a statement that does not hold here", "The page lists each statement that was checked.")
        }
        (_, false, _) => {
            line("published numbers that differ from ours", "What explains each stands beside it.")
        }
    };
    Verdict { colour, headline: headline.into(), sentences, grounds: vec![], open: vec![decided] }
}

fn agreement(to_the_digit: usize, agree: usize, of: usize) -> String {
    match (of - to_the_digit, of - agree) {
        (0, _) if of == 1 => {
            "The published number agrees with ours, to the digits it is printed with.".into()
        }
        (0, _) => format!("All {of} published numbers agree with ours, to the digits they are printed with."),
        (_, differ) => {
            let wider = match agree - to_the_digit {
                0 => String::new(),
                n => format!(", {n} more within the tolerance of their row"),
            };
            let rest = if differ == 0 { "" } else { "; what explains the others stands beside them" };
            format!(
                "{to_the_digit} of {of} published numbers agree with ours to the digits they are printed with{wider}{rest}."
            )
        }
    }
}

fn all_hold(n: usize) -> String {
    match n {
        1 => "The statement of the paper that was checked holds here.".into(),
        2 => "Both statements of the paper that were checked hold here.".into(),
        _ => format!("All {n} statements of the paper that were checked hold here."),
    }
}
