"""How much does a trained model give away about the records it was trained on?

>>> import numpy as np, leakscope
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(500, 4))
>>> y = X @ [1.0, 0.5, -1.0, 0.0] + rng.normal(size=500)
>>> result = leakscope.audit(X, y, l2=0.01, sigma=0.1)
>>> len(result.records), len(result.attributes)
(500, 4)

Questions are functions: :func:`audit`, :func:`balance`, :func:`attack`, :func:`release`, :func:`account`, :func:`bound`,
:func:`calibrate`, :func:`compare` (results side by side); ``help`` says what each keyword means. :func:`attack_model` plays black-box attacks on anything that predicts. What they return is a :class:`Result`: ``document``,
``summary()``, ``report(path)``, ``save(folder)``, ``records``. :class:`Accountant` keeps the steps of a training loop; :class:`PrivateLinear` and :class:`PrivateLogistic` are scikit-learn estimators;
:class:`Network`, :func:`train_network` (on a table), :func:`attack_network` and ``leakscope.torch`` measure networks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._accountant import Accountant
from ._attack_model import ModelAttack, attack_model
from ._compare import Comparison, compare
from ._models import attack, audit, balance, release, withdraw
from ._net_attack import NetAttack, attack_network
from ._net_results import NetAudit, Training
from ._network import Network
from ._net_tables import train_network
from ._native import BudgetError, DataError, FitError, LeakscopeError, OptionError, __version__
from ._privacy import account, bound, calibrate
from ._results import Account, Attack, Audit, Balance, Bound, Calibration, Release, Result

if TYPE_CHECKING:
    from ._estimators import PrivateLinear, PrivateLogistic

__all__ = [
    "Account",
    "Accountant",
    "Attack",
    "Audit",
    "Balance",
    "Bound",
    "BudgetError",
    "Calibration",
    "Comparison",
    "DataError",
    "FitError",
    "LeakscopeError",
    "ModelAttack",
    "NetAttack",
    "NetAudit",
    "Network",
    "OptionError",
    "PrivateLinear",
    "PrivateLogistic",
    "Release",
    "Result",
    "Training",
    "__version__",
    "account",
    "attack",
    "attack_model",
    "attack_network",
    "audit",
    "balance",
    "bound",
    "calibrate",
    "compare",
    "release",
    "train_network",
    "withdraw",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is imported only where its estimators are asked for.
    if name in ("PrivateLinear", "PrivateLogistic"):
        from . import _estimators

        return getattr(_estimators, name)
    raise AttributeError(f"module 'leakscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "PrivateLinear", "PrivateLogistic"])
