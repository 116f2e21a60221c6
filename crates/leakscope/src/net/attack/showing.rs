//! What attacks found, as documents, pages, pictures and tables.

use super::super::data::label_column;
use super::super::model::Model;
use super::inversion::{InversionOutcome, InversionRequest};
use super::levels::{Attacks, remarks};
use super::subject::Records;
use crate::Result;
use crate::output::{Folder, Pending, results, write_tables};
use leakscope_net::{Real, Shape, attack::inversion::Reconstruction, io::Tensors};
use leakscope_report::PageKind;
use leakscope_report::inversion::{Attacked, GradientOutcome, Inversion, Level, SCHEMA, Settings, figures};
use leakscope_report::net::{InversionPictures, Picture, Reconstructed, inversion_page, to_json};
use leakscope_table::RecordsSchema;
use std::path::PathBuf;

/// Records shown at either end.
const SHOWN: usize = 5;

pub(super) fn of_records<T: Real>(
    request: &InversionRequest,
    model: &Model<T>,
    records: &Records<T>,
    attacks: Attacks,
    levels: Vec<Level>,
    settings: Settings,
    (seed, seconds): (u64, f64),
) -> Result<InversionOutcome> {
    let n = attacks.ids.len();
    let mut order: Vec<usize> = (0..n).collect();
    let best = |i: usize| attacks.outcomes.first().map_or(0.0, |f| f[i].ssim.map_or(-f[i].mse, |s| s));
    order.sort_by(|&a, &b| best(b).total_cmp(&best(a)).then(a.cmp(&b)));
    let ends: Vec<usize> = order
        .iter()
        .copied()
        .enumerate()
        .filter(|(k, _)| *k < SHOWN || *k + SHOWN >= n)
        .map(|(_, i)| i)
        .collect();
    let loss = model.net.loss();
    let attacked = |i: usize| Attacked {
        record: attacks.ids[i] as u64,
        id: records.names.id(attacks.ids[i]),
        label: records.names.short_label(&records.data, attacks.ids[i], loss),
        plis: attacks.plis(i),
        dfil: attacks.dfil(i),
        outcomes: attacks.outcomes.iter().map(|level| level[i]).collect(),
    };
    let document = Inversion {
        schema: SCHEMA.into(),
        tables: vec![],
        network: model.facts(),
        data: Some(records.facts()),
        attack: settings,
        attacked: n as u64,
        spread: attacks.spread,
        figures: figures(&levels, attacks.spread),
        levels,
        gradient: None,
        shown: ends.iter().map(|&i| attacked(i)).collect(),
        seed,
        seconds,
        warnings: remarks(request, &attacks),
        redact: request.redact,
    };
    let document = crate::output::complete(document)?;
    let pictures = match request.pictures {
        true => pictures(&attacks, &ends, model.net.input(), document.attack.range),
        false => InversionPictures { points: points(&attacks), ..InversionPictures::default() },
    };
    let mut pending = Pending::default();
    let folder = Folder::in_memory();
    let texts = label_column(&records.data, loss);
    let names = columns(&document.levels);
    let mut writer =
        folder.table("records", RecordsSchema { id: records.names.id_column(), texts, numbers: names })?;
    let mut part = writer.parts().part();
    for i in 0..n {
        let record = attacks.ids[i];
        let label = records.names.label(&records.data, record, loss);
        part.push(&records.names.of(record), label.as_deref().as_slice(), &numbers(&attacks, i))?;
    }
    writer.append(part)?;
    pending.tables([writer]);
    let reconstructions = attacks.guesses.iter().flatten().flatten().copied().collect();
    Ok(InversionOutcome {
        document,
        pictures,
        tables: results(pending),
        reconstructions,
        records: attacks.ids,
        written: vec![],
    })
}

fn columns(levels: &[Level]) -> Vec<String> {
    let mut out: Vec<String> = ["loss", "gradient_norm", "plis", "dfil"].map(str::to_owned).to_vec();
    for l in levels {
        let measures = ["mse", "psnr", "ssim", "haar_psi", "cosine"].into_iter();
        // where weights were given
        let measures = measures.chain(l.lpips.as_ref().map(|_| "lpips"));
        out.extend(measures.map(|m| format!("{m}_at_sigma_{}", leakscope_report::format::setting(l.sigma))));
    }
    out
}

