"""PyTorch modules: what their gradients give away about records.

Imported only where it is asked for (``import leakscope.torch``); torch is an optional extra.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._native import DataError, OptionError
from ._network import NetAudit, Network

_SUPPORTED = ("Linear, Conv2d, AvgPool2d, MaxPool2d, BatchNorm2d (in eval mode), LayerNorm, Tanh, ReLU, GELU, Sigmoid, "
              "Flatten, Identity, Dropout (in eval mode), nested Sequential")


def audit(module: Any, loss: Any, x: Any, y: Any, **options: Any) -> NetAudit:
    """Converts a ``torch.nn.Sequential`` and measures what one gradient step of it gives away about records.

    ``loss`` is ``torch.nn.CrossEntropyLoss()``, ``BCEWithLogitsLoss()``, ``MSELoss()`` or the name of one of
    Leakscope's losses. Images are channels first, as torch has them; options are those of
    :meth:`leakscope.Network.audit`.
    """
    return _converted(module, loss, x).audit(_records(x), _labels(y), **options)


def convert(module: Any, loss: Any, x: Any, precision: str | None = None) -> Network:
    """The same network in Leakscope's terms; ``x`` shows the shape of a record."""
    return _converted(module, loss, x, precision)


def _records(x: Any) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
    if array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    if array.ndim not in (2, 4):
        raise DataError(f"x: shape {array.shape}: expected (records, values) or (records, channels, height, width)")
    return array


def _labels(y: Any) -> np.ndarray[Any, Any]:
    return y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else np.asarray(y)


def _loss(loss: Any) -> str:
    names = {torch.nn.CrossEntropyLoss: "softmax-cross-entropy", torch.nn.BCEWithLogitsLoss: "binary-cross-entropy",
             torch.nn.MSELoss: "squared-error"}
    if isinstance(loss, str):
        if loss not in names.values():
            raise OptionError(f"loss: {loss!r}: expected one of {', '.join(names.values())}")
        return loss
    for kind, name in names.items():
        if type(loss) is kind or loss is kind:
            smoothed = bool(getattr(loss, "label_smoothing", False))
            if smoothed or any(getattr(loss, name, None) is not None for name in ("weight", "pos_weight")):
                raise OptionError(f"{kind.__name__}: weights and label smoothing have no counterpart here: leave them out")
            return name
    raise OptionError(f"loss: {loss!r}: expected CrossEntropyLoss, BCEWithLogitsLoss or MSELoss of torch.nn (of one record: "
                      "what a batch divides by is no part of a record's gradient; MSELoss counts as half the squared error)")


def _converted(module: Any, loss: Any, x: Any, precision: str | None = None) -> Network:
    if not isinstance(module, torch.nn.Sequential):
        raise OptionError(f"{type(module).__name__}: expected a torch.nn.Sequential of {_SUPPORTED}")
    records = _records(x)
    shape: tuple[int, ...] = tuple(records.shape[1:])
    layers: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    state = {"shape": shape, "flat": None}
    for name, layer in _leaves(module, ""):
        _add(name, layer, layers, arrays, state)
    if precision is None:
        doubles = any(p.dtype == torch.float64 for p in module.parameters())
        precision = "f64" if doubles else "f32"
    spec = {"version": 1, "input": list(shape), "layers": layers, "loss": _loss(loss)}
    net = Network(spec, seed=0, precision=precision)
    net.parameters = arrays
    return net


def _leaves(module: Any, prefix: str) -> list[tuple[str, Any]]:
    found = []
    for name, layer in module.named_children():
        full = f"{prefix}{name}"
        found += _leaves(layer, full + ".") if isinstance(layer, torch.nn.Sequential) else [(full, layer)]
    return found


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = tensor.detach().cpu().double().numpy()
    return found


def _pair(value: Any) -> list[int]:
    return [int(value), int(value)] if isinstance(value, int) else [int(v) for v in value]


