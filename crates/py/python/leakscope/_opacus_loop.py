"""Watching an Opacus loop without touching it: which records a step drew, and the module without Opacus' hooks."""

from __future__ import annotations

import contextlib
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

_KINDS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def drawing(sampler: Any, queue: deque[list[int]]) -> Callable[[], None]:
    """Puts every batch of record numbers that a sampler draws into a queue; returns what undoes it.

    The sampler's class is replaced by one that derives from it, so that whoever asks for its kind gets the same answer and
    its generator is used as before.
    """
    kind = type(sampler)

    def iterate(self: Any) -> Iterator[list[int]]:
        queue.clear()  # what an epoch left undone is nobody's step
        for batch in kind.__iter__(self):
            queue.append(list(batch))
            yield batch

    sampler.__class__ = type(kind.__name__, (kind,), {"__iter__": iterate, "__module__": kind.__module__})

    def restore() -> None:
        sampler.__class__ = kind

    return restore


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Generators of Python and numpy as they were: a dataset may draw from them; torch's are kept elsewhere."""
    python, arrays = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


@contextlib.contextmanager
def without_grad_samples(module: torch.nn.Module) -> Iterator[bool]:
    """The module without Opacus' hooks and with dropout off; yields whether there was any dropout."""
    kept: list[tuple[Any, str, Any]] = []
    dropped = [m for m in module.modules() if isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.training and m.p > 0]
    try:
        for layer in module.modules():
            for name in _KINDS:
                hooks = getattr(layer, name, None)
                if hooks and any(map(_of_opacus, hooks.values())):
                    kept.append((layer, name, hooks))
                    rest = OrderedDict((k, h) for k, h in hooks.items() if not _of_opacus(h))
                    setattr(layer, name, rest)
        for layer in dropped:
            layer.training = False
        yield bool(dropped)
    finally:
        for layer in dropped:
            layer.training = True
        for layer, name, hooks in kept:
            setattr(layer, name, hooks)


def _of_opacus(hook: Any) -> bool:
    hook = getattr(hook, "func", hook)  # functools.partial
    owner = getattr(hook, "__self__", None)
    names = (getattr(hook, "__module__", None), type(owner).__module__ if owner is not None else None)
    return any(name is not None and name.split(".")[0] == "opacus" for name in names)
