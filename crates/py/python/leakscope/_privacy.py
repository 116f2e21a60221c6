"""Questions about private releases: account, bound, calibrate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _machines, _native, _progress, _requests
from ._docs import documented
from ._native import OptionError
from ._requests import Path, Progress, listed, native, other, pair
from ._results import Account, Bound, Calibration
from ._tables import Data


@documented(sigma="Noise multiplier of the Gaussian mechanism: standard deviation over the clipping norm, above 0.",
            rate="Probability of each record to take part in a step (Poisson sampling), above 0, at most 1. By default 1.",
            steps="Number of steps. By default 1.",
            adjacency="Which neighbours are told apart: ``\"add-remove\"`` or ``\"replace\"``. By default add-remove, by which σ is "
                      "defined; randomised response knows replace alone.")
def account(
    *,
    delta: float,
    sigma: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    laplace: float | None = None,
    randomised_response: int | None = None,
    noise: float | None = None,
    step: Sequence[Mapping[str, float]] = (),
    adjacency: str | None = None,
    out: Path | None = None,
) -> Account:
    """What a sequence of noisy releases costs: ε by each accountant, certified from both sides.

    Returns
    -------
    Account
        The document and the page.

    Examples
    --------
    >>> import leakscope
    >>> result = leakscope.account(sigma=1, rate=0.01, steps=1000, delta=1e-5)
    >>> result["epsilon"]["pld"]["lower"] <= result.epsilon < result["epsilon"]["rdp"]
    True
    >>> both = leakscope.account(step=[dict(sigma=1, rate=0.01, steps=1000), dict(sigma=5)], delta=1e-5)
    >>> both.epsilon > result.epsilon
    True
    """
    alone = {"sigma": sigma, "laplace": laplace, "randomised_response": randomised_response, "noise": noise, "rate": rate,
             "steps": steps}
    releases = _requests.steps(step)
    if any(value is not None for value in alone.values()):
        releases.append(alone)
    return Account(_native.account({"steps": releases, "delta": delta, "adjacency": adjacency}))._kept(out)


#: keywords of a table that say how its text is written
_OF_TEXT = ("delimiter", "na", "decimal", "text_encoding", "header", "columns")


def _over_data(
    function: Callable[..., Any], options: Mapping[str, Any], lone: bool = False
) -> tuple[Data | None, Data | None, dict[str, Any] | None, dict[str, Any] | None]:
    """The table of a call that may look at one, its rows to test on, and its request: of a model, or of the table alone."""
    if options["data"] is None:
        for name in _requests.settings(function, options, _requests.OF_A_TABLE):
            raise OptionError(f"{name}: it belongs to a table: give one as the first argument")
        return None, None, None, None
    source = _requests.opened(options["data"], options["y"], options, need_target=not lone)
    if lone:
        for name in _requests.settings(function, options, (n for n in _requests.OF_A_TABLE if n not in _OF_TEXT)):
            raise OptionError(f"{name}: no model is fitted where mechanism says what is released")
        return source, None, None, _requests.reading(source.files, options)
    rows = other(options["test"], source, options["columns"], "test", True)
    return source, rows, _requests.table(source, options, rows), None


@documented(candidates="Number of values that the secret can take, all equally likely; several for a curve over ε.",
            data="A table with the column ``secret`` in it, as for :func:`leakscope.audit`: the model is refitted with each "
                 "value of the secret in every record's place. With ``mechanism`` only the prior is counted from it.",
            sigma="Standard deviation of the noise; for ``\"dp-sgd\"`` over the clipping norm.",
            steps="Steps of ``\"dp-sgd\"``, or releases of Laplace noise.",
            adjacency="Adjacency of private releases: ``\"add-remove\"`` or ``\"replace\"``, under which values of one record that is "
                      "known to be there are told apart.",
            epsilon="The stated Rényi divergence, in nats.",
            secret="The column of the table that is the secret.",
            sigmas="Noise scales of the curve over a table. By default, with ``out``, sixteen around what the secret leaks.",
            attacks="Attacks to play beside the bounds on a table: ``True`` for those of Guo's figure 4, or a list of "
                    "``\"white-box\"``, ``\"white-box-prior\"``, ``\"black-box\"``, ``\"informed\"``.",
            eta="η of a number, for bounds on estimates of it (Cramér–Rao), above 0.",
            prior_sd="What is known of that number beforehand, as a standard deviation (van Trees).",
            delta="The δ of ε, where a curve shows it.",
            trials="Draws for the information and the simulated attack; 0 simulates nothing.",
            seed="Seed of the draws.")
def bound(
    data: Any = None,
    y: Any = None,
    *,
    candidates: int | Sequence[int] = (),
    prior: Sequence[float] = (),
    mechanism: str | None = None,
    encoding: str | None = None,
    sigma: float | None = None,
    noise: float | None = None,
    laplace: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    step: Sequence[Mapping[str, float]] = (),
    adjacency: str | None = None,
    alpha: float | None = None,
    epsilon: float | None = None,
    curve: str | None = None,
    at: Sequence[float] = (),
    secret: str | None = None,
    bins: int = 4,
    sigmas: Sequence[float] = (),
    target_eta: float | None = None,
    target_sd: Mapping[str, float] | None = None,
    noise_shape: str = "isotropic",
    protect: Sequence[str] | str = (),
    shape_budget: float = 0.05,
    shape_from: Any = None,
    gap: float = 0.01,
    attacks: bool | Sequence[str] = False,
    noise_vectors: int = 100,
    eta: float | None = None,
    prior_sd: float | None = None,
    delta: float = 1e-5,
    trials: int = 100_000,
    seed: int = 1,
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
    text_encoding: str = "utf-8",
    header: bool = True,
    model: str = "linear",
    power: float | None = None,
    huber_threshold: float | None = None,
    max_classes: int = 100,
    l2: float = 0.0,
    fit_intercept: bool = True,
    test: Any = None,
    holdout: float | None = None,
    label: str = "secret",
    redact: bool = False,
    out: Path | None = None,
    progress: Progress = None,
) -> Bound:
    """What any attacker can guess of a discrete secret at most, tightest bound first.

    Returns
    -------
    Bound
        The document and the page.

    Examples
    --------
    >>> import leakscope
    >>> result = leakscope.bound(mechanism="gaussian", candidates=10, sigma=1, trials=0)
    >>> 0.3 < result.success < 0.4
    True
    """
    options = dict(locals())
    # A prior is counted from a column alone: no model, no target.
    lone = mechanism is not None and target is None and y is None
    source, rows, table, column = _over_data(bound, options, lone)
    made = _requests.of_targets(options, source)
    if made is not None and table is not None:
        table["noise"] = made
    request = {
        "candidates": listed(candidates), "prior": listed(prior), "mechanism": mechanism, "encoding": encoding, "sigma": sigma,
        "noise": noise, "laplace": laplace, "rate": rate, "steps": steps, "step": _requests.steps(step), "adjacency": adjacency,
        "alpha": alpha, "epsilon": epsilon, "curve": curve, "at": listed(at), "table": table, "column": column, "secret": secret,
        "bins": bins, "sigmas": listed(sigmas), "over_noise": out is not None, "attacks": _attacks(attacks),
        "noise_vectors": noise_vectors, "eta": eta, "prior_sd": prior_sd, "delta": delta, "trials": trials, "seed": seed,
    }
    with _progress.shown(progress) as callback:
        outcome = _native.bound(request, native(source), native(rows), callback, _machines.of_question(data=source, test=rows))
    return Bound(outcome, source)._kept(out)


def _attacks(attacks: Any) -> list[Any] | None:
    if attacks is False or attacks is None:
        return None
    return [] if attacks is True else listed(attacks)


@documented(data="A table, as for :func:`leakscope.audit`: the noise on its model's coefficients is solved for.",
            epsilon="Target: ε, at ``delta``.",
            delta="The δ of ``epsilon``.",
            sigma="Noise multiplier of DP-SGD: standard deviation over the clipping norm.",
            rate="Sampling rate of DP-SGD, above 0, at most 1.",
            steps="Number of steps of DP-SGD.",
            encoding="Noise on the secret itself instead of DP-SGD: ``\"one-hot\"``, ``\"line\"``, or a file with one vector a value.",
            target_eta="Target on a table: the ``statistic`` of η over records.",
            target_sd="Target on a table: attributes, each with the least standard deviation, in its own units, of any unbiased "
                      "estimate of it, such as ``{\"age\": 5}``.",
            secret="The column of the table that must not be guessed.",
            out="Folder to keep the document in.",
            seed="Seed of the split of ``holdout``.")
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
    prior: Sequence[float] = (),
    encoding: str | None = None,
    target_eta: float | None = None,
    statistic: str = "max",
    target_sd: Mapping[str, float] | None = None,
    noise_shape: str = "isotropic",
    protect: Sequence[str] | str = (),
    shape_budget: float = 0.05,
    shape_from: Any = None,
    gap: float = 0.01,
    sigma: float | None = None,
    rate: float | None = None,
    steps: int | None = None,
    adjacency: str | None = None,
    secret: str | None = None,
    bins: int = 4,
    over: str = "every-record",
    seed: int = 1,
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
    text_encoding: str = "utf-8",
    header: bool = True,
    model: str = "linear",
    power: float | None = None,
    huber_threshold: float | None = None,
    max_classes: int = 100,
    l2: float = 0.0,
    fit_intercept: bool = True,
    test: Any = None,
    holdout: float | None = None,
    label: str = "secret",
    out: Path | None = None,
    progress: Progress = None,
) -> Calibration:
    """The noise, sampling rate or number of steps that meets a target.

    Of DP-SGD the one of ``sigma``, ``rate`` and ``steps`` that is not given is solved for; with a table the noise on its
    model's coefficients; with ``encoding`` the noise on a secret.

    Returns
    -------
    Calibration
        The document.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> result = leakscope.calibrate(epsilon=2, delta=1e-5, rate=0.01, steps=1000, adjacency="add-remove")
    >>> 0.95 < result.sigma < 0.97 and result["achieved"] <= 2
    True
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> noise = leakscope.calibrate(X, y, target_eta=0.5, l2=0.01)
    >>> bool(leakscope.audit(X, y, sigma=noise.sigma, l2=0.01).records["eta"].max() <= 0.5)
    True
    """
    options = dict(locals())
    source, rows, table, _ = _over_data(calibrate, options)
    public = None if source is None else other(shape_from, source, columns, "shape_from", True)
    shaped = _requests.shaped(options, public) if _requests.is_shaped(options) else None
    request = {
        "epsilon": epsilon, "delta": delta, "advantage": advantage, "tpr": tpr, "fpr": fpr, "success": success,
        "candidates": candidates, "prior": listed(prior), "encoding": encoding,
        "target_eta": None if shaped else target_eta, "statistic": statistic,
        "target_sd": None if shaped else pair("target_sd", target_sd), "noise": shaped, "sigma": sigma, "rate": rate, "steps": steps, "adjacency": adjacency, "table": table,
        "secret": secret, "bins": bins, "over": over, "seed": seed,
    }
    with _progress.shown(progress) as callback:
        outcome = _native.calibrate(request, native(source), native(rows), native(public), callback)
    return Calibration(outcome, source)._kept(out)
