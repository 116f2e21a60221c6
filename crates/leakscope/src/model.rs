//! A table and its model, as balance, attack and release need them: read and encoded as the audit does it.

pub(crate) use crate::classes::{class_names, coefficient_names, target_unit, two_class};
use crate::failure::explain;
use crate::noise::{self, UnitShape};
use crate::remarks;
use crate::request::{Noise, Request};
use crate::{Failure, Result};
use leakscope_core::fisher::softmax::SoftmaxGeometry;
use leakscope_core::fisher::{Geometry, Release};
use leakscope_core::glm::softmax::{expected_accuracy, expected_accuracy_under};
use leakscope_core::glm::{self, Fit, Fitted, Metric, Minimiser, ModelKind, Penalty, Utility};
use leakscope_core::pass::Runner;
use leakscope_core::rows::Rows;
use leakscope_report::subject::Subject;
use leakscope_table::{
    Attribute, Dataset, EncodeOptions, Encoding, Holdout, Hooks, Subset, Table, TargetKind, known_names,
};
use std::borrow::Cow;

/// A table, encoded, with rows to test on.
pub struct Loaded {
    /// How columns were encoded.
    pub encoding: Encoding,
    /// Rows to fit on.
    pub rows: Dataset,
    /// Rows to test on, where there are any.
    pub test: Option<Dataset>,
    /// Seed of the split (and of everything else random).
    pub seed: u64,
    /// What the user should know of the rows, in whole sentences.
    pub warnings: Vec<String>,
}

