//! The options that say how a table is read and encoded: the same for every command that takes one.

use super::public_args::PublicArgs;
use super::run_args::{TestArgs, request};
use leakscope::failure::present;
use leakscope::request::{Request, delimiter};
use leakscope::{Failure, Result};
use leakscope_core::glm::{ModelKind, ModelName};
use leakscope_table::{Missing, OneHot, ReadOptions, Roles, Scale, TextEncoding};
use std::path::PathBuf;

/// How the table is read and which column is what.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct TableArgs {
    /// CSV (also gzipped), JSON lines, Parquet or Feather files, or - for standard input; several are one table
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Column to predict
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target: String,
    /// Encoding of text files
    #[arg(long, value_enum, default_value_t = TextEncoding::Utf8)]
    pub(crate) encoding: TextEncoding,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
}

/// The same where a table is optional: files come with `--data`.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct DataArgs {
    /// Table to fit a model to: CSV (also gzipped), JSON lines, Parquet or Feather files
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) data: Vec<PathBuf>,
    /// Column to predict, with --data
    #[arg(long, value_name = "COLUMN")]
    pub(crate) target: Option<String>,
    /// Encoding of text files of --data
    #[arg(long, value_enum, default_value_t = TextEncoding::Utf8)]
    pub(crate) text_encoding: TextEncoding,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) test: TestArgs,
}

/// What the columns of a table are for and how they are encoded.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ColumnArgs {
    /// Column that names a record; without it records are named by row number
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
    /// Columns to leave out
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub(crate) drop: Vec<String>,
    /// Columns that are categories although they look like numbers
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    pub(crate) categorical: Vec<String>,
    /// Column of sample weights
    #[arg(long, value_name = "COLUMN")]
    pub(crate) weights: Option<String>,
    /// Column whose groups are compared (by audit only); it stays a feature unless dropped
    #[arg(long, value_name = "COLUMN")]
    pub(crate) group: Option<String>,
    /// Field delimiter of CSV files: a character or `tab` [default: guessed]
    #[arg(long, value_name = "CHAR")]
    pub(crate) delimiter: Option<String>,
    /// Further markers of missing values, besides empty, NA, NaN, null, ? and the like
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) na: Vec<String>,
    /// Which levels of a category get a column
    #[arg(long, value_enum, default_value_t = OneHot::DropLast)]
    pub(crate) one_hot: OneHot,
    /// How numbers are scaled
    #[arg(long, value_enum, default_value_t = Scale::Standard)]
    pub(crate) scale: Scale,
    /// Keep this many principal components instead of the columns
    #[arg(long, value_name = "K")]
    pub(crate) pca: Option<usize>,
    /// What to do where a value is missing
    #[arg(long, value_enum, default_value_t = Missing::Fail)]
    pub(crate) missing: Missing,
    /// The class that is coded high [default: the second in sorted order]
    #[arg(long, value_name = "CLASS")]
    pub(crate) positive: Option<String>,
    #[command(flatten)]
    pub(crate) public: PublicArgs,
}

/// The model to fit.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ModelArgs {
    /// The model
    #[arg(long, value_enum, default_value_t = ModelName::Linear)]
    pub(crate) model: ModelName,
    /// Power of the variance of a tweedie model, from 1 (poisson) to 2 (gamma) [default: 1.5]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) power: Option<f64>,
    /// Error beyond which a huber model counts its size alone, in the unit of the target [default: 1.35]
    #[arg(long, value_name = "DELTA", allow_negative_numbers = true)]
    pub(crate) huber_threshold: Option<f64>,
    /// Classes that the target of a softmax model may have
    #[arg(long, value_name = "K", default_value_t = leakscope_core::glm::softmax::MAX_CLASSES)]
    pub(crate) max_classes: usize,
    /// Penalty λ in Σ loss + (nλ/2)‖w‖²; the intercept is not penalised
    #[arg(long, value_name = "L2", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) l2: f64,
    /// Fit without an intercept
    #[arg(long)]
    pub(crate) no_intercept: bool,
}

impl ModelArgs {
    /// The model with its parameter.
    pub(crate) fn kind(&self) -> Result<ModelKind> {
        Ok(self.model.kind(self.power, self.huber_threshold)?)
    }
}

impl DataArgs {
    /// The request for the model of these arguments; none without `--data`, where nothing else may be said either.
    pub(crate) fn request(&self, seed: Option<u64>) -> Result<Option<Request>> {
        if self.data.is_empty() {
            return match self.stray() {
                Some(flag) => Err(Failure::option(flag, "it belongs to a table: name one with ⟨data⟩ FILE")),
                None => Ok(None),
            };
        }
        let table = self.table()?;
        present("data", &self.data)?;
        request(&table, &self.model, &self.test, seed).map(Some)
    }

