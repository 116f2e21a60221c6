"""Questions whose passes are computed in parts, by any map function.

A question about a model is a sequence of passes over the rows (the profile of the columns, the steps of the fit, the measurement),
each cut into parts: row groups of Parquet files, ranges of CSV files. The functions here hand every part to a map function as bytes
and merge the answers in the order of the rows, so the result has the digits of one machine, whoever computed which part, in whatever
order and however often. ``leakscope.dask`` and ``leakscope.spark`` are this with their clusters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _models, _privacy
from ._docs import documented
from ._machines import Machines, ask, folders, run_part
from ._requests import Path
from ._results import Audit, Balance, Bound, Release

__all__ = ["audit", "balance", "bound", "release", "run_part"]

#: computes a function for every part and gives the results in order
Map = Callable[[Callable[[bytes], bytes], Iterable[bytes]], Iterable[bytes]]

#: what parameters mean that a call of this module has and one machine has not
_OWN = {
    "data": "Names of files, CSV or Parquet, as whoever computes parts finds them.",
    "map": "Computes a function for every part and gives the results in order: ``map`` itself, ``pool.map`` of multiprocessing or "
           "concurrent.futures, or your own. The function can be pickled.",
}


@documented(**_OWN, options="Those of :func:`leakscope.audit`.")
def audit(data: Any, *, map: Map = map, records: Path | None = None, scores: Path | None = None, resume: Path | None = None,
          **options: Any) -> Audit:
    """:func:`leakscope.audit` of files, with ``map`` in the place of threads.

    Examples
    --------
    >>> import leakscope.distributed, pathlib, tempfile
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "doses.csv"
    >>> _ = file.write_text("age,dose\\n" + "".join(f"{40 + i % 37},{3 + i % 37 / 20 + i % 3 / 10}\\n" for i in range(100)))
    >>> with ThreadPoolExecutor() as pool:
    ...     there = leakscope.distributed.audit(file, target="dose", sigma=0.5, map=pool.map)
    >>> here = leakscope.audit(file, target="dose", sigma=0.5)
    >>> here["records"] == there["records"]
    True
    """
    return ask(_models.audit, data, _machines(map, folders(records=records, scores=scores)), options, resume)


@documented(**_OWN, options="Those of :func:`leakscope.balance`.")
def balance(data: Any, *, map: Map = map, resume: Path | None = None, **options: Any) -> Balance:
    """:func:`leakscope.balance` of files, with ``map`` in the place of threads."""
    return ask(_models.balance, data, _machines(map), options, resume)


@documented(**_OWN, options="Those of :func:`leakscope.release`.")
def release(data: Any, *, map: Map = map, resume: Path | None = None, **options: Any) -> Release:
    """:func:`leakscope.release` of files, with ``map`` in the place of threads.

    Noise is drawn here, and the ledger is kept here: whoever computes parts sees neither.
    """
    return ask(_models.release, data, _machines(map), options, resume)


@documented(**_OWN, options="Those of :func:`leakscope.bound`.")
def bound(data: Any, *, map: Map = map, resume: Path | None = None, **options: Any) -> Bound:
    """:func:`leakscope.bound` on a secret of files, with ``map`` in the place of threads.

    Of linear regression the bounds of every record are computed in parts. The refits of other models read all rows for every
    record, and attacks and they run here.
    """
    return ask(_privacy.bound, data, _machines(map), options, resume)


def _machines(map: Map, tables: Mapping[str, str] | None = None) -> Machines:
    def compute(name: str, work: bytes, parts: list[bytes], partitions: list[int] | None) -> list[bytes]:
        return list(map(functools.partial(run_part, work, tables=tables), parts))

    return Machines(compute, tables or {})
