//! The model of a release in public units, and η of its records with everything that was read off the data counted.
//!
//! A plain model is the one of the encoding, whose scales count through the penalty ([`Counted`]). A balanced one is fitted
//! in public units themselves: they are locally constant, so that its weights are all there is to count
//! ([`counted`]), after as many iterations as were asked for: a number that were chosen on the data would show in the model. So
//! is one whose noise has a shape: nothing of its scaling is left to count, in η and in the covariance.

use super::shaped::Plan;
use super::{Terms, refuse};
use crate::balance::{self, Balancing};
use crate::failure::explain;
use crate::model::{self, Loaded, penalty};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::balance::{CountedBalance, Options, Sharing, Update, Variant, counted, most_even};
use leakscope_core::fisher::Release as Noise;
use leakscope_core::fisher::scaling::{Counted, Depth};
use leakscope_core::fisher::softmax::{SoftmaxEta, SoftmaxGeometry};
use leakscope_core::glm::softmax::{self, SoftmaxFit};
use leakscope_core::glm::{Minimiser, ModelKind};
use leakscope_core::measure::{self, CountedEta};
use leakscope_core::num::Distribution;
use leakscope_core::pass::Runner as _;
use leakscope_core::rows::{Altered, Rows as _};
use leakscope_core::units::{FitInUnits, PublicUnit, Scaling, SoftmaxInUnits, Units};
use leakscope_report::release::Counting;
use leakscope_table::{Attribute, Encoding, Hooks, Kind, MIN_LEVEL_COUNT, Scale, TargetCoding};
use std::borrow::Cow;

/// Products of O(p²) that are worth an exact η; beyond, it is bounded.
const AFFORDABLE: f64 = 2e9;
/// A centre this many units from zero leaves no exact multiple of the unit.
const FAR: f64 = (1_u64 << 40) as f64;
/// A column of indicators.
const INDICATOR: PublicUnit = PublicUnit { centre: 0.0, unit: 1.0 };

/// A model before its noise.
pub(super) struct Fitted {
    pub(super) loaded: Loaded,
    pub(super) units: Units,
    /// The model as it was fitted, for remarks about it.
    pub(super) fit: Minimiser,
    /// Its coefficients in public units.
    pub(super) w: Vec<f64>,
    /// The model in public units, where it is the minimiser for the records as they are: not where weights balance it, which are
    /// found again for every value that is put in place.
    pub(super) in_units: Option<InPublicUnits>,
    /// η of its records at σ = 1.
    pub(super) unit: Distribution,
    pub(super) counting: Counting,
    /// How the model was balanced, if it was.
    pub(super) balancing: Option<Balanced>,
}

/// How a model was balanced.
pub(super) struct Balanced {
    pub(super) options: Options,
    pub(super) iterations: usize,
    /// Its weights, and its leakage with them counted, under noise of scale one.
    pub(super) counted: CountedBalance,
    /// After how many, up to that, its counted leakage would be most even; for the owner.
    pub(super) most_even: usize,
}

/// The table, and the units in which its model is published.
pub(super) fn opened(request: &Request, hooks: &Hooks) -> Result<(Loaded, Units)> {
    let min_level_count = Some(min_level_count(request));
    let request = &Request { min_level_count, ..request.clone() };
    let loaded = model::load(request, hooks)?;
    refuse::guesses(&loaded.encoding)?;
    refuse::columns(&loaded.encoding)?;
    crate::telling::check(request, &loaded.encoding)?;
    let units = units(request, &loaded.encoding)?;
    Ok((loaded, units))
}

/// A model of either kind in public units.
pub(super) enum InPublicUnits {
    /// One vector of coefficients.
    Glm(FitInUnits),
    /// One for each class.
    Softmax(SoftmaxInUnits),
}

impl Fitted {
    /// Fits and measures; with a plan for noise with a shape in public units.
    pub(super) fn new(
        request: &Request,
        terms: &Terms,
        (loaded, units): (Loaded, Units),
        plan: Option<&Plan>,
    ) -> Result<Self> {
        match (terms.balance, plan) {
            (0, None) if request.family == ModelKind::Softmax => Self::softmax(request, loaded, units),
            (0, None) => Self::plain(request, loaded, units),
            (0, Some(_)) => Self::in_public_units(request, loaded, units.fitted_in()),
            (_, plan) => Self::balanced(request, terms, (loaded, units.fitted_in()), plan),
        }
    }

