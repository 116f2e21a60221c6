//! Where networks compute: a choice that is made by name, and what there is to choose from.

use super::Precision;
use crate::failure::{Failure, Result};
use leakscope_net::{Backend, CardInfo, cards};
use serde::{Deserialize, Serialize};

/// Where a network computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The processor.
    #[default]
    Cpu,
    /// A GPU where one can be used, the processor otherwise.
    Auto,
    /// The GPU of a number, counted from 0.
    Cuda(u32),
}

impl std::str::FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "auto" => Ok(Self::Auto),
            "cuda" => Ok(Self::Cuda(0)),
            _ => match text.strip_prefix("cuda:").map(str::parse) {
                Some(Ok(ordinal)) => Ok(Self::Cuda(ordinal)),
                _ => Err(format!("{text}: expected cpu, cuda, cuda:1 (the number of a GPU, from 0) or auto")),
            },
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Auto => f.write_str("auto"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl TryFrom<String> for Device {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl Device {
    /// What computes.
    pub fn backend(self) -> Result<Backend> {
        let opened = |ordinal| Backend::cuda(ordinal).map_err(|e| Failure::option("device", e));
        match self {
            Self::Cpu => Ok(Backend::Cpu),
            Self::Auto => Ok(Backend::cuda(0).unwrap_or_default()),
            Self::Cuda(ordinal) => opened(ordinal),
        }
    }

    /// What computes with given numbers: tf32 where it is asked for, which a GPU alone has.
    pub fn backend_in(self, precision: Option<Precision>) -> Result<Backend> {
        let backend = self.backend()?;
        match precision {
            Some(Precision::Tf32) => backend.in_tf32().map_err(|e| {
                let why = match self {
                    Self::Cpu | Self::Auto => ": name one by ⟨device=cuda⟩, or take f32",
                    Self::Cuda(_) => ": take f32",
                };
                Failure::option("precision", format!("{e}{why}"))
            }),
            Some(Precision::F32 | Precision::F64) | None => Ok(backend),
        }
    }
}

/// Refuses measures that bounds are made of where passes are shortened: nobody knows how far those are off in the worst case.
pub(crate) fn bounds_hold(backend: Backend, exact: bool, subject: &str) -> Result<()> {
    match backend {
        Backend::Cuda(card) if exact && card.shortens() => {
            let message = format!("tf32 rounds to eleven bits, and {subject} states bounds: take f32 or f64");
            Err(Failure::option("precision", message))
        }
        Backend::Cpu | Backend::Cuda(_) => Ok(()),
    }
}

/// What a document says of where it was computed; nothing of the processor.
pub(super) fn named(backend: Backend) -> Option<String> {
    match backend {
        Backend::Cuda(card) => {
            let products = if card.shortens() { ", products in tf32" } else { "" };
            Some(format!("cuda:{} ({}{products})", card.ordinal(), card.name()))
        }
        Backend::Cpu => None,
    }
}

/// What a machine has to compute with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Devices {
    /// Threads that the processor runs at once.
    pub threads: usize,
    /// The GPUs, each with the reason where it cannot be used; or why none can.
    pub gpus: std::result::Result<Vec<(CardInfo, Option<String>)>, String>,
}

/// Name and version of the schema of `devices --json`.
pub const SCHEMA: &str = "leakscope.devices/1";

/// What `devices --json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// [`SCHEMA`].
    pub schema: String,
    /// The processor.
    pub cpu: Processor,
    /// The GPUs that were found.
    pub gpus: Vec<Gpu>,
    /// Why none can be used, where no GPU could even be looked for.
    pub no_gpus: Option<String>,
}

/// The processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// Threads that it runs at once.
    pub threads: usize,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// What `--device` calls it.
    pub device: String,
    /// Its name.
    pub name: String,
    /// Its memory in bytes.
    pub memory: usize,
    /// Major and minor number of its compute capability.
    pub capability: Vec<i32>,
    /// Why it cannot be used, where that is so.
    pub cannot_be_used: Option<String>,
}

impl Devices {
    /// As a document.
    pub fn listed(&self) -> Listed {
        let (gpus, no_gpus) = match &self.gpus {
            Ok(gpus) => (gpus.as_slice(), None),
            Err(reason) => (&[][..], Some(reason.clone())),
        };
        let gpus = gpus.iter().map(|(card, reason)| Gpu {
            device: format!("cuda:{}", card.ordinal),
            name: card.name.clone(),
            memory: card.memory,
            capability: card.capability.to_vec(),
            cannot_be_used: reason.clone(),
        });
        Listed {
            schema: SCHEMA.into(),
            cpu: Processor { threads: self.threads },
            gpus: gpus.collect(),
            no_gpus,
        }
    }
}

/// Looks what there is.
pub fn devices() -> Devices {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let usable = |card: CardInfo| {
        let reason = Backend::cuda(card.ordinal).err().map(|e| e.to_string());
        (card, reason)
    };
    Devices { threads, gpus: cards().map(|all| all.into_iter().map(usable).collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for device in [Device::Cpu, Device::Auto, Device::Cuda(0), Device::Cuda(3)] {
            assert_eq!(device.to_string().parse(), Ok(device));
            let json = serde_json::to_string(&device).unwrap_or_default();
            assert_eq!(serde_json::from_str::<Device>(&json).ok(), Some(device));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for wrong in ["gpu", "cuda:", "cuda:x", "CPU", ""] {
            assert!(wrong.parse::<Device>().is_err_and(|e| e.contains("cuda:1")), "{wrong}");
        }
    }

    #[test]
    fn tf32_is_refused_on_the_processor_and_the_error_names_the_option() {
        let error = Device::Cpu.backend_in(Some(Precision::Tf32)).map(|_| ()).map_err(|e| e.to_string());
        assert!(
            error.as_ref().is_err_and(|e| e.contains("precision") && e.contains("tf32") && e.contains("f32")),
            "{error:?}"
        );
        for plain in [None, Some(Precision::F32), Some(Precision::F64)] {
            assert!(Device::Cpu.backend_in(plain).is_ok_and(|b| b == Backend::Cpu));
        }
        assert!(bounds_hold(Backend::Cpu, true, "an exact trace").is_ok());
    }

    #[test]
    fn a_gpu_that_is_not_there_is_an_error_that_names_the_option_and_auto_does_without() {
        let error = Device::Cuda(99).backend().map(|_| ()).map_err(|e| e.to_string());
        assert!(error.as_ref().is_err_and(|e| e.contains("device") && e.contains("cuda:99")), "{error:?}");
        assert!(Device::Auto.backend().is_ok());
    }
}
