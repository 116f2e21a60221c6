"""Audits on a Dask cluster (Dask 2024 or later).

>>> from dask.distributed import Client                                     # doctest: +SKIP
>>> with Client(n_workers=4, threads_per_worker=1) as client:               # doctest: +SKIP
...     result = leakscope.dask.audit("s/*.parquet", target="dose", sigma=0.4, client=client)

Every part of a pass is a task: it reads its own row group or range of a file, which all workers must see under the same name, and
returns the state of a pass: kilobytes, or, with the η of its records, a few megabytes. Tasks that are lost with their worker are computed again by Dask, and come to the same bytes.
"""

from __future__ import annotations

from typing import Any

from . import _models
from ._machines import Machines, absolute, folder, on, run_part
from ._native import OptionError
from ._requests import Path
from ._results import Audit
from .distributed import _elsewhere

__all__ = ["audit"]


def audit(data: Any, *, client: Any = None, records: Path | None = None, retries: int = 2, **options: Any) -> Audit:
    """:func:`leakscope.audit` of files, computed by the workers of a Dask cluster: the same numbers to the last digit.

    Parameters
    ----------
    data
        Names of files, CSV or Parquet, as the workers find them too.
    client
        The client of the cluster. By default the one that was made last.
    records
        Folder for the table of records that all workers see; each part is a Parquet file in it. Without it none is written.
    retries
        How often a task that fails is tried again, beside those that are lost with their worker.
    options
        Those of :func:`leakscope.audit`.
    """
    if hasattr(data, "dask"):
        raise OptionError("data: a collection of Dask, whose rows are read once for every pass: write it with to_parquet, and give the "
                          "names of the files")
    try:
        from distributed import get_client
    except ImportError as missing:
        raise OptionError("leakscope.dask needs the package `distributed`: pip install 'dask[distributed]'") from missing
    cluster = client if client is not None else get_client()
    place = folder(records)

    def compute(name: str, work: bytes, parts: list[str]) -> list[bytes]:
        # A task and no scattered value: what a lost worker held is then made again.
        carried = cluster.submit(_carried, work, pure=False)
        key = f"leakscope-{name}"
        futures = [cluster.submit(run_part, carried, part, place, pure=False, retries=retries, key=f"{key}-{carried.key}-{at}")
                   for at, part in enumerate(parts)]
        answers: list[bytes] = cluster.gather(futures)
        return answers

    with on(Machines(compute, place)):
        return _models.audit(absolute(data), **_elsewhere(options))


def _carried(work: bytes) -> bytes:
    return work
