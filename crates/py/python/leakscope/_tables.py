"""Arrays and frames of any kind to a native table, and results back to frames of the caller's kind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _native
from ._native import DataError


@dataclass
class Data:
    """What a caller gave: a native table or files, and how results are to look."""

    table: _native.Table | None
    files: list[str]
    #: ``pandas``, ``polars``, ``pyarrow`` or ``numpy``
    kind: str
    target: str | None = None
    #: the index of a pandas frame
    index: Any = None
    #: column that names records
    id: str | None = None
    #: whether that column is the index
    id_is_index: bool = False
    #: columns that were added, and are no features
    drop: list[str] = field(default_factory=list)
    group: str | None = None
    weights: str | None = None


def is_estimator(data: Any) -> bool:
    """Whether this is something with ``fit`` and ``get_params``, as scikit-learn has it."""
    return hasattr(data, "fit") and hasattr(data, "get_params") and not isinstance(data, type)


def _module(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def kind_of(data: Any) -> str:
    """The kind of frame that results should be."""
    module = _module(data)
    return module if module in ("pandas", "polars", "pyarrow") else "numpy"


def is_frame(data: Any) -> bool:
    """Whether this has named columns."""
    return kind_of(data) != "numpy" or hasattr(data, "__arrow_c_stream__")


def is_files(data: Any) -> bool:
    """Whether this names files."""
    if isinstance(data, (str, os.PathLike)):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(d, (str, os.PathLike)) for d in data)


def read(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    group: Any = None,
    id: Any = None,
    weights: Any = None,
    columns: Sequence[str] | None = None,
    drop: Iterable[str] = (),
    name: str | None = None,
    like: Data | None = None,
    need_target: bool = True,
) -> Data:
    """A table of what the caller gave; with ``like``, another one of the same layout, whose target may be absent."""
    if is_files(data):
        if y is not None:
            raise DataError("y: a file holds its target itself: name its column with target=")
        files = [data] if isinstance(data, (str, os.PathLike)) else list(data)
        result = Data(None, [os.fspath(f) for f in files], "numpy", target=target)
        return _with_roles(result, None, group, id, weights)
    if isinstance(data, dict):
        raise DataError("a dict is no table: make a DataFrame of it, for example pandas.DataFrame(data)")
    result = _frame(data, set(drop), name) if is_frame(data) else _array(data, columns, name)
    table = result.table
    assert table is not None
    if y is not None:
        if target is not None and is_frame(data) and target in table.names():
            raise DataError(f"`{target}`: the target is a column already: give y or target, not both")
        result.target = (like.target if like else None) or target or _name_of(y, "y")
        if result.target in table.names():
            raise DataError(f"`{result.target}`: y has the name of a column: rename one of them, or give target=")
        check_order(y, result.index, "y")
        _column(table, result.target, y, len(table))
    else:
        result.target = target or (like.target if like else None)
    if result.target is None and need_target:
        raise DataError("what is to be predicted? give y as the second argument, or name a column with target=")
    return _with_roles(result, table, group, id, weights)


def _with_roles(result: Data, table: _native.Table | None, group: Any, id: Any, weights: Any) -> Data:
    def role(source: Any, default: str) -> str | None:
        if source is None or isinstance(source, str):
            return source
        if table is None:
            raise DataError(f"{default}: name a column of the file")
        check_order(source, result.index, default)
        column = _name_of(source, default)
        while column in table.names():
            column += "_"
        _column(table, column, source, len(table))
        return column

    result.group = role(group, "group")
    if result.group is not None and not isinstance(group, str):
        result.drop.append(result.group)
    result.weights = role(weights, "weights")
    given_id = role(id, "id")
    if given_id is not None:
        if result.id is not None:
            # The index names records no longer.
            result.drop.append(result.id)
        result.id, result.id_is_index = given_id, False
    return result


def _name_of(values: Any, default: str) -> str:
    name = getattr(values, "name", None)
    return str(name) if isinstance(name, (str, int)) and str(name) else default


def dense(x: Any, name: str) -> np.ndarray[Any, Any]:
    """A two-dimensional array of float64 or float32; as it is where it is one."""
    if _module(x) == "scipy":
        raise DataError(f"{name}: a sparse matrix: make it dense with {name}.toarray()")
    if isinstance(x, np.ma.MaskedArray):
        x = np.where(np.ma.getmaskarray(x), np.nan, np.ma.getdata(x))
    if isinstance(x, (list, tuple)):
        try:
            x = np.asarray(x)
        except ValueError as e:
            raise DataError(f"{name}: rows of different lengths: every row needs one value a column") from e
    if not isinstance(x, np.ndarray):
        if not hasattr(x, "__array__"):
            raise DataError(
                f"{name}: {type(x).__name__} is no table: expected a two-dimensional array, a DataFrame of pandas, "
                "polars or pyarrow, file names, or a fitted scikit-learn estimator"
            )
        x = np.asarray(x)
    if x.ndim != 2:
        hint = f": use {name}.reshape(-1, 1) if it is one column" if x.ndim == 1 else ""
        raise DataError(f"{name}: {x.ndim} dimensions: expected two, rows and columns{hint}")
    if x.dtype.kind in "OSU" or x.dtype.names:
        raise DataError(
            f"{name}: an array of {x.dtype} has no numbers: convert it with {name}.astype(float), or give a DataFrame "
            "whose columns have types of their own (texts become categories)"
        )
    if x.dtype.kind not in "biuf":
        raise DataError(f"{name}: an array of {x.dtype}: expected real numbers")
    if x.dtype not in (np.float64, np.float32) or not x.dtype.isnative:
        x = x.astype(np.float64)
    if x.shape[1] == 0:
        raise DataError(f"{name}: no columns: there is nothing to predict from")
    if x.shape[0] == 0:
        raise DataError(f"{name}: no rows of data")
    return x


def _array(x: Any, columns: Sequence[str] | None, name: str | None) -> Data:
    x = dense(x, name or "X")
    names = [f"x{j}" for j in range(x.shape[1])] if columns is None else [str(c) for c in columns]
    if len(names) != x.shape[1]:
        raise DataError(f"columns: {len(names)} names for {x.shape[1]} columns of {name or 'X'}")
    table = _native.Table(name or "X")
    table.matrix(names, x)
    return Data(table, [], "numpy")


def _frame(data: Any, drop: set[str], name: str | None) -> Data:
    kind = kind_of(data)
    if kind == "pandas":
        return _pandas(data, drop, name)
    if kind == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if kind == "polars":
        import polars as pl

        # A column of nothing has no type, and not every reader of Arrow takes such a one.
        nothing = [name for name, dtype in data.schema.items() if dtype == pl.Null]
        data = data.with_columns(pl.col(name).cast(pl.Float64) for name in nothing) if nothing else data
    if not hasattr(data, "__arrow_c_stream__"):
        raise DataError(f"{type(data).__name__} is no table: expected a DataFrame, or a pyarrow Table or RecordBatch")
    table = _native.Table(name or type(data).__name__)
    table.arrow(data)
    return Data(table, [], "pyarrow" if kind == "numpy" else kind)


def _pandas(data: Any, drop: set[str], name: str | None) -> Data:
    import pandas as pd

    if isinstance(data, pd.Series):
        raise DataError("a Series is one column: expected a DataFrame (use .to_frame())")
    if isinstance(data.columns, pd.MultiIndex):
        raise DataError("DataFrame: columns of several levels: join them into one, for example with "
                        "df.columns.map('_'.join)")
    if not data.index.is_unique:
        twice = data.index[data.index.duplicated()][0]
        raise DataError(f"DataFrame: the index has {_shown(twice)} twice, so records could not be told apart: use "
                        "df.reset_index(drop=True), or an index without repetitions")
    table = _native.Table(name or "DataFrame")
    for position, column in enumerate(data.columns):
        values = data.iloc[:, position]
        if str(column) in drop and not _readable(values):
            table.texts(str(column), [None] * len(data))
        else:
            _column(table, str(column), values, len(data))
    result = Data(table, [], "pandas", index=data.index)
    counted = isinstance(data.index, pd.RangeIndex) and data.index.start == 0 and data.index.step == 1
    if not counted:
        result.id = str(data.index.name or "index")
        while result.id in table.names():
            result.id += "_"
        result.id_is_index = True
        table.texts(result.id, [str(label) for label in data.index])
    return result


def _shown(label: Any) -> str:
    """A label of an index as people write it, not as numpy does."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def check_order(values: Any, index: Any, name: str) -> None:
    """Refuses a Series that has labels of the rows, but not in their order: pairing by position would mix records up."""
    other = getattr(values, "index", None)
    if index is None or other is None or kind_of(values) != "pandas" or len(other) != len(index) or other.equals(index):
        return
    if index.isin(other).any():
        at = next(i for i, (a, b) in enumerate(zip(index, other)) if not (a is b or a == b))
        raise DataError(f"{name}: its index is not that of the rows: row {at} is {_shown(index[at])} there and "
                        f"{_shown(other[at])} here: align it with {name}.loc[X.index], or pair by position with "
                        f"{name}.to_numpy()")


