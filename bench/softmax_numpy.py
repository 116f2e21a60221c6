"""The peer of `leakscope-bench softmax PYTHON`: every record's Jacobian and its singular values, batched in numpy with as many
threads as it takes by itself.

Reads one JSON object from stdin (H⁻¹, the coefficients of classes, their contrasts, records); writes the seconds and every η.
"""
import json
import sys
import time

import numpy as np

BATCH = 50

inputs = json.load(sys.stdin)
p, classes = inputs["width"], inputs["classes"]
k = classes - 1
w = np.array(inputs["w"]).reshape(classes, p)
u = np.array(inputs["contrasts"]).reshape(classes, k)
inverse = np.array(inputs["inverse"]).reshape(k * p, k * p)
x = np.array(inputs["x"]).reshape(-1, p)
y = np.array(inputs["y"], dtype=int)


def etas(x, y):
    z = x @ w.T
    pi = np.exp(z - z.max(axis=1, keepdims=True))
    pi /= pi.sum(axis=1, keepdims=True)
    rho = (pi - np.eye(classes)[y]) @ u
    # S W, reduced by the contrasts: records × k × p
    sw = pi[:, :, None] * (w[None] - (pi @ w)[:, None])
    moved = np.einsum("ca,ncj->naj", u, sw)
    inner = moved[:, :, None, :] * x[:, None, :, None] + rho[:, :, None, None] * np.eye(p)
    jacobians = inverse @ inner.reshape(len(x), k * p, p)
    return np.linalg.svd(jacobians, compute_uv=False)[:, 0]


etas(x[:4], y[:4])
start = time.perf_counter()
result = np.concatenate([etas(x[i : i + BATCH], y[i : i + BATCH]) for i in range(0, len(x), BATCH)])
print(json.dumps({"seconds": time.perf_counter() - start, "eta": result.tolist()}))
