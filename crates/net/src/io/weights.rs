//! The weights of a network as named arrays.

use super::tensors::{FILE_VERSION, Tensors, bad};
use crate::{
    Network, Real,
    error::{Error, Result},
};
use std::{io, path::Path};

/// Before the name of an array: which of its parameters are frozen.
const FROZEN: &str = "frozen.";

/// Checks that every value of a named array is finite.
fn finite<T: Real>(name: &str, values: &[T]) -> Result<()> {
    match values.iter().map(|v| v.to_f64()).enumerate().find(|(_, v)| !v.is_finite()) {
        None => Ok(()),
        Some((i, v)) => Err(bad(format!("value {i} of {name} is {v}, not finite: train or export it again"))),
    }
}

impl<T: Real> Network<T> {
    /// The weights and statistics as named arrays.
    pub fn to_tensors(&self) -> Result<Tensors> {
        let mut out = Tensors::default();
        out.metadata.insert("format".into(), "leakscope-net".into());
        out.metadata.insert("version".into(), FILE_VERSION.to_string());
        let (theta, frozen) = (self.parameters()?, self.frozen());
        for t in self.tensors() {
            let len: usize = t.shape.iter().product();
            out.insert(&t.name, &t.shape, &theta[t.offset..t.offset + len]);
            let frozen = frozen.as_ref().map(|f| &f[t.offset..t.offset + len]).filter(|f| f.contains(&true));
            if let Some(frozen) = frozen {
                let values: Vec<f32> = frozen.iter().map(|f| f32::from(u8::from(*f))).collect();
                out.insert(&format!("{FROZEN}{}", t.name), &t.shape, &values);
            }
        }
        // those that nobody has set are left out, so that they are still missing when the file is read
        for (position, mean, variance) in self.statistics().filter(|s| self.knows_statistics(s.0)) {
            out.insert(&format!("layers.{position}.mean"), &[mean.len()], mean);
            out.insert(&format!("layers.{position}.variance"), &[variance.len()], variance);
        }
        Ok(out)
    }

    /// Takes weights and statistics from named arrays; all weights must be there, with the right shapes and finite, and
    /// a batch norm whose statistics are not there has none afterwards either. An array
    /// `frozen.NAME` beside one freezes, on their own, the parameters at which it is not 0.
    pub fn load_tensors(&mut self, tensors: &Tensors) -> Result<()> {
        let mut theta = vec![T::ZERO; self.parameter_count()];
        let mut frozen = vec![false; theta.len()];
        for t in self.tensors() {
            let (shape, values) = tensors.get::<T>(&t.name)?;
            if shape != t.shape {
                return Err(bad(format!("{} has shape {shape:?}, expected {:?}", t.name, t.shape)));
            }
            finite(&t.name, &values)?;
            theta[t.offset..t.offset + values.len()].copy_from_slice(&values);
            let mask = format!("{FROZEN}{}", t.name);
            if tensors.has(&mask) {
                let (shape, values) = tensors.get::<f32>(&mask)?;
                if shape != t.shape {
                    return Err(bad(format!("{mask} has shape {shape:?}, expected {:?}", t.shape)));
                }
                let here = frozen[t.offset..].iter_mut();
                here.zip(values).for_each(|(f, v)| *f = v != 0.0);
            }
        }
        self.set_parameters(&theta)?;
        if frozen.contains(&true) {
            self.freeze(&frozen)?;
        }
        let positions: Vec<usize> = self.statistics().map(|(p, _, _)| p).collect();
        for p in positions {
            let missing = ["mean", "variance"].map(|name| !tensors.has(&format!("layers.{p}.{name}")));
            if missing == [true, true] {
                continue;
            }
            let statistic = |name: &str| {
                let name = format!("layers.{p}.{name}");
                let values = tensors.get::<f64>(&name)?.1;
                finite(&name, &values)?;
                Ok::<_, Error>(values)
            };
            let (mean, variance) = (statistic("mean")?, statistic("variance")?);
            self.set_statistics(p, &mean, &variance)?;
        }
        Ok(())
    }
}

