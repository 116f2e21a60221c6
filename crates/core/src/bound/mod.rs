//! What any attacker can do at most who sees the output of a private mechanism and knows everything but a secret.
//!
//! The game (Guo et al. 2022, §3): the secret takes one of M values with prior p; the attacker knows the prior, the
//! mechanism and the rest of the data, sees the output and guesses once. `advantage = (P(success) − p*)/(1 − p*)`,
//! `p* = max p`.
//!
//! | module | bound | source |
//! |---|---|---|
//! | [`fano`] | from an upper bound on (Arimoto) information | Guo algorithms 1 and 2 |
//! | [`information`] | information of randomised response and of the Gaussian mechanism | Guo eq. 9, thm. 2 |
//! | [`testing`] | from hypothesis tests against a reference | `P ≤ Σ p_m Φ(Φ⁻¹(q_m) + r_m/σ)` |
//! | [`steps`] | the same over adaptive steps, each with its reference | Gaussian DP composes |
//! | `centres` | the same against several references at once, where candidates lie apart | convex duality |
//! | [`baseline`] | Balle et al., Salamatian et al. | |
//! | [`estimation`] | error of estimates: Cramér–Rao, van Trees | |
//! | [`optimal`] | what the best attacker does achieve: exactly, or simulated | Bayes |
//! | [`records`] | one bound for every record of a table, and their distribution | Guo §6.2 |
//! | [`table`] | all bounds that apply, the tightest first | |

pub mod baseline;
mod centres;
pub mod estimation;
pub mod fano;
pub mod information;
pub mod optimal;
pub mod prior;
pub mod records;
pub mod steps;
pub mod table;
pub mod testing;

pub use prior::{Encodings, Prior};
pub use records::RecordBounds;
pub use table::{Bounds, Channel, SuccessBound, bounds};
