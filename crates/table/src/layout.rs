//! Which columns a pass reads, in which order, and what each is for.

use crate::batch::{Reading, Want};
use crate::column::{Kind, Role, Roles, stands_for_none};
use crate::encoding::{Encoding, Guess};
use crate::notation::Notation;
use crate::public::{Facts, NO_FACTS};
use crate::remark::Remark;
use crate::table::Table;
use crate::{Error, OddCells, Result};

/// The cell columns of every batch of a pass: the features first, then what else is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) wants: Vec<Want>,
    pub(crate) names: Vec<String>,
    pub(crate) roles: Vec<Role>,
    pub(crate) features: usize,
    pub(crate) target: Option<usize>,
    pub(crate) id: Option<usize>,
    pub(crate) weights: Option<usize>,
    pub(crate) group: Option<usize>,
    /// What was given about each; empty where nothing was.
    pub(crate) facts: Vec<Facts>,
    /// What was guessed about the columns.
    pub(crate) remarks: Vec<Remark>,
    /// Guesses that one row decides.
    pub(crate) hang_on_one: Vec<(String, Guess)>,
}

impl Layout {
    /// What was given about a cell column.
    pub(crate) fn facts(&self, i: usize) -> &Facts {
        self.facts.get(i).unwrap_or(&NO_FACTS)
    }

    /// The same without some features, by their places.
    pub(crate) fn without(&self, left_out: &[usize]) -> Result<Self> {
        let (remarks, hang_on_one) = (self.remarks.clone(), self.hang_on_one.clone());
        let mut layout = Self { remarks, hang_on_one, ..Self::default() };
        for i in (0..self.wants.len()).filter(|i| !left_out.contains(i)) {
            layout.wants.push(self.wants[i]);
            layout.names.push(self.names[i].clone());
            layout.roles.push(self.roles[i]);
            layout.facts.push(self.facts(i).clone());
        }
        let at = |role: Role| layout.roles.iter().position(|r| *r == role);
        let features = layout.roles.iter().filter(|r| **r == Role::Feature).count();
        if features == 0 {
            return Err(Error::NoFeatures);
        }
        let (target, id, weights, group) =
            (at(Role::Target), at(Role::Id), at(Role::Weights), at(Role::Group));
        Ok(Self { features, target, id, weights, group, ..layout })
    }

    /// Every column that can be read, as a feature.
    pub(crate) fn of_all(table: &Table) -> Self {
        let mut layout = Self::default();
        for (column, c) in table.columns().iter().enumerate().filter(|(_, c)| c.unsupported.is_none()) {
            let reading = match c.kind {
                Kind::Number => Reading::Number,
                Kind::Category => Reading::Level,
            };
            layout.wants.push(Want { column, reading });
            layout.names.push(c.name.clone());
            layout.roles.push(Role::Feature);
        }
        Self { features: layout.wants.len(), ..layout }
    }

    /// Checks the roles against the table; `facts` are those of every column of the table.
    pub(crate) fn from_roles(table: &Table, roles: &Roles, facts: &[Facts]) -> Result<Self> {
        let target = table.column("target", &roles.target)?;
        let find = |flag, name: &Option<String>| name.as_ref().map(|n| table.column(flag, n)).transpose();
        let id = find("id", &roles.id)?;
        let weights = find("weights", &roles.weights)?;
        let group = find("group", &roles.group)?;
        let all =
            |flag, names: &[String]| names.iter().map(|n| table.column(flag, n)).collect::<Result<Vec<_>>>();
        let drop = all("drop", &roles.drop)?;
        let categorical = all("categorical", &roles.categorical)?;

        let singles = [("target", Some(target)), ("id", id), ("weights", weights)];
        no_conflicts(table, singles, &drop, &categorical)?;
        let mut layout = Self::default();
        let mut push = |column: usize, reading, role| {
            layout.wants.push(Want { column, reading });
            layout.names.push(table.columns()[column].name.clone());
            layout.roles.push(role);
            // A group is read beside the feature: what was given holds for that.
            layout.facts.push(if role == Role::Group { NO_FACTS } else { facts[column].clone() });
            layout.wants.len() - 1
        };
        let own_reading = |column: usize| {
            let number = table.columns()[column].kind == Kind::Number && !categorical.contains(&column);
            if number { Reading::Number } else { Reading::Level }
        };
        let role_of_its_own =
            |c: &usize| *c == target || Some(*c) == id || Some(*c) == weights || drop.contains(c);
        // Row numbers tell nothing, unless somebody says that they do.
        let index = |c: &usize| table.columns()[*c].index && !facts[*c].declared && Some(*c) != group;
        let unassigned = (0..table.columns().len()).filter(|c| !role_of_its_own(c));
        let (left_out, features): (Vec<usize>, Vec<usize>) = unassigned.partition(index);
        let used = features.iter().chain([&target]).chain(&weights);
        let as_numbers: Vec<usize> = used.clone().copied().filter(|c| !categorical.contains(c)).collect();
        no_text_among_numbers(table, &as_numbers)?;
        if let Some(w) = weights
            && table.columns()[w].kind == Kind::Category
        {
            return Err(Error::TextWeights { column: table.columns()[w].name.clone() });
        }
        // Bounds say that there are numbers, as a list of levels says that there are none.
        let guessed = |c: &&usize| !(facts[**c].declared || facts[**c].bounds.is_some());
        let unnamed = left_out.iter().filter(|c| stands_for_none(&table.columns()[**c].name));
        let hanging = used.clone().chain(unnamed).filter(guessed).filter(|c| table.hangs_on_one(**c));
        let hang_on_one = hanging.map(|c| (table.columns()[*c].name.clone(), Guess::Kind)).collect();
        let of_kind = |reading: Reading| used.clone().filter(move |c| own_reading(**c) == reading);
        let (numbers, categories) = (of_kind(Reading::Number), of_kind(Reading::Level));
        let remarks = remarks(table, &left_out, numbers, categories);
        features.iter().for_each(|c| {
            push(*c, own_reading(*c), Role::Feature);
        });
        let target = Some(push(target, own_reading(target), Role::Target));
        let id = id.map(|c| push(c, Reading::Text, Role::Id));
        let weights = weights.map(|c| push(c, Reading::Number, Role::Weights));
        let group = group.map(|c| push(c, Reading::Level, Role::Group));
        if features.is_empty() {
            return Err(Error::NoFeatures);
        }
        Ok(Self { features: features.len(), target, id, weights, group, remarks, hang_on_one, ..layout })
    }

