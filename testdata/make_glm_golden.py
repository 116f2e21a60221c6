"""Golden values of Fisher information loss, from its definition in high precision.

Writes `glm_golden.json` beside this script. Needs numpy (to draw data, nothing else) and mpmath. Inputs are
64-bit floats, written so that they read back to the same bits; every expected value is computed from those
inputs with 80 digits and rounded once, at the end.

The definition, and nothing but the definition. With z = w.x, the column of ones of an intercept last in x,

    w* = argmin sum_i omega_i loss(w.x_i, y_i) + (n l2 / 2) sum_{j data} w_j^2        n = number of rows
    r = d loss/dz,  a = d2 loss/dz2,  c = d2 loss/dzdy
    H = sum_i omega_i a_i x_i x_i^T + n l2 diag(1 on data columns)
    J_i = -omega_i H^-1 [ a_i x_i w^T + r_i I  on the data columns,  c_i x_i  if the label is secret ]
    eta = sqrt(releases) ||J||_2 / sigma,   dfil = releases ||J||_F^2 / (sigma^2 number of columns of J)

An attribute is the columns of J that belong to it (the label never does), or those columns times an
orthonormal basis of the changes that sum to zero; a set of records is their Jacobians side by side.

    python make_glm_golden.py
"""

import json
import pathlib

import numpy as np
from mpmath import mp, mpf

mp.dps = 80


def derivatives(family, z, y):
    """loss, r, a, c at z, y."""
    if family == "linear":
        return (z - y) ** 2 / 2, z - y, mpf(1), mpf(-1)
    if family == "logistic":
        s = 1 / (1 + mp.exp(-z))
        return mp.log(1 + mp.exp(z)) - y * z, s - y, s * (1 - s), mpf(-1)
    if family == "poisson":
        return mp.exp(z) - y * z, mp.exp(z) - y, mp.exp(z), mpf(-1)
    if family == "gamma":
        return z + y * mp.exp(-z), 1 - y * mp.exp(-z), y * mp.exp(-z), -mp.exp(-z)
    if family.startswith("tweedie("):
        p = mpf(family[8:-1])
        mean, own = mp.exp((2 - p) * z), y * mp.exp((1 - p) * z)
        return mean / (2 - p) + own / (p - 1), mean - own, (2 - p) * mean + (p - 1) * own, -mp.exp((1 - p) * z)
    if family == "squared-hinge":
        high, low = max(1 - z, mpf(0)), max(1 + z, mpf(0))
        curvature = y * (1 if z < 1 else 0) + (1 - y) * (1 if z > -1 else 0)
        return (y * high ** 2 + (1 - y) * low ** 2) / 2, (1 - y) * low - y * high, curvature, -high - low
    if family.startswith("huber("):
        delta, r = mpf(family[6:-1]), z - y
        if abs(r) < delta:
            return r ** 2 / 2, r, mpf(1), mpf(-1)
        return delta * (abs(r) - delta / 2), delta * mp.sign(r), mpf(0), mpf(0)
    raise ValueError(family)


