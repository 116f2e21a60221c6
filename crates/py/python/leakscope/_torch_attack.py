"""Attacks on torch modules: records back from their released gradients, and who was trained on."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import torch
from torch.func import grad_and_value, vmap

from . import _native
from ._attack_model import Game, _Written, membership
from ._binomial import student_t
from ._checks import positive, seeded, whole
from ._leak import Array, Clip, clip_of
from ._native import LeakscopeError, OptionError
from ._network import _chosen
from ._results import Result
from ._tables import frame
from ._torch_audit import _functional, _room, _values
from ._torch_model import Functional, differentiable, explained, place_of, refuse_modes
from ._torch_products import TorchProducts, Tree, _dot
from ._torch_records import Records, records

_SCHEMA = "leakscope.torch-attack/1"


class TorchAttack(Result):
    """What attacks on a module achieved: ``records`` has a row for every record that was put together again."""

    def _rows(self, name: str, by_position: bool = True) -> Any:
        table = self._outcome.table(name)
        return None if table is None else frame("numpy", table, index_name="record")

    @property
    def warnings(self) -> list[str]:
        """What to know about these numbers."""
        return list(self.document["warnings"])


def attack(module: torch.nn.Module, loss: Any, data: Any, y: Any, *, nonmembers: Any, invert: Any, clip: float | None,
           clip_kind: str | None, sigma: float | None, steps: int, starts: int, trained: Any, secret: Any, index: Any,
           chunk: int | None, confidence: float, seed: int | None) -> TorchAttack:
    """See :func:`leakscope.torch.attack`; the module is a bare one."""
    refuse_modes(module)
    place = place_of(module)
    result = records(data, y, index, *place, takes_target=loss is None)
    game = Game("clopper-pearson", confidence, seeded(seed))
    document: dict[str, Any] = {"schema": _SCHEMA, "model": type(module).__name__, "records": len(result), "seed": game.seed,
                                "confidence": confidence, "membership": None, "inversion": None,
                                "warnings": ["These attacks show what is at least given away. What they do not find others may."]}
    tables = {}
    with differentiable(module):
        try:
            functional, notes = _functional(module, loss, result, trained, secret, False)
            size = whole("chunk", chunk, 1) if chunk is not None else _room(functional, result)
            document["warnings"] += notes
            if nonmembers is not None:
                if not isinstance(nonmembers, (tuple, list)) or len(nonmembers) != 2:
                    raise OptionError("nonmembers: expected a pair of records and targets")
                others = records(*nonmembers, None, *place, takes_target=loss is None)
                fits = [-_losses(functional, part, size) for part in (result, others)]
                document["membership"] = membership(game, *fits)
            if invert is not None:
                order = _chosen(invert, len(result))
                release = (clip_of(clip, clip_kind), positive("sigma", 1e-3 if sigma is None else sigma))
                document["inversion"], tables["records"] = _inversion(functional, result, order, release, whole("steps", steps, 1),
                                                                      whole("starts", starts, 1), size, game)
        except LeakscopeError:
            raise
        except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError) as e:
            raise explained(e) from e
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return TorchAttack(_Written(text, None, _summary(document), [], tables, None))


def _losses(functional: Functional, some: Records, size: int) -> Array:
    parts = [TorchProducts(functional, some.at(list(range(at, min(at + size, len(some))))), True).primal()[0]
             for at in range(0, len(some), size)]
    return np.concatenate(parts)


def _inversion(functional: Functional, result: Records, order: list[int], release: tuple[Clip, float], steps: int, starts: int,
               size: int, game: Game) -> tuple[dict[str, Any], Any]:
    """Records from one noisy, clipped gradient each, by the most likely one under a normal prior of the records' moments."""
    if functional.secret.embedded:
        raise OptionError("invert: records are whole numbers: an attack gives embeddings, and no tokens: give real numbers")
    values = _values(functional, result)
    mean, variance = values.mean(axis=0), np.maximum(values.var(axis=0), 1e-12)
    guesses, fits = [], []
    for at in range(0, len(order), size):
        some = result.at(order[at : at + size])
        guess, fit = _Inversion(functional, some, release, mean, variance, game.seed).run(steps, starts)
        guesses.append(guess)
        fits.append(fit)
    guess, truth = np.concatenate(guesses), values[order]
    errors, baseline = ((guess - truth) ** 2).mean(axis=1), ((mean - truth) ** 2).mean(axis=1)
    better = int((errors < baseline).sum())
    n = len(order)
    half = student_t(n - 1, game.confidence) * errors.std(ddof=1) / math.sqrt(n) if n > 1 else float("inf")
    columns = [("record", "int64", np.array([result.numbers[i] for i in order], dtype=np.int64).tobytes())]
    for name, column in (("squared_error", errors), ("baseline", baseline), ("misfit", np.concatenate(fits))):
        columns.append((name, "float64", np.ascontiguousarray(column).tobytes()))
    clip, sigma = release
    summary = {"records": n, "sigma": sigma, "clip_kind": clip.kind, "clip": None if clip.kind == "none" else clip.bound,
               "noise": sigma * clip.unit, "steps": steps, "starts": starts,
               "squared_error": {"value": float(errors.mean()), "low": max(0.0, float(errors.mean() - half)) if n > 1 else 0.0,
                                 "high": float(errors.mean() + half) if n > 1 else None, "trials": n},
               "baseline": float(baseline.mean()), "closer_than_the_mean": game.share(better, n)}
    return summary, _native.ResultTable(columns, [], "record")


