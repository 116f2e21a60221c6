//! Rows of a table as the records of a network: encoded as an audit encodes them, under the same names and units.
//!
//! The encoding stays with the model, in the part of its folder that must not leave the house: it holds levels, means and
//! counts of the training rows.

use crate::failure::present;
use crate::{Failure, Result};
use leakscope_core::error::numeral;
use leakscope_net::{Loss, io::advice};
use leakscope_table::{
    Class, Dataset, DatasetOptions, EncodeOptions, Encoding, Guess, Holdout, Hooks, Kind, Missing, OneHot,
    Origin, Public, ReadOptions, Remark, Role, Roles, Scale, SplitKey, Subset, Table, TargetCoding,
    TargetError, TargetKind, known_names,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the columns of a table are for, where the records are its rows, and how they are encoded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableRequest {
    /// How files are written; their names are the request's `data`. A table in memory comes with it.
    pub read: ReadOptions,
    /// What each column is for.
    pub roles: Roles,
    /// Levels that get a column.
    pub one_hot: OneHot,
    /// Scaling.
    pub scale: Scale,
    /// Principal components to keep.
    pub pca: Option<usize>,
    /// What to do where a value is missing.
    pub missing: Missing,
    /// The class that is coded 1.
    pub positive: Option<String>,
    /// What is known of the columns without looking at the data.
    pub public: Public,
    /// Levels that fewer training records have are merged into `other`, unless they were given.
    pub min_level_count: Option<u64>,
    /// Share of rows that are not trained on, to measure accuracy on.
    pub holdout: Option<f64>,
    /// Rows to measure accuracy on, where they are no files: those are the request's `test`.
    pub test: Option<ReadOptions>,
    /// Units of attributes, for display.
    pub units: Vec<(String, String)>,
}

/// Classes of a target, at most: a column with more is hardly one of classes.
const MOST_CLASSES: usize = 1000;

/// Where the encoding of a model stands in its folder.
pub(super) const ENCODING: &str = "private/encoding.json";

/// How rows became records: what an audit of the model needs to read the same table again.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Coding {
    /// Columns to values.
    pub(super) encoding: Encoding,
    /// How text files were written.
    read: ReadOptions,
    /// The network predicts `(target − centre)/scale`; 0 and 1 for classes.
    pub(super) centre: f64,
    /// See `centre`.
    pub(super) scale: f64,
    /// Whether the bounds of the target are those of a draft, which reads them off the records.
    #[serde(default)]
    target_drafted: bool,
    /// Units by attribute.
    units: Vec<(String, String)>,
}

/// Encoded rows.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) x: Vec<f64>,
    /// Labels; absent where the table has no target.
    pub(super) y: Option<Vec<f64>>,
    pub(super) ids: Vec<String>,
    /// What each may spend, where a column says it.
    pub(super) budgets: Vec<f64>,
}

/// Which rows of which files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Which<'a> {
    /// The option that named the files.
    pub(super) flag: &'a str,
    /// Whether the target may be absent.
    pub(super) target_optional: bool,
    /// Rows of the table.
    pub(super) subset: Subset,
}

/// Whether a file is a table by its name.
pub(super) fn is_table(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let ends = [
        ".csv", ".tsv", ".txt", ".data", ".tab", ".pq", ".json", ".jsonl", ".ndjson", ".parquet", ".feather",
        ".arrow", ".ipc",
    ];
    name == "-" || ends.iter().any(|end| name.ends_with(end))
}

/// Refuses tables where nothing says what their columns are for, and columns where there is no table.
pub(super) fn check(table: Option<&TableRequest>, data: &[PathBuf]) -> Result<()> {
    let Some(request) = table else {
        return match data.iter().find(|p| is_table(p)) {
            Some(path) => {
                let message = format!("say which column of {} the network predicts", path.display());
                Err(Failure::option("target", message))
            }
            None => Ok(()),
        };
    };
    if request.roles.target.is_empty() {
        return Err(Failure::option("target", "say which column of ⟨data⟩ the network predicts"));
    }
    for (flag, role) in [("weights", &request.roles.weights), ("group", &request.roles.group)] {
        if let Some(column) = role {
            let message = "a network takes every record alike: leave it out, or ⟨drop⟩ the column";
            return Err(Failure::text(flag, column, message));
        }
    }
    if let Some(share) = request.holdout.filter(|share| !(*share > 0.0 && *share < 1.0)) {
        return Err(Failure::number("holdout", numeral(share), "expected a share between 0 and 1"));
    }
    match data.iter().find(|p| !is_table(p) && p.exists()) {
        Some(path) => {
            let foreign =
                advice(path).unwrap_or_else(|| "expected CSV, JSON lines, Parquet or Feather".into());
            let message =
                format!("{}: ⟨target⟩ is the column of a table, and this is none: {foreign}", path.display());
            Err(Failure::option("data", message))
        }
        None => Ok(()),
    }
}

