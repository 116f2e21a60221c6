"""Certified ε for Opacus: an accountant of its registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opacus.accountants import IAccountant

from ._accountant import Accountant


class LeakscopeAccountant(IAccountant):
    """Certified ε in Opacus' registry: ``PrivacyEngine(accountant="leakscope")``.

    ε is never below the truth: privacy loss distributions rounded up, by :class:`leakscope.Accountant`.
    """

    def __init__(self) -> None:
        self._inner = Accountant()

    @property
    def history(self) -> list[tuple[float, float, int]]:
        """Noise multiplier, sample rate and number of steps."""
        return self._inner.history

    @history.setter
    def history(self, steps: Sequence[tuple[float, float, int]]) -> None:
        self._inner.history = [(float(s), float(q), int(n)) for s, q, n in steps]

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Adds one step of DP-SGD."""
        self._inner.step(noise_multiplier=noise_multiplier, sample_rate=sample_rate)

    def get_epsilon(self, delta: float, **_options: Any) -> float:
        """ε of all steps so far at ``delta``, certified: never below the truth."""
        return self._inner.get_epsilon(delta)

    def __len__(self) -> int:
        return len(self._inner)

    @classmethod
    def mechanism(cls) -> str:
        """Its name in the registry."""
        return "leakscope"


def register() -> None:
    """Opacus 1.6 has a registry. Before, one function makes accountants by name, and modules hold it as they imported it."""
    import opacus.accountants as accountants

    register = getattr(accountants, "register_accountant", None)
    if register is not None:
        register("leakscope", LeakscopeAccountant, force=True)
        return
    import opacus.accountants.utils as utils
    import opacus.privacy_engine as engine

    before = accountants.create_accountant

    def create_accountant(mechanism: str) -> IAccountant:
        return LeakscopeAccountant() if mechanism == "leakscope" else before(mechanism)

    for place in (accountants, utils, engine):
        if getattr(place, "create_accountant", None) is before:
            place.create_accountant = create_accountant