class Model:
    def __init__(self, problem):
        self.family, self.l2 = problem["family"], mpf(problem["l2"])
        self.intercept = problem["intercept"]
        ones = [1.0] if self.intercept else []
        self.x = [mp.matrix([mpf(v) for v in row + ones]) for row in problem["x"]]
        self.y = [mpf(v) for v in problem["y"]]
        self.n, self.d = len(self.y), len(problem["x"][0])
        self.p = self.d + len(ones)
        self.omega = [mpf(v) for v in problem["weight"] or [1.0] * self.n]
        self.w = self.minimiser()
        self.hessian = self.state(self.w)[2]
        self.inverse = self.hessian ** -1

    def state(self, w):
        """Objective, gradient, Hessian."""
        strength = self.n * self.l2
        objective, gradient, hessian = mpf(0), mp.zeros(self.p, 1), mp.zeros(self.p)
        for x, y, omega in zip(self.x, self.y, self.omega):
            loss, r, a, _ = derivatives(self.family, (w.T * x)[0], y)
            objective += omega * loss
            gradient += omega * r * x
            hessian += omega * a * (x * x.T)
        for j in range(self.d):
            objective += strength / 2 * w[j] ** 2
            gradient[j] += strength * w[j]
            hessian[j, j] += strength
        return objective, gradient, hessian

    def minimiser(self):
        """Newton's method, the step halved while the objective rises, until it no longer moves 60 digits."""
        w = mp.zeros(self.p, 1)
        for _ in range(200):
            objective, gradient, hessian = self.state(w)
            step = mp.lu_solve(hessian, gradient)
            length = mpf(1)
            while self.state(w - length * step)[0] > objective and length > mpf(2) ** -60:
                length /= 2
            w -= length * step
            size = max(abs(v) for v in w) or mpf(1)
            if max(abs(v) for v in step) < mpf(10) ** -60 * size:
                return w
        raise RuntimeError("no convergence")

    def terms(self, i):
        return derivatives(self.family, (self.w.T * self.x[i])[0], self.y[i])

    def jacobian(self, i, label):
        """p x (d + 1), or p x d where the label is public."""
        _, r, a, c = self.terms(i)
        inner = mp.zeros(self.p, self.d + (1 if label else 0))
        for row in range(self.p):
            for col in range(self.d):
                inner[row, col] = a * self.x[i][row] * self.w[col] + (r if row == col else 0)
            if label:
                inner[row, self.d] = c * self.x[i][row]
        return -self.omega[i] * (self.inverse * inner)

    def condition(self):
        """Condition number of H, and of H with its rows and columns scaled to a unit diagonal."""
        def of(h):
            values = mp.eigsy(h, eigvals_only=True)
            return max(values) / min(values)
        scaled = mp.zeros(self.p)
        for i in range(self.p):
            for j in range(self.p):
                scaled[i, j] = self.hessian[i, j] / mp.sqrt(self.hessian[i, i] * self.hessian[j, j])
        return of(self.hessian), of(scaled)


def columns(matrix, picked):
    out = mp.zeros(matrix.rows, len(picked))
    for k, j in enumerate(picked):
        for i in range(matrix.rows):
            out[i, k] = matrix[i, j]
    return out


def beside(matrices):
    """[A, B, ...]"""
    out = mp.zeros(matrices[0].rows, sum(m.cols for m in matrices))
    at = 0
    for m in matrices:
        for k in range(m.cols):
            for i in range(m.rows):
                out[i, at] = m[i, k]
            at += 1
    return out


def spectral_norm(j):
    """The square root of the largest eigenvalue of J J^T or J^T J, whichever is smaller."""
    product = j * j.T if j.rows <= j.cols else j.T * j
    return mp.sqrt(max(max(mp.eigsy(product, eigvals_only=True)), mpf(0)))


def sum_to_zero(m):
    """Helmert's orthonormal basis of the vectors of length m that sum to zero, m x (m - 1)."""
    u = mp.zeros(m, m - 1)
    for k in range(1, m):
        norm = mp.sqrt(mpf(k * (k + 1)))
        for i in range(k):
            u[i, k - 1] = 1 / norm
        u[k, k - 1] = -k / norm
    return u


