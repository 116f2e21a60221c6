//! What numbers mean, in sentences that page and terminal share.

use crate::audit::{Attribute, Audit, SigmaSource, Utility};
use crate::format;

/// The spread of an indicator is at most that of a fair coin: what somebody is off by who knows nothing.
pub(crate) const INDICATOR_SPREAD: f64 = 0.5;

/// What an attacker is off by without the model: the population's spread, for a category that of a fair coin.
pub(crate) fn spread(attribute: &Attribute) -> Option<f64> {
    match attribute.kind.as_str() {
        "category" => Some(INDICATOR_SPREAD),
        _ => attribute.population_sd.filter(|s| s.is_finite() && *s > 0.0),
    }
}

/// Whether the attribute is a category.
pub(crate) fn is_category(attribute: &Attribute) -> bool {
    attribute.kind == "category"
}

/// The smallest error of an unbiased estimate, with its unit.
pub(crate) fn smallest_error(attribute: &Attribute) -> String {
    format::plus_minus(&format::bound(&attribute.min_sd), attribute.unit.as_deref())
}

/// What the numbers of an attribute mean, one sentence each.
pub(crate) fn meaning(attribute: &Attribute) -> Vec<String> {
    let a = attribute;
    let mut said = Vec::new();
    if !a.min_sd.value.is_finite() {
        said.push(
            "The model gives nothing away about it: no unbiased estimate has a bounded error.".to_owned(),
        );
        return said;
    }
    let error = smallest_error(a);
    if is_category(a) {
        said.push(format!(
            "An unbiased estimate of whether a level applies (0 or 1) is off by at least {error} for the most exposed record."
        ));
        if let Some(s) = a.sum_to_one {
            said.push(format!(
                "To someone who uses that exactly one level applies: mean η {}, largest {}, over all records {}.",
                format::number(s.eta_mean),
                format::number(s.eta_max),
                format::number(s.eta_over_all_records)
            ));
        }
        return said;
    }
    let differ = match spread(a) {
        Some(s) => format!(" (records differ by ±{})", format::number(s)),
        None => String::new(),
    };
    let typical = match a.min_sd_typical.is_finite() {
        true => format!("; ±{} for a typical one", format::at_least(a.min_sd_typical)),
        false => String::new(),
    };
    said.push(format!(
        "An unbiased estimate is off by at least {error} for the most exposed record{differ}{typical}."
    ));
    if let Some(b) = &a.min_rmse_with_prior
        && b.value.is_finite()
    {
        let best = format::bound(b);
        said.push(match (a.prior_sd, a.population_sd) {
            (Some(p), _) => format!(
                "Someone who already knows it to ±{} cannot get below ±{best}, on average over records.",
                format::number(p)
            ),
            (None, Some(p)) => format!(
                "Someone who already knows the population (±{}) cannot get below ±{best}, on average over records.",
                format::number(p)
            ),
            (None, None) => format!("With a prior, no estimate gets below ±{best}, on average over records."),
        });
    }
    said
}

/// A value of the utility's metric.
pub(crate) fn metric(utility: &Utility, value: f64) -> String {
    if utility.metric == "accuracy" { format::share(value) } else { format::number(value) }
}

/// The utility's metric as people call it.
pub(crate) fn metric_name(utility: &Utility) -> &str {
    match utility.metric.as_str() {
        "mse" => "mean squared error",
        other => other,
    }
}

/// How much worse the metric is at the chosen noise, in short; negative differences are luck and count as none.
pub(crate) fn cost(utility: &Utility) -> String {
    let u = utility;
    let worse = if u.higher_is_better { u.without_noise - u.at_sigma } else { u.at_sigma - u.without_noise };
    if !worse.is_finite() {
        return "without bound".into();
    }
    if u.metric == "accuracy" {
        let points = 100.0 * worse;
        if points < 0.05 { "nothing measurable".into() } else { format!("{points:.1} points of accuracy") }
    } else if u.without_noise.abs() > 0.0 {
        let relative = worse / u.without_noise.abs();
        match relative {
            r if r < 0.0005 => "nothing measurable".into(),
            r if r >= 10.0 => format!("×{} in {}", format::number(1.0 + r), metric_name(u)),
            r => format!("{} in {}", format::share(r), metric_name(u)),
        }
    } else {
        format!("{} in {}", format::number(worse), metric_name(u))
    }
}

