"""Products with the Jacobian of a record's gradient, by torch: forward over reverse, many records at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.func import grad, grad_and_value, jvp, vjp, vmap

from ._leak import Array
from ._torch_model import Functional
from ._torch_records import Records

Tree = dict[str, torch.Tensor]


def _dot(a: Tree, b: Tree) -> torch.Tensor:
    # half precision would lose the sum of a million squares
    def wide(v: torch.Tensor) -> torch.Tensor:
        return v.float() if v.dtype in (torch.float16, torch.bfloat16) else v

    return torch.stack([(wide(a[k]) * wide(b[k])).sum() for k in a]).sum()


class TorchProducts:
    """Products of one chunk of records; see :class:`leakscope._leak.Products`."""

    def __init__(self, functional: Functional, records: Records, vectorize: bool) -> None:
        self._f, self._vectorize = functional, vectorize
        self._secret, self._rest, self._constants = functional.split(records)
        self._positional = None if isinstance(records.inputs, dict) else len(records.inputs)
        self._count = len(records)
        self.sizes = [int(np.prod(s.shape[1:])) for s in self._secret]
        dtype = next(iter(functional.trained.values())).dtype
        self.rounding = 1e-14 if dtype == torch.float64 else 1e-7

    @property
    def dimension(self) -> int:
        """Secret values of a record."""
        return sum(self.sizes)

    def _gradient(self, rest: Tree, *secret: torch.Tensor) -> Tree:
        def value(trained: Tree) -> torch.Tensor:
            return self._f.value(trained, secret, rest, self._constants, self._positional)[0]

        result: Tree = grad(value)(self._f.trained)
        return result

    def _each(self, function: Any, in_dims: Any, *arguments: Any) -> Any:
        """``function`` of every record: by vmap, or one after another."""
        if self._vectorize:
            return vmap(function, in_dims=in_dims)(*arguments)
        rows = []
        for i in range(self._count):
            def pick(value: Any, dim: Any) -> Any:
                if dim is None or value is None:
                    return value
                if isinstance(value, dict):
                    return {k: v[i] for k, v in value.items()}
                return tuple(v[i] for v in value) if isinstance(value, tuple) else value[i]

            rows.append(function(*(pick(a, d) for a, d in zip(arguments, in_dims))))
        if isinstance(rows[0], tuple):
            return tuple(torch.stack([row[k] for row in rows]) for k in range(len(rows[0])))
        return torch.stack(rows)

    def _shaped(self, u: Array) -> tuple[torch.Tensor, ...]:
        """Tangents (…, records, values) as the secret tensors are shaped."""
        out, at = [], 0
        for s, size in zip(self._secret, self.sizes):
            part = torch.as_tensor(u[..., at : at + size], dtype=s.dtype, device=s.device)
            out.append(part.reshape(*u.shape[:-1], *s.shape[1:]))
            at += size
        return tuple(out)

    def _flat(self, parts: tuple[torch.Tensor, ...]) -> Array:
        rows = [p.detach().reshape(self._count, -1).double().cpu().numpy() for p in parts]
        return np.concatenate(rows, axis=1)

    def primal(self) -> tuple[Array, Array]:
        def one(rest: Tree, secret: tuple[torch.Tensor, ...]) -> Any:
            def value(trained: Tree) -> torch.Tensor:
                return self._f.value(trained, secret, rest, self._constants, self._positional)[0]

            g, loss = grad_and_value(value)(self._f.trained)
            return loss.detach(), _dot(g, g)

        loss, square = self._each(one, (0, 0), self._rest, self._secret)
        return _array(loss), np.sqrt(np.maximum(_array(square), 0.0))

    def tangents(self, u: Array) -> tuple[Array, Array]:
        def one(rest: Tree, secret: Any, tangent: Any) -> Any:
            g, moved = jvp(lambda *s: self._gradient(rest, *s), secret, tangent)
            return _dot(g, moved), _dot(moved, moved)

        tangents = self._shaped(u)
        if self._vectorize:
            many = vmap(vmap(one), in_dims=(None, None, 0))
            cross, square = many(self._rest, self._secret, tangents)
        else:
            result = [self._each(one, (0, 0, 0), self._rest, self._secret, tuple(t[k] for t in tangents)) for k in range(len(u))]
            cross, square = (torch.stack([f[j] for f in result]) for j in range(2))
        return _array(cross), _array(square)

    def probed(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """Loss, ``‖g‖``, ``g·Ju`` and ``‖Ju‖²`` in one pass: what a training loop pays for; shapes as :meth:`tangents` has."""
        def one(rest: Tree, secret: Any, tangent: Any) -> Any:
            def gradient(*s: torch.Tensor) -> Any:
                def value(trained: Tree) -> torch.Tensor:
                    return self._f.value(trained, s, rest, self._constants, self._positional)[0]

                return grad_and_value(value)(self._f.trained)

            (g, loss), (moved, _) = jvp(gradient, secret, tangent)
            return loss, _dot(g, g), _dot(g, moved), _dot(moved, moved)

        tangents = self._shaped(u)
        if self._vectorize:
            result = vmap(vmap(one), in_dims=(None, None, 0))(self._rest, self._secret, tangents)
        else:
            rows = [self._each(one, (0, 0, 0), self._rest, self._secret, tuple(t[k] for t in tangents)) for k in range(len(u))]
            result = tuple(torch.stack([row[j] for row in rows]) for j in range(4))
        loss, square, cross, moved = (_array(v) for v in result)
        return loss[0], np.sqrt(np.maximum(square[0], 0.0)), cross, moved

    def information(self, u: Array, alpha: Array, beta: Array) -> Array:
        def one(rest: Tree, secret: Any, tangent: Any, a: torch.Tensor, b: torch.Tensor) -> Any:
            def gradient(*s: torch.Tensor) -> Tree:
                return self._gradient(rest, *s)

            g, moved = jvp(gradient, secret, tangent)
            cross = _dot(g, moved)
            weights = {k: (a * moved[k] + b * cross * g[k]).to(g[k].dtype) for k in g}
            return vjp(gradient, *secret)[1](weights)

        scale = [torch.as_tensor(v, dtype=self._secret[0].dtype, device=self._secret[0].device) for v in (alpha, beta)]
        return self._flat(self._each(one, (0, 0, 0, 0, 0), self._rest, self._secret, self._shaped(u), *scale))

    def adjoint(self) -> Array:
        def one(rest: Tree, secret: Any) -> Any:
            g, pull = vjp(lambda *s: self._gradient(rest, *s), *secret)
            return pull({k: v.detach() for k, v in g.items()})

        return self._flat(self._each(one, (0, 0), self._rest, self._secret))


def _array(values: torch.Tensor) -> Array:
    result: Array = values.detach().double().cpu().numpy()
    return result
