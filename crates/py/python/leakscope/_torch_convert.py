"""torch modules in the terms of Leakscope's networks: layer by layer, and chains of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ._native import DataError, OptionError

Array = np.ndarray[Any, Any]

SUPPORTED = ("Linear, Conv2d, AvgPool2d, MaxPool2d, AdaptiveAvgPool2d, BatchNorm1d and BatchNorm2d (in eval mode), LayerNorm, "
             "GroupNorm, RMSNorm, Tanh, ReLU, LeakyReLU, ELU, GELU, SiLU, Sigmoid, Softplus, Flatten, Identity, Dropout (in eval "
             "mode), nested Sequential")


@dataclass(frozen=True)
class Place:
    """What a record is between two layers: its shape, channels last, and the image it was before a Flatten."""

    shape: tuple[int, ...]
    flat: tuple[int, ...] | None = None

    @property
    def channels_first(self) -> tuple[int, ...]:
        return _channels_first(self.shape)


@dataclass(frozen=True)
class Converted:
    """A layer: its entry in a network's file (``None``: it does nothing), its arrays by name, and what comes out."""

    spec: dict[str, Any] | None
    arrays: dict[str, Array]
    place: Place


def records(x: Any) -> Array:
    """Records as a network takes them: channels last."""
    array = plain(x)
    if array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    if array.ndim not in (2, 4):
        raise DataError(f"x: shape {array.shape}: expected (records, values) or (records, channels, height, width)")
    return array


def plain(values: Any) -> Array:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    array: Array = np.asarray(values)
    return array


def network(module: Any, place: Place) -> tuple[list[dict[str, Any]], dict[str, Array], Place]:
    """The layers of a module, their arrays under the names of a network, and what comes out at its end."""
    from . import _torch_graph

    if not isinstance(module, torch.nn.Sequential):
        return _torch_graph.graph(module, place)
    try:
        return _chain(module, place)
    except OptionError:
        # a chain may hold modules that are graphs of known layers
        try:
            return _torch_graph.graph(module, place)
        except OptionError:
            pass
        raise


def check_end(place: Place) -> None:
    """A flattened image has its values in another order here, so outputs would be other classes."""
    flat = place.flat
    if len(place.shape) != 1 or (flat is not None and flat[2] > 1 and flat[0] * flat[1] > 1):
        raise OptionError(f"the module's output is an image of shape {_channels_first(flat or place.shape)}: expected one that "
                          "ends in a vector: put a torch.nn.Flatten and a torch.nn.Linear at its end")


def _chain(module: Any, place: Place) -> tuple[list[dict[str, Any]], dict[str, Array], Place]:
    specs: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    seen: dict[int, str] = {}
    for name, layer in _leaves(module, ""):
        refuse_shared(name, layer, seen)
        result = converted(name, layer, place)
        place = result.place
        if result.spec is not None:
            arrays |= {f"layers.{len(specs)}.{kind}": values for kind, values in result.arrays.items()}
            specs.append(result.spec)
    return specs, arrays, place


def _leaves(module: Any, prefix: str) -> list[tuple[str, Any]]:
    """Layers in the order they run: ``_modules``, for ``named_children`` leaves out what comes a second time."""
    subject = prefix.rstrip(".") or "the module"
    if type(module).forward is not torch.nn.Sequential.forward:
        raise OptionError(f"{subject} ({type(module).__name__}): its forward is its own: expected a plain torch.nn.Sequential")
    refuse_hooks(subject, module)
    result = []
    for name, layer in module._modules.items():
        full = f"{prefix}{name}"
        result += _leaves(layer, full + ".") if isinstance(layer, torch.nn.Sequential) else [(full, layer)]
    return result


def refuse_hooks(name: str, module: Any) -> None:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if any(getattr(module, kind, None) for kind in kinds):
        raise OptionError(f"{name} ({type(module).__name__}): it has hooks (weight_norm and spectral_norm are such), which may "
                          "change what it computes: remove them")


def refuse_shared(name: str, layer: Any, seen: dict[int, str]) -> None:
    """A parameter that is used twice has one gradient, the sum of both uses; here it would count as two parameters."""
    for kind, parameter in layer.named_parameters(recurse=False):
        if id(parameter) in seen:
            raise OptionError(f"{name}.{kind} is {seen[id(parameter)]} again: parameters that are used twice have no "
                              "counterpart here: copy the layer")
        seen[id(parameter)] = f"{name}.{kind}"


