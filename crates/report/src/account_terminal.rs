//! An account as text for a terminal.

use crate::account::{Costs, adjacency as in_words};
use crate::format::number;
use std::fmt::Write;

/// ε by each accountant, and the membership advantage.
pub fn account_summary(costs: &Costs) -> String {
    let (mut text, a) = (String::new(), &costs.account);
    let pld = a.epsilon.pld;
    let assumed = if costs.adjacency_assumed { " (assumed, as none was given)" } else { "" };
    let _ = writeln!(text, "ε at δ = {:e}, {}{assumed}\n", a.delta, in_words(a.adjacency));
    let mut row = |name: &str, value: String, note: &str| {
        let _ = writeln!(text, "  {name:<28} {value:>12}   {note}");
    };
    row(
        "privacy loss distribution",
        five_digits(pld.upper, true),
        &format!("certified; not below {}", five_digits(pld.lower, false)),
    );
    row(
        "Rényi DP",
        five_digits(a.epsilon.rdp.epsilon, true),
        &format!("order {}", number(a.epsilon.rdp.alpha)),
    );
    let others = [
        ("Gaussian, analytically", a.epsilon.analytic_gaussian, "exact"),
        ("zCDP", a.epsilon.zcdp, ""),
        ("pure DP", a.epsilon.pure, "at δ = 0"),
    ];
    for (name, value, note) in others {
        if let Some(value) = value {
            row(name, five_digits(value, true), note);
        }
    }
    row(
        "membership advantage",
        five_digits(a.advantage.upper, true),
        "true- less false-positive rate of any test",
    );
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_rounded_to_the_side_asked_for() {
        assert_eq!(five_digits(1.827_51, true), "1.8276");
        assert_eq!(five_digits(1.827_51, false), "1.8275");
        assert_eq!(five_digits(0.5, true), "0.50000");
        assert_eq!(five_digits(109.1941, true), "109.20");
        assert_eq!(five_digits(1_234_567.0, false), "1234500");
        assert_eq!(five_digits(0.0, true), "0");
    }
}
