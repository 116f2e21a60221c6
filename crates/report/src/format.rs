//! Numbers as people read them: three significant digits, thousands separated, plain decimals from 0.001 to 99,999 and
//! powers of ten outside. Bounds are rounded to the safe side. Nothing here ever prints a NaN or an infinity.

use leakscope_core::claim::{Bound, Direction};

/// What is printed for a number without bound.
pub const UNBOUNDED: &str = "unbounded";

/// Which way the digits that are not shown go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Nearest,
    Down,
    Up,
}

/// A number to three significant digits.
pub fn number(x: f64) -> String {
    written(x, Rounding::Nearest)
}

/// A bound to three significant digits, rounded to the side on which it still holds.
pub fn bound(bound: &Bound) -> String {
    match bound.direction {
        Direction::AtLeast => at_least(bound.value),
        Direction::AtMost => at_most(bound.value),
    }
}

/// An upper bound to three significant digits, rounded up.
pub fn at_most(x: f64) -> String {
    written(x, Rounding::Up)
}

/// A lower bound to three significant digits, rounded down.
pub fn at_least(x: f64) -> String {
    written(x, Rounding::Down)
}

/// A number that somebody chose (σ, λ, a limit), without the zeros that say nothing.
pub fn setting(x: f64) -> String {
    let text = number(x);
    let (mantissa, power) = match text.find('×') {
        Some(i) => text.split_at(i),
        None => (text.as_str(), ""),
    };
    match mantissa.contains('.') {
        true => format!("{}{power}", mantissa.trim_end_matches('0').trim_end_matches('.')),
        false => text,
    }
}

/// A setting to three significant digits as a command line takes it: `3440`, `0.0012`, `2.27e12`.
pub fn typed(x: f64) -> String {
    let scientific = format!("{x:.2e}");
    let plain = (1e-6..1e9).contains(&x.abs()) || x == 0.0;
    match scientific.parse::<f64>() {
        Ok(rounded) if plain => rounded.to_string(),
        Ok(_) | Err(_) => scientific,
    }
}

/// The same, rounded up.
pub fn typed_at_least(x: f64) -> String {
    let nearest = typed(x);
    // Half a step is at most half a percent.
    if nearest.parse::<f64>().is_ok_and(|r| r < x) { typed(1.005 * x) } else { nearest }
}

/// A count in full, thousands separated.
pub fn count(n: u64) -> String {
    separated(&n.to_string())
}

/// `n` things, in the singular for one: `counted(3198, "record")` is `3,198 records`.
pub fn counted(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A share that is at least this, rounded down to a tenth of a per cent.
pub fn share_at_least(x: f64) -> String {
    share(((x * 1e3 * (1.0 + 1e-10)).floor() / 1e3).max(0.0))
}

/// A share of one as a percentage.
pub fn share(x: f64) -> String {
    let p = 100.0 * x;
    if !p.is_finite() {
        number(p)
    } else if p > 0.0 && p < 0.1 {
        "<0.1%".into()
    } else if p > 99.9 && p < 100.0 {
        ">99.9%".into()
    } else {
        let text = format!("{p:.1}");
        format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
    }
}

/// An upper bound on a share of one as a percentage, rounded up.
pub fn share_at_most(x: f64) -> String {
    // What lies beyond the tenth digit is noise of the computation.
    share(((x * 1e3 * (1.0 - 1e-10)).ceil() / 1e3).min(1.0))
}

/// How far values spread as a share of their mean, as a percentage: three digits, rounded up, whatever its size.
pub fn spread(x: f64) -> String {
    format!("{}%", at_most(100.0 * x))
}

/// A factor: `×1.29`.
pub fn times(x: f64) -> String {
    let text = number(x);
    if x.is_finite() { format!("×{text}") } else { text }
}

/// Seconds of wall time.
pub fn seconds(x: f64) -> String {
    match x {
        x if x < 0.001 => "<0.001 s".into(),
        x => format!("{} s", number(x)),
    }
}

/// Five significant digits, rounded up or down: an upper bound stays one.
pub fn five_digits(x: f64, up: bool) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let magnitude = x.abs().log10().floor();
    if !(-6.0..=15.0).contains(&magnitude) {
        let (round, small) = (if up { f64::ceil } else { f64::floor }, magnitude < -300.0);
        // 10^magnitude may be no number below 1e-308.
        let mantissa =
            if small { x * 1e150 / 10_f64.powf(magnitude + 150.0) } else { x / 10_f64.powf(magnitude) };
        return format!("{:.4}e{magnitude}", round(mantissa * 1e4 - if up { 1e-7 } else { -1e-7 }) / 1e4);
    }
    let unit = 10_f64.powf(4.0 - magnitude);
    // A number that has five digits already is not pushed up by its own rounding.
    let scaled = x * unit;
    let near = scaled.round();
    let whole = match (scaled - near).abs() < 1e-9 * near.abs() {
        true => near,
        false if up => scaled.ceil(),
        false => scaled.floor(),
    };
    let decimals = (4.0 - magnitude).max(0.0) as usize;
    format!("{:.decimals$}", whole / unit)
}