def column_of(data: Any, name: str, role: str) -> Any:
    """A column of a frame by its name."""
    if kind_of(data) == "polars" and hasattr(data, "collect"):
        data = data.collect()
    columns = list(getattr(data, "column_names", getattr(data, "columns", [])))
    at = [position for position, column in enumerate(columns) if str(column) == name]
    if len(at) != 1:
        result = ", ".join(map(str, columns))
        raise DataError(f"{role}: there is {'no' if not at else 'more than one'} column `{name}` in X; it has {result}")
    return data.iloc[:, at[0]] if kind_of(data) == "pandas" else data[columns[at[0]]]


def _readable(values: Any) -> bool:
    try:
        _column(_native.Table(""), "", values, len(values))
    except DataError:
        return False
    return True


def _column(table: _native.Table, name: str, values: Any, rows: int) -> None:
    """Adds a column of numbers, of booleans or of texts (categories)."""
    if not hasattr(values, "__len__"):
        raise DataError(f"{name}: {values!r}: expected one value for each of {rows} rows")
    if len(values) != rows and (rows or table.names()):
        raise DataError(f"{name}: {len(values)} values, but there are {rows} rows: they must be as many")
    if _module(values) == "pandas":
        return _pandas_column(table, name, values)
    if _module(values) == "polars":
        values = values.to_arrow()
    if _module(values) == "pyarrow":
        import pyarrow as pa

        table.arrow(pa.table({name: values}))
        return None
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{name}: {array.ndim} dimensions: expected one, a value for each row")
    return _numpy_column(table, name, array)


