//! Sentences for a person at a terminal, and for a programme behind a pipe.

use std::io::IsTerminal;

/// A text as it goes to `stream`: laid out where that is a terminal, a paragraph a line elsewhere, so that lines can be searched.
pub(crate) fn laid_out(text: String, stream: &impl IsTerminal) -> String {
    if stream.is_terminal() { leakscope_report::laid_out(&text) } else { text }
}
