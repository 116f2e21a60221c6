// A constant that is added to gradients. Read behind kernels.cu. The formulas are those of `device::perturb` and of `Clip::relative_bend`.

KERNEL relative_slopes(double* relative, double* psi, double* bend, const double* square, const double* along, const double* shift,
                       const double* traces, const double* pulled, const double* units, L n, L kind, double bound,
                       double rounding) {
    EACH(i, n) {
        double gg = square[i], sizes = (gg < 0 ? 0.0 : gg) + shift[0], whole = sizes + 2.0 * along[i];
        double m = sqrt((whole < 0 ? 0.0 : whole) + rounding * sizes);
        if (m == 0) { relative[i] = psi[i] = bend[i] = 0; continue; }
        if (!isfinite(m)) { relative[i] = psi[i] = bend[i] = m - m; continue; }
        // a = s'/s, and its derivative
        double a = 0, a1 = 0;
        if (kind == HARD && m > bound) a = -1.0 / m, a1 = 1.0 / (m * m);
        if (kind == GELU_CLIP) {
            double h = m / bound - 1.0, cdf = normcdf(h), pdf = normal_density(h), g = h * cdf + 1.0;
            double once = pdf == 0 ? cdf : cdf + h * pdf, twice = pdf == 0 ? 0.0 : (2.0 - h * h) * pdf;
            a = -once / bound / g, a1 = a * a - twice / (bound * bound) / g;
        }
        double cube = m * m * m, r = (2.0 * a + m * a * a) / cube;
        double r1 = (2.0 * a1 + a * a + 2.0 * m * a * a1) / cube - 3.0 * r / m;
        double t = traces[i], q = pulled[i], v = t / (m * m) + r * q;
        relative[i] = v < 0 ? 0.0 : v;
        psi[i] = -2.0 * t / (m * m * m * m) + r1 * q / m;
        bend[i] = 2.0 * r * units[i];
    }
}
KERNEL set_places(real* out, const real* x, const u32* index, L n) { EACH(j, n) out[index[j]] = x[j]; }
KERNEL descent(real* out, const real* sum, const real* c, const double* psi, const u32* index, L n, L records, double share) {
    double total = 0;
    for (L i = threadIdx.x; i < records; i += blockDim.x) total += psi[i];
    total = block_sum(total);
    EACH(j, n) {
        double at = c[index[j]];
        out[j] = (real)(2.0 * at + share * (sum[index[j]] + total * at));
    }
}
