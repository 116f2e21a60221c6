//! Where GPT-2 cuts a text before it joins bytes: words with the space before them, numbers, signs, blanks.
//!
//! The pattern `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, read from left to right.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Number,
    Blank,
    Sign,
}

fn kind(c: char) -> Kind {
    if c.is_whitespace() {
        return Kind::Blank;
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Letter => Kind::Letter,
        GeneralCategoryGroup::Number => Kind::Number,
        GeneralCategoryGroup::Mark
        | GeneralCategoryGroup::Punctuation
        | GeneralCategoryGroup::Symbol
        | GeneralCategoryGroup::Separator
        | GeneralCategoryGroup::Other => Kind::Sign,
    }
}

const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The pieces of a text, in order; together they are the text.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(first(rest));
        words.push(word);
        rest = after;
    }
    words
}

/// Bytes of the first piece of a text that is not empty.
fn first(text: &str) -> usize {
    if let Some(c) = CONTRACTIONS.iter().find(|c| text.starts_with(**c)) {
        return c.len();
    }
    let run = |from: usize, of: Kind| {
        text[from..].char_indices().find(|&(_, c)| kind(c) != of).map_or(text.len(), |(at, _)| from + at)
    };
    // A plain space goes with what follows it.
    let lead = usize::from(text.starts_with(' '));
    match text[lead..].chars().next().map(kind) {
        Some(of @ (Kind::Letter | Kind::Number | Kind::Sign)) => run(lead, of),
        Some(Kind::Blank) | None => {
            let end = run(0, Kind::Blank);
            if end == text.len() {
                return end;
            }
            // Blanks before a word leave their last one to it, where there are several.
            let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
            if end > last { end - last } else { end }
        }
    }
}
