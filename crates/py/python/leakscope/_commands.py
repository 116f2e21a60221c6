"""The commands as functions, with the words of the command line as keywords."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _native, _progress
from ._native import DataError, OptionError
from ._results import Account, Attack, Audit, Balance, Bound, Calibration, Release
from ._tables import Data, is_estimator, read
from ._words import words

Progress = bool | Callable[[str, int, int], Any] | None
Path = str | os.PathLike[str]


def _listed(value: Any) -> list[Any] | None:
    if value is None:
        return None
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) or hasattr(value, "tolist") else [value]


def _table_options(given: Data, options: dict[str, Any]) -> dict[str, Any]:
    """The options about columns, with those that were added for arrays."""
    drop = (_listed(options.pop("drop", None)) or []) + given.drop
    found = {
        "target": given.target,
        "id": given.id,
        "group": given.group,
        "weights": given.weights,
        "drop": drop,
        "categorical": _listed(options.pop("categorical", None)),
        "na": _listed(options.pop("na", None)),
    }
    return {**found, **options}


def _open(
    data: Any, y: Any, target: str | None, id: Any, group: Any, weights: Any, options: dict[str, Any],
    columns: Sequence[str] | None = None,
) -> Data:
    drop = [str(d) for d in _listed(options.get("drop")) or []]
    return read(data, y, target=target, group=group, id=id, weights=weights, columns=columns, drop=drop)


def _other(other: Any, given: Data, columns: Sequence[str] | None, name: str, need_target: bool) -> tuple[Any, list[str]]:
    """A second table of the same layout: files, a frame, an array, or a pair with its target."""
    if other is None:
        return None, []
    x, y = other if isinstance(other, tuple) and len(other) == 2 and not isinstance(other[0], (str, os.PathLike)) \
        else (other, None)
    if need_target and y is None and not _has_target(x, given):
        raise DataError(f"{name}: give a pair of rows and targets, or a table that holds `{given.target}`")
    found = read(x, y, columns=columns, name=name, like=given)
    return found.table, found.files


def _has_target(x: Any, given: Data) -> bool:
    from ._tables import is_files, is_frame

    return is_files(x) or (is_frame(x) and given.target in [str(c) for c in getattr(x, "column_names", getattr(x, "columns", []))])


def _files(given: Data) -> list[str]:
    return given.files or ["table"]


def audit(
    data: Any,
    x: Any = None,
    y: Any = None,
    *,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str | None = None,
    categorical: Sequence[str] | str | None = None,
    weights: Any = None,
    sample_weight: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str | None = None,
    one_hot: str | None = None,
    scale: str | None = None,
    pca: int | None = None,
    missing: str | None = None,
    positive: Any = None,
    schema: Path | None = None,
    bounds: Mapping[str, str] | None = None,
    levels: Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    no_header: bool = False,
    model: str | None = None,
    l2: float | None = None,
    no_intercept: bool = False,
    coefficients: Mapping[str, float] | Path | None = None,
    sigma: float | None = None,
    target_eta: float | None = None,
    statistic: str | None = None,
    target_sd: Mapping[str, float] | None = None,
    releases: int | None = None,
    label: str | None = None,
    test: Any = None,
    holdout: float | None = None,
    seed: int | None = None,
    score: Any = None,
    prior_sd: Mapping[str, float] | None = None,
    unit: Mapping[str, str] | None = None,
    fail_above: Mapping[str, float] | None = None,
    secret: str | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> Audit:
    """Fits a generalised linear model (or takes a fitted one) and measures what its release gives away.

    - ``audit(X, y, model="logistic", sigma=0.1)``: an array and a target
    - ``audit(df, target="dose", group="race")``: a DataFrame of pandas, polars or pyarrow
    - ``audit("patients.csv", target="dose")``: files, CSV or Parquet
    - ``audit(estimator, X, y)``: a fitted ``Ridge``, ``LinearRegression``, ``LogisticRegression`` or
      ``PoissonRegressor`` of scikit-learn, or a ``Pipeline`` that ends in one

    Options have the names, the defaults and the meanings of ``leakscope audit --help``. ``group``, ``weights`` and
    ``id`` take a column's name or a value for every row; ``test`` and ``score`` take files, a frame, an array or a pair
    of rows and targets.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    >>> result = leakscope.audit(X, y, model="logistic", l2=1e-3, target_eta=0.5)
    >>> round(result["records"]["eta"]["max"], 6)
    0.5
    >>> leakscope.audit(X, y, model="logistic", sigma=-1)
    Traceback (most recent call last):
    ...
    leakscope.OptionError: --sigma: -1: expected a positive number
    """
    options: dict[str, Any] = {
        "drop": drop, "categorical": categorical, "delimiter": delimiter, "na": na, "one_hot": one_hot, "scale": scale,
        "pca": pca, "missing": missing, "schema": schema, "bounds": bounds,
        "levels": levels, "clip_to_bounds": clip_to_bounds, "min_level_count": min_level_count, "decimal": decimal,
        "encoding": encoding, "no_header": no_header, "positive": _class_name(positive), "model": model, "l2": l2,
        "no_intercept": no_intercept, "sigma": sigma, "target_eta": target_eta, "statistic": statistic,
        "target_sd": target_sd, "releases": releases, "label": label, "holdout": holdout, "seed": seed,
        "prior_sd": prior_sd, "unit": unit, "fail_above": fail_above, "secret": secret,
    }
    if sample_weight is not None:
        if weights is not None:
            raise OptionError("sample_weight: it is another name of weights: give one of the two")
        weights = sample_weight
    given_coefficients: list[tuple[str, float]] | None = None
    as_it_is = False
    if is_estimator(data):
        from ._sklearn import translated

        found = translated(data, x, y, weights=weights, columns=columns, group=group, id=id, test=test, score=score,
                           options=options, coefficients=coefficients)
        given, given_coefficients, as_it_is = found.given, found.coefficients, True
        test_table, score_table = found.test, found.score
        test_files: list[str] = []
        score_files: list[str] = []
    else:
        if y is not None:
            raise OptionError("audit takes (X, y), (frame) or (estimator, X, y): the first argument has no fit")
        given = _open(data, x, target, id, group, weights, options, columns)
        test_table, test_files = _other(test, given, columns, "test", True)
        score_table, score_files = _other(score, given, columns, "score", False)
        if isinstance(coefficients, Mapping):
            given_coefficients = [(str(name), float(value)) for name, value in coefficients.items()]
        elif coefficients is not None:
            options["coefficients"] = coefficients
    line = words("audit", _table_options(given, options))
    for flag, files in (("test", test_files), ("score", score_files)):
        line.extend(f"--{flag}={file}" for file in files)
    line += ["--", *_files(given)]
    callback, bar = _progress.start(progress)
    try:
        outcome = _native.audit(line, given.table, test_table, score_table, given_coefficients, as_it_is, callback)
    finally:
        bar.close()
    result = Audit(outcome, given)
    if out is not None:
        result.save(out)
    return result


def _class_name(value: Any) -> Any:
    if value is None:
        return None
    from ._tables import _level

    return _level(value)


def balance(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str | None = None,
    categorical: Sequence[str] | str | None = None,
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str | None = None,
    one_hot: str | None = None,
    scale: str | None = None,
    pca: int | None = None,
    missing: str | None = None,
    positive: Any = None,
    schema: Path | None = None,
    bounds: Mapping[str, str] | None = None,
    levels: Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    no_header: bool = False,
    model: str | None = None,
    l2: float | None = None,
    no_intercept: bool = False,
    attribute: str | None = None,
    sum_to_one: bool = False,
    weights_per: str | None = None,
    variant: str | None = None,
    update: str | None = None,
    min_weight: float | None = None,
    max_weight: float | None = None,
    iterations: int | None = None,
    tolerance: float | None = None,
    sigma: float | None = None,
    test: Any = None,
    holdout: float | None = None,
    label: str | None = None,
    seed: int | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> Balance:
    """Reweights records until all leak the same (iteratively reweighted Fisher information loss).

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
    options: dict[str, Any] = {
        "drop": drop, "categorical": categorical, "delimiter": delimiter, "na": na, "one_hot": one_hot, "scale": scale,
        "pca": pca, "missing": missing, "schema": schema, "bounds": bounds,
        "levels": levels, "clip_to_bounds": clip_to_bounds, "min_level_count": min_level_count, "decimal": decimal,
        "encoding": encoding, "no_header": no_header, "positive": _class_name(positive), "model": model, "l2": l2,
        "no_intercept": no_intercept, "attribute": attribute, "sum_to_one": sum_to_one, "weights_per": weights_per,
        "variant": variant, "update": update, "min_weight": min_weight, "max_weight": max_weight,
        "iterations": iterations, "tolerance": tolerance, "sigma": sigma, "holdout": holdout, "label": label,
        "seed": seed,
    }
    given, line, tables = _prepared("balance", data, y, target, id, group, weights, options, columns, test)
    callback, bar = _progress.start(progress)
    try:
        result = Balance(_native.balance(line, *tables, callback), given)
    finally:
        bar.close()
    if out is not None:
        result.save(out)
    return result


