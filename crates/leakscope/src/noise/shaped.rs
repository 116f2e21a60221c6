//! The noise that meets the targets of the options, and what is taken where its shape would give too much away.

use super::target::GoalTargets;
use super::{NoiseOptions, public};
use crate::failure::explain;
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::fisher::noise::{self as core, Design, Factor, Request, Shape};
use leakscope_core::glm::{self, Fitted, Minimiser, Penalty, softmax};
use leakscope_core::rows::Rows;
use leakscope_core::units::Units;
use leakscope_report::format;
use leakscope_table::{Encoding, Hooks, Public};

/// A fitted model whose noise is to be shaped.
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    /// How columns were encoded.
    pub encoding: &'a Encoding,
    /// The model, in the units of the rows.
    pub fit: Fitted<'a>,
    /// Units of the rows, where they are not those of the encoding.
    pub units: Option<&'a Units>,
    /// Penalty λ.
    pub l2: f64,
    /// Whether the label is part of the secret.
    pub label_secret: bool,
    /// How many times the model is released with this noise.
    pub releases: u32,
    /// What is known of the columns without looking at the data.
    pub public: &'a Public,
}

/// Where a shape comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeSource {
    /// Isotropic noise has none.
    Nowhere,
    /// From the training rows; what that gives away is counted.
    Rows,
    /// From a public table: its files.
    Table(Vec<String>),
    /// From the public bounds of the columns.
    Bounds,
}

/// The noise that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Designed {
    /// The noise, in the units of the rows.
    pub design: Design,
    /// Where its shape comes from.
    pub source: ShapeSource,
    /// What was asked of it.
    pub goal_targets: GoalTargets,
    /// Why it is not the one asked for, in whole sentences.
    pub instead: Option<String>,
}

/// The noise of the options for a model, in the units of `rows`.
///
/// # Guarantee
/// Every target holds for every row, with what the covariance itself gives away counted
/// ([`core::design`]); where the scaling of columns moves with their data, that is not counted here.
///
/// # Errors
/// Targets that do not fit the table, a model in which nothing is to be protected, columns of which predictions do not depend
/// on a combination; whatever reading a public table fails with.
pub fn design(options: &NoiseOptions, model: &Model<'_>, rows: &dyn Rows, hooks: &Hooks) -> Result<Designed> {
    options.check()?;
    let goal_targets = options.goal_targets(model.encoding, model.label_secret, model.units)?;
    let request = |shape| Request {
        releases: model.releases,
        gap: options.gap,
        shape_budget: options.shape_budget,
        ..Request::new(goal_targets.targets.clone(), shape)
    };
    let isotropic = || {
        core::design(rows, model.fit, &request(Shape::Isotropic))
            .map_err(|e| failed(e, model.encoding, model.l2))
    };
    let whole =
        |design, source, instead| Designed { design, source, goal_targets: goal_targets.clone(), instead };
    if !options.is_shaped() {
        return Ok(whole(isotropic()?, ShapeSource::Nowhere, None));
    }
    let under = |factor: &Factor| {
        core::design_with_shape(rows, model.fit, &request(options.shape), factor)
            .map_err(|e| failed(e, model.encoding, model.l2))
    };
    if let Some(read) = &options.shape_from {
        let table = public::table(read, model.encoding, hooks)?;
        let factor = shape_of(options, model, &table).map_err(|e| Failure::option("shape_from", e))?;
        return Ok(whole(under(&factor)?, ShapeSource::Table(read.names()), None));
    }
    let why = match core::design(rows, model.fit, &request(options.shape)) {
        Ok(design) if design.covariance_information <= options.shape_budget => {
            let missed = missed_gap(options, &design);
            return Ok(whole(design, ShapeSource::Rows, missed));
        }
        Ok(design) => too_much(options, Some(design.covariance_information)),
        Err(CoreError::Unreachable { .. }) => too_much(options, None),
        Err(e) => return Err(failed(e, model.encoding, model.l2)),
    };
    let isotropic = isotropic()?;
    if let Some(rows) = public::made_up(model.encoding, model.public)
        && let Ok(factor) = shape_of(options, model, &rows)
    {
        let design = under(&factor)?;
        if design.cost < isotropic.cost {
            let instead = format!("{why} The shape was taken from the public bounds of the columns alone.");
            return Ok(whole(design, ShapeSource::Bounds, Some(instead)));
        }
    }
    let instead = format!(
        "{why} Isotropic noise is safer, since its shape says nothing, and was taken instead; a shape from a public table of \
         the same columns would give nothing away either."
    );
    Ok(whole(isotropic, ShapeSource::Nowhere, Some(instead)))
}

