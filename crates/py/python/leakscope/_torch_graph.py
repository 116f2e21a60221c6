"""Modules whose forward is their own, as graphs of known layers: what torch.fx sees of them, node by node.

Residual connections, gates and the functions of ``torch.nn.functional`` have counterparts here. Whatever else is in a forward
is refused, and the module runs by torch instead.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from ._native import OptionError
from ._torch_convert import SUPPORTED, Array, Place, converted, refuse_hooks, refuse_shared

_ADD = {operator.add, operator.iadd, torch.add}
_MULTIPLY = {operator.mul, operator.imul, torch.mul}
_SUM_METHODS = {"add": "add", "add_": "add", "mul": "multiply", "mul_": "multiply"}
_CHANGES = {operator.iadd, operator.imul, F.relu_, torch.relu_, F.elu_, F.leaky_relu_}

#: functions of one value, the layer that does the same, and its arguments in the function's order
_FUNCTIONS: dict[Any, tuple[Any, tuple[str, ...]]] = {
    F.relu: (torch.nn.ReLU, ("inplace",)), torch.relu: (torch.nn.ReLU, ()), F.relu_: (torch.nn.ReLU, ()), torch.relu_: (torch.nn.ReLU, ()),
    F.tanh: (torch.nn.Tanh, ()), torch.tanh: (torch.nn.Tanh, ()),
    F.sigmoid: (torch.nn.Sigmoid, ()), torch.sigmoid: (torch.nn.Sigmoid, ()),
    F.silu: (torch.nn.SiLU, ("inplace",)), F.gelu: (torch.nn.GELU, ("approximate",)),
    F.elu: (torch.nn.ELU, ("alpha", "inplace")), F.leaky_relu: (torch.nn.LeakyReLU, ("negative_slope", "inplace")),
    F.softplus: (torch.nn.Softplus, ("beta", "threshold")),
    F.avg_pool2d: (torch.nn.AvgPool2d, ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")),
    F.max_pool2d: (torch.nn.MaxPool2d, ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")),
    F.adaptive_avg_pool2d: (torch.nn.AdaptiveAvgPool2d, ("output_size",)),
    torch.flatten: (torch.nn.Flatten, ("start_dim", "end_dim")),
}
_METHODS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "relu": (torch.nn.ReLU, ()), "relu_": (torch.nn.ReLU, ()), "tanh": (torch.nn.Tanh, ()), "sigmoid": (torch.nn.Sigmoid, ()),
    "flatten": (torch.nn.Flatten, ("start_dim", "end_dim")),
}


@dataclass(frozen=True)
class _Value:
    """What a node returns: the layer that computes it, its shape, the memory it is in, and since when."""

    name: str
    place: Place
    memory: int
    born: int


class _Size:
    """Sizes of a batch, which forwards read to flatten records."""


class _Graph:
    def __init__(self, module: Any) -> None:
        self.module = module
        self.specs: list[dict[str, Any]] = []
        self.arrays: dict[str, Array] = {}
        self.values: dict[Any, _Value | _Size] = {}
        self.seen: dict[int, str] = {}

    def run(self, place: Place) -> Place:
        nodes = list(torch.fx.Tracer().trace(self.module).nodes)
        self.order = {node: at for at, node in enumerate(nodes)}
        for node in nodes:
            if node.op == "output":
                return self._end(node)
            result = self._node(node, place)
            if result is not None:
                self.values[node] = result
        raise _refused(self.module, "its forward", "returns nothing")

    def _node(self, node: Any, place: Place) -> _Value | _Size | None:
        if node.op == "placeholder":
            if any(isinstance(v, _Value) for v in self.values.values()):
                return None if not node.users else self._refuse(node, "is a second input")
            return _Value("input", place, self.order[node], self.order[node])
        if node.op == "call_module":
            layer = self.module.get_submodule(node.target)
            refuse_shared(node.target, layer, self.seen)
            return self._layer(node, str(node.target), layer, changes=bool(getattr(layer, "inplace", False)))
        if node.op == "call_function":
            return self._function(node)
        if node.op == "call_method":
            return self._method(node)
        return None if not node.users else self._refuse(node, "is a parameter or a tensor of its own")

    def _function(self, node: Any) -> _Value | _Size:
        if node.target in _ADD or node.target in _MULTIPLY:
            return self._join(node, "add" if node.target in _ADD else "multiply", node.target in _CHANGES)
        if node.target in _FUNCTIONS:
            kind, names = _FUNCTIONS[node.target]
            return self._called(node, kind, names, node.target in _CHANGES)
        if node.target is F.dropout:
            training = node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True)
            return self._value(node) if training is False else self._refuse(node, "leaves values out: call module.eval()")
        if node.target is torch.mean:
            return self._mean(node)
        if node.target is getattr and node.args[1] == "shape":
            return _Size()
        if node.target is operator.getitem and isinstance(self.values.get(node.args[0]), _Size):
            return _Size()
        return self._refuse(node, "has no counterpart here")

    def _method(self, node: Any) -> _Value | _Size:
        if node.target in _SUM_METHODS:
            return self._join(node, _SUM_METHODS[node.target], node.target.endswith("_"))
        if node.target in _METHODS:
            kind, names = _METHODS[node.target]
            return self._called(node, kind, names, node.target.endswith("_"))
        if node.target == "size":
            return _Size()
        if node.target == "mean":
            return self._mean(node)
        if node.target == "contiguous":
            return self._value(node)
        if node.target in ("view", "reshape"):
            return self._view(node)
        return self._refuse(node, "has no counterpart here")

    def _value(self, node: Any, at: int = 0) -> _Value:
        result = self.values.get(node.args[at]) if len(node.args) > at and isinstance(node.args[at], torch.fx.Node) else None
        if not isinstance(result, _Value):
            self._refuse(node, "takes something else than what a layer returns")
            raise AssertionError
        return result

    def _layer(self, node: Any, name: str, layer: Any, changes: bool) -> _Value:
        if len(node.args) != 1 or node.kwargs:
            self._refuse(node, "takes more than one input")
        source = self._value(node)
        result = converted(name, layer, source.place)
        if changes:
            self._refuse_late_reader(node, source)
        at = self.order[node]
        # what shares memory with its input is changed with it
        shares = changes or result.spec is None or result.spec["kind"] == "flatten"
        memory = source.memory if shares else at
        if result.spec is None:
            return _Value(source.name, result.place, memory, at)
        return self._push(node, result.spec, result.arrays, [source.name], result.place, memory)

    def _push(self, node: Any, spec: dict[str, Any], arrays: dict[str, Array], inputs: list[str], place: Place, memory: int) -> _Value:
        name = f"node{len(self.specs)}"
        self.arrays |= {f"layers.{len(self.specs)}.{kind}": values for kind, values in arrays.items()}
        self.specs.append({**spec, "name": name, "inputs": inputs})
        return _Value(name, place, memory, self.order[node])

    def _join(self, node: Any, kind: str, changes: bool) -> _Value:
        if len(node.args) != 2 or node.kwargs:
            self._refuse(node, "expected the sum or the product of two values")
        a, b = self._value(node), self._value(node, 1)
        if a.place != b.place:
            self._refuse(node, f"takes records of shape {a.place.channels_first} and {b.place.channels_first}: expected one shape")
        if changes:
            self._refuse_late_reader(node, a)
        return self._push(node, {"kind": kind}, {}, [a.name, b.name], a.place, a.memory if changes else self.order[node])

    def _called(self, node: Any, kind: Any, names: tuple[str, ...], changes: bool) -> _Value:
        """A function as the layer that does the same."""
        source = {**dict(zip(names, node.args[1:])), **{k: v for k, v in node.kwargs.items() if k != "input"}}
        if any(isinstance(v, torch.fx.Node) for v in source.values()) or len(node.args) > len(names) + 1:
            self._refuse(node, "has arguments that are computed")
        if kind is torch.nn.Flatten:
            source = {"start_dim": 0, **source}
        changes = changes or bool(source.pop("inplace", False))
        if kind is torch.nn.MaxPool2d and source.get("stride") is None:
            source.pop("stride", None)
        stand_in = self.module_node(node, kind(**source))
        return self._layer(stand_in, str(node.name), stand_in.layer, changes)

    def module_node(self, node: Any, layer: Any) -> Any:
        return _StandIn(node, layer, self.order)

    def _mean(self, node: Any) -> _Value:
        axes = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
        keep = node.kwargs.get("keepdim", node.args[2] if len(node.args) > 2 else False)
        source = self._value(node)
        over = axes if isinstance(axes, (tuple, list)) else ()
        if len(source.place.shape) != 3 or sorted(int(a) % 4 for a in over) != [2, 3]:
            self._refuse(node, "expected a mean over height and width")
        pooled = converted(node.name, torch.nn.AdaptiveAvgPool2d(1), source.place)
        at = self.order[node]
        value = self._push(node, pooled.spec or {}, {}, [source.name], pooled.place, at)
        if keep:
            return value
        flat = converted(node.name, torch.nn.Flatten(), pooled.place)
        return self._push(node, flat.spec or {}, {}, [value.name], flat.place, at)

    def _view(self, node: Any) -> _Value:
        shape = node.args[1:] if len(node.args) != 2 or not isinstance(node.args[1], (tuple, list)) else node.args[1]
        source = self._value(node)
        values = 1
        for n in source.place.shape:
            values *= n
        batch = isinstance(shape[0], torch.fx.Node) and isinstance(self.values.get(shape[0]), _Size) or shape[0] == -1
        if len(shape) != 2 or not batch or shape[1] not in (-1, values) or shape[0] == shape[1]:
            self._refuse(node, "expected records flattened into vectors: x.flatten(1)")
        stand_in = self.module_node(node, torch.nn.Flatten())
        return self._layer(stand_in, str(node.name), stand_in.layer, False)

    def _refuse_late_reader(self, node: Any, changed: _Value) -> None:
        """What is changed in place and read again later has another value there than the graph says."""
        at = self.order[node]
        for value_of, value in self.values.items():
            if isinstance(value, _Value) and value.memory == changed.memory and value.born < at:
                if any(self.order[reader] > at for reader in value_of.users):
                    self._refuse(node, "changes in place what is read again later: use inplace=False")

    def _end(self, node: Any) -> Place:
        last = self._value(node)
        if not self.specs or self.specs[-1]["name"] != last.name:
            # the end of a network is its last layer
            self._refuse(node, "is not what its last layer returns")
        return last.place

    def _refuse(self, node: Any, why: str) -> Any:
        called = getattr(node.target, "__name__", node.target)
        raise _refused(self.module, f"`{called}` in its forward", why)


class _StandIn:
    """A node that calls a layer instead of the function that does the same."""

    def __init__(self, node: Any, layer: Any, order: dict[Any, int]) -> None:
        self.layer, self.args, self.kwargs, self.target, self.users = layer, node.args[:1], {}, node.target, node.users
        if not self.args and "input" in node.kwargs:
            self.args = (node.kwargs["input"],)
        order[self] = order[node]


def _refused(module: Any, subject: str, why: str) -> OptionError:
    return OptionError(f"{type(module).__name__}: {subject} {why}: expected a torch.nn.Sequential, or sums, products and functions "
                       f"of {SUPPORTED}")


def graph(module: Any, place: Place) -> tuple[list[dict[str, Any]], dict[str, Array], Place]:
    """The layers of a module whose forward is its own, see :func:`leakscope._torch_convert.network`."""
    if not isinstance(module, torch.nn.Module):
        raise OptionError(f"{type(module).__name__}: expected a torch.nn.Module")
    for name, part in module.named_modules():
        refuse_hooks(name or "the module", part)
    result = _Graph(module)
    try:
        place = result.run(place)
    except OptionError:
        raise
    except Exception as e:  # whatever a forward does that cannot be followed
        raise _refused(module, "its forward", f"cannot be followed by torch.fx ({e})") from e
    return result.specs, result.arrays, place
