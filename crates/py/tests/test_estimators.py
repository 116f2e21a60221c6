"""The private estimators: scikit-learn's own checks, and that their noise is what they say."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import leakscope


@pytest.mark.parametrize("estimator", [
    leakscope.PrivateLinear(), leakscope.PrivateLogistic(),
    leakscope.PrivateLinear(sigma=0.1, balance=2), leakscope.PrivateLogistic(target_eta=0.5, statistic="mean"),
], ids=str)
def test_scikit_learns_checks(estimator):
    outcomes = check_estimator(estimator, on_fail=None)
    failed = [f"{o['check_name']}: {o['exception']!r}" for o in outcomes if o["status"] == "failed"]
    assert not failed, "\n".join(failed)
    assert sum(o["status"] == "passed" for o in outcomes) > 30


def data(n=500):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 3)) * [1, 5, 0.1] + [10, 0, 1]
    return x, x @ [1, -0.2, 4] + rng.normal(size=n)


def test_with_hardly_any_noise_it_is_the_ridge():
    x, y = data()
    z = (x - x.mean(0)) / x.std(0)
    ridge = Ridge(alpha=0.01 * len(y)).fit(z, y)
    private = leakscope.PrivateLinear(sigma=1e-7, l2=0.01).fit(x, y)
    assert np.allclose(private.predict(x), ridge.predict(z), atol=1e-5)
    logistic = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-10, max_iter=1000).fit(z, y > 10)
    private = leakscope.PrivateLogistic(sigma=1e-7, l2=0.01).fit(x, y > 10)
    assert np.allclose(private.predict_proba(x), logistic.predict_proba(z), atol=1e-5)


def test_the_noise_is_what_it_says():
    x, y = data()
    still = leakscope.PrivateLinear(sigma=1e-6, scale="none").fit(x, y)
    models = [leakscope.PrivateLinear(sigma=0.3, scale="none").fit(x, y) for _ in range(300)]
    # σ comes from the grid of powers of 2^¼; noise is in public units, powers of two near the spread of each column.
    sigma = models[0].sigma_
    assert sigma == pytest.approx(2**-1.5, rel=1e-5)
    unit = 2.0 ** np.round(np.log2(x.std(axis=0)))
    drawn = np.array([(m.coef_ - still.coef_) * unit for m in models])
    # 900 normal draws: the standard error of their spread is σ/√1800.
    assert abs(drawn.std() - sigma) < 5 * sigma / np.sqrt(1800)
    assert abs(drawn.mean()) < 5 * sigma / 30


def test_targets_seeds_and_balance():
    x, y = data()
    assert leakscope.PrivateLinear(target_eta=0.2).fit(x, y).eta_max_ == 0.2
    assert leakscope.PrivateLinear(target_eta=0.2, statistic="mean").fit(x, y).eta_max_ > 0.2
    again = [leakscope.PrivateLinear(sigma=1.0, random_state=5).fit(x, y).coef_ for _ in range(2)]
    assert np.array_equal(*again)
    fresh = [leakscope.PrivateLinear(sigma=1.0).fit(x, y).coef_ for _ in range(2)]
    assert not np.array_equal(*fresh)
    plain = leakscope.PrivateLinear(sigma=1.0).fit(x, y)
    level = leakscope.PrivateLinear(sigma=1.0, balance=10).fit(x, y)
    assert level.eta_max_ < plain.eta_max_
    assert cross_val_score(leakscope.PrivateLinear(target_eta=1.0), x, y).mean() > 0.5


def test_what_was_measured_is_in_no_pickle():
    x, y = data()
    measured = leakscope.PrivateLinear(sigma=1.0).fit(x, y)
    kept = pickle.loads(pickle.dumps(measured))
    # η that was measured tells who knows the other rows which values the last one can have; the model itself is whole.
    assert measured.eta_max_ > 0 and not hasattr(kept, "eta_max_")
    assert np.array_equal(kept.predict(x), measured.predict(x)) and kept.summary() == measured.summary()
    assert pickle.loads(pickle.dumps(leakscope.PrivateLinear(target_eta=0.2).fit(x, y))).eta_max_ == 0.2
    by_mean = leakscope.PrivateLinear(target_eta=0.2, statistic="mean").fit(x, y)
    assert not hasattr(pickle.loads(pickle.dumps(by_mean)), "eta_max_")
    assert not hasattr(pickle.loads(pickle.dumps(leakscope.PrivateLinear())), "eta_max_")
    # The name of a class says that somebody has it.
    with pytest.warns(UserWarning, match="class 'rare' has 2 records"):
        leakscope.PrivateLogistic(target_eta=5.0).fit(x, np.where(np.arange(len(y)) < 2, "rare", "usual"))


def neighbours(at_the_edge):
    """A table, and the same with another value in its last row."""
    x, y = data(200)
    x = (x - x.mean(0)) / x.std(0)
    other = x.copy()
    other[-1, 1] = 3.0 if x[-1, 1] < 0 else -3.0
    if at_the_edge:
        # In the middle of two powers of two, by ratio: the spread of the one rounds down, of the other up.
        between = np.sqrt(x[:, 1].std() * other[:, 1].std()) * np.sqrt(0.5)
        x[:, 1], other[:, 1] = x[:, 1] / between, other[:, 1] / between
    return x, other, y


def published(model):
    """All that a pickle holds but the noisy numbers themselves."""
    state = pickle.loads(pickle.dumps(model)).__dict__
    noisy = {"coef_", "intercept_", "_coef", "_intercept"}
    rows = {name: row[0] for name, row in state["_precision"].items()}
    return {name: np.asarray(value).tolist() for name, value in state.items() if name not in noisy | {"_precision"}} | {"errors": rows}


@pytest.mark.parametrize("estimator, options", [
    (leakscope.PrivateLinear, {"sigma": 1.0}), (leakscope.PrivateLogistic, {"sigma": 1.0}), (leakscope.PrivateLinear, {"sigma": 1.0, "scale": "none"}),
    (leakscope.PrivateLinear, {"sigma": 1.0, "scale": "none", "fit_intercept": False}),
    (leakscope.PrivateLinear, {"sigma": 1.0, "balance": 2}),
], ids=str)
def test_a_record_that_decides_a_unit_is_found_and_bounds_hide_it(estimator, options):
    x, other, y = neighbours(at_the_edge=True)
    y = y > np.median(y) if estimator is leakscope.PrivateLogistic else y
    models = []
    for rows in (x, other):
        with pytest.warns(UserWarning, match="one record decides the unit of 1, which shows in noise_error_"):
            models.append(estimator(**options).fit(rows, y))
    # Who knows the other rows tells the two tables apart, whatever the noise is.
    assert published(models[0]) != published(models[1])
    given = {j: (-8, 8) for j in range(3)}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*one record decides")
        models = [estimator(bounds=given, **options).fit(rows, y) for rows in (x, other)]
    assert published(models[0]) == published(models[1])


def test_no_record_decides_a_unit_where_no_value_of_its_column_would():
    # The definition: every record, every value on a fine grid over its column, units computed anew.
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(40):
        n = int(rng.integers(5, 60))
        x = rng.normal(size=(n, 1)) * 2 ** rng.uniform(-3, 3) + rng.normal()

        def units(column):
            unit = 2.0 ** np.round(np.log2(column.std()))
            return unit, np.round(column.mean() / unit)

        def moved(i, value):
            column = x[:, 0].copy()
            column[i] = value
            return units(column) != units(x[:, 0])

        expected = any(moved(i, v) for i in range(n) for v in np.linspace(x.min(), x.max(), 41))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            leakscope.PrivateLinear(sigma=1.0).fit(x, rng.normal(size=n))
        warned = any("one record decides the unit of 0" in str(w.message) for w in caught)
        # It looks at the ends exactly, so it may see what the grid misses, never less.
        assert warned or not expected
        found += expected
    assert 5 < found < 35


def test_bounds_that_do_not_fit():
    x, y = data()
    frame = pd.DataFrame(x, columns=["age", "height", "weight"])
    model = leakscope.PrivateLinear(sigma=1.0, bounds={"age": (0, 20), "height": (-32, 32), "weight": (0, 2)}).fit(frame, y)
    # Half the range of each, as a power of two.
    assert model.noise_error_ * [8, 32, 1] == pytest.approx([model.sigma_] * 3)
    with pytest.raises(ValueError, match="bounds: 'size' is no column: expected one of"):
        leakscope.PrivateLinear(bounds={"size": (0, 1)}).fit(frame, y)
    with pytest.raises(leakscope.OptionError, match="bounds=3: expected a mapping of columns to ranges"):
        leakscope.PrivateLinear(bounds=3).fit(x, y)
    with pytest.raises(leakscope.OptionError, match="expected two finite numbers, the smaller one first"):
        leakscope.PrivateLinear(bounds={0: (5, 1)}).fit(x, y)
    with pytest.raises(leakscope.OptionError, match="clip_to_bounds: there are no bounds"):
        leakscope.PrivateLinear(clip_to_bounds=True).fit(x, y)
    with pytest.raises(leakscope.LeakscopeError, match="x0.*outside"):
        leakscope.PrivateLinear(bounds={0: (0, 10)}).fit(x, y)
    clipped = leakscope.PrivateLinear(sigma=1e-7, scale="none", bounds={0: (0, 10)}, clip_to_bounds=True).fit(x, y)
    x[:, 0] = x[:, 0].clip(0, 10)
    assert np.allclose(clipped.coef_, leakscope.PrivateLinear(sigma=1e-7, scale="none").fit(x, y).coef_, atol=1e-4)


def test_what_is_refused():
    x, y = data()
    with pytest.raises(leakscope.OptionError, match="sigma=-1: expected a positive number"):
        leakscope.PrivateLinear(sigma=-1).fit(x, y)
    with pytest.raises(leakscope.OptionError, match="target_eta: sigma says how much noise already"):
        leakscope.PrivateLinear(sigma=1, target_eta=1).fit(x, y)
    one = np.r_[np.arange(len(y) - 1) % 3, 3]
    with pytest.raises(ValueError, match="class 3 has one record"):
        leakscope.PrivateLogistic().fit(x, one)
    shaped = leakscope.PrivateLogistic(noise_shape="shaped", target_eta=1.0, random_state=1).fit(x, np.arange(len(y)) % 3)
    assert shaped.noise_["goals"][0]["eta"] == 1.0 and np.allclose(shaped.coef_.sum(axis=0), 0, atol=1e-9)


def test_more_than_two_classes_are_a_softmax_model():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(600, 3))
    y = np.array(["ash", "birch", "cedar"])[(2 * x @ rng.normal(size=(3, 3)) + rng.gumbel(size=(600, 3))).argmax(axis=1)]
    z = (x - x.mean(0)) / x.std(0)
    truth = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-10, max_iter=1000).fit(z, y)
    private = leakscope.PrivateLogistic(sigma=1e-7, l2=0.01).fit(x, y)
    assert private.coef_.shape == (3, 3) and private.classes_.tolist() == ["ash", "birch", "cedar"]
    assert np.allclose(private.predict_proba(x), truth.predict_proba(z), atol=1e-4)
    assert np.allclose(private.predict_proba(x).sum(axis=1), 1.0)
    assert (private.predict(x) == truth.predict(z)).mean() > 0.99
    noisy = leakscope.PrivateLogistic(target_eta=0.5, l2=0.01).fit(x, y)
    assert noisy.eta_max_ == 0.5 and noisy.noise_error_.shape == (3, 3)
    assert len(noisy.summary()) == 12 and noisy.summary()[0]["name"].startswith("ash: ")
    assert cross_val_score(leakscope.PrivateLogistic(target_eta=2.0, l2=0.1), x, y).mean() > 0.45
