//! CSV: header, delimiter, record boundaries, and decoding of a byte range into batches.

use crate::batch::{Batch, Cells, MISSING, Want};
use crate::column::{ColumnSchema, Kind, stands_for_none};
use crate::content::{BOM, BUFFER, Content, TextEncoding};
use crate::hooks::Watch;
use crate::notation::{self, Decimal, Notation, Sample, Verdict};
use crate::place::Place;
use crate::words::truncated;
use crate::{Error, Result};
use csv::ByteRecord;
use std::collections::HashSet;
use std::io::{BufRead, Read};
use std::path::Path;

/// What counts as missing in every CSV file, besides an empty cell.
const MARKERS: [&str; 12] =
    ["NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "?", ""];
/// Rows from which the kinds of columns are inferred.
const INFERENCE_ROWS: usize = 10_000;
/// Rows of a split: large enough to amortise a seek, small enough to share among cores.
pub(crate) const SPLIT_ROWS: u64 = 65_536;

/// How text files are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextOptions {
    /// `None` guesses it.
    pub(crate) delimiter: Option<u8>,
    pub(crate) encoding: TextEncoding,
    pub(crate) decimal: Decimal,
    /// Whether the first line is a row of data.
    pub(crate) no_header: bool,
}

/// What counts as missing: the usual markers and the caller's.
#[derive(Debug, Clone)]
pub(crate) struct Markers {
    all: HashSet<Vec<u8>>,
    longest: usize,
    /// The caller's own, which may look like numbers (`-999`).
    pub(crate) own: Vec<String>,
    /// The caller's own that are numbers.
    pub(crate) own_numbers: Vec<f64>,
}

impl Markers {
    pub(crate) fn new(own: &[String]) -> Self {
        let own: Vec<String> = own.iter().map(|m| m.trim().to_string()).collect();
        let all: HashSet<Vec<u8>> = MARKERS
            .iter()
            .map(|m| m.as_bytes().to_vec())
            .chain(own.iter().map(|m| m.clone().into_bytes()))
            .collect();
        let longest = all.iter().map(Vec::len).max().unwrap_or(0);
        let own_numbers = own.iter().filter_map(|m| m.parse().ok()).filter(|x: &f64| !x.is_nan()).collect();
        Self { all, longest, own, own_numbers }
    }

    fn contains(&self, cell: &[u8]) -> bool {
        cell.len() <= self.longest && self.all.contains(cell)
    }
}

/// A CSV file whose header was read.
#[derive(Debug)]
pub(crate) struct CsvFile {
    content: Content,
    options: TextOptions,
    delimiter: u8,
    pub(crate) header: Vec<String>,
    /// Columns that have no name of their own.
    pub(crate) nameless: Vec<bool>,
    /// Whether the first rows of each column count up in whole numbers, as an index does.
    pub(crate) counts_up: Vec<bool>,
    /// What each column holds in the first rows.
    pub(crate) verdicts: Vec<Verdict>,
    /// The first few different texts of every column that are neither numbers nor dates.
    pub(crate) texts: Vec<Vec<String>>,
    /// Whether one cell decides that.
    pub(crate) hang_on_one: Vec<bool>,
    /// Notation of each column where it is more than what Rust reads; kept for the cells of every pass.
    notations: Vec<Option<Notation>>,
    /// Whether the header looks like a row of data.
    pub(crate) header_is_data: bool,
    /// Whether rows are counted after a header that somebody might count.
    counts_header: bool,
}

/// Whether cells are whole numbers that grow from row to row, but for a few: several files may stand in one.
#[derive(Debug, Clone, Copy, Default)]
struct Counting {
    rows: u64,
    last: Option<u64>,
    /// Cells that are no whole number, or not above the one before.
    breaks: u64,
}

impl Counting {
    fn add(&mut self, cell: &[u8]) {
        let number = std::str::from_utf8(cell).ok().and_then(|text| text.parse::<u64>().ok());
        self.breaks += u64::from(number.is_none_or(|n| self.last.is_some_and(|last| n <= last)));
        self.rows += 1;
        self.last = number.or(self.last);
    }

