//! Texts from files and memory, as tokens.

use crate::{Failure, Result};
use leakscope_net::text::Tokenizer;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What becomes of a text that is longer than the context of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Long {
    /// An error that names it
    #[default]
    Refuse,
    /// Cut into pieces of the context's length, each a text of its own
    Split,
}

/// A text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number among all, from 1.
    pub(super) number: usize,
    /// File and line for messages.
    pub(super) place: String,
    pub(super) text: String,
}

/// A text in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    /// `12`, or `12.2` for its second piece.
    pub(super) name: String,
    pub(super) ids: Vec<u32>,
}

/// Texts of files, one a line or a field of JSON lines; and those in memory.
pub(super) fn lines(files: &[PathBuf], list: &[String], field: Option<&str>) -> Result<Vec<Line>> {
    let mut out = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::Data(format!("{}: cannot read it: {e}", file.display())))?;
        let json = is_json(file);
        if json && field.is_none() {
            let message = format!("{} has JSON lines: name the field with the text", file.display());
            return Err(Failure::option("field", message));
        }
        let count = text.lines().count();
        for (i, line) in text.lines().enumerate() {
            let place = format!("{}, line {}", file.display(), i + 1);
            // an empty line at the end is the end of the file
            if line.trim().is_empty() && i + 1 == count {
                continue;
            }
            let text = match field {
                Some(field) => of_json(line, field, &place)?,
                None => line.to_owned(),
            };
            out.push(Line { number: out.len() + 1, place, text });
        }
    }
    for (i, text) in list.iter().enumerate() {
        out.push(Line { number: out.len() + 1, place: format!("text {i}"), text: text.clone() });
    }
    if let Some(empty) = out.iter().find(|l| l.text.trim().is_empty()) {
        return Err(Failure::Data(format!("{}: the text is empty: leave it out", empty.place)));
    }
    match out.is_empty() {
        true => Err(Failure::Data("there is no text: give a file with one a line".into())),
        false => Ok(out),
    }
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "jsonl" || e == "ndjson")
}

fn of_json(line: &str, field: &str, place: &str) -> Result<String> {
    let bad = |reason: String| Failure::Data(format!("{place}: {reason}"));
    let value: serde_json::Value = serde_json::from_str(line).map_err(|e| bad(format!("no JSON: {e}")))?;
    match value.get(field) {
        Some(serde_json::Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(bad(format!("`{field}` is no text"))),
        None => {
            let known: Vec<&str> =
                value.as_object().iter().flat_map(|o| o.keys()).map(String::as_str).collect();
            Err(bad(format!("there is no field `{field}`; there are {}", known.join(", "))))
        }
    }
}

/// Texts in tokens, none longer than the context.
pub(super) fn tokens(
    lines: &[Line],
    tokenizer: &Tokenizer,
    context: usize,
    long: Long,
) -> Result<Vec<Tokens>> {
    let mut out = Vec::new();
    for line in lines {
        let ids = tokenizer.encode(&line.text).map_err(|e| Failure::Data(format!("{}: {e}", line.place)))?;
        if ids.len() < 2 {
            let message = format!(
                "{}: the text has one token, and two are needed: one to read, one to predict",
                line.place
            );
            return Err(Failure::Data(message));
        }
        if ids.len() <= context {
            out.push(Tokens { name: line.number.to_string(), ids });
            continue;
        }
        if long == Long::Refuse {
            return Err(Failure::Data(format!(
                "{}: the text has {} tokens, and the model takes {context}: shorten it, or cut such texts with ⟨long=split⟩",
                line.place,
                ids.len()
            )));
        }
        let pieces: Vec<&[u32]> = ids.chunks(context).collect();
        for (i, piece) in pieces.iter().enumerate() {
            // one token alone predicts nothing: it takes the one before it along
            let ids = match piece.len() {
                1 => ids[ids.len() - 2..].to_vec(),
                _ => piece.to_vec(),
            };
            out.push(Tokens { name: format!("{}.{}", line.number, i + 1), ids });
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn lines_and_fields_are_texts() {
        let (_folder, path) = written("a.txt", "one two\nthree\n\n");
        let all = lines(&[path], &["four".into()], None).unwrap();
        assert_eq!(all.iter().map(|l| l.text.as_str()).collect::<Vec<_>>(), ["one two", "three", "four"]);
        let (_folder, path) = written("a.jsonl", "{\"note\": \"a b\", \"n\": 1}\n");
        assert_eq!(lines(&[path], &[], Some("note")).unwrap()[0].text, "a b");
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (name, text, field, says) in [
            ("a.txt", "one\n\ntwo\n", None, "line 2: the text is empty"),
            ("a.txt", "", None, "there is no text"),
            ("a.jsonl", "{}\n", None, "name the field"),
            (
                "a.jsonl",
                "{\"a\": \"x\"}\n{\"b\": \"x\"}\n",
                Some("a"),
                "line 2: there is no field `a`; there are b",
            ),
            ("a.jsonl", "{\"a\": 3}\n", Some("a"), "`a` is no text"),
            ("a.jsonl", "a\n", Some("a"), "no JSON"),
        ] {
            let (_folder, path) = written(name, text);
            let error = lines(&[path], &[], field).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        assert!(lines(&["nowhere.txt".into()], &[], None).unwrap_err().to_string().contains("nowhere.txt"));
    }
}
