//! Made-up data in the formats of the published ones, small: for a machine without data, and for the tests.

use super::data::Set;
use leakscope::{Failure, Result};
use leakscope_core::random::Seeded;
use std::fs;
use std::path::Path;

const TRAIN_PER_CLASS: usize = 100;
const TEST_PER_CLASS: usize = 20;
const PATIENTS: usize = 500;
const PEOPLE: [usize; 2] = [900, 400];

/// Writes data sets into their folders.
pub(super) fn write(folder: &Path, sets: &[Set], seed: u64) -> Result<()> {
    for set in sets {
        let place = folder.join(set.folder());
        let fail = |e: std::io::Error| Failure::Message(format!("cannot write {}: {e}", place.display()));
        fs::create_dir_all(&place).map_err(fail)?;
        let mut random = Seeded::new(seed ^ 0x5eed);
        let files = match set {
            Set::Mnist => digits(&mut random),
            Set::Cifar => photographs(&mut random),
            Set::Pneumonia => vec![("pneumoniamnist.npz".into(), chests(&mut random))],
            Set::Stories => stories(&mut random),
            Set::Warfarin => vec![("iwpc-scaled.csv".into(), warfarin(&mut random).into_bytes())],
            Set::Adult => vec![
                ("adult.data".into(), adult(&mut random, PEOPLE[0], "").into_bytes()),
                ("adult.test".into(), adult(&mut random, PEOPLE[1], ".").into_bytes()),
            ],
        };
        for (name, bytes) in files {
            fs::write(place.join(name), bytes).map_err(fail)?;
        }
    }
    Ok(())
}

/// A checkpoint and a tokeniser of llama2.c: one block with random weights, a token for every byte.
fn stories(random: &mut Seeded) -> Vec<(String, Vec<u8>)> {
    const TOKENS: usize = 3 + 256;
    let (width, hidden, context) = (16, 24, 64);
    let sizes = [width, hidden, 1, 2, 2, TOKENS, context];
    let mut model: Vec<u8> = sizes.iter().flat_map(|&s| (s as u32).to_le_bytes()).collect();
    let mut add = |count: usize, value: &mut dyn FnMut() -> f64| {
        (0..count).for_each(|_| model.extend((value() as f32).to_le_bytes()));
    };
    let mut normal = || 0.4 * random.normals(1)[0];
    let mut one = || 1.0;
    add(TOKENS * width, &mut normal);
    add(width, &mut one);
    add(4 * width * width, &mut normal);
    add(width, &mut one);
    add(3 * width * hidden, &mut normal);
    add(width, &mut one);
    // cosines and sines of the positions, which nobody reads
    add(context * width / 2, &mut || 0.0);
    let mut tokens = 4_u32.to_le_bytes().to_vec();
    for id in 0..TOKENS {
        let piece = match id.checked_sub(3) {
            None => ["<unk>", "\n<s>\n", "\n</s>\n"][id].as_bytes().to_vec(),
            Some(byte) => vec![byte as u8],
        };
        tokens.extend(0_f32.to_le_bytes());
        tokens.extend((piece.len() as u32).to_le_bytes());
        tokens.extend(piece);
    }
    vec![("stories260K.bin".into(), model), ("tok512.bin".into(), tokens)]
}

/// Blurred spots at places of its class, shifted and shaded anew for every image: `size` × `size` grey values.
fn spots(random: &mut Seeded, places: &[[f64; 2]], size: usize) -> Vec<u8> {
    let n = random.normals(3 + places.len());
    let (dx, dy) = (1.2 * n[0], 1.2 * n[1]);
    let mut out = Vec::with_capacity(size * size);
    for i in 0..size {
        for j in 0..size {
            let mut v = 0.0;
            for (k, [x, y]) in places.iter().enumerate() {
                let (u, w) = (i as f64 - y - dy, j as f64 - x - dx);
                v += (1.0 + 0.25 * n[3 + k]) * (-(u * u + w * w) / 9.0).exp();
            }
            let noise = 12.0 * (random.uniform() - 0.5);
            out.push((200.0 * (1.0 + 0.15 * n[2]) * v + noise).clamp(0.0, 255.0) as u8);
        }
    }
    out
}

fn places(random: &mut Seeded, count: usize, size: usize) -> Vec<[f64; 2]> {
    let mut at = || (0.2 + 0.6 * random.uniform()) * size as f64;
    (0..count).map(|_| [at(), at()]).collect()
}

fn idx(extents: &[usize], bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 8, extents.len() as u8];
    extents.iter().for_each(|e| out.extend((*e as u32).to_be_bytes()));
    out.extend_from_slice(bytes);
    out
}

fn digits(random: &mut Seeded) -> Vec<(String, Vec<u8>)> {
    let classes: Vec<_> = (0..10).map(|_| places(random, 5, 28)).collect();
    let mut files = vec![];
    for (stem, each) in [("train", TRAIN_PER_CLASS), ("t10k", TEST_PER_CLASS)] {
        let (mut pixels, mut labels) = (vec![], vec![]);
        for k in 0..10 * each {
            pixels.extend(spots(random, &classes[k % 10], 28));
            labels.push((k % 10) as u8);
        }
        files.push((format!("{stem}-images-idx3-ubyte"), idx(&[labels.len(), 28, 28], &pixels)));
        files.push((format!("{stem}-labels-idx1-ubyte"), idx(&[labels.len()], &labels)));
    }
    files
}

/// An npy array of bytes (version 1.0).
fn npy(shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let extents: String = shape.iter().map(|e| format!("{e},")).collect();
    let mut header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({extents}), }}");
    // The whole is a multiple of 64 bytes and ends its header with a line.
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(bytes);
    out
}

