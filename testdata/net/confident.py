"""Records of loss 1 to 1e-30 at 200 digits: confident.json, for crates/net (loss/mod.rs, tests/confident.rs, clip.rs).

Nothing here is one of our formulas: gradients are written out parameter by parameter, clipped, and differentiated by
central differences of 1e-60 at 200 digits. Weights and inputs are multiples of 1/64, so that f32 and f64 hold them
exactly.

Usage: python confident.py   (needs mpmath)
"""
import json

from mpmath import eigsy, exp, log, matrix, mp, mpf, ncdf, sqrt, tanh

mp.dps = 200
H = mpf(10) ** -60
D, W, K = 3, 3, 3


def wave(n, salt):
    """Multiples of 1/64 between -1 and 1."""
    return [mpf(((37 * i + 53 * salt + 11 * i * i) % 129) - 64) / 64 for i in range(n)]


def softmax(z):
    top = max(z)
    e = [exp(v - top) for v in z]
    return [v / sum(e) for v in e]


def loss(kind, z, y):
    if kind == "softmax-cross-entropy":
        top = max(z)
        lse = top + log(sum(exp(v - top) for v in z))
        return sum(b * (lse - a) for a, b in zip(z, y))
    if kind == "binary-cross-entropy":
        return sum(log(1 + exp(a)) - a * b for a, b in zip(z, y))
    return sum((a - b) ** 2 for a, b in zip(z, y)) / 2


def delta(kind, z, y):
    if kind == "softmax-cross-entropy":
        return [sum(y) * p - b for p, b in zip(softmax(z), y)]
    if kind == "binary-cross-entropy":
        return [1 / (1 + exp(-a)) - b for a, b in zip(z, y)]
    return [a - b for a, b in zip(z, y)]


def gradient(net, x, y):
    """Output and the gradient over W1, b1, W2, b2 of a perceptron with one hidden layer of tanh."""
    w1, b1, w2, b2 = net["w1"], net["b1"], net["w2"], net["b2"]
    h = [tanh(sum(w1[i * D + j] * x[j] for j in range(D)) + b1[i]) for i in range(W)]
    z = [sum(w2[i * W + j] * h[j] for j in range(W)) + b2[i] for i in range(K)]
    d2 = delta(net["loss"], z, y)
    d1 = [(1 - h[j] ** 2) * sum(d2[i] * w2[i * W + j] for i in range(K)) for j in range(W)]
    g = [d * a for d in d1 for a in x] + d1 + [d * a for d in d2 for a in h] + d2
    return z, g


def factor(clip, n):
    kind, c = clip
    if kind == "none":
        return mpf(1)
    if kind == "hard":
        return min(mpf(1), c / n)
    u = n / c - 1
    return 1 / (u * ncdf(u) + 1)


def norm(v):
    return sqrt(sum(a * a for a in v))


def released(net, clip, x, y):
    g = gradient(net, x, y)[1]
    s = factor(clip, norm(g))
    return [s * v for v in g]


def jacobian(net, clip, x, y):
    """Columns by element of x, then of y."""
    columns = []
    for i in range(D + K):
        both = []
        for sign in (1, -1):
            xx, yy = list(x), list(y)
            if i < D:
                xx[i] += sign * H
            else:
                yy[i - D] += sign * H
            both.append(released(net, clip, xx, yy))
        columns.append([(a - b) / (2 * H) for a, b in zip(*both)])
    return columns


def inner(a, b):
    return sum(p * q for p, q in zip(a, b))


def spectral(columns):
    n = len(columns)
    m = matrix(n, n)
    for i in range(n):
        for j in range(n):
            m[i, j] = inner(columns[i], columns[j])
    return sqrt(max(eigsy(m, eigvals_only=True)))


