//! The page: one HTML file that opens offline, reads from top to bottom, and prints.

mod account;
mod appendix;
mod attack;
mod attributes;
mod balance;
mod bound;
mod figure;
mod glossary;
mod head;
mod noise;
mod records;
mod release;
mod reproduction;
mod score;
mod secret;
mod who;

pub use account::account_page;
pub use attack::attack_page;
pub use balance::balance_page;
pub use bound::bound_page;
pub use release::release_page;
pub use reproduction::{panel_svg, reproduction_page};

use crate::audit::Audit;
use crate::chart;
use crate::html::escape;
use crate::words;

const STYLE: &str = include_str!("../style.css");
const SCRIPT: &str = include_str!("../script.js");

/// The audit as one self-contained HTML page.
///
/// It makes no request of any kind (a content security policy says so to the browser), needs no script to be read, and
/// shows no value of the data except ids, column names and the names of classes and groups.
pub fn page(audit: &Audit) -> String {
    let series = chart::shown(&audit.records.histogram);
    let mut body = String::new();
    body.push_str(&chart::patterns());
    body.push_str("<main>\n");
    body.push_str(&head::head(audit));
    body.push_str(&who::who(audit, &series));
    body.push_str(&records::records(audit));
    body.push_str(&records::why_loss_misses(audit, &series));
    body.push_str(&attributes::attributes(audit));
    body.push_str(&attributes::whole(audit));
    body.push_str(&noise::noise(audit));
    if let Some(s) = &audit.secret {
        body.push_str(&secret::secret(audit, s));
    }
    if let Some(s) = &audit.score {
        body.push_str(&score::score(audit, s));
    }
    body.push_str(&appendix::appendix(audit));
    body.push_str("</main>\n");
    shell(&format!("Leakscope audit: {}", words::title(audit)), &body)
}

/// A complete document around what is inside `body`.
fn shell(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\"><meta name=\"robots\" content=\"noindex\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style></head>\n<body>\n{body}<script>\n{SCRIPT}</script>\n</body></html>\n",
        escape(title)
    )
}
