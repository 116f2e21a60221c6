//! The top of the page: what was audited, the verdict, the numbers to remember, warnings.

use super::meaning::smallest_error;
use crate::document::audit::{Audit, SigmaSource};
use crate::format;
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{header_of, judged, notes, tile, tile_of, tiles, warnings, whose};
use crate::verdict::{exposures, of_audit};
use crate::words;
use leakscope_core::fisher::noise::Shape;

pub(super) fn head(audit: &Audit, what_if: Html) -> Html {
    let facts = fill("{} · {}", &[&words::facts_but_noise(audit).join(" · "), &follow::released(audit)]);
    header_of("Leakscope audit", &words::title_of(audit), &facts)
        .and(whose(audit.redact))
        .and(judged(&of_audit(audit)))
        .and(what_if)
        .and(numbers(audit))
        .and(limits(audit))
        .and(warnings(&audit.warnings))
        .and(notes(&audit.notes))
}

fn numbers(audit: &Audit) -> Html {
    let eta = &audit.records.eta;
    let most = audit.records.most.first().map(|m| format!(", record {}", m.id)).unwrap_or_default();
    let mut all = vec![
        tile_of(&follow::eta(eta.p50), "median information loss η of a record"),
        tile_of(&follow::eta(eta.max), &format!("largest η{most}")),
    ];
    if let Some(told) = audit.tell.as_ref().and_then(|t| t.worst()) {
        let (share, at_most, record) = match told.is_settled() {
            true => (follow::worst(told), "at most, ", format!("record {}", told.worst_record)),
            false => (
                follow::told_apart(told, audit.tell.as_ref().map_or(0.5, |t| t.protect_at)),
                "",
                "some record".into(),
            ),
        };
        let name = format!(
            "of cases, {at_most}{} {} or {} is named rightly for {record} by somebody who knows everything else (a coin toss: \
             50%)",
            told.attribute, told.from, told.to
        );
        all.push(tile_of(&share, &name));
    } else if let Some(e) = exposures(audit).first() {
        let a = e.attribute;
        let than = match (words::is_category(a), words::spread(a)) {
            (false, Some(s)) => format!(" (records differ by ±{})", format::number(s)),
            _ => ", from 0 for no to 1 for yes (a coin toss: ±0.5)".to_owned(),
        };
        let name = format!("least error of an estimate of {} that is right on average{than}", a.name);
        all.push(tile_of(&smallest_error(a), &name));
    }
    all.push(tile(&format::count(audit.records.stand_out), "records above three times the median η"));
    all.push(tile_of(&follow::eta(audit.dataset.eta), "η of the whole data set"));
    if let Some(ratio) = audit.group_ratio {
        let by = audit.data.group.as_deref().unwrap_or("group");
        all.push(tile(&format::times(ratio), &format!("worst {by} against best, mean η")));
    }
    if let Some(u) = &audit.utility {
        let without = words::metric(u, u.without_noise);
        let name = words::metric_name(u.metric);
        all.push(tile_of(
            &follow::utility(u),
            &format!("{name} on held-out rows with the noise ({without} without)"),
        ));
    }
    let source = match &audit.sigma_source {
        SigmaSource::Default => "σ, a unit of noise: none was chosen",
        SigmaSource::Given => "σ, noise on every coefficient, as given",
        SigmaSource::TargetEta { .. } | SigmaSource::TargetSd { .. } => {
            "σ, noise on every coefficient, solved for"
        }
        SigmaSource::Targets => "σ of isotropic noise that costs as much as this noise",
    };
    all.push(tile_of(&follow::sigma(audit.sigma), source));
    if let Some(noise) = audit.noise.as_ref().filter(|n| n.shape != Shape::Isotropic) {
        all.push(tile(&format::times(noise.gain), "what isotropic noise costs for the same targets"));
    }
    tiles(all)
}

fn limits(audit: &Audit) -> Html {
    if audit.limits.is_empty() {
        return Html::new();
    }
    let each: Html = audit
        .limits
        .iter()
        .map(|l| {
            let (class, sign, relation) =
                if l.ok { ("ok", "✓", "within") } else { ("over", "✗", "above") };
            let text = format!(
                "{} is {}, {relation} the limit of {}",
                words::statistic_name(l.statistic),
                format::number(l.value),
                format::setting(l.limit)
            );
            fill("<li class=\"{}\"><span aria-hidden=\"true\">{}</span> {}</li>", &[&class, &sign, &text])
        })
        .collect();
    fill("<ul class=\"limits\" aria-label=\"Limits\">{}</ul>\n", &[&each])
}
