//! A table or figure of a paper beside ours: what was published, what we find, and what explains the difference.

use crate::net::Picture;
use serde::Serialize;

/// Version of `reproduce.json`.
pub const SCHEMA: &str = "leakscope.reproduce/1";

/// One reproduced table or figure.
#[derive(Debug, Clone, Serialize)]
pub struct Reproduction {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the programme.
    pub leakscope: String,
    /// When, in UTC.
    pub created: String,
    /// The name on the command line.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Paper and place in it.
    pub source: String,
    /// Whether the data were made up: published numbers then say nothing about ours.
    pub synthetic: bool,
    /// What was read or made.
    pub data: Vec<String>,
    /// Numbers, side by side.
    pub rows: Vec<Row>,
    /// Statements of the paper, and whether they hold here.
    pub claims: Vec<Claim>,
    /// How it was done, in sentences.
    pub method: Vec<String>,
    /// The figures; their numbers are in the CSV files.
    pub figures: Vec<Figure>,
    /// Seed of everything random.
    pub seed: u64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// A published number beside ours.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// As printed in the paper; absent where the paper shows a picture only.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// How far ours may lie from the printed number: half a unit of its last digit unless the row says otherwise.
    pub tolerance: Option<f64>,
    /// Whether ours lies within it; absent without a published number or on made-up data.
    pub agrees: Option<bool>,
    /// Whether ours rounds to the printed digits, which a wider tolerance does not ask for; absent where `agrees` is.
    pub to_the_digit: Option<bool>,
    /// What explains a difference, or what should be known.
    pub why: String,
    /// What kind of number ours is.
    pub kind: ClaimKind,
}

/// The kinds of number that a row may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// Computed from model and data.
    Measured,
    /// Proved for every attacker of the stated kind.
    Bound,
    /// What an attack achieved.
    Observed,
}

impl Row {
    /// Ours beside a number printed with `digits` decimals.
    pub fn printed(name: impl Into<String>, paper: f64, digits: i32, ours: f64) -> Self {
        Self::within(name, (paper, digits), 0.0, ours)
    }

    /// Ours beside a number printed with some decimals, with how far they may be apart if that is more than the last of
    /// them allows.
    pub fn within(name: impl Into<String>, (paper, digits): (f64, i32), tolerance: f64, ours: f64) -> Self {
        // A printed digit covers half a unit to either side; the last part is for the rounding of decimals.
        let half = 0.5 * 10_f64.powi(-digits) * (1.0 + 1e-9);
        let tolerance = half.max(tolerance);
        let apart = (ours - paper).abs();
        Self {
            paper: Some(paper),
            tolerance: Some(tolerance),
            agrees: Some(apart <= tolerance),
            to_the_digit: Some(apart <= half),
            ..Self::ours(name, ours)
        }
    }

    /// Ours where the paper prints no number.
    pub fn ours(name: impl Into<String>, ours: f64) -> Self {
        Self {
            name: name.into(),
            paper: None,
            ours,
            tolerance: None,
            agrees: None,
            to_the_digit: None,
            why: String::new(),
            kind: ClaimKind::Measured,
        }
    }

    /// How ours fares, in a word or two; absent where there is nothing to judge by.
    pub fn judged(&self) -> Option<String> {
        Some(match (self.agrees?, self.to_the_digit?) {
            (_, true) => "agrees".into(),
            (true, _) => format!("within {}", crate::format::setting(self.tolerance?)),
            (false, _) => "differs".into(),
        })
    }

    /// What an attack achieved.
    pub fn observed(mut self) -> Self {
        self.kind = ClaimKind::Observed;
        self
    }

    /// What no attacker can exceed.
    pub fn bound(mut self) -> Self {
        self.kind = ClaimKind::Bound;
        self
    }

    /// With an explanation.
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}

/// A statement of a paper, and whether it holds.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// What the paper says.
    pub claim: String,
    /// Whether it holds here.
    pub holds: bool,
    /// What we find.
    pub found: String,
}

impl Claim {
    /// A statement and what we find.
    pub fn new(claim: impl Into<String>, holds: bool, found: impl Into<String>) -> Self {
        Self { claim: claim.into(), holds, found: found.into() }
    }
}

