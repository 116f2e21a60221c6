//! The charts of the pages, as SVG.

mod bars;
mod curve;
mod histogram;
mod lines;
mod panel;
mod scatter;
mod series;

pub(crate) use curve::curve;
pub(crate) use histogram::{histogram, of_network, scored};
pub(crate) use lines::{Axis, Line, Lines, Point};
pub(crate) use panel::{Drawn, panel};
pub(crate) use scatter::{Against, scatter};
pub(crate) use series::{Shown, legend, patterns, series_legend, shown, swatch};
