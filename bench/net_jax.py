"""The peer of net.rs: the CNN of Edmunds table B.7 in JAX (f32), clipped gradients and dFIL probes as published
(per-sample gradients and Jacobian-vector products materialised by vmap). `leakscope-bench net PYTHON` runs it.
Usage: python net_jax.py [batch]   (needs jax and numpy). Prints, tab-separated: what, records a second by the clock
(the best of fifteen runs), records per second of processor time.
"""
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 600
shapes = [(8, 8, 1, 16), (16,), (4, 4, 16, 32), (32,), (512, 32), (32,), (32, 10), (10,)]
keys = jax.random.split(jax.random.PRNGKey(0), len(shapes))
theta = [jax.random.normal(k, s) * 0.1 for k, s in zip(keys, shapes)]


def conv(x, w, stride, padding):
    return jax.lax.conv_general_dilated(
        x[None], w, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )[0]


def pool(x):
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2, 1), (1, 1, 1), "VALID") / 4


def loss(theta, x, y):
    w1, b1, w2, b2, w3, b3, w4, b4 = theta
    h = pool(jnp.tanh(conv(x, w1, 2, 2) + b1))
    h = pool(jnp.tanh(conv(h, w2, 2, 0) + b2))
    z = jnp.tanh(h.reshape(-1) @ w3 + b3) @ w4 + b4
    return -jax.nn.log_softmax(z)[y]


def clipped(theta, x, y, c=8.0):
    g = jax.grad(loss)(theta, x, y)
    n = jnp.sqrt(sum(jnp.sum(v**2) for v in g))
    s = 1.0 / (jax.nn.gelu(n / c - 1.0, approximate=False) + 1.0)
    return [s * v for v in g]


def probe(theta, x, y, u):
    _, t = jax.jvp(lambda x: clipped(theta, x, y), (x,), (u,))
    return sum(jnp.sum(v**2) for v in t)


gradients = jax.jit(lambda x, y: [v.sum(0) for v in jax.vmap(clipped, (None, 0, 0))(theta, x, y)])
probes = jax.jit(lambda x, y, u: jax.vmap(probe, (None, 0, 0, 0))(theta, x, y, u))
x = jnp.array(np.random.rand(batch, 28, 28, 1), jnp.float32)
y = jnp.arange(batch) % 10
u = jnp.sign(jnp.array(np.random.randn(batch, 28, 28, 1), jnp.float32))
for name, f in [("clipped gradients", lambda: gradients(x, y)), ("dFIL probe", lambda: probes(x, y, u))]:
    jax.block_until_ready(f())
    best, before, runs = float("inf"), time.process_time(), 15
    for _ in range(runs):
        t = time.perf_counter()
        jax.block_until_ready(f())
        best = min(best, time.perf_counter() - t)
    core = (time.process_time() - before) / runs
    print(f"{name}\t{batch / best}\t{batch / core}")
