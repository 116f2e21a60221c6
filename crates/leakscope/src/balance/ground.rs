//! The rows that are balanced: those of the table, or a wide table in the space that its rows span.

use crate::failure::explain;
use crate::model::{Loaded, penalty, scores};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::Error as CoreError;
use leakscope_core::balance::{Balanced, Iteration, Level, Options, RowSpace, balance_model};
use leakscope_core::glm::softmax::expected_accuracy;
use leakscope_core::glm::{Metric, Minimiser};
use leakscope_core::rows::{Altered, Rows};

/// Rows, and what is balanced in their coordinates.
pub(crate) struct Ground<'a> {
    pub(super) loaded: &'a Loaded,
    space: Option<RowSpace>,
    pub(super) options: Options,
}

impl<'a> Ground<'a> {
    /// The table in the smallest coordinates that give the same numbers under isotropic noise.
    pub(super) fn new(request: &Request, loaded: &'a Loaded, options: &Options) -> Result<Self> {
        let also = match &options.level {
            Level::Record => None,
            Level::Attribute(directions) => Some(directions),
        };
        let space = RowSpace::of(&loaded.rows, penalty(request), also)?;
        let mut options = options.clone();
        if let (Some(space), Level::Attribute(directions)) = (&space, &mut options.level) {
            *directions = space.directions(directions);
        }
        Ok(Self { loaded, space, options })
    }

    /// The table as it is.
    pub(super) fn of_table(loaded: &'a Loaded, options: &Options) -> Self {
        Self { loaded, space: None, options: options.clone() }
    }

    /// The rows in these coordinates.
    pub(super) fn rows(&self) -> &dyn Rows {
        match &self.space {
            Some(space) => space.rows(),
            None => &self.loaded.rows,
        }
    }

    /// The coefficients of the table's columns.
    pub(super) fn coefficients(&self, fit: &Minimiser) -> Vec<f64> {
        match &self.space {
            Some(space) => space.coefficients(fit.w()),
            None => fit.w().to_vec(),
        }
    }

    /// How well a model does on rows of the table.
    pub(super) fn score(&self, rows: &dyn Rows, fit: &Minimiser, metric: Metric) -> Result<f64> {
        let w = self.coefficients(fit);
        Ok(match fit {
            Minimiser::Glm(_) => scores(rows, &w, metric, &[0.0])?.0[0],
            Minimiser::Softmax(fit) => expected_accuracy(rows, &w, fit.classes, &[0.0])?.values[0],
        })
    }

    /// What the user should know of the rows and of the model fitted to them.
    pub(super) fn remarks(&self, request: &Request, fit: &Minimiser) -> Result<Vec<String>> {
        let width = self.rows().width();
        self.loaded.remarks_in(request, fit, |weak| match &self.space {
            // Beside the span of the rows, every column is as weak as the others.
            Some(_) if weak != [width - 1] || !request.intercept => {
                (0..self.loaded.encoding.data_width()).collect()
            }
            Some(_) => vec![self.loaded.encoding.data_width()],
            None => weak,
        })
    }

    /// Runs core's balancing, with its errors in words.
    pub(super) fn balanced(
        &self,
        request: &Request,
        watch: impl FnMut(&Iteration, &Minimiser) -> Result<()>,
    ) -> Result<Balanced<Minimiser>> {
        self.balanced_as(request, &self.options, watch)
    }

    /// [`Ground::balanced`] with other options, in the same coordinates.
    pub(super) fn balanced_as(
        &self,
        request: &Request,
        options: &Options,
        mut watch: impl FnMut(&Iteration, &Minimiser) -> Result<()>,
    ) -> Result<Balanced<Minimiser>> {
        let mut failure = None;
        let model = (request.family, penalty(request), request.max_classes);
        let outcome = balance_model(self.rows(), model, options, |iteration, fit, _| {
            watch(iteration, fit).map_err(|f| {
                let interrupted = matches!(f, Failure::Interrupted);
                failure = Some(f);
                if interrupted { CoreError::Interrupted } else { CoreError::Source(String::new()) }
            })
        });
        match (outcome, failure) {
            (_, Some(failure)) => Err(failure),
            (outcome, None) => outcome.map_err(|e| explain(e, &self.loaded.encoding, request.l2)),
        }
    }
}

/// The balanced model of a table, in its own columns.
pub(crate) fn balanced(request: &Request, loaded: &Loaded, options: &Options) -> Result<Balanced<Minimiser>> {
    if options.shape.is_some() {
        return Ground::of_table(loaded, options).balanced(request, |_, _| Ok(()));
    }
    let ground = Ground::new(request, loaded, options)?;
    let mut outcome = ground.balanced(request, |_, _| Ok(()))?;
    if ground.space.is_some() {
        let rows = Altered::weighted(&loaded.rows, &outcome.weights)?;
        outcome.fit = Minimiser::fit(&rows, request.family, penalty(request), request.max_classes)
            .map_err(|e| explain(e, &loaded.encoding, request.l2))?;
    }
    Ok(outcome)
}
