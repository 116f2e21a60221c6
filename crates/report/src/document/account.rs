//! What `leakscope account` found, as plain data.

use crate::figure::{Figure, trade_off};
use leakscope_core::dp::Account;
use serde::{Deserialize, Serialize};

/// Name and version of the schema of `account.json`.
pub const SCHEMA: &str = "leakscope.account/1";

/// What a sequence of releases costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Leakscope that wrote it.
    pub leakscope: String,
    /// ε by each accountant, advantage, trade-off curve.
    #[serde(flatten)]
    pub account: Account,
    /// Whether the adjacency was assumed because the command line did not say it.
    pub adjacency_assumed: bool,
    /// Curves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
}

impl Costs {
    /// An account with its curve.
    pub fn of(account: Account, adjacency_assumed: bool) -> Self {
        let figures = vec![trade_off(&account)];
        Self {
            schema: SCHEMA.into(),
            leakscope: env!("CARGO_PKG_VERSION").into(),
            account,
            adjacency_assumed,
            figures,
        }
    }

    /// As JSON, ε of the Rényi accountant as a number with its order beside it.
    pub fn json(&self) -> String {
        let mut value = serde_json::to_value(self).expect("plain data with text keys always serialises");
        value["epsilon"]["rdp"] = self.account.epsilon.rdp.epsilon.into();
        value["epsilon"]["rdp_order"] = self.account.epsilon.rdp.alpha.into();
        crate::document(&value)
    }

    /// Reads what [`Costs::json`] writes.
    ///
    /// # Errors
    /// Where the text is no such document.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let mut value: serde_json::Value = serde_json::from_str(text)?;
        if let Some(epsilon) = value.get_mut("epsilon").and_then(|e| e.as_object_mut()) {
            let order = epsilon.remove("rdp_order").unwrap_or_default();
            let rdp = epsilon.remove("rdp").unwrap_or_default();
            epsilon.insert("rdp".into(), serde_json::json!({ "epsilon": rdp, "alpha": order }));
        }
        serde_json::from_value(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_core::dp::{Accountant, Adjacency, account};

    #[test]
    fn what_is_written_is_read_back() {
        let accountant = Accountant::dp_sgd(2.0, 0.1, 5, Adjacency::AddRemove).unwrap();
        let costs = Costs::of(account(&accountant, 1e-5).unwrap(), false);
        assert_eq!(Costs::from_json(&costs.json()).unwrap(), costs);
        assert!(Costs::from_json("{}").is_err() && Costs::from_json("[]").is_err());
    }
}
