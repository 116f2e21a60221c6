//! Dates of the Gregorian calendar as days since 1970-01-01, and back.

use serde::{Deserialize, Serialize};

/// Seconds of a day; leap seconds are not counted, as everywhere.
const DAY_SECONDS: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;

/// Days before each month of a year that is no leap year.
const BEFORE_MONTH: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days before the first of January of a year, counted from the first of January of year 1.
fn before_year(year: i64) -> i64 {
    let past = year - 1;
    365 * past + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)
}

/// Days before a month (1 to 12; 13 for the whole year).
fn before_month(year: i64, month: i64) -> i64 {
    BEFORE_MONTH[(month - 1) as usize] + i64::from(month > 2 && is_leap(year))
}

/// Days since 1970-01-01; `None` for a day that the calendar does not have.
pub(crate) fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let first = before_month(year, month);
    if day > before_month(year, month + 1) - first {
        return None;
    }
    Some(before_year(year) - before_year(1970) + first + day - 1)
}

/// Year, month and day of a day since 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let from_year_one = days + before_year(1970);
    // 400 years have 146,097 days: the estimate is off by one at most.
    let mut year = (from_year_one * 400).div_euclid(146_097) + 1;
    while before_year(year) > from_year_one {
        year -= 1;
    }
    while before_year(year + 1) <= from_year_one {
        year += 1;
    }
    let of_year = from_year_one - before_year(year);
    let month = (1..=12).rev().find(|m| before_month(year, *m) <= of_year).unwrap_or(1);
    (year, month, of_year - before_month(year, month) + 1)
}

/// Days since 1970-01-01 of a time in units of which a day has `per_day`: correctly rounded up to one sum.
pub(crate) fn days_of_units(units: i64, per_day: i64) -> f64 {
    units.div_euclid(per_day) as f64 + units.rem_euclid(per_day) as f64 / per_day as f64
}

/// A day, and the nanoseconds after its midnight, as ISO 8601 writes them.
pub(crate) fn iso(days: i64, nanos: i64) -> String {
    let (year, month, day) = civil(days);
    let date = format!("{year:04}-{month:02}-{day:02}");
    if nanos == 0 {
        return date;
    }
    let seconds = nanos / NANOS;
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match nanos % NANOS {
        0 => format!("{date}T{time}"),
        rest => format!("{date}T{time}.{}", format!("{rest:09}").trim_end_matches('0')),
    }
}

/// Days since 1970-01-01 as ISO 8601 writes them, to the second; `None` far from any calendar.
pub(crate) fn iso_of_days(days: f64) -> Option<String> {
    if days.is_nan() || days.abs() > 3.6e6 {
        return None;
    }
    let seconds = (days * DAY_SECONDS as f64).round() as i64;
    Some(iso_of_units(seconds, DAY_SECONDS))
}

/// A time in units of which a day has `per_day`, as ISO 8601 writes it.
pub(crate) fn iso_of_units(units: i64, per_day: i64) -> String {
    let of_unit = DAY_SECONDS * NANOS / per_day;
    iso(units.div_euclid(per_day), units.rem_euclid(per_day) * of_unit)
}

/// What stands first in a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DateOrder {
    /// `2024-02-29` (ISO 8601) or `2024/02/29`; also what leaves no doubt because the month has its English name: `29 Feb 2024`,
    /// `February 29, 2024`.
    YearFirst,
    /// `29.02.2024`, `29/2/2024`, `29-02-2024`.
    DayFirst,
    /// `02/29/2024`, `2-29-2024`.
    MonthFirst,
}

impl DateOrder {
    /// All of them, the one without doubt first.
    pub(crate) const ALL: [Self; 3] = [Self::YearFirst, Self::DayFirst, Self::MonthFirst];
}

/// A date in an order and what follows it, which is a time or nothing.
fn date(text: &str, order: DateOrder) -> Option<(i64, &str)> {
    if order == DateOrder::YearFirst {
        return year_first(text).or_else(|| named(text));
    }
    let separator = text.chars().find(|c| !c.is_ascii_digit())?;
    let mut fields = text.splitn(3, separator);
    let (first, second, rest) = (fields.next()?, fields.next()?, fields.next()?);
    let (year, time) = rest.split_at_checked(4)?;
    let short = |field: &str| (1..=2).contains(&field.len());
    if !(short(first) && short(second)) {
        return None;
    }
    let (day, month) = match (order, separator) {
        (DateOrder::DayFirst, '.' | '/' | '-') => (first, second),
        (DateOrder::MonthFirst, '/' | '-') => (second, first),
        (DateOrder::YearFirst | DateOrder::DayFirst | DateOrder::MonthFirst, _) => return None,
    };
    Some((days(digits(year)?, digits(month)?, digits(day)?)?, time))
}

