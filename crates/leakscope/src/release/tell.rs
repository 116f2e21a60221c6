//! How often two values are told apart by a release, and by all releases of the same data: exact for the owner, rounded up to
//! a public grid for the statement.
//!
//! The model is fitted with either value in place, in public units and with the noise of the release; a value under which a
//! rounded unit would have been another counts as told for certain, and so does a level that would not have been listed with one
//! record fewer. δ² of independent releases adds up, so the ledger keeps the δ of each. A balanced model is balanced
//! and fitted anew for every record and value, where there is time for that; elsewhere η stands in, and no page is green.

use super::fitted::{Balanced, Fitted, InPublicUnits, min_level_count};
use super::ledger::{Entry, Line};
use crate::Result;
use crate::failure::explain;
use crate::model::penalty;
use crate::request::{Pair, Request};
use crate::telling::{
    self, Answer, BalancedModel, Subject, TYPICAL, candidates, label_candidates, target_spread,
};
use leakscope_core::fisher::{Directions, Geometry, Records, Release as NoiseRelease};
use leakscope_core::glm::Minimiser;
use leakscope_core::rows::{Block, Rows};
use leakscope_core::special::normal_cdf;
use leakscope_core::tell::{Noise, any_level, two_values};
use leakscope_report::release::{Ceiling, Counting, Means, PublicPair, Stated};
use leakscope_report::tell::{self as report, Shows, Tell};
use leakscope_report::verdict::{Success, noise_to_hide};
use leakscope_table::{Attribute, Class, Dataset, Encoding, HangingLevels, Kind, Origin, TargetCoding};
use std::collections::{BTreeMap, BTreeSet};

/// Probabilities that are published: rounded up to one of these, or to the limit that the owner set.
const GRID: [f64; 13] = [0.51, 0.53, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0];

/// What two values of each attribute are to this release.
pub(super) struct Distances {
    /// The owner's table.
    pub(super) tell: Option<Tell>,
    lines: BTreeMap<String, Line>,
    /// Whether every attribute, and a secret label, was tried.
    complete: bool,
}

impl Distances {
    /// What the ledger keeps, where it is about every attribute.
    pub(super) fn ledger_lines(&self) -> Option<BTreeMap<String, Line>> {
        self.complete.then(|| self.lines.clone())
    }
}

/// Tries two values of every attribute, and of a secret label, under the noise of the release.
pub(super) fn distances(request: &Request, fitted: &Fitted, noise: &Noise) -> Result<Distances> {
    let Fitted { loaded, units, .. } = fitted;
    let rows = units.rows(&loaded.rows);
    // One release is told about here, whatever an audit would be asked.
    let once = Request { releases: 1, ..request.clone() };
    let subjects = subjects(&once, &loaded.encoding);
    let rank = |subjects: &mut Vec<Subject<'_>>| ranked(&once, fitted, subjects);
    let none = Distances { tell: None, lines: BTreeMap::new(), complete: false };
    let (mut answers, mut tell) = match (&fitted.in_units, &fitted.balancing) {
        (Some(InPublicUnits::Glm(fit)), _) => {
            let model = telling::Model { rows: &rows, fit: (fit, units), noise };
            telling::tried(&once, &loaded.rows, (subjects, rank), &model)?
        }
        (Some(InPublicUnits::Softmax(fit)), _) => {
            let model = telling::ModelOfClasses { rows: &rows, fit: (fit, units), noise };
            telling::tried_softmax(&once, &loaded.rows, subjects, &model)?
        }
        (None, Some(Balanced { options, iterations, .. })) => {
            let balanced = BalancedModel {
                rows: &rows,
                units,
                model: (request.family, penalty(request)),
                balancing: (options, *iterations),
                noise,
            };
            telling::tried_balanced(&once, &loaded.rows, (subjects, rank), &balanced)?
        }
        (None, None) => return Ok(none),
    };
    count_what_shows(request, &loaded.rows, &mut answers, &mut tell)?;
    let lines = answers.iter().map(|a| (a.inquiry.name.clone(), line(a))).collect();
    let complete = tell.left_out.is_empty();
    Ok(Distances { tell: Some(tell), lines, complete })
}

fn line(answer: &Answer) -> Line {
    let distance = answer.distance;
    Line { values: answer.inquiry.identity(), distance: distance.is_finite().then_some(distance) }
}