def expected(problem):
    model = Model(problem)
    gain = mp.sqrt(mpf(problem["releases"])) / mpf(problem["sigma"])
    n, d = model.n, model.d
    full, half = range(n), range(n // 2)
    out = {"w": list(model.w)}
    out["condition"], out["scaled_condition"] = model.condition()
    out["loss"] = [model.terms(i)[0] for i in full]
    out["gradient_norm"] = [abs(model.terms(i)[1]) * mp.norm(model.x[i]) for i in full]
    for name, label in [("secret", True), ("public", False)]:
        js = [model.jacobian(i, label) for i in full]
        out[f"eta_{name}"] = [gain * spectral_norm(j) for j in js]
        out[f"dfil_{name}"] = [gain ** 2 * sum(v ** 2 for v in j) / j.cols for j in js]
        out[f"dataset_eta_{name}"] = gain * spectral_norm(beside(js))
        out[f"group_eta_{name}"] = gain * spectral_norm(beside([js[i] for i in half]))
    attributes = [[columns(j, [k]) for j in js] for k in range(d)]
    if problem["block"]:
        low, high = problem["block"]
        block = [columns(j, range(low, high)) for j in js]
        attributes.append(block)
        attributes.append([b * sum_to_zero(high - low) for b in block])
    out["attribute_eta"] = [[gain * spectral_norm(of[i]) for of in attributes] for i in full]
    out["attribute_eta_over_all"] = [gain * spectral_norm(beside(of)) for of in attributes]
    return out


def rounded(value):
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(value)


def problem(name, family, x, y, *, intercept=True, l2=0.0, weight=(), block=None, sigma=1.0, releases=1):
    return {
        "name": name, "family": family, "intercept": intercept, "l2": l2,
        "sigma": sigma, "releases": releases,
        "x": np.asarray(x, dtype=float).tolist(), "y": np.asarray(y, dtype=float).tolist(),
        "weight": np.asarray(weight, dtype=float).tolist(), "block": block,
    }


def target(rng, family, x):
    z = x @ np.linspace(0.9, -0.6, x.shape[1]) + 0.3
    if family == "linear":
        return np.round(z + 0.5 * rng.standard_normal(len(z)), 3)
    if family.startswith("huber("):
        return np.round(z + 0.5 * rng.standard_t(2, len(z)), 3)
    if family == "gamma":
        return np.round(np.exp(z) * rng.gamma(2.0, 0.5, len(z)) + 0.01, 3)
    if family.startswith("tweedie("):
        return np.round(np.exp(z) * np.maximum(rng.gamma(2.0, 0.5, len(z)) - 0.4, 0), 3)
    if family in ("logistic", "squared-hinge"):
        return (z + 1.2 * rng.logistic(size=len(z)) > 0.2).astype(float)
    return rng.poisson(np.exp(np.clip(z, -2, 2)))


def drawn(seed, family, n, d, decimals=3):
    rng = np.random.default_rng(seed)
    x = np.round(rng.standard_normal((n, d)), decimals)
    return rng, x, target(rng, family, x)


def problems():
    rng, x, y = drawn(1, "linear", 12, 3)
    yield problem("linear", "linear", x, y, block=[1, 3], sigma=0.7)

    rng, x, y = drawn(2, "linear", 15, 4)
    weight = np.round(rng.uniform(0.2, 3.0, 15), 2)
    weight[4] = 0.0
    yield problem("linear, weighted, ridge", "linear", x, y, intercept=False, l2=0.1, weight=weight,
                  block=[0, 3])

    rng, x, y = drawn(3, "logistic", 20, 4)
    yield problem("logistic", "logistic", x, y, l2=0.01, block=[0, 2], sigma=0.05, releases=3)

    rng, x, y = drawn(4, "logistic", 25, 3)
    weight = np.round(rng.uniform(0.2, 3.0, 25), 2)
    yield problem("logistic, weighted, no penalty", "logistic", x, y, intercept=False, weight=weight,
                  block=[1, 3])

    rng, x, y = drawn(5, "poisson", 16, 3)
    yield problem("poisson, no penalty", "poisson", x, y, block=[0, 2], sigma=2.0)

    rng, x, y = drawn(6, "poisson", 18, 5)
    weight = np.round(rng.uniform(0.2, 3.0, 18), 2)
    yield problem("poisson, weighted", "poisson", x, y, intercept=False, l2=0.05, weight=weight, block=[2, 5])

    # Nearly collinear columns: cond(H) is about one over the square of what tells them apart.
    rng, x, _ = drawn(7, "linear", 14, 3)
    x[:, 2] = np.round(x[:, 1] + 1.6e-3 * rng.standard_normal(14), 7)
    yield problem("linear, condition 1e6", "linear", x, target(rng, "linear", x), block=[1, 3])

    rng, x, _ = drawn(8, "logistic", 20, 3)
    x[:, 0] = np.round(x[:, 1] + 4.5e-5 * rng.standard_normal(20), 9)
    y = target(rng, "logistic", x)
    yield problem("logistic, condition 1e9", "logistic", x, y, l2=1e-10, block=[0, 2])

    rng, x, _ = drawn(17, "poisson", 16, 2)
    x[:, 1] = np.round(x[:, 0] + 6e-5 * rng.standard_normal(16), 9)
    yield problem("poisson, condition 1e9", "poisson", x, target(rng, "poisson", x), l2=1e-12, block=[0, 2])

    # One column and no intercept: eta = omega |a x w + r| / H with a public label, which nearly cancels in
    # record 3.
    rng, x, y = drawn(9, "linear", 10, 1)
    for _ in range(200):
        y[3] = 2.0 * x[3, 0] * (x[:, 0] @ y) / (x[:, 0] @ x[:, 0])
    y[3] = np.round(y[3], 4) * 1.001
    yield problem("one column", "linear", x, y, intercept=False)

    rng, x, y = drawn(10, "logistic", 12, 1)
    yield problem("one column and an intercept", "logistic", x, y, l2=0.02)

    # A constant column beside the intercept, a column of zeros, a record of zeros: only the penalty helps.
    rng, x, y = drawn(11, "linear", 12, 4)
    x[:, 1], x[:, 2], x[5] = 3.0, 0.0, 0.0
    yield problem("constant columns", "linear", x, y, l2=0.05, block=[0, 3])

    rng, x, y = drawn(12, "logistic", 14, 3)
    x[5:9], y[5:9], x[11], y[11] = x[0], y[0], x[2], 1.0 - y[2]
    yield problem("duplicate rows", "logistic", x, y, l2=0.03, block=[0, 3])

    rng, x, y = drawn(13, "logistic", 4, 6)
    yield problem("fewer rows than columns", "logistic", x, y, l2=0.1, block=[1, 5])

    rng, x, y = drawn(18, "linear", 3, 2)
    yield problem("as many rows as coefficients", "linear", x, y, block=[0, 2])

    rng, x, _ = drawn(14, "poisson", 20, 2)
    x = np.hstack([x, np.eye(4)[np.arange(20) * 7 % 4]])
    yield problem("a category, all levels", "poisson", x, target(rng, "poisson", x), l2=0.02, block=[2, 6])

    rng, x, _ = drawn(19, "linear", 20, 2)
    x = np.hstack([x, np.eye(4)[np.arange(20) * 7 % 4][:, :3]])
    yield problem("a category, last level dropped", "linear", x, target(rng, "linear", x), block=[2, 5])

    rng, x, _ = drawn(15, "logistic", 12, 2)
    y = (x[:, 0] - x[:, 1] > 0.1).astype(float)
    yield problem("separable classes", "logistic", x, y, l2=1e-4, block=[0, 2])

    for family, seed in [("linear", 16), ("logistic", 20)]:
        rng, x, y = drawn(seed, family, 18, 3)
        x[:, 0] = np.round(x[:, 0] * 1e6)
        x[:, 2] = np.round(x[:, 2] * 1e-6, 9)
        yield problem(f"{family}, units from 1e-6 to 1e6", family, x, y, block=[0, 3])

    # The step of Newton's method is halved from where few records are within a threshold of 1.5, too: it starts at w = 0.
    for seed, family in [(21, "gamma"), (22, "tweedie(1.5)"), (23, "squared-hinge"), (24, "huber(1.5)")]:
        rng, x, y = drawn(seed, family, 16, 3)
        yield problem(family, family, x, y, l2=0.02, block=[1, 3], sigma=0.6)
        rng, x, y = drawn(seed + 10, family, 18, 3)
        weight = np.round(rng.uniform(0.2, 3.0, 18), 2)
        yield problem(f"{family}, weighted, no intercept", family, x, y, intercept=False, l2=0.1, weight=weight, block=[0, 2])


def main():
    out = []
    for p in problems():
        values = rounded(expected(p))
        print(f"{p['name']:35} n = {len(p['y']):2}, d = {len(p['x'][0])}, "
              f"cond(H) = {values['condition']:.2e}, "
              f"scaled {values['scaled_condition']:.2e}, |w| = {np.linalg.norm(values['w']):.3g}, "
              f"eta {min(values['eta_public']):.2e} to {max(values['eta_public']):.2e}")
        out.append(p | {"expected": values})
    path = pathlib.Path(__file__).with_name("glm_golden.json")
    path.write_text("[\n" + ",\n".join(json.dumps(p, allow_nan=False) for p in out) + "\n]\n")


if __name__ == "__main__":
    main()
