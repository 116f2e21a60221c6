#!/usr/bin/env python3
"""Two small decoders in JAX, double precision, by the text of their papers: GPT-2 (learned positions, layer norm, GELU by
tanh, tied output) and Llama (RMS norm, rotary positions, gated MLP, grouped heads). Writes transformer.json: the network
file, weights, tokens, and per record logits, loss, the norm of its gradient, ‖J‖²_F, ‖J‖₂ and PLIS of every token, J the
derivative of the gradient with respect to the embedded values.

    pip install jax numpy && python testdata/net/transformer.py
"""
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

VOCABULARY, LENGTH, WIDTH, HIDDEN = 11, 6, 8, 12
NO_LABEL = 2**32 - 1


class File:
    """Collects the layers of a network file and draws their weights."""

    def __init__(self, seed):
        self.rng, self.layers, self.weights = np.random.default_rng(seed), [], {}

    def add(self, kind, name=None, inputs=None, **options):
        layer = {"kind": kind, **options}
        if name:
            layer["name"] = name
        if inputs:
            layer["inputs"] = inputs
        self.layers.append(layer)
        return len(self.layers) - 1

    def draw(self, at, name, shape, mean=0.0, scale=None):
        scale = 1 / np.sqrt(shape[-1]) if scale is None else scale
        key = f"layers.{at}.{name}"
        self.weights[key] = jnp.asarray(mean + scale * self.rng.standard_normal(shape))
        return key

    def dense(self, name, inputs, size, bias, read=None):
        at = self.add("dense", name, read, outputs=size, bias=bias)
        weight = self.draw(at, "weight", (size, inputs))
        return weight, self.draw(at, "bias", (size,), scale=0.1) if bias else None

    def norm(self, kind, name, epsilon, read=None):
        at = self.add(kind, name, read, epsilon=epsilon)
        gamma = self.draw(at, "gamma", (WIDTH,), 1.0, 0.2)
        return gamma, self.draw(at, "beta", (WIDTH,), scale=0.1) if kind == "layer-norm" else None


def dense(w, keys, x):
    z = x @ w[keys[0]].T
    return z if keys[1] is None else z + w[keys[1]]


def layer_norm(w, keys, x, epsilon):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return w[keys[0]] * (x - mean) / jnp.sqrt(variance + epsilon) + w[keys[1]]


def rms_norm(w, keys, x, epsilon):
    return w[keys[0]] * x / jnp.sqrt((x * x).mean(-1, keepdims=True) + epsilon)


def gelu_new(x):
    return 0.5 * x * (1 + jnp.tanh(jnp.sqrt(2 / jnp.pi) * (x + 0.044715 * x**3)))


