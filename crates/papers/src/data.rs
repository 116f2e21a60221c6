//! The data sets of the papers, read in the formats they are published in and checked by their counts.

use super::Context;
use leakscope::{Failure, Result};
use leakscope_net::io::{read_idx, read_npz};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Handwritten digits.
    Mnist,
    /// Small photographs.
    Cifar,
    /// Warfarin doses.
    Warfarin,
    /// Incomes of the census.
    Adult,
    /// Chest X-rays of children.
    Pneumonia,
    /// A small language model.
    Stories,
}

impl Set {
    /// Every data set.
    pub const ALL: [Self; 6] =
        [Self::Mnist, Self::Cifar, Self::Warfarin, Self::Adult, Self::Pneumonia, Self::Stories];

    /// Folder inside the data folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::Cifar => "cifar10",
            Self::Warfarin => "iwpc",
            Self::Adult => "adult",
            Self::Pneumonia => "pneumoniamnist",
            Self::Stories => "lm",
        }
    }

    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Mnist => "MNIST",
            Self::Cifar => "CIFAR-10",
            Self::Warfarin => "the IWPC warfarin table",
            Self::Adult => "UCI Adult",
            Self::Pneumonia => "PneumoniaMNIST",
            Self::Stories => "the language model stories260K",
        }
    }

    /// Where it is published.
    pub fn published(self) -> &'static str {
        match self {
            Self::Mnist => {
                "by LeCun and Cortes as four idx files: `leakscope data get mnist` fetches them, or take any mirror"
            }
            Self::Cifar => {
                "by Krizhevsky as “CIFAR-10 binary version” (cifar-10-binary.tar.gz): `leakscope data get cifar10` \
                 fetches it"
            }
            Self::Warfarin => {
                "by PharmGKB (IWPC); preprocessed by Yeom et al. 2018, in the repository of their paper “Privacy risk in \
                 machine learning” (columns race, age, height, weight, amiodarone, decr, cyp2c9, vkorc1, dose)"
            }
            Self::Adult => {
                "in the UC Irvine repository as “Adult”: `leakscope data get adult` fetches adult.data and adult.test"
            }
            Self::Pneumonia => "with MedMNIST v2 on Zenodo (record 10519652) as pneumoniamnist.npz",
            Self::Stories => {
                "by Karpathy on Hugging Face (tinyllamas, folder stories260K) as stories260K.bin and tok512.bin, checkpoint and \
                 tokeniser of llama2.c"
            }
        }
    }
}

/// The file of a data set, in its folder or beside it, zipped or not.
fn find(context: &Context<'_>, set: Set, name: &str) -> Result<PathBuf> {
    let places = [
        context.folder.join(set.folder()),
        context.folder.clone(),
        context.folder.join("cifar-10-batches-bin"),
    ];
    for place in &places {
        for file in [place.join(name), place.join(format!("{name}.gz"))] {
            if file.is_file() {
                return Ok(file);
            }
        }
    }
    Err(Failure::option(
        "data",
        format!(
            "{} is not complete: `{name}` (or {name}.gz) is neither in {} nor in {}. It is published {}. Put it into \
             {}, or try ⟨synthetic⟩, which needs no data",
            set.title(),
            places[0].display(),
            places[1].display(),
            set.published(),
            places[0].display()
        ),
    ))
}

/// Checkpoint and tokeniser of the small language model.
pub(super) fn stories(context: &Context<'_>) -> Result<(PathBuf, PathBuf)> {
    let file = |name| find(context, Set::Stories, name).and_then(|path| unzipped(context, &path));
    Ok((file("stories260K.bin")?, file("tok512.bin")?))
}

fn bad(path: &Path, reason: impl std::fmt::Display) -> Failure {
    Failure::Message(format!("{}: {reason}", path.display()))
}

