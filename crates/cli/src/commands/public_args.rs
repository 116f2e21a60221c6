//! The options about what is public of a table, and how its text is written: the same for every command that takes one.

use super::table_args::name_and_text;
use leakscope::{Failure, Result};
use leakscope_table::{Bounds, Decimal, Public, ReadOptions, Schema, TextEncoding};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is known without the data, and how files are written.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct PublicArgs {
    /// File that lists all columns, their kinds, bounds, levels and units (`leakscope schema` drafts one)
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Public range of a number or a date, such as age=0..100; may be repeated
    #[arg(long, value_name = "COLUMN=LOW..HIGH")]
    pub(crate) bounds: Vec<String>,
    /// JSON file with the public levels of categories: {"sex": ["f", "m"]}
    #[arg(long, value_name = "FILE")]
    pub(crate) levels: Option<PathBuf>,
    /// Move values outside their bounds to the nearest bound
    #[arg(long)]
    pub(crate) clip_to_bounds: bool,
    /// Merge levels that fewer records have into `other`, unless they were given [default for a release: 10]
    #[arg(long, value_name = "N")]
    pub(crate) min_level_count: Option<u64>,
    /// What separates fractions in text files: a point or a comma [default: .]
    #[arg(long, value_name = ".|,")]
    pub(crate) decimal: Option<char>,
    /// CSV files have no line of names: columns are called c1, c2, …
    #[arg(long)]
    pub(crate) no_header: bool,
}

impl PublicArgs {
    /// What is public.
    pub(crate) fn public(&self) -> Result<Public> {
        self.check()?;
        let schema = self.schema.as_deref().map(Schema::read).transpose();
        let bounds = self.bounds.iter().map(|text| {
            let (name, range) = name_and_text("bounds", text)?;
            let range = range.parse::<Bounds>().map_err(|e| Failure::option("bounds", e))?;
            Ok((name, range))
        });
        Ok(Public {
            schema: schema.map_err(|e| Failure::option("schema", e))?,
            bounds: bounds.collect::<Result<_>>()?,
            levels: self.levels.as_deref().map(levels).transpose()?.unwrap_or_default(),
            clip_to_bounds: self.clip_to_bounds,
            scales: vec![],
        })
    }

    fn check(&self) -> Result<()> {
        match self.decimal {
            None | Some('.' | ',') => {}
            Some(c) => return Err(Failure::option("decimal", format!("`{c}`: expected . or ,"))),
        }
        if self.clip_to_bounds && self.schema.is_none() && self.bounds.is_empty() {
            let message = "there are no bounds: give them with ⟨bounds⟩ or a ⟨schema⟩";
            return Err(Failure::option("clip_to_bounds", message));
        }
        Ok(())
    }

    /// How files in an encoding are read, besides what `base` says.
    pub(crate) fn read(&self, encoding: TextEncoding, base: ReadOptions) -> ReadOptions {
        let decimal = if self.decimal == Some(',') { Decimal::Comma } else { Decimal::Point };
        ReadOptions { encoding, decimal, no_header: self.no_header, ..base }
    }

    /// The same without what says how text is written.
    pub(crate) fn without_text(&self) -> Self {
        Self { decimal: None, no_header: false, ..self.clone() }
    }

    /// An option that says something.
    pub(crate) fn stray(&self) -> Option<&'static str> {
        let set = [
            ("schema", self.schema.is_some()),
            ("bounds", !self.bounds.is_empty()),
            ("levels", self.levels.is_some()),
            ("clip_to_bounds", self.clip_to_bounds),
            ("min_level_count", self.min_level_count.is_some()),
            ("decimal", self.decimal.is_some()),
            ("no_header", self.no_header),
        ];
        set.iter().find(|s| s.1).map(|s| s.0)
    }
}

fn levels(path: &Path) -> Result<Vec<(String, Vec<String>)>> {
    let wrong = |e: &dyn std::fmt::Display| {
        let message = format!("{}: {e}: expected {{\"column\": [\"level\", …], …}}", path.display());
        Failure::option("levels", message)
    };
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
    let by_column: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).map_err(|e| wrong(&e))?;
    Ok(by_column.into_iter().collect())
}
