//! Files of tokenisers.

use super::bpe::{Bpe, SpaceInFront, Symbols};
use super::scored::Scored;
use super::unreadable;
use crate::{Error, Result};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| unreadable(path, e.to_string()))
}

/// An error of [`Bpe::new`] with the file that it is about.
fn of(path: &Path) -> impl Fn(Error) -> Error + '_ {
    move |e| unreadable(path, e.to_string())
}

/// `vocab.json` and `merges.txt` of GPT-2.
pub(super) fn vocabulary_and_merges(vocabulary: &Path, merges: &Path) -> Result<Bpe> {
    let pieces: HashMap<String, u32> = serde_json::from_str(&text(vocabulary)?)
        .map_err(|e| unreadable(vocabulary, format!("not a map from pieces to ids: {e}")))?;
    let lines = text(merges)?;
    let mut pairs = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        // The first line may name the version; a merge may itself begin with '#'.
        if line.is_empty() || (number == 0 && line.starts_with("#version")) {
            continue;
        }
        pairs.push(pair(line).ok_or_else(|| {
            unreadable(
                merges,
                format!("line {}: expected two pieces with one space between them", number + 1),
            )
        })?);
    }
    let special: Vec<String> =
        ["<|endoftext|>"].into_iter().filter(|s| pieces.contains_key(*s)).map(str::to_owned).collect();
    Bpe::new(Symbols::Bytes { space_in_front: SpaceInFront::Never }, pieces, &pairs, &special, vec![])
        .map_err(of(merges))
}

fn pair(line: &str) -> Option<(String, String)> {
    let (a, b) = line.split_once(' ')?;
    (!a.is_empty() && !b.is_empty() && !b.contains(' ')).then(|| (a.to_owned(), b.to_owned()))
}

/// `tokenizer.json` of Hugging Face with a byte-pair encoding.
pub(super) fn tokenizer_json(path: &Path) -> Result<Bpe> {
    let root: Value =
        serde_json::from_str(&text(path)?).map_err(|e| unreadable(path, format!("not JSON: {e}")))?;
    let model = &root["model"];
    let refused = |reason: String| unreadable(path, reason);
    // Older files leave the type out.
    if let Some(kind) = model["type"].as_str().filter(|k| *k != "BPE") {
        return Err(refused(format!(
            "a tokeniser of type {kind}: byte-pair encodings (BPE) are read; encode the texts in Python and hand over token \
             ids"
        )));
    }
    let mut pieces = HashMap::new();
    let vocabulary = model["vocab"].as_object().ok_or_else(|| refused("model.vocab is no map".to_owned()))?;
    for (piece, id) in vocabulary {
        pieces.insert(
            piece.clone(),
            whole(id).ok_or_else(|| refused(format!("the id of \"{piece}\" is no number")))?,
        );
    }
    let mut special = Vec::new();
    for token in root["added_tokens"].as_array().into_iter().flatten() {
        let (Some(content), Some(id)) = (token["content"].as_str(), whole(&token["id"])) else {
            return Err(refused("an added token has no content or no id".to_owned()));
        };
        pieces.insert(content.to_owned(), id);
        special.push(content.to_owned());
    }
    let merges = model["merges"].as_array().ok_or_else(|| refused("model.merges is no list".to_owned()))?;
    let merges = merges
        .iter()
        .enumerate()
        .map(|(i, m)| merge(m).ok_or_else(|| refused(format!("merge {}: expected two pieces", i + 1))))
        .collect::<Result<Vec<_>>>()?;
    let front = front(&root["post_processor"], &pieces);
    let symbols = symbols(&root).map_err(refused)?;
    Bpe::new(symbols, pieces, &merges, &special, front).map_err(of(path))
}

fn whole(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|v| u32::try_from(v).ok())
}

