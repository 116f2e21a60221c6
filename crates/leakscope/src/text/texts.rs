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
    /// Whose it is, where that is asked for.
    pub(super) user: Option<String>,
}

/// What is read of texts: fields of JSON lines, and the users of texts in memory.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields<'a> {
    /// The field with the text.
    pub(super) text: Option<&'a str>,
    /// The field that says whose it is.
    pub(super) user: Option<&'a str>,
    /// The same for texts in memory, one for each; empty where nobody asked.
    pub(super) users: &'a [String],
}

/// A text in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tokens {
    /// `12`, or `12.2` for its second piece.
    pub(super) name: String,
    /// Which of the lines it is, or is a piece of.
    pub(super) line: usize,
    pub(super) ids: Vec<u32>,
}

/// Texts of files, one a line or a field of JSON lines; and those in memory.
pub(super) fn lines(files: &[PathBuf], list: &[String], fields: Fields<'_>) -> Result<Vec<Line>> {
    if let (Some(_), None, false) = (fields.user, fields.text, files.is_empty()) {
        let message = "users are a field of JSON lines: name the field with the text too";
        return Err(Failure::option("field", message));
    }
    let mut out = Vec::new();
    for file in files {
        if let Some(kind) = table_kind(file) {
            return Err(Failure::Data(format!(
                "{} is {kind}: texts are read one a line, or from JSON lines (.jsonl) with ⟨field⟩; write the column of texts to such a \
                 file",
                file.display()
            )));
        }
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::Data(format!("{}: cannot read it: {e}", file.display())))?;
        let json = is_json(file);
        if json && fields.text.is_none() {
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
            let (text, user) = match fields.text {
                Some(field) => of_json(line, (field, fields.user), &place)?,
                None => (line.to_owned(), None),
            };
            out.push(Line { number: out.len() + 1, place, text, user });
        }
    }
    for (i, text) in list.iter().enumerate() {
        let (number, place) = (out.len() + 1, format!("text {i}"));
        out.push(Line { number, place, text: text.clone(), user: fields.users.get(i).cloned() });
    }
    if let Some(empty) = out.iter().find(|l| l.text.trim().is_empty()) {
        return Err(Failure::Data(format!("{}: the text is empty: leave it out", empty.place)));
    }
    match out.is_empty() {
        true => Err(Failure::Data("there is no text: give a file with one a line".into())),
        false => Ok(out),
    }
}

/// What a file is that holds a table and no texts, by its name.
fn table_kind(file: &Path) -> Option<&'static str> {
    let extension = file.extension()?.to_string_lossy().to_lowercase();
    match extension.as_str() {
        "csv" | "tsv" => Some("a table (CSV)"),
        "parquet" | "pq" => Some("a table (Parquet)"),
        "feather" | "arrow" | "ipc" => Some("a table (Feather)"),
        "xlsx" | "xls" | "ods" => Some("a spreadsheet"),
        "gz" | "zip" | "zst" => Some("compressed"),
        _ => None,
    }
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|e| e == "jsonl" || e == "ndjson")
}

/// The text of a line, and whose it is where that is asked for.
fn of_json(line: &str, (field, user): (&str, Option<&str>), place: &str) -> Result<(String, Option<String>)> {
    let bad = |reason: String| Failure::Data(format!("{place}: {reason}"));
    let value: serde_json::Value = serde_json::from_str(line).map_err(|e| bad(format!("no JSON: {e}")))?;
    let missing = |field: &str| {
        let known: Vec<&str> = value.as_object().iter().flat_map(|o| o.keys()).map(String::as_str).collect();
        bad(format!("there is no field `{field}`; there are {}", known.join(", ")))
    };
    let text = match value.get(field) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(_) => return Err(bad(format!("`{field}` is no text"))),
        None => return Err(missing(field)),
    };
    let user = match user.map(|user| (user, value.get(user))) {
        None => None,
        Some((_, Some(serde_json::Value::String(name)))) if !name.trim().is_empty() => Some(name.clone()),
        Some((_, Some(serde_json::Value::Number(number)))) => Some(number.to_string()),
        Some((user, Some(_))) => {
            return Err(bad(format!(
                "`{user}` names nobody: expected a text or a number that says whose it is"
            )));
        }
        Some((user, None)) => return Err(missing(user)),
    };
    Ok((text, user))
}

/// Texts in tokens, none longer than the context.
pub(super) fn tokens(
    lines: &[Line],
    tokenizer: &Tokenizer,
    context: usize,
    long: Long,
) -> Result<Vec<Tokens>> {
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let ids = tokenizer.encode(&line.text).map_err(|e| Failure::Data(format!("{}: {e}", line.place)))?;
        if ids.len() < 2 {
            let message = format!(
                "{}: the text has one token, and two are needed: one to read, one to predict",
                line.place
            );
            return Err(Failure::Data(message));
        }
        if ids.len() <= context {
            out.push(Tokens { name: line.number.to_string(), line: at, ids });
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
            out.push(Tokens { name: format!("{}.{}", line.number, i + 1), line: at, ids });
        }
    }
    Ok(out)
}

/// Refuses tokens that the model does not have: the tokeniser is of another one.
pub(super) fn check_vocabulary(texts: &[Tokens], lines: &[Line], vocabulary: usize) -> Result<()> {
    let stray = |t: &&Tokens| t.ids.iter().any(|id| *id as usize >= vocabulary);
    match texts.iter().find(stray) {
        None => Ok(()),
        Some(t) => {
            let token = t.ids.iter().max().copied().unwrap_or(0);
            let message = format!(
                "{}: the text has token {token}, and the model knows tokens 0 to {}: name the tokeniser of this model",
                lines[t.line].place,
                vocabulary - 1
            );
            Err(Failure::option("tokenizer", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: Option<&str>) -> Fields<'_> {
        Fields { text, ..Fields::default() }
    }

    #[test]
    fn users_must_be_named() {
        for (text, says) in [
            ("{\"a\": \"x\"}\n", "there is no field `who`; there are a"),
            ("{\"a\": \"x\", \"who\": null}\n", "`who` names nobody"),
            ("{\"a\": \"x\", \"who\": \" \"}\n", "`who` names nobody"),
        ] {
            let (_folder, path) = written("a.jsonl", text);
            let fields = Fields { user: Some("who"), ..field(Some("a")) };
            let error = lines(&[path], &[], fields).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        let (_folder, path) = written("a.txt", "one\n");
        let fields = Fields { user: Some("who"), ..Fields::default() };
        assert!(lines(&[path], &[], fields).unwrap_err().to_string().contains("name the field"));
    }

    fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn lines_and_fields_are_texts() {
        let (_folder, path) = written("a.txt", "one two\nthree\n\n");
        let all = lines(&[path], &["four".into()], Fields::default()).unwrap();
        assert_eq!(all.iter().map(|l| l.text.as_str()).collect::<Vec<_>>(), ["one two", "three", "four"]);
        let (_folder, path) = written("a.jsonl", "{\"note\": \"a b\", \"n\": 1}\n");
        assert_eq!(lines(std::slice::from_ref(&path), &[], field(Some("note"))).unwrap()[0].text, "a b");
        let users = Fields { user: Some("n"), ..field(Some("note")) };
        assert_eq!(lines(&[path], &[], users).unwrap()[0].user.as_deref(), Some("1"));
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
            let error = lines(&[path], &[], self::field(field)).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        assert!(
            lines(&["nowhere.txt".into()], &[], Fields::default())
                .unwrap_err()
                .to_string()
                .contains("nowhere.txt")
        );
    }
}
