//! The pages of networks.

mod attributes;
mod elements;
mod informed;
mod inversion;
mod membership;
mod page;
mod score;
mod training;

pub use informed::{InformedPictures, informed_page};
pub use inversion::{InversionPictures, Reconstructed, inversion_page};
pub use membership::membership_page;
pub use page::page;
pub use training::training_page;

pub(crate) use page::described;
pub(crate) use score::interval;
pub(crate) use training::accountants;
