"""Pipelines of scikit-learn and results of statsmodels, opened: the audit is that of the frame that went in."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LogisticRegression, LogisticRegressionCV, Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, PolynomialFeatures, RobustScaler, StandardScaler

import leakscope

NEWTON = dict(solver="newton-cholesky", tol=1e-12, max_iter=1000)
N = 240


def frame(n=N):
    rng = np.random.default_rng(5)
    df = pd.DataFrame({
        "age": rng.normal(50, 12, n).round(1), "dose": rng.gamma(2.0, 3.0, n), "visits": rng.integers(0, 9, n),
        "race": rng.choice(["asian", "black", "white"], n), "site": rng.choice([3, 7], n),
    }, index=[f"p{i}" for i in range(n)])
    z = 0.03 * df["age"] - 0.1 * df["dose"] + (df["race"] == "white") + rng.normal(size=n)
    return df, z.to_numpy(), (z > z.median()).astype(int).to_numpy()


NUMBERS, CATEGORIES = ["age", "dose", "visits"], ["race", "site"]


def same(one, other, rtol=1e-6):
    assert one.distance["relative"] < 1e-7
    assert list(one.attributes.index) == list(other.attributes.index)
    assert np.allclose(one.records["eta"], other.records["eta"], rtol=rtol)
    for column in ("eta_max", "min_sd"):
        assert np.allclose(one.attributes[column], other.attributes[column], rtol=rtol), column
    told = [{t["attribute"]: (t["from"], t["to"], t["worst"]) for t in r["tell"]["attributes"]} for r in (one, other)]
    assert told[0].keys() == told[1].keys()
    for name, (start, end, worst) in told[0].items():
        assert told[1][name][:2] == (start, end) and told[1][name][2] == pytest.approx(worst, rel=1e-4)


@pytest.mark.parametrize("drop, one_hot", [("first", "drop-first"), (None, "full")])
@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_a_pipeline_is_the_audit_of_its_frame(family, drop, one_hot):
    df, y, classes = frame()
    encode = ColumnTransformer([("n", StandardScaler(), NUMBERS), ("c", OneHotEncoder(drop=drop), CATEGORIES)])
    model = Ridge(alpha=12.0) if family == "linear" else LogisticRegression(C=1 / 12.0, **NEWTON)
    target = y if family == "linear" else classes
    result = leakscope.audit(make_pipeline(encode, model).fit(df, target), df, target, sigma=0.3)
    plain = leakscope.audit(df, target, model=family, l2=12.0 / N, one_hot=one_hot, categorical=["site"], sigma=0.3)
    same(result, plain)
    assert set(result.attributes.index) == set(df.columns)
    assert list(result.records.index) == list(df.index)


@pytest.mark.parametrize("scaler", [MinMaxScaler(), MaxAbsScaler(), RobustScaler(), StandardScaler(with_std=False)], ids=lambda s: type(s).__name__)
def test_other_scalers_are_followed(scaler):
    df, y, _ = frame()
    x = df[NUMBERS]
    pipe = make_pipeline(scaler, Ridge(alpha=3.0)).fit(x, y)
    result = leakscope.audit(pipe, x, y, sigma=0.3)
    assert result.distance["relative"] < 1e-9 and set(result.attributes.index) == set(NUMBERS)
    # The same model of columns that were scaled before: η of a record is that of the model's units, errors are those of the frame.
    before = leakscope.audit(pipe[-1], scaler.transform(x), y, sigma=0.3)
    assert np.allclose(result.records["eta"], before.records["eta"], rtol=1e-9)
    stretch = np.ptp(x.to_numpy(), axis=0) / np.ptp(scaler.transform(x), axis=0)
    for j, name in enumerate(NUMBERS):
        assert result.attributes.loc[name, "min_sd"] == pytest.approx(before.attributes.loc[f"x{j}", "min_sd"] * stretch[j], rel=1e-9)


def test_arrays_passed_columns_and_nested_pipelines():
    df, y, _ = frame()
    x = df[NUMBERS].to_numpy(dtype=float)
    inner = make_pipeline(MinMaxScaler(), StandardScaler())
    pipe = make_pipeline(make_column_transformer((inner, [0, 1]), remainder="passthrough"), Ridge(alpha=2.0)).fit(x, y)
    result = leakscope.audit(pipe, x, y, sigma=1.0)
    assert result.distance["relative"] < 1e-9 and set(result.attributes.index) == {"x0", "x1", "x2"}
    dropped = make_pipeline(make_column_transformer((StandardScaler(), slice(0, 2))), Ridge(alpha=2.0)).fit(x, y)
    result = leakscope.audit(dropped, x, y, sigma=1.0)
    same(result, leakscope.audit(x[:, :2], y, l2=2.0 / N, sigma=1.0))


def test_what_an_imputer_filled_in_is_filled_in():
    df, y, _ = frame()
    holes = df.copy()
    holes.loc[holes.index[::9], "age"] = np.nan
    holes["race"] = holes["race"].astype(object)
    holes.loc[holes.index[::11], "race"] = np.nan
    encode = ColumnTransformer([
        ("n", make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        ("c", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first")), ["race"])])
    pipe = make_pipeline(encode, Ridge(alpha=5.0)).fit(holes, y)
    result = leakscope.audit(pipe, holes, y, sigma=0.3)
    full = holes[[*NUMBERS, "race"]].copy()
    full["age"] = full["age"].fillna(full["age"].mean())
    full["race"] = full["race"].fillna(full["race"].mode()[0])
    same(result, leakscope.audit(full, y, l2=5.0 / N, one_hot="drop-first", sigma=0.3))


def test_searches_and_models_that_choose_their_penalty():
    df, y, classes = frame()
    x = df[NUMBERS]
    grid = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0, 10.0]}).fit(x, y)
    alpha = grid.best_params_["ridge__alpha"]
    same(leakscope.audit(grid, x, y, sigma=0.3), leakscope.audit(x, y, l2=alpha / N, sigma=0.3))
    draws = RandomizedSearchCV(LogisticRegression(**NEWTON), {"C": [0.1, 1.0]}, n_iter=2, random_state=0).fit(x, classes)
    assert leakscope.audit(draws, x, classes).distance["relative"] < 1e-7
    cv = RidgeCV(alphas=[0.1, 30.0]).fit(x, y)
    result = leakscope.audit(cv, x, y)
    assert result.distance["relative"] < 1e-7 and result["model"]["l2"] == pytest.approx(cv.alpha_ / N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        logistic = LogisticRegressionCV(Cs=[0.1, 1.0], scoring="accuracy", **NEWTON).fit(x, classes)
    assert leakscope.audit(logistic, x, classes).distance["relative"] < 1e-7
    with pytest.raises(leakscope.OptionError, match="best_estimator_"):
        leakscope.audit(GridSearchCV(Ridge(), {"alpha": [1.0]}, refit=False).fit(x, y), x, y)


@pytest.mark.parametrize("weight", [None, "balanced"])
def test_a_ridge_of_classes(weight):
    df, _, classes = frame()
    x, names = df[NUMBERS], np.where(classes, "yes", "no")
    for model in (RidgeClassifier(alpha=4.0, class_weight=weight), RidgeClassifierCV(alphas=[4.0], class_weight=weight)):
        result = leakscope.audit(model.fit(x, names), x, names, sigma=1.0)
        assert result.distance["relative"] < 1e-7 and result["model"]["family"] == "linear"


def test_what_cannot_be_opened_is_said_and_audited_as_the_model_sees_it():
    df, y, _ = frame()
    x = df[NUMBERS]
    poly = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), Ridge(1.0)).fit(x, y)
    with pytest.warns(UserWarning, match="PolynomialFeatures is not opened"):
        result = leakscope.audit(poly, x, y)
    assert result["d"] == 9 and "age dose" in result.attributes.index
    scaled = make_pipeline(make_column_transformer((OneHotEncoder(drop="first"), ["race"])), StandardScaler(), Ridge(1.0)).fit(df, y)
    with pytest.warns(UserWarning, match="StandardScaler after an encoder"):
        leakscope.audit(scaled, df, y)


def test_private_models_that_noise_leaves_nothing_of_warn_with_numbers():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(60, 4)), rng.normal(size=60)
    y = (x[:, 0] + noise > 0).astype(int)
    with pytest.warns(UserWarning, match=r"PrivateLogistic: noise of sigma_=.*leaves nothing of the model.*l2 \(now 0.001"):
        leakscope.PrivateLogistic(sigma=500.0, random_state=1).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leakscope.PrivateLogistic(sigma=1e-3, random_state=1).fit(x, y)
        leakscope.PrivateLinear(sigma=1e-3, random_state=1).fit(x, x[:, 0] + 0.1 * noise)


statsmodels = pytest.importorskip("statsmodels.api", reason="NOT TESTED: statsmodels is not installed, so nothing is known of its results")


def test_results_of_statsmodels():
    import statsmodels.formula.api as formula

    df, y, classes = frame()
    df = df.assign(y=y, case=classes, weight=np.random.default_rng(1).uniform(0.5, 2, N))
    design = statsmodels.add_constant(df[NUMBERS])
    for results, plain in [
        (statsmodels.OLS(y, design).fit(), dict(model="linear")),
        (statsmodels.WLS(y, design, weights=df["weight"].to_numpy()).fit(), dict(model="linear", weights=df["weight"].to_numpy())),
        (statsmodels.Logit(classes, design).fit(disp=0, tol=1e-12), dict(model="logistic")),
        (statsmodels.GLM(df["visits"].to_numpy(), statsmodels.add_constant(df[["age", "dose"]]), family=statsmodels.families.Poisson()).fit(tol=1e-12),
         dict(model="poisson")),
    ]:
        columns = [c for c in results.model.exog_names if c != "const"]
        result = leakscope.audit(results, sigma=0.3)
        other = leakscope.audit(df[columns].to_numpy(dtype=float), np.asarray(results.model.endog), columns=columns, scale="none", sigma=0.3, **plain)
        assert result.distance["relative"] < 1e-7
        assert np.allclose(result.records["eta"], other.records["eta"], rtol=1e-6)
    results = formula.ols("y ~ age + dose + C(race)", data=df).fit()
    result = leakscope.audit(results, sigma=0.3)
    assert set(result.attributes.index) == {"age", "dose", "race"} and result.distance["relative"] < 1e-9
    with pytest.raises(leakscope.OptionError, match="Probit"):
        leakscope.audit(statsmodels.Probit(classes, design).fit(disp=0))


def test_what_a_pipeline_takes_from_the_rows_leaves_no_page_green():
    df, y, classes = frame()
    x = df[NUMBERS].astype(float)
    gaps = x.copy()
    gaps.iloc[::30, 0] = np.nan

    def colour(model, rows=x, target=y):
        found = leakscope.audit(model.fit(rows, target), rows, target, sigma=30.0)
        return found["verdict"]["colour"], found["data"].get("read_off", [])

    # Means and standard deviations are counted, and gaps that are not there are not filled.
    assert colour(Ridge(alpha=12.0)) == ("green", [])
    assert colour(make_pipeline(StandardScaler(), Ridge(alpha=12.0))) == ("green", [])
    assert colour(make_pipeline(SimpleImputer(), StandardScaler(), Ridge(alpha=12.0))) == ("green", [])
    for step in (MinMaxScaler(), MaxAbsScaler(), RobustScaler(), StandardScaler(with_mean=False)):
        assert colour(make_pipeline(step, Ridge(alpha=12.0))) == ("amber", ["elsewhere"]), step
    assert colour(make_pipeline(SimpleImputer(), Ridge(alpha=12.0)), gaps) == ("amber", ["elsewhere"])
    with pytest.warns(UserWarning, match="PCA is not opened"):
        assert colour(make_pipeline(PCA(2), Ridge(alpha=12.0)))[0] == "amber"
    # So are settings that were found on the rows: another record may find another.
    assert colour(RidgeCV(alphas=[1.0, 12.0])) == ("amber", ["elsewhere"])
    assert colour(GridSearchCV(Ridge(), {"alpha": [1.0, 12.0]})) == ("amber", ["elsewhere"])
    balanced = LogisticRegression(C=1 / 12.0, class_weight="balanced", **NEWTON)
    assert colour(balanced, target=classes) == ("amber", ["elsewhere"])
    # Without an intercept nothing takes the means up.
    assert colour(make_pipeline(StandardScaler(), Ridge(alpha=12.0, fit_intercept=False))) == ("amber", ["scales"])
