"""PyTorch modules: what their gradients give away about records.

Imported only where it is asked for (``import leakscope.torch``); torch is an optional extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ._checks import one_of
from ._native import DataError, LeakscopeError, OptionError
from ._net_results import NetAudit
from ._network import Network

_SUPPORTED = ("Linear, Conv2d, AvgPool2d, MaxPool2d, BatchNorm1d and BatchNorm2d (in eval mode), LayerNorm, Tanh, ReLU, "
              "GELU, Sigmoid, Flatten, Identity, Dropout (in eval mode), nested Sequential")
_LOSSES = {torch.nn.CrossEntropyLoss: "softmax-cross-entropy", torch.nn.BCEWithLogitsLoss: "binary-cross-entropy",
           torch.nn.MSELoss: "squared-error"}


def audit(
    module: Any,
    loss: Any,
    data: Any,
    y: Any = None,
    *,
    engine: str = "auto",
    trained: str | Sequence[str] | None = None,
    secret: str | Sequence[str] | None = None,
    index: str | int | None = None,
    chunk: int | None = None,
    vectorize: bool = True,
    **options: Any,
) -> NetAudit:
    """Measures what one gradient step of a module gives away about records: dFIL, η, JacSens, PLIS.

    A ``torch.nn.Sequential`` of layers that Leakscope knows is converted and runs on its kernels. Any other module runs
    where it lives, by ``torch.func``: ``jvp`` of per-record gradients, many records at once.

    The gradient of a record is that of ``loss(module(x[i:i+1]), y[i:i+1])`` by the trained parameters, with the factor
    that the loss has (``MSELoss()`` of k outputs is 2/k times Leakscope's ``squared-error``).

    Parameters
    ----------
    module : torch.nn.Module
        In the mode that is audited: batch norms and dropout need ``module.eval()``.
    loss : callable or str or None
        ``loss(output, y)``: a module of torch, a function, or the name of one of Leakscope's losses. ``None`` where the
        module computes its own from labels among its inputs, as Hugging Face models do.
    data : tensor, array, tuple, dict, Dataset or DataLoader
        Records. Several inputs as a tuple, or as a dict that the module takes as keywords. Images are channels first. A
        Dataset or a loader has pairs with the target last, or dicts with the target under ``labels`` or ``y``; a loader
        must not shuffle, unless ``index`` says where its batches have record numbers.
    y : tensor or array, optional
        Targets, where ``data`` has none.
    engine : str, default 'auto'
        ``"kernels"`` (Leakscope's, or an error that says why not), ``"torch"``, or what fits.
    trained : str or list of str, optional
        Parameters whose gradient is released: names with ``*`` and ``?`` (such as ``"*lora*"``), or ``"last"`` for the
        last layer. By default those with ``requires_grad``.
    secret : str or list of str, optional
        Inputs of a record that are secret, by keyword or position. By default all that are real numbers; where there are
        none, ``input_ids`` or the first: leakage is then over its embeddings, and the document says so.
    index : str or int, optional
        Part of a loader's batch that has record numbers, by key or position.
    chunk : int, optional
        Records at once. By default what fits into half of the free memory of a GPU, or 128 MiB on a CPU.
    vectorize : bool, default True
        Whether records run together (``vmap``). ``False`` runs one after another, which modules with data-dependent
        control flow need.
    **options
        Those of :meth:`leakscope.Network.audit`: ``clip`` (a norm), ``clip_kind``, ``sigma`` (noise multiplier), ``trace``,
        ``eta``, ``plis``, ``label``, ``records``, ``pictures``, ``seed``, ``out``, ``progress``; ``grid``, ``superpixels``,
        ``compare`` and ``score`` with the kernels alone.

    Returns
    -------
    NetAudit
        The document, the page, and the table of records; η and dFIL are per unit of a record's values.
    """
    from ._torch_model import bare

    one_of("engine", engine, ("auto", "kernels", "torch"))
    module = bare(module)
    general = any(v is not None for v in (trained, secret, index, chunk)) or not vectorize
    if engine == "kernels" and general:
        raise OptionError("trained, secret, index, chunk, vectorize: they belong to engine='torch': leave them out")
    if engine != "torch" and not general:
        converted = _for_kernels(module, loss, data, y, strict=engine == "kernels")
        if converted is not None:
            net, x, labels = converted
            found = net.audit(x, labels, **options)
            # maps in the layout that went in
            found._channels_first = _plain(data).ndim == 4
            return found
    return _general(module, loss, data, y, trained, secret, index, chunk, vectorize, options)


def attack(
    module: Any,
    loss: Any,
    data: Any,
    y: Any = None,
    *,
    nonmembers: tuple[Any, Any] | None = None,
    invert: int | Sequence[int] | None = None,
    clip: float | None = None,
    clip_kind: str | None = None,
    sigma: float | None = None,
    steps: int = 300,
    starts: int = 1,
    trained: str | Sequence[str] | None = None,
    secret: str | Sequence[str] | None = None,
    index: str | int | None = None,
    chunk: int | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
) -> Any:
    """Plays membership inference by the loss, and inversion of released gradients, on any module.

    Parameters
    ----------
    module, loss, data, y, trained, secret, index, chunk
        As :func:`audit` has them; ``data`` are the records that were trained on.
    nonmembers : tuple, optional
        Records and targets of the same population that were not trained on: plays membership inference. A threshold on
        the loss is chosen on one half of both and tried on the other.
    invert : int or list of int, optional
        How many of the first records, or which, to put together again from one released gradient each. The attacker knows the
        module, the target, and mean and variance of every value over the records.
    clip, clip_kind, sigma
        The release: gradients are clipped at the norm ``clip``, noise has the standard deviation ``sigma`` times it
        (``sigma`` without a clip). By default nothing is clipped, and ``sigma`` is 0.001.
    steps, starts : int
        Steps of the search, and how often it starts afresh.
    confidence : float, default 0.95
        Of every interval.
    seed : int, optional
        Of noise, starts and halves. By default drawn from the system.

    Returns
    -------
    TorchAttack
        ``document``, ``summary()``, and ``records`` with the mean squared error a value of every record that was inverted
        (in squared units of its values), beside that of guessing the mean.
    """
    from . import _torch_attack
    from ._checks import real
    from ._torch_model import bare

    if nonmembers is None and invert is None:
        raise OptionError("nonmembers, invert: name what to play: nonmembers=(x, y) for membership, invert=10 for ten records")
    if not 0 < real("confidence", confidence) < 1:
        raise OptionError(f"confidence={confidence!r}: expected between 0 and 1")
    return _torch_attack.attack(bare(module), _callable(loss), data, y, nonmembers=nonmembers, invert=invert, clip=clip,
                                clip_kind=clip_kind, sigma=sigma, steps=steps, starts=starts, trained=trained, secret=secret, index=index,
                                chunk=chunk, confidence=confidence, seed=seed)


def _for_kernels(module: Any, loss: Any, data: Any, y: Any, strict: bool) -> tuple[Network, Any, Any] | None:
    """The network with its records, where Leakscope's kernels can run it; ``None`` where torch has to."""
    try:
        if y is None:
            raise OptionError("y: the kernels take an array and y: give both, or engine='torch'")
        net, name, outputs = _converted(module, loss, data)
        net._factor = _factor(loss, outputs)
    except LeakscopeError:
        if strict:
            raise
        return None
    return net, _records(data), _labels(y, loss, name, outputs)


def _general(module: Any, loss: Any, data: Any, y: Any, trained: Any, secret: Any, index: Any, chunk: Any, vectorize: bool,
             options: dict[str, Any]) -> NetAudit:
    from . import _torch_audit

    known = {"clip": None, "clip_kind": None, "sigma": None, "trace": 10, "eta": False, "plis": False, "label": None,
             "records": None, "pictures": True, "seed": None, "out": None, "progress": None}
    for name in options:
        if name in ("grid", "superpixels", "compare", "score"):
            raise OptionError(f"{name}: it needs Leakscope's kernels, which cannot run this module: leave it out")
        if name not in known:
            raise OptionError(f"{name}: there is no such option; they are {', '.join(known)}")
    chosen = {**known, **options}
    out = chosen.pop("out")
    found = _torch_audit.audit(module, _callable(loss), data, y, trained=trained, secret=secret, index=index, chunk=chunk,
                               vectorize=vectorize, chosen=chosen.pop("records"), **chosen)
    return found._kept(out)


def _callable(loss: Any) -> Any:
    """A loss that torch can differentiate; Leakscope's names have their meaning here too."""
    if loss is None:
        return None
    if isinstance(loss, str):
        _loss(loss)
        nn = torch.nn.functional
        return {"softmax-cross-entropy": nn.cross_entropy,
                "binary-cross-entropy": lambda o, y: nn.binary_cross_entropy_with_logits(o, y.reshape(o.shape).to(o.dtype), reduction="sum"),
                "squared-error": lambda o, y: 0.5 * nn.mse_loss(o, y.reshape(o.shape), reduction="sum")}[loss]
    if isinstance(loss, type) and issubclass(loss, torch.nn.Module):
        loss = loss()
    if not callable(loss):
        raise OptionError(f"loss: {loss!r}: expected a loss of torch.nn, a function of output and target, or None where the "
                          "module computes its own")
    return loss


def convert(module: Any, loss: Any, x: Any, precision: str | None = None) -> Network:
    """The same network in Leakscope's terms; ``x`` shows the shape of a record.

    Its loss is one of Leakscope's, without a factor: ``MSELoss()``, and ``BCEWithLogitsLoss()`` of several outputs, are
    only taken by their names ``"squared-error"`` (half the sum of squares) and ``"binary-cross-entropy"`` (a sum).
    """
    net, name, outputs = _converted(module, loss, x, precision)
    factor = _factor(loss, outputs)
    if factor != 1:
        raise OptionError(f"{_said(loss)} is {factor:.4g} times {name}, the loss of a Network: give loss={name!r}, or use "
                          "leakscope.torch.audit, which measures with the factor")
    return net


def _records(x: Any) -> np.ndarray[Any, Any]:
    array = _plain(x)
    if array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    if array.ndim not in (2, 4):
        raise DataError(f"x: shape {array.shape}: expected (records, values) or (records, channels, height, width)")
    return array


def _plain(values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    array: np.ndarray[Any, Any] = np.asarray(values)
    return array


def _labels(y: Any, loss: Any, name: str, outputs: int) -> np.ndarray[Any, Any]:
    """Labels, where torch's loss of one record takes them as they are taken here."""
    labels = _plain(y)
    if name != "softmax-cross-entropy" and labels.shape[1:] != (outputs,) and (outputs > 1 or labels.ndim != 1):
        raise DataError(f"y: shape {labels.shape}: {_said(loss)} of {outputs} outputs needs a value for each, shape "
                        f"({len(labels) if labels.ndim else 1}, {outputs})")
    ignored = getattr(loss, "ignore_index", None)
    if ignored is not None and labels.ndim == 1 and (labels == ignored).any():
        first = int(np.flatnonzero(labels == ignored)[0])
        raise DataError(f"y: record {first} has the label {ignored}, which CrossEntropyLoss(ignore_index={ignored}) leaves "
                        "out: leave such records out of x and y")
    return labels


def _said(loss: Any) -> str:
    return loss if isinstance(loss, str) else loss.__name__ if isinstance(loss, type) else type(loss).__name__


def _loss(loss: Any) -> str:
    """Leakscope's loss of the same shape; a factor comes from :func:`_factor`."""
    if isinstance(loss, str):
        if loss not in _LOSSES.values():
            raise OptionError(f"loss: {loss!r}: expected one of {', '.join(_LOSSES.values())}")
        return loss
    for kind, name in _LOSSES.items():
        if type(loss) is kind or loss is kind:
            smoothed = bool(getattr(loss, "label_smoothing", False))
            if smoothed or any(getattr(loss, name, None) is not None for name in ("weight", "pos_weight")):
                raise OptionError(f"{kind.__name__}: weights and label smoothing have no counterpart here: leave them out")
            return name
    raise OptionError(f"loss: {loss!r}: expected CrossEntropyLoss, BCEWithLogitsLoss or MSELoss of torch.nn, or one of "
                      f"{', '.join(_LOSSES.values())}")


def _factor(loss: Any, outputs: int) -> float:
    """How many times Leakscope's loss torch's is, of one record: ours sums over outputs, and halves squares."""
    name = _loss(loss)
    if isinstance(loss, str) or name == "softmax-cross-entropy":
        return 1.0
    reduction = getattr(loss, "reduction", "mean")
    if reduction not in ("mean", "sum") and outputs > 1:
        raise OptionError(f"{_said(loss)}(reduction={reduction!r}): one number a record is needed, and {outputs} outputs "
                          "have as many: expected reduction='mean' or 'sum'")
    return (2.0 if name == "squared-error" else 1.0) / (outputs if reduction == "mean" else 1)


def _converted(module: Any, loss: Any, x: Any, precision: str | None = None) -> tuple[Network, str, int]:
    """The network, the name of its loss, and the number of its outputs."""
    if not isinstance(module, torch.nn.Sequential):
        raise OptionError(f"{type(module).__name__}: expected a torch.nn.Sequential of {_SUPPORTED}")
    name = _loss(loss)
    shape: tuple[int, ...] = tuple(_records(x).shape[1:])
    layers: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    state: dict[str, Any] = {"shape": shape, "flat": None}
    for at, layer in _leaves(module, ""):
        _add(at, layer, layers, arrays, state)
    _refuse_shared(module)
    if not any("outputs" in layer for layer in layers):
        raise OptionError("the module has no Linear and no Conv2d: there is no gradient to measure")
    flat = state["flat"]
    if len(state["shape"]) != 1 or (flat is not None and flat[2] > 1 and flat[0] * flat[1] > 1):
        # A flattened image has its values in another order here, so outputs would be other classes.
        raise OptionError(f"the module's output is an image of shape {_channels_first(flat or state['shape'])}: expected one that "
                          "ends in a vector: put a torch.nn.Flatten and a torch.nn.Linear at its end")
    if precision is None:
        doubles = any(p.dtype == torch.float64 for p in module.parameters())
        precision = "f64" if doubles else "f32"
    net = Network({"version": 1, "input": list(shape), "layers": layers, "loss": name}, seed=0, precision=precision)
    net.parameters = arrays
    return net, name, state["shape"][0]


def _leaves(module: Any, prefix: str) -> list[tuple[str, Any]]:
    """Layers in the order they run: ``_modules``, for ``named_children`` leaves out what comes a second time."""
    what = prefix.rstrip(".") or "the module"
    if type(module).forward is not torch.nn.Sequential.forward:
        raise OptionError(f"{what} ({type(module).__name__}): its forward is its own: expected a plain torch.nn.Sequential")
    _refuse_hooks(what, module)
    found = []
    for name, layer in module._modules.items():
        full = f"{prefix}{name}"
        found += _leaves(layer, full + ".") if isinstance(layer, torch.nn.Sequential) else [(full, layer)]
    return found


def _refuse_hooks(name: str, module: Any) -> None:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if any(getattr(module, kind, None) for kind in kinds):
        raise OptionError(f"{name} ({type(module).__name__}): it has hooks (weight_norm and spectral_norm are such), which may "
                          "change what it computes: remove them")


def _refuse_shared(module: Any) -> None:
    """A parameter that is used twice has one gradient, the sum of both uses; here it would count as two parameters."""
    seen: dict[int, str] = {}
    for name, layer in _leaves(module, ""):
        for kind, parameter in layer.named_parameters(recurse=False):
            if id(parameter) in seen:
                raise OptionError(f"{name}.{kind} is {seen[id(parameter)]} again: parameters that are used twice have no "
                                  "counterpart here: copy the layer")
            seen[id(parameter)] = f"{name}.{kind}"


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = tensor.detach().cpu().double().numpy()
    return found


def _pair(value: Any) -> list[int]:
    return [int(value), int(value)] if isinstance(value, int) else [int(v) for v in value]


def _add(name: str, layer: Any, layers: list[dict[str, Any]], arrays: dict[str, Any], state: dict[str, Any]) -> None:
    nn = torch.nn
    # Not isinstance: what derives from a layer may compute something else.
    kind = type(layer)
    at = f"layers.{len(layers)}"
    refuse = f"{name} ({kind.__name__}):"
    _refuse_hooks(name, layer)

    def needs(dimensions: int) -> None:
        if len(state["shape"]) != dimensions:
            what = "an image: give x as (records, channels, height, width)" if dimensions == 3 else \
                "a vector: put a torch.nn.Flatten before it"
            raise OptionError(f"{refuse} a record has shape {_channels_first(state['shape'])} there, and it needs {what}")

    def features(values: Any) -> np.ndarray[Any, Any]:
        return _channels_last(_array(values), state["flat"])

    def frozen() -> bool:
        wanted = {p.requires_grad for p in layer.parameters()}
        if len(wanted) > 1:
            raise OptionError(f"{refuse} some of its parameters are frozen and some not: freeze the layer or none of it")
        return wanted == {False}

    if kind is nn.Linear:
        needs(1)
        weight = features(layer.weight)
        state["flat"] = None
        layers.append({"kind": "dense", "outputs": layer.out_features, "bias": layer.bias is not None, "frozen": frozen()})
        arrays[f"{at}.weight"] = weight
        if layer.bias is not None:
            arrays[f"{at}.bias"] = _array(layer.bias)
        state["shape"] = (layer.out_features,)
    elif kind is nn.Conv2d:
        needs(3)
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
    elif kind in (nn.AvgPool2d, nn.MaxPool2d):
        needs(3)
        if layer.ceil_mode or (kind is nn.MaxPool2d and (_pair(layer.dilation) != [1, 1] or layer.return_indices)) or \
                getattr(layer, "divisor_override", None) or not getattr(layer, "count_include_pad", True):
            raise OptionError(f"{refuse} expected ceil_mode=False, dilation=1 and plain averages or maxima")
        layers.append({"kind": "average-pool" if kind is nn.AvgPool2d else "max-pool", "kernel": _pair(layer.kernel_size),
                       "stride": _pair(layer.stride), "padding": _pair(layer.padding)})
        _move(state, layer, state["shape"][2])
    elif kind in (nn.BatchNorm2d, nn.BatchNorm1d):
        needs(3 if kind is nn.BatchNorm2d else 1)
        if layer.training or layer.running_mean is None or not layer.affine:
            raise OptionError(f"{refuse} over a batch one record's gradient depends on the others: call module.eval(), with "
                              "running statistics and affine=True")
        layers.append({"kind": "batch-norm", "epsilon": layer.eps, "frozen": frozen()})
        arrays.update({f"{at}.gamma": features(layer.weight), f"{at}.beta": features(layer.bias),
                       f"{at}.mean": features(layer.running_mean), f"{at}.variance": features(layer.running_var)})
    elif kind is nn.LayerNorm:
        if len(layer.normalized_shape) != 1 or len(state["shape"]) != 1 or layer.weight is None or layer.bias is None:
            raise OptionError(f"{refuse} expected one over the values of a vector, with weight and bias")
        layers.append({"kind": "layer-norm", "epsilon": layer.eps, "frozen": frozen()})
        arrays.update({f"{at}.gamma": features(layer.weight), f"{at}.beta": features(layer.bias)})
    elif kind is nn.GELU:
        if layer.approximate != "none":
            raise OptionError(f"{refuse} approximate={layer.approximate!r}: expected the exact one")
        layers.append({"kind": "gelu"})
    elif kind in (nn.Tanh, nn.ReLU, nn.Sigmoid):
        layers.append({"kind": kind.__name__.lower()})
    elif kind is nn.Flatten:
        if layer.start_dim != 1 or layer.end_dim != -1:
            raise OptionError(f"{refuse} expected start_dim=1 and end_dim=-1")
        if len(state["shape"]) == 3:
            state["flat"] = state["shape"]
            state["shape"] = (int(np.prod(state["shape"])),)
        layers.append({"kind": "flatten"})
    elif kind is nn.Identity or (kind is nn.Dropout and not layer.training):
        return
    else:
        hint = "call module.eval()" if kind is nn.Dropout else f"expected {_SUPPORTED}"
        raise OptionError(f"{refuse} {hint}")


def _channels_first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[2], *shape[:2]) if len(shape) == 3 else shape


def _channels_last(array: np.ndarray[Any, Any], flat: tuple[int, ...] | None) -> np.ndarray[Any, Any]:
    """Values by feature (the last axis) of a flattened image: torch flattens channels first, Leakscope channels last."""
    if flat is None or array.shape[-1] != np.prod(flat):
        return array
    height, width, channels = flat
    return np.moveaxis(array.reshape(*array.shape[:-1], channels, height, width), -3, -1).reshape(array.shape)


def _move(state: dict[str, Any], layer: Any, channels: int) -> None:
    """The shape after a window has moved over an image."""
    height, width, _ = state["shape"]
    kernel, stride, padding = _pair(layer.kernel_size), _pair(layer.stride), _pair(layer.padding)
    size = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip((height, width), kernel, stride, padding)]
    state["shape"] = (*size, channels)
