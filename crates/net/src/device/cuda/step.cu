// Random draws and a step of training. Read behind kernels.cu.

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
// Two normals for noise that protects, as `Generator::noise`: all 64 bits in the radius.
static __device__ __forceinline__ void noises(const u32* words, double* z) {
    double sin, cos;
    u64 first = (u64)words[0] << 32 | words[1], second = (u64)words[2] << 32 | words[3];
    double radius = sqrt(-2.0 * log(((double)first + 1.0) * (1.0 / 18446744073709551616.0)));
    sincospi(2.0 * ((double)(second >> 11) * (1.0 / 9007199254740992.0)), &sin, &cos);
    z[0] = radius * cos, z[1] = radius * sin;
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
// Eight normals for each block of the cipher; parameter i has the i-th. The sum is rounded to multiples of the power of two g.
KERNEL add_noise(real* x, const unsigned char* flags, L n, double s, double g, u64 k0, u64 k1, u64 k2, u64 k3) {
    u32 key[8] = {(u32)k0, (u32)(k0 >> 32), (u32)k1, (u32)(k1 >> 32), (u32)k2, (u32)(k2 >> 32), (u32)k3, (u32)(k3 >> 32)};
    EACH(b, (n + 7) / 8) {
        u32 words[16];
        chacha(key, (u64)b, 0, words);
        for (int pair = 0; pair < 4; pair++) {
            double z[2];
            noises(words + 4 * pair, z);
            for (int h = 0; h < 2; h++) {
                L i = b * 8 + 2 * pair + h;
                if (i < n && flags[i]) x[i] = (real)(rint(((double)x[i] + s * z[h]) / g) * g);
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
