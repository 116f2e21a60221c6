"""Black-box attacks on anything that predicts, with intervals that cover and baselines that are what they say."""

import math

import numpy as np
import pytest

import leakscope
from leakscope._binomial import clopper_pearson, difference, incomplete_beta, wilson


def tail(hits, n, p):
    """P(X ≥ hits) from the binomial's own terms."""
    return math.fsum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(hits, n + 1))


@pytest.mark.parametrize("hits, n", [(0, 10), (1, 10), (5, 10), (10, 10), (3, 200), (199, 200), (0, 1)])
def test_clopper_pearson_is_the_binomials_own(hits, n):
    low, high = clopper_pearson(hits, n)
    if hits:
        assert tail(hits, n, low) == pytest.approx(0.025, rel=1e-9)
    if hits < n:
        assert 1 - tail(hits + 1, n, high) == pytest.approx(0.025, rel=1e-9)
    assert 0 <= low <= hits / n <= high <= 1
    a, b = wilson(hits, n)
    assert 0 <= a <= hits / n <= b <= 1 and b - a <= high - low + 1e-12


@pytest.mark.parametrize("freedom, confidence, quantile", [
    (1, 0.95, 12.706204736432095), (4, 0.9, 2.13184678632665), (9, 0.95, 2.2621571628540993), (99, 0.99, 2.6264054563851857),
])
def test_students_quantiles_are_those_of_tables(freedom, confidence, quantile):
    from leakscope._binomial import student_t

    assert student_t(freedom, confidence) == pytest.approx(quantile, rel=1e-9)


def test_intervals_cover():
    for n, p in [(20, 0.1), (20, 0.5), (60, 0.97)]:
        weights = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
        covered = {f: sum(w for k, w in enumerate(weights) if f(k, n)[0] <= p <= f(k, n)[1]) for f in (clopper_pearson, wilson)}
        assert covered[clopper_pearson] >= 0.95 and covered[wilson] > 0.9


def test_the_incomplete_beta_function_far_out():
    special = pytest.importorskip("scipy.special", reason="scipy is not installed")
    for a, b, x in [(0.5, 0.5, 0.3), (1000, 30, 0.97), (3, 50_000, 1e-4), (50_000, 50_000, 0.5), (1, 1, 0.2)]:
        assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-8)


def test_a_difference_of_shares_covers():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        a, b = rng.binomial(40, 0.7), rng.binomial(60, 0.5)
        low, high = difference((a, 40), (b, 60))
        inside += low <= 0.2 <= high
    assert inside >= 0.93 * 2000
    assert difference((0, 0), (1, 2)) == (-1.0, 1.0)


def by_heart(x, y, classes=2):
    """A model that knows its training rows by heart and nothing else."""
    known = {tuple(row): int(label) for row, label in zip(x, y)}

    def predict(rows):
        out = np.full((len(rows), classes), 1 / classes)
        for i, row in enumerate(np.asarray(rows)):
            if tuple(row) in known:
                out[i] = 0
                out[i, known[tuple(row)]] = 1
        return out

    return predict


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 3, n), rng.normal(size=n)])
    return x, rng.integers(0, 2, n)


def test_a_model_that_knows_by_heart_gives_everything_away():
    x, y = data()
    result = leakscope.attack_model(by_heart(x[:200], y[:200]), x[:200], y[:200], nonmembers=(x[200:], y[200:]), secret=1, seed=1)
    m, a = result["membership"], result["attribute"]
    assert m["accuracy"]["value"] == 1 and m["accuracy"]["low"] > 0.96 and m["auc"] == 1 and m["advantage"]["value"] == 1
    assert a["accuracy"]["value"] == 1 and a["baseline"] < 0.5
    # of rows that it does not know it knows nothing: the prior's guess
    assert a["nonmembers"]["low"] <= a["baseline"] + 0.1 and a["beyond_population"]["low"] > 0.4
    rates = {r["asked"]: r for r in m["at_rates"]}
    assert 0.01 in rates and rates[0.01]["true_positive_rate"]["value"] == 1 and rates[0.01]["false_positive_rate"]["value"] == 0
    assert "membership" in result.summary() and result.results.loc["membership", "value"] == 1


def test_a_model_that_knows_nothing_gives_nothing_away():
    """Over many seeds: the interval of the accuracy covers a half, the advantage zero, as often as they say."""
    covered = advantage = 0
    runs = 60
    for seed in range(runs):
        x, y = data(200, seed)
        rng = np.random.default_rng(seed)

        def guess(rows, rng=rng):
            p = rng.random(len(rows))
            return np.column_stack([p, 1 - p])

        result = leakscope.attack_model(guess, x[:100], y[:100], nonmembers=(x[100:], y[100:]), seed=seed)["membership"]
        covered += result["accuracy"]["low"] <= 0.5 <= result["accuracy"]["high"]
        advantage += result["advantage"]["low"] <= 0 <= result["advantage"]["high"]
    assert covered >= 0.88 * runs and advantage >= 0.88 * runs


