"""What a record's gradient gives away, from products with its Jacobian: the mathematics that every framework shares.

A framework hands over *products* (:class:`Products`); this module makes dFIL, η, JacSens and PLIS of them, as the
network kernels do. ``J`` is the Jacobian of the raw gradient ``g`` by the secret values of one record, ``clip(g) = s(n) g``
with ``n = ‖g‖``, and noise has the standard deviation ``σC`` (σ where nothing is clipped).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ._native import DataError, OptionError

Array = np.ndarray[Any, Any]

#: products after which Lanczos' iteration stops in any case
_ITERATIONS = 60


class Products(Protocol):
    """Products of one chunk of records with the Jacobians of their gradients; arrays are float64, a row a record."""

    #: what rounding leaves of a product, as a share of the operator's size
    rounding: float

    def primal(self) -> tuple[Array, Array]:
        """Loss and norm of the gradient of every record."""

    def tangents(self, u: Array) -> tuple[Array, Array]:
        """``g·Ju`` and ``‖Ju‖²`` for tangents ``u`` of shape (probes, records, values); both (probes, records)."""

    def information(self, u: Array, alpha: Array, beta: Array) -> Array:
        """``Jᵀ(αJu + β(g·Ju)g)`` for one tangent a record."""

    def adjoint(self) -> Array:
        """``Jᵀg``, half the gradient of ``‖g‖²``."""


@dataclass(frozen=True)
class Clip:
    """How a gradient is made short: ``kind`` is ``"none"``, ``"hard"`` or ``"gelu"``; ``bound`` is C."""

    kind: str = "none"
    bound: float = 1.0

    def factor(self, n: Array) -> tuple[Array, Array]:
        """``s(n)`` and ``s'(n)``; at the bound of the hard clip the derivative from below."""
        if self.kind == "none":
            return np.ones_like(n), np.zeros_like(n)
        if self.kind == "hard":
            over = n > self.bound
            safe = np.where(over, n, 1.0)
            return np.where(over, self.bound / safe, 1.0), np.where(over, -self.bound / safe / safe, 0.0)
        h = n / self.bound - 1
        s = 1 / (h * _cdf(h) + 1)
        return s, -s * s * (_cdf(h) + h * _pdf(h)) / self.bound

    def slope(self, n: Array) -> Array:
        """``s + n s'``, the derivative of the released norm, without the cancellation beyond the bound."""
        if self.kind == "none":
            return np.ones_like(n)
        if self.kind == "hard":
            return np.where(n > self.bound, 0.0, 1.0)
        h, (s, _) = n / self.bound - 1, self.factor(n)
        pdf = _pdf(h)
        return np.where(pdf == 0, 0.0, s * s * (_cdf(-h) - h * (h + 1) * pdf))

    def square(self, n: Array, cross: Array, square: Array) -> tuple[Array, Array]:
        """``‖D ġ‖²`` from ``g·ġ`` and ``‖ġ‖²``, and what of it lies along the gradient; D is the clip's Jacobian."""
        s, slope = self.factor(n)[0], self.slope(n)
        along = np.where(n > 0, cross / np.where(n > 0, n, 1.0), 0.0) ** 2
        along = np.minimum(along, np.maximum(square, 0.0))
        across = np.maximum(square - along, 0.0)
        return s * s * across + slope * slope * along, slope * slope * along

    @property
    def unit(self) -> float:
        """C, or 1 where nothing is clipped."""
        return 1.0 if self.kind == "none" else self.bound


def _cdf(h: Array) -> Array:
    # erfc keeps its digits in the tail, where 1 + erf has none left
    return np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)), otypes=[np.float64])(h)


def _pdf(h: Array) -> Array:
    with np.errstate(under="ignore", over="ignore"):
        return np.exp(-0.5 * h * h) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Measure:
    """What to measure: as :meth:`leakscope.Network.audit` takes it, with ``trace`` a number of probes or a word."""

    clip: Clip
    sigma: float
    trace: int | str
    eta: bool
    plis: str | None
    seed: int

    @property
    def noise(self) -> float:
        """``σC``: the standard deviation of the noise on the sum of gradients."""
        return self.sigma * self.clip.unit


@dataclass
class Leaks:
    """Measures of a chunk of records, a value a record; ``None`` where something was not asked for."""

    loss: Array
    gradient_norm: Array
    released_norm: Array
    trace: Array | None = None
    trace_error: Array | None = None
    eta: Array | None = None
    eta_residual: Array | None = None
    jacobian: Array | None = None
    plis: Array | None = None
    #: PLIS of every value, (records, values)
    maps: Array | None = None
    #: information about every value, (records, values)
    information: Array | None = None
    extra: dict[str, Any] = field(default_factory=dict)


