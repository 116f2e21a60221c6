//! The numbers of a table or figure of a paper that was made again.

use super::numbers::Numbers;
use leakscope_report::Reproduction;
use leakscope_report::comparison::Form;

/// How far ours are from the published ones, which statements hold, and our numbers themselves.
pub(super) fn reproduction(r: &Reproduction) -> Vec<Numbers> {
    let mut held = Numbers::new("Statements of the paper", "How many of them hold here.");
    held.shield("statements that hold", Form::Count, r.claims.iter().filter(|c| c.holds).count() as f64);
    let mut apart = Numbers::new(
        "Beside the paper",
        "How far ours are from the numbers that it prints; farther is worse.",
    );
    let mut ours = Numbers::new("Our numbers", "As they came out: neither better nor worse by themselves.");
    for row in &r.rows {
        // Made-up data are not what the paper's numbers are of.
        let paper = row.paper.filter(|_| !r.synthetic);
        apart.leak(row.name.as_str(), Form::Number, paper.map(|paper| (row.ours - paper).abs()));
        ours.setting(row.name.as_str(), Form::Number, row.ours);
    }
    vec![held, apart, ours]
}

#[cfg(test)]
mod tests {
    use super::*;
    use leakscope_report::comparison::Worse;
    use leakscope_report::reproduction::{Claim, Row, SCHEMA};

    #[test]
    fn farther_from_the_paper_is_worse_and_made_up_data_are_not_held_against_it() {
        let mut r = Reproduction {
            schema: SCHEMA.into(),
            leakscope: String::new(),
            created: String::new(),
            name: "x".into(),
            title: "x".into(),
            source: "x".into(),
            synthetic: false,
            data: vec![],
            rows: vec![Row::printed("a", 0.5, 1, 0.75), Row::ours("b", 3.0)],
            claims: vec![Claim::new("c", true, "d"), Claim::new("e", false, "f")],
            method: vec![],
            figures: vec![],
            seed: 1,
            seconds: 1.0,
        };
        let [held, apart, ours] = &reproduction(&r)[..] else { panic!("three parts") };
        assert_eq!((held.entries[0].value.value, held.entries[0].worse), (1.0, Worse::Down));
        assert_eq!((apart.entries.len(), apart.entries[0].value.value), (1, 0.25));
        assert_eq!((apart.entries[0].worse, ours.entries.len()), (Worse::Up, 2));
        r.synthetic = true;
        assert!(reproduction(&r)[1].entries.is_empty());
        // It is read back as it was written.
        let text = leakscope_report::document(&r);
        let back: Reproduction = serde_json::from_str(&text).unwrap();
        assert_eq!(leakscope_report::document(&back), text);
    }
}
