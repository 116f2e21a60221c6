//! The verdict: what a page comes down to, for somebody who must decide.
//!
//! One function, [`decide`], gives every page its colour from the numbers printed on it ([`Facts`]). All of them are
//! compared on one scale, the probability of naming the right one of two possibilities that were equally likely: 50% is a
//! coin toss, 100% is certainty. The worst number decides; what is only approximated or observed never makes a page
//! green.
//!
//! | fact | kind | can make a page green |
//! |---|---|---|
//! | two values of an attribute told apart, by exact refits | measured | yes |
//! | success of every attacker, at most, and by how much its odds grow | bound | yes |
//! | membership advantage, ε | bound | yes |
//! | two values told apart, estimated from η | measured, local | no |
//! | success of an attack | observed | no |

mod account;
mod attack;
mod audit;
mod balance;
mod bound;
mod calibrate;
mod canary;
mod comparison;
mod informed;
mod inversion;
mod membership;
mod net;
mod release;
mod remedy;
mod reproduction;
mod rules;
mod text_audit;

pub use account::of_account;
pub use attack::of_attack;
pub use audit::of_audit;
pub use balance::of_balance;
pub use bound::of_bound;
pub use calibrate::of_calibration;
pub use canary::of_canary;
pub use comparison::of_comparison;
pub use informed::of_informed;
pub use inversion::of_inversion;
pub use membership::of_membership;
pub(crate) use net::{accounted, accounts, below};
pub use net::{of_net_audit, of_training};
pub use release::{of_owned, of_release};
pub use remedy::cause;
pub use reproduction::of_reproduction;
pub use rules::{Calm, Quantity, RULES, Rule};
pub use text_audit::of_text_audit;

pub(crate) use audit::{
    estimated_distance, estimated_of_label as label_estimate, exposures, facts as facts_of_audit, is_open,
    is_open_at_any_noise, label_distance, of_secret,
};

pub use crate::document::choice::Colour;
use crate::document::judged::Judged;
pub use crate::document::tell::PROTECT_AT;
use crate::format;
use leakscope_core::special::{normal_cdf, normal_quantile};

/// Right more often than this, they are told apart: three times of four is no guess any more.
pub const TOLD_AT: f64 = 0.75;
/// Up to this ε no conclusion about a record becomes more than 2.7 times likelier or unlikelier by its taking part.
pub const EPSILON_CALM: f64 = 1.0;
/// Above this ε a conclusion may become 3,000 times likelier: nothing that matters is promised.
pub const EPSILON_ALARM: f64 = 8.0;

/// Distance of the 10% and the 90% quantile of a normal population, in its standard deviations: two typical values.
pub(crate) const TYPICAL: f64 = 2.563_103_131_089_201;

/// Whether there is noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// It was chosen and added.
    #[default]
    Chosen,
    /// Numbers are per unit of noise: none was chosen.
    Unit,
    /// There is none: whoever knows all other records computes the last one.
    Absent,
}

/// A share of right guesses beside that of guessing without the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Success {
    /// Right guesses.
    pub success: f64,
    /// Right guesses without the model.
    pub baseline: f64,
}

impl Success {
    /// The same on the scale of two equally likely possibilities: half the share of what was left to gain, above ½.
    pub fn told_of_two(self) -> f64 {
        let left = 1.0 - self.baseline;
        if left <= 0.0 {
            // Nothing is left to guess.
            return 0.5;
        }
        0.5 + 0.5 * ((self.success - self.baseline) / left).clamp(0.0, 1.0)
    }

    /// How many times the odds of a right guess grow by the model. Of many candidates a guess is hardly ever right, and what is
    /// left to gain is nearly all: that [`Success::told_of_two`] grows little says little then.
    pub fn odds(self) -> f64 {
        let odds = |p: f64| p / (1.0 - p);
        match (self.success <= self.baseline, self.baseline > 0.0 && self.success < 1.0) {
            (true, _) => 1.0,
            (false, true) => odds(self.success) / odds(self.baseline),
            (false, false) if self.success.is_nan() => f64::NAN,
            (false, false) => f64::INFINITY,
        }
    }

    /// Whether a page may be green by it: the rule of [`decide`].
    pub(crate) fn is_calm(self, protect_at: f64) -> bool {
        self.told_of_two() <= protect_at && self.odds() <= EPSILON_CALM.exp()
    }
}