/// What shows without any coefficient: a list of levels that one record decides, a class that just enough records have, a
/// column that is constant but for one record and would be refused without it, a label whose coding hangs on one record. Who
/// knows the others sees it from what is published, or from there being a release at all.
fn count_what_shows(
    request: &Request,
    rows: &Dataset,
    answers: &mut [Answer],
    tell: &mut Tell,
) -> Result<()> {
    let (encoding, least) = (rows.encoding(), min_level_count(request));
    let mut alone = telling::singular_values(rows)?;
    let of_label = alone.pop().flatten();
    for answer in answers {
        let name = answer.inquiry.name.as_str();
        let shown = if answer.inquiry.label {
            match (listed_class(encoding, least), &encoding.target.coding, of_label.clone()) {
                (Some(class), ..) => ListShows::of_class(rows, class, &answer.inquiry.values)?,
                // With two values left it would be coded as two classes.
                (None, TargetCoding::Number, Some((_, record))) => ListShows::of_record(record),
                (None, ..) => continue,
            }
        } else {
            let Some(a) = encoding.attributes.iter().find(|a| a.name == name) else { continue };
            match (a.kind, &a.levels_hang_on_one) {
                (Kind::Category, Some(hanging)) => ListShows::of_levels(rows, a, hanging)?,
                (Kind::Category, None) => continue,
                (Kind::Number, _) => match alone.get(a.columns.start).cloned().flatten() {
                    Some((2, record)) => ListShows::of_record(record),
                    Some(_) | None => continue,
                },
            }
        };
        answer.distance = f64::INFINITY;
        let same = |t: &&mut report::ValuePair| t.attribute == name && t.label == answer.inquiry.label;
        if let Some(told) = tell.attributes.iter_mut().find(same) {
            (told.worst, told.distance, told.at_least, told.shows) = (1.0, None, None, Some(Shows::Levels));
            told.worst_record = shown.record;
            told.levels_shown = shown.levels;
            if let Some([from, to]) = shown.pair {
                (told.from, told.to) = (from, to);
            }
            told.among_all.iter_mut().for_each(|all| all.worst = 1.0);
        }
    }
    tell.attributes.sort_by(|a, b| b.worst.total_cmp(&a.worst));
    Ok(())
}

/// Which record shows by what is listed, with which values.
struct ListShows {
    /// Its id; of several the first.
    record: String,
    /// What it has, and what it would have.
    pair: Option<[String; 2]>,
    /// Levels that would be listed or not.
    levels: Vec<String>,
}

/// Levels that are named where more of them hang on one record.
const NAMED_LEVELS: usize = 5;

impl ListShows {
    fn of_record(record: String) -> Self {
        Self { record, pair: None, levels: vec![] }
    }

    fn of_class(rows: &Dataset, class: &Class, classes: &[String]) -> Result<Self> {
        let record = telling::first_record(rows, |_, y| y == class.code)?.unwrap_or_default();
        let other = classes.iter().find(|c| **c != class.name).cloned();
        let pair = other.map(|other| [class.name.clone(), other]);
        Ok(Self { record, pair, levels: vec![class.name.clone()] })
    }

    fn of_levels(rows: &Dataset, a: &Attribute, hanging: &HangingLevels) -> Result<Self> {
        let HangingLevels { levels, from, to } = hanging.clone();
        // Where it was merged into others, rows are not told from one another any more.
        let kept = rows.encoding().one_hot.places(a.levels.len());
        let place = a.levels.iter().position(|l| *l == from);
        let record = match place {
            None => None,
            Some(level) => telling::first_record(rows, |x, _| {
                let mut columns = kept.clone().zip(&x[a.columns.clone()]);
                match kept.contains(&level) {
                    true => columns.any(|(k, v)| k == level && *v != 0.0),
                    // The level without a column.
                    false => columns.all(|(_, v)| *v == 0.0),
                }
            })?,
        };
        let levels = levels.into_iter().take(NAMED_LEVELS).collect();
        Ok(Self { record: record.unwrap_or_default(), pair: Some([from, to]), levels })
    }
}

