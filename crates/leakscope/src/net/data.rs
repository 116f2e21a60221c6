//! Records and labels from files: a pair of idx files, a safetensors or npz file with both, or a folder of such.

use super::model::named;
use super::table::{Coding, Rows};
use crate::failure::present;
use crate::{Failure, Result};
use leakscope_net::io::{self, Array};
use leakscope_net::{Data, Loss, Network, Real, Shape, engine::predict};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Records as they were read, scaled.
#[derive(Debug, Clone)]
pub(super) struct Source<T> {
    /// Names of the files, without folders.
    pub(super) files: Vec<String>,
    /// Shape of a record.
    pub(super) shape: Shape,
    /// Values that are shown black and white.
    pub(super) range: [f64; 2],
    /// What records are called.
    pub(super) names: Names,
    x: Vec<T>,
    labels: Option<Labels<T>>,
}

/// What records are called, and their labels in words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Ids of the rows of a table; empty where records are arrays, which have numbers.
    ids: Vec<String>,
    /// How the rows were encoded.
    pub(super) coding: Option<Arc<Coding>>,
    /// What of the network was read off the labels, in words, each with the option that gives it.
    pub(super) guessed: Vec<&'static str>,
}

impl Names {
    /// Records by the caller's ids.
    pub(crate) fn of_ids(ids: Vec<String>) -> Self {
        Self { ids, ..Self::default() }
    }

    /// The caller's id of a record, where there is one.
    pub(super) fn id(&self, record: usize) -> Option<String> {
        self.ids.get(record).cloned()
    }

    /// What a record is called: its id, or its number.
    pub(super) fn of(&self, record: usize) -> String {
        self.id(record).unwrap_or_else(|| record.to_string())
    }

    /// The column of ids of a table of records.
    pub(super) fn id_column(&self) -> String {
        let own = self.coding.as_ref().and_then(|c| c.encoding.id.clone());
        own.unwrap_or_else(|| "record".into())
    }

    /// A label in the words of the table, or as [`label`] says it.
    pub(super) fn label<T: Real>(&self, data: &Data<T>, record: usize, loss: Loss) -> Option<String> {
        self.own_label(data, record).or_else(|| label(data, record, loss))
    }

    /// A label in the words of the table, or as [`short_label`] says it.
    pub(super) fn short_label<T: Real>(&self, data: &Data<T>, record: usize, loss: Loss) -> Option<String> {
        self.own_label(data, record).or_else(|| short_label(data, record, loss))
    }

    fn own_label<T: Real>(&self, data: &Data<T>, record: usize) -> Option<String> {
        let coding = self.coding.as_ref()?;
        match &*data.label(record) {
            [one] => Some(coding.label_in_words(one.to_f64())),
            [] => None,
            many => {
                let best = (0..many.len()).fold(0, |b, i| if many[i] > many[b] { i } else { b });
                Some(coding.label_in_words(best as f64))
            }
        }
    }

    /// What of the encoding, or of the network, was read off the records, in words.
    pub(super) fn read_off(&self) -> Vec<String> {
        let encoded = self.coding.as_ref().map(|c| c.read_off()).unwrap_or_default();
        encoded.into_iter().chain(self.guessed.iter().map(|g| (*g).to_owned())).collect()
    }

    /// The column that is predicted, where there is a table.
    pub(super) fn target(&self) -> Option<String> {
        self.coding.as_ref().map(|c| c.encoding.target.name.clone())
    }
}

/// Label values, `(n, per record)`.
#[derive(Debug, Clone)]
struct Labels<T> {
    each: usize,
    values: Vec<T>,
}

/// Which records of a folder or file are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `train-images…` and `train-labels…`, `train.safetensors` or `train.npz`; in an npz file `train_images`.
    Train,
    /// `t10k-images…` and `t10k-labels…`, `test.safetensors` or `test.npz`; in an npz file `test_images`.
    Test,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }

    /// What a folder must have, in words.
    fn description(self) -> String {
        let (part, stem) = (self.name(), self.stem());
        format!(
            "{stem}-images-idx3-ubyte[.gz] and {stem}-labels-idx1-ubyte[.gz], {part}.safetensors or {part}.npz"
        )
    }

    /// How MNIST's files begin.
    fn stem(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "t10k",
        }
    }

    /// Names of records and of labels in an npz file, as MedMNIST, Keras and plain files have them.
    fn arrays(self) -> [[String; 2]; 3] {
        let part = self.name();
        [
            [format!("{part}_images"), format!("{part}_labels")],
            [format!("x_{part}"), format!("y_{part}")],
            ["x".to_owned(), "y".to_owned()],
        ]
    }
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

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted))
}

