//! Linear models of images, as Hannun §6.1 has them: the unit ball, principal components of the training set, no
//! intercept.

use super::data::Images;
use leakscope::Result;
use leakscope::model::scores;
use leakscope_core::balance::{Balanced, Level, Options, Sharing, Update, Variant, balance};
use leakscope_core::fisher::{Geometry, Records, Release};
use leakscope_core::glm::{self, Family, Fit, Metric, Penalty};
use leakscope_core::linalg::{gram_add_lower, matmul, matmul_by_transposed, mirror_lower, symmetric_eigen};
use leakscope_core::num::{Distribution, Summary};
use leakscope_core::rows::InMemory;
use leakscope_report::format;
use leakscope_report::net::Picture;
use leakscope_report::reproduction::Captioned;

/// Principal components that are kept.
pub(super) const COMPONENTS: usize = 20;
/// σ = 1, label and image secret: what the papers report.
pub(super) const UNIT: Release = Release { sigma: 1.0, releases: 1, label_secret: true };

/// Penalty of logistic regression on MNIST: AM207 §10.1 quotes it from the published code.
pub(super) const MNIST_L2: f64 = 8e-4;

const BLOCK: usize = 2048;

/// The map from pixels to columns: divide by the largest norm of the training set, centre, project.
pub(super) struct Projection {
    norm: f64,
    mean: Vec<f64>,
    /// size × k.
    components: Vec<f64>,
    k: usize,
}

impl Projection {
    /// Fits it to training images.
    pub(super) fn fit(images: &Images, k: usize) -> Result<Self> {
        let (n, size) = (images.labels.len(), images.size());
        let k = k.min(size).min(n.saturating_sub(1)).max(1);
        let mut x: Vec<f64> = images.pixels.iter().map(|&b| f64::from(b)).collect();
        let norm = largest_norm(images);
        let mut mean = vec![0.0; size];
        for row in x.chunks_exact_mut(size) {
            row.iter_mut().zip(&mut mean).for_each(|(v, m)| {
                *v /= norm;
                *m += *v / n as f64;
            });
        }
        x.chunks_exact_mut(size).for_each(|row| row.iter_mut().zip(&mean).for_each(|(v, m)| *v -= m));
        let mut components = vec![0.0; size * k];
        if n < size {
            // XXᵀ has the same eigenvalues, and Xᵀu/‖Xᵀu‖ are the components.
            let mut gram = vec![0.0; n * n];
            matmul_by_transposed(&x, &x, (n, size, n), &mut gram);
            let (values, u) = symmetric_eigen(&gram, n)?;
            for c in 0..k {
                let length = values[c].max(f64::MIN_POSITIVE).sqrt();
                for (i, row) in x.chunks_exact(size).enumerate() {
                    let factor = u[i * n + c] / length;
                    row.iter().enumerate().for_each(|(j, v)| components[j * k + c] += factor * v);
                }
            }
        } else {
            let mut covariance = vec![0.0; size * size];
            gram_add_lower(&x, None, size, &mut vec![], &mut covariance);
            mirror_lower(&mut covariance, size);
            let (_, q) = symmetric_eigen(&covariance, size)?;
            for (out, row) in components.chunks_exact_mut(k).zip(q.chunks_exact(size)) {
                out.copy_from_slice(&row[..k]);
            }
        }
        Ok(Self { norm, mean, components, k })
    }

    /// Columns of images, row-major.
    pub(super) fn apply(&self, images: &Images) -> Vec<f64> {
        self.apply_scaled(images, self.norm)
    }

    /// Columns of images that are divided by a norm of their own.
    fn apply_scaled(&self, images: &Images, norm: f64) -> Vec<f64> {
        let (n, size) = (images.labels.len(), images.size());
        let mut x: Vec<f64> = images.pixels.iter().map(|&b| f64::from(b) / norm).collect();
        x.chunks_exact_mut(size).for_each(|row| row.iter_mut().zip(&self.mean).for_each(|(v, m)| *v -= m));
        let mut out = vec![0.0; n * self.k];
        matmul(&x, &self.components, (n, size, self.k), &mut out);
        out
    }
}

/// Largest norm of an image.
fn largest_norm(images: &Images) -> f64 {
    let square = |i: usize| images.image(i).iter().map(|&b| f64::from(b) * f64::from(b)).sum::<f64>();
    (0..images.labels.len()).map(square).fold(0.0, f64::max).sqrt().max(f64::MIN_POSITIVE)
}

/// Two classes of images, projected.
pub(super) struct Task {
    /// Which classes, lower one first.
    pub(super) classes: [u8; 2],
    /// Training images.
    pub(super) images: Images,
    /// The projection.
    pub(super) projection: Projection,
    /// Columns of training and test images, and of test images divided by their own largest norm.
    x: [Vec<f64>; 3],
    labels: [Vec<u8>; 3],
}

