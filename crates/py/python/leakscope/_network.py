"""Networks over numpy arrays: build, load, train in private, and measure what every record gives away."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path as _Path
from typing import Any

import numpy as np

from . import _native, _progress, _requests
from ._checks import one_of, seeded, whole
from ._docs import documented
from ._native import DataError, LeakscopeError, OptionError
from ._net_results import NetAudit, Training
from ._requests import Path, Progress
from ._tables import read

_NAMES = {"F32": "<f4", "F64": "<f8"}


def _tensors(raw: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by name of a safetensors file."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    result = {}
    for name, item in header.items():
        if name != "__metadata__":
            start, end = item["data_offsets"]
            values = np.frombuffer(raw[8 + length + start : 8 + length + end], dtype=_NAMES[item["dtype"]])
            result[name] = values.reshape(item["shape"])
    return result


def _is_double(raw: bytes) -> bool:
    """Whether a safetensors file holds numbers of double precision; a file that is damaged is named when it is loaded."""
    try:
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        return any(item["dtype"] == "F64" for name, item in header.items()
                   if name != "__metadata__" and not name.endswith((".mean", ".variance")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


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

    Parameters
    ----------
    network : str | Mapping[str, object] | os.PathLike[str]
        A preset (``"linear"``, ``"mlp"``, ``"mlp-attack"``, ``"cnn-mnist"``, ``"cnn-cifar"``), or a description: a mapping, or
        a JSON file as :meth:`save` leaves it.
    input : Sequence[int]
        Shape of a record, for a preset: a length, or height, width and channels (images are channels last).
    outputs : int
        Number of outputs, for a preset, at least 1.
    seed : int
        Seed of the weights. By default drawn from the system.
    precision : str, default 'f32'
        Numbers to compute with: ``"f32"``, ``"f64"`` or, on a GPU, ``"tf32"``, where products inside passes are rounded to eleven bits
        (norms and sums of clipped gradients are not; no bounds are stated).
    device : str, default 'cpu'
        Where to compute: ``"cpu"``, ``"cuda"``, ``"cuda:1"`` (the number of a GPU) or ``"auto"``.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 10))
    >>> y = (x[:, 0] > 0).astype(int)
    >>> net = leakscope.Network("linear", input=(10,), outputs=2, seed=1)
    >>> run = net.train(x, y, steps=50, batch=50, lr=0.5, clip=1.0, sigma=1.0, seed=1)
    >>> run.epsilon(delta=1e-5) > 0 and net.evaluate(x, y)["accuracy"] > 0.7
    True
    >>> result = net.audit(x, y, clip=1.0, sigma=1.0, trace="exact", eta=True)
    >>> bool(0 < (result.records["eta"] ** 2).max() <= 10 * result.records["dfil"].max())
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
        device: str = "cpu",
    ) -> None:
        one_of("precision", precision, ("f32", "tf32", "f64"))
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
        self._native = _native.Network(spec, seeded(seed), precision, device)
        #: the document of the run that trained it, where one did
        self._training: str | None = None
        # The loss that :meth:`audit` measures is this many times the description's; leakscope.torch sets it.
        self._factor = 1.0
        # How the rows of a table became records, where it was trained on one.
        self._encoding: str | None = None

    @classmethod
    @documented(folder="The folder.", precision="Numbers to compute with, ``\"f32\"``, ``\"f64\"`` or ``\"tf32\"``. By default those of its file.",
                device="Where it computes, as in :class:`Network`.")
    def load(cls, folder: Path, precision: str | None = None, device: str = "cpu") -> Network:
        """A network that :meth:`save`, a run's :meth:`Training.save` or the command line left in a folder.

        One that was trained on a table (:func:`leakscope.train_network`) takes rows again where ``private/encoding.json`` is there.
        """
        where = _Path(folder)
        try:
            raw = (where / "model.safetensors").read_bytes()
        except OSError as e:
            raise LeakscopeError(f"{where / 'model.safetensors'}: cannot read it: {e}") from e
        if precision is None:
            precision = "f64" if _is_double(raw) else "f32"
        net = cls(where / "network.json", seed=0, precision=precision, device=device)
        net._native.load(raw)
        run = where / "training.json"
        net._training = run.read_text(encoding="utf-8") if run.exists() else None
        encoding = where / "private" / "encoding.json"
        net._encoding = encoding.read_text(encoding="utf-8") if encoding.is_file() else None
        return net

    @classmethod
    def _trained(cls, native: _native.Network, encoding: str, training: str) -> Network:
        """A network that was trained on the rows of a table."""
        net = cls.__new__(cls)
        net._native, net._factor, net._encoding, net._training = native, 1.0, encoding, training
        return net

    @documented(folder="The folder, made where it is not there.")
    def save(self, folder: Path) -> _Path:
        """Writes ``network.json`` and ``model.safetensors`` into ``folder``, as the command line takes a model; of a network that was trained on a table also ``private/encoding.json``, which must not leave the house."""
        where = _Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        _native.write_text(os.fspath(where / "network.json"), self._native.spec())
        raw = self._native.weights()
        descriptor = os.open(where / "model.safetensors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        if self._encoding is not None:
            (where / "private").mkdir(mode=0o700, exist_ok=True)
            _native.write_text(os.fspath(where / "private" / "encoding.json"), self._encoding)
        return where

    @property
    def spec(self) -> dict[str, Any]:
        """The description."""
        result: dict[str, Any] = json.loads(self._native.spec())
        return result

    @property
    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        """Weights and statistics by name; assign a mapping with the same names to change them."""
        return _tensors(self._native.weights())

    @parameters.setter
    def parameters(self, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._native.load(_safetensors(arrays))
        # These weights are no run's.
        self._training = None

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

    @documented(x="Records, as :meth:`train` takes them.", y="Labels, as :meth:`train` takes them.")
    def evaluate(self, x: Any, y: Any) -> dict[str, float | None]:
        """Mean loss, and accuracy where there are classes."""
        loss, accuracy = self._native.evaluate(self._data(x, y))
        return {"loss": loss, "accuracy": accuracy}

    @documented(
        x="Records: an array of (records, length), (records, height, width) or (records, height, width, channels).",
        y="Labels: a class number a record, or a vector a record.",
        steps="Steps. By default what ``epochs`` takes.",
        epochs="Passes over the data, above 0. By default 1.",
        batch="Records in a batch, at most all; with Poisson sampling the expected number.",
        lr="Learning rate, above 0.",
        momentum="Momentum of SGD, at least 0, below 1.",
        adam="Whether Adam moves the weights, instead of SGD.",
        clip="Clip the gradient of every record at this norm C, above 0. By default 1 where there is noise.",
        sigma="Noise multiplier of DP-SGD: the noise on the sum of gradients has standard deviation σC.",
        epsilon="Instead of ``sigma``: the noise for which the whole run costs this ε at ``delta``.",
        delta="δ of the privacy statement, above 0, below 1. By default 1e-5.",
        sampling="How batches are drawn: ``\"poisson\"`` (what accountants assume) or ``\"shuffle\"``.",
        weight_decay="Weight decay, zero or more.",
        freeze="Layers whose parameters stay as they are from now on, by position.",
        freeze_smallest="Share of the parameters, the smallest in size, that stay as they are from now on: at least 0, below 1.",
        pretrain="Public weights to start from: a safetensors file, or a mapping as :attr:`parameters` gives it.",
        density="The same as the share that is trained, the largest in size after ``pretrain`` and ``public_epochs``: above 0, at "
                "most 1.",
        public="Public records, a pair of arrays as ``x`` and ``y``: batch norms take their mean and variance from them, with "
               "``public_epochs`` the network is trained on them first, and ``perturb`` is learned on them. They are not counted.",
        public_epochs="Train on the public records first, without noise: so many passes over them.",
        public_steps="The same as a number of steps, at least 1.",
        public_batch="Public records in a batch. By default ``batch``, at most all.",
        public_lr="Learning rate on public records. By default ``lr``.",
        public_optimizer="Optimiser on public records: ``\"sgd\"`` or ``\"adam\"``. By default that of the run.",
        public_weight_decay="Weight decay on public records.",
        perturb="Add to every gradient, before the clip, what the public records show to make it give less away: the "
                "``\"average\"`` public gradient times a number, a ``\"constant\"``, a ``\"network\"`` of the record's values, or "
                "the constant of the ``\"thesis\"``. Learned again before each step.",
        perturb_lambda="λ of ``perturb``: what the leak of a gradient weighs against the size of the perturbation. By default 1000.",
        perturb_epochs="Passes over the public records by which ``perturb`` is learned before the first step. By default 200.",
        perturb_batch="Public records in a batch of that. By default 512, at most all.",
        perturb_lr="Learning rate of that. By default 0.01.",
        perturb_weight_decay="Weight decay of that. By default 0.1.",
        track="Keep what records give away: of a random ``\"panel\"`` at every step and besides of those drawn (``True`` is the "
              "same), of those ``\"drawn\"`` alone, or of ``\"every\"`` one at every step.",
        probes="Random probes of each trace that ``track`` keeps.",
        label="Whether the label is part of the secret that ``track`` keeps account of: ``\"public\"`` or ``\"secret\"``.",
        rate="Probability of each record to be drawn in a step, above 0, at most 1; the sum of gradients is then divided by "
             "``batch``, and the number of records stays private. By default ``batch`` over the number of records, which is "
             "taken to be public.",
        seed="Seed of what is no secret: probes, and in a run without noise its batches. By default drawn from the system.",
        not_private_noise_from_seed="Let batches and noise follow from the seed too, so that the run can be repeated. Whoever "
                                    "knows the seed can take the noise off: no ε is stated.",
        filter_epsilon="Drop a record from further steps before the run would cost it more than this ε (at ``delta``).",
        filter_budgets="The same by record: a number for each, in order, or a file with one a line.",
        out="Folder to keep the run in: network, weights, document, page and table of records.",
    )
    def train(
        self,
        x: Any,
        y: Any,
        *,
        steps: int | None = None,
        epochs: float | None = None,
        batch: float = 256,
        rate: float | None = None,
        lr: float = 0.1,
        momentum: float = 0.9,
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
        density: float | None = None,
        pretrain: Mapping[str, np.ndarray[Any, Any]] | Path | None = None,
        public: tuple[Any, Any] | None = None,
        public_epochs: float | None = None,
        public_steps: int | None = None,
        public_batch: int | None = None,
        public_lr: float | None = None,
        public_optimizer: str | None = None,
        public_weight_decay: float = 0.0,
        perturb: str | None = None,
        perturb_lambda: float | None = None,
        perturb_epochs: int | None = None,
        perturb_batch: int | None = None,
        perturb_lr: float | None = None,
        perturb_weight_decay: float | None = None,
        track: str | bool | None = None,
        probes: int = 4,
        label: str = "public",
        seed: int | None = None,
        not_private_noise_from_seed: bool = False,
        filter_epsilon: float | None = None,
        filter_budgets: Path | Sequence[float] | None = None,
        redact: bool = False,
        out: Path | None = None,
        progress: Progress = None,
    ) -> Training:
        """Trains this network: DP-SGD with ``sigma`` or ``epsilon``, without noise otherwise.

        Test records and checkpoints are the command line's alone.

        Returns
        -------
        Training
            The run: document, page, every step, and with ``track`` what every record has given away.
        """
        how = _requests.run(locals())
        data = self._data(x, y)
        request = {
            "run": how, "batch": batch, "sampling": sampling, "label": label, "freeze": freeze,
            "freeze_smallest": freeze_smallest, "density": density, "perturb": perturb,
            "public_training": {
                "epochs": public_epochs, "steps": public_steps, "batch": public_batch, "lr": public_lr,
                "optimizer": public_optimizer, "weight_decay": public_weight_decay,
            },
            "perturb_training": {
                "lambda": perturb_lambda, "epochs": perturb_epochs, "batch": perturb_batch, "lr": perturb_lr,
                "weight_decay": perturb_weight_decay,
            },
            **_budgets(filter_budgets),
        }
        source = None
        if public is not None:
            if not isinstance(public, tuple | list) or len(public) != 2:
                raise OptionError("public: expected a pair of arrays, the records and their labels")
            source = self._data(*public, name="public")
        with _progress.shown(progress) as callback:
            weights = None if pretrain is None else _weights(pretrain)
            outcome = self._native.train(request, data, weights, callback, source)
        run = Training(outcome, float(batch) / len(data[1]) if rate is None else float(rate))._kept(out)
        # A second run starts from what the first gave away: its document alone would promise too much.
        again = self._training is not None and pretrain is None
        self._training = None if again and run.document["privacy"] is not None else json.dumps(run.document)
        return run

    @documented(
        x="Records: an array of (records, length), (records, height, width) or (records, height, width, channels). For a "
          "network of :func:`leakscope.train_network`: the table, as a frame or as files.",
        y="Labels: a class number a record, or a vector a record. A table has its own.",
        sigma="Noise multiplier: the noise on the sum of gradients has standard deviation σC (σ without a clip). By default that "
              "of the run that trained the network, or 1, so that numbers are per unit of noise.",
        trace="The trace of the information: ``\"exact\"``, ``\"elements\"`` (exact, with what each value of a record adds to "
              "it), ``\"skip\"``, or a number of random probes from 2.",
        eta="Measure η and JacSens too (Lanczos: the most costly part).",
        plis="Measure PLIS too, and draw its maps: of the gradient that is released (``True`` or ``\"released\"``), or of the raw "
             "one before the clip (``\"raw\"``).",
        grid="Draw PLIS over squares of so many pixels instead of every pixel, and list that of each with the records.",
        superpixels="The same over regions: an array of height × width region numbers from 0.",
        label="Whether the label is part of the secret: ``\"public\"`` or ``\"secret\"``. By default public.",
        compare="Another :class:`Network` of the same shape and precision, whose PLIS maps are drawn beside.",
        score="Points that were not trained on: an array, or a pair with their labels.",
        records="How many of the first records to measure, or which. By default all.",
        pictures="Whether the page shows records.",
        seed="Seed of the probes. By default drawn from the system, and kept in the document.",
    )
    def audit(
        self,
        x: Any,
        y: Any = None,
        *,
        clip: float | None = None,
        clip_kind: str | None = None,
        sigma: float | None = None,
        trace: int | str = 10,
        eta: bool = False,
        plis: bool | str = False,
        grid: int | None = None,
        superpixels: Any = None,
        label: str | None = None,
        compare: Network | None = None,
        score: Any = None,
        records: int | Sequence[int] | None = None,
        pictures: bool = True,
        redact: bool = False,
        seed: int | None = None,
        out: Path | None = None,
        progress: Progress = None,
    ) -> NetAudit:
        """Measures what one gradient step gives away about records: dFIL, η, JacSens, PLIS.

        Returns
        -------
        NetAudit
            The document, the page, and the table of records.
        """
        if self._encoding is not None:
            return self._audit_rows(x, y, records, score, grid, superpixels, compare, out, progress, {
                "trace": _trace(trace), "eta": eta, "plis": _signal(plis), "label": label, "pictures": pictures, "seed": seed,
                "redact": redact, "release": {"clip": clip, "clip_kind": clip_kind, "sigma": sigma},
            })
        data = self._data(x, y)
        chosen = _chosen(records, len(data[1]))
        if compare is not None and not isinstance(compare, Network):
            raise OptionError(f"compare: {type(compare).__name__}: expected a leakscope.Network")
        points = None
        if score is not None:
            rows, labels = score if isinstance(score, tuple) and len(score) == 2 else (score, None)
            points = self._data(rows, labels, name="score")
        request = {
            "trace": _trace(trace), "eta": eta, "plis": _signal(plis), "grid": grid, "label": label, "pictures": pictures,
            "redact": redact, "seed": seed,
            "release": {"clip": clip, "clip_kind": clip_kind, "sigma": sigma},
        }
        with _progress.shown(progress) as callback:
            outcome = self._native.audit(request, data, chosen, points, None if compare is None else compare._native,
                                         _regions(superpixels), self._factor, callback, self._training)
        return NetAudit(outcome, data[1].shape[1:])._kept(out)

    def _audit_rows(self, x: Any, y: Any, records: Any, score: Any, grid: Any, superpixels: Any, compare: Any, out: Path | None,
                    progress: Progress, request: dict[str, Any]) -> NetAudit:
        """The audit over the rows of a table, encoded as in training."""
        for name, value in (("grid", grid), ("superpixels", superpixels), ("compare", compare)):
            if value is not None:
                raise OptionError(f"{name}: it is for images: leave it out")
        assert self._encoding is not None
        encoding = json.loads(self._encoding)["encoding"]
        target, names = encoding["target"]["name"], encoding["id"]

        def rows(data: Any, labels: Any, name: str) -> tuple[_native.Table | None, list[str]]:
            result = read(data, labels, target=target, id=names, need_target=False, name=name)
            return result.table, list(result.files)

        chosen = None if records is None else _chosen(records, int(encoding["rows_training"]))
        with _progress.shown(progress) as callback:
            outcome = self._native.audit_rows(request, self._encoding, rows(x, y, "data"),
                                              None if score is None else rows(score, None, "score"), chosen, callback,
                                              self._training)
        return NetAudit(outcome, (int(self.spec["input"][0]),))._kept(out)


def _budgets(budgets: Any) -> dict[str, Any]:
    """What each record may spend: a file, or numbers."""
    if budgets is None or isinstance(budgets, (str, os.PathLike)):
        return {"filter_budgets": budgets}
    result = np.asarray(budgets)
    if result.ndim != 1 or result.dtype.kind not in "iuf":
        raise OptionError(f"filter_budgets: shape {result.shape} of {result.dtype}: expected a positive number a record")
    return {"budgets": [float(b) for b in result]}


def _signal(plis: bool | str | None) -> str | None:
    """Of which gradient PLIS is; ``None`` where it is not asked for."""
    if plis is True:
        return "released"
    return None if plis is False or plis is None else plis


def _dims(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) == 2:
        return (*shape, 1)
    if len(shape) not in (1, 3):
        raise DataError(f"records of shape {shape}: expected (length), (height, width) or (height, width, channels)")
    return tuple(int(s) for s in shape)


def _listed(name: str, values: Any) -> list[Any]:
    if not isinstance(values, (list, tuple, range, np.ndarray)):
        raise OptionError(f"{name}={values!r}: expected a list of whole numbers")
    return list(values)


def _chosen(records: Any, n: int) -> list[int]:
    """Numbers of the records to measure."""
    if records is None:
        return list(range(n))
    if isinstance(records, (list, tuple, range)) or getattr(records, "ndim", 0) == 1:
        result = [whole("records", r, 0, n - 1) for r in records]
        if not result:
            raise OptionError("records: none are named: expected at least one, or None for all")
        return result
    return list(range(min(whole("records", records, 1), n)))


def _trace(trace: Any) -> Any:
    if not isinstance(trace, str):
        return {"probes": trace}
    if trace not in ("exact", "elements", "skip"):
        raise OptionError(f"trace={trace!r}: expected 'exact', 'elements', 'skip' or a number of probes from 2")
    return trace


def _regions(superpixels: Any) -> tuple[list[int], list[float]] | None:
    if superpixels is None:
        return None
    array = np.asarray(superpixels)
    if array.dtype.kind not in "biuf":
        raise OptionError(f"superpixels: an array of {array.dtype}: expected region numbers")
    return list(array.shape), [float(v) for v in array.ravel()]


def _weights(pretrain: Any) -> bytes:
    if isinstance(pretrain, Mapping):
        return _safetensors(pretrain)
    try:
        return _Path(pretrain).read_bytes()
    except (OSError, TypeError) as e:
        raise OptionError(f"pretrain={str(pretrain)!r}: cannot read it: {e}") from e
