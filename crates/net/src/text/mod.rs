//! Text: from characters to the integers that a language model takes.

pub mod tokens;

pub use tokens::Tokenizer;
