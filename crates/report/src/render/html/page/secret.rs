//! On the audit's page: a chosen secret, the bound and the attacks in the same axes.

use super::figure::{claims, drawing};
use crate::document::attack::AttackResult;
use crate::document::audit::Audit;
use crate::document::bound::{Row, SecretBounds};
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, list, narrow};
use crate::words;
use leakscope_core::attack::Attack as Attacker;

pub(super) fn secret(audit: &Audit, bounds: &SecretBounds) -> Html {
    let (Some(data), Some(figure)) = (&bounds.data, bounds.figures.first()) else { return Html::new() };
    let name = &data.secret.name;
    let mut lead = String::new();
    if let Some(best) = bounds.bounds.first() {
        let releases = match audit.releases {
            1 => String::new(),
            many => format!(", released {many} times,"),
        };
        let beats = |a: &AttackResult| {
            Some(a.sigma) == bounds.sigma && a.attack == Attacker::BlackBox && a.accuracy.value > best.success
        };
        let covers = match data.attacks.iter().any(beats) {
            true => format!(
                " (not by what the record’s other values and its label tell about {name}, which the black box uses too)"
            ),
            false => String::new(),
        };
        lead = format!(
            "At σ = {}{releases} no attacker who goes by the model alone{covers} has an advantage over guessing the most frequent \
             {name} above {} (success {}), averaged over records. ",
            bounds.sigma.map(format::setting).unwrap_or_default(),
            format::at_most(best.advantage),
            format::share_at_most(best.success)
        );
    }
    let at = data.attacks.iter().filter(|a| Some(a.sigma) == bounds.sigma);
    if let Some(strongest) = at.max_by(|a, b| a.advantage.value.total_cmp(&b.advantage.value)) {
        lead.push_str(&format!(
            "The strongest attack played, the {}, achieved {} ({} to {}{}). ",
            words::attacker(strongest.attack),
            format::number(strongest.advantage.value),
            format::number(strongest.advantage.ci_low),
            format::number(strongest.advantage.ci_high),
            chance(strongest, bounds.bounds.first())
        ));
    }
    lead.push_str(&figure.caption);
    let heading = format!("Guessing {name}: the bound and the attacks");
    let rests: std::collections::BTreeSet<&String> =
        bounds.bounds.iter().flat_map(|b| &b.assumptions).collect();
    let body = narrow(drawing(figure)).and(fill("<h3>What the bounds rest on</h3>{}", &[&list(rests)]));
    card("secret", &heading, &claims(figure), lead, body)
}

/// An attack whose interval holds the bound cannot be told from one that attains it, and did not beat it.
fn chance(attack: &AttackResult, bound: Option<&Row>) -> &'static str {
    let o = &attack.advantage;
    match bound {
        Some(b) if o.ci_low <= b.advantage && b.advantage <= o.ci_high => ": within chance of the bound",
        Some(b) if o.ci_low > b.advantage && attack.attack == Attacker::BlackBox => {
            ": above the bound, because it also infers the value from the record’s other values and its label, as it would \
             for anybody"
        }
        Some(b) if o.ci_low > b.advantage => {
            ": above the bound, as one run in forty is by chance even of an attack that attains it"
        }
        Some(_) | None => "",
    }
}