/// A figure of one or several panels, each of which is also a file of its own.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Start of the names of its files.
    pub file: String,
    /// Heading.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// The panels.
    #[serde(skip)]
    pub panels: Vec<Panel>,
}

/// Title of an axis and whether it is logarithmic.
#[derive(Debug, Clone)]
pub struct AxisTitle {
    /// Title with its unit.
    pub title: String,
    /// Logarithmic?
    pub log: bool,
}

impl AxisTitle {
    /// A linear axis.
    pub fn linear(title: impl Into<String>) -> Self {
        Self { title: title.into(), log: false }
    }

    /// A logarithmic axis.
    pub fn log(title: impl Into<String>) -> Self {
        Self { title: title.into(), log: true }
    }
}

/// A named list of points.
#[derive(Debug, Clone)]
pub struct PointSeries {
    /// Name in the legend.
    pub name: String,
    /// Points x, y.
    pub points: Vec<[f64; 2]>,
    /// Ends of the interval of each point; empty where there are none.
    pub intervals: Vec<[f64; 2]>,
}

impl PointSeries {
    /// Points without intervals.
    pub fn new(name: impl Into<String>, points: Vec<[f64; 2]>) -> Self {
        Self { name: name.into(), points, intervals: vec![] }
    }
}

/// A picture and what is written under it, with the numbers behind both.
#[derive(Debug, Clone)]
pub struct Captioned {
    /// The picture.
    pub picture: Picture,
    /// The text.
    pub caption: String,
    /// Place of the record in the published file, from 0.
    pub record: usize,
    /// Its class.
    pub class: String,
    /// What the value is, and the value; absent for an input that is only shown.
    pub value: Option<(&'static str, f64)>,
    /// What a map shows of every pixel.
    pub pixels: Option<Pixels>,
}

/// Values of the pixels of a map.
#[derive(Debug, Clone)]
pub struct Pixels {
    /// Pixels in a row.
    pub width: usize,
    /// Values, row by row.
    pub values: Vec<f64>,
}

/// One part of a figure.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Heading.
    pub title: String,
    /// What is drawn.
    pub content: Content,
}

/// What a panel draws.
#[derive(Debug, Clone)]
pub enum Content {
    /// Curves over one pair of axes, with named dotted levels.
    Curves {
        /// Horizontal axis.
        x: AxisTitle,
        /// Vertical axis.
        y: AxisTitle,
        /// The curves.
        series: Vec<PointSeries>,
        /// Dotted levels.
        levels: Vec<(f64, String)>,
    },
    /// Points over one pair of axes; a `line` (if any) is drawn through them.
    Dots {
        /// Horizontal axis.
        x: AxisTitle,
        /// Vertical axis.
        y: AxisTitle,
        /// The points.
        series: Vec<PointSeries>,
        /// Ends of a straight line.
        line: Option<[[f64; 2]; 2]>,
        /// Notes at places.
        notes: Vec<([f64; 2], String)>,
    },
    /// Outlines of histograms over common bins, with the mean of each marked.
    Histograms {
        /// Horizontal axis.
        x: AxisTitle,
        /// Name, values.
        series: Vec<(String, Vec<f64>)>,
    },
    /// Rows of pictures.
    Pictures {
        /// Name of each row, its pictures.
        rows: Vec<(String, Vec<Captioned>)>,
    },
    /// A map of values at least 0 over a rectangle, with points on it.
    Map {
        /// Horizontal axis.
        x: AxisTitle,
        /// Vertical axis.
        y: AxisTitle,
        /// Ends of the rectangle: x from, x to, y from, y to.
        within: [f64; 4],
        /// Rows and columns of the grid.
        shape: [usize; 2],
        /// Values, top row first.
        values: Vec<f64>,
        /// Points.
        series: Vec<PointSeries>,
        /// Ends of a straight line.
        line: Option<[[f64; 2]; 2]>,
    },
}

/// How many published numbers ours agree with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// To the digits they are printed with.
    pub to_the_digit: usize,
    /// Within the tolerance of their row, which may be wider.
    pub agree: usize,
    /// Of how many.
    pub of: usize,
}

