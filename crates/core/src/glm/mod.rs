//! Generalised linear models: the families and their derivatives, the minimiser, and what noise costs.

mod family;
mod fit;
mod kind;
mod minimiser;
pub mod softmax;
mod sums;
mod utility;

pub use family::{Family, Parameter, Terms};
pub use fit::{Fit, Penalty, TOLERANCE, distance, evaluate, evaluate_by, fit, fit_by};
pub use kind::{ModelKind, ModelName};
pub use minimiser::{Fitted, Minimiser};
pub use sums::{HuberStart, LogStart, Newton, Sums};
pub use utility::{Metric, Utility, UtilityCurve};

#[cfg(test)]
pub(crate) use family::tests::every as every_family;
