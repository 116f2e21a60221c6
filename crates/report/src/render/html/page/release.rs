//! The page of a release: the statement that goes with the model.

use crate::document::noise::Source;
use crate::document::release::{Counting, Means, Measured, Owned, PublicPair, Release, Stated};
use crate::figure::Claim;
use crate::format;
use crate::render::html::markup::Html;
use crate::render::html::page::tell;
use crate::render::html::parts::{
    card, facts, header, judged, list, notes, shell, tile, tiles, warnings, whose,
};
use crate::render::html::table::{Cell, SHOWN, numbers, rest, table, words as text_column};
use crate::verdict::{of_owned, of_release};
use leakscope_core::glm::ModelKind;

/// A release as one self-contained HTML page, which may be published with the model.
pub fn release_page(r: &Release) -> String {
    let (title, facts) = titled(r);
    let body = header("Leakscope release", &title, &facts)
        .and(judged(&of_release(r)))
        .and(numbers_of(r, None))
        .and(warnings(&r.warnings))
        .and(r.tell.as_ref().map_or_else(Html::new, |t| telling(r, t)))
        .and(stated(r))
        .and(coefficients(r))
        .and(card("files", "Which files may leave the house", &[], FILES, Html::new()));
    shell(&format!("Leakscope release: {title}"), &body)
}

/// The same for the owner of the data, with what was measured: never published.
pub fn owners_release_page(owned: &Owned) -> String {
    let (r, m) = (&owned.statement, &owned.measured);
    let (title, facts) = titled(r);
    let measured = tile(&format::number(m.eta_max), "largest information loss η of a record, measured");
    let body = header("Leakscope release, for its owner", &title, &facts)
        .and(whose(false))
        .and(judged(&of_owned(owned)))
        .and(numbers_of(r, Some(measured)))
        .and(warnings(&r.warnings))
        .and(notes(&owned.remarks))
        .and(tell::tell(m.tell.as_ref(), &[]))
        .and(measured_on(m))
        .and(stated(r))
        .and(coefficients(r));
    shell(&format!("Leakscope release, for its owner: {title}"), &body)
}

/// Title of a page, and the facts in one line.
fn titled(r: &Release) -> (String, String) {
    let (s, columns) = (&r.subject, r.mechanism.units.len() as u64);
    let facts = format!(
        "{} · {} · λ = {}{} · {}",
        s.family.title(),
        format::counted(columns, "column"),
        format::setting(s.l2),
        match s.classes.as_deref() {
            Some([low, high]) => format!(" · {low} (low) or {high} (high)"),
            Some(all) => format!(" · one of {}", all.join(", ")),
            None => String::new(),
        },
        r.created
    );
    (format!("a model of {}", s.target), facts)
}

/// The numbers to remember.
fn numbers_of(r: &Release, measured: Option<Html>) -> Html {
    let eta =
        r.eta.max.map(|eta| tile(&format::at_most(eta), "largest information loss η of a record, at most"));
    let noise = match r.mechanism.is_isotropic() {
        true => tile(&format::setting(r.mechanism.sigma), "σ, noise on every coefficient in public units"),
        false => tile(
            &format::number(r.mechanism.sigma),
            "root of the mean variance of the noise on coefficients in public units",
        ),
    };
    let releases =
        tile(&format::count(r.composed.releases as u64), "releases in the owner's ledger, this one included");
    tiles([noise].into_iter().chain(eta).chain(measured).chain([releases]).collect())
}

/// What stands in the statement, word by word.
fn stated(r: &Release) -> Html {
    card("mechanism", "The noise", &[Claim::Measured], mechanism(r), Html::new())
        .and(card("given", "What was given, and is public", &[], "", list(&r.public_inputs)))
        .and(card("read-off", "What was read off the data", &[], "", list(&r.read_off)))
        .and(card("known", "What attackers are taken to know", &[], "", list(&r.known)))
        .and(card("assumed", "What the numbers rest on", &[], "", list(&r.assumed)))
}

