"""Fitted scikit-learn models in the terms of an audit: their penalty, their columns, their weights, exactly.

An audit's model minimises ``Σ (ω/ω̄)·loss + (nλ/2)‖w‖²`` with an intercept that is not penalised, ω̄ the mean of the weights;
nω̄ = Σω, so that

- ``Ridge(alpha)``, ``Σ ω(y − z)² + α‖w‖²``: λ = α/Σω
- ``LinearRegression``: λ = 0
- ``LogisticRegression(C)``, ``C·Σ ω·loss + ½‖w‖²``: λ = 1/(C·Σω); without a penalty 0
- the same with more than two classes, ``C·Σ ω·(−log π_y) + ½‖W‖²``: a softmax model with that λ
- ``PoissonRegressor(alpha)``, ``Σ ω·(half deviance)/Σω + (α/2)‖w‖²``: λ = α
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._native import DataError, OptionError
from ._requests import said
from ._tables import Data, check_order, column_of, dense, is_frame, kind_of, level, read

SUPPORTED = "Ridge, LinearRegression, LogisticRegression, PoissonRegressor, or a Pipeline that ends in one of them"


@dataclass
class Translated:
    """An estimator in the terms of an audit."""

    given: Data
    coefficients: list[tuple[str, float]]
    #: keywords of the audit that follow from it
    keywords: dict[str, Any]
    test: Data | None
    score: Data | None


@dataclass
class _Model:
    family: str
    l2: float
    weights: np.ndarray[Any, Any] | None


#: what the estimator says itself
_ITS_OWN = ("model", "l2", "scale", "one_hot", "pca", "missing", "positive", "drop", "categorical", "holdout", "fit_intercept",
            "coefficients", "schema", "bounds", "levels", "clip_to_bounds", "min_level_count", "max_classes")


def translated(estimator: Any, x: Any, y: Any, asked: Mapping[str, Any], audit: Callable[..., Any]) -> Translated:
    """The table, the keywords and the coefficients of a fitted estimator; ``asked`` are the keywords of the call."""
    for name in said(audit, asked, _ITS_OWN):
        raise OptionError(f"{name}: the estimator says it already: leave it out")
    weights, columns, group, id = (asked[name] for name in ("weights", "columns", "group", "id"))
    if x is None or y is None:
        raise DataError("audit(estimator, X, y): give the rows and targets that it was fitted on")
    steps, last = _split(estimator)
    _check_fitted(last)
    matrix, names, kind, index = _transformed(steps, last, x, columns, "X")
    n = matrix.shape[0]
    if is_frame(x):
        # Names are those of the caller's columns, which the steps may have changed or taken away.
        group, id = (column_of(x, v, role) if isinstance(v, str) else v for v, role in ((group, "group"), (id, "id")))
        weights = column_of(x, weights, "weights") if isinstance(weights, str) else weights
    elif isinstance(weights, str):
        raise DataError(f"weights: {weights!r}: X is an array, whose columns have no names: give a value for each row")
    for role, given in (("y", y), ("group", group), ("id", id), ("weights", weights)):
        check_order(given, index, role)
    target = _target(y, n)
    model = _model(last, target, weights, n)
    coef = np.atleast_2d(np.asarray(last.coef_, dtype=np.float64))
    if coef.shape[1] != matrix.shape[1]:
        raise DataError(f"X: {matrix.shape[1]} columns, but the estimator was fitted on {coef.shape[1]}: give the same ones")
    intercept = bool(last.fit_intercept)
    keywords = {"model": model.family, "l2": model.l2, "scale": "none", "fit_intercept": intercept}
    if model.family == "logistic":
        keywords["positive"] = last.classes_[1]
    if model.family == "softmax":
        keywords["max_classes"] = len(last.classes_)
    found = _table(matrix, names, target, kind, index, group, id, model.weights)
    # Coefficients of a softmax model are named by class and column.
    prefixes = [f"{level(c)}: " for c in last.classes_] if model.family == "softmax" else [""]
    constants = np.ravel(last.intercept_) if intercept else [None] * len(prefixes)
    values = []
    for prefix, row, constant in zip(prefixes, coef, constants):
        values += [(prefix + name, float(value)) for name, value in zip(names, row)]
        if constant is not None:
            values.append((prefix + "(intercept)", float(constant)))

    def other(given: Any, name: str, needs_target: bool) -> Data | None:
        if given is None:
            return None
        rows, targets = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        if needs_target and targets is None:
            raise DataError(f"{name}: give a pair of rows and targets")
        m = _transformed(steps, last, rows, columns, name)[0]
        t = None if targets is None else _target(targets, m.shape[0])
        return _table(m, names, t, kind, None, None, None, None, name)

    test, score = other(asked["test"], "test", True), other(asked["score"], "score", False)
    return Translated(found, values, keywords, test, score)


def _table(
    matrix: np.ndarray[Any, Any], names: list[str], target: Any, kind: str, index: Any, group: Any, id: Any,
    weights: Any, name: str = "X",
) -> Data:
    taken = "y"
    while taken in names:
        taken += "_"
    if target is None:
        return read(matrix, columns=names, target=taken, name=name)
    found = read(matrix, target, target=taken, columns=names, group=group, weights=weights, name=name,
                 id=id if id is not None or index is None or _counted(index) else np.array([str(i) for i in index]))
    found.kind, found.index = kind, index
    found.id_is_index = id is None and found.id is not None
    return found


def _counted(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _split(estimator: Any) -> tuple[Any, Any]:
    """The earlier steps of a pipeline (or ``None``) and the model; a pipeline may end in another one."""
    from sklearn.pipeline import Pipeline

    earlier: list[Any] = []
    while isinstance(estimator, Pipeline):
        if not estimator.steps:
            raise OptionError("the Pipeline is empty: give one that ends in a fitted model")
        earlier += [step for _, step in estimator.steps[:-1]]
        estimator = estimator.steps[-1][1]
    steps = Pipeline([(str(at), step) for at, step in enumerate(earlier)]) if earlier else None
    return steps, estimator


def _check_fitted(model: Any) -> None:
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge

    if type(model) not in (Ridge, LinearRegression, LogisticRegression, PoissonRegressor):
        what = type(model).__name__
        raise OptionError(
            f"{what}: what a release of it gives away is not known here: expected a fitted {SUPPORTED}. For another "
            "linear model give its coefficients: audit(X, y, coefficients={…}, scale='none', l2=…)"
        )
    if not hasattr(model, "coef_"):
        raise OptionError(f"{type(model).__name__} is not fitted: call fit(X, y) first")
    if getattr(model, "positive", False):
        raise OptionError(f"{type(model).__name__}(positive=True) is not at a free minimum: its leakage is not known here")
    if np.ndim(model.coef_) > 1 and np.shape(model.coef_)[0] > 1 and not isinstance(model, LogisticRegression):
        raise OptionError(
            f"{type(model).__name__} has {np.shape(model.coef_)[0]} targets: expected one target: fit one model for each"
        )


def _model(model: Any, target: np.ndarray[Any, Any], weights: Any, n: int) -> _Model:
    """Family, penalty and weights; every parametrisation is translated without approximation."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

    given = None
    if weights is not None:
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (n,):
            raise DataError(f"sample_weight: shape {given.shape}, but there are {n} rows: give one value for each")
    if isinstance(model, Ridge):
        if np.size(model.alpha) != 1:
            raise OptionError("Ridge with an alpha for every target: expected one number")
        return _Model("linear", float(np.ravel(model.alpha)[0]) / _total(given, n), given)
    if isinstance(model, LinearRegression):
        return _Model("linear", 0.0, given)
    if isinstance(model, LogisticRegression):
        return _logistic(model, target, given, n)
    return _Model("poisson", float(model.alpha), given)


