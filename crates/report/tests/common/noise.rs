//! Noise with a shape for a sample audit.

use leakscope_core::fisher::noise::{Factor, Sampling, Shape};
use leakscope_report::audit::{Audit, SigmaSource};
use leakscope_report::noise::{
    Coefficient, Direction, Goal, Inference, Noise, Secret, ShapeCost, ShapePoint, Source,
};

/// An audit whose noise has a shape from `source`.
pub(crate) fn shaped(audit: &mut Audit, source: Source) {
    let names = ["age", "race=asian", "(intercept)"];
    let goal = |secret, name: Option<&str>, sd| Goal { secret, name: name.map(Into::into), eta: 0.5, sd };
    let curve = |cost: f64| {
        let at = |k: i32| ShapePoint { multiple: 2_f64.powi(k), value: 120.0 + cost / 4_f64.powi(k) };
        (-5..=5).map(at).collect()
    };
    let shape = |shape, cost: f64, gap, covariance_information| ShapeCost {
        shape,
        cost,
        gain: 88.0 / cost,
        gap,
        covariance_information,
        points: curve(cost),
    };
    let of_records = source == Source::Records;
    audit.sigma_source = SigmaSource::Targets;
    audit.noise = Some(Noise {
        shape: Shape::Optimal,
        requested: Shape::Optimal,
        instead: None,
        source,
        goals: vec![goal(Secret::Record, None, None), goal(Secret::Attribute, Some("age"), Some(20.0))],
        cost: 1.1,
        cost_published: 1.4,
        cost_isotropic: 88.0,
        gain: 80.0,
        lower_bound_on_cost: 1.095,
        gap: 0.0046,
        programme_gap: 0.008,
        covariance_information: if of_records { 0.012 } else { 0.0 },
        shape_budget: 0.05,
        largest_eta: 0.97,
        sigma_same_cost: audit.sigma,
        sigma_isotropic: 9.0 * audit.sigma,
        factor: Factor { quarters: -3, exponents: vec![-8; 3], entries: vec![256, 31, 300, -12, 4, 410] },
        coefficients: names.map(String::from).into(),
        deviations: names.map(|n| (n.to_owned(), 0.3)).into(),
        directions: vec![
            Direction {
                noise: 0.73,
                cost: 0.04,
                attributes: vec![("race".into(), 0.6), ("vkorc1".into(), 0.4)],
            },
            Direction { noise: 0.2, cost: 0.5, attributes: vec![("(intercept)".into(), 1.0)] },
        ],
        shapes: vec![
            shape(Shape::Isotropic, 88.0, 79.4, 0.0),
            shape(Shape::Shaped, 2.3, 1.1, 0.004),
            shape(Shape::Optimal, 1.1, 0.0046, 0.012),
        ],
    });
    let coefficient = |name: &str| Coefficient {
        name: name.into(),
        estimate: -0.4,
        sampling_error: 0.1,
        noise_error: 0.2,
        standard_error: 0.2236,
        low: -0.84,
        high: 0.04,
        p_value: 0.074,
    };
    audit.inference = Some(Inference {
        sampling: Sampling::Sandwich,
        level: 0.95,
        original_units: true,
        coefficients: names.iter().map(|n| coefficient(n)).collect(),
    });
}