/// `2024-02-29` or `2024/02/29`, and what follows it.
fn year_first(text: &str) -> Option<(i64, &str)> {
    let (date, time) = text.split_at_checked(10)?;
    let bytes = date.as_bytes();
    if !matches!(bytes[4], b'-' | b'/') || bytes[7] != bytes[4] {
        return None;
    }
    let field = |range| date.get(range).and_then(digits);
    Some((days(field(0..4)?, field(5..7)?, field(8..10)?)?, time))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// `29 Feb 2024`, `29-Feb-2024`, `Feb 29, 2024`, `29. February 2024`, and what follows it.
fn named(text: &str) -> Option<(i64, &str)> {
    let separates = |c: char| matches!(c, ' ' | '-' | ',' | '.');
    let (first, rest) = text.split_once(separates)?;
    let (second, rest) = rest.trim_start_matches(separates).split_once(separates)?;
    let (year, time) = rest.trim_start_matches(separates).split_at_checked(4)?;
    let (day, month) = match month(first) {
        Some(month) => (second, month),
        None => (first, month(second)?),
    };
    let day = digits(day).filter(|_| day.len() <= 2)?;
    Some((days(digits(year)?, month, day)?, time))
}

/// A month by its English name or the first three letters and more of it.
fn month(name: &str) -> Option<i64> {
    let begins = |month: &&str| month.get(..name.len()).is_some_and(|m| m.eq_ignore_ascii_case(name));
    MONTHS.iter().position(|month| name.len() >= 3 && begins(month)).map(|i| i as i64 + 1)
}

/// A date (ISO 8601 as `2024-02-29`, or another order) or time (`2024-02-29T12:30:00.5+01:00`, a blank for the T,
/// seconds and zone optional) as days since 1970-01-01; with a zone, in universal time.
pub(crate) fn parse(text: &str, order: DateOrder) -> Option<f64> {
    let (day, time) = date(text, order)?;
    if time.is_empty() {
        return Some(day as f64);
    }
    let time = time.strip_prefix(['T', 't', ' '])?;
    let (time, offset) = zone(time)?;
    let nanos = time_of_day(time)?;
    // A zone may move the time to the day before or after.
    let nanos = nanos - offset * 60 * NANOS;
    let per_day = DAY_SECONDS * NANOS;
    Some((day + nanos.div_euclid(per_day)) as f64 + nanos.rem_euclid(per_day) as f64 / per_day as f64)
}

/// Splits a zone (`Z`, `+01:00`, `-0530`, `+01`) off; its minutes east of Greenwich, 0 where there is none.
fn zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time.trim_end(), 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let sign = if time.as_bytes()[at] == b'-' { -1 } else { 1 };
    let shift = &time[at + 1..];
    let (hours, minutes) = match (shift.len(), shift.split_once(':')) {
        (5, Some((hours, minutes))) => (hours, minutes),
        (4, None) => shift.split_at_checked(2)?,
        (2, None) => (shift, "00"),
        _ => return None,
    };
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (hours <= 15 && minutes < 60).then_some((time[..at].trim_end(), sign * (60 * hours + minutes)))
}

/// Nanoseconds after midnight of `12:30`, `9:30`, `12:30:15`, `12:30:15.25` or `3:04 PM`.
fn time_of_day(time: &str) -> Option<i64> {
    let half = |name: &str| {
        let (time, end) = time.split_at_checked(time.len().checked_sub(2)?)?;
        end.eq_ignore_ascii_case(name).then(|| time.trim_end())
    };
    let (time, noon) = match (half("AM"), half("PM")) {
        (Some(time), _) => (time, Some(0)),
        (None, Some(time)) => (time, Some(12)),
        (None, None) => (time, None),
    };
    let mut parts = time.split(':');
    let hours = parts.next().filter(|h| h.len() <= 2).and_then(digits)?;
    let hours = match noon {
        None => hours,
        Some(noon) if (1..=12).contains(&hours) => hours % 12 + noon,
        Some(_) => return None,
    };
    let minutes = two(parts.next()?)?;
    let (seconds, nanos) = match parts.next() {
        None => (0, 0),
        Some(text) => match text.split_once('.') {
            None => (two(text)?, 0),
            Some((seconds, fraction)) if (1..=9).contains(&fraction.len()) => {
                (two(seconds)?, digits(fraction)? * 10_i64.pow(9 - fraction.len() as u32))
            }
            Some(_) => return None,
        },
    };
    let inside = parts.next().is_none() && hours < 24 && minutes < 60 && seconds < 60;
    inside.then_some((hours * 3600 + minutes * 60 + seconds) * NANOS + nanos)
}

fn two(text: &str) -> Option<i64> {
    if text.len() == 2 { digits(text) } else { None }
}