/// The class that just enough records have: with one fewer there would be no release.
fn listed_class(encoding: &Encoding, least: u64) -> Option<&Class> {
    let (classes, needed): (Vec<&Class>, u64) = match &encoding.target.coding {
        TargetCoding::TwoClass { low, high } => (vec![low, high], 1),
        TargetCoding::Classes(classes) => (classes.iter().collect(), 2),
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => (vec![], 0),
    };
    let least = if encoding.target.origin == Origin::ReadOffData { least.max(needed) } else { needed };
    classes.into_iter().find(|c| c.count == least)
}

/// Says how exposed the subjects are by η, and puts the most exposed first: where there is no time for all.
fn ranked(request: &Request, fitted: &Fitted, subjects: &mut [Subject<'_>]) -> Result<()> {
    let Fitted { loaded, units, fit: Minimiser::Glm(fit), .. } = fitted else {
        // Classes have one coefficient each for a column: nothing here says which attribute comes first.
        return Ok(());
    };
    let encoding = &loaded.encoding;
    let p = fit.w.len();
    let columns = subjects.iter().filter_map(|s| s.attribute);
    let directions: Vec<Directions> = columns.map(|a| Directions::columns(a.columns.clone(), p)).collect();
    let noise = NoiseRelease { sigma: 1.0, releases: 1, label_secret: request.label_secret };
    let geometry = Geometry::new(fit, &directions, noise).map_err(|e| explain(e, encoding, request.l2))?;
    let m = directions.len();
    let encoded = fitted.counting == Counting::Exact || fitted.counting == Counting::Bounded;
    let mut largest = vec![0.0_f64; m];
    let start = || (vec![0.0_f64; m], Records::default());
    let step = |(most, records): &mut (Vec<f64>, Records), block: &Block| {
        geometry.records(block, records);
        for of_record in records.attribute_eta.chunks_exact(m.max(1)) {
            most.iter_mut().zip(of_record).for_each(|(most, eta)| *most = most.max(*eta));
        }
        Ok(())
    };
    let merge = |(part, _): (Vec<f64>, Records)| {
        largest.iter_mut().zip(part).for_each(|(all, part)| *all = all.max(part));
        Ok(())
    };
    match encoded {
        true => loaded.rows.as_rows().fold(start, step, merge)?,
        false => units.rows(&loaded.rows).as_rows().fold(start, step, merge)?,
    }
    let mut each = largest.into_iter();
    for s in subjects.iter_mut() {
        // A label is what most models give away.
        s.exposure = s.attribute.map_or(f64::INFINITY, |a| {
            let scale = if encoded { a.scale } else { units.public()[a.columns.start].unit };
            let distance = match a.kind {
                Kind::Number => TYPICAL * a.population_sd / scale,
                Kind::Category => std::f64::consts::SQRT_2 / a.scale,
            };
            distance * each.next().unwrap_or(0.0)
        });
    }
    subjects.sort_by(|a, b| b.chosen.cmp(&a.chosen).then(b.exposure.total_cmp(&a.exposure)));
    Ok(())
}

/// Every attribute with columns, given values first, and a secret label.
fn subjects<'a>(request: &Request, encoding: &'a Encoding) -> Vec<Subject<'a>> {
    let chosen = |name: &str| request.tell.iter().any(|p| p.attribute == name);
    let mut all: Vec<Subject<'a>> = encoding
        .attributes
        .iter()
        .filter(|a| !a.columns.is_empty())
        .map(|a| {
            let chosen = chosen(&a.name);
            let candidates = candidates(a, chosen);
            Subject { attribute: Some(a), name: &a.name, exposure: 0.0, candidates, chosen }
        })
        .collect();
    if request.label_secret {
        let name = encoding.target.name.as_str();
        // First: a label is what most models give away.
        let chosen = chosen(name);
        let candidates = label_candidates(&encoding.target.coding, chosen);
        all.insert(0, Subject { attribute: None, name, exposure: 0.0, candidates, chosen });
    }
    all.sort_by_key(|s| !s.chosen);
    all
}

