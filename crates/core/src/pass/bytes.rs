//! Values as bytes: what travels between the machines that share a pass.
//!
//! ```text
//! "LKSB" · 1 · version of the crate · kind · key · content · CRC-64 of all that
//! ```
//!
//! Numbers of the content are written bit for bit (eight bytes, low one first), integers seven bits a byte, sequences
//! and texts after their length, structures as their fields in order. What is damaged, cut short, of another version
//! or of another kind is an error, never a panic, and no length that is read makes more memory than there are bytes.
//! NaN is refused on both sides: no state of ours has one.

use super::reader::Reader;
use super::writer::Writer;
use crate::error::Damage;
use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

const MAGIC: &[u8; 4] = b"LKSB";
/// Version of the layout of bytes.
const FORMAT: u8 = 1;
/// Both sides must agree on what the fields are, so only the same version reads them.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const CHECKSUM: usize = 8;

/// A value as bytes of a `kind`; `key` says what it belongs to, and must be the same where it is read.
pub fn write(kind: &'static str, key: u64, value: &impl Serialize) -> Result<Vec<u8>> {
    let failed = |fault: super::writer::Fault| damaged(kind, Damage::Content(fault.0));
    let mut writer = Writer::default();
    writer.raw(MAGIC);
    writer.raw(&[FORMAT]);
    (VERSION, kind).serialize(&mut writer).map_err(failed)?;
    writer.raw(&key.to_le_bytes());
    value.serialize(&mut writer).map_err(failed)?;
    let sum = crc64(&writer.out);
    writer.raw(&sum.to_le_bytes());
    Ok(writer.out)
}

/// The value that [`fn@write`] made bytes of.
///
/// # Errors
/// [`Error::Bytes`] says what is wrong with them.
pub fn read<T: DeserializeOwned>(kind: &'static str, key: u64, bytes: &[u8]) -> Result<T> {
    let (head, mut reader) = opened(kind, bytes)?;
    if head.kind != kind {
        return Err(damaged(kind, Damage::Kind { kind: head.kind.into() }));
    }
    if head.key != key {
        return Err(damaged(kind, Damage::Key));
    }
    let value = T::deserialize(&mut reader).map_err(|fault| damaged(kind, Damage::Content(fault.0)))?;
    if !reader.rest.is_empty() {
        return Err(damaged(kind, Damage::Content("there are bytes left over".into())));
    }
    Ok(value)
}

/// What the bytes are of: the kind that they were written with.
pub fn kind_of(bytes: &[u8]) -> Result<&str> {
    opened("a value", bytes).map(|(head, _)| head.kind)
}

/// The checksum that the bytes of a value end with; 0 for fewer than it has. (Over all of them, it included, the sum would be
/// the same for any.)
pub fn checksum_of(bytes: &[u8]) -> u64 {
    let Some(last) = bytes.last_chunk::<CHECKSUM>() else { return 0 };
    let sum = *last;
    u64::from_le_bytes(sum)
}

struct Head<'a> {
    kind: &'a str,
    key: u64,
}

/// Checks everything around the content.
fn opened<'a>(subject: &'static str, bytes: &'a [u8]) -> Result<(Head<'a>, Reader<'a>)> {
    let wrong = |damage| damaged(subject, damage);
    let fault = |fault: super::writer::Fault| wrong(Damage::Content(fault.0));
    if bytes.len() < MAGIC.len() + 1 + CHECKSUM {
        return Err(wrong(Damage::Short { bytes: bytes.len() }));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(wrong(Damage::Foreign));
    }
    let (body, sum) = bytes.split_at(bytes.len() - CHECKSUM);
    if crc64(body).to_le_bytes() != sum {
        return Err(wrong(Damage::Checksum));
    }
    if body[MAGIC.len()] != FORMAT {
        let (actual, expected) = (body[MAGIC.len()].to_string(), FORMAT.to_string());
        return Err(wrong(Damage::Version { actual, expected }));
    }
    let mut reader = Reader { rest: &body[MAGIC.len() + 1..] };
    let version = reader.text().map_err(fault)?;
    if version != VERSION {
        return Err(wrong(Damage::Version { actual: version.into(), expected: VERSION.into() }));
    }
    let kind = reader.text().map_err(fault)?;
    let key = u64::from_le_bytes(reader.array().map_err(fault)?);
    Ok((Head { kind, key }, reader))
}

fn damaged(subject: &'static str, damage: Damage) -> Error {
    Error::Bytes { subject, damage }
}

/// The polynomial of ECMA-182, lowest coefficient first.
const POLYNOMIAL: u64 = 0xC96C_5795_D787_0F42;

