"""Noise with a shape: estimators, releases, attacks, bounds and balancing."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import document, timeless

import leakscope


def table(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=n)
    X = np.column_stack([shared + 0.3 * rng.normal(size=n), shared + 0.3 * rng.normal(size=n), rng.integers(0, 2, size=n)])
    return X, X @ [1.0, -0.5, 0.8] + 0.5 * rng.normal(size=n)


def test_summary_and_covariance_of_an_estimator():
    X, y = table()
    frame = pd.DataFrame(X, columns=["age", "weight", "sex"])
    model = leakscope.PrivateLinear(noise_shape="shaped", target_eta=1.0, random_state=1).fit(frame, y)
    rows = {row["name"]: row for row in model.summary()}
    assert set(rows) == {"age", "weight", "sex", "(intercept)"}
    for j, name in enumerate(frame.columns):
        row = rows[name]
        assert row["coefficient"] == model.coef_[j] and row["noise_error"] == model.noise_error_[j] > 0
        assert row["low"] < row["coefficient"] < row["high"] and 0 <= row["p_value"] <= 1
    assert rows["(intercept)"]["noise_error"] == model.intercept_noise_error_
    noise = model.noise_
    # a shape that is read off the records is not released
    assert noise["shape"] == "isotropic" and noise["source"]["kind"] == "nowhere"
    assert len(noise["factor"]["entries"]) == 4 * 5 // 2
    plain = leakscope.PrivateLinear(sigma=0.5, random_state=1).fit(frame, y)
    assert plain.noise_ is None and np.all(plain.noise_error_ > 0)


def test_attributes_are_protected_by_number_and_by_name():
    X, y = table()
    frame = pd.DataFrame(X, columns=["age", "weight", "sex"])
    by_name = leakscope.PrivateLinear(noise_shape="shaped", protect=["age"], target_eta=0.5, random_state=3).fit(frame, y)
    by_number = leakscope.PrivateLinear(noise_shape="shaped", protect=[0], target_eta=0.5, random_state=3).fit(X, y)
    np.testing.assert_array_equal(by_name.coef_, by_number.coef_)
    assert by_name.noise_["goals"][0]["name"] == "x0"
    deviation = leakscope.PrivateLinear(noise_shape="shaped", target_sd={"age": 2.0}, random_state=3).fit(frame, y)
    assert deviation.noise_["goals"][0]["sd"] == 2.0
    logistic = leakscope.PrivateLogistic(noise_shape="shaped", target_eta=2.0, random_state=3).fit(X, y > 0)
    assert logistic.noise_ is not None and logistic.eta_max_ == 2.0


@pytest.mark.parametrize("options, expected", [
    (dict(protect=["height"], target_eta=1.0), "'height' is no column"),
    (dict(protect=[7], target_eta=1.0), "7 is no column"),
    (dict(noise_shape="round", target_eta=1.0), "shape"),
    (dict(noise_shape="shaped", sigma=1.0), "noise with a shape has no σ"),
    (dict(noise_shape="shaped", target_eta=1.0, shape_budget=0.0), "shape_budget"),
])
def test_bad_input_is_named(options, expected):
    X, y = table(200)
    with pytest.raises(ValueError, match=expected):
        leakscope.PrivateLinear(**options).fit(X, y)


def test_balancing_and_a_shape_go_together():
    X, y = table(300)
    model = leakscope.PrivateLinear(noise_shape="isotropic", protect=[0], target_eta=1.0, balance=2, random_state=1).fit(X, y)
    assert model.noise_["goals"][0]["eta"] == 1.0 and np.all(np.isfinite(model.coef_))


def test_where_isotropic_noise_is_safer_it_is_said():
    X, y = table(60)
    with pytest.warns(UserWarning, match="Isotropic noise is safer"):
        model = leakscope.PrivateLinear(noise_shape="shaped", target_eta=0.01, random_state=0).fit(X, y)
    assert model.noise_["shape"] == "isotropic"


def test_a_release_publishes_its_covariance(tmp_path):
    X, y = table()
    result = leakscope.release(X, y, noise_shape="shaped", target_eta=1.0, out=tmp_path)
    shape = result.document["mechanism"]["shape"]
    assert shape["source"]["kind"] == "nowhere"
    model = json.loads((tmp_path / "release-1" / "model.json").read_text())
    assert model["noise"]["factor"] == shape["factor"]
    assert set(model["noise_error"]) == set(result.document["coefficients"])
    assert result.document["measured"]["inference"]["coefficients"][0]["sampling_error"] > 0


def test_attacks_and_bounds_with_a_shape_are_the_command_lines(patients):
    options = dict(target="dose", id="patient", l2=0.01, secret="race", trials=5, seed=3, noise_shape="shaped", target_eta=1.0,
                   sigmas=0.5)
    flags = [f"--{k.replace('_', '-')}={v}" for k, v in options.items()]
    assert timeless(leakscope.attack(patients, **options).document) == timeless(document("attack", patients, *flags))
    options = dict(target="dose", id="patient", l2=0.01, secret="race", trials=0, noise_shape="shaped", target_eta=1.0)
    flags = [f"--{k.replace('_', '-')}={v}" for k, v in options.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = leakscope.bound(patients, **options).document
    assert timeless(ours) == timeless(document("bound", f"--data={patients}", *flags))