def _total(weights: np.ndarray[Any, Any] | None, n: int) -> float:
    """The sum of the weights; of 1 for each record without any."""
    return float(n) if weights is None else float(weights.sum()) or 1.0


def _logistic(model: Any, target: np.ndarray[Any, Any], given: Any, n: int) -> _Model:
    if model.solver == "liblinear" and model.fit_intercept:
        raise OptionError(
            "LogisticRegression(solver='liblinear') penalises its intercept, which an audit's model does not: fit it "
            "with solver='lbfgs', or with fit_intercept=False"
        )
    penalty = getattr(model, "penalty", "deprecated")
    ratio = getattr(model, "l1_ratio", None)
    if penalty in ("l1", "elasticnet") and (penalty == "l1" or ratio):
        raise OptionError(f"LogisticRegression(penalty={penalty!r}): expected an l2 penalty or none: leakage needs "
                          "second derivatives, which an l1 penalty does not have")
    if penalty == "deprecated" and ratio:
        raise OptionError(f"LogisticRegression(l1_ratio={ratio}): expected l1_ratio=0: leakage needs second derivatives, "
                          "which an l1 penalty does not have")
    if model.class_weight is not None:
        from inspect import signature

        from sklearn.utils.class_weight import compute_class_weight

        # Later versions balance classes by the sum of their weights.
        takes_weights = "sample_weight" in signature(compute_class_weight).parameters
        more = {"sample_weight": given} if takes_weights else {}
        factors = compute_class_weight(model.class_weight, classes=model.classes_, y=target, **more)
        by_class = factors[np.searchsorted(model.classes_, target)]
        given = by_class if given is None else given * by_class
    strength = 0.0 if penalty is None or np.isinf(model.C) else 1.0 / (_total(given, n) * float(model.C))
    if np.shape(model.coef_)[0] == 1:
        return _Model("logistic", strength, given)
    if model.solver == "liblinear" or getattr(model, "multi_class", "auto") == "ovr":
        raise OptionError("LogisticRegression fitted one class against the others is no softmax model: fit it with "
                          "solver='lbfgs' and without multi_class='ovr'")
    return _Model("softmax", strength, given)