/// What a page prints that its colour may rest on. What is absent is not on the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Whether there is noise.
    pub noise: Noise,
    /// Whether a limit that the user set is breached.
    pub over_limit: bool,
    /// Whether the computation did not get where it should (a run diverged, a balancing did not converge).
    pub unfinished: bool,
    /// What stays open whatever the numbers are.
    pub open: Reservations,
    /// Told apart at most this often, values count as protected.
    pub protect_at: f64,
    /// Largest probability with which somebody who knows all else tells two typical values of an attribute apart.
    pub told: Option<f64>,
    /// The same of the label, where it is secret.
    pub label_told: Option<f64>,
    /// The same of values that the refits that were allowed did not settle: at least.
    pub told_at_least: Option<f64>,
    /// The same for an attribute, estimated from η, which looks at small changes alone.
    pub estimated: Option<f64>,
    /// The same for the label.
    pub label_estimated: Option<f64>,
    /// ε, where one is stated.
    pub epsilon: Option<f64>,
    /// δ times the number of records: how many its δ leaves out of the promise of ε, on average.
    pub left_out: Option<f64>,
    /// Membership advantage of any test, at most.
    pub membership: Option<f64>,
    /// Success of every attacker on a secret, at most.
    pub bounded: Option<Success>,
    /// Success of the strongest attack that was played.
    pub observed: Option<Success>,
}

/// What stays open whatever the numbers of a page are: with any of it the page is not green, and says so beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reservations {
    /// Values that were not tried.
    pub not_tried: bool,
    /// Values that the refits that were allowed did not settle.
    pub not_settled: bool,
    /// Given coefficients that are not at the minimiser.
    pub approximate: bool,
    /// A covariance of the noise that was read off the records.
    pub shape_of_records: bool,
    /// An amount of noise that was solved for on the data.
    pub solved_on_data: bool,
    /// Several rows of one person.
    pub rows_of_one: bool,
    /// Parts of the encoding that were read off the records.
    pub encoding_of_records: bool,
    /// Rows that are equal beyond chance, and may be one person's.
    pub equal_rows: bool,
    /// Bounds on bins of a number, each tried at one value.
    pub binned: bool,
    /// Numbers that were found and are the owner's alone to know.
    pub kept_back: bool,
    /// Values that were named and are nearer to one another than records differ.
    pub near_values: bool,
    /// Noise that is less than a run had, whose promise says nothing about it.
    pub less_than_run: bool,
}

impl Reservations {
    /// What each is, and why it counts.
    pub(super) fn lines(self) -> Vec<Reservation> {
        let line =
            |holds: bool, fact, reason| holds.then_some(Reservation { fact, reason, colour: Colour::Amber });
        [
            line(
                self.kept_back,
                "numbers that stay with the owner",
                "How often values are told apart is not stated here: whoever knows all other records could compute from it which \
                 values the last one can have.",
            ),
            line(
                self.not_tried,
                "values that were not tried",
                "Nothing is shown about them: two of each must be put in place, for every attribute and a secret label.",
            ),
            line(
                self.not_settled,
                "values that were not settled",
                "The refits that were allowed leave open how often they are told apart; ⟨tell_budget⟩ allows more.",
            ),
            line(
                self.approximate,
                "coefficients that are not at the minimiser",
                "Every number is for a model near the one that was given.",
            ),
            line(
                self.shape_of_records,
                "a shape of the noise that was read off the records",
                "Who sees the covariance may recompute it for each value, which is not counted.",
            ),
            line(
                self.binned,
                "bins that are tried at their means",
                "A value elsewhere in its bin may be guessed more often than the bounds say.",
            ),
            line(
                self.solved_on_data,
                "noise whose amount was solved for on the data",
                "Published with the model, it can tell values of a record apart by itself, which is not counted.",
            ),
            line(
                self.rows_of_one,
                "several rows of one person",
                "What they tell together was not tried, only estimated.",
            ),
            line(
                self.encoding_of_records,
                "an encoding that was read off the records",
                "One record can move the values of all others, or decide which columns there are, which is not counted.",
            ),
            line(
                self.equal_rows,
                "rows that are equal, more of them than by chance",
                "If they are one person’s, that person moves the model as often, which is not counted: ⟨id⟩ says whose they are.",
            ),
            line(
                self.near_values,
                "named values that are nearer than records differ",
                "They are less than a standard deviation apart; typical values are further, and nothing was tried about those. Name others \
                 with ⟨tell⟩, or leave it out.",
            ),
            line(
                self.less_than_run,
                "noise that is not the run’s",
                "What the run promises holds under its own clip and noise; the steps that are measured here have less, or another clip.",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Something that decides a colour and is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// What it is.
    pub fact: &'static str,
    /// Why it counts.
    pub reason: &'static str,
    /// What it says.
    pub colour: Colour,
}

/// Fewer records than this are counted as so many: a δ that is large by itself is no promise to a few.
const FEW: f64 = 1_000.0;

/// How many of the records δ leaves out of the promise of ε. A release that lays bare whichever record it draws has ε = 0 at a
/// δ of the chance to be drawn, which is at least one over their number.
pub(crate) fn left_out(delta: f64, records: f64) -> f64 {
    delta * records.max(FEW)
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            noise: Noise::Chosen,
            over_limit: false,
            unfinished: false,
            open: Reservations::default(),
            protect_at: PROTECT_AT,
            told: None,
            label_told: None,
            told_at_least: None,
            estimated: None,
            label_estimated: None,
            epsilon: None,
            left_out: None,
            membership: None,
            bounded: None,
            observed: None,
        }
    }
}

impl Facts {
    /// The larger of the probabilities that were computed exactly, or are no less than this.
    pub(crate) fn exact(&self) -> Option<f64> {
        self.told.into_iter().chain(self.label_told).chain(self.told_at_least).max_by(f64::total_cmp)
    }

