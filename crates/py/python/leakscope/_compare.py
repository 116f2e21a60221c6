"""Results of one kind side by side: what changed for whom, the first being the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Any

from . import _native
from ._docs import documented
from ._native import OptionError
from ._requests import Path, listed
from ._results import Result


class Comparison(Result):
    """Results side by side; ``document`` has every number of each, and what changed for whom."""

    @property
    def holds(self) -> bool:
        """Whether everything that ``fail_on`` demands holds."""
        return not self.unmet

    @property
    def unmet(self) -> list[str]:
        """Why what was demanded does not hold, a sentence each."""
        return [d["unmet"] for d in self.document.get("demands", []) if "unmet" in d]

    @property
    def numbers(self) -> list[dict[str, Any]]:
        """Every number in all results: its section, its name, which way is worse, and its value in each (``None`` where it is
        absent, or without bound)."""
        return [{"section": section["title"], "name": row["name"], "worse": row["worse"],
                 "values": [None if v is None else v["value"] for v in row["values"]]}
                for section in self.document["sections"] for row in section["rows"]]

    @documented(format="``\"md\"`` (a table in Markdown), ``\"junit\"`` or ``\"sarif\"``.")
    def pipeline(self, format: str = "md") -> str:
        """The comparison for other programmes: it names no record and no value of the data."""
        result = self._outcome.pipeline(format)
        assert result is not None
        return result


@documented(results="Results of one kind, or folders of such (or the JSON documents in them); the first is the reference.",
            kind="Which results, where folders hold several: ``\"audit\"``, ``\"release\"``, ``\"training\"`` and so on.",
            names="What the results are called, one name each. By default folders by their names, other results by their number.",
            fail_on="What must not be: ``\"red\"``, ``\"amber\"``, ``\"worse\"`` (a worse colour than the reference), ``\"regression\"`` "
                    "(any number worse), ``\"eta=10%\"`` (mean or largest η up by more); ``holds`` says whether it is.")
def compare(
    *results: Result | Path,
    kind: str | None = None,
    names: Sequence[str] | None = None,
    fail_on: Sequence[str] | str = (),
    out: Path | None = None,
) -> Comparison:
    """What changed between results of one kind, side by side: what got worse first.

    Returns
    -------
    Comparison
        The document and the page.

    Examples
    --------
    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=200)
    >>> quiet, loud = (leakscope.audit(X, y, l2=0.01, sigma=sigma) for sigma in (2.0, 0.1))
    >>> answer = leakscope.compare(quiet, loud, names=["quiet", "loud"], fail_on="eta=10%")
    >>> answer.holds, answer["kind"], answer["records"][0]["worse"]
    (False, 'audit', 200)
    """
    if names is not None and len(names) != len(results):
        raise OptionError(f"names={list(names)!r}: expected {len(results)} names, one for each result")
    for name in names or ():
        if not isinstance(name, str) or not name.strip() or FilePath(name).name != name:
            raise OptionError(f"names: {name!r} is no name: expected a text without slashes")
    if names is not None and len(set(names)) != len(names):
        raise OptionError(f"names={list(names)!r}: each result needs a name of its own")
    # Results that were not saved are written where nobody else reads, for as long as they are compared.
    with tempfile.TemporaryDirectory(prefix="leakscope-") as scratch:
        paths = [_placed(result, FilePath(scratch) / f"{i}", None if names is None else names[i - 1])
                 for i, result in enumerate(results, 1)]
        options = {"results": [str(p) for p in paths], "kind": kind, "fail_on": listed(fail_on)}
        return Comparison(_native.compare(options))._kept(out)


def _placed(result: Any, scratch: FilePath, name: str | None) -> FilePath:
    """The folder or document of a result, called by its name where it has one."""
    if isinstance(result, Result):
        if type(result) is Comparison:
            raise OptionError("results: a comparison is not compared again: give what it compares")
        folder = scratch / (name or f"result {scratch.name}")
        scratch.mkdir()
        result._outcome.write(folder, "parquet")
        return folder
    try:
        path = FilePath(result)
    except TypeError:
        raise OptionError(f"results: expected results or folders of such, found {type(result).__name__}") from None
    if name is None or not path.exists():
        return path
    scratch.mkdir()
    # A link has the name, and what lies beside the document stays beside it.
    folder = scratch / name
    folder.symlink_to(path.resolve() if path.is_dir() else path.resolve().parent, target_is_directory=True)
    return folder if path.is_dir() else folder / path.name
