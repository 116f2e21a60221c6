//! Documents as people read them.

pub(crate) mod html;
pub(crate) mod networks;
pub(crate) mod pipeline;
pub(crate) mod terminal;