/// The files of a folder: images (or the file with both) first.
fn within(folder: &Path, part: Part) -> Option<Vec<PathBuf>> {
    let stem = part.stem();
    let find = |role: &str, extents: u8| {
        let names = ["-", "."].map(|dot| format!("{stem}-{role}{dot}idx{extents}-ubyte"));
        names.into_iter().flat_map(|n| [folder.join(format!("{n}.gz")), folder.join(n)]).find(|p| p.is_file())
    };
    match (find("images", 3), find("labels", 1)) {
        (Some(images), Some(labels)) => Some(vec![images, labels]),
        _ => ["safetensors", "npz"]
            .map(|end| folder.join(format!("{}.{end}", part.name())))
            .into_iter()
            .find(|p| p.is_file())
            .map(|p| vec![p]),
    }
}

/// The test records beside the training records, where the data is a folder or an npz file that has them.
pub(super) fn test_beside(paths: &[PathBuf]) -> Option<Vec<PathBuf>> {
    match paths {
        [folder] if folder.is_dir() => within(folder, Part::Test),
        [file] if has_extension(file, "npz") => {
            let both = io::read_npz(file).ok()?;
            let [[images, _], [x, _], _] = Part::Test.arrays();
            both.names().any(|n| n == images || n == x).then(|| paths.to_vec())
        }
        _ => None,
    }
}

impl<T: Real> Source<T> {
    /// Reads files, or the files of a folder.
    pub(super) fn read(paths: &[PathBuf], how: Reading<'_>) -> Result<Self> {
        present(how.flag, paths)?;
        let files = match paths {
            [folder] if folder.is_dir() => within(folder, how.part).ok_or_else(|| {
                let missing = || format!("{} has no {}", folder.display(), how.part.description());
                let foreign = io::advice(folder).map(|advice| format!("{}: {advice}", folder.display()));
                Failure::option(how.flag, foreign.unwrap_or_else(missing))
            })?,
            files => files.to_vec(),
        };
        let (x, y) = match &files[..] {
            [file] if has_extension(file, "safetensors") => from_tensors(file, how.limit)?,
            [file] if has_extension(file, "npz") => from_npz(file, how)?,
            [images] => (one_file(images, how.limit)?, None),
            [images, labels] => (one_file(images, how.limit)?, Some(one_file(labels, how.limit)?)),
            _ => {
                let message = "expected a folder, a safetensors or npz file with both, or two idx files (images, labels)";
                return Err(Failure::option(how.flag, message));
            }
        };
        let name = |p: &PathBuf| p.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        // of two idx files, what is wrong with labels is said of the second
        let (of_x, of_y) = (files[0].display().to_string(), files[files.len() - 1].display().to_string());
        let n = x.records();
        let out = Self::scaled(x, how.normalize).map_err(|e| Failure::Data(format!("{of_x}: {e}")))?;
        let labels =
            y.map(|y| labels(y, n).map_err(|e| Failure::Data(format!("{of_y}: {e}")))).transpose()?;
        let out = Self { files: files.iter().map(name).collect(), labels, ..out };
        if out.len() == 0 {
            return Err(Failure::option(how.flag, format!("{}: there are no records", out.files.join(", "))));
        }
        Ok(out)
    }

    /// The rows of a table.
    pub(super) fn of_rows(rows: Rows, coding: &Arc<Coding>, files: Vec<String>) -> Self {
        let n = rows.ids.len();
        let values = |v: Vec<f64>| v.into_iter().map(T::from_f64).collect::<Vec<T>>();
        Self {
            files,
            shape: Shape::Vector([rows.x.len() / n.max(1)]),
            range: [0.0, 1.0],
            names: Names { ids: rows.ids, coding: Some(Arc::clone(coding)), guessed: vec![] },
            x: values(rows.x),
            labels: rows.y.map(|y| Labels { each: 1, values: values(y) }),
        }
    }

