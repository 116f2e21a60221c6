//! How often somebody who knows all else tells two values of an attribute apart: every attribute, and a secret label, by
//! exact refits. The colour of the page rests on it.
//!
//! A number is asked about at its 10% and 90% quantiles, rounded to a few digits, or at the values of `--tell`; a category at any
//! two of its levels. What would take too long is left out, by name, and then no page is green.

use super::measure::Measured;
use super::scaling::in_encoding;
use super::{AttributeSlot, Model, Pair, Request, no_columns, two_class};
use crate::failure::explain;
use crate::remarks::listed;
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::measure::ColumnDistributions;
use leakscope_core::num::Distribution;
use leakscope_core::pass::Runner;
use leakscope_core::rows::{Block, Rows};
use leakscope_core::tell::{Noise, Question, Telling, Told, two_values};
use leakscope_report::tell::{self as report, AmongAll, Tell};
use leakscope_table::{Attribute, Bounds, Dataset, Encoding, Kind, Labels, TargetCoding};
use std::borrow::Cow;
use std::collections::HashMap;

/// Attributes that are tried at most, those that η says are most exposed first.
const MOST_ATTRIBUTES: usize = 100;
/// Work of all questions together: rows × columns × candidates and their pairs.
const MOST_WORK: f64 = 1e9;
/// Work that no question can do without: the inverse of the Hessian, and a pass with it.
const MOST_SHARED_WORK: f64 = 4e10;
/// Rows above which the distances of all records are not kept in memory.
const MOST_ROWS: u64 = 4_000_000;
/// Work of the refits of one question, and how many records are refitted at most: at first, and where that leaves it open how
/// often the worst record is told apart.
const REFITS: [(f64, f64); 2] = [(2e8, 64.0), (2e9, 4096.0)];
/// A bound that is this close to what a refit shows leaves nothing open.
const OPEN: f64 = 0.01;
/// Distance of the 10% and the 90% quantile of a normal population, in its standard deviations.
const TYPICAL: f64 = 2.563_103_131_089_201;

/// A question with its words.
struct Asked {
    name: String,
    question: Question,
    /// The values, as they are written.
    values: Vec<String>,
    label: bool,
}

/// What is to be tried, most exposed first.
struct Subject<'a> {
    /// Absent for the label.
    attribute: Option<&'a Attribute>,
    name: &'a str,
    /// About how far apart two typical values are, in standard deviations of the noise.
    exposure: f64,
    candidates: usize,
    /// Whether its values were given.
    chosen: bool,
}

/// Tries two values of every attribute and of a secret label.
pub(super) fn tell(
    request: &Request,
    rows: &Dataset,
    model: &Model,
    slots: &[AttributeSlot],
    measured: &Measured,
    sigma: f64,
) -> Result<Tell> {
    let encoding = rows.encoding();
    let mut tell =
        Tell { attributes: vec![], left_out: vec![], left_out_because: None, protect_at: request.protect_at };
    let mut subjects = subjects(request, encoding, slots, measured);
    if encoding.pca.is_some() {
        // A value of a column is no value of a component.
        tell.left_out = subjects.iter().filter(|s| s.attribute.is_some()).map(|s| s.name.into()).collect();
        tell.left_out_because = Some("Values behind principal components cannot be put in place.".into());
        subjects.retain(|s| s.attribute.is_none());
    }
    let late = affordable(&subjects, (rows.len(), encoding.width()));
    if late < subjects.len() {
        tell.left_out.extend(subjects[late..].iter().map(|s| s.name.to_owned()));
        tell.left_out_because = Some(
            "That would take too long for all of them: those that η says are most exposed come first.".into(),
        );
        subjects.truncate(late);
    }
    let asked = questions(request, rows, &subjects)?;
    if asked.is_empty() {
        return Ok(tell);
    }
    // Distances are those of minimisers, also where the model was given.
    let fit = model.best.as_ref().unwrap_or(&model.fit);
    let (in_units, units) = in_encoding(request, encoding, fit)?;
    let noise = Noise::Isotropic(sigma);
    let explained = |e| explain(e, encoding, request.l2);
    let telling = Telling::new(rows, (&in_units, &units), (&noise, request.releases)).map_err(explained)?;
    let mut found = vec![];
    for asked in asked {
        let told = match ask(&telling, rows, &asked, request.releases) {
            Ok(told) => Some(told),
            // A candidate whose model cannot be fitted shows, for all that is known.
            Err(
                CoreError::Separable
                | CoreError::NoConvergence { .. }
                | CoreError::Singular { .. }
                | CoreError::OutOfRange { .. },
            ) => None,
            Err(e) => return Err(explained(e)),
        };
        found.push((asked, told));
    }
    let worst: Vec<u64> = found.iter().filter_map(|(_, t)| t.as_ref().map(|t| t.worst_row)).collect();
    let ids = ids(rows, &worst)?;
    tell.attributes = found.into_iter().map(|(asked, told)| described(asked, told.as_ref(), &ids)).collect();
    tell.attributes.sort_by(|a, b| b.worst.total_cmp(&a.worst));
    Ok(tell)
}

