"""Questions on a Spark cluster (PySpark 3.5 or later, classic or Connect).

>>> from pyspark.sql import SparkSession                                    # doctest: +SKIP
>>> spark = SparkSession.builder.getOrCreate()                              # doctest: +SKIP
>>> result = leakscope.spark.audit(files, target="dose", sigma=0.4)         # doctest: +SKIP

Every part of a pass is a task: it reads its own row group or range of a file, which all executors must see under the same name, and
returns the state of a pass: kilobytes, or, with the η of its records, a few megabytes. No row goes through the engine. Tasks that Spark
runs again, or twice, come to the same bytes. Only where rows are in no file, in a DataFrame, do they go through the engine, as Arrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _machines, _memory, _models, _privacy
from ._docs import documented
from ._machines import Machines, Schema, ask, counted, folders
from ._native import OptionError
from ._requests import Path
from ._results import Audit, Balance, Bound, Release

__all__ = ["audit", "balance", "bound", "release"]

#: what parameters mean that a call of this module has and one machine has not
_OWN = {
    "data": "Names of files, CSV or Parquet, as the executors find them too; or a DataFrame of Spark, which is persisted meanwhile "
            "(values are then told apart by nobody: write it to Parquet for that).",
    "spark": "The session. By default the active one.",
    "records": "Folder for the table of records that all executors see; each part is a Parquet file in it, and ``result.records`` is a "
               "DataFrame of Spark over them. Without it none is written.",
}


@documented(**_OWN, options="Those of :func:`leakscope.audit`.")
def audit(data: Any, *, spark: Any = None, records: Path | None = None, scores: Path | None = None, resume: Path | None = None,
          **options: Any) -> Audit:
    """:func:`leakscope.audit` computed by the executors of a Spark cluster: the same numbers to the last digit."""
    tables, session = folders(records=records, scores=scores), _session(spark)
    result = _by_cluster(_models.audit, data, session, tables, options, resume)
    if "records" in tables:
        result.__dict__["records"] = session.read.parquet(tables["records"])
    return result


@documented(**_OWN, options="Those of :func:`leakscope.balance`.")
def balance(data: Any, *, spark: Any = None, resume: Path | None = None, **options: Any) -> Balance:
    """:func:`leakscope.balance` computed by the executors of a Spark cluster."""
    result: Balance = _by_cluster(_models.balance, data, _session(spark), {}, options, resume)
    return result


@documented(**_OWN, options="Those of :func:`leakscope.release`.")
def release(data: Any, *, spark: Any = None, resume: Path | None = None, **options: Any) -> Release:
    """:func:`leakscope.release` of files, computed by the executors of a Spark cluster; noise and ledger stay here."""
    result: Release = _by_cluster(_models.release, data, _session(spark), {}, options, resume)
    return result


@documented(**_OWN, options="Those of :func:`leakscope.bound`.")
def bound(data: Any, *, spark: Any = None, resume: Path | None = None, **options: Any) -> Bound:
    """:func:`leakscope.bound` on a secret of a table, computed by the executors of a Spark cluster (of linear regression; see
    :func:`leakscope.distributed.bound`)."""
    result: Bound = _by_cluster(_privacy.bound, data, _session(spark), {}, options, resume)
    return result


def _session(spark: Any) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise OptionError("leakscope.spark needs the package `pyspark`: pip install pyspark") from missing
    session = spark if spark is not None else SparkSession.getActiveSession()
    if session is None:
        raise OptionError("spark=None: there is no active session: give one")
    return session


def _by_cluster(question: Any, data: Any, session: Any, tables: Mapping[str, str], options: Mapping[str, Any],
                resume: Path | None) -> Any:
    if hasattr(data, "mapInArrow"):
        return _of_frame(question, data, session, tables, options, resume)
    compute = _by_context if _has_context(session) else _by_frames
    machines = Machines(lambda name, work, parts, partitions: compute(session, work, parts, tables), tables)
    return ask(question, data, machines, options, resume)


def _has_context(session: Any) -> bool:
    """Whether this is a classic session: one of Spark Connect has no context."""
    return "connect" not in type(session).__module__


def _by_context(session: Any, work: bytes, parts: list[bytes], tables: Mapping[str, str]) -> list[bytes]:
    context, folders = session.sparkContext, dict(tables)
    shared = context.broadcast(work)
    try:
        rows = context.parallelize(list(enumerate(parts)), len(parts))
        answers = dict(rows.map(lambda row: (row[0], _part(shared.value, row[1], folders))).collect())
    finally:
        shared.destroy()
    return [bytes(answers[at]) for at in range(len(parts))]


def _by_frames(session: Any, work: bytes, parts: list[bytes], tables: Mapping[str, str]) -> list[bytes]:
    folders = dict(tables)

    def answered(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            rows = batch.to_pydict()
            yield from (_answer(at, _part(work, bytes(part), folders)) for at, part in zip(rows["at"], rows["part"]))

    rows = [(at, bytearray(part)) for at, part in enumerate(parts)]
    frame = session.createDataFrame(rows, "at long, part binary").repartition(len(parts), "at")
    answers = _collected(frame, answered)
    return [answers[at] for at in range(len(parts))]


def _part(work: bytes, part: bytes, tables: Mapping[str, str]) -> bytes:
    """A part of files, in a worker of Spark's."""
    _memory.keep()
    return _machines.run_part(work, part, tables)


