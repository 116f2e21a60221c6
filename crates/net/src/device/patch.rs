//! Windows over images: image to columns and back, pooling. Images are channels-last; all but the choice of the
//! maximum is linear, so the same kernels carry values, tangents and what comes back.

use super::{
    Buf, Device, Index, View,
    cuda::{Gpu, magic},
    element::code,
};
use crate::{
    Activation, Real,
    real::vectorised,
    shape::{Adaptive, Window},
};

impl<T: Real> Device<T> {
    /// Every patch as a row: images `(n, h, w, c)` → `(n·T, kh·kw·c)`.
    pub(crate) fn im2col(&self, win: &Window, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return by_channels::<T>(gpu, ["im2col", "im2col4"], win, (x.at(), out.at()), out.len());
        }
        let (c, [kh, kw], k) = (win.channels, win.kernel, win.patch());
        if win.dilation != [1, 1] {
            out.data.fill(T::ZERO);
            let images = x.0.chunks_exact(win.image()).zip(out.data.chunks_exact_mut(win.positions() * k));
            for (image, cols) in images {
                for_pixels(win, |at, from| cols[at..at + c].copy_from_slice(&image[from..from + c]));
            }
            return;
        }
        // patches over the edge have zeros; whether there are any shows at the first and the last column
        let edge = |ox: usize| win.columns(ox).0 > 0 || win.columns(ox).1 < kw;
        let whole = !edge(0) && !edge(win.out[1] - 1);
        for (image, cols) in x.0.chunks_exact(win.image()).zip(out.data.chunks_exact_mut(win.positions() * k))
        {
            for (oy, line) in cols.chunks_exact_mut(win.out[1] * k).enumerate() {
                for (ox, patch) in line.chunks_exact_mut(k).enumerate() {
                    let (from, to, x0) = win.columns(ox);
                    if !whole && (from > 0 || to < kw) {
                        patch.fill(T::ZERO);
                    }
                    let len = (to - from) * c;
                    for ky in 0..kh {
                        let dst = &mut patch[ky * kw * c..(ky + 1) * kw * c];
                        match win.row(oy, ky) {
                            Some(y) => {
                                let src = &image[(y * win.width + x0) * c..][..len];
                                copy_short(&mut dst[from * c..to * c], src);
                            }
                            None => dst.fill(T::ZERO),
                        }
                    }
                }
            }
        }
    }

    /// The transpose of [`Device::im2col`]: adds every patch where it came from.
    pub(crate) fn col2im(&self, win: &Window, cols: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return by_channels::<T>(gpu, ["col2im", "col2im4"], win, (cols.at(), out.at()), out.len());
        }
        let (c, [kh, kw], k) = (win.channels, win.kernel, win.patch());
        out.data.fill(T::ZERO);
        if win.dilation != [1, 1] {
            let images = out.data.chunks_exact_mut(win.image()).zip(cols.0.chunks_exact(win.positions() * k));
            for (image, cols) in images {
                for_pixels(win, |at, from| add_short(&mut image[from..from + c], &cols[at..at + c], T::ONE));
            }
            return;
        }
        for (image, cols) in
            out.data.chunks_exact_mut(win.image()).zip(cols.0.chunks_exact(win.positions() * k))
        {
            for (oy, line) in cols.chunks_exact(win.out[1] * k).enumerate() {
                for (ox, patch) in line.chunks_exact(k).enumerate() {
                    let (from, to, x0) = win.columns(ox);
                    for ky in 0..kh {
                        if let Some(y) = win.row(oy, ky) {
                            let src = &patch[(ky * kw + from) * c..(ky * kw + to) * c];
                            add_short(&mut image[(y * win.width + x0) * c..][..src.len()], src, T::ONE);
                        }
                    }
                }
            }
        }
    }

    /// Mean under every window; padding counts as zeros.
    pub(crate) fn average_pool(&self, win: &Window, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return by_channels::<T>(
                gpu,
                ["average_pool", "average_pool4"],
                win,
                (x.at(), out.at()),
                out.len(),
            );
        }
        let scale = T::from_f64(1.0 / (win.kernel[0] * win.kernel[1]) as f64);
        out.data.fill(T::ZERO);
        let images =
            x.0.chunks_exact(win.image()).zip(out.data.chunks_exact_mut(win.positions() * win.channels));
        vectorised(
            #[inline(always)]
            || {
                for (image, pooled) in images {
                    for_runs(win, |at, from, len| {
                        add_short(&mut pooled[at..at + len], &image[from..from + len], scale)
                    });
                }
            },
        );
    }

    /// The transpose of [`Device::average_pool`].
    pub(crate) fn average_unpool(&self, win: &Window, pooled: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return by_channels::<T>(
                gpu,
                ["average_unpool", "average_unpool4"],
                win,
                (pooled.at(), out.at()),
                out.len(),
            );
        }
        let scale = T::from_f64(1.0 / (win.kernel[0] * win.kernel[1]) as f64);
        out.data.fill(T::ZERO);
        let images = out.data.chunks_exact_mut(win.image());
        vectorised(
            #[inline(always)]
            || {
                for (image, pooled) in images.zip(pooled.0.chunks_exact(win.positions() * win.channels)) {
                    for_runs(win, |at, from, len| {
                        add_short(&mut image[from..from + len], &pooled[at..at + len], scale)
                    });
                }
            },
        );
    }

    /// `P φ(z)`, or `P (φ'(z) x)`, on a GPU, P the average pool; z repeats. Images must be [`Pooling::fits`].
    pub(crate) fn far_activate_pool(
        &mut self,
        how: &Pooling,
        z: &Buf<T>,
        x: Option<&Buf<T>>,
    ) -> Option<Buf<T>> {
        let (gpu, win) = (self.gpu?, &how.window);
        let (image, pooled) = (win.image(), win.positions() * win.channels);
        let n = x.unwrap_or(z).len() / image;
        let out = self.take(n * pooled);
        let (kind, p) = code(how.activation);
        let at = [p.to_bits(), out.at(), x.map_or(0, Buf::at), z.at(), (z.len() / image) as u64];
        gpu.pooling::<T>("activate_pool", (kind, win), n, &at);
        Some(out)
    }

    /// `φ'(z) Pᵀδ̇`, and `+ φ''(z) (Pᵀδ) ż` where that is given, on a GPU; z and δ repeat.
    pub(crate) fn far_activate_unpool(
        &mut self,
        how: &Pooling,
        z: &Buf<T>,
        delta_dot: &Buf<T>,
        curved: Option<(&Buf<T>, &Buf<T>)>,
    ) -> Option<Buf<T>> {
        let (gpu, win) = (self.gpu?, &how.window);
        let (image, pooled) = (win.image(), win.positions() * win.channels);
        let n = delta_dot.len() / pooled;
        let out = self.take(n * image);
        let (kind, p) = code(how.activation);
        let (delta, z_dot) = curved.map_or((0, 0), |(d, x)| (d.at(), x.at()));
        let at = [p.to_bits(), out.at(), delta_dot.at(), z.at(), delta, z_dot, (z.len() / image) as u64];
        gpu.pooling::<T>("activate_unpool", (kind, win), n, &at);
        Some(out)
    }

    /// Mean over the windows of an adaptive pool.
    pub(crate) fn adaptive_pool(&self, pool: &Adaptive, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("adaptive_pool", out.len(), &adaptive(pool, out, x));
        }
        out.data.fill(T::ZERO);
        let images = x.0.chunks_exact(pool.image()).zip(out.data.chunks_exact_mut(pool.pooled()));
        for (image, pooled) in images {
            pool.for_pixels(|at, from, share| {
                let c = pool.channels;
                add_short(&mut pooled[at..at + c], &image[from..from + c], T::from_f64(share));
            });
        }
    }

    /// The transpose of [`Device::adaptive_pool`].
    pub(crate) fn adaptive_unpool(&self, pool: &Adaptive, pooled: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("adaptive_unpool", out.len(), &adaptive(pool, out, pooled));
        }
        out.data.fill(T::ZERO);
        let images = out.data.chunks_exact_mut(pool.image()).zip(pooled.0.chunks_exact(pool.pooled()));
        for (image, pooled) in images {
            pool.for_pixels(|at, from, share| {
                let c = pool.channels;
                add_short(&mut image[from..from + c], &pooled[at..at + c], T::from_f64(share));
            });
        }
    }

    /// `width` of the `channels` channels, from `from` on: `(n, channels)` → `(n, width)`.
    pub(crate) fn take_channels(
        &self,
        channels: usize,
        from: usize,
        width: usize,
        x: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "take_channels",
                out.len(),
                &[out.at(), x.at(), out.len() as u64, channels as u64, from as u64, width as u64],
            );
        }
        let rows = x.0.chunks_exact(channels.max(1)).zip(out.data.chunks_exact_mut(width.max(1)));
        rows.for_each(|(x, out)| copy_short(out, &x[from..from + width]));
    }

    /// The inverse of [`Device::take_channels`].
    pub(crate) fn put_channels(
        &self,
        channels: usize,
        from: usize,
        width: usize,
        x: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "put_channels",
                x.len(),
                &[out.at(), x.at(), x.len() as u64, channels as u64, from as u64, width as u64],
            );
        }
        let rows = x.0.chunks_exact(width.max(1)).zip(out.data.chunks_exact_mut(channels.max(1)));
        rows.for_each(|(x, out)| copy_short(&mut out[from..from + width], x));
    }

    /// Values of `groups` groups of channels side by side: `(n, positions, groups, width)` → `(n, groups, positions,
    /// width)`. The inverse is the same with `positions` and `groups` exchanged.
    pub(crate) fn regroup(
        &self,
        positions: usize,
        groups: usize,
        width: usize,
        x: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>(
                "regroup",
                out.len(),
                &[out.at(), x.at(), out.len() as u64, positions as u64, groups as u64, width as u64],
            );
        }
        let each = (positions * groups * width).max(1);
        for (x, out) in x.0.chunks_exact(each).zip(out.data.chunks_exact_mut(each)) {
            for t in 0..positions {
                for g in 0..groups {
                    let (from, to) = ((t * groups + g) * width, (g * positions + t) * width);
                    copy_short(&mut out[to..to + width], &x[from..from + width]);
                }
            }
        }
    }

    /// Position in the image of the largest value under every window (the first of equals; padding never wins).
    pub(crate) fn max_index(&self, win: &Window, x: View<'_, T>) -> Index {
        if let Some(gpu) = self.gpu {
            let n = x.len() / win.image() * win.positions() * win.channels;
            let memory = gpu.take::<u32>(n);
            gpu.each::<T>(
                "max_index",
                n,
                &[&[memory.address(), x.at(), n as u64][..], &window(win)].concat(),
            );
            return Index { data: Vec::new(), far: Some(memory) };
        }
        let c = win.channels;
        let mut data = vec![0; x.0.len() / win.image() * win.positions() * c];
        for (image, index) in x.0.chunks_exact(win.image()).zip(data.chunks_exact_mut(win.positions() * c)) {
            for (t, cell) in index.chunks_exact_mut(c).enumerate() {
                let (oy, ox) = (t / win.out[1], t % win.out[1]);
                let (from, to, x0) = win.columns(ox);
                for (channel, best) in cell.iter_mut().enumerate() {
                    let mut winner: Option<usize> = None;
                    for y in (0..win.kernel[0]).filter_map(|ky| win.row(oy, ky)) {
                        for x in x0..x0 + (to - from) {
                            let at = (y * win.width + x) * c + channel;
                            // a NaN must win, or it would vanish here
                            if winner.is_none_or(|b| image[at] > image[b] || image[at].to_f64().is_nan()) {
                                winner = Some(at);
                            }
                        }
                    }
                    *best = winner.unwrap_or(0) as u32;
                }
            }
        }
        Index { data, far: None }
    }

    /// Takes the chosen elements; the index repeats over probes.
    pub(crate) fn gather(&self, win: &Window, index: &Index, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let (n, cells, image) = (out.len(), win.positions() * win.channels, win.image());
            let args =
                [out.at(), index.at(), x.at(), n as u64, index.len() as u64, cells as u64, image as u64];
            return gpu.each::<T>("gather", n, &args);
        }
        let cells = win.positions() * win.channels;
        let picks = index.data.chunks_exact(cells).cycle();
        for ((image, out), pick) in
            x.0.chunks_exact(win.image()).zip(out.data.chunks_exact_mut(cells)).zip(picks)
        {
            out.iter_mut().zip(pick).for_each(|(o, &i)| *o = image[i as usize]);
        }
    }

    /// The transpose of [`Device::gather`].
    pub(crate) fn scatter(&self, win: &Window, index: &Index, pooled: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let args = [out.at(), index.at(), pooled.at(), out.len() as u64, index.len() as u64];
            return gpu.each::<T>("scatter", out.len(), &[&args[..], &window(win)].concat());
        }
        let cells = win.positions() * win.channels;
        out.data.fill(T::ZERO);
        let picks = index.data.chunks_exact(cells).cycle();
        let images = out.data.chunks_exact_mut(win.image());
        for ((image, pooled), pick) in images.zip(pooled.0.chunks_exact(cells)).zip(picks) {
            pooled.iter().zip(pick).for_each(|(&v, &i)| image[i as usize] += v);
        }
    }
}

