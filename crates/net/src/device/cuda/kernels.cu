// The kernels of networks for a GPU.

static __device__ __forceinline__ double warp_sum(double v) {
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

// Sums of a value over the threads of a block, the same on all of them. Blocks are whole warps.
static __device__ double block_sum(double v) {
    __shared__ double part[32];
    int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    v = warp_sum(v);
    if (warps == 1) return v;
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[warp] = v;
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < warps; w++) sum += part[w];
    return sum;
}

static __device__ double block_max(double v) {
    __shared__ double part[32];
    int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    for (int o = 16; o; o >>= 1) v = fmax(v, __shfl_xor_sync(0xffffffffu, v, o));
    if (warps == 1) return v;
    __syncthreads();
    if ((threadIdx.x & 31) == 0) part[warp] = v;
    __syncthreads();
    for (int w = 0; w < warps; w++) v = fmax(v, part[w]);
    return v;
}

// Position of the largest of a row, the first of equals.
static __device__ u32 block_largest(const real* z, L width) {
    __shared__ double value[32];
    __shared__ u32 place[32];
    int warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    double best = -INFINITY;
    u32 at = 0xffffffffu;
    for (L k = threadIdx.x; k < width; k += blockDim.x) {
        double v = z[k];
        if (v > best) { best = v; at = (u32)k; }
    }
    for (int o = 16; o; o >>= 1) {
        double v = __shfl_xor_sync(0xffffffffu, best, o);
        u32 i = __shfl_xor_sync(0xffffffffu, at, o);
        if (v > best || (v == best && i < at)) { best = v; at = i; }
    }
    if (warps > 1) {
        __syncthreads();
        if ((threadIdx.x & 31) == 0) { value[warp] = best; place[warp] = at; }
        __syncthreads();
        for (int w = 0; w < warps; w++)
            if (value[w] > best || (value[w] == best && place[w] < at)) { best = value[w]; at = place[w]; }
    }
    return at == 0xffffffffu ? 0 : at;
}

// --- element by element -------------------------------------------------------------------------------------------

KERNEL activate(L kind, double p, real* out, const real* z, L n) {
    EACH(i, n) { real y, d, dd; activation(kind, p, z[i], y, d, dd); out[i] = y; }
}
// φ'(z) x
KERNEL activate_slope(L kind, double p, real* out, const real* x, const real* z, L n, L nz) {
    EACH(i, n) { real y, d, dd; activation(kind, p, z[rep(i, nz)], y, d, dd); out[i] = d * x[i]; }
}
// φ'(z) δ̇ + φ''(z) δ ż
KERNEL activate_bend(L kind, double p, real* out, const real* delta_dot, const real* z, const real* delta, const real* z_dot,
                     L n, L nz) {
    EACH(i, n) {
        real y, d, dd;
        L j = rep(i, nz);
        activation(kind, p, z[j], y, d, dd);
        out[i] = d * delta_dot[i] + dd * delta[j] * z_dot[i];
    }
}

KERNEL mul(real* x, const real* y, L n, L ny) { EACH(i, n) x[i] *= y[rep(i, ny)]; }
KERNEL add(real* x, const real* y, L n, L ny) { EACH(i, n) x[i] += y[rep(i, ny)]; }
KERNEL mul_add(real* out, const real* d, const real* e, const real* x, L n, L len) {
    EACH(i, n) { L j = rep(i, len); out[i] = out[i] * d[j] + e[j] * x[i]; }
}
KERNEL add_product(real* out, const real* x, const real* y, L n, L nx, L ny) {
    EACH(i, n) out[i] += x[rep(i, nx)] * y[rep(i, ny)];
}
KERNEL set_rows(real* x, const real* v, L n, L width) { EACH(i, n) x[i] = v[rep(i, width)]; }
KERNEL repeat_rows(real* out, const real* x, L n, L width, L times) {
    EACH(i, n) { u32 row = (u32)i / (u32)width; out[i] = x[(L)(row / (u32)times) * width + (u32)i % (u32)width]; }
}
KERNEL add_constant(real* x, double c, L n) { EACH(i, n) x[i] += (real)c; }
KERNEL scale(real* x, double c, L n) { EACH(i, n) x[i] *= (real)c; }

