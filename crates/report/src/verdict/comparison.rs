//! The verdict on a comparison: whether a result is worse than the reference. The box has the worst colour of the results
//! that are compared with it, as their own pages have it: no comparison is calmer than what it compares. A number that decides a
//! colour and got worse keeps it from being green, and what was demanded and does not hold makes it red.

use super::{Colour, Verdict, plain, strong};
use crate::document::comparison::{Change, Comparison};
use crate::format;

fn colour(c: &Comparison) -> Colour {
    let worst = c.others().map(|(_, r)| r.colour).max().unwrap_or(Colour::Amber);
    let deciding = c.sections.first().map_or(&[][..], |s| &s.rows);
    let is_worse = deciding.iter().any(|row| (1..c.results.len()).any(|i| row.change(i) == Change::Worse));
    match (c.unmet().next().is_some(), is_worse) {
        (true, _) => Colour::Red,
        (false, true) => worst.max(Colour::Amber),
        (false, false) => worst,
    }
}

/// The verdict on a comparison.
pub fn of_comparison(c: &Comparison) -> Verdict {
    let colour = colour(c);
    let reference = c.reference().map_or("", |r| r.name.as_str());
    let regressions = c.regressions().len() as u64;
    let darker = c.others().any(|(i, _)| c.is_colour_worse(i));
    let headline = match (darker, regressions) {
        (true, _) => format!("Worse than {reference}"),
        (false, 0) => format!("No number is worse than in {reference}"),
        (false, n) => format!("{} worse than in {reference}", format::counted(n, "number")),
    };
    let mut first = vec![];
    for (i, result) in c.others() {
        let before = c.reference().map_or("", |r| r.colour.name());
        let worse = c.regressions().iter().filter(|r| r.result == i).count() as u64;
        first.push(strong(result.name.clone()));
        first.push(plain(match before == result.colour.name() {
            true => format!(" stays {before}"),
            false => format!(" goes from {before} to {}", result.colour.name()),
        }));
        first.push(plain(format!(": {} got worse. ", format::counted(worse, "number"))));
    }
    let mut sentences = vec![first];
    sentences.extend(c.records.iter().map(|r| {
        let name = c.results.get(r.result).map_or("", |r| r.name.as_str());
        vec![
            plain(format!("Of {} in both, {name} gives more away of ", format::counted(r.matched, "record"))),
            strong(format::count(r.worse)),
            plain(" and less of "),
            strong(format::count(r.better)),
            plain(format!("; {} new, {} gone.", format::count(r.new), format::count(r.gone))),
        ]
    }));
    let unmet: Vec<&str> = c.unmet().collect();
    if !unmet.is_empty() {
        sentences.push(vec![strong("A demand is not met: "), plain(format!("{}.", unmet.join("; ")))]);
    }
    Verdict { colour, headline, sentences, grounds: vec![] }
}
