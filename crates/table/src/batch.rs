//! A batch of rows as typed columns: what every file format is decoded into.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use std::collections::HashMap;

/// How a column is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As `f64`.
    Number,
    /// As one of a limited number of texts.
    Level,
    /// As text that is different in every row.
    Text,
}

/// One column to read, and how. A column may be wanted twice, read differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    /// Index into the columns of the table.
    pub(crate) column: usize,
    /// How to read it.
    pub(crate) reading: Reading,
}

/// Code of a missing level.
pub(crate) const MISSING: u32 = u32::MAX;

/// Consecutive rows, one entry of `cells` per [`Want`]. Reused from batch to batch of a split.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Index of the file.
    pub(crate) file: usize,
    /// First row, counted from 0 over the whole table.
    pub(crate) first_row: u64,
    /// First row, counted from 0 in the file.
    pub(crate) row_in_file: u64,
    /// Number of rows.
    pub(crate) len: usize,
    /// The columns.
    pub(crate) cells: Vec<Cells>,
}

/// The cells of a column.
#[derive(Debug)]
pub(crate) enum Cells {
    Number(Numbers),
    Level(Levels),
    Text(Texts),
}

impl Cells {
    pub(crate) fn new(reading: Reading) -> Self {
        match reading {
            Reading::Number => Self::Number(Numbers::default()),
            Reading::Level => Self::Level(Levels::default()),
            Reading::Text => Self::Text(Texts::default()),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Number(numbers) => numbers.clear(),
            Self::Level(levels) => levels.codes.clear(),
            Self::Text(texts) => texts.clear(),
        }
    }

    /// Whether any cell is missing.
    pub(crate) fn any_missing(&self) -> bool {
        match self {
            Self::Number(numbers) => numbers.any_missing,
            Self::Level(levels) => levels.codes.contains(&MISSING),
            Self::Text(texts) => texts.any_missing,
        }
    }

    /// Whether cell `i` is missing.
    pub(crate) fn is_missing(&self, i: usize) -> bool {
        match self {
            Self::Number(numbers) => numbers.values()[i].is_nan(),
            Self::Level(levels) => levels.codes[i] == MISSING,
            Self::Text(texts) => texts.missing[i],
        }
    }
}

impl Batch {
    pub(crate) fn new(wants: &[Want]) -> Self {
        Self { cells: wants.iter().map(|w| Cells::new(w.reading)).collect(), ..Self::default() }
    }

    /// Cell column `i`, which was wanted as numbers.
    pub(crate) fn numbers(&self, i: usize) -> &Numbers {
        match &self.cells[i] {
            Cells::Number(numbers) => numbers,
            _ => unreachable!("column {i} was wanted as numbers"),
        }
    }

    /// Cell column `i`, which was wanted as levels.
    pub(crate) fn levels(&self, i: usize) -> &Levels {
        match &self.cells[i] {
            Cells::Level(levels) => levels,
            _ => unreachable!("column {i} was wanted as levels"),
        }
    }

    /// Cell column `i`, which was wanted as text.
    pub(crate) fn texts(&self, i: usize) -> &Texts {
        match &self.cells[i] {
            Cells::Text(texts) => texts,
            _ => unreachable!("column {i} was wanted as text"),
        }
    }
}

/// Numbers; NaN is missing, and infinities are rejected by the readers.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Values that needed conversion.
    pub(crate) own: Vec<f64>,
    /// Values that Arrow already holds as `f64`, without a copy.
    arrow: Option<ArrayRef>,
    any_missing: bool,
}

impl Numbers {
    pub(crate) fn clear(&mut self) {
        self.own.clear();
        self.arrow = None;
        self.any_missing = false;
    }

    /// Takes an array of `f64` without nulls as it is.
    pub(crate) fn adopt(&mut self, array: ArrayRef) {
        self.arrow = Some(array);
    }

    pub(crate) fn values(&self) -> &[f64] {
        match &self.arrow {
            Some(array) => array.as_primitive::<Float64Type>().values(),
            None => &self.own,
        }
    }

    /// Looks for what is not finite, once per batch: `Err` with the position of an infinity.
    pub(crate) fn check(&mut self) -> std::result::Result<(), usize> {
        // Without a branch in the loop, so that it vectorises; almost all columns are all finite.
        let all_finite = self.values().iter().fold(true, |all, x| all & x.is_finite());
        if all_finite {
            return Ok(());
        }
        if let Some(i) = self.values().iter().position(|x| x.is_infinite()) {
            return Err(i);
        }
        self.any_missing = true;
        Ok(())
    }
}

/// Levels as codes into the levels met so far in this split.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// Code of each row, [`MISSING`] where there is none.
    pub(crate) codes: Vec<u32>,
    /// What the codes mean; grows from batch to batch.
    pub(crate) names: Interner,
}

/// Gives every distinct text a number, in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    index: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    numbers: HashMap<u64, u32>,
}

impl Interner {
    /// The code of `text`.
    pub(crate) fn code(&mut self, text: &str) -> u32 {
        if let Some(&code) = self.index.get(text) {
            return code;
        }
        let code = self.names.len() as u32;
        self.index.insert(text.into(), code);
        self.names.push(text.into());
        code
    }

    /// The code of the text that `format` makes of a value with these bits; formats each value once.
    pub(crate) fn code_of_bits(&mut self, bits: u64, format: impl FnOnce() -> String) -> u32 {
        if let Some(&code) = self.numbers.get(&bits) {
            return code;
        }
        let code = self.code(&format());
        self.numbers.insert(bits, code);
        code
    }

    pub(crate) fn names(&self) -> &[Box<str>] {
        &self.names
    }
}

/// Texts end to end in one buffer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Texts {
    bytes: String,
    ends: Vec<usize>,
    missing: Vec<bool>,
    any_missing: bool,
}

impl Texts {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.missing.clear();
        self.any_missing = false;
    }

    pub(crate) fn push(&mut self, text: Option<&str>) {
        self.bytes.push_str(text.unwrap_or(""));
        self.ends.push(self.bytes.len());
        self.missing.push(text.is_none());
        self.any_missing |= text.is_none();
    }

    pub(crate) fn get(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}
