"""Fitted scikit-learn models: their parametrisation of the penalty, weights, pipelines, and models of the wrong kind."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    ElasticNet, Lasso, LinearRegression, LogisticRegression, PoissonRegressor, Ridge, SGDClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import leakscope

NEWTON = dict(solver="newton-cholesky", tol=1e-12, max_iter=1000)


def data(family, n=250, d=4):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, d)) + 0.3
    z = x @ rng.normal(size=d) * 0.5
    if family == "linear":
        return x, z + rng.normal(size=n)
    if family == "logistic":
        return x, (z + rng.logistic(size=n) > 0).astype(int)
    return x, rng.poisson(np.exp(z)).astype(float)


MODELS = [
    ("linear", Ridge(alpha=3.0)),
    ("linear", Ridge(alpha=0.5, fit_intercept=False, solver="cholesky")),
    ("linear", LinearRegression()),
    ("linear", LinearRegression(fit_intercept=False)),
    ("logistic", LogisticRegression(C=0.7, **NEWTON)),
    ("logistic", LogisticRegression(C=np.inf, **NEWTON)),
    ("logistic", LogisticRegression(C=2.0, fit_intercept=False, **NEWTON)),
    ("logistic", LogisticRegression(C=2.0, class_weight="balanced", **NEWTON)),
    ("logistic", LogisticRegression(C=2.0, class_weight={0: 1.0, 1: 3.0}, **NEWTON)),
    ("logistic", LogisticRegression(C=1.0, fit_intercept=False, solver="liblinear", tol=1e-12, max_iter=10000)),
    ("poisson", PoissonRegressor(alpha=0.3, **NEWTON)),
    ("poisson", PoissonRegressor(alpha=0.0, fit_intercept=False, **NEWTON)),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("family, model", MODELS, ids=lambda v: v if isinstance(v, str) else "")
def test_the_penalty_is_translated_exactly(family, model, weighted):
    x, y = data(family)
    w = np.random.default_rng(3).uniform(0.2, 3.0, len(y)) if weighted else None
    model.fit(x, y, sample_weight=w)
    result = leakscope.audit(model, x, y, sample_weight=w, sigma=1.0)
    assert result.distance["relative"] < 1e-7, "scikit-learn's minimiser is ours"
    assert result.coefficients["x0"] == np.ravel(model.coef_)[0]
    # A penalty that is off by a tenth is seen.
    l2 = result["model"]["l2"]
    if l2 > 0:
        off = leakscope.audit(x, y, model=family, l2=1.1 * l2, scale="none", fit_intercept=model.fit_intercept,
                              weights=w, coefficients=result.coefficients)
        assert off.distance["relative"] > 1e-5


@pytest.mark.parametrize("family, model", MODELS[:1] + MODELS[4:5] + MODELS[10:11], ids=lambda v: v if isinstance(v, str) else "")
def test_leakage_is_how_a_refit_moves(family, model):
    """The oracle: refit scikit-learn's own estimator with one value of one record changed."""
    x, y = data(family, n=60)
    model.fit(x, y)
    result = leakscope.audit(model, x, y, sigma=1.0, label="public")
    record, column, h = 7, 2, 1e-5

    def coefficients(step):
        moved = x.copy()
        moved[record, column] += step
        fitted = model.fit(moved, y)
        return np.append(np.ravel(fitted.coef_), np.ravel(fitted.intercept_))

    derivative = (coefficients(h) - coefficients(-h)) / (2 * h)
    answer = result.records[f"eta_x{column}"].iloc[record]
    assert answer == pytest.approx(np.linalg.norm(derivative), rel=1e-4)


def test_a_model_that_is_not_at_its_minimiser_is_reported():
    x, y = data("logistic")
    early = LogisticRegression(C=1.0, max_iter=1)
    with pytest.warns(Warning):
        early.fit(x, y)
    result = leakscope.audit(early, x, y)
    assert result.distance["relative"] > 1e-3 and result.distance["excess_objective"] > 0
    assert any("away from the minimiser" in warning for warning in result.warnings)


