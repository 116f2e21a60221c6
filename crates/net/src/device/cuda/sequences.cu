// Tables by token, attention. Read behind kernels.cu.

// --- sequences ----------------------------------------------------------------------------------------------------

KERNEL gather_rows(real* out, const real* table, const u32* index, L n, L width, u64 magic, L indices) {
    const Div by(width, magic);
    EACH(i, n) {
        u32 j, row = by.split((u32)i, j);
        out[i] = table[(L)index[rep(row, indices)] * width + j];
    }
}
// One thread for each column: rows of equal numbers add up in order.
KERNEL add_weighted_rows(real* out, const double* weights, const u32* index, const real* x, L rows, L width, L each) {
    EACH(j, width)
    for (L r = 0; r < rows; r++) out[(L)index[r] * width + j] += (real)weights[r / each] * x[r * width + j];
}
KERNEL first_of_equals(u32* out, const u32* index, L n, L length) {
    EACH(i, n) {
        L start = i / length * length;
        u32 t = 0;
        while (index[start + t] != index[i]) t++;
        out[i] = t;
    }
}
KERNEL fold(real* out, const u32* first, const real* x, L records, L length, L width, L indices) {
    EACH(i, records * width) {
        L record = i / width, j = i % width, base = record * length;
        for (L t = 0; t < length; t++) out[(base + t) * width + j] = 0;
        for (L t = 0; t < length; t++)
            out[(base + first[rep(base + t, indices)]) * width + j] += x[(base + t) * width + j];
    }
}
KERNEL spread(real* out, const u32* first, const real* x, L n, L length, L width, L indices) {
    EACH(i, n) {
        L row = i / width, record = row / length;
        out[i] = x[(record * length + first[rep(row, indices)]) * width + i % width];
    }
}
KERNEL gather_columns(real* out, const u32* index, const real* x, L n, L length, L columns, L indices) {
    EACH(i, n) {
        L s = i % length, row = i / length, record = row / length;
        out[i] = x[(record * length + s) * columns + index[rep(row, indices)]];
    }
}
KERNEL add_columns(real* out, const u32* index, const real* x, L rows, L length, L columns, L indices) {
    EACH(row, rows) {
        L base = row / length * length;
        for (L s = 0; s < length; s++) out[row * columns + index[rep(base + s, indices)]] += x[row * length + s];
    }
}
KERNEL softmax_rows(real* x, L length, L causal) {
    real* row = x + blockIdx.x * length;
    L seen = causal ? blockIdx.x % length + 1 : length;
    double top = -INFINITY, sum = 0;
    for (L j = threadIdx.x; j < seen; j += blockDim.x) top = fmax(top, (double)row[j]);
    top = block_max(top);
    for (L j = threadIdx.x; j < length; j += blockDim.x) {
        real e = j < seen ? exp(row[j] - (real)top) : (real)0;
        row[j] = e;
        sum += e;
    }
    sum = block_sum(sum);
    for (L j = threadIdx.x; j < seen; j += blockDim.x) row[j] /= (real)sum;
}
KERNEL softmax_tangent(real* v, const real* a, L length, L rows) {
    real* vr = v + blockIdx.x * length;
    const real* ar = a + blockIdx.x % rows * length;
    double mean = 0;
    for (L j = threadIdx.x; j < length; j += blockDim.x) mean += (double)ar[j] * (double)vr[j];
    real m = (real)block_sum(mean);
    for (L j = threadIdx.x; j < length; j += blockDim.x) vr[j] = ar[j] * (vr[j] - m);
}
KERNEL softmax_second(real* out, const real* a, const real* a_dot, const real* b, L length, L rows) {
    L r = blockIdx.x % rows;
    const real *ar = a + r * length, *br = b + r * length, *ad = a_dot + blockIdx.x * length;
    real* o = out + blockIdx.x * length;
    double mean = 0, moved = 0;
    for (L j = threadIdx.x; j < length; j += blockDim.x) {
        mean += (double)ar[j] * (double)br[j];
        moved += (double)ad[j] * (double)br[j];
    }
    real m = (real)block_sum(mean), d = (real)block_sum(moved);
    for (L j = threadIdx.x; j < length; j += blockDim.x) o[j] += ad[j] * (br[j] - m) - ar[j] * d;
}
// `halves`: pairs are (i, i + half); otherwise (2i, 2i + 1)
KERNEL rotate(real* x, L n, double base, L length, L width, L inverse, L halves) {
    L half = width / 2;
    EACH(at, n) {
        L i = at % half, r = at / half, t = r % length;
        double s, c;
        sincos((double)t * pow(base, -2.0 * (double)i / (double)width), &s, &c);
        real sin = (real)(inverse ? -s : s), cos = (real)c;
        real* row = x + r * width;
        L a = halves ? i : 2 * i, b = halves ? i + half : 2 * i + 1;
        real u = row[a], v = row[b];
        row[a] = u * cos - v * sin;
        row[b] = v * cos + u * sin;
    }
}

