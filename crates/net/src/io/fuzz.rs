//! Readers against broken files: thousands of bytes flipped, cut and put in, drawn from the seed of the property tests.
//! Whatever comes, the answer is a file or an error: no panic, and no memory beyond what the bytes can hold.

use super::{Idx, Npz, Tensors, npy};
use crate::{
    LayerSpec, Loss, NetSpec, Network, Shape,
    random::{Generator, Purpose},
};
use std::io::Write;

/// The file with a few bytes changed, cut out, doubled or put in.
fn broken(good: &[u8], rng: &mut Generator) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..1 + rng.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(6) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.bits() as u8,
            2 => bytes.truncate(at),
            3 => bytes[at] = [0, 0xff, 0x7f, 0x80][rng.below(4) as usize],
            4 => {
                let end = (at + 1 + rng.below(16) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let more: Vec<u8> = (0..1 + rng.below(8)).map(|_| rng.bits() as u8).collect();
                bytes.splice(at..at, more);
            }
        }
    }
    bytes
}

/// Runs a reader over broken files; it must refuse some and, so that it is not refusing all, take the good one.
fn survives(name: &str, good: &[u8], cases: u64, read: impl Fn(&[u8]) -> bool) {
    assert!(read(good), "{name}: the good file is refused");
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20);
    let mut rng = Generator::new(seed, Purpose::Other, name.len() as u64);
    let refused = (0..cases).filter(|_| !read(&broken(good, &mut rng))).count();
    assert!(refused > 100, "{name}: {refused} of {cases} refused");
    for cut in 0..good.len().min(2000) {
        read(&good[..cut]);
    }
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let npz = include_bytes!("../../../../testdata/net/arrays.npz");
    survives("npz", npz, 4000, |bytes| {
        let Ok(file) = Npz::from_bytes(bytes.to_vec()) else { return false };
        let names: Vec<String> = file.names().map(str::to_owned).collect();
        // those of other types are refused in the good file too
        names.iter().filter(|n| file.array::<f32>(n, Some(2)).is_ok()).count() >= 8
    });

    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2, 2), }";
    array.extend((header.len() as u16).to_le_bytes());
    array.extend(header.as_bytes());
    (0..12).for_each(|i| array.extend((i as f32).to_le_bytes()));
    survives("npy", &array, 8000, |bytes| npy::read::<f64>(bytes, None).is_ok());

    let mut idx = vec![0, 0, 8, 3];
    [3u32, 4, 4].iter().for_each(|e| idx.extend(e.to_be_bytes()));
    idx.extend(0..48);
    survives("idx", &idx, 8000, |bytes| Idx::read(bytes, Some(5)).is_ok());
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(&idx).unwrap();
    let zipped = zipped.finish().unwrap();
    survives("idx.gz", &zipped, 8000, |bytes| Idx::read(bytes, Some(5)).is_ok());

    let layers = vec![LayerSpec::dense(3), LayerSpec::batch_norm(), LayerSpec::Tanh, LayerSpec::dense(2)];
    let spec = NetSpec::sequential(Shape::Vector([4]), layers, Loss::SoftmaxCrossEntropy);
    let weights = Network::<f32>::new(spec.clone(), 1).unwrap().to_tensors().unwrap().to_bytes().unwrap();
    survives("safetensors", &weights, 8000, |bytes| {
        let Ok(file) = Tensors::from_bytes(bytes) else { return false };
        Network::<f32>::new(spec.clone(), 2).unwrap().load_tensors(&file).is_ok()
    });
    let json = spec.to_json();
    survives("network file", json.as_bytes(), 4000, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        NetSpec::from_json(text).is_ok()
    });
}
