//! The numbers of results about a secret: attacks, bounds, canaries.

use super::numbers::Numbers;
use leakscope_core::bound::table::Optimal;
use leakscope_report::comparison::Form;
use leakscope_report::document::attack::{AttackResult, Utility};
use leakscope_report::document::canary::{Guesser, LimitKind};
use leakscope_report::{Attack, Canary, bound::SecretBounds, format, words};

const SCATTER: &str =
    "Shares of records guessed right, as observed: a change counts where the intervals do not meet.";

/// Those of attacks.
pub(super) fn attack(a: &Attack) -> Vec<Numbers> {
    let mut settings =
        Numbers::new("Settings", "What was chosen, or read: neither better nor worse by itself.");
    settings.setting("records attacked", Form::Count, a.records as f64);
    settings.setting("trials", Form::Count, a.trials as f64);
    settings.setting("penalty λ", Form::Setting, a.subject.l2);
    settings.setting("a guess without the model", Form::Share, a.baseline.accuracy);
    let mut records = Numbers::new("Records", "η of the secret at σ = 1.");
    records.leak("η of the secret, mean", Form::Number, a.eta_mean_at_unit_noise);
    vec![
        settings,
        played("Attacks", a.results.iter().chain(&a.results_balanced)),
        records,
        utility(a.utility.as_ref()),
    ]
}

fn played<'a>(title: &str, results: impl Iterator<Item = &'a AttackResult>) -> Numbers {
    let mut n = Numbers::new(title, SCATTER);
    for r in results {
        let balanced = if r.balanced { ", balanced" } else { "" };
        let sigma = format::setting(r.sigma);
        n.observed(format!("{} at σ = {sigma}{balanced}", words::attacker(r.attack)), &r.accuracy);
    }
    n
}

fn utility(u: Option<&Utility>) -> Numbers {
    let mut n = Numbers::new("Utility", "What the model is good for on rows that it was not fitted to.");
    if let Some(u) = u {
        let name = words::metric_name(u.metric);
        n.score(format!("{name} without noise"), u.higher_is_better, u.without_noise);
        for (sigma, score) in &u.points {
            n.score(format!("{name} at σ = {}", format::setting(*sigma)), u.higher_is_better, *score);
        }
    }
    n
}

/// Those of bounds.
pub(super) fn bound(f: &SecretBounds) -> Vec<Numbers> {
    let mut settings =
        Numbers::new("Settings", "What was chosen, or read: neither better nor worse by itself.");
    settings.setting("σ", Form::Setting, f.sigma);
    settings.setting("candidates", Form::Count, f.candidates.map(|n| n as f64));
    settings.setting("the likeliest value, beforehand", Form::Share, f.most_likely);
    let mut n =
        Numbers::new("Success of any attacker", "What no attacker exceeds, by each bound that applies.");
    for row in &f.bounds {
        let name = words::bound(row);
        n.leak(&*name, Form::ShareAtMost, row.success);
        n.leak(format!("{name}, easiest record"), Form::ShareAtMost, row.worst.map(|w| w.success));
    }
    match &f.optimal {
        Some(Optimal::Exact(success)) => n.leak("the optimal attack", Form::Share, *success),
        Some(Optimal::Observed(success)) => n.observed("the optimal attack, in simulation", success),
        None => {}
    }
    let mut errors =
        Numbers::new("Error of any estimate", "What no estimate of a continuous secret gets below.");
    for estimation in &f.estimation {
        errors.shield(&*estimation.attacker, Form::AtLeast, estimation.error.value);
    }
    let data = f.data.as_ref();
    let at = data.and_then(|d| d.curve.iter().find(|p| Some(p.sigma) == f.sigma));
    let mut table = Numbers::new("This table", "Of these records, not of every table.");
    table.leak("ε of two values of the most exposed record", Form::AtMost, at.map(|p| p.epsilon_secret));
    table.leak("ε of a record's removal", Form::AtMost, at.and_then(|p| p.epsilon_removal));
    table.leak("distance of two candidate models, largest", Form::Number, data.map(|d| d.distance.max));
    let attacks = played("Attacks", data.into_iter().flat_map(|d| &d.attacks));
    vec![settings, n, errors, table, attacks, utility(data.and_then(|d| d.utility.as_ref()))]
}

/// Those of a canary.
pub(super) fn canary(c: &Canary) -> Vec<Numbers> {
    let mut settings = Numbers::new("Settings", "What was chosen: neither better nor worse by itself.");
    settings.setting("a guess without the model", Form::Share, c.secret.most_likely);
    settings.setting("clip", Form::Setting, c.clip);
    let mut bounds = Numbers::new("Nobody names the secret more often", "By each bound, of all attackers.");
    let mut games = Numbers::new("Games", SCATTER);
    for p in &c.points {
        let at = format!(
            "{}, {} at σ = {}",
            words::part(p.trained),
            format::counted(p.steps, "step"),
            format::setting(p.sigma)
        );
        for limit in &p.bounds {
            let by = match limit.kind {
                LimitKind::FanoRdp => "Fano with Rényi DP",
                LimitKind::AroundZero => "test around 0",
                LimitKind::AroundCentre => "test around the centre",
            };
            bounds.leak(format!("{at}: {by}"), Form::ShareAtMost, limit.success.value);
        }
        for game in &p.attacks {
            let who = match game.attack {
                Guesser::Difference => "rise in log-likelihood",
                Guesser::Optimal => "optimal attack",
            };
            games.observed(format!("{at}: {who}"), &game.success);
        }
    }
    vec![settings, bounds, games]
}
