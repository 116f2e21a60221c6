//! Which two values of an attribute, or of a secret label, somebody tells apart: the questions, and their answers by exact
//! refits. An audit asks in the units of its encoding, a release in those that it publishes.
//!
//! A number is asked about at any two of its 10%, 25%, 50%, 75% and 90% quantiles, rounded to a few digits, and of the value that a
//! record has, since a value far out is told apart where typical ones are not, and models need not move one way as a value grows; or
//! at the values of `--tell`. A category is asked about at any two of its levels. What would take too long is left out, by name, and then no page is green.

mod budget;
mod meter;
mod questions;

pub(crate) use questions::{Inquiry, check, no_columns};

use crate::Result;
use crate::failure::explain;
use crate::model::class_names;
use crate::request::{Request, TELL_BUDGET};
use budget::{Budget, Work};
use leakscope_core::Error as CoreError;
use leakscope_core::balance::Options;
use leakscope_core::error::numeral;
use leakscope_core::glm::{ModelKind, Penalty};
use leakscope_core::rows::{Block, Rows};
use leakscope_core::tell::{
    BalancedTelling, Certainty, Look, Noise, Question, Separation, SoftmaxTelling, Telling,
};
use leakscope_core::units::{FitInUnits, SoftmaxInUnits, Units};
use leakscope_report::tell::{self as report, Allowance, AmongAll, Shows, Tell};
use leakscope_table::{Attribute, Dataset, Encoding, Kind, Labels, Stage, TargetCoding};
use meter::Meter;
use questions::questions;
use std::collections::HashMap;

/// Records times questions that are looked at in one pass: about a hundred bytes each.
const MOST_LOOKED_AT: u64 = 1_000_000;
/// Values of a number that are put in place at most.
const QUANTILES: usize = 5;
/// Distance of the 10% and the 90% quantile of a normal population, in its standard deviations.
pub(crate) const TYPICAL: f64 = 2.563_103_131_089_201;

/// A question with its answer.
pub(crate) struct Answer {
    pub(crate) inquiry: Inquiry,
    /// The answer, without the distances of single records.
    told: Separation,
    /// The largest distance of the two values over records, in standard deviations of the noise.
    pub(crate) distance: f64,
    /// Where the refits that were allowed did not settle that: it is at least this.
    pub(crate) at_least: Option<f64>,
}

impl Answer {
    /// The distances of single records are not kept: with many questions they would be as large as the table.
    fn new(inquiry: Inquiry, told: Separation, releases: u32) -> Self {
        let distance = told.delta.iter().copied().fold(0.0, f64::max);
        let at_least = told.is_open(releases).then_some(told.at_least);
        let told = Separation { delta: vec![], ..told };
        Self { inquiry, told, distance, at_least }
    }
}

/// What is to be tried, most exposed first.
pub(crate) struct Subject<'a> {
    /// Absent for the label.
    pub(crate) attribute: Option<&'a Attribute>,
    pub(crate) name: &'a str,
    /// About how far apart two typical values are, in standard deviations of the noise.
    pub(crate) exposure: f64,
    pub(crate) candidates: usize,
    /// Whether its values were given.
    pub(crate) chosen: bool,
}

/// A model in the units in which it is noisy, with its rows in them.
pub(crate) struct Model<'a> {
    pub(crate) rows: &'a dyn Rows,
    pub(crate) fit: (&'a FitInUnits, &'a Units),
    pub(crate) noise: &'a Noise,
}

impl Subject<'_> {
    /// Whether two of its values can be put in place at all.
    fn is_label(&self) -> bool {
        self.attribute.is_none()
    }
}

/// How many values of an attribute are put in place.
pub(crate) fn candidates(a: &Attribute, chosen: bool) -> usize {
    match a.kind {
        Kind::Number | Kind::Category if chosen => 2,
        // Quantiles; a record's own value is there already.
        Kind::Number => QUANTILES,
        Kind::Category => a.levels.len(),
    }
}

