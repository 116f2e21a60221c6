"""Intervals of shares: Clopper and Pearson's, Wilson's, and Newcombe's of a difference; Student's of a mean."""

from __future__ import annotations

import math
from statistics import NormalDist


def clopper_pearson(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """An interval that covers the true share at least as often as ``confidence`` says, by the binomial law itself."""
    if trials == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _root(lambda p: _at_least(hits, trials, p) - tail)
    high = 1.0 if hits == trials else _root(lambda p: tail - (1 - _at_least(hits + 1, trials, p)))
    return low, high


def wilson(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval: shorter than the exact one, and right on average over shares."""
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, scale = hits / trials, 1 + z * z / trials
    middle = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, middle - half) if hits else 0.0, min(1.0, middle + half) if hits < trials else 1.0


def difference(first: tuple[int, int], second: tuple[int, int], confidence: float = 0.95) -> tuple[float, float]:
    """Newcombe's interval of the difference of two shares, by Wilson's of each."""
    (a, n), (b, m) = first, second
    if n == 0 or m == 0:
        return -1.0, 1.0
    p, q = a / n, b / m
    (l1, u1), (l2, u2) = wilson(a, n, confidence), wilson(b, m, confidence)
    return p - q - math.hypot(p - l1, u2 - q), p - q + math.hypot(u1 - p, q - l2)


def student_t(freedom: int, confidence: float = 0.95) -> float:
    """How many standard errors Student's interval of a mean reaches to either side: ``P(|t| > q) = 1 − confidence``."""
    # P(|t| > q) = I_x(ν/2, ½) at x = ν/(ν + q²)
    x = _root(lambda v: incomplete_beta(freedom / 2, 0.5, v) - (1 - confidence))
    return math.sqrt(freedom * (1 - x) / x)


def _at_least(hits: int, trials: int, p: float) -> float:
    """P(X ≥ hits) of a binomial: the incomplete beta function ``I_p(hits, trials − hits + 1)``."""
    return incomplete_beta(hits, trials - hits + 1, p)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, 10_000):
        for step in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                     -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 + step * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + step / c
            c = c if abs(c) > tiny else tiny
            total *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * total


def _root(function: object) -> float:
    """Where an increasing function of a share passes zero."""
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        if function(middle) < 0:  # type: ignore[operator]
            low = middle
        else:
            high = middle
    return (low + high) / 2
