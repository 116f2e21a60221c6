"""Fitted scikit-learn models in the terms of an audit: their penalty, their columns, their weights, exactly.

An audit's model minimises ``Σ (ω/ω̄)·loss + (nλ/2)‖w‖²`` with an intercept that is not penalised, ω̄ the mean of the weights;
nω̄ = Σω, so that

- ``Ridge(alpha)``, ``Σ ω(y − z)² + α‖w‖²``: λ = α/Σω
- ``LinearRegression``: λ = 0
- ``LogisticRegression(C)``, ``C·Σ ω·loss + ½‖w‖²``: λ = 1/(C·Σω); without a penalty 0
- the same with more than two classes, ``C·Σ ω·(−log π_y) + ½‖W‖²``: a softmax model with that λ
- ``PoissonRegressor(alpha)``, ``GammaRegressor`` and ``TweedieRegressor`` of a power from 1 to 2 with a logarithmic link,
  ``Σ ω·(half deviance)/Σω + (α/2)‖w‖²``: λ = α; ``TweedieRegressor(power=0)`` is least squares
- ``LinearSVC(C)``, ``C·Σ ω(1 ∓ z)₊² + ½(‖w‖² + (b/s)²)`` with s its ``intercept_scaling``: the squared hinge, which is half of that here, with
  λ = 1/(2C·Σω), and κ = 1/s² of the penalty on the intercept; ``LogisticRegression(solver="liblinear")`` has the same κ
- ``HuberRegressor(epsilon, alpha)``, ``Σ ω(σ + σH(r/σ)) + α‖w‖²`` with ``H(u) = u²`` within ε: at its σ this is Huber's loss with threshold εσ
  and λ = ασ/Σω. σ is a minimiser too, and held here: what a record does to it is not counted
- ``RidgeCV``, ``RidgeClassifier`` (classes as −1 and 1) and ``LogisticRegressionCV`` are these at what they chose; a search is its best
  estimator

A pipeline is opened where that can be done (:mod:`leakscope._opened`): the audit is then one of the frame that went in.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._native import DataError, OptionError
from ._requests import settings
from ._opened import Opened, Unopened, opened
from ._sklearn_refusals import advice, one_against_the_others
from ._sklearn_stand_ins import ActiveColumns, stand_in
from ._tables import Data, check_order, column_of, dense, is_frame, kind_of, level, read
from ._tables import _column as add_column
from ._tables import _with_roles as with_roles

SUPPORTED = ("Ridge, RidgeCV, RidgeClassifier, LinearRegression, LogisticRegression, LogisticRegressionCV, LinearSVC, HuberRegressor, "
             "PoissonRegressor, GammaRegressor, TweedieRegressor, SGDClassifier, SGDRegressor, ElasticNet, Lasso, or a Pipeline or search that ends "
             "in one of them")


@dataclass
class Translated:
    """An estimator in the terms of an audit."""

    source: Data
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
    #: share of the penalty that the intercept has
    intercept_share: float = 0.0


#: what the estimator says itself
_ITS_OWN = ("model", "power", "huber_threshold", "l2", "scale", "one_hot", "pca", "missing", "positive", "drop", "categorical", "holdout", "fit_intercept",
            "coefficients", "schema", "bounds", "levels", "clip_to_bounds", "min_level_count", "max_classes")


def translated(estimator: Any, x: Any, y: Any, options: Mapping[str, Any], audit: Callable[..., Any]) -> Translated:
    """The table, the keywords and the coefficients of a fitted estimator; ``asked`` are the keywords of the call."""
    for name in settings(audit, options, _ITS_OWN):
        raise OptionError(f"{name}: the estimator says it already: leave it out")
    weights, columns, group, id = (options[name] for name in ("weights", "columns", "group", "id"))
    if x is None or y is None:
        raise DataError("audit(estimator, X, y): give the rows and targets that it was fitted on")
    steps, last = _split(estimator)
    named = isinstance(weights, str)
    weighed = column_of(x, weights, "weights") if named and is_frame(x) else None if named else weights
    steps, last = stand_in(steps, last, weighed, len(y))
    _check_fitted(last)
    matrix, names, kind, index = _transformed(steps, last, x, columns, "X")
    inside: Opened | None = None
    if steps is not None and columns is None and not _alone(steps):
        try:
            inside = opened(steps, x, matrix)
        except Unopened as e:
            warnings.warn(f"{e} is not opened: attributes are the columns that the model sees, in its units", stacklevel=4)
    n = matrix.shape[0]
    if is_frame(x):
        # Names are those of the caller's columns, which the steps may have changed or taken away.
        group, id = (column_of(x, v, role) if isinstance(v, str) else v for v, role in ((group, "group"), (id, "id")))
        weights = column_of(x, weights, "weights") if isinstance(weights, str) else weights
    elif isinstance(weights, str):
        raise DataError(f"weights={weights!r}: X is an array, whose columns have no names: give a value for each row")
    for role, entry in (("y", y), ("group", group), ("id", id), ("weights", weights)):
        check_order(entry, index, role)
    target = _target(y, n)
    model = _model(last, target, weights, n)
    if model.family == "linear" and hasattr(last, "classes_"):
        target = np.where(target == last.classes_[1], 1.0, -1.0)
    coef = np.atleast_2d(np.asarray(last.coef_, dtype=np.float64))
    if coef.shape[1] != matrix.shape[1]:
        raise DataError(f"X: {matrix.shape[1]} columns, but the estimator was fitted on {coef.shape[1]}: give the same ones")
    intercept = bool(last.fit_intercept)
    keywords = {"model": model.family, "l2": model.l2, "scale": "none", "fit_intercept": intercept,
                "read_off_elsewhere": _chosen_on_rows(estimator) or _moved_by_rows(steps, inside)}
    if intercept:
        keywords["intercept_share"] = model.intercept_share
    if model.family in ("logistic", "squared-hinge"):
        keywords["positive"] = last.classes_[1]
    if model.family == "softmax":
        keywords["max_classes"] = len(last.classes_)
    if inside is None:
        source = _table(matrix, names, target, kind, index, group, id, model.weights)
    else:
        keywords |= inside.keywords()
        names = inside.names()
        source = _opened_table(inside, x, target, group, id, model.weights, "X")
    # Coefficients of a softmax model are named by class and column.
    prefixes = [f"{level(c)}: " for c in last.classes_] if model.family == "softmax" else [""]
    constants = np.ravel(last.intercept_) if intercept else [None] * len(prefixes)
    values = []
    for prefix, row, constant in zip(prefixes, coef, constants):
        values += [(prefix + name, float(value)) for name, value in zip(names, row)]
        if constant is not None:
            values.append((prefix + "(intercept)", float(constant)))

    def other(entry: Any, name: str, needs_target: bool) -> Data | None:
        if entry is None:
            return None
        rows, targets = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
        if needs_target and targets is None:
            raise DataError(f"{name}: give a pair of rows and targets")
        m = _transformed(steps, last, rows, columns, name)[0]
        t = None if targets is None else _target(targets, m.shape[0])
        if inside is not None:
            return _opened_table(inside, rows, t, None, None, None, name, source.target)
        return _table(m, names, t, kind, None, None, None, None, name)

    test, score = other(options["test"], "test", True), other(options["score"], "score", False)
    return Translated(source, values, keywords, test, score)


def of_statsmodels(results: Any, options: Mapping[str, Any], audit: Callable[..., Any]) -> Translated:
    """The same for what ``fit`` of statsmodels returns, which holds its own rows and targets."""
    from . import _statsmodels as own

    for name in settings(audit, options, (*_ITS_OWN, "weights", "target", "test", "score")):
        raise OptionError(f"{name}: the results say it already: leave it out")
    family = own.family_of(results)
    weights = own.weights_of(results)
    design, names, coef, intercept = own.split(results)
    target = np.asarray(results.model.endog, dtype=np.float64)
    if target.ndim != 1:
        raise OptionError("a target of two columns (successes and failures): expected one value for each record")
    keywords: dict[str, Any] = {"model": family, "l2": 0.0, "scale": "none", "fit_intercept": intercept is not None}
    if family == "logistic":
        keywords["positive"] = "1"
        if not np.isin(target, (0.0, 1.0)).all():
            raise OptionError("shares as targets: expected 0 or 1 for each record")
    group, id = options["group"], options["id"]
    pair = None
    try:
        pair = own.opened(results, design, names)
    except Unopened as e:
        warnings.warn(f"{e} is not opened: attributes are the columns of the design, in its units", stacklevel=4)
        # a term of a formula may centre or bend a column by its own values
        keywords["read_off_elsewhere"] = True
    if pair is None:
        result = _table(design, names, target, "pandas", None, group, id, weights)
    else:
        inside, frame = pair
        keywords |= inside.keywords()
        names = inside.names()
        group, id = (column_of(frame, v, role) if isinstance(v, str) else v for v, role in ((group, "group"), (id, "id")))
        result = _opened_table(inside, frame, target, group, id, weights, "frame")
    values = [(name, float(value)) for name, value in zip(names, coef)]
    if intercept is not None:
        values.append(("(intercept)", intercept))
    return Translated(result, values, keywords, None, None)


def _table(
    matrix: np.ndarray[Any, Any], names: list[str], target: Any, kind: str, index: Any, group: Any, id: Any,
    weights: Any, name: str = "X",
) -> Data:
    taken = "y"
    while taken in names:
        taken += "_"
    if target is None:
        return read(matrix, columns=names, target=taken, name=name)
    result = read(matrix, target, target=taken, columns=names, group=group, weights=weights, name=name,
                 id=id if id is not None or index is None or _counted(index) else np.array([str(i) for i in index]))
    result.kind, result.index = kind, index
    result.id_is_index = id is None and result.id is not None
    return result


def _opened_table(
    inside: Opened, x: Any, target: Any, group: Any, id: Any, weights: Any, name: str, taken: str | None = None
) -> Data:
    """The caller's frame, as far as the model uses it."""
    result = inside.table(x, name)
    table = result.table
    assert table is not None
    if taken is None:
        taken = "y"
        while taken in table.names():
            taken += "_"
    result.target = taken
    if target is None:
        return result
    add_column(table, taken, target, len(target))
    if id is None and result.index is not None and not _counted(result.index):
        result = with_roles(result, table, group, np.array([str(i) for i in result.index]), weights)
        result.id_is_index = True
        return result
    return with_roles(result, table, group, id, weights)