/// The same of the label.
pub(crate) fn label_candidates(coding: &TargetCoding, chosen: bool) -> usize {
    match coding {
        TargetCoding::Classes(classes) if !chosen => classes.len(),
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive if !chosen => QUANTILES,
        TargetCoding::Classes(_)
        | TargetCoding::TwoClass { .. }
        | TargetCoding::Number
        | TargetCoding::Count
        | TargetCoding::Positive => 2,
    }
}

/// Tries two values of every subject that there is time for; the answers, and a table of what was not tried. `rank` puts the most
/// exposed first, where there is no time for all.
pub(crate) fn tried<'s>(
    request: &Request,
    rows: &Dataset,
    subjects: (Vec<Subject<'s>>, impl FnOnce(&mut Vec<Subject<'s>>) -> Result<()>),
    model: &Model<'_>,
) -> Result<(Vec<Answer>, Tell)> {
    let fit = &model.fit.0.fit;
    let p = fit.w.len() as f64;
    let refitted = (!fit.family.constant_curvature()).then_some(p);
    // A pair of levels differs in few columns of its attribute, which are looked for.
    let work = Work { look: p, pair: 10.0, pair_a_level: 1.0, coefficients: p, refitted };
    if !fit.family.self_concordant() {
        let left_out_because =
            "The curvature of this loss jumps, so that how far a refit is from exact is not known."
                .to_owned();
        let left_out = subjects.0.iter().map(|s| s.name.to_owned()).collect();
        let tell = Tell { left_out, left_out_because: Some(left_out_because), ..empty(request) };
        return Ok((vec![], tell));
    }
    tried_by(request, rows, subjects, &work, |inquiries| answered(request, rows, inquiries, model, &work))
}

/// A softmax model in the units in which it is noisy, with its rows in them.
pub(crate) struct ModelOfClasses<'a> {
    pub(crate) rows: &'a dyn Rows,
    pub(crate) fit: (&'a SoftmaxInUnits, &'a Units),
    pub(crate) noise: &'a Noise,
}

/// The same of a softmax model.
pub(crate) fn tried_softmax(
    request: &Request,
    rows: &Dataset,
    subjects: Vec<Subject<'_>>,
    of_classes: &ModelOfClasses<'_>,
) -> Result<(Vec<Answer>, Tell)> {
    let (model, units) = of_classes.fit;
    let encoding = rows.encoding();
    let explained = |e| explain(e, encoding, request.l2);
    let (k, q) = (model.fit.classes as f64 - 1.0, model.fit.coefficients() as f64);
    let budget = Budget::of(request);
    let work = Work { look: 4.0 * k * q, pair: q, pair_a_level: 0.0, coefficients: q, refitted: Some(q) };
    let answered = |inquiries: Vec<Inquiry>| {
        let release = (of_classes.noise, request.releases);
        let telling = SoftmaxTelling::new(of_classes.rows, (model, units), release).map_err(explained)?;
        let mut answers = vec![];
        let mut meter = Meter::new(budget, &work, rows, &inquiries);
        for inquiry in inquiries {
            let question = in_units(&inquiry.question, units);
            let refits = meter.refits(inquiry.values.len());
            let told = sharpened_by(refits, request.releases, |refits| telling.ask(&question, refits))
                .map_err(explained)?;
            meter.spend(inquiry.values.len(), told.refitted);
            answers.push(Answer::new(inquiry, told, request.releases));
            meter.answered = answers.len() as u64;
            meter.report(0.0);
        }
        Ok(answers)
    };
    tried_by(request, rows, (subjects, |_: &mut Vec<_>| Ok(())), &work, answered)
}

/// A model whose weights balance it: how it is made, its rows in the units in which it is fitted and noisy.
pub(crate) struct BalancedModel<'a> {
    pub(crate) rows: &'a dyn Rows,
    pub(crate) units: &'a Units,
    pub(crate) model: (ModelKind, Penalty),
    pub(crate) balancing: (&'a Options, usize),
    pub(crate) noise: &'a Noise,
}

