"""Softmax regression: arrays and frames, scikit-learn's multinomial models, two classes as a logistic model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import leakscope

NEWTON = dict(solver="newton-cholesky", tol=1e-12, max_iter=1000)


def data(classes=3, n=240, d=3):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(n, d)) + 0.2
    z = x @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes))
    return x, z.argmax(axis=1)


@pytest.mark.parametrize("options", [
    {"C": 0.5}, {"C": 3.0, "fit_intercept": False}, {"C": 2.0, "class_weight": "balanced"},
])
@pytest.mark.parametrize("name", ["number", "text"])
def test_multinomial_models_are_at_the_minimiser(options, name):
    x, y = data()
    y = np.array(["ash", "birch", "cedar"])[y] if name == "text" else y
    model = LogisticRegression(**options, **NEWTON).fit(x, y)
    assert model.coef_.shape == (3, 3)
    result = leakscope.audit(model, x, y, sigma=0.5)
    assert result["model"]["family"] == "softmax"
    assert result["model"]["distance"]["relative"] < 1e-6
    assert [c["n"] for c in result["classes"]] == list(np.unique(y, return_counts=True)[1])
    assert len(result.records) == len(y)
    # η of a record by refits of scikit-learn itself.
    if options == {"C": 0.5} and name == "number":
        h, row, columns = 1e-4, 5, []
        for j in range(x.shape[1]):
            sides = []
            for step in (h, -h):
                moved = x.copy()
                moved[row, j] += step
                refit = LogisticRegression(**options, **NEWTON).fit(moved, y)
                w = np.column_stack([refit.coef_, refit.intercept_])
                sides.append(w - w.mean(axis=0))
            columns.append((sides[0] - sides[1]).ravel() / (2 * h))
        public = leakscope.audit(model, x, y, sigma=0.5, label="public")
        truth = np.linalg.norm(np.column_stack(columns), 2) / 0.5
        assert np.asarray(public.records["eta"])[row] == pytest.approx(truth, rel=1e-4)


def test_two_classes_are_the_logistic_model():
    x, y = data(classes=2)
    soft = leakscope.audit(x, y, model="softmax", l2=0.1, sigma=0.3)
    logistic = leakscope.audit(x, y, model="logistic", l2=0.05, sigma=0.3 * np.sqrt(2))
    for kind in ("eta", "dfil", "loss"):
        assert soft["records"][kind]["mean"] == pytest.approx(logistic["records"][kind]["mean"], rel=1e-6)
    assert soft["label"]["eta_max"] == pytest.approx(logistic["label"]["eta_max"], rel=1e-6)


def test_frames_and_classes_by_name():
    x, y = data()
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(tree=np.array(["ash", "birch", "cedar"])[y])
    result = leakscope.audit(frame, target="tree", model="softmax", l2=0.01, target_eta=0.4)
    assert result["records"]["eta"]["max"] == pytest.approx(0.4)
    assert result["data"]["classes"] == ["ash", "birch", "cedar"]
    assert set(result["model"]["coefficients"]) == {
        f"{tree}: {column}" for tree in ("ash", "birch", "cedar") for column in ("a", "b", "c", "(intercept)")
    }
    with pytest.raises(leakscope.LeakscopeError, match="max_classes"):
        leakscope.audit(frame, target="tree", model="softmax", max_classes=2)


def test_noise_with_a_shape(tmp_path):
    x, y = data(n=400)
    site = np.array(["north", "south"])[(x[:, 0] > 0.2).astype(int)]
    frame = pd.DataFrame(x[:, 1:], columns=["b", "c"]).assign(site=site, tree=np.array(["ash", "birch", "cedar"])[y])
    common = dict(target="tree", model="softmax", l2=0.05, one_hot="drop-last", target_eta=3.0)
    for shape in ("shaped", "optimal"):
        audited = leakscope.audit(frame, noise_shape=shape, **common)
        noise = audited["noise"]
        assert noise["gain"] > (1 if shape == "optimal" else 0.5) and audited["records"]["eta"]["max"] <= 3 and 0 < noise["covariance_information"] <= 0.05
        assert noise["cost"] >= noise["lower_bound_on_cost"] and set(noise["deviations"]) == set(audited["model"]["coefficients"])
        assert noise["gap"] >= noise["programme_gap"] >= 0
        assert leakscope.calibrate(data=frame, noise_shape=shape, **common)["noise"]["gain"] == pytest.approx(noise["gain"], rel=0.3)
        balanced = leakscope.balance(frame, iterations=2, noise_shape=shape, **common)
        assert len(balanced["bought"]["gains"]) == 4
    attacked = leakscope.attack(frame, secret="site", sigmas=[0.05], trials=10, seed=1, noise_shape="shaped", **common)
    assert attacked["results"] and attacked["noise"]["shape"] == "shaped"
    bounded = leakscope.bound(data=frame, secret="site", seed=1, noise_shape="shaped", **common)
    assert 0.5 <= bounded["bounds"][0]["success"] <= 1.0
    frame.to_csv(tmp_path / "public.csv", index=False)
    public = str(tmp_path / "public.csv")
    released = leakscope.release(frame, noise_shape="shaped", shape_from=public, out=tmp_path / "out", **common)
    assert released["mechanism"]["shape"]["source"]["kind"] == "table"
    for column in ("b", "c", "(intercept)"):
        assert sum(released["coefficients"][f"{tree}: {column}"] for tree in ("ash", "birch", "cedar")) == pytest.approx(0, abs=1e-9)


def test_every_function_takes_softmax(tmp_path):
    x, y = data(n=150)
    site = np.array(["north", "south"])[(x[:, 0] > 0.2).astype(int)]
    frame = pd.DataFrame(x[:, 1:], columns=["b", "c"]).assign(site=site, tree=np.array(["ash", "birch", "cedar"])[y])
    common = dict(target="tree", model="softmax", l2=0.05)
    attacked = leakscope.attack(frame, secret="site", sigmas=[0.01, 10.0], trials=20, seed=1, **common)
    right = {(r["attack"], r["sigma"]): r["accuracy"] for r in attacked["results"]}
    assert right["white-box", 0.01] > right["white-box", 10.0]
    bounded = leakscope.bound(data=frame, secret="site", sigma=0.1, seed=1, **common)
    assert 0.5 <= bounded["bounds"][0]["success"] <= 1.0
    balanced = leakscope.balance(frame, iterations=3, **common)
    assert len(balanced["iterations"]) == 4
    solved = leakscope.calibrate(data=frame, target_eta=0.5, **common)
    released = leakscope.release(frame, target_eta=0.5, out=tmp_path / "out", **common)
    assert released["subject"]["family"] == "softmax" and solved["sigma"] > 0
    assert set(released["coefficients"]) == {
        f"{tree}: {column}" for tree in ("ash", "birch", "cedar") for column in ("b", "c", "site=north", "(intercept)")
    }
    audited = leakscope.audit(frame, secret="site", score=frame, sigma=0.3, **common)
    assert audited["score"]["eta"]["max"] > 0 and audited["secret"]["bounds"]


def test_one_class_against_the_others_is_refused():
    x, y = data()
    model = LogisticRegression(solver="liblinear", fit_intercept=False)
    try:
        model.fit(x, y)
    except ValueError:
        pytest.skip("this scikit-learn fits no three classes with liblinear")
    with pytest.raises(leakscope.OptionError, match="lbfgs"):
        leakscope.audit(model, x, y)
