"""Black-box attacks on anything that predicts: is a record in the training data, and what is its secret attribute?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._binomial import clopper_pearson, difference, wilson
from ._checks import one_of, real, seeded, whole
from ._native import DataError, OptionError
from ._results import Result, _Kept
from ._tables import frame

Array = np.ndarray[Any, Any]
_SCHEMA = "leakscope.model-attack/1"
#: false-positive rates that true-positive rates are told at
_RATES = (0.001, 0.01, 0.1)


def attack_model(
    predict: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    nonmembers: tuple[Any, Any] | None = None,
    secret: str | int | None = None,
    candidates: Sequence[Any] | None = None,
    bins: int = 4,
    interval: str = "clopper-pearson",
    confidence: float = 0.95,
    seed: int | None = None,
) -> ModelAttack:
    """Plays black-box membership and attribute inference on anything that predicts: trees, kernels, neighbours, services.

    Such models have no η here: their training is no smooth function of a record, so that there is no Fisher information to
    state. An attack that fails proves nothing; one that succeeds shows what is at least given away.

    Parameters
    ----------
    predict : estimator or callable
        A fitted estimator with ``predict_proba`` (or ``predict``, for values), or a function of rows that gives
        probabilities of classes, (rows, classes), or values, (rows,).
    X : array or frame
        Rows that the model was trained on.
    y : array
        Their labels.
    nonmembers : tuple of X and y, optional
        Rows of the same population that it was not trained on. Membership needs them; attribute inference is played on
        them too, since what it guesses there it knows from the population.
    secret : str or int, optional
        Column that the attacker does not know. It knows the others, the label and the model's answers.
    candidates : sequence, optional
        Values that the secret may have. By default those in ``X``, or for numbers with more than 20 values the medians of
        ``bins`` bins of equal shares; a guess is right in the right bin.
    bins : int, default 4
        Bins of a secret of many numbers.
    interval : str, default 'clopper-pearson'
        Of shares: ``"clopper-pearson"`` (covers at least as often as it says) or ``"wilson"`` (shorter).
    confidence : float, default 0.95
        Of every interval, between 0 and 1.
    seed : int, optional
        Of the halves that thresholds are chosen on and tried on. By default drawn from the system.

    Returns
    -------
    ModelAttack
        ``results`` has a row for every attack: share of right guesses with its interval, the baseline without the model,
        and the advantage over it.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    >>> known = {tuple(row): label for row, label in zip(X[:150], y[:150])}
    >>> def by_heart(rows):  # a model that knows its training rows by heart
    ...     p = np.array([known.get(tuple(row), 0.5) for row in rows])
    ...     return np.stack([1 - p, p], axis=1)
    >>> result = leakscope.attack_model(by_heart, X[:150], y[:150], nonmembers=(X[150:], y[150:]), seed=1)
    >>> result["membership"]["accuracy"]["value"]
    1.0
    """
    one_of("interval", interval, ("clopper-pearson", "wilson"))
    confidence = real("confidence", confidence)
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence!r}: expected between 0 and 1")
    if nonmembers is None and secret is None:
        raise OptionError("nonmembers, secret: name what to attack: nonmembers=(X, y) for membership, or secret= for a column")
    game = _Asked(predict, interval, confidence, seeded(seed))
    rows, labels = _checked(X, y, "X, y")
    others = None
    if nonmembers is not None:
        if not isinstance(nonmembers, (tuple, list)) or len(nonmembers) != 2:
            raise OptionError("nonmembers: expected a pair of rows and labels")
        others = _checked(nonmembers[0], nonmembers[1], "nonmembers")
    document: dict[str, Any] = {
        "schema": _SCHEMA, "model": game.name, "members": len(labels), "nonmembers": 0 if others is None else len(others[1]),
        "confidence": confidence, "interval": interval, "seed": game.seed, "membership": None, "attribute": None,
        "warnings": ["These attacks show what is at least given away. What they do not find others may."],
    }
    if others is not None:
        document["membership"] = membership(game, game.answers(rows, labels), game.answers(*others))
    if secret is not None:
        values = _candidates(rows, secret, candidates, whole("bins", bins, 2))
        game.learn_unit(rows, labels)
        document["attribute"] = _attribute(game, (rows, labels), others, secret, values)
        if others is None:
            document["warnings"].append("Without nonmembers nobody can tell what the model gives away about its records from what "
                                        "it knows of the population.")
    return ModelAttack(_kept(document))


class ModelAttack(Result):
    """What black-box attacks on a model achieved."""

    @property
    def results(self) -> Any:
        """A row for every attack: share of right guesses with its interval, the baseline, the advantage."""
        return frame("numpy", self.table("results"), index_name="attack")

    @property
    def warnings(self) -> list[str]:
        """What to know about these numbers."""
        return list(self.document["warnings"])


class Game:
    """How shares are told, and the seed of what is drawn."""

    def __init__(self, interval: str, confidence: float, seed: int) -> None:
        self._interval = clopper_pearson if interval == "clopper-pearson" else wilson
        self.confidence, self.seed = confidence, seed

    def share(self, hits: int, trials: int) -> dict[str, Any]:
        """A share with its interval."""
        low, high = self._interval(hits, trials, self.confidence)
        return {"value": hits / trials if trials else 0.0, "low": low, "high": high, "trials": trials}


class _Asked(Game):
    """A model that can only be asked."""

    def __init__(self, predict: Any, interval: str, confidence: float, seed: int) -> None:
        super().__init__(interval, confidence, seed)
        self._ask, self.name, self.classes = _predictor(predict)
        #: what squared errors of values are divided by
        self._unit = 1.0

    def learn_unit(self, rows: Any, labels: Array) -> None:
        """Squared errors of values become log-likelihoods, in units of their mean: no guess depends on the units of y."""
        result = self._predicted(rows, labels)
        if _is_value(result):
            # a model that knows its rows by heart has no errors: how frequent values are breaks ties alone
            self._unit = max(2 * float(self._squares(result, labels).mean()), 1e-9 * float(labels.astype(np.float64).var())) or 1.0

    def answers(self, rows: Any, labels: Array) -> Array:
        """How well the model fits every row's label: ``ln p(y)``, or for values ``−(y − ŷ)²`` in a unit."""
        result = self._predicted(rows, labels)
        if _is_value(result):
            return -self._squares(result, labels) / self._unit
        if (result < -1e-9).any() or (np.abs(result.sum(axis=1) - 1) > 1e-3).any():
            raise DataError("predict: its rows are no probabilities: expected numbers from 0 that sum to 1 (predict_proba)")
        return np.log(np.maximum(result[np.arange(len(labels)), self._codes(labels, result.shape[1])], 1e-12))

    def _predicted(self, rows: Any, labels: Array) -> Array:
        result = np.asarray(self._ask(rows), dtype=np.float64)
        if result.shape[:1] != (len(labels),) or result.ndim > 2 or not np.isfinite(result).all():
            raise DataError(f"predict: it gave shape {result.shape} for {len(labels)} rows (or a value that is not finite): expected "
                            "probabilities of classes, (rows, classes), or values, (rows,)")
        return result

    def _squares(self, result: Array, labels: Array) -> Array:
        try:
            return (labels.astype(np.float64) - result.reshape(-1)) ** 2
        except (TypeError, ValueError) as e:
            raise DataError("y: labels are no numbers, and the model gives values: expected one that gives probabilities") from e

    def _codes(self, labels: Array, count: int) -> Array:
        if self.classes is None:
            if labels.dtype.kind not in "iub" or labels.min() < 0 or labels.max() >= count:
                raise DataError(f"y: a function that gives probabilities of {count} classes needs labels from 0 to {count - 1}: code them "
                                "so, or give the estimator, which knows its classes")
            return labels.astype(np.int64)
        order = {c: i for i, c in enumerate(self.classes.tolist())}
        try:
            return np.array([order[v] for v in labels.tolist()], dtype=np.int64)
        except KeyError as e:
            raise DataError(f"y: the label {e.args[0]!r} is none of the model's classes, {', '.join(map(str, order))}") from e