    /// The table of these arguments.
    pub(crate) fn table(&self) -> Result<TableArgs> {
        let target = self
            .target
            .clone()
            .ok_or_else(|| Failure::option("target", "say which column of ⟨data⟩ the model predicts"))?;
        let (files, columns) = (self.data.clone(), self.columns.clone());
        Ok(TableArgs { files, target, encoding: self.text_encoding, columns })
    }

    /// How to read the files alone, without a model: nothing else may be said about them.
    pub(crate) fn read_alone(&self) -> Result<ReadOptions> {
        let c = &self.columns;
        let alone = Self {
            target: None,
            text_encoding: TextEncoding::Utf8,
            columns: ColumnArgs { delimiter: None, na: vec![], public: c.public.without_text(), ..c.clone() },
            ..self.clone()
        };
        match alone.stray() {
            Some(flag) => {
                Err(Failure::option(flag, "no model is fitted where ⟨mechanism⟩ says what is released"))
            }
            None => {
                let (delimiter, na) = (c.delimiter_byte()?, c.na.clone());
                Ok(c.public.read(
                    self.text_encoding,
                    ReadOptions { paths: self.data.clone(), delimiter, na, ..ReadOptions::default() },
                ))
            }
        }
    }

    /// A flag that says something although there is no table.
    fn stray(&self) -> Option<&'static str> {
        let (c, m, t) = (&self.columns, &self.model, &self.test);
        let flags = [
            ("target", self.target.is_some()),
            ("model", m.model != ModelName::Linear),
            ("power", m.power.is_some()),
            ("huber_threshold", m.huber_threshold.is_some()),
            ("max_classes", m.max_classes != leakscope_core::glm::softmax::MAX_CLASSES),
            ("l2", m.l2 != 0.0),
            ("no_intercept", m.no_intercept),
            ("test", !t.test.is_empty()),
            ("holdout", t.holdout.is_some()),
            ("text_encoding", self.text_encoding != TextEncoding::Utf8),
        ];
        flags.iter().find(|s| s.1).map(|s| s.0).or_else(|| c.stray())
    }
}

impl TableArgs {
    /// How to read the files, or others of the same layout.
    pub(crate) fn read_options(&self, files: &[PathBuf]) -> Result<ReadOptions> {
        let c = &self.columns;
        Ok(c.public.read(
            self.encoding,
            ReadOptions {
                paths: files.to_vec(),
                delimiter: c.delimiter_byte()?,
                na: c.na.clone(),
                ..ReadOptions::default()
            },
        ))
    }

    pub(crate) fn roles(&self) -> Roles {
        let c = &self.columns;
        Roles {
            target: self.target.clone(),
            id: c.id.clone(),
            group: c.group.clone(),
            weights: c.weights.clone(),
            drop: c.drop.clone(),
            categorical: c.categorical.clone(),
        }
    }
}

impl ColumnArgs {
    /// A flag that says something.
    pub(crate) fn stray(&self) -> Option<&'static str> {
        let flags = [
            ("id", self.id.is_some()),
            ("drop", !self.drop.is_empty()),
            ("categorical", !self.categorical.is_empty()),
            ("weights", self.weights.is_some()),
            ("group", self.group.is_some()),
            ("delimiter", self.delimiter.is_some()),
            ("na", !self.na.is_empty()),
            ("one_hot", self.one_hot != OneHot::DropLast),
            ("scale", self.scale != Scale::Standard),
            ("pca", self.pca.is_some()),
            ("missing", self.missing != Missing::Fail),
            ("positive", self.positive.is_some()),
        ];
        flags.iter().find(|s| s.1).map(|s| s.0).or_else(|| self.public.stray())
    }

    fn delimiter_byte(&self) -> Result<Option<u8>> {
        delimiter_byte(self.delimiter.as_deref())
    }
}

/// A delimiter as it is written on the command line.
pub(crate) fn delimiter_byte(text: Option<&str>) -> Result<Option<u8>> {
    text.map(delimiter).transpose()
}

/// `NAME=VALUE` with a number.
pub(crate) fn name_and_number(flag: &str, text: &str) -> Result<(String, f64)> {
    let (name, value) = name_and_text(flag, text)?;
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((name, number)),
        _ => Err(Failure::option(
            flag,
            format!("`{text}`: expected NAME=VALUE with a finite number, such as age=5"),
        )),
    }
}

/// `NAME=TEXT`.
pub(crate) fn name_and_text(flag: &str, text: &str) -> Result<(String, String)> {
    match text.rsplit_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.into(), value.into())),
        _ => Err(Failure::option(flag, format!("`{text}`: expected NAME=VALUE"))),
    }
}
