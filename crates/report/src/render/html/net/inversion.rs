//! The page of gradient inversion: original, reconstruction and PLIS side by side, and quality against leakage.

use super::page::picture;
use crate::document::inversion::{Attacked, Correlation, Inversion, Labels, Level, Objective, Outcome};
use crate::figure::Claim;
use crate::figure::panel::{AxisTitle, Content, Panel, PointSeries};
use crate::figure::picture::Picture;
use crate::format;
use crate::redact::redacted;
use crate::render::html::chart::{Drawn, legend, panel};
use crate::render::html::markup::{Html, fill};
use crate::render::html::page::figure_card;
use crate::render::html::parts::{
    card, facts, header, judged, list, notes, shell, tile, tiles, warnings, whose,
};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_inversion;
use crate::words;
use leakscope_core::claim::Observed;
use std::collections::BTreeMap;

/// What the page shows of one record, and the data never hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reconstructed {
    /// The record.
    pub original: Option<Picture>,
    /// Its reconstruction at each level.
    pub reconstructions: Vec<Option<Picture>>,
    /// Its PLIS map.
    pub plis: Option<Picture>,
}

/// What goes onto the page alone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InversionPictures {
    /// By number in the data; a gradient that was given has its records from 0 on.
    pub records: BTreeMap<u64, Reconstructed>,
    /// Of every attacked record at the first level: PLIS, dFIL and similarity (or error where there is none), for the
    /// charts.
    pub points: Vec<[f64; 3]>,
}

/// Gradient inversion as one self-contained HTML page.
///
/// `pictures` are the records themselves: leave them empty for a page without raw values.
pub fn inversion_page(i: &Inversion, pictures: &InversionPictures) -> String {
    match i.redact {
        true => draw(&redacted(i), &InversionPictures { records: BTreeMap::new(), ..pictures.clone() }),
        false => draw(i, pictures),
    }
}

fn draw(i: &Inversion, pictures: &InversionPictures) -> String {
    let title = match &i.data {
        Some(data) => format!("{} on {}", i.network.name, data.files.join(", ")),
        None => i.network.name.clone(),
    };
    let meta = format!(
        "{} attacked · {} · {} · {} · seed {}",
        format::counted(i.attacked, "record"),
        objective(i.attack.objective),
        format::counted(i.attack.iterations, "iteration"),
        format::counted(i.attack.restarts, "start"),
        i.seed
    );
    let mut own = vec![];
    if !pictures.records.is_empty() {
        own.push("This page shows training records and their reconstructions as pictures: it is as private as they are.".into());
    }
    let body = header("Leakscope: gradient inversion", &title, &meta)
        .and(whose(i.redact))
        .and(judged(&of_inversion(i)))
        .and(head_tiles(i))
        .and(warnings(&i.warnings))
        .and(notes(&own))
        .and(side_by_side(i, pictures))
        .and(levels(i))
        .and(i.figures.iter().map(figure_card).collect())
        .and(against_leakage(i, pictures))
        .and(rests_on(i));
    shell(&format!("Leakscope gradient inversion: {title}"), &body)
}

/// What is made small, in words.
pub(crate) fn objective(objective: Objective) -> &'static str {
    match objective {
        Objective::Cosine => "cosine objective",
        Objective::Likelihood => "likelihood objective",
    }
}

fn head_tiles(i: &Inversion) -> Html {
    let mut all = vec![];
    if let Some(l) = i.levels.first() {
        let at = if l.sigma > 0.0 {
            format!("at σ = {}", format::setting(l.sigma))
        } else {
            "without noise".into()
        };
        if let Some(s) = &l.ssim {
            all.push(tile(&format::number(s.value), &format!("mean SSIM {at} ({})", interval(s))));
        }
        if let Some(h) = &l.haar_psi {
            all.push(tile(&format::number(h.value), &format!("mean HaarPSI {at} ({})", interval(h))));
        }
        all.push(tile(
            &format::number(l.mse.value),
            &format!("mean squared error {at} ({})", interval(&l.mse)),
        ));
        all.push(tile(&format::share(l.identified.value), "nearer to their own record than to another"));
    }
    if let Some(f) = i.levels.first().and_then(|l| l.first_layer.as_ref()) {
        all.push(tile(
            &format::number(f.value),
            "mean squared error of the first layer, inverted in one step",
        ));
    }
    if let Some(g) = &i.gradient {
        all.push(tile(&format::number(g.cosine), "cosine with the gradient given"));
    }
    all.push(tile(&format::seconds(i.seconds), "for all attacks"));
    tiles(all)
}

/// The interval of what was observed, in words.
pub(super) fn interval(o: &Observed) -> String {
    format!("95%: {} – {}", format::number(o.ci_low), format::number(o.ci_high))
}

