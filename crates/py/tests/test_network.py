"""Networks over arrays: the values of testdata/net, the command line's, and definitions in numpy."""

import json
import pickle

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
    result = net.audit(x, np.array([0, 3]), clip=case["clip"], clip_kind="gelu", sigma=case["sigma"], trace="exact", eta=True,
                      plis=True)
    # PLIS before the clip is that of a release without one, under the same noise
    raw = net.audit(x, np.array([0, 3]), clip=case["clip"], clip_kind="gelu", sigma=case["sigma"], trace="skip", plis="raw")
    plain = net.audit(x, np.array([0, 3]), sigma=case["sigma"] * case["clip"], trace="skip", plis=True)
    assert np.allclose(raw.plis_maps, plain.plis_maps, rtol=1e-12, atol=0)
    assert np.allclose(raw.records["plis"], plain.records["plis"], rtol=1e-12)
    for i, record in enumerate(case["records"]):
        for name in ("loss", "gradient_norm", "released_norm"):
            assert result.records[name][i] == pytest.approx(record[name], rel=1e-9), name
        assert result.records["plis"][i] == pytest.approx(record["plis"], rel=1e-9)
        assert result.records["dfil"][i] == pytest.approx(record["trace"] / 784, rel=1e-9)
        assert result.records["eta"][i] == pytest.approx(record["eta"], rel=1e-4)
        first, theirs = result.plis_maps[i].ravel()[: len(record["plis_first"])], np.array(record["plis_first"])
        assert np.allclose(abs(first), abs(theirs), atol=1e-9 * record["plis"])


def test_eta_of_a_logistic_model_is_the_norm_of_its_jacobian():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    net = leakscope.Network("linear", input=(4,), outputs=1, seed=3, precision="f64")
    weights = net.parameters
    w, b = next(a for a in weights.values() if a.ndim == 2)[0], next(a for a in weights.values() if a.ndim == 1)[0]
    sigma = 0.3
    result = net.audit(x, y, sigma=sigma, trace="exact", eta=True, plis=True)
    s = 1 / (1 + np.exp(-(x @ w + b)))
    for i in range(20):
        bar = np.append(x[i], 1.0)
        # g = (s − y)(x, 1), and its derivative by x.
        j = s[i] * (1 - s[i]) * np.outer(bar, w) + (s[i] - y[i]) * np.eye(5)[:, :4]
        g = (s[i] - y[i]) * bar
        assert result.records["eta"][i] == pytest.approx(np.linalg.norm(j, 2) / sigma, rel=1e-3)
        assert result.records["dfil"][i] == pytest.approx((j**2).sum() / sigma**2 / 4, rel=1e-9)
        assert np.allclose(result.plis_maps[i], 2 * g @ j / sigma**2, rtol=1e-8)
        assert result.records["gradient_norm"][i] == pytest.approx(np.linalg.norm(g), rel=1e-9)


SPEC = {"version": 1, "input": [8, 8, 1], "loss": "softmax-cross-entropy", "layers": [
    {"kind": "conv", "outputs": 3, "kernel": [3, 3]}, {"kind": "tanh"}, {"kind": "flatten"}, {"kind": "dense", "outputs": 3}]}


def digits(n=30):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 8, 8, 1)), rng.integers(0, 3, n)


