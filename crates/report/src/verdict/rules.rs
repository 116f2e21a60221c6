//! The rules that give a page its colour, as a table: [`super::decide`] goes through it, and a page that moves its numbers
//! carries the same table for its script.

use super::{EPSILON_ALARM, EPSILON_CALM, Facts, Success, TOLD_AT};
use serde::Serialize;

/// Which of the facts a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Two values of an attribute told apart.
    Told,
    /// The same of the label.
    LabelTold,
    /// Two values told apart at least so often, where refits left open how often.
    ToldAtLeast,
    /// The same of an attribute, as η estimates it.
    Estimated,
    /// The same of the label.
    LabelEstimated,
    /// A secret guessed, by every attacker.
    Bounded,
    /// The odds of naming a secret, times those of a guess, by every attacker.
    Odds,
    /// A secret guessed, by the attack that was played.
    Observed,
    /// Who took part.
    Membership,
    /// ε.
    Epsilon,
    /// Records that δ leaves out of the promise of ε.
    LeftOut,
}

/// Up to where a number is calm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Calm {
    /// Up to what counts as protected on this page.
    ProtectAt,
    /// Up to this.
    UpTo(f64),
}

/// What one number does to the colour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rule {
    /// Which number.
    pub quantity: Quantity,
    /// What the number is.
    pub fact: &'static str,
    /// Why it counts.
    pub reason: &'static str,
    /// Whether it covers every attacker and can make a page green; otherwise it can only warn.
    pub covers: bool,
    /// Whether it is held below what a bound on membership allows.
    pub capped: bool,
    /// Whether it is a probability.
    pub share: bool,
    /// Where it is green.
    pub calm: Calm,
    /// Above this it is red.
    pub alarm: f64,
}

const COIN: &str = "Somebody who knows all else, at even odds, is right so often at most; a coin toss: 50%.";
const LOCAL: &str = "From η, which looks at small changes alone: an approximation, no test of two values.";

/// A probability on the scale of two possibilities that were equally likely.
const fn odds(quantity: Quantity, fact: &'static str, reason: &'static str, covers: bool) -> Rule {
    let capped = matches!(quantity, Quantity::Estimated | Quantity::LabelEstimated);
    Rule { quantity, fact, reason, covers, capped, share: true, calm: Calm::ProtectAt, alarm: TOLD_AT }
}

/// Odds that grow by as much as under [`EPSILON_ALARM`].
const E_TO_THE_8: f64 = 2_980.957_987_041_728_3;

/// Every rule, in the order in which they are shown.
pub const RULES: [Rule; 11] = [
    odds(Quantity::Told, "two values of an attribute told apart", COIN, true),
    odds(Quantity::LabelTold, "two values of the label told apart", COIN, true),
    odds(
        Quantity::ToldAtLeast,
        "two values told apart, at least",
        "Refits show so much, and those that were allowed exclude no more.",
        false,
    ),
    odds(Quantity::Estimated, "two values of an attribute told apart, about", LOCAL, false),
    odds(Quantity::LabelEstimated, "two values of the label told apart, about", LOCAL, false),
    odds(
        Quantity::Bounded,
        "a secret guessed, if a guess were right in 50%",
        "Proved for every attacker; on the scale where a guess without the model has 50%.",
        true,
    ),
    Rule {
        quantity: Quantity::Odds,
        fact: "odds of naming the secret, times those of a guess",
        reason: "Of many candidates a guess is hardly ever right: by so much grow the odds of naming the secret, for every attacker. \
                 Up to e = 2.7 they change as little as under ε = 1, above e⁸ as much as under ε = 8; from seven candidates on it \
                 is the stricter rule.",
        covers: true,
        capped: false,
        share: false,
        calm: Calm::UpTo(std::f64::consts::E),
        alarm: E_TO_THE_8,
    },
    odds(
        Quantity::Observed,
        "a secret guessed by an attack, if a guess were right in 50%",
        "What the strongest attack achieved, on the same scale: evidence of danger, never of safety.",
        false,
    ),
    odds(
        Quantity::Membership,
        "who took part told",
        "Somebody who must say whether a record took part, at even odds, is right so often at most.",
        true,
    ),
    Rule {
        quantity: Quantity::Epsilon,
        fact: "ε",
        reason: "Up to 1, no conclusion changes its odds by more than 2.7; above 8, by 3,000 and more.",
        covers: true,
        capped: false,
        share: false,
        calm: Calm::UpTo(EPSILON_CALM),
        alarm: EPSILON_ALARM,
    },
    Rule {
        quantity: Quantity::LeftOut,
        fact: "records that δ leaves out, on average",
        reason: "With probability δ a record has no promise at all: δ times the number of records (a thousand where there are fewer, \
                 one over the sampling rate where it is not known) stays below one.",
        covers: false,
        capped: false,
        share: false,
        calm: Calm::UpTo(0.9),
        alarm: 10.0,
    },
];

impl Rule {
    /// The number that it is about, as it is compared; nothing where the page has none.
    pub(super) fn value(&self, facts: &Facts) -> Option<f64> {
        let f = facts;
        let value = match self.quantity {
            Quantity::Told => f.told,
            Quantity::LabelTold => f.label_told,
            Quantity::ToldAtLeast => f.told_at_least,
            Quantity::Estimated => f.estimated,
            Quantity::LabelEstimated => f.label_estimated,
            Quantity::Bounded => f.bounded.map(Success::told_of_two),
            Quantity::Odds => f.bounded.map(Success::odds),
            Quantity::Observed => f.observed.map(Success::told_of_two),
            Quantity::Membership => f.membership.map(|a| 0.5 + 0.5 * a),
            Quantity::Epsilon => f.epsilon,
            Quantity::LeftOut => f.left_out,
        };
        // Two values of one record are at most as far apart as either is from its absence, twice. Where the encoding was read off
        // the records, what is known of its absence is not all that it changes; where the noise is less than that of the run, it is
        // not known at all.
        let known = !f.open.encoding_of_records && !f.open.less_than_run;
        let bound = f.membership.filter(|a| a.is_finite() && known);
        let most = bound.map_or(1.0, |a| (0.5 + a).min(1.0));
        value.map(|p| if self.capped && !p.is_nan() { p.min(most) } else { p })
    }

    /// Up to where the number is calm on a page with these facts.
    pub(super) fn calm(&self, facts: &Facts) -> f64 {
        match self.calm {
            Calm::ProtectAt => facts.protect_at.clamp(0.5, TOLD_AT),
            Calm::UpTo(most) => most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_grow_as_under_epsilon() {
        assert_eq!(EPSILON_CALM.exp(), std::f64::consts::E);
        assert!((EPSILON_ALARM.exp() - E_TO_THE_8).abs() < 1e-11);
    }
}