def _is_value(result: Array) -> bool:
    """Whether answers are values; probabilities have a column a class."""
    return result.ndim == 1 or result.shape[1] == 1


def _predictor(predict: Any) -> tuple[Any, str, Array | None]:
    for name in ("predict_proba", "predict"):
        if hasattr(predict, name):
            classes = getattr(predict, "classes_", None)
            if name == "predict" and classes is not None:
                raise OptionError(f"{type(predict).__name__} has no predict_proba, so that nothing is known of its confidence: use "
                                  "CalibratedClassifierCV (or probability=True), or give a function that gives probabilities")
            return getattr(predict, name), type(predict).__name__, None if classes is None else np.asarray(classes)
    if callable(predict):
        return predict, str(getattr(predict, "__name__", type(predict).__name__)), None
    raise OptionError(f"predict: {type(predict).__name__}: expected a fitted estimator with predict_proba, or a function of rows")


def _checked(rows: Any, labels: Any, name: str) -> tuple[Any, Array]:
    result = np.asarray(labels)
    count = getattr(rows, "shape", (None,))[0]
    if count is None:
        rows = np.asarray(rows)
        count = rows.shape[0] if rows.ndim else 0
    if result.ndim != 1 or len(result) != count or count == 0:
        raise DataError(f"{name}: {count} rows and labels of shape {result.shape}: expected a label for every row, and at least one")
    return rows, result


