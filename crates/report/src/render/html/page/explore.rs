//! Explore: every record, in a store of columns that the script opens. Hidden without a script.
//!
//! A number takes two bytes: 0 is zero, 65,535 is no number, and c is `low · (high/low)^((c − 1)/65,533)`: the next that is no
//! smaller, or the one below it where only that has the three digits that the rest of the page and the terminal show.

use crate::document::audit::Audit;
use crate::document::explore::Explore;
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::tag;
use crate::verdict::{PROTECT_AT, exposures};
use crate::{verdict, words};
use leakscope_core::special::normal_quantile;
use serde::Serialize;

/// Bytes that the store may take on the page.
const MOST_BYTES: usize = 4_200_000;
/// Between the largest number and the smallest that is told from it.
const RANGE: f64 = 1e12;
const CODES: f64 = 65_533.0;
const NO_NUMBER: u16 = u16::MAX;

#[derive(Debug, Serialize)]
struct Store<'a> {
    rows: u64,
    id: &'a str,
    by: Option<&'a str>,
    median: f64,
    protect_depth: f64,
    ids: String,
    series: Vec<&'a str>,
    /// Two bytes a record: which of the series.
    of_series: Option<String>,
    columns: Vec<Column<'a>>,
}

#[derive(Debug, Serialize)]
struct Column<'a> {
    name: &'a str,
    /// `eta`, `square` or `same`: how it follows the noise.
    follows: &'static str,
    low: f64,
    high: f64,
    data: String,
    /// Of an attribute: what Φ is taken of per η, where its values have a spread; error in own units times η.
    attribute: Option<Of<'a>>,
}

#[derive(Debug, Serialize)]
struct Of<'a> {
    depth: Option<f64>,
    error: Option<f64>,
    unit: Option<&'a str>,
}

/// The card, and its data.
pub(super) fn explore(audit: &Audit, records: &Explore) -> (Html, Option<String>) {
    if records.is_empty() || records.eta.len() != records.len() {
        return (Html::new(), None);
    }
    let (store, left_out) = store(audit, records);
    let lead = match records.rows > records.len() as u64 {
        true => format!(
            "{} of {} records: a fair sample, with the most and the least exposed.",
            format::count(records.len() as u64),
            format::count(records.rows)
        ),
        false => format!("All {}.", format::counted(records.rows, "record")),
    };
    let kept = match left_out {
        0 => String::new(),
        k => format!(
            " Of attributes, those that leak most: η of the other {} is in the table of records alone.",
            format::count(k as u64)
        ),
    };
    let card = fill(
        "<section class=\"card explore\" id=\"records\" hidden><h2>Explore the records {}</h2><p class=\"lead\">{}{} Choose a bar of the \
         histogram, a dot, a group or an attribute (by pointer, or by Tab, arrows and Enter) to narrow the whole page down, and a \
         record for what is known of it.</p><div data-explore=\"tools\" class=\"dials\"></div>\
         <p role=\"status\" class=\"say\" data-explore=\"status\"></p><div data-explore=\"table\"></div><div data-explore=\"panel\" \
         class=\"panel\" tabindex=\"-1\" hidden></div></section>\n",
        &[&tag(Claim::Measured), &lead, &kept],
    );
    let json = serde_json::to_string(&store).expect("plain data with text keys always serialises");
    (card, Some(json))
}

