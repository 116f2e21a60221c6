//! Points that were not in the training set: η as an out-of-distribution score.

use super::records::record_table;
use crate::audit::{Audit, Score};
use crate::chart::{self, Shown};
use crate::format;
use crate::html::{Kind, card, escape};

pub(super) fn score(audit: &Audit, score: &Score) -> String {
    let label = match score.labelled {
        true => "",
        false => " The file has no target, so the model’s own prediction stands in for it.",
    };
    let lead = format!(
        "What {} from {} would leak, had they been trained on: a large η says that a point is unlike the training \
         records. {} of them lie above the training records’ 99th percentile, where 1% would if they were alike. \
         Median {}, largest {}.{label}",
        format::counted(score.n, "point"),
        escape(&score.files.join(", ")),
        format::share(score.above_training_p99),
        format::number(score.eta.p50),
        format::number(score.eta.max)
    );
    let series = ["training records", "scored points"].iter().enumerate().map(|(slot, name)| Shown {
        name: (*name).to_owned(),
        slot,
        counts: Vec::new(),
        members: Vec::new(),
    });
    let legend = chart::legend(&series.collect::<Vec<_>>());
    let table = match score.most.is_empty() {
        true => String::new(),
        false => record_table(audit, "Scored points with most information loss", &score.most, score.eta.max),
    };
    let body = format!("<div class=\"narrow\">{legend}{}</div>{table}", chart::scored(audit, score));
    card("score", "Points outside the training set", &[Kind::Measured], &lead, &body)
}
