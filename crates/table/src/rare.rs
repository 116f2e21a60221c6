//! Rare levels: a level that few records have says that somebody has it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What rare levels are merged into.
pub(crate) const OTHER: &str = "other";

/// What became of the levels of a column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Merged {
    /// Levels and counts, [`OTHER`] among them.
    pub(crate) levels: BTreeMap<Box<str>, u64>,
    /// Levels that were merged.
    pub(crate) count: usize,
    /// Training rows that had one of them.
    pub(crate) rows: u64,
}

/// Merges levels that fewer than `min_count` training rows have into [`OTHER`], and then the rarest of those left until
/// `other` has that many too; `None` where no level is rare. Held-out levels that training does not have are rare.
pub(crate) fn merged(levels: &BTreeMap<Box<str>, u64>, min_count: u64) -> Option<Merged> {
    let mut by_count: Vec<(u64, &str)> = levels.iter().map(|(l, n)| (*n, l.as_ref())).collect();
    by_count.sort_unstable();
    let rare = by_count.iter().take_while(|(n, _)| *n < min_count).count();
    if rare == 0 {
        return None;
    }
    let own = levels.get(OTHER).copied().unwrap_or(0);
    let (mut count, mut rows, mut other) = (0, 0, own);
    let mut kept = levels.clone();
    for (i, (n, level)) in by_count.into_iter().enumerate() {
        if i >= rare && other >= min_count {
            break;
        }
        if level == OTHER {
            continue;
        }
        kept.remove(level);
        (count, rows, other) = (count + 1, rows + n, other + n);
    }
    // Nothing but `other` itself was rare, and all else has gone into it or there was nothing else.
    kept.insert(OTHER.into(), other);
    (count > 0).then_some(Merged { levels: kept, count, rows })
}

/// More levels than this are not looked at pair by pair.
const MOST_PAIRED: usize = 60;

/// Levels whose listing one row decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HangingLevels {
    /// Those that would be listed, or would not be, if one row had another level.
    pub levels: Vec<String>,
    /// A level that such a row has.
    pub from: String,
    /// The level that it would have instead.
    pub to: String,
}

/// The levels by which the list, after merging, would be another one if one row had another of the levels: who knows the
/// others then sees from the list alone what that row has.
pub(crate) fn hanging(levels: &BTreeMap<Box<str>, u64>, min_count: u64) -> Option<HangingLevels> {
    if levels.len() > MOST_PAIRED {
        // Safe where no level is rare, nor would be with one row fewer.
        let rare: Vec<String> =
            levels.iter().filter(|(_, n)| **n <= min_count.max(1)).map(|(l, _)| l.to_string()).collect();
        let (from, to) = (rare.first()?.clone(), levels.iter().max_by_key(|(_, n)| **n)?.0.to_string());
        return Some(HangingLevels { levels: rare, from, to });
    }
    let listed = |levels: &BTreeMap<Box<str>, u64>| -> Vec<Box<str>> {
        let of = merged(levels, min_count).map_or_else(|| levels.clone(), |m| m.levels);
        of.into_keys().collect()
    };
    let now = listed(levels);
    let mut changed = BTreeSet::new();
    let mut move_of: Option<(u64, String, String)> = None;
    for (from, n) in levels.iter().filter(|(_, n)| **n > 0) {
        for to in levels.keys().filter(|to| *to != from) {
            let mut moved = levels.clone();
            if *n == 1 {
                moved.remove(from);
            } else {
                moved.insert(from.clone(), n - 1);
            }
            *moved.entry(to.clone()).or_insert(0) += 1;
            let then = listed(&moved);
            let gone = now.iter().filter(|l| !then.contains(l));
            let added = then.iter().filter(|l| !now.contains(l));
            let differ: Vec<String> =
                gone.chain(added).filter(|l| l.as_ref() != OTHER).map(|l| l.to_string()).collect();
            if then == now {
                continue;
            }
            // The rarest level that a row can leave says best whose row it is.
            if move_of.as_ref().is_none_or(|(least, ..)| *n < *least) {
                move_of = Some((*n, from.to_string(), to.to_string()));
            }
            changed.extend(differ);
        }
    }
    let (_, from, to) = move_of?;
    Some(HangingLevels { levels: changed.into_iter().collect(), from, to })
}

/// Counts that are tried: above, a merged list says little of the data, and a person should give the levels.
const MOST_TRIED: u64 = 200;

