"""Audits whose passes are computed in parts, by any map function.

An audit is a sequence of passes over the rows (the profile of the columns, the steps of the fit, the measurement), each cut into
parts: row groups of Parquet files, ranges of CSV files. :func:`audit` hands every part to a map function as bytes and merges the
answers in the order of the rows, so the result has the digits of :func:`leakscope.audit` on one machine, whoever computed which part,
in whatever order and however often. ``leakscope.dask`` and ``leakscope.spark`` are this with their clusters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from . import _models
from ._machines import Machines, absolute, folder, on, run_part
from ._requests import Path
from ._results import Audit

__all__ = ["audit", "run_part"]


def audit(
    data: Any,
    *,
    map: Callable[[Callable[[str], bytes], Iterable[str]], Iterable[bytes]] = map,
    records: Path | None = None,
    **options: Any,
) -> Audit:
    """:func:`leakscope.audit` of files, with ``map`` in the place of threads.

    Parameters
    ----------
    data
        Names of files, CSV or Parquet, as whoever computes parts finds them.
    map
        Computes a function for every part and gives the results in order: ``map`` itself, ``pool.map`` of multiprocessing or
        concurrent.futures, or your own. The function can be pickled.
    records
        Folder for the table of records, one Parquet file a part, written by whoever computes it. Without it none is written.
    options
        Those of :func:`leakscope.audit`.

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
    place = folder(records)

    def compute(name: str, work: bytes, parts: list[str]) -> list[bytes]:
        return list(map(functools.partial(run_part, work, records=place), parts))

    with on(Machines(compute, place)):
        return _models.audit(absolute(data), **_elsewhere(options))


def _elsewhere(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, **{name: absolute(options[name]) for name in ("test", "score", "shape_from") if name in options}}
