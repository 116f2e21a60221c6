//! The page of the informed adversary: originals and reconstructions side by side, beside what the label tells alone.

use super::inversion::interval;
use super::page::picture;
use crate::document::informed::{Adversary, Informed, InformedAttack};
use crate::figure::Claim;
use crate::figure::picture::Picture;
use crate::format;
use crate::render::html::markup::{Html, fill};
use crate::render::html::parts::{
    card, facts, header, judged, list, notes, shell, tile, tiles, warnings, whose,
};
use crate::render::html::table::{Cell, numbers, table, words as text_column};
use crate::verdict::of_informed;
use crate::words;
use leakscope_core::claim::Observed;
use std::collections::BTreeMap;

/// Pictures by target: the original, and what each adversary made of it, in the order of the attacks.
pub type InformedPictures = BTreeMap<u64, Vec<Picture>>;

/// The informed adversary as one self-contained HTML page.
///
/// `pictures` are the records themselves: leave them empty for a page without raw values.
pub fn informed_page(i: &Informed, pictures: &InformedPictures) -> String {
    let pictures = if i.redact { &InformedPictures::new() } else { pictures };
    let title = format!("{} on {}", i.network.name, i.data.files.join(", "));
    let meta = format!(
        "{} known · {} learned from · {} attacked · seed {}",
        format::counted(i.known, "record"),
        format::counted(i.learned, "model"),
        format::counted(i.attacked, "model"),
        i.seed
    );
    let mut own = vec![];
    if !pictures.is_empty() {
        own.push(
            "This page shows records and their reconstructions as pictures: it is as private as they are."
                .into(),
        );
    }
    let body = header("Leakscope: the informed adversary", &title, &meta)
        .and(whose(i.redact))
        .and(judged(&of_informed(i)))
        .and(head_tiles(i))
        .and(warnings(&i.warnings))
        .and(notes(&own))
        .and(side_by_side(i, pictures))
        .and(attacks(i))
        .and(rests_on(i));
    shell(&format!("Leakscope informed adversary: {title}"), &body)
}

fn head_tiles(i: &Informed) -> Html {
    let mut all: Vec<Html> = i
        .attacks
        .iter()
        .map(|a| {
            tile(
                &format::number(a.mse.value),
                &format!("mean squared error, {} ({})", words::adversary(a.adversary), interval(&a.mse)),
            )
        })
        .collect();
    if let Some(e) = i.epsilon {
        all.push(tile(&format::at_most(e), &format!("ε at δ = {}", format::setting(i.delta))));
    }
    all.push(tile(&format::seconds(i.training_seconds), "to train all models"));
    tiles(all)
}

fn side_by_side(i: &Informed, pictures: &InformedPictures) -> Html {
    let names: Vec<&str> =
        std::iter::once("original").chain(i.attacks.iter().map(|a| words::adversary(a.adversary))).collect();
    let row = |target: &u64| {
        let shown = pictures.get(target)?;
        let each: Html = shown
            .iter()
            .zip(&names)
            .map(|(p, name)| {
                fill("<figure>{}<figcaption>{}</figcaption></figure>", &[&picture(p, name), name])
            })
            .collect();
        Some(fill("<div class=\"triple\">{}</div>\n", &[&each]))
    };
    let rows: Html = i.shown.iter().filter_map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    let body = fill("<div class=\"maps\">{}</div>", &[&rows]);
    card(
        "pictures",
        "The last record",
        &[Claim::Observed],
        "Of models that were not learned from, the first ones.",
        body,
    )
}

fn attacks(i: &Informed) -> Html {
    let observed = |o: &Observed| {
        let ends = format!("({} – {})", format::number(o.ci_low), format::number(o.ci_high));
        Cell::html(fill("{}<br><small>{}</small>", &[&format::number(o.value), &ends]))
    };
    let maybe = |o: &Option<Observed>| o.as_ref().map_or_else(|| Cell::say("–"), observed);
    let with_lpips = i.attacks.iter().any(|a| a.lpips.is_some());
    let row = |a: &InformedAttack| {
        let mut cells = vec![
            Cell::text(words::adversary(a.adversary)),
            observed(&a.mse),
            if a.adversary == Adversary::Labels { Cell::say("–") } else { observed(&a.gain) },
            maybe(&a.ssim),
            maybe(&a.haar_psi),
            observed(&a.identified),
        ];
        if with_lpips {
            cells.insert(5, maybe(&a.lpips));
        }
        cells
    };
    let rows: Vec<Vec<Cell>> = i.attacks.iter().map(row).collect();
    let mut heads = vec![
        text_column("adversary"),
        numbers("MSE"),
        numbers("gain over the label"),
        numbers("SSIM"),
        numbers("HaarPSI"),
        numbers("known again"),
    ];
    if with_lpips {
        heads.insert(5, numbers("LPIPS"));
    }
    let lead = "Means over the attacked models with 95% intervals. Gain: by how much the label’s error is larger, target by target. Known again: nearer to its own record than to another target \
                of the same label.";
    card(
        "attacks",
        "By adversary",
        &[Claim::Observed],
        lead,
        table("wrap stack even", "Adversaries", &heads, &rows),
    )
}

fn rests_on(i: &Informed) -> Html {
    let t = &i.training;
    let mut items = vec![
        "Every model is trained on the known records and one target of its own, from the same start, in full batches with noise \
         of its own; the adversary sees its parameters and the target’s label (Balle, Cherubin, Hayes 2022; Edmunds 2024, §3.2)."
            .to_owned(),
        "Ridge regression by class has the penalty that does best on a tenth of the models learned from. The network has 512 \
         and 256 rectified units, and is trained by Adam on squared errors."
            .into(),
        "The label alone: the mean target of that label. No adversary does better under perfect privacy.".into(),
    ];
    if let Some(n) = i.components {
        items.push(format!(
            "The adversaries read {} of the parameters, those in which the models learned from differ most.",
            format::counted(n, "principal component")
        ));
    }
    let clip = t
        .clip
        .map_or("nothing".to_owned(), |c| format!("{} at {}", words::clip(t.clip_kind), format::setting(c)));
    let rows = [
        ("optimiser", t.optimizer.clone()),
        ("learning rate", format::setting(t.learning_rate)),
        ("weight decay", format::setting(t.weight_decay)),
        ("steps", format::count(t.steps)),
        ("clipped", clip),
        ("noise σ", format::setting(t.sigma)),
        ("share of parameters trained", format::share(t.density)),
        ("guessing the mean of all targets, mean squared error", format::number(i.spread)),
        ("seed", i.seed.to_string()),
        ("schema", i.schema.clone()),
    ];
    card("rests", "What this rests on", &[], "", list(items).and(facts(&rows)))
}
