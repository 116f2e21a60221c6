"""Records for torch modules: tensors, datasets, loaders and dictionaries, as one batch with a name for every record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import data as loading

from ._native import DataError, OptionError

#: names that a dictionary's target goes by
_TARGETS = ("labels", "label", "target", "targets", "y")


@dataclass
class Records:
    """Records stacked: what the module takes, what the loss takes beside, and their numbers in the data."""

    #: positional inputs, or named ones
    inputs: tuple[Any, ...] | dict[str, Any]
    target: Any
    #: number of every record in the data
    numbers: list[int]
    #: where they came from, in words
    source: str

    def __len__(self) -> int:
        return len(self.numbers)

    def named(self) -> dict[str, Any]:
        """Inputs by name, positions as texts."""
        return dict(self.inputs) if isinstance(self.inputs, dict) else {str(i): v for i, v in enumerate(self.inputs)}

    def at(self, positions: list[int]) -> Records:
        """Some of them."""
        index = torch.as_tensor(positions, dtype=torch.long)

        def pick(value: Any) -> Any:
            return value[index.to(value.device)] if isinstance(value, torch.Tensor) else value

        inputs: Any = {k: pick(v) for k, v in self.inputs.items()} if isinstance(self.inputs, dict) else \
            tuple(pick(v) for v in self.inputs)
        return Records(inputs, pick(self.target), [self.numbers[i] for i in positions], self.source)


def records(data: Any, y: Any, index: str | int | None, device: torch.device, dtype: torch.dtype,
            takes_target: bool) -> Records:
    """Everything that stands for records, as :class:`Records` on the module's device.

    ``takes_target`` says whether the module itself takes a dictionary's target, as Hugging Face models do.
    """
    if isinstance(data, loading.DataLoader):
        _refuse(y)
        result = _loaded(data, index, takes_target)
    elif isinstance(data, loading.IterableDataset):
        raise OptionError("data: an IterableDataset has no record numbers: give a map-style Dataset, or tensors")
    elif isinstance(data, loading.Dataset) and not isinstance(data, torch.Tensor):
        _refuse(y)
        result = _loaded(loading.DataLoader(data, batch_size=256, shuffle=False), index, takes_target)
    else:
        result = _of_arrays(data, y, device, takes_target)
    return _placed(result, device, dtype)


def _refuse(y: Any) -> None:
    if y is not None:
        raise OptionError("y: the dataset has the targets already: leave y out")


def _of_arrays(data: Any, y: Any, device: torch.device, takes_target: bool) -> Records:
    if isinstance(data, Mapping):
        named = {str(k): _tensor(str(k), v, device) for k, v in data.items()}
        target, named = _split(named, y, takes_target)
        inputs: Any = named
    else:
        parts = tuple(data) if isinstance(data, (tuple, list)) and _several(data) else (data,)
        inputs, target = tuple(_tensor("data", v, device) for v in parts), y
    if target is not None:
        target = _tensor("y", target, device)
    lengths = {name: len(v) for name, v in _all(inputs, target).items()}
    if not lengths or min(lengths.values()) == 0:
        raise DataError("data: there are no records")
    if len(set(lengths.values())) > 1:
        messages = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise DataError(f"data and y: {messages}: they must have as many records")
    return Records(inputs, target, list(range(next(iter(lengths.values())))), "tensors")


def _several(data: Any) -> bool:
    """Whether a list is several inputs, and not the rows of one array."""
    return len(data) > 0 and all(isinstance(v, (torch.Tensor, np.ndarray)) for v in data)


def _all(inputs: Any, target: Any) -> dict[str, Any]:
    named = dict(inputs) if isinstance(inputs, dict) else {f"input {i}": v for i, v in enumerate(inputs)}
    return {**named, "y": target} if target is not None else named


def _tensor(name: str, values: Any, device: torch.device) -> torch.Tensor:
    if isinstance(values, torch.Tensor):
        if values.device != device:
            raise DataError(f"{name}: the records are on {values.device}, the module is on {device}: move one of them, for "
                            f"example {name}.to({str(device)!r})")
        result = values.detach()
    else:
        try:
            result = torch.as_tensor(np.asarray(values))
        except (TypeError, ValueError, RuntimeError) as e:
            raise DataError(f"{name}: {type(values).__name__}: expected a tensor, an array, a Dataset or a DataLoader of them "
                            f"({e})") from e
    if result.ndim == 0:
        raise DataError(f"{name}: one number: expected a row for every record")
    return result


def _split(named: dict[str, Any], y: Any, takes_target: bool) -> tuple[Any, dict[str, Any]]:
    """The target of a dictionary and what the module takes."""
    if takes_target or y is not None:
        return y, named
    for name in _TARGETS:
        if name in named:
            return named[name], {k: v for k, v in named.items() if k != name}
    raise OptionError(f"y: the loss takes a target, and none of {', '.join(named)} is called {', '.join(_TARGETS)}: give y, or "
                      "loss=None where the module computes its own loss")


def _shuffles(loader: Any) -> bool:
    plain = (loading.SequentialSampler,)
    batches = loader.batch_sampler
    if batches is None:
        return not isinstance(loader.sampler, plain)
    return not (type(batches) is loading.BatchSampler and isinstance(batches.sampler, plain))


def _loaded(loader: Any, index: str | int | None, takes_target: bool) -> Records:
    if isinstance(loader.dataset, loading.IterableDataset) and index is None:
        raise OptionError("data: a loader over an IterableDataset has no record numbers: give a map-style Dataset, or say which "
                          "part of a batch has the numbers (index=)")
    if _shuffles(loader) and index is None:
        raise OptionError("data: the loader shuffles (or draws) its records, so that nobody could tell whose numbers these "
                          "are: give the dataset itself, a loader with shuffle=False, or say which part of a batch has the "
                          "record numbers, for example index='index'")
    parts: list[Records] = []
    start = 0
    for batch in loader:
        parts.append(_batch(batch, index, takes_target, start))
        start += len(parts[-1])
    if not parts:
        raise DataError("data: the loader has no records")
    return _joined(parts)


def _batch(batch: Any, index: str | int | None, takes_target: bool, start: int) -> Records:
    numbers = None
    if isinstance(batch, Mapping):
        named = dict(batch)
        if index is not None:
            if index not in named:
                raise OptionError(f"index={index!r}: a batch has {', '.join(map(str, named))}")
            numbers = named.pop(index)
        target, inputs = _split(named, None, takes_target)
    else:
        items = list(batch) if isinstance(batch, (tuple, list)) else [batch]
        if index is not None:
            if not isinstance(index, int) or not -len(items) <= index < len(items):
                raise OptionError(f"index={index!r}: a batch has {len(items)} parts, counted from 0")
            numbers = items.pop(index)
        target = items.pop() if len(items) > 1 and not takes_target else None
        inputs = tuple(items)
    tensors = {k: v for k, v in _all(inputs, target).items() if isinstance(v, torch.Tensor)}
    if not tensors:
        raise DataError("data: a batch has no tensors: expected (inputs, targets), or a dictionary of tensors")
    count = len(next(iter(tensors.values())))
    result = list(range(start, start + count)) if numbers is None else [int(i) for i in torch.as_tensor(numbers).tolist()]
    if len(result) != count:
        raise DataError(f"index: {len(result)} record numbers for {count} records")
    return Records(inputs, target, result, "a DataLoader")


def _joined(parts: list[Records]) -> Records:
    def stack(name: str, values: list[Any]) -> Any:
        if not isinstance(values[0], torch.Tensor):
            return values[0]
        shapes = {tuple(v.shape[1:]) for v in values}
        if len(shapes) > 1:
            raise DataError(f"{name}: records of shapes {' and '.join(map(str, sorted(shapes)[:2]))}: expected one shape: pad "
                            "them to the same length")
        return torch.cat(values)

    first = parts[0]
    if isinstance(first.inputs, dict):
        inputs: Any = {k: stack(k, [p.inputs[k] for p in parts]) for k in first.inputs}
    else:
        inputs = tuple(stack(f"input {i}", [p.inputs[i] for p in parts]) for i in range(len(first.inputs)))
    target = None if first.target is None else stack("the target", [p.target for p in parts])
    numbers = [n for p in parts for n in p.numbers]
    if len(set(numbers)) != len(numbers):
        raise DataError("index: a record number comes twice: every record is measured once")
    return Records(inputs, target, numbers, first.source)


def _placed(result: Records, device: torch.device, dtype: torch.dtype) -> Records:
    def place(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.device.type == "meta":
            raise DataError("data: the records are on the meta device, where they have no values: load them on a device that has some")
        return value.to(device=device, dtype=dtype) if value.is_floating_point() else value.to(device)

    if isinstance(result.inputs, dict):
        inputs: Any = {k: place(v) for k, v in result.inputs.items()}
    else:
        inputs = tuple(place(v) for v in result.inputs)
    for name, value in _all(inputs, result.target).items():
        if isinstance(value, torch.Tensor) and value.is_floating_point() and not bool(torch.isfinite(value).all()):
            bad = ~torch.isfinite(value.reshape(len(value), -1)).all(dim=1)
            raise DataError(f"{name}: record {result.numbers[int(bad.nonzero()[0])]} has a value that is not finite: fill it in or "
                            "leave the record out")
    return Records(inputs, place(result.target), result.numbers, result.source)
