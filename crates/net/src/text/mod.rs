//! Text: from characters to the integers that a language model takes, and the models that take them.

pub mod model;
pub mod tokens;

pub use model::{LanguageModel, Trained};
pub use tokens::Tokenizer;
