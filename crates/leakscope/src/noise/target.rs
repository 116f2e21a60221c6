//! Targets as users name them, in their units, and as the mathematics takes them.

use super::NoiseOptions;
use crate::classes::target_unit;
use crate::{Failure, Result};
use leakscope_core::fisher::Directions;
use leakscope_core::fisher::noise::{Protected, Target};
use leakscope_core::units::Units;
use leakscope_report::noise::{Goal, Secret};
use leakscope_table::{Encoding, Kind, OneHot, known_names};

/// Targets on η, in encoded units, that noise can be made for: beyond, its covariance leaves the numbers.
const MET_BY_NOISE: std::ops::RangeInclusive<f64> = 1e-12..=1e12;

/// What was asked for: the targets of the mathematics, and each in words.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalTargets {
    /// One or more for each goal.
    pub targets: Vec<Target>,
    /// As users said it.
    pub goals: Vec<Goal>,
    /// The goal that each target is about.
    pub goal_of: Vec<usize>,
}

impl GoalTargets {
    fn push(&mut self, goal: Goal, targets: Vec<Target>) {
        let place = self.goals.len();
        self.goals.push(goal);
        self.goal_of.extend(targets.iter().map(|_| place));
        self.targets.extend(targets);
    }
}

impl NoiseOptions {
    /// The targets of these options on a table, in the units of its encoding or in `units`.
    ///
    /// # Errors
    /// An attribute that does not exist (with the closest names) or has no column, the label where it is public, a target out of
    /// reach.
    pub fn goal_targets(
        &self,
        encoding: &Encoding,
        label_secret: bool,
        units: Option<&Units>,
    ) -> Result<GoalTargets> {
        let mut goal_targets = GoalTargets { targets: vec![], goals: vec![], goal_of: vec![] };
        if let Some(eta) = self.target_eta.filter(|_| self.protect.is_empty()) {
            let target = Target { protected: Protected::Record { label: label_secret }, eta };
            goal_targets.push(Goal { secret: Secret::Record, name: None, eta, sd: None }, vec![target]);
        }
        for name in &self.protect {
            let eta = self.target_eta.unwrap_or(f64::NAN);
            match place(encoding, label_secret, "protect", name)? {
                None => {
                    let target = Target { protected: Protected::Label, eta };
                    let goal = Goal { secret: Secret::Label, name: Some(name.clone()), eta, sd: None };
                    goal_targets.push(goal, vec![target]);
                }
                Some(attribute) => {
                    let directions = directions(encoding, units, attribute, false);
                    let target = Target { protected: Protected::Attribute(directions), eta };
                    let goal = Goal { secret: Secret::Attribute, name: Some(name.clone()), eta, sd: None };
                    goal_targets.push(goal, vec![target]);
                }
            }
        }
        for (name, sd) in &self.target_sd {
            let goal = |secret, eta| Goal { secret, name: Some(name.clone()), eta, sd: Some(*sd) };
            match place(encoding, label_secret, "target_sd", name)? {
                None => {
                    let eta = target_unit(encoding) / sd;
                    goal_targets
                        .push(goal(Secret::Label, eta), vec![Target { protected: Protected::Label, eta }]);
                }
                Some(attribute) => {
                    let eta = encoding.attributes[attribute].scale / sd;
                    goal_targets
                        .push(goal(Secret::Attribute, eta), deviation(encoding, units, attribute, eta));
                }
            }
        }
        match goal_targets.goals.iter().find(|goal| !MET_BY_NOISE.contains(&goal.eta)) {
            Some(goal) => Err(out_of_reach(goal)),
            None => Ok(goal_targets),
        }
    }
}

/// Why a goal is out of reach.
fn out_of_reach(goal: &Goal) -> Failure {
    let message = match goal.eta < *MET_BY_NOISE.start() {
        true => {
            "no shape of noise meets that target: coefficients would drown in noise many orders of magnitude above them; ask for \
                 less, or publish nothing"
        }
        false => "that target is met without noise, for all that numbers can tell: ask for more",
    };
    match (goal.sd, &goal.name) {
        (Some(sd), Some(name)) => Failure::option("target_sd", format!("{name}={sd:e}: {message}")),
        (Some(sd), None) => Failure::number("target_sd", format!("{sd:e}"), message),
        (None, _) => Failure::number("target_eta", format!("{:e}", goal.eta), message),
    }
}

/// Targets under which no unbiased estimate of a value of an attribute comes closer than 1/`eta` encoded units. Whoever knows
/// that exactly one of k indicators applies estimates one within `‖P eⱼ‖/η` of the constrained η, which can be less.
fn deviation(encoding: &Encoding, units: Option<&Units>, attribute: usize, eta: f64) -> Vec<Target> {
    let a = &encoding.attributes[attribute];
    let of = |sum_to_one: bool, eta: f64| {
        let directions = directions(encoding, units, attribute, sum_to_one);
        (directions.count > 0).then_some(Target { protected: Protected::Attribute(directions), eta })
    };
    let all_levels = a.kind == Kind::Category && encoding.one_hot == OneHot::Full;
    let along = (1.0 - 1.0 / a.columns.len().max(1) as f64).sqrt();
    let constrained = if all_levels { of(true, along * eta) } else { None };
    of(false, eta).into_iter().chain(constrained).collect()
}

/// Directions of an attribute per encoded unit, in the columns of the rows.
fn directions(encoding: &Encoding, units: Option<&Units>, attribute: usize, sum_to_one: bool) -> Directions {
    let mut basis = encoding.directions(attribute, sum_to_one);
    let count = basis.len() / encoding.width().max(1);
    if let Some(units) = units {
        for (j, row) in basis.chunks_exact_mut(count.max(1)).enumerate().take(units.len()) {
            row.iter_mut().for_each(|b| *b *= units.stretch(j));
        }
    }
    Directions { basis, count }
}

/// The attribute of a name; none for the label.
fn place(encoding: &Encoding, label_secret: bool, option: &str, name: &str) -> Result<Option<usize>> {
    if name == encoding.target.name {
        return match label_secret {
            true => Ok(None),
            false => {
                let message = format!("`{name}` is the target, which ⟨label=public⟩ takes as known");
                Err(Failure::option(option, message))
            }
        };
    }
    let names = || encoding.attributes.iter().map(|a| a.name.as_str());
    match encoding.attributes.iter().position(|a| a.name == name) {
        Some(k) if encoding.attributes[k].columns.is_empty() => {
            let message = format!("`{name}` has one level only, so it has no encoded column to protect");
            Err(Failure::option(option, message))
        }
        Some(k) => Ok(Some(k)),
        None => {
            let hint = known_names(name, names());
            Err(Failure::option(option, format!("`{name}` is not an attribute of this model; {hint}")))
        }
    }
}