    fn numbers_rows(&self, breaks: u64) -> bool {
        10 * breaks <= self.rows
    }

    /// Whether another value of one cell, which makes or mends two breaks at most, would decide otherwise.
    fn hangs_on_one(&self) -> bool {
        self.numbers_rows(self.breaks.saturating_sub(2)) != self.numbers_rows(self.breaks + 2)
    }
}

/// What separates the fields of a line, most likely, and how often it does.
fn most_frequent(line: &[u8]) -> (u8, usize) {
    let candidates = [b',', b';', b'\t', b'|'];
    let mut counts = [0_usize; 4];
    let mut quoted = false;
    for &byte in line {
        quoted ^= byte == b'"';
        if let Some(i) = candidates.iter().position(|c| *c == byte && !quoted) {
            counts[i] += 1;
        }
    }
    let most = counts.into_iter().max().unwrap_or(0);
    (counts.iter().position(|c| *c == most).map_or(b',', |i| candidates[i]), most)
}

/// Consecutive records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CsvRange {
    /// First byte of the first record; for gzip, of the uncompressed stream.
    pub(crate) start: u64,
    /// One past the last byte.
    pub(crate) end: u64,
    /// First row, in the file.
    pub(crate) first_row: u64,
    /// Number of rows.
    pub(crate) rows: u64,
}

impl CsvFile {
    pub(crate) fn open(content: Content, options: TextOptions, markers: &Markers) -> Result<Self> {
        let mut file = Self::unread(content, options);
        if options.delimiter.is_none() {
            file.delimiter = file.guess_delimiter()?;
        }
        let mut reader = file.parser(file.content.stream(0)?);
        file.read_header(&mut reader)?;
        if options.no_header {
            reader = file.parser(file.content.stream(0)?);
        }
        file.infer_kinds(&mut reader, markers)?;
        Ok(file)
    }

    /// A file of which only the header is read: what its columns hold is known to whoever asks.
    pub(crate) fn with_known_columns(content: Content, options: TextOptions) -> Result<Self> {
        let mut file = Self::unread(content, options);
        let mut reader = file.parser(file.content.stream(0)?);
        file.read_header(&mut reader)?;
        file.verdicts = vec![Verdict::Empty; file.header.len()];
        file.texts = vec![vec![]; file.header.len()];
        file.counts_up = vec![false; file.header.len()];
        file.hang_on_one = vec![false; file.header.len()];
        file.notations = vec![None; file.header.len()];
        Ok(file)
    }

    fn unread(content: Content, options: TextOptions) -> Self {
        Self {
            content,
            options,
            delimiter: options.delimiter.unwrap_or(b','),
            header: vec![],
            nameless: vec![],
            counts_up: vec![],
            verdicts: vec![],
            texts: vec![],
            hang_on_one: vec![],
            notations: vec![],
            header_is_data: false,
            counts_header: !options.no_header,
        }
    }

    fn read_header<R: Read>(&mut self, reader: &mut csv::Reader<R>) -> Result<()> {
        let mut record = ByteRecord::new();
        let more = reader.read_byte_record(&mut record).map_err(|e| self.csv_error(e, 0))?;
        if !more || record.iter().all(|name| name.trim_ascii().is_empty()) {
            return Err(Error::EmptyFile { path: self.path().into() });
        }
        let no_header = self.options.no_header;
        for (i, name) in record.iter().enumerate() {
            let name = self.options.encoding.text(name).ok_or_else(|| Error::NotUtf8 {
                path: self.path().into(),
                row: 0,
                column: format!("number {}", i + 1),
            })?;
            let name = name.trim();
            self.nameless.push(name.is_empty() && !no_header);
            self.header.push(match (no_header, name.is_empty()) {
                (true, _) => format!("c{}", i + 1),
                // pandas leaves the index without a name: give it one that an option can take.
                (false, true) => format!("unnamed_{}", i + 1),
                (false, false) => name.to_string(),
            });
        }
        Ok(())
    }

