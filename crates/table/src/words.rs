//! Words for messages: cells cut to length, and the names that a mistyped one may have meant.

/// A cell for a message: at most 40 characters.
pub(crate) fn truncated(cell: &str) -> String {
    let mut out: String = cell.chars().take(40).collect();
    if out.len() < cell.len() {
        out.push('…');
    }
    out
}

/// A count, thousands separated as pages have them.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The names closest to `name` by edit distance, at most three, ignoring case; far ones are left out.
pub fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let limit = 2 + wanted.chars().count() / 3;
    let mut ranked: Vec<(usize, &str)> =
        names.map(|n| (edit_distance(&wanted, &n.to_lowercase()), n)).filter(|(d, _)| *d <= limit).collect();
    ranked.sort();
    ranked.into_iter().take(3).map(|(_, n)| n.to_string()).collect()
}

/// Names that a message shows of those there are.
const SHOWN: usize = 8;

/// What a message says about a name that is none: those that were perhaps meant, or else those there are, the first few of them.
pub fn known_names<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = meant(name, names.clone());
    if !near.is_empty() {
        return format!("the closest names are {}", quoted(near.iter().map(String::as_str)));
    }
    let more = match (names.clone().count().saturating_sub(SHOWN), names.clone().last()) {
        (0, _) | (_, None) => String::new(),
        // The last says how far they go, and often it is the one that is sought.
        (more, Some(last)) => format!(" and {more} more up to `{}`", truncated(last)),
    };
    format!("they are {}{more}", quoted(names.take(SHOWN)))
}

/// The names that a mistyped one was perhaps meant for. Of a name of one or two letters every other is close by edits, and none is
/// meant.
pub(crate) fn meant<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let letters = name.chars().count();
    let kept = |near: &String| edit_distance(&name.to_lowercase(), &near.to_lowercase()) < letters;
    closest(name, names).into_iter().filter(kept).collect()
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|n| format!("`{}`", truncated(n))).collect::<Vec<_>>().join(", ")
}

/// Levenshtein distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }

    #[test]
    fn closest_names_come_nearest_first_and_far_ones_not_at_all() {
        let names = ["age", "wage", "height", "completely_different"];
        assert_eq!(closest("Aeg", names.into_iter()), ["age", "wage"]);
        assert!(closest("zzzzzzzz", names.into_iter()).is_empty());
    }

    #[test]
    fn names_are_listed_where_none_is_near_but_never_by_the_thousand() {
        let many: Vec<String> = (0..5000).map(|i| format!("gene_{i:04}")).collect();
        let names = || many.iter().map(String::as_str);
        let near = known_names("gene_17", names());
        assert!(near.starts_with("the closest names are `gene_") && near.len() < 100, "{near}");
        let far = known_names("z", names());
        assert!(
            far.starts_with("they are `gene_0000`, ") && far.ends_with(" and 4992 more up to `gene_4999`"),
            "{far}"
        );
        assert_eq!(known_names("zzzzzz", ["c1", "c2"].into_iter()), "they are `c1`, `c2`");
        assert_eq!(known_names("zz", ["a", "b"].into_iter()), "they are `a`, `b`");
    }

    #[test]
    fn long_cells_are_cut() {
        assert_eq!(truncated("short"), "short");
        assert_eq!(truncated(&"é".repeat(50)).chars().count(), 41);
    }
}
