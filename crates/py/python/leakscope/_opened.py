"""Pipelines opened: which column of the caller's frame each column of a model comes from, and how.

What can be opened is audited in the caller's own columns and units, a one-hot block being one attribute: scalers that move and
stretch each column on its own, one-hot encoders, imputers, column transformers and pipelines of these. Whatever else a pipeline does
is named in :class:`Unopened`, and the columns that the model sees are audited instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _native
from ._tables import Data, column_of, is_frame, kind_of, level
from ._tables import _column as add_column

#: how far the columns of the model may be from what they were opened to, in their own spread
SAME = 1e-8


class Unopened(Exception):
    """A step that is not a function of one column each."""


@dataclass(frozen=True)
class Number:
    """A number of the frame, ``(x − centre)/scale``."""

    source: str
    centre: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Indicator:
    """Whether a column of the frame has a level."""

    source: str
    level: str


@dataclass
class Opened:
    """The columns of a model in terms of a frame."""

    columns: list[Number | Indicator]
    #: what stands in for missing values
    fills: dict[str, Any]
    one_hot: str
    #: the columns of the frame that are used, in its order
    sources: list[str]
    #: numbers by their own mean and deviation
    own: set[str] = field(default_factory=set)
    #: whether something stands in for a value that is missing
    filled: bool = False

    @property
    def categories(self) -> list[str]:
        """Columns that are categories."""
        return list(dict.fromkeys(c.source for c in self.columns if isinstance(c, Indicator)))

    def names(self) -> list[str]:
        """The columns of the model as an audit names them."""
        return [c.source if isinstance(c, Number) else f"{c.source}={c.level}" for c in self.columns]

    def keywords(self) -> dict[str, Any]:
        """Keywords of the audit that follow."""
        scales = [(c.source, None if c.source in self.own else (c.centre, c.scale))
                  for c in self.columns if isinstance(c, Number)]
        return {"scale": "standard" if self.own else "none", "scales": scales, "one_hot": self.one_hot,
                "categorical": self.categories}

    def is_moved_by_rows(self) -> bool:
        """Whether gaps were filled, or columns scaled, by numbers of the rows that an audit takes as given: other than means and standard
        deviations, which it counts."""
        return self.filled or any(
            isinstance(c, Number) and c.source not in self.own and (c.centre, c.scale) != (0.0, 1.0) for c in self.columns)

    def values(self, x: Any, source: str) -> np.ndarray[Any, Any]:
        """A column of the frame: numbers, or levels as texts, with what was filled in."""
        raw = _raw(x, source)
        if source in self.categories:
            fill = self.fills.get(source)
            return np.array([level(fill if _missing(v) and fill is not None else v) for v in raw.tolist()], dtype=object)
        try:
            numbers = np.asarray(raw, dtype=np.float64)
        except (TypeError, ValueError) as e:
            raise Unopened(f"column `{source}` holds no numbers") from e
        return np.where(np.isnan(numbers), self.fills.get(source, np.nan), numbers)

    def table(self, x: Any, name: str) -> Data:
        """The native table of some rows."""
        table = _native.Table(name)
        rows = len(_raw(x, self.sources[0]))
        for source in self.sources:
            add_column(table, source, self.values(x, source), rows)
        index = getattr(x, "index", None) if kind_of(x) == "pandas" else None
        return Data(table, [], kind_of(x), index=index)

    def matrix(self, x: Any) -> np.ndarray[Any, Any]:
        """What the model sees of some rows, from the frame."""
        values = {source: self.values(x, source) for source in self.sources}
        return np.column_stack([
            (values[c.source] - c.centre) / c.scale if isinstance(c, Number) else (values[c.source] == c.level).astype(float)
            for c in self.columns])


def opened(steps: Any, x: Any, seen: np.ndarray[Any, Any]) -> Opened:
    """The steps before a model, opened; ``seen`` is what they make of ``x``."""
    names = _names(x)
    fills: dict[str, Any] = {}
    state = _walk(steps, [Number(name) for name in names], fills)
    return checked([_as_column(c) for c in state], fills, names, x, seen)


def checked(
    columns: Sequence[Number | Indicator], fills: dict[str, Any], names: Sequence[str], x: Any, seen: np.ndarray[Any, Any]
) -> Opened:
    """Columns with the encoding that has them, compared with what the model sees."""
    used = [name for name in names if any(c.source == name for c in columns)]
    result = Opened(list(columns), fills, "drop-first", used)
    numbers = [c.source for c in columns if isinstance(c, Number)]
    if len(set(numbers)) < len(numbers) or set(numbers) & set(result.categories):
        raise Unopened("a column that is used twice")
    if not used:
        raise Unopened("no column of the frame")
    result.one_hot = _one_hot(result, x)
    rebuilt = result.matrix(x)
    if rebuilt.shape != seen.shape or not np.allclose(rebuilt, seen, rtol=SAME, atol=SAME * max(1.0, np.abs(seen).max())):
        raise Unopened("a step whose columns could not be followed")
    result.filled = any(_missing(v) for source in set(fills) & set(used) for v in _raw(x, source).tolist())
    for c in columns:
        if isinstance(c, Number):
            values = result.values(x, c.source)
            mean, deviation = values.mean(), values.std()
            if abs(c.centre - mean) <= 1e-9 * max(abs(mean), deviation) and abs(c.scale - (deviation or 1.0)) <= 1e-9 * c.scale:
                result.own.add(c.source)
    return result


def _one_hot(result: Opened, x: Any) -> str:
    """Which levels have a column: the same for all categories."""
    kinds = set()
    for source in result.categories:
        there = sorted(set(result.values(x, source).tolist()))
        have = [c.level for c in result.columns if isinstance(c, Indicator) and c.source == source]
        if sorted(have) == there and len(set(have)) == len(have):
            kinds.add("full")
        elif sorted(have) == there[1:]:
            kinds.add("drop-first")
        elif sorted(have) == there[:-1]:
            kinds.add("drop-last")
        else:
            raise Unopened(f"an encoder of `{source}` whose levels are not those of the rows")
    if len(kinds) > 1:
        raise Unopened("encoders that drop different levels")
    return kinds.pop() if kinds else "drop-first"


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _names(x: Any) -> list[str]:
    if is_frame(x):
        return [str(c) for c in getattr(x, "column_names", getattr(x, "columns", []))]
    return [f"x{j}" for j in range(np.shape(x)[1])]


def _raw(x: Any, source: str) -> np.ndarray[Any, Any]:
    if is_frame(x):
        values = column_of(x, source, "X")
        return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    return np.asarray(x)[:, int(source[1:])]


@dataclass(frozen=True)
class _Levels:
    source: str
    level: str


def _as_column(c: Any) -> Number | Indicator:
    return Indicator(c.source, c.level) if isinstance(c, _Levels) else c


def _walk(step: Any, state: list[Any], fills: dict[str, Any]) -> list[Any]:
    """What a fitted step makes of columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    from ._sklearn_stand_ins import ActiveColumns

    if step is None or (isinstance(step, str) and step == "passthrough"):
        return state
    if isinstance(step, str) and step == "drop":
        return []
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            state = _walk(inner, state, fills)
        return state
    if isinstance(step, ColumnTransformer):
        names = [str(c) for c in getattr(step, "feature_names_in_", [])]
        return [c for _, inner, chosen in step.transformers_
                for c in _walk(inner, [state[i] for i in _positions(chosen, names, len(state))], fills)]
    if isinstance(step, FunctionTransformer) and step.func is None:
        return state
    if isinstance(step, ActiveColumns):
        # scales read off the rows move the ℓ₁ term too, which an audit of them does not count
        raise Unopened("a pipeline before an ℓ₁ penalty")
    if isinstance(step, SimpleImputer):
        return _filled(step, state, fills)
    if isinstance(step, OneHotEncoder):
        return _encoded(step, state)
    return _stretched(step, state)


