// The kernels of networks for a GPU, compiled at run time for each precision (REAL is float or double).
//
// Every parameter is eight bytes: addresses, whole numbers, doubles. An operand shorter than the output repeats. Sums
// are made in a fixed order, without atomic additions: a run gives the same digits every time.

typedef REAL real;
typedef long long L;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NO_LABEL 0xffffffffu
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define EACH(i, n) for (L i = blockIdx.x * (L)blockDim.x + threadIdx.x; i < (n); i += (L)gridDim.x * blockDim.x)
#define KERNEL extern "C" __global__ void

// i modulo len; buffers hold fewer than 2^31 values
static __device__ __forceinline__ L rep(L i, L len) { return i < len ? i : (L)((u32)i % (u32)len); }

// Division by a number that the processor has prepared: d in the low half, then a multiplier, in two parameters.
struct Div {
    u32 d, m, s;
    __device__ __forceinline__ Div(u64 number, u64 magic) : d((u32)number), m((u32)magic), s((u32)(magic >> 32)) {}
    // n below 2^31
    __device__ __forceinline__ u32 of(u32 n) const { return d == 1 ? n : __umulhi(n, m) >> s; }
    __device__ __forceinline__ u32 split(u32 n, u32& rest) const {
        u32 q = of(n);
        rest = n - q * d;
        return q;
    }
};

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

static __device__ __forceinline__ void sigmoid3(real x, real& s, real& d, real& dd) {
    real e = exp(-fabs(x)), big = (real)1 / ((real)1 + e);
    s = x < (real)0 ? e * big : big;
    d = e * big * big;
    dd = (x < (real)0 ? d : -d) * ((real)1 - e) * big;
}

enum { TANH, SIGMOID, SILU, SOFTPLUS, LEAKY_RELU, ELU, RELU, GELU_TANH, GELU };