fn is_zipped(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// What a file holds, unzipped where it is gzipped, whatever its name.
fn contents(path: &Path) -> Result<Vec<u8>> {
    let gone = |e: std::io::Error| bad(path, format!("cannot read it: {e}"));
    let bytes = fs::read(path).map_err(gone)?;
    if !is_zipped(&bytes) {
        return Ok(bytes);
    }
    let mut plain = vec![];
    flate2::read::MultiGzDecoder::new(bytes.as_slice())
        .read_to_end(&mut plain)
        .map_err(|e| bad(path, format!("it cannot be unpacked: {e}")))?;
    Ok(plain)
}

/// The same as text.
fn text(path: &Path) -> Result<String> {
    String::from_utf8(contents(path)?).map_err(|_| bad(path, "it is no text (UTF-8)"))
}

/// A file that others read: itself, or unzipped among the intermediate files.
fn unzipped(context: &Context<'_>, path: &Path) -> Result<PathBuf> {
    let mut start = [0; 2];
    let read = fs::File::open(path).and_then(|mut file| file.read(&mut start));
    read.map_err(|e| bad(path, format!("cannot read it: {e}")))?;
    if !is_zipped(&start) {
        return Ok(path.to_owned());
    }
    let mut name = PathBuf::from(path.file_name().unwrap_or_default());
    if name.extension().is_some_and(|e| e == "gz") {
        name.set_extension("");
    }
    let target = context.scratch.join(name);
    fs::write(&target, contents(path)?).map_err(|e| bad(&target, format!("cannot write it: {e}")))?;
    Ok(target)
}

/// Fails where a count is not the published one.
fn counted(context: &Context<'_>, path: &Path, name: &str, count: usize, published: usize) -> Result<()> {
    if context.synthetic || count == published {
        return Ok(());
    }
    Err(bad(
        path,
        format!("it has {count} {name}: the published file has {published}. Is it complete, and unchanged?"),
    ))
}

/// Pictures with their classes.
#[derive(Debug, Clone)]
pub(super) struct Images {
    /// Height, width, channels.
    pub(super) shape: [usize; 3],
    /// Bytes, image after image, rows of pixels, channels last.
    pub(super) pixels: Vec<u8>,
    /// Class of each.
    pub(super) labels: Vec<u8>,
    /// Place of each in the published file (or batches, one after the other), from 0.
    pub(super) places: Vec<usize>,
}

impl Images {
    /// Bytes of one image.
    pub(super) fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// One image.
    pub(super) fn image(&self, i: usize) -> &[u8] {
        &self.pixels[i * self.size()..(i + 1) * self.size()]
    }

    /// The images of some classes, in their order.
    pub(super) fn of(&self, classes: &[u8]) -> Self {
        let (mut pixels, mut labels, mut places) = (vec![], vec![], vec![]);
        for (i, label) in self.labels.iter().enumerate().filter(|(_, l)| classes.contains(l)) {
            pixels.extend_from_slice(self.image(i));
            labels.push(*label);
            places.push(self.places[i]);
        }
        Self { shape: self.shape, pixels, labels, places }
    }
}

/// MNIST: training and test images.
pub(super) fn digits(context: &Context<'_>) -> Result<(Images, Images)> {
    let read = |stem: &str, n: usize| -> Result<Images> {
        let path = find(context, Set::Mnist, &format!("{stem}-images-idx3-ubyte"))?;
        let images = read_idx(&path, None)?;
        let [count, height, width] = images.shape[..] else {
            return Err(bad(&path, "these are no images: expected three extents"));
        };
        let labels_path = find(context, Set::Mnist, &format!("{stem}-labels-idx1-ubyte"))?;
        let labels = read_idx(&labels_path, None)?;
        counted(context, &path, "images", count, n)?;
        if labels.shape != [count] {
            return Err(bad(&labels_path, format!("expected a label for each of {count} images")));
        }
        let places = (0..count).collect();
        Ok(Images { shape: [height, width, 1], pixels: images.bytes, labels: labels.bytes, places })
    };
    Ok((read("train", 60_000)?, read("t10k", 10_000)?))
}

/// CIFAR-10: training and test images.
pub(super) fn photographs(context: &Context<'_>) -> Result<(Images, Images)> {
    const PLANE: usize = 32 * 32;
    let read = |names: &[&str]| -> Result<Images> {
        let mut all = Images { shape: [32, 32, 3], pixels: vec![], labels: vec![], places: vec![] };
        for name in names {
            let path = find(context, Set::Cifar, name)?;
            let bytes = contents(&path)?;
            if bytes.is_empty() || bytes.len() % (1 + 3 * PLANE) != 0 {
                return Err(bad(
                    &path,
                    "no batch of the binary version: its length is no multiple of 3,073 bytes",
                ));
            }
            counted(context, &path, "images", bytes.len() / (1 + 3 * PLANE), 10_000)?;
            for record in bytes.chunks_exact(1 + 3 * PLANE) {
                all.places.push(all.labels.len());
                all.labels.push(record[0]);
                // Planes of red, green and blue become pixels.
                all.pixels.extend((0..3 * PLANE).map(|k| record[1 + (k % 3) * PLANE + k / 3]));
            }
        }
        Ok(all)
    };
    let training =
        ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
    Ok((read(&training)?, read(&["test_batch.bin"])?))
}

/// PneumoniaMNIST: training and test images, class 1 is pneumonia.
pub(super) fn chests(context: &Context<'_>) -> Result<(Images, Images)> {
    // A copy of the file that was put together again from its parts goes by the second name.
    let path = find(context, Set::Pneumonia, "pneumoniamnist.npz")
        .or_else(|e| find(context, Set::Pneumonia, "pneumoniamnist_full_rebuilt.npz").map_err(|_| e))?;
    let file = read_npz(&unzipped(context, &path)?)?;
    let read = |part: &str, n: usize| -> Result<Images> {
        let array = |name: String| file.array::<f32>(&name, None).map_err(|e| bad(&path, e));
        let (images, labels) = (array(format!("{part}_images"))?, array(format!("{part}_labels"))?);
        let [count, height, width] = images.shape[..] else {
            return Err(bad(&path, format!("{part}_images has {} extents: expected 3", images.shape.len())));
        };
        counted(context, &path, "images", count, n)?;
        if labels.values.len() != count {
            return Err(bad(&path, format!("expected a label for each of {count} images")));
        }
        let bytes = |values: &[f32]| values.iter().map(|v| *v as u8).collect();
        Ok(Images {
            shape: [height, width, 1],
            pixels: bytes(&images.values),
            labels: bytes(&labels.values),
            places: (0..count).collect(),
        })
    };
    Ok((read("train", 4_708)?, read("test", 624)?))
}

/// The warfarin table, as a CSV file.
pub(super) fn warfarin(context: &Context<'_>) -> Result<PathBuf> {
    let path = find(context, Set::Warfarin, "iwpc-scaled.csv")?;
    let text = text(&path)?;
    let header = "race,age,height,weight,amiodarone,decr,cyp2c9,vkorc1,dose";
    let mut lines = text.lines();
    if lines.next().map(str::trim) != Some(header) {
        return Err(bad(&path, format!("expected the columns {header}")));
    }
    counted(context, &path, "patients", lines.filter(|l| !l.trim().is_empty()).count(), 4_819)?;
    unzipped(context, &path)
}

const ADULT_COLUMNS: [&str; 15] = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
];

