//! The page of an account: what the releases cost, by every accountant.

use super::figure::figure;
use super::head::tile;
use super::shell;
use crate::account::{Costs, adjacency, release};
use crate::chart::patterns;
use crate::format;
use crate::html::{Cell, Kind, card, escape, list, numbers, table, words};

/// An account as one self-contained HTML page.
pub fn account_page(c: &Costs) -> String {
    let a = &c.account;
    let (pld, rdp) = (a.epsilon.pld, a.epsilon.rdp);
    let delta = format::setting(a.delta);
    let certain = |x: f64| format::at_most(x);
    let mut rows = vec![vec![
        Cell::remarked_name("privacy loss distribution", "certified from both sides: the truth lies between"),
        Cell::sorted(certain(pld.upper), pld.upper),
        Cell::sorted(format::at_least(pld.lower), pld.lower),
    ]];
    let mut add = |name: &str, remark: &str, value: f64| {
        rows.push(vec![
            Cell::remarked_name(name, remark),
            Cell::sorted(certain(value), value),
            Cell::html(String::new()),
        ]);
    };
    if let Some(e) = a.epsilon.analytic_gaussian {
        add("Gaussian mechanism, analytically", "Balle, Wang 2018: exact for plain Gaussian releases", e);
    }
    add("Rényi DP", &format!("Mironov 2017; order {}", format::number(rdp.alpha)), rdp.epsilon);
    if let Some(e) = a.epsilon.zcdp {
        add("zero-concentrated DP", "Bun, Steinke 2016", e);
    }
    if let Some(e) = a.epsilon.pure {
        add("pure DP", "the sum of all ε, at δ = 0", e);
    }
    let accountants = table(
        "wrap",
        "ε by each accountant",
        &[words("accountant"), numbers("ε, at most"), numbers("not below")],
        &rows,
    );
    let tiles = [
        tile(&certain(pld.upper), &format!("ε at δ = {delta}, at most")),
        tile(
            &certain(a.advantage.upper),
            "membership advantage: true- less false-positive rate of any test, at most",
        ),
        tile(&certain(rdp.epsilon), "ε by Rényi accounting, for comparison"),
        match a.gdp_mu {
            Some(mu) => tile(&format::number(mu), "μ of Gaussian DP, exact here"),
            None => tile(&format::count(a.releases.iter().map(|r| r.1).sum()), "releases in all"),
        },
    ]
    .concat();
    let (class, level) = match a.advantage.upper {
        x if x <= 0.1 => ("good", "Hard to tell who took part"),
        x if x <= 0.5 => ("care", "Some can tell who took part"),
        _ => ("bad", "Easy to tell who took part"),
    };
    let assumed = match c.adjacency_assumed {
        true => " <b>This adjacency was assumed</b>: the command line did not say one (--adjacency).",
        false => "",
    };
    let verdict = format!(
        "<section class=\"verdict {class}\" aria-label=\"Verdict\"><p class=\"level\">{level}</p>\n<p>Nobody who sees all \
         releases and knows everything else tells the two data sets apart with a true-positive rate more than <b>{}</b> \
         above the false-positive rate. ε is at most <b>{}</b> at δ = {delta}.</p><p>Adjacency: {}.{assumed}</p></section>\n",
        format::share_at_most(a.advantage.upper),
        certain(pld.upper),
        adjacency(a.adjacency)
    );
    let releases = list(a.releases.iter().map(|&(mechanism, count)| release(mechanism, count)));
    let rests = list([
        "Every release may be chosen from the results of earlier ones.".to_owned(),
        "Noise is in units of the sensitivity under add/remove adjacency (the clipping norm of DP-SGD)."
            .to_owned(),
        "Sampling, where there is any, is Poisson: each record takes part in a step independently."
            .to_owned(),
        "Noise and sampling come from a good generator, in real numbers: rounding is not accounted for."
            .to_owned(),
    ]);
    let body = format!(
        "{}<main>\n<header><div class=\"top\"><p class=\"eyebrow\">Leakscope account</p></div><h1>What {} cost</h1>\
         <p class=\"meta\">δ = {delta} · {}</p></header>\n{verdict}<div class=\"tiles n4\">\n{tiles}</div>\n{}{}{}{}</main>\n",
        patterns(),
        format::counted(a.releases.iter().map(|r| r.1).sum(), "release"),
        escape(adjacency(a.adjacency)),
        card("epsilon", "ε by each accountant", &[Kind::Bound], "", &accountants),
        c.figures.iter().map(figure).collect::<String>(),
        card("releases", "The releases", &[], "", &releases),
        card("rests", "What the numbers rest on", &[], "", &rests),
    );
    shell("Leakscope account", &body)
}