def _counted(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _split(estimator: Any) -> tuple[Any, Any]:
    """The earlier steps of a pipeline (or ``None``) and the model; a pipeline may end in another one."""
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline

    earlier: list[Any] = []
    while isinstance(estimator, (Pipeline, BaseSearchCV)):
        if isinstance(estimator, BaseSearchCV):
            if not hasattr(estimator, "best_estimator_"):
                raise OptionError(f"{type(estimator).__name__} has no best_estimator_: fit it, with refit=True")
            estimator = estimator.best_estimator_
            continue
        if not estimator.steps:
            raise OptionError("the Pipeline is empty: give one that ends in a fitted model")
        earlier += [step for _, step in estimator.steps[:-1]]
        estimator = estimator.steps[-1][1]
    steps = Pipeline([(str(at), step) for at, step in enumerate(earlier)]) if earlier else None
    return steps, estimator


def _chosen_on_rows(estimator: Any) -> bool:
    """Whether a setting of the model was found on the rows: a penalty by cross-validation, weights of classes from their counts, columns by
    an ℓ₁ penalty, the scale of Huber's loss. Another record may find another, which an audit does not count."""
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline

    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    kind = type(estimator).__name__
    return (isinstance(estimator, BaseSearchCV) or kind.endswith("CV") or kind in ("ElasticNet", "Lasso", "HuberRegressor")
            or getattr(estimator, "class_weight", None) == "balanced")


def _moved_by_rows(steps: Any, inside: Opened | None) -> bool:
    """Whether a step before the model took something from the rows that an audit does not count. What could not be opened may have."""
    return steps is not None and (inside is None or inside.is_moved_by_rows())


def _alone(steps: Any) -> bool:
    """Whether the only step is a choice of columns: what the model sees are columns of the caller's, in their units."""
    return len(steps.steps) == 1 and isinstance(steps.steps[0][1], ActiveColumns)


def _check_fitted(model: Any) -> None:
    from sklearn.linear_model import (
        GammaRegressor, HuberRegressor, LinearRegression, LogisticRegression, LogisticRegressionCV, PoissonRegressor, Ridge,
        RidgeClassifier, RidgeClassifierCV, RidgeCV, TweedieRegressor,
    )
    from sklearn.svm import LinearSVC

    if type(model) not in (Ridge, RidgeCV, RidgeClassifier, RidgeClassifierCV, LinearRegression, LogisticRegression,
                           LogisticRegressionCV, PoissonRegressor, GammaRegressor, TweedieRegressor, LinearSVC, HuberRegressor):
        raise OptionError(advice(model, SUPPORTED))
    if not hasattr(model, "coef_"):
        raise OptionError(f"{type(model).__name__} is not fitted: call fit(X, y) first")
    if getattr(model, "positive", False):
        raise OptionError(f"{type(model).__name__}(positive=True) is not at a free minimum: its leakage is not known here")
    several = np.ndim(model.coef_) > 1 and np.shape(model.coef_)[0] > 1
    if several and type(model) not in (LogisticRegression, LogisticRegressionCV):
        name, count = type(model).__name__, np.shape(model.coef_)[0]
        if hasattr(model, "classes_"):
            raise OptionError(one_against_the_others(name, count))
        raise OptionError(f"{name} has {count} targets: expected one target: fit one model for each")


def _model(model: Any, target: np.ndarray[Any, Any], weights: Any, n: int) -> _Model:
    """Family, penalty and weights; every parametrisation is translated without approximation."""
    from sklearn.linear_model import (
        GammaRegressor, HuberRegressor, LinearRegression, LogisticRegression, Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV,
        TweedieRegressor,
    )
    from sklearn.svm import LinearSVC

    source = None
    if weights is not None:
        source = np.asarray(weights, dtype=np.float64)
        if source.shape != (n,):
            raise DataError(f"sample_weight: shape {source.shape}, but there are {n} rows: give one value for each")
    if isinstance(model, (Ridge, RidgeCV, RidgeClassifier, RidgeClassifierCV)):
        # What cross-validation chose has an underscore.
        alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
        if np.size(alpha) != 1:
            raise OptionError("Ridge with an alpha for every target: expected one number")
        if hasattr(model, "classes_"):
            source = _with_class_weights(model, target, source)
        return _Model("linear", float(np.ravel(alpha)[0]) / _total(source, n), source)
    if isinstance(model, LinearRegression):
        return _Model("linear", 0.0, source)
    if isinstance(model, LogisticRegression):
        return _logistic(model, target, source, n)
    if isinstance(model, LinearSVC):
        return _support_vectors(model, target, source, n)
    if isinstance(model, HuberRegressor):
        scale = float(model.scale_)
        # A stand-in of scale one was not estimated.
        if hasattr(model, "outliers_"):
            warnings.warn(f"HuberRegressor: its scale, {scale:.4g}, was estimated along with the coefficients and is held here: what a record "
                          "does to the coefficients through it is not counted", stacklevel=4)
        return _Model(f"huber({float(model.epsilon) * scale!r})", float(model.alpha) * scale / _total(source, n), source)
    if isinstance(model, GammaRegressor):
        return _Model("gamma", float(model.alpha), source)
    if isinstance(model, TweedieRegressor):
        return _Model(_tweedie(model), float(model.alpha), source)
    return _Model("poisson", float(model.alpha), source)


def _tweedie(model: Any) -> str:
    """The family of a power and a link, where the loss is convex."""
    power, link = float(model.power), model.link
    if power == 0 and link in ("auto", "identity"):
        return "linear"
    if power <= 0 or (link == "identity" and power != 0):
        raise OptionError(f"TweedieRegressor(power={model.power!r}, link={link!r}): its loss is not convex: expected a power from 1 to 2 with "
                          "a logarithmic link, or 0 with the identity")
    if not 1 <= power <= 2:
        raise OptionError(f"TweedieRegressor(power={model.power!r}): expected a power from 1 to 2, or 0: above 2 the loss is not convex, so that "
                          "a minimiser need not be the only one")
    return f"tweedie({power!r})"


def _support_vectors(model: Any, target: np.ndarray[Any, Any], source: Any, n: int) -> _Model:
    if model.loss != "squared_hinge" or model.penalty != "l2":
        raise OptionError(f"LinearSVC(loss={model.loss!r}, penalty={model.penalty!r}): expected loss='squared_hinge' and penalty='l2': leakage "
                          "needs derivatives, which a hinge and an l1 penalty do not have")
    source = _with_class_weights(model, target, source)
    return _Model("squared-hinge", 1 / (2 * float(model.C) * _total(source, n)), source, _share(model))


def _share(model: Any) -> float:
    """Share of the penalty on the intercept: liblinear takes it as the coefficient of a constant column."""
    return float(model.intercept_scaling) ** -2


def _total(weights: np.ndarray[Any, Any] | None, n: int) -> float:
    """The sum of the weights; of 1 for each record without any."""
    return float(n) if weights is None else float(weights.sum()) or 1.0


def _with_class_weights(model: Any, target: np.ndarray[Any, Any], source: Any) -> Any:
    """Weights of records times those of their classes."""
    if model.class_weight is None:
        return source
    from inspect import signature

    from sklearn.utils.class_weight import compute_class_weight

    # Later versions balance classes by the sum of their weights.
    takes_weights = "sample_weight" in signature(compute_class_weight).parameters
    more = {"sample_weight": source} if takes_weights else {}
    factors = compute_class_weight(model.class_weight, classes=model.classes_, y=target, **more)
    by_class = factors[np.searchsorted(model.classes_, target)]
    return by_class if source is None else source * by_class


def _logistic(model: Any, target: np.ndarray[Any, Any], source: Any, n: int) -> _Model:
    penalty = getattr(model, "penalty", "deprecated")
    ratio = np.ravel(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", None)))[0]
    if penalty in ("l1", "elasticnet") and (penalty == "l1" or ratio):
        raise OptionError(f"LogisticRegression(penalty={penalty!r}): expected an l2 penalty or none: leakage needs "
                          "second derivatives, which an l1 penalty does not have")
    if penalty == "deprecated" and ratio:
        raise OptionError(f"LogisticRegression(l1_ratio={ratio}): expected l1_ratio=0: leakage needs second derivatives, "
                          "which an l1 penalty does not have")
    source = _with_class_weights(model, target, source)
    chosen = np.ravel(getattr(model, "C_", getattr(model, "C", 1.0)))
    if not (chosen == chosen[0]).all():
        raise OptionError(f"{type(model).__name__} chose another C for every class: it fitted one class against the others, which is no "
                          "softmax model: fit it with solver='lbfgs'")
    c = float(chosen[0])
    strength = 0.0 if penalty is None or np.isinf(c) else 1.0 / (_total(source, n) * c)
    if np.shape(model.coef_)[0] == 1:
        return _Model("logistic", strength, source, _share(model) if model.solver == "liblinear" else 0.0)
    if model.solver == "liblinear" or getattr(model, "multi_class", "auto") == "ovr":
        raise OptionError("LogisticRegression fitted one class against the others is no softmax model: fit it with "
                          "solver='lbfgs' and without multi_class='ovr'")
    return _Model("softmax", strength, source)


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
    fitted = getattr(last, "feature_names_in_", None)
    if steps is None and columns is None and is_frame(out) and fitted is not None and names != [str(c) for c in fitted]:
        # Steps compare names themselves; of the model alone coefficients would go to other columns.
        raise DataError(f"{name}: its columns are {', '.join(names or [])}; the estimator was fitted on {', '.join(map(str, fitted))}: give these, "
                        "in this order")
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