/// A model of one record is about nobody else.
pub(crate) fn check_rows(encoding: &Encoding) -> Result<()> {
    match encoding.rows_training {
        0 | 1 => Err(Failure::Data(
            "there is one row to fit on: a model of one record shows that record, and there is nothing to compare it with. Give a \
             table of more rows"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// Reads and encodes the table of a request.
pub fn load(request: &Request, hooks: &Hooks) -> Result<Loaded> {
    request.check()?;
    let table = Table::open_with(&request.read, hooks)?;
    let seed = request.seed.unwrap_or_else(crate::seed::draw);
    let encoding = Encoding::fit(&table, &request.roles, &encode_options(request, Some(seed)), hooks)?;
    check_rows(&encoding)?;
    let rows = Dataset::new(&table, &encoding, Subset::Training, hooks)?;
    let test = if let Some(read) = &request.test {
        Some((Dataset::new(&Table::open_with(read, hooks)?, &encoding, Subset::All, hooks)?, "test"))
    } else if request.holdout.is_some() {
        Some((Dataset::new(&table, &encoding, Subset::HeldOut, hooks)?, "holdout"))
    } else {
        None
    };
    if let Some((rows, flag)) = &test
        && rows.is_empty()
    {
        return Err(Failure::option(flag, "there are no rows to test on"));
    }
    let test = test.map(|t| t.0);
    let mut warnings = remarks::of_data(&encoding);
    warnings.extend(test.iter().flat_map(|rows| remarks::of_test(rows, request.test.is_some())));
    if let Some(group) = &encoding.group {
        let name = &group.name;
        warnings
            .push(format!("Groups of `{name}` are compared by an audit only: ⟨group⟩ does nothing here."));
    }
    Ok(Loaded { encoding, rows, test, seed, warnings })
}

/// How the columns of a request become rows of numbers.
pub(crate) fn encode_options(request: &Request, seed: Option<u64>) -> EncodeOptions {
    // Who gives the bounds of a target says that it is a number: otherwise a record with a third value would show in what is published.
    let two_class_coded = request.two_class_coded && !request.public.has_bounds(request.roles.target.trim());
    EncodeOptions {
        one_hot: request.one_hot,
        scale: request.scale,
        pca: request.pca,
        missing: request.missing,
        intercept: request.intercept,
        target: match request.family {
            ModelKind::Linear => TargetKind::Number { two_class_as_plus_minus_one: two_class_coded },
            ModelKind::Huber(_) => TargetKind::Number { two_class_as_plus_minus_one: false },
            ModelKind::Logistic | ModelKind::SquaredHinge => TargetKind::TwoClass01,
            ModelKind::Poisson | ModelKind::Tweedie(_) => TargetKind::Count,
            ModelKind::Gamma => TargetKind::Positive,
            ModelKind::Softmax => TargetKind::Classes { most: request.max_classes },
        },
        holdout: request.holdout.zip(seed).map(|(fraction, seed)| Holdout::seeded(fraction, seed)),
        positive: request.positive.clone(),
        public: request.public.clone(),
        min_level_count: request.min_level_count,
        repeated_ids: false,
    }
}

/// A request for a plain model, without anything that only an audit does.
pub fn plain(base: Request, sigma: Option<f64>) -> Request {
    Request { noise: sigma.map_or(Noise::Default, Noise::Given), ..base }
}

impl Loaded {
    /// Fits the model, whatever its kind.
    pub fn minimiser(&self, request: &Request) -> Result<Minimiser> {
        Minimiser::fit(&self.rows, request.family, penalty(request), request.max_classes)
            .map_err(|e| explain(e, &self.encoding, request.l2))
    }

    /// Fits a model with one vector of coefficients.
    pub fn fit(&self, request: &Request) -> Result<Fit> {
        glm::fit(&self.rows, request.glm()?, penalty(request))
            .map_err(|e| explain(e, &self.encoding, request.l2))
    }

    /// Noise with a shape for a model of these rows, where one is asked for.
    pub fn shape(&self, request: &Request, fit: &Minimiser, hooks: &Hooks) -> Result<Option<UnitShape>> {
        let Some(options) = request.noise.options() else { return Ok(None) };
        let model = noise::Model {
            encoding: &self.encoding,
            fit: fit.into(),
            units: None,
            l2: request.l2,
            label_secret: request.label_secret,
            releases: request.releases,
            public: &request.public,
        };
        UnitShape::new(options, &model, &self.rows, hooks).map(Some)
    }

    /// What the user should know of the rows and of the model fitted to them.
    pub fn remarks(&self, request: &Request, fit: &Minimiser) -> Result<Vec<String>> {
        self.remarks_in(request, fit, |weak| weak)
    }

    /// The same of a model in other coordinates; `columns` names those of the table that weak ones stand for.
    pub(crate) fn remarks_in(
        &self,
        request: &Request,
        fit: &Minimiser,
        columns: impl Fn(Vec<usize>) -> Vec<usize>,
    ) -> Result<Vec<String>> {
        let release = Release { sigma: 1.0, releases: 1, label_secret: request.label_secret };
        let explained = |e| explain(e, &self.encoding, request.l2);
        let of_fit: Vec<String> = match fit {
            Minimiser::Glm(fit) => {
                let geometry = Geometry::new(fit, &[], release).map_err(explained)?;
                let weakest = || columns(geometry.weakest_columns());
                let weak = remarks::few_digits(&self.encoding, geometry.condition(), fit.unsettled, weakest);
                weak.into_iter().chain(remarks::at_kinks(fit)).collect()
            }
            Minimiser::Softmax(fit) => {
                let geometry = SoftmaxGeometry::new(fit, &[], release).map_err(explained)?;
                let (condition, weakest) = geometry.condition();
                remarks::few_digits(&self.encoding, condition, fit.unsettled, || columns(weakest.to_vec()))
                    .into_iter()
                    .collect()
            }
        };
        Ok(self.warnings.iter().cloned().chain(of_fit).collect())
    }

    /// What documents say about data and model.
    pub fn subject(&self, request: &Request) -> Subject {
        Subject {
            files: request.read.names(),
            target: self.encoding.target.name.clone(),
            n: self.rows.len(),
            d: self.encoding.data_width(),
            family: request.family,
            l2: request.l2,
            intercept: request.intercept,
        }
    }

    /// What is measured on held-out rows.
    pub fn metric(&self, request: &Request) -> Metric {
        request.family.family().map_or(Metric::Accuracy, |f| Metric::of(f, two_class(&self.encoding)))
    }

    /// The attribute that a flag names.
    pub fn attribute(&self, flag: &str, name: &str) -> Result<(usize, &Attribute)> {
        if name == self.encoding.target.name {
            return Err(Failure::option(
                flag,
                format!("`{name}` is the target: name one of the columns it is predicted from"),
            ));
        }
        let entry = self.encoding.attributes.iter().enumerate().find(|(_, a)| a.name == name);
        entry.ok_or_else(|| {
            let known = known_names(name, self.encoding.attributes.iter().map(|a| a.name.as_str()));
            Failure::option(flag, format!("`{name}` is not an attribute of this model; {known}"))
        })
    }
}

/// The penalty of a request.
pub fn penalty(request: &Request) -> Penalty {
    Penalty { intercept_share: request.intercept_share, ..Penalty::new(request.l2, request.intercept) }
}

/// Expected metric over the noise at each scale (0: without noise), and that of a model without columns.
pub fn scores(rows: &dyn Rows, w: &[f64], metric: Metric, sigmas: &[f64]) -> Result<(Vec<f64>, f64)> {
    scores_under(rows, w, metric, sigmas, &[])
}

/// The same under noise with covariance `σ²FFᵀ` (`factor`, p × p; empty for isotropic noise).
pub fn scores_under(
    rows: &dyn Rows,
    w: &[f64],
    metric: Metric,
    sigmas: &[f64],
    factor: &[f64],
) -> Result<(Vec<f64>, f64)> {
    let (sigmas, w, factor) = (Cow::Borrowed(sigmas), Cow::Borrowed(w), Cow::Borrowed(factor));
    let total = rows.run(&Utility { metric, sigmas, w, factor })?;
    Ok((total.values(), total.constant_model()))
}

/// The same of a model of either kind; of a softmax model the factor is that of the noise on its contrasts, and isotropic noise is
/// on every coefficient of every class.
pub fn scores_of<'a>(
    rows: &Dataset,
    fit: impl Into<Fitted<'a>>,
    metric: Metric,
    sigmas: &[f64],
    factor: &[f64],
) -> Result<(Vec<f64>, f64)> {
    match fit.into() {
        Fitted::Glm(fit) => scores_under(rows, &fit.w, metric, sigmas, factor),
        Fitted::Softmax(fit) => {
            let scores = match factor.is_empty() {
                true => expected_accuracy(rows, &fit.w, fit.classes, sigmas)?,
                false => expected_accuracy_under(rows, &fit.w, fit.classes, (sigmas, factor))?,
            };
            Ok((scores.values, scores.constant_model))
        }
    }
}