// φ, φ', φ''
static __device__ __forceinline__ void activation(L kind, double p, real x, real& y, real& d, real& dd) {
    const real one = 1, two = 2;
    real s, ds, dds;
    switch (kind) {
    case TANH: {
        y = tanh(x);
        real e = exp(-two * fabs(x)), t = two / (one + e);
        d = e * t * t;
        dd = -(y + y) * d;
        break;
    }
    case SIGMOID: sigmoid3(x, y, d, dd); break;
    case SILU:
        sigmoid3(x, s, ds, dds);
        y = x * s, d = s + x * ds, dd = ds + ds + x * dds;
        break;
    case SOFTPLUS: {
        sigmoid3(x, s, ds, dds);
        real rest = (real)log1p((double)exp(-fabs(x)));
        y = x < (real)0 ? rest : x + rest;
        d = s, dd = ds;
        break;
    }
    case LEAKY_RELU: {
        bool low = x <= (real)0;
        y = low ? (real)p * x : x, d = low ? (real)p : one, dd = 0;
        break;
    }
    case ELU: {
        real e = (real)p * exp(x), below = (real)p * (real)expm1((double)x);
        bool low = x <= (real)0;
        y = low ? below : x, d = low ? e : one, dd = low ? e : (real)0;
        break;
    }
    case RELU:
        y = x <= (real)0 ? (real)0 : x, d = x > (real)0 ? one : (real)0, dd = 0;
        break;
    case GELU_TANH: {
        real c = (real)0.7978845608028654, k = (real)0.044715, square = x * x;
        sigmoid3(two * c * (x + k * square * x), s, ds, dds);
        real slope = two * c * (one + (real)3 * k * square), bend = two * c * (real)6 * k * x;
        y = x * s, d = s + x * ds * slope, dd = two * ds * slope + x * (dds * slope * slope + ds * bend);
        break;
    }
    default: {
        real cdf = (real)normcdf((double)x), pdf = (real)0.3989422804014327 * exp((real)-0.5 * x * x);
        y = x * cdf, d = cdf + x * pdf, dd = pdf * (two - x * x);
    }
    }
}
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
// One for each block.
KERNEL dots_long(double* out, const real* x, const real* y, L n, L len, L nx, L ny, double factor, L adding) {
    L at = blockIdx.x;
    const real *xs = x + rep(at * len, nx), *ys = y + rep(at * len, ny);
    double sum = 0;
    for (L j = threadIdx.x; j < len; j += blockDim.x) sum += (double)xs[j] * (double)ys[j];
    sum = block_sum(sum);
    if (threadIdx.x == 0) out[at] = adding ? out[at] + factor * sum : factor * sum;
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

// --- windows over images ------------------------------------------------------------------------------------------

// Its sizes, then what divides by channels, kernel width, patch, image width and height, output width and height, strides.
#define WINDOW \
    L H, L W, L C, L kh, L kw, L sh, L sw, L ph, L pw, L dh, L dw, L oh, L ow, u64 mC, u64 mkw, u64 mK, u64 mW, u64 mH, \
        u64 mow, u64 moh, u64 msh, u64 msw
#define THE_WINDOW \
    const u32 K_ = (u32)(kh * kw * C); \
    const Div byC(C, mC), byKw(kw, mkw), byK(K_, mK), byW(W, mW), byH(H, mH), byOw(ow, mow), byOh(oh, moh), bySh(sh, msh), \
        bySw(sw, msw); \
    (void)byKw, (void)byK, (void)byW, (void)byH, (void)byOw, (void)byOh, (void)bySh, (void)bySw

// The output position along one axis whose kernel element k lies over position p, or −1.
static __device__ __forceinline__ int over(u32 p, u32 k, const Div& stride, u32 padding, u32 dilation, u32 out) {
    int at = (int)(p + padding) - (int)(k * dilation);
    if (at < 0) return -1;
    u32 rest, q = stride.split((u32)at, rest);
    return rest == 0 && q < out ? (int)q : -1;
}

KERNEL im2col(real* out, const real* x, L n, WINDOW) {
    THE_WINDOW;
    EACH(i, n) {
        u32 col, c, kx, ox, oy, row = byK.split((u32)i, col), tap = byC.split(col, c), ky = byKw.split(tap, kx);
        u32 up = byOw.split(row, ox), image = byOh.split(up, oy);
        int y = (int)(oy * (u32)sh + ky * (u32)dh) - (int)ph, xx = (int)(ox * (u32)sw + kx * (u32)dw) - (int)pw;
        bool in = y >= 0 && xx >= 0 && y < (int)H && xx < (int)W;
        out[i] = in ? x[((image * (u32)H + (u32)y) * (u32)W + (u32)xx) * (u32)C + c] : (real)0;
    }
}
KERNEL col2im(real* out, const real* cols, L n, WINDOW) {
    THE_WINDOW;
    EACH(i, n) {
        u32 c, x, y, at = byC.split((u32)i, c), up = byW.split(at, x), image = byH.split(up, y);
        real sum = 0;
        for (u32 ky = 0; ky < (u32)kh; ky++) {
            int oy = over(y, ky, bySh, (u32)ph, (u32)dh, (u32)oh);
            if (oy < 0) continue;
            u32 line = (image * (u32)oh + (u32)oy) * (u32)ow;
            for (u32 kx = 0; kx < (u32)kw; kx++) {
                int ox = over(x, kx, bySw, (u32)pw, (u32)dw, (u32)ow);
                if (ox >= 0) sum += cols[(line + (u32)ox) * K_ + (ky * (u32)kw + kx) * (u32)C + c];
            }
        }
        out[i] = sum;
    }
}
// Four channels side by side.
struct alignas(16) Four {
    real v[4];
    __device__ __forceinline__ void operator+=(const Four& o) {
        for (int i = 0; i < 4; i++) v[i] += o.v[i];
    }
};
static __device__ __forceinline__ Four operator*(real s, Four x) { for (int i = 0; i < 4; i++) x.v[i] *= s; return x; }

template <class V> static __device__ __forceinline__ void pool(V* out, const V* x, L n, WINDOW) {
    THE_WINDOW;
    real share = (real)(1.0 / (double)(kh * kw));
    EACH(i, n) {
        u32 c, ox, oy, at = byC.split((u32)i, c), up = byOw.split(at, ox), image = byOh.split(up, oy);
        V sum = {};
        for (u32 ky = 0; ky < (u32)kh; ky++) {
            int y = (int)(oy * (u32)sh + ky) - (int)ph;
            if (y < 0 || y >= (int)H) continue;
            for (u32 kx = 0; kx < (u32)kw; kx++) {
                int xx = (int)(ox * (u32)sw + kx) - (int)pw;
                if (xx >= 0 && xx < (int)W) sum += share * x[((image * (u32)H + (u32)y) * (u32)W + (u32)xx) * (u32)C + c];
            }
        }
        out[i] = sum;
    }
}
template <class V> static __device__ __forceinline__ void unpool(V* out, const V* pooled, L n, WINDOW) {
    THE_WINDOW;
    real share = (real)(1.0 / (double)(kh * kw));
    EACH(i, n) {
        u32 c, x, y, at = byC.split((u32)i, c), up = byW.split(at, x), image = byH.split(up, y);
        V sum = {};
        for (u32 ky = 0; ky < (u32)kh; ky++) {
            int oy = over(y, ky, bySh, (u32)ph, 1, (u32)oh);
            if (oy < 0) continue;
            u32 line = (image * (u32)oh + (u32)oy) * (u32)ow;
            for (u32 kx = 0; kx < (u32)kw; kx++) {
                int ox = over(x, kx, bySw, (u32)pw, 1, (u32)ow);
                if (ox >= 0) sum += share * pooled[(line + (u32)ox) * (u32)C + c];
            }
        }
        out[i] = sum;
    }
}
#define SAME_WINDOW \
    H, W, C, kh, kw, sh, sw, ph, pw, dh, dw, oh, ow, mC, mkw, mK, mW, mH, mow, moh, msh, msw
KERNEL average_pool(real* out, const real* x, L n, WINDOW) { pool<real>(out, x, n, SAME_WINDOW); }
KERNEL average_unpool(real* out, const real* pooled, L n, WINDOW) { unpool<real>(out, pooled, n, SAME_WINDOW); }
// Where channels are a multiple of four; C and n count groups of them.
KERNEL average_pool4(Four* out, const Four* x, L n, WINDOW) { pool<Four>(out, x, n, SAME_WINDOW); }
KERNEL average_unpool4(Four* out, const Four* pooled, L n, WINDOW) { unpool<Four>(out, pooled, n, SAME_WINDOW); }
// An activation and the average pool behind it, a record for each block: nothing is written in between. C, `image` and `pooled`
// count values, or fours of them.
extern __shared__ double pooled_memory[];

template <class V> struct Lanes { static constexpr int N = 1; };
template <> struct Lanes<Four> { static constexpr int N = 4; };
template <class V> static __device__ __forceinline__ real& lane(V& v, int i) { return ((real*)&v)[i]; }

// φ(z), or φ'(z) x where there is an x, pooled.
template <class V> static __device__ __forceinline__ void act_pool(L kind, double p, V* out, const V* x, const V* z, L repeat, L image, L pooled, WINDOW) {
    THE_WINDOW;
    V* held = (V*)pooled_memory;
    z += (L)blockIdx.x % repeat * image;
    for (u32 i = threadIdx.x; i < (u32)image; i += blockDim.x) {
        V v = z[i], moved;
        if (x) moved = x[(L)blockIdx.x * image + i];
        for (int e = 0; e < Lanes<V>::N; e++) {
            real y, d, dd;
            activation(kind, p, lane(v, e), y, d, dd);
            lane(v, e) = x ? d * lane(moved, e) : y;
        }
        held[i] = v;
    }
    __syncthreads();
    real share = (real)(1.0 / (double)(kh * kw));
    for (u32 i = threadIdx.x; i < (u32)pooled; i += blockDim.x) {
        u32 c, ox, at = byC.split(i, c), oy = byOw.split(at, ox);
        V sum = {};
        for (u32 ky = 0; ky < (u32)kh; ky++) {
            int y = (int)(oy * (u32)sh + ky) - (int)ph;
            if (y < 0 || y >= (int)H) continue;
            for (u32 kx = 0; kx < (u32)kw; kx++) {
                int xx = (int)(ox * (u32)sw + kx) - (int)pw;
                if (xx >= 0 && xx < (int)W) sum += share * held[((u32)y * (u32)W + (u32)xx) * (u32)C + c];
            }
        }
        out[(L)blockIdx.x * pooled + i] = sum;
    }
}
// φ'(z) Pᵀδ̇, and + φ''(z) (Pᵀδ) ż where there is a ż; P pools.
template <class V> static __device__ __forceinline__ void pool_act(L kind, double p, V* out, const V* delta_dot, const V* z, const V* delta, const V* z_dot, L repeat, L image,
                                                                   L pooled, WINDOW) {
    THE_WINDOW;
    V *first = (V*)pooled_memory, *second = first + pooled;
    L own = (L)blockIdx.x % repeat;
    for (u32 i = threadIdx.x; i < (u32)pooled; i += blockDim.x) {
        first[i] = delta_dot[(L)blockIdx.x * pooled + i];
        if (z_dot) second[i] = delta[own * pooled + i];
    }
    __syncthreads();
    real share = (real)(1.0 / (double)(kh * kw));
    for (u32 i = threadIdx.x; i < (u32)image; i += blockDim.x) {
        V v = z[own * image + i], moved = {}, a = {}, b = {};
        if (z_dot) moved = z_dot[(L)blockIdx.x * image + i];
        u32 c, x, at = byC.split(i, c), y = byW.split(at, x);
        for (u32 ky = 0; ky < (u32)kh; ky++) {
            int oy = over(y, ky, bySh, (u32)ph, 1, (u32)oh);
            if (oy < 0) continue;
            for (u32 kx = 0; kx < (u32)kw; kx++) {
                int ox = over(x, kx, bySw, (u32)pw, 1, (u32)ow);
                if (ox < 0) continue;
                u32 from = ((u32)oy * (u32)ow + (u32)ox) * (u32)C + c;
                a += share * first[from];
                if (z_dot) b += share * second[from];
            }
        }
        for (int e = 0; e < Lanes<V>::N; e++) {
            real value, d, dd;
            activation(kind, p, lane(v, e), value, d, dd);
            lane(v, e) = d * lane(a, e) + (z_dot ? dd * lane(b, e) * lane(moved, e) : (real)0);
        }
        out[(L)blockIdx.x * image + i] = v;
    }
}
KERNEL activate_pool(L kind, double p, real* out, const real* x, const real* z, L repeat, L image, L pooled, WINDOW) {
    act_pool<real>(kind, p, out, x, z, repeat, image, pooled, SAME_WINDOW);
}
KERNEL activate_pool4(L kind, double p, Four* out, const Four* x, const Four* z, L repeat, L image, L pooled, WINDOW) {
    act_pool<Four>(kind, p, out, x, z, repeat, image, pooled, SAME_WINDOW);
}
KERNEL activate_unpool(L kind, double p, real* out, const real* delta_dot, const real* z, const real* delta, const real* z_dot,
                       L repeat, L image, L pooled, WINDOW) {
    pool_act<real>(kind, p, out, delta_dot, z, delta, z_dot, repeat, image, pooled, SAME_WINDOW);
}
KERNEL activate_unpool4(L kind, double p, Four* out, const Four* delta_dot, const Four* z, const Four* delta, const Four* z_dot,
                        L repeat, L image, L pooled, WINDOW) {
    pool_act<Four>(kind, p, out, delta_dot, z, delta, z_dot, repeat, image, pooled, SAME_WINDOW);
}
static __device__ __forceinline__ void span(u32 i, u32 n, u32 o, u32& from, u32& to) {
    from = (u32)((u64)i * n / o);
    to = (u32)(((u64)(i + 1) * n + o - 1) / o);
}
KERNEL adaptive_pool(real* out, const real* x, L n, L H, L W, L C, L oh, L ow) {
    EACH(i, n) {
        u32 c = (u32)i % (u32)C, at = (u32)i / (u32)C, ox = at % (u32)ow, up = at / (u32)ow, oy = up % (u32)oh;
        L image = up / (u32)oh;
        u32 y0, y1, x0, x1;
        span(oy, H, oh, y0, y1);
        span(ox, W, ow, x0, x1);
        real share = (real)(1.0 / (double)((y1 - y0) * (x1 - x0))), sum = 0;
        for (u32 y = y0; y < y1; y++)
            for (u32 xx = x0; xx < x1; xx++) sum += share * x[((image * H + y) * W + xx) * C + c];
        out[i] = sum;
    }
}
KERNEL adaptive_unpool(real* out, const real* pooled, L n, L H, L W, L C, L oh, L ow) {
    EACH(i, n) {
        u32 c = (u32)i % (u32)C, at = (u32)i / (u32)C, x = at % (u32)W, up = at / (u32)W, y = up % (u32)H;
        L image = up / (u32)H;
        real sum = 0;
        for (u32 oy = 0; oy < oh; oy++) {
            u32 y0, y1, x0, x1;
            span(oy, H, oh, y0, y1);
            if (y < y0 || y >= y1) continue;
            for (u32 ox = 0; ox < ow; ox++) {
                span(ox, W, ow, x0, x1);
                if (x < x0 || x >= x1) continue;
                real share = (real)(1.0 / (double)((y1 - y0) * (x1 - x0)));
                sum += share * pooled[((image * oh + oy) * ow + ox) * C + c];
            }
        }
        out[i] = sum;
    }
}
KERNEL take_channels(real* out, const real* x, L n, L channels, L from, L width) {
    EACH(i, n) out[i] = x[(L)((u32)i / (u32)width) * channels + from + (u32)i % (u32)width];
}
KERNEL put_channels(real* out, const real* x, L n, L channels, L from, L width) {
    EACH(i, n) out[(L)((u32)i / (u32)width) * channels + from + (u32)i % (u32)width] = x[i];
}
KERNEL regroup(real* out, const real* x, L n, L positions, L groups, L width) {
    EACH(i, n) {
        u32 j = (u32)i % (u32)width, at = (u32)i / (u32)width;
        u32 t = at % (u32)positions, up = at / (u32)positions, g = up % (u32)groups;
        L image = up / (u32)groups;
        out[i] = x[((image * positions + t) * groups + g) * width + j];
    }
}
KERNEL max_index(u32* out, const real* x, L n, WINDOW) {
    THE_WINDOW;
    EACH(i, n) {
        u32 c, ox, oy, at = byC.split((u32)i, c), up = byOw.split(at, ox), own = byOh.split(up, oy);
        const real* image = x + (L)own * H * W * C;
        u32 best = 0;
        bool any = false;
        for (u32 ky = 0; ky < (u32)kh; ky++)
            for (u32 kx = 0; kx < (u32)kw; kx++) {
                int y = (int)(oy * (u32)sh + ky) - (int)ph, xx = (int)(ox * (u32)sw + kx) - (int)pw;
                if (y < 0 || xx < 0 || y >= (int)H || xx >= (int)W) continue;
                u32 p = ((u32)y * (u32)W + (u32)xx) * (u32)C + c;
                if (!any || image[p] > image[best] || isnan(image[p])) { best = p; any = true; }
            }
        out[i] = best;
    }
}
KERNEL gather(real* out, const u32* index, const real* x, L n, L indices, L cells, L image) {
    EACH(i, n) out[i] = x[(L)((u32)i / (u32)cells) * image + index[rep(i, indices)]];
}
KERNEL scatter(real* out, const u32* index, const real* pooled, L n, L indices, WINDOW) {
    THE_WINDOW;
    u32 cells = (u32)(oh * ow * C);
    EACH(i, n) {
        u32 c, x, y, at = byC.split((u32)i, c), up = byW.split(at, x), image = byH.split(up, y);
        u32 own = (y * (u32)W + x) * (u32)C + c;
        real sum = 0;
        for (u32 ky = (u32)kh; ky-- > 0;) {
            int oy = over(y, ky, bySh, (u32)ph, 1, (u32)oh);
            if (oy < 0) continue;
            for (u32 kx = (u32)kw; kx-- > 0;) {
                int ox = over(x, kx, bySw, (u32)pw, 1, (u32)ow);
                if (ox < 0) continue;
                L cell = (L)image * cells + ((u32)oy * (u32)ow + (u32)ox) * (u32)C + c;
                if (index[rep(cell, indices)] == own) sum += pooled[cell];
            }
        }
        out[i] = sum;
    }
}

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

// --- losses -------------------------------------------------------------------------------------------------------

enum { SOFTMAX, BINARY, SQUARED };

// One row of outputs, in double precision, by one block.
struct Row {
    const real *z, *y;
    u32 label;
    L width, kind;
    double weight;
    // softmax: the likeliest class, its output, Σ over the others of e^{z − z_m}, Σ y, δ of the likeliest
    u32 m;
    double top, rest, mass, delta_m;

    __device__ double target(L k) const { return y ? (double)y[k] : (u32)k == label ? 1.0 : 0.0; }
    __device__ double p(L k) const { return ((u32)k == m ? 1.0 : exp((double)z[k] - top)) / (1.0 + rest); }

    __device__ bool read(const real* outputs, const real* ys, const u32* classes, const double* weights, L row, L w, L k) {
        width = w, kind = k;
        weight = weights ? weights[row] : 1.0;
        if (weight == 0) return false;
        z = outputs + row * width;
        y = ys ? ys + row * width : nullptr;
        label = classes ? classes[row] : NO_LABEL;
        if (kind != SOFTMAX) return true;
        m = block_largest(z, width);
        top = z[m];
        double r = 0, s = 0;
        for (L j = threadIdx.x; j < width; j += blockDim.x) {
            if ((u32)j != m) r += exp((double)z[j] - top);
            s += target(j);
        }
        rest = block_sum(r);
        mass = block_sum(s);
        double d = 0;
        for (L j = threadIdx.x; j < width; j += blockDim.x)
            if ((u32)j != m) d += mass * p(j) - target(j);
        delta_m = -block_sum(d);
        return true;
    }
    __device__ double small(L k) const { double e = exp(-fabs((double)z[k])); return e / (1.0 + e); }
    // ∂δ/∂z of a binary loss
    __device__ double bend(L k) const { double e = exp(-fabs((double)z[k])); return e / (1.0 + e) / (1.0 + e); }
    __device__ double delta(L k) const {
        if (kind == SOFTMAX) return (u32)k == m ? delta_m : mass * p(k) - target(k);
        if (kind == SQUARED) return (double)z[k] - target(k);
        return (double)z[k] < 0 ? small(k) - target(k) : (1.0 - target(k)) - small(k);
    }
    __device__ double term(L k) const {
        double t = target(k), zk = z[k];
        if (kind == SOFTMAX) return t == 0 ? 0.0 : t * (top - zk + log1p(rest));
        if (kind == SQUARED) return 0.5 * (zk - t) * (zk - t);
        double e = exp(-fabs(zk));
        return zk < 0 ? log1p(e) - t * zk : (1.0 - t) * zk + log1p(e);
    }
    __device__ double curvature() const {
        if (kind == SOFTMAX) return fabs(mass / (1.0 + rest) * rest / (1.0 + rest));
        if (kind == SQUARED) return 1;
        double c = 0;
        for (L j = threadIdx.x; j < width; j += blockDim.x) c = fmax(c, bend(j));
        return block_max(c);
    }
    // Σ over the others of p_k (v_k − v_m)
    __device__ double mean_from(const real* v) const {
        double s = 0;
        for (L j = threadIdx.x; j < width; j += blockDim.x)
            if ((u32)j != m) s += p(j) * ((double)v[j] - (double)v[m]);
        return block_sum(s);
    }
};

#define BATCH const real *outputs, const real *ys, const u32 *classes, const double *weights
#define READ(row) one.read(outputs, ys, classes, weights, row, width, kind)

KERNEL loss(real* out, double* losses, double* units, BATCH, L places, L width, L kind, double least, double most) {
    Row one;
    L record = blockIdx.x;
    double total = 0, size = 0;
    bool bad = false;
    for (L t = 0; t < places; t++) {
        if (!READ(record * places + t)) continue;
        double sum = 0, largest = 0;
        for (L k = threadIdx.x; k < width; k += blockDim.x) {
            sum += one.term(k);
            largest = fmax(largest, fabs(one.weight * one.delta(k)));
        }
        total += one.weight * block_sum(sum);
        size = fmax(size, fmax(one.weight * one.curvature(), block_max(largest)));
    }
    bad = !(size > 0 && isfinite(size));
    double c = bad ? 1.0 : exp2(floor(log2(fmin(fmax(size, least), most))));
    for (L t = 0; t < places; t++) {
        L row = record * places + t;
        bool counts = READ(row);
        for (L k = threadIdx.x; k < width; k += blockDim.x)
            out[row * width + k] = counts ? (real)(one.weight * one.delta(k) / c) : (real)0;
    }
    if (threadIdx.x == 0) losses[record] = total, units[record] = c;
}
// The same for records of many rows, in three parts: a block has a row, then a thread a record, then a block a row again.
KERNEL loss_rows(double* losses, double* sizes, BATCH, L width, L kind) {
    Row one;
    L row = blockIdx.x;
    double sum = 0, largest = 0, size = 0;
    if (READ(row)) {
        for (L k = threadIdx.x; k < width; k += blockDim.x) {
            sum += one.term(k);
            largest = fmax(largest, fabs(one.weight * one.delta(k)));
        }
        sum = one.weight * block_sum(sum);
        size = fmax(one.weight * one.curvature(), block_max(largest));
    }
    if (threadIdx.x == 0) losses[row] = sum, sizes[row] = size;
}
KERNEL loss_units(double* losses, double* units, const double* row_losses, const double* sizes, L n, L places, double least,
                  double most) {
    EACH(r, n) {
        double total = 0, size = 0;
        for (L t = 0; t < places; t++) total += row_losses[r * places + t], size = fmax(size, sizes[r * places + t]);
        bool bad = !(size > 0 && isfinite(size));
        losses[r] = total, units[r] = bad ? 1.0 : exp2(floor(log2(fmin(fmax(size, least), most))));
    }
}
KERNEL loss_deltas(real* out, BATCH, const double* units, L places, L width, L kind) {
    Row one;
    L row = blockIdx.x;
    bool counts = READ(row);
    double c = units[row / places];
    for (L k = threadIdx.x; k < width; k += blockDim.x)
        out[row * width + k] = counts ? (real)(one.weight * one.delta(k) / c) : (real)0;
}
KERNEL loss_tangent(real* out, BATCH, const double* units, const real* z_dot, const real* y_dot, L rows, L places,
                    L width, L kind) {
    Row one;
    L i = blockIdx.x, at = i % rows;
    real* o = out + i * width;
    if (!READ(at)) {
        for (L k = threadIdx.x; k < width; k += blockDim.x) o[k] = 0;
        return;
    }
    const real *zd = z_dot ? z_dot + i * width : nullptr, *yd = y_dot ? y_dot + i * width : nullptr;
    double mean = 0, moved = 0, rest = 0, scale = one.weight;
    if (kind == SOFTMAX) {
        if (zd) mean = one.mean_from(zd);
        if (yd) {
            double s = 0, r = 0;
            for (L k = threadIdx.x; k < width; k += blockDim.x) s += (double)yd[k];
            moved = block_sum(s);
            for (L k = threadIdx.x; k < width; k += blockDim.x)
                if ((u32)k != one.m) r += moved * one.p(k) - (double)yd[k];
            rest = block_sum(r);
        }
    }
    double c = units[at / places];
    for (L k = threadIdx.x; k < width; k += blockDim.x) {
        double sum = 0;
        if (kind == SOFTMAX) {
            if (zd) sum += one.mass * one.p(k) * (((double)zd[k] - (double)zd[one.m]) - mean);
            if (yd) sum += (u32)k == one.m ? -rest : moved * one.p(k) - (double)yd[k];
        } else {
            if (zd) sum += (kind == SQUARED ? 1.0 : one.bend(k)) * (double)zd[k];
            if (yd) sum -= (double)yd[k];
        }
        o[k] = (real)(scale * sum / c);
    }
}
KERNEL loss_along(double* sums, BATCH, const real* z_dot, L places, L width, L kind) {
    Row one;
    double total = 0;
    for (L t = 0; t < places; t++) {
        L row = (L)blockIdx.x * places + t;
        if (!READ(row)) continue;
        double s = 0;
        for (L k = threadIdx.x; k < width; k += blockDim.x) s += one.delta(k) * (double)z_dot[row * width + k];
        total += one.weight * block_sum(s);
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}
KERNEL loss_label_tangent(real* out, BATCH, const real* z_dot, L rows, L width, L kind) {
    Row one;
    L i = blockIdx.x;
    real* o = out + i * width;
    const real* zd = z_dot + i * width;
    bool counts = READ(i % rows);
    double mean = counts && kind == SOFTMAX ? one.mean_from(zd) : 0;
    for (L k = threadIdx.x; k < width; k += blockDim.x) {
        double v = kind == SOFTMAX && counts ? mean - ((double)zd[k] - (double)zd[one.m]) : -(double)zd[k];
        o[k] = counts ? (real)(one.weight * v) : (real)0;
    }
}

// --- Lanczos' iteration -------------------------------------------------------------------------------------------

// The last vectors, in double precision, as tangents of records and of labels.
KERNEL krylov_current(real* x, real* y, const double* q, L n, L d, L k) {
    EACH(i, n * (d + k)) {
        L r = i / (d + k), j = i % (d + k);
        if (j < d) x[r * d + j] = (real)q[i];
        else y[r * k + j - d] = (real)q[i];
    }
}
// A block has a record: its product becomes the next vector, orthogonal to those before. Every thread keeps its share of the
// vector in registers, KEPT values and, of longer vectors, the rest in memory.
KERNEL krylov_advance(double* next, double* along, double* fresh, const u64* basis, L steps, const real* xs,
                      const real* ys, const double* ux, const double* uy, L d, L k) {
    constexpr int KEPT = 8;
    L r = blockIdx.x, D = d + k, from = (L)KEPT * blockDim.x;
    double *w = next + r * D, cx = ux[r], cy = uy[r], v[KEPT], u[KEPT], sum;
    auto product = [&](L j) { return j < d ? cx * (double)xs[r * d + j] : cy * (double)ys[r * k + j - d]; };
    for (int i = 0; i < KEPT; i++) {
        L j = threadIdx.x + (L)i * blockDim.x;
        v[i] = j < D ? product(j) : 0.0;
    }
    for (L j = from + threadIdx.x; j < D; j += blockDim.x) w[j] = product(j);
    // with a vector of the basis, which stays in registers
    auto dot = [&](const double* q) {
        double s = 0;
        for (int i = 0; i < KEPT; i++) {
            L j = threadIdx.x + (L)i * blockDim.x;
            u[i] = j < D ? q[j] : 0.0;
            s += v[i] * u[i];
        }
        for (L j = from + threadIdx.x; j < D; j += blockDim.x) s += w[j] * q[j];
        return block_sum(s);
    };
    sum = dot((const double*)basis[steps - 1] + r * D);
    if (threadIdx.x == 0) along[r] = sum;
    for (int round = 0; round < 2; round++)
        for (L i = 0; i < steps; i++) {
            const double* q = (const double*)basis[i] + r * D;
            sum = dot(q);
            for (int l = 0; l < KEPT; l++) v[l] -= sum * u[l];
            for (L j = from + threadIdx.x; j < D; j += blockDim.x) w[j] -= sum * q[j];
        }
    sum = 0;
    for (int i = 0; i < KEPT; i++) sum += v[i] * v[i];
    for (L j = from + threadIdx.x; j < D; j += blockDim.x) sum += w[j] * w[j];
    sum = sqrt(block_sum(sum));
    if (threadIdx.x == 0) fresh[r] = sum;
    double over = sum > 0 ? sum : 1.0;
    for (int i = 0; i < KEPT; i++) {
        L j = threadIdx.x + (L)i * blockDim.x;
        if (j < D) w[j] = v[i] / over;
    }
    for (L j = from + threadIdx.x; j < D; j += blockDim.x) w[j] /= over;
}

// One more row of every record's tridiagonal matrix, its largest eigenvalue and the residual of that: `lanczos.rs` for one
// record. Of step i and record r the diagonal is at [(4 i) n + r], what stands beside it in the next row of numbers, then
// pivots and the eigenvector. A record that has ended stays as it is.
KERNEL ritz(double* matrix, double* state, double* found, u32* open, const double* along, const double* fresh, L n,
            double rounding, L dimension, double tolerance) {
    EACH(r, n) {
        double *steps = state + r, *ended = state + n + r;
        if (*ended != 0) continue;
        double *a = matrix + r, *b = a + n, *d = b + n, *s = d + n;
        const L row = 4 * n;
        L m = (L)*steps + 1;
        *steps = (double)m;
        a[(m - 1) * row] = along[r], b[(m - 1) * row] = fresh[r];
        double scale = 0, hi = -INFINITY, lo = -INFINITY;
        for (L i = 0; i < m; i++) {
            double v = a[i * row], radius = (i > 0 ? b[(i - 1) * row] : 0.0) + (i + 1 < m ? b[i * row] : 0.0);
            scale = fmax(scale, fabs(v)), hi = fmax(hi, v + radius), lo = fmax(lo, v);
        }
        bool bad = !(isfinite(along[r]) && isfinite(hi) && isfinite(lo));
        bool done = fresh[r] <= rounding * scale || isnan(fresh[r]) || m >= dimension;
        double theta = along[r] - along[r] + (fresh[r] - fresh[r]), residual = theta;
        if (!bad) {
            for (int round = 0; round < 200; round++) {
                double mid = 0.5 * (lo + hi), p = 1;
                if (mid <= lo || mid >= hi) break;
                bool above = false;
                for (L i = 0; i < m && !above; i++) {
                    double off = i > 0 ? b[(i - 1) * row] : 0.0;
                    p = a[i * row] - mid - off * off / p;
                    above = p >= 0;
                }
                if (above) lo = mid; else hi = mid;
            }
            theta = hi > 0 ? hi : 0.0, residual = 0;
        }
        if (theta > 0) {
            double shift = theta + 4.0 * 2.220446049250313e-16 * theta;
            for (L i = 0; i < m; i++) s[i * row] = 1;
            bool good = true;
            for (int round = 0; round < 3 && good; round++) {
                d[0] = a[0] - shift;
                for (L i = 1; i < m; i++) {
                    double off = b[(i - 1) * row], f = off / d[(i - 1) * row];
                    d[i * row] = a[i * row] - shift - f * off;
                    s[i * row] -= f * s[(i - 1) * row];
                }
                s[(m - 1) * row] /= d[(m - 1) * row];
                for (L i = m - 1; i-- > 0;) s[i * row] = (s[i * row] - b[i * row] * s[(i + 1) * row]) / d[i * row];
                double length = 0;
                for (L i = 0; i < m; i++) length += s[i * row] * s[i * row];
                length = sqrt(length);
                good = isfinite(length) && length > 0;
                for (L i = 0; i < m && good; i++) s[i * row] /= length;
            }
            residual = good ? fabs((done ? 0.0 : b[(m - 1) * row]) * s[(m - 1) * row]) / theta : 0.0;
        }
        found[r] = theta, found[n + r] = residual;
        if (done || residual <= tolerance) *ended = 1;
        else atomicOr(open, 1u);
    }
}

// --- accounts of records --------------------------------------------------------------------------------------------

// The coefficients of Poisson sampling by their integral, as `poisson.rs` has it.
static __device__ void poisson_integral(double q, double nu, double& across, double& along) {
    if (q == 0 || q == 1) { across = along = q * q; return; }
    double odds = log1p(-q) - log(q);
    if (0.5 * nu * nu - 10.0 * nu - odds > 50.0) { across = along = q; return; }
    double h = fmin(0.5 / fmax(nu, 1.0), 0.5), a = 0, b = 0;
    int half = (int)ceil(10.0 / h);
    for (int i = -half; i <= half; i++) {
        double xi = i * h, w = exp(-0.5 * xi * xi) / (1.0 + exp(odds - 0.5 * nu * nu - nu * xi));
        a += w, b += w * xi * xi;
    }
    double scale = q * h * 0.3989422804014327;
    across = a * scale, along = b * scale;
}
// From their table: pairs at multiples of the step, by Lagrange's cubic; both are even.
static __device__ void poisson_coefficients(const double* table, L points, double step, double q, double nu, double& across,
                                            double& along) {
    double x = nu / step;
    if (!(x >= 0) || floor(x) + 3 >= (double)points) { poisson_integral(q, nu > 0 ? nu : 0.0, across, along); return; }
    L i = (L)floor(x);
    double t = x - (double)i, w[4] = {-t * (t - 1.0) * (t - 2.0) / 6.0, (t * t - 1.0) * (t - 2.0) / 2.0,
                                      -t * (t + 1.0) * (t - 2.0) / 2.0, t * (t * t - 1.0) / 6.0};
    across = along = 0;
    for (int j = 0; j < 4; j++) {
        L at = i + j - 1 < 0 ? 1 - i - j : i + j - 1;
        across += w[j] * table[2 * at], along += w[j] * table[2 * at + 1];
    }
}
// A step's Rényi divergence at an order, as `renyi.rs` has it.
static __device__ double renyi_step(double q, double nu2, double alpha) {
    if (q == 0) return 0;
    if (q == 1) return 0.5 * alpha * nu2;
    double lq = log(q), lp = log1p(-q), choose = 0, top = -INFINITY, sum = 0;
    for (int k = 0; k <= (int)alpha; k++) {
        if (k > 0) choose += log((alpha - k + 1.0) / k);
        double term = choose + (alpha - k) * lp + k * lq + 0.5 * ((double)k * k - k) * nu2;
        if (term > top) sum = sum * exp(top - term) + 1.0, top = term;
        else sum += exp(term - top);
    }
    double e = (top + log(sum)) / (alpha - 1.0);
    return e > 0 ? e : 0;
}
KERNEL account(double* measured, double* trace, double* square, double* probes, double* plain, double* plain_square,
               double* plain_probes, double* renyi, const unsigned char* followed, const double* orders, u32* bad,
               const u32* records, L n, const double* sum, const double* sum_of_squares, double m, const double* pulled,
               const double* pulled_label, const double* norm, const double* s, const double* slope, double precision,
               double noise, double q, const double* table, L points, const double* rows, L entries, double step,
               double renyi_spacing, L count) {
    EACH(i, n) {
        L r = records[i];
        double mean = sum[i] / m, variance = (sum_of_squares[i] / m - mean * mean) * m / (m - 1.0);
        double error = sqrt((variance < 0 ? 0.0 : variance) / m);
        double p = pulled[i] + (pulled_label ? pulled_label[i] : 0.0);
        double along = norm[i] > 0 ? slope[i] * (sqrt(p) / norm[i]) : 0.0;
        along = precision * along * along;
        double nu = norm[i] * s[i] / noise, a = 1, b = 1;
        if (!(isfinite(mean) && isfinite(error) && isfinite(along) && isfinite(nu))) { atomicMin(bad, (u32)r); continue; }
        if (table) poisson_coefficients(table, points, step, q, nu, a, b);
        double exact = a * mean + (b - a) * along;
        measured[r] += 1, trace[r] += exact, square[r] += exact * exact, probes[r] += a * error * (a * error);
        plain[r] += mean, plain_square[r] += mean * mean, plain_probes[r] += error * error;
        if (!followed[r]) continue;
        double x = nu / renyi_spacing, low = floor(x);
        bool inside = rows && (low + 2) * (double)count <= (double)entries;
        double lo = low * renyi_spacing, hi = (low + 1) * renyi_spacing, t = (nu * nu - lo * lo) / (hi * hi - lo * lo);
        for (L j = 0; j < count; j++) {
            double e;
            if (inside) {
                double from = rows[(L)low * count + j];
                e = from + t * (rows[((L)low + 1) * count + j] - from);
            } else e = table ? renyi_step(q, nu * nu, orders[j]) : 0.5 * orders[j] * nu * nu;
            renyi[r * count + j] += e;
        }
    }
}

// --- a step of training -------------------------------------------------------------------------------------------

KERNEL all_finite(u32* bad, const real* x, L n) {
    EACH(i, n) if (!isfinite((double)x[i])) atomicOr(bad, 1u);
}

static __device__ __forceinline__ void quarter(u32& a, u32& b, u32& c, u32& d) {
    a += b; d ^= a; d = d << 16 | d >> 16;
    c += d; b ^= c; b = b << 12 | b >> 20;
    a += b; d ^= a; d = d << 8 | d >> 24;
    c += d; b ^= c; b = b << 7 | b >> 25;
}
// A block of ChaCha20: key, counter of blocks, nonce.
static __device__ void chacha(const u32* key, u64 counter, u64 nonce, u32* out) {
    u32 s[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u, key[0], key[1], key[2], key[3],
                 key[4], key[5], key[6], key[7], (u32)counter, (u32)(counter >> 32), (u32)nonce, (u32)(nonce >> 32)};
    for (int i = 0; i < 16; i++) out[i] = s[i];
    for (int round = 0; round < 10; round++) {
        quarter(out[0], out[4], out[8], out[12]); quarter(out[1], out[5], out[9], out[13]);
        quarter(out[2], out[6], out[10], out[14]); quarter(out[3], out[7], out[11], out[15]);
        quarter(out[0], out[5], out[10], out[15]); quarter(out[1], out[6], out[11], out[12]);
        quarter(out[2], out[7], out[8], out[13]); quarter(out[3], out[4], out[9], out[14]);
    }
    for (int i = 0; i < 16; i++) out[i] += s[i];
}
// Two normals (Box–Muller, 53 bits) from four words.
static __device__ __forceinline__ void normals(const u32* words, double* z) {
    double u[2], sin, cos;
    for (int h = 0; h < 2; h++) {
        u64 wide = (u64)words[2 * h] << 32 | words[2 * h + 1];
        u[h] = (double)(wide >> 11) * (1.0 / 9007199254740992.0);
    }
    double radius = sqrt(-2.0 * log1p(-u[0]));
    sincospi(2.0 * u[1], &sin, &cos);
    z[0] = radius * cos, z[1] = radius * sin;
}
// The stream of a seed, a purpose and a record: its words as the processor's generator gives them. Words `from`, `from` + 1, …
// of every record, `apart` further on for each probe.
KERNEL random_bits(u32* out, const u32* records, L n, L each, L words, L from, L apart, u64 seed, u64 purpose) {
    const u32 key[8] = {(u32)seed, (u32)(seed >> 32), (u32)purpose, 0, 0, 0, 0, 0};
    EACH(i, n) {
        L row = i / words, at = from + row / each * apart + i % words;
        u32 block[16];
        chacha(key, (u64)at / 16, records[row % each], block);
        u32 word = 0;
        for (int w = 0; w < 16; w++) word = w == at % 16 ? block[w] : word;
        out[i] = word;
    }
}
// A random unit vector for each record, from the normals of its stream.
KERNEL random_unit(double* out, const u32* records, L width, u64 seed, u64 purpose) {
    const u32 key[8] = {(u32)seed, (u32)(seed >> 32), (u32)purpose, 0, 0, 0, 0, 0};
    double *row = out + blockIdx.x * width, sum = 0;
    for (L b = threadIdx.x; b * 8 < width; b += blockDim.x) {
        u32 words[16];
        chacha(key, (u64)b, records[blockIdx.x], words);
        for (int pair = 0; pair < 4; pair++) {
            double z[2];
            normals(words + 4 * pair, z);
            for (int h = 0; h < 2; h++) {
                L j = b * 8 + 2 * pair + h;
                if (j < width) row[j] = z[h], sum += z[h] * z[h];
            }
        }
    }
    sum = sqrt(block_sum(sum));
    for (L j = threadIdx.x; j < width; j += blockDim.x) row[j] /= fmax(sum, 2.2250738585072014e-308);
}
// Eight normals for each block of the cipher; parameter i has the i-th.
KERNEL add_noise(real* x, const unsigned char* flags, L n, double s, u64 k0, u64 k1, u64 k2, u64 k3) {
    u32 key[8] = {(u32)k0, (u32)(k0 >> 32), (u32)k1, (u32)(k1 >> 32), (u32)k2, (u32)(k2 >> 32), (u32)k3, (u32)(k3 >> 32)};
    EACH(b, (n + 7) / 8) {
        u32 words[16];
        chacha(key, (u64)b, 0, words);
        for (int pair = 0; pair < 4; pair++) {
            double z[2];
            normals(words + 4 * pair, z);
            for (int h = 0; h < 2; h++) {
                L i = b * 8 + 2 * pair + h;
                if (i < n && flags[i]) x[i] += (real)(s * z[h]);
            }
        }
    }
}
// Signs from bits, 32 to a word; rows of `width` start with a word of their own.
KERNEL signs(real* out, const u32* bits, L n, L width, u64 magic, L words) {
    const Div by(width, magic);
    EACH(i, n) {
        u32 j, row = by.split((u32)i, j);
        out[i] = bits[(L)row * words + j / 32] >> (j % 32) & 1 ? (real)-1 : (real)1;
    }
}
KERNEL unit_rows(real* out, L rows, L width, L n, L from) { EACH(r, rows) out[r * width + from + r / n] = (real)1; }
KERNEL add_decay(real* g, const real* theta, L n, double scale, double decay) {
    EACH(i, n) g[i] = g[i] * (real)scale + (real)decay * theta[i];
}
KERNEL update_plain(real* theta, const real* g, const unsigned char* flags, L n, double lr) {
    EACH(i, n) if (flags[i]) theta[i] -= (real)lr * g[i];
}
KERNEL update_momentum(real* theta, real* m, const real* g, const unsigned char* flags, L n, double lr, double mu) {
    EACH(i, n) if (flags[i]) {
        m[i] = (real)mu * m[i] + g[i];
        theta[i] -= (real)lr * m[i];
    }
}
KERNEL update_adam(real* theta, real* m, real* v, const real* g, const unsigned char* flags, L n, double lr,
                   double beta1, double beta2, double root, double epsilon) {
    real b1 = (real)beta1, b2 = (real)beta2, one = 1;
    EACH(i, n) if (flags[i]) {
        m[i] = b1 * m[i] + (one - b1) * g[i];
        v[i] = b2 * v[i] + (one - b2) * g[i] * g[i];
        theta[i] -= (real)lr * m[i] / (sqrt(v[i]) * (real)root + (real)epsilon);
    }
}
