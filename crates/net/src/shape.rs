//! Shapes of one record, and the geometry of a window that slides over an image.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Shape of one record's activation: height, width, channels (channels last), or a plain vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Shape {
    /// An image, stored row by row with the channels of a pixel side by side.
    Image([usize; 3]),
    /// A vector.
    Vector([usize; 1]),
}

impl Shape {
    /// Number of values.
    pub fn len(self) -> usize {
        match self {
            Self::Image([h, w, c]) => h.saturating_mul(w).saturating_mul(c),
            Self::Vector([n]) => n,
        }
    }

    /// Whether there are no values.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The extents.
    pub fn dims(self) -> Vec<usize> {
        match self {
            Self::Image(d) => d.to_vec(),
            Self::Vector(d) => d.to_vec(),
        }
    }

    /// The last extent: channels of an image, length of a vector.
    pub fn channels(self) -> usize {
        match self {
            Self::Image([_, _, c]) => c,
            Self::Vector([n]) => n,
        }
    }
}

/// The most values of one record's activation, and the most parameters: beyond, a file is a mistake.
const LARGEST: usize = 1 << 32;

/// A product of sizes, if it is no mistake.
pub(crate) fn product(sizes: &[usize]) -> Option<usize> {
    sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s)).filter(|&n| n <= LARGEST)
}

/// A window sliding over an image of `height × width × channels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
    pub(crate) out: [usize; 2],
}

impl Window {
    /// Checks that the window fits: `out = (size + 2·padding − kernel)/stride + 1`.
    pub(crate) fn new(
        shape: Shape,
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        layer: usize,
        kind: &'static str,
    ) -> Result<Self> {
        let bad = |need| Error::DoesNotChain { layer, kind, found: shape.dims(), need };
        let Shape::Image([height, width, channels]) = shape else {
            return Err(bad("an image [height, width, channels] is needed"));
        };
        if kernel.contains(&0) || stride.contains(&0) {
            return Err(bad("kernel and stride must be at least 1"));
        }
        if kernel.iter().chain(&stride).any(|&v| v > 1 << 20) {
            return Err(bad("kernel and stride must be below a million"));
        }
        if padding[0] >= kernel[0] || padding[1] >= kernel[1] {
            return Err(bad("padding must be smaller than the kernel"));
        }
        let (full_h, full_w) = (height + 2 * padding[0], width + 2 * padding[1]);
        if full_h < kernel[0] || full_w < kernel[1] {
            return Err(bad("the kernel is larger than the padded image"));
        }
        let out = [(full_h - kernel[0]) / stride[0] + 1, (full_w - kernel[1]) / stride[1] + 1];
        Ok(Self { height, width, channels, kernel, stride, padding, out })
    }

    /// Number of positions T.
    pub(crate) fn positions(&self) -> usize {
        self.out[0] * self.out[1]
    }

    /// Number of values under the window, all channels.
    pub(crate) fn patch(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.channels
    }

    /// Number of values of one image.
    pub(crate) fn image(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// The part of the kernel's columns `[from, to)` that lies inside the image at output column `ox`, and the
    /// image column of `from`.
    #[inline]
    pub(crate) fn columns(&self, ox: usize) -> (usize, usize, usize) {
        let start = ox * self.stride[1];
        let from = self.padding[1].saturating_sub(start);
        let to = self.kernel[1].min((self.width + self.padding[1]).saturating_sub(start)).max(from);
        (from, to, (start + from).saturating_sub(self.padding[1]))
    }

    /// The image row under kernel row `ky` at output row `oy`, if it lies inside.
    #[inline]
    pub(crate) fn row(&self, oy: usize, ky: usize) -> Option<usize> {
        (oy * self.stride[0] + ky).checked_sub(self.padding[0]).filter(|&y| y < self.height)
    }
}
