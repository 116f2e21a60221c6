"""What the functions return: numbers by name, tables of the caller's kind, the page, the summary."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._native import LeakscopeError
from ._tables import Data, frame, frame_kind, numbers


@dataclass
class _Kept:
    """What a native outcome says, in plain values that can be pickled."""

    document: str
    html: str | None
    text: str
    files: list[Path]
    tables: dict[str, Any]

    def json(self) -> str:
        return self.document

    def page(self) -> str | None:
        return self.html

    def summary(self, width: int) -> str:
        return self.text

    def written(self) -> list[Path]:
        return self.files

    def table(self, name: str) -> Any:
        return self.tables.get(name)

    def write(self, out: str, csv: bool) -> list[Path]:
        raise LeakscopeError("this result was pickled: save it where it was computed; report and to_json work here too")


class Result:
    """What a function found.

    ``data`` has everything by name, as the command prints it with ``--json``; ``result["name"]`` is short for
    ``result.data["name"]``.
    """

    def __init__(self, outcome: _native.Outcome | _Kept, given: Data | None = None) -> None:
        self._outcome = outcome
        self._given = given

    def to_json(self) -> str:
        """The document, as the command prints it with ``--json``."""
        return self._outcome.json()

    @cached_property
    def data(self) -> dict[str, Any]:
        """The same, parsed."""
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: everything that can be asked for; :meth:`save` alone needs the result that was computed."""
        outcome: Any = self._outcome
        tables = {name: outcome.table(name) for name in ("records", "scores", "weights")}
        kept = outcome if isinstance(outcome, _Kept) else _Kept(
            outcome.json(), outcome.page(), outcome.summary(80), outcome.written(), tables)
        return {"_outcome": kept, "_given": None if self._given is None else replace(self._given, table=None)}

    def summary(self, width: int = 80) -> str:
        """A screenful of text, as the command prints it."""
        return self._outcome.summary(width)

    def __repr__(self) -> str:
        return f"<leakscope.{type(self).__name__}\n{self.summary()}>"

    def _repr_html_(self) -> str:
        page = self._outcome.page()
        if page is None:
            return f"<pre>{html.escape(self.summary())}</pre>"
        return (f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts allow-popups" '
                'style="width: 100%; height: 640px; border: 0"></iframe>')

    def _table(self, name: str, by_position: bool = True) -> Any:
        table = self._outcome.table(name)
        if table is None:
            return None
        given = self._given or Data(None, [], "numpy")
        positions = numbers(table["positions"], np.int64)
        columns: dict[str, Any] = {}
        if given.id is not None and not given.id_is_index:
            columns[table["id"]] = table["ids"]
        elif given.index is None and frame_kind(given.kind) != "pandas":
            columns["row"] = positions + 1
        columns.update(table["texts"])
        columns.update((name, numbers(raw)) for name, raw in table["numbers"])
        index = given.index.take(positions) if by_position and given.index is not None else positions
        return frame(given.kind, columns, index)


