//! The page of a reproduction: pictures first, then the numbers side by side, then how it was done.

use crate::document::reproduction::{Figure, Reproduction, Score};
use crate::figure::Claim;
use crate::figure::panel::Panel;
use crate::format;
use crate::render::html::chart::{Drawn, legend, panel};
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{card, header, judged, list, narrow, shell, subheading, tile, tiles};
use crate::render::html::table::{Cell, numbers, table, words};
use crate::verdict::of_reproduction;

/// A reproduction as one self-contained HTML page.
pub fn reproduction_page(r: &Reproduction) -> String {
    let body = header(&format!("Leakscope reproduce · {}", r.name), &r.title, &r.source)
        .and(judged(&of_reproduction(r)))
        .and(main_numbers(r))
        .and(r.figures.iter().map(figure).collect())
        .and(side_by_side(r))
        .and(claims(r))
        .and(method(r));
    shell(&format!("Leakscope reproduce: {}", r.title), &body)
}

fn main_numbers(r: &Reproduction) -> Html {
    let Score { to_the_digit, of, .. } = r.score();
    let mut all = vec![];
    if of > 0 {
        all.push(tile(&format!("{to_the_digit} of {of}"), "published numbers agree to their printed digits"));
    }
    if !r.claims.is_empty() {
        let held = r.claims.iter().filter(|c| c.holds).count();
        all.push(tile(&format!("{held} of {}", r.claims.len()), "statements of the paper hold here"));
    }
    all.push(tile(&format::seconds(r.seconds), "to compute, reading the data included"));
    tiles(all)
}

fn figure(f: &Figure) -> Html {
    let mut panels: Vec<Html> = f.panels.iter().enumerate().map(|(k, p)| one(&f.stem(k), p)).collect();
    let body = match panels.len() {
        1 => narrow(panels.remove(0)),
        _ => fill("<div class=\"two\">{}</div>", &[&panels.into_iter().collect::<Html>()]),
    };
    card(&f.file, &f.title, &[], f.caption.as_str(), body)
}

fn one(stem: &str, p: &Panel) -> Html {
    let Drawn { names, svg } = panel(p);
    let heading = if p.title.is_empty() { Html::new() } else { subheading(&p.title) };
    let file = |end: &'static str| {
        let name = format!("{stem}{end}");
        fill("<a href=\"{}\">{}</a>", &[&name, &name])
    };
    let pixels = match p.pixels_csv() {
        Some(_) => Html::literal(", ").and(file("-pixels.csv")),
        None => Html::new(),
    };
    let legend = legend(names.iter().map(|(slot, name)| (*slot, name.as_str())));
    fill(
        "<div>{}{}{}<p class=\"say\">as files: {}, {}{}</p></div>",
        &[&heading, &legend, &svg, &file(".svg"), &file(".csv"), &pixels],
    )
}

fn side_by_side(r: &Reproduction) -> Html {
    if r.rows.is_empty() {
        return Html::new();
    }
    let published = r.rows.iter().any(|row| row.paper.is_some());
    let explained = r.rows.iter().any(|row| !row.why.is_empty());
    let rows: Vec<Vec<Cell>> = r
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![Cell::name(&row.name)];
            if published {
                cells.push(Cell::maybe(row.paper));
            }
            cells.push(Cell::number(row.ours));
            if published {
                cells.push(Cell::maybe(row.paper.map(|p| row.ours - p)));
                cells.push(Cell::text(&row.judged().unwrap_or_else(|| "–".into())));
            }
            if explained {
                cells.push(Cell::text(&row.why));
            }
            cells
        })
        .collect();
    let mut heads = vec![words("what")];
    if published {
        heads.push(numbers("paper"));
    }
    heads.push(numbers("ours"));
    if published {
        heads.extend([numbers("difference"), words("as printed")]);
    }
    if explained {
        heads.push(words("explanation"));
    }
    let body = table("wrap beside", "Published numbers and ours", &heads, &rows);
    let heading = if published { "Side by side" } else { "In numbers" };
    let lead = if published {
        "A number agrees where ours lies within half a unit of its last printed digit; where more is allowed, the table \
         says how much."
    } else {
        "The paper shows a picture and prints no number."
    };
    let has = |claim: &Claim| r.rows.iter().any(|row| row.kind() == *claim);
    let kinds: Vec<Claim> =
        [Claim::Measured, Claim::Bound, Claim::Observed].into_iter().filter(has).collect();
    card("numbers", heading, &kinds, lead, body)
}

fn claims(r: &Reproduction) -> Html {
    if r.claims.is_empty() {
        return Html::new();
    }
    let rows: Vec<Vec<Cell>> = r
        .claims
        .iter()
        .map(|c| {
            vec![
                Cell::name(&c.claim),
                Cell::text(if c.holds { "holds" } else { "does not hold" }),
                Cell::text(&c.finding),
            ]
        })
        .collect();
    let heads = [words("the paper says"), words("here"), words("what we find")];
    let body = table("wrap beside", "Statements", &heads, &rows);
    card("claims", "What the paper says, and what we find", &[], "", body)
}