impl Reproduction {
    /// How the published numbers fare.
    pub fn score(&self) -> Score {
        let count = |of: fn(&Row) -> Option<bool>| self.rows.iter().filter(|r| of(r) == Some(true)).count();
        Score {
            to_the_digit: count(|r| r.to_the_digit),
            agree: count(|r| r.agrees),
            of: self.rows.iter().filter(|r| r.agrees.is_some()).count(),
        }
    }

    /// Marks the data as made up: nothing is judged against the paper.
    pub fn on_made_up_data(mut self) -> Self {
        self.synthetic = true;
        self.rows.iter_mut().for_each(|r| (r.agrees, r.to_the_digit) = (None, None));
        self
    }
}

impl Figure {
    /// Name of the files of panel `k`, without their ending.
    pub fn stem(&self, k: usize) -> String {
        match self.panels.len() {
            0 | 1 => self.file.clone(),
            _ => format!("{}{}", self.file, (b'a' + (k % 26) as u8) as char),
        }
    }
}

impl From<&crate::figure::Figure> for Panel {
    /// Curves of any document as a panel.
    fn from(f: &crate::figure::Figure) -> Self {
        let axis = |a: &crate::figure::Axis| AxisTitle { title: a.title.clone(), log: a.log };
        let series = |s: &crate::figure::Series| PointSeries {
            name: match s.claim {
                crate::figure::Claim::Observed => format!("{} (observed)", s.name),
                crate::figure::Claim::Bound | crate::figure::Claim::Measured => s.name.clone(),
            },
            points: s.points.iter().map(|p| [p.x, p.y]).collect(),
            intervals: s.points.iter().filter_map(|p| p.interval).collect(),
        };
        Self {
            title: f.title.clone(),
            content: Content::Curves {
                x: axis(&f.x),
                y: axis(&f.y),
                series: f.series.iter().take(8).map(series).collect(),
                levels: f.levels.iter().map(|l| (l.value, l.name.clone())).collect(),
            },
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

impl Panel {
    /// The pixels of the panel's maps as CSV, where it has any.
    pub fn pixels_csv(&self) -> Option<String> {
        let Content::Pictures { rows } = &self.content else { return None };
        let mut out = String::new();
        for (name, pictures) in rows {
            for p in pictures {
                let Some(pixels) = &p.pixels else { continue };
                for (i, v) in pixels.values.iter().enumerate() {
                    let (y, x) = (i / pixels.width.max(1), i % pixels.width.max(1));
                    out.push_str(&format!(
                        "{},{},{},{y},{x},{v}\n",
                        quoted(name),
                        quoted(&p.caption),
                        p.record
                    ));
                }
            }
        }
        (!out.is_empty()).then(|| format!("row,caption,record,y,x,value\n{out}"))
    }

    /// The numbers of the panel as CSV.
    pub fn csv(&self) -> String {
        let mut out = String::new();
        let points = |out: &mut String, series: &[PointSeries]| {
            out.push_str("series,x,y,low,high\n");
            for s in series {
                for (k, [x, y]) in s.points.iter().enumerate() {
                    let ends = s.intervals.get(k).map_or_else(|| ",".into(), |[a, b]| format!("{a},{b}"));
                    out.push_str(&format!("{},{x},{y},{ends}\n", quoted(&s.name)));
                }
            }
        };
        match &self.content {
            Content::Curves { series, .. } | Content::Dots { series, .. } => points(&mut out, series),
            Content::Histograms { series, .. } => {
                out.push_str("series,value\n");
                for (name, values) in series {
                    values.iter().for_each(|v| out.push_str(&format!("{},{v}\n", quoted(name))));
                }
            }
            Content::Pictures { rows } => {
                out.push_str("row,place,caption,record,class,quantity,value\n");
                for (name, pictures) in rows {
                    for (k, p) in pictures.iter().enumerate() {
                        let value = p
                            .value
                            .as_ref()
                            .map_or_else(|| ",".into(), |(q, v)| format!("{},{v}", quoted(q)));
                        out.push_str(&format!(
                            "{},{},{},{},{},{value}\n",
                            quoted(name),
                            k + 1,
                            quoted(&p.caption),
                            p.record,
                            quoted(&p.class)
                        ));
                    }
                }
            }
            Content::Map { within, shape, values, .. } => {
                out.push_str("x,y,value\n");
                let [x0, x1, y0, y1] = *within;
                let [rows, columns] = *shape;
                for (k, v) in values.iter().enumerate() {
                    let (i, j) = (k / columns.max(1), k % columns.max(1));
                    let x = x0 + (x1 - x0) * (j as f64 + 0.5) / columns.max(1) as f64;
                    let y = y1 - (y1 - y0) * (i as f64 + 0.5) / rows.max(1) as f64;
                    out.push_str(&format!("{x},{y},{v}\n"));
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_digits_decide_whether_numbers_agree() {
        for (paper, digits, ours, agrees) in [
            (0.040, 3, 0.0405, true),
            (0.040, 3, 0.0395, true),
            (0.040, 3, 0.04051, false),
            (99.8, 1, 99.85, true),
            (99.8, 1, 99.9, false),
        ] {
            assert_eq!(Row::printed("x", paper, digits, ours).agrees, Some(agrees), "{paper} {ours}");
        }
        assert_eq!(Row::ours("x", 1.0).agrees, None);
        // A wider tolerance is agreement, but not to the digit.
        let row = Row::within("x", (99.8, 1), 0.1, 99.716);
        assert_eq!((row.agrees, row.to_the_digit), (Some(true), Some(false)));
        assert_eq!(row.judged().unwrap(), "within 0.1");
        assert_eq!(Row::within("x", (99.8, 1), 0.1, 99.76).to_the_digit, Some(true));
        // A tolerance never makes a printed number narrower than its last digit.
        assert_eq!(Row::within("x", (100.0, 0), 0.1, 99.6).agrees, Some(true));
    }

    #[test]
    fn every_panel_has_its_numbers() {
        let axis = || AxisTitle::linear("x");
        let series =
            PointSeries { name: "a \"b\"".into(), points: vec![[1.0, 2.0]], intervals: vec![[1.5, 2.5]] };
        let panel = |content| Panel { title: "t".into(), content };
        let curves = Content::Curves { x: axis(), y: axis(), series: vec![series], levels: vec![] };
        assert_eq!(panel(curves).csv(), "series,x,y,low,high\n\"a \"\"b\"\"\",1,2,1.5,2.5\n");
        let map = Content::Map {
            x: axis(),
            y: axis(),
            within: [0.0, 2.0, 0.0, 1.0],
            shape: [1, 2],
            values: vec![3.0, 4.0],
            series: vec![],
            line: None,
        };
        assert_eq!(panel(map).csv(), "x,y,value\n0.5,0.5,3\n1.5,0.5,4\n");
        let cell = |caption: &str, value, pixels| Captioned {
            picture: Picture::image([1, 2, 1], &[0.0, 1.0], [0.0, 1.0]).unwrap(),
            caption: caption.into(),
            record: 7,
            class: "digit 3".into(),
            value,
            pixels,
        };
        let third = 1.0 / 3.0;
        let map = Some(Pixels { width: 2, values: vec![0.25, third] });
        let row = vec![cell("input", None, None), cell("0.333", Some(("η", third)), map)];
        let pictures = panel(Content::Pictures { rows: vec![("least".into(), row)] });
        assert_eq!(
            pictures.csv(),
            "row,place,caption,record,class,quantity,value\n\"least\",1,\"input\",7,\"digit 3\",,\n\
             \"least\",2,\"0.333\",7,\"digit 3\",\"η\",0.3333333333333333\n"
        );
        assert_eq!(
            pictures.pixels_csv().unwrap(),
            "row,caption,record,y,x,value\n\"least\",\"0.333\",7,0,0,0.25\n\"least\",\"0.333\",7,0,1,0.3333333333333333\n"
        );
        let histogram = Content::Histograms { x: axis(), series: vec![("c".into(), vec![0.25])] };
        assert_eq!(panel(histogram.clone()).pixels_csv(), None);
        assert_eq!(panel(histogram).csv(), "series,value\n\"c\",0.25\n");
    }
}