/// The same of a balanced model, which is balanced and fitted again for every record and value.
pub(crate) fn tried_balanced<'s>(
    request: &Request,
    rows: &Dataset,
    subjects: (Vec<Subject<'s>>, impl FnOnce(&mut Vec<Subject<'s>>) -> Result<()>),
    balanced: &BalancedModel<'_>,
) -> Result<(Vec<Answer>, Tell)> {
    let encoding = rows.encoding();
    let explained = |e| explain(e, encoding, request.l2);
    let vectors = match &encoding.target.coding {
        TargetCoding::Classes(classes) => classes.len(),
        TargetCoding::TwoClass { .. }
        | TargetCoding::Number
        | TargetCoding::Count
        | TargetCoding::Positive => 1,
    };
    let (n, q) = (rows.len() as f64, (vectors * balanced.rows.width()) as f64);
    // A model takes about ten passes of q² multiplications a row, its losses included, on matrices too small to be fast.
    let a_model = 30.0 * (balanced.balancing.1 as f64 + 1.0) * n * q * q;
    let work = Work { look: a_model, pair: q, pair_a_level: 0.0, coefficients: q, refitted: None };
    let answered = |inquiries: Vec<Inquiry>| {
        let BalancedModel { rows: in_public_units, units, model, balancing, noise } = *balanced;
        let release = (noise, request.releases);
        let telling =
            BalancedTelling::new(in_public_units, model, balancing, units, release).map_err(explained)?;
        let (hooks, total) = (rows.hooks(), inquiries.len() as u64 * rows.len());
        hooks.report(Stage::Tell, 0, total);
        let mut answers: Vec<Answer> = vec![];
        for inquiry in inquiries {
            let before = answers.len() as u64 * rows.len();
            let told = telling
                .ask(&in_units(&inquiry.question, units), |record| {
                    hooks.report(Stage::Tell, before + record, total);
                    if hooks.interrupted() { Err(CoreError::Interrupted) } else { Ok(()) }
                })
                .map_err(explained)?;
            answers.push(Answer::new(inquiry, told, request.releases));
        }
        hooks.report(Stage::Tell, total, total);
        Ok(answers)
    };
    tried_by(request, rows, subjects, &work, answered)
}

/// Asks with few refits, and with more where those left the answer open.
fn sharpened_by(
    [few, many]: [usize; 2],
    releases: u32,
    ask: impl Fn(usize) -> leakscope_core::Result<Separation>,
) -> leakscope_core::Result<Separation> {
    let told = ask(few)?;
    if told.is_open(releases) && many > few { ask(many) } else { Ok(told) }
}

/// A table of answers without any.
fn empty(request: &Request) -> Tell {
    let budget = match request.tell_budget {
        None => Some(Allowance::All),
        Some(seconds) if seconds == TELL_BUDGET => None,
        Some(seconds) => Some(Allowance::Seconds(seconds)),
    };
    Tell {
        attributes: vec![],
        left_out: vec![],
        left_out_because: None,
        protect_at: request.protect_at,
        budget,
        more_work: None,
    }
}