@pytest.mark.parametrize("clip", [1.0, None])
def test_it_is_what_the_command_line_measures(tmp_path, clip):
    x, y = digits()
    net, other = leakscope.Network(SPEC, seed=5), leakscope.Network(SPEC, seed=6)
    net.save(tmp_path / "model")
    other.save(tmp_path / "other")
    x, score = x[:20], x[20:]
    y, score_y = y[:20], y[20:]
    (tmp_path / "data.safetensors").write_bytes(_safetensors({"x": x, "y": y}))
    (tmp_path / "points.safetensors").write_bytes(_safetensors({"x": score}))
    done = command_line(
        "net", "audit", "--model", tmp_path / "model", "--data", tmp_path / "data.safetensors", "--sigma", 0.5, "--trace",
        "elements", "--records", "all", "--eta", "--plis", "--grid", 2, "--compare", tmp_path / "other", "--score",
        tmp_path / "points.safetensors", "--seed", 1, "--format", "csv", "--out", tmp_path / "out", "--json",
        *([] if clip is None else ["--clip", clip]))
    assert done.returncode == 0, done.stderr
    ours = net.audit(x, y, clip=clip, sigma=0.5, trace="elements", eta=True, plis=True, grid=2, compare=other, score=score, seed=1)
    theirs = json.loads(done.stdout)
    for name, value in ours.document.items():
        if name not in ("network", "data", "compared", "score", "tables"):
            assert value == theirs[name], name
    assert ours["tables"] == [] and theirs["tables"] == ["records.csv", "scores.csv"]
    assert {k: v for k, v in ours["score"].items() if k != "files"} == {k: v for k, v in theirs["score"].items() if k != "files"}
    assert ours["compared"]["plis"] == theirs["compared"]["plis"]
    for table, frame in (("records", ours.records), ("scores", ours.scores)):
        expected = pd.read_csv(tmp_path / "out" / f"{table}.csv").set_index("record")
        assert list(frame.columns) == list(expected.columns)
        for name in expected.columns.drop("label"):
            assert np.array_equal(frame[name].to_numpy(), expected[name].to_numpy()), name
    # the same page, but for the names of files and models
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("data:image") == ours._outcome.page().count("data:image") > 0
    labelled = net.audit(x, y, clip=clip, sigma=0.5, trace="skip", score=(score, score_y), seed=1)
    assert labelled["score"]["labelled"] and not ours["score"]["labelled"]
    written = ours.save(tmp_path / "again", format="csv")
    assert {p.name for p in written} == {"audit.json", "report.html", "records.csv", "scores.csv"}
    assert (tmp_path / "again" / "records.csv").read_text() == (tmp_path / "out" / "records.csv").read_text()
    again = leakscope.Network.load(tmp_path / "model").audit(x, y, clip=clip, sigma=0.5, trace="skip", seed=1)
    assert again.records["loss"].equals(ours.records["loss"])


def test_an_audit_has_page_document_and_summary(tmp_path):
    x, y = digits(12)
    regions = np.zeros((8, 8), dtype=int)
    regions[:4] = 1
    result = leakscope.Network(SPEC, seed=5).audit(x, y, trace="exact", plis=True, superpixels=regions, seed=3, out=tmp_path / "out")
    # in a folder of results a page says of which kind it is
    alone = result.report(tmp_path / "page.html").read_text().replace("<!--results -->", "<!--results audit -->")
    assert alone == (tmp_path / "out" / "report.html").read_text()
    assert json.loads(result.to_json()) == result.document and result.document["schema"] == "leakscope.net-audit/1" and result.seed == 3
    assert "leakscope-card" in result._repr_html_() and "records" in result.summary() and "NetAudit" in repr(result)
    assert result.plis_maps.shape == (12, 8, 8, 1)
    again = pickle.loads(pickle.dumps(result))
    assert again.records.equals(result.records) and np.array_equal(again.plis_maps, result.plis_maps) and again.seed == 3
    assert again.to_json() == result.to_json()


def test_labels_of_every_kind_are_the_same_classes():
    x, y = digits(12)
    net = leakscope.Network(SPEC, seed=5, precision="f64")
    expected = net.audit(x, y, trace="exact").records
    for labels in (y.astype(float), y.astype(np.uint8), y.tolist(), np.eye(3)[y], y[:, None]):
        result = net.audit(x, labels, trace="exact").records
        assert result["dfil"].equals(expected["dfil"])
    one = leakscope.Network("linear", input=(8, 8, 1), outputs=1, seed=1)
    for labels in (y == 1, (y == 1).astype(float), (y == 1).astype(int)):
        assert one.evaluate(x, labels) == one.evaluate(x, y == 1)


def test_training_to_an_epsilon_with_frozen_layers_from_public_weights(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 6))
    y = (x[:, 0] > 0).astype(int)
    public = leakscope.Network("mlp", input=(6,), outputs=2, seed=9)
    net = leakscope.Network("mlp", input=(6,), outputs=2, seed=1)
    first = next(i for i, layer in enumerate(net.spec["layers"]) if layer["kind"] == "dense")
    run = net.train(x, y, steps=10, batch=40, epsilon=2.0, pretrain=public.parameters, freeze=[first], seed=7)
    assert 1.9 < run.epsilon(1e-5) <= 2.0 and net.spec["layers"][first]["frozen"]
    before, after = public.parameters, net.parameters
    for name in before:
        assert np.array_equal(before[name], after[name]) == name.startswith(f"layers.{first}."), name
    public.save(tmp_path)
    repeated = dict(steps=10, batch=40, epsilon=2.0, freeze=[first], seed=7, not_private_noise_from_seed=True)
    one, other = (leakscope.Network("mlp", input=(6,), outputs=2, seed=k) for k in (1, 2))
    one.train(x, y, pretrain=public.parameters, **repeated)
    open_book = other.train(x, y, pretrain=tmp_path / "model.safetensors", **repeated)
    assert all(np.array_equal(one.parameters[k], v) for k, v in other.parameters.items())
    assert open_book.epsilon() == np.inf, "noise that follows from a seed protects nobody"
    assert not all(np.array_equal(one.parameters[k], v) for k, v in after.items()), "noise of the system is another one"
    # A run that is refused leaves the weights as they were.
    with pytest.raises(leakscope.OptionError, match="batch=999: there are only 200 records"):
        one.train(x, y, batch=999, pretrain=public.parameters)
    assert all(np.array_equal(one.parameters[k], v) for k, v in other.parameters.items())
    few = leakscope.Network("linear", input=(6,), outputs=2, seed=1)
    start = few.parameters
    few.train(x, y, steps=5, batch=40, sigma=1.0, freeze_smallest=0.5, seed=7)
    same = sum((few.parameters[k] == v).sum() for k, v in start.items())
    assert 2 * same == sum(v.size for v in start.values())


