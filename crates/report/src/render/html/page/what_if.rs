//! What if: another noise, chosen on the page. Everything in it needs the script, and is hidden without.

use super::noise::targets;
use crate::document::audit::Audit;
use crate::figure::Claim;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::tag;
use crate::what_if::{Moving, Shapes};

/// The card, and what its script moves; `release` is the line that releases, where the one that audited is known.
pub(super) fn what_if(audit: &Audit, release: Option<&str>) -> (Html, Option<Moving>) {
    match Moving::of(audit, targets(audit)) {
        Ok(moving) => (dials(), Some(moving.releasing(release))),
        Err(_) if Shapes::of(audit).is_some() => (shapes(), None),
        Err(reason) => {
            let card = "<section class=\"card whatif\" id=\"what-if\" hidden><h2>What if</h2><p class=\"lead\">{}</p></section>\n";
            (fill(card, &[&reason]), None)
        }
    }
}

fn shapes() -> Html {
    fill(
        "<section class=\"card whatif\" id=\"what-if\" hidden><h2>What if {}{}</h2>\
         <p class=\"lead\">Noise of another shape, made for the same targets. Nothing is run: the verdict is on what the audit knows of it, by \
         the same rules. At other targets the noise would be another one: run the audit again for those.</p>\
         <div class=\"dials\"><label class=\"wide\"><span>shape of the noise</span><select data-shape=\"choice\"></select></label>\
         <button type=\"button\" data-shape=\"reset\" disabled>As audited</button></div>\
         <p class=\"outcome\" role=\"status\" data-shape=\"outcome\"></p>\
         <div class=\"command\"><code tabindex=\"0\" data-shape=\"command\"></code>\
         <button type=\"button\" data-shape=\"copy\">Copy the command</button></div></section>\n",
        &[&tag(Claim::Measured), &tag(Claim::Bound)],
    )
}

fn dials() -> Html {
    fill(
        "<section class=\"card whatif\" id=\"what-if\" hidden><h2>What if {}{}</h2>\
         <p class=\"lead\">Another noise, or more releases: the verdict and the numbers of this page follow, by the same rules. Nothing \
         is run, and what cannot be recomputed is greyed.</p>\
         <div class=\"dials\">\
         <label class=\"wide\"><span>noise σ</span><input type=\"range\" data-dial=\"range\" min=\"0\" max=\"600\" step=\"1\"></label>\
         <label><span>σ</span><input type=\"text\" inputmode=\"decimal\" autocomplete=\"off\" data-dial=\"sigma\"></label>\
         <label><span>releases</span><input type=\"number\" min=\"1\" max=\"1000000\" step=\"1\" data-dial=\"releases\"></label>\
         <label class=\"wide\"><span>or what it must reach</span><select data-dial=\"goal\"></select></label>\
         <button type=\"button\" data-dial=\"reset\" disabled>As audited</button></div>\
         <p class=\"outcome\" role=\"status\" data-dial=\"outcome\"></p>\
         <div class=\"command\"><code tabindex=\"0\" aria-label=\"The command that releases at this noise\" data-dial=\"command\"></code>\
         <button type=\"button\" data-dial=\"copy\">Copy the command</button></div>\
         <p class=\"say\" data-dial=\"remark\"></p></section>\n",
        &[&tag(Claim::Measured), &tag(Claim::Bound)],
    )
}