/// What was measured, and on what.
fn measured_on(m: &Measured) -> Html {
    let counting = match m.counting {
        Counting::Exact => "exactly, scaling counted",
        Counting::Bounded => "from above, scaling counted",
        Counting::Units => "exactly, in public units",
        Counting::Weights => "exactly, balanced weights counted",
    };
    let mut rows = vec![
        ("files", m.files.join(", ")),
        ("records", format::count(m.n)),
        ("mean η of a record", format::number(m.eta_mean)),
        ("largest η of a record", format::number(m.eta_max)),
        ("how η was found", counting.to_owned()),
    ];
    rows.extend(m.gain.map(|gain| {
        ("error that isotropic noise for the same targets adds, times this noise’s", format::number(gain))
    }));
    let lead = "Computed on the data without noise. None of it is in the files that are published.";
    card("measured", "What was measured", &[Claim::Measured], lead, facts(&rows))
}

/// How often two values are told apart, as it may be said.
fn telling(r: &Release, tell: &Stated) -> Html {
    if tell.kept_back {
        return with_owner(tell);
    }
    let parts = [
        ("an attribute".to_owned(), tell.attributes),
        (format!("the label, {}", r.subject.target), tell.label),
    ];
    let rows: Vec<Vec<Cell>> = parts
        .iter()
        .filter_map(|(name, ceiling)| Some((name, (*ceiling)?)))
        .map(|(name, ceiling)| {
            let by = match ceiling.by {
                Means::Refits => "fitting the model with either value",
                Means::Eta => "η alone: an approximation, no bound",
            };
            let share = format::share_at_most(ceiling.at_most);
            vec![Cell::name(name), Cell::sorted(share, ceiling.at_most), Cell::text(by)]
        })
        .collect();
    // η looks at small changes alone: what comes from it covers no attacker who compares two values.
    let proven = parts.iter().filter_map(|(_, ceiling)| *ceiling).all(|ceiling| ceiling.by == Means::Refits);
    let (claim, how_often, so_often) = if proven {
        (Claim::Bound, "told apart in at most", "so often at most")
    } else {
        (Claim::Measured, "told apart in about", "about so often")
    };
    let heads = [text_column("two values of"), numbers(how_often), text_column("by")];
    let lead = format!(
        "Somebody who knows every other value of the table, and that one of two values is right, names the right one {so_often}, \
         for the most exposed record and after all releases of these data so far; a coin toss has 50%. {} Rounded up to a grid; up \
         to {} counts as protected.",
        typical(&tell.public_pairs),
        format::share(tell.protect_at)
    );
    card(
        "tell",
        "Which values can be told apart",
        &[claim],
        lead,
        table("stack even", "Two values told apart", &heads, &rows),
    )
}

/// The same where what was found is not said.
fn with_owner(tell: &Stated) -> Html {
    let lead = format!(
        "That stays with the owner: whoever knows all other records could try every value of the last one, and exclude those that would \
         have led to another number, or to another colour of this page. The owner set {} as the limit for somebody who knows every \
         other value of the table and that one of two values is right (a coin toss: 50%). {}",
        format::share(tell.protect_at),
        typical(&tell.public_pairs)
    );
    card("tell", "Which values can be told apart", &[], lead, Html::new())
}

/// Which two values these are.
fn typical(pairs: &[PublicPair]) -> String {
    let named = match pairs {
        [] => String::new(),
        pairs => {
            let each: Vec<String> =
                pairs.iter().map(|p| format!("{} {} or {}", p.attribute, p.from, p.to)).collect();
            format!(" In place of these, values that were named: {}.", each.join("; "))
        }
    };
    format!(
        "Two typical values: any two of the 10%, 25%, 50%, 75% and 90% quantiles of a number and a record’s own value; any two \
         levels of a category.{named}"
    )
}

const FILES: &str = "This page, release.json and model.json beside it were made to be published. The folder “private” next to \
                     their folder (the ledger, its key, what was measured, remarks about the data) is for the owner of the \
                     data alone.";