/// Asks about every subject that there is time for.
fn tried_by<'s>(
    request: &Request,
    rows: &Dataset,
    (mut subjects, rank): (Vec<Subject<'s>>, impl FnOnce(&mut Vec<Subject<'s>>) -> Result<()>),
    work: &Work,
    answered: impl FnOnce(Vec<Inquiry>) -> Result<Vec<Answer>>,
) -> Result<(Vec<Answer>, Tell)> {
    let encoding = rows.encoding();
    let mut tell = empty(request);
    if encoding.pca.is_some() {
        // A value of a column is no value of a component.
        tell.left_out = subjects.iter().filter(|s| !s.is_label()).map(|s| s.name.into()).collect();
        tell.left_out_because = Some("Values behind principal components cannot be put in place.".into());
        subjects.retain(Subject::is_label);
    }
    let budget = Budget::of(request);
    let number = subjects.len();
    if budget.affordable(&mut subjects, rows.len(), work) < number {
        rank(&mut subjects)?;
    }
    let late = budget.affordable(&mut subjects, rows.len(), work);
    let all = work.all(&subjects, rows.len());
    if late < subjects.len() {
        tell.left_out.extend(subjects[late..].iter().map(|s| s.name.to_owned()));
        tell.more_work = Some(budget.next(all));
        tell.left_out_because = Some(format!(
            "That would take longer than was allowed: those that η says are most exposed come first, of those that there is time for; {} allows more.",
            tell.next_budget()
        ));
        subjects.truncate(late);
    }
    let inquiries = questions(request, rows, &subjects)?;
    // What has one value here has no two typical ones, and is no less exposed for that.
    let in_question =
        |s: &&Subject<'_>| !inquiries.iter().any(|a| a.name == s.name && a.label == s.is_label());
    let constant: Vec<String> = subjects.iter().filter(in_question).map(|s| s.name.to_owned()).collect();
    if !constant.is_empty() {
        tell.left_out.extend(constant);
        tell.left_out_because.get_or_insert_with(|| {
            "What has one value in all records has no two typical ones: say which two, by ⟨tell⟩.".into()
        });
    }
    if inquiries.is_empty() {
        return Ok((vec![], tell));
    }
    let answers = answered(inquiries)?;
    if answers.iter().any(|a| a.at_least.is_some()) {
        tell.more_work.get_or_insert(budget.next(0.0));
    }
    let worst: Vec<u64> = answers.iter().map(|a| a.told.worst_row).collect();
    let records = chosen_records(rows, &worst)?;
    tell.attributes = answers.iter().map(|a| described(a, encoding, &records, request.releases)).collect();
    tell.attributes.sort_by(|a, b| b.worst.total_cmp(&a.worst));
    Ok((answers, tell))
}

/// Asks all questions; those that share a pass over the rows together.
fn answered(
    request: &Request,
    rows: &Dataset,
    inquiries: Vec<Inquiry>,
    model: &Model<'_>,
    work: &Work,
) -> Result<Vec<Answer>> {
    let explained = |e| explain(e, rows.encoding(), request.l2);
    let telling = Telling::new(model.rows, model.fit, (model.noise, request.releases)).map_err(explained)?;
    let together = (MOST_LOOKED_AT / model.rows.len().max(1)).max(1) as usize;
    let mut meter = Meter::new(Budget::of(request), work, rows, &inquiries);
    let mut answers = Vec::with_capacity(inquiries.len());
    let mut left = inquiries.into_iter();
    loop {
        let part: Vec<Inquiry> = left.by_ref().take(together).collect();
        if part.is_empty() {
            return Ok(answers);
        }
        let questions: Vec<Question> = part.iter().map(|a| in_units(&a.question, model.fit.1)).collect();
        let looks = telling.look(&questions).map_err(explained)?;
        for (inquiry, look) in part.into_iter().zip(looks) {
            let told = sharpened(&telling, look, request.releases, &mut meter).map_err(explained)?;
            answers.push(Answer::new(inquiry, told, request.releases));
            meter.answered = answers.len() as u64;
            meter.report(0.0);
        }
    }
}

/// Refits few records, and more where those left the answer open.
fn sharpened(
    telling: &Telling<'_>,
    mut look: Look,
    releases: u32,
    meter: &mut Meter<'_>,
) -> leakscope_core::Result<Separation> {
    let candidates = look.candidates();
    let [few, many] = meter.refits(candidates);
    refined(telling, &mut look, (few, many), meter)?;
    let mut told = telling.answer(&look)?;
    if told.is_open(releases) && many > few {
        refined(telling, &mut look, (many, many), meter)?;
        told = telling.answer(&look)?;
    }
    meter.spend(candidates, told.refitted);
    Ok(told)
}

/// Records that are refitted between two looks at the clock: as many as share a pass.
const ROUND: usize = 32;
/// Values that are, at most.
const VALUES_OF_A_ROUND: usize = 128;

/// Refits up to `few` records, a few at a time, shows how far that is of `many`, and stops where that is wished.
fn refined(
    telling: &Telling<'_>,
    look: &mut Look,
    (few, many): (usize, usize),
    meter: &Meter<'_>,
) -> leakscope_core::Result<()> {
    let round = (VALUES_OF_A_ROUND / look.candidates().max(1)).clamp(1, ROUND);
    let mut before = None;
    while before != Some(look.refitted()) && look.refitted() < few {
        before = Some(look.refitted());
        if meter.rows.hooks().interrupted() {
            return Err(CoreError::Interrupted);
        }
        telling.refine(look, look.refitted().saturating_add(round).min(few))?;
        meter.report(look.refitted() as f64 / many.min(meter.rows.len() as usize).max(1) as f64);
    }
    // Where nothing is refitted, records are still looked at in full.
    if before.is_none() { telling.refine(look, few) } else { Ok(()) }
}

