//! An account as text for a terminal.

use crate::document::account::Costs;
use crate::format::{five_digits, number};
use crate::verdict::of_account;
use crate::words::adjacency as in_words;
use std::fmt::Write;

/// The verdict, ε by each accountant, and the membership advantage.
pub fn account_summary(costs: &Costs) -> String {
    let (mut text, a) = (of_account(costs).lines() + "\n", &costs.account);
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
