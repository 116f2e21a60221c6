//! The questions: which two values of an attribute, or of the label, are put in place.

use super::Subject;
use crate::model::class_names;
use crate::remarks::listed;
use crate::request::{Pair, Request};
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_core::measure::ColumnDistributions;
use leakscope_core::num::Distribution;
use leakscope_core::pass::Runner;
use leakscope_core::tell::Question;
use leakscope_table::{Attribute, Bounds, Class, Dataset, Encoding, Kind, TargetCoding};
use std::borrow::Cow;

/// A question with its words.
pub(crate) struct Inquiry {
    pub(crate) name: String,
    pub(super) question: Question,
    /// The values, as they are written.
    pub(crate) values: Vec<String>,
    pub(crate) label: bool,
    /// Whether the value that each record has is one more, after them.
    pub(super) own: bool,
}

impl Inquiry {
    /// What the answer is about, in words: the same where the same was asked. One entry a level; two for a number, of which no
    /// more than two values are told apart at a time.
    pub(crate) fn identity(&self) -> Vec<String> {
        match self.values.as_slice() {
            [first, second, others @ ..] if self.own => {
                let more: String = others.iter().map(|value| format!("{value}, ")).collect();
                vec![first.clone(), format!("{second}; {more}a record's own")]
            }
            values => values.to_vec(),
        }
    }

    /// How many values are to be named at once, where that is a question: levels of a category, classes.
    pub(super) fn levels(&self) -> usize {
        if self.own { 2 } else { self.values.len() }
    }
}

/// The questions about the subjects; one whose values are all the same has none.
pub(super) fn questions(request: &Request, rows: &Dataset, subjects: &[Subject<'_>]) -> Result<Vec<Inquiry>> {
    let encoding = rows.encoding();
    let open = |s: &&Subject<'_>| !s.chosen && is_number(encoding, s);
    let columns: Vec<Option<usize>> =
        subjects.iter().filter(open).map(|s| s.attribute.map(|a| a.columns.start)).collect();
    let mut spreads = distributions(rows, &columns)?.into_iter();
    let mut all = vec![];
    for s in subjects {
        let spread = if open(&s) { spreads.next() } else { None };
        let pair = request.tell.iter().find(|p| p.attribute == s.name);
        let inquiry = match (s.attribute, pair) {
            (Some(a), _) if a.kind == Kind::Category => Some(about_levels(encoding, a, pair)?),
            (Some(a), Some(pair)) => Some(about_number(a, numbers(pair, Some(a))?)),
            (None, Some(pair)) => Some(about_label(encoding, pair)?),
            (Some(a), None) => spread.and_then(|d| {
                let values = typical(&d, (a.centre, a.scale), a.bounds)?;
                let others = values.iter().map(|(v, _)| (v - a.centre) / a.scale).collect();
                let question = Question::Own { column: Some(a.columns.start), others };
                let values = values.into_iter().map(|(v, text)| a.date_text(v).unwrap_or(text)).collect();
                Some(Inquiry { name: a.name.clone(), question, values, label: false, own: true })
            }),
            (None, None) => match &encoding.target.coding {
                TargetCoding::TwoClass { low, high } => {
                    let classes = [&low.name, &high.name].map(|n| n.clone());
                    Some(label(encoding, [low.code, high.code], classes))
                }
                TargetCoding::Classes(classes) => {
                    Some(about_classes(encoding, classes, (0..classes.len()).collect()))
                }
                TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => spread.and_then(|d| {
                    let values = typical(&d, (0.0, 1.0), encoding.target.bounds)?;
                    let others = values.iter().map(|(v, _)| *v).collect();
                    let question = Question::Own { column: None, others };
                    let values = values.into_iter().map(|(_, text)| text).collect();
                    Some(Inquiry {
                        name: encoding.target.name.clone(),
                        question,
                        values,
                        label: true,
                        own: true,
                    })
                }),
            },
        };
        all.extend(inquiry);
    }
    Ok(all)
}

fn is_number(encoding: &Encoding, subject: &Subject<'_>) -> bool {
    match subject.attribute {
        Some(a) => a.kind == Kind::Number,
        None => matches!(
            encoding.target.coding,
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive
        ),
    }
}

fn about_number(a: &Attribute, values: [(f64, String); 2]) -> Inquiry {
    let coded = values.each_ref().map(|(v, _)| (v - a.centre) / a.scale);
    Inquiry {
        name: a.name.clone(),
        question: Question::Number { column: a.columns.start, values: coded },
        values: values.map(|(_, text)| text).into(),
        label: false,
        own: false,
    }
}

/// Any two levels, or the two that were given.
fn about_levels(encoding: &Encoding, a: &Attribute, pair: Option<&Pair>) -> Result<Inquiry> {
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
    let kept = encoding.one_hot.places(a.levels.len());
    let code =
        |level: usize| kept.clone().map(move |column| if column == level { 1.0 / a.scale } else { 0.0 });
    Ok(Inquiry {
        name: a.name.clone(),
        question: Question::Levels {
            columns: a.columns.clone(),
            encodings: levels.iter().flat_map(|&l| code(l)).collect(),
        },
        values: levels.iter().map(|&l| a.levels[l].clone()).collect(),
        label: false,
        own: false,
    })
}

fn about_label(encoding: &Encoding, pair: &Pair) -> Result<Inquiry> {
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
        TargetCoding::Classes(classes) => {
            let names: Vec<String> = classes.iter().map(|c| c.name.clone()).collect();
            let place = |value: &String| {
                names.iter().position(|n| n == value).ok_or_else(|| unknown_level(pair, value, &names))
            };
            Ok(about_classes(encoding, classes, vec![place(&pair.values[0])?, place(&pair.values[1])?]))
        }
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
            let values = numbers(pair, None)?;
            Ok(label(encoding, values.each_ref().map(|v| v.0), values.map(|v| v.1)))
        }
    }
}

