"""Attacks on networks over numpy arrays: records from gradients, who took part, the last record from parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _native, _progress
from ._checks import one_of
from ._docs import documented
from ._native import DataError, OptionError
from ._net_results import _OfRecords
from ._network import Network, _dims, _safetensors
from ._requests import Path, Progress
from ._results import _Kept

_METHODS = ("inversion", "membership", "informed")

#: which keywords belong to which methods
_OWN = {
    "inversion": {"records", "batch", "local_steps", "local_lr", "clip", "clip_kind", "sigma", "sigmas", "objective", "labels",
                  "iterations", "restarts", "lr", "total_variation", "range", "lpips", "pictures", "redact", "seed"},
    "membership": {"records", "shadows", "canaries", "confidence", "redact", "seed"},
    "informed": {"classes", "known", "learn", "targets", "steps", "lr", "weight_decay", "sgd", "clip", "clip_kind", "sigma", "density",
                 "delta", "epochs", "attack_lr", "attack_decay", "lpips", "pictures", "redact", "seed"},
}


class NetAttack(_OfRecords):
    """What an attack on a network found: the document, the page, the table of records, and reconstructions as arrays."""

    def __init__(self, outcome: _native.Outcome | _Kept, shape: tuple[int, ...] | None) -> None:
        super().__init__(outcome)
        self._shape = shape

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_shape": self._shape}

    @property
    def reconstructions(self) -> np.ndarray[Any, Any] | None:
        """Reconstructed records: (noises, records, …) of an inversion, (adversaries, targets, …) of an informed attack; ``None``
        of membership."""
        raw = self._outcome.reconstructions()
        if raw is None or self._shape is None:
            return None
        document = self.document
        first = len(document.get("levels") or document.get("attacks") or [None])
        return np.frombuffer(raw, dtype=np.float64).reshape(first, -1, *self._shape)

    @property
    def attacked(self) -> np.ndarray[Any, Any]:
        """Numbers of the records that were attacked by inversion, in the order of the reconstructions."""
        return np.asarray(self._outcome.attacked(), dtype=np.int64)


@documented(
    network="The network that is attacked. For ``method=\"informed\"``, which trains models of its own: their kind, a preset (``\"mlp\"``) "
            "or a network file, a chain of dense layers; ``None`` for linear ones.",
    x="Records: an array of (records, length), (records, height, width) or (records, height, width, channels). For membership "
      "those that the network was trained on.",
    y="Labels: a class number a record, or a vector a record.",
    method="``\"inversion\"`` (records from gradients), ``\"membership\"`` (who took part) or ``\"informed\"`` (the last record from "
           "parameters).",
    gradient="Inversion: a gradient to attack, arrays by the names of ``network.parameters``, in the place of records.",
    after="Inversion: the same network after local steps, in the place of records.",
    test="Membership: records that were not trained on, a pair of arrays like ``x`` and ``y``.",
    records="How many records to attack, drawn by the seed. By default 50 for inversion, all for membership.",
    batch="Inversion: records in one gradient.",
    local_steps="Inversion: show the attacker the weights before and after so many steps on each batch.",
    local_lr="Inversion: their learning rate.",
    clip="Norm that gradients are clipped to, C.",
    clip_kind="How: ``\"hard\"``, ``\"gelu\"`` or ``\"none\"``.",
    sigma="Noise multiplier.",
    sigmas="Inversion: noise multipliers to attack at, 0 for none.",
    objective="Inversion: ``\"cosine\"`` or ``\"likelihood\"``.",
    labels="Inversion: what the attacker knows of labels: ``\"known\"``, ``\"recover\"`` or ``\"try\"``.",
    iterations="Inversion: steps of the attack (published: 4,000).",
    restarts="Inversion: starts.",
    lr="Length of the attack's first steps in widths of the range; informed: learning rate of every model.",
    total_variation="Inversion: weight of the total variation.",
    range="Inversion: least and largest value of a record.",
    shadows="Membership: shadow models of the likelihood ratio, an even number; 0 for none.",
    canaries="Membership: train once more with so many canaries, to bound ε from below.",
    confidence="Membership: confidence of that bound.",
    classes="Informed: use only records of these classes.",
    known="Informed: records that the adversary knows, the first ones.",
    learn="Informed: targets to learn from, one model each, the next ones.",
    targets="Informed: targets to attack, one model each, the next ones.",
    steps="Informed: steps of every model.",
    weight_decay="Informed: weight decay of every model.",
    sgd="Informed: train models by plain gradient descent, not Adam.",
    density="Informed: share of the parameters that are trained, the largest at the start.",
    delta="Informed: δ of the statement.",
    epochs="Informed: passes of the adversary's network over the models; 0 for no network.",
    attack_lr="Informed: its learning rate.",
    attack_decay="Informed: its weight decay.",
    lpips="Inversion and informed: measure LPIPS too, with the weights in this safetensors file: the convolutions of torchvision's "
          "alexnet (``features.0.weight`` …) and the linear layers of lpips (``lin0.model.1.weight`` …).",
    pictures="Whether records are shown on the page.",
    seed="Seed of records, starts and noise. By default drawn from the system.",
)
def attack_network(
    network: Network | str | None,
    x: Any = None,
    y: Any = None,
    *,
    method: str = "inversion",
    gradient: Mapping[str, Any] | None = None,
    after: Network | None = None,
    test: Any = None,
    records: int | None = None,
    batch: int | None = None,
    local_steps: int | None = None,
    local_lr: float | None = None,
    clip: float | None = None,
    clip_kind: str | None = None,
    sigma: float | None = None,
    sigmas: Sequence[float] | None = None,
    objective: str | None = None,
    labels: str | None = None,
    iterations: int | None = None,
    restarts: int | None = None,
    lr: float | None = None,
    total_variation: float | None = None,
    range: tuple[float, float] | None = None,
    shadows: int | None = None,
    canaries: int | None = None,
    confidence: float | None = None,
    classes: Sequence[int] | None = None,
    known: int | None = None,
    learn: int | None = None,
    targets: int | None = None,
    steps: int | None = None,
    weight_decay: float | None = None,
    sgd: bool | None = None,
    density: float | None = None,
    delta: float | None = None,
    epochs: int | None = None,
    attack_lr: float | None = None,
    attack_decay: float | None = None,
    lpips: Path | None = None,
    pictures: bool | None = None,
    redact: bool | None = None,
    seed: int | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> NetAttack:
    """Attacks a network: what its gradients, its parameters or its run give away.

    Returns
    -------
    NetAttack
        Metrics with intervals (``document``), the page, the table of records, and ``reconstructions`` as an array.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=(12, 6)), rng.integers(0, 2, 12)
    >>> net = leakscope.Network("mlp", input=(6,), outputs=2, seed=1)
    >>> result = leakscope.attack_network(net, x, y, records=6, iterations=20, seed=1)
    >>> result.reconstructions.shape
    (1, 6, 6)
    >>> result.document["levels"][0]["first_layer"]["value"] < 1e-6
    True
    """
    one_of("method", method, _METHODS)
    options = {
        "records": records, "batch": batch, "local_steps": local_steps, "local_lr": local_lr, "clip": clip, "clip_kind": clip_kind,
        "sigma": sigma, "sigmas": None if sigmas is None else list(sigmas), "objective": objective, "labels": labels,
        "iterations": iterations, "restarts": restarts, "lr": lr, "total_variation": total_variation,
        "range": None if range is None else list(range), "shadows": shadows, "canaries": canaries, "confidence": confidence,
        "classes": None if classes is None else list(classes), "known": known, "learn": learn, "targets": targets, "steps": steps,
        "weight_decay": weight_decay, "sgd": sgd, "density": density, "delta": delta, "epochs": epochs, "attack_lr": attack_lr,
        "attack_decay": attack_decay, "lpips": None if lpips is None else os.fspath(lpips), "pictures": pictures, "redact": redact, "seed": seed,
    }
    request = {name: value for name, value in options.items() if value is not None}
    for name in request:
        if name not in _OWN[method]:
            owner = next(m for m in _METHODS if name in _OWN[m])
            raise OptionError(f"{name}: it belongs to method={owner!r}: leave it out")
    release = {name: request.pop(name) for name in ("clip", "clip_kind", "sigma") if name in request}
    if release:
        request["release"] = release
    if method != "inversion" and (gradient is not None or after is not None):
        raise OptionError("gradient, after: they belong to method='inversion': leave them out")
    if method != "membership" and test is not None:
        raise OptionError("test: it belongs to method='membership': leave it out")
    with _progress.shown(progress) as told:
        return _attack(method, network, x, y, gradient, after, test, request, told)._kept(out)


def _attack(method: str, network: Network | str | None, x: Any, y: Any, gradient: Any, after: Any, test: Any, request: dict[str, Any],
           told: Any) -> NetAttack:
    if method == "informed":
        if isinstance(network, str):
            request["network"] = network
        elif network is not None:
            raise OptionError("network: the informed adversary trains models of its own: give None, a preset or a network file")
        data = _plain(x, y)
        return NetAttack(_native.attack_informed(request, data, told), data[1].shape[1:])
    if not isinstance(network, Network):
        raise OptionError(f"network: {type(network).__name__}: expected a leakscope.Network")
    if method == "membership":
        if not (isinstance(test, tuple) and len(test) == 2):
            raise OptionError("test: expected a pair of records and labels that were not trained on")
        members, others = network._data(x, y), network._data(*test)
        result = _native.attack_membership(network._native, request, members, others, network._training, told)
        return NetAttack(result, None)
    if after is not None and not isinstance(after, Network):
        raise OptionError(f"after: {type(after).__name__}: expected a leakscope.Network")
    source = None if x is None else network._data(x, y)
    if source is not None and (gradient is not None or after is not None):
        raise OptionError("x: a gradient is attacked in the place of records: leave one out")
    shape = tuple(network.spec["input"]) if source is None else source[1].shape[1:]
    seen = None if gradient is None else _safetensors({name: np.asarray(g) for name, g in gradient.items()})
    weights = None if after is None else after._native.weights()
    result = _native.attack_inversion(network._native, request, source, seen, weights, network._training, told)
    return NetAttack(result, shape)


def _plain(x: Any, y: Any) -> tuple[list[int], np.ndarray[Any, Any], tuple[int, Any]]:
    """Records in double precision, with a class each."""
    array, classes = np.asarray(x), np.asarray(y)
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        raise DataError(f"x: shape {array.shape} of {array.dtype}: expected numbers, one record a row")
    if classes.dtype.kind not in "biuf" or classes.ndim != 1 or len(classes) != len(array):
        raise DataError(f"y: shape {classes.shape} of {classes.dtype}: expected a class number for each of {len(array)} records")
    array = np.ascontiguousarray(array, dtype=np.float64)
    return list(_dims(array.shape[1:])), array, (1, np.ascontiguousarray(classes, dtype=np.float64))
