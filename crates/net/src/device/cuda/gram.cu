// Per-sample gradients of a convolution by their Gram matrices, where there are few positions: compiled behind `convolution.cu`.
//
// ‖g‖² = Σ_ts (a_t·a_s + 1)(δ_t·δ_s), and g as a direction of the parameters is a product with one of the two. Where the stride
// divides the kernel, the image falls into blocks of SH × SW pixels and a patch is PY × PX of them: products of patches are sums
// of products of blocks, of which there are fewer.

#if GRAM

constexpr int PY = KH / SH, PX = KW / SW, NY = OH + PY - 1, NX = OW + PX - 1, NB = NY * NX, DEPTH = SH * SW * C;
// rows of four to a tile; rows beyond are zeros
constexpr int B_ROWS = ceil_to(NB, 4), D_ROWS = ceil_to(T, 4), B_TILES = B_ROWS / 4, D_TILES = D_ROWS / 4;
constexpr int B_WIDTH = plane(DEPTH), D_WIDTH = plane(O);
// an odd distance of rows
constexpr int BB = B_ROWS + 1 - B_ROWS % 2, DD = D_ROWS + 1 - D_ROWS % 2;
constexpr int B_PAIRS = B_TILES * (B_TILES + 1) / 2, D_PAIRS = D_TILES * (D_TILES + 1) / 2;
constexpr int B_LANES = ceil_to(B_PAIRS, 32), M_EACH = B_LANES + ceil_to(D_PAIRS, 32), M_WARPS = M_EACH / 32;
constexpr int M_BLOCKS = B_ROWS * B_WIDTH, M_DELTAS = D_ROWS * D_WIDTH, M_GRAMS = ceil_to(B_ROWS * BB + D_ROWS * DD, 4);
constexpr int M_SET = M_BLOCKS + M_DELTAS;

