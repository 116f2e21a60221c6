//! What the user should know of an audit, and what its numbers rest on, in whole sentences.

use super::assemble::Found;
use leakscope_core::fisher::Geometry;
use leakscope_core::glm;
use leakscope_report::choice::ScalingMode;
use leakscope_report::noise::Source;
use leakscope_table::{Attribute, Dataset, Encoding, Kind, Missing};

/// Condition number above which coefficients, and what follows from them, have few digits left.
const ILL_CONDITIONED: f64 = 1e10;
/// Columns that a remark names before it counts the rest.
const NAMED: usize = 8;
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
        warnings.extend(self.noise.iter().filter_map(|n| n.instead.clone()));
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
            "η of a record is measured in the encoded units: one unit is a standard deviation of a scaled number, or \
             the switch of an indicator."
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

/// Names in backquotes, the first few of them.
pub(crate) fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|n| format!("`{n}`")).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

/// Predictions that were still this far from the minimiser's leave η fewer digits than pages show.
const UNSETTLED: f64 = 1e-6;

/// A Hessian that leaves few digits, and which columns make it so; or a fit that ended before its predictions settled.
pub(crate) fn nearly_singular(encoding: &Encoding, geometry: &Geometry) -> Option<String> {
    let (condition, unsettled) = (geometry.condition(), geometry.fit().unsettled);
    if condition <= ILL_CONDITIONED && unsettled > UNSETTLED {
        return Some(format!(
            "The fit settled to about {unsettled:.0e} only, as it does where the model predicts nearly perfectly: numbers \
             here may be off by that share. A larger `l2` helps."
        ));
    }
    (condition > ILL_CONDITIONED).then(|| {
        let names = encoding.columns();
        let weakest: Vec<String> = geometry.weakest_columns().iter().map(|&j| names[j].clone()).collect();
        format!(
            "The problem is nearly singular (condition number {condition:.1e}) along {}: these numbers have few \
             reliable digits. Drop one of these columns, use `scale = standard`, or raise `l2`.",
            listed(&weakest)
        )
    })
}

/// What the user should know of the training rows, whatever is done with them.
pub(crate) fn of_data(encoding: &Encoding) -> Vec<String> {
    // What was guessed about the table comes first: everything else rests on it.
    let mut warnings: Vec<String> = encoding.remarks.iter().map(|r| r.to_string()).collect();
    let named = |which: &dyn Fn(&Attribute) -> bool| -> Vec<String> {
        encoding.attributes.iter().filter(|a| which(a)).map(|a| a.name.clone()).collect()
    };
    let constant = named(&|a| match a.kind {
        Kind::Number => a.population_sd == 0.0,
        Kind::Category => a.levels.len() < 2 && !a.columns.is_empty(),
    });
    if !constant.is_empty() {
        warnings.push(format!(
            "Constant in the training rows: {}. The model learns nothing from such a column, but a record that \
             differed there would still move it.",
            listed(&constant)
        ));
    }
    let one_level = named(&|a| a.kind == Kind::Category && a.columns.is_empty());
    if !one_level.is_empty() {
        warnings.push(format!(
            "One level only in the training rows: {}. Such a category has no column, and is not among the attributes.",
            listed(&one_level)
        ));
    }
    if encoding.rows_dropped > 0 {
        warnings.push(left_out(encoding.rows_dropped, ""));
    }
    warnings.extend(filled_in(encoding));
    let target = encoding.profile.iter().find(|c| c.role == "target");
    if target.is_some_and(|t| t.min.is_some() && t.min == t.max) {
        warnings.push(format!(
            "The target `{}` is constant in the training rows: there is nothing to predict.",
            encoding.target.name
        ));
    }
    warnings
}

/// Rows to test on that are not.
pub(crate) fn of_test(rows: &Dataset, given: bool) -> Vec<String> {
    let mut warnings = vec![];
    if rows.rows_unseen() > 0 {
        warnings.push(format!(
            "{} a category that no training row has, and {} left out of what is measured on held-out rows.",
            counted(rows.rows_unseen(), "held-out row has", "held-out rows have"),
            if rows.rows_unseen() == 1 { "is" } else { "are" }
        ));
    }
    if rows.rows_dropped() > 0 && given {
        warnings.push(left_out(rows.rows_dropped(), " to test on"));
    }
    warnings
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn left_out(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 row{what} has missing values and was left out."),
        _ => format!("{count} rows{what} have missing values and were left out."),
    }
}

/// Which values were filled in under `--missing mean`, if any.
fn filled_in(encoding: &Encoding) -> Option<String> {
    let filled: Vec<String> = match encoding.missing {
        Missing::Mean => encoding
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