/// Whether the noise leaves nothing of the model: it does no better than one without any columns.
pub(crate) fn is_useless(utility: &Utility) -> bool {
    match utility.higher_is_better {
        true => utility.at_sigma <= utility.constant_model,
        false => !utility.at_sigma.is_finite() || utility.at_sigma >= utility.constant_model,
    }
}

/// What the audit is of: files and target.
pub(crate) fn title(audit: &Audit) -> String {
    let files = match audit.data.files.as_slice() {
        [] => "A table".to_owned(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", format::counted(rest.len() as u64, "file")),
    };
    format!("{files}, predicting {}", audit.data.target)
}

/// Records, columns, model and noise in one line.
pub(crate) fn facts(audit: &Audit) -> Vec<String> {
    let regression = match audit.model.family.as_str() {
        family @ ("linear" | "logistic" | "poisson") => format!("{family} regression"),
        other => other.to_owned(),
    };
    let released = match audit.releases {
        0 | 1 => "released once".to_owned(),
        2 => "released twice".to_owned(),
        k => format!("released {k} times"),
    };
    vec![
        format::counted(audit.n, "record"),
        format!(
            "{} from {}",
            format::counted(audit.d as u64, "column"),
            format::counted(audit.attributes.len() as u64, "attribute")
        ),
        format!("{regression}, l2 = {}", format::setting(audit.model.l2)),
        format!("{released} with noise σ = {}", format::setting(audit.sigma)),
    ]
}

/// Where σ comes from, as a sentence.
pub(crate) fn sigma_source(audit: &Audit) -> String {
    let sigma = format::setting(audit.sigma);
    match &audit.sigma_source {
        SigmaSource::Default => format!(
            "No noise was chosen: numbers are per unit of noise (σ = {sigma}). η is inversely proportional to σ."
        ),
        SigmaSource::Given => format!("σ = {sigma} was given."),
        SigmaSource::TargetEta { eta, statistic } => format!(
            "σ = {sigma} was solved for, so that {} is {}.",
            statistic_name(statistic),
            format::setting(*eta)
        ),
        SigmaSource::TargetSd { attribute, sd } => format!(
            "σ = {sigma} was solved for, so that no unbiased estimate of {attribute} is off by less than ±{}.",
            format::setting(*sd)
        ),
    }
}

/// `the largest η`, `the mean η`, `the 99th percentile of η`.
pub(crate) fn statistic_name(statistic: &str) -> String {
    match statistic {
        "eta" | "max" => "the largest η".into(),
        "mean" => "the mean η".into(),
        "p99" => "the 99th percentile of η".into(),
        other => format!("{other} of η"),
    }
}

/// What the series of the histogram are.
pub(crate) fn series_by(audit: &Audit) -> Option<&str> {
    match audit.records.histogram.by.as_str() {
        "group" => Some(audit.data.group.as_deref().unwrap_or("group")),
        "class" => Some(audit.data.target.as_str()),
        _ => None,
    }
}

/// What loss alone would have missed.
pub(crate) fn missed(audit: &Audit) -> String {
    let r = &audit.records;
    if r.eta.max <= 0.0 {
        return "No record leaks anything: there is nothing that loss could have missed.".into();
    }
    let low = r.most.iter().filter(|m| m.loss_rank < 0.95).count() as u64;
    let these = match (low, r.most.len() as u64) {
        (_, 0) => String::new(),
        (0, 1) => "Loss alone would have found the most exposed record. ".to_owned(),
        (_, 1) => {
            "Loss alone would have missed the most exposed record: its loss is below the 95th percentile. "
                .to_owned()
        }
        (0, m) => format!("Loss alone would have found all {m} most exposed records. "),
        (k, m) => {
            let belongs = if k == 1 { "its loss is" } else { "their loss is" };
            format!(
                "Loss alone would have missed {k} of the {m} most exposed records: {belongs} below the 95th percentile. "
            )
        }
    };
    format!(
        "{these}Above the 99th percentile of η, loss misses {} of the records and the gradient norm {}.",
        format::share(r.missed_by_loss),
        format::share(r.missed_by_gradient)
    )
}
