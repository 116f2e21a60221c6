//! `leakscope schema`: a first schema of a table, for a person to edit.

use super::public_args::PublicArgs;
use super::table_args::delimiter_byte;
use leakscope::{Failure, Result};
use leakscope_table::{Hooks, ReadOptions, Schema, Table, TextEncoding};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Drafts a schema of a table.
#[derive(clap::Args, Debug, Clone)]
pub(crate) struct Args {
    /// CSV (also gzipped), JSON lines, Parquet or Feather files, or - for standard input; several are one table
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Field delimiter of CSV files: a character or `tab` [default: guessed]
    #[arg(long, value_name = "CHAR")]
    delimiter: Option<String>,
    /// Further markers of missing values, besides empty, NA, NaN, null, ? and the like
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',', allow_negative_numbers = true)]
    na: Vec<String>,
    /// What separates fractions in text files: a point or a comma [default: .]
    #[arg(long, value_name = ".|,")]
    decimal: Option<char>,
    /// Encoding of text files
    #[arg(long, value_enum, default_value_t = TextEncoding::Utf8)]
    encoding: TextEncoding,
    /// CSV files have no line of names: columns are called c1, c2, …
    #[arg(long)]
    no_header: bool,
    /// File to write instead of standard output; it must not exist
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let text = PublicArgs { decimal: args.decimal, no_header: args.no_header, ..PublicArgs::default() };
    text.public()?;
    let read = text.read(
        args.encoding,
        ReadOptions {
            paths: args.files.clone(),
            delimiter: delimiter_byte(args.delimiter.as_deref())?,
            na: args.na.clone(),
            ..ReadOptions::default()
        },
    );
    let draft = Schema::draft(&Table::open(&read)?, &Hooks::default())?.to_json();
    match &args.out {
        None => {
            let _ = std::io::stdout().lock().write_all(draft.as_bytes());
        }
        Some(path) => {
            // What a person has edited must not be lost to a second draft.
            let write = std::fs::File::create_new(path).and_then(|mut file| file.write_all(draft.as_bytes()));
            write.map_err(|e| {
                let why = match e.kind() {
                    std::io::ErrorKind::AlreadyExists => format!(
                        "{} exists already and may hold what a person has edited: name another file or remove it",
                        path.display()
                    ),
                    _ => format!("cannot write {}: {e}", path.display()),
                };
                Failure::option("out", why)
            })?;
        }
    }
    crate::tell!(
        "a draft, read off the data: replace bounds and levels by what is known without them, then remove the line \
         \"draft\": true"
    );
    Ok(ExitCode::SUCCESS)
}
