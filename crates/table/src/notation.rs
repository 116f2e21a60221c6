//! How people write numbers: separators between thousands, a decimal comma, currencies, per cent, dates.

use crate::dates::{self, DateOrder};
use serde::{Deserialize, Serialize};

/// What separates the whole part of a number from its fraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decimal {
    /// `1234.5`; a comma separates thousands.
    #[default]
    Point,
    /// `1234,5`; a point separates thousands.
    Comma,
}

/// How the numbers of a column are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Notation {
    /// As programmes write them: `-1.5e3`.
    #[default]
    Plain,
    /// Some as people write them: with separators between thousands (`1,234.5`), a typographic minus (`−5`), or in parentheses
    /// because they are negative (`(1,234.50)`).
    Grouped,
    /// Some with a currency, which is the unit.
    Currency(String),
    /// All with a sign for per cent, which is the unit: `12 %` is 12.
    Percent,
    /// Dates or times, read as days since 1970-01-01.
    Date(DateOrder),
}

impl Notation {
    /// The unit that the notation tells.
    pub fn unit(&self) -> Option<String> {
        match self {
            Self::Plain | Self::Grouped => None,
            Self::Currency(symbol) => Some(symbol.clone()),
            Self::Percent => Some("%".into()),
            Self::Date(_) => Some(DAYS.into()),
        }
    }

    /// Whether the numbers are days.
    pub fn is_date(&self) -> bool {
        matches!(self, Self::Date(_))
    }
}

/// The unit of dates.
pub(crate) const DAYS: &str = "days since 1970-01-01";

const SYMBOLS: [&str; 34] = [
    "R$", "$", "€", "£", "¥", "₹", "₽", "₩", "₺", "₪", "₴", "₫", "฿", "USD", "EUR", "GBP", "CHF", "JPY",
    "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "BRL", "MXN", "ZAR", "SGD",
    "HKD",
];

/// The notation of one cell; `None` where it is no number and no date.
pub(crate) fn notation(cell: &str, decimal: Decimal) -> Option<Notation> {
    if !cell.bytes().any(|b| b.is_ascii_digit()) {
        // Rust and C call infinities and missing numbers by name.
        return (decimal == Decimal::Point && cell.parse::<f64>().is_ok()).then_some(Notation::Plain);
    }
    if plain(cell, decimal).is_some() {
        return Some(Notation::Plain);
    }
    if grouped(cell, decimal).is_some() {
        return Some(Notation::Grouped);
    }
    if percent(cell, decimal).is_some() {
        return Some(Notation::Percent);
    }
    if let Some((symbol, _)) = currency(cell, decimal) {
        return Some(Notation::Currency(symbol.into()));
    }
    let order = DateOrder::ALL.into_iter().find(|order| dates::parse(cell, *order).is_some());
    order.map(Notation::Date)
}

/// The number that a cell of a column in this notation stands for.
pub(crate) fn value(cell: &str, notation: &Notation, decimal: Decimal) -> Option<f64> {
    let number = || plain(cell, decimal).or_else(|| grouped(cell, decimal));
    match notation {
        Notation::Plain => plain(cell, decimal),
        Notation::Grouped => number(),
        Notation::Currency(symbol) => {
            number().or_else(|| currency(cell, decimal).filter(|(own, _)| own == symbol).map(|(_, x)| x))
        }
        Notation::Percent => percent(cell, decimal),
        Notation::Date(order) => dates::parse(cell, *order),
    }
}

fn plain(cell: &str, decimal: Decimal) -> Option<f64> {
    match decimal {
        Decimal::Point => cell.parse().ok(),
        // Only what has no point: that would be a separator.
        Decimal::Comma if cell.contains('.') || !cell.bytes().any(|b| b.is_ascii_digit()) => None,
        Decimal::Comma => cell.replacen(',', ".", 1).parse().ok(),
    }
}

/// A number as people write it: separated, `−5` with a typographic minus, or `(1,234.50)`, which is negative. What stands alone
/// in parentheses without a point or a separator may be a label.
fn grouped(cell: &str, decimal: Decimal) -> Option<f64> {
    let number = |text: &str| plain(text, decimal).or_else(|| separated(text, decimal));
    let negative = |text: &str| number(text).filter(|_| text.starts_with(|c: char| c.is_ascii_digit()));
    if let Some(inside) = cell.strip_prefix('(').and_then(|c| c.strip_suffix(')')) {
        return negative(inside).filter(|_| inside.contains(|c: char| !c.is_ascii_digit())).map(|x| -x);
    }
    match cell.strip_prefix('−') {
        Some(size) => negative(size).map(|x| -x),
        None => separated(cell, decimal),
    }
}