/// Work (rows × coefficients² × contrasts of classes) up to which shapes that were not asked for are designed for comparison.
const COMPARED_UP_TO: f64 = 5e8;

/// The noise that each shape from the rows would have for the same targets, the one that was taken among them: isotropic, the
/// closed form, the cheapest. Shapes that would give all away, or take too long, are left out.
pub fn alternatives(
    options: &NoiseOptions,
    model: &Model<'_>,
    rows: &dyn Rows,
    taken: &Designed,
) -> Result<Vec<Design>> {
    let (free, vectors) = (model.fit.free() as f64, model.fit.contrasts() as f64);
    let affordable = rows.len() as f64 * free.powi(2) * vectors <= COMPARED_UP_TO;
    let from_rows = matches!(taken.source, ShapeSource::Rows | ShapeSource::Nowhere);
    let mut all = vec![];
    for shape in [Shape::Isotropic, Shape::Shaped, Shape::Optimal] {
        if from_rows && shape == taken.design.shape {
            all.push(taken.design.clone());
            continue;
        }
        if shape != Shape::Isotropic && !affordable {
            continue;
        }
        let request = Request {
            releases: model.releases,
            gap: options.gap,
            shape_budget: options.shape_budget,
            ..Request::new(taken.goal_targets.targets.clone(), shape)
        };
        match core::design(rows, model.fit, &request) {
            Ok(design) => all.push(design),
            Err(CoreError::Interrupted) => return Err(Failure::Interrupted),
            // What cannot be designed cannot be compared with.
            Err(_) => {}
        }
    }
    Ok(all)
}

/// That an optimal shape is not as near the cheapest as was asked for, and why: closer to it the covariance would give more away
/// than is set aside, or the search ended before.
fn missed_gap(options: &NoiseOptions, design: &Design) -> Option<String> {
    if options.shape != Shape::Optimal || design.gap <= options.gap {
        return None;
    }
    let costs = format!(
        "This noise costs up to {} more than the cheapest, where {} were asked for",
        format::share_at_most(design.gap),
        format::share(options.gap)
    );
    Some(match design.programme_gap < design.gap {
        true => format!(
            "{costs}: noise within {} of it was found, but its covariance would give away more about a record than the {} of the \
             target that are set aside for that (⟨shape_budget⟩).",
            format::share_at_most(design.programme_gap),
            format::share(options.shape_budget)
        ),
        false => format!(
            "{costs}: the search ended after {} without coming closer.",
            format::counted(design.rounds as u64, "round")
        ),
    })
}

/// Why a shape is not taken from the rows.
fn too_much(options: &NoiseOptions, share: Option<f64>) -> String {
    let name = match options.shape {
        Shape::Isotropic => "isotropic",
        Shape::Shaped => "shaped",
        Shape::Optimal => "optimal",
    };
    let share = match share {
        Some(share) => format!("{} of", format::share(share)),
        None => "all of".into(),
    };
    format!(
        "The covariance of {name} noise is read off the records, and would itself give away {share} what the target allows \
         about one of them, more than the {} that are set aside for it: there are too few records for a target this strict.",
        format::share(options.shape_budget)
    )
}

