//! The page of a reproduction: pictures first, then the numbers side by side, then how it was done.

use super::head::tile;
use super::shell;
use crate::chart::{names, panel, patterns};
use crate::format;
use crate::html::{Cell, Kind, card, escape, list, numbers, table, words};
use crate::reproduction::{ClaimKind, Figure, Panel, Reproduction, Score};

/// A reproduction as one self-contained HTML page.
pub fn reproduction_page(r: &Reproduction) -> String {
    let (class, level, said) = verdict(r);
    let said: String = said.iter().map(|s| format!("<p>{}</p>\n", escape(s))).collect();
    let figures: String = r.figures.iter().map(figure).collect();
    let body = format!(
        "{}<main>\n<header><div class=\"top\"><p class=\"eyebrow\">Leakscope reproduce · {}</p></div><h1>{}</h1>\
         <p class=\"meta\">{}</p></header>\n<section class=\"verdict {class}\" aria-label=\"Verdict\">\
         <p class=\"level\">{level}</p>\n{said}</section>\n{}{figures}{}{}{}</main>\n",
        patterns(),
        escape(&r.name),
        escape(&r.title),
        escape(&r.source),
        tiles(r),
        side_by_side(r),
        claims(r),
        method(r),
    );
    shell(&format!("Leakscope reproduce: {}", r.title), &body)
}

fn verdict(r: &Reproduction) -> (&'static str, &'static str, Vec<String>) {
    let Score { to_the_digit, agree, of } = r.score();
    let failed: Vec<&str> = r.claims.iter().filter(|c| !c.holds).map(|c| c.claim.as_str()).collect();
    let mut said = vec![];
    if !r.claims.is_empty() {
        let held = r.claims.len() - failed.len();
        said.push(match failed.as_slice() {
            [] => all_hold(r.claims.len()),
            [one] => format!(
                "{held} of {} statements of the paper hold here; this one does not: {one}",
                r.claims.len()
            ),
            _ => format!(
                "{held} of {} statements of the paper hold here; the others are below.",
                r.claims.len()
            ),
        });
    }
    if r.synthetic {
        said.insert(
            0,
            "The data are made up, of the shape that the paper's have: this shows that the computation runs, and says \
             nothing about the published numbers."
                .into(),
        );
        return ("care", "Made-up data", said);
    }
    if of > 0 {
        said.insert(
            0,
            match (of - to_the_digit, of - agree) {
                (0, _) => agreed(of),
                (_, differ) => {
                    let wider = match agree - to_the_digit {
                        0 => String::new(),
                        n => format!(", {n} more within the tolerance of their row"),
                    };
                    let rest = if differ == 0 { "" } else { "; what explains the others stands beside them" };
                    format!(
                        "{to_the_digit} of {of} published numbers agree with ours to the digits they are printed \
                         with{wider}{rest}."
                    )
                }
            },
        );
    }
    if said.is_empty() {
        said.push("The paper prints no number to compare with; the figures are ours.".into());
    }
    match (agree == of, failed.is_empty()) {
        (true, true) => ("good", "Reproduced", said),
        (true, false) => ("care", "Reproduced, with a reservation", said),
        _ => ("care", "Reproduced in part", said),
    }
}

fn agreed(of: usize) -> String {
    match of {
        1 => "The published number agrees with ours, to the digits it is printed with.".into(),
        _ => format!("All {of} published numbers agree with ours, to the digits they are printed with."),
    }
}

fn all_hold(n: usize) -> String {
    match n {
        1 => "The statement of the paper that was checked holds here.".into(),
        2 => "Both statements of the paper that were checked hold here.".into(),
        _ => format!("All {n} statements of the paper that were checked hold here."),
    }
}

fn tiles(r: &Reproduction) -> String {
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
    format!("<div class=\"tiles n3\">\n{}</div>\n", all.concat())
}

fn figure(f: &Figure) -> String {
    let panels: Vec<String> = f.panels.iter().enumerate().map(|(k, p)| one(&f.stem(k), p)).collect();
    let body = match panels.as_slice() {
        [only] => format!("<div class=\"narrow\">{only}</div>"),
        several => format!("<div class=\"two\">{}</div>", several.concat()),
    };
    card(&escape(&f.file), &escape(&f.title), &[], &escape(&f.caption), &body)
}