def converted(name: str, layer: Any, place: Place) -> Converted:
    """One layer of torch. Not by isinstance: what derives from a layer may compute something else."""
    refuse_hooks(name, layer)
    kind, nn = type(layer), torch.nn
    refuse = f"{name} ({kind.__name__}):"
    if kind in _ACTIVATIONS:
        return Converted(_activation(layer, refuse), {}, place)
    if kind is nn.Flatten:
        return _flatten(layer, refuse, place)
    if kind is nn.Identity or (kind in (nn.Dropout, nn.Dropout2d) and not layer.training):
        return Converted(None, {}, place)
    if kind in (nn.AvgPool2d, nn.MaxPool2d, nn.AdaptiveAvgPool2d):
        return _pool(layer, refuse, place)
    if kind in (nn.BatchNorm2d, nn.BatchNorm1d, nn.LayerNorm, nn.GroupNorm, getattr(nn, "RMSNorm", None)):
        return _norm(layer, refuse, place)
    if kind is nn.Linear:
        _needs(refuse, place, 1)
        spec = {"kind": "dense", "outputs": layer.out_features, "bias": layer.bias is not None, "frozen": _frozen(refuse, layer)}
        return Converted(spec, {"weight": _features(layer.weight, place), **_bias(layer)}, Place((layer.out_features,)))
    if kind is nn.Conv2d:
        return _conv(layer, refuse, place)
    hint = "call module.eval()" if kind in (nn.Dropout, nn.Dropout2d) else f"expected {SUPPORTED}"
    raise OptionError(f"{refuse} {hint}")


_ACTIVATIONS = {torch.nn.Tanh: "tanh", torch.nn.ReLU: "relu", torch.nn.Sigmoid: "sigmoid", torch.nn.SiLU: "silu",
                torch.nn.GELU: "gelu", torch.nn.LeakyReLU: "leaky-relu", torch.nn.ELU: "elu", torch.nn.Softplus: "softplus"}


def _activation(layer: Any, refuse: str) -> dict[str, Any]:
    kind = _ACTIVATIONS[type(layer)]
    if kind == "gelu":
        return {"kind": {"none": "gelu", "tanh": "gelu-tanh"}[layer.approximate]}
    if kind == "leaky-relu":
        return {"kind": kind, "slope": float(layer.negative_slope)}
    if kind == "elu":
        return {"kind": kind, "alpha": float(layer.alpha)}
    if kind == "softplus" and layer.beta != 1:
        raise OptionError(f"{refuse} beta={layer.beta}: expected 1")
    return {"kind": kind}


def _flatten(layer: Any, refuse: str, place: Place) -> Converted:
    if layer.start_dim != 1 or layer.end_dim != -1:
        raise OptionError(f"{refuse} expected start_dim=1 and end_dim=-1")
    if len(place.shape) == 3:
        place = Place((int(np.prod(place.shape)),), place.shape)
    return Converted({"kind": "flatten"}, {}, place)


def _conv(layer: Any, refuse: str, place: Place) -> Converted:
    _needs(refuse, place, 3)
    kernel, stride, dilation = _pair(layer.kernel_size), _pair(layer.stride), _pair(layer.dilation)
    if layer.padding_mode != "zeros":
        raise OptionError(f"{refuse} padding_mode={layer.padding_mode!r}: expected zeros")
    # "same" is for strides of 1: as many on either side, the odd one last
    padding: Any = {"same": "same", "valid": [0, 0]}[layer.padding] if isinstance(layer.padding, str) else _pair(layer.padding)
    spec = {"kind": "conv", "outputs": layer.out_channels, "kernel": kernel, "stride": stride, "padding": padding,
            "dilation": dilation, "groups": layer.groups, "bias": layer.bias is not None, "frozen": _frozen(refuse, layer)}
    if padding == "same":
        size = list(place.shape[:2])
    else:
        size = _windows(place, [d * (k - 1) + 1 for k, d in zip(kernel, dilation)], stride, padding)
    return Converted(spec, {"weight": _array(layer.weight).transpose(0, 2, 3, 1), **_bias(layer)},
                     Place((*size, layer.out_channels)))


