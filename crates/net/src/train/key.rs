//! Where the secret randomness of a run comes from: which records a step draws, and the noise.
//!
//! Whoever knows it can take the noise off again. In a private run it is 256 bits of the system's generator, which no
//! file holds but the checkpoint; a seed takes its place only where the run says that it is not private.

use crate::{
    error::{Error, Result},
    random::{Generator, Purpose},
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether sampling and noise are secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Randomness {
    /// From the system's cryptographic generator: private.
    #[default]
    System,
    /// From the run's seed, so that it can be repeated: whoever knows the seed takes the noise off. Not private.
    SeededNotPrivate,
}

/// What sampling and noise of a run follow from.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A seed that is no secret.
    Seed(u64),
    /// 256 secret bits.
    Key([u8; 32]),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(seed) => write!(f, "Seed({seed})"),
            // a secret stays out of logs
            Self::Key(_) => f.write_str("Key(…)"),
        }
    }
}

impl Source {
    /// A fresh key from the system.
    pub(crate) fn from_system() -> Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|e| Error::Format {
            subject: "the system's random numbers",
            reason: format!("none were given ({e}): without them nothing is private"),
        })?;
        Ok(Self::Key(key))
    }

    /// The stream of a purpose and a step.
    pub(crate) fn generator(&self, purpose: Purpose, step: u64) -> Generator {
        match self {
            Self::Seed(seed) => Generator::new(*seed, purpose, step),
            Self::Key(key) => Generator::keyed(key, purpose, step),
        }
    }

    /// The key in hexadecimal digits, for a checkpoint; absent for a seed.
    pub(crate) fn to_hex(&self) -> Option<String> {
        match self {
            Self::Seed(_) => None,
            Self::Key(key) => Some(key.iter().map(|b| format!("{b:02x}")).collect()),
        }
    }

    /// The key of a checkpoint.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut key = [0; 32];
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self::Key(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_survive_a_checkpoint_and_are_not_shown() {
        let (a, b) = (Source::from_system().unwrap(), Source::from_system().unwrap());
        assert_ne!(a, b);
        let hex = a.to_hex().unwrap();
        assert_eq!(Source::from_hex(&hex), Some(a.clone()));
        assert!(!format!("{a:?}").contains(&hex[..8]));
        assert_eq!(Source::from_hex("00"), None);
        assert_eq!(Source::from_hex(&"é".repeat(32)), None);
        assert_eq!(Source::Seed(3).to_hex(), None);
    }

    #[test]
    fn streams_of_a_key_differ_by_purpose_and_step_and_repeat() {
        let key = Source::Key([7; 32]);
        let draw = |purpose, step| key.generator(purpose, step).bits();
        assert_eq!(draw(Purpose::Noise, 1), draw(Purpose::Noise, 1));
        assert_ne!(draw(Purpose::Noise, 1), draw(Purpose::Noise, 2));
        assert_ne!(draw(Purpose::Noise, 1), draw(Purpose::Sampling, 1));
        assert_ne!(draw(Purpose::Noise, 1), Source::Key([8; 32]).generator(Purpose::Noise, 1).bits());
    }
}
