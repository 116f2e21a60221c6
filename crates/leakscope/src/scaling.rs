//! Columns that are scaled by their own data: which they are, in which units that is counted, and what a secret's value does to it.

use crate::Result;
use crate::failure::explain;
use crate::model::Loaded;
use crate::request::{Request, ScalingMode};
use leakscope_core::fisher::noise::Noise as Gaussian;
use leakscope_core::fisher::scaling::Counted;
use leakscope_core::fisher::softmax::SoftmaxGeometry;
use leakscope_core::fisher::{Directions, Release};
use leakscope_core::glm::{Fit, Minimiser};
use leakscope_core::measure::{CountedAttribute, CountedModel};
use leakscope_core::pass::Runner as _;
use leakscope_core::units::{FitInUnits, Scaling, Units};
use leakscope_table::{Attribute, Encoding, Kind, Missing, Origin, Scale};
use std::borrow::Cow;

/// Whether the scale of a column is a statistic of its values that core knows how to count.
pub(crate) fn is_own(encoding: &Encoding, a: &Attribute) -> bool {
    encoding.scale == Scale::Standard
        && a.kind == Kind::Number
        && a.scale_origin == Origin::ReadOffData
        && a.population_sd > 0.0
}

/// Whether values of a column were filled in: they move with its mean, which is not counted.
pub(crate) fn is_filled(encoding: &Encoding, a: &Attribute) -> bool {
    encoding.missing == Missing::Mean && encoding.profile.iter().any(|c| c.name == a.name && c.missing > 0)
}

/// Whether the scaling of any column makes a difference: without a penalty it does not, and without an intercept (or behind
/// principal components) nothing here counts it.
pub(crate) fn matters(encoding: &Encoding, l2: f64) -> bool {
    l2 > 0.0
        && encoding.intercept
        && encoding.pca.is_none()
        && encoding.attributes.iter().any(|a| is_own(encoding, a) && !is_filled(encoding, a))
}

/// Whether columns are scaled by their own data, and nothing counts it though nobody said that it is public: without an intercept
/// the means of all columns move the model, with a penalty or not.
pub(crate) fn is_uncounted(scaling: ScalingMode, encoding: &Encoding) -> bool {
    scaling == ScalingMode::Counted
        && !encoding.intercept
        && encoding.attributes.iter().any(|a| is_own(encoding, a))
}

/// The model in the units of its encoding; where the scaling `counts`, columns are scaled by their own data.
pub(crate) fn units(
    encoding: &Encoding,
    fit: &Fit,
    counts: bool,
) -> leakscope_core::Result<(FitInUnits, Units)> {
    let units = own_units(encoding, counts)?;
    Ok((units.fit(fit)?, units))
}

/// The units of the encoding; where the scaling `counts`, columns are scaled by their own data.
pub(crate) fn own_units(encoding: &Encoding, counts: bool) -> leakscope_core::Result<Units> {
    let mut scaling = vec![Scaling::NONE; encoding.data_width()];
    for a in encoding.attributes.iter().filter(|a| counts && is_own(encoding, a) && !is_filled(encoding, a)) {
        scaling[a.columns.start] = Scaling::Own { mean: a.mean, deviation: a.population_sd };
    }
    Units::of_encoding(scaling, encoding.intercept)
}

/// What another value of a secret does to the scaling of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretScaling {
    /// Nothing that a model shows.
    Nothing,
    /// It moves the scale of its column, which is counted.
    Counted,
    /// It moves a scale that is taken as given.
    Given,
}

/// What another value of the attribute `name` does to the scaling of columns.
pub(crate) fn of_secret(request: &Request, encoding: &Encoding, name: &str) -> SecretScaling {
    let attribute = encoding.attributes.iter().find(|a| a.name == name);
    match encoding.scale {
        Scale::UnitBall => SecretScaling::Given,
        Scale::Bounds | Scale::None => SecretScaling::Nothing,
        Scale::Standard => match attribute.filter(|a| is_own(encoding, a)) {
            None => SecretScaling::Nothing,
            Some(_) if !encoding.intercept || encoding.pca.is_some() => SecretScaling::Given,
            Some(a) if is_filled(encoding, a) => SecretScaling::Given,
            Some(_) if request.l2 == 0.0 => SecretScaling::Nothing,
            Some(_) => match request.scaling {
                ScalingMode::Counted => SecretScaling::Counted,
                ScalingMode::Given => SecretScaling::Given,
            },
        },
    }
}

/// η of an attribute of every record with its scaling counted, at σ = 1 or under the noise.
pub(crate) fn attribute_eta(
    request: &Request,
    loaded: &Loaded,
    fit: &Minimiser,
    (directions, release): (&Directions, Release),
    shape: Option<&Gaussian>,
) -> Result<Vec<f64>> {
    let encoding = &loaded.encoding;
    let model = counted_model(encoding, fit, (directions, release), shape)
        .map_err(|e| explain(e, encoding, request.l2))?;
    Ok(loaded.rows.run(&CountedAttribute { model: Cow::Owned(model) })?.eta)
}

fn counted_model(
    encoding: &Encoding,
    fit: &Minimiser,
    (directions, release): (&Directions, Release),
    shape: Option<&Gaussian>,
) -> leakscope_core::Result<CountedModel> {
    let attribute = std::slice::from_ref(directions);
    Ok(match fit {
        Minimiser::Glm(fit) => {
            let (model, units) = units(encoding, fit, true)?;
            CountedModel::Glm(Box::new(match shape {
                Some(noise) => Counted::under(&model, &units, attribute, release, noise)?,
                None => Counted::new(&model, &units, attribute, release)?,
            }))
        }
        Minimiser::Softmax(fit) => {
            let geometry = match shape {
                Some(noise) => SoftmaxGeometry::under(fit, attribute, release, noise)?,
                None => SoftmaxGeometry::new(fit, attribute, release)?,
            };
            CountedModel::Softmax(Box::new(geometry.with_units(&own_units(encoding, true)?)?))
        }
    })
}
