"""Private linear models as scikit-learn estimators."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _native
from ._docs import documented
from ._requests import amount, listed, ranges, secret


#: what the keywords of an estimator mean, where that is more than in the other functions
_PARAMETERS = {
    "sigma": "Standard deviation of the noise on every coefficient of columns in public units (powers of two near their spread), above 0.",
    "target_eta": "Instead of ``sigma``: the noise that brings the ``statistic`` of η over records down to this, above 0. Without either "
                  "and without ``target_sd``, 1.",
    "protect": "Columns, by number or name, that ``target_eta`` is for. By default it is for whole records.",
    "target_sd": "Columns, by number or name, each with how close an estimate of it may come, in its own units: ``{\"age\": 5}``.",
    "scale": "How columns are scaled: ``\"standard\"`` (mean 0, standard deviation 1) or ``\"none\"``.",
    "bounds": "Ranges of columns that are public, by number or name, such as ``{\"age\": (0, 100)}``.",
    "balance": "Reweight records first, in so many iterations at most, until they leak about the same; 0 for none.",
    "random_state": "Seed or generator of the noise, which can then be repeated and protects nobody. By default the noise comes from the "
                    "system's generator.",
}

#: a class that fewer records have is named by the model, and hardly anybody has it
_FEW = 10


class _Private(BaseEstimator):  # type: ignore[misc]
    """What both models share: the fit, the noise, the balancing."""

    _model: str

    def __init__(
        self,
        *,
        sigma: float | None = None,
        target_eta: float | None = None,
        statistic: str = "max",
        noise_shape: str = "isotropic",
        protect: Any = (),
        target_sd: Any = None,
        shape_budget: float = 0.05,
        l2: float = 1e-3,
        fit_intercept: bool = True,
        scale: str = "standard",
        bounds: Any = None,
        clip_to_bounds: bool = False,
        balance: int = 0,
        label: str = "secret",
        random_state: Any = None,
    ) -> None:
        self.sigma = sigma
        self.target_eta = target_eta
        self.statistic = statistic
        self.noise_shape = noise_shape
        self.protect = protect
        self.target_sd = target_sd
        self.shape_budget = shape_budget
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.scale = scale
        self.bounds = bounds
        self.clip_to_bounds = clip_to_bounds
        self.balance = balance
        self.label = label
        self.random_state = random_state

    def _fit(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], classes: int = 2) -> None:
        names = [f"x{j}" for j in range(x.shape[1])]
        table = _native.Table("X")
        table.matrix(names, x)
        table.array("y", np.ascontiguousarray(y, dtype=np.float64))
        # η of at most 1 by default: nobody can tell a value of a record to better than its spread.
        width = x.shape[1]
        sd = {self._column(column, width, "target_sd"): sd for column, sd in dict(self.target_sd or {}).items()}
        unsaid = self.sigma is None and self.target_eta is None and not sd
        protect = [self._column(column, width, "protect") for column in listed(self.protect)]
        bounds = ranges(self.bounds, lambda column: self._column(column, width, "bounds"))
        noise = {
            "sigma": self.sigma, "target_eta": 1.0 if unsaid else self.target_eta, "statistic": self.statistic,
            "noise_shape": self.noise_shape, "protect": protect, "target_sd": sd, "shape_budget": self.shape_budget,
            "shape_from": None, "gap": 0.01,
        }
        request = {
            "roles": {"target": "y"}, "family": "softmax" if classes > 2 else self._model, "max_classes": max(classes, 2), "l2": self.l2, "intercept": self.fit_intercept,
            "scale": self.scale, "label_secret": secret(self.label), "two_class_coded": False,
            "public": {"bounds": bounds, "clip_to_bounds": self.clip_to_bounds},
        }
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        result = _native.private_model(request, {"noise": amount(noise), "balance": self.balance}, table, seed)
        values = dict(result["coefficients"])
        # A softmax model has a vector for each class, named by its code.
        prefixes = [f"{code}: " for code in range(classes)] if classes > 2 else [""]
        coef = np.array([[values[prefix + name] for name in names] for prefix in prefixes])
        intercept = np.array([values.get(prefix + "(intercept)", 0.0) for prefix in prefixes])
        self._coef, self._intercept = (coef, intercept) if classes > 2 else (coef[0], float(intercept[0]))
        self.sigma_ = result["sigma"]
        self.eta_max_ = result["eta_max"]
        self._eta_is_target = result["eta_is_target"]
        self._precision = {name: row for name, *row in result["precision"]}
        errors = np.array([[self._precision[prefix + name][0] for name in names] for prefix in prefixes])
        of_intercepts = np.array([self._precision.get(prefix + "(intercept)", [0.0])[0] for prefix in prefixes])
        self.noise_error_ = errors if classes > 2 else errors[0]
        self.intercept_noise_error_ = of_intercepts if classes > 2 else float(of_intercepts[0])
        shape = result["shape"]
        #: the published covariance of the noise, where it was made for targets: its factor, what it protects, where it comes from
        self.noise_ = None if shape is None else json.loads(shape)
        if result["instead"] is not None:
            warnings.warn(result["instead"], stacklevel=3)
        if result["units_hang_on_one"]:
            self._warn_of_units([self._name(name) for name in result["units_hang_on_one"]])

    def _warn_of_units(self, columns: list[str]) -> None:
        """Says where one record decides the unit of a column."""
        shown = ", ".join(columns[:5]) + (f" and {len(columns) - 5} more" if len(columns) > 5 else "")
        warnings.warn(
            f"{type(self).__name__}: one record decides the unit of {shown}, which shows in noise_error_ and is not counted in eta_max_: who "
            "knows the other records sees something of it. Give bounds that are public, such as "
            f"bounds={{{columns[0]!r}: (low, high)}}, or do not publish the model", stacklevel=4)

    def _name(self, column: str) -> str:
        """The caller's name of a column, or its number."""
        index = int(column[1:])
        known = getattr(self, "feature_names_in_", None)
        return str(index if known is None else known[index])

    def _column(self, column: Any, count: int, option: str) -> str:
        """A column by its number, or by its name where the rows have names."""
        if isinstance(column, (int, np.integer)) and 0 <= column < count:
            return f"x{column}"
        known = list(getattr(self, "feature_names_in_", []))
        if column in known:
            return f"x{known.index(column)}"
        expected = f"one of {known}" if known else f"the number of a column, 0 to {count - 1}"
        raise ValueError(f"{option}: {column!r} is no column: expected {expected}")

    def summary(self) -> list[dict[str, Any]]:
        """Coefficients with the standard deviation of their noise, 95% intervals and p-values that account for it.

        Intervals are for the coefficient that was fitted, before its noise. It says no more than the fitted model does; how far the fitted
        coefficient is from that of the population (sampling) is not part of it, since it would be read off the records.
        """
        check_is_fitted(self)
        coef, intercept = np.atleast_2d(self._coef), np.ravel(self._intercept)
        known = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(coef.shape[1])]))
        values = {}
        for code, (row, constant) in enumerate(zip(coef, intercept)):
            prefix, shown = (f"{code}: ", f"{self.classes_[code]}: ") if len(coef) > 1 else ("", "")
            values |= {f"{prefix}x{j}": (f"{shown}{name}", value) for j, (name, value) in enumerate(zip(known, row))}
            values[f"{prefix}(intercept)"] = (f"{shown}(intercept)", constant)
        rows = []
        for key, (noise_error, low, high, p_value) in self._precision.items():
            name, value = values[key]
            rows.append({"name": str(name), "coefficient": float(value), "noise_error": noise_error, "low": low, "high": high,
                         "p_value": p_value})
        return rows

    def _warn(self, right: float, without: float, of: str) -> None:
        """Says so where noise left nothing of the model: how good it is on its own rows beside a model without columns."""
        if right > without + 0.05 * (1.0 - without):
            return
        warnings.warn(
            f"{type(self).__name__}: noise of sigma_={self.sigma_:.3g} (for eta_max_={self.eta_max_:.3g}) leaves nothing of the model: {of} "
            f"{right:.2f} on its own rows, {without:.2f} without any column. Give it more records, a larger l2 (now {self.l2:g}: noise "
            "falls as it grows), or allow more leakage with target_eta", stacklevel=3)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "sigma_")

    def __getstate__(self) -> dict[str, Any]:
        """An η that was measured is not pickled: it stays here."""
        state: dict[str, Any] = dict(super().__getstate__())
        if not state.get("_eta_is_target", True):
            state.pop("eta_max_", None)
        return state