/// A number whose whole part is written in groups of three digits, one separator throughout.
fn separated(cell: &str, decimal: Decimal) -> Option<f64> {
    let (point, opposite) = match decimal {
        Decimal::Point => ('.', ','),
        Decimal::Comma => (',', '.'),
    };
    let (sign, digits) = match cell.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", cell.strip_prefix('+').unwrap_or(cell)),
    };
    let (whole, fraction) = digits.split_once(point).unwrap_or((digits, ""));
    let separator =
        whole.chars().find(|c| *c == opposite || matches!(c, ' ' | '\'' | '’' | '\u{a0}' | '\u{202f}'))?;
    let mut groups = whole.split(separator);
    let of_digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next().filter(|g| (1..=3).contains(&g.len()) && of_digits(g))?;
    let mut text = format!("{sign}{first}");
    for group in groups {
        if group.len() != 3 || !of_digits(group) {
            return None;
        }
        text.push_str(group);
    }
    if !of_digits(fraction) {
        return None;
    }
    text.push('.');
    text.push_str(fraction);
    text.parse().ok()
}

fn percent(cell: &str, decimal: Decimal) -> Option<f64> {
    let number = cell.strip_suffix('%')?.trim_end();
    plain(number, decimal).or_else(|| grouped(number, decimal)).filter(|_| ends_in_digit(number))
}

/// Symbol and number of `$1,200`, `-$5`, `1.200,50 €`, `EUR 7`, `($3)`.
fn currency(cell: &str, decimal: Decimal) -> Option<(&'static str, f64)> {
    let (cell, sign) = match cell.strip_prefix('(').and_then(|c| c.strip_suffix(')')) {
        Some(inside) => (inside, -1.0),
        None => match cell.strip_prefix(['-', '−']) {
            Some(rest) if !rest.starts_with(|c: char| c.is_ascii_digit()) => (rest, -1.0),
            Some(_) | None => (cell, 1.0),
        },
    };
    let cell = cell.trim();
    let stripped = |symbol: &&'static str| cell.strip_prefix(symbol).or_else(|| cell.strip_suffix(symbol));
    let (symbol, number) = SYMBOLS.iter().find_map(|s| stripped(s).map(|rest| (*s, rest.trim())))?;
    let x = plain(number, decimal).or_else(|| grouped(number, decimal)).filter(|_| ends_in_digit(number))?;
    Some((symbol, sign * x))
}

fn ends_in_digit(number: &str) -> bool {
    number.bytes().last().is_some_and(|b| b.is_ascii_digit())
}

/// What the first cells of a column were written like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    classes: [Class; CLASSES],
    symbol: Option<String>,
    /// Cells that are no plain number but would be one with a decimal comma, and the first of them.
    comma: Class,
    /// How many of each class are such cells.
    commas: [u64; CLASSES],
    /// The first few different texts that are neither numbers nor dates.
    texts: Vec<String>,
}

/// Texts that are kept of a column, so that a message names all that are probably meant as missing.
const TEXTS: usize = 8;

/// Cells of one class: how many, and the first of them.
#[derive(Debug, Clone, Default)]
struct Class {
    count: u64,
    first: Option<(u64, String)>,
}

impl Class {
    fn add(&mut self, row: u64, cell: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| (row, crate::words::truncated(cell)));
    }
}

const CLASSES: usize = 8;
const PLAIN: usize = 0;
const LOOSE: usize = 1; // separators or a currency: plain numbers may stand beside them
const PERCENT: usize = 2;
const TEXT: usize = 3;
const DATE: usize = 4;
const DAY_FIRST: usize = 5;
const MONTH_FIRST: usize = 6;
const EITHER_FIRST: usize = 7; // the third of April or the fourth of March
const DATES: [usize; 4] = [DATE, DAY_FIRST, MONTH_FIRST, EITHER_FIRST];

