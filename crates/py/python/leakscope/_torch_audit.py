"""The audit of any torch module: records in, the document of a network's audit out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import _native, _progress
from ._checks import one_of, positive, seeded, whole
from ._leak import Array, Leaks, Measure, clip_of, measured
from ._native import DataError, LeakscopeError, OptionError
from ._net_results import NetAudit
from ._network import _chosen, _signal
from ._torch_model import (
    Functional, call, check_alone, differentiable, explained, place_of, refuse_modes, scores, secret_of, trained_names,
)
from ._torch_products import TorchProducts
from ._torch_records import Records, records

#: records that are run together and apart, to see whether they mix
_SAMPLE = 4
#: values of records that pictures are drawn from, at most
_PICTURED = 2**26


def audit(
    module: torch.nn.Module,
    loss: Any,
    data: Any,
    y: Any,
    *,
    clip: float | None,
    clip_kind: str | None,
    sigma: float | None,
    trace: int | str,
    eta: bool,
    plis: bool | str,
    label: str | None,
    trained: str | Sequence[str] | None,
    secret: str | Sequence[str] | None,
    index: str | int | None,
    chunk: int | None,
    vectorize: bool,
    chosen: int | Sequence[int] | None,
    pictures: bool,
    seed: int | None,
    progress: Any,
) -> NetAudit:
    """See :func:`leakscope.torch.audit`; the module is a bare one."""
    what = Measure(clip_of(clip, clip_kind), 1.0 if sigma is None else positive("sigma", sigma), _trace(trace), bool(eta),
                   _of(plis), seeded(seed))
    label_secret = one_of("label", label or "public", ("public", "secret")) == "secret"
    refuse_modes(module)
    device, dtype = place_of(module)
    found = records(data, y, index, device, dtype, takes_target=loss is None)
    found = _ordered(found)
    order = _chosen(chosen, len(found))
    with differentiable(module):
        try:
            functional, notes = _functional(module, loss, found, trained, secret, label_secret)
            if label_secret:
                found = _with_label_values(found, functional)
            size = whole("chunk", chunk, 1) if chunk is not None else _room(functional, found)
            with _progress.shown(progress) as told:
                leaks, rights = _measured(functional, found, order, what, vectorize, size, told)
        except LeakscopeError:
            raise
        except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError) as e:
            raise explained(e) from e
    return _document(functional, found, order, what, leaks, rights, notes, sigma is not None, pictures)


def _functional(module: torch.nn.Module, loss: Any, found: Records, trained: Any, secret: Any,
                label_secret: bool) -> tuple[Functional, list[str]]:
    step = max(1, len(found) // _SAMPLE)
    sample = found.at(list(range(0, len(found), step))[:_SAMPLE])
    functional = Functional(module, loss, trained_names(module, trained), secret_of(module, sample, secret), label_secret)
    return functional, check_alone(functional, sample)


def _trace(trace: Any) -> int | str:
    if isinstance(trace, str):
        return one_of("trace", trace, ("exact", "elements", "skip"))
    return whole("trace", trace, 2)


def _of(plis: Any) -> str | None:
    signal = _signal(plis)
    return None if signal is None else one_of("plis", signal, ("released", "raw"))


def _ordered(found: Records) -> Records:
    """By record number, whatever order a loader had."""
    order = sorted(range(len(found)), key=lambda i: found.numbers[i])
    return found if order == list(range(len(found))) else found.at(order)


def _with_label_values(found: Records, functional: Functional) -> Records:
    """Labels as real numbers: a target as it is, a class as its one-hot entries."""
    target = found.target
    if not isinstance(target, torch.Tensor):
        raise OptionError("label='secret': the module takes the labels itself: give a loss of the output and y")
    if target.is_floating_point():
        return found
    loss = functional.loss
    entropy = isinstance(loss, torch.nn.CrossEntropyLoss) or loss is torch.nn.functional.cross_entropy
    if not entropy or target.ndim != 1:
        raise OptionError("label='secret': labels are whole numbers, and only CrossEntropyLoss takes a class as the values of its "
                          "one-hot vector: give y as real numbers that the loss takes")
    with torch.no_grad():
        classes = scores(call(functional.module, found.at([0]).inputs)).shape[-1]
    first = next(iter(functional.trained.values()))
    hot = torch.nn.functional.one_hot(target, classes).to(first.dtype)
    return Records(found.inputs, hot, found.numbers, found.source)


def _room(functional: Functional, found: Records) -> int:
    """Records at once: what their gradients and activations take, in a share of the memory that is free."""
    seen = [0]

    def add(_layer: Any, _args: Any, output: Any) -> None:
        parts = output if isinstance(output, (tuple, list)) else (output,)
        seen[0] += sum(p.numel() for p in parts if isinstance(p, torch.Tensor))

    handles = [m.register_forward_hook(add) for m in functional.module.modules() if not list(m.children())]
    try:
        with torch.no_grad():
            call(functional.module, found.at([0]).inputs)
    finally:
        for handle in handles:
            handle.remove()
    first = next(iter(functional.trained.values()))
    # g, its tangent, the weights of the adjoint, and as much again while they are made; activations of four passes
    each = first.element_size() * (6 * functional.count + 12 * seen[0]) + 1
    if first.device.type == "cuda":
        free = torch.cuda.mem_get_info(first.device)[0] // 2
    else:
        free = min(_free_memory() // 4, 2**30)
    return max(1, min(int(free // each), 1024, len(found)))


def _free_memory() -> int:
    """Bytes that can be had without pushing others out; caches of the system count as free."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError, IndexError, StopIteration):
        return 2**32