fn level_name(l: &Level) -> String {
    if l.sigma > 0.0 { format!("σ = {}", format::setting(l.sigma)) } else { "no noise".into() }
}

fn side_by_side(i: &Inversion, pictures: &InversionPictures) -> Html {
    let cell = |p: &Option<Picture>, name: &str, under: &str| match p {
        None => Html::new(),
        Some(p) => {
            let drawn = picture(p, name);
            fill("<figure>{}<figcaption>{}<br>{}</figcaption></figure>", &[&drawn, &name, &under])
        }
    };
    let row = |number: u64, name: String, outcomes: &[Outcome], plis: String| {
        let Some(shown) = pictures.records.get(&number) else { return Html::new() };
        let mut each = cell(&shown.original, &name, "original");
        for (k, p) in shown.reconstructions.iter().enumerate() {
            let under = outcomes.get(k).map(alike).unwrap_or_default();
            each.push(cell(p, &i.levels.get(k).map_or("reconstruction".into(), level_name), &under));
        }
        each.push(cell(&shown.plis, "PLIS", &plis));
        fill("<div class=\"triple\">{}</div>\n", &[&each])
    };
    let rows: Html = match i.gradient {
        Some(_) => {
            pictures.records.keys().map(|&k| row(k, "reconstruction".into(), &[], String::new())).collect()
        }
        None => {
            let each = |a: &Attacked| {
                row(a.record, title(a), &a.outcomes, format!("norm {}", format::number(a.plis)))
            };
            i.shown.iter().map(each).collect()
        }
    };
    if rows.is_empty() {
        return rows;
    }
    let lead = "The best reconstructed first, the worst last, by the first column of reconstructions. PLIS (Mueller eq. 6–7) \
                of every pixel: dark is most, each map on a scale of its own.";
    let body = fill("<div class=\"maps\">{}</div>", &[&rows]);
    card("pictures", "Original, reconstruction, PLIS", &[Claim::Observed, Claim::Measured], lead, body)
}

fn alike(o: &Outcome) -> String {
    match o.ssim {
        Some(s) => format!("SSIM {}", format::number(s)),
        None => format!("MSE {}", format::number(o.mse)),
    }
}

fn title(a: &Attacked) -> String {
    let label = a.label.as_ref().map(|l| format!(" · {l}")).unwrap_or_default();
    format!("{}{label}", a.id.clone().unwrap_or_else(|| a.record.to_string()))
}

fn observed(o: &Observed) -> Cell {
    let ends = format!("({} – {})", format::number(o.ci_low), format::number(o.ci_high));
    Cell::html(fill("{}<br><small>{}</small>", &[&format::number(o.value), &ends]))
}

/// Title of a column, and its cell at a noise.
type Column<'a> = (&'static str, &'a dyn Fn(&Level) -> Option<Cell>);

fn levels(i: &Inversion) -> Html {
    if i.levels.is_empty() {
        return Html::new();
    }
    let maybe = |o: &Option<Observed>| o.as_ref().map(observed);
    let number = |x: Option<f64>| x.map(Cell::number);
    // a column for what was measured at some noise
    let columns: [Column<'_>; 11] = [
        ("MSE", &|l| Some(observed(&l.mse))),
        ("SSIM", &|l| maybe(&l.ssim)),
        ("HaarPSI", &|l| maybe(&l.haar_psi)),
        ("LPIPS", &|l| maybe(&l.lpips)),
        ("mean PSNR, dB", &|l| number(l.psnr)),
        ("cosine", &|l| Some(Cell::number(l.cosine))),
        ("known again", &|l| Some(observed(&l.identified))),
        ("MSE, first layer", &|l| maybe(&l.first_layer)),
        ("labels right", &|l| maybe(&l.labels_right)),
        ("any estimate, about", &|l| number(l.van_trees.map(|v| v.value))),
        ("unbiased, at least", &|l| number(l.cramer_rao)),
    ];
    let kept: Vec<_> = columns.iter().filter(|(_, of)| i.levels.iter().any(|l| of(l).is_some())).collect();
    let heads: Vec<_> =
        std::iter::once(text_column("noise")).chain(kept.iter().map(|(name, _)| numbers(name))).collect();
    let row = |l: &Level| {
        let cells = kept.iter().map(|(_, of)| of(l).unwrap_or_else(|| Cell::say("–")));
        std::iter::once(Cell::sorted(level_name(l), l.sigma)).chain(cells).collect()
    };
    let rows: Vec<Vec<Cell>> = i.levels.iter().map(row).collect();
    let lead = "Means over the attacked records with 95% intervals. Known again: the reconstruction is nearer to its own record \
                than to another one, drawn among those attacked. The last two columns are errors that what is released allows: \
                of any estimate under a normal prior (van Trees, an estimate), and of unbiased ones (Cramér and Rao, mean over \
                the records); this attack is neither unbiased nor the best there is.";
    let body = table("wrap stack even", "By noise", &heads, &rows);
    card("levels", "By noise", &[Claim::Observed, Claim::Measured], lead, body)
}

