"""Progress by tqdm where it is installed and somebody watches."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Bar:
    """One bar for all passes of a call; it appears after a second."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._tqdm(total=total, desc=stage, leave=False, delay=1, unit="row", unit_scale=True)
            self._stage = stage
        if stage != self._stage or total != self._bar.total or done < self._bar.n:
            self._stage = stage
            self._bar.reset(total=total)
            self._bar.set_description(stage)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def shown(progress: bool | Callable[[str, int, int], Any] | None) -> Iterator[Callable[[str, int, int], Any] | None]:
    """A callable for the native side, or ``None``; a bar ends with the block."""
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not _watched()):
        yield None
        return
    try:
        with warnings.catch_warnings():
            # In a notebook without ipywidgets it warns in red above the result, and falls back to text all the same.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    bar = _Bar(tqdm)
    try:
        yield bar
    finally:
        bar.close()


def _watched() -> bool:
    return bool(getattr(sys.stderr, "isatty", lambda: False)()) or "ipykernel" in sys.modules
