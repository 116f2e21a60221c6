"""Questions on a Dask cluster (Dask 2024 or later).

>>> from dask.distributed import Client                                     # doctest: +SKIP
>>> with Client(n_workers=4, threads_per_worker=1) as client:               # doctest: +SKIP
...     result = leakscope.dask.audit(files, target="dose", sigma=0.4, client=client)

Every part of a pass is a task: it reads its own row group or range of a file, which all workers must see under the same name, and
returns the state of a pass: kilobytes, or, with the η of its records, a few megabytes. Tasks that are lost with their worker are
computed again by Dask, and come to the same bytes. A DataFrame of Dask, whose rows may be in no file, is read partition by partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _memory, _models, _privacy
from ._docs import documented
from ._machines import Machines, Schema, ask, counted, folders, run_part, run_partition
from ._native import DataError, OptionError
from ._requests import Path
from ._results import Audit, Balance, Bound, Release

__all__ = ["audit", "balance", "bound", "release"]

#: what parameters mean that a call of this module has and one machine has not
_OWN = {
    "data": "Names of files, CSV or Parquet, as the workers find them too; or a DataFrame of Dask, whose partitions are kept on the "
            "workers meanwhile (values are then told apart by nobody: write it to Parquet for that).",
    "client": "The client of the cluster. By default the one that was made last.",
    "records": "Folder for the table of records that all workers see; each part is a Parquet file in it, and ``result.records`` is a "
               "DataFrame of Dask over them. Without it none is written.",
}


@documented(**_OWN, options="Those of :func:`leakscope.audit`.")
def audit(data: Any, *, client: Any = None, records: Path | None = None, scores: Path | None = None, retries: int = 2,
          resume: Path | None = None, **options: Any) -> Audit:
    """:func:`leakscope.audit` computed by the workers of a Dask cluster: the same numbers to the last digit."""
    tables = folders(records=records, scores=scores)
    result = _by_cluster(_models.audit, data, client, retries, tables, options, resume)
    if "records" in tables:
        import dask.dataframe

        result.__dict__["records"] = dask.dataframe.read_parquet(tables["records"])
    return result


@documented(**_OWN, options="Those of :func:`leakscope.balance`.")
def balance(data: Any, *, client: Any = None, retries: int = 2, resume: Path | None = None, **options: Any) -> Balance:
    """:func:`leakscope.balance` computed by the workers of a Dask cluster."""
    result: Balance = _by_cluster(_models.balance, data, client, retries, {}, options, resume)
    return result


@documented(**_OWN, options="Those of :func:`leakscope.release`.")
def release(data: Any, *, client: Any = None, retries: int = 2, resume: Path | None = None, **options: Any) -> Release:
    """:func:`leakscope.release` of files, computed by the workers of a Dask cluster; noise and ledger stay here."""
    result: Release = _by_cluster(_models.release, data, client, retries, {}, options, resume)
    return result


@documented(**_OWN, options="Those of :func:`leakscope.bound`.")
def bound(data: Any, *, client: Any = None, retries: int = 2, resume: Path | None = None, **options: Any) -> Bound:
    """:func:`leakscope.bound` on a secret of a table, computed by the workers of a Dask cluster (of linear regression; see
    :func:`leakscope.distributed.bound`)."""
    result: Bound = _by_cluster(_privacy.bound, data, client, retries, {}, options, resume)
    return result


def _by_cluster(question: Any, data: Any, client: Any, retries: int, tables: Mapping[str, str], options: Mapping[str, Any],
                resume: Path | None) -> Any:
    try:
        from distributed import get_client
    except ImportError as missing:
        raise OptionError("leakscope.dask needs the package `distributed`: pip install 'dask[distributed]'") from missing
    cluster = client if client is not None else get_client()
    if hasattr(data, "to_delayed") and hasattr(data, "npartitions"):
        return _of_frame(question, data, cluster, retries, tables, options, resume)

    def compute(name: str, work: bytes, parts: list[bytes], partitions: list[int] | None) -> list[bytes]:
        # A task and no scattered value: what a lost worker held is then made again.
        carried = cluster.submit(_carried, work, pure=False)
        key = f"leakscope-{name}-{carried.key}"
        futures = [cluster.submit(_part, carried, part, tables, pure=False, retries=retries, key=f"{key}-{at}")
                   for at, part in enumerate(parts)]
        answers: list[bytes] = cluster.gather(futures)
        return answers

    return ask(question, data, Machines(compute, tables), options, resume)


def _of_frame(question: Any, data: Any, cluster: Any, retries: int, tables: Mapping[str, str], options: Mapping[str, Any],
              resume: Path | None) -> Any:
    if not hasattr(data, "columns"):
        raise OptionError("data: a collection of Dask without columns: expected a DataFrame")
    # The partitions stay with the workers, and are made again where one is lost.
    frames = cluster.compute(data.to_delayed(), retries=retries)
    rows = [cluster.submit(_arrow, frame, pure=False, retries=retries) for frame in frames]
    schema = _common(cluster.gather([cluster.submit(_schema, table, pure=False) for table in rows]))
    rows = [cluster.submit(_cast, table, schema, pure=False, retries=retries) for table in rows]
    partitions = cluster.gather([cluster.submit(counted, table, pure=False) for table in rows])

    def compute(name: str, work: bytes, parts: list[bytes], read: list[int] | None) -> list[bytes]:
        carried = cluster.submit(_carried, work, pure=False)
        if read is None:
            tasks = [cluster.submit(_part, carried, part, tables, pure=False, retries=retries) for part in parts]
        else:
            tasks = [cluster.submit(_partition, carried, part, rows[at], tables, pure=False, retries=retries)
                     for part, at in zip(parts, read)]
        answers: list[bytes] = cluster.gather(tasks)
        return answers

    plain = {**({"tell_budget": 0} if question is _models.audit else {}), **options}
    return ask(question, Schema(schema), Machines(compute, tables, partitions), plain, resume)


def _carried(work: bytes) -> bytes:
    return work


def _part(work: bytes, part: bytes, tables: Mapping[str, str]) -> bytes:
    with _memory.kept():
        return run_part(work, part, tables)


def _partition(work: bytes, part: bytes, rows: Any, tables: Mapping[str, str]) -> bytes:
    with _memory.kept():
        return run_partition(work, part, rows, tables)


def _arrow(frame: Any) -> Any:
    """A partition as Arrow, its categories as texts: partitions need not have the same levels."""
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table


def _schema(table: Any) -> Any:
    return table.schema if table.num_rows else None


def _common(schemas: list[Any]) -> Any:
    """The columns that all partitions have, of types that hold them all."""
    import pyarrow as pa

    result = None
    for at, schema in enumerate(schemas):
        if schema is None:
            continue
        if result is None:
            result = schema
            continue
        if schema.names != result.names:
            odd = sorted(set(schema.names) ^ set(result.names)) or schema.names
            raise DataError(f"partition {at}: its columns are not those of the others: {', '.join(odd)}")
        try:
            result = pa.unify_schemas([result, schema], promote_options="permissive")
        except pa.ArrowException as unlike:
            raise DataError(f"partition {at}: a column of it is of another type than in the others: {unlike}") from unlike
    if result is None:
        raise DataError("DataFrame: no rows of data")
    return result


def _cast(table: Any, schema: Any) -> Any:
    return table.cast(schema)
