"""What the functions return: a document, tables of the caller's kind, a page, a summary."""

from __future__ import annotations

import atexit
import html
import json
import os
import shutil
import tempfile
import webbrowser
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from . import _native
from ._card import card
from ._docs import documented
from ._native import LeakscopeError
from ._plot import Plots
from ._tables import Data, frame, frame_kind

_R = TypeVar("_R", bound="Result")


@dataclass
class _Kept:
    """What a native outcome says, in plain values that can be pickled."""

    document: str
    html: str | None
    text: str
    files: list[Path]
    frames: dict[str, _native.ResultTable]
    plis: bytes | None
    images: bytes | None = None
    numbers: list[int] = field(default_factory=list)

    def json(self) -> str:
        return self.document

    def page(self) -> str | None:
        return self.html

    def summary(self, width: int) -> str:
        return self.text

    def pipeline(self, format: str) -> str | None:
        raise LeakscopeError("this result was pickled: ask for pipeline() where it was computed")

    def maps(self) -> bytes | None:
        return self.plis

    def reconstructions(self) -> bytes | None:
        return self.images

    def attacked(self) -> list[int]:
        return self.numbers

    def written(self) -> list[Path]:
        return self.files

    def tables(self) -> list[str]:
        return list(self.frames)

    def table(self, name: str) -> _native.ResultTable | None:
        return self.frames.get(name)

    def report(self, path: Any) -> None:
        if self.html is None:
            raise LeakscopeError("this answer has no page: summary() shows it, to_json() keeps it")
        _native.write_text(path, self.html)

    def write(self, out: Any, format: str) -> list[Path]:
        raise LeakscopeError("this result was pickled: save it where it was computed; report and to_json work here too")


class Result:
    """What a question found, about tables and networks alike.

    ``result["name"]`` is short for ``result.document["name"]``. Tables come as frames of the caller's kind (pandas, polars
    or pyarrow; dicts of arrays where none is installed); :meth:`table` hands them over as Arrow.
    """

    #: the table with a row for every record
    _RECORDS = "records"

    def __init__(self, outcome: _native.Outcome | _Kept, source: Data | None = None) -> None:
        self._outcome = outcome
        self._source = source

    def to_json(self) -> str:
        """The document as text: what the command line prints as JSON."""
        return self._outcome.json()

    @cached_property
    def document(self) -> dict[str, Any]:
        """Everything by name: numbers, texts, lists."""
        result: dict[str, Any] = json.loads(self.to_json())
        return result

    def __getitem__(self, name: str) -> Any:
        return self.document[name]

    @cached_property
    def records(self) -> Any:
        """A frame with a row for every record; ``None`` where there are none."""
        return self._rows(self._RECORDS)

    @documented(name="Its name; one that is not there is answered by those that are.")
    def table(self, name: str = "records") -> _native.ResultTable:
        """A table by name, for anything that reads Arrow: it has ``__arrow_c_stream__``."""
        result = self._outcome.table(name)
        if result is None:
            tables = ", ".join(map(repr, self._outcome.tables())) or "no tables"
            raise LeakscopeError(f"name={name!r}: this result has {tables}")
        return result

    @documented(width="Characters in a line.")
    def summary(self, width: int = 80) -> str:
        """A screenful of text, as the command line prints it."""
        return self._outcome.summary(width)

    @documented(path="The file to write.")
    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page to ``path``: one file that opens anywhere, readable by you alone."""
        self._outcome.report(path)
        self._reported = Path(path).absolute()
        return Path(path)

    def open(self) -> Path:
        """Shows the page in a browser on this machine: in a private temporary file, which goes when Python ends."""
        if (at := self._page_at()) is None:
            folder = Path(tempfile.mkdtemp(prefix="leakscope-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            at = self.report(folder / "report.html")
        webbrowser.open(at.absolute().as_uri())
        return at

    @property
    def plot(self) -> Plots:
        """Charts of this result by matplotlib, where it is installed: ``result.plot.histogram()`` and more, by what it holds."""
        return Plots(self)

    @documented(folder="The folder, made where it is not there.", format="That of tables: ``\"parquet\"`` or ``\"csv\"``.")
    def save(self, folder: str | os.PathLike[str], format: str = "parquet") -> list[Path]:
        """Writes what the command line leaves in ``folder``: document, page and tables."""
        files = [Path(p) for p in self._outcome.write(folder, format)]
        self._reported = next((p.absolute() for p in files if p.name == "report.html"), self.__dict__.get("_reported"))
        return files

    def _kept(self: _R, out: str | os.PathLike[str] | None) -> _R:
        """The same, after it was written where asked to."""
        if out is not None:
            self.save(out)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: everything that can be asked for; :meth:`save` alone needs the result that was computed."""
        outcome: Any = self._outcome
        if not isinstance(outcome, _Kept):
            tables = {name: outcome.table(name) for name in outcome.tables()}
            outcome = _Kept(outcome.json(), outcome.page(), outcome.summary(80), outcome.written(), tables, outcome.maps(),
                            outcome.reconstructions(), outcome.attacked())
        return {"_outcome": outcome, "_source": None if self._source is None else replace(self._source, table=None)}

    def __repr__(self) -> str:
        return f"<leakscope.{type(self).__name__}\n{self.summary()}>"

    def _repr_html_(self) -> str:
        page = self._outcome.page()
        if page is None:
            return f"<pre>{html.escape(self.summary())}</pre>"
        return card(page, self.document, self._page_at())

    def _page_at(self) -> Path | None:
        """Where the page lies, if it was written and is still there."""
        at = next((Path(p) for p in self._outcome.written() if Path(p).name == "report.html"), None)
        at = self.__dict__.get("_reported") or at
        return at if at is not None and at.is_file() else None

    @property
    def _kind(self) -> str:
        return self._source.kind if self._source else "numpy"

    def _rows(self, name: str, by_position: bool = True) -> Any:
        """A table with a row for every record of the caller's table, named as the caller's."""
        table = self._outcome.table(name)
        if table is None:
            return None
        source = self._source or Data(None, [], "numpy")
        named = source.id is not None and not source.id_is_index
        if frame_kind(source.kind) != "pandas":
            return frame(source.kind, table)
        positions = np.frombuffer(table.positions(), dtype=np.int64)
        index = source.index.take(positions) if by_position and source.index is not None else positions
        return frame(source.kind, table if named else table.without(str(table.id())), index)

    def _listed(self, name: str) -> Any:
        """A table with a row for every item of the document."""
        table = self._outcome.table(name)
        assert table is not None
        return frame(self._kind, table, index_name="name" if "name" in table.names() else None)


