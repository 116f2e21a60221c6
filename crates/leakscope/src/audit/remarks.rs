//! What the user should know of an audit, and what its numbers rest on, in whole sentences.

use super::assemble::Found;
use crate::remarks::{left_out, listed, nearly_singular, of_data};
use leakscope_core::glm;
use leakscope_report::choice::ScalingMode;

/// A given model this close to the minimiser is at it.
const AT_MINIMISER: f64 = 1e-6;

impl Found<'_> {
    /// Things the user should know.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = nearly_singular(self.encoding, self.geometry).into_iter().collect();
        if let Some(best) = &self.model.best {
            let (relative, _) = glm::distance(self.geometry.fit(), best);
            if relative > AT_MINIMISER {
                warnings.push(format!(
                    "The given coefficients are {relative:.1e} (relative) away from the minimiser on these data. \
                     Leakage is derived for the minimiser; for a model that is not there the numbers are an \
                     approximation whose error grows with that distance."
                ));
            }
        }
        warnings.extend(of_data(self.encoding));
        if let Some(scored) = &self.score
            && scored.dropped > 0
        {
            warnings.push(left_out(scored.dropped, " to score"));
        }
        warnings
    }

    /// What every number rests on.
    pub(super) fn assumptions(&self) -> Vec<String> {
        let release = self.geometry.release();
        let secret = if release.label_secret {
            "The secret is the whole record, label included: all of its columns and the target."
        } else {
            "The label is taken as public: the secret is the record's columns without the target."
        };
        let mut list = vec![
            format!(
                "What is released is every coefficient of the model plus independent Gaussian noise of standard \
                 deviation σ = {}, {}.",
                release.sigma,
                if release.releases == 1 { "once".into() } else { format!("{} times", release.releases) }
            ),
            "The attacker sees the release and may know every other record, and every other value of the record \
             under attack; knowing less only makes it harder."
                .into(),
            secret.into(),
            self.scaling_in_words(),
            "Leakage is a derivative at the record's actual values: it tells how precisely small changes could be \
             seen. It is exact for the model at its minimiser."
                .into(),
            "η of a record is measured in the encoded units: one unit is a standard deviation of a scaled number, or \
             the switch of an indicator."
                .into(),
        ];
        if self.encoding.weights.is_some() {
            list.push("Sample weights are taken as public, and count in every record's leakage.".into());
        }
        list
    }
}

impl Found<'_> {
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
