//! Documents as self-contained HTML pages. Everything is [`markup::Html`], which escapes by construction.

pub(crate) mod chart;
pub(crate) mod digest;
mod follow;
mod markup;
pub(crate) mod net;
pub(crate) mod page;
mod parts;
mod svg;
mod table;