def _pool(layer: Any, refuse: str, place: Place) -> Converted:
    _needs(refuse, place, 3)
    nn, channels = torch.nn, place.shape[2]
    if type(layer) is nn.AdaptiveAvgPool2d:
        wanted = layer.output_size if isinstance(layer.output_size, (tuple, list)) else (layer.output_size,) * 2
        size = [int(n if w is None else w) for n, w in zip(place.shape, wanted)]
        return Converted({"kind": "adaptive-average-pool", "outputs": size}, {}, Place((*size, channels)))
    largest = type(layer) is nn.MaxPool2d
    if layer.ceil_mode or (largest and (_pair(layer.dilation) != [1, 1] or layer.return_indices)) or \
            getattr(layer, "divisor_override", None) or not getattr(layer, "count_include_pad", True):
        raise OptionError(f"{refuse} expected ceil_mode=False, dilation=1 and plain averages or maxima")
    kernel, stride, padding = _pair(layer.kernel_size), _pair(layer.stride), _pair(layer.padding)
    spec = {"kind": "max-pool" if largest else "average-pool", "kernel": kernel, "stride": stride, "padding": padding}
    return Converted(spec, {}, Place((*_windows(place, kernel, stride, padding), channels)))


def _norm(layer: Any, refuse: str, place: Place) -> Converted:
    nn, kind = torch.nn, type(layer)
    if kind in (nn.BatchNorm2d, nn.BatchNorm1d):
        _needs(refuse, place, 3 if kind is nn.BatchNorm2d else 1)
        if layer.training or layer.running_mean is None or not layer.affine:
            raise OptionError(f"{refuse} over a batch one record's gradient depends on the others: call module.eval(), with "
                              "running statistics and affine=True")
        spec = {"kind": "batch-norm", "epsilon": layer.eps, "frozen": _frozen(refuse, layer)}
        return Converted(spec, {**_affine(layer, place), "mean": _features(layer.running_mean, place),
                                "variance": _features(layer.running_var, place)}, place)
    if kind is nn.GroupNorm:
        # of a flattened image a group is another one here, whose channels come last
        if layer.weight is None or place.flat is not None:
            raise OptionError(f"{refuse} expected one with affine=True, before a Flatten")
        spec = {"kind": "group-norm", "groups": layer.num_groups, "epsilon": layer.eps, "frozen": _frozen(refuse, layer)}
        return Converted(spec, _affine(layer, place), place)
    whole = len(layer.normalized_shape) == 1 and len(place.shape) == 1
    if kind is nn.LayerNorm:
        if not whole or layer.weight is None or layer.bias is None:
            raise OptionError(f"{refuse} expected one over the values of a vector, with weight and bias")
        return Converted({"kind": "layer-norm", "epsilon": layer.eps, "frozen": _frozen(refuse, layer)}, _affine(layer, place), place)
    if not whole or layer.weight is None:
        raise OptionError(f"{refuse} expected one over the values of a vector, with a weight")
    epsilon = torch.finfo(layer.weight.dtype).eps if layer.eps is None else layer.eps
    return Converted({"kind": "rms-norm", "epsilon": epsilon, "frozen": _frozen(refuse, layer)},
                     {"gamma": _features(layer.weight, place)}, place)


def _needs(refuse: str, place: Place, dimensions: int) -> None:
    if len(place.shape) != dimensions:
        subject = "an image: give x as (records, channels, height, width)" if dimensions == 3 else \
            "a vector: put a torch.nn.Flatten before it"
        raise OptionError(f"{refuse} a record has shape {place.channels_first} there, and it needs {subject}")


def _frozen(refuse: str, layer: Any) -> bool:
    wanted = {p.requires_grad for p in layer.parameters()}
    if len(wanted) > 1:
        raise OptionError(f"{refuse} some of its parameters are frozen and some not: freeze the layer or none of it")
    return wanted == {False}


def _bias(layer: Any) -> dict[str, Array]:
    return {} if layer.bias is None else {"bias": _array(layer.bias)}


def _affine(layer: Any, place: Place) -> dict[str, Array]:
    return {"gamma": _features(layer.weight, place), "beta": _features(layer.bias, place)}


def _array(tensor: Any) -> Array:
    result: Array = tensor.detach().cpu().double().numpy()
    return result


def _pair(value: Any) -> list[int]:
    return [int(value), int(value)] if isinstance(value, int) else [int(v) for v in value]


def _channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[2], *shape[:2]) if len(shape) == 3 else shape


def _features(values: Any, place: Place) -> Array:
    """Values by feature (the last axis) of a flattened image: torch flattens channels first, Leakscope channels last."""
    array = _array(values)
    if place.flat is None or array.shape[-1] != np.prod(place.flat):
        return array
    height, width, channels = place.flat
    return np.moveaxis(array.reshape(*array.shape[:-1], channels, height, width), -3, -1).reshape(array.shape)


def _windows(place: Place, span: list[int], stride: list[int], padding: list[int]) -> list[int]:
    """Positions of a window that moves over an image."""
    return [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(place.shape, span, stride, padding)]