/// `TABLES[k][byte]`: what a byte adds to the sum once `k` more have followed it.
static TABLES: [[u64; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let (mut crc, mut bit) = (i as u64, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut k = 1;
    while k < 8 {
        i = 0;
        while i < 256 {
            let before = tables[k - 1][i];
            tables[k][i] = (before >> 8) ^ tables[0][(before & 0xFF) as usize];
            i += 1;
        }
        k += 1;
    }
    tables
};

/// CRC-64/XZ of anything: the checksum of every value that is written here.
pub fn crc_of(bytes: &[u8]) -> u64 {
    crc64(bytes)
}

/// CRC-64/XZ, eight bytes at a time: finds every error of up to 64 neighbouring bits, and all others but one in 2⁶⁴.
fn crc64(bytes: &[u8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let crc = eights.iter().fold(!0, |crc, eight| {
        let mixed = (crc ^ u64::from_le_bytes(*eight)).to_le_bytes();
        mixed.iter().zip(TABLES.iter().rev()).fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
    });
    !rest.iter().fold(crc, |crc, byte| (crc >> 8) ^ TABLES[0][((crc ^ u64::from(*byte)) & 0xFF) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Empty,
        Single(f64),
        Pair(i32, Option<bool>),
        Named { text: String, numbers: Vec<f64> },
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Everything {
        shapes: Vec<Shape>,
        counts: BTreeMap<String, u64>,
        place: std::ops::Range<usize>,
        small: (u8, i8, u16, i64, f32, char),
        unit: (),
        fixed: [u32; 3],
    }

    fn everything(x: f64) -> Everything {
        Everything {
            shapes: vec![
                Shape::Empty,
                Shape::Single(x),
                Shape::Pair(-7, Some(true)),
                Shape::Pair(i32::MIN, None),
                Shape::Named {
                    text: "η ≤ 1".into(), numbers: vec![0.0, -0.0, f64::MIN_POSITIVE / 8.0, x]
                },
            ],
            counts: BTreeMap::from([("a".into(), 0), ("b".into(), u64::MAX)]),
            place: 3..1 << 40,
            small: (255, -128, 40_000, i64::MIN, 0.1, 'σ'),
            unit: (),
            fixed: [1, 127, 128],
        }
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        // The check value of CRC-64/XZ in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc64(b"123456789"), 0x995D_C9BB_DF19_39FA);
        // by the polynomial, bit by bit
        let slow = |bytes: &[u8]| {
            !bytes.iter().flat_map(|byte| (0..8).map(move |k| u64::from(byte >> k) & 1)).fold(
                !0,
                |crc, bit| {
                    let out = (crc & 1) ^ bit;
                    (crc >> 1) ^ if out == 1 { POLYNOMIAL } else { 0 }
                },
            )
        };
        let bytes: Vec<u8> = (0..50_u32).map(|i| (i * 37 + 11) as u8).collect();
        for length in 0..bytes.len() {
            assert_eq!(crc64(&bytes[..length]), slow(&bytes[..length]), "{length}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for x in [0.1, f64::INFINITY, f64::NEG_INFINITY, 1e-310] {
            let bytes = write("everything", 9, &everything(x)).unwrap();
            assert_eq!(read::<Everything>("everything", 9, &bytes).unwrap(), everything(x));
            assert_eq!(kind_of(&bytes).unwrap(), "everything");
        }
    }

    proptest! {
        #[test]
        fn numbers_keep_every_bit(bits in proptest::collection::vec(any::<u64>(), 0..40), whole in any::<u64>()) {
            let numbers: Vec<f64> = bits.into_iter().map(f64::from_bits).filter(|x| !x.is_nan()).collect();
            let bytes = write("numbers", 0, &(&numbers, whole)).unwrap();
            let (back, n): (Vec<f64>, u64) = read("numbers", 0, &bytes).unwrap();
            prop_assert_eq!(n, whole);
            prop_assert_eq!(
                back.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
                numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            );
        }

        /// Whatever stands where the content should be, reading ends with a value or an error.
        #[test]
        fn content_that_makes_no_sense_is_an_error(content in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut writer = Writer::default();
            writer.raw(MAGIC);
            writer.raw(&[FORMAT]);
            (VERSION, "everything").serialize(&mut writer).unwrap();
            writer.raw(&0_u64.to_le_bytes());
            writer.raw(&content);
            let sum = crc64(&writer.out);
            writer.raw(&sum.to_le_bytes());
            let _: Result<Everything> = read("everything", 0, &writer.out);
            let _: Result<Vec<Vec<String>>> = read("everything", 0, &writer.out);
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = write("everything", 9, &everything(0.3)).unwrap();
        for i in 0..bytes.len() {
            assert!(read::<Everything>("everything", 9, &bytes[..i]).is_err(), "cut at {i}");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[i] ^= 1 << bit;
                assert!(read::<Everything>("everything", 9, &damaged).is_err(), "bit {bit} of byte {i}");
            }
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let bytes = write("sums", 9, &1.5).unwrap();
        let failure = |e: Result<f64>| match e.unwrap_err() {
            Error::Bytes { damage, .. } => damage,
            other => unreachable!("{other:?}"),
        };
        assert_eq!(failure(read("η", 9, &bytes)), Damage::Kind { kind: "sums".into() });
        assert_eq!(failure(read("sums", 8, &bytes)), Damage::Key);
        assert_eq!(failure(read("sums", 9, b"{}")), Damage::Short { bytes: 2 });
        assert_eq!(failure(read("sums", 9, b"PAR1, and what comes after")), Damage::Foreign);
        let nan = write("sums", 9, &[1.0, f64::NAN]).unwrap_err();
        assert!(nan.to_string().contains("NaN"), "{nan}");
    }
}
