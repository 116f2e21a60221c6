//! What cannot be released: choices whose part in the model is read off the data and not counted. Asked before any work
//! where that is possible.

use super::{Amount, Terms};
use crate::request::Request;
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_table::{Class, Encoding, Guess, Missing, Origin, Scale, TargetCoding};
use std::path::{Path, PathBuf};

/// Settings that make no sense, and choices that are not counted.
pub(super) fn settings(request: &Request, terms: &Terms) -> Result<()> {
    let positive = |flag: &str, value: f64| match value > 0.0 && value.is_finite() {
        true => Ok(()),
        false => Err(Failure::number(flag, numeral(value), "expected a positive number")),
    };
    match &terms.noise {
        Amount::Sigma(sigma) => positive("sigma", *sigma)?,
        Amount::TargetEta(eta, _) => positive("target_eta", *eta)?,
        Amount::Shaped(options) => {
            options.check()?;
            if let Some(path) = options.shape_from.iter().flat_map(|r| &r.paths).find(|p| is_read(p, request))
            {
                let message = format!(
                    "{} is the data that is released: the shape comes from a table that is public",
                    path.display()
                );
                return Err(Failure::option("shape_from", message));
            }
        }
    }
    if terms.attribute.is_some() && terms.balance == 0 {
        let message = "it says what ⟨balance⟩ N balances, which is not asked for";
        return Err(Failure::option("attribute", message));
    }
    terms.budget_eta.map_or(Ok(()), |b| positive("budget_eta", b))?;
    if request.pca.is_some() {
        return Err(Failure::option(
            "pca",
            "principal components are read off the data, and what they give away is not counted: a release takes the \
             columns themselves; choose fewer with ⟨drop⟩, or a penalty with ⟨l2⟩",
        ));
    }
    match request.scale {
        Scale::UnitBall => {
            return Err(Failure::option(
                "scale",
                "the largest norm of a record is read off the data, and what it gives away is not counted: use \
                 ⟨scale=bounds⟩ with ⟨bounds⟩ that are public, or ⟨scale=standard⟩, which is counted",
            ));
        }
        Scale::Standard | Scale::Bounds | Scale::None => {}
    }
    if request.public.schema.as_ref().is_some_and(|s| s.draft) {
        return Err(Failure::option("schema", DRAFT));
    }
    if request.public.scales.iter().any(|(_, scale)| scale.is_some()) {
        let message =
            "columns with scales of their own are for models trained elsewhere: a release scales by ⟨scale⟩";
        return Err(Failure::option("scales", message));
    }
    match request.missing {
        Missing::Mean => Err(Failure::option(
            "missing",
            "means and most frequent levels are read off the data, and what they give away where they are filled in is not \
             counted: leave such rows out with ⟨missing=drop⟩, or fill them in beforehand with values that are public",
        )),
        Missing::Fail | Missing::Drop => Ok(()),
    }
}

/// Why a draft is no schema for what is published, and what to do.
const DRAFT: &str = "it is a draft, whose bounds and levels were read off the data, and would count for nothing: check it, put in \
                                what is known without the data and remove the line \"draft\": true, or leave ⟨schema⟩ out";

/// Guesses about columns that one record decides: which columns the published model has would show how that record is.
pub(super) fn guesses(encoding: &Encoding) -> Result<()> {
    let Some((column, guess)) = encoding.hang_on_one.first() else { return Ok(()) };
    Err(Failure::Data(match guess {
        Guess::Identifier => format!(
            "column `{column}`: one record decides whether nearly all its texts differ, so that it is left out as an identifier, \
             and the published model would show which: say that it stays with ⟨categorical={column}⟩ (⟨levels⟩ and a ⟨schema⟩ do \
             so too), or that it goes with ⟨drop={column}⟩"
        ),
        Guess::Kind => format!(
            "column `{column}`: one record decides whether it is taken for numbers, dates or texts, and the published model would \
             show which: say what it holds with ⟨categorical={column}⟩, ⟨bounds⟩ or a ⟨schema⟩, or leave it out with \
             ⟨drop={column}⟩"
        ),
    }))
}

/// Columns that cannot be scaled in a way that is counted.
pub(super) fn columns(encoding: &Encoding) -> Result<()> {
    for a in &encoding.attributes {
        match encoding.scale {
            Scale::Standard if a.scale_origin == Origin::ReadOffData && a.population_sd == 0.0 => {
                return Err(Failure::Data(format!(
                    "column `{}` is constant in the training rows, so it has no spread to be scaled by, and a record that \
                     differed would be seen: remove it with ⟨drop⟩, or use ⟨scale=bounds⟩ with ⟨bounds⟩ that are public",
                    a.name
                )));
            }
            Scale::Bounds if a.scale_origin == Origin::ReadOffData => {
                return Err(Failure::option(
                    "schema",
                    format!(
                        "the bounds of `{}` are those of a draft, which were read off the data: edit the draft and take \
                         `draft` out, or give ⟨bounds⟩",
                        a.name
                    ),
                ));
            }
            Scale::Standard | Scale::Bounds | Scale::None | Scale::UnitBall => {}
        }
    }
    Ok(())
}

/// A class that few records have: its name in a published file says that somebody has it.
pub(super) fn rare_class(encoding: &Encoding, min_count: u64) -> Result<()> {
    let classes: Vec<&Class> = match &encoding.target.coding {
        TargetCoding::TwoClass { low, high } => vec![low, high],
        TargetCoding::Classes(classes) => classes.iter().collect(),
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => return Ok(()),
    };
    let rare = |class: &&Class| class.count < min_count && encoding.target.origin == Origin::ReadOffData;
    match classes.into_iter().find(rare) {
        None => Ok(()),
        Some(class) => Err(Failure::option(
            "min_level_count",
            format!(
                "class `{}` of the target `{}` has {} records, fewer than {min_count}, and its name would be published: give \
                 the classes with ⟨levels⟩ or a ⟨schema⟩ where they are public, or lower ⟨min_level_count⟩",
                class.name, encoding.target.name, class.count
            ),
        )),
    }
}

/// Whether a file is one of those whose model is released, or a copy of one.
fn is_read(path: &Path, request: &Request) -> bool {
    let content = || std::fs::read(path).ok();
    let same_length = |own: &&PathBuf| {
        let length = |p: &Path| std::fs::metadata(p).map(|m| m.len()).ok();
        length(own).is_some() && length(own) == length(path)
    };
    let mut alike = request.read.paths.iter().filter(same_length);
    alike.any(|own| content().is_some_and(|text| std::fs::read(own).is_ok_and(|other| other == text)))
}
