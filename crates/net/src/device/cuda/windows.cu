// Windows over images: columns, pools, activations with the pool behind them. Read behind kernels.cu.

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

// Four channels side by side.
struct alignas(16) Four {
    real v[4];
    __device__ __forceinline__ void operator+=(const Four& o) {
        for (int i = 0; i < 4; i++) v[i] += o.v[i];
    }
};
static __device__ __forceinline__ Four operator*(real s, Four x) { for (int i = 0; i < 4; i++) x.v[i] *= s; return x; }

template <class V> static __device__ __forceinline__ void columns(V* out, const V* x, L n, WINDOW) {
    THE_WINDOW;
    EACH(i, n) {
        u32 col, c, kx, ox, oy, row = byK.split((u32)i, col), tap = byC.split(col, c), ky = byKw.split(tap, kx);
        u32 up = byOw.split(row, ox), image = byOh.split(up, oy);
        int y = (int)(oy * (u32)sh + ky * (u32)dh) - (int)ph, xx = (int)(ox * (u32)sw + kx * (u32)dw) - (int)pw;
        bool in = y >= 0 && xx >= 0 && y < (int)H && xx < (int)W;
        out[i] = in ? x[((image * (u32)H + (u32)y) * (u32)W + (u32)xx) * (u32)C + c] : V{};
    }
}
template <class V> static __device__ __forceinline__ void images(V* out, const V* cols, L n, WINDOW) {
    THE_WINDOW;
    EACH(i, n) {
        u32 c, x, y, at = byC.split((u32)i, c), up = byW.split(at, x), image = byH.split(up, y);
        V sum = {};
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
KERNEL im2col(real* out, const real* x, L n, WINDOW) { columns<real>(out, x, n, SAME_WINDOW); }
KERNEL col2im(real* out, const real* cols, L n, WINDOW) { images<real>(out, cols, n, SAME_WINDOW); }
KERNEL average_pool(real* out, const real* x, L n, WINDOW) { pool<real>(out, x, n, SAME_WINDOW); }
KERNEL average_unpool(real* out, const real* pooled, L n, WINDOW) { unpool<real>(out, pooled, n, SAME_WINDOW); }
// Where channels are a multiple of four; C and n count groups of them.
KERNEL im2col4(Four* out, const Four* x, L n, WINDOW) { columns<Four>(out, x, n, SAME_WINDOW); }
KERNEL col2im4(Four* out, const Four* cols, L n, WINDOW) { images<Four>(out, cols, n, SAME_WINDOW); }
KERNEL average_pool4(Four* out, const Four* x, L n, WINDOW) { pool<Four>(out, x, n, SAME_WINDOW); }
KERNEL average_unpool4(Four* out, const Four* pooled, L n, WINDOW) { unpool<Four>(out, pooled, n, SAME_WINDOW); }
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

