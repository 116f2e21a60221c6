"""Whole networks in JAX at double precision: golden.json, for crates/net/tests/golden.rs.

Weights, inputs and probes are a formula of their index, the same here and in the test, so that the file holds results
alone. Every number comes from automatic differentiation of the materialised, clipped gradient, none from our formulas.

Usage: python golden.py   (needs jax[cpu] and numpy)
"""
import json

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def wave(n, salt, scale):
    i = np.arange(n)
    return scale * np.sin(0.7 + 1.3 * salt + 0.37 * i + 0.011 * np.mod(i * i, 1009))


def conv(x, w, stride, padding):
    # w is (out, kh, kw, in); x is (h, w, c)
    pad = [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(
        x[None], jnp.transpose(w, (1, 2, 3, 0)), (stride, stride), pad, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )[0]


def pool(x, size, stride, average):
    init, op = (0.0, jax.lax.add) if average else (-jnp.inf, jax.lax.max)
    out = jax.lax.reduce_window(x, init, op, (size, size, 1), (stride, stride, 1), "VALID")
    return out / size**2 if average else out


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def split(theta, shapes):
    out, at = [], 0
    for s in shapes:
        n = int(np.prod(s))
        out.append(theta[at : at + n].reshape(s))
        at += n
    assert at == len(theta), (at, len(theta))
    return out


# Edmunds table B.7
CNN = [(16, 8, 8, 1), (16,), (32, 4, 4, 16), (32,), (32, 512), (32,), (10, 32), (10,)]


def cnn(theta, x):
    w1, b1, w2, b2, w3, b3, w4, b4 = split(theta, CNN)
    h = pool(jnp.tanh(conv(x, w1, 2, 2) + b1), 2, 1, True)
    h = pool(jnp.tanh(conv(h, w2, 2, 0) + b2), 2, 1, True)
    h = jnp.tanh(w3 @ h.reshape(-1) + b3)
    return w4 @ h + b4


# every other kind of layer
MIX = [(6, 3, 3, 2), (6,), (6,), (6,), (6, 3, 3, 6), (6,), (6,), (6,), (8, 24), (8,), (4, 8), (4,)]
MEAN, VARIANCE = wave(6, 50, 0.3), 1.0 + wave(6, 51, 0.5)


def mix(theta, x):
    w1, b1, g1, e1, w2, b2, g2, e2, w3, b3, w4, b4 = split(theta, MIX)
    h = conv(x, w1, 1, 1) + b1
    h = gelu(g1 * (h - MEAN) / jnp.sqrt(VARIANCE + 1e-5) + e1)
    r = conv(h, w2, 1, 1) + b2
    m = r.mean(-1, keepdims=True)
    r = g2 * (r - m) / jnp.sqrt(((r - m) ** 2).mean(-1, keepdims=True) + 1e-5) + e2
    h = h + jax.nn.sigmoid(r)
    h = pool(h, 2, 2, False)
    h = jax.nn.relu(w3 @ h.reshape(-1) + b3)
    return w4 @ h + b4


def audit(name, net, shapes, shape, outputs, scale, clip, sigma, loss):
    p = sum(int(np.prod(s)) for s in shapes)
    theta = jnp.array(wave(p, 1, scale))
    d = int(np.prod(shape))
    out = {"name": name, "parameters": p, "sigma": sigma, "clip": clip, "records": []}

    def value(theta, x, y):
        z = net(theta, x.reshape(shape))
        if loss == "softmax":
            return -jnp.sum(y * jax.nn.log_softmax(z))
        return jnp.sum(jax.nn.softplus(z) - y * z)

    gradient = jax.grad(value)

    def released(v):
        g = gradient(theta, v[:d], v[d:])
        return g / (gelu(jnp.linalg.norm(g) / clip - 1.0) + 1.0)

    for record in range(2):
        x, y = wave(d, 10 + record, 1.0), np.eye(outputs)[3 * record % outputs]
        v = jnp.concatenate([jnp.array(x), jnp.array(y)])
        s = sigma * clip
        jac = np.asarray(jax.jacfwd(released)(v)) / s
        jx = jac[:, :d]
        ghat = np.asarray(released(v))
        plis = np.asarray(jax.grad(lambda v: jnp.sum(released(v) ** 2) / s**2)(v))
        u = wave(d, 20 + record, 1.0)
        out["records"].append(
            {
                "loss": float(value(theta, x, y)),
                "gradient_norm": float(jnp.linalg.norm(gradient(theta, x, y))),
                "released_norm": float(np.linalg.norm(ghat)),
                "tangent_square": float(np.sum((jx @ u) ** 2)),
                "trace": float(np.sum(jx**2)),
                "trace_with_label": float(np.sum(jac**2)),
                "eta": float(np.linalg.norm(jx, 2)),
                "eta_with_label": float(np.linalg.norm(jac, 2)),
                "along": float(np.sum((jx.T @ (ghat / np.linalg.norm(ghat))) ** 2)),
                "plis": float(np.linalg.norm(plis[:d])),
                "plis_with_label": float(np.linalg.norm(plis)),
                "plis_first": [float(t) for t in plis[: min(d, 40)]],
            }
        )
    return out


results = [
    audit("cnn-mnist", cnn, CNN, (28, 28, 1), 10, 0.2, 8.0, 0.5, "softmax"),
    audit("mix", mix, MIX, (5, 5, 2), 4, 0.4, 2.0, 1.5, "binary"),
]
with open("golden.json", "w") as f:
    json.dump(results, f, indent=1)
