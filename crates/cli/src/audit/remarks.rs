//! What the user should know of an audit, and what its numbers rest on, in whole sentences.

use super::assemble::Found;
use leakscope_core::glm;
use leakscope_table::{Kind, Missing};

/// Condition number above which coefficients, and what follows from them, have few digits left.
const ILL_CONDITIONED: f64 = 1e10;
/// A given model this close to the minimiser is at it.
const AT_MINIMISER: f64 = 1e-6;

impl Found<'_> {
    /// Things the user should know.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![];
        let condition = self.geometry.condition();
        if condition > ILL_CONDITIONED {
            let names = self.encoding.columns();
            let weakest: Vec<String> =
                self.geometry.weakest_columns().iter().take(8).map(|&j| format!("`{}`", names[j])).collect();
            warnings.push(format!(
                "The problem is nearly singular (condition number {condition:.1e}) along {}: these numbers have few \
                 reliable digits. Drop one of these columns, use --scale standard, or raise --l2.",
                weakest.join(", ")
            ));
        }
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
        let constant: Vec<String> = self
            .encoding
            .attributes
            .iter()
            .filter(|a| a.kind == Kind::Number && a.population_sd == 0.0)
            .map(|a| format!("`{}`", a.name))
            .collect();
        if !constant.is_empty() {
            warnings.push(format!(
                "Constant in the training rows: {}. The model learns nothing from such a column, but a record that \
                 differed there would still move it.",
                constant.join(", ")
            ));
        }
        let left_out = |count: u64, what: &str| match count {
            1 => format!("1 row{what} has missing values and was left out."),
            _ => format!("{count} rows{what} have missing values and were left out."),
        };
        if self.encoding.rows_dropped > 0 {
            warnings.push(left_out(self.encoding.rows_dropped, ""));
        }
        if let Some(scored) = &self.score
            && scored.dropped > 0
        {
            warnings.push(left_out(scored.dropped, " to score"));
        }
        warnings.extend(self.filled_in());
        let target = self.encoding.profile.iter().find(|c| c.role == "target");
        if target.is_some_and(|t| t.min.is_some() && t.min == t.max) {
            warnings.push(format!(
                "The target `{}` is constant in the training rows: there is nothing to predict.",
                self.encoding.target.name
            ));
        }
        warnings
    }

    /// Which values were filled in under `--missing mean`, if any.
    fn filled_in(&self) -> Option<String> {
        let filled: Vec<String> = match self.encoding.missing {
            Missing::Mean => self
                .encoding
                .profile
                .iter()
                .filter(|c| c.missing > 0)
                .map(|c| format!("`{}` {}", c.name, c.missing))
                .collect(),
            Missing::Fail | Missing::Drop => vec![],
        };
        (!filled.is_empty()).then(|| {
            format!(
                "Missing values were filled in with the mean or the most frequent level: {}. For those records \
                 leakage is that of the value filled in.",
                filled.join(", ")
            )
        })
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
            "The encoding (category levels, scaling, components), the penalty and the number of records are taken as \
             public: what they give away is not counted."
                .into(),
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
