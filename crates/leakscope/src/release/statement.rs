//! What may be said about a release, and what only the owner is told.

use super::fitted::{Fitted, has_public_bounds, min_level_count};
use super::shaped::Shaped;
use super::{Added, Amount, Prepared, Terms, inference};
use crate::Result;
use crate::noise::NoiseOptions;
use crate::remarks::duplicates;
use crate::request::{Request, Statistic};
use leakscope_report::format;
use leakscope_report::noise::Source;
use leakscope_report::release::{
    Composed, Counting, Measured, Mechanism, Owned, Release, SCHEMA, Stated, Subject, Unit,
};
use leakscope_report::tell::Tell;
use leakscope_report::verdict::of_owned;
use leakscope_report::words::told_apart;
use leakscope_table::{Attribute, Encoding, Kind, Origin, ReadOff, Scale};
use std::collections::BTreeMap;

/// What a statement says that was not prepared before its noise was drawn.
pub(super) struct Particulars {
    pub(super) composed: Composed,
    pub(super) coefficients: Vec<(String, f64)>,
    pub(super) created: String,
    /// How often two values are told apart, as it may be said.
    pub(super) stated: Stated,
    /// The same for the owner.
    pub(super) tell: Option<Tell>,
}

/// The statement and the owner's copy of a release.
pub(super) fn owned(
    request: &Request,
    terms: &Terms,
    prepared: &Prepared,
    particulars: Particulars,
) -> Result<Owned> {
    let Particulars { composed, coefficients, created, stated, tell } = particulars;
    let Fitted { loaded, fit, counting, .. } = &prepared.fitted;
    let (sigma, noise, (eta_mean, eta_max)) =
        (prepared.sigma(), prepared.covariances()?, prepared.measured());
    let mut remarks = crate::remarks::notes(&loaded.encoding);
    remarks.extend(loaded.remarks(request, fit)?);
    if let Some(balancing) = prepared.fitted.balancing.as_ref().filter(|b| b.most_even != b.iterations) {
        remarks.push(format!(
            "Counted leakage would be most even after {} of balancing; {} asked for. How many is given, and not chosen on the data: \
             the number would show in the model.",
            format::counted(balancing.most_even as u64, "iteration"),
            format::count(balancing.iterations as u64) + if balancing.iterations == 1 { " was" } else { " were" }
        ));
    }
    let shaped = match &prepared.added {
        Added::Isotropic(_) => None,
        Added::Shaped(shaped) => Some(shaped),
    };
    remarks.extend(shaped.and_then(|s| s.instead.clone()));
    let measured = Measured {
        files: request.read.names(),
        n: loaded.encoding.rows_training,
        eta_mean,
        eta_max,
        counting: *counting,
        inference: inference::with_sampling(&prepared.fitted, &noise, &coefficients)?,
        instead: shaped.and_then(|s| s.instead.clone()),
        gain: shaped.map(|s| s.design.gain),
        tell,
        duplicates: duplicates(&loaded.encoding),
    };
    let mut warnings = vec![];
    if composed.releases > 1 {
        warnings.push(format!(
            "These data have {} before this one; their information adds up, and the owner's ledger keeps the sum.",
            format::counted(composed.releases as u64 - 1, "release"),
        ));
    }
    let statement = Release {
        schema: SCHEMA.into(),
        leakscope: env!("CARGO_PKG_VERSION").into(),
        created,
        subject: subject(request, &loaded.encoding),
        mechanism: Mechanism {
            name: "output perturbation with an exact discrete Gaussian on a grid (Canonne, Kamath, Steinke 2020)".into(),
            sigma,
            grid: prepared.step()?,
            generator: "the operating system's cryptographic generator".into(),
            units: units(&prepared.fitted),
            shape: shaped.map(|s| s.published.clone()),
        },
        label_secret: request.label_secret,
        eta: prepared.eta,
        tell: Some(stated),
        composed,
        public_inputs: public_inputs(request, terms, &loaded.encoding),
        read_off: read_off(request, terms, prepared),
        known: attacker_knowledge(terms),
        assumed: assumed(request, prepared),
        precision: inference::precision(&prepared.fitted, &noise, &coefficients)?,
        coefficients: coefficients.into_iter().collect(),
        warnings,
    };
    let mut owned = Owned { statement, verdict: None, measured, remarks };
    owned.verdict = Some(of_owned(&owned).judged());
    Ok(owned)
}