def rotated(x, base):
    """x: (heads, positions, width); value i of the first half with value i of the second."""
    _, t, d = x.shape
    angle = jnp.arange(t)[:, None] * base ** (-2 * jnp.arange(d // 2) / d)[None, :]
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1)


def attention(q, k, v, heads, shared, base=None):
    split = lambda x, n: x.reshape(x.shape[0], n, -1).transpose(1, 0, 2)
    q, k, v = split(q, heads), split(k, shared), split(v, shared)
    if base:
        q, k = rotated(q, base), rotated(k, base)
    k, v = (jnp.repeat(x, heads // shared, 0) for x in (k, v))
    s = q @ k.transpose(0, 2, 1) / jnp.sqrt(q.shape[-1])
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
    o = jax.nn.softmax(s, -1) @ v
    return o.transpose(1, 0, 2).reshape(o.shape[1], -1)


def gpt2(seed, blocks=2, heads=2):
    f = File(seed)
    table = f.draw(f.add("embedding", vocabulary=VOCABULARY, outputs=WIDTH), "weight", (VOCABULARY, WIDTH), scale=0.7)
    places = f.draw(f.add("positions", "x0"), "weight", (LENGTH + 2, WIDTH), scale=0.3)
    keys = []
    for i in range(blocks):
        b = {"norm1": f.norm("layer-norm", f"a{i}", 1e-5)}
        for n in "qkv":
            b[n] = f.dense(f"{n}{i}", WIDTH, WIDTH, True, [f"a{i}"])
        f.add("attention", inputs=[f"q{i}", f"k{i}", f"v{i}"], heads=heads)
        b["o"] = f.dense(f"o{i}", WIDTH, WIDTH, True)
        f.add("add", f"m{i}", [f"x{i}", f"o{i}"])
        b["norm2"] = f.norm("layer-norm", None, 1e-5)
        b["up"] = f.dense(None, WIDTH, HIDDEN, True)
        f.add("gelu-tanh")
        b["down"] = f.dense(f"d{i}", HIDDEN, WIDTH, True)
        f.add("add", f"x{i + 1}", [f"m{i}", f"d{i}"])
        keys.append(b)
    last = f.norm("layer-norm", None, 1e-5)
    f.add("unembed")

    def model(w, tokens, moved):
        x = w[table][tokens] + moved + w[places][: tokens.shape[0]]
        for b in keys:
            a = layer_norm(w, b["norm1"], x, 1e-5)
            x = x + dense(w, b["o"], attention(*(dense(w, b[n], a) for n in "qkv"), heads, heads))
            x = x + dense(w, b["down"], gelu_new(dense(w, b["up"], layer_norm(w, b["norm2"], x, 1e-5))))
        return layer_norm(w, last, x, 1e-5) @ w[table].T

    return f, model


def llama(seed, blocks=2, heads=4, shared=2, base=100.0):
    f = File(seed)
    at = f.add("embedding", "x0", vocabulary=VOCABULARY, outputs=WIDTH)
    table = f.draw(at, "weight", (VOCABULARY, WIDTH), scale=0.7)
    keys = []
    for i in range(blocks):
        b = {"norm1": f.norm("rms-norm", f"a{i}", 1e-5)}
        for n, size in zip("qkv", (WIDTH, WIDTH // heads * shared, WIDTH // heads * shared)):
            b[n] = f.dense(f"{n}{i}", WIDTH, size, False, [f"a{i}"])
        rotary = {"base": base, "pairs": "halves"}
        f.add("attention", inputs=[f"q{i}", f"k{i}", f"v{i}"], heads=heads, key_value_heads=shared, rotary=rotary)
        b["o"] = f.dense(f"o{i}", WIDTH, WIDTH, False)
        f.add("add", f"m{i}", [f"x{i}", f"o{i}"])
        b["norm2"] = f.norm("rms-norm", f"n{i}", 1e-5)
        b["gate"] = f.dense(None, WIDTH, HIDDEN, False)
        f.add("silu", f"g{i}")
        b["up"] = f.dense(f"u{i}", WIDTH, HIDDEN, False, [f"n{i}"])
        f.add("multiply", None, [f"g{i}", f"u{i}"])
        b["down"] = f.dense(f"d{i}", HIDDEN, WIDTH, False)
        f.add("add", f"x{i + 1}", [f"m{i}", f"d{i}"])
        keys.append(b)
    last = f.norm("rms-norm", None, 1e-5)
    out = f.dense(None, WIDTH, VOCABULARY, False)

    def model(w, tokens, moved):
        x = w[table][tokens] + moved
        for b in keys:
            a = rms_norm(w, b["norm1"], x, 1e-5)
            x = x + dense(w, b["o"], attention(*(dense(w, b[n], a) for n in "qkv"), heads, shared, base))
            h = rms_norm(w, b["norm2"], x, 1e-5)
            x = x + dense(w, b["down"], jax.nn.silu(dense(w, b["gate"], h)) * dense(w, b["up"], h))
        return dense(w, out, rms_norm(w, last, x, 1e-5))

    return f, model


def loss(model, w, tokens, labels, moved):
    logits = model(w, tokens, moved)
    counts = labels != NO_LABEL
    each = jax.nn.logsumexp(logits, -1) - logits[jnp.arange(len(labels)), jnp.where(counts, labels, 0)]
    return jnp.where(counts, each, 0).sum() / counts.sum()


def records(model, w, rng):
    out = []
    for masked in range(3):
        # few tokens, so that some stand several times
        text = rng.integers(0, 5 if masked else VOCABULARY, LENGTH + 1)
        tokens, labels = jnp.asarray(text[:-1]), np.array(text[1:], dtype=np.int64)
        labels[:masked] = NO_LABEL
        labels = jnp.asarray(labels)
        still = jnp.zeros((LENGTH, WIDTH))
        value = lambda w, moved: loss(model, w, tokens, labels, moved)
        gradient = lambda moved: jnp.concatenate([v.ravel() for v in jax.grad(value)(w, moved).values()])
        j = jax.jacfwd(gradient)(still).reshape(-1, LENGTH * WIDTH)
        plis = jax.grad(lambda m: (gradient(m) ** 2).sum())(still)
        out.append({
            "tokens": np.asarray(tokens).tolist(),
            "labels": np.asarray(labels).tolist(),
            "logits": np.asarray(model(w, tokens, still)).ravel().tolist(),
            "loss": float(value(w, still)),
            "norm": float(jnp.linalg.norm(gradient(still))),
            "trace": float((j**2).sum()),
            "eta": float(jnp.linalg.norm(j, 2)),
            "plis": np.asarray(jnp.linalg.norm(plis, axis=1)).tolist(),
            "gradient": {k: np.asarray(v).ravel().tolist() for k, v in jax.grad(value)(w, still).items()} if masked == 2 else {},
        })
    return out


def main():
    cases = {}
    for name, (f, model) in {"gpt2": gpt2(1), "llama": llama(2)}.items():
        spec = {"version": 1, "input": {"tokens": LENGTH + 2}, "layers": f.layers, "loss": "softmax-cross-entropy"}
        weights = {k: np.asarray(v).ravel().tolist() for k, v in f.weights.items()}
        cases[name] = {"network": spec, "weights": weights, "records": records(model, f.weights, f.rng)}
    path = pathlib.Path(__file__).with_name("transformer.json")
    path.write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
