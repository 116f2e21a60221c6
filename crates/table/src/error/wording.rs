//! Parts of sentences that several messages share.

use std::path::Path;

pub(super) fn no_header(header_is_data: bool) -> &'static str {
    match header_is_data {
        true => "; the first line looks like a row of data: with ⟨no_header⟩ columns are called c1, c2, …",
        false => "",
    }
}

pub(super) fn missing_or_extra(missing: bool, first: &Path) -> String {
    if missing {
        format!("is missing, but {} has it", first.display())
    } else {
        format!("is not in {}", first.display())
    }
}

pub(super) fn row_or_header(row: u64) -> String {
    if row == 0 { "header".into() } else { format!("data row {row} (the header is not counted)") }
}

pub(super) fn closest_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; the closest names are {}", quoted(names)) }
}

pub(super) fn missing_columns(columns: &[(String, u64)]) -> String {
    columns.iter().map(|(name, count)| format!("`{name}` {count}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn more_classes(found: &[String], more: bool) -> String {
    let list = quoted(found);
    if more { format!("the classes {list} and more") } else { format!("the classes {list}") }
}

pub(super) fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