    /// Records and labels that are in memory already, under a name for messages.
    pub(super) fn of_arrays(x: Array<T>, y: Option<Array<T>>, name: &str) -> Result<Self> {
        let n = x.records();
        let named = |e: String| Failure::Data(format!("{name}: {e}"));
        let out = Self::scaled(x, [0.0, 1.0]).map_err(named)?;
        let labels = y.map(|y| labels(y, n).map_err(named)).transpose()?;
        if n == 0 {
            return Err(Failure::Data(format!("{name}: there are no records")));
        }
        Ok(Self { files: vec![name.to_owned()], labels, ..out })
    }

    /// Records from an array: `(x − mean)/sd`, bytes over 255 first.
    fn scaled(x: Array<T>, [mean, sd]: [f64; 2]) -> std::result::Result<Self, String> {
        let shape = x.record_shape()?;
        if let Some(at) = x.values.iter().position(|v| !v.to_f64().is_finite()) {
            let record = at / shape.len().max(1);
            return Err(format!("x is not finite in record {record}: repair or remove it"));
        }
        let scaled = |v: f64| (v - mean) / sd;
        let whole = if x.bytes { 255.0 } else { 1.0 };
        let mut values = x.values;
        values.iter_mut().for_each(|v| *v = T::from_f64(scaled(v.to_f64() / whole)));
        let range = match x.bytes {
            true => [scaled(0.0), scaled(1.0)],
            false => values
                .iter()
                .map(|v| v.to_f64())
                .fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], v| [a.min(v), b.max(v)]),
        };
        Ok(Self { files: Vec::new(), shape, range, names: Names::default(), x: values, labels: None })
    }

    /// Number of records.
    pub(super) fn len(&self) -> usize {
        self.x.len() / self.shape.len().max(1)
    }

    /// Whether there are labels.
    pub(super) fn labelled(&self) -> bool {
        self.labels.is_some()
    }

    /// Outputs that a network for these labels needs under a loss: one more than the largest class, or the values of a
    /// label.
    pub(super) fn outputs(&self, loss: Option<Loss>) -> Result<usize> {
        let labels = self.labels.as_ref().ok_or_else(|| self.unlabelled())?;
        // a class that is public need not occur
        if let (None | Some(Loss::SoftmaxCrossEntropy), Some(count)) =
            (loss, self.names.coding.as_ref().and_then(|c| c.classes()))
        {
            return Ok(count);
        }
        let classes = matches!(loss, None | Some(Loss::SoftmaxCrossEntropy));
        if labels.each > 1 || !classes {
            return Ok(labels.each);
        }
        Ok(self.classes(&labels.values)?.into_iter().max().map_or(2, |c| c as usize + 1).max(2))
    }

    /// Whether outputs under a loss are counted by the largest class of the labels: one record may hold that.
    pub(super) fn counts_classes(&self, loss: Option<Loss>) -> bool {
        let one = self.labels.as_ref().is_some_and(|l| l.each == 1);
        one && matches!(loss, None | Some(Loss::SoftmaxCrossEntropy)) && self.names.coding.is_none()
    }

    /// Whether the values of labels decide the loss of a preset.
    pub(super) fn guesses_loss(&self) -> bool {
        self.names.coding.is_none() && self.labels.as_ref().is_some_and(|l| l.each > 1)
    }

    /// The loss of a preset: squares for a number of a table; for labels of several values the softmax where they are a class
    /// (one-hot) or a distribution over classes, one binary cross-entropy for each where several may hold at once. Absent
    /// where a label is one value of an array.
    pub(super) fn own_loss(&self) -> Result<Option<Loss>> {
        if self.names.coding.as_ref().is_some_and(|c| c.is_regression()) {
            return Ok(Some(Loss::SquaredError));
        }
        let Some(labels) = self.labels.as_ref().filter(|l| l.each > 1) else { return Ok(None) };
        let mut distributions = true;
        for (i, row) in labels.values.chunks_exact(labels.each).enumerate() {
            if let Some(v) = row.iter().map(|v| v.to_f64()).find(|v| !(0.0..=1.0).contains(v)) {
                let files = self.files.join(", ");
                return Err(Failure::Data(format!(
                    "{files}: a label of record {i} is {v}: to predict values give ⟨loss=squared-error⟩; to tell which of \
                     {} labels hold, give each as 0 or 1",
                    labels.each
                )));
            }
            distributions &= (row.iter().map(|v| v.to_f64()).sum::<f64>() - 1.0).abs() <= 1e-3;
        }
        Ok(Some(if distributions { Loss::SoftmaxCrossEntropy } else { Loss::BinaryCrossEntropy }))
    }

    fn unlabelled(&self) -> Failure {
        let files = self.files.join(", ");
        Failure::Data(format!("{files}: there are no labels; give them as a second idx file, or as y"))
    }

    fn classes(&self, values: &[T]) -> Result<Vec<u32>> {
        let class = |(i, v): (usize, &T)| {
            let v = v.to_f64();
            if (0.0..=65_535.0).contains(&v) && v.fract() == 0.0 {
                Ok(v as u32)
            } else {
                let files = self.files.join(", ");
                let message = format!(
                    "{files}: the label of record {i} is {v}: expected a class, counted from 0; to predict a value \
                             give ⟨loss=squared-error⟩"
                );
                Err(Failure::Data(message))
            }
        };
        values.iter().enumerate().map(class).collect()
    }

    /// The records with their labels as a network takes them. The values move into the answer.
    pub(super) fn take_data(&mut self, net: &Network<T>) -> Result<Data<T>> {
        let labels = self.labels.take().ok_or_else(|| self.unlabelled())?;
        self.fits(net)?;
        let (k, files) = (net.outputs(), self.files.join(", "));
        let wrong = |message: String| Failure::Data(format!("{files}: {message}"));
        if labels.each == 1 && k > 1 {
            let classes = self.classes(&labels.values)?;
            if let Some(i) = classes.iter().position(|c| *c as usize >= k) {
                return Err(wrong(format!(
                    "the label of record {i} is {}: expected a class below the number of outputs, {k}; classes count from 0",
                    classes[i]
                )));
            }
            let x = std::mem::take(&mut self.x);
            return Data::classes(self.shape, x, k, &classes).map_err(|e| wrong(e.to_string()));
        }
        if labels.each != k {
            return Err(wrong(format!("labels have {} values, the network {k} outputs", labels.each)));
        }
        let unit = !matches!(net.loss(), Loss::SquaredError);
        if let Some(i) = labels.values.iter().position(|v| unit && !(0.0..=1.0).contains(&v.to_f64())) {
            return Err(wrong(format!(
                "the label of record {} is {}: expected values between 0 and 1, as the network’s loss takes them",
                i / k,
                labels.values[i].to_f64()
            )));
        }
        let x = std::mem::take(&mut self.x);
        Data::new(self.shape, x, k, labels.values).map_err(|e| wrong(e.to_string()))
    }

    /// The records, all with one class: where labels do not matter.
    pub(super) fn as_class(&self, net: &Network<T>, class: u32) -> Result<Data<T>> {
        self.fits(net)?;
        Ok(Data::classes(self.shape, self.x.clone(), net.outputs(), &vec![class; self.len()])?)
    }

    /// The records with what the network says of them as their labels: the likeliest class of a softmax, each label that is
    /// likelier than not otherwise.
    pub(super) fn with_own_answers(&self, net: &Network<T>) -> Result<Data<T>> {
        self.fits(net)?;
        let z = predict(net, &self.x)?;
        let answer = |i: usize| -> Vec<T> {
            let z = z.outputs(i);
            let best = (0..z.len()).fold(0, |b, j| if z[j] > z[b] { j } else { b });
            let holds = |j: usize| match net.loss() {
                Loss::SoftmaxCrossEntropy => j == best,
                Loss::BinaryCrossEntropy | Loss::SquaredError => z[j] > 0.0,
            };
            (0..z.len()).map(|j| if holds(j) { T::ONE } else { T::ZERO }).collect()
        };
        let y = (0..self.len()).flat_map(answer).collect();
        Ok(Data::new(self.shape, self.x.clone(), net.outputs(), y)?)
    }

    fn fits(&self, net: &Network<T>) -> Result<()> {
        let (dims, made) = (self.shape.dims(), net.input().dims());
        let fits = self.shape == net.input() || (dims.len() == 1 && dims[0] == net.input().len());
        if fits {
            return Ok(());
        }
        let files = self.files.join(", ");
        Err(Failure::Data(format!(
            "{files}: records have shape {dims:?}, the network was made for {made:?}: give it records of that shape"
        )))
    }
}