fn merge(value: &Value) -> Option<(String, String)> {
    match value {
        Value::String(line) => pair(line),
        Value::Array(two) if two.len() == 2 => {
            Some((two[0].as_str()?.to_owned(), two[1].as_str()?.to_owned()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Steps of a normaliser or pre-tokeniser, a sequence opened.
fn steps<'a>(value: &'a Value, list: &str) -> Vec<&'a Value> {
    match value["type"].as_str() {
        None => vec![],
        Some("Sequence") => value[list].as_array().into_iter().flatten().collect(),
        Some(_) => vec![value],
    }
}

/// How text becomes symbols, from the normaliser and the pre-tokeniser.
fn symbols(root: &Value) -> std::result::Result<Symbols, String> {
    let cut = steps(&root["pre_tokenizer"], "pretokenizers");
    let normal = steps(&root["normalizer"], "normalizers");
    let kind = |v: &Value| v["type"].as_str().unwrap_or("").to_owned();
    if let [only] = cut[..]
        && kind(only) == "ByteLevel"
        && normal.is_empty()
        && only["use_regex"].as_bool() != Some(false)
    {
        let space_in_front = match only["add_prefix_space"].as_bool() {
            Some(true) => SpaceInFront::UnlessThere,
            Some(false) | None => SpaceInFront::Never,
        };
        return Ok(Symbols::Bytes { space_in_front });
    }
    let replaces = |v: &&Value| kind(v) == "Replace" && v["pattern"]["String"] == " " && v["content"] == "▁";
    let prepends = |v: &&Value| kind(v) == "Prepend" && v["prepend"] == "▁";
    if cut.is_empty() && !normal.is_empty() && normal.iter().all(|v| replaces(v) || prepends(v)) {
        let space_in_front =
            if normal.iter().any(prepends) { SpaceInFront::Always } else { SpaceInFront::Never };
        return Ok(Symbols::Characters { space_in_front });
    }
    if let [only] = cut[..]
        && kind(only) == "Metaspace"
        && only["replacement"] == "▁"
        && only["split"].as_bool() == Some(false)
        && normal.is_empty()
    {
        let never = only["prepend_scheme"] == "never";
        let space_in_front = if never { SpaceInFront::Never } else { SpaceInFront::UnlessThere };
        return Ok(Symbols::Characters { space_in_front });
    }
    let names: Vec<String> = normal.iter().chain(&cut).map(|v| kind(v)).collect();
    Err(format!(
        "text is prepared by {}: byte-level pieces as GPT-2's and spaces as ▁ as Llama 2's are read; encode the texts in \
         Python and hand over token ids",
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    ))
}

/// Tokens that a template puts in front of a text.
fn front(processor: &Value, pieces: &HashMap<String, u32>) -> Vec<u32> {
    let parts = steps(processor, "processors");
    let template = parts.iter().find(|v| v["type"] == "TemplateProcessing");
    let single = template.and_then(|t| t["single"].as_array());
    single
        .into_iter()
        .flatten()
        .take_while(|part| part["Sequence"].is_null())
        .filter_map(|part| pieces.get(part["SpecialToken"]["id"].as_str()?).copied())
        .collect()
}

/// `tokenizer.bin` of llama2.c: the longest piece's length, then score, length and bytes of each.
pub(super) fn scored(path: &Path) -> Result<Scored> {
    let bytes = std::fs::read(path).map_err(|e| unreadable(path, e.to_string()))?;
    let mut rest = bytes.get(4..).ok_or_else(|| unreadable(path, "empty: not a tokeniser of llama2.c"))?;
    let (mut pieces, mut scores) = (Vec::new(), Vec::new());
    let short = || unreadable(path, "ends within a piece: not a tokeniser of llama2.c, or not whole");
    while !rest.is_empty() {
        let (head, after) = rest.split_at_checked(8).ok_or_else(short)?;
        scores.push(f32::from_le_bytes([head[0], head[1], head[2], head[3]]));
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let (piece, after) = after.split_at_checked(length).ok_or_else(short)?;
        pieces.push(piece.to_vec());
        rest = after;
    }
    Scored::new(pieces, &scores).map_err(of(path))
}
