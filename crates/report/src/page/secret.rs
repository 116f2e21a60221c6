//! On the audit's page: a chosen secret, the bound and the attacks in the same axes.

use super::figure::{drawn, kinds};
use crate::Audit;
use crate::attack::AttackResult;
use crate::bound::{Found, Row};
use crate::format;
use crate::html::{card, escape, list};

pub(super) fn secret(audit: &Audit, found: &Found) -> String {
    let (Some(data), Some(figure)) = (&found.data, found.figures.first()) else { return String::new() };
    let (name, sigma) = (escape(&data.secret.name), found.sigma.map(format::setting).unwrap_or_default());
    let releases = match audit.releases {
        1 => String::new(),
        many => format!(", released {many} times,"),
    };
    let mut lead = String::new();
    if let Some(best) = found.bounds.first() {
        lead = format!(
            "At σ = {sigma}{releases} no attacker’s advantage over guessing the most frequent {name} is above <b>{}</b> (success {}), \
             averaged over records. ",
            format::at_most(best.advantage),
            format::share_at_most(best.success)
        );
    }
    let at = data.attacks.iter().filter(|a| Some(a.sigma) == found.sigma);
    if let Some(strongest) = at.max_by(|a, b| a.advantage.value.total_cmp(&b.advantage.value)) {
        lead.push_str(&format!(
            "The strongest attack played, {}, achieved {} ({} to {}{}). ",
            escape(&strongest.attack),
            format::number(strongest.advantage.value),
            format::number(strongest.advantage.ci_low),
            format::number(strongest.advantage.ci_high),
            chance(strongest, found.bounds.first())
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

/// An attack whose interval holds the bound cannot be told from one that attains it, and did not beat it.
fn chance(attack: &AttackResult, bound: Option<&Row>) -> &'static str {
    let o = &attack.advantage;
    match bound {
        Some(b) if o.ci_low <= b.advantage && b.advantage <= o.ci_high => ": within chance of the bound",
        Some(b) if o.ci_low > b.advantage => {
            ": above the bound, as one run in forty is by chance even of an attack that attains it"
        }
        Some(_) | None => "",
    }
}
