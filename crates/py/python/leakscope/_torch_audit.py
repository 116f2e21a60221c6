"""The audit of any torch module: records in, the document of a network's audit out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import _progress
from ._checks import one_of, positive, seeded, whole
from ._leak import Array, Leaks, Measure, clip_of, measured
from ._leak_document import Subject, assembled
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
    request = Measure(clip_of(clip, clip_kind), 1.0 if sigma is None else positive("sigma", sigma), _trace(trace), bool(eta),
                   _of(plis), seeded(seed))
    label_secret = one_of("label", label or "public", ("public", "secret")) == "secret"
    refuse_modes(module)
    device, dtype = place_of(module)
    result = records(data, y, index, device, dtype, takes_target=loss is None)
    result = _ordered(result)
    order = _chosen(chosen, len(result))
    with differentiable(module):
        try:
            functional, notes = _functional(module, loss, result, trained, secret, label_secret)
            if label_secret:
                result = _with_label_values(result, functional)
            size = whole("chunk", chunk, 1) if chunk is not None else _room(functional, result)
            with _progress.shown(progress) as told:
                leaks, rights = _measured(functional, result, order, request, vectorize, size, told)
        except LeakscopeError:
            raise
        except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError) as e:
            raise explained(e) from e
    return _document(functional, result, order, request, leaks, rights, notes, sigma is not None, pictures)


def _functional(module: torch.nn.Module, loss: Any, result: Records, trained: Any, secret: Any,
                label_secret: bool) -> tuple[Functional, list[str]]:
    sample = sampled(result)
    functional = Functional(module, loss, trained_names(module, trained), secret_of(module, sample, secret), label_secret)
    return functional, check_alone(functional, sample)


def sampled(result: Records) -> Records:
    """A few records from all over, of different labels as far as there are: what weighs by classes shows only then."""
    step = max(1, len(result) // _SAMPLE)
    spread = list(range(0, len(result), step))[:_SAMPLE]
    if isinstance(result.target, torch.Tensor) and result.target.ndim == 1:
        labels = result.target.tolist()
        first = {label: at for at, label in reversed(list(enumerate(labels)))}
        spread = [*sorted(first.values())[:_SAMPLE], *spread]
    return result.at(list(dict.fromkeys(spread))[:_SAMPLE])


def _trace(trace: Any) -> int | str:
    if isinstance(trace, str):
        return one_of("trace", trace, ("exact", "elements", "skip"))
    return whole("trace", trace, 2)


def _of(plis: Any) -> str | None:
    signal = _signal(plis)
    return None if signal is None else one_of("plis", signal, ("released", "raw"))


def _ordered(result: Records) -> Records:
    """By record number, whatever order a loader had."""
    order = sorted(range(len(result)), key=lambda i: result.numbers[i])
    return result if order == list(range(len(result))) else result.at(order)


def _with_label_values(result: Records, functional: Functional) -> Records:
    """Labels as real numbers: a target as it is, a class as its one-hot entries."""
    target = result.target
    if not isinstance(target, torch.Tensor):
        raise OptionError("label='secret': the module takes the labels itself: give a loss of the output and y")
    if target.is_floating_point():
        return result
    loss = functional.loss
    entropy = isinstance(loss, torch.nn.CrossEntropyLoss) or loss is torch.nn.functional.cross_entropy
    if not entropy or target.ndim != 1:
        raise OptionError("label='secret': labels are whole numbers, and only CrossEntropyLoss takes a class as the values of its "
                          "one-hot vector: give y as real numbers that the loss takes")
    with torch.no_grad():
        classes = scores(call(functional.module, result.at([0]).inputs)).shape[-1]
    first = next(iter(functional.trained.values()))
    hot = torch.nn.functional.one_hot(target, classes).to(first.dtype)
    return Records(result.inputs, hot, result.numbers, result.source)


def _room(functional: Functional, result: Records) -> int:
    """Records at once (or tangents of fewer): what their gradients and activations take, in a share of the memory that is free."""
    seen = [0]

    def add(_layer: Any, _args: Any, output: Any) -> None:
        parts = output if isinstance(output, (tuple, list)) else (output,)
        seen[0] += sum(p.numel() for p in parts if isinstance(p, torch.Tensor))

    handles = [m.register_forward_hook(add) for m in functional.module.modules() if not list(m.children())]
    try:
        with torch.no_grad():
            call(functional.module, result.at([0]).inputs)
    finally:
        for handle in handles:
            handle.remove()
    first = next(iter(functional.trained.values()))
    # g, its tangent, the weights of the adjoint, and as much again while they are made; activations of four passes
    each = first.element_size() * (6 * functional.count + 12 * seen[0]) + 1
    if first.device.type == "cuda":
        free = torch.cuda.mem_get_info(first.device)[0] // 2
    else:
        # more than a cache or two holds is no faster
        free = min(_free_memory() // 4, 2**27)
    return max(1, min(int(free // each), 1024))


def _free_memory() -> int:
    """Bytes that can be had without pushing others out; caches of the system count as free."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError, IndexError, StopIteration):
        return 2**32