def test_training_in_private_keeps_account():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 6))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    net = leakscope.Network("mlp", input=(6,), outputs=2, seed=1)
    before = net.evaluate(x, y)
    run = net.train(x, y, epochs=4, batch=60, lr=0.2, clip=1.0, sigma=1.0, track="drawn", seed=7)
    assert len(run.steps) == 20 and len(run.records) == 300 and run.seed == 7
    assert run.document["schema"] == "leakscope.net-training/1" and run.document["steps"] == 20
    assert run["history"][-1]["epsilon"] == pytest.approx(run.epsilon(1e-5), rel=0.01)
    assert net.evaluate(x, y)["loss"] < before["loss"] and (run.records["dfil"].dropna() >= 0).all()
    accountant = leakscope.Accountant()
    for _ in range(20):
        accountant.step(noise_multiplier=1.0, sample_rate=0.2)
    assert run.epsilon(1e-5) == accountant.get_epsilon(1e-5)
    # A smooth clip lets through 1.1152 C: the same noise is worth less.
    smooth = leakscope.Network("linear", input=(4,), outputs=2, seed=1).train(
        np.zeros((50, 4)), np.zeros(50, int), steps=3, batch=10, sigma=1.0, clip=1.0, clip_kind="gelu", seed=1)
    worth = leakscope.Accountant()
    for _ in range(3):
        worth.step(noise_multiplier=1 / 1.115219, sample_rate=0.2)
    assert smooth.epsilon(1e-5) == pytest.approx(worth.get_epsilon(1e-5), rel=1e-6)
    for ignored in ({"adam": True, "momentum": 0.5}, {"delta": 1e-3}):
        with pytest.raises(leakscope.OptionError, match="momentum|delta"):
            leakscope.Network("linear", input=(4,), outputs=2, seed=1).train(
                np.zeros((50, 4)), np.zeros(50, int), steps=3, batch=10, **ignored)
    again = leakscope.Network("mlp", input=(6,), outputs=2, seed=1)
    repeated = dict(epochs=4, batch=60, lr=0.2, clip=1.0, sigma=1.0, track="drawn", seed=7, not_private_noise_from_seed=True)
    once = leakscope.Network("mlp", input=(6,), outputs=2, seed=1).train(x, y, **repeated)
    same = again.train(x, y, **repeated)
    assert same.steps.equals(once.steps) and same.records.equals(once.records)
    open_run = leakscope.Network("linear", input=(6,), outputs=2, seed=1).train(x, y, steps=3, batch=300, sampling="shuffle")
    assert open_run.epsilon() == np.inf and open_run.records is None


