"""JAX: what the gradients of a model give away about records.

Imported only where it is asked for (``import leakscope.jax``); jax is an optional extra.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _progress
from ._checks import one_of, positive, seeded, whole
from ._leak import Array, Leaks, Measure, clip_of, measured
from ._leak_document import Subject, assembled
from ._native import DataError, LeakscopeError, OptionError
from ._net_results import NetAudit
from ._network import _chosen, _signal


def audit(
    loss_fn: Callable[[Any, Any, Any], Any],
    params: Any,
    x: Any,
    y: Any,
    *,
    clip: float | None = None,
    clip_kind: str | None = None,
    sigma: float | None = None,
    trace: int | str = 10,
    eta: bool = False,
    plis: bool | str = False,
    records: int | Sequence[int] | None = None,
    chunk: int = 64,
    pictures: bool = True,
    seed: int | None = None,
    out: Any = None,
    progress: Any = None,
) -> NetAudit:
    """Measures what one gradient step gives away about records: dFIL, η, JacSens, PLIS.

    Parameters
    ----------
    loss_fn : callable
        ``loss_fn(params, x_i, y_i)``: the loss of one record, without a batch dimension, as a scalar.
    params : pytree of arrays
        What is trained and released; keep what is frozen in ``loss_fn``.
    x : array or pytree of arrays
        Records, real numbers, the first dimension theirs. Images are channels last.
    y : array
        Targets, one for each record.
    clip : float, optional
        Norm that the gradient of every record is clipped at, above 0. By default nothing is clipped.
    clip_kind : str, optional
        ``"hard"``, ``"gelu"`` or ``"none"``. By default hard, with ``clip``.
    sigma : float, default 1
        Noise multiplier, above 0: the noise has the standard deviation σC; without a clip σ.
    trace : int or str, default 10
        Random probes of every trace, ``"exact"``, ``"elements"`` or ``"skip"``, as :meth:`leakscope.Network.audit` has it.
    eta : bool, default False
        Whether η of every record is measured.
    plis : bool or str, default False
        Whether PLIS of every value is measured: ``"released"`` (or True) or ``"raw"``.
    records : int or list of int, optional
        How many records, drawn by the seed, or which. By default all.
    chunk : int, default 64
        Records at once.
    pictures : bool, default True
        Whether the page shows records that are images.
    seed : int, optional
        Seed of probes and of the records that are drawn. By default drawn from the system.
    out : str or path, optional
        Folder to keep document, page and tables in.
    progress : bool or callable, optional
        As :func:`leakscope.audit` has it.

    Returns
    -------
    NetAudit
        The document, the page, and the table of records.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, leakscope.jax
    >>> def loss(w, x, y):
    ...     return 0.5 * (x @ w - y) ** 2
    >>> x, y = np.eye(3, dtype=np.float32), np.ones(3, dtype=np.float32)
    >>> result = leakscope.jax.audit(loss, jnp.zeros(3), x, y, trace="exact", pictures=False)
    >>> len(result.records)
    3
    """
    signal = _signal(plis)
    request = Measure(clip_of(clip, clip_kind), 1.0 if sigma is None else positive("sigma", sigma), _trace(trace), bool(eta),
                   None if signal is None else one_of("plis", signal, ("released", "raw")), seeded(seed))
    leaves = [jnp.asarray(v) for v in jax.tree_util.tree_leaves(x)]
    _check(loss_fn, params, leaves, x, y)
    inputs, targets = jax.tree_util.tree_map(jnp.asarray, x), jnp.asarray(y)
    n = len(targets)
    order, size = _chosen(records, n), whole("chunk", chunk, 1)
    leaks: list[Leaks] = []
    with _progress.shown(progress) as told:
        for at in range(0, len(order), size):
            some = order[at : at + size]
            index = jnp.asarray(some)
            products = JaxProducts(loss_fn, params, jax.tree_util.tree_map(lambda v: v[index], inputs), targets[index])
            leaks.append(measured(products, some, products.dimension, request, max(1, min(size // len(some), 64))))
            if told is not None:
                told("records", at + len(some), len(order))
    values = np.concatenate([np.asarray(v, dtype=np.float64).reshape(n, -1) for v in leaves], axis=1)[order]
    counted = sum(int(np.size(p)) for p in jax.tree_util.tree_leaves(params))
    plain = np.asarray(targets)
    labels = [f"{v:g}" for v in plain[order].astype(np.float64)] if plain.ndim == 1 else None
    shape = tuple(int(s) for s in leaves[0].shape[1:]) if len(leaves) == 1 and leaves[0].ndim > 1 else (values.shape[1],)
    subject = Subject(name=getattr(loss_fn, "__name__", "a function of JAX"), parameters=counted, trained=counted, outputs=0,
                      loss=getattr(loss_fn, "__name__", "loss"), source="arrays", count=n, numbers=order, labels=labels, right=None,
                      shape=shape, values=values, dimension=values.shape[1], label_secret=False, channels_first=False, notes=[])
    return assembled(subject, request, leaks, sigma is not None, pictures)._kept(out)


def _trace(trace: Any) -> int | str:
    if isinstance(trace, str):
        return one_of("trace", trace, ("exact", "elements", "skip"))
    return whole("trace", trace, 2)


def _check(loss_fn: Any, params: Any, leaves: list[Any], x: Any, y: Any) -> None:
    """Refuses what has no gradient, with what to change."""
    if not callable(loss_fn):
        raise OptionError(f"loss_fn: {type(loss_fn).__name__}: expected a function of parameters, one record and its target")
    if not leaves or any(v.ndim == 0 for v in leaves) or len({len(v) for v in leaves}) != 1 or len(leaves[0]) == 0:
        raise DataError("x: expected arrays with as many records, the first dimension theirs, and at least one")
    if len(leaves[0]) != len(jnp.asarray(y)):
        raise DataError(f"y: {len(jnp.asarray(y))} targets for {len(leaves[0])} records: they must be as many")
    for v in leaves:
        if not jnp.issubdtype(v.dtype, jnp.floating):
            raise DataError(f"x: {v.dtype}: expected real numbers: embed integers first, and give the embeddings as x")
        if not bool(jnp.isfinite(v).all()):
            bad = int(np.flatnonzero(~np.isfinite(np.asarray(v).reshape(len(v), -1)).all(axis=1))[0])
            raise DataError(f"x: record {bad} has a value that is not finite: fill it in or leave the record out")
    trained = [jnp.asarray(p).dtype for p in jax.tree_util.tree_leaves(params)]
    if not trained or not all(jnp.issubdtype(kind, jnp.floating) for kind in trained):
        wrong = next((str(kind) for kind in trained if not jnp.issubdtype(kind, jnp.floating)), "no arrays")
        raise OptionError(f"params: {wrong}: expected arrays of real numbers: what is not trained belongs into loss_fn")
    first = jax.tree_util.tree_map(lambda v: jnp.asarray(v)[0], x)
    try:
        value = jax.eval_shape(loss_fn, params, first, jnp.asarray(y)[0])
    except LeakscopeError:
        raise
    except Exception as e:  # noqa: BLE001 - whatever the caller's function raises is told
        raise OptionError(f"loss_fn: it does not run on one record (without a batch dimension) under JAX's tracing: {type(e).__name__}: "
                          f"{str(e).splitlines()[0][:200]}. Use jnp.where or jax.lax.cond instead of an if over values") from e
    if getattr(value, "shape", None) != ():
        raise OptionError(f"loss_fn: of one record it has the shape {getattr(value, 'shape', None)}: one number is needed: sum over a record's "
                          "values, and do not take a mean over a batch")


class JaxProducts:
    """Products of one chunk of records; see :class:`leakscope._leak.Products`."""

    def __init__(self, loss_fn: Any, params: Any, x: Any, y: Any) -> None:
        self._x, self._y = x, y
        leaves, self._tree = jax.tree_util.tree_flatten(x)
        self._shapes = [v.shape[1:] for v in leaves]
        self.sizes = [int(np.prod(s)) for s in self._shapes]
        self._dtype = leaves[0].dtype
        self.rounding = 1e-14 if self._dtype == jnp.float64 else 1e-7
        self._value = jax.vmap(lambda a, b: jax.value_and_grad(loss_fn)(params, a, b))

        def gradient(a: Any, b: Any) -> Any:
            return jax.grad(loss_fn)(params, a, b)

        def tangent(a: Any, b: Any, u: Any) -> Any:
            g, moved = jax.jvp(lambda v: gradient(v, b), (a,), (u,))
            return _dot(g, moved), _dot(moved, moved)

        def information(a: Any, b: Any, u: Any, alpha: Any, beta: Any) -> Any:
            g, moved = jax.jvp(lambda v: gradient(v, b), (a,), (u,))
            cross = _dot(g, moved)
            weights = jax.tree_util.tree_map(lambda p, q: alpha * q + beta * cross * p, g, moved)
            return jax.vjp(lambda v: gradient(v, b), a)[1](weights)[0]

        def adjoint(a: Any, b: Any) -> Any:
            g, pull = jax.vjp(lambda v: gradient(v, b), a)
            return pull(g)[0]

        self._tangent = jax.jit(jax.vmap(jax.vmap(tangent), in_axes=(None, None, 0)))
        self._information = jax.jit(jax.vmap(information))
        self._adjoint = jax.vmap(adjoint)

    @property
    def dimension(self) -> int:
        """Secret values of a record."""
        return sum(self.sizes)

    def _shaped(self, u: Array) -> Any:
        ends = np.cumsum(self.sizes)[:-1]
        parts = [jnp.asarray(p.reshape(*u.shape[:-1], *s), dtype=self._dtype)
                 for p, s in zip(np.split(u, ends, axis=-1), self._shapes)]
        return jax.tree_util.tree_unflatten(self._tree, parts)

    def _flat(self, result: Any) -> Array:
        leaves = [np.asarray(v, dtype=np.float64) for v in jax.tree_util.tree_leaves(result)]
        return np.concatenate([v.reshape(len(v), -1) for v in leaves], axis=1)

    def primal(self) -> tuple[Array, Array]:
        loss, g = self._value(self._x, self._y)
        square = sum(np.square(np.asarray(v, dtype=np.float64)).reshape(len(v), -1).sum(axis=1) for v in jax.tree_util.tree_leaves(g))
        return np.asarray(loss, dtype=np.float64), np.sqrt(square)

    def tangents(self, u: Array) -> tuple[Array, Array]:
        cross, square = self._tangent(self._x, self._y, self._shaped(u))
        return np.asarray(cross, dtype=np.float64), np.asarray(square, dtype=np.float64)

    def information(self, u: Array, alpha: Array, beta: Array) -> Array:
        scale = [jnp.asarray(v, dtype=self._dtype) for v in (alpha, beta)]
        return self._flat(self._information(self._x, self._y, self._shaped(u), *scale))

    def adjoint(self) -> Array:
        return self._flat(self._adjoint(self._x, self._y))


def _dot(a: Any, b: Any) -> Any:
    return sum(jnp.vdot(p, q) for p, q in zip(jax.tree_util.tree_leaves(a), jax.tree_util.tree_leaves(b)))
