//! Sequences: rows of a table by number, sums over equal numbers, attention's softmax and rotations.
//!
//! Numbers of tokens are those of the records of a batch; as everywhere, they repeat over probes.

use super::{Buf, Device, Index, Scalars, View, cuda::magic};
use crate::{Real, spec::Rotary};

impl<T: Real> Device<T> {
    /// Copies whole numbers to the device.
    pub(crate) fn upload_index(&self, values: &[u32]) -> Index {
        if let Some(gpu) = self.gpu {
            return Index { data: Vec::new(), far: Some(gpu.upload(values)) };
        }
        Index { data: values.to_vec(), far: None }
    }

    /// Reads whole numbers back: for tests.
    #[cfg(test)]
    pub(crate) fn download_index(&self, index: &Index) -> Vec<u32> {
        match (self.gpu, &index.far) {
            (Some(gpu), Some(memory)) => gpu.download(memory).unwrap_or_default(),
            _ => index.data.clone(),
        }
    }

    /// Rows of a table: `out[r] = table[index[r]]`.
    pub(crate) fn gather_rows(&self, width: usize, table: View<'_, T>, index: &Index, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let (n, rows) = (out.len(), index.len() as u64);
            let args = [out.at(), table.at(), index.at(), n as u64, width as u64, magic(width), rows];
            return gpu.each::<T>("gather_rows", n, &args);
        }
        for (out, &i) in out.data.chunks_exact_mut(width).zip(index.data.iter().cycle()) {
            out.copy_from_slice(&table.0[i as usize * width..][..width]);
        }
    }

    /// `out[offset..][index[r]] += w[i]·x[r]` for the rows r of every record i.
    pub(crate) fn add_weighted_rows(
        &self,
        weights: &Scalars,
        index: &Index,
        x: View<'_, T>,
        out: &mut Buf<T>,
        offset: usize,
    ) {
        if let Some(gpu) = self.gpu {
            let (rows, records) = (index.len(), weights.len());
            if rows == 0 || records == 0 {
                return;
            }
            let (width, each) = (x.len() / rows, rows / records);
            let target = out.at() + (offset * T::BYTES) as u64;
            let args = [target, weights.at(), index.at(), x.at(), rows as u64, width as u64, each as u64];
            return gpu.each::<T>("add_weighted_rows", width, &args);
        }
        let (rows, records) = (index.data.len(), weights.data.len());
        if rows == 0 || records == 0 {
            return;
        }
        let (width, each) = (x.0.len() / rows, rows / records);
        for (r, (x, &i)) in x.0.chunks_exact(width).zip(&index.data).enumerate() {
            let w = T::from_f64(weights.data[r / each]);
            let row = &mut out.data[offset + i as usize * width..][..width];
            row.iter_mut().zip(x).for_each(|(o, &x)| *o += w * x);
        }
    }

    /// Where in its record the number at every position stands first.
    pub(crate) fn first_of_equals(&self, length: usize, index: &Index) -> Index {
        if let Some(gpu) = self.gpu {
            let (n, memory) = (index.len(), gpu.take::<u32>(index.len()));
            gpu.each::<T>(
                "first_of_equals",
                n,
                &[memory.address(), index.at(), n as u64, length.max(1) as u64],
            );
            return Index { data: Vec::new(), far: Some(memory) };
        }
        let first = |ids: &[u32], t: usize| ids.iter().position(|&i| i == ids[t]).unwrap_or(t) as u32;
        let records = index.data.chunks_exact(length.max(1));
        Index {
            data: records.flat_map(|ids| (0..ids.len()).map(move |t| first(ids, t))).collect(),
            far: None,
        }
    }

    /// Sums the rows of equal numbers into the first of them; the others become 0.
    pub(crate) fn fold(&self, length: usize, width: usize, first: &Index, x: View<'_, T>, out: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let records = out.len() / (length * width).max(1);
            let args = [
                out.at(),
                first.at(),
                x.at(),
                records as u64,
                length as u64,
                width as u64,
                first.len() as u64,
            ];
            return gpu.each::<T>("fold", records * width, &args);
        }
        out.data.fill(T::ZERO);
        let records = first.data.chunks_exact(length).cycle();
        for ((x, out), first) in
            x.0.chunks_exact(length * width).zip(out.data.chunks_exact_mut(length * width)).zip(records)
        {
            for (x, &f) in x.chunks_exact(width).zip(first) {
                let sum = &mut out[f as usize * width..][..width];
                sum.iter_mut().zip(x).for_each(|(o, &x)| *o += x);
            }
        }
    }

    /// The transpose of [`Device::fold`]: every row of equal numbers becomes the first of them.
    pub(crate) fn spread(
        &self,
        length: usize,
        width: usize,
        first: &Index,
        x: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let n = out.len();
            let args =
                [out.at(), first.at(), x.at(), n as u64, length as u64, width as u64, first.len() as u64];
            return gpu.each::<T>("spread", n, &args);
        }
        let records = first.data.chunks_exact(length).cycle();
        for ((x, out), first) in
            x.0.chunks_exact(length * width).zip(out.data.chunks_exact_mut(length * width)).zip(records)
        {
            for (out, &f) in out.chunks_exact_mut(width).zip(first) {
                out.copy_from_slice(&x[f as usize * width..][..width]);
            }
        }
    }

    /// Columns of the numbers of a record, `(length, columns)` → `(length, length)`: `out[t][s] = x[s][index[t]]`.
    pub(crate) fn gather_columns(
        &self,
        length: usize,
        columns: usize,
        index: &Index,
        x: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let n = out.len();
            let args =
                [out.at(), index.at(), x.at(), n as u64, length as u64, columns as u64, index.len() as u64];
            return gpu.each::<T>("gather_columns", n, &args);
        }
        let records = index.data.chunks_exact(length).cycle();
        let each = x.0.chunks_exact(length * columns).zip(out.data.chunks_exact_mut(length * length));
        for ((x, out), ids) in each.zip(records) {
            for (out, &i) in out.chunks_exact_mut(length).zip(ids) {
                for (o, row) in out.iter_mut().zip(x.chunks_exact(columns)) {
                    *o = row[i as usize];
                }
            }
        }
    }

    /// The transpose of [`Device::gather_columns`], of a matrix the other way round: `out[t][index[s]] += x[t][s]`.
    pub(crate) fn add_columns(
        &self,
        length: usize,
        columns: usize,
        index: &Index,
        x: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let rows = x.len() / length.max(1);
            let args = [
                out.at(),
                index.at(),
                x.at(),
                rows as u64,
                length as u64,
                columns as u64,
                index.len() as u64,
            ];
            return gpu.each::<T>("add_columns", rows, &args);
        }
        let records = index.data.chunks_exact(length).cycle();
        let each = x.0.chunks_exact(length * length).zip(out.data.chunks_exact_mut(length * columns));
        for ((x, out), ids) in each.zip(records) {
            for (x, out) in x.chunks_exact(length).zip(out.chunks_exact_mut(columns)) {
                ids.iter().zip(x).for_each(|(&i, &x)| out[i as usize] += x);
            }
        }
    }

    /// Softmax of rows of `length` scores, in place. With `causal`, row t of every `length` rows sees scores 0 to t.
    pub(crate) fn softmax_rows(&self, length: usize, causal: bool, x: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let args = [x.at(), length as u64, u64::from(causal)];
            return gpu.rows::<T>("softmax_rows", x.len() / length, length, &args);
        }
        for (r, row) in x.data.chunks_exact_mut(length).enumerate() {
            let seen = if causal { r % length + 1 } else { length };
            let (row, hidden) = row.split_at_mut(seen);
            let top = row.iter().copied().fold(row[0], |a, b| if b > a { b } else { a });
            row.iter_mut().for_each(|v| *v = (*v - top).exp());
            let sum = T::from_f64(row.iter().map(|v| v.to_f64()).sum());
            row.iter_mut().for_each(|v| *v = *v / sum);
            hidden.fill(T::ZERO);
        }
    }

    /// The derivative of a softmax A of rows, which is its own transpose: `v ← A ⊙ (v − Σ A ⊙ v)`. A repeats over probes.
    pub(crate) fn softmax_tangent(&self, length: usize, a: View<'_, T>, v: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let args = [v.at(), a.at(), length as u64, (a.len() / length) as u64];
            return gpu.rows::<T>("softmax_tangent", v.len() / length, length, &args);
        }
        for (v, a) in v.data.chunks_exact_mut(length).zip(a.0.chunks_exact(length).cycle()) {
            let mean = T::from_f64(super::reduce::dot(a, v));
            v.iter_mut().zip(a).for_each(|(v, &a)| *v = a * (*v - mean));
        }
    }

    /// The rest of the tangent of a softmax's backward pass, where A moves: `out += Ȧ ⊙ (b − Σ A ⊙ b) − A Σ Ȧ ⊙ b`, b what
    /// comes back at A. A and b repeat over probes.
    pub(crate) fn softmax_second(
        &self,
        length: usize,
        a: View<'_, T>,
        a_dot: View<'_, T>,
        b: View<'_, T>,
        out: &mut Buf<T>,
    ) {
        if let Some(gpu) = self.gpu {
            let args = [out.at(), a.at(), a_dot.at(), b.at(), length as u64, (a.len() / length) as u64];
            return gpu.rows::<T>("softmax_second", out.len() / length, length, &args);
        }
        let primal = a.0.chunks_exact(length).zip(b.0.chunks_exact(length)).cycle();
        let each = out.data.chunks_exact_mut(length).zip(a_dot.0.chunks_exact(length));
        for ((out, ad), (a, b)) in each.zip(primal) {
            let (mean, moved) =
                (T::from_f64(super::reduce::dot(a, b)), T::from_f64(super::reduce::dot(ad, b)));
            for j in 0..length {
                out[j] += ad[j] * (b[j] - mean) - a[j] * moved;
            }
        }
    }

    /// `x ← c x`.
    pub(crate) fn scale(&self, x: &mut Buf<T>, c: f64) {
        if let Some(gpu) = self.gpu {
            return gpu.each::<T>("scale", x.len(), &[x.at(), c.to_bits(), x.len() as u64]);
        }
        let c = T::from_f64(c);
        x.data.iter_mut().for_each(|x| *x *= c);
    }

    /// Turns pairs of values of row t of every `length` rows of `width` by `t·base^(−2i/width)`, i the pair; back where
    /// `inverse`: the transpose.
    pub(crate) fn rotate(&self, rotary: Rotary, length: usize, width: usize, inverse: bool, x: &mut Buf<T>) {
        if let Some(gpu) = self.gpu {
            let n = x.len() / 2;
            let halves = rotary.pair(1, 2) == (1, 3);
            let args = [
                x.at(),
                n as u64,
                rotary.base.to_bits(),
                length as u64,
                width as u64,
                u64::from(inverse),
                u64::from(halves),
            ];
            return gpu.each::<T>("rotate", n, &args);
        }
        let half = width / 2;
        let angle = |t: usize, i: usize| t as f64 * rotary.base.powf(-2.0 * i as f64 / width as f64);
        let turns: Vec<(T, T)> = (0..length * half)
            .map(|at| angle(at / half, at % half).sin_cos())
            .map(|(sin, cos)| (T::from_f64(if inverse { -sin } else { sin }), T::from_f64(cos)))
            .collect();
        for (r, row) in x.data.chunks_exact_mut(width).enumerate() {
            for (i, &(sin, cos)) in turns[r % length * half..][..half].iter().enumerate() {
                let (a, b) = rotary.pair(i, half);
                (row[a], row[b]) = (row[a] * cos - row[b] * sin, row[b] * cos + row[a] * sin);
            }
        }
    }
}