/// What may be said of this release and all before it.
pub(super) fn stated(
    request: &Request,
    fitted: &Fitted,
    distances: &Distances,
    earlier: &[Entry],
    eta_of_all: f64,
) -> Stated {
    let encoding = &fitted.loaded.encoding;
    let (target, weights) = (encoding.target.name.as_str(), encoding.weights.as_deref());
    let together =
        distances.complete.then(|| composed(&distances.lines, earlier, (target, weights))).flatten();
    let worst_of = |label: bool| -> Option<f64> {
        let lines = together.as_ref()?.iter().filter(|(name, _)| (name.as_str() == target) == label);
        Some(lines.map(|(_, (levels, delta))| telling(*levels, *delta)).fold(0.5, f64::max))
    };
    let protect_at = request.protect_at;
    let ceiling = |exact: Option<f64>, about: f64, own: f64| match exact {
        Some(p) => Ceiling { at_most: rounded(p, protect_at), by: Means::Refits },
        // What refits of this release alone say is never calmed by η.
        None => Ceiling { at_most: rounded(about.max(own), protect_at), by: Means::Eta },
    };
    let own_of = |label: bool| {
        let lines = distances.lines.iter().filter(|(name, _)| (name.as_str() == target) == label);
        let delta = |line: &Line| line.distance.unwrap_or(f64::INFINITY);
        lines.map(|(_, line)| telling(line.values.len(), delta(line))).fold(0.5, f64::max)
    };
    let widest = widest(fitted);
    let label = distance_of_label(encoding);
    Stated {
        attributes: widest.map(|d| ceiling(worst_of(false), normal_cdf(0.5 * d * eta_of_all), own_of(false))),
        label: request
            .label_secret
            .then(|| ceiling(worst_of(true), normal_cdf(0.5 * label * eta_of_all), own_of(true))),
        public_pairs: request.tell.iter().map(given_pair).collect(),
        protect_at,
        more_noise: match &together {
            Some(all) => more_noise(all, &distances.lines, protect_at),
            None if earlier.is_empty() => {
                let apart = widest.into_iter().chain(request.label_secret.then_some(label));
                noise_by_eta(apart.map(|d| d * eta_of_all), &distances.lines, protect_at)
            }
            // What earlier ones told is not known value by value.
            None => None,
        },
        withdraw_first: together.map(|_| too_much(earlier, protect_at)).unwrap_or_default(),
        kept_back: false,
    }
}

/// How many times the noise of a first release brings all values within the limit, as η estimates it: distances of values that were not
/// tried, and those of values that were. None where it is enough, or no noise is.
fn noise_by_eta(
    apart: impl Iterator<Item = f64>,
    lines: &BTreeMap<String, Line>,
    protect_at: f64,
) -> Option<f64> {
    let mut most = 1.0_f64;
    for distance in apart.filter(|d| *d > 0.0) {
        most = most.max(noise_to_hide(distance, 2, protect_at)?);
    }
    for line in lines.values() {
        most = most.max(noise_to_hide(line.distance?, line.values.len(), protect_at)?);
    }
    (most > 1.0 && most.is_finite()).then_some(most)
}

/// How many times the noise of this release brings all values within the limit, what earlier ones told included; none where it is
/// enough, or no noise is.
fn more_noise(
    together: &BTreeMap<String, (usize, f64)>,
    lines: &BTreeMap<String, Line>,
    protect_at: f64,
) -> Option<f64> {
    let mut most = 1.0_f64;
    for (name, (levels, all)) in together {
        let own = match lines.get(name) {
            Some(line) => line.distance?,
            None => 0.0,
        };
        // The distance that is just within the limit, less what was told before.
        let limit = 1.0 / noise_to_hide(1.0, *levels, protect_at)?;
        let left = limit * limit - (all * all - own * own).max(0.0);
        if left <= 0.0 {
            return None;
        }
        most = most.max(own / left.sqrt());
    }
    (most > 1.0).then_some(most)
}