fn against_leakage(i: &Inversion, pictures: &InversionPictures) -> Html {
    let Some(level) = i.levels.first().filter(|l| !l.correlations.is_empty()) else { return Html::new() };
    let quality = if level.ssim.is_some() { "SSIM" } else { "mean squared error" };
    let chart = |name: &str, k: usize| {
        let positive = pictures.points.iter().all(|p| p[k] > 0.0);
        let points: Vec<[f64; 2]> = pictures.points.iter().map(|p| [p[k], p[2]]).collect();
        if points.is_empty() {
            return Html::new();
        }
        let x = if positive { AxisTitle::log(name) } else { AxisTitle::linear(name) };
        let content = Content::Dots {
            x,
            y: AxisTitle::linear(quality),
            series: vec![PointSeries::new("a record", points)],
            line: None,
            notes: vec![],
        };
        let Drawn { names, svg } = panel(&Panel { title: format!("{quality} against {name}"), content });
        let legend = legend(names.iter().map(|(slot, name)| (*slot, name.as_str())));
        fill("<div>{}{}</div>", &[&legend, &svg])
    };
    let charts = chart("norm of PLIS", 0).and(chart("dFIL", 1));
    let row = |(l, c): (&Level, &Correlation)| {
        vec![
            Cell::sorted(level_name(l), l.sigma),
            Cell::text(words::leakage(c.leakage)),
            Cell::text(words::quality(c.quality)),
            Cell::number(c.rho),
            Cell::text(&format!("{} – {}", format::number(c.interval[0]), format::number(c.interval[1]))),
            Cell::count(c.records),
        ]
    };
    let rows: Vec<Vec<Cell>> =
        i.levels.iter().flat_map(|l| l.correlations.iter().map(move |c| (l, c))).map(row).collect();
    let heads = [
        text_column("noise"),
        text_column("leakage"),
        text_column("quality"),
        numbers("rank correlation"),
        text_column("95% interval"),
        numbers("records"),
    ];
    let lead = "Whether records that leak more are found better. Spearman’s rank correlation over the attacked records; where \
                the interval holds 0, nothing is shown. More similarity is better, less error is.";
    let body = fill("<div class=\"two\">{}</div>", &[&charts]).and(table(
        "wrap sortable",
        "Rank correlations",
        &heads,
        &rows,
    ));
    card("correlation", "Quality against leakage", &[Claim::Observed, Claim::Measured], lead, body)
}

fn rests_on(i: &Inversion) -> Html {
    let a = &i.attack;
    let clip = match a.clip {
        Some(c) => format!(
            "each record’s gradient is clipped at {} ({})",
            format::setting(c),
            words::clip(a.clip_kind)
        ),
        None => "nothing is clipped".into(),
    };
    let seen = match a.local_steps {
        Some(k) => format!(
            "The attacker has the weights before and after {}, and looks half way between them.",
            format::counted(k, "local step")
        ),
        None => format!(
            "The attacker sees the sum of the gradients of {}; {clip}.",
            format::counted(a.batch, "record")
        ),
    };
    let labels = match a.labels {
        Labels::Known => "Labels are known to the attacker.",
        Labels::Recover => "Labels are read off the gradient of the last layer.",
        Labels::Try => "Each label is tried, and the one that fits best kept.",
    };
    let how = match a.objective {
        Objective::Cosine => {
            "1 − cos of the two gradients plus total variation, by Adam on the sign of the derivative, values kept inside \
             their range (Geiping, Bauermeister, Dröge, Moeller 2020)."
        }
        Objective::Likelihood => {
            "The squared distance of what a guess would release from what was released, over twice the variance of the noise, \
             plus total variation, by Adam on the sign of the derivative; the cosine where there is no noise."
        }
    };
    let items = [
        seen,
        labels.into(),
        how.to_owned(),
        "SSIM: Wang, Bovik, Sheikh, Simoncelli 2004, Gaussian window of 11 × 11. HaarPSI: Reisenhofer, Bosse, Kutyniok, \
         Wiegand 2018."
            .into(),
        "dFIL and PLIS are those of the same release; PLIS before the clip, beyond which it would be 0.".into(),
    ];
    let rows = [
        ("weight of the total variation", format::setting(a.total_variation)),
        ("first steps", format::setting(a.learning_rate)),
        ("range of values", format!("{} to {}", format::setting(a.range[0]), format::setting(a.range[1]))),
        ("seed", i.seed.to_string()),
        ("schema", i.schema.clone()),
    ];
    card("rests", "What this rests on", &[], "", list(items).and(facts(&rows)))
}
