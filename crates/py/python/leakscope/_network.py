"""Networks over numpy arrays: build, load, train in private, and measure what every record gives away."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path as _Path
from typing import Any

import numpy as np

from . import _native, _progress
from ._accountant import Accountant
from ._commands import Path, Progress
from ._native import DataError, LeakscopeError, OptionError
from ._tables import frame, frame_kind, numbers

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
        if precision not in ("f32", "f64"):
            raise OptionError(f"precision: {precision!r}: expected 'f32' or 'f64'")
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
            spec = _native.Network.preset(network, list(_dims(tuple(input))), outputs)
        self._native = _native.Network(spec, secrets.randbits(53) if seed is None else seed, precision == "f64")
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

    def _data(self, x: Any, y: Any) -> tuple[list[int], np.ndarray[Any, Any], Any]:
        array = np.asarray(x)
        if array.dtype.kind not in "biuf" or array.ndim < 2:
            raise DataError(f"x: shape {array.shape} of {array.dtype}: expected numbers, one record a row")
        array = np.ascontiguousarray(array, dtype=np.float64 if self._native.double() else np.float32)
        dims = _dims(array.shape[1:])
        labels = np.asarray(y)
        if len(labels) != len(array):
            raise DataError(f"y: {len(labels)} labels for {len(array)} records: they must be as many")
        squared = self.spec["loss"] == "squared-error"
        if labels.ndim == 1 and labels.dtype.kind in "biu" and not squared:
            if labels.size and labels.min() < 0:
                raise DataError(f"y: a class is {labels.min()}: expected whole numbers from 0")
            return list(dims), array, [int(c) for c in labels]
        if labels.dtype.kind not in "biuf" or labels.ndim > 2:
            raise DataError(f"y: shape {labels.shape} of {labels.dtype}: expected class numbers, or a vector a record")
        if labels.ndim == 1:
            labels = labels[:, None]
        return list(dims), array, np.ascontiguousarray(labels, dtype=array.dtype)

    def evaluate(self, x: Any, y: Any) -> dict[str, float | None]:
        """Mean loss, and accuracy where there are classes."""
        loss, accuracy = self._native.evaluate(*self._data(x, y))
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
        momentum: float = 0.9,
        adam: bool = False,
        clip: float | None = None,
        clip_kind: str | None = None,
        sigma: float | None = None,
        delta: float = 1e-5,
        sampling: str = "poisson",
        weight_decay: float = 0.0,
        track: str | None = None,
        probes: int = 4,
        label: str = "public",
        seed: int | None = None,
        progress: Progress = None,
    ) -> Training:
        """Trains this network: DP-SGD with ``sigma``, in the open without. Options are those of ``leakscope net train``."""
        data = self._data(x, y)
        n = len(data[1])
        if steps is not None and epochs is not None:
            raise OptionError("steps, epochs: give one of the two")
        if not 0 < batch <= n:
            raise OptionError(f"batch: {batch}: expected above 0, at most the {n} records")
        count = steps if steps is not None else max(1, round((1.0 if epochs is None else epochs) * n / batch))
        if sampling not in ("poisson", "shuffle"):
            raise OptionError(f"sampling: {sampling!r}: expected 'poisson' or 'shuffle'")
        if track not in (None, "drawn", "every"):
            raise OptionError(f"track: {track!r}: expected 'drawn' or 'every'")
        if sigma is None and clip is not None:
            raise OptionError("clip: give the noise too, for example sigma=1")
        rate = batch / n
        config: dict[str, Any] = {
            "optimizer": {"kind": "adam", "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8} if adam
            else {"kind": "sgd", "momentum": momentum},
            "learning_rate": lr,
            "weight_decay": weight_decay,
            "sampling": {"kind": "poisson", "rate": rate} if sampling == "poisson"
            else {"kind": "shuffle", "batch": int(batch)},
            "tracking": {"kind": "off"} if track is None else {"kind": track, "probes": probes},
            "label": label,
            "delta": delta,
            "seed": secrets.randbits(53) if seed is None else seed,
        }
        if sigma is not None:
            config["privacy"] = {"clip": _clip(1.0 if clip is None else clip, clip_kind), "sigma": sigma}
        callback, bar = _progress.start(progress)
        try:
            reports, records = self._native.train(*data, json.dumps(config), int(count), callback)
        finally:
            bar.close()
        private = None if sigma is None else (sigma, rate if sampling == "poisson" else None, int(count))
        return Training(config["seed"], private, reports, records)

    def audit(
        self,
        x: Any,
        y: Any,
        *,
        clip: float | None = None,
        clip_kind: str | None = None,
        sigma: float = 1.0,
        trace: int | str = 10,
        eta: bool = False,
        plis: bool = False,
        label: str = "public",
        records: int | Sequence[int] | None = None,
        seed: int | None = None,
        progress: Progress = None,
    ) -> NetAudit:
        """Measures what one gradient step gives away about records: dFIL, η, PLIS.

        ``trace`` is ``"exact"``, ``"skip"`` or a number of random probes; ``records`` how many of the first, or which.
        Options are those of ``leakscope net audit``.
        """
        data = self._data(x, y)
        n = len(data[1])
        chosen = list(range(n if records is None else min(records, n))) if records is None or isinstance(records, int) \
            else [int(r) for r in records]
        if isinstance(trace, str) and trace not in ("exact", "skip"):
            raise OptionError(f"trace: {trace!r}: expected 'exact', 'skip' or a number of probes from 2")
        probes = {"exact": None, "skip": 0}[trace] if isinstance(trace, str) else int(trace)
        if label not in ("public", "secret"):
            raise OptionError(f"label: {label!r}: expected 'public' or 'secret'")
        seed = secrets.randbits(53) if seed is None else seed
        # clip_C(s g) = s clip_{C/s}(g) for both kinds of clip, and noise σC on the one is noise σC/s on the other.
        how = _clip(None if clip is None else clip / self._factor, clip_kind)
        sigma = sigma / self._factor if how["kind"] == "none" else sigma
        callback, bar = _progress.start(progress)
        try:
            found, maps = self._native.audit(
                *data, chosen, json.dumps(how), float(sigma), probes, eta, plis, label == "secret", seed, callback)
        finally:
            bar.close()
        wanted = {"loss", "right", "gradient_norm", "released_norm"} | ({"eta"} if eta else set()) | (
            {"plis"} if plis else set()) | (set() if trace == "skip" else {"dfil"} if trace == "exact" else
                                            {"dfil", "dfil_standard_error"})
        columns: dict[str, Any] = {name: numbers(raw) for name, raw in found.items() if name in wanted}
        columns["right"] = columns["right"].astype(bool)
        for name in ("loss", "gradient_norm", "released_norm"):
            columns[name] = columns[name] * self._factor
        plis_maps = None
        if plis:
            # With a secret label its values come after those of the record.
            plis_maps = numbers(maps).reshape(len(chosen), -1)[:, : data[1][0].size].reshape(-1, *data[1].shape[1:])
        return NetAudit(chosen, columns, plis_maps, seed)


def _dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 2:
        return (*shape, 1)
    if len(shape) not in (1, 3):
        raise DataError(f"records of shape {shape}: expected (length), (height, width) or (height, width, channels)")
    return tuple(int(s) for s in shape)


def _clip(bound: float | None, kind: str | None) -> dict[str, Any]:
    if kind not in (None, "hard", "gelu", "none"):
        raise OptionError(f"clip_kind: {kind!r}: expected 'hard', 'gelu' or 'none'")
    if bound is None or kind == "none":
        if bound is not None or kind in ("hard", "gelu"):
            raise OptionError("clip, clip_kind: a bound and a kind go together; 'none' takes no bound")
        return {"kind": "none"}
    return {"kind": kind or "hard", "bound": float(bound)}


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


class NetAudit:
    """What one gradient step of a network gives away."""

    def __init__(self, chosen: list[int], columns: dict[str, Any], maps: Any, seed: int) -> None:
        self._chosen, self._columns = chosen, columns
        #: PLIS of every input value, one map a record; ``None`` unless asked for
        self.plis_maps = maps
        self.seed = seed

    @property
    def records(self) -> Any:
        """A frame with a row for every measured record."""
        if frame_kind("numpy") == "pandas":
            return frame("numpy", self._columns, index=self._chosen)
        return frame("numpy", {"record": self._chosen, **self._columns})

    def summary(self) -> str:
        """A few lines."""
        lines = [f"{len(self._chosen)} records measured"]
        for name in ("dfil", "eta", "plis"):
            if name in self._columns:
                values = self._columns[name]
                worst = self._chosen[int(np.argmax(values))]
                lines.append(f"{name}: mean {values.mean():.4g}, largest {values.max():.4g} (record {worst})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<leakscope.NetAudit\n{self.summary()}>"
