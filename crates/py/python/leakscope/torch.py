"""PyTorch modules: what their gradients give away about records.

Imported only where it is asked for (``import leakscope.torch``); torch is an optional extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ._checks import one_of
from ._docs import documented
from ._native import DataError, LeakscopeError, OptionError
from ._net_results import NetAudit
from ._network import Network
from ._torch_convert import Place, check_end, network, plain, records

#: records whose losses are compared
_LOOKED_AT = 4
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

    A module of layers that Leakscope knows, in a chain or with residual connections and gates, is converted and runs on its
    kernels. Any other module runs where it lives, by ``torch.func``: ``jvp`` of per-record gradients, many records at once.

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
            result = net.audit(x, labels, **options)
            # maps in the layout that went in
            result._channels_first = plain(data).ndim == 4
            return result
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
    module : torch.nn.Module
        As :func:`audit` has it.
    loss : callable or str or None
        As :func:`audit` has it.
    data : tensor, array, tuple, dict, Dataset or DataLoader
        The records that were trained on, as :func:`audit` has them.
    y : tensor or array, optional
        Their targets, where ``data`` has none.
    nonmembers : tuple, optional
        Records and targets of the same population that were not trained on: plays membership inference. A threshold on
        the loss is chosen on one half of both and tried on the other.
    invert : int or list of int, optional
        How many of the first records, or which, to put together again from one released gradient each. The attacker knows the
        module, the target, and mean and variance of every value over the records.
    clip : float, optional
        The norm that gradients are clipped at, above 0. By default nothing is clipped.
    clip_kind : str, optional
        ``"hard"``, ``"gelu"`` or ``"none"``, as :meth:`leakscope.Network.audit` has it.
    sigma : float, default 0.001
        Standard deviation of the noise over ``clip``; without a clip the standard deviation itself.
    steps : int, default 300
        Steps of the search.
    starts : int, default 1
        How often it starts afresh.
    trained : str or list of str, optional
        Parameters whose gradient is released, as :func:`audit` has them.
    secret : str or list of str, optional
        Inputs of a record that are secret, as :func:`audit` has them.
    index : str or int, optional
        Part of a loader's batch that has record numbers, by key or position.
    chunk : int, optional
        Records at once.
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
    x, labels = records(data), _labels(y, loss, name, outputs)
    if not isinstance(module, torch.nn.Sequential) and not _same(net, module, loss, (data, y), (x, labels)):
        if strict:
            raise OptionError(f"{type(module).__name__}: what torch.fx sees of it computes something else: use engine='torch'")
        return None
    return net, x, labels


def _same(net: Network, module: Any, loss: Any, torchs: tuple[Any, Any], ours: tuple[Any, Any]) -> bool:
    """Whether the first records have the losses that torch gives them: a last look at a graph that was followed."""
    function = _callable(loss)
    first = next(module.parameters())
    for i in range(min(_LOOKED_AT, len(ours[0]))):
        x, y = (torch.as_tensor(v[i : i + 1], device=first.device) for v in torchs)
        with torch.no_grad():
            expected = float(function(module(x.to(first.dtype)), y)) / net._factor
        result = net.evaluate(ours[0][i : i + 1], ours[1][i : i + 1])["loss"]
        if not abs(result - expected) <= (1e-9 if first.dtype == torch.float64 else 1e-3) * (1 + abs(expected)):
            return False
    return True


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
    result = _torch_audit.audit(module, _callable(loss), data, y, trained=trained, secret=secret, index=index, chunk=chunk,
                               vectorize=vectorize, chosen=chosen.pop("records"), **chosen)
    return result._kept(out)


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
        raise OptionError(f"loss={loss!r}: expected a loss of torch.nn, a function of output and target, or None where the "
                          "module computes its own")
    return loss


@documented(module="A module of layers that Leakscope knows, a ``torch.nn.Module``.", loss="A module of torch, or the name of one of Leakscope's "
            "losses.", x="Records, a tensor or an array: the shape of one is what counts.")
def convert(module: Any, loss: Any, x: Any, precision: str | None = None) -> Network:
    """The same network in Leakscope's terms.

    Its loss is one of Leakscope's, without a factor: ``MSELoss()``, and ``BCEWithLogitsLoss()`` of several outputs, are
    only taken by their names ``"squared-error"`` (half the sum of squares) and ``"binary-cross-entropy"`` (a sum).
    """
    net, name, outputs = _converted(module, loss, x, precision)
    factor = _factor(loss, outputs)
    if factor != 1:
        raise OptionError(f"{_spelling(loss)} is {factor:.4g} times {name}, the loss of a Network: give loss={name!r}, or use "
                          "leakscope.torch.audit, which measures with the factor")
    return net




def _labels(y: Any, loss: Any, name: str, outputs: int) -> np.ndarray[Any, Any]:
    """Labels, where torch's loss of one record takes them as they are taken here."""
    labels = plain(y)
    if name != "softmax-cross-entropy" and labels.shape[1:] != (outputs,) and (outputs > 1 or labels.ndim != 1):
        raise DataError(f"y: shape {labels.shape}: {_spelling(loss)} of {outputs} outputs needs a value for each, shape "
                        f"({len(labels) if labels.ndim else 1}, {outputs})")
    ignored = getattr(loss, "ignore_index", None)
    if ignored is not None and labels.ndim == 1 and (labels == ignored).any():
        first = int(np.flatnonzero(labels == ignored)[0])
        raise DataError(f"y: record {first} has the label {ignored}, which CrossEntropyLoss(ignore_index={ignored}) leaves "
                        "out: leave such records out of x and y")
    return labels


