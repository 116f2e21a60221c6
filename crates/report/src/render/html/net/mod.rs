//! The pages of networks.

mod attributes;
mod elements;
mod page;
mod score;
mod training;

pub use page::page;
pub use training::training_page;

pub(crate) use page::described;
pub(crate) use score::interval;
pub(crate) use training::accountants;
