"""Networks over arrays: the values of testdata/net, the command line's, and definitions in numpy."""

import numpy as np
import pandas as pd
import pytest
from conftest import command_line
from leakscope._network import _safetensors

import leakscope


def wave(count, salt, scale):
    """The formula of testdata/net/golden.py."""
    i = np.arange(count)
    return scale * np.sin(0.7 + 1.3 * salt + 0.37 * i + 0.011 * (i * i % 1009))


def test_the_cnn_of_the_papers_against_jax(golden):
    case = next(c for c in golden("net/golden.json") if c["name"] == "cnn-mnist")
    net = leakscope.Network("cnn-mnist", input=(28, 28, 1), outputs=10, seed=0, precision="f64")
    arrays, flat, at = net.parameters, wave(case["parameters"], 1, 0.2), 0
    order = sorted(arrays, key=lambda name: (int(name.split(".")[1]), name.endswith("bias")))
    for name in order:
        size = arrays[name].size
        arrays[name] = flat[at : at + size].reshape(arrays[name].shape)
        at += size
    assert at == case["parameters"]
    net.parameters = arrays
    x = np.stack([wave(784, 10 + r, 1.0).reshape(28, 28, 1) for r in range(2)])
    found = net.audit(x, np.array([0, 3]), clip=case["clip"], clip_kind="gelu", sigma=case["sigma"], trace="exact", eta=True,
                      plis=True)
    for i, record in enumerate(case["records"]):
        for name in ("loss", "gradient_norm", "released_norm", "plis"):
            assert found.records[name][i] == pytest.approx(record[name], rel=1e-9), name
        assert found.records["dfil"][i] == pytest.approx(record["trace"] / 784, rel=1e-9)
        assert found.records["eta"][i] == pytest.approx(record["eta"], rel=1e-4)
        first = found.plis_maps[i].ravel()[: len(record["plis_first"])]
        assert np.allclose(first, record["plis_first"], atol=1e-9 * record["plis"])


def test_eta_of_a_logistic_model_is_the_norm_of_its_jacobian():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    net = leakscope.Network("linear", input=(4,), outputs=1, seed=3, precision="f64")
    weights = net.parameters
    w, b = next(a for a in weights.values() if a.ndim == 2)[0], next(a for a in weights.values() if a.ndim == 1)[0]
    sigma = 0.3
    found = net.audit(x, y, sigma=sigma, trace="exact", eta=True, plis=True)
    s = 1 / (1 + np.exp(-(x @ w + b)))
    for i in range(20):
        bar = np.append(x[i], 1.0)
        # g = (s − y)(x, 1), and its derivative by x.
        j = s[i] * (1 - s[i]) * np.outer(bar, w) + (s[i] - y[i]) * np.eye(5)[:, :4]
        g = (s[i] - y[i]) * bar
        assert found.records["eta"][i] == pytest.approx(np.linalg.norm(j, 2) / sigma, rel=1e-3)
        assert found.records["dfil"][i] == pytest.approx((j**2).sum() / sigma**2 / 4, rel=1e-9)
        assert np.allclose(found.plis_maps[i], 2 * g @ j / sigma**2, rtol=1e-8)
        assert found.records["gradient_norm"][i] == pytest.approx(np.linalg.norm(g), rel=1e-9)


def test_it_is_what_the_command_line_measures(tmp_path):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 8, 8, 1)), rng.integers(0, 3, 30)
    spec = {"version": 1, "input": [8, 8, 1], "loss": "softmax-cross-entropy", "layers": [
        {"kind": "conv", "outputs": 3, "kernel": [3, 3]}, {"kind": "tanh"}, {"kind": "flatten"},
        {"kind": "dense", "outputs": 3}]}
    net = leakscope.Network(spec, seed=5)
    net.save(tmp_path / "model")
    (tmp_path / "data.safetensors").write_bytes(_safetensors({"x": x, "y": y}))
    done = command_line("net", "audit", "--model", tmp_path / "model", "--data", tmp_path / "data.safetensors", "--clip", 1,
                        "--sigma", 0.5, "--trace", "exact", "--records", "all", "--eta", "--seed", 1, "--format", "csv",
                        "--out", tmp_path / "out", "-q")
    assert done.returncode == 0, done.stderr
    theirs = pd.read_csv(tmp_path / "out" / "records.csv")
    ours = net.audit(x, y, clip=1.0, sigma=0.5, trace="exact", eta=True, seed=1).records
    for name in ("loss", "gradient_norm", "dfil", "eta"):
        assert np.array_equal(ours[name].to_numpy(), theirs[name].to_numpy()), name
    again = leakscope.Network.load(tmp_path / "model").audit(x, y, clip=1.0, sigma=0.5, trace="exact", eta=True, seed=1)
    assert again.records.equals(ours)


