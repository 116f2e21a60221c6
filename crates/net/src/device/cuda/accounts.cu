// Accounts of records. Read behind kernels.cu.

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

