//! Records and labels from files: a pair of idx files, a safetensors file with `x` and `y`, or a folder of such.

use super::idx;
use crate::{Failure, Result};
use leakscope_net::{Data, Loss, Network, Shape, tensors::Tensors};
use std::path::{Path, PathBuf};

/// Records as they were read, scaled.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Names of the files, without folders.
    pub(super) files: Vec<String>,
    /// Shape of a record.
    pub(super) shape: Shape,
    /// Values that are shown black and white.
    pub(super) range: [f64; 2],
    x: Vec<f32>,
    labels: Option<Labels>,
}

/// Label values, `(n, per record)`.
#[derive(Debug, Clone)]
struct Labels {
    each: usize,
    values: Vec<f32>,
}

/// Which files of a folder are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `train-images…` and `train-labels…`, or `train.safetensors`.
    Train,
    /// `t10k-images…` and `t10k-labels…`, or `test.safetensors`.
    Test,
}

/// How files are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// The flag that named them.
    pub(super) flag: &'a str,
    /// Which part of a folder.
    pub(super) part: Part,
    /// Values become `(x − mean)/sd`; bytes are divided by 255 first.
    pub(super) normalize: [f64; 2],
    /// At most this many records.
    pub(super) limit: Option<usize>,
}

/// The files of a folder: images (or the safetensors file) first.
fn within(folder: &Path, part: Part) -> Option<Vec<PathBuf>> {
    let (stem, single) = match part {
        Part::Train => ("train", "train.safetensors"),
        Part::Test => ("t10k", "test.safetensors"),
    };
    let find = |what: &str, extents: u8| {
        let names = ["-", "."].map(|dot| format!("{stem}-{what}{dot}idx{extents}-ubyte"));
        names.into_iter().flat_map(|n| [folder.join(format!("{n}.gz")), folder.join(n)]).find(|p| p.is_file())
    };
    match (find("images", 3), find("labels", 1)) {
        (Some(images), Some(labels)) => Some(vec![images, labels]),
        _ => Some(folder.join(single)).filter(|p| p.is_file()).map(|p| vec![p]),
    }
}

/// The test files beside the training files, where the data is a folder that has them.
pub(super) fn test_beside(paths: &[PathBuf]) -> Option<Vec<PathBuf>> {
    match paths {
        [folder] if folder.is_dir() => within(folder, Part::Test),
        _ => None,
    }
}

impl Source {
    /// Reads files, or the files of a folder.
    pub(super) fn read(paths: &[PathBuf], how: Reading<'_>) -> Result<Self> {
        let files = match paths {
            [folder] if folder.is_dir() => within(folder, how.part).ok_or_else(|| {
                let wanted = match how.part {
                    Part::Train => {
                        "train-images-idx3-ubyte[.gz] and train-labels-idx1-ubyte[.gz], or train.safetensors"
                    }
                    Part::Test => {
                        "t10k-images-idx3-ubyte[.gz] and t10k-labels-idx1-ubyte[.gz], or test.safetensors"
                    }
                };
                Failure::flag(how.flag, format!("{} has no {wanted}", folder.display()))
            })?,
            files => files.to_vec(),
        };
        let is_tensors = |p: &PathBuf| p.extension().is_some_and(|e| e == "safetensors");
        let mut out = match &files[..] {
            [file] if is_tensors(file) => Self::from_tensors(file, how)?,
            [images] => Self::from_idx(images, None, how)?,
            [images, labels] => Self::from_idx(images, Some(labels), how)?,
            _ => {
                let message =
                    "expected a folder, a safetensors file with x and y, or two idx files (images, labels)";
                return Err(Failure::flag(how.flag, message));
            }
        };
        let name = |p: &PathBuf| p.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        out.files = files.iter().map(name).collect();
        if out.len() == 0 {
            return Err(Failure::flag(how.flag, format!("{}: there are no records", out.files.join(", "))));
        }
        Ok(out)
    }