    /// Matches a fitted encoding with a table by name. The features must be there, and the target unless
    /// `target_optional`; an id, weights or groups that are not there are done without.
    pub(crate) fn from_encoding(
        table: &Table,
        encoding: &Encoding,
        target_optional: bool,
        with_id: bool,
    ) -> Result<Self> {
        let mut layout = Self::default();
        let mut push = |name: &str, reading, role, optional: bool| match table.position(name) {
            Some(column) => {
                layout.wants.push(Want { column, reading });
                layout.names.push(name.to_string());
                layout.roles.push(role);
                Ok(Some(layout.wants.len() - 1))
            }
            None if optional => Ok(None),
            None => Err(Error::AbsentColumn { path: table.first_path(), column: name.into() }),
        };
        let reading = |kind| match kind {
            Kind::Number => Reading::Number,
            Kind::Category => Reading::Level,
        };
        for a in &encoding.attributes {
            push(&a.name, reading(a.kind), Role::Feature, false)?;
        }
        let target = &encoding.target;
        let target = push(&target.name, reading(target.kind), Role::Target, target_optional)?;
        let mut optional = |name: Option<&String>, reading, role| match name {
            Some(name) => push(name, reading, role, true),
            None => Ok(None),
        };
        let id = optional(encoding.id.as_ref().filter(|_| with_id), Reading::Text, Role::Id)?;
        let weights = optional(encoding.weights.as_ref(), Reading::Number, Role::Weights)?;
        let group = optional(encoding.group.as_ref().map(|g| &g.name), Reading::Level, Role::Group)?;
        Ok(Self { features: encoding.attributes.len(), target, id, weights, group, ..layout })
    }
}

