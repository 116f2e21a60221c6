//! Where rows come from: which format a file has, and what its columns are.

use crate::arrow_file;
use crate::column::{Kind, is_numbered};
use crate::content::{Content, TextEncoding, is_marked_utf16};
use crate::csv_file::{CsvFile, Markers, TextOptions};
use crate::json_lines;
use crate::memory::Memory;
use crate::notation::{Notation, Verdict};
use crate::parquet_file::ParquetFile;
use crate::{Error, Result};
use std::path::Path;

/// A file whose columns are known, or a table in memory.
#[derive(Debug)]
pub(crate) enum Source {
    Csv(CsvFile),
    Parquet(ParquetFile),
    Memory(Memory),
}

impl Source {
    pub(crate) fn open(path: &Path, options: TextOptions, markers: &Markers) -> Result<Self> {
        let (content, head) = Content::open(path)?;
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        // What a compressed file is compressed of, as its name says.
        let inner = match extension.as_str() {
            "gz" => path.file_stem().map(Path::new).and_then(Path::extension),
            _ => path.extension(),
        };
        let inner = inner.map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        if let Some(workbook) = workbook(&head, &extension) {
            return Err(Error::Workbook { path: path.into(), workbook });
        }
        // The first bytes decide; the extension only says what a damaged file was meant to be.
        if head.starts_with(b"PAR1") || matches!(extension.as_str(), "parquet" | "pq") {
            let stored = content.stored().ok_or(Error::BinaryInput { format: "Parquet" })?;
            return ParquetFile::open(stored).map(Self::Parquet);
        }
        if head.starts_with(arrow_file::MAGIC) || matches!(extension.as_str(), "feather" | "arrow" | "ipc") {
            if head.starts_with(arrow_file::MAGIC_FEATHER_1) {
                return Err(Error::OldFeather { path: path.into() });
            }
            return arrow_file::open(&content, path).map(Self::Memory);
        }
        let utf16 = options.encoding == TextEncoding::Utf16 || is_marked_utf16(&head);
        if !content.gzip && (extension == "gz" || (head.contains(&0) && !utf16)) {
            return Err(Error::UnknownFormat { path: path.into() });
        }
        let content = if utf16 { content.utf16_as_utf8()? } else { content };
        let brace = content.is_held() && head.trim_ascii_start().starts_with(b"{");
        if brace || matches!(inner.as_str(), "jsonl" | "ndjson" | "json") {
            let options = TextOptions { delimiter: Some(b','), ..TextOptions::default() };
            let lines = json_lines::to_csv(&content)?;
            return CsvFile::open(lines, options, markers).map(|csv| Self::Csv(csv.without_counted_header()));
        }
        CsvFile::open(content, options, markers).map(Self::Csv)
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Csv(csv) => csv.path(),
            Self::Parquet(parquet) => &parquet.path,
            Self::Memory(memory) => memory.name(),
        }
    }

    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Csv(csv) => &csv.header,
            Self::Parquet(parquet) => &parquet.names,
            Self::Memory(memory) => memory.names(),
        }
    }

    /// Kind of a field; `None` where it cannot be told yet.
    pub(crate) fn kind(&self, field: usize) -> Option<std::result::Result<Kind, String>> {
        match self {
            Self::Csv(csv) => csv.kind(field).map(Ok),
            Self::Parquet(parquet) => Some(parquet.kinds[field].clone()),
            Self::Memory(memory) => Some(memory.kind(field).clone()),
        }
    }

    /// How the numbers of a field are written; `None` where it has none yet.
    pub(crate) fn notation(&self, field: usize) -> Option<Notation> {
        match self {
            Self::Csv(csv) => match &csv.verdicts[field] {
                Verdict::Numbers(notation) => Some(notation.clone()),
                Verdict::Text { .. } | Verdict::Empty => None,
            },
            Self::Parquet(parquet) => Some(parquet.notation(field)),
            Self::Memory(memory) => Some(memory.notation(field)),
        }
    }

    pub(crate) fn is_nameless(&self, field: usize) -> bool {
        match self {
            Self::Csv(csv) => csv.nameless[field],
            Self::Parquet(_) | Self::Memory(_) => self.names()[field].is_empty(),
        }
    }

    /// Whether the cells of a column count up as row numbers do; of a column without a name in a file that is no text, nothing
    /// speaks against it.
    pub(crate) fn counts_up(&self, field: usize) -> bool {
        match self {
            Self::Csv(csv) => csv.counts_up[field],
            Self::Parquet(_) | Self::Memory(_) => true,
        }
    }

    pub(crate) fn header_is_data(&self) -> bool {
        match self {
            Self::Csv(csv) => csv.header_is_data,
            Self::Parquet(_) | Self::Memory(_) => false,
        }
    }

    pub(crate) fn bytes_to_index(&self) -> u64 {
        match self {
            Self::Csv(csv) => csv.bytes(),
            Self::Parquet(_) | Self::Memory(_) => 0,
        }
    }
}

/// What a file of a spreadsheet or another programme is called; `None` for what may be a table.
fn workbook(head: &[u8], extension: &str) -> Option<&'static str> {
    let zip = head.starts_with(b"PK\x03\x04");
    match extension {
        "xlsx" | "xlsm" | "xlsb" | "xls" => Some("an Excel workbook"),
        "ods" | "numbers" => Some("a spreadsheet"),
        "sav" | "por" => Some("an SPSS file"),
        "dta" => Some("a Stata file"),
        "sas7bdat" | "xpt" => Some("a SAS file"),
        "rds" | "rda" | "rdata" => Some("an R file"),
        _ if zip => Some("a ZIP archive (an Excel workbook is one)"),
        _ => None,
    }
}

/// Whether pandas gives this name to an index and to nothing else: `__index_level_0__`.
pub(crate) fn is_index_name(name: &str) -> bool {
    is_numbered(name, "__index_level_", "__")
}

/// The notation of a column's numbers in all files.
pub(crate) fn common_notation(sources: &[Source], name: &str) -> Result<Notation> {
    let mut common: Option<Notation> = None;
    for source in sources {
        let field = source.names().iter().position(|n| n == name);
        let Some(notation) = field.and_then(|f| source.notation(f)) else { continue };
        common = Some(match (common, notation) {
            (None, notation) => notation,
            (Some(a), b) if a == b => a,
            // A number without its currency or separators is still that number.
            (Some(Notation::Plain | Notation::Grouped), b @ (Notation::Grouped | Notation::Currency(_))) => b,
            (Some(a @ (Notation::Grouped | Notation::Currency(_))), Notation::Plain | Notation::Grouped) => a,
            (Some(a), b) => {
                let words = |n: &Notation| n.unit().unwrap_or_else(|| "plain numbers".into());
                return Err(Error::NotationsDiffer {
                    path: source.path().into(),
                    column: name.into(),
                    expected: words(&a),
                    notation: words(&b),
                });
            }
        });
    }
    Ok(common.unwrap_or_default())
}
