//! The pages: one HTML file each that opens offline, reads from top to bottom, and prints.

mod account;
mod appendix;
mod attack;
mod attributes;
mod balance;
mod bound;
mod canary;
mod comparison;
mod explore;
mod figure;
mod folder;
mod glossary;
mod head;
mod meaning;
mod noise;
mod records;
mod release;
mod reproduction;
mod score;
mod secret;
mod shape;
mod tell;
mod text_audit;
mod trade;
mod what_if;
mod who;

pub(crate) use appendix::theorem;
pub(crate) use figure::figure as figure_card;

pub use super::digest::rewritten_page;
pub use account::account_page;
pub use attack::attack_page;
pub use balance::balance_page;
pub use bound::bound_page;
pub use canary::canary_page;
pub use comparison::comparison_page;
pub use folder::{PageKind, ResultPage, folder_page, is_ours, with_navigation};
pub use release::{owners_release_page, release_page};
pub use reproduction::{panel_svg, reproduction_page};
pub use text_audit::text_audit_page;

use super::chart;
use super::markup::{Html, fill};
use super::parts::{CHARTS, EXPLORE, NUMBERS, PICK, SHAPES, VERDICT, WHAT_IF, shell_with};
use crate::document::audit::Audit;
use crate::document::explore::Beside;
use crate::redact::redacted;
use crate::what_if::Shapes;
use crate::words;

/// The audit as one self-contained HTML page.
///
/// It makes no request of any kind (a content security policy says so to the browser), needs no script to be read, and
/// shows no value of the data except ids, column names, the names of classes and groups, and the two values of an
/// attribute that were told apart.
pub fn page(audit: &Audit) -> String {
    page_with(audit, &Beside::default())
}

/// The same with what is at hand besides: its records one by one, the command that made it, a fingerprint of the data. A page that
/// names no record has none of these.
pub fn page_with(audit: &Audit, beside: &Beside) -> String {
    if audit.redact {
        return draw(&redacted(audit), &Beside::default());
    }
    draw(audit, beside)
}

fn draw(audit: &Audit, beside: &Beside) -> String {
    let series = chart::shown(&audit.records.histogram);
    let (what_if, moving) = what_if::what_if(audit, beside.release.as_deref());
    let (explored, store) = beside.records.as_ref().map(|r| explore::explore(audit, r)).unwrap_or_default();
    let body: Html = [
        head::head(audit, what_if),
        tell::tell(audit.tell.as_ref(), &audit.attributes),
        who::who(audit, &series),
        explored,
        records::records(audit),
        records::why_loss_misses(audit, &series),
        attributes::attributes(audit),
        attributes::whole(audit),
        noise::noise(audit),
        shape::shape(audit),
        shape::inference(audit),
        audit.secret.as_ref().map(|s| secret::secret(audit, s)).unwrap_or_default(),
        audit.score.as_ref().map(|s| score::score(audit, s)).unwrap_or_default(),
        appendix::appendix(audit, beside),
    ]
    .into_iter()
    .collect();
    let title = format!("Leakscope audit: {}", words::title_of(audit));
    let none = || "null".to_owned();
    let data = fill(
        "Leakscope.data = {\"moving\": {}, \"shapes\": {}, \"store\": {}};\n",
        &[
            &Html::json(&moving.map_or_else(none, |m| m.json())),
            &Html::json(&Shapes::of(audit).map_or_else(none, |s| s.json())),
            &Html::json(&store.unwrap_or_else(none)),
        ],
    );
    let more = [NUMBERS, VERDICT].map(Html::literal).into_iter().chain([data]);
    shell_with(
        &title,
        &body,
        more.chain([CHARTS, WHAT_IF, SHAPES, EXPLORE, PICK].map(Html::literal)).collect(),
    )
}