// --- sums ---------------------------------------------------------------------------------------------------------

// Sums of `rows` rows for each of `groups` groups: a block has 32 columns of one slab of one group.
KERNEL sum_slabs(double* part, const real* x, const real* y, const double* w, L rows, L width, L slab, L nx, L ny,
                 L first) {
    __shared__ double lane[8][33];
    L group = first + blockIdx.z, column = blockIdx.x * 32 + threadIdx.x;
    L from = blockIdx.y * slab, to = from + slab < rows ? from + slab : rows;
    double sum = 0;
    if (column < width)
        for (L r = from + threadIdx.y; r < to; r += 8) {
            L at = (group * rows + r) * width + column;
            double v = x[rep(at, nx)];
            if (y) v = (double)((real)v * y[rep(at, ny)]);
            if (w) v = (double)((real)w[r] * (real)v);
            sum += v;
        }
    lane[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < width) {
        for (int k = 1; k < 8; k++) sum += lane[k][threadIdx.x];
        part[(group * gridDim.y + blockIdx.y) * width + column] = sum;
    }
}
// The same of plain rows, with or without weights, where their width is a multiple of four: a block has 128 columns.
KERNEL sum_slabs4(double* part, const real* x, const double* w, L rows, L width, L slab, L first) {
    struct alignas(16) Quad { real v[4]; };
    __shared__ double lane[8][32][4];
    L group = first + blockIdx.z, column = (blockIdx.x * 32 + threadIdx.x) * 4;
    L from = blockIdx.y * slab, to = from + slab < rows ? from + slab : rows;
    double sum[4] = {0, 0, 0, 0};
    if (column < width)
#pragma unroll 4
        for (L r = from + threadIdx.y; r < to; r += 8) {
            Quad v = *(const Quad*)(x + (group * rows + r) * width + column);
            real f = w ? (real)w[r] : (real)1;
            for (int e = 0; e < 4; e++) sum[e] += (double)(w ? f * v.v[e] : v.v[e]);
        }
    for (int e = 0; e < 4; e++) lane[threadIdx.y][threadIdx.x][e] = sum[e];
    __syncthreads();
    if (threadIdx.y == 0 && column < width)
        for (int e = 0; e < 4; e++) {
            for (int k = 1; k < 8; k++) sum[e] += lane[k][threadIdx.x][e];
            part[(group * gridDim.y + blockIdx.y) * width + column + e] = sum[e];
        }
}
KERNEL add_slabs(real* out, const double* part, L n, L width, L slabs, L adding) {
    EACH(i, n) {
        L group = i / width, column = i % width;
        double sum = 0;
#pragma unroll 8
        for (L s = 0; s < slabs; s++) sum += part[(group * slabs + s) * width + column];
        out[i] = adding ? out[i] + (real)sum : (real)sum;
    }
}

// The same, eight threads to a sum.
KERNEL add_many_slabs(real* out, const double* part, L n, L width, L slabs, L adding) {
    __shared__ double lane[8][33];
    for (L base = (L)blockIdx.x * 32; base < n; base += (L)gridDim.x * 32) {
        L i = base + threadIdx.x, group = i / width, column = i % width;
        double sum = 0;
        if (i < n)
#pragma unroll 8
            for (L s = threadIdx.y; s < slabs; s += 8) sum += part[(group * slabs + s) * width + column];
        __syncthreads();
        lane[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && i < n) {
            for (int k = 1; k < 8; k++) sum += lane[k][threadIdx.x];
            out[i] = adding ? out[i] + (real)sum : (real)sum;
        }
    }
}

