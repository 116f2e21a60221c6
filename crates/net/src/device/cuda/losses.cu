// Losses and their tangents. Read behind kernels.cu.

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