def _spelling(loss: Any) -> str:
    return loss if isinstance(loss, str) else loss.__name__ if isinstance(loss, type) else type(loss).__name__


def _loss(loss: Any) -> str:
    """Leakscope's loss of the same shape; a factor comes from :func:`_factor`."""
    if isinstance(loss, str):
        if loss not in _LOSSES.values():
            raise OptionError(f"loss={loss!r}: expected one of {', '.join(_LOSSES.values())}")
        return loss
    for kind, name in _LOSSES.items():
        if type(loss) is kind or loss is kind:
            smoothed = bool(getattr(loss, "label_smoothing", False))
            if smoothed or any(getattr(loss, name, None) is not None for name in ("weight", "pos_weight")):
                raise OptionError(f"{kind.__name__}: weights and label smoothing have no counterpart here: leave them out")
            return name
    raise OptionError(f"loss={loss!r}: expected CrossEntropyLoss, BCEWithLogitsLoss or MSELoss of torch.nn, or one of "
                      f"{', '.join(_LOSSES.values())}")


def _factor(loss: Any, outputs: int) -> float:
    """How many times Leakscope's loss torch's is, of one record: ours sums over outputs, and halves squares."""
    name = _loss(loss)
    if isinstance(loss, str) or name == "softmax-cross-entropy":
        return 1.0
    reduction = getattr(loss, "reduction", "mean")
    if reduction not in ("mean", "sum") and outputs > 1:
        raise OptionError(f"{_spelling(loss)}(reduction={reduction!r}): one number a record is needed, and {outputs} outputs "
                          "have as many: expected reduction='mean' or 'sum'")
    return (2.0 if name == "squared-error" else 1.0) / (outputs if reduction == "mean" else 1)


def _converted(module: Any, loss: Any, x: Any, precision: str | None = None) -> tuple[Network, str, int]:
    """The network, the name of its loss, and the number of its outputs."""
    name = _loss(loss)
    shape: tuple[int, ...] = tuple(int(n) for n in records(x).shape[1:])
    layers, arrays, end = network(module, Place(shape))
    if not any("outputs" in layer and layer["kind"] in ("dense", "conv") for layer in layers):
        raise OptionError("the module has no Linear and no Conv2d: there is no gradient to measure")
    check_end(end)
    if precision is None:
        doubles = any(p.dtype == torch.float64 for p in module.parameters())
        precision = "f64" if doubles else "f32"
    net = Network({"version": 1, "input": list(shape), "layers": layers, "loss": name}, seed=0, precision=precision)
    net.parameters = arrays
    return net, name, end.shape[0]
