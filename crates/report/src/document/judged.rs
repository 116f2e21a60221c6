//! What a page comes down to, beside its numbers: for whoever reads the file and not the page.

use super::choice::Colour;
use serde::{Deserialize, Serialize};

/// The colour of a page and its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The colour.
    pub colour: Colour,
    /// A few words on it.
    pub headline: String,
    /// The sentences below them.
    pub text: String,
}