def test_regressions_have_no_label_and_are_not_right():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 4))
    spec = {"version": 1, "input": [4], "loss": "squared-error", "layers": [{"kind": "dense", "outputs": 2}]}
    records = leakscope.Network(spec, seed=1).audit(x, x[:, :2], clip=1.0, sigma=1.0, trace="exact", seed=1).records
    assert len(records) == 30 and not {"label", "right"} & set(records.columns) and (records["dfil"] > 0).all()


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
    (lambda n, x, y: n.audit(x, -y - 1), "label of record 0 is -[12]: expected a class"),
    (lambda n, x, y: n.audit(x, y + 0.5), "label of record 0 is .*expected a class"),
    (lambda n, x, y: n.evaluate(x, np.ones((20, 3))), "labels have 3 values, the network 2 outputs"),
    (lambda n, x, y: n.evaluate(x[:0], y[:0]), "no records"),
    (lambda n, x, y: n.audit(np.where(x > 1, np.nan, x), y), "records.*finite|not finite|NaN"),
    (lambda n, x, y: n.audit(x.astype(str), y), "expected numbers"),
    (lambda n, x, y: n.audit(x, y, trace="all"), "trace"),
    (lambda n, x, y: n.audit(x, y, clip_kind="hard"), "give the bound too"),
    (lambda n, x, y: n.audit(x, y, sigma=-1), "sigma"),
    (lambda n, x, y: n.audit(x, y, records=[99]), "99|record"),
    (lambda n, x, y: n.train(x, y, batch=21), "batch=21"),
    (lambda n, x, y: n.train(x, y, steps=1, epochs=1), "epochs: steps says how long already: give one of the two"),
    (lambda n, x, y: n.train(x, y, batch=5, clip=1.0), "noise too"),
    (lambda n, x, y: n.train(x, y, batch=5, track="some"), "track='some': expected 'panel', 'drawn' or 'every'"),
    (lambda n, x, y: n.train(x, y, batch=5, track="every"), "only finite under noise"),
    (lambda n, x, y: n.train(x, y, batch=5, epochs=-3), "epochs=-3: expected a positive number"),
    (lambda n, x, y: n.train(x, y, batch=5, epochs="3"), "epochs='3'"),
    (lambda n, x, y: n.train(x, y, batch=5, steps=-1), "steps=-1: expected a whole number from 0"),
    (lambda n, x, y: n.train(x, y, batch=5, steps=0), "steps=0: expected at least 1"),
    (lambda n, x, y: n.train(x, y, batch=5, steps="5"), "steps='5'"),
    (lambda n, x, y: n.train(x, y, batch=5, steps=2.5), "steps=2.5"),
    (lambda n, x, y: n.train(x, y, batch=5, lr=float("nan")), "lr=nan: expected a finite number"),
    (lambda n, x, y: n.train(x, y, batch=5, lr=0), "lr=0: expected a positive"),
    (lambda n, x, y: n.train(x, y, batch=float("nan")), "batch=nan: expected a finite number"),
    (lambda n, x, y: n.train(x, y, batch=2.5, sampling="shuffle"), "batch=2.5: shuffled batches hold whole records"),
    (lambda n, x, y: n.train(x, y, batch=5, seed=-1), "seed=-1: expected a whole number from 0"),
    (lambda n, x, y: n.train(x, y, batch=5, momentum=1), "momentum=1: expected at least 0, below 1"),
    (lambda n, x, y: n.train(x, y, batch=5, weight_decay=-1), "weight_decay=-1"),
    (lambda n, x, y: n.train(x, y, batch=5, label="zz"), "label='zz'"),
    (lambda n, x, y: n.train(x, y, batch=5, sigma=-1.0), "sigma=-1: expected a positive number"),
    (lambda n, x, y: n.train(x, y, batch=5, sigma=1.0, delta=2), "delta=2: expected between 0 and 1"),
    (lambda n, x, y: n.train(x, y, batch=5, sigma=1.0, epsilon=1.0), "epsilon: sigma is the noise already"),
    (lambda n, x, y: n.train(x, y, batch=5, epsilon=-1.0), "epsilon=-1: expected a positive"),
    (lambda n, x, y: n.train(x, y, batch=5, sigma=1.0, clip=0), "clip.*positive|clip.*above 0|clip=0"),
    (lambda n, x, y: n.train(x, y, batch=5, sigma=1.0, clip_kind="none"), "no privacy"),
    (lambda n, x, y: n.train(x, y, batch=5, freeze=[99]), "there is no layer 99"),
    (lambda n, x, y: n.train(x, y, batch=5, freeze=[-1]), "freeze=-1"),
    (lambda n, x, y: n.train(x, y, batch=5, freeze=1), "freeze=1: expected a list"),
    (lambda n, x, y: n.train(x, y, batch=5, freeze_smallest=1.0), "freeze_smallest=1: expected at least 0, below 1"),
    (lambda n, x, y: n.train(x, y, batch=5, pretrain="nowhere.safetensors"), "pretrain='nowhere"),
    (lambda n, x, y: n.audit(x, y, trace=-1), "trace=-1: expected a whole number"),
    (lambda n, x, y: n.audit(x, y, trace=1), "trace=1: expected exact"),
    (lambda n, x, y: n.audit(x, y, records=-5), "records=-5: expected a whole number from 1"),
    (lambda n, x, y: n.audit(x, y, records=0), "records=0"),
    (lambda n, x, y: n.audit(x, y, records=[-1]), "records=-1: expected a whole number from 0 to 19"),
    (lambda n, x, y: n.audit(x, y, records=[]), "records: none"),
    (lambda n, x, y: n.audit(x, y, records="all"), "records='all'"),
    (lambda n, x, y: n.audit(x, y, seed=-1), "seed=-1"),
    (lambda n, x, y: n.audit(x, y, sigma=float("nan")), "sigma=nan: expected a finite number"),
    (lambda n, x, y: n.audit(x, y, label="zz"), "label='zz': expected 'public' or 'secret'|label='zz': expected 'secret' or 'public'"),
    (lambda n, x, y: n.audit(x, y, plis=True, grid=2), "grid: records are no images"),
    (lambda n, x, y: n.audit(x, y, grid=2), "grid: .*plis"),
    (lambda n, x, y: n.audit(x, y, superpixels=np.zeros((2, 2))), "superpixels: they go with plis"),
    (lambda n, x, y: n.audit(x, y, compare="other"), "compare: str"),
    (lambda n, x, y: n.audit(x, y, score=x[:, :2]), "score.*shape"),
    (lambda n, x, y: n.audit(x, y, score=(x, y[:3])), "score: y: 3 labels for 20"),
    (lambda n, x, y: n.audit(x, y, plis=True, compare=leakscope.Network("mlp", input=(4,), outputs=2, precision="f64")),
     "same precision"),
    (lambda n, x, y: leakscope.Network("mlp", input=(4,), outputs=2, seed=-1), "seed=-1"),
    (lambda n, x, y: leakscope.Network("mlp", input=(-6,), outputs=2), "input=-6: expected a whole number from 1"),
    (lambda n, x, y: leakscope.Network("mlp", input=4, outputs=2), "input=4: expected a list"),
    (lambda n, x, y: leakscope.Network("mlp", input=(4,), outputs=0), "outputs=0"),
    (lambda n, x, y: n.train(x, y, batch=5, lr=1e30, steps=50), "diverge|finite|step"),
])
def test_bad_input_says_what_to_do(work, words):
    """Named by the option, and of a class that says what kind of thing is wrong."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    with pytest.raises(leakscope.LeakscopeError, match=f"(?s){words}") as caught:
        work(leakscope.Network("mlp", input=(4,), outputs=2, seed=1), x, y)
    assert "--" not in str(caught.value) and "⟨" not in str(caught.value), "messages speak Python"


def test_a_network_remembers_how_it_was_trained():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    y = (x[:, 0] > 0).astype(int)
    net = leakscope.Network("linear", input=(4,), outputs=2, seed=1)
    net.train(x, y, steps=5, batch=20, lr=0.5, clip=0.7, sigma=1.3, seed=1)
    result = net.audit(x, y, trace="exact", seed=1).document
    assert (result["release"]["clip"], result["release"]["sigma"]) == (0.7, 1.3) and result["training"] is not None
    net.parameters = net.parameters
    assert net.audit(x, y, trace="exact", seed=1).document.get("training") is None


def test_public_records_train_first_and_perturb_gradients():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(60, 5)), rng.integers(0, 2, 60)
    public = rng.normal(size=(30, 5)), rng.integers(0, 2, 30)
    options = dict(steps=3, batch=20, sigma=1.0, clip=1.0, seed=4, track="every", not_private_noise_from_seed=True)

    def run(**more):
        net = leakscope.Network("linear", input=(5,), outputs=2, seed=1, precision="f64")
        return net.train(x, y, **options, **more).document

    first = run(public=public, public_epochs=4, public_lr=0.2, public_optimizer="adam", density=0.5)
    assert first["public"]["pretraining"]["records"] == 30 and first["public"]["density"] == 0.5
    plain = run()
    assert "public" not in plain
    for variant in ("average", "constant", "network", "thesis"):
        more = {} if variant == "average" else {"perturb_epochs": 3}
        added = run(public=public, perturb=variant, perturb_lambda=50.0, **more)["public"]["perturbation"]
        assert added["variant"] == variant and added["records"] == 30 and added["lambda"] == 50.0
        assert added["with"] < added["without"], variant
    for more, says in [
        (dict(perturb="average"), "perturb: it is learned on public records"),
        (dict(public_epochs=2), "public_epochs: name the public records"),
        (dict(public=public, perturb="average", perturb_epochs=2), "perturb_epochs: "),
        (dict(public=(public[0][:, :4], public[1]), public_epochs=2), "public"),
        (dict(public=(public[0], np.full(30, 7)), public_epochs=2), "public"),
        (dict(public=public[0], public_epochs=2), "public: expected a pair"),
        (dict(public=public, perturb="other"), "perturb"),
        (dict(density=0.0), "density"),
    ]:
        with pytest.raises(leakscope.LeakscopeError, match=says):
            run(**more)