def _add(name: str, layer: Any, layers: list[dict[str, Any]], arrays: dict[str, Any], state: dict[str, Any]) -> None:
    nn = torch.nn
    at = f"layers.{len(layers)}"
    refuse = f"{name} ({type(layer).__name__}):"

    def frozen() -> bool:
        wanted = {p.requires_grad for p in layer.parameters()}
        if len(wanted) > 1:
            raise OptionError(f"{refuse} some of its parameters are frozen and some not: freeze the layer or none of it")
        return wanted == {False}

    if isinstance(layer, nn.Linear):
        weight = _array(layer.weight)
        if state["flat"] is not None:
            # torch flattens channels first, Leakscope channels last.
            h, w, c = state["flat"]
            if weight.shape[1] == h * w * c:
                weight = weight.reshape(-1, c, h, w).transpose(0, 2, 3, 1).reshape(weight.shape[0], -1)
            state["flat"] = None
        layers.append({"kind": "dense", "outputs": layer.out_features, "bias": layer.bias is not None, "frozen": frozen()})
        arrays[f"{at}.weight"] = weight
        if layer.bias is not None:
            arrays[f"{at}.bias"] = _array(layer.bias)
        state["shape"] = (layer.out_features,)
    elif isinstance(layer, nn.Conv2d):
        if layer.groups != 1 or _pair(layer.dilation) != [1, 1] or layer.padding_mode != "zeros" or \
                isinstance(layer.padding, str):
            raise OptionError(f"{refuse} expected groups=1, dilation=1 and zeros as padding, given as numbers")
        layers.append({"kind": "conv", "outputs": layer.out_channels, "kernel": _pair(layer.kernel_size),
                       "stride": _pair(layer.stride), "padding": _pair(layer.padding),
                       "bias": layer.bias is not None, "frozen": frozen()})
        arrays[f"{at}.weight"] = _array(layer.weight).transpose(0, 2, 3, 1)
        if layer.bias is not None:
            arrays[f"{at}.bias"] = _array(layer.bias)
        _move(state, layer, layer.out_channels)
    elif isinstance(layer, (nn.AvgPool2d, nn.MaxPool2d)):
        if layer.ceil_mode or (isinstance(layer, nn.MaxPool2d) and _pair(layer.dilation) != [1, 1]) or \
                getattr(layer, "divisor_override", None) or not getattr(layer, "count_include_pad", True):
            raise OptionError(f"{refuse} expected ceil_mode=False, dilation=1 and plain averages")
        kind = "average-pool" if isinstance(layer, nn.AvgPool2d) else "max-pool"
        layers.append({"kind": kind, "kernel": _pair(layer.kernel_size), "stride": _pair(layer.stride),
                       "padding": _pair(layer.padding)})
        _move(state, layer, state["shape"][2])
    elif isinstance(layer, (nn.BatchNorm2d, nn.BatchNorm1d)):
        if layer.training or layer.running_mean is None or not layer.affine:
            raise OptionError(f"{refuse} over a batch one record's gradient depends on the others: call module.eval(), with "
                              "running statistics and affine=True")
        layers.append({"kind": "batch-norm", "epsilon": layer.eps, "frozen": frozen()})
        arrays.update({f"{at}.gamma": _array(layer.weight), f"{at}.beta": _array(layer.bias),
                       f"{at}.mean": _array(layer.running_mean), f"{at}.variance": _array(layer.running_var)})
    elif isinstance(layer, nn.LayerNorm):
        if len(layer.normalized_shape) != 1 or len(state["shape"]) != 1 or layer.weight is None or layer.bias is None:
            raise OptionError(f"{refuse} expected one over the values of a vector, with weight and bias")
        layers.append({"kind": "layer-norm", "epsilon": layer.eps, "frozen": frozen()})
        arrays.update({f"{at}.gamma": _array(layer.weight), f"{at}.beta": _array(layer.bias)})
    elif isinstance(layer, nn.GELU):
        if layer.approximate != "none":
            raise OptionError(f"{refuse} approximate={layer.approximate!r}: expected the exact one")
        layers.append({"kind": "gelu"})
    elif isinstance(layer, (nn.Tanh, nn.ReLU, nn.Sigmoid)):
        layers.append({"kind": type(layer).__name__.lower()})
    elif isinstance(layer, nn.Flatten):
        if layer.start_dim != 1 or layer.end_dim != -1:
            raise OptionError(f"{refuse} expected start_dim=1 and end_dim=-1")
        if len(state["shape"]) == 3:
            state["flat"] = state["shape"]
            state["shape"] = (int(np.prod(state["shape"])),)
        layers.append({"kind": "flatten"})
    elif isinstance(layer, nn.Identity) or (isinstance(layer, nn.Dropout) and not layer.training):
        return
    else:
        hint = "call module.eval()" if isinstance(layer, nn.Dropout) else f"expected {_SUPPORTED}"
        raise OptionError(f"{refuse} {hint}")


def _move(state: dict[str, Any], layer: Any, channels: int) -> None:
    """The shape after a window has moved over an image."""
    height, width, _ = state["shape"]
    kernel, stride, padding = _pair(layer.kernel_size), _pair(layer.stride), _pair(layer.padding)
    size = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip((height, width), kernel, stride, padding)]
    state["shape"] = (*size, channels)