/// Adult as Hannun has it: complete rows, married or not, without the relationship. Two CSV files, for training and
/// test.
pub(super) fn incomes(context: &Context<'_>) -> Result<(PathBuf, PathBuf)> {
    let convert = |name: &str, complete: usize| -> Result<PathBuf> {
        let path = find(context, Set::Adult, name)?;
        let text = text(&path)?;
        let (mut out, mut kept) = (String::new(), 0);
        let names: Vec<&str> = ADULT_COLUMNS.iter().copied().filter(|c| *c != "relationship").collect();
        out.push_str(&names.join(","));
        out.push('\n');
        for (number, line) in text.lines().enumerate() {
            // adult.test starts with a remark.
            if line.trim().is_empty() || line.starts_with('|') {
                continue;
            }
            let values: Vec<&str> = line.split(',').map(str::trim).collect();
            if values.len() != ADULT_COLUMNS.len() {
                let expected = ADULT_COLUMNS.len();
                let reason = format!("line {}: {} values, expected {expected}", number + 1, values.len());
                return Err(bad(&path, reason));
            }
            if values.contains(&"?") {
                continue;
            }
            kept += 1;
            let married = if values[5].starts_with("Married") { "married" } else { "unmarried" };
            let cells: Vec<&str> = (0..ADULT_COLUMNS.len())
                .filter(|&k| k != 7)
                .map(|k| match k {
                    5 => married,
                    14 => values[k].trim_end_matches('.'),
                    _ => values[k],
                })
                .collect();
            out.push_str(&cells.join(","));
            out.push('\n');
        }
        counted(context, &path, "complete rows", kept, complete)?;
        let target = context.scratch.join(format!("{}.csv", name.replace('.', "-")));
        fs::write(&target, out).map_err(|e| bad(&target, format!("cannot write it: {e}")))?;
        Ok(target)
    };
    Ok((convert("adult.data", 30_162)?, convert("adult.test", 15_060)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;
    use std::io::Write;

    /// Made-up data in a folder.
    fn at<'a>(folder: &Path, scratch: &Path, hooks: &'a leakscope_table::Hooks) -> Context<'a> {
        Context {
            folder: folder.to_owned(),
            synthetic: true,
            scratch: scratch.to_owned(),
            trials: 1,
            runs: None,
            full: false,
            seed: 3,
            device: leakscope::net::Device::default(),
            hooks,
        }
    }

    /// Every set reads the same from `X`, from `X.gz`, and from a gzipped file that is called `X`.
    #[test]
    fn zipped_files_are_read_as_plain_ones() {
        let hooks = leakscope_table::Hooks::default();
        let read = |zipped: bool, named: bool| {
            let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            synthetic::write(folder.path(), &Set::ALL, 3).unwrap();
            for set in Set::ALL.iter().filter(|_| zipped) {
                for entry in fs::read_dir(folder.path().join(set.folder())).unwrap() {
                    let path = entry.unwrap().path();
                    let content = fs::read(&path).unwrap();
                    fs::remove_file(&path).unwrap();
                    let name =
                        if named { format!("{}.gz", path.display()) } else { path.display().to_string() };
                    let file = fs::File::create(name).unwrap();
                    let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                    out.write_all(&content).unwrap();
                    out.finish().unwrap();
                }
            }
            let context = at(folder.path(), scratch.path(), &hooks);
            let (train, test) = incomes(&context).unwrap();
            let table = fs::read_to_string(warfarin(&context).unwrap()).unwrap();
            let texts = [table, fs::read_to_string(train).unwrap(), fs::read_to_string(test).unwrap()];
            let images = [digits(&context), photographs(&context), chests(&context)].map(|set| {
                let (train, test) = set.unwrap();
                (train.pixels, train.labels, test.pixels, test.labels)
            });
            (texts, images)
        };
        let plain = read(false, false);
        assert!(plain.0.iter().all(|t| t.lines().count() > 100));
        assert_eq!(read(true, true), plain);
        assert_eq!(read(true, false), plain);
    }

    /// A made-up file in the binary format of CIFAR-10: a label, then planes of red, green and blue, row by row.
    #[test]
    fn photographs_are_read_as_pixels_of_three_channels() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = vec![7];
        record.extend(vec![10; 1024]);
        record.extend((0..1024).map(|k| (k % 32) as u8));
        record.extend(vec![30; 1024]);
        let names = (1..=5).map(|k| format!("data_batch_{k}.bin")).chain(["test_batch.bin".to_owned()]);
        names.for_each(|name| fs::write(folder.path().join(name), &record).unwrap());
        let hooks = leakscope_table::Hooks::default();
        let (train, test) = photographs(&at(folder.path(), folder.path(), &hooks)).unwrap();
        assert_eq!((train.labels, test.labels), (vec![7; 5], vec![7]));
        assert_eq!(train.shape, [32, 32, 3]);
        assert_eq!(train.pixels[..6], [10, 0, 30, 10, 1, 30]);
        assert_eq!(train.pixels[3 * 32..][..3], [10, 0, 30]);
    }

    #[test]
    fn a_broken_zip_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("adult.data.gz");
        fs::write(&path, [0x1f, 0x8b, 8, 0, 1]).unwrap();
        let message = contents(&path).unwrap_err().to_string();
        assert!(message.contains("adult.data.gz") && message.contains("unpacked"), "{message}");
    }
}
