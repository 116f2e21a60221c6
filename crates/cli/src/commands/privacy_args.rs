//! The options that say what a private computation does: the same for `account`, `bound` and `calibrate`.

use clap::ValueEnum;
use leakscope_core::dp::Adjacency;
use std::io::Write;

/// Which two data sets an attacker must not tell apart.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdjacencyArg {
    /// One record is there or is not
    AddRemove,
    /// One record takes another value
    Replace,
}

impl From<AdjacencyArg> for Adjacency {
    fn from(adjacency: AdjacencyArg) -> Self {
        match adjacency {
            AdjacencyArg::AddRemove => Self::AddRemove,
            AdjacencyArg::Replace => Self::Replace,
        }
    }
}

/// The adjacency in words.
pub(crate) fn in_words(adjacency: Adjacency) -> &'static str {
    match adjacency {
        Adjacency::AddRemove => "add/remove: one record is there or is not",
        Adjacency::Replace => "replace: one record takes another value",
    }
}

/// Prints a document as JSON, or its text.
pub(crate) fn show(json: bool, document: &serde_json::Value, text: &str) {
    let printed = if json { format!("{document:#}\n") } else { text.to_string() };
    // Whoever reads may stop early (`| head`): that is no failure.
    let _ = std::io::stdout().lock().write_all(printed.as_bytes());
}

/// Five significant digits, rounded up or down: an upper bound stays one.
pub(crate) fn five_digits(x: f64, up: bool) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let magnitude = x.abs().log10().floor();
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
    use super::five_digits;

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