/// Any two of some classes.
fn about_classes(encoding: &Encoding, classes: &[Class], codes: Vec<usize>) -> Inquiry {
    let values = codes.iter().map(|&c| classes[c].name.clone()).collect();
    let (name, question) = (encoding.target.name.clone(), Question::Classes { codes });
    Inquiry { name, question, values, label: true, own: false }
}

fn label(encoding: &Encoding, values: [f64; 2], texts: [String; 2]) -> Inquiry {
    let (name, question) = (encoding.target.name.clone(), Question::Label { values });
    Inquiry { name, question, values: texts.into(), label: true, own: false }
}

/// A value with how it is written.
type Written = (f64, String);

/// The 10% and 90% quantiles in own units, or where those are equal ones further out, then the quartiles and the median where they are
/// others; none of a constant.
fn typical(d: &Distribution, (centre, scale): (f64, f64), bounds: Option<Bounds>) -> Option<Vec<Written>> {
    // Values that occur, not what lies between two of them: of a column of zeros and ones nobody asks about 0.3.
    let last = d.count().saturating_sub(1).max(1) as f64;
    let outward = |q: f64| if q < 0.5 { (q * last).floor() } else { (q * last).ceil() };
    let own = |q: f64| centre + scale * d.quantile(outward(q) / last);
    let apart = |[a, b]: &[f64; 2]| (b - a).abs() > 1e-9 * a.abs().max(b.abs());
    let ends =
        [[0.1, 0.9], [0.01, 0.99], [0.0, 1.0]].map(|shares| shares.map(own)).into_iter().find(apart)?;
    let step = (ends[1] - ends[0]).abs().log10().floor() as i32 - 2;
    let written = |x: f64| {
        let text = rounded(x, step);
        match (text.parse::<f64>(), bounds) {
            (Ok(v), Some(b)) if v < b.low() || v > b.high() => {
                let v = v.clamp(b.low(), b.high());
                (v, numeral(v))
            }
            (Ok(v), _) => (v, text),
            // What cannot be read back is taken as it is.
            (Err(_), _) => (x, numeral(x)),
        }
    };
    let inner = [0.25, 0.5, 0.75].map(|q: f64| centre + scale * d.quantile((q * last).round() / last));
    let mut values: Vec<Written> = vec![];
    for (value, text) in ends.into_iter().chain(inner).map(written) {
        if values.iter().all(|(v, _)| *v != value) {
            values.push((value, text));
        }
    }
    (values.len() > 1).then_some(values)
}

