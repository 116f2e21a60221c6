"""Probes of every record of a batch by passes over the whole batch: for networks whose trained layers are known.

The gradient of a record by the weights of a layer is a product of what came in (a) and of the loss's derivative by what went out (δ):
``δaᵀ`` for a linear layer, a sum of such over places for a convolution. a and δ of all records are had from one pass forwards and one
backwards to the outputs of layers, without any array for each record's weights, and their derivatives along a change of the
records by differentiating both passes forwards: no vmap over records, which runs a network as many small ones. Products
of gradients follow layer by layer; of a linear layer they are products of numbers, ``⟨δaᵀ, δ̇aᵀ + δȧᵀ⟩ = ⟨δ, δ̇⟩‖a‖² + ‖δ‖²⟨a, ȧ⟩``.

The probes are those of :meth:`leakscope._torch_products.TorchProducts.probed`, and so are the numbers, to rounding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.func import grad, jvp, vmap
from torch.nn import functional as F

from ._leak import Array
from ._torch_model import Functional, loss_value
from ._torch_records import Records

_NORMS = (torch.nn.GroupNorm, torch.nn.LayerNorm)
_CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d)


def known(functional: Functional) -> bool:
    """Whether every trained parameter is of a layer whose gradients are products."""
    if functional.secret.embedded or functional.label_secret or functional.loss is None:
        return False
    for layer in _layers(functional).values():
        if isinstance(layer, _CONVOLUTIONS):
            plain = layer.padding_mode == "zeros" and not isinstance(layer.padding, str) and layer.groups == 1
        else:
            plain = type(layer) is torch.nn.Linear or isinstance(layer, _NORMS)
        if not plain or layer._forward_hooks or layer._forward_pre_hooks:
            return False
        names = {name for name, _ in layer.named_parameters(recurse=False)}
        if not names <= {"weight", "bias"}:
            return False
    return True


def _layers(functional: Functional) -> dict[str, torch.nn.Module]:
    """The layers that own trained parameters, by name."""
    result = {}
    for name, layer in functional.module.named_modules():
        own = [f"{name}.{k}" if name else k for k, _ in layer.named_parameters(recurse=False)]
        if any(k in functional.trained for k in own):
            result[name] = layer
    return result


class Unknown(Exception):
    """A layer is used in a way whose gradient is no product: more than once, or in another shape."""


class LayerProducts:
    """Probes of one chunk of records."""

    def __init__(self, functional: Functional, records: Records) -> None:
        self._f, self._count = functional, len(records)
        self._secret, self._rest, self._constants = functional.split(records)
        self._positional = None if isinstance(records.inputs, dict) else len(records.inputs)
        self._layers = _layers(functional)
        self.sizes = [int(np.prod(s.shape[1:])) for s in self._secret]
        seen: dict[str, torch.Tensor] = {}
        with torch.no_grad(), self._watching(lambda name, _, output: seen.setdefault(name, output)):
            self._run(self._secret)
        self._taps = {name: torch.zeros_like(output) for name, output in seen.items()}

    @property
    def dimension(self) -> int:
        """Secret values of a record."""
        return sum(self.sizes)

    def probed(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """Loss, ``‖g‖``, ``g·Ju`` and ``‖Ju‖²``, probes × records; :class:`Unknown` where a layer is used otherwise than once."""
        tangents, at = [], 0
        for s, size in zip(self._secret, self.sizes):
            part = torch.as_tensor(u[..., at : at + size], dtype=s.dtype, device=s.device)
            tangents.append(part.reshape(*u.shape[:-1], *s.shape[1:]))
            at += size

        def along(*tangent: torch.Tensor) -> Any:
            parts, moved, losses = jvp(self._parts, self._secret, tangent, has_aux=True)
            sums = [_products(part, change) for part, change in zip(parts, moved)]
            return losses, *(torch.stack([s[k] for s in sums]).sum(0) for k in range(3))

        loss, own, cross, square = (v.detach().double().cpu().numpy() for v in vmap(along)(*tangents))
        return loss[0], np.sqrt(np.maximum(own[0], 0.0)), cross, square

    def _parts(self, *secret: torch.Tensor) -> Any:
        """Of every layer what its records' gradients are made of, and the losses."""

        def total(taps: dict[str, torch.Tensor]) -> Any:
            inputs: dict[str, torch.Tensor] = {}

            def see(name: str, entered: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
                if name in inputs:
                    raise Unknown
                inputs[name] = entered
                return output + taps[name]

            with self._watching(see):
                output, target = self._run(secret)
            losses = self._losses(output, target)
            return losses.sum(), (inputs, losses)

        # by the outputs of layers alone: no gradient of a weight is formed on the way
        deltas, (inputs, losses) = grad(total, has_aux=True)(self._taps)
        if inputs.keys() != self._taps.keys() or len(inputs) != len(self._layers):
            raise Unknown
        parts = [self._part(name, layer, inputs[name], deltas[name]) for name, layer in self._layers.items()]
        return parts, losses

    def _run(self, secret: Any) -> tuple[Any, Any]:
        named = {**self._rest, **self._constants}
        target = named.pop("\0target", None)
        named.update(zip(self._f.secret.names, secret))
        args = () if self._positional is None else tuple(named[str(i)] for i in range(self._positional))
        kwargs = named if self._positional is None else None
        return torch.func.functional_call(self._f.module, {**self._f.fixed, **self._f.trained}, args, kwargs), target

    def _losses(self, output: Any, target: Any) -> torch.Tensor:
        """The loss of every record by itself, whatever the loss does with a batch."""
        if not isinstance(output, torch.Tensor) or output.shape[:1] != (self._count,):
            raise Unknown

        def one(of_record: torch.Tensor, *own: torch.Tensor) -> torch.Tensor:
            value = loss_value(self._f.loss, of_record[None], own[0][None] if own else None)
            if value.numel() != 1:
                raise Unknown
            return value.reshape(())

        result: torch.Tensor = vmap(one)(output) if target is None else vmap(one)(output, target)
        return result

    @contextlib.contextmanager
    def _watching(self, see: Callable[[str, torch.Tensor, torch.Tensor], Any]) -> Iterator[None]:
        def hooked(name: str) -> Any:
            def hook(_layer: Any, args: Any, output: Any) -> Any:
                if len(args) != 1 or not isinstance(output, torch.Tensor) or output.shape[:1] != (self._count,):
                    raise Unknown
                return see(name, args[0], output)

            return hook

        handles = [layer.register_forward_hook(hooked(name)) for name, layer in self._layers.items()]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _part(self, name: str, layer: torch.nn.Module, a: torch.Tensor, delta: torch.Tensor) -> dict[str, torch.Tensor]:
        """Factors of the gradient by a layer's weight (or the gradient itself), and the gradient by its bias."""
        prefix = f"{name}." if name else ""
        has = {k for k in ("weight", "bias") if f"{prefix}{k}" in self._f.trained}
        out: dict[str, torch.Tensor] = {}
        if isinstance(layer, torch.nn.Linear):
            if a.ndim == 2:
                weight, bias = {"a": a, "delta": delta}, delta
            else:
                a, delta = a.reshape(self._count, -1, a.shape[-1]), delta.reshape(self._count, -1, delta.shape[-1])
                weight, bias = {"g": torch.einsum("bto,bti->boi", delta, a)}, delta.sum(1)
        elif isinstance(layer, _CONVOLUTIONS):
            columns = _unfolded(layer, a)
            flat = delta.reshape(self._count, delta.shape[1], -1)
            weight, bias = {"g": torch.bmm(flat, columns.transpose(1, 2))}, flat.sum(2)
        elif isinstance(layer, torch.nn.GroupNorm):
            standard = F.group_norm(a, layer.num_groups, None, None, layer.eps)
            places = tuple(range(2, a.ndim))
            weight, bias = {"g": (delta * standard).sum(places)}, delta.sum(places)
        else:
            assert isinstance(layer, torch.nn.LayerNorm)
            standard = F.layer_norm(a, layer.normalized_shape, None, None, layer.eps)
            places = tuple(range(1, a.ndim - len(layer.normalized_shape)))
            summed = (lambda v: v.sum(places)) if places else (lambda v: v)
            weight, bias = {"g": summed(delta * standard)}, summed(delta)
        if "weight" in has:
            out.update(weight)
        if "bias" in has:
            out["bias"] = bias
        return out


def _unfolded(layer: Any, a: torch.Tensor) -> torch.Tensor:
    """What a convolution sees at each place: records × values × places."""
    if isinstance(layer, torch.nn.Conv2d):
        return F.unfold(a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    pairs = [(1, layer.kernel_size[0]), (1, layer.dilation[0]), (0, layer.padding[0]), (1, layer.stride[0])]
    return F.unfold(a.unsqueeze(2), *pairs)


def _products(part: dict[str, torch.Tensor], moved: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """``‖g‖²``, ``g·ġ`` and ``‖ġ‖²`` of every record over the parameters of one layer."""

    def dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        # half precision would lose the sum of a million squares
        if a.dtype in (torch.float16, torch.bfloat16):
            a, b = a.float(), b.float()
        return (a * b).flatten(1).sum(1)

    own: Any = 0
    cross: Any = 0
    square: Any = 0
    for name in ("g", "bias"):
        if name in part:
            g, change = part[name], moved[name]
            own, cross, square = own + dot(g, g), cross + dot(g, change), square + dot(change, change)
    if "a" in part:
        a, d, da, dd = part["a"], part["delta"], moved["a"], moved["delta"]
        a2, d2, along_a, along_d = dot(a, a), dot(d, d), dot(a, da), dot(d, dd)
        own = own + a2 * d2
        cross = cross + along_d * a2 + d2 * along_a
        square = square + dot(dd, dd) * a2 + 2 * along_d * along_a + d2 * dot(da, da)
    return own, cross, square
