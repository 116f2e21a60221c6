"""What training and audits of networks return: results like those of tables, with records named by their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._accountant import Accountant
from ._docs import documented
from ._native import OptionError
from ._results import Result, _Kept
from ._tables import frame, frame_kind


class _OfRecords(Result):
    """A result whose records are those of arrays, named by their number."""

    def _rows(self, name: str, by_position: bool = True) -> Any:
        table = self._outcome.table(name)
        if table is None:
            return None
        return frame("numpy", table, index_name=table.id() if frame_kind("numpy") == "pandas" else None)


class Training(_OfRecords):
    """What a training run did: with ``track``, ``records`` has what every one has given away in the whole run."""

    #: the trained network of :func:`leakscope.train_network`
    network: Any = None

    def __init__(self, outcome: _native.Outcome | _Kept, rate: float | None = None) -> None:
        super().__init__(outcome)
        self._rate = rate

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_rate": self._rate}

    @property
    def seed(self) -> int:
        """The seed of everything random."""
        return int(self.document["seed"])

    @property
    def steps(self) -> Any:
        """A frame with a row for every step: records drawn, loss, share clipped."""
        return self._listed("steps")

    @property
    def renyi(self) -> Any:
        """The own Rényi budgets of records at every order, a column each; of records that were not followed at every step
        nothing is known. ``None`` without ``track``."""
        records = self.records
        if records is None or self.document["accounts"] is None:
            return None
        names = [name for name in _names(records) if name.startswith("renyi_")]
        return records[names] if hasattr(records, "__getitem__") else None

    @documented(delta="δ, above 0, below 1. By default that of the run.")
    def epsilon(self, delta: float | None = None, adjacency: str = "add-remove") -> float:
        """ε of the whole run, certified: as the run states it at its own δ, or at another. Infinite where nothing is promised."""
        privacy = self.document["privacy"]
        # Noise that follows from a seed promises nothing.
        if privacy is None or privacy.get("epsilon") is None:
            return float("inf")
        if delta is None:
            return float(privacy["epsilon"])
        if self.document["sampling"] != "poisson":
            raise OptionError("sampling: ε of shuffled batches is not accounted for here: train with sampling='poisson'")
        # A smooth clip lets through a little more than C, so the noise is worth a little less.
        worth = privacy["sigma"] / _native.overshoot({"kind": privacy["clip_kind"], "bound": privacy["clip"]})
        accountant = Accountant(adjacency)
        rate = self._rate
        if rate is None:
            rate = float(self.document["batch"]) / float(self.document["data"]["records"])
        accountant.history = [(worth, rate, int(self.document["steps"]))]
        return accountant.get_epsilon(delta)


def _names(records: Any) -> list[str]:
    """Names of the columns of a frame, or of an array with fields."""
    columns = getattr(records, "columns", None)
    if columns is None:
        columns = getattr(getattr(records, "dtype", None), "names", None) or getattr(records, "column_names", None) or list(records)
    return [str(name) for name in columns]


class NetAudit(_OfRecords):
    """What one gradient step of a network gives away: as :class:`leakscope.Audit`, with page, summary and document.

    >>> import numpy as np, leakscope
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    >>> result = leakscope.Network("linear", input=(4,), outputs=2, seed=1).audit(x, y, trace="elements", plis=True, seed=1)
    >>> len(result.records), result.plis_maps.shape, len(result["elements"])
    (20, (20, 4), 4)
    """

    #: whether maps have their channels first, as records of torch
    _channels_first = False

    def __init__(self, outcome: _native.Outcome | _Kept, shape: tuple[int, ...]) -> None:
        super().__init__(outcome)
        self._shape = shape

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_shape": self._shape, "_channels_first": self._channels_first}

    @property
    def plis_maps(self) -> np.ndarray[Any, Any] | None:
        """PLIS of every input value, one map a record in the layout of the records; ``None`` unless asked for."""
        maps = self._outcome.maps()
        if maps is None:
            return None
        # With a secret label its values come after those of the record.
        size, values = int(np.prod(self._shape)), np.frombuffer(maps, dtype=np.float64)
        maps_of = values.reshape(int(self.document["measured"]), -1)[:, :size].reshape(-1, *self._shape)
        return np.moveaxis(maps_of, -1, 1) if self._channels_first and maps_of.ndim == 4 else maps_of

    @property
    def seed(self) -> int:
        """The seed of probes."""
        return int(self.document["seed"])

    @property
    def scores(self) -> Any:
        """The table of records for the points of ``score``; ``None`` without any."""
        return self._rows("scores")