def _measured(functional: Functional, result: Records, order: list[int], request: Measure, vectorize: bool, size: int,
              told: Callable[[str, int, int], Any] | None) -> tuple[list[Leaks], list[Any]]:
    leaks, rights, at = [], [], 0
    while at < len(order):
        some = order[at : at + size]
        here = result.at(some)
        try:
            products = TorchProducts(functional, here, vectorize)
            group = max(1, min(size // len(some), 64)) if vectorize else 1
            leaks.append(measured(products, here.numbers, products.dimension, request, group))
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


def _values(functional: Functional, result: Records) -> Array:
    """The secret values of records, a row each: inputs, or embeddings."""
    named = result.named()
    with torch.no_grad():
        if functional.secret.embedded:
            parts = [layer(named[name]) for layer, name, _ in functional.secret.embedded]
        else:
            parts = [named[name] for name in functional.secret.names]
        flat = [p.reshape(len(result), -1).double().cpu().numpy() for p in parts]
    return np.concatenate(flat, axis=1)


def _document(functional: Functional, result: Records, order: list[int], request: Measure, leaks: list[Leaks], rights: list[Any],
              notes: list[str], chosen: bool, pictures: bool) -> NetAudit:
    here = result.at(order)
    values = _values(functional, here)
    right = None if any(r is None for r in rights) else [v for r in rights for v in r]
    labels = _words(here.target)
    if labels is None and isinstance(here.target, torch.Tensor) and right is not None:
        labels = [str(int(v)) for v in here.target.argmax(dim=-1).tolist()]
    if functional.secret.embedded:
        notes = [*notes, f"Records are whole numbers: every number here is about {functional.secret.words}, not about the tokens "
                 "themselves. Values are those of the embedding vectors; who knows the embedding table knows more."]
    subject = Subject(
        name=type(functional.module).__name__,
        parameters=sum(p.numel() for p in functional.module.parameters()),
        trained=functional.count,
        outputs=_outputs(functional, result),
        loss=_loss_name(functional.loss),
        source=here.source,
        count=len(result),
        numbers=here.numbers,
        labels=labels,
        right=right,
        shape=_shape(functional, here),
        values=values,
        dimension=values.shape[1] + (int(np.prod(result.target.shape[1:])) if functional.label_secret else 0),
        label_secret=functional.label_secret,
        channels_first=True,
        notes=notes,
    )
    return assembled(subject, request, leaks, chosen, pictures)


def _shape(functional: Functional, here: Records) -> tuple[int, ...]:
    """The shape of a record, in the order that the module has it: one input as it is, several as one row."""
    products = functional.split(here.at([0]))[0]
    inputs = products[:-1] if functional.label_secret else products
    if len(inputs) == 1 and inputs[0].ndim > 1:
        return tuple(int(n) for n in inputs[0].shape[1:])
    return (sum(int(np.prod(v.shape[1:])) for v in inputs),)


def _outputs(functional: Functional, result: Records) -> int:
    with torch.no_grad():
        return int(scores(call(functional.module, result.at([0]).inputs))[0].numel())


def _loss_name(loss: Any) -> str:
    if loss is None:
        return "the module's own"
    return str(getattr(loss, "__name__", type(loss).__name__))
