//! An activation and the average pool behind it at once: kernels (`pooling.cu`) compiled for each shape.

use super::{Gpu, Shaped};
use crate::{Real, shape::Window};

/// An activation by its number and the window of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Pooled {
    kind: u64,
    window: Window,
}

impl Pooled {
    /// Its shape in a word.
    pub(super) fn label(&self) -> String {
        let Window { height, width, channels, kernel: [kh, kw], .. } = self.window;
        format!("{height}x{width}x{channels}, {kh}x{kw}")
    }

    /// Threads of a block: few where a record is small.
    fn threads(&self) -> usize {
        let lanes = if self.window.channels.is_multiple_of(4) { 4 } else { 1 };
        if self.window.image() / lanes <= 256 { 128 } else { 256 }
    }

    /// What the compiler is told.
    pub(super) fn definitions(&self) -> Vec<String> {
        let Window { height, width, channels, kernel, stride, padding, out, .. } = self.window;
        let [[kh, kw], [sh, sw], [ph, pw], [oh, ow]] = [kernel, stride, padding, out];
        [
            ("KIND", self.kind as usize),
            ("H", height),
            ("W", width),
            ("C", channels),
            ("KH", kh),
            ("KW", kw),
            ("SH", sh),
            ("SW", sw),
            ("PH", ph),
            ("PW", pw),
            ("OH", oh),
            ("OW", ow),
            ("POOL_THREADS", self.threads()),
        ]
        .map(|(name, value)| format!("-D{name}={value}"))
        .into()
    }
}

impl Gpu {
    /// Runs such a kernel over n records, each of which is a block.
    pub(crate) fn pooling<T: Real>(
        &self,
        kernel: &'static str,
        (kind, window): (u64, &Window),
        n: usize,
        arguments: &[u64],
    ) {
        let pool = Pooled { kind, window: *window };
        let shape = ([n as u32, 1, 1], [pool.threads() as u32, 1], 0);
        self.start(kernel, (T::BYTES, Shaped::Pooling(pool)), shape, arguments);
    }
}