    /// η is measured once the noise is known.
    fn in_public_units(request: &Request, loaded: Loaded, units: Units) -> Result<Self> {
        let rows = units.rows(&loaded.rows);
        let fit = Minimiser::fit(&rows, request.family, penalty(request), request.max_classes)
            .map_err(|e| explain(e, &loaded.encoding, request.l2))?;
        let (w, unit, counting) = (fit.w().to_vec(), Distribution::default(), Counting::Units);
        let of = |n: u64| vec![n as f64 * request.l2; units.len()];
        let in_units = Some(match fit.clone() {
            Minimiser::Glm(fit) => InPublicUnits::Glm(FitInUnits { strength: of(fit.n), fit }),
            Minimiser::Softmax(fit) => {
                unambiguous(&loaded.encoding)?;
                InPublicUnits::Softmax(SoftmaxInUnits { strength: of(fit.n), fit })
            }
        });
        Ok(Self { loaded, units, fit, w, in_units, unit, counting, balancing: None })
    }

    /// The same of a softmax model: what its scaling gives away is counted exactly, always.
    fn softmax(request: &Request, loaded: Loaded, units: Units) -> Result<Self> {
        let explained = |e| explain(e, &loaded.encoding, request.l2);
        unambiguous(&loaded.encoding)?;
        let fit: SoftmaxFit =
            softmax::fit(&loaded.rows, penalty(request), request.max_classes).map_err(explained)?;
        let in_units = units.softmax(&fit).map_err(explained)?;
        let noise = Noise { sigma: 1.0, releases: 1, label_secret: request.label_secret };
        let geometry = SoftmaxGeometry::new(&in_units.fit, &[], noise)
            .and_then(|geometry| geometry.with_units(&units))
            .map_err(explained)?;
        let eta = SoftmaxEta { geometry: Cow::Owned(geometry), counted: true };
        let unit = units.rows(&loaded.rows).run(&eta)?.eta;
        let w = in_units.fit.w.clone();
        let (fit, in_units) = (Minimiser::Softmax(fit), Some(InPublicUnits::Softmax(in_units)));
        Ok(Self { loaded, units, w, in_units, fit, unit, counting: Counting::Exact, balancing: None })
    }

    fn plain(request: &Request, loaded: Loaded, units: Units) -> Result<Self> {
        let fit = loaded.fit(request)?;
        let in_units = units.fit(&fit)?;
        let noise = Noise { sigma: 1.0, releases: 1, label_secret: request.label_secret };
        let counted = Counted::new(&in_units, &units, &[], noise)
            .map_err(|e| explain(e, &loaded.encoding, request.l2))?;
        let p = fit.w.len() as f64;
        let (depth, counting) = match loaded.rows.len() as f64 * p * p <= AFFORDABLE {
            true => (Depth::Exact, Counting::Exact),
            false => (Depth::Bounded, Counting::Bounded),
        };
        let measuring = Cow::Owned(measure::Counting { counted, depth, replaces: true });
        let unit = units.rows(&loaded.rows).run(&CountedEta { counting: measuring })?.eta;
        let w = in_units.fit.w.clone();
        let (fit, in_units) = (Minimiser::Glm(fit), Some(InPublicUnits::Glm(in_units)));
        Ok(Self { loaded, units, w, in_units, fit, unit, counting, balancing: None })
    }

    fn balanced(
        request: &Request,
        terms: &Terms,
        (loaded, units): (Loaded, Units),
        plan: Option<&Plan>,
    ) -> Result<Self> {
        let balancing = Balancing {
            attribute: terms.attribute.clone(),
            sum_to_one: false,
            sharing: Sharing::Sample,
            variant: Variant::Weighted,
            update: Update::Published,
            clamp: None,
            iterations: terms.balance,
            tolerance: 0.0,
            sigma: 1.0,
        };
        let shape = plan.map(Plan::unit).transpose()?.flatten();
        let options = Options { shape, ..balance::options(request, &balancing, &loaded)? };
        let attributes = plan.map_or_else(Vec::new, Plan::directions);
        let (fit, unit, most_even, counted) = {
            let rows = units.rows(&loaded.rows);
            let model = (request.family, penalty(request));
            let explained = |e| explain(e, &loaded.encoding, request.l2);
            if work_of_counting(&loaded, terms.balance) > MOST_WORK {
                return Err(uncounted());
            }
            let counted = counted(&rows, model, &options, &attributes, terms.balance)
                .map_err(explained)?
                .ok_or_else(uncounted)?;
            let (most_even, _) = most_even(&rows, model, &options, &[], terms.balance)
                .map_err(explained)?
                .ok_or_else(uncounted)?;
            let mut unit = Distribution::default();
            unit.extend(&counted.eta);
            let weighted = Altered::weighted(&rows, &counted.weights)?;
            let fit = Minimiser::fit(&weighted, model.0, model.1, request.max_classes).map_err(explained)?;
            (fit, unit, most_even, counted)
        };
        match fit {
            Minimiser::Glm(_) => {}
            Minimiser::Softmax(_) => unambiguous(&loaded.encoding)?,
        }
        let (w, counting) = (fit.w().to_vec(), Counting::Weights);
        let balancing = Some(Balanced { options, iterations: terms.balance, counted, most_even });
        Ok(Self { loaded, units, fit, w, in_units: None, unit, counting, balancing })
    }
}