    fn from_idx(images: &Path, labels: Option<&PathBuf>, how: Reading<'_>) -> Result<Self> {
        let bad = |path: &Path, reason: String| Failure::Message(format!("{}: {reason}", path.display()));
        let file = idx::read(images, how.limit)?;
        let (n, shape) = match file.shape[..] {
            [n, h, w] => (n, [h, w, 1]),
            [n, h, w, c] => (n, [h, w, c]),
            _ => {
                let found = file.shape.len();
                let reason =
                    format!("it has {found} extents: images have 3 (or 4 with channels); give images first");
                return Err(bad(images, reason));
            }
        };
        let labels = match labels {
            None => None,
            Some(path) => {
                let l = idx::read(path, how.limit)?;
                if l.shape.len() != 1 || l.shape[0] != n {
                    let reason =
                        format!("it has shape {:?}: expected a label for each of {n} images", l.shape);
                    return Err(bad(path, reason));
                }
                Some(Labels { each: 1, values: l.bytes.iter().map(|&b| f32::from(b)).collect() })
            }
        };
        let [mean, sd] = how.normalize;
        let scaled = |v: f64| (v - mean) / sd;
        let shades: Vec<f32> = (0..=255u8).map(|b| scaled(f64::from(b) / 255.0) as f32).collect();
        let x = file.bytes.iter().map(|&b| shades[usize::from(b)]).collect();
        let range = [scaled(0.0), scaled(1.0)];
        Ok(Self { files: Vec::new(), shape: Shape::Image(shape), range, x, labels })
    }

    fn from_tensors(path: &Path, how: Reading<'_>) -> Result<Self> {
        let bad = |reason: String| Failure::Message(format!("{}: {reason}", path.display()));
        let bytes = std::fs::read(path).map_err(|e| bad(format!("cannot read it: {e}")))?;
        let file = Tensors::from_bytes(&bytes).map_err(|e| bad(e.to_string()))?;
        let (extents, mut x) = file.get::<f32>("x").map_err(|e| bad(e.to_string()))?;
        let (n, shape) = match extents {
            &[n, d] => (n, Shape::Vector([d])),
            &[n, h, w] => (n, Shape::Image([h, w, 1])),
            &[n, h, w, c] => (n, Shape::Image([h, w, c])),
            other => {
                let wanted = "(records, values) or (records, height, width[, channels])";
                return Err(bad(format!("x has shape {other:?}: expected {wanted}")));
            }
        };
        if let Some(at) = x.iter().position(|v| !v.is_finite()) {
            let record = at / shape.len().max(1);
            return Err(bad(format!("x is not finite in record {record}: repair or remove it")));
        }
        let keep = n.min(how.limit.unwrap_or(usize::MAX));
        x.truncate(keep * shape.len());
        let [mean, sd] = how.normalize;
        x.iter_mut().for_each(|v| *v = ((f64::from(*v) - mean) / sd) as f32);
        let labels = if file.names().any(|name| name == "y") {
            let (extents, mut values) = file.get::<f32>("y").map_err(|e| bad(e.to_string()))?;
            let each = match extents {
                &[m] if m == n => 1,
                &[m, k] if m == n && k > 0 => k,
                other => return Err(bad(format!("y has shape {other:?}: expected ({n}) or ({n}, outputs)"))),
            };
            values.truncate(keep * each);
            Some(Labels { each, values })
        } else {
            None
        };
        let ends = |[a, b]: [f64; 2], v: &f32| [a.min(f64::from(*v)), b.max(f64::from(*v))];
        let range = x.iter().fold([f64::INFINITY, f64::NEG_INFINITY], ends);
        Ok(Self { files: Vec::new(), shape, range, x, labels })
    }

    /// Number of records.
    pub(super) fn len(&self) -> usize {
        self.x.len() / self.shape.len().max(1)
    }

