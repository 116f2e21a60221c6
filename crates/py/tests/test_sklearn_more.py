"""Estimators that stand for known ones: stochastic gradients, elastic nets on their active set; and what is said of the others."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.linear_model import (  # noqa: E402
    ElasticNet, Lasso, LogisticRegression, QuantileRegressor, SGDClassifier, SGDRegressor,
)
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import leakscope  # noqa: E402


def data(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, x @ np.array([1.0, -0.6, 0.02, 0.4])[:d] + 0.5 * rng.normal(size=n)


def test_stochastic_logistic_regression():
    x, y = data()
    y = (y > 0).astype(int)
    model = SGDClassifier(loss="log_loss", alpha=0.05, max_iter=4000, tol=1e-9, random_state=0, average=True).fit(x, y)
    result = leakscope.audit(model, x, y, sigma=0.5)
    # it is where the minimiser at λ = α is, nearly; at another λ it would be far
    assert result.distance["relative"] < 0.1
    names = [f"x{j}" for j in range(4)]
    values = dict(zip(names, model.coef_.ravel())) | {"(intercept)": model.intercept_[0]}
    same = leakscope.audit(x, y, model="logistic", l2=0.05, scale="none", coefficients=values, sigma=0.5)
    assert np.allclose(result.records["eta"], same.records["eta"], rtol=1e-12)
    exact = LogisticRegression(C=1 / (0.05 * len(y)), tol=1e-10).fit(x, y)
    assert np.allclose(result.records["eta"], leakscope.audit(exact, x, y, sigma=0.5).records["eta"], rtol=0.1)
    weights = np.linspace(0.5, 2, len(y))
    weighted = SGDClassifier(loss="log_loss", alpha=0.05, max_iter=4000, tol=1e-9, random_state=0, average=True)
    weighted.fit(x, y, sample_weight=weights)
    assert leakscope.audit(weighted, x, y, sample_weight=weights).distance["relative"] < 0.1


def test_stochastic_least_squares_in_a_pipeline():
    x, y = data()
    model = make_pipeline(StandardScaler(), SGDRegressor(alpha=0.1, max_iter=4000, tol=1e-9, random_state=0, average=True)).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert leakscope.audit(model, x, y, sigma=0.5).distance["relative"] < 0.1


@pytest.mark.parametrize("model", [
    ElasticNet(alpha=0.4, l1_ratio=0.5, fit_intercept=False, tol=1e-14, max_iter=100_000),
    Lasso(alpha=0.15, fit_intercept=False, tol=1e-14, max_iter=100_000),
])
def test_an_elastic_net_on_its_active_set_against_refits(model):
    """η of a record is the spectral norm of ∂w/∂(x, y), here by refits of scikit-learn's own solver."""
    x, y = data(60)
    model.fit(x, y)
    assert 0 < (model.coef_ != 0).sum() < 4
    with pytest.warns(UserWarning, match="active set.*of 4 columns"):
        result = leakscope.audit(model, x, y, sigma=0.5, label="secret")
    kept, h = np.flatnonzero(model.coef_), 1e-5
    # columns keep the names that they have in X
    assert [c for c in result.records.columns if c.startswith("eta_x")] == [f"eta_x{j}" for j in kept]
    for i in (0, 7, 33):
        columns = []
        for j in (*range(4), "y"):
            ends = []
            for s in (h, -h):
                moved, target = x.copy(), y.copy()
                if j == "y":
                    target[i] += s
                else:
                    moved[i, j] += s
                ends.append(type(model)(**model.get_params()).fit(moved, target).coef_[kept])
            columns.append((ends[0] - ends[1]) / (2 * h))
        expected = np.linalg.norm(np.stack(columns, axis=1), 2) / 0.5
        assert result.records["eta"].iloc[i] == pytest.approx(expected, rel=1e-4)


def test_an_elastic_net_in_a_pipeline_or_a_frame_keeps_the_names():
    import pandas as pd

    x, y = data(80)
    scaled = make_pipeline(StandardScaler(), ElasticNet(alpha=0.2)).fit(x, y)
    kept = np.flatnonzero(scaled[-1].coef_)
    assert 0 < len(kept) < 4
    with pytest.warns(UserWarning, match="a pipeline before an ℓ₁ penalty is not opened"):
        result = leakscope.audit(scaled, x, y, sigma=0.5, label="public")
    assert [c for c in result.records.columns if c.startswith("eta_x")] == [f"eta_x{j}" for j in kept]
    frame = pd.DataFrame(x, columns=list("abcd"))
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        result = leakscope.audit(ElasticNet(alpha=0.2).fit(frame, y), frame, y, sigma=0.5, label="public")
    assert [c for c in "abcd" if f"eta_{c}" in result.records.columns] == ["abcd"[j] for j in kept]
    assert not any("not opened" in str(w.message) for w in messages)


def test_searches_over_penalties_stand_for_what_they_chose():
    from leakscope._sklearn_stand_ins import stand_in
    from sklearn.linear_model import ElasticNetCV, LassoCV

    x, y = data(60)
    for model in (ElasticNetCV(l1_ratio=0.5, cv=3), LassoCV(cv=3)):
        model.fit(x, y)
        with pytest.warns(UserWarning, match="active set"):
            steps, ridge = stand_in(None, model, None, len(y))
        ratio = 0.5 if isinstance(model, ElasticNetCV) else 1.0
        assert ridge.alpha == pytest.approx(model.alpha_ * (1 - ratio) * len(y))
        assert steps.transform(x).shape[1] == len(ridge.coef_) == (model.coef_ != 0).sum()


@pytest.mark.parametrize("model, words", [
    (SGDClassifier(loss="hinge"), "loss='hinge'.*log_loss"),
    (QuantileRegressor(), "QuantileRegressor.*pinball.*attack_model"),
    (SGDClassifier(loss="log_loss", penalty="l1"), "penalty='l1'"),
    (SGDRegressor(loss="epsilon_insensitive"), "squared_error"),
    (ElasticNet(alpha=100.0), "every coefficient is zero"),
])
def test_what_is_not_known_says_so(model, words):
    x, y = data()
    classes = hasattr(model, "predict_proba") or "Classifier" in type(model).__name__
    y = (y > 0).astype(int) if classes else np.exp(y)
    with pytest.raises(leakscope.OptionError, match=f"(?s){words}"):
        leakscope.audit(model.fit(x, y), x, y)
