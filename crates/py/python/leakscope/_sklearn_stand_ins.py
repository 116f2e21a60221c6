"""Estimators that minimise what a known one does, as that one: stochastic gradients, and elastic nets on their active set.

- ``SGDClassifier(loss="log_loss")``, ``Σ ω·loss/n + (α/2)‖w‖²``: ``LogisticRegression`` with C = 1/(αn)
- ``SGDClassifier(loss="squared_hinge")``, the same with ``(1 ∓ z)₊²``: ``LinearSVC`` with that C and no penalty on the intercept
- ``SGDRegressor(loss="squared_error")``, the same with ``½(y − z)²``: ``Ridge`` with alpha = αn
- ``SGDRegressor(loss="huber", epsilon)``, the same with Huber's loss of threshold ε: ``HuberRegressor`` of scale 1 with alpha = αn
- ``ElasticNet(alpha, l1_ratio)``, ``Σ ω(y − z)²/(2Σω) + α·l1_ratio·‖w‖₁ + (α(1 − l1_ratio)/2)‖w‖²``, and ``Lasso``: where no
  coefficient is about to leave or enter, the ℓ₁ term is linear, so that the model moves with a record as a ``Ridge`` on the
  columns of its active set does, with alpha = α(1 − l1_ratio)Σω
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from ._native import OptionError
from ._sklearn_refusals import one_against_the_others


class ActiveColumns(TransformerMixin, BaseEstimator):
    """A step that keeps the columns whose coefficients are not zero."""

    def __init__(self, kept: np.ndarray[Any, Any], names: Any = None) -> None:
        self.kept, self.names = kept, names

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, x: Any, y: Any = None) -> ActiveColumns:
        """Nothing to fit: the columns are the model's."""
        return self

    def transform(self, x: Any) -> Any:
        """The kept columns, of the kind that came in."""
        if hasattr(x, "iloc"):
            return x.iloc[:, self.kept]
        if hasattr(x, "toarray"):
            x = x.toarray()
        return np.asarray(x)[:, self.kept]

    def get_feature_names_out(self, names: Any = None) -> Any:
        """Their names; numbers in the place of names that are not known."""
        known = self.names if names is None else names
        return np.array([f"x{at}" for at in self.kept]) if known is None else np.asarray(known)[self.kept]


def stand_in(steps: Any, model: Any, weights: Any, n: int) -> tuple[Any, Any]:
    """The earlier steps and the model of the same leakage; both as they are where the model is a known one."""
    kind = type(model).__name__
    if not type(model).__module__.startswith("sklearn.linear_model") or not hasattr(model, "coef_"):
        return steps, model
    if kind in ("SGDClassifier", "SGDRegressor"):
        return steps, _stochastic(model, n)
    if kind in ("ElasticNet", "Lasso", "ElasticNetCV", "LassoCV"):
        return _active(steps, model, float(n) if weights is None else float(np.asarray(weights, dtype=np.float64).sum()))
    return steps, model


def _stochastic(model: Any, n: int) -> Any:
    from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge
    from sklearn.svm import LinearSVC

    name, classes = type(model).__name__, hasattr(model, "classes_")
    wanted = ("log_loss", "squared_hinge") if classes else ("squared_error", "huber")
    if model.loss not in wanted:
        raise OptionError(f"{name}(loss={model.loss!r}): expected loss={wanted[0]!r} or {wanted[1]!r}: leakage needs second derivatives, and "
                          "is known for these losses")
    if classes and len(model.classes_) > 2:
        raise OptionError(one_against_the_others(name, len(model.classes_)))
    if model.penalty not in ("l2", None):
        raise OptionError(f"{name}(penalty={model.penalty!r}): expected penalty='l2' or None: leakage needs second derivatives, which an "
                          "l1 penalty does not have")
    strength = float(model.alpha) if model.penalty == "l2" else 0.0
    result: Any
    if classes:
        kind: Any = LogisticRegression if model.loss == "log_loss" else LinearSVC
        result = kind(C=1 / (strength * n) if strength else np.inf, fit_intercept=model.fit_intercept, class_weight=model.class_weight)
        if model.loss == "squared_hinge":
            result.intercept_scaling = np.inf
        result.classes_ = model.classes_
    elif model.loss == "huber":
        result = HuberRegressor(epsilon=float(model.epsilon), alpha=strength * n, fit_intercept=model.fit_intercept)
        result.scale_ = 1.0
    else:
        result = Ridge(alpha=strength * n, fit_intercept=model.fit_intercept)
    return _with_coefficients(result, model.coef_, model)


def _active(steps: Any, model: Any, total: float) -> tuple[Any, Any]:
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import Pipeline

    name = type(model).__name__
    coef = np.asarray(model.coef_)
    if coef.ndim != 1:
        raise OptionError(f"{name} has {len(coef)} targets: expected one target: fit one model for each")
    kept = np.flatnonzero(coef)
    if not len(kept):
        raise OptionError(f"{name}: every coefficient is zero: it is a constant, and its active set is empty")
    strength = float(model.alpha_ if hasattr(model, "alpha_") else model.alpha)
    ratio = float(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)))
    warnings.warn(f"{name}: leakage is that on its active set, {len(kept)} of {len(coef)} columns: which columns these are, and that a "
                  "record may change them, is not counted. The distance from a minimiser is that of the ℓ₁ term.", stacklevel=5)
    result = _with_coefficients(Ridge(alpha=strength * (1 - ratio) * total, fit_intercept=model.fit_intercept), coef[kept], model)
    earlier = [] if steps is None else list(steps.steps)
    return Pipeline([*earlier, ("active columns", ActiveColumns(kept, getattr(model, "feature_names_in_", None)))]), result


def _with_coefficients(result: Any, coef: Any, model: Any) -> Any:
    result.coef_, result.intercept_, result.n_features_in_ = np.asarray(coef, dtype=np.float64), model.intercept_, np.shape(coef)[-1]
    return result
