//! The pages: one HTML file each that opens offline, reads from top to bottom, and prints.

mod account;
mod appendix;
mod attack;
mod attributes;
mod balance;
mod bound;
mod canary;
mod figure;
mod folder;
mod glossary;
mod head;
mod noise;
mod records;
mod release;
mod reproduction;
mod score;
mod secret;
mod shape;
mod tell;
mod text_audit;
mod who;

pub(crate) use appendix::theorem;
pub(crate) use figure::figure as figure_card;

pub use account::account_page;
pub use attack::attack_page;
pub use balance::balance_page;
pub use bound::bound_page;
pub use canary::canary_page;
pub use folder::{ResultPage, folder_page, with_navigation};
pub use release::release_page;
pub use reproduction::{panel_svg, reproduction_page};
pub use text_audit::text_audit_page;

use super::chart;
use super::markup::Html;
use super::parts::shell;
use crate::document::audit::Audit;
use crate::words;

/// The audit as one self-contained HTML page.
///
/// It makes no request of any kind (a content security policy says so to the browser), needs no script to be read, and
/// shows no value of the data except ids, column names, the names of classes and groups, and the two values of an
/// attribute that were told apart.
pub fn page(audit: &Audit) -> String {
    let series = chart::shown(&audit.records.histogram);
    let body: Html = [
        head::head(audit),
        tell::tell(audit.tell.as_ref(), &audit.attributes),
        who::who(audit, &series),
        records::records(audit),
        records::why_loss_misses(audit, &series),
        attributes::attributes(audit),
        attributes::whole(audit),
        noise::noise(audit),
        shape::shape(audit),
        shape::inference(audit),
        audit.secret.as_ref().map(|s| secret::secret(audit, s)).unwrap_or_default(),
        audit.score.as_ref().map(|s| score::score(audit, s)).unwrap_or_default(),
        appendix::appendix(audit),
    ]
    .into_iter()
    .collect();
    shell(&format!("Leakscope audit: {}", words::title_of(audit)), &body)
}