fn subject(request: &Request, encoding: &Encoding) -> Subject {
    Subject {
        target: encoding.target.name.clone(),
        classes: crate::model::class_names(encoding),
        family: request.family,
        l2: request.l2,
        intercept: request.intercept,
    }
}

fn units(fitted: &Fitted) -> BTreeMap<String, Unit> {
    let names = fitted.loaded.encoding.raw_columns();
    names
        .into_iter()
        .zip(fitted.units.public())
        .map(|(n, u)| (n, Unit { centre: u.centre, unit: u.unit }))
        .collect()
}

/// What somebody gave, and so is public.
fn public_inputs(request: &Request, terms: &Terms, encoding: &Encoding) -> Vec<String> {
    let mut list = vec![format!(
        "The target `{}`, the model ({}, λ = {}) and its columns by name.",
        encoding.target.name,
        request.family.title(),
        format::setting(request.l2)
    )];
    list.push(match &terms.noise {
        Amount::Sigma(_) => {
            "σ, which was rounded up to a public grid (four steps to a factor of two).".into()
        }
        Amount::Shaped(options) => goals(options),
        Amount::TargetEta(eta, statistic) => format!(
            "The target: {} at most {}.",
            match statistic {
                Statistic::Max => "the largest η of a record",
                Statistic::Mean => "the mean of η over records",
                Statistic::P99 => "the 99th percentile of η over records",
            },
            format::setting(*eta)
        ),
    });
    let named = |names: Vec<&str>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let bounds: Vec<&str> = encoding
        .attributes
        .iter()
        .filter(|a| has_public_bounds(request, a))
        .map(|a| a.name.as_str())
        .collect();
    if !bounds.is_empty() {
        list.push(format!("The bounds of {}, and with them their public units.", named(bounds)));
    }
    let levels: Vec<&str> = encoding
        .attributes
        .iter()
        .filter(|a| a.kind == Kind::Category && a.levels_origin == Origin::Given)
        .map(|a| a.name.as_str())
        .collect();
    if !levels.is_empty() {
        list.push(format!("The levels of {}.", named(levels)));
    }
    match encoding.scale {
        Scale::Bounds => list.push("Scales: numbers are scaled by their bounds.".into()),
        Scale::None => list.push("Scales: numbers are taken as they are.".into()),
        Scale::Standard | Scale::UnitBall => {}
    }
    list
}

/// What noise was made for.
fn goals(options: &NoiseOptions) -> String {
    let mut parts = vec![];
    if let Some(eta) = options.target_eta {
        let subject = match options.protect.as_slice() {
            [] => "every record".to_owned(),
            names => {
                let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
                format!("{} of every record", names.join(" and "))
            }
        };
        parts.push(format!("η of {subject} at most {}", format::setting(eta)));
    }
    for (name, sd) in &options.target_sd {
        let sd = format::setting(*sd);
        parts.push(format!(
            "no unbiased estimate of `{name}` of any record closer than {sd} in its own units"
        ));
    }
    format!("The targets: {}.", parts.join("; "))
}

/// Where the covariance of the noise comes from.
fn shape_of(shaped: &Shaped) -> String {
    match &shaped.published.source {
        Source::Table { .. } => "Nothing of the shape of the noise: it comes from a public table.".into(),
        Source::Bounds => {
            "Nothing of the shape of the noise: it comes from the public bounds of the columns.".into()
        }
        Source::Nowhere | Source::Records => "Nothing of the shape of the noise: it is isotropic.".into(),
    }
}