def test_two_valued_targets_of_regressions_are_not_recoded():
    x, y = data("logistic")
    model = Ridge(alpha=1.0).fit(x, y)
    assert leakscope.audit(model, x, y).distance["relative"] < 1e-9


def test_classes_of_every_kind():
    x, y = data("logistic")
    expected = None
    for classes in (y, y.astype(bool), np.where(y, "yes", "no"), np.where(y, 2.0, -1.0), np.where(y, 7, 3)):
        model = LogisticRegression(C=1.0, **NEWTON).fit(x, classes)
        result = leakscope.audit(model, x, classes, sigma=1.0)
        assert result.distance["relative"] < 1e-7
        expected = result.records["eta"].to_numpy() if expected is None else expected
        assert np.allclose(result.records["eta"], expected, rtol=1e-6)


def test_a_pipeline_with_its_names_and_index():
    x, y = data("linear")
    df = pd.DataFrame(x, columns=["a", "b", "c", "d"], index=[f"r{i}" for i in range(len(y))])
    df["race"] = np.where(x[:, 0] > 0.5, "one", "two")
    encode = ColumnTransformer([("n", StandardScaler(), ["a", "b", "c", "d"]), ("c", OneHotEncoder(drop="first"), ["race"])])
    pipeline = make_pipeline(encode, Ridge(alpha=2.0)).fit(df, y)
    result = leakscope.audit(pipeline, df, y, sigma=0.5, group=df["race"], score=df[:10], test=(df[:50], y[:50]))
    assert result.distance["relative"] < 1e-9
    assert set(result.attributes.index) == {"a", "b", "c", "d", "race"}
    assert list(result.records.index) == list(df.index) and len(result.scores) == 10
    assert sorted(result.groups.index) == ["one", "two"] and result["utility"]["rows"] == 50
    poly = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), LinearRegression()).fit(x, y)
    assert leakscope.audit(poly, x, y)["d"] == 14
    alone = make_pipeline(Ridge()).fit(x, y)
    assert leakscope.audit(alone, x, y).distance["relative"] < 1e-9


@pytest.mark.parametrize("model, words", [
    (RandomForestClassifier(n_estimators=2), "RandomForestClassifier.*no η.*attack_model"),
    (Lasso(alpha=50.0), "Lasso.*zero"),
    (ElasticNet(alpha=50.0), "ElasticNet.*zero"),
    (SGDClassifier(), "SGDClassifier.*log_loss"),
    (Ridge(positive=True), "positive"),
    (LinearRegression(positive=True), "positive"),
    (LogisticRegression(solver="saga", l1_ratio=0.5, max_iter=10000), "l1"),
    (StandardScaler(), "StandardScaler"),
])
def test_models_of_the_wrong_kind_are_refused(model, words):
    x, y = data("logistic")
    model.fit(x, y)
    with pytest.raises(leakscope.OptionError, match=f"(?s){words}"):
        leakscope.audit(model, x, y)


def test_what_else_is_refused():
    x, y = data("logistic")
    with pytest.raises(leakscope.OptionError, match="not fitted.*fit"):
        leakscope.audit(Ridge(), x, y)
    two = Ridge().fit(x, np.column_stack([y, y]))
    with pytest.raises(leakscope.OptionError, match="2 targets"):
        leakscope.audit(two, x, y)
    ridge = Ridge().fit(x, y)
    with pytest.raises(leakscope.DataError, match="3 columns, but the estimator was fitted on 4"):
        leakscope.audit(ridge, x[:, :3], y)
    with pytest.raises(leakscope.DataError, match="y: 249 values"):
        leakscope.audit(ridge, x, y[1:])
    with pytest.raises(leakscope.OptionError, match="l2: the estimator says it"):
        leakscope.audit(ridge, x, y, l2=1.0)
    with pytest.raises(leakscope.DataError, match="rows and targets"):
        leakscope.audit(ridge, x)
    with pytest.raises(leakscope.DataError, match="sample_weight"):
        leakscope.audit(ridge, x, y, sample_weight=[1.0])
    with pytest.raises(leakscope.OptionError, match="estimators"):
        leakscope.balance(ridge, y)