def membership(game: Game, inside: Array, outside: Array) -> dict[str, Any]:
    """Guesses "in" where the model fits a record better than a threshold, chosen on one half and tried on the other.

    ``inside`` and ``outside`` say how well it fits members and non-members: larger is better.
    """
    rng = np.random.default_rng([game.seed, 0])
    halves = [_halves(rng, len(v)) for v in (inside, outside)]
    if any(len(h[1]) == 0 or len(h[0]) == 0 for h in halves):
        raise DataError("members and nonmembers: expected at least two of each: one half chooses the threshold, the other tries it")
    (tune_in, try_in), (tune_out, try_out) = ([values[h] for h in pair] for values, pair in zip((inside, outside), halves))
    threshold = _threshold(tune_in, tune_out)
    hits, alarms = int((try_in > threshold).sum()), int((try_out > threshold).sum())
    n, m = len(try_in), len(try_out)
    # the attacker plays members and non-members equally often: an equal number of each is tried
    few = min(n, m)
    right = int((try_in[:few] > threshold).sum() + (try_out[:few] <= threshold).sum())
    low, high = difference((hits, n), (alarms, m), game.confidence)
    rates = []
    for rate in _RATES:
        cut = np.quantile(tune_out, 1 - rate, method="higher")
        if len(tune_out) * rate >= 1:
            rates.append({"false_positive_rate": game.share(int((try_out > cut).sum()), m), "asked": rate,
                          "true_positive_rate": game.share(int((try_in > cut).sum()), n)})
    return {
        "accuracy": game.share(right, 2 * few),
        "baseline": 0.5,
        "advantage": {"value": hits / n - alarms / m, "low": low, "high": high, "trials": n + m},
        "true_positive_rate": game.share(hits, n),
        "false_positive_rate": game.share(alarms, m),
        "auc": _auc(inside, outside),
        "at_rates": rates,
        "generalisation_gap": float(inside.mean() - outside.mean()),
    }