    /// How the file is written, with the delimiter that was found; `None` where its bytes are in memory.
    pub(crate) fn text_options(&self) -> Option<TextOptions> {
        let options = TextOptions { delimiter: Some(self.delimiter), ..self.options };
        (!self.content.is_held()).then_some(options)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.content.gzip
    }

    /// Reads the numbers of every column as the table has them.
    pub(crate) fn set_notations(&mut self, columns: &[ColumnSchema]) {
        for column in columns {
            if let Some(field) = self.header.iter().position(|n| *n == column.name) {
                self.set_notation(field, &column.notation);
            }
        }
    }

    /// The lines of another format that was turned into CSV: the header is ours, nobody counts it.
    pub(crate) fn without_counted_header(self) -> Self {
        Self { counts_header: false, header_is_data: false, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.content.path
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.content.bytes
    }

    /// Kind of a column in the first rows; `None` where all are missing.
    pub(crate) fn kind(&self, field: usize) -> Option<Kind> {
        match self.verdicts[field] {
            Verdict::Empty => None,
            Verdict::Numbers(_) => Some(Kind::Number),
            Verdict::Text { .. } => Some(Kind::Category),
        }
    }

    /// Reads the numbers of a column in the notation that the table has for it.
    fn set_notation(&mut self, field: usize, notation: &Notation) {
        let usual = *notation == Notation::Plain && self.options.decimal == Decimal::Point;
        self.notations[field] = if usual { None } else { Some(notation.clone()) };
    }

    fn parser<R: Read>(&self, stream: R) -> csv::Reader<R> {
        csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true) // the number of fields is checked here, with a better message
            .delimiter(self.delimiter)
            .buffer_capacity(BUFFER)
            .from_reader(stream)
    }

    /// The most frequent of `, ; tab |` outside quotes in the first line that is not blank.
    fn guess_delimiter(&self) -> Result<u8> {
        let mut stream = self.content.stream(0)?;
        let failed = |source| self.content.failed(source);
        let mut line = Vec::new();
        while line.trim_ascii().is_empty() {
            line.clear();
            // A header line beyond a megabyte is no header.
            if (&mut stream).take(1 << 20).read_until(b'\n', &mut line).map_err(failed)? == 0 {
                break;
            }
        }
        Ok(most_frequent(&line).0)
    }

    fn infer_kinds<R: Read>(&mut self, reader: &mut csv::Reader<R>, markers: &Markers) -> Result<()> {
        let mut samples = vec![Sample::default(); self.header.len()];
        // Columns whose name is one of their own values.
        let mut repeated = vec![false; self.header.len()];
        let mut counting = vec![Counting::default(); self.header.len()];
        let mut record = ByteRecord::new();
        for row in 0..INFERENCE_ROWS as u64 {
            if !reader.read_byte_record(&mut record).map_err(|e| self.csv_error(e, row + 1))? {
                break;
            }
            self.check_fields(&record, row)?;
            for (j, cell) in record.iter().enumerate() {
                let cell = cell.trim_ascii();
                counting[j].add(cell);
                if markers.contains(cell) {
                    continue;
                }
                match self.options.encoding.text(cell) {
                    Some(text) => {
                        samples[j].add(row, &text, self.options.decimal);
                        repeated[j] |= text == self.header[j];
                    }
                    // The pass that needs the cell says that it is no text.
                    None => samples[j].add(row, &String::from_utf8_lossy(cell), self.options.decimal),
                }
            }
        }
        self.counts_up = counting.iter().map(|c| c.numbers_rows(c.breaks)).collect();
        let hangs = |(j, sample): (usize, &Sample)| {
            sample.hangs_on_one() || stands_for_none(&self.header[j]) && counting[j].hangs_on_one()
        };
        self.hang_on_one = samples.iter().enumerate().map(hangs).collect();
        self.texts = samples.iter().map(Sample::texts).collect();
        self.verdicts = samples.into_iter().map(Sample::verdict).collect();
        self.notations = vec![None; self.header.len()];
        self.header_is_data = !self.options.no_header && self.looks_like_data(&repeated);
        Ok(())
    }