// Copies that are under way while something else is computed, where the card can; two sets of records take turns.
template <int BYTES> static __device__ __forceinline__ void copy(real* to, const real* from) {
#if __CUDA_ARCH__ >= 800
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else if (BYTES == 8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
#else
    UNROLL for (int i = 0; i < BYTES / (int)sizeof(real); i++) to[i] = from[i];
#endif
}
static __device__ __forceinline__ void copies_end() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits for all copies but those of the last group.
static __device__ __forceinline__ void copies_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

// Values that are copied at a time, of rows of n.
static __device__ constexpr int at_a_time(int n) { return n % (16 / (int)sizeof(real)) ? 1 : 16 / (int)sizeof(real); }

// The image of a record as rows of blocks, among zeros that are there already.
static __device__ __forceinline__ void load_blocks(real* to, const real* x, L record) {
    constexpr int V = at_a_time(C);
    for (int j = threadIdx.x * V; j < H * W * C; j += blockDim.x * V) {
        int c = j % C, p = j / C, py = p / W + PH, px = p % W + PW;
        if (py < NY * SH && px < NX * SW)
            copy<V * sizeof(real)>(to + (py / SH * NX + px / SW) * B_WIDTH + (py % SH * SW + px % SW) * C + c, x + record * (H * W * C) + j);
    }
}
// What came back, rows of WIDTH.
template <int WIDTH> static __device__ __forceinline__ void load_rows(real* to, const real* d, L record) {
    constexpr int V = at_a_time(O);
    for (int j = threadIdx.x * V; j < T * O; j += blockDim.x * V) copy<V * sizeof(real)>(to + j / O * WIDTH + j % O, d + record * (T * O) + j);
}

// Products of the rows {i, i + TILES, …} with {j, j + TILES, …}, written to both halves.
template <int LEN, int WIDTH, int TILES, int TO> static __device__ __forceinline__ void products(const real* rows, int i, int j, real* to) {
    real acc[4][4];
    UNROLL for (int a = 0; a < 4; a++)
        UNROLL for (int b = 0; b < 4; b++) acc[a][b] = 0;
#pragma unroll 2
    for (int k = 0; k < LEN; k += 4) {
        real x[4][4], y[4][4];
        UNROLL for (int a = 0; a < 4; a++) {
            load<4, 16>(x[a], rows + (i + a * TILES) * WIDTH + k);
            load<4, 16>(y[a], rows + (j + a * TILES) * WIDTH + k);
        }
        UNROLL for (int e = 0; e < 4; e++)
            UNROLL for (int a = 0; a < 4; a++)
                UNROLL for (int b = 0; b < 4; b++) acc[a][b] += x[a][e] * y[b][e];
    }
    UNROLL for (int a = 0; a < 4; a++)
        UNROLL for (int b = 0; b < 4; b++) {
            to[(i + a * TILES) * TO + j + b * TILES] = acc[a][b];
            to[(j + b * TILES) * TO + i + a * TILES] = acc[a][b];
        }
}
// The pair i ≤ j of a number.
static __device__ __forceinline__ void pair_of(int at, int tiles, int& i, int& j) {
    for (i = 0; at >= tiles - i; i++) at -= tiles - i;
    j = i + at;
}

// A = a_t·a_s + one and D = δ_t·δ_s of every record; `square` gains Σ A D.
KERNEL __launch_bounds__(M_EACH) conv_gram(real* ga, real* gd, const real* d, const real* x, L n, double* square, double one) {
    SHARED;
    real *blocks = shared + 2 * M_SET, *rows = blocks + B_ROWS * BB;
    double* sums = (double*)(blocks + M_GRAMS);
    clear(shared, 2 * M_SET);
    int own = threadIdx.x, i, j;
    bool deltas = own >= B_LANES, busy = deltas ? own - B_LANES < D_PAIRS : own < B_PAIRS;
    pair_of(busy ? own - (deltas ? B_LANES : 0) : 0, deltas ? D_TILES : B_TILES, i, j);
    auto fetch = [&](L record, real* set) {
        if (record < n) {
            load_blocks(set, x, record);
            load_rows<D_WIDTH>(set + M_BLOCKS, d, record);
        }
        copies_end();
    };
    __syncthreads();
    fetch(blockIdx.x, shared);
    int turn = 0;
    for (L record = blockIdx.x; record < n; record += gridDim.x, turn ^= 1) {
        real* set = shared + turn * M_SET;
        fetch(record + gridDim.x, shared + (turn ^ 1) * M_SET);
        copies_wait();
        __syncthreads();
        if (busy) {
            if (deltas) products<ceil_to(O, 4), D_WIDTH, D_TILES, DD>(set + M_BLOCKS, i, j, rows);
            else products<ceil_to(DEPTH, 4), B_WIDTH, B_TILES, BB>(set, i, j, blocks);
        }
        __syncthreads();
        double sq = 0;
        for (int at = own; at < T * T; at += M_EACH) {
            int t = at / T, s = at % T, p = t / OW * NX + t % OW, q = s / OW * NX + s % OW;
            real a = (real)one, b = rows[t * DD + s];
            UNROLL for (int uy = 0; uy < PY; uy++)
                UNROLL for (int ux = 0; ux < PX; ux++) a += blocks[(p + uy * NX + ux) * BB + q + uy * NX + ux];
            sq += (double)a * (double)b;
            ga[record * (T * T) + at] = a;
            gd[record * (T * T) + at] = b;
        }
        sq = warp_total(sq);
        if (own % 32 == 0) sums[own / 32] = sq;
        __syncthreads();
        if (own == 0) {
            double s = 0;
            for (int w = 0; w < M_WARPS; w++) s += sums[w];
            square[record] += s;
        }
    }
}

// Where g is the direction: adds β Σ_s A_ts δ_s to what goes forward.
constexpr int A_LANES = O % 4 ? 1 : 4, A_ITEMS = T * (O / A_LANES), A_SET = ceil_to(T * T, 4) + T * O;
KERNEL __launch_bounds__(A_THREADS) gram_forward(real* out, const real* ga, const real* d, const double* beta, L n) {
    SHARED;
    auto fetch = [&](L record, real* set) {
        if (record < n) {
            for (int j = threadIdx.x; j < T * T; j += blockDim.x) copy<sizeof(real)>(set + j, ga + record * (T * T) + j);
            load_rows<O>(set + ceil_to(T * T, 4), d, record);
        }
        copies_end();
    };
    fetch(blockIdx.x, shared);
    int turn = 0;
    for (L record = blockIdx.x; record < n; record += gridDim.x, turn ^= 1) {
        const real *set = shared + turn * A_SET, *rows = set + ceil_to(T * T, 4);
        fetch(record + gridDim.x, shared + (turn ^ 1) * A_SET);
        copies_wait();
        __syncthreads();
        real b = (real)beta[record];
        for (int item = threadIdx.x; item < A_ITEMS; item += blockDim.x) {
            int o = item % (O / A_LANES) * A_LANES, t = item / (O / A_LANES);
            real acc[A_LANES] = {};
#pragma unroll 5
            for (int s = 0; s < T; s++) {
                real v[A_LANES], a = set[t * T + s];
                load<A_LANES, bytes(A_LANES)>(v, rows + s * O + o);
                UNROLL for (int e = 0; e < A_LANES; e++) acc[e] += a * v[e];
            }
            UNROLL for (int e = 0; e < A_LANES; e++) acc[e] *= b;
            store<A_LANES, bytes(A_LANES)>(out + (record * T + t) * O + o, acc, true);
        }
        __syncthreads();
    }
}

// And β Σ_s D_ts a_s, as images, to what comes back: blocks of pixels times E_ij, the sum of D over the patches in which block
// i lies where block j does. D stands among zeros, so that nothing asks whether there is a patch.
constexpr int E_WIDTH = ceil_to(NB, 4), E_COLUMNS = ceil_to(DEPTH, 4) / 4, E_ITEMS = E_WIDTH / 4 * E_COLUMNS;
constexpr int RY = NY + PY - 1, RX = NX + PX - 1, R_WIDTH = RY * RX + 1 - RY * RX % 2, E_ROWS = ceil_to(RY * RX * R_WIDTH, 4);
constexpr int E_SET = M_BLOCKS + E_ROWS;
KERNEL __launch_bounds__(E_THREADS) gram_backward(real* out, const real* gd, const real* x, const double* beta, L n) {
    SHARED;
    real* both = shared + 2 * E_SET;
    clear(shared, 2 * E_SET + NB * E_WIDTH);
    auto place = [](int t) { return (t / OW + PY - 1) * RX + t % OW + PX - 1; };
    auto fetch = [&](L record, real* set) {
        if (record < n) {
            load_blocks(set, x, record);
            for (int j = threadIdx.x; j < T * T; j += blockDim.x)
                copy<sizeof(real)>(set + M_BLOCKS + place(j / T) * R_WIDTH + place(j % T), gd + record * (T * T) + j);
        }
        copies_end();
    };
    __syncthreads();
    fetch(blockIdx.x, shared);
    int turn = 0;
    for (L record = blockIdx.x; record < n; record += gridDim.x, turn ^= 1) {
        const real *set = shared + turn * E_SET, *rows = set + M_BLOCKS;
        fetch(record + gridDim.x, shared + (turn ^ 1) * E_SET);
        copies_wait();
        __syncthreads();
        real b = (real)beta[record];
        for (int at = threadIdx.x; at < NB * NB; at += blockDim.x) {
            int i = at % NB, j = at / NB, p = i / NX * RX + i % NX, q = j / NX * RX + j % NX;
            real sum = 0;
            UNROLL for (int uy = 0; uy < PY; uy++)
                UNROLL for (int ux = 0; ux < PX; ux++) sum += rows[(p + uy * RX + ux) * R_WIDTH + q + uy * RX + ux];
            both[j * E_WIDTH + i] = b * sum;
        }
        __syncthreads();
        for (int item = threadIdx.x; item < E_ITEMS; item += blockDim.x) {
            int column = item % E_COLUMNS * 4, row = item / E_COLUMNS * 4;
            real acc[4][4];
            UNROLL for (int a = 0; a < 4; a++)
                UNROLL for (int e = 0; e < 4; e++) acc[a][e] = 0;
#pragma unroll 4
            for (int j = 0; j < NB; j++) {
                real e[4], v[4];
                load<4, 16>(e, both + j * E_WIDTH + row);
                load<4, 16>(v, set + j * B_WIDTH + column);
                UNROLL for (int a = 0; a < 4; a++)
                    UNROLL for (int c = 0; c < 4; c++) acc[a][c] += e[a] * v[c];
            }
            constexpr int V = C % 4 ? 1 : 4;
            UNROLL for (int a = 0; a < 4; a++)
                UNROLL for (int e = 0; e < 4; e += V) {
                    int i = row + a, at = column + e, c = at % C, pixel = at / C;
                    int py = i / NX * SH + pixel / SW - PH, px = i % NX * SW + pixel % SW - PW;
                    if (i < NB && at < DEPTH && py >= 0 && px >= 0 && py < H && px < W)
                        store<V, bytes(V)>(out + ((record * H + py) * W + px) * C + c, &acc[a][e], true);
                }
        }
        __syncthreads();
    }
}

// Σ w δ ⊗ (a, 1) over the records of each block, whose threads keep their tiles from record to record.
constexpr int S_THREADS = ceil_to(G_ITEMS, 32), S_IMAGE = C * G_PLANE, S_SET = S_IMAGE + O * G_DPLANE;
KERNEL __launch_bounds__(S_THREADS) conv_sum(double* part, double* bias_part, const real* d, const real* x, const double* weights, L n) {
    SHARED;
    clear(shared, 2 * S_SET);
    int item = threadIdx.x, group = item % G_OUTPUTS, at = item / G_OUTPUTS, c = at % G_CHANNELS, ky = at / G_CHANNELS;
    bool busy = item < G_ITEMS;
    Tile tile;
    UNROLL for (int o = 0; o < GO; o++) {
        tile.b[o] = 0;
        UNROLL for (int i = 0; i < GC; i++)
            UNROLL for (int kx = 0; kx < KW; kx++) tile.g[o][i][kx] = 0;
    }
    auto fetch = [&](L record, real* set) {
        if (record < n) {
            for (int j = threadIdx.x; j < H * W * C; j += blockDim.x) {
                int p = j / C;
                copy<sizeof(real)>(set + j % C * G_PLANE + (p / W + PH) * G_WP + p % W + PW, x + record * (H * W * C) + j);
            }
            for (int j = threadIdx.x; j < T * O; j += blockDim.x) {
                int t = j / O;
                copy<sizeof(real)>(set + S_IMAGE + j % O * G_DPLANE + t / OW * G_DP + t % OW, d + record * (T * O) + j);
            }
        }
        copies_end();
    };
    __syncthreads();
    fetch(blockIdx.x, shared);
    int turn = 0;
    for (L record = blockIdx.x; record < n; record += gridDim.x, turn ^= 1) {
        const real* set = shared + turn * S_SET;
        fetch(record + gridDim.x, shared + (turn ^ 1) * S_SET);
        copies_wait();
        __syncthreads();
        if (busy) accumulate(tile, set, set + S_IMAGE, ky, c, group, bias_part && at == 0, (real)weights[record]);
        __syncthreads();
    }
    if (!busy) return;
    UNROLL for (int o = 0; o < GO; o++) {
        UNROLL for (int kx = 0; kx < KW; kx++)
            UNROLL for (int i = 0; i < GC; i++)
                part[(L)blockIdx.x * (O * K) + (((group + o * G_OUTPUTS) * KH + ky) * KW + kx) * C + c * GC + i] = tile.g[o][i][kx];
        if (bias_part && at == 0) bias_part[(L)blockIdx.x * O + group + o * G_OUTPUTS] = tile.b[o];
    }
}

#endif
