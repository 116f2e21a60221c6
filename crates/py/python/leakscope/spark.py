"""Audits on a Spark cluster (PySpark 3.5 or later, classic or Connect).

>>> from pyspark.sql import SparkSession                                    # doctest: +SKIP
>>> spark = SparkSession.builder.getOrCreate()                              # doctest: +SKIP
>>> result = leakscope.spark.audit(files, target="dose", sigma=0.4)         # doctest: +SKIP

Every part of a pass is a task: it reads its own row group or range of a file, which all executors must see under the same name, and
returns the state of a pass: kilobytes, or, with the η of its records, a few megabytes. No row goes through the engine. Tasks that Spark runs again, or twice, come to the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _models
from ._machines import Machines, absolute, folder, on, run_part
from ._native import OptionError
from ._requests import Path
from ._results import Audit
from .distributed import _elsewhere

__all__ = ["audit"]


def audit(data: Any, *, spark: Any = None, records: Path | None = None, **options: Any) -> Audit:
    """:func:`leakscope.audit` of files, computed by the executors of a Spark cluster: the same numbers to the last digit.

    Parameters
    ----------
    data
        Names of files, CSV or Parquet, as the executors find them too.
    spark
        The session. By default the active one.
    records
        Folder for the table of records that all executors see; each part is a Parquet file in it. Without it none is written.
    options
        Those of :func:`leakscope.audit`.
    """
    if hasattr(data, "rdd") or hasattr(data, "mapInArrow"):
        raise OptionError("data: a DataFrame of Spark, whose rows are made once for every pass: write it with df.write.parquet, and "
                          "give the names of the files")
    try:
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise OptionError("leakscope.spark needs the package `pyspark`: pip install pyspark") from missing
    session = spark if spark is not None else SparkSession.getActiveSession()
    if session is None:
        raise OptionError("spark=None: there is no active session: give one")
    place = folder(records)
    compute = _by_context if _has_context(session) else _by_frames

    with on(Machines(lambda name, work, parts: compute(session, name, work, parts, place), place)):
        return _models.audit(absolute(data), **_elsewhere(options))


def _has_context(session: Any) -> bool:
    """Whether this is a classic session: one of Spark Connect has no context."""
    return "connect" not in type(session).__module__


def _by_context(session: Any, name: str, work: bytes, parts: list[str], records: str | None) -> list[bytes]:
    context = session.sparkContext
    shared = context.broadcast(work)
    try:
        rows = context.parallelize(list(enumerate(parts)), len(parts))
        answers = dict(rows.map(lambda row: (row[0], run_part(shared.value, row[1], records))).collect())
    finally:
        shared.destroy()
    return [bytes(answers[at]) for at in range(len(parts))]


def _by_frames(session: Any, name: str, work: bytes, parts: list[str], records: str | None) -> list[bytes]:
    def answered(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            rows = batch.to_pydict()
            found = [run_part(work, part, records) for part in rows["part"]]
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(rows["at"], pyarrow.int64()), pyarrow.array(found, pyarrow.binary())],
                                                  names=["at", "answer"])

    frame = session.createDataFrame(list(enumerate(parts)), "at long, part string").repartition(len(parts), "at")
    rows = frame.mapInArrow(answered, "at long, answer binary").collect()
    answers = {row["at"]: bytes(row["answer"]) for row in rows}
    return [answers[at] for at in range(len(parts))]
