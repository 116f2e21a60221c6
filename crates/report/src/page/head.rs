//! The top of the page: what was audited, the verdict, the numbers to remember, warnings.

use crate::audit::Audit;
use crate::html::{escape, list};
use crate::verdict::{Level, Verdict, exposures, subject, verdict};
use crate::{format, words};

pub(super) fn head(audit: &Audit) -> String {
    let facts = words::facts(audit).join(" · ");
    format!(
        "<header><div class=\"top\"><p class=\"eyebrow\">Leakscope audit</p>\
         <button type=\"button\" class=\"print\" hidden>Print</button></div>\n\
         <h1>{}</h1><p class=\"meta\">{}</p></header>\n{}{}{}{}",
        escape(&words::title(audit)),
        escape(&facts),
        judged(&verdict(audit)),
        tiles(audit),
        limits(audit),
        warnings(audit)
    )
}

fn judged(verdict: &Verdict) -> String {
    let class = match verdict.level {
        Level::OverLimit | Level::NotProtected => "bad",
        Level::NoNoise | Level::Thin => "care",
        Level::Protected | Level::Incomparable => "good",
    };
    let sentences: String = verdict
        .sentences
        .iter()
        .map(|sentence| {
            let spans: String = sentence
                .iter()
                .map(|s| if s.strong { format!("<b>{}</b>", escape(&s.text)) } else { escape(&s.text) })
                .collect();
            format!("<p>{spans}</p>\n")
        })
        .collect();
    format!(
        "<section class=\"verdict {class}\" aria-label=\"Verdict\"><p class=\"level\">{}</p>\n{sentences}</section>\n",
        verdict.level.label()
    )
}

fn tile(value: &str, what: &str) -> String {
    format!("<div class=\"tile\"><strong>{}</strong><span>{}</span></div>\n", escape(value), escape(what))
}

fn tiles(audit: &Audit) -> String {
    let eta = &audit.records.eta;
    let most = audit.records.most.first().map(|m| format!(", record {}", m.id)).unwrap_or_default();
    let mut all = vec![
        tile(&format::number(eta.p50), "median information loss η of a record"),
        tile(&format::number(eta.max), &format!("largest η{most}")),
    ];
    if let Some(e) = subject(&exposures(audit)) {
        let a = e.attribute;
        let than = match (words::is_category(a), words::spread(a)) {
            (false, Some(s)) => format!(" (records differ by ±{})", format::number(s)),
            _ => ", as 0 or 1 (a coin toss: ±0.5)".to_owned(),
        };
        all.push(tile(
            &words::smallest_error(a),
            &format!("least error of an unbiased estimate of {}{than}", a.name),
        ));
    }
    all.push(tile(&format::count(audit.records.stand_out), "records above three times the median η"));
    all.push(tile(&format::number(audit.dataset.eta), "η of the whole data set"));
    if let Some(ratio) = audit.group_ratio {
        let by = audit.data.group.as_deref().unwrap_or("group");
        all.push(tile(&format::times(ratio), &format!("worst {by} against best, mean η")));
    }
    if let Some(u) = &audit.utility {
        let without = words::metric(u, u.without_noise);
        let name = words::metric_name(u);
        all.push(tile(
            &words::metric(u, u.at_sigma),
            &format!("{name} on held-out rows with the noise ({without} without)"),
        ));
    }
    let source = match &audit.sigma_source {
        crate::audit::SigmaSource::Default => "σ, a unit of noise: none was chosen",
        crate::audit::SigmaSource::Given => "σ, noise on every coefficient, as given",
        _ => "σ, noise on every coefficient, solved for",
    };
    all.push(tile(&format::setting(audit.sigma), source));
    // Rows without holes: four, three or two in a row.
    let across = match all.len() {
        n if n % 4 == 0 => 4,
        n if n % 3 == 0 => 3,
        _ => 4,
    };
    format!("<div class=\"tiles n{across}\">\n{}</div>\n", all.concat())
}

fn limits(audit: &Audit) -> String {
    if audit.limits.is_empty() {
        return String::new();
    }
    let each: String = audit
        .limits
        .iter()
        .map(|l| {
            let (class, sign, relation) =
                if l.ok { ("ok", "✓", "within") } else { ("over", "✗", "above") };
            let text = format!(
                "{} is {}, {relation} the limit of {}",
                words::statistic_name(&l.statistic),
                format::number(l.value),
                format::setting(l.limit)
            );
            format!("<li class=\"{class}\"><span aria-hidden=\"true\">{sign}</span> {}</li>", escape(&text))
        })
        .collect();
    format!("<ul class=\"limits\" aria-label=\"Limits\">{each}</ul>\n")
}

fn warnings(audit: &Audit) -> String {
    if audit.warnings.is_empty() {
        return String::new();
    }
    format!(
        "<section class=\"warnings\" aria-label=\"Warnings\"><h2>{}</h2>{}</section>\n",
        format::counted(audit.warnings.len() as u64, "warning"),
        list(&audit.warnings)
    )
}
