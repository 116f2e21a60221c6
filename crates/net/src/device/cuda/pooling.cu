// An activation and the average pool behind it at once, a record for each block, compiled for each shape behind `head.cu`: KIND is
// the activation; H, W, C, KH, KW, SH, SW, PH, PW, OH, OW the window. Nothing is written in between.

#define UNROLL _Pragma("unroll")

constexpr int N = C % 4 ? 1 : 4, G = C / N, IMAGE = H * W * G, POOLED = OH * OW * G;
constexpr int THREADS = POOL_THREADS, IMAGES = (IMAGE + THREADS - 1) / THREADS, POOLS = (POOLED + THREADS - 1) / THREADS;
struct alignas(N == 4 ? 16 : sizeof(real)) Lanes { real v[N]; };

// φ(z), or φ'(z) x where there is an x, pooled.
KERNEL __launch_bounds__(THREADS) activate_pool(double p, Lanes* out, const Lanes* x, const Lanes* z, L repeat) {
    __shared__ Lanes held[IMAGE];
    L record = blockIdx.x;
    z += record % repeat * IMAGE;
    Lanes v[IMAGES], moved[IMAGES];
    UNROLL for (int k = 0; k < IMAGES; k++) {
        int i = threadIdx.x + k * THREADS;
        if (i < IMAGE) v[k] = z[i];
        if (x && i < IMAGE) moved[k] = x[record * IMAGE + i];
    }
    UNROLL for (int k = 0; k < IMAGES; k++) {
        int i = threadIdx.x + k * THREADS;
        UNROLL for (int e = 0; e < N; e++) {
            real y, d, dd;
            activation(KIND, p, v[k].v[e], y, d, dd);
            v[k].v[e] = x ? d * moved[k].v[e] : y;
        }
        if (i < IMAGE) held[i] = v[k];
    }
    __syncthreads();
    UNROLL for (int k = 0; k < POOLS; k++) {
        int i = threadIdx.x + k * THREADS, c = i % G, ox = i / G % OW, oy = i / (G * OW);
        if (i >= POOLED) break;
        Lanes sum = {};
        UNROLL for (int ky = 0; ky < KH; ky++)
            UNROLL for (int kx = 0; kx < KW; kx++) {
                int y = oy * SH + ky - PH, at = ox * SW + kx - PW;
                if (y < 0 || at < 0 || y >= H || at >= W) continue;
                UNROLL for (int e = 0; e < N; e++) sum.v[e] += held[(y * W + at) * G + c].v[e];
            }
        UNROLL for (int e = 0; e < N; e++) sum.v[e] *= (real)(1.0 / (KH * KW));
        out[record * POOLED + i] = sum;
    }
}

// φ'(z) Pᵀδ̇, and + φ''(z) (Pᵀδ) ż where there is a ż; P pools.
KERNEL __launch_bounds__(THREADS) activate_unpool(double p, Lanes* out, const Lanes* delta_dot, const Lanes* z, const Lanes* delta,
                                                  const Lanes* z_dot, L repeat) {
    __shared__ Lanes first[POOLED], second[POOLED];
    L record = blockIdx.x, own = record % repeat;
    Lanes v[IMAGES], moved[IMAGES];
    UNROLL for (int k = 0; k < IMAGES; k++) {
        int i = threadIdx.x + k * THREADS;
        if (i < IMAGE) v[k] = z[own * IMAGE + i];
        if (z_dot && i < IMAGE) moved[k] = z_dot[record * IMAGE + i];
    }
    UNROLL for (int k = 0; k < POOLS; k++) {
        int i = threadIdx.x + k * THREADS;
        if (i < POOLED) first[i] = delta_dot[record * POOLED + i];
        if (z_dot && i < POOLED) second[i] = delta[own * POOLED + i];
    }
    __syncthreads();
    UNROLL for (int k = 0; k < IMAGES; k++) {
        int i = threadIdx.x + k * THREADS, c = i % G, at = i / G % W, y = i / (G * W);
        if (i >= IMAGE) break;
        Lanes a = {}, b = {};
        UNROLL for (int ky = 0; ky < KH; ky++)
            UNROLL for (int kx = 0; kx < KW; kx++) {
                int up = y + PH - ky, across = at + PW - kx, oy = up / SH, ox = across / SW;
                if (up < 0 || across < 0 || up % SH || across % SW || oy >= OH || ox >= OW) continue;
                int from = (oy * OW + ox) * G + c;
                UNROLL for (int e = 0; e < N; e++) a.v[e] += first[from].v[e];
                if (z_dot) {
                    UNROLL for (int e = 0; e < N; e++) b.v[e] += second[from].v[e];
                }
            }
        const real share = (real)(1.0 / (KH * KW));
        UNROLL for (int e = 0; e < N; e++) {
            real value, d, dd;
            activation(KIND, p, v[k].v[e], value, d, dd);
            a.v[e] = d * (share * a.v[e]);
            if (z_dot) a.v[e] += dd * (share * b.v[e]) * moved[k].v[e];
        }
        out[record * IMAGE + i] = a;
    }
}