/// Label values of `n` records.
fn labels<T: Real>(y: Array<T>, n: usize) -> std::result::Result<Labels<T>, String> {
    match y.shape[..] {
        [m] if m == n => Ok(Labels { each: 1, values: y.values }),
        [m, each] if m == n && each > 0 => Ok(Labels { each, values: y.values }),
        _ => Err(format!("labels have shape {:?}: expected a label for each of {n} records", y.shape)),
    }
}

type Arrays<T> = (Array<T>, Option<Array<T>>);

/// `x` and, where it is there, `y` of a safetensors file.
fn from_tensors<T: Real>(path: &Path, limit: Option<usize>) -> Result<Arrays<T>> {
    let file = io::read_tensors(path)?;
    let get = |name: &str| {
        let (shape, values) = file.get::<T>(name).map_err(named(path))?;
        let bytes = file.is_bytes(name);
        Ok::<_, Failure>(Array { shape: shape.to_vec(), values, bytes }.truncate(limit))
    };
    let y = file.names().any(|name| name == "y").then(|| get("y")).transpose()?;
    Ok((get("x")?, y))
}

/// Records and, where they are there, labels of an npz file.
fn from_npz<T: Real>(path: &Path, how: Reading<'_>) -> Result<Arrays<T>> {
    let file = io::read_npz(path)?;
    let has = |name: &str| file.names().any(|n| n == name);
    let known = how.part.arrays();
    let Some([x, y]) = known.iter().find(|[x, _]| has(x)) else {
        let (wanted, listed) =
            (known.map(|[x, _]| x).join(", "), file.names().collect::<Vec<_>>().join(", "));
        return Err(Failure::option(
            how.flag,
            format!("{} has none of the arrays {wanted}; it has {listed}", path.display()),
        ));
    };
    let get = |name: &str| file.array(name, how.limit).map_err(named(path));
    Ok((get(x)?, has(y).then(|| get(y)).transpose()?))
}