/// A window as the GPU's kernels take it.
fn window(win: &Window) -> Vec<u64> {
    let Window { height, width, channels, kernel, stride, padding, dilation, out } = *win;
    let [kh, kw] = kernel;
    let [[sh, sw], [ph, pw], [dh, dw], [oh, ow]] = [stride, padding, dilation, out];
    let sizes = [height, width, channels, kh, kw, sh, sw, ph, pw, dh, dw, oh, ow];
    let divisors = [channels, kw, win.patch(), width, height, ow, oh, sh, sw];
    sizes.into_iter().map(|v| v as u64).chain(divisors.map(magic)).collect()
}

/// An activation and the average pool behind it, which a GPU computes at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pooling {
    pub(crate) activation: Activation,
    pub(crate) window: Window,
}

impl Pooling {
    /// Whether a GPU can hold a record at a time, in either precision.
    pub(crate) fn fits(&self) -> bool {
        let pooled = self.window.positions() * self.window.channels;
        self.window.image().max(2 * pooled) <= (48 << 10) / 8
    }
}

/// A kernel of windows that leaves channels apart, by one or by fours of them.
fn by_channels<T: Real>(gpu: &Gpu, names: [&'static str; 2], win: &Window, (from, to): (u64, u64), n: usize) {
    let four = win.channels.is_multiple_of(4) && from.is_multiple_of(16);
    let (name, each) = if four { (names[1], 4) } else { (names[0], 1) };
    let win = Window { channels: win.channels / each, ..*win };
    gpu.each::<T>(name, n / each, &[&[to, from, (n / each) as u64][..], &window(&win)].concat());
}

fn adaptive<T: Real>(pool: &Adaptive, out: &Buf<T>, x: View<'_, T>) -> Vec<u64> {
    let ([h, w], [oh, ow]) = (pool.size, pool.out);
    let sizes = [out.len(), h, w, pool.channels, oh, ow].map(|v| v as u64);
    [&[out.at(), x.at()][..], &sizes].concat()
}

/// Calls `f(output position, image position, length)` for every run of values that a kernel element touches side by
/// side: whole lines where the window moves by one and there is no padding, the channels of a pixel otherwise.
#[inline(always)]
fn for_runs(win: &Window, mut f: impl FnMut(usize, usize, usize)) {
    let c = win.channels;
    for oy in 0..win.out[0] {
        for y in (0..win.kernel[0]).filter_map(|ky| win.row(oy, ky)) {
            let line = oy * win.out[1] * c;
            if win.stride[1] == 1 && win.padding[1] == 0 {
                for kx in 0..win.kernel[1] {
                    f(line, (y * win.width + kx) * c, win.out[1] * c);
                }
            } else {
                for ox in 0..win.out[1] {
                    let (from, to, x0) = win.columns(ox);
                    for x in x0..x0 + (to - from) {
                        f(line + ox * c, (y * win.width + x) * c, c);
                    }
                }
            }
        }
    }
}

/// Calls `f(position among the columns, image position)` for every pixel that lies under a window, kernel element by
/// kernel element: for windows with gaps.
fn for_pixels(win: &Window, mut f: impl FnMut(usize, usize)) {
    let (c, [kh, kw], k) = (win.channels, win.kernel, win.patch());
    for oy in 0..win.out[0] {
        for ox in 0..win.out[1] {
            let patch = (oy * win.out[1] + ox) * k;
            for (ky, y) in (0..kh).filter_map(|ky| Some((ky, win.row(oy, ky)?))) {
                for (kx, x) in (0..kw).filter_map(|kx| Some((kx, win.column(ox, kx)?))) {
                    f(patch + (ky * kw + kx) * c, (y * win.width + x) * c);
                }
            }
        }
    }
}

/// A copy of a few values: eights at a time, without the call that `copy_from_slice` makes.
#[inline(always)]
fn copy_short<T: Copy>(dst: &mut [T], src: &[T]) {
    let (d8, d1) = dst.as_chunks_mut::<8>();
    let (s8, s1) = src.as_chunks::<8>();
    d8.iter_mut().zip(s8).for_each(|(d, s)| *d = *s);
    d1.iter_mut().zip(s1).for_each(|(d, &s)| *d = s);
}

/// `d ← d + s·x`, a short row.
#[inline(always)]
fn add_short<T: Real>(dst: &mut [T], src: &[T], scale: T) {
    let (d8, d1) = dst.as_chunks_mut::<8>();
    let (s8, s1) = src.as_chunks::<8>();
    for (d, s) in d8.iter_mut().zip(s8) {
        for i in 0..8 {
            d[i] += scale * s[i];
        }
    }
    d1.iter_mut().zip(s1).for_each(|(d, &s)| *d += scale * s);
}
