//! How the target is coded, or why it cannot be.

use super::{NAMED, classes, kind, largest};
use crate::column::{Kind, Origin};
use crate::encoding::{Class, EncodeOptions, Target, TargetCoding, TargetKind};
use crate::error::TargetError;
use crate::layout::Layout;
use crate::profile::Column;
use crate::{Error, Result};

/// The target as its model takes it.
pub(super) fn target(layout: &Layout, i: usize, c: &Column, options: &EncodeOptions) -> Result<Target> {
    let (kind, facts) = (kind(layout, i), layout.facts(i));
    let column = || layout.names[i].clone();
    let (classes, more) = classes(kind, c);
    let codes = two_codes(kind, (&column(), &classes, more), options.target)?;
    let classes_alone = matches!(options.target, TargetKind::Classes { .. });
    if codes.is_none() && !classes_alone && !(c.numbers.mean().is_finite() && c.numbers.sd().is_finite()) {
        return Err(Error::TooLarge { column: column(), value: largest(c) });
    }
    if let Some(spread) = c.numbers.lost_spread().filter(|_| codes.is_none() && !classes_alone) {
        return Err(Error::TooSmall { column: column(), spread });
    }
    let coding = match (codes, options.target) {
        (Some(codes), _) => two_classes(&column(), classes, codes, options.positive.as_deref())?,
        (None, TargetKind::Count) => TargetCoding::Count,
        (None, TargetKind::Positive) => TargetCoding::Positive,
        (None, TargetKind::Classes { .. }) => {
            let coded = |(code, class)| Class { code: code as f64, ..class };
            TargetCoding::Classes(classes.into_iter().enumerate().map(coded).collect())
        }
        (None, TargetKind::Number { .. } | TargetKind::TwoClass01) => TargetCoding::Number,
    };
    if let (
        Some(value),
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive | TargetCoding::Classes(_),
    ) = (&options.positive, &coding)
    {
        return Err(TargetError::PositiveUnused { value: value.clone(), column: column() }.into());
    }
    let origin = match (&coding, &facts.levels) {
        (TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive, _) => Origin::Given,
        (TargetCoding::TwoClass { .. } | TargetCoding::Classes(_), Some(_)) => facts.levels_origin,
        (TargetCoding::TwoClass { .. } | TargetCoding::Classes(_), None) => Origin::ReadOffData,
    };
    let bounds = facts.bounds.filter(|_| kind == Kind::Number);
    Ok(Target { name: column(), kind, coding, bounds, clipped: facts.clip && bounds.is_some(), origin })
}

/// The codes of two classes, or none where the target is coded otherwise.
fn two_codes(
    kind: Kind,
    (column, classes, more): (&str, &[Class], bool),
    target: TargetKind,
) -> Result<Option<(f64, f64)>, TargetError> {
    let column = || column.to_owned();
    let names = || classes.iter().take(NAMED).map(|c| crate::words::truncated(&c.name)).collect::<Vec<_>>();
    let text = |expected| Err(TargetError::TextTarget { column: column(), values: names(), expected });
    let two = classes.len() == 2 && !more;
    let or_classes = |expected: &'static str| match two {
        true => "numbers: for two classes choose ⟨model=logistic⟩",
        false => expected,
    };
    match target {
        TargetKind::TwoClass01 if two => Ok(Some((0.0, 1.0))),
        TargetKind::TwoClass01 => Err(match classes {
            [only] => one_class(column(), only),
            _ => {
                let more = more || classes.len() > NAMED;
                TargetError::ManyClasses { column: column(), classes: names(), more }
            }
        }),
        TargetKind::Classes { most } => refuse_classes(&column(), classes, more, most).map(|()| None),
        TargetKind::Number { two_class_as_plus_minus_one: true } if two => Ok(Some((-1.0, 1.0))),
        TargetKind::Number { two_class_as_plus_minus_one } if kind == Kind::Category => match classes {
            [only] => Err(one_class(column(), only)),
            _ if two_class_as_plus_minus_one => {
                text("numbers or exactly two classes (⟨model=softmax⟩ takes more)")
            }
            _ => text(or_classes("numbers (⟨model=softmax⟩ takes classes)")),
        },
        TargetKind::Count if kind == Kind::Category => {
            text(or_classes("counts, numbers that are zero or more (⟨model=softmax⟩ takes classes)"))
        }
        TargetKind::Positive if kind == Kind::Category => {
            text(or_classes("numbers above zero (⟨model=softmax⟩ takes classes)"))
        }
        TargetKind::Number { .. } | TargetKind::Count | TargetKind::Positive => Ok(None),
    }
}

/// Two classes with their codes; the positive one, if it was named, is the higher.
fn two_classes(
    column: &str,
    mut classes: Vec<Class>,
    (low_code, high_code): (f64, f64),
    positive: Option<&str>,
) -> Result<TargetCoding, TargetError> {
    if let Some(positive) = positive {
        let same = |c: &Class| {
            let by_value = c.value.is_some_and(|v| positive.trim().parse() == Ok(v));
            c.name == positive.trim() || by_value
        };
        match classes.iter().position(same) {
            Some(0) => classes.swap(0, 1),
            Some(_) => {}
            None => {
                let (low, high) = (classes[0].name.clone(), classes[1].name.clone());
                return Err(TargetError::Positive {
                    value: positive.to_owned(),
                    column: column.to_owned(),
                    low,
                    high,
                });
            }
        }
    }
    let mut classes = classes.into_iter();
    match (classes.next(), classes.next()) {
        (Some(low), Some(high)) => Ok(TargetCoding::TwoClass {
            low: Class { code: low_code, ..low },
            high: Class { code: high_code, ..high },
        }),
        _ => unreachable!("there are two classes"),
    }
}

fn one_class(column: String, only: &Class) -> TargetError {
    TargetError::OneClass { column, class: only.name.clone() }
}

/// Classes that make no model of classes: one alone, more than are allowed, one with a single record.
fn refuse_classes(column: &str, classes: &[Class], more: bool, most: usize) -> Result<(), TargetError> {
    let column = || column.to_owned();
    if let [only] = classes {
        return Err(one_class(column(), only));
    }
    if more || classes.len() > most {
        let number = if more { format!("more than {}", classes.len()) } else { classes.len().to_string() };
        return Err(TargetError::TooManyClasses { column: column(), number, most });
    }
    match classes.iter().find(|c| c.count < 2) {
        Some(c) => Err(TargetError::RareClass { column: column(), class: c.name.clone(), count: c.count }),
        None => Ok(()),
    }
}
