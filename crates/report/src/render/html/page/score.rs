//! Points that were not in the training set: η as an out-of-distribution score.

use super::records::record_table;
use crate::document::audit::{Audit, Score};
use crate::figure::Claim;
use crate::format;
use crate::render::html::chart;
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, narrow};

pub(super) fn score(audit: &Audit, score: &Score) -> Html {
    let label = match score.labelled {
        true => "",
        false => " The file has no target, so the model’s own prediction stands in for it.",
    };
    let lead = fill(
        "What {} from {} would leak, had they been trained on: a large η says that a point is unlike the training records. {} of \
         them lie above the training records’ 99th percentile, where 1% would if they were alike. Median {}, largest {}.{}",
        &[
            &format::counted(score.n, "point"),
            &score.files.join(", "),
            &format::share(score.above_training_p99),
            &follow::eta(score.eta.p50),
            &follow::eta(score.eta.max),
            &label,
        ],
    );
    let legend = chart::legend([(0, "training records"), (1, "scored points")].into_iter());
    let table = match score.most.is_empty() {
        true => Html::new(),
        false => record_table(audit, "Scored points with most information loss", &score.most, score.eta.max),
    };
    let body = narrow(legend.and(chart::scored(audit, score))).and(table);
    card("score", "Points outside the training set", &[Claim::Measured], lead, body)
}
