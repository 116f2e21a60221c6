//! Documents as text for a terminal.

mod account;
mod audit;
mod calibrate;
mod canary;
mod comparison;
mod informed;
mod inversion;
mod layout;
mod membership;
pub(crate) mod net;
mod pen;
mod text;

pub use account::account_summary;
pub use audit::summary;
pub use calibrate::calibration;
pub use canary::canary_summary;
pub use comparison::comparison_summary;
pub use informed::informed_summary;
pub use inversion::inversion_summary;
pub use layout::laid_out;
pub use membership::membership_summary;
pub use text::text_audit_summary;