/// Five significant digits that are never below the number itself: what is typed as it stands must suffice.
pub fn five_digits_to_type(x: f64) -> String {
    let shown = five_digits(x, true);
    match shown.parse::<f64>() {
        // It has the digits of the number but for its last bits: one more of the fifth.
        Ok(value) if value < x => five_digits(x * (1.0 + 2e-9), true),
        Ok(_) | Err(_) => shown,
    }
}

/// Text that starts with a capital and ends with a full stop. Symbols (η, σ) stay as they are.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return String::new() };
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    let symbol = ('\u{370}'..='\u{3ff}').contains(&first);
    let first = if symbol { first.to_string() } else { first.to_uppercase().to_string() };
    format!("{first}{}{end}", chars.as_str())
}

/// `±81 years`, or `unbounded`; `value` is already written.
pub fn plus_minus(value: &str, unit: Option<&str>) -> String {
    if value == UNBOUNDED {
        return value.into();
    }
    match unit.map(str::trim).filter(|u| !u.is_empty()) {
        Some(unit) => format!("±{value} {unit}"),
        None => format!("±{value}"),
    }
}

/// Text as a shell takes it.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/,=:+@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn written(x: f64, rounding: Rounding) -> String {
    if x.is_nan() {
        return "unknown".into();
    }
    if x.is_infinite() {
        return UNBOUNDED.into();
    }
    if x == 0.0 {
        return "0".into();
    }
    if x < 0.0 {
        let flipped = match rounding {
            Rounding::Nearest => Rounding::Nearest,
            Rounding::Down => Rounding::Up,
            Rounding::Up => Rounding::Down,
        };
        return format!("−{}", written(-x, flipped));
    }
    if (999.5..1e5).contains(&x) && !(x < 1e3 && rounding == Rounding::Down) {
        // All digits before the point are shown, so that neighbouring values stay apart.
        return count(match rounding {
            Rounding::Nearest => x.round(),
            Rounding::Down => (x * (1.0 + 1e-10)).floor(),
            Rounding::Up => (x * (1.0 - 1e-10)).ceil(),
        } as u64);
    }
    let (digits, exponent) = significant(x, rounding);
    match exponent {
        -3..=-1 => format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0..=2 => {
            let scale = 10_u64.pow(2 - exponent as u32);
            match scale {
                1 => digits.to_string(),
                _ => format!("{}.{:0w$}", digits / scale, digits % scale, w = (2 - exponent) as usize),
            }
        }
        _ => format!("{}.{:02}×10{}", digits / 100, digits % 100, superscript(exponent)),
    }
}

/// The three leading digits of `x > 0` (100 to 999) and the power of ten of the first. Rounding down or up looks at
/// ten digits: what lies beyond is noise of the computation (a bound of 80.999999999 is shown as 81.0).
fn significant(x: f64, rounding: Rounding) -> (u64, i32) {
    let text = if rounding == Rounding::Nearest { format!("{x:.2e}") } else { format!("{x:.9e}") };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut head: u64 = digits[..3].parse().unwrap_or(0);
    if rounding == Rounding::Up && digits[3..].bytes().any(|b| b != b'0') {
        head += 1;
    }
    if head == 1000 { (100, exponent + 1) } else { (head, exponent) }
}