/// Earlier releases without which some noise on this one would hold the limit, the one that tells most first; none where some
/// noise does with them.
fn too_much(earlier: &[Entry], protect_at: f64) -> Vec<String> {
    // What a release told of an attribute, squared and over the square of what is just within the limit; nothing of what it has not.
    let share = |entry: &Entry, name: &String| {
        let Some(line) = entry.told.as_ref().and_then(|told| told.get(name)) else { return 0.0 };
        line.distance
            .and_then(|d| noise_to_hide(d, line.values.len(), protect_at))
            .map_or(f64::INFINITY, |times| times * times)
    };
    let names: BTreeSet<&String> =
        earlier.iter().filter_map(|e| e.told.as_ref()).flat_map(BTreeMap::keys).collect();
    let mut left: Vec<&Entry> = earlier.iter().collect();
    let mut named = vec![];
    loop {
        let sum = |name: &&&String| left.iter().map(|e| share(e, name)).sum::<f64>();
        let Some(name) = names.iter().find(|name| sum(name) >= 1.0) else { return named };
        let most = (0..left.len())
            .max_by(|&a, &b| share(left[a], name).total_cmp(&share(left[b], name)).then(b.cmp(&a)));
        let Some(most) = most else { return named };
        let entry = left.remove(most);
        named.push(entry.folder.clone().unwrap_or_else(|| format!("the release of {}", entry.when)));
    }
}

fn given_pair(pair: &Pair) -> PublicPair {
    let [from, to] = pair.values.clone();
    PublicPair { attribute: pair.attribute.clone(), from, to }
}

/// Values of each attribute and δ over all releases, also of those that earlier ones alone had; nothing where an earlier one does
/// not say, or asked about other values. A model without an attribute tells nothing of it; every model tells of its label, also of one
/// that it takes as public, and of its weights.
fn composed(
    lines: &BTreeMap<String, Line>,
    earlier: &[Entry],
    (target, weights): (&str, Option<&str>),
) -> Option<BTreeMap<String, (usize, f64)>> {
    let now = Some((lines, target, weights));
    let before =
        earlier.iter().map(|e| e.told.as_ref().map(|lines| (lines, e.target.as_str(), e.weights.as_deref())));
    let all: Vec<_> = before.chain([now]).collect::<Option<_>>()?;
    let names: BTreeSet<&String> = all.iter().flat_map(|(lines, ..)| lines.keys()).collect();
    let of_one = |name: &String| {
        let mut latest: Option<&Line> = None;
        let mut square = 0.0;
        for (lines, target, weights) in &all {
            match (lines.get(name), latest) {
                (Some(line), Some(before)) if before.values != line.values => return None,
                (Some(line), _) => {
                    square += line.distance.unwrap_or(f64::INFINITY).powi(2);
                    latest = Some(line);
                }
                (None, _) if name == target || Some(name.as_str()) == *weights => return None,
                (None, _) => {}
            }
        }
        Some((name.clone(), (latest?.values.len(), square.sqrt() * (1.0 + 1e-12))))
    };
    names.into_iter().map(of_one).collect()
}

/// The larger of two values told apart and of all levels named, on the scale of two values.
fn telling(levels: usize, delta: f64) -> f64 {
    let two = two_values(delta, 1).value;
    if levels <= 2 {
        return two;
    }
    let all = Success { success: any_level(levels, delta, 1).value, baseline: 1.0 / levels as f64 };
    two.max(all.told_of_two())
}

/// A probability as it may be published.
fn rounded(p: f64, protect_at: f64) -> f64 {
    let above = GRID.iter().copied().chain([protect_at]).filter(|g| *g >= p);
    above.fold(1.0, f64::min)
}

/// How far two typical values of an attribute are apart at most, in public units; none without attributes.
fn widest(fitted: &Fitted) -> Option<f64> {
    let encoding = &fitted.loaded.encoding;
    let all = encoding.attributes.iter().filter(|a| !a.columns.is_empty()).map(|a| match a.kind {
        Kind::Number => TYPICAL * a.population_sd / fitted.units.public()[a.columns.start].unit,
        // From one level to another two indicators change.
        Kind::Category => std::f64::consts::SQRT_2,
    });
    all.max_by(f64::total_cmp)
}