    /// Whether the names are values: all columns of numbers are called by numbers, or, where there are none, more than
    /// half of several columns are called by one of their values.
    fn looks_like_data(&self, repeated: &[bool]) -> bool {
        let numbers = |j: &usize| matches!(self.verdicts[*j], Verdict::Numbers(_));
        let named_by_number = |j: usize| {
            !self.nameless[j] && notation::notation(&self.header[j], self.options.decimal).is_some()
        };
        let mut columns = (0..self.header.len()).filter(numbers).peekable();
        if columns.peek().is_some() {
            return columns.all(named_by_number);
        }
        let count = repeated.iter().filter(|r| **r).count();
        count > 1 && 2 * count > repeated.len()
    }

    fn check_fields(&self, record: &ByteRecord, row: u64) -> Result<()> {
        if record.len() == self.header.len() {
            return Ok(());
        }
        // At the first rows it may be the first line that is unlike the others.
        if row <= 1
            && let Some(odd) = self.odd_first_line()?
        {
            return Err(odd);
        }
        Err(Error::Fields { place: self.place(row), actual: record.len(), expected: self.header.len() })
    }

    /// What is wrong with a first line that the two after it agree to be unlike: a title, or a remark, above the table.
    fn odd_first_line(&self) -> Result<Option<Error>> {
        let mut stream = self.content.stream(0)?;
        let mut lines = vec![];
        while lines.len() < 3 {
            let mut line = Vec::new();
            let read = (&mut stream).take(1 << 20).read_until(b'\n', &mut line);
            if read.map_err(|source| self.content.failed(source))? == 0 {
                break;
            }
            if !line.trim_ascii().is_empty() {
                lines.push(line);
            }
        }
        let [first, second, third] = lines.as_slice() else { return Ok(None) };
        let ([was, now, then], [of_first, of_second, of_third]) = (
            [first, second, third].map(|line| most_frequent(line).0),
            [first, second, third].map(|line| most_frequent(line).1),
        );
        let agree = (now, of_second) == (then, of_third) && of_second > 0;
        if !agree || (was, of_first) == (now, of_second) || of_first >= of_second {
            return Ok(None);
        }
        Ok(Some(Error::FirstLine {
            path: self.path().into(),
            line: truncated(String::from_utf8_lossy(first).trim()),
            fields: of_second + 1,
            delimiter: char::from(now),
        }))
    }

    /// `row` counted from 0 in the file.
    pub(crate) fn place(&self, row: u64) -> Place {
        Place { path: self.path().into(), row: row + 1, header: self.counts_header }
    }

    fn csv_error(&self, error: csv::Error, row: u64) -> Error {
        match error.into_kind() {
            csv::ErrorKind::Io(source) => self.content.failed(source),
            other => Error::Csv { place: self.place(row), message: format!("{other:?}") },
        }
    }

    /// Finds the records: ranges of [`SPLIT_ROWS`] rows (gzip cannot be entered in the middle: one range).
    pub(crate) fn index(&self, watch: &Watch<'_>) -> Result<Vec<CsvRange>> {
        let mut stream = self.content.stream(0)?;
        let bom = if self.content.starts_with_bom()? { BOM.len() as u64 } else { 0 };
        let mut scanner = Scanner::new(self.delimiter);
        let (mut offset, mut records) = (bom, 0_u64);
        let header = u64::from(!self.options.no_header);
        let mut ranges: Vec<CsvRange> = Vec::new();
        loop {
            let buffer = match stream.fill_buf() {
                Ok(buffer) => buffer,
                Err(source) => return Err(self.content.failed(source)),
            };
            if buffer.is_empty() {
                break;
            }
            for (i, byte) in buffer.iter().enumerate() {
                let starts = scanner.starts_record(*byte);
                if scanner.torn {
                    return Err(self.torn(records, header));
                }
                if !starts {
                    continue;
                }
                records += 1;
                let start = offset + i as u64;
                if records <= header {
                    continue;
                }
                let row = records - 1 - header;
                if row == 0 || (!self.content.gzip && row % SPLIT_ROWS == 0) {
                    ranges.push(CsvRange { start, end: start, first_row: row, rows: 0 });
                }
            }
            let len = buffer.len();
            offset += len as u64;
            stream.consume(len);
            // Progress in bytes of the file is known only without compression.
            watch.advance(if self.content.gzip { 0 } else { len as u64 })?;
        }
        if scanner.is_open() {
            return Err(self.torn(records, header));
        }
        let rows = records.saturating_sub(header);
        for i in 0..ranges.len() {
            let (end, last) = ranges.get(i + 1).map_or((offset, rows), |next| (next.start, next.first_row));
            ranges[i].end = end;
            ranges[i].rows = last - ranges[i].first_row;
        }
        Ok(ranges)
    }