    /// Whether there are labels.
    pub(super) fn labelled(&self) -> bool {
        self.labels.is_some()
    }

    /// Outputs that a network for these labels needs: one more than the largest class, or the values of a label.
    pub(super) fn outputs(&self) -> Result<usize> {
        let labels = self.labels.as_ref().ok_or_else(|| self.unlabelled())?;
        if labels.each > 1 {
            return Ok(labels.each);
        }
        Ok(self.classes(&labels.values)?.into_iter().max().map_or(2, |c| c as usize + 1).max(2))
    }

    fn unlabelled(&self) -> Failure {
        let files = self.files.join(", ");
        Failure::Message(format!("{files}: there are no labels; give them as a second idx file, or as y"))
    }

    fn classes(&self, values: &[f32]) -> Result<Vec<u32>> {
        let class = |(i, &v): (usize, &f32)| {
            if (0.0..=65_535.0).contains(&v) && v.fract() == 0.0 {
                Ok(v as u32)
            } else {
                let files = self.files.join(", ");
                let message =
                    format!("{files}: the label of record {i} is {v}: expected a class, counted from 0");
                Err(Failure::Message(message))
            }
        };
        values.iter().enumerate().map(class).collect()
    }

    /// The records with their labels as a network takes them. The values move into the answer.
    pub(super) fn take_data(&mut self, net: &Network<f32>) -> Result<Data<f32>> {
        let labels = self.labels.take().ok_or_else(|| self.unlabelled())?;
        self.fits(net)?;
        let (k, files) = (net.outputs(), self.files.join(", "));
        let wrong = |message: String| Failure::Message(format!("{files}: {message}"));
        if labels.each == 1 && k > 1 {
            let classes = self.classes(&labels.values)?;
            let x = std::mem::take(&mut self.x);
            return Data::classes(self.shape, x, k, &classes).map_err(|e| wrong(e.to_string()));
        }
        if labels.each != k {
            return Err(wrong(format!("labels have {} values, the network {k} outputs", labels.each)));
        }
        let unit = !matches!(net.loss(), Loss::SquaredError);
        if let Some(i) = labels.values.iter().position(|v| unit && !(0.0..=1.0).contains(v)) {
            return Err(wrong(format!(
                "the label of record {} is {}: expected values between 0 and 1, as the network’s loss takes them",
                i / k,
                labels.values[i]
            )));
        }
        let x = std::mem::take(&mut self.x);
        Data::new(self.shape, x, k, labels.values).map_err(|e| wrong(e.to_string()))
    }

    /// The records, all with one class: to find out what a network says about records without labels.
    pub(super) fn as_class(&self, net: &Network<f32>, class: u32) -> Result<Data<f32>> {
        self.fits(net)?;
        Ok(Data::classes(self.shape, self.x.clone(), net.outputs(), &vec![class; self.len()])?)
    }

    /// The records with given classes.
    pub(super) fn with_classes(&self, net: &Network<f32>, classes: &[u32]) -> Result<Data<f32>> {
        Ok(Data::classes(self.shape, self.x.clone(), net.outputs(), classes)?)
    }

    fn fits(&self, net: &Network<f32>) -> Result<()> {
        let (found, made) = (self.shape.dims(), net.input().dims());
        let fits = self.shape == net.input() || (found.len() == 1 && found[0] == net.input().len());
        if fits {
            return Ok(());
        }
        let files = self.files.join(", ");
        Err(Failure::Message(format!(
            "{files}: records have shape {found:?}, the network was made for {made:?}: give it records of that shape"
        )))
    }
}

/// A label in words: the class, or the value.
pub(super) fn label(data: &Data<f32>, record: usize) -> String {
    match data.label(record) {
        [one] => one.to_string(),
        many => {
            let best = (0..many.len()).fold(0, |b, i| if many[i] > many[b] { i } else { b });
            best.to_string()
        }
    }
}
