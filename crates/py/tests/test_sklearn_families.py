"""Fitted scikit-learn models of the other families: LinearSVC, HuberRegressor, GammaRegressor, TweedieRegressor."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.linear_model import (  # noqa: E402
    GammaRegressor, HuberRegressor, LogisticRegression, SGDClassifier, SGDRegressor, TweedieRegressor,
)
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

import leakscope  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:HuberRegressor")
NEWTON = dict(solver="newton-cholesky", tol=1e-12, max_iter=1000)
SVC = dict(dual=False, tol=1e-12, max_iter=100_000)


def data(family, n=200, d=4):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, d)) + 0.3
    z = x @ rng.normal(size=d) * 0.5
    if family == "squared-hinge":
        return x, np.where(z + rng.logistic(size=n) > 0, "yes", "no")
    if family == "huber":
        return x, 3 * z + rng.normal(size=n) + np.where(np.arange(n) % 10 == 0, 30 * rng.normal(size=n), 0)
    if family == "gamma":
        return x, np.exp(z) * rng.gamma(2.0, 0.5, size=n) + 1e-9
    return x, np.exp(z) * np.maximum(rng.gamma(2.0, 0.5, size=n) - 0.3, 0)


MODELS = [
    ("squared-hinge", LinearSVC(C=0.3, **SVC)),
    ("squared-hinge", LinearSVC(C=2.0, intercept_scaling=5.0, **SVC)),
    ("squared-hinge", LinearSVC(C=0.1, fit_intercept=False, class_weight="balanced", **SVC)),
    ("huber", HuberRegressor(alpha=0.5, tol=1e-12, max_iter=100_000)),
    ("huber", HuberRegressor(alpha=0.01, epsilon=2.0, fit_intercept=False, tol=1e-12, max_iter=100_000)),
    ("gamma", GammaRegressor(alpha=0.2, **NEWTON)),
    ("gamma", TweedieRegressor(power=2, alpha=0.1, **NEWTON)),
    ("tweedie", TweedieRegressor(power=1.5, alpha=0.3, **NEWTON)),
    ("tweedie", TweedieRegressor(power=1.2, alpha=0.0, fit_intercept=False, **NEWTON)),
    ("tweedie", TweedieRegressor(power=1, alpha=0.05, **NEWTON)),
    ("huber", TweedieRegressor(power=0, alpha=0.3, **NEWTON)),
]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("family, model", MODELS, ids=lambda v: v if isinstance(v, str) else "")
def test_the_penalty_is_translated_exactly(family, model, weighted):
    x, y = data(family)
    w = np.random.default_rng(3).uniform(0.2, 3.0, len(y)) if weighted else None
    model.fit(x, y, sample_weight=w)
    result = leakscope.audit(model, x, y, sample_weight=w, sigma=1.0)
    # lbfgs stops where its line search does
    assert result.distance["relative"] < (1e-4 if isinstance(model, HuberRegressor) else 1e-6), result.distance
    assert result.coefficients["x0"] == np.ravel(model.coef_)[0]


@pytest.mark.parametrize("family, model", [MODELS[0], MODELS[1], MODELS[5], MODELS[7]], ids=lambda v: v if isinstance(v, str) else "")
def test_leakage_is_how_a_refit_moves(family, model):
    """The oracle: refit scikit-learn's own estimator with one value of one record changed."""
    x, y = data(family, n=60)
    model.fit(x, y)
    result = leakscope.audit(model, x, y, sigma=1.0, label="public")
    # liblinear stops some 1e-8 from the minimiser whatever its tolerance, which over a shorter step is more than the digits compared
    h, near = (1e-3, 5e-4) if family == "squared-hinge" else (1e-4, 1e-8)
    for record, column in ((7, 2), (31, 0)):
        def coefficients(step):
            moved = x.copy()
            moved[record, column] += step
            fitted = model.fit(moved, y)
            return np.append(np.ravel(fitted.coef_), np.ravel(fitted.intercept_))

        derivative = (coefficients(h) - coefficients(-h)) / (2 * h)
        answer = result.records[f"eta_x{column}"].iloc[record]
        assert answer == pytest.approx(np.linalg.norm(derivative), rel=near)


def test_one_class_against_the_others_is_as_many_models_whose_information_adds_up():
    """What the refusal says: the audits of all classes together are how a refit of the model of three classes moves."""
    x, _ = data("squared-hinge", n=60)
    y = np.array(["red", "green", "blue"])[np.argmax(x[:, :3] + np.random.default_rng(2).normal(size=(60, 3)), axis=1)]
    model = LinearSVC(C=0.3, **SVC).fit(x, y)
    with pytest.raises(leakscope.OptionError, match="LinearSVC has 3 classes.*each of one class against the others.*y == c"):
        leakscope.audit(model, x, y)
    with pytest.raises(leakscope.OptionError, match="SGDClassifier has 3 classes.*y == c"):
        leakscope.audit(SGDClassifier(loss="squared_hinge").fit(x, y), x, y)
    audits = [leakscope.audit(LinearSVC(C=0.3, **SVC).fit(x, y == c), x, y == c, label="public", sigma=1.0) for c in model.classes_]
    for record, column in ((7, 2), (31, 0)):
        ends = []
        for step in (1e-3, -1e-3):
            moved = x.copy()
            moved[record, column] += step
            fitted = LinearSVC(C=0.3, **SVC).fit(moved, y)
            ends.append(np.append(fitted.coef_.ravel(), fitted.intercept_))
        result = np.sqrt(sum(a.records[f"eta_x{column}"].iloc[record] ** 2 for a in audits))
        assert result == pytest.approx(np.linalg.norm(ends[0] - ends[1]) / 2e-3, rel=1e-3)


