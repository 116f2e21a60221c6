"""What glibc does with freed memory while an engine's worker computes parts.

Blocks of rows come and go. By default the larger ones come from the system each time, page by page, and go back to it: that was up to
half of the processor's time of a pass.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import threading
from collections.abc import Iterator
from typing import Any

#: parameters of mallopt(3)
_TRIM, _MAPPED = -1, -3
#: what may stay at the top of the heap, and what is still taken from the heap
_KEPT, _FROM_HEAP = 64 << 20, 32 << 20

#: parts that run in this process now
_running = 0
_counting = threading.Lock()


def keep() -> None:
    """Lets this process, which is an engine's and computes nothing but tasks, keep freed memory."""
    settings = _mallopt()
    if settings is not None:
        settings(_TRIM, _KEPT)
        settings(_MAPPED, _FROM_HEAP)


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Keeps freed memory while parts are computed, where Dask started this worker with MALLOC_TRIM_THRESHOLD_ at 64 KiB, as it does;
    afterwards all is as the worker wants it. Other processes, a user's own among them, stay as they are."""
    global _running
    before = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    settings = _mallopt() if before.isdigit() else None
    if settings is None:
        yield
        return
    with _counting:
        _running += 1
        keep()
    try:
        yield
    finally:
        with _counting:
            _running -= 1
            if _running == 0:
                settings(_MAPPED, int(os.environ.get("MALLOC_MMAP_THRESHOLD_", "131072")))
                settings(_TRIM, int(before))


@functools.cache
def _mallopt() -> Any:
    """glibc's function that sets thresholds of its allocator; none elsewhere."""
    if platform.libc_ver()[0] != "glibc":
        return None
    return getattr(ctypes.CDLL(None), "mallopt", None)