/// The store, and how many attributes it has no room for.
fn store<'a>(audit: &'a Audit, records: &'a Explore) -> (Store<'a>, usize) {
    let n = records.len();
    let mut names: Vec<&str> = records.series.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let place = |s: &String| names.binary_search(&s.as_str()).unwrap_or(0).min(usize::from(NO_NUMBER)) as u16;
    let of_series =
        (records.series.len() == n && names.len() > 1).then(|| bytes(records.series.iter().map(place)));
    let ids: Vec<String> =
        records.ids.iter().map(|id| id.replace(|c: char| c.is_control(), "\u{fffd}")).collect();
    let ids = ids.join("\n");
    let mut columns: Vec<Column<'_>> = [
        ("η", "eta", &records.eta),
        ("dFIL", "square", &records.dfil),
        ("loss", "same", &records.loss),
        ("gradient norm", "same", &records.gradient_norm),
    ]
    .into_iter()
    .filter(|(_, _, values)| values.len() == n)
    .map(|(name, follows, values)| column(name, follows, values, None))
    .collect();
    // Four characters carry three bytes.
    let of_one = n * 2 * 4 / 3 + 200;
    let used = ids.len() + (columns.len() + 1) * of_one;
    let room = (MOST_BYTES.saturating_sub(used) / of_one.max(1)).min(records.attributes.len());
    let exposures = exposures(audit);
    for (name, values) in records.attributes.iter().take(room).filter(|(_, values)| values.len() == n) {
        let attribute = audit.attributes.iter().find(|a| a.name == *name);
        let exposure = exposures.iter().find(|e| e.attribute.name == *name);
        let eta = attribute.map(|a| a.eta_max).filter(|e| *e > 0.0);
        let depth = exposure.zip(eta).map(|(e, eta)| 0.5 * e.distance / eta).filter(|d| d.is_finite());
        let error =
            attribute.filter(|a| !words::is_category(a)).zip(eta).map(|(a, eta)| a.min_sd.value * eta);
        let unit = attribute.and_then(|a| a.unit.as_deref());
        let of = Of { depth, error: error.filter(|e| e.is_finite()), unit };
        columns.push(column(name, "eta", values, Some(of)));
    }
    let goal = audit.tell.as_ref().map_or(PROTECT_AT, |t| t.protect_at).clamp(0.5, verdict::TOLD_AT);
    let store = Store {
        rows: records.rows,
        id: audit.data.id.as_deref().unwrap_or("row"),
        by: words::series_by(audit),
        median: audit.records.eta.p50,
        protect_depth: normal_quantile(goal),
        ids,
        series: if of_series.is_some() { names } else { vec![] },
        of_series,
        columns,
    };
    (store, records.attributes.len() - room + records.left_out)
}

fn column<'a>(name: &'a str, follows: &'static str, values: &[f64], attribute: Option<Of<'a>>) -> Column<'a> {
    let known = || values.iter().copied().filter(|x| *x > 0.0 && x.is_finite());
    let high = known().fold(0.0, f64::max);
    let low = known().fold(f64::INFINITY, f64::min).max(high / RANGE).min(high);
    let data = bytes(values.iter().map(|x| code(*x, low, high)));
    Column { name, follows, low, high, data, attribute }
}

/// The number of a code.
fn decoded(c: u16, low: f64, high: f64) -> f64 {
    match c {
        0 => 0.0,
        NO_NUMBER => f64::NAN,
        c => low * (high / low).powf(f64::from(c - 1) / CODES),
    }
}

/// The code whose number is the next that is no smaller, or the one before it where that alone shows the same digits.
fn code(x: f64, low: f64, high: f64) -> u16 {
    if x == 0.0 {
        return 0;
    }
    if !x.is_finite() || x < 0.0 {
        return NO_NUMBER;
    }
    if x <= low || high <= low {
        return 1;
    }
    let place = CODES * (x / low).ln() / (high / low).ln();
    // What rounding takes away is put back.
    let next = 1 + ((place - 1e-9 * CODES / 65_536.0).ceil().clamp(0.0, CODES) as u16);
    let shows = |c: u16| format::number(decoded(c, low, high)) == format::number(x);
    if next > 1 && !shows(next) && shows(next - 1) { next - 1 } else { next }
}

/// Numbers of two bytes, the lower first, as base 64.
fn bytes(codes: impl Iterator<Item = u16>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let all: Vec<u8> = codes.flat_map(u16::to_le_bytes).collect();
    let mut out = String::with_capacity(all.len().div_ceil(3) * 4);
    for three in all.chunks(3) {
        let word = (0..3).fold(0_u32, |w, i| w << 8 | u32::from(three.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let digit = (word >> (18 - 6 * i)) & 63;
            out.push(if i <= three.len() { char::from(DIGITS[digit as usize]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_close_and_shows_the_same_digits() {
        for (low, high) in [(1e-3, 7.0), (1e-12, 1.0), (5.0, 5.0), (2.0, 2.0001)] {
            for k in 0..=10_000 {
                let x: f64 = low * f64::powf(high / low, f64::from(k) / 10_000.0);
                let shown = decoded(code(x, low, high), low, high);
                assert!((x * 0.999_5..=x * 1.000_5).contains(&shown), "{x} {shown}");
                assert_eq!(format::number(shown), format::number(x));
            }
        }
        assert_eq!(code(0.0, 1.0, 2.0), 0);
        assert_eq!(code(f64::NAN, 1.0, 2.0), NO_NUMBER);
        assert!(decoded(code(1e-30, 1.0, 2.0), 1.0, 2.0) >= 1e-30);
    }

    #[test]
    fn base_64_is_that_of_the_standard() {
        assert_eq!(bytes([0x614d, 0x006e].into_iter()), "TWFuAA==");
        assert_eq!(bytes([0x614d].into_iter()), "TWE=");
        assert_eq!(bytes(std::iter::empty()), "");
    }
}
