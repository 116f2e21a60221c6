"""Who computes the passes of a question, where that is not this process."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from . import _native
from ._docs import documented
from ._native import OptionError
from ._tables import Data

#: gets the pass's name, the pass, its parts and, for a data frame, the partition that each part is; gives an answer for every part,
#: in their order
Compute = Callable[[str, bytes, list[bytes], "list[int] | None"], Sequence[bytes]]

#: what the table of a data frame of an engine is called
FRAME = "DataFrame"

_R = TypeVar("_R")


@dataclass(frozen=True)
class Machines:
    """A function that has the parts of a pass computed, and where their tables go."""

    compute: Compute
    #: folders of tables, by their names
    tables: Mapping[str, str] = field(default_factory=dict)
    #: rows and checksum of every partition, where the data are a data frame of an engine
    partitions: Sequence[tuple[int, int]] | None = None

    def native(self) -> _native.Machines:
        """As the native side takes them."""
        return _native.Machines(self.compute, {} if self.partitions is None else {FRAME: list(self.partitions)})

    def check(self, tables: Mapping[str, Data | None]) -> None:
        """Machines read files and partitions, and nothing that is in the memory of this one."""
        for name, table in tables.items():
            if table is None or table.table is None or (name == "data" and self.partitions is not None):
                continue
            raise OptionError(f"{name}: it is in memory here, where other machines cannot read it: write it to Parquet files "
                              "that all of them see, and give their names")


#: where questions look for machines
MACHINES: ContextVar[Machines | None] = ContextVar("leakscope_machines", default=None)


@contextlib.contextmanager
def on(machines: Machines) -> Iterator[None]:
    """Lets questions run on machines."""
    token = MACHINES.set(machines)
    try:
        yield
    finally:
        MACHINES.reset(token)


def of_question(**tables: Data | None) -> _native.Machines | None:
    """The machines of a question about these tables; none where it is answered here."""
    machines = MACHINES.get()
    if machines is None:
        return None
    machines.check(tables)
    return machines.native()


def ask(question: Callable[..., _R], data: Any, machines: Machines, options: Mapping[str, Any], resume: Any = None) -> _R:
    """Asks a question with its passes computed by machines; what is in the folder ``resume`` is not computed again."""
    others = {name: absolute(options[name]) for name in ("test", "score", "shape_from") if name in options}
    options = {**options, **others}
    if resume is not None:
        folder = os.path.abspath(resume)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        machines = replace(machines, compute=_once(machines, folder))
        if "seed" in inspect.signature(question).parameters and options.get("seed") is None:
            options["seed"] = _seed(folder)
    with on(machines):
        return question(absolute(data), **options)


def _once(machines: Machines, folder: str) -> Compute:
    """What has passes computed, but for those whose answers are in a folder."""

    def compute(name: str, work: bytes, parts: list[bytes], partitions: list[int] | None) -> Sequence[bytes]:
        digest = hashlib.sha256()
        rest = repr((partitions, machines.partitions, sorted(machines.tables.items()))).encode()
        for piece in (work, *parts, rest):
            digest.update(len(piece).to_bytes(8, "little") + piece)
        path = os.path.join(folder, f"{name}-{digest.hexdigest()[:24]}.pass")
        answers = _answers(path, len(parts))
        if answers is None:
            answers = [bytes(answer) for answer in machines.compute(name, work, parts, partitions)]
            content = b"".join(len(answer).to_bytes(8, "little") + answer for answer in answers)
            _write(path, hashlib.sha256(content).digest() + content)
        return answers

    return compute


def _answers(path: str, count: int) -> list[bytes] | None:
    """The answers that a file holds; none where there is no such file, or not all of it."""
    try:
        with open(path, "rb") as file:
            digest, content = file.read(32), file.read()
    except FileNotFoundError:
        return None
    if hashlib.sha256(content).digest() != digest:
        return None
    answers, at = [], 0
    while at < len(content):
        length = int.from_bytes(content[at:at + 8], "little")
        answers.append(content[at + 8:at + 8 + length])
        at += 8 + length
    return answers if len(answers) == count else None


def _write(path: str, content: bytes) -> None:
    """A file whole or not at all, for its owner alone."""
    handle, name = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _seed(folder: str) -> int:
    """The seed of whoever began."""
    path = os.path.join(folder, "seed")
    if not os.path.exists(path):
        _write(path, str(secrets.randbits(53)).encode())
    with open(path, encoding="ascii") as file:
        return int(file.read())


def absolute(data: Any) -> Any:
    """Names of files as other processes find them."""
    if isinstance(data, (str, os.PathLike)):
        # an object in a store has the same name everywhere
        return data if "://" in os.fspath(data) else os.path.abspath(data)
    if isinstance(data, (list, tuple)) and all(isinstance(d, (str, os.PathLike)) for d in data):
        return [absolute(d) for d in data]
    return data


def folders(**tables: Any) -> dict[str, str]:
    """The folders of tables, made where they are not there."""
    result = {}
    for name, place in tables.items():
        if place is not None:
            result[name] = os.path.abspath(place)
            os.makedirs(result[name], exist_ok=True)
    return result


@documented(work="Which pass, as it was handed out.", part="Which rows, as they were handed out.",
            tables="Folders for records and scores.")
def run_part(work: bytes, part: bytes, tables: Mapping[str, str] | None = None) -> bytes:
    """Computes one part of a pass over files: what a task calls, on any machine."""
    return _native.run_part(work, part, dict(tables or {}))


def run_partition(work: bytes, part: bytes, rows: Any, tables: Mapping[str, str] | None = None) -> bytes:
    """Computes one part of a pass over the rows of a partition, a table of pyarrow."""
    return _native.run_part(work, part, dict(tables or {}), _rows(rows))


def counted(rows: Any) -> tuple[int, int]:
    """Number of rows of a partition, a table of pyarrow, and a checksum of its ends."""
    return _native.partition(_rows(rows)) if rows.num_rows else (0, 0)


def _rows(rows: Any) -> _native.Table:
    table = _native.Table(FRAME)
    table.arrow(rows)
    return table


class Schema:
    """The columns of a data frame of an engine, without its rows."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        nothing = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self.schema], schema=self.schema)
        return pa.RecordBatchReader.from_batches(self.schema, [nothing]).__arrow_c_stream__(requested_schema)


# messages call a table without a name by its type
Schema.__name__ = FRAME