fn method(r: &Reproduction) -> Html {
    let mut sentences = r.method.clone();
    sentences.extend(r.data.iter().map(|d| format!("Data: {d}")));
    sentences.push(format!("Seed {}; Leakscope {}; {}", r.seed, r.leakscope, r.created));
    card("method", "How it was done", &[], "", list(sentences))
}

/// What a drawing needs to look the same outside of the page.
const FILE_STYLE: &str = "svg{--card:#fff;--ink:#1d2327;--dim:#5d6770;--line:#e3e0d8;--acc:#0b6e6e;--warn:#b4451f;\
--c0:#2f7f86;--c1:#d08a2e;--c2:#86aecb;--c3:#94609b;--c4:#7b9a45;--c5:#c0564a;--c6:#4d5f9e;--c7:#a39d93;background:#fff}\
text{fill:var(--dim);font:13px sans-serif}.note{fill:var(--ink);paint-order:stroke;stroke:#fff;stroke-width:4px}\
.grid{stroke:var(--line)}.axis{stroke:var(--dim)}.base{stroke:var(--dim);stroke-dasharray:2 4}\
.mark{stroke:var(--ink);stroke-dasharray:4 3;fill:none}.line{fill:none;stroke-width:2}.line.util{stroke:var(--ink)}\
.dots{fill:none;stroke-width:5;stroke-linecap:round;opacity:.6}.dot{stroke:#fff;stroke-width:1}.pixels{image-rendering:pixelated}\
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}.c7{fill:var(--c7)}\
.c0line{stroke:var(--c0)}.c1line{stroke:var(--c1)}.c2line{stroke:var(--c2)}.c3line{stroke:var(--c3)}.c4line{stroke:var(--c4)}.c5line{stroke:var(--c5)}.c6line{stroke:var(--c6)}.c7line{stroke:var(--c7)}";

/// A panel as an SVG file of its own, with its legend inside.
pub fn panel_svg(p: &Panel) -> String {
    let Drawn { names, svg } = panel(p);
    let svg = svg.into_string();
    let Some((view, rest)) = view_box(&svg) else { return svg };
    let legend_height = if names.len() < 2 { 0.0 } else { 22.0 * names.len() as f64 };
    let legend: Html = names
        .iter()
        .enumerate()
        .filter(|_| legend_height > 0.0)
        .map(|(k, (slot, name))| {
            let y = view[3] + 8.0 + 22.0 * k as f64;
            fill(
                r#"<rect class="c{}" x="58" y="{}" width="12" height="12" rx="3"/><text x="78" y="{}">{}</text>"#,
                &[slot, &y, &(y + 11.0), name],
            )
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-8 -8 {} {}\" \
         width=\"{}\"><style>{FILE_STYLE}</style>{}{}</svg>\n",
        view[2] + 16.0,
        view[3] + legend_height + 24.0,
        2.0 * (view[2] + 16.0),
        rest.trim_end().trim_end_matches("</svg>"),
        legend.into_string()
    )
}

/// The view box of a drawing and what is inside its element.
fn view_box(svg: &str) -> Option<([f64; 4], &str)> {
    let (_, after) = svg.split_once("viewBox=\"")?;
    let (view, _) = after.split_once('"')?;
    let mut each = view.split(' ').map(str::parse::<f64>);
    let mut next = || each.next()?.ok();
    let view = [next()?, next()?, next()?, next()?];
    Some((view, svg.split_once('>')?.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::reproduction::{Row, SCHEMA};

    fn page(rows: Vec<Row>) -> String {
        reproduction_page(&Reproduction {
            schema: SCHEMA.into(),
            leakscope: "0".into(),
            created: "2026-01-01T00:00:00Z".into(),
            name: "n".into(),
            title: "t".into(),
            source: "s".into(),
            synthetic: false,
            data: vec![],
            rows,
            claims: vec![],
            method: vec![],
            figures: vec![],
            seed: 1,
            seconds: 1.0,
        })
    }

    #[test]
    fn what_is_within_a_wider_tolerance_does_not_agree_to_the_digit() {
        let exact = || Row::printed("a", 0.040, 3, 0.0401);
        let near = || Row::within("b", (99.8, 1), 0.1, 99.716);
        let other = || Row::printed("c", 0.26, 2, 0.247);
        let html = page(vec![exact(), near(), other()]);
        assert!(html.contains(
            "1 of 3 published numbers agree with ours to the digits they are printed with, 1 more within the tolerance of \
             their row; what explains the others stands beside them."
        ));
        assert!(
            html.contains(">within 0.1<")
                && html.contains(">differs<")
                && html.contains("Reproduced in part")
        );
        let html = page(vec![exact(), near()]);
        assert!(
            html.contains("1 more within the tolerance of their row.")
                && !html.contains("explains the others")
        );
        assert!(page(vec![exact()]).contains("The published number agrees with ours, to the digits"));
    }
}
