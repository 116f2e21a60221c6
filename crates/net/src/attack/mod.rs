//! Attacks on networks. What they achieve is evidence, never a guarantee.
//!
//! | module | the attacker sees | and wants |
//! |---|---|---|
//! | [`sight`] | one gradient: open, clipped, noisy, or weights before and after local steps | |
//! | [`inversion`] | the same | the records it is of |
//! | [`informed`] | a model, all other records, and how such models are trained | the last record |
//! | [`membership`] | a model, and how such models are trained | who was in its training |

pub mod informed;
pub mod inversion;
pub mod membership;
pub mod sight;
