//! Documents as text for a terminal.

mod audit;
mod calibrate;
pub(crate) mod net;
mod pen;

pub use audit::summary;
pub use calibrate::calibration;
