//! How often two values of an attribute are told apart: what the colour rests on.

use crate::document::audit::Attribute;
use crate::document::tell::{Tell, ValuePair};
use crate::figure::Claim;
use crate::format;
use crate::render::html::follow;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::card;
use crate::render::html::table::{Cell, SHOWN, numbers, rest, rest_of_attributes, table, words};

/// The card; nothing where it was not computed.
pub(super) fn tell(tell: Option<&Tell>, attributes: &[Attribute]) -> Html {
    let Some(tell) = tell.filter(|t| !(t.attributes.is_empty() && t.left_out.is_empty())) else {
        return Html::new();
    };
    let unit = |told: &ValuePair| {
        let of = attributes.iter().find(|a| !told.label && a.name == told.attribute);
        of.and_then(|a| a.unit.as_deref())
    };
    let mut order: Vec<_> = tell.attributes.iter().collect();
    order.sort_by(|a, b| b.worst.total_cmp(&a.worst));
    let (shown, others) = order.split_at(order.len().min(SHOWN));
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|t| {
            vec![
                Cell::remarked_name(&t.attribute, if t.label { "the label" } else { "" }),
                Cell::html(pair_cell(t, unit(t))),
                Cell::sorted_html(follow::told_apart(t, tell.protect_at), Some(t.worst)),
                Cell::sorted_html(follow::median(t, tell.protect_at), Some(t.median)),
                Cell::text(if t.is_settled() { &t.worst_record } else { "not settled" }),
            ]
        })
        .collect();
    let heads = [
        words("attribute"),
        words("which of two values"),
        numbers("worst record"),
        numbers("median record"),
        words("which is worst"),
    ];
    let lead = format!(
        "Somebody who knows every other value of the table, and that one of two values is right, names the right one so \
         often at most; a coin toss has 50%. By refitting the model with either value. Up to {} counts as protected.{}{}",
        format::share(tell.protect_at),
        unsettled(tell),
        untried(tell)
    );
    let mut body = Html::new();
    if !rows.is_empty() {
        body = table("sortable filterable tall stack even", "Two values told apart", &heads, &rows);
    }
    // Of many, the list of attributes says it of each: names once, and not three times.
    let body = match tell.left_out.len() > SHOWN {
        true if !attributes.is_empty() => body.and(elsewhere(others.len() + tell.left_out.len())),
        true | false => body.and(less_told(others, attributes)).and(rest(
            "attributes that were not tried",
            "Nothing is shown about these: they may be more exposed than those above.",
            tell.left_out.iter().cloned(),
        )),
    };
    card("tell", "Which values can be told apart", &[Claim::Bound], lead, body)
}

/// Those that have no row here: elsewhere on the page, or in a list on one that lists no attributes.
fn less_told(others: &[&ValuePair], attributes: &[Attribute]) -> Html {
    if !attributes.is_empty() {
        return elsewhere(others.len());
    }
    let line = |t: &&ValuePair| format!("{}  {}", t.attribute, format::share_at_most(t.worst));
    rest_of_attributes("Told apart less often than those above.", others.iter().map(line))
}

/// Where those are that have no row here.
fn elsewhere(count: usize) -> Html {
    if count == 0 {
        return Html::new();
    }
    fill(
        "<p class=\"say\">For another {} see the list under <a href=\"#attributes\">Which attributes leak</a>.</p>",
        &[&format::counted(count as u64, "attribute")],
    )
}

/// The same where the numbers follow the noise.
fn pair_cell(pair: &ValuePair, unit: Option<&str>) -> Html {
    let two = format!("{} or {}{}", pair.from, pair.to, pair.unit(unit));
    match pair.among_all {
        Some(all) => fill(
            "{}; of all {} levels the right one in {}",
            &[&two, &all.levels, &follow::among(pair, all.levels, all.worst)],
        ),
        None => Html::text(&two),
    }
}

/// What was not settled, and what settles it.
fn unsettled(tell: &Tell) -> String {
    match tell.attributes.iter().filter(|t| !t.is_settled() && t.worst > tell.protect_at).count() {
        0 => String::new(),
        n => format!(
            " Not settled within the budget for {}: there it is the least that refits have shown; {} settles more.",
            format::counted(n as u64, "attribute"),
            tell.next_budget()
        ),
    }
}

/// What was left out, and that it counts.
fn untried(tell: &Tell) -> String {
    if tell.left_out.is_empty() {
        return String::new();
    }
    let because = tell.left_out_because.as_deref().unwrap_or("");
    format!(
        " Not tried: {}. {because} A page that leaves any out is never green.",
        format::counted(tell.left_out.len() as u64, "attribute")
    )
}