def _halves(rng: Any, n: int) -> tuple[Array, Array]:
    order = rng.permutation(n)
    return order[: n // 2], order[n // 2 :]


def _threshold(inside: Array, outside: Array) -> float:
    """The cut with the largest difference of the two shares above it."""
    cuts = np.unique(np.concatenate([inside, outside]))
    above_in = 1 - np.searchsorted(np.sort(inside), cuts, side="right") / len(inside)
    above_out = 1 - np.searchsorted(np.sort(outside), cuts, side="right") / len(outside)
    best = int(np.argmax(above_in - above_out))
    # between two values, so that neither half decides ties
    return float((cuts[best] + cuts[min(best + 1, len(cuts) - 1)]) / 2)


def _auc(inside: Array, outside: Array) -> float:
    """How often a member fits better than a non-member, ties counted half."""
    order = np.sort(outside)
    below, upto = np.searchsorted(order, inside, side="left"), np.searchsorted(order, inside, side="right")
    return float((below + upto).mean() / 2 / len(order))


def _column(rows: Any, secret: str | int) -> Array:
    if hasattr(rows, "columns") or hasattr(rows, "column_names"):
        names = [str(c) for c in getattr(rows, "column_names", getattr(rows, "columns", []))]
        if str(secret) not in names:
            raise OptionError(f"secret={secret!r}: the columns are {', '.join(names)}")
        return np.asarray(rows[secret])
    array = np.asarray(rows)
    at = whole("secret", secret, 0, array.shape[1] - 1) if array.ndim == 2 else -1
    if at < 0:
        raise DataError(f"X: shape {array.shape}: expected rows and columns")
    return array[:, at]


def _replaced(rows: Any, secret: str | int, value: Any) -> Any:
    """The rows with one value in the secret's place, of the same kind."""
    kind = type(rows).__module__.partition(".")[0]
    if kind == "pandas":
        result = rows.copy()
        column = result[secret]
        result[secret] = type(column)([value] * len(result), index=result.index, dtype=column.dtype)
        return result
    if kind == "polars":
        import polars as pl

        return rows.with_columns(pl.Series(str(secret), [value] * len(rows), dtype=rows[str(secret)].dtype))
    if kind == "pyarrow":
        raise OptionError("X: a pyarrow table: give pandas, polars or an array, as the model takes it")
    result = np.array(rows, copy=True)
    result[:, int(secret)] = value
    return result


def _candidates(rows: Any, secret: str | int, candidates: Sequence[Any] | None, bins: int) -> tuple[list[Any], Array | None]:
    """Values to try, and the edges of their bins where the secret is a number of many values."""
    column = _column(rows, secret)
    if candidates is not None:
        if len(candidates) < 2:
            raise OptionError(f"candidates={list(candidates)!r}: expected at least two values to tell apart")
        return list(candidates), None
    values = sorted(set(column.tolist()), key=lambda v: (str(type(v)), v))
    if len(values) < 2:
        raise DataError(f"secret={secret!r}: every record has the value {values[0]!r}: there is nothing to guess")
    if len(values) <= 20:
        return values, None
    if column.dtype.kind not in "iuf":
        raise OptionError(f"secret={secret!r}: {len(values)} values that are no numbers: name those to tell apart (candidates=)")
    edges = np.unique(np.quantile(column.astype(np.float64), np.linspace(0, 1, bins + 1)[1:-1]))
    places = np.searchsorted(edges, column, side="right")
    result = [np.median(column[places == b]) for b in range(len(edges) + 1) if (places == b).any()]
    return [v.astype(column.dtype).item() if hasattr(v, "astype") else v for v in result], edges


def _attribute(game: _Asked, members: tuple[Any, Array], others: Any, secret: str | int,
               values: tuple[list[Any], Array | None]) -> dict[str, Any]:
    """Guesses the value under which the model fits the record's label best, weighed by how frequent values are."""
    tried, edges = values

    def codes(rows: Any) -> Array:
        column = _column(rows, secret)
        if edges is not None:
            return np.searchsorted(edges, column.astype(np.float64), side="right")
        order = {v: i for i, v in enumerate(tried)}
        return np.array([order.get(v, -1) for v in column.tolist()])

    truth = codes(members[0])
    if (truth < 0).any():
        raise DataError(f"secret={secret!r}: record {int(np.flatnonzero(truth < 0)[0])} has a value that is none of the candidates")
    counts = np.bincount(truth, minlength=len(tried))
    with np.errstate(divide="ignore"):
        prior = np.log(counts / counts.sum())

    def played(rows: Any, labels: Array, right: Array) -> tuple[int, int]:
        fits = np.stack([game.answers(_replaced(rows, secret, v), labels) for v in tried], axis=1)
        known = right >= 0
        return int(((fits + prior).argmax(axis=1) == right)[known].sum()), int(known.sum())

    hits, n = played(*members, truth)
    baseline = float(counts.max() / counts.sum())
    low, high = (game.share(hits, n)[k] for k in ("low", "high"))
    out: dict[str, Any] = {
        "secret": str(secret),
        "candidates": [str(v) for v in tried],
        "accuracy": game.share(hits, n),
        "baseline": baseline,
        "advantage": {k: (v - baseline) / (1 - baseline) for k, v in (("value", hits / n), ("low", low), ("high", high))},
        "nonmembers": None,
        "beyond_population": None,
    }
    if others is not None:
        right, m = played(*others, codes(others[0]))
        out["nonmembers"] = game.share(right, m)
        ends = difference((hits, n), (right, m), game.confidence)
        out["beyond_population"] = {"value": hits / n - right / m if m else 0.0, "low": ends[0], "high": ends[1]}
    return out


def _kept(document: dict[str, Any]) -> _Kept:
    rows = _rows(document)
    names = ["value", "low", "high", "baseline", "trials"]
    columns: list[tuple[str, str, Any]] = [("attack", "str", [r[0] for r in rows])]
    for at, name in enumerate(names):
        columns.append((name, "float64", np.array([float(r[1 + at]) for r in rows]).tobytes()))
    table = _native.ResultTable(columns, [], "attack")
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return _Written(text, None, _summary(document, rows), [], {"results": table}, None)


class _Written(_Kept):
    """What an attack says; saved as its document alone."""

    def write(self, out: Any, format: str) -> list[Path]:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        _native.write_text(str(folder / "model-attack.json"), self.document)
        return [folder / "model-attack.json"]


def _rows(document: dict[str, Any]) -> list[tuple[str, float, float, float, float, int]]:
    rows = []
    m, a = document["membership"], document["attribute"]
    if m is not None:
        share = m["accuracy"]
        rows.append(("membership", share["value"], share["low"], share["high"], m["baseline"], share["trials"]))
        for at in m["at_rates"]:
            t = at["true_positive_rate"]
            rows.append((f"membership, {at['asked']:g} false alarms", t["value"], t["low"], t["high"], at["asked"], t["trials"]))
    if a is not None:
        share = a["accuracy"]
        rows.append((f"attribute {a['secret']}", share["value"], share["low"], share["high"], a["baseline"], share["trials"]))
        if a["nonmembers"] is not None:
            share = a["nonmembers"]
            rows.append((f"attribute {a['secret']}, nonmembers", share["value"], share["low"], share["high"], a["baseline"],
                         share["trials"]))
    return rows


def _summary(document: dict[str, Any], rows: list[Any]) -> str:
    lines = [f"Black-box attacks on {document['model']}: {document['members']} members, {document['nonmembers']} non-members",
             f"{'attack':<34}{'right':>8}   {document['confidence']:.0%} interval     without the model"]
    for name, value, low, high, baseline, _ in rows:
        lines.append(f"{name:<34}{value:>8.1%}   {low:>6.1%} to {high:<6.1%}   {baseline:>8.1%}")
    beyond = (document["attribute"] or {}).get("beyond_population")
    if beyond is not None:
        lines.append(f"Of members beyond what the population tells: {beyond['value']:+.1%} ({beyond['low']:+.1%} to {beyond['high']:+.1%})")
    return "\n".join([*lines, *document["warnings"]]) + "\n"
