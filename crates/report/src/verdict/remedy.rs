//! What would make a page calm: more noise where that helps, and what else does where none of any size would.

use super::audit::{
    capitalised, equal_rows, estimated_distance, is_approximate, is_near, is_seen_in_shape, is_settled,
    is_solved, label_distance, untried, worst,
};
use super::{Colour, Decision, Facts, Noise, Span, Success, more_noise, noise_to_hide, plain, strong};
use crate::document::audit::{Audit, ReadOff};
use crate::document::tell::{Shows, Tell, ValuePair};
use crate::format;
use crate::noise_words;
use crate::words;

/// What would make every number of an audit calm.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Remedy<'a> {
    /// Every number is.
    Calm,
    /// So many times the noise, and whether that is exact.
    Noise { times: f64, exact: bool },
    /// More work, before anything can be said about noise: values that are not shown to be told apart more often than the limit
    /// were not settled, or not tried for time.
    MoreWork,
    /// More noise, no less than so many times: how much suffices is not known.
    MoreNoise { at_least: f64 },
    /// No noise of any size: these show without any coefficient, or through there being a model at all.
    NoNoise(Vec<&'a ValuePair>),
}

/// How many times the noise a distance takes; at least so many where the probability alone is known.
struct Needed {
    proved: f64,
    other: f64,
    known: bool,
}

impl Needed {
    fn other(&mut self, times: Option<f64>) {
        match times {
            Some(times) => self.other = self.other.max(times),
            // So near certainty that a probability does not tell how far.
            None => self.known = false,
        }
    }
}

/// What would make every number of an audit calm.
pub(super) fn remedy<'a>(audit: &'a Audit, facts: &Facts) -> Remedy<'a> {
    let goal = facts.protect_at;
    let told = || audit.tell.iter().flat_map(|t| &t.attributes).filter(|t| worst(t) > goal);
    let shown: Vec<&ValuePair> = told().filter(|t| t.shows.is_some()).collect();
    if !shown.is_empty() {
        return Remedy::NoNoise(shown);
    }
    let mut needed = Needed { proved: 1.0, other: 1.0, known: true };
    let mut open = false;
    for told in told() {
        let levels = told.among_all.map_or(2, |all| all.levels);
        let hidden = |distance: f64| noise_to_hide(distance, levels, goal);
        match (is_settled(told, goal), told.distance) {
            (true, Some(distance)) => {
                needed.proved = needed.proved.max(hidden(distance).unwrap_or(1.0));
            }
            (true, None) => match more_noise(worst(told), goal) {
                Some(times) => needed.proved = needed.proved.max(times),
                None => needed.known = false,
            },
            // What is not excluded is no reason for noise: only what refits have shown is.
            (false, _) => {
                open = true;
                needed.proved = needed.proved.max(told.at_least.and_then(hidden).unwrap_or(1.0));
            }
        }
    }
    // What η estimates of values that there was no time for is known once they are put in place.
    let no_time = audit.tell.as_ref().is_some_and(|t| t.more_work.is_some() && !t.left_out.is_empty());
    for distance in estimated_distance(audit).into_iter().chain(label_distance(audit)) {
        match noise_to_hide(distance, 2, goal) {
            Some(times) if times <= 1.0 => {}
            Some(_) | None if no_time && audit.data.rows_of_one.is_none() => open = true,
            times => needed.other(times),
        }
    }
    let guessed = facts.bounded.into_iter().chain(facts.observed).map(Success::told_of_two);
    for p in guessed.filter(|p| *p > goal) {
        needed.other(more_noise(p, goal));
    }
    let Needed { proved, other, known } = needed;
    match known && !open {
        false if open && proved.max(other) <= 1.0 => Remedy::MoreWork,
        false => Remedy::MoreNoise { at_least: proved.max(other) },
        true if proved.max(other) > 1.0 => {
            let exact = proved >= other && audit.data.rows_of_one.is_none();
            Remedy::Noise { times: proved.max(other), exact }
        }
        true => Remedy::Calm,
    }
}

/// A green audit is about noise in the units of its encoding: the same σ is another noise elsewhere.
const IN_OTHER_UNITS: &str = "The model may be released with this noise, once; a release adds its own in public units, where the same \
                              protection takes another σ, and its page says which.";

/// What noise that was solved for leaves open.
const SOLVED: &str = "How much noise there is was solved for on these data: published with the model, it can tell values of a record \
                      apart by itself, which is not counted here. A ⟨sigma⟩ that is chosen without these data leaves that out.";

