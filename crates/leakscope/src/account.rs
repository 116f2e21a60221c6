//! What a sequence of noisy releases costs, by every accountant that applies.

use crate::mechanism::{ReleaseStep, composed};
use crate::{Failure, Result};
use leakscope_core::dp::{Adjacency, Mechanism, account};
use leakscope_report::account::Costs;
use serde::{Deserialize, Serialize};

/// What is released, and the δ at which ε is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountRequest {
    /// Kinds of releases that follow one another.
    pub steps: Vec<ReleaseStep>,
    /// δ.
    pub delta: f64,
    /// Which neighbours are told apart; absent: add/remove, or replace where all is randomised response.
    pub adjacency: Option<Adjacency>,
}

impl Default for AccountRequest {
    fn default() -> Self {
        Self { steps: vec![], delta: 1e-5, adjacency: None }
    }
}

/// The costs of the request's releases.
///
/// ```
/// use leakscope::account::{self, AccountRequest};
/// use leakscope::mechanism::ReleaseStep;
///
/// let step = ReleaseStep { sigma: Some(1.0), rate: Some(0.01), steps: Some(1000), ..Default::default() };
/// let costs = account::run(&AccountRequest { steps: vec![step], delta: 1e-5, adjacency: None })?;
/// let epsilon = costs.account.epsilon.pld;
/// assert!(epsilon.lower < 2.0 && 1.8 < epsilon.upper);
/// # Ok::<(), leakscope::Failure>(())
/// ```
pub fn run(request: &AccountRequest) -> Result<Costs> {
    let alone = [ReleaseStep::default()];
    let steps = if request.steps.is_empty() { &alone[..] } else { &request.steps };
    let steps = steps.iter().map(ReleaseStep::mechanism).collect::<Result<Vec<_>>>()?;
    // The noise multiplier of DP-SGD is defined by its clipping norm, the sensitivity under add/remove; randomised
    // response has no record to add.
    let responses = steps.iter().filter(|s| matches!(s.0, Mechanism::RandomisedResponse { .. })).count();
    let adjacency = match request.adjacency {
        Some(adjacency) => adjacency,
        None if responses == 0 => Adjacency::AddRemove,
        None if responses == steps.len() => Adjacency::Replace,
        None => {
            let why = "randomised response knows replace alone, and noise is given for add-remove: say \
                       ⟨adjacency=replace⟩ (the noise then counts for twice the sensitivity)";
            return Err(Failure::option("adjacency", why));
        }
    };
    let account = account(&composed(&steps, adjacency)?, request.delta)?;
    crate::output::complete(Costs::of(account, request.adjacency.is_none()))
}
