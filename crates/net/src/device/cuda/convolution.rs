//! Convolutions without patches: which of them, and how the work is cut up. The kernels (`convolution.cu`) are compiled for
//! each shape, with all sizes as constants, so that tiles stay in registers.

use super::gram::{self, Gram};
use crate::shape::Window;

/// Weights up to here are gradients of a record that are written out; beyond, products of patches are faster.
const MOST_WEIGHTS: usize = 16_384;
/// Columns of a kernel that fit into registers.
const MOST_COLUMNS: usize = 16;
/// How much a block may have: shared memory in bytes, and threads at least and at most.
struct Block {
    room: usize,
    threads: [usize; 2],
}
/// Where all records share the weights: few blocks on a multiprocessor, whose records pay for loading them. Large tiles leave
/// registers for fewer threads.
const FORWARD: Block = Block { room: 112 << 10, threads: [32, 384] };
const WIDE_FORWARD: Block = Block { room: 112 << 10, threads: [32, 160] };
const BACKWARD: Block = Block { room: 76 << 10, threads: [32, 384] };
/// Where every record has its own: threads enough to load them.
const OWN: Block = Block { room: 48 << 10, threads: [128, 128] };
/// Where there are none.
const GRADIENT: Block = Block { room: 24 << 10, threads: [32, 128] };

/// The kernels of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Forward,
    ForwardOwn,
    Backward,
    BackwardOwn,
    Gradient,
    Gram,
    GramForward,
    GramBackward,
    Sum,
}

impl Step {
    pub(super) fn kernel(self) -> &'static str {
        match self {
            Self::Forward => "conv_forward",
            Self::ForwardOwn => "conv_forward_own",
            Self::Backward => "conv_backward",
            Self::BackwardOwn => "conv_backward_own",
            Self::Gradient => "conv_gradient",
            Self::Gram => "conv_gram",
            Self::GramForward => "gram_forward",
            Self::GramBackward => "gram_backward",
            Self::Sum => "conv_sum",
        }
    }
}

/// How a kernel is started: records and threads of a block, and its shared memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Launch {
    pub(super) records: usize,
    pub(super) threads: usize,
    pub(super) shared: usize,
}

/// A convolution whose kernels hold whole records in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Convolution {
    pub(crate) window: Window,
    pub(crate) outputs: usize,
    /// Positions of a row and outputs of a thread: of the forward kernel, and of that with own weights.
    forward: [usize; 3],
    /// Pixels of a row and channels: of the backward kernel, and of that with own weights.
    backward: [usize; 3],
    /// Positions, channels, outputs.
    gradient: [usize; 3],
    launches: [Launch; 5],
    /// Where there are few positions.
    gram: Option<Gram>,
}

/// `n` in pieces of at most `most`, as even as they can be.
fn even(n: usize, most: usize) -> usize {
    n.div_ceil(n.div_ceil(most.max(1)).max(1))
}

/// Four at a time, or as many as divide.
fn group(n: usize) -> usize {
    [4, 2].into_iter().find(|d| n.is_multiple_of(*d)).unwrap_or(1)
}

/// As `plane` of the kernels.
pub(super) fn plane(n: usize) -> usize {
    let n = n.next_multiple_of(4);
    if n.is_multiple_of(8) { n + 4 } else { n }
}

fn launch(
    block: &Block,
    (fixed, each): (usize, usize),
    items: usize,
    bytes: usize,
    most: usize,
) -> Option<Launch> {
    let shared = |r: usize| (fixed + r * each) * bytes + 1024;
    let good = |r: &usize| shared(*r) <= block.room && r * items <= block.threads[1];
    let records = (1..=16).rev().find(good).unwrap_or(1);
    let threads = (records * items).next_multiple_of(32).clamp(block.threads[0], block.threads[1]);
    (shared(records) <= most).then(|| Launch { records, threads, shared: shared(records) })
}

impl Convolution {
    /// Whether a convolution of this shape may have kernels of its own.
    pub(crate) fn suits(window: &Window, outputs: usize) -> bool {
        window.dilation == [1, 1]
            && outputs * window.patch() <= MOST_WEIGHTS
            && window.kernel[1] <= MOST_COLUMNS
            && window.stride[1] <= 4
    }