/// What to do.
pub(super) fn advice(audit: &Audit, facts: &Facts, decision: &Decision, remedy: &Remedy<'_>) -> Vec<Span> {
    match remedy {
        Remedy::Calm if decision.colour == Colour::Green => vec![plain(IN_OTHER_UNITS)],
        Remedy::Calm => vec![plain(left_open(audit, facts))],
        Remedy::Noise { times, exact } => with_noise(audit, facts, *times, *exact),
        Remedy::MoreWork => with_more_work(audit),
        Remedy::MoreNoise { at_least } => vec![plain(with_more_noise(audit, facts, *at_least))],
        Remedy::NoNoise(shown) => {
            let each: Vec<String> = shown.iter().take(3).map(|t| capitalised(&cause(t))).collect();
            let rest = match shown.len().saturating_sub(3) {
                0 => String::new(),
                more => format!(" The same holds for {}.", format::counted(more as u64, "other attribute")),
            };
            vec![
                strong("No noise of any size hides that"),
                plain(format!(": do not release it. {}.{rest}", each.join(". "))),
            ]
        }
    }
}

/// Why a calm page is not green.
fn left_open(audit: &Audit, facts: &Facts) -> String {
    let untried = untried(audit);
    match untried {
        _ if facts.noise == Noise::Unit => "Choose a noise (⟨sigma⟩), and look again.".into(),
        _ if facts.exact().is_none() => {
            "That rests on small changes alone: have two values of every attribute tried before release (⟨tell_budget=all⟩, or \
             the two that matter by ⟨tell⟩)."
                .into()
        }
        [one] => format!("{one} was not tried, so nothing is shown about it.{}", why_untried(audit)),
        [_, _, ..] => format!(
            "{} attributes were not tried, so nothing is shown about them.{}",
            format::count(untried.len() as u64),
            why_untried(audit)
        ),
        [] if is_near(audit) => {
            "The values that were named are nearer to one another than records differ, so nothing is shown about typical ones: name \
             others with ⟨tell⟩, or leave it out, and look again."
                .into()
        }
        [] if audit.data.rows_of_one.is_some() => {
            "What all rows of one person tell together was not tried: join them into one row, and look again."
                .into()
        }
        [] if equal_rows(audit).is_some() => {
            "Say whose they are by a column that names people (⟨id⟩), or leave copies out, and look again.".into()
        }
        [] if is_approximate(audit) => {
            "The given coefficients are not at the minimiser, so this is an approximation: fit the \
                                        model closer, and look again."
                .into()
        }
        [] if !audit.data.read_off.is_empty() => audit.data.read_off.iter().map(|r| moves_others(*r)).collect::<Vec<_>>().join(" "),
        [] if is_seen_in_shape(audit) => noise_words::open_question().into(),
        [] if is_solved(audit) => SOLVED.into(),
        [] => "Look at the numbers marked below before release.".into(),
    }
}

/// A part of the encoding that one record moves or decides, and what to do about it.
fn moves_others(part: ReadOff) -> &'static str {
    match part {
        ReadOff::LargestNorm => {
            "All records are divided by the largest norm of one, which is not counted: scale by public ⟨bounds⟩ with ⟨scale=bounds⟩."
        }
        ReadOff::Components => {
            "Principal components move with every record, which is not counted: take the columns themselves."
        }
        ReadOff::FilledIn => {
            "What fills gaps moves with every record, which is not counted: leave such rows out with ⟨missing=drop⟩, or fill them \
             in with values that are public."
        }
        ReadOff::Levels => {
            "One record decides which levels a category has, and the model shows which: list them with ⟨levels⟩ or a ⟨schema⟩ where \
             they are public, or merge rare ones with ⟨min_level_count⟩ (the warnings name the columns)."
        }
        ReadOff::Guesses => {
            "One record decides what a column is taken for, and the model shows which: say it with ⟨categorical⟩, ⟨bounds⟩ or a \
             ⟨schema⟩."
        }
        ReadOff::Scales => {
            "Columns are centred by their own means, which without an intercept move the model and are not counted: fit one, or scale \
             by public ⟨bounds⟩ with ⟨scale=bounds⟩."
        }
        ReadOff::Elsewhere => {
            "What was fitted or chosen on the records before the model was (scales, what fills gaps, components, a penalty) moves with \
             every record, which is not counted: take what is public instead."
        }
    }
}

/// Another split has other records in its model, and other answers: advice is about this one.
fn same_split(audit: &Audit) -> String {
    audit.seed.map(|seed| format!(" and ⟨seed={seed}⟩, for the same split")).unwrap_or_default()
}