/// How the noise was made.
fn mechanism(r: &Release) -> String {
    let exact =
        "The noise is exact: no floating-point artefact tells one coefficient from another (Mironov 2012).";
    let (name, grid, generator) =
        (format::sentence(&r.mechanism.name), power_of_two(r.mechanism.grid), &r.mechanism.generator);
    match &r.mechanism.shape {
        None => format!(
            "{name} It is added to the coefficients of columns in public units, x̃ = (x − centre)/unit, where they lie on multiples \
             of {grid}; what is published are the same coefficients in original units, so their steps depend on σ and the public \
             units alone. Randomness from {generator}. {exact}"
        ),
        Some(shape) => {
            let source = match &shape.source {
                Source::Table { .. } => {
                    "The shape comes from a public table, and says nothing about these records."
                }
                Source::Bounds => {
                    "The shape comes from public bounds of the columns, and says nothing about the records."
                }
                Source::Nowhere => "It is the same on every coefficient.",
                // No release has one.
                Source::Records => "The shape was read off the records.",
            };
            let contrasts = match r.subject.family {
                ModelKind::Linear
                | ModelKind::Logistic
                | ModelKind::Poisson
                | ModelKind::Gamma
                | ModelKind::Tweedie(_)
                | ModelKind::SquaredHinge
                | ModelKind::Huber(_) => "",
                ModelKind::Softmax => {
                    " It is the noise on contrasts of the classes, each against the mean of those before it and of length one: the \
                     coefficients of all classes sum to zero in every column, with noise or without."
                }
            };
            let made = match r.mechanism.is_isotropic() {
                true => {
                    "It is isotropic, as large as its targets ask; its factor F, a multiple of the identity, is in model.json,"
                }
                false => "Its covariance Σ = FFᵀ was made for its targets; F is in model.json,",
            };
            format!(
                "{name} {made} for columns in public units, x̃ = (x − \
                 centre)/unit.{contrasts} Coordinates F⁻¹w lie on multiples of {grid} with independent noise of standard deviation one; what \
                 is published are the same coefficients in original units, so the points they lie on follow from F and the \
                 public units. {source} Randomness from {generator}. {exact}"
            )
        }
    }
}

fn coefficients(r: &Release) -> Html {
    let mut all: Vec<(&String, f64)> = r.coefficients.iter().map(|(name, value)| (name, *value)).collect();
    let most = if all.len() > 2 * SHOWN { SHOWN } else { all.len() };
    if most < all.len() {
        all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    }
    let (shown, others) = all.split_at(most);
    let rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|(name, value)| {
            let mut row = vec![Cell::name(name), Cell::sorted(format::number(*value), *value)];
            row.extend(match r.mechanism.units.get(*name) {
                Some(u) => [u.unit, u.centre].map(|x| Cell::sorted(format::setting(x), x)),
                None => [(); 2].map(|()| Cell::text("")),
            });
            row.extend(match r.precision.get(*name) {
                Some(p) => [
                    Cell::sorted(format::number(p.noise_error), p.noise_error),
                    Cell::sorted(format!("{} – {}", format::number(p.low), format::number(p.high)), p.low),
                    Cell::sorted(format::number(p.p_value), p.p_value),
                ],
                None => [(); 3].map(|()| Cell::text("")),
            });
            row
        })
        .collect();
    let heads = [
        text_column("column"),
        numbers("coefficient"),
        numbers("unit"),
        numbers("centre"),
        numbers("sd of its noise"),
        numbers("95% interval"),
        numbers("p"),
    ];
    let lines = others.iter().map(|(name, value)| format!("{name}  {}", format::number(*value)));
    let body = table("sortable filterable", "Released coefficients", &heads, &rows).and(rest(
        "coefficients",
        "Smaller than those above, largest first.",
        lines,
    ));
    let note = "Rounded here; all digits are in model.json. Of the columns in their original units; an indicator such as race=white is 1 where it applies and 0 elsewhere. \
                Intervals hold the coefficient that was fitted, before its noise, in 95% of releases, and p is for the hypothesis that \
                it is zero: they account for the noise, which is public. How far the fitted coefficient is from that of the \
                population is in the owner’s copy alone.";
    card("coefficients", "Released coefficients", &[Claim::Measured], note, body)
}

/// The grid is a power of two, and reads best as one.
fn power_of_two(x: f64) -> String {
    let power = x.log2();
    if power.fract() == 0.0 && power.abs() < 1100.0 {
        return format!("2{} = {}", format::superscript(power as i32), format::setting(x));
    }
    format::setting(x)
}
