//! Noise with a shape for a release: made for its targets in public units, with a covariance that may be published.
//!
//! A shape that is read off the records is not released, not even with noise of its own: the scale that meets the targets under a
//! shape drawn at random is a threshold on the binding record, which many releases locate. A shape from a public table or from
//! public bounds is public as it is. The model is fitted in public
//! units themselves, so that its scaling leaves nothing to count; where weights balance it, they do so under that shape, and the
//! scale meets the targets with their part counted. Whatever is published is a function of whole numbers with
//! discrete Gaussian noise, of the options, and of numbers on public grids.

use super::fitted::{Balanced, Fitted};
use crate::classes::{class_count, contrast_names};
use crate::failure::explain;
use crate::noise::{GoalTargets, NoiseOptions, ShapeSource, failed, of_all_classes, public};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::balance::CountedBalance;
use leakscope_core::fisher::noise::{
    self as core, Design, Factor, Noise, Protected, Shape, Target, design_with_shape,
};
use leakscope_core::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::fisher::{Directions, Geometry, Records, Release};
use leakscope_core::glm::Minimiser;
use leakscope_core::num::Distribution;
use leakscope_core::rows::{Altered, Block, Rows};
use leakscope_core::units::{Units, public_sigma};
use leakscope_report::choice;
use leakscope_report::noise::{Goal, Secret, Source};
use leakscope_report::release::{Eta, PublishedShape, Target as Solved};
use leakscope_table::{Encoding, Hooks};

/// Noise that was made for its targets.
pub(super) struct Shaped {
    pub(super) design: Design,
    /// As it is published.
    pub(super) published: PublishedShape,
    /// η of whole records, as it may be said.
    pub(super) eta: Eta,
    /// The same as measured, without what the shape gives away.
    pub(super) measured: Distribution,
    /// Why it is not the noise asked for.
    pub(super) instead: Option<String>,
}

/// What noise with a shape must achieve, and its shape: both known before the model is.
pub(super) struct Plan {
    goals: GoalTargets,
    shape: PublicShape,
}

impl Plan {
    /// For a model that is fitted in public units.
    pub(super) fn new(
        options: &NoiseOptions,
        request: &Request,
        (encoding, units): (&Encoding, &Units),
        hooks: &Hooks,
    ) -> Result<Self> {
        options.check()?;
        let mut goals = options.goal_targets(encoding, request.label_secret, Some(units))?;
        for (target, goal) in goals.targets.iter_mut().zip(&goals.goal_of) {
            in_public_units(target, &mut goals.goals[*goal], units);
        }
        let shape = Search { options, request, encoding, units, targets: &goals.targets, hooks }.run()?;
        Ok(Self { goals, shape })
    }

    /// The shape at scale one, under which weights balance leakage; `None` where it is isotropic.
    pub(super) fn unit(&self) -> Result<Option<Noise>> {
        Ok(self.shape.factor.as_ref().map(Factor::noise).transpose()?)
    }

    /// Directions of the attributes that have targets, in their order.
    pub(super) fn directions(&self) -> Vec<Directions> {
        let of = |t: &Target| match &t.protected {
            Protected::Attribute(directions) => Some(directions.clone()),
            Protected::Record { .. } | Protected::Label => None,
        };
        self.goals.targets.iter().filter_map(of).collect()
    }

    /// The scale at which a balanced model, whose η at scale one is counted, meets every target.
    fn scale_for(&self, counted: &CountedBalance) -> f64 {
        let attributes = self.directions().len();
        let (mut place, mut scale) = (0, 0.0_f64);
        for target in &self.goals.targets {
            let largest = match &target.protected {
                // Of whole records a target is the only one, and counts the label where that is secret.
                Protected::Record { .. } => counted.eta.iter().copied().fold(0.0, f64::max),
                Protected::Label => counted.label_eta.iter().copied().fold(0.0, f64::max),
                Protected::Attribute(_) => {
                    let own = counted.attribute_eta.iter().skip(place).step_by(attributes.max(1));
                    place += 1;
                    own.copied().fold(0.0, f64::max)
                }
            };
            scale = scale.max(largest / target.eta);
        }
        scale * (1.0 + ROUNDING)
    }
}