impl TableRequest {
    /// Reads a table and fits its encoding to the training rows, for a network of this loss where it is known.
    pub(super) fn open(
        &self,
        data: &[PathBuf],
        (budgets, loss): (Option<&str>, Option<Loss>),
        (seed, key): (u64, Option<SplitKey>),
        hooks: &Hooks,
    ) -> Result<(Table, Coding)> {
        if self.public.schema.as_ref().is_some_and(|s| s.draft) {
            let message = "it is a draft, whose bounds and levels were read off the data, and would count for nothing: check it, put \
                           in what is known without the data and remove the line \"draft\": true, or leave ⟨schema⟩ out";
            return Err(Failure::option("schema", message));
        }
        present("data", data)?;
        let read = ReadOptions { paths: data.to_vec(), ..self.read.clone() };
        // a number of every row that is no feature: what the library calls a weight
        let roles = Roles { weights: budgets.map(str::to_owned), ..self.roles.clone() };
        let table = Table::open(&read)?;
        let options = EncodeOptions {
            one_hot: self.one_hot,
            scale: self.scale,
            pca: self.pca,
            missing: self.missing,
            // the layers have biases
            intercept: false,
            target: match loss {
                Some(Loss::SoftmaxCrossEntropy) => TargetKind::Classes { most: MOST_CLASSES },
                Some(Loss::BinaryCrossEntropy) => TargetKind::Number { two_class_as_plus_minus_one: true },
                // Who gives the bounds of a target says that it is a number, however many values it has.
                None | Some(Loss::SquaredError) => TargetKind::Number {
                    two_class_as_plus_minus_one: !self.public.has_bounds(self.roles.target.trim()),
                },
            },
            holdout: self.holdout.map(|fraction| Holdout { key, ..Holdout::seeded(fraction, seed) }),
            positive: self.positive.clone(),
            public: self.public.clone(),
            min_level_count: self.min_level_count,
            repeated_ids: false,
        };
        let encoding = match (Encoding::fit(&table, &roles, &options, hooks), loss) {
            // text of three or more values: classes
            (Err(leakscope_table::Error::Target(TargetError::TextTarget { .. })), None) => {
                let target = TargetKind::Classes { most: MOST_CLASSES };
                Encoding::fit(&table, &roles, &EncodeOptions { target, ..options }, hooks)
            }
            (fitted, _) => fitted,
        }
        .map_err(no_classes)?;
        self.check_units(&encoding)?;
        let (centre, scale) = target_scale(&encoding, self.scale);
        let read = ReadOptions { paths: vec![], memory: vec![], ..self.read.clone() };
        let is_target = |(name, _): &(String, _)| name.trim() == encoding.target.name;
        let target_drafted =
            self.public.schema.as_ref().is_some_and(|s| s.draft) && !self.public.bounds.iter().any(is_target);
        let units = self.units.clone();
        Ok((table, Coding { encoding, read, centre, scale, target_drafted, units }))
    }

    fn check_units(&self, encoding: &Encoding) -> Result<()> {
        let names: Vec<&str> = encoding.attributes.iter().map(|a| a.name.as_str()).collect();
        let known = |name: &str| names.contains(&name) || name == encoding.target.name;
        match self.units.iter().find(|(name, _)| !known(name)) {
            Some((name, _)) => {
                let known = known_names(name, names.iter().copied());
                let message = format!("`{name}` is no column here; {known}");
                Err(Failure::option("unit", message))
            }
            None => Ok(()),
        }
    }
}

/// Says of classes that make no model what a network's user can do.
fn no_classes(error: leakscope_table::Error) -> Failure {
    match error {
        leakscope_table::Error::Target(TargetError::RareClass { column, class, .. }) => Failure::option(
            "target",
            format!(
                "class `{class}` of `{column}` has fewer than two records in the training rows: join it with another, leave it \
                 out, or, where `{column}` is a number to predict, give ⟨loss=squared-error⟩"
            ),
        ),
        leakscope_table::Error::Target(TargetError::TooManyClasses { column, number, most }) => {
            Failure::option(
                "target",
                format!(
                    "`{column}` has {number} classes, expected at most {most}: join rare ones, name another column, or, where it is a \
                 number to predict, give ⟨loss=squared-error⟩"
                ),
            )
        }
        other => other.into(),
    }
}