/// The same of the label, in the units that the model codes it in.
fn distance_of_label(encoding: &Encoding) -> f64 {
    match &encoding.target.coding {
        TargetCoding::TwoClass { low, high } => high.code - low.code,
        TargetCoding::Classes(_) => 1.0,
        // A spread that is not known must not calm anybody.
        TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
            TYPICAL * target_spread(encoding).unwrap_or(f64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_published_on_a_grid_and_never_too_small() {
        for p in [0.5, 0.51, 0.512, 0.58, 0.6, 0.600_001, 0.749, 0.97, 0.999, 1.0] {
            let up = rounded(p, 0.6);
            assert!(up >= p && GRID.contains(&up), "{p} {up}");
            assert!(rounded(p, 0.58) <= up);
        }
        assert_eq!((rounded(0.57, 0.58), rounded(f64::NAN, 0.6)), (0.58, 1.0));
    }

    #[test]
    fn earlier_releases_that_told_too_much_are_named() {
        let line = |distance: Option<f64>| Line { values: vec!["20".to_owned(), "60".to_owned()], distance };
        let of = |d: Option<f64>| BTreeMap::from([("age".to_owned(), line(d))]);
        let entry = |k: usize, d: Option<f64>| Entry {
            folder: Some(format!("release-{k}")),
            told: Some(of(d)),
            ..Entry::default()
        };
        // Φ(d/2) = 0.6 at d = 0.5067.
        let named = |earlier: &[Entry]| too_much(earlier, 0.6);
        assert!(named(&[entry(1, Some(0.5))]).is_empty());
        assert_eq!(named(&[entry(1, Some(0.51))]), ["release-1"]);
        // Each alone leaves room, both together do not: the larger goes.
        assert_eq!(named(&[entry(1, Some(0.3)), entry(2, Some(0.45))]), ["release-2"]);
        assert_eq!(
            named(&[entry(1, Some(0.6)), entry(2, None), entry(3, Some(0.2))]),
            ["release-2", "release-1"]
        );
        // Where one stands alone in the way, no noise is found, and some where none does.
        let times = |earlier: &[Entry]| {
            more_noise(&composed(&of(Some(0.1)), earlier, ("y", None)).unwrap(), &of(Some(0.1)), 0.6)
        };
        assert_eq!(times(&[entry(1, Some(0.51))]), None);
        let k = times(&[entry(1, Some(0.5))]).unwrap();
        assert!(0.5_f64.hypot(0.1 / k) <= 0.5067 && k > 1.0, "{k}");
    }

    #[test]
    fn distances_of_releases_add_up_where_the_same_was_asked() {
        let line = |values: &[&str], distance: Option<f64>| Line {
            values: values.iter().map(|v| (*v).to_owned()).collect(),
            distance,
        };
        let of = |l: Line| BTreeMap::from([("age".to_owned(), l)]);
        let entry = |told: Option<BTreeMap<String, Line>>| Entry { told, ..Entry::default() };
        let now = of(line(&["20", "60"], Some(0.3)));
        let all = composed(&now, &[entry(Some(of(line(&["20", "60"], Some(0.4)))))], ("dose", None)).unwrap();
        assert!((all["age"].1 - 0.5).abs() < 1e-9);
        assert!(composed(&now, &[entry(None)], ("dose", None)).is_none());
        assert!(composed(&now, &[entry(Some(of(line(&["20", "61"], Some(0.4)))))], ("dose", None)).is_none());
        // What only an earlier release had stays told; the label of a model that does not say is not known.
        let before =
            |name: &str| entry(Some(BTreeMap::from([(name.to_owned(), line(&["0", "1"], Some(1.7)))])));
        let kept = composed(&now, &[before("z")], ("dose", None)).unwrap();
        assert!((kept["z"].1 - 1.7).abs() < 1e-9 && (kept["age"].1 - 0.3).abs() < 1e-9);
        assert!(more_noise(&kept, &now, 0.6).is_none());
        let mut labelled = now.clone();
        labelled.insert("dose".into(), line(&["20", "60"], Some(0.1)));
        // A label that was public, and a column of weights, were told of without a number.
        assert!(composed(&labelled, &[before("z")], ("dose", None)).is_some());
        let public = Entry { target: "dose".into(), ..before("z") };
        assert!(composed(&labelled, &[public], ("dose", None)).is_none());
        let weighed = Entry { weights: Some("age".into()), ..before("z") };
        assert!(composed(&now, &[weighed], ("dose", None)).is_none());
        assert!(composed(&now, &[before("z")], ("dose", Some("z"))).is_none());
        let certain = composed(&now, &[entry(Some(of(line(&["20", "60"], None))))], ("dose", None)).unwrap();
        assert_eq!(certain["age"].1, f64::INFINITY);
        assert_eq!((telling(2, f64::INFINITY), telling(5, f64::INFINITY)), (1.0, 1.0));
        assert!((telling(3, 0.0) - 0.5).abs() < 1e-9);
    }
}