def test_the_scale_of_a_huber_regression_is_held_and_that_is_said():
    x, y = data("huber", n=150)
    model = HuberRegressor(alpha=0.5, tol=1e-12, max_iter=100_000).fit(x, y)
    with pytest.warns(UserWarning, match="scale.*held"):
        result = leakscope.audit(model, x, y, sigma=1.0, label="public")
    assert any("threshold" in line for line in result["assumptions"])
    # refits move the scale too; what is not counted is small beside what is
    h, errors = 1e-4, []
    for record in range(0, 150, 10):
        ends = []
        for s in (h, -h):
            moved = x.copy()
            moved[record, 1] += s
            fitted = HuberRegressor(alpha=0.5, tol=1e-13, max_iter=100_000).fit(moved, y)
            ends.append(np.append(fitted.coef_, fitted.intercept_))
        joint = np.linalg.norm(ends[0] - ends[1]) / (2 * h)
        errors.append(abs(result.records["eta_x1"].iloc[record] - joint))
    assert np.max(errors) < 0.25 * result.records["eta_x1"].max(), np.max(errors) / result.records["eta_x1"].max()


def test_a_penalised_intercept_of_logistic_regression():
    x, y = data("squared-hinge")
    # columns away from zero, so that there is an intercept for the penalty to pull at
    x = x + 2
    model = LogisticRegression(C=0.5, solver="liblinear", intercept_scaling=3.0, tol=1e-12, max_iter=100_000).fit(x, y)
    assert leakscope.audit(model, x, y, sigma=1.0).distance["relative"] < 1e-6
    model.intercept_scaling = 1.0
    assert leakscope.audit(model, x, y, sigma=1.0).distance["relative"] > 1e-3


def test_stochastic_gradients_of_these_losses():
    x, y = data("squared-hinge")
    # with a tolerance scikit-learn stops by the loss of the iterate, long before the average has arrived: every epoch is run
    options = dict(alpha=0.05, max_iter=4000, tol=None, random_state=0, average=True)
    model = SGDClassifier(loss="squared_hinge", learning_rate="invscaling", eta0=0.02, **options).fit(x, y)
    result = leakscope.audit(model, x, y, sigma=0.5)
    assert result["model"]["family"] == "squared-hinge" and result.distance["relative"] < 0.01
    x, y = data("huber")
    model = SGDRegressor(loss="huber", epsilon=0.7, **options).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = leakscope.audit(model, x, y, sigma=0.5)
    assert result["model"]["family"] == "huber(0.7)" and result.distance["relative"] < 0.01


def test_in_a_pipeline():
    x, y = data("gamma")
    model = make_pipeline(StandardScaler(), GammaRegressor(alpha=0.1, **NEWTON)).fit(x, y)
    assert leakscope.audit(model, x, y, sigma=0.5).distance["relative"] < 1e-6


@pytest.mark.parametrize("model, words", [
    (LinearSVC(loss="hinge"), "loss='hinge'.*squared_hinge"),
    (LinearSVC(penalty="l1", dual=False), "penalty='l1'"),
    (TweedieRegressor(power=3), "from 1 to 2.*not convex"),
    (TweedieRegressor(power=0, link="log"), "not convex"),
    (TweedieRegressor(power=1.5, link="identity"), "logarithmic"),
    (SGDClassifier(loss="modified_huber"), "modified_huber.*squared_hinge"),
])
def test_what_is_not_convex_or_smooth_is_refused(model, words):
    classes = "SVC" in type(model).__name__ or "Classifier" in type(model).__name__
    x, y = data("squared-hinge" if classes else "gamma")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
    with pytest.raises(leakscope.OptionError, match=f"(?s){words}"):
        leakscope.audit(model, x, y)


def test_models_by_keyword():
    x, y = data("tweedie")
    result = leakscope.audit(x, y, model="tweedie", power=1.3, sigma=1.0, l2=0.1)
    assert result["model"]["family"] == "tweedie(1.3)"
    assert leakscope.audit(x, y, model="tweedie", power=1, l2=0.1)["model"]["family"] == "poisson"
    assert leakscope.audit(x, y, model="huber", l2=0.1)["model"]["family"] == "huber(1.35)"
    with pytest.raises(leakscope.OptionError, match="power=1.5: it belongs to model='tweedie'"):
        leakscope.audit(x, y, power=1.5)
    with pytest.raises(leakscope.OptionError, match="from 1 to 2"):
        leakscope.audit(x, y, model="tweedie", power=2.5)
    with pytest.raises(leakscope.OptionError, match="huber_threshold"):
        leakscope.audit(x, y, model="huber", huber_threshold="wide")
    with pytest.raises(leakscope.OptionError, match="linear, logistic"):
        leakscope.audit(x, y, model="lasso")
    zero = int(np.flatnonzero(y == 0)[0])
    with pytest.raises(leakscope.DataError, match=f"row {zero + 1}.*above zero"):
        leakscope.audit(x, y, model="gamma")
