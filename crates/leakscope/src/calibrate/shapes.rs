//! What each shape of the noise costs for the targets of a table's model.

use crate::audit::Request;
use crate::model::{self, Loaded, scores_of};
use crate::noise::{self, Model, alternatives, cost_of, described, isotropic_sigma};
use crate::{Failure, Result};
use leakscope_core::glm::Minimiser;
use leakscope_report::Calibration;
use leakscope_report::calibrate::{Leakage, OnModel, Scored, Utility};
use leakscope_report::noise::{ShapeCost, ShapePoint};
use leakscope_table::{Dataset, Hooks};

/// The noise of the request's options, and what the other shapes would cost.
pub(super) fn run(request: &Request, hooks: &Hooks) -> Result<Calibration> {
    let options = request
        .noise
        .options()
        .ok_or_else(|| Failure::option("noise_shape", "say what the noise must achieve"))?;
    let loaded = model::load(request, hooks)?;
    request.check_names(&loaded.encoding)?;
    let fit = loaded.minimiser(request)?;
    let fitted = Model {
        encoding: &loaded.encoding,
        fit: (&fit).into(),
        units: None,
        l2: request.l2,
        label_secret: request.label_secret,
        releases: request.releases,
        public: &request.public,
    };
    let mut designed = noise::design(options, &fitted, &loaded.rows, hooks)?;
    crate::audit::count_scaling(request, &loaded.encoding, (&fit).into(), &loaded.rows, &mut designed)?;
    let (on, rows) = match &loaded.test {
        Some(test) => (Scored::HeldOut, test),
        None => (Scored::Training, &loaded.rows),
    };
    let mut shapes = vec![];
    for design in alternatives(options, &fitted, &loaded.rows, &designed)? {
        // The published noise meets its targets with room to spare: here they are met exactly.
        let (values, _) =
            score(request, &loaded, &fit, rows, (&[design.largest_eta], design.noise.factor()))?;
        let points = vec![ShapePoint { multiple: 1.0, value: values[0] }];
        shapes.push(ShapeCost { points, ..cost_of(&design) });
    }
    let design = &designed.design;
    let (values, constant_model) = score(request, &loaded, &fit, rows, (&[0.0, 1.0], design.noise.factor()))?;
    let metric = loaded.metric(request).into();
    let utility = Utility { on, metric, without_noise: values[0], at_sigma: values[1], constant_model };
    let sigma = isotropic_sigma(&design.cost_matrix, design.noise.len(), design.cost);
    let seed = request.holdout.map(|_| loaded.seed);
    let warnings = super::uncounted(request, &loaded.encoding).into_iter().collect();
    let model = OnModel { subject: loaded.subject(request), utility, seed, warnings };
    let noise = described(options, &designed, &loaded.encoding, shapes)?;
    let target = Leakage::Goals { goals: noise.goals.clone() };
    let calibration = Calibration::of_noise(target, sigma, noise.largest_eta, Some(model));
    crate::output::complete(Calibration { noise: Some(noise), ..calibration })
}

fn score(
    request: &Request,
    loaded: &Loaded,
    fit: &Minimiser,
    rows: &Dataset,
    (scales, factor): (&[f64], &[f64]),
) -> Result<(Vec<f64>, f64)> {
    scores_of(rows, fit, loaded.metric(request), scales, factor)
}