/// Writes a file whole or not at all, readable by its owner alone: under a temporary name first, then renamed.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    let mut name = path.file_name().map(std::ffi::OsStr::to_os_string).unwrap_or_default();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LayerSpec, Loss, NetSpec, Shape};

    fn net(seed: u64) -> Network<f32> {
        let layers = vec![LayerSpec::dense(3), LayerSpec::batch_norm(), LayerSpec::Tanh, LayerSpec::dense(2)];
        let spec = NetSpec::sequential(Shape::Vector([4]), layers, Loss::SoftmaxCrossEntropy);
        Network::new(spec, seed).unwrap()
    }

    #[test]
    fn weights_come_back_as_they_were() {
        let mut a = net(1);
        a.set_statistics(1, &[0.5, -1.0, 2.0], &[1.0, 2.0, 0.25]).unwrap();
        let bytes = a.to_tensors().unwrap().to_bytes().unwrap();
        let mut b = net(2);
        b.load_tensors(&Tensors::from_bytes(&bytes).unwrap()).unwrap();
        assert_eq!(a.parameters(), b.parameters());
        assert_eq!(a.statistics().collect::<Vec<_>>(), b.statistics().collect::<Vec<_>>());
    }

    #[test]
    fn broken_files_are_refused() {
        let good = net(1).to_tensors().unwrap().to_bytes().unwrap();
        assert!(Tensors::from_bytes(&[]).is_err());
        assert!(Tensors::from_bytes(&[255; 16]).is_err());
        assert!(Tensors::from_bytes(&good[..good.len() - 1]).is_err());
        // one random byte after another: an error or a file, never a panic
        for i in 0..good.len().min(600) {
            let mut broken = good.clone();
            broken[i] ^= 0x15;
            let _ = Tensors::from_bytes(&broken).and_then(|t| net(1).load_tensors(&t));
        }
        let mut other = net(1).to_tensors().unwrap();
        other.metadata.insert("version".into(), "7".into());
        let error = Tensors::from_bytes(&other.to_bytes().unwrap()).unwrap_err();
        assert_eq!(error, Error::Version { subject: "the weights file", actual: 7, expected: 1 });
    }

    #[test]
    fn statistics_that_nobody_set_are_still_missing_after_a_file() {
        let file = Tensors::from_bytes(&net(1).to_tensors().unwrap().to_bytes().unwrap()).unwrap();
        assert!(!file.has("layers.1.mean"));
        let mut b = net(2);
        b.load_tensors(&file).unwrap();
        assert_eq!(b.without_statistics(), Some(1));
        b.set_statistics(1, &[0.0; 3], &[1.0; 3]).unwrap();
        assert_eq!(b.without_statistics(), None);
        // one of the two is a broken file
        let mut half = b.to_tensors().unwrap();
        half.insert("layers.1.mean", &[3], &[0.0; 3]);
        let mut other = net(1).to_tensors().unwrap();
        other.insert("layers.1.mean", &[3], &[0.0; 3]);
        assert!(net(1).load_tensors(&half).is_ok() && net(1).load_tensors(&other).is_err());
    }

    #[test]
    fn weights_that_are_not_finite_or_do_not_fit_are_refused() {
        let mut t = net(1).to_tensors().unwrap();
        t.insert("layers.0.weight", &[3, 4], &[f32::NAN; 12]);
        let message = net(1).load_tensors(&t).unwrap_err().to_string();
        assert!(message.contains("value 0 of layers.0.weight is NaN, not finite"), "{message}");
        let mut t = net(1).to_tensors().unwrap();
        t.insert("layers.1.mean", &[3], &[0.0; 3]);
        t.insert("layers.1.variance", &[3], &[1.0, f64::INFINITY, 1.0]);
        let message = net(1).load_tensors(&t).unwrap_err().to_string();
        assert!(message.contains("value 1 of layers.1.variance is inf, not finite"), "{message}");
        t.insert("layers.0.weight", &[4, 3], &[0f32; 12]);
        assert!(matches!(net(1).load_tensors(&t), Err(Error::Format { .. })));
        let empty = Tensors::default();
        assert!(matches!(net(1).load_tensors(&empty), Err(Error::Format { .. })));
    }
}
