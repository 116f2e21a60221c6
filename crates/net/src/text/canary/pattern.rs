//! Candidates from a pattern: card numbers with their check digit, dates, lists.
//!
//! | in a pattern | stands for |
//! |---|---|
//! | `#` | a digit |
//! | `{luhn}` | the check digit of all digits before it (cards, IMEI numbers) |
//! | `{date:1980-1989}` | the days of those years, as 1984-02-29 |
//! | `{a\|b\|c}` | one of these |
//! | anything else | itself |

use crate::{Error, Result};

/// More candidates than this are not listed.
pub const MOST: usize = 100_000;

enum Piece {
    One(Vec<String>),
    Check,
}

/// All texts that a pattern stands for, in order.
///
/// ```
/// use leakscope_net::text::canary::pattern::expand;
/// assert_eq!(expand("4539 148#{luhn}")?[0], "4539 14806");
/// assert_eq!(expand("born on {date:1983-1984}")?.len(), 365 + 366);
/// # Ok::<(), leakscope_net::Error>(())
/// ```
///
/// # Errors
/// [`Error::Format`] for a pattern that cannot be read or stands for more than [`MOST`] texts.
pub fn expand(pattern: &str) -> Result<Vec<String>> {
    let bad = |reason: String| Error::Format { subject: "the pattern", reason };
    let pieces = pieces(pattern).map_err(bad)?;
    let count = pieces.iter().try_fold(1_usize, |n, p| match p {
        Piece::One(of) => n.checked_mul(of.len()),
        Piece::Check => Some(n),
    });
    if count.is_none_or(|n| n > MOST) {
        return Err(bad(format!(
            "it stands for more than {MOST} texts: write some of its digits out, or list candidates in a file"
        )));
    }
    let mut texts = vec![String::new()];
    for piece in pieces {
        texts = match piece {
            Piece::One(of) => {
                texts.iter().flat_map(|text| of.iter().map(move |one| format!("{text}{one}"))).collect()
            }
            Piece::Check => texts.into_iter().map(|text| format!("{text}{}", luhn(&text))).collect(),
        };
    }
    Ok(texts)
}

fn pieces(pattern: &str) -> std::result::Result<Vec<Piece>, String> {
    let mut out = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        match c {
            '#' => {
                out.push(Piece::One((0..10).map(|d: u8| d.to_string()).collect()));
                rest = &rest[1..];
            }
            '{' => {
                let end = rest.find('}').ok_or_else(|| format!("`{rest}` has no closing brace"))?;
                out.push(braced(&rest[1..end])?);
                rest = &rest[end + 1..];
            }
            c => {
                out.push(Piece::One(vec![c.to_string()]));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    if out.is_empty() { Err("it is empty".into()) } else { Ok(out) }
}

fn braced(inside: &str) -> std::result::Result<Piece, String> {
    if inside == "luhn" {
        return Ok(Piece::Check);
    }
    if let Some(years) = inside.strip_prefix("date:") {
        let ends = years.split_once('-').unwrap_or((years, years));
        let year = |text: &str| text.trim().parse::<u32>().ok().filter(|y| (1..=9999).contains(y));
        return match (year(ends.0), year(ends.1)) {
            (Some(from), Some(to)) if from <= to => Ok(Piece::One(days(from, to))),
            _ => Err(format!("`{{{inside}}}`: expected years such as {{date:1980-1989}}")),
        };
    }
    if inside.contains('|') {
        return Ok(Piece::One(inside.split('|').map(str::to_owned).collect()));
    }
    Err(format!("`{{{inside}}}`: expected {{luhn}}, {{date:1980-1989}} or alternatives {{a|b}}"))
}

fn days(from: u32, to: u32) -> Vec<String> {
    let leap = |y: u32| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    let length = |y: u32, month: u32| match month {
        2 => 28 + u32::from(leap(y)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let of_year =
        |y: u32| (1..=12).flat_map(move |m| (1..=length(y, m)).map(move |d| format!("{y:04}-{m:02}-{d:02}")));
    (from..=to).flat_map(of_year).collect()
}

/// The digit that makes the weighted sum of all digits a multiple of ten: from the right, every second one doubled, and the
/// digits of the result added.
fn luhn(text: &str) -> u32 {
    let digits = text.chars().rev().filter_map(|c| c.to_digit(10));
    let sum: u32 =
        digits.enumerate().map(|(i, d)| if i % 2 == 0 { 2 * d / 10 + 2 * d % 10 } else { d }).sum();
    (10 - sum % 10) % 10
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that payment companies publish for tests.
    #[test]
    fn check_digits_are_those_of_published_test_cards() {
        for card in ["4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005", "6011000990139424"] {
            let (body, digit) = card.split_at(card.len() - 1);
            assert_eq!(expand(&format!("{body}{{luhn}}")).unwrap(), [card], "{digit}");
        }
        let all = expand("4111 1111 1111 1##{luhn}").unwrap();
        assert!(all.len() == 100 && all.contains(&"4111 1111 1111 1111".to_owned()), "{}", all[11]);
    }

    #[test]
    fn dates_know_leap_years_and_lists_are_in_order() {
        let days = expand("{date:1900-1900}").unwrap();
        assert!(days.len() == 365 && !days.contains(&"1900-02-29".to_owned()));
        assert!(expand("{date:2000}").unwrap().contains(&"2000-02-29".to_owned()));
        assert_eq!(expand("é{a|b}#").unwrap()[9..11], ["éa9", "éb0"]);
    }

    #[test]
    fn patterns_that_cannot_be_read_say_why() {
        for (pattern, says) in [
            ("", "empty"),
            ("{date", "no closing brace"),
            ("{date:89-x}", "expected years"),
            ("{date:1990-1980}", "expected years"),
            ("{phone}", "{luhn}"),
            ("######", "more than 100000"),
            ("#################################", "more than 100000"),
        ] {
            let error = expand(pattern).unwrap_err().to_string();
            assert!(error.contains(says), "{pattern}: {error}");
        }
    }
}
