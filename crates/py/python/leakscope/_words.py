"""Options as the words of a command line: one parser reads both, so names and checks are the same."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

_COMMA = "\x1f"
#: options that are given once for every item
_REPEATED = ("step", "data", "test")


def words(command: str, options: Mapping[str, Any], files: Iterable[str | os.PathLike[str]] = ()) -> list[str]:
    """The words for ``leakscope command --option … -- files``."""
    found = command.split()
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            found.append(flag)
        elif isinstance(value, Mapping):
            found.extend(f"{flag}={key}={_text(item)}" for key, item in value.items())
        elif name in _REPEATED:
            items = value if isinstance(value, (list, tuple)) else [value]
            found.extend(f"{flag}={_text(item)}" for item in items)
        elif isinstance(value, (list, tuple)):
            if value:
                found.append(f"{flag}=" + ",".join(_text(item).replace(",", _COMMA) for item in value))
        else:
            found.append(f"{flag}={_text(value)}")
    named = [os.fspath(file) for file in files]
    return found + ["--", *named] if named else found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return repr(value) if isinstance(value, float) else str(value)
