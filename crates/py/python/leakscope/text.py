"""Language models: what fine-tuning on a text gives away.

:func:`audit` measures what one noisy step of fine-tuning tells about each of a list of texts, and which words. :func:`canary` plays the extraction game of Guo et al. (2022, §6.3) on a model of Hugging Face (GPT-2, Llama) or llama2.c, and bounds
what anybody can pull out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from . import _native, _progress
from ._docs import documented
from ._requests import Path, Progress, listed
from ._results import Result

__all__ = ["Canary", "TextAudit", "audit", "canary"]


class TextAudit(Result):
    """What an audit of texts found: ``records`` has a row for each, ``document["records"][i]["plis_tokens"]`` PLIS of its tokens."""

    @cached_property
    def records(self) -> Any:
        """A frame with a row for every text."""
        return self._listed(self._RECORDS)


@documented(texts="Texts, or one.",
            model="A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint.",
            tokenizer="Its tokeniser. By default that of the folder.",
            long="What becomes of a text that is longer than the context: ``\"refuse\"`` or ``\"split\"``.",
            layers="What is fine-tuned: ``\"all\"``, ``\"last\"`` or ``\"adapters\"`` (low-rank, beside every dense layer).",
            rank="Rank of adapters.",
            clip="Norm that gradients are clipped to, C. By default they are not.",
            clip_kind="``\"hard\"``, ``\"gelu\"`` or ``\"none\"``.",
            sigma="Noise multiplier: noise has standard deviation σC. By default a unit of noise.",
            trace="The trace of the information: ``\"exact\"``, a number of random probes, or ``\"skip\"``.",
            eta="Whether η is measured, the most costly part.",
            plis="Of which gradient PLIS is: ``\"raw\"`` or ``\"released\"``.",
            secret="Secrets in the texts whose exposure is asked for.",
            secret_pattern="What they might be, as in :func:`canary`.",
            show="Whether texts are shown on the page.",
            seed="Seed of probes and adapters. Drawn by default.")
def audit(
    texts: Sequence[str] | str,
    model: Path,
    *,
    tokenizer: Path | None = None,
    long: str = "refuse",
    layers: str = "all",
    rank: int = 8,
    clip: float | None = None,
    clip_kind: str | None = None,
    sigma: float | None = None,
    trace: str | int = 10,
    eta: bool = True,
    plis: str = "raw",
    secret: Sequence[str] | str | None = None,
    secret_pattern: str | None = None,
    show: bool = True,
    seed: int | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> TextAudit:
    """What one noisy step of fine-tuning on texts tells about each of them, and which words.

    Returns
    -------
    TextAudit
        Loss, norm of the gradient, dFIL, η and PLIS of every text, the page.
    """
    values = {"model": model, "tokenizer": tokenizer, "list": listed(texts), "long": long, "layers": layers, "rank": rank,
              "release": {"clip": clip, "clip_kind": clip_kind, "sigma": sigma},
              "trace": trace if isinstance(trace, str) else {"probes": trace}, "eta": eta, "plis": plis,
              "secrets": listed(secret), "secret_pattern": secret_pattern, "show": show, "seed": seed}
    with _progress.shown(progress) as told:
        return TextAudit(_native.text_audit(values, told))._kept(out)


class Canary(Result):
    """What the extraction game found: ``document["points"]`` has bounds and attacks by noise and number of steps."""


@documented(model="A folder as transformers saves GPT-2 or Llama, or a llama2.c checkpoint.",
            tokenizer="Its tokeniser. By default that of the folder.",
            prompt="The text before the secret.",
            candidates="What the secret may be: a list of texts. By default every token of the vocabulary.",
            pattern="The same as a pattern: ``#`` is a digit, ``{luhn}`` the check digit of those before it, ``{date:1980-1989}`` a "
                    "day, ``{a|b}`` a choice.",
            secret_tokens="Tokens of the secret where no candidates are named; of more than one, some sequences are drawn.",
            prior="How likely each candidate is beforehand: ``\"uniform\"`` or ``\"model\"``, as the model holds it to be.",
            clip="Norm that gradients are clipped to, C.",
            lr="Learning rate.",
            sigmas="Noise multipliers. By default eight, so that 2T/σ² is 1 to 1000.",
            steps="Numbers of steps T.",
            layers="What is fine-tuned: ``\"last\"``, ``\"all\"``, ``\"adapters\"`` (low-rank, beside every dense layer) or several.",
            rank="Rank of adapters.",
            trials="Games played for every noise and number of steps; 0 for bounds alone.",
            seed="Seed of secrets and noise. Drawn by default.")
def canary(
    model: Path,
    *,
    tokenizer: Path | None = None,
    prompt: str = "John Smith's credit card number is",
    candidates: Sequence[str] | None = None,
    pattern: str | None = None,
    secret_tokens: int = 1,
    prior: str = "uniform",
    clip: float = 1.0,
    lr: float = 0.1,
    sigmas: Sequence[float] | None = None,
    steps: Sequence[int] = (1, 2, 5),
    layers: Sequence[str] = ("last",),
    rank: int = 8,
    trials: int = 1000,
    seed: int | None = None,
    out: Path | None = None,
    progress: Progress = None,
) -> Canary:
    """Can a secret be pulled out of a model that was fine-tuned on it?

    Returns
    -------
    Canary
        Bounds for every attacker, what attacks achieved, the page.
    """
    values = {"model": model, "tokenizer": tokenizer, "prompt": prompt, "list": listed(candidates), "pattern": pattern,
              "secret_tokens": secret_tokens, "prior": prior, "clip": clip, "lr": lr, "sigmas": listed(sigmas),
              "steps": listed(steps), "layers": listed(layers), "rank": rank, "trials": trials, "seed": seed}
    with _progress.shown(progress) as told:
        return Canary(_native.text_canary(values, told))._kept(out)