/// The array of an npy or idx file.
fn one_file<T: Real>(path: &Path, limit: Option<usize>) -> Result<Array<T>> {
    match has_extension(path, "npy") {
        true => Ok(io::read_npy(path, limit)?),
        false => Ok(io::read_idx(path, limit)?.array()),
    }
}

/// The array of an idx or npy file, or of an npz file that has one.
pub(super) fn one_array(path: &Path) -> Result<Array<f64>> {
    if !has_extension(path, "npz") {
        return one_file(path, None);
    }
    let file = io::read_npz(path)?;
    let names: Vec<&str> = file.names().collect();
    match names[..] {
        [name] => file.array(name, None).map_err(named(path)),
        _ => Err(Failure::Message(format!(
            "{} has the arrays {}: expected one",
            path.display(),
            names.join(", ")
        ))),
    }
}

/// A label for people: the class, or the value to four digits.
fn short_label<T: Real>(data: &Data<T>, record: usize, loss: Loss) -> Option<String> {
    if let Shape::Tokens { .. } = data.input() {
        return None;
    }
    match &*data.label(record) {
        [one] if one.to_f64().fract() != 0.0 => Some(leakscope_report::format::number(one.to_f64())),
        _ => label(data, record, loss),
    }
}

/// A label in words: the class, or the value; absent where it is several values to predict.
fn label<T: Real>(data: &Data<T>, record: usize, loss: Loss) -> Option<String> {
    // the labels of a text are its own tokens
    if let Shape::Tokens { .. } = data.input() {
        return None;
    }
    match &*data.label(record) {
        [one] => Some(one.to_f64().to_string()),
        many => several(many, loss),
    }
}

/// Labels of several values in words: the class, or the numbers of those that hold.
fn several<T: Real>(many: &[T], loss: Loss) -> Option<String> {
    match loss {
        Loss::SquaredError => None,
        Loss::BinaryCrossEntropy => {
            let hold = (0..many.len()).filter(|&i| many[i].to_f64() > 0.5);
            let hold: Vec<String> = hold.map(|i| i.to_string()).collect();
            Some(if hold.is_empty() { "none".to_owned() } else { hold.join("+") })
        }
        Loss::SoftmaxCrossEntropy => {
            let best = (0..many.len()).fold(0, |b, i| if many[i] > many[b] { i } else { b });
            Some(best.to_string())
        }
    }
}

/// The column of labels of a table, where records have one.
pub(super) fn label_column<T: Real>(data: &Data<T>, loss: Loss) -> Vec<String> {
    label(data, 0, loss).map(|_| "label".to_owned()).into_iter().collect()
}