def _rows(work: bytes, part: bytes, rows: Any, tables: Mapping[str, str]) -> bytes:
    """A partition's rows, in a worker of Spark's."""
    _memory.keep()
    return _machines.run_partition(work, part, rows, tables)


def _answer(at: int, answer: bytes) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.array([at], pa.int64()), pa.array([answer], pa.binary())], names=["at", "answer"])


def _collected(frame: Any, function: Any) -> dict[int, bytes]:
    rows = frame.mapInArrow(function, "at long, answer binary").collect()
    return {row["at"]: bytes(row["answer"]) for row in rows}


def _of_frame(question: Any, data: Any, session: Any, tables: Mapping[str, str], options: Mapping[str, Any],
              resume: Path | None) -> Any:
    """A question about a DataFrame: its partitions are persisted, and read as Arrow in every pass."""
    held, folders = data.persist(), dict(tables)
    try:
        result = _collected(held, _counted)
        schema, partitions = None, []
        for at in range(max(result, default=-1) + 1):
            rows, ends, columns = _read(result[at]) if at in result else (0, 0, None)
            partitions.append((rows, ends))
            schema = schema or columns
        if schema is None:
            raise OptionError("data: a DataFrame without rows")

        def compute(name: str, work: bytes, parts: list[bytes], read: list[int] | None) -> list[bytes]:
            if read is None:
                by = _by_context if _has_context(session) else _by_frames
                return by(session, work, parts, folders)
            sent = dict(zip(read, parts))

            def answered(batches: Iterator[Any]) -> Iterator[Any]:
                at, rows = _partition(batches)
                if rows is not None:
                    yield _answer(at, _rows(work, sent[at], rows, folders))

            answers = _collected(held, answered)
            missing = [at for at in read if at not in answers]
            if missing:
                raise OptionError(f"data: partition {missing[0]} of the DataFrame had rows before and has none now: it must come "
                                  "out the same every time")
            return [answers[at] for at in read]

        plain = {**({"tell_budget": 0} if question is _models.audit else {}), **options}
        return ask(question, Schema(schema), Machines(compute, tables, partitions), plain, resume)
    finally:
        held.unpersist()


def _partition(batches: Iterator[Any]) -> tuple[int, Any]:
    """The number of the partition whose rows these are, and the rows."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    rows = [batch for batch in batches if batch.num_rows]
    return context.partitionId(), pa.Table.from_batches(rows) if rows else None


def _counted(batches: Iterator[Any]) -> Iterator[Any]:
    import json

    at, rows = _partition(batches)
    if rows is not None:
        count, ends = counted(rows)
        schema = rows.schema.remove_metadata().serialize().to_pybytes().hex()
        yield _answer(at, json.dumps([count, ends, schema]).encode())


def _read(result: bytes) -> tuple[int, int, Any]:
    import json

    import pyarrow as pa

    rows, ends, schema = json.loads(result)
    return rows, ends, pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(schema)))
