//! What the profile of a table tells that somebody should know: readings that may not be meant, and what they change.

use crate::batch::Reading;
use crate::column::Kind;
use crate::duplicates::EqualRows;
use crate::encoding::{Target, TargetCoding};
use crate::layout::Layout;
use crate::moments::Moments;
use crate::notation::{Decimal, Notation, Sample, Verdict, notation};
use crate::profile::{Column, Profile};
use crate::remark::Remark;
use std::collections::BTreeMap;

/// Whole numbers that a target may have before nobody takes them for classes.
const FEW_VALUES: usize = 10;
/// How often each must occur on average.
const REPEATED: u64 = 5;

/// One of the levels, where all of them are written as amounts, shares or dates: those of a text file would have been read so.
pub(super) fn written_as_numbers(column: &Column) -> Option<String> {
    let mut sample = Sample::default();
    column.levels.keys().enumerate().for_each(|(i, level)| sample.add(i as u64, level, Decimal::Point));
    match sample.verdict() {
        // Plain numbers are codes as often as not.
        Verdict::Numbers(Notation::Plain) | Verdict::Text { .. } | Verdict::Empty => None,
        Verdict::Numbers(_) => column.levels.keys().next().map(|level| level.to_string()),
    }
}

/// One of the texts of a column, where nearly all begin with a number and are none: amounts with a unit, limits of detection, dates
/// that are not read.
pub(super) fn numbers_in_texts(column: &Column) -> Option<String> {
    let begins = |level: &str| {
        let rest = level.trim_start_matches(|c: char| !c.is_alphanumeric());
        let letters = rest.chars().filter(|c| c.is_alphabetic()).count();
        rest.starts_with(|c: char| c.is_ascii_digit()) && letters <= LETTERS_OF_A_UNIT
    };
    let levels = column.levels.len();
    let count = column.levels.keys().filter(|level| begins(level)).count();
    // Fewer are as well bands of ages, or codes.
    let many = levels >= MANY_TEXTS && 10 * count >= 9 * levels;
    let is_number = |level: &str| notation(level, Decimal::Point).is_some();
    let odd = column.levels.keys().find(|level| begins(level) && !is_number(level));
    odd.filter(|_| many).map(|level| level.to_string())
}

/// More letters make an address of it (`1005 Fresno St.`).
const LETTERS_OF_A_UNIT: usize = 6;

/// Different texts from which on nobody would have listed them by hand.
const MANY_TEXTS: usize = 20;

/// An extreme that is written as markers of missing values are (−99, −999, 999, …) and lies far from the others.
fn marker(column: &Column) -> Option<f64> {
    let (mean, sd) = (column.numbers.mean(), column.numbers.sd());
    let nines =
        |x: f64, least: f64| (0..12).map(|k| 100.0 * 10f64.powi(k) - 1.0).any(|m| m >= least && x == m);
    let far = |x: f64, times: f64| (x - mean).abs() > times * sd;
    let Moments { min, max, .. } = column.numbers;
    match (nines(-min, 99.0) && far(min, 1.0), nines(max, 999.0) && far(max, 3.0)) {
        (true, _) => Some(min),
        (false, true) => Some(max),
        (false, false) => None,
    }
}

/// Two levels that differ in upper and lower case alone.
fn alike(column: &Column) -> Option<[String; 2]> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for level in column.levels.keys() {
        if let Some(other) = seen.insert(level.to_lowercase(), level) {
            return Some([other.to_owned(), level.to_string()]);
        }
    }
    None
}

/// What the profile tells about the table, beside what the columns told.
pub(super) fn remarks(layout: &Layout, profile: &Profile, target: &Target, weight_mean: f64) -> Vec<Remark> {
    let mut remarks = layout.remarks.clone();
    if let TargetCoding::TwoClass { low, high } = &target.coding
        && (target.kind, low.code) == (Kind::Category, -1.0)
    {
        let (low, high) = (low.name.clone(), high.name.clone());
        remarks.push(Remark::TwoClasses { column: target.name.clone(), low, high });
    }
    if let (TargetCoding::Number, Some(i)) = (&target.coding, layout.target) {
        let seen = &profile.columns[i].distinct;
        let whole = seen.values.iter().all(|(v, _)| v.fract() == 0.0);
        let repeated = profile.training >= REPEATED * seen.values.len() as u64;
        if whole && repeated && !seen.more && (2..=FEW_VALUES).contains(&seen.values.len()) {
            let (column, values) = (target.name.clone(), seen.values.len());
            remarks.push(Remark::FewValues { column, values });
        }
    }
    let texts = (0..layout.features)
        .filter(|&i| layout.wants[i].reading == Reading::Level && !layout.facts(i).declared);
    for i in texts {
        if let Some(cell) = written_as_numbers(&profile.columns[i]) {
            remarks.push(Remark::TextsLikeNumbers { column: layout.names[i].clone(), cell });
        } else if let Some(cell) = numbers_in_texts(&profile.columns[i]) {
            remarks.push(Remark::NumbersInTexts { column: layout.names[i].clone(), cell });
        }
        if let Some([one, other]) = alike(&profile.columns[i]) {
            remarks.push(Remark::Alike { column: layout.names[i].clone(), one, other });
        }
    }
    let numbers = (0..layout.features)
        .filter(|&i| layout.wants[i].reading == Reading::Number && layout.facts(i).bounds.is_none());
    for i in numbers {
        if let Some(value) = marker(&profile.columns[i]) {
            remarks.push(Remark::Marker { column: layout.names[i].clone(), value });
        }
    }
    if let (TargetCoding::Count, Some(i)) = (&target.coding, layout.target)
        && profile.columns[i].distinct.values.iter().any(|(v, _)| v.fract() != 0.0)
    {
        remarks.push(Remark::Fractions { column: target.name.clone() });
    }
    for (i, c) in profile.columns.iter().enumerate().filter(|(_, c)| c.outside > 0) {
        if let Some(bounds) = layout.facts(i).bounds {
            let (low, high) = (bounds.low(), bounds.high());
            remarks.push(Remark::Clipped { column: layout.names[i].clone(), count: c.outside, low, high });
        }
    }
    if let Some(w) = layout.weights
        && weight_mean != 1.0
    {
        remarks.push(Remark::Weights { column: layout.names[w].clone(), mean: weight_mean });
    }
    if let (Some(id), true) = (layout.id, profile.rows_of_one > 1) {
        remarks.push(Remark::Repeated { column: layout.names[id].clone(), most: profile.rows_of_one });
    }
    if let Some(EqualRows { copies, .. }) = profile.copies.filter(|e| e.copies > 0) {
        remarks.push(Remark::Duplicates { copies, rows: profile.training });
    }
    remarks
}
