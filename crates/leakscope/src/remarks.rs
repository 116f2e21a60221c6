//! What the user should know of rows and of a model fitted to them, in whole sentences.

use leakscope_core::fisher::Geometry;
use leakscope_core::glm::Fit;
use leakscope_report::audit::Duplicates;
use leakscope_table::{Attribute, Dataset, Encoding, EqualRows, Kind, Missing};

/// Condition number above which coefficients, and what follows from them, have few digits left.
const ILL_CONDITIONED: f64 = 1e10;
/// Columns that a remark names before it counts the rest.
const NAMED: usize = 8;

/// Names in backquotes, the first few of them.
pub(crate) fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|n| format!("`{n}`")).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

/// Predictions that were still this far from the minimiser's leave η fewer digits than pages show.
const UNSETTLED: f64 = 1e-6;

/// Records where the model has no derivative.
pub(crate) fn at_kinks(fit: &Fit) -> Option<String> {
    let (records, them) = match fit.at_kink {
        0 => return None,
        1 => ("1 record lies".to_owned(), "its"),
        n => (format!("{n} records lie"), "their"),
    };
    Some(format!(
        "{records} at the kink of the loss, to rounding: the model moves differently when such a record changes one way or the \
         other, and {them} η is that of the side without curvature."
    ))
}

/// A Hessian that leaves few digits, and which columns make it so; or a fit that ended before its predictions settled.
pub(crate) fn nearly_singular(encoding: &Encoding, geometry: &Geometry) -> Option<String> {
    let weakest = || geometry.weakest_columns();
    few_digits(encoding, geometry.condition(), geometry.fit().unsettled, weakest)
}

/// The same of any model, from the condition of its Hessian, how far it settled and its weakest columns.
pub(crate) fn few_digits(
    encoding: &Encoding,
    condition: f64,
    unsettled: f64,
    weakest: impl Fn() -> Vec<usize>,
) -> Option<String> {
    if condition <= ILL_CONDITIONED && unsettled > UNSETTLED {
        return Some(format!(
            "The fit settled to about {unsettled:.0e} only, as it does where the model predicts nearly perfectly: numbers \
             here may be off by that share. A larger ⟨l2⟩ helps."
        ));
    }
    (condition > ILL_CONDITIONED).then(|| {
        let names = encoding.columns();
        let weakest: Vec<String> = weakest().iter().map(|&j| names[j].clone()).collect();
        // The intercept has no penalty, and its column is one: where it alone is weak, the others or their penalty are huge.
        if encoding.intercept && names.last().is_some_and(|last| weakest == [last.clone()]) {
            return format!(
                "Beside the intercept, columns or the penalty on their coefficients are huge (condition number {condition:.1e}): these \
                 numbers have few reliable digits. Use ⟨scale=standard⟩, or lower ⟨l2⟩ where it is far above one."
            );
        }
        format!(
            "The problem is nearly singular (condition number {condition:.1e}) along {}: these numbers have few \
             reliable digits. Drop one of these columns, use ⟨scale=standard⟩, or raise ⟨l2⟩.",
            listed(&weakest)
        )
    })
}

/// What was done with the table that asks for nothing: which columns were left out as names of rows, how dates were read.
pub(crate) fn notes(encoding: &Encoding) -> Vec<String> {
    encoding.remarks.iter().filter(|r| r.is_note()).map(|r| r.to_string()).collect()
}

/// What the user should know of the training rows, whatever is done with them.
pub(crate) fn of_data(encoding: &Encoding) -> Vec<String> {
    // What was guessed about the table comes first: everything else rests on it.
    let mut warnings: Vec<String> =
        encoding.remarks.iter().filter(|r| !r.is_note()).map(|r| r.to_string()).collect();
    let named = |which: &dyn Fn(&Attribute) -> bool| -> Vec<String> {
        encoding.attributes.iter().filter(|a| which(a)).map(|a| a.name.clone()).collect()
    };
    let constant = named(&|a| match a.kind {
        Kind::Number => a.population_sd == 0.0,
        Kind::Category => a.levels.len() < 2 && !a.columns.is_empty(),
    });
    if !constant.is_empty() {
        warnings.push(format!(
            "Constant in the training rows: {}. The model learns nothing from such a column, but a record that \
             differed there would still move it.",
            listed(&constant)
        ));
    }
    let one_level = named(&|a| a.kind == Kind::Category && a.columns.is_empty());
    if !one_level.is_empty() {
        warnings.push(format!(
            "One level only in the training rows: {}. Such a category has no column, and is not among the attributes.",
            listed(&one_level)
        ));
    }
    if encoding.rows_dropped > 0 {
        warnings.push(left_out(encoding.rows_dropped, ""));
    }
    warnings.extend(filled_in(encoding));
    let target = encoding.profile.iter().find(|c| c.name == encoding.target.name);
    if target.is_some_and(|t| t.min.is_some() && t.min == t.max) {
        warnings.push(format!(
            "The target `{}` is constant in the training rows: there is nothing to predict.",
            encoding.target.name
        ));
    }
    warnings
}

/// Rows that are equal in every column that is used. With an id it is known whose they are.
pub(crate) fn duplicates(encoding: &Encoding) -> Option<Duplicates> {
    let EqualRows { copies, largest, beyond_chance } = encoding.equal_rows?;
    Some(Duplicates { rows: copies, largest, beyond_chance: beyond_chance && encoding.id.is_none() })
}

/// Rows to test on that are not.
pub(crate) fn of_test(rows: &Dataset, is_file: bool) -> Vec<String> {
    let mut warnings = vec![];
    if rows.rows_unseen() > 0 {
        warnings.push(format!(
            "{} a category that no training row has, and {} left out of what is measured on held-out rows.",
            counted(rows.rows_unseen(), "held-out row has", "held-out rows have"),
            if rows.rows_unseen() == 1 { "is" } else { "are" }
        ));
    }
    if rows.rows_dropped() > 0 && is_file {
        warnings.push(left_out(rows.rows_dropped(), " to test on"));
    }
    warnings
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

pub(crate) fn left_out(count: u64, rows: &str) -> String {
    match count {
        1 => format!("1 row{rows} has missing values and was left out."),
        _ => format!("{count} rows{rows} have missing values and were left out."),
    }
}

/// Which values were filled in under `--missing mean`, if any.
fn filled_in(encoding: &Encoding) -> Option<String> {
    let filled: Vec<String> = match encoding.missing {
        Missing::Mean => encoding
            .profile
            .iter()
            .filter(|c| c.missing > 0)
            .map(|c| format!("`{}` {}", c.name, c.missing))
            .collect(),
        Missing::Fail | Missing::Drop => vec![],
    };
    (!filled.is_empty()).then(|| {
        format!(
            "Missing values were filled in with the mean or the most frequent level: {}. For those records \
             leakage is that of the value filled in.",
            filled.join(", ")
        )
    })
}