class _Inversion:
    """Adam on ``‖clip(g(x)) − released‖²/(2s²) + Σ (x − μ)²/(2v)``, records side by side."""

    def __init__(self, functional: Functional, some: Records, release: tuple[Clip, float], mean: Array, variance: Array,
                 seed: int) -> None:
        self._products = TorchProducts(functional, some, True)
        self._clip, sigma = release
        self._noise = sigma * self._clip.unit
        secret = self._products._secret
        self._like = secret[0]
        self._mean, self._scale = (self._shaped(v[None].repeat(len(some), axis=0)) for v in (mean, np.sqrt(variance)))
        self._numbers, self._seed = some.numbers, seed
        with torch.no_grad():
            clean = vmap(self._released)(self._products._rest, secret)
        self._target = {k: v + self._noise * self._drawn(v, 7 + at) for at, (k, v) in enumerate(clean.items())}

    def _shaped(self, rows: Array) -> tuple[torch.Tensor, ...]:
        return self._products._shaped(rows)

    def _drawn(self, like: torch.Tensor, stream: int) -> torch.Tensor:
        rows = [np.random.default_rng([self._seed, number, stream]).normal(size=tuple(like.shape[1:])) for number in self._numbers]
        return torch.as_tensor(np.stack(rows), dtype=like.dtype, device=like.device)

    def _released(self, rest: Tree, secret: Any) -> Tree:
        g = self._products._gradient(rest, *secret)
        n = torch.sqrt(_dot(g, g) + 1e-30)
        if self._clip.kind == "hard":
            s = torch.clamp(self._clip.bound / n, max=1.0)
        elif self._clip.kind == "gelu":
            s = 1 / (torch.nn.functional.gelu(n / self._clip.bound - 1) + 1)
        else:
            s = torch.ones_like(n)
        return {k: s * v for k, v in g.items()}

    def _objective(self, z: Any, rest: Tree, target: Tree, mean: Any, scale: Any) -> torch.Tensor:
        secret = tuple(m + s * v for m, s, v in zip(mean, scale, z))
        moved = self._released(rest, secret)
        apart = {k: moved[k] - target[k] for k in moved}
        return _dot(apart, apart) / (2 * self._noise**2) + sum((v * v).sum() for v in z) / 2

    def run(self, steps: int, starts: int) -> tuple[Array, Array]:
        """The best guess of every record, and its objective."""
        step = vmap(grad_and_value(self._objective))
        best, lowest = None, None
        for start in range(starts):
            z = tuple(0.1 * self._drawn(s, 1000 + 10 * start + k) for k, s in enumerate(self._mean))
            first, second = ([torch.zeros_like(v) for v in z] for _ in range(2))
            for t in range(1, steps + 1):
                slope, value = step(z, self._products._rest, self._target, self._mean, self._scale)
                if best is None or lowest is None:
                    best, lowest = tuple(v.clone() for v in z), value.clone()
                else:
                    down = value < lowest
                    best = tuple(torch.where(down.reshape(-1, *[1] * (b.ndim - 1)), v, b) for v, b in zip(z, best))
                    lowest = torch.where(down, value, lowest)
                rate = 0.1 * 0.5 * (1 + math.cos(math.pi * t / (steps + 1)))
                moved = []
                for k, (v, g) in enumerate(zip(z, slope)):
                    first[k] = 0.9 * first[k] + 0.1 * g
                    second[k] = 0.99 * second[k] + 0.01 * g * g
                    moved.append(v - rate * (first[k] / (1 - 0.9**t)) / (torch.sqrt(second[k] / (1 - 0.99**t)) + 1e-12))
                z = tuple(moved)
        assert best is not None and lowest is not None
        guess = tuple(m + s * v for m, s, v in zip(self._mean, self._scale, best))
        return self._products._flat(guess), lowest.detach().double().cpu().numpy()


def _summary(document: dict[str, Any]) -> str:
    lines = [f"Attacks on {document['model']}: {document['records']} records"]
    m, i = document["membership"], document["inversion"]
    if m is not None:
        a = m["accuracy"]
        lines.append(f"Membership by the loss: {a['value']:.1%} right ({a['low']:.1%} to {a['high']:.1%}), without the model 50.0%")
    if i is not None:
        c = i["closer_than_the_mean"]
        lines.append(f"Inversion of {i['records']} gradients under noise of {i['noise']:.4g}: mean squared error a value "
                     f"{i['squared_error']['value']:.4g}, {i['baseline']:.4g} for whoever guesses the mean; closer than the mean for "
                     f"{c['value']:.1%} ({c['low']:.1%} to {c['high']:.1%})")
    return "\n".join([*lines, *document["warnings"]]) + "\n"