/// A number of rows that levels of all these columns must have, above `min_count`, so that no list hangs on one row: the least of
/// those that no level has, nor has but for one row, and that leaves every column a level of its own.
pub(crate) fn settled_at<'a>(
    columns: impl Iterator<Item = &'a BTreeMap<Box<str>, u64>> + Clone,
    min_count: u64,
) -> Option<u64> {
    let at_edge = |m: u64| columns.clone().any(|levels| levels.values().any(|n| *n == m || n + 1 == m));
    let mut tried = (min_count + 1..=MOST_TRIED).filter(|m| !at_edge(*m));
    let settles = |levels: &BTreeMap<Box<str>, u64>, m: u64| {
        levels.values().any(|n| *n >= m) && hanging(levels, m).is_none()
    };
    tried.find(|m| columns.clone().all(|levels| settles(levels, *m)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(levels: &[(&str, u64)]) -> BTreeMap<Box<str>, u64> {
        levels.iter().map(|(l, n)| ((*l).into(), *n)).collect()
    }

    #[test]
    fn rare_levels_meet_in_other() {
        let m = merged(&counts(&[("a", 50), ("b", 9), ("c", 3), ("d", 10)]), 10).unwrap();
        assert_eq!((m.levels, m.count, m.rows), (counts(&[("a", 50), ("d", 10), ("other", 12)]), 2, 12));
        assert_eq!(merged(&counts(&[("a", 50), ("d", 10)]), 10), None);
        // One rare record alone would still be seen: the rarest of the others keeps it company.
        let m = merged(&counts(&[("a", 50), ("b", 1), ("d", 10)]), 10).unwrap();
        assert_eq!((m.levels, m.count), (counts(&[("a", 50), ("other", 11)]), 2));
        let m = merged(&counts(&[("other", 2), ("b", 1), ("d", 10)]), 3).unwrap();
        assert_eq!((m.levels, m.count, m.rows), (counts(&[("d", 10), ("other", 3)]), 1, 1));
        let m = merged(&counts(&[("a", 1), ("b", 1)]), 10).unwrap();
        assert_eq!(m.levels, counts(&[("other", 2)]));
        assert_eq!(merged(&counts(&[("other", 2)]), 10), None);
    }

    #[test]
    fn a_list_that_one_row_decides_is_noticed() {
        for (levels, min, hangs) in [
            (&[("u", 40), ("v", 42), ("w", 37)][..], 10, false),
            // One rare row pulls the rarest level into `other`.
            (&[("u", 40), ("v", 42), ("w", 36), ("z", 1)], 10, true),
            // One row more would list r, one fewer would merge q.
            (&[("u", 40), ("v", 42), ("r", 9), ("q", 8), ("p", 5)], 10, true),
            (&[("u", 40), ("v", 42), ("q", 10)], 10, true),
            // Far from every edge.
            (&[("u", 40), ("v", 42), ("q", 8), ("p", 7)], 10, false),
            (&[("u", 40), ("z", 1)], 0, true),
            (&[("u", 40), ("z", 2)], 0, false),
        ] {
            assert_eq!(hanging(&counts(levels), min).is_some(), hangs, "{levels:?}");
        }
        let of = |levels: &[(&str, u64)]| hanging(&counts(levels), 10).unwrap();
        let just = of(&[("u", 40), ("v", 42), ("q", 10)]);
        // with a row fewer q would be merged, and the rarest of the others would keep it company
        assert_eq!((just.levels, just.from), (vec!["q".to_owned(), "u".into()], "q".into()));
        let rare = of(&[("u", 40), ("v", 42), ("w", 36), ("z", 1)]);
        // z itself is listed neither way
        assert_eq!((rare.levels, rare.from), (vec!["w".to_owned()], "z".into()));
    }

    #[test]
    fn a_count_at_which_no_list_hangs_is_the_least_one() {
        let [first, second] = [
            counts(&[("u", 400), ("v", 420), ("q", 10), ("p", 7)]),
            counts(&[("a", 500), ("b", 300), ("c", 20), ("d", 12), ("e", 9)]),
        ];
        let both = [&first, &second];
        let at = settled_at(both.into_iter(), 10).unwrap();
        // 11 is at the edge of q, 12 and 13 at that of d.
        assert_eq!(at, 14);
        assert!(both.iter().all(|levels| hanging(levels, at).is_none()));
        assert_eq!(settled_at([&counts(&[("u", 3), ("v", 2)])].into_iter(), 1), None);
    }

    proptest! {
        #[test]
        fn no_rare_level_is_left_and_no_row_is_lost(
            sizes in prop::collection::vec(1_u64..30, 1..12), min in 0_u64..20, with_other: bool,
        ) {
            let mut levels: BTreeMap<Box<str>, u64> =
                sizes.iter().enumerate().map(|(i, n)| (format!("l{i}").into(), *n)).collect();
            if with_other {
                levels.insert(OTHER.into(), 4);
            }
            let total: u64 = levels.values().sum();
            let after = merged(&levels, min).map_or(levels, |m| m.levels);
            prop_assert_eq!(after.values().sum::<u64>(), total);
            prop_assert!(after.len() == 1 || after.values().all(|n| *n >= min), "{:?}", after);
        }
    }
}
