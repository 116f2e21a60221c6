//! What one drawing shows: curves, points, outlines of histograms, pictures or a map, with its numbers as CSV.

use super::picture::Picture;
use super::{Axis, Claim, Figure, Series};

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

impl From<&Figure> for Panel {
    /// Curves of any document as a panel.
    fn from(f: &Figure) -> Self {
        let axis = |a: &Axis| AxisTitle { title: a.title.clone(), log: a.log };
        let series = |s: &Series| PointSeries {
            name: match s.claim {
                Claim::Observed => format!("{} (observed)", s.name),
                Claim::Bound | Claim::Measured => s.name.clone(),
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