class _WithPage(Result):
    """A result that has a page."""

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page: one file that opens anywhere, readable by you alone."""
        page = self._outcome.page()
        assert page is not None
        _native.write_text(os.fspath(path), page)
        return Path(path)

    def save(self, folder: str | os.PathLike[str], format: str = "parquet") -> list[Path]:
        """Writes what the command leaves with ``--out``: document, page and tables."""
        if format not in ("parquet", "csv"):
            raise LeakscopeError(f"format: {format!r}: expected 'parquet' or 'csv'")
        return [Path(p) for p in self._outcome.write(os.fspath(folder), format == "csv")]


def _flat(item: dict[str, Any]) -> dict[str, Any]:
    """Scalars by name: a bound is its value, what is nested gets a longer name."""
    found: dict[str, Any] = {}
    for name, value in item.items():
        if isinstance(value, dict) and "value" in value:
            found[name] = value["value"]
        elif isinstance(value, dict):
            found.update((f"{name}_{inner}", v) for inner, v in _flat(value).items())
        elif not isinstance(value, list):
            found[name] = value
    return found


class Audit(_WithPage):
    """What an audit found.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=200)
    >>> result = leakscope.audit(X, y, l2=0.01, sigma=0.1)
    >>> list(result.records)[:4]
    ['eta', 'dfil', 'loss', 'gradient_norm']
    >>> round(float(result.records["eta"].max()), 6) == round(result["records"]["eta"]["max"], 6)
    True
    """

    @cached_property
    def records(self) -> Any:
        """Leakage of every record: a frame of the caller's kind, indexed as the caller's."""
        return self._table("records")

    @cached_property
    def scores(self) -> Any:
        """Leakage of every point of ``score``; ``None`` without any."""
        return self._table("scores", by_position=False)

    @cached_property
    def attributes(self) -> Any:
        """Leakage of every attribute over all records, the most exposed first."""
        return self._listed("attributes")

    @cached_property
    def groups(self) -> Any:
        """Leakage of every group; empty without ``group``."""
        return self._listed("groups")

    def _listed(self, what: str) -> Any:
        rows = [_flat(item) for item in self.data[what]]
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        columns = {name: values for name, values in columns.items() if any(v is not None for v in values)}
        kind = self._given.kind if self._given else "numpy"
        return frame(kind, columns, None, "name" if "name" in columns else None)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coefficient: given, solved for, or 1 as a unit."""
        return float(self.data["sigma"])

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of the columns as encoded."""
        return dict(self.data["model"]["coefficients"])

    @property
    def distance(self) -> dict[str, Any] | None:
        """How far a model that was trained elsewhere is from the minimiser on these data; ``None`` for one fitted here."""
        found: dict[str, Any] | None = self.data["model"].get("distance")
        return found

    @property
    def warnings(self) -> list[str]:
        """What to know about these numbers."""
        return list(self.data["warnings"])

    @property
    def within_limits(self) -> bool:
        """Whether every limit of ``fail_above`` holds; the command's exit code is 1 where not."""
        return all(limit["ok"] for limit in self.data["limits"])


class Balance(_WithPage):
    """What balancing did."""

    @cached_property
    def weights(self) -> Any:
        """Weight of every record, with its leakage before and after: a frame of the caller's kind."""
        return self._table("weights")

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of the balanced model, of the columns as encoded."""
        return dict(self.data["coefficients"])


class Attack(_WithPage):
    """What attackers achieved."""

    @cached_property
    def results(self) -> Any:
        """Every attack at every noise: accuracy and advantage with their intervals."""
        rows = [_flat(item) for item in self.data["results"] + self.data["results_balanced"]]
        names = list(dict.fromkeys(name for row in rows for name in row))
        kind = self._given.kind if self._given else "numpy"
        return frame(kind, {name: [row.get(name) for row in rows] for name in names})


class Release(Result):
    """A private model with its statement."""

    report = _WithPage.report

    @property
    def coefficients(self) -> dict[str, float]:
        """Noisy coefficients of the columns as encoded."""
        return dict(self.data["coefficients"])

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coefficient."""
        return float(self.data["mechanism"]["sigma"])

    @property
    def files(self) -> list[Path]:
        """What was written."""
        return [Path(p) for p in self._outcome.written()]


class Account(Result):
    """What a sequence of noisy releases costs, by every accountant that applies."""

    report = _WithPage.report

    @property
    def epsilon(self) -> float:
        """The smallest ε that is certified: the upper end of the privacy loss distribution's."""
        return float(self.data["epsilon"]["pld"]["upper"])


class Bound(Result):
    """What any attacker can guess at most, by every bound that applies."""

    report = _WithPage.report

    @property
    def success(self) -> float:
        """The smallest bound on the probability of a right guess; a curve has one at every point, in ``figures``."""
        if not self.data.get("bounds"):
            raise AttributeError("this result has no one bound on success: a curve's points are in result['figures']")
        return float(min(b["success"] for b in self.data["bounds"]))


class Calibration(Result):
    """Noise, sampling rate and steps that meet a target."""

    @property
    def sigma(self) -> float:
        """Noise multiplier."""
        return float(self.data["sigma"])

    @property
    def rate(self) -> float:
        """Sampling rate."""
        return float(self.data["rate"])

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.data["steps"])
