//! Text: from characters to the integers that a language model takes, the models that take them, and the game of guessing
//! what one was fine-tuned on.

pub mod canary;
pub mod model;
pub mod tokens;

pub use model::{Gpt2, LanguageModel, Layout, ModelFile, Trained, Tuned};
pub use tokens::Tokenizer;
