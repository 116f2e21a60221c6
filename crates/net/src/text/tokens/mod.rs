//! Tokenisers: text to token ids and back, as the model was trained with.
//!
//! | files | kind | module |
//! |---|---|---|
//! | `vocab.json` + `merges.txt`, `tokenizer.json` with byte-level pieces | byte-pair encoding of GPT-2 | [`bpe`] |
//! | `tokenizer.json` with byte fallback | byte-pair encoding of Llama 2 | [`bpe`] |
//! | `tokenizer.bin` | pieces with scores of llama2.c | [`scored`] |
//!
//! A tokeniser never loses text: [`Tokenizer::decode`] of [`Tokenizer::encode`] is the text again (but for a space that
//! some put in front).

pub mod bpe;
mod bytes;
mod file;
mod merge;
pub mod scored;
mod split;

use crate::{Error, Result};
use bpe::Bpe;
use scored::Scored;
use std::borrow::Cow;
use std::path::Path;

/// Text to token ids and back.
#[derive(Debug, Clone)]
pub enum Tokenizer {
    /// Merges with ranks.
    Bpe(Box<Bpe>),
    /// Pieces with scores.
    Scored(Scored),
}

impl Tokenizer {
    /// Reads the tokeniser of a model's folder (`tokenizer.json`, or `vocab.json` with `merges.txt`, or `tokenizer.bin`), or a file
    /// of one of these names or kinds.
    ///
    /// # Errors
    /// [`Error::File`] where there is none, or where it is of a kind that is not read, with what to do.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return match path.extension().and_then(|e| e.to_str()) {
                Some("json") => file::tokenizer_json(path).map(|bpe| Self::Bpe(Box::new(bpe))),
                Some("bin") => file::scored(path).map(Self::Scored),
                _ => Err(unreadable(
                    path,
                    "not a tokeniser: expected tokenizer.json, or tokenizer.bin of llama2.c",
                )),
            };
        }
        let (json, vocabulary) = (path.join("tokenizer.json"), path.join("vocab.json"));
        let scored = path.join("tokenizer.bin");
        if json.is_file() {
            file::tokenizer_json(&json).map(|bpe| Self::Bpe(Box::new(bpe)))
        } else if vocabulary.is_file() {
            file::vocabulary_and_merges(&vocabulary, &path.join("merges.txt"))
                .map(|bpe| Self::Bpe(Box::new(bpe)))
        } else if scored.is_file() {
            file::scored(&scored).map(Self::Scored)
        } else {
            Err(unreadable(
                path,
                "no tokeniser in this folder: expected tokenizer.json, vocab.json with merges.txt, or tokenizer.bin",
            ))
        }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        match self {
            Self::Bpe(t) => t.len(),
            Self::Scored(t) => t.len(),
        }
    }

    /// Whether there is no token (never, for one that was read).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Token ids of a text, with what the tokeniser puts in front of every text.
    ///
    /// # Errors
    /// [`Error::Format`] where a character has no token and there is none for unknown ones.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        match self {
            Self::Bpe(t) => t.encode(text),
            Self::Scored(t) => t.encode(text),
        }
    }

    /// Token ids of a text that continues another one: nothing is put in front.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub fn encode_on(&self, text: &str) -> Result<Vec<u32>> {
        match self {
            Self::Bpe(t) => t.pieces_of(text),
            Self::Scored(t) => t.pieces_of(text),
        }
    }

    /// The text of tokens; bytes that are no UTF-8 become replacement characters.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let mut bytes = Vec::new();
        for (i, &id) in ids.iter().enumerate() {
            let piece = self.bytes(id)?;
            // llama2.c: the space that was put in front goes again, after the token that opens a text.
            let opened = i > 0 && self.opens(ids[i - 1]);
            bytes.extend_from_slice(if opened { piece.strip_prefix(b" ").unwrap_or(&piece) } else { &piece });
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(match self {
            Self::Bpe(t) => t.without_prefix(text),
            Self::Scored(_) => text,
        })
    }

    /// The text of one token, for people to read.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an id outside the vocabulary.
    pub fn piece(&self, id: u32) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(id)?).into_owned())
    }

    fn opens(&self, id: u32) -> bool {
        match self {
            Self::Bpe(_) => false,
            Self::Scored(_) => id == scored::OPENS,
        }
    }

    fn bytes(&self, id: u32) -> Result<Cow<'_, [u8]>> {
        let piece = match self {
            Self::Bpe(t) => t.bytes(id),
            Self::Scored(t) => t.bytes(id).map(Cow::Borrowed),
        };
        piece.ok_or(Error::OutOfRange {
            subject: "a token",
            value: f64::from(id),
            expected: "an id of the vocabulary",
        })
    }
}

fn unreadable(path: &Path, reason: impl Into<String>) -> Error {
    Error::File { path: path.display().to_string(), reason: reason.into() }
}

#[cfg(test)]
mod tests;
