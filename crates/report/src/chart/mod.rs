//! The charts of the page, as SVG.

mod curve;
mod histogram;
mod lines;
mod panel;
mod scatter;
mod series;

pub(crate) use curve::curve;
pub(crate) use histogram::{histogram, scored};
pub(crate) use lines::{Axis, Line, Lines, Point};
pub(crate) use panel::{names, panel};
pub(crate) use scatter::{Against, scatter};
pub(crate) use series::{Shown, legend, patterns, shown, swatch};