fn described(asked: Asked, told: Option<&Told>, ids: &HashMap<u64, String>) -> report::Told {
    let [from, to] = told.map_or([0, 1], |t| t.worst_pair);
    let levels = asked.values.len();
    report::Told {
        attribute: asked.name,
        from: asked.values[from].clone(),
        to: asked.values[to].clone(),
        worst: told.map_or(1.0, |t| t.worst.value),
        median: told.map_or(1.0, |t| t.median.value),
        worst_record: told.and_then(|t| ids.get(&t.worst_row).cloned()).unwrap_or_default(),
        among_all: (levels > 2)
            .then(|| AmongAll { levels, worst: told.map_or(1.0, |t| t.worst_among_all.value) }),
        label: asked.label,
    }
}

/// Everything that could be asked about, given values first, then by how exposed η says it is.
fn subjects<'a>(
    request: &Request,
    encoding: &'a Encoding,
    slots: &[AttributeSlot],
    measured: &Measured,
) -> Vec<Subject<'a>> {
    let chosen = |name: &str| request.tell.iter().any(|p| p.attribute == name);
    let mut all: Vec<Subject<'_>> = slots
        .iter()
        .map(|slot| {
            let a = &encoding.attributes[slot.attribute];
            let distance = match a.kind {
                Kind::Number => TYPICAL * a.population_sd / a.scale,
                Kind::Category => 1.0 / a.scale,
            };
            let eta = slot.exposure(|k| measured.attributes[k].max);
            let candidates = match a.kind {
                Kind::Number => 2,
                Kind::Category if chosen(&a.name) => 2,
                Kind::Category => a.levels.len(),
            };
            let (name, chosen) = (a.name.as_str(), chosen(&a.name));
            Subject { attribute: Some(a), name, exposure: distance * eta, candidates, chosen }
        })
        .collect();
    if request.label_secret {
        let distance = match &encoding.target.coding {
            TargetCoding::TwoClass { low, high } => high.code - low.code,
            TargetCoding::Number | TargetCoding::Count => {
                TYPICAL * super::assemble::target_spread(encoding).unwrap_or(1.0)
            }
        };
        let name = encoding.target.name.as_str();
        let exposure = distance * measured.label.max;
        all.push(Subject { attribute: None, name, exposure, candidates: 2, chosen: chosen(name) });
    }
    all.sort_by(|a, b| b.chosen.cmp(&a.chosen).then(b.exposure.total_cmp(&a.exposure)));
    all
}