class Audit(Result):
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
    def scores(self) -> Any:
        """Leakage of every point of ``score``; ``None`` without any."""
        return self._rows("scores", by_position=False)

    @cached_property
    def attributes(self) -> Any:
        """Leakage of every attribute over all records, the most exposed first."""
        return self._listed("attributes")

    @cached_property
    def groups(self) -> Any:
        """Leakage of every group; empty without ``group``."""
        return self._listed("groups")

    @cached_property
    def standard_errors(self) -> Any:
        """Standard errors, intervals and tests of every coefficient with the noise; ``None`` where no noise was chosen.

        The part from sampling is read off the records, and private; the part from noise is public.
        """
        return None if "inference" not in self.document else self._listed("inference")

    @property
    def noise_covariance(self) -> np.ndarray | None:
        """Covariance of noise that was made for its targets, coefficients in the order of ``result["noise"]["coefficients"]``."""
        noise = self.document.get("noise")
        if noise is None:
            return None
        factor, p = noise["factor"], len(noise["coefficients"])
        lower = np.zeros((p, p))
        lower[np.tril_indices(p)] = factor["entries"]
        lower *= 2.0 ** (np.array(factor["exponents"], dtype=float)[:, None] + factor["quarters"] / 4)
        return lower @ lower.T

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coefficient: given, solved for, or 1 as a unit. Of noise with a shape, that
        of isotropic noise which costs as much."""
        return float(self.document["sigma"])

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of the columns as encoded."""
        return dict(self.document["model"]["coefficients"])

    @property
    def distance(self) -> dict[str, Any] | None:
        """How far a model that was trained elsewhere is from the minimiser on these data; ``None`` for one fitted here."""
        result: dict[str, Any] | None = self.document["model"].get("distance")
        return result

    @property
    def warnings(self) -> list[str]:
        """What to know about these numbers: warnings first, then notes on what was done with the table."""
        return [*self.document["warnings"], *self.document.get("notes", [])]

    @property
    def within_limits(self) -> bool:
        """Whether every limit of ``fail_above`` holds."""
        return all(limit["ok"] for limit in self.document["limits"])


class Balance(Result):
    """What balancing did; ``records`` has the weight of every record, with its leakage before and after."""

    _RECORDS = "weights"

    @property
    def weights(self) -> Any:
        """The same as ``records``."""
        return self.records

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of the balanced model, of the columns as encoded."""
        return dict(self.document["coefficients"])


class Attack(Result):
    """What attackers achieved."""

    @cached_property
    def results(self) -> Any:
        """Every attack at every noise: accuracy and advantage with their intervals."""
        return self._listed("results")


class Release(Result):
    """A private model with its statement; :meth:`save` writes what may be published again, without the ledger.

    :attr:`document` is the owner's copy: what it holds besides the statement, ``measured`` and ``remarks``, is not to be
    published.
    """

    @property
    def warnings(self) -> list[str]:
        """What should be known, in whole sentences; those about the data are for their owner."""
        return [*self.document["warnings"], *self.document["remarks"]]

    @property
    def coefficients(self) -> dict[str, float]:
        """Noisy coefficients of the columns in their original units."""
        return dict(self.document["coefficients"])

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on every coefficient in public units."""
        return float(self.document["mechanism"]["sigma"])

    @property
    def files(self) -> list[Path]:
        """What was written."""
        return [Path(p) for p in self._outcome.written()]


class Account(Result):
    """What a sequence of noisy releases costs, by every accountant that applies."""

    @property
    def epsilon(self) -> float:
        """The smallest ε that is certified: the upper end of the privacy loss distribution's."""
        return float(self.document["epsilon"]["pld"]["upper"])


class Bound(Result):
    """What any attacker can guess at most, by every bound that applies."""

    @property
    def success(self) -> float:
        """The smallest bound on the probability of a right guess; a curve has one at every point, in ``figures``."""
        if not self.document.get("bounds"):
            raise AttributeError("this result has no one bound on success: a curve's points are in result['figures']")
        return float(min(b["success"] for b in self.document["bounds"]))


class Calibration(Result):
    """Noise, sampling rate and steps that meet a target. It has no page."""

    @property
    def sigma(self) -> float:
        """Noise multiplier of DP-SGD, or the standard deviation of the noise on every coefficient."""
        return float(self.document["sigma"])

    @property
    def rate(self) -> float:
        """Sampling rate."""
        return float(self.document["rate"])

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.document["steps"])