fn numbers(attacks: &Attacks, i: usize) -> Vec<f64> {
    let leak = &attacks.leaks[i];
    let mut out = vec![leak.loss, leak.gradient_norm, attacks.plis(i), attacks.dfil(i)];
    for level in &attacks.outcomes {
        let o = level[i];
        let maybe = |v: Option<f64>| v.unwrap_or(f64::NAN);
        out.extend([o.mse, maybe(o.psnr), maybe(o.ssim), maybe(o.haar_psi), o.cosine]);
        out.extend(o.lpips);
    }
    out
}

/// PLIS, dFIL and similarity of every record at the first level.
fn points(attacks: &Attacks) -> Vec<[f64; 3]> {
    let Some(first) = attacks.outcomes.first() else { return vec![] };
    let each = |(i, o): (usize, &leakscope_report::inversion::Outcome)| {
        [attacks.plis(i), attacks.dfil(i), o.ssim.unwrap_or(o.mse)]
    };
    first.iter().enumerate().map(each).collect()
}

fn pictures(attacks: &Attacks, ends: &[usize], shape: Shape, range: [f64; 2]) -> InversionPictures {
    let mut out = InversionPictures { points: points(attacks), ..InversionPictures::default() };
    let Shape::Image([height, width, channels]) = shape else { return out };
    let image = |values: &[f64]| Picture::image([height, width, channels], values, range);
    for &i in ends {
        let heat: Vec<f64> = attacks.leaks[i]
            .plis_parts
            .chunks(channels.max(1))
            .map(|c| c.iter().map(|v| v * v).sum::<f64>().sqrt())
            .collect();
        let most = heat.iter().copied().fold(0.0, f64::max);
        let shown = Reconstructed {
            original: image(&attacks.originals[i]),
            reconstructions: attacks.guesses.iter().map(|level| image(&level[i])).collect(),
            plis: Picture::heat([height, width], &heat, most),
        };
        out.records.insert(attacks.ids[i] as u64, shown);
    }
    out
}

pub(super) fn of_given<T: Real>(
    request: &InversionRequest,
    model: &Model<T>,
    reconstruction: Reconstruction,
    first_layer: bool,
    settings: Settings,
    (seed, seconds): (u64, f64),
) -> Result<InversionOutcome> {
    let k = model.net.outputs();
    let class = |row: &[f64]| match row {
        [one] => format!("{}", u8::from(*one > 0.5)),
        many => (0..many.len()).fold(0, |b, i| if many[i] > many[b] { i } else { b }).to_string(),
    };
    let range = settings.range;
    let document = Inversion {
        schema: SCHEMA.into(),
        tables: vec![],
        network: model.facts(),
        data: None,
        attack: settings,
        attacked: request.batch as u64,
        spread: 0.0,
        levels: vec![],
        gradient: Some(GradientOutcome {
            cosine: reconstruction.cosine,
            labels: reconstruction.labels.chunks(k).map(class).collect(),
            first_layer,
            file: None,
        }),
        figures: vec![],
        shown: vec![],
        seed,
        seconds,
        warnings: vec![],
        redact: request.redact,
    };
    let document = crate::output::complete(document)?;
    let mut pictures = InversionPictures::default();
    if let (true, Shape::Image(shape)) = (request.pictures, model.net.input()) {
        for (i, values) in reconstruction.records.chunks(model.net.input().len()).enumerate() {
            let reconstructions = vec![Picture::image(shape, values, range)];
            pictures.records.insert(i as u64, Reconstructed { reconstructions, ..Reconstructed::default() });
        }
    }
    Ok(InversionOutcome {
        document,
        pictures,
        tables: vec![],
        reconstructions: reconstruction.records,
        records: vec![],
        written: vec![],
    })
}

/// Writes what was found: `inversion.json`, `report.html`, `records.*`; of a gradient that was given, the reconstruction.
pub(super) fn write(outcome: &mut InversionOutcome, folder: &Folder) -> Result<Vec<PathBuf>> {
    let mut pending = Pending::default();
    write_tables(folder, &mut pending, &outcome.tables)?;
    outcome.document.tables = pending.table_names();
    if let Some(attacked) = &mut outcome.document.gradient {
        let name = "reconstruction.safetensors";
        let mut file = Tensors::default();
        let mut shape = vec![outcome.document.attack.batch as usize];
        shape.extend(outcome.document.network.input.iter().map(|d| *d as usize));
        file.insert("x", &shape, &outcome.reconstructions);
        folder.file(&mut pending, name, &file.to_bytes()?)?;
        attacked.file = Some(name.into());
    }
    folder.text(&mut pending, "inversion.json", &to_json(&outcome.document))?;
    folder.page(&mut pending, PageKind::Inversion, &inversion_page(&outcome.document, &outcome.pictures))?;
    folder.publish(pending)
}