def grouped(n=200):
    rng = np.random.default_rng(3)
    df = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"), index=np.arange(n) + 1000)
    df["g"] = rng.choice(["u", "v", "w"], n)
    df["w"] = rng.uniform(0.5, 2, n)
    df["pid"] = [f"p{i}" for i in range(n)]
    return df, (df["a"] + rng.normal(size=n)).rename("y")


def test_group_weights_and_id_are_columns_of_the_callers_frame():
    import polars as pl
    import pyarrow as pa

    df, y = grouped()
    pipe = make_pipeline(
        ColumnTransformer([("s", StandardScaler(), list("abc")), ("o", OneHotEncoder(drop="first"), ["g"])]), Ridge(2.0))
    pipe.fit(df, y, ridge__sample_weight=df["w"])
    by_values = leakscope.audit(pipe, df, y, group=df["g"], weights=df["w"], sigma=1)
    by_name = leakscope.audit(pipe, df, y, group="g", weights="w", id="pid", sigma=1)
    assert by_name.groups.equals(by_values.groups) and set(by_name.groups.index) == {"u", "v", "w"}
    assert by_name.distance["relative"] < 1e-9
    assert (by_name.records["eta"].to_numpy() == by_values.records["eta"].to_numpy()).all()
    assert by_name.records["pid"].tolist() == df["pid"].tolist()
    numbers = Ridge(2.0).fit(df[list("abc")].to_numpy(), y)
    for frame in (pl.from_pandas(df[["a", "b", "c", "g"]]), pa.table(df[["a", "b", "c", "g"]].to_dict("list"))):
        with pytest.raises(leakscope.DataError, match="group: there is no column `q` in X; it has a, b, c, g"):
            leakscope.audit(make_pipeline(_Chosen(), numbers), frame, y.to_numpy(), group="q")
        result = leakscope.audit(make_pipeline(_Chosen(), numbers), frame, y.to_numpy(), group="g", sigma=1)
        assert set(np.asarray(result.groups["name"]).tolist()) == {"u", "v", "w"}
    with pytest.raises(leakscope.DataError, match="weights='w': X is an array"):
        leakscope.audit(numbers, df[list("abc")].to_numpy(), y.to_numpy(), weights="w")


class _Chosen(TransformerMixin, BaseEstimator):
    """The columns a, b and c of any frame, as an array."""

    def fit(self, x, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def transform(self, x):
        return np.column_stack([np.asarray(x[c]) for c in "abc"])


def test_a_pipeline_may_end_in_a_pipeline():
    x, y = data("linear")
    inner = make_pipeline(StandardScaler(), make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), Ridge(2.0)))
    flat = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), Ridge(2.0))
    one, other = (leakscope.audit(m.fit(x, y), x, y, sigma=1) for m in (inner, flat))
    assert one.records.equals(other.records) and one.attributes.equals(other.attributes)
    assert "x0 x1" in one.attributes.index


def test_targets_in_another_order_than_the_rows_are_refused():
    df, y = grouped()
    model = Ridge(2.0).fit(df[list("abc")], y)
    mixed = y.sample(frac=1, random_state=0)
    with pytest.raises(leakscope.DataError, match=r"y: its index is not that of the rows.*y.loc\[X.index\]"):
        leakscope.audit(model, df[list("abc")], mixed)
    again = leakscope.audit(model, df[list("abc")], mixed.loc[df.index], sigma=1)
    assert again.records.equals(leakscope.audit(model, df[list("abc")], y, sigma=1).records)


def test_columns_in_another_order_than_the_estimator_knows_are_refused():
    df, y = grouped()
    model = Ridge(2.0).fit(df[list("abc")], y)
    with pytest.raises(leakscope.DataError, match="X: its columns are b, a, c; the estimator was fitted on a, b, c: give these, in this order"):
        leakscope.audit(model, df[list("bac")], y, sigma=1)
