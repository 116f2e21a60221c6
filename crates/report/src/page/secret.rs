//! On the audit's page: a chosen secret, the bound and the attacks in the same axes.

use super::figure::{drawn, kinds};
use crate::bound::Found;
use crate::format;
use crate::html::{card, escape, list};

pub(super) fn secret(found: &Found) -> String {
    let (Some(data), Some(figure)) = (&found.data, found.figures.first()) else { return String::new() };
    let (name, sigma) = (escape(&data.secret.name), found.sigma.map(format::setting).unwrap_or_default());
    let mut lead = String::new();
    if let Some(best) = found.bounds.first() {
        lead = format!(
            "At σ = {sigma} no attacker’s advantage over guessing the most frequent {name} is above <b>{}</b> (success {}), \
             averaged over records. ",
            format::at_most(best.advantage),
            format::share_at_most(best.success)
        );
    }
    let at = data.attacks.iter().filter(|a| Some(a.sigma) == found.sigma);
    if let Some(strongest) = at.max_by(|a, b| a.advantage.value.total_cmp(&b.advantage.value)) {
        lead.push_str(&format!(
            "The strongest attack played, {}, achieved {} ({} to {}). ",
            escape(&strongest.attack),
            format::number(strongest.advantage.value),
            format::number(strongest.advantage.ci_low),
            format::number(strongest.advantage.ci_high)
        ));
    }
    lead.push_str(&escape(&figure.caption));
    let heading = format!("Guessing {name}: the bound and the attacks");
    let rests: std::collections::BTreeSet<&String> =
        found.bounds.iter().flat_map(|b| &b.assumptions).collect();
    let body = format!(
        "<div class=\"narrow\">{}</div><h3>What the bounds rest on</h3>{}",
        drawn(figure),
        list(rests)
    );
    card("secret", &heading, &kinds(figure), &lead, &body)
}