/// What a column holds, judged by its first cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// No cell has a value.
    Empty,
    /// Numbers, all in this notation.
    Numbers(Notation),
    /// Text; `odd` is the first cell that is none where nearly all are numbers, `comma` the first one with a
    /// decimal comma where all would be numbers with it, `date` one of them where all would be dates if somebody
    /// said which of day and month comes first in each.
    Text { odd: Option<(u64, String)>, comma: Option<(u64, String)>, date: Option<(u64, String)> },
}

/// A column of text that has this many numbers for every other cell was probably meant to hold numbers.
const NEARLY_ALL: u64 = 9;

impl Sample {
    /// Takes note of a cell that has a value.
    pub(crate) fn add(&mut self, row: u64, cell: &str, decimal: Decimal) {
        // Plain numbers are the common case.
        let plain = (decimal == Decimal::Point && cell.parse::<f64>().is_ok()).then_some(Notation::Plain);
        let class = match plain.or_else(|| notation(cell, decimal)) {
            Some(Notation::Plain) => PLAIN,
            Some(Notation::Grouped) => LOOSE,
            Some(Notation::Currency(symbol)) => {
                let first = self.symbol.get_or_insert_with(|| symbol.clone());
                if *first == symbol { LOOSE } else { TEXT }
            }
            Some(Notation::Percent) => PERCENT,
            Some(Notation::Date(DateOrder::YearFirst)) => DATE,
            Some(Notation::Date(_)) => {
                let reads = |order| dates::parse(cell, order).is_some();
                match (reads(DateOrder::DayFirst), reads(DateOrder::MonthFirst)) {
                    (true, true) => EITHER_FIRST,
                    (true, false) => DAY_FIRST,
                    (false, _) => MONTH_FIRST,
                }
            }
            None => TEXT,
        };
        self.classes[class].add(row, cell);
        if class == TEXT && self.texts.len() < TEXTS && !self.texts.iter().any(|t| t == cell) {
            self.texts.push(crate::words::truncated(cell));
        }
        if class != PLAIN
            && decimal == Decimal::Point
            && cell.contains(',')
            && !matches!(notation(cell, Decimal::Comma), None | Some(Notation::Date(_)))
        {
            self.comma.add(row, cell);
            self.commas[class] += 1;
        }
    }

    /// The first few different texts that are neither numbers nor dates, as they are written.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.texts.clone()
    }

    fn counts(&self) -> Counts {
        Counts(std::array::from_fn(|c| [self.classes[c].count - self.commas[c], self.commas[c]]))
    }

    /// Whether the column would be taken for something else if one of its cells were written as another one is, were not there,
    /// or were there twice: who knows the others then sees from what it was taken for how that one is written.
    pub(crate) fn hangs_on_one(&self) -> bool {
        let counts = self.counts();
        let now = counts.guess();
        // Without any cell nothing is guessed, and other files decide.
        counts.neighbours().any(|other| other.guess() != now && other.guess() != Guess::Empty)
    }

    pub(crate) fn verdict(self) -> Verdict {
        let counts = self.counts();
        let members: &[usize] = match counts.guess() {
            Guess::Empty => return Verdict::Empty,
            Guess::Numbers => {
                let separated = counts.of(LOOSE) > 0;
                return Verdict::Numbers(match self.symbol {
                    Some(symbol) => Notation::Currency(symbol),
                    None if separated => Notation::Grouped,
                    None => Notation::Plain,
                });
            }
            Guess::Percent => return Verdict::Numbers(Notation::Percent),
            Guess::Dates(order) => return Verdict::Numbers(Notation::Date(order)),
            Guess::AnyOrder => {
                // Of several orders a cell of the rarest, which is the one to look for.
                let there = DATES.iter().map(|c| &self.classes[*c]).filter(|c| c.count > 0);
                let date = there.min_by_key(|c| c.count).and_then(|c| c.first.clone());
                return Verdict::Text { odd: None, comma: None, date };
            }
            Guess::Text { .. } => counts.largest_family().1,
        };
        let Guess::Text { odd: nearly_all, comma } = counts.guess() else { return Verdict::Empty };
        let outside = self.classes.iter().enumerate().filter(|(class, _)| !members.contains(class));
        let odd = outside.filter_map(|(_, c)| c.first.clone()).min_by_key(|(row, _)| *row);
        let comma = self.comma.first.filter(|_| comma);
        Verdict::Text { odd: odd.filter(|_| nearly_all), comma, date: None }
    }
}