fn separated(digits: &str) -> String {
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// An integer in superscript.
pub(crate) fn superscript(n: i32) -> String {
    n.to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            '9' => '⁹',
            _ => '⁰',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_core::claim::Theorem;

    #[test]
    fn three_significant_digits_in_every_range() {
        for (x, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1.00"),
            (0.3, "0.300"),
            (0.001, "0.00100"),
            (0.000_999_9, "0.00100"),
            (0.000_99, "9.90×10⁻⁴"),
            (1.2e-5, "1.20×10⁻⁵"),
            (13.96, "14.0"),
            (99.96, "100"),
            (999.6, "1,000"),
            (9_999.6, "10,000"),
            (12_345.6, "12,346"),
            (99_999.0, "99,999"),
            (123_456.0, "1.23×10⁵"),
            (-2.5, "−2.50"),
            (f64::INFINITY, "unbounded"),
            (f64::NEG_INFINITY, "unbounded"),
            (f64::NAN, "unknown"),
            (f64::MAX, "1.80×10³⁰⁸"),
            (f64::MIN_POSITIVE, "2.23×10⁻³⁰⁸"),
        ] {
            assert_eq!(number(x), text, "{x}");
        }
    }

    #[test]
    fn bounds_are_rounded_to_the_safe_side_but_not_by_the_noise_of_their_computation() {
        assert_eq!(at_least(13.99), "13.9");
        assert_eq!(at_least(0.099_99), "0.0999");
        assert_eq!(at_least(2_999.9), "2,999");
        assert_eq!(bound(&Bound::at_least(81.0, Theorem::CramerRao)), "81.0");
        assert_eq!(bound(&Bound::at_least(4_000.0, Theorem::CramerRao)), "4,000");
        assert_eq!(bound(&Bound::at_most(0.4001, Theorem::CramerRao)), "0.401");
        assert_eq!(bound(&Bound::at_most(0.999_9, Theorem::CramerRao)), "1.00");
        for i in 1..2_000 {
            let x = (f64::from(i) * 0.37).exp2() * 1e-9 * f64::from(i % 7 + 1);
            if (0.001..1e5).contains(&x) {
                let shown: f64 = at_least(x).replace(',', "").parse().unwrap();
                assert!(shown <= x * (1.0 + 1e-9) && shown >= x * 0.99 - 1.0, "{x} {shown}");
            }
        }
    }

    #[test]
    fn settings_counts_shares_and_units() {
        assert_eq!(setting(0.02), "0.02");
        assert_eq!(setting(1.0), "1");
        assert_eq!(setting(100.0), "100");
        assert_eq!(setting(1e-6), "1×10⁻⁶");
        assert_eq!(setting(8e-4), "8×10⁻⁴");
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "record"), "1 record");
        assert_eq!(counted(3_198, "record"), "3,198 records");
        assert_eq!(share(0.0), "0%");
        assert_eq!(share(0.123_4), "12.3%");
        assert_eq!(share(0.000_1), "<0.1%");
        assert_eq!(share(0.999_99), ">99.9%");
        assert_eq!(share(1.0), "100%");
        assert_eq!(
            (share_at_most(0.16106), share_at_most(0.161), share_at_most(1.0)),
            ("16.2%".into(), "16.1%".into(), "100%".into())
        );
        assert_eq!(plus_minus("81.0", Some("years")), "±81.0 years");
        assert_eq!(plus_minus("81.0", Some(" ")), "±81.0");
        assert_eq!(plus_minus(UNBOUNDED, Some("years")), "unbounded");
        assert_eq!(times(1.286), "×1.29");
        assert_eq!(times(f64::INFINITY), "unbounded");
        assert_eq!(seconds(0.0), "<0.001 s");
        assert_eq!(seconds(2.5), "2.50 s");
    }

    #[test]
    fn digits_are_rounded_to_the_side_asked_for() {
        assert_eq!(five_digits(1.827_51, true), "1.8276");
        assert_eq!(five_digits(1.827_51, false), "1.8275");
        assert_eq!(five_digits(0.5, true), "0.50000");
        assert_eq!(five_digits(109.1941, true), "109.20");
        assert_eq!(five_digits(1_234_567.0, false), "1234500");
        assert_eq!(five_digits(0.0, true), "0");
    }

    #[test]
    fn what_is_typed_is_never_below_the_number() {
        for x in [
            1.025,
            1.025 * (1.0 + 1e-15),
            1.025 * (1.0 + 1e-11),
            1.025_000_1,
            0.1,
            3.751_79,
            1e-9,
            4.2e17,
            99_999.000_1,
        ] {
            let shown = five_digits_to_type(x);
            let value: f64 = shown.parse().unwrap();
            assert!(value >= x && value <= x * 1.000_11, "{x}: {shown}");
        }
        assert_eq!(
            (five_digits_to_type(1.025).as_str(), five_digits_to_type(1.0).as_str()),
            ("1.0250", "1.0000")
        );
        assert_eq!(five_digits_to_type(1.025 * (1.0 + 1e-12)), "1.0251");
    }

    #[test]
    fn settings_can_be_typed() {
        for (x, text) in
            [(3437.0, "3440"), (2.27e5, "227000"), (0.0012, "0.0012"), (2.27e12, "2.27e12"), (0.4, "0.4")]
        {
            assert_eq!(typed(x), text);
        }
        for k in 0..2000 {
            let x = 10_f64.powf(f64::from(k) / 100.0 - 8.0);
            let up: f64 = typed_at_least(x).parse().unwrap();
            assert!(up >= x && up <= 1.011 * x, "{x}: {up}");
        }
    }
}