/// A number to the place `10^step`, without zeros at its end.
fn rounded(x: f64, step: i32) -> String {
    if step >= 0 || !(-12..=12).contains(&step) {
        let unit = 10_f64.powi(step);
        return numeral((x / unit).round() * unit);
    }
    let text = format!("{x:.*}", step.unsigned_abs() as usize);
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// A number to the place that three digits of the range of all of them leave; `None` where it would read as one of the others, or they
/// are no numbers.
pub(super) fn beside(value: f64, others: &[String]) -> Option<String> {
    let others: Vec<f64> = others.iter().map(|text| text.parse().ok()).collect::<Option<_>>()?;
    let (low, high) = others.iter().fold((value, value), |(low, high), v| (low.min(*v), high.max(*v)));
    let step = (high - low).log10().floor();
    let text = rounded(value, if step.is_finite() { step as i32 - 2 } else { return None });
    text.parse::<f64>().is_ok_and(|read| !others.contains(&read)).then_some(text)
}

/// Distributions of encoded columns, `None` being the target.
fn distributions(rows: &Dataset, columns: &[Option<usize>]) -> Result<Vec<Distribution>> {
    if columns.is_empty() {
        return Ok(vec![]);
    }
    Ok(rows.run(&ColumnDistributions { columns: Cow::Borrowed(columns) })?.columns)
}

/// The two numbers of a pair: of an attribute, or of the label.
fn numbers(pair: &Pair, attribute: Option<&Attribute>) -> Result<[(f64, String); 2]> {
    let is_date = attribute.is_some_and(Attribute::is_date);
    let number = |text: &String| {
        let value = match attribute {
            Some(a) => a.value_of(text),
            None => text.parse::<f64>().ok().filter(|v| v.is_finite()),
        };
        match (value, is_date) {
            (Some(v), _) => Ok((v, attribute.and_then(|a| a.date_text(v)).unwrap_or_else(|| text.clone()))),
            (None, true) => {
                Err(wrong(pair, "holds dates: expected two of them, such as 2020-01-31,2024-12-31"))
            }
            (None, false) => Err(wrong(pair, "is a number: expected two finite numbers, such as age=40,60")),
        }
    };
    let [a, b] = &pair.values;
    Ok([number(a)?, number(b)?])
}

fn wrong(pair: &Pair, problem: &str) -> Failure {
    let Pair { attribute, values: [a, b] } = pair;
    Failure::option("tell", format!("{attribute}={a},{b}: `{attribute}` {problem}"))
}

fn unknown_level(pair: &Pair, value: &str, levels: &[String]) -> Failure {
    let known = listed(levels);
    wrong(pair, &format!("has no level `{value}`; its levels are {known}"))
}

/// Why nothing is asked of an attribute without columns.
pub(crate) fn no_columns(attribute: &str) -> String {
    format!("`{attribute}` has one level only, so it has no encoded column to estimate")
}

/// Checks what was given against the table.
pub(crate) fn check(request: &Request, encoding: &Encoding) -> Result<()> {
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
            None => class_names(encoding).is_none(),
        };
        let same = if is_number {
            let [a, b] = numbers(pair, attribute)?;
            let outside = |l: &Bounds| [a.0, b.0].iter().any(|v| *v < l.low() || *v > l.high());
            if let Some(bounds) = bounds.filter(outside) {
                let (low, high) = (bounds.low(), bounds.high());
                return Err(wrong(
                    pair,
                    &format!("lies between {} and {} by its bounds", numeral(low), numeral(high)),
                ));
            }
            let is_count = attribute.is_none() && matches!(encoding.target.coding, TargetCoding::Count);
            if is_count && a.0.min(b.0) < 0.0 {
                return Err(wrong(pair, "is a count: expected numbers that are not negative"));
            }
            let is_positive = attribute.is_none() && matches!(encoding.target.coding, TargetCoding::Positive);
            if is_positive && a.0.min(b.0) <= 0.0 {
                return Err(wrong(pair, "is a positive number: expected two of them"));
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
            typical(d, unit, bounds).map(|values| {
                let text = |(value, text): (f64, String)| {
                    assert_eq!(text.parse::<f64>().unwrap(), value);
                    text
                };
                values.into_iter().map(text).collect::<Vec<_>>().join(" ")
            })
        };
        let ages = d(&(0..1001).map(|k| 20.0 + 60.0 * f64::from(k) / 1000.0).collect::<Vec<_>>());
        assert_eq!(shown(&ages, (0.0, 1.0), None), Some("26 74 35 50 65".into()));
        // Encoded values become own ones.
        let large = shown(&ages, (1e6, 1e4), None).unwrap();
        assert_eq!(large, "1260000 1740000 1350000 1500000 1650000");
        let small = shown(&ages, (0.0, 1e-6), None).unwrap();
        assert_eq!(small, "0.000026 0.000074 0.000035 0.00005 0.000065");
        let bounds = Bounds::new("age", 30.0, 70.0).unwrap();
        assert_eq!(shown(&ages, (0.0, 1.0), Some(bounds)), Some("30 70 35 50 65".into()));
        // Mostly zeros: what is further out, and a constant has no two values.
        let mut rare = vec![0.0; 990];
        rare.extend([5.0; 10]);
        assert_eq!(shown(&d(&rare), (0.0, 1.0), None), Some("0 5".into()));
        assert_eq!(shown(&d(&[7.0; 50]), (0.0, 1.0), None), None);
    }
}