/// A question about encoded values in other units.
fn in_units(question: &Question, units: &Units) -> Question {
    let moved = |j: usize, x: f64| units.stretch(j) * x + units.offset(j);
    match question {
        Question::Number { column, values } => {
            Question::Number { column: *column, values: values.map(|x| moved(*column, x)) }
        }
        Question::Levels { columns, encodings } => Question::Levels {
            columns: columns.clone(),
            encodings: encodings
                .iter()
                .enumerate()
                .map(|(k, x)| moved(columns.start + k % columns.len().max(1), *x))
                .collect(),
        },
        Question::Own { column: Some(column), others } => Question::Own {
            column: Some(*column),
            others: others.iter().map(|x| moved(*column, *x)).collect(),
        },
        Question::Label { .. } | Question::Classes { .. } | Question::Own { column: None, .. } => {
            question.clone()
        }
    }
}

/// Standard deviation of a target that is a number, over the training rows.
pub(crate) fn target_spread(encoding: &Encoding) -> Option<f64> {
    let profile = encoding.profile.iter().find(|c| c.name == encoding.target.name)?;
    if class_names(encoding).is_some() { None } else { profile.sd }
}

/// A record: its id, its encoded columns, its target.
type Chosen = (String, Vec<f64>, f64);

/// The value that the worst record has, as it is written: a date, or a number to the place that the values beside it have.
fn own_value(inquiry: &Inquiry, encoding: &Encoding, (_, x, y): &Chosen) -> String {
    let attribute = encoding.attributes.iter().find(|a| a.name == inquiry.name && !inquiry.label);
    let value = attribute.map_or(*y, |a| a.centre + a.scale * x[a.columns.start]);
    if let Some(date) = attribute.and_then(|a| a.date_text(value)) {
        return date;
    }
    if let Some(short) = questions::beside(value, &inquiry.values) {
        return short;
    }
    // Encoding and back costs the last digits.
    format!("{value:.9e}").parse::<f64>().map_or_else(|_| numeral(value), numeral)
}

fn described(
    answer: &Answer,
    encoding: &Encoding,
    records: &HashMap<u64, Chosen>,
    releases: u32,
) -> report::ValuePair {
    let Answer { inquiry, told, distance, at_least } = answer;
    let levels = inquiry.levels();
    let record = records.get(&told.worst_row);
    let over_releases = |d: f64| Some(d * f64::from(releases).sqrt()).filter(|d| d.is_finite());
    // A record's own value, which comes after the others, is named first.
    let pair = match told.worst_pair {
        [other, own] if own == inquiry.values.len() => [own, other],
        pair => pair,
    };
    let [from, to] = pair.map(|k| match (inquiry.values.get(k), record) {
        (Some(value), _) => value.clone(),
        (None, Some(record)) => own_value(inquiry, encoding, record),
        (None, None) => String::new(),
    });
    report::ValuePair {
        attribute: inquiry.name.clone(),
        from,
        to,
        worst: told.worst.value,
        median: told.median.value,
        worst_record: record.map(|r| r.0.clone()).unwrap_or_default(),
        among_all: (levels > 2).then_some(AmongAll { levels, worst: told.worst_among_all.value }),
        label: inquiry.label,
        distance: over_releases(*distance),
        at_least: at_least.and_then(over_releases),
        shows: told.certain.map(|why| match why {
            Certainty::Units => Shows::Unit,
            Certainty::NoModel => Shows::NoModel,
        }),
        levels_shown: vec![],
        near: is_near(inquiry, encoding),
    }
}

