"""Networks over numpy arrays: build, load, train in private, and measure what every record gives away."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path as _Path
from typing import Any

import numpy as np

from . import _native, _progress
from ._accountant import Accountant
from ._checks import between, one_of, positive, real, seeded, whole, within
from ._commands import Path, Progress
from ._native import DataError, LeakscopeError, OptionError
from ._results import _Kept, _WithPage
from ._tables import frame, frame_kind, numbers
from ._words import words

_NAMES = {"F32": "<f4", "F64": "<f8"}


def _tensors(raw: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by name of a safetensors file."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    found = {}
    for name, item in header.items():
        if name != "__metadata__":
            start, end = item["data_offsets"]
            values = np.frombuffer(raw[8 + length + start : 8 + length + end], dtype=_NAMES[item["dtype"]])
            found[name] = values.reshape(item["shape"])
    return found


def _safetensors(arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    header: dict[str, Any] = {}
    blobs, at = [], 0
    for name, array in arrays.items():
        array = np.ascontiguousarray(array, dtype=np.float64)
        blob = array.astype("<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(blobs)


class Network:
    """A network of dense, convolution, pooling, norm and activation layers, with its weights.

    ``network`` is a preset (``linear``, ``mlp``, ``mlp-attack``, ``cnn-mnist``, ``cnn-cifar``) with the shape of a record
    and the number of outputs, or a description: a mapping or a JSON file as ``leakscope net train`` leaves it.
    Images are channels last.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 10))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> net = leakscope.Network("linear", input=(10,), outputs=2, seed=1)
    >>> run = net.train(x, y, steps=50, batch=50, lr=0.5, clip=1.0, sigma=1.0, seed=1)
    >>> run.epsilon(delta=1e-5) > 0 and net.evaluate(x, y)["accuracy"] > 0.7
    True
    >>> found = net.audit(x, y, clip=1.0, sigma=1.0, trace="exact", eta=True)
    >>> bool(0 < (found.records["eta"] ** 2).max() <= 10 * found.records["dfil"].max())
    True
    """

    def __init__(
        self,
        network: str | Mapping[str, Any] | os.PathLike[str],
        *,
        input: Sequence[int] | None = None,
        outputs: int | None = None,
        seed: int | None = None,
        precision: str = "f32",
    ) -> None:
        one_of("precision", precision, ("f32", "f64"))
        if isinstance(network, Mapping):
            spec = json.dumps(network)
        elif isinstance(network, os.PathLike) or str(network).endswith(".json"):
            try:
                spec = _Path(network).read_text()
            except OSError as e:
                raise LeakscopeError(f"{os.fspath(network)}: cannot read it: {e}") from e
        else:
            if input is None or outputs is None:
                raise OptionError("input, outputs: a preset needs the shape of a record and the number of outputs")
            extents = tuple(whole("input", extent, 1) for extent in _listed("input", input))
            spec = _native.Network.preset(network, list(_dims(extents)), whole("outputs", outputs, 1))
        self._native = _native.Network(spec, seeded(seed), precision == "f64")
        # The loss that :meth:`audit` measures is this many times the description's; leakscope.torch sets it.
        self._factor = 1.0

    @classmethod
    def load(cls, folder: Path, precision: str = "f32") -> Network:
        """A network that :meth:`save` or ``leakscope net train`` left in a folder."""
        where = _Path(folder)
        net = cls(where / "network.json", seed=0, precision=precision)
        try:
            net._native.load((where / "model.safetensors").read_bytes())
        except OSError as e:
            raise LeakscopeError(f"{where / 'model.safetensors'}: cannot read it: {e}") from e
        return net

    def save(self, folder: Path) -> _Path:
        """Writes ``network.json`` and ``model.safetensors``: what ``leakscope net audit --model`` takes."""
        where = _Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        _native.write_text(os.fspath(where / "network.json"), self._native.spec())
        raw = self._native.weights()
        descriptor = os.open(where / "model.safetensors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        return where

    @property
    def spec(self) -> dict[str, Any]:
        """The description."""
        found: dict[str, Any] = json.loads(self._native.spec())
        return found

    @property
    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        """Weights and statistics by name; assign a mapping with the same names to change them."""
        return _tensors(self._native.weights())

    @parameters.setter
    def parameters(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._native.load(_safetensors(arrays))

    def __repr__(self) -> str:
        count = sum(a.size for a in self.parameters.values())
        return f"<leakscope.Network of {len(self.spec['layers'])} layers, {count:,} numbers>"

    def _data(self, x: Any, y: Any, name: str = "") -> tuple[list[int], np.ndarray[Any, Any], tuple[int, Any] | None]:
        """Records with their labels as the native side takes them; labels may be absent with a name."""
        array, before = np.asarray(x), f"{name}: " if name else ""
        if array.dtype.kind not in "biuf" or array.ndim < 2:
            raise DataError(f"{before}x: shape {array.shape} of {array.dtype}: expected numbers, one record a row")
        array = np.ascontiguousarray(array, dtype=np.float64 if self._native.double() else np.float32)
        dims = list(_dims(array.shape[1:]))
        if y is None and name:
            return dims, array, None
        labels = np.asarray(y)
        if labels.dtype.kind not in "biuf" or labels.ndim not in (1, 2):
            raise DataError(f"{before}y: shape {labels.shape} of {labels.dtype}: expected class numbers, or a vector a record")
        if len(labels) != len(array):
            raise DataError(f"{before}y: {len(labels)} labels for {len(array)} records: they must be as many")
        each = labels.shape[1] if labels.ndim == 2 else 1
        return dims, array, (each, np.ascontiguousarray(labels, dtype=array.dtype))

    def evaluate(self, x: Any, y: Any) -> dict[str, float | None]:
        """Mean loss, and accuracy where there are classes."""
        loss, accuracy = self._native.evaluate(self._data(x, y))
        return {"loss": loss, "accuracy": accuracy}

    def train(
        self,
        x: Any,
        y: Any,
        *,
        steps: int | None = None,
        epochs: float | None = None,
        batch: float = 256,
        lr: float = 0.1,
        momentum: float | None = None,
        adam: bool = False,
        clip: float | None = None,
        clip_kind: str | None = None,
        sigma: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        sampling: str = "poisson",
        weight_decay: float = 0.0,
        freeze: Sequence[int] = (),
        freeze_smallest: float | None = None,
        pretrain: Mapping[str, np.ndarray[Any, Any]] | Path | None = None,
        track: str | None = None,
        probes: int = 4,
        label: str = "public",
        seed: int | None = None,
        progress: Progress = None,
    ) -> Training:
        """Trains this network: DP-SGD with ``sigma`` or ``epsilon``, without noise otherwise.

        Options have the names, the defaults and the meanings of ``leakscope net train --help``. ``epsilon`` finds the noise
        for which the whole run costs that much at ``delta``. ``freeze`` names layers by their position and
        ``freeze_smallest`` a share of the parameters: they stay as they are from now on, here and in later audits.
        ``pretrain`` is a safetensors file, or a mapping as :attr:`parameters` gives it: public weights to start from.
        Checkpoints, test records and the page of a run are the command line's alone.
        """
        data = self._data(x, y)
        n = len(data[1])
        if steps is not None and epochs is not None:
            raise OptionError("steps, epochs: give one of the two")
        if not 0 < positive("batch", batch) <= n:
            raise OptionError(f"batch: {batch}: expected above 0, at most the {n} records")
        one_of("sampling", sampling, ("poisson", "shuffle"))
        if sampling == "shuffle":
            batch = whole("batch", int(batch) if float(batch).is_integer() else batch, 1)
        count = whole("steps", steps, 1, 2**63 - 1) if steps is not None else \
            max(1, round((1.0 if epochs is None else positive("epochs", epochs)) * n / batch))
        if track is not None:
            one_of("track", track, ("drawn", "every"))
        if sigma is not None and epsilon is not None:
            raise OptionError("sigma, epsilon: give one of the two")
        private = sigma is not None or epsilon is not None
        if not private and clip is not None:
            raise OptionError("clip: give the noise too, for example sigma=1 or epsilon=1")
        if not private and track is not None:
            raise OptionError("track: what records give away is only finite under noise: give sigma or epsilon")
        if not private and delta is not None:
            raise OptionError("delta: ε is stated at it, and without noise there is none: give sigma or epsilon")
        if adam and momentum is not None:
            raise OptionError("momentum: it belongs to SGD: leave it out, or adam")
        if private and clip_kind == "none":
            raise OptionError("clip_kind: 'none': without a clip there is no privacy: give clip, or no noise")
        rate = float(batch) / n
        drawn: dict[str, Any] = {"kind": "poisson", "rate": rate} if sampling == "poisson" else \
            {"kind": "shuffle", "batch": int(batch)}
        config: dict[str, Any] = {
            "optimizer": {"kind": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8} if adam
            else {"kind": "sgd", "momentum": within("momentum", 0.9 if momentum is None else momentum, 0, 1)},
            "learning_rate": positive("lr", lr),
            "weight_decay": _at_least_0("weight_decay", weight_decay),
            "sampling": drawn,
            "tracking": {"kind": "off"} if track is None else {"kind": track, "probes": whole("probes", probes, 1)},
            "label": one_of("label", label, ("public", "secret")),
            "delta": between("delta", 1e-5 if delta is None else delta, 0, 1),
            "seed": seeded(seed),
        }
        frozen = [whole("freeze", layer) for layer in _listed("freeze", freeze)]
        smallest = None if freeze_smallest is None else within("freeze_smallest", freeze_smallest, 0, 1)
        if private:
            how = _clip(1.0 if clip is None else clip, clip_kind)
            if epsilon is not None:
                sigma = _native.sigma_for(positive("epsilon", epsilon), config["delta"], json.dumps(how), json.dumps(drawn),
                                          count, n)
            config["privacy"] = {"clip": how, "sigma": positive("sigma", sigma)}
        if pretrain is not None:
            self._native.load(_weights(pretrain))
        callback, bar = _progress.start(progress)
        try:
            reports, records = self._native.train(data, json.dumps(config), count, frozen, smallest, callback)
        finally:
            bar.close()
        released = None
        if private:
            # A smooth clip lets through a little more than C, so the noise is worth a little less.
            worth = config["privacy"]["sigma"] / _native.overshoot(json.dumps(config["privacy"]["clip"]))
            released = (worth, rate if sampling == "poisson" else None, count)
        return Training(config["seed"], released, reports, records)

    def audit(
        self,
        x: Any,
        y: Any,
        *,
        clip: float | None = None,
        clip_kind: str | None = None,
        sigma: float | None = None,
        trace: int | str = 10,
        eta: bool = False,
        plis: bool = False,
        grid: int | None = None,
        superpixels: Any = None,
        label: str | None = None,
        compare: Network | None = None,
        score: Any = None,
        records: int | Sequence[int] | None = None,
        pictures: bool = True,
        seed: int | None = None,
        out: Path | None = None,
        progress: Progress = None,
    ) -> NetAudit:
        """Measures what one gradient step gives away about records: dFIL, η, JacSens, PLIS.

        ``trace`` is ``"exact"``, ``"elements"`` (exact, with what each value of a record adds to it), ``"skip"`` or a number
        of random probes; ``records`` how many of the first, or which; ``score`` points that were not trained on, an
        array or a pair with their labels; ``compare`` another :class:`Network`; ``superpixels`` an array of height × width
        region numbers. The other options have the names, the defaults and the meanings of ``leakscope net audit
        --help``; without ``sigma`` numbers are per unit of noise.
        """
        data = self._data(x, y)
        chosen = _chosen(records, len(data[1]))
        if compare is not None and not isinstance(compare, Network):
            raise OptionError(f"compare: {type(compare).__name__}: expected a leakscope.Network")
        points = None
        if score is not None:
            pair = score if isinstance(score, tuple) and len(score) == 2 else (score, None)
            points = self._data(*pair, name="score")
        regions = None
        if superpixels is not None:
            array = np.asarray(superpixels)
            if array.dtype.kind not in "biuf":
                raise OptionError(f"superpixels: an array of {array.dtype}: expected region numbers")
            regions = (list(array.shape), [float(v) for v in array.ravel()])
        line = words("net audit", {
            "model": "network", "data": "x, y", "clip": clip, "clip_kind": clip_kind, "sigma": sigma, "trace": trace, "eta": eta,
            "plis": plis, "grid": grid, "label": label, "no_pictures": not pictures, "seed": seeded(seed),
        })
        callback, bar = _progress.start(progress)
        try:
            outcome = self._native.audit(line, data, chosen, points, None if compare is None else compare._native, regions,
                                         self._factor, callback)
        finally:
            bar.close()
        result = NetAudit(outcome, data[1].shape[1:])
        if out is not None:
            result.save(out)
        return result


def _dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 2:
        return (*shape, 1)
    if len(shape) not in (1, 3):
        raise DataError(f"records of shape {shape}: expected (length), (height, width) or (height, width, channels)")
    return tuple(int(s) for s in shape)


def _listed(name: str, values: Any) -> list[Any]:
    if not isinstance(values, (list, tuple, range, np.ndarray)):
        raise OptionError(f"{name}: {values!r}: expected a list of whole numbers")
    return list(values)


def _chosen(records: Any, n: int) -> list[int]:
    """Numbers of the records to measure."""
    if records is None:
        return list(range(n))
    if isinstance(records, (list, tuple, range)) or getattr(records, "ndim", 0) == 1:
        found = [whole("records", r, 0, n - 1) for r in records]
        if not found:
            raise OptionError("records: none are named: expected at least one, or None for all")
        return found
    return list(range(min(whole("records", records, 1), n)))


def _at_least_0(name: str, value: Any) -> float:
    found = real(name, value)
    if found < 0:
        raise OptionError(f"{name}: {value!r}: expected a number from 0")
    return found


def _clip(bound: float, kind: str | None) -> dict[str, Any]:
    return {"kind": one_of("clip_kind", kind or "hard", ("hard", "gelu")), "bound": positive("clip", bound)}


def _weights(pretrain: Any) -> bytes:
    if isinstance(pretrain, Mapping):
        return _safetensors(pretrain)
    try:
        return _Path(pretrain).read_bytes()
    except (OSError, TypeError) as e:
        raise OptionError(f"pretrain: {pretrain}: cannot read it: {e}") from e


class Training:
    """What a training run did: loss of every step, and with ``track`` what every record has given away."""

    def __init__(self, seed: int, private: tuple[float, float | None, int] | None, steps: Any, records: Any) -> None:
        self.seed = seed
        self._private = private
        self._steps, self._records = steps, records

    @property
    def steps(self) -> Any:
        """A frame with a row for every step: records drawn, loss, share clipped."""
        return frame("numpy", {name: numbers(raw) for name, raw in self._steps.items()})

    @property
    def records(self) -> Any:
        """A frame with a row for every record: dFIL of the whole run, exact under its sampling; empty without ``track``."""
        return frame("numpy", {name: numbers(raw) for name, raw in self._records.items()})

    def epsilon(self, delta: float = 1e-5, adjacency: str = "add-remove") -> float:
        """ε of the whole run, certified."""
        if self._private is None:
            return float("inf")
        sigma, rate, steps = self._private
        if rate is None:
            raise OptionError("sampling: ε of shuffled batches is not accounted for here: train with sampling='poisson'")
        accountant = Accountant(adjacency)
        accountant.history = [(sigma, rate, steps)]
        return accountant.get_epsilon(delta)


class NetAudit(_WithPage):
    """What one gradient step of a network gives away: as :class:`leakscope.Audit`, with page, summary and document.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    >>> found = leakscope.Network("linear", input=(4,), outputs=2, seed=1).audit(x, y, trace="elements", plis=True, seed=1)
    >>> len(found.records), found.plis_maps.shape, len(found["elements"])
    (20, (20, 4), 4)
    """

    def __init__(self, outcome: _native.Outcome | _Kept, shape: tuple[int, ...]) -> None:
        super().__init__(outcome)
        self._shape = shape
        maps = None if isinstance(outcome, _Kept) else outcome.maps()
        #: PLIS of every input value before clipping, one map a record; ``None`` unless asked for
        self.plis_maps: np.ndarray[Any, Any] | None = None
        if maps is not None:
            # With a secret label its values come after those of the record.
            size = int(np.prod(shape))
            self.plis_maps = numbers(maps).reshape(int(self.data["measured"]), -1)[:, :size].reshape(-1, *shape)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_shape": self._shape, "plis_maps": self.plis_maps}

    @property
    def seed(self) -> int:
        """The seed of probes."""
        return int(self.data["seed"])

    @property
    def records(self) -> Any:
        """A frame with a row for every measured record; the columns are those of the command's ``records.parquet``."""
        return self._measured("records")

    @property
    def scores(self) -> Any:
        """The same for the points of ``score``; ``None`` without any."""
        return self._measured("scores")

    def _measured(self, name: str) -> Any:
        table = self._outcome.table(name)
        if table is None:
            return None
        ids = [int(i) for i in table["ids"]]
        columns: dict[str, Any] = {**dict(table["texts"]), **{column: numbers(raw) for column, raw in table["numbers"]}}
        # predictions of values are neither right nor wrong
        if "right" in columns:
            columns["right"] = columns["right"].astype(bool)
        if frame_kind("numpy") == "pandas":
            return frame("numpy", columns, index=ids)
        return frame("numpy", {"record": ids, **columns})