def test_training_in_private_keeps_account():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 6))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    net = leakscope.Network("mlp", input=(6,), outputs=2, seed=1)
    before = net.evaluate(x, y)
    run = net.train(x, y, epochs=4, batch=60, lr=0.2, clip=1.0, sigma=1.0, track="drawn", seed=7)
    assert len(run.steps) == 20 and len(run.records) == 300
    assert net.evaluate(x, y)["loss"] < before["loss"] and (run.records["dfil"] >= 0).all()
    accountant = leakscope.Accountant()
    for _ in range(20):
        accountant.step(noise_multiplier=1.0, sample_rate=0.2)
    assert run.epsilon(1e-5) == accountant.get_epsilon(1e-5)
    again = leakscope.Network("mlp", input=(6,), outputs=2, seed=1)
    same = again.train(x, y, epochs=4, batch=60, lr=0.2, clip=1.0, sigma=1.0, track="drawn", seed=7)
    assert same.steps.equals(run.steps) and same.records.equals(run.records)
    open_run = leakscope.Network("linear", input=(6,), outputs=2, seed=1).train(x, y, steps=3, batch=300, sampling="shuffle")
    assert open_run.epsilon() == np.inf and len(open_run.records) == 0


def test_parameters_there_and_back():
    net = leakscope.Network("mlp", input=(5,), outputs=3, seed=1, precision="f64")
    arrays = net.parameters
    other = leakscope.Network(net.spec, seed=2, precision="f64")
    other.parameters = arrays
    assert all(np.array_equal(other.parameters[k], v) for k, v in arrays.items())
    assert "3 layers" in repr(leakscope.Network("linear", input=(5,), outputs=3)) or "layers" in repr(net)


@pytest.mark.parametrize("work, words", [
    (lambda n, x, y: leakscope.Network("nope", input=(4,), outputs=2), "nope"),
    (lambda n, x, y: leakscope.Network("mlp"), "preset needs the shape"),
    (lambda n, x, y: leakscope.Network({"version": 1}), "input|layers|missing"),
    (lambda n, x, y: leakscope.Network("nowhere.json"), "nowhere.json"),
    (lambda n, x, y: leakscope.Network.load("nowhere"), "nowhere"),
    (lambda n, x, y: n.audit(x[:, :3], y), "shape"),
    (lambda n, x, y: n.audit(x, y[:-1]), "y: 19 labels for 20"),
    (lambda n, x, y: n.audit(x, y + 5), "label"),
    (lambda n, x, y: n.audit(x, -y - 1), "class is"),
    (lambda n, x, y: n.audit(np.where(x > 1, np.nan, x), y), "records.*finite|not finite|NaN"),
    (lambda n, x, y: n.audit(x.astype(str), y), "expected numbers"),
    (lambda n, x, y: n.audit(x, y, trace="all"), "trace"),
    (lambda n, x, y: n.audit(x, y, clip_kind="hard"), "go together"),
    (lambda n, x, y: n.audit(x, y, sigma=-1), "sigma"),
    (lambda n, x, y: n.audit(x, y, records=[99]), "99|record"),
    (lambda n, x, y: n.train(x, y, batch=21), "batch: 21"),
    (lambda n, x, y: n.train(x, y, steps=1, epochs=1), "one of the two"),
    (lambda n, x, y: n.train(x, y, batch=5, clip=1.0), "noise too"),
    (lambda n, x, y: n.train(x, y, batch=5, track="some"), "track"),
    (lambda n, x, y: n.train(x, y, batch=5, lr=1e30, steps=50), "diverge|finite|step"),
])
def test_bad_input_says_what_to_do(work, words):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    with pytest.raises(leakscope.LeakscopeError, match=f"(?s){words}"):
        work(leakscope.Network("mlp", input=(4,), outputs=2, seed=1), x, y)
