//! Records and heat maps as small pictures: PNG, written here (stored blocks, no compression), as data URIs.

use std::collections::BTreeMap;

/// A picture in bytes: one (grey) or three (red, green, blue) a pixel, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    height: usize,
    width: usize,
    channels: usize,
    bytes: Vec<u8>,
}

/// What is shown of one record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shown {
    /// The record.
    pub input: Option<Picture>,
    /// Its PLIS map.
    pub plis: Option<Picture>,
    /// Its PLIS map under the other model.
    pub compared_plis: Option<Picture>,
}

/// Pictures by record, of the data and of scored points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pictures {
    /// By number in the data.
    pub records: BTreeMap<u64, Shown>,
    /// By number among the scored points.
    pub scored: BTreeMap<u64, Shown>,
}

impl Picture {
    /// An image `(height, width, channels)` with 1 or 3 channels, `low` black and `high` white; absent for other
    /// shapes.
    pub fn image(shape: [usize; 3], values: &[f64], [low, high]: [f64; 2]) -> Option<Self> {
        let [height, width, channels] = shape;
        if !matches!(channels, 1 | 3) || values.len() != height * width * channels || values.is_empty() {
            return None;
        }
        let span = if high > low { high - low } else { 1.0 };
        // `as` saturates, and sends NaN to 0
        let bytes = values.iter().map(|v| ((v - low) / span * 255.0).round() as u8).collect();
        Some(Self { height, width, channels, bytes })
    }

    /// A heat map of values at least 0, `(height, width)`: white where nothing is, through orange to dark red at `most`.
    pub fn heat([height, width]: [usize; 2], values: &[f64], most: f64) -> Option<Self> {
        if values.len() != height * width || values.is_empty() {
            return None;
        }
        const STOPS: [[f64; 3]; 4] =
            [[255.0, 250.0, 240.0], [250.0, 190.0, 110.0], [205.0, 75.0, 45.0], [75.0, 10.0, 35.0]];
        let mut bytes = Vec::with_capacity(3 * values.len());
        for v in values {
            let t = if most > 0.0 { (v / most).clamp(0.0, 1.0) } else { 0.0 } * 3.0;
            let i = (t as usize).min(2);
            let f = t - i as f64;
            bytes.extend((0..3).map(|c| (STOPS[i][c] + f * (STOPS[i + 1][c] - STOPS[i][c])).round() as u8));
        }
        Some(Self { height, width, channels: 3, bytes })
    }

    /// The PNG file.
    pub fn png(&self) -> Vec<u8> {
        let mut raw = Vec::with_capacity(self.bytes.len() + self.height);
        for row in self.bytes.chunks(self.width * self.channels) {
            raw.push(0); // no filter
            raw.extend_from_slice(row);
        }
        let colour = if self.channels == 1 { 0 } else { 2 };
        let mut header = Vec::new();
        header.extend_from_slice(&(self.width as u32).to_be_bytes());
        header.extend_from_slice(&(self.height as u32).to_be_bytes());
        header.extend_from_slice(&[8, colour, 0, 0, 0]);
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(&mut out, b"IHDR", &header);
        chunk(&mut out, b"IDAT", &zlib_stored(&raw));
        chunk(&mut out, b"IEND", &[]);
        out
    }

    /// Width and height in pixels.
    pub(crate) fn size(&self) -> [usize; 2] {
        [self.width, self.height]
    }

    /// The picture as an address that holds it.
    pub(crate) fn data_uri(&self) -> String {
        format!("data:image/png;base64,{}", base64(&self.png()))
    }
}

/// Length, name, content and CRC of them (PNG §5.3).
fn chunk(out: &mut Vec<u8>, name: &[u8; 4], content: &[u8]) {
    out.extend_from_slice(&(content.len() as u32).to_be_bytes());
    let from = out.len();
    out.extend_from_slice(name);
    out.extend_from_slice(content);
    let crc = crc32(&out[from..]);
    out.extend_from_slice(&crc.to_be_bytes());
}

/// A zlib stream of stored blocks (RFC 1950, RFC 1951 §3.2.4).
fn zlib_stored(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let blocks = raw.chunks(65_535);
    let last = blocks.len().saturating_sub(1);
    for (i, block) in blocks.enumerate() {
        let n = block.len() as u16;
        out.push(u8::from(i == last));
        out.extend_from_slice(&n.to_le_bytes());
        out.extend_from_slice(&(!n).to_le_bytes());
        out.extend_from_slice(block);
    }
    let (mut a, mut b) = (1u32, 0u32);
    for &byte in raw {
        a = (a + u32::from(byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend_from_slice(&((b << 16) | a).to_be_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { (c >> 1) ^ 0xedb8_8320 } else { c >> 1 })
    })
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |w, i| (w << 8) | u32::from(three.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            let sign = SIGNS[(word >> (18 - 6 * i)) as usize & 63] as char;
            out.push(if i <= three.len() { sign } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_standards() {
        // PNG: the CRC of an empty IEND chunk; RFC 4648 §10; RFC 1950: Adler-32 of "Wikipedia"
        assert_eq!(crc32(b"IEND"), 0xae42_6082);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        let stream = zlib_stored(b"Wikipedia");
        assert_eq!(stream[stream.len() - 4..], 0x11e6_0398_u32.to_be_bytes());
        // a long stream: two blocks, the first not last
        let long = zlib_stored(&[7; 70_000]);
        assert_eq!((long[2], long[2 + 5 + 65_535]), (0, 1));
        assert_eq!(long.len(), 2 + 2 * 5 + 70_000 + 4);
    }

    #[test]
    fn values_become_shades_between_their_ends() {
        let grey = Picture::image([1, 3, 1], &[-1.0, 0.0, 9.0], [-1.0, 1.0]).unwrap();
        assert_eq!(grey.bytes, [0, 128, 255]);
        assert_eq!(Picture::image([1, 3, 1], &[0.0; 2], [0.0, 1.0]), None);
        assert_eq!(Picture::image([1, 1, 2], &[0.0; 2], [0.0, 1.0]), None);
        let heat = Picture::heat([1, 2], &[0.0, 2.0], 2.0).unwrap();
        assert_eq!(heat.bytes, [255, 250, 240, 75, 10, 35]);
    }
}
