"""Fitted results of statsmodels in the terms of an audit: OLS, WLS, Logit and GLM, with the frame of their formula opened."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ._native import DataError, OptionError
from ._opened import Indicator, Number, Opened, Unopened, checked
from ._tables import is_frame

SUPPORTED = ("results of OLS, WLS, Logit, or GLM (Gaussian, Binomial or Poisson with its canonical link, Gamma or Tweedie of a power from 1 to 2 "
             "with a logarithmic one)")
#: a level of a category in a design matrix: ``race[T.white]`` or ``C(race)[T.white]``
_LEVEL = re.compile(r"^(?:C\((\w+)\)|(\w+))\[T\.(.+)\]$")


def is_results(data: Any) -> bool:
    """Whether this is what ``fit`` of statsmodels returns."""
    return type(data).__module__.partition(".")[0] == "statsmodels" and hasattr(data, "params") and hasattr(data, "model")


def family_of(results: Any) -> str:
    """The family, where leakage is known for it."""
    model, name = results.model, type(results.model).__name__
    if name in ("OLS", "WLS"):
        return "linear"
    if name == "Logit":
        return "logistic"
    if name == "GLM":
        link, family = type(model.family.link).__name__, type(model.family).__name__
        result = {("Gaussian", "Identity"): "linear", ("Binomial", "Logit"): "logistic", ("Poisson", "Log"): "poisson", ("Gamma", "Log"): "gamma"}.get((family, link))
        if (family, link) == ("Tweedie", "Log") and 1 <= model.family.var_power <= 2:
            result = f"tweedie({float(model.family.var_power)!r})"
        if result is None:
            raise OptionError(f"GLM of family {family} with link {link}: expected {SUPPORTED}")
        return result
    raise OptionError(f"{name}: what a release of it gives away is not known here: expected {SUPPORTED}")


def weights_of(results: Any) -> np.ndarray[Any, Any] | None:
    """Weights of the records."""
    model = results.model
    if getattr(model, "offset", None) is not None and np.any(np.asarray(model.offset)):
        raise OptionError("offset: an audit's model has none: leave it out of the fit")
    if getattr(model, "exposure", None) is not None and np.any(np.asarray(model.exposure)):
        raise OptionError("exposure: an audit's model has none: leave it out of the fit")
    if type(model).__name__ == "WLS":
        return np.asarray(model.weights, dtype=np.float64)
    if type(model).__name__ == "GLM":
        source = np.asarray(model.freq_weights, dtype=np.float64) * np.asarray(model.var_weights, dtype=np.float64)
        return None if np.all(source == 1.0) else source
    return None


def split(results: Any) -> tuple[np.ndarray[Any, Any], list[str], np.ndarray[Any, Any], float | None]:
    """The design without its constant: columns, names, their coefficients, and the intercept."""
    model = results.model
    design, names = np.asarray(model.exog, dtype=np.float64), [str(n) for n in model.exog_names]
    if hasattr(results, "mle_retvals") and isinstance(results.mle_retvals, dict) and results.mle_retvals.get("converged") is False:
        raise OptionError(f"{type(model).__name__}: its fit did not converge: fit it with more iterations (maxiter)")
    if "regularized" in type(results).__name__.lower() or getattr(results, "regularized", False):
        raise OptionError("fit_regularized: leakage of its penalty is not known here: use fit()")
    params = np.asarray(results.params, dtype=np.float64)
    constant = [j for j in range(design.shape[1]) if np.all(design[:, j] == 1.0)]
    if len(constant) > 1:
        raise DataError("the design has more than one constant column: leave one")
    kept = [j for j in range(design.shape[1]) if j not in constant]
    if not kept:
        raise DataError("the design has no column but the constant: there is nothing to predict from")
    return design[:, kept], [names[j] for j in kept], params[kept], float(params[constant[0]]) if constant else None


def opened(results: Any, design: np.ndarray[Any, Any], names: list[str]) -> tuple[Opened, Any] | None:
    """A formula's columns in terms of its frame, and the frame; ``None`` without a formula, where the design is what went in."""
    frame = getattr(results.model.data, "frame", None)
    if frame is None or not is_frame(frame):
        return None
    missing = getattr(results.model.data, "missing_row_idx", None)
    if missing is not None and len(missing):
        frame = frame.drop(index=frame.index[list(missing)])
    columns: list[Number | Indicator] = []
    for name in names:
        level = _LEVEL.match(name)
        source = (level[1] or level[2]) if level else name
        if source not in frame.columns:
            raise Unopened(f"`{name}`")
        columns.append(Indicator(source, level[3]) if level else Number(name))
    return checked(columns, {}, [str(c) for c in frame.columns], frame, design), frame