/// What a column is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guess {
    Empty,
    Numbers,
    Percent,
    Dates(DateOrder),
    /// Dates of which none tells whether the day or the month comes first, or that do so in several orders.
    AnyOrder,
    /// With `odd` nearly all are numbers, with `comma` all would be with a decimal comma: both are refused.
    Text {
        odd: bool,
        comma: bool,
    },
}

/// Cells of each class, those that would be numbers with a decimal comma apart.
#[derive(Debug, Clone, Copy)]
struct Counts([[u64; 2]; CLASSES]);

impl Counts {
    fn of(&self, class: usize) -> u64 {
        self.0[class].iter().sum()
    }

    /// The largest number of cells that can be read as numbers together, and their classes.
    fn largest_family(&self) -> (u64, &'static [usize]) {
        let either = self.of(EITHER_FIRST);
        let families: [(u64, &[usize]); 5] = [
            (self.of(DAY_FIRST) + either, &[DAY_FIRST, EITHER_FIRST]),
            (self.of(MONTH_FIRST) + either, &[MONTH_FIRST, EITHER_FIRST]),
            (self.of(PLAIN) + self.of(LOOSE), &[PLAIN, LOOSE]),
            (self.of(PERCENT), &[PERCENT]),
            (self.of(DATE), &[DATE]),
        ];
        families.into_iter().max_by_key(|f| f.0).unwrap_or((0, &[]))
    }

    fn guess(&self) -> Guess {
        let total: u64 = self.0.iter().flatten().sum();
        let (best, members) = self.largest_family();
        match members {
            _ if total == 0 => Guess::Empty,
            [PERCENT] if best == total => Guess::Percent,
            _ if self.of(EITHER_FIRST) == total => Guess::AnyOrder,
            [DATE] if best == total => Guess::Dates(DateOrder::YearFirst),
            [DAY_FIRST, _] if best == total => Guess::Dates(DateOrder::DayFirst),
            [MONTH_FIRST, _] if best == total => Guess::Dates(DateOrder::MonthFirst),
            _ if best == total => Guess::Numbers,
            _ => {
                let commas: u64 = self.0.iter().map(|c| c[1]).sum();
                let odd = best >= NEARLY_ALL * (total - best);
                if !odd && DATES.iter().map(|c| self.of(*c)).sum::<u64>() == total {
                    return Guess::AnyOrder;
                }
                Guess::Text { odd, comma: commas > 0 && commas + self.of(PLAIN) == total }
            }
        }
    }