fn one(stem: &str, p: &Panel) -> String {
    let drawn = panel(p);
    let heading = if p.title.is_empty() { String::new() } else { format!("<h3>{}</h3>", escape(&p.title)) };
    let stem = escape(stem);
    let pixels = match p.pixels_csv() {
        Some(_) => format!(", <a href=\"{stem}-pixels.csv\">{stem}-pixels.csv</a>"),
        None => String::new(),
    };
    format!(
        "<div>{heading}{}{}<p class=\"say\">as files: <a href=\"{stem}.svg\">{stem}.svg</a>, \
         <a href=\"{stem}.csv\">{stem}.csv</a>{pixels}</p></div>",
        names(&drawn),
        drawn.svg
    )
}

fn side_by_side(r: &Reproduction) -> String {
    if r.rows.is_empty() {
        return String::new();
    }
    let published = r.rows.iter().any(|row| row.paper.is_some());
    let explained = r.rows.iter().any(|row| !row.why.is_empty());
    let rows: Vec<Vec<Cell>> = r
        .rows
        .iter()
        .map(|row| {
            let mut cells = vec![Cell::name(&row.name)];
            if published {
                cells.push(row.paper.map_or_else(|| Cell::text("–"), Cell::number));
            }
            cells.push(Cell::number(row.ours));
            if published {
                cells.push(row.paper.map_or_else(|| Cell::text("–"), |p| Cell::number(row.ours - p)));
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
    let kinds: Vec<Kind> = [
        (ClaimKind::Measured, Kind::Measured),
        (ClaimKind::Bound, Kind::Bound),
        (ClaimKind::Observed, Kind::Observed),
    ]
    .into_iter()
    .filter(|(kind, _)| r.rows.iter().any(|row| row.kind == *kind))
    .map(|(_, tag)| tag)
    .collect();
    card("numbers", heading, &kinds, lead, &body)
}

fn claims(r: &Reproduction) -> String {
    if r.claims.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<Cell>> = r
        .claims
        .iter()
        .map(|c| {
            vec![
                Cell::name(&c.claim),
                Cell::text(if c.holds { "holds" } else { "does not hold" }),
                Cell::text(&c.found),
            ]
        })
        .collect();
    let heads = [words("the paper says"), words("here"), words("what we find")];
    card(
        "claims",
        "What the paper says, and what we find",
        &[],
        "",
        &table("wrap beside", "Statements", &heads, &rows),
    )
}

fn method(r: &Reproduction) -> String {
    let mut said = r.method.clone();
    said.extend(r.data.iter().map(|d| format!("Data: {d}")));
    said.push(format!("Seed {}; Leakscope {}; {}", r.seed, r.leakscope, r.created));
    card("method", "How it was done", &[], "", &list(said))
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
    let drawn = panel(p);
    let Some((view, rest)) = view_box(&drawn.svg) else { return drawn.svg };
    let legend_height = if drawn.names.len() < 2 { 0.0 } else { 22.0 * drawn.names.len() as f64 };
    let mut legend = String::new();
    for (k, (slot, name)) in drawn.names.iter().enumerate().filter(|_| legend_height > 0.0) {
        let y = view[3] + 8.0 + 22.0 * k as f64;
        legend.push_str(&format!(
            r#"<rect class="c{slot}" x="58" y="{:.1}" width="12" height="12" rx="3"/><text x="78" y="{:.1}">{}</text>"#,
            y,
            y + 11.0,
            escape(name)
        ));
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-8 -8 {} {}\" \
         width=\"{}\"><style>{FILE_STYLE}</style>{}{legend}</svg>\n",
        view[2] + 16.0,
        view[3] + legend_height + 24.0,
        2.0 * (view[2] + 16.0),
        rest.trim_end().trim_end_matches("</svg>")
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
    use crate::reproduction::{Row, SCHEMA};

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
        let said = page(vec![exact(), near(), other()]);
        assert!(said.contains(
            "1 of 3 published numbers agree with ours to the digits they are printed with, 1 more within the tolerance of \
             their row; what explains the others stands beside them."
        ));
        assert!(
            said.contains(">within 0.1<")
                && said.contains(">differs<")
                && said.contains("Reproduced in part")
        );
        let said = page(vec![exact(), near()]);
        assert!(
            said.contains("1 more within the tolerance of their row.")
                && !said.contains("explains the others")
        );
        assert!(page(vec![exact()]).contains("The published number agrees with ours, to the digits"));
    }
}