/// What was read off the data, and what became of it.
fn read_off(request: &Request, terms: &Terms, prepared: &Prepared) -> Vec<String> {
    let fitted = &prepared.fitted;
    let encoding = &fitted.loaded.encoding;
    let mut list = vec![];
    if request.public.schema.as_ref().is_none_or(|s| s.draft) {
        list.push(
            "Whether a column holds numbers or categories, and columns that were left out as names of rows."
                .into(),
        );
    }
    // Columns of which the same is to be said share a sentence: there may be thousands.
    let mut said: Vec<(String, Vec<String>, String)> = vec![];
    for (column, part) in encoding.read_off_data() {
        let name = column.unwrap_or_default();
        let (begins, ends): (&str, String) = match part {
            ReadOff::Levels => (
                "The levels of",
                format!(
                    ": those that at least {} have; rarer ones are `other`.",
                    format::counted(min_level_count(request), "record")
                ),
            ),
            ReadOff::Scale => scale_of(&name, terms, fitted),
            ReadOff::Classes => ("The names of the classes of", ".".into()),
            ReadOff::WeightMean => (
                "The mean of the weights",
                ", by which they are divided; weights are taken to be known.".into(),
            ),
            // Both are refused.
            ReadOff::Fill => ("What stands in for missing values of", ".".into()),
            ReadOff::Components => {
                list.push("Principal components.".into());
                continue;
            }
        };
        match said.iter_mut().find(|(b, _, e)| b == begins && *e == ends) {
            Some((_, names, _)) => names.push(name),
            None => said.push((begins.into(), vec![name], ends)),
        }
    }
    list.extend(said.iter().map(|(begins, names, ends)| format!("{begins} {}{ends}", each_of(names))));
    let unscaled = |a: &&Attribute| a.kind == Kind::Number && encoding.scale == Scale::None;
    let rounded = encoding.attributes.iter().filter(unscaled).filter(|a| !has_public_bounds(request, a));
    let names: Vec<String> = rounded.map(|a| a.name.clone()).collect();
    if !names.is_empty() {
        list.push(format!(
            "The public unit of {}: the power of two nearest to its standard deviation.",
            each_of(&names)
        ));
    }
    if let Added::Shaped(shaped) = &prepared.added {
        list.push(shape_of(shaped));
    }
    list.extend(match &terms.noise {
        Amount::Sigma(_) => None,
        Amount::Shaped(_) => Some(
            "The scale of the noise, which was solved for the targets and rounded up to a public grid: when a record changes much it \
             may be another, which is not counted."
                .into(),
        ),
        Amount::TargetEta(_, Statistic::Max | Statistic::Mean | Statistic::P99) => Some(
            "σ, which was solved for the target and rounded up to a public grid: it stays the same when a record changes a \
             little, and may be another when it changes much, which is not counted. A σ that is given without looking at the \
             data tells nothing."
                .into(),
        ),
    });
    list.push(
        "Nothing else: neither means nor standard deviations, nor the number of records, nor what was measured is in these \
         files. How often two values are told apart, and whether that is within a limit, stays with the owner; no colour or word here \
         depends on it."
            .into(),
    );
    list
}

/// Names as the subject of a sentence in the singular.
fn each_of(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    format!("{}{}", if names.len() > 1 { "each of " } else { "" }, quoted.join(", "))
}

/// What is said of the scale of a column, before and after its name.
fn scale_of(name: &str, terms: &Terms, fitted: &Fitted) -> (&'static str, String) {
    let columns = fitted.loaded.encoding.attributes.iter().find(|a| a.name == name).map(|a| a.columns.start);
    let rounded = columns.is_some_and(|j| fitted.units.is_rounded(j));
    let in_units = terms.balance > 0 || fitted.counting == Counting::Units;
    let (begins, ends) = match (in_units, rounded) {
        (false, true) => (
            "The standard deviation of",
            ", by which it is scaled: counted in η. Its public unit is the power of two nearest to it, its centre the multiple of \
             that nearest to the mean.",
        ),
        (false, false) => ("The standard deviation of", ", by which it is scaled: counted in η."),
        (true, true) => (
            "The public unit of",
            ", by which it is scaled: the power of two nearest to its standard deviation; its centre is the multiple of that \
             nearest to the mean.",
        ),
        (true, false) => ("Nothing of the scale of", ": it is scaled by the public unit of its bounds."),
    };
    (begins, ends.to_owned())
}

