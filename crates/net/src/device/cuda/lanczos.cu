// Lanczos' iteration. Read behind kernels.cu.

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

