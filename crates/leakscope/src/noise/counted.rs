//! Room for what a record does to the scaling of its columns, where that moves the model.

use super::Designed;
use crate::Result;
use leakscope_core::fisher::noise::{Protected, Target};
use leakscope_core::fisher::scaling::{Counted, CountedRecords, Depth};
use leakscope_core::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::fisher::{Directions, Release};
use leakscope_core::glm::softmax::SoftmaxFit;
use leakscope_core::rows::{Block, Rows};
use leakscope_core::units::{FitInUnits, Units};

/// A model in the units in which the scaling of its columns is counted.
#[derive(Debug, Clone, Copy)]
pub enum Scaled<'a> {
    /// One vector of coefficients.
    Glm(&'a FitInUnits, Depth),
    /// One for each class.
    Softmax(&'a SoftmaxFit),
}

/// Raises the scale of the noise, on its grid, until every target holds with the scaling of columns counted. Rows, model and
/// noise are in the same units.
pub fn count_scaling(
    designed: &mut Designed,
    (model, units): (Scaled<'_>, &Units),
    rows: &dyn Rows,
    releases: u32,
) -> Result<()> {
    let targets = designed.goal_targets.targets.clone();
    let label_secret = targets.iter().any(|t| matches!(t.protected, Protected::Record { label: true }));
    let release = Release { sigma: 1.0, releases, label_secret };
    let design = &mut designed.design;
    let directions: Vec<Directions> = targets.iter().filter_map(attribute).cloned().collect();
    let mut largest = match model {
        Scaled::Glm(model, depth) => {
            let counted = Counted::under(model, units, &directions, release, &design.noise)?;
            largest_over(rows, &targets, |block, records: &mut CountedRecords| {
                counted.records(block, depth, records)?;
                let label = (0..block.len()).map(|i| counted.geometry().label_eta(&records.plain, i));
                Ok(Etas::of(&records.eta, &records.attribute_eta, label.collect()))
            })?
        }
        Scaled::Softmax(fit) => {
            let geometry =
                SoftmaxGeometry::under(fit, &directions, release, &design.noise)?.with_units(units)?;
            largest_over(rows, &targets, |block, records: &mut SoftmaxRecords| {
                geometry.counted(block, records)?;
                Ok(Etas::of(&records.eta, &records.attribute_eta, records.label_eta.clone()))
            })?
        }
    };
    let room = (1.0 - design.covariance_information).sqrt();
    if largest > room {
        // A scale of 2^(k/4) that is not below what is needed, whatever was rounded.
        let quarters = (4.0 * (largest / room).log2() + 1e-9).ceil().max(1.0);
        design.factor.quarters += quarters as i32;
        design.noise = design.factor.noise()?;
        design.cost = design.noise.cost(&design.cost_matrix);
        // What it costs is that of the noise in use; isotropic noise and the certificate stay those of the scaling as given.
        design.exact_cost = design.cost;
        design.gain = design.cost_isotropic / design.exact_cost;
        design.gap = (design.exact_cost / design.lower_bound_on_cost - 1.0).max(0.0);
        largest *= (-0.25 * quarters).exp2();
    }
    design.largest_eta = largest;
    Ok(())
}

/// η of the records of a block.
struct Etas {
    whole: Vec<f64>,
    attributes: Vec<f64>,
    label: Vec<f64>,
}

impl Etas {
    fn of(whole: &[f64], attributes: &[f64], label: Vec<f64>) -> Self {
        Self { whole: whole.to_vec(), attributes: attributes.to_vec(), label }
    }
}

/// Largest η over its target, of all records.
fn largest_over<R: Default + Send>(
    rows: &dyn Rows,
    targets: &[Target],
    measure: impl Fn(&Block, &mut R) -> leakscope_core::Result<Etas> + Sync,
) -> Result<f64> {
    let count = targets.iter().filter_map(attribute).count();
    let mut all = 0.0_f64;
    rows.fold(
        || (0.0_f64, R::default()),
        |(largest, records), block| {
            let etas = measure(block, records)?;
            for i in 0..block.len() {
                let mut attributes = etas.attributes[i * count..].iter();
                for target in targets {
                    let eta = match &target.protected {
                        Protected::Record { .. } => etas.whole[i],
                        Protected::Attribute(_) => attributes.next().copied().unwrap_or(0.0),
                        Protected::Label => etas.label[i],
                    };
                    *largest = largest.max(eta / target.eta);
                }
            }
            Ok(())
        },
        |(part, _)| {
            all = all.max(part);
            Ok(())
        },
    )?;
    Ok(all)
}

fn attribute(target: &Target) -> Option<&Directions> {
    match &target.protected {
        Protected::Attribute(directions) => Some(directions),
        Protected::Record { .. } | Protected::Label => None,
    }
}