fn attacker_knowledge(terms: &Terms) -> Vec<String> {
    let training = match terms.balance {
        0 => "How the model was trained: family, penalty, weights, encoding.".to_owned(),
        n => format!(
            "How the model was trained: family, penalty, encoding, and that {} of balancing gave the records their \
             weights.",
            format::counted(n as u64, "iteration")
        ),
    };
    vec![
        "The released coefficients, σ, the grid and the public units.".into(),
        training,
        "All other records; for one attribute of a record, also its other values.".into(),
    ]
}

fn assumed(request: &Request, prepared: &Prepared) -> Vec<String> {
    let counting = match prepared.fitted.counting {
        Counting::Units => "η counts everything: columns are scaled by their public units.",
        // Which of the two it is follows from the number of records.
        Counting::Exact | Counting::Bounded => {
            "η counts that columns are scaled by their own standard deviations, exactly or by a bound that is never too small."
        }
        Counting::Weights => {
            "η counts that the weights of all records depend on each record, exactly; columns are scaled by their public units."
        }
    };
    let label = match request.label_secret {
        true => "The label counts as part of a record’s secret.",
        false => "The label is taken to be known.",
    };
    let sensitivity = match &prepared.added {
        Added::Isotropic(_) => {
            "The model is at its minimiser, and η is its local sensitivity there over σ (Hannun 2021), in public units."
        }
        Added::Shaped(_) => {
            "The model is at its minimiser, and η is its local sensitivity there in the units of the noise, √λ₁(JᵀΣ⁻¹J), in public \
             units."
        }
    };
    vec![
        sensitivity.into(),
        counting.into(),
        label.into(),
        "Public units, σ and the stated η lie on grids, and levels are those that many records have: they stay the same when \
         one value changes a little, so they add nothing to η; what they tell in all is a few bits each, which η does not \
         count."
            .into(),
        "Releases listed in the ledger of the owner are all there were; noise of each is independent.".into(),
        "The grid is a millionth of σ: what it changes about η is of that order.".into(),
    ]
}

/// A screenful of text for the owner.
pub fn summary(owned: &Owned) -> String {
    let (r, m) = (&owned.statement, &owned.measured);
    let mut out = format!(
        "Released {} in original units with {}.\nσ = {} in public units; largest η of a record at most {} (measured: mean \
         {}, largest {}; for you alone).\nReleases of these data in this ledger: {}; largest η of all together at most {}{}.\nThe \
         folder private never leaves the house; the folder of the release may, where its noise suffices.\n",
        format::counted(r.coefficients.len() as u64, "coefficient"),
        r.mechanism.name,
        format::setting(r.mechanism.sigma),
        format::at_most(r.eta.max.unwrap_or(f64::INFINITY)),
        format::number(m.eta_mean),
        format::number(m.eta_max),
        r.composed.releases,
        format::at_most(r.composed.eta_max.unwrap_or(f64::INFINITY)),
        r.composed.budget_eta.map_or_else(String::new, |b| format!(" of a budget of {}", format::setting(b)))
    );
    if let Some(told) = m.tell.as_ref().and_then(Tell::worst) {
        let record = match (told.is_settled(), told.worst_record.as_str()) {
            (true, id) if !id.is_empty() => format!(" for record {id}"),
            (true, _) => String::new(),
            (false, _) => " for some record, as far as that was settled".into(),
        };
        out.push_str(&format!(
            "Told apart most often, by this release alone: {} {} or {}, in {}{} of cases{record} (a coin toss: 50%; for you \
             alone).\n",
            told.attribute,
            told.from,
            told.to,
            if told.is_settled() { "at most " } else { "" },
            told_apart(told, m.tell.as_ref().map_or(0.5, |t| t.protect_at)),
        ));
    }
    let verdict = of_owned(owned);
    out.push_str(&verdict.lines());
    for remark in &owned.remarks {
        out.push_str(&format!("note: {remark}\n"));
    }
    for warning in &r.warnings {
        out.push_str(&format!("warning: {warning}\n"));
    }
    out
}
