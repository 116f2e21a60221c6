//! Seeds of what is no secret: splits, probes, starts, attacks. The noise that protects never comes from here.

use std::hash::{BuildHasher, Hasher};

/// A seed drawn from the system; 53 bits survive a trip through JSON readers that know doubles alone.
pub fn draw() -> u64 {
    // The standard library seeds its hash maps from the system.
    std::hash::RandomState::new().build_hasher().finish() >> 11
}
