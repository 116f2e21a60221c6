//! Shapes of one record, and the geometry of a window that slides over an image.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Shape of one record or of one record's activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Shape {
    /// An image, stored row by row with the channels of a pixel side by side.
    Image([usize; 3]),
    /// A sequence: at most so many positions, and the features of each, side by side.
    Sequence([usize; 2]),
    /// A vector.
    Vector([usize; 1]),
    /// A sequence of whole numbers, which an embedding makes values of.
    Tokens {
        /// At most so many.
        tokens: usize,
    },
}

impl Shape {
    /// Number of values.
    pub fn len(self) -> usize {
        match self {
            Self::Image([h, w, c]) => h.saturating_mul(w).saturating_mul(c),
            Self::Sequence([t, c]) => t.saturating_mul(c),
            Self::Vector([n]) => n,
            Self::Tokens { tokens } => tokens,
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
            Self::Sequence(d) => d.to_vec(),
            Self::Vector(d) => d.to_vec(),
            Self::Tokens { tokens } => vec![tokens],
        }
    }

    /// The last extent: channels of an image, features of a position, length of a vector.
    pub fn channels(self) -> usize {
        match self {
            Self::Image([_, _, c]) | Self::Sequence([_, c]) => c,
            Self::Vector([n]) => n,
            Self::Tokens { .. } => 1,
        }
    }

    /// Positions of a sequence; 1 for records that are none.
    pub fn length(self) -> usize {
        match self {
            Self::Sequence([t, _]) | Self::Tokens { tokens: t } => t,
            Self::Image(_) | Self::Vector(_) => 1,
        }
    }

    /// Number of values, which for a sequence depends on its length.
    pub(crate) fn width(self) -> Width {
        match self {
            Self::Sequence([_, c]) => Width::Each(c),
            Self::Tokens { .. } => Width::Each(1),
            Self::Image(_) | Self::Vector(_) => Width::Fixed(self.len()),
        }
    }

    /// Number of positions that share what is done to channels.
    pub(crate) fn positions(self) -> Width {
        match self {
            Self::Image([h, w, _]) => Width::Fixed(h * w),
            Self::Vector(_) => Width::Fixed(1),
            Self::Sequence(_) | Self::Tokens { .. } => Width::Each(1),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    /// Zeros before the image; those after it follow from the number of positions.
    pub(crate) padding: [usize; 2],
    /// Steps between the values under the window.
    pub(crate) dilation: [usize; 2],
    pub(crate) out: [usize; 2],
}

/// How a window lies over an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lie {
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: Padding,
    pub(crate) dilation: [usize; 2],
}

impl Window {
    /// Checks that the window fits: `out = (size + 2·padding − reach)/stride + 1`, reach = `dilation·(kernel − 1) + 1`.
    pub(crate) fn new(shape: Shape, lie: Lie, layer: usize, kind: &'static str) -> Result<Self> {
        let bad = |need| Error::DoesNotChain { layer, kind, actual: shape.dims(), need };
        let Lie { kernel, stride, padding, dilation } = lie;
        let Shape::Image([height, width, channels]) = shape else {
            return Err(bad("an image [height, width, channels] is needed"));
        };
        if kernel.contains(&0) || stride.contains(&0) || dilation.contains(&0) {
            return Err(bad("kernel, stride and dilation must be at least 1"));
        }
        if kernel.iter().chain(&stride).chain(&dilation).any(|&v| v > 1 << 20) {
            return Err(bad("kernel, stride and dilation must be below a million"));
        }
        let size = [height, width];
        let reach = [0, 1].map(|i| dilation[i] * (kernel[i] - 1) + 1);
        let (padding, out) = match padding {
            Padding::Zeros(padding) => {
                if padding[0] >= reach[0] || padding[1] >= reach[1] {
                    return Err(bad("padding must be smaller than the kernel"));
                }
                let full = [0, 1].map(|i| size[i] + 2 * padding[i]);
                if full[0] < reach[0] || full[1] < reach[1] {
                    return Err(bad("the kernel is larger than the padded image"));
                }
                (padding, [0, 1].map(|i| (full[i] - reach[i]) / stride[i] + 1))
            }
            Padding::Named(NamedPadding::Same) => {
                let out = [0, 1].map(|i| size[i].div_ceil(stride[i]));
                let total =
                    [0, 1].map(|i| (out[i].saturating_sub(1) * stride[i] + reach[i]).saturating_sub(size[i]));
                (total.map(|t| t / 2), out)
            }
        };
        Ok(Self { height, width, channels, kernel, stride, padding, dilation, out })
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
    /// image column of `from`. For windows whose values are neighbours.
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
        let y = oy * self.stride[0] + ky * self.dilation[0];
        y.checked_sub(self.padding[0]).filter(|&y| y < self.height)
    }

    /// The image column under kernel column `kx` at output column `ox`, if it lies inside.
    #[inline]
    pub(crate) fn column(&self, ox: usize, kx: usize) -> Option<usize> {
        let x = ox * self.stride[1] + kx * self.dilation[1];
        x.checked_sub(self.padding[1]).filter(|&x| x < self.width)
    }
}

/// The windows of an adaptive pool: output i of o over n values covers `⌊i·n/o⌋ … ⌈(i+1)·n/o⌉`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Adaptive {
    pub(crate) size: [usize; 2],
    pub(crate) channels: usize,
    pub(crate) out: [usize; 2],
}

impl Adaptive {
    /// Number of values of one image.
    pub(crate) fn image(&self) -> usize {
        self.size[0] * self.size[1] * self.channels
    }

    /// Number of values of one output.
    pub(crate) fn pooled(&self) -> usize {
        self.out[0] * self.out[1] * self.channels
    }

    fn span(&self, axis: usize, i: usize) -> std::ops::Range<usize> {
        let (n, o) = (self.size[axis], self.out[axis]);
        i * n / o..((i + 1) * n).div_ceil(o)
    }

    /// Calls `f(output position, image position, share)` for every pixel under every window.
    pub(crate) fn for_pixels(&self, mut f: impl FnMut(usize, usize, f64)) {
        for oy in 0..self.out[0] {
            for ox in 0..self.out[1] {
                let (ys, xs) = (self.span(0, oy), self.span(1, ox));
                let share = 1.0 / (ys.len() * xs.len()) as f64;
                for y in ys {
                    for x in xs.clone() {
                        let at = (oy * self.out[1] + ox) * self.channels;
                        f(at, (y * self.size[1] + x) * self.channels, share);
                    }
                }
            }
        }
    }
}

/// Zeros around an image: so many on both sides of height and width, or as many as it takes for the output to have
/// `⌈size/stride⌉` positions (`"same"` in the file; the odd zero comes last).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Padding {
    /// So many on both sides of height and width.
    Zeros([usize; 2]),
    /// By name.
    Named(NamedPadding),
}

/// Padding that follows from the other sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedPadding {
    /// As many as it takes for the output to have `⌈size/stride⌉` positions.
    Same,
}

impl Padding {
    /// See [`NamedPadding::Same`].
    pub const SAME: Self = Self::Named(NamedPadding::Same);
}

impl Default for Padding {
    fn default() -> Self {
        Self::Zeros([0, 0])
    }
}

/// A number per record that is fixed, or so much for each of its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Fixed(usize),
    /// So much at each position of a sequence.
    Each(usize),
}

impl Width {
    /// Of sequences of this length.
    pub(crate) fn at(self, length: usize) -> usize {
        match self {
            Self::Fixed(n) => n,
            Self::Each(n) => n * length,
        }
    }
}