def _measured(functional: Functional, found: Records, order: list[int], what: Measure, vectorize: bool, size: int,
              told: Callable[[str, int, int], Any] | None) -> tuple[list[Leaks], list[Any]]:
    leaks, rights, at = [], [], 0
    while at < len(order):
        some = order[at : at + size]
        here = found.at(some)
        try:
            products = TorchProducts(functional, here, vectorize)
            group = max(1, min(size // len(some), 64)) if vectorize else 1
            leaks.append(measured(products, here.numbers, products.dimension, what, group))
            rights.append(_right(_answers(functional, here, vectorize), here.target))
        except (torch.cuda.OutOfMemoryError, MemoryError) as e:
            if size == 1:
                raise DataError("one record alone does not fit into memory: train fewer parameters (trained=), or give the "
                                "device more") from e
            size = max(1, size // 2)
            continue
        at += len(some)
        if told is not None:
            told("records", at, len(order))
    return leaks, rights


def _answers(functional: Functional, here: Records, together: bool) -> torch.Tensor:
    """What the module answers, a row a record."""
    parts = [here] if together else [here.at([i]) for i in range(len(here))]
    with torch.no_grad():
        return torch.cat([scores(call(functional.module, part.inputs)) for part in parts])


def _right(output: torch.Tensor, target: Any) -> list[bool] | None:
    """Whether the answers are the labels; ``None`` where there is no right or wrong."""
    if not isinstance(target, torch.Tensor) or len(target) != len(output):
        return None
    if output.ndim == 2 and output.shape[1] > 1:
        if target.ndim == 2 and target.shape == output.shape and bool(((target == 0) | (target == 1)).all()) and \
                bool((target.sum(dim=1) == 1).all()):
            target = target.argmax(dim=1)
        if target.ndim == 1 and not target.is_floating_point():
            return [bool(v) for v in (output.argmax(dim=1) == target).tolist()]
    return None


def _words(target: Any) -> list[str] | None:
    if not isinstance(target, torch.Tensor) or target.reshape(len(target), -1).shape[1] != 1:
        return None
    values = target.reshape(-1).tolist()
    return [str(v) if isinstance(v, int) else f"{v:g}" for v in values]


def _values(functional: Functional, found: Records) -> Array:
    """The secret values of records, a row each: inputs, or embeddings."""
    named = found.named()
    with torch.no_grad():
        if functional.secret.embedded:
            parts = [layer(named[name]) for layer, name, _ in functional.secret.embedded]
        else:
            parts = [named[name] for name in functional.secret.names]
        flat = [p.reshape(len(found), -1).double().cpu().numpy() for p in parts]
    return np.concatenate(flat, axis=1)


def _document(functional: Functional, found: Records, order: list[int], what: Measure, leaks: list[Leaks], rights: list[Any],
              notes: list[str], chosen: bool, pictures: bool) -> NetAudit:
    here = found.at(order)
    values = _values(functional, here)
    table = _Columns(leaks)
    right = None if any(r is None for r in rights) else [v for r in rights for v in r]
    labels = _words(here.target)
    if labels is None and isinstance(here.target, torch.Tensor) and right is not None:
        labels = [str(int(v)) for v in here.target.argmax(dim=-1).tolist()]
    shape = _shape(functional, here)
    rows = [{
        "record": here.numbers[i],
        "label": None if labels is None else labels[i],
        "right": None if right is None else right[i],
        "loss": table.loss[i],
        "gradient_norm": table.gradient_norm[i],
        "released_norm": table.released_norm[i],
        "trace": table.measure(i),
        "eta": table.eta_of(i),
        "jacobian_sensitivity": table.at("jacobian", i),
        "plis": table.at("plis", i),
    } for i in range(len(order))]
    image = _image(shape)
    drawable = pictures and image is not None and values.size <= _PICTURED
    maps = table.whole("maps")
    dimension = values.shape[1] + (int(np.prod(found.target.shape[1:])) if functional.label_secret else 0)
    document = {
        "network": {
            "name": type(functional.module).__name__,
            "parameters": sum(p.numel() for p in functional.module.parameters()),
            "trained": functional.count,
            "input": list(shape),
            "outputs": _outputs(functional, found),
            "loss": _loss_name(functional.loss),
        },
        "files": [here.source],
        "records": len(found),
        "release": {"clip_kind": what.clip.kind, "clip": None if what.clip.kind == "none" else what.clip.bound,
                    "sigma": what.sigma, "noise": what.noise, "chosen": chosen},
        "label_secret": functional.label_secret,
        "trace": {"kind": "skip"} if what.trace == "skip" else {"kind": "exact"} if isinstance(what.trace, str) else
        {"kind": "estimate", "probes": what.trace},
        "plis_of": what.plis,
        "seed": what.seed,
        "dimension": dimension,
        "variances": values.var(axis=0).tolist(),
        "information": table.mean("information", values.shape[1]),
        "plis_sizes": table.mean("maps", values.shape[1]) if what.trace == "elements" else [],
        "rows": rows,
        "warnings": [*notes, *_warnings(functional, what, table)],
    }
    x = np.ascontiguousarray(values.reshape(-1, *shape).transpose(0, 2, 3, 1).ravel()) if drawable else None
    outcome = _native.net_measured(document, None if not drawable else [image[1], image[2], image[0]], x,
                                   None if maps is None else np.ascontiguousarray(maps.ravel()), True)
    return NetAudit(outcome, tuple(shape))


def _shape(functional: Functional, here: Records) -> tuple[int, ...]:
    """The shape of a record, in the order that the module has it: one input as it is, several as one row."""
    products = functional.split(here.at([0]))[0]
    inputs = products[:-1] if functional.label_secret else products
    if len(inputs) == 1 and inputs[0].ndim > 1:
        return tuple(int(n) for n in inputs[0].shape[1:])
    return (sum(int(np.prod(v.shape[1:])) for v in inputs),)


def _image(shape: tuple[int, ...]) -> tuple[int, ...] | None:
    return shape if len(shape) == 3 and shape[0] in (1, 3) else None


def _outputs(functional: Functional, found: Records) -> int:
    with torch.no_grad():
        return int(scores(call(functional.module, found.at([0]).inputs))[0].numel())


def _loss_name(loss: Any) -> str:
    if loss is None:
        return "the module's own"
    return str(getattr(loss, "__name__", type(loss).__name__))


def _warnings(functional: Functional, what: Measure, table: _Columns) -> list[str]:
    out = []
    if functional.secret.embedded:
        out.append(f"Records are whole numbers: every number here is about {functional.secret.words}, not about the tokens "
                   "themselves. Values are those of the embedding vectors; who knows the embedding table knows more.")
    over = int((table.gradient_norm > what.clip.bound).sum()) if what.clip.kind == "hard" else 0
    if over and what.plis == "released":
        out.append(f"{over} of {len(table.loss)} gradients are longer than the hard clip C. What is released of them has the length "
                   "C whatever the record is, so their PLIS is 0: train with clip_kind='gelu', which leaves a little, or ask for "
                   "plis='raw', PLIS before the clip.")
    residual = table.whole("eta_residual")
    slow = 0 if residual is None else int((residual > 1e-3).sum())
    if slow:
        out.append(f"For {slow} records η had not settled to 1e-3: it may be slightly too small.")
    return out


class _Columns:
    """Measures of all chunks, by name."""

    def __init__(self, leaks: list[Leaks]) -> None:
        self._leaks = leaks
        self.loss, self.gradient_norm, self.released_norm = (
            np.concatenate([getattr(leak, name) for leak in leaks]) for name in ("loss", "gradient_norm", "released_norm"))
        self._kept: dict[str, Array | None] = {}

    def whole(self, name: str) -> Array | None:
        if name not in self._kept:
            parts = [getattr(leak, name) for leak in self._leaks]
            self._kept[name] = None if any(p is None for p in parts) else np.concatenate(parts)
        return self._kept[name]

    def at(self, name: str, i: int) -> float | None:
        values = self.whole(name)
        return None if values is None else float(values[i])

    def measure(self, i: int) -> dict[str, float | None] | None:
        value = self.at("trace", i)
        return None if value is None else {"value": value, "standard_error": self.at("trace_error", i)}

    def eta_of(self, i: int) -> tuple[float, float] | None:
        value, residual = self.at("eta", i), self.at("eta_residual", i)
        return None if value is None or residual is None else (value, residual)

    def mean(self, name: str, count: int) -> list[float]:
        """Mean sizes over records of the first values."""
        values = self.whole(name)
        return [] if values is None else np.abs(values[:, :count]).mean(axis=0).tolist()