/// What to run where work is what is missing.
fn with_more_work(audit: &Audit) -> Vec<Span> {
    let Some(tell) = &audit.tell else { return vec![] };
    let missing = match tell.left_out.is_empty() {
        true => "How much noise it takes, if any, is known once that is settled",
        false => "How much noise it takes, if any, is known once every attribute is tried and settled",
    };
    vec![
        plain(format!("{missing}: run it again with ")),
        strong(tell.next_budget()),
        plain(format!("{}, and with the same noise.", same_split(audit))),
    ]
}

/// Why attributes were not tried, and what to do about it.
fn why_untried(audit: &Audit) -> String {
    let because = audit.tell.as_ref().and_then(|t| t.left_out_because.as_deref());
    because.map(|why| format!(" {why}")).unwrap_or_default()
}

/// The noise that suffices.
fn with_noise(audit: &Audit, facts: &Facts, times: f64, exact: bool) -> Vec<Span> {
    let goal = facts.protect_at;
    // Rounded up to three digits: what is advised suffices.
    let sigma = format::typed_at_least(audit.sigma * times);
    let cost = audit.utility.as_ref().and_then(|u| words::cost_at(u, audit.sigma * times));
    // What was found with more work than is usual is found again with as much.
    let allowed = audit.tell.as_ref().and_then(|t| t.budget);
    let allowed = allowed.map(|b| format!(" and {}", b.option())).unwrap_or_default() + &same_split(audit);
    let amber = match (exact, audit.data.rows_of_one) {
        (false, Some(_)) => {
            " It is not green then: what all rows of one person tell together is only estimated."
        }
        (true | false, _) => "",
    };
    let about = if exact { "" } else { "about " };
    // Where every value can be read off, how often is no help: what the noise must grow by is.
    let far =
        if times > 10.0 { format!(" ({} times as much)", format::number(times)) } else { String::new() };
    if audit.noise.is_some() {
        return vec![
            strong(format!("Targets {} as strict", format::times(times))),
            plain(format!(
                " would bring that to {about}{}{}: run it again with them{allowed}.{amber}",
                format::share(goal),
                cost.unwrap_or_default()
            )),
        ];
    }
    vec![
        strong(format!("σ = {sigma}, now {}{far}", format::setting(audit.sigma))),
        plain(format!(
            ", would bring that to {about}{}{}: run it again with that{allowed}.{amber}",
            format::share(goal),
            cost.unwrap_or_default()
        )),
    ]
}

/// More noise, of which the amount is not known.
fn with_more_noise(audit: &Audit, facts: &Facts, at_least: f64) -> String {
    let least = match (at_least > 1.0, audit.noise.is_some()) {
        (false, _) => String::new(),
        (true, true) => format!(" Targets must be at least {} as strict.", format::times(at_least)),
        (true, false) => {
            format!(" It takes a σ of at least {}.", format::typed_at_least(audit.sigma * at_least))
        }
    };
    match facts.open.not_settled {
        true => format!(
            "More noise helps; how much suffices was not settled within the budget.{least} {} allows more work.",
            audit.tell.as_ref().map(Tell::next_budget).unwrap_or_default()
        ),
        false => format!(
            "More noise helps; how much cannot be told from a number this close to certainty.{least} Run it again with several \
             times as much."
        ),
    }
}

/// Why values are told for certain, whatever the noise, and what helps.
pub fn cause(pair: &ValuePair) -> String {
    let name = &pair.attribute;
    match pair.shows {
        Some(Shows::Unit) => format!(
            "the unit of {name} was read off the data, and with another value in record {} it would have been another: give its \
             ⟨bounds⟩ or a ⟨schema⟩ where they are public, or leave it out with ⟨drop⟩",
            pair.worst_record
        ),
        Some(Shows::Levels) if !pair.levels_shown.is_empty() => {
            let levels: Vec<String> = pair.levels_shown.iter().map(|l| format!("`{l}`")).collect();
            format!(
                "whether {name} lists {} hangs on one record with `{}`: give all its ⟨levels⟩ or a ⟨schema⟩ where they are public, or \
                 change ⟨min_level_count⟩ so that the list does not hang on one record",
                levels.join(", "),
                pair.from
            )
        }
        Some(Shows::Levels) => format!(
            "that {name} has the values it has hangs on record {}: give its ⟨bounds⟩, ⟨levels⟩ or a ⟨schema⟩ where they are public",
            pair.worst_record
        ),
        Some(Shows::NoModel) => format!(
            "with another value of {name} in record {} there would be no model: a stronger penalty (⟨l2⟩), or a rare level merged \
             into another, helps",
            pair.worst_record
        ),
        None => format!("{name} is told apart by its coefficients: more noise helps"),
    }
}
