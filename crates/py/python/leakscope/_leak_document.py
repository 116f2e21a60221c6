"""Measures of another framework as the document, page and tables of a network's audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _native
from ._leak import Array, Leaks, Measure
from ._net_results import NetAudit

#: values of records that pictures are drawn from, at most
_PICTURED = 2**26


@dataclass
class Subject:
    """What was measured: the network, the records, and what the reader should know."""

    name: str
    parameters: int
    trained: int
    outputs: int
    loss: str
    source: str
    #: records in all
    count: int
    #: numbers of those that were measured
    numbers: list[int]
    labels: list[str] | None
    right: list[bool] | None
    #: shape of a record, in the order that the framework has it
    shape: tuple[int, ...]
    #: secret values of the measured records, a row each, without the label's
    values: Array
    #: secret values of a record, with the label's where it is secret
    dimension: int
    label_secret: bool
    #: whether images are channels first
    channels_first: bool
    notes: list[str]


class Columns:
    """Measures of all chunks, by name."""

    def __init__(self, leaks: list[Leaks]) -> None:
        self._leaks = leaks
        self.loss, self.gradient_norm, self.released_norm = (
            np.concatenate([getattr(leak, name) for leak in leaks]) for name in ("loss", "gradient_norm", "released_norm"))
        self._kept: dict[str, Array | None] = {}

    def whole(self, name: str) -> Array | None:
        """A column, or ``None`` where it was not measured."""
        if name not in self._kept:
            parts = [getattr(leak, name) for leak in self._leaks]
            self._kept[name] = None if any(p is None for p in parts) else np.concatenate(parts)
        return self._kept[name]

    def at(self, name: str, i: int) -> float | None:
        """One value of a column."""
        values = self.whole(name)
        return None if values is None else float(values[i])

    def measure(self, i: int) -> dict[str, float | None] | None:
        """The trace of a record with its standard error."""
        value = self.at("trace", i)
        return None if value is None else {"value": value, "standard_error": self.at("trace_error", i)}

    def eta_of(self, i: int) -> tuple[float, float] | None:
        """η of a record with its residual."""
        value, residual = self.at("eta", i), self.at("eta_residual", i)
        return None if value is None or residual is None else (value, residual)

    def mean(self, name: str, count: int) -> list[float]:
        """Mean sizes over records of the first values."""
        values = self.whole(name)
        return [] if values is None else np.abs(values[:, :count]).mean(axis=0).tolist()


def assembled(s: Subject, request: Measure, leaks: list[Leaks], chosen: bool, pictures: bool) -> NetAudit:
    """The audit; ``chosen`` says whether the noise was."""
    table = Columns(leaks)
    rows = [{
        "record": s.numbers[i],
        "label": None if s.labels is None else s.labels[i],
        "right": None if s.right is None else s.right[i],
        "loss": table.loss[i],
        "gradient_norm": table.gradient_norm[i],
        "released_norm": table.released_norm[i],
        "trace": table.measure(i),
        "eta": table.eta_of(i),
        "jacobian_sensitivity": table.at("jacobian", i),
        "plis": table.at("plis", i),
    } for i in range(len(s.numbers))]
    width = s.values.shape[1]
    trace: dict[str, Any] = {"kind": "estimate", "probes": request.trace}
    if isinstance(request.trace, str):
        trace = {"kind": "skip" if request.trace == "skip" else "exact"}
    document = {
        "network": {"name": s.name, "parameters": s.parameters, "trained": s.trained, "input": list(s.shape), "outputs": s.outputs,
                    "loss": s.loss},
        "files": [s.source],
        "records": s.count,
        "release": {"clip_kind": request.clip.kind, "clip": None if request.clip.kind == "none" else request.clip.bound,
                    "sigma": request.sigma, "noise": request.noise, "chosen": chosen},
        "label_secret": s.label_secret,
        "trace": trace,
        "plis_of": request.plis,
        "seed": request.seed,
        "dimension": s.dimension,
        "variances": s.values.var(axis=0).tolist(),
        "information": table.mean("information", width),
        "plis_sizes": table.mean("maps", width) if request.trace == "elements" else [],
        "rows": rows,
        "warnings": [*s.notes, *_warnings(request, table)],
    }
    image = _image(s.shape, s.channels_first) if pictures and s.values.size <= _PICTURED else None
    x = None
    if image is not None:
        stack = s.values.reshape(-1, *s.shape)
        x = np.ascontiguousarray((stack.transpose(0, 2, 3, 1) if s.channels_first else stack).ravel())
    maps = table.whole("maps")
    outcome = _native.net_measured(document, image, x, None if maps is None else np.ascontiguousarray(maps.ravel()), s.channels_first)
    return NetAudit(outcome, tuple(s.shape))


def _image(shape: tuple[int, ...], channels_first: bool) -> list[int] | None:
    """Height, width and channels, where a record is a picture."""
    if len(shape) != 3:
        return None
    channels, height, width = shape if channels_first else (shape[2], shape[0], shape[1])
    return [height, width, channels] if channels in (1, 3) else None


def _warnings(request: Measure, table: Columns) -> list[str]:
    out = []
    over = int((table.gradient_norm > request.clip.bound).sum()) if request.clip.kind == "hard" else 0
    if over and request.plis == "released":
        out.append(f"{over} of {len(table.loss)} gradients are longer than the hard clip C. What is released of them has the length "
                   "C whatever the record is, so their PLIS is 0: train with clip_kind='gelu', which leaves a little, or ask for "
                   "plis='raw', PLIS before the clip.")
    residual = table.whole("eta_residual")
    slow = 0 if residual is None else int((residual > 1e-3).sum())
    if slow:
        out.append(f"For {slow} records η had not settled to 1e-3: it may be slightly too small.")
    return out