/// Checks that no two coefficients have the same name.
fn unambiguous(encoding: &Encoding) -> Result<()> {
    let mut names = model::coefficient_names(encoding);
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Failure::Data(format!(
            "two coefficients would be published as `{}`, a class and a column: rename one of them, without `: `",
            pair[0]
        ))),
    }
}

/// Multiplications that counting may take in a release, a quarter of an hour of them: it shows no progress on its way.
const MOST_WORK: f64 = 2e12;

/// n q³ for every iteration, of every iteration that is looked at; q coefficients.
fn work_of_counting(loaded: &Loaded, iterations: usize) -> f64 {
    let contrasts = match &loaded.encoding.target.coding {
        TargetCoding::Classes(classes) => classes.len().saturating_sub(1).max(1),
        TargetCoding::TwoClass { .. }
        | TargetCoding::Number
        | TargetCoding::Count
        | TargetCoding::Positive => 1,
    };
    let q = (contrasts * loaded.encoding.width()) as f64;
    loaded.rows.len() as f64 * q.powi(3) * (iterations as f64 + 1.0).powi(2)
}

/// Why nothing is said about a balanced model.
fn uncounted() -> Failure {
    Failure::option(
        "balance",
        "how the weights depend on each record cannot be counted here (a record leaks nothing, two of its directions leak \
         the same, or there are too many records or columns), so no η can be stated: release without ⟨balance⟩",
    )
}

/// The count below which a level is rare.
pub(super) fn min_level_count(request: &Request) -> u64 {
    // Not zero: a level is listed because a record has it.
    request.min_level_count.unwrap_or(MIN_LEVEL_COUNT).max(1)
}

/// Whether somebody gave the bounds of a column; those of a draft were read off the data.
pub(super) fn has_public_bounds(request: &Request, a: &Attribute) -> bool {
    let by_option = request.public.bounds.iter().any(|(name, _)| name.trim() == a.name);
    let by_schema = request.public.schema.as_ref().is_some_and(|s| !s.draft);
    a.bounds.is_some() && (by_option || by_schema)
}

fn units(request: &Request, encoding: &Encoding) -> Result<Units> {
    let (mut scaling, mut public, mut rounded) = (vec![], vec![], vec![]);
    for a in &encoding.attributes {
        let of_bounds = a.bounds.filter(|_| has_public_bounds(request, a));
        let of_bounds = of_bounds.map(|b| PublicUnit::rounded(b.centre(), b.half_range()));
        let (own, unit) = match (a.kind, encoding.scale) {
            (Kind::Category, _) => (Scaling::NONE, Some(INDICATOR)),
            // Taken as it is, with noise of its size: without an intercept nothing takes a centre up.
            (Kind::Number, Scale::None | Scale::UnitBall) => {
                let centre = if encoding.intercept { a.mean } else { 0.0 };
                let near = PublicUnit::rounded(centre, a.population_sd);
                let public_unit = match (of_bounds, encoding.intercept) {
                    (Some(unit), false) => Some(PublicUnit { centre: 0.0, ..unit }),
                    (unit, _) => unit,
                };
                if public_unit.is_none() {
                    rounded.push(a);
                }
                (Scaling::NONE, Some(public_unit.unwrap_or(near)))
            }
            (Kind::Number, Scale::Standard) => {
                (Scaling::Own { mean: a.centre, deviation: a.scale }, of_bounds)
            }
            (Kind::Number, Scale::Bounds) => (Scaling::Given { centre: a.centre, scale: a.scale }, of_bounds),
        };
        let shown = unit.unwrap_or_else(|| PublicUnit::rounded(a.centre, a.scale));
        if (shown.centre / shown.unit).abs() > FAR {
            return Err(Failure::Data(format!(
                "column `{}` lies around {}, which is more than 2⁴⁰ times its spread: subtract a number that is public from it",
                a.name, shown.centre
            )));
        }
        for _ in a.columns.clone() {
            scaling.push(own);
            public.push(unit);
        }
    }
    let units = Units::partly(scaling, &public, encoding.intercept).map_err(|e| match e {
        CoreError::NotApplicable { .. } => Failure::option(
            "scale",
            "columns are centred, and with ⟨intercept=false⟩ their means would have to be published: fit an intercept, or take \
             columns as they are with ⟨scale=none⟩",
        ),
        other => explain(other, encoding, request.l2),
    })?;
    let watched = |units: Units, a: &&Attribute| {
        units.rounded_from(a.columns.start, (a.mean, a.population_sd), encoding.intercept)
    };
    Ok(rounded.iter().fold(units, watched))
}
