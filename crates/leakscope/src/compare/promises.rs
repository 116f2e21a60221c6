//! The numbers of what noise promises by itself: accounts and calibrations.

use super::numbers::Numbers;
use leakscope_report::account::Costs;
use leakscope_report::calibrate::{Aim, Calibration, Leakage};
use leakscope_report::comparison::Form;
use leakscope_report::words;

/// Those of an account.
pub(super) fn account(c: &Costs) -> Vec<Numbers> {
    let a = &c.account;
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("releases", Form::Count, a.releases.iter().map(|r| r.1 as f64).sum::<f64>());
    settings.setting("δ", Form::Setting, a.delta);
    let mut costs = Numbers::new("What the releases cost", "By every accountant that applies.");
    costs.leak("ε, privacy loss distribution", Form::AtMost, a.epsilon.pld.upper);
    costs.leak("ε, Rényi", Form::AtMost, a.epsilon.rdp.epsilon);
    costs.leak("ε, Gaussian mechanism", Form::AtMost, a.epsilon.analytic_gaussian);
    costs.leak("ε, zero-concentrated", Form::AtMost, a.epsilon.zcdp);
    costs.leak("ε, pure", Form::AtMost, a.epsilon.pure);
    costs.leak("membership advantage", Form::AtMost, a.advantage.upper);
    costs.leak("μ of Gaussian DP", Form::Number, a.gdp_mu);
    vec![settings, costs]
}

/// Those of a calibration.
pub(super) fn calibration(c: &Calibration) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What meets the target: neither better nor worse by itself.");
    settings.setting("noise σ", Form::Setting, c.sigma);
    settings.setting("sampling rate", Form::Setting, c.training.map(|t| t.rate));
    settings.setting("steps", Form::Count, c.training.map(|t| t.steps as f64));
    let mut target = Numbers::new("What is achieved", "On the safe side of the target.");
    match &c.target {
        Aim::Leakage(Leakage::Sd { attribute, .. }) => {
            target.shield(format!("least error of {attribute}"), Form::AtLeast, c.achieved);
        }
        Aim::Training(_)
        | Aim::Leakage(Leakage::Eta { .. } | Leakage::Goals { .. } | Leakage::Guessing { .. }) => {
            target.leak("what must not be exceeded", Form::AtMost, c.achieved);
        }
    }
    let mut utility = Numbers::new("Utility", "What the model is good for with the noise.");
    if let Some(model) = &c.model {
        let u = &model.utility;
        let name = words::metric_name(u.metric);
        // A model without columns says which way is better.
        let higher = u.without_noise >= u.constant_model;
        utility.score(format!("{name} with the noise"), higher, u.at_sigma);
        utility.score(format!("{name} without noise"), higher, u.without_noise);
    }
    vec![settings, target, utility]
}