    /// How often two values of the label are told apart, as tried or else as η estimates it.
    pub(crate) fn label_worst(&self) -> Option<f64> {
        self.label_told.or(self.label_estimated)
    }

    /// The larger of those that η estimates.
    pub(crate) fn approximate(&self) -> Option<f64> {
        self.estimated.into_iter().chain(self.label_estimated).max_by(f64::total_cmp)
    }
}

/// One number that the colour rests on, with its limits as they are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground {
    /// What the number is.
    pub fact: &'static str,
    /// Why it counts.
    pub reason: &'static str,
    /// The number.
    pub value: f64,
    /// Whether it is a probability.
    pub share: bool,
    /// The number as it is shown.
    pub shown: String,
    /// Where it would be green.
    pub green: String,
    /// Where it is red.
    pub red: String,
    /// What it says.
    pub colour: Colour,
}

/// A colour and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The colour.
    pub colour: Colour,
    /// Every number that it rests on.
    pub grounds: Vec<Ground>,
    /// What else it rests on.
    pub open: Vec<Reservation>,
}

/// The colour of a page from what is printed on it, by the [`RULES`]: the worst of its numbers, and green only where one of them
/// covers every attacker.
pub fn decide(facts: &Facts) -> Decision {
    let mut grounds = vec![];
    let mut covered = false;
    for rule in &RULES {
        let Some(value) = rule.value(facts) else { continue };
        covered |= rule.covers;
        let calm = rule.calm(facts);
        let write = |x: f64| if rule.share { format::share_at_most(x) } else { format::at_most(x) };
        let alone = if rule.covers { "" } else { ", not alone" };
        grounds.push(Ground {
            fact: rule.fact,
            reason: rule.reason,
            value,
            share: rule.share,
            shown: write(value),
            green: format!("up to {}{alone}", write(calm)),
            red: format!("above {}", write(rule.alarm)),
            colour: judge(value, calm, rule.alarm),
        });
    }
    let mut open = circumstances(facts);
    open.extend(facts.open.lines());
    if !covered && open.iter().all(|r| r.colour < Colour::Amber) {
        open.push(Reservation {
            fact: "no number that covers every attacker",
            reason: "What is estimated or observed can warn, and calms nobody.",
            colour: Colour::Amber,
        });
    }
    let colours = grounds.iter().map(|g| g.colour).chain(open.iter().map(|r| r.colour));
    Decision { colour: colours.max().unwrap_or(Colour::Amber), grounds, open }
}

/// What decides besides the numbers, whatever they are.
fn circumstances(facts: &Facts) -> Vec<Reservation> {
    let noise = match facts.noise {
        Noise::Chosen => None,
        Noise::Unit => Some(Reservation {
            fact: "no noise that was chosen",
            reason: "Numbers are per unit of noise: what a release gives away follows from the noise it will have.",
            colour: Colour::Amber,
        }),
        Noise::Absent => Some(Reservation {
            fact: "no noise",
            reason: "Whoever knows all other records computes the last one from the model.",
            colour: Colour::Red,
        }),
    };
    let over = facts.over_limit.then_some(Reservation {
        fact: "a limit that is passed",
        reason: "Of what was set or stated (a limit, a budget, an ε), numbers on this page are above.",
        colour: Colour::Red,
    });
    let unfinished = facts.unfinished.then_some(Reservation {
        fact: "something that was left unfinished",
        reason: "A run that diverged, records that are not equal yet, values that were not put in place, a test that says more than \
                 was promised: the verdict names it.",
        colour: Colour::Amber,
    });
    noise.into_iter().chain(over).chain(unfinished).collect()
}

/// The colour of one number; one that is not known is red.
fn judge(value: f64, calm: f64, alarm: f64) -> Colour {
    match value {
        v if v.is_nan() || v > alarm => Colour::Red,
        v if v <= calm => Colour::Green,
        _ => Colour::Amber,
    }
}

/// How often two values `distance` apart are told apart by somebody whose best estimate is off by `error`, as far as small
/// changes tell: `Φ(distance/(2 error))`.
pub(crate) fn estimated(distance: f64, error: f64) -> f64 {
    normal_cdf(0.5 * in_noise(distance, error))
}

