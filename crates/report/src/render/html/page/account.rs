//! The page of an account: what the releases cost, by every accountant.

use super::figure::figure;
use crate::document::account::Costs;
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::Html;
use crate::render::html::parts::{card, header, judged, list, shell, tile, tiles};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_account;
use crate::words;

/// An account as one self-contained HTML page.
pub fn account_page(c: &Costs) -> String {
    let a = &c.account;
    let all = a.releases.iter().map(|r| r.1).sum();
    let title = format!("What {} cost", format::counted(all, "release"));
    let facts = format!("δ = {} · {}", format::setting(a.delta), words::adjacency(a.adjacency));
    let releases = list(a.releases.iter().map(|&(mechanism, count)| words::release(mechanism, count)));
    let rests = list([
        "Every release may be chosen from the results of earlier ones.",
        "Noise is in units of the sensitivity under add/remove adjacency (the clipping norm of DP-SGD).",
        "Sampling, where there is any, is Poisson: each record takes part in a step independently.",
        "Noise and sampling come from a good generator, in real numbers: rounding is not accounted for.",
    ]);
    let body = header("Leakscope account", &title, &facts)
        .and(judged(&of_account(c)))
        .and(main_numbers(c, all))
        .and(card("epsilon", "ε by each accountant", &[Claim::Bound], "", accountants(c)))
        .and(c.figures.iter().map(figure).collect())
        .and(card("releases", "The releases", &[], "", releases))
        .and(card("rests", "What the numbers rest on", &[], "", rests));
    shell("Leakscope account", &body)
}

fn main_numbers(c: &Costs, all: u64) -> Html {
    let a = &c.account;
    tiles(vec![
        tile(
            &format::five_digits(a.epsilon.pld.upper, true),
            &format!("ε at δ = {}, at most", format::setting(a.delta)),
        ),
        tile(
            &format::five_digits(a.advantage.upper, true),
            "membership advantage: true- less false-positive rate of any test, at most",
        ),
        tile(&format::five_digits(a.epsilon.rdp.epsilon, true), "ε by Rényi accounting, for comparison"),
        match a.gdp_mu {
            Some(mu) => tile(&format::number(mu), "μ of Gaussian DP, exact here"),
            None => tile(&format::count(all), "releases in all"),
        },
    ])
}

/// To five digits, as the terminal has them.
fn accountants(c: &Costs) -> Html {
    let e = &c.account.epsilon;
    let mut rows = vec![vec![
        Cell::remarked_name("privacy loss distribution", "certified from both sides: the truth lies between"),
        Cell::sorted(format::five_digits(e.pld.upper, true), e.pld.upper),
        Cell::sorted(format::five_digits(e.pld.lower, false), e.pld.lower),
    ]];
    let mut add = |name: &str, remark: &str, value: Option<f64>| {
        let Some(value) = value else { return };
        let shown = Cell::sorted(format::five_digits(value, true), value);
        rows.push(vec![Cell::remarked_name(name, remark), shown, Cell::html(Html::new())]);
    };
    let gaussian = "Balle, Wang 2018: exact for plain Gaussian releases";
    add("Gaussian mechanism, analytically", gaussian, e.analytic_gaussian);
    let order = format!("Mironov 2017; order {}", format::number(e.rdp.alpha));
    add("Rényi DP", &order, Some(e.rdp.epsilon));
    add("zero-concentrated DP", "Bun, Steinke 2016", e.zcdp);
    add("pure DP", "the sum of all ε, at δ = 0", e.pure);
    let heads = [text_column("accountant"), numbers("ε, at most"), numbers("not below")];
    table("wrap stack even", "ε by each accountant", &heads, &rows)
}
