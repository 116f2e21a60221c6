"""Options that no request reads: a value of the right kind, or an error that names the option."""

from __future__ import annotations

import math
import operator
import secrets
from typing import Any

from ._native import OptionError


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """A whole number from ``least`` on."""
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        result = None
    if result is None or result < least or (most is not None and result > most):
        upper = "" if most is None else f" to {most}"
        raise OptionError(f"{name}={value!r}: expected a whole number from {least}{upper}")
    return result


def real(name: str, value: Any) -> float:
    """A finite number."""
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError):
        result = math.nan
    if not math.isfinite(result):
        raise OptionError(f"{name}={value!r}: expected a finite number")
    return result


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    result = real(name, value)
    if result <= 0:
        raise OptionError(f"{name}={value!r}: expected a positive number")
    return result


def one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in known:
        raise OptionError(f"{name}={value!r}: expected {', '.join(map(repr, known[:-1]))} or {known[-1]!r}")
    return str(value)


def seeded(value: Any) -> int:
    """The seed that was given, or one from the system; 53 bits survive readers of JSON that know doubles alone."""
    return secrets.randbits(53) if value is None else whole("seed", value, 0, 2**64 - 1)