    /// A quote took the rows after it, in the last of so many records.
    fn torn(&self, records: u64, header: u64) -> Error {
        let row = records.saturating_sub(header);
        Error::Torn { place: Place { path: self.path().into(), row, header: self.counts_header } }
    }

    /// Decodes a range into batches of `batch_rows`. `fields` maps columns of the table to fields of this
    /// file.
    pub(crate) fn read(
        &self,
        range: &CsvRange,
        (wants, fields): (&[Want], &[usize]),
        markers: &Markers,
        batch: &mut Batch,
        batch_rows: usize,
        each: &mut dyn FnMut(&Batch) -> Result<()>,
    ) -> Result<()> {
        let table_row = batch.first_row;
        let mut reader = self.parser(self.content.range(range.start, range.end)?);
        let mut record = ByteRecord::new();
        let mut done = 0;
        while done < range.rows {
            batch.cells.iter_mut().for_each(Cells::clear);
            batch.len = 0;
            batch.first_row = table_row + done;
            batch.row_in_file = range.first_row + done;
            let rows = (range.rows - done).min(batch_rows as u64);
            for i in 0..rows {
                let row = batch.row_in_file + i;
                if !reader.read_byte_record(&mut record).map_err(|e| self.csv_error(e, row))? {
                    return Err(Error::Changed { path: self.path().into() });
                }
                self.check_fields(&record, row)?;
                for (want, cells) in wants.iter().zip(&mut batch.cells) {
                    let field = fields[want.column];
                    self.push(cells, record[field].trim_ascii(), field, row, markers)?;
                }
            }
            batch.len = rows as usize;
            for (want, cells) in wants.iter().zip(&mut batch.cells) {
                if let Cells::Number(numbers) = cells
                    && let Err(i) = numbers.check()
                {
                    let place = self.place(batch.row_in_file + i as u64);
                    return Err(Error::Infinite { place, column: self.header[fields[want.column]].clone() });
                }
            }
            each(batch)?;
            done += rows;
        }
        Ok(())
    }

    fn push(&self, cells: &mut Cells, cell: &[u8], field: usize, row: u64, markers: &Markers) -> Result<()> {
        let text = |cell| {
            self.options.encoding.text(cell).ok_or_else(|| Error::NotUtf8 {
                path: self.path().into(),
                row: row + 1,
                column: self.header[field].clone(),
            })
        };
        match cells {
            Cells::Number(numbers) => {
                // Numbers are the common case: ask for markers first only where one may look like a number.
                let missing_first = !markers.own_numbers.is_empty() && markers.contains(cell);
                let value = match &self.notations[field] {
                    _ if missing_first => Some(f64::NAN),
                    None => parse(cell),
                    Some(notation) => notation::value(&text(cell)?, notation, self.options.decimal),
                };
                match value {
                    Some(x) => numbers.own.push(x),
                    None if markers.contains(cell) => numbers.own.push(f64::NAN),
                    None => {
                        return Err(Error::TextInNumber {
                            place: self.place(row),
                            column: self.header[field].clone(),
                            value: truncated(&String::from_utf8_lossy(cell)),
                            all: Box::default(),
                        });
                    }
                }
            }
            Cells::Level(levels) => {
                let code = if markers.contains(cell) { MISSING } else { levels.names.code(&text(cell)?) };
                levels.codes.push(code);
            }
            Cells::Text(texts) if markers.contains(cell) => texts.push(None),
            Cells::Text(texts) => texts.push(Some(&text(cell)?)),
        }
        Ok(())
    }
}