    /// For numbers of so many bytes on a card with so much shared memory for a block; absent where a record does not fit.
    pub(super) fn new(window: &Window, outputs: usize, bytes: usize, most: usize) -> Option<Self> {
        if !Self::suits(window, outputs) {
            return None;
        }
        let Window { height: h, width: w, channels: c, kernel, stride, padding, out, .. } = *window;
        let [[kh, kw], [sh, sw], [ph, pw], [oh, ow]] = [kernel, stride, padding, out];
        let four = |n: usize| n.next_multiple_of(4);
        let rows = (sh * (oh - 1) + kh).max(ph + h);
        // a segment of a row of the image is at most so long
        let positions = |most: usize| even(ow, most.min((40 - kw) / sw + 1));

        let (ft, fo) = (positions(14), group(outputs));
        let fo_own = fo.min(2);
        let width = plane((sw * (ow.div_ceil(ft) * ft - 1) + kw).max(pw + w));
        let image = c * plane(rows * width);
        let weights = four(kh * c * (kw * outputs + 4));
        let own_weights = kh * c * (kw * (four(outputs) + 8) + 4);
        let items = oh * ow.div_ceil(ft);
        let forward = launch(
            if ft * fo > 32 { &WIDE_FORWARD } else { &FORWARD },
            (weights, image),
            items * (outputs / fo),
            bytes,
            most,
        )?;
        let forward_own = launch(&OWN, (0, own_weights + image), items * (outputs / fo_own), bytes, most)?;

        let bc = group(c).min(2);
        let bx = if w * bc <= 56 { w } else { even(w, 48 / bc).next_multiple_of(sw) };
        let pieces = w.div_ceil(bx);
        let low = (pw as isize - (kw as isize - 1)).div_euclid(sw as isize);
        let (left, start) = ((-low).max(0) as usize, low.max(0) as usize);
        let segment = (((bx - 1 + pw) / sw) as isize - low + 1) as usize;
        let line = plane((left + ow).max((pieces - 1) * (bx / sw) + start + four(segment)));
        let step = four(kw * c) + if four(kw * c).is_multiple_of(32) { 16 } else { 0 };
        let (deltas, weights) = (outputs * plane(oh * line), outputs * kh * step);
        let (items, bc_own) = (h * pieces, bc.min(2));
        let backward = launch(&BACKWARD, (weights, deltas), items * (c / bc), bytes, most)?;
        let backward_own = launch(&OWN, (0, weights + deltas), items * (c / bc_own), bytes, most)?;

        let gx = positions(16);
        let gc = if kw <= 4 && c.is_multiple_of(2) { 2 } else { 1 };
        let tile = |go: usize| kh * (c / gc) * (outputs / go);
        // four outputs to a thread, unless that makes threads or registers few
        let go = group(outputs);
        let go = if kw * gc * 4 <= 40 && tile(go) >= 64 { go } else { go.min(2) };
        let width = plane((sw * (ow.div_ceil(gx) * gx - 1) + kw).max(pw + w));
        let one = c * plane(rows * width) + outputs * plane(oh * four(ow.div_ceil(gx) * gx));
        let items = tile(go).next_multiple_of(32);
        let gram = gram::launches(window, outputs, (items, one), (bytes, most));
        // several rounds: both pairs of a tangent stay
        let most_items = GRADIENT.threads[1];
        let (items, each) = if items > most_items { (most_items, 2 * one) } else { (items, one) };
        let gradient = launch(&GRADIENT, (0, each), items, bytes, most)?;
        Some(Self {
            window: *window,
            outputs,
            forward: [ft, fo, fo_own],
            backward: [bx, bc, bc_own],
            gradient: [gx, gc, go],
            launches: [forward, forward_own, backward, backward_own, gradient],
            gram,
        })
    }

    /// Its shape in a word.
    pub(super) fn label(&self) -> String {
        let Window { height, width, channels, kernel: [kh, kw], .. } = self.window;
        format!("{height}x{width}x{channels}, {kh}x{kw}x{}", self.outputs)
    }

    /// Whether gradients are kept as Gram matrices.
    pub(crate) fn has_gram(&self) -> bool {
        self.gram.is_some()
    }

    pub(super) fn launch(&self, step: Step) -> Launch {
        let [forward, forward_own, backward, backward_own, gradient] = self.launches;
        let gram = self.gram.unwrap_or_default();
        match step {
            Step::Forward => forward,
            Step::ForwardOwn => forward_own,
            Step::Backward => backward,
            Step::BackwardOwn => backward_own,
            Step::Gradient => gradient,
            Step::Gram => gram.products,
            Step::GramForward => gram.forward,
            Step::GramBackward => gram.backward,
            Step::Sum => gram.sum,
        }
    }

    /// What the compiler is told.
    pub(super) fn definitions(&self) -> Vec<String> {
        let Window { height, width, channels, kernel, stride, padding, out, .. } = self.window;
        let [[kh, kw], [sh, sw], [ph, pw], [oh, ow]] = [kernel, stride, padding, out];
        let [ft, fo, fo_own] = self.forward;
        let [bx, bc, bc_own] = self.backward;
        let [gx, gc, go] = self.gradient;
        let [f, f_own, b, b_own, g] = self.launches;
        let threads = |a: Launch, b: Launch| a.threads.max(b.threads);
        let gram = self.gram.unwrap_or_default();
        [
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
            ("O", self.outputs),
            ("FT", ft),
            ("FO_SHARED", fo),
            ("FO_OWN", fo_own),
            ("FR", f.records),
            ("FR_OWN", f_own.records),
            ("F_THREADS", threads(f, f_own)),
            ("BX", bx),
            ("BC_SHARED", bc),
            ("BC_OWN", bc_own),
            ("BR", b.records),
            ("BR_OWN", b_own.records),
            ("B_THREADS", threads(b, b_own)),
            ("GX", gx),
            ("GC", gc),
            ("GO", go),
            ("GR", g.records),
            ("G_THREADS", g.threads),
            ("GRAM", usize::from(self.gram.is_some())),
            ("A_THREADS", gram.forward.threads),
            ("E_THREADS", gram.backward.threads),
        ]
        .map(|(name, value)| format!("-D{name}={value}"))
        .into()
    }
}
