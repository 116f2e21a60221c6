"""Which steps of a run are looked at: one in so many, or as many as a share of the run's time pays for.

Either way a step is looked at with a probability that is settled before the step is seen, and what is seen counts by its
inverse, so that the sum over steps is unbiased: given the past, a step's term has the step's value as its mean. The times of
earlier steps may therefore decide the probability of the next one; no value of a record does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

#: the default share of a step's time
COST = 0.3
#: steps that are looked at whatever they cost, so that there are times to choose by; the first also prepares, and is not timed
FIRST = 3
#: times that the choice looks back on
_WINDOW = 15
#: the least probability, for clocks that saw nothing pass
_LEAST = 1e-4


def probability(cost: float, steps: Sequence[float], looks: Sequence[float]) -> float:
    """The probability of a look at which looks take a share ``cost`` of the steps' time: ``cost · step/look``, at most 1.

    Medians, so that one slow step (an evaluation between two of them, a busy machine) does not decide.
    """
    if not steps or not looks:
        return 1.0
    step, look = median(steps), median(looks)
    return 1.0 if look <= cost * step else max(_LEAST, cost * step / look)


@dataclass
class Schedule:
    """Draws whether to look at the next step, and keeps the times that it is chosen by."""

    random: np.random.Generator
    #: one step in so many; ``None`` where the times choose
    every: int | None
    cost: float = COST
    #: with what probability the step at hand is looked at
    share: float = 1.0
    _seen: int = 0
    _past: int = 0
    _end: float | None = None
    _steps: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _looks: deque[float] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    _shares: list[float] = field(default_factory=list)

    def look(self) -> bool:
        """Whether to look at the step at hand."""
        self._seen += 1
        self._past += 1
        if self.every is not None:
            self.share = 1 / self.every
        else:
            self.share = 1.0 if self._seen <= FIRST else probability(self.cost, self._steps, self._looks)
        self._shares.append(self.share)
        return self.share == 1 or bool(self.random.random() < self.share)

    def looked(self, start: float, end: float | None = None) -> None:
        """A look from ``start`` to ``end`` (by default now): both when the device had nothing left to do."""
        end = time.perf_counter() if end is None else end
        if self._end is not None:
            self._steps.append((start - self._end) / self._past)
            self._looks.append(end - start)
        self._end, self._past = end, 0

    @property
    def one_in(self) -> float:
        """How many steps there were for every look that was to be expected."""
        return len(self._shares) / sum(self._shares) if self._shares else 1.0