/// Refuses a column with two roles that exclude one another.
fn no_conflicts(
    table: &Table,
    singles: [(&'static str, Option<usize>); 3],
    drop: &[usize],
    categorical: &[usize],
) -> Result<()> {
    let conflict = |column: usize, first, second| {
        Err(Error::RoleConflict { column: table.columns()[column].name.clone(), first, second })
    };
    for (i, (first, column)) in singles.iter().enumerate() {
        let Some(column) = *column else { continue };
        for (second, other) in &singles[i + 1..] {
            if *other == Some(column) {
                return conflict(column, first, second);
            }
        }
        if drop.contains(&column) {
            return conflict(column, first, "drop");
        }
    }
    match singles[2] {
        (weights, Some(w)) if categorical.contains(&w) => conflict(w, weights, "categorical"),
        (_, Some(_) | None) => Ok(()),
    }
}

/// Refuses cells of text in columns of numbers: one of them must not turn a column into one with a level for every number.
fn no_text_among_numbers(table: &Table, columns: &[usize]) -> Result<()> {
    for &c in columns {
        if let Some((place, value)) = table.comma_cell(c) {
            let column = table.columns()[c].name.clone();
            return Err(Error::DecimalComma { place, column, value: value.into() });
        }
        if let Some((place, value)) = table.odd_cell(c) {
            let column = table.columns()[c].name.clone();
            // All of them at once: whoever declares one missing would meet the next.
            let odd: Vec<usize> = columns.iter().copied().filter(|c| table.odd_cell(*c).is_some()).collect();
            let mut texts: Vec<String> = odd.iter().flat_map(|c| table.texts(*c)).collect();
            texts.sort();
            texts.dedup();
            let names = odd.iter().filter(|o| **o != c).map(|o| table.columns()[*o].name.clone());
            let (others, value) = (names.collect(), value.into());
            let all = Box::new(OddCells { texts, others });
            return Err(Error::TextInNumber { place, column, value, all });
        }
    }
    Ok(())
}

/// What is guessed about columns before their rows are read.
fn remarks<'a>(
    table: &Table,
    left_out: &[usize],
    numbers: impl Iterator<Item = &'a usize>,
    categories: impl Iterator<Item = &'a usize>,
) -> Vec<Remark> {
    let name = |c: usize| table.columns()[c].name.clone();
    let mut remarks = vec![];
    if table.header_is_data() {
        remarks.push(Remark::HeaderIsData);
    }
    remarks.extend(left_out.iter().map(|c| Remark::Index { column: name(*c) }));
    let (numbers, categories): (Vec<&usize>, Vec<&usize>) = (numbers.collect(), categories.collect());
    let nameless = numbers.iter().chain(&categories).map(|c| name(**c)).filter(|n| stands_for_none(n));
    remarks.extend(nameless.map(|column| Remark::Nameless { column }));
    let (numbers, categories) = (numbers.into_iter(), categories.into_iter());
    let unclear = categories.filter_map(|c| {
        table.date_cell(*c).map(|(_, cell)| Remark::DatesUnclear { column: name(*c), cell: cell.into() })
    });
    remarks.extend(unclear);
    for &c in numbers {
        let column = name(c);
        match &table.columns()[c].notation {
            Notation::Plain if named_like_code(&column) && !answers_no(table, &column) => {
                remarks.push(Remark::NamedLikeCode { column });
            }
            Notation::Plain => {}
            Notation::Grouped => remarks.push(Remark::Separators { column }),
            Notation::Currency(unit) => remarks.push(Remark::Unit { column, unit: unit.clone() }),
            Notation::Percent => remarks.push(Remark::Unit { column, unit: "%".into() }),
            Notation::Date(order) => remarks.push(Remark::Dates { column, order: *order }),
        }
    }
    remarks
}

/// Whether the last word of a name says that the numbers below it are no quantities: `patient_id`, `zip`, `orderNo`.
fn named_like_code(name: &str) -> bool {
    let mut words: Vec<String> = vec![];
    let mut before = ' ';
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            match words.last_mut() {
                Some(word) => word.extend(c.to_lowercase()),
                None => words.push(c.to_lowercase().collect()),
            }
        }
        before = c;
    }
    const LAST: [&str; 16] = [
        "id", "ids", "uid", "uuid", "zip", "zipcode", "postcode", "plz", "code", "ssn", "phone", "mrn", "no",
        "nr", "number", "num",
    ];
    let last = words.iter().rfind(|w| !w.is_empty());
    // Written as one word, an id is told from `paid` and `humid` by whose it is.
    const WHOSE: [&str; 16] = [
        "row",
        "record",
        "case",
        "sample",
        "person",
        "user",
        "patient",
        "customer",
        "client",
        "member",
        "subject",
        "student",
        "employee",
        "household",
        "account",
        "order",
    ];
    let of_somebody = |last: &str| last.strip_suffix("id").is_some_and(|whose| WHOSE.contains(&whose));
    last.is_some_and(|last| LAST.contains(&last.as_str()) || last.ends_with("nummer") || of_somebody(last))
}

/// Whether a name that ends in "no" is an answer: another column has the same name with "yes".
fn answers_no(table: &Table, name: &str) -> bool {
    let lower = name.to_lowercase();
    let stem = lower.strip_suffix("no");
    stem.is_some_and(|stem| table.columns().iter().any(|c| c.name.to_lowercase() == format!("{stem}yes")))
}

/// Rows of a batch or block of this width: about a megabyte, so that it stays in the second-level cache.
pub(crate) fn block_rows(width: usize) -> usize {
    (131_072 / width.max(1)).clamp(256, 8192)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_codes_are_known_by_their_last_word() {
        for name in [
            "id",
            "ID",
            "patient_id",
            "patientId",
            "zip",
            "Zip Code",
            "home-phone",
            "ICD.code",
            "Patient No",
            "patient no.",
            "Nr",
            "orderNo",
            "Lfd. Nr.",
            "Patientennummer ",
            "rowid",
            "Customerid",
        ] {
            assert!(named_like_code(name), "{name}");
        }
        for name in ["age", "width", "paid", "id_card_age", "zipper", "decoded", "humid", "", "_"] {
            assert!(!named_like_code(name), "{name}");
        }
    }
}