/// Whether two numbers that were named are nearer to one another than records differ: that they are hardly told apart says nothing of
/// typical values.
fn is_near(inquiry: &Inquiry, encoding: &Encoding) -> bool {
    let (false, [from, to]) = (inquiry.own, inquiry.values.as_slice()) else { return false };
    let attribute = encoding.attributes.iter().find(|a| a.name == inquiry.name && !inquiry.label);
    let value = |text: &String| match attribute {
        Some(a) => a.value_of(text),
        None => text.parse::<f64>().ok(),
    };
    let spread = match attribute {
        Some(a) => (a.kind == Kind::Number).then_some(a.population_sd),
        None => target_spread(encoding),
    };
    match (value(from), value(to), spread) {
        (Some(a), Some(b), Some(spread)) => (a - b).abs() < spread,
        _ => false,
    }
}

/// Id of the first record for which something holds of its encoded columns and its target.
pub(crate) fn first_record(
    rows: &Dataset,
    holds: impl Fn(&[f64], f64) -> bool + Sync,
) -> Result<Option<String>> {
    let mut first = None;
    rows.fold_labelled(
        || None,
        |earliest: &mut Option<String>, block: &Block, labels: &Labels| {
            if earliest.is_none() {
                let at = (0..block.len()).find(|&i| holds(block.row(i), block.y[i]));
                *earliest = at.map(|i| labels.ids[i].clone());
            }
            Ok(())
        },
        |earliest| {
            first = first.take().or(earliest);
            Ok(())
        },
    )?;
    Ok(first)
}

/// For every column, and last for the target: where at most three values occur, one of them in one record alone, how many there
/// are and which record that is.
pub(crate) fn singular_values(rows: &Dataset) -> Result<Vec<Option<(usize, String)>>> {
    /// More values than this are no matter of one record.
    const FEW: usize = 3;
    /// Values with how often they occur and where first; nothing once there are too many.
    type ValueCounts = Option<Vec<(f64, u64, String)>>;
    let count = |seen: &mut ValueCounts, value: f64, times: u64, first: &str| {
        let Some(values) = seen else { return };
        match values.iter().position(|(v, ..)| *v == value) {
            Some(at) => values[at].1 += times,
            None if values.len() == FEW => *seen = None,
            None => values.push((value, times, first.to_owned())),
        }
    };
    let width = rows.as_rows().width();
    let mut all: Vec<ValueCounts> = vec![Some(vec![]); width + 1];
    rows.fold_labelled(
        || vec![Some(vec![]); width + 1],
        |seen: &mut Vec<ValueCounts>, block: &Block, labels: &Labels| {
            for i in 0..block.len() {
                let values = block.row(i).iter().chain([&block.y[i]]);
                seen.iter_mut().zip(values).for_each(|(seen, v)| count(seen, *v, 1, &labels.ids[i]));
            }
            Ok(())
        },
        |part| {
            for (all, part) in all.iter_mut().zip(part) {
                match part {
                    None => *all = None,
                    Some(values) => values.iter().for_each(|(v, n, first)| count(all, *v, *n, first)),
                }
            }
            Ok(())
        },
    )?;
    let alone = |seen: ValueCounts| {
        let values = seen?;
        let (_, _, record) = values.iter().find(|(_, n, _)| *n == 1)?;
        Some((values.len(), record.clone()))
    };
    Ok(all.into_iter().map(alone).collect())
}

/// Some rows by number.
fn chosen_records(rows: &Dataset, chosen: &[u64]) -> Result<HashMap<u64, Chosen>> {
    let mut all = HashMap::new();
    rows.fold_labelled(
        Vec::new,
        |picked: &mut Vec<(u64, Chosen)>, block: &Block, labels: &Labels| {
            let here = block.first_row..block.first_row + block.len() as u64;
            let mine = chosen.iter().filter(|row| here.contains(row));
            let at = |row: &u64| (row - here.start) as usize;
            let record = |i: usize| (labels.ids[i].clone(), block.row(i).to_vec(), block.y[i]);
            picked.extend(mine.map(|row| (*row, record(at(row)))));
            Ok(())
        },
        |picked| {
            all.extend(picked);
            Ok(())
        },
    )?;
    Ok(all)
}
