"""Fisher information loss of nearly separable logistic models at 110 digits: separable_golden.json.

Tables whose classes a line tells apart, or nearly, under a penalty so small that predictions are far out: slopes
r = s(z) - y are then tiny, and what a solver leaves of the gradient is large beside them. Everything here is the
definition: Newton with halving at 110 digits, the dense Jacobian of each record, its largest singular value.

    python3 testdata/make_separable_golden.py
"""

import json
import pathlib
import random

import mpmath as mp

mp.mp.dps = 110


def sums(x, y, l2, d, w):
    n, p = len(x), len(x[0])
    loss, g, h = mp.mpf(0), mp.zeros(p, 1), mp.zeros(p, p)
    slopes = []
    for row, label in zip(x, y):
        z = mp.fsum(a * b for a, b in zip(row, w))
        t = -z if label else z
        loss += mp.log1p(mp.exp(t)) if t < 0 else t + mp.log1p(mp.exp(-t))
        low = 1 / (1 + mp.exp(-t))
        r = -low if label else low
        a = low * (1 / (1 + mp.exp(t)))
        slopes.append((r, a))
        for j in range(p):
            g[j] += r * row[j]
            for k in range(p):
                h[j, k] += a * row[j] * row[k]
    for j in range(d):
        loss += n * l2 / 2 * w[j] ** 2
        g[j] += n * l2 * w[j]
        h[j, j] += n * l2
    return loss, g, h, slopes


def minimiser(x, y, l2, d):
    w = mp.zeros(len(x[0]), 1)
    for _ in range(600):
        loss, g, h, _ = sums(x, y, l2, d, w)
        step = mp.lu_solve(h, g)
        decrease = (step.T * g)[0]
        if decrease < mp.mpf(10) ** -80 * (1 + loss):
            return w
        length = mp.mpf(1)
        while sums(x, y, l2, d, w - length * step)[0] > loss - length * decrease / 10000:
            length /= 2
            if length < mp.mpf(10) ** -30:
                return w
        w = w - length * step
    raise ValueError("no convergence")


def leakage(x, y, l2, d):
    """eta of every record at sigma = 1 with the label secret, and the condition number of the Hessian."""
    p = len(x[0])
    w = minimiser(x, y, l2, d)
    _, _, h, slopes = sums(x, y, l2, d, w)
    inverse = h ** -1
    etas = []
    for row, (r, a) in zip(x, slopes):
        inner = mp.matrix(p, d + 1)
        for j in range(p):
            for k in range(d):
                inner[j, k] = a * row[j] * w[k] + (r if j == k else 0)
            inner[j, d] = -row[j]
        jacobian = inverse * inner
        etas.append(mp.sqrt(max(mp.eigsy(jacobian * jacobian.T, eigvals_only=True))))
    values = mp.eigsy(h, eigvals_only=True)
    return w, etas, max(values) / min(values)


def tables():
    # The one that was 1.5e-5 off, with either labelling that its signs suggest.
    x = [[-17.0], [-0.2], [-0.2], [0.5], [0.2]]
    for y in ([0, 0, 0, 1, 1], [0, 1, 0, 1, 1], [0, 0, 1, 1, 0]):
        yield x, y, 1e-10, False
    generator = random.Random(20261115)
    for _ in range(60):
        d = generator.randint(1, 3)
        n = generator.randint(d + 3, 12)
        intercept = generator.random() < 0.5
        direction = [generator.gauss(0, 1) for _ in range(d)]
        x, y = [], []
        for _ in range(n):
            row = [round(generator.gauss(0, 1) * 10 ** generator.choice([0, 0, 0, 1]), 2) for _ in range(d)]
            y.append(int(sum(a * b for a, b in zip(row, direction)) > 0))
            x.append(row + ([1.0] if intercept else []))
        if generator.random() < 0.3:
            y[generator.randrange(n)] ^= 1
        if len(set(y)) == 2 and all(any(row) for row in x):
            yield x, y, 10.0 ** -generator.randint(3, 14), intercept


def main():
    out = []
    for x, y, l2, intercept in tables():
        exact = [[mp.mpf(v) for v in row] for row in x]
        d = len(x[0]) - int(intercept)
        w, etas, condition = leakage(exact, y, mp.mpf(l2), d)
        out.append(
            {
                "x": x,
                "y": y,
                "l2": l2,
                "intercept": intercept,
                "w": [float(v) for v in w],
                "eta": [float(v) for v in etas],
                "condition": float(condition),
            }
        )
    path = pathlib.Path(__file__).with_name("separable_golden.json")
    path.write_text(json.dumps(out, separators=(",", ":")) + "\n")


main()
