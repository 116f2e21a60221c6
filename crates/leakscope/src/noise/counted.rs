//! Room for what a record does to the scaling of its columns, where that moves the model.

use super::Designed;
use crate::Result;
use leakscope_core::fisher::noise::{Protected, Target};
use leakscope_core::fisher::scaling::{Counted, CountedRecords, Depth};
use leakscope_core::fisher::{Directions, Release};
use leakscope_core::rows::Rows;
use leakscope_core::units::{FitInUnits, Units};

/// Raises the scale of the noise, on its grid, until every target holds with the scaling of columns counted. Rows, model and
/// noise are in the same units.
pub fn count_scaling(
    designed: &mut Designed,
    (model, units): (&FitInUnits, &Units),
    rows: &dyn Rows,
    releases: u32,
    depth: Depth,
) -> Result<()> {
    let targets = designed.asked.targets.clone();
    let label_secret = targets.iter().any(|t| matches!(t.protected, Protected::Record { label: true }));
    let release = Release { sigma: 1.0, releases, label_secret };
    let design = &mut designed.design;
    let directions: Vec<Directions> = targets.iter().filter_map(attribute).cloned().collect();
    let counted = Counted::under(model, units, &directions, release, &design.noise)?;
    let mut largest = 0.0_f64;
    rows.fold(
        || (0.0_f64, CountedRecords::default()),
        |(largest, records), block| {
            counted.records(block, depth, records)?;
            for i in 0..block.len() {
                let mut attributes = records.attribute_eta[i * directions.len()..].iter();
                for target in &targets {
                    let eta = match &target.protected {
                        Protected::Record { .. } => records.eta[i],
                        Protected::Attribute(_) => attributes.next().copied().unwrap_or(0.0),
                        Protected::Label => counted.given().label_eta(&records.given, i),
                    };
                    *largest = largest.max(eta / target.eta);
                }
            }
            Ok(())
        },
        |(part, _)| {
            largest = largest.max(part);
            Ok(())
        },
    )?;
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

fn attribute(target: &Target) -> Option<&Directions> {
    match &target.protected {
        Protected::Attribute(directions) => Some(directions),
        Protected::Record { .. } | Protected::Label => None,
    }
}