impl Shaped {
    /// The noise of the plan for a model that was fitted in public units.
    pub(super) fn new(
        options: &NoiseOptions,
        request: &Request,
        fitted: &Fitted,
        plan: &Plan,
    ) -> Result<Self> {
        let encoding = &fitted.loaded.encoding;
        let Plan { goals: GoalTargets { targets, goals, .. }, shape } = plan;
        let wanted = core::Request {
            gap: options.gap,
            shape_budget: options.shape_budget,
            ..core::Request::new(targets.clone(), shape.shape(options))
        };
        let designed = |rows: &dyn Rows| match &shape.factor {
            Some(factor) => design_with_shape(rows, &fitted.fit, &wanted, factor),
            None => core::design(rows, &fitted.fit, &wanted),
        };
        let fail = |e| failed(e, encoding, request.l2);
        let rows = fitted.units.rows(&fitted.loaded.rows);
        let (design, measured) = match &fitted.balancing {
            None => {
                let design = designed(&rows).map_err(fail)?;
                let measured = whole_records(request, fitted, &design)?;
                (design, measured)
            }
            Some(Balanced { counted, .. }) => {
                let weighted = Altered::weighted(&rows, &counted.weights)?;
                let design = designed(&weighted).and_then(|d| d.at_scale(plan.scale_for(counted)));
                let design = design.map_err(fail)?;
                let mut measured = Distribution::default();
                measured.extend(&counted.eta.iter().map(|e| e / design.factor.scale()).collect::<Vec<f64>>());
                (design, measured)
            }
        };
        let whole = goals.iter().find(|g| g.secret == Secret::Record);
        let eta = match whole {
            Some(goal) => Eta {
                max: Some(goal.eta),
                target: Some(Solved { eta: goal.eta, statistic: choice::Statistic::Max }),
            },
            None => match measured.max() {
                // Nothing leaks: no grid has a zero.
                0.0 => Eta { max: Some(0.0), target: None },
                eta => Eta { max: Some(public_sigma(eta)?), target: None },
            },
        };
        let published = PublishedShape {
            shape: design.shape,
            source: match &shape.source {
                ShapeSource::Nowhere => Source::Nowhere,
                ShapeSource::Rows => Source::Records,
                // Its name may be private; what it holds is not.
                ShapeSource::Table(_) => Source::Table { files: vec![] },
                ShapeSource::Bounds => Source::Bounds,
            },
            goals: goals.clone(),
            coefficients: contrast_names(encoding),
            factor: design.factor.clone(),
        };
        let instead = shape.instead(&design);
        Ok(Self { design, published, eta, measured, instead })
    }

    /// Root of the mean variance in public units.
    pub(super) fn sigma(&self) -> f64 {
        let (p, covariance) = (self.design.noise.len(), self.design.noise.covariance());
        ((0..p).map(|i| covariance[i * p + i]).sum::<f64>() / p.max(1) as f64).sqrt()
    }
}

/// η of an attribute is said per public unit: per encoded unit it would hang on a scale that was read off the data. What was
/// given as a standard deviation in own units needs no scale, and is computed from the public unit alone, to the last digit.
fn in_public_units(target: &mut Target, goal: &mut Goal, units: &Units) {
    let Protected::Attribute(directions) = &mut target.protected else { return };
    let count = directions.count;
    for (j, unit) in units.public().iter().enumerate() {
        let row = &mut directions.basis[j * count..(j + 1) * count];
        if row.iter().all(|b| *b == 0.0) || units.stretch(j) == 1.0 {
            continue;
        }
        row.iter_mut().filter(|b| **b != 0.0).for_each(|b| *b = 1.0);
        if let Some(sd) = goal.sd {
            target.eta = unit.unit / sd;
            goal.eta = target.eta;
        }
    }
}

/// η of whole records under the noise.
fn whole_records(request: &Request, fitted: &Fitted, design: &Design) -> Result<Distribution> {
    let release = Release { sigma: 1.0, releases: 1, label_secret: request.label_secret };
    let explained = |e| explain(e, &fitted.loaded.encoding, request.l2);
    let rows = fitted.units.rows(&fitted.loaded.rows);
    match &fitted.fit {
        Minimiser::Glm(fit) => {
            let geometry = Geometry::under(fit, &[], release, &design.noise).map_err(explained)?;
            distribution(&rows, |block, (eta, records): &mut (Distribution, Records)| {
                geometry.eta(block, records);
                eta.extend(&records.eta);
                Ok(())
            })
        }
        Minimiser::Softmax(fit) => {
            let geometry = SoftmaxGeometry::under(fit, &[], release, &design.noise).map_err(explained)?;
            distribution(&rows, |block, (eta, records): &mut (Distribution, SoftmaxRecords)| {
                geometry.records(block, records)?;
                eta.extend(&records.eta);
                Ok(())
            })
        }
    }
}

