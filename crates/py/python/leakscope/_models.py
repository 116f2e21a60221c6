"""Questions about a model of a table: audit, balance, attack, release."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _machines, _native, _progress, _requests
from ._docs import PARAMETERS, documented
from ._machines import MACHINES
from ._native import OptionError
from ._requests import Path, Progress, listed, native, other, pairs
from ._results import Attack, Audit, Balance, Release
from ._statsmodels import is_results
from ._tables import is_estimator, level

_LIMITS = {"eta": "max", "max": "max", "p99": "p99", "mean": "mean"}


@documented(data=
            "The table: an array of rows × columns, a DataFrame of pandas, polars or pyarrow (or anything with "
            "``__arrow_c_stream__``), or names of files: CSV (also gzipped), JSON lines, Parquet, Feather. Or a fitted ``Ridge``, "
            "``LinearRegression``, ``LogisticRegression``, ``PoissonRegressor``, ``RidgeCV``, ``RidgeClassifier`` or "
            "``LogisticRegressionCV`` of scikit-learn, or a ``Pipeline`` or search that ends in one: scalers, one-hot encoders, "
            "imputers and column transformers are opened, so that attributes and units are those of the frame that went in. Or "
            "results of statsmodels (OLS, WLS, Logit, GLM).",
            y="The targets of ``audit(estimator, X, y)``.", encoding=PARAMETERS["text_encoding"])
def audit(
    data: Any,
    x: Any = None,
    y: Any = None,
    *,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str = (),
    categorical: Sequence[str] | str = (),
    weights: Any = None,
    sample_weight: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str = (),
    one_hot: str = "drop-last",
    scale: str = "standard",
    pca: int | None = None,
    missing: str = "fail",
    positive: Any = None,
    schema: Mapping[str, Any] | Path | None = None,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[str]] | Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    model: str = "linear",
    power: float | None = None,
    huber_threshold: float | None = None,
    max_classes: int = 100,
    l2: float = 0.0,
    fit_intercept: bool = True,
    coefficients: Mapping[str, float] | Path | None = None,
    sigma: float | None = None,
    target_eta: float | None = None,
    statistic: str = "max",
    target_sd: Mapping[str, float] | None = None,
    noise_shape: str = "isotropic",
    protect: Sequence[str] | str = (),
    shape_budget: float = 0.05,
    shape_from: Any = None,
    gap: float = 0.01,
    releases: int = 1,
    label: str = "secret",
    test: Any = None,
    holdout: float | None = None,
    seed: int | None = None,
    score: Any = None,
    prior_sd: Mapping[str, float] | None = None,
    unit: Mapping[str, str] | None = None,
    fail_above: Mapping[str, float] | None = None,
    secret: str | None = None,
    tell: Mapping[str, Sequence[Any]] | None = None,
    protect_at: float = 0.6,
    tell_budget: float | str = 10.0,
    scaling: str = "counted",
    redact: bool = False,
    out: Path | None = None,
    progress: Progress = None,
) -> Audit:
    """Fits a generalised linear model (or takes a fitted one) and measures what its release gives away.

    - ``audit(X, y, model="logistic", sigma=0.1)``: an array and a target
    - ``audit(df, target="dose", group="race")``: a DataFrame of pandas, polars or pyarrow
    - ``audit("patients.csv", target="dose")``: files, CSV or Parquet
    - ``audit(estimator, X, y)``: a fitted model of scikit-learn, or a ``Pipeline`` or search that ends in one
    - ``audit(results)``: what ``fit`` of statsmodels returned

    Without ``sigma``, ``target_eta`` and ``target_sd`` numbers are per unit of noise, σ = 1. ``noise_shape="optimal"`` with a target
    makes the cheapest noise that meets it for every record: ``result["noise"]`` says what it costs.

    Returns
    -------
    Audit
        The document, the page, and tables of records, attributes and groups.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    >>> result = leakscope.audit(X, y, model="logistic", l2=1e-3, target_eta=0.5)
    >>> round(result["records"]["eta"]["max"], 6)
    0.5
    >>> shaped = leakscope.audit(X, y, l2=1e-3, target_eta=2, noise_shape="shaped")
    >>> shaped["noise"]["shape"], shaped["records"]["eta"]["max"] <= 2
    ('shaped', True)
    >>> leakscope.audit(X, y, model="logistic", sigma=-1)
    Traceback (most recent call last):
    ...
    leakscope.OptionError: sigma=-1: expected a positive number
    """
    options = dict(locals())
    if sample_weight is not None:
        if weights is not None:
            raise OptionError("sample_weight: it is another name of weights: give one of the two")
        options["weights"] = sample_weight
    trained: list[tuple[str, Any]] | None = None
    if is_estimator(data) or is_results(data):
        from ._sklearn import of_statsmodels, translated

        if is_results(data):
            if x is not None or y is not None:
                raise OptionError("results of statsmodels hold their rows and targets: give them alone")
            answer = of_statsmodels(data, options, audit)
        else:
            answer = translated(data, x, y, options, audit)
        source, trained, options = answer.source, answer.coefficients, {**options, **answer.keywords}
        tables = (answer.test, answer.score)
        if shape_from is not None:
            raise OptionError("shape_from: it is for tables, not for a fitted estimator: audit(X, y, …) fits the model itself")
        public = None
    else:
        if y is not None:
            raise OptionError("y: audit takes (X, y), (frame) or (estimator, X, y), and the first argument has no fit")
        source = _requests.opened(data, x, options)
        tables = (other(test, source, columns, "test", True), other(score, source, columns, "score", False))
        public = other(shape_from, source, columns, "shape_from", True)
        if isinstance(coefficients, Mapping):
            trained = pairs("coefficients", coefficients)
        elif coefficients is not None:
            trained = _native.coefficients(coefficients)
    request = {
        **_requests.table(source, options, tables[0]),
        "two_class_coded": not (is_estimator(data) or is_results(data)),
        "coefficients": trained,
        "noise": _requests.noise(options, public),
        "releases": releases,
        "score": _requests.reading(tables[1].files, options) if tables[1] is not None and tables[1].files else None,
        "prior_sd": pairs("prior_sd", prior_sd),
        "units": pairs("unit", unit),
        "limits": [_limit(name, limit) for name, limit in pairs("fail_above", fail_above)],
        "secret": secret,
        "tell": [_pair(name, values) for name, values in (tell or {}).items()],
        "protect_at": protect_at,
        "tell_budget": _seconds(tell_budget),
        "scaling": scaling,
        "redact": redact,
    }
    on = MACHINES.get()
    machines = _machines.of_question(data=source, test=tables[0], score=tables[1], shape_from=public)
    with _progress.shown(progress) as callback:
        outcome = _native.audit(request, source.table, native(tables[0]), native(tables[1]), native(public), callback, machines,
                                on is None or bool(on.tables))
    return Audit(outcome, source)._kept(out)


def _pair(name: str, values: Sequence[Any]) -> dict[str, Any]:
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != 2:
        raise OptionError(f"tell={values!r}: expected two values of {name}, such as {{'age': (40, 60)}}")
    return {"attribute": name, "values": [level(value) for value in values]}


def _seconds(budget: float | str) -> float | None:
    if budget == "all":
        return None
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise OptionError(f"tell_budget={budget!r}: expected seconds, or 'all'")
    return float(budget)


def _limit(name: str, limit: float) -> dict[str, Any]:
    if name not in _LIMITS:
        raise OptionError(f"fail_above={{{name!r}: {limit!r}}}: expected 'max', 'p99' or 'mean'")
    return {"statistic": _LIMITS[name], "limit": limit}


@documented(encoding=PARAMETERS["text_encoding"], sigma="Standard deviation of the noise on every coefficient, above 0.", seed=
            "Seed of the split of ``holdout``. By default drawn from the system, and kept in the document.")
def balance(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str = (),
    categorical: Sequence[str] | str = (),
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str = (),
    one_hot: str = "drop-last",
    scale: str = "standard",
    pca: int | None = None,
    missing: str = "fail",
    positive: Any = None,
    schema: Mapping[str, Any] | Path | None = None,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[str]] | Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    model: str = "linear",
    power: float | None = None,
    huber_threshold: float | None = None,
    max_classes: int = 100,
    l2: float = 0.0,
    fit_intercept: bool = True,
    attribute: str | None = None,
    sum_to_one: bool = False,
    weights_per: str = "sample",
    variant: str = "weighted",
    update: str = "published",
    min_weight: float | None = None,
    max_weight: float | None = None,
    iterations: int = 10,
    tolerance: float = 1e-6,
    sigma: float = 1.0,
    target_eta: float | None = None,
    target_sd: Mapping[str, float] | None = None,
    noise_shape: str = "isotropic",
    protect: Sequence[str] | str = (),
    shape_budget: float = 0.05,
    shape_from: Any = None,
    gap: float = 0.01,
    test: Any = None,
    holdout: float | None = None,
    label: str = "secret",
    seed: int | None = None,
    redact: bool = False,
    out: Path | None = None,
    progress: Progress = None,
) -> Balance:
    """Reweights records until all leak the same (iteratively reweighted Fisher information loss).

    Returns
    -------
    Balance
        The document, the page, and the table of weights.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(2)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> result = leakscope.balance(X, y, l2=0.1, iterations=5)
    >>> last = result["iterations"][result["best"]]
    >>> bool(last["eta_std"] < result["iterations"][0]["eta_std"])
    True
    >>> len(result.weights)
    200
    """
    options = dict(locals())
    source = _requests.opened(data, y, options)
    rows = other(test, source, columns, "test", True)
    clamp = None
    if min_weight is not None or max_weight is not None:
        largest = 1.7976931348623157e308
        clamp = (0.0 if min_weight is None else min_weight, largest if max_weight is None else max_weight)
    balancing = {
        "attribute": attribute, "sum_to_one": sum_to_one, "sharing": weights_per, "variant": variant, "update": update,
        "clamp": clamp, "iterations": iterations, "tolerance": tolerance, "sigma": sigma,
    }
    request = _requests.table(source, options, rows)
    noise = _requests.of_targets(options, source)
    if noise is not None:
        request["noise"] = noise
    with _progress.shown(progress) as callback:
        outcome = _native.balance(request, balancing, source.table, native(rows), callback, _machines.of_question(data=source, test=rows))
    return Balance(outcome, source)._kept(out)


@documented(encoding=PARAMETERS["text_encoding"], secret="The attribute to guess: a category, or a number (in ``bins``).",
            candidates="Values that the attackers consider. By default all that occur.",
            balance="Also attack the model after this many balancing iterations (for the secret); 0 for none.",
            attacks="Attackers to play: ``\"white-box\"``, ``\"white-box-prior\"``, ``\"black-box\"``, ``\"informed\"``. By "
                    "default all that apply.",
            sigmas="Noise scales to try, above 0. By default sixteen, from mean η = 100 down to 0.01.",
            seed="Seed of the noise and of the split. By default drawn from the system, and kept in the document.")
def attack(
    data: Any,
    y: Any = None,
    *,
    secret: str,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str = (),
    categorical: Sequence[str] | str = (),
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str = (),
    one_hot: str = "drop-last",
    scale: str = "standard",
    pca: int | None = None,
    missing: str = "fail",
    positive: Any = None,
    schema: Mapping[str, Any] | Path | None = None,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[str]] | Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    model: str = "linear",
    power: float | None = None,
    huber_threshold: float | None = None,
    max_classes: int = 100,
    l2: float = 0.0,
    fit_intercept: bool = True,
    candidates: Sequence[Any] = (),
    bins: int = 4,
    sigmas: Sequence[float] | float = (),
    trials: int = 100,
    attacks: Sequence[str] | str = (),
    target_eta: float | None = None,
    target_sd: Mapping[str, float] | None = None,
    noise_shape: str = "isotropic",
    protect: Sequence[str] | str = (),
    shape_budget: float = 0.05,
    shape_from: Any = None,
    gap: float = 0.01,
    balance: int = 0,
    test: Any = None,
    holdout: float | None = None,
    label: str = "secret",
    seed: int | None = None,
    redact: bool = False,
    out: Path | None = None,
    progress: Progress = None,
) -> Attack:
    """Plays the attacks of the papers against a model, and counts how often a secret attribute is guessed.

    Returns
    -------
    Attack
        The document, the page, and the table of results.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(3)
    >>> X = np.column_stack([rng.normal(size=200), rng.integers(0, 2, size=200)])
    >>> y = X @ [1.0, 2.0] + rng.normal(size=200)
    >>> result = leakscope.attack(X, y, secret="x1", l2=0.01, sigmas=[1e-4], trials=20, seed=1)
    >>> white_box = [r for r in result["results"] if r["attack"] == "white-box"][0]
    >>> white_box["accuracy"] > 0.9
    True
    """
    options = dict(locals())
    source = _requests.opened(data, y, options)
    rows = other(test, source, columns, "test", True)
    playing = {
        "secret": secret, "candidates": [level(c) for c in listed(candidates)], "bins": bins, "attacks": listed(attacks),
        "sigmas": listed(sigmas), "trials": trials, "balance": balance,
    }
    request = _requests.table(source, options, rows)
    noise = _requests.of_targets(options, source)
    if noise is not None:
        request["noise"] = noise
    with _progress.shown(progress) as callback:
        outcome = _native.attack(request, playing, source.table, native(rows), callback)
    return Attack(outcome, source)._kept(out)


@documented(encoding=PARAMETERS["text_encoding"], out="Folder for the ledger and, in a folder of its own each, the releases of these data: model, statement, page.")
def release(
    data: Any,
    y: Any = None,
    *,
    out: Path,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str = (),
    categorical: Sequence[str] | str = (),
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str = (),
    one_hot: str = "drop-last",
    scale: str = "standard",
    pca: int | None = None,
    missing: str = "fail",
    positive: Any = None,
    schema: Mapping[str, Any] | Path | None = None,
    bounds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Sequence[str]] | Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool = True,
    model: str = "linear",
    power: float | None = None,
    huber_threshold: float | None = None,
    max_classes: int = 100,
    l2: float = 0.0,
    fit_intercept: bool = True,
    sigma: float | None = None,
    target_eta: float | None = None,
    statistic: str = "max",
    target_sd: Mapping[str, float] | None = None,
    noise_shape: str = "isotropic",
    protect: Sequence[str] | str = (),
    shape_budget: float = 0.05,
    shape_from: Any = None,
    gap: float = 0.01,
    budget_eta: float | None = None,
    balance: int = 0,
    attribute: str | None = None,
    data_changed: str | None = None,
    ledger_key: Path | None = None,
    tell: Mapping[str, Sequence[Any]] | None = None,
    protect_at: float = 0.6,
    tell_budget: float | str = 10.0,
    label: str = "secret",
    progress: Progress = None,
) -> Release:
    """Adds exact discrete Gaussian noise, writes the private model with its statement, and keeps a ledger in ``out``.

    How much noise must be said: ``sigma``, ``target_eta`` or ``target_sd``. ``noise_shape="shaped"`` makes noise for its targets that
    costs less, with a shape from ``shape_from`` (a public table) or from public bounds; one that is read off the records is not
    released, and the noise is then isotropic. Its covariance is published with the model. Past ``budget_eta`` nothing is written and :class:`leakscope.BudgetError` is raised.

    Returns
    -------
    Release
        The statement and the noisy coefficients.

    Examples
    --------
    >>> import numpy as np, leakscope, tempfile
    >>> rng = np.random.default_rng(4)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = leakscope.release(X, y, sigma=0.5, out=folder)
    ...     sorted(path.name for path in result.files)
    ['model.json', 'release-1.html', 'release-1.json', 'release.json', 'report.html']
    """
    options = dict(locals())
    source = _requests.opened(data, y, options)
    terms = {"noise": _requests.amount(options, source), "budget_eta": budget_eta, "balance": balance, "attribute": attribute,
             "data_changed": data_changed, "ledger_key": None if ledger_key is None else os.fspath(ledger_key)}
    request = {**_requests.table(source, options), "protect_at": protect_at, "tell_budget": _seconds(tell_budget),
               "tell": [_pair(name, values) for name, values in (tell or {}).items()]}
    with _progress.shown(progress) as callback:
        outcome = _native.release(request, terms, out, source.table, callback, _machines.of_question(data=source))
    return Release(outcome, source)


def withdraw(out: Path, release: int, reason: str, ledger_key: Path | None = None) -> dict[str, Any]:
    """Puts on record that a release was never passed on, so that the ledger does not count it any more.

    Its line stays in the ledger among the withdrawals, with the reason, under the seal; its files are moved to ``private/``.

    Parameters
    ----------
    out : Path
        The folder of the releases.
    release : int
        Which one: 2 for ``release-2``.
    reason : str
        How you know that none of its files left the house.
    ledger_key : Path or None
        File of the key that seals the ledger; ``private/ledger.key`` without one.

    Returns
    -------
    dict
        What still counts: ``releases``, ``eta_max``, ``budget_eta``; and where the files are now.

    Examples
    --------
    >>> import numpy as np, leakscope, tempfile
    >>> rng = np.random.default_rng(4)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = leakscope.release(X, y, sigma=0.5, out=folder)
    ...     leakscope.withdraw(folder, 1, "tried out, never sent")["releases"]
    0
    """
    return json.loads(_native.withdraw(out, release, reason, ledger_key))

