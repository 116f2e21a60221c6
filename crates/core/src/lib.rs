//! The mathematics of Leakscope, over `f64` matrices. No files, no clock, no printing, no hidden randomness.
//!
//! | module | what it holds | formula |
//! |---|---|---|
//! | [`claim`] | the three kinds of number we show: measured, bound, observed | |
//! | [`error`] | what can go wrong, as data | |
//! | [`choice`] | choices that options, what they do and documents share | |
//! | [`num`] | distributions of a stream, special functions | |
//! | [`linalg`] | row-major products, symmetric decompositions | `C = A B` |
//! | [`rows`] | blocks of encoded rows and the fold over them | |
//! | [`pass`] | passes over rows as values, their states as bytes | |
//! | [`glm`] | generalised linear models and their minimiser | `w* = argmin Σ ωℓ(wᵀx, y) + nλ/2 ‖w‖²` |
//! | [`units`] | units that may be published, and a model in them | `x̃ = (x − c)/u` |
//! | [`special`] | normal distribution, exponentials in logarithms | `Φ, Φ⁻¹, ln Σ eˣ` |
//! | [`dp`] | differential-privacy accounting and calibration | `δ(ε) = sup_E P(E) − e^ε Q(E)` |
//! | [`bound`] | what any attacker can reconstruct at most | `P(success) ≤ 1 − f(p*)` |
//! | [`fisher`] | Fisher information loss of records, attributes, groups, data sets | `η = ‖J‖₂/σ` |
//! | [`measure`] | the one pass that measures every record, attribute and group | |
//! | [`balance`] | weights that give every record the same leakage | `ω ← n(ω/η)/Σ(ω/η)` |
//! | [`attack`] | attackers of the papers against a model, observed | `argmin_m ‖w' − w_m‖` |
//! | [`tell`] | how often two values of a record can be told apart | `P ≤ Φ(δ/2)` |
//! | [`release`] | the noise itself, exact on a grid | `P(k) ∝ e^{−k²/2s²}` |
//! | [`random`] | generators that callers hand in | |
//!
//! Arrows run one way: `error, claim, special, linalg ← rows ← pass ← num, glm ← units ← fisher ← measure, tell, balance, attack`
//! and `special, claim, num ← dp ← bound`.

pub mod attack;
pub mod balance;
pub mod bound;
pub mod choice;
pub mod claim;
pub mod dp;
pub mod error;
pub mod fisher;
pub mod glm;
pub mod linalg;
pub mod measure;
pub mod num;
pub mod pass;
pub mod random;
pub mod release;
pub mod rows;
pub mod special;
pub mod tell;
pub mod units;
mod vector;

pub use error::{Error, Result};
