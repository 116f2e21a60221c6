//! Documents as people read them.

pub(crate) mod html;
pub(crate) mod networks;
pub(crate) mod noise_words;
pub(crate) mod terminal;
pub(crate) mod words;