/// The shape that public rows would have, for the same targets.
fn shape_of(options: &NoiseOptions, model: &Model<'_>, rows: &dyn Rows) -> Result<Factor> {
    let encoding = model.encoding;
    let penalty = Penalty { l2: model.l2, ..model.fit.penalty() };
    let explained = |e| explain(e, encoding, model.l2);
    let fit = match model.fit {
        Fitted::Glm(fit) => Minimiser::Glm(glm::fit(rows, fit.family, penalty).map_err(explained)?),
        Fitted::Softmax(fit) => Minimiser::Softmax(of_all_classes(rows, penalty, fit.classes, &explained)?),
    };
    let goal_targets = options.goal_targets(encoding, model.label_secret, model.units)?;
    // What a public table gives away about itself does not count.
    let request =
        Request { gap: options.gap, shape_budget: 1.0, ..Request::new(goal_targets.targets, options.shape) };
    let designed = match (model.units, &fit) {
        (None, fit) => core::design(rows, fit, &request),
        (Some(units), Minimiser::Glm(fit)) => {
            core::design(&units.rows(rows), &units.fit(fit).map_err(explained)?.fit, &request)
        }
        (Some(units), Minimiser::Softmax(fit)) => {
            core::design(&units.rows(rows), &units.softmax(fit).map_err(explained)?.fit, &request)
        }
    };
    Ok(designed.map_err(|e| failed(e, model.encoding, model.l2))?.factor)
}

/// A softmax model of rows that must have as many classes as the model whose noise they shape.
pub(crate) fn of_all_classes(
    rows: &dyn Rows,
    penalty: Penalty,
    classes: usize,
    explained: &impl Fn(CoreError) -> Failure,
) -> Result<softmax::SoftmaxFit> {
    let fit = softmax::fit(rows, penalty, classes).map_err(explained)?;
    if fit.classes == classes {
        return Ok(fit);
    }
    Err(Failure::Data(format!(
        "there are records of {} of the {classes} classes only: a shape needs some of every class",
        fit.classes
    )))
}

/// A failure of a design in words. The model was fitted, so that what has no inverse is the cost, which knows no penalty.
pub(crate) fn failed(error: CoreError, encoding: &Encoding, l2: f64) -> Failure {
    let names = encoding.columns();
    let name = |j: usize| names.get(j).map(|n| format!("`{n}`")).unwrap_or_default();
    match error {
        CoreError::Singular { column, of } => {
            let others: Vec<String> = of.iter().map(|&j| name(j)).collect();
            let columns = match others.is_empty() {
                true => format!("column {} is constant", name(column)),
                false => format!("column {} is a linear combination of {}", name(column), others.join(", ")),
            };
            Failure::option(
                "noise_shape",
                format!(
                    "{columns}, so noise on some combination of coefficients moves no prediction and a cheapest noise would be \
                     without end: remove the column with ⟨drop⟩, take ⟨one_hot=drop-last⟩ for a category, or \
                     ⟨noise_shape=isotropic⟩"
                ),
            )
        }
        CoreError::Unreachable { .. } => Failure::option(
            "noise_shape",
            "the covariance of a shape that is read off these rows gives away more than the target allows, whatever its scale: \
             take ⟨noise_shape=isotropic⟩, a shape from a public table with ⟨shape_from⟩, or a larger target",
        ),
        CoreError::NotApplicable { .. } => Failure::option(
            "noise_shape",
            "nothing that is to be protected moves this model (every η is zero), so there is no noise to shape: give ⟨sigma⟩",
        ),
        CoreError::ShapeTooLarge { coefficients, most } => Failure::option(
            "noise_shape",
            format!(
                "{coefficients} coefficients: what a shape from the data gives away is counted for at most {most}; take \
                 ⟨noise_shape=isotropic⟩, a shape from a public table with ⟨shape_from⟩, or fewer columns with ⟨pca⟩"
            ),
        ),
        other => explain(other, encoding, l2),
    }
}
