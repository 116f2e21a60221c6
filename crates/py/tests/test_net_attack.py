"""Attacks on networks: arrays in, arrays and metrics out, the numbers of the command line."""

import json

import numpy as np
import pytest

import leakscope


def records(n=40, d=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, d)), rng.integers(0, 3, n)


def test_inversion_gives_arrays_and_metrics(tmp_path):
    x, y = records()
    net = leakscope.Network("mlp", input=(8,), outputs=3, seed=1)
    result = leakscope.attack_network(net, x, y, records=10, iterations=30, sigmas=(0, 0.1), seed=1, labels="recover")
    assert result.reconstructions.shape == (2, 10, 8) and result.attacked.shape == (10,)
    first, noisy = result.document["levels"]
    assert first["first_layer"]["value"] < 1e-6 < noisy["first_layer"]["value"]
    assert first["labels_right"]["value"] == 1.0
    errors = ((result.reconstructions[0] - x[result.attacked]) ** 2).mean(axis=1)
    np.testing.assert_allclose(errors.mean(), first["mse"]["value"], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(result.records["mse_at_sigma_0"]), errors, rtol=1e-5)
    # rows of eight values are no images
    assert first["ssim"] is None and any("SSIM is of images" in w for w in result.document["warnings"])
    result.save(tmp_path / "attack")
    names = {p.name for p in (tmp_path / "attack").iterdir()}
    assert {"inversion.json", "report.html", "records.parquet"} <= names


def test_a_gradient_that_was_seen():
    x, _ = records(1)
    net = leakscope.Network("linear", input=(8,), outputs=3, seed=1, precision="f64")
    tensors = net.parameters
    (weight,), (bias,) = [[n for n in tensors if n.endswith(end)] for end in ("weight", "bias")]
    z = tensors[weight] @ x[0] + tensors[bias]
    p = np.exp(z - z.max())
    delta = p / p.sum() - np.eye(3)[2]
    result = leakscope.attack_network(net, gradient={weight: np.outer(delta, x[0]), bias: delta}, iterations=20, seed=1)
    np.testing.assert_allclose(result.reconstructions[0, 0], x[0], atol=1e-8)
    assert result.document["given"]["labels"] == ["2"]
    for gradient, message in [
        ({weight: np.zeros((3, 8)), bias: np.zeros(3)}, "zero everywhere"),
        ({weight: np.full((3, 8), np.nan), bias: delta}, "not finite"),
        ({weight: np.zeros((3, 7)), bias: delta}, "another network"),
        ({bias: delta}, "another network"),
    ]:
        with pytest.raises(leakscope.OptionError, match=message):
            leakscope.attack_network(net, gradient=gradient)


def test_membership_and_canaries():
    (x, y), other = records(60, seed=1), records(60, seed=2)
    net = leakscope.Network("linear", input=(8,), outputs=3, seed=1)
    net.train(x, y, steps=5, batch=20, lr=0.5, clip=1.0, sigma=1.0, seed=1)
    result = leakscope.attack_network(net, x, y, method="membership", test=other, shadows=4, canaries=30, seed=1)
    assert [a["attacker"] for a in result["attacks"]] == ["loss", "gradient-norm", "lira"]
    assert result["canaries"]["epsilon"]["value"] <= result["canaries"]["promised"]
    assert len(result.records) == 120 and result.reconstructions is None
    with pytest.raises(leakscope.OptionError, match="test"):
        leakscope.attack_network(net, x, y, method="membership")
    with pytest.raises(leakscope.OptionError, match="shadows"):
        leakscope.attack_network(net, x, y, method="membership", test=other, shadows=3)


def test_the_informed_adversary():
    x, y = records(300, seed=3)
    result = leakscope.attack_network(None, x, y, method="informed", known=20, learn=240, targets=30, epochs=0, sgd=True, lr=1.0, seed=1)
    labels, ridge = (a["mse"]["value"] for a in result["attacks"])
    assert ridge < labels and result.reconstructions.shape == (2, 30, 8)
    result = leakscope.attack_network("mlp", x, y, method="informed", known=20, learn=60, targets=10, epochs=0, steps=2, seed=1)
    assert result["network"]["name"] == "mlp" and result["components"] > 0
    with pytest.raises(leakscope.OptionError, match="conv"):
        leakscope.attack_network("cnn-mnist", x, y, method="informed", known=20, learn=60, targets=10)
    with pytest.raises(leakscope.OptionError, match="learn"):
        leakscope.attack_network(None, x, y, method="informed", known=20, learn=4, targets=3)
    with pytest.raises(leakscope.OptionError, match="method='membership'"):
        leakscope.attack_network(None, x, y, method="informed", shadows=2)


def lpips_weights(path):
    """Weights of LPIPS in their shapes, drawn: only that they are read, and change what is measured."""
    rng, arrays = np.random.default_rng(1), {}
    shapes = [(0, 64, 3, 11), (3, 192, 64, 5), (6, 384, 192, 3), (8, 256, 384, 3), (10, 256, 256, 3)]
    for i, (number, outputs, inputs, side) in enumerate(shapes):
        size = inputs * side * side
        arrays[f"features.{number}.weight"] = rng.normal(size=(outputs, inputs, side, side)) * (2 / size) ** 0.5
        arrays[f"features.{number}.bias"] = np.zeros(outputs)
        arrays[f"lin{i}.model.1.weight"] = rng.uniform(size=(1, outputs, 1, 1))
    header, body = {}, b""
    for name, value in arrays.items():
        raw = value.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


def test_lpips_where_weights_are_given(tmp_path):
    rng = np.random.default_rng(2)
    x, y = rng.uniform(size=(6, 8, 8)), rng.integers(0, 3, 6)
    net = leakscope.Network("mlp", input=(8, 8, 1), outputs=3, seed=1)
    weights = lpips_weights(tmp_path / "lpips.safetensors")
    found = leakscope.attack_network(net, x, y, records=5, iterations=10, lpips=weights, seed=1)
    assert found.document["levels"][0]["lpips"]["value"] > 0
    flat = leakscope.Network("mlp", input=(64,), outputs=3, seed=1)
    with pytest.raises(leakscope.OptionError, match="lpips: it is of images"):
        leakscope.attack_network(flat, x.reshape(6, 64), y, records=5, iterations=10, lpips=weights)
    with pytest.raises(leakscope.OptionError, match="lpips"):
        leakscope.attack_network(net, x, y, records=5, iterations=10, lpips=tmp_path / "nothing")
    with pytest.raises(leakscope.OptionError, match="lpips: it belongs"):
        leakscope.attack_network(net, x, y, method="membership", test=(x, y), lpips=weights)