def _pandas_column(table: _native.Table, name: str, values: Any) -> None:
    import pandas as pd

    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [level(c) for c in dtype.categories]
        return table.levels(name, values.cat.codes.to_numpy().astype(np.int32), levels)
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return _numpy_column(table, name, values.to_numpy())
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _numpy_column(table, name, values.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
    if pd.api.types.is_bool_dtype(dtype):
        codes = values.astype("Int8").fillna(-1).to_numpy(dtype=np.int32)
        return table.levels(name, codes, ["false", "true"])
    if pd.api.types.is_numeric_dtype(dtype):
        return table.array(name, values.to_numpy(dtype=np.float64, na_value=np.nan))
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    if inferred in ("string", "boolean"):
        codes, levels = pd.factorize(values)
        return table.levels(name, codes.astype(np.int32), [level(c) for c in levels])
    if inferred in ("date", "datetime"):
        return _numpy_column(table, name, pd.to_datetime(values, utc=True).dt.tz_localize(None).to_numpy())
    if inferred in ("integer", "floating", "mixed-integer-float", "decimal", "empty"):
        return table.array(name, pd.to_numeric(values).to_numpy(dtype=np.float64, na_value=np.nan))
    raise DataError(_no_encoding(name, inferred if isinstance(dtype, np.dtype) else str(dtype)))


def _no_encoding(name: str, subject: str) -> str:
    return (f"column `{name}` holds {subject} values, which have no encoding: convert it to numbers or texts, or leave it "
            "out with drop")


def level(value: Any) -> str:
    """A level as the command line names it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _dates(table: _native.Table, name: str, array: np.ndarray[Any, Any]) -> None:
    """Dates as Arrow has them, so that they are read as those of a file are, remarks included."""
    if not _there("pyarrow"):
        raise DataError(f"column `{name}` holds dates, which are read with pyarrow: install it, convert the column to numbers, or leave "
                        "it out with drop")
    import pyarrow as pa

    table.arrow(pa.table({name: pa.array(array.astype("datetime64[us]"))}))


def _numpy_column(table: _native.Table, name: str, array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind == "M":
        return _dates(table, name, array)
    if array.dtype.kind == "b":
        return table.levels(name, array.astype(np.int32), ["false", "true"])
    if array.dtype.kind in "iuf":
        plain = array.dtype in (np.float64, np.float32) and array.dtype.isnative
        return table.array(name, array if plain else array.astype(np.float64))
    if array.dtype.kind in "US":
        levels, codes = np.unique(array.astype(str), return_inverse=True)
        return table.levels(name, codes.astype(np.int32), [str(level) for level in levels])
    if array.dtype.kind == "O":
        missing = np.array([v is None or (isinstance(v, float) and v != v) for v in array], dtype=bool)
        present = array[~missing]
        if all(isinstance(v, (str, bool, np.bool_)) for v in present):
            codes = np.full(len(array), -1, dtype=np.int32)
            levels, codes[~missing] = np.unique([level(v) for v in present], return_inverse=True)
            return table.levels(name, codes, [str(level) for level in levels])
        if all(isinstance(v, (int, float, np.number)) for v in present):
            numbers = np.array([np.nan if gone else float(v) for v, gone in zip(array, missing)])
            return table.array(name, numbers)
        types = sorted({type(v).__name__ for v in present})
        raise DataError(_no_encoding(name, " and ".join(types)))
    raise DataError(_no_encoding(name, str(array.dtype)))


def frame_kind(kind: str) -> str:
    """The kind of frame that a kind of caller gets."""
    if kind != "numpy":
        return kind
    return next((k for k in ("pandas", "polars", "pyarrow") if _there(k)), "numpy")


def array_of(table: _native.ResultTable, name: str) -> Any:
    """A column of a table of results: an array of numbers, or a list of texts."""
    kind, values = table.column(name)
    return values if kind in ("str", "object") else np.frombuffer(values, dtype=kind)


def frame(kind: str, table: _native.ResultTable, index: Any = None, index_name: str | None = None) -> Any:
    """A frame of a kind; ``numpy`` means pandas, polars or pyarrow, whichever is there, or a dict of arrays.

    Where frames have an index it is ``index``, or the column ``index_name``.
    """
    kind = frame_kind(kind)
    if kind == "pandas":
        import pandas as pd

        columns = {name: array_of(table, name) for name in table.names()}
        if index is None and index_name is not None:
            index = pd.Index(columns.pop(index_name), name=index_name)
        return pd.DataFrame(columns, index=index)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(table)
    if kind == "pyarrow":
        import pyarrow as pa

        return pa.table(table)
    return {name: np.asarray(array_of(table, name)) for name in table.names()}


def _there(module: str) -> bool:
    if module in sys.modules:
        return True
    from importlib.util import find_spec

    return find_spec(module) is not None