def case(kind, target):
    """A network and a record whose loss is near the target."""
    net = {"loss": kind, "w1": wave(W * D, 1), "b1": wave(W, 2), "w2": wave(K * W, 3), "b2": wave(K, 4)}
    x = wave(D, 5)
    y = [mpf(0), mpf(1), mpf(0)]
    if kind == "squared-error":
        # outputs themselves must be small, or f32 could not hold a residual of 1e-15
        scale = mpf(2) ** int(round(float(log(sqrt(mpf(target)), 2))))
        net["w2"] = [v * scale for v in net["w2"]]
        net["b2"] = [v * scale for v in net["b2"]]
        y = [mpf(0)] * K
    else:
        margin = mpf(int(round(float(-64 * log(exp(mpf(target)) - 1))))) / 64
        net["b2"] = [v + margin * (b if kind[0] == "s" else 2 * b - 1) for v, b in zip(net["b2"], y)]
    return net, x, y


networks, losses = [], []
for kind in ["softmax-cross-entropy", "binary-cross-entropy", "squared-error"]:
    for target in ["1", "1e-2", "1e-5", "1e-8", "1e-12", "1e-16", "1e-20", "1e-25", "1e-30"]:
        net, x, y = case(kind, target)
        z, g = gradient(net, x, y)
        n = norm(g)
        z_dot, y_dot = wave(K, 6), wave(K, 7)
        # the outputs as f64 holds them, so that the loss alone is tested
        zf = [mpf(float(v)) for v in z]
        row = {"loss": kind, "z": [float(v) for v in zf], "y": [float(v) for v in y]}
        row["value"] = float(loss(kind, zf, y))
        row["delta"] = [float(v) for v in delta(kind, zf, y)]
        row["z_dot"], row["y_dot"] = [float(v) for v in z_dot], [float(v) for v in y_dot]
        for name, zd, yd in [("by_output", z_dot, [0] * K), ("by_label", [0] * K, y_dot)]:
            up = delta(kind, [a + H * b for a, b in zip(zf, zd)], [a + H * b for a, b in zip(y, yd)])
            down = delta(kind, [a - H * b for a, b in zip(zf, zd)], [a - H * b for a, b in zip(y, yd)])
            row[name] = [float((a - b) / (2 * H)) for a, b in zip(up, down)]
        losses.append(row)
        clips = [("none", mpf(1))]
        # below the bound, near the smooth clip's peak, beyond, far beyond
        for share in [10, "0.7", "0.25", "0.1"]:
            c = mpf(float(n * mpf(share)))
            clips += [("hard", c), ("gelu", c)]
        for clip in clips:
            j = jacobian(net, clip, x, y)
            r = released(net, clip, x, y)
            pull = [2 * inner(col, r) for col in j]
            networks.append(
                {
                    "net": {k: ([float(v) for v in net[k]] if k != "loss" else net[k]) for k in net},
                    "x": [float(v) for v in x],
                    "y": [float(v) for v in y],
                    "clip": clip[0],
                    "bound": float(clip[1]),
                    "value": float(loss(kind, z, y)),
                    "norm": float(n),
                    "released": float(norm(r)),
                    "trace": float(sum(inner(c, c) for c in j[:D])),
                    "trace_with_label": float(sum(inner(c, c) for c in j)),
                    "eta": float(spectral(j[:D])),
                    "eta_with_label": float(spectral(j)),
                    "plis": float(norm(pull[:D])),
                    "plis_with_label": float(norm(pull)),
                }
            )

clips = []
# far out the slope is 1e-300, and differences of it smaller still
mp.dps = 1000
for share in ["0.001", "0.5", "1", "1.3", "2", "3", "5", "10", "20", "38"]:
    r = mpf(float(share))
    f = lambda n: factor(("gelu", mpf(2)), n)
    n = 2 * r
    slope = ((n + H) * f(n + H) - (n - H) * f(n - H)) / (2 * H)
    s1 = (f(n + H) - f(n - H)) / (2 * H)
    clips.append({"norm": float(n), "factor": float(f(n)), "derivative": float(s1), "slope": float(slope)})

with open("confident.json", "w") as out:
    json.dump({"losses": losses, "networks": networks, "clips": clips}, out)