/// A number of digits alone: no sign, no blank.
fn digits(text: &str) -> Option<i64> {
    let all = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Oracle: a calendar that is turned over day by day.
    #[test]
    fn eight_centuries_day_by_day() {
        let lengths = |year: i64| {
            let february = if year % 400 == 0 || (year % 4 == 0 && year % 100 != 0) { 29 } else { 28 };
            [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        };
        // 1600-01-01 is 370 years before: 370·365 days and the leap days of 1600 … 1968, without 1700, 1800, 1900.
        let mut number = -(370 * 365 + 93 - 3);
        for year in 1600..2400 {
            for (month, length) in lengths(year).into_iter().enumerate() {
                let month = month as i64 + 1;
                for day in 1..=length {
                    assert_eq!(days(year, month, day), Some(number));
                    assert_eq!(civil(number), (year, month, day));
                    number += 1;
                }
                assert_eq!(days(year, month, length + 1), None);
            }
        }
        assert_eq!(days(1970, 1, 1), Some(0));
        assert_eq!((days(2024, 0, 1), days(2024, 13, 1), days(2024, 1, 0)), (None, None, None));
    }

    #[test]
    fn times_and_zones() {
        let noon = parse("2024-02-29T12:00:00Z", DateOrder::YearFirst).unwrap();
        assert_eq!(noon, 19_782.5); // 54 years of 365 days, 13 leap days before, 31 + 28 days into the year
        for same in [
            "2024-02-29 12:00",
            "2024-02-29T13:00+01:00",
            "2024-02-29T06:30:00-0530",
            "2024-02-29t12:00:00.000",
        ] {
            assert_eq!(parse(same, DateOrder::YearFirst), Some(noon), "{same}");
        }
        assert_eq!(parse("1969-12-31T18:00", DateOrder::YearFirst), Some(-0.25));
        for same in [
            "2024/02/29 12:00 pm",
            "29 Feb 2024 12:00",
            "29-FEB-2024 12:00",
            "February 29, 2024 12:00PM",
            "29. Febr 2024 12:00",
        ] {
            assert_eq!(parse(same, DateOrder::YearFirst), Some(noon), "{same}");
        }
        assert_eq!(parse("02/29/2024 9:00 AM", DateOrder::MonthFirst), Some(noon - 0.125));
        assert_eq!(parse("29.2.2024 9:00", DateOrder::DayFirst), Some(noon - 0.125));
        assert_eq!(parse("2/29/2024 12:00 am", DateOrder::MonthFirst), Some(noon - 0.5));
        assert_eq!(
            parse("2024-02-29T23:59:59.5", DateOrder::YearFirst),
            Some(19_782.0 + 86_399.5 / 86_400.0)
        );
        for wrong in [
            "2024-02-30",
            "2023-02-29",
            "2024-2-29",
            "24-02-29",
            "2024-02-29T",
            "2024-02-29T25:00",
            "2024-02-29T12",
            "2024-02-29T12:60",
            "2024-02-29X12:00",
            "2024-02-29T12:00:00.",
            "2024-02-29T12:00+9999",
            "+024-02-29",
            "2024-02-é9",
            "",
            "2024/02-29",
            "2024-02-29 13:00 PM",
            "2024-02-29 PM",
            "29 Fe 2024",
            "30 Feb 2024",
            "Feb 2024",
            "29 Feb 24",
            "January",
            "2024-02-29 12:00 noon",
        ] {
            assert_eq!(parse(wrong, DateOrder::YearFirst), None, "{wrong}");
        }
    }

    proptest! {
        /// What is written is read as the same time.
        #[test]
        fn iso_is_read_back(seconds in -6_000_000_000_i64..8_000_000_000, milli in 0_i64..1000) {
            let units = seconds * 1000 + milli;
            let per_day = DAY_SECONDS * 1000;
            let text = iso_of_units(units, per_day);
            prop_assert_eq!(parse(&text, DateOrder::YearFirst), Some(days_of_units(units, per_day)));
        }

        /// The same day in every order; an order without doubt is never mistaken for another day.
        #[test]
        fn orders_agree(day in -200_000_i64..300_000, separator in "[./-]", padded: bool) {
            let iso = iso(day, 0);
            let (year, month, of_month) = (&iso[..4], &iso[5..7], &iso[8..10]);
            let bare = |field: &str| if padded { field.into() } else { field.trim_start_matches('0').to_owned() };
            let (month, of_month) = (bare(month), bare(of_month));
            let text = format!("{of_month}{separator}{month}{separator}{year}");
            prop_assert_eq!(parse(&text, DateOrder::DayFirst), Some(day as f64));
            let text = format!("{month}{separator}{of_month}{separator}{year} 12:00");
            let noon = (separator != ".").then_some(day as f64 + 0.5);
            prop_assert_eq!(parse(&text, DateOrder::MonthFirst), noon);
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = DateOrder::ALL.map(|order| parse(&text, order));
        }

        #[test]
        fn nearly_dates_do_not_panic(text in "[0-9T:Z+./ -]{0,28}") {
            for order in DateOrder::ALL {
                prop_assert!(parse(&text, order).is_none_or(f64::is_finite));
            }
        }
    }
}