def test_trees_kernels_and_neighbours():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    x, y = data(300, 3)
    for model in (RandomForestClassifier(20, random_state=0), GradientBoostingClassifier(n_estimators=5), KNeighborsClassifier(1)):
        model.fit(x[:150], y[:150])
        with pytest.raises(leakscope.OptionError, match="no η.*attack_model"):
            leakscope.audit(model, x[:150], y[:150])
        result = leakscope.attack_model(model, x[:150], y[:150], nonmembers=(x[150:], y[150:]), secret=1, seed=0)
        assert result["model"] == type(model).__name__
        if not isinstance(model, GradientBoostingClassifier):
            assert result["membership"]["accuracy"]["low"] > 0.6, result.summary()
    with pytest.raises(leakscope.OptionError, match="no η.*kernel machine.*attack_model"):
        leakscope.audit(SVC().fit(x, y), x, y)
    with pytest.raises(leakscope.OptionError, match="predict_proba"):
        leakscope.attack_model(SVC().fit(x, y), x, y, secret=1)
    values = x[:, 0] + 0.1 * x[:, 2]
    forest = RandomForestRegressor(20, random_state=0).fit(x[:150], values[:150])
    result = leakscope.attack_model(forest, x[:150], values[:150], nonmembers=(x[150:], values[150:]), secret=0, seed=0)
    assert result["attribute"]["accuracy"]["low"] > result["attribute"]["baseline"] and len(result["attribute"]["candidates"]) == 4


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_guesses_of_values_do_not_depend_on_units(unit):
    """Errors of predictions are weighed against how frequent values are: in thousandths as in thousands."""
    x, _ = data(300, 3)
    noise = np.random.default_rng(1).normal(size=300)
    values = x[:, 0] + 0.5 * x[:, 1] + 0.3 * noise

    def played(scale):
        def predict(rows):
            return scale * (rows[:, 0] + 0.5 * rows[:, 1])

        return leakscope.attack_model(predict, x[:150], scale * values[:150], nonmembers=(x[150:], scale * values[150:]), secret=1, seed=0)

    result, same = played(1.0)["attribute"], played(unit)["attribute"]
    assert result["accuracy"]["low"] > result["baseline"] and same["accuracy"] == result["accuracy"]


def test_frames_and_texts():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    x, y = data(200, 5)
    frame = pd.DataFrame({"a": x[:, 0], "town": pd.Categorical(np.array(["x", "y", "z"])[x[:, 1].astype(int)])})
    labels = np.array(["no", "yes"])[y]
    model = make_pipeline(ColumnTransformer([("t", OneHotEncoder(), ["town"])], remainder="passthrough"), DecisionTreeClassifier())
    model.fit(frame[:100], labels[:100])
    result = leakscope.attack_model(model, frame[:100], labels[:100], nonmembers=(frame[100:], labels[100:]), secret="town", seed=0)
    assert result["attribute"]["candidates"] == ["x", "y", "z"] and frame["town"].dtype == "category"
    import pickle

    assert pickle.loads(pickle.dumps(result)).to_json() == result.to_json()


def test_the_document_is_written(tmp_path):
    x, y = data(40)
    result = leakscope.attack_model(by_heart(x, y), x, y, secret=1, interval="wilson", seed=0)
    (written,) = result.save(tmp_path)
    assert written.read_text() == result.to_json() and result["membership"] is None and any("population" in w for w in result.warnings)
    with pytest.raises(leakscope.LeakscopeError, match="no page"):
        result.report(tmp_path / "a.html")


X, Y = data(40)


@pytest.mark.parametrize("predict, options, words", [
    (by_heart(X, Y), {}, "name what to attack"),
    (7, {"secret": 1}, "predict_proba, or a function"),
    (by_heart(X, Y), {"secret": 5}, "secret=5"),
    (by_heart(X, Y), {"secret": 1, "interval": "normal"}, "interval"),
    (by_heart(X, Y), {"secret": 1, "confidence": 1.0}, "confidence"),
    (by_heart(X, Y), {"secret": 1, "candidates": [1.0]}, "at least two"),
    (by_heart(X, Y), {"secret": 1, "candidates": [7.0, 8.0]}, "none of the candidates"),
    (by_heart(X, Y), {"nonmembers": X}, "a pair of rows and labels|expected a label"),
    (by_heart(X, Y), {"nonmembers": (X, Y[:3])}, "a label for every row"),
    (by_heart(X, Y), {"nonmembers": (X[:1], Y[:1])}, "at least two"),
    (lambda r: np.full((len(r), 2), 0.7), {"secret": 1}, "no probabilities"),
    (lambda r: np.full((len(r), 2), np.nan), {"secret": 1}, "not finite"),
    (lambda r: np.full((len(r), 1, 2), 0.5), {"secret": 1}, "shape"),
    (lambda r: np.full((len(r) - 1, 2), 0.5), {"secret": 1}, "shape"),
])
def test_bad_questions(predict, options, words):
    with pytest.raises(leakscope.LeakscopeError, match=words):
        leakscope.attack_model(predict, X, Y, **options)


def test_labels_that_the_model_does_not_know():
    with pytest.raises(leakscope.DataError, match="labels from 0 to 1"):
        leakscope.attack_model(by_heart(X, Y), X, Y + 5, secret=1)
    constant = X.copy()
    constant[:, 1] = 2.0
    with pytest.raises(leakscope.DataError, match="nothing to guess"):
        leakscope.attack_model(by_heart(X, Y), constant, Y, secret=1)