impl Task {
    /// Two classes out of a data set.
    pub(super) fn new((train, test): &(Images, Images), classes: [u8; 2]) -> Result<Self> {
        let (images, test) = (train.of(&classes), test.of(&classes));
        let projection = Projection::fit(&images, COMPONENTS)?;
        let by_own_norm = projection.apply_scaled(&test, largest_norm(&test));
        let x = [projection.apply(&images), projection.apply(&test), by_own_norm];
        let labels = [images.labels.clone(), test.labels.clone(), test.labels];
        Ok(Self { classes, images, projection, x, labels })
    }

    /// The rows of training or test images for a family: classes are ±1 for linear regression, 0 and 1 else.
    pub(super) fn rows(&self, family: Family, part: Part) -> InMemory {
        let part = part as usize;
        let y: Vec<f64> = self.labels[part].iter().map(|&l| coded(family, l == self.classes[1])).collect();
        InMemory::from_matrix(&self.x[part], &y, &[], BLOCK)
    }

    /// Classes of the training images.
    pub(super) fn labels(&self) -> &[u8] {
        &self.labels[0]
    }
}

/// A part of the images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Training images.
    Training,
    /// Test images, divided by the largest norm of the training images as those are.
    Test,
    /// Test images, divided by their own largest norm: what the published loader does.
    TestByOwnNorm,
}

/// The code of a class.
pub(super) fn coded(family: Family, high: bool) -> f64 {
    match (family, high) {
        (_, true) => 1.0,
        (Family::Linear, false) => -1.0,
        (_, false) => 0.0,
    }
}

/// A fitted model of a task with the leakage of every training image.
pub(super) struct Model {
    /// The model.
    pub(super) fit: Fit,
    /// Leakage.
    pub(super) records: Records,
    /// Accuracy on training and test images.
    pub(super) accuracy: [f64; 2],
}

/// All rows as one block would be measured.
pub(super) fn leakage(fit: &Fit, rows: &InMemory) -> Result<Records> {
    let geometry = Geometry::new(fit, &[], UNIT)?;
    let mut all = Records::default();
    let mut part = Records::default();
    for block in rows.blocks() {
        geometry.records(block, &mut part);
        all.eta.extend_from_slice(&part.eta);
        all.loss.extend_from_slice(&part.loss);
        all.gradient_norm.extend_from_slice(&part.gradient_norm);
    }
    Ok(all)
}

fn penalty(l2: f64) -> Penalty {
    Penalty::new(l2, false)
}

/// Share of rows whose class is predicted right.
pub(super) fn accuracy(rows: &InMemory, w: &[f64]) -> Result<f64> {
    Ok(scores(rows, w, Metric::Accuracy, &[0.0])?.0[0])
}

impl Model {
    /// Fits and measures.
    pub(super) fn new(task: &Task, family: Family, l2: f64) -> Result<Self> {
        let rows = task.rows(family, Part::Training);
        let fit = glm::fit(&rows, family, penalty(l2))?;
        let records = leakage(&fit, &rows)?;
        let accuracy = [accuracy(&rows, &fit.w)?, accuracy(&task.rows(family, Part::Test), &fit.w)?];
        Ok(Self { fit, records, accuracy })
    }
}

/// Reweights the training images of a task until they leak the same.
pub(super) fn reweight(task: &Task, family: Family, l2: f64, iterations: usize) -> Result<Balanced> {
    let options = Options {
        level: Level::Record,
        sharing: Sharing::Sample,
        variant: Variant::Weighted,
        update: Update::Published,
        clamp: None,
        iterations,
        tolerance: 0.0,
        release: UNIT,
        shape: None,
    };
    Ok(balance(&task.rows(family, Part::Training), (family, penalty(l2)), &options, |_, _, _| Ok(()))?)
}

/// Mean, standard deviation and quantiles.
pub(super) fn summary(values: &[f64]) -> Summary {
    let mut all = Distribution::default();
    all.extend(values);
    all.summary()
}

/// Places of `values`, the smallest first.
pub(super) fn ascending(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    order
}

/// An image of a data set as a picture.
fn picture(images: &Images, i: usize) -> Option<Picture> {
    let values: Vec<f64> = images.image(i).iter().map(|&b| f64::from(b)).collect();
    Picture::image(images.shape, &values, [0.0, 255.0])
}

/// An image with its class and where it comes from.
pub(super) fn captioned(images: &Images, i: usize, caption: &str) -> Option<Captioned> {
    Some(Captioned {
        picture: picture(images, i)?,
        caption: caption.into(),
        record: images.places[i],
        class: images.labels[i].to_string(),
        value: None,
        pixels: None,
    })
}

/// Images with their η under them.
pub(super) fn with_eta(images: &Images, eta: &[f64], which: impl Iterator<Item = usize>) -> Vec<Captioned> {
    let one = |i: usize| {
        let cell = captioned(images, i, &format::number(eta[i]))?;
        Some(Captioned { value: Some(("η", eta[i])), ..cell })
    };
    which.filter_map(one).collect()
}

/// What stands under figures of pictures.
pub(super) const RECORDS: &str =
    "In the CSV files records are counted from 0 in the order of the published files.";
