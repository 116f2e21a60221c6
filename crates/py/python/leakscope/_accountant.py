"""An accountant for a training loop, as Opacus users know it."""

from __future__ import annotations

import math

from . import _native
from ._checks import one_of, positive, real, whole
from ._docs import documented
from ._native import OptionError

_DELTA = "δ, a probability from 1e-300 up, below 1."


class Accountant:
    """Keeps the history of noisy steps and says what they cost, certified (not above the truth by more than shown).

    ``history`` has the form of Opacus': tuples of noise multiplier, sample rate and number of steps.

    Parameters
    ----------
    adjacency : str, default 'add-remove'
        Which neighbours are told apart: ``"add-remove"`` (a record is there or is not) or ``"replace"`` (it takes another value).

    Examples
    --------
    >>> import leakscope
    >>> accountant = leakscope.Accountant()
    >>> for _ in range(100):
    ...     accountant.step(noise_multiplier=1.1, sample_rate=0.01)
    >>> accountant.history
    [(1.1, 0.01, 100)]
    >>> 0 < accountant.get_epsilon(delta=1e-5) < 1
    True
    """

    def __init__(self, adjacency: str = "add-remove") -> None:
        self.adjacency = one_of("adjacency", adjacency, ("add-remove", "replace"))
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Adds one step of DP-SGD.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise over the norm that gradients are clipped to, above 0.
        sample_rate : float
            Probability of each record to take part in the step (Poisson sampling), above 0, at most 1.
        """
        noise_multiplier, sample_rate = positive("noise_multiplier", noise_multiplier), _rate(sample_rate)
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    @documented(delta=_DELTA)
    def get_epsilon(self, delta: float) -> float:
        """ε of all steps so far at ``delta``: certified, never below the truth."""
        return self.get_epsilon_interval(delta)[1]

    @documented(delta=_DELTA)
    def get_epsilon_interval(self, delta: float) -> tuple[float, float]:
        """Between which two numbers ε at ``delta`` is; (0, 0) before the first step."""
        delta = real("delta", delta)
        if not 1e-300 <= delta < 1:
            raise OptionError(f"delta={delta!r}: expected a probability from 1e-300 up, below 1")
        if not self.history:
            return 0.0, 0.0
        return _native.account_epsilon(self.history, delta, self.adjacency == "replace")

    @documented(epsilon="ε, any number.")
    def get_delta(self, epsilon: float) -> float:
        """δ of all steps so far at ``epsilon``: never below the truth."""
        epsilon = real("epsilon", epsilon)
        if not self.history:
            return max(0.0, -math.expm1(epsilon))
        return _native.account_delta(self.history, epsilon, self.adjacency == "replace")[1]

    def get_advantage(self) -> float:
        """True- less false-positive rate that no test of membership exceeds."""
        if not self.history:
            return 0.0
        return _native.account_advantage(self.history, self.adjacency == "replace")[1]

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name of the method, as Opacus has it."""
        return "pld"

    def state_dict(self) -> dict[str, object]:
        """What :meth:`load_state_dict` takes."""
        return {"history": list(self.history), "adjacency": self.adjacency}

    @documented(state="What :meth:`state_dict` of the other gave.")
    def load_state_dict(self, state: dict[str, object]) -> None:
        """Goes on where another accountant stopped."""
        history = state.get("history")
        if not isinstance(history, (list, tuple)) or any(len(step) != 3 for step in history):
            raise OptionError("state: expected what state_dict gives: a history of (noise multiplier, sample rate, steps)")
        adjacency = one_of("adjacency", state.get("adjacency", "add-remove"), ("add-remove", "replace"))
        self.history = [(positive("noise_multiplier", s), _rate(q), whole("steps", n, 1)) for s, q, n in history]
        self.adjacency = adjacency


def _rate(value: float) -> float:
    result = real("sample_rate", value)
    if not 0 < result <= 1:
        raise OptionError(f"sample_rate={value!r}: expected above 0, at most 1")
    return result