/// How many of the subjects can be tried.
fn affordable(subjects: &[Subject<'_>], (n, p): (u64, usize)) -> usize {
    let (rows, p) = (n as f64, p as f64);
    if n > MOST_ROWS || 10.0 * p.powi(3) + rows * p * p > MOST_SHARED_WORK {
        return 0;
    }
    let mut work = 0.0;
    subjects
        .iter()
        .take(MOST_ATTRIBUTES)
        .take_while(|s| {
            let c = s.candidates as f64;
            work += rows * p * (c + 0.5 * c * (c - 1.0));
            work <= MOST_WORK
        })
        .count()
}

/// Asks with few refits, and with more where those left the answer open.
fn ask(
    telling: &Telling<'_, Dataset>,
    rows: &Dataset,
    asked: &Asked,
    releases: u32,
) -> leakscope_core::Result<Told> {
    let each = 12.0 * rows.len() as f64 * rows.width() as f64 * asked.values.len() as f64;
    let [few, many] = REFITS.map(|(work, most)| (work / each).clamp(4.0, most) as usize);
    let told = telling.ask(&asked.question, few)?;
    let open = told.worst.value - two_values(told.at_least, releases).value > OPEN;
    if open && many > few { telling.ask(&asked.question, many) } else { Ok(told) }
}

/// The questions about the subjects; one whose values are all the same has none.
fn questions(request: &Request, rows: &Dataset, subjects: &[Subject<'_>]) -> Result<Vec<Asked>> {
    let encoding = rows.encoding();
    let open = |s: &&Subject<'_>| !s.chosen && is_number(encoding, s);
    let columns: Vec<Option<usize>> =
        subjects.iter().filter(open).map(|s| s.attribute.map(|a| a.columns.start)).collect();
    let mut spreads = distributions(rows, &columns)?.into_iter();
    let mut all = vec![];
    for s in subjects {
        let spread = if open(&s) { spreads.next() } else { None };
        let pair = request.tell.iter().find(|p| p.attribute == s.name);
        let asked = match (s.attribute, pair) {
            (Some(a), _) if a.kind == Kind::Category => Some(about_levels(encoding, a, pair)?),
            (Some(a), Some(pair)) => Some(about_number(a, numbers(pair)?)),
            (None, Some(pair)) => Some(about_label(encoding, pair)?),
            (Some(a), None) => spread
                .and_then(|d| typical(&d, (a.centre, a.scale), a.bounds))
                .map(|values| about_number(a, values)),
            (None, None) => match &encoding.target.coding {
                TargetCoding::TwoClass { low, high } => {
                    let classes = [&low.name, &high.name].map(|n| n.clone());
                    Some(label(encoding, [low.code, high.code], classes))
                }
                TargetCoding::Number | TargetCoding::Count => spread
                    .and_then(|d| typical(&d, (0.0, 1.0), encoding.target.bounds))
                    .map(|values| label(encoding, values.each_ref().map(|v| v.0), values.map(|v| v.1))),
            },
        };
        all.extend(asked);
    }
    Ok(all)
}

fn is_number(encoding: &Encoding, subject: &Subject<'_>) -> bool {
    match subject.attribute {
        Some(a) => a.kind == Kind::Number,
        None => matches!(encoding.target.coding, TargetCoding::Number | TargetCoding::Count),
    }
}

fn about_number(a: &Attribute, values: [(f64, String); 2]) -> Asked {
    let coded = values.each_ref().map(|(v, _)| (v - a.centre) / a.scale);
    Asked {
        name: a.name.clone(),
        question: Question::Number { column: a.columns.start, values: coded },
        values: values.map(|(_, text)| text).into(),
        label: false,
    }
}

/// Any two levels, or the two that were given.
fn about_levels(encoding: &Encoding, a: &Attribute, pair: Option<&Pair>) -> Result<Asked> {
    let levels: Vec<usize> = match pair {
        None => (0..a.levels.len()).collect(),
        Some(pair) => {
            let place = |value: &String| a.levels.iter().position(|l| l == value);
            pair.values
                .iter()
                .map(|v| place(v).ok_or_else(|| unknown_level(pair, v, &a.levels)))
                .collect::<Result<_>>()?
        }
    };
    let kept = encoding.one_hot.kept(a.levels.len());
    let code =
        |level: usize| kept.clone().map(move |column| if column == level { 1.0 / a.scale } else { 0.0 });
    Ok(Asked {
        name: a.name.clone(),
        question: Question::Levels {
            columns: a.columns.clone(),
            encodings: levels.iter().flat_map(|&l| code(l)).collect(),
        },
        values: levels.iter().map(|&l| a.levels[l].clone()).collect(),
        label: false,
    })
}

fn about_label(encoding: &Encoding, pair: &Pair) -> Result<Asked> {
    match &encoding.target.coding {
        TargetCoding::TwoClass { low, high } => {
            let classes = [low.name.clone(), high.name.clone()];
            let code = |value: &String| {
                [low, high]
                    .iter()
                    .find(|c| c.name == *value)
                    .map(|c| c.code)
                    .ok_or_else(|| unknown_level(pair, value, &classes))
            };
            Ok(label(encoding, [code(&pair.values[0])?, code(&pair.values[1])?], pair.values.clone()))
        }
        TargetCoding::Number | TargetCoding::Count => {
            let values = numbers(pair)?;
            Ok(label(encoding, values.each_ref().map(|v| v.0), values.map(|v| v.1)))
        }
    }
}

fn label(encoding: &Encoding, values: [f64; 2], texts: [String; 2]) -> Asked {
    let (name, question) = (encoding.target.name.clone(), Question::Label { values });
    Asked { name, question, values: texts.into(), label: true }
}

/// The 10% and 90% quantiles in own units, or where those are equal ones further out; none of a constant.
fn typical(
    d: &Distribution,
    (centre, scale): (f64, f64),
    bounds: Option<Bounds>,
) -> Option<[(f64, String); 2]> {
    // Values that occur, not what lies between two of them: of a column of zeros and ones nobody asks about 0.3.
    let last = d.count().saturating_sub(1).max(1) as f64;
    let outward = |q: f64| if q < 0.5 { (q * last).floor() } else { (q * last).ceil() };
    let own = |q: f64| centre + scale * d.quantile(outward(q) / last);
    let apart = |[a, b]: &[f64; 2]| (b - a).abs() > 1e-9 * a.abs().max(b.abs());
    let ends =
        [[0.1, 0.9], [0.01, 0.99], [0.0, 1.0]].map(|shares| shares.map(own)).into_iter().find(apart)?;
    let step = (ends[1] - ends[0]).abs().log10().floor() as i32 - 2;
    Some(ends.map(|x| {
        let text = rounded(x, step);
        match (text.parse::<f64>(), bounds) {
            (Ok(v), Some(b)) if v < b.low() || v > b.high() => {
                let v = v.clamp(b.low(), b.high());
                (v, v.to_string())
            }
            (Ok(v), _) => (v, text),
            // What cannot be read back is taken as it is.
            (Err(_), _) => (x, x.to_string()),
        }
    }))
}

/// A number to the place `10^step`, without zeros at its end.
fn rounded(x: f64, step: i32) -> String {
    if step >= 0 || !(-12..=12).contains(&step) {
        let unit = 10_f64.powi(step);
        return format!("{}", (x / unit).round() * unit);
    }
    let text = format!("{x:.*}", step.unsigned_abs() as usize);
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// Distributions of encoded columns, `None` being the target.
fn distributions(rows: &Dataset, columns: &[Option<usize>]) -> Result<Vec<Distribution>> {
    if columns.is_empty() {
        return Ok(vec![]);
    }
    Ok(rows.run(&ColumnDistributions { columns: Cow::Borrowed(columns) })?.columns)
}

/// Ids of some rows.
fn ids(rows: &Dataset, chosen: &[u64]) -> Result<HashMap<u64, String>> {
    let mut all = HashMap::new();
    rows.fold_labelled(
        Vec::new,
        |found: &mut Vec<(u64, String)>, block: &Block, labels: &Labels| {
            let here = block.first_row..block.first_row + block.len() as u64;
            let mine = chosen.iter().filter(|row| here.contains(row));
            found.extend(mine.map(|&row| (row, labels.ids[(row - here.start) as usize].clone())));
            Ok(())
        },
        |found| {
            all.extend(found);
            Ok(())
        },
    )?;
    Ok(all)
}

/// The two numbers of a pair.
fn numbers(pair: &Pair) -> Result<[(f64, String); 2]> {
    let number = |text: &String| match text.parse::<f64>() {
        Ok(v) if v.is_finite() => Ok((v, text.clone())),
        Ok(_) | Err(_) => Err(wrong(pair, "is a number: expected two finite numbers, such as age=40,60")),
    };
    let [a, b] = &pair.values;
    Ok([number(a)?, number(b)?])
}

fn wrong(pair: &Pair, what: &str) -> Failure {
    let Pair { attribute, values: [a, b] } = pair;
    Failure::option("tell", format!("{attribute}={a},{b}: `{attribute}` {what}"))
}

fn unknown_level(pair: &Pair, value: &str, levels: &[String]) -> Failure {
    let known = listed(levels);
    wrong(pair, &format!("has no level `{value}`; its levels are {known}"))
}

/// Checks what was given against the table.
pub(super) fn check(request: &Request, encoding: &Encoding) -> Result<()> {
    for (k, pair) in request.tell.iter().enumerate() {
        let name = &pair.attribute;
        if request.tell[..k].iter().any(|p| p.attribute == *name) {
            return Err(wrong(pair, "is given twice: give two values of it once"));
        }
        let attribute = encoding.attributes.iter().find(|a| a.name == *name);
        if attribute.is_some_and(|a| a.columns.is_empty()) {
            return Err(Failure::option("tell", no_columns(name)));
        }
        let bounds = match attribute {
            Some(a) if a.kind == Kind::Category => {
                about_levels(encoding, a, Some(pair))?;
                None
            }
            Some(a) => a.bounds,
            None if *name == encoding.target.name && !request.label_secret => {
                return Err(wrong(pair, "is the target, which ⟨label=public⟩ takes as known"));
            }
            None if *name == encoding.target.name => {
                about_label(encoding, pair)?;
                encoding.target.bounds
            }
            None => {
                let names: Vec<String> = encoding.attributes.iter().map(|a| a.name.clone()).collect();
                let known = listed(&names);
                return Err(wrong(pair, &format!("is not an attribute of this model; they are {known}")));
            }
        };
        let is_number = match attribute {
            Some(a) => a.kind == Kind::Number,
            None => !two_class(encoding),
        };
        let same = if is_number {
            let [a, b] = numbers(pair)?;
            let outside = |l: &Bounds| [a.0, b.0].iter().any(|v| *v < l.low() || *v > l.high());
            if let Some(bounds) = bounds.filter(outside) {
                let (low, high) = (bounds.low(), bounds.high());
                return Err(wrong(pair, &format!("lies between {low} and {high} by its bounds")));
            }
            let is_count = attribute.is_none() && matches!(encoding.target.coding, TargetCoding::Count);
            if is_count && a.0.min(b.0) < 0.0 {
                return Err(wrong(pair, "is a count: expected numbers that are not negative"));
            }
            a.0 == b.0
        } else {
            pair.values[0] == pair.values[1]
        };
        if same {
            return Err(wrong(pair, "needs two different values"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_a_hundredth_of_their_distance_and_say_what_is_asked() {
        let d = |values: &[f64]| {
            let mut d = Distribution::default();
            d.extend(values);
            d
        };
        let shown = |d: &Distribution, unit, bounds| {
            typical(d, unit, bounds).map(|pair| {
                pair.map(|(value, text)| {
                    assert_eq!(text.parse::<f64>().unwrap(), value);
                    text
                })
            })
        };
        let ages = d(&(0..1001).map(|k| 20.0 + 60.0 * f64::from(k) / 1000.0).collect::<Vec<_>>());
        assert_eq!(shown(&ages, (0.0, 1.0), None), Some(["26".into(), "74".into()]));
        // Encoded values become own ones.
        let [a, b] = shown(&ages, (1e6, 1e4), None).unwrap();
        assert_eq!((a.as_str(), b.as_str()), ("1260000", "1740000"));
        let [a, b] = shown(&ages, (0.0, 1e-6), None).unwrap();
        assert_eq!((a.as_str(), b.as_str()), ("0.000026", "0.000074"));
        let bounds = Bounds::new("age", 30.0, 70.0).unwrap();
        assert_eq!(shown(&ages, (0.0, 1.0), Some(bounds)), Some(["30".into(), "70".into()]));
        // Mostly zeros: what is further out, and a constant has no two values.
        let mut rare = vec![0.0; 990];
        rare.extend([5.0; 10]);
        assert_eq!(shown(&d(&rare), (0.0, 1.0), None), Some(["0".into(), "5".into()]));
        assert_eq!(shown(&d(&[7.0; 50]), (0.0, 1.0), None), None);
    }
}
