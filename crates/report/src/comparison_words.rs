//! Numbers side by side, in words: the same on the page, in the terminal and in summaries.

use crate::document::comparison::{Change, Comparison, Form, Row, Value};
use crate::format;

/// A number as its form has it.
pub(crate) fn value(form: Form, value: Option<Value>) -> String {
    let Some(Value { value: x, .. }) = value else { return "–".into() };
    match form {
        Form::Number => format::number(x),
        Form::AtMost => format::at_most(x),
        Form::AtLeast => format::at_least(x),
        Form::Share => format::share(x),
        Form::ShareAtMost => format::share_at_most(x),
        Form::Count => format::count(x.max(0.0) as u64),
        Form::Setting => format::setting(x),
    }
}

/// The number of a row in one of the results.
pub(crate) fn of(row: &Row, result: usize) -> String {
    value(row.form, row.values.get(result).copied().flatten())
}

/// What became of a number, with by how much: `worse, ×2`; nothing where it is the same.
pub(crate) fn change(row: &Row, result: usize) -> String {
    let word = match row.change(result) {
        Change::Worse => "worse",
        Change::Better => "better",
        Change::New => return "new".into(),
        Change::Gone => return "gone".into(),
        Change::Other => "changed",
        Change::Same => return String::new(),
    };
    match amount(row, result) {
        Some(amount) => format!("{word}, {amount}"),
        None => word.into(),
    }
}

/// Shares change by points, all else by a factor; absent where neither says anything.
fn amount(row: &Row, result: usize) -> Option<String> {
    match row.form {
        Form::Share | Form::ShareAtMost => {
            let at = |i: usize| row.values.get(i).copied().flatten().map(|v| 100.0 * v.value);
            let points = at(result)? - at(0)?;
            let size = format::setting(points.abs());
            let sign = if points < 0.0 { "−" } else { "+" };
            points.is_finite().then(|| format!("{sign}{size} points"))
        }
        Form::Number | Form::AtMost | Form::AtLeast | Form::Count | Form::Setting => {
            row.factor(result).map(format::times)
        }
    }
}

/// What is compared with what.
pub(crate) fn title(c: &Comparison) -> String {
    let reference = c.reference().map_or("", |r| r.name.as_str());
    let others: Vec<&str> = c.others().map(|(_, r)| r.name.as_str()).collect();
    format!("{} against {reference}", others.join(", "))
}

/// What is compared, in a line.
pub(crate) fn facts(c: &Comparison) -> String {
    format!(
        "{} {} · the reference is {}",
        c.results.len(),
        c.kind.plural(),
        c.reference().map_or("", |r| r.name.as_str())
    )
}
