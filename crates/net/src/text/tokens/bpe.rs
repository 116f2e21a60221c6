//! Byte-pair encoding: merges with ranks, over bytes (GPT-2) or characters with bytes to fall back on (Llama 2).

use super::{bytes, merge, split};
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::HashMap;

/// Whether a space goes in front of every text that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceInFront {
    /// Never.
    Never,
    /// Always.
    Always,
    /// Unless the text begins with one.
    UnlessThere,
}

/// How text becomes the first symbols, and symbols become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// Bytes, written as printable characters; words are cut by GPT-2's pattern.
    Bytes {
        /// Whether a space goes in front of every text.
        space_in_front: SpaceInFront,
    },
    /// Characters, spaces as `▁`; a character without a token falls back on its bytes, `<0x0A>`.
    Characters {
        /// Whether a space goes in front of every text.
        space_in_front: SpaceInFront,
    },
}

impl Symbols {
    fn space_in_front(self) -> SpaceInFront {
        match self {
            Self::Bytes { space_in_front } | Self::Characters { space_in_front } => space_in_front,
        }
    }
}

/// The sign that stands for a space between characters.
const SPACE: char = '▁';

/// Merges with ranks.
#[derive(Debug, Clone)]
pub struct Bpe {
    symbols: Symbols,
    pieces: Vec<String>,
    ids: HashMap<String, u32>,
    /// Rank and result of joining two tokens.
    merges: HashMap<(u32, u32), (u32, u32)>,
    /// Tokens that are found in a text before anything else, longest first.
    special: Vec<(String, u32)>,
    /// What goes in front of every text.
    front: Vec<u32>,
    table: [char; 256],
}

impl Bpe {
    /// From a vocabulary (piece to id), merges in order of rank, and special tokens.
    ///
    /// # Errors
    /// [`Error::Format`] for ids with gaps or doubles, and for a merge of pieces that the vocabulary lacks.
    pub fn new(
        symbols: Symbols,
        vocabulary: HashMap<String, u32>,
        merges: &[(String, String)],
        special: &[String],
        front: Vec<u32>,
    ) -> Result<Self> {
        let mut pieces = vec![None; vocabulary.len()];
        for (piece, &id) in &vocabulary {
            match pieces.get_mut(id as usize) {
                Some(slot @ None) => *slot = Some(piece.clone()),
                Some(Some(_)) => return Err(unfit(format!("two pieces have the id {id}"))),
                None => {
                    return Err(unfit(format!(
                        "the id {id} of \"{piece}\" leaves a gap: {} pieces",
                        vocabulary.len()
                    )));
                }
            }
        }
        let pieces: Vec<String> = pieces.into_iter().flatten().collect();
        let id = |piece: &str, line: usize| {
            vocabulary.get(piece).copied().ok_or_else(|| {
                unfit(format!("merge {line} is about \"{piece}\", which the vocabulary lacks"))
            })
        };
        let mut joined = HashMap::with_capacity(merges.len());
        for (rank, (a, b)) in merges.iter().enumerate() {
            let whole = id(&format!("{a}{b}"), rank + 1)?;
            joined.entry((id(a, rank + 1)?, id(b, rank + 1)?)).or_insert((rank as u32, whole));
        }
        let mut special: Vec<(String, u32)> = special
            .iter()
            .map(|s| vocabulary.get(s).map(|&id| (s.clone(), id)))
            .collect::<Option<_>>()
            .ok_or_else(|| unfit("a special token is not in the vocabulary".to_owned()))?;
        special.sort_by_key(|(s, _)| std::cmp::Reverse(s.len()));
        let table = bytes::characters();
        Ok(Self { symbols, pieces, ids: vocabulary, merges: joined, special, front, table })
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Token ids of a text, with what goes in front of every text.
    ///
    /// # Errors
    /// [`Error::Format`] where a character has no token.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = self.front.clone();
        let space = match self.symbols.space_in_front() {
            SpaceInFront::Never => false,
            SpaceInFront::Always => !text.is_empty(),
            SpaceInFront::UnlessThere => !text.is_empty() && !text.starts_with(' '),
        };
        ids.extend(if space { self.pieces_of(&format!(" {text}"))? } else { self.pieces_of(text)? });
        Ok(ids)
    }

    /// Token ids of a text with nothing in front.
    ///
    /// # Errors
    /// As for [`encode`](Self::encode).
    pub fn pieces_of(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        let mut rest = text;
        while let Some((at, special, id)) = self.next_special(rest) {
            self.plain(&rest[..at], &mut ids)?;
            ids.push(id);
            rest = &rest[at + special..];
        }
        self.plain(rest, &mut ids)?;
        Ok(ids)
    }

    /// Where the first special token of a text is, its length and id.
    fn next_special(&self, text: &str) -> Option<(usize, usize, u32)> {
        let hits =
            self.special.iter().filter_map(|(s, id)| text.find(s.as_str()).map(|at| (at, s.len(), *id)));
        hits.min_by_key(|&(at, length, _)| (at, std::cmp::Reverse(length)))
    }

    fn plain(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let join = |a, b| self.merges.get(&(a, b)).copied();
        match self.symbols {
            Symbols::Bytes { .. } => {
                for word in split::words(text) {
                    let symbols = word.bytes().map(|b| self.id_of_byte(b)).collect::<Result<_>>()?;
                    ids.extend(merge::merged(symbols, join));
                }
            }
            Symbols::Characters { .. } => {
                let mut symbols = Vec::new();
                for c in text.chars() {
                    self.character(if c == ' ' { SPACE } else { c }, &mut symbols)?;
                }
                ids.extend(merge::merged(symbols, join));
            }
        }
        Ok(())
    }

    fn id_of_byte(&self, byte: u8) -> Result<u32> {
        let piece = self.table[usize::from(byte)].to_string();
        self.ids.get(&piece).copied().ok_or_else(|| unfit(format!("no token for the byte {byte:#04x}")))
    }

    fn character(&self, c: char, symbols: &mut Vec<u32>) -> Result<()> {
        if let Some(&id) = self.ids.get(c.encode_utf8(&mut [0; 4]) as &str) {
            symbols.push(id);
            return Ok(());
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            let fallback = format!("<0x{byte:02X}>");
            let id = self.ids.get(&fallback);
            symbols.push(*id.ok_or_else(|| {
                unfit(format!("no token for the character \"{c}\", and none for its bytes"))
            })?);
        }
        Ok(())
    }

    /// The bytes of one token.
    pub(super) fn bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        let piece = self.pieces.get(id as usize)?;
        Some(match self.symbols {
            Symbols::Bytes { .. } => match bytes::spelled(piece, &self.table) {
                Some(bytes) => Cow::Owned(bytes),
                None => Cow::Borrowed(piece.as_bytes()),
            },
            Symbols::Characters { .. } => match super::scored::fallback(piece.as_bytes()) {
                Some(byte) => Cow::Owned(vec![byte]),
                None => Cow::Owned(piece.replace(SPACE, " ").into_bytes()),
            },
        })
    }

    /// A decoded text without the space that [`encode`](Self::encode) put in front.
    pub(super) fn without_prefix(&self, text: String) -> String {
        match self.symbols {
            Symbols::Characters { space_in_front: SpaceInFront::Always | SpaceInFront::UnlessThere } => {
                text.strip_prefix(' ').map(str::to_owned).unwrap_or(text)
            }
            Symbols::Bytes { .. } | Symbols::Characters { space_in_front: SpaceInFront::Never } => text,
        }
    }
}

fn unfit(reason: String) -> Error {
    Error::Format { subject: "the tokeniser", reason }
}
