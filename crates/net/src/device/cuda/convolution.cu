// Convolutions without patches, compiled at run time for each shape and precision (REAL is float or double).
//
// A block holds a few records in shared memory, images and what comes back as planes of one channel with their zeros around
// them, and every thread a tile of results in registers. All sizes are constants: H, W, C (the image), KH, KW, SH, SW, PH, PW
// (the window), OH, OW, O (the output), and the tiles that `device/cuda/convolution.rs` chooses. Sums are made in a fixed
// order.

typedef REAL real;
typedef long long L;
typedef unsigned long long u64;

#define KERNEL extern "C" __global__ void
#define UNROLL _Pragma("unroll")

static __device__ constexpr int ceil_to(int n, int to) { return (n + to - 1) / to * to; }
static __device__ constexpr int larger(int a, int b) { return a > b ? a : b; }
static __device__ constexpr int floor_div(int a, int b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
// rows and planes a multiple of four long, but not of eight: threads that read side by side in neighbouring ones then reach
// different banks
static __device__ constexpr int plane(int n) { return ceil_to(n, 4) % 8 ? ceil_to(n, 4) : ceil_to(n, 4) + 4; }

constexpr int K = KH * KW * C, T = OH * OW;
constexpr int HP = larger(SH * (OH - 1) + KH, PH + H);

struct alignas(16) Pack { real v[16 / sizeof(real)]; };

#ifndef SHARED
extern __shared__ Pack shared_memory[];
#define SHARED real* const shared = (real*)shared_memory
#endif

// N values from shared memory, BYTES at a time.
template <int N, int BYTES> static __device__ __forceinline__ void load(real* to, const real* from) {
    constexpr int P = BYTES / sizeof(real) > 1 ? BYTES / sizeof(real) : 1;
    struct alignas(P * sizeof(real)) Group { real v[P]; };
    UNROLL for (int i = 0; i < N; i += P) {
        Group p = *(const Group*)(from + i);
        UNROLL for (int j = 0; j < P; j++)
            if (i + j < N) to[i + j] = p.v[j];
    }
}
// Bytes that N values starting at a multiple of N can be read by.
static __device__ constexpr int bytes(int n) {
    return n * (int)sizeof(real) % 16 == 0 ? 16 : n * (int)sizeof(real) % 8 == 0 ? 8 : (int)sizeof(real);
}

// N values to memory, BYTES at a time; where `adding`, to what is there.
template <int N, int BYTES> static __device__ __forceinline__ void store(real* to, const real* from, bool adding) {
    constexpr int P = BYTES / sizeof(real) > 1 ? BYTES / sizeof(real) : 1;
    struct alignas(P * sizeof(real)) Group { real v[P]; };
    UNROLL for (int i = 0; i < N; i += P) {
        Group p = {};
        if (adding) p = *(const Group*)(to + i);
        UNROLL for (int j = 0; j < P; j++) p.v[j] += from[i + j];
        *(Group*)(to + i) = p;
    }
}

// Calls `put(r, i, values)` for groups of V values of rows of LEN of `count` records, which repeat. All threads take part; several
// loads are under way at a time (V is 4 where rows start at multiples of 16 bytes).
template <int LEN, int V, class F> static __device__ __forceinline__ void read_groups(const real* from, L first, L repeat, int count, F put) {
    struct alignas(V == 4 ? 16 : sizeof(real)) Group { real v[V]; };
    constexpr int BATCH = 4, EACH = LEN / V;
    static_assert(LEN % V == 0, "rows of whole groups");
    const L at = first % repeat;
    for (int base = threadIdx.x; base < count * EACH; base += BATCH * blockDim.x) {
        Group v[BATCH];
        UNROLL for (int k = 0; k < BATCH; k++) {
            int i = base + k * (int)blockDim.x;
            if (i < count * EACH) {
                L row = at + i / EACH;
                while (row >= repeat) row -= repeat;
                v[k] = *(const Group*)(from + row * LEN + i % EACH * V);
            }
        }
        UNROLL for (int k = 0; k < BATCH; k++) {
            int i = base + k * (int)blockDim.x;
            if (i < count * EACH) put(i / EACH, i % EACH * V, v[k].v);
        }
    }
}
// Calls `put(r, i, value)` for every value.
template <int LEN, int V, class F> static __device__ __forceinline__ void read(const real* from, L first, L repeat, int count, F put) {
    read_groups<LEN, V>(from, first, repeat, count, [&](int r, int i, const real* v) {
        UNROLL for (int e = 0; e < V; e++) put(r, i + e, v[e]);
    });
}

// Images of `count` records as planes of rows of WP, inside their zeros.
template <int WP, int PLANE> static __device__ __forceinline__ void load_images(real* to, const real* x, L first, L repeat, int count) {
    read<H * W * C, H * W * C % 4 ? 1 : 4>(x, first, repeat, count, [&](int r, int j, real v) {
        int c = j % C, p = j / C;
        to[(r * C + c) * PLANE + (p / W + PH) * WP + p % W + PW] = v;
    });
}
// What came back, likewise: planes of one output, rows of WP after LEFT zeros.
template <int WP, int PLANE, int LEFT> static __device__ __forceinline__ void load_deltas(real* to, const real* d, L first, L repeat, int count) {
    read<T * O, T * O % 4 ? 1 : 4>(d, first, repeat, count, [&](int r, int j, real v) {
        int o = j % O, t = j / O;
        to[(r * O + o) * PLANE + t / OW * WP + t % OW + LEFT] = v;
    });
}
static __device__ __forceinline__ void clear(real* to, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = 0;
}

// Weights that all share, or the directions of records, α ġ + β g.
struct Weights {
    const real *g, *gd;
    const double *alpha, *beta;
    // one of them
    __device__ __forceinline__ real at(bool own, L r, int i, int len) const {
        if (!own) return g[i];
        real v = (real)beta[r] * g[r * len + i];
        return gd ? v + (real)alpha[r] * gd[r * len + i] : v;
    }
    // Calls `put(i, values)` for groups of V neighbouring weights of a record: all threads, several loads at a time. Where it can,
    // a warp reads 128 bytes of each of four outputs.
    template <int V, class F> __device__ __forceinline__ void read_own(L r, F put) const {
        struct alignas(V == 4 ? 16 : sizeof(real)) Group { real v[V]; };
        constexpr int BATCH = 4, ALL = O * K / V;
        constexpr bool SPREAD = V == 4 && O % 4 == 0 && K % 32 == 0;
        const real a = gd ? (real)alpha[r] : (real)0, b = (real)beta[r];
        const real *still = g + r * (O * K), *moved = gd + r * (O * K);
        auto index = [](int i) {
            int lane = i % 32, group = i / 32, line = group % larger(K / 32, 1), o = group / larger(K / 32, 1) * 4 + lane / 8;
            return SPREAD ? o * K + line * 32 + lane % 8 * 4 : i * V;
        };
        for (int base = threadIdx.x; base < ALL; base += BATCH * blockDim.x) {
            Group v[BATCH], u[BATCH];
            UNROLL for (int k = 0; k < BATCH; k++) {
                int i = base + k * (int)blockDim.x;
                if (i < ALL) v[k] = *(const Group*)(still + index(i));
                if (i < ALL && gd) u[k] = *(const Group*)(moved + index(i));
            }
            UNROLL for (int k = 0; k < BATCH; k++) {
                int i = base + k * (int)blockDim.x;
                if (i < ALL) {
                    UNROLL for (int e = 0; e < V; e++) v[k].v[e] = gd ? b * v[k].v[e] + a * u[k].v[e] : b * v[k].v[e];
                    put(index(i), v[k].v);
                }
            }
        }
    }
};
constexpr int OWN_V = O * K % 4 ? 1 : 4;

// --- z = W a + b ---------------------------------------------------------------------------------------------------

// FT positions of a row by FO outputs for each thread
constexpr int F_PIECES = (OW + FT - 1) / FT, F_SEGMENT = SW * (FT - 1) + KW;
constexpr bool F_WIDE = F_PIECES == 1 || FT * SW % 4 == 0;
constexpr int F_WP = plane(larger(SW * (F_PIECES * FT - 1) + KW, PW + W)), F_PLANE = plane(HP * F_WP);
// weights by row of the kernel, channel, column of the kernel, output; the gaps spread what is written side by side over banks
static __device__ constexpr int f_column(bool own) { return own ? ceil_to(O, 4) + 8 : O; }
static __device__ constexpr int f_weights(bool own) { return ceil_to(KH * C * (KW * f_column(own) + 4), 4); }

template <bool OWN, int R, int FO> static __device__ __forceinline__ void forward(real* out, const real* x, L n, L nx, Weights w, Weights b, bool biased) {
    SHARED;
    constexpr int GROUPS = O / FO, ITEMS = OH * F_PIECES * GROUPS;
    constexpr int F_COLUMN = f_column(OWN), F_STEP = KW * F_COLUMN + 4, F_WEIGHTS = f_weights(OWN);
    real *weights = shared, *images = shared + (OWN ? R : 1) * F_WEIGHTS;
    clear(images, R * C * F_PLANE);
    auto put = [&](int r, int i, real v) {
        int c = i % C, tap = i / C % (KH * KW), o = i / K;
        weights[r * F_WEIGHTS + (tap / KW * C + c) * F_STEP + tap % KW * F_COLUMN + o] = v;
    };
    if (!OWN) read<O * K, 1>(w.g, 0, 1, 1, put);
    for (L first = (L)blockIdx.x * R; first < n; first += (L)gridDim.x * R) {
        int count = (int)(n - first < R ? n - first : R);
        __syncthreads();
        load_images<F_WP, F_PLANE>(images, x, first, nx, count);
        if (OWN)
            for (int r = 0; r < count; r++)
                w.read_own<OWN_V>(first + r, [&](int i, const real* v) {
                    UNROLL for (int e = 0; e < OWN_V; e++) put(r, i + e, v[e]);
                });
        __syncthreads();
        for (int item = threadIdx.x; item < count * ITEMS; item += blockDim.x) {
            int group = item % GROUPS, at = item / GROUPS, piece = at % F_PIECES, row = at / F_PIECES, oy = row % OH, r = row / OH;
            real acc[FT][FO];
            real* to = out + (((first + r) * OH + oy) * OW + piece * FT) * O + group * FO;
            UNROLL for (int o = 0; o < FO; o++) {
                real v = biased ? b.at(OWN, first + r, group * FO + o, O) : (real)0;
                UNROLL for (int t = 0; t < FT; t++) acc[t][o] = v;
            }
            const real* lines = images + r * C * F_PLANE + oy * SH * F_WP + piece * FT * SW;
            const real* taps = weights + (OWN ? r * F_WEIGHTS : 0) + group * FO;
#pragma unroll 1
            for (int ky = 0; ky < KH; ky++)
#pragma unroll 2
                for (int c = 0; c < C; c++) {
                    real segment[F_SEGMENT];
                    load<F_SEGMENT, F_WIDE ? 16 : 0>(segment, lines + c * F_PLANE + ky * F_WP);
                    const real* tap = taps + (ky * C + c) * F_STEP;
                    UNROLL for (int kx = 0; kx < KW; kx++) {
                        real v[FO];
                        load<FO, bytes(FO)>(v, tap + kx * F_COLUMN);
                        UNROLL for (int t = 0; t < FT; t++)
                            UNROLL for (int o = 0; o < FO; o++) acc[t][o] += segment[t * SW + kx] * v[o];
                    }
                }
            UNROLL for (int t = 0; t < FT; t++)
                if (F_PIECES * FT == OW || piece * FT + t < OW) {
                    store<FO, bytes(FO)>(to + t * O, acc[t], OWN);
                }
        }
    }
}
KERNEL __launch_bounds__(F_THREADS) conv_forward(real* out, const real* x, const real* w, const real* b, L n, L nx) {
    forward<false, FR, FO_SHARED>(out, x, n, nx, {w, nullptr, nullptr, nullptr}, {b, nullptr, nullptr, nullptr}, b != nullptr);
}
// Adds what every record's own weights make of it.
KERNEL __launch_bounds__(F_THREADS) conv_forward_own(real* out, const real* x, const real* g, const real* gb, const real* gd,
                                                     const real* gbd, const double* alpha, const double* beta, L n, L nx) {
    forward<true, FR_OWN, FO_OWN>(out, x, n, nx, {g, gd, alpha, beta}, {gb, gbd, alpha, beta}, gb != nullptr);
}

// --- Wᵀ δ ------------------------------------------------------------------------------------------------------------

// BX pixels of a row by BC channels for each thread
constexpr int B_PIECES = (W + BX - 1) / BX, B_LOW = floor_div(PW - (KW - 1), SW), B_LEFT = larger(0, -B_LOW);
constexpr int B_SEGMENT = floor_div(BX - 1 + PW, SW) - B_LOW + 1, B_START = larger(0, B_LOW);
constexpr bool B_WIDE = B_START % 4 == 0 && (B_PIECES == 1 || BX / SW % 4 == 0);
constexpr int B_WP = plane(larger(B_LEFT + OW, (B_PIECES - 1) * (BX / SW) + B_START + ceil_to(B_SEGMENT, 4)));
constexpr int B_PLANE = plane(OH * B_WP);
// weights by output, row of the kernel, column, channel
constexpr int B_STEP = ceil_to(KW * C, 4) + (ceil_to(KW * C, 4) % 32 ? 0 : 16), B_WEIGHTS = O * KH * B_STEP;

template <bool OWN, int R, int BC> static __device__ __forceinline__ void backward(real* out, const real* d, L n, L nd, Weights w) {
    SHARED;
    constexpr int GROUPS = C / BC, ITEMS = H * B_PIECES * GROUPS;
    real *weights = shared, *deltas = shared + (OWN ? R : 1) * B_WEIGHTS;
    clear(deltas, R * O * B_PLANE);
    auto place = [&](int r, int i) { return weights + r * B_WEIGHTS + i / (KW * C) * B_STEP + i % (KW * C); };
    if (!OWN) read<O * K, 1>(w.g, 0, 1, 1, [&](int r, int i, real v) { *place(r, i) = v; });
    for (L first = (L)blockIdx.x * R; first < n; first += (L)gridDim.x * R) {
        int count = (int)(n - first < R ? n - first : R);
        __syncthreads();
        load_deltas<B_WP, B_PLANE, B_LEFT>(deltas, d, first, nd, count);
        if (OWN)
            for (int r = 0; r < count; r++)
                w.read_own<OWN_V>(first + r, [&](int i, const real* v) {
                    struct alignas(16) Group { real v[4]; };
                    // four in one row of the kernel are neighbours here too
                    if (OWN_V == 4 && KW * C % 4 == 0) *(Group*)place(r, i) = *(const Group*)v;
                    else UNROLL for (int e = 0; e < OWN_V; e++) *place(r, i + e) = v[e];
                });
        __syncthreads();
        for (int item = threadIdx.x; item < count * ITEMS; item += blockDim.x) {
            int group = item % GROUPS, at = item / GROUPS, y = at % H, up = at / H, piece = up % B_PIECES, r = up / B_PIECES;
            real acc[BX][BC];
            UNROLL for (int i = 0; i < BX; i++)
                UNROLL for (int c = 0; c < BC; c++) acc[i][c] = 0;
            for (int ky = (y + PH) % SH; ky < KH; ky += SH) {
                int oy = (y + PH - ky) / SH;
                if (y + PH < ky || oy >= OH) continue;
                const real* line = deltas + r * O * B_PLANE + oy * B_WP + B_START + piece * (BX / SW);
                const real* tap = weights + (OWN ? r * B_WEIGHTS : 0) + ky * B_STEP + group * BC;
#pragma unroll 2
                for (int o = 0; o < O; o++) {
                    real segment[B_SEGMENT], v[KW][BC];
                    load<B_SEGMENT, B_WIDE ? 16 : 0>(segment, line + o * B_PLANE);
                    if (BC == C)
                        load<KW * BC, 16>(&v[0][0], tap + o * KH * B_STEP);
                    else
                        UNROLL for (int kx = 0; kx < KW; kx++)
                            load<BC, bytes(BC)>(v[kx], tap + o * KH * B_STEP + kx * C);
                    UNROLL for (int i = 0; i < BX; i++)
                        UNROLL for (int kx = 0; kx < KW; kx++) {
                            const int q = i + PW - kx;
                            if ((q % SW + SW) % SW == 0 && (B_PIECES > 1 || (q >= 0 && q / SW < OW))) {
                                UNROLL for (int c = 0; c < BC; c++) acc[i][c] += segment[floor_div(q, SW) - B_LOW] * v[kx][c];
                            }
                        }
                }
            }
            real* to = out + (((first + r) * H + y) * W + piece * BX) * C + group * BC;
            UNROLL for (int i = 0; i < BX; i++)
                if (B_PIECES * BX == W || piece * BX + i < W) {
                    store<BC, bytes(BC)>(to + i * C, acc[i], OWN);
                }
        }
    }
}
KERNEL __launch_bounds__(B_THREADS) conv_backward(real* out, const real* d, const real* w, L n, L nd) {
    backward<false, BR, BC_SHARED>(out, d, n, nd, {w, nullptr, nullptr, nullptr});
}
KERNEL __launch_bounds__(B_THREADS) conv_backward_own(real* out, const real* d, const real* g, const real* gd, const double* alpha,
                                                      const double* beta, L n, L nd) {
    backward<true, BR_OWN, BC_OWN>(out, d, n, nd, {g, gd, alpha, beta});
}

// --- g = Σ δ ⊗ (a, 1) --------------------------------------------------------------------------------------------------

// a row of the kernel by GC channels by GO outputs for each thread; GX positions at a time
constexpr int G_PIECES = (OW + GX - 1) / GX, G_SEGMENT = SW * (GX - 1) + KW;
constexpr bool G_WIDE = G_PIECES == 1 || GX * SW % 4 == 0, G_WIDE_DELTA = G_PIECES == 1 || GX % 4 == 0;
constexpr int G_WP = plane(larger(SW * (G_PIECES * GX - 1) + KW, PW + W)), G_PLANE = plane(HP * G_WP);
constexpr int G_DP = ceil_to(G_PIECES * GX, 4), G_DPLANE = plane(OH * G_DP);
constexpr int G_CHANNELS = C / GC, G_OUTPUTS = O / GO, G_ITEMS = KH * G_CHANNELS * G_OUTPUTS;
// whole warps for every record, and several rounds where there is more to do
constexpr int G_EACH = ceil_to(G_ITEMS, 32) < G_THREADS ? ceil_to(G_ITEMS, 32) : G_THREADS, G_WARPS = G_EACH / 32;
constexpr int G_ROUNDS = (G_ITEMS + G_EACH - 1) / G_EACH;
// both pairs of a tangent are held where they are needed again
constexpr int G_HELD = G_ROUNDS > 1 ? 2 : 1, G_IMAGES = GR * C * G_PLANE, G_SET = G_IMAGES + GR * O * G_DPLANE;

// channels of a thread that lie side by side in memory at multiples of their number
constexpr int G_BYTES = C % GC ? (int)sizeof(real) : bytes(GC);

static __device__ __forceinline__ double warp_total(double v) {
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

struct Tile { real g[GO][GC][KW], b[GO]; };

// Adds to a tile the products of a record, whose δ counts `weight` times.
static __device__ __forceinline__ void accumulate(Tile& tile, const real* image, const real* delta, int ky, int c, int group, bool bias,
                                                  real weight = 1) {
#pragma unroll 1
    for (int oy = 0; oy < OH; oy++)
#pragma unroll 1
        for (int piece = 0; piece < G_PIECES; piece++) {
            real segment[GC][G_SEGMENT];
            UNROLL for (int i = 0; i < GC; i++)
                load<G_SEGMENT, G_WIDE ? 16 : 0>(segment[i], image + (c * GC + i) * G_PLANE + (oy * SH + ky) * G_WP + piece * GX * SW);
            UNROLL for (int o = 0; o < GO; o++) {
                real line[GX];
                load<GX, G_WIDE_DELTA ? 16 : 0>(line, delta + (group + o * G_OUTPUTS) * G_DPLANE + oy * G_DP + piece * GX);
                UNROLL for (int t = 0; t < GX; t++) line[t] *= weight;
                UNROLL for (int i = 0; i < GC; i++)
                    UNROLL for (int kx = 0; kx < KW; kx++)
                        UNROLL for (int t = 0; t < GX; t++) tile.g[o][i][kx] += line[t] * segment[i][t * SW + kx];
                if (bias) {
                    UNROLL for (int t = 0; t < GX; t++) tile.b[o] += line[t];
                }
            }
        }
}

// Of pairs (δ, a) and, in a tangent, (δ₂, a₂), whose bias takes no part. `square` gains ‖g‖²; where there is a reference
// (the gradient that moves), `cross` its product with g. The arrays are written where there are any.
KERNEL __launch_bounds__(G_THREADS) conv_gradient(real* g, real* gb, const real* d, const real* x, L n, L nd, L nx, const real* d2,
                                                  const real* x2, L nd2, const real* ref, const real* refb, L nref, double* square,
                                                  double* cross, L biased) {
    SHARED;
    double* sums = (double*)(shared + G_HELD * G_SET);
    clear(shared, G_HELD * G_SET);
    const int pairs = d2 ? 2 : 1;
    int r = threadIdx.x / G_EACH, own = threadIdx.x % G_EACH;
    for (L first = (L)blockIdx.x * GR; first < n; first += (L)gridDim.x * GR) {
        int count = (int)(n - first < GR ? n - first : GR);
        double sq = 0, cr = 0;
        auto fetch = [&](int pair, real* set) {
            load_images<G_WP, G_PLANE>(set, pair ? x2 : x, first, pair ? n : nx, count);
            load_deltas<G_DP, G_DPLANE, 0>(set + G_IMAGES, pair ? d2 : d, first, pair ? nd2 : nd, count);
        };
        if (G_HELD == 2) {
            __syncthreads();
            for (int pair = 0; pair < pairs; pair++) fetch(pair, shared + pair * G_SET);
            __syncthreads();
        }
        for (int round = 0; round < G_ROUNDS; round++) {
            int item = round * G_EACH + own, group = item % G_OUTPUTS, at = item / G_OUTPUTS, c = at % G_CHANNELS, ky = at / G_CHANNELS;
            bool busy = r < count && item < G_ITEMS, bias = biased && at == 0;
            Tile tile;
            UNROLL for (int o = 0; o < GO; o++) {
                tile.b[o] = 0;
                UNROLL for (int i = 0; i < GC; i++)
                    UNROLL for (int kx = 0; kx < KW; kx++) tile.g[o][i][kx] = 0;
            }
#pragma unroll 1
            for (int pair = 0; pair < pairs; pair++) {
                real* set = shared + (G_HELD == 2 ? pair * G_SET : 0);
                if (G_HELD == 1) {
                    __syncthreads();
                    fetch(pair, set);
                    __syncthreads();
                }
                if (busy) accumulate(tile, set + r * C * G_PLANE, set + G_IMAGES + r * O * G_DPLANE, ky, c, group, bias && pair == 0);
            }
            if (busy) {
                L record = first + r;
                const real* still = ref + record % nref * (O * K);
                UNROLL for (int o = 0; o < GO; o++)
                    UNROLL for (int kx = 0; kx < KW; kx++) {
                        int to = (((group + o * G_OUTPUTS) * KH + ky) * KW + kx) * C + c * GC;
                        real v[GC], w[GC] = {};
                        UNROLL for (int i = 0; i < GC; i++) v[i] = tile.g[o][i][kx];
                        if (ref) load<GC, G_BYTES>(w, still + to);
                        UNROLL for (int i = 0; i < GC; i++) {
                            sq += (double)v[i] * (double)v[i];
                            if (ref) cr += (double)v[i] * (double)w[i];
                        }
                        if (g) store<GC, G_BYTES>(g + record * (O * K) + to, v, false);
                    }
                if (bias)
                    UNROLL for (int o = 0; o < GO; o++) {
                        int to = group + o * G_OUTPUTS;
                        real v = tile.b[o];
                        sq += (double)v * (double)v;
                        if (ref) cr += (double)v * (double)refb[record % nref * O + to];
                        if (gb) gb[record * O + to] = v;
                    }
            }
        }
        sq = warp_total(sq), cr = warp_total(cr);
        if (threadIdx.x % 32 == 0) {
            sums[threadIdx.x / 32] = sq;
            sums[GR * G_WARPS + threadIdx.x / 32] = cr;
        }
        __syncthreads();
        if (own == 0 && r < count) {
            double s = 0, t = 0;
            for (int w = 0; w < G_WARPS; w++) {
                s += sums[r * G_WARPS + w];
                t += sums[GR * G_WARPS + r * G_WARPS + w];
            }
            square[first + r] += s;
            if (ref) cross[first + r] += t;
        }
    }
}