/// η of all rows, block by block.
fn distribution<R: Default + Send>(
    rows: &dyn Rows,
    measure: impl Fn(&Block, &mut (Distribution, R)) -> leakscope_core::Result<()> + Sync,
) -> Result<Distribution> {
    let mut eta = Distribution::default();
    rows.fold(
        <(Distribution, R)>::default,
        |state, block| measure(block, state),
        |(part, _)| {
            eta.merge(part);
            Ok(())
        },
    )?;
    Ok(eta)
}

/// A shape that is public, or none.
struct PublicShape {
    factor: Option<Factor>,
    source: ShapeSource,
    /// Whether another was asked for.
    replaced: bool,
}

impl PublicShape {
    /// The shape of the design: isotropic noise has none.
    fn shape(&self, options: &NoiseOptions) -> Shape {
        if self.factor.is_some() { options.shape } else { Shape::Isotropic }
    }

    /// Why it is not the noise asked for.
    fn instead(&self, design: &Design) -> Option<String> {
        let dearer = if design.gain < 1.0 { DEARER } else { "" };
        self.replaced.then(|| match &self.factor {
            Some(_) => {
                format!(
                    "{FROM_RECORDS} The shape was taken from the public bounds of the columns alone.{dearer}"
                )
            }
            None => format!(
                "{FROM_RECORDS} Isotropic noise is safer, since it has no shape, and was taken instead."
            ),
        })
    }
}

/// Where a shape may come from, in order: a public table, public bounds; else there is none.
struct Search<'a> {
    options: &'a NoiseOptions,
    request: &'a Request,
    encoding: &'a Encoding,
    units: &'a Units,
    targets: &'a [Target],
    hooks: &'a Hooks,
}

impl Search<'_> {
    fn run(&self) -> Result<PublicShape> {
        let options = self.options;
        if !options.is_shaped() {
            return Ok(PublicShape { factor: None, source: ShapeSource::Nowhere, replaced: false });
        }
        if let Some(read) = &options.shape_from {
            let table = public::table(read, self.encoding, self.hooks)?;
            let factor = Some(self.shape_of(&table).map_err(|e| Failure::option("shape_from", e))?);
            return Ok(PublicShape { factor, source: ShapeSource::Table(read.names()), replaced: false });
        }
        // Which of the two is taken follows from what was given alone: that one is cheaper on these records would show in it.
        let made_up = public::made_up(self.encoding, &self.request.public);
        let factor = made_up.and_then(|rows| self.shape_of(&rows).ok());
        let source = if factor.is_some() { ShapeSource::Bounds } else { ShapeSource::Nowhere };
        Ok(PublicShape { factor, source, replaced: true })
    }

    /// The shape that public rows (encoded) would have, for the same targets, in public units.
    fn shape_of(&self, encoded: &dyn Rows) -> Result<Factor> {
        let (encoding, l2) = (self.encoding, self.request.l2);
        let rows = self.units.rows(encoded);
        let (penalty, explained) = (crate::model::penalty(self.request), |e| explain(e, encoding, l2));
        let fit = match class_count(encoding) {
            None => Minimiser::fit(&rows, self.request.family, penalty, self.request.max_classes)
                .map_err(explained)?,
            Some(classes) => Minimiser::Softmax(of_all_classes(&rows, penalty, classes, &explained)?),
        };
        // What a public table gives away about itself does not count, and a shape does not change where all targets grow alike.
        let mut request = core::Request {
            gap: self.options.gap,
            shape_budget: 1.0,
            ..core::Request::new(self.targets.to_vec(), self.options.shape)
        };
        request.targets.iter_mut().for_each(|t| t.eta *= FAR);
        let factor = core::design(&rows, &fit, &request).map_err(|e| failed(e, encoding, l2))?.factor;
        // Its scale is that of other targets.
        Ok(Factor { quarters: 0, ..factor })
    }
}

/// Sums of a million terms leave the counted η this far off, relative.
const ROUNDING: f64 = 1e-9;

/// Targets of a public table, over those of the records: nothing of its shape is then taken off them.
const FAR: f64 = 1e6;

/// For the owner alone: it is measured on the records.
const DEARER: &str = " On these records isotropic noise (⟨noise_shape=isotropic⟩) would add less to the error of predictions; that was not \
                      chosen for you, because the choice would be published, and would tell about the records.";

const FROM_RECORDS: &str = "A shape that is read off the records is not released: its scale would be published with it, and over several \
                            releases that tells the values of the record that it was made for.";