/// A number as Rust and C write it (`1e-3`, `+.5`, `inf`).
fn parse(cell: &[u8]) -> Option<f64> {
    std::str::from_utf8(cell).ok()?.parse().ok()
}

/// Finds record starts with the quoting rules of the `csv` crate: a quote opens a quoted field only at the
/// start of a field, `""` inside is a quote, blank lines are no records.
#[derive(Debug)]
struct Scanner {
    delimiter: u8,
    state: State,
    /// Whether the quoted field runs over the end of a line.
    long: bool,
    /// Whether a field that did so has more after its closing quote: that quote was meant to open another.
    torn: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    RecordStart,
    FieldStart,
    Field,
    Quoted,
    QuoteInQuoted,
}

impl Scanner {
    fn new(delimiter: u8) -> Self {
        Self { delimiter, state: State::RecordStart, long: false, torn: false }
    }

    /// Whether a quoted field took all lines after it.
    fn is_open(&self) -> bool {
        self.state == State::Quoted && self.long
    }

    /// Takes the next byte; true where it is the first of a record.
    fn starts_record(&mut self, byte: u8) -> bool {
        let line_end = byte == b'\n' || byte == b'\r';
        let first = self.state == State::RecordStart && !line_end;
        self.state = match self.state {
            State::Quoted if byte == b'"' => State::QuoteInQuoted,
            State::Quoted => {
                self.long |= line_end;
                State::Quoted
            }
            State::QuoteInQuoted if byte == b'"' => State::Quoted,
            _ if line_end => State::RecordStart,
            _ if byte == self.delimiter => State::FieldStart,
            State::RecordStart | State::FieldStart if byte == b'"' => {
                self.long = false;
                State::Quoted
            }
            State::QuoteInQuoted => {
                // Blanks before the delimiter are careless, and nothing more.
                self.torn |= self.long && !matches!(byte, b' ' | b'\t');
                State::Field
            }
            State::RecordStart | State::FieldStart | State::Field => State::Field,
        };
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: the `csv` crate's own count and positions of records.
    #[test]
    fn record_starts_agree_with_the_csv_crate() {
        let texts: [&[u8]; 6] = [
            b"a,b\n1,2\n3,4",
            b"a,b\r\n\"x\ny\",2\r\n\r\n\"say \"\"hi\"\"\",4\r\n",
            b"a\n5\" pipe\n\"q\"tail\n",
            b"\n\n\na,b\n\n1,2\n",
            b"a,b\n,\n\"\",\"\"\n \"x\",1\n",
            b"a;b\n\"1;\n2\";3\n\"un\nclosed",
        ];
        for text in texts {
            for delimiter in *b",;" {
                let mut scanner = Scanner::new(delimiter);
                let ours = text.iter().filter(|b| scanner.starts_record(**b)).count();
                let mut reader = csv::ReaderBuilder::new()
                    .has_headers(false)
                    .flexible(true)
                    .delimiter(delimiter)
                    .from_reader(text);
                assert_eq!(ours, reader.byte_records().count(), "{}", String::from_utf8_lossy(text));
            }
        }
    }

    #[test]
    fn random_soup_is_cut_where_the_csv_crate_cuts_it() {
        let alphabet = b"ab,\"\"\n\r;1";
        let mut state = 7_u64;
        for _ in 0..2000 {
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize
            };
            let text: Vec<u8> = (0..40).map(|_| alphabet[next() % alphabet.len()]).collect();
            let mut scanner = Scanner::new(b',');
            let ours = text.iter().filter(|b| scanner.starts_record(**b)).count();
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&text[..]);
            assert_eq!(ours, reader.byte_records().count(), "{}", String::from_utf8_lossy(&text));
        }
    }
}
