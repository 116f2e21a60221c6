//! What the user should know of an audit, and what its numbers rest on, in whole sentences.

use super::assemble::AuditParts;
use crate::remarks::{left_out, listed, of_data};
use leakscope_core::glm::ModelKind;
use leakscope_report::choice::ScalingMode;
use leakscope_report::noise::Source;
use leakscope_table::{Attribute, Encoding, MIN_LEVEL_COUNT, TargetCoding};

/// A given model this close to the minimiser is at it.
const AT_MINIMISER: f64 = 1e-6;

/// One that is this far away is another model.
const FAR_AWAY: f64 = 0.1;

/// What to know of given coefficients that are so far from the minimiser, relative.
pub(super) fn away_from_minimiser(relative: f64) -> Option<String> {
    let why = match relative > FAR_AWAY {
        true => {
            " So far away, it was probably fitted on other rows or with other settings, or it had not converged."
        }
        false => "",
    };
    (relative > AT_MINIMISER).then(|| {
        format!(
            "The given coefficients are {relative:.1e} (relative) away from the minimiser on these data. Leakage is derived \
             for the minimiser; for a model that is not there the numbers are an approximation whose error grows with that \
             distance.{why}"
        )
    })
}

/// Categories whose list of levels one record decides, and what ends that.
fn hanging_levels(encoding: &Encoding) -> Option<String> {
    let hang = |a: &Attribute| a.levels_hang_on_one.as_ref().map(|_| a.name.clone());
    let names: Vec<String> = encoding.attributes.iter().filter_map(hang).collect();
    let ends = match encoding.levels_settled_at {
        Some(count) => {
            format!(" ⟨min_level_count={count}⟩ merges rarer levels so that no record decides that.")
        }
        None => String::new(),
    };
    (!names.is_empty()).then(|| {
        format!(
            "One record decides which levels are listed of {}: with another value in it the model would have other columns.{ends}",
            listed(&names)
        )
    })
}

impl AuditParts<'_> {
    /// Things the user should know.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.facts.warnings.clone();
        warnings.extend(self.noise.iter().filter_map(|n| n.instead.clone()));
        warnings.extend(of_data(self.encoding));
        warnings.extend(hanging_levels(self.encoding));
        warnings.extend(self.small_groups());
        if let Some(scored) = &self.score
            && scored.dropped > 0
        {
            warnings.push(left_out(scored.dropped, " to score"));
        }
        warnings
    }

    /// Groups that are hardly more than their records.
    fn small_groups(&self) -> Option<String> {
        let group = self.encoding.group.as_ref()?;
        let least = self.request.min_level_count.unwrap_or(MIN_LEVEL_COUNT);
        let levels = group.levels.iter().zip(&self.facts.groups);
        let small: Vec<String> =
            levels.filter(|(_, (n, _))| *n < least).map(|(name, _)| name.clone()).collect();
        (!small.is_empty()).then(|| {
            format!(
                "Groups of fewer than {least} records: {}. What is said of such a group is said of its records, nearly one by \
                 one: leave it out of what you show to others.",
                listed(&small)
            )
        })
    }

    /// What every number rests on.
    pub(super) fn assumptions(&self) -> Vec<String> {
        let release = self.facts.release;
        let secret = if release.label_secret {
            "The secret is the whole record, label included: all of its columns and the target."
        } else {
            "The label is taken as public: the secret is the record's columns without the target."
        };
        let often = if release.releases == 1 { "once".into() } else { format!("{} times", release.releases) };
        let released = match &self.noise {
            Some(_) => format!(
                "What is released is the coefficients of the model plus Gaussian noise with the covariance that is stated, {often}."
            ),
            None => format!(
                "What is released is every coefficient of the model plus independent Gaussian noise of standard deviation σ = {}, \
                 {often}.",
                release.sigma
            ),
        };
        let mut list = vec![
            released,
            "The attacker sees the release and may know every other record, and every other value of the record \
             under attack; knowing less only makes it harder."
                .into(),
            secret.into(),
            self.scaling_in_words(),
            "Leakage is a derivative at the record's actual values: it tells how precisely small changes could be \
             seen. It is exact for the model at its minimiser."
                .into(),
            match self.encoding.target.coding {
                TargetCoding::Classes(_) => {
                    "η of a record is measured in the encoded units: one unit is a standard deviation of a scaled number, the \
                     switch of an indicator, or the switch of the label from one class to another. Coefficients of the classes \
                     sum to zero: noise along what they have in common tells nothing and hides nothing."
                }
                TargetCoding::TwoClass { .. } | TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
                    "η of a record is measured in the encoded units: one unit is a standard deviation of a scaled number, or \
                     the switch of an indicator."
                }
            }
            .into(),
        ];
        if self.noise.as_ref().is_some_and(|n| n.source == Source::Records) {
            list.push(
                "The covariance of the noise is read off the records. What it gives away about small changes is counted beside η; \
                 how often two values are told apart, and η of groups and of all records together, take the covariance as known: \
                 whoever sees it, and knows all else, may recompute it for each value."
                    .into(),
            );
        }
        match self.facts.model.family {
            ModelKind::Huber(_) => list.push(
                "The threshold of Huber's loss is taken as given: where it was read off the data (as a multiple of their spread), \
                 what it gives away is not counted. The curvature of the loss jumps at the threshold; a record is counted on the \
                 side where it is."
                    .into(),
            ),
            ModelKind::SquaredHinge => list.push(
                "The curvature of the squared hinge jumps at margin one: a record is counted on the side where it is, and one \
                 beyond the margin leaks through its label alone."
                    .into(),
            ),
            ModelKind::Linear
            | ModelKind::Logistic
            | ModelKind::Poisson
            | ModelKind::Gamma
            | ModelKind::Tweedie(_)
            | ModelKind::Softmax => {}
        }
        if self.encoding.weights.is_some() {
            list.push("Sample weights are taken as public, and count in every record's leakage.".into());
        }
        list
    }
}

impl AuditParts<'_> {
    /// What of the encoding counts and what is taken as public.
    fn scaling_in_words(&self) -> String {
        match &self.scaling {
            Some(s) if s.mode == ScalingMode::Counted => format!(
                "Leakage of records and attributes counts what a record does to the scaling of its columns{} (that of groups and \
                 of all records together does not). Category levels, the penalty and the number of records are taken as \
                 public: what they give away is not counted.",
                match s.uncounted.as_slice() {
                    [] => String::new(),
                    some => format!(", but for {}, where values were filled in", listed(some)),
                }
            ),
            Some(_) | None => "The encoding (category levels, scaling, components), the penalty and the number of records are taken as \
                 public: what they give away is not counted."
                .into(),
        }
    }
}
