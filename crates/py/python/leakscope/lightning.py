"""Lightning: what records give away, at the end of a fit and every so many epochs of it.

Imported only where it is asked for (``import leakscope.lightning``); lightning is an optional extra. A thin layer on
:func:`leakscope.torch.audit`: the callback looks, and changes nothing of the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from . import torch as _torch
from ._checks import whole
from ._native import OptionError
from ._net_results import NetAudit


class AuditCallback(Callback):
    """Audits the module over given records when a fit ends, and after every ``every`` epochs.

    Parameters
    ----------
    loss, data, y
        As :func:`leakscope.torch.audit` has them; ``data`` are records that the fit trains on.
    every : int, optional
        Epochs between audits; by default one at the end alone.
    log : bool, default True
        Whether the median and the largest dFIL go to the loggers of the trainer, as ``leakscope/dfil_median`` and
        ``leakscope/dfil_max``.
    out : path, optional
        A folder for pages and tables, one folder an audit: ``epoch-3``, … and ``end``.
    **options
        Those of :func:`leakscope.torch.audit`. Without ``sigma`` numbers are per unit of noise, to compare records by.

    Attributes
    ----------
    audits : list of (int, NetAudit)
        Epochs completed, and what was found.
    """

    def __init__(self, loss: Any, data: Any, y: Any = None, *, every: int | None = None, log: bool = True,
                 out: str | Path | None = None, **options: Any) -> None:
        super().__init__()
        self._about = (loss, data, y)
        self._every = None if every is None else whole("every", every, 1)
        self._log, self._out, self._options = log, None if out is None else Path(out), options
        self.audits: list[tuple[int, NetAudit]] = []
        if "out" in options:
            raise OptionError("out: name it once")

    @property
    def result(self) -> NetAudit | None:
        """The last audit; ``None`` before the first."""
        return self.audits[-1][1] if self.audits else None

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Audits where an epoch is one of every so many."""
        done = int(trainer.current_epoch) + 1
        if self._every is not None and done % self._every == 0:
            self._audit(trainer, pl_module, done, f"epoch-{done}")

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Audits the model that the fit leaves."""
        self._audit(trainer, pl_module, int(trainer.current_epoch), "end")

    def _audit(self, trainer: Any, pl_module: Any, done: int, name: str) -> None:
        # one process looks: all have the same parameters
        if not getattr(trainer, "is_global_zero", True):
            return
        loss, data, y = self._about
        modes = {part: part.training for part in pl_module.modules()}
        try:
            # batch norms and dropout as in use: a record's gradient is its own
            pl_module.eval()
            options = dict(self._options) if self._out is None else {**self._options, "out": self._out / name}
            result = _torch.audit(pl_module, loss, data, y, **options)
        finally:
            for part, training in modes.items():
                part.training = training
        self.audits.append((done, result))
        if self._log:
            dfil = result["dfil"]
            if dfil is not None:
                numbers = {"leakscope/dfil_median": float(dfil["p50"]), "leakscope/dfil_max": float(dfil["max"])}
                for logger in trainer.loggers:
                    logger.log_metrics(numbers, step=int(trainer.global_step))