def _positions(chosen: Any, names: list[str], count: int) -> list[int]:
    if isinstance(chosen, slice):
        def edge(at: Any, end: int) -> Any:
            return names.index(at) + end if isinstance(at, str) else at

        return list(range(count))[slice(edge(chosen.start, 0), edge(chosen.stop, 1), chosen.step)]
    listed = [chosen] if isinstance(chosen, (str, int, np.integer)) else list(np.asarray(chosen).tolist())
    if listed and all(isinstance(c, bool) for c in listed):
        return [i for i, c in enumerate(listed) if c]
    return [names.index(c) if isinstance(c, str) else range(count)[int(c)] for c in listed]


def _filled(step: Any, state: list[Any], fills: dict[str, Any]) -> list[Any]:
    if step.add_indicator:
        raise Unopened("SimpleImputer(add_indicator=True)")
    for c, value in zip(state, step.statistics_):
        if not isinstance(c, Number):
            raise Unopened("SimpleImputer after an encoder")
        if _missing(value):
            raise Unopened(f"SimpleImputer of `{c.source}`, which has no values")
        fills[c.source] = c.centre + c.scale * value if isinstance(value, (int, float, np.number)) else value
    return state


def _encoded(step: Any, state: list[Any]) -> list[Any]:
    if any(c is not None for c in getattr(step, "infrequent_categories_", None) or []):
        raise Unopened("OneHotEncoder that merges rare levels")
    out: list[Any] = []
    for k, (c, categories) in enumerate(zip(state, step.categories_)):
        if not isinstance(c, Number) or (c.centre, c.scale) != (0.0, 1.0):
            raise Unopened("OneHotEncoder of a column that was changed before")
        dropped = None if step.drop_idx_ is None else step.drop_idx_[k]
        kept = [value for i, value in enumerate(categories.tolist()) if i != dropped]
        if any(_missing(value) for value in kept):
            raise Unopened(f"OneHotEncoder of missing values of `{c.source}`")
        out += [_Levels(c.source, level(value)) for value in kept]
    return out


def _stretched(step: Any, state: list[Any]) -> list[Any]:
    """Scalers: ``z = (x − m)/s`` column by column."""
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    nothing, one = np.zeros(len(state)), np.ones(len(state))
    if type(step) is StandardScaler:
        m = step.mean_ if step.with_mean else nothing
        s = step.scale_ if step.with_std else one
    elif type(step) is RobustScaler:
        m = step.center_ if step.with_centering else nothing
        s = step.scale_ if step.with_scaling else one
    elif type(step) is MaxAbsScaler:
        m, s = nothing, step.scale_
    elif type(step) is MinMaxScaler and not step.clip:
        m, s = -step.min_ / step.scale_, 1.0 / step.scale_
    else:
        raise Unopened(type(step).__name__)
    if not all(isinstance(c, Number) for c in state):
        raise Unopened(f"{type(step).__name__} after an encoder")
    return [Number(c.source, c.centre + c.scale * float(a), c.scale * float(b)) for c, a, b in zip(state, m, s)]