def measured(products: Products, records: list[int], dimension: int, request: Measure, group: int) -> Leaks:
    """All measures of one chunk; ``group`` tangents of a record may ride together."""
    loss, n = products.primal()
    _finite("loss", loss, records)
    _finite("gradient", n, records)
    s, _ = request.clip.factor(n)
    out = Leaks(loss, n, s * n)
    precision = 1 / request.noise**2
    if request.trace in ("exact", "elements"):
        parts = []
        for start in range(0, dimension, group):
            width = min(group, dimension - start)
            u = np.zeros((width, len(records), dimension))
            u[np.arange(width), :, start + np.arange(width)] = 1.0
            parts.append(precision * request.clip.square(n, *products.tangents(u))[0])
        squares = np.concatenate(parts)
        out.trace = squares.sum(axis=0)
        out.information = squares.T if request.trace == "elements" else None
    elif request.trace != "skip":
        squares = precision * request.clip.square(n, *_probed(products, records, dimension, int(request.trace), request.seed, group))[0]
        out.trace = squares.mean(axis=0)
        out.trace_error = squares.std(axis=0, ddof=1) / math.sqrt(len(squares))
    if request.plis is not None:
        row = products.adjoint()
        slope = request.clip.slope(n)
        scale = 2 * precision * (s * slope if request.plis == "released" else np.ones_like(n))
        out.maps = scale[:, None] * row
        out.plis = np.abs(scale) * np.sqrt((row * row).sum(axis=1))
    if request.eta:
        out.eta, out.eta_residual = spectral(products, records, dimension, request.clip, n, request.seed)
        out.eta /= request.noise
        if request.clip.kind == "none":
            out.jacobian = out.eta * request.noise
        else:
            out.jacobian = spectral(products, records, dimension, Clip(), n, request.seed)[0]
    for name in ("trace", "eta", "jacobian", "plis"):
        values = getattr(out, name)
        if values is not None:
            _finite(name, values, records)
    return out


def probes(seed: int, record: int, count: int, dimension: int) -> Array:
    """Random signs, (count, dimension): a stream a record, so that they are the same in any chunk."""
    bits = np.random.default_rng([seed, record, 0]).integers(0, 2, size=(count, dimension), dtype=np.int8)
    return 2.0 * bits - 1.0


def _probed(products: Products, records: list[int], dimension: int, count: int, seed: int, group: int) -> tuple[Array, Array]:
    u = np.stack([probes(seed, record, count, dimension) for record in records], axis=1)
    parts = [products.tangents(u[at : at + group]) for at in range(0, count, group)]
    return np.concatenate([c for c, _ in parts]), np.concatenate([q for _, q in parts])


def _finite(name: str, values: Array, records: list[int]) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"record {records[int(bad[0])]}: its {name} is {values[bad[0]]}: expected finite numbers; look at the "
                        "record's values and at the parameters")


def spectral(products: Products, records: list[int], dimension: int, clip: Clip, n: Array, seed: int) -> tuple[Array, Array]:
    """``‖DJ‖₂`` and the relative residual of its square, by Lanczos' iteration with full reorthogonalisation."""
    s, s1 = clip.factor(n)
    # D² = s² I + bend · g gᵀ
    bend = np.where(n > 0, s1 / np.where(n > 0, n, 1.0) * (2 * s + n * s1), 0.0)
    count = len(records)
    q = np.stack([np.random.default_rng([seed, record, 1]).normal(size=dimension) for record in records])
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    basis, diagonal, off = [q], [], []
    settled, done = np.zeros(count, bool), np.zeros(count, bool)
    # the eigenvalue is wrong by about the square of the residual; single precision has no more digits
    tolerance = 1e-6 if products.rounding < 1e-10 else 1e-4
    value, residual = np.zeros(count), np.zeros(count)
    for _ in range(min(_ITERATIONS, dimension)):
        w = products.information(basis[-1], s * s, bend)
        _finite("Jacobian", w.sum(axis=1), records)
        diagonal.append((w * basis[-1]).sum(axis=1))
        for _ in range(2):  # twice is enough (Kahan and Parlett)
            for b in basis:
                w = w - (w * b).sum(axis=1, keepdims=True) * b
        beta = np.linalg.norm(w, axis=1)
        off.append(beta)
        size = np.abs(np.array(diagonal)).max(axis=0)
        done |= (beta <= products.rounding * size) | (len(basis) >= dimension)
        result, left = _largest(np.array(diagonal), np.array(off), done)
        value, residual = np.where(settled, value, result), np.where(settled, residual, left)
        # each stops where it would alone: its η does not depend on the others of the chunk
        settled |= done | (left <= tolerance)
        if settled.all():
            break
        basis.append(w / np.where(beta > 0, beta, 1.0)[:, None])
    return np.sqrt(np.maximum(value, 0.0)), residual


def _largest(diagonal: Array, off: Array, done: Array) -> tuple[Array, Array]:
    """The largest Ritz value of every record and ``|β_m s_m|/θ``."""
    m, count = diagonal.shape
    t = np.zeros((count, m, m))
    at = np.arange(m)
    t[:, at, at] = diagonal.T
    if m > 1:
        t[:, at[1:], at[:-1]] = t[:, at[:-1], at[1:]] = off[:-1].T
    values, vectors = np.linalg.eigh(t)
    theta = values[:, -1]
    last = np.where(done, 0.0, off[-1] * np.abs(vectors[:, -1, -1]))
    return np.maximum(theta, 0.0), np.where(theta > 0, last / np.where(theta > 0, theta, 1.0), 0.0)


def clip_of(clip: float | None, kind: str | None) -> Clip:
    """The clip that the options ask for."""
    if kind not in (None, "hard", "gelu", "none"):
        raise OptionError(f"clip_kind={kind!r}: expected 'hard', 'gelu' or 'none'")
    if kind == "none" and clip is not None:
        raise OptionError(f"clip={clip!r}: clip_kind='none' clips nothing, leave one out")
    if kind in ("hard", "gelu") and clip is None:
        raise OptionError(f"clip_kind={kind!r}: give the bound too, for example clip=1")
    if clip is None:
        return Clip()
    if isinstance(clip, (bool, str)) or not (float(clip) > 0 and math.isfinite(float(clip))):
        raise OptionError(f"clip={clip!r}: expected a positive number, the norm C that gradients are clipped at")
    return Clip(kind or "hard", float(clip))
