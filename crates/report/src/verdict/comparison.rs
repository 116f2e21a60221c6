//! The verdict on a comparison: whether a result is worse than the reference. The box has the worst colour of the results
//! that are compared with it, as their own pages have it: no comparison is calmer than what it compares. A number that decides a
//! colour and got worse keeps it from being green, and what was demanded and does not hold makes it red.

use super::{Colour, Reservation, Verdict, plain, strong};
use crate::document::comparison::{Change, Comparison};
use crate::format;

/// What the colour rests on: its worst line is the colour.
fn grounds(c: &Comparison) -> Vec<Reservation> {
    let deciding = c.sections.first().map_or(&[][..], |s| &s.rows);
    let is_worse = deciding.iter().any(|row| (1..c.results.len()).any(|i| row.change(i) == Change::Worse));
    let line = |holds: bool, fact, reason, colour| holds.then_some(Reservation { fact, reason, colour });
    let unmet = line(
        c.unmet().next().is_some(),
        "a demand that is not met",
        "What was demanded of the comparison does not hold.",
        Colour::Red,
    );
    let worst = Some(Reservation {
        fact: "the worst colour of what is compared",
        reason: "As its own page has it, which says what decides it: no comparison is calmer than what it compares.",
        colour: c.others().map(|(_, r)| r.colour).max().unwrap_or(Colour::Amber),
    });
    let worse = line(
        is_worse,
        "a number that decides a colour and got worse",
        "It is larger than in the reference, whatever the colours are.",
        Colour::Amber,
    );
    [unmet, worst, worse].into_iter().flatten().collect()
}

fn colour(c: &Comparison) -> Colour {
    grounds(c).iter().map(|r| r.colour).max().unwrap_or(Colour::Amber)
}

/// The verdict on a comparison.
pub fn of_comparison(c: &Comparison) -> Verdict {
    let colour = colour(c);
    let reference = c.reference().map_or("", |r| r.name.as_str());
    let regressions = c.regressions().len() as u64;
    let darker = c.others().any(|(i, _)| c.is_colour_worse(i));
    let calmer = c.reference().is_some_and(|before| c.others().all(|(_, r)| r.colour < before.colour));
    let headline = match (darker, regressions) {
        (true, _) => format!("Worse than {reference}"),
        // The colour first: it is what all numbers together come to.
        (false, n) if calmer => {
            let before = c.reference().map_or("", |r| r.colour.name());
            let after = c.others().map(|(_, r)| r.colour).max().unwrap_or(Colour::Amber).name();
            let but = match n {
                0 => String::new(),
                n => format!(", with {} worse", format::counted(n, "number")),
            };
            format!("From {before} in {reference} to {after}{but}")
        }
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
    Verdict { colour, headline, sentences, grounds: vec![], open: grounds(c) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::comparison::{Compared, Demand, Form, Kind, Row, SCHEMA, Section, Value, Worse};

    fn comparison(colours: [Colour; 2], values: [f64; 2]) -> Comparison {
        let result = |(i, colour): (usize, Colour)| Compared {
            name: ["a", "b"][i].into(),
            file: format!("{i}.json"),
            created: None,
            colour,
            headline: "x".into(),
            eta: None,
            added: None,
        };
        let values = values.map(|value| Some(Value { value, interval: None })).to_vec();
        let row = Row { name: "told".into(), worse: Worse::Up, form: Form::ShareAtMost, values };
        Comparison {
            schema: SCHEMA.into(),
            leakscope: String::new(),
            created: String::new(),
            kind: Kind::Audit,
            results: colours.into_iter().enumerate().map(result).collect(),
            sections: vec![Section {
                title: "What decides the colour".into(),
                about: String::new(),
                named_by_values: false,
                rows: vec![row],
            }],
            records: vec![],
            demands: vec![],
            warnings: vec![],
        }
    }

    #[test]
    fn no_comparison_is_calmer_than_what_it_compares() {
        use Colour::{Amber, Green, Red};
        for a in [Green, Amber, Red] {
            for b in [Green, Amber, Red] {
                let better = of_comparison(&comparison([a, b], [0.6, 0.5]));
                let worse = of_comparison(&comparison([a, b], [0.5, 0.6]));
                assert_eq!((better.colour, worse.colour), (b, b.max(Amber)));
                assert_eq!(worse.headline.starts_with("Worse"), b > a);
                let mut unmet = comparison([a, b], [0.6, 0.5]);
                unmet.demands = vec![Demand { demand: "red".into(), unmet: Some("b is red".into()) }];
                let verdict = of_comparison(&unmet);
                assert!(verdict.colour == Red && verdict.text().contains("b is red"));
            }
        }
        let headline = |colours, values| of_comparison(&comparison(colours, values)).headline;
        assert_eq!(headline([Green, Green], [0.5, 0.5]), "No number is worse than in a");
        assert_eq!(headline([Red, Green], [0.5, 0.6]), "From red in a to green, with 1 number worse");
        assert_eq!(headline([Red, Green], [0.6, 0.5]), "From red in a to green");
    }
}
