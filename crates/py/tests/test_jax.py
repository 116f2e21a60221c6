"""JAX against torch on the same network; runs where both are installed."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed: leakscope.jax is not tested here (test-torch.sh does)")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import leakscope  # noqa: E402
import leakscope.jax  # noqa: E402


def parts(seed=0):
    rng = np.random.default_rng(seed)
    params = {"a": rng.normal(size=(6, 5)), "b": rng.normal(size=5), "c": rng.normal(size=(5, 3))}
    return params, rng.normal(size=(5, 6)), rng.integers(0, 3, 5)


def loss(params, x, y):
    z = jnp.tanh(x @ params["a"] + params["b"]) @ params["c"]
    return jax.nn.logsumexp(z) - z[y]


@pytest.mark.parametrize("clip, kind", [(None, None), (0.5, "hard"), (0.5, "gelu")])
def test_measures_are_those_of_the_dense_jacobian(clip, kind):
    params, x, y = parts()
    result = leakscope.jax.audit(loss, params, x, y, clip=clip, clip_kind=kind, sigma=0.4, trace="elements", eta=True, plis=True, chunk=2, seed=1)
    noise = 0.4 * (clip or 1)
    for i in range(5):
        def released(v, i=i):
            g = jnp.concatenate([p.ravel() for p in jax.tree_util.tree_leaves(jax.grad(loss)(params, v, y[i]))])
            n = jnp.linalg.norm(g)
            if kind == "hard":
                return g * jnp.minimum(1, clip / n)
            if kind == "gelu":
                return g / (jax.nn.gelu(n / clip - 1, approximate=False) + 1)
            return g

        j, c = jax.jacrev(released)(x[i]), released(x[i])
        row = result.records.iloc[i]
        assert row["trace"] == pytest.approx(float((j**2).sum()) / noise**2, rel=1e-9)
        assert row["eta"] == pytest.approx(float(jnp.linalg.norm(j, 2)) / noise, rel=1e-5)
        assert np.allclose(result.plis_maps[i], 2 * c @ j / noise**2, rtol=1e-8, atol=1e-10)
    assert result["schema"] == "leakscope.net-audit/1" and len(result["elements"]) == 6


def test_pytrees_as_records():
    params, x, y = parts()

    def two(p, record, target):
        return loss(p, jnp.concatenate([record["left"], record["right"]]), target)

    whole = leakscope.jax.audit(loss, params, x, y, trace="exact", seed=0)
    split = leakscope.jax.audit(two, params, {"left": x[:, :2], "right": x[:, 2:]}, y, trace="exact", seed=0)
    assert np.allclose(whole.records["trace"], split.records["trace"], rtol=1e-12)


@pytest.mark.parametrize("function, x, y, words", [
    (3, None, None, "expected a function"),
    (lambda p, x, y: x, None, None, "one number"),
    (lambda p, x, y: p["a"].sum() if x[0] > 0 else 0.0, None, None, "jnp.where"),
    (loss, np.ones((5, 6), dtype=int), None, "embed integers"),
    (loss, np.full((5, 6), np.nan), None, "record 0"),
    (loss, None, np.zeros(3, dtype=int), "3 targets for 5"),
    (loss, np.ones((0, 6)), np.zeros(0, dtype=int), "at least one"),
])
def test_what_is_refused(function, x, y, words):
    params, good, labels = parts()
    with pytest.raises(leakscope.LeakscopeError, match=words):
        leakscope.jax.audit(function, params, good if x is None else x, labels if y is None else y)


@pytest.mark.parametrize("params, words", [({"a": np.ones(6, dtype=int)}, "params: int.*real numbers"), ({}, "params: no arrays")])
def test_what_is_trained_are_real_numbers(params, words):
    _, x, y = parts()
    with pytest.raises(leakscope.OptionError, match=words):
        leakscope.jax.audit(lambda p, x, y: (x * 1.0).sum(), params, x, y)