/// Centre and scale of a number to predict: of its public bounds, or of the training rows.
fn target_scale(encoding: &Encoding, scale: Scale) -> (f64, f64) {
    if !matches!(encoding.target.coding, TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive)
        || scale == Scale::None
    {
        return (0.0, 1.0);
    }
    if let Some(bounds) = encoding.target.bounds {
        return (bounds.centre(), bounds.half_range());
    }
    let profile = encoding.profile.iter().find(|c| c.role == Role::Target);
    let spread = profile.and_then(|p| p.sd).filter(|sd| *sd > 0.0).unwrap_or(1.0);
    (profile.and_then(|p| p.mean).unwrap_or(0.0), spread)
}

impl Coding {
    /// The encoding that a model was trained with.
    pub(super) fn of_model(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(ENCODING);
        if !path.is_file() {
            return Ok(None);
        }
        let wrong = |e: &dyn std::fmt::Display| Failure::Message(format!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|e| wrong(&e))?;
        serde_json::from_str(&text).map(Some).map_err(|e| wrong(&e))
    }

    /// The encoding of a model in memory.
    pub(super) fn of_text(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Failure::Message(format!("the encoding of the model: {e}")))
    }

    /// A table in memory, or files written as those of training.
    pub(super) fn open(&self, read: &ReadOptions) -> Result<Table> {
        Ok(Table::open(&ReadOptions {
            paths: read.paths.clone(),
            memory: read.memory.clone(),
            ..self.read.clone()
        })?)
    }

    /// The file.
    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Failure::Message(format!("the encoding: {e}")))
    }

    /// Another table of the same columns.
    pub(super) fn table(&self, files: &[PathBuf], flag: &str) -> Result<Table> {
        if let Some(path) = files.iter().find(|p| !is_table(p)) {
            let message = format!(
                "{}: the model was trained on the rows of a table: expected CSV, JSON lines, Parquet or Feather",
                path.display()
            );
            return Err(Failure::option(flag, message));
        }
        present(flag, files)?;
        Ok(Table::open(&ReadOptions { paths: files.to_vec(), ..self.read.clone() })?)
    }

    /// The rows of a table, as the network takes them.
    pub(super) fn rows(&self, table: &Table, which: Which<'_>, hooks: &Hooks) -> Result<Rows> {
        let options = DatasetOptions { allow_missing_target: which.target_optional, ..Default::default() };
        let dataset = Dataset::with_options(table, &self.encoding, which.subset, options, hooks)?;
        let mut rows = Rows { y: dataset.has_target().then(Vec::new), ..Rows::default() };
        dataset.fold_labelled(
            Rows::default,
            |part, block, labels| {
                part.x.extend_from_slice(&block.x);
                part.y.get_or_insert_default().extend_from_slice(&block.y);
                part.ids.extend_from_slice(&labels.ids);
                part.budgets.extend_from_slice(&block.weight);
                Ok(())
            },
            |part| {
                rows.x.extend(part.x);
                if let Some(y) = &mut rows.y {
                    y.extend(part.y.unwrap_or_default());
                }
                rows.ids.extend(part.ids);
                rows.budgets.extend(part.budgets);
                Ok(())
            },
        )?;
        if rows.ids.is_empty() {
            return Err(Failure::option(which.flag, "there are no rows: nothing can be done with none"));
        }
        rows.y.iter_mut().flatten().for_each(|y| *y = self.label(*y));
        // rounding must not grant more than was given
        let unit = self.encoding.weight_mean * (1.0 - 4.0 * f64::EPSILON);
        rows.budgets.iter_mut().for_each(|b| *b *= unit);
        Ok(rows)
    }

    /// A label as the network takes it.
    fn label(&self, y: f64) -> f64 {
        match &self.encoding.target.coding {
            TargetCoding::TwoClass { low, .. } => f64::from(u8::from(y != low.code)),
            TargetCoding::Classes(_) => y,
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
                (y - self.centre) / self.scale
            }
        }
    }

    /// Whether the network predicts a number.
    pub(super) fn is_regression(&self) -> bool {
        matches!(
            self.encoding.target.coding,
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive
        )
    }

    /// Classes of the target, where they have outputs of their own.
    pub(super) fn classes(&self) -> Option<usize> {
        match &self.encoding.target.coding {
            TargetCoding::Classes(all) => Some(all.len()),
            TargetCoding::TwoClass { .. }
            | TargetCoding::Number
            | TargetCoding::Count
            | TargetCoding::Positive => None,
        }
    }

    /// A label in the words of the table.
    pub(super) fn label_in_words(&self, value: f64) -> String {
        match &self.encoding.target.coding {
            TargetCoding::TwoClass { low, high } => {
                if value > 0.5 {
                    high.name.clone()
                } else {
                    low.name.clone()
                }
            }
            TargetCoding::Classes(all) => {
                let class = all.iter().find(|class| class.code == value);
                class.map_or_else(|| value.to_string(), |class| class.name.clone())
            }
            // the way to the network's numbers and back costs some of the last digits
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
                leakscope_report::format::number(self.centre + self.scale * value)
            }
        }
    }

    /// Unit of an attribute or of the target, where somebody gave it.
    pub(super) fn unit(&self, name: &str) -> Option<String> {
        let chosen = self.units.iter().find(|(n, _)| n == name).map(|(_, unit)| unit.clone());
        let told = self.encoding.attributes.iter().find(|a| a.name == name).and_then(|a| a.unit.clone());
        chosen.or(told)
    }

    /// What was read off the training rows and no ε covers, in words; empty where all was given.
    pub(super) fn read_off(&self) -> Vec<String> {
        let of = |kind: Kind, wanted: Kind, origin: Origin| kind == wanted && origin == Origin::ReadOffData;
        let all = &self.encoding.attributes;
        let listed = |fact: &str, names: Vec<&str>| {
            (!names.is_empty()).then(|| format!("{fact} of {}", names.join(", ")))
        };
        // The largest norm scales indicators too.
        let by_norm = self.encoding.scale == Scale::UnitBall;
        let scaled = all
            .iter()
            .filter(|a| of(a.kind, if by_norm { a.kind } else { Kind::Number }, a.scale_origin))
            .map(|a| a.name.as_str());
        let named = |r: &Remark| {
            let Remark::Identifier { column, .. } = r else { return None };
            Some(format!("that {column} names records and is left out"))
        };
        let levels =
            all.iter().filter(|a| of(a.kind, Kind::Category, a.levels_origin)).map(|a| a.name.as_str());
        let filled = all.iter().filter(|a| a.fill_origin == Origin::ReadOffData).map(|a| a.name.as_str());
        let target = &self.encoding.target;
        let target_read = match target.coding {
            TargetCoding::TwoClass { .. } | TargetCoding::Classes(_) => target.origin == Origin::ReadOffData,
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => {
                target.bounds.is_none() || self.target_drafted
            }
        };
        let coded = match target.coding {
            TargetCoding::TwoClass { .. } | TargetCoding::Classes(_) => "the classes",
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive
                if self.encoding.scale == Scale::None =>
            {
                "whether there are more than two values"
            }
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => "mean and spread",
        };
        let each = [
            listed("mean and spread", scaled.collect()),
            listed("the levels", levels.collect()),
            target_read.then(|| format!("{coded} of {}", target.name)),
            listed("what stands in for missing values", filled.collect()),
            self.encoding.pca.is_some().then(|| "the principal components".to_owned()),
        ];
        let remarked = self.encoding.remarks.iter().filter_map(named);
        each.into_iter().flatten().chain(remarked).chain(self.hanging()).collect()
    }

    /// What was guessed or given, and one record decides: without it there would be another network, or none.
    fn hanging(&self) -> Vec<String> {
        let guessed = |(column, guess): &(String, Guess)| match guess {
            Guess::Kind => format!("whether {column} holds numbers, which one record decides"),
            Guess::Identifier => format!("whether {column} names records, which one record decides"),
        };
        let target = &self.encoding.target;
        let (classes, least): (Vec<&Class>, u64) = match &target.coding {
            TargetCoding::TwoClass { low, high } => (vec![low, high], 1),
            // A class of fewer is refused.
            TargetCoding::Classes(all) => (all.iter().collect(), 2),
            TargetCoding::Number | TargetCoding::Count | TargetCoding::Positive => (vec![], 0),
        };
        let rare = classes.into_iter().find(|c| target.origin == Origin::Given && c.count <= least);
        let rare = rare.map(|c| {
            format!("that there is a network at all, since class {} of {} has just enough records (⟨target⟩: join it with another)", c.name, target.name)
        });
        let split = self.encoding.holdout.filter(|h| h.key.is_none());
        let split = split.map(|_| "which records are held out, by their numbers (start anew)".to_owned());
        let guesses = self.encoding.hang_on_one.iter().map(guessed);
        guesses.chain(rare).chain(split).collect()
    }
}