@documented(**_PARAMETERS)
class PrivateLinear(RegressorMixin, _Private):  # type: ignore[misc]
    """Least squares with a ridge penalty, released with exact discrete Gaussian noise.

    The noise is ``sigma`` on every coefficient of columns in public units (powers of two near their spread), or what brings the
    ``statistic`` of η over records down to ``target_eta``; without either, the largest η is 1. ``sigma_`` is a power of 2^¼
    not below it, ``eta_max_`` the target, or such a power not below the largest η, which counts the scaling of columns.
    ``noise_shape="shaped"`` makes noise that costs less for the same η; ``protect`` (numbers or names of columns) puts ``target_eta`` on
    these, ``target_sd`` says how close an estimate of a column may come, in its own units. ``noise_error_`` is the standard
    deviation of the noise on each coefficient, ``summary()`` has intervals and p-values with it, ``noise_`` its covariance.
    ``eta_max_`` that is no target was measured on the rows: it is for you alone, and no pickle holds it, for whoever knows the other
    rows computes from it which values the last one can have. ``bounds`` are ranges of columns that are public, such as
    ``{"age": (0, 100)}``, by number or name; ``clip_to_bounds`` moves values outside to the nearest. Units of columns without them are
    read off the rows, rounded: where one record decides a unit, which shows in ``noise_error_`` and is not counted, ``fit`` warns. With
    bounds for every column nothing depends on the rows but the noisy coefficients and, where a target asks for it, which power of 2^¼
    ``sigma_`` is. ``balance`` reweights records first, in so many iterations at
    most, until they leak about the same. Without ``random_state`` the noise comes from the
    system's generator; with one it can be repeated, and protects nobody.

    Leakage is that of this one release: fits on the same data add up (``leakscope.release`` keeps a ledger, and takes
    weights).

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(size=1000)
    >>> model = leakscope.PrivateLinear(target_eta=0.5, random_state=0).fit(X, y)
    >>> round(model.eta_max_, 3)
    0.5
    >>> model.score(X, y) > 0.9
    True
    """

    _model = "linear"

    @documented(X="Rows: an array or a frame of numbers.", y="The target of every row.")
    def fit(self, X: Any, y: Any) -> PrivateLinear:
        """Fits to rows ``X`` and targets ``y``, and adds the noise."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self._fit(X, y)
        self.coef_, self.intercept_ = self._coef, self._intercept
        spread = float(np.var(y))
        if spread > 0:
            self._warn(1.0 - float(np.mean((y - X @ self.coef_ - self.intercept_) ** 2)) / spread, 0.0, "R² is")
        return self

    @documented(X="Rows, with the columns of the fit.")
    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Predictions of the private model for rows ``X``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # noise has its price on small data
        return tags


@documented(**_PARAMETERS)
class PrivateLogistic(ClassifierMixin, _Private):  # type: ignore[misc]
    """Logistic regression, released with exact discrete Gaussian noise; of more than two classes, softmax regression.

    What :class:`PrivateLinear` says of noise, units and pickles holds here too. With more than two classes ``coef_`` has a row for each of them, with noise on
    each.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.where(X[:, 0] + rng.logistic(size=1000) > 0, "yes", "no")
    >>> model = leakscope.PrivateLogistic(sigma=0.1, random_state=0).fit(X, y)
    >>> model.classes_.tolist()
    ['no', 'yes']
    >>> model.score(X, y) > 0.6
    True
    """

    _model = "logistic"

    @documented(X="Rows: an array or a frame of numbers.", y="The target of every row.")
    def fit(self, X: Any, y: Any) -> PrivateLogistic:
        """Fits to rows ``X`` and targets ``y``, and adds the noise."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only ({self.classes_[0]!r}): expected at least two")
        counts = np.bincount(codes)
        if len(counts) > 2 and counts.min() < 2:
            rare = self.classes_.tolist()[counts.argmin()]
            raise ValueError(f"y: class {rare!r} has one record, which alone determines its coefficients: leave it out, or join it with another")
        if counts.min() < _FEW:
            rare = self.classes_.tolist()[counts.argmin()]
            warnings.warn(f"PrivateLogistic: class {rare!r} has {counts.min()} records, and its name in classes_ says that somebody has it: "
                          "where that is no public class, join it with another", stacklevel=2)
        self._fit(X, codes.astype(np.float64), len(self.classes_))
        self.coef_, self.intercept_ = np.atleast_2d(self._coef), np.atleast_1d(self._intercept)
        z = X @ self.coef_.T + self.intercept_
        guessed = z.argmax(axis=1) if len(self.classes_) > 2 else (z[:, 0] > 0).astype(int)
        self._warn(float(np.mean(guessed == codes)), float(counts.max()) / len(codes), "it is right in")
        return self

    @documented(X="Rows, with the columns of the fit.")
    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:
        """Log odds of the second class for rows ``X``; of more than two classes, the predictor of each."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        z = np.asarray(X @ self.coef_.T + self.intercept_)
        return z[:, 0] if len(self.classes_) == 2 else z

    @documented(X="Rows, with the columns of the fit.")
    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:
        """Probabilities of the classes for rows ``X``."""
        z = self.decision_function(X)
        if z.ndim == 2:
            z = np.exp(z - z.max(axis=1, keepdims=True))
            return np.asarray(z / z.sum(axis=1, keepdims=True))
        second = np.where(z >= 0, 1.0, np.exp(-np.abs(z))) / (1.0 + np.exp(-np.abs(z)))
        return np.column_stack([1.0 - second, second])

    @documented(X="Rows, with the columns of the fit.")
    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """The likeliest class for rows ``X``."""
        z = self.decision_function(X)
        return np.asarray(self.classes_[z.argmax(axis=1) if z.ndim == 2 else (z > 0).astype(int)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