    /// The same with one cell fewer, one more like those that are there, or one written like another.
    fn neighbours(self) -> impl Iterator<Item = Self> {
        let there = (0..2 * CLASSES).map(|k| (k / 2, k % 2)).filter(move |(c, k)| self.0[*c][*k] > 0);
        let with = move |more: Option<(usize, usize)>, fewer: Option<(usize, usize)>| {
            let mut counts = self;
            more.into_iter().for_each(|(c, k)| counts.0[c][k] += 1);
            fewer.into_iter().for_each(|(c, k)| counts.0[c][k] -= 1);
            counts
        };
        let others = there.clone();
        there.flat_map(move |a| {
            let moved = others.clone().map(move |b| with(Some(b), Some(a)));
            moved.chain([with(Some(a), None), with(None, Some(a))])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(cell: &str, decimal: Decimal) -> Option<(Notation, f64)> {
        let notation = notation(cell, decimal)?;
        let x = value(cell, &notation, decimal)?;
        Some((notation, x))
    }

    /// Oracle: the column with every cell left out, doubled or replaced by another one, judged anew.
    #[test]
    fn a_guess_that_one_cell_decides_is_noticed() {
        let judged = |cells: &[&str]| {
            let mut sample = Sample::default();
            cells.iter().enumerate().for_each(|(i, cell)| sample.add(i as u64, cell, Decimal::Point));
            let hangs = sample.hangs_on_one();
            let refused = |v: &Option<(u64, String)>| v.is_some();
            let verdict = match sample.verdict() {
                Verdict::Empty => 0,
                Verdict::Numbers(Notation::Date(order)) => 20 + order as usize,
                Verdict::Numbers(Notation::Percent) => 2,
                Verdict::Numbers(_) => 3,
                Verdict::Text { date: Some(_), .. } => 10,
                Verdict::Text { odd, comma, date: None } => {
                    4 + usize::from(refused(&odd)) + 2 * usize::from(refused(&comma))
                }
            };
            (verdict, hangs)
        };
        let words =
            ["1", "2,000", "$3", "4%", "2020-01-05", "x", "1,5", "29.02.2024", "03/04/2024", "12/31/2023"];
        let mut hanging = 0;
        for (a, b) in (0..words.len()).flat_map(|a| (0..words.len()).map(move |b| (a, b))) {
            for many in [0, 1, 2, 8, 9, 10, 17, 18, 19] {
                for few in [0, 1, 2] {
                    let cells = [vec![words[a]; many], vec![words[b]; few]].concat();
                    let (now, hangs) = judged(&cells);
                    let differs = (0..cells.len()).any(|i| {
                        let mut fewer = cells.clone();
                        fewer.remove(i);
                        let mut more = cells.clone();
                        more.push(cells[i]);
                        let other = |j: usize| {
                            let mut moved = cells.clone();
                            moved[i] = cells[j];
                            moved
                        };
                        [fewer, more]
                            .into_iter()
                            .chain((0..cells.len()).map(other))
                            .any(|n| judged(&n).0 != now && judged(&n).0 != 0)
                    });
                    assert_eq!(hangs, differs, "{cells:?}");
                    hanging += usize::from(hangs);
                }
            }
        }
        assert!(hanging > 50, "{hanging}");
    }

    #[test]
    fn notations_are_told_apart() {
        use Notation::*;
        let money = |symbol: &str| Currency(symbol.into());
        let cases = [
            ("1234.5", Plain, 1234.5),
            ("-1e3", Plain, -1000.0),
            ("1,234", Grouped, 1234.0),
            ("-12,345,678.25", Grouped, -12_345_678.25),
            ("1 234", Grouped, 1234.0),
            ("1\u{a0}234.5", Grouped, 1234.5),
            ("1'234'567", Grouped, 1_234_567.0),
            ("\u{2212}5", Grouped, -5.0),
            ("\u{2212}1,234.5", Grouped, -1234.5),
            ("(1,234.50)", Grouped, -1234.5),
            ("(0.5)", Grouped, -0.5),
            ("\u{2212}$5", money("$"), -5.0),
            ("\u{2212}5 %", Percent, -5.0),
            ("$1,200.50", money("$"), 1200.5),
            ("-$5", money("$"), -5.0),
            ("($5.25)", money("$"), -5.25),
            ("12 €", money("€"), 12.0),
            ("EUR 7", money("EUR"), 7.0),
            ("R$ 3", money("R$"), 3.0),
            ("12.5%", Percent, 12.5),
            ("1,200 %", Percent, 1200.0),
            ("1970-01-02", Date(DateOrder::YearFirst), 1.0),
            ("02.01.1970", Date(DateOrder::DayFirst), 1.0),
            ("31/12/1970", Date(DateOrder::DayFirst), 364.0),
            ("12/31/1970", Date(DateOrder::MonthFirst), 364.0),
        ];
        for (cell, notation, x) in cases {
            assert_eq!(read(cell, Decimal::Point), Some((notation, x)), "{cell}");
        }
        let cases = [
            ("1234,5", Plain, 1234.5),
            ("7", Plain, 7.0),
            ("1.234", Grouped, 1234.0),
            ("1.234.567,5", Grouped, 1_234_567.5),
            ("1.200,50 €", money("€"), 1200.5),
            ("12,5%", Percent, 12.5),
        ];
        for (cell, notation, x) in cases {
            assert_eq!(read(cell, Decimal::Comma), Some((notation, x)), "{cell}");
        }
        for cell in [
            "1,23,456", "1,2345", "12,34", ",123", "1,234,", "a1", "1-2", "%", "$", "5$5", "1,234e3", "( 5",
            "12 inf%",
        ] {
            assert_eq!(read(cell, Decimal::Point), None, "{cell}");
        }
        for cell in ["1.5", "1,5,5", "1.23,5", "inf", "nan", "1.234.5"] {
            assert_eq!(read(cell, Decimal::Comma), None, "{cell}");
        }
    }

    fn judged(cells: &[&str], decimal: Decimal) -> Verdict {
        let mut sample = Sample::default();
        cells.iter().enumerate().for_each(|(row, cell)| sample.add(row as u64, cell, decimal));
        sample.verdict()
    }

    #[test]
    fn a_column_is_judged_as_a_whole() {
        use Notation::Date;
        let point = |cells: &[&str]| judged(cells, Decimal::Point);
        assert_eq!(point(&[]), Verdict::Empty);
        assert_eq!(point(&["1", "2.5"]), Verdict::Numbers(Notation::Plain));
        assert_eq!(point(&["1", "2,500"]), Verdict::Numbers(Notation::Grouped));
        assert_eq!(point(&["1", "2,500", "$3"]), Verdict::Numbers(Notation::Currency("$".into())));
        assert_eq!(point(&["2024-01-01", "2024-01-01T12:00"]), Verdict::Numbers(Date(DateOrder::YearFirst)));
        // One cell decides for the column; a point means the day, as nobody writes months first with it.
        assert_eq!(point(&["03/04/2021", "25/12/2020"]), Verdict::Numbers(Date(DateOrder::DayFirst)));
        assert_eq!(point(&["03/04/2021", "12/25/2020"]), Verdict::Numbers(Date(DateOrder::MonthFirst)));
        assert_eq!(point(&["03.04.2021", "05.01.2022"]), Verdict::Numbers(Date(DateOrder::DayFirst)));
        let either = Verdict::Text { odd: None, comma: None, date: Some((0, "03/04/2021".into())) };
        assert_eq!(point(&["03/04/2021", "01/02/2021"]), either);
        // two orders in one column: asked about
        assert!(matches!(point(&["25/12/2020", "12/25/2020"]), Verdict::Text { date: Some(_), .. }));
        // A share without its sign, two currencies, a number among dates: nobody knows what they mean.
        for mixed in [["1", "2%"], ["$1", "€2"], ["2024-01-01", "5"]] {
            assert!(matches!(point(&mixed), Verdict::Text { comma: None, .. }), "{mixed:?}");
        }
        let comma = Verdict::Text { odd: None, comma: Some((1, "3,14".into())), date: None };
        assert_eq!(point(&["2", "3,14"]), comma);
        assert_eq!(judged(&["2", "3,14"], Decimal::Comma), Verdict::Numbers(Notation::Plain));
        let mut days = vec!["2024-01-01"; 9];
        days.insert(4, "unknown");
        assert_eq!(point(&days), Verdict::Text { odd: Some((4, "unknown".into())), comma: None, date: None });
    }

    /// Oracle: digits put into groups one by one.
    fn in_groups(whole: u64, separator: char) -> String {
        let digits = whole.to_string();
        let mut text = String::new();
        for (i, c) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(separator);
            }
            text.push(c);
        }
        text
    }

    proptest! {
        #[test]
        fn groups_and_commas_are_read_back(
            whole in 0_u64..1_000_000_000_000, cents in 0_u32..100, negative: bool, symbol in 0..SYMBOLS.len(),
        ) {
            let sign = if negative { "-" } else { "" };
            let x: f64 = format!("{sign}{whole}.{cents:02}").parse().unwrap();
            for (decimal, point, separator) in [(Decimal::Point, '.', ','), (Decimal::Comma, ',', '.')] {
                let text = format!("{sign}{}{point}{cents:02}", in_groups(whole, separator));
                prop_assert_eq!(read(&text, decimal).map(|r| r.1), Some(x), "{}", text);
                let bare = format!("{sign}{whole}{point}{cents:02}");
                prop_assert_eq!(read(&bare, decimal), Some((Notation::Plain, x)));
                let percent = read(&format!("{text} %"), decimal);
                prop_assert_eq!(percent, Some((Notation::Percent, x)));
                let money = read(&format!("{text} {}", SYMBOLS[symbol]), decimal);
                prop_assert_eq!(money, Some((Notation::Currency(SYMBOLS[symbol].into()), x)));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,24}", comma: bool) {
            let decimal = if comma { Decimal::Comma } else { Decimal::Point };
            let _ = read(&text, decimal);
        }

        #[test]
        fn nearly_numbers_do_not_panic(text in "[0-9.,' %$€e()+-]{0,16}", comma: bool) {
            let decimal = if comma { Decimal::Comma } else { Decimal::Point };
            let _ = read(&text, decimal);
        }
    }
}
