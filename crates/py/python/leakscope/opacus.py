"""Opacus: the account of every record in a loop that trains with it, and an accountant for its registry.

Imported only where it is asked for (``import leakscope.opacus``); torch and opacus are optional extras. The import
registers :class:`LeakscopeAccountant`, so that ``PrivacyEngine(accountant="leakscope")`` states certified ε.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import _native
from ._checks import one_of, positive, seeded, whole
from ._leak import Array, Clip, probes as signs
from ._native import DataError, LeakscopeError, OptionError
from ._net_results import Training
from ._opacus_accountant import LeakscopeAccountant, register
from ._opacus_loop import drawing, quiet, without_grad_samples
from ._opacus_schedule import COST, Schedule
from ._torch_audit import _loss_name, _room, _shape, _words, sampled
from ._torch_layers import LayerProducts, Unknown, known
from ._torch_model import Functional, bare, check_alone, differentiable, explained, place_of, secret_of, trained_names
from ._torch_products import TorchProducts
from ._torch_records import Records, _batch, _placed

_ORDERS = 16
#: share of records that were looked at, below which it matters that the others count as nothing
_FEW = 0.95
_STATEMENT = ("each step draws every record independently (Opacus' Poisson sampling); rate and divisor were computed from the "
              "number of records, which is public then, and neighbouring data sets differ in one record replaced by an empty one "
              "(zero-out adjacency)")

__all__ = ["LeakscopeAccountant", "Tracker", "track"]

register()


def track(
    privacy_engine: Any,
    optimizer: Any,
    model: Any,
    loss: Any,
    data_loader: Any,
    *,
    records: str | int | Sequence[int] = "drawn",
    every: int | None = None,
    cost: float | None = None,
    probes: int = 2,
    delta: float = 1e-5,
    secret: str | Sequence[str] | None = None,
    chunk: int | None = None,
    vectorize: bool = True,
    seed: int | None = None,
) -> Tracker:
    """Keeps the account of records in an Opacus loop, from now on; the run itself stays as it is, bit for bit.

    Parameters
    ----------
    privacy_engine : opacus.PrivacyEngine
        The engine itself.
    optimizer : opacus.optimizers.DPOptimizer
        As its ``make_private`` returned it.
    model : torch.nn.Module
        As ``make_private`` returned it.
    loss : callable or None
        ``loss(output, y)`` as the loop has it, or ``None`` where the model computes its own.
    data_loader : torch.utils.data.DataLoader
        As ``make_private`` returned it. Sampling must be Poisson's.
    records : str, int or list of int, default 'drawn'
        Whose accounts: ``"drawn"`` measures the records of a step's own batch, weighted by 1/q (unbiased); a list measures
        a fixed panel of records at every measured step, and a number a panel of so many, drawn by the seed. A panel has
        its own ε a record too.
    every : int, optional
        Measure one step in so many, at random, weighted by this: unbiased, with a standard error that counts it, and the cost
        falls by it. On a convolutional network of 1.2 million parameters two probes of every drawn record took 109% of a step of Opacus
        (``bench/tracker.py``), and 199% where a trained layer is none of linear, convolution, group or layer norm, or is
        used twice, so that records are run one by one.
    cost : float, default 0.3
        In the place of ``every``, and the default for drawn records: the share of a step's time that the tracker may take on
        average. The first three steps are measured; from then on a step is measured with the probability that the times of steps
        and looks before it leave room for, and weighted by its inverse, which is unbiased too. The clock decides which steps are
        measured: give ``every`` for the same accounts again. A panel is measured at every step unless one of the two is given.
    probes : int, default 2
        Random probes of each trace, at least 2.
    delta : float, default 1e-5
        δ of the privacy statements.
    secret : str or list of str, optional
        Inputs of a record that are secret, as :func:`leakscope.torch.audit` has them.
    chunk : int, optional
        Records at once. By default what fits into memory.
    vectorize : bool, default True
        Whether records run together, as :func:`leakscope.torch.audit` has it.
    seed : int, optional
        Seed of probes and of the draw of steps; Opacus' own generators are not touched.

    Returns
    -------
    Tracker
        ``tracker.report("report.html")`` writes the page, ``tracker.result()`` has document and records.
    """
    return Tracker(privacy_engine, optimizer, model, loss, data_loader, records=records, every=every, cost=cost, probes=probes,
                   delta=delta, secret=secret, chunk=chunk, vectorize=vectorize, seed=seed)


class Tracker:
    """Accounts of records over an Opacus run; made by :func:`track`."""

    def __init__(self, privacy_engine: Any, optimizer: Any, model: Any, loss: Any, data_loader: Any, *, records: Any,
                 every: int | None, cost: float | None, probes: int, delta: float, secret: Any, chunk: int | None, vectorize: bool, seed: int | None) -> None:
        _refuse(privacy_engine, optimizer, data_loader)
        self._optimizer, self._module, self._loader = optimizer, bare(model), data_loader
        self._loss = getattr(loss, "criterion", loss) if type(loss).__name__.startswith("DPLoss") else loss
        self._probes = whole("probes", probes, 2)
        self._delta, self._secret_names = positive("delta", delta), secret
        self._chunk, self._vectorize, self.seed = chunk, vectorize, seeded(seed)
        self._count = len(data_loader.dataset)
        self._panel = _panel(records, self._count, self.seed)
        self._schedule = _schedule(every, cost, self._panel is not None, self.seed)
        n = self._count
        self._trace, self._variance, self._published = np.zeros(n), np.zeros(n), np.zeros(n)
        self._norm, self._looks = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
        self._labels: dict[int, str] = {}
        self._renyi = None if self._panel is None else np.zeros((len(self._panel), _ORDERS))
        self._releases: list[tuple[float, float, int]] = []
        self._steps: list[tuple[float, float, float]] = []
        self._points: list[dict[str, Any]] = []
        self._costs: dict[tuple[float, float], Any] = {}
        self._measured, self._dimension, self._shape, self._notes = 0, 0, (0,), []
        self._by_layers: bool | None = None
        self._started, self.seconds = time.perf_counter(), 0.0
        self._queue: deque[list[int]] = deque()
        self._restore = drawing(data_loader.batch_sampler, self._queue)
        self._inner_hook = optimizer.step_hook
        optimizer.attach_step_hook(self._step)

    def detach(self) -> None:
        """Stops: the optimizer and the loader are as they were."""
        self._optimizer.attach_step_hook(self._inner_hook)
        self._restore()

    def __len__(self) -> int:
        """Steps so far."""
        return sum(steps for _, _, steps in self._releases)

    def _step(self, optimizer: Any) -> None:
        if self._inner_hook is not None:
            self._inner_hook(optimizer)
        start = time.perf_counter()
        drawn = self._drawn(optimizer)
        sigma, rate = float(optimizer.noise_multiplier), float(self._loader.batch_sampler.sample_rate)
        self._charge(sigma, rate)
        if self._schedule.look():
            self._look(drawn, sigma, rate, float(optimizer.max_grad_norm))
        else:
            self._steps.append((float(len(drawn)), float("nan"), float("nan")))
            if self._renyi is not None:
                # a step that was not looked at is charged as if every gradient were as long as the clip lets it
                self._renyi += self._renyi_of(sigma, rate, np.full(1, 1 / sigma))
        self.seconds += time.perf_counter() - start

    def _look(self, drawn: list[int], sigma: float, rate: float, clip: float) -> None:
        wanted = drawn if self._panel is None else self._panel
        device = place_of(self._module)[0]
        if device.type == "cuda":
            # what the step still has to compute is the step's
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        self._measure(wanted, sigma, rate, clip, len(drawn))
        if wanted:
            self._schedule.looked(start)

    def _drawn(self, optimizer: Any) -> list[int]:
        """The records of this step; those that the loop passed over without a step are left out."""
        sizes = _sizes(optimizer)
        while self._queue:
            batch = self._queue.popleft()
            if sizes is None or not self._queue or len(batch) == sizes or len(batch) > 0:
                break
        else:
            raise LeakscopeError("leakscope.opacus: the optimizer made a step without a batch of the tracked loader: give track "
                                 "the loader that the loop runs over")
        if sizes is not None and sizes > len(batch):
            raise LeakscopeError(f"leakscope.opacus: a step of {sizes} records, and the loader drew {len(batch)}: every batch must "
                                 "be followed by optimizer.step()")
        return batch

    def _charge(self, sigma: float, rate: float) -> None:
        if self._releases and self._releases[-1][:2] == (sigma, rate):
            self._releases[-1] = (sigma, rate, self._releases[-1][2] + 1)
        else:
            self._releases.append((sigma, rate, 1))

    def _table(self, sigma: float, rate: float) -> Any:
        if (sigma, rate) not in self._costs:
            self._costs[(sigma, rate)] = _native.StepCosts(rate, 1 / sigma)
        return self._costs[(sigma, rate)]

    def _renyi_of(self, sigma: float, rate: float, nu: Array) -> Array:
        return np.frombuffer(self._table(sigma, rate).renyi(np.ascontiguousarray(nu)), dtype=np.float64).reshape(-1, _ORDERS)

    def _functional(self, result: Records) -> Functional:
        """The module as it is now; looked at once for what no record owns."""
        if self._dimension == 0:
            sample = sampled(result)
            functional = Functional(self._module, self._loss, trained_names(self._module, None),
                                    secret_of(self._module, sample, self._secret_names), False)
            self._notes += check_alone(functional, sample)
            self._secret = functional.secret
            self._shape = _shape(functional, sample)
            if self._chunk is None:
                self._chunk = _room(functional, sample)
            return functional
        return Functional(self._module, self._loss, trained_names(self._module, None), self._secret, False)

    def _measure(self, numbers: list[int], sigma: float, rate: float, clip: float, drawn: int) -> None:
        if not numbers:
            self._steps.append((float(drawn), float("nan"), float("nan")))
            self._measured += int(self._panel is None)
            return
        with quiet(), without_grad_samples(self._module) as dropped, differentiable(self._module):
            result = self._fetched(numbers)
            try:
                functional = self._functional(result)
                parts = [self._probed(functional, result.at(list(range(at, min(at + self._chunk, len(result))))))
                         for at in range(0, len(result), self._chunk)]
            except LeakscopeError:
                raise
            except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError) as e:
                raise explained(e) from e
        if dropped and not self._points:
            self._notes.append("Dropout was off while records were measured: the accounts are those of the whole network.")
        loss, n = (np.concatenate([p[k] for p in parts]) for k in range(2))
        cross, square = (np.concatenate([p[k] for p in parts], axis=1) for k in (2, 3))
        if not (np.isfinite(loss).all() and np.isfinite(n).all() and np.isfinite(square).all()):
            bad = numbers[int(np.flatnonzero(~(np.isfinite(loss) & np.isfinite(n) & np.isfinite(square).all(axis=0)))[0])]
            raise DataError(f"record {bad}: its loss or its gradient is not finite: look at the record and at the parameters")
        self._add(numbers, n, cross, square, sigma, rate, clip)
        self._measured += 1
        self._steps.append((float(drawn), float(loss.mean()), float((n > clip).mean())))
        self._point(rate, float(loss.mean()))
        for number, word in zip(numbers, _words(result.target) or []):
            self._labels.setdefault(number, word)

    def _probed(self, functional: Functional, some: Records) -> tuple[Array, Array, Array, Array]:
        self._dimension = sum(int(np.prod(s.shape[1:])) for s in functional.split(some)[0])
        stream = [signs(self.seed + len(self), number, self._probes, self._dimension) for number in some.numbers]
        u = np.stack(stream, axis=1)
        if self._vectorize and self._by_layers is not False:
            # the same numbers, by passes over the whole batch, where every trained layer is known
            self._by_layers = known(functional)
            if self._by_layers:
                try:
                    return LayerProducts(functional, some).probed(u)
                except (Unknown, RuntimeError, NotImplementedError):
                    self._by_layers = False
        return TorchProducts(functional, some, self._vectorize).probed(u)

    def _add(self, numbers: list[int], n: Array, cross: Array, square: Array, sigma: float, rate: float, clip: float) -> None:
        """Adds a step: every probe is an unbiased estimate of ``A tr + (B − A) along``, the information under sampling."""
        hard, noise = Clip("hard", clip), sigma * clip
        released = np.minimum(n, clip)
        table = self._table(sigma, rate)
        across, along = np.frombuffer(table.information(np.ascontiguousarray(released / noise)), dtype=np.float64).reshape(2, -1)
        whole_square, part_along = hard.square(n, cross, square)
        each = (across * whole_square + (along - across) * part_along) / noise**2
        value, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))
        published = table.published(sigma, self._delta) * whole_square.mean(axis=0) / noise**2
        seen = (1.0 if self._panel is not None else rate) * self._schedule.share
        w, at = 1 / seen, np.asarray(numbers)
        # of a value x seen with probability q: mean x, variance (1−q)/q·x², estimated by (1−q)/q²·x²
        self._trace[at] += w * value
        self._variance[at] += (1 - seen) * w * w * value**2 + (w * error) ** 2
        self._published[at] += w * published
        self._norm[at] = np.fmax(self._norm[at], n)
        self._looks[at] += 1
        if self._renyi is not None:
            self._renyi += self._renyi_of(sigma, rate, released / noise)

    def _point(self, rate: float, loss: float) -> None:
        known = self._trace[self._looks > 0] / self._dimension
        self._points.append({"step": len(self), "epoch": len(self) * rate, "loss": loss, "accuracy": None, "epsilon": None,
                             "dfil_median": float(np.median(known)), "dfil_p90": float(np.quantile(known, 0.9))})

    def _fetched(self, numbers: list[int]) -> Records:
        dataset, collate = self._loader.dataset, self._loader.collate_fn
        batch = collate([dataset[i] for i in numbers])
        result = _batch(batch, None, self._loss is None, 0)
        result.numbers = list(numbers)
        return _placed(result, *place_of(self._module))

    def result(self) -> Training:
        """What records have given away so far: ``document``, ``records`` (a row for every record), ``summary()``, pages."""
        if not self._points:
            raise LeakscopeError("leakscope.opacus: no step was measured yet: train first, or give a smaller every")
        rate, sigma = self._releases[-1][1], self._releases[-1][0]
        numbers = self._panel if self._panel is not None else range(self._count)
        rows = [self._row(i, at) for at, i in enumerate(numbers)]
        group = self._optimizer.param_groups[0]
        step = max(1, len(self._points) // 200)
        history = self._points[::step] if (len(self._points) - 1) % step == 0 else [*self._points[::step], self._points[-1]]
        trained = trained_names(self._module, None)
        everything = dict(self._module.named_parameters())
        values = {
            "network": {"name": type(self._module).__name__, "parameters": sum(p.numel() for p in everything.values()),
                        "trained": sum(everything[k].numel() for k in trained), "input": list(self._shape), "outputs": 0,
                        "loss": _loss_name(self._loss)},
            "double": place_of(self._module)[1] == torch.float64,
            "files": ["a loader of Opacus"],
            "records": self._count,
            "optimizer": type(getattr(self._optimizer, "original_optimizer", self._optimizer)).__name__,
            "learning_rate": float(group.get("lr", 0.0)),
            "weight_decay": float(group.get("weight_decay", 0.0)),
            "batch": rate * self._count,
            "seed": self.seed,
            "clip": float(self._optimizer.max_grad_norm),
            "sigma": sigma,
            "releases": self._releases,
            "delta": self._delta,
            "statement": _STATEMENT,
            "panel": self._panel is not None,
            "probes": self._probes,
            "label_secret": False,
            "measured_steps": self._measured,
            "history": history,
            "dimension": self._dimension,
            "accounts": rows,
            "notes": self._remarks(rate),
            "seconds": time.perf_counter() - self._started,
        }
        columns = [[row[k] for row in self._steps] for k in range(3)]
        return Training(_native.net_tracked(values, *columns), rate)

    def _row(self, i: int, at: int) -> dict[str, Any]:
        looked = self._looks[i] > 0
        return {
            "record": int(i),
            "label": self._labels.get(i),
            "trace": {"value": float(self._trace[i]), "standard_error": float(np.sqrt(self._variance[i]))} if looked else None,
            "published": float(self._published[i]) if looked else None,
            "renyi": [] if self._renyi is None else self._renyi[at].tolist(),
            "gradient_norm": float(self._norm[i]) if looked else None,
        }

    def _remarks(self, rate: float) -> list[str]:
        """What the reader should know of the accounts."""
        whole_run = time.perf_counter() - self._started
        out = [*self._notes, f"Kept by Leakscope in an Opacus run of {len(self)} steps: {int(self._looks.sum())} looks at records took "
               f"{self.seconds:.1f} s of {whole_run:.1f} s."]
        if self._schedule.every is None:
            out.append(f"One step in {self._schedule.one_in:.3g} was measured, {self._measured} in all, so that looks take "
                       f"{100 * self._schedule.cost:.3g}% of a step (cost={self._schedule.cost:g}): drawn at random with a probability from "
                       "the times of earlier steps, and weighted by its inverse, which standard errors count.")
        elif self._schedule.every > 1:
            out.append(f"One step in {self._schedule.every} was measured, drawn at random and weighted by {self._schedule.every}, which "
                       "standard errors count.")
        if self._panel is None:
            out.append(f"Accounts are kept of drawn records, weighted by 1/q: unbiased, but a record was looked at "
                       f"{self._looks.mean():.1f} times on average, and of one that never was nothing is known. A panel "
                       "(records=[…]) has no such error, and its own ε a record.")
            share = float((self._looks > 0).mean())
            if share < _FEW:
                out.append(f"Only {100 * share:.0f}% of records were looked at. Of these the numbers are too large, on average by a factor of "
                           f"{1 / share:.2g}: they stand for the others too. Give every=1, or train longer, for the numbers of each.")
        elif self._measured < len(self):
            out.append("A record's own ε charges the steps that were not measured as if its gradient were as long as the clip: it "
                       "errs on the safe side.")
        if getattr(self, "_secret", None) is not None and self._secret.embedded:
            out.append(f"Records are whole numbers: dFIL is about {self._secret.words}.")
        out.append("Losses and dFIL are computed without noise: the statement covers the model, not these numbers.")
        return out

    def report(self, path: Any) -> Path:
        """Writes the page: what records have given away so far, in one file that opens anywhere."""
        return self.result().report(path)


def _refuse(engine: Any, optimizer: Any, loader: Any) -> None:
    if not hasattr(optimizer, "attach_step_hook") or not hasattr(optimizer, "max_grad_norm"):
        raise OptionError(f"optimizer: {type(optimizer).__name__}: expected the one that PrivacyEngine.make_private returned")
    if not hasattr(engine, "accountant"):
        raise OptionError(f"privacy_engine: {type(engine).__name__}: expected an opacus.PrivacyEngine")
    kind = type(optimizer).__name__
    if "PerLayer" in kind or "AdaClip" in kind or isinstance(optimizer.max_grad_norm, (list, tuple)):
        raise OptionError(f"optimizer: {kind}: accounts are of gradients clipped as a whole at one C: use clipping='flat'")
    if not optimizer.noise_multiplier > 0:
        raise OptionError(f"noise_multiplier={optimizer.noise_multiplier}: without noise a record gives everything away: there is no "
                          "account to keep")
    sampler = getattr(loader, "batch_sampler", None)
    if not hasattr(sampler, "sample_rate"):
        raise OptionError("data_loader: it does not draw by Poisson sampling: give the loader that make_private returned, with "
                          "poisson_sampling=True (and not the one of BatchMemoryManager, which splits it)")
    if "Distributed" in type(sampler).__name__:
        raise OptionError("data_loader: distributed sampling is not kept account of: track a run of one process")


def _schedule(every: int | None, cost: float | None, panel: bool, seed: int) -> Schedule:
    if every is not None and cost is not None:
        raise OptionError(f"cost={cost!r}: every={every!r} says how many steps are measured already: leave one out")
    if every is None and cost is None and panel:
        every = 1
    return Schedule(np.random.default_rng([seed, 1]), None if every is None else whole("every", every, 1),
                    COST if cost is None else positive("cost", cost))


def _sizes(optimizer: Any) -> int | None:
    """Records of the step's last physical batch, where Opacus still has them."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            sample = getattr(p, "grad_sample", None)
            if isinstance(sample, torch.Tensor):
                return len(sample)
    return None


def _panel(records: Any, n: int, seed: int) -> list[int] | None:
    if isinstance(records, str):
        one_of("records", records, ("drawn", "panel"))
        if records == "panel":
            raise OptionError("records='panel': say how many, or which: a number or a list of record numbers")
        return None
    if isinstance(records, (list, tuple, range, np.ndarray)):
        result = [whole("records", i, 0, n - 1) for i in (records.tolist() if isinstance(records, np.ndarray) else records)]
        if not result or len(set(result)) != len(result):
            raise OptionError("records: expected record numbers, each once, and at least one")
        return result
    count = whole("records", records, 1, n)
    return sorted(np.random.default_rng([seed, 2]).choice(n, size=count, replace=False).tolist())