KERNEL standardise(real* x, real* inverse, L width, double epsilon, L centred) {
    real* row = x + blockIdx.x * width;
    double mean = 0;
    if (centred) {
        for (L j = threadIdx.x; j < width; j += blockDim.x) mean += row[j];
        mean = (real)block_sum(mean) / (real)width;
    }
    double square = 0;
    for (L j = threadIdx.x; j < width; j += blockDim.x) {
        row[j] -= (real)mean;
        square += (double)row[j] * (double)row[j];
    }
    square = block_sum(square);
    real inv = (real)1 / (real)sqrt((real)square / (real)width + (real)epsilon);
    for (L j = threadIdx.x; j < width; j += blockDim.x) row[j] *= inv;
    if (threadIdx.x == 0) inverse[blockIdx.x] = inv;
}
KERNEL standardise_tangent(real* v, const real* normal, const real* inverse, real* scale, L width, L centred, L rows) {
    L r = blockIdx.x % rows;
    real* row = v + blockIdx.x * width;
    const real* x = normal + r * width;
    double mean = 0, along = 0;
    for (L j = threadIdx.x; j < width; j += blockDim.x) {
        if (centred) mean += row[j];
        along += (double)row[j] * (double)x[j];
    }
    mean = centred ? block_sum(mean) : 0;
    along = block_sum(along);
    real m = (real)mean / (real)width, a = (real)along / (real)width, inv = inverse[r];
    for (L j = threadIdx.x; j < width; j += blockDim.x) row[j] = (row[j] - m - x[j] * a) * inv;
    if (scale && threadIdx.x == 0) scale[blockIdx.x] = a;
}
KERNEL standardise_second(real* out, const real* normal, const real* normal_dot, const real* inverse,
                          const real* scale_dot, const real* h, const real* delta_in, L width, L rows) {
    L r = blockIdx.x % rows;
    const real *x = normal + r * width, *hr = h + r * width, *din = delta_in + r * width;
    const real* xd = normal_dot + blockIdx.x * width;
    real* o = out + blockIdx.x * width;
    double along = 0, moved = 0;
    for (L j = threadIdx.x; j < width; j += blockDim.x) {
        along += (double)x[j] * (double)hr[j];
        moved += (double)xd[j] * (double)hr[j];
    }
    real a = (real)block_sum(along) / (real)width, m = (real)block_sum(moved) / (real)width;
    real inv = inverse[r], sd = scale_dot[blockIdx.x];
    for (L j = threadIdx.x; j < width; j += blockDim.x) o[j] -= (xd[j] * a + x[j] * m + din[j] * sd) * inv;
}

// --- numbers per record -------------------------------------------------------------------------------------------