def _target(y: Any, n: int) -> np.ndarray[Any, Any]:
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"y: {array.ndim} dimensions: expected one, a value for each row")
    if len(array) != n:
        raise DataError(f"y: {len(array)} values, but X has {n} rows: they must be as many")
    return array


def _transformed(
    steps: Any, last: Any, x: Any, columns: Sequence[str] | None, name: str
) -> tuple[np.ndarray[Any, Any], list[str], str, Any]:
    """What the model sees of the rows: a dense array, its columns' names, the caller's kind and index."""
    kind, index = kind_of(x), getattr(x, "index", None) if kind_of(x) == "pandas" else None
    if index is not None and not index.is_unique:
        raise DataError(f"{name}: the index has repetitions, so records could not be told apart: use reset_index")
    out = x if steps is None else steps.transform(x)
    if hasattr(out, "toarray"):
        out = out.toarray()
    names = _names(steps, last, out, columns)
    if is_frame(out):
        try:
            out = out.to_numpy() if hasattr(out, "to_numpy") else out.to_pandas().to_numpy()
        except (TypeError, ValueError) as e:
            raise DataError(f"{name}: cannot be made an array: {e}") from e
    matrix = dense(out, name)
    if names is None or len(names) != matrix.shape[1]:
        names = [f"x{j}" for j in range(matrix.shape[1])]
    return matrix, names, kind, index


def _names(steps: Any, last: Any, out: Any, columns: Sequence[str] | None) -> list[str] | None:
    if columns is not None:
        return [str(c) for c in columns]
    if steps is not None:
        try:
            return [str(c) for c in steps.get_feature_names_out()]
        except Exception:  # noqa: BLE001 - a step without names: columns are numbered
            pass
    if is_frame(out):
        return [str(c) for c in getattr(out, "column_names", getattr(out, "columns", []))]
    names = getattr(last, "feature_names_in_", None)
    return None if names is None else [str(c) for c in names]