def _prepared(
    command: str, data: Any, y: Any, target: str | None, id: Any, group: Any, weights: Any, options: dict[str, Any],
    columns: Sequence[str] | None, test: Any,
) -> tuple[Data, list[str], tuple[Any, Any]]:
    if is_estimator(data):
        raise OptionError(f"{command} fits a model of its own: give the data alone (leakscope.audit takes estimators)")
    given = _open(data, y, target, id, group, weights, options, columns)
    test_table, test_files = _other(test, given, columns, "test", True)
    line = words(command, _table_options(given, options))
    line.extend(f"--test={file}" for file in test_files)
    return given, line + ["--", *_files(given)], (given.table, test_table)


def attack(
    data: Any,
    y: Any = None,
    *,
    secret: str,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str | None = None,
    categorical: Sequence[str] | str | None = None,
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str | None = None,
    one_hot: str | None = None,
    scale: str | None = None,
    pca: int | None = None,
    missing: str | None = None,
    positive: Any = None,
    schema: Path | None = None,
    bounds: Mapping[str, str] | None = None,
    levels: Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    no_header: bool = False,
    model: str | None = None,
    l2: float | None = None,
    no_intercept: bool = False,
    candidates: Sequence[Any] | None = None,
    bins: int | None = None,
    sigmas: Sequence[float] | None = None,
    trials: int | None = None,
    attacks: Sequence[str] | str | None = None,
    balance: int | None = None,
    test: Any = None,
    holdout: float | None = None,
    label: str | None = None,
    seed: int | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> Attack:
    """Plays the attacks of the papers against a model, and counts how often a secret attribute is guessed.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(3)
    >>> X = np.column_stack([rng.normal(size=200), rng.integers(0, 2, size=200)])
    >>> y = X @ [1.0, 2.0] + rng.normal(size=200)
    >>> result = leakscope.attack(X, y, secret="x1", l2=0.01, sigmas=[1e-4], trials=20, seed=1)
    >>> white_box = [r for r in result["results"] if r["attack"] == "white-box"][0]
    >>> white_box["accuracy"] > 0.9
    True
    """
    options: dict[str, Any] = {
        "drop": drop, "categorical": categorical, "delimiter": delimiter, "na": na, "one_hot": one_hot, "scale": scale,
        "pca": pca, "missing": missing, "schema": schema, "bounds": bounds,
        "levels": levels, "clip_to_bounds": clip_to_bounds, "min_level_count": min_level_count, "decimal": decimal,
        "encoding": encoding, "no_header": no_header, "positive": _class_name(positive), "model": model, "l2": l2,
        "no_intercept": no_intercept, "secret": secret, "candidates": _listed(candidates), "bins": bins,
        "sigmas": _listed(sigmas), "trials": trials, "attacks": _listed(attacks), "balance": balance,
        "holdout": holdout, "label": label, "seed": seed,
    }
    given, line, tables = _prepared("attack", data, y, target, id, group, weights, options, columns, test)
    callback, bar = _progress.start(progress)
    try:
        result = Attack(_native.attack(line, *tables, callback), given)
    finally:
        bar.close()
    if out is not None:
        result.save(out)
    return result


def release(
    data: Any,
    y: Any = None,
    *,
    out: Path,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str | None = None,
    categorical: Sequence[str] | str | None = None,
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str | None = None,
    one_hot: str | None = None,
    scale: str | None = None,
    pca: int | None = None,
    missing: str | None = None,
    positive: Any = None,
    schema: Path | None = None,
    bounds: Mapping[str, str] | None = None,
    levels: Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    no_header: bool = False,
    model: str | None = None,
    l2: float | None = None,
    no_intercept: bool = False,
    sigma: float | None = None,
    target_eta: float | None = None,
    statistic: str | None = None,
    budget_eta: float | None = None,
    balance: int | None = None,
    attribute: str | None = None,
    data_changed: str | None = None,
    label: str | None = None,
    progress: Progress = None,
) -> Release:
    """Adds exact discrete Gaussian noise, writes the private model with its statement, and keeps a ledger in ``out``.

    Past ``budget_eta`` nothing is written and :class:`leakscope.BudgetError` is raised.

    >>> import numpy as np, leakscope, tempfile
    >>> rng = np.random.default_rng(4)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(size=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = leakscope.release(X, y, sigma=0.5, out=folder)
    ...     sorted(path.name for path in result.files)
    ['model.json', 'release.json', 'report.html']
    """
    options: dict[str, Any] = {
        "drop": drop, "categorical": categorical, "delimiter": delimiter, "na": na, "one_hot": one_hot, "scale": scale,
        "pca": pca, "missing": missing, "schema": schema, "bounds": bounds,
        "levels": levels, "clip_to_bounds": clip_to_bounds, "min_level_count": min_level_count, "decimal": decimal,
        "encoding": encoding, "no_header": no_header, "positive": _class_name(positive), "model": model, "l2": l2,
        "no_intercept": no_intercept, "sigma": sigma, "target_eta": target_eta, "statistic": statistic,
        "budget_eta": budget_eta, "balance": balance, "attribute": attribute, "data_changed": data_changed, "label": label, "out": out,
    }
    given, line, tables = _prepared("release", data, y, target, id, group, weights, options, columns, None)
    callback, bar = _progress.start(progress)
    try:
        return Release(_native.release(line, tables[0], callback), given)
    finally:
        bar.close()


def _release(step: Any) -> Any:
    """A kind of release as the command line writes it."""
    if isinstance(step, Mapping):
        return ",".join(f"{str(name).replace('_', '-')}={value!r}" for name, value in step.items())
    return step


def account(
    *,
    delta: float,
    sigma: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    laplace: float | None = None,
    randomised_response: int | None = None,
    noise: float | None = None,
    step: Sequence[Mapping[str, Any] | str] | None = None,
    adjacency: str | None = None,
    out: Path | None = None,
) -> Account:
    """What a sequence of noisy releases costs: ε by each accountant, certified from both sides.

    >>> import leakscope
    >>> result = leakscope.account(sigma=1, rate=0.01, steps=1000, delta=1e-5)
    >>> result["epsilon"]["pld"]["lower"] <= result.epsilon < result["epsilon"]["rdp"]
    True
    >>> both = leakscope.account(step=[dict(sigma=1, rate=0.01, steps=1000), dict(sigma=5)], delta=1e-5)
    >>> both.epsilon > result.epsilon
    True
    """
    options: dict[str, Any] = {
        "delta": delta, "sigma": sigma, "rate": rate, "steps": steps, "laplace": laplace,
        "randomised_response": randomised_response, "noise": noise, "adjacency": adjacency,
        "step": [_release(one) for one in step or []] or None,
    }
    result = Account(_native.answer(words("account", options)))
    return _kept(result, out, "account.json")


def _kept(result: Any, out: Path | None, name: str) -> Any:
    """Writes page and document where asked to."""
    if out is not None:
        result.report(os.path.join(os.fspath(out), "report.html"))
        _native.write_text(os.path.join(os.fspath(out), name), result.to_json())
    return result


def _over_data(
    data: Any, y: Any, target: str | None, id: Any, group: Any, weights: Any, options: dict[str, Any],
    columns: Sequence[str] | None, test: Any,
) -> tuple[Data | None, dict[str, Any], tuple[Any, Any]]:
    """Options of a command that may look at a table, and the table."""
    if data is None:
        for name, value in (("y", y), ("id", id), ("group", group), ("weights", weights), ("test", test)):
            if value is not None:
                raise OptionError(f"{name}: it belongs to a table: give one as the first argument")
        return None, {"target": target, **options}, (None, None)
    if is_estimator(data):
        raise OptionError("a fitted estimator: give the data alone (leakscope.audit takes estimators)")
    drop = [str(d) for d in _listed(options.get("drop")) or []]
    # A prior is counted from a column alone: no model, no target.
    lone = options.get("mechanism") is not None and target is None and y is None
    given = read(data, y, target=target, group=group, id=id, weights=weights, columns=columns, drop=drop,
                 need_target=not lone)
    if lone and given.id_is_index:
        given.id = None
    test_table, test_files = _other(test, given, columns, "test", True)
    found = _table_options(given, options)
    found["data"] = _files(given)
    found["test"] = test_files or None
    return given, found, (given.table, test_table)


def bound(
    data: Any = None,
    y: Any = None,
    *,
    candidates: int | Sequence[int] | None = None,
    prior: Sequence[float] | None = None,
    mechanism: str | None = None,
    encoding: str | None = None,
    sigma: float | None = None,
    noise: float | None = None,
    laplace: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    step: Sequence[Mapping[str, Any] | str] | None = None,
    adjacency: str | None = None,
    alpha: float | None = None,
    epsilon: float | None = None,
    curve: str | None = None,
    at: Sequence[float] | None = None,
    secret: str | None = None,
    bins: int | None = None,
    sigmas: Sequence[float] | None = None,
    attacks: bool | Sequence[str] | None = None,
    noise_vectors: int | None = None,
    eta: float | None = None,
    prior_sd: float | None = None,
    delta: float | None = None,
    trials: int | None = None,
    seed: int | None = None,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str | None = None,
    categorical: Sequence[str] | str | None = None,
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str | None = None,
    one_hot: str | None = None,
    scale: str | None = None,
    pca: int | None = None,
    missing: str | None = None,
    positive: Any = None,
    schema: Path | None = None,
    bounds: Mapping[str, str] | None = None,
    levels: Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str | None = None,
    text_encoding: str | None = None,
    no_header: bool = False,
    model: str | None = None,
    l2: float | None = None,
    no_intercept: bool = False,
    test: Any = None,
    holdout: float | None = None,
    label: str | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> Bound:
    """What any attacker can guess of a discrete secret at most, tightest bound first.

    ``data`` (the command's ``--data``) is a table as for :func:`audit`, with the column ``secret`` in it.

    >>> import leakscope
    >>> result = leakscope.bound(mechanism="gaussian", candidates=10, sigma=1, trials=0)
    >>> 0.3 < result.success < 0.4
    True
    """
    options: dict[str, Any] = {
        "candidates": _listed(candidates), "prior": _listed(prior), "mechanism": mechanism, "encoding": encoding,
        "sigma": sigma, "noise": noise, "laplace": laplace, "rate": rate, "steps": steps,
        "step": [_release(one) for one in step or []] or None, "adjacency": adjacency, "alpha": alpha, "epsilon": epsilon,
        "curve": curve, "at": _listed(at),
        "secret": secret, "bins": bins, "sigmas": _listed(sigmas),
        "attacks": attacks if isinstance(attacks, bool) else _listed(attacks), "noise_vectors": noise_vectors, "eta": eta,
        "prior_sd": prior_sd, "delta": delta, "trials": trials, "seed": seed, "drop": drop, "categorical": categorical,
        "delimiter": delimiter, "na": na, "one_hot": one_hot, "scale": scale, "pca": pca, "missing": missing,
        "schema": schema, "bounds": bounds,
        "levels": levels, "clip_to_bounds": clip_to_bounds, "min_level_count": min_level_count, "decimal": decimal,
        "text_encoding": text_encoding, "no_header": no_header, "positive": _class_name(positive), "model": model, "l2": l2, "no_intercept": no_intercept, "holdout": holdout,
        "label": label,
    }
    given, found, tables = _over_data(data, y, target, id, group, weights, options, columns, test)
    callback, bar = _progress.start(progress)
    try:
        result = Bound(_native.answer(words("bound", found), *tables, callback), given)
    finally:
        bar.close()
    return _kept(result, out, "bound.json")


def calibrate(
    data: Any = None,
    y: Any = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    success: float | None = None,
    candidates: int | None = None,
    prior: Sequence[float] | None = None,
    encoding: str | None = None,
    eta: float | None = None,
    statistic: str | None = None,
    sd: Mapping[str, float] | None = None,
    sigma: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    adjacency: str | None = None,
    secret: str | None = None,
    bins: int | None = None,
    over: str | None = None,
    seed: int | None = None,
    target: str | None = None,
    id: Any = None,
    drop: Sequence[str] | str | None = None,
    categorical: Sequence[str] | str | None = None,
    weights: Any = None,
    group: Any = None,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    na: Sequence[str] | str | None = None,
    one_hot: str | None = None,
    scale: str | None = None,
    pca: int | None = None,
    missing: str | None = None,
    positive: Any = None,
    schema: Path | None = None,
    bounds: Mapping[str, str] | None = None,
    levels: Path | None = None,
    clip_to_bounds: bool = False,
    min_level_count: int | None = None,
    decimal: str | None = None,
    text_encoding: str | None = None,
    no_header: bool = False,
    model: str | None = None,
    l2: float | None = None,
    no_intercept: bool = False,
    test: Any = None,
    holdout: float | None = None,
    label: str | None = None,
    progress: Progress = None,
) -> Calibration:
    """The noise, sampling rate or number of steps that meets a target: of DP-SGD the one that is not given, or (with
    ``data``, a table as for :func:`audit`) the noise on a model's coefficients.

    >>> import numpy as np, leakscope
    >>> result = leakscope.calibrate(epsilon=2, delta=1e-5, rate=0.01, steps=1000, adjacency="add-remove")
    >>> 0.95 < result.sigma < 0.97 and result["achieved"] <= 2
    True
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> noise = leakscope.calibrate(X, y, eta=0.5, l2=0.01)
    >>> bool(leakscope.audit(X, y, sigma=noise.sigma, l2=0.01).records["eta"].max() <= 0.5)
    True
    """
    options: dict[str, Any] = {
        "epsilon": epsilon, "delta": delta, "advantage": advantage, "tpr": tpr, "fpr": fpr, "success": success,
        "candidates": candidates, "prior": _listed(prior), "encoding": encoding, "eta": eta, "statistic": statistic,
        "sd": sd, "sigma": sigma, "rate": rate, "steps": steps, "adjacency": adjacency, "secret": secret, "bins": bins,
        "over": over, "seed": seed, "drop": drop, "categorical": categorical, "delimiter": delimiter, "na": na,
        "one_hot": one_hot, "scale": scale, "pca": pca, "missing": missing, "schema": schema, "bounds": bounds,
        "levels": levels, "clip_to_bounds": clip_to_bounds, "min_level_count": min_level_count, "decimal": decimal,
        "text_encoding": text_encoding, "no_header": no_header, "positive": _class_name(positive),
        "model": model, "l2": l2, "no_intercept": no_intercept, "holdout": holdout, "label": label,
    }
    given, found, tables = _over_data(data, y, target, id, group, weights, options, columns, test)
    callback, bar = _progress.start(progress)
    try:
        return Calibration(_native.answer(words("calibrate", found), *tables, callback), given)
    finally:
        bar.close()
