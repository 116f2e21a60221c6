"""Who computes the passes of an audit, where that is not this process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from . import _native
from ._native import OptionError
from ._tables import Data


@dataclass(frozen=True)
class Machines:
    """A function that has the parts of a pass computed, and where their records go."""

    #: gets the pass's name, the pass and its parts; gives an answer for every part, in their order
    compute: Callable[[str, bytes, list[str]], Sequence[bytes]]
    records: str | None = None

    def check(self, given: Data, tables: Sequence[Data | None], public: Data | None) -> None:
        """Machines read files, and nothing that is in the memory of this one."""
        for name, table in (("data", given), ("test", tables[0]), ("score", tables[1]), ("shape_from", public)):
            if table is not None and table.table is not None:
                raise OptionError(f"{name}: it is in memory here, where other machines cannot read it: write it to Parquet files "
                                  "that all of them see, and give their names")


#: where ``audit`` looks for machines
MACHINES: ContextVar[Machines | None] = ContextVar("leakscope_machines", default=None)


@contextlib.contextmanager
def on(machines: Machines) -> Iterator[None]:
    """Lets audits run on machines."""
    token = MACHINES.set(machines)
    try:
        yield
    finally:
        MACHINES.reset(token)


def absolute(data: Any) -> Any:
    """Names of files as other processes find them."""
    if isinstance(data, (str, os.PathLike)):
        return os.path.abspath(data)
    if isinstance(data, (list, tuple)) and all(isinstance(d, (str, os.PathLike)) for d in data):
        return [os.path.abspath(d) for d in data]
    return data


def folder(records: Any) -> str | None:
    """The folder of records, made where it is not there."""
    if records is None:
        return None
    path = os.path.abspath(records)
    os.makedirs(path, exist_ok=True)
    return path


def run_part(work: bytes, part: str, records: str | None = None) -> bytes:
    """Computes one part of a pass: what a task calls, on any machine."""
    return _native.run_part(work, part, records)
