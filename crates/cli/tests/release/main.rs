//! Releases as a user makes them, and the informed attacker against every file that one publishes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod attacker;
mod loss;
mod statement;
mod support;