// One dot product for each warp.
KERNEL dots_short(double* out, const real* x, const real* y, L n, L len, L nx, L ny, double factor, L adding) {
    L at = (blockIdx.x * (L)blockDim.x + threadIdx.x) >> 5;
    if (at >= n) return;
    const real *xs = x + rep(at * len, nx), *ys = y + rep(at * len, ny);
    double sum = 0;
    for (L j = threadIdx.x & 31; j < len; j += 32) sum += (double)xs[j] * (double)ys[j];
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) out[at] = adding ? out[at] + factor * sum : factor * sum;
}
// A part of one for each block.
KERNEL dots_long(double* part, const real* x, const real* y, L n, L len, L nx, L ny, L each) {
    L at = blockIdx.x, from = blockIdx.y * each, to = from + each < len ? from + each : len;
    const real *xs = x + rep(at * len, nx), *ys = y + rep(at * len, ny);
    double sum = 0;
#pragma unroll 4
    for (L j = from + threadIdx.x; j < to; j += blockDim.x) sum += (double)xs[j] * (double)ys[j];
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[at * gridDim.y + blockIdx.y] = sum;
}
KERNEL add_dot_parts(double* out, const double* part, L n, L parts, double factor, L adding) {
    EACH(i, n) {
        double sum = 0;
        for (L j = 0; j < parts; j++) sum += part[i * parts + j];
        out[i] = adding ? out[i] + factor * sum : factor * sum;
    }
}
KERNEL shift(double* x, double c, L n) { EACH(i, n) x[i] += c; }
KERNEL add_scalar_products(double* out, const double* x, const double* y, L n) { EACH(i, n) out[i] += x[i] * y[i]; }
KERNEL combined(double* out, const double* a, const double* x, const double* b, const double* y, L n) {
    EACH(i, n) out[i] = b ? a[i] * x[i] + b[i] * y[i] : a[i] * x[i];
}
KERNEL scale_squares(double* x, const double* c, L n, L nc) {
    EACH(i, n) { double s = c[rep(i, nc)]; x[i] *= s * s; }
}
KERNEL in_units(double* out, const double* x, const double* c, const double* m, L n) {
    EACH(i, n) out[i] = c ? x[i] * (c[i] / m[i]) : x[i] / m[i];
}
KERNEL raise(double* most, const double* x, const double* c, L n) {
    EACH(i, n) { double v = (c ? c[i] : 1.0) * fabs(x[i]); if (v > most[i] || isnan(most[i])) most[i] = v; }
}
KERNEL fill_zeros(double* x, L n) { EACH(i, n) if (x[i] == 0) x[i] = 1; }
KERNEL add_rank_one(double* cross, double* square, const double* a, const double* d, const double* dc,
                    const double* ds, const double* ax, const double* ay, L n, L b) {
    EACH(i, n) {
        L r = rep(i, b);
        double na = a[r], nd = d[r], x = ax ? ax[i] : 0, y = ax ? ay[i] : 0;
        cross[i] += dc[i] * na + nd * x;
        square[i] += ds[i] * na + 2.0 * dc[i] * x + nd * y;
    }
}
KERNEL scale_blocks(real* out, const double* scale, const real* x, L n, L block, u64 magic, L nx, L adding) {
    const Div by(block, magic);
    EACH(i, n) {
        real v = (real)scale[by.of((u32)i)] * x[rep(i, nx)];
        out[i] = adding ? out[i] + v : v;
    }
}

// --- clips --------------------------------------------------------------------------------------------------------

enum { UNCLIPPED, HARD, GELU_CLIP };

static __device__ __forceinline__ double normal_density(double h) { return 0.3989422804014327 * exp(-0.5 * h * h); }
KERNEL clips(double* norm, double* s, double* slope, double* alpha, double* bend, const double* square, L n, L kind,
             double bound, double precision) {
    EACH(i, n) {
        // NaN stays NaN
        double q = square[i], m = sqrt(q < 0 ? 0.0 : q), f = 1, d = 0, up = 1;
        if (kind == HARD && m > bound) f = bound / m, d = -bound / m / m, up = 0;
        if (kind == GELU_CLIP) {
            double h = m / bound - 1.0, cdf = normcdf(h), pdf = normal_density(h);
            f = 1.0 / (h * cdf + 1.0);
            d = -f * f * (cdf + h * pdf) / bound;
            up = pdf == 0 ? 0.0 : f * f * (normcdf(-h) - h * (h + 1.0) * pdf);
        }
        norm[i] = m, s[i] = f, slope[i] = up;
        alpha[i] = precision * f * f;
        bend[i] = m > 0 ? precision * (d / m * (2.0 * f + m * d)) : 0.0;
    }
}
KERNEL released_squares(double* out, const double* cross, const double* square, const double* norm, const double* s,
                        const double* slope, L rows, L n, double precision) {
    EACH(i, rows) {
        L r = rep(i, n);
        double c = cross[i], q = square[i], m = norm[r];
        double along = m > 0 ? c / m : 0.0, across = fmax(q - along * along, 0.0);
        along = fmin(along * along, fmax(q, 0.0));
        double v = precision * (s[r] * s[r] * across + slope[r] * slope[r] * along);
        out[i] = isfinite(c) && isfinite(q) ? v : c - c + (q - q);
    }
}
KERNEL add_probes(double* sum, double* sum_of_squares, const double* squares, L rows, L n) {
    EACH(r, n) for (L i = r; i < rows; i += n) {
        double v = squares[i];
        sum[r] += v;
        sum_of_squares[r] += v * v;
    }
}

