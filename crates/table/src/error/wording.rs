//! Parts of sentences that several messages share.

use std::path::Path;

pub(super) fn no_header(header_is_data: bool) -> &'static str {
    match header_is_data {
        true => "; the first line looks like a row of data: with ⟨no_header⟩ columns are called c1, c2, …",
        false => "",
    }
}

/// Why a name such as `s3://…` is not followed; `possible` where another build might.
pub(super) fn no_store(scheme: &str, possible: bool) -> String {
    const MOUNT: &str =
        "mount it as a folder that all machines see, or let the engine read it into a DataFrame";
    match (scheme, possible) {
        ("s3" | "s3a" | "http" | "https" | "webhdfs" | "swebhdfs", true) => format!(
            "this build reads files of the file system alone. Build Leakscope with `--features object-store` for s3://, \
             http(s):// and webhdfs://, or {MOUNT}"
        ),
        ("hdfs", _) => format!(
            "hdfs:// is the protocol of Hadoop's own programs. Name the file by the web address of the name node, such as \
             webhdfs://node:9870/t.csv (swebhdfs:// with TLS; needs the feature `object-store`), or {MOUNT}"
        ),
        _ => format!(
            "{scheme}:// is not read, only files and, with the feature `object-store`, s3://, http(s):// and webhdfs://: {MOUNT}"
        ),
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

pub(super) fn closest_names(names: &[String], known: &str) -> String {
    match (names.is_empty(), known.is_empty()) {
        (false, _) => format!("; the closest names are {}", quoted(names)),
        (true, false) => format!("; {known}"),
        (true, true) => String::new(),
    }
}

/// What to do about a level that is none; one that is nearly another is rarely so in one row alone.
pub(super) fn how_to_correct(closest: &Option<String>) -> String {
    match closest {
        Some(level) => format!("; they have `{level}`: write it alike in both tables, in every row"),
        None => ": correct it or remove the row".into(),
    }
}

/// Other columns with the same trouble, in a clause.
pub(super) fn other_columns(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" (and the like in {})", quoted(names)) }
}

/// The option that declares all of some texts missing, ready to be typed.
pub(super) fn missing_markers(value: &str, texts: &[String]) -> String {
    // A comma would end the marker, and what was cut is not what stands there.
    let usable = |t: &&String| !t.contains([',', '…', '⟩']);
    let mut all: Vec<String> = texts.iter().filter(usable).cloned().collect();
    if all.is_empty() {
        all.extend([value.to_owned()].iter().filter(usable).cloned());
    }
    if all.is_empty() { "⟨na⟩".into() } else { format!("⟨na={}⟩", all.join(",")) }
}

/// What to do about missing values: what a column without a value, and a target, leave to choose.
pub(super) fn missing_advice(columns: &[(String, u64)], needed: &[String], empty: &[String]) -> String {
    let others = columns.iter().filter(|(name, _)| !needed.contains(name) && !empty.contains(name)).count();
    let mut advice: Vec<String> = empty
        .iter()
        .filter(|name| !needed.contains(name))
        .map(|name| format!("`{name}` has no value at all: leave it out with ⟨drop={name}⟩"))
        .collect();
    if others > 0 {
        advice.push(
            "Choose ⟨missing=drop⟩ (leave such rows out), where nothing is released also ⟨missing=mean⟩ (fill in the mean or the \
             most frequent level), or ⟨drop⟩ the columns"
                .into(),
        );
    }
    if let Some(name) = needed.first() {
        advice.push(format!(
            "Nothing is filled in for `{name}`: leave such rows out with ⟨missing=drop⟩, or complete the column"
        ));
    }
    advice.join(". ")
}

pub(super) fn missing_columns(columns: &[(String, u64)]) -> String {
    columns.iter().map(|(name, count)| format!("`{name}` {count}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn more_classes(classes: &[String], more: bool) -> String {
    let list = quoted(classes);
    if more { format!("the classes {list} and more") } else { format!("the classes {list}") }
}

pub(super) fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}
