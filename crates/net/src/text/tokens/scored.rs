//! The tokeniser of llama2.c: pieces with scores; of two neighbours whose union is a piece, the one of the highest score first.

use super::merge;
use crate::{Error, Result};
use std::collections::HashMap;

/// The token that opens every text.
pub(super) const OPENS: u32 = 1;
/// Tokens before those of the 256 bytes.
const BEFORE_BYTES: u32 = 3;

/// Pieces with scores.
#[derive(Debug, Clone)]
pub struct Scored {
    pieces: Vec<Vec<u8>>,
    /// Order of a piece among all by falling score: a smaller one is joined first.
    order: Vec<u32>,
    ids: HashMap<Vec<u8>, u32>,
}

impl Scored {
    /// From pieces and their scores.
    ///
    /// # Errors
    /// [`Error::Format`] for fewer pieces than bytes need and for a score that is no number.
    pub fn new(pieces: Vec<Vec<u8>>, scores: &[f32]) -> Result<Self> {
        let unfit = |reason: String| Error::Format { subject: "the tokeniser", reason };
        if pieces.len() != scores.len() || pieces.len() < BEFORE_BYTES as usize + 256 {
            return Err(unfit(format!(
                "{} pieces: expected three and 256 for the bytes at least",
                pieces.len()
            )));
        }
        if let Some(i) = scores.iter().position(|s| s.is_nan()) {
            return Err(unfit(format!("the score of piece {i} is no number")));
        }
        let mut falling: Vec<f32> = scores.to_vec();
        falling.sort_by(|a, b| b.total_cmp(a));
        falling.dedup();
        let order = scores.iter().map(|s| falling.partition_point(|v| v > s) as u32).collect();
        let mut ids = HashMap::with_capacity(pieces.len());
        for (id, piece) in pieces.iter().enumerate() {
            ids.entry(piece.clone()).or_insert(id as u32);
        }
        Ok(Self { pieces, order, ids })
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Token ids of a text: the opening token, a space where the text is not empty, the text.
    ///
    /// # Errors
    /// None today.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let mut symbols = Vec::new();
        if !text.is_empty() {
            symbols.extend(self.ids.get(b" ".as_slice()).copied().or(Some(byte(b' '))));
        }
        self.characters(text, &mut symbols);
        let mut ids = vec![OPENS];
        ids.extend(self.joined(symbols));
        Ok(ids)
    }

    /// Token ids of a text with nothing in front.
    ///
    /// # Errors
    /// None today.
    pub fn pieces_of(&self, text: &str) -> Result<Vec<u32>> {
        let mut symbols = Vec::new();
        self.characters(text, &mut symbols);
        Ok(self.joined(symbols))
    }

    fn characters(&self, text: &str, symbols: &mut Vec<u32>) {
        for c in text.chars() {
            let mut buffer = [0; 4];
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            match self.ids.get(bytes) {
                Some(&id) => symbols.push(id),
                None => symbols.extend(bytes.iter().map(|&b| byte(b))),
            }
        }
    }

    fn joined(&self, symbols: Vec<u32>) -> Vec<u32> {
        merge::merged(symbols, |a, b| {
            let whole = [self.pieces[a as usize].as_slice(), &self.pieces[b as usize]].concat();
            self.ids.get(&whole).map(|&id| (self.order[id as usize], id))
        })
    }

    /// The bytes of one token.
    pub(super) fn bytes(&self, id: u32) -> Option<&[u8]> {
        const EVERY: [u8; 256] = {
            let mut bytes = [0; 256];
            let mut i = 0;
            while i < 256 {
                bytes[i] = i as u8;
                i += 1;
            }
            bytes
        };
        let piece = self.pieces.get(id as usize)?;
        Some(match fallback(piece) {
            Some(byte) => std::slice::from_ref(&EVERY[usize::from(byte)]),
            None => piece,
        })
    }
}

/// The token of a byte.
fn byte(byte: u8) -> u32 {
    BEFORE_BYTES + u32::from(byte)
}

/// The byte of a piece that stands for one, `<0x0A>`.
pub(super) fn fallback(piece: &[u8]) -> Option<u8> {
    let digits = piece.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    (digits.len() == 2).then(|| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).flatten()
}
