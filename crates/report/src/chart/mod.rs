//! The charts of the page, as SVG.

mod curve;
mod histogram;
mod scatter;
mod series;

pub(crate) use curve::curve;
pub(crate) use histogram::{histogram, scored};
pub(crate) use scatter::{Against, scatter};
pub(crate) use series::{Shown, legend, patterns, shown, swatch};