/// That distance in standard deviations of the noise; without bound where the error is none.
pub(crate) fn in_noise(distance: f64, error: f64) -> f64 {
    let apart = distance / error;
    if error > 0.0 && !apart.is_nan() { apart } else { f64::INFINITY }
}

/// How many times the noise brings a probability of telling apart down to `goal`: both are `Φ` of something that falls as
/// one over the noise. Absent where no noise does, or none is needed.
pub(crate) fn more_noise(told: f64, goal: f64) -> Option<f64> {
    let open = |p: f64| p > 0.5 && p < 1.0;
    // Beyond ten digits a probability does not tell how far from certainty it is.
    (open(told) && open(goal) && told > goal && told < 1.0 - 1e-10)
        .then(|| normal_quantile(told) / normal_quantile(goal))
}

/// How many times the noise brings values of an attribute, `distance` standard deviations of the noise apart, and all its `levels`
/// at once, down to `goal`: the very rule that colours, inverted. At most 1 where they are there already; absent where no noise
/// helps.
pub fn noise_to_hide(distance: f64, levels: usize, goal: f64) -> Option<f64> {
    if !(distance.is_finite() && goal > 0.5 && goal < 1.0) {
        return None;
    }
    let two = 0.5 * distance / normal_quantile(goal);
    let m = levels.max(2) as f64;
    // Of all levels a guess is right once in m; the goal is the same share of what is left to gain.
    let success = 1.0 / m + (2.0 * goal - 1.0) * (1.0 - 1.0 / m);
    let reach = normal_quantile(success) - normal_quantile(1.0 / m);
    let all = distance * ((m - 1.0) / (2.0 * m)).sqrt() / reach;
    // What is stated is rounded to the safe side.
    Some(if levels > 2 { two.max(all) } else { two } * (1.0 + 1e-6))
}

/// A piece of a sentence; what carries it is strong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The words.
    pub text: String,
    /// Whether they carry the sentence.
    pub strong: bool,
}

/// Plain words.
pub(crate) fn plain(text: impl Into<String>) -> Span {
    Span { text: text.into(), strong: false }
}

/// Words that carry the sentence.
pub(crate) fn strong(text: impl Into<String>) -> Span {
    Span { text: text.into(), strong: true }
}

/// What a page comes down to: a colour, a few words, one to three sentences, and what the colour rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The colour.
    pub colour: Colour,
    /// A few words to put on it.
    pub headline: String,
    /// The sentences.
    pub sentences: Vec<Vec<Span>>,
    /// What the colour rests on.
    pub grounds: Vec<Ground>,
    /// What else it rests on.
    pub open: Vec<Reservation>,
}

impl Verdict {
    /// A decision with its words.
    pub(crate) fn new(decision: Decision, headline: impl Into<String>, sentences: Vec<Vec<Span>>) -> Self {
        let Decision { colour, grounds, open } = decision;
        Self { colour, headline: headline.into(), sentences, grounds, open }
    }

    /// The verdict as documents hold it.
    pub fn judged(&self) -> Judged {
        Judged { colour: self.colour, headline: self.headline.clone(), text: self.text() }
    }

    /// The line that decides the colour, with its number where it has one: of lines of that colour the largest probability, or else
    /// the first.
    pub fn decided_by(&self) -> Option<String> {
        let worst = |c: Colour| c == self.colour;
        let deciding = || self.grounds.iter().filter(|g| worst(g.colour));
        let shares = deciding().filter(|g| g.share);
        let largest = shares.max_by(|a, b| a.value.total_cmp(&b.value)).or_else(|| deciding().next());
        let number = largest.map(|most| {
            // Where several are as large, each is why: the sentence may name any of them.
            let equal =
                |g: &&Ground| std::ptr::eq(*g, most) || (most.share && g.share && g.shown == most.shown);
            let facts: Vec<&str> = deciding().filter(equal).map(|g| g.fact).collect();
            format!("{}: {}", facts.join(", and "), most.shown)
        });
        number.or_else(|| self.open.iter().find(|r| worst(r.colour)).map(|r| r.fact.to_owned()))
    }

    /// The verdict as a terminal shows it: the headline, the sentences below it, and what decides the colour.
    pub fn lines(&self) -> String {
        let decided = self.decided_by().map(|by| format!("What makes it {}: {by}.\n", self.colour.name()));
        format!("{}\n{}\n{}", self.headline, self.text(), decided.unwrap_or_default())
    }

    /// The verdict without emphasis.
    pub fn text(&self) -> String {
        self.sentences
            .iter()
            .map(|s| s.iter().map(|p| p.text.as_str()).collect::<String>())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A few words for a colour.
pub(crate) fn headline(colour: Colour) -> &'static str {
    match colour {
        Colour::Green => "Protected at this noise",
        Colour::Amber => "Not shown to be protected",
        Colour::Red => "Not protected",
    }
}
