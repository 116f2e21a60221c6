//! The trade-off curve of an account.

use super::{Axis, Figure, Level, Series};
use leakscope_core::claim::{Bound, Theorem};
use leakscope_core::dp::Account;

/// The trade-off curve: the least false-negative rate of any test.
pub fn trade_off(account: &Account) -> Figure {
    let points = &account.trade_off;
    let lower = |p: &leakscope_core::dp::TradeOffPoint| {
        (p.false_positive, Bound::at_least(p.false_negative.lower, Theorem::TradeOff))
    };
    Figure {
        id: "trade-off".into(),
        title: "No test does better".into(),
        caption: "The least false-negative rate of any test that tells the two neighbouring data sets apart, at each \
                  false-positive rate; certified from below. The straight line is a guess that does not use the releases."
            .into(),
        x: Axis::linear("false-positive rate").of_shares(),
        y: Axis::linear("false-negative rate, at least").of_shares(),
        series: vec![
            Series::bound("these releases", points.iter().map(lower)),
            Series::measured(
                "without the releases",
                points.iter().map(|p| (p.false_positive, 1.0 - p.false_positive)),
            ),
        ],
        levels: Vec::<Level>::new(),
        chosen: None,
    }
}