/// A zip file of stored entries.
fn npz(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut directory) = (vec![], vec![]);
    for (name, content) in entries {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let offset = out.len() as u32;
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend([(content.len() as u32).to_le_bytes(); 2].concat());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&common);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(content);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let (at, size) = (out.len() as u32, directory.len() as u32);
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\x00\x00\x00\x00");
    out.extend([(entries.len() as u16).to_le_bytes(); 2].concat());
    out.extend(size.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

fn chests(random: &mut Seeded) -> Vec<u8> {
    let classes: Vec<_> = (0..2).map(|_| places(random, 6, 28)).collect();
    let mut entries = vec![];
    for (images, labels, each) in [
        ("train_images.npy", "train_labels.npy", 2 * TRAIN_PER_CLASS),
        ("test_images.npy", "test_labels.npy", TEST_PER_CLASS),
    ] {
        let (mut pixels, mut classes_of) = (vec![], vec![]);
        for k in 0..2 * each {
            pixels.extend(spots(random, &classes[k % 2], 28));
            classes_of.push((k % 2) as u8);
        }
        entries.push((images, npy(&[2 * each, 28, 28], &pixels)));
        entries.push((labels, npy(&[2 * each, 1], &classes_of)));
    }
    npz(&entries)
}

fn photographs(random: &mut Seeded) -> Vec<(String, Vec<u8>)> {
    let classes: Vec<_> = (0..10).map(|_| places(random, 4, 32)).collect();
    let names =
        ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"];
    let mut files = vec![];
    for name in names {
        let mut bytes = vec![];
        for k in 0..2 * TRAIN_PER_CLASS / 3 {
            bytes.push((k % 2) as u8);
            for _ in 0..3 {
                bytes.extend(spots(random, &classes[k % 2], 32));
            }
        }
        files.push((format!("{name}.bin"), bytes));
    }
    files
}

fn choose<'a>(random: &mut Seeded, from: &[(&'a str, f64)]) -> &'a str {
    let mut u = random.uniform();
    for (name, share) in from {
        if u < *share {
            return name;
        }
        u -= share;
    }
    from.last().map_or("", |l| l.0)
}

fn warfarin(random: &mut Seeded) -> String {
    let mut out = String::from("race,age,height,weight,amiodarone,decr,cyp2c9,vkorc1,dose\n");
    for _ in 0..PATIENTS {
        let n = random.normals(4);
        let race = choose(random, &[("white", 0.55), ("asian", 0.3), ("black", 0.15)]);
        let vkorc1 = choose(random, &[("CT", 0.37), ("TT", 0.33), ("CC", 0.3)]);
        let cyp2c9 = choose(
            random,
            &[("11", 0.7), ("12", 0.13), ("13", 0.08), ("22", 0.04), ("23", 0.03), ("33", 0.02)],
        );
        let amiodarone = choose(random, &[("0", 0.92), ("1", 0.08)]);
        let decr = choose(random, &[("0", 0.95), ("1", 0.05)]);
        let gene = match vkorc1 {
            "TT" => -0.9,
            "CT" => -0.2,
            _ => 0.6,
        };
        let dose = gene - 0.3 * n[0] + 0.25 * n[2] + 0.7 * n[3];
        let (age, height, weight) = (n[0], n[1], 0.6 * n[1] + 0.8 * n[2]);
        out.push_str(&format!(
            "{race},{age:.4},{height:.4},{weight:.4},{amiodarone},{decr},{cyp2c9},{vkorc1},{dose:.4}\n"
        ));
    }
    out
}

fn adult(random: &mut Seeded, rows: usize, stop: &str) -> String {
    let mut out = String::new();
    if !stop.is_empty() {
        out.push_str("|1x3 Cross validator\n");
    }
    for _ in 0..rows {
        let n = random.normals(3);
        let married =
            choose(random, &[("Married-civ-spouse", 0.47), ("Never-married", 0.33), ("Divorced", 0.2)]);
        let work = choose(random, &[("Private", 0.7), ("State-gov", 0.15), ("?", 0.15)]);
        let school = choose(random, &[("HS-grad", 0.5), ("Bachelors", 0.3), ("Masters", 0.2)]);
        let years = match school {
            "HS-grad" => 9,
            "Bachelors" => 13,
            _ => 14,
        };
        let job = choose(random, &[("Sales", 0.4), ("Exec-managerial", 0.3), ("Craft-repair", 0.3)]);
        let race = choose(random, &[("White", 0.8), ("Black", 0.2)]);
        let sex = choose(random, &[("Male", 0.6), ("Female", 0.4)]);
        let country = choose(random, &[("United-States", 0.9), ("Mexico", 0.1)]);
        let (age, hours) = ((40.0 + 12.0 * n[0]).max(17.0), (40.0 + 10.0 * n[1]).clamp(1.0, 99.0));
        let score = 0.4 * n[0]
            + 0.3 * n[1]
            + n[2]
            + f64::from(years - 11) * 0.25
            + if married.starts_with("Married") { 0.8 } else { -0.6 };
        let income = if score > 0.7 { ">50K" } else { "<=50K" };
        let (weight, gain) = (100_000 + random.bits() % 200_000, random.bits() % 5 * 500);
        out.push_str(&format!(
            "{age:.0}, {work}, {weight}, {school}, {years}, {married}, {job}, Husband, {race}, {sex}, {gain}, 0, {hours:.0}, \
             {country}, {income}{stop}\n"
        ));
    }
    out
}
