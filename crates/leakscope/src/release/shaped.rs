//! Noise with a shape for a release: made for its targets in public units, with a covariance that may be published.
//!
//! A shape that is read off the records is not released, not even with noise of its own: the scale that meets the targets under a
//! shape drawn at random is a threshold on the binding record, which many releases locate. A shape from a public table or from
//! public bounds is public as it is. The model is fitted in public
//! units themselves, so that its scaling leaves nothing to count. Whatever is published is a function of whole numbers with
//! discrete Gaussian noise, of the options, and of numbers on public grids.

use super::fitted::Fitted;
use crate::classes::contrast_names;
use crate::failure::explain;
use crate::noise::{NoiseOptions, ShapeSource, failed, of_all_classes, public};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::fisher::noise::{
    self as core, Design, Factor, Protected, Shape, Target, design_with_shape,
};
use leakscope_core::fisher::softmax::{SoftmaxGeometry, SoftmaxRecords};
use leakscope_core::fisher::{Geometry, Records, Release};
use leakscope_core::glm::{self, Minimiser};
use leakscope_core::num::Distribution;
use leakscope_core::rows::{Block, Rows};
use leakscope_core::units::{Units, public_sigma};
use leakscope_report::choice;
use leakscope_report::noise::{Goal, Secret, Source};
use leakscope_report::release::{Eta, PublishedShape, Target as Solved};
use leakscope_table::Hooks;

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

impl Shaped {
    /// The noise of the options for a model that was fitted in public units.
    pub(super) fn new(
        options: &NoiseOptions,
        request: &Request,
        fitted: &Fitted,
        hooks: &Hooks,
    ) -> Result<Self> {
        options.check()?;
        let (encoding, units) = (&fitted.loaded.encoding, &fitted.units);
        let mut asked = options.asked(encoding, request.label_secret, Some(units))?;
        for (target, goal) in asked.targets.iter_mut().zip(&asked.goal_of) {
            in_public_units(target, &mut asked.goals[*goal], units);
        }
        let ask = |shape| core::Request {
            gap: options.gap,
            shape_budget: options.shape_budget,
            ..core::Request::new(asked.targets.clone(), shape)
        };
        let found = Search { options, request, fitted, ask: &ask, hooks }.run()?;
        let measured = whole_records(request, fitted, &found.design)?;
        let whole = asked.goals.iter().find(|g| g.secret == Secret::Record);
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
            shape: found.design.shape,
            source: match found.source {
                ShapeSource::Nowhere => Source::Nowhere,
                ShapeSource::Rows => Source::Records,
                // Its name may be private; what it holds is not.
                ShapeSource::Table(_) => Source::Table { files: vec![] },
                ShapeSource::Bounds => Source::Bounds,
            },
            goals: asked.goals,
            coefficients: contrast_names(encoding),
            factor: found.design.factor.clone(),
        };
        Ok(Self { design: found.design, published, eta, measured, instead: found.instead })
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

/// What is found.
struct Found {
    design: Design,
    source: ShapeSource,
    instead: Option<String>,
}

/// Where a shape may come from, in order: a public table, public bounds; else there is none.
struct Search<'a, F> {
    options: &'a NoiseOptions,
    request: &'a Request,
    fitted: &'a Fitted,
    ask: &'a F,
    hooks: &'a Hooks,
}

impl<F: Fn(Shape) -> core::Request> Search<'_, F> {
    fn run(&self) -> Result<Found> {
        let (options, fitted) = (self.options, self.fitted);
        let fit = &fitted.fit;
        let rows = fitted.units.rows(&fitted.loaded.rows);
        let encoding = &fitted.loaded.encoding;
        let fail = |e| failed(e, encoding, self.request.l2);
        let public = |design, source, instead| Found { design, source, instead };
        if !options.is_shaped() {
            let design = core::design(&rows, fit, &(self.ask)(Shape::Isotropic)).map_err(fail)?;
            return Ok(public(design, ShapeSource::Nowhere, None));
        }
        if let Some(read) = &options.shape_from {
            let table = public::table(read, encoding, self.hooks)?;
            let factor = self.shape_of(&table).map_err(|e| Failure::option("shape_from", e))?;
            let design = design_with_shape(&rows, fit, &(self.ask)(options.shape), &factor).map_err(fail)?;
            return Ok(public(design, ShapeSource::Table(read.names()), None));
        }
        // Which of the two is taken follows from what was given alone: that one is cheaper on these records would show in it.
        if let Some(made_up) = public::made_up(encoding, &self.request.public)
            && let Ok(factor) = self.shape_of(&made_up)
        {
            let design = design_with_shape(&rows, fit, &(self.ask)(options.shape), &factor).map_err(fail)?;
            let dearer = if design.gain < 1.0 { DEARER } else { "" };
            let instead = format!(
                "{FROM_RECORDS} The shape was taken from the public bounds of the columns alone.{dearer}"
            );
            return Ok(public(design, ShapeSource::Bounds, Some(instead)));
        }
        let isotropic = core::design(&rows, fit, &(self.ask)(Shape::Isotropic)).map_err(fail)?;
        let instead =
            format!("{FROM_RECORDS} Isotropic noise is safer, since it has no shape, and was taken instead.");
        Ok(public(isotropic, ShapeSource::Nowhere, Some(instead)))
    }

    /// The shape that public rows (encoded) would have, for the same targets, in public units.
    fn shape_of(&self, encoded: &dyn Rows) -> Result<Factor> {
        let (encoding, l2) = (&self.fitted.loaded.encoding, self.request.l2);
        let rows = self.fitted.units.rows(encoded);
        let (penalty, explained) = (crate::model::penalty(self.request), |e| explain(e, encoding, l2));
        let fit = match &self.fitted.fit {
            Minimiser::Glm(fit) => Minimiser::Glm(glm::fit(&rows, fit.family, penalty).map_err(explained)?),
            Minimiser::Softmax(fit) => {
                Minimiser::Softmax(of_all_classes(&rows, penalty, fit.classes, &explained)?)
            }
        };
        // What a public table gives away about itself does not count, and a shape does not change where all targets grow alike.
        let mut request = core::Request { shape_budget: 1.0, ..(self.ask)(self.options.shape) };
        request.targets.iter_mut().for_each(|t| t.eta *= FAR);
        Ok(core::design(&rows, &fit, &request).map_err(|e| failed(e, encoding, l2))?.factor)
    }
}

/// Targets of a public table, over those of the records: nothing of its shape is then taken off them.
const FAR: f64 = 1e6;

/// For the owner alone: it is measured on the records.
const DEARER: &str = " On these records isotropic noise (⟨noise_shape=isotropic⟩) would add less to the error of predictions; that was not \
                      chosen for you, because the choice would be published, and would tell about the records.";

const FROM_RECORDS: &str = "A shape that is read off the records is not released: its scale would be published with it, and over several \
                            releases that tells the values of the record that it was made for.";
